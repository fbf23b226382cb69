/* cuTexRef*: how a reference samples. What is checked and what is not is as recorded on an H200. */
#include "softgpu/core/calls.h"
#include "softgpu/texture/texture.h"

#include <string.h>

static CUresult find(CUtexref handle, struct sg_reference **reference) {
    struct sg_context *context;
    if (!handle) /* checked before the context, whatever state that is in */
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    *reference = sg_reference_get(handle);
    return *reference ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* For getters with one output. */
static CUresult find_for(const void *output, CUtexref handle, struct sg_reference **reference) {
    CUresult result = find(handle, reference);
    return result == CUDA_SUCCESS && !output ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult sg_cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (NumPackedComponents == 3 || NumPackedComponents > 4)
        return CUDA_ERROR_INVALID_VALUE;
    reference->format = fmt;
    reference->channels = NumPackedComponents;
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (pFormat)
        *pFormat = reference->format;
    if (pNumChannels)
        *pNumChannels = reference->channels;
    return CUDA_SUCCESS;
}

/* An unknown mode counts as CLAMP. */
CUresult sg_cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (dim < 0 || dim > 2)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = (unsigned)am <= CU_TR_ADDRESS_MODE_BORDER;
    reference->address_mode[dim] = known ? am : CU_TR_ADDRESS_MODE_CLAMP;
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim) {
    struct sg_reference *reference;
    CUresult result = find_for(pam, hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (dim < 0 || dim > 2)
        return CUDA_ERROR_INVALID_VALUE;
    *pam = reference->address_mode[dim];
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        reference->filter = fm;
    return result;
}

CUresult sg_cuTexRefGetFilterMode(CUfilter_mode *pfm, CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find_for(pfm, hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        *pfm = reference->filter;
    return result;
}

CUresult sg_cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if ((unsigned)fm > CU_TR_FILTER_MODE_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
    reference->mipmap_filter = fm;
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefGetMipmapFilterMode(CUfilter_mode *pfm, CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find_for(pfm, hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        *pfm = reference->mipmap_filter;
    return result;
}

CUresult sg_cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        reference->bias = bias;
    return result;
}

CUresult sg_cuTexRefGetMipmapLevelBias(float *pbias, CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find_for(pbias, hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        *pbias = reference->bias;
    return result;
}

CUresult sg_cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp,
                                        float maxMipmapLevelClamp) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    reference->least_level = minMipmapLevelClamp;
    reference->most_level = maxMipmapLevelClamp;
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefGetMipmapLevelClamp(float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp,
                                        CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find_for(pminMipmapLevelClamp, hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pmaxMipmapLevelClamp)
        return CUDA_ERROR_INVALID_VALUE;
    *pminMipmapLevelClamp = reference->least_level;
    *pmaxMipmapLevelClamp = reference->most_level;
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        reference->anisotropy = maxAniso;
    return result;
}

CUresult sg_cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find_for(pmaxAniso, hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        *pmaxAniso = (int)reference->anisotropy;
    return result;
}

CUresult sg_cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor) {
    struct sg_reference *reference;
    CUresult result = find_for(pBorderColor, hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        memcpy(reference->border, pBorderColor, sizeof reference->border);
    return result;
}

CUresult sg_cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find_for(pBorderColor, hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        memcpy(pBorderColor, reference->border, sizeof reference->border);
    return result;
}

CUresult sg_cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (Flags & ~SG_TEXTURE_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    reference->flags = Flags;
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find_for(pFlags, hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        *pFlags = reference->flags;
    return result;
}
