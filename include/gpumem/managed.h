/*
 * Working with managed memory: advice, prefetch and discard for ranges of it, and queries about
 * them.
 *
 * The calls take any buffer of managed memory: from a managed resource, a view, or foreign
 * (gpumem/foreign.h). INVALID_ARGUMENT: other buffers, and ranges outside the buffer. 0 bytes do
 * nothing. The driver works in pages: advice about a range applies to every page that it touches,
 * and small buffers of method ALLOCATED share pages.
 *
 * A place is a location and a number: for DEVICE the ordinal, for HOST_NUMA a node that has memory,
 * otherwise 0. Nodes need driver 12.2 or later (else NOT_SUPPORTED).
 *
 * All calls are thread-safe and do not disturb stream captures.
 */
#ifndef GPUMEM_MANAGED_H
#define GPUMEM_MANAGED_H

#include <gpumem/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Managed memory -------------------------------------------------------------------------- */

/* Where the driver should keep the pages if it can (CU_MEM_ADVISE_SET_PREFERRED_LOCATION). */
typedef enum gpumem_managed_place {
    GPUMEM_MANAGED_ANYWHERE = 0, /* where they were used last */
    GPUMEM_MANAGED_ON_DEVICE = 1,
    GPUMEM_MANAGED_ON_HOST = 2,
    GPUMEM_MANAGED_ON_NUMA_NODE = 3, /* of the host: numa_node. Drivers from 12.2 on */
} gpumem_managed_place;

/* How managed memory is had from the driver. */
typedef enum gpumem_managed_method {
    GPUMEM_MANAGED_ALLOCATED = 0, /* cuMemAllocManaged, for each buffer */
    /* A pool of managed memory (drivers from 13.0 on), stream-ordered: see `pool`. Where the driver
     * has none, ALLOCATED replaces it, which is not stream-ordered; the properties' note then
     * begins with "allocations in place of a pool of managed memory" and says why. See
     * gpumem/pool.h. */
    GPUMEM_MANAGED_POOL = 1,
} gpumem_managed_method;

/* Options of gpumem_managed_resource_create. */
typedef struct gpumem_managed_options {
    size_t size;
    gpumem_managed_place preferred;
    /* Pages may be copied to where they are read (ALLOCATED only: the driver takes no advice
     * about pool memory). */
    bool read_mostly;
    gpumem_managed_method method;
    /* POOL only: the driver's current or default pool of managed memory at the preferred place, or
     * a new one. */
    gpumem_pool_choice pool;
    int numa_node; /* for ON_NUMA_NODE: a node that exists and has memory; else 0 */
} gpumem_managed_options;
#define GPUMEM_MANAGED_OPTIONS(...) GPUMEM_OPTIONS(gpumem_managed_options, __VA_ARGS__)

/*
 * Memory at one address for the CPU and the devices; the driver moves its pages to the processor
 * that uses them, and its total may exceed the device's memory. ALLOCATED: each buffer is a driver
 * allocation of its own, and freeing it waits for the work of the context. POOL: the CPU may use a
 * buffer once its stream has passed the allocation; a capturing stream is refused (NOT_SUPPORTED),
 * because graph memory belongs to the device alone. NOT_SUPPORTED if the device has no managed
 * memory, or if the CPU must not touch it while the device works. Advice, prefetch, discard and
 * range queries are in gpumem/managed.h. Driver: cuMemAllocManaged, cuMemAdvise, cuMemFree; for a
 * pool cuMemGetMemPool, cuMemGetDefaultMemPool, and those of the device pool.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_managed_resource_create(
    gpumem_device *device, const gpumem_managed_options *options, gpumem_resource **resource);

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* The driver's numbers (CUmem_advise). */
typedef enum gpumem_advice {
    GPUMEM_ADVICE_SET_READ_MOSTLY = 1,   /* copies where it is read; a store discards them */
    GPUMEM_ADVICE_UNSET_READ_MOSTLY = 2, /* for these two the place is ignored */
    /* Where to keep pages if possible. An H200 accepts a host node, but gpumem_managed_range does
     * not report it. */
    GPUMEM_ADVICE_SET_PREFERRED_LOCATION = 3,
    GPUMEM_ADVICE_UNSET_PREFERRED_LOCATION = 4, /* the place is ignored */
    GPUMEM_ADVICE_SET_ACCESSED_BY = 5,          /* a device or HOST: kept mapped there, wherever the
                                                 * pages are */
    GPUMEM_ADVICE_UNSET_ACCESSED_BY = 6,
} gpumem_advice;

