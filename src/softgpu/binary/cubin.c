/*
 * Cubins: which functions there are, and what the .nv.info sections, or what softgpu's linker wrote
 * in their place, say about them. Based on the output of ptxas of CUDA 12.4 and 13.0, which differ
 * in how the header names the architecture.
 */
#include "softgpu/binary/cubin.h"
#include "softgpu/binary/container.h"
#include "softgpu/binary/read.h"
#include "softgpu/ptx/ptx.h"

#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Attributes: one byte for the form, one for the name, two for a value or the length of data. */
enum { FORM_NONE = 1, FORM_BYTE = 2, FORM_HALF = 3, FORM_LONG = 4 };
enum {
    INFO_MAX_THREADS = 0x05,
    INFO_PARAM_CBANK = 0x0a,
    INFO_REQNTID = 0x10,
    INFO_FRAME_SIZE = 0x11,
    INFO_KPARAM_INFO = 0x17,
    INFO_CBANK_PARAM_SIZE = 0x19,
    INFO_REGCOUNT = 0x2f,
    INFO_CTA_PER_CLUSTER = 0x3d,
    INFO_EXPLICIT_CLUSTER = 0x3e,
    INFO_MAX_CLUSTER_RANK = 0x3f,
    INFO_KPARAM_INFO_V2 = 0x45
};

struct attribute {
    unsigned form, name;
    uint64_t value;        /* of FORM_BYTE and FORM_HALF */
    struct sg_bytes bytes; /* of FORM_LONG */
};

