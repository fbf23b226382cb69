/* The reader of cubins, in parts: the ELF's sections and symbols, and what they say about functions
 * and variables. */
#ifndef SG_BINARY_CUBIN_H
#define SG_BINARY_CUBIN_H

#include "softgpu/image/reader.h"

struct sg_elf_section {
    const char *name;
    uint32_t type, link, info;
    uint64_t size, alignment;
    struct sg_bytes bytes; /* empty for a section that has only a size */
};

struct sg_elf_symbol {
    const char *name;
    uint64_t value, size;
    unsigned type, binding, other, section;
};

/* An ELF64 whose headers, sections, names and symbols are within its bytes. */
struct sg_elf {
    struct sg_bytes bytes;
    unsigned type; /* 1 for relocatable, 2 for a whole program */
    uint32_t flags;
    unsigned system;   /* SG_CUBIN_SYSTEM or SG_CUBIN_SYSTEM_OLD */
    unsigned segments; /* the number of program headers it claims */
    struct sg_elf_section *sections;
    size_t section_count;
    struct sg_elf_symbol *symbols;
    size_t symbol_count;
    struct sg_name_table names; /* scope 0: sections by name */
};

/* The PTX that machine code was made from, put there by the auditor of gpumem run; a zero ends it.
 */
#define SG_TEXT_SECTION ".softgpu.ptx"

/* EI_OSABI as CUDA 12 writes it up to sm_90, and as CUDA 13 always writes it. */
enum { SG_CUBIN_SYSTEM_OLD = 0x33, SG_CUBIN_SYSTEM = 0x41 };

/* What an H200 answers to such a header; INVALID_IMAGE when something points outside;
 * OUT_OF_MEMORY. Call sg_elf_close in any case. */
CUresult sg_elf_open(struct sg_bytes bytes, struct sg_elf *elf);
void sg_elf_close(struct sg_elf *elf);
/* For an ELF64 for any machine, with its bytes set: reads only its sections. Call sg_elf_close in
 * any case. */
CUresult sg_elf_read_sections(struct sg_elf *elf);
/* The section `prefix` + `name`; NULL when there is none. */
const struct sg_elf_section *sg_elf_section(const struct sg_elf *elf, const char *prefix,
                                            const char *name);

struct sg_cubin {
    struct sg_elf elf;
    const struct sg_image_options *options;
    struct sg_image_log *log;
    struct sg_image *image;
    size_t *entry_of; /* symbol to function of the image, + 1 */
};
CUresult sg_cubin_functions(struct sg_cubin *cubin);
CUresult sg_cubin_variables(struct sg_cubin *cubin);
/* For linkers. */
CUresult sg_cubin_calls(struct sg_cubin *cubin);
/* Of code to be linked: sets `lacks` of the image's functions, and `unplaced`. */
CUresult sg_cubin_lacks(struct sg_cubin *cubin);

/* Symbol types beyond ELF's, and bits of st_other, as found in the output of ptxas. */
enum {
    SG_CUBIN_TEXTURE = 10,
    SG_CUBIN_SAMPLER = 11,
    SG_CUBIN_SURFACE = 12,
    SG_CUBIN_OBJECT = 13, /* a variable of a relocatable file */
    SG_CUBIN_MANAGED = 0x04,
    SG_CUBIN_ENTRY = 0x10,
    SG_CUBIN_SHARED = 0x40 /* a variable in shared memory */
};

#endif
