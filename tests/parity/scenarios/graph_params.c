/* Parameters of graph nodes: what is taken, what is given back, what may be set. */
#include "../parity.h"

static CUgraph graph;
static CUdeviceptr memory; /* 4096 bytes */

static void begin(void) {
    par_context();
    SETUP(cuGraphCreate, (&graph, 0));
    NAME(graph);
    memory = par_alloc(4096);
    NAME_R(memory, 4096);
}

/* More to point at, under the names that lines give them. */
static void *begin_with(CUdeviceptr *second, CUdeviceptr *reserved) {
    begin();
    *second = par_alloc(4096);
    par_name(*second, 4096, "second");
    *reserved = par_reserve(PAR_2M);
    par_name(*reserved, PAR_2M, "reserved");
    void *pinned = par_pinned(4096);
    NAME_R(pinned, 4096);
    return pinned;
}

static void host_work(void *data) {
}
static void other_work(void *data) {
}

static CUgraphNode empty_node(void) {
    return PAR_MADE(CUgraphNode, cuGraphAddEmptyNode, graph, NULL, 0);
}

/* ---- Copies --------------------------------------------------------------------------------- */

static CUDA_MEMCPY3D copy_params(void) {
    CUDA_MEMCPY3D copy = {FROM_DEVICE(memory), TO_DEVICE(memory + 2048), EXTENT_3D(64, 1, 1)};
    return copy;
}

static void show_copy(const char *cls, CUgraphNode node) {
    CUDA_MEMCPY3D c;
    CALLO(cuGraphMemcpyNodeGetParams, cls, (node, &c), OUT_I(c.srcMemoryType), OUT_P(c.srcDevice),
          OUT_C(c.srcHost), OUT_C(c.srcArray), OUT_U(c.srcXInBytes), OUT_U(c.srcY), OUT_U(c.srcZ),
          OUT_U(c.srcLOD), OUT_U(c.srcPitch), OUT_U(c.srcHeight), OUT_I(c.dstMemoryType),
          OUT_P(c.dstDevice), OUT_C(c.dstHost), OUT_U(c.dstXInBytes), OUT_U(c.dstPitch),
          OUT_U(c.dstHeight), OUT_U(c.WidthInBytes), OUT_U(c.Height), OUT_U(c.Depth),
          OUT_C(c.reserved0), OUT_C(c.reserved1));
}

/* Adds a node with changed parameters, and sets them on one that is there. */
#define COPY(cls, change)                                                                          \
    do {                                                                                           \
        CUDA_MEMCPY3D copy = copy_params();                                                        \
        CUgraphNode made = NULL;                                                                   \
        change;                                                                                    \
        CALLO(cuGraphAddMemcpyNode, cls, (&made, graph, NULL, 0, &copy, par.primary),              \
              OUT_C(made));                                                                        \
        if (par_last() == CUDA_SUCCESS)                                                            \
            show_copy(cls, made);                                                                  \
        CALL(cuGraphMemcpyNodeSetParams, cls, (there, &copy));                                     \
        if (par_last() == CUDA_SUCCESS)                                                            \
            show_copy("after-set", there);                                                         \
    } while (0)

SCENARIO(copies, "graph-params/copies") {
    /* Recorded is an address that is a multiple of 16 and not of more. */
    static _Alignas(4096) char room[4096 + 16];
    char *pageable = room + 16;
    CUgraphNode there;
    CUdeviceptr mapped, reserved, second;
    void *pinned = begin_with(&second, &reserved);
    mapped = par_mapped(PAR_2M);
    NAME_R(mapped, PAR_2M);
    CUDA_MEMCPY3D plain = copy_params();
    SETUP(cuGraphAddMemcpyNode, (&there, graph, NULL, 0, &plain, par.primary));
    COPY("ok", (void)0);
    COPY("width-zero", copy.WidthInBytes = 0);
    COPY("height-zero", copy.Height = 0);
    COPY("depth-zero", copy.Depth = 0);
    COPY("box", copy.WidthInBytes = 16; copy.Height = 4; copy.Depth = 2; copy.srcPitch = 32;
         copy.srcHeight = 8; copy.dstPitch = 16; copy.dstHeight = 4; copy.srcXInBytes = 8;
         copy.srcY = 1; copy.srcZ = 1);
    COPY("pitches-zero", copy.Height = 4);
    COPY("pitch-small", copy.Height = 4; copy.srcPitch = 32);
    COPY("height-small", copy.Height = 4; copy.Depth = 2; copy.srcHeight = 2);
    COPY("lod", copy.srcLOD = 1);
    COPY("reserved", copy.reserved0 = pinned);
    COPY("source-host-pageable", copy.srcMemoryType = CU_MEMORYTYPE_HOST; copy.srcHost = pageable);
    COPY("source-host-pinned", copy.srcMemoryType = CU_MEMORYTYPE_HOST; copy.srcHost = pinned);
    COPY("target-host-pageable", copy.dstMemoryType = CU_MEMORYTYPE_HOST; copy.dstHost = pageable);
    COPY("target-host-pinned", copy.dstMemoryType = CU_MEMORYTYPE_HOST; copy.dstHost = pinned);
    COPY("host-to-host", copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_HOST;
         copy.srcHost = pageable; copy.dstHost = pageable + 2048);
    COPY("unified", copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED);
    COPY("unified-pinned", copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
         copy.srcDevice = (uintptr_t)pinned);
    COPY("unified-pageable", copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
         copy.srcDevice = (uintptr_t)pageable);
    COPY("device-is-pinned", copy.srcDevice = (uintptr_t)pinned);
    COPY("device-is-pageable", copy.srcDevice = (uintptr_t)pageable);
    COPY("host-is-device", copy.srcMemoryType = CU_MEMORYTYPE_HOST;
         copy.srcHost = (void *)(uintptr_t)memory);
    COPY("null-source", copy.srcDevice = 0);
    COPY("null-target", copy.dstDevice = 0);
    COPY("null-host", copy.srcMemoryType = CU_MEMORYTYPE_HOST);
    COPY("type-zero", copy.srcMemoryType = (CUmemorytype)0);
    COPY("type-bad", copy.dstMemoryType = (CUmemorytype)9);
    COPY("array-null", copy.srcMemoryType = CU_MEMORYTYPE_ARRAY);
    COPY("leaves-allocation", copy.WidthInBytes = 4096);
    COPY("other-allocation", copy.dstDevice = second);
    COPY("mapped", copy.dstDevice = mapped);
    COPY("reserved-only", copy.dstDevice = reserved);
    COPY("overlap", copy.dstDevice = memory + 8);
    COPY("other-width", copy.WidthInBytes = 128);
    show_copy("at-last", there);
}

