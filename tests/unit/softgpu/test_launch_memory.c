/* Launches with too little memory: each allocation fails in turn, and then nothing is queued,
 * nothing is recorded and nothing kept. */
#include "members.h"
#include "refused_memory.h"

#include <gpumem/cuda_api.h>
#include <gpumem/softgpu.h>

#include "test.h"

#define CU_FN(symbol, name, version, kind, params, args) CUresult CUDAAPI symbol params;
#include <gpumem/functions.def>

extern const softgpu_control *softgpu_get_control(int version);

#define DEVICES 2

static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                           ".visible .global .u32 count;\n"
                           /* Its frame raises the stack limit. */
                           ".func (.reg .b32 %r) one() { .local .b32 l[1000];\n"
                           "st.local.u32 [l], 1; ld.local.u32 %r, [l]; ret; }\n"
                           ".visible .entry k(.param .u64 p) { .reg .b32 %r<2>; .reg .b64 %d<2>;\n"
                           "call (%r1), one, (); ld.param.u64 %d1, [p];\n"
                           "red.global.add.u32 [%d1], %r1; red.global.add.u32 [count], %r1;\n"
                           "griddepcontrol.launch_dependents; ret; }\n";

static const softgpu_control *soft;
static struct device {
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUstream stream;
    CUdeviceptr gate, sum;
} devices[DEVICES];
static CUevent events[2];
static CUgraphExec exec;

static void ok(CUresult result) {
    assert_int_equal(result, CUDA_SUCCESS);
}

static void load(struct device *device) {
    ok(cuModuleLoadData(&device->module, text));
    ok(cuModuleGetFunction(&device->function, device->module, "k"));
}

