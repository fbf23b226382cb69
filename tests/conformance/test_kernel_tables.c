/*
 * Addresses of functions in the initial values of variables: kernels call through such tables, also
 * those that never name the table, or a function of it.
 */
#include "kernel_module.h"

#define FUNCTION(name, body)                                                                       \
    ".func (.param .b32 r) " name "(.param .b32 x) { .reg .b32 %a; ld.param.u32 %a, [x];\n" body   \
    " st.param.b32 [r], %a; ret; }\n"
#define FUNCTIONS                                                                                  \
    FUNCTION("twice", "add.u32 %a, %a, %a;")                                                       \
    FUNCTION("square", "mul.lo.u32 %a, %a, %a;")                                                   \
    FUNCTION("beyond", "add.u32 %a, %a, 100;")
#define BEGIN                                                                                      \
    " { .reg .b32 %r<9>; .reg .b64 %d<9>; ld.param.u64 %d1, [out];\n"                              \
    "mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2;\n"
/* Calls what %d3 holds with the thread's number, and writes what it answers. */
#define CALL                                                                                       \
    "\n{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;\n"                                   \
    "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"                                       \
    "call (b), %d3, (a), P; ld.param.b32 %r2, [b]; }\n"                                            \
    "st.global.u32 [%d2], %r2; ret; }\n"
/* %d3: the entry of a table at %d4 that is the thread's, of three. */
#define ENTRY "rem.u32 %r3, %r1, 3; mul.wide.u32 %d5, %r3, 8; add.u64 %d4, %d4, %d5;\n"

#define THREADS 32u

static unsigned wanted(unsigned which, unsigned x) {
    return which == 0 ? 2 * x : which == 1 ? x * x : x + 100;
}

static void launch(CUmodule module, const char *name, void **params, CUdeviceptr out,
                   unsigned (*answer)(unsigned thread)) {
    unsigned got[THREADS];
    OK_CU(cu.cuMemsetD8_v2(out, 0xee, sizeof got));
    OK_CU(kernel_launch(function_of(module, name), 1, THREADS, params));
    OK_CU(cu.cuMemcpyDtoH_v2(got, out, sizeof got));
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(got[i], answer(i));
}

static unsigned by_turns(unsigned thread) {
    return wanted(thread % 3, thread);
}

static unsigned backwards(unsigned thread) {
    return wanted(2 - thread % 3, thread);
}

TEST_WHERE(kernels_call_through_function_tables, NEEDS_KERNELS()) {
    CUdeviceptr out;
    CUmodule module = kernel_module(
        NULL, FUNCTIONS ".global .align 8 .u64 table[3] = {twice, square, beyond};\n"
                        ".const .align 8 .u64 fixed[3] = {beyond, square, twice};\n"
                        ".visible .entry k(.param .u64 out)" BEGIN "mov.u64 %d4, table;\n" ENTRY
                        "ld.global.u64 %d3, [%d4];" CALL ".visible .entry c(.param .u64 out)" BEGIN
                        "mov.u64 %d4, fixed;\n" ENTRY "ld.const.u64 %d3, [%d4];" CALL);
    out = new_memory(THREADS * sizeof(unsigned));
    void *params[] = {&out};
    launch(module, "k", params, out, by_turns);
    launch(module, "c", params, out, backwards);
    OK_CU(cu.cuModuleUnload(module));
}

/* The text of the kernel says neither which table it is nor which functions there are. */
TEST_WHERE(a_function_table_may_be_a_kernel_argument, NEEDS_KERNELS()) {
    CUdeviceptr out, table;
    size_t size;
    CUmodule module = kernel_module(
        NULL, FUNCTIONS ".visible .global .align 8 .u64 table[3] = {twice, square, beyond};\n"
                        ".visible .entry k(.param .u64 out, .param .u64 table)" BEGIN
                        "ld.param.u64 %d4, [table];\n" ENTRY "ld.global.u64 %d3, [%d4];" CALL);
    OK_CU(cu.cuModuleGetGlobal_v2(&table, &size, module, "table"));
    assert_int_equal(size, 3 * sizeof(uint64_t));
    out = new_memory(THREADS * sizeof(unsigned));
    void *params[] = {&out, &table};
    launch(module, "k", params, out, by_turns);
    OK_CU(cu.cuModuleUnload(module));
}

/* As constructors of C++ do: one kernel makes an object that refers to a table of functions behind
 * other words, another calls what it finds there. */
