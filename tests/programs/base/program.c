#include "program.h"

#include <gpumem/gpumem.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gpumem_driver_api cu;
CUdevice program_device;
CUcontext program_context;
CUmodule program_module;

#define CANNOT_RUN 77

static const char *program_name;
static bool program_failed;
static gpumem_driver *driver;

static struct {
    void *host[256];
    CUdeviceptr device[256];
    unsigned hosts, devices;
} kept;

_Noreturn void program_cannot_run(const char *format, ...) {
    va_list args;
    printf("skip: ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    exit(CANNOT_RUN);
}

_Noreturn static void give_up(const char *what, const char *why) {
    fflush(stdout);
    fprintf(stderr, "%s: %s: %s\n", program_name, what, why);
    exit(1);
}

void program_result(CUresult got, const char *call, const char *file, int line) {
    if (got == CUDA_SUCCESS)
        return;
    const char *name = NULL;
    char where[600];
    if (!cu.cuGetErrorName || cu.cuGetErrorName(got, &name) != CUDA_SUCCESS)
        name = "an unknown error";
    snprintf(where, sizeof where, "%s:%d: %s", file, line, call);
    give_up(where, name);
}

/* Opens the driver that GPUMEM_DRIVER names, or else hardware's, or else softgpu. */
static void open_driver(void) {
    if (gpumem_driver_open(NULL, &driver) != GPUMEM_OK &&
        (getenv("GPUMEM_DRIVER") || gpumem_driver_open("softgpu", &driver) != GPUMEM_OK))
        give_up("the driver", gpumem_last_error()->message);
    cu = *gpumem_driver_table(driver);
}

void program_begin_empty(const char *name) {
    int devices = 0;
    program_name = name;
    printf("%s\n", name);
    open_driver();
    OK(cu.cuInit(0));
    OK(cu.cuDeviceGetCount(&devices));
    if (!devices)
        program_cannot_run("there is no device");
    OK(cu.cuDeviceGet(&program_device, 0));
    OK(cu.cuDevicePrimaryCtxRetain(&program_context, program_device));
    OK(cu.cuCtxSetCurrent(program_context));
}

/* Ends the program if the text's `.target` is newer than the device. */
static void check_target(void) {
    const char *target = strstr(program_kernels, ".target sm_");
    long wanted = target ? strtol(target + strlen(".target sm_"), NULL, 10) : 0;
    int had = 10 * device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
              device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    if (wanted > had)
        program_cannot_run("needs compute capability %ld.%ld", wanted / 10, wanted % 10);
}

/* The driver's log says which line of the text it refused. */
static void load_module(void) {
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUresult result =
        cu.cuModuleLoadDataEx(&program_module, program_kernels, COUNT(options), options, values);
    if (result != CUDA_SUCCESS && log[0])
        fprintf(stderr, "%s: %s\n", program_name, log);
    OK(result);
}

void program_begin(const char *name) {
    program_begin_empty(name);
    check_target();
    load_module();
}

int program_end(void) {
    OK(cu.cuCtxSynchronize());
    while (kept.devices)
        OK(cu.cuMemFree_v2(kept.device[--kept.devices]));
    if (program_module)
        OK(cu.cuModuleUnload(program_module));
    OK(cu.cuDevicePrimaryCtxRelease_v2(program_device));
    while (kept.hosts)
        free(kept.host[--kept.hosts]);
    gpumem_driver_close(driver);
    printf("%s\n", program_failed ? "failed" : "ok");
    return program_failed;
}

unsigned program_scale(unsigned more) {
    const char *text = getenv("GPUMEM_TEST_LONG");
    return text && strcmp(text, "1") == 0 ? more : 1;
}

/* ---- The driver ------------------------------------------------------------------------------ */

CUfunction program_kernel(const char *name) {
    CUfunction function;
    CUresult result = cu.cuModuleGetFunction(&function, program_module, name);
    program_result(result, name, __FILE__, __LINE__);
    return function;
}

static unsigned at_least_one(unsigned count) {
    return count ? count : 1;
}

static void launch(CUlaunchAttribute *attribute, CUfunction function, struct shape shape,
                   void **params) {
    CUlaunchConfig config = {.gridDimX = at_least_one(shape.blocks),
                             .gridDimY = at_least_one(shape.blocks_y),
                             .gridDimZ = at_least_one(shape.blocks_z),
                             .blockDimX = at_least_one(shape.threads),
                             .blockDimY = at_least_one(shape.threads_y),
                             .blockDimZ = at_least_one(shape.threads_z),
                             .sharedMemBytes = shape.shared,
                             .hStream = shape.stream,
                             .attrs = attribute,
                             .numAttrs = attribute != NULL};
    CUresult result = cu.cuLaunchKernelEx(&config, function, params, NULL);
    if (result == CUDA_ERROR_NOT_SUPPORTED)
        program_cannot_run("the driver does not run such a kernel");
    program_result(result, "cuLaunchKernelEx", __FILE__, __LINE__);
}

void program_launch(CUfunction function, struct shape shape, void **params) {
    launch(NULL, function, shape, params);
}

void program_launch_with(CUlaunchAttribute attribute, CUfunction function, struct shape shape,
                         void **params) {
    launch(&attribute, function, shape, params);
}

CUdeviceptr device_new(size_t bytes) {
    CUdeviceptr pointer;
    if (kept.devices == COUNT(kept.device))
        give_up("device_new", "too many allocations");
    OK(cu.cuMemAlloc_v2(&pointer, bytes));
    kept.device[kept.devices++] = pointer;
    OK(cu.cuMemsetD8_v2(pointer, 0, bytes));
    OK(cu.cuCtxSynchronize()); /* other streams do not wait for it */
    return pointer;
}

CUdeviceptr device_copy(const void *from, size_t bytes) {
    CUdeviceptr pointer = device_new(bytes);
    device_write(pointer, from, bytes);
    return pointer;
}

void device_read(void *to, CUdeviceptr from, size_t bytes) {
    OK(cu.cuMemcpyDtoH_v2(to, from, bytes));
}

void device_write(CUdeviceptr to, const void *from, size_t bytes) {
    OK(cu.cuMemcpyHtoD_v2(to, from, bytes));
    OK(cu.cuCtxSynchronize());
}

int device_attribute(CUdevice_attribute attribute) {
    int value = 0;
    OK(cu.cuDeviceGetAttribute(&value, attribute, program_device));
    return value;
}

/* ---- The host -------------------------------------------------------------------------------- */

void *host_new(size_t bytes) {
    void *memory = kept.hosts < COUNT(kept.host) ? calloc(1, bytes) : NULL;
    if (!memory)
        give_up("host_new", "no memory");
    kept.host[kept.hosts++] = memory;
    return memory;
}

uint32_t random_bits(void) {
    static uint64_t state;
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

float random_float(void) {
    return (float)(random_bits() >> 8) * 0x1p-24f;
}

static void line(bool good, const char *text) {
    printf("%s%s\n", good ? "" : "DIFFERS: ", text);
    program_failed |= !good;
}

void expect(bool good, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    line(good, text);
}

void expect_equal(const char *what, const void *got, const void *want, size_t bytes) {
    const unsigned char *a = got, *b = want;
    size_t at = 0;
    while (at < bytes && a[at] == b[at])
        at++;
    if (at < bytes)
        expect(false, "%s: byte %zu of %zu is %u and not %u", what, at, bytes, a[at], b[at]);
    else
        expect(true, "%s: %zu bytes, as the host's", what, bytes);
}

/* A NaN is near to nothing. */
static bool near(double got, double want, double bound) {
    return fabs(got - want) <= bound * fmax(1, fabs(want));
}

static void judge_near(const char *what, double got, double want, size_t at) {
    expect(false, "%s: number %zu is %.17g and not %.17g", what, at, got, want);
}

void expect_near(const char *what, const float *got, const double *want, size_t count,
                 double bound) {
    for (size_t i = 0; i < count; i++)
        if (!near((double)got[i], want[i], bound)) {
            judge_near(what, (double)got[i], want[i], i);
            return;
        }
    expect(true, "%s: %zu numbers, within %g of the host's", what, count, bound);
}

void expect_near_double(const char *what, const double *got, const double *want, size_t count,
                        double bound) {
    for (size_t i = 0; i < count; i++)
        if (!near(got[i], want[i], bound)) {
            judge_near(what, got[i], want[i], i);
            return;
        }
    expect(true, "%s: %zu numbers, within %g of the host's", what, count, bound);
}

/* FNV-1a of 64 bits. */
void checksum(const char *what, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ at[i]) * 0x100000001b3u;
    printf("%s: checksum %016llx\n", what, (unsigned long long)sum);
}
