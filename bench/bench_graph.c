/*
 * The cost of graphs: instantiating them, launching them, waiting for them. Runs on any driver,
 * including a GPU's.
 */
#include "table.h"

#include <gpumem/driver.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES   1000
#define ROUNDS  15
#define REPEATS 20 /* launches per sample */

static const gpumem_driver_api *cu;
static CUcontext context;
static CUstream stream;
static CUdeviceptr memory;

static void ok(CUresult result, const char *call) {
    if (result != CUDA_SUCCESS)
        bench_fail("%s answered %s", call, bench_result(cu, result));
}
#define OK(call) ok((call), #call)

static void open_driver(void) {
    gpumem_driver *driver;
    if (gpumem_driver_open(NULL, &driver) != GPUMEM_OK &&
        (getenv("GPUMEM_DRIVER") || gpumem_driver_open("softgpu", &driver) != GPUMEM_OK))
        bench_fail("%s", gpumem_last_error()->message);
    cu = gpumem_driver_table(driver);
    printf("driver %s\n", driver_info(driver).path);
    OK(cu->cuInit(0));
    OK(cu->cuDevicePrimaryCtxRetain(&context, 0));
    OK(cu->cuCtxSetCurrent(context));
    OK(cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cu->cuMemAlloc_v2(&memory, (size_t)NODES * 64));
}

/* ---- Graphs of NODES nodes ------------------------------------------------------------------- */

enum shape { CHAIN, WIDE };

static CUgraphNode add_empty(CUgraph graph, const CUgraphNode *after, unsigned number) {
    CUgraphNode node;
    (void)number;
    OK(cu->cuGraphAddEmptyNode(&node, graph, after, after ? 1 : 0));
    return node;
}

static CUgraphNode add_copy(CUgraph graph, const CUgraphNode *after, unsigned number) {
    CUgraphNode node;
    CUDA_MEMCPY3D params;
    memset(&params, 0, sizeof params);
    params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    params.srcDevice = memory + 64u * (number / 2);
    params.dstDevice = memory + 64u * ((number + NODES) / 2);
    params.WidthInBytes = 64;
    params.Height = params.Depth = 1;
    OK(cu->cuGraphAddMemcpyNode(&node, graph, after, after ? 1 : 0, &params, context));
    return node;
}

typedef CUgraphNode (*adder)(CUgraph, const CUgraphNode *, unsigned);

static CUgraph build(adder add, enum shape shape) {
    CUgraph graph;
    CUgraphNode node = NULL;
    OK(cu->cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < NODES; i++)
        node = add(graph, shape == CHAIN && i > 0 ? &node : NULL, i);
    return graph;
}

/* ---- Times ----------------------------------------------------------------------------------- */

/* Seconds of a launch until the call returns, and until the work is done. */
static void time_launches(CUgraphExec exec, double *call, double *done) {
    double calls[ROUNDS], dones[ROUNDS];
    OK(cu->cuGraphLaunch(exec, stream));
    OK(cu->cuStreamSynchronize(stream));
    for (unsigned i = 0; i < ROUNDS; i++) {
        calls[i] = dones[i] = 0;
        for (unsigned k = 0; k < REPEATS; k++) {
            double start = bench_now();
            OK(cu->cuGraphLaunch(exec, stream));
            calls[i] += (bench_now() - start) / REPEATS;
            OK(cu->cuStreamSynchronize(stream));
            dones[i] += (bench_now() - start) / REPEATS;
        }
    }
    *call = bench_median(calls, ROUNDS);
    *done = bench_median(dones, ROUNDS);
}

static double time_instantiation(CUgraph graph) {
    double times[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        CUgraphExec exec;
        double start = bench_now();
        OK(cu->cuGraphInstantiateWithFlags(&exec, graph, 0));
        times[i] = bench_now() - start;
        OK(cu->cuGraphExecDestroy(exec));
    }
    return bench_median(times, ROUNDS);
}

static void show(const char *what, const char *part, double seconds) {
    char text[80];
    snprintf(text, sizeof text, "%s: %s", what, part);
    bench_row(text, seconds * 1e6, 0, "us");
    snprintf(text, sizeof text, "%s: %s, a node", what, part);
    bench_row(text, seconds * 1e9 / NODES, 0, "ns");
}

static void measure(const char *what, adder add, enum shape shape) {
    double call, done;
    CUgraph graph = build(add, shape);
    show(what, "instantiate", time_instantiation(graph));
    CUgraphExec exec;
    OK(cu->cuGraphInstantiateWithFlags(&exec, graph, 0));
    time_launches(exec, &call, &done);
    show(what, "launch", call);
    show(what, "launch and wait", done);
    OK(cu->cuGraphExecDestroy(exec));
    OK(cu->cuGraphDestroy(graph));
}

int main(void) {
    open_driver();
    bench_header("graphs of 1000 nodes", "none");
    measure("empty nodes in a chain", add_empty, CHAIN);
    measure("empty nodes side by side", add_empty, WIDE);
    measure("copies of 64 bytes in a chain", add_copy, CHAIN);
    measure("copies of 64 bytes side by side", add_copy, WIDE);
    return 0;
}
