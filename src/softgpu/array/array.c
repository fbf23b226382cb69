/* Arrays: creation, description, destruction. */
#include "softgpu/array/array.h"

#include "softgpu/array/internal.h"
#include "softgpu/context/address_32.h"
#include "softgpu/core/calls.h"
#include "softgpu/stream/stream.h"

#include <stdlib.h>

CUresult sg_array_find(CUarray handle, struct sg_array **array) {
    *array = sg_handle_get(SG_KIND_ARRAY, SG_HANDLE_VALUE(handle));
    if (!*array)
        return CUDA_ERROR_INVALID_HANDLE;
    return (*array)->gone ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

struct sg_array *sg_array_get(CUarray handle) {
    struct sg_array *array;
    return sg_array_find(handle, &array) == CUDA_SUCCESS ? array : NULL;
}

/* ---- Making and ending ----------------------------------------------------------------------- */

static CUarray_format plane_format(const struct sg_format *format) {
    return format->bytes == 1 ? CU_AD_FORMAT_UNSIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT16;
}

static CUresult init_planes(struct sg_array *array, const struct sg_format *format) {
    array->planes = calloc(format->plane_count, sizeof *array->planes);
    if (!array->planes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < format->plane_count; i++) {
        const struct sg_plane_form *form = &format->planes[i];
        CUDA_ARRAY3D_DESCRIPTOR d = array->descriptor;
        d.Width >>= form->width_shift;
        d.Height >>= form->height_shift;
        d.NumChannels = form->channels;
        d.Format = plane_format(format);
        CUresult result = sg_array_init(&array->planes[i], array->context, &d);
        if (result != CUDA_SUCCESS)
            return result;
        array->planes[i].whole = array;
        array->plane_count++;
    }
    return CUDA_SUCCESS;
}

CUresult sg_array_init(struct sg_array *array, struct sg_context *context,
                       const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    *array = (struct sg_array){.context = context, .descriptor = *descriptor};
    if (!sg_array_shape(array))
        return CUDA_ERROR_INVALID_VALUE;
    sg_context_ref(context);
    const struct sg_format *format = sg_format_find(descriptor->Format);
    CUresult result = format->plane_count ? init_planes(array, format) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        sg_array_end(array);
    return result;
}

void sg_array_place(struct sg_array *array, CUdeviceptr address) {
    array->address = address;
    for (unsigned i = 0; i < array->plane_count; i++) {
        sg_array_place(&array->planes[i], address);
        address += sg_array_bytes(&array->planes[i]);
    }
}

void sg_array_end(struct sg_array *array) {
    for (unsigned i = 0; i < array->plane_count; i++)
        sg_array_end(&array->planes[i]);
    free(array->planes);
    if (array->handle)
        sg_handle_drop(SG_KIND_ARRAY, array->handle);
    sg_context_unref(array->context);
    *array = (struct sg_array){0};
}

uint64_t sg_array_handle(struct sg_array *array) {
    if (!array->handle)
        array->handle = sg_handle_new(SG_KIND_ARRAY, array);
    return array->handle;
}

/* For arrays that are not levels or planes. Leaves the object empty. */
static void empty_whole(struct sg_array *array) {
    struct sg_tiles *tiles = array->view ? array->view->tiles : NULL;
    sg_storage_free(array->storage, array->context);
    sg_array_end(array);
    sg_tiles_unref(tiles);
}

static void end_whole(struct sg_array *array) {
    empty_whole(array);
    free(array);
}

static CUresult give_memory(struct sg_array *array) {
    struct sg_tiles *tiles;
    if (sg_is_tiled(&array->descriptor))
        return sg_tiles_for(&array->descriptor, array, 1, &tiles);
    CUresult result =
        sg_storage_new(array->context->device, sg_array_bytes(array), &array->storage);
    if (result == CUDA_SUCCESS)
        sg_array_place(array, sg_storage_address(array->storage));
    return result;
}

CUresult sg_array_create(struct sg_context *context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                         CUarray *handle) {
    if (!handle || !descriptor)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR taken = sg_descriptor_taken(descriptor);
    descriptor = &taken;
    CUresult result = sg_array_check(descriptor, 0);
    if (result != CUDA_SUCCESS)
        return result;
    struct sg_array *array = malloc(sizeof *array);
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = sg_array_init(array, context, descriptor);
    if (result != CUDA_SUCCESS) {
        free(array);
        return result;
    }
    result = give_memory(array);
    if (result == CUDA_SUCCESS && !sg_array_handle(array))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        *handle = SG_HANDLE_POINTER(CUarray, array->handle);
    else
        end_whole(array);
    return result;
}

/* The handle remains, so that calls can report the ended context. */
static void end_if_of(uint64_t handle, void *object, void *context) {
    struct sg_array *array = object;
    if (array->gone || array->context != context || array->mipmap || array->whole)
        return;
    array->handle = 0;
    empty_whole(array);
    array->handle = handle;
    array->gone = true;
}

static void end_mipmap_if_of(uint64_t handle, void *object, void *context) {
    struct sg_mipmap *mipmap = object;
    if (mipmap->gone || mipmap->context != context)
        return;
    mipmap->handle = 0;
    sg_mipmap_empty(mipmap);
    mipmap->handle = handle;
    mipmap->gone = true;
}

void sg_arrays_context_end(struct sg_context *context) {
    sg_handle_each(SG_KIND_MIPMAP, end_mipmap_if_of, context);
    sg_handle_each(SG_KIND_ARRAY, end_if_of, context);
}

/* For today's functions, which contexts of the first version refuse. */
static CUresult create(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray *handle) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result == CUDA_SUCCESS && sg_context_has_32_bit_addresses(context))
        result = CUDA_ERROR_INVALID_CONTEXT;
    return result == CUDA_SUCCESS ? sg_array_create(context, descriptor, handle) : result;
}

