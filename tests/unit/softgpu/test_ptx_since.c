/* What came with which version of PTX: a text of an older version that has it is refused. */
#include "softgpu/binary/read.h"
#include "softgpu/image/image.h"

#include "test.h"

static const struct sg_image_options h200 = {
    .architecture = 90, .suffix = 'a', .newest_ptx = SG_PTX_NEWEST, .prefer_machine = true};

static char error[600];

static CUresult read_with(unsigned version, unsigned target, const char *before,
                          const char *registers, const char *in_entry) {
    char text[4096];
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *image = NULL;
    error[0] = '\0';
    snprintf(text, sizeof text,
             ".version %u.%u\n.target sm_%u\n.address_size 64\n"
             ".global .align 16 .b8 gl[64];\n.const .align 4 .b8 ct[16];\n%s\n"
             ".visible .entry k(.param .u64 kp)\n{\n"
             ".reg .pred p<9>; .reg .b16 h<20>; .reg .b32 r<20>; .reg .f32 f<20>;\n"
             ".reg .b64 d<20>; .reg .f64 e<20>; .param .b32 pa; %s\n.shared .align 16 .b64 mb;\n"
             ".local .align 4 .b8 lo[8];\n"
             "%s\nL: add.s32 r19, r19, 1;\nM: ret;\n}\n",
             version / 10, version % 10, target, before, registers, in_entry);
    CUresult result = sg_image_read(text, SIZE_MAX, &h200, &log, &image);
    sg_image_free(image);
    return result;
}

/* {the first version, the one before, a target of both, an instruction}: ptxas 13.0 takes it with
 * the first and refuses it with the other, for its version. */
