/*
 * Calls of softgpu where the host's memory ends: each request for memory that a call makes is
 * refused in turn. The call then says so, and leaves all as it was.
 */
#ifndef FAULT_DRIVER_CALLS_H
#define FAULT_DRIVER_CALLS_H

#include "checks.h"
#include "refused_memory.h"
#include "sweep.h"

#include <gpumem/driver.h>

static gpumem_driver_api cu;
static gpumem_driver *driver;
static const softgpu_control *soft;
static CUcontext context;

static inline int open_softgpu(void **state) {
    softgpu_get_control_fn get;
    if (gpumem_driver_open("softgpu", &driver) != GPUMEM_OK)
        return -1;
    cu = *gpumem_driver_table(driver);
    *(void **)&get = gpumem_driver_symbol(driver, "softgpu_get_control");
    if (!get || cu.cuInit(0) != CUDA_SUCCESS)
        return -1;
    soft = get(SOFTGPU_CONTROL_VERSION);
    bool ready = cu.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
                 cu.cuCtxSetCurrent(context) == CUDA_SUCCESS;
    return ready ? 0 : -1;
}

/* Memory that a graph's launch was refused for is kept for the next one. */
static inline char *state_now(void) {
    cu.cuCtxSynchronize();
    cu.cuDeviceGraphMemTrim(0);
    char *dump = soft->state_dump();
    assert_non_null(dump);
    return dump;
}

static inline void same_state(char *before, const char *what, long n) {
    char *after = state_now();
    if (strcmp(before, after) != 0)
        fail_msg("%s, allocation %ld:\n%s---\n%s", what, n, before, after);
    soft->free_text(before);
    soft->free_text(after);
}

/* One call with its n-th allocation failing, until there are fewer than n. */
static inline void starve(const char *what, int (*call)(void *), void (*undo)(void *), void *user) {
    unsigned refusals = 0;
    for (long n = 1;; n++) {
        char *before = state_now();
        refuse_memory_in_libraries(n);
        int result = call(user);
        end_refusal();
        if (result != 0) {
            if (result != CUDA_ERROR_OUT_OF_MEMORY || !memory_was_refused())
                fail_msg("%s, allocation %ld: error %d", what, n, result);
            refusals++;
        } else {
            undo(user);
        }
        same_state(before, what, n);
        if (!memory_was_refused())
            break;
        assert_in_range(n, 1, 10000);
    }
    if (refusals == 0)
        fail_msg("%s: nothing was refused", what);
}

#define NEEDS_ALLOCATIONS_THAT_FAIL()                                                              \
    do {                                                                                           \
        if (!CAN_REFUSE_LIBRARIES) {                                                               \
            fprintf(stderr, "skip: a sanitizer has the allocator\n");                              \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

#endif
