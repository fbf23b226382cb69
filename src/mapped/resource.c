/* The mapped resource: a virtual resource whose ranges have a mapping for the CPU as well. */
#include "memory/object/resource.h"
#include "base/cancel.h"
#include "base/options.h"
#include "mapped/host_range.h"
#include "mapped/host_view.h"
#include "mapped/slab.h"
#include "mapped/vulkan_export.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/virtual/virtual_resource.h"

#include <stdlib.h>

struct mapped {
    struct gm_host_maker maker;
    struct gm_mapper mapper;
    struct gm_bound bound;
};

static const char kind[] = "mapped";

/* ---- Host mappings of ranges ----------------------------------------------------------------- */

static gpumem_status make(void *user, const struct gm_extent *extent, struct gm_mirror **mirror,
                          void **pointer) {
    struct mapped *mapped = user;
    struct gm_host_range *range;
    gpumem_status status = gm_host_range_make(&mapped->mapper, extent, &range);
    if (status != GPUMEM_OK)
        return status;
    *mirror = &range->mirror;
    *pointer = range->base;
    return GPUMEM_OK;
}

static void unmake(void *user, struct gm_mirror *mirror) {
    (void)user;
    gm_host_range_free((struct gm_host_range *)mirror);
}

static void end(void *user) {
    struct mapped *mapped = user;
    gm_mapper_close(&mapped->mapper);
    free(mapped);
}

/* ---- Creation -------------------------------------------------------------------------------- */

static gpumem_status check(const gpumem_mapped_options *o) {
    GM_REQUIRE((unsigned)o->method <= GPUMEM_MAPPED_HOST, "mapped resource: unknown method %d",
               (int)o->method);
    GM_REQUIRE(!o->require_coherent || !o->force_non_coherent,
               "mapped resource: require_coherent and force_non_coherent exclude each other");
    GM_REQUIRE(!o->method_strict || o->method != GPUMEM_MAPPED_ANY,
               "mapped resource: method_strict needs a method");
    GM_REQUIRE(!o->capacity || !o->slab_bytes || o->slab_bytes == SIZE_MAX,
               "mapped resource: capacity and slab_bytes exclude each other: what can grow lies in "
               "no slab");
    return gm_slabs_check(o->slab_bytes);
}

static gpumem_status make_resource(gpumem_device *device, const gpumem_mapped_options *o,
                                   struct mapped *mapped, gpumem_resource **resource) {
    gpumem_virtual_options options = {
        .size = sizeof options,
        .capacity = o->capacity,
        .maximum_chunk_bytes = o->maximum_chunk_bytes,
        .cache_bytes = o->cache_bytes,
    };
    gpumem_mapped_method method = mapped->mapper.ops->method;
    if (method == GPUMEM_MAPPED_VULKAN_EXPORT)
        return gm_exported_resource(device, &mapped->mapper, mapped, end, resource);
    if (!mapped->mapper.ops->map) { /* the device's addresses are the CPU's */
        mapped->maker.make = NULL;
        mapped->maker.cpu_access = method == GPUMEM_MAPPED_COHERENT;
        options.handle_type = GPUMEM_HANDLE_NONE;
        if (method == GPUMEM_MAPPED_HOST)
            options.location = GPUMEM_LOCATION_HOST;
    } else {
        options.handle_type = GPUMEM_HANDLE_POSIX_FD;
        options.handle_strict = 1;
    }
    return gm_virtual_make(device, &options, &mapped->maker, resource);
}

static gpumem_status open_mapper(gpumem_device *device, const gpumem_mapped_options *o,
                                 struct gm_mapper *mapper) {
    const struct gm_mapper_wishes wishes = {.method = o->method,
                                            .strict = o->method_strict,
                                            .require_coherent = o->require_coherent,
                                            .force_non_coherent = o->force_non_coherent};
    gpumem_status status = GPUMEM_ERROR_NOT_SUPPORTED;
    if (o->method != GPUMEM_MAPPED_HOST)
        status = gm_mapper_open(mapper, device, &wishes);
    else
        *mapper = (struct gm_mapper){.wishes = wishes};
    if (status == GPUMEM_ERROR_NOT_SUPPORTED &&
        (o->method == GPUMEM_MAPPED_HOST || !o->method_strict)) {
        gm_mapper_open_host(mapper, device);
        return GPUMEM_OK;
    }
    return status;
}

