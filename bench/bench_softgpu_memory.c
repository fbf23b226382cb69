/*
 * The cost of memory on softgpu: the VMM cycle, small allocations, many live handles, translation.
 *
 *     bench_softgpu_memory [handles]
 *
 * Medians of runs, host clock, one thread. The bars are the project's own: the cycle under 3 us,
 * and 60,000 live handles within the default limits of open files and mappings (try `ulimit -n
 * 1024`).
 */
#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define MIB   ((size_t)1 << 20)
#define CHUNK (2 * MIB)
#define RUNS  21

static const gpumem_driver_api *cu;
static CUmemAllocationProp device_prop;
static CUmemAccessDesc device_access;
static int failed;

static void check(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS)
        bench_fail("%s answered %s", what, bench_result(cu, result));
}
#define DO(call) check((call), #call)

static double now_us(void) {
    return bench_now() * 1e6;
}

static void row(const char *what, double us, double bar_us) {
    bench_row(what, us, bar_us, "us");
    failed |= bar_us > 0 && us > bar_us;
}

/* ---- The life of one chunk ------------------------------------------------------------------- */

enum step { RESERVE, CREATE, MAP, ACCESS, UNMAP, RELEASE, FREE, STEPS };
static const char *const step_names[STEPS] = {
    "cuMemAddressReserve 2 MiB",
    "cuMemCreate",
    "cuMemMap",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuMemRelease",
    "cuMemAddressFree",
};

static void cycle(void) {
    CUdeviceptr at;
    CUmemGenericAllocationHandle handle;
    DO(cu->cuMemAddressReserve(&at, CHUNK, 0, 0, 0));
    DO(cu->cuMemCreate(&handle, CHUNK, &device_prop, 0));
    DO(cu->cuMemMap(at, CHUNK, 0, handle, 0));
    DO(cu->cuMemSetAccess(at, CHUNK, &device_access, 1));
    DO(cu->cuMemUnmap(at, CHUNK));
    DO(cu->cuMemRelease(handle));
    DO(cu->cuMemAddressFree(at, CHUNK));
}

static double cycles_us(int count) {
    double runs[RUNS];
    for (int run = 0; run < RUNS; run++) {
        double start = now_us();
        for (int i = 0; i < count; i++)
            cycle();
        runs[run] = (now_us() - start) / count;
    }
    return bench_median(runs, RUNS);
}

/* Each step is done for many chunks in a row, so that reading the clock does not matter. */
static void steps_us(int count, double us[STEPS]) {
    CUdeviceptr *at = calloc((size_t)count, sizeof *at);
    CUmemGenericAllocationHandle *handle = calloc((size_t)count, sizeof *handle);
    double runs[STEPS][RUNS];
    if (!at || !handle)
        exit(1);
#define STEP(step, call)                                                                           \
    do {                                                                                           \
        double start = now_us();                                                                   \
        for (int i = 0; i < count; i++)                                                            \
            DO(call);                                                                              \
        runs[step][run] = (now_us() - start) / count;                                              \
    } while (0)
    for (int run = 0; run < RUNS; run++) {
        STEP(RESERVE, cu->cuMemAddressReserve(&at[i], CHUNK, 0, 0, 0));
        STEP(CREATE, cu->cuMemCreate(&handle[i], CHUNK, &device_prop, 0));
        STEP(MAP, cu->cuMemMap(at[i], CHUNK, 0, handle[i], 0));
        STEP(ACCESS, cu->cuMemSetAccess(at[i], CHUNK, &device_access, 1));
        STEP(UNMAP, cu->cuMemUnmap(at[i], CHUNK));
        STEP(RELEASE, cu->cuMemRelease(handle[i]));
        STEP(FREE, cu->cuMemAddressFree(at[i], CHUNK));
    }
#undef STEP
    for (int step = 0; step < STEPS; step++)
        us[step] = bench_median(runs[step], RUNS);
    free(at);
    free(handle);
}

static void vmm(void) {
    double us[STEPS], sum = 0;
    row("reserve to free of 2 MiB, one at a time", cycles_us(1000), 3);
    steps_us(1000, us);
    for (int step = 0; step < STEPS; step++) {
        row(step_names[step], us[step], 0);
        sum += us[step];
    }
    row("their sum, 1,000 alive", sum, 3);
}

/* ---- Many at once ---------------------------------------------------------------------------- */

static int count_maps(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    int lines = 0, c;
    while (maps && (c = getc(maps)) != EOF)
        lines += c == '\n';
    if (maps)
        fclose(maps);
    return lines;
}

static void small_allocations(int count) {
    CUdeviceptr *p = calloc((size_t)count, sizeof *p);
    if (!p)
        exit(1);
    double start = now_us();
    for (int i = 0; i < count; i++)
        DO(cu->cuMemAlloc_v2(&p[i], (size_t)(i % 16 + 1) * 64));
    double allocated = now_us();
    for (int i = 0; i < count; i++)
        DO(cu->cuMemFree_v2(p[(size_t)i * 7919 % (size_t)count]));
    double freed = now_us();
    char what[80];
    snprintf(what, sizeof what, "cuMemAlloc of 64 to 1,024 bytes, %d alive", count);
    row(what, (allocated - start) / count, 0);
    row("cuMemFree of them, in a scattered order", (freed - allocated) / count, 0);
    free(p);
}

