/* cuTexRef* and cuSurfRef*: creating references, and binding them. */
#include "softgpu/array/array.h"
#include "softgpu/context/address_32.h"
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/texture/texture.h"

/* The reference, after the check for a current context. */
static CUresult find(CUtexref handle, struct sg_reference **reference) {
    struct sg_context *context;
    if (!handle)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    *reference = sg_reference_get(handle);
    return *reference ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* For the functions of CUDA 2 to 3.1, which work in a context of that time. What they bind is not
 * checked, so its 32-bit address is stored unchanged. */
static CUresult find_old(CUtexref handle, struct sg_reference **reference) {
    CUresult result = find(handle, reference);
    bool refused =
        result == CUDA_SUCCESS && !sg_context_has_32_bit_addresses((*reference)->context);
    return refused ? CUDA_ERROR_INVALID_CONTEXT : result;
}

CUresult sg_cuTexRefCreate(CUtexref *pTexRef) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pTexRef)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_reference *reference = sg_reference_new(context, false);
    if (!reference)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pTexRef = SG_HANDLE_POINTER(CUtexref, reference->handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefDestroy(CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    /* A module's reference remains the module's; an H200 returns success too. */
    if (!reference->module)
        sg_reference_free(reference);
    return CUDA_SUCCESS;
}

/* ---- Linear memory --------------------------------------------------------------------------- */

static uint64_t attribute_of(const struct sg_reference *reference, CUdevice_attribute attribute) {
    uint64_t value = (uint64_t)sg_device(reference->context->device)->attributes[attribute];
    return value ? value : 1;
}

/* No texture of an H200 was seen to hold more elements than this. */
static bool too_large(const struct sg_reference *reference, size_t bytes) {
    unsigned element = sg_array_element(reference->format, (unsigned)reference->channels);
    return bytes / (element ? element : 1) > UINT32_MAX;
}

/* Fetches begin at an aligned address; the offset of the memory from it is an output, which may be
 * missing only if it is 0. */
static CUresult set_address(struct sg_reference *reference, CUdeviceptr address, size_t bytes,
                            bool has_output, size_t *offset) {
    *offset = address % attribute_of(reference, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    if ((*offset != 0 && !has_output) || too_large(reference, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    reference->bound = SG_BOUND_ADDRESS;
    reference->address = address - *offset;
    reference->bytes = bytes + *offset;
    reference->pitch = 0;
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefSetAddress_v2(size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr,
                                  size_t bytes) {
    struct sg_reference *reference;
    size_t offset;
    if (ByteOffset)
        *ByteOffset = 0;
    CUresult result = find(hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        result = set_address(reference, dptr, bytes, ByteOffset != NULL, &offset);
    if (result == CUDA_SUCCESS && ByteOffset)
        *ByteOffset = offset;
    return result;
}

CUresult sg_cuTexRefSetAddress(unsigned int *ByteOffset, CUtexref hTexRef, CUdeviceptr_v1 dptr,
                               unsigned int bytes) {
    struct sg_reference *reference;
    size_t offset;
    if (ByteOffset)
        *ByteOffset = 0;
    CUresult result = find_old(hTexRef, &reference);
    if (result == CUDA_SUCCESS)
        result = set_address(reference, dptr, bytes, ByteOffset != NULL, &offset);
    if (result == CUDA_SUCCESS && ByteOffset)
        *ByteOffset = (unsigned)offset;
    return result;
}

/* Without an output there is nothing to return, which an H200 does not treat as an error. */
CUresult sg_cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef) {
    struct sg_reference *reference;
    if (pdptr)
        *pdptr = 0;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (reference->bound != SG_BOUND_ADDRESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (pdptr)
        *pdptr = reference->address;
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefGetAddress(CUdeviceptr_v1 *pdptr, CUtexref hTexRef) {
    struct sg_reference *reference;
    if (pdptr)
        *pdptr = 0;
    CUresult result = find_old(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (reference->bound != SG_BOUND_ADDRESS || reference->address > UINT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (pdptr)
        *pdptr = (CUdeviceptr_v1)reference->address;
    return CUDA_SUCCESS;
}

static CUresult set_address_2d(struct sg_reference *reference, const CUDA_ARRAY_DESCRIPTOR *desc,
                               CUdeviceptr address, size_t pitch) {
    if (pitch == 0 || address % attribute_of(reference, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    reference->bound = SG_BOUND_ADDRESS;
    reference->address = address;
    reference->width = desc->Width;
    reference->height = desc->Height;
    reference->pitch = pitch;
    reference->format = desc->Format;
    reference->channels = (int)desc->NumChannels;
    return CUDA_SUCCESS;
}

/* `strict`: rows must begin where the device can fetch them. */
static CUresult set_wide_address_2d(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR *desc,
                                    CUdeviceptr address, size_t pitch, bool strict) {
    struct sg_reference *reference;
    CUresult result = find(handle, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t step =
        strict ? attribute_of(reference, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) : 1;
    if (pitch < desc->Width * sg_array_element(desc->Format, desc->NumChannels) ||
        pitch % step != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return set_address_2d(reference, desc, address, pitch);
}

CUresult sg_cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc,
                                    CUdeviceptr dptr, size_t Pitch) {
    return set_wide_address_2d(hTexRef, desc, dptr, Pitch, true);
}

CUresult sg_cuTexRefSetAddress2D_v2(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc,
                                    CUdeviceptr dptr, size_t Pitch) {
    return set_wide_address_2d(hTexRef, desc, dptr, Pitch, false);
}

/* A pitch of half a row of 16 floats is accepted, as recorded (first/old-texture-reference of
 * tests/parity), so the comparison is not in bytes; H200 also refused rows of 64 floats, most
 * likely because of a pitch below the number of elements. */
CUresult sg_cuTexRefSetAddress2D(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR_v1 *desc,
                                 CUdeviceptr_v1 dptr, unsigned int Pitch) {
    struct sg_reference *reference;
    CUresult result = find_old(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    if (Pitch < desc->Width)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY_DESCRIPTOR wide = {desc->Width, desc->Height, desc->Format, desc->NumChannels};
    return set_address_2d(reference, &wide, dptr, Pitch);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* The format becomes the array's own, with or without the flag that requests it. */
static void take_format(struct sg_reference *reference, const CUDA_ARRAY3D_DESCRIPTOR *array) {
    reference->format = array->Format;
    reference->channels = (int)array->NumChannels;
}

CUresult sg_cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_array *array = sg_array_get(hArray);
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (Flags & ~(unsigned)CU_TRSA_OVERRIDE_FORMAT)
        return CUDA_ERROR_INVALID_VALUE;
    reference->bound = SG_BOUND_ARRAY;
    reference->array = hArray;
    take_format(reference, &array->descriptor);
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (!phArray || reference->bound != SG_BOUND_ARRAY || !sg_array_get(reference->array))
        return CUDA_ERROR_INVALID_VALUE;
    *phArray = reference->array;
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray,
                                      unsigned int Flags) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_mipmap *mipmap = sg_mipmap_get(hMipmappedArray);
    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    if (Flags & ~(unsigned)CU_TRSA_OVERRIDE_FORMAT)
        return CUDA_ERROR_INVALID_VALUE;
    reference->bound = SG_BOUND_MIPMAP;
    reference->mipmap = hMipmappedArray;
    take_format(reference, &mipmap->descriptor);
    return CUDA_SUCCESS;
}

CUresult sg_cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef) {
    struct sg_reference *reference;
    CUresult result = find(hTexRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (!phMipmappedArray || reference->bound != SG_BOUND_MIPMAP ||
        !sg_mipmap_get(reference->mipmap))
        return CUDA_ERROR_INVALID_VALUE;
    *phMipmappedArray = reference->mipmap;
    return CUDA_SUCCESS;
}

/* ---- Surfaces -------------------------------------------------------------------------------- */

static CUresult find_surface(CUsurfref handle, struct sg_reference **reference) {
    struct sg_context *context;
    if (!handle)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    *reference = sg_handle_get(SG_KIND_SURFACE_REFERENCE, SG_HANDLE_VALUE(handle));
    return *reference ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sg_cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags) {
    struct sg_reference *reference;
    CUresult result = find_surface(hSurfRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    const struct sg_array *array = sg_array_get(hArray);
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (Flags != 0 || !(array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
        return CUDA_ERROR_INVALID_VALUE;
    reference->bound = SG_BOUND_ARRAY;
    reference->array = hArray;
    return CUDA_SUCCESS;
}

CUresult sg_cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef) {
    struct sg_reference *reference;
    CUresult result = find_surface(hSurfRef, &reference);
    if (result != CUDA_SUCCESS)
        return result;
    if (!phArray || reference->bound != SG_BOUND_ARRAY || !sg_array_get(reference->array))
        return CUDA_ERROR_INVALID_VALUE;
    *phArray = reference->array;
    return CUDA_SUCCESS;
}
