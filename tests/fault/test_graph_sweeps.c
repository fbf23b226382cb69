/*
 * Sweeps over executable graphs: every driver call fails in turn, and, within instantiation, launch
 * and update, every allocation of memory that softgpu makes.
 */
#include "driver_calls.h"

#include <sched.h>

static CUstream stream;
static CUdeviceptr memory;

static int begin(void **state) {
    if (open_softgpu(state) != 0)
        return -1;
    sweep_with(soft);
    bool ready = cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
                 cu.cuMemAlloc_v2(&memory, 4096) == CUDA_SUCCESS &&
                 cu.cuMemsetD8_v2(memory, 0x11, 4096) == CUDA_SUCCESS &&
                 cu.cuCtxSynchronize() == CUDA_SUCCESS;
    return ready ? 0 : -1;
}

ALL_TESTS(begin, NULL);

/* ---- A graph with a node of each kind that asks for memory ----------------------------------- */

struct scene {
    CUgraph graph;
    CUgraphNode set; /* of the first byte, to 0x22 */
    CUgraphExec exec;
    CUevent event;
    CUcontext other;
};

static void ignore(void *unused) {
}

static int add_work(struct scene *scene, CUgraphNode *last) {
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = memory, .value = 0x22, .elementSize = 1, .width = 64, .height = 1};
    CUDA_HOST_NODE_PARAMS call = {.fn = ignore};
    CUgraphNode sets[3];
    int result = 0;
    for (unsigned i = 0; i < 3 && !result; i++) {
        set.dst = memory + 64 * i;
        result = (int)cu.cuGraphAddMemsetNode(&sets[i], scene->graph, NULL, 0, &set, context);
    }
    scene->set = sets[0];
    if (!result)
        result = (int)cu.cuGraphAddHostNode(last, scene->graph, sets, 3, &call);
    if (!result)
        result = (int)cu.cuGraphAddEventRecordNode(last, scene->graph, last, 1, scene->event);
    return result;
}

static int add_memory(struct scene *scene, CUgraphNode last) {
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = 4096};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    int result = (int)cu.cuGraphAddMemAllocNode(&last, scene->graph, &last, 1, &params);
    if (!result)
        result = (int)cu.cuGraphAddMemFreeNode(&last, scene->graph, &last, 1, params.dptr);
    return result;
}

static int build(struct scene *scene) {
    CUgraphNode last;
    int result = (int)cu.cuEventCreate(&scene->event, CU_EVENT_DEFAULT);
    if (!result)
        result = (int)cu.cuGraphCreate(&scene->graph, 0);
    if (!result)
        result = add_work(scene, &last);
    return result ? result : add_memory(scene, last);
}

static int run(struct scene *scene) {
    CUgraphExecUpdateResultInfo info;
    int result = (int)cu.cuGraphInstantiateWithFlags(&scene->exec, scene->graph, 0);
    if (!result)
        result = (int)cu.cuGraphUpload(scene->exec, stream);
    if (!result)
        result = (int)cu.cuGraphLaunch(scene->exec, stream);
    if (!result)
        result = (int)cu.cuGraphExecUpdate_v2(scene->exec, scene->graph, &info);
    if (!result)
        result = (int)cu.cuGraphLaunch(scene->exec, stream);
    return result ? result : (int)cu.cuStreamSynchronize(stream);
}

static int build_and_run(void *user) {
    struct scene *scene = user;
    *scene = (struct scene){0};
    int result = build(scene);
    return result ? result : run(scene);
}

/* A device fault ends what is queued, and waits for no host function: one may still be running. */
static void wait_for_host_function(void) {
    bool queued = true;
    while (queued) {
        char *text = soft->state_dump();
        queued = strstr(text, "queued operations: 0\n") == NULL;
        soft->free_text(text);
        sched_yield();
    }
}

