/* The operations of nodes, as the rows of their types make them. */
#include "softgpu/graph/node_type.h"

CUresult sg_work_make(struct sg_context *context, const struct sg_exec_node *node,
                      struct sg_op **op) {
    const struct sg_node_type *type = sg_type_of(&node->params);
    return type->make ? type->make(context, node, op) : CUDA_ERROR_NOT_SUPPORTED;
}

void sg_work_discard(const struct sg_node_type *type, struct sg_op *op) {
    while (op) {
        struct sg_op *next = op->next;
        if (type->discard)
            type->discard(op);
        else
            sg_op_free(op);
        op = next;
    }
}
