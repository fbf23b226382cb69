#include "load/pump.h"

#include "base/host_memory.h"
#include "base/options.h"
#include "base/thread.h"
#include "memory/core/objects.h"
#include "memory/pinned/pinned_slab.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define CHUNK_MINIMUM        ((size_t)64 << 10)
#define CHUNK_MAXIMUM        ((size_t)1 << 30)
#define PROGRESS_NANOSECONDS 100000000

double gm_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

uint64_t gm_pump_chunks(const struct gm_pump *pump) {
    return (pump->total + pump->chunk - 1) / pump->chunk;
}

/* A chunk larger than the file would be pinned in vain. */
static size_t settle_chunk(size_t wanted, uint64_t total) {
    uint64_t whole = (total + CHUNK_MINIMUM - 1) / CHUNK_MINIMUM * CHUNK_MINIMUM;
    return wanted < whole ? wanted : (size_t)whole;
}

gpumem_status gm_pump_configure(struct gm_pump *pump, const gpumem_load_options *options,
                                uint64_t total, size_t chunk) {
    gpumem_load_options given;
    gpumem_status status = GM_OPTIONS_READ(gpumem_load_options, options, &given);
    if (status != GPUMEM_OK)
        return status;
    if (given.threads > GM_PUMP_MAX_THREADS)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%u reader threads: the maximum is %d",
                       given.threads, GM_PUMP_MAX_THREADS);
    if (given.chunk_bytes &&
        (given.chunk_bytes < CHUNK_MINIMUM || given.chunk_bytes > CHUNK_MAXIMUM))
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "chunks of %zu bytes: %zu to %zu are allowed",
                       given.chunk_bytes, CHUNK_MINIMUM, CHUNK_MAXIMUM);
    pump->total = total;
    pump->chunk = chunk ? chunk : given.chunk_bytes ? given.chunk_bytes : GM_PUMP_CHUNK;
    pump->chunk = settle_chunk(pump->chunk, total);
    pump->fixed_chunk = chunk != 0;
    pump->threads = given.threads ? given.threads : gm_slab_default_threads();
    pump->resource = given.pinned;
    pump->progress = given.progress;
    pump->progress_user = given.user;
    /* A reader without a chunk would only cost its slots. */
    uint64_t chunks = gm_pump_chunks(pump);
    if (pump->threads > chunks)
        pump->threads = (unsigned)chunks;
    return GPUMEM_OK;
}

/* Memory kept by a caller's resource is already pinned. */
static uint64_t kept_by(gpumem_resource *resource) {
    gpumem_stats stats = {.size = sizeof stats};
    if (!resource || gpumem_resource_get_stats(resource, &stats) != GPUMEM_OK)
        return 0;
    return stats.cached_bytes;
}

void gm_pump_fit(struct gm_pump *pump, uint64_t more) {
    struct gm_host_memory memory;
    gm_host_memory_read(&memory);
    uint64_t left = gm_host_memory_left(&memory);
    uint64_t budget = kept_by(pump->resource) + (left > more ? (left - more) / 2 : 0);
    uint64_t each = (uint64_t)pump->chunk * GM_PUMP_SLOTS;
    if (each * pump->threads <= budget)
        return;
    pump->threads = budget > each ? (unsigned)(budget / each) : 1;
    if (each <= budget || pump->fixed_chunk)
        return;
    size_t least = (size_t)(budget / GM_PUMP_SLOTS) / CHUNK_MINIMUM * CHUNK_MINIMUM;
    pump->chunk = least > CHUNK_MINIMUM ? least : CHUNK_MINIMUM;
}

static gpumem_status prepare_pinned(struct gm_pump *pump, unsigned char **memory) {
    size_t bytes = pump->staging_bytes;
    gpumem_resource *resource = pump->resource;
    gpumem_status status = GPUMEM_OK;
    /* One slab of exactly that size: the default would pin 64 MiB for a file of one byte. */
    if (!resource) {
        status = gpumem_pinned_resource_create(
            pump->device, GPUMEM_OPTIONS(gpumem_pinned_options, .slab_bytes = bytes),
            &pump->own_resource);
        resource = pump->own_resource;
    }
    gpumem_resource_properties properties = {.size = sizeof properties};
    if (status == GPUMEM_OK)
        status = gpumem_resource_get_properties(resource, &properties);
    if (status == GPUMEM_OK && !properties.host_accessible)
        status = gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                         "the staging resource (%s) provides memory that the CPU cannot access",
                         properties.kind);
    /* On this stream: a free on the default stream would wait for the work of every blocking
     * stream. */
    if (status == GPUMEM_OK)
        status = gpumem_buffer_allocate(
            resource, bytes, GPUMEM_OPTIONS(gpumem_buffer_options, .stream = pump->stream),
            &pump->staging);
    /* The CPU writes before anything is queued: stream-ordered memory must exist by then. */
    if (status == GPUMEM_OK && properties.stream_ordered)
        status = gpumem_stream_synchronize(pump->device, pump->stream);
    if (status != GPUMEM_OK)
        return status;
    *memory = gpumem_buffer_host_pointer(pump->staging);
    if (!*memory)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                       "the staging resource (%s) returned memory without a host pointer",
                       properties.kind);
    return GPUMEM_OK;
}

