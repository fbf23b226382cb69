/* Changing executable graphs: nodes one by one, or all from another graph. */
#include "graph_nodes.h"

#include <sys/mman.h>

static CUdeviceptr memory;

BEFORE(test_begin) {
    memory = new_memory(8192);
    set_bytes(memory, 0x11, 8192); /* streams of the tests do not wait for the legacy one */
}

EACH_TEST(before, test_end);

TEST(a_memset_node_of_an_exec_can_be_changed) {
    CUgraph graph = new_graph();
    CUgraphNode node = add_set(graph, NULL, memory, 0x22, 64);
    CUgraphExec exec = instantiate(graph);
    CUDA_MEMSET_NODE_PARAMS params = set_params(memory + 1024, 0x33, 2048);
    OK_CU(cu.cuGraphExecMemsetNodeSetParams(exec, node, &params, ctx));
    run(exec);
    assert_int_equal(byte_at(memory), 0x11);
    assert_int_equal(byte_at(memory + 3071), 0x33);
    params.height = 2;
    params.pitch = 4096;
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecMemsetNodeSetParams(exec, node, &params, ctx));
    params = set_params(0, 0x33, 16);
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecMemsetNodeSetParams(exec, node, &params, ctx));
}

TEST(a_2d_memset_node_can_change_target_and_value_but_not_shape) {
    CUgraph graph = new_graph();
    CUDA_MEMSET_NODE_PARAMS params = set_params(memory, 0x22, 8);
    params.height = 2;
    params.pitch = 64;
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddMemsetNode, graph, NULL, 0, &params, ctx);
    CUgraphExec exec = instantiate(graph);
    params.value = 0x33;
    params.dst = memory + 1024;
    OK_CU(cu.cuGraphExecMemsetNodeSetParams(exec, node, &params, ctx));
    run(exec);
    assert_int_equal(byte_at(memory + 1024 + 64 + 7), 0x33);
    params.width = 4;
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecMemsetNodeSetParams(exec, node, &params, ctx));
}

TEST(a_memcpy_node_of_an_exec_can_be_changed) {
    CUgraph graph = new_graph();
    CUgraphNode node = add_copy(graph, NULL, memory + 64, memory, 64);
    CUgraphNode empty = add_empty(graph, NULL);
    CUgraphExec exec = instantiate(graph);
    unsigned char host[64];
    OK_CU(cu.cuMemsetD8_v2(memory + 4096, 0x44, 1024));
    CUDA_MEMCPY3D params = copy_params(memory + 1024, memory + 4096, 1024);
    OK_CU(cu.cuGraphExecMemcpyNodeSetParams(exec, node, &params, ctx));
    run(exec);
    assert_int_equal(byte_at(memory + 64), 0x11);
    assert_int_equal(byte_at(memory + 2047), 0x44);
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecMemcpyNodeSetParams(exec, empty, &params, ctx));
    params = copy_params(0, memory, 64);
    params.dstMemoryType = CU_MEMORYTYPE_HOST;
    params.dstHost = host;
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecMemcpyNodeSetParams(exec, node, &params, ctx));
}

static void count_up(void *number) {
    ++*(int *)number;
}

/* What is queued already stays as it was. */
TEST(a_host_node_of_an_exec_can_be_changed) {
    int first = 0, second = 0;
    CUgraph graph = new_graph();
    CUstream stream = new_stream();
    CUgraphNode node = add_host(graph, NULL, count_up, &first);
    CUgraphExec exec = instantiate(graph);
    CUDA_HOST_NODE_PARAMS params = {.fn = count_up, .userData = &second};
    struct gate gate = hold(stream);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuGraphExecHostNodeSetParams(exec, node, &params));
    OK_CU(cu.cuGraphLaunch(exec, stream));
    OK_CU(cu.cuGraphLaunch(exec, stream));
    gate_drain(&gate, stream);
    assert_int_equal(first, 1);
    assert_int_equal(second, 2);
    OK_CU(cu.cuGraphHostNodeGetParams(node, &params));
    assert_ptr_equal(params.userData, &first); /* the graph's node is as it was */
    params.fn = NULL;
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecHostNodeSetParams(exec, node, &params));
}

