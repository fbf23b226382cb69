#include "load/pump.h"

#include "memory/objects.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHUNK_MINIMUM        ((size_t)64 << 10)
#define PROGRESS_NANOSECONDS 100000000

double gm_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static unsigned default_threads(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > GM_PUMP_MAX_THREADS ? GM_PUMP_MAX_THREADS : (unsigned)count;
}

uint64_t gm_pump_chunks(const struct gm_pump *pump) {
    return (pump->total + pump->chunk - 1) / pump->chunk;
}

gpumem_status gm_pump_configure(struct gm_pump *pump, const gpumem_load_options *options,
                                uint64_t total) {
    gpumem_load_options given = {0};
    if (options && options->size > sizeof given)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "load options of %zu bytes: this library knows %zu", options->size,
                       sizeof given);
    if (options)
        memcpy(&given, options, options->size ? options->size : sizeof given);
    if (given.threads > GM_PUMP_MAX_THREADS)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%u reader threads: at most %d",
                       given.threads, GM_PUMP_MAX_THREADS);
    if (given.chunk_bytes && given.chunk_bytes < CHUNK_MINIMUM)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "chunks of %zu bytes: at least %zu",
                       given.chunk_bytes, CHUNK_MINIMUM);
    pump->total = total;
    pump->chunk = given.chunk_bytes ? given.chunk_bytes : GM_PUMP_CHUNK;
    pump->threads = given.threads ? given.threads : default_threads();
    pump->resource = given.pinned;
    pump->progress = given.progress;
    pump->progress_user = given.user;
    /* A reader without a chunk would only cost its slots. */
    uint64_t chunks = gm_pump_chunks(pump);
    if (pump->threads > chunks)
        pump->threads = (unsigned)chunks;
    return GPUMEM_OK;
}

static gpumem_status prepare_memory(struct gm_pump *pump, unsigned char **memory) {
    size_t bytes = pump->chunk * GM_PUMP_SLOTS * pump->threads;
    if (!pump->device) {
        *memory = pump->plain = malloc(bytes);
        if (!pump->plain)
            return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no %zu bytes to read into", bytes);
        return GPUMEM_OK;
    }
    gpumem_resource *resource = pump->resource;
    if (!resource) {
        gpumem_status status =
            gpumem_pinned_resource_create(pump->device, NULL, &pump->own_resource);
        if (status != GPUMEM_OK)
            return status;
        resource = pump->own_resource;
    }
    gpumem_status status = gpumem_buffer_allocate(resource, bytes, NULL, &pump->staging);
    if (status != GPUMEM_OK)
        return status;
    *memory = gpumem_buffer_host_pointer(pump->staging);
    if (!*memory)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "the staging resource gives memory that the CPU cannot reach");
    return GPUMEM_OK;
}

gpumem_status gm_pump_prepare(struct gm_pump *pump) {
    pthread_mutex_init(&pump->lock, NULL);
    pthread_cond_init(&pump->changed, NULL);
    unsigned char *memory = NULL;
    gpumem_status status = prepare_memory(pump, &memory);
    for (unsigned t = 0; t < pump->threads && status == GPUMEM_OK; t++) {
        for (unsigned s = 0; s < GM_PUMP_SLOTS && status == GPUMEM_OK; s++) {
            struct gm_pump_slot *slot = &pump->slots[t][s];
            slot->memory = memory + pump->chunk * (t * GM_PUMP_SLOTS + s);
            if (pump->device)
                status = gpumem_event_create(
                    pump->device, GPUMEM_OPTIONS(gpumem_event_options, .blocking_wait = 1),
                    &slot->event);
        }
    }
    if (status != GPUMEM_OK) {
        struct gm_error_record error;
        gm_error_save(&error);
        gm_pump_finish(pump);
        gm_error_restore(&error);
    }
    return status;
}

void gm_pump_end_stream(gpumem_device *device, CUstream stream) {
    if (gpumem_stream_destroy(device, stream) != GPUMEM_OK)
        gm_meter_quarantine(&device->meter, 0);
}

