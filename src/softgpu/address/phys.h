/* Physical memory, for the rest of the chapter: see memory.h. */
#ifndef SG_ADDRESS_PHYS_H
#define SG_ADDRESS_PHYS_H

#include "softgpu/address/memory.h"

/*
 * The memory of an exported file. `fd` is duplicated and remains the caller's. The same file
 * imported twice, or by its exporter, gives the same object. UNKNOWN (as on H200) for anything that
 * is not such a file, with the reason logged; INVALID_DEVICE for memory of a device that this
 * process does not have.
 */
CUresult sg_phys_import(int fd, struct sg_phys **phys);
/* Is the memory in such a file, so that others can import it? */
bool sg_phys_has_own_file(const struct sg_phys *phys);
/* Its descriptor is about to be given to others, from when on its pages stay where they are. Those
 * that a DMA buffer has moved (dma_file.h) come back: blocks for that, with the lock released,
 * until no operation runs. NOT_SUPPORTED while somebody has the buffer; OUT_OF_MEMORY. */
CUresult sg_phys_give(struct sg_phys *phys);
/* Does the descriptor refer to such a file? */
bool sg_phys_exported(int fd);

/* Fills with the pattern of fresh or freed memory if SOFTGPU_POISON is set. */
#define SG_POISON_FRESH 0xcd
#define SG_POISON_FREED 0xdd
void sg_poison(unsigned char *bytes, size_t size, int pattern);

#endif
