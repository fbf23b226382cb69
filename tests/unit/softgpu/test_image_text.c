/* Machine code that holds its PTX, as the auditor of gpumem run hands it out. */
#include "softgpu/audit/audit.h"
#include "softgpu/binary/read.h"
#include "softgpu/image/image.h"

#include "images.h"
#include "test.h"

static const struct sg_image_options run = {.architecture = 90, .suffix = 'a', .newest_ptx = 90};

static const char text[] = ".version 9.1\n.target sm_90\n.address_size 64\n"
                           ".visible .entry of_text(.param .u64 p) { ret; }\n";

static struct audit_bytes bytes_of(const void *data, size_t size) {
    return (struct audit_bytes){data, size};
}

/* Code with the text in it, read as the options say. */
static struct sg_image *read_with(const unsigned char *code, size_t code_size, const char *content,
                                  struct sg_image_options options) {
    struct sg_image *image = NULL;
    size_t size = 0;
    unsigned char *made = audit_cubin_with(bytes_of(code, code_size), AUDIT_TEXT,
                                           bytes_of(content, strlen(content)), &size);
    assert_non_null(made);
    assert_int_equal(sg_image_read(made, size, &options, NULL, &image), CUDA_SUCCESS);
    free(made);
    return image;
}

TEST(kernels_of_the_text_take_the_place_of_the_codes) {
    const struct {
        const char *content;
        bool prefer_machine, of_text;
        const char *refused; /* part of why */
    } rows[] = {
        {text, false, true, NULL}, /* whatever its version: hardware takes the code */
        {text, true, false, NULL},
        {"", false, false, NULL},
        {".version 8.0\n.target sm_90\n.address_size 64\nnonsense\n", false, false, "nonsense"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sg_image_options options = run;
        options.prefer_machine = rows[i].prefer_machine;
        struct sg_image *image =
            read_with(image_small_cubin, sizeof image_small_cubin, rows[i].content, options);
        assert_int_equal(image->source, rows[i].of_text ? SG_IMAGE_PTX : SG_IMAGE_MACHINE);
        assert_int_equal(image->function_count, 1);
        assert_int_equal(sg_image_find_function(image, "of_text") != NULL, rows[i].of_text);
        assert_int_equal(image->refused_text != NULL, rows[i].refused != NULL);
        if (rows[i].refused)
            assert_non_null(strstr(image->refused_text, rows[i].refused));
        assert_false(image->to_be_linked);
        sg_image_free(image);
    }
}

TEST(a_text_in_code_to_be_linked_is_to_be_linked) {
    struct sg_image *image = read_with(image_part_cubin, sizeof image_part_cubin, text, run);
    assert_true(image->to_be_linked && image->machine);
    assert_non_null(sg_image_find_function(image, "of_text"));
    sg_image_free(image);
}

TEST(code_for_another_device_is_refused_whatever_its_text) {
    struct sg_image *image = NULL;
    size_t size = 0;
    unsigned char *made = audit_cubin_with(bytes_of(image_older_cubin, sizeof image_older_cubin),
                                           AUDIT_TEXT, bytes_of(text, sizeof text), &size);
    assert_non_null(made);
    assert_int_equal(sg_image_read(made, size, &run, NULL, &image), CUDA_ERROR_NO_BINARY_FOR_GPU);
    free(made);
}

TEST(the_text_is_found_and_taken_out_again) {
    struct audit_bytes whole = bytes_of(image_kernels_cubin, sizeof image_kernels_cubin), found;
    size_t size = 0;
    assert_int_equal(audit_cubin_type(whole), ET_EXEC);
    assert_int_equal(audit_cubin_type(bytes_of(image_part_cubin, sizeof image_part_cubin)), ET_REL);
    assert_int_equal(audit_cubin_type(bytes_of(text, sizeof text)), ET_NONE);
    assert_false(audit_cubin_section(whole, AUDIT_TEXT, &found));
    unsigned char *made = audit_cubin_with(whole, AUDIT_TEXT, bytes_of(text, sizeof text), &size);
    assert_non_null(made);
    assert_true(audit_cubin_section(bytes_of(made, size), AUDIT_TEXT, &found));
    assert_int_equal(found.size, sizeof text);
    assert_memory_equal(found.data, text, sizeof text);
    audit_cubin_without(made, size, AUDIT_LINKED);
    assert_true(audit_cubin_section(bytes_of(made, size), AUDIT_TEXT, &found));
    audit_cubin_without(made, size, AUDIT_TEXT);
    assert_false(audit_cubin_section(bytes_of(made, size), AUDIT_TEXT, &found));
    assert_true(audit_cubin_section(bytes_of(made, size), ".symtab", &found));
    free(made);
}

TEST(code_in_a_fatbin_is_found_unless_it_is_compressed) {
    struct audit_bytes plain = bytes_of(image_plain_fatbin, sizeof image_plain_fatbin), cubin;
    size_t at = 0;
    assert_true(audit_fatbin_cubin(plain, 90, &at, &cubin));
    assert_int_equal(audit_cubin_type(cubin), ET_EXEC);
    assert_ptr_equal(cubin.data, plain.data + at);
    assert_false(audit_fatbin_cubin(plain, 80, &at, &cubin));
    assert_false(
        audit_fatbin_cubin(bytes_of(image_small_cubin, sizeof image_small_cubin), 90, &at, &cubin));
    unsigned char compressed[sizeof image_plain_fatbin];
    memcpy(compressed, image_plain_fatbin, sizeof compressed);
    compressed[16 + 41] |= 0x80; /* of the first entry: zstd */
    assert_false(audit_fatbin_cubin(bytes_of(compressed, sizeof compressed), 90, &at, &cubin));
}

/* Each copy is of its own size: AddressSanitizer sees a byte read beyond it. */
TEST(damaged_code_is_read_within_its_bytes) {
    const struct audit_bytes originals[] = {
        bytes_of(image_small_cubin, sizeof image_small_cubin),
        bytes_of(image_plain_fatbin, sizeof image_plain_fatbin)};
    for (size_t i = 0; i < 2 * 400; i++) {
        const struct audit_bytes *of = &originals[i % 2];
        struct audit_bytes found;
        size_t at, size = i / 2 < 200 ? of->size * (i / 2) / 200 : of->size;
        unsigned char *copy = malloc(size ? size : 1);
        assert_non_null(copy);
        memcpy(copy, of->data, size);
        if (size == of->size)
            memset(copy + i / 2 - 200, 0xff, 4);
        audit_fatbin_cubin(bytes_of(copy, size), 90, &at, &found);
        if (audit_cubin_section(bytes_of(copy, size), ".symtab", &found))
            assert_true(found.data + found.size <= copy + size);
        audit_cubin_without(copy, size, ".symtab");
        free(copy);
    }
}
