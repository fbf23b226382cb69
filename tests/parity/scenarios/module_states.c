/* What the first recording of images left open. */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"

#define VALUE(n) ((void *)(uintptr_t)(n))

static CUfunction function(const void *image, const char *name) {
    CUmodule m = PAR_MADE(CUmodule, cuModuleLoadData, image);
    return PAR_MADE(CUfunction, cuModuleGetFunction, m, name);
}

/* Which attributes a function must be loaded for. */
SCENARIO(unloaded_attributes, "module/unloaded-attributes", par_context) {
    int value;
    CUmodule m = PAR_MADE(CUmodule, cuModuleLoadData, image_kernels_cubin);
    CUfunction f = PAR_MADE(CUfunction, cuModuleEnumerateFunctions, 1, m);
    for (int a = 0; a <= CU_FUNC_ATTRIBUTE_MAX; a++) {
        par_note("attribute=%d", a);
        CALLO(cuFuncGetAttribute, "unloaded", (&value, (CUfunction_attribute)a, f), OUT_I(value));
    }
    size_t offset, size;
    CUfunctionLoadingState state;
    const char *name;
    CALLO(cuFuncGetParamInfo, "unloaded", (f, 0, &offset, &size), OUT_U(offset));
    CALLO(cuFuncGetName, "unloaded", (&name, f), OUT_Z(name));
    CALLO(cuFuncIsLoaded, "unloaded", (&state, f), OUT_I(state));
    CALL(cuFuncSetAttribute, "unloaded",
         (f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    CALLO(cuFuncIsLoaded, "set", (&state, f), OUT_I(state));
    CALL(cuFuncSetCacheConfig, "unloaded", (f, CU_FUNC_CACHE_PREFER_L1));
    CALLO(cuFuncIsLoaded, "configured", (&state, f), OUT_I(state));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "unloaded", (&value, f, 32, 0),
          OUT_I(value));
    CALLO(cuFuncIsLoaded, "occupancy", (&state, f), OUT_I(state));
}

SCENARIO(relocatable, "module/relocatable", par_context) {
    CUfunction f;
    CUdeviceptr p;
    size_t bytes;
    unsigned count;
    CUmodule m = PAR_MADE(CUmodule, cuModuleLoadData, image_part_cubin);
    CALLO(cuModuleGetFunctionCount, "relocatable", (&count, m), OUT_U(count));
    CALLO(cuModuleGetFunction, "relocatable", (&f, m, "caller"), OUT_C(f));
    CALLO(cuModuleGetGlobal_v2, "relocatable", (&p, &bytes, m, "shared_value"), OUT_C(p),
          OUT_U(bytes));
}

/* Cache preferences and carveouts against shared memory. */
SCENARIO(carveouts, "occupancy/carveouts", par_context) {
    static const int percents[] = {0, 1, 3, 4, 5, 10, 14, 15, 25, 28, 29, 50, 57, 58, 75, 90, 100};
    static const size_t sizes[] = {0, 7000, 20000};
    int blocks;
    CUfunction f = function(image_kernels_cubin, "dynamic_shared");
    for (int config = 0; config <= 3; config++) {
        SETUP(cuFuncSetCacheConfig, (f, (CUfunc_cache)config));
        for (size_t s = 0; s < 3; s++) {
            par_note("config=%d shared=%zu", config, sizes[s]);
            CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "config", (&blocks, f, 64, sizes[s]),
                  OUT_I(blocks));
        }
    }
    SETUP(cuFuncSetCacheConfig, (f, CU_FUNC_CACHE_PREFER_NONE));
    for (size_t i = 0; i < COUNT(percents); i++) {
        SETUP(cuFuncSetAttribute,
              (f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percents[i]));
        for (size_t s = 0; s < 3; s++) {
            par_note("carveout=%d shared=%zu", percents[i], sizes[s]);
            CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "carveout",
                  (&blocks, f, 64, sizes[s]), OUT_I(blocks));
        }
    }
}

/* A kernel's preference, a context's, a function's. */
SCENARIO(whose_preference, "occupancy/whose-preference", par_context) {
    CUlibrary l = NULL;
    int blocks;
    SETUP(cuLibraryLoadData, (&l, image_kernels_cubin, NULL, NULL, 0, NULL, NULL, 0));
    CUkernel k = PAR_MADE(CUkernel, cuLibraryGetKernel, l, "empty");
    CUfunction f = PAR_MADE(CUfunction, cuKernelGetFunction, k);
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "nobody", (&blocks, f, 32, 0),
          OUT_I(blocks));
    SETUP(cuKernelSetCacheConfig, (k, CU_FUNC_CACHE_PREFER_L1, 0));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "kernel", (&blocks, f, 32, 0),
          OUT_I(blocks));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "kernel-itself",
          (&blocks, (CUfunction)k, 32, 0), OUT_I(blocks));
    SETUP(cuFuncSetCacheConfig, (f, CU_FUNC_CACHE_PREFER_SHARED));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "function", (&blocks, f, 32, 0),
          OUT_I(blocks));
    CUfunction g = function(image_kernels_cubin, "empty");
    SETUP(cuCtxSetCacheConfig, (CU_FUNC_CACHE_PREFER_L1));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "context", (&blocks, g, 32, 0),
          OUT_I(blocks));
    SETUP(cuCtxSetCacheConfig, (CU_FUNC_CACHE_PREFER_NONE));
    SETUP(cuKernelSetAttribute, (CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 0, k, 0));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "kernel-carveout",
          (&blocks, (CUfunction)k, 32, 0), OUT_I(blocks));
}

