/* Managed memory and its end. */
#include "softgpu/address/backing.h"
#include "softgpu/core/calls.h"
#include "softgpu/core/text.h"
#include "softgpu/device/device.h"
#include "softgpu/device/numa.h"
#include "softgpu/managed/managed.h"
#include "softgpu/memory/allocation.h"

#include <stdio.h>
#include <stdlib.h>

/* Small allocations share pages, and with them the pages' facts. */
struct shared_pages {
    unsigned refs;
    struct sg_pages pages;
};

/* What range->owner is. */
struct managed {
    struct sg_range range;
    struct sg_backing backing;
    struct shared_pages *told;
    unsigned attached;        /* CU_MEM_ATTACH_*: range.flags until changed */
    struct sg_stream *stream; /* that alone may use it, or NULL */
};

static struct managed *managed_of(const struct sg_range *range) {
    return range->owner;
}

/* Facts already recorded for another allocation of the same chunk. */
static struct shared_pages *pages_of_neighbour(const struct sg_segment *segment) {
    const struct sg_range *other = sg_range_from(segment->address);
    bool inside = other && other->start < segment->address + segment->size;
    return inside ? managed_of(other)->told : NULL;
}

/* Includes a reservation for the edit made when it ends. */
static bool begin_pages(struct managed *made) {
    const struct sg_segment *segment = sg_backing_segment(&made->backing);
    made->told = pages_of_neighbour(segment);
    if (made->told) {
        bool promised = sg_pages_promise(&made->told->pages);
        made->told->refs += promised;
        return promised;
    }
    made->told = calloc(1, sizeof *made->told);
    if (!made->told)
        return false;
    made->told->refs = 1;
    if (sg_pages_begin(&made->told->pages, segment->address, segment->size)) {
        if (sg_pages_promise(&made->told->pages))
            return true;
        sg_pages_end(&made->told->pages);
    }
    free(made->told);
    return false;
}

static void forget(struct sg_page_facts *facts, const void *user) {
    (void)user;
    *facts = (struct sg_page_facts){0};
}

/* On H200 the facts of a page end with any allocation that has a part of it. */
static void end_pages(struct managed *made) {
    const struct sg_range *range = &made->range;
    sg_pages_edit(&made->told->pages, range->start, range->size, forget, NULL);
    if (--made->told->refs > 0)
        return;
    sg_pages_end(&made->told->pages);
    free(made->told);
}

static void end(struct sg_range *range) {
    struct managed *made = managed_of(range);
    sg_range_remove(range);
    end_pages(made);
    if (made->stream)
        sg_stream_unref(made->stream);
    sg_backing_give(&made->backing, range);
    if (range->context)
        sg_context_unref(range->context);
    free(made);
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

static void dump_facts(struct sg_text *text, const struct sg_page_facts *facts) {
    char preferred[32], prefetched[32], accessed[64] = "";
    accessed_text(facts->accessed_by, accessed);
    bool prefers = facts->preferred.type != CU_MEM_LOCATION_TYPE_INVALID;
    bool moved = facts->prefetched.type != CU_MEM_LOCATION_TYPE_INVALID;
    if (!facts->read_mostly && !facts->accessed_by && !prefers && !moved)
        return;
    sg_text_line(text, "  pages:%s%s%s%s%s%s%s", facts->read_mostly ? " read mostly" : "",
                 prefers ? " preferred " : "", sg_location_text(&facts->preferred, preferred),
                 facts->accessed_by ? " accessed by" : "", accessed, moved ? " prefetched to " : "",
                 sg_location_text(&facts->prefetched, prefetched));
}

static void dump_run(const struct sg_page_facts *facts, void *user) {
    dump_facts(user, facts);
}

static void dump(struct sg_text *text, const struct sg_range *range) {
    const struct managed *made = managed_of(range);
    if (made->stream && !made->stream->destroyed)
        sg_text_line(text, "  attached to one stream");
    else if (!made->stream && made->attached != range->flags)
        sg_text_line(text, "  attached with flags %u", made->attached);
    sg_pages_look(&made->told->pages, range->start, range->size, dump_run, text);
}

/* ---- The range ------------------------------------------------------------------------------- */

static CUresult free_now(struct sg_range *range) {
    CUresult result = sg_allocation_wait(&range);
    if (result == CUDA_SUCCESS)
        end(range);
    return result;
}

static struct sg_pages *pages_of(const struct sg_range *range) {
    return &managed_of(range)->told->pages;
}

static void describe(const struct sg_range *range, struct sg_range_facts *facts) {
    (void)range;
    facts->managed = facts->host_pointer = true;
    facts->host_flags = CU_MEMHOSTALLOC_DEVICEMAP;
}

const struct sg_range_ops sg_managed_ops = {
    .name = "managed allocation",
    .dump = dump,
    .free = free_now,
    .end = end,
    .describe = describe,
    .pages = pages_of,
    .memops = SG_MEMOPS_REFUSED, /* as recorded on H200 */
};

/* ---- Allocating ------------------------------------------------------------------------------ */

CUresult sg_managed_allocate(struct sg_context *context, size_t size, unsigned flags, bool variable,
                             struct sg_range **range) {
    struct managed *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->attached = flags;
    made->range = (struct sg_range){.size = size,
                                    .ops = &sg_managed_ops,
                                    .device = context ? context->device : 0,
                                    .context = context,
                                    .flags = flags,
                                    .variable = variable,
                                    .owner = made};
    CUresult result = size <= SG_SMALL_LIMIT
                          ? sg_backing_take_slot(&made->backing, &made->range, SG_SMALL_MANAGED)
                          : sg_backing_take_pages(&made->backing, &made->range, -1);
    if (result == CUDA_SUCCESS && !begin_pages(made)) {
        sg_backing_give(&made->backing, &made->range);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    sg_range_insert(&made->range);
    if (context)
        sg_context_ref(context);
    *range = &made->range;
    return CUDA_SUCCESS;
}

struct sg_pages *sg_managed_pages(CUdeviceptr address, size_t size) {
    struct sg_range *range = sg_range_find(address);
    if (!range || size == 0 || size > range->size - (size_t)(address - range->start))
        return NULL;
    return range->ops->pages ? range->ops->pages(range) : NULL;
}

void sg_managed_attach(struct sg_range *range, unsigned flags, struct sg_stream *stream) {
    struct managed *made = managed_of(range);
    struct sg_stream *before = made->stream;
    made->attached = flags;
    made->stream = stream;
    if (stream)
        sg_stream_ref(stream);
    if (before)
        sg_stream_unref(before);
}

/* On H200, flags are checked before the context. */
CUresult sg_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags) {
    struct sg_context *context;
    if (dptr)
        *dptr = 0;
    if (!dptr || bytesize == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_device(context->device)->attributes[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY])
        return CUDA_ERROR_NOT_SUPPORTED;
    struct sg_range *range;
    result = sg_managed_allocate(context, bytesize, flags, false, &range);
    if (result == CUDA_SUCCESS)
        *dptr = range->start;
    return result;
}
