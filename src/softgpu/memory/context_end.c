#include "softgpu/memory/allocation.h"

#include "softgpu/external/external.h"
#include "softgpu/ipc/ipc_memory.h"
#include "softgpu/managed/managed.h"

void sg_memory_context_end(struct sg_context *context) {
    struct sg_range *range = sg_range_from(0);
    while (range) {
        struct sg_range *next = sg_range_next(range);
        if (range->context == context && !range->variable) {
            if (range->kind == SG_RANGE_DEVICE || range->kind == SG_RANGE_HOST)
                sg_allocation_free(range);
            else if (range->kind == SG_RANGE_REGISTERED)
                sg_registration_end(range);
            else if (range->kind == SG_RANGE_IPC)
                sg_ipc_memory_end(range);
            else if (range->kind == SG_RANGE_EXTERNAL)
                sg_external_buffer_free(range);
            else if (range->kind == SG_RANGE_MANAGED)
                sg_managed_free(range);
        }
        range = next;
    }
}
