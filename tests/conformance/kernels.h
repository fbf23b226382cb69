/* Kernels for tests: a module of PTX, its functions, and memory that host and device share. */
#ifndef CONFORMANCE_KERNELS_H
#define CONFORMANCE_KERNELS_H

#include "harness.h"

#define KERNELS_HEAD ".version 8.1\n.target sm_90\n.address_size 64\n"

static CUmodule kernels_module;

static inline CUfunction kernel(const char *name) {
    return MADE_CU(CUfunction, cuModuleGetFunction, kernels_module, name);
}

/* Hardware loads a function at its first use and may wait for running kernels then, which a test
 * lets wait for itself. */
static inline void kernels_load_all(void) {
    CUfunction functions[16];
    unsigned count = MADE_CU(unsigned, cuModuleGetFunctionCount, kernels_module);
    assert_true(count <= COUNT(functions));
    OK_CU(cu.cuModuleEnumerateFunctions(functions, count, kernels_module));
    for (unsigned i = 0; i < count; i++)
        OK_CU(cu.cuFuncLoad(functions[i]));
}

/* Loads a text that has an entry "probe" without parameters, and skips the test where the driver
 * runs no kernels. */
static inline void kernels_open(const char *text) {
    if (device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9)
        SKIP("the device is older than these kernels (compute capability 9.0)");
    kernels_module = new_module(text);
    CUresult result = cu.cuLaunchKernel(kernel("probe"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    if (no_kernels(result))
        SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
    OK_CU(result);
    OK_CU(cu.cuCtxSynchronize());
    kernels_load_all();
}

/* Words that host and device see, zero. */
struct shared_words {
    volatile unsigned *host;
    CUdeviceptr device;
};

static inline struct shared_words words_make(size_t count) {
    struct shared_words words;
    void *memory = new_pinned(count * sizeof *words.host, CU_MEMHOSTALLOC_DEVICEMAP);
    OK_CU(cu.cuMemHostGetDevicePointer_v2(&words.device, memory, 0));
    memset(memory, 0, count * sizeof *words.host);
    words.host = memory;
    return words;
}

#endif
