/* Checksums of a buffer, as read back from the device, and of a file. */
#include "load/file.h"
#include "load/pump.h"

#include "base/cancel.h"
#include "base/xxh.h"
#include "memory/copy/copy.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"

#include <endian.h>
#include <stdlib.h>

struct checksum {
    uint64_t *hashes; /* one for each chunk */
    gpumem_buffer *buffer;
    gpumem_device *device;
    CUstream stream;
    struct gm_file file;
};

static gpumem_status hash_buffer_chunk(void *user, struct gm_pump_slot *slot, uint64_t index,
                                       uint64_t offset, size_t bytes) {
    struct checksum *sum = user;
    gpumem_status status =
        gm_copy_addresses(sum->device, (CUdeviceptr)(uintptr_t)slot->memory,
                          gpumem_buffer_pointer(sum->buffer) + offset, bytes, sum->stream);
    if (status == GPUMEM_OK)
        status = gpumem_event_record(sum->device, slot->event, sum->stream);
    if (status == GPUMEM_OK)
        status = gpumem_event_synchronize(sum->device, slot->event);
    if (status == GPUMEM_OK)
        sum->hashes[index] = htole64(gm_xxh3(slot->memory, bytes, 0));
    return status;
}

static gpumem_status hash_file_chunk(void *user, struct gm_pump_slot *slot, uint64_t index,
                                     uint64_t offset, size_t bytes) {
    struct checksum *sum = user;
    gpumem_status status = gm_file_read(&sum->file, offset, slot->memory, bytes);
    if (status == GPUMEM_OK)
        sum->hashes[index] = htole64(gm_xxh3(slot->memory, bytes, 0));
    return status;
}

/* Chunk boundaries are part of the definition, so the caller's chunk size does not apply. */
static gpumem_status configure(struct gm_pump *pump, const gpumem_load_options *options,
                               uint64_t total, struct checksum *sum) {
    gpumem_status status = gm_pump_configure(pump, options, total, GM_PUMP_CHUNK);
    if (status != GPUMEM_OK)
        return status;
    gm_pump_fit(pump, 0);
    uint64_t chunks = gm_pump_chunks(pump);
    sum->hashes = calloc(chunks, sizeof *sum->hashes);
    if (!sum->hashes)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for %llu checksums",
                       (unsigned long long)chunks);
    return GPUMEM_OK;
}

static gpumem_status run(struct gm_pump *pump, struct checksum *sum, uint64_t *checksum) {
    gpumem_status status = gm_pump_prepare(pump);
    if (status != GPUMEM_OK)
        return status;
    status = gm_pump_run(pump);
    gm_pump_finish(pump);
    if (status == GPUMEM_OK)
        *checksum = gm_xxh3(sum->hashes, gm_pump_chunks(pump) * sizeof *sum->hashes, 0);
    return status;
}

gpumem_status gpumem_buffer_checksum(gpumem_buffer *buffer, const gpumem_load_options *options,
                                     uint64_t *checksum) {
    GM_UNCANCELLED;
    GM_REQUIRE(checksum, "gpumem_buffer_checksum: checksum is NULL");
    GM_CHECK(buffer, "gpumem_buffer_checksum");
    struct checksum sum = {
        .buffer = buffer,
        .device = gpumem_buffer_device(buffer),
    };
    struct gm_pump pump = {.device = sum.device, .step = hash_buffer_chunk, .user = &sum};
    gpumem_status status = configure(&pump, options, gpumem_buffer_size(buffer), &sum);
    if (status == GPUMEM_OK)
        status = gpumem_stream_create(sum.device, NULL, &sum.stream);
    if (status == GPUMEM_OK) {
        pump.stream = sum.stream;
        status = run(&pump, &sum, checksum);
        gm_pump_end_stream(sum.device, sum.stream);
    }
    free(sum.hashes);
    return status;
}

gpumem_status gpumem_file_checksum(const char *path, const gpumem_load_options *options,
                                   uint64_t *checksum) {
    GM_UNCANCELLED;
    GM_REQUIRE(path && checksum, "gpumem_file_checksum: %s is NULL", !path ? "path" : "checksum");
    struct checksum sum = {0};
    gpumem_status status = gm_file_open(path, &sum.file);
    if (status != GPUMEM_OK)
        return status;
    struct gm_pump pump = {.step = hash_file_chunk, .user = &sum};
    uint64_t read = 0;
    status = configure(&pump, options, sum.file.size, &sum);
    if (status == GPUMEM_OK)
        status = run(&pump, &sum, &read);
    if (status == GPUMEM_OK)
        status = gm_file_check_unchanged(&sum.file);
    if (status == GPUMEM_OK)
        *checksum = read;
    free(sum.hashes);
    gm_file_close(&sum.file);
    return status;
}
