/* Parameters of nodes: checked, copied deeply, compared and freed, as the type's row specifies. */
#include "softgpu/address/range.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"
#include "softgpu/graph/update.h"

#include <stdlib.h>
#include <string.h>

/* ---- Contexts ------------------------------------------------------------------------------- */

CUresult sg_params_resolve_context(CUcontext *handle) {
    struct sg_context *context;
    CUresult result = sg_context_from_handle(*handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    *handle = SG_HANDLE_POINTER(CUcontext, context->handle);
    return context->sticky;
}

CUresult sg_params_resolve_optional(CUcontext *handle) {
    const struct sg_context *current = sg_context_peek();
    if (*handle)
        return sg_params_resolve_context(handle);
    if (!current)
        return CUDA_SUCCESS;
    if (!current->alive)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_context *context;
    CUresult result = sg_context_from_handle(NULL, &context);
    if (result == CUDA_SUCCESS) /* faults of an unnamed context are not checked on H200 */
        *handle = SG_HANDLE_POINTER(CUcontext, context->handle);
    return result;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

CUresult sg_params_resolve(struct sg_graph *graph, CUgraphNodeParams *params) {
    const struct sg_node_type *type = sg_type_of(params);
    return type->resolve ? type->resolve(graph, params) : CUDA_SUCCESS;
}

CUresult sg_params_check(const CUgraphNodeParams *params) {
    return sg_type_of(params)->check(params);
}

CUresult sg_params_check_captured(const CUgraphNodeParams *params) {
    const struct sg_node_type *type = sg_type_of(params);
    return type->check_captured ? type->check_captured(params) : type->check(params);
}

CUresult sg_update_check(const CUgraphNodeParams *params) {
    const struct sg_node_type *type = sg_type_of(params);
    return type->check_update ? type->check_update(params) : type->check(params);
}

/* "All unused bytes [...] must be set to zero." */
bool sg_params_unused_zero(const CUgraphNodeParams *params) {
    const unsigned char *bytes = (const void *)params->reserved1;
    for (size_t i = sg_type_of(params)->size; i < sizeof params->reserved1; i++)
        if (bytes[i])
            return false;
    return !params->reserved0[0] && !params->reserved0[1] && !params->reserved0[2] &&
           !params->reserved2;
}

/* ---- Updates, as recorded on H200 ------------------------------------------------------------ */

/* -1 for the host. */
static int device_at(CUdeviceptr address) {
    const struct sg_range *range = sg_range_find(address);
    return range ? range->device : -1;
}

bool sg_params_same_device(CUdeviceptr now, CUdeviceptr wanted) {
    bool known = sg_range_find(now) && sg_range_find(wanted);
    return !known || device_at(now) == device_at(wanted);
}

CUgraphExecUpdateResult sg_params_compare(const CUgraphNodeParams *now,
                                          const CUgraphNodeParams *wanted) {
    const struct sg_node_type *type = sg_type_of(now);
    return type->compare ? type->compare(now, wanted) : CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* ---- Deep copies ----------------------------------------------------------------------------- */

bool sg_params_copy_array(void **to, const void *from, size_t count, size_t size) {
    *to = reallocarray(NULL, count ? count : 1, size);
    if (*to && count > 0)
        memcpy(*to, from, count * size);
    return *to != NULL;
}

CUresult sg_params_copy(CUgraphNodeParams *to, const CUgraphNodeParams *from) {
    const struct sg_node_type *type = sg_type_of(from);
    CUgraphNodeParams copy = *from;
    CUresult result = type->deepen ? type->deepen(&copy, from) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    copy.reserved2 = SG_PARAMS_DEEP;
    *to = copy;
    return CUDA_SUCCESS;
}

void sg_params_free(CUgraphNodeParams *params) {
    const struct sg_node_type *type = sg_type_of(params);
    if (params->reserved2 != SG_PARAMS_DEEP)
        return;
    if (type->free)
        type->free(params);
    *params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
}
