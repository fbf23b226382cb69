/* External memory: import, and mapping as buffers and arrays. */
#include "base/growing_array.h"
#include "softgpu/array/array.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/text.h"
#include "softgpu/external/internal.h"
#include "softgpu/external/memory_fd.h"
#include "softgpu/memory/allocation.h"

#include <stdlib.h>
#include <unistd.h>

struct external {
    uint64_t handle;
    struct sg_context *context;     /* whose end is the import's; referenced */
    struct sg_external_bytes bytes; /* no more than the application asked for */
    /* The mapping that arrays are in, made for the first. It must last as long as any of them:
     * otherwise their addresses would be reused. */
    struct sg_segment arrays;
    bool has_arrays;
    CUmipmappedArray *mipmaps; /* those created here that were live at the last check */
    size_t mipmap_count, mipmap_room;
    struct external *next; /* destroyed, but arrays are still live */
};

static struct external *destroyed;

struct buffer {
    struct sg_range range;
    struct sg_segment segment;
};

#define ALL_DEVICES ((1u << SG_MAX_DEVICES) - 1)

static struct external *external_of(CUexternalMemory handle) {
    return sg_handle_get(SG_KIND_EXTERNAL_MEMORY, SG_HANDLE_VALUE(handle));
}

static void free_external(struct external *external) {
    if (external->has_arrays)
        sg_segment_unmap(&external->arrays);
    sg_phys_unref(external->bytes.phys);
    sg_context_unref(external->context);
    free(external->mipmaps);
    free(external);
}

static bool has_live_arrays(struct external *external) {
    size_t live = 0;
    for (size_t i = 0; i < external->mipmap_count; i++)
        if (sg_mipmap_get(external->mipmaps[i]))
            external->mipmaps[live++] = external->mipmaps[i];
    external->mipmap_count = live;
    return live > 0;
}

/* Frees what was destroyed before its arrays and has none left. */
static void sweep(void) {
    struct external **link = &destroyed;
    while (*link) {
        struct external *external = *link;
        if (has_live_arrays(external)) {
            link = &external->next;
        } else {
            *link = external->next;
            free_external(external);
        }
    }
}

/* ---- Import and end ------------------------------------------------------------------------- */

/* The size is accepted as given, as on H200: a buffer that does not fit is refused when it is
 * mapped. */
static CUresult check_description(const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc) {
    bool dedicated = desc->flags == CUDA_EXTERNAL_MEMORY_DEDICATED;
    if (desc->size == 0 || (desc->flags != 0 && !dedicated))
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD && !dedicated &&
        desc->handle.fd >= 0)
        return CUDA_ERROR_NOT_SUPPORTED; /* even for its own buffers */
    return desc->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_VALUE;
}

/* Takes ownership of the bytes, even on failure. */
static CUresult publish(struct sg_context *context, struct sg_external_bytes bytes,
                        CUexternalMemory *out) {
    struct external *external = calloc(1, sizeof *external);
    uint64_t handle = external ? sg_handle_new(SG_KIND_EXTERNAL_MEMORY, external) : 0;
    if (!handle) {
        free(external);
        sg_phys_unref(bytes.phys);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *external = (struct external){.handle = handle, .context = context, .bytes = bytes};
    sg_context_ref(context);
    *out = SG_HANDLE_POINTER(CUexternalMemory, handle);
    return CUDA_SUCCESS;
}

CUresult sg_cuImportExternalMemory(CUexternalMemory *extMem_out,
                                   const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc) {
    struct sg_context *context;
    struct sg_external_bytes bytes;
    sweep();
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!extMem_out || !memHandleDesc)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_description(memHandleDesc);
    if (result != CUDA_SUCCESS)
        return result;
    int fd = memHandleDesc->handle.fd;
    size_t size = (size_t)memHandleDesc->size;
    result = sg_external_open(fd, context->device, &bytes);
    if (result == CUDA_SUCCESS) {
        bytes.size = size < bytes.size ? size : bytes.size;
        result = publish(context, bytes, extMem_out);
    }
    /* The driver owns it once imported; on H200, also when it turns out not to be memory. */
    if (result == CUDA_SUCCESS || result == SG_EXTERNAL_WRONG_FD)
        close(fd);
    return result;
}

static void end(struct external *external) {
    sg_handle_drop(SG_KIND_EXTERNAL_MEMORY, external->handle);
    external->next = destroyed;
    destroyed = external;
    sweep();
}

/* Buffers remain: they hold references of their own. */
CUresult sg_cuDestroyExternalMemory(CUexternalMemory extMem) {
    struct external *external = external_of(extMem);
    if (!external)
        return extMem ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    end(external);
    return CUDA_SUCCESS;
}

/* ---- Buffers -------------------------------------------------------------------------------- */

static void end_buffer(struct sg_range *range) {
    struct buffer *buffer = range->owner;
    sg_range_remove(range);
    sg_segment_unmap(&buffer->segment);
    sg_context_unref(range->context);
    free(buffer);
}

static CUresult free_buffer(struct sg_range *range) {
    CUresult result = sg_allocation_wait(&range);
    if (result == CUDA_SUCCESS)
        end_buffer(range);
    return result;
}

