/* Functions of modules: attributes, settings, parameters, and the old way of describing a launch.
 */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"

static const char *const ptx_names[] = {"empty",  "types",  "bounded",   "required",
                                        "shared", "writes", "invisible", NULL};
static const char *const cluster_names[] = {"clustered", "any_cluster", "ranked", "plain", NULL};
static const char *const cubin_names[] = {"empty",          "types", "bounded",     "static_shared",
                                          "dynamic_shared", "heavy", "local_array", "clustered",
                                          "variables",      NULL};

static CUmodule load(const void *image) {
    return PAR_MADE(CUmodule, cuModuleLoadData, image);
}

static CUfunction function(CUmodule m, const char *name) {
    return PAR_MADE(CUfunction, cuModuleGetFunction, m, name);
}

static void attributes_of(const char *cls, CUmodule m, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; i++) {
        CUfunction f = function(m, names[i]);
        for (int a = 0; a < CU_FUNC_ATTRIBUTE_MAX; a++) {
            int value;
            par_note("%s attribute=%d", names[i], a);
            CALLO(cuFuncGetAttribute, cls, (&value, (CUfunction_attribute)a, f), OUT_I(value));
        }
    }
}

SCENARIO_IN(attributes_ptx, "module/attributes-ptx", par_context,
            attributes_of("ptx", load(TEXT_PLAIN), ptx_names));
SCENARIO_IN(attributes_clusters, "module/attributes-clusters", par_context,
            attributes_of("clusters", load(TEXT_CLUSTERS), cluster_names));
SCENARIO_IN(attributes_cubin, "module/attributes-cubin", par_context,
            attributes_of("cubin", load(image_kernels_cubin), cubin_names));

