/* Objects and archives of a host's compiler as inputs of a link. */
#include "harness.h"
#include "images.h"
#include "temporary.h"

static CUlinkState create(void) {
    return GOT_CU(CUlinkState, cuLinkCreate_v2, 0, NULL, NULL);
}

static CUresult add(CUlinkState link, CUjitInputType type, const void *data, size_t size) {
    return cu.cuLinkAddData_v2(link, type, (void *)(uintptr_t)data, size, "input", 0, NULL, NULL);
}

#define ADD(link, type, image) add(link, CU_JIT_INPUT_##type, image, sizeof(image))

/* A member of the archive. */
static const unsigned char *member(const char *name, size_t *size) {
    for (size_t at = 8; at + 60 <= sizeof image_archive; at += 60 + *size + *size % 2) {
        char digits[11] = "";
        memcpy(digits, image_archive + at + 48, 10);
        *size = strtoul(digits, NULL, 10);
        if (strncmp((const char *)image_archive + at, name, strlen(name)) == 0)
            return image_archive + at + 60;
    }
    fail_msg("no member %s", name);
    return NULL;
}

static CUmodule finish(CUlinkState link) {
    void *image = NULL;
    size_t size = 0;
    OK_CU(cu.cuLinkComplete(link, &image, &size));
    CUmodule module = MADE_CU(CUmodule, cuModuleLoadData, image);
    OK_CU(cu.cuLinkDestroy(link));
    return module;
}

static void has_function(CUmodule module, const char *name) {
    function_of(module, name);
}

static int value_of(CUmodule module, const char *name) {
    CUdeviceptr at;
    size_t size = 0;
    int value = 0;
    OK_CU(cu.cuModuleGetGlobal_v2(&at, &size, module, name));
    assert_int_equal(size, sizeof value);
    OK_CU(cu.cuMemcpyDtoH_v2(&value, at, sizeof value));
    return value;
}

/* All members, whether something asked for them or not. */
static void check_all(CUlinkState link) {
    CUmodule module = finish(link);
    has_function(module, "calls_library");
    has_function(module, "first_of_two");
    has_function(module, "second_of_two");
    assert_int_equal(value_of(module, "from_library"), 21);
    assert_int_equal(value_of(module, "first_value"), 5);
    OK_CU(cu.cuModuleUnload(module));
}

TEST(an_object_is_linked_with_an_archive) {
    CUlinkState link = create();
    OK_CU(ADD(link, OBJECT, image_caller_object));
    OK_CU(ADD(link, LIBRARY, image_archive));
    check_all(link);
}

TEST(the_archive_may_come_first) {
    CUlinkState link = create();
    OK_CU(ADD(link, LIBRARY, image_archive));
    OK_CU(ADD(link, OBJECT, image_caller_object));
    check_all(link);
}

TEST(an_object_without_its_archive_is_refused) {
    CUlinkState link = create();
    void *image = NULL;
    size_t size = 0;
    OK_CU(ADD(link, OBJECT, image_caller_object));
    FAILS_CU(INVALID_SOURCE, cu.cuLinkComplete(link, &image, &size));
    OK_CU(cu.cuLinkDestroy(link));
}

static void write_file(char path[TEMPORARY_ROOM], const void *data, size_t size) {
    int fd = temporary_file(path, "gpumem-link");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    close(fd);
}

TEST(objects_and_archives_are_read_from_files) {
    char object[TEMPORARY_ROOM], archive[TEMPORARY_ROOM];
    CUlinkState link = create();
    write_file(object, image_caller_object, sizeof image_caller_object);
    write_file(archive, image_archive, sizeof image_archive);
    OK_CU(cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_OBJECT, object, 0, NULL, NULL));
    OK_CU(cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_LIBRARY, archive, 0, NULL, NULL));
    unlink(object);
    unlink(archive);
    check_all(link);
}

