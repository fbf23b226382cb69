/* The ELF that a link produces. Its header is that of ptxas of CUDA 13.0, and it is checked like a
 * cubin; its sections are those without which it would not be read, and softgpu's own. */
#include "softgpu/binary/container.h"
#include "softgpu/binary/cubin.h"

#include <elf.h>
#include <string.h>

#define HEADER         64
#define SECTION_HEADER 64
#define SYMBOL         24
#define PROGRAM        4    /* the number of softgpu's section */
#define SYSTEM         0x41 /* EI_OSABI and EI_ABIVERSION, as ptxas writes them */
#define SYSTEM_VERSION 8
#define FLAGS          0x06000000u /* the two bytes in the middle are the architecture */

struct section {
    const char *name;
    uint32_t type, link, info;
    uint64_t alignment, entry;
    struct sg_bytes bytes;
    uint64_t offset;
};

static uint64_t aligned(uint64_t offset, uint64_t alignment) {
    return (offset + alignment - 1) & ~(alignment - 1);
}

static void pad(struct sg_container_writer *to, uint64_t alignment) {
    while (!to->failed && to->size % alignment != 0)
        sg_container_put_number(to, 0, 1);
}

static void put_header(struct sg_container_writer *to, unsigned architecture, uint64_t table,
                       size_t count) {
    const unsigned char identity[EI_NIDENT] = {ELFMAG0,    ELFMAG1,    ELFMAG2,
                                               ELFMAG3,    ELFCLASS64, ELFDATA2LSB,
                                               EV_CURRENT, SYSTEM,     SYSTEM_VERSION};
    sg_container_put(to, identity, sizeof identity);
    sg_container_put_number(to, ET_EXEC, 2);
    sg_container_put_number(to, EM_CUDA, 2);
    sg_container_put_number(to, EV_CURRENT, 4);
    sg_container_put_number(to, 0, 8); /* entry point */
    sg_container_put_number(to, 0, 8); /* program headers: none */
    sg_container_put_number(to, table, 8);
    sg_container_put_number(to, FLAGS | (architecture & 0xffff) << 8 | (architecture < 100 ? 4 : 2),
                            4);
    sg_container_put_number(to, HEADER, 2);
    sg_container_put_number(to, 0, 2);
    sg_container_put_number(to, 0, 2);
    sg_container_put_number(to, SECTION_HEADER, 2);
    sg_container_put_number(to, count, 2);
    sg_container_put_number(to, 1, 2); /* the section of their names */
}

static void put_section_header(struct sg_container_writer *to, const struct section *section,
                               uint64_t name) {
    sg_container_put_number(to, name, 4);
    sg_container_put_number(to, section->type, 4);
    sg_container_put_number(to, 0, 8); /* flags */
    sg_container_put_number(to, 0, 8); /* address */
    sg_container_put_number(to, section->offset, 8);
    sg_container_put_number(to, section->bytes.size, 8);
    sg_container_put_number(to, section->link, 4);
    sg_container_put_number(to, section->info, 4);
    sg_container_put_number(to, section->alignment, 8);
    sg_container_put_number(to, section->entry, 8);
}

static void put_file(struct sg_container_writer *to, unsigned architecture,
                     struct section *sections, size_t count) {
    uint64_t end = HEADER, name = 0;
    for (size_t i = 1; i < count; i++) {
        sections[i].offset = aligned(end, sections[i].alignment);
        end = sections[i].offset + sections[i].bytes.size;
    }
    put_header(to, architecture, aligned(end, 8), count);
    for (size_t i = 1; i < count; i++) {
        pad(to, sections[i].alignment);
        sg_container_put(to, sections[i].bytes.data, sections[i].bytes.size);
    }
    pad(to, 8);
    for (size_t i = 0; i < count; i++) {
        put_section_header(to, &sections[i], name);
        name += strlen(sections[i].name) + 1;
    }
}

/* Kernels as ptxas marks them, but without code: each is in softgpu's section, at its beginning and
 * of no size. */
static void put_symbols(struct sg_container_writer *to, struct sg_bytes names) {
    static const unsigned char none[SYMBOL];
    sg_container_put(to, none, sizeof none);
    for (size_t at = 0; at < names.size; at += strlen((const char *)names.data + at) + 1) {
        sg_container_put_number(to, at + 1, 4);
        sg_container_put_number(to, STB_GLOBAL << 4 | STT_FUNC, 1);
        sg_container_put_number(to, SG_CUBIN_ENTRY, 1);
        sg_container_put_number(to, PROGRAM, 2);
        sg_container_put_number(to, 0, 8);
        sg_container_put_number(to, 0, 8);
    }
}

static struct sg_bytes bytes_of(const struct sg_container_writer *written) {
    return (struct sg_bytes){written->bytes, written->size};
}

void sg_container_put_elf(struct sg_container_writer *to, unsigned architecture, bool specific,
                          struct sg_bytes names, struct sg_bytes program) {
    static const unsigned char for_this_alone[] = {2, 9, 1, 0};
    struct section sections[] = {
        {.name = ""},
        {.name = ".shstrtab", .type = SHT_STRTAB, .alignment = 1},
        {.name = ".strtab", .type = SHT_STRTAB, .alignment = 1},
        {.name = ".symtab",
         .type = SHT_SYMTAB,
         .link = 2,
         .info = 1,
         .alignment = 8,
         .entry = SYMBOL},
        [PROGRAM] = {.name = SG_CONTAINER_SECTION,
                     .type = SHT_PROGBITS,
                     .alignment = 8,
                     .bytes = program},
        {.name = ".nv.compat",
         .type = SHT_LOPROC + 0x86,
         .alignment = 4,
         .bytes = {for_this_alone, sizeof for_this_alone}},
    };
    size_t count = specific ? 6 : 5;
    struct sg_container_writer section_names = {0}, symbol_names = {0}, symbols = {0};
    for (size_t i = 0; i < count; i++)
        sg_container_put(&section_names, sections[i].name, strlen(sections[i].name) + 1);
    sg_container_put_number(&symbol_names, 0, 1);
    sg_container_put(&symbol_names, names.data, names.size);
    put_symbols(&symbols, names);
    sections[1].bytes = bytes_of(&section_names);
    sections[2].bytes = bytes_of(&symbol_names);
    sections[3].bytes = bytes_of(&symbols);
    if (section_names.failed || symbol_names.failed || symbols.failed)
        to->failed = true;
    else
        put_file(to, architecture, sections, count);
    sg_container_free(&section_names);
    sg_container_free(&symbol_names);
    sg_container_free(&symbols);
}
