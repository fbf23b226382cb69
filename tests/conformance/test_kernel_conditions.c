/*
 * Conditional nodes whose handles kernels set: IF, WHILE and SWITCH depend on what was computed. On
 * hardware the text needs the device runtime's library, without which it is not loaded.
 */
#include "graph_nodes.h"
#include "kernel_module.h"
#include "kernels.h"

/* note(words, digit): words[0] = 10 words[0] + digit. set(words, handle, index): the handle gets
 * words[index]. down(words, handle, index): and that is one less than before. */
static const char text[] =
    ".extern .func cudaGraphSetConditional (.param .b64 h, .param .b32 v);\n"
    ".visible .entry note(.param .u64 words, .param .u32 digit) {\n"
    ".reg .b64 %d; .reg .b32 %r<4>; ld.param.u64 %d, [words]; ld.param.u32 %r1, [digit];\n"
    "ld.global.u32 %r2, [%d]; mad.lo.u32 %r2, %r2, 10, %r1; st.global.u32 [%d], %r2; ret; }\n"
    ".visible .entry set(.param .u64 words, .param .u64 handle, .param .u32 index) {\n"
    ".reg .b64 %d<4>; .reg .b32 %r<4>; ld.param.u64 %d1, [words]; ld.param.u64 %d2, [handle];\n"
    "ld.param.u32 %r1, [index]; mad.wide.u32 %d1, %r1, 4, %d1; ld.global.u32 %r2, [%d1];\n"
    "{ .param .b64 h; .param .b32 v; st.param.b64 [h], %d2; st.param.b32 [v], %r2;\n"
    "call.uni cudaGraphSetConditional, (h, v); } ret; }\n"
    ".visible .entry down(.param .u64 words, .param .u64 handle, .param .u32 index) {\n"
    ".reg .b64 %d<4>; .reg .b32 %r<4>; ld.param.u64 %d1, [words]; ld.param.u64 %d2, [handle];\n"
    "ld.param.u32 %r1, [index]; mad.wide.u32 %d1, %r1, 4, %d1; ld.global.u32 %r2, [%d1];\n"
    "sub.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2;\n"
    "{ .param .b64 h; .param .b32 v; st.param.b64 [h], %d2; st.param.b32 [v], %r2;\n"
    "call.uni cudaGraphSetConditional, (h, v); } ret; }\n";

static CUmodule module;
static struct shared_words words;

static void begin(void) {
    NEEDS_KERNELS();
    char *whole = kernel_module_text(NULL, text);
    CUresult result = cu.cuModuleLoadData(&module, whole);
    free(whole);
    if (!soft && result != CUDA_SUCCESS)
        SKIP("the driver does not link the device runtime");
    OK_CU(result);
    words = words_make(8);
}

static void end(CUgraph graph) {
    destroy_graph(graph);
    OK_CU(cu.cuModuleUnload(module));
}

static CUgraphNode add_kernel(CUgraph graph, CUgraphNode after, const char *name, void **params) {
    CUDA_KERNEL_NODE_PARAMS node_params = kernel_node(function_of(module, name), 1, 1, params);
    return MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, after ? &after : NULL,
                   after ? 1 : 0, &node_params);
}

static CUgraphNode add_note(CUgraph graph, CUgraphNode after, unsigned digit) {
    void *params[] = {&words.device, &digit};
    return add_kernel(graph, after, "note", params);
}

static CUgraphNode add_setter(CUgraph graph, CUgraphNode after, const char *name,
                              CUgraphConditionalHandle handle, unsigned index) {
    void *params[] = {&words.device, &handle, &index};
    return add_kernel(graph, after, name, params);
}

static CUgraphConditionalHandle new_handle(CUgraph graph, unsigned value) {
    CUgraphConditionalHandle handle =
        MADE_CU(CUgraphConditionalHandle, cuGraphConditionalHandleCreate, graph, ctx, value,
                CU_GRAPH_COND_ASSIGN_DEFAULT);
    return handle;
}

static CUgraphNode add_condition(CUgraph graph, CUgraphNode after, CUgraphConditionalHandle handle,
                                 CUgraphConditionalNodeType type, unsigned size, CUgraph *bodies) {
    CUgraphNode node;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = size;
    params.conditional.ctx = ctx;
    OK_CU(cu.cuGraphAddNode_v2(&node, graph, after ? &after : NULL, NULL, after ? 1 : 0, &params));
    memcpy(bodies, params.conditional.phGraph_out, size * sizeof *bodies);
    return node;
}

