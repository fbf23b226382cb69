/* ELF64, little-endian: headers, sections, symbols. Every offset is checked before it is used. */
#include "softgpu/binary/cubin.h"
#include "softgpu/binary/read.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER         64
#define SECTION_HEADER 64
#define SYMBOL         24
/* Names may take this many times the bytes of the file: linkers let them share their ends. */
#define NAME_SHARE 4

/*
 * An H200's answers to each of these, as recorded. The class is checked after the byte order and
 * the machine: 0 is UNKNOWN in a cubin, and INVALID_IMAGE where everything after the magic is zero.
 * It ignores the versions of ELF and of the ABI, the type (0, 1 and 3 load as well), the entry, the
 * header's own size, and the number, location and size of program headers.
 */
static CUresult check_header(struct sg_bytes bytes) {
    if (bytes.size < HEADER || memcmp(bytes.data, ELFMAG, SELFMAG) != 0)
        return CUDA_ERROR_INVALID_IMAGE;
    if (bytes.data[EI_DATA] != ELFDATA2LSB || sg_bytes_number(bytes, 18, 2) != EM_CUDA)
        return CUDA_ERROR_INVALID_IMAGE;
    if (bytes.data[EI_CLASS] != ELFCLASS64)
        return CUDA_ERROR_UNKNOWN;
    if (bytes.data[EI_OSABI] != SG_CUBIN_SYSTEM_OLD && bytes.data[EI_OSABI] != SG_CUBIN_SYSTEM)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    return CUDA_SUCCESS;
}

/*
 * Types of sections of which the file has no bytes, whatever its size: besides ELF's own, ptxas's
 * for global, local and shared memory in code that is to be linked. Their
 * .nv_debug.shared may be larger than the file.
 */
static bool has_no_bytes(uint32_t type) {
    return type == SHT_NULL || type == SHT_NOBITS || type == SHT_LOPROC + 7 ||
           type == SHT_LOPROC + 9 || type == SHT_LOPROC + 0xa;
}

/* The end of what the headers describe: section headers, program headers and sections. */
bool sg_cubin_extent(const void *data, size_t size, uint64_t *extent) {
    struct sg_bytes bytes = {data, size};
    if (size < HEADER || memcmp(data, ELFMAG, SELFMAG) != 0)
        return false;
    /* If it is not a cubin, nothing that it says about its length can be trusted. */
    if (size != SIZE_MAX || check_header(bytes) != CUDA_SUCCESS) {
        *extent = size != SIZE_MAX ? size : HEADER;
        return true;
    }
    /* The length is unknown. A gigabyte of code is more than any tool makes. */
    const uint64_t most = (uint64_t)1 << 30;
    uint64_t sections = sg_bytes_number(bytes, 40, 8), programs = sg_bytes_number(bytes, 32, 8);
    uint64_t count = sg_bytes_number(bytes, 60, 2), end = HEADER;
    if (sections > most || programs > most)
        return false;
    if (count && sections + count * SECTION_HEADER > end)
        end = sections + count * SECTION_HEADER;
    uint64_t after = programs + sg_bytes_number(bytes, 56, 2) * sg_bytes_number(bytes, 54, 2);
    if (programs && after > end)
        end = after;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t header = sections + i * SECTION_HEADER;
        uint64_t offset = sg_bytes_number(bytes, header + 24, 8);
        uint64_t length = sg_bytes_number(bytes, header + 32, 8);
        if (has_no_bytes((uint32_t)sg_bytes_number(bytes, header + 4, 4)))
            continue;
        if (offset > most || length > most)
            return false;
        if (offset + length > end)
            end = offset + length;
    }
    *extent = end;
    return true;
}

/* ---- sections -------------------------------------------------------------------------------- */

static bool read_section(struct sg_elf *elf, uint64_t at, struct sg_elf_section *section) {
    struct sg_bytes header;
    if (!sg_bytes_slice(elf->bytes, at, SECTION_HEADER, &header))
        return false;
    section->type = (uint32_t)sg_bytes_number(header, 4, 4);
    section->link = (uint32_t)sg_bytes_number(header, 40, 4);
    section->info = (uint32_t)sg_bytes_number(header, 44, 4);
    section->size = sg_bytes_number(header, 32, 8);
    section->alignment = sg_bytes_number(header, 48, 8);
    if (has_no_bytes(section->type))
        return true;
    return sg_bytes_slice(elf->bytes, sg_bytes_number(header, 24, 8), section->size,
                          &section->bytes);
}

