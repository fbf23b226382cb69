#include "memory/core/capture.h"

#include "base/log.h"
#include "memory/core/driver_error.h"

void gm_unrelax_again(const struct gm_relaxed *relaxed, const gpumem_driver_api *cu) {
    CUstreamCaptureMode mode = relaxed->before;
    if (cu->cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS)
        return;
    gm_log(GPUMEM_LOG_ERROR, "the capture mode of this thread may stay relaxed: "
                             "cuThreadExchangeStreamCaptureMode failed");
}

enum gm_capture_state gm_capture_state(const gpumem_driver_api *cu, CUstream stream,
                                       cuuint64_t *id) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t number = 0;
    CUresult result = cu->cuStreamGetCaptureInfo(stream, &status, &number);
    if (id)
        *id = 0;
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return GM_CAPTURE_IMPLICIT;
    if (result == CUDA_ERROR_INVALID_HANDLE)
        return GM_CAPTURE_LOST;
    if (gm_code_is_sticky(result))
        return GM_CAPTURE_FAULT;
    if (result != CUDA_SUCCESS || status == CU_STREAM_CAPTURE_STATUS_NONE)
        return GM_CAPTURE_NONE;
    if (id && status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        *id = number;
    return GM_CAPTURE_UNDER_WAY;
}
