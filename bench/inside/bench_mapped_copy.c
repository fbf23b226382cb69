/*
 * Copies of mapped memory: gpumem_mapped_write and _read at each size, from pinned and from
 * pageable host memory, compared with the better of the bare mapped access (the best kernel at that
 * size, with its fence) and the driver's synchronous copy. The copies are calibrated first; the
 * plan is printed. Then the rate of 1 MiB by one thread and by four, compared with that of the best
 * kernel.
 *
 * bench_mapped_copy [METHOD]: "vulkan-import" and so on; the default is the best that the machine
 * has. On softgpu sizes and times are small: it only shows that the benchmark runs.
 */
#include "check.h"
#include "table.h"

#include "mapped/engine.h"

#include <gpumem/gpumem.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MOST    41
#define ROUNDS_LEAST   5
#define SAMPLE_SECONDS 5e-6 /* minimum for copies that are timed together */
#define MIB            ((size_t)1 << 20)
#define THREADS        4

static const gpumem_driver_api *cu;
static gpumem_device *device;
static gpumem_resource *mapped, *pinning;
static gpumem_buffer *buffer, *pinned_buffer;
static unsigned char *place, *pinned, *pageable;
static size_t largest;
static double seconds_each; /* for all ways at one size */

/* ---- One copy -------------------------------------------------------------------------------- */

enum kind { LIBRARY, KERNEL, DRIVER };

struct way {
    enum kind kind;
    enum gm_copy_kernel kernel;
    unsigned repeats;
    double samples[ROUNDS_MOST];
};

static void check(gpumem_status status) {
    if (status != GPUMEM_OK)
        bench_fail("%s", gpumem_last_error()->message);
}

static void check_driver(CUresult result) {
    if (result != CUDA_SUCCESS)
        bench_fail("the driver's copy: %s", bench_result(cu, result));
}

static void store(const struct way *way, unsigned char *host, size_t offset, size_t bytes) {
    if (way->kind == LIBRARY) {
        check(gpumem_mapped_write(buffer, offset, host, bytes));
    } else if (way->kind == DRIVER) {
        check_driver(cu->cuMemcpyHtoD_v2(gpumem_buffer_pointer(buffer) + offset, host, bytes));
    } else {
        gm_copy_store(way->kernel, place + offset, host, bytes);
        gm_copy_fence();
    }
}

static void load(const struct way *way, unsigned char *host, size_t bytes) {
    if (way->kind == LIBRARY) {
        check(gpumem_mapped_read(buffer, 0, host, bytes));
    } else if (way->kind == DRIVER) {
        check_driver(cu->cuMemcpyDtoH_v2(host, gpumem_buffer_pointer(buffer), bytes));
    } else {
        gm_copy_fence_load();
        gm_copy_load(way->kernel, host, place, bytes);
    }
}

static void copy(const struct way *way, unsigned direction, unsigned char *host, size_t bytes) {
    if (direction == GM_COPY_STORE)
        store(way, host, 0, bytes);
    else
        load(way, host, bytes);
}

/* After one copy that is not timed: the previous way affects the caches. */
static double sample(const struct way *way, unsigned direction, unsigned char *host, size_t bytes,
                     unsigned repeats) {
    copy(way, direction, host, bytes);
    double begin = bench_now();
    for (unsigned i = 0; i < repeats; i++)
        copy(way, direction, host, bytes);
    return (bench_now() - begin) / repeats;
}

/* ---- All ways at one size -------------------------------------------------------------------- */

static unsigned ways_of(unsigned direction, bool with_kernels,
                        struct way ways[GM_COPY_KERNEL_COUNT + 2]) {
    enum gm_copy_kernel kernels[GM_COPY_KERNEL_COUNT];
    unsigned count = 0, found = with_kernels ? gm_copy_kernels(direction, kernels) : 0;
    ways[count++] = (struct way){.kind = LIBRARY};
    ways[count++] = (struct way){.kind = DRIVER};
    for (unsigned i = 0; i < found; i++)
        ways[count++] = (struct way){.kind = KERNEL, .kernel = kernels[i]};
    return count;
}

