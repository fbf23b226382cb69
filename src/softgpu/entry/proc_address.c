/*
 * cuGetProcAddress: from a base name, a version and the kind of default stream to one exported
 * function. Returns the newest ABI that the requested version knows.
 */
#include "softgpu/core/calls.h"
#include "softgpu/core/rows.h"
#include "softgpu/device/device.h"
#include "softgpu/entry/entry.h"
#include "softgpu/entry/life.h"

#include <string.h>

/* Both kinds of stream at once are accepted, and mean the per-thread one (H200, driver 580). */
static bool valid(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    const cuuint64_t known =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    return symbol && pfn && version <= sg_driver_version() && !(flags & ~known);
}

static bool has_twin(gpumem_driver_fn first) {
    for (unsigned i = first; i < GPUMEM_FN_COUNT; i++) {
        if (strcmp(sg_rows[i].name, sg_rows[first].name) != 0)
            break;
        if (sg_rows[i].kind != GPUMEM_FN_PLAIN)
            return true;
    }
    return false;
}

/* GPUMEM_FN_COUNT when the name has no ABI as old as `version`. A negative version counts as large.
 */
static gpumem_driver_fn newest(gpumem_driver_fn first, int version, bool twins) {
    gpumem_driver_fn best = GPUMEM_FN_COUNT;
    for (unsigned i = first; i < GPUMEM_FN_COUNT; i++) {
        const struct sg_row *row = &sg_rows[i];
        if (strcmp(row->name, sg_rows[first].name) != 0)
            break;
        bool wanted =
            (unsigned)row->version <= (unsigned)version && twins == (row->kind != GPUMEM_FN_PLAIN);
        if (wanted && (best == GPUMEM_FN_COUNT || row->version >= sg_rows[best].version))
            best = (gpumem_driver_fn)i;
    }
    return best;
}

static CUdriverProcAddressQueryResult look_up(const char *symbol, void **pfn, int version,
                                              cuuint64_t flags) {
    gpumem_driver_fn first = sg_name_find(symbol);
    /* The only documented function that NVIDIA's driver lacks. */
    if (first == GPUMEM_FN_COUNT || first == GPUMEM_FN_cuEventCreateFromEGLSync)
        return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    /* If there are twins, they alone count, even for a version that is older than all of them. */
    bool twins = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && has_twin(first);
    gpumem_driver_fn fn = newest(first, version, twins);
    if (fn == GPUMEM_FN_COUNT)
        return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    sg_any_fn found = sg_exported(fn);
    memcpy(pfn, &found, sizeof found);
    return CU_GET_PROC_ADDRESS_SUCCESS;
}

/* Since 12.0 a missing function is a success with a NULL pointer. */
CUresult sg_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *symbolStatus) {
    if (!valid(symbol, pfn, cudaVersion, flags))
        return CUDA_ERROR_INVALID_VALUE;
    *pfn = NULL;
    CUdriverProcAddressQueryResult status = look_up(symbol, pfn, cudaVersion, flags);
    if (symbolStatus)
        *symbolStatus = status;
    return CUDA_SUCCESS;
}

/* Before that it was an error, and the pointer was left unchanged. */
CUresult sg_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    if (!valid(symbol, pfn, cudaVersion, flags))
        return CUDA_ERROR_INVALID_VALUE;
    return look_up(symbol, pfn, cudaVersion, flags) == CU_GET_PROC_ADDRESS_SUCCESS
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_FOUND;
}
