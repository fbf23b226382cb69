/* Variables of cubins: symbols in data sections, their bytes, and the addresses among them. */
#include "softgpu/binary/cubin.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* Overlapping symbols may name the same bytes; at most this many times the file is copied. */
#define BYTES_SHARE 4

/* Relocations in data: a word, a word valid in all spaces, and single bytes of an address. */
enum {
    RELOCATE_32 = 1,
    RELOCATE_64 = 2,
    RELOCATE_GENERIC_32 = 3,
    RELOCATE_GENERIC_64 = 4,
    RELOCATE_BYTE_0 = 0x54,
    RELOCATE_BYTE_7 = 0x5b
};

struct place {
    unsigned section;
    uint64_t value, size;
    size_t variable; /* in the image */
};

struct variables {
    struct sg_cubin *cubin;
    struct place *places; /* by section and value */
    size_t count;
    size_t *variable_of; /* symbol to variable of the image, + 1 */
    uint64_t budget;     /* bytes of initial values that may still be copied */
};

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- symbols --------------------------------------------------------------------------------- */

static struct sg_image_variable *add_variable(struct sg_image *image, const char *name) {
    struct sg_image_variable *grown =
        sg_image_grow(image->variables, &image->variable_count, sizeof *grown);
    if (!grown)
        return NULL;
    image->variables = grown;
    grown += image->variable_count - 1;
    grown->name = strdup(name);
    return grown->name ? grown : NULL;
}

/* The symbol's own alignment is not recorded: infer it from its place in an aligned section. */
static uint64_t alignment_of(const struct sg_elf_section *section, uint64_t value) {
    uint64_t most = section->alignment, own = value & (0 - value);
    if (most == 0 || (most & (most - 1)) != 0 || most > 4096)
        most = most > 4096 ? 4096 : 1;
    return own && own < most ? own : most;
}

static CUresult copy_bytes(struct variables *all, const struct sg_elf_section *section,
                           const struct sg_elf_symbol *symbol, struct sg_image_variable *variable) {
    struct sg_bytes bytes;
    if (section->type == SHT_NOBITS || section->bytes.size == 0 || symbol->size == 0 ||
        strcmp(section->name, ".nv.global") == 0)
        return CUDA_SUCCESS;
    if (!sg_bytes_slice(section->bytes, symbol->value, symbol->size, &bytes) ||
        bytes.size > all->budget)
        return CUDA_ERROR_INVALID_IMAGE;
    all->budget -= bytes.size;
    variable->initial = malloc(bytes.size);
    if (!variable->initial)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(variable->initial, bytes.data, bytes.size);
    variable->initial_size = bytes.size;
    return CUDA_SUCCESS;
}

/* It has no place yet: its value is its alignment. */
static CUresult keep_common(struct variables *all, const struct sg_elf_symbol *symbol) {
    bool good =
        symbol->value && (symbol->value & (symbol->value - 1)) == 0 && symbol->value <= 4096;
    struct sg_image_variable *variable =
        good && symbol->size <= INT64_MAX ? add_variable(all->cubin->image, symbol->name) : NULL;
    if (!variable)
        return good && symbol->size <= INT64_MAX ? CUDA_ERROR_OUT_OF_MEMORY
                                                 : CUDA_ERROR_INVALID_IMAGE;
    variable->size = symbol->size;
    variable->alignment = symbol->value;
    variable->visible = variable->weak = variable->common = true;
    return CUDA_SUCCESS;
}

