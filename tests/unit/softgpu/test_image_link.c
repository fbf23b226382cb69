/* Linking images, and the ELF that comes out. */
#include "softgpu/binary/read.h"
#include "softgpu/image/image.h"
#include "softgpu/link/link.h"

#include "test.h"

#define HEAD  ".version 8.0\n.target sm_90\n.address_size 64\n"
#define OLD   ".version 8.0\n.target sm_70\n.address_size 64\n"
#define ALONE ".version 8.0\n.target sm_90a\n.address_size 64\n"
#define MAIN                                                                                       \
    HEAD ".extern .func given();\n.extern .global .u32 outside;\n"                                 \
         ".visible .global .align 8 .u64 p[2] = {outside, 3};\n.global .texref t;\n"               \
         ".visible .entry k(.param .u8 a, .param .u64 b) .reqntid 32, 2 { .shared .b8 s[9];"       \
         " call given; st.global.u32 [outside], 1; ret; }\n"
#define GIVEN                                                                                      \
    HEAD ".visible .func given() { ret; }\n.visible .global .u32 outside = 7;\n.global .surfref "  \
         "s;\n"                                                                                    \
         ".visible .global .attribute(.managed) .u32 m;\n.visible .const .u32 c = 4;\n"            \
         ".visible .entry other() .explicitcluster .maxclusterrank 4 { ret; }\n"

static const struct sg_image_options options = {
    .architecture = 90, .newest_ptx = 90, .prefer_machine = true, .relocatable = true};

static char error[400];

static struct sg_image *part(const char *text) {
    struct sg_image *image = NULL;
    assert_int_equal(sg_image_read(text, SIZE_MAX, &options, NULL, &image), CUDA_SUCCESS);
    return image;
}

static CUresult link_two(const char *first, const char *second, unsigned char **bytes,
                         size_t *size) {
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    struct sg_image *images[] = {part(first), part(second)};
    error[0] = '\0';
    *bytes = NULL;
    CUresult result =
        sg_image_link((const struct sg_image *const *)images, 2, &options, &log, bytes, size);
    sg_image_free(images[0]);
    sg_image_free(images[1]);
    return result;
}

/* What is read of the link of two that go together. */
static struct sg_image *linked(const char *first, const char *second) {
    struct sg_image *image = NULL;
    unsigned char *bytes;
    size_t size;
    assert_int_equal(link_two(first, second, &bytes, &size), CUDA_SUCCESS);
    assert_int_equal(sg_image_read(bytes, size, &options, NULL, &image), CUDA_SUCCESS);
    free(bytes);
    return image;
}

TEST(a_link_keeps_the_functions_and_textures_of_its_inputs) {
    unsigned char *bytes;
    size_t size;
    struct sg_image *image = NULL;
    assert_int_equal(link_two(MAIN, GIVEN, &bytes, &size), CUDA_SUCCESS);
    assert_int_equal(sg_image_read(bytes, SIZE_MAX, &options, NULL, &image), CUDA_SUCCESS);
    assert_int_equal(image->source, SG_IMAGE_PTX);
    assert_int_equal(image->ptx_version, 80);
    assert_int_equal(image->target, 90);
    assert_int_equal(image->function_count, 2);
    const struct sg_image_function *k = sg_image_find_function(image, "k");
    assert_non_null(k);
    assert_int_equal(k->parameter_count, 2);
    assert_int_equal(k->parameter_bytes, 16);
    MEMBERS(k->parameters[1], (offset, 8), (size, 8));
    assert_int_equal(k->required_threads[0], 32);
    assert_int_equal(k->required_threads[1], 2);
    assert_int_equal(k->static_shared, 9);
    const struct sg_image_function *other = sg_image_find_function(image, "other");
    assert_true(other && other->explicit_cluster && other->max_cluster_rank == 4);
    assert_int_equal(other->constant, 4);
    assert_int_equal(image->texture_count, 1);
    assert_string_equal(image->textures[0], "t");
    assert_string_equal(image->surfaces[0], "s");
    assert_int_equal(image->undefined_count, 0);
    sg_image_free(image);
    free(bytes);
}