SCENARIO(copy_misuse, "graph-params/copy-misuse", begin) {
    CUgraphNode node, made;
    CUcontext other = par_new_context();
    SETUP(cuCtxSetCurrent, (par.primary));
    CUDA_MEMCPY3D copy = copy_params();
    node = empty_node();
    CALL(cuGraphAddMemcpyNode, "null-out", (NULL, graph, NULL, 0, &copy, par.primary));
    CALLO(cuGraphAddMemcpyNode, "null-graph", (&made, NULL, NULL, 0, &copy, par.primary),
          OUT_C(made));
    CALLO(cuGraphAddMemcpyNode, "null-params", (&made, graph, NULL, 0, NULL, par.primary),
          OUT_C(made));
    CALLO(cuGraphAddMemcpyNode, "null-context", (&made, graph, NULL, 0, &copy, NULL), OUT_C(made));
    CALLO(cuGraphAddMemcpyNode, "other-context", (&made, graph, NULL, 0, &copy, other),
          OUT_C(made));
    CALLO(cuGraphAddMemcpyNode, "null-list", (&made, graph, NULL, 1, &copy, par.primary),
          OUT_C(made));
    CALLO(cuGraphMemcpyNodeGetParams, "wrong-type", (node, &copy), OUT_C(copy.srcDevice));
    copy = copy_params();
    CALL(cuGraphMemcpyNodeSetParams, "wrong-type", (node, &copy));
    CALL(cuGraphMemcpyNodeGetParams, "null-node", (NULL, &copy));
    CALL(cuGraphMemcpyNodeSetParams, "null-node", (NULL, &copy));
    SETUP(cuGraphAddMemcpyNode, (&made, graph, NULL, 0, &copy, par.primary));
    CALL(cuGraphMemcpyNodeGetParams, "null-out", (made, NULL));
    CALL(cuGraphMemcpyNodeSetParams, "null-params", (made, NULL));
    SETUP(cuCtxSetCurrent, (other));
    CALL(cuGraphMemcpyNodeSetParams, "other-context-current", (made, &copy));
    show_copy("other-context-current", made);
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuGraphMemcpyNodeSetParams, "no-context", (made, &copy));
    show_copy("no-context", made);
}

SCENARIO(copy_freed_memory, "graph-params/copy-freed-memory", begin) {
    CUgraphNode node, made;
    CUgraph copied;
    CUdeviceptr gone = par_alloc(PAR_2M);
    NAME_R(gone, PAR_2M);
    CUDA_MEMCPY3D copy = copy_params();
    copy.dstDevice = gone;
    SETUP(cuGraphAddMemcpyNode, (&node, graph, NULL, 0, &copy, par.primary));
    SETUP(cuMemFree_v2, (gone));
    show_copy("memory-freed", node);
    CALLO(cuGraphAddMemcpyNode, "memory-freed", (&made, graph, NULL, 0, &copy, par.primary),
          OUT_C(made));
    CALL(cuGraphMemcpyNodeSetParams, "memory-freed", (node, &copy));
    CALLO(cuGraphClone, "memory-freed", (&copied, graph), OUT_C(copied));
}

/* ---- Sets ----------------------------------------------------------------------------------- */

static CUDA_MEMSET_NODE_PARAMS set_params(void) {
    return (CUDA_MEMSET_NODE_PARAMS){.dst = memory, .elementSize = 1, .width = 16, .height = 1};
}

static void show_set(const char *cls, CUgraphNode node) {
    CUDA_MEMSET_NODE_PARAMS s;
    CALLO(cuGraphMemsetNodeGetParams, cls, (node, &s), OUT_P(s.dst), OUT_U(s.pitch), OUT_X(s.value),
          OUT_U(s.elementSize), OUT_U(s.width), OUT_U(s.height));
}

#define SET(cls, change)                                                                           \
    do {                                                                                           \
        CUDA_MEMSET_NODE_PARAMS set = set_params();                                                \
        CUgraphNode made = NULL;                                                                   \
        change;                                                                                    \
        CALLO(cuGraphAddMemsetNode, cls, (&made, graph, NULL, 0, &set, par.primary), OUT_C(made)); \
        if (par_last() == CUDA_SUCCESS)                                                            \
            show_set(cls, made);                                                                   \
        CALL(cuGraphMemsetNodeSetParams, cls, (there, &set));                                      \
        if (par_last() == CUDA_SUCCESS)                                                            \
            show_set("after-set", there);                                                          \
    } while (0)

SCENARIO(sets, "graph-params/sets") {
    static char pageable[64];
    CUgraphNode there;
    CUdeviceptr second, reserved;
    void *pinned = begin_with(&second, &reserved);
    CUDA_MEMSET_NODE_PARAMS plain = set_params();
    SETUP(cuGraphAddMemsetNode, (&there, graph, NULL, 0, &plain, par.primary));
    SET("ok", (void)0);
    for (unsigned size = 0; size <= 9; size++) {
        par_note("element=%u", size);
        SET("element-size", set.elementSize = size);
    }
    SET("value-byte", set.value = 0x1ff);
    SET("value-short", set.elementSize = 2; set.value = 0x12345);
    SET("value-word", set.elementSize = 4; set.value = 0xdeadbeef);
    SET("width-zero", set.width = 0);
    SET("height-zero", set.height = 0);
    SET("both-zero", set.width = set.height = 0);
    SET("rows", set.height = 4; set.pitch = 32);
    SET("rows-pitch-zero", set.height = 4);
    SET("rows-pitch-small", set.height = 4; set.pitch = 8);
    SET("rows-pitch-equal", set.height = 4; set.pitch = 16);
    SET("rows-pitch-odd", set.height = 4; set.pitch = 66; set.elementSize = 4);
    SET("row-with-pitch", set.pitch = 7);
    SET("misaligned", set.elementSize = 4; set.dst = memory + 2);
    SET("null", set.dst = 0);
    SET("pageable", set.dst = (uintptr_t)pageable);
    SET("pinned", set.dst = (uintptr_t)pinned);
    SET("reserved-only", set.dst = reserved);
    SET("leaves-allocation", set.width = 8192);
    SET("other-allocation", set.dst = second);
    SET("width-overflow", set.elementSize = 4; set.width = (size_t)1 << 62);
    SET("width-huge", set.width = (size_t)1 << 40);
    show_set("at-last", there);
}

SCENARIO(set_misuse, "graph-params/set-misuse", begin) {
    CUgraphNode node, made;
    CUcontext other = par_new_context();
    SETUP(cuCtxSetCurrent, (par.primary));
    CUDA_MEMSET_NODE_PARAMS set = set_params();
    node = empty_node();
    CALLO(cuGraphAddMemsetNode, "null-params", (&made, graph, NULL, 0, NULL, par.primary),
          OUT_C(made));
    CALLO(cuGraphAddMemsetNode, "null-graph", (&made, NULL, NULL, 0, &set, par.primary),
          OUT_C(made));
    CALLO(cuGraphAddMemsetNode, "null-context", (&made, graph, NULL, 0, &set, NULL), OUT_C(made));
    CALLO(cuGraphAddMemsetNode, "other-context", (&made, graph, NULL, 0, &set, other), OUT_C(made));
    CALLO(cuGraphMemsetNodeGetParams, "wrong-type", (node, &set), OUT_C(set.dst));
    set = set_params();
    CALL(cuGraphMemsetNodeSetParams, "wrong-type", (node, &set));
    SETUP(cuGraphAddMemsetNode, (&made, graph, NULL, 0, &set, par.primary));
    CALL(cuGraphMemsetNodeGetParams, "null-out", (made, NULL));
    CALL(cuGraphMemsetNodeSetParams, "null-params", (made, NULL));
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuGraphMemsetNodeSetParams, "no-context", (made, &set));
}

/* ---- Host functions, events ----------------------------------------------------------------- */

