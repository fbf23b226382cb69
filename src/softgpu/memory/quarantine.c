#include "softgpu/memory/quarantine.h"

#include "softgpu/core/config.h"

static struct sg_allocation *oldest, *newest;
static size_t bytes;
static void (*end_it)(struct sg_range *range);

/* What it holds, small ones in steps. */
static size_t size_of(const struct sg_allocation *one) {
    return (one->range.size + 511) / 512 * 512;
}

/* Takes the one behind `before` (NULL: the oldest) out, and ends it. */
static void end_behind(struct sg_allocation *before) {
    struct sg_allocation *one = before ? before->kept_next : oldest;
    if (before)
        before->kept_next = one->kept_next;
    else
        oldest = one->kept_next;
    if (newest == one)
        newest = before;
    bytes -= size_of(one);
    end_it(&one->range);
}

bool sg_quarantine_keep(struct sg_allocation *allocation, void (*end)(struct sg_range *range)) {
    const struct sg_context *context = allocation->range.context;
    if (!(sg_config()->checks & SG_CHECK_MEMORY) || allocation->exported ||
        (context && !context->alive) || size_of(allocation) > SG_QUARANTINE_MOST / 2)
        return false;
    end_it = end;
    allocation->kept_next = NULL;
    if (newest)
        newest->kept_next = allocation;
    else
        oldest = allocation;
    newest = allocation;
    bytes += size_of(allocation);
    while (bytes > SG_QUARANTINE_MOST)
        end_behind(NULL);
    return true;
}

uint64_t sg_quarantine_empty(const struct sg_context *context) {
    uint64_t ended = 0;
    struct sg_allocation *before = NULL;
    for (struct sg_allocation *one = oldest; one;) {
        struct sg_allocation *next = one->kept_next;
        if (context && one->range.context != context) {
            before = one;
        } else {
            ended += size_of(one);
            end_behind(before);
        }
        one = next;
    }
    return ended;
}
