#include "softgpu/memory/allocation.h"
#include "softgpu/memory/quarantine.h"

void sg_memory_context_end(struct sg_context *context) {
    struct sg_range *range = sg_range_from(0);
    while (range) {
        struct sg_range *next = sg_range_next(range);
        if (range->context == context && !range->variable)
            range->ops->end(range);
        range = next;
    }
    (void)sg_quarantine_empty(context);
}
