/*
 * Allocating and growing mapped memory, compared with the bare calls in the same run; both take
 * turns, so that they see the machine in the same state.
 *
 * - a small buffer, warm, compared with vkgdr's way, where every buffer is a Vulkan allocation;
 * - growth in place by 2 MiB, once and in many steps (the library takes larger pieces as the buffer
 *   grows; by hand each step is a piece);
 * - 8 GiB at once, or a quarter of what is free.
 *
 * GPUMEM_MAPPED_METHOD chooses the method by its name; the default is the best that works.
 */
#include "by_hand.h"
#include "mapped_method.h"
#include "table.h"

#include <stdio.h>

#define MIB    ((size_t)1 << 20)
#define CHUNK  (512 * MIB) /* gpumem_mapped_options.maximum_chunk_bytes if it is 0 */
#define ROUNDS 21

static const gpumem_driver_api *cu;
static gpumem_device *device;
static gpumem_mapped_method method;
static bool has_vulkan, soft;

static void ok(gpumem_status status, const char *what) {
    if (status != GPUMEM_OK)
        bench_fail("%s: %s", what, gpumem_last_error()->message);
}

/* ---- Small buffers --------------------------------------------------------------------------- */

/* Microseconds per pair, while another buffer keeps the memory that they are pieces of. */
static double pair(gpumem_resource *resource, size_t bytes, int count) {
    double samples[ROUNDS];
    gpumem_buffer *held = NULL, *buffer = NULL;
    ok(gpumem_buffer_allocate(resource, bytes, NULL, &held), "allocate");
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_now();
        for (int i = 0; i < count; i++) {
            ok(gpumem_buffer_allocate(resource, bytes, NULL, &buffer), "allocate");
            ok(gpumem_buffer_free(buffer, NULL), "free");
        }
        samples[round] = 1e6 * (bench_now() - start) / count;
    }
    ok(gpumem_buffer_free(held, NULL), "free");
    return bench_median(samples, ROUNDS);
}

/* Microseconds per allocation, of several that are held, again in each round. */
static double allocation(gpumem_resource *resource, size_t bytes) {
    double samples[ROUNDS];
    gpumem_buffer *buffers[16];
    for (int round = 0; round < ROUNDS; round++) {
        double start = bench_now();
        for (int i = 0; i < 16; i++)
            ok(gpumem_buffer_allocate(resource, bytes, NULL, &buffers[i]), "allocate");
        samples[round] = 1e6 * (bench_now() - start) / 16;
        for (int i = 0; i < 16; i++)
            ok(gpumem_buffer_free(buffers[i], NULL), "free");
    }
    return bench_median(samples, ROUNDS);
}

static void pair_by_hand(size_t bytes, double *alloc, double *both) {
    double allocs[ROUNDS], pairs[ROUNDS];
    *alloc = *both = 0;
    if (!has_vulkan)
        return;
    for (int round = 0; round < ROUNDS; round++) {
        struct hand_exported made;
        double start = bench_now();
        hand_export(bytes, &made);
        allocs[round] = 1e6 * (bench_now() - start);
        hand_export_end(&made);
        pairs[round] = 1e6 * (bench_now() - start);
    }
    *alloc = bench_median(allocs, ROUNDS);
    *both = bench_median(pairs, ROUNDS);
}

static void small_rows(gpumem_resource *mapped, gpumem_resource *caching) {
    static const size_t sizes[] = {256, 4096, 65536};
    bench_header("small buffers, warm", "vkgdr's way");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char what[80];
        double alloc, both;
        pair_by_hand(sizes[i], &alloc, &both);
        snprintf(what, sizeof what, "mapped resource, allocate %zu B", sizes[i]);
        bench_row(what, allocation(mapped, sizes[i]), alloc, "us");
        snprintf(what, sizeof what, "mapped resource, allocate + free %zu B", sizes[i]);
        bench_row(what, pair(mapped, sizes[i], soft ? 20 : 1000), both, "us");
        snprintf(what, sizeof what, "caching over it, allocate %zu B", sizes[i]);
        bench_row(what, allocation(caching, sizes[i]), alloc, "us");
        snprintf(what, sizeof what, "caching over it, allocate + free %zu B", sizes[i]);
        bench_row(what, pair(caching, sizes[i], 1000), both, "us");
    }
}

static void small_buffers(gpumem_resource *mapped) {
    gpumem_resource *caching = NULL;
    ok(gpumem_caching_resource_create(mapped, NULL, &caching), "caching resource");
    small_rows(mapped, caching);
    ok(gpumem_resource_destroy(caching), "destroy");
}

/* ---- Growth ---------------------------------------------------------------------------------- */

/* Microseconds per step, from `first` bytes on. */
static double grow_library(gpumem_resource *resource, size_t first, size_t step, size_t steps) {
    gpumem_buffer *buffer = NULL;
    ok(gpumem_buffer_allocate(
           resource, first,
           GPUMEM_BUFFER_OPTIONS(.stream = GPUMEM_STREAM_NONE, .capacity = first + step * steps),
           &buffer),
       "allocate");
    double start = bench_now();
    for (size_t i = 1; i <= steps; i++)
        ok(gpumem_buffer_grow(buffer, first + step * i, NULL), "grow");
    double seconds = bench_now() - start;
    ok(gpumem_buffer_free(buffer, GPUMEM_STREAM_NONE), "free");
    ok(gpumem_device_trim(device, 1), "trim");
    return 1e6 * seconds / (double)steps;
}

