/*
 * The context of a call. Nothing is made before a call needs it: then the primary context of the
 * thread's device is retained, once in the process, and made current. A context that the program
 * made current itself is used and left alone.
 */
#include "runtime/core/runtime.h"

#include <pthread.h>

_Atomic(unsigned) rt_generation;

enum { DEVICES = 128 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* NULL where none is retained. After a reset the driver gives the same handle again. */
static CUcontext primaries[DEVICES], known[DEVICES];

static cudaError_t check(int device) {
    return device >= 0 && device < rt_device_count && device < DEVICES ? cudaSuccess
                                                                       : cudaErrorInvalidDevice;
}

cudaError_t rt_primary(int device, CUcontext *context) {
    cudaError_t error = check(device);
    if (error != cudaSuccess)
        return error;
    pthread_mutex_lock(&lock);
    if (!primaries[device])
        error = rt_error(CU(cuDevicePrimaryCtxRetain)(&primaries[device], device));
    if (error == cudaSuccess)
        *context = known[device] = primaries[device];
    else
        primaries[device] = NULL;
    pthread_mutex_unlock(&lock);
    return error;
}

/* The device whose primary context was reset while it is current in this thread; or -1. */
static int device_of_reset(CUcontext now) {
    int found = -1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < rt_device_count && i < DEVICES; i++)
        if (known[i] == now && !primaries[i])
            found = i;
    pthread_mutex_unlock(&lock);
    return found;
}

static cudaError_t make_current(int device) {
    unsigned generation = atomic_load(&rt_generation);
    CUcontext context = NULL;
    cudaError_t error = rt_primary(device, &context);
    if (error == cudaSuccess)
        error = rt_error(CU(cuCtxSetCurrent)(context));
    if (error != cudaSuccess)
        return error;
    rt_self.device = device;
    rt_self.context = context;
    rt_self.generation = generation;
    return cudaSuccess;
}

cudaError_t rt_make_context(CUcontext now) {
    unsigned generation = atomic_load(&rt_generation);
    int device = now ? device_of_reset(now) : rt_self.device;
    if (device >= 0)
        return make_current(device);
    CUdevice of_context;
    if (CU(cuCtxGetDevice)(&of_context) == CUDA_SUCCESS)
        rt_self.device = of_context;
    rt_self.context = now;
    rt_self.generation = generation;
    return cudaSuccess;
}

cudaError_t rt_current_device(int *device) {
    CUcontext now = NULL;
    CUdevice of_context;
    if (CU(cuCtxGetCurrent)(&now) == CUDA_SUCCESS && now && now != rt_self.context &&
        CU(cuCtxGetDevice)(&of_context) == CUDA_SUCCESS)
        *device = of_context;
    else
        *device = rt_self.device;
    return cudaSuccess;
}

cudaError_t rt_cudaGetDevice(int *device) {
    return device ? rt_current_device(device) : cudaErrorInvalidValue;
}

cudaError_t rt_cudaSetDevice(int device) {
    cudaError_t error = check(device);
    return error == cudaSuccess ? make_current(device) : error;
}

cudaError_t rt_cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags) {
    enum { FLAGS_ARE_VALID = 1 };
    CUcontext context;
    cudaError_t error = check(device);
    if (error == cudaSuccess && (flags & ~(unsigned)FLAGS_ARE_VALID))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && (flags & FLAGS_ARE_VALID))
        error = rt_error(CU(cuDevicePrimaryCtxSetFlags_v2)(device, deviceFlags));
    return error == cudaSuccess ? rt_primary(device, &context) : error;
}

/* Takes this process's part in the device down. Whatever uses the device next makes it anew. */
cudaError_t rt_cudaDeviceReset(void) {
    int device = 0;
    rt_current_device(&device);
    cudaError_t error = check(device);
    if (error != cudaSuccess)
        return error;
    error = rt_error(CU(cuDevicePrimaryCtxReset_v2)(device));
    if (error != cudaSuccess)
        return error;
    pthread_mutex_lock(&lock);
    bool retained = primaries[device] != NULL;
    primaries[device] = NULL;
    atomic_fetch_add(&rt_generation, 1);
    pthread_mutex_unlock(&lock);
    if (retained)
        CU(cuDevicePrimaryCtxRelease_v2)(device);
    if (rt_self.context)
        CU(cuCtxSetCurrent)(NULL);
    rt_self.context = NULL;
    rt_self.last = cudaSuccess;
    return cudaSuccess;
}

cudaError_t rt_cudaDeviceSynchronize(void) {
    return rt_error(CU(cuCtxSynchronize)());
}

#if RT_ABI == 12
cudaError_t rt_cudaThreadExit(void) {
    return rt_cudaDeviceReset();
}

cudaError_t rt_cudaThreadSynchronize(void) {
    return rt_cudaDeviceSynchronize();
}
#endif

/* The runtime's flags are the driver's; MapHost is always so, and is what makes no difference. */
enum { SCHEDULE = 7, MAP_HOST = 8, LMEM_RESIZE = 16, SYNC_MEMOPS = 128, ALL_FLAGS = 159 };

cudaError_t rt_cudaSetDeviceFlags(unsigned int flags) {
    int device = 0;
    unsigned schedule = flags & SCHEDULE;
    if ((flags & ~(unsigned)ALL_FLAGS) || (schedule & (schedule - 1)))
        return cudaErrorInvalidValue;
    rt_current_device(&device);
    return rt_error(CU(cuDevicePrimaryCtxSetFlags_v2)(device, flags & ~(unsigned)MAP_HOST));
}

cudaError_t rt_cudaGetDeviceFlags(unsigned int *flags) {
    int device = 0, active = 0;
    unsigned found = 0;
    if (!flags)
        return cudaErrorInvalidValue;
    rt_current_device(&device);
    cudaError_t error = rt_error(CU(cuDevicePrimaryCtxGetState)(device, &found, &active));
    if (error == cudaSuccess)
        *flags = found | MAP_HOST;
    return error;
}

cudaError_t rt_cudaGetDeviceCount(int *count) {
    if (!count)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_need_driver();
    *count = error == cudaSuccess ? rt_device_count : 0;
    return error;
}

cudaError_t rt_cudaSetValidDevices(int *device_arr, int len) {
    if (len < 0 || (len && !device_arr))
        return cudaErrorInvalidValue;
    for (int i = 0; i < len; i++)
        if (check(device_arr[i]) != cudaSuccess)
            return cudaErrorInvalidDevice;
    rt_self.device = len ? device_arr[0] : 0;
    return cudaSuccess;
}

cudaError_t rt_cudaDriverGetVersion(int *version) {
    if (!version)
        return cudaErrorInvalidValue;
    if (!rt_load_driver()) {
        *version = 0;
        return cudaSuccess;
    }
    return rt_error(CU(cuDriverGetVersion)(version));
}

cudaError_t rt_cudaRuntimeGetVersion(int *version) {
    if (!version)
        return cudaErrorInvalidValue;
    *version = RT_VERSION;
    return cudaSuccess;
}
