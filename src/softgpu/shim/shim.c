/*
 * libcuda.so.1: a filter in the sense of the ELF linker. It lists the driver's functions, so that
 * programs can be linked with -lcuda, and has none of them: whoever looks one up, by dlsym or by a
 * relocation, is given that of libsoftgpu.so.0, which the dynamic loader puts before it.
 *
 * The two are apart because of what the dynamic loader does with names: a library whose own name is
 * libcuda.so.1 answers every later request for that name in the process, so that a program which
 * opened the engine by path could no longer reach NVIDIA's driver.
 */
#include <gpumem/cuda_api.h>

#define EXPORT __attribute__((visibility("default")))

#define CU_FN(symbol, name, version, kind, params, args) EXPORT CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

/* Reached only where a loader does not know filters. The parameters are unused by intent. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define CU_FN(symbol, name, version, kind, params, args)                                           \
    CUresult CUDAAPI symbol params {                                                               \
        return CUDA_ERROR_STUB_LIBRARY;                                                            \
    }
#include <gpumem/functions.def>
