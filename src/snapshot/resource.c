/* Resources and their buffers. */
#include "memory/object/resource.h"
#include "memory/core/describe.h"
#include "memory/object/watch.h"
#include "snapshot/snapshot.h"

void gm_snapshot_stats(struct gm_json *json, const char *key, const gpumem_stats *stats) {
    gm_json_open(json, key, '{');
#define MEMBER(name) gm_json_number(json, #name, stats->name)
    MEMBER(reserved_bytes);
    MEMBER(committed_bytes);
    MEMBER(committed_high);
    MEMBER(in_use_bytes);
    MEMBER(in_use_high);
    MEMBER(cached_bytes);
    MEMBER(pinned_bytes);
    MEMBER(pinned_high);
    MEMBER(imported_bytes);
    MEMBER(allocations);
    MEMBER(allocations_total);
    MEMBER(allocations_failed);
    MEMBER(chunks);
    MEMBER(mappings);
    MEMBER(deferred_frees);
    MEMBER(deferred_bytes);
    MEMBER(exports);
    MEMBER(quarantined);
    MEMBER(quarantined_bytes);
#undef MEMBER
    gm_json_close(json, '}');
}

static void write_properties(struct gm_json *json, const gpumem_resource *resource) {
    const gpumem_resource_properties *p = &resource->properties;
    gm_json_open(json, "properties", '{');
    gm_json_string(json, "location", gpumem_location_name(p->location));
    gm_json_bool(json, "device_accessible", p->device_accessible);
    gm_json_bool(json, "host_accessible", p->host_accessible);
    gm_json_bool(json, "stream_ordered", p->stream_ordered);
    gm_json_bool(json, "can_resize", p->can_resize);
    gm_json_bool(json, "exportable", p->exportable);
    gm_json_string(json, "handle_type", gpumem_handle_type_name(p->handle_type));
    gm_json_number(json, "granularity", p->granularity);
    gm_json_number(json, "maximum_chunk_bytes", p->maximum_chunk_bytes);
    gm_json_string(json, "note", p->note[0] ? p->note : NULL);
    gm_json_close(json, '}');
}

/* "live"; "held" by holds or exports after its owner freed it; "deferred" by queued work, or just
 * going back. */
static const char *state_of(const gpumem_buffer *buffer) {
    if (atomic_load(&buffer->references) == 0)
        return "deferred";
    switch (atomic_load_explicit(&buffer->listed.state, memory_order_relaxed)) {
    case GM_LISTED_LIVE:
        return "live";
    case GM_LISTED_FREED:
        return "held";
    default:
        return "deferred";
    }
}

/* Resources whose buffers are ranges of mappings, of which parts need not be mapped. */
static int is_mapped(const gpumem_resource *resource) {
    return resource->mapped || (gm_resource_is_imported(resource) && resource->chunks);
}

/* The first mapping that does not end before `address`. */
static size_t first_mapping(const struct gm_inventory_copy *memory, CUdeviceptr address) {
    size_t low = 0, high = memory->mapping_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memory->mappings[middle].key + memory->mappings[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void write_chunks(struct gm_json *json, const gpumem_allocation *a,
                         const struct gm_inventory_copy *memory) {
    gm_json_open(json, "chunks", '[');
    for (size_t i = first_mapping(memory, a->pointer);
         i < memory->mapping_count && memory->mappings[i].key - a->pointer < a->capacity; i++) {
        gm_json_open(json, NULL, '{');
        gm_json_number(json, "offset", memory->mappings[i].key - a->pointer);
        gm_json_number(json, "bytes", memory->mappings[i].bytes);
        gm_json_address(json, "handle", memory->mappings[i].handle);
        gm_json_close(json, '}');
    }
    gm_json_close(json, ']');
}

struct listing {
    struct gm_json *json;
    const struct gm_inventory_copy *memory;
};

static void write_buffer(gpumem_buffer *buffer, void *data) {
    const struct listing *listing = data;
    struct gm_json *json = listing->json;
    const gpumem_allocation *a = &buffer->allocation;
    const struct gm_describe_ops *more =
        atomic_load_explicit(&buffer->resource->describe, memory_order_acquire);
    unsigned references = atomic_load(&buffer->references);
    gm_json_open(json, NULL, '{');
    gm_json_address(json, "address", a->pointer);
    if (a->host_pointer)
        gm_json_address(json, "host_address", (uintptr_t)a->host_pointer);
    gm_json_number(json, "bytes", a->bytes);
    gm_json_number(json, "committed_bytes", a->committed_bytes);
    gm_json_number(json, "capacity", a->capacity);
    if (buffer->listed.stream == GPUMEM_STREAM_NONE)
        gm_json_null(json, "stream");
    else
        gm_json_address(json, "stream", (uintptr_t)buffer->listed.stream);
    gm_json_string(json, "state", state_of(buffer));
    if (references > 1)
        gm_json_number(json, "references", references);
    size_t watches = gm_watches_of(buffer);
    if (watches)
        gm_json_number(json, "watches", watches);
    if (buffer->read_only)
        gm_json_bool(json, "read_only", 1);
    if (is_mapped(buffer->resource))
        write_chunks(json, a, listing->memory);
    if (more && more->buffer)
        more->buffer(buffer, json);
    gm_json_close(json, '}');
}

static void write_bound(struct gm_json *json, const gpumem_resource *resource) {
    struct gm_bound *bound = atomic_load(&resource->meter.bound);
    if (!bound)
        return;
    gm_json_open(json, "limit", '{');
    gm_json_number(json, "maximum_bytes", bound->maximum);
    gm_json_number(json, "taken_bytes", atomic_load(&bound->held));
    gm_json_close(json, '}');
}

static void write_own_stats(struct gm_json *json, gpumem_resource *resource) {
    gpumem_stats stats;
    gm_meter_read(&resource->meter, &stats);
    if (resource->ops.stats)
        resource->ops.stats(resource->user, &stats);
    gm_snapshot_stats(json, "statistics", &stats);
}

void gm_snapshot_resource(struct gm_json *json, gpumem_resource *resource,
                          const gpumem_snapshot_options *options,
                          const struct gm_inventory_copy *memory) {
    const struct gm_describe_ops *more =
        atomic_load_explicit(&resource->describe, memory_order_acquire);
    gm_json_open(json, NULL, '{');
    gm_json_number(json, "id", resource->serial);
    gm_json_string(json, "kind", resource->kind);
    if (resource->upstream)
        gm_json_number(json, "upstream", resource->upstream->serial);
    else
        gm_json_null(json, "upstream");
    /* Whether the upstream also counts the buffers' memory, under another object. */
    gm_json_bool(json, "takes_buffers", resource->apart);
    write_properties(json, resource);
    size_t watches = atomic_load(&resource->watched);
    if (watches)
        gm_json_number(json, "watches", watches);
    write_own_stats(json, resource);
    write_bound(json, resource);
    if (more && more->resource)
        more->resource(resource, json, options);
    if (!options->without_buffers) {
        gm_json_open(json, "buffers", '[');
        struct listing listing = {json, memory};
        gm_rolls_visit(resource, write_buffer, &listing);
        gm_json_close(json, ']');
    }
    gm_json_close(json, '}');
}