/* In turns, so that disturbances affect all ways; medians. Returns the rounds. */
static size_t run_ways(struct way *ways, unsigned count, unsigned direction, unsigned char *host,
                       size_t bytes) {
    for (unsigned i = 0; i < count; i++) {
        double once = sample(&ways[i], direction, host, bytes, 1);
        ways[i].repeats =
            once < SAMPLE_SECONDS ? 1 + (unsigned)(SAMPLE_SECONDS / (once + 1e-9)) : 1;
    }
    size_t rounds = 0;
    double end = bench_now() + seconds_each;
    while (rounds < ROUNDS_MOST && (rounds < ROUNDS_LEAST || bench_now() < end)) {
        for (unsigned i = 0; i < count; i++)
            ways[i].samples[rounds] = sample(&ways[i], direction, host, bytes, ways[i].repeats);
        rounds++;
    }
    return rounds;
}

struct found {
    double library, driver, kernel; /* seconds; kernel NAN: not tried */
    enum gm_copy_kernel best;
};

static struct found measure(unsigned direction, bool with_kernels, unsigned char *host,
                            size_t bytes) {
    static struct way ways[GM_COPY_KERNEL_COUNT + 2];
    struct found found = {.kernel = NAN};
    unsigned count = ways_of(direction, with_kernels, ways);
    size_t rounds = run_ways(ways, count, direction, host, bytes);
    for (unsigned i = 0; i < count; i++) {
        double median = bench_median(ways[i].samples, rounds);
        if (ways[i].kind == LIBRARY) {
            found.library = median;
        } else if (ways[i].kind == DRIVER) {
            found.driver = median;
        } else if (isnan(found.kernel) || median < found.kernel) {
            found.kernel = median;
            found.best = ways[i].kernel;
        }
    }
    return found;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static const size_t odd[] = {9, 63, 100, 1500, 5000, 12345, 100001, 1000003, 33333333};

static int ascending(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static unsigned sizes_of(size_t sizes[64]) {
    unsigned count = 0;
    for (size_t bytes = 8; bytes <= largest; bytes *= 2)
        sizes[count++] = bytes;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        if (odd[i] <= largest)
            sizes[count++] = odd[i];
    qsort(sizes, count, sizeof sizes[0], ascending);
    return count;
}

static void table(unsigned direction, unsigned char *host, const char *title) {
    size_t sizes[64];
    unsigned count = sizes_of(sizes);
    double worst = 0;
    size_t worst_bytes = 0;
    bool with_kernels = true;
    bench_header(title, "the better of both");
    for (unsigned i = 0; i < count; i++) {
        char what[80];
        struct found found = measure(direction, with_kernels, host, sizes[i]);
        bool driver = !(found.kernel < found.driver);
        double better = driver ? found.driver : found.kernel;
        snprintf(what, sizeof what, "%zu B (%s)", sizes[i],
                 driver ? "driver" : gm_copy_kernel_name(found.best));
        bench_row(what, 1e6 * found.library, 1e6 * better, "us");
        if (found.library / better > worst) {
            worst = found.library / better;
            worst_bytes = sizes[i];
        }
        /* Loads of megabytes over the bus take seconds, and no program would choose them. */
        if (with_kernels && found.kernel > 8 * found.driver)
            with_kernels = false;
    }
    printf("at most %.2f x, at %zu B\n", worst, worst_bytes);
}

/* ---- Threads --------------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct way way;
    size_t offset;
    unsigned copies;
    double begin, end;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    check_driver(cu->cuCtxSetCurrent(gpumem_device_context(device)));
    pthread_barrier_wait(worker->barrier);
    worker->begin = bench_now();
    for (unsigned i = 0; i < worker->copies; i++)
        store(&worker->way, pageable + worker->offset, worker->offset, MIB);
    worker->end = bench_now();
    return NULL;
}

/* GB/s of `threads` that each store a MiB repeatedly. */
static double rate(const struct way *way, unsigned threads, unsigned copies) {
    struct worker workers[THREADS];
    pthread_barrier_t barrier;
    double begin = INFINITY, end = 0;
    pthread_barrier_init(&barrier, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        workers[i] =
            (struct worker){.barrier = &barrier, .way = *way, .offset = i * MIB, .copies = copies};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_fail("no thread");
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        begin = workers[i].begin < begin ? workers[i].begin : begin;
        end = workers[i].end > end ? workers[i].end : end;
    }
    pthread_barrier_destroy(&barrier);
    return (double)threads * copies * (double)MIB / (end - begin) / 1e9;
}

/* Again in turns. */
static void rates(unsigned threads) {
    static struct way ways[GM_COPY_KERNEL_COUNT + 2];
    unsigned count = ways_of(GM_COPY_STORE, true, ways);
    const size_t rounds = seconds_each < 0.01 ? ROUNDS_LEAST : 15;
    for (size_t round = 0; round < rounds; round++)
        for (unsigned i = 0; i < count; i++)
            ways[i].samples[round] = rate(&ways[i], threads, 20);
    double ours = 0, best = 0;
    const char *name = "";
    for (unsigned i = 0; i < count; i++) {
        double median = bench_median(ways[i].samples, rounds);
        if (ways[i].kind == LIBRARY)
            ours = median;
        else if (ways[i].kind == KERNEL && median > best) {
            best = median;
            name = gm_copy_kernel_name(ways[i].kernel);
        }
    }
    char what[80];
    snprintf(what, sizeof what, "write 1 MiB, %u thread%s (%s)", threads, threads > 1 ? "s" : "",
             name);
    bench_row(what, ours, best, "GB/s");
}

/* ---- The program ----------------------------------------------------------------------------- */

static gpumem_mapped_method method_of(const char *name) {
    for (int i = GPUMEM_MAPPED_ANY; i <= GPUMEM_MAPPED_HOST; i++)
        if (strcmp(gpumem_mapped_method_name((gpumem_mapped_method)i), name) == 0)
            return (gpumem_mapped_method)i;
    bench_fail("%s is no method", name);
}

static void make_memory(gpumem_mapped_method method) {
    const gpumem_mapped_options options = {
        .size = sizeof options, .method = method, .method_strict = method != GPUMEM_MAPPED_ANY};
    check(gpumem_mapped_resource_create(device, &options, &mapped));
    if (!mapped->engine)
        bench_fail("only memory of the host can be mapped here");
    check(gpumem_buffer_allocate(mapped, largest, NULL, &buffer));
    check(gpumem_pinned_resource_create(
        device, GPUMEM_PINNED_OPTIONS(.method = GPUMEM_PINNED_ALLOCATED), &pinning));
    check(gpumem_buffer_allocate(pinning, largest, NULL, &pinned_buffer));
    place = gpumem_buffer_host_pointer(buffer);
    pinned = gpumem_buffer_host_pointer(pinned_buffer);
    pageable = aligned_alloc(64, largest);
    if (!pageable)
        bench_fail("no memory of %zu bytes", largest);
    memset(pinned, 0x5a, largest);
    memset(pageable, 0x5a, largest);
}

static void calibrate(bool small) {
    gpumem_mapped_calibrate_options options = {.size = sizeof options};
    char text[GM_COPY_TEXT_ROOM];
    if (small) {
        options.maximum_bytes = largest;
        options.run_nanoseconds = 20000;
        options.keep_nothing = 1;
    }
    double begin = bench_now();
    check(gpumem_mapped_calibrate(mapped, &options));
    printf("calibrated in %.0f ms\n", 1e3 * (bench_now() - begin));
    const struct gm_plans *plans = mapped->engine->plans;
    if (gm_copy_plan_encode(&gm_plan_now(plans)->plan, &plans->key, text))
        printf("%s\n", text);
}

int main(int argc, char **argv) {
    gpumem_library *library = NULL;
    check(gpumem_open(NULL, &library));
    check(gpumem_device_open(library, 0, &device));
    const gpumem_driver *driver = gpumem_library_driver(library);
    bool small = driver_info(driver).kind == GPUMEM_DRIVER_SOFTGPU;
    cu = gpumem_driver_table(driver);
    largest = small ? 4 * MIB : 64 * MIB;
    seconds_each = small ? 0.001 : 0.1;
    check_driver(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)));
    make_memory(argc > 1 ? method_of(argv[1]) : GPUMEM_MAPPED_ANY);
    calibrate(small);
    table(GM_COPY_STORE, pinned, "write from pinned memory");
    table(GM_COPY_STORE, pageable, "write from pageable memory");
    table(GM_COPY_LOAD, pinned, "read to pinned memory");
    table(GM_COPY_LOAD, pageable, "read to pageable memory");
    bench_header("rate, from pageable memory", "the best kernel");
    rates(1);
    rates(THREADS);
    free(pageable);
    check(gpumem_buffer_free(pinned_buffer, NULL));
    check(gpumem_buffer_free(buffer, NULL));
    check(gpumem_resource_destroy(pinning));
    check(gpumem_resource_destroy(mapped));
    CUcontext popped;
    check_driver(cu->cuCtxPopCurrent_v2(&popped));
    check(gpumem_device_close(device));
    check(gpumem_close(library));
    return 0;
}