static CUresult keep_defined(struct variables *all, const struct sg_elf_symbol *symbol) {
    const struct sg_elf *elf = &all->cubin->elf;
    if (symbol->section == SHN_COMMON)
        return keep_common(all, symbol);
    if (symbol->section >= elf->section_count || !elf->sections[symbol->section].name)
        return CUDA_SUCCESS;
    const struct sg_elf_section *section = &elf->sections[symbol->section];
    bool constant = begins(section->name, ".nv.constant3");
    if (!constant && !begins(section->name, ".nv.global"))
        return CUDA_SUCCESS;
    if (symbol->value > section->size || symbol->size > section->size - symbol->value)
        return CUDA_ERROR_INVALID_IMAGE;
    struct sg_image_variable *variable = add_variable(all->cubin->image, symbol->name);
    if (!variable)
        return CUDA_ERROR_OUT_OF_MEMORY;
    variable->size = symbol->size;
    variable->constant = constant;
    variable->managed = (symbol->other & SG_CUBIN_MANAGED) != 0;
    variable->visible = symbol->binding != STB_LOCAL;
    variable->weak = symbol->binding == STB_WEAK;
    variable->alignment = alignment_of(section, symbol->value);
    all->places[all->count++] = (struct place){symbol->section, symbol->value, symbol->size,
                                               all->cubin->image->variable_count - 1};
    return copy_bytes(all, section, symbol, variable);
}

/* What libcudadevrt.a of CUDA 12 and 13 calls and no input of a link defines: the driver's side of
 * launches from kernels and of a grid's synchronization. */
static bool of_the_driver(const struct sg_elf_symbol *symbol) {
    return symbol->type == STT_FUNC &&
           (begins(symbol->name, "__cuda_syscall_") ||
            (begins(symbol->name, "cnp") && symbol->name[3] >= 'A' && symbol->name[3] <= 'Z'));
}

/* Memory of a block whose size is given at the launch: ".extern .shared". */
static bool is_shared(const struct sg_elf_symbol *symbol) {
    return symbol->type == SG_CUBIN_OBJECT && (symbol->other & SG_CUBIN_SHARED);
}

/* Names of the toolchain itself, which no input has to provide. */
static bool of_the_toolchain(const struct sg_elf_symbol *symbol) {
    return is_shared(symbol) || sg_image_is_given(symbol->name, strlen(symbol->name)) ||
           symbol->binding == STB_WEAK || of_the_driver(symbol) || begins(symbol->name, ".nv.") ||
           symbol->name[0] == 0;
}