SCENARIO(attributes_bad, "module/attributes-bad", par_context) {
    int value;
    CUfunction f = function(load(TEXT_PLAIN), "empty");
    CALLO(cuFuncGetAttribute, "attribute-16", (&value, (CUfunction_attribute)16, f), OUT_I(value));
    CALLO(cuFuncGetAttribute, "attribute-negative", (&value, (CUfunction_attribute)-1, f),
          OUT_I(value));
    CALLO(cuFuncGetAttribute, "attribute-1000", (&value, (CUfunction_attribute)1000, f),
          OUT_I(value));
    CALL(cuFuncGetAttribute, "null-out", (NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    CALLO(cuFuncGetAttribute, "null-function", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL),
          OUT_I(value));
    CALL(cuFuncGetAttribute, "null-out-bad-attribute", (NULL, (CUfunction_attribute)99, f));
}

/* Settings ----------------------------------------------------------------------------------------
 */

static void set(const char *cls, CUfunction f, CUfunction_attribute a, int value) {
    int now;
    par_note("attribute=%d value=%d", (int)a, value);
    CALL(cuFuncSetAttribute, cls, (f, a, value));
    par_note("attribute=%d value=%d", (int)a, value);
    CALLO(cuFuncGetAttribute, cls, (&now, a, f), OUT_I(now));
}

static void set_all(const char *cls, CUfunction f) {
    for (int a = 0; a <= CU_FUNC_ATTRIBUTE_MAX; a++)
        if (a < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
            set(cls, f, (CUfunction_attribute)a, 1);
    static const int shared[] = {0,     1,          1024,       49152, 49153,
                                 65536, 227 * 1024, 228 * 1024, -1,    1 << 30};
    for (size_t i = 0; i < COUNT(shared); i++)
        set(cls, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared[i]);
    static const int carveout[] = {-1, 0, 1, 50, 100, 101, -2};
    for (size_t i = 0; i < COUNT(carveout); i++)
        set(cls, f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, carveout[i]);
    static const int sizes[] = {0, 1, 2, 3, 8, 9, 16, 17, -1};
    set(cls, f, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 1);
    set(cls, f, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 0);
    set(cls, f, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 2);
    for (size_t i = 0; i < COUNT(sizes); i++)
        set(cls, f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, sizes[i]);
    set(cls, f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 2);
    set(cls, f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1);
    set(cls, f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    set(cls, f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 2);
    set(cls, f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0);
    for (int policy = -1; policy <= 3; policy++)
        set(cls, f, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, policy);
    set(cls, f, (CUfunction_attribute)16, 0);
    set(cls, f, (CUfunction_attribute)-1, 0);
}

SCENARIO(set_attributes, "module/set-attributes", par_context) {
    set_all("cubin", function(load(image_kernels_cubin), "empty"));
    set_all("static-shared", function(load(image_kernels_cubin), "static_shared"));
    set_all("clustered", function(load(image_kernels_cubin), "clustered"));
    CALL(cuFuncSetAttribute, "null-function",
         (NULL, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0));
}

SCENARIO(settings, "module/settings", par_context) {
    CUfunction f = function(load(image_kernels_cubin), "empty");
    for (int c = -1; c <= 4; c++) {
        par_note("config=%d", c);
        CALL(cuFuncSetCacheConfig, "config", (f, (CUfunc_cache)c));
    }
    for (int c = -1; c <= 3; c++) {
        par_note("config=%d", c);
        CALL(cuFuncSetSharedMemConfig, "config", (f, (CUsharedconfig)c));
    }
    CALL(cuFuncSetCacheConfig, "null-function", (NULL, CU_FUNC_CACHE_PREFER_NONE));
    CALL(cuFuncSetSharedMemConfig, "null-function", (NULL, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
}

/* Parameters --------------------------------------------------------------------------------------
 */

static void parameters_of(const char *cls, CUfunction f, size_t count) {
    size_t offset, size;
    for (size_t i = 0; i <= count; i++) {
        par_note("parameter=%zu", i);
        CALLO(cuFuncGetParamInfo, cls, (f, i, &offset, &size), OUT_U(offset), OUT_U(size));
    }
    CALLO(cuFuncGetParamInfo, cls, (f, (size_t)-1, &offset, &size), OUT_U(offset), OUT_U(size));
}

SCENARIO(parameters, "module/parameters", par_context) {
    size_t offset, size;
    CUmodule m = load(TEXT_PLAIN), n = load(image_kernels_cubin);
    parameters_of("ptx-types", function(m, "types"), 8);
    parameters_of("ptx-empty", function(m, "empty"), 0);
    parameters_of("cubin-types", function(n, "types"), 9);
    parameters_of("cubin-empty", function(n, "empty"), 0);
    CUfunction f = function(n, "types");
    CALLO(cuFuncGetParamInfo, "no-size", (f, 1, &offset, NULL), OUT_U(offset));
    CALLO(cuFuncGetParamInfo, "no-offset", (f, 1, NULL, &size), OUT_U(size));
    CALL(cuFuncGetParamInfo, "no-outputs", (f, 1, NULL, NULL));
    CALLO(cuFuncGetParamInfo, "null-function", (NULL, 0, &offset, &size), OUT_U(offset),
          OUT_U(size));
}

/* The first way to launch -------------------------------------------------------------------------
 */

SCENARIO(old_arguments, "module/old-arguments", par_context) {
    char bytes[4200] = {0};
    CUmodule n = load(image_kernels_cubin);
    CUfunction f = function(n, "types"), g = function(n, "empty");
    CALL(cuFuncSetBlockShape, "ok", (f, 32, 1, 1));
    CALL(cuFuncSetBlockShape, "zero-x", (f, 0, 1, 1));
    CALL(cuFuncSetBlockShape, "zero-y", (f, 1, 0, 1));
    CALL(cuFuncSetBlockShape, "zero-z", (f, 1, 1, 0));
    CALL(cuFuncSetBlockShape, "negative", (f, -1, 1, 1));
    CALL(cuFuncSetBlockShape, "1024", (f, 1024, 1, 1));
    CALL(cuFuncSetBlockShape, "1025", (f, 1025, 1, 1));
    CALL(cuFuncSetBlockShape, "z-64", (f, 1, 1, 64));
    CALL(cuFuncSetBlockShape, "z-65", (f, 1, 1, 65));
    CALL(cuFuncSetBlockShape, "product-2048", (f, 64, 32, 1));
    CALL(cuFuncSetBlockShape, "beyond-maxntid", (function(n, "bounded"), 256, 1, 1));
    CALL(cuFuncSetBlockShape, "null-function", (NULL, 1, 1, 1));
    CALL(cuFuncSetSharedSize, "zero", (f, 0));
    CALL(cuFuncSetSharedSize, "ok", (f, 1024));
    CALL(cuFuncSetSharedSize, "48K", (f, 49152));
    CALL(cuFuncSetSharedSize, "48K-more", (f, 49153));
    CALL(cuFuncSetSharedSize, "huge", (f, 1u << 31));
    CALL(cuFuncSetSharedSize, "null-function", (NULL, 0));
    CALL(cuParamSetSize, "zero", (f, 0));
    CALL(cuParamSetSize, "exact", (f, 65));
    CALL(cuParamSetSize, "less", (f, 8));
    CALL(cuParamSetSize, "more", (f, 128));
    CALL(cuParamSetSize, "none-has", (g, 8));
    CALL(cuParamSetSize, "4096", (f, 4096));
    CALL(cuParamSetSize, "4097", (f, 4097));
    CALL(cuParamSetSize, "32764", (f, 32764));
    CALL(cuParamSetSize, "40000", (f, 40000));
    CALL(cuParamSetSize, "huge", (f, 0xffffffffu));
    CALL(cuParamSetSize, "null-function", (NULL, 0));
    CALL(cuParamSeti, "ok", (f, 4, 1));
    CALL(cuParamSeti, "unaligned", (f, 1, 1));
    CALL(cuParamSeti, "negative", (f, -4, 1));
    CALL(cuParamSeti, "past-parameters", (f, 64, 1));
    CALL(cuParamSeti, "4092", (f, 4092, 1));
    CALL(cuParamSeti, "4096", (f, 4096, 1));
    CALL(cuParamSeti, "far", (f, 1 << 20, 1));
    CALL(cuParamSeti, "none-has", (g, 0, 1));
    CALL(cuParamSeti, "null-function", (NULL, 0, 1));
    CALL(cuParamSetf, "ok", (f, 16, 1.0F));
    CALL(cuParamSetf, "negative", (f, -4, 1.0F));
    CALL(cuParamSetf, "far", (f, 1 << 20, 1.0F));
    CALL(cuParamSetf, "null-function", (NULL, 0, 1.0F));
    CALL(cuParamSetv, "ok", (f, 32, bytes, 8));
    CALL(cuParamSetv, "zero-bytes", (f, 0, bytes, 0));
    CALL(cuParamSetv, "negative", (f, -8, bytes, 8));
    CALL(cuParamSetv, "past-parameters", (f, 60, bytes, 64));
    CALL(cuParamSetv, "4096", (f, 0, bytes, 4096));
    CALL(cuParamSetv, "4097", (f, 0, bytes, 4097));
    CALL(cuParamSetv, "far", (f, 1 << 20, bytes, 8));
    CALL(cuParamSetv, "null-function", (NULL, 0, bytes, 8));
    CALL(cuParamSetv, "null-pointer-zero-bytes", (f, 0, NULL, 0));
    CALL(cuParamSetTexRef, "null-function", (NULL, CU_PARAM_TR_DEFAULT, NULL));
    CALL(cuParamSetTexRef, "null-reference", (f, CU_PARAM_TR_DEFAULT, NULL));
    CALL(cuParamSetTexRef, "other-unit", (f, 0, NULL));
    CALL(cuParamSetv, "null-pointer", (f, 0, NULL, 8));
}

SCENARIO(old_texture, "module/old-texture", par_context) {
    CUmodule m = load(TEXT_TEXTURES);
    CUfunction f = function(m, "look"), g = function(load(TEXT_PLAIN), "empty");
    CUtexref t = PAR_MADE(CUtexref, cuModuleGetTexRef, m, "picture");
    CALL(cuParamSetTexRef, "ok", (f, CU_PARAM_TR_DEFAULT, t));
    CALL(cuParamSetTexRef, "unit-0", (f, 0, t));
    CALL(cuParamSetTexRef, "unit-1", (f, 1, t));
    CALL(cuParamSetTexRef, "unit-negative", (f, -2, t));
    CALL(cuParamSetTexRef, "other-module", (g, CU_PARAM_TR_DEFAULT, t));
}

/* Launches that are refused for what was or was not set before. */
SCENARIO(old_launch_bad, "module/old-launch-bad", par_context) {
    CUmodule n = load(image_kernels_cubin);
    CUfunction f = function(n, "types"), g = function(n, "empty"), h = function(n, "bounded");
    CALL(cuLaunch, "no-shape", (g));
    CALL(cuLaunchGrid, "no-shape", (g, 1, 1));
    CALL(cuLaunchGridAsync, "no-shape", (g, 1, 1, NULL));
    SETUP(cuFuncSetBlockShape, (g, 32, 1, 1));
    CALL(cuLaunchGrid, "zero-width", (g, 0, 1));
    CALL(cuLaunchGrid, "zero-height", (g, 1, 0));
    CALL(cuLaunchGrid, "negative", (g, -1, 1));
    CALL(cuLaunchGrid, "height-65536", (g, 1, 65536));
    CALL(cuLaunchGridAsync, "bad-stream", (g, 1, 1, (CUstream)(uintptr_t)0x40));
    SETUP(cuFuncSetBlockShape, (f, 32, 1, 1));
    CALL(cuLaunch, "no-parameters", (f));
    SETUP(cuFuncSetBlockShape, (h, 256, 1, 1));
    SETUP(cuParamSetSize, (h, 8));
    CALL(cuLaunch, "beyond-maxntid", (h));
    CALL(cuLaunch, "null-function", (NULL));
    CALL(cuLaunchGrid, "null-function", (NULL, 1, 1));
    CALL(cuLaunchGridAsync, "null-function", (NULL, 1, 1, NULL));
}

/* Successes: softgpu runs no kernel. */
SCENARIO(old_launch, "module/old-launch", par_context) {
    unsigned value = 77, back = 0;
    CUmodule m = load(TEXT_PLAIN);
    CUfunction f = function(m, "writes");
    CUdeviceptr p = par_alloc(64);
    SETUP(cuMemsetD8_v2, (p, 0, 64));
    SETUP(cuFuncSetBlockShape, (f, 1, 1, 1));
    SETUP(cuParamSetSize, (f, 12));
    SETUP(cuParamSetv, (f, 0, &p, 8));
    SETUP(cuParamSeti, (f, 8, value));
    CALL(cuLaunch, "ok", (f));
    SETUP(cuMemcpyDtoH_v2, (&back, p, 4));
    par_see("written", "%u", back);
    CALL(cuLaunchGrid, "ok", (f, 2, 2));
    CALL(cuLaunchGridAsync, "ok", (f, 2, 2, NULL));
}

/* Code that was not linked: which of it is found, loaded and launched. */
SCENARIO(unlinked, "module/unlinked", par_context) {
    CUlibrary library =
        PAR_MADE(CUlibrary, cuLibraryLoadData, image_partly_cubin, NULL, NULL, 0, NULL, NULL, 0);
    CUmodule m = load(image_partly_cubin), pointing;
    CUfunction all[16], f;
    unsigned count = 0;
    CUdeviceptr p;
    SETUP(cuModuleGetFunctionCount, (&count, m));
    SETUP(cuModuleEnumerateFunctions, (all, 16, m));
    for (unsigned i = 0; i < count; i++) {
        const char *name = NULL;
        CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_MAX;
        SETUP(cuFuncGetName, (&name, all[i]));
        CUkernel kernel = PAR_MADE(CUkernel, cuLibraryGetKernel, library, name);
        par_note("%s", name);
        CALLO(cuModuleGetFunction, "unlinked", (&f, m, name), OUT_C(f));
        par_note("%s", name);
        CALLO(cuKernelGetFunction, "unlinked", (&f, kernel), OUT_C(f));
        par_note("%s", name);
        CALLO(cuFuncIsLoaded, "unlinked", (&state, all[i]), OUT_I(state));
        par_note("%s", name);
        CALL(cuFuncLoad, "unlinked", (all[i]));
        par_note("%s", name);
        CALLO(cuFuncIsLoaded, "unlinked-loaded", (&state, all[i]), OUT_I(state));
    }
    CALLO(cuModuleGetGlobal_v2, "unlinked", (&p, NULL, m, "stored"), OUT_C(p));
    CALLO(cuModuleGetGlobal_v2, "unlinked-constant", (&p, NULL, m, "constant"), OUT_C(p));
    CALLO(cuModuleGetGlobal_v2, "unlinked-outside", (&p, NULL, m, "outside"), OUT_C(p));
    CALLO(cuLibraryGetGlobal, "unlinked", (&p, NULL, library, "stored"), OUT_C(p));
    CALLO(cuModuleLoadData, "unlinked-pointing", (&pointing, image_pointing_cubin),
          OUT_C(pointing));
}
