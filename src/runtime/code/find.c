/* What a program's address or handle of a function or variable stands for. */
#include "runtime/code/code.h"

#include <dlfcn.h>

cudaError_t rt_kernel_of(const struct rt_symbol *symbol, CUkernel *kernel) {
    CUlibrary library;
    cudaError_t error = rt_load_binary(symbol->binary, &library);
    if (error == cudaSuccess)
        error = rt_error(CU(cuLibraryGetKernel)(kernel, library, symbol->name));
    /* Registered, but not in the code that the device has. */
    return error == cudaErrorSymbolNotFound ? cudaErrorInvalidDeviceFunction : error;
}

static cudaError_t kernel_of(struct rt_symbol *symbol, CUkernel *kernel) {
    *kernel = atomic_load_explicit(&symbol->kernel, memory_order_acquire);
    if (*kernel)
        return cudaSuccess;
    cudaError_t error = rt_kernel_of(symbol, kernel);
    if (error == cudaSuccess)
        atomic_store_explicit(&symbol->kernel, *kernel, memory_order_release);
    return error;
}

/* An address within an object of the process is no handle of the driver's. */
static bool is_handle(const void *function) {
    Dl_info info;
    return function && dladdr(function, &info) == 0;
}

cudaError_t rt_find_function(const void *function, CUfunction *found) {
    struct rt_symbol *symbol = rt_find_symbol(RT_FUNCTIONS, function);
    CUkernel kernel;
    if (!symbol) {
        *found = (CUfunction)(uintptr_t)function;
        if (!function)
            return cudaErrorInvalidDeviceFunction;
        /* A launch of what nobody registered is, on an H200, one of a handle that is none. */
        return is_handle(function) ? cudaSuccess : cudaErrorInvalidResourceHandle;
    }
    cudaError_t error = kernel_of(symbol, &kernel);
    if (error == cudaSuccess)
        *found = (CUfunction)kernel; /* launches take a kernel in a function's place */
    return error;
}

cudaError_t rt_find_loaded_function(const void *function, CUfunction *found) {
    CUfunction launchable = NULL;
    cudaError_t error = rt_find_function(function, &launchable);
    if (error != cudaSuccess)
        return error;
    CUresult result = CU(cuKernelGetFunction)(found, (CUkernel)launchable);
    if (result == CUDA_ERROR_INVALID_HANDLE && !rt_find_symbol(RT_FUNCTIONS, function)) {
        *found = launchable; /* a cudaFunction_t */
        return cudaSuccess;
    }
    return rt_error(result);
}

void *rt_stub_of(CUfunction function, CUkernel kernel) {
    size_t place = 0;
    CUfunction loaded = NULL;
    for (struct rt_symbol *symbol; (symbol = rt_next_symbol(RT_FUNCTIONS, &place));) {
        CUkernel known = atomic_load(&symbol->kernel);
        if (known &&
            (known == kernel || known == (CUkernel)function ||
             (CU(cuKernelGetFunction)(&loaded, known) == CUDA_SUCCESS && loaded == function)))
            return (void *)(uintptr_t)symbol->host;
    }
    return function ? (void *)function : (void *)kernel;
}

cudaError_t rt_find_variable(const void *symbol, CUdeviceptr *address, size_t *size) {
    struct rt_symbol *variable = rt_find_symbol(RT_VARIABLES, symbol);
    CUlibrary library;
    if (!variable)
        return cudaErrorInvalidSymbol;
    cudaError_t error = rt_load_binary(variable->binary, &library);
    if (error != cudaSuccess)
        return error;
    CUresult result = variable->managed
                          ? CU(cuLibraryGetManaged)(address, size, library, variable->name)
                          : CU(cuLibraryGetGlobal)(address, size, library, variable->name);
    return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : rt_error(result);
}

cudaError_t rt_cudaGetSymbolAddress(void **devPtr, const void *symbol) {
    CUdeviceptr address = 0;
    size_t size;
    if (!devPtr)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_find_variable(symbol, &address, &size);
    if (error == cudaSuccess)
        *devPtr = (void *)(uintptr_t)address;
    return error;
}

cudaError_t rt_cudaGetSymbolSize(size_t *size, const void *symbol) {
    CUdeviceptr address;
    size_t found = 0;
    if (!size)
        return cudaErrorInvalidValue;
    cudaError_t error = rt_find_variable(symbol, &address, &found);
    if (error == cudaSuccess)
        *size = found;
    return error;
}

cudaError_t rt_cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr) {
    CUfunction found = NULL;
    if (!rt_find_symbol(RT_FUNCTIONS, symbolPtr))
        return cudaErrorInvalidDeviceFunction;
    cudaError_t error = rt_find_loaded_function(symbolPtr, &found);
    if (error == cudaSuccess && functionPtr) /* an H200 takes NULL, and says nothing */
        *functionPtr = found;
    return error;
}

cudaError_t rt_cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr) {
    struct rt_symbol *symbol = rt_find_symbol(RT_FUNCTIONS, entryFuncAddr);
    if (!kernelPtr)
        return cudaErrorInvalidValue;
    return symbol ? kernel_of(symbol, kernelPtr) : cudaErrorInvalidDeviceFunction;
}
