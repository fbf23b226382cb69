/* CPU mappings of existing virtual buffers. */
#include "base/cancel.h"
#include "base/options.h"
#include "mapped/host_range.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/device.h"
#include "memory/virtual/virtual_resource.h"

#include <stdlib.h>

struct gpumem_host_view {
    unsigned generation;
    gpumem_buffer *buffer; /* held */
    struct gm_virtual_resource *resource;
    struct gm_mapper mapper;
    struct gm_host_range *range;
};

static gpumem_status check(gpumem_buffer *buffer, const gpumem_host_view_options *o) {
    static const char call[] = "gpumem_host_view_create";
    GM_REQUIRE((unsigned)o->method <= GPUMEM_MAPPED_HOST, "%s: unknown method %d", call,
               (int)o->method);
    GM_REQUIRE(!o->require_coherent || !o->force_non_coherent,
               "%s: require_coherent and force_non_coherent exclude each other", call);
    GM_REQUIRE(!o->method_strict || o->method != GPUMEM_MAPPED_ANY,
               "%s: method_strict needs a method", call);
    gpumem_status status = gm_buffer_not_in_slab(buffer, "have a host view");
    if (status != GPUMEM_OK)
        return status;
    const struct gm_virtual_resource *v = gm_virtual_behind(buffer->resource);
    if (!v || buffer->root)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s: a buffer of a %s resource has no mappings",
                       call, buffer->resource->kind);
    if (v->handle_type != GPUMEM_HANDLE_POSIX_FD)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: the resource's memory has %s handles; POSIX_FD is needed", call,
                       gpumem_handle_type_name(v->handle_type));
    if (v->prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s: the CPU reaches this memory already", call);
    return GPUMEM_OK;
}

/* Attaches the buffer's present memory, and follows later changes. */
static gpumem_status attach(gpumem_host_view *view) {
    struct gm_range *range = view->buffer->allocation.cookie;
    pthread_mutex_lock(&view->buffer->lock);
    pthread_rwlock_rdlock(&view->resource->mapped.lock);
    gpumem_status status = gm_host_range_make(&view->mapper, &range->extent, &view->range);
    if (status == GPUMEM_OK) {
        status = gm_extent_add_mirror(&range->extent, &view->range->mirror);
        if (status == GPUMEM_OK)
            atomic_store(&range->extent.shared, 1); /* its descriptors were exported */
        else
            gm_host_range_free(view->range);
    }
    pthread_rwlock_unlock(&view->resource->mapped.lock);
    pthread_mutex_unlock(&view->buffer->lock);
    return status;
}

