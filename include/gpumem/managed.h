/*
 * Managed memory in use: what the driver is told of ranges of it, and what it tells.
 *
 * The calls take any buffer of managed memory: of a managed resource, a view of one, or foreign
 * (gpumem/foreign.h). Other buffers are INVALID_ARGUMENT, and so are ranges outside of them; 0
 * bytes are nothing to do. The driver keeps pages: what is told of a range holds for every page
 * that it touches, and small buffers of method ALLOCATED have pages in common.
 *
 * A place is a location and a number: of DEVICE the ordinal, of HOST_NUMA a node that has memory,
 * of the others 0. Nodes need a driver from 12.2 on (NOT_SUPPORTED before).
 *
 * All are thread-safe and disturb no stream capture.
 */
#ifndef GPUMEM_MANAGED_H
#define GPUMEM_MANAGED_H

#include <gpumem/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's numbers (CUmem_advise). */
typedef enum gpumem_advice {
    GPUMEM_ADVICE_SET_READ_MOSTLY = 1,   /* copies where it is read; a store ends them */
    GPUMEM_ADVICE_UNSET_READ_MOSTLY = 2, /* of these two the place means nothing */
    /* Where pages are kept if they can. On an H200 a node of the host is taken and not told again
     * by gpumem_managed_range. */
    GPUMEM_ADVICE_SET_PREFERRED_LOCATION = 3,
    GPUMEM_ADVICE_UNSET_PREFERRED_LOCATION = 4, /* the place means nothing */
    GPUMEM_ADVICE_SET_ACCESSED_BY = 5,          /* a device or HOST: mapped there, wherever it is */
    GPUMEM_ADVICE_UNSET_ACCESSED_BY = 6,
} gpumem_advice;

/*
 * Gives advice. Takes effect at once, for work that is queued already too, and does not block.
 * NOT_SUPPORTED: memory of a pool, about which the driver takes none (an H200's answer).
 * Driver: cuMemAdvise, cuPointerGetAttribute.
 */
GPUMEM_API gpumem_status gpumem_buffer_advise(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                              gpumem_advice advice, gpumem_location location,
                                              int id);

/*
 * Moves pages to a place, in order of `stream` (NULL: the legacy stream), which is named for the
 * buffer. Content is kept. NOT_SUPPORTED, with the capture left as it was: a stream that is being
 * captured, since the driver makes no graph node of it. Does not block.
 * Driver: cuMemPrefetchAsync, cuPointerGetAttribute, cuStreamGetCaptureInfo.
 */
GPUMEM_API gpumem_status gpumem_buffer_prefetch(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                                gpumem_location location, int id, CUstream stream);

/*
 * Gives content up, in order of `stream`: whole pages in the range hold anything afterwards, until
 * they are written or prefetched, and need not be moved. discard_and_prefetch moves them in the
 * same step, without their bytes. Errors as prefetch; also INVALID_ARGUMENT: the legacy stream, by
 * NULL or by name, which the driver does not take for this. NOT_PERMITTED: a read-only buffer.
 * NOT_SUPPORTED: a driver older than 13.0. Driver: cuMemDiscardBatchAsync,
 * cuMemDiscardAndPrefetchBatchAsync, and as prefetch.
 */
GPUMEM_API gpumem_status gpumem_buffer_discard(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                               CUstream stream);
GPUMEM_API gpumem_status gpumem_buffer_discard_and_prefetch(gpumem_buffer *buffer, size_t offset,
                                                            size_t bytes, gpumem_location location,
                                                            int id, CUstream stream);

/* What all pages of a range have in common. */
typedef struct gpumem_managed_range {
    size_t size;
    int read_mostly;           /* 1: all of them are */
    int has_preferred;         /* 1: all prefer the place that follows; 0: none, or several */
    gpumem_location preferred; /* DEVICE where has_preferred is 0 */
    int preferred_id;          /* ordinal or node; -1 where it means nothing */
    int has_prefetched;        /* 1: all were last asked to be at the place that follows, whether or
                                  not they have arrived, and wherever they went since */
    gpumem_location prefetched;
    int prefetched_id;
    int accessed_by_host; /* 1: of all of them SET_ACCESSED_BY was told for HOST */
    uint64_t accessed_by; /* bit n: for the device of ordinal n, up to 63 */
} gpumem_managed_range;

/*
 * `range->size` is to be set; `bytes` is more than 0. Does not block. A driver older than 12.3
 * tells of the host's nodes as HOST. Driver: cuMemRangeGetAttributes, cuPointerGetAttribute.
 */
GPUMEM_API gpumem_status gpumem_buffer_get_managed_range(gpumem_buffer *buffer, size_t offset,
                                                         size_t bytes, gpumem_managed_range *range);

#ifdef __cplusplus
}
#endif

#endif
