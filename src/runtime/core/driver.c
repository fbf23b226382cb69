/*
 * Opens the driver, libcuda.so.1, when a call first needs it: a program that only loads this
 * library runs where there is none. Each function is asked for at the version of its row, so that
 * exactly one ABI is bound.
 */
#include "runtime/core/runtime.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

gpumem_driver_api rt_driver;
_Atomic(int) rt_phase;
int rt_device_count;
bool rt_driver_interprets;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;

typedef void (*any_fn)(void);

/* Stands in for what the driver lacks. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define CU_FN(symbol, name, version, kind, params, args)                                           \
    static CUresult CUDAAPI absent_##symbol params {                                               \
        static _Atomic(bool) said;                                                                 \
        return (CUresult)rt_refuse(#symbol, &said);                                                \
    }
#include <gpumem/functions.def>
#pragma GCC diagnostic pop

static const gpumem_driver_api absent = {
#define CU_FN(symbol, name, version, kind, params, args) .symbol = absent_##symbol,
#include <gpumem/functions.def>
};

enum { PLAIN, PTDS, PTSZ };
static const struct row {
    const char *symbol, *name;
    int version, kind;
} rows[] = {
#define CU_FN(symbol, name, version, kind, params, args) {#symbol, #name, version, kind},
#include <gpumem/functions.def>
};
#define ROW_COUNT (sizeof rows / sizeof *rows)
_Static_assert(sizeof(gpumem_driver_api) == ROW_COUNT * sizeof(any_fn), "a pointer for each row");

typedef CUresult(CUDAAPI *resolver)(const char *, void **, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult *);

static void *ask(resolver resolve, const struct row *row, int newest) {
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    cuuint64_t flags = row->kind == PLAIN ? CU_GET_PROC_ADDRESS_LEGACY_STREAM
                                          : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!resolve || row->version > newest ||
        resolve(row->name, &found, row->version, flags, &status) != CUDA_SUCCESS)
        found = NULL;
    return found ? found : dlsym(library, row->symbol);
}

static void fill(void) {
    /* softgpu exports each row under its own name: a thousand lines less in its trace. */
    void *symbol = rt_driver_interprets ? NULL : dlsym(library, "cuGetProcAddress_v2");
    any_fn *slots = (any_fn *)(void *)&rt_driver;
    resolver resolve;
    memcpy(&resolve, &symbol, sizeof resolve);
    int newest = INT_MAX;
    rt_driver = absent;
    symbol = dlsym(library, "cuDriverGetVersion");
    if (symbol)
        memcpy(&rt_driver.cuDriverGetVersion, &symbol, sizeof symbol);
    if (rt_driver.cuDriverGetVersion(&newest) != CUDA_SUCCESS)
        newest = INT_MAX;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        void *found = ask(resolve, &rows[i], newest);
        if (found)
            memcpy(&slots[i], &found, sizeof found);
    }
}

static bool load(void) {
    if (library)
        return true;
    /* Never unloaded: the driver's threads outlive any count of references. */
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library) {
        rt_driver_interprets = dlsym(library, "softgpu_version") != NULL;
        rt_report_to(library);
        fill();
    }
    return library != NULL;
}

bool rt_load_driver(void) {
    pthread_mutex_lock(&lock);
    bool loaded = load();
    pthread_mutex_unlock(&lock);
    return loaded;
}

/* A lock that another thread held at the fork stays held in the child for ever. */
static void in_child(void) {
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    if (atomic_load(&rt_phase) == RT_READY)
        atomic_store(&rt_phase, RT_FORKED);
}

static cudaError_t start(void) {
    static bool watched;
    int version = 0;
    if (!load() || CU(cuDriverGetVersion)(&version) != CUDA_SUCCESS || version < RT_ABI * 1000)
        return cudaErrorInsufficientDriver;
    cudaError_t error = rt_error(CU(cuInit)(0));
    if (error != cudaSuccess)
        return error;
    error = rt_error(CU(cuDeviceGetCount)(&rt_device_count));
    if (error == cudaSuccess && rt_device_count == 0)
        error = cudaErrorNoDevice;
    if (error == cudaSuccess && !watched) {
        watched = pthread_atfork(NULL, NULL, in_child) == 0;
        if (!watched)
            error = cudaErrorMemoryAllocation;
    }
    return error;
}

cudaError_t rt_open(void) {
    if (atomic_load(&rt_phase) == RT_FORKED)
        return cudaErrorInitializationError;
    pthread_mutex_lock(&lock);
    cudaError_t error = cudaSuccess;
    if (atomic_load(&rt_phase) == RT_UNOPENED) {
        error = start();
        if (error == cudaSuccess)
            atomic_store_explicit(&rt_phase, RT_READY, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return error;
}
