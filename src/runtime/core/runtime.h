/* What every chapter uses: the driver, the thread's state, the way into a call. */
#ifndef RT_CORE_RUNTIME_H
#define RT_CORE_RUNTIME_H

#include "runtime/core/types.h"

#include <gpumem/driver.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RT_EXPORT __attribute__((visibility("default")))

/* The implementations that chapters define. A missing one is NULL. */
#define RT_PLAIN(name, ...)
#define RT_FN(name, abi, tier, twin, stream, use, error, params, args)                             \
    RT_IN_##abi(__attribute__((weak)) cudaError_t rt_##name params;)
#define RT_RAW(...)
#define RT_LATER(...)
#define RT_IN_BOTH(text) text
#if RT_ABI == 12
#define RT_IN_ONLY12(text) text
#define RT_IN_ONLY13(text)
#else
#define RT_IN_ONLY12(text)
#define RT_IN_ONLY13(text) text
#endif
#include "runtime/runtime.def"

/* ---- The driver ------------------------------------------------------------------------------ */

/* Filled by the first call that needs it. What the driver lacks returns NOT_SUPPORTED. */
extern gpumem_driver_api rt_driver;
#define CU(name) (rt_driver.name)

/* A fork's child: code/registry.c. */
void rt_registry_in_child(void);

enum rt_phase { RT_UNOPENED, RT_READY, RT_FORKED };
extern _Atomic(int) rt_phase;
/* The slow way: opens the driver, or says why there is none. */
cudaError_t rt_open(void);
/* Opens the library without cuInit; false if there is none. Its functions are in rt_driver. */
bool rt_load_driver(void);
/* Devices that the driver has; valid once it is open. */
extern int rt_device_count;
/* It runs PTX and no machine code: softgpu. */
extern bool rt_driver_interprets;

static inline cudaError_t rt_need_driver(void) {
    return atomic_load_explicit(&rt_phase, memory_order_acquire) == RT_READY ? cudaSuccess
                                                                             : rt_open();
}

/* ---- The thread ------------------------------------------------------------------------------ */

enum { RT_CALLS = 16 };
struct rt_thread {
    cudaError_t last;
    int device;          /* chosen by cudaSetDevice */
    cudaError_t ended;   /* of a call that is reported on */
    const char *inside;  /* the outermost function of ours that it is in, or NULL */
    unsigned per_thread; /* twins around this call whose default stream is the thread's own */
    CUcontext now;       /* what the driver answers */
    CUcontext context;   /* the current one when it was last looked at ... */
    unsigned generation; /* ... and rt_generation then */
    unsigned calls;      /* <<<>>> whose configuration is pushed */
    struct rt_call {
        dim3 grid, block;
        size_t shared;
        cudaStream_t stream;
    } call[RT_CALLS];
};
extern __thread struct rt_thread rt_self;

/* Keeps a failure as the last error, and returns it. What is not ready yet is no failure. */
static inline cudaError_t rt_set(cudaError_t error) {
    if (__builtin_expect(error != cudaSuccess, 0) && error != cudaErrorNotReady)
        rt_self.last = error;
    return error;
}

/* The driver's result as the runtime's: the numbers are the same. */
static inline cudaError_t rt_error(CUresult result) {
    return (cudaError_t)result;
}

/* What 0 means for a stream: in a twin, the per-thread default stream. */
static inline CUstream rt_default_stream(void) {
    return rt_self.per_thread ? CU_STREAM_PER_THREAD : NULL;
}

static inline CUstream rt_stream(CUstream stream) {
    return stream ? stream : rt_default_stream();
}

/* ---- Reports of calls ------------------------------------------------------------------------ */

/*
 * softgpu names our functions in its trace, faults, leak reports and error log. With another driver
 * there is nothing to tell. rt_watched points to a word of softgpu's, which is not 0 while it wants
 * to hear of each call.
 */
extern const unsigned *rt_watched;
void rt_report_to(void *library);

static inline bool rt_is_watched(void) {
    const unsigned *word = __atomic_load_n(&rt_watched, __ATOMIC_RELAXED);
    return __builtin_expect(__atomic_load_n(word, __ATOMIC_RELAXED) != 0, 0);
}

/* An argument as the trace shows it. */
struct rt_value {
    enum {
        RT_ADDRESS_VALUE,
        RT_SIGNED_VALUE,
        RT_UNSIGNED_VALUE,
        RT_REAL_VALUE,
        RT_STRUCT_VALUE
    } kind;
    uint64_t bits;
    double real;
};

/* Of a watched call: false if *error is the answer. */
bool rt_enter(const char *function, cudaError_t *error);
/* Of a watched call, and of any that fails; returns what the function returns. */
cudaError_t rt_leave(const char *function, const struct rt_value *values, size_t count,
                     cudaError_t error);

/* ---- The context ----------------------------------------------------------------------------- */

/* Counts resets: what was known about a context before one must be looked at again. */
extern _Atomic(unsigned) rt_generation;
cudaError_t rt_make_context(CUcontext now);

/* A current context is used; else the primary one of the thread's device becomes current. `self`
 * is the thread's own. */
__attribute__((always_inline)) static inline cudaError_t
rt_need_context_of(struct rt_thread *self) {
    cudaError_t error = rt_need_driver();
    if (error != cudaSuccess)
        return error;
    self->now = NULL;
    error = rt_error(CU(cuCtxGetCurrent)(&self->now));
    if (error != cudaSuccess)
        return error;
    if (self->now && self->now == self->context &&
        self->generation == atomic_load_explicit(&rt_generation, memory_order_acquire))
        return cudaSuccess;
    return rt_make_context(self->now);
}

/* The address of the thread's state, which is a call: it is asked for once in a function. */
static inline struct rt_thread *rt_myself(void) {
    struct rt_thread *self = &rt_self;
    __asm__("" : "+r"(self));
    return self;
}

static inline cudaError_t rt_need_context(void) {
    return rt_need_context_of(rt_myself());
}

/* The primary context of a device, retained for good. */
cudaError_t rt_primary(int device, CUcontext *context);
/* Of the current context, or the one that the thread chose. */
cudaError_t rt_current_device(int *device);

/* ---- The log --------------------------------------------------------------------------------- */

/* A line on standard error, unless GPUMEM_RUNTIME_LOG is "off". */
void rt_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, and NOT_SUPPORTED; *said is set, so that it is said once. */
cudaError_t rt_refuse(const char *name, _Atomic(bool) *said);

#define RT_ADDRESS(pointer)    ((CUdeviceptr)(uintptr_t)(pointer))
#define RT_ADDRESSES(pointers) ((CUdeviceptr *)(void *)(pointers))
/* unsigned long long as the driver's 64 bits. */
#define RT_NUMBERS(pointer) ((cuuint64_t *)(void *)(pointer))

#endif
