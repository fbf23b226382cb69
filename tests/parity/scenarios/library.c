/* Libraries and their kernels: images that belong to no context until one asks. */
#include "../parity.h"
#include "images.h"
#include "module_texts.h"
#include "temporary.h"

static CUlibrary load(const void *image) {
    return PAR_MADE(CUlibrary, cuLibraryLoadData, image, NULL, NULL, 0, NULL, NULL, 0);
}

static CUkernel kernel(CUlibrary l, const char *name) {
    return PAR_MADE(CUkernel, cuLibraryGetKernel, l, name);
}

static void one(const char *cls, const void *image) {
    CUlibrary l;
    CUkernel k;
    CUmodule m;
    CALLO(cuLibraryLoadData, cls, (&l, image, NULL, NULL, 0, NULL, NULL, 0), OUT_C(l));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALLO(cuLibraryGetKernel, cls, (&k, l, "small"), OUT_C(k));
    CALLO(cuLibraryGetKernel, cls, (&k, l, "empty"), OUT_C(k));
    CALLO(cuLibraryGetModule, cls, (&m, l), OUT_C(m));
    CALL(cuLibraryUnload, cls, (l));
}

SCENARIO(images, "library/images", par_context) {
    one("ptx", TEXT_PLAIN);
    one("cubin", image_kernels_cubin);
    one("cubin-older", image_older_cubin);
    one("cubin-newer", image_other_cubin);
    one("fatbin", image_small_fatbin);
    one("fatbin-uncompressed", image_plain_fatbin);
    one("fatbin-newer-only", image_other_fatbin);
    one("relocatable", image_part_cubin);
    one("garbage", "this is no program");
    one("empty", "");
    one("bad-ptx", TEXT_HEAD ".visible .entry a()\n{\nfrob;\n}\n");
    one("newer-ptx", ".version 99.9\n.target sm_70\n.address_size 64\n" TEXT_ENTRY);
    one("undefined", TEXT_CALLER);
    one("nothing-in-it", TEXT_HEAD);
}

SCENARIO(load_bad, "library/load-bad", par_context) {
    CUlibrary l;
    CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
    CUlibraryOption table = CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE;
    CUlibraryOption unknown = (CUlibraryOption)7;
    void *one_value = (void *)(uintptr_t)1, *null_value = NULL;
    CUjit_option level = CU_JIT_OPTIMIZATION_LEVEL, bad = (CUjit_option)999;
    CALL(cuLibraryLoadData, "null-out", (NULL, TEXT_PLAIN, NULL, NULL, 0, NULL, NULL, 0));
    CALLO(cuLibraryLoadData, "null-code", (&l, NULL, NULL, NULL, 0, NULL, NULL, 0), OUT_C(l));
    CALLO(cuLibraryLoadData, "preserved",
          (&l, image_small_cubin, NULL, NULL, 0, &preserved, &one_value, 1), OUT_C(l));
    CALLO(cuLibraryLoadData, "preserved-ptx",
          (&l, TEXT_PLAIN, NULL, NULL, 0, &preserved, &one_value, 1), OUT_C(l));
    CALLO(cuLibraryLoadData, "not-preserved",
          (&l, image_small_cubin, NULL, NULL, 0, &preserved, &null_value, 1), OUT_C(l));
    CALLO(cuLibraryLoadData, "preserved-null-values",
          (&l, image_small_cubin, NULL, NULL, 0, &preserved, NULL, 1), OUT_C(l));
    CALLO(cuLibraryLoadData, "table-null",
          (&l, image_small_cubin, NULL, NULL, 0, &table, &null_value, 1), OUT_C(l));
    CALLO(cuLibraryLoadData, "unknown-option",
          (&l, image_small_cubin, NULL, NULL, 0, &unknown, &null_value, 1), OUT_C(l));
    CALLO(cuLibraryLoadData, "null-options",
          (&l, image_small_cubin, NULL, NULL, 0, NULL, &null_value, 1), OUT_C(l));
    CALLO(cuLibraryLoadData, "jit-level", (&l, TEXT_PLAIN, &level, &one_value, 1, NULL, NULL, 0),
          OUT_C(l));
    CALLO(cuLibraryLoadData, "jit-bad", (&l, TEXT_PLAIN, &bad, &one_value, 1, NULL, NULL, 0),
          OUT_C(l));
    CALLO(cuLibraryLoadData, "jit-null", (&l, TEXT_PLAIN, NULL, NULL, 1, NULL, NULL, 0), OUT_C(l));
    CALLO(cuLibraryLoadData, "jit-null-values", (&l, TEXT_PLAIN, &level, NULL, 1, NULL, NULL, 0),
          OUT_C(l));
}

