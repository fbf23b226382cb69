/*
 * cuGraphDebugDotPrint: a graph as text for Graphviz.
 *
 * A graph is a cluster, and so are the graphs embedded in it. A node is a record whose first field
 * names its number and type, and whose others are parameters as the flags ask for them. Numbers
 * count from 0 in order of creation; handles are written where the flags want them.
 */
#include "base/descriptor.h"
#include "softgpu/core/calls.h"
#include "softgpu/graph/edges.h"
#include "softgpu/graph/graph.h"
#include "softgpu/module/function.h"
#include "softgpu/stream/capture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct picture {
    FILE *out;
    unsigned flags;
    unsigned graphs; /* numbered so far */
};

static bool wants(const struct picture *picture, unsigned flag) {
    return picture->flags & (flag | CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE);
}

/* The driver's name of a type, or the runtime library's, which has none for batches. */
static const char *type_name(CUgraphNodeType type, bool runtime) {
    static const char *const names[][2] = {
        [CU_GRAPH_NODE_TYPE_KERNEL] = {"KERNEL", "cudaGraphNodeTypeKernel"},
        [CU_GRAPH_NODE_TYPE_MEMCPY] = {"MEMCPY", "cudaGraphNodeTypeMemcpy"},
        [CU_GRAPH_NODE_TYPE_MEMSET] = {"MEMSET", "cudaGraphNodeTypeMemset"},
        [CU_GRAPH_NODE_TYPE_HOST] = {"HOST", "cudaGraphNodeTypeHost"},
        [CU_GRAPH_NODE_TYPE_GRAPH] = {"GRAPH", "cudaGraphNodeTypeGraph"},
        [CU_GRAPH_NODE_TYPE_EMPTY] = {"EMPTY", "cudaGraphNodeTypeEmpty"},
        [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = {"WAIT_EVENT", "cudaGraphNodeTypeWaitEvent"},
        [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = {"EVENT_RECORD", "cudaGraphNodeTypeEventRecord"},
        [CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL] = {"EXT_SEMAS_SIGNAL",
                                                 "cudaGraphNodeTypeExtSemaphoreSignal"},
        [CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT] = {"EXT_SEMAS_WAIT",
                                               "cudaGraphNodeTypeExtSemaphoreWait"},
        [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = {"MEM_ALLOC", "cudaGraphNodeTypeMemAlloc"},
        [CU_GRAPH_NODE_TYPE_MEM_FREE] = {"MEM_FREE", "cudaGraphNodeTypeMemFree"},
        [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = {"BATCH_MEM_OP", "BATCH_MEM_OP"},
        [CU_GRAPH_NODE_TYPE_CONDITIONAL] = {"CONDITIONAL", "cudaGraphNodeTypeConditional"},
    };
    return type <= CU_GRAPH_NODE_TYPE_CONDITIONAL ? names[type][runtime] : "UNKNOWN";
}

/* ---- Parameters, each a field of the record ------------------------------------------------- */

/* Kernel names may hold what records mean something by. */
static void put_name(FILE *out, const char *name) {
    for (; *name; name++) {
        if (*name == '"' || *name == '\\' || *name == '{' || *name == '}' || *name == '|' ||
            *name == '<' || *name == '>')
            putc('\\', out);
        putc(*name, out);
    }
}

static void put_attributes(const struct picture *picture, const struct sg_node *node) {
    for (int i = 0; node->attribute_set && i < CU_LAUNCH_ATTRIBUTE_MAX; i++)
        if (node->attribute_set[i])
            fprintf(picture->out, "|attribute %d: %d", i, node->attributes[i].cooperative);
}

static void put_kernel(const struct picture *picture, const struct sg_node *node) {
    const CUDA_KERNEL_NODE_PARAMS_v3 *kernel = &node->params.kernel;
    struct sg_function *function = NULL;
    FILE *out = picture->out;
    if (kernel->func && sg_function_from_handle(kernel->func, &function) == CUDA_SUCCESS) {
        fputc('|', out);
        put_name(out, function->image->name);
    }
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
        fprintf(out, "|function: %p", (void *)kernel->func);
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
        fprintf(out, "|grid: %u, %u, %u|block: %u, %u, %u|shared: %u", kernel->gridDimX,
                kernel->gridDimY, kernel->gridDimZ, kernel->blockDimX, kernel->blockDimY,
                kernel->blockDimZ, kernel->sharedMemBytes);
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES))
        put_attributes(picture, node);
}

static const char *side(CUmemorytype type) {
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        return "host";
    case CU_MEMORYTYPE_DEVICE:
        return "device";
    case CU_MEMORYTYPE_ARRAY:
        return "array";
    default:
        return "unified";
    }
}

static void put_memcpy(const struct picture *picture, const CUDA_MEMCPY3D *copy) {
    fprintf(picture->out, "|%s to %s", side(copy->srcMemoryType), side(copy->dstMemoryType));
    if (!wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
        return;
    const void *host_from = copy->srcHost, *host_to = copy->dstHost;
    bool from_host = copy->srcMemoryType == CU_MEMORYTYPE_HOST;
    bool to_host = copy->dstMemoryType == CU_MEMORYTYPE_HOST;
    fprintf(picture->out, "|from: 0x%" PRIx64 " pitch %zu height %zu at %zu, %zu, %zu",
            (uint64_t)(from_host ? (uintptr_t)host_from : copy->srcDevice), copy->srcPitch,
            copy->srcHeight, copy->srcXInBytes, copy->srcY, copy->srcZ);
    fprintf(picture->out, "|to: 0x%" PRIx64 " pitch %zu height %zu at %zu, %zu, %zu",
            (uint64_t)(to_host ? (uintptr_t)host_to : copy->dstDevice), copy->dstPitch,
            copy->dstHeight, copy->dstXInBytes, copy->dstY, copy->dstZ);
    fprintf(picture->out, "|size: %zu, %zu, %zu", copy->WidthInBytes, copy->Height, copy->Depth);
}

static void put_memset(const struct picture *picture, const CUDA_MEMSET_NODE_PARAMS_v2 *set) {
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
        fprintf(
            picture->out, "|to: 0x%" PRIx64 "|pitch: %zu|value: 0x%x|element: %u|size: %zu, %zu",
            (uint64_t)set->dst, set->pitch, set->value, set->elementSize, set->width, set->height);
}

static void put_allocation(const struct picture *picture, const CUgraphNodeParams *params) {
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
        if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS))
            fprintf(picture->out, "|address: 0x%" PRIx64, (uint64_t)params->free.dptr);
        return;
    }
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS))
        fprintf(picture->out, "|address: 0x%" PRIx64 "|size: %zu|device: %d",
                (uint64_t)params->alloc.dptr, params->alloc.bytesize,
                params->alloc.poolProps.location.id);
}