/* Libraries under eager loading; the wrapper of host code; kernels of a text. */
SCENARIO(eager_library, "library/eager") {
    CUlibrary l;
    CUkernel k;
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    par_context();
    CALLO(cuLibraryLoadData, "eager-garbage", (&l, "no program", NULL, NULL, 0, NULL, NULL, 0),
          OUT_C(l));
    CALLO(cuLibraryLoadData, "eager-newer", (&l, image_other_cubin, NULL, NULL, 0, NULL, NULL, 0),
          OUT_C(l));
    CALLO(cuLibraryLoadData, "eager", (&l, image_small_cubin, NULL, NULL, 0, NULL, NULL, 0),
          OUT_C(l));
    CALLO(cuLibraryGetKernel, "eager", (&k, l, "small"), OUT_C(k));
}

SCENARIO(library_images, "library/more-images") {
    struct wrapper {
        unsigned magic, version;
        const void *data;
        void *filename;
    } wrapper = {0x466243b1, 1, image_small_fatbin, NULL};
    const void *const images[] = {&wrapper, TEXT_PLAIN, "no program"};
    static const char *const classes[] = {"wrapped", "ptx", "garbage"};
    CUlibrary l;
    CUkernel k, list[10];
    CUdeviceptr p;
    unsigned count;
    const char *name;
    par_context();
    for (int i = 0; i < 3; i++) {
        par_note("%s", classes[i]);
        CALLO(cuLibraryLoadData, "image", (&l, images[i], NULL, NULL, 0, NULL, NULL, 0), OUT_C(l));
        if (par_last() != CUDA_SUCCESS)
            continue;
        CALLO(cuLibraryGetKernel, "image", (&k, l, "small"), OUT_C(k));
        CALLO(cuLibraryGetKernelCount, "image", (&count, l), OUT_U(count));
        CALLO(cuLibraryGetGlobal, "image", (&p, NULL, l, "counter"), OUT_C(p));
        CALLO(cuLibraryGetManaged, "image", (&p, NULL, l, "counter"), OUT_C(p));
        CALLO(cuLibraryEnumerateKernels, "image", (list, 10, l), OUT_C(list[6]), OUT_C(list[7]));
        for (unsigned n = 0; par_last() == CUDA_SUCCESS && i == 1 && n < 7; n++) {
            par_note("%u", n);
            CALLO(cuKernelGetName, "enumerated", (&name, list[n]), OUT_Z(name));
        }
        CALL(cuLibraryUnload, "image", (l));
    }
}

/* What was set before decides whether the old launches are refused. */
SCENARIO(old_states, "module/old-states", par_context) {
    CUfunction required = function(TEXT_PLAIN, "required");
    CALL(cuFuncSetBlockShape, "not-reqntid", (required, 64, 1, 1));
    CALL(cuLaunch, "not-reqntid", (required));
    CUfunction f = function(image_kernels_cubin, "empty");
    CALL(cuFuncSetSharedSize, "40000", (f, 40000));
    SETUP(cuFuncSetAttribute, (f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000));
    CALL(cuLaunch, "limit-lowered", (f));
    CUfunction h = function(image_kernels_cubin, "heavy");
    CALL(cuFuncSetBlockShape, "beyond-registers", (h, 1024, 1, 1));
}

static void capture(const char *cls, CUstream s) {
    CUgraph g;
    CUgraphNode nodes[4];
    size_t count = 4;
    CUDA_KERNEL_NODE_PARAMS got;
    CALLO(cuStreamEndCapture, cls, (s, &g), OUT_C(g));
    if (par_last() != CUDA_SUCCESS)
        return;
    SETUP(cuGraphGetNodes, (g, nodes, &count));
    par_see("nodes", "%zu", count);
    for (size_t i = 0; i < count; i++)
        CALLO(cuGraphKernelNodeGetParams_v2, cls, (nodes[i], &got), OUT_U(got.gridDimX),
              OUT_U(got.gridDimY), OUT_U(got.blockDimX), OUT_U(got.sharedMemBytes));
}

