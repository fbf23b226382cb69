/*
 * Allocation nodes by address, and the nodes that free what they allocate.
 *
 * "It is not possible to free an allocation in both the owning graph and another graph", and within
 * one graph only once. On H200 the owning graph cannot free it even when that other graph is gone.
 * Nothing can be freed once the allocation node is gone.
 */
#include "softgpu/address/tree.h"
#include "softgpu/graph/nodes.h"

#include <stdlib.h>

struct sg_node_allocation {
    struct sg_tree_node by_address;
    struct sg_node *node;
    struct sg_node *frees; /* nodes that free it */
    bool freed_elsewhere;  /* freed by a node of another graph, which may be gone */
};

static struct sg_tree allocations;

static struct sg_node_allocation *find(CUdeviceptr address) {
    struct sg_tree_node *node = sg_tree_at_most(&allocations, address);
    return node && node->key == address ? SG_TREE_OWNER(node, struct sg_node_allocation, by_address)
                                        : NULL;
}

bool sg_allocation_begin(struct sg_node *node) {
    struct sg_node_allocation *made = calloc(1, sizeof *made);
    if (!made)
        return false;
    made->by_address.key = node->params.alloc.dptr;
    made->node = node;
    node->allocation = made;
    sg_tree_insert(&allocations, &made->by_address);
    return true;
}

CUresult sg_allocation_may_free(const struct sg_graph *graph, CUdeviceptr address) {
    const struct sg_node_allocation *allocation = find(address);
    if (!allocation)
        return CUDA_ERROR_INVALID_VALUE;
    const struct sg_graph *owner = allocation->node->graph;
    if (graph == owner && allocation->freed_elsewhere)
        return CUDA_ERROR_INVALID_VALUE;
    for (const struct sg_node *other = allocation->frees; other; other = other->next_free)
        if (graph == owner || other->graph == owner || other->graph == graph)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

void sg_allocation_free_by(struct sg_node *node, const struct sg_graph *graph) {
    struct sg_node_allocation *allocation = find(node->params.free.dptr);
    node->allocation = allocation;
    node->previous_free = NULL;
    node->next_free = allocation->frees;
    if (allocation->frees)
        allocation->frees->previous_free = node;
    allocation->frees = node;
    allocation->freed_elsewhere |= graph != allocation->node->graph;
}

static void end_allocation(struct sg_node_allocation *allocation) {
    for (struct sg_node *node = allocation->frees; node; node = node->next_free)
        node->allocation = NULL;
    sg_tree_remove(&allocations, &allocation->by_address);
    free(allocation);
}

void sg_allocation_node_gone(struct sg_node *node) {
    struct sg_node_allocation *allocation = node->allocation;
    if (!allocation)
        return;
    if (allocation->node == node) {
        end_allocation(allocation);
        return;
    }
    if (node->next_free)
        node->next_free->previous_free = node->previous_free;
    if (node->previous_free)
        node->previous_free->next_free = node->next_free;
    else
        allocation->frees = node->next_free;
}