static void put_conditional(const struct picture *picture,
                            const CUDA_CONDITIONAL_NODE_PARAMS *conditional) {
    static const char *const types[] = {"if", "while", "switch"};
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS))
        fprintf(picture->out, "|%s|handle: 0x%" PRIx64 "|bodies: %u", types[conditional->type],
                (uint64_t)conditional->handle, conditional->size);
}

static void put_counted(const struct picture *picture, unsigned flag, const char *what,
                        unsigned count) {
    if (wants(picture, flag))
        fprintf(picture->out, "|%s: %u", what, count);
}

static void put_host(const struct picture *picture, const CUDA_HOST_NODE_PARAMS_v2 *host) {
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
        fprintf(picture->out, "|function: 0x%" PRIxPTR "|data: 0x%" PRIxPTR, (uintptr_t)host->fn,
                (uintptr_t)host->userData);
}

static void put_event(const struct picture *picture, CUevent event) {
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS))
        fprintf(picture->out, "|event: 0x%" PRIxPTR, (uintptr_t)event);
}

static void put_params(const struct picture *picture, const struct sg_node *node) {
    const CUgraphNodeParams *params = &node->params;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        put_kernel(picture, node);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        put_memcpy(picture, &params->memcpy.copyParams);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        put_memset(picture, &params->memset);
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        put_host(picture, &params->host);
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        put_event(picture, params->eventWait.event);
        break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        put_event(picture, params->eventRecord.event);
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
        put_counted(picture, CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS, "semaphores",
                    params->extSemSignal.numExtSems);
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        put_counted(picture, CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS, "semaphores",
                    params->extSemWait.numExtSems);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        put_allocation(picture, params);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        put_counted(picture, CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS, "operations",
                    params->memOp.count);
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        put_conditional(picture, &params->conditional);
        break;
    default:
        break;
    }
}

