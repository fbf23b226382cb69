/*
 * Host functions of several streams: do they run side by side, and in which order? A function that
 * wants to meet another one waits a fifth of a second for it: side by side, the two meet.
 */
#include "../parity.h"

#include <stdatomic.h>
#include <time.h>

#define MILLISECOND 1000000L /* ns */

static void pause_for(long nanoseconds) {
    struct timespec pause = {0, nanoseconds};
    nanosleep(&pause, NULL);
}

static atomic_int entered, left;
static atomic_bool met;

static void CUDAAPI meet(void *unused) {
    bool first = atomic_fetch_add(&entered, 1) == 0;
    for (int i = 0; first && i < 200 && atomic_load(&entered) < 2; i++)
        pause_for(MILLISECOND);
    if (atomic_load(&entered) == 2 && atomic_load(&left) == 0)
        atomic_store(&met, true);
    atomic_fetch_add(&left, 1);
}

static void CUDAAPI meet_called_back(CUstream stream, CUresult status, void *user) {
    meet(user);
}

static void see_meeting(const char *what) {
    for (int i = 0; i < 2000 && atomic_load(&left) < 2; i++)
        pause_for(MILLISECOND);
    par_see("meeting", "%s %s", what,
            atomic_load(&left) < 2 ? "not run"
            : atomic_load(&met)    ? "side by side"
                                   : "one after the other");
    atomic_store(&entered, 0);
    atomic_store(&left, 0);
    atomic_store(&met, false);
}

static CUstream blocking_stream(void) {
    return PAR_MADE(CUstream, cuStreamCreate, CU_STREAM_DEFAULT);
}

SCENARIO(streams, "near-host-function/streams", par_context) {
    CUstream a = par_stream(), b = par_stream();
    CALL(cuLaunchHostFunc, "first", (a, meet, NULL));
    CALL(cuLaunchHostFunc, "second", (b, meet, NULL));
    see_meeting("functions");
    CALL(cuStreamAddCallback, "first", (a, meet_called_back, NULL, 0));
    CALL(cuStreamAddCallback, "second", (b, meet_called_back, NULL, 0));
    see_meeting("callbacks");
    SETUP(cuLaunchHostFunc, (a, meet, NULL));
    SETUP(cuStreamAddCallback, (b, meet_called_back, NULL, 0));
    see_meeting("function-and-callback");
    SETUP(cuLaunchHostFunc, (blocking_stream(), meet, NULL));
    SETUP(cuLaunchHostFunc, (blocking_stream(), meet, NULL));
    see_meeting("blocking-streams");
    SETUP(cuLaunchHostFunc, (a, meet, NULL));
    SETUP(cuLaunchHostFunc, (NULL, meet, NULL));
    see_meeting("legacy-stream");
    SETUP(cuLaunchHostFunc, (CU_STREAM_PER_THREAD, meet, NULL));
    SETUP(cuLaunchHostFunc, (b, meet, NULL));
    see_meeting("per-thread-stream");
    SETUP(cuCtxSynchronize, ());
}

SCENARIO(contexts, "near-host-function/contexts", par_context) {
    CUstream a = par_stream();
    par_new_context();
    CUstream b = par_stream();
    CALL(cuLaunchHostFunc, "primary", (a, meet, NULL));
    CALL(cuLaunchHostFunc, "created", (b, meet, NULL));
    see_meeting("two-contexts");
    SETUP(cuStreamSynchronize, (a));
    SETUP(cuStreamSynchronize, (b));
}

SCENARIO(devices, "near-host-function/devices", par_context) {
    int count = 0;
    SETUP(cuDeviceGetCount, (&count));
    if (count < 2)
        return;
    CUstream a = par_stream();
    CUcontext other = PAR_MADE(CUcontext, cuDevicePrimaryCtxRetain, 1);
    SETUP(cuCtxSetCurrent, (other));
    CUstream b = par_stream();
    CALL(cuLaunchHostFunc, "first-device", (a, meet, NULL));
    CALL(cuLaunchHostFunc, "second-device", (b, meet, NULL));
    see_meeting("two-devices");
    SETUP(cuStreamSynchronize, (a));
    SETUP(cuStreamSynchronize, (b));
}