TEST(event_nodes_of_an_exec_can_be_changed) {
    CUevent events[4];
    CUgraphNode record, wait;
    CUgraph graph = new_graph();
    CUstream stream = new_stream(), other = new_stream();
    for (int i = 0; i < 4; i++)
        events[i] = new_event();
    OK_CU(cu.cuGraphAddEventWaitNode(&wait, graph, NULL, 0, events[0]));
    OK_CU(cu.cuGraphAddEventRecordNode(&record, graph, &wait, 1, events[1]));
    CUgraphExec exec = instantiate(graph);
    OK_CU(cu.cuGraphExecEventWaitNodeSetEvent(exec, wait, events[2]));
    OK_CU(cu.cuGraphExecEventRecordNodeSetEvent(exec, record, events[3]));
    struct gate gate = hold(other);
    OK_CU(cu.cuEventRecord(events[2], other));
    OK_CU(cu.cuGraphLaunch(exec, stream));
    FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    FAILS_CU(NOT_READY, cu.cuEventQuery(events[3]));
    OK_CU(cu.cuEventQuery(events[1]));
    gate_release(&gate);
    OK_CU(cu.cuEventSynchronize(events[3]));
    OK_CU(cu.cuStreamSynchronize(stream));
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecEventRecordNodeSetEvent(exec, wait, events[0]));
}

TEST(a_child_graph_node_can_be_changed_but_not_its_topology) {
    CUgraph child = new_graph(), same = new_graph(), longer = new_graph(), graph = new_graph();
    add_set(child, NULL, memory, 0x22, 64);
    add_set(same, NULL, memory, 0x33, 64);
    add_empty(longer, add_set(longer, NULL, memory, 0x44, 64));
    CUgraphNode node = add_child(graph, NULL, child), inside, original;
    CUgraphExec exec = instantiate(graph);
    size_t one = 1;
    OK_CU(cu.cuGraphExecChildGraphNodeSetParams(exec, node, same));
    run(exec);
    assert_int_equal(byte_at(memory), 0x33);
    FAILS_CU(GRAPH_EXEC_UPDATE_FAILURE, cu.cuGraphExecChildGraphNodeSetParams(exec, node, longer));
    CUgraph embedded = GOT_CU(CUgraph, cuGraphChildGraphNodeGetGraph, node);
    OK_CU(cu.cuGraphGetNodes(embedded, &inside, &one));
    OK_CU(cu.cuGraphGetNodes(child, &original, &one));
    CUDA_MEMSET_NODE_PARAMS params = set_params(memory, 0x55, 64);
    OK_CU(cu.cuGraphExecMemsetNodeSetParams(exec, inside, &params, ctx));
    run(exec);
    assert_int_equal(byte_at(memory), 0x55);
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecMemsetNodeSetParams(exec, original, &params, ctx));
}

TEST(a_batch_node_can_be_changed_but_not_its_operation_types) {
    CUstreamBatchMemOpParams ops[2];
    CUgraph graph = new_graph();
    memset(ops, 0, sizeof ops);
    for (int i = 0; i < 2; i++) {
        ops[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        ops[i].writeValue.address = memory + 4 * (unsigned)i;
        ops[i].writeValue.value = 1;
    }
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = ctx, .count = 1, .paramArray = ops};
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddBatchMemOpNode, graph, NULL, 0, &params);
    CUgraphExec exec = instantiate(graph);
    ops[0].writeValue.value = 7;
    OK_CU(cu.cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
    run(exec);
    assert_int_equal(byte_at(memory), 7);
    params.count = 2;
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
    params.count = 1;
    ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
}

TEST(one_function_changes_exec_nodes_of_any_type) {
    CUgraph graph = new_graph();
    CUgraphNode set = add_set(graph, NULL, memory, 0x22, 64);
    CUgraphNode copy = add_copy(graph, set, memory + 64, memory, 64);
    CUgraphExec exec = instantiate(graph);
    CUgraphNodeParams params;
    memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
        .dst = memory, .value = 0x33, .elementSize = 1, .width = 64, .height = 1, .ctx = ctx};
    OK_CU(cu.cuGraphExecNodeSetParams(exec, set, &params));
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecNodeSetParams(exec, copy, &params));
    params.reserved2 = 1;
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecNodeSetParams(exec, set, &params));
    run(exec);
    assert_int_equal(byte_at(memory + 64), 0x33);
}

