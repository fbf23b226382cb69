/* cuGraphDebugDotPrint: a file that says what is in the graph. */
#include "harness.h"
#include "temporary.h"

static char path[TEMPORARY_ROOM];

static int begin(void **state) {
    int fd = temporary_file(path, "gpumem-dot");
    assert_true(fd >= 0);
    close(fd);
    return test_begin(state);
}

AFTER(test_end) {
    unlink(path);
}

EACH_TEST(begin, after);

static char *contents(void) {
    static char text[65536];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static unsigned arrows(const char *text) {
    unsigned count = 0;
    for (text = strstr(text, "->"); text; text = strstr(text + 2, "->"))
        count++;
    return count;
}

static void work(void *data) {
}

TEST(the_dot_file_shows_nodes_and_edges) {
    CUDA_HOST_NODE_PARAMS host = {work, NULL};
    CUgraph graph = new_graph();
    CUgraphNode a = MADE_CU(CUgraphNode, cuGraphAddEmptyNode, graph, NULL, 0);
    (void)MADE_CU(CUgraphNode, cuGraphAddHostNode, graph, &a, 1, &host);
    OK_CU(cu.cuGraphDebugDotPrint(graph, path, 0));
    char *text = contents();
    assert_true(strncmp(text, "digraph", 7) == 0);
    assert_int_equal(arrows(text), 1);
    assert_non_null(strstr(text, "EMPTY"));
    assert_non_null(strstr(text, "HOST"));
    size_t plain = strlen(text);
    OK_CU(cu.cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
    assert_true(strlen(contents()) > plain);
}

TEST(invalid_arguments_are_refused) {
    CUgraph graph = new_graph();
    FAILS_CU(OPERATING_SYSTEM,
             cu.cuGraphDebugDotPrint(graph, "/tmp/gpumem-no-such-folder/a.dot", 0));
}

/* Each flag adds what it names. */
TEST(flags_add_parameters_to_the_dot_file) {
    NEEDS_SOFTGPU("what exactly a driver writes is its own affair");
    char wanted[64];
    CUdeviceptr memory = new_memory(4096);
    CUDA_MEMSET_NODE_PARAMS set = {.dst = memory, .elementSize = 1, .width = 17, .height = 1};
    CUgraph graph = new_graph();
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddMemsetNode, graph, NULL, 0, &set, ctx);
    OK_CU(cu.cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS));
    snprintf(wanted, sizeof wanted, "0x%llx", (unsigned long long)memory);
    assert_non_null(strstr(contents(), wanted));
    snprintf(wanted, sizeof wanted, "0x%llx", (unsigned long long)(uintptr_t)node);
    assert_null(strstr(contents(), wanted));
    OK_CU(cu.cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES));
    assert_non_null(strstr(contents(), wanted));
    OK_CU(cu.cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES));
    assert_non_null(strstr(contents(), "cudaGraphNodeTypeMemset"));
    CUgraph child = new_graph();
    (void)MADE_CU(CUgraphNode, cuGraphAddEmptyNode, child, NULL, 0);
    OK_CU(cu.cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    OK_CU(cu.cuGraphDebugDotPrint(graph, path, 0));
    assert_non_null(strstr(contents(), "cluster_2"));
}
