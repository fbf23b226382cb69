/* What a capture has made, for the scenarios of captures. */
#ifndef PARITY_CAPTURE_SEEN_H
#define PARITY_CAPTURE_SEEN_H

#include "../parity.h"

static inline const char *result_text(CUresult result) {
    const char *name = par_result_name(result);
    return name != NULL ? name : "?";
}

/* The types of a graph's nodes and the number of its edges. */
static inline void see_graph(CUgraph graph) {
    CUgraphNode nodes[32];
    size_t count = 32, edges = 0;
    char text[256] = "";
    size_t used = 0;
    if (graph == NULL || par.api->cuGraphGetNodes(graph, nodes, &count) != CUDA_SUCCESS) {
        par_see("graph", "none");
        return;
    }
    par.api->cuGraphGetEdges(graph, NULL, NULL, &edges);
    for (size_t i = 0; i < count && used < sizeof(text) - 8; i++) {
        CUgraphNodeType type;
        par.api->cuGraphNodeGetType(nodes[i], &type);
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %d", (int)type);
    }
    par_see("graph", "%zu nodes, types%s, %zu edges", count, text, edges);
}

static inline void end_and_see(CUstream s, const char *cls) {
    CUgraph graph = NULL;
    CALLO(cuStreamEndCapture, cls, (s, &graph), OUT_C(graph));
    see_graph(par_last() == CUDA_SUCCESS ? graph : NULL);
    if (par_last() == CUDA_SUCCESS)
        SETUP(cuGraphDestroy, (graph));
}

#endif
