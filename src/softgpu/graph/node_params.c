/* Parameters of nodes: checked, copied deeply, freed. What of them an update may change is in
 * compare.c. */
#include "softgpu/copy/copy.h"
#include "softgpu/graph/nodes.h"
#include "softgpu/stream/event.h"

#include <stdlib.h>
#include <string.h>

#define MEMOP_LIMIT 256 /* as in cuStreamBatchMemOp */

/* ---- Contexts ------------------------------------------------------------------------------- */

static CUresult resolve(CUcontext *handle) {
    struct sg_context *context;
    CUresult result = sg_context_from_handle(*handle, &context);
    if (result != CUDA_SUCCESS)
        return result;
    *handle = SG_HANDLE_POINTER(CUcontext, context->handle);
    return context->sticky;
}

/* Copies and sets may be added without any context: they run in that of the launch then. */
static CUresult resolve_optional(CUcontext *handle) {
    const struct sg_context *current = sg_context_peek();
    if (*handle)
        return resolve(handle);
    if (!current)
        return CUDA_SUCCESS;
    if (!current->alive)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_context *context;
    CUresult result = sg_context_from_handle(NULL, &context);
    if (result == CUDA_SUCCESS) /* of one that is not named, H200 does not look at faults */
        *handle = SG_HANDLE_POINTER(CUcontext, context->handle);
    return result;
}

