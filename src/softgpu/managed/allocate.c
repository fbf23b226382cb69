/* Managed memory and its end. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/entry/entry.h"
#include "softgpu/managed/location.h"
#include "softgpu/managed/managed.h"
#include "softgpu/memory/allocation.h"

#include <stdio.h>
#include <stdlib.h>

/* What range->owner is. */
struct managed {
    struct sg_range range;
    struct sg_segment segment;
    struct sg_pages pages;
    unsigned attached;        /* CU_MEM_ATTACH_*: range.flags until something else was asked for */
    struct sg_stream *stream; /* that has it alone; NULL */
};

static CUresult map_bytes(struct managed *made) {
    CUmemAllocationProp prop = sg_plain_prop(-1);
    size_t size = (made->range.size + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    if (size < made->range.size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sg_phys *phys;
    CUresult result = sg_phys_create(&prop, size, &phys);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_segment_map(phys, (1u << SG_MAX_DEVICES) - 1, &made->segment);
    sg_phys_unref(phys);
    return result;
}

static CUresult make(struct managed *made) {
    CUresult result = map_bytes(made);
    if (result != CUDA_SUCCESS)
        return result;
    made->range.start = made->segment.address;
    made->range.phys = made->segment.phys;
    if (sg_pages_begin(&made->pages, made->range.start, made->range.size))
        return CUDA_SUCCESS;
    sg_segment_unmap(&made->segment);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_managed_allocate(struct sg_context *context, size_t size, unsigned flags,
                             struct sg_range **range) {
    struct managed *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->range = (struct sg_range){.size = size,
                                    .kind = SG_RANGE_MANAGED,
                                    .device = context->device,
                                    .context = context,
                                    .flags = flags,
                                    .owner = made};
    made->attached = flags;
    CUresult result = make(made);
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    sg_range_insert(&made->range);
    sg_context_ref(context);
    *range = &made->range;
    return CUDA_SUCCESS;
}

void sg_managed_free(struct sg_range *range) {
    struct managed *made = range->owner;
    sg_range_remove(range);
    sg_pages_end(&made->pages);
    if (made->stream)
        sg_stream_unref(made->stream);
    sg_segment_unmap(&made->segment);
    sg_context_unref(range->context);
    free(made);
}

struct sg_pages *sg_managed_pages(CUdeviceptr address, size_t size) {
    struct sg_range *range = sg_range_find(address);
    if (!range || range->kind != SG_RANGE_MANAGED)
        return NULL;
    struct managed *made = range->owner;
    return size <= range->size - (size_t)(address - range->start) ? &made->pages : NULL;
}

void sg_managed_attach(struct sg_range *range, unsigned flags, struct sg_stream *stream) {
    struct managed *made = range->owner;
    struct sg_stream *before = made->stream;
    made->attached = flags;
    made->stream = stream;
    if (stream)
        sg_stream_ref(stream);
    if (before)
        sg_stream_unref(before);
}

CUresult sg_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    struct sg_context *context;
    if (dptr)
        *dptr = 0;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_device(context->device)->attributes[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY])
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!dptr || bytesize == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_range *range;
    result = sg_managed_allocate(context, bytesize, flags, &range);
    if (result == CUDA_SUCCESS)
        *dptr = range->start;
    return result;
}

/* ---- In the state dump ----------------------------------------------------------------------- */

static void accessed_text(uint32_t accessed_by, char text[64]) {
    int length = 0;
    for (int device = 0; device < SG_MAX_DEVICES; device++)
        if (accessed_by >> device & 1u)
            length += snprintf(text + length, (size_t)(64 - length), " %d", device);
    if (accessed_by & SG_ACCESSED_BY_CPU)
        snprintf(text + length, (size_t)(64 - length), " cpu");
}

static void dump_run(struct sg_text *text, size_t first, const struct sg_page_run *run) {
    const struct sg_page_facts *facts = &run->facts;
    char preferred[32], prefetched[32], accessed[64] = "";
    accessed_text(facts->accessed_by, accessed);
    bool prefers = facts->preferred.type != CU_MEM_LOCATION_TYPE_INVALID;
    bool moved = facts->prefetched.type != CU_MEM_LOCATION_TYPE_INVALID;
    if (!facts->read_mostly && !facts->accessed_by && !prefers && !moved)
        return;
    sg_text_line(text, "  pages %zu to %zu:%s%s%s%s%s%s%s", first, run->end - 1,
                 facts->read_mostly ? " read mostly;" : "", prefers ? " preferred " : "",
                 sg_location_text(&facts->preferred, preferred),
                 facts->accessed_by ? " accessed by" : "", accessed, moved ? " prefetched to " : "",
                 sg_location_text(&facts->prefetched, prefetched));
}

void sg_managed_dump(struct sg_text *text, const struct sg_range *range) {
    const struct managed *made = range->owner;
    if (made->stream && !made->stream->destroyed)
        sg_text_line(text, "  attached to one stream");
    else if (!made->stream && made->attached != range->flags)
        sg_text_line(text, "  attached with flags %u", made->attached);
    for (size_t i = 0; i < made->pages.run_count; i++)
        dump_run(text, i > 0 ? made->pages.runs[i - 1].end : 0, &made->pages.runs[i]);
}