static const struct {
    unsigned first, before, target;
    const char *text;
} instructions[] = {
    /* clang-format off */
    {30, 23, 20, "mad.hi.cc.s32 r0, r1, r2, r3;"},
    {30, 23, 20, "madc.hi.cc.s32 r0, r1, r2, r3;"},
    {30, 23, 20, "pmevent.mask 3;"},
    {31, 30, 30, "cvta.const.u64 d0, ct;"},
    {31, 30, 30, "isspacep.const p0, d9;"},
    {40, 32, 35, "rsqrt.approx.ftz.f64 d0, d1;"},
    {43, 42, 52, "add.cc.s64 d0, d1, d2;"},
    {43, 42, 52, "add.cc.u64 d0, d1, d2;"},
    {43, 42, 52, "addc.cc.s64 d0, d1, d2;"},
    {43, 42, 52, "addc.cc.u64 d0, d1, d2;"},
    {43, 42, 52, "lop3.b32 r0, r1, r2, r3, 0x1e;"},
    {43, 42, 52, "mad.hi.cc.s64 d0, d1, d2, d3;"},
    {43, 42, 52, "mad.hi.cc.u64 d0, d1, d2, d3;"},
    {43, 42, 52, "madc.hi.cc.s64 d0, d1, d2, d3;"},
    {43, 42, 52, "madc.hi.cc.u64 d0, d1, d2, d3;"},
    {43, 42, 52, "sub.cc.s64 d0, d1, d2;"},
    {43, 42, 52, "sub.cc.u64 d0, d1, d2;"},
    {43, 42, 52, "subc.cc.s64 d0, d1, d2;"},
    {43, 42, 52, "subc.cc.u64 d0, d1, d2;"},
    {60, 50, 60, "bar.warp.sync -1;"},
    {60, 50, 60, "barrier.red.aligned.popc.u32 r0, 1, 64, p1;"},
    {60, 50, 60, "fns.b32 r0, 0xaaaaaaaa, 3, 1;"},
    {60, 50, 60, "neg.ftz.f16 h0, h1;"},
    {60, 50, 60, "neg.ftz.f16x2 r0, r1;"},
    {60, 50, 60, "shfl.sync.bfly.b32 r0, r1, r2, r3, r4;"},
    {60, 50, 60, "vote.sync.ballot.b32 r0, !p1, -1;"},
    {62, 61, 70, "activemask.b32 r0;"},
    {62, 61, 70, "atom.add.noftz.f16x2 r0, [d9], r1;"},
    {62, 61, 70, "nanosleep.u32 100;"},
    {62, 61, 70, "red.add.noftz.f16x2 [d9], r1;"},
    {63, 62, 70, "atom.add.noftz.f16 h0, [d9], h1;"},
    {63, 62, 70, "atom.cas.b16 h0, [d9], h1, h2;"},
    {63, 62, 70, "red.add.noftz.f16 [d9], h1;"},
    {65, 64, 75, "abs.ftz.f16 h0, h1;"},
    {65, 64, 75, "abs.ftz.f16x2 r0, r1;"},
    {65, 64, 75, "cvt.pack.sat.s16.s32 r0, r1, r2;"},
    {65, 64, 75, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {r0,r1,r2,r3}, [r4];"},
    {65, 64, 75, "set.ne.xor.ftz.s16.f16 h5, h1, h2, !p1;"},
    {65, 64, 75, "set.ne.xor.ftz.s32.f16 r5, h1, h2, !p1;"},
    {65, 64, 75, "set.ne.xor.ftz.s32.f16x2 r5, r1, r2, !p1;"},
    {65, 64, 75, "set.ne.xor.ftz.u16.f16 h5, h1, h2, !p1;"},
    {65, 64, 75, "set.ne.xor.ftz.u32.f16 r5, h1, h2, !p1;"},
    {65, 64, 75, "set.ne.xor.ftz.u32.f16x2 r5, r1, r2, !p1;"},
    {70, 65, 75, "ex2.approx.f16 h0, h1;"},
    {70, 65, 75, "ex2.approx.f16x2 r0, r1;"},
    {70, 65, 75, "tanh.approx.f16 h0, h1;"},
    {71, 70, 80, "cvt.f32.bf16 r0, h1;"},
    {73, 72, 80, "alloca.u32 r0, r1;"},
    {73, 72, 80, "stackrestore.u32 r0;"},
    {73, 72, 80, "stacksave.u32 r0;"},
    {74, 73, 80, "applypriority.L2::evict_normal [d9], 128;"},
    {74, 73, 80, "atom.global.add.L2::cache_hint.u32 r0, [d9], r1, d8;"},
    {74, 73, 80, "createpolicy.cvt.L2.b64 d0, 0x10000000;"},
    {74, 73, 80, "discard.L2 [d9], 128;"},
    {74, 73, 80, "ld.global.L1::evict_last.L2::128B.nc.f64 d0, [d9];"},
    {74, 73, 80, "ld.global.L1::evict_last.L2::128B.nc.u32 r0, [d9];"},
    {74, 73, 80, "ld.global.L1::evict_normal.L2::cache_hint.f64 d0, [d9], d8;"},
    {74, 73, 80, "ld.global.L1::no_allocate.L2::256B.nc.f64 d0, [d9];"},
    {74, 73, 80, "ld.global.L1::no_allocate.L2::256B.nc.u32 r0, [d9];"},
    {74, 73, 80, "ld.global.nc.L1::evict_first.L2::cache_hint.f64 d0, [d9], d8;"},
    {74, 73, 80, "ld.global.nc.L1::evict_unchanged.L2::cache_hint.f64 d0, [d9], d8;"},
    {74, 73, 80, "ld.global.nc.L2::64B.L2::cache_hint.f64 d0, [d9], d8;"},
    {74, 73, 80, "prefetch.global.L2::evict_last [d9];"},
    {74, 73, 80, "prefetch.global.L2::evict_normal [d9];"},
    {74, 73, 80, "st.L1::evict_normal.L2::cache_hint.u32 [d9], r0, d8;"},
    {74, 73, 80, "st.global.L1::evict_first.L2::cache_hint.u32 [d9], r0, d8;"},
    {74, 73, 80, "st.global.L1::evict_last.L2::cache_hint.u32 [d9], r0, d8;"},
    {74, 73, 80, "st.global.L1::evict_unchanged.L2::cache_hint.u32 [d9], r0, d8;"},
    {74, 73, 80, "st.global.L1::no_allocate.L2::cache_hint.u32 [d9], r0, d8;"},
    {75, 74, 80, "fence.proxy.alias;"},
    {75, 74, 80, "membar.proxy.alias;"},
    {76, 75, 80, "bmsk.clamp.b32 r0, r1, r2;"},
    {76, 75, 80, "szext.clamp.s32 r0, r1, r2;"},
    {77, 76, 80, "cvta.param.u64 d0, kp;"},
    {77, 76, 80, "isspacep.param p0, d9;"},
    {78, 77, 80, "bar.cta.arrive 1, 64;"},
    {78, 77, 80, "barrier.cta.red.aligned.popc.u32 r0, 1, 64, p1;"},
    {78, 77, 80, "cvta.to.shared::cta.u64 d0, d1;"},
    {80, 78, 90, "add.s16x2 r0, r1, r2;"},
    {80, 78, 90, "add.u16x2 r0, r1, r2;"},
    {80, 78, 90, "barrier.cluster.arrive.release.aligned;"},
    {80, 78, 90, "cp.async.bulk.global.shared::cta.bulk_group [d0], [r0], r1;"},
    {80, 78, 90, "elect.sync r0|p0, 0xffffffff;"},
    {80, 78, 90, "fence.mbarrier_init.release.cluster;"},
    {80, 78, 90, "fence.proxy.async;"},
    {80, 78, 90, "max.relu.s32 r0, r1, r2;"},
    {80, 78, 90, "mbarrier.arrive.expect_tx.shared::cta.b64 d0, [mb], 64;"},
    {80, 78, 90, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r0];"},
    {80, 78, 90, "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [mb], 64;"},
    {80, 78, 90, "min.relu.s32 r0, r1, r2;"},
    {80, 78, 90, "prefetch.tensormap [d9];"},
    {81, 80, 90, "atom.add.v2.f32 {r0,r1}, [d9], {r8,r9};"},
    {81, 80, 90, "atom.add.v4.f32 {r0,r1,r2,r3}, [d9], {r8,r9,r10,r11};"},
    {81, 80, 90, "cvt.rn.relu.satfinite.bf16.f32 h0, r1;"},
    {81, 80, 90, "cvt.rn.relu.satfinite.bf16x2.f32 r0, r1, r2;"},
    {81, 80, 90, "cvt.rn.relu.satfinite.f16.f32 h0, r1;"},
    {81, 80, 90, "cvt.rn.relu.satfinite.f16x2.f32 r0, r1, r2;"},
    {81, 80, 90, "cvt.rna.satfinite.tf32.f32 r0, r1;"},
    {81, 80, 90, "fma.rn.oob.f16 h0, h1, h2, h3;"},
    {81, 80, 90, "multimem.ld_reduce.relaxed.sys.global.add.u32 r0, [d0];"},
    {81, 80, 90, "red.add.v2.f32 [d9], {r8,r9};"},
    {81, 80, 90, "red.add.v4.f32 [d9], {r8,r9,r10,r11};"},
    {81, 80, 90, "red.global.v8.bf16.add.noftz [d9], {h8,h9,h10,h11,h12,h13,h14,h15};"},
    {82, 81, 90, "ld.mmio.relaxed.sys.f64 d0, [d9];"},
    {82, 81, 90, "lop3.and.b32 _|p0, r1, r2, r3, 0x1e, !p1;"},
    {82, 81, 90, "lop3.or.b32 _|p0, r1, r2, r3, 0x1e, !p1;"},
    {82, 81, 90, "st.mmio.relaxed.sys.f64 [d9], d0;"},
    {83, 82, 90, "cvta.to.param::entry.u64 d0, d1;"},
    {83, 82, 90, "mov.b128 q0, q1;"},
    {83, 82, 90, "st.param::func.b32 [pa], r0;"},
    {84, 83, 90, "atom.acq_rel.sys.exch.b128 q0, [d9], q1;"},
    {84, 83, 90, "ld.mmio.relaxed.sys.b128 q0, [d9];"},
    {84, 83, 90, "st.mmio.relaxed.sys.b128 [d9], q0;"},
    {91, 90, 90, "ld.volatile.local.u32 r0, [lo];"},
    {91, 90, 90, "ld.local.volatile.u32 r0, [lo];"},
    {91, 90, 90, "st.volatile.local.u32 [lo], r0;"},
    {91, 90, 90, "multimem.cp.async.bulk.global.shared::cta.bulk_group [d0], [mb], 16;"},
    {92, 91, 90, "st.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [r1], q1, [r2];"},
    {92, 91, 90, "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [r1], [d0], 16, 3, 4, [r2];"},
    {93, 92, 80, "clmad.lo.u64 d0, d1, d2, d3;"},
    {93, 92, 80, "clmad.hi.u64 d0, d1, d2, d3;"},
    {93, 92, 90, "cp.async.bulk.weak.global.shared::cta.bulk_group [d0], [mb], 16;"},
    {93, 92, 90, "mbarrier.check_layout.layout::v1.shared.b64 p1, [mb];"},
    {93, 92, 90, "mbarrier.test_wait.phase_type::primary.shared.b64 p1, [mb], d1;"},
    {93, 92, 90, "mbarrier.try_wait.parity.phase_type::primary.shared::cta.b64 p1, [mb], r1;"},
    {94, 93, 90, "atom.global.add.noftz.f32 f1, [d0], f2;"},
    {94, 93, 90, "atom.global.noftz.add.v2.f32 {f1,f2}, [d0], {f3,f4};"},
    {94, 93, 90, "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f32 [d0], [mb], 16;"},
    {94, 93, 90, "fence.proxy.alias.acquire.sys;"},
    {94, 93, 90, "ld.global.proxy::readonly.u32 r0, [d0];"},
    {94, 93, 90, "prefetch.global.valid_addr.L1::32B [d0];"},
    {94, 93, 90, "red.global.add.noftz.f32 [d0], f2;"},
    {94, 93, 90, ".loc_intermediate 1 42 5"},
    {95, 94, 90, "cos.approx.2pi.ftz.f32 f1, f2;"},
    {95, 94, 90, "fence.alias.sync_restrict::read.release.sys;"},
    {95, 94, 90, "sin.approx.ftz.2pi.f32 f1, f2;"},
    {81, 80, 90, "mov.u32 r0, %aggr_smem_size;"},
    {80, 78, 90, "mov.u64 d0, %current_graph_exec;"},
    {76, 75, 80, "mov.u32 r0, %reserved_smem_offset_1;"},
    {50, 43, 52, "mov.u32 r0, %clock_hi;"},
    {41, 40, 30, "mov.u32 r0, %total_smem_size;"},
    {40, 32, 30, "mov.u64 d0, %pm3_64;"},
    {31, 30, 30, "mov.u64 d0, %globaltimer;"},
    /* clang-format on */
};

TEST(instructions_need_the_ptx_version_that_introduced_them) {
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof instructions / sizeof instructions[0]; i++) {
        const char *text = instructions[i].text;
        unsigned first = instructions[i].first, target = instructions[i].target;
        const char *wide = strstr(text, "b128") ? ".reg .b128 q<3>;" : "";
        if (read_with(first, target, "", wide, text) != CUDA_SUCCESS) {
            print_message("%s with version %u: %s\n", text, first, error);
            wrong++;
        }
        if (read_with(instructions[i].before, target, "", wide, text) != CUDA_ERROR_INVALID_PTX ||
            !strstr(error, "came with version")) {
            print_message("%s with version %u is %s\n", text, instructions[i].before,
                          error[0] ? error : "taken");
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

TEST(directives_need_the_ptx_version_that_introduced_them) {
    static const struct {
        unsigned first, before, target;
        const char *text;
    } directives[] = {
        {90, 88, 90, ".func f() .abi_preserve 4 { ret; }"},
        {90, 88, 90, ".entry b() { P: .callprototype _ (.param .u32 x) .abi_preserve_control 4; }"},
        {90, 88, 90,
         ".visible .entry c() .blocksareclusters .reqntid 32 .reqnctapercluster 2 { ret; }"},
        {64, 63, 70, ".func f() .noreturn { trap; }"},
        {63, 62, 60, ".visible .func f() { ret; } .visible .func g(); .alias g, f;"},
        {60, 50, 60, ".visible .entry b() { TS: .branchtargets L; L: ret; }"},
        {50, 43, 52, ".common .global .u32 x;"},
        {40, 32, 30, ".visible .global .attribute(.managed) .u32 x;"},
        {31, 30, 30, ".weak .global .u32 x;"},
    };
    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++) {
        const char *text = directives[i].text;
        if (read_with(directives[i].first, directives[i].target, text, "", "") != CUDA_SUCCESS)
            fail_msg("%s: %s", text, error);
        if (read_with(directives[i].before, directives[i].target, text, "", "") !=
                CUDA_ERROR_INVALID_PTX ||
            !strstr(error, "came with version"))
            fail_msg("%s with version %u: %s", text, directives[i].before, error);
    }
}

/* A register of the program's own may have a special register's name. */
TEST(a_declared_register_shadows_a_special_register) {
    assert_int_equal(
        read_with(80, 90, "", ".reg .b32 %aggr_smem_size;", "mov.u32 r0, %aggr_smem_size;"),
        CUDA_SUCCESS);
}
