/*
 * Which functions of a relocatable cubin refer to which, by the relocations of their code. Based on
 * the output of ptxas of CUDA 13.0: each function has its own section, and constants that belong to
 * one name the section of its code in sh_info.
 */
#include "softgpu/binary/cubin.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

struct calls {
    struct sg_cubin *cubin;
    size_t *code_of;    /* by symbol: the function's number + 1, or 0 */
    size_t *section_of; /* by section: likewise, of the function whose code it is */
};

static CUresult add_code(struct calls *calls, size_t index) {
    const struct sg_elf *elf = &calls->cubin->elf;
    const struct sg_elf_symbol *symbol = &elf->symbols[index];
    bool defined = symbol->section != SHN_UNDEF;
    size_t number = calls->cubin->image->code_count;
    struct sg_image_code *code =
        sg_image_add_code(calls->cubin->image, symbol->name, strlen(symbol->name));
    if (!code)
        return CUDA_ERROR_OUT_OF_MEMORY;
    code->defined = defined;
    code->shared = symbol->binding != STB_LOCAL;
    code->needed = defined && (symbol->other & SG_CUBIN_ENTRY);
    calls->code_of[index] = number + 1;
    if (defined && symbol->section < elf->section_count)
        calls->section_of[symbol->section] = number + 1;
    return CUDA_SUCCESS;
}

/* The function that a section belongs to; 0: none. */
static size_t owner(const struct calls *calls, size_t section) {
    const struct sg_elf *elf = &calls->cubin->elf;
    if (section >= elf->section_count)
        return 0;
    size_t code = calls->section_of[section], link = elf->sections[section].info;
    return code == 0 && link < elf->section_count ? calls->section_of[link] : code;
}

static size_t goal(const struct calls *calls, size_t index) {
    const struct sg_elf *elf = &calls->cubin->elf;
    if (index >= elf->symbol_count)
        return 0;
    const struct sg_elf_symbol *symbol = &elf->symbols[index];
    return symbol->type == STT_SECTION ? owner(calls, symbol->section) : calls->code_of[index];
}

static CUresult add_calls(struct calls *calls, const struct sg_elf_section *section) {
    size_t from = owner(calls, section->info), step = section->type == SHT_RELA ? 24 : 16;
    for (uint64_t at = 0; from && at + step <= section->bytes.size; at += step) {
        size_t to = goal(calls, (size_t)(sg_bytes_number(section->bytes, at + 8, 8) >> 32));
        if (to && to != from && !sg_image_add_call(calls->cubin->image, from - 1, to - 1))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static CUresult read_calls(struct calls *calls) {
    const struct sg_elf *elf = &calls->cubin->elf;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < elf->symbol_count; i++) {
        if (elf->symbols[i].type == STT_FUNC && elf->symbols[i].name[0])
            result = add_code(calls, i);
    }
    for (size_t i = 0; result == CUDA_SUCCESS && i < elf->section_count; i++) {
        const struct sg_elf_section *section = &elf->sections[i];
        if (section->type == SHT_RELA || section->type == SHT_REL)
            result = add_calls(calls, section);
    }
    return result;
}

CUresult sg_cubin_calls(struct sg_cubin *cubin) {
    struct calls calls = {.cubin = cubin};
    calls.code_of = calloc(cubin->elf.symbol_count + 1, sizeof *calls.code_of);
    calls.section_of = calloc(cubin->elf.section_count + 1, sizeof *calls.section_of);
    CUresult result =
        calls.code_of && calls.section_of ? read_calls(&calls) : CUDA_ERROR_OUT_OF_MEMORY;
    free(calls.code_of);
    free(calls.section_of);
    return result;
}
