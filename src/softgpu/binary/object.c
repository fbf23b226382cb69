/* A host compiler's objects: ELFs with fatbins in a section. Based on nvcc of CUDA 13.0. */
#include "softgpu/binary/archive.h"
#include "softgpu/binary/cubin.h"
#include "softgpu/binary/read.h"

#include <elf.h>
#include <string.h>

#define SECTION "__nv_relfatbin"

bool sg_object_is(struct sg_bytes bytes) {
    return bytes.size >= sizeof(Elf64_Ehdr) && memcmp(bytes.data, ELFMAG, SELFMAG) == 0 &&
           bytes.data[EI_CLASS] == ELFCLASS64 && bytes.data[EI_DATA] == ELFDATA2LSB &&
           sg_bytes_number(bytes, 18, 2) != EM_CUDA;
}

/* Where a linker has joined objects (ld -r), fatbins follow each other with zeros between them.
 * nvlink takes none from such an object; here all of them count. */
static CUresult each_in_section(struct sg_bytes section,
                                CUresult (*visit)(struct sg_bytes fatbin, void *user), void *user) {
    CUresult result = CUDA_SUCCESS;
    for (uint64_t at = 0, extent; at < section.size && result == CUDA_SUCCESS; at += extent) {
        struct sg_bytes rest, fatbin;
        extent = 4;
        if (!sg_bytes_slice(section, at, section.size - at, &rest))
            return CUDA_ERROR_INVALID_IMAGE;
        if (sg_bytes_number(rest, 0, 4) == 0)
            continue;
        if (sg_bytes_number(rest, 0, 4) != SG_FATBIN_MAGIC ||
            !sg_fatbin_extent(rest.data, rest.size, &extent) ||
            !sg_bytes_slice(rest, 0, extent, &fatbin))
            return CUDA_ERROR_INVALID_IMAGE;
        result = visit(fatbin, user);
    }
    return result;
}

CUresult sg_object_each_fatbin(struct sg_bytes object,
                               CUresult (*visit)(struct sg_bytes fatbin, void *user), void *user) {
    struct sg_elf elf = {.bytes = object};
    CUresult result = sg_elf_read_sections(&elf);
    for (size_t i = 0; i < elf.section_count && result == CUDA_SUCCESS; i++) {
        const struct sg_elf_section *section = &elf.sections[i];
        if (section->name && strcmp(section->name, SECTION) == 0)
            result = each_in_section(section->bytes, visit, user);
    }
    sg_elf_close(&elf);
    return result;
}
