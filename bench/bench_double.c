/*
 * A virtual buffer that grows by doubling, compared with bare calls in handles of several sizes:
 * the library with its defaults, with one handle per step, and with handles of 512 MiB.
 *
 *     bench_double [GIB [PAUSE_MS]]
 *
 * The driver may still be busy with memory that one way freed when the next one begins. So the ways
 * take turns in an order that changes from round to round, and each is measured twice: right after
 * the previous one, and after a pause (300 ms).
 */
#include "check.h"
#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS       7
#define MIB          ((size_t)1 << 20)
#define GIB          ((size_t)1 << 30)
#define ONE_A_STEP   (1024 * GIB)
#define FIRST        (64 * MIB)
#define MOST_HANDLES 2048

static const gpumem_driver_api *cu;
static gpumem_device *device;
static size_t most;

enum phase { CREATE, MAP, ACCESS, ALL, PHASES };

struct way {
    const char *name;
    size_t handle;
    gpumem_resource *resource; /* NULL: bare calls */
    double seconds[PHASES];
};

/* ---- The library ----------------------------------------------------------------------------- */

/* From 64 MiB to `most`, not counting the first 64 MiB and the end. */
static void by_library(struct way *way) {
    gpumem_buffer *buffer;
    ok(gpumem_buffer_allocate(way->resource, FIRST, GPUMEM_BUFFER_OPTIONS(.capacity = most),
                              &buffer),
       "allocate");
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    double start = bench_now();
    for (size_t bytes = 2 * FIRST; bytes <= most; bytes *= 2)
        ok(gpumem_buffer_grow(buffer, bytes, NULL), "grow");
    way->seconds[ALL] = bench_now() - start;
    if (gpumem_buffer_pointer(buffer) != address)
        bench_fail("the address has changed");
    ok(gpumem_buffer_free(buffer, NULL), "free");
    ok(gpumem_device_trim(device, 1), "trim");
}

/* ---- By hand --------------------------------------------------------------------------------- */

struct bare {
    CUdeviceptr base;
    size_t bytes, count;
    CUmemGenericAllocationHandle handles[MOST_HANDLES];
};

/* Adds the time since *from, and restarts. */
static void lap(struct way *way, enum phase phase, double *from) {
    double now = bench_now();
    way->seconds[phase] += now - *from;
    *from = now;
}

/* Adds `bytes` in handles of at most `way->handle`, with one change of access. */
static void bare_grow(struct way *way, struct bare *bare, size_t bytes) {
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpumem_device_handle(device)},
    };
    const CUmemAccessDesc access = {.location = prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr start = bare->base + bare->bytes;
    double from = bench_now();
    for (size_t left = bytes; left;) {
        size_t part = left < way->handle ? left : way->handle;
        if (bare->count == MOST_HANDLES)
            bench_fail("too many handles");
        CUmemGenericAllocationHandle *handle = &bare->handles[bare->count++];
        MUST(cu->cuMemCreate(handle, part, &prop, 0), "cuMemCreate");
        lap(way, CREATE, &from);
        MUST(cu->cuMemMap(bare->base + bare->bytes, part, 0, *handle, 0), "cuMemMap");
        lap(way, MAP, &from);
        bare->bytes += part;
        left -= part;
    }
    MUST(cu->cuMemSetAccess(start, bytes, &access, 1), "cuMemSetAccess");
    lap(way, ACCESS, &from);
}

static void by_hand(struct way *way) {
    static struct bare bare;
    bare = (struct bare){0};
    MUST(cu->cuMemAddressReserve(&bare.base, most, 0, 0, 0), "cuMemAddressReserve");
    bare_grow(way, &bare, FIRST);
    for (int i = 0; i < PHASES; i++)
        way->seconds[i] = 0;
    double start = bench_now();
    for (size_t bytes = FIRST; bytes < most; bytes *= 2)
        bare_grow(way, &bare, bytes);
    way->seconds[ALL] = bench_now() - start;
    MUST(cu->cuMemUnmap(bare.base, bare.bytes), "cuMemUnmap");
    for (size_t i = 0; i < bare.count; i++)
        MUST(cu->cuMemRelease(bare.handles[i]), "cuMemRelease");
    MUST(cu->cuMemAddressFree(bare.base, most), "cuMemAddressFree");
}

