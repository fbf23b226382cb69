/*
 * Each stream waits for a count in host memory, which follows the operations at a distance. A call
 * that waits for a stream would wait for ever, as the count stands still with the host: a thread
 * notices that no operation ends, and lets the streams catch up, as a GPU does that is waited for.
 */
#include "replay_delay.h"

#include "descriptor.h"

#include <gpumem/driver.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How often each stream waits while it gets behind by the whole distance: each wait costs a call
 * of the driver. A free passes up to one part later. */
#define PARTS 32

/* A call sleeps, or is busy, for so long only when it waits: the longest others map memory. */
#define LOOKS_ASLEEP  4
#define BUSY_NS       50000000
#define BETWEEN_LOOKS 500000 /* ns */

struct replay_delay {
    const gpumem_driver_api *cu;
    CUdeviceptr address; /* of `passed`, for the device */
    _Atomic uint64_t *passed;
    _Atomic uint64_t now; /* operations that the host has begun */
    uint64_t behind, part;
    uint64_t *waited; /* of each stream, the part for which it waits, + 1 */
    pthread_t thread;
    clockid_t clock; /* processor time of the thread that replays */
    pid_t id;        /* and its number */
    atomic_bool ends;
};

static gpumem_status refused(struct replay_delay *delay, CUresult result, const char *call) {
    const char *name = "?";
    char text[160];
    (void)delay->cu->cuGetErrorName(result, &name);
    snprintf(text, sizeof text, "%s answered %s", call, name);
    return gpumem_set_last_error(GPUMEM_ERROR_DRIVER, text);
}

/* Never backwards: a stream that was waited for has passed. */
static void pass(struct replay_delay *delay, uint64_t count) {
    uint64_t before = atomic_load(delay->passed);
    while (before < count && !atomic_compare_exchange_weak(delay->passed, &before, count))
        ;
}

/* ---- The thread ------------------------------------------------------------------------------ */

static uint64_t busy_ns(const struct replay_delay *delay) {
    struct timespec used = {0};
    (void)clock_gettime(delay->clock, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* By the state that proc(5) has after the name, whose parenthesis is the last one. */
static bool is_asleep(const struct replay_delay *delay) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)delay->id);
    FILE *file = cli_open_text(path);
    if (!file)
        return true;
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = 0;
    const char *after = strrchr(text, ')');
    return after && strncmp(after, ") S", 3) == 0;
}

static void *watch(void *argument) {
    struct replay_delay *delay = argument;
    uint64_t last = UINT64_MAX, busy = 0;
    unsigned asleep = 0;
    while (!atomic_load(&delay->ends)) {
        nanosleep(&(struct timespec){.tv_nsec = BETWEEN_LOOKS}, NULL);
        uint64_t now = atomic_load(&delay->now);
        if (now != last) {
            last = now;
            busy = busy_ns(delay);
            asleep = 0;
            continue;
        }
        asleep = is_asleep(delay) ? asleep + 1 : 0;
        if (asleep >= LOOKS_ASLEEP || busy_ns(delay) - busy > BUSY_NS)
            pass(delay, atomic_load(delay->passed) + delay->part);
    }
    return NULL;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static gpumem_status make_count(struct replay_delay *delay, gpumem_device *device) {
    void *host = NULL;
    CUresult result = delay->cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    if (result != CUDA_SUCCESS)
        return refused(delay, result, "cuCtxPushCurrent");
    result = delay->cu->cuMemHostAlloc(&host, sizeof *delay->passed, CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS) {
        memset(host, 0, sizeof *delay->passed);
        delay->passed = host;
        result = delay->cu->cuMemHostGetDevicePointer_v2(&delay->address, host, 0);
    }
    return result == CUDA_SUCCESS ? GPUMEM_OK : refused(delay, result, "cuMemHostAlloc");
}

static void drop(struct replay_delay *delay) {
    CUcontext context;
    if (delay->passed)
        (void)delay->cu->cuMemFreeHost((void *)(uintptr_t)delay->passed);
    (void)delay->cu->cuCtxPopCurrent_v2(&context);
    free(delay->waited);
    free(delay);
}

struct replay_delay *replay_delay_begin(gpumem_device *device, uint64_t behind, size_t streams) {
    struct replay_delay *delay = calloc(1, sizeof *delay);
    if (delay)
        delay->waited = calloc(streams, sizeof *delay->waited);
    if (!delay || !delay->waited) {
        free(delay);
        (void)gpumem_set_last_error(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to run the log");
        return NULL;
    }
    delay->cu = gpumem_driver_table(gpumem_library_driver(gpumem_device_library(device)));
    delay->behind = behind;
    delay->part = behind < PARTS ? 1 : behind / PARTS;
    delay->id = gettid();
    gpumem_status status = make_count(delay, device);
    if (status == GPUMEM_OK && (pthread_getcpuclockid(pthread_self(), &delay->clock) != 0 ||
                                pthread_create(&delay->thread, NULL, watch, delay) != 0))
        status = gpumem_set_last_error(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no thread can be started");
    if (status == GPUMEM_OK)
        return delay;
    drop(delay);
    return NULL;
}

gpumem_status replay_delay_operation(struct replay_delay *delay, CUstream stream, size_t number) {
    uint64_t now = atomic_fetch_add(&delay->now, 1);
    if (now > delay->behind)
        pass(delay, now - delay->behind);
    uint64_t part = now / delay->part + 1;
    if (delay->waited[number] == part)
        return GPUMEM_OK;
    delay->waited[number] = part;
    CUresult result = delay->cu->cuStreamWaitValue64_v2(stream, delay->address, part * delay->part,
                                                        CU_STREAM_WAIT_VALUE_GEQ);
    return result == CUDA_SUCCESS ? GPUMEM_OK : refused(delay, result, "cuStreamWaitValue64");
}

void replay_delay_release(struct replay_delay *delay) {
    if (delay)
        pass(delay, INT64_MAX); /* waits compare the difference as a signed number */
}

void replay_delay_end(struct replay_delay *delay) {
    if (!delay)
        return;
    replay_delay_release(delay);
    atomic_store(&delay->ends, true);
    pthread_join(delay->thread, NULL);
    drop(delay);
}
