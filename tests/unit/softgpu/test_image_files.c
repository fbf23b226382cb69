/* Images that real tools made (tests/fixtures/images): what is read is what readelf shows of them.
 */
#include "softgpu/binary/read.h"
#include "softgpu/image/image.h"
#include "softgpu/link/link.h"

#include "test.h"

static char error[1000];

static unsigned char *file(const char *name, size_t *size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/fixtures/images/%s", GPUMEM_SOURCE_DIR, name);
    FILE *from = fopen(path, "rb");
    assert_non_null(from);
    unsigned char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, from);
    fclose(from);
    return bytes;
}

static CUresult read_as(const char *name, struct sg_image_options options,
                        struct sg_image **image) {
    struct sg_image_log log = {.error = error, .error_size = sizeof error};
    size_t size;
    unsigned char *bytes = file(name, &size);
    *image = NULL;
    error[0] = '\0';
    CUresult result = sg_image_read(bytes, size, &options, &log, image);
    free(bytes);
    return result;
}

static const struct sg_image_options h200 = {
    .architecture = 90, .suffix = 'a', .newest_ptx = 90, .prefer_machine = true};

/* Only the answer is wanted. */
static CUresult answer_of(const void *bytes, size_t size, const struct sg_image_options *options) {
    struct sg_image *image = NULL;
    CUresult result = sg_image_read(bytes, size, options, NULL, &image);
    sg_image_free(image);
    return result;
}

static struct sg_image *read_for(const char *name, int architecture) {
    struct sg_image_options options = h200;
    struct sg_image *image;
    options.architecture = architecture;
    assert_int_equal(read_as(name, options, &image), CUDA_SUCCESS);
    return image;
}

static const struct sg_image_function *function(const struct sg_image *image, const char *name) {
    const struct sg_image_function *found = sg_image_find_function(image, name);
    assert_non_null(found);
    return found;
}

static const struct sg_image_variable *variable(const struct sg_image *image, const char *name) {
    const struct sg_image_variable *found = sg_image_find_variable(image, name);
    assert_non_null(found);
    return found;
}

/* The last parameter is aligned to 64 bytes of the constant bank, which begins elsewhere on sm_80.
 */
static void check_layout(const struct sg_image *image, unsigned last) {
    const struct sg_image_function *layout = function(image, "layout");
    const struct sg_parameter wanted[] = {{0, 1}, {8, 8}, {16, 20}, {36, 4}, {last, 3}};
    assert_int_equal(layout->parameter_count, 5);
    assert_int_equal(layout->parameter_bytes, last + 3);
    for (unsigned i = 0; i < 5; i++) {
        MEMBERS(layout->parameters[i], (offset, wanted[i].offset), (size, wanted[i].size));
    }
}

static void check_functions(const struct sg_image *image) {
    const struct sg_image_function *limits = function(image, "limits");
    const struct sg_image_function *required = function(image, "required");
    assert_int_equal(image->function_count, 3);
    assert_int_equal(limits->max_threads, 256);
    assert_int_equal(limits->static_shared, 128);
    assert_int_equal(limits->local, 40);
    assert_int_equal(limits->constant, 12);
    assert_int_equal(limits->parameter_count, 0);
    assert_int_equal(required->max_threads, 0);
    assert_int_equal(required->required_threads[0], 32);
    assert_int_equal(required->required_threads[1], 2);
    assert_int_equal(required->required_threads[2], 1);
    assert_int_equal(required->static_shared, 0);
}

static void check_relocation(const struct sg_image_variable *of, size_t number, uint64_t offset,
                             const char *symbol, int64_t addend) {
    assert_true(number < of->relocation_count);
    const struct sg_relocation *one = &of->relocations[number];
    assert_int_equal(one->offset, offset);
    assert_int_equal(one->size, 8);
    assert_string_equal(one->symbol, symbol);
    assert_int_equal(one->addend, addend);
}

static void check_bytes(const struct sg_image *image, const char *name, const void *bytes,
                        size_t size) {
    const struct sg_image_variable *of = variable(image, name);
    assert_true(of->initial_size <= size);
    assert_memory_equal(of->initial, bytes, of->initial_size);
    for (uint64_t i = of->initial_size; i < size; i++)
        assert_int_equal(((const unsigned char *)bytes)[i], 0);
    assert_int_equal(of->size, size);
}

