/* Attributes of kernel nodes. */
#include "softgpu/core/calls.h"
#include "softgpu/graph/nodes.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct sg_node *node) {
    if (!node->attributes)
        node->attributes = calloc(CU_LAUNCH_ATTRIBUTE_MAX, sizeof *node->attributes);
    if (!node->attribute_set)
        node->attribute_set = calloc(CU_LAUNCH_ATTRIBUTE_MAX, sizeof *node->attribute_set);
    return node->attributes && node->attribute_set;
}

bool sg_node_attributes_copy(struct sg_node *to, const struct sg_node *from) {
    if (!from->attributes || !from->attribute_set)
        return true;
    if (!make_room(to))
        return false;
    memcpy(to->attributes, from->attributes, CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->attributes);
    memcpy(to->attribute_set, from->attribute_set,
           CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->attribute_set);
    return true;
}

static bool is_kernel(const struct sg_node *node) {
    return node && node->params.type == CU_GRAPH_NODE_TYPE_KERNEL;
}

/* Launch attributes that a node of a graph has; the others are about streams. */
static bool of_kernel_nodes(CUkernelNodeAttrID attr) {
    switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    default:
        return false;
    }
}

static CUkernelNodeAttrValue fresh(CUkernelNodeAttrID attr) {
    CUkernelNodeAttrValue value = {.pad = {0}};
    if (attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
        value.memSyncDomainMap.remote = 1;
    if (attr == CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        value.sharedMemCarveout = UINT32_MAX;
    return value;
}

CUresult sg_cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                          CUkernelNodeAttrValue *value_out) {
    const struct sg_node *node = sg_node_get(hNode);
    if (!is_kernel(node) || !value_out || !of_kernel_nodes(attr))
        return CUDA_ERROR_INVALID_VALUE;
    bool set = node->attribute_set && node->attribute_set[attr];
    *value_out = set ? node->attributes[attr] : fresh(attr);
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                          const CUkernelNodeAttrValue *value) {
    struct sg_node *node = sg_node_get(hNode);
    if (!is_kernel(node) || !value || !of_kernel_nodes(attr))
        return CUDA_ERROR_INVALID_VALUE;
    if (!make_room(node))
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->attributes[attr] = *value;
    node->attribute_set[attr] = true;
    return CUDA_SUCCESS;
}

CUresult sg_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
    struct sg_node *to = sg_node_get(dst);
    const struct sg_node *from = sg_node_get(src);
    if (!is_kernel(to) || !is_kernel(from))
        return CUDA_ERROR_INVALID_VALUE;
    if (to == from)
        return CUDA_SUCCESS;
    if (!from->attributes && to->attribute_set)
        memset(to->attribute_set, 0, CU_LAUNCH_ATTRIBUTE_MAX * sizeof *to->attribute_set);
    return sg_node_attributes_copy(to, from) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
