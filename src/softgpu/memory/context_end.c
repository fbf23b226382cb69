#include "softgpu/address/range.h"
#include "softgpu/array/array.h"
#include "softgpu/context/context.h"

/* Memory of VMM and of pools belongs to no context and stays. */
void sg_memory_context_end(struct sg_context *context) {
    sg_arrays_context_end(context);
    struct sg_range *range = sg_range_from(0);
    while (range) {
        struct sg_range *next = sg_range_next(range);
        if (range->context == context && !range->variable)
            range->ops->end(range);
        range = next;
    }
}
