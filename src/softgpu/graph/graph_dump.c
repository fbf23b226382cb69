/* Graphs and user objects in the state dump and the leak report. */
#include "softgpu/core/chapter.h"
#include "softgpu/core/text.h"
#include "softgpu/graph/exec.h"
#include "softgpu/graph/graph.h"
#include "softgpu/graph/user_object.h"

struct lines {
    struct sg_text *text;
    unsigned number;
};

static size_t count_edges(const struct sg_graph *graph) {
    size_t edges = 0;
    for (const struct sg_node *node = graph->first; node; node = node->next)
        edges += node->to.count;
    return edges;
}

static unsigned count_objects(const struct sg_graph *graph) {
    unsigned references = 0;
    for (const struct sg_held_object *entry = graph->objects; entry; entry = entry->next)
        references += entry->count;
    return references;
}

static void graph_line(uint64_t handle, void *object, void *user) {
    (void)handle;
    const struct sg_graph *graph = object;
    struct lines *lines = user;
    uint64_t digest = 0; /* embedded graphs are part of the dump of the graph around them */
    if (!graph->owner)
        (void)sg_graph_digest(graph, &digest);
    sg_text_line(
        lines->text,
        "graph %u: nodes %zu edges %zu memory-nodes %llu objects %u conditions %zu digest %llx%s",
        ++lines->number, graph->count, count_edges(graph), (unsigned long long)graph->memory_nodes,
        count_objects(graph), graph->condition_count, (unsigned long long)digest,
        graph->owner ? " embedded" : "");
}

static void object_line(uint64_t handle, void *object, void *user) {
    struct lines *lines = user;
    sg_text_handle(lines->text, handle, NULL);
    sg_text_line(lines->text, "user object %u: owned %llu held %llu", ++lines->number,
                 (unsigned long long)sg_user_object_owned(object),
                 (unsigned long long)sg_user_object_held(object));
}

static void dump_graphs(struct sg_text *text) {
    struct lines graphs = {text, 0}, objects = {text, 0};
    sg_handle_each(SG_KIND_GRAPH, graph_line, &graphs);
    sg_handle_each(SG_KIND_USER_OBJECT, object_line, &objects);
}

/* Embedded graphs are freed with the graph around them. */
static void leaked_graph(uint64_t handle, void *object, void *user) {
    const struct sg_graph *graph = object;
    struct lines *lines = user;
    if (graph->owner)
        return;
    sg_text_handle(lines->text, handle, NULL);
    sg_text_line(lines->text, "graph %u: %zu node%s, not destroyed", ++lines->number, graph->count,
                 graph->count == 1 ? "" : "s");
}

static void leaks_of_graphs(struct sg_text *text) {
    struct lines graphs = {text, 0}, objects = {text, 0};
    sg_handle_each(SG_KIND_GRAPH, leaked_graph, &graphs);
    sg_handle_each(SG_KIND_USER_OBJECT, object_line, &objects);
}

static void dump(struct sg_text *text) {
    dump_graphs(text);
    sg_execs_dump(text);
}

static void leaks(struct sg_text *text) {
    leaks_of_graphs(text);
    sg_execs_leaks(text);
}

static uint64_t reclaim(int device, uint64_t bytes) {
    (void)bytes;
    return sg_graph_memory_reclaim(device);
}

const struct sg_chapter sg_graph_chapter = {
    .dump = dump,
    .leaks = leaks,
    .leak_kind = SG_LEAK_GRAPHS,
    .reclaim = reclaim,
};
