/* Access to a pool of the driver during its life. */
#include "base/cancel.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/pool/pool.h"
#include "memory/virtual/virtual_resource.h"

#include <stdlib.h>

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

/* In one call, which is all or nothing; a refusal that took effect (the driver reports earlier
 * failures in this way) is undone. */
static gpumem_status change(struct gm_pool *p, const CUmemAccessDesc *wanted,
                            CUmemAccessDesc *before, size_t count) {
    const gpumem_driver_api *cu = p->device->cu;
    for (size_t i = 0; i < count; i++) {
        CUresult result;
        before[i] = wanted[i];
        before[i].flags = access_of(p, wanted[i].location, &result);
        if (result != CUDA_SUCCESS)
            return cannot_tell(p, result, wanted[i].location.id);
    }
    CUresult result = cu->cuMemPoolSetAccess(p->settings.pool, wanted, count);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    gpumem_status status = gm_cu_fail(cu, result, "cuMemPoolSetAccess",
                                      "cannot change the access to the %s of device %d",
                                      p->resource->kind, p->device->ordinal);
    (void)cu->cuMemPoolSetAccess(p->settings.pool, before, count);
    return status;
}

static gpumem_status enter_and_change(struct gm_pool *p, const CUmemAccessDesc *wanted,
                                      size_t count) {
    struct gm_current current;
    CUmemAccessDesc *before = calloc(count, sizeof *before);
    if (!before)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record who has access");
    gpumem_status status = gm_current_enter(&current, p->device);
    if (status == GPUMEM_OK) {
        status = change(p, wanted, before, count);
        gm_current_leave(&current);
    }
    free(before);
    return status;
}

gpumem_status gpumem_pool_set_access(gpumem_resource *resource, int ordinal, gpumem_access access) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_pool_set_access";
    struct gm_pool *p;
    gpumem_status status = gm_pool_find(resource, call, &p);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE((unsigned)access <= GPUMEM_ACCESS_NONE, "%s: unknown access %d", call, (int)access);
    if (access == GPUMEM_ACCESS_READ)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: the driver's pools support full access or none, not read-only", call);
    CUmemAccessDesc wanted = {.flags = gm_vmm_access_flags(access)};
    status = locate(p, ordinal, access != GPUMEM_ACCESS_NONE, call, &wanted.location);
    if (status != GPUMEM_OK)
        return status;
    if (ordinal != p->device->ordinal)
        return enter_and_change(p, &wanted, 1);
    GM_REQUIRE(access != GPUMEM_ACCESS_NONE, "%s: device %d keeps access to its own resource", call,
               ordinal);
    return GPUMEM_OK;
}

static int contains(const int *peers, size_t count, int ordinal) {
    for (size_t i = 0; i < count; i++)
        if (peers[i] == ordinal)
            return 1;
    return 0;
}

static gpumem_status list_peers(const struct gm_pool *p, const int *peers, size_t count,
                                const char *call, CUmemAccessDesc *wanted, size_t *filled) {
    *filled = 0;
    for (int ordinal = 0; ordinal < p->device->library->device_count; ordinal++) {
        int gives = contains(peers, count, ordinal);
        CUmemAccessDesc *one = &wanted[*filled];
        if (ordinal == p->device->ordinal)
            continue;
        gpumem_status status = locate(p, ordinal, gives, call, &one->location);
        if (status != GPUMEM_OK)
            return status;
        one->flags = gives ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        (*filled)++;
    }
    return GPUMEM_OK;
}

/* A device without a link has no access to lose, and the driver refuses to set it.
 */
static gpumem_status drop_unchanged(struct gm_pool *p, CUmemAccessDesc *wanted, size_t *count) {
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        CUresult result;
        CUmemAccess_flags now = access_of(p, wanted[i].location, &result);
        if (result != CUDA_SUCCESS)
            return cannot_tell(p, result, wanted[i].location.id);
        if (now != wanted[i].flags)
            wanted[kept++] = wanted[i];
    }
    *count = kept;
    return GPUMEM_OK;
}

