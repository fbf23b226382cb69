/*
 * A driver whose hot calls cost nothing: the time of an allocation and its free over it is that of
 * the library itself. Everything else is softgpu's.
 *
 *     GPUMEM_DRIVER=$PWD/build/bench/costless_driver.so COSTLESS_OVER=LIBSOFTGPU
 *     build/bench/bench_pool
 *
 * COSTLESS_OVER is the path of libsoftgpu.so.0. The addresses that it returns are not memory.
 */
#include <dlfcn.h>
#include <gpumem/driver.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

typedef CUresult(CUDAAPI *resolver)(const char *, void **, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult *);

static CUresult CUDAAPI allocate(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
    (void)bytes, (void)pool, (void)stream;
    *pointer = 0x7f0000000000;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI free_it(CUdeviceptr pointer, CUstream stream) {
    (void)pointer, (void)stream;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI exchange(CUstreamCaptureMode *mode) {
    static _Thread_local CUstreamCaptureMode now;
    CUstreamCaptureMode before = now;
    now = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* The primary context, which the benchmarks make current. */
static CUcontext current;

static CUresult CUDAAPI set_current(CUcontext context) {
    current = context;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_current(CUcontext *context) {
    *context = current;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI capture_info(CUstream stream, CUstreamCaptureStatus *status,
                                     cuuint64_t *id) {
    (void)stream;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    *id = 0;
    return CUDA_SUCCESS;
}

typedef void (*any_fn)(void);
static const struct {
    const char *name;
    any_fn fn;
} own[] = {
    {"cuMemAllocFromPoolAsync", (any_fn)allocate},
    {"cuMemFreeAsync", (any_fn)free_it},
    {"cuThreadExchangeStreamCaptureMode", (any_fn)exchange},
    {"cuCtxSetCurrent", (any_fn)set_current},
    {"cuCtxGetCurrent", (any_fn)get_current},
    {"cuStreamGetCaptureInfo", (any_fn)capture_info},
};

static resolver softgpu(void) {
    const char *path = getenv("COSTLESS_OVER");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
    void *symbol = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    resolver found;
    memcpy(&found, &symbol, sizeof found);
    return found;
}

PUBLIC CUresult CUDAAPI cuGetProcAddress_v2(const char *name, void **fn, int version,
                                            cuuint64_t flags,
                                            CUdriverProcAddressQueryResult *status) {
    resolver below = softgpu();
    if (!below)
        return CUDA_ERROR_NOT_FOUND;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(name, own[i].name) != 0)
            continue;
        memcpy(fn, &own[i].fn, sizeof own[i].fn);
        return CUDA_SUCCESS;
    }
    return below(name, fn, version, flags, status);
}
