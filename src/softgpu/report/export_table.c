/* The tables of functions that NVIDIA's own libraries exchange by private names. */
#include "softgpu/core/calls.h"

/* There are none here: every name is unknown, which an H200 answers like this. */
CUresult sg_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId) {
    if (!ppExportTable || !pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    *ppExportTable = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}