static bool reachable(const struct sg_context *context, const struct sg_range *range,
                      CUdeviceptr address, size_t size, unsigned rights) {
    (void)address, (void)size, (void)rights;
    return range->context == (context->owner ? context->owner : context);
}

/* The part of the mapping is the pages that it touches, as recorded on H200. */
static void describe(const struct sg_range *range, struct sg_range_facts *facts) {
    size_t end = range->phys_offset + range->size + SG_PAGE - 1;
    facts->mapping_size = end / SG_PAGE * SG_PAGE - range->phys_offset / SG_PAGE * SG_PAGE;
    facts->handle_types = 0;
    facts->sync_memops = false;
}

static const struct sg_range_ops buffer_ops = {
    .name = "buffer of external memory",
    .free = free_buffer,
    .end = end_buffer,
    .reachable = reachable,
    .describe = describe,
    .foreign = true,
};

static CUresult make_buffer(const struct external *external, size_t offset, size_t size,
                            CUdeviceptr *address) {
    struct buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_segment_map(external->bytes.phys, ALL_DEVICES, &buffer->segment);
    if (result != CUDA_SUCCESS) {
        free(buffer);
        return result;
    }
    size_t inner = external->bytes.offset + offset;
    buffer->range = (struct sg_range){.start = buffer->segment.address + inner,
                                      .size = size,
                                      .ops = &buffer_ops,
                                      .device = external->bytes.phys->device,
                                      .context = external->context,
                                      .phys = external->bytes.phys,
                                      .phys_offset = inner,
                                      .owner = buffer};
    sg_range_insert(&buffer->range);
    sg_context_ref(external->context);
    *address = buffer->range.start;
    return CUDA_SUCCESS;
}

static bool inside(const struct external *external, unsigned long long offset,
                   unsigned long long size) {
    return size != 0 && offset <= external->bytes.size && size <= external->bytes.size - offset;
}

/* In the context of the import, whichever is current, as on H200. */
CUresult sg_cuExternalMemoryGetMappedBuffer(CUdeviceptr *devPtr, CUexternalMemory extMem,
                                            const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *bufferDesc) {
    if (!devPtr || !extMem || !bufferDesc)
        return CUDA_ERROR_INVALID_VALUE;
    const struct external *external = external_of(extMem);
    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    if (bufferDesc->flags != 0 || !inside(external, bufferDesc->offset, bufferDesc->size))
        return CUDA_ERROR_INVALID_VALUE;
    return make_buffer(external, (size_t)bufferDesc->offset, (size_t)bufferDesc->size, devPtr);
}

/* ---- Arrays --------------------------------------------------------------------------------- */

/* Makes room to remember one more array. */
static bool remember_room(struct external *external) {
    sweep();
    (void)has_live_arrays(external);
    return GM_RESERVE(external->mipmaps, external->mipmap_room, external->mipmap_count + 1);
}

static CUresult map_for_arrays(struct external *external) {
    if (external->has_arrays)
        return CUDA_SUCCESS;
    CUresult result = sg_segment_map(external->bytes.phys, ALL_DEVICES, &external->arrays);
    external->has_arrays = result == CUDA_SUCCESS;
    return result;
}

CUresult sg_cuExternalMemoryGetMappedMipmappedArray(
    CUmipmappedArray *mipmap, CUexternalMemory extMem,
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc) {
    struct sg_mipmap *made;
    if (!mipmap || !extMem || !mipmapDesc)
        return CUDA_ERROR_INVALID_VALUE;
    struct external *external = external_of(extMem);
    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    const unsigned without_storage = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
    if (!inside(external, mipmapDesc->offset, 1) || mipmapDesc->numLevels == 0 ||
        (mipmapDesc->arrayDesc.Flags & without_storage) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = remember_room(external) ? map_for_arrays(external) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS)
        return result;
    size_t offset = (size_t)mipmapDesc->offset;
    result = sg_mipmap_over(external->context, &mipmapDesc->arrayDesc, mipmapDesc->numLevels,
                            external->arrays.address + external->bytes.offset + offset,
                            external->bytes.size - offset, &made);
    if (result != CUDA_SUCCESS)
        return result;
    *mipmap = SG_HANDLE_POINTER(CUmipmappedArray, made->handle);
    external->mipmaps[external->mipmap_count++] = *mipmap;
    return CUDA_SUCCESS;
}

/* ---- The end of a context, and reports ------------------------------------------------------- */

static void end_with(uint64_t handle, void *object, void *context) {
    (void)handle;
    struct external *external = object;
    if (external->context == context)
        end(external);
}

void sg_external_memory_context_end(struct sg_context *context) {
    sweep();
    sg_handle_each(SG_KIND_EXTERNAL_MEMORY, end_with, context);
}

static void dump(uint64_t handle, void *object, void *text) {
    const struct external *external = object;
    sg_text_handle(text, handle, external->context);
    sg_text_line(text, "external memory of %zu bytes", external->bytes.size);
}

void sg_dump_external_memory(struct sg_text *text) {
    sweep();
    sg_handle_each(SG_KIND_EXTERNAL_MEMORY, dump, text);
}
