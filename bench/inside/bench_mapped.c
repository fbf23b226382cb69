/*
 * Stores to mapped memory, from the first store until the fence has completed, compared with the
 * same stores in an inlined loop, the same loop on memory made vkgdr's way, GDRCopy's copy where
 * available, and cuMemcpyHtoD; publishing; and from the CPU to a polling kernel and back.
 *
 * A store is timed in two states. *Drained*: everything before has arrived, which a load from the
 * mapping ensures, so that the stores find empty buffers on their way. *Stream*: store follows
 * store, so that the buffers are full. It is also timed until it has arrived, with that load
 * included in the time.
 *
 * GPUMEM_MAPPED_METHOD chooses the method by its name; the default is the best that works.
 */
#include "by_hand.h"
#include "echo_kernel.h"
#include "gdrcopy.h"
#include "mapped_method.h"
#include "store_timing.h"
#include "table.h"

#include <gpumem/mapped_store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY  ((size_t)2 << 20)
#define LARGEST 4096

static const gpumem_driver_api *cu;
static gpumem_device *device;
static gpumem_buffer *buffer;
static unsigned char *mapped, *by_vkgdr;
static CUdeviceptr address;
static const void *gdrcopy;
static unsigned samples;

static _Alignas(64) unsigned char data[LARGEST];

static void ok(gpumem_status status, const char *what) {
    if (status != GPUMEM_OK)
        bench_fail("%s: %s", what, gpumem_last_error()->message);
}

static void must(CUresult result, const char *call) {
    if (result != CUDA_SUCCESS)
        bench_fail("%s answered %s", call, bench_result(cu, result));
}

/* ---- Ways to store --------------------------------------------------------------------------- */

/* The size is a constant where these are inlined. */
static inline __attribute__((always_inline)) void loop_to(unsigned char *to, size_t bytes) {
    volatile uint64_t *words = (volatile uint64_t *)(void *)to;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = ((const uint64_t *)(const void *)data)[i];
    gpumem_store_fence();
}

#define WAYS(bytes)                                                                                \
    static void store_##bytes(void) {                                                              \
        gpumem_store(mapped, data, bytes);                                                         \
        gpumem_store_fence();                                                                      \
    }                                                                                              \
    static void loop_##bytes(void) {                                                               \
        loop_to(mapped, bytes);                                                                    \
    }                                                                                              \
    static void vkgdr_##bytes(void) {                                                              \
        loop_to(by_vkgdr, bytes);                                                                  \
    }                                                                                              \
    static void write_##bytes(void) {                                                              \
        ok(gpumem_mapped_write(buffer, 0, data, bytes), "gpumem_mapped_write");                    \
    }                                                                                              \
    static void gdr_##bytes(void) {                                                                \
        gdrcopy_store(data, bytes);                                                                \
    }                                                                                              \
    static void driver_##bytes(void) {                                                             \
        must(cu->cuMemcpyHtoD_v2(address, data, bytes), "cuMemcpyHtoD");                           \
    }
WAYS(8)
WAYS(64)
WAYS(4096)

/* ---- Sizes ----------------------------------------------------------------------------------- */

