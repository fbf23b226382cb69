/* Cooperative launches: all blocks run at the same time, and meet as the headers of cooperative
 * groups have it; the kernels do what nvcc 13.0 makes of grid.sync() and of tiles. */
#include "kernels.h"

static const char text[] = KERNELS_HEAD
    ".visible .entry probe() { ret; }\n"
    /* `rounds` times: out[block] += 1; grid.sync(); a block that sees another behind or ahead of
     * itself counts it in out[blocks]. */
    ".visible .entry rounds(.param .u64 out, .param .u32 count) {\n"
    ".reg .pred %p, %first; .reg .b32 %r<24>; .reg .b64 %d<8>;\n"
    "ld.param.u64 %d1, [out]; ld.param.u32 %r20, [count];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %tid.x; mov.u32 %r21, 0;\n"
    "mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2; setp.eq.u32 %first, %r3, 0;\n"
    "mul.wide.u32 %d6, %r2, 4; add.u64 %d6, %d1, %d6;\n"
    "mov.u32 %r4, %envreg2; cvt.u64.u32 %d3, %r4; mov.u32 %r4, %envreg1; cvt.u64.u32 %d4, %r4;\n"
    "bfi.b64 %d3, %d4, %d3, 32, 32; setp.eq.u64 %p, %d3, 0; @%p bra NONE;\n"
    "ROUND: add.u32 %r21, %r21, 1; @%first st.volatile.global.u32 [%d2], %r21;\n"
    "mov.u32 %r22, 0;\n"
    "SYNC: barrier.sync 0; @!%first bra WAITED;\n"
    "mov.u32 %r5, -2147483647; sub.u32 %r5, %r5, %r2; setp.eq.u32 %p, %r1, 0;\n"
    "selp.b32 %r6, %r5, 1, %p; atom.add.release.gpu.u32 %r7, [%d3+4], %r6;\n"
    "SPIN: ld.acquire.gpu.u32 %r8, [%d3+4]; xor.b32 %r9, %r8, %r7; setp.gt.s32 %p, %r9, -1;\n"
    "@%p bra SPIN;\n"
    "WAITED: barrier.sync 0; setp.ne.u32 %p, %r22, 0; @%p bra NEXT; mov.u32 %r22, 1;\n"
    "mov.u32 %r10, %r3; mov.u32 %r13, %ntid.x;\n"
    "LOOK: setp.ge.u32 %p, %r10, %r2; @%p bra SYNC;\n"
    "mul.wide.u32 %d5, %r10, 4; add.u64 %d5, %d1, %d5; ld.volatile.global.u32 %r12, [%d5];\n"
    "setp.ne.u32 %p, %r12, %r21; mov.u32 %r14, 1; @%p red.global.add.u32 [%d6], %r14;\n"
    "add.u32 %r10, %r10, %r13; bra LOOK;\n"
    "NEXT: setp.lt.u32 %p, %r21, %r20; @%p bra ROUND; ret;\n"
    "NONE: mov.u32 %r6, 0xffffffff; st.global.u32 [%d1], %r6; ret; }\n"
    /* Two warps meet in reserved shared memory; out[thread] = the tile's number + its partner's. */
    ".visible .entry tiles(.param .u64 out) {\n"
    ".reg .pred %p, %lead; .reg .b32 %r<20>; .reg .b64 %d<6>;\n"
    "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shr.u32 %r3, %r1, 5;\n"
    "setp.eq.u32 %lead, %r2, 0; mov.u32 %r4, %reserved_smem_offset_1; cvt.u64.u32 %d2, %r4;\n"
    "cvta.shared.u64 %d2, %d2; mov.u32 %r5, -2; shf.l.wrap.b32 %r6, %r5, %r5, %r3;\n"
    "@%lead red.and.release.cta.b32 [%d2], %r6; barrier.sync 0;\n"
    "shr.u32 %r7, %r1, 6; shl.b32 %r8, %r7, 1; mov.u32 %r9, 3; shl.b32 %r9, %r9, %r8;\n"
    "mov.u32 %r10, 1; shl.b32 %r10, %r10, %r3;\n"
    "mul.wide.u32 %d3, %r3, 8; add.u64 %d3, %d2, %d3; add.u32 %r11, %r3, 100;\n"
    "@%lead st.u32 [%d3+32], %r11; bar.warp.sync -1; @!%lead bra MET;\n"
    "atom.or.acq_rel.cta.b32 %r12, [%d2], %r10; or.b32 %r13, %r12, %r10;\n"
    "and.b32 %r13, %r13, %r9; setp.eq.u32 %p, %r13, %r9; @%p bra LAST;\n"
    "SPIN: ld.acquire.cta.u32 %r14, [%d2]; and.b32 %r14, %r14, %r10; setp.ne.u32 %p, %r14, 0;\n"
    "@%p bra SPIN; bra MET;\n"
    "LAST: not.b32 %r15, %r9; red.and.relaxed.cta.b32 [%d2], %r15;\n"
    "MET: bar.warp.sync -1; xor.b32 %r16, %r3, 1; mul.wide.u32 %d4, %r16, 8;\n"
    "add.u64 %d4, %d2, %d4; ld.u32 %r17, [%d4+32]; mad.lo.u32 %r17, %r7, 1000, %r17;\n"
    "mul.wide.u32 %d5, %r1, 4; add.u64 %d5, %d1, %d5; st.global.u32 [%d5], %r17; ret; }\n"
    ".visible .entry sizes(.param .u64 out) { .shared .align 4 .b8 own[64]; .reg .b32 %r<4>;\n"
    ".reg .b64 %d<2>; ld.param.u64 %d1, [out]; mov.u32 %r3, own; st.shared.u32 [%r3], %r3;\n"
    "mov.u32 %r1, %total_smem_size; mov.u32 %r2, %aggr_smem_size;\n"
    "st.global.v2.u32 [%d1], {%r1, %r2}; ret; }\n";

