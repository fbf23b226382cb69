/* Why a pool gives no memory. */
#include "memory/core/capture.h"
#include "memory/core/driver_error.h"
#include "memory/pool/pool.h"

uint64_t gm_pool_number(const struct gm_pool *p, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    CUresult result = p->device->cu->cuMemPoolGetAttribute(p->settings.pool, which, &value);
    return result == CUDA_SUCCESS ? value : 0;
}

/* No context is needed. */
static uint64_t reserved_by(const struct gm_pool *p) {
    struct gm_relaxed relaxed;
    gm_relax(&relaxed, p->device->cu);
    uint64_t reserved = gm_pool_number(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    gm_unrelax(&relaxed, p->device->cu);
    return reserved;
}

/* ---- The maximum ----------------------------------------------------------------------------- */

/* The driver rounds a pool's maximum up (an H200: to 32 MiB), so it is kept here, for the bytes of
 * buffers. */
gpumem_status gm_pool_is_full(const struct gm_pool *p, size_t bytes) {
    return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY,
                   "%zu more bytes would bring the %s above its maximum of %llu: %llu are in use, "
                   "%llu reserved; free buffers of it, or raise maximum_bytes",
                   bytes, p->resource->kind, (unsigned long long)p->settings.maximum,
                   (unsigned long long)atomic_load(&p->bound.held),
                   (unsigned long long)reserved_by(p));
}

/* The driver answers OUT_OF_MEMORY for both: whether it was not allowed to take more from the
 * device, rather than not able to. The device's context is current. */
static int is_at_maximum(const struct gm_pool *p, CUresult result, size_t bytes,
                         uint64_t *reserved) {
    uint64_t maximum = p->settings.maximum;
    size_t free_bytes = 0, total = 0;
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !maximum)
        return 0;
    *reserved = gm_pool_number(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    if (*reserved <= maximum && bytes <= maximum - *reserved)
        return 0;
    return p->settings.host || *reserved >= maximum ||
           p->device->cu->cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS ||
           free_bytes >= bytes;
}

/* ---- What the driver refuses ----------------------------------------------------------------- */

/* There are no graph nodes for host memory. */
static int is_captured(const struct gm_pool *p, CUresult result, CUstream stream) {
    return p->settings.host &&
           (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_VALUE) &&
           gm_capture_state(p->device->cu, stream, NULL) == GM_CAPTURE_UNDER_WAY;
}

gpumem_status gm_pool_refuse(const struct gm_pool *p, CUresult result, const char *call,
                             size_t bytes, CUstream stream) {
    const gpumem_driver_api *cu = p->device->cu;
    uint64_t reserved = 0;
    if (is_captured(p, result, stream))
        return gm_cu_fail_as(GPUMEM_ERROR_NOT_SUPPORTED, cu, result, call,
                             "the stream is capturing, and the driver makes no graph nodes for "
                             "host memory; allocate the %zu bytes before the capture",
                             bytes);
    if (is_at_maximum(p, result, bytes, &reserved)) {
        uint64_t held = atomic_load(&p->bound.held); /* with these bytes */
        return gm_cu_fail_as(GPUMEM_ERROR_OUT_OF_CAPACITY, cu, result, call,
                             "no piece of %zu bytes is left in the %s under its maximum of %llu: "
                             "%llu are in use, %llu reserved; free buffers of it, or raise "
                             "maximum_bytes",
                             bytes, p->resource->kind, (unsigned long long)p->settings.maximum,
                             (unsigned long long)(held > bytes ? held - bytes : 0),
                             (unsigned long long)reserved);
    }
    if (p->settings.host)
        return gm_cu_fail_host(cu, result, call, "cannot get %zu bytes of pinned host memory",
                               bytes);
    return gm_cu_fail(cu, result, call, "cannot get %zu bytes from the %s of device %d", bytes,
                      p->resource->kind, p->device->ordinal);
}

/* It may have taken effect: the driver reports earlier failures in this way. */
void gm_pool_undo(struct gm_pool *p, CUdeviceptr made, size_t bytes, CUstream stream) {
    if (made && p->device->cu->cuMemFreeAsync(made, stream) != CUDA_SUCCESS)
        gm_meter_quarantine_memory(&p->resource->meter, bytes);
}
