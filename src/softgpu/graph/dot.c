/*
 * cuGraphDebugDotPrint: a graph as text for Graphviz.
 *
 * A graph is a cluster, and so are the graphs embedded in it. A node is a record whose first field
 * gives its number and type; the other fields are parameters, as the flags request. Numbers count
 * from 0 in order of creation; handles are written if the flags request them.
 */
#include "softgpu/graph/dot.h"
#include "base/descriptor.h"
#include "base/xxh.h"
#include "softgpu/core/calls.h"
#include "softgpu/graph/edges.h"
#include "softgpu/graph/node_type.h"
#include "softgpu/stream/capture.h"

#include <inttypes.h>
#include <stdlib.h>

void sg_picture_count(const struct sg_picture *picture, unsigned flag, const char *what,
                      unsigned count) {
    if (sg_picture_wants(picture, flag))
        fprintf(picture->out, "|%s: %u", what, count);
}

/* ---- Structure ------------------------------------------------------------------------------ */

/* Nodes have no numbers, but their marks serve: the walk's first plus the number. */
struct walk {
    unsigned graph;
    uint64_t first;
};

static void put_node(const struct sg_picture *picture, const struct walk *walk,
                     const struct sg_node *node) {
    uint64_t number = node->mark - walk->first;
    bool runtime = picture->flags & CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES;
    const struct sg_node_type *type = sg_type_of(&node->params);
    FILE *out = picture->out;
    fprintf(out, "\"graph_%u_node_%" PRIu64 "\" [shape=\"record\" label=\"{%" PRIu64 " %s",
            walk->graph, number, number, runtime ? type->runtime_name : type->name);
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
        fprintf(out, "|node: 0x%" PRIx64, node->handle);
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO))
        fprintf(out, "|before: %zu after: %zu", node->from.count, node->to.count);
    if (type->draw)
        type->draw(picture, node);
    fputs("}\"];\n", out);
}

static void put_edges(const struct sg_picture *picture, const struct walk *walk,
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

static void put_graph(struct sg_picture *picture, const struct sg_graph *graph) {
    struct walk walk = {++picture->graphs, sg_graph_walks(graph->count)};
    uint64_t number = walk.first;
    for (struct sg_node *node = graph->first; node; node = node->next)
        node->mark = number++;
    fprintf(picture->out, "subgraph cluster_%u {\nlabel=\"graph_%u", walk.graph, walk.graph);
    if (sg_picture_wants(picture, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))
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

/* The whole text, allocated with malloc; NULL when out of memory. */
static char *draw(const struct sg_graph *graph, unsigned flags, size_t *size) {
    char *text = NULL;
    struct sg_picture picture = {.flags = flags};
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

/* All but handles, which say nothing about a graph. */
#define PARAMETERS                                                                                 \
    (0xffffu & ~(unsigned)(CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE | CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES))

bool sg_graph_digest(const struct sg_graph *graph, uint64_t *digest) {
    size_t size;
    char *text = draw(graph, PARAMETERS, &size);
    if (text)
        *digest = gm_xxh3(text, size, 0);
    free(text);
    return text != NULL;
}

struct output {
    const char *path, *text;
    size_t size;
    bool written;
};

/* Without the lock: the path may name a pipe whose reader is this program. */
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
