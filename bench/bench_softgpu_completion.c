/*
 * A 4 KiB copy whose completion another thread sees, compared with a bare hand-off by futex in the
 * same run: one thread queues the copy and signals the other, which waits for it and signals back.
 * Runs on any driver.
 */
#include "table.h"

#include <gpumem/driver.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE    ((size_t)4096)
#define ROUNDS  15
#define REPEATS 500

static const gpumem_driver_api *cu;

static void ok(CUresult result, const char *call) {
    if (result != CUDA_SUCCESS)
        bench_fail("%s answered %s", call, bench_result(cu, result));
}
#define OK(call) ok((call), #call)

/* What the second thread does before it signals back. */
enum task { IDLE, NOTHING, SYNCHRONIZE_EVENT, SYNCHRONIZE_STREAM, POLL_EVENT, DONE };

static struct {
    atomic_uint turn; /* an enum task; IDLE is the answer */
    atomic_uint told; /* set by the host function */
    CUcontext context;
    CUstream stream;
    CUevent event;
    CUdeviceptr device;
    unsigned char *pinned;
} scene;

static void wait_while(atomic_uint *word, unsigned value) {
    while (atomic_load(word) == value)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void say(atomic_uint *word, unsigned value) {
    atomic_store(word, value);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void see_completion(enum task task) {
    CUresult result = CUDA_SUCCESS;
    switch (task) {
    case SYNCHRONIZE_EVENT:
        OK(cu->cuEventSynchronize(scene.event));
        break;
    case SYNCHRONIZE_STREAM:
        OK(cu->cuStreamSynchronize(scene.stream));
        break;
    case POLL_EVENT:
        while ((result = cu->cuEventQuery(scene.event)) == CUDA_ERROR_NOT_READY)
            ;
        OK(result);
        break;
    default:
        break;
    }
}

static void *second_thread(void *unused) {
    OK(cu->cuCtxSetCurrent(scene.context));
    for (;;) {
        wait_while(&scene.turn, IDLE);
        unsigned task = atomic_load(&scene.turn);
        if (task == DONE)
            return unused;
        see_completion((enum task)task);
        say(&scene.turn, IDLE);
    }
}

static void hand_over(enum task task) {
    say(&scene.turn, task);
    wait_while(&scene.turn, task);
}

static void copy_and_hand_over(enum task task) {
    OK(cu->cuMemcpyHtoDAsync_v2(scene.device, scene.pinned, SIZE, scene.stream));
    OK(cu->cuEventRecord(scene.event, scene.stream));
    hand_over(task);
}

static void CUDAAPI tell(void *unused) {
    (void)unused;
    say(&scene.told, 1);
}

/* A thread of the driver signals; the second thread sleeps on. */
static void copy_and_host_function(enum task unused) {
    (void)unused;
    atomic_store(&scene.told, 0);
    OK(cu->cuMemcpyHtoDAsync_v2(scene.device, scene.pinned, SIZE, scene.stream));
    OK(cu->cuLaunchHostFunc(scene.stream, tell, NULL));
    wait_while(&scene.told, 0);
}

static double median(void (*body)(enum task), enum task task) {
    double times[ROUNDS];
    body(task);
    for (unsigned i = 0; i < ROUNDS; i++) {
        double start = bench_now();
        for (unsigned k = 0; k < REPEATS; k++)
            body(task);
        times[i] = (bench_now() - start) / REPEATS;
    }
    return bench_median(times, ROUNDS) * 1e6;
}

static void open_driver(void) {
    gpumem_driver *driver;
    void *memory;
    if (gpumem_driver_open(NULL, &driver) != GPUMEM_OK &&
        (getenv("GPUMEM_DRIVER") || gpumem_driver_open("softgpu", &driver) != GPUMEM_OK))
        bench_fail("%s", gpumem_last_error()->message);
    cu = gpumem_driver_table(driver);
    printf("driver %s\n", driver_info(driver).path);
    OK(cu->cuInit(0));
    OK(cu->cuDevicePrimaryCtxRetain(&scene.context, 0));
    OK(cu->cuCtxSetCurrent(scene.context));
    OK(cu->cuStreamCreate(&scene.stream, CU_STREAM_NON_BLOCKING));
    OK(cu->cuEventCreate(&scene.event, CU_EVENT_DISABLE_TIMING));
    OK(cu->cuMemAlloc_v2(&scene.device, SIZE));
    OK(cu->cuMemHostAlloc(&memory, SIZE, 0));
    scene.pinned = memory;
    memset(scene.pinned, 3, SIZE);
    OK(cu->cuMemsetD8_v2(scene.device, 4, SIZE));
    OK(cu->cuCtxSynchronize());
}

int main(void) {
    pthread_t thread;
    open_driver();
    if (pthread_create(&thread, NULL, second_thread, NULL) != 0)
        bench_fail("no thread");
    double bare = median(hand_over, NOTHING);
    bench_header("4 KiB, async, seen by another thread", "hand-off by futex, there and back");
    bench_row("in cuEventSynchronize", median(copy_and_hand_over, SYNCHRONIZE_EVENT), bare, "us");
    bench_row("in cuStreamSynchronize", median(copy_and_hand_over, SYNCHRONIZE_STREAM), bare, "us");
    bench_row("by cuEventQuery, again and again", median(copy_and_hand_over, POLL_EVENT), bare,
              "us");
    bench_row("by a host function that tells", median(copy_and_host_function, NOTHING), bare, "us");
    say(&scene.turn, DONE);
    pthread_join(thread, NULL);
    OK(cu->cuCtxSynchronize());
    return 0;
}
