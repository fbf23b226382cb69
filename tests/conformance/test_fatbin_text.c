/*
 * Fatbins of machine code and PTX: their kernels run, whichever of the two the driver takes.
 * softgpu takes the text; hardware takes the machine code, and does not look at the text.
 */
#include "harness.h"
#include "images.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* The one word that a kernel of one pointer, and one number, leaves of `word`. */
static CUresult run(CUfunction f, unsigned *word, int number) {
    CUdeviceptr p;
    void *params[] = {&p, &number};
    p = new_memory(sizeof *word);
    OK_CU(cu.cuMemcpyHtoD_v2(p, word, sizeof *word));
    CUresult result = cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    OK_CU(cu.cuMemcpyDtoH_v2(word, p, sizeof *word));
    return result;
}

TEST(kernels_of_a_fatbin_run_from_ptx_or_machine_code) {
    const void *const images[] = {image_small_fatbin, image_plain_fatbin, image_ptx_fatbin};
    for (size_t i = 0; i < COUNT(images); i++) {
        unsigned word = 0;
        CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, images[i]);
        CUfunction f = MADE_CU(CUfunction, cuModuleGetFunction, module, "small");
        CUresult result = run(f, &word, 7);
        OK_CU(cu.cuModuleUnload(module));
        if (no_kernels(result))
            SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
        OK_CU(result);
        assert_int_equal(word, 49);
    }
}

/* The module is whole, and everything but a launch works. */
TEST(a_fatbin_with_refused_ptx_falls_back_to_machine_code) {
    static unsigned char image[sizeof image_plain_fatbin];
    CUdeviceptr variable;
    size_t size;
    unsigned word = 0;
    memcpy(image, image_plain_fatbin, sizeof image);
    char *text = memmem(image, sizeof image, ".version", 8);
    assert_non_null(text);
    memcpy(text, ".venison", 8);
    CUmodule module = new_module(image);
    OK_CU(cu.cuModuleGetGlobal_v2(&variable, &size, module, "small_value"));
    assert_int_equal(size, 4);
    CUfunction f = function_of(module, "small");
    assert_int_equal(MADE_CU(int, cuFuncGetAttribute, CU_FUNC_ATTRIBUTE_BINARY_VERSION, f), 90);
    CUresult result = run(f, &word, 7);
    if (soft)
        assert_int_equal(result, CUDA_ERROR_NOT_SUPPORTED);
    else
        OK_CU(result);
    assert_int_equal(word, soft ? 0 : 49);
}

/* ---- Linked ---------------------------------------------------------------------------------- */

struct entry {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size;
    uint32_t compressed, unused[2], architecture, more[2];
    uint64_t flags, left[2];
};
_Static_assert(sizeof(struct entry) == 64, "as in files");

static size_t add_entry(unsigned char *to, uint16_t kind, const void *bytes, size_t size) {
    struct entry entry = {.kind = kind,
                          .version = 0x101,
                          .header_size = sizeof entry,
                          .size = (size + 7) / 8 * 8,
                          .architecture = kind == 2 ? 90 : 80,
                          .flags = 0x11};
    memcpy(to, &entry, sizeof entry);
    memcpy(to + sizeof entry, bytes, size);
    return sizeof entry + (size_t)entry.size;
}

/* The same kernel as text and as machine code that is made to be linked. */
static size_t make_fatbin(unsigned char *to) {
    static const char caller[] =
        HEAD ".extern .global .u32 shared_value;\n.extern .func (.param .b32 r) outside(.param "
             ".b32 a);\n"
             ".visible .entry caller(.param .u64 p) { .reg .b64 %d; .reg .b32 %r<4>;\n"
             "ld.param.u64 %d, [p]; ld.global.u32 %r1, [%d]; { .param .b32 a; .param .b32 r;\n"
             "st.param.b32 [a], %r1; call.uni (r), outside, (a); ld.param.b32 %r2, [r]; }\n"
             "ld.global.u32 %r3, [shared_value]; add.u32 %r2, %r2, %r3; st.global.u32 [%d], %r2; "
             "ret; }\n";
    struct {
        uint32_t magic;
        uint16_t version, header_size;
        uint64_t size;
    } head = {0xba55ed50, 1, 16, 0};
    size_t size = add_entry(to + 16, 2, image_part_cubin, sizeof image_part_cubin);
    size += add_entry(to + 16 + size, 1, caller, sizeof caller);
    head.size = size;
    memcpy(to, &head, sizeof head);
    return 16 + size;
}

TEST(a_fatbin_linked_with_another_text_runs) {
    static const char giver[] =
        HEAD ".visible .global .u32 shared_value = 1000;\n"
             ".visible .func (.param .b32 r) outside(.param .b32 a) { .reg .b32 %r;\n"
             "ld.param.b32 %r, [a]; shl.b32 %r, %r, 1; st.param.b32 [r], %r; ret; }\n";
    static unsigned char fatbin[8192];
    CUfunction f;
    void *image;
    size_t size = make_fatbin(fatbin);
    unsigned word = 21;
    assert_true(size <= sizeof fatbin);
    CUlinkState link = GOT_CU(CUlinkState, cuLinkCreate_v2, 0, NULL, NULL);
    OK_CU(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_FATBINARY, fatbin, size, "f", 0, NULL, NULL));
    OK_CU(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)giver, sizeof giver, "g",
                              0, NULL, NULL));
    OK_CU(cu.cuLinkComplete(link, &image, &size));
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, image);
    OK_CU(cu.cuLinkDestroy(link));
    OK_CU(cu.cuModuleGetFunction(&f, module, "caller"));
    CUresult result = run(f, &word, 0);
    OK_CU(cu.cuModuleUnload(module));
    if (no_kernels(result))
        SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
    OK_CU(result);
    assert_int_equal(word, 1042);
}