TEST(exec_nodes_can_be_disabled_and_enabled) {
    CUgraph graph = new_graph();
    CUgraphNode set = add_set(graph, NULL, memory, 0x22, 64);
    CUgraphNode copy = add_copy(graph, set, memory + 64, memory, 64);
    CUgraphNode empty = add_empty(graph, copy);
    CUgraphExec exec = instantiate(graph);
    unsigned on = 9;
    OK_CU(cu.cuGraphNodeGetEnabled(exec, set, &on));
    assert_int_equal(on, 1);
    OK_CU(cu.cuGraphNodeSetEnabled(exec, set, 0));
    OK_CU(cu.cuGraphNodeGetEnabled(exec, set, &on));
    assert_int_equal(on, 0);
    run(exec);
    assert_int_equal(byte_at(memory + 64), 0x11);
    OK_CU(cu.cuGraphNodeSetEnabled(exec, set, 1));
    run(exec);
    assert_int_equal(byte_at(memory + 64), 0x22);
    FAILS_CU(INVALID_VALUE, cu.cuGraphNodeSetEnabled(exec, empty, 0));
    FAILS_CU(INVALID_VALUE, cu.cuGraphNodeGetEnabled(exec, empty, &on));
}

/* ---- Kernels and semaphores ----------------------------------------------------------------- */

static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                           ".visible .entry nothing()\n{\n    ret;\n}\n"
                           ".visible .entry one(.param .u32 a)\n{\n    ret;\n}\n";

static CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction function, unsigned blocks, void **values) {
    return kernel_node(function, blocks, 32, values);
}

/* Of a kernel that is not run only softgpu's report tells. */
static void shows(const char *line) {
    if (!soft)
        return;
    char *report = soft->state_dump();
    assert_non_null(strstr(report, line));
    soft->free_text(report);
}

TEST(a_kernel_node_of_an_exec_can_be_changed) {
    unsigned value = 7;
    void *values[] = {&value};
    CUmodule module = new_module(text);
    CUfunction nothing = function_of(module, "nothing");
    CUfunction one = function_of(module, "one");
    CUgraph graph = new_graph();
    CUDA_KERNEL_NODE_PARAMS params = kernel_params(nothing, 1, NULL);
    CUgraphNode node = MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &params);
    add_set(graph, node, memory, 0x22, 64);
    CUgraphExec exec = instantiate(graph);
    params = kernel_params(one, 2, values);
    OK_CU(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    shows("executable graph 1 kernel 1: grid 2 1 1 block 32 1 1 shared 0");
    params = kernel_params(one, 3, values);
    const void *first = &params; /* the first layout is the beginning of the second */
    OK_CU(cu.cuGraphExecKernelNodeSetParams(exec, node, first));
    shows("executable graph 1 kernel 1: grid 3 1 1 block 32 1 1 shared 0");
    params = kernel_params(one, 0, values);
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecKernelNodeSetParams(exec, node, first));
    params = kernel_params(one, 1, NULL);
    FAILS_CU(INVALID_VALUE, cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
    /* Where nothing runs kernels, nothing else of the graph is run. */
    CUresult launched = cu.cuGraphLaunch(exec, NULL);
    bool refused = no_kernels(launched);
    if (!refused)
        OK_CU(launched);
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(byte_at(memory), refused ? 0x11 : 0x22);
    OK_CU(cu.cuGraphNodeSetEnabled(exec, node, 0));
    run(exec);
    assert_int_equal(byte_at(memory), 0x22);
}

