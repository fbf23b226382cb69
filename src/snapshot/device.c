/* What a device has besides its resources: deferred frees, exports, virtual memory. */
#include "memory/object/device.h"
#include "memory/core/describe.h"
#include "memory/core/inventory.h"
#include "share/share.h"
#include "snapshot/snapshot.h"

void gm_snapshot_deferred(struct gm_json *json, gpumem_device *device) {
    gm_json_open(json, "deferred", '[');
    pthread_mutex_lock(&device->lock);
    for (const gpumem_buffer *b = device->deferred; b; b = b->next) {
        if (b->queued) /* a mark, which has no address */
            continue;
        gm_json_open(json, NULL, '{');
        gm_json_number(json, "resource", b->resource->serial);
        gm_json_address(json, "address", b->allocation.pointer);
        gm_json_number(json, "bytes", b->allocation.bytes);
        gm_json_number(json, "committed_bytes", b->allocation.committed_bytes);
        gm_json_close(json, '}');
    }
    pthread_mutex_unlock(&device->lock);
    gm_json_close(json, ']');
}

void gm_snapshot_exports(struct gm_json *json, gpumem_device *device) {
    gm_json_open(json, "exports", '[');
    const struct gm_shared_lists *lists = gm_device_shared_lock(device);
    for (const gpumem_export *e = lists->exports; e; e = e->next) {
        gm_json_open(json, NULL, '{');
        gm_json_number(json, "resource", e->buffer->resource->serial);
        gm_json_address(json, "address", e->buffer->allocation.pointer);
        gm_json_number(json, "bytes", e->bytes);
        gm_json_number(json, "descriptors", e->count);
        gm_json_close(json, '}');
    }
    gm_device_shared_unlock(device);
    gm_json_close(json, ']');
}

/* ---- Virtual memory -------------------------------------------------------------------------- */

/* The resource that counts it; null: made by hand, or the resource is gone. The device's lock is
 * held. */
static void write_owner(struct gm_json *json, const gpumem_device *device,
                        const struct gm_meter *owner) {
    const gpumem_resource *resource = device->resources;
    while (resource && &resource->meter != owner)
        resource = resource->next;
    const gpumem_resource *imported = device->hidden[GM_HIDDEN_IMPORTED];
    if (!resource && imported && &imported->meter == owner)
        resource = imported;
    if (resource)
        gm_json_number(json, "resource", resource->serial);
    else
        gm_json_null(json, "resource");
}

static void write_location(struct gm_json *json, const struct gm_held *held) {
    const char *name = NULL;
    if (held->imported || held->retained)
        gm_json_null(json, "location"); /* asking the driver would take a call for each */
    else if (held->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        name = "device";
    else if (held->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
        name = "host_numa";
    else
        name = "host";
    if (name)
        gm_json_string(json, "location", name);
    if (name && held->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
        gm_json_integer(json, "numa_node", held->location.id);
}

static void write_reservations(struct gm_json *json, const struct gm_inventory_copy *copy) {
    gm_json_open(json, "reservations", '[');
    for (size_t i = 0; i < copy->reservation_count; i++) {
        const struct gm_held *held = &copy->reservations[i];
        gm_json_open(json, NULL, '{');
        gm_json_address(json, "address", held->key);
        gm_json_number(json, "bytes", held->bytes);
        if (held->quarantined)
            gm_json_bool(json, "quarantined", 1);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
}

static void write_physical(struct gm_json *json, const gpumem_device *device,
                           const struct gm_inventory_copy *copy) {
    gm_json_open(json, "physical", '[');
    for (size_t i = 0; i < copy->physical_count; i++) {
        const struct gm_held *held = &copy->physical[i];
        gm_json_open(json, NULL, '{');
        gm_json_address(json, "handle", held->key);
        gm_json_number(json, "bytes", held->bytes);
        write_owner(json, device, held->owner);
        write_location(json, held);
        gm_json_bool(json, "imported", held->imported);
        if (held->retained)
            gm_json_bool(json, "retained", 1);
        if (held->imported || held->retained)
            gm_json_null(json, "exportable");
        else
            gm_json_bool(json, "exportable", held->handle_types != 0);
        if (held->references > 1)
            gm_json_number(json, "references", held->references);
        if (held->quarantined)
            gm_json_bool(json, "quarantined", 1);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
}

static void write_mappings(struct gm_json *json, const gpumem_device *device,
                           const struct gm_inventory_copy *copy) {
    gm_json_open(json, "mappings", '[');
    for (size_t i = 0; i < copy->mapping_count; i++) {
        const struct gm_held *held = &copy->mappings[i];
        gm_json_open(json, NULL, '{');
        gm_json_address(json, "address", held->key);
        gm_json_number(json, "bytes", held->bytes);
        gm_json_address(json, "handle", held->handle);
        write_owner(json, device, held->owner);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
}

void gm_snapshot_virtual(struct gm_json *json, gpumem_device *device,
                         const struct gm_inventory_copy *memory) {
    gm_json_open(json, "virtual_memory", '{');
    pthread_mutex_lock(&device->lock); /* resources are looked up */
    write_reservations(json, memory);
    write_physical(json, device, memory);
    write_mappings(json, device, memory);
    pthread_mutex_unlock(&device->lock);
    gm_json_number(json, "unlisted", memory->missing);
    gm_json_close(json, '}');
}
