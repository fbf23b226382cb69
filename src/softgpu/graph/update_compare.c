/* What of a node's parameters an exec lets go. As recorded on H200. */
#include "softgpu/graph/update.h"

#include "softgpu/address/memory.h"
#include "softgpu/copy/copy.h"
#include "softgpu/module/function.h"

#define CHANGED CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED

/* Which device an address belongs to; -1 for the host. */
static int device_at(CUdeviceptr address) {
    const struct sg_range *range = sg_range_find(address);
    return range ? range->device : -1;
}

/* ---- Sets: of one row anything may change, of several only where and with what --------------- */

static bool set_allows(const CUDA_MEMSET_NODE_PARAMS_v2 *now,
                       const CUDA_MEMSET_NODE_PARAMS_v2 *wanted) {
    bool known = sg_range_find(now->dst) && sg_range_find(wanted->dst);
    if ((now->height > 1) != (wanted->height > 1) ||
        (known && device_at(now->dst) != device_at(wanted->dst)))
        return false;
    return now->height <= 1 ||
           (now->width == wanted->width && now->height == wanted->height &&
            now->pitch == wanted->pitch && now->elementSize == wanted->elementSize);
}

/* ---- Copies: the kinds of memory and the number of dimensions stay, of rows all of the shape ---
 */

static int dimensions(const CUDA_MEMCPY3D *copy) {
    return copy->Depth > 1 ? 3 : copy->Height > 1 ? 2 : 1;
}

static bool end_allows(CUmemorytype now_type, CUdeviceptr now, CUmemorytype type,
                       CUdeviceptr wanted) {
    if (now_type != type)
        return false;
    bool known = type != CU_MEMORYTYPE_HOST && sg_range_find(now) && sg_range_find(wanted);
    return !known || device_at(now) == device_at(wanted);
}

static bool same_rows(const CUDA_MEMCPY3D *now, const CUDA_MEMCPY3D *wanted) {
    return now->WidthInBytes == wanted->WidthInBytes && now->Height == wanted->Height &&
           now->Depth == wanted->Depth && now->srcXInBytes == wanted->srcXInBytes &&
           now->srcY == wanted->srcY && now->srcZ == wanted->srcZ &&
           now->srcPitch == wanted->srcPitch && now->srcHeight == wanted->srcHeight &&
           now->dstXInBytes == wanted->dstXInBytes && now->dstY == wanted->dstY &&
           now->dstZ == wanted->dstZ && now->dstPitch == wanted->dstPitch &&
           now->dstHeight == wanted->dstHeight;
}

static bool copy_allows(const CUDA_MEMCPY3D *now, const CUDA_MEMCPY3D *wanted) {
    return end_allows(now->dstMemoryType, now->dstDevice, wanted->dstMemoryType,
                      wanted->dstDevice) &&
           end_allows(now->srcMemoryType, now->srcDevice, wanted->srcMemoryType,
                      wanted->srcDevice) &&
           dimensions(now) == dimensions(wanted) &&
           (dimensions(now) == 1 || same_rows(now, wanted));
}

/* ---- Events: of one context ----------------------------------------------------------------- */

static bool event_allows(CUevent now, CUevent wanted) {
    const struct sg_event *a = sg_event_get(now), *b = sg_event_get(wanted);
    return b && (!a || a->context == b->context);
}

/* ---- Batches: the operations stay what they are ---------------------------------------------- */

static bool memops_allow(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *now,
                         const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *wanted) {
    if (now->ctx != wanted->ctx || now->count != wanted->count || now->flags != wanted->flags)
        return false;
    for (unsigned i = 0; i < now->count; i++)
        if (now->paramArray[i].operation != wanted->paramArray[i].operation)
            return false;
    return true;
}

/* ---- Kernels: "the owning context of the function cannot change" ----------------------------- */

/* NULL when the function is gone. */
static const struct sg_context *context_of(const CUDA_KERNEL_NODE_PARAMS_v3 *kernel) {
    struct sg_function *function;
    struct sg_context *context;
    if (kernel->func)
        return sg_function_from_handle(kernel->func, &function) == CUDA_SUCCESS ? function->context
                                                                                : NULL;
    return sg_context_from_handle(kernel->ctx, &context) == CUDA_SUCCESS ? context : NULL;
}

static bool kernel_allows(const CUDA_KERNEL_NODE_PARAMS_v3 *now,
                          const CUDA_KERNEL_NODE_PARAMS_v3 *wanted) {
    const struct sg_context *before = context_of(now);
    return !before || before == context_of(wanted);
}

CUgraphExecUpdateResult sg_params_compare(const CUgraphNodeParams *now,
                                          const CUgraphNodeParams *wanted) {
    bool allowed = true;
    switch (now->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_allows(&now->kernel, &wanted->kernel)
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        allowed = set_allows(&now->memset, &wanted->memset);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        allowed = copy_allows(&now->memcpy.copyParams, &wanted->memcpy.copyParams);
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        allowed = event_allows(now->eventWait.event, wanted->eventWait.event);
        break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        allowed = event_allows(now->eventRecord.event, wanted->eventRecord.event);
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        allowed = now->extSemSignal.numExtSems == wanted->extSemSignal.numExtSems;
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        allowed = now->extSemWait.numExtSems == wanted->extSemWait.numExtSems;
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        allowed = memops_allow(&now->memOp, &wanted->memOp);
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        allowed = now->conditional.type == wanted->conditional.type &&
                  now->conditional.size == wanted->conditional.size;
        break;
    default:
        break;
    }
    return allowed ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CHANGED;
}

/* ---- By themselves -------------------------------------------------------------------------- */

static CUresult check_copy(const CUDA_MEMCPY_NODE_PARAMS *params) {
    const CUDA_MEMCPY3D *copy = &params->copyParams;
    bool empty = copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0;
    return empty ? CUDA_ERROR_INVALID_VALUE
                 : sg_copy_check_3d(params->copyCtx, copy, sg_graph_memory_is);
}

static CUresult check_set(const CUDA_MEMSET_NODE_PARAMS_v2 *set) {
    return set->width == 0 || set->height == 0 ? CUDA_ERROR_INVALID_VALUE
                                               : sg_set_check(set, sg_graph_memory_is);
}

static CUresult check_memops(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params) {
    bool listed = params->ctx && params->count > 0 && params->paramArray;
    return listed && params->flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_update_check(const CUgraphNodeParams *params) {
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return params->memcpy.flags ? CUDA_ERROR_INVALID_VALUE : check_copy(&params->memcpy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return check_set(&params->memset);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return check_memops(&params->memOp);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return sg_event_get(params->eventWait.event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return sg_event_get(params->eventRecord.event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return sg_params_check(params);
    }
}
