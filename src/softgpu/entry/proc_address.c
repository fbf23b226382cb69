/*
 * cuGetProcAddress: from a base name, a version and the kind of default stream to one exported
 * function. The newest ABI that the asked version knows is the answer.
 */
#include "softgpu/core/calls.h"
#include "softgpu/entry/entry.h"

#include <string.h>

static bool flags_valid(cuuint64_t flags) {
    return flags == CU_GET_PROC_ADDRESS_DEFAULT || flags == CU_GET_PROC_ADDRESS_LEGACY_STREAM ||
           flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
}

/* GPUMEM_FN_COUNT when the name has no ABI as old as `version`. Of a plain row and its twin, which
 * may have one version, the twin follows and is taken where twins are wanted. */
static gpumem_driver_fn newest(gpumem_driver_fn first, int version, bool twins) {
    gpumem_driver_fn best = GPUMEM_FN_COUNT;
    for (unsigned i = first; i < GPUMEM_FN_COUNT; i++) {
        const struct sg_row *row = &sg_rows[i];
        if (strcmp(row->name, sg_rows[first].name) != 0)
            break;
        bool wanted = row->version <= version && (twins || row->kind == GPUMEM_FN_PLAIN);
        if (wanted && (best == GPUMEM_FN_COUNT || row->version >= sg_rows[best].version))
            best = (gpumem_driver_fn)i;
    }
    return best;
}

static CUdriverProcAddressQueryResult look_up(const char *symbol, void **pfn, int version,
                                              cuuint64_t flags) {
    *pfn = NULL;
    gpumem_driver_fn first = sg_name_find(symbol);
    if (first == GPUMEM_FN_COUNT)
        return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    bool twins = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    gpumem_driver_fn fn = newest(first, version, twins);
    if (fn == GPUMEM_FN_COUNT)
        return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    sg_any_fn found = sg_exported(fn);
    memcpy(pfn, &found, sizeof found);
    return CU_GET_PROC_ADDRESS_SUCCESS;
}

/* Since 12.0 a function that is not there is a success with a NULL pointer. */
CUresult sg_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *symbolStatus) {
    if (!symbol || !pfn || !flags_valid(flags))
        return CUDA_ERROR_INVALID_VALUE;
    CUdriverProcAddressQueryResult status = look_up(symbol, pfn, cudaVersion, flags);
    if (symbolStatus)
        *symbolStatus = status;
    return CUDA_SUCCESS;
}

/* Before that it was an error. */
CUresult sg_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
    if (!symbol || !pfn || !flags_valid(flags))
        return CUDA_ERROR_INVALID_VALUE;
    return look_up(symbol, pfn, cudaVersion, flags) == CU_GET_PROC_ADDRESS_SUCCESS
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_FOUND;
}