/* ---- In turns -------------------------------------------------------------------------------- */

enum { BARE, BARE_512, BARE_GIB, BARE_4_GIB, LIBRARY, LIBRARY_512, WAYS };

static struct way ways[WAYS] = {
    [BARE] = {.name = "bare, one handle a step", .handle = ONE_A_STEP},
    [BARE_512] = {.name = "bare, handles of 512 MiB", .handle = 512 * MIB},
    [BARE_GIB] = {.name = "bare, handles of 1 GiB", .handle = GIB},
    [BARE_4_GIB] = {.name = "bare, handles of 4 GiB", .handle = 4 * GIB},
    [LIBRARY] = {.name = "library, by default (one a step)"},
    [LIBRARY_512] = {.name = "library, handles of 512 MiB", .handle = 512 * MIB},
};

static void run(struct way *way) {
    if (way->resource)
        by_library(way);
    else
        by_hand(way);
}

static void pause_for(unsigned milliseconds) {
    nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000,
                                 .tv_nsec = (long)(milliseconds % 1000) * 1000000},
              NULL);
}

static void row(const char *what, double milliseconds, const double *medians) {
    char text[96];
    bench_row(what, milliseconds, medians[BARE], "ms");
    snprintf(text, sizeof text, "%s, beside bare 512", what);
    if (what[0] == 'l')
        bench_row(text, milliseconds, medians[BARE_512], "ms");
}

static void measure(unsigned pause) {
    static double samples[WAYS][PHASES][ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned turn = 0; turn < WAYS; turn++) {
            /* In steps of 1 or of 5, so that another way precedes each in every second round. */
            unsigned which = (round + turn * (round % 2 ? WAYS - 1 : 1)) % WAYS;
            pause_for(pause);
            run(&ways[which]);
            for (int phase = 0; phase < PHASES; phase++)
                samples[which][phase][round] = 1e3 * ways[which].seconds[phase];
        }
    }
    double medians[WAYS];
    char title[96], what[96];
    for (int i = 0; i < WAYS; i++)
        medians[i] = bench_median(samples[i][ALL], ROUNDS);
    snprintf(title, sizeof title, "64 MiB to %zu MiB by doubling, %s", most / MIB,
             pause ? "each after a pause" : "each right after another");
    bench_header(title, "bare one");
    for (int i = 0; i < WAYS; i++)
        row(ways[i].name, medians[i], medians);
    for (int i = 0; i < LIBRARY; i++) {
        static const char *const phases[] = {"create", "map", "set access"};
        for (int phase = 0; phase < ALL; phase++) {
            snprintf(what, sizeof what, "%s: %s", ways[i].name, phases[phase]);
            bench_row(what, bench_median(samples[i][phase], ROUNDS), 0, "ms");
        }
    }
}

static void make_resource(struct way *way) {
    ok(gpumem_virtual_resource_create(device,
                                      GPUMEM_VIRTUAL_OPTIONS(.handle_type = GPUMEM_HANDLE_NONE,
                                                             .give_back_bytes = way->handle),
                                      &way->resource),
       "virtual resource");
}

int main(int argc, char **argv) {
    gpumem_library *library = NULL;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    cu = gpumem_driver_table(gpumem_library_driver(library));
    MUST(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), "cuCtxPushCurrent");
    const char *choice = getenv("GPUMEM_DRIVER");
    printf("driver: %s, medians of %d rounds\n", choice ? choice : "libcuda.so.1", ROUNDS);
    unsigned long gib = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
    unsigned long pause = argc > 2 ? strtoul(argv[2], NULL, 10) : 300;
    uint64_t room = 0, total = 0;
    ok(gpumem_device_get_memory(device, &room, &total), "memory");
    for (most = FIRST; most * 2 <= gib * GIB && most * 2 <= room; most *= 2) {
    }
    make_resource(&ways[LIBRARY]);
    make_resource(&ways[LIBRARY_512]);
    for (int i = 0; i < WAYS; i++) /* warms all of them */
        run(&ways[i]);
    measure(0);
    measure((unsigned)pause);
    ok(gpumem_resource_destroy(ways[LIBRARY].resource), "destroy");
    ok(gpumem_resource_destroy(ways[LIBRARY_512].resource), "destroy");
    ok(gpumem_device_close(device), "close");
    ok(gpumem_close(library), "close");
    return 0;
}
