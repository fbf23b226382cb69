/* Kernel nodes. */
#include "softgpu/core/config.h"
#include "softgpu/graph/dot.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/graph/nodes.h"
#include "softgpu/launch/launch_run.h"
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

/* ---- Execs ----------------------------------------------------------------------------------- */

static CUresult may_launch(void) {
    if (sg_config()->kernels)
        return CUDA_SUCCESS;
    sg_log(SG_LOG_WARNING, "a graph with kernels is not launched: SOFTGPU_KERNELS=0 is set");
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* That of its function. */
static struct sg_context *find_context(const CUgraphNodeParams *params) {
    struct sg_function *function;
    bool found = params->kernel.func &&
                 sg_function_from_handle(params->kernel.func, &function) == CUDA_SUCCESS;
    return found && sg_config()->kernels ? function->context : NULL;
}

/* A node takes a cluster of zeros: then it has none. */
static bool has_attribute(const struct sg_exec_node *node, int id) {
    if (!node->attribute_set[id])
        return false;
    const CUlaunchAttributeValue *value = &node->attributes[id];
    return id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || value->clusterDim.x ||
           value->clusterDim.y || value->clusterDim.z;
}

static unsigned attributes_of(const struct sg_exec_node *node,
                              CUlaunchAttribute attributes[CU_LAUNCH_ATTRIBUTE_MAX]) {
    unsigned count = 0;
    for (int i = 0; node->attribute_set && i < CU_LAUNCH_ATTRIBUTE_MAX; i++)
        if (has_attribute(node, i))
            attributes[count++] =
                (CUlaunchAttribute){.id = (CUlaunchAttributeID)i, .value = node->attributes[i]};
    return count;
}

/* It may begin early if all that it depends on are kernels behind programmatic edges. The one
 * before it in its lane then is among them, or nothing that it depends on. */
static enum sg_early early_of(const struct sg_exec_node *node) {
    enum sg_early early = node->from_count ? SG_EARLY_BEGUN : SG_EARLY_NOT;
    for (size_t i = 0; i < node->from_count; i++) {
        if (node->edges[i].type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
            return SG_EARLY_NOT;
        if (node->edges[i].from_port != CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER)
            early = SG_EARLY_TRIGGERED;
    }
    return early;
}

/* Its arguments are a deep copy: in one piece, with a pointer to each. */
static CUresult make(struct sg_context *context, const struct sg_exec_node *node,
                     struct sg_op **op) {
    const CUDA_KERNEL_NODE_PARAMS_v3 *kernel = &node->params.kernel;
    CUlaunchAttribute attributes[CU_LAUNCH_ATTRIBUTE_MAX];
    struct sg_function *function;
    struct sg_launch launch = {.grid = {kernel->gridDimX, kernel->gridDimY, kernel->gridDimZ},
                               .block = {kernel->blockDimX, kernel->blockDimY, kernel->blockDimZ},
                               .shared = kernel->sharedMemBytes,
                               .params = kernel->kernelParams,
                               .attributes = attributes,
                               .attribute_count = attributes_of(node, attributes),
                               .conditions = sg_launch_conditions,
                               .early = early_of(node)};
    (void)context;
    /* Its module may have been unloaded since the graph was made. */
    CUresult result = sg_function_from_handle(kernel->func, &function);
    if (result == CUDA_SUCCESS)
        result =
            sg_attributes_check(launch.attributes, launch.attribute_count, &launch.cooperative);
    if (result == CUDA_SUCCESS) /* the grid may have been another when the attribute was set */
        result = sg_launch_check_cluster(function, &launch);
    if (result == CUDA_SUCCESS && launch.cooperative)
        result = sg_launch_check_cooperative(function, &launch);
    return result == CUDA_SUCCESS ? sg_launch_make(function, &launch, op) : result;
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
    .find_context = find_context,
    .may_launch = may_launch,
    .make = make,
    .discard = sg_launch_discard,
    .rewind = sg_launch_rewind,
};
