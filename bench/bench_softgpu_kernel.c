/*
 * An empty kernel, from its launch to the end of the wait, in which the waiting thread runs it: CPU
 * time of that thread. GPUMEM_DRIVER names another driver.
 */
#include "table.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 15, REPEATS = 20000 };

static const gpumem_driver_api *cu;

static void ok(CUresult result, const char *call) {
    if (result != CUDA_SUCCESS)
        bench_fail("%s answered %s", call, bench_result(cu, result));
}
#define OK(call) ok((call), #call)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry k() { ret; }\n";

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static double round_of(CUfunction function, CUstream stream) {
    double before = now();
    for (int i = 0; i < REPEATS; i++) {
        OK(cu->cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
        OK(cu->cuStreamSynchronize(stream));
    }
    return (now() - before) * 1e6 / (double)REPEATS;
}

int main(void) {
    gpumem_driver *driver;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUstream stream;
    double rounds[ROUNDS];
    const char *named = getenv("GPUMEM_DRIVER");
    if (gpumem_driver_open(named ? NULL : "softgpu", &driver) != GPUMEM_OK)
        bench_fail("%s", gpumem_last_error()->message);
    cu = gpumem_driver_table(driver);
    printf("driver %s\n", driver_info(driver).path);
    OK(cu->cuInit(0));
    OK(cu->cuDevicePrimaryCtxRetain(&context, 0));
    OK(cu->cuCtxSetCurrent(context));
    OK(cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cu->cuModuleLoadData(&module, ptx));
    OK(cu->cuModuleGetFunction(&function, module, "k"));
    for (int i = 0; i < ROUNDS; i++)
        rounds[i] = round_of(function, stream);
    bench_header("empty kernel, launch to wait", "");
    bench_row("median of 15 rounds", bench_median(rounds, ROUNDS), 0, "us");
    bench_row("least", rounds[0], 0, "us");
    OK(cu->cuStreamDestroy_v2(stream));
    OK(cu->cuModuleUnload(module));
    OK(cu->cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}
