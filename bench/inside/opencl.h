/* The four kernels in OpenCL, by the CPU device that the OpenCL loader finds at run time. */
#ifndef BENCH_OPENCL_H
#define BENCH_OPENCL_H

#include <stdbool.h>
#include <stddef.h>

/* False, and why, where there is no OpenCL with a CPU device. Its threads are one. */
bool opencl_open(char *why, size_t size);
const char *opencl_name(void);

struct opencl_kernel {
    const char *name;
    size_t grid[2], block[2]; /* grid: work items */
    void *buffers[3];         /* host memory of each buffer argument; NULL: fewer */
    size_t sizes[3];
    const void *numbers[2]; /* 4 bytes each, behind the buffers; NULL: fewer */
};
/* CPU time of the process in ms, the least of several runs; below 0 where it fails. */
double opencl_time(const struct opencl_kernel *kernel);

#endif
