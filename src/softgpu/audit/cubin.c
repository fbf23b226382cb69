/*
 * A cubin that holds its PTX: NVIDIA's machine code as it is, with one section more at its end.
 * Headers and names are written anew behind the rest, so that nothing else moves, and the file is
 * as before once the last section is no longer counted.
 */
#include "audit.h"

#include <stdlib.h>
#include <string.h>

#define ENDS_AT 8 /* alignment of what is appended */

/* An ELF64 of a GPU's whose section headers and their names are within it. */
struct cubin {
    struct audit_bytes bytes;
    Elf64_Ehdr header;
    Elf64_Shdr names; /* the section of names */
};

static bool within(struct audit_bytes bytes, uint64_t offset, uint64_t size) {
    return offset <= bytes.size && size <= bytes.size - offset;
}

static Elf64_Shdr section_of(const struct cubin *cubin, unsigned number) {
    Elf64_Shdr section;
    memcpy(&section, cubin->bytes.data + cubin->header.e_shoff + number * sizeof section,
           sizeof section);
    return section;
}

static bool open_cubin(struct audit_bytes bytes, struct cubin *cubin) {
    cubin->bytes = bytes;
    if (bytes.size < sizeof cubin->header || memcmp(bytes.data, ELFMAG, SELFMAG) != 0 ||
        bytes.data[EI_CLASS] != ELFCLASS64)
        return false;
    memcpy(&cubin->header, bytes.data, sizeof cubin->header);
    if (cubin->header.e_machine != EM_CUDA || cubin->header.e_shentsize != sizeof cubin->names ||
        cubin->header.e_shstrndx >= cubin->header.e_shnum ||
        !within(bytes, cubin->header.e_shoff, cubin->header.e_shnum * sizeof cubin->names))
        return false;
    cubin->names = section_of(cubin, cubin->header.e_shstrndx);
    return within(bytes, cubin->names.sh_offset, cubin->names.sh_size) && cubin->names.sh_size &&
           !bytes.data[cubin->names.sh_offset + cubin->names.sh_size - 1];
}

bool audit_cubin_section(struct audit_bytes bytes, const char *name, struct audit_bytes *found) {
    struct cubin cubin;
    if (!open_cubin(bytes, &cubin))
        return false;
    for (unsigned i = cubin.header.e_shnum; i-- > 0;) {
        Elf64_Shdr section = section_of(&cubin, i);
        const char *names = (const char *)bytes.data + cubin.names.sh_offset;
        if (section.sh_name >= cubin.names.sh_size || strcmp(names + section.sh_name, name) != 0 ||
            !within(bytes, section.sh_offset, section.sh_size))
            continue;
        *found = (struct audit_bytes){bytes.data + section.sh_offset, section.sh_size};
        return true;
    }
    return false;
}

unsigned audit_cubin_type(struct audit_bytes bytes) {
    struct cubin cubin;
    return open_cubin(bytes, &cubin) && cubin.header.e_shnum < SHN_LORESERVE - 1
               ? cubin.header.e_type
               : ET_NONE;
}

static size_t aligned(size_t at) {
    return (at + ENDS_AT - 1) & ~(size_t)(ENDS_AT - 1);
}

unsigned char *audit_cubin_with(struct audit_bytes bytes, const char *name,
                                struct audit_bytes content, size_t *size) {
    struct cubin cubin;
    if (!open_cubin(bytes, &cubin))
        return NULL;
    unsigned count = cubin.header.e_shnum;
    size_t names = bytes.size, named = cubin.names.sh_size + strlen(name) + 1;
    size_t text = aligned(names + named), headers = aligned(text + content.size);
    size_t whole = headers + (count + 1) * sizeof cubin.names;
    unsigned char *made = calloc(1, whole);
    if (!made)
        return NULL;
    Elf64_Shdr added = {.sh_name = (Elf64_Word)cubin.names.sh_size,
                        .sh_type = SHT_PROGBITS,
                        .sh_offset = text,
                        .sh_size = content.size,
                        .sh_addralign = ENDS_AT};
    memcpy(made, bytes.data, bytes.size);
    memcpy(made + names, bytes.data + cubin.names.sh_offset, cubin.names.sh_size);
    strcpy((char *)made + names + cubin.names.sh_size, name);
    memcpy(made + text, content.data, content.size);
    memcpy(made + headers, bytes.data + cubin.header.e_shoff, count * sizeof added);
    memcpy(made + headers + count * sizeof added, &added, sizeof added);
    cubin.names.sh_offset = names;
    cubin.names.sh_size = named;
    memcpy(made + headers + cubin.header.e_shstrndx * sizeof added, &cubin.names, sizeof added);
    cubin.header.e_shoff = headers;
    cubin.header.e_shnum = (Elf64_Half)(count + 1);
    memcpy(made, &cubin.header, sizeof cubin.header);
    *size = whole;
    return made;
}

void audit_cubin_without(unsigned char *bytes, size_t size, const char *name) {
    struct cubin cubin;
    if (!open_cubin((struct audit_bytes){bytes, size}, &cubin))
        return;
    Elf64_Shdr last = section_of(&cubin, cubin.header.e_shnum - 1u);
    if (last.sh_name < cubin.names.sh_size &&
        strcmp((const char *)bytes + cubin.names.sh_offset + last.sh_name, name) == 0)
        cubin.header.e_shnum--;
    memcpy(bytes, &cubin.header, sizeof cubin.header);
}

/* The headers of a fatbin, 16 bytes, and of an entry, as src/softgpu/binary/fatbin.c reads them. */
static uint64_t number(struct audit_bytes from, size_t at, unsigned width) {
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)from.data[at + i] << 8 * i;
    return value;
}

bool audit_fatbin_cubin(struct audit_bytes fatbin, unsigned architecture, size_t *at,
                        struct audit_bytes *cubin) {
    const uint64_t compressed = 0xa000, most = UINT32_MAX;
    if (fatbin.size < 16 || number(fatbin, 0, 4) != 0xba55ed50)
        return false;
    for (uint64_t entry = number(fatbin, 6, 2); within(fatbin, entry, 64);) {
        uint64_t header = number(fatbin, entry + 4, 4), size = number(fatbin, entry + 8, 8);
        *at = entry + header;
        if (header < 64 || size > most || !within(fatbin, *at, size))
            return false;
        *cubin = (struct audit_bytes){fatbin.data + *at, size};
        if (number(fatbin, entry, 2) == 2 && number(fatbin, entry + 28, 4) == architecture &&
            !(number(fatbin, entry + 40, 4) & compressed))
            return true;
        entry = *at + size;
    }
    return false;
}