static void all_blocks_meet(CUdeviceptr out, unsigned blocks, unsigned rounds,
                            CUresult (*launch)(CUfunction, unsigned, void **)) {
    unsigned *got = calloc(blocks + 1u, sizeof *got);
    assert_non_null(got);
    void *params[] = {&out, &rounds};
    set_words(out, 0, blocks + 1u); /* the stream of a graph does not wait for it */
    OK_CU(launch(kernel("rounds"), blocks, params));
    OK_CU(cu.cuMemcpyDtoH_v2(got, out, (blocks + 1u) * sizeof *got));
    for (unsigned i = 0; i < blocks; i++)
        assert_int_equal(got[i], rounds);
    assert_int_equal(got[blocks], 0);
    free(got);
}

static CUresult by_function(CUfunction f, unsigned blocks, void **params) {
    return cu.cuLaunchCooperativeKernel(f, blocks, 1, 1, 64, 1, 1, 0, NULL, params);
}

static CUresult by_attribute(CUfunction f, unsigned blocks, void **params) {
    CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                     .value = {.cooperative = 1}};
    CUlaunchConfig config = {blocks, 1, 1, 64, 1, 1, 0, NULL, &cooperative, 1};
    return cu.cuLaunchKernelEx(&config, f, params, NULL);
}

static CUresult by_graph(CUfunction f, unsigned blocks, void **params) {
    CUstream stream = new_stream();
    OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK_CU(cu.cuLaunchCooperativeKernel(f, blocks, 1, 1, 64, 1, 1, 0, stream, params));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    CUgraphExec exec = instantiate(graph);
    CUresult result = cu.cuGraphLaunch(exec, stream);
    OK_CU(cu.cuStreamSynchronize(stream));
    OK_CU(cu.cuGraphDestroy(graph));
    return result;
}

static unsigned most_blocks(CUfunction f) {
    int each = MADE_CU(int, cuOccupancyMaxActiveBlocksPerMultiprocessor, f, 64, 0);
    return (unsigned)each * (unsigned)device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

TEST(a_grid_wide_barrier_waits_for_all_blocks) {
    kernels_open(text);
    assert_int_equal(device_attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH), 1);
    CUdeviceptr out = new_memory(1 << 20);
    all_blocks_meet(out, 100, 5, by_function);
    all_blocks_meet(out, 7, 9, by_attribute);
    all_blocks_meet(out, 33, 3, by_graph);
}

/* As many as the device has room for; one more is refused. */
TEST(a_cooperative_launch_takes_as_many_blocks_as_fit) {
    kernels_open(text);
    CUdeviceptr out;
    CUfunction f = kernel("rounds");
    unsigned most = most_blocks(f), one = 1;
    void *params[] = {&out, &one};
    out = new_memory(1 << 20);
    all_blocks_meet(out, most, 1, by_function);
    FAILS_CU(COOPERATIVE_LAUNCH_TOO_LARGE, by_function(f, most + 1, params));
}

TEST(an_ordinary_launch_has_no_workspace) {
    if (!soft)
        SKIP("hardware leaves the workspace of an earlier launch there");
    kernels_open(text);
    struct shared_words words = words_make(2);
    unsigned rounds = 1;
    void *params[] = {&words.device, &rounds};
    OK_CU(cu.cuLaunchKernel(kernel("rounds"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(words.host[0], 0xffffffffu);
}

TEST(a_tile_of_two_warps_synchronizes) {
    kernels_open(text);
    struct shared_words words = words_make(256);
    void *params[] = {&words.device};
    OK_CU(cu.cuLaunchKernel(kernel("tiles"), 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuCtxSynchronize());
    for (unsigned i = 0; i < 256; i++)
        assert_int_equal(words.host[i], i / 64 * 1000 + 100 + (i / 32 ^ 1));
    OK_CU(cu.cuLaunchKernel(kernel("sizes"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuCtxSynchronize());
    assert_int_equal(words.host[0], 128); /* 64, in units of 128 */
    assert_int_equal(words.host[1] - 64,
                     device_attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
}