SCENARIO(green, "near-host-function/green", par_context) {
    CUdevResource all, part, rest;
    CUgreenCtx made[2];
    CUstream streams[3];
    unsigned groups = 1;
    streams[0] = par_stream();
    SETUP(cuDeviceGetDevResource, (0, &all, CU_DEV_RESOURCE_TYPE_SM));
    SETUP(cuDevSmResourceSplitByCount, (&part, &groups, &all, &rest, 0, 8));
    CUdevResourceDesc desc = PAR_MADE(CUdevResourceDesc, cuDevResourceGenerateDesc, &part, 1);
    for (int i = 0; i < 2; i++) {
        SETUP(cuGreenCtxCreate, (&made[i], desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
        SETUP(cuGreenCtxStreamCreate, (&streams[i + 1], made[i], CU_STREAM_NON_BLOCKING, 0));
    }
    CALL(cuLaunchHostFunc, "primary", (streams[0], meet, NULL));
    CALL(cuLaunchHostFunc, "green", (streams[1], meet, NULL));
    see_meeting("primary-and-green");
    SETUP(cuLaunchHostFunc, (streams[1], meet, NULL));
    SETUP(cuLaunchHostFunc, (streams[2], meet, NULL));
    see_meeting("two-green");
    SETUP(cuCtxSynchronize, ());
}

/* A graph with `count` host nodes that depend on nothing. */
static CUgraphExec graph_of(int count) {
    CUDA_HOST_NODE_PARAMS params = {meet, NULL};
    CUgraphNode node;
    CUgraph graph = par_graph();
    for (int i = 0; i < count; i++)
        SETUP(cuGraphAddHostNode, (&node, graph, NULL, 0, &params));
    return PAR_MADE(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
}

SCENARIO(graphs, "near-host-function/graph", par_context) {
    CUstream a = par_stream(), b = par_stream();
    CUgraphExec one = graph_of(1), another = graph_of(1), two = graph_of(2);
    CALL(cuGraphLaunch, "branches", (two, a));
    see_meeting("branches");
    CALL(cuGraphLaunch, "first", (one, a));
    CALL(cuGraphLaunch, "second", (another, b));
    see_meeting("two-graphs");
    SETUP(cuGraphLaunch, (one, a));
    SETUP(cuLaunchHostFunc, (b, meet, NULL));
    see_meeting("graph-and-stream");
    SETUP(cuLaunchHostFunc, (a, meet, NULL));
    SETUP(cuGraphLaunch, (one, b));
    see_meeting("stream-and-graph");
    SETUP(cuCtxSynchronize, ());
}

/* ---- One that stays -------------------------------------------------------------------------- */

static atomic_bool staying, may_go;
static atomic_int calls;
static int order[16];

static void CUDAAPI stay(void *unused) {
    atomic_store(&staying, true);
    while (!atomic_load(&may_go))
        pause_for(MILLISECOND / 10);
}

static void CUDAAPI note(void *user) {
    order[atomic_fetch_add(&calls, 1) % 16] = *(const int *)user;
}

static void stay_in(CUstream stream) {
    SETUP(cuLaunchHostFunc, (stream, stay, NULL));
    while (!atomic_load(&staying))
        pause_for(MILLISECOND / 10);
}

static void see_order(void) {
    char text[64] = "";
    for (int i = 0; i < atomic_load(&calls) && i < 16; i++) {
        size_t used = strlen(text);
        text[used] = (char)('0' + order[i]);
        text[used + 1] = '\0';
    }
    par_see("order", "%s", text);
}

static int tags[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

/* What the others say while they wait for their turn. */
SCENARIO(waits, "near-host-function/waits", par_context) {
    CUstream held = par_stream(), other = par_stream(), busy = par_stream();
    CUdeviceptr d = par_alloc(4096);
    CUevent e = par_event(CU_EVENT_DISABLE_TIMING);
    stay_in(held);
    SETUP(cuLaunchHostFunc, (other, note, &tags[1]));
    SETUP(cuEventRecord, (e, other));
    for (int i = 0; i < 200; i++) {
        SETUP(cuMemsetD8Async, (d, 1, 4096, busy));
        SETUP(cuStreamSynchronize, (busy));
        pause_for(MILLISECOND);
    }
    CALL(cuStreamQuery, "held", (held));
    CALL(cuStreamQuery, "waits-for-its-turn", (other));
    CALL(cuEventQuery, "behind-it", (e));
    CALL(cuStreamQuery, "other-work", (busy));
    par_see("calls", "%d", atomic_load(&calls));
    atomic_store(&may_go, true);
    CALL(cuStreamSynchronize, "released", (other));
    CALL(cuEventQuery, "behind-it", (e));
    par_see("calls", "%d", atomic_load(&calls));
    SETUP(cuCtxSynchronize, ());
}

/* Launched in this order, two in each stream, the last stream of the highest priority. */
SCENARIO(turns, "near-host-function/order", par_context) {
    CUstream s[3];
    CUstream held = par_stream();
    for (int i = 0; i < 3; i++)
        SETUP(cuStreamCreateWithPriority, (&s[i], CU_STREAM_NON_BLOCKING, -i));
    stay_in(held);
    for (int i = 0; i < 6; i++)
        SETUP(cuLaunchHostFunc, (s[i % 3], note, &tags[i]));
    pause_for(100 * MILLISECOND);
    atomic_store(&may_go, true);
    SETUP(cuCtxSynchronize, ());
    see_order();
}

/* Many in one stream, then one in another: does that one wait for all of them? */
SCENARIO(turns_of_many, "near-host-function/order-of-many", par_context) {
    CUstream held = par_stream(), many = par_stream(), one = par_stream();
    stay_in(held);
    for (int i = 1; i < 8; i++)
        SETUP(cuLaunchHostFunc, (many, note, &tags[i]));
    SETUP(cuLaunchHostFunc, (one, note, &tags[0]));
    pause_for(100 * MILLISECOND);
    atomic_store(&may_go, true);
    SETUP(cuCtxSynchronize, ());
    see_order();
}
