/* Building graphs: nodes of every type, edges, clones, user objects. Nothing here runs. */
#include "world.h"

#define GRAPH()  OF(CUgraph, GRAPHS)
#define NODE()   OF(CUgraphNode, NODES)
#define OBJECT() OF(CUuserObject, USER_OBJECTS)

#define MOST 4

/* What a node comes after. */
static CUgraphNode nodes[MOST], others[MOST];
static CUgraphEdgeData data[MOST];

static size_t draw_nodes(void) {
    unsigned pick = byte();
    size_t count = pick < 0x60 ? 0 : 1 + pick % (MOST - 1);
    for (size_t i = 0; i < MOST; i++) {
        nodes[i] = i < count || pick >= 0xf0 ? NODE() : NULL;
        data[i] = (CUgraphEdgeData){0};
        if (pick >= 0xe0 && i < count) {
            data[i].from_port = byte();
            data[i].to_port = byte() & 3;
            data[i].type = byte() & 3;
            data[i].reserved[byte() % 5] = byte() < 0xf0 ? 0 : 1;
        }
    }
    return count;
}

static void made_node(CUgraphNode node) {
    remember(NODES, (uintptr_t)node);
}

static void graph_create(void) {
    CUgraph made = NULL;
    cuGraphCreate(maybe(&made), byte() < 0xf8 ? 0 : byte());
    remember(GRAPHS, (uintptr_t)made);
}

static void graph_clone(void) {
    CUgraph made = NULL;
    CUgraphNode found = NULL;
    cuGraphClone(maybe(&made), GRAPH());
    remember(GRAPHS, (uintptr_t)made);
    cuGraphNodeFindInClone(maybe(&found), NODE(), byte() & 1 ? made : GRAPH());
    made_node(found);
}

static void graph_end(void) {
    if (byte() & 3)
        cuGraphDestroyNode(NODE());
    else
        cuGraphDestroy(GRAPH());
}

static void CUDA_CB nothing(void *word) {
    if (word)
        __atomic_fetch_xor((unsigned char *)word, 1, __ATOMIC_RELAXED);
}

static CUDA_MEMSET_NODE_PARAMS draw_set(void) {
    static const unsigned sizes[] = {1, 2, 4, 4, 3, 0, 8, 1};
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = draw_any_address(),
        .pitch = byte() & 1 ? 0 : draw_size(),
        .value = (unsigned)draw_pattern(),
        .elementSize = sizes[byte() & 7],
        .width = byte() & 1 ? draw_little(256) : draw_size(),
        .height = byte() < 0xc0 ? 1 : draw_little(64),
    };
    return set;
}

/* Above this frame when a call reads them: what is kept must have been copied. */
struct lists {
    CUstreamBatchMemOpParams operations[4];
    CUexternalSemaphore semaphores[2];
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signals[2];
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS waits[2];
    CUmemAccessDesc access[2];
};

static CUmemPoolProps draw_pool(void) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, byte() & 1}};
    if (byte() >= 0xe0) {
        props.location = draw_location();
        props.handleTypes = (CUmemAllocationHandleType)(byte() & 3);
        props.maxSize = byte() & 1 ? 0 : draw_size();
    }
    return props;
}

static void draw_allocation(CUDA_MEM_ALLOC_NODE_PARAMS *alloc, struct lists *lists) {
    *alloc = (CUDA_MEM_ALLOC_NODE_PARAMS){.poolProps = draw_pool(), .bytesize = draw_size()};
    unsigned pick = byte();
    if (pick < 0xa0)
        return;
    for (unsigned i = 0; i < 2; i++)
        lists->access[i] = (CUmemAccessDesc){draw_location(), (CUmemAccess_flags)(byte() & 3)};
    alloc->accessDescs = maybe(lists->access);
    alloc->accessDescCount = pick & 3 ? pick % 3 : 0;
}

static void draw_batch(struct lists *lists) {
    for (unsigned i = 0; i < 4; i++)
        lists->operations[i] = draw_memory_operation();
}

static void draw_launch(CUDA_KERNEL_NODE_PARAMS *kernel) {
    *kernel = (CUDA_KERNEL_NODE_PARAMS){
        .func = byte() & 1 ? OF(CUfunction, FUNCTIONS) : NULL,
        .gridDimX = byte() & 3,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = byte(),
        .blockDimY = 1 + (byte() & 1),
        .blockDimZ = 1,
        .sharedMemBytes = byte() < 0xc0 ? 0 : draw32(&world.input),
        .kernelParams = draw_kernel_parameters(),
    };
    if (!kernel->func) {
        kernel->kern = OF(CUkernel, KERNELS);
        kernel->ctx = byte() & 1 ? CTX() : NULL;
    }
}