/* A member has a function that calls what is nowhere; no kernel comes there. */
TEST(an_undefined_symbol_in_unreachable_code_is_accepted) {
    CUlinkState link = create();
    void *image = NULL;
    size_t size = 0;
    OK_CU(ADD(link, LIBRARY, image_archive));
    CUmodule module = finish(link);
    has_function(module, "first_of_two");
    OK_CU(cu.cuModuleUnload(module));
    link = create();
    OK_CU(ADD(link, LIBRARY, image_archive));
    OK_CU(ADD(link, OBJECT, image_reaching_object));
    FAILS_CU(INVALID_SOURCE, cu.cuLinkComplete(link, &image, &size));
    OK_CU(cu.cuLinkDestroy(link));
}

#define HEAD   ".version 7.8\n.target sm_70\n.address_size 64\n"
#define CALLS  "{\n.param .b32 out;\ncall.uni (out), nowhere, ();\n}\nret;\n}\n"
#define LACKS  HEAD ".extern .func (.param .b32 result) nowhere();\n"
#define UNUSED LACKS ".visible .func unused()\n{\n" CALLS ".visible .entry empty()\n{\nret;\n}\n"
#define POINTS UNUSED ".visible .global .u64 pointer = unused;\n"
#define USED   HEAD ".extern .func unused();\n.visible .entry uses()\n{\ncall.uni unused;\nret;\n}\n"

static CUresult link_texts(const char *first, const char *second) {
    CUlinkState link = create();
    void *image = NULL;
    size_t size = 0;
    OK_CU(add(link, CU_JIT_INPUT_PTX, first, strlen(first) + 1));
    if (second)
        OK_CU(add(link, CU_JIT_INPUT_PTX, second, strlen(second) + 1));
    CUresult result = cu.cuLinkComplete(link, &image, &size);
    OK_CU(cu.cuLinkDestroy(link));
    return result;
}

TEST(an_undefined_symbol_in_unreachable_ptx_is_accepted) {
    OK_CU(link_texts(UNUSED, NULL));
    FAILS_CU(INVALID_SOURCE, link_texts(UNUSED, USED));
    FAILS_CU(INVALID_SOURCE, link_texts(USED, UNUSED));
    FAILS_CU(INVALID_SOURCE, link_texts(POINTS, NULL));
}

TEST(a_symbol_defined_in_two_inputs_is_refused) {
    void *image = NULL;
    size_t size = 0;
    CUlinkState link = create();
    OK_CU(ADD(link, LIBRARY, image_archive));
    FAILS_CU(INVALID_SOURCE, ADD(link, LIBRARY, image_archive));
    FAILS_CU(INVALID_SOURCE, cu.cuLinkComplete(link, &image, &size));
    OK_CU(cu.cuLinkDestroy(link));
    link = create();
    OK_CU(ADD(link, LIBRARY, image_archive));
    OK_CU(ADD(link, OBJECT, image_caller_object));
    FAILS_CU(INVALID_SOURCE, ADD(link, OBJECT, image_caller_object));
    FAILS_CU(INVALID_SOURCE, cu.cuLinkComplete(link, &image, &size));
    OK_CU(cu.cuLinkDestroy(link));
}

/* What one linker refuses changes an H200's answers of later ones in the process. */
TEST(an_input_that_is_not_an_archive_is_refused) {
    CUlinkState link = create();
    FAILS_CU(UNKNOWN, add(link, CU_JIT_INPUT_LIBRARY, HEAD, sizeof HEAD));
    OK_CU(cu.cuLinkDestroy(link));
    link = create();
    FAILS_CU(UNKNOWN, ADD(link, LIBRARY, image_caller_object));
    OK_CU(cu.cuLinkDestroy(link));
}

/* A linker that has refused an input says so of an archive, and nothing of an object. */
TEST(a_linker_that_refused_an_input_refuses_archives) {
    void *image = NULL;
    size_t size = 0;
    CUlinkState link = create();
    FAILS_CU(INVALID_IMAGE, add(link, CU_JIT_INPUT_CUBIN, "no program", 11));
    OK_CU(add(link, CU_JIT_INPUT_OBJECT, HEAD, sizeof HEAD));
    OK_CU(ADD(link, OBJECT, image_caller_object));
    FAILS_CU(INVALID_IMAGE, ADD(link, LIBRARY, image_archive));
    FAILS_CU(INVALID_IMAGE, cu.cuLinkComplete(link, &image, &size));
    OK_CU(cu.cuLinkDestroy(link));
}

