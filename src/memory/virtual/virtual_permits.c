/* What the library's own copies may do with virtual memory: the driver would refuse the rest in
 * ways that depend on the call and on the driver. */
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/virtual/virtual_resource.h"

static int allows(CUmemAccess_flags flags, int writes) {
    return writes ? flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                  : flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

/* Host memory is copied with the rights of the device or with those of the host: the driver
 * chooses. */
static int may(const struct gm_virtual_resource *v, struct gm_access access, int writes) {
    const CUmemLocation own = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = v->device->handle};
    if (allows(gm_access_of(access, own), writes))
        return 1;
    return v->prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE &&
           allows(gm_access_of(access, v->prop.location), writes);
}

static int may_all(struct gm_virtual_resource *v, const struct gm_extent *extent, size_t offset,
                   size_t bytes, int writes) {
    int all = 1;
    size_t end = 0;
    pthread_rwlock_rdlock(&v->mapped.lock);
    if (!extent->given)
        all = may(v, gm_extent_access(extent, 0), writes);
    for (size_t i = 0; extent->given && all && i < extent->count && end < offset + bytes; i++) {
        end += extent->chunks[i].bytes;
        all = end <= offset || may(v, gm_extent_access(extent, i), writes);
    }
    pthread_rwlock_unlock(&v->mapped.lock);
    return all;
}

gpumem_status gm_virtual_permits(const gpumem_buffer *buffer, size_t offset, size_t bytes,
                                 int writes, const char *call) {
    gpumem_buffer *root = buffer->root ? buffer->root : (gpumem_buffer *)(uintptr_t)buffer;
    const gpumem_buffer *inner = gm_buffer_innermost(root);
    struct gm_virtual_resource *v = inner ? gm_virtual_behind(inner->resource) : NULL;
    if (!v || !bytes)
        return GPUMEM_OK;
    const struct gm_range *range = inner->allocation.cookie;
    offset += (size_t)(buffer->allocation.pointer - inner->allocation.pointer);
    if (may_all(v, &range->extent, offset, bytes, writes))
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_PERMITTED,
                   "%s: device %d may not %s all of the %zu bytes; gpumem_buffer_set_access and "
                   "gpumem_resource_set_access give access",
                   call, v->device->ordinal, writes ? "write" : "read", bytes);
}