SCENARIO(files, "library/files", par_context) {
    CUlibrary l;
    CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *value = (void *)(uintptr_t)1;
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "parity-library");
    if (fd < 0 || write(fd, image_small_cubin, sizeof(image_small_cubin)) < 0) {
        par_see("setup", "SETUP_FAILED file");
        return;
    }
    CALLO(cuLibraryLoadFromFile, "ok", (&l, path, NULL, NULL, 0, NULL, NULL, 0), OUT_C(l));
    CALLO(cuLibraryLoadFromFile, "preserved", (&l, path, NULL, NULL, 0, &preserved, &value, 1),
          OUT_C(l));
    CALL(cuLibraryLoadFromFile, "null-out", (NULL, path, NULL, NULL, 0, NULL, NULL, 0));
    CALLO(cuLibraryLoadFromFile, "null-name", (&l, NULL, NULL, NULL, 0, NULL, NULL, 0), OUT_C(l));
    if (ftruncate(fd, 0) != 0)
        return;
    CALLO(cuLibraryLoadFromFile, "empty", (&l, path, NULL, NULL, 0, NULL, NULL, 0), OUT_C(l));
    close(fd);
    unlink(path);
    CALLO(cuLibraryLoadFromFile, "missing", (&l, path, NULL, NULL, 0, NULL, NULL, 0), OUT_C(l));
    CALLO(cuLibraryLoadFromFile, "folder", (&l, "/tmp", NULL, NULL, 0, NULL, NULL, 0), OUT_C(l));
}

