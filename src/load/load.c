/* gpumem_load_file: file → pinned chunks → a growing buffer. */
#include "driver/loader.h"
#include "load/file.h"
#include "load/pump.h"

#include "base/cancel.h"
#include "base/options.h"
#include "memory/copy/copy.h"
#include "memory/core/call_site.h"
#include "memory/core/driver_error.h"
#include "memory/core/objects.h"
#include "memory/object/buffer.h"
#include "memory/object/device.h"
#include "memory/object/reclaim.h"

#include <inttypes.h>

struct load {
    struct gm_file file;
    gpumem_resource *resource;
    gpumem_device *device;
    gpumem_buffer *buffer;
    CUstream stream;
    pthread_mutex_t lock; /* the buffer has one owner at a time: the thread that grows it and queues
                           * a copy */
};

/*
 * A slot is filled only after its last copy. The copies are not recorded on the buffer
 * (gpumem_buffer_use): the stream is drained before it is destroyed and before the buffer is handed
 * out.
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
        status = gm_copy_addresses(load->device, gpumem_buffer_pointer(load->buffer) + offset,
                                   (CUdeviceptr)(uintptr_t)slot->memory, bytes, load->stream);
    if (status == GPUMEM_OK)
        status = gpumem_event_record(load->device, slot->event, load->stream);
    pthread_mutex_unlock(&load->lock);
    return status;
}

/* Before the first byte is read, because reading a large file for nothing takes long. */
static gpumem_status check_room(const struct load *load) {
    uint64_t free_bytes = 0, total_bytes = 0;
    gpumem_status status = gpumem_device_get_memory(load->device, &free_bytes, &total_bytes);
    struct gm_reclaim reclaim = gm_reclaim_for_device(load->device, load->file.size);
    while (status == GPUMEM_OK && load->file.size > free_bytes &&
           gm_reclaim_more(&reclaim, GPUMEM_ERROR_OUT_OF_MEMORY))
        status = gpumem_device_get_memory(load->device, &free_bytes, &total_bytes);
    if (status != GPUMEM_OK)
        return status;
    if (load->file.size > free_bytes)
        return gm_fail(GPUMEM_ERROR_OUT_OF_MEMORY,
                       "%s has %" PRIu64 " bytes; the device has %" PRIu64 " free of %" PRIu64
                       "; free memory on it first",
                       load->file.path, load->file.size, free_bytes, total_bytes);
    return GPUMEM_OK;
}

/* Checks that the resource can take the file, as far as that is known beforehand. */
static gpumem_status check_resource(const struct load *load) {
    gpumem_resource_properties properties = {.size = sizeof properties};
    gpumem_status status = gpumem_resource_get_properties(load->resource, &properties);
    if (status != GPUMEM_OK)
        return status;
    if (!properties.can_resize)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "files are loaded into buffers that grow, which those of the %s resource "
                       "cannot; use a virtual resource",
                       properties.kind);
    return properties.location == GPUMEM_LOCATION_DEVICE ? check_room(load) : GPUMEM_OK;
}

/*
 * The memory that the readers begin with, in one piece: the rest is mapped as the file arrives,
 * inside the reserved addresses. A piece for each reader's first chunk would delay the first
 * copies, and be one more handle to export.
 */
static gpumem_status make_buffer(struct load *load, const struct gm_pump *pump) {
    uint64_t first = (uint64_t)pump->chunk * pump->threads;
    if (first > load->file.size)
        first = load->file.size;
    return gpumem_buffer_allocate(
        load->resource, (size_t)first,
        GPUMEM_OPTIONS(gpumem_buffer_options, .capacity = (size_t)load->file.size), &load->buffer);
}

static gpumem_status run(struct load *load, struct gm_pump *pump, gpumem_load_report *facts) {
    double start = gm_seconds();
    gpumem_status status = gm_pump_prepare(pump);
    if (status != GPUMEM_OK)
        return status;
    double ready = gm_seconds();
    status = gm_pump_run(pump);
    facts->seconds = gm_seconds() - ready;
    facts->pinned_seconds = ready - start;
    facts->pinned_bytes = pump->staging_bytes;
    facts->chunk_bytes = pump->chunk;
    facts->threads = pump->threads;
    facts->chunks = gm_pump_chunks(pump);
    if (status == GPUMEM_OK)
        status = gm_file_check_unchanged(&load->file);
    gm_pump_finish(pump);
    return status;
}

/* On failure. The copies are done, unless the driver did not confirm it: the stream is named. */
static void drop_buffer(struct load *load) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    gpumem_buffer_free(load->buffer, load->stream);
    load->buffer = NULL;
    gm_error_restore(&saved);
}

/* From host memory, in addition to the staging memory: that is where a device without its own
 * memory takes it.
 */
static uint64_t host_bytes(const struct load *load) {
    const gpumem_device *device = load->device;
    bool soft = gm_driver_is_softgpu(device->library->driver);
    bool shared = soft || gm_device_attribute(device, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0);
    return shared ? load->file.size : 0;
}

static gpumem_status load_opened(struct load *load, const gpumem_load_options *options,
                                 gpumem_load_report *facts) {
    struct gm_pump pump = {.device = load->device, .step = load_chunk, .user = load};
    gpumem_status status = gm_pump_configure(&pump, options, load->file.size, 0);
    if (status == GPUMEM_OK)
        status = check_resource(load);
    if (status == GPUMEM_OK)
        gm_pump_fit(&pump, host_bytes(load));
    if (status == GPUMEM_OK)
        status = gpumem_stream_create(load->device, NULL, &load->stream);
    if (status != GPUMEM_OK)
        return status;
    pump.stream = load->stream;
    status = make_buffer(load, &pump);
    if (status == GPUMEM_OK)
        status = run(load, &pump, facts);
    if (status == GPUMEM_OK) {
        facts->bytes = load->file.size;
        facts->mappings = gm_buffer_chunks(load->buffer);
    } else {
        drop_buffer(load);
    }
    gm_pump_end_stream(load->device, load->stream);
    return status;
}

gpumem_status gpumem_load_file(gpumem_resource *resource, const char *path,
                               const gpumem_load_options *options, gpumem_buffer **buffer,
                               gpumem_load_report *report) {
    GM_UNCANCELLED;
    GM_CALL_SITE(GM_RETURN_ADDRESS);
    GM_REQUIRE(path && buffer, "gpumem_load_file: %s is NULL", !path ? "path" : "buffer");
    GM_CHECK(resource, "gpumem_load_file");
    /* Checked first, because the work would otherwise be in vain. */
    gpumem_status status = report ? GM_RESULT_CHECK(gpumem_load_report, report) : GPUMEM_OK;
    if (status != GPUMEM_OK)
        return status;
    struct load load = {
        .resource = resource,
        .device = gpumem_resource_device(resource),
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    status = gm_file_open(path, &load.file);
    if (status != GPUMEM_OK)
        return status;
    gpumem_load_report facts = {.size = sizeof facts};
    status = load_opened(&load, options, &facts);
    gm_file_close(&load.file);
    pthread_mutex_destroy(&load.lock);
    if (status != GPUMEM_OK)
        return status;
    if (report)
        (void)GM_RESULT_WRITE(gpumem_load_report, report, &facts);
    *buffer = load.buffer;
    return GPUMEM_OK;
}
