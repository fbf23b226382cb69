/* gpumem_load_file: file → pinned chunks → a growing buffer. */
#include "load/file.h"
#include "load/pump.h"

#include <gpumem/stats.h>
#include <inttypes.h>
#include <string.h>

struct load {
    struct gm_file file;
    gpumem_resource *resource;
    gpumem_device *device;
    gpumem_buffer *buffer;
    CUstream stream;
    pthread_mutex_t lock; /* the buffer has one owner at a time: who grows it and queues a copy */
};

/*
 * A slot is filled only after its last copy. The copies are not told to the buffer
 * (gpumem_buffer_use): the stream is drained before it is destroyed and the buffer is handed out.
 */
static gpumem_status load_chunk(void *user, struct gm_pump_slot *slot, uint64_t index,
                                uint64_t offset, size_t bytes) {
    struct load *load = user;
    (void)index;
    gpumem_status status = gpumem_event_synchronize(load->device, slot->event);
    if (status == GPUMEM_OK)
        status = gm_file_read(&load->file, offset, slot->memory, bytes);
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&load->lock);
    if (gpumem_buffer_size(load->buffer) < offset + bytes)
        status = gpumem_buffer_grow(load->buffer, offset + bytes, NULL);
    if (status == GPUMEM_OK)
        status = gpumem_copy(load->device, gpumem_buffer_pointer(load->buffer) + offset,
                             (CUdeviceptr)(uintptr_t)slot->memory, bytes, load->stream);
    if (status == GPUMEM_OK)
        status = gpumem_event_record(load->device, slot->event, load->stream);
    pthread_mutex_unlock(&load->lock);
    return status;
}

static gpumem_status check_room(const struct load *load) {
    uint64_t free_bytes = 0, total_bytes = 0;
    gpumem_status status = gpumem_device_get_memory(load->device, &free_bytes, &total_bytes);
    if (status != GPUMEM_OK)
        return status;
    if (load->file.size > free_bytes)
        return gm_fail(GPUMEM_ERROR_OUT_OF_MEMORY,
                       "%s has %" PRIu64 " bytes; the device has %" PRIu64 " free of %" PRIu64,
                       load->file.path, load->file.size, free_bytes, total_bytes);
    return GPUMEM_OK;
}

/* The first chunk's memory only: the rest comes with the file, inside the reserved addresses. */
static gpumem_status make_buffer(struct load *load, size_t chunk) {
    size_t first = load->file.size < chunk ? (size_t)load->file.size : chunk;
    return gpumem_buffer_allocate(
        load->resource, first,
        GPUMEM_OPTIONS(gpumem_buffer_options, .capacity = (size_t)load->file.size), &load->buffer);
}

static void fill_report(gpumem_load_report *report, const gpumem_load_report *facts) {
    size_t size = report->size;
    memcpy(report, facts, size < sizeof *facts ? size : sizeof *facts);
    report->size = size;
}

static gpumem_status run(struct load *load, struct gm_pump *pump, gpumem_load_report *facts) {
    double start = gm_seconds();
    gpumem_status status = gm_pump_prepare(pump);
    if (status != GPUMEM_OK)
        return status;
    double ready = gm_seconds();
    status = gm_pump_run(pump);
    struct gm_error_record error;
    if (status != GPUMEM_OK)
        gm_error_save(&error);
    /* Also after a failure: queued copies still read the slots. */
    gpumem_status drained = gpumem_stream_synchronize(load->device, load->stream);
    if (status != GPUMEM_OK)
        gm_error_restore(&error);
    else
        status = drained;
    facts->seconds = gm_seconds() - ready;
    facts->pinned_seconds = ready - start;
    facts->pinned_bytes = (uint64_t)pump->chunk * GM_PUMP_SLOTS * pump->threads;
    facts->threads = pump->threads;
    facts->chunks = gm_pump_chunks(pump);
    if (status == GPUMEM_OK)
        status = gm_file_check_unchanged(&load->file);
    if (status != GPUMEM_OK)
        gm_error_save(&error);
    gm_pump_finish(pump);
    if (status != GPUMEM_OK)
        gm_error_restore(&error);
    return status;
}

static gpumem_status load_opened(struct load *load, const gpumem_load_options *options,
                                 gpumem_load_report *facts) {
    struct gm_pump pump = {.device = load->device, .step = load_chunk, .user = load};
    gpumem_status status = gm_pump_configure(&pump, options, load->file.size);
    if (status == GPUMEM_OK)
        status = check_room(load);
    if (status == GPUMEM_OK)
        status = gpumem_stream_create(load->device, NULL, &load->stream);
    if (status != GPUMEM_OK)
        return status;
    status = make_buffer(load, pump.chunk);
    if (status == GPUMEM_OK)
        status = run(load, &pump, facts);

    struct gm_error_record error;
    gm_error_save(&error);
    if (status == GPUMEM_OK) {
        facts->bytes = load->file.size;
        facts->mappings = gpumem_buffer_chunks(load->buffer);
    } else {
        gpumem_buffer_free(load->buffer, NULL);
        load->buffer = NULL;
    }
    gm_pump_end_stream(load->device, load->stream);
    if (status != GPUMEM_OK)
        gm_error_restore(&error);
    return status;
}

gpumem_status gpumem_load_file(gpumem_resource *resource, const char *path,
                               const gpumem_load_options *options, gpumem_buffer **buffer,
                               gpumem_load_report *report) {
    if (!resource || !path || !buffer)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "gpumem_load_file: %s is NULL",
                       !resource ? "resource"
                       : !path   ? "path"
                                 : "buffer");
    struct load load = {
        .resource = resource,
        .device = gpumem_resource_device(resource),
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    gpumem_status status = gm_file_open(path, &load.file);
    if (status != GPUMEM_OK)
        return status;
    gpumem_load_report facts = {0};
    status = load_opened(&load, options, &facts);
    gm_file_close(&load.file);
    pthread_mutex_destroy(&load.lock);
    if (status != GPUMEM_OK)
        return status;
    if (report)
        fill_report(report, &facts);
    *buffer = load.buffer;
    return GPUMEM_OK;
}
