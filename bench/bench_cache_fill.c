/*
 * A cache over virtual memory at its limits: what filling nearly all of a device with blocks of one
 * size takes, and destroying it; a block as large as all of that, of the pages that the others had;
 * and the longest single allocation of each.
 *
 *     bench_cache_fill [BYTES]        0: all that is free, less a sixteenth
 */
#include "check.h"
#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static gpumem_device *device;
static gpumem_resource *upstream;

struct fill {
    gpumem_resource *cache;
    gpumem_buffer **buffers;
    size_t count;
    double longest; /* seconds of one allocation */
};

/* Until `bytes` are in use. */
static double fill(struct fill *fill, size_t bytes, size_t block) {
    double start = bench_now();
    fill->count = 0;
    fill->longest = 0;
    for (size_t sum = 0; sum + block <= bytes; sum += block) {
        double before = bench_now();
        ok(gpumem_buffer_allocate(fill->cache, block, NULL, &fill->buffers[fill->count++]),
           "allocate");
        double took = bench_now() - before;
        fill->longest = took > fill->longest ? took : fill->longest;
    }
    return bench_now() - start;
}

static double empty(struct fill *fill) {
    double start = bench_now();
    for (size_t i = 0; i < fill->count; i++)
        ok(gpumem_buffer_free(fill->buffers[i], NULL), "free");
    return bench_now() - start;
}

static void row(const char *what, size_t block, double seconds) {
    char text[96];
    snprintf(text, sizeof text, "%s, blocks of %zu KiB", what, block >> 10);
    bench_row(text, 1e3 * seconds, 0, "ms");
}

/* What is free after the small blocks makes one large block. */
static void run(size_t bytes, size_t block) {
    struct fill all = {.buffers = calloc(bytes / block + 1, sizeof(gpumem_buffer *))};
    if (!all.buffers)
        bench_fail("no memory for the list of buffers");
    ok(gpumem_caching_resource_create(upstream, NULL, &all.cache), "cache");
    row("fill", block, fill(&all, bytes, block));
    row("longest allocation", block, all.longest);
    row("free", block, empty(&all));
    ok(gpumem_stream_synchronize(device, NULL), "synchronize");
    row("one block of all that", block, fill(&all, bytes, bytes));
    gpumem_caching_info info = {.size = sizeof info};
    ok(gpumem_caching_get_info(all.cache, &info), "info");
    gpumem_stats stats = {.size = sizeof stats};
    ok(gpumem_resource_get_stats(all.cache, &stats), "stats");
    (void)empty(&all);
    double start = bench_now();
    ok(gpumem_resource_destroy(all.cache), "destroy");
    row("destroy", block, bench_now() - start);
    printf("pages moved: %llu, committed: %.3f of the most in use\n",
           (unsigned long long)info.pages_moved,
           (double)stats.committed_high / (double)stats.in_use_high);
    free(all.buffers);
}

int main(int count, char **arguments) {
    static const size_t blocks[] = {MIB, 64 * MIB, GIB};
    gpumem_library *library = NULL;
    uint64_t unused = 0, total = 0;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    ok(gpumem_virtual_resource_create(
           device, GPUMEM_VIRTUAL_OPTIONS(.handle_type = GPUMEM_HANDLE_NONE), &upstream),
       "virtual resource");
    ok(gpumem_device_get_memory(device, &unused, &total), "memory");
    size_t bytes = count > 1 ? strtoull(arguments[1], NULL, 10) : 0;
    if (!bytes)
        bytes = (size_t)(unused / 16 * 15) / (64 * MIB) * (64 * MIB);
    printf("%.1f GiB\n", (double)bytes / (double)GIB);
    bench_header("a cache over virtual memory, filled", "-");
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        if (bytes >= blocks[i])
            run(bytes, blocks[i]);
    ok(gpumem_resource_destroy(upstream), "destroy");
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return 0;
}
