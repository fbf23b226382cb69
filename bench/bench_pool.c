/*
 * The cost of an allocation and its free from the device pool, compared with the driver's own
 * calls, and the cost of the calls by which the library avoids disturbing stream captures. Over a
 * driver whose calls cost nothing (costless/driver.c) it is the cost of the library itself.
 */
#include "check.h"
#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 11
#define PAIRS  20000
#define BYTES  ((size_t)64 << 10)

static const gpumem_driver_api *cu;
static gpumem_resource *pool;
static CUmemoryPool bare_pool;
static CUstream stream;

static void bare_pair(CUstream on) {
    CUdeviceptr address = 0;
    if (cu->cuMemAllocFromPoolAsync(&address, BYTES, bare_pool, on) != CUDA_SUCCESS ||
        cu->cuMemFreeAsync(address, on) != CUDA_SUCCESS)
        bench_fail("the driver's pool refuses");
}

static void library_pair(CUstream on) {
    gpumem_buffer *buffer;
    ok(gpumem_buffer_allocate(pool, BYTES, GPUMEM_OPTIONS(gpumem_buffer_options, .stream = on),
                              &buffer),
       "allocate");
    ok(gpumem_buffer_free(buffer, NULL), "free");
}

/* Sets the mode to its present value. */
static void exchange_mode(CUstream on) {
    (void)on;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (cu->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        bench_fail("cuThreadExchangeStreamCaptureMode refuses");
}

static void ask_context(CUstream on) {
    (void)on;
    CUcontext current;
    if (cu->cuCtxGetCurrent(&current) != CUDA_SUCCESS)
        bench_fail("cuCtxGetCurrent refuses");
}

static void ask_capture(CUstream on) {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    if (cu->cuStreamGetCaptureInfo(on, &status, &id) != CUDA_SUCCESS)
        bench_fail("cuStreamGetCaptureInfo refuses");
}

static void ask_number(CUstream on) {
    unsigned long long number;
    if (cu->cuStreamGetId(on, &number) != CUDA_SUCCESS)
        bench_fail("cuStreamGetId refuses");
}

/* The calls that keep a thread from being cancelled inside a call of the library. */
static void set_cancellable(CUstream on) {
    (void)on;
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
}

/* Microseconds per call. */
static double measure(void (*run)(CUstream), CUstream on) {
    double samples[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_now();
        for (int n = 0; n < PAIRS; n++)
            run(on);
        samples[i] = 1e6 * (bench_now() - start) / PAIRS;
    }
    return bench_median(samples, ROUNDS);
}

static void pairs(const char *what, CUstream on) {
    double bare = measure(bare_pair, on);
    bench_row(what, measure(library_pair, on), bare, "us");
}

int main(void) {
    gpumem_library *library;
    gpumem_device *device;
    ok(gpumem_open(NULL, &library), "open");
    ok(gpumem_device_open(library, 0, &device), "device");
    ok(gpumem_device_pool_resource_create(device, NULL, &pool), "pool");
    ok(gpumem_stream_create(device, NULL, &stream), "stream");
    cu = gpumem_driver_table(gpumem_library_driver(library));
    if (cu->cuCtxSetCurrent(gpumem_device_context(device)) != CUDA_SUCCESS ||
        cu->cuDeviceGetMemPool(&bare_pool, gpumem_device_handle(device)) != CUDA_SUCCESS)
        bench_fail("no context or pool");
    const char *choice = getenv("GPUMEM_DRIVER");
    printf("driver: %s, medians of %d rounds\n", choice ? choice : "libcuda.so.1", ROUNDS);
    bench_header("device pool, allocate and free 64 KiB", "bare calls");
    pairs("on a stream", stream);
    pairs("on the default stream", NULL);
    bench_header("one call of the driver", "-");
    bench_row("cuThreadExchangeStreamCaptureMode (4 a pair)", measure(exchange_mode, stream), 0,
              "us");
    bench_row("cuCtxGetCurrent (2, default stream)", measure(ask_context, stream), 0, "us");
    bench_row("cuStreamGetCaptureInfo (2, default stream)", measure(ask_capture, NULL), 0, "us");
    bench_row("cuStreamGetId", measure(ask_number, stream), 0, "us");
    bench_row("pthread_setcancelstate, of libc (4 a pair)", measure(set_cancellable, stream), 0,
              "us");
    ok(gpumem_stream_destroy(device, stream), "stream");
    ok(gpumem_resource_destroy(pool), "resource");
    ok(gpumem_device_close(device), "device close");
    ok(gpumem_close(library), "close");
    return 0;
}
