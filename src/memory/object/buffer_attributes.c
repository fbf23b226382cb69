/* The attributes of a buffer's memory. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/pointer_facts.h"
#include "memory/object/buffer.h"

static gpumem_location location_of(const struct gm_pointer *known) {
    switch (known->location.type) {
    case CU_MEM_LOCATION_TYPE_HOST:
        return GPUMEM_LOCATION_HOST;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return GPUMEM_LOCATION_HOST_NUMA;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return GPUMEM_LOCATION_HOST_NUMA_CURRENT;
    default:
        return GPUMEM_LOCATION_DEVICE;
    }
}

static gpumem_handle_type handle_type_of(uint64_t types) {
    if (types & CU_MEM_HANDLE_TYPE_FABRIC)
        return GPUMEM_HANDLE_FABRIC;
    if (types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return GPUMEM_HANDLE_POSIX_FD;
    return GPUMEM_HANDLE_NONE;
}

static void fill(const gpumem_buffer *buffer, const struct gm_pointer *known,
                 gpumem_buffer_attributes *out) {
    const gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    const gpumem_resource *resource = root->resource;
    out->context = known->context;
    out->location = location_of(known);
    out->ordinal = known->on_host ? -1 : known->ordinal;
    out->numa_node = out->location == GPUMEM_LOCATION_HOST_NUMA ? known->location.id : -1;
    out->device_accessible = known->device_pointer != 0;
    out->host_accessible = buffer->allocation.host_pointer != NULL;
    out->managed = known->managed;
    out->imported = resource->imported && !resource->foreign;
    out->foreign = resource->foreign;
    out->viewed = buffer->root;
    out->read_only = buffer->read_only;
    out->exportable = !buffer->root && resource->properties.exportable;
    out->handle_type = handle_type_of(known->handle_types);
}

/* Pageable memory, for example, of a resource of the user's, or foreign. */
static int is_of_the_users(gpumem_buffer *buffer) {
    gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    const gpumem_buffer *inner = gm_buffer_innermost(root);
    const gpumem_resource *resource = (inner ? inner : root)->resource;
    if (resource == resource->device->hidden[GM_HIDDEN_FOREIGN_HOST])
        return 1;
    while (resource && !resource->users)
        resource = resource->upstream;
    return resource != NULL;
}

/* What the driver does not know is as its resource says. */
static void fill_unknown(const gpumem_buffer *buffer, gpumem_buffer_attributes *out) {
    const gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    const gpumem_resource_properties *known = &root->resource->properties;
    out->context = NULL;
    out->location = known->location == GPUMEM_LOCATION_DEVICE && buffer->allocation.host_pointer
                        ? GPUMEM_LOCATION_HOST
                        : known->location;
    int on_device = out->location == GPUMEM_LOCATION_DEVICE;
    out->ordinal = on_device ? root->resource->device->ordinal : -1;
    out->numa_node = -1;
    out->device_accessible = known->device_accessible;
    out->handle_type = GPUMEM_HANDLE_NONE;
}

gpumem_status gpumem_buffer_get_attributes(gpumem_buffer *buffer,
                                           gpumem_buffer_attributes *attributes) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_get_attributes");
    gpumem_device *device = buffer->resource->device;
    struct gm_pointer known;
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    status = gm_pointer_ask(device, buffer->allocation.pointer, &known);
    gm_current_leave(&current);
    int unknown = status == GPUMEM_OK && !known.type;
    if (unknown && !is_of_the_users(buffer))
        status = gm_fail(GPUMEM_ERROR_DRIVER, "the driver knows no memory at 0x%llx",
                         buffer->allocation.pointer);
    if (status != GPUMEM_OK)
        return status;
    gpumem_buffer_attributes filled = {.size = sizeof filled};
    fill(buffer, &known, &filled);
    if (unknown)
        fill_unknown(buffer, &filled);
    return GM_RESULT_WRITE(gpumem_buffer_attributes, attributes, &filled);
}
