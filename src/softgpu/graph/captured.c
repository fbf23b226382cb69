/* Graph changes made by stream captures. */
#include "softgpu/graph/captured.h"

#include "softgpu/core/calls.h"
#include "softgpu/graph/node_type.h"

#include <stdlib.h>

static bool exists(CUgraph graph) {
    return sg_graph_get(graph) != NULL;
}

static void release(CUgraph handle) {
    struct sg_graph *graph = sg_graph_get(handle);
    if (!graph)
        return;
    graph->captures--;
    /* A body, or a graph moved into a node meanwhile, is freed with its node. */
    if (!graph->owner)
        sg_graph_free(graph);
}

static bool node_exists(CUgraphNode node) {
    return sg_node_get(node) != NULL;
}

static bool node_is_kernel(CUgraphNode handle) {
    const struct sg_node *node = sg_node_get(handle);
    return node && sg_type_of(&node->params)->has_kernel_ports;
}

/* The handle by which kernels would update a node is returned in the attribute. */
static bool set_attribute(CUgraphNode node, CUlaunchAttributeID id, CUlaunchAttributeValue *value) {
    CUresult result = sg_cuGraphKernelNodeSetAttribute(node, id, value);
    if (result == CUDA_SUCCESS && id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        result = sg_cuGraphKernelNodeGetAttribute(node, id, value);
    return result != CUDA_ERROR_OUT_OF_MEMORY;
}

/* The dependencies of a new node, without those that the application has removed meanwhile. */
struct ends {
    struct sg_node *few[8], **nodes;
    CUgraphEdgeData few_data[8], *data;
    size_t count;
};

static bool find_ends(struct ends *ends, const struct sg_dependencies *set) {
    bool many = set->count > sizeof ends->few / sizeof ends->few[0];
    ends->nodes = many ? reallocarray(NULL, set->count, sizeof *ends->nodes) : ends->few;
    ends->data = many ? reallocarray(NULL, set->count, sizeof *ends->data) : ends->few_data;
    ends->count = 0;
    for (size_t i = 0; ends->nodes && ends->data && i < set->count; i++) {
        struct sg_node *node = sg_node_get(set->nodes[i]);
        if (!node)
            continue;
        ends->nodes[ends->count] = node;
        ends->data[ends->count++] = set->data[i];
    }
    return ends->nodes && ends->data;
}

static void free_ends(struct ends *ends) {
    if (ends->nodes != ends->few)
        free(ends->nodes);
    if (ends->data != ends->few_data)
        free(ends->data);
}

static CUresult add(CUgraph graph, const struct sg_dependencies *dependencies, CUcontext context,
                    CUgraphNodeParams *params, CUgraphNode *handle) {
    struct ends ends;
    struct sg_node *node;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    sg_params_name_context(params, context);
    if (find_ends(&ends, dependencies))
        result = sg_graph_add_captured(sg_graph_get(graph), ends.nodes, ends.data, ends.count,
                                       params, &node);
    free_ends(&ends);
    if (result == CUDA_SUCCESS)
        *handle = SG_HANDLE_POINTER(CUgraphNode, node->handle);
    return result;
}

const struct sg_capture_graphs sg_graph_captures = {
    .add = add,
    .exists = exists,
    .release = release,
    .node_exists = node_exists,
    .node_is_kernel = node_is_kernel,
    .set_attribute = set_attribute,
};
