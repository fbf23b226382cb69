/* The status for the library's callers that a CUresult maps to. */
#ifndef GM_MEMORY_DRIVER_ERROR_H
#define GM_MEMORY_DRIVER_ERROR_H

#include "base/error.h"
#include "base/object.h"
#include "memory/core/objects.h"

gpumem_status gm_status_of(CUresult code);

/* "CUDA_ERROR_OUT_OF_MEMORY". Valid until this thread's next call of it. */
const char *gm_code_name(const gpumem_driver_api *cu, CUresult code);

/* Whether the context is unusable: no queued work runs any more. */
int gm_code_is_sticky(CUresult code);

/* Records the failure of `call` and returns the status: gm_cu_fail(cu, code, "cuMemCreate", "no 2
 * MiB ..."). */
#define gm_cu_fail(cu, code, call, ...)                                                            \
    gm_cu_fail_as(gm_status_of(code), cu, code, call, __VA_ARGS__)

/* The same if host memory was requested. */
#define gm_cu_fail_host(cu, code, call, ...)                                                       \
    gm_cu_fail_as((code) == CUDA_ERROR_OUT_OF_MEMORY ? GPUMEM_ERROR_OUT_OF_HOST_MEMORY             \
                                                     : gm_status_of(code),                         \
                  cu, code, call, __VA_ARGS__)

#define gm_cu_fail_as(status, cu, code, call, ...)                                                 \
    gm_fail_driver(status, (int)(code), gm_code_name(cu, code), call, __VA_ARGS__)

/* Argument checks of the public functions. */
#define GM_REQUIRE(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, __VA_ARGS__);                            \
    } while (0)

/* Checks that `object` (any of ours) is not NULL, was made in this process and has not been
 * destroyed. */
#define GM_CHECK(object, call)                                                                     \
    do {                                                                                           \
        GM_REQUIRE(object, "%s: " #object " is NULL", call);                                       \
        gpumem_status gm_check_status_ = gm_object_check((object)->generation, #object, call);     \
        if (gm_check_status_ != GPUMEM_OK)                                                         \
            return gm_check_status_;                                                               \
    } while (0)

#endif
