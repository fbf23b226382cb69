/*
 * The pump: reader threads that work through [0, total) chunk by chunk, each with two slots of
 * staging memory, so that one is filled while the other is still being copied. It owns the threads,
 * the first error, cancellation and progress; the caller's step function processes a chunk.
 */
#ifndef GM_LOAD_PUMP_H
#define GM_LOAD_PUMP_H

#include "base/error.h"

#include <gpumem/gpumem.h>
#include <gpumem/load.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GM_PUMP_MAX_THREADS 16
#define GM_PUMP_SLOTS       2
#define GM_PUMP_CHUNK       ((size_t)8 << 20)

struct gm_pump_slot {
    unsigned char *memory; /* chunk bytes; pinned when the pump has a device */
    CUevent event;         /* NULL without a device */
};

struct gm_pump {
    /* Set by the caller. */
    gpumem_device *device;     /* NULL: plain memory, no events */
    CUstream stream;           /* where the steps queue their copies; drained by gm_pump_run */
    gpumem_resource *resource; /* staging memory; NULL: a pinned resource is created */
    uint64_t total;
    size_t chunk;
    bool fixed_chunk; /* the chunk size is part of the result */
    unsigned threads; /* wanted, and after the run those that existed */
    int (*progress)(void *user, const gpumem_load_progress *progress);
    void *progress_user;
    /* Handles chunk `index` at `offset`. Runs on reader threads, several at once. */
    gpumem_status (*step)(void *user, struct gm_pump_slot *slot, uint64_t index, uint64_t offset,
                          size_t bytes);
    void *user;

    /* The pump's. */
    gpumem_resource *own_resource;
    gpumem_buffer *staging;
    size_t staging_bytes;
    unsigned char *plain;
    unsigned prepared; /* threads whose slots are ready */
    struct gm_pump_slot slots[GM_PUMP_MAX_THREADS][GM_PUMP_SLOTS];
    atomic_uint_fast64_t next_chunk;
    atomic_bool stop;
    atomic_uint next_reader;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t done;    /* bytes; under lock */
    unsigned running; /* threads; under lock */
    gpumem_status status;
    struct gm_error_record error;
};

/* Fills in defaults from the options (NULL allowed) and validates them. With a `chunk` of 0 the
 * options determine the chunk size. */
gpumem_status gm_pump_configure(struct gm_pump *pump, const gpumem_load_options *options,
                                uint64_t total, size_t chunk);
/* Reduces the readers, and then the chunks, if the host has too little memory left for the staging
 * memory and for `more` bytes that the work needs. Half of what is left is not used. */
void gm_pump_fit(struct gm_pump *pump, uint64_t more);
/* Prepares slots and events. On failure everything is undone. */
gpumem_status gm_pump_prepare(struct gm_pump *pump);
/* Runs to the end, an error, or cancellation; afterwards no queued work uses the slots. The first
 * error is the calling thread's last error. */
gpumem_status gm_pump_run(struct gm_pump *pump);
/* Releases what prepare made; what the driver does not take back is counted as quarantined. Like
 * the next function, it does not change the last error. */
void gm_pump_finish(struct gm_pump *pump);
/* Destroys a stream made for a pump; one that the driver does not take back is counted likewise. */
void gm_pump_end_stream(gpumem_device *device, CUstream stream);

uint64_t gm_pump_chunks(const struct gm_pump *pump);

/* Seconds of the monotonic clock. */
double gm_seconds(void);

#endif
