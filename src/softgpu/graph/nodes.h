/* Internals of nodes; inside graph/ only. Everything here requires the lock. */
#ifndef SG_GRAPH_NODES_H
#define SG_GRAPH_NODES_H

#include "softgpu/graph/graph.h"

/* Creates a node with a handle and deep parameters, in no graph. NULL on failure, with *result. */
struct sg_node *sg_node_new(const CUgraphNodeParams *params, CUresult *result);
/* Appends it to the graph's list. */
void sg_node_link(struct sg_graph *graph, struct sg_node *node);
/* Adds to memory_nodes of the graph and of those that contain it. */
void sg_graph_count_memory(struct sg_graph *graph, int64_t nodes);

/* Whether a graph may be copied: not with nodes that can exist only once (restrict.c). */
CUresult sg_graph_may_copy(const struct sg_graph *graph);
/* Whether it may become the child of a node in another graph, copied or moved there. */
CUresult sg_graph_may_embed(struct sg_graph *graph, const CUDA_CHILD_GRAPH_NODE_PARAMS *params);
bool sg_node_is_updatable(const struct sg_node *node);

/* allocations.c: which addresses allocation nodes have handed out, and which nodes free them.
 * sg_allocation_begin is false when out of memory. */
bool sg_allocation_begin(struct sg_node *node);
CUresult sg_allocation_may_free(const struct sg_graph *graph, CUdeviceptr address);
void sg_allocation_free_by(struct sg_node *node, const struct sg_graph *graph);
void sg_allocation_node_gone(struct sg_node *node);

/* clone.c: the embedded graph of a child graph node, copied or moved. */
CUresult sg_node_embed(struct sg_node *node, const CUDA_CHILD_GRAPH_NODE_PARAMS *params);
/* Replaces the embedded graph. */
CUresult sg_node_embed_again(struct sg_node *node, const CUDA_CHILD_GRAPH_NODE_PARAMS *params);
/* clone.c: the index of nodes by original: removes one node that is being freed, or everything. */
void sg_graph_forget_copy(struct sg_graph *graph, const struct sg_node *node);
void sg_graph_forget_index(struct sg_graph *graph);

/* conditional.c */
CUresult sg_node_make_bodies(struct sg_graph *graph, struct sg_node *node,
                             CUgraphNodeParams *params);
void sg_conditions_free(struct sg_graph *graph);

/* node_layouts.c */
void sg_memset_widen(CUDA_MEMSET_NODE_PARAMS_v2 *to, const CUDA_MEMSET_NODE_PARAMS *from,
                     CUcontext context);
void sg_kernel_widen_v1(CUDA_KERNEL_NODE_PARAMS_v3 *to, const CUDA_KERNEL_NODE_PARAMS_v1 *from);
void sg_kernel_narrow_v1(CUDA_KERNEL_NODE_PARAMS_v1 *to, const CUDA_KERNEL_NODE_PARAMS_v3 *from);
void sg_kernel_widen(CUDA_KERNEL_NODE_PARAMS_v3 *to, const CUDA_KERNEL_NODE_PARAMS *from);
void sg_kernel_narrow(CUDA_KERNEL_NODE_PARAMS *to, const CUDA_KERNEL_NODE_PARAMS_v3 *from);

/* node_params.c: whether the bytes that the type does not use are zero. */
bool sg_params_unused_zero(const CUgraphNodeParams *params);

/* node_kernel_params.c */
CUresult sg_kernel_params_check(const CUDA_KERNEL_NODE_PARAMS_v3 *params);
CUresult sg_kernel_params_copy(CUDA_KERNEL_NODE_PARAMS_v3 *to,
                               const CUDA_KERNEL_NODE_PARAMS_v3 *from, bool deep);
void sg_kernel_params_free(CUDA_KERNEL_NODE_PARAMS_v3 *params);
/* The parameters as given: with `extra` if the arguments were passed that way. */
CUDA_KERNEL_NODE_PARAMS_v3 sg_kernel_params_given(const CUDA_KERNEL_NODE_PARAMS_v3 *params);
/* Replaces the named kernel or function by the kernel's function and its context. */
CUresult sg_kernel_params_resolve(CUDA_KERNEL_NODE_PARAMS_v3 *params);
/* Copies the attributes that are set; false when out of memory. */
bool sg_node_attributes_copy(struct sg_node *to, const struct sg_node *from);

#endif
