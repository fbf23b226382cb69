/* Kernels and functions: what they say, how they are set, launched and fitted. */
#include "world.h"

#define FUNCTION() OF(CUfunction, FUNCTIONS)
#define KERNEL()   OF(CUkernel, KERNELS)

static int draw_int(void) {
    unsigned pick = byte();
    return pick < 0xe0 ? (int)pick : (int)draw32(&world.input);
}

static void function_questions(void) {
    CUfunction function = FUNCTION();
    int value;
    CUmodule module = NULL;
    const char *name;
    size_t offset, size;
    CUfunctionLoadingState state;
    cuFuncGetAttribute(maybe(&value), (CUfunction_attribute)(byte() % 18), function);
    cuFuncGetModule(maybe(&module), function);
    cuFuncGetName(maybe(&name), function);
    cuFuncGetParamInfo(function, byte() & 3, maybe(&offset), maybe(&size));
    cuFuncIsLoaded(maybe(&state), function);
    cuFuncLoad(function);
    remember(MODULES, (uintptr_t)module);
}

static void function_settings(void) {
    CUfunction function = FUNCTION();
    unsigned char bytes[64] = {0};
    switch (byte() % 8) {
    case 0:
    case 1:
        cuFuncSetAttribute(function, (CUfunction_attribute)(byte() % 18), draw_int());
        break;
    case 2:
        cuFuncSetCacheConfig(function, (CUfunc_cache)(byte() % 5));
        break;
    case 3:
        cuFuncSetSharedMemConfig(function, (CUsharedconfig)(byte() % 4));
        break;
    case 4:
        cuFuncSetBlockShape(function, draw_int(), draw_int(), draw_int());
        break;
    case 5:
        cuFuncSetSharedSize(function, (unsigned)draw_int());
        break;
    case 6:
        cuParamSetSize(function, (unsigned)draw_int());
        cuParamSeti(function, draw_int(), 1);
        cuParamSetf(function, draw_int(), 1);
        break;
    default:
        cuParamSetv(function, draw_int(), maybe(bytes), byte() & 63);
        cuParamSetTexRef(function, draw_int(), OF(CUtexref, TEXTURE_REFERENCES));
        break;
    }
}

static void kernel_questions(void) {
    CUkernel kernel = KERNEL();
    int value;
    CUfunction function = NULL;
    CUlibrary library;
    const char *name;
    size_t offset, size;
    cuKernelGetAttribute(maybe(&value), (CUfunction_attribute)(byte() % 18), kernel, draw_device());
    cuKernelGetFunction(maybe(&function), kernel);
    cuKernelGetLibrary(maybe(&library), kernel);
    cuKernelGetName(maybe(&name), kernel);
    cuKernelGetParamInfo(kernel, byte() & 3, maybe(&offset), maybe(&size));
    cuKernelSetAttribute((CUfunction_attribute)(byte() % 18), draw_int(), kernel, draw_device());
    cuKernelSetCacheConfig(kernel, (CUfunc_cache)(byte() % 5), draw_device());
    remember(FUNCTIONS, (uintptr_t)function);
}

static CUfunction draw_function(void) {
    return byte() < 0xc0 ? FUNCTION() : (CUfunction)KERNEL();
}

static void launch(void) {
    static unsigned char packed[4096];
    size_t size = byte();
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    unsigned pick = byte();
    void **parameters = pick & 1 ? NULL : draw_kernel_parameters();
    unsigned width = byte(), blocks = byte() & 3;
    if (pick & 2)
        cuLaunchKernel(draw_function(), blocks, 1, 1, width, 1, 1, byte() < 0xf0 ? 0 : byte(),
                       STREAM(), parameters, pick & 1 ? extra : NULL);
    else
        cuLaunchCooperativeKernel(draw_function(), blocks, 1, 1, width, 1, 1, 0, STREAM(),
                                  parameters);
}

static CUlaunchConfig draw_config(CUlaunchAttribute attributes[3]) {
    for (unsigned i = 0; i < 3; i++)
        attributes[i] = draw_attribute();
    return (CUlaunchConfig){.gridDimX = byte(),
                            .gridDimY = 1 + (byte() & 1),
                            .gridDimZ = 1,
                            .blockDimX = byte(),
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .sharedMemBytes = byte() < 0xf0 ? 0 : draw32(&world.input),
                            .hStream = STREAM(),
                            .attrs = maybe(attributes),
                            .numAttrs = byte() & 3};
}

static void launch_with_config(void) {
    CUlaunchAttribute attributes[3];
    CUlaunchConfig config = draw_config(attributes);
    cuLaunchKernelEx(maybe(&config), draw_function(), draw_kernel_parameters(), NULL);
}

static void launch_old(void) {
    if (byte() & 1)
        cuLaunch(FUNCTION());
    else
        cuLaunchGridAsync(FUNCTION(), draw_int(), 1, STREAM());
}

static size_t CUDA_CB shared_for(int threads) {
    return (size_t)threads * 4;
}

static void occupancy(void) {
    CUlaunchAttribute attributes[3];
    CUlaunchConfig config = draw_config(attributes);
    CUfunction function = draw_function();
    int a, b;
    size_t bytes;
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        maybe(&a), function, draw_int(), byte() < 0xc0 ? 0 : draw_size(), byte() & 3);
    cuOccupancyMaxPotentialBlockSizeWithFlags(
        maybe(&a), maybe(&b), function, byte() & 1 ? shared_for : NULL, 0, draw_int(), byte() & 1);
    cuOccupancyAvailableDynamicSMemPerBlock(maybe(&bytes), function, draw_int(), draw_int());
    cuOccupancyMaxActiveClusters(maybe(&a), function, maybe(&config));
    cuOccupancyMaxPotentialClusterSize(maybe(&a), function, maybe(&config));
}

static const call_fn list[] = {
    function_questions, function_settings, function_settings, kernel_questions, launch,
    launch_with_config, launch_old,        occupancy,
};
const struct calls kernel_calls = {list, sizeof list / sizeof list[0]};
