/* The linker: parts of a program joined, logs, states. */
#include "harness.h"
#include "images.h"
#include "temporary.h"

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
    CUlinkState link = GOT_CU(CUlinkState, cuLinkCreate_v2, 0, NULL, NULL);
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
    OK_CU(cu.cuLinkComplete(link, &image, &size));
    assert_non_null(image);
    assert_true(size > 0);
    CUmodule module = new_module(image);
    OK_CU(cu.cuLinkDestroy(link));
    function_of(module, "caller");
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuModuleGetGlobal_v2, NULL, module, "shared_value");
    assert_int_equal(word_at(p), 21);
}

TEST(two_ptx_texts_are_linked) {
    CUlinkState link = create();
    OK_CU(add(link, CALLER));
    OK_CU(add(link, GIVER));
    check(link);
}

TEST(ptx_and_a_cubin_are_linked) {
    CUlinkState link = create();
    OK_CU(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_CUBIN, (void *)(uintptr_t)image_part_cubin,
                              sizeof image_part_cubin, "part", 0, NULL, NULL));
    OK_CU(add(link, OUTSIDE));
    check(link);
}

TEST(the_first_abi_of_the_linker_works) {
    CUlinkState link = NULL;
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "gpumem-link");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, GIVER, sizeof GIVER - 1), sizeof GIVER - 1);
    OK_CU(cu.cuLinkCreate(0, NULL, NULL, &link));
    OK_CU(cu.cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)CALLER, sizeof CALLER, "a", 0,
                           NULL, NULL));
    OK_CU(cu.cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    check(link);
    link = create();
    OK_CU(add(link, CALLER));
    OK_CU(cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    check(link);
    close(fd);
    unlink(path);
    link = create();
    FAILS_CU(FILE_NOT_FOUND, cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    OK_CU(cu.cuLinkDestroy(link));
}

TEST(undefined_and_duplicate_symbols_are_refused) {
    void *image = NULL;
    size_t size;
    CUlinkState link = create();
    OK_CU(add(link, CALLER));
    FAILS_CU(INVALID_SOURCE, cu.cuLinkComplete(link, &image, &size));
    assert_null(image);
    OK_CU(cu.cuLinkDestroy(link));
    link = create();
    OK_CU(add(link, GIVER));
    FAILS_CU(INVALID_SOURCE, add(link, GIVER));
    FAILS_CU(INVALID_SOURCE, cu.cuLinkComplete(link, &image, &size));
    OK_CU(cu.cuLinkDestroy(link));
}

/* Completes and loads it. */
static CUmodule load(CUlinkState link) {
    void *image = NULL;
    size_t size;
    OK_CU(cu.cuLinkComplete(link, &image, &size));
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, image);
    OK_CU(cu.cuLinkDestroy(link));
    return module;
}

static CUdeviceptr global(CUmodule module, const char *name) {
    return MADE_CU(CUdeviceptr, cuModuleGetGlobal_v2, NULL, module, name);
}

/* As nvcc writes them for templates, in each unit that uses one. */
#define TEMPLATE(held)                                                                             \
    HEAD ".weak .global .align 4 .u32 held = " held ";\n"                                          \
         ".weak .func (.param .b32 result) twice(.param .b32 a)\n{\n.reg .b32 r<3>;\n"             \
         "ld.param.u32 r0, [a];\nld.global.u32 r1, [held];\nadd.s32 r2, r0, r1;\n"                 \
         "st.param.b32 [result], r2;\nret;\n}\n"                                                   \
         ".weak .entry kernel(.param .u64 p)\n{\n.reg .b64 x;\n.reg .b32 r;\n"                     \
         "ld.param.u64 x, [p];\nld.global.u32 r, [x];\n{\n.param .b32 in;\n.param .b32 out;\n"     \
         "st.param.b32 [in], r;\ncall.uni (out), twice, (in);\nld.param.b32 r, [out];\n}\n"        \
         "st.global.u32 [x], r;\nret;\n}\n"

/* What the linker itself says has no input to name. Before a text is refused. */
TEST(linker_errors_name_no_input) {
    char error[512] = "x";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {error, (void *)sizeof error}, *image;
    CUlinkState link = GOT_CU(CUlinkState, cuLinkCreate_v2, 2, options, values);
    OK_CU(add(link, CALLER));
    FAILS_CU(INVALID_SOURCE, cu.cuLinkComplete(link, &image, NULL));
    assert_memory_equal(error, "error ", 6);
    OK_CU(cu.cuLinkDestroy(link));
}

TEST(a_template_in_two_units_is_linked_once) {
    NEEDS_SOFTGPU("the linker of an H200's driver died of two weak entries");
    CUlinkState link = create();
    OK_CU(add(link, TEMPLATE("5") ".visible .entry a()\n{\nret;\n}\n"));
    OK_CU(add(link, TEMPLATE("6") ".visible .entry b()\n{\nret;\n}\n"));
    CUmodule module = load(link);
    assert_int_equal(MADE_CU(unsigned, cuModuleGetFunctionCount, module), 3);
    function_of(module, "kernel");
    assert_int_equal(word_at(global(module, "held")), 5);
    OK_CU(cu.cuModuleUnload(module));
}

TEST(a_strong_symbol_overrides_a_weak_symbol) {
    for (int i = 0; i < 2; i++) {
        static const char *const texts[] = {
            TEMPLATE("5"), HEAD ".visible .global .align 4 .u32 held = 7;\n"
                                ".visible .func (.param .b32 result) twice(.param .b32 a)\n{\n"
                                "st.param.b32 [result], 3;\nret;\n}\n"};
        CUlinkState link = create();
        OK_CU(add(link, texts[i]));
        OK_CU(add(link, texts[!i]));
        CUmodule module = load(link);
        assert_int_equal(word_at(global(module, "held")), 7);
        OK_CU(cu.cuModuleUnload(module));
    }
}

/* What is not visible is its own input's, where another has one of that name too. */
TEST(local_variables_of_the_same_name_stay_separate) {
    CUlinkState link = create();
    OK_CU(add(link, HEAD ".global .align 4 .u32 own = 1;\n"
                         ".visible .global .align 8 .u64 to_first = generic(own);\n"));
    OK_CU(add(link, HEAD ".global .align 4 .u32 own = 2;\n"
                         ".visible .global .align 8 .u64 to_second = generic(own);\n"));
    CUmodule module = load(link);
    CUdeviceptr first = 0, second = 0;
    OK_CU(cu.cuMemcpyDtoH_v2(&first, global(module, "to_first"), sizeof first));
    OK_CU(cu.cuMemcpyDtoH_v2(&second, global(module, "to_second"), sizeof second));
    assert_true(first != second);
    assert_int_equal(word_at(first), 1);
    assert_int_equal(word_at(second), 2);
    OK_CU(cu.cuModuleUnload(module));
}

TEST(inputs_that_do_not_match_their_type_are_refused) {
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
        ANSWERS_CU(inputs[i].answer, cu.cuLinkAddData_v2(link, inputs[i].type, inputs[i].bytes,
                                                         inputs[i].size, "a", 0, NULL, NULL));
        OK_CU(cu.cuLinkDestroy(link));
    }
}