void gm_pump_finish(struct gm_pump *pump) {
    for (unsigned t = 0; t < pump->threads; t++)
        for (unsigned s = 0; s < GM_PUMP_SLOTS; s++)
            if (pump->slots[t][s].event &&
                gpumem_event_destroy(pump->device, pump->slots[t][s].event) != GPUMEM_OK)
                gm_meter_quarantine(&pump->device->meter, 0);
    gpumem_buffer_free(pump->staging, NULL);
    gpumem_resource_destroy(pump->own_resource);
    free(pump->plain);
    pthread_cond_destroy(&pump->changed);
    pthread_mutex_destroy(&pump->lock);
}

/* The first error wins; the others are its consequences. */
static void report_error(struct gm_pump *pump, gpumem_status status) {
    pthread_mutex_lock(&pump->lock);
    if (pump->status == GPUMEM_OK) {
        pump->status = status;
        gm_error_save(&pump->error);
    }
    pthread_mutex_unlock(&pump->lock);
    atomic_store(&pump->stop, true);
}

static void add_done(struct gm_pump *pump, size_t bytes) {
    pthread_mutex_lock(&pump->lock);
    pump->done += bytes;
    pthread_mutex_unlock(&pump->lock);
}

static void *reader(void *argument) {
    struct gm_pump *pump = argument;
    unsigned self = atomic_fetch_add(&pump->next_reader, 1);
    uint64_t chunks = gm_pump_chunks(pump);
    for (unsigned turn = 0; !atomic_load(&pump->stop); turn++) {
        uint64_t index = atomic_fetch_add(&pump->next_chunk, 1);
        if (index >= chunks)
            break;
        uint64_t offset = index * pump->chunk;
        uint64_t left = pump->total - offset;
        size_t bytes = left < pump->chunk ? (size_t)left : pump->chunk;
        struct gm_pump_slot *slot = &pump->slots[self][turn % GM_PUMP_SLOTS];
        gpumem_status status = pump->step(pump->user, slot, index, offset, bytes);
        if (status != GPUMEM_OK) {
            report_error(pump, status);
            break;
        }
        add_done(pump, bytes);
    }
    pthread_mutex_lock(&pump->lock);
    pump->running--;
    pthread_cond_signal(&pump->changed);
    pthread_mutex_unlock(&pump->lock);
    return NULL;
}

static void tell_progress(struct gm_pump *pump, double start, uint64_t done) {
    if (!pump->progress)
        return;
    gpumem_load_progress progress = {done, pump->total, gm_seconds() - start};
    if (pump->progress(pump->progress_user, &progress) != 0)
        report_error(pump, gm_fail(GPUMEM_ERROR_CANCELLED, "stopped after %llu of %llu bytes",
                                   (unsigned long long)done, (unsigned long long)pump->total));
}

/* The calling thread tells progress, so that the callback needs no locks of its own. */
static void watch(struct gm_pump *pump, double start) {
    pthread_mutex_lock(&pump->lock);
    while (pump->running) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PROGRESS_NANOSECONDS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        int waited = pthread_cond_clockwait(&pump->changed, &pump->lock, CLOCK_MONOTONIC, &until);
        if (waited != ETIMEDOUT)
            continue;
        uint64_t done = pump->done;
        pthread_mutex_unlock(&pump->lock);
        tell_progress(pump, start, done);
        pthread_mutex_lock(&pump->lock);
    }
    uint64_t done = pump->done;
    gpumem_status status = pump->status;
    pthread_mutex_unlock(&pump->lock);
    if (status == GPUMEM_OK)
        tell_progress(pump, start, done);
}

gpumem_status gm_pump_run(struct gm_pump *pump) {
    pthread_t threads[GM_PUMP_MAX_THREADS];
    unsigned started = 0;
    double start = gm_seconds();
    while (started < pump->threads) {
        pthread_mutex_lock(&pump->lock);
        pump->running++;
        pthread_mutex_unlock(&pump->lock);
        int error = pthread_create(&threads[started], NULL, reader, pump);
        if (error) {
            pthread_mutex_lock(&pump->lock);
            pump->running--;
            pthread_mutex_unlock(&pump->lock);
            report_error(pump, gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "pthread_create",
                                              "cannot start reader %u", started + 1));
            break;
        }
        started++;
    }
    watch(pump, start);
    for (unsigned t = 0; t < started; t++)
        pthread_join(threads[t], NULL);
    if (pump->status != GPUMEM_OK)
        gm_error_restore(&pump->error);
    return pump->status;
}