/* ---- Structure ------------------------------------------------------------------------------ */

/* Nodes know no number, but their marks can: the walk's first plus the number. */
struct walk {
    unsigned graph;
    uint64_t first;
};

static void put_node(const struct picture *picture, const struct walk *walk,
                     const struct sg_node *node) {
    uint64_t number = node->mark - walk->first;
    bool runtime = picture->flags & CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES;
    FILE *out = picture->out;
    fprintf(out, "\"graph_%u_node_%" PRIu64 "\" [shape=\"record\" label=\"{%" PRIu64 " %s",
            walk->graph, number, number, type_name(node->params.type, runtime));
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
        fprintf(out, "|node: 0x%" PRIx64, node->handle);
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO))
        fprintf(out, "|before: %zu after: %zu", node->from.count, node->to.count);
    put_params(picture, node);
    fputs("}\"];\n", out);
}

static void put_edges(const struct picture *picture, const struct walk *walk,
                      const struct sg_node *node) {
    for (size_t i = 0; i < node->to.count; i++) {
        const struct sg_edge *edge = &node->to.list[i];
        fprintf(picture->out, "\"graph_%u_node_%" PRIu64 "\" -> \"graph_%u_node_%" PRIu64 "\"",
                walk->graph, node->mark - walk->first, walk->graph, edge->node->mark - walk->first);
        if (!sg_edge_data_plain(&edge->data))
            fprintf(picture->out, " [label=\"port %u type %u\"]", edge->data.from_port,
                    edge->data.type);
        fputs(";\n", picture->out);
    }
}

static void put_graph(struct picture *picture, const struct sg_graph *graph) {
    struct walk walk = {++picture->graphs, sg_graph_walks(graph->count)};
    uint64_t number = walk.first;
    for (struct sg_node *node = graph->first; node; node = node->next)
        node->mark = number++;
    fprintf(picture->out, "subgraph cluster_%u {\nlabel=\"graph_%u", walk.graph, walk.graph);
    if (wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
        fprintf(picture->out, " 0x%" PRIx64, graph->handle);
    fputs("\";\n", picture->out);
    for (const struct sg_node *node = graph->first; node; node = node->next) {
        put_node(picture, &walk, node);
        put_edges(picture, &walk, node);
    }
    for (const struct sg_node *node = graph->first; node; node = node->next) {
        if (node->child)
            put_graph(picture, node->child);
        for (unsigned i = 0; node->bodies && i < node->params.conditional.size; i++)
            put_graph(picture, node->bodies[i]);
    }
    fputs("}\n", picture->out);
}

/* The whole text, from malloc; NULL when out of memory. */
static char *draw(const struct sg_graph *graph, unsigned flags, size_t *size) {
    char *text = NULL;
    struct picture picture = {.flags = flags};
    picture.out = open_memstream(&text, size);
    if (!picture.out)
        return NULL;
    fputs("digraph dot {\n", picture.out);
    put_graph(&picture, graph);
    fputs("}\n", picture.out);
    bool failed = ferror(picture.out) != 0;
    if (fclose(picture.out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

struct output {
    const char *path, *text;
    size_t size;
    bool written;
};

/* Without the lock: the path may lead to a pipe whose reader is this program. */
static void write_out(void *user) {
    struct output *output = user;
    FILE *file = gm_fd_stream(output->path, "w");
    output->written = file && fwrite(output->text, 1, output->size, file) == output->size;
    if (file && fclose(file) != 0)
        output->written = false;
}

static CUresult write_file(const char *path, const char *text, size_t size) {
    struct output output = {.path = path, .text = text, .size = size};
    sg_call_out(false, write_out, &output);
    return output.written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult sg_cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags) {
    const struct sg_graph *graph = sg_graph_get(hGraph);
    if (!graph || !path) /* unknown flags are ignored, as on H200 */
        return CUDA_ERROR_INVALID_VALUE;
    size_t size;
    char *text = draw(graph, flags, &size);
    if (!text)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = write_file(path, text, size);
    free(text);
    return result;
}
