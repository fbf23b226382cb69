#include "replay_target.h"

#include <stdio.h>
#include <string.h>

/* ---- Resources ------------------------------------------------------------------------------- */

static gpumem_status make_layer(struct replay_target *target, size_t at) {
    const struct replay_layer *layer = &target->description->layers[at];
    gpumem_resource **made = &target->layers[at];
    switch (layer->kind) {
    case REPLAY_CACHING:
        return gpumem_caching_resource_create(target->layers[at + 1], &layer->caching, made);
    case REPLAY_LIMIT:
        return gpumem_limiting_resource_create(target->layers[at + 1], layer->limit, made);
    case REPLAY_LOGGING:
        return gpumem_logging_resource_create(
            target->layers[at + 1], GPUMEM_LOGGING_OPTIONS(.level = GPUMEM_LOG_DEBUG), made);
    case REPLAY_POOL:
        return gpumem_device_pool_resource_create(target->device, &layer->pool, made);
    case REPLAY_VIRTUAL:
        return gpumem_virtual_resource_create(target->device, &layer->virtual_memory, made);
    default:
        return gpumem_pinned_resource_create(target->device, NULL, made);
    }
}

static gpumem_status library_end(struct replay_target *target) {
    gpumem_status first = GPUMEM_OK;
    for (size_t i = 0; i < target->description->count; i++) {
        gpumem_status status = gpumem_resource_destroy(target->layers[i]);
        first = first == GPUMEM_OK ? status : first;
        target->layers[i] = NULL;
    }
    return first;
}

static gpumem_status library_begin(struct replay_target *target) {
    gpumem_status status = GPUMEM_OK;
    for (size_t i = target->description->count; status == GPUMEM_OK && i-- > 0;)
        status = make_layer(target, i);
    gpumem_resource_properties properties = {.size = sizeof properties};
    if (status == GPUMEM_OK)
        status = gpumem_resource_get_properties(target->layers[0], &properties);
    target->resizes = properties.can_resize;
    if (status != GPUMEM_OK) {
        /* Ending it would replace the message. */
        char message[256];
        snprintf(message, sizeof message, "%s", gpumem_last_error()->message);
        (void)library_end(target);
        return gpumem_set_last_error(status, message);
    }
    return GPUMEM_OK;
}

gpumem_resource *replay_cache_of(const struct replay_target *target) {
    for (size_t i = 0; i < target->description->count; i++)
        if (target->description->layers[i].kind == REPLAY_CACHING)
            return target->layers[i];
    return NULL;
}

static gpumem_status library_allocate(struct replay_target *target,
                                      const struct replay_event *event, uint64_t bytes,
                                      CUstream stream, struct replay_slot *slot) {
    gpumem_buffer_options options = {.size = sizeof options,
                                     .stream = stream,
                                     .alignment = event->alignment,
                                     .capacity = target->resizes ? event->capacity : 0};
    gpumem_status status =
        gpumem_buffer_allocate(target->layers[0], bytes, &options, &slot->buffer);
    if (status == GPUMEM_OK)
        slot->bytes = bytes;
    return status;
}

static gpumem_status library_resize(struct replay_target *target, struct replay_slot *slot,
                                    uint64_t bytes, CUstream stream) {
    (void)target;
    gpumem_status status = bytes > slot->bytes ? gpumem_buffer_grow(slot->buffer, bytes, stream)
                                               : gpumem_buffer_shrink(slot->buffer, bytes, stream);
    if (status == GPUMEM_OK)
        slot->bytes = bytes;
    return status;
}

static gpumem_status library_free(struct replay_target *target, struct replay_slot *slot,
                                  CUstream stream) {
    (void)target;
    gpumem_buffer *buffer = slot->buffer;
    slot->buffer = NULL;
    return gpumem_buffer_free(buffer, stream);
}

static gpumem_status library_use(struct replay_target *target, struct replay_slot *slot,
                                 CUstream stream) {
    (void)target;
    return gpumem_buffer_use(slot->buffer, stream);
}

static gpumem_status library_empty(struct replay_target *target) {
    return gpumem_resource_trim(target->layers[0], 0);
}

/* Of the innermost resource, where the memory comes from. */
static gpumem_status library_committed(struct replay_target *target, uint64_t *bytes) {
    gpumem_stats stats = {.size = sizeof stats};
    gpumem_status status =
        gpumem_resource_get_stats(target->layers[target->description->count - 1], &stats);
    *bytes = stats.committed_bytes;
    return status;
}

