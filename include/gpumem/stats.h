/*
 * Statistics of a resource, a device, or everything that a library has open.
 */
#ifndef GPUMEM_STATS_H
#define GPUMEM_STATS_H

#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Current bytes and counts, unless a name says high or total. A device counts memory of wrapped
 * resources once, at the innermost; a wrapper of your own declares what it wraps
 * (gpumem_resource_ops.upstream). What is below a caching resource counts its segments as buffers,
 * not what the cache makes of them; memory that the cache keeps is its cached_bytes or
 * deferred_bytes alone. Members are read one after another while other threads run:
 * each is correct, but they may be of slightly different moments.
 */
typedef struct gpumem_stats {
    size_t size;
    uint64_t reserved_bytes;  /* address space, with or without memory */
    uint64_t committed_bytes; /* memory taken from the driver: in use, rounding and caches; of a
                                    pool that the library has created, all that the pool holds */
    uint64_t committed_high;  /* its highest value; of a device with such pools, the highest that
                                    was seen */
    uint64_t in_use_bytes;    /* as requested by callers, in live buffers */
    uint64_t in_use_high;     /* its highest value */
    /* Committed, in no buffer and held back by none: kept for later buffers. Trim gives it back, by
     * whole chunks, segments or slabs, when the work of the streams that used it is done. */
    uint64_t cached_bytes;
    uint64_t pinned_bytes;       /* host part of committed_bytes */
    uint64_t pinned_high;        /* its highest value */
    uint64_t imported_bytes;     /* of other processes, or found by address; not committed */
    uint64_t allocations;        /* live buffers */
    uint64_t allocations_total;  /* ever made */
    uint64_t allocations_failed; /* refused */
    uint64_t chunks;             /* physical handles, pinned slabs */
    uint64_t mappings;           /* physical handles mapped at an address */
    uint64_t deferred_frees;     /* freed by the owner, held back by queued work; see below */
    uint64_t deferred_bytes;     /* their bytes; still in committed_bytes, not in_use or cached */
    uint64_t exports;            /* live export objects */
    uint64_t quarantined;        /* objects the driver refused to take back: lost until exit */
    uint64_t quarantined_bytes;  /* their bytes, also in committed_bytes or reserved_bytes */
} gpumem_stats;

/*
 * Frees that the driver's pools take in the order of a stream are in deferred_frees while they are
 * known to be held back: those of the calling thread, those on the default stream, and all that an
 * allocation short of memory, a trim that waits or the end of a stream has looked at. Memory that
 * the stream itself has been given again does not count. Of streams that the program has created
 * itself (cuStreamCreate), which may be gone, the library knows nothing once the free has returned:
 * up to 32 MiB of each, and thread, are not counted and not waited for.
 */

/*
 * Set `stats->size` before the call. Thread-safe, does not block. Driver: none, except for pools
 * that the library has created (cuMemPoolGetAttribute), and for the streams on which memory was
 * freed into pools since the last call (cuStreamGetCaptureInfo, cuStreamQuery, cuEventRecord,
 * cuEventQuery).
 */
GPUMEM_API gpumem_status gpumem_resource_get_stats(gpumem_resource *resource, gpumem_stats *stats);
GPUMEM_API gpumem_status gpumem_device_get_stats(gpumem_device *device, gpumem_stats *stats);
GPUMEM_API gpumem_status gpumem_library_get_stats(gpumem_library *library, gpumem_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