/* Adds what it has on top of its memory. On failure it has been ended. */
static gpumem_status complete(gpumem_resource *made, const gpumem_mapped_options *o,
                              struct mapped *mapped) {
    mapped->bound.kind = kind;
    mapped->bound.maximum = o->maximum_bytes;
    if (o->maximum_bytes)
        atomic_store(&made->meter.bound, &mapped->bound);
    gpumem_status status = GPUMEM_OK;
    if (!o->capacity) /* else all buffers can grow */
        status = gm_slabs_add(made, o->slab_bytes, mapped->mapper.atom);
    if (status == GPUMEM_OK)
        return GPUMEM_OK;
    struct gm_error_record saved;
    gm_error_save(&saved);
    gm_resource_discard(made);
    gm_error_restore(&saved);
    return status;
}

static gpumem_status create(gpumem_device *device, const gpumem_mapped_options *o,
                            gpumem_resource **resource) {
    struct gm_current current;
    struct mapped *mapped = calloc(1, sizeof *mapped);
    if (!mapped)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    mapped->maker = (struct gm_host_maker){
        .kind = kind, .make = make, .unmake = unmake, .end = end, .user = mapped};
    gpumem_status status = gm_current_enter(&current, device);
    if (status == GPUMEM_OK) {
        status = open_mapper(device, o, &mapped->mapper);
        gm_current_leave(&current);
    }
    if (status != GPUMEM_OK) {
        free(mapped);
        return status;
    }
    gpumem_resource *made = NULL;
    status = make_resource(device, o, mapped, &made);
    if (status != GPUMEM_OK) {
        end(mapped);
        return status;
    }
    if (mapped->mapper.engine.plans)
        made->engine = &mapped->mapper.engine; /* before anything made over it inherits it */
    status = complete(made, o, mapped);
    if (status == GPUMEM_OK)
        *resource = made;
    return status;
}

gpumem_status gpumem_mapped_resource_create(gpumem_device *device,
                                            const gpumem_mapped_options *given,
                                            gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_mapped_options options;
    GM_CHECK(device, "gpumem_mapped_resource_create");
    GM_REQUIRE(resource, "gpumem_mapped_resource_create: resource is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_mapped_options, given, &options);
    if (status == GPUMEM_OK)
        status = check(&options);
    if (status == GPUMEM_OK)
        status = create(device, &options, resource);
    return status;
}

/* ---- What is known of it --------------------------------------------------------------------- */

static const struct gm_mapper *mapper_of(const gpumem_resource *resource) {
    const struct gm_virtual_resource *v = gm_virtual_behind(resource);
    if (v && v->maker && v->maker->kind == kind)
        return &((const struct mapped *)v->maker->user)->mapper;
    return gm_exported_mapper(resource);
}

static gpumem_status tell(const struct gm_mapper *mapper, gpumem_mapped_info *info) {
    gpumem_mapped_info found;
    gpumem_status status = gm_mapper_info(mapper, &found);
    if (status != GPUMEM_OK)
        return status;
    return GM_RESULT_WRITE(gpumem_mapped_info, info, &found);
}

gpumem_status gpumem_mapped_get_info(gpumem_resource *resource, gpumem_mapped_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_mapped_get_info");
    GM_REQUIRE(info, "gpumem_mapped_get_info: info is NULL");
    const struct gm_mapper *mapper = mapper_of(resource);
    GM_REQUIRE(mapper, "gpumem_mapped_get_info: this is a %s resource", resource->kind);
    return tell(mapper, info);
}

gpumem_status gpumem_buffer_get_mapped_info(gpumem_buffer *buffer, gpumem_mapped_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_get_mapped_info");
    GM_REQUIRE(info, "gpumem_buffer_get_mapped_info: info is NULL");
    gpumem_resource *resource = (buffer->root ? buffer->root : buffer)->resource;
    const struct gm_mapper *mapper = gm_host_view_mapper(buffer);
    if (!mapper)
        mapper = mapper_of(resource->inside ? resource->upstream : resource);
    GM_REQUIRE(mapper,
               "gpumem_buffer_get_mapped_info: memory of a %s resource, which the CPU has not "
               "mapped",
               resource->kind);
    return tell(mapper, info);
}
