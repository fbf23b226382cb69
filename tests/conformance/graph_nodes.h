/* Nodes and graphs for tests of executable graphs, in one call each. */
#ifndef CONFORMANCE_GRAPH_NODES_H
#define CONFORMANCE_GRAPH_NODES_H

#include "harness.h"

static inline CUDA_MEMSET_NODE_PARAMS set_params(CUdeviceptr to, unsigned value, size_t size) {
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = to, .value = value, .elementSize = 1, .width = size, .height = 1};
}

static inline CUDA_MEMCPY3D copy_params(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return (CUDA_MEMCPY3D){FROM_DEVICE(from), TO_DEVICE(to), EXTENT_3D(size, 1, 1)};
}

/* `after` may be NULL. */
static inline CUgraphNode add_set(CUgraph graph, CUgraphNode after, CUdeviceptr to, unsigned value,
                                  size_t size) {
    CUDA_MEMSET_NODE_PARAMS params = set_params(to, value, size);
    CUgraphNode node = NULL;
    OK_CU(
        cu.cuGraphAddMemsetNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &params, ctx));
    return node;
}

static inline CUgraphNode add_copy(CUgraph graph, CUgraphNode after, CUdeviceptr to,
                                   CUdeviceptr from, size_t size) {
    CUDA_MEMCPY3D params = copy_params(to, from, size);
    CUgraphNode node = NULL;
    OK_CU(
        cu.cuGraphAddMemcpyNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &params, ctx));
    return node;
}

static inline CUgraphNode add_host(CUgraph graph, CUgraphNode after, CUhostFn function,
                                   void *data) {
    CUDA_HOST_NODE_PARAMS params = {.fn = function, .userData = data};
    CUgraphNode node = NULL;
    OK_CU(cu.cuGraphAddHostNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &params));
    return node;
}

static inline CUgraphNode add_empty(CUgraph graph, CUgraphNode after) {
    CUgraphNode node = NULL;
    OK_CU(cu.cuGraphAddEmptyNode(&node, graph, after ? &after : NULL, after ? 1 : 0));
    return node;
}

static inline CUgraphNode add_child(CUgraph graph, CUgraphNode after, CUgraph child) {
    CUgraphNode node = NULL;
    OK_CU(cu.cuGraphAddChildGraphNode(&node, graph, after ? &after : NULL, after ? 1 : 0, child));
    return node;
}

static inline CUgraphNode add_alloc(CUgraph graph, CUgraphNode after, size_t size,
                                    CUdeviceptr *address) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = size};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = device_location(dev);
    CUgraphNode node = NULL;
    OK_CU(cu.cuGraphAddMemAllocNode(&node, graph, after ? &after : NULL, after ? 1 : 0, &params));
    *address = params.dptr;
    return node;
}

static inline CUgraphNode add_free(CUgraph graph, CUgraphNode after, CUdeviceptr address) {
    CUgraphNode node = NULL;
    OK_CU(cu.cuGraphAddMemFreeNode(&node, graph, after ? &after : NULL, after ? 1 : 0, address));
    return node;
}

/* Launches and waits. */
static inline void run(CUgraphExec exec) {
    launch_and_wait(exec, NULL);
}

/* Before the test ends. */
static inline void end_graph(CUgraph graph, CUgraphExec exec) {
    destroy_exec(exec);
    destroy_graph(graph);
}

#endif