/* A loop whose condition holds when it begins would never end: nothing here changes one. */
static CUgraphConditionalHandle draw_condition(CUgraph graph, CUgraphConditionalNodeType type,
                                               CUcontext context) {
    CUgraphConditionalHandle made = 0;
    unsigned pick = byte();
    if (pick < 0x60)
        return draw_value(CONDITIONS);
    bool loop = type == CU_GRAPH_COND_TYPE_WHILE;
    cuGraphConditionalHandleCreate(&made, graph, context, loop ? 0 : pick & 3,
                                   pick & 4 ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0);
    return made;
}

static void draw_params(CUgraphNodeParams *params, CUgraph graph, struct lists *lists) {
    unsigned pick = byte();
    params->type = (CUgraphNodeType)(pick % 14);
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS kernel;
        draw_launch(&kernel);
        memcpy(&params->kernel, &kernel, sizeof kernel);
        break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        params->memcpy.flags = byte() < 0xf8 ? 0 : 1;
        params->memcpy.copyCtx = CTX();
        params->memcpy.copyParams = draw_box();
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS set = draw_set();
        memcpy(&params->memset, &set, sizeof set);
        params->memset.ctx = CTX();
        break;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
        params->host.fn = byte() < 0xf8 ? nothing : NULL;
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        params->graph.graph = GRAPH();
        params->graph.ownership = (CUgraphChildGraphNodeOwnership)(byte() < 0xc0 ? 0 : byte() & 3);
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        params->eventRecord.event = EVENT();
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        draw_fences(lists->semaphores, lists->signals, lists->waits, 2);
        params->extSemSignal.extSemArray = maybe(lists->semaphores);
        params->extSemSignal.paramsArray = params->type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL
                                               ? lists->signals
                                               : (void *)lists->waits;
        params->extSemSignal.numExtSems = byte() % 3;
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        draw_allocation(&alloc, lists);
        memcpy(&params->alloc, &alloc, sizeof alloc);
        break;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        params->free.dptr = draw_any_address();
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        draw_batch(lists);
        params->memOp.ctx = CTX();
        params->memOp.count = byte() % 5;
        params->memOp.paramArray = maybe(lists->operations);
        params->memOp.flags = byte() < 0xf8 ? 0 : 1;
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        params->conditional.type = (CUgraphConditionalNodeType)(byte() % 3);
        params->conditional.size = byte() < 0xc0 ? 1 : byte() & 3;
        params->conditional.ctx = CTX();
        params->conditional.handle =
            draw_condition(graph, params->conditional.type, params->conditional.ctx);
        break;
    default:
        break;
    }
    if (pick >= 0xfc)
        params->type = (CUgraphNodeType)byte();
    if (pick >= 0xf8 && params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
        params->reserved0[byte() % 3] = byte() & 1;
}

