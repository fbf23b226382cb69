/* Nodes that allocate graph memory, and nodes that free it. */
#include "softgpu/graph/dot.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"

#include <inttypes.h>
#include <stdlib.h>

/* The graph of a child graph node. */
static bool in_child_node(const struct sg_graph *graph) {
    return graph->owner && graph->owner->child;
}

/* ---- Allocations ----------------------------------------------------------------------------- */

/* The incoming address does not belong to this node, which must not release it. */
static CUresult resolve_alloc(struct sg_graph *graph, CUgraphNodeParams *params) {
    (void)graph;
    params->alloc.dptr = 0;
    return CUDA_SUCCESS;
}

/* Each location once; sg_graph_memory_reserve checks the rest. */
static CUresult check_alloc(const CUgraphNodeParams *params) {
    const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *alloc = &params->alloc;
    uint64_t devices = 0;
    for (size_t i = 0; alloc->accessDescs && i < alloc->accessDescCount; i++) {
        const CUmemLocation *location = &alloc->accessDescs[i].location;
        if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id < 0 || location->id >= 64)
            continue;
        if (devices & 1ull << location->id)
            return CUDA_ERROR_INVALID_VALUE;
        devices |= 1ull << location->id;
    }
    return CUDA_SUCCESS;
}

static CUresult deepen_alloc(CUgraphNodeParams *to, const CUgraphNodeParams *from) {
    const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *alloc = &from->alloc;
    void *copied;
    if (alloc->accessDescCount > 0 && !alloc->accessDescs)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_params_copy_array(&copied, alloc->accessDescs, alloc->accessDescCount,
                              sizeof *alloc->accessDescs))
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->alloc.accessDescs = copied;
    return CUDA_SUCCESS;
}

static void free_alloc(CUgraphNodeParams *params) {
    free((void *)(uintptr_t)params->alloc.accessDescs);
}

static CUresult alloc_may_be_in(struct sg_graph *graph, const CUgraphNodeParams *params) {
    (void)params;
    return in_child_node(graph) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult furnish_alloc(struct sg_graph *graph, struct sg_node *node,
                              CUgraphNodeParams *params) {
    (void)graph;
    CUresult result = sg_graph_memory_reserve(params);
    if (result != CUDA_SUCCESS)
        return result;
    node->params.alloc.dptr = params->alloc.dptr;
    return sg_allocation_begin(node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void hand_out_address(CUgraphNodeParams *to, const CUgraphNodeParams *from) {
    to->alloc.dptr = from->alloc.dptr;
}

static void begin_alloc(const struct sg_exec_node *node, struct sg_op *op) {
    sg_graph_memory_step_allocate(node->params.alloc.dptr, op);
}

static void draw_alloc(const struct sg_picture *picture, const struct sg_node *node) {
    const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *alloc = &node->params.alloc;
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS))
        fprintf(picture->out, "|address: 0x%" PRIx64 "|size: %zu|device: %d", (uint64_t)alloc->dptr,
                alloc->bytesize, alloc->poolProps.location.id);
}

const struct sg_node_type sg_node_mem_alloc = {
    .name = "MEM_ALLOC",
    .runtime_name = "cudaGraphNodeTypeMemAlloc",
    .size = SG_NODE_SIZE(alloc),
    .memory = SG_NODE_OFFSET(alloc.dptr),
    .allocates = true,
    .fixed = true,
    .resolve = resolve_alloc,
    .check = check_alloc,
    .deepen = deepen_alloc,
    .free = free_alloc,
    .draw = draw_alloc,
    .may_be_in = alloc_may_be_in,
    .furnish = furnish_alloc,
    .hand_out = hand_out_address,
    .begin = begin_alloc,
};

/* ---- Frees ----------------------------------------------------------------------------------- */

static CUresult check_free(const CUgraphNodeParams *params) {
    return sg_graph_memory_starts(params->free.dptr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult free_may_be_in(struct sg_graph *graph, const CUgraphNodeParams *params) {
    return in_child_node(graph) ? CUDA_ERROR_NOT_SUPPORTED
                                : sg_allocation_may_free(graph, params->free.dptr);
}

static CUresult furnish_free(struct sg_graph *graph, struct sg_node *node,
                             CUgraphNodeParams *params) {
    (void)params;
    sg_allocation_free_by(node, graph);
    return CUDA_SUCCESS;
}

static void begin_free(const struct sg_exec_node *node, struct sg_op *op) {
    sg_graph_memory_step_free(node->params.free.dptr, op);
}

static void draw_free(const struct sg_picture *picture, const struct sg_node *node) {
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS))
        fprintf(picture->out, "|address: 0x%" PRIx64, (uint64_t)node->params.free.dptr);
}

const struct sg_node_type sg_node_mem_free = {
    .name = "MEM_FREE",
    .runtime_name = "cudaGraphNodeTypeMemFree",
    .size = SG_NODE_SIZE(free),
    .memory = SG_NODE_OFFSET(free.dptr),
    .fixed = true,
    .check = check_free,
    .draw = draw_free,
    .may_be_in = free_may_be_in,
    .furnish = furnish_free,
    .begin = begin_free,
};
