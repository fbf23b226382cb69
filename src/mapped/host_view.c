/* CPU mappings of existing virtual buffers: views of them that the CPU reaches too. */
#include "mapped/host_view.h"

#include "base/cancel.h"
#include "base/options.h"
#include "mapped/host_range.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/resource.h"
#include "memory/object/view.h"
#include "memory/virtual/virtual_resource.h"

#include <stdlib.h>

/* The cookie of such a view. */
struct mapping {
    gpumem_buffer *view;
    struct gm_virtual_resource *resource;
    struct gm_mapper mapper;
    struct gm_host_range *range;
};

static gpumem_status check(gpumem_buffer *buffer, const gpumem_host_view_options *o) {
    static const char call[] = "gpumem_buffer_host_view";
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

/* ---- The view ends --------------------------------------------------------------------------- */

static struct gm_extent *extent_of(const gpumem_buffer *view) {
    return &((struct gm_range *)view->root->allocation.cookie)->extent;
}

static void unfollow(gpumem_buffer *view) {
    for (gpumem_buffer **at = &view->root->followers; *at; at = &(*at)->followers) {
        if (*at != view)
            continue;
        *at = view->followers;
        break;
    }
}

/* `cookie` is NULL if the mapping could not be made. */
static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct mapping *mapping = allocation->cookie;
    (void)user;
    (void)stream;
    if (!mapping)
        return;
    gpumem_buffer *root = mapping->view->root;
    pthread_mutex_lock(&root->lock);
    unfollow(mapping->view);
    pthread_rwlock_rdlock(&mapping->resource->mapped.lock);
    gm_extent_remove_mirror(extent_of(mapping->view), &mapping->range->mirror);
    pthread_rwlock_unlock(&mapping->resource->mapped.lock);
    pthread_mutex_unlock(&root->lock);
    gm_host_range_free(mapping->range);
    gm_mapper_close(&mapping->mapper);
    free(mapping);
}

/* ---- The view is made ------------------------------------------------------------------------ */

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    (void)user;
    (void)request;
    (void)allocation;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "a host view is made from a buffer, not allocated");
}

static void properties(void *user, gpumem_resource_properties *out) {
    (void)user;
    out->device_accessible = out->host_accessible = true;
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "host_view",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties,
};
static const struct gm_describe_ops description = {.buffer = gm_view_describe};
static const struct gm_hidden_kind kind = {.ops = &ops, .describe = &description};

/* From here on the view is as large as its buffer. */
static void follow(struct mapping *mapping, gpumem_buffer *root) {
    gpumem_buffer *view = mapping->view;
    view->allocation.cookie = mapping;
    gm_roll_lock(view);
    view->allocation.host_pointer = mapping->range->base;
    view->allocation.bytes = view->allocation.committed_bytes = root->allocation.bytes;
    view->allocation.capacity = root->allocation.capacity;
    gm_roll_unlock(view);
    view->followers = root->followers;
    root->followers = view;
}

/* Attaches the buffer's present memory, and follows later changes. */
static gpumem_status attach(struct mapping *mapping) {
    gpumem_buffer *root = mapping->view->root;
    struct gm_extent *extent = extent_of(mapping->view);
    pthread_mutex_lock(&root->lock);
    pthread_rwlock_rdlock(&mapping->resource->mapped.lock);
    gpumem_status status = gm_host_range_make(&mapping->mapper, extent, &mapping->range);
    if (status == GPUMEM_OK) {
        status = gm_extent_add_mirror(extent, &mapping->range->mirror);
        if (status == GPUMEM_OK)
            atomic_store(&extent->shared, 1); /* its descriptors were exported */
        else
            gm_host_range_free(mapping->range);
    }
    pthread_rwlock_unlock(&mapping->resource->mapped.lock);
    if (status == GPUMEM_OK)
        follow(mapping, root);
    pthread_mutex_unlock(&root->lock);
    return status;
}

static gpumem_status open_mapping(struct mapping *mapping, const gpumem_host_view_options *o) {
    gpumem_device *device = mapping->resource->device;
    const struct gm_mapper_wishes wishes = {.method = o->method,
                                            .strict = o->method_strict,
                                            .require_coherent = o->require_coherent,
                                            .force_non_coherent = o->force_non_coherent,
                                            .views = 1};
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    status = gm_mapper_open(&mapping->mapper, device, &wishes);
    if (status == GPUMEM_OK) {
        status = attach(mapping);
        if (status != GPUMEM_OK)
            gm_mapper_close(&mapping->mapper);
    }
    gm_current_leave(&current);
    return status;
}

/* The view holds its buffer from here on. */
static gpumem_status map(gpumem_buffer *view, const gpumem_host_view_options *options) {
    struct mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a view");
    mapping->view = view;
    mapping->resource = gm_virtual_behind(view->root->resource);
    gpumem_status status = open_mapping(mapping, options);
    if (status != GPUMEM_OK)
        free(mapping);
    return status;
}

static gpumem_status make(gpumem_buffer *buffer, const gpumem_host_view_options *options,
                          const char *call, gpumem_buffer **view) {
    gpumem_resource *resource;
    gpumem_buffer *made = NULL;
    gpumem_status status =
        gm_resource_hidden(buffer->resource->device, GM_HIDDEN_HOST_VIEW, &kind, &resource);
    if (status == GPUMEM_OK)
        status = gm_buffer_make(resource, GPUMEM_STREAM_NONE, &made);
    if (status != GPUMEM_OK)
        return status;
    /* Without bytes until it is mapped; the buffer may have holes. */
    status = gm_view_attach(made, buffer, 0, 0, call);
    if (status != GPUMEM_OK) {
        gm_buffer_discard(made);
        return status;
    }
    status = map(made, options);
    if (status == GPUMEM_OK) {
        *view = made;
        return GPUMEM_OK;
    }
    struct gm_error_record saved;
    gm_error_save(&saved);
    gm_view_end(made);
    gm_error_restore(&saved);
    return status;
}

gpumem_status gpumem_buffer_host_view(gpumem_buffer *buffer, const gpumem_host_view_options *given,
                                      gpumem_buffer **view) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_host_view";
    gpumem_host_view_options options;
    GM_CHECK(buffer, call);
    GM_REQUIRE(view, "%s: view is NULL", call);
    gpumem_status status = GM_OPTIONS_READ(gpumem_host_view_options, given, &options);
    if (status == GPUMEM_OK)
        status = check(buffer, &options);
    return status == GPUMEM_OK ? make(buffer, &options, call, view) : status;
}

/* ---- What is known of it --------------------------------------------------------------------- */

struct gm_mapper *gm_host_view_mapper(const gpumem_buffer *buffer) {
    if (!buffer->root)
        return NULL;
    const gpumem_buffer *whole = buffer;
    if (buffer->resource->ops.deallocate != deallocate)
        whole = buffer->allocation.cookie; /* a part of one, or NULL */
    return whole ? &((struct mapping *)whole->allocation.cookie)->mapper : NULL;
}