static void check_variables(const struct sg_image *image) {
    static const unsigned char hidden[8] = {0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, table[12] = {1, 2, 3};
    assert_int_equal(image->variable_count, 7);
    check_bytes(image, "counter", "\5\0\0\0", 4);
    check_bytes(image, "hidden", hidden, 8);
    check_bytes(image, "table", table, 12);
    check_bytes(image, "managed", "\xfd\xff\xff\xff", 4);
    assert_true(variable(image, "counter")->visible);
    assert_false(variable(image, "hidden")->visible);
    assert_true(variable(image, "table")->constant);
    assert_false(variable(image, "counter")->constant);
    assert_true(variable(image, "managed")->managed);
    assert_false(variable(image, "counter")->managed);
    assert_int_equal(variable(image, "zeros")->size, 48);
    assert_int_equal(variable(image, "zeros")->initial_size, 0);
    assert_int_equal(variable(image, "zeros")->alignment, 16);
    const struct sg_image_variable *pointers = variable(image, "pointers");
    assert_int_equal(pointers->relocation_count, 3);
    check_relocation(pointers, 0, 0, "counter", 0);
    check_relocation(pointers, 1, 8, "table", 0);
    check_relocation(pointers, 2, 16, "counter", 4);
    /* Eight single bytes make one address, which no alignment helps. */
    assert_int_equal(variable(image, "bytewise")->relocation_count, 1);
    check_relocation(variable(image, "bytewise"), 0, 1, "counter", 0);
    assert_int_equal(variable(image, "bytewise")->initial[0], 7);
    assert_int_equal(image->texture_count, 1);
    assert_string_equal(image->textures[0], "picture");
    assert_int_equal(image->surface_count, 1);
    assert_string_equal(image->surfaces[0], "canvas");
    assert_int_equal(image->undefined_count, 0);
}

TEST(ptx_files_are_read_with_their_parameter_layout) {
    struct sg_image *image = read_for("sample.ptx", 90);
    assert_int_equal(image->source, SG_IMAGE_PTX);
    assert_int_equal(image->ptx_version, 84);
    assert_int_equal(image->target, 80);
    assert_non_null(strstr(image->ptx, ".visible .entry layout("));
    check_layout(image, 48);
    check_functions(image);
    check_variables(image);
    assert_int_equal(function(image, "limits")->registers, 0);
    sg_image_free(image);
    image = read_for("sample.ptx", 80);
    check_layout(image, 96);
    sg_image_free(image);
}

static void machine_code(const char *name, int architecture, unsigned last) {
    struct sg_image *image = read_for(name, architecture);
    assert_int_equal(image->source, SG_IMAGE_MACHINE);
    assert_int_equal(image->target, architecture);
    assert_int_equal(image->target_suffix, 0);
    assert_memory_equal(image->machine, "\177ELF", 4);
    check_layout(image, last);
    check_functions(image);
    check_variables(image);
    assert_int_equal(function(image, "limits")->registers, 10);
    assert_int_equal(function(image, "required")->registers, 8);
    assert_int_equal(function(image, "layout")->registers, 4);
    sg_image_free(image);
}

TEST(cubins_are_read_as_readelf_shows_them) {
    machine_code("sample-80.cubin", 80, 96);
    machine_code("sample-90.cubin", 90, 48);
    machine_code("sample-90-old.cubin", 90, 48);
}

static void check_clusters(const struct sg_image *image) {
    const struct sg_image_function *sized = function(image, "sized");
    const struct sg_image_function *explicit = function(image, "explicit");
    const struct sg_image_function *wide = function(image, "wide");
    assert_int_equal(sized->cluster[0], 2);
    assert_int_equal(sized->cluster[1], 2);
    assert_int_equal(sized->cluster[2], 1);
    assert_false(sized->explicit_cluster);
    assert_int_equal(explicit->cluster[0], 0);
    assert_true(explicit->explicit_cluster);
    assert_int_equal(explicit->max_cluster_rank, 8);
    assert_int_equal(wide->parameters[0].size, 4400);
    assert_int_equal(wide->parameters[1].offset, 4400);
    assert_int_equal(wide->parameter_bytes, 4404);
    assert_int_equal(wide->static_shared, 64);
}

TEST(cluster_shapes_are_read) {
    static const char *const names[] = {"clusters.ptx", "clusters-90.cubin", "clusters-90a.cubin",
                                        "clusters-90a-old.cubin"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct sg_image *image = read_for(names[i], 90);
        assert_int_equal(image->target_suffix, i > 1 ? 'a' : 0);
        check_clusters(image);
        sg_image_free(image);
    }
}

/* Code for one architecture alone needs exactly that device. */
TEST(code_for_other_devices_is_refused) {
    static const struct {
        const char *name;
        int device;
        char suffix;
        CUresult result;
    } cases[] = {
        {"sample-90.cubin", 80, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"sample-90.cubin", 100, 'a', CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"sample-80.cubin", 90, 'a', CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"sample-80.cubin", 86, 0, CUDA_SUCCESS},
        {"clusters-90a.cubin", 90, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"clusters-90a-old.cubin", 90, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {"clusters.ptx", 80, 0, CUDA_ERROR_INVALID_PTX},
        {"sample.ptx", 120, 'a', CUDA_SUCCESS},
        {"zstd.fatbin", 75, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sg_image_options options = h200;
        struct sg_image *image;
        options.architecture = cases[i].device;
        options.suffix = cases[i].suffix;
        assert_int_equal(read_as(cases[i].name, options, &image), cases[i].result);
        assert_true((image != NULL) == (cases[i].result == CUDA_SUCCESS));
        assert_true((error[0] != '\0') == (cases[i].result != CUDA_SUCCESS));
        sg_image_free(image);
    }
}

/* Each fatbin holds cubins and the text of sample.ptx: which of them is taken for which device. */
TEST(a_fatbin_yields_the_entry_for_the_device) {
    static const struct {
        const char *name;
        int device;
        bool prefer_machine;
        enum sg_image_source source;
        int target;
    } cases[] = {
        {"plain.fatbin", 90, true, SG_IMAGE_MACHINE, 90},
        {"plain.fatbin", 80, true, SG_IMAGE_MACHINE, 80},
        {"plain.fatbin", 86, true, SG_IMAGE_MACHINE, 80},
        {"plain.fatbin", 90, false, SG_IMAGE_PTX, 80},
        {"plain.fatbin", 100, true, SG_IMAGE_PTX, 80},
        {"zstd.fatbin", 90, true, SG_IMAGE_MACHINE, 90},
        {"zstd.fatbin", 90, false, SG_IMAGE_PTX, 80},
        {"zstd.fatbin", 89, true, SG_IMAGE_PTX, 80},
        {"lz4.fatbin", 90, true, SG_IMAGE_MACHINE, 90},
        {"lz4.fatbin", 90, false, SG_IMAGE_PTX, 80},
        {"text.fatbin", 80, true, SG_IMAGE_MACHINE, 80},
        {"text.fatbin", 90, true, SG_IMAGE_PTX, 80},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sg_image_options options = h200;
        struct sg_image *image;
        options.architecture = cases[i].device;
        options.prefer_machine = cases[i].prefer_machine;
        assert_int_equal(read_as(cases[i].name, options, &image), CUDA_SUCCESS);
        assert_int_equal(image->source, cases[i].source);
        assert_int_equal(image->target, cases[i].target);
        if (image->target == 90)
            check_clusters(image);
        else
            check_variables(image);
        sg_image_free(image);
    }
}

/* ---- fatbins made here ----------------------------------------------------------------------- */

#define TEXT_OF(entries) ".version 8.0\n.target sm_80\n.address_size 64\n" entries

struct made {
    unsigned char bytes[1024];
    size_t size;
};

static void put_number(struct made *made, size_t at, uint64_t number, unsigned width) {
    for (unsigned i = 0; i < width; i++)
        made->bytes[at + i] = (unsigned char)(number >> (8 * i));
}

/* An entry of text behind those that are there. */
static void add_text(struct made *made, const char *text, unsigned architecture, unsigned flags) {
    size_t at = made->size ? made->size : 16, size = strlen(text) + 1;
    put_number(made, 0, 0xba55ed50, 4);
    put_number(made, 4, 1, 2);
    put_number(made, 6, 16, 2);
    put_number(made, at, 1, 2);
    put_number(made, at + 4, 64, 4);
    put_number(made, at + 8, size, 8);
    put_number(made, at + 16, size, 4);
    put_number(made, at + 28, architecture, 4);
    put_number(made, at + 40, flags, 4);
    put_number(made, at + 56, size, 8);
    memcpy(made->bytes + at + 64, text, size);
    made->size = at + 64 + size;
    put_number(made, 8, made->size - 16, 8);
}

static CUresult count_entries(const struct made *made, size_t *count) {
    const struct sg_image_options options = {
        .architecture = 90, .suffix = 'a', .newest_ptx = 90, .prefer_machine = true};
    struct sg_image_log log = {0};
    struct sg_image *image;
    CUresult result = sg_image_read(made->bytes, made->size, &options, &log, &image);
    if (result != CUDA_SUCCESS)
        return result;
    *count = image->function_count;
    sg_image_free(image);
    return result;
}

/* As an H200 chose: the last of those for the device itself, the first of older ones. */
TEST(equal_fatbin_entries_are_chosen_as_on_hardware) {
    for (unsigned architecture = 80; architecture <= 90; architecture += 10) {
        struct made made = {.size = 0};
        size_t count = 0;
        add_text(&made, TEXT_OF(".entry a() { ret; }\n"), architecture, 0x11);
        add_text(&made, TEXT_OF(".entry a() { ret; }\n.entry b() { ret; }\n"), architecture, 0x11);
        assert_int_equal(count_entries(&made, &count), CUDA_SUCCESS);
        assert_int_equal(count, architecture == 90 ? 2 : 1);
    }
}

/* Text without the mark for 64 bits is taken; what is no zstd is damage of an unknown kind. */
TEST(fatbin_entries_without_the_64_bit_flag_are_read) {
    struct made made = {.size = 0}, broken = {.size = 0};
    size_t count = 0;
    add_text(&made, TEXT_OF(".entry a() { ret; }\n"), 80, 0);
    assert_int_equal(count_entries(&made, &count), CUDA_SUCCESS);
    assert_int_equal(count, 1);
    add_text(&broken, TEXT_OF(".entry a() { ret; }\n"), 80, 0x8011);
    assert_int_equal(count_entries(&broken, &count), CUDA_ERROR_UNKNOWN);
}

/* In a program's memory, where nobody says how long it is. */
TEST(an_image_of_unknown_size_is_read) {
    struct {
        uint32_t magic, version;
        const void *data;
        void *more;
    } wrapper = {0x466243b1, 1, NULL, NULL};
    struct sg_image_options options = h200;
    struct sg_image *image = NULL;
    size_t size;
    static const char *const names[] = {"sample-90.cubin", "plain.fatbin", "zstd.fatbin"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsigned char *bytes = file(names[i], &size);
        /* No byte more than the file has: reading on would be seen by a sanitizer. */
        bytes = realloc(bytes, size);
        assert_int_equal(sg_image_read(bytes, SIZE_MAX, &options, NULL, &image), CUDA_SUCCESS);
        sg_image_free(image);
        wrapper.data = bytes;
        options.wrapped = i > 0;
        assert_int_equal(sg_image_read(&wrapper, SIZE_MAX, &options, NULL, &image),
                         i == 0 ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS);
        if (i > 0)
            sg_image_free(image);
        options.wrapped = false;
        free(bytes);
    }
}

/* Cut anywhere, and with any byte changed, a file is refused or read; a sanitizer watches. */
TEST(damaged_files_are_refused_or_read_within_bounds) {
    static const char *const names[] = {"part-90.cubin", "zstd.fatbin", "lz4.fatbin"};
    struct sg_image_options options = h200;
    options.relocatable = true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t size;
        unsigned char *bytes = file(names[i], &size);
        for (size_t at = 0; at < size; at += 3) {
            bytes[at] ^= 0xff;
            (void)answer_of(bytes, size, &options);
            bytes[at] ^= 0xff;
            unsigned char *part = malloc(at + 1);
            memcpy(part, bytes, at);
            assert_int_not_equal(answer_of(part, at, &options), CUDA_SUCCESS);
            free(part);
        }
        free(bytes);
    }
}

struct change {
    size_t at;
    unsigned char value;
    CUresult answer;
};

static void check_changes(const char *name, const struct change *changes, size_t count) {
    size_t size;
    unsigned char *bytes = file(name, &size);
    for (size_t i = 0; i < count; i++) {
        struct sg_image *image = NULL;
        unsigned char *byte = &bytes[changes[i].at], before = *byte;
        *byte = changes[i].value;
        assert_int_equal(sg_image_read(bytes, size, &h200, NULL, &image), changes[i].answer);
        sg_image_free(image);
        image = NULL;
        assert_int_equal(sg_image_read(bytes, SIZE_MAX, &h200, NULL, &image), changes[i].answer);
        /* No more than the type says that it is to be linked, and what is has no segments. */
        assert_false(image && image->to_be_linked);
        sg_image_free(image);
        *byte = before;
    }
    free(bytes);
}

/* As an H200 answers to these bytes of what CUDA 13 makes. */
TEST(modified_cubin_headers_get_the_hardwares_answer) {
    static const struct change changes[] = {
        {4, 0, CUDA_ERROR_UNKNOWN},
        {4, 1, CUDA_ERROR_UNKNOWN},
        {5, 0, CUDA_ERROR_INVALID_IMAGE},
        {5, 2, CUDA_ERROR_INVALID_IMAGE},
        {6, 0, CUDA_SUCCESS},
        {7, 0, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {7, 0x33, CUDA_ERROR_NO_BINARY_FOR_GPU}, /* then the flags mean sm_4 */
        {8, 0, CUDA_SUCCESS},
        {8, 7, CUDA_SUCCESS},
        {8, 9, CUDA_SUCCESS},
        {8, 99, CUDA_SUCCESS},
        {16, 0, CUDA_SUCCESS},
        {16, 1, CUDA_SUCCESS},
        {16, 3, CUDA_SUCCESS},
        {18, 62, CUDA_ERROR_INVALID_IMAGE},
        {48, 0, CUDA_SUCCESS},
        {48, 100, CUDA_SUCCESS},
        {49, 0, CUDA_ERROR_UNKNOWN},
        {49, 80, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {49, 100, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {50, 1, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {50, 255, CUDA_ERROR_UNKNOWN},
        {51, 0, CUDA_SUCCESS},
        {51, 255, CUDA_SUCCESS},
        {56, 0, CUDA_SUCCESS},
        {60, 0, CUDA_ERROR_INVALID_IMAGE},
    };
    check_changes("sample-90.cubin", changes, sizeof changes / sizeof changes[0]);
}

/* What CUDA 12 makes is told from that by the system alone, whatever version of the ABI it names;
 * the third byte of its flags is what its text was written for. */
TEST(modified_headers_of_old_cubins_get_the_hardwares_answer) {
    static const struct change changes[] = {
        {8, 0, CUDA_SUCCESS},
        {8, 8, CUDA_SUCCESS},
        {48, 80, CUDA_ERROR_NO_BINARY_FOR_GPU},
        {50, 50, CUDA_SUCCESS},
    };
    check_changes("sample-90-old.cubin", changes, sizeof changes / sizeof changes[0]);
}

/* ptxas of CUDA 12.9 marks code for one architecture alone in the first byte of the flags, and has
 * no attribute of .nv.compat that says so. */
TEST(an_elf_flag_binds_code_to_one_architecture) {
    struct sg_image_options options = h200;
    size_t size;
    unsigned char *bytes = file("sample-90.cubin", &size);
    for (int marked = 0; marked < 2; marked++) {
        struct sg_image *image = NULL;
        bytes[48] = marked ? 0x0a : 0x02;
        options.suffix = 'a';
        assert_int_equal(sg_image_read(bytes, size, &options, NULL, &image), CUDA_SUCCESS);
        assert_int_equal(image->target_suffix, marked ? 'a' : 0);
        sg_image_free(image);
        options.suffix = 0;
        assert_int_equal(answer_of(bytes, size, &options),
                         marked ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS);
    }
    free(bytes);
}

/* Zeros in place of the headers from one section on: without that of code nothing loads, and what
 * lies behind the section headers is not missed. */
TEST(a_cubin_without_its_code_section_header_is_refused) {
    size_t size, code = 0;
    unsigned char *whole = file("clusters-90.cubin", &size), *bytes = malloc(size);
    assert_non_null(bytes);
    uint64_t table;
    uint16_t count;
    memcpy(&table, whole + 40, sizeof table);
    memcpy(&count, whole + 60, sizeof count);
    for (size_t i = 0; i < count; i++)
        if (whole[table + i * 64 + 8] & 4) /* SHF_EXECINSTR */
            code = i;
    assert_true(code > 0);
    for (size_t from = code; from <= code + 1; from++) {
        memcpy(bytes, whole, size);
        memset(bytes + table + from * 64, 0, size - (table + from * 64));
        assert_int_equal(answer_of(bytes, size, &h200),
                         from > code ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE);
    }
    free(bytes);
    free(whole);
}

/* Of a host's program the header alone is looked at, when nobody says how long it is. */
TEST(elf_files_for_other_machines_are_refused_by_their_header) {
    static const struct {
        unsigned char identity[20];
        CUresult answer;
    } cases[] = {
        {{0x7f, 'E', 'L', 'F', [19] = 0}, CUDA_ERROR_INVALID_IMAGE},
        {{0x7f, 'E', 'L', 'F', 0, 1, 1, [16] = 2, [18] = 190}, CUDA_ERROR_UNKNOWN},
        {{0x7f, 'E', 'L', 'F', 1, 1, 1, [16] = 2, [18] = 190}, CUDA_ERROR_UNKNOWN},
        {{0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = 3, [18] = 62}, CUDA_ERROR_INVALID_IMAGE},
        {{0x7f, 'E', 'L', 'F', 2, 2, 1, [16] = 0, 2, 0, 22}, CUDA_ERROR_INVALID_IMAGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sg_image *image = NULL;
        unsigned char *header = malloc(64);
        assert_non_null(header);
        /* Section headers would lie far behind these bytes. */
        memset(header, 0x11, 64);
        memset(header + 32, 0, 16);
        header[42] = 1;
        memcpy(header, cases[i].identity, sizeof cases[i].identity);
        assert_int_equal(sg_image_read(header, SIZE_MAX, &h200, NULL, &image), cases[i].answer);
        assert_null(image);
        free(header);
    }
}

TEST(relocatable_inputs_are_read_only_for_a_link) {
    static const char *const names[] = {"part.ptx", "part-90.cubin"};
    struct sg_image_options options = h200;
    struct sg_image *image;
    for (size_t i = 0; i < 2; i++) {
        options.relocatable = false;
        CUresult alone = read_as(names[i], options, &image);
        assert_int_equal(alone, i == 0 ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE);
        options.relocatable = true;
        assert_int_equal(read_as(names[i], options, &image), CUDA_SUCCESS);
        assert_int_equal(image->to_be_linked, i == 1);
        assert_int_equal(image->undefined_count, 1);
        assert_string_equal(image->undefined[0], "given");
        assert_int_equal(image->exported_count, 1);
        assert_string_equal(image->exported[0], "offered");
        assert_true(variable(image, "outside")->external);
        check_relocation(variable(image, "elsewhere"), 0, 0, "outside", 0);
        sg_image_free(image);
    }
}

/* The driver's side of the device runtime, which NVIDIA's library of it calls. */
TEST(functions_of_the_driver_need_no_definition) {
    const struct {
        const char *name;
        size_t undefined;
    } rows[] = {{"outside", 1}, {"cnpNext", 0}, {"cnpnext", 1}};
    struct sg_image_options options = h200;
    options.relocatable = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sg_image *image = NULL;
        size_t size;
        unsigned char *bytes = file("parts.cubin", &size);
        for (size_t at = 0; at + 8 <= size; at++)
            if (memcmp(bytes + at, "outside", 8) == 0)
                memcpy(bytes + at, rows[i].name, 8);
        assert_int_equal(sg_image_read(bytes, size, &options, NULL, &image), CUDA_SUCCESS);
        assert_int_equal(image->undefined_count, rows[i].undefined);
        sg_image_free(image);
        free(bytes);
    }
}

/* ptxas writes such in code to be linked: .nv_debug.shared is as large as all shared memory. */
TEST(sections_of_memory_have_no_bytes_in_the_file) {
    const struct {
        uint32_t type;
        CUresult result;
    } rows[] = {{0x70000007, CUDA_SUCCESS},
                {0x70000009, CUDA_SUCCESS},
                {0x7000000a, CUDA_SUCCESS},
                {0x70000008, CUDA_ERROR_INVALID_IMAGE}};
    struct sg_image_options options = h200;
    options.relocatable = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint64_t large = 1 << 24;
        uint64_t table, extent;
        size_t size;
        unsigned char *bytes = file("parts.cubin", &size);
        memcpy(&table, bytes + 40, sizeof table);
        memcpy(bytes + table + 11 * 64 + 4, &rows[i].type, 4); /* .nv.prototype */
        memcpy(bytes + table + 11 * 64 + 32, &large, 8);
        assert_int_equal(answer_of(bytes, size, &options), rows[i].result);
        assert_true(sg_cubin_extent(bytes, SIZE_MAX, &extent));
        assert_int_equal(extent < large, rows[i].result == CUDA_SUCCESS);
        free(bytes);
    }
}

TEST(shared_memory_of_the_launch_needs_no_definition) {
    struct sg_image_options options = h200;
    options.relocatable = true;
    for (unsigned char shared = 0; shared < 2; shared++) {
        const unsigned char undefined[] = {0x1d, 0x20, 0,
                                           0}; /* global, a variable, in no section */
        struct sg_image *image = NULL;
        size_t size, changed = 0;
        unsigned char *bytes = file("parts.cubin", &size);
        for (size_t at = 0; at + sizeof undefined <= size; at++)
            if (memcmp(bytes + at, undefined, sizeof undefined) == 0 && ++changed)
                bytes[at + 1] = shared ? 0x40 : 0x20;
        assert_int_equal(changed, 1);
        assert_int_equal(sg_image_read(bytes, size, &options, NULL, &image), CUDA_SUCCESS);
        assert_int_equal(image->variable_count, 1 - shared);
        sg_image_free(image);
        free(bytes);
    }
}

/* A text and the machine code that ptxas makes of it say the same of what others may define. */
TEST(ptx_and_cubin_of_one_source_have_the_same_weak_names) {
    static const char *const names[] = {"twin.ptx", "twin-90.cubin"};
    struct sg_image_options options = h200;
    struct sg_image *image;
    options.relocatable = true;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(read_as(names[i], options, &image), CUDA_SUCCESS);
        assert_int_equal(image->exported_count, 0);
        assert_int_equal(image->weak_count, 1);
        assert_string_equal(image->weak[0], "twice");
        assert_true(function(image, "kernel")->weak && function(image, "kernel")->visible);
        assert_true(variable(image, "held")->weak && !variable(image, "held")->common);
        assert_false(variable(image, "own")->visible);
        assert_false(variable(image, "to_second")->weak);
        const struct sg_image_variable *grows = variable(image, "grows");
        assert_true(grows->common && grows->weak && grows->visible && !grows->external);
        assert_int_equal(grows->size, 8);
        assert_int_equal(grows->alignment, 4);
        sg_image_free(image);
    }
}

/* With machine code first or last, a pointer in it means its own input's variable. */
TEST(local_names_of_machine_code_stay_local) {
    struct sg_image_options options = h200;
    struct sg_image *inputs[2], *linked = NULL;
    unsigned char *bytes = NULL;
    size_t size;
    options.relocatable = true;
    assert_int_equal(sg_image_read(".version 8.0\n.target sm_90\n.address_size 64\n"
                                   ".global .u32 own = 1;\n.weak .global .u32 held = 5;\n"
                                   ".visible .global .align 8 .u64 to_first = generic(own);\n",
                                   SIZE_MAX, &options, NULL, &inputs[0]),
                     CUDA_SUCCESS);
    assert_int_equal(read_as("twin-90.cubin", options, &inputs[1]), CUDA_SUCCESS);
    assert_int_equal(
        sg_image_link((const struct sg_image *const *)inputs, 2, &options, NULL, &bytes, &size),
        CUDA_SUCCESS);
    assert_int_equal(sg_image_read(bytes, size, &options, NULL, &linked), CUDA_SUCCESS);
    assert_int_equal(variable(linked, "held")->initial[0], 5);
    for (unsigned char i = 1; i <= 2; i++) {
        const struct sg_image_variable *to = variable(linked, i == 1 ? "to_first" : "to_second");
        assert_in_range(to->relocations[0].target, 1, linked->variable_count);
        assert_int_equal(linked->variables[to->relocations[0].target - 1].initial[0], i);
        sg_image_free(inputs[i - 1]);
    }
    assert_non_null(sg_image_find_variable(linked, "grows"));
    sg_image_free(linked);
    free(bytes);
}

/* A link of nothing names no architecture. For whatever it names it is linked again and read again,
 * though no device takes it. */
TEST(an_empty_link_without_an_architecture_can_be_linked_again) {
    struct sg_image_options options = h200;
    struct sg_image *image = NULL;
    unsigned char *bytes = NULL, *again = NULL;
    size_t size;
    assert_int_equal(sg_image_link(NULL, 0, &options, NULL, &bytes, &size), CUDA_SUCCESS);
    assert_int_equal(sg_image_read(bytes, size, &options, NULL, &image), CUDA_SUCCESS);
    const struct sg_image *const linked[] = {image};
    options.architecture = -1;
    assert_int_equal(sg_image_link(linked, 1, &options, NULL, &again, &size), CUDA_SUCCESS);
    sg_image_free(image);
    image = NULL;
    assert_int_equal(sg_image_read(again, size, &h200, NULL, &image), CUDA_ERROR_UNKNOWN);
    assert_int_equal(sg_image_read(again, size, &options, NULL, &image), CUDA_SUCCESS);
    assert_int_equal(image->function_count, 0);
    sg_image_free(image);
    free(bytes);
    free(again);
}

/* A header has room for an architecture of 16 bits, and is read with as many. */
TEST(a_linked_header_keeps_16_bits_of_architecture) {
    static const int architectures[] = {90, 120, 300};
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++) {
        struct sg_image_options options = h200;
        struct sg_image *image = NULL;
        unsigned char *bytes = NULL;
        size_t size;
        options.architecture = architectures[i];
        assert_int_equal(sg_image_link(NULL, 0, &options, NULL, &bytes, &size), CUDA_SUCCESS);
        assert_int_equal(sg_image_read(bytes, size, &options, NULL, &image), CUDA_SUCCESS);
        sg_image_free(image);
        free(bytes);
    }
}

/* Bytes of what says, for each function, which parameters and limits it has. */
TEST(impossible_attributes_of_a_cubins_functions_are_refused) {
    static const struct change changes[] = {
        {3256, 5, CUDA_ERROR_INVALID_IMAGE},    /* layout's last parameter: number 5 of five */
        {3218, 0xff, CUDA_ERROR_INVALID_IMAGE}, /* an attribute of limits, longer than all */
        {2970, 0xff, CUDA_ERROR_INVALID_IMAGE}, /* the same of the file */
        {8716, 1, CUDA_ERROR_INVALID_IMAGE},    /* limits has more than 4 GiB of shared memory */
    };
    check_changes("sample-90.cubin", changes, sizeof changes / sizeof changes[0]);
}

static void put_long(unsigned char *at, uint64_t value, unsigned width) {
    for (unsigned i = 0; i < width; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

/* Names of templates are longer than any room on a stack: "limits" gets one of 600 letters. */
TEST(a_functions_sections_are_found_by_a_long_name) {
    enum { LETTERS = 600, ROOM = 8192 };
    enum { TABLE = 6952, SECTION_NAMES = 1, NAMES = 2, INFO = 10, SHARED = 27, SYMBOL = 2240 };
    static const struct {
        unsigned char strings;
        size_t place; /* where the name's offset stands */
        const char *prefix;
    } named[] = {{SECTION_NAMES, TABLE + INFO * 64, ".nv.info."},
                 {SECTION_NAMES, TABLE + SHARED * 64, ".nv.shared."},
                 {NAMES, SYMBOL, ""}};
    char name[LETTERS + 1] = {0};
    memset(name, 'n', LETTERS);
    size_t size;
    unsigned char *bytes = file("sample-90.cubin", &size);
    /* Both tables of names are copied behind the file's end, where there is room for more. */
    for (unsigned table = SECTION_NAMES; table <= NAMES; table++) {
        unsigned char *header = bytes + TABLE + table * 64;
        uint64_t from, length;
        memcpy(&from, header + 24, 8);
        memcpy(&length, header + 32, 8);
        memset(bytes + size, 0, ROOM);
        memcpy(bytes + size, bytes + from, length);
        for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
            if (named[i].strings != table)
                continue;
            put_long(bytes + named[i].place, length, 4);
            length +=
                (uint64_t)sprintf((char *)bytes + size + length, "%s%s", named[i].prefix, name) + 1;
        }
        put_long(header + 24, size, 8);
        put_long(header + 32, length, 8);
        size += ROOM;
    }
    struct sg_image *image = NULL;
    assert_int_equal(sg_image_read(bytes, size, &h200, NULL, &image), CUDA_SUCCESS);
    assert_int_equal(function(image, name)->max_threads, 256);
    assert_int_equal(function(image, name)->static_shared, 128);
    sg_image_free(image);
    free(bytes);
}