TEST(a_link_keeps_the_variables_of_its_inputs) {
    struct sg_image *image = linked(MAIN, GIVEN);
    assert_int_equal(image->variable_count, 4);
    const struct sg_image_variable *p = sg_image_find_variable(image, "p");
    assert_non_null(p);
    assert_int_equal(p->size, 16);
    assert_int_equal(p->alignment, 8);
    assert_true(p->visible);
    assert_int_equal(p->initial[8], 3);
    assert_int_equal(p->relocation_count, 1);
    assert_string_equal(p->relocations[0].symbol, "outside");
    assert_int_equal(p->relocations[0].size, 8);
    const struct sg_image_variable *outside = sg_image_find_variable(image, "outside");
    assert_true(outside && !outside->external && outside->initial[0] == 7);
    assert_true(sg_image_find_variable(image, "m")->managed);
    assert_true(sg_image_find_variable(image, "c")->constant);
    sg_image_free(image);
}

TEST(undefined_and_duplicate_names_are_refused) {
    static const struct {
        const char *first, *second, *says;
    } cases[] = {
        {MAIN, HEAD, "given"},
        {MAIN, HEAD ".visible .func given() { ret; }\n", "outside"},
        {MAIN, HEAD ".func given() { ret; }\n.visible .global .u32 outside;\n", "given"},
        {GIVEN, GIVEN, "other"},
        {HEAD ".visible .global .u32 x;\n", HEAD ".visible .global .u32 x;\n", "x"},
        {HEAD ".visible .func f() { ret; }\n", HEAD ".visible .func f() { ret; }\n", "f"},
    };
    unsigned char *bytes;
    size_t size;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_not_equal(link_two(cases[i].first, cases[i].second, &bytes, &size),
                             CUDA_SUCCESS);
        assert_null(bytes);
        assert_non_null(strstr(error, cases[i].says));
    }
    /* Names that are not visible do not meet; weak ones may. */
    assert_int_equal(link_two(HEAD ".global .u32 x;\n", HEAD ".global .u32 x;\n", &bytes, &size),
                     CUDA_SUCCESS);
    free(bytes);
    assert_int_equal(
        link_two(HEAD ".weak .global .u32 x;\n", HEAD ".weak .global .u32 x;\n", &bytes, &size),
        CUDA_SUCCESS);
    free(bytes);
}

/* A container whose bytes changed is refused or read, and one that was cut is refused. */
TEST(damaged_containers_are_refused_or_read_within_bounds) {
    unsigned char *bytes;
    size_t size;
    struct sg_image *image = NULL;
    assert_int_equal(link_two(MAIN, GIVEN, &bytes, &size), CUDA_SUCCESS);
    /* Exactly as many bytes as there are, so that reading one more is seen. */
    unsigned char *exact = malloc(size);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    for (size_t at = 4; at < size; at++) {
        for (unsigned bit = 1; bit < 256; bit <<= 3) {
            exact[at] ^= (unsigned char)bit;
            (void)sg_image_read(exact, size, &options, NULL, &image);
            sg_image_free(image);
            image = NULL;
            exact[at] ^= (unsigned char)bit;
        }
        unsigned char *part_of_it = malloc(at);
        assert_non_null(part_of_it);
        memcpy(part_of_it, bytes, at);
        assert_int_equal(sg_image_read(part_of_it, at, &options, NULL, &image),
                         CUDA_ERROR_INVALID_IMAGE);
        free(part_of_it);
    }
    free(exact);
    free(bytes);
}

