/*
 * The exported functions, made from the table: what a call needs is made ready, the work is done by
 * the driver or by rt_<name>, and a failure is kept as the thread's last error. The thread notes
 * the outermost function for those who report on the driver's calls.
 */
#include "runtime/core/values.h"

#define NEED_NOTHING cudaSuccess
#define NEED_DRIVER  rt_need_driver()
#define NEED_CONTEXT rt_need_context_of(self_)
#define END_SETS     rt_set
#define END_KEEPS

/* ---- Handles --------------------------------------------------------------------------------- */

/*
 * NULL in a handle's place is INVALID_RESOURCE_HANDLE, and so is one that does not fit the others.
 * A handle that is gone is INVALID_VALUE: NVIDIA's libraries read its memory, which crashes. Asked
 * when a call has failed; each takes the address of an argument.
 */
static bool dead_stream(const void *argument) {
    CUstream stream = *(const CUstream *)argument;
    unsigned flags;
    return stream && CU(cuStreamGetFlags)(stream, &flags) == CUDA_ERROR_INVALID_HANDLE;
}

/* In any mode of capture but the relaxed one the question itself could end the capture. */
static bool dead_event(const void *argument) {
    CUevent event = *(const CUevent *)argument;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!event || CU(cuThreadExchangeStreamCaptureMode)(&mode) != CUDA_SUCCESS)
        return false;
    bool dead = CU(cuEventQuery)(event) == CUDA_ERROR_INVALID_HANDLE;
    CU(cuThreadExchangeStreamCaptureMode)(&mode);
    return dead;
}

static bool dead_array(const void *argument) {
    CUarray array = *(const CUarray *)argument;
    CUDA_ARRAY3D_DESCRIPTOR shape;
    return array && CU(cuArray3DGetDescriptor_v2)(&shape, array) == CUDA_ERROR_INVALID_HANDLE;
}

static bool no_handle(const void *argument) {
    (void)argument;
    return false;
}

/* An argument's part of the question; nothing of none, which is what () has. */
#define DEAD(x)                                                                                    \
    SECOND(NO_ARGUMENT_##x, || _Generic((x), CUstream                                              \
                                        : dead_stream, CUevent                                     \
                                        : dead_event, CUarray                                      \
                                        : dead_array, default                                      \
                                        : no_handle)(&(x)), )
#define NO_ARGUMENT_                                  ~,
#define SECOND(first, ...)                            SECOND_OF(first, __VA_ARGS__)
#define SECOND_OF(first, second, ...)                 second
#define DEAD_1(x)                                     DEAD(x)
#define DEAD_2(x, ...)                                DEAD(x) DEAD_1(__VA_ARGS__)
#define DEAD_3(x, ...)                                DEAD(x) DEAD_2(__VA_ARGS__)
#define DEAD_4(x, ...)                                DEAD(x) DEAD_3(__VA_ARGS__)
#define DEAD_5(x, ...)                                DEAD(x) DEAD_4(__VA_ARGS__)
#define DEAD_6(x, ...)                                DEAD(x) DEAD_5(__VA_ARGS__)
#define DEAD_7(x, ...)                                DEAD(x) DEAD_6(__VA_ARGS__)
#define DEAD_8(x, ...)                                DEAD(x) DEAD_7(__VA_ARGS__)
#define DEAD_9(x, ...)                                DEAD(x) DEAD_8(__VA_ARGS__)
#define TENTH(a, b, c, d, e, f, g, h, i, chosen, ...) chosen
#define ANY_DEAD(...)                                                                              \
    TENTH(__VA_ARGS__, DEAD_9, DEAD_8, DEAD_7, DEAD_6, DEAD_5, DEAD_4, DEAD_3, DEAD_2, DEAD_1, )   \
    (__VA_ARGS__)
#define CHECK_HANDLES(args)                                                                        \
    if (__builtin_expect(error == cudaErrorInvalidResourceHandle, 0) && (false ANY_DEAD args))     \
    error = cudaErrorInvalidValue

/* ---- Reports --------------------------------------------------------------------------------- */

/* Away from the usual course, which then needs no room for the arguments. */
#define REPORT(name, params, args)                                                                 \
    __attribute__((noinline, cold)) static cudaError_t report_##name params {                      \
        const struct rt_value values[] = {{RT_ADDRESS_VALUE, 0, 0}, RT_VALUES args};               \
        return rt_leave(#name, values + 1, sizeof values / sizeof *values - 1, rt_self.ended);     \
    }

/* `work` sets `error`, unless an injected fault answers the call. Calls of ours by ours, and those
 * of callbacks, are part of the outermost. */
#define REPORTED(name, args, work)                                                                 \
    struct rt_thread *self_ = rt_myself();                                                         \
    const char *outside_ = self_->inside;                                                          \
    cudaError_t error;                                                                             \
    if (__builtin_expect(!outside_, 1))                                                            \
        self_->inside = #name;                                                                     \
    if (!rt_is_watched() || outside_ || entered(#name, self_)) {                                   \
        work                                                                                       \
    } else {                                                                                       \
        error = self_->ended;                                                                      \
    }                                                                                              \
    CHECK_HANDLES(args);                                                                           \
    self_->inside = outside_;                                                                      \
    if (__builtin_expect(error != cudaSuccess || rt_is_watched(), 0) && !outside_) {               \
        self_->ended = error;                                                                      \
        error = report_##name args;                                                                \
    }

__attribute__((noinline, cold)) static bool entered(const char *name, struct rt_thread *self) {
    return rt_enter(name, &self->ended);
}

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
    REPORT(name, params, args)                                                                     \
    RT_EXPORT cudaError_t name params;                                                             \
    cudaError_t name params {                                                                      \
        REPORTED(                                                                                  \
            name, args, error = NEED_##use;                                                        \
            if (error == cudaSuccess) { error = rt_error(CU(driver) driver_args); })               \
        return END_##end(error);                                                                   \
    }                                                                                              \
    TWIN_##twin(name, stream, params, args)

#define RT_FN(name, abi, tier, twin, stream, use, error, params, args)                             \
    RT_IN_##abi(OWN_FN(name, twin, stream, use, error, params, args))
#define OWN_FN(name, twin, stream, use, end, params, args)                                         \
    REPORT(name, params, args)                                                                     \
    RT_EXPORT cudaError_t name params;                                                             \
    cudaError_t name params {                                                                      \
        static _Atomic(bool) said;                                                                 \
        if (!rt_##name)                                                                            \
            return END_##end(rt_refuse(#name, &said));                                             \
        REPORTED(                                                                                  \
            name, args, error = NEED_##use; if (error == cudaSuccess) { error = rt_##name args; }) \
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
        return rt_set(rt_leave(#name, NULL, 0, rt_refuse(#name, &said)));                          \
    }

#include "runtime/runtime.def"
