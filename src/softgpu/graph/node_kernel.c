/* Kernel nodes. */
#include "softgpu/graph/dot.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"
#include "softgpu/module/function.h"

static CUresult resolve(struct sg_graph *graph, CUgraphNodeParams *params) {
    (void)graph;
    return sg_kernel_params_resolve(&params->kernel);
}

static CUresult check(const CUgraphNodeParams *params) {
    return sg_kernel_params_check(&params->kernel);
}

static CUresult deepen(CUgraphNodeParams *to, const CUgraphNodeParams *from) {
    return sg_kernel_params_copy(&to->kernel, &from->kernel, from->reserved2 == SG_PARAMS_DEEP);
}

static void free_arguments(CUgraphNodeParams *params) {
    sg_kernel_params_free(&params->kernel);
}

/* ---- Updates: "the owning context of the function cannot change" ----------------------------- */

/* NULL if the function is gone. */
static const struct sg_context *context_of(const CUDA_KERNEL_NODE_PARAMS_v3 *kernel) {
    struct sg_function *function;
    struct sg_context *context;
    if (kernel->func)
        return sg_function_from_handle(kernel->func, &function) == CUDA_SUCCESS ? function->context
                                                                                : NULL;
    return sg_context_from_handle(kernel->ctx, &context) == CUDA_SUCCESS ? context : NULL;
}

static CUgraphExecUpdateResult compare(const CUgraphNodeParams *now,
                                       const CUgraphNodeParams *wanted) {
    const struct sg_context *before = context_of(&now->kernel);
    return !before || before == context_of(&wanted->kernel)
               ? CU_GRAPH_EXEC_UPDATE_SUCCESS
               : CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
}

static CUresult may_launch(void) {
    sg_log(SG_LOG_WARNING,
           "a graph with kernels is not launched: there is nothing here that runs them");
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- As text --------------------------------------------------------------------------------- */

/* Kernel names may contain characters that are special in records. */
static void draw_name(FILE *out, const char *name) {
    for (; *name; name++) {
        if (*name == '"' || *name == '\\' || *name == '{' || *name == '}' || *name == '|' ||
            *name == '<' || *name == '>')
            putc('\\', out);
        putc(*name, out);
    }
}

static void draw_attributes(const struct sg_picture *picture, const struct sg_node *node) {
    for (int i = 0; node->attribute_set && i < CU_LAUNCH_ATTRIBUTE_MAX; i++)
        if (node->attribute_set[i])
            fprintf(picture->out, "|attribute %d: %d", i, node->attributes[i].cooperative);
}

static void draw(const struct sg_picture *picture, const struct sg_node *node) {
    const CUDA_KERNEL_NODE_PARAMS_v3 *kernel = &node->params.kernel;
    struct sg_function *function = NULL;
    FILE *out = picture->out;
    if (kernel->func && sg_function_from_handle(kernel->func, &function) == CUDA_SUCCESS) {
        fputc('|', out);
        draw_name(out, function->image->name);
    }
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
        fprintf(out, "|function: %p", (void *)kernel->func);
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
        fprintf(out, "|grid: %u, %u, %u|block: %u, %u, %u|shared: %u", kernel->gridDimX,
                kernel->gridDimY, kernel->gridDimZ, kernel->blockDimX, kernel->blockDimY,
                kernel->blockDimZ, kernel->sharedMemBytes);
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES))
        draw_attributes(picture, node);
}

const struct sg_node_type sg_node_kernel = {
    .name = "KERNEL",
    .runtime_name = "cudaGraphNodeTypeKernel",
    .size = SG_NODE_SIZE(kernel),
    .context = SG_NODE_OFFSET(kernel.ctx),
    .has_attributes = true,
    .has_kernel_ports = true,
    .can_be_disabled = true,
    .launches_on_device = true,
    .resolve = resolve,
    .check = check,
    .deepen = deepen,
    .free = free_arguments,
    .compare = compare,
    .draw = draw,
    .may_launch = may_launch,
};
