/* Many copies, by one driver call if there is one. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/copy/copy.h"
#include "memory/core/capture.h"

#include <stdio.h>
#include <stdlib.h>

/* The copies in the form that the driver's call takes, without those of 0 bytes, which it
 * refuses. */
struct batch {
    gpumem_device *device;
    CUdeviceptr *to, *from;
    size_t *bytes;
    size_t count;
    CUstream stream;
};

static gpumem_status make_batch(gpumem_device *device, size_t room, CUstream stream,
                                struct batch *batch) {
    *batch = (struct batch){.device = device, .stream = stream};
    batch->to = calloc(room, sizeof *batch->to);
    batch->from = calloc(room, sizeof *batch->from);
    batch->bytes = calloc(room, sizeof *batch->bytes);
    if (batch->to && batch->from && batch->bytes)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a list of %zu copies", room);
}

static void end_batch(struct batch *batch) {
    free(batch->to);
    free(batch->from);
    free(batch->bytes);
}

static void add(struct batch *batch, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    if (!bytes)
        return;
    batch->to[batch->count] = to;
    batch->from[batch->count] = from;
    batch->bytes[batch->count++] = bytes;
}

/* ---- Queuing; the device's context is current ------------------------------------------------ */

static int has(const struct batch *batch, gpumem_driver_fn fn) {
    return gpumem_driver_has(batch->device->library->driver, fn);
}

/* Why the driver's call cannot be used, as recorded on an H200; NULL if it can. */
static const char *obstacle(const struct batch *batch) {
    if (!has(batch, GPUMEM_FN_cuMemcpyBatchAsync) && !has(batch, GPUMEM_FN_cuMemcpyBatchAsync_v2))
        return "this driver has no cuMemcpyBatchAsync";
    if (gm_is_legacy(batch->stream))
        return "cuMemcpyBatchAsync refuses the legacy default stream";
    if (gm_capture_state(batch->device->cu, batch->stream, NULL) != GM_CAPTURE_NONE)
        return "cuMemcpyBatchAsync refuses a capturing stream";
    return NULL;
}

/* The first version is tried first, because it reports which copy it refused. */
static CUresult queue_at_once(const struct batch *batch, size_t *failed) {
    const gpumem_driver_api *cu = batch->device->cu;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t first = 0;
    if (has(batch, GPUMEM_FN_cuMemcpyBatchAsync))
        return cu->cuMemcpyBatchAsync(batch->to, batch->from, batch->bytes, batch->count,
                                      &attributes, &first, 1, failed, batch->stream);
    return cu->cuMemcpyBatchAsync_v2(batch->to, batch->from, batch->bytes, batch->count,
                                     &attributes, &first, 1, batch->stream);
}

static gpumem_status refuse(const struct batch *batch, CUresult result, size_t failed) {
    const gpumem_driver_api *cu = batch->device->cu;
    if (failed < batch->count)
        return gm_cu_fail(cu, result, "cuMemcpyBatchAsync", "cannot queue copy %zu of %zu", failed,
                          batch->count);
    return gm_cu_fail(cu, result, "cuMemcpyBatchAsync", "cannot queue %zu copies", batch->count);
}

static gpumem_status queue_each(const struct batch *batch) {
    const gpumem_driver_api *cu = batch->device->cu;
    for (size_t i = 0; i < batch->count; i++) {
        CUresult result =
            cu->cuMemcpyAsync(batch->to[i], batch->from[i], batch->bytes[i], batch->stream);
        if (result != CUDA_SUCCESS)
            return gm_cu_fail(cu, result, "cuMemcpyAsync", "cannot queue copy %zu of %zu", i,
                              batch->count);
    }
    return GPUMEM_OK;
}

static gpumem_status queue(const struct batch *batch, gpumem_batch_report *report) {
    size_t failed = SIZE_MAX;
    const char *why = obstacle(batch);
    if (!why) {
        CUresult result = queue_at_once(batch, &failed);
        if (result == CUDA_SUCCESS)
            report->batched = 1;
        else if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_FOUND)
            why = "cuMemcpyBatchAsync is not supported here";
        else
            return refuse(batch, result, failed);
    }
    if (!why)
        return GPUMEM_OK;
    snprintf(report->note, sizeof report->note, "%s", why);
    return queue_each(batch);
}

static gpumem_status run(const struct batch *batch, gpumem_batch_report *out) {
    gpumem_batch_report report = {.size = sizeof report, .copies = batch->count};
    gpumem_status status = GPUMEM_OK;
    /* Checks the caller's struct before anything is queued. */
    if (out)
        status = GM_RESULT_WRITE(gpumem_batch_report, out, &report);
    struct gm_current current;
    if (status == GPUMEM_OK && batch->count) {
        status = gm_current_enter(&current, batch->device);
        if (status != GPUMEM_OK)
            return status;
        status = queue(batch, &report);
        gm_current_leave(&current);
    }
    if (status == GPUMEM_OK && out)
        status = GM_RESULT_WRITE(gpumem_batch_report, out, &report);
    return status;
}

/* ---- The public door ------------------------------------------------------------------------- */

static gpumem_status check(const gpumem_buffer_copy_item *items, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const gpumem_buffer_copy_item *item = &items[i];
        gpumem_status status = gm_copy_check(item->to, item->to_offset, item->bytes, 1,
                                             "gpumem_buffer_copy_batch (to)");
        if (status == GPUMEM_OK)
            status = gm_copy_check(item->from, item->from_offset, item->bytes, 0,
                                   "gpumem_buffer_copy_batch (from)");
        if (status != GPUMEM_OK)
            return status;
        GM_REQUIRE(item->to->resource->device->library == items[0].to->resource->device->library &&
                       item->from->resource->device->library ==
                           items[0].to->resource->device->library,
                   "gpumem_buffer_copy_batch: the buffers belong to two opened libraries");
    }
    return GPUMEM_OK;
}

static gpumem_status use_all(const gpumem_buffer_copy_item *items, size_t count, CUstream stream) {
    gpumem_status status = GPUMEM_OK;
    for (size_t i = 0; i < count && status == GPUMEM_OK; i++) {
        if (!items[i].bytes)
            continue;
        status = gpumem_buffer_use(items[i].to, stream);
        if (status == GPUMEM_OK)
            status = gpumem_buffer_use(items[i].from, stream);
    }
    return status;
}

gpumem_status gpumem_buffer_copy_batch(const gpumem_buffer_copy_item *items, size_t count,
                                       CUstream stream, gpumem_batch_report *report) {
    GM_UNCANCELLED;
    GM_REQUIRE(items && count, "gpumem_buffer_copy_batch: there are no items");
    gpumem_status status = check(items, count);
    struct batch batch;
    if (status != GPUMEM_OK)
        return status;
    status = make_batch(items[0].to->resource->device, count, stream, &batch);
    if (status == GPUMEM_OK)
        status = use_all(items, count, stream);
    if (status == GPUMEM_OK) {
        for (size_t i = 0; i < count; i++)
            add(&batch, items[i].to->allocation.pointer + items[i].to_offset,
                items[i].from->allocation.pointer + items[i].from_offset, items[i].bytes);
        status = run(&batch, report);
    }
    end_batch(&batch);
    return status;
}