SCENARIO(captured, "launch/captured-more", par_context) {
    unsigned value = 5;
    CUfunction f = function(TEXT_PLAIN, "writes"), e = function(image_kernels_cubin, "empty");
    CUstream s = par_stream();
    CUdeviceptr p = par_alloc(64);
    void *params[] = {&p, &value};
    char buffer[16] = {0};
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuLaunchKernel, "capture", (f, 2, 3, 1, 4, 1, 1, 64, s, params, NULL));
    CALL(cuLaunchKernel, "capture-extra", (f, 5, 1, 1, 6, 1, 1, 0, s, NULL, extra));
    CALL(cuLaunchCooperativeKernel, "capture", (e, 7, 1, 1, 8, 1, 1, 0, s, NULL));
    capture("kernels", s);
    static const struct {
        const char *cls;
        unsigned grid, block, shared;
    } bad[] = {{"zero-block", 1, 0, 0}, {"block-1025", 1, 1025, 0}, {"shared", 1, 1, 49153}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
        par_note("%s", bad[i].cls);
        CALL(cuLaunchKernel, "capture-bad",
             (e, bad[i].grid, 1, 1, bad[i].block, 1, 1, bad[i].shared, s, NULL, NULL));
        capture(bad[i].cls, s);
    }
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuLaunchKernel, "capture-null-function", (NULL, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    capture("null-function", s);
    SETUP(cuStreamBeginCapture_v2, (s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuLaunchKernel, "capture-no-parameters", (f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    capture("no-parameters", s);
}

/* The linker with each kind of log, and what undefined names answer then. */
SCENARIO(link_logs, "link/each-log") {
    for (int which = 0; which < 4; which++) {
        char info[512] = "", error[512] = "";
        CUjit_option options[5];
        void *v[5], *image;
        size_t size;
        unsigned n = 0;
        if (which == 0)
            par_context();
        if (which & 1) {
            options[n] = CU_JIT_INFO_LOG_BUFFER;
            v[n++] = info;
            options[n] = CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES;
            v[n++] = VALUE(sizeof(info));
        }
        if (which & 2) {
            options[n] = CU_JIT_ERROR_LOG_BUFFER;
            v[n++] = error;
            options[n] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
            v[n++] = VALUE(sizeof(error));
        }
        CUlinkState s = PAR_GOT(CUlinkState, cuLinkCreate_v2, n, options, v);
        par_note("logs=%d", which);
        CALL(cuLinkAddData_v2, "undefined",
             (s, CU_JIT_INPUT_PTX, VALUE(TEXT_CALLER), sizeof(TEXT_CALLER), "a", 0, NULL, NULL));
        par_note("logs=%d", which);
        CALLO(cuLinkComplete, "undefined", (s, &image, &size), OUT_C(image));
        par_see("logs", "info %d error %d", info[0] != 0, error[0] != 0);
        SETUP(cuLinkDestroy, (s));
        SETUP(cuLinkCreate_v2, (n, options, v, &s));
        par_note("logs=%d", which);
        CALL(cuLinkAddData_v2, "fatbin",
             (s, CU_JIT_INPUT_FATBINARY, VALUE(image_small_fatbin), sizeof(image_small_fatbin), "b",
              0, NULL, NULL));
        par_note("logs=%d", which);
        CALL(cuLinkAddData_v2, "fatbin-of-ptx",
             (s, CU_JIT_INPUT_FATBINARY, VALUE(image_ptx_fatbin), sizeof(image_ptx_fatbin), "c", 0,
              NULL, NULL));
        SETUP(cuLinkDestroy, (s));
    }
}

/* The driver's environment variables about compiling text. */
static void jit_environment(const char *variable, const char *value) {
    static const struct {
        const char *cls;
        const void *image;
    } images[] = {{"ptx", TEXT_PLAIN},
                  {"cubin", image_small_cubin},
                  {"fatbin", image_small_fatbin},
                  {"fatbin-of-ptx", image_ptx_fatbin}};
    CUmodule m;
    setenv(variable, value, 1);
    par_context();
    for (size_t i = 0; i < COUNT(images); i++) {
        par_note("%s", images[i].cls);
        CALLO(cuModuleLoadData, variable, (&m, images[i].image), OUT_C(m));
    }
}

SCENARIO_IS(force_jit, "module/force-jit", jit_environment("CUDA_FORCE_PTX_JIT", "1"));
SCENARIO_IS(disable_jit, "module/disable-jit", jit_environment("CUDA_DISABLE_PTX_JIT", "1"));
SCENARIO_IS(disable_jit_zero, "module/disable-jit-zero",
            jit_environment("CUDA_DISABLE_PTX_JIT", "0"));

/* The environment is read when the driver begins. */
SCENARIO(mode_set_late, "module/mode-set-late", par_context) {
    CUmoduleLoadingMode mode;
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    CALLO(cuModuleGetLoadingMode, "set-late", (&mode), OUT_I(mode));
}