TEST(a_link_can_be_linked_again) {
    unsigned char *bytes, *twice = NULL;
    size_t size, twice_size = 0;
    struct sg_image *image = NULL, *again = NULL;
    assert_int_equal(link_two(MAIN, GIVEN, &bytes, &size), CUDA_SUCCESS);
    assert_int_equal(sg_image_read(bytes, size, &options, NULL, &image), CUDA_SUCCESS);
    const struct sg_image *const one[] = {image};
    assert_int_equal(sg_image_link(one, 1, &options, NULL, &twice, &twice_size), CUDA_SUCCESS);
    assert_int_equal(sg_image_read(twice, twice_size, &options, NULL, &again), CUDA_SUCCESS);
    assert_int_equal(again->function_count, 2);
    assert_int_equal(again->variable_count, 4);
    /* Of two texts there is none to keep, whatever they were linked with afterwards. */
    assert_null(image->ptx);
    assert_null(again->ptx);
    sg_image_free(again);
    sg_image_free(image);
    free(twice);
    free(bytes);
}

/* What an H200 answers to each byte of the header of what it linked itself. */
TEST(a_linked_header_gets_the_hardwares_answers) {
    static const struct {
        size_t at;
        unsigned char value;
        CUresult answer;
    } bytes_of_it[] = {
        {4, 1, CUDA_ERROR_UNKNOWN},           /* for 32 bits */
        {5, 2, CUDA_ERROR_INVALID_IMAGE},     /* big-endian */
        {7, 0, CUDA_ERROR_NO_BINARY_FOR_GPU}, /* another system */
        {8, 99, CUDA_SUCCESS},                /* a later version of the system */
        {16, 1, CUDA_SUCCESS},                /* to be linked */
        {18, 62, CUDA_ERROR_INVALID_IMAGE},   /* x86-64 */
        {48, 100, CUDA_SUCCESS},              /* flags, of which the second is the architecture */
        {49, 100, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {60, 0, CUDA_ERROR_INVALID_IMAGE}, /* no sections */
    };
    unsigned char *bytes;
    size_t size;
    assert_int_equal(link_two(MAIN, GIVEN, &bytes, &size), CUDA_SUCCESS);
    for (size_t i = 0; i < sizeof bytes_of_it / sizeof bytes_of_it[0]; i++) {
        struct sg_image *image = NULL;
        unsigned char *byte = &bytes[bytes_of_it[i].at], before = *byte;
        *byte = bytes_of_it[i].value;
        assert_int_equal(sg_image_read(bytes, SIZE_MAX, &options, NULL, &image),
                         bytes_of_it[i].answer);
        assert_true((image != NULL) == (bytes_of_it[i].answer == CUDA_SUCCESS));
        if (image)
            assert_int_equal(image->to_be_linked, *byte == 1);
        sg_image_free(image);
        *byte = before;
    }
    free(bytes);
}

/* It is for the device that it was linked for, whatever its texts name, and for no other. */
TEST(a_linked_image_loads_only_on_its_device) {
    static const struct {
        const char *text;
        int made_for, read_for;
        char suffix;
        CUresult answer;
    } cases[] = {
        {OLD, 90, 90, 0, CUDA_SUCCESS},
        {OLD, 80, 80, 0, CUDA_SUCCESS},
        {OLD, 80, 90, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {OLD, 90, 80, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {OLD, -1, 90, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {ALONE, 90, 90, 'a', CUDA_SUCCESS},
        {ALONE, 90, 90, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sg_image_options given = options;
        struct sg_image *image = NULL, *linked = NULL;
        unsigned char *bytes;
        size_t size;
        given.suffix = 'a';
        assert_int_equal(sg_image_read(cases[i].text, SIZE_MAX, &given, NULL, &image),
                         CUDA_SUCCESS);
        const struct sg_image *const one[] = {image};
        given.architecture = cases[i].made_for;
        assert_int_equal(sg_image_link(one, 1, &given, NULL, &bytes, &size), CUDA_SUCCESS);
        given.architecture = cases[i].read_for;
        given.suffix = cases[i].suffix;
        assert_int_equal(sg_image_read(bytes, size, &given, NULL, &linked), cases[i].answer);
        if (linked) {
            assert_int_equal(linked->target, image->target);
            assert_string_equal(linked->ptx, cases[i].text);
        }
        sg_image_free(linked);
        sg_image_free(image);
        free(bytes);
    }
}

/* One definition is left of a name: the one that is not weak, or else the first. */
TEST(a_strong_definition_replaces_a_weak_one) {
    static const struct {
        const char *first, *second;
        unsigned char value;
    } cases[] = {
        {HEAD ".weak .global .u32 x = 1;\n", HEAD ".weak .global .u32 x = 2;\n", 1},
        {HEAD ".weak .global .u32 x = 1;\n", HEAD ".visible .global .u32 x = 2;\n", 2},
        {HEAD ".visible .global .u32 x = 1;\n", HEAD ".weak .global .u32 x = 2;\n", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sg_image *image = linked(cases[i].first, cases[i].second);
        assert_int_equal(image->variable_count, 1);
        assert_int_equal(image->variables[0].initial[0], cases[i].value);
        sg_image_free(image);
    }
}

/* All as nvlink of CUDA 13.0 takes and refuses it, machine code of the same texts given. */
TEST(inputs_must_agree_on_the_type_of_a_name) {
    static const struct {
        const char *first, *second;
        CUresult answer;
    } cases[] = {
        {".weak .entry x(.param .u32 a) { ret; }", ".weak .entry x(.param .u32 b) { ret; }",
         CUDA_SUCCESS},
        {".weak .entry x(.param .u32 a) { ret; }", ".weak .entry x(.param .u64 a) { ret; }",
         CUDA_ERROR_INVALID_SOURCE},
        {".weak .entry x(.param .u32 a) { ret; }", ".visible .entry x(.param .u64 a) { ret; }",
         CUDA_SUCCESS},
        {".weak .entry x() { ret; }", ".weak .func x() { ret; }", CUDA_ERROR_INVALID_SOURCE},
        {".weak .global .u32 x = 1;", ".weak .const .u32 x = 1;", CUDA_ERROR_INVALID_SOURCE},
        {".weak .global .attribute(.managed) .u32 x;", ".weak .global .u32 x = 1;",
         CUDA_ERROR_INVALID_SOURCE},
        {".weak .global .u32 x = 1;", ".weak .global .u32 x[2] = {1, 2};",
         CUDA_ERROR_INVALID_SOURCE},
        {".visible .global .u32 x[2];", ".weak .global .u32 x = 1;", CUDA_ERROR_INVALID_SOURCE},
        {".common .global .u32 x;", ".visible .global .u32 x[2] = {1, 2};", CUDA_SUCCESS},
        {".common .global .u32 x[2];", ".visible .global .u32 x = 1;", CUDA_ERROR_INVALID_SOURCE},
        {".visible .global .u32 x = 1;", ".common .global .u32 x[2];", CUDA_ERROR_INVALID_SOURCE},
        {".weak .global .u32 x = 1;", ".common .global .u32 x;", CUDA_SUCCESS},
        {".extern .global .u32 x[2];", ".visible .global .u32 x = 1;", CUDA_ERROR_INVALID_SOURCE},
        {".extern .global .u32 x[];", ".visible .global .u32 x = 1;", CUDA_SUCCESS},
        {".extern .global .u32 x[2];", ".common .global .u32 x;", CUDA_ERROR_INVALID_SOURCE},
        {".extern .global .u32 x;", ".visible .func x() { ret; }", CUDA_ERROR_INVALID_SOURCE},
        {".extern .global .u32 x;", ".global .u32 x = 1;", CUDA_ERROR_INVALID_SOURCE},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        char first[200], second[200];
        unsigned char *bytes;
        size_t size;
        /* Either may come first. */
        snprintf(i % 2 ? second : first, 200, HEAD "%s\n", cases[i / 2].first);
        snprintf(i % 2 ? first : second, 200, HEAD "%s\n", cases[i / 2].second);
        assert_int_equal(link_two(first, second, &bytes, &size), cases[i / 2].answer);
        assert_true((bytes == NULL) == (cases[i / 2].answer != CUDA_SUCCESS));
        assert_true(!bytes == (strchr(error, 'x') != NULL));
        free(bytes);
    }
}

/* What a template becomes in each unit that uses it: one of each is left. */
#define TEMPLATE                                                                                   \
    ".weak .global .align 4 .u32 held = 5;\n"                                                      \
    ".weak .func (.param .b32 result) twice(.param .b32 a) {\n.reg .b32 r;\n"                      \
    "ld.param.u32 r, [a];\nst.param.b32 [result], r;\nret;\n}\n"                                   \
    ".weak .entry kernel(.param .u64 p) {\n.reg .b32 r;\n{\n.param .b32 in;\n.param .b32 out;\n"   \
    "call.uni (out), twice, (in);\nld.param.b32 r, [out];\n}\nst.global.u32 [held], r;\nret;\n}\n"

TEST(a_template_in_two_units_links_to_one_function) {
    struct sg_image *image = linked(HEAD TEMPLATE ".visible .entry a() { ret; }\n",
                                    HEAD TEMPLATE ".visible .entry b() { ret; }\n");
    assert_int_equal(image->function_count, 3);
    assert_non_null(sg_image_find_function(image, "kernel"));
    assert_int_equal(image->variable_count, 1);
    sg_image_free(image);
}

TEST(a_strong_entry_replaces_a_weak_entry) {
    static const char *const weak = HEAD ".weak .entry k(.param .u32 a) { ret; }\n";
    static const char *const strong = HEAD ".visible .entry k(.param .u64 a) { ret; }\n";
    for (unsigned i = 0; i < 2; i++) {
        unsigned char *bytes;
        size_t size;
        struct sg_image *image = NULL;
        assert_int_equal(link_two(i ? strong : weak, i ? weak : strong, &bytes, &size),
                         CUDA_SUCCESS);
        assert_int_equal(sg_image_read(bytes, size, &options, NULL, &image), CUDA_SUCCESS);
        assert_int_equal(image->function_count, 1);
        assert_int_equal(image->functions[0].parameter_bytes, 8);
        sg_image_free(image);
        free(bytes);
    }
}

TEST(common_variables_take_the_largest_size) {
    struct sg_image *image =
        linked(HEAD ".common .global .u32 x[4];\n", HEAD ".common .global .u32 x;\n");
    assert_int_equal(image->variable_count, 1);
    assert_int_equal(image->variables[0].size, 16);
    sg_image_free(image);
}

/* Which value the variable has that the pointer means. */
static unsigned pointed(const struct sg_image *image, const char *name) {
    const struct sg_image_variable *pointer = sg_image_find_variable(image, name);
    assert_non_null(pointer);
    assert_int_equal(pointer->relocation_count, 1);
    assert_in_range(pointer->relocations[0].target, 1, image->variable_count);
    return image->variables[pointer->relocations[0].target - 1].initial[0];
}

/* A name that is not visible means its own input's variable there, whatever others have. */
TEST(hidden_names_refer_to_their_own_input) {
#define POINTER(name) ".visible .global .align 8 .u64 " name " = generic(x);\n"
    static const struct {
        const char *first, *second;
        unsigned values[2];
        size_t variables;
    } cases[] = {
        {HEAD ".global .u32 x = 1;\n", HEAD ".global .u32 x = 2;\n", {1, 2}, 4},
        {HEAD ".global .u32 x = 1;\n", HEAD ".visible .global .u32 x = 2;\n", {1, 2}, 4},
        {HEAD ".visible .global .u32 x = 1;\n", HEAD ".global .u32 x = 2;\n", {1, 2}, 4},
        {HEAD ".weak .global .u32 x = 1;\n", HEAD ".weak .global .u32 x = 2;\n", {1, 1}, 3},
        {HEAD ".weak .global .u32 x = 1;\n", HEAD ".visible .global .u32 x = 2;\n", {2, 2}, 3},
        {HEAD ".extern .global .u32 x;\n", HEAD ".visible .global .u32 x = 2;\n", {2, 2}, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char first[200], second[200];
        snprintf(first, sizeof first, "%s" POINTER("p"), cases[i].first);
        snprintf(second, sizeof second, "%s" POINTER("q"), cases[i].second);
        struct sg_image *image = linked(first, second);
        assert_int_equal(image->variable_count, cases[i].variables);
        assert_int_equal(pointed(image, "p"), cases[i].values[0]);
        assert_int_equal(pointed(image, "q"), cases[i].values[1]);
        sg_image_free(image);
    }
}

/* Names that meet are found before all inputs are there; what is missing is not. */
TEST(name_conflicts_are_found_before_all_inputs_are_added) {
    static const struct {
        const char *first, *second;
        CUresult answer;
    } cases[] = {
        {MAIN, HEAD, CUDA_SUCCESS},
        {GIVEN, GIVEN, CUDA_ERROR_INVALID_SOURCE},
        {HEAD ".visible .func f() { ret; }\n", HEAD ".visible .func f() { ret; }\n",
         CUDA_ERROR_INVALID_SOURCE},
        {HEAD ".weak .global .u32 x;\n", HEAD ".visible .global .u32 x;\n", CUDA_SUCCESS},
        {HEAD ".global .u32 x;\n", HEAD ".visible .global .u32 x;\n", CUDA_SUCCESS},
        {HEAD ".weak .func f() { ret; }\n", HEAD ".weak .func f() { ret; }\n", CUDA_SUCCESS},
        {HEAD ".weak .func f() { ret; }\n", HEAD ".visible .func f() { ret; }\n", CUDA_SUCCESS},
        {HEAD ".visible .func f() { ret; }\n", HEAD ".weak .func f() { ret; }\n", CUDA_SUCCESS},
        {HEAD ".func f() { ret; }\n", HEAD ".visible .func f() { ret; }\n", CUDA_SUCCESS},
        {HEAD ".entry k() { ret; }\n", HEAD ".visible .entry k() { ret; }\n", CUDA_SUCCESS},
        {HEAD ".visible .entry k() { ret; }\n", HEAD ".visible .entry k() { ret; }\n",
         CUDA_ERROR_INVALID_SOURCE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sg_image *images[] = {part(cases[i].first), part(cases[i].second)};
        assert_int_equal(sg_image_meet((const struct sg_image *const *)images, 2, &options, NULL),
                         cases[i].answer);
        sg_image_free(images[0]);
        sg_image_free(images[1]);
    }
}

/* Functions that call each other, many times, are looked through once each. */
TEST(functions_that_call_each_other_are_linked) {
    static const char start[] =
        HEAD ".extern .func given();\n.func b();\n.func a() { call b; ret; }\n"
             ".func b() { call a; call given; ret; }\n.visible .entry k() {\n";
    enum { CALLS = 1000 };
    char *text = malloc(sizeof start + CALLS * sizeof "call a; call b;\n" + sizeof "ret; }\n");
    assert_non_null(text);
    size_t length = (size_t)sprintf(text, "%s", start);
    for (unsigned i = 0; i < CALLS; i++)
        length += (size_t)sprintf(text + length, "call a; call b;\n");
    strcpy(text + length, "ret; }\n");
    unsigned char *bytes;
    size_t size;
    assert_int_equal(link_two(text, HEAD "\n", &bytes, &size), CUDA_ERROR_INVALID_SOURCE);
    assert_non_null(strstr(error, "given"));
    assert_int_equal(link_two(text, HEAD ".visible .func given() { ret; }\n", &bytes, &size),
                     CUDA_SUCCESS);
    free(bytes);
    free(text);
}
