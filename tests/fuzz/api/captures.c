/* Stream capture: begun, joined by waits for events, asked about, turned and ended. */
#include "world.h"

#define NODE() OF(CUgraphNode, NODES)

static void begin(void) {
    unsigned pick = byte();
    CUstreamCaptureMode mode = (CUstreamCaptureMode)(pick < 0xf0 ? pick % 3 : pick);
    cuStreamBeginCapture_v2(STREAM(), mode);
}

static void begin_to_graph(void) {
    CUgraphNode after[2] = {NODE(), NODE()};
    CUgraphEdgeData data[2] = {{.type = byte() < 0xf0 ? 0 : 1}};
    cuStreamBeginCaptureToGraph(STREAM(), OF(CUgraph, GRAPHS), byte() & 1 ? after : NULL,
                                byte() < 0xc0 ? NULL : data, byte() % 3,
                                (CUstreamCaptureMode)(byte() % 3));
}

static void end(void) {
    CUgraph made = NULL;
    cuStreamEndCapture(STREAM(), maybe(&made));
    remember(GRAPHS, (uintptr_t)made);
}

static void information(void) {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph = NULL;
    const CUgraphNode *after = NULL;
    const CUgraphEdgeData *data = NULL;
    size_t count = 0;
    CUresult result = byte() & 1
                          ? cuStreamGetCaptureInfo_v2(STREAM(), maybe(&status), maybe(&id),
                                                      maybe(&graph), maybe(&after), maybe(&count))
                          : cuStreamGetCaptureInfo_v3(STREAM(), maybe(&status), &id, maybe(&graph),
                                                      maybe(&after), maybe(&data), maybe(&count));
    if (result != CUDA_SUCCESS)
        return;
    remember(GRAPHS, (uintptr_t)graph);
    for (size_t i = 0; after && i < count; i++)
        remember(NODES, (uintptr_t)after[i]);
}

static void turn(void) {
    CUgraphNode after[2] = {NODE(), NODE()};
    CUgraphEdgeData data[2] = {{.type = byte() < 0xf0 ? 0 : 1}};
    if (byte() & 1)
        cuStreamUpdateCaptureDependencies(STREAM(), maybe(after), byte() % 3, byte() % 3);
    else
        cuStreamUpdateCaptureDependencies_v2(STREAM(), after, byte() < 0xc0 ? NULL : data,
                                             byte() % 3, byte() % 3);
}

static void exchange_mode(void) {
    unsigned pick = byte();
    CUstreamCaptureMode mode = (CUstreamCaptureMode)(pick < 0xf0 ? pick % 3 : pick);
    cuThreadExchangeStreamCaptureMode(maybe(&mode));
}

/* What a capture most often is made of: a stream that another joins, and back. */
static void join(void) {
    CUevent event = EVENT();
    CUstream from = STREAM(), to = STREAM();
    cuEventRecord(event, from);
    cuStreamWaitEvent(to, event, byte() < 0xf0 ? 0 : CU_EVENT_WAIT_EXTERNAL);
}

static const call_fn list[] = {
    begin, begin, begin_to_graph, end, end, information, turn, exchange_mode, join, join,
};
const struct calls capture_calls = {list, sizeof list / sizeof list[0]};
