/*
 * The exported functions, made from the table: what a call needs is made ready, the work is done by
 * the driver or by rt_<name>, and a failure is kept as the thread's last error. The thread notes
 * the outermost function for those who report on the driver's calls.
 */
#include "runtime/core/runtime.h"

#define NEED_NOTHING cudaSuccess
#define NEED_DRIVER  rt_need_driver()
#define NEED_CONTEXT rt_need_context()
#define END_SETS     rt_set
#define END_KEEPS

/* ---- Arguments, for the trace ---------------------------------------------------------------- */

/* clang-format off */
#define KIND(x) \
    _Generic((x), \
        dim3: RT_STRUCT_VALUE, cudaExtent: RT_STRUCT_VALUE, cudaPitchedPtr: RT_STRUCT_VALUE, \
        cudaMemLocation: RT_STRUCT_VALUE, cudaIpcMemHandle_t: RT_STRUCT_VALUE, \
        cudaIpcEventHandle_t: RT_STRUCT_VALUE, cudaChannelFormatDesc: RT_STRUCT_VALUE, \
        float: RT_REAL_VALUE, char: RT_SIGNED_VALUE, int: RT_SIGNED_VALUE, long: RT_SIGNED_VALUE, \
        unsigned: RT_UNSIGNED_VALUE, unsigned long: RT_UNSIGNED_VALUE, \
        unsigned long long: RT_UNSIGNED_VALUE, default: RT_ADDRESS_VALUE)
#define NUMBER(x) \
    _Generic((x), dim3: 0, cudaExtent: 0, cudaPitchedPtr: 0, cudaMemLocation: 0, \
        cudaIpcMemHandle_t: 0, cudaIpcEventHandle_t: 0, cudaChannelFormatDesc: 0, default: (x))
#define REAL(x)            _Generic((x), float: (x), default: 0.0f)
#define VALUE(x)           {KIND(x), (uint64_t)(uintptr_t)NUMBER(x), (double)REAL(x)},
#define NO_VALUES(...)     {RT_ADDRESS_VALUE, 0, 0},
#define COUNT(...) \
    COUNTED(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define COUNTED(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
#define V1(x)              VALUE(x)
#define V2(x, ...)         VALUE(x) V1(__VA_ARGS__)
#define V3(x, ...)         VALUE(x) V2(__VA_ARGS__)
#define V4(x, ...)         VALUE(x) V3(__VA_ARGS__)
#define V5(x, ...)         VALUE(x) V4(__VA_ARGS__)
#define V6(x, ...)         VALUE(x) V5(__VA_ARGS__)
#define V7(x, ...)         VALUE(x) V6(__VA_ARGS__)
#define V8(x, ...)         VALUE(x) V7(__VA_ARGS__)
#define V9(x, ...)         VALUE(x) V8(__VA_ARGS__)
#define V10(x, ...)        VALUE(x) V9(__VA_ARGS__)
#define V11(x, ...)        VALUE(x) V10(__VA_ARGS__)
#define V12(x, ...)        VALUE(x) V11(__VA_ARGS__)
#define JOINED(a, b)       a##b
#define JOIN(a, b)         JOINED(a, b)
#define VALUES(...)        JOIN(V, COUNT(__VA_ARGS__))(__VA_ARGS__)
#define PASSED(...)        PASSED_OF(__VA_ARGS__, )
#define PASSED_OF(ignored, chosen, ...) chosen
/* clang-format on */

/* Functions without arguments. */
#define TOLD_cudaCtxResetPersistingL2Cache ~, NO_VALUES
#define TOLD_cudaDeviceReset               ~, NO_VALUES
#define TOLD_cudaDeviceSynchronize         ~, NO_VALUES
#define TOLD_cudaGetLastError              ~, NO_VALUES
#define TOLD_cudaPeekAtLastError           ~, NO_VALUES
#define TOLD_cudaProfilerStart             ~, NO_VALUES
#define TOLD_cudaProfilerStop              ~, NO_VALUES
#define TOLD_cudaThreadExit                ~, NO_VALUES
#define TOLD_cudaThreadSynchronize         ~, NO_VALUES

/* `work` is the value of the call when it is not answered by a fault. Calls of ours by ours and
 * those of callbacks are part of the outermost. */
#define TOLD(name, args, work)                                                                     \
    struct rt_thread *self_ = &rt_self;                                                            \
    const char *outside_ = self_->inside;                                                          \
    cudaError_t error_;                                                                            \
    if (!outside_)                                                                                 \
        self_->inside = #name;                                                                     \
    if (!rt_is_watched() || outside_ || rt_enter(#name, &error_)) {                                \
        work                                                                                       \
    }                                                                                              \
    if (__builtin_expect(error_ != cudaSuccess || rt_is_watched(), 0) && !outside_) {              \
        const struct rt_value values_[] = {PASSED(TOLD_##name, VALUES) args};                      \
        size_t count_ = sizeof values_ / sizeof *values_ * (sizeof #args > sizeof "()");           \
        self_->inside = NULL;                                                                      \
        error_ = rt_leave(#name, values_, count_, error_);                                         \
    }                                                                                              \
    self_->inside = outside_;

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
        TOLD(                                                                                      \
            name, args, error_ = NEED_##use;                                                       \
            if (error_ == cudaSuccess) { error_ = rt_error(CU(driver) driver_args); })             \
        return END_##end(error_);                                                                  \
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
        TOLD(                                                                                      \
            name, args, error_ = NEED_##use;                                                       \
            if (error_ == cudaSuccess) { error_ = rt_##name args; })                               \
        return END_##end(error_);                                                                  \
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
