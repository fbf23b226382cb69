/*
 * The cost of softgpu's copies and hand-offs, compared with memcpy and a hand-off between two
 * threads in the same run. Runs on any driver, including a GPU's.
 */
#include "table.h"

#include <gpumem/driver.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE   ((size_t)64 << 20)
#define SMALL   ((size_t)4096)
#define ROUNDS  15
#define REPEATS 2000 /* small operations per sample */

static const gpumem_driver_api *cu;

static void ok(CUresult result, const char *call) {
    if (result != CUDA_SUCCESS)
        bench_fail("%s answered %s", call, bench_result(cu, result));
}
#define OK(call) ok((call), #call)

struct scene {
    CUstream stream;
    CUdeviceptr a, b, pinned_address;
    unsigned char *plain, *other, *pinned;
};

static void open_driver(void) {
    gpumem_driver *driver;
    if (gpumem_driver_open(NULL, &driver) != GPUMEM_OK &&
        (getenv("GPUMEM_DRIVER") || gpumem_driver_open("softgpu", &driver) != GPUMEM_OK))
        bench_fail("%s", gpumem_last_error()->message);
    cu = gpumem_driver_table(driver);
    printf("driver %s\n", driver_info(driver).path);
}

/* Every buffer is touched before anything is timed. */
static struct scene make(void) {
    struct scene scene;
    CUcontext context;
    void *memory;
    OK(cu->cuInit(0));
    OK(cu->cuDevicePrimaryCtxRetain(&context, 0));
    OK(cu->cuCtxSetCurrent(context));
    OK(cu->cuStreamCreate(&scene.stream, CU_STREAM_NON_BLOCKING));
    OK(cu->cuMemAlloc_v2(&scene.a, LARGE));
    OK(cu->cuMemAlloc_v2(&scene.b, LARGE));
    OK(cu->cuMemHostAlloc(&memory, LARGE, CU_MEMHOSTALLOC_DEVICEMAP));
    scene.pinned = memory;
    OK(cu->cuMemHostGetDevicePointer_v2(&scene.pinned_address, memory, 0));
    scene.plain = malloc(LARGE);
    scene.other = malloc(LARGE);
    if (!scene.plain || !scene.other)
        bench_fail("no memory");
    memset(scene.plain, 1, LARGE);
    memset(scene.other, 2, LARGE);
    memset(scene.pinned, 3, LARGE);
    OK(cu->cuMemsetD8_v2(scene.a, 4, LARGE));
    OK(cu->cuMemsetD8_v2(scene.b, 5, LARGE));
    OK(cu->cuCtxSynchronize());
    return scene;
}

typedef void (*body)(struct scene *);

/* Median seconds of `repeats` calls, divided by them. */
static double median(body body, struct scene *scene, unsigned repeats) {
    double times[ROUNDS];
    body(scene);
    for (unsigned i = 0; i < ROUNDS; i++) {
        double start = bench_now();
        for (unsigned k = 0; k < repeats; k++)
            body(scene);
        times[i] = (bench_now() - start) / repeats;
    }
    return bench_median(times, ROUNDS);
}

/* ---- 64 MiB ---- */

static void large_memcpy(struct scene *scene) {
    memcpy(scene->other, scene->plain, LARGE);
}

static void large_memset(struct scene *scene) {
    memset(scene->other, 7, LARGE);
}

static void large_in(struct scene *scene) {
    OK(cu->cuMemcpyHtoD_v2(scene->a, scene->plain, LARGE));
}

static void large_out(struct scene *scene) {
    OK(cu->cuMemcpyDtoH_v2(scene->other, scene->a, LARGE));
}

static void large_on_device(struct scene *scene) {
    OK(cu->cuMemcpyDtoDAsync_v2(scene->b, scene->a, LARGE, scene->stream));
    OK(cu->cuStreamSynchronize(scene->stream));
}

static void large_pinned(struct scene *scene) {
    OK(cu->cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, LARGE, scene->stream));
    OK(cu->cuStreamSynchronize(scene->stream));
}

static void large_set8(struct scene *scene) {
    OK(cu->cuMemsetD8Async(scene->a, 7, LARGE, scene->stream));
    OK(cu->cuStreamSynchronize(scene->stream));
}

static void large_set32(struct scene *scene) {
    OK(cu->cuMemsetD32Async(scene->a, 0x12345678, LARGE / 4, scene->stream));
    OK(cu->cuStreamSynchronize(scene->stream));
}

/* ---- 4 KiB and less ---- */

static void small_memcpy(struct scene *scene) {
    memcpy(scene->other, scene->plain, SMALL);
    __asm__ volatile("" ::"r"(scene->other) : "memory");
}

static void small_sync(struct scene *scene) {
    OK(cu->cuMemcpyHtoD_v2(scene->a, scene->plain, SMALL));
}

static void small_on_device(struct scene *scene) {
    OK(cu->cuMemcpyDtoDAsync_v2(scene->a, scene->b, SMALL, scene->stream));
}

static void small_async_and_wait(struct scene *scene) {
    OK(cu->cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, SMALL, scene->stream));
    OK(cu->cuStreamSynchronize(scene->stream));
}

/* Above the size that the call itself copies. */
static void queued_and_wait(struct scene *scene) {
    OK(cu->cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, 16 * SMALL, scene->stream));
    OK(cu->cuStreamSynchronize(scene->stream));
}

static void queued_memcpy(struct scene *scene) {
    memcpy(scene->other, scene->plain, 16 * SMALL);
    __asm__ volatile("" ::"r"(scene->other) : "memory");
}

static void queue_hundred(struct scene *scene) {
    for (unsigned i = 0; i < 100; i++)
        OK(cu->cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, 16 * SMALL, scene->stream));
    OK(cu->cuStreamSynchronize(scene->stream));
}

