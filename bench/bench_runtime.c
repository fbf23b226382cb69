/*
 * Calls of the CUDA runtime beside the driver's calls that they are made of, in one run:
 *
 *     bench_runtime [LIBCUDART...]
 *
 * The first runtime is ours unless a path is given. With a second one, NVIDIA's on a machine with a
 * GPU, each call is compared with that one's, too.
 */
#include "check.h"
#include "table.h"

#include <dlfcn.h>
#include <gpumem/driver.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 31, CALLS = 2000, MOST = 2, COPY = 4096 };

static const gpumem_driver_api *cu;

/* What the host code of a kernel registers: the layouts are public, in fatbinary_section.h. */
static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry nothing()\n{\n ret;\n}\n";
static struct {
    uint32_t magic;
    uint16_t version, head;
    uint64_t follows;
    struct {
        uint16_t kind, version;
        uint32_t head;
        uint64_t size;
        uint32_t compressed, options;
        uint16_t minor, major;
        uint32_t architecture, name, name_size;
        uint64_t flags, zero, plain;
    } entry;
    char text[128];
} image = {0xba55ed50u, 1, 16, 64 + 128, {1, 0x101, 64, 128, 0, 0, 0, 7, 80, 0, 0, 0x11, 0, 0}, ""};
static struct {
    uint32_t magic, version;
    const void *image, *parts;
} wrapper = {0x466243b1u, 1, &image, NULL};
_Static_assert(sizeof text <= sizeof image.text, "the kernel fits");
_Static_assert(sizeof image == 16 + 64 + 128, "without padding");

typedef struct {
    unsigned x, y, z;
} shape;

/* A runtime: its functions, and what the cases use. */
struct runtime {
    int (*malloc)(void **, size_t), (*free)(void *);
    int (*memcpy)(void *, const void *, size_t, int);
    int (*launch)(const void *, shape, shape, void **, size_t, void *);
    int (*record)(void *, void *), (*wait)(void *), (*event)(void **), (*synchronize)(void);
    int (*version)(int *);
    void **(*add_binary)(void *);
    void (*add_function)(void **, const void *, const char *, const char *, int, void *, void *,
                         void *, void *, void *);
    void (*end_binary)(void **);
    char stub;
    void *made;
} runtimes[MOST];

static void *memory;
static char host[COPY];
static CUevent driver_event;
static CUfunction driver_kernel;

static void must(int error, const char *what) {
    if (error)
        bench_fail("%s answered %d", what, error);
}

/* ---- The cases ------------------------------------------------------------------------------- */

static void allocate(struct runtime *of) {
    CUdeviceptr address;
    for (int i = 0; i < CALLS; i++)
        if (of) {
            void *made;
            must(of->malloc(&made, 1000), "cudaMalloc");
            must(of->free(made), "cudaFree");
        } else {
            MUST(cu->cuMemAlloc_v2(&address, 1000), "cuMemAlloc");
            MUST(cu->cuMemFree_v2(address), "cuMemFree");
        }
}

static void copy(struct runtime *of) {
    for (int i = 0; i < CALLS; i++)
        if (of)
            must(of->memcpy(memory, host, COPY, 1), "cudaMemcpy");
        else
            MUST(cu->cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)memory, host, COPY), "cuMemcpyHtoD");
}