/* ---- Rows of functions.def ------------------------------------------------------------------- */

CUresult sg_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray) {
    return create(pAllocateArray, pHandle);
}

CUresult sg_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray) {
    if (!pAllocateArray)
        return create(NULL, pHandle);
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = pAllocateArray->Width,
                                                .Height = pAllocateArray->Height,
                                                .Format = pAllocateArray->Format,
                                                .NumChannels = pAllocateArray->NumChannels};
    return create(&descriptor, pHandle);
}

/* Waits for the work of its context, as freeing memory does. */
CUresult sg_cuArrayDestroy(CUarray hArray) {
    struct sg_array *array;
    CUresult result = sg_array_find(hArray, &array);
    if (result != CUDA_SUCCESS)
        return result;
    if (array->mipmap || array->whole) {
        /* Only the handle ends; the level may be requested again. As on H200. */
        sg_handle_drop(SG_KIND_ARRAY, array->handle);
        array->handle = 0;
        return CUDA_SUCCESS;
    }
    struct sg_context *context = array->context;
    result = sg_context_wait_to_free(context);
    if (result == CUDA_SUCCESS)
        result = sg_array_find(hArray, &array);
    if (result == CUDA_SUCCESS)
        end_whole(array);
    return result;
}

CUresult sg_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray) {
    struct sg_array *array;
    CUresult result = sg_array_find(hArray, &array);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    *pArrayDescriptor = array->descriptor;
    return CUDA_SUCCESS;
}

CUresult sg_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray) {
    struct sg_array *array;
    CUresult result = sg_array_find(hArray, &array);
    if (result != CUDA_SUCCESS)
        return result;
    if (sg_context_has_32_bit_addresses(array->context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){
        .Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};
    return CUDA_SUCCESS;
}

CUresult sg_cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx) {
    struct sg_array *array;
    CUresult result = sg_array_find(hArray, &array);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pPlaneArray || planeIdx >= array->plane_count)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t handle = sg_array_handle(&array->planes[planeIdx]);
    if (!handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pPlaneArray = SG_HANDLE_POINTER(CUarray, handle);
    return CUDA_SUCCESS;
}
