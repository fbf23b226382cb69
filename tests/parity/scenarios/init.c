/* Initialization, versions, error names, cuGetProcAddress, fork and exit. */
#include "../parity.h"

#include <sys/wait.h>

SCENARIO(before_init, "init/before") {
    int n;
    size_t bytes;
    CUdevice dev;
    CUcontext ctx;
    CUdeviceptr p;
    void *host;
    CUstream stream;
    CUevent event;
    CUmemoryPool pool;
    unsigned flags;
    CALLO(cuDriverGetVersion, "ok", (&n), OUT_I(n));
    CALLO(cuDeviceGetCount, "not-initialized", (&n), OUT_I(n));
    CALLO(cuDeviceGetCount, "null-out", (NULL), OUT_I(n));
    CALLO(cuDeviceGet, "not-initialized", (&dev, 0), OUT_I(dev));
    CALLO(cuDeviceGetAttribute, "not-initialized", (&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
          OUT_I(n));
    CALLO(cuDeviceTotalMem_v2, "not-initialized", (&bytes, 0), OUT_U(bytes));
    CALLO(cuCtxGetCurrent, "not-initialized", (&ctx), OUT_H(ctx));
    CALL(cuCtxSetCurrent, "not-initialized", (NULL));
    CALLO(cuCtxGetDevice, "not-initialized", (&dev), OUT_I(dev));
    CALLO(cuDevicePrimaryCtxRetain, "not-initialized", (&ctx, 0), OUT_H(ctx));
    CALLO(cuMemAlloc_v2, "not-initialized", (&p, 4096), OUT_P(p));
    CALL(cuMemFree_v2, "not-initialized", (0));
    CALLO(cuMemHostAlloc, "not-initialized", (&host, 4096, 0), OUT_P(host));
    CALLO(cuMemAddressReserve, "not-initialized", (&p, PAR_2M, 0, 0, 0), OUT_P(p));
    CALLO(cuStreamCreate, "not-initialized", (&stream, 0), OUT_H(stream));
    CALLO(cuEventCreate, "not-initialized", (&event, 0), OUT_H(event));
    CALLO(cuDeviceGetDefaultMemPool, "not-initialized", (&pool, 0), OUT_H(pool));
    CALLO(cuDevicePrimaryCtxGetState, "not-initialized", (0, &flags, &n), OUT_U(flags), OUT_I(n));
    CALL(cuDevicePrimaryCtxSetFlags_v2, "not-initialized", (0, 0));
    CALLO(cuPointerGetAttribute, "not-initialized", (&n, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1000),
          OUT_I(n));
}

SCENARIO(init_flags, "init/flags") {
    static const unsigned bad[] = {1, 2, 0x80000000u, ~0u};
    int n;
    for (size_t i = 0; i < COUNT(bad); i++) {
        par_note("flags=0x%x", bad[i]);
        CALL(cuInit, "bad-flags", (bad[i]));
        CALLO(cuDeviceGetCount, "after-refused-init", (&n), OUT_I(n));
    }
    CALL(cuInit, "ok", (0));
    CALL(cuInit, "again", (0));
    CALL(cuInit, "bad-flags-again", (1));
    CALL(cuDriverGetVersion, "null-out", (NULL));
    CALLO(cuDriverGetVersion, "ok", (&n), OUT_I(n));
}

static void error_text(int code) {
    const char *name, *text;
    const char *cls = par_result_name((CUresult)code) != NULL ? "known" : "unknown";
    par_note("%d", code);
    CALLO(cuGetErrorName, cls, ((CUresult)code, &name), OUT_Z(name));
    par_note("%d", code);
    CALLO(cuGetErrorString, cls, ((CUresult)code, &text), OUT_Z(text));
}

SCENARIO(error_names, "init/error-names") {
    static const int unknown[] = {9,         33,  35,  37,  47,   99,    103, 199,
                                  203,       204, 227, 299, 305,  403,   499, 501,
                                  599,       601, 699, 706, 707,  722,   799, 813,
                                  899,       917, 918, 998, 1000, 10000, -1,  -2147483647 - 1,
                                  2147483647};
    for (size_t i = 0; par_result_code(i) >= 0; i++)
        error_text(par_result_code(i));
    for (size_t i = 0; i < COUNT(unknown); i++)
        error_text(unknown[i]);
}

SCENARIO_IS(error_null_name, "init/error-null-name",
            CALL(cuGetErrorName, "null-out", (CUDA_SUCCESS, NULL)));
SCENARIO_IS(error_null_string, "init/error-null-string",
            CALL(cuGetErrorString, "null-out", (CUDA_SUCCESS, NULL)));

static void proc_one(const char *cls, const char *name, int version, cuuint64_t flags) {
    void *fn;
    CUdriverProcAddressQueryResult status;
    par_note("%s %d flags=%llu", name != NULL ? name : "NULL", version, (unsigned long long)flags);
    CALLO(cuGetProcAddress_v2, cls, (name, &fn, version, flags, &status), OUT_C(fn), OUT_I(status));
}

SCENARIO(proc_address, "init/proc-address") {
    static const int versions[] = {0,    -1,    1000,  2000,  3010,  3020,  4000,  5000,    6000,
                                   7000, 11020, 12000, 12080, 13000, 13010, 14000, 99999999};
    for (size_t i = 0; i < COUNT(versions); i++) {
        proc_one("version", "cuMemAlloc", versions[i], 0);
        proc_one("version", "cuCtxCreate", versions[i], 0);
        proc_one("version", "cuMemAllocAsync", versions[i], 0);
        proc_one("version", "cuStreamQuery", versions[i], 2);
    }
    proc_one("unknown-name", "cuNoSuchFunction", 12080, 0);
    proc_one("unknown-name", "", 12080, 0);
    proc_one("unknown-name", "malloc", 12080, 0);
    proc_one("unknown-name", "CUMEMALLOC", 12080, 0);
    proc_one("suffixed-name", "cuMemAlloc_v2", 12080, 0);
    proc_one("suffixed-name", "cuStreamQuery_ptsz", 12080, 0);
    proc_one("suffixed-name", "cuMemcpy_ptds", 12080, 0);
    proc_one("internal-name", "cuGetExportTable", 12080, 0);
    proc_one("old-name", "cuCtxAttach", 13000, 0);
    proc_one("old-name", "cuTexRefCreate", 13000, 0);
    proc_one("old-name", "cuParamSetv", 13000, 0);
    proc_one("not-exported", "cuEventCreateFromEGLSync", 13000, 0);
    proc_one("not-exported", "cuMemcpyWithAttributesAsync", 13000, 0);
    for (cuuint64_t flags = 0; flags < 8; flags++) {
        proc_one("flags", "cuMemAlloc", 12080, flags);
        proc_one("flags", "cuStreamQuery", 12080, flags);
    }
    proc_one("flags", "cuStreamQuery", 12080, ~(cuuint64_t)0);
    proc_one("null-name", NULL, 12080, 0);
}

SCENARIO(proc_address_outputs, "init/proc-address-outputs") {
    void *fn;
    CUdriverProcAddressQueryResult status;
    CALLO(cuGetProcAddress_v2, "null-status", ("cuInit", &fn, 12080, 0, NULL), OUT_C(fn));
    CALLO(cuGetProcAddress_v2, "null-status-unknown", ("cuNone", &fn, 12080, 0, NULL), OUT_C(fn));
    CALLO(cuGetProcAddress, "ok", ("cuInit", &fn, 12080, 0), OUT_C(fn));
    CALLO(cuGetProcAddress, "ok", ("cuMemAlloc", &fn, 2000, 0), OUT_C(fn));
    CALLO(cuGetProcAddress, "unknown-name", ("cuNone", &fn, 12080, 0), OUT_C(fn));
    CALLO(cuGetProcAddress, "version-too-low", ("cuMemAllocAsync", &fn, 2000, 0), OUT_C(fn));
    CALLO(cuGetProcAddress, "bad-flags", ("cuInit", &fn, 12080, 3), OUT_C(fn));
    CALLO(cuGetProcAddress, "null-name", (NULL, &fn, 12080, 0), OUT_C(fn));
    CALLO(cuGetProcAddress_v2, "null-out", ("cuInit", NULL, 12080, 0, &status), OUT_I(status));
    CALL(cuGetProcAddress, "null-out", ("cuInit", NULL, 12080, 0));
}

/* What asking for a name at a version gives is the table's row, or another one. */
SCENARIO(proc_address_identity, "init/proc-address-identity") {
    static const char *const names[] = {"cuMemAlloc",
                                        "cuCtxCreate",
                                        "cuMemcpyHtoD",
                                        "cuStreamQuery",
                                        "cuDevicePrimaryCtxReset",
                                        "cuMemHostRegister",
                                        "cuStreamWaitValue32",
                                        "cuGetProcAddress",
                                        "cuCtxGetDevice"};
    static const int versions[] = {2000, 3020, 7000, 11000, 11070, 12000, 12050, 13000};
    for (size_t n = 0; n < COUNT(names); n++) {
        void *last = NULL;
        for (size_t v = 0; v < COUNT(versions); v++) {
            void *fn = NULL;
            par.api->cuGetProcAddress_v2(names[n], &fn, versions[v], 0, NULL);
            par_note("%s %d", names[n], versions[v]);
            par_see("entry-point", fn == NULL ? "none" : fn == last ? "same" : "changed");
            last = fn;
        }
    }
}

/* Every row of the table: is it there under its version, and does its own version differ from the
 * one just below? */
SCENARIO(proc_address_table, "init/proc-address-table") {
    for (int i = 0; i < GPUMEM_FN_COUNT; i++) {
        const gpumem_driver_fn_info *info = gpumem_driver_fn_info_get((gpumem_driver_fn)i);
        void *fn = NULL, *below = NULL;
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS, low = status;
        cuuint64_t flags = info->kind == GPUMEM_FN_PLAIN
                               ? CU_GET_PROC_ADDRESS_LEGACY_STREAM
                               : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
        par.api->cuGetProcAddress_v2(info->name, &fn, info->version, flags, &status);
        par.api->cuGetProcAddress_v2(info->name, &below, info->version - 10, flags, &low);
        par_note("%s %d", info->symbol, info->version);
        par_see("row", "%s status=%d below: %s status=%d", fn != NULL ? "found" : "none",
                (int)status,
                below == NULL ? "none"
                : below == fn ? "same"
                              : "other",
                (int)low);
    }
}

static void calls_in_fork(void) {
    int n;
    size_t bytes;
    CUdeviceptr p;
    CUcontext ctx;
    const char *name;
    void *fn;
    CUdriverProcAddressQueryResult status;
    par_rename("forked");
    CALL(cuInit, "after-fork", (0));
    CALLO(cuDriverGetVersion, "after-fork", (&n), OUT_I(n));
    CALLO(cuDeviceGetCount, "after-fork", (&n), OUT_I(n));
    CALLO(cuGetErrorName, "after-fork", (CUDA_ERROR_UNKNOWN, &name), OUT_Z(name));
    CALLO(cuGetProcAddress_v2, "after-fork", ("cuInit", &fn, 12080, 0, &status), OUT_C(fn),
          OUT_I(status));
    CALLO(cuCtxGetCurrent, "after-fork", (&ctx), OUT_H(ctx));
    CALL(cuCtxSetCurrent, "after-fork", (par.primary));
    CALLO(cuMemAlloc_v2, "after-fork", (&p, 4096), OUT_P(p));
    CALLO(cuMemGetInfo_v2, "after-fork", (&bytes, &bytes), OUT_U(bytes));
    CALL(cuCtxSynchronize, "after-fork", ());
    CALLO(cuMemAddressReserve, "after-fork", (&p, PAR_2M, 0, 0, 0), OUT_P(p));
    CALL(cuDevicePrimaryCtxReset_v2, "after-fork", (0));
    _exit(0);
}

SCENARIO(forked_after_context, "init/fork-after-context") {
    par_no_restart();
    par_context();
    if (fork() == 0)
        calls_in_fork();
    wait(NULL);
    CALL(cuCtxSynchronize, "parent-after-fork", ());
}

/* Fork between cuInit and the first context. */
SCENARIO(forked_after_init, "init/fork-after-init") {
    par_no_restart();
    par_init();
    if (fork() == 0)
        calls_in_fork();
    wait(NULL);
}

/* Fork with the library loaded and cuInit not yet called. */
SCENARIO(forked_before_init, "init/fork-before-init") {
    int n;
    par_no_restart();
    if (fork() == 0) {
        par_rename("forked");
        CALL(cuInit, "first-in-child", (0));
        CALLO(cuDeviceGetCount, "ok", (&n), OUT_I(n));
        _exit(0);
    }
    wait(NULL);
    CALL(cuInit, "ok", (0));
}

static void calls_at_exit(void) {
    int n;
    CUdeviceptr p;
    CUcontext ctx;
    size_t bytes;
    const char *name;
    CALLO(cuDriverGetVersion, "at-exit", (&n), OUT_I(n));
    CALL(cuInit, "at-exit", (0));
    CALLO(cuDeviceGetCount, "at-exit", (&n), OUT_I(n));
    CALLO(cuGetErrorName, "at-exit", (CUDA_ERROR_UNKNOWN, &name), OUT_Z(name));
    CALLO(cuCtxGetCurrent, "at-exit", (&ctx), OUT_H(ctx));
    CALL(cuCtxSynchronize, "at-exit", ());
    CALLO(cuMemAlloc_v2, "at-exit", (&p, 4096), OUT_P(p));
    CALL(cuMemFree_v2, "at-exit", (0));
    CALLO(cuMemGetInfo_v2, "at-exit", (&bytes, &bytes), OUT_U(bytes));
    CALL(cuDevicePrimaryCtxRelease_v2, "at-exit", (0));
}

SCENARIO(at_exit, "init/at-exit") {
    atexit(calls_at_exit);
    par_context();
    exit(0);
}

SCENARIO(at_exit_registered_late, "init/at-exit-registered-late", par_context) {
    atexit(calls_at_exit);
    exit(0);
}
