/* Our libcudart.so.13 as a program has it, over softgpu, whose controls are at hand. */
#ifndef RUNTIME_TEST_H
#define RUNTIME_TEST_H

#define RT_ABI 13
#include "runtime/core/types.h"

#include "test.h"

#include <dlfcn.h>
#include <gpumem/softgpu.h>
#include <stdlib.h>

#define IN_BOTH(text) text
#define IN_ONLY12(text)
#define IN_ONLY13(text) text
#define RT_PLAIN(name, abi, tier, twin, stream, use, error, params, args, driver, with)            \
    IN_##abi(cudaError_t name params;)
#define RT_FN(name, abi, tier, twin, stream, use, error, params, args)                             \
    IN_##abi(cudaError_t name params;)
#define RT_RAW(...)
#define RT_LATER(...)
#include "runtime/runtime.def"

const char *cudaGetErrorName(cudaError_t error);
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f);
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *tid, void *bid, dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
void __cudaUnregisterFatBinary(void **handle);

/* The program's copy of softgpu is what the runtime opens by the driver's name. */
static inline const softgpu_control *open_softgpu(void) {
    void *driver = dlopen(GPUMEM_BINARY_DIR "/lib/gpumem/softgpu/libcuda.so.1", RTLD_NOW);
    void *symbol = driver ? dlsym(driver, "softgpu_get_control") : NULL;
    softgpu_get_control_fn get;
    memcpy(&get, &symbol, sizeof get);
    assert_non_null(symbol);
    return get(SOFTGPU_CONTROL_VERSION);
}

static inline void answers(cudaError_t got, cudaError_t wanted, const char *call, int line) {
    if (got == wanted)
        return;
    print_error("line %d: %s\n  answered %s, wanted %s\n", line, call, cudaGetErrorName(got),
                cudaGetErrorName(wanted));
    fail();
}
#define OK_RT(call)           answers(call, cudaSuccess, #call, __LINE__)
#define FAILS_RT(error, call) answers(call, cudaError##error, #call, __LINE__)

#endif
