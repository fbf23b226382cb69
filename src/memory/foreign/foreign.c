/* Buffers over memory that the library did not allocate. */
#include "memory/foreign/foreign.h"

#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/describe.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/resource.h"

#include <stdlib.h>

/* The cookie of an allocation that must be given back. */
struct owner {
    gpumem_deleter_fn deleter;
    void *user;
};

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    (void)user;
    (void)request;
    (void)allocation;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "foreign memory is not allocated by the library");
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    (void)user;
    struct owner *owner = allocation->cookie;
    if (owner)
        owner->deleter(owner->user, allocation->pointer, allocation->bytes, stream);
    free(owner);
}

static void properties(void *user, gpumem_resource_properties *out) {
    (void)user;
    out->device_accessible = 1;
}

static void properties_ordered(void *user, gpumem_resource_properties *out) {
    properties(user, out);
    out->stream_ordered = 1;
}

static void properties_of_host(void *user, gpumem_resource_properties *out) {
    (void)user;
    out->host_accessible = 1;
    out->location = GPUMEM_LOCATION_HOST;
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "foreign",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties,
};

static const gpumem_resource_ops ops_ordered = {
    .size = sizeof ops_ordered,
    .kind = "foreign",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties_ordered,
};

static const gpumem_resource_ops ops_of_host = {
    .size = sizeof ops_of_host,
    .kind = "foreign",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties_of_host,
};

static void describe(const gpumem_buffer *buffer, struct gm_json *json) {
    gm_json_bool(json, "deleter", buffer->allocation.cookie != NULL);
}

static const struct gm_describe_ops description = {.buffer = describe};

static gpumem_status make_owner(const gpumem_foreign_options *options, struct owner **owner) {
    *owner = NULL;
    if (!options->deleter)
        return GPUMEM_OK;
    *owner = malloc(sizeof **owner);
    if (!*owner)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a buffer");
    **owner = (struct owner){options->deleter, options->user};
    return GPUMEM_OK;
}

gpumem_status gm_foreign_make(gpumem_device *device, CUdeviceptr pointer, size_t bytes,
                              const struct gm_pointer *known, const gpumem_foreign_options *options,
                              gpumem_buffer **buffer) {
    gpumem_resource *resource;
    gpumem_buffer *made = NULL;
    struct owner *owner;
    struct gm_hidden_kind kind = {.ops = &ops, .describe = &description};
    enum gm_hidden which = GM_HIDDEN_FOREIGN;
    if (options->stream_ordered) {
        kind.ops = &ops_ordered;
        which = GM_HIDDEN_FOREIGN_ORDERED;
    } else if (options->host_only) {
        kind.ops = &ops_of_host;
        which = GM_HIDDEN_FOREIGN_HOST;
    }
    gpumem_status status = gm_resource_hidden(device, which, &kind, &resource);
    if (status == GPUMEM_OK)
        status = make_owner(options, &owner);
    if (status != GPUMEM_OK)
        return status;
    status = gm_buffer_make(resource, options->stream, &made);
    if (status != GPUMEM_OK) {
        free(owner);
        return status;
    }
    made->read_only = options->read_only;
    gm_buffer_attach(made, &(gpumem_allocation){.pointer = pointer,
                                                .host_pointer = known->host_pointer,
                                                .bytes = bytes,
                                                .committed_bytes = bytes,
                                                .capacity = bytes,
                                                .cookie = owner});
    *buffer = made;
    return GPUMEM_OK;
}

gpumem_status gm_foreign_check_device(const gpumem_device *device, const struct gm_pointer *known) {
    if (known->on_host || known->managed || known->ordinal == device->handle)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NO_DEVICE,
                   "the memory is on device %d, not on device %d; open that device", known->ordinal,
                   device->ordinal);
}

static gpumem_status check(const gpumem_foreign_options *options) {
    GM_REQUIRE(!options->stream_ordered || options->stream != GPUMEM_STREAM_NONE,
               "gpumem_buffer_from_pointer: memory is given back in stream order; name a stream");
    GM_REQUIRE(options->deleter || !options->stream_ordered,
               "gpumem_buffer_from_pointer: stream_ordered needs a deleter");
    GM_REQUIRE(!options->stream_ordered || !options->host_only,
               "gpumem_buffer_from_pointer: host_only memory is not given back in stream order");
    return GPUMEM_OK;
}

/* In place of the driver's answer. */
static gpumem_status ask_host(CUdeviceptr pointer, size_t bytes, struct gm_pointer *known) {
    GM_REQUIRE(pointer && bytes, "gpumem_buffer_from_pointer: %zu bytes at 0x%llx", bytes, pointer);
    *known = (struct gm_pointer){.on_host = 1, .host_pointer = (void *)(uintptr_t)pointer};
    return GPUMEM_OK;
}

gpumem_status gpumem_buffer_from_pointer(gpumem_device *device, CUdeviceptr pointer, size_t bytes,
                                         const gpumem_foreign_options *given,
                                         gpumem_buffer **buffer) {
    GM_UNCANCELLED;
    gpumem_foreign_options options;
    struct gm_pointer known;
    GM_CHECK(device, "gpumem_buffer_from_pointer");
    GM_REQUIRE(buffer, "gpumem_buffer_from_pointer: buffer is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_foreign_options, given, &options);
    if (status == GPUMEM_OK)
        status = check(&options);
    if (status == GPUMEM_OK && options.host_only)
        status = ask_host(pointer, bytes, &known);
    else if (status == GPUMEM_OK)
        status = gm_pointer_ask_range(device, pointer, bytes, &known);
    if (status == GPUMEM_OK)
        status = gm_foreign_check_device(device, &known);
    if (status != GPUMEM_OK)
        return status;
    return gm_foreign_make(device, pointer, bytes, &known, &options, buffer);
}