SCENARIO(kernels, "library/kernels") {
    static const char *const names[] = {"empty",   "types", "bounded", "heavy",
                                        "counter", "none",  "",        NULL};
    CUlibrary l, back;
    CUkernel k, again, list[20];
    CUfunction f, g;
    CUmodule m, n;
    const char *name;
    unsigned count;
    size_t offset, size;
    par_context();
    l = load(image_kernels_cubin);
    NAME(l);
    for (size_t i = 0; names[i] != NULL; i++) {
        par_note("%s", names[i]);
        CALLO(cuLibraryGetKernel, "cubin", (&k, l, names[i]), OUT_C(k));
    }
    k = kernel(l, "types");
    again = kernel(l, "types");
    par_see("same-kernel", "%d", k == again);
    CALL(cuLibraryGetKernel, "null-out", (NULL, l, "types"));
    CALLO(cuLibraryGetKernel, "null-name", (&again, l, NULL), OUT_C(again));
    CALLO(cuLibraryGetKernel, "null-library", (&again, NULL, "types"), OUT_C(again));
    CALLO(cuLibraryGetKernelCount, "ok", (&count, l), OUT_U(count));
    CALL(cuLibraryGetKernelCount, "null-out", (NULL, l));
    CALLO(cuLibraryGetKernelCount, "null-library", (&count, NULL), OUT_U(count));
    CALLO(cuLibraryEnumerateKernels, "all", (list, 20, l), OUT_C(list[8]), OUT_C(list[9]));
    for (unsigned i = 0; i < 9; i++) {
        par_note("%u", i);
        CALLO(cuKernelGetName, "enumerated", (&name, list[i]), OUT_Z(name));
    }
    CALLO(cuLibraryEnumerateKernels, "two", (list, 2, l), OUT_C(list[1]), OUT_C(list[2]));
    CALLO(cuLibraryEnumerateKernels, "zero", (list, 0, l), OUT_C(list[0]));
    CALL(cuLibraryEnumerateKernels, "null-out", (NULL, 1, l));
    CALL(cuLibraryEnumerateKernels, "null-out-zero", (NULL, 0, l));
    CALLO(cuLibraryEnumerateKernels, "null-library", (list, 1, NULL), OUT_C(list[0]));
    CALLO(cuKernelGetName, "ok", (&name, k), OUT_Z(name));
    CALL(cuKernelGetName, "null-out", (NULL, k));
    CALLO(cuKernelGetName, "null-kernel", (&name, NULL), OUT_C(name));
    CALLO(cuKernelGetLibrary, "ok", (&back, k), OUT_H(back));
    CALL(cuKernelGetLibrary, "null-out", (NULL, k));
    CALLO(cuKernelGetLibrary, "null-kernel", (&back, NULL), OUT_C(back));
    for (size_t i = 0; i <= 9; i++) {
        par_note("parameter=%zu", i);
        CALLO(cuKernelGetParamInfo, "ok", (k, i, &offset, &size), OUT_U(offset), OUT_U(size));
    }
    CALLO(cuKernelGetParamInfo, "no-size", (k, 1, &offset, NULL), OUT_U(offset));
    CALLO(cuKernelGetParamInfo, "no-offset", (k, 1, NULL, &size), OUT_U(size));
    CALLO(cuKernelGetParamInfo, "null-kernel", (NULL, 0, &offset, &size), OUT_U(offset),
          OUT_U(size));
    CALLO(cuKernelGetFunction, "ok", (&f, k), OUT_C(f));
    SETUP(cuKernelGetFunction, (&g, k));
    par_see("same-function", "%d", f == g);
    par_see("function-is-kernel", "%d", (void *)f == (void *)k);
    CALL(cuKernelGetFunction, "null-out", (NULL, k));
    CALLO(cuKernelGetFunction, "null-kernel", (&f, NULL), OUT_C(f));
    CALLO(cuLibraryGetModule, "ok", (&m, l), OUT_C(m));
    SETUP(cuLibraryGetModule, (&n, l));
    par_see("same-module", "%d", m == n);
    CALL(cuLibraryGetModule, "null-out", (NULL, l));
    CALLO(cuLibraryGetModule, "null-library", (&n, NULL), OUT_C(n));
    CALLO(cuFuncGetName, "of-kernel", (&name, g), OUT_Z(name));
    CALLO(cuFuncGetModule, "of-kernel", (&n, g), OUT_C(n));
    par_see("function-of-module", "%d", m == n);
    SETUP(cuModuleGetFunction, (&f, m, "types"));
    par_see("module-function", "%d", f == g);
    CALL(cuModuleUnload, "of-library", (m));
    CALLO(cuModuleGetFunctionCount, "of-library", (&count, m), OUT_U(count));
    /* A kernel in the place of a function. */
    int value;
    CUfunctionLoadingState state;
    CALLO(cuFuncGetAttribute, "kernel-as-function",
          (&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (CUfunction)k), OUT_I(value));
    CALLO(cuFuncGetName, "kernel-as-function", (&name, (CUfunction)k), OUT_Z(name));
    CALLO(cuFuncIsLoaded, "kernel-as-function", (&state, (CUfunction)k), OUT_I(state));
    CALLO(cuOccupancyMaxActiveBlocksPerMultiprocessor, "kernel-as-function",
          (&value, (CUfunction)k, 32, 0), OUT_I(value));
    CALL(cuLaunchKernel, "kernel-as-function-bad-block",
         ((CUfunction)k, 1, 1, 1, 0, 1, 1, 0, NULL, NULL, NULL));
    CALLO(cuFuncGetModule, "kernel-as-function", (&n, (CUfunction)k), OUT_C(n));
    CALL(cuFuncSetCacheConfig, "kernel-as-function", ((CUfunction)k, CU_FUNC_CACHE_PREFER_L1));
    CALL(cuFuncSetAttribute, "kernel-as-function",
         ((CUfunction)k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 128));
    CALL(cuFuncLoad, "kernel-as-function", ((CUfunction)k));
}

