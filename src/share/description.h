/* The description of a buffer for an importer: written by the exporter, and not trusted. */
#ifndef GM_SHARE_DESCRIPTION_H
#define GM_SHARE_DESCRIPTION_H

#include "memory/core/objects.h"

/*
 * For memory that is mapped in chunks, as sent; both sides are on one machine, so byte order does
 * not matter. A whole description has all chunks. One of growth has those from `first` on, for an
 * importer that has the others; counts and sums are those of the whole.
 */
struct gm_description_head {
    char magic[8];
    uint32_t version;
    uint32_t head_bytes;
    uint32_t chunk_count;     /* of the buffer */
    uint32_t first;           /* that follows */
    unsigned char device[16]; /* UUID */
    unsigned char buffer[16]; /* random; equal for exports of one buffer */
    uint64_t layout;          /* differs when the buffer's chunks do */
    uint64_t epoch;           /* while it is the same, chunks have only been added at the end */
    uint64_t bytes;           /* of the buffer */
    uint64_t committed;       /* of all chunks */
    /* uint64_t chunk_bytes[chunk_count - first] follows */
};

/* What an importer already has. */
struct gm_known_chunks {
    size_t count;
    uint64_t committed;
};

/* The most that a received description can make us store: 1 Mi handles are 2 TiB in the smallest
 * chunks. */
#define GM_DESCRIPTION_MOST_CHUNKS ((size_t)1 << 20)
#define GM_DESCRIPTION_MOST_BYTES                                                                  \
    (sizeof(struct gm_description_head) + GM_DESCRIPTION_MOST_CHUNKS * sizeof(uint64_t))

/* Describes `size` bytes of a buffer. Malloced; NULL without memory. */
void *gm_description_write(const gpumem_buffer *buffer, size_t size, const unsigned char uuid[16],
                           const struct gm_chunk *chunks, size_t count, size_t *bytes);

/* The description of growth from chunk `first` on, from our own whole one. Malloced; NULL without
 * memory. */
void *gm_description_tail(const void *whole, size_t first, size_t *bytes);

/*
 * Checks everything that can be checked: DATA if it is not a description, or if sizes do not add
 * up, are not multiples of `granularity` or exceed `maximum`. `known` is NULL for a whole one; else
 * it must continue where that ends. On success *head is a copy and *chunks points into `data`,
 * unaligned, to the size of chunk head->first.
 */
gpumem_status gm_description_read(const void *data, size_t bytes, size_t granularity,
                                  uint64_t maximum, const struct gm_known_chunks *known,
                                  struct gm_description_head *head, const unsigned char **chunks);

/* Counted from where `chunks` points to. */
uint64_t gm_description_chunk(const unsigned char *chunks, size_t index);

#endif