static gpumem_status set_peers(struct gm_pool *p, CUmemAccessDesc *wanted, size_t count) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, p->device);
    if (status != GPUMEM_OK)
        return status;
    status = drop_unchanged(p, wanted, &count);
    gm_current_leave(&current);
    return status == GPUMEM_OK && count ? enter_and_change(p, wanted, count) : status;
}

gpumem_status gpumem_pool_set_peers(gpumem_resource *resource, const int *peers, size_t count) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_pool_set_peers";
    struct gm_pool *p;
    gpumem_status status = gm_pool_find(resource, call, &p);
    if (status != GPUMEM_OK)
        return status;
    int devices = p->device->library->device_count;
    GM_REQUIRE(peers || !count, "%s: peers is NULL, and count %zu", call, count);
    for (size_t i = 0; i < count; i++)
        GM_REQUIRE(peers[i] >= 0 && peers[i] < devices, "%s: there is no peer device %d", call,
                   peers[i]);
    CUmemAccessDesc *wanted = calloc((size_t)devices, sizeof *wanted);
    if (!wanted)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record who has access");
    size_t filled;
    status = list_peers(p, peers, count, call, wanted, &filled);
    if (status == GPUMEM_OK)
        status = set_peers(p, wanted, filled);
    free(wanted);
    return status;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The context is current. */
static gpumem_status read_access(const struct gm_pool *p, int ordinal, const char *call,
                                 CUmemAccess_flags *flags) {
    CUmemLocation location;
    CUresult result;
    gpumem_status status = locate(p, ordinal, 0, call, &location);
    if (status != GPUMEM_OK)
        return status;
    *flags = access_of(p, location, &result);
    return result == CUDA_SUCCESS ? GPUMEM_OK : cannot_tell(p, result, ordinal);
}

gpumem_status gpumem_pool_get_access(gpumem_resource *resource, int ordinal,
                                     gpumem_access *access) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_pool_get_access";
    struct gm_pool *p;
    struct gm_current current;
    gpumem_status status = gm_pool_find(resource, call, &p);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(access, "%s: access is NULL", call);
    status = gm_current_enter(&current, p->device);
    if (status != GPUMEM_OK)
        return status;
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    status = read_access(p, ordinal, call, &flags);
    gm_current_leave(&current);
    if (status == GPUMEM_OK)
        *access = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? GPUMEM_ACCESS_READ_WRITE
                  : flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? GPUMEM_ACCESS_READ
                                                              : GPUMEM_ACCESS_NONE;
    return status;
}

static gpumem_status read_peers(const struct gm_pool *p, const char *call, int *found,
                                size_t *count) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, p->device);
    if (status != GPUMEM_OK)
        return status;
    *count = 0;
    for (int i = 0; i < p->device->library->device_count && status == GPUMEM_OK; i++) {
        CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        if (i == p->device->ordinal)
            continue;
        status = read_access(p, i, call, &flags);
        if (status == GPUMEM_OK && flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            found[(*count)++] = i;
    }
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_pool_get_peers(gpumem_resource *resource, int *peers, size_t room,
                                    size_t *count) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_pool_get_peers";
    struct gm_pool *p;
    gpumem_status status = gm_pool_find(resource, call, &p);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(count, "%s: count is NULL", call);
    GM_REQUIRE(peers || !room, "%s: peers is NULL, and room %zu", call, room);
    int *found = calloc((size_t)p->device->library->device_count, sizeof *found);
    if (!found)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to list peers");
    size_t there = 0;
    status = read_peers(p, call, found, &there);
    if (status == GPUMEM_OK) {
        for (size_t i = 0; i < there && i < room; i++)
            peers[i] = found[i];
        *count = there;
    }
    free(found);
    return status;
}
