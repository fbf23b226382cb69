/* Kernels that were linked of several texts: whom a name stands for, in each of them. */
#include "harness.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

#define STRONG                                                                                     \
    ".visible .global .u32 common_sum;\n"                                                          \
    ".visible .func (.param .b32 r) chosen(.param .b32 x) { .reg .b32 %r<2>;\n"                    \
    "ld.param.u32 %r1, [x]; add.u32 %r1, %r1, 10000; st.param.b32 [r], %r1; ret; }\n"

static const char *const texts[] = {
    /* Calls a function of the second text, directly and by its address; has variables, one of them
     * in a body, and a function of its own of a name that the others have too. */
    HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
         ".extern .func (.param .b32 r) chosen(.param .b32 x);\n"
         ".extern .global .u32 common_sum;\n"
         ".extern .shared .align 4 .b8 room[];\n"
         ".global .u32 own = 7;\n"
         ".func (.param .b32 r) hidden(.param .b32 x) { .reg .b32 %r<3>; .global .u32 own = 100;\n"
         "ld.param.u32 %r1, [x]; ld.global.u32 %r2, [own]; add.u32 %r1, %r1, %r2;\n"
         "st.param.b32 [r], %r1; ret; }\n"
         ".visible .entry k(.param .u64 out) { .reg .b32 %r<9>; .reg .b64 %d<5>;\n"
         "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;\n"
         "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;\n"
         "call (b), twice, (a); ld.param.b32 %r2, [b]; }\n"
         "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2;\n"
         "call (b), hidden, (a); ld.param.b32 %r3, [b]; }\n"
         "mov.u64 %d2, chosen;\n"
         "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3;\n"
         "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
         "call (b), %d2, (a), P; ld.param.b32 %r4, [b]; }\n"
         "shl.b32 %r5, %r1, 2; mov.u32 %r6, room; add.u32 %r6, %r6, %r5;\n"
         "st.shared.u32 [%r6], %r4; ld.shared.u32 %r7, [%r6];\n"
         "mul.wide.u32 %d3, %r1, 4; add.s64 %d3, %d3, %d1; st.global.u32 [%d3], %r7;\n"
         "red.global.add.u32 [common_sum], %r7; ret; }\n",
    HEAD ".global .u32 own = 1000;\n"
         ".func (.param .b32 r) hidden(.param .b32 x) { .reg .b32 %r<3>;\n"
         "ld.param.u32 %r1, [x]; ld.global.u32 %r2, [own]; add.u32 %r1, %r1, %r2;\n"
         "st.param.b32 [r], %r1; ret; }\n"
         ".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<3>;\n"
         "ld.param.u32 %r1, [x]; add.u32 %r1, %r1, %r1;\n"
         "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;\n"
         "call (b), hidden, (a); ld.param.b32 %r2, [b]; }\n"
         "st.param.b32 [r], %r2; ret; }\n"
         ".weak .func (.param .b32 r) chosen(.param .b32 x) { .reg .b32 %r<2>;\n"
         "ld.param.u32 %r1, [x]; add.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }\n",
    HEAD STRONG,
    /* The same for one architecture alone, as compilers of 9.0 write it. */
    ".version 8.0\n.target sm_90a\n.address_size 64\n" STRONG,
};

/* As the texts say: twice, 1000 of the second, 100 of the first, 10000 of the strong one. */
static unsigned wanted(unsigned thread) {
    return 2 * thread + 1000 + 100 + 10000;
}

static CUmodule link_images(const unsigned *order, unsigned count) {
    void *image;
    size_t size;
    CUlinkState state = GOT_CU(CUlinkState, cuLinkCreate_v2, 0, NULL, NULL);
    for (unsigned i = 0; i < count; i++) {
        const char *text = texts[order[i]];
        OK_CU(cu.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text,
                                  strlen(text) + 1, "text", 0, NULL, NULL));
    }
    OK_CU(cu.cuLinkComplete(state, &image, &size));
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, image);
    OK_CU(cu.cuLinkDestroy(state));
    return module;
}

static void check(const unsigned *order) {
    CUdeviceptr out, sum;
    size_t size;
    unsigned got[32], expected = 0;
    CUmodule module = link_images(order, 3);
    OK_CU(cu.cuMemAlloc_v2(&out, sizeof got));
    CUfunction function = function_of(module, "k");
    void *params[] = {&out};
    CUresult result =
        cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, sizeof got, NULL, params, NULL);
    if (no_kernels(result)) {
        DESTROY_CU(module, out);
        SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
    }
    assert_int_equal(result, CUDA_SUCCESS);
    OK_CU(cu.cuMemcpyDtoH_v2(got, out, sizeof got));
    for (unsigned i = 0; i < 32; i++) {
        assert_int_equal(got[i], wanted(i));
        expected += wanted(i);
    }
    OK_CU(cu.cuModuleGetGlobal_v2(&sum, &size, module, "common_sum"));
    assert_int_equal(word_at(sum), expected);
    DESTROY_CU(out, module);
}

TEST_IS(names_of_linked_texts_resolve_as_by_a_linker, check((const unsigned[]){0, 1, 2}));

TEST(the_order_of_linked_inputs_does_not_matter) {
    check((const unsigned[]){2, 1, 0});
    check((const unsigned[]){1, 0, 2});
}

TEST(a_text_for_one_architecture_can_be_linked) {
    int major = 0;
    OK_CU(cu.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev));
    if (major != 9)
        SKIP("sm_90a runs on compute capability 9.0 only");
    check((const unsigned[]){0, 1, 3});
}