static void add_node(void) {
    struct lists lists;
    CUgraph graph = GRAPH();
    CUgraphNodeParams params = {0};
    CUgraphNode made = NULL;
    size_t count = draw_nodes();
    draw_params(&params, graph, &lists);
    if (byte() & 1)
        cuGraphAddNode_v2(maybe(&made), graph, nodes, byte() & 1 ? data : NULL, count, &params);
    else
        cuGraphAddNode(maybe(&made), graph, nodes, count, maybe(&params));
    if (made && params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        remember(ADDRESSES, params.alloc.dptr);
    if (made && params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && params.conditional.phGraph_out)
        for (unsigned i = 0; i < params.conditional.size; i++)
            remember(GRAPHS, (uintptr_t)params.conditional.phGraph_out[i]);
    made_node(made);
}

static void add_old(void) {
    struct lists lists;
    CUgraphNode made = NULL;
    CUgraph graph = GRAPH();
    size_t count = draw_nodes();
    switch (byte() % 12) {
    case 0:
        cuGraphAddEmptyNode(maybe(&made), graph, maybe(nodes), count);
        break;
    case 1:
        cuGraphAddChildGraphNode(maybe(&made), graph, nodes, count, GRAPH());
        break;
    case 2:
        cuGraphAddEventRecordNode(maybe(&made), graph, nodes, count, EVENT());
        break;
    case 3:
        cuGraphAddEventWaitNode(maybe(&made), graph, nodes, count, EVENT());
        break;
    case 4: {
        CUDA_HOST_NODE_PARAMS host = {byte() < 0xf8 ? nothing : NULL, NULL};
        cuGraphAddHostNode(maybe(&made), graph, nodes, count, maybe(&host));
        break;
    }
    case 5: {
        CUDA_KERNEL_NODE_PARAMS kernel;
        draw_launch(&kernel);
        cuGraphAddKernelNode_v2(maybe(&made), graph, nodes, count, maybe(&kernel));
        break;
    }
    case 6: {
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        draw_allocation(&alloc, &lists);
        cuGraphAddMemAllocNode(maybe(&made), graph, nodes, count, maybe(&alloc));
        remember(ADDRESSES, alloc.dptr);
        break;
    }
    case 7:
        cuGraphAddMemFreeNode(maybe(&made), graph, nodes, count, draw_any_address());
        break;
    case 8: {
        CUDA_MEMCPY3D box = draw_box();
        cuGraphAddMemcpyNode(maybe(&made), graph, nodes, count, maybe(&box), CTX());
        break;
    }
    case 9: {
        CUDA_MEMSET_NODE_PARAMS set = draw_set();
        cuGraphAddMemsetNode(maybe(&made), graph, nodes, count, maybe(&set), CTX());
        break;
    }
    case 10: {
        draw_batch(&lists);
        CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {CTX(), byte() % 5, maybe(lists.operations), 0};
        cuGraphAddBatchMemOpNode(maybe(&made), graph, nodes, count, maybe(&batch));
        break;
    }
    default: {
        draw_fences(lists.semaphores, lists.signals, lists.waits, 2);
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal = {lists.semaphores, lists.signals, byte() % 3};
        CUDA_EXT_SEM_WAIT_NODE_PARAMS wait = {lists.semaphores, lists.waits, byte() % 3};
        if (byte() & 1)
            cuGraphAddExternalSemaphoresSignalNode(maybe(&made), graph, nodes, count, &signal);
        else
            cuGraphAddExternalSemaphoresWaitNode(maybe(&made), graph, nodes, count, &wait);
        break;
    }
    }
    made_node(made);
}

static void set_params(void) {
    struct lists lists;
    CUgraphNodeParams params = {0};
    CUgraphNode node = NODE();
    switch (byte() % 8) {
    case 0:
        cuGraphEventRecordNodeSetEvent(node, EVENT());
        break;
    case 1:
        cuGraphEventWaitNodeSetEvent(node, EVENT());
        break;
    case 2: {
        CUDA_MEMCPY3D box = draw_box();
        cuGraphMemcpyNodeSetParams(node, maybe(&box));
        break;
    }
    case 3: {
        CUDA_MEMSET_NODE_PARAMS set = draw_set();
        cuGraphMemsetNodeSetParams(node, maybe(&set));
        break;
    }
    case 4: {
        draw_batch(&lists);
        CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {CTX(), byte() % 5, maybe(lists.operations), 0};
        cuGraphBatchMemOpNodeSetParams(node, maybe(&batch));
        break;
    }
    case 5: {
        CUDA_KERNEL_NODE_PARAMS kernel;
        draw_launch(&kernel);
        cuGraphKernelNodeSetParams_v2(node, maybe(&kernel));
        break;
    }
    default:
        draw_params(&params, GRAPH(), &lists);
        cuGraphNodeSetParams(node, maybe(&params));
        break;
    }
}

static void get_params(void) {
    CUgraphNode node = NODE();
    CUgraphNodeType type;
    CUgraphNodeParams room;
    CUgraph child = NULL;
    CUevent event;
    CUdeviceptr address;
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal;
    CUDA_EXT_SEM_WAIT_NODE_PARAMS wait;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUDA_KERNEL_NODE_PARAMS kernel;
    cuGraphNodeGetType(node, maybe(&type));
    cuGraphChildGraphNodeGetGraph(node, maybe(&child));
    remember(GRAPHS, (uintptr_t)child);
    cuGraphEventRecordNodeGetEvent(node, maybe(&event));
    cuGraphEventWaitNodeGetEvent(node, maybe(&event));
    cuGraphMemFreeNodeGetParams(node, maybe(&address));
    cuGraphBatchMemOpNodeGetParams(node, maybe(&batch));
    cuGraphExternalSemaphoresSignalNodeGetParams(node, maybe(&signal));
    cuGraphExternalSemaphoresWaitNodeGetParams(node, maybe(&wait));
    cuGraphMemAllocNodeGetParams(node, maybe(&alloc));
    cuGraphKernelNodeGetParams_v2(node, maybe(&kernel));
    cuGraphHostNodeGetParams(node, maybe(&room));
    cuGraphMemsetNodeGetParams(node, maybe(&room));
    cuGraphMemcpyNodeGetParams(node, maybe(&room));
}

static void attributes(void) {
    CUlaunchAttribute attribute = draw_attribute();
    switch (byte() % 3) {
    case 0:
        cuGraphKernelNodeSetAttribute(NODE(), attribute.id, maybe(&attribute.value));
        break;
    case 1:
        cuGraphKernelNodeGetAttribute(NODE(), attribute.id, maybe(&attribute.value));
        break;
    default:
        cuGraphKernelNodeCopyAttributes(NODE(), NODE());
        break;
    }
}

static void edges(void) {
    CUgraph graph = GRAPH();
    size_t count = draw_nodes();
    for (unsigned i = 0; i < MOST; i++)
        others[i] = NODE();
    switch (byte() & 3) {
    case 0:
        cuGraphAddDependencies(graph, maybe(nodes), maybe(others), count);
        break;
    case 1:
        cuGraphAddDependencies_v2(graph, nodes, others, maybe(data), count);
        break;
    case 2:
        cuGraphRemoveDependencies(graph, maybe(nodes), maybe(others), count);
        break;
    default:
        cuGraphRemoveDependencies_v2(graph, nodes, others, maybe(data), count);
        break;
    }
}

static void questions(void) {
    CUgraphNode list[MOST], list_to[MOST];
    CUgraphEdgeData edge[MOST];
    size_t count = byte() % (MOST + 1);
    bool only_count = byte() & 1;
    switch (byte() % 6) {
    case 0:
        cuGraphGetNodes(GRAPH(), only_count ? NULL : list, maybe(&count));
        break;
    case 1:
        cuGraphGetRootNodes(GRAPH(), only_count ? NULL : list, maybe(&count));
        break;
    case 2:
        cuGraphGetEdges(GRAPH(), only_count ? NULL : list, maybe(list_to), maybe(&count));
        break;
    case 3:
        cuGraphGetEdges_v2(GRAPH(), only_count ? NULL : list, only_count ? NULL : list_to,
                           maybe(edge), maybe(&count));
        break;
    case 4:
        cuGraphNodeGetDependencies_v2(NODE(), only_count ? NULL : list, maybe(edge), &count);
        break;
    default:
        cuGraphNodeGetDependentNodes_v2(NODE(), only_count ? NULL : list, maybe(edge), &count);
        break;
    }
}

static void body_nodes(void) {
    CUgraphNode list[MOST];
    size_t count = MOST;
    if (cuGraphGetNodes(GRAPH(), list, &count) == CUDA_SUCCESS)
        for (size_t i = 0; i < count && i < MOST; i++)
            made_node(list[i]);
}

static void condition(void) {
    CUgraphConditionalHandle made = 0;
    cuGraphConditionalHandleCreate(maybe(&made), GRAPH(), CTX(), 0, byte() & 1);
    remember(CONDITIONS, made);
}

static void user_object(void) {
    CUuserObject made = NULL;
    switch (byte() % 5) {
    case 0:
        cuUserObjectCreate(maybe(&made), NULL, byte() < 0xf8 ? nothing : NULL, byte() & 3,
                           byte() < 0xf0 ? CU_USER_OBJECT_NO_DESTRUCTOR_SYNC : byte());
        remember(USER_OBJECTS, (uintptr_t)made);
        break;
    case 1:
        cuUserObjectRetain(OBJECT(), byte() & 3);
        break;
    case 2:
        cuUserObjectRelease(OBJECT(), byte() & 3);
        break;
    case 3:
        cuGraphRetainUserObject(GRAPH(), OBJECT(), byte() & 3, byte() % 3);
        break;
    default:
        cuGraphReleaseUserObject(GRAPH(), OBJECT(), byte() & 3);
        break;
    }
}

static void dot(void) {
    cuGraphDebugDotPrint(GRAPH(), byte() < 0xf0 ? "/dev/null" : "/dev/null/nowhere",
                         byte() & 1 ? CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE : draw32(&world.input));
}

static const call_fn list[] = {
    graph_create, graph_create, graph_clone, graph_end,  add_node,    add_node,    add_node,
    add_node,     add_old,      add_old,     set_params, get_params,  attributes,  edges,
    edges,        questions,    body_nodes,  condition,  user_object, user_object, dot,
};
const struct calls graph_calls = {list, sizeof list / sizeof list[0]};