static void launch(struct runtime *of) {
    const shape one = {1, 1, 1};
    for (int i = 0; i < CALLS; i++) {
        if (of)
            must(of->launch(&of->stub, one, one, NULL, 0, NULL), "cudaLaunchKernel");
        else
            MUST(cu->cuLaunchKernel(driver_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
                 "cuLaunchKernel");
        if (i % 100 == 99)
            MUST(cu->cuCtxSynchronize(), "cuCtxSynchronize");
    }
}

static void event(struct runtime *of) {
    for (int i = 0; i < CALLS; i++)
        if (of) {
            must(of->record(of->made, NULL), "cudaEventRecord");
            must(of->wait(of->made), "cudaEventSynchronize");
        } else {
            MUST(cu->cuEventRecord(driver_event, NULL), "cuEventRecord");
            MUST(cu->cuEventSynchronize(driver_event), "cuEventSynchronize");
        }
}

static void ask(struct runtime *of) {
    CUcontext now;
    (void)of;
    for (int i = 0; i < CALLS; i++)
        MUST(cu->cuCtxGetCurrent(&now), "cuCtxGetCurrent");
}

static const struct {
    const char *name;
    void (*run)(struct runtime *of);
    int calls; /* of the runtime, in each turn */
} cases[] = {
    {"cudaMalloc + cudaFree, 1,000 bytes", allocate, 2},
    {"cudaMemcpy to the device, 4 KiB", copy, 1},
    {"cudaLaunchKernel of an empty kernel", launch, 1},
    {"cudaEventRecord + cudaEventSynchronize", event, 2},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- Preparing ------------------------------------------------------------------------------- */

static void *function(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found)
        bench_fail("no %s", name);
    return found;
}

#define FIND(member, name)                                                                         \
    do {                                                                                           \
        void *found_ = function(library, name);                                                    \
        memcpy(&of->member, &found_, sizeof found_);                                               \
    } while (0)

static void open_runtime(struct runtime *of, const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int version = 0;
    if (!library)
        bench_fail("%s", dlerror());
    FIND(malloc, "cudaMalloc");
    FIND(free, "cudaFree");
    FIND(memcpy, "cudaMemcpy");
    FIND(launch, "cudaLaunchKernel");
    FIND(record, "cudaEventRecord");
    FIND(wait, "cudaEventSynchronize");
    FIND(event, "cudaEventCreate");
    FIND(synchronize, "cudaDeviceSynchronize");
    FIND(version, "cudaRuntimeGetVersion");
    FIND(add_binary, "__cudaRegisterFatBinary");
    FIND(add_function, "__cudaRegisterFunction");
    FIND(end_binary, "__cudaRegisterFatBinaryEnd");
    void **binary = of->add_binary(&wrapper);
    of->add_function(binary, &of->stub, "nothing", "nothing", -1, NULL, NULL, NULL, NULL, NULL);
    of->end_binary(binary);
    must(of->free(NULL), "cudaFree(NULL)");
    must(of->event(&of->made), "cudaEventCreate");
    must(of->version(&version), "cudaRuntimeGetVersion");
    printf("%s: runtime %d.%d\n", path, version / 1000, version % 1000 / 10);
}

/* The runtimes open the driver by its name: what lies under it must be the one that is measured. */
static void open_driver(const char *root) {
    gpumem_driver *driver;
    char path[2 * PATH_MAX] = "libcuda.so.1";
    ok(gpumem_driver_open(NULL, &driver), "driver");
    cu = gpumem_driver_table(driver);
    if (driver_info(driver).kind == GPUMEM_DRIVER_SOFTGPU)
        snprintf(path, sizeof path, "%s/lib/gpumem/softgpu/libcuda.so.1", root);
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
        bench_fail("%s", dlerror());
    printf("driver: %s\n", driver_info(driver).path);
}

/* The folder above that of this program: of a build or a bundle. */
static void find_root(char root[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", root, PATH_MAX - 1);
    root[length > 0 ? length : 0] = '\0';
    for (int up = 0; up < 2; up++)
        if (strrchr(root, '/'))
            *strrchr(root, '/') = '\0';
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/* Nanoseconds of one turn. */
static double time_of(void (*run)(struct runtime *of), struct runtime *of) {
    double start = bench_now();
    run(of);
    return (bench_now() - start) / CALLS * 1e9;
}

static void measure(size_t number, int runtime_count, double asking) {
    static double times[MOST + 1][ROUNDS];
    double medians[MOST + 1];
    char what[128];
    for (int round = -1; round < ROUNDS; round++) /* one to warm up, in turns */
        for (int which = 0; which <= runtime_count; which++)
            times[which][round < 0 ? 0 : round] =
                time_of(cases[number].run, which ? &runtimes[which - 1] : NULL);
    for (int which = 0; which <= runtime_count; which++)
        medians[which] = bench_median(times[which], ROUNDS);
    bench_row(cases[number].name, medians[1], medians[0], "ns");
    double most = 1.1 * medians[0], more = medians[0] + cases[number].calls * asking;
    printf("    bar: at most %.0f ns (1.1 of the driver's) or %.0f (one cuCtxGetCurrent a call): "
           "%s\n",
           most, more, medians[1] <= most || medians[1] <= more ? "met" : "NOT MET");
    if (runtime_count > 1) {
        snprintf(what, sizeof what, "    the same beside the second runtime");
        bench_row(what, medians[1], medians[2], "ns");
        printf("    bar: at most 1.05 of it: %s\n",
               medians[1] <= 1.05 * medians[2] ? "met" : "NOT MET");
    }
}

int main(int argc, char **argv) {
    char root[PATH_MAX], ours[2 * PATH_MAX];
    double asked[ROUNDS];
    CUmodule module;
    int count = argc > 2 ? 2 : 1;
    memcpy(image.text, text, sizeof text);
    find_root(root);
    snprintf(ours, sizeof ours, "%s/lib/gpumem/runtime/13/libcudart.so.13", root);
    open_driver(root);
    for (int i = 0; i < count; i++)
        open_runtime(&runtimes[i], argc > i + 1 ? argv[i + 1] : ours);
    must(runtimes[0].malloc(&memory, COPY), "cudaMalloc");
    MUST(cu->cuModuleLoadData(&module, text), "cuModuleLoadData");
    MUST(cu->cuModuleGetFunction(&driver_kernel, module, "nothing"), "cuModuleGetFunction");
    MUST(cu->cuEventCreate(&driver_event, 0), "cuEventCreate");
    for (int i = 0; i < ROUNDS; i++)
        asked[i] = time_of(ask, NULL);
    double asking = bench_median(asked, ROUNDS);
    bench_header("calls of the runtime, nanoseconds", "the driver's");
    bench_row("cuCtxGetCurrent", asking, 0, "ns");
    for (size_t i = 0; i < CASES; i++)
        measure(i, count, asking);
    return 0;
}
