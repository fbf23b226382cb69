/* A wrapper that refuses allocations above a number of bytes. */
#include "base/cancel.h"
#include "memory/core/driver_error.h"
#include "memory/object/resource.h"
#include "wrap/wrapper.h"

#include <stdlib.h>

struct limiting_resource {
    struct gm_wrapper wrapper;
    uint64_t maximum;
    _Atomic uint64_t taken;
};

static gpumem_status take(struct limiting_resource *limit, size_t bytes) {
    uint64_t taken = atomic_load(&limit->taken);
    do {
        if (taken > limit->maximum || bytes > limit->maximum - taken)
            return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY,
                           "%zu more bytes would exceed the limit of %llu: %llu are in use", bytes,
                           (unsigned long long)limit->maximum, (unsigned long long)taken);
    } while (!atomic_compare_exchange_weak(&limit->taken, &taken, taken + bytes));
    return GPUMEM_OK;
}

/* Counts the bytes handed out instead of those requested. Differences may be negative, and still
 * add up. */
static void settle(struct limiting_resource *limit, size_t taken, size_t handed_out) {
    atomic_fetch_add(&limit->taken, (uint64_t)handed_out - taken);
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct limiting_resource *limit = user;
    gpumem_status status = take(limit, request->bytes);
    if (status != GPUMEM_OK)
        return status;
    gpumem_resource *up = limit->wrapper.upstream;
    status = up->ops.allocate(up->user, request, allocation);
    settle(limit, request->bytes, status == GPUMEM_OK ? allocation->bytes : 0);
    return status;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct limiting_resource *limit = user;
    size_t bytes = allocation->bytes;
    limit->wrapper.upstream->ops.deallocate(limit->wrapper.upstream->user, allocation, stream);
    atomic_fetch_sub(&limit->taken, bytes);
}

static gpumem_status resize(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream) {
    struct limiting_resource *limit = user;
    gpumem_resource *up = limit->wrapper.upstream;
    size_t before = allocation->bytes, most = bytes > before ? bytes : before;
    gpumem_status status = most > before ? take(limit, most - before) : GPUMEM_OK;
    if (status != GPUMEM_OK)
        return status;
    status = up->ops.resize(up->user, allocation, bytes, stream);
    settle(limit, most, allocation->bytes); /* a failed shrink too may have become shorter */
    return status;
}

static void describe(gpumem_resource *resource, struct gm_json *json,
                     const gpumem_snapshot_options *options) {
    (void)options;
    struct limiting_resource *limit = resource->user;
    gm_json_open(json, "limit", '{');
    gm_json_number(json, "maximum_bytes", limit->maximum);
    gm_json_number(json, "taken_bytes", atomic_load(&limit->taken));
    gm_json_close(json, '}');
}

static const struct gm_describe_ops description = {.resource = describe};

static const struct gm_wrapper_ops own = {
    .kind = "limiting",
    .allocate = allocate,
    .deallocate = deallocate,
    .resize = resize,
    .destroy = free,
    .describe = &description,
};

gpumem_status gpumem_limiting_resource_create(gpumem_resource *upstream, uint64_t maximum_bytes,
                                              gpumem_resource **resource) {
    GM_UNCANCELLED;
    GM_CHECK(upstream, "gpumem_limiting_resource_create");
    GM_REQUIRE(resource, "gpumem_limiting_resource_create: resource is NULL");
    struct limiting_resource *limit = calloc(1, sizeof *limit);
    if (!limit)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    limit->maximum = maximum_bytes;
    return gm_wrapper_make(&limit->wrapper, upstream, &own, resource);
}
