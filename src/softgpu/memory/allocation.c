#include "softgpu/memory/allocation.h"

#include "softgpu/context/where.h"
#include "softgpu/memory/quarantine.h"
#include "softgpu/stream/leaving.h"

#include <limits.h>
#include <stdlib.h>

static void end_now(struct sg_range *range) {
    struct sg_allocation *made = range->owner;
    if (made->exported)
        sg_live_end(&made->live);
    sg_backing_give(&made->backing, range);
    sg_context_unref(range->context);
    free(made);
}

/* For a range that has been removed from the address map. */
static void end(struct sg_range *range) {
    if (!sg_quarantine_keep(range->owner, end_now))
        end_now(range);
}

void sg_allocation_free(struct sg_range *range) {
    sg_range_remove(range);
    end(range);
}

/* Memory freed in stream order becomes unknown at once; its bytes are freed when the stream gets
 * there. */
static void finish_free(struct sg_op *op) {
    end((struct sg_range *)(uintptr_t)op->data.words[0]);
}

static CUresult free_async(struct sg_range *range, struct sg_stream *stream) {
    struct sg_op *op = sg_op_new(NULL);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sg_leaving_add(range->start, range->size, stream, stream->submitted + 1)) {
        sg_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->data.words[0] = (uintptr_t)range;
    op->finish = finish_free;
    uint64_t id = range->buffer_id;
    sg_range_remove(range);
    CUresult result = sg_stream_submit(stream, op);
    if (result != CUDA_SUCCESS) {
        sg_range_insert(range);
        range->buffer_id = id;
    }
    return result;
}

static CUresult free_now(struct sg_range *range) {
    CUresult result = sg_allocation_wait(&range);
    if (result == CUDA_SUCCESS)
        sg_allocation_free(range);
    return result;
}

static void describe_device(const struct sg_range *range, struct sg_range_facts *facts) {
    (void)range;
    facts->rdma = facts->legacy_ipc = facts->decompress = true;
}

static const struct sg_range_ops device_ops = {
    .name = "allocation",
    .free = free_now,
    .free_async = free_async,
    .end = sg_allocation_free,
    .seen = sg_range_seen_by_peers,
    .describe = describe_device,
};

static void describe_host(const struct sg_range *range, struct sg_range_facts *facts) {
    facts->host_flags = (int)(range->flags & SG_HOST_FLAGS);
}

const struct sg_range_ops sg_host_allocation_ops = {
    .name = "host allocation",
    .end = sg_allocation_free,
    .describe = describe_host,
    .pinned = true,
};

struct sg_allocation *sg_device_allocation_of(const struct sg_range *range) {
    return range->ops == &device_ops ? range->owner : NULL;
}

#define OWN_PAGES INT_MIN

/* `place`: where small memory is taken from, or OWN_PAGES. */
static CUresult allocate(struct sg_range about, int place, struct sg_range **range) {
    struct sg_allocation *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->range = about;
    made->range.owner = made;
    CUresult result = place == OWN_PAGES
                          ? sg_backing_take_pages(&made->backing, &made->range, about.device)
                          : sg_backing_take_slot(&made->backing, &made->range, place);
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    sg_range_insert(&made->range);
    sg_context_ref(about.context);
    *range = &made->range;
    return CUDA_SUCCESS;
}

CUresult sg_allocate(struct sg_context *context, int device, size_t size, unsigned flags,
                     struct sg_range **range) {
    const struct sg_range about = {.size = size,
                                   .ops = device < 0 ? &sg_host_allocation_ops : &device_ops,
                                   .device = device,
                                   .context = context,
                                   .flags = flags};
    return allocate(about, size <= SG_SMALL_LIMIT ? device : OWN_PAGES, range);
}

CUresult sg_allocate_variable(struct sg_context *context, size_t size, uint64_t alignment,
                              struct sg_range **range) {
    int device = context->device;
    const struct sg_range about = {
        .size = size, .ops = &device_ops, .device = device, .context = context, .variable = true};
    bool small = size <= SG_SMALL_LIMIT && alignment <= SG_SMALL_VARIABLE_STEP;
    return allocate(about, small ? SG_SMALL_VARIABLES(device) : OWN_PAGES, range);
}

CUresult sg_allocation_wait(struct sg_range **range) {
    CUdeviceptr start = (*range)->start;
    uint64_t id = (*range)->buffer_id;
    struct sg_context *context = (*range)->context;
    CUresult result = sg_context_wait_to_free(context);
    if (result != CUDA_SUCCESS)
        return result;
    *range = sg_range_find(start);
    return *range && (*range)->buffer_id == id ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
