/* Parameters of nodes: checked, copied deeply, freed. What of them an update may change is in
 * compare.c. */
#include "softgpu/array/array.h"
#include "softgpu/graph/nodes.h"
#include "softgpu/stream/event.h"

#include <stdlib.h>
#include <string.h>

#define MEMOP_LIMIT 256 /* as in cuStreamBatchMemOp */

/* ---- Contexts ------------------------------------------------------------------------------- */

static CUcontext *context_of(CUgraphNodeParams *params) {
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return params->kernel.kern ? &params->kernel.ctx : NULL;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return &params->memcpy.copyCtx;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return &params->memset.ctx;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return &params->memOp.ctx;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return &params->conditional.ctx;
    default:
        return NULL;
    }
}

CUresult sg_params_resolve(CUgraphNodeParams *params) {
    CUcontext *handle = context_of(params);
    if (!handle)
        return CUDA_SUCCESS;
    struct sg_context *context;
    CUresult result =
        *handle ? sg_context_from_handle(*handle, &context) : sg_context_current(&context);
    if (result == CUDA_SUCCESS)
        *handle = SG_HANDLE_POINTER(CUcontext, context->handle);
    return result;
}

/* ---- Copies and sets ------------------------------------------------------------------------ */

struct end {
    size_t offset[3];
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t pitch, height;
};

static CUresult place_in_array(const struct end *end, const struct sg_box *box,
                               struct sg_place *place) {
    const struct sg_array *array = sg_array_get(end->array);
    if (!array)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t *at = end->offset;
    bool inside = at[0] <= array->width_bytes && box->width <= array->width_bytes - at[0] &&
                  at[1] <= array->rows && box->height <= array->rows - at[1] &&
                  at[2] <= array->slices && box->depth <= array->slices - at[2];
    if (!inside || !array->address)
        return CUDA_ERROR_INVALID_VALUE;
    *place = (struct sg_place){
        .address = array->address + at[2] * array->layer + at[1] * array->pitch + at[0],
        .pitch = array->pitch,
        .layer = array->layer,
        .role = SG_ROLE_ANY,
    };
    return CUDA_SUCCESS;
}

static CUresult place_of(const struct end *end, const struct sg_box *box, struct sg_place *place) {
    switch (end->type) {
    case CU_MEMORYTYPE_HOST:
        *place = (struct sg_place){.address = (uintptr_t)end->host, .role = SG_ROLE_HOST};
        break;
    case CU_MEMORYTYPE_DEVICE:
        *place = (struct sg_place){.address = end->device, .role = SG_ROLE_DEVICE};
        break;
    case CU_MEMORYTYPE_UNIFIED:
        *place = (struct sg_place){.address = end->device, .role = SG_ROLE_ANY};
        break;
    case CU_MEMORYTYPE_ARRAY:
        return place_in_array(end, box, place);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sg_place_in_rows(place, box, end->offset, end->pitch, end->height);
}

CUresult sg_params_box(const CUDA_MEMCPY3D *copy, struct sg_box *box) {
    const struct end to = {.offset = {copy->dstXInBytes, copy->dstY, copy->dstZ},
                           .type = copy->dstMemoryType,
                           .host = copy->dstHost,
                           .device = copy->dstDevice,
                           .array = copy->dstArray,
                           .pitch = copy->dstPitch,
                           .height = copy->dstHeight};
    const struct end from = {.offset = {copy->srcXInBytes, copy->srcY, copy->srcZ},
                             .type = copy->srcMemoryType,
                             .host = copy->srcHost,
                             .device = copy->srcDevice,
                             .array = copy->srcArray,
                             .pitch = copy->srcPitch,
                             .height = copy->srcHeight};
    *box =
        (struct sg_box){.width = copy->WidthInBytes, .height = copy->Height, .depth = copy->Depth};
    CUresult result = place_of(&to, box, &box->to);
    return result == CUDA_SUCCESS ? place_of(&from, box, &box->from) : result;
}

static bool empty_copy(const CUDA_MEMCPY3D *copy) {
    return copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0;
}

static CUresult check_memcpy(const CUDA_MEMCPY_NODE_PARAMS *params) {
    if (params->flags || params->reserved)
        return CUDA_ERROR_INVALID_VALUE;
    if (empty_copy(&params->copyParams))
        return CUDA_SUCCESS;
    struct sg_box box;
    CUresult result = sg_params_box(&params->copyParams, &box);
    return result == CUDA_SUCCESS ? sg_box_check(&box) : result;
}

static CUresult check_memset(const CUDA_MEMSET_NODE_PARAMS_v2 *set) {
    if (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    size_t width, rows, bytes;
    if (__builtin_mul_overflow(set->width, set->elementSize, &width) || width == 0 ||
        set->height == 0 || set->dst % set->elementSize != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (set->height > 1 && (set->pitch % set->elementSize != 0 || set->pitch < width))
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(set->height - 1, set->pitch, &rows) ||
        __builtin_add_overflow(rows, width, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    enum sg_where where = sg_memory_where(set->dst, bytes, NULL);
    bool known = where == SG_WHERE_DEVICE || where == SG_WHERE_HOST;
    return known && sg_memory_allows(set->dst, bytes, SG_WRITE) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Batches of memory operations ----------------------------------------------------------- */

static CUresult check_access(CUdeviceptr address, unsigned width) {
    if (address % width != 0)
        return CUDA_ERROR_INVALID_VALUE;
    enum sg_where where = sg_memory_where(address, width, NULL);
    return where == SG_WHERE_HOST || where == SG_WHERE_DEVICE ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_VALUE;
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

static CUresult check_semaphores(const CUexternalSemaphore *list, const void *params,
                                 unsigned count) {
    if (count && (!list || !params))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (!sg_handle_get(SG_KIND_EXTERNAL_SEMAPHORE, SG_HANDLE_VALUE(list[i])))
            return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

static CUresult check_event(CUevent event) {
    return event && sg_event_get(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult check_conditional(const CUDA_CONDITIONAL_NODE_PARAMS *params) {
    unsigned most = params->type == CU_GRAPH_COND_TYPE_IF      ? 2
                    : params->type == CU_GRAPH_COND_TYPE_WHILE ? 1
                                                               : UINT32_MAX;
    bool known = params->type <= CU_GRAPH_COND_TYPE_SWITCH && params->size > 0;
    return known && params->size <= most ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
        return CUDA_SUCCESS; /* sg_graph_memory_reserve looks at them */
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return sg_graph_memory_is(params->free.dptr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return check_memops(&params->memOp);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return check_conditional(&params->conditional);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- Deep copies ---------------------------------------------------------------------------- */

/* A copy of an array; an empty one is NULL. False when out of memory. */
static bool copy_array(void **to, const void *from, size_t count, size_t size) {
    *to = NULL;
    if (count == 0)
        return true;
    *to = reallocarray(NULL, count, size);
    if (*to)
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
        if (!copy_array(&copied, to->alloc.accessDescs,
                        to->alloc.accessDescs ? to->alloc.accessDescCount : 0,
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
