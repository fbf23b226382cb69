/*
 * Everything that is held, as JSON: resources with their buffers, caches and slabs, virtual memory
 * with its physical handles and mappings, imports and exports, frees held back, what the driver
 * would not take back, statistics. docs/snapshot.md describes the members; `gpumem map` draws it.
 */
#ifndef GPUMEM_SNAPSHOT_H
#define GPUMEM_SNAPSHOT_H

#include <gpumem/library.h>
#include <gpumem/types.h>
#include <gpumem/wrappers.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpumem_snapshot_options {
    size_t size;
    int without_buffers; /* 1: no list of each resource's buffers, and none of what is tracked */
    /* 1: of slabs and of a cache's segments the totals, but not each piece. Telling the pieces of a
     * cache apart stops its threads for about 10 ns a block. */
    int without_pieces;
} gpumem_snapshot_options;
#define GPUMEM_SNAPSHOT_OPTIONS(...) GPUMEM_OPTIONS(gpumem_snapshot_options, __VA_ARGS__)

/*
 * Of one open device, or of all that the library has open. `*text` is UTF-8, ends with a 0 and is
 * freed by the caller with free(). Options may be NULL.
 *
 * To be used at any time beside any other call. Each resource's buffers are as of one moment, with
 * allocations and frees of that resource kept out; so are, each by itself, a cache's segments, a
 * resource's slabs, and the device's virtual memory. Between these, other threads go on: a buffer
 * may be listed whose mapping is not yet, and statistics may be a moment older. It is always valid
 * JSON of the documented form.
 *
 * The text is made in memory first: about 200 bytes a buffer. OUT_OF_HOST_MEMORY: nothing is
 * returned or written. FORKED, INVALID_ARGUMENT as everywhere. Driver: cuMemGetInfo,
 * cuDeviceGetName and such, and what gpumem_device_get_stats calls; a device that refuses these
 * because of an earlier fault is described without what it does not tell.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_snapshot(gpumem_device *device,
                                                           const gpumem_snapshot_options *options,
                                                           char **text);
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_library_snapshot(
    gpumem_library *library, const gpumem_snapshot_options *options, char **text);

/* The same, handed to `write` in pieces of 64 KiB at most, wherever these end. It may call the
 * library: no lock is held. SYSTEM: it answered an errno, which ends the writing. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_snapshot_write(gpumem_device *device, const gpumem_snapshot_options *options,
                      gpumem_write_fn write, void *user);
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_library_snapshot_write(gpumem_library *library, const gpumem_snapshot_options *options,
                              gpumem_write_fn write, void *user);

#ifdef __cplusplus
}
#endif

#endif