static void end(void *user) {
    struct scene *scene = user;
    cu.cuStreamSynchronize(stream);
    wait_for_host_function();
    if (scene->exec)
        cu.cuGraphExecDestroy(scene->exec);
    if (scene->graph)
        cu.cuGraphDestroy(scene->graph);
    if (scene->event)
        cu.cuEventDestroy_v2(scene->event);
    cu.cuDeviceGraphMemTrim(0);
    *scene = (struct scene){0};
}

TEST(graph_calls_that_fail_leak_nothing) {
    struct scene scene;
    const struct sweep sweep = {.name = "a graph is built, made executable, launched and updated",
                                .act = build_and_run,
                                .recover = end,
                                .undo = end,
                                .user = &scene};
    sweep_run(&sweep);
}

/* ---- Allocations ----------------------------------------------------------------------------- */

static int instantiate(void *user) {
    struct scene *scene = user;
    return (int)cu.cuGraphInstantiateWithFlags(&scene->exec, scene->graph, 0);
}

static void uninstantiate(void *user) {
    struct scene *scene = user;
    cu.cuGraphExecDestroy(scene->exec);
    scene->exec = NULL;
}

static int launch(void *user) {
    struct scene *scene = user;
    return (int)cu.cuGraphLaunch(scene->exec, stream);
}

static int upload(void *user) {
    struct scene *scene = user;
    return (int)cu.cuGraphUpload(scene->exec, stream);
}

static int update(void *user) {
    struct scene *scene = user;
    CUgraphExecUpdateResultInfo info;
    int result = (int)cu.cuGraphExecUpdate_v2(scene->exec, scene->graph, &info);
    assert_int_equal(info.result,
                     result ? CU_GRAPH_EXEC_UPDATE_ERROR : CU_GRAPH_EXEC_UPDATE_SUCCESS);
    return result;
}

static void settle(void *user) {
    (void)user;
    cu.cuStreamSynchronize(stream);
    cu.cuDeviceGraphMemTrim(0);
}

static int set_to(struct scene *scene, unsigned value, CUcontext where) {
    const CUDA_MEMSET_NODE_PARAMS set = {
        .dst = memory, .value = value, .elementSize = 1, .width = 64, .height = 1};
    return (int)cu.cuGraphExecMemsetNodeSetParams(scene->exec, scene->set, &set, where);
}

/* Another context: the steps are put in order anew. */
static int set_elsewhere(void *user) {
    struct scene *scene = user;
    int result = set_to(scene, 0x33, scene->other);
    unsigned char byte = 0;
    end_refusal();
    assert_int_equal(launch(scene), 0);
    settle(scene);
    assert_int_equal(cu.cuMemcpyDtoH_v2(&byte, memory, 1), 0);
    assert_int_equal(byte, result ? 0x22 : 0x33);
    return result;
}

static void set_back(void *user) {
    struct scene *scene = user;
    assert_int_equal(set_to(scene, 0x22, context), 0);
}

static void starve_set(struct scene *scene) {
    assert_int_equal(cu.cuCtxCreate_v2(&scene->other, 0, 0), 0);
    assert_int_equal(cu.cuCtxSetCurrent(context), 0);
    set_elsewhere(scene); /* both contexts have what a first launch makes in them */
    set_back(scene);
    starve("set", set_elsewhere, set_back, scene);
    assert_int_equal(cu.cuCtxDestroy_v2(scene->other), 0);
}

TEST_WHERE(graph_calls_without_memory_leak_nothing, NEEDS_ALLOCATIONS_THAT_FAIL()) {
    struct scene scene = {0};
    assert_int_equal(build(&scene), 0);
    starve("instantiation", instantiate, uninstantiate, &scene);
    assert_int_equal(instantiate(&scene), 0);
    assert_int_equal(launch(&scene), 0); /* the event is recorded, whatever comes */
    settle(&scene);
    starve("upload", upload, settle, &scene);
    starve("launch", launch, settle, &scene);
    starve("update", update, settle, &scene);
    starve_set(&scene);
    end(&scene);
}