/* For all devices and the host, at one address. */
static CUdeviceptr new_word(void) {
    void *host;
    ok(cuMemHostAlloc(&host, 4, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    return (CUdeviceptr)(uintptr_t)host;
}

static int setup(void **state) {
    ok(cuInit(0));
    soft = softgpu_get_control(SOFTGPU_CONTROL_VERSION);
    for (int i = 0; i < DEVICES; i++) {
        struct device *device = &devices[i];
        ok(cuDevicePrimaryCtxRetain(&device->context, i));
        ok(cuCtxSetCurrent(device->context));
        load(device);
        ok(cuStreamCreate(&device->stream, CU_STREAM_NON_BLOCKING));
        device->gate = new_word();
        device->sum = new_word();
    }
    ok(cuCtxSetCurrent(devices[0].context));
    for (int i = 0; i < 2; i++)
        ok(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
    return 0;
}

static volatile unsigned *word(CUdeviceptr address) {
    return (volatile unsigned *)(uintptr_t)address;
}

static void open_gates(void) {
    for (int i = 0; i < DEVICES; i++)
        __atomic_store_n(word(devices[i].gate), 1, __ATOMIC_RELEASE);
    for (int i = 0; i < DEVICES; i++) {
        ok(cuCtxSetCurrent(devices[i].context));
        ok(cuCtxSynchronize());
    }
    ok(cuCtxSetCurrent(devices[0].context));
    for (int i = 0; i < 2; i++) /* their records are in streams of their own */
        ok(cuEventSynchronize(events[i]));
}

static int teardown(void **state) {
    end_refusal();
    open_gates(); /* a test that failed may have left them closed */
    for (int i = 0; i < 2; i++)
        ok(cuEventDestroy_v2(events[i]));
    for (int i = 0; i < DEVICES; i++) {
        struct device *device = &devices[i];
        ok(cuCtxSetCurrent(device->context));
        ok(cuMemFreeHost((void *)(uintptr_t)device->gate));
        ok(cuMemFreeHost((void *)(uintptr_t)device->sum));
        ok(cuStreamDestroy_v2(device->stream));
        ok(cuModuleUnload(device->module));
        ok(cuDevicePrimaryCtxRelease_v2(i));
    }
    return 0;
}

ALL_TESTS(setup, teardown);

/* No kernel runs before the call under test is over: its allocations are that thread's alone. */
static void close_gates(void) {
    for (int i = 0; i < DEVICES; i++) {
        *word(devices[i].gate) = *word(devices[i].sum) = 0;
        ok(cuCtxSetCurrent(devices[i].context));
        ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
        ok(cuStreamWaitValue32_v2(devices[i].stream, devices[i].gate, 1, CU_STREAM_WAIT_VALUE_EQ));
    }
    ok(cuCtxSetCurrent(devices[0].context));
}

/* `threads` on each of `used` devices have run, or nothing has. */
static void sweep(CUresult (*call)(void), void (*prepare)(void), unsigned threads, int used,
                  unsigned least) {
    unsigned refusals = 0;
    for (size_t n = 1;; n++) {
        if (prepare)
            prepare();
        close_gates();
        char *before = soft->state_dump();
        refuse_memory((long)n);
        CUresult result = call();
        end_refusal();
        char *after = soft->state_dump();
        bool refused = memory_was_refused();
        if (result != CUDA_SUCCESS) {
            assert_int_equal(result, CUDA_ERROR_OUT_OF_MEMORY);
            assert_true(refused);
            assert_string_equal(before, after);
            refusals++;
        }
        soft->free_text(before);
        soft->free_text(after);
        open_gates();
        for (int i = 0; i < DEVICES; i++)
            assert_int_equal(*word(devices[i].sum),
                             result == CUDA_SUCCESS && i < used ? threads : 0);
        if (!refused)
            break;
        assert_in_range(n, 1, 2000);
    }
    assert_true(refusals >= least);
}

static CUresult plain(void) {
    void *params[] = {&devices[0].sum};
    return cuLaunchKernel(devices[0].function, 2, 1, 1, 5, 1, 1, 0, devices[0].stream, params,
                          NULL);
}

static void reload(void) {
    ok(cuModuleUnload(devices[0].module));
    load(&devices[0]);
}

TEST(a_first_launch_without_memory_queues_nothing) {
    /* Its code is made: many allocations. */
    sweep(plain, reload, 10, 1, 10);
}

TEST(a_later_launch_without_memory_queues_nothing) {
    ok(plain());
    ok(cuCtxSynchronize());
    sweep(plain, NULL, 10, 1, 4);
}

static CUresult with_events(void) {
    void *params[] = {&devices[0].sum};
    CUlaunchAttribute attributes[] = {{.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
                                       .value = {.launchCompletionEvent = {.event = events[0]}}},
                                      {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
                                       .value = {.programmaticEvent = {.event = events[1]}}}};
    CUlaunchConfig config = {3, 1, 1, 32, 1, 1, 0, devices[0].stream, attributes, 2};
    return cuLaunchKernelEx(&config, devices[0].function, params, NULL);
}

TEST(a_launch_with_events_without_memory_queues_nothing) {
    ok(with_events());
    open_gates();
    sweep(with_events, NULL, 96, 1, 9);
    for (int i = 0; i < 2; i++)
        ok(cuEventQuery(events[i]));
}

static CUresult on_all_devices(void) {
    void *params[DEVICES][1] = {{&devices[0].sum}, {&devices[1].sum}};
    CUDA_LAUNCH_PARAMS list[DEVICES];
    for (int i = 0; i < DEVICES; i++)
        list[i] = (CUDA_LAUNCH_PARAMS){devices[i].function, 2,        1, 1, 32, 1, 1, 0,
                                       devices[i].stream,   params[i]};
    return cuLaunchCooperativeKernelMultiDevice(list, DEVICES, 0);
}

TEST(a_multi_device_launch_without_memory_queues_nothing) {
    ok(on_all_devices());
    open_gates();
    sweep(on_all_devices, NULL, 64, DEVICES, 10);
}

/* Neither kernel runs before both streams have come to theirs, and what follows waits for both. */
TEST(a_multi_device_launch_synchronizes_its_streams) {
    close_gates();
    ok(on_all_devices());
    CUdeviceptr after = devices[1].gate;
    ok(cuCtxSetCurrent(devices[1].context));
    ok(cuMemsetD32Async(after, 7, 1, devices[1].stream));
    *word(devices[1].gate) = 1;
    /* The other gate is closed. */
    assert_int_equal(cuStreamQuery(devices[1].stream), CUDA_ERROR_NOT_READY);
    assert_int_equal(*word(devices[1].sum), 0);
    *word(devices[0].gate) = 1;
    ok(cuStreamSynchronize(devices[1].stream));
    assert_int_equal(*word(devices[0].sum), 64);
    assert_int_equal(*word(devices[1].sum), 64);
    assert_int_equal(*word(after), 7);
    open_gates();
}

static CUresult launch_graph(void) {
    return cuGraphLaunch(exec, devices[0].stream);
}

TEST(a_graph_launch_without_memory_queues_nothing) {
    CUgraph graph;
    CUgraphNode nodes[3];
    void *params[] = {&devices[0].sum};
    CUDA_KERNEL_NODE_PARAMS kernel = {GRID(1), .func = devices[0].function, BLOCK(4),
                                      .kernelParams = params};
    ok(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < 3; i++)
        ok(cuGraphAddKernelNode_v2(&nodes[i], graph, nodes, i, &kernel));
    ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ok(launch_graph());
    ok(cuCtxSynchronize());
    sweep(launch_graph, NULL, 12, 1, 15);
    ok(cuGraphExecDestroy(exec));
    ok(cuGraphDestroy(graph));
}

BEFORE_TESTS_DO(setenv("SOFTGPU_DEVICES", "2", 1));