SCENARIO(hosts, "graph-params/hosts", begin) {
    static int data[2];
    CUgraphNode node, made, none;
    CUDA_HOST_NODE_PARAMS host = {host_work, &data[0]}, out;
    NAME(data);
    NAME(host_work);
    NAME(other_work);
    none = empty_node();
    CALLO(cuGraphAddHostNode, "ok", (&node, graph, NULL, 0, &host), OUT_C(node));
    CALLO(cuGraphHostNodeGetParams, "ok", (node, &out), OUT_P(out.fn), OUT_P(out.userData));
    CALLO(cuGraphAddHostNode, "null-params", (&made, graph, NULL, 0, NULL), OUT_C(made));
    CALLO(cuGraphAddHostNode, "null-graph", (&made, NULL, NULL, 0, &host), OUT_C(made));
    CALLO(cuGraphHostNodeGetParams, "wrong-type", (none, &out), OUT_C(out.fn));
    CALL(cuGraphHostNodeSetParams, "wrong-type", (none, &host));
    CALL(cuGraphHostNodeGetParams, "null-out", (node, NULL));
    CALL(cuGraphHostNodeSetParams, "null-params", (node, NULL));
    host.fn = other_work;
    host.userData = &data[1];
    CALL(cuGraphHostNodeSetParams, "ok", (node, &host));
    CALLO(cuGraphHostNodeGetParams, "after-set", (node, &out), OUT_P(out.fn), OUT_C(out.userData));
    host.fn = NULL;
    CALLO(cuGraphAddHostNode, "null-function", (&made, graph, NULL, 0, &host), OUT_C(made));
    CALL(cuGraphHostNodeSetParams, "null-function", (node, &host));
    CALLO(cuGraphHostNodeGetParams, "at-last", (node, &out), OUT_P(out.fn));
}

