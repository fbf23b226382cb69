/* What texture and surface objects may be made of. As recorded on an H200: addresses are checked
 * only for alignment, sizes only for the limits of the device. */
#include "softgpu/array/array.h"
#include "softgpu/device/device.h"
#include "softgpu/texture/texture.h"

static uint64_t attribute_of(const struct sg_context *context, CUdevice_attribute attribute) {
    return (uint64_t)sg_device(context->device)->attributes[attribute];
}

/* Bytes of an element of linear memory, or 0 for what textures cannot read there: they read 1, 2 or
 * 4 channels of the eight original formats. */
static unsigned linear_element(CUarray_format format, unsigned channels) {
    if (channels != 1 && channels != 2 && channels != 4)
        return 0;
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4 * channels;
    default:
        return 0;
    }
}

static bool aligned(CUdeviceptr address, const struct sg_context *context) {
    uint64_t alignment = attribute_of(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return address != 0 && address % (alignment ? alignment : 1) == 0;
}

static bool linear_valid(const CUDA_RESOURCE_DESC *resource, const struct sg_context *context) {
    unsigned element =
        linear_element(resource->res.linear.format, resource->res.linear.numChannels);
    return element > 0 && aligned(resource->res.linear.devPtr, context) &&
           resource->res.linear.sizeInBytes / element <= UINT32_MAX;
}

static bool pitch_valid(const CUDA_RESOURCE_DESC *resource, const struct sg_context *context) {
    uint64_t step = attribute_of(context, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
    if (linear_element(resource->res.pitch2D.format, resource->res.pitch2D.numChannels) == 0 ||
        !aligned(resource->res.pitch2D.devPtr, context))
        return false;
    return resource->res.pitch2D.pitchInBytes % (step ? step : 1) == 0 &&
           resource->res.pitch2D.width <=
               attribute_of(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) &&
           resource->res.pitch2D.height <=
               attribute_of(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
}

/* The descriptor of the array or mipmapped array; NULL for an invalid handle. */
static const CUDA_ARRAY3D_DESCRIPTOR *descriptor_of(const CUDA_RESOURCE_DESC *resource) {
    if (resource->resType == CU_RESOURCE_TYPE_ARRAY) {
        const struct sg_array *array = sg_array_get(resource->res.array.hArray);
        return array ? &array->descriptor : NULL;
    }
    const struct sg_mipmap *mipmap = sg_mipmap_get(resource->res.mipmap.hMipmappedArray);
    return mipmap ? &mipmap->descriptor : NULL;
}

static bool resource_valid(const CUDA_RESOURCE_DESC *resource, const struct sg_context *context) {
    if (resource->flags != 0)
        return false;
    switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return descriptor_of(resource) != NULL;
    case CU_RESOURCE_TYPE_LINEAR:
        return linear_valid(resource, context);
    case CU_RESOURCE_TYPE_PITCH2D:
        return pitch_valid(resource, context);
    default:
        return false;
    }
}

static unsigned dimensions_of(const CUDA_RESOURCE_DESC *resource) {
    if (resource->resType == CU_RESOURCE_TYPE_LINEAR)
        return 1;
    if (resource->resType == CU_RESOURCE_TYPE_PITCH2D)
        return 2;
    const CUDA_ARRAY3D_DESCRIPTOR *descriptor = descriptor_of(resource);
    unsigned plain = descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    if (descriptor->Depth > 0 && !plain)
        return 3;
    return descriptor->Height > 0 ? 2 : 1;
}

static bool mode_valid(CUaddress_mode mode) {
    return (unsigned)mode <= CU_TR_ADDRESS_MODE_BORDER;
}

static bool filter_valid(CUfilter_mode mode) {
    return (unsigned)mode <= CU_TR_FILTER_MODE_LINEAR;
}

static unsigned flags_of(const CUDA_RESOURCE_DESC *resource) {
    bool array = resource->resType == CU_RESOURCE_TYPE_ARRAY ||
                 resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    bool cube = array && descriptor_of(resource)->Flags & CUDA_ARRAY3D_CUBEMAP;
    return cube ? SG_TEXTURE_FLAGS | (unsigned)CU_TRSF_SEAMLESS_CUBEMAP : SG_TEXTURE_FLAGS;
}

static bool sampling_valid(struct sg_sampler *sampler) {
    CUDA_TEXTURE_DESC *texture = &sampler->texture;
    unsigned dimensions = dimensions_of(&sampler->resource);
    for (unsigned i = 0; i < 3; i++) {
        if (mode_valid(texture->addressMode[i]))
            continue;
        if (i < dimensions)
            return false;
        texture->addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
    }
    for (size_t i = 0; i < sizeof texture->reserved / sizeof texture->reserved[0]; i++)
        if (texture->reserved[i] != 0)
            return false;
    return filter_valid(texture->filterMode) && filter_valid(texture->mipmapFilterMode) &&
           (texture->flags & ~flags_of(&sampler->resource)) == 0;
}

/* ---- Views ----------------------------------------------------------------------------------- */

/* Bytes of an element that a view reads, or of a compressed block. */
static unsigned view_element(CUresourceViewFormat format) {
    static const unsigned char channels[] = {1, 2, 4};
    if (format >= CU_RES_VIEW_FORMAT_UINT_1X8 && format <= CU_RES_VIEW_FORMAT_SINT_4X8)
        return channels[(format - CU_RES_VIEW_FORMAT_UINT_1X8) % 3];
    if (format >= CU_RES_VIEW_FORMAT_UINT_1X16 && format <= CU_RES_VIEW_FORMAT_SINT_4X16)
        return 2u * channels[(format - CU_RES_VIEW_FORMAT_UINT_1X16) % 3];
    if (format >= CU_RES_VIEW_FORMAT_UINT_1X32 && format <= CU_RES_VIEW_FORMAT_SINT_4X32)
        return 4u * channels[(format - CU_RES_VIEW_FORMAT_UINT_1X32) % 3];
    if (format >= CU_RES_VIEW_FORMAT_FLOAT_1X16 && format <= CU_RES_VIEW_FORMAT_FLOAT_4X16)
        return 2u * channels[format - CU_RES_VIEW_FORMAT_FLOAT_1X16];
    if (format >= CU_RES_VIEW_FORMAT_FLOAT_1X32 && format <= CU_RES_VIEW_FORMAT_FLOAT_4X32)
        return 4u * channels[format - CU_RES_VIEW_FORMAT_FLOAT_1X32];
    return 0;
}

/* Blocks of 8 or 16 bytes, kept in arrays of two or four 32-bit integers each. */
static unsigned view_block(CUresourceViewFormat format) {
    if (format < CU_RES_VIEW_FORMAT_UNSIGNED_BC1 || format > CU_RES_VIEW_FORMAT_UNSIGNED_BC7)
        return 0;
    bool small = format == CU_RES_VIEW_FORMAT_UNSIGNED_BC1 ||
                 format == CU_RES_VIEW_FORMAT_UNSIGNED_BC4 ||
                 format == CU_RES_VIEW_FORMAT_SIGNED_BC4;
    return small ? 8 : 16;
}

static bool view_format_valid(const CUDA_RESOURCE_VIEW_DESC *view,
                              const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned *scale) {
    unsigned element = sg_array_element(array->Format, array->NumChannels);
    unsigned block = view_block(view->format);
    *scale = block > 0 ? 4 : 1;
    if (block > 0)
        return array->Format == CU_AD_FORMAT_UNSIGNED_INT32 && element == block;
    return element > 0 && element == view_element(view->format);
}

/* The view of an array has the array's own size; its levels and layers are a subset. */
static bool view_valid(const struct sg_sampler *sampler) {
    const CUDA_RESOURCE_VIEW_DESC *view = &sampler->view;
    const CUDA_ARRAY3D_DESCRIPTOR *array = descriptor_of(&sampler->resource);
    unsigned scale;
    if (!view_format_valid(view, array, &scale))
        return false;
    if (view->width != array->Width * scale || view->height != array->Height * scale ||
        view->depth != array->Depth)
        return false;
    if (sampler->resource.resType == CU_RESOURCE_TYPE_ARRAY &&
        (view->firstMipmapLevel > 0 || view->lastMipmapLevel > 0))
        return false;
    if (!(array->Flags & CUDA_ARRAY3D_LAYERED) && (view->firstLayer > 0 || view->lastLayer > 0))
        return false;
    return view->firstMipmapLevel <= view->lastMipmapLevel && view->firstLayer <= view->lastLayer;
}

CUresult sg_texture_check(struct sg_sampler *sampler, const struct sg_context *context) {
    if (!resource_valid(&sampler->resource, context) || !sampling_valid(sampler))
        return CUDA_ERROR_INVALID_VALUE;
    /* For linear memory a view is stored but not checked. */
    bool array = sampler->resource.resType == CU_RESOURCE_TYPE_ARRAY ||
                 sampler->resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    if (sampler->has_view && array && !view_valid(sampler))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Does not check whether the array was made for surfaces. */
CUresult sg_surface_check(const CUDA_RESOURCE_DESC *resource) {
    bool valid = resource->resType == CU_RESOURCE_TYPE_ARRAY && resource->flags == 0 &&
                 sg_array_get(resource->res.array.hArray);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
