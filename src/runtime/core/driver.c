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

/*
 * Guards what is published. It is not held while the library is opened, asked or initialized: a
 * thread that is within dlopen holds the loader's lock, and a constructor there may need this one.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *_Atomic library;

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

static void *ask(void *opened, resolver resolve, const struct row *row, int newest) {
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    cuuint64_t flags = row->kind == PLAIN ? CU_GET_PROC_ADDRESS_LEGACY_STREAM
                                          : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (!resolve || row->version > newest ||
        resolve(row->name, &found, row->version, flags, &status) != CUDA_SUCCESS)
        found = NULL;
    return found ? found : dlsym(opened, row->symbol);
}

static void fill(void *opened, bool interprets, gpumem_driver_api *table) {
    /* softgpu exports each row under its own name: a thousand lines less in its trace. */
    void *symbol = interprets ? NULL : dlsym(opened, "cuGetProcAddress_v2");
    any_fn *slots = (any_fn *)(void *)table;
    resolver resolve;
    memcpy(&resolve, &symbol, sizeof resolve);
    int newest = INT_MAX;
    *table = absent;
    symbol = dlsym(opened, "cuDriverGetVersion");
    if (symbol)
        memcpy(&table->cuDriverGetVersion, &symbol, sizeof symbol);
    if (table->cuDriverGetVersion(&newest) != CUDA_SUCCESS)
        newest = INT_MAX;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        void *found = ask(opened, resolve, &rows[i], newest);
        if (found)
            memcpy(&slots[i], &found, sizeof found);
    }
}

/* Threads that come at once all fill a table, and the first one's is taken. */
bool rt_load_driver(void) {
    static _Atomic(bool) reported;
    gpumem_driver_api table;
    if (atomic_load_explicit(&library, memory_order_acquire))
        return true;
    /* Never unloaded: the driver's threads outlive any count of references. */
    void *opened = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!opened)
        return false;
    bool interprets = dlsym(opened, "softgpu_version") != NULL;
    if (!atomic_exchange(&reported, true))
        rt_report_to(opened);
    fill(opened, interprets, &table);
    pthread_mutex_lock(&lock);
    if (!atomic_load(&library)) {
        rt_driver = table;
        rt_driver_interprets = interprets;
        atomic_store_explicit(&library, opened, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return true;
}

/* A lock that another thread held at the fork stays held in the child for ever. */
static void in_child(void) {
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    rt_registry_in_child();
    if (atomic_load(&rt_phase) == RT_READY)
        atomic_store(&rt_phase, RT_FORKED);
}

/* With the lock: the driver is initialized, with so many devices. */
static cudaError_t be_ready(int count) {
    static bool watched;
    if (!watched)
        watched = pthread_atfork(NULL, NULL, in_child) == 0;
    if (!watched)
        return cudaErrorMemoryAllocation;
    rt_device_count = count;
    atomic_store_explicit(&rt_phase, RT_READY, memory_order_release);
    return cudaSuccess;
}

cudaError_t rt_open(void) {
    int version = 0, count = 0;
    if (atomic_load(&rt_phase) == RT_FORKED)
        return cudaErrorInitializationError;
    if (!rt_load_driver() || CU(cuDriverGetVersion)(&version) != CUDA_SUCCESS ||
        version < RT_ABI * 1000)
        return cudaErrorInsufficientDriver;
    cudaError_t error = rt_error(CU(cuInit)(0));
    if (error == cudaSuccess)
        error = rt_error(CU(cuDeviceGetCount)(&count));
    if (error == cudaSuccess && count == 0)
        error = cudaErrorNoDevice;
    if (error != cudaSuccess)
        return error;
    pthread_mutex_lock(&lock);
    if (atomic_load(&rt_phase) == RT_UNOPENED)
        error = be_ready(count);
    pthread_mutex_unlock(&lock);
    return error;
}
