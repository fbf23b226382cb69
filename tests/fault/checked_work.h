/*
 * Work for checkers to watch: memory of every kind, an array with a surface, and a kernel that uses
 * all of it, shared memory, and a called function with variables of its own. For one file of a
 * program, whose `cu` it uses.
 */
#ifndef FAULT_CHECKED_WORK_H
#define FAULT_CHECKED_WORK_H

#include <gpumem/driver.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WORK_THREADS 64u
#define WORK_BYTES   (4 * (size_t)WORK_THREADS)

static gpumem_driver_api cu;

/* out[i] = in[63 - i] + 1, by way of shared memory, a function and a surface. `over` writes behind
 * what it is given; `raw` reads what it is given. */
static const char work_text[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".func (.param .b32 r) next(.param .b32 n) {\n"
    ".local .align 4 .b8 own[8]; .reg .b32 %r<4>;\n"
    "ld.param.b32 %r1, [n]; st.local.b32 [own], %r1; st.local.b32 [own+4], 1;\n"
    "ld.local.b32 %r2, [own]; ld.local.b32 %r3, [own+4]; add.u32 %r1, %r2, %r3;\n"
    "st.param.b32 [r], %r1; ret; }\n"
    ".visible .entry work(.param .u64 out, .param .u64 in, .param .u64 surface) {\n"
    ".shared .align 4 .b8 s[256]; .reg .b32 %r<12>; .reg .b64 %d<8>;\n"
    "mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 4; ld.param.u64 %d2, [in];\n"
    "add.u64 %d2, %d2, %d1; ld.global.u32 %r2, [%d2]; shl.b32 %r3, %r1, 2; mov.u32 %r4, s;\n"
    "add.u32 %r5, %r4, %r3; st.shared.u32 [%r5], %r2; bar.sync 0; mov.u32 %r6, 252;\n"
    "sub.u32 %r6, %r6, %r3; add.u32 %r6, %r4, %r6; ld.shared.u32 %r7, [%r6];\n"
    "{ .param .b32 n; .param .b32 r; st.param.b32 [n], %r7; call.uni (r), next, (n);\n"
    "ld.param.b32 %r8, [r]; } ld.param.u64 %d3, [surface];\n"
    "sust.b.1d.b32.trap [%d3, {%r3}], %r8; suld.b.1d.b32.trap %r9, [%d3, {%r3}];\n"
    "ld.param.u64 %d4, [out]; add.u64 %d4, %d4, %d1; st.global.u32 [%d4], %r9; ret; }\n"
    ".visible .entry over(.param .u64 at) { .reg .b64 %d; ld.param.u64 %d, [at];\n"
    "st.global.u32 [%d+256], 1; ret; }\n"
    ".visible .entry raw(.param .u64 at) { .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [at];\n"
    "ld.global.u32 %r, [%d]; ret; }\n";

struct work {
    CUmodule module;
    CUstream stream;
    CUdeviceptr in, middle, out; /* of the driver, of a pool, managed */
    uint32_t *host;              /* pinned */
    CUarray array;
    CUsurfObject surface;
    uint32_t salt;
};

static CUresult work_launch(const struct work *work, const char *name, unsigned threads,
                            void **params) {
    CUfunction function;
    CUresult result = cu.cuModuleGetFunction(&function, work->module, name);
    return result == CUDA_SUCCESS
               ? cu.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, work->stream, params, NULL)
               : result;
}

static CUresult work_take(struct work *work) {
    const CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = WORK_THREADS,
                                           .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                           .NumChannels = 1,
                                           .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUresult result = cu.cuMemAlloc_v2(&work->in, WORK_BYTES);
    if (result == CUDA_SUCCESS)
        result = cu.cuMemAllocAsync(&work->middle, WORK_BYTES, work->stream);
    if (result == CUDA_SUCCESS)
        result = cu.cuMemAllocManaged(&work->out, WORK_BYTES, CU_MEM_ATTACH_GLOBAL);
    if (result == CUDA_SUCCESS)
        result = cu.cuMemAllocHost_v2((void **)(void *)&work->host, WORK_BYTES);
    if (result == CUDA_SUCCESS)
        result = cu.cuArray3DCreate_v2(&work->array, &shape);
    resource.res.array.hArray = work->array;
    if (result == CUDA_SUCCESS)
        result = cu.cuSurfObjectCreate(&work->surface, &resource);
    return result;
}

static CUresult work_queue(const struct work *work) {
    void *first[] = {(void *)&work->middle, (void *)&work->in, (void *)&work->surface};
    void *second[] = {(void *)&work->out, (void *)&work->middle, (void *)&work->surface};
    for (uint32_t i = 0; i < WORK_THREADS; i++)
        work->host[i] = i ^ work->salt;
    CUresult result = cu.cuMemcpyHtoDAsync_v2(work->in, work->host, WORK_BYTES, work->stream);
    if (result == CUDA_SUCCESS)
        result = work_launch(work, "work", WORK_THREADS, first);
    if (result == CUDA_SUCCESS)
        result = work_launch(work, "work", WORK_THREADS, second);
    if (result == CUDA_SUCCESS)
        result = cu.cuMemcpyDtoHAsync_v2(work->host, work->out, WORK_BYTES, work->stream);
    CUresult waited = cu.cuStreamSynchronize(work->stream);
    return result == CUDA_SUCCESS ? waited : result;
}

/* Turned round twice, and 1 more each time. */
static bool work_is_right(const struct work *work) {
    for (uint32_t i = 0; i < WORK_THREADS; i++)
        if (work->host[i] != (i ^ work->salt) + 2)
            return false;
    return true;
}

/* What was taken; a call may need memory of its own, and have none at the first try. */
static CUresult work_give(const struct work *work) {
    CUresult result = CUDA_SUCCESS, own;
#define GIVE(there, call)                                                                          \
    do {                                                                                           \
        own = (there) ? (call) : CUDA_SUCCESS;                                                     \
        own = own == CUDA_SUCCESS ? own : (call);                                                  \
        result = result == CUDA_SUCCESS ? own : result;                                            \
    } while (0)
    GIVE(work->surface, cu.cuSurfObjectDestroy(work->surface));
    GIVE(work->array, cu.cuArrayDestroy(work->array));
    GIVE(work->host, cu.cuMemFreeHost(work->host));
    GIVE(work->out, cu.cuMemFree_v2(work->out));
    GIVE(work->middle, cu.cuMemFreeAsync(work->middle, work->stream));
    GIVE(work->in, cu.cuMemFree_v2(work->in));
#undef GIVE
    return result;
}

#endif