/*
 * Gives advice. Takes effect at once, also for work already queued, and does not block.
 * NOT_SUPPORTED: memory of a pool, for which the driver takes no advice (observed on an H200).
 * Driver: cuMemAdvise, cuPointerGetAttribute.
 */
GPUMEM_API gpumem_status gpumem_buffer_advise(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                              gpumem_advice advice, gpumem_location location,
                                              int ordinal_or_node);

/*
 * Moves pages to a place, in order of `stream` (NULL: the legacy stream), which is recorded as
 * using the buffer. The content is kept. NOT_SUPPORTED: `stream` is capturing (the capture is not
 * affected); the driver cannot make a graph node of it. Does not block.
 * Driver: cuMemPrefetchAsync, cuPointerGetAttribute, cuStreamGetCaptureInfo.
 */
GPUMEM_API gpumem_status gpumem_buffer_prefetch(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                                gpumem_location location, int ordinal_or_node,
                                                CUstream stream);

/* Options of gpumem_buffer_discard. */
typedef struct gpumem_discard_options {
    size_t size;
    bool prefetch; /* moves the pages to the next place in the same step, without their content */
    gpumem_location location;
    int ordinal_or_node;
} gpumem_discard_options;
#define GPUMEM_DISCARD_OPTIONS(...) GPUMEM_OPTIONS(gpumem_discard_options, __VA_ARGS__)

/*
 * Discards content, in order of `stream`: whole pages in the range are undefined afterwards, until
 * they are written or prefetched, and need not be moved. Errors as prefetch; also INVALID_ARGUMENT:
 * the legacy stream, as NULL or by name, which the driver does not accept here. NOT_PERMITTED: a
 * read-only buffer. NOT_SUPPORTED: a driver older than 13.0. Driver: cuMemDiscardBatchAsync,
 * cuMemDiscardAndPrefetchBatchAsync, and as prefetch.
 */
GPUMEM_API gpumem_status gpumem_buffer_discard(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                               const gpumem_discard_options *options,
                                               CUstream stream);

/* What all pages of a range have in common. */
typedef struct gpumem_managed_range {
    size_t size;
    bool read_mostly;              /* all of them are */
    bool has_preferred;            /* all prefer the next place */
    gpumem_location preferred;     /* DEVICE if has_preferred is false */
    int preferred_ordinal_or_node; /* ordinal or node; -1 if not applicable */
    bool has_prefetched; /* all were last prefetched to the next place, whether or not they
                                  have arrived, and wherever they went since */
    gpumem_location prefetched;
    int prefetched_ordinal_or_node;
    bool accessed_by_host; /* all have SET_ACCESSED_BY for HOST */
    uint64_t accessed_by;  /* bit n: likewise for device ordinal n, up to 63 */
} gpumem_managed_range;

/*
 * Set `range->size` before the call; `bytes` must be more than 0. Does not block. A driver older
 * than 12.3 reports host nodes as HOST. Driver: cuMemRangeGetAttributes, cuPointerGetAttribute.
 */
GPUMEM_API gpumem_status gpumem_buffer_get_managed_range(gpumem_buffer *buffer, size_t offset,
                                                         size_t bytes, gpumem_managed_range *range);

#ifdef __cplusplus
}
#endif

#endif