SCENARIO(attributes, "library/attributes") {
    static const char *const names[] = {"empty", "bounded", "static_shared", "heavy", NULL};
    int value;
    par_context();
    CUlibrary l = load(image_kernels_cubin);
    for (size_t i = 0; names[i] != NULL; i++) {
        CUkernel k = kernel(l, names[i]);
        for (int a = 0; a <= CU_FUNC_ATTRIBUTE_MAX; a++) {
            par_note("%s attribute=%d", names[i], a);
            CALLO(cuKernelGetAttribute, "cubin", (&value, (CUfunction_attribute)a, k, 0),
                  OUT_I(value));
        }
    }
    CUkernel k = kernel(l, "empty");
    CALL(cuKernelGetAttribute, "null-out", (NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 0));
    CALLO(cuKernelGetAttribute, "bad-device", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 99),
          OUT_I(value));
    CALLO(cuKernelGetAttribute, "device-negative", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, k, -1),
          OUT_I(value));
    CALLO(cuKernelGetAttribute, "null-kernel", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL, 0),
          OUT_I(value));
    CALLO(cuKernelGetAttribute, "attribute-negative", (&value, (CUfunction_attribute)-1, k, 0),
          OUT_I(value));
}

SCENARIO(settings, "library/settings", par_context) {
    int value;
    CUlibrary l = load(image_kernels_cubin);
    CUkernel k = kernel(l, "empty");
    static const struct {
        CUfunction_attribute attribute;
        int value;
    } sets[] = {{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024},
                {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536},
                {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448},
                {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449},
                {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1},
                {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50},
                {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101},
                {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2},
                {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, 1},
                {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1},
                {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 1},
                {CU_FUNC_ATTRIBUTE_NUM_REGS, 1},
                {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1},
                {(CUfunction_attribute)16, 0}};
    for (size_t i = 0; i < COUNT(sets); i++) {
        par_note("attribute=%d value=%d", (int)sets[i].attribute, sets[i].value);
        CALL(cuKernelSetAttribute, "set", (sets[i].attribute, sets[i].value, k, 0));
        par_note("attribute=%d", (int)sets[i].attribute);
        CALLO(cuKernelGetAttribute, "set", (&value, sets[i].attribute, k, 0), OUT_I(value));
    }
    CUfunction f = PAR_MADE(CUfunction, cuKernelGetFunction, k);
    CALLO(cuFuncGetAttribute, "set-on-kernel",
          (&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f), OUT_I(value));
    CALL(cuFuncSetAttribute, "then-on-function",
         (f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2048));
    CALLO(cuKernelGetAttribute, "then-on-function",
          (&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0), OUT_I(value));
    CALL(cuKernelSetAttribute, "then-on-kernel",
         (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096, k, 0));
    CALLO(cuFuncGetAttribute, "then-on-kernel",
          (&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f), OUT_I(value));
    CALL(cuKernelSetAttribute, "bad-device",
         (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0, k, 99));
    CALL(cuKernelSetAttribute, "null-kernel",
         (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0, NULL, 0));
    for (int c = -1; c <= 4; c++) {
        par_note("config=%d", c);
        CALL(cuKernelSetCacheConfig, "config", (k, (CUfunc_cache)c, 0));
    }
    CALL(cuKernelSetCacheConfig, "bad-device", (k, CU_FUNC_CACHE_PREFER_L1, 99));
    CALL(cuKernelSetCacheConfig, "null-kernel", (NULL, CU_FUNC_CACHE_PREFER_L1, 0));
}

