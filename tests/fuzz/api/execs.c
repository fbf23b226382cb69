/* Graphs that run: made, launched, changed, and the memory that their launches allocate. */
#include "world.h"

#define GRAPH() OF(CUgraph, GRAPHS)
#define NODE()  OF(CUgraphNode, NODES)
#define EXEC()  OF(CUgraphExec, EXECS)

static void instantiate(void) {
    CUgraphExec made = NULL;
    CUgraphNode bad;
    char log[20];
    switch (byte() % 4) {
    case 0:
        cuGraphInstantiate_v2(maybe(&made), GRAPH(), maybe(&bad), maybe(log), sizeof log);
        break;
    case 1: {
        CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = byte() & 15};
        if (params.flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
            params.hUploadStream = STREAM();
        cuGraphInstantiateWithParams(maybe(&made), GRAPH(), maybe(&params));
        break;
    }
    default:
        cuGraphInstantiateWithFlags(maybe(&made), GRAPH(), byte() < 0x80 ? 0 : byte() & 15);
        break;
    }
    remember(EXECS, (uintptr_t)made);
}

static void destroy(void) {
    cuGraphExecDestroy(EXEC());
}

static void launch(void) {
    if (byte() & 1)
        cuGraphLaunch(EXEC(), STREAM());
    else
        cuGraphLaunch_ptsz(EXEC(), STREAM());
}

static void upload(void) {
    cuGraphUpload(EXEC(), STREAM());
}

static void update(void) {
    CUgraphExecUpdateResultInfo info;
    CUgraphNode bad;
    CUgraphExecUpdateResult result;
    if (byte() & 1)
        cuGraphExecUpdate_v2(EXEC(), GRAPH(), maybe(&info));
    else
        cuGraphExecUpdate(EXEC(), GRAPH(), maybe(&bad), maybe(&result));
}

/* A copy with other places, a set of other bytes: as of the node that is changed. */
static void change_as_now(void) {
    CUgraphExec exec = EXEC();
    CUgraphNode node = NODE();
    CUDA_MEMCPY3D box;
    CUDA_MEMSET_NODE_PARAMS set;
    CUDA_HOST_NODE_PARAMS host;
    if (cuGraphMemcpyNodeGetParams(node, &box) == CUDA_SUCCESS) {
        if (byte() & 1)
            box.WidthInBytes = draw_little(256);
        cuGraphExecMemcpyNodeSetParams(exec, node, &box, CTX());
    } else if (cuGraphMemsetNodeGetParams(node, &set) == CUDA_SUCCESS) {
        set.value = (unsigned)draw_pattern();
        if (byte() & 1)
            set.dst = draw_any_address();
        cuGraphExecMemsetNodeSetParams(exec, node, &set, CTX());
    } else if (cuGraphHostNodeGetParams(node, &host) == CUDA_SUCCESS) {
        cuGraphExecHostNodeSetParams(exec, node, &host);
    }
}

static void change(void) {
    CUgraphExec exec = EXEC();
    CUgraphNode node = NODE();
    CUexternalSemaphore semaphore_list[2];
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signals[2];
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS waits[2];
    switch (byte() % 8) {
    case 0:
        cuGraphExecChildGraphNodeSetParams(exec, node, GRAPH());
        break;
    case 1:
        cuGraphExecEventRecordNodeSetEvent(exec, node, EVENT());
        break;
    case 2:
        cuGraphExecEventWaitNodeSetEvent(exec, node, EVENT());
        break;
    case 3: {
        CUDA_MEMCPY3D box = draw_box();
        cuGraphExecMemcpyNodeSetParams(exec, node, maybe(&box), CTX());
        break;
    }
    case 4: {
        CUstreamBatchMemOpParams operations[2] = {draw_memory_operation(), draw_memory_operation()};
        CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {CTX(), byte() % 3, operations, 0};
        cuGraphExecBatchMemOpNodeSetParams(exec, node, maybe(&batch));
        break;
    }
    case 5: {
        CUDA_KERNEL_NODE_PARAMS kernel = {GRID(1), .func = OF(CUfunction, FUNCTIONS), BLOCK(byte()),
                                          .kernelParams = draw_kernel_parameters()};
        cuGraphExecKernelNodeSetParams_v2(exec, node, maybe(&kernel));
        break;
    }
    case 6: {
        draw_fences(semaphore_list, signals, waits, 2);
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS signal = {semaphore_list, signals, byte() % 3};
        cuGraphExecExternalSemaphoresSignalNodeSetParams(exec, node, maybe(&signal));
        break;
    }
    default: {
        draw_fences(semaphore_list, signals, waits, 2);
        CUDA_EXT_SEM_WAIT_NODE_PARAMS wait = {semaphore_list, waits, byte() % 3};
        cuGraphExecExternalSemaphoresWaitNodeSetParams(exec, node, maybe(&wait));
        break;
    }
    }
}

static void enable(void) {
    unsigned enabled;
    cuGraphNodeSetEnabled(EXEC(), NODE(), byte() % 3);
    cuGraphNodeGetEnabled(EXEC(), NODE(), maybe(&enabled));
}

static void flags(void) {
    cuuint64_t value;
    cuGraphExecGetFlags(EXEC(), maybe(&value));
}

static void memory(void) {
    uint64_t value = 0;
    switch (byte() % 3) {
    case 0:
        cuDeviceGraphMemTrim(draw_device());
        break;
    case 1:
        cuDeviceGetGraphMemAttribute(draw_device(), (CUgraphMem_attribute)(byte() & 7),
                                     maybe(&value));
        break;
    default:
        value = byte() < 0xf0 ? 0 : byte();
        cuDeviceSetGraphMemAttribute(draw_device(), (CUgraphMem_attribute)(byte() & 7),
                                     maybe(&value));
        break;
    }
}

static const call_fn list[] = {
    instantiate, instantiate,   instantiate,   destroy, launch, launch, launch, upload,
    update,      change_as_now, change_as_now, change,  enable, flags,  memory,
};
const struct calls exec_calls = {list, sizeof list / sizeof list[0]};