static CUresult check_conditional(const CUDA_CONDITIONAL_NODE_PARAMS *params) {
    unsigned most = params->type == CU_GRAPH_COND_TYPE_IF      ? 2
                    : params->type == CU_GRAPH_COND_TYPE_WHILE ? 1
                                                               : UINT32_MAX;
    bool known = params->type <= CU_GRAPH_COND_TYPE_SWITCH && params->size > 0;
    return known && params->size <= most ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Its handle is looked at last. */
static CUresult resolve_conditional(struct sg_graph *graph, CUDA_CONDITIONAL_NODE_PARAMS *params) {
    CUresult result = check_conditional(params);
    if (result == CUDA_SUCCESS)
        result = params->ctx ? resolve(&params->ctx) : CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS)
        return result;
    return sg_condition_get(graph, params->handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_params_resolve(struct sg_graph *graph, CUgraphNodeParams *params) {
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return sg_kernel_params_resolve(&params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return resolve_optional(&params->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return resolve_optional(&params->memset.ctx);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return params->memOp.ctx ? resolve(&params->memOp.ctx) : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return resolve_conditional(graph, &params->conditional);
    default:
        return CUDA_SUCCESS;
    }
}

/* ---- Copies and sets: as those in streams, but that empty ones are refused ------------------- */

static CUresult check_memcpy(const CUDA_MEMCPY_NODE_PARAMS *params) {
    const CUDA_MEMCPY3D *copy = &params->copyParams;
    if (params->flags || params->reserved || !copy->WidthInBytes || !copy->Height || !copy->Depth)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_copy_check_3d(params->copyCtx, copy, sg_graph_memory_is);
}

static CUresult check_memset(const CUDA_MEMSET_NODE_PARAMS_v2 *set) {
    if (!set->dst || !set->width || !set->height)
        return CUDA_ERROR_INVALID_VALUE;
    /* The product may wrap: H200 takes 2^62 words for an empty set. */
    bool wraps = set->elementSize == 4 || set->elementSize == 2;
    if (wraps && set->width * set->elementSize == 0)
        return CUDA_SUCCESS;
    return sg_set_check(set, sg_graph_memory_is);
}

/* ---- Batches of memory operations ----------------------------------------------------------- */

/* What is at the address is not asked before the operation runs. */
static CUresult check_access(CUdeviceptr address, unsigned width) {
    return address % width == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_memop(const CUstreamBatchMemOpParams *op) {
    unsigned width = 8;
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        width = 4;
        /* fallthrough */
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        if (op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (op->waitValue.flags > CU_STREAM_WAIT_VALUE_NOR)
            return CUDA_ERROR_INVALID_VALUE;
        return check_access(op->waitValue.address, width);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        width = 4;
        /* fallthrough */
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        if (op->writeValue.flags != CU_STREAM_WRITE_VALUE_DEFAULT)
            return CUDA_ERROR_INVALID_VALUE;
        return check_access(op->writeValue.address, width);
    case CU_STREAM_MEM_OP_BARRIER:
        return op->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult check_memops(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *params) {
    if (params->count >= MEMOP_LIMIT || params->flags || (params->count && !params->paramArray))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < params->count && result == CUDA_SUCCESS; i++)
        result = check_memop(&params->paramArray[i]);
    return result;
}

/* ---- All types ------------------------------------------------------------------------------ */

/* Whether the handles are semaphores is not asked before they are used. */
static CUresult check_semaphores(const CUexternalSemaphore *list, const void *params,
                                 unsigned count) {
    return count && (!list || !params) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult check_event(CUevent event) {
    return event && sg_event_get(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Each place once; sg_graph_memory_reserve looks at the rest. */
static CUresult check_allocation(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params) {
    uint64_t devices = 0;
    for (size_t i = 0; params->accessDescs && i < params->accessDescCount; i++) {
        const CUmemLocation *location = &params->accessDescs[i].location;
        if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id < 0 || location->id >= 64)
            continue;
        if (devices & 1ull << location->id)
            return CUDA_ERROR_INVALID_VALUE;
        devices |= 1ull << location->id;
    }
    return CUDA_SUCCESS;
}

CUresult sg_params_check(const CUgraphNodeParams *params) {
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return sg_kernel_params_check(&params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return check_memcpy(&params->memcpy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return check_memset(&params->memset);
    case CU_GRAPH_NODE_TYPE_HOST:
        return params->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return sg_graph_get(params->graph.graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return check_event(params->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return check_event(params->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        return check_semaphores(params->extSemSignal.extSemArray, params->extSemSignal.paramsArray,
                                params->extSemSignal.numExtSems);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        return check_semaphores(params->extSemWait.extSemArray, params->extSemWait.paramsArray,
                                params->extSemWait.numExtSems);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return check_allocation(&params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return sg_graph_memory_starts(params->free.dptr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return check_memops(&params->memOp);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return check_conditional(&params->conditional);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sg_params_check_captured(const CUgraphNodeParams *params) {
    return params->type == CU_GRAPH_NODE_TYPE_MEMSET ? sg_set_check_shape(&params->memset)
                                                     : sg_params_check(params);
}

/* ---- Deep copies ---------------------------------------------------------------------------- */

/* A copy of an array, which is not NULL for an empty one either. False when out of memory. */
static bool copy_array(void **to, const void *from, size_t count, size_t size) {
    *to = reallocarray(NULL, count ? count : 1, size);
    if (*to && count > 0)
        memcpy(*to, from, count * size);
    return *to != NULL;
}

/* Semaphores and what to do with each: two arrays. */
static bool copy_pair(CUexternalSemaphore **list, const void **params, size_t size,
                      unsigned count) {
    void *copied_list, *copied_params;
    if (!copy_array(&copied_list, *list, count, sizeof **list))
        return false;
    if (!copy_array(&copied_params, *params, count, size)) {
        free(copied_list);
        return false;
    }
    *list = copied_list;
    *params = copied_params;
    return true;
}

static bool copy_signal(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 *to) {
    const void *params = to->paramsArray;
    bool copied = copy_pair(&to->extSemArray, &params, sizeof *to->paramsArray, to->numExtSems);
    to->paramsArray = params;
    return copied;
}

static bool copy_wait(CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 *to) {
    const void *params = to->paramsArray;
    bool copied = copy_pair(&to->extSemArray, &params, sizeof *to->paramsArray, to->numExtSems);
    to->paramsArray = params;
    return copied;
}

/* Puts copies in place of what `to` points to. */
static CUresult deepen(CUgraphNodeParams *to, const CUgraphNodeParams *from) {
    void *copied;
    bool deep = from->reserved2 == SG_PARAMS_DEEP;
    switch (to->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return sg_kernel_params_copy(&to->kernel, &from->kernel, deep);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        if (!copy_array(&copied, to->memOp.paramArray, to->memOp.count,
                        sizeof *to->memOp.paramArray))
            return CUDA_ERROR_OUT_OF_MEMORY;
        to->memOp.paramArray = copied;
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        if (to->alloc.accessDescCount > 0 && !to->alloc.accessDescs)
            return CUDA_ERROR_INVALID_VALUE;
        if (!copy_array(&copied, to->alloc.accessDescs, to->alloc.accessDescCount,
                        sizeof *to->alloc.accessDescs))
            return CUDA_ERROR_OUT_OF_MEMORY;
        to->alloc.accessDescs = copied;
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        return copy_signal(&to->extSemSignal) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        return copy_wait(&to->extSemWait) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    default:
        return CUDA_SUCCESS;
    }
}

CUresult sg_params_copy(CUgraphNodeParams *to, const CUgraphNodeParams *from) {
    CUgraphNodeParams copy = *from;
    CUresult result = deepen(&copy, from);
    if (result != CUDA_SUCCESS)
        return result;
    copy.reserved2 = SG_PARAMS_DEEP;
    *to = copy;
    return CUDA_SUCCESS;
}

void sg_params_free(CUgraphNodeParams *params) {
    if (params->reserved2 != SG_PARAMS_DEEP)
        return;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        sg_kernel_params_free(&params->kernel);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        free(params->memOp.paramArray);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        free((void *)(uintptr_t)params->alloc.accessDescs);
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        free(params->extSemSignal.extSemArray);
        free((void *)(uintptr_t)params->extSemSignal.paramsArray);
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        free(params->extSemWait.extSemArray);
        free((void *)(uintptr_t)params->extSemWait.paramsArray);
        break;
    default:
        break;
    }
    *params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
}
