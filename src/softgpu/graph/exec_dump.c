/* Executable graphs and graph memory in the state dump and the leak report. */
#include "base/xxh.h"
#include "softgpu/core/chapter.h"
#include "softgpu/core/text.h"
#include "softgpu/device/device.h"
#include "softgpu/graph/graph_memory.h"
#include "softgpu/graph/node_type.h"

struct nodes {
    unsigned disabled;
    uint64_t digest;
};

/* For types whose parameters own no memory. */
static void add_node(struct sg_exec_node *node, void *user) {
    struct nodes *nodes = user;
    const CUgraphNodeParams *params = &node->params;
    const struct sg_node_type *type = sg_type_of(params);
    uint64_t seed = nodes->digest * 31 + (uint64_t)params->type;
    nodes->disabled += !node->enabled;
    nodes->digest = type->flat ? gm_xxh3(params->reserved1, type->size, seed) : seed;
}

static void exec_lines(struct sg_text *text, const char *end) {
    unsigned number = 0;
    for (const struct sg_exec *exec = sg_execs; exec; exec = exec->next) {
        struct nodes nodes = {0};
        sg_exec_part_each(exec->root, add_node, &nodes);
        sg_text_handle(text, exec->handle, NULL);
        sg_text_line(text,
                     "executable graph %u: nodes %zu steps %zu lanes %u flags 0x%llx, %u disabled, "
                     "digest %llx%s",
                     ++number, exec->node_count, exec->plan.count, exec->plan.lane_count,
                     (unsigned long long)exec->flags, nodes.disabled,
                     (unsigned long long)nodes.digest, end);
    }
}

/* What launches left allocated, and the application has not freed. */
static void left_lines(struct sg_text *text, const char *end) {
    unsigned number = 0;
    for (struct sg_range *range = sg_range_from(0); range; range = sg_range_next(range))
        if (range->ops == &sg_graph_range_ops) {
            sg_text_address(text, range->start, range->origin, NULL);
            sg_text_line(text, "graph allocation %u: %zu bytes on device %d%s", ++number,
                         range->size, range->device, end);
        }
}

struct kernels {
    struct sg_text *text;
    unsigned exec, kernel;
};

static void kernel_line(struct sg_exec_node *node, void *user) {
    struct kernels *kernels = user;
    const CUDA_KERNEL_NODE_PARAMS_v3 *params = &node->params.kernel;
    if (node->params.type != CU_GRAPH_NODE_TYPE_KERNEL)
        return;
    sg_text_line(kernels->text,
                 "executable graph %u kernel %u: grid %u %u %u block %u %u %u shared %u%s",
                 kernels->exec, ++kernels->kernel, params->gridDimX, params->gridDimY,
                 params->gridDimZ, params->blockDimX, params->blockDimY, params->blockDimZ,
                 params->sharedMemBytes, node->enabled ? "" : " disabled");
}

/* The parameters that kernels would be given, after all updates. */
static void kernel_lines(struct sg_text *text) {
    struct kernels kernels = {.text = text};
    for (const struct sg_exec *exec = sg_execs; exec; exec = exec->next) {
        kernels.exec++;
        kernels.kernel = 0;
        sg_exec_part_each(exec->root, kernel_line, &kernels);
    }
}

void sg_execs_dump(struct sg_text *text) {
    exec_lines(text, "");
    kernel_lines(text);
    left_lines(text, "");
    for (int i = 0; i < sg_device_count(); i++)
        if (sg_graph_memory_reserved(i) > 0)
            sg_text_line(text, "graph memory of device %d: reserved %llu", i,
                         (unsigned long long)sg_graph_memory_reserved(i));
}

/* Memory kept for the next launch is not a leak. */
void sg_execs_leaks(struct sg_text *text) {
    exec_lines(text, ", not destroyed");
    sg_text_kind(text, SG_LEAK_MEMORY);
    left_lines(text, ", not freed");
}