SCENARIO(globals, "library/globals") {
    static const char *const names[] = {"counter", "table",        "zeros", "odd", "factor",
                                        "unset",   "coefficients", "none",  "",    NULL};
    CUlibrary l, managed;
    CUdeviceptr p, q;
    size_t bytes;
    void *function;
    unsigned value = 0;
    par_context();
    l = load(image_kernels_cubin);
    for (size_t i = 0; names[i] != NULL; i++) {
        par_note("%s", names[i]);
        CALLO(cuLibraryGetGlobal, "cubin", (&p, &bytes, l, names[i]), OUT_C(p), OUT_U(bytes));
    }
    SETUP(cuLibraryGetGlobal, (&p, &bytes, l, "counter"));
    SETUP(cuMemcpyDtoH_v2, (&value, p, 4));
    par_see("content", "%u", value);
    CUmodule m = PAR_MADE(CUmodule, cuLibraryGetModule, l);
    SETUP(cuModuleGetGlobal_v2, (&q, NULL, m, "counter"));
    par_see("same-variable", "%d", p == q);
    CALLO(cuLibraryGetGlobal, "no-size", (&p, NULL, l, "counter"), OUT_C(p));
    CALLO(cuLibraryGetGlobal, "no-address", (NULL, &bytes, l, "counter"), OUT_U(bytes));
    CALL(cuLibraryGetGlobal, "no-outputs", (NULL, NULL, l, "counter"));
    CALLO(cuLibraryGetGlobal, "null-name", (&p, &bytes, l, NULL), OUT_C(p), OUT_U(bytes));
    CALLO(cuLibraryGetGlobal, "null-library", (&p, &bytes, NULL, "counter"), OUT_C(p),
          OUT_U(bytes));
    CALLO(cuLibraryGetManaged, "not-managed", (&p, &bytes, l, "counter"), OUT_C(p), OUT_U(bytes));
    CALLO(cuLibraryGetManaged, "no-such", (&p, &bytes, l, "none"), OUT_C(p), OUT_U(bytes));
    CALLO(cuLibraryGetManaged, "null-name", (&p, &bytes, l, NULL), OUT_C(p), OUT_U(bytes));
    CALL(cuLibraryGetManaged, "no-outputs", (NULL, NULL, l, "counter"));
    CALLO(cuLibraryGetManaged, "null-library", (&p, &bytes, NULL, "counter"), OUT_C(p),
          OUT_U(bytes));
    CALLO(cuLibraryGetUnifiedFunction, "kernel", (&function, l, "empty"), OUT_C(function));
    CALLO(cuLibraryGetUnifiedFunction, "no-such", (&function, l, "none"), OUT_C(function));
    CALL(cuLibraryGetUnifiedFunction, "null-out", (NULL, l, "empty"));
    CALLO(cuLibraryGetUnifiedFunction, "null-name", (&function, l, NULL), OUT_C(function));
    CALLO(cuLibraryGetUnifiedFunction, "null-library", (&function, NULL, "empty"), OUT_C(function));
    CALLO(cuLibraryLoadData, "managed", (&managed, TEXT_MANAGED, NULL, NULL, 0, NULL, NULL, 0),
          OUT_C(managed));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALLO(cuLibraryGetManaged, "ok", (&p, &bytes, managed, "managed_one"), OUT_C(p), OUT_U(bytes));
    if (par_last() == CUDA_SUCCESS)
        par_see("host-sees", "%u", *(unsigned *)(uintptr_t)p);
    CALLO(cuLibraryGetManaged, "plain", (&p, &bytes, managed, "plain_one"), OUT_C(p), OUT_U(bytes));
    CALLO(cuLibraryGetGlobal, "managed", (&q, &bytes, managed, "managed_one"), OUT_C(q),
          OUT_U(bytes));
}

/* Without a context a library loads, and its kernels are known. */
SCENARIO(no_context, "library/no-context", par_init) {
    CUlibrary l;
    CUkernel k;
    CUfunction f;
    CUmodule m;
    CUdeviceptr p;
    size_t bytes;
    unsigned count;
    int value;
    const char *name;
    void *function;
    CALLO(cuLibraryLoadData, "no-ctx", (&l, image_kernels_cubin, NULL, NULL, 0, NULL, NULL, 0),
          OUT_C(l));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALLO(cuLibraryGetKernel, "no-ctx", (&k, l, "bounded"), OUT_C(k));
    CALLO(cuLibraryGetKernelCount, "no-ctx", (&count, l), OUT_U(count));
    CALLO(cuKernelGetName, "no-ctx", (&name, k), OUT_Z(name));
    CALLO(cuKernelGetParamInfo, "no-ctx", (k, 0, NULL, &bytes), OUT_U(bytes));
    CALLO(cuKernelGetFunction, "no-ctx", (&f, k), OUT_C(f));
    CALLO(cuLibraryGetModule, "no-ctx", (&m, l), OUT_C(m));
    CALLO(cuLibraryGetGlobal, "no-ctx", (&p, &bytes, l, "counter"), OUT_C(p), OUT_U(bytes));
    CALLO(cuLibraryGetUnifiedFunction, "no-ctx", (&function, l, "empty"), OUT_C(function));
    CALLO(cuKernelGetAttribute, "no-ctx", (&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0),
          OUT_I(value));
    CALL(cuKernelSetAttribute, "no-ctx",
         (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 512, k, 0));
    CALLO(cuKernelGetAttribute, "no-ctx",
          (&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0), OUT_I(value));
    CALL(cuKernelSetCacheConfig, "no-ctx", (k, CU_FUNC_CACHE_PREFER_L1, 0));
    CALLO(cuFuncGetAttribute, "no-ctx-kernel-as-function",
          (&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (CUfunction)k), OUT_I(value));
    unsigned flags;
    int active;
    CALLO(cuDevicePrimaryCtxGetState, "library-loaded", (0, &flags, &active), OUT_I(active));
    CALL(cuLibraryUnload, "no-ctx", (l));
}

