/*
 * Avoids disturbing stream captures. By default, calls that CUDA considers unsafe during a capture
 * are refused while any thread captures, and invalidate that capture. The library's calls are safe,
 * because they never use memory that a capture is about to use; relaxing the thread's capture mode
 * says so.
 */
#ifndef GM_MEMORY_CAPTURE_H
#define GM_MEMORY_CAPTURE_H

#include "memory/core/objects.h"

/* A thread's capture mode for the length of a call. */
struct gm_relaxed {
    CUstreamCaptureMode before;
};
/* For where gm_unrelax comes although nothing was relaxed. */
#define GM_NOT_RELAXED ((struct gm_relaxed){CU_STREAM_CAPTURE_MODE_RELAXED})

/*
 * No error and no check of the context: the mode is the thread's, not the driver's. What the driver
 * answers does not matter, since a refusal may have done its work: where the mode was exchanged,
 * the one before is there, and where it was not, RELAXED still is, which is not put back.
 */
static inline void gm_relax(struct gm_relaxed *relaxed, const gpumem_driver_api *cu) {
    relaxed->before = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)cu->cuThreadExchangeStreamCaptureMode(&relaxed->before);
}

/* The driver did not restore the mode at once. */
void gm_unrelax_again(const struct gm_relaxed *relaxed, const gpumem_driver_api *cu);

static inline void gm_unrelax(const struct gm_relaxed *relaxed, const gpumem_driver_api *cu) {
    CUstreamCaptureMode mode = relaxed->before;
    if (mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        cu->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        gm_unrelax_again(relaxed, cu);
}

enum gm_capture_state {
    GM_CAPTURE_NONE,
    GM_CAPTURE_UNDER_WAY, /* or invalidated, and not yet ended */
    GM_CAPTURE_IMPLICIT,  /* the legacy stream, while a blocking stream captures: must not be
                           * touched */
    GM_CAPTURE_LOST,      /* the stream no longer exists */
    GM_CAPTURE_FAULT,     /* no queued work runs any more */
};

/*
 * Queries the state without harm to any capture, which few calls on a capturing stream can do.
 * `id`, if not NULL, receives the capture's number while it can still succeed, else 0. If the
 * driver does not report it, the stream is assumed not to be capturing.
 */
enum gm_capture_state gm_capture_state(const gpumem_driver_api *cu, CUstream stream,
                                       cuuint64_t *id);

/* The legacy default stream under either of its names. */
static inline int gm_is_legacy(CUstream stream) {
    return !stream || stream == CU_STREAM_LEGACY;
}

/* One name for each stream: NULL for the legacy one. */
static inline CUstream gm_canonical(CUstream stream) {
    return gm_is_legacy(stream) ? NULL : stream;
}

#endif