static gpumem_status open_view(gpumem_host_view *view, const gpumem_host_view_options *o) {
    gpumem_device *device = view->resource->device;
    const struct gm_mapper_wishes wishes = {.method = o->method,
                                            .strict = o->method_strict,
                                            .require_coherent = o->require_coherent,
                                            .force_non_coherent = o->force_non_coherent,
                                            .views = 1};
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    status = gm_mapper_open(&view->mapper, device, &wishes);
    if (status == GPUMEM_OK) {
        status = attach(view);
        if (status != GPUMEM_OK)
            gm_mapper_close(&view->mapper);
    }
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_host_view_create(gpumem_buffer *buffer, const gpumem_host_view_options *given,
                                      gpumem_host_view **view) {
    GM_UNCANCELLED;
    gpumem_host_view_options options;
    GM_CHECK(buffer, "gpumem_host_view_create");
    GM_REQUIRE(view, "gpumem_host_view_create: view is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_host_view_options, given, &options);
    if (status == GPUMEM_OK)
        status = check(buffer, &options);
    if (status != GPUMEM_OK)
        return status;
    gpumem_host_view *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a view");
    made->generation = buffer->generation;
    made->buffer = buffer;
    made->resource = gm_virtual_behind(buffer->resource);
    gm_buffer_ref(buffer);
    status = open_view(made, &options);
    if (status != GPUMEM_OK) {
        struct gm_error_record saved;
        gm_error_save(&saved);
        gm_buffer_unref(buffer);
        gm_error_restore(&saved);
        free(made);
        return status;
    }
    gm_device_object_made(made->resource->device);
    *view = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_host_view_destroy(gpumem_host_view *view) {
    GM_UNCANCELLED;
    if (!view)
        return GPUMEM_OK;
    GM_CHECK(view, "gpumem_host_view_destroy");
    struct gm_range *range = view->buffer->allocation.cookie;
    pthread_mutex_lock(&view->buffer->lock);
    pthread_rwlock_rdlock(&view->resource->mapped.lock);
    gm_extent_remove_mirror(&range->extent, &view->range->mirror);
    pthread_rwlock_unlock(&view->resource->mapped.lock);
    pthread_mutex_unlock(&view->buffer->lock);
    gm_host_range_free(view->range);
    gm_mapper_close(&view->mapper);
    gpumem_device *device = view->resource->device;
    gm_buffer_unref(view->buffer);
    gm_device_object_gone(device);
    gm_bury(view);
    return GPUMEM_OK;
}

void *gpumem_host_view_pointer(const gpumem_host_view *view) {
    return view->range->base;
}

gpumem_status gpumem_host_view_get_info(const gpumem_host_view *view, gpumem_mapped_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(view, "gpumem_host_view_get_info");
    GM_REQUIRE(info, "gpumem_host_view_get_info: info is NULL");
    gpumem_mapped_info found;
    gpumem_status status = gm_mapper_info(&view->mapper, &found);
    if (status != GPUMEM_OK)
        return status;
    return GM_RESULT_WRITE(gpumem_mapped_info, info, &found);
}

gpumem_status gpumem_host_view_flush(gpumem_host_view *view, size_t offset, size_t bytes) {
    GM_UNCANCELLED;
    GM_CHECK(view, "gpumem_host_view_flush");
    gpumem_status status = gm_buffer_range(view->buffer, offset, bytes, "gpumem_host_view_flush");
    if (status != GPUMEM_OK)
        return status;
    gm_mapped_fence();
    return gm_incoherent_flush(view->range->base + offset, bytes);
}

gpumem_status gpumem_host_view_invalidate(gpumem_host_view *view, size_t offset, size_t bytes) {
    GM_UNCANCELLED;
    GM_CHECK(view, "gpumem_host_view_invalidate");
    gpumem_status status =
        gm_buffer_range(view->buffer, offset, bytes, "gpumem_host_view_invalidate");
    return status == GPUMEM_OK ? gm_incoherent_invalidate(view->range->base + offset, bytes)
                               : status;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static gpumem_status find(gpumem_host_view *view, size_t offset, size_t bytes, const char *call,
                          struct gm_place *place) {
    GM_CHECK(view, call);
    gpumem_status status = gm_buffer_range(view->buffer, offset, bytes, call);
    if (status != GPUMEM_OK)
        return status;
    *place =
        (struct gm_place){view->range->base + offset, view->buffer->allocation.pointer + offset};
    return GPUMEM_OK;
}

gpumem_status gpumem_host_view_write(gpumem_host_view *view, size_t offset, const void *data,
                                     size_t bytes) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_host_view_write";
    struct gm_place to;
    gpumem_status status = find(view, offset, bytes, call, &to);
    if (status != GPUMEM_OK || !bytes)
        return status;
    GM_REQUIRE(data, "%s: data is NULL", call);
    if (view->buffer->read_only)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s: the memory is read-only", call);
    return gm_engine_write(&view->mapper.engine, to, data, bytes);
}

gpumem_status gpumem_host_view_read(gpumem_host_view *view, size_t offset, void *data,
                                    size_t bytes) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_host_view_read";
    struct gm_place from;
    gpumem_status status = find(view, offset, bytes, call, &from);
    if (status != GPUMEM_OK || !bytes)
        return status;
    GM_REQUIRE(data, "%s: data is NULL", call);
    return gm_engine_read(&view->mapper.engine, data, from, bytes);
}
