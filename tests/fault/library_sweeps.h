/*
 * What sweeps over the memory library share: softgpu open, what puts the driver right again after a
 * fault, what counts as lost, and the end. Header only, as library_test.h is.
 */
#ifndef FAULT_LIBRARY_SWEEPS_H
#define FAULT_LIBRARY_SWEEPS_H

#include "library_test.h"
#include "sweep.h"

/* Of all devices. */
static inline uint64_t quarantined(void *user) {
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_library_get_stats(library, &stats));
    return stats.quarantined;
}

static inline const char *last_message(void) {
    return gpumem_last_error()->message;
}

/* A refused cuCtxPopCurrent leaves the library's context current. */
static inline void pop_contexts(void *user) {
    CUcontext context = NULL;
    while (cu->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
        cu->cuCtxPopCurrent_v2(&context);
}

/*
 * What waits for a second try is tried, and caches are emptied. Two things are put right first that
 * a poisoned context, which "from here on" stands for, does not do: it refuses no
 * cuCtxPopCurrent, so the library's context does not stay current; and it runs no queued work,
 * where here a stream may still be busy that the library was refused to wait for.
 */
static inline void settle(void *user) {
    CUcontext context = NULL;
    pop_contexts(user);
    cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    cu->cuCtxSynchronize();
    cu->cuCtxPopCurrent_v2(&context);
    (void)gpumem_device_trim(device, 1);
}

/* What is common to sweeps of the library. */
#define SWEEP(...)                                                                                 \
    sweep_run(&(struct sweep){.lost = quarantined, .explain = last_message, __VA_ARGS__})

/* A sweep of an act that may succeed although a call of it failed: it leaves a context, gives
 * memory back or tries again. `undo` NULL: settle. */
static inline void sweep_act(const char *name, int (*act)(void *), void (*undo)(void *),
                             void *user) {
    SWEEP(.name = name, .act = act, .recover = settle, .undo = undo ? undo : settle,
          .may_succeed = true, .user = user);
}

/* For cmocka's setup. */
static inline int begin_sweeps(void **state) {
    if (open_device(state) != 0)
        return -1;
    sweep_with(soft);
    return make_host_memory_file();
}

/* For its teardown. After a sweep some objects are lost, so the device may be refused its close;
 * the program ends. */
static inline int end_sweeps(void **state) {
    (void)gpumem_device_close(device);
    (void)gpumem_close(library);
    return 0;
}

#endif
