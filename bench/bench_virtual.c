/*
 * Virtual memory beside the bare driver in the same run: allocating and freeing with a cache, and
 * growing by doubling, in one handle a step and in smaller ones.
 */
#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS       11
#define PAIRS        2000
#define MIB          ((size_t)1 << 20)
#define GIB          ((size_t)1 << 30)
#define MOST_HANDLES 2048

static const gpumem_driver_api *cu;
static gpumem_device *device;
static CUstream stream, other;

static void ok(gpumem_status status, const char *what) {
    if (status != GPUMEM_OK)
        bench_fail("%s: %s", what, gpumem_last_error()->message);
}

static void must(CUresult result, const char *what) {
    if (result != CUDA_SUCCESS)
        bench_fail("%s answered %s", what, bench_result(cu, result));
}

/* ---- By hand --------------------------------------------------------------------------------- */

struct bare {
    CUdeviceptr base;
    size_t capacity, bytes;
    CUmemGenericAllocationHandle handles[MOST_HANDLES];
    size_t count;
};

static CUmemAllocationProp bare_prop(void) {
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpumem_device_handle(device)},
    };
}

static void bare_reserve(struct bare *bare, size_t capacity) {
    *bare = (struct bare){.capacity = capacity};
    must(cu->cuMemAddressReserve(&bare->base, capacity, 0, 0, 0), "cuMemAddressReserve");
}

/* Adds `bytes` in handles of `most` at most. */
static void bare_grow(struct bare *bare, size_t bytes, size_t most) {
    CUmemAllocationProp prop = bare_prop();
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr start = bare->base + bare->bytes;
    for (size_t left = bytes; left;) {
        size_t part = left < most ? left : most;
        if (bare->count == MOST_HANDLES)
            bench_fail("too many handles");
        CUmemGenericAllocationHandle *handle = &bare->handles[bare->count++];
        must(cu->cuMemCreate(handle, part, &prop, 0), "cuMemCreate");
        must(cu->cuMemMap(bare->base + bare->bytes, part, 0, *handle, 0), "cuMemMap");
        bare->bytes += part;
        left -= part;
    }
    must(cu->cuMemSetAccess(start, bytes, &access, 1), "cuMemSetAccess");
}

static void bare_end(struct bare *bare) {
    must(cu->cuMemUnmap(bare->base, bare->bytes), "cuMemUnmap");
    for (size_t i = 0; i < bare->count; i++)
        must(cu->cuMemRelease(bare->handles[i]), "cuMemRelease");
    must(cu->cuMemAddressFree(bare->base, bare->capacity), "cuMemAddressFree");
}

/* ---- Allocating and freeing ------------------------------------------------------------------ */

static void library_pair(gpumem_resource *resource, CUstream on) {
    gpumem_buffer *buffer;
    ok(gpumem_buffer_allocate(resource, 64 * MIB,
                              GPUMEM_OPTIONS(gpumem_buffer_options, .stream = on), &buffer),
       "allocate");
    ok(gpumem_buffer_free(buffer, NULL), "free");
}

static void bare_pair(void) {
    static struct bare bare;
    bare_reserve(&bare, 64 * MIB);
    bare_grow(&bare, 64 * MIB, 64 * MIB);
    bare_end(&bare);
}

/* Microseconds a pair; with two streams they take turns. */
static double time_library(gpumem_resource *resource, CUstream a, CUstream b, int pairs) {
    double samples[ROUNDS];
    library_pair(resource, a);
    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_now();
        for (int n = 0; n < pairs; n++)
            library_pair(resource, n % 2 ? b : a);
        samples[i] = 1e6 * (bench_now() - start) / pairs;
    }
    return bench_median(samples, ROUNDS);
}

static double time_bare(void) {
    double samples[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_now();
        for (int n = 0; n < 20; n++)
            bare_pair();
        samples[i] = 1e6 * (bench_now() - start) / 20;
    }
    return bench_median(samples, ROUNDS);
}

/* Each pair's memory is written, so that the next one finds it in use on the same stream. */
static double time_with_work(gpumem_resource *resource) {
    double samples[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_now(), work = 0;
        for (int n = 0; n < 100; n++) {
            gpumem_buffer *buffer;
            ok(gpumem_buffer_allocate(resource, 64 * MIB,
                                      GPUMEM_OPTIONS(gpumem_buffer_options, .stream = stream),
                                      &buffer),
               "allocate");
            double before = bench_now();
            must(cu->cuMemsetD8Async(gpumem_buffer_pointer(buffer), 1, 64 * MIB, stream),
                 "cuMemsetD8Async");
            work += bench_now() - before;
            ok(gpumem_buffer_free(buffer, NULL), "free");
        }
        samples[i] = 1e6 * (bench_now() - start - work) / 100;
        must(cu->cuStreamSynchronize(stream), "cuStreamSynchronize");
    }
    return bench_median(samples, ROUNDS);
}