/* As text, any image is read, and left out when it is not for the device; as machine code, what
 * is none spoils the whole. NVVM has no compiler here, and that spoils it too. */
TEST(every_image_is_answered_by_its_input_type) {
#define IMAGE(image) image, sizeof image
    static const struct {
        CUjitInputType type;
        const unsigned char *bytes;
        size_t size;
        CUresult answer, behind, whole;
    } inputs[] = {
        {CU_JIT_INPUT_PTX, IMAGE(image_part_cubin), CUDA_SUCCESS, CUDA_SUCCESS,
         CUDA_ERROR_INVALID_SOURCE},
        {CU_JIT_INPUT_PTX, IMAGE(image_small_cubin), CUDA_ERROR_NO_BINARY_FOR_GPU,
         CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {CU_JIT_INPUT_PTX, IMAGE(image_other_cubin), CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_SUCCESS,
         CUDA_SUCCESS},
        {CU_JIT_INPUT_PTX, IMAGE(image_other_fatbin), CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_SUCCESS,
         CUDA_SUCCESS},
        {CU_JIT_INPUT_PTX, IMAGE(image_caller_object), CUDA_ERROR_INVALID_IMAGE, CUDA_SUCCESS,
         CUDA_SUCCESS},
        {CU_JIT_INPUT_CUBIN, IMAGE(image_other_cubin), CUDA_ERROR_NO_BINARY_FOR_GPU,
         CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {CU_JIT_INPUT_CUBIN, IMAGE(image_other_fatbin), CUDA_ERROR_INVALID_IMAGE,
         CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE},
        {CU_JIT_INPUT_CUBIN, IMAGE(image_caller_object), CUDA_ERROR_UNKNOWN, CUDA_ERROR_UNKNOWN,
         CUDA_ERROR_UNKNOWN},
        {CU_JIT_INPUT_NVVM, IMAGE(image_part_cubin), CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
         CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_JIT_COMPILER_NOT_FOUND},
    };
    for (size_t i = 0; i < COUNT(inputs); i++) {
        void *image = NULL;
        size_t size = 0;
        CUlinkState link = create();
        assert_int_equal(cu.cuLinkAddData_v2(link, inputs[i].type,
                                             (void *)(uintptr_t)inputs[i].bytes, inputs[i].size,
                                             "a", 0, NULL, NULL),
                         inputs[i].answer);
        assert_int_equal(add(link, HEAD ".visible .entry k()\n{\nret;\n}\n"), inputs[i].behind);
        assert_int_equal(cu.cuLinkComplete(link, &image, &size), inputs[i].whole);
        OK_CU(cu.cuLinkDestroy(link));
    }
}

/* Whole programs are no inputs, in a fatbin neither; what one spoils stays so. */
TEST(whole_program_images_are_refused) {
    CUlinkState link = create();
    FAILS_CU(NO_BINARY_FOR_GPU, cu.cuLinkAddData_v2(link, CU_JIT_INPUT_FATBINARY,
                                                    (void *)(uintptr_t)image_small_fatbin,
                                                    sizeof image_small_fatbin, "b", 0, NULL, NULL));
    FAILS_CU(NO_BINARY_FOR_GPU,
             cu.cuLinkAddData_v2(link, CU_JIT_INPUT_FATBINARY, (void *)(uintptr_t)image_ptx_fatbin,
                                 sizeof image_ptx_fatbin, "c", 0, NULL, NULL));
    FAILS_CU(NO_BINARY_FOR_GPU, add(link, GIVER));
    OK_CU(cu.cuLinkDestroy(link));
}

/* As a fatbin, code for another device adds nothing: not even to what was spoilt. */
TEST(a_fatbinary_input_for_another_device_is_ignored) {
    CUlinkState link = create();
    FAILS_CU(NO_BINARY_FOR_GPU,
             cu.cuLinkAddData_v2(link, CU_JIT_INPUT_FATBINARY, (void *)(uintptr_t)image_small_cubin,
                                 sizeof image_small_cubin, "a", 0, NULL, NULL));
    OK_CU(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_FATBINARY, (void *)(uintptr_t)image_other_cubin,
                              sizeof image_other_cubin, "e", 0, NULL, NULL));
    OK_CU(cu.cuLinkDestroy(link));
}

TEST(ptx_that_does_not_compile_is_ignored) {
    void *image = NULL;
    size_t size;
    CUlinkState link = create();
    FAILS_CU(INVALID_IMAGE, add(link, "this is no program"));
    FAILS_CU(INVALID_PTX, add(link, HEAD ".visible .entry a()\n{\nfrob;\n}\n"));
    OK_CU(add(link, OUTSIDE));
    OK_CU(cu.cuLinkComplete(link, &image, &size));
    OK_CU(cu.cuLinkDestroy(link));
}

/* What is no machine code, but was given as such, spoils the whole. */
TEST(ptx_given_as_a_cubin_fails_the_whole_link) {
    void *image = NULL;
    size_t size;
    char path[TEMPORARY_ROOM];
    int fd = temporary_file(path, "gpumem-link");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, OUTSIDE, sizeof OUTSIDE - 1), sizeof OUTSIDE - 1);
    CUlinkState link = create();
    OK_CU(cu.cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    FAILS_CU(INVALID_IMAGE, cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_CUBIN, path, 0, NULL, NULL));
    FAILS_CU(UNKNOWN, cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_LIBRARY, path, 0, NULL, NULL));
    /* An H200 gives no sign that there is no object in it. */
    OK_CU(cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_OBJECT, path, 0, NULL, NULL));
    FAILS_CU(INVALID_IMAGE, cu.cuLinkComplete(link, &image, &size));
    assert_null(image);
    OK_CU(cu.cuLinkDestroy(link));
    close(fd);
    unlink(path);
}