/* What was noted by a launch that began with these words. */
static unsigned noted(CUgraphExec exec, unsigned first, unsigned second) {
    words.host[0] = 0;
    words.host[1] = first;
    words.host[2] = second;
    OK_CU(cu.cuGraphLaunch(exec, NULL));
    OK_CU(cu.cuCtxSynchronize());
    return words.host[0];
}

TEST(a_kernel_chooses_the_body_of_an_if_node) {
    begin();
    CUgraph graph = new_graph(), bodies[2];
    CUgraphConditionalHandle handle = new_handle(graph, 0);
    CUgraphNode first = add_setter(graph, NULL, "set", handle, 1);
    CUgraphNode node = add_condition(graph, first, handle, CU_GRAPH_COND_TYPE_IF, 2, bodies);
    add_note(bodies[0], add_note(bodies[0], NULL, 1), 2);
    add_note(bodies[1], NULL, 3);
    add_note(graph, node, 4);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(noted(exec, 1, 0), 124);
    assert_int_equal(noted(exec, 0, 0), 34);
    assert_int_equal(noted(exec, 77, 0), 124);
    end(graph);
}

TEST(a_while_node_runs_until_a_kernel_ends_it) {
    begin();
    CUgraph graph = new_graph(), body;
    CUgraphConditionalHandle handle = new_handle(graph, 1);
    CUgraphNode node = add_condition(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
    add_setter(body, add_note(body, NULL, 1), "down", handle, 1);
    add_note(graph, node, 2);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(noted(exec, 5, 0), 111112);
    assert_int_equal(noted(exec, 1, 0), 12); /* the default is there again */
    assert_int_equal(noted(exec, 3, 0), 1112);
    end(graph);
}

TEST(a_loop_of_5000_iterations_completes) {
    begin();
    CUgraph graph = new_graph(), body;
    CUgraphConditionalHandle handle = new_handle(graph, 1);
    add_condition(graph, NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
    add_setter(body, NULL, "down", handle, 1);
    CUgraphExec exec = instantiate(graph);
    noted(exec, 5000, 0);
    assert_int_equal(words.host[1], 0);
    end(graph);
}

TEST(a_kernel_chooses_the_body_of_a_switch_node) {
    begin();
    CUgraph graph = new_graph(), bodies[3];
    CUgraphConditionalHandle handle = new_handle(graph, 0);
    CUgraphNode first = add_setter(graph, NULL, "set", handle, 1);
    CUgraphNode node = add_condition(graph, first, handle, CU_GRAPH_COND_TYPE_SWITCH, 3, bodies);
    for (unsigned i = 0; i < 3; i++)
        add_note(bodies[i], NULL, i + 1);
    add_note(graph, node, 9);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(noted(exec, 0, 0), 19);
    assert_int_equal(noted(exec, 1, 0), 29);
    assert_int_equal(noted(exec, 2, 0), 39);
    assert_int_equal(noted(exec, 3, 0), 9);
    end(graph);
}

/* while (first--) { 1; if (second) { 2; second-- → its own handle } else { 3 } } 4 */
TEST(kernels_set_nested_conditions) {
    begin();
    CUgraph graph = new_graph(), body, inner[2];
    CUgraphConditionalHandle loop = new_handle(graph, 1), choice = new_handle(graph, 1);
    CUgraphNode node = add_condition(graph, NULL, loop, CU_GRAPH_COND_TYPE_WHILE, 1, &body);
    CUgraphNode at = add_note(body, NULL, 1);
    at = add_condition(body, at, choice, CU_GRAPH_COND_TYPE_IF, 2, inner);
    add_setter(inner[0], add_note(inner[0], NULL, 2), "down", choice, 2);
    add_note(inner[1], NULL, 3);
    add_setter(body, at, "down", loop, 1);
    add_note(graph, node, 4);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(noted(exec, 4, 2), 121213134);
    assert_int_equal(noted(exec, 2, 1), 12134);
    end(graph);
}

/* Each launch has values of its own: both are queued before either runs. */
TEST(each_launch_has_its_own_condition_values) {
    begin();
    CUgraph graph = new_graph(), body;
    CUgraphConditionalHandle handle = new_handle(graph, 0);
    CUgraphNode first = add_setter(graph, NULL, "set", handle, 1), node;
    node = add_condition(graph, first, handle, CU_GRAPH_COND_TYPE_IF, 1, &body);
    add_setter(body, add_note(body, NULL, 1), "down", handle, 1);
    add_note(graph, node, 2);
    CUgraphExec exec = instantiate(graph);
    words.host[0] = 0;
    words.host[1] = 1;
    OK_CU(cu.cuGraphLaunch(exec, NULL));
    OK_CU(cu.cuGraphLaunch(exec, NULL));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(words.host[0], 122);
    end(graph);
}
