/* Descriptions of things that are not mapped in chunks: one buffer of a driver's pool, and an
 * event. */
#ifndef GM_SHARE_KINDS_H
#define GM_SHARE_KINDS_H

#include "memory/core/objects.h"

#include <gpumem/pool.h>
#include <gpumem/pool_interop.h>

enum gm_kind { GM_KIND_CHUNKS, GM_KIND_POOL, GM_KIND_EVENT, GM_KIND_UNKNOWN };

struct gm_pool_description {
    char magic[8];
    uint32_t version;
    uint32_t bytes_of_this;
    int32_t location; /* gpumem_location */
    int32_t numa_node;
    unsigned char device[16]; /* UUID */
    unsigned char pool[16];   /* UUID */
    uint64_t bytes;
    uint64_t offset;
    unsigned char data[64]; /* the driver's */
};

struct gm_event_description {
    char magic[8];
    uint32_t version;
    uint32_t bytes_of_this;
    unsigned char device[16];
    unsigned char handle[64]; /* CUipcEventHandle */
};

/* Determined by its first bytes alone. */
enum gm_kind gm_kind_of(const void *description, size_t bytes);
/* "mapped memory", "memory of a pool", "an event". */
const char *gm_kind_name(enum gm_kind kind);

/* Malloced; NULL without memory. */
void *gm_pool_description_write(const gpumem_pool_share_handle *pool,
                                const gpumem_pool_share_buffer *buffer,
                                const unsigned char device[16], size_t *bytes);
void *gm_event_description_write(const unsigned char device[16], const unsigned char handle[64],
                                 size_t *bytes);

/* DATA for impossible values, or more than `maximum`. */
gpumem_status gm_pool_description_read(const void *data, size_t bytes, uint64_t maximum,
                                       struct gm_pool_description *description);
gpumem_status gm_event_description_read(const void *data, size_t bytes,
                                        struct gm_event_description *description);

#endif
