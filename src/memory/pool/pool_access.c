/* Access to a pool of the driver during its life. */
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/pool/pool.h"
#include "memory/virtual/virtual_resource.h"

static CUmemAccess_flags access_of(const struct gm_pool *p, CUmemLocation location,
                                   CUresult *result) {
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    *result = p->device->cu->cuMemPoolGetAccess(&flags, p->settings.pool, &location);
    return flags;
}

static gpumem_status cannot_tell(const struct gm_pool *p, CUresult result, int ordinal) {
    return gm_cu_fail(p->device->cu, result, "cuMemPoolGetAccess",
                      "cannot get the access of device %d to the %s of device %d", ordinal,
                      p->resource->kind, p->device->ordinal);
}

/* A device as the driver names it. A device that is given access must be able to reach the memory
 * of another; host and managed memory is within reach of all. */
static gpumem_status locate(const struct gm_pool *p, int ordinal, int gives, const char *call,
                            CUmemLocation *location) {
    int asks = gives && !p->settings.host && !p->settings.managed;
    return gm_virtual_locate(p->device, ordinal, asks, call, location);
}

/* ---- Changing -------------------------------------------------------------------------------- */

/* A refusal that took effect (the driver reports earlier failures in this way) is undone. */
static gpumem_status change(struct gm_pool *p, CUmemAccessDesc wanted, int ordinal) {
    const gpumem_driver_api *cu = p->device->cu;
    CUresult result;
    CUmemAccessDesc before = wanted;
    before.flags = access_of(p, wanted.location, &result);
    if (result != CUDA_SUCCESS)
        return cannot_tell(p, result, ordinal);
    result = cu->cuMemPoolSetAccess(p->settings.pool, &wanted, 1);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    gpumem_status status = gm_cu_fail(cu, result, "cuMemPoolSetAccess",
                                      "cannot change the access to the %s of device %d",
                                      p->resource->kind, p->device->ordinal);
    (void)cu->cuMemPoolSetAccess(p->settings.pool, &before, 1);
    return status;
}

static gpumem_status set_access(gpumem_resource *resource, int ordinal, gpumem_access access) {
    static const char call[] = "gpumem_resource_set_access";
    struct gm_pool *p = gm_pool_of(resource);
    if (access == GPUMEM_ACCESS_READ)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: the driver's pools support full access or none, not read-only", call);
    CUmemAccessDesc wanted = {.flags = gm_vmm_access_flags(access)};
    gpumem_status status = locate(p, ordinal, access != GPUMEM_ACCESS_NONE, call, &wanted.location);
    if (status != GPUMEM_OK)
        return status;
    if (ordinal == p->device->ordinal) {
        GM_REQUIRE(access != GPUMEM_ACCESS_NONE, "%s: device %d keeps access to its own resource",
                   call, ordinal);
        return GPUMEM_OK;
    }
    struct gm_current current;
    status = gm_current_enter(&current, p->device);
    if (status == GPUMEM_OK) {
        status = change(p, wanted, ordinal);
        gm_current_leave(&current);
    }
    return status;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static gpumem_status get_access(gpumem_resource *resource, int ordinal, gpumem_access *access) {
    struct gm_pool *p = gm_pool_of(resource);
    struct gm_current current;
    CUmemLocation location;
    CUresult result = CUDA_SUCCESS;
    gpumem_status status = locate(p, ordinal, 0, "gpumem_resource_get_access", &location);
    if (status == GPUMEM_OK)
        status = gm_current_enter(&current, p->device);
    if (status != GPUMEM_OK)
        return status;
    CUmemAccess_flags flags = access_of(p, location, &result);
    if (result != CUDA_SUCCESS)
        status = cannot_tell(p, result, ordinal);
    gm_current_leave(&current);
    if (status == GPUMEM_OK)
        *access = gm_vmm_access_of_flags(flags);
    return status;
}

const struct gm_access_ops gm_pool_access = {set_access, get_access};
