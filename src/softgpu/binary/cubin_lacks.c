/*
 * What the functions of a relocatable cubin cannot run without, by the relocations of their code:
 * an H200's answers for 30 kernels that nvcc 13.0 made, each in a cubin of its own. Code that
 * refers to a variable of the cubin, also a static one, a string or a shared one, has no address
 * for it before a link: INVALID_IMAGE. Code that refers to what the cubin does not define, which
 * is also dynamic shared memory, is not found. Both hold through the functions that it calls.
 * What the driver gives (vprintf, malloc), the address of a function, and local memory need
 * nothing.
 */
#include "softgpu/binary/cubin.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct lacks {
    const struct sg_elf *elf;
    size_t *code_of; /* by section: the symbol of the function whose code it is; 0: none */
    enum sg_image_lack *lacks; /* by symbol */
};

static bool is_variable(const struct sg_elf_symbol *symbol) {
    return symbol->type == SG_CUBIN_OBJECT;
}

static enum sg_image_lack lack_of(const struct lacks *lacks, size_t index) {
    const struct sg_elf_symbol *symbol = &lacks->elf->symbols[index];
    bool defined = symbol->section != SHN_UNDEF;
    if (is_variable(symbol))
        return defined ? SG_LACKS_PLACES : SG_LACKS_OTHERS;
    if (symbol->type != STT_FUNC)
        return SG_LACKS_NOTHING;
    if (!defined)
        return sg_image_is_given(symbol->name, strlen(symbol->name)) ? SG_LACKS_NOTHING
                                                                     : SG_LACKS_CALLED;
    return lacks->lacks[index] == SG_LACKS_CALLED ? SG_LACKS_OTHERS : lacks->lacks[index];
}

/* The symbol that a relocation names; 0: none. */
static size_t named(const struct sg_elf *elf, const struct sg_elf_section *section, uint64_t at) {
    size_t symbol = (size_t)(sg_bytes_number(section->bytes, at + 8, 8) >> 32);
    return symbol < elf->symbol_count ? symbol : 0;
}

/* True if a function lacks more than it was known to. */
static bool spread(struct lacks *lacks, const struct sg_elf_section *section) {
    size_t step = section->type == SHT_RELA ? 24 : 16;
    size_t of = section->info < lacks->elf->section_count ? lacks->code_of[section->info] : 0;
    bool more = false;
    for (uint64_t at = 0; of && at + step <= section->bytes.size; at += step) {
        enum sg_image_lack lack = lack_of(lacks, named(lacks->elf, section, at));
        if (lack > lacks->lacks[of]) {
            lacks->lacks[of] = lack;
            more = true;
        }
    }
    return more;
}

/* Whether the value of a variable is the address of another. That of a function is none. */
static bool has_pointers(const struct sg_elf *elf, const struct sg_elf_section *section) {
    size_t step = section->type == SHT_RELA ? 24 : 16;
    if (section->info >= elf->section_count)
        return false;
    const char *name = elf->sections[section->info].name;
    if (strncmp(name, ".nv.global", 10) != 0 && strncmp(name, ".nv.constant3", 13) != 0)
        return false;
    for (uint64_t at = 0; at + step <= section->bytes.size; at += step)
        if (is_variable(&elf->symbols[named(elf, section, at)]))
            return true;
    return false;
}

static void find(struct lacks *lacks, struct sg_image *image) {
    const struct sg_elf *elf = lacks->elf;
    bool more = true;
    for (size_t i = 1; i < elf->symbol_count; i++)
        if (elf->symbols[i].type == STT_FUNC && elf->symbols[i].section < elf->section_count)
            lacks->code_of[elf->symbols[i].section] = elf->symbols[i].section != SHN_UNDEF ? i : 0;
    while (more) {
        more = false;
        for (size_t i = 0; i < elf->section_count; i++)
            if (elf->sections[i].type == SHT_RELA || elf->sections[i].type == SHT_REL)
                more |= spread(lacks, &elf->sections[i]);
    }
    for (size_t i = 0; i < elf->section_count; i++)
        if (elf->sections[i].type == SHT_RELA || elf->sections[i].type == SHT_REL)
            image->unplaced |= has_pointers(elf, &elf->sections[i]);
    for (size_t i = 1; i < elf->symbol_count; i++) {
        const struct sg_image_function *function =
            lacks->lacks[i] ? sg_image_find_function(image, elf->symbols[i].name) : NULL;
        if (function)
            image->functions[function - image->functions].lacks = lacks->lacks[i];
    }
}

CUresult sg_cubin_lacks(struct sg_cubin *cubin) {
    const struct sg_elf *elf = &cubin->elf;
    struct lacks lacks = {.elf = elf};
    lacks.code_of = calloc(elf->section_count + 1, sizeof *lacks.code_of);
    lacks.lacks = calloc(elf->symbol_count + 1, sizeof *lacks.lacks);
    bool made = lacks.code_of && lacks.lacks;
    if (made && elf->symbol_count > 0)
        find(&lacks, cubin->image);
    free(lacks.code_of);
    free(lacks.lacks);
    return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
