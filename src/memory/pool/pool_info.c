/* Information about a pool of the driver, and its attributes. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/pool/pool.h"

#include <string.h>

gpumem_status gpumem_pool_get_info(gpumem_resource *resource, gpumem_pool_info *info) {
    GM_UNCANCELLED;
    struct gm_pool *p;
    gpumem_status status = gm_pool_find(resource, "gpumem_pool_get_info", &p);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_pool_settings *s = &p->settings;
    gpumem_pool_info filled = {
        .size = sizeof filled,
        .handle = s->pool,
        .owned = s->own,
        .ipc_enabled = s->handle_type != GPUMEM_HANDLE_NONE,
        .mapped = s->mapped,
        .device_accessible = resource->properties.device_accessible,
        .host_accessible = resource->properties.host_accessible,
        .ordinal = s->location == GPUMEM_LOCATION_DEVICE && !s->nowhere ? p->device->ordinal : -1,
        .numa_node = s->numa_node,
    };
    pthread_mutex_lock(&p->lock);
    filled.has_uuid = s->has_uuid;
    memcpy(filled.uuid, s->uuid, sizeof filled.uuid);
    pthread_mutex_unlock(&p->lock);
    return GM_RESULT_WRITE(gpumem_pool_info, info, &filled);
}

/* ---- Attributes ------------------------------------------------------------------------------ */

#define LAST GPUMEM_POOL_USED_HIGH
_Static_assert((int)GPUMEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES ==
                       (int)CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
                   (int)LAST == (int)CU_MEMPOOL_ATTR_USED_MEM_HIGH,
               "the numbers are the driver's");

/* The driver reads and writes these as int, the others as 64 bits. */
static int is_flag(gpumem_pool_attribute attribute) {
    return attribute <= GPUMEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

static gpumem_status find(gpumem_resource *resource, gpumem_pool_attribute attribute,
                          const char *call, struct gm_pool **pool) {
    gpumem_status status = gm_pool_find(resource, call, pool);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(attribute >= GPUMEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES && attribute <= LAST,
               "%s: there is no attribute %d", call, (int)attribute);
    if ((*pool)->settings.mapped)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: only its owner, another process, can use the attributes of the pool",
                       call);
    return GPUMEM_OK;
}

union number {
    int flag;
    cuuint64_t wide;
};

typedef CUresult (*access_fn)(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);

static gpumem_status run(struct gm_pool *p, access_fn fn, const char *call,
                         gpumem_pool_attribute attribute, union number *number) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, p->device);
    if (status != GPUMEM_OK)
        return status;
    CUresult result = fn(p->settings.pool, (CUmemPool_attribute)attribute, number);
    if (result != CUDA_SUCCESS)
        status = gm_cu_fail(p->device->cu, result, call, "attribute %d of the %s of device %d",
                            (int)attribute, p->resource->kind, p->device->ordinal);
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_pool_get_attribute(gpumem_resource *resource, gpumem_pool_attribute attribute,
                                        uint64_t *value) {
    GM_UNCANCELLED;
    struct gm_pool *p;
    gpumem_status status = find(resource, attribute, "gpumem_pool_get_attribute", &p);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(value, "gpumem_pool_get_attribute: value is NULL");
    union number number = {.wide = 0};
    status =
        run(p, p->device->cu->cuMemPoolGetAttribute, "cuMemPoolGetAttribute", attribute, &number);
    if (status == GPUMEM_OK)
        *value = is_flag(attribute) ? number.flag != 0 : number.wide;
    return status;
}

gpumem_status gpumem_pool_set_attribute(gpumem_resource *resource, gpumem_pool_attribute attribute,
                                        uint64_t value) {
    GM_UNCANCELLED;
    struct gm_pool *p;
    gpumem_status status = find(resource, attribute, "gpumem_pool_set_attribute", &p);
    if (status != GPUMEM_OK)
        return status;
    int high = attribute == GPUMEM_POOL_RESERVED_HIGH || attribute == GPUMEM_POOL_USED_HIGH;
    GM_REQUIRE(high || is_flag(attribute) || attribute == GPUMEM_POOL_RELEASE_THRESHOLD,
               "gpumem_pool_set_attribute: attribute %d is read-only", (int)attribute);
    GM_REQUIRE(!is_flag(attribute) || value <= 1,
               "gpumem_pool_set_attribute: attribute %d is 0 or 1, not %llu", (int)attribute,
               (unsigned long long)value);
    GM_REQUIRE(!high || value == 0,
               "gpumem_pool_set_attribute: a high-water mark can only be set to 0, not to %llu",
               (unsigned long long)value);
    if (attribute == GPUMEM_POOL_RESERVED_HIGH && p->settings.own)
        (void)gm_pool_reserved_high(p);
    union number number = {.wide = value};
    if (is_flag(attribute))
        number.flag = (int)value;
    return run(p, p->device->cu->cuMemPoolSetAttribute, "cuMemPoolSetAttribute", attribute,
               &number);
}
