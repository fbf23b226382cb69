/*
 * A JSON snapshot of everything held: resources with their buffers, caches and slabs, virtual
 * memory with its physical handles and mappings, imports and exports, deferred frees, objects that
 * the driver would not take back, statistics. docs/snapshot.md describes the members; `gpumem map`
 * draws it.
 */
#ifndef GPUMEM_SNAPSHOT_H
#define GPUMEM_SNAPSHOT_H

#include <gpumem/library.h>
#include <gpumem/types.h>
#include <gpumem/wrappers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of gpumem_snapshot. */
typedef struct gpumem_snapshot_options {
    size_t size;
    gpumem_device *device; /* only this one, of the same library; NULL: all that are open */
    bool without_buffers;  /* no lists of buffers and of tracked allocations */
    /* Only totals for slabs and cache segments, not each piece. Listing the pieces of a cache
     * stops its threads for about 10 ns per block. */
    bool without_pieces;
} gpumem_snapshot_options;
#define GPUMEM_SNAPSHOT_OPTIONS(...) GPUMEM_OPTIONS(gpumem_snapshot_options, __VA_ARGS__)

/*
 * A snapshot of all devices that the library has open, or of one. `*text` is UTF-8,
 * 0-terminated, and freed by the caller with free(). Options may be NULL.
 *
 * May be called at any time, concurrently with any other call. The buffers of a resource are listed
 * as of one moment, with its allocations and frees held off; the same holds separately for the
 * segments of a cache, the slabs of a resource, and the virtual memory of the device. Other threads
 * run in between: a buffer may be listed before its mapping is, and statistics may be slightly
 * older. The result is always valid JSON of the documented form.
 *
 * The text is first built in memory: about 200 bytes per buffer. OUT_OF_HOST_MEMORY: nothing is
 * returned or written. FORKED, INVALID_ARGUMENT as everywhere. Driver: cuMemGetInfo,
 * cuDeviceGetName and similar, and the calls of gpumem_device_get_stats; if a device refuses these
 * because of an earlier fault, the snapshot omits what they would report.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_snapshot(gpumem_library *library,
                                                           const gpumem_snapshot_options *options,
                                                           char **text);

/* The same, passed to `write` in pieces of at most 64 KiB, split anywhere. `write` may call the
 * library: no lock is held. SYSTEM: `write` returned an errno, which ends the writing. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_snapshot_write(gpumem_library *library, const gpumem_snapshot_options *options,
                      gpumem_write_fn write, void *user);

#ifdef __cplusplus
}
#endif

#endif
