/*
 * Shared by tests of the memory library: an open device of softgpu, its controls, and checks that
 * print the library's message. Header only, because each folder of tests links other things.
 */
#ifndef TESTS_LIBRARY_TEST_H
#define TESTS_LIBRARY_TEST_H

#include "test.h"

#include "checks.h"
#include "gate.h"
#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <gpumem/softgpu.h>

static gpumem_library *library;
static gpumem_device *device;
static const gpumem_driver_api *cu;
static const softgpu_control *soft;

#include "held_streams.h"
#include "objects.h"
#include "readings.h"

static inline const softgpu_control *find_control(gpumem_library *of) {
    softgpu_get_control_fn get;
    void *symbol = gpumem_driver_symbol(gpumem_library_driver(of), "softgpu_get_control");
    memcpy(&get, &symbol, sizeof get);
    return get ? get(SOFTGPU_CONTROL_VERSION) : NULL;
}

/* For cmocka's setup: opens device 0 of softgpu. */
static inline int open_device(void **state) {
    if (gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &library) != GPUMEM_OK ||
        gpumem_device_open(library, 0, &device) != GPUMEM_OK) {
        print_error("cannot open softgpu: %s\n", gpumem_last_error()->message);
        return -1;
    }
    cu = gpumem_driver_table(gpumem_library_driver(library));
    soft = find_control(library);
    return soft ? 0 : -1;
}

/* Makes the first request for host memory, which creates softgpu's file for it; the file remains.
 * Returns 0 or -1. */
static inline int make_host_memory_file(void) {
    void *pinned;
    CUcontext before;
    cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    CUresult result = cu->cuMemHostAlloc(&pinned, 4096, 0);
    if (result == CUDA_SUCCESS)
        result = cu->cuMemFreeHost(pinned);
    cu->cuCtxPopCurrent_v2(&before);
    return result == CUDA_SUCCESS ? 0 : -1;
}

/* For cmocka's teardown: nothing must be left. */
static inline int close_device(void **state) {
    if (gpumem_device_close(device) != GPUMEM_OK || gpumem_close(library) != GPUMEM_OK) {
        print_error("left behind: %s\n", gpumem_last_error()->message);
        return -1;
    }
    return 0;
}

static inline void check_dump(const char *before, const char *after, const char *file, int line) {
    if (strcmp(before, after) == 0)
        return;
    print_error("softgpu's state changed. Before:\n%s\nAfter:\n%s\n", before, after);
    _fail(file, line);
}

/* Compares softgpu's state with an earlier dump, and frees both. */
#define SAME_STATE(before)                                                                         \
    do {                                                                                           \
        char *now_ = soft->state_dump();                                                           \
        check_dump(before, now_, __FILE__, __LINE__);                                              \
        soft->free_text(now_);                                                                     \
        soft->free_text(before);                                                                   \
    } while (0)

static inline void synchronize(CUstream stream) {
    OK(gpumem_stream_synchronize(device, stream));
}

#endif