TEST_WHERE(one_kernel_calls_virtual_functions_of_anothers_object, NEEDS_KERNELS()) {
    CUdeviceptr out, object;
    CUmodule module = kernel_module(
        NULL, FUNCTIONS
        ".global .align 8 .u64 virtual_table[5] = {0, 0, twice, square, beyond};\n"
        ".visible .entry make(.param .u64 object) { .reg .b64 %d<3>; ld.param.u64 %d1, [object];\n"
        "mov.u64 %d2, virtual_table; add.u64 %d2, %d2, 16; cvta.global.u64 %d2, %d2;\n"
        "st.global.u64 [%d1], %d2; ret; }\n"
        ".visible .entry use(.param .u64 out, .param .u64 object)" BEGIN
        "ld.param.u64 %d4, [object]; ld.global.u64 %d4, [%d4];\n" ENTRY "ld.u64 %d3, [%d4];" CALL);
    out = new_memory(THREADS * sizeof(unsigned));
    object = new_memory(sizeof(uint64_t));
    void *one[] = {&object}, *two[] = {&out, &object};
    OK_CU(kernel_launch(function_of(module, "make"), 1, 1, one));
    launch(module, "use", two, out, by_turns);
    OK_CU(cu.cuModuleUnload(module));
}

/* A variable holds what code gets for the function's name. */
TEST(code_and_initializers_have_the_same_function_address) {
    NEEDS_SOFTGPU("hardware may have two addresses of a function");
    NEEDS_KERNELS();
    CUdeviceptr out, table;
    size_t size;
    uint64_t code[2], held[2];
    CUmodule module = kernel_module(
        NULL, FUNCTIONS ".visible .global .align 8 .u64 table[2] = {square, generic(beyond)};\n"
                        ".visible .entry k(.param .u64 out) { .reg .b64 %d<4>;\n"
                        "ld.param.u64 %d1, [out]; mov.u64 %d2, square; mov.u64 %d3, beyond;\n"
                        "st.global.v2.u64 [%d1], {%d2, %d3}; ret; }\n");
    out = new_memory(sizeof code);
    void *params[] = {&out};
    OK_CU(kernel_launch(function_of(module, "k"), 1, 1, params));
    OK_CU(cu.cuMemcpyDtoH_v2(code, out, sizeof code));
    OK_CU(cu.cuModuleGetGlobal_v2(&table, &size, module, "table"));
    OK_CU(cu.cuMemcpyDtoH_v2(held, table, sizeof held));
    assert_memory_equal(code, held, sizeof held);
    assert_true(held[0] != 0 && held[1] != 0 && held[0] != held[1]);
    OK_CU(cu.cuModuleUnload(module));
}

/* Two texts, each with a table, and a function of its own, of the same names. */
#define PART(number)                                                                               \
    KERNEL_MODULE_HEAD FUNCTION("hidden",                                                          \
                                "add.u32 %a, %a, " number                                          \
                                ";") ".extern .func (.param .b32 r) shared(.param .b32 x);\n"      \
                                     ".global .align 8 .u64 own[3] = {hidden, shared, hidden};\n"  \
                                     ".visible .entry k" number "(.param .u64 out)" BEGIN          \
                                     "mov.u64 %d4, own;\n" ENTRY "ld.global.u64 %d3, [%d4];" CALL

static unsigned of_one(unsigned thread) {
    return thread + (thread % 3 == 1 ? 500 : 1);
}

static unsigned of_two(unsigned thread) {
    return thread + (thread % 3 == 1 ? 500 : 2);
}

TEST(function_tables_of_linked_texts_refer_to_their_own_text) {
    static const char *const texts[] = {PART("1"), PART("2"),
                                        KERNEL_MODULE_HEAD
                                        ".visible " FUNCTION("shared", "add.u32 %a, %a, 500;")};
    NEEDS_KERNELS();
    void *image;
    size_t size;
    CUlinkState link = GOT_CU(CUlinkState, cuLinkCreate_v2, 0, NULL, NULL);
    for (unsigned i = 0; i < COUNT(texts); i++)
        OK_CU(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)texts[i],
                                  strlen(texts[i]) + 1, "text", 0, NULL, NULL));
    OK_CU(cu.cuLinkComplete(link, &image, &size));
    CUmodule module = new_module(image);
    OK_CU(cu.cuLinkDestroy(link));
    CUdeviceptr out = new_memory(THREADS * sizeof(unsigned));
    void *params[] = {&out};
    launch(module, "k1", params, out, of_one);
    launch(module, "k2", params, out, of_two);
}
