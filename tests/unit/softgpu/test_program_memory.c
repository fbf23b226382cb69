/* Making a program where memory ends: at each allocation in turn, and nothing is left behind. */
#include "softgpu/binary/read.h"
#include "softgpu/program/program.h"

#include "refused_memory.h"

#include "test.h"

static const char text[] =
    ".version 8.5\n.target sm_90\n.address_size 64\n"
    ".global .u32 v;\n.global .texref t;\n.extern .shared .align 16 .b8 dyn[];\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".func (.param .b32 r) f(.param .b32 x) { .local .b32 l; .reg .f32 q; st.param.f32 [r], q; }\n"
    ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<99>;\n.reg .pred %p<9>;\n.reg .b64 %d<9>;\n"
    ".reg .v4 .f32 w;\n.shared .b32 s[4];\n"
    "T: .branchtargets A, B;\nP: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
    "{\n.param .b32 a, b;\n.loc 1 2 3\ncall (b), f, (a);\nmov.u64 %d1, f;\ncall (b), %d1, (a), P;\n"
    /* Contracted: with a copy of a factor, and a product in a register that is written again. */
    "}\n.reg .f32 g, h, i; mul.f32 g, h, i; add.f32 h, h, i; add.f32 g, g, h;\n"
    "st.f32 [v], g; mul.f32 g, h, i; add.f32 i, g, h; st.f32 [v], i;\n"
    "A: setp.eq.and.s32 %p1|%p2, %r1, -3, !%p3;\n@%p1 bra A;\nbrx.idx %r7, T;\n"
    "B: tex.2d.v4.f32.f32 w, [t, {%r3, %r4}];\nmov.b64 %d2, {%r5, %r6};\nst.u32 [v], %r3;\n"
    "cp.async.bulk.prefetch.tensor.1d.L2.global [%d1, {%r1}];\nmov.u32 %r8, dyn;\nret;\n}\n.file 1 "
    "\"a.cu\"\n";

static struct sg_image *image_of(CUresult *result) {
    static const struct sg_image_options options = {.architecture = 90, .newest_ptx = 90};
    struct sg_image_log log = {0};
    struct sg_image *image = NULL;
    *result = sg_image_read(text, SIZE_MAX, &options, &log, &image);
    return image;
}

/* Each allocation of reading and decoding is refused once; a sanitizer sees what would leak. */
TEST(decoding_a_program_without_memory_leaks_nothing) {
    size_t failures = 0;
    for (bool done = false; !done; failures += !done) {
        struct sg_image_log log = {0};
        struct sg_program *program = NULL;
        CUresult result;
        struct sg_image *image = image_of(&result);
        assert_int_equal(result, CUDA_SUCCESS);
        refuse_memory((long)failures + 1);
        result = sg_program_make(image, "k", &log, &program);
        end_refusal();
        done = !memory_was_refused();
        assert_int_equal(result, memory_was_refused() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
        assert_true((program != NULL) == done);
        sg_program_free(program);
        sg_image_free(image);
    }
    assert_true(failures > 50);
}

TEST(reading_a_text_without_memory_leaks_nothing) {
    size_t failures = 0;
    for (bool done = false; !done; failures += !done) {
        CUresult result;
        refuse_memory((long)failures + 1);
        struct sg_image *image = image_of(&result);
        end_refusal();
        done = !memory_was_refused();
        assert_int_equal(result, memory_was_refused() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
        assert_true((image != NULL) == done);
        sg_image_free(image);
    }
    assert_true(failures > 20);
}

TEST(dumping_a_program_without_memory_returns_null) {
    struct sg_image_log log = {0};
    struct sg_program *program = NULL;
    CUresult result;
    struct sg_image *image = image_of(&result);
    assert_int_equal(sg_program_make(image, "k", &log, &program), CUDA_SUCCESS);
    for (bool done = false; !done;) {
        static size_t at = 0;
        refuse_memory((long)++at);
        char *dump = sg_program_dump(program);
        end_refusal();
        done = !memory_was_refused();
        assert_true((dump != NULL) == done);
        free(dump);
    }
    sg_program_free(program);
    sg_image_free(image);
}
