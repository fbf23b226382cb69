/*
 * Extents of blocks that were freed while work was queued. A kernel that was queued before the free
 * may use the block until the stream has reached the free, although the block's range is gone, and
 * another one may be at its addresses by then.
 */
#include "softgpu/pool/internal.h"

#include "softgpu/core/config.h"
#include "softgpu/stream/schedule.h"

#include <stdlib.h>

struct sg_left {
    struct sg_left *next;
    CUdeviceptr start;
    size_t size;
    struct sg_token until; /* the free */
    uint64_t serial;       /* of the last operation that was submitted before it */
};

/* In order of their frees. */
static struct sg_left *first, **end = &first;

static void drop_reached(void) {
    for (struct sg_left **link = &first; *link;) {
        struct sg_left *left = *link;
        if (!sg_token_complete(left->until)) {
            link = &left->next;
            continue;
        }
        *link = left->next;
        if (end == &left->next)
            end = link;
        sg_token_release(&left->until);
        free(left);
    }
}

CUresult sg_left_prepare(const struct sg_block *block, struct sg_token until,
                         struct sg_left **made) {
    drop_reached();
    *made = NULL;
    if (!sg_config()->kernels || sg_token_complete(until))
        return CUDA_SUCCESS;
    struct sg_left *left = calloc(1, sizeof *left);
    if (!left)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_stream_ref(until.stream);
    left->start = block->range.start;
    left->size = block->range.size;
    left->until = until;
    left->serial = sg_submissions;
    *made = left;
    return CUDA_SUCCESS;
}

void sg_left_keep(struct sg_left *left) {
    if (!left)
        return;
    *end = left;
    end = &left->next;
}

void sg_left_discard(struct sg_left *left) {
    if (!left)
        return;
    sg_token_release(&left->until);
    free(left);
}

bool sg_pool_left(CUdeviceptr address, uint64_t serial, uint64_t *low, uint64_t *length) {
    drop_reached();
    for (const struct sg_left *left = first; left; left = left->next)
        if (address - left->start < left->size && serial <= left->serial) {
            *low = left->start;
            *length = left->size;
            return true;
        }
    return false;
}
