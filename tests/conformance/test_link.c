/* The linker: parts of a program joined, logs, states. */
#include "harness.h"
#include "image_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD ".version 7.8\n.target sm_70\n.address_size 64\n"
#define CALLER                                                                                     \
    HEAD ".extern .global .align 4 .u32 shared_value;\n"                                           \
         ".visible .entry caller(.param .u64 p)\n{\n.reg .b32 r;\n.reg .b64 x;\n"                  \
         "ld.param.u64 x, [p];\nld.global.u32 r, [shared_value];\nst.u32 [x], r;\nret;\n}\n"
#define GIVER HEAD ".visible .global .align 4 .u32 shared_value = 21;\n"
#define OUTSIDE                                                                                    \
    GIVER ".visible .func (.param .b32 result) outside(.param .b32 a)\n{\n.reg .b32 r;\n"          \
          "ld.param.b32 r, [a];\nst.param.b32 [result], r;\nret;\n}\n"

static CUlinkState create(void) {
    CUlinkState link = NULL;
    OK(cu.cuLinkCreate_v2(0, NULL, NULL, &link));
    assert_non_null(link);
    return link;
}

static CUresult add(CUlinkState link, const char *text) {
    return cu.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, strlen(text) + 1,
                               "text", 0, NULL, NULL);
}

/* The linked image has the caller, and the other part's variable with its value. */
static void check(CUlinkState link) {
    void *image = NULL;
    size_t size = 0;
    CUmodule module;
    CUfunction function;
    CUdeviceptr p;
    uint32_t value = 0;
    OK(cu.cuLinkComplete(link, &image, &size));
    assert_non_null(image);
    assert_true(size > 0);
    OK(cu.cuModuleLoadData(&module, image));
    OK(cu.cuLinkDestroy(link));
    OK(cu.cuModuleGetFunction(&function, module, "caller"));
    OK(cu.cuModuleGetGlobal_v2(&p, NULL, module, "shared_value"));
    OK(cu.cuMemcpyDtoH_v2(&value, p, 4));
    assert_int_equal(value, 21);
    OK(cu.cuModuleUnload(module));
}

static void two_texts(void **state) {
    (void)state;
    CUlinkState link = create();
    OK(add(link, CALLER));
    OK(add(link, GIVER));
    check(link);
}

static void text_and_machine_code(void **state) {
    (void)state;
    CUlinkState link = create();
    OK(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_CUBIN, (void *)(uintptr_t)image_part_cubin,
                           sizeof image_part_cubin, "part", 0, NULL, NULL));
    OK(add(link, OUTSIDE));
    check(link);
}

