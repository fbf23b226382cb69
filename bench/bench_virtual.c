/*
 * Virtual memory compared with the bare driver in the same run: allocating and freeing with a
 * cache.
 */
#include "check.h"
#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 11
#define PAIRS  2000
#define MIB    ((size_t)1 << 20)
#define GIB    ((size_t)1 << 30)

static const gpumem_driver_api *cu;
static gpumem_device *device;
static CUstream stream, other;

/* ---- By hand --------------------------------------------------------------------------------- */

/* Reserve, create, map and give access, and undo all of it. */
static void bare_pair(void) {
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpumem_device_handle(device)},
    };
    const CUmemAccessDesc access = {.location = prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const size_t bytes = 64 * MIB;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base = 0;
    MUST(cu->cuMemAddressReserve(&base, bytes, 0, 0, 0), "cuMemAddressReserve");
    MUST(cu->cuMemCreate(&handle, bytes, &prop, 0), "cuMemCreate");
    MUST(cu->cuMemMap(base, bytes, 0, handle, 0), "cuMemMap");
    MUST(cu->cuMemSetAccess(base, bytes, &access, 1), "cuMemSetAccess");
    MUST(cu->cuMemUnmap(base, bytes), "cuMemUnmap");
    MUST(cu->cuMemRelease(handle), "cuMemRelease");
    MUST(cu->cuMemAddressFree(base, bytes), "cuMemAddressFree");
}

/* ---- Allocating and freeing ------------------------------------------------------------------ */

static void library_pair(gpumem_resource *resource, CUstream on) {
    gpumem_buffer *buffer;
    ok(gpumem_buffer_allocate(resource, 64 * MIB,
                              GPUMEM_OPTIONS(gpumem_buffer_options, .stream = on), &buffer),
       "allocate");
    ok(gpumem_buffer_free(buffer, NULL), "free");
}

/* Microseconds per pair; two streams take turns. */
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

/* Each pair's memory is written to, so that the next pair finds it in use on the same stream. */
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
            MUST(cu->cuMemsetD8Async(gpumem_buffer_pointer(buffer), 1, 64 * MIB, stream),
                 "cuMemsetD8Async");
            work += bench_now() - before;
            ok(gpumem_buffer_free(buffer, NULL), "free");
        }
        samples[i] = 1e6 * (bench_now() - start - work) / 100;
        MUST(cu->cuStreamSynchronize(stream), "cuStreamSynchronize");
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

int main(void) {
    gpumem_library *library = NULL;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    cu = gpumem_driver_table(gpumem_library_driver(library));
    MUST(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), "cuCtxPushCurrent");
    ok(gpumem_stream_create(device, NULL, &stream), "stream");
    ok(gpumem_stream_create(device, NULL, &other), "stream");
    const char *choice = getenv("GPUMEM_DRIVER");
    printf("driver: %s, medians of %d rounds\n", choice ? choice : "libcuda.so.1", ROUNDS);
    pairs();
    ok(gpumem_stream_destroy(device, other), "stream");
    ok(gpumem_stream_destroy(device, stream), "stream");
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return 0;
}
