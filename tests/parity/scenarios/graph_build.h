/* Building graphs for the scenarios of graphs: what is not their subject. */
#ifndef PARITY_GRAPH_BUILD_H
#define PARITY_GRAPH_BUILD_H

#include "../parity.h"

static inline CUgraph gb_graph(void) {
    return PAR_MADE(CUgraph, cuGraphCreate, 0);
}

static inline CUDA_MEMSET_NODE_PARAMS gb_set(CUdeviceptr to, unsigned value, unsigned element,
                                             size_t width) {
    CUDA_MEMSET_NODE_PARAMS params = {
        .dst = to, .value = value, .elementSize = element, .width = width, .height = 1};
    return params;
}

static inline CUDA_MEMCPY3D gb_copy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    CUDA_MEMCPY3D params = {FROM_DEVICE(from), TO_DEVICE(to), EXTENT_3D(size, 1, 1)};
    return params;
}

static inline CUDA_MEMCPY3D gb_copy_to_host(void *to, CUdeviceptr from, size_t size) {
    CUDA_MEMCPY3D params = gb_copy(0, from, size);
    params.dstMemoryType = CU_MEMORYTYPE_HOST;
    params.dstHost = to;
    return params;
}

/* Nodes with one dependency, or none. */
static inline CUgraphNode gb_set_node(CUgraph graph, CUgraphNode after, CUdeviceptr to,
                                      unsigned value, size_t size) {
    CUDA_MEMSET_NODE_PARAMS params = gb_set(to, value, 1, size);
    return PAR_MADE(CUgraphNode, cuGraphAddMemsetNode, graph, after ? &after : NULL, after ? 1 : 0,
                    &params, par.primary);
}

static inline CUgraphNode gb_copy_node(CUgraph graph, CUgraphNode after, CUDA_MEMCPY3D params) {
    return PAR_MADE(CUgraphNode, cuGraphAddMemcpyNode, graph, after ? &after : NULL, after ? 1 : 0,
                    &params, par.primary);
}

static inline CUgraphNode gb_empty_node(CUgraph graph, CUgraphNode after) {
    CUgraphNode node = NULL;
    SETUP(cuGraphAddEmptyNode, (&node, graph, after ? &after : NULL, after ? 1 : 0));
    return node;
}

static inline CUgraphNode gb_host_node(CUgraph graph, CUgraphNode after, CUhostFn function,
                                       void *data) {
    CUDA_HOST_NODE_PARAMS params = {.fn = function, .userData = data};
    CUgraphNode node = NULL;
    SETUP(cuGraphAddHostNode, (&node, graph, after ? &after : NULL, after ? 1 : 0, &params));
    return node;
}

static inline CUDA_MEM_ALLOC_NODE_PARAMS gb_alloc(size_t size) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                         .poolProps.location.id = par.dev,
                                         .bytesize = size};
    return params;
}

static inline CUgraphNode gb_alloc_node(CUgraph graph, CUgraphNode after, size_t size,
                                        CUdeviceptr *address) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = gb_alloc(size);
    CUgraphNode node = NULL;
    SETUP(cuGraphAddMemAllocNode, (&node, graph, after ? &after : NULL, after ? 1 : 0, &params));
    *address = params.dptr;
    return node;
}

static inline CUgraphNode gb_free_node(CUgraph graph, CUgraphNode after, CUdeviceptr address) {
    CUgraphNode node = NULL;
    SETUP(cuGraphAddMemFreeNode, (&node, graph, after ? &after : NULL, after ? 1 : 0, address));
    return node;
}

static inline CUgraphExec gb_instantiate(CUgraph graph) {
    return PAR_MADE(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
}

static inline void gb_show(const char *what, CUdeviceptr at) {
    unsigned char bytes[4];
    SETUP(cuMemcpyDtoH_v2, (bytes, at, sizeof(bytes)));
    par_see("bytes", "%s %02x %02x %02x %02x", what, bytes[0], bytes[1], bytes[2], bytes[3]);
}

#endif
