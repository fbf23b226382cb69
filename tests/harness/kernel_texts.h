/*
 * Four kernels of PTX, each an entry "k": what the engine's tests check and its benchmark times.
 * saxpy(y, x, a, n); matmul(c, a, b, n), in tiles of 16 x 16; reduce(out, in, n), a sum for each
 * block; histogram(bins, in, n), of bytes. For who uses all of them.
 */
#ifndef KERNEL_TEXTS_H
#define KERNEL_TEXTS_H

#define KERNEL_HEAD ".version 8.1\n.target sm_90\n.address_size 64\n"

static const char saxpy_text[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) {\n"
    ".reg .pred %p; .reg .f32 %f<5>; .reg .b32 %r<6>; .reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f1, [a];\n"
    "ld.param.u32 %r2, [n]; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;\n"
    "mov.u32 %r5, %tid.x; mad.lo.s32 %r1, %r3, %r4, %r5;\n"
    "setp.ge.s32 %p, %r1, %r2; @%p bra done;\n"
    "cvta.to.global.u64 %rd3, %rd2; mul.wide.s32 %rd4, %r1, 4; add.s64 %rd5, %rd3, %rd4;\n"
    "cvta.to.global.u64 %rd6, %rd1; add.s64 %rd7, %rd6, %rd4;\n"
    "ld.global.f32 %f2, [%rd5]; ld.global.f32 %f3, [%rd7];\n"
    "fma.rn.f32 %f4, %f2, %f1, %f3; st.global.f32 [%rd7], %f4;\n"
    "done: ret; }\n";

#define STEP(k, a, b)                                                                              \
    "ld.shared.f32 %f1, [%r11+" a "]; ld.shared.f32 %f2, [%r12+" b "];\n"                          \
    "fma.rn.f32 %f3, %f1, %f2, %f3;\n"
static const char matmul_text[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 c, .param .u64 a, .param .u64 b, .param .u32 n) {\n"
    ".reg .pred %p; .reg .f32 %f<6>; .reg .b32 %r<24>; .reg .b64 %rd<12>;\n"
    ".shared .align 4 .b8 as[1024]; .shared .align 4 .b8 bs[1024];\n"
    "ld.param.u64 %rd1, [c]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [b];\n"
    "ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y;\n"
    "mov.u32 %r4, %ctaid.y; shl.b32 %r4, %r4, 4; add.s32 %r4, %r4, %r3;\n"
    "mov.u32 %r5, %ctaid.x; shl.b32 %r5, %r5, 4; add.s32 %r5, %r5, %r2;\n"
    "mov.u32 %r6, as; mov.u32 %r7, bs; shl.b32 %r8, %r3, 6; add.s32 %r11, %r6, %r8;\n"
    "shl.b32 %r9, %r2, 2; add.s32 %r12, %r7, %r9; add.s32 %r13, %r11, %r9;\n"
    "add.s32 %r14, %r12, %r8; mov.f32 %f3, 0f00000000; mov.u32 %r10, 0;\n"
    "loop: mad.lo.s32 %r15, %r4, %r1, %r10; add.s32 %r15, %r15, %r2;\n"
    "mul.wide.s32 %rd4, %r15, 4; add.s64 %rd4, %rd2, %rd4; ld.global.f32 %f4, [%rd4];\n"
    "st.shared.f32 [%r13], %f4; add.s32 %r16, %r10, %r3;\n"
    "mad.lo.s32 %r16, %r16, %r1, %r5; mul.wide.s32 %rd5, %r16, 4;\n"
    "add.s64 %rd5, %rd3, %rd5; ld.global.f32 %f5, [%rd5]; st.shared.f32 [%r14], %f5;\n"
    "bar.sync 0;\n" STEP(0, "0", "0") STEP(1, "4", "64") STEP(2, "8", "128") STEP(3, "12", "192")
        STEP(4, "16", "256") STEP(5, "20", "320") STEP(6, "24", "384") STEP(7, "28", "448")
            STEP(8, "32", "512") STEP(9, "36", "576") STEP(10, "40", "640") STEP(11, "44", "704")
                STEP(12, "48", "768") STEP(13, "52", "832") STEP(14, "56", "896")
                    STEP(15, "60", "960") "bar.sync 0; add.s32 %r10, %r10, 16; setp.lt.s32 %p, "
                                          "%r10, %r1; @%p bra loop;\n"
                                          "mad.lo.s32 %r17, %r4, %r1, %r5; mul.wide.s32 %rd6, "
                                          "%r17, 4; add.s64 %rd6, %rd1, %rd6;\n"
                                          "st.global.f32 [%rd6], %f3; ret; }\n";

#define DOWN(d)                                                                                    \
    "mov.b32 %r10, %f1; shfl.sync.down.b32 %r11|%q, %r10, " d ", 31, -1;\n"                        \
    "mov.b32 %f2, %r11; add.f32 %f1, %f1, %f2;\n"
static const char reduce_text[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n) {\n"
    ".reg .pred %p, %q; .reg .f32 %f<6>; .reg .b32 %r<24>; .reg .b64 %rd<12>;\n"
    ".shared .align 4 .b8 part[128];\n"
    "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; ld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %ctaid.x;\n"
    "mad.lo.s32 %r5, %r4, %r3, %r2; mov.u32 %r6, %nctaid.x; mul.lo.s32 %r6, %r6, %r3;\n"
    "mov.f32 %f1, 0f00000000; setp.ge.s32 %p, %r5, %r1; @%p bra summed;\n"
    "loop: mul.wide.s32 %rd3, %r5, 4; add.s64 %rd3, %rd2, %rd3; ld.global.f32 %f2, [%rd3];\n"
    "add.f32 %f1, %f1, %f2; add.s32 %r5, %r5, %r6; setp.lt.s32 %p, %r5, %r1;\n"
    "@%p bra loop;\n"
    "summed: " DOWN("16") DOWN("8") DOWN("4") DOWN("2")
        DOWN("1") "and.b32 %r7, %r2, 31; shr.u32 %r8, %r2, 5; mov.u32 %r9, part;\n"
                  "setp.ne.s32 %p, %r7, 0; @%p bra told; shl.b32 %r12, %r8, 2; add.s32 %r12, %r9, "
                  "%r12;\n"
                  "st.shared.f32 [%r12], %f1;\n"
                  "told: bar.sync 0; setp.ne.s32 %p, %r8, 0; @%p bra done; shr.u32 %r13, %r3, 5;\n"
                  "mov.f32 %f1, 0f00000000; setp.ge.u32 %p, %r7, %r13; @%p bra none;\n"
                  "shl.b32 %r12, %r7, 2; add.s32 %r12, %r9, %r12; ld.shared.f32 %f1, [%r12];\n"
                  "none: " DOWN("16") DOWN("8") DOWN("4") DOWN("2")
                      DOWN("1") "setp.ne.s32 %p, %r7, 0; @%p bra done; mul.wide.u32 %rd4, %r4, 4;\n"
                                "add.s64 %rd4, %rd1, %rd4; st.global.f32 [%rd4], %f1;\n"
                                "done: ret; }\n";

static const char histogram_text[] = KERNEL_HEAD
    ".visible .entry k(.param .u64 bins, .param .u64 in, .param .u32 n) {\n"
    ".reg .pred %p; .reg .b16 %rs<2>; .reg .b32 %r<24>; .reg .b64 %rd<12>;\n"
    ".shared .align 4 .b8 h[1024];\n"
    "ld.param.u64 %rd1, [bins]; ld.param.u64 %rd2, [in]; ld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; mov.u32 %r4, h; add.s32 %r5, %r4, %r3;\n"
    "mov.u32 %r6, 0; st.shared.u32 [%r5], %r6; bar.sync 0;\n"
    "mov.u32 %r7, %ntid.x; mov.u32 %r8, %ctaid.x; mad.lo.s32 %r9, %r8, %r7, %r2;\n"
    "mov.u32 %r10, %nctaid.x; mul.lo.s32 %r10, %r10, %r7;\n"
    "setp.ge.s32 %p, %r9, %r1; @%p bra counted;\n"
    "loop: cvt.s64.s32 %rd3, %r9; add.s64 %rd3, %rd2, %rd3; ld.global.u8 %r11, [%rd3];\n"
    "shl.b32 %r11, %r11, 2; add.s32 %r11, %r4, %r11; atom.shared.add.u32 %r12, [%r11], 1;\n"
    "add.s32 %r9, %r9, %r10; setp.lt.s32 %p, %r9, %r1; @%p bra loop;\n"
    "counted: bar.sync 0; ld.shared.u32 %r13, [%r5]; setp.eq.s32 %p, %r13, 0;\n"
    "@%p bra done; mul.wide.u32 %rd4, %r2, 4; add.s64 %rd4, %rd1, %rd4;\n"
    "atom.global.add.u32 %r14, [%rd4], %r13;\n"
    "done: ret; }\n";

#undef STEP
#undef DOWN

#endif