SCENARIO(events, "graph-params/events", begin) {
    CUgraphNode record, wait, made;
    CUevent event, second, timed, shared, got;
    SETUP(cuEventCreate, (&event, CU_EVENT_DISABLE_TIMING));
    SETUP(cuEventCreate, (&second, CU_EVENT_DISABLE_TIMING));
    SETUP(cuEventCreate, (&timed, 0));
    SETUP(cuEventCreate, (&shared, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    NAME(event);
    NAME(second);
    NAME(timed);
    NAME(shared);
    CALLO(cuGraphAddEventRecordNode, "ok", (&record, graph, NULL, 0, event), OUT_C(record));
    CALLO(cuGraphAddEventWaitNode, "ok", (&wait, graph, NULL, 0, event), OUT_C(wait));
    CALLO(cuGraphEventRecordNodeGetEvent, "ok", (record, &got), OUT_H(got));
    CALLO(cuGraphEventWaitNodeGetEvent, "ok", (wait, &got), OUT_H(got));
    CALLO(cuGraphEventRecordNodeGetEvent, "wrong-type", (wait, &got), OUT_H(got));
    CALLO(cuGraphEventWaitNodeGetEvent, "wrong-type", (record, &got), OUT_H(got));
    CALL(cuGraphEventRecordNodeSetEvent, "wrong-type", (wait, second));
    CALL(cuGraphEventWaitNodeSetEvent, "wrong-type", (record, second));
    CALL(cuGraphEventRecordNodeSetEvent, "ok", (record, second));
    CALL(cuGraphEventWaitNodeSetEvent, "ok", (wait, second));
    CALLO(cuGraphEventRecordNodeGetEvent, "after-set", (record, &got), OUT_H(got));
    CALLO(cuGraphEventWaitNodeGetEvent, "after-set", (wait, &got), OUT_H(got));
    CALL(cuGraphEventRecordNodeSetEvent, "timed", (record, timed));
    CALL(cuGraphEventWaitNodeSetEvent, "timed", (wait, timed));
    CALLO(cuGraphAddEventRecordNode, "timed", (&made, graph, NULL, 0, timed), OUT_C(made));
    CALLO(cuGraphAddEventRecordNode, "interprocess", (&made, graph, NULL, 0, shared), OUT_C(made));
    CALLO(cuGraphAddEventWaitNode, "interprocess", (&made, graph, NULL, 0, shared), OUT_C(made));
    CALL(cuGraphEventRecordNodeGetEvent, "null-out", (record, NULL));
    CALL(cuGraphEventWaitNodeGetEvent, "null-out", (wait, NULL));
    CALLO(cuGraphAddEventRecordNode, "null-event", (&made, graph, NULL, 0, NULL), OUT_C(made));
    CALLO(cuGraphAddEventWaitNode, "null-event", (&made, graph, NULL, 0, NULL), OUT_C(made));
    CALL(cuGraphEventRecordNodeSetEvent, "null-event", (record, NULL));
    CALL(cuGraphEventWaitNodeSetEvent, "null-event", (wait, NULL));
    par_new_context();
    SETUP(cuEventCreate, (&second, 0));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALLO(cuGraphAddEventRecordNode, "event-of-other-ctx", (&made, graph, NULL, 0, second),
          OUT_C(made));
}

SCENARIO(stale_event, "graph-params/stale-event", begin) {
    CUgraphNode made;
    CUevent event = par_event(0);
    SETUP(cuEventDestroy_v2, (event));
    CALLO(cuGraphAddEventRecordNode, "stale-event", (&made, graph, NULL, 0, event), OUT_C(made));
}

/* ---- Batches of memory operations ----------------------------------------------------------- */

static void show_ops(const char *cls, CUgraphNode node) {
    CUDA_BATCH_MEM_OP_NODE_PARAMS out;
    CALLO(cuGraphBatchMemOpNodeGetParams, cls, (node, &out), OUT_H(out.ctx), OUT_U(out.count),
          OUT_C(out.paramArray), OUT_X(out.flags));
    if (par_last() == CUDA_SUCCESS && out.count > 0 && out.paramArray)
        par_see("first-operation", "%d %llu", (int)out.paramArray[0].operation,
                (unsigned long long)out.paramArray[0].writeValue.value64);
}

#define OPS(cls, change)                                                                           \
    do {                                                                                           \
        CUgraphNode made = NULL;                                                                   \
        memset(list, 0, sizeof(list));                                                             \
        for (int i_ = 0; i_ < 300; i_++) {                                                         \
            list[i_].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;                                  \
            list[i_].writeValue.address = memory;                                                  \
            list[i_].writeValue.value = 5;                                                         \
        }                                                                                          \
        memset(&ops, 0, sizeof(ops));                                                              \
        ops.ctx = par.primary;                                                                     \
        ops.count = 1;                                                                             \
        ops.paramArray = list;                                                                     \
        change;                                                                                    \
        CALLO(cuGraphAddBatchMemOpNode, cls, (&made, graph, NULL, 0, &ops), OUT_C(made));          \
        if (par_last() == CUDA_SUCCESS)                                                            \
            show_ops(cls, made);                                                                   \
        CALL(cuGraphBatchMemOpNodeSetParams, cls, (there, &ops));                                  \
        if (par_last() == CUDA_SUCCESS)                                                            \
            show_ops("after-set", there);                                                          \
    } while (0)

SCENARIO(memops, "graph-params/memops", begin) {
    static CUstreamBatchMemOpParams list[300];
    static char pageable[64];
    static const int unknown[] = {0, 3, 7, 9};
    CUcontext other = par_new_context();
    SETUP(cuCtxSetCurrent, (par.primary));
    NAME(other);
    memset(list, 0, sizeof(list));
    list[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    list[0].writeValue.address = memory;
    CUDA_BATCH_MEM_OP_NODE_PARAMS ops = (CUDA_BATCH_MEM_OP_NODE_PARAMS){par.primary, 1, list, 0};
    CUgraphNode there = PAR_MADE(CUgraphNode, cuGraphAddBatchMemOpNode, graph, NULL, 0, &ops);
    OPS("ok", (void)0);
    OPS("count-zero", ops.count = 0);
    OPS("count-zero-null", ops.count = 0; ops.paramArray = NULL);
    OPS("null-array", ops.paramArray = NULL);
    OPS("count-255", ops.count = 255);
    OPS("count-256", ops.count = 256);
    OPS("count-257", ops.count = 257);
    OPS("flags", ops.flags = 1);
    OPS("null-context", ops.ctx = NULL);
    OPS("other-context", ops.ctx = other);
    OPS("write-64", list[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
        list[0].writeValue.value64 = 1ull << 40);
    OPS("write-flags", list[0].writeValue.flags = 1);
    OPS("write-bad-flags", list[0].writeValue.flags = 2);
    OPS("wait-32", list[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32);
    OPS("wait-64", list[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_64);
    OPS("wait-nor", list[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        list[0].waitValue.flags = CU_STREAM_WAIT_VALUE_NOR);
    OPS("wait-bad-flags", list[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        list[0].waitValue.flags = 4);
    OPS("wait-flush", list[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        list[0].waitValue.flags = CU_STREAM_WAIT_VALUE_FLUSH);
    OPS("flush", list[0].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES);
    OPS("barrier", list[0].operation = CU_STREAM_MEM_OP_BARRIER);
    OPS("barrier-gpu", list[0].operation = CU_STREAM_MEM_OP_BARRIER;
        list[0].memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_GPU);
    OPS("barrier-bad", list[0].operation = CU_STREAM_MEM_OP_BARRIER;
        list[0].memoryBarrier.flags = 2);
    for (size_t i = 0; i < 4; i++) {
        par_note("operation=%d", unknown[i]);
        OPS("unknown-operation", list[0].operation = (CUstreamBatchMemOpType)unknown[i]);
    }
    OPS("second-unknown", ops.count = 2; list[1].operation = (CUstreamBatchMemOpType)99);
    OPS("misaligned", list[0].writeValue.address = memory + 2);
    OPS("null-address", list[0].writeValue.address = 0);
    OPS("pageable", list[0].writeValue.address = (uintptr_t)pageable & ~(uintptr_t)7);
    show_ops("at-last", there);
    CALLO(cuGraphAddBatchMemOpNode, "null-params", (&there, graph, NULL, 0, NULL), OUT_C(there));
    CALL(cuGraphBatchMemOpNodeGetParams, "null-node", (NULL, &ops));
    CALL(cuGraphBatchMemOpNodeGetParams, "wrong-type", (empty_node(), &ops));
    CALL(cuGraphBatchMemOpNodeSetParams, "wrong-type", (empty_node(), &ops));
}

/* ---- External semaphores: none exist here, so lists are empty or wrong ----------------------- */

SCENARIO(semaphores, "graph-params/semaphores", begin) {
    CUgraphNode signal, wait, made;
    CUexternalSemaphore list[1] = {NULL};
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS one_signal[1] = {0};
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS one_wait[1] = {0};
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS s = {list, one_signal, 0}, s_out;
    CUDA_EXT_SEM_WAIT_NODE_PARAMS w = {list, one_wait, 0}, w_out;
    CALLO(cuGraphAddExternalSemaphoresSignalNode, "none", (&signal, graph, NULL, 0, &s),
          OUT_C(signal));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuGraphExternalSemaphoresSignalNodeGetParams, "none", (signal, &s_out),
              OUT_C(s_out.extSemArray), OUT_C(s_out.paramsArray), OUT_U(s_out.numExtSems));
        CALL(cuGraphExternalSemaphoresSignalNodeSetParams, "none", (signal, &s));
    }
    CALLO(cuGraphAddExternalSemaphoresWaitNode, "none", (&wait, graph, NULL, 0, &w), OUT_C(wait));
    if (par_last() == CUDA_SUCCESS) {
        CALLO(cuGraphExternalSemaphoresWaitNodeGetParams, "none", (wait, &w_out),
              OUT_C(w_out.extSemArray), OUT_C(w_out.paramsArray), OUT_U(w_out.numExtSems));
        CALL(cuGraphExternalSemaphoresWaitNodeSetParams, "none", (wait, &w));
    }
    CALL(cuGraphExternalSemaphoresSignalNodeGetParams, "wrong-type", (empty_node(), &s_out));
    CALL(cuGraphExternalSemaphoresWaitNodeGetParams, "wrong-type", (empty_node(), &w_out));
    CALL(cuGraphExternalSemaphoresSignalNodeSetParams, "wrong-type", (empty_node(), &s));
    CALL(cuGraphExternalSemaphoresWaitNodeSetParams, "wrong-type", (empty_node(), &w));
    CALLO(cuGraphAddExternalSemaphoresSignalNode, "null-params", (&made, graph, NULL, 0, NULL),
          OUT_C(made));
    CALLO(cuGraphAddExternalSemaphoresWaitNode, "null-params", (&made, graph, NULL, 0, NULL),
          OUT_C(made));
    s.numExtSems = w.numExtSems = 1;
    s.extSemArray = w.extSemArray = NULL;
    CALLO(cuGraphAddExternalSemaphoresSignalNode, "null-list", (&made, graph, NULL, 0, &s),
          OUT_C(made));
    CALLO(cuGraphAddExternalSemaphoresWaitNode, "null-list", (&made, graph, NULL, 0, &w),
          OUT_C(made));
    s.extSemArray = w.extSemArray = list;
    CALLO(cuGraphAddExternalSemaphoresSignalNode, "null-semaphore", (&made, graph, NULL, 0, &s),
          OUT_C(made));
    CALLO(cuGraphAddExternalSemaphoresWaitNode, "null-semaphore", (&made, graph, NULL, 0, &w),
          OUT_C(made));
}

/* ---- Allocations ---------------------------------------------------------------------------- */

#define ALLOC(cls, change)                                                                         \
    do {                                                                                           \
        CUDA_MEM_ALLOC_NODE_PARAMS alloc = {0}, out;                                               \
        CUgraphNode made = NULL;                                                                   \
        alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;                                 \
        alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;                               \
        alloc.bytesize = 4096;                                                                     \
        alloc.dptr = 0xa5a5;                                                                       \
        change;                                                                                    \
        CALLO(cuGraphAddMemAllocNode, cls, (&made, graph, NULL, 0, &alloc), OUT_C(made));          \
        if (par_last() == CUDA_SUCCESS) {                                                          \
            CALLO(cuGraphMemAllocNodeGetParams, cls, (made, &out), OUT_I(out.poolProps.allocType), \
                  OUT_I(out.poolProps.handleTypes), OUT_I(out.poolProps.location.type),            \
                  OUT_I(out.poolProps.location.id), OUT_U(out.poolProps.maxSize),                  \
                  OUT_U(out.poolProps.usage), OUT_U(out.accessDescCount), OUT_C(out.accessDescs),  \
                  OUT_U(out.bytesize), OUT_C(out.dptr));                                           \
            par_see("same-address", "%d", out.dptr == alloc.dptr);                                 \
        } else {                                                                                   \
            par_see("address-out", "%llx", (unsigned long long)alloc.dptr);                        \
        }                                                                                          \
    } while (0)

SCENARIO(allocations, "graph-params/allocations", begin) {
    CUmemAccessDesc access[2];
    CUDA_MEM_ALLOC_NODE_PARAMS out;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {0};
    CUgraphNode node, freed;
    CUdeviceptr dptr;
    access[0] = par_device_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    access[1] = access[0];
    ALLOC("ok", (void)0);
    ALLOC("size-one", alloc.bytesize = 1);
    ALLOC("size-zero", alloc.bytesize = 0);
    ALLOC("size-huge", alloc.bytesize = (size_t)1 << 50);
    ALLOC("type-zero", alloc.poolProps.allocType = (CUmemAllocationType)0);
    ALLOC("type-bad", alloc.poolProps.allocType = (CUmemAllocationType)9);
    ALLOC("handle-types", alloc.poolProps.handleTypes =
                              (CUmemAllocationHandleType)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ALLOC("bad-device", alloc.poolProps.location.id = 99);
    ALLOC("location-host", alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_HOST);
    ALLOC("location-zero", alloc.poolProps.location.type = (CUmemLocationType)0);
    ALLOC("max-size", alloc.poolProps.maxSize = (size_t)1 << 20);
    ALLOC("usage", alloc.poolProps.usage = 1);
    ALLOC("reserved", alloc.poolProps.reserved[3] = 1);
    ALLOC("access-own", alloc.accessDescs = access; alloc.accessDescCount = 1);
    ALLOC("access-twice", alloc.accessDescs = access; alloc.accessDescCount = 2);
    ALLOC("access-null-list", alloc.accessDescCount = 1);
    ALLOC("access-no-count", alloc.accessDescs = access);
    access[0].flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    ALLOC("access-read", alloc.accessDescs = access; alloc.accessDescCount = 1);
    access[0].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    ALLOC("access-none", alloc.accessDescs = access; alloc.accessDescCount = 1);
    access[0] = access[1];
    access[0].location.id = 99;
    ALLOC("access-bad-device", alloc.accessDescs = access; alloc.accessDescCount = 1);
    CALLO(cuGraphAddMemAllocNode, "null-params", (&node, graph, NULL, 0, NULL), OUT_C(node));
    alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    alloc.bytesize = 4096;
    SETUP(cuGraphAddMemAllocNode, (&node, graph, NULL, 0, &alloc));
    NAME(alloc.dptr);
    CALLO(cuGraphAddMemFreeNode, "ok", (&freed, graph, &node, 1, alloc.dptr), OUT_C(freed));
    CALLO(cuGraphMemFreeNodeGetParams, "ok", (freed, &dptr), OUT_P(dptr));
    CALLO(cuGraphMemFreeNodeGetParams, "wrong-type", (node, &dptr), OUT_C(dptr));
    CALLO(cuGraphMemAllocNodeGetParams, "wrong-type", (freed, &out), OUT_C(out.dptr));
    CALL(cuGraphMemFreeNodeGetParams, "null-out", (freed, NULL));
    CALL(cuGraphMemAllocNodeGetParams, "null-out", (node, NULL));
}

/* ---- Kernels -------------------------------------------------------------------------------- */

static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
                           ".visible .entry nothing()\n{\n    ret;\n}\n"
                           ".visible .entry two(.param .u32 a, .param .u64 b)\n{\n    ret;\n}\n"
                           ".visible .entry limited()\n.maxntid 32, 1, 1\n{\n    ret;\n}\n"
                           ".visible .entry required()\n.reqntid 8, 4, 2\n{\n    ret;\n}\n";

static CUfunction function(const char *name) {
    static CUmodule module;
    if (module == NULL)
        SETUP(cuModuleLoadData, (&module, text));
    CUfunction f = PAR_MADE(CUfunction, cuModuleGetFunction, module, name);
    par_name((uint64_t)(uintptr_t)f, 0, name);
    return f;
}

static CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction f) {
    CUDA_KERNEL_NODE_PARAMS k = {.func = f};
    k.gridDimX = k.gridDimY = k.gridDimZ = 1;
    k.blockDimX = k.blockDimY = k.blockDimZ = 1;
    return k;
}

static void show_kernel(const char *cls, CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS k;
    CALLO(cuGraphKernelNodeGetParams_v2, cls, (node, &k), OUT_H(k.func), OUT_U(k.gridDimX),
          OUT_U(k.gridDimY), OUT_U(k.gridDimZ), OUT_U(k.blockDimX), OUT_U(k.blockDimY),
          OUT_U(k.blockDimZ), OUT_U(k.sharedMemBytes), OUT_C(k.kernelParams), OUT_C(k.extra),
          OUT_C(k.kern), OUT_H(k.ctx));
}

#define KERNEL(cls, f, change)                                                                     \
    do {                                                                                           \
        CUDA_KERNEL_NODE_PARAMS k = kernel_params(f);                                              \
        CUgraphNode made = NULL;                                                                   \
        change;                                                                                    \
        CALLO(cuGraphAddKernelNode_v2, cls, (&made, graph, NULL, 0, &k), OUT_C(made));             \
        if (par_last() == CUDA_SUCCESS)                                                            \
            show_kernel(cls, made);                                                                \
        CALL(cuGraphKernelNodeSetParams_v2, cls, (there, &k));                                     \
        if (par_last() == CUDA_SUCCESS)                                                            \
            show_kernel("after-set", there);                                                       \
    } while (0)

SCENARIO(kernels, "graph-params/kernels", begin) {
    CUfunction f, limited;
    f = function("nothing");
    limited = function("limited");
    CUDA_KERNEL_NODE_PARAMS plain = kernel_params(f);
    CUgraphNode there = PAR_MADE(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &plain);
    KERNEL("ok", f, (void)0);
    KERNEL("null-function", NULL, (void)0);
    KERNEL("grid-zero", f, k.gridDimX = 0);
    KERNEL("grid-zero", f, k.gridDimY = 0);
    KERNEL("grid-zero", f, k.gridDimZ = 0);
    KERNEL("block-zero", f, k.blockDimX = 0);
    KERNEL("block-zero", f, k.blockDimY = 0);
    KERNEL("block-zero", f, k.blockDimZ = 0);
    KERNEL("grid-most", f, k.gridDimX = 0x7fffffff; k.gridDimY = k.gridDimZ = 65535);
    KERNEL("grid-x-too-large", f, k.gridDimX = 0x80000000u);
    KERNEL("grid-y-too-large", f, k.gridDimY = 65536);
    KERNEL("grid-z-too-large", f, k.gridDimZ = 65536);
    KERNEL("block-1024", f, k.blockDimX = 1024);
    KERNEL("block-1025", f, k.blockDimX = 1025);
    KERNEL("block-product", f, k.blockDimX = 64; k.blockDimY = 32);
    KERNEL("block-z-64", f, k.blockDimZ = 64);
    KERNEL("block-z-65", f, k.blockDimZ = 65);
    KERNEL("shared-48k", f, k.sharedMemBytes = 48 << 10);
    KERNEL("shared-over-48k", f, k.sharedMemBytes = (48 << 10) + 1);
    KERNEL("shared-huge", f, k.sharedMemBytes = 1u << 30);
    KERNEL("limited", limited, k.blockDimX = 32);
    KERNEL("limited-too-many", limited, k.blockDimX = 33);
    KERNEL("context-named", f, k.ctx = par.primary);
    show_kernel("at-last", there);
}

/* A function that requires a shape of its blocks. */
SCENARIO(kernel_required, "graph-params/kernel-required", begin) {
    CUfunction required;
    required = function("required");
    CUDA_KERNEL_NODE_PARAMS plain = kernel_params(required);
    plain.blockDimX = 8, plain.blockDimY = 4, plain.blockDimZ = 2;
    CUgraphNode there = PAR_MADE(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &plain);
    CUgraphExec exec = par_instantiate(graph);
    KERNEL("required", required, k.blockDimX = 8; k.blockDimY = 4; k.blockDimZ = 2);
    KERNEL("required-one", required, (void)0);
    KERNEL("required-turned", required, k.blockDimX = 4; k.blockDimY = 8; k.blockDimZ = 2);
    KERNEL("required-few", required, k.blockDimX = 8);
    plain.blockDimX = 4, plain.blockDimY = 8;
    CALL(cuGraphExecKernelNodeSetParams_v2, "required-turned", (exec, there, &plain));
    CALL(cuGraphLaunch, "after-required-turned", (exec, NULL));
    CALL(cuCtxSynchronize, "after-required-turned", ());
}

SCENARIO(kernel_arguments, "graph-params/kernel-arguments", begin) {
    CUDA_KERNEL_NODE_PARAMS plain, out;
    CUDA_KERNEL_NODE_PARAMS_v1 old, old_out;
    uint32_t a = 0x11223344;
    uint64_t b = 0x5566778899aabbccull;
    void *args[] = {&a, &b};
    struct {
        uint32_t a, pad;
        uint64_t b;
    } packed = {7, 0, 9};
    size_t size = sizeof(packed), small = 8, large = 64;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CUfunction f = function("nothing");
    CUfunction g = function("two");
    plain = kernel_params(f);
    CUgraphNode there = PAR_MADE(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &plain);
    KERNEL("arguments", g, k.kernelParams = args);
    KERNEL("extra", g, k.extra = extra);
    extra[3] = &large;
    KERNEL("extra-large", g, k.extra = extra);
    extra[3] = &small;
    KERNEL("extra-small", g, k.extra = extra);
    extra[3] = &size;
    KERNEL("both", g, k.kernelParams = args; k.extra = extra);
    KERNEL("useless-arguments", f, k.kernelParams = args);
    plain = kernel_params(g);
    plain.kernelParams = args;
    CUgraphNode node = PAR_MADE(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &plain);
    a = 1;
    b = 2;
    CALLO(cuGraphKernelNodeGetParams_v2, "values", (node, &out), OUT_C(out.kernelParams),
          OUT_C(out.extra));
    if (par_last() == CUDA_SUCCESS && out.kernelParams)
        par_see("values", "%x %llx", *(uint32_t *)out.kernelParams[0],
                *(unsigned long long *)out.kernelParams[1]);
    memset(&old, 0, sizeof(old));
    old.func = g;
    old.gridDimX = old.gridDimY = old.gridDimZ = 1;
    old.blockDimX = old.blockDimY = old.blockDimZ = 2;
    old.kernelParams = args;
    CALLO(cuGraphAddKernelNode, "v1", (&node, graph, NULL, 0, &old), OUT_C(node));
    CALLO(cuGraphKernelNodeGetParams, "v1", (node, &old_out), OUT_H(old_out.func),
          OUT_U(old_out.blockDimX), OUT_C(old_out.kernelParams));
    old.blockDimX = 4;
    CALL(cuGraphKernelNodeSetParams, "v1", (node, &old));
    show_kernel("v1-after-set", node);
    CALLO(cuGraphKernelNodeGetParams_v2, "wrong-type", (empty_node(), &out), OUT_C(out.func));
    CALL(cuGraphKernelNodeSetParams_v2, "wrong-type", (empty_node(), &plain));
    CALL(cuGraphKernelNodeGetParams_v2, "null-out", (node, NULL));
    CALL(cuGraphKernelNodeSetParams_v2, "null-params", (node, NULL));
    CALLO(cuGraphAddKernelNode_v2, "null-params", (&node, graph, NULL, 0, NULL), OUT_C(node));
}

SCENARIO(kernel_missing_arguments, "graph-params/kernel-missing-arguments", begin) {
    CUgraphNode node;
    CUDA_KERNEL_NODE_PARAMS k = kernel_params(function("two"));
    CALLO(cuGraphAddKernelNode_v2, "missing-arguments", (&node, graph, NULL, 0, &k), OUT_C(node));
}

SCENARIO(kernel_handles, "graph-params/kernel-handles", begin) {
    CUfunction f = function("nothing");
    CUcontext other = par_new_context();
    NAME(other);
    CUmodule module = par_module(text);
    CUfunction of_other = par_function(module, "nothing");
    NAME(of_other);
    SETUP(cuCtxSetCurrent, (par.primary));
    CUlibrary library = PAR_MADE(CUlibrary, cuLibraryLoadData, text, NULL, NULL, 0, NULL, NULL, 0);
    CUkernel kern = PAR_MADE(CUkernel, cuLibraryGetKernel, library, "nothing");
    NAME(kern);
    CUDA_KERNEL_NODE_PARAMS plain = kernel_params(f);
    CUgraphNode there = PAR_MADE(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &plain);
    KERNEL("function-of-other-ctx", of_other, (void)0);
    KERNEL("kernel", NULL, k.kern = kern);
    KERNEL("kernel-with-context", NULL, k.kern = kern; k.ctx = par.primary);
    KERNEL("kernel-with-other-context", NULL, k.kern = kern; k.ctx = other);
    KERNEL("both", f, k.kern = kern);
    KERNEL("function-with-other-context", f, k.ctx = other);
    KERNEL("kernel-as-function", (CUfunction)kern, (void)0);
    SETUP(cuCtxSetCurrent, (NULL));
    KERNEL("no-context", f, (void)0);
    KERNEL("kernel-no-context", NULL, k.kern = kern);
}

/* ---- Attributes of kernel nodes ------------------------------------------------------------- */

static void get_attribute(const char *cls, CUgraphNode node, int id) {
    CUkernelNodeAttrValue v;
    par_note("id=%d", id);
    if (id == 1 || id == 13) { /* they hold addresses */
        CALLO(cuGraphKernelNodeGetAttribute, cls, (node, (CUkernelNodeAttrID)id, &v),
              OUT_C(v.accessPolicyWindow.base_ptr), OUT_U(v.accessPolicyWindow.hitRatio),
              OUT_C(v.deviceUpdatableKernelNode.devNode));
        return;
    }
    CALLO(cuGraphKernelNodeGetAttribute, cls, (node, (CUkernelNodeAttrID)id, &v),
          OUT_I(v.cooperative), OUT_U(v.clusterDim.y), OUT_U(v.clusterDim.z));
}

SCENARIO(attributes, "graph-params/attributes", begin) {
    CUgraphNode node, second, none;
    CUkernelNodeAttrValue v;
    CUgraph copy;
    CUfunction f = function("nothing");
    CUDA_KERNEL_NODE_PARAMS plain = kernel_params(f);
    SETUP(cuGraphAddKernelNode_v2, (&node, graph, NULL, 0, &plain));
    SETUP(cuGraphAddKernelNode_v2, (&second, graph, NULL, 0, &plain));
    none = empty_node();
    for (int id = -1; id <= 18; id++)
        get_attribute("fresh", node, id);
#define ATTRIBUTE(cls, id, change)                                                                 \
    do {                                                                                           \
        memset(&v, 0, sizeof(v));                                                                  \
        change;                                                                                    \
        par_note("id=%d", id);                                                                     \
        CALL(cuGraphKernelNodeSetAttribute, cls, (node, (CUkernelNodeAttrID)(id), &v));            \
        get_attribute("after-set", node, id);                                                      \
    } while (0)
    for (int id = -1; id <= 18; id++)
        if (id != 7 && id != 12 && id != 13)
            ATTRIBUTE("zeros", id, (void)0);
    ATTRIBUTE("cooperative", 2, v.cooperative = 1);
    ATTRIBUTE("cooperative-two", 2, v.cooperative = 2);
    ATTRIBUTE("cooperative-off", 2, v.cooperative = 0);
    ATTRIBUTE("priority", 8, v.priority = -3);
    ATTRIBUTE("priority-too-high", 8, v.priority = -100);
    ATTRIBUTE("priority-too-low", 8, v.priority = 100);
    ATTRIBUTE("cluster", 4, v.clusterDim.x = 1; v.clusterDim.y = 1; v.clusterDim.z = 1);
    ATTRIBUTE("cluster-two", 4, v.clusterDim.x = 2; v.clusterDim.y = 1; v.clusterDim.z = 1);
    ATTRIBUTE("cluster-sixteen", 4, v.clusterDim.x = 16; v.clusterDim.y = 1; v.clusterDim.z = 1);
    ATTRIBUTE("cluster-part-zero", 4, v.clusterDim.x = 2);
    ATTRIBUTE("scheduling", 5, v.clusterSchedulingPolicyPreference = 1);
    ATTRIBUTE("scheduling-bad", 5, v.clusterSchedulingPolicyPreference = 9);
    ATTRIBUTE("domain", 10, v.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
    ATTRIBUTE("domain-bad", 10, v.memSyncDomain = (CUlaunchMemSyncDomain)5);
    ATTRIBUTE("domain-map", 9, v.memSyncDomainMap.default_ = 1; v.memSyncDomainMap.remote = 2);
    ATTRIBUTE("domain-map-bad", 9, v.memSyncDomainMap.default_ = 99);
    ATTRIBUTE("carveout", 14, v.sharedMemCarveout = 50);
    ATTRIBUTE("carveout-default", 14, v.sharedMemCarveout = ~0u);
    ATTRIBUTE("carveout-bad", 14, v.sharedMemCarveout = 101);
    ATTRIBUTE("serialization", 6, v.programmaticStreamSerializationAllowed = 1);
    ATTRIBUTE("synchronization", 3, v.syncPolicy = CU_SYNC_POLICY_SPIN);
    ATTRIBUTE("window", 1, v.accessPolicyWindow.base_ptr = (void *)(uintptr_t)memory;
              v.accessPolicyWindow.num_bytes = 4096; v.accessPolicyWindow.hitRatio = 0.5f;
              v.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
              v.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING);
    ATTRIBUTE("window-ratio", 1, v.accessPolicyWindow.base_ptr = (void *)(uintptr_t)memory;
              v.accessPolicyWindow.num_bytes = 4096; v.accessPolicyWindow.hitRatio = 2.0f);
    ATTRIBUTE("window-miss-persisting", 1,
              v.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_PERSISTING);
    CALL(cuGraphKernelNodeCopyAttributes, "ok", (second, node));
    for (int id = 0; id <= 17; id++)
        get_attribute("copied", second, id);
    CALL(cuGraphKernelNodeCopyAttributes, "itself", (node, node));
    CALL(cuGraphKernelNodeCopyAttributes, "null", (NULL, node));
    CALL(cuGraphKernelNodeCopyAttributes, "null", (node, NULL));
    CALL(cuGraphKernelNodeCopyAttributes, "wrong-type", (node, none));
    CALL(cuGraphKernelNodeCopyAttributes, "wrong-type", (none, node));
    CALL(cuGraphKernelNodeGetAttribute, "null-out", (node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, NULL));
    CALL(cuGraphKernelNodeSetAttribute, "null-value",
         (node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, NULL));
    get_attribute("wrong-type", none, 2);
    memset(&v, 0, sizeof(v));
    CALL(cuGraphKernelNodeSetAttribute, "wrong-type", (none, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
    SETUP(cuGraphClone, (&copy, graph));
    SETUP(cuGraphNodeFindInClone, (&second, node, copy));
    get_attribute("clone", second, 8);
    get_attribute("clone", second, 1);
}

SCENARIO(updatable_attribute, "graph-params/updatable-attribute", begin) {
    CUgraphNode node, made;
    CUkernelNodeAttrValue v;
    CUgraph copy;
    CUfunction f = function("nothing");
    CUDA_KERNEL_NODE_PARAMS plain = kernel_params(f);
    SETUP(cuGraphAddKernelNode_v2, (&node, graph, NULL, 0, &plain));
    memset(&v, 0, sizeof(v));
    v.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CALLO(cuGraphKernelNodeSetAttribute, "updatable",
          (node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &v), OUT_C(made));
    get_attribute("updatable", node, 13);
    CALLO(cuGraphClone, "updatable", (&copy, graph), OUT_C(copy));
    CALL(cuGraphDestroyNode, "updatable", (node));
}

/* ---- Nodes of any type ---------------------------------------------------------------------- */

#define ANY(cls, change)                                                                           \
    do {                                                                                           \
        CUgraphNodeParams p = {0};                                                                 \
        CUgraphNode made = NULL;                                                                   \
        change;                                                                                    \
        CALLO(cuGraphAddNode, cls, (&made, graph, NULL, 0, &p), OUT_C(made));                      \
    } while (0)

SCENARIO(any_type, "graph-params/any-type", begin) {
    CUgraphNode made;
    CUgraphNodeType type;
    CUgraphNodeParams q = {0};
    CUcontext primary;
    primary = par.primary;
    CUevent event = par_event(0);
    for (int t = -1; t <= 16; t++) {
        par_note("type=%d", t);
        ANY("zeros", p.type = (CUgraphNodeType)t);
    }
    ANY("empty-reserved0", p.type = CU_GRAPH_NODE_TYPE_EMPTY; p.reserved0[1] = 1);
    ANY("empty-reserved2", p.type = CU_GRAPH_NODE_TYPE_EMPTY; p.reserved2 = 1);
    ANY("empty-union", p.type = CU_GRAPH_NODE_TYPE_EMPTY; p.reserved1[0] = 1);
    ANY("empty-union-end", p.type = CU_GRAPH_NODE_TYPE_EMPTY; p.reserved1[28] = 1);
    ANY("host", p.type = CU_GRAPH_NODE_TYPE_HOST; p.host.fn = host_work);
    ANY("host-union", p.type = CU_GRAPH_NODE_TYPE_HOST; p.host.fn = host_work; p.reserved1[5] = 1);
    ANY("host-reserved2", p.type = CU_GRAPH_NODE_TYPE_HOST; p.host.fn = host_work; p.reserved2 = 1);
    ANY("memset", p.type = CU_GRAPH_NODE_TYPE_MEMSET; p.memset.dst = memory;
        p.memset.elementSize = 1; p.memset.width = 16; p.memset.height = 1);
    ANY("memset-context", p.type = CU_GRAPH_NODE_TYPE_MEMSET; p.memset.dst = memory;
        p.memset.elementSize = 1; p.memset.width = 16; p.memset.height = 1; p.memset.ctx = primary);
    ANY("memset-union", p.type = CU_GRAPH_NODE_TYPE_MEMSET; p.memset.dst = memory;
        p.memset.elementSize = 1; p.memset.width = 16; p.memset.height = 1; p.reserved1[20] = 1);
    ANY("memcpy", p.type = CU_GRAPH_NODE_TYPE_MEMCPY; p.memcpy.copyParams = copy_params());
    ANY("memcpy-context", p.type = CU_GRAPH_NODE_TYPE_MEMCPY; p.memcpy.copyCtx = primary;
        p.memcpy.copyParams = copy_params());
    ANY("memcpy-flags", p.type = CU_GRAPH_NODE_TYPE_MEMCPY; p.memcpy.flags = 1;
        p.memcpy.copyParams = copy_params());
    ANY("memcpy-reserved", p.type = CU_GRAPH_NODE_TYPE_MEMCPY; p.memcpy.reserved = 1;
        p.memcpy.copyParams = copy_params());
    ANY("event-wait", p.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT; p.eventWait.event = event);
    ANY("event-record", p.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD; p.eventRecord.event = event);
    ANY("memop", p.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; p.memOp.ctx = primary);
    ANY("alloc", p.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        p.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        p.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE; p.alloc.bytesize = 64);
    ANY("free-not-graph-memory", p.type = CU_GRAPH_NODE_TYPE_MEM_FREE; p.free.dptr = memory);
    CALLO(cuGraphAddNode, "null-params", (&made, graph, NULL, 0, NULL), OUT_C(made));
    q.type = CU_GRAPH_NODE_TYPE_EMPTY;
    CALL(cuGraphAddNode, "null-out", (NULL, graph, NULL, 0, &q));
    CALLO(cuGraphAddNode, "null-graph", (&made, NULL, NULL, 0, &q), OUT_C(made));
    CALLO(cuGraphAddNode, "null-list", (&made, graph, NULL, 1, &q), OUT_C(made));
    CALLO(cuGraphAddNode, "ok", (&made, graph, NULL, 0, &q), OUT_C(made));
    CALLO(cuGraphNodeGetType, "ok", (made, &type), OUT_I(type));
    CALL(cuGraphNodeSetParams, "empty", (made, &q));
    CALL(cuGraphNodeSetParams, "null-params", (made, NULL));
    CALL(cuGraphNodeSetParams, "null-node", (NULL, &q));
    q.type = CU_GRAPH_NODE_TYPE_HOST;
    q.host.fn = host_work;
    CALL(cuGraphNodeSetParams, "other-type", (made, &q));
}

SCENARIO(set_any_type, "graph-params/set-any-type", begin) {
    static CUstreamBatchMemOpParams list[2];
    CUgraphNode set, copy, host, wait, record, ops, alloc, freed, child, kernel;
    CUgraphNodeParams p = {0};
    CUdeviceptr address;
    CUevent event, second, got;
    CUgraph inner, embedded;
    CUDA_HOST_NODE_PARAMS host_out;
    size_t count;
    SETUP(cuEventCreate, (&event, 0));
    SETUP(cuEventCreate, (&second, 0));
    NAME(event);
    NAME(second);
    NAME(host_work);
    NAME(other_work);
#define SWITCH(t) (memset(&p, 0, sizeof(p)), p.type = (t))
    SWITCH(CU_GRAPH_NODE_TYPE_MEMSET);
    p.memset.dst = memory;
    p.memset.elementSize = 1;
    p.memset.width = 16;
    p.memset.height = 1;
    p.memset.ctx = par.primary;
    SETUP(cuGraphAddNode, (&set, graph, NULL, 0, &p));
    p.memset.value = 9;
    p.memset.width = 32;
    CALL(cuGraphNodeSetParams, "memset", (set, &p));
    show_set("after-set", set);
    p.memset.ctx = NULL;
    CALL(cuGraphNodeSetParams, "memset-null-context", (set, &p));
    p.reserved2 = 1;
    CALL(cuGraphNodeSetParams, "memset-reserved2", (set, &p));
    SWITCH(CU_GRAPH_NODE_TYPE_MEMCPY);
    p.memcpy.copyCtx = par.primary;
    p.memcpy.copyParams = copy_params();
    SETUP(cuGraphAddNode, (&copy, graph, NULL, 0, &p));
    p.memcpy.copyParams.WidthInBytes = 99;
    CALL(cuGraphNodeSetParams, "memcpy", (copy, &p));
    show_copy("after-set", copy);
    SWITCH(CU_GRAPH_NODE_TYPE_HOST);
    p.host.fn = host_work;
    SETUP(cuGraphAddNode, (&host, graph, NULL, 0, &p));
    p.host.fn = other_work;
    CALL(cuGraphNodeSetParams, "host", (host, &p));
    CALLO(cuGraphHostNodeGetParams, "after-set", (host, &host_out), OUT_P(host_out.fn));
    SWITCH(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    p.eventWait.event = event;
    SETUP(cuGraphAddNode, (&wait, graph, NULL, 0, &p));
    p.eventWait.event = second;
    CALL(cuGraphNodeSetParams, "event-wait", (wait, &p));
    CALLO(cuGraphEventWaitNodeGetEvent, "after-set", (wait, &got), OUT_H(got));
    SWITCH(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    p.eventRecord.event = event;
    SETUP(cuGraphAddNode, (&record, graph, NULL, 0, &p));
    p.eventRecord.event = second;
    CALL(cuGraphNodeSetParams, "event-record", (record, &p));
    CALLO(cuGraphEventRecordNodeGetEvent, "after-set", (record, &got), OUT_H(got));
    SWITCH(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    list[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    list[0].writeValue.address = memory;
    p.memOp.ctx = par.primary;
    p.memOp.count = 1;
    p.memOp.paramArray = list;
    SETUP(cuGraphAddNode, (&ops, graph, NULL, 0, &p));
    list[0].writeValue.value = 6;
    CALL(cuGraphNodeSetParams, "memop", (ops, &p));
    show_ops("after-set", ops);
    SETUP(cuGraphCreate, (&inner, 0));
    SWITCH(CU_GRAPH_NODE_TYPE_GRAPH);
    p.graph.graph = inner;
    SETUP(cuGraphAddNode, (&child, graph, NULL, 0, &p));
    SETUP(cuGraphAddEmptyNode, (&kernel, inner, NULL, 0));
    p.graph.graph = inner;
    CALL(cuGraphNodeSetParams, "child", (child, &p));
    CALLO(cuGraphChildGraphNodeGetGraph, "after-set", (child, &embedded), OUT_C(embedded));
    CALLO(cuGraphGetNodes, "after-set", (embedded, NULL, &count), OUT_U(count));
    SWITCH(CU_GRAPH_NODE_TYPE_KERNEL);
    p.kernel.func = function("nothing");
    p.kernel.gridDimX = p.kernel.gridDimY = p.kernel.gridDimZ = 1;
    p.kernel.blockDimX = p.kernel.blockDimY = p.kernel.blockDimZ = 1;
    SETUP(cuGraphAddNode, (&kernel, graph, NULL, 0, &p));
    p.kernel.blockDimX = 8;
    CALL(cuGraphNodeSetParams, "kernel", (kernel, &p));
    show_kernel("after-set", kernel);
    SWITCH(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    p.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.alloc.bytesize = 64;
    SETUP(cuGraphAddNode, (&alloc, graph, NULL, 0, &p));
    address = p.alloc.dptr;
    CALL(cuGraphNodeSetParams, "alloc", (alloc, &p));
    SWITCH(CU_GRAPH_NODE_TYPE_MEM_FREE);
    p.free.dptr = address;
    SETUP(cuGraphAddNode, (&freed, graph, &alloc, 1, &p));
    CALL(cuGraphNodeSetParams, "free", (freed, &p));
}
