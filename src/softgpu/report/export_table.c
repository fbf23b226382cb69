/* The tables of functions that NVIDIA's own libraries exchange under private names. */
#include "softgpu/core/calls.h"

/* There are none here: every name is unknown, for which an H200 returns this. */
CUresult sg_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    if (!ppExportTable || !pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    *ppExportTable = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