#define COMPARE(bytes)                                                                             \
    bench_stores(                                                                                  \
        (struct bench_way[]){                                                                      \
            {.name = "inlined loop", .run = loop_##bytes, .arrives = mapped},                      \
            {.name = "gpumem_store + fence", .run = store_##bytes, .arrives = mapped},             \
            {.name = "gpumem_mapped_write", .run = write_##bytes, .arrives = mapped},              \
            {.name = "inlined loop, vkgdr's memory",                                               \
             .run = by_vkgdr ? vkgdr_##bytes : NULL,                                               \
             .arrives = by_vkgdr},                                                                 \
            {.name = "GDRCopy", .run = gdrcopy ? gdr_##bytes : NULL, .arrives = gdrcopy},          \
            {.name = "cuMemcpyHtoD", .run = driver_##bytes},                                       \
        },                                                                                         \
        6, samples, #bytes " B, from the first store until the fence has passed")

/* ---- Publishing ------------------------------------------------------------------------------ */

static uint32_t sequence;

static void publish(void) {
    ok(gpumem_mapped_publish(buffer, 0, data, 64, 64, ++sequence), "gpumem_mapped_publish");
}

static void publish_by_stores(void) {
    sequence++;
    gpumem_store(mapped, data, 64);
    gpumem_store_fence();
    gpumem_store(mapped + 64, &sequence, sizeof sequence);
    gpumem_store_fence();
}

static void publish_by_loop(void) {
    loop_to(mapped, 64);
    *(volatile uint32_t *)(void *)(mapped + 64) = ++sequence;
    gpumem_store_fence();
}

static void publishing(void) {
    struct bench_way ways[] = {
        {.name = "inlined loop", .run = publish_by_loop, .arrives = mapped},
        {.name = "gpumem_mapped_publish", .run = publish, .arrives = mapped},
        {.name = "gpumem_store, fence, gpumem_store, fence",
         .run = publish_by_stores,
         .arrives = mapped},
    };
    bench_stores(ways, sizeof ways / sizeof ways[0], samples,
                 "publishing 64 B and a flag, until the last fence has passed");
}

/* ---- There and back -------------------------------------------------------------------------- */

/* Microseconds of `count` rounds; each is 64 B, whose words all hold the round's number, and the
 * flag. */
static double there_and_back(unsigned char *host, CUdeviceptr at, uint32_t count, bool payload,
                             double *worst) {
    double *values = calloc(count, sizeof *values);
    uint32_t words[ECHO_PAYLOAD / 4];
    if (!values)
        bench_fail("no memory for %u samples", count);
    must(cu->cuMemsetD8_v2(at, 0, ECHO_PAYLOAD + 4), "cuMemsetD8");
    must(cu->cuCtxSynchronize(), "cuCtxSynchronize");
    echo_start(at, count, payload);
    for (uint32_t i = 1; i <= count; i++) {
        for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
            words[w] = i;
        double start = bench_now();
        if (payload) {
            gpumem_store(host, words, sizeof words);
            gpumem_store_fence();
        }
        gpumem_store(host + ECHO_PAYLOAD, &i, sizeof i);
        gpumem_store_fence();
        echo_await(i);
        values[i - 1] = 1e6 * (bench_now() - start);
    }
    echo_end();
    double median = bench_median(values, count);
    *worst = values[(size_t)(0.99 * (count - 1))]; /* sorted by the median */
    free(values);
    return median;
}

static void round_trips(void) {
    static const char *const names[2][2] = {{"flag alone, median", "flag alone, p99"},
                                            {"64 B + flag, median", "64 B + flag, p99"}};
    void *pinned = NULL;
    CUdeviceptr at = 0;
    if (!echo_open(cu))
        return;
    must(cu->cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
    must(cu->cuMemHostGetDevicePointer_v2(&at, pinned, 0), "cuMemHostGetDevicePointer");
    bench_header("CPU to polling kernel to CPU", "pinned memory");
    for (int payload = 0; payload < 2; payload++) {
        double worst, worst_pinned;
        double pinned_us = there_and_back(pinned, at, samples, payload, &worst_pinned);
        double us = there_and_back(mapped, address, samples, payload, &worst);
        bench_row(names[payload][0], us, pinned_us, "us");
        bench_row(names[payload][1], worst, worst_pinned, "us");
    }
    must(cu->cuMemFreeHost(pinned), "cuMemFreeHost");
    echo_close();
}

/* ---- All ------------------------------------------------------------------------------------- */

static void measure(void) {
    struct hand_exported vkgdr;
    bool has_vulkan = hand_open(cu, device);
    if (has_vulkan) {
        hand_export(MEMORY, &vkgdr);
        by_vkgdr = vkgdr.host;
    }
    gdrcopy = gdrcopy_open(cu, LARGEST);
    COMPARE(8);
    COMPARE(64);
    COMPARE(4096);
    publishing();
    round_trips();
    if (has_vulkan)
        hand_export_end(&vkgdr);
    hand_close();
}

int main(void) {
    gpumem_library *library = NULL;
    gpumem_mapped_method method;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    cu = gpumem_driver_table(gpumem_library_driver(library));
    gpumem_library_info info = {.size = sizeof info};
    ok(gpumem_library_get_info(library, &info), "info");
    samples = info.softgpu ? 201 : 10001;
    printf("driver: %s, API %d\n", info.driver_path, info.driver_version);
    must(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), "cuCtxPushCurrent");
    gpumem_resource *resource = mapped_resource(device, &method);
    ok(gpumem_buffer_allocate(resource, MEMORY, NULL, &buffer), "allocate");
    mapped = gpumem_buffer_host_pointer(buffer);
    address = gpumem_buffer_pointer(buffer);
    memset(data, 0x5a, sizeof data);
    measure();
    ok(gpumem_buffer_free(buffer, NULL), "free");
    ok(gpumem_resource_destroy(resource), "destroy");
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return 0;
}