static void the_first_versions(void **state) {
    (void)state;
    CUlinkState link = NULL;
    char path[] = "/tmp/gpumem-link-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, GIVER, sizeof GIVER - 1), sizeof GIVER - 1);
    OK(cu.cuLinkCreate(0, NULL, NULL, &link));
    OK(cu.cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)CALLER, sizeof CALLER, "a", 0,
                        NULL, NULL));
    OK(cu.cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    check(link);
    link = create();
    OK(add(link, CALLER));
    OK(cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    check(link);
    close(fd);
    unlink(path);
    link = create();
    FAILS(CUDA_ERROR_FILE_NOT_FOUND,
          cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    OK(cu.cuLinkDestroy(link));
}

static void what_is_missing_or_twice(void **state) {
    (void)state;
    void *image = NULL;
    size_t size;
    CUlinkState link = create();
    OK(add(link, CALLER));
    FAILS(CUDA_ERROR_INVALID_SOURCE, cu.cuLinkComplete(link, &image, &size));
    assert_null(image);
    OK(cu.cuLinkDestroy(link));
    link = create();
    OK(add(link, GIVER));
    FAILS(CUDA_ERROR_INVALID_SOURCE, add(link, GIVER));
    FAILS(CUDA_ERROR_INVALID_SOURCE, cu.cuLinkComplete(link, &image, &size));
    OK(cu.cuLinkDestroy(link));
}

static void inputs_are_of_their_kind(void **state) {
    (void)state;
    void *text = (void *)(uintptr_t)GIVER, *cubin = (void *)(uintptr_t)image_small_cubin;
    const struct {
        CUresult answer;
        CUjitInputType type;
        void *bytes;
        size_t size;
    } inputs[] = {
        {CUDA_ERROR_INVALID_IMAGE, CU_JIT_INPUT_CUBIN, text, sizeof GIVER},
        {CUDA_ERROR_INVALID_IMAGE, CU_JIT_INPUT_OBJECT, cubin, sizeof image_small_cubin},
        {CUDA_ERROR_UNKNOWN, CU_JIT_INPUT_LIBRARY, cubin, sizeof image_small_cubin},
        {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CU_JIT_INPUT_NVVM, cubin, sizeof image_small_cubin},
        {CUDA_ERROR_INVALID_VALUE, CU_JIT_NUM_INPUT_TYPES, cubin, sizeof image_small_cubin},
        {CUDA_ERROR_NO_BINARY_FOR_GPU, CU_JIT_INPUT_CUBIN, cubin, sizeof image_small_cubin},
    };
    /* A linker each: what one has refused, it may answer to all that come after. */
    for (size_t i = 0; i < COUNT(inputs); i++) {
        CUlinkState link = create();
        FAILS(inputs[i].answer, cu.cuLinkAddData_v2(link, inputs[i].type, inputs[i].bytes,
                                                    inputs[i].size, "a", 0, NULL, NULL));
        OK(cu.cuLinkDestroy(link));
    }
}

/* Size options become what was used; the buffers are the linker's until it ends. */
static void logs_are_written_as_it_goes(void **state) {
    (void)state;
    char error[512] = "x";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_WALL_TIME};
    void *values[] = {error, (void *)sizeof error, (void *)77};
    CUlinkState link;
    OK(cu.cuLinkCreate_v2(3, options, values, &link));
    assert_int_equal((uintptr_t)values[1], 0);
    assert_ptr_not_equal(values[2], (void *)77);
    FAILS(CUDA_ERROR_INVALID_PTX, add(link, HEAD ".visible .entry a()\n{\nfrob;\n}\n"));
    assert_true(strlen(error) > 0);
    assert_int_equal((uintptr_t)values[1], strlen(error));
    OK(cu.cuLinkDestroy(link));
}

/* An array of options of which none counts belongs to the caller all the same. */
static void no_options_of_an_array(void **state) {
    (void)state;
    CUjit_option options[] = {CU_JIT_WALL_TIME};
    void *values[] = {(void *)77};
    CUlinkState link;
    OK(cu.cuLinkCreate_v2(0, options, values, &link));
    OK(add(link, GIVER));
    OK(cu.cuLinkDestroy(link));
    assert_ptr_equal(values[0], (void *)77);
}

static void it_completes_once(void **state) {
    (void)state;
    CUlinkState link = create();
    void *image, *again;
    size_t size;
    OK(add(link, GIVER));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuLinkComplete(link, NULL, &size));
    OK(cu.cuLinkComplete(link, &image, &size));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cu.cuLinkComplete(link, &again, &size));
    FAILS(CUDA_ERROR_INVALID_VALUE, add(link, CALLER));
    OK(cu.cuLinkDestroy(link));
    FAILS(CUDA_ERROR_INVALID_HANDLE, cu.cuLinkDestroy(NULL));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(two_texts),
        TEST(text_and_machine_code),
        TEST(the_first_versions),
        TEST(what_is_missing_or_twice),
        TEST(inputs_are_of_their_kind),
        TEST(logs_are_written_as_it_goes),
        TEST(no_options_of_an_array),
        TEST(it_completes_once),
    };
    return conformance(argc, argv, tests, COUNT(tests), NULL, 0);
}
