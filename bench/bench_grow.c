/*
 * Growing a virtual buffer, compared with the bare driver calls for the same chunks in the same
 * run: create + map + set access. Both take turns, so that they see the machine in the same state.
 */
#include "check.h"
#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS     15
#define MOST_STEPS 64

static const gpumem_driver_api *cu;
static gpumem_device *device;

/* Microseconds per step, with the library. */
static double grow_library(gpumem_resource *resource, size_t chunk, unsigned steps) {
    gpumem_buffer *buffer = NULL;
    ok(gpumem_buffer_allocate(
           resource, chunk, GPUMEM_OPTIONS(gpumem_buffer_options, .capacity = chunk * (steps + 1)),
           &buffer),
       "allocate");
    double start = bench_now();
    for (unsigned i = 1; i <= steps; i++)
        ok(gpumem_buffer_grow(buffer, chunk * (i + 1), NULL), "grow");
    double seconds = bench_now() - start;
    ok(gpumem_buffer_free(buffer, NULL), "free");
    ok(gpumem_device_trim(device, 1), "trim");
    return 1e6 * seconds / steps;
}

static double grow_bare(size_t chunk, unsigned steps) {
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpumem_device_handle(device)},
    };
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handles[MOST_STEPS + 1];
    CUdeviceptr base = 0;
    double start = 0;
    MUST(cu->cuMemAddressReserve(&base, chunk * (steps + 1), 0, 0, 0), "cuMemAddressReserve");
    for (unsigned i = 0; i <= steps; i++) {
        if (i == 1)
            start = bench_now();
        CUdeviceptr at = base + chunk * i;
        MUST(cu->cuMemCreate(&handles[i], chunk, &prop, 0), "cuMemCreate");
        MUST(cu->cuMemMap(at, chunk, 0, handles[i], 0), "cuMemMap");
        MUST(cu->cuMemSetAccess(at, chunk, &access, 1), "cuMemSetAccess");
    }
    double seconds = bench_now() - start;
    MUST(cu->cuMemUnmap(base, chunk * (steps + 1)), "cuMemUnmap");
    for (unsigned i = 0; i <= steps; i++)
        MUST(cu->cuMemRelease(handles[i]), "cuMemRelease");
    MUST(cu->cuMemAddressFree(base, chunk * (steps + 1)), "cuMemAddressFree");
    return 1e6 * seconds / steps;
}

static void compare(size_t chunk, unsigned steps) {
    gpumem_virtual_options options = {.size = sizeof options,
                                      .minimum_chunk_bytes = chunk,
                                      .maximum_chunk_bytes = chunk,
                                      .exact_growth = 1};
    gpumem_resource *resource = NULL;
    ok(gpumem_virtual_resource_create(device, &options, &resource), "virtual resource");
    double library[ROUNDS], bare[ROUNDS];
    grow_library(resource, chunk, steps); /* warms both */
    grow_bare(chunk, steps);
    for (int i = 0; i < ROUNDS; i++) {
        bare[i] = grow_bare(chunk, steps);
        library[i] = grow_library(resource, chunk, steps);
    }
    char what[64];
    snprintf(what, sizeof what, "grow by %zu MiB, %u times", chunk >> 20, steps);
    bench_row(what, bench_median(library, ROUNDS), bench_median(bare, ROUNDS), "us a step");
    ok(gpumem_resource_destroy(resource), "destroy");
}

int main(void) {
    gpumem_library *library = NULL;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    cu = gpumem_driver_table(gpumem_library_driver(library));
    MUST(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), "cuCtxPushCurrent");
    gpumem_library_info info = {.size = sizeof info};
    ok(gpumem_library_get_info(library, &info), "info");
    printf("driver: %s, API %d\n", info.driver_path, info.driver_version);

    uint64_t room = 0, total = 0;
    ok(gpumem_device_get_memory(device, &room, &total), "memory");
    bench_header("virtual buffer, growing in place", "bare driver");
    compare((size_t)2 << 20, 64);
    compare((size_t)64 << 20, 16);
    if (room > (uint64_t)8 << 30)
        compare((size_t)512 << 20, 8);
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return 0;
}