static unsigned function_count(CUlinkState link) {
    unsigned count = 77;
    CUmodule module = finish(link);
    OK_CU(cu.cuModuleGetFunctionCount(&count, module));
    OK_CU(cu.cuModuleUnload(module));
    return count;
}

/* Refused by itself: what comes behind it is linked, and nothing of it. */
static void check_nothing_in(CUjitInputType type, const void *data, size_t size) {
    CUlinkState link = create();
    FAILS_CU(INVALID_IMAGE, add(link, type, data, size));
    OK_CU(add(link, CU_JIT_INPUT_PTX, UNUSED, sizeof UNUSED));
    assert_int_equal(function_count(link), 1);
}

TEST(inputs_without_device_code_are_refused) {
    size_t size;
    const unsigned char *object = member("empty.o/", &size);
    check_nothing_in(CU_JIT_INPUT_OBJECT, object, size);
    check_nothing_in(CU_JIT_INPUT_LIBRARY, "!<arch>\n", 8);
    check_nothing_in(CU_JIT_INPUT_LIBRARY, image_archive, 40);
    check_nothing_in(CU_JIT_INPUT_LIBRARY, image_archive, 68);
}

TEST(a_truncated_archive_is_refused) {
    NEEDS_SOFTGPU("hardware reads the member behind the end, too");
    check_nothing_in(CU_JIT_INPUT_LIBRARY, image_archive, sizeof image_archive / 2);
    check_nothing_in(CU_JIT_INPUT_LIBRARY, image_archive, sizeof image_archive - 100);
}

/* Whatever is cut off or changed: an answer, and the linker still ends. */
TEST(damaged_archives_do_not_crash_the_linker) {
    NEEDS_SOFTGPU("other drivers need not survive it");
    unsigned char *copy = malloc(sizeof image_archive);
    assert_non_null(copy);
    for (size_t size = 1; size < sizeof image_archive; size += 13) {
        CUlinkState link = create();
        unsigned char *cut = malloc(size); /* of its own, so that a sanitizer sees its end */
        assert_non_null(cut);
        memcpy(cut, image_archive, size);
        CUresult result = add(link, CU_JIT_INPUT_LIBRARY, cut, size);
        if (size < 8)
            assert_int_equal(result, CUDA_ERROR_UNKNOWN);
        else
            assert_true(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_IMAGE);
        OK_CU(cu.cuLinkDestroy(link));
        free(cut);
    }
    for (size_t at = 8; at < sizeof image_archive; at += 3) {
        CUlinkState link = create();
        memcpy(copy, image_archive, sizeof image_archive);
        copy[at] ^= (unsigned char)(1u << at % 8);
        add(link, CU_JIT_INPUT_LIBRARY, copy, sizeof image_archive);
        OK_CU(cu.cuLinkDestroy(link));
    }
    free(copy);
}

/* The toolkit's own archive, which needs much that nobody defines. */
TEST(cudadevrt_is_linked) {
    static const char *const paths[] = {"/usr/local/cuda/lib64/libcudadevrt.a",
                                        "/usr/local/cuda/lib/libcudadevrt.a",
                                        "/usr/local/cuda/targets/x86_64-linux/lib/libcudadevrt.a",
                                        "/usr/lib/x86_64-linux-gnu/libcudadevrt.a"};
    const char *path = getenv("GPUMEM_CUDADEVRT");
    for (size_t i = 0; !path && i < COUNT(paths); i++)
        path = access(paths[i], R_OK) == 0 ? paths[i] : NULL;
    if (!path) {
        printf("skip: no toolkit here has libcudadevrt.a; GPUMEM_CUDADEVRT may name it\n");
        skip();
    }
    CUlinkState link = create();
    OK_CU(cu.cuLinkAddFile_v2(link, CU_JIT_INPUT_LIBRARY, path, 0, NULL, NULL));
    OK_CU(ADD(link, OBJECT, image_caller_object));
    OK_CU(ADD(link, LIBRARY, image_archive));
    check_all(link);
}
