/* Graphs and empty nodes under the names that lines give them. */
#ifndef PARITY_GRAPH_NAMES_H
#define PARITY_GRAPH_NAMES_H

#include "../parity.h"

static inline CUgraph new_graph(const char *name) {
    CUgraph g = PAR_MADE(CUgraph, cuGraphCreate, 0);
    par_name((uint64_t)(uintptr_t)g, 0, name);
    return g;
}

static inline CUgraphNode empty(CUgraph g, const CUgraphNode *after, size_t count,
                                const char *name) {
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddEmptyNode, g, after, count);
    par_name((uint64_t)(uintptr_t)node, 0, name);
    return node;
}

#endif