/* Behind a gate: the copy is not done when its call returns, but is done when the wait ends. The
 * time covers the call, the opening of the gate and the wait. */
static uint32_t gate_turn;

static void gated(struct scene *scene) {
    uint32_t *gate = (uint32_t *)(void *)(scene->pinned + LARGE / 2);
    unsigned char *to = scene->pinned + SMALL, wanted = gate_turn % 2 ? 0x31 : 0x32;
    gate_turn++;
    OK(cu->cuStreamWaitValue32_v2(scene->stream, scene->pinned_address + LARGE / 2, gate_turn,
                                  CU_STREAM_WAIT_VALUE_EQ));
    OK(cu->cuMemcpyDtoHAsync_v2(to, scene->a + (gate_turn % 2 ? SMALL : 2 * SMALL), SMALL,
                                scene->stream));
    if (to[0] == wanted)
        bench_fail("the copy was done before the gate was opened");
    __atomic_store_n(gate, gate_turn, __ATOMIC_RELEASE);
    OK(cu->cuStreamSynchronize(scene->stream));
    if (to[0] != wanted || to[SMALL - 1] != wanted)
        bench_fail("the copy was not done after the wait");
}

static void fill_for_gate(struct scene *scene) {
    OK(cu->cuMemsetD8_v2(scene->a + SMALL, 0x32, SMALL));
    OK(cu->cuMemsetD8_v2(scene->a + 2 * SMALL, 0x31, SMALL));
    OK(cu->cuCtxSynchronize());
}

static void write_value(struct scene *scene) {
    OK(cu->cuStreamWriteValue32_v2(scene->stream, scene->pinned_address, 1, 0));
    OK(cu->cuStreamSynchronize(scene->stream));
}

static void poll_until_done(struct scene *scene) {
    OK(cu->cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, 16 * SMALL, scene->stream));
    CUresult result;
    while ((result = cu->cuStreamQuery(scene->stream)) == CUDA_ERROR_NOT_READY)
        ;
    OK(result);
}

/* ---- Hand-offs ---- */

static void CUDAAPI nothing(void *unused) {
    (void)unused;
}

static void host_function(struct scene *scene) {
    OK(cu->cuLaunchHostFunc(scene->stream, nothing, NULL));
    OK(cu->cuStreamSynchronize(scene->stream));
}

/* Two threads and two condition variables: what a hand-off costs without a driver. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t there = PTHREAD_COND_INITIALIZER, back = PTHREAD_COND_INITIALIZER;
static bool asked;

static void *answer(void *unused) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!asked)
            pthread_cond_wait(&there, &lock);
        asked = false;
        pthread_cond_signal(&back);
    }
    return unused;
}

static void thread_hand_off(struct scene *scene) {
    (void)scene;
    pthread_mutex_lock(&lock);
    asked = true;
    pthread_cond_signal(&there);
    while (asked)
        pthread_cond_wait(&back, &lock);
    pthread_mutex_unlock(&lock);
}

static void large_table(struct scene *scene) {
    double copy = median(large_memcpy, scene, 1), set = median(large_memset, scene, 1);
    bench_header("64 MiB between touched buffers", "memcpy or memset");
    bench_row("pageable to device", median(large_in, scene, 1) * 1e3, copy * 1e3, "ms");
    bench_row("device to pageable", median(large_out, scene, 1) * 1e3, copy * 1e3, "ms");
    bench_row("pinned to device, async", median(large_pinned, scene, 1) * 1e3, copy * 1e3, "ms");
    bench_row("device to device, async", median(large_on_device, scene, 1) * 1e3, copy * 1e3, "ms");
    bench_row("set of bytes", median(large_set8, scene, 1) * 1e3, set * 1e3, "ms");
    bench_row("set of words", median(large_set32, scene, 1) * 1e3, set * 1e3, "ms");
}

static void small_table(struct scene *scene) {
    double copy = median(small_memcpy, scene, REPEATS);
    double queued = median(queued_memcpy, scene, REPEATS);
    bench_header("Small copies", "memcpy of the bytes");
    bench_row("4 KiB, synchronous", median(small_sync, scene, REPEATS) * 1e6, copy * 1e6, "us");
    bench_row("4 KiB, device to device, async", median(small_on_device, scene, REPEATS) * 1e6,
              copy * 1e6, "us");
    bench_row("4 KiB, async, then wait", median(small_async_and_wait, scene, REPEATS) * 1e6,
              copy * 1e6, "us");
    fill_for_gate(scene);
    bench_row("4 KiB behind a gate, then wait", median(gated, scene, REPEATS) * 1e6, copy * 1e6,
              "us");
    bench_row("64 KiB, async, then wait", median(queued_and_wait, scene, REPEATS) * 1e6,
              queued * 1e6, "us");
    bench_row("100 of 64 KiB, then wait", median(queue_hundred, scene, 20) * 1e6,
              100 * queued * 1e6, "us");
    bench_row("64 KiB, async, polled", median(poll_until_done, scene, 50) * 1e6, queued * 1e6,
              "us");
    bench_row("write of a value, then wait", median(write_value, scene, REPEATS) * 1e6, 0, "us");
}

static void hand_off_table(struct scene *scene) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, answer, NULL) != 0)
        bench_fail("no thread");
    pthread_detach(thread);
    double hand_off = median(thread_hand_off, scene, 500);
    bench_header("Hand-offs", "two threads, there and back");
    bench_row("host function, then wait", median(host_function, scene, 500) * 1e6, hand_off * 1e6,
              "us");
}

int main(void) {
    open_driver();
    struct scene scene = make();
    large_table(&scene);
    small_table(&scene);
    hand_off_table(&scene);
    return 0;
}
