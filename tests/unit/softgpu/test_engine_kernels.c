/* Whole kernels on every level: what they leave in memory. */
#include "kernel.h"

static const char saxpy[] =
    KERNEL_HEAD ".visible .entry k(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) {\n"
                ".reg .pred %p; .reg .f32 %f<5>; .reg .b32 %r<6>; .reg .b64 %rd<8>;\n"
                "ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x];\n"
                "ld.param.f32 %f1, [a]; ld.param.u32 %r2, [n];\n"
                "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"
                "mad.lo.s32 %r1, %r3, %r4, %r5; setp.ge.s32 %p, %r1, %r2; @%p bra done;\n"
                "cvta.to.global.u64 %rd3, %rd2; mul.wide.s32 %rd4, %r1, 4;\n"
                "add.s64 %rd5, %rd3, %rd4; cvta.to.global.u64 %rd6, %rd1;\n"
                "add.s64 %rd7, %rd6, %rd4; ld.global.f32 %f2, [%rd5]; ld.global.f32 %f3, [%rd7];\n"
                "fma.rn.f32 %f4, %f2, %f1, %f3; st.global.f32 [%rd7], %f4;\n"
                "done: ret; }\n";

static void saxpy_leaves_sums_and_nothing_behind_them(void **state) {
    (void)state;
    FOR_EACH_LEVEL(level) {
        enum { COUNT = 1000, ROOM = 1024 };
        static float x[ROOM], y[ROOM];
        for (int i = 0; i < ROOM; i++) {
            x[i] = (float)i;
            y[i] = 0.5F;
        }
        struct kernel kernel;
        kernel_make(&kernel, saxpy, (enum sg_level)level);
        float a = 3;
        kernel_pointer(&kernel, y);
        kernel_pointer(&kernel, x);
        kernel_argument(&kernel, &a, 4);
        kernel_number(&kernel, COUNT);
        kernel_shape(&kernel, 8, 128);
        kernel_succeeds(&kernel);
        for (int i = 0; i < ROOM; i++)
            assert_true(y[i] == (i < COUNT ? (float)i * 3 + 0.5F : 0.5F));
        kernel_free(&kernel);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saxpy_leaves_sums_and_nothing_behind_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