static double grow_by_hand(size_t first, size_t step, size_t steps) {
    static struct hand_range range;
    hand_range_reserve(first + step * steps, &range);
    hand_range_grow(&range, method, first, CHUNK);
    double start = bench_now();
    for (size_t i = 1; i <= steps; i++)
        hand_range_grow(&range, method, step, CHUNK);
    double seconds = bench_now() - start;
    hand_range_end(&range, method);
    return 1e6 * seconds / (double)steps;
}

/* Each goes first half of the time. */
static void growth_row(gpumem_resource *resource, size_t first, size_t step, size_t steps) {
    double library[ROUNDS], hand[ROUNDS];
    bool by_hand = hand_can_grow(method);
    for (int i = -1; i < ROUNDS; i++) { /* the first warms both */
        int at = i < 0 ? 0 : i;
        if (by_hand && i % 2)
            hand[at] = grow_by_hand(first, step, steps);
        library[at] = grow_library(resource, first, step, steps);
        if (by_hand && i % 2 == 0)
            hand[at] = grow_by_hand(first, step, steps);
    }
    char what[80];
    snprintf(what, sizeof what, "grow from %zu MiB by %zu MiB, %zu times, each", first / MIB,
             step / MIB, steps);
    bench_row(what, bench_median(library, ROUNDS), by_hand ? bench_median(hand, ROUNDS) : 0, "us");
}

/* ---- Much at once ---------------------------------------------------------------------------- */

static double map_library(gpumem_resource *resource, size_t bytes) {
    gpumem_buffer *buffer = NULL;
    double start = bench_now();
    ok(gpumem_buffer_allocate(resource, bytes, GPUMEM_BUFFER_OPTIONS(.stream = GPUMEM_STREAM_NONE),
                              &buffer),
       "allocate");
    double seconds = bench_now() - start;
    ok(gpumem_buffer_free(buffer, GPUMEM_STREAM_NONE), "free");
    ok(gpumem_device_trim(device, 1), "trim");
    return 1e3 * seconds;
}

static double map_by_hand(size_t bytes) {
    static struct hand_range range;
    double start = bench_now();
    hand_range_reserve(bytes, &range);
    hand_range_grow(&range, method, bytes, CHUNK);
    double seconds = bench_now() - start;
    hand_range_end(&range, method);
    return 1e3 * seconds;
}

static void map_row(gpumem_resource *resource) {
    enum { TURNS = 7 };
    double library[TURNS], hand[TURNS];
    bool by_hand = hand_can_grow(method);
    uint64_t room = 0, total = 0;
    ok(gpumem_device_get_memory(device, &room, &total), "memory");
    size_t bytes = soft ? 64 * MIB : 8192 * MIB;
    if (bytes > room / 4)
        bytes = (size_t)(room / 4) / (2 * MIB) * (2 * MIB);
    if (!bytes) {
        printf("not measured, mapping much at once: %llu bytes are free\n",
               (unsigned long long)room);
        return;
    }
    for (int i = -1; i < TURNS; i++) {
        int at = i < 0 ? 0 : i;
        if (by_hand && i % 2)
            hand[at] = map_by_hand(bytes);
        library[at] = map_library(resource, bytes);
        if (by_hand && i % 2 == 0)
            hand[at] = map_by_hand(bytes);
    }
    char what[80];
    snprintf(what, sizeof what, "map %zu MiB", bytes / MIB);
    bench_row(what, bench_median(library, TURNS), by_hand ? bench_median(hand, TURNS) : 0, "ms");
}

static void growth(gpumem_resource *mapped) {
    if (method == GPUMEM_MAPPED_VULKAN_EXPORT) {
        printf("not measured, growth: memory that Vulkan allocates has a fixed size\n");
        return;
    }
    bench_header("mapped memory that grows", "bare calls");
    growth_row(mapped, 2 * MIB, 2 * MIB, 1);
    growth_row(mapped, 2 * MIB, 2 * MIB, soft ? 15 : 63);
    growth_row(mapped, 64 * MIB, 2 * MIB, 16);
    growth_row(mapped, 64 * MIB, 64 * MIB, 1);
    map_row(mapped);
}

int main(void) {
    gpumem_library *library = NULL;
    gpumem_resource *mapped = NULL;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    cu = gpumem_driver_table(gpumem_library_driver(library));
    gpumem_library_info info = {.size = sizeof info};
    ok(gpumem_library_get_info(library, &info), "info");
    soft = info.softgpu;
    printf("driver: %s, API %d\n", info.driver_path, info.driver_version);
    CUresult result = cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    if (result != CUDA_SUCCESS)
        bench_fail("cuCtxPushCurrent: %s", bench_result(cu, result));
    mapped = mapped_resource(device, &method);
    has_vulkan = hand_open(cu, device);
    small_buffers(mapped);
    growth(mapped);
    ok(gpumem_resource_destroy(mapped), "destroy");
    hand_close();
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return 0;
}
