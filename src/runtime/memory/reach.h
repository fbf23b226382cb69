/* Whether memory is there that a program names. */
#ifndef RT_MEMORY_REACH_H
#define RT_MEMORY_REACH_H

#include "runtime/core/runtime.h"

/* The first page of a process has no memory. */
enum { RT_LOWEST = 4096 };

/* Both ends of a range can be read by the CPU. A call of the kernel, or two. */
bool rt_cpu_reads(const void *address, size_t size);

/* INVALID_VALUE where an end of a copy is neither the CPU's memory nor the driver's. NULL is the
 * driver's to refuse. */
cudaError_t rt_check_end(const void *address, size_t size, cudaStream_t stream);

/* The same for copies that must be quick: of addresses that no memory ever has. */
static inline cudaError_t rt_check_low(const void *to, const void *from, cudaStream_t stream) {
    bool low = RT_ADDRESS(to) < RT_LOWEST || RT_ADDRESS(from) < RT_LOWEST;
    if (__builtin_expect(!low, 1))
        return cudaSuccess;
    cudaError_t error = rt_check_end(to, 1, stream);
    return error == cudaSuccess ? rt_check_end(from, 1, stream) : error;
}

#endif
