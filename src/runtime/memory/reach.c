/* Whether memory is there that a program names: NVIDIA's libraries crash where it is not. */
#include "runtime/memory/reach.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel reads the set before it finds that there is no such operation. NULL were no set. */
static bool reads(uintptr_t address) {
    enum { NO_OPERATION = -1, SET_BYTES = 8 };
    int before = errno;
    if (address < RT_LOWEST)
        return false;
    bool fault = syscall(SYS_rt_sigprocmask, NO_OPERATION, address & ~(uintptr_t)(SET_BYTES - 1),
                         NULL, SET_BYTES) != 0 &&
                 errno == EFAULT;
    errno = before;
    return !fault;
}

bool rt_cpu_reads(const void *address, size_t size) {
    uintptr_t first = (uintptr_t)address, last;
    return !__builtin_add_overflow(first, size ? size - 1 : 0, &last) && reads(first) &&
           (last / RT_LOWEST == first / RT_LOWEST || reads(last));
}

cudaError_t rt_check_end(const void *address, size_t size, cudaStream_t stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned type = 0;
    if (!address || rt_cpu_reads(address, size))
        return cudaSuccess;
    /* A device's memory is nothing to the CPU, but the driver knows it. */
    CUresult result =
        CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, RT_ADDRESS(address));
    if (result != CUDA_ERROR_INVALID_VALUE)
        return rt_error(result);
    /* Whether the stream may be used at all comes first; in a capture nothing is touched yet. */
    result = CU(cuStreamIsCapturing)(stream, &status);
    if (result != CUDA_SUCCESS)
        return rt_error(result);
    return status == CU_STREAM_CAPTURE_STATUS_NONE ? cudaErrorInvalidValue : cudaSuccess;
}