static CUresult name_sections(struct sg_elf *elf, uint64_t table) {
    size_t names = (size_t)sg_bytes_number(elf->bytes, 62, 2), found;
    if (names >= elf->section_count)
        return CUDA_ERROR_INVALID_IMAGE;
    uint64_t budget = NAME_SHARE * elf->bytes.size;
    for (size_t i = 0; i < elf->section_count; i++) {
        uint64_t name = sg_bytes_number(elf->bytes, table + i * SECTION_HEADER, 4);
        elf->sections[i].name = sg_bytes_name(elf->sections[names].bytes, name, &budget);
        if (!elf->sections[i].name && elf->sections[i].type != SHT_NULL)
            return CUDA_ERROR_INVALID_IMAGE;
    }
    for (size_t i = 0; i < elf->section_count; i++) {
        const char *name = elf->sections[i].name;
        if (name && !sg_names_add(&elf->names, 0, name, strlen(name), i, &found))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult sg_elf_read_sections(struct sg_elf *elf) {
    uint64_t table = sg_bytes_number(elf->bytes, 40, 8), count = sg_bytes_number(elf->bytes, 60, 2);
    struct sg_bytes all;
    if (count == 0 || sg_bytes_number(elf->bytes, 58, 2) != SECTION_HEADER ||
        !sg_bytes_slice(elf->bytes, table, count * SECTION_HEADER, &all))
        return CUDA_ERROR_INVALID_IMAGE;
    elf->sections = calloc(count, sizeof *elf->sections);
    if (!elf->sections)
        return CUDA_ERROR_OUT_OF_MEMORY;
    elf->section_count = count;
    for (size_t i = 0; i < count; i++) {
        if (!read_section(elf, table + i * SECTION_HEADER, &elf->sections[i]))
            return CUDA_ERROR_INVALID_IMAGE;
    }
    return name_sections(elf, table);
}

const struct sg_elf_section *sg_elf_section(const struct sg_elf *elf, const char *prefix,
                                            const char *name) {
    size_t length = strlen(prefix) + strlen(name), index;
    char small[256], *text = length < sizeof small ? small : malloc(length + 1);
    if (!text)
        return NULL;
    stpcpy(stpcpy(text, prefix), name);
    bool found = sg_names_find(&elf->names, 0, text, length, &index);
    if (text != small)
        free(text);
    return found ? &elf->sections[index] : NULL;
}

/* ---- symbols --------------------------------------------------------------------------------- */

static CUresult read_symbols(struct sg_elf *elf, const struct sg_elf_section *table) {
    size_t count = (size_t)(table->bytes.size / SYMBOL);
    if (table->link >= elf->section_count)
        return CUDA_ERROR_INVALID_IMAGE;
    struct sg_bytes names = elf->sections[table->link].bytes;
    elf->symbols = calloc(count + 1, sizeof *elf->symbols);
    if (!elf->symbols)
        return CUDA_ERROR_OUT_OF_MEMORY;
    elf->symbol_count = count;
    uint64_t budget = NAME_SHARE * elf->bytes.size;
    for (size_t i = 0; i < count; i++) {
        struct sg_elf_symbol *symbol = &elf->symbols[i];
        struct sg_bytes raw = {table->bytes.data + i * SYMBOL, SYMBOL};
        symbol->name = sg_bytes_name(names, sg_bytes_number(raw, 0, 4), &budget);
        symbol->type = raw.data[4] & 15;
        symbol->binding = raw.data[4] >> 4;
        symbol->other = raw.data[5];
        symbol->section = (unsigned)sg_bytes_number(raw, 6, 2);
        symbol->value = sg_bytes_number(raw, 8, 8);
        symbol->size = sg_bytes_number(raw, 16, 8);
        if (!symbol->name)
            return CUDA_ERROR_INVALID_IMAGE;
    }
    return CUDA_SUCCESS;
}

CUresult sg_elf_open(struct sg_bytes bytes, struct sg_elf *elf) {
    *elf = (struct sg_elf){.bytes = bytes};
    CUresult result = check_header(bytes);
    if (result != CUDA_SUCCESS)
        return result;
    elf->type = (unsigned)sg_bytes_number(bytes, 16, 2);
    elf->flags = (uint32_t)sg_bytes_number(bytes, 48, 4);
    elf->system = bytes.data[EI_OSABI];
    elf->segments = (unsigned)sg_bytes_number(bytes, 56, 2);
    result = sg_elf_read_sections(elf);
    for (size_t i = 0; result == CUDA_SUCCESS && i < elf->section_count; i++) {
        if (elf->sections[i].type == SHT_SYMTAB && !elf->symbols)
            result = read_symbols(elf, &elf->sections[i]);
    }
    if (result == CUDA_SUCCESS && !elf->symbols)
        return CUDA_ERROR_INVALID_IMAGE;
    return result;
}

void sg_elf_close(struct sg_elf *elf) {
    free(elf->sections);
    free(elf->symbols);
    sg_names_clear(&elf->names);
}