static CUresult keep_undefined(struct sg_cubin *cubin, const struct sg_elf_symbol *symbol) {
    struct sg_image *image = cubin->image;
    if (of_the_toolchain(symbol))
        return CUDA_SUCCESS;
    if (!cubin->options->relocatable) {
        sg_image_log_error(cubin->log, cubin->options->name, 0, "'%.80s' is nowhere defined",
                           symbol->name);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (symbol->type == STT_FUNC)
        return sg_image_add_name(&image->undefined, &image->undefined_count, symbol->name,
                                 strlen(symbol->name))
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_OUT_OF_MEMORY;
    struct sg_image_variable *variable = add_variable(image, symbol->name);
    if (!variable)
        return CUDA_ERROR_OUT_OF_MEMORY;
    variable->external = true;
    variable->size = symbol->size;
    variable->alignment = 1;
    return CUDA_SUCCESS;
}

static CUresult keep_function(struct sg_cubin *cubin, const struct sg_elf_symbol *symbol) {
    struct sg_image *image = cubin->image;
    if (symbol->section == SHN_UNDEF)
        return keep_undefined(cubin, symbol);
    if ((symbol->other & SG_CUBIN_ENTRY) || symbol->binding == STB_LOCAL ||
        !cubin->options->relocatable)
        return CUDA_SUCCESS;
    bool added = symbol->binding == STB_WEAK
                     ? sg_image_add_name(&image->weak, &image->weak_count, symbol->name,
                                         strlen(symbol->name))
                     : sg_image_add_name(&image->exported, &image->exported_count, symbol->name,
                                         strlen(symbol->name));
    return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult keep_symbol(struct variables *all, const struct sg_elf_symbol *symbol) {
    struct sg_image *image = all->cubin->image;
    bool added = true;
    /* A symbol without a name cannot be asked for. */
    if (symbol->name[0] == '\0')
        return CUDA_SUCCESS;
    switch (symbol->type) {
    case SG_CUBIN_TEXTURE:
        added = sg_image_add_name(&image->textures, &image->texture_count, symbol->name,
                                  strlen(symbol->name));
        break;
    case SG_CUBIN_SURFACE:
        added = sg_image_add_name(&image->surfaces, &image->surface_count, symbol->name,
                                  strlen(symbol->name));
        break;
    case STT_OBJECT:
    case SG_CUBIN_OBJECT:
        return symbol->section == SHN_UNDEF ? keep_undefined(all->cubin, symbol)
                                            : keep_defined(all, symbol);
    case STT_FUNC:
        return keep_function(all->cubin, symbol);
    default:
        break;
    }
    return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- relocations ----------------------------------------------------------------------------- */

static int compare_places(const void *left, const void *right) {
    const struct place *l = left, *r = right;
    if (l->section != r->section)
        return l->section < r->section ? -1 : 1;
    if (l->value != r->value)
        return l->value < r->value ? -1 : 1;
    return (l->size > r->size) - (l->size < r->size);
}

/* The variable that begins last at or before the place, if it extends that far. */
static const struct place *place_at(const struct variables *all, unsigned section, uint64_t value) {
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct place *one = &all->places[middle];
        if (one->section < section || (one->section == section && one->value <= value))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const struct place *one = &all->places[low - 1];
    return one->section == section && value - one->value < one->size ? one : NULL;
}

/* What a relocation adds. Each input of a link may have a variable of the same name: the number
 * says which is meant. */
struct goal {
    const char *name;
    size_t target; /* as in struct sg_relocation */
    int64_t addend;
};

/* For a section's symbol, what is at that place. False when there is nothing. */
static bool find_goal(const struct variables *all, size_t index, struct goal *goal) {
    const struct sg_elf_symbol *symbol = &all->cubin->elf.symbols[index];
    if (symbol->type != STT_SECTION) {
        goal->name = symbol->name;
        goal->target = all->variable_of[index];
        return symbol->name[0] != '\0';
    }
    const struct place *one = place_at(all, symbol->section, (uint64_t)goal->addend);
    if (!one)
        return false;
    goal->addend -= (int64_t)one->value;
    goal->name = all->cubin->image->variables[one->variable].name;
    goal->target = one->variable + 1;
    return true;
}

/* Whether a byte of an address follows its lower ones. */
static bool joins(const struct sg_relocation *last, uint64_t offset, unsigned byte,
                  const struct goal *goal) {
    return last->size == byte && last->offset + byte == offset && last->addend == goal->addend &&
           last->target == goal->target && strcmp(last->symbol, goal->name) == 0;
}

static CUresult relocate(struct sg_image_variable *variable, uint64_t offset, uint64_t type,
                         const struct goal *goal) {
    bool piece = type >= RELOCATE_BYTE_0 && type <= RELOCATE_BYTE_7;
    unsigned byte = piece ? (unsigned)(type - RELOCATE_BYTE_0) : 0;
    uint64_t room = variable->size - offset;
    if (byte > 0) {
        if (variable->relocation_count == 0)
            return CUDA_ERROR_INVALID_IMAGE;
        struct sg_relocation *last = &variable->relocations[variable->relocation_count - 1];
        if (!joins(last, offset, byte, goal))
            return CUDA_ERROR_INVALID_IMAGE;
        last->size++;
        return CUDA_SUCCESS;
    }
    bool word = type == RELOCATE_32 || type == RELOCATE_GENERIC_32;
    /* ptxas uses 64-bit relocations for variables of 32 bits, too. */
    unsigned size = piece ? 1 : word || room < 8 ? 4 : 8;
    if (room < size)
        return CUDA_ERROR_INVALID_IMAGE;
    struct sg_relocation *grown =
        sg_image_grow(variable->relocations, &variable->relocation_count, sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    variable->relocations = grown;
    grown += variable->relocation_count - 1;
    grown->offset = offset;
    grown->size = size;
    grown->addend = goal->addend;
    grown->target = goal->target;
    grown->generic = type != RELOCATE_32 && type != RELOCATE_64;
    grown->symbol = strdup(goal->name);
    return grown->symbol ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static uint64_t stored_addend(const struct sg_image_variable *variable, uint64_t offset) {
    const struct sg_bytes bytes = {variable->initial, (size_t)variable->initial_size};
    return sg_bytes_number(bytes, offset, 8);
}

static CUresult relocation(struct variables *all, const struct sg_elf_section *section,
                           struct sg_bytes entry) {
    const struct sg_elf *elf = &all->cubin->elf;
    uint64_t info = sg_bytes_number(entry, 8, 8), symbol = info >> 32, type = info & UINT32_MAX;
    const struct place *one = place_at(all, section->info, sg_bytes_number(entry, 0, 8));
    if (!one)
        return CUDA_SUCCESS;
    struct sg_image_variable *variable = &all->cubin->image->variables[one->variable];
    uint64_t offset = sg_bytes_number(entry, 0, 8) - one->value;
    bool piece = type >= RELOCATE_BYTE_0 && type <= RELOCATE_BYTE_7;
    struct goal goal = {.addend = section->type == SHT_RELA ? (int64_t)sg_bytes_number(entry, 16, 8)
                                  : piece                   ? 0
                                          : (int64_t)stored_addend(variable, offset)};
    if (symbol >= elf->symbol_count || !find_goal(all, (size_t)symbol, &goal))
        return CUDA_ERROR_INVALID_IMAGE;
    uint64_t length = strlen(goal.name) + 1;
    if (length > all->budget)
        return CUDA_ERROR_INVALID_IMAGE;
    all->budget -= length;
    return relocate(variable, offset, type, &goal);
}

struct entry {
    uint64_t offset;
    size_t at;
};

static int compare_entries(const void *left, const void *right) {
    const struct entry *l = left, *r = right;
    if (l->offset != r->offset)
        return l->offset < r->offset ? -1 : 1;
    return (l->at > r->at) - (l->at < r->at);
}

/* Sorted by place, because the bytes of one address are joined upwards, and no tool lists them in
 * that order. */
static CUresult relocations(struct variables *all, const struct sg_elf_section *section) {
    size_t step = section->type == SHT_RELA ? 24 : 16, count = section->bytes.size / step;
    struct entry *entries = calloc(count + 1, sizeof *entries);
    if (!entries)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct entry){sg_bytes_number(section->bytes, i * step, 8), i * step};
    qsort(entries, count, sizeof *entries, compare_entries);
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        struct sg_bytes entry = {section->bytes.data + entries[i].at, step};
        result = relocation(all, section, entry);
    }
    free(entries);
    return result;
}

/* ---- all ------------------------------------------------------------------------------------- */

static CUresult read_variables(struct variables *all) {
    const struct sg_elf *elf = &all->cubin->elf;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < elf->symbol_count; i++) {
        size_t before = all->cubin->image->variable_count;
        result = keep_symbol(all, &elf->symbols[i]);
        if (all->cubin->image->variable_count > before)
            all->variable_of[i] = before + 1;
    }
    if (all->count)
        qsort(all->places, all->count, sizeof *all->places, compare_places);
    for (size_t i = 0; result == CUDA_SUCCESS && i < elf->section_count; i++) {
        const struct sg_elf_section *section = &elf->sections[i];
        if ((section->type == SHT_RELA || section->type == SHT_REL) &&
            section->info < elf->section_count)
            result = relocations(all, section);
    }
    return result;
}

CUresult sg_cubin_variables(struct sg_cubin *cubin) {
    struct variables all = {.cubin = cubin,
                            .budget = BYTES_SHARE * (uint64_t)cubin->elf.bytes.size};
    all.places = calloc(cubin->elf.symbol_count + 1, sizeof *all.places);
    all.variable_of = calloc(cubin->elf.symbol_count + 1, sizeof *all.variable_of);
    CUresult result =
        all.places && all.variable_of ? read_variables(&all) : CUDA_ERROR_OUT_OF_MEMORY;
    free(all.places);
    free(all.variable_of);
    return result;
}
