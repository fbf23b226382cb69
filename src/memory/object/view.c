/*
 * Views. The buffer waits for streams and is given back; a view names its streams there, so its own
 * end has nothing to wait for.
 */
#include "memory/object/view.h"

#include "base/cancel.h"
#include "memory/core/describe.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/resource.h"

#include <gpumem/view.h>

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    (void)user;
    (void)request;
    (void)allocation;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "a view is made from a buffer, not allocated");
}

/* `cookie`: the host view that it is a part of, held; NULL: it is of memory itself. */
static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    (void)user;
    (void)stream;
    if (allocation->cookie)
        gm_buffer_unref(allocation->cookie);
}

static void properties(void *user, gpumem_resource_properties *out) {
    (void)user;
    out->device_accessible = 1;
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "view",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties,
};

void gm_view_describe(const gpumem_buffer *view, struct gm_json *json) {
    const gpumem_buffer *root = view->root;
    gm_json_number(json, "viewed_resource", root->resource->serial);
    gm_json_number(json, "offset", view->allocation.pointer - root->allocation.pointer);
}

static const struct gm_describe_ops description = {.buffer = gm_view_describe};

/* Checks the range and takes the hold in one step, so that no shrink comes in between. */
gpumem_status gm_view_attach(gpumem_buffer *view, gpumem_buffer *root, size_t offset, size_t bytes,
                             const char *call) {
    pthread_mutex_lock(&root->lock);
    gpumem_status status = gm_buffer_range(root, offset, bytes, call);
    if (status == GPUMEM_OK && gm_buffer_reserve_waits(root, root->views + 2) != 0)
        status = gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a view's streams");
    if (status == GPUMEM_OK) {
        root->views++;
        atomic_fetch_add(&root->references, 1);
    }
    pthread_mutex_unlock(&root->lock);
    if (status != GPUMEM_OK)
        return status;
    const gpumem_allocation *all = &root->allocation;
    void *host = all->host_pointer ? (unsigned char *)all->host_pointer + offset : NULL;
    view->root = root;
    view->read_only = root->read_only;
    view->allocation.pointer = all->pointer + offset;
    view->allocation.host_pointer = host;
    view->allocation.bytes = bytes;
    view->allocation.committed_bytes = bytes;
    view->allocation.capacity = bytes;
    gm_roll_add(view, GPUMEM_STREAM_NONE);
    return GPUMEM_OK;
}

static const struct gm_hidden_kind kind = {.ops = &ops, .describe = &description};

/* A part of a host view has its address for the CPU too, and holds it. */
static void follow(gpumem_buffer *view, gpumem_buffer *whole, size_t offset) {
    gpumem_buffer *mapping = whole->allocation.cookie;
    if (whole->resource->ops.deallocate != deallocate)
        mapping = whole;
    if (!mapping || view->allocation.host_pointer)
        return;
    gm_buffer_ref(mapping);
    view->allocation.cookie = mapping;
    view->allocation.host_pointer = (unsigned char *)whole->allocation.host_pointer + offset;
}

gpumem_status gpumem_buffer_view(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                 gpumem_buffer **view) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_view";
    GM_CHECK(buffer, call);
    GM_REQUIRE(view, "%s: view is NULL", call);
    GM_REQUIRE(bytes, "%s: 0 bytes", call);
    gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    size_t shift = (size_t)(buffer->allocation.pointer - root->allocation.pointer);
    gpumem_status status = GPUMEM_OK;
    if (root != buffer)
        status = gm_buffer_range(buffer, offset, bytes, call);
    gpumem_resource *resource;
    gpumem_buffer *made = NULL;
    if (status == GPUMEM_OK)
        status = gm_resource_hidden(root->resource->device, GM_HIDDEN_VIEW, &kind, &resource);
    if (status == GPUMEM_OK)
        status = gm_buffer_make(resource, GPUMEM_STREAM_NONE, &made);
    if (status != GPUMEM_OK)
        return status;
    status = gm_view_attach(made, root, shift + offset, bytes, call);
    if (status != GPUMEM_OK) {
        gm_buffer_discard(made);
        return status;
    }
    if (root != buffer)
        follow(made, buffer, offset);
    *view = made;
    return GPUMEM_OK;
}

void gm_view_end(gpumem_buffer *view) {
    gpumem_buffer *root = view->root;
    view->resource->ops.deallocate(view->resource->user, &view->allocation, NULL);
    pthread_mutex_lock(&root->lock);
    root->views--;
    pthread_mutex_unlock(&root->lock);
    gm_roll_remove(view);
    gm_buffer_discard(view);
    gm_buffer_unref(root);
}
