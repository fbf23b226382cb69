/*
 * What is held, in one call: of a resource, a device, or all that a library opened.
 */
#ifndef GPUMEM_STATS_H
#define GPUMEM_STATS_H

#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Bytes and counts of now, unless a name says high or total. Memory of wrapped resources is counted
 * once for a device, by the innermost; a wrapper of yours says what it wraps
 * (gpumem_resource_ops.upstream). Members are read one after the other while other threads go on:
 * each is right, their sum may be a moment old.
 */
typedef struct gpumem_stats {
    size_t size;
    uint64_t reserved_bytes;     /* address space, whether or not memory is behind it */
    uint64_t committed_bytes;    /* memory taken from the driver: in use, rounding and caches */
    uint64_t committed_high;     /* its highest value */
    uint64_t in_use_bytes;       /* as callers asked for, in live buffers */
    uint64_t in_use_high;        /* its highest value */
    uint64_t cached_bytes;       /* committed, and in no buffer: trim gives it back */
    uint64_t pinned_bytes;       /* host part of committed_bytes */
    uint64_t pinned_high;        /* its highest value */
    uint64_t imported_bytes;     /* other processes' memory, or found by address; not committed */
    uint64_t allocations;        /* live buffers */
    uint64_t allocations_total;  /* ever made */
    uint64_t allocations_failed; /* refused */
    uint64_t chunks;             /* physical handles, pinned slabs */
    uint64_t mappings;           /* physical handles mapped at an address */
    uint64_t deferred_frees;     /* freed by their owner, held back by queued work */
    uint64_t deferred_bytes;     /* theirs; still in committed_bytes, no longer in_use */
    uint64_t exports;            /* live export objects */
    uint64_t quarantined;        /* objects that the driver refused to take back: lost until exit */
    uint64_t quarantined_bytes;  /* theirs, also in committed_bytes or reserved_bytes */
} gpumem_stats;

/*
 * `stats->size` is to be set. Thread-safe, does not block. Driver: none, but for pools that the
 * library has made (cuMemPoolGetAttribute).
 */
GPUMEM_API gpumem_status gpumem_resource_get_stats(gpumem_resource *resource, gpumem_stats *stats);
GPUMEM_API gpumem_status gpumem_device_get_stats(gpumem_device *device, gpumem_stats *stats);
GPUMEM_API gpumem_status gpumem_library_get_stats(gpumem_library *library, gpumem_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
