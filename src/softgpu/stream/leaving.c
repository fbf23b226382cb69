#include "softgpu/stream/leaving.h"

#include "softgpu/stream/schedule.h"

#include <stdlib.h>

struct leaving {
    struct leaving *next;
    CUdeviceptr start;
    size_t size;
    struct sg_token until; /* the free */
    uint64_t serial;       /* of the last operation that was submitted before it */
};

static struct leaving *first, **last = &first; /* in the order of their frees */

static void remove_at(struct leaving **link) {
    struct leaving *gone = *link;
    *link = gone->next;
    if (last == &gone->next)
        last = link;
    sg_token_release(&gone->until);
    free(gone);
}

bool sg_leaving_add(CUdeviceptr start, size_t size, struct sg_stream *stream, uint64_t number) {
    while (first && sg_token_complete(first->until))
        remove_at(&first);
    if (!sg_config()->kernels)
        return true;
    struct leaving *made = malloc(sizeof *made);
    if (!made)
        return false;
    sg_stream_ref(stream);
    *made = (struct leaving){
        .start = start, .size = size, .until = {stream, number}, .serial = sg_submissions};
    *last = made;
    last = &made->next;
    return true;
}

bool sg_leaving_find(CUdeviceptr address, uint64_t serial, uint64_t *low, uint64_t *length) {
    bool found = false;
    for (struct leaving **link = &first; *link;) {
        const struct leaving *one = *link;
        if (sg_token_complete(one->until)) {
            remove_at(link);
            continue;
        }
        uint64_t size = sg_bounds(sg_config(), one->start, one->size, SG_BOUND);
        if (!found && address - one->start < size && serial <= one->serial) {
            *low = one->start;
            *length = size;
            found = true;
        }
        link = &(*link)->next;
    }
    return found;
}

bool sg_leaving_overlaps(CUdeviceptr start, size_t size) {
    for (const struct leaving *one = first; one; one = one->next)
        if (one->start < start + size && start < one->start + one->size &&
            !sg_token_complete(one->until))
            return true;
    return false;
}
