/* The four kernels in OpenCL, on the CPU device that the OpenCL loader finds at run time. */
#ifndef BENCH_OPENCL_H
#define BENCH_OPENCL_H

#include <stdbool.h>
#include <stddef.h>

/* Uses one thread. False, with the reason in `why`, if there is no OpenCL with a CPU device. */
bool opencl_open(char *why, size_t size);
const char *opencl_name(void);

struct opencl_kernel {
    const char *name;
    size_t grid[2], block[2]; /* grid: work items */
    void *buffers[3];         /* host memory of each buffer argument; NULL: fewer */
    size_t sizes[3];
    const void *numbers[2]; /* 4 bytes each, after the buffers; NULL: fewer */
};
/* CPU time of the process in ms, the minimum of several runs; negative on failure. */
double opencl_time(const struct opencl_kernel *kernel);

#endif