static void many_handles(int count) {
    struct rlimit files;
    CUdeviceptr at;
    CUmemGenericAllocationHandle *handle = calloc((size_t)count, sizeof *handle);
    if (!handle)
        exit(1);
    size_t freed, total;
    DO(cu->cuMemGetInfo_v2(&freed, &total));
    if (freed < (size_t)count * CHUNK) {
        printf("%d handles of 2 MiB need SOFTGPU_MEMORY=%zuM: skipped\n", count,
               (size_t)count * CHUNK / MIB);
        free(handle);
        return;
    }
    int before = count_maps();
    double start = now_us();
    DO(cu->cuMemAddressReserve(&at, (size_t)count * CHUNK, 0, 0, 0));
    for (int i = 0; i < count; i++) {
        DO(cu->cuMemCreate(&handle[i], CHUNK, &device_prop, 0));
        DO(cu->cuMemMap(at + (size_t)i * CHUNK, CHUNK, 0, handle[i], 0));
    }
    DO(cu->cuMemSetAccess(at, (size_t)count * CHUNK, &device_access, 1));
    double made = now_us();
    int with = count_maps();
    DO(cu->cuMemUnmap(at, (size_t)count * CHUNK));
    for (int i = 0; i < count; i++)
        DO(cu->cuMemRelease(handle[i]));
    DO(cu->cuMemAddressFree(at, (size_t)count * CHUNK));
    double ended = now_us();
    getrlimit(RLIMIT_NOFILE, &files);
    printf("%d handles of 2 MiB mapped at once: %.3f us each to make, %.3f us to end; "
           "%d mappings of the process more; open files limited to %llu\n",
           count, (made - start) / count, (ended - made) / count, with - before,
           (unsigned long long)files.rlim_cur);
    free(handle);
}

/* ---- Translation ----------------------------------------------------------------------------- */

/* A copy of 8 bytes is nearly all overhead: the call, the look-ups, two translations. */
static void small_copies(void) {
    CUdeviceptr a, b;
    double runs[RUNS];
    DO(cu->cuMemAlloc_v2(&a, 4096));
    DO(cu->cuMemAlloc_v2(&b, 4096));
    for (int run = 0; run < RUNS; run++) {
        double start = now_us();
        for (int i = 0; i < 1000; i++)
            DO(cu->cuMemcpyDtoD_v2(a, b, 8));
        runs[run] = (now_us() - start) / 1000;
    }
    row("cuMemcpyDtoD of 8 bytes", bench_median(runs, RUNS), 0);
    DO(cu->cuMemFree_v2(a));
    DO(cu->cuMemFree_v2(b));
}

/* The look-ups and the map, again: the cost to a program that takes memory from the pool as it
 * runs. */
static void pool_allocations(void) {
    CUstream stream;
    CUdeviceptr p;
    double runs[RUNS];
    DO(cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DO(cu->cuMemAllocAsync(&p, 4096, stream));
    DO(cu->cuMemFreeAsync(p, stream));
    for (int run = 0; run < RUNS; run++) {
        double start = now_us();
        for (int i = 0; i < 1000; i++) {
            DO(cu->cuMemAllocAsync(&p, 4096, stream));
            DO(cu->cuMemFreeAsync(p, stream));
        }
        runs[run] = (now_us() - start) / 1000;
    }
    row("cuMemAllocAsync of 4 KiB and cuMemFreeAsync", bench_median(runs, RUNS), 0);
    DO(cu->cuStreamDestroy_v2(stream));
}

int main(int argc, char **argv) {
    gpumem_driver *driver;
    CUcontext context;
    int handles = argc > 1 ? atoi(argv[1]) : 60000;
    setenv("SOFTGPU_MEMORY", "141G", 0);
    if (gpumem_driver_open("softgpu", &driver) != GPUMEM_OK)
        bench_fail("bench_softgpu_memory: %s", gpumem_last_error()->message);
    cu = gpumem_driver_table(driver);
    bench_header("Memory of softgpu", "bar");
    double start = now_us();
    CUdeviceptr first;
    DO(cu->cuInit(0));
    DO(cu->cuDevicePrimaryCtxRetain(&context, 0));
    DO(cu->cuCtxSetCurrent(context));
    DO(cu->cuMemAlloc_v2(&first, 1));
    row("cuInit to the first allocation", now_us() - start, 5000);
    DO(cu->cuMemFree_v2(first));
    device_prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    device_prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    device_access.location = device_prop.location;
    device_access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    vmm();
    small_allocations(100000);
    small_copies();
    pool_allocations();
    many_handles(handles);
    DO(cu->cuDevicePrimaryCtxRelease_v2(0));
    if (failed)
        printf("a bar is missed\n");
    return failed;
}
