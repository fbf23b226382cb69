/* Physical memory, for the rest of the chapter: see memory.h. */
#ifndef SG_ADDRESS_PHYS_H
#define SG_ADDRESS_PHYS_H

#include "softgpu/address/memory.h"

/* What follows the bytes in the memory file of exportable memory. */
struct sg_share_trailer {
    char magic[16];
    uint32_t version;
    uint32_t reserved;
    uint64_t size; /* of the bytes */
    CUuuid device; /* zero for host memory */
    CUmemAllocationProp prop;
};
#define SG_SHARE_MAGIC   "softgpu memory\n"
#define SG_SHARE_VERSION 1u
#define SG_SHARE_PAGE    ((size_t)4096)

/*
 * The memory of an exported file. `fd` is duplicated and remains the caller's. The same file
 * imported twice, or by its exporter, gives the same object. UNKNOWN (as on H200) for anything that
 * is not such a file, with the reason logged; INVALID_DEVICE for memory of a device that this
 * process does not have.
 */
CUresult sg_phys_import(int fd, struct sg_phys **phys);
/* Is the memory in such a file, so that others can import it? */
bool sg_phys_has_own_file(const struct sg_phys *phys);
/* Does the descriptor refer to such a file? */
bool sg_phys_exported(int fd);

/* Fills with the pattern of fresh or freed memory if SOFTGPU_POISON is set. */
#define SG_POISON_FRESH 0xcd
#define SG_POISON_FREED 0xdd
void sg_poison(unsigned char *bytes, size_t size, int pattern);

#endif
