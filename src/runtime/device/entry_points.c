/* The driver's functions, for programs that call them beside the runtime. */
#include "runtime/core/runtime.h"

/* The driver's flags are the runtime's; in a twin, the default is the per-thread stream's. */
static cudaError_t find(const char *symbol, void **function, int version, unsigned long long flags,
                        cudaDriverEntryPointQueryResult *status) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    void *address = NULL;
    if (!symbol || !function)
        return cudaErrorInvalidValue;
    if (flags == CU_GET_PROC_ADDRESS_DEFAULT && rt_self.per_thread)
        flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    /* The empty name is one of no function, which the driver takes for a wrong argument. */
    cudaError_t error = cudaErrorSymbolNotFound;
    if (symbol[0])
        error = rt_error(CU(cuGetProcAddress_v2)(symbol, &address, version, flags, &found));
    if (error == cudaErrorSymbolNotFound) {
        error = status ? cudaSuccess : cudaErrorSymbolNotFound;
        address = NULL;
    }
    if (error != cudaSuccess)
        return error;
    *function = address;
    if (status)
        *status = found;
    return cudaSuccess;
}

cudaError_t rt_cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                       cudaDriverEntryPointQueryResult *driverStatus) {
    /* The version that the program was built for: this library's, as far as the driver knows it. */
    int version = 0;
    CU(cuDriverGetVersion)(&version);
    return find(symbol, funcPtr, version < RT_VERSION ? version : RT_VERSION, flags, driverStatus);
}

cudaError_t rt_cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
                                                unsigned int cudaVersion, unsigned long long flags,
                                                cudaDriverEntryPointQueryResult *driverStatus) {
    return find(symbol, funcPtr, (int)cudaVersion, flags, driverStatus);
}