/* A function of another context is another thing altogether. */
TEST(a_kernel_node_cannot_change_its_context) {
    CUmodule modules[2];
    CUfunction functions[2];
    CUgraphNode nodes[2];
    CUgraph graphs[2];
    CUgraphExecUpdateResultInfo info;
    CUcontext other = MADE_CU(CUcontext, cuCtxCreate_v2, 0, dev);
    for (int i = 0; i < 2; i++) {
        OK_CU(cu.cuCtxSetCurrent(i == 0 ? ctx : other));
        OK_CU(cu.cuModuleLoadData(&modules[i], text));
        OK_CU(cu.cuModuleGetFunction(&functions[i], modules[i], "nothing"));
        CUDA_KERNEL_NODE_PARAMS params = kernel_params(functions[i], 1, NULL);
        graphs[i] = new_graph();
        OK_CU(cu.cuGraphAddKernelNode_v2(&nodes[i], graphs[i], NULL, 0, &params));
    }
    OK_CU(cu.cuCtxSetCurrent(ctx));
    CUgraphExec exec = instantiate(graphs[0]);
    FAILS_CU(GRAPH_EXEC_UPDATE_FAILURE, cu.cuGraphExecUpdate_v2(exec, graphs[1], &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE);
    assert_ptr_equal(info.errorNode, nodes[1]);
    destroy_graph(graphs[1]);
    end_graph(graphs[0], exec);
    OK_CU(cu.cuModuleUnload(modules[0]));
    OK_CU(cu.cuCtxSetCurrent(other));
    OK_CU(cu.cuCtxDestroy_v2(other)); /* the primary context is below it */
}

static CUexternalSemaphore timeline(softgpu_semaphore **shared) {
    int fd = soft->semaphore_create(SOFTGPU_SEMAPHORE_TIMELINE, 0);
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc = {
        .type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, .handle = {.fd = fd}};
    void *at = mmap(NULL, sizeof **shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(at != MAP_FAILED);
    *shared = at;
    return MADE_CU(CUexternalSemaphore, cuImportExternalSemaphore, &desc);
}

/* Signals `to` one semaphore, waits for `until` of the other, and then copies. */
TEST(semaphore_nodes_of_an_exec_can_be_changed) {
    NEEDS_SOFTGPU("semaphores of a graphics driver would be needed");
    softgpu_semaphore *shared[2];
    CUexternalSemaphore list[] = {timeline(&shared[0]), timeline(&shared[1])};
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS to = {.params = {.fence = {.value = 3}}};
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS until = {.params = {.fence = {.value = 5}}};
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal = {&list[0], &to, 1};
    CUDA_EXT_SEM_WAIT_NODE_PARAMS wait = {&list[1], &until, 1};
    CUgraphNode signals, waits;
    CUgraph graph = new_graph();
    OK_CU(cu.cuGraphAddExternalSemaphoresSignalNode(&signals, graph, NULL, 0, &signal));
    OK_CU(cu.cuGraphAddExternalSemaphoresWaitNode(&waits, graph, &signals, 1, &wait));
    add_set(graph, waits, memory, 0x22, 64);
    CUgraphExec exec = instantiate(graph);
    to.params.fence.value = 4;
    until.params.fence.value = 6;
    OK_CU(cu.cuGraphExecExternalSemaphoresSignalNodeSetParams(exec, signals, &signal));
    OK_CU(cu.cuGraphExecExternalSemaphoresWaitNodeSetParams(exec, waits, &wait));
    FAILS_CU(INVALID_VALUE,
             cu.cuGraphExecExternalSemaphoresSignalNodeSetParams(exec, signals, NULL));
    CUstream stream = MADE_CU(CUstream, cuStreamCreate, CU_STREAM_NON_BLOCKING);
    OK_CU(cu.cuGraphLaunch(exec, stream));
    for (int i = 0; i < 2000 && !__atomic_load_n(&shared[0]->value, __ATOMIC_ACQUIRE); i++)
        usleep(100);
    __atomic_store_n(&shared[1]->value, 5, __ATOMIC_RELEASE);
    for (int i = 0; i < 5; i++) /* who asks again has the work done that can be */
        FAILS_CU(NOT_READY, cu.cuStreamQuery(stream));
    __atomic_store_n(&shared[1]->value, 6, __ATOMIC_RELEASE);
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuStreamDestroy_v2(stream));
    assert_int_equal(byte_at(memory), 0x22);
    assert_int_equal(__atomic_load_n(&shared[0]->value, __ATOMIC_ACQUIRE), 4);
    end_graph(graph, exec);
    for (int i = 0; i < 2; i++) {
        OK_CU(cu.cuDestroyExternalSemaphore(list[i]));
        munmap(shared[i], sizeof *shared[i]);
    }
}

/* ---- All nodes ------------------------------------------------------------------------------ */

static CUgraph pair(CUdeviceptr at, unsigned value) {
    CUgraph graph = new_graph();
    add_copy(graph, add_set(graph, NULL, at, value, 64), at + 64, at, 64);
    return graph;
}

TEST(a_graph_of_the_same_shape_updates_an_exec) {
    CUgraph graph = pair(memory, 0x22), other = pair(memory + 1024, 0x33);
    CUgraph third = pair(memory + 2048, 0x44);
    CUgraphExec exec = instantiate(graph);
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
    CUgraphNode node = NULL;
    OK_CU(cu.cuGraphExecUpdate_v2(exec, other, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    run(exec);
    assert_int_equal(byte_at(memory + 64), 0x11);
    assert_int_equal(byte_at(memory + 1024 + 64), 0x33);
    OK_CU(cu.cuGraphExecUpdate(exec, third, &node, &result));
    assert_int_equal(result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    run(exec);
    assert_int_equal(byte_at(memory + 2048 + 64), 0x44);
}

/* Leaves something else than zeros where the next call has its variables. */
static __attribute__((noinline)) void dirty_the_stack(void) {
    volatile unsigned char bytes[16384];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = 0x5a;
}

CHILD_TEST_WHERE(an_update_after_a_fault_returns_the_fault,
                 NEEDS_SOFTGPU("makes the context fail")) {
    CUdeviceptr at;
    CUgraphNode node = (CUgraphNode)&at;
    CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
    init_driver();
    OK_CU(cu.cuMemAlloc_v2(&at, 4096));
    CUgraph graph = pair(at, 0x22), other = pair(at + 1024, 0x33);
    CUgraphExec exec = instantiate(graph);
    assert_int_equal(soft->context_poison(CUDA_ERROR_ECC_UNCORRECTABLE), 0);
    dirty_the_stack();
    FAILS_CU(ECC_UNCORRECTABLE, cu.cuGraphExecUpdate(exec, other, &node, &result));
    assert_int_equal(result, CU_GRAPH_EXEC_UPDATE_SUCCESS); /* nothing was compared */
    assert_null(node);
    return 0;
}

static void refuses(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResult result,
                    CUgraphNode node) {
    CUgraphExecUpdateResultInfo info;
    CUgraphExecUpdateResult old_result;
    CUgraphNode old_node;
    FAILS_CU(GRAPH_EXEC_UPDATE_FAILURE, cu.cuGraphExecUpdate_v2(exec, graph, &info));
    assert_int_equal(info.result, result);
    assert_ptr_equal(info.errorNode, node);
    FAILS_CU(GRAPH_EXEC_UPDATE_FAILURE, cu.cuGraphExecUpdate(exec, graph, &old_node, &old_result));
    /* As seen on an H200: the first version says something else where no node is to blame. */
    assert_int_equal(old_result, node ? result : CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
    if (node)
        assert_ptr_equal(old_node, node);
    destroy_graph(graph);
}

TEST(an_update_with_another_topology_changes_nothing) {
    CUgraph graph = pair(memory, 0x22);
    CUgraphExec exec = instantiate(graph);
    CUgraph other = new_graph();
    add_set(other, NULL, memory, 0x33, 64);
    refuses(exec, other, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL);
    other = new_graph();
    CUgraphNode node = add_set(other, NULL, memory, 0x33, 64);
    add_copy(other, NULL, memory + 64, memory, 64);
    refuses(exec, other, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node);
    other = new_graph();
    node = add_empty(other, NULL);
    add_copy(other, node, memory + 64, memory, 64);
    refuses(exec, other, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, node);
    other = new_graph();
    CUDA_MEMSET_NODE_PARAMS params = set_params(memory, 0x33, 8);
    params.height = 2;
    params.pitch = 16;
    OK_CU(cu.cuGraphAddMemsetNode(&node, other, NULL, 0, &params, ctx));
    add_copy(other, node, memory + 64, memory, 64);
    refuses(exec, other, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, node);
    run(exec);
    assert_int_equal(byte_at(memory + 64), 0x22);
}

/* Branches are paired by the edges, not by when they were made. */
TEST(an_update_pairs_branches_by_their_edges) {
    CUgraphNode both[2], join;
    CUgraph graphs[2];
    for (unsigned i = 0; i < 2; i++) {
        CUdeviceptr at = memory + 1024 * i;
        graphs[i] = new_graph();
        CUgraphNode first = add_set(graphs[i], NULL, at, 0x21 + i, 64);
        CUgraphNode second = add_set(graphs[i], NULL, at + 64, 0x31 + i, 64);
        both[i] = first;
        both[1 - i] = second;
        CUDA_MEMCPY3D params = copy_params(at + 128, at, 128);
        OK_CU(cu.cuGraphAddMemcpyNode(&join, graphs[i], both, 2, &params, ctx));
    }
    CUgraphExec exec = instantiate(graphs[0]);
    CUgraphExecUpdateResultInfo info;
    OK_CU(cu.cuGraphExecUpdate_v2(exec, graphs[1], &info));
    run(exec);
    assert_int_equal(byte_at(memory + 1024 + 128), 0x22);
    assert_int_equal(byte_at(memory + 1024 + 192), 0x32);
    destroy_graph(graphs[1]);
    end_graph(graphs[0], exec);
}