/* The attribute at *at, which advances past it; false at the end or if there is none. */
static bool next_attribute(struct sg_bytes from, uint64_t *at, struct attribute *one) {
    struct sg_bytes head;
    if (!sg_bytes_slice(from, *at, 4, &head))
        return false;
    *one = (struct attribute){
        .form = head.data[0], .name = head.data[1], .value = sg_bytes_number(head, 2, 2)};
    *at += 4;
    if (one->form != FORM_LONG)
        return one->form >= FORM_NONE && one->form <= FORM_HALF;
    if (!sg_bytes_slice(from, *at, one->value, &one->bytes))
        return false;
    *at += one->value;
    return true;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static bool is_parameter(const struct attribute *one) {
    return one->form == FORM_LONG && one->bytes.size >= 12 &&
           (one->name == INFO_KPARAM_INFO || one->name == INFO_KPARAM_INFO_V2);
}

/* u32, number u16, offset u16; the size in the upper 14 bits, or in 16 of the newer form. */
static CUresult add_parameter(struct sg_image_function *function, const struct attribute *one) {
    uint64_t number = sg_bytes_number(one->bytes, 4, 2), offset = sg_bytes_number(one->bytes, 6, 2);
    uint64_t size = one->name == INFO_KPARAM_INFO ? sg_bytes_number(one->bytes, 8, 4) >> 18
                                                  : sg_bytes_number(one->bytes, 8, 2);
    if (number >= function->parameter_count)
        return CUDA_ERROR_INVALID_IMAGE;
    function->parameters[number] = (struct sg_parameter){(uint32_t)offset, (uint32_t)size};
    if (offset + size > function->parameter_bytes)
        function->parameter_bytes = (unsigned)(offset + size);
    return CUDA_SUCCESS;
}

static CUresult parameters(struct sg_image_function *function, struct sg_bytes info) {
    struct attribute one;
    size_t count = 0;
    for (uint64_t at = 0; next_attribute(info, &at, &one);)
        count += is_parameter(&one);
    if (count == 0)
        return CUDA_SUCCESS;
    function->parameters = calloc(count, sizeof *function->parameters);
    if (!function->parameters)
        return CUDA_ERROR_OUT_OF_MEMORY;
    function->parameter_count = (unsigned)count;
    CUresult result = CUDA_SUCCESS;
    for (uint64_t at = 0; result == CUDA_SUCCESS && next_attribute(info, &at, &one);) {
        if (is_parameter(&one))
            result = add_parameter(function, &one);
    }
    return result;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void three(unsigned *to, struct sg_bytes from) {
    for (unsigned i = 0; i < 3; i++)
        to[i] = (unsigned)sg_bytes_number(from, 4 * i, 4);
}

static unsigned product(const unsigned *of) {
    uint64_t all = (uint64_t)of[0] * of[1];
    if (all > UINT32_MAX || __builtin_mul_overflow(all, of[2], &all) || all > UINT32_MAX)
        return UINT32_MAX;
    return (unsigned)all;
}

static void limit(struct sg_image_function *function, const struct attribute *one) {
    unsigned threads[3];
    switch (one->name) {
    case INFO_MAX_THREADS:
        three(threads, one->bytes);
        function->max_threads = product(threads);
        break;
    case INFO_REQNTID:
        three(function->required_threads, one->bytes);
        break;
    case INFO_CTA_PER_CLUSTER:
        three(function->cluster, one->bytes);
        break;
    case INFO_EXPLICIT_CLUSTER:
        function->explicit_cluster = true;
        break;
    case INFO_MAX_CLUSTER_RANK:
        function->max_cluster_rank = (unsigned)sg_bytes_number(one->bytes, 0, 4);
        break;
    case INFO_CBANK_PARAM_SIZE:
        function->parameter_bytes = (unsigned)one->value;
        break;
    default:
        break;
    }
}

static CUresult function_info(struct sg_image_function *function, struct sg_bytes info) {
    struct attribute one;
    uint64_t at = 0;
    CUresult result = parameters(function, info);
    if (result != CUDA_SUCCESS)
        return result;
    while (next_attribute(info, &at, &one))
        limit(function, &one);
    return at == info.size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* What a block reserves for the driver itself; ptxas counts it in whole programs since sm_90. */
static uint64_t reserved_shared(const struct sg_cubin *cubin) {
    return cubin->image->target >= 90 && !cubin->image->to_be_linked ? 1024 : 0;
}

static CUresult describe(struct sg_cubin *cubin, struct sg_image_function *function) {
    const struct sg_elf *elf = &cubin->elf;
    const struct sg_elf_section *info = sg_elf_section(elf, ".nv.info.", function->name);
    const struct sg_elf_section *shared = sg_elf_section(elf, ".nv.shared.", function->name);
    const struct sg_elf_section *constants = sg_elf_section(elf, ".nv.constant3", "");
    /* Sections that have only a size, which no byte of the file bounds. */
    if ((shared && shared->size > UINT32_MAX) || (constants && constants->size > UINT32_MAX))
        return CUDA_ERROR_INVALID_IMAGE;
    if (shared && shared->size > reserved_shared(cubin)) {
        function->static_shared = (unsigned)(shared->size - reserved_shared(cubin));
    }
    if (constants)
        function->constant = (unsigned)constants->size;
    return info ? function_info(function, info->bytes) : CUDA_SUCCESS;
}

static CUresult add_function(struct sg_cubin *cubin, size_t index) {
    const struct sg_elf_symbol *symbol = &cubin->elf.symbols[index];
    struct sg_image *image = cubin->image;
    struct sg_image_function *grown =
        sg_image_grow(image->functions, &image->function_count, sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    image->functions = grown;
    grown += image->function_count - 1;
    cubin->entry_of[index] = image->function_count;
    grown->visible = symbol->binding != STB_LOCAL;
    grown->weak = symbol->binding == STB_WEAK;
    grown->name = strdup(symbol->name);
    return grown->name ? describe(cubin, grown) : CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * If the section headers are zeros from some point on, an H200 calls the image invalid when the
 * header of the code is among them, as recorded; it does not miss those of the constants after it.
 */
static bool has_code(const struct sg_elf *elf, const struct sg_elf_symbol *symbol) {
    return symbol->section < elf->section_count &&
           elf->sections[symbol->section].type == SHT_PROGBITS;
}

/* .nv.info: for each function, by its symbol. */
static CUresult common_info(struct sg_cubin *cubin) {
    const struct sg_elf_section *info = sg_elf_section(&cubin->elf, ".nv.info", "");
    struct attribute one;
    uint64_t at = 0;
    if (!info)
        return CUDA_SUCCESS;
    while (next_attribute(info->bytes, &at, &one)) {
        if (one.form != FORM_LONG || one.bytes.size < 8)
            continue;
        uint64_t symbol = sg_bytes_number(one.bytes, 0, 4);
        if (symbol >= cubin->elf.symbol_count || !cubin->entry_of[symbol])
            continue;
        struct sg_image_function *function = &cubin->image->functions[cubin->entry_of[symbol] - 1];
        unsigned value = (unsigned)sg_bytes_number(one.bytes, 4, 4);
        if (one.name == INFO_REGCOUNT)
            function->registers = value;
        else if (one.name == INFO_FRAME_SIZE)
            function->local = value;
    }
    return at == info->bytes.size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult sg_cubin_functions(struct sg_cubin *cubin) {
    const struct sg_elf *elf = &cubin->elf;
    struct sg_name_table names = {0};
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < elf->symbol_count; i++) {
        const struct sg_elf_symbol *symbol = &elf->symbols[i];
        size_t first;
        if (symbol->type != STT_FUNC || !(symbol->other & SG_CUBIN_ENTRY) ||
            symbol->section == SHN_UNDEF)
            continue;
        if (!sg_names_add(&names, 0, symbol->name, strlen(symbol->name), i, &first))
            result = CUDA_ERROR_OUT_OF_MEMORY;
        else if (first != i || !symbol->name[0] || !has_code(elf, symbol))
            result = CUDA_ERROR_INVALID_IMAGE;
        else
            result = add_function(cubin, i);
    }
    sg_names_clear(&names);
    return result == CUDA_SUCCESS ? common_info(cubin) : result;
}

/* ---- the cubin ------------------------------------------------------------------------------- */

/*
 * e_flags, as ptxas of CUDA 12.4, 12.9 and 13.0 writes them for sm_50 to sm_120a. There are two
 * layouts, and EI_OSABI says which: an H200 looks at it alone, as recorded (it accepts any
 * EI_ABIVERSION, and with 0x33 it reads the low byte of 0x06005a04 as the architecture).
 *
 *   bits           0x33: CUDA 12, to sm_90            0x41: CUDA 13, and CUDA 12 from sm_100 on
 *   0 to 7         architecture: 0x5a for sm_90       marks: 4 to sm_90, 2 from sm_100 on, 8 for
 *                                                     code for this architecture alone (12.9)
 *   8 to 15        marks: 5 always, 8 as for 0x41     architecture, the lower half
 *   16 to 23       .target of the text: 0x4b for 75   architecture, the upper half: always 0
 *   24 to 31       0                                  6; an H200 takes 0 and 255
 *
 * CUDA 13 does not set the mark for one architecture alone; it is in .nv.compat instead.
 */
enum { OLD_ALONE = 0x800, ALONE = 8, COMPAT_ALONE = 9 };

static bool marked_alone(const struct sg_elf *elf) {
    const struct sg_elf_section *section = sg_elf_section(elf, ".nv.compat", "");
    struct attribute one;
    if (!section)
        return false;
    for (uint64_t at = 0; next_attribute(section->bytes, &at, &one);) {
        if (one.form == FORM_BYTE && one.name == COMPAT_ALONE)
            return (one.value & 0xff) == 1;
    }
    return false;
}

static void read_target(struct sg_cubin *cubin) {
    const struct sg_elf *elf = &cubin->elf;
    bool alone;
    if (elf->system == SG_CUBIN_SYSTEM) {
        cubin->image->target = (int16_t)(elf->flags >> 8 & 0xffff);
        alone = (elf->flags & ALONE) || marked_alone(elf);
    } else {
        cubin->image->target = (int)(elf->flags & 0xff);
        alone = (elf->flags & OLD_ALONE) != 0;
    }
    cubin->image->target_suffix = alone ? 'a' : 0;
}

/* Machine code runs on its architecture, and on later ones of the same major version. */
static bool runs(const struct sg_cubin *cubin) {
    int device = cubin->options->architecture, target = cubin->image->target;
    if (device < 0)
        return true;
    if (cubin->image->target_suffix == 'a')
        return target == device && cubin->options->suffix == 'a';
    return target / 10 == device / 10 && target <= device;
}

static CUresult read_machine(struct sg_cubin *cubin) {
    cubin->entry_of = calloc(cubin->elf.symbol_count + 1, sizeof *cubin->entry_of);
    if (!cubin->entry_of)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_cubin_functions(cubin);
    if (result == CUDA_SUCCESS)
        result = sg_cubin_variables(cubin);
    const bool calls = cubin->options->relocatable || cubin->image->to_be_linked;
    return result == CUDA_SUCCESS && calls ? sg_cubin_calls(cubin) : result;
}

/*
 * The PTX that the machine code was made from, which is what can run. Hardware takes the code
 * whatever the version of its text, and does not look at the text: one that is refused here must
 * not make the whole refused. Its kernels are, at their launch, which says why.
 */
static CUresult read_text(struct sg_cubin *cubin, struct sg_bytes text) {
    struct sg_image *image = cubin->image, read = {0};
    struct sg_image_options options = *cubin->options;
    char why[256] = "";
    struct sg_image_log aside = {.error = why, .error_size = sizeof why};
    options.newest_ptx = INT_MAX;
    text.size = strnlen((const char *)text.data, text.size);
    CUresult result = sg_ptx_read(text, &options, &aside, &read);
    if (result == CUDA_SUCCESS) {
        read.to_be_linked = image->to_be_linked;
        read.machine = image->machine;
        read.machine_size = image->machine_size;
        *image = read;
        return CUDA_SUCCESS;
    }
    sg_image_clear(&read);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    why[strcspn(why, "\n")] = 0;
    image->refused_text = strdup(why);
    return image->refused_text ? read_machine(cubin) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult read_cubin(struct sg_cubin *cubin) {
    CUresult result = sg_elf_open(cubin->elf.bytes, &cubin->elf);
    if (result != CUDA_SUCCESS)
        return result;
    read_target(cubin);
    /* As recorded: a whole program in which only the type is changed is found as before. It differs
     * from code that is to be linked in having segments. */
    cubin->image->to_be_linked = cubin->elf.type == ET_REL && cubin->elf.segments == 0;
    /*
     * An H200 answers this to 0 and to 0xff5a, and NO_BINARY_FOR_GPU to 0x15a as to any
     * architecture other than its own: a signed 16-bit number would explain it; values in between
     * are untested. Without a device, everything is accepted: a link of nothing names no
     * architecture.
     */
    if (cubin->options->architecture >= 0 && cubin->image->target <= 0)
        return CUDA_ERROR_UNKNOWN;
    if (!runs(cubin)) {
        sg_image_log_error(cubin->log, cubin->options->name, 0,
                           "code for sm_%d does not run on sm_%d", cubin->image->target,
                           cubin->options->architecture);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    const struct sg_elf_section *linked = sg_elf_section(&cubin->elf, SG_CONTAINER_SECTION, "");
    const struct sg_elf_section *text = sg_elf_section(&cubin->elf, SG_TEXT_SECTION, "");
    if (linked)
        return sg_container_read(linked->bytes, cubin->image);
    result = text && text->bytes.size && !cubin->options->prefer_machine
                 ? read_text(cubin, text->bytes)
                 : read_machine(cubin);
    return result == CUDA_SUCCESS && cubin->image->to_be_linked ? sg_cubin_lacks(cubin) : result;
}

CUresult sg_cubin_read(struct sg_bytes bytes, const struct sg_image_options *options,
                       struct sg_image_log *log, struct sg_image *image) {
    struct sg_cubin cubin = {
        .elf = {.bytes = bytes}, .options = options, .log = log, .image = image};
    image->source = SG_IMAGE_MACHINE;
    image->machine = malloc(bytes.size + 1);
    if (!image->machine)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(image->machine, bytes.data, bytes.size);
    image->machine_size = bytes.size;
    CUresult result = read_cubin(&cubin);
    if (result == CUDA_ERROR_INVALID_IMAGE)
        sg_image_log_error(log, options->name, 0, "the ELF is damaged, or not a GPU's");
    free(cubin.entry_of);
    sg_elf_close(&cubin.elf);
    return result;
}