const struct replay_target_ops replay_library = {
    .begin = library_begin,
    .allocate = library_allocate,
    .resize = library_resize,
    .free = library_free,
    .use = library_use,
    .empty = library_empty,
    .committed = library_committed,
    .end = library_end,
};

/* ---- The driver's pool ----------------------------------------------------------------------- */

/* The driver's own alignment. */
#define DRIVER_ALIGNMENT 256

static gpumem_status refused(struct replay_target *target, CUresult result, const char *call) {
    const char *name = "?";
    char text[160];
    (void)target->cu->cuGetErrorName(result, &name);
    snprintf(text, sizeof text, "%s answered %s", call, name);
    return gpumem_set_last_error(result == CUDA_ERROR_OUT_OF_MEMORY ? GPUMEM_ERROR_OUT_OF_MEMORY
                                                                    : GPUMEM_ERROR_DRIVER,
                                 text);
}

static gpumem_status driver_begin(struct replay_target *target) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .maxSize = target->description->layers[0].pool.maximum_bytes};
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = gpumem_device_handle(target->device);
    target->cu = gpumem_driver_table(gpumem_library_driver(gpumem_device_library(target->device)));
    CUresult result = target->cu->cuCtxPushCurrent_v2(gpumem_device_context(target->device));
    if (result != CUDA_SUCCESS)
        return refused(target, result, "cuCtxPushCurrent");
    CUcontext context;
    result = target->cu->cuMemPoolCreate(&target->pool, &props);
    if (result != CUDA_SUCCESS) {
        (void)target->cu->cuCtxPopCurrent_v2(&context);
        return refused(target, result, "cuMemPoolCreate");
    }
    cuuint64_t all = UINT64_MAX; /* a pool that gives memory back at each wait is far slower */
    result =
        target->cu->cuMemPoolSetAttribute(target->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
    if (result != CUDA_SUCCESS) {
        (void)target->cu->cuMemPoolDestroy(target->pool);
        (void)target->cu->cuCtxPopCurrent_v2(&context);
        return refused(target, result, "cuMemPoolSetAttribute");
    }
    return GPUMEM_OK;
}

static gpumem_status driver_allocate(struct replay_target *target, const struct replay_event *event,
                                     uint64_t bytes, CUstream stream, struct replay_slot *slot) {
    uint64_t slack = event->alignment > DRIVER_ALIGNMENT ? event->alignment - DRIVER_ALIGNMENT : 0;
    if (bytes > UINT64_MAX - slack)
        return refused(target, CUDA_ERROR_OUT_OF_MEMORY, "cuMemAllocFromPoolAsync");
    CUresult result =
        target->cu->cuMemAllocFromPoolAsync(&slot->base, bytes + slack, target->pool, stream);
    if (result != CUDA_SUCCESS)
        return refused(target, result, "cuMemAllocFromPoolAsync");
    slot->bytes = bytes;
    return GPUMEM_OK;
}

static gpumem_status driver_free(struct replay_target *target, struct replay_slot *slot,
                                 CUstream stream) {
    CUresult result = target->cu->cuMemFreeAsync(slot->base, stream);
    slot->base = 0;
    return result == CUDA_SUCCESS ? GPUMEM_OK : refused(target, result, "cuMemFreeAsync");
}

static gpumem_status driver_empty(struct replay_target *target) {
    CUresult result = target->cu->cuMemPoolTrimTo(target->pool, 0);
    return result == CUDA_SUCCESS ? GPUMEM_OK : refused(target, result, "cuMemPoolTrimTo");
}

static gpumem_status driver_committed(struct replay_target *target, uint64_t *bytes) {
    cuuint64_t value = 0;
    CUresult result = target->cu->cuMemPoolGetAttribute(
        target->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
    *bytes = value;
    return result == CUDA_SUCCESS ? GPUMEM_OK : refused(target, result, "cuMemPoolGetAttribute");
}

static gpumem_status driver_end(struct replay_target *target) {
    CUcontext context;
    CUresult result = target->cu->cuMemPoolDestroy(target->pool);
    (void)target->cu->cuCtxPopCurrent_v2(&context);
    return result == CUDA_SUCCESS ? GPUMEM_OK : refused(target, result, "cuMemPoolDestroy");
}

const struct replay_target_ops replay_driver = {
    .begin = driver_begin,
    .allocate = driver_allocate,
    .free = driver_free,
    .empty = driver_empty,
    .committed = driver_committed,
    .end = driver_end,
};
