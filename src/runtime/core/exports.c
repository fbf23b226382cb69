/*
 * The exported functions, made from the table: what a call needs is made ready, the work is done by
 * the driver or by rt_<name>, and a failure is kept as the thread's last error.
 */
#include "runtime/core/runtime.h"

#define NEED_NOTHING cudaSuccess
#define NEED_DRIVER  rt_need_driver()
#define NEED_CONTEXT rt_need_context()
#define END_SETS     rt_set
#define END_KEEPS

/* ---- Twins ----------------------------------------------------------------------------------- */

#define TWIN_PLAIN(name, stream, params, args)
#define TWIN_PTSZ(name, stream, params, args)                                                      \
    RT_EXPORT cudaError_t name##_ptsz params;                                                      \
    cudaError_t name##_ptsz params {                                                               \
        if (!stream)                                                                               \
            stream = CU_STREAM_PER_THREAD;                                                         \
        return name args;                                                                          \
    }
#define INSIDE(twin, name, params, args)                                                           \
    RT_EXPORT cudaError_t twin params;                                                             \
    cudaError_t twin params {                                                                      \
        rt_self.per_thread++;                                                                      \
        cudaError_t error = name args;                                                             \
        rt_self.per_thread--;                                                                      \
        return error;                                                                              \
    }
#define TWIN_PTSZ_INSIDE(name, stream, params, args) INSIDE(name##_ptsz, name, params, args)
#define TWIN_PTDS(name, stream, params, args)        INSIDE(name##_ptds, name, params, args)

/* ---- Functions ------------------------------------------------------------------------------- */

#define RT_RAW(name, abi, tier)

#define RT_PLAIN(name, abi, tier, twin, stream, use, error, params, args, driver, driver_args)     \
    RT_IN_##abi(PLAIN_FN(name, twin, stream, use, error, params, args, driver, driver_args))
#define PLAIN_FN(name, twin, stream, use, end, params, args, driver, driver_args)                  \
    RT_EXPORT cudaError_t name params;                                                             \
    cudaError_t name params {                                                                      \
        cudaError_t error = NEED_##use;                                                            \
        if (error == cudaSuccess)                                                                  \
            error = rt_error(CU(driver) driver_args);                                              \
        return END_##end(error);                                                                   \
    }                                                                                              \
    TWIN_##twin(name, stream, params, args)

#define RT_FN(name, abi, tier, twin, stream, use, error, params, args)                             \
    RT_IN_##abi(OWN_FN(name, twin, stream, use, error, params, args))
#define OWN_FN(name, twin, stream, use, end, params, args)                                         \
    RT_EXPORT cudaError_t name params;                                                             \
    cudaError_t name params {                                                                      \
        static _Atomic(bool) said;                                                                 \
        if (!rt_##name)                                                                            \
            return END_##end(rt_refuse(#name, &said));                                             \
        cudaError_t error = NEED_##use;                                                            \
        if (error == cudaSuccess)                                                                  \
            error = rt_##name args;                                                                \
        return END_##end(error);                                                                   \
    }                                                                                              \
    TWIN_##twin(name, stream, params, args)

#define RT_LATER(name, abi, tier, twin) RT_IN_##abi(LATER_##twin(name))
#define LATER_PTSZ(name)                LATER_PLAIN(name) LATER_PLAIN(name##_ptsz)
/* Whatever it is called with. */
#define LATER_PLAIN(name)                                                                          \
    RT_EXPORT cudaError_t name(void);                                                              \
    cudaError_t name(void) {                                                                       \
        static _Atomic(bool) said;                                                                 \
        return rt_set(rt_refuse(#name, &said));                                                    \
    }

#include "runtime/runtime.def"