/* A module, functions and variables for each context. */
SCENARIO(contexts, "library/contexts", par_context) {
    CUfunction f, g, again;
    CUmodule m, n;
    CUdeviceptr p, q;
    int value;
    CUlibrary l = load(image_kernels_cubin);
    CUkernel k = kernel(l, "empty");
    CUcontext a = par_new_context();
    SETUP(cuKernelGetFunction, (&f, k));
    SETUP(cuLibraryGetModule, (&m, l));
    SETUP(cuLibraryGetGlobal, (&p, NULL, l, "counter"));
    CUcontext b = par_new_context();
    CALLO(cuKernelGetFunction, "second-ctx", (&g, k), OUT_C(g));
    CALLO(cuLibraryGetModule, "second-ctx", (&n, l), OUT_C(n));
    CALLO(cuLibraryGetGlobal, "second-ctx", (&q, NULL, l, "counter"), OUT_C(q));
    par_see("functions", "%s", f == g ? "one" : "two");
    par_see("modules", "%s", m == n ? "one" : "two");
    par_see("variables", "%s", p == q ? "one" : "two");
    SETUP(cuCtxSetCurrent, (a));
    SETUP(cuKernelGetFunction, (&again, k));
    par_see("first-again", "%d", f == again);
    CALL(cuFuncSetAttribute, "first-ctx",
         (f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    CALLO(cuFuncGetAttribute, "second-function",
          (&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, g), OUT_I(value));
    CALLO(cuKernelGetAttribute, "after-first",
          (&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0), OUT_I(value));
    SETUP(cuCtxDestroy_v2, (b));
    CALLO(cuKernelGetFunction, "one-ctx-destroyed", (&again, k), OUT_C(again));
    CALL(cuLibraryUnload, "ok", (l));
    CALLO(cuFuncGetAttribute, "library-unloaded", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f),
          OUT_I(value));
}

SCENARIO(unload, "library/unload", par_context) {
    CUlibrary l, back;
    CUmodule m;
    size_t bytes;
    unsigned count;
    int value;
    const char *name;
    CUfunction f;
    l = load(image_kernels_cubin);
    CUkernel k = kernel(l, "empty");
    CUdeviceptr p = PAR_MADE(CUdeviceptr, cuLibraryGetGlobal, NULL, l, "counter");
    CALL(cuLibraryUnload, "null", (NULL));
    CALL(cuLibraryUnload, "ok", (l));
    CALL(cuMemcpyDtoH_v2, "unloaded", (&value, p, 4));
    CALL(cuLibraryUnload, "stale-handle", (l));
    CALLO(cuLibraryGetKernel, "stale-handle", (&k, l, "empty"), OUT_C(k));
    CALLO(cuLibraryGetModule, "stale-handle", (&m, l), OUT_C(m));
    CALLO(cuLibraryGetKernelCount, "stale-handle", (&count, l), OUT_C(count));
    CALLO(cuLibraryGetGlobal, "stale-handle", (&p, &bytes, l, "counter"), OUT_C(p), OUT_C(bytes));
    l = load(image_kernels_cubin);
    k = kernel(l, "empty");
    SETUP(cuLibraryUnload, (l));
    CALLO(cuKernelGetName, "stale-handle", (&name, k), OUT_C(name));
    CALLO(cuKernelGetLibrary, "stale-handle", (&back, k), OUT_C(back));
    CALLO(cuKernelGetFunction, "stale-handle", (&f, k), OUT_C(f));
    CALLO(cuKernelGetAttribute, "stale-handle", (&value, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 0),
          OUT_C(value));
}
