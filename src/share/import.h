/* Imported memory, for the files that import it and let it grow. */
#ifndef GM_SHARE_IMPORT_H
#define GM_SHARE_IMPORT_H

#include "memory/virtual/extent.h"
#include "share/share.h"

/*
 * One mapping of memory in chunks, shared by all buffers over it. Linked and counted under the
 * device's lock. Without a peer in its identity it is in no list and has only one buffer; this is
 * so for those that can grow.
 */
struct gm_import {
    struct gm_identity identity;
    struct gm_extent extent;
    CUmemAccessDesc access[2];
    CUmemLocation location; /* of all its memory */
    int host_accessible;
    unsigned references;
    struct gm_import *next;
    int grows;           /* the rest is for such imports */
    struct gm_peer peer; /* who sent it */
    struct gm_connection connection;
    uint64_t epoch;
};

/* The import of a buffer that can grow; else NULL. */
struct gm_import *gm_import_that_grows(const gpumem_buffer *buffer);

/* Imports descriptors as chunks of these sizes, and checks where the memory is; on failure none is
 * kept. `files` are of the same chunks. */
gpumem_status gm_import_handles(struct gm_import *import, const struct gm_file *files, size_t count,
                                const int *fds, struct gm_chunk *out);
void gm_import_release(struct gm_import *import, const struct gm_chunk *chunks, size_t count);

/* Adds the growth of a checked description, all or nothing. `sizes` and `fds` are those of its
 * chunks from the import's last one on. */
gpumem_status gm_import_grow(gpumem_buffer *buffer, struct gm_import *import,
                             const struct gm_description_head *head, const unsigned char *sizes,
                             const int *fds);

/* The memory offered, of either kind. Points into the description. */
struct gm_incoming {
    int of_pool;
    struct gm_description_head head; /* of memory in chunks */
    const unsigned char *sizes;
    struct gm_pool_description pool;
};

/* DATA: not memory, or too much; NO_DEVICE: of another device; NOT_SUPPORTED: the device cannot
 * import it. */
gpumem_status gm_incoming_read(gpumem_device *device, const void *description, size_t bytes,
                               uint64_t maximum, struct gm_incoming *incoming);
size_t gm_incoming_descriptors(const struct gm_incoming *incoming);
gpumem_status gm_incoming_map(gpumem_device *device, const struct gm_incoming *incoming,
                              const int *fds, const struct gm_import_terms *terms,
                              gpumem_buffer **buffer);

/* share/import_pool.c */
gpumem_status gm_import_pool_map(gpumem_device *device, const struct gm_pool_description *pool,
                                 int fd, const struct gm_import_terms *terms,
                                 gpumem_buffer **buffer);

#endif