static unsigned char *linked(size_t *size) {
    void *image = NULL;
    CUlinkState link = create();
    OK_CU(add(link, HEAD ".visible .entry k()\n{\nret;\n}\n"));
    OK_CU(cu.cuLinkComplete(link, &image, size));
    unsigned char *copy = malloc(*size);
    assert_non_null(copy);
    memcpy(copy, image, *size);
    OK_CU(cu.cuLinkDestroy(link));
    return copy;
}

/* What comes out is an ELF for the device, and what its header says is looked at. */
TEST(the_output_is_an_elf_file) {
    static const struct {
        size_t at;
        unsigned char value;
        CUresult answer;
    } changes[] = {
        {4, 1, CUDA_ERROR_UNKNOWN},
        {5, 2, CUDA_ERROR_INVALID_IMAGE},
        {7, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {8, 99, CUDA_SUCCESS},
        {16, 1, CUDA_SUCCESS},
        {18, 62, CUDA_ERROR_INVALID_IMAGE},
        {48, 100, CUDA_SUCCESS},
        {49, 100, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {60, 0, CUDA_ERROR_INVALID_IMAGE},
    };
    size_t size = 0;
    unsigned char *cubin = linked(&size);
    assert_true(size > 64);
    assert_memory_equal(cubin, "\177ELF\2\1\1", 7);
    for (size_t i = 0; i < COUNT(changes); i++) {
        CUmodule module = NULL;
        unsigned count = 0;
        unsigned char *byte = &cubin[changes[i].at], before = *byte;
        *byte = changes[i].value;
        assert_int_equal(cu.cuModuleLoadData(&module, cubin), changes[i].answer);
        if (module) {
            OK_CU(cu.cuModuleGetFunctionCount(&count, module));
            assert_int_equal(count, 1);
            OK_CU(cu.cuModuleUnload(module));
        }
        *byte = before;
    }
    free(cubin);
}

/* It is no text any more that could be compiled for another device. */
TEST(the_output_cannot_be_compiled_for_another_device) {
    CUjit_option target = CU_JIT_TARGET;
    void *value = (void *)80;
    CUmodule module;
    size_t size;
    unsigned char *cubin = linked(&size);
    FAILS_CU(NO_BINARY_FOR_GPU, cu.cuModuleLoadDataEx(&module, cubin, 1, &target, &value));
    value = (void *)90;
    OK_CU(cu.cuModuleLoadDataEx(&module, cubin, 1, &target, &value));
    OK_CU(cu.cuModuleUnload(module));
    free(cubin);
}

/* Size options become what was used; the buffers are the linker's until it ends. */
TEST(logs_are_written_after_each_input) {
    char error[512] = "x";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_WALL_TIME};
    void *values[] = {error, (void *)sizeof error, (void *)77};
    CUlinkState link = GOT_CU(CUlinkState, cuLinkCreate_v2, 3, options, values);
    assert_int_equal((uintptr_t)values[1], 0);
    assert_ptr_not_equal(values[2], (void *)77);
    FAILS_CU(INVALID_PTX, add(link, HEAD ".visible .entry a()\n{\nfrob;\n}\n"));
    assert_true(strlen(error) > 0);
    assert_int_equal((uintptr_t)values[1], strlen(error));
    OK_CU(cu.cuLinkDestroy(link));
}

/* An array of options of which none counts belongs to the caller all the same. */
TEST(options_beyond_the_count_are_not_written) {
    CUjit_option options[] = {CU_JIT_WALL_TIME};
    void *values[] = {(void *)77};
    CUlinkState link = GOT_CU(CUlinkState, cuLinkCreate_v2, 0, options, values);
    OK_CU(add(link, GIVER));
    OK_CU(cu.cuLinkDestroy(link));
    assert_ptr_equal(values[0], (void *)77);
}

TEST(a_link_completes_once) {
    CUlinkState link = create();
    void *image, *again;
    size_t size;
    OK_CU(add(link, GIVER));
    FAILS_CU(INVALID_VALUE, cu.cuLinkComplete(link, NULL, &size));
    OK_CU(cu.cuLinkComplete(link, &image, &size));
    FAILS_CU(INVALID_HANDLE, cu.cuLinkComplete(link, &again, &size));
    FAILS_CU(INVALID_VALUE, add(link, CALLER));
    OK_CU(cu.cuLinkDestroy(link));
}

/* What one linker refused changes what later ones of the process answer. */
TEST(a_missing_symbol_after_refused_ptx_is_an_unknown_error) {
    void *image;
    CUlinkState link = create();
    FAILS_CU(INVALID_PTX, add(link, HEAD ".visible .entry a()\n{\nfrob;\n}\n"));
    OK_CU(cu.cuLinkDestroy(link));
    link = create();
    OK_CU(add(link, CALLER));
    FAILS_CU(UNKNOWN, cu.cuLinkComplete(link, &image, NULL));
    OK_CU(cu.cuLinkDestroy(link));
}

TEST(ptx_ends_at_its_null_terminator) {
    static char text[] = GIVER "\0frob;\n";
    const size_t sizes[] = {1, 60, sizeof GIVER - 1, sizeof text};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        CUlinkState link = create();
        OK_CU(cu.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, text, sizes[i], "a", 0, NULL, NULL));
        CUmodule module = load(link);
        assert_int_equal(word_at(global(module, "shared_value")), 21);
        OK_CU(cu.cuModuleUnload(module));
    }
}

