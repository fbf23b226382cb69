/* Graph memory: allocation and free nodes, the device's pool for graphs, its counters and trim. */
#include "graph_build.h"

static void counters(const char *when) {
    uint64_t value[4];
    for (int i = 0; i < 4; i++) {
        value[i] = ~(uint64_t)0;
        SETUP(cuDeviceGetGraphMemAttribute, (par.dev, (CUgraphMem_attribute)i, &value[i]));
    }
    par_see("counters", "%s used=%llu high=%llu reserved=%llu high=%llu", when,
            (unsigned long long)value[0], (unsigned long long)value[1],
            (unsigned long long)value[2], (unsigned long long)value[3]);
}

SCENARIO(attributes, "graph_memory/attributes", par_context) {
    uint64_t value;
    for (int i = -1; i < 6; i++) {
        par_note("attribute=%d", i);
        CALLO(cuDeviceGetGraphMemAttribute, "each", (par.dev, (CUgraphMem_attribute)i, &value),
              OUT_U(value));
    }
    CALL(cuDeviceGetGraphMemAttribute, "null-out", (par.dev, 0, NULL));
    CALLO(cuDeviceGetGraphMemAttribute, "bad-device", (99, 0, &value), OUT_U(value));
    CALLO(cuDeviceGetGraphMemAttribute, "negative-device", (-1, 0, &value), OUT_U(value));
    CALLO(cuDeviceGetGraphMemAttribute, "bad-device-and-attribute", (99, 77, &value), OUT_U(value));
    CALL(cuDeviceGetGraphMemAttribute, "bad-device-null-out", (99, 0, NULL));
    for (int i = -1; i < 6; i++) {
        for (uint64_t v = 0; v < 2; v++) {
            par_note("attribute=%d value=%d", i, (int)v);
            value = v;
            CALL(cuDeviceSetGraphMemAttribute, "each", (par.dev, (CUgraphMem_attribute)i, &value));
        }
    }
    value = 0;
    CALL(cuDeviceSetGraphMemAttribute, "null-value",
         (par.dev, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, NULL));
    CALL(cuDeviceSetGraphMemAttribute, "bad-device", (99, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    CALL(cuDeviceGraphMemTrim, "ok", (par.dev));
    CALL(cuDeviceGraphMemTrim, "bad-device", (99));
    CALL(cuDeviceGraphMemTrim, "negative-device", (-1));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuDeviceGetGraphMemAttribute, "no-context", (par.dev, 0, &value), OUT_U(value));
    value = 0;
    CALL(cuDeviceSetGraphMemAttribute, "no-context",
         (par.dev, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    CALL(cuDeviceGraphMemTrim, "no-context", (par.dev));
}

SCENARIO(without_context, "graph_memory/without_context", par_init) {
    uint64_t value;
    CALLO(cuDeviceGetGraphMemAttribute, "never-a-context", (par.dev, 0, &value), OUT_U(value));
    value = 0;
    CALL(cuDeviceSetGraphMemAttribute, "never-a-context",
         (par.dev, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    CALL(cuDeviceGraphMemTrim, "never-a-context", (par.dev));
}

/* One allocation, left by the graph, through its whole life. */
SCENARIO(life, "graph_memory/life", par_context) {
    static const size_t sizes[] = {1, 4096, 64 * KIB, 2 * MIB, 3 * MIB, 40 * MIB};
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr p;
    uint64_t zero = 0;
    CUstream s = par_stream();
    for (size_t i = 0; i < COUNT(sizes); i++) {
        par_see("size", "%zu", sizes[i]);
        counters("begin");
        graph = gb_graph();
        gb_alloc_node(graph, NULL, sizes[i], &p);
        counters("node");
        exec = gb_instantiate(graph);
        counters("instantiated");
        CALL(cuGraphLaunch, "ok", (exec, s));
        counters("launched");
        SETUP(cuStreamSynchronize, (s));
        counters("synchronized");
        CALL(cuMemsetD8Async, "graph-memory", (p, 0x5a, sizes[i] < 4 ? 1 : 4, s));
        CALL(cuMemFreeAsync, "graph-memory", (p, s));
        counters("freed");
        SETUP(cuStreamSynchronize, (s));
        counters("free-synchronized");
        CALL(cuDeviceGraphMemTrim, "exec-alive", (par.dev));
        counters("trimmed");
        SETUP(cuGraphExecDestroy, (exec));
        counters("exec-destroyed");
        CALL(cuDeviceGraphMemTrim, "exec-destroyed", (par.dev));
        counters("trimmed-again");
        SETUP(cuGraphDestroy, (graph));
        CALL(cuDeviceGraphMemTrim, "graph-destroyed", (par.dev));
        counters("graph-destroyed");
        SETUP(cuDeviceSetGraphMemAttribute, (par.dev, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
        SETUP(cuDeviceSetGraphMemAttribute, (par.dev, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
    }
}

/* Allocated and freed in the graph. */
SCENARIO(inside, "graph_memory/inside", par_context) {
    CUgraphExec exec, second;
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    CUdeviceptr p, q, result;
    CUstream s = par_stream();
    result = par_alloc(4096);
    SETUP(cuMemsetD8_v2, (result, 0, 4096));
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_alloc_node(graph, NULL, MIB, &p);
    node = gb_set_node(graph, node, p, 0x6b, MIB);
    node = gb_copy_node(graph, node, gb_copy(result, p + MIB - 64, 64));
    node = gb_free_node(graph, node, p);
    node = gb_alloc_node(graph, node, MIB, &q);
    par_see("second-address", "%s", q == p ? "same" : "another");
    node = gb_set_node(graph, node, q, 0x7c, MIB);
    node = gb_copy_node(graph, node, gb_copy(result + 64, q + MIB - 64, 64));
    gb_free_node(graph, node, q);
    counters("built");
    exec = gb_instantiate(graph);
    counters("instantiated");
    CALLO(cuGraphInstantiateWithFlags, "second-exec", (&second, graph, 0), OUT_H(second));
    CALLO(cuGraphInstantiateWithParams, "second-exec", (&second, graph, &params), OUT_H(second),
          OUT_U(params.result_out), OUT_H(params.hErrNode_out));
    CALL(cuGraphUpload, "ok", (exec, s));
    SETUP(cuStreamSynchronize, (s));
    counters("uploaded");
    CALL(cuGraphLaunch, "ok", (exec, s));
    CALL(cuGraphLaunch, "again", (exec, s));
    counters("launched");
    SETUP(cuStreamSynchronize, (s));
    counters("synchronized");
    gb_show("first", result);
    gb_show("second", result + 64);
    CALL(cuMemsetD8_v2, "freed-inside", (p, 1, 16));
    CALL(cuMemFreeAsync, "freed-inside", (p, s));
    CALL(cuMemFree_v2, "freed-inside", (p));
    CALL(cuDeviceGraphMemTrim, "idle", (par.dev));
    counters("trimmed");
    CALL(cuGraphLaunch, "after-trim", (exec, s));
    SETUP(cuStreamSynchronize, (s));
    counters("after-trim");
    CALL(cuGraphExecDestroy, "ok", (exec));
    counters("exec-destroyed");
    CALLO(cuGraphInstantiateWithFlags, "after-destroy", (&second, graph, 0), OUT_C(second));
    CALL(cuGraphLaunch, "second-exec", (second, s));
    SETUP(cuStreamSynchronize, (s));
    counters("end");
}

/* Parallel branches, and allocations at the same time. */
SCENARIO(addresses, "graph_memory/addresses", par_context) {
    CUgraph graph, other;
    CUdeviceptr p, q, r, t;
    CUstream s = par_stream();
    graph = gb_graph();
    CUgraphNode a = gb_alloc_node(graph, NULL, 4 * MIB, &p);
    CUgraphNode b = gb_alloc_node(graph, NULL, 4 * MIB, &q);
    CUgraphNode c = gb_alloc_node(graph, a, 4 * MIB, &r);
    par_see("distance", "%lld %lld", (long long)(q - p), (long long)(r - q));
    gb_free_node(graph, a, p);
    gb_free_node(graph, b, q);
    gb_free_node(graph, c, r);
    counters("built");
    CUgraphExec exec = gb_instantiate(graph);
    CALL(cuGraphLaunch, "ok", (exec, s));
    SETUP(cuStreamSynchronize, (s));
    counters("launched");
    /* Another graph: other addresses, the same memory. */
    other = gb_graph();
    a = gb_alloc_node(other, NULL, 4 * MIB, &t);
    gb_free_node(other, a, t);
    par_see("other-graph", "%s", t == p || t == q || t == r ? "same" : "another");
    CUgraphExec second = gb_instantiate(other);
    CALL(cuGraphLaunch, "other", (second, s));
    SETUP(cuStreamSynchronize, (s));
    counters("other-launched");
    CALL(cuDeviceGraphMemTrim, "idle", (par.dev));
    counters("trimmed");
    par_hold(s);
    CALL(cuGraphLaunch, "held", (exec, s));
    counters("held");
    CALL(cuDeviceGraphMemTrim, "held", (par.dev));
    counters("trimmed-held");
    par_release();
    SETUP(cuStreamSynchronize, (s));
    counters("released");
}

/* Left by the graph and not freed: the next launch. */
SCENARIO(unfreed, "graph_memory/unfreed", par_context) {
    CUgraphExec exec, automatic;
    CUdeviceptr p;
    CUstream s = par_stream();
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_alloc_node(graph, NULL, 2 * MIB, &p);
    gb_set_node(graph, node, p, 0x33, 64);
    exec = gb_instantiate(graph);
    CALL(cuMemFreeAsync, "not-launched", (p, s));
    CALL(cuMemFree_v2, "not-launched", (p));
    CALL(cuMemsetD8_v2, "not-launched", (p, 1, 16));
    CALL(cuGraphLaunch, "ok", (exec, s));
    CALL(cuGraphLaunch, "unfreed", (exec, s));
    CALL(cuGraphUpload, "unfreed", (exec, s));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuGraphLaunch, "unfreed", (exec, s));
    gb_show("left", p);
    CALL(cuMemFreeAsync, "ok", (p, s));
    CALL(cuMemFreeAsync, "twice", (p, s));
    CALL(cuGraphLaunch, "freed-asynchronously", (exec, s));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuMemFree_v2, "ok", (p));
    CALL(cuMemFree_v2, "twice", (p));
    CALL(cuGraphLaunch, "freed", (exec, s));
    CALL(cuMemFreeAsync, "interior", (p + 64, s));
    CALL(cuGraphExecDestroy, "unfreed", (exec));
    counters("exec-destroyed-unfreed");
    CALL(cuStreamSynchronize, "after", (s));
    gb_show("after-exec", p);
    CALLO(cuGraphInstantiateWithFlags, "unfreed-auto",
          (&automatic, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH), OUT_C(automatic));
    CALL(cuGraphLaunch, "auto-while-unfreed", (automatic, s));
    CALL(cuGraphLaunch, "auto", (automatic, s));
    CALL(cuGraphLaunch, "auto", (automatic, s));
    CALL(cuStreamSynchronize, "after", (s));
    counters("auto");
    CALL(cuGraphExecDestroy, "auto", (automatic));
    CALL(cuGraphDestroy, "unfreed", (graph));
    counters("graph-destroyed");
    gb_show("after-graph", p);
    CALL(cuMemFreeAsync, "after-graph", (p, s));
    CALL(cuStreamSynchronize, "after", (s));
    counters("freed");
    CALL(cuDeviceGraphMemTrim, "end", (par.dev));
    counters("trimmed");
}

/* Allocated by one graph, freed by another. */
SCENARIO(two_graphs, "graph_memory/two_graphs", par_context) {
    CUgraphNode node, again;
    CUdeviceptr p;
    CUstream s = par_stream();
    CUgraph first = gb_graph();
    node = gb_alloc_node(first, NULL, 2 * MIB, &p);
    CUgraph second = gb_graph();
    CALLO(cuGraphAddMemFreeNode, "other-graph", (&again, second, NULL, 0, p), OUT_C(again));
    CALLO(cuGraphAddMemFreeNode, "also-own-graph", (&again, first, &node, 1, p), OUT_H(again));
    CALLO(cuGraphAddMemFreeNode, "twice", (&again, second, NULL, 0, p), OUT_H(again));
    CUgraphExec make = gb_instantiate(first);
    CUgraphExec end = gb_instantiate(second);
    CALL(cuGraphLaunch, "free-before-alloc", (end, s));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuGraphLaunch, "alloc", (make, s));
    counters("allocated");
    CALL(cuMemsetD8Async, "between", (p, 1, 64, s));
    CALL(cuGraphLaunch, "free", (end, s));
    counters("freed");
    CALL(cuGraphLaunch, "free-again", (end, s));
    CALL(cuStreamSynchronize, "after", (s));
    CALL(cuGraphLaunch, "alloc-again", (make, s));
    CALL(cuMemFreeAsync, "by-stream", (p, s));
    CALL(cuGraphLaunch, "free-already-freed", (end, s));
    CALL(cuStreamSynchronize, "after", (s));
}

SCENARIO(pointer, "graph_memory/pointer", par_context, PAR_ALONE) {
    CUgraphExec exec;
    CUdeviceptr p, base, start;
    CUmemoryPool pool;
    CUcontext context;
    unsigned number;
    int device;
    size_t size;
    uint64_t id;
    CUstream s = par_stream();
    CUgraph graph = gb_graph();
    gb_alloc_node(graph, NULL, 3 * MIB, &p);
    par_name(p, 3 * MIB, "p");
    for (int launched = 0; launched < 2; launched++) {
        par_note("launched=%d", launched);
        CALLO(cuPointerGetAttribute, "memory-type", (&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p),
              OUT_U(number));
        par_note("launched=%d", launched);
        CALLO(cuPointerGetAttribute, "mapped", (&number, CU_POINTER_ATTRIBUTE_MAPPED, p),
              OUT_U(number));
        par_note("launched=%d", launched);
        CALLO(cuPointerGetAttribute, "context", (&context, CU_POINTER_ATTRIBUTE_CONTEXT, p),
              OUT_H(context));
        par_note("launched=%d", launched);
        CALLO(cuPointerGetAttribute, "device", (&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p),
              OUT_I(device));
        par_note("launched=%d", launched);
        CALLO(cuPointerGetAttribute, "range-start",
              (&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 64), OUT_P(start));
        par_note("launched=%d", launched);
        CALLO(cuPointerGetAttribute, "range-size", (&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p),
              OUT_U(size));
        par_note("launched=%d", launched);
        CALLO(cuPointerGetAttribute, "pool", (&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p),
              OUT_C(pool));
        par_note("launched=%d", launched);
        CALLO(cuPointerGetAttribute, "id", (&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p), OUT_C(id));
        par_note("launched=%d", launched);
        CALLO(cuPointerGetAttribute, "legacy-ipc",
              (&number, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p), OUT_U(number));
        par_note("launched=%d", launched);
        CALLO(cuMemGetAddressRange_v2, "ok", (&base, &size, p + 100), OUT_P(base), OUT_U(size));
        if (launched == 0) {
            exec = gb_instantiate(graph);
            SETUP(cuGraphLaunch, (exec, s));
            SETUP(cuStreamSynchronize, (s));
        }
    }
    par_free_mark();
    CALL(cuMemFreeAsync, "ok", (p, s));
    SETUP(cuStreamSynchronize, (s));
    par_free_delta("freed");
    CALL(cuDeviceGraphMemTrim, "ok", (par.dev));
    par_free_delta("trimmed");
    CALLO(cuPointerGetAttribute, "freed", (&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p),
          OUT_U(number));
}

/* What an allocation node takes. */
SCENARIO(node_params, "graph_memory/node_params", par_context) {
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUDA_MEM_ALLOC_NODE_PARAMS got;
    CUgraph graph = gb_graph();
#define TRY(cls)                                                                                   \
    CALLO(cuGraphAddMemAllocNode, cls, (&node, graph, NULL, 0, &params), OUT_C(node),              \
          OUT_C(params.dptr))
    params = gb_alloc(0);
    TRY("zero-size");
    params = gb_alloc((size_t)1 << 50);
    TRY("huge");
    params = gb_alloc((size_t)200 << 30);
    TRY("more-than-the-device");
    params = gb_alloc(4096);
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    TRY("type-invalid");
    params = gb_alloc(4096);
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    TRY("type-managed");
    params = gb_alloc(4096);
    params.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    TRY("exportable");
    params = gb_alloc(4096);
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_HOST;
    TRY("host");
    params = gb_alloc(4096);
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    params.poolProps.location.id = 0;
    TRY("host-numa");
    params = gb_alloc(4096);
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    TRY("no-location");
    params = gb_alloc(4096);
    params.poolProps.location.id = 99;
    TRY("bad-device");
    params = gb_alloc(4096);
    params.poolProps.maxSize = 1024;
    TRY("max-size");
    params = gb_alloc(4096);
    params.poolProps.usage = 1;
    TRY("usage");
    params = gb_alloc(4096);
    params.poolProps.reserved[0] = 1;
    TRY("reserved");
    params = gb_alloc(4096);
    params.accessDescs = &access;
    params.accessDescCount = 1;
    TRY("access-own-device");
    CALLO(cuGraphMemAllocNodeGetParams, "access", (node, &got), OUT_U(got.bytesize),
          OUT_U(got.accessDescCount), OUT_C(got.accessDescs));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    TRY("access-read");
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    TRY("access-none");
    access.flags = (CUmemAccess_flags)2;
    TRY("access-bad-flags");
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    access.location.id = 99;
    TRY("access-bad-device");
    access.location.id = 0;
    access.location.type = CU_MEM_LOCATION_TYPE_HOST;
    TRY("access-host");
    params.accessDescs = NULL;
    params.accessDescCount = 1;
    TRY("access-null");
    params = gb_alloc(4096);
    params.dptr = 0x12345000;
    TRY("address-given");
#undef TRY
    CALL(cuGraphAddMemAllocNode, "null-params", (&node, graph, NULL, 0, NULL));
    SETUP(cuCtxSetCurrent, (NULL));
    params = gb_alloc(4096);
    CALLO(cuGraphAddMemAllocNode, "no-context", (&node, graph, NULL, 0, &params), OUT_C(node),
          OUT_C(params.dptr));
}

SCENARIO(free_nodes, "graph_memory/free_nodes", par_context) {
    CUgraphNode a, node;
    CUdeviceptr p, plain, pooled;
    CUstream s = par_stream();
    plain = par_alloc(4096);
    SETUP(cuMemAllocAsync, (&pooled, 4096, s));
    CUgraph graph = gb_graph();
    a = gb_alloc_node(graph, NULL, 4096, &p);
    CALLO(cuGraphAddMemFreeNode, "null-address", (&node, graph, &a, 1, 0), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "plain", (&node, graph, &a, 1, plain), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "of-a-pool", (&node, graph, &a, 1, pooled), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "interior", (&node, graph, &a, 1, p + 64), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "random", (&node, graph, &a, 1, 0x1000), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "not-after", (&node, graph, NULL, 0, p), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "ok", (&node, graph, &a, 1, p), OUT_C(node));
    CALLO(cuGraphAddMemFreeNode, "twice", (&node, graph, &a, 1, p), OUT_C(node));
}

SCENARIO(restrictions, "graph_memory/restrictions", par_context) {
    CUgraph graph, other, clone;
    CUgraphNode a, b, child;
    CUdeviceptr p;
    CUgraphExecUpdateResultInfo info;
    graph = gb_graph();
    a = gb_alloc_node(graph, NULL, 4096, &p);
    b = gb_set_node(graph, a, p, 1, 64);
    NAME(a);
    NAME(b);
    other = gb_graph();
    CALLO(cuGraphAddChildGraphNode, "memory-nodes", (&child, other, NULL, 0, graph), OUT_C(child));
    CALLO(cuGraphClone, "memory-nodes", (&clone, graph), OUT_C(clone));
    CALL(cuGraphDestroyNode, "alloc-node", (a));
    CALL(cuGraphDestroyNode, "other-node", (b));
    CALL(cuGraphRemoveDependencies, "memory-nodes", (graph, &a, &b, 1));
    CUgraphExec exec = gb_instantiate(graph);
    CALLO(cuGraphExecUpdate_v2, "same-graph", (exec, graph, &info), OUT_U(info.result),
          OUT_H(info.errorNode), OUT_H(info.errorFromNode));
    other = gb_graph();
    a = gb_alloc_node(other, NULL, 4096, &p);
    gb_set_node(other, a, p, 1, 64);
    NAME(a);
    CALLO(cuGraphExecUpdate_v2, "other-graph", (exec, other, &info), OUT_U(info.result),
          OUT_H(info.errorNode), OUT_H(info.errorFromNode));
}

/* Small allocations: how far apart, and is the address of a freed one taken again? */
SCENARIO(small_addresses, "graph_memory/small_addresses", par_context) {
    CUdeviceptr p, q, r, t;
    CUgraph graph = gb_graph();
    CUgraphNode node = gb_alloc_node(graph, NULL, 100, &p);
    node = gb_alloc_node(graph, node, 100, &q);
    node = gb_alloc_node(graph, node, 5000, &r);
    par_see("distance", "%lld %lld", (long long)(q - p), (long long)(r - q));
    node = gb_free_node(graph, node, p);
    gb_alloc_node(graph, node, 50, &t);
    par_see("smaller-after-free", "%s", t == p ? "same" : "another");
    node = gb_free_node(graph, node, q);
    gb_alloc_node(graph, NULL, 100, &t);
    par_see("not-after-free", "%s", t == q ? "same" : "another");
    CALL(cuGraphLaunch, "ok", (gb_instantiate(graph), NULL));
    counters("launched");
}