static gpumem_status prepare_memory(struct gm_pump *pump, unsigned char **memory) {
    pump->staging_bytes = pump->chunk * GM_PUMP_SLOTS * pump->threads;
    if (pump->device)
        return prepare_pinned(pump, memory);
    *memory = pump->plain = malloc(pump->staging_bytes);
    if (!pump->plain)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %zu bytes to read into",
                       pump->staging_bytes);
    return GPUMEM_OK;
}

gpumem_status gm_pump_prepare(struct gm_pump *pump) {
    pthread_mutex_init(&pump->lock, NULL);
    pthread_cond_init(&pump->changed, NULL);
    pump->prepared = pump->threads;
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
    if (status != GPUMEM_OK)
        gm_pump_finish(pump);
    return status;
}

void gm_pump_end_stream(gpumem_device *device, CUstream stream) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (gpumem_stream_destroy(device, stream) != GPUMEM_OK)
        gm_meter_quarantine(&device->meter, 0);
    gm_error_restore(&saved);
}

void gm_pump_finish(struct gm_pump *pump) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    for (unsigned t = 0; t < pump->prepared; t++)
        for (unsigned s = 0; s < GM_PUMP_SLOTS; s++)
            if (pump->slots[t][s].event &&
                gpumem_event_destroy(pump->device, pump->slots[t][s].event) != GPUMEM_OK)
                gm_meter_quarantine(&pump->device->meter, 0);
    gpumem_buffer_free(pump->staging, NULL);
    /* Refused while the driver does not report whether the stream is done; it does when asked
     * again. */
    gpumem_status ended = gpumem_resource_destroy(pump->own_resource);
    if (ended != GPUMEM_OK)
        ended = gpumem_resource_destroy(pump->own_resource);
    if (ended != GPUMEM_OK)
        gm_meter_quarantine(&pump->device->meter, pump->staging_bytes);
    free(pump->plain);
    pthread_cond_destroy(&pump->changed);
    pthread_mutex_destroy(&pump->lock);
    gm_error_restore(&saved);
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

/* The calling thread reports progress, so that the callback needs no locks of its own. */
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

/* As many as the system can start; one is enough to do the work. */
static unsigned start_readers(struct gm_pump *pump, pthread_t *threads) {
    unsigned started = 0;
    int error = 0;
    pthread_mutex_lock(&pump->lock);
    while (started < pump->threads && !error) {
        error = gm_thread_start(&threads[started], 0, reader, pump);
        started += !error;
    }
    pump->running += started;
    pthread_mutex_unlock(&pump->lock);
    if (!started)
        report_error(pump, gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "pthread_create",
                                          "cannot start a reader"));
    return started;
}

/* Even after a failure, because queued copies still use the slots. A call that reports an earlier
 * failure may not have waited, so it is repeated. */
static gpumem_status drain(const struct gm_pump *pump) {
    if (!pump->device)
        return GPUMEM_OK;
    gpumem_status status = gpumem_stream_synchronize(pump->device, pump->stream);
    if (status != GPUMEM_OK) {
        struct gm_error_record first;
        gm_error_save(&first);
        (void)gpumem_stream_synchronize(pump->device, pump->stream);
        gm_error_restore(&first);
    }
    return status;
}

gpumem_status gm_pump_run(struct gm_pump *pump) {
    pthread_t threads[GM_PUMP_MAX_THREADS];
    double start = gm_seconds();
    unsigned started = start_readers(pump, threads);
    watch(pump, start);
    for (unsigned t = 0; t < started; t++)
        pthread_join(threads[t], NULL);
    pump->threads = started;
    gpumem_status drained = drain(pump);
    if (pump->status == GPUMEM_OK)
        return drained;
    gm_error_restore(&pump->error);
    return pump->status;
}