TEST(a_visible_variable_is_found_before_a_local_one) {
    CUlinkState link = create();
    OK_CU(add(link, HEAD ".global .align 4 .u32 own = 1;\n"));
    OK_CU(add(link, HEAD ".visible .global .align 4 .u32 own = 2;\n"));
    CUmodule module = load(link);
    assert_int_equal(word_at(global(module, "own")), 2);
    OK_CU(cu.cuModuleUnload(module));
}

TEST(a_variable_and_a_function_of_the_same_name_are_refused) {
    CUlinkState link = create();
    OK_CU(add(link, HEAD ".weak .global .align 4 .u32 both = 1;\n"));
    FAILS_CU(UNKNOWN, add(link, HEAD ".weak .func (.param .b32 result) both()\n{\n"
                                     ".reg .b32 r;\nmov.u32 r, 2;\n"
                                     "st.param.b32 [result], r;\nret;\n}\n"));
    OK_CU(cu.cuLinkDestroy(link));
}

TEST(a_verbose_linker_writes_an_info_log) {
    char info[2048] = "";
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_LOG_VERBOSE};
    void *values[] = {info, (void *)sizeof info, (void *)1}, *image;
    CUlinkState link = GOT_CU(CUlinkState, cuLinkCreate_v2, 3, options, values);
    OK_CU(add(link, CALLER));
    assert_int_equal(info[0], 0);
    assert_int_not_equal(cu.cuLinkComplete(link, &image, NULL), CUDA_SUCCESS);
    assert_true(info[0] != 0);
    OK_CU(cu.cuLinkDestroy(link));
}