static void pairs(void) {
    gpumem_resource *cached, *cold;
    ok(gpumem_virtual_resource_create(device,
                                      GPUMEM_OPTIONS(gpumem_virtual_options, .cache_bytes = GIB,
                                                     .handle_type = GPUMEM_HANDLE_NONE),
                                      &cached),
       "virtual resource");
    ok(gpumem_virtual_resource_create(
           device, GPUMEM_OPTIONS(gpumem_virtual_options, .handle_type = GPUMEM_HANDLE_NONE),
           &cold),
       "virtual resource");
    bench_header("virtual, allocate and free 64 MiB", "bare calls");
    bare_pair();
    double bare = time_bare();
    bench_row("no cache", time_library(cold, stream, stream, 20), bare, "us");
    bench_row("warm, one stream", time_library(cached, stream, stream, PAIRS), bare, "us");
    bench_row("warm, default stream", time_library(cached, NULL, NULL, PAIRS), bare, "us");
    bench_row("warm, two idle streams in turns", time_library(cached, stream, other, PAIRS), bare,
              "us");
    bench_row("warm, memory still being written by its stream", time_with_work(cached), bare, "us");
    ok(gpumem_resource_destroy(cold), "destroy");
    ok(gpumem_resource_destroy(cached), "destroy");
}

/* ---- Doubling -------------------------------------------------------------------------------- */

/* Milliseconds from 64 MiB to `most`, the first 64 MiB and the end not counted. */
static double double_library(gpumem_resource *resource, size_t most) {
    gpumem_buffer *buffer;
    ok(gpumem_buffer_allocate(resource, 64 * MIB,
                              GPUMEM_OPTIONS(gpumem_buffer_options, .capacity = most), &buffer),
       "allocate");
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    double start = bench_now();
    for (size_t bytes = 128 * MIB; bytes <= most; bytes *= 2)
        ok(gpumem_buffer_grow(buffer, bytes, NULL), "grow");
    double seconds = bench_now() - start;
    if (gpumem_buffer_pointer(buffer) != address)
        bench_fail("the address has changed");
    ok(gpumem_buffer_free(buffer, NULL), "free");
    ok(gpumem_device_trim(device, 1), "trim");
    return 1e3 * seconds;
}

static double double_bare(size_t most, size_t handle) {
    static struct bare bare;
    bare_reserve(&bare, most);
    bare_grow(&bare, 64 * MIB, 64 * MIB);
    double start = bench_now();
    for (size_t bytes = 64 * MIB; bytes < most; bytes *= 2)
        bare_grow(&bare, bytes, handle);
    double seconds = bench_now() - start;
    bare_end(&bare);
    return 1e3 * seconds;
}

static void doubling(size_t most) {
    static const size_t handles[] = {512 * MIB, GIB, 4 * GIB, 16 * GIB};
    enum { KINDS = sizeof handles / sizeof handles[0] };
    double library[ROUNDS], one[ROUNDS], others[KINDS][ROUNDS];
    gpumem_resource *resource;
    ok(gpumem_virtual_resource_create(
           device, GPUMEM_OPTIONS(gpumem_virtual_options, .handle_type = GPUMEM_HANDLE_NONE),
           &resource),
       "virtual resource");
    double_bare(most, most); /* both warm */
    double_library(resource, most);
    for (int i = 0; i < ROUNDS; i++) {
        one[i] = double_bare(most, most);
        library[i] = double_library(resource, most);
        for (size_t k = 0; k < KINDS; k++)
            others[k][i] = double_bare(most, handles[k]);
    }
    char what[64];
    double bare = bench_median(one, ROUNDS);
    snprintf(what, sizeof what, "64 MiB to %zu GiB, one handle a step", most / GIB);
    bench_header("virtual, growing by doubling", "bare calls");
    bench_row(what, bench_median(library, ROUNDS), bare, "ms");
    for (size_t k = 0; k < KINDS; k++) {
        snprintf(what, sizeof what, "bare, handles of %zu MiB", handles[k] / MIB);
        bench_row(what, bench_median(others[k], ROUNDS), bare, "ms");
    }
    ok(gpumem_resource_destroy(resource), "destroy");
}

int main(void) {
    gpumem_library *library = NULL;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    cu = gpumem_driver_table(gpumem_library_driver(library));
    must(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), "cuCtxPushCurrent");
    ok(gpumem_stream_create(device, NULL, &stream), "stream");
    ok(gpumem_stream_create(device, NULL, &other), "stream");
    const char *choice = getenv("GPUMEM_DRIVER");
    printf("driver: %s, medians of %d rounds\n", choice ? choice : "libcuda.so.1", ROUNDS);
    pairs();
    uint64_t room = 0, total = 0;
    ok(gpumem_device_get_memory(device, &room, &total), "memory");
    size_t most = 64 * GIB;
    while (most > room)
        most /= 2;
    doubling(most);
    ok(gpumem_stream_destroy(device, other), "stream");
    ok(gpumem_stream_destroy(device, stream), "stream");
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return 0;
}
