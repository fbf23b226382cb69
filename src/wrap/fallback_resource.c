/* A wrapper of two resources: when the first has no memory, it allocates from the second. Each of
 * its buffers is a whole buffer of one of them. */
#include "base/cancel.h"
#include "memory/core/driver_error.h"
#include "memory/object/reclaim.h"
#include "memory/object/resource.h"
#include "wrap/inner_buffer.h"
#include "wrap/wrapper.h"

#include <stdlib.h>
#include <string.h>

struct fallback_resource {
    struct gm_wrapper wrapper; /* the first */
    gpumem_resource *second;
};

static gpumem_status take(gpumem_resource *from, const gpumem_request *request,
                          gpumem_buffer **buffer) {
    return gpumem_buffer_allocate(from, request->bytes,
                                  GPUMEM_OPTIONS(gpumem_buffer_options, .stream = request->stream,
                                                 .alignment = request->alignment,
                                                 .capacity = request->capacity),
                                  buffer);
}

static int can_grow(const gpumem_resource *resource) {
    return resource->ops.resize && resource->properties.can_resize;
}

/* Keeps the reason of the first as well as that of the second. */
static gpumem_status take_second(const struct fallback_resource *f, const gpumem_request *request,
                                 gpumem_status first, gpumem_buffer **buffer) {
    struct gm_error_record why;
    gm_error_save(&why);
    if (request->capacity > request->bytes && !can_grow(f->second))
        return gm_fail(first, "%.300s; and buffers of the next resource, %s, cannot grow",
                       why.message, f->second->kind);
    gpumem_status status = take(f->second, request, buffer);
    if (status == GPUMEM_OK)
        return GPUMEM_OK;
    char second[200];
    strncpy(second, gpumem_last_error()->message, sizeof second - 1);
    second[sizeof second - 1] = 0;
    return gm_fail(status, "%.250s; then, from the %s resource: %s", why.message, f->second->kind,
                   second);
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    const struct fallback_resource *f = user;
    gpumem_buffer *from = NULL;
    gpumem_status status = take(f->wrapper.upstream, request, &from);
    if (gm_ran_out(status))
        status = take_second(f, request, status, &from);
    if (status != GPUMEM_OK)
        return status;
    allocation->pointer = gpumem_buffer_pointer(from);
    allocation->host_pointer = gpumem_buffer_host_pointer(from);
    allocation->bytes = gpumem_buffer_size(from);
    allocation->committed_bytes = gpumem_buffer_committed(from);
    allocation->capacity = gpumem_buffer_capacity(from);
    allocation->cookie = from;
    allocation->buffer = from;
    return GPUMEM_OK;
}

/* If only one of the two is stream-ordered, the other holds the memory back by itself. */
static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    const struct fallback_resource *f = user;
    int ordered =
        f->wrapper.upstream->properties.stream_ordered || f->second->properties.stream_ordered;
    gm_inner_free(allocation->cookie, stream, ordered);
}

static gpumem_status resize(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream) {
    (void)user;
    gpumem_buffer *from = allocation->cookie;
    gpumem_status status = bytes > allocation->bytes ? gpumem_buffer_grow(from, bytes, stream)
                                                     : gpumem_buffer_shrink(from, bytes, stream);
    allocation->bytes = gpumem_buffer_size(from);
    allocation->committed_bytes = gpumem_buffer_committed(from);
    return status;
}

static void properties(void *user, gpumem_resource_properties *out) {
    const struct fallback_resource *f = user;
    const gpumem_resource_properties *second = &f->second->properties;
    gm_wrapper_properties(user, out);
    out->device_accessible &= second->device_accessible;
    out->host_accessible &= second->host_accessible;
    out->stream_ordered |= second->stream_ordered;
    if (out->granularity < second->granularity)
        out->granularity = second->granularity;
}

static void trim(void *user, size_t keep_bytes) {
    const struct fallback_resource *f = user;
    gm_wrapper_trim(user, keep_bytes);
    if (f->second->ops.trim)
        f->second->ops.trim(f->second->user, keep_bytes);
}

static void hold(gpumem_resource *resource, int by) {
    pthread_mutex_lock(&resource->device->lock);
    resource->wrappers += (size_t)by;
    pthread_mutex_unlock(&resource->device->lock);
}

static void destroy(void *user) {
    struct fallback_resource *f = user;
    hold(f->second, -1);
    free(f);
}

static void describe(gpumem_resource *resource, struct gm_json *json,
                     const gpumem_snapshot_options *options) {
    (void)options;
    const struct fallback_resource *f = resource->user;
    gm_json_number(json, "second_upstream", f->second->serial);
}

static const struct gm_describe_ops description = {.resource = describe};

static int takes_no_stream(const gpumem_resource *resource) {
    return resource->own_stream || !resource->properties.stream_ordered;
}

static gpumem_status make(gpumem_resource *first, gpumem_resource *second,
                          gpumem_resource **resource) {
    const gpumem_resource_ops ops = {
        .size = sizeof ops,
        .kind = "fallback",
        .allocate = allocate,
        .deallocate = deallocate,
        .resize = first->ops.resize ? resize : NULL,
        .properties = properties,
        .trim = trim,
        .destroy = destroy,
        .upstream = first,
    };
    struct fallback_resource *f = calloc(1, sizeof *f);
    if (!f)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    f->wrapper.upstream = first;
    f->second = second;
    gpumem_status status = gm_resource_make(first->device, &ops, f, first, resource);
    if (status != GPUMEM_OK) {
        free(f);
        return status;
    }
    hold(second, 1);
    (*resource)->enters = 1;
    gm_describe_set(*resource, &description);
    (*resource)->own_stream =
        (*resource)->properties.stream_ordered && takes_no_stream(first) && takes_no_stream(second);
    return GPUMEM_OK;
}

gpumem_status gpumem_fallback_resource_create(gpumem_resource *first, gpumem_resource *second,
                                              gpumem_resource **resource) {
    GM_UNCANCELLED;
    GM_CHECK(first, "gpumem_fallback_resource_create");
    GM_CHECK(second, "gpumem_fallback_resource_create");
    GM_REQUIRE(resource, "gpumem_fallback_resource_create: resource is NULL");
    GM_REQUIRE(first != second, "gpumem_fallback_resource_create: both are the same resource");
    GM_REQUIRE(first->device == second->device,
               "gpumem_fallback_resource_create: the two belong to different devices");
    return make(first, second, resource);
}

gpumem_status gpumem_fallback_get_source(gpumem_buffer *buffer, gpumem_resource **source) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_fallback_get_source");
    GM_REQUIRE(source, "gpumem_fallback_get_source: source is NULL");
    GM_REQUIRE(buffer->resource->ops.allocate == allocate,
               "gpumem_fallback_get_source: a buffer of a %s resource", buffer->resource->kind);
    *source = gpumem_buffer_resource(buffer->allocation.cookie);
    return GPUMEM_OK;
}
