#include "opencl.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The few functions and constants of OpenCL 1.2 that are used here, from its specification. */
typedef void *handle;
#define CPU_DEVICES     ((uint64_t)1 << 1)
#define DEVICE_NAME     0x102B
#define USE_HOST_MEMORY ((uint64_t)1 << 3)

static struct {
    int32_t (*clGetPlatformIDs)(uint32_t, handle *, uint32_t *);
    int32_t (*clGetDeviceIDs)(handle, uint64_t, uint32_t, handle *, uint32_t *);
    int32_t (*clGetDeviceInfo)(handle, uint32_t, size_t, void *, size_t *);
    handle (*clCreateContext)(const intptr_t *, uint32_t, const handle *, void *, void *,
                              int32_t *);
    handle (*clCreateCommandQueue)(handle, handle, uint64_t, int32_t *);
    handle (*clCreateProgramWithSource)(handle, uint32_t, const char **, const size_t *, int32_t *);
    int32_t (*clBuildProgram)(handle, uint32_t, const handle *, const char *, void *, void *);
    handle (*clCreateKernel)(handle, const char *, int32_t *);
    handle (*clCreateBuffer)(handle, uint64_t, size_t, void *, int32_t *);
    int32_t (*clSetKernelArg)(handle, uint32_t, size_t, const void *);
    int32_t (*clEnqueueNDRangeKernel)(handle, handle, uint32_t, const size_t *, const size_t *,
                                      const size_t *, uint32_t, const handle *, handle *);
    int32_t (*clFinish)(handle);
    int32_t (*clReleaseMemObject)(handle);
    int32_t (*clReleaseKernel)(handle);
} cl;

static handle device, context, queue, program;
static char device_name[200];

static const char text[] =
    "kernel void saxpy(global float *y, global const float *x, float a, int n) {\n"
    "    int i = get_global_id(0); if (i < n) y[i] = fma(a, x[i], y[i]); }\n"
    "kernel void matmul(global float *c, global const float *a, global const float *b, int n) {\n"
    "    local float as[16][16], bs[16][16]; int x = get_local_id(0), y = get_local_id(1);\n"
    "    int row = get_global_id(1), col = get_global_id(0); float sum = 0;\n"
    "    for (int t = 0; t < n; t += 16) {\n"
    "        as[y][x] = a[row * n + t + x]; bs[y][x] = b[(t + y) * n + col];\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        for (int k = 0; k < 16; k++) sum = fma(as[y][k], bs[k][x], sum);\n"
    "        barrier(CLK_LOCAL_MEM_FENCE); }\n"
    "    c[row * n + col] = sum; }\n"
    "kernel void reduce(global float *out, global const float *in, int n) {\n"
    "    local float part[256]; int t = get_local_id(0); float v = 0;\n"
    "    for (int i = get_global_id(0); i < n; i += get_global_size(0)) v += in[i];\n"
    "    part[t] = v;\n"
    "    for (int d = 128; d; d >>= 1) { barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        if (t < d) part[t] += part[t + d]; }\n"
    "    if (t == 0) out[get_group_id(0)] = part[0]; }\n"
    "kernel void histogram(global uint *bins, global const uchar *in, int n) {\n"
    "    local uint h[256]; int t = get_local_id(0); h[t] = 0; barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&h[in[i]]);\n"
    "    barrier(CLK_LOCAL_MEM_FENCE); if (h[t]) atomic_add(&bins[t], h[t]); }\n";

static bool say(char *why, size_t size, const char *what) {
    snprintf(why, size, "%s", what);
    return false;
}

static bool load(void) {
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
#define FIND(name)                                                                                 \
    do {                                                                                           \
        void *found = library ? dlsym(library, #name) : NULL;                                      \
        if (!found)                                                                                \
            return false;                                                                          \
        memcpy(&cl.name, &found, sizeof found);                                                    \
    } while (0)
    FIND(clGetPlatformIDs);
    FIND(clGetDeviceIDs);
    FIND(clGetDeviceInfo);
    FIND(clCreateContext);
    FIND(clCreateCommandQueue);
    FIND(clCreateProgramWithSource);
    FIND(clBuildProgram);
    FIND(clCreateKernel);
    FIND(clCreateBuffer);
    FIND(clSetKernelArg);
    FIND(clEnqueueNDRangeKernel);
    FIND(clFinish);
    FIND(clReleaseMemObject);
    FIND(clReleaseKernel);
#undef FIND
    return true;
}

bool opencl_open(char *why, size_t size) {
    handle platforms[8] = {0};
    uint32_t count = 0;
    const char *source = text;
    int32_t error = 0;
    setenv("POCL_MAX_PTHREAD_COUNT", "1", 1);
    setenv("POCL_CPU_MAX_CU_COUNT", "1", 1);
    if (!load())
        return say(why, size, "no libOpenCL.so.1 (Debian: ocl-icd-libopencl1)");
    if (cl.clGetPlatformIDs(8, platforms, &count) != 0 || count == 0)
        return say(why, size, "no OpenCL platform (Debian: pocl-opencl-icd)");
    for (uint32_t i = 0; i < count && i < 8 && !device; i++)
        if (cl.clGetDeviceIDs(platforms[i], CPU_DEVICES, 1, &device, NULL) != 0)
            device = NULL;
    if (!device)
        return say(why, size, "no OpenCL platform has a CPU device");
    cl.clGetDeviceInfo(device, DEVICE_NAME, sizeof device_name - 1, device_name, NULL);
    context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    queue = context ? cl.clCreateCommandQueue(context, device, 0, &error) : NULL;
    program = queue ? cl.clCreateProgramWithSource(context, 1, &source, NULL, &error) : NULL;
    if (!program || cl.clBuildProgram(program, 1, &device, "", NULL, NULL) != 0)
        return say(why, size, "the OpenCL kernels were not compiled");
    return true;
}

const char *opencl_name(void) {
    return device_name;
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec * 1e-6;
}

static double run(handle kernel, const struct opencl_kernel *what) {
    double best = 1e9;
    uint32_t axes = what->grid[1] > 1 ? 2 : 1;
    for (int i = 0; i < 7; i++) {
        double before = now();
        if (cl.clEnqueueNDRangeKernel(queue, kernel, axes, NULL, what->grid, what->block, 0, NULL,
                                      NULL) != 0 ||
            cl.clFinish(queue) != 0)
            return -1;
        double took = now() - before;
        best = took < best ? took : best;
    }
    return best;
}

double opencl_time(const struct opencl_kernel *what) {
    int32_t error = 0;
    handle buffers[3] = {0}, kernel = cl.clCreateKernel(program, what->name, &error);
    double result = -1;
    uint32_t arguments = 0;
    bool good = kernel != NULL;
    for (int i = 0; good && i < 3 && what->buffers[i]; i++) {
        buffers[i] =
            cl.clCreateBuffer(context, USE_HOST_MEMORY, what->sizes[i], what->buffers[i], &error);
        good = buffers[i] &&
               cl.clSetKernelArg(kernel, arguments++, sizeof buffers[i], &buffers[i]) == 0;
    }
    for (int i = 0; good && i < 2 && what->numbers[i]; i++)
        good = cl.clSetKernelArg(kernel, arguments++, 4, what->numbers[i]) == 0;
    if (good)
        result = run(kernel, what);
    for (int i = 0; i < 3; i++)
        if (buffers[i])
            cl.clReleaseMemObject(buffers[i]);
    if (kernel)
        cl.clReleaseKernel(kernel);
    return result;
}
