/*
 * Descriptors of device memory that the CPU can map, without the kernel's /dev/udmabuf: memory
 * files in which the bytes of a range begin at 0.
 *
 * The memory of a device is in one file, and that of each exportable handle in another, so the
 * range's pages move into a file of their own when they are first exported; softgpu itself reaches
 * them only through their view, which does not move. A whole handle that can be exported is such a
 * file already. A page can be in only one such file, so ranges that begin at the same page share a
 * file, which grows; a range that overlaps but begins elsewhere is refused for as long as anybody
 * has the file.
 */
#ifndef SG_ADDRESS_DMA_FILE_H
#define SG_ADDRESS_DMA_FILE_H

#include "softgpu/address/memory.h"

/* Contiguous bytes of physical memory. */
struct sg_dma_piece {
    struct sg_phys *phys;
    size_t offset, size; /* multiples of the machine's page */
};

/*
 * Returns a descriptor for the bytes of these pieces, in order; the caller owns it. Blocks, with
 * the lock released, until no operation runs, then calls `still` to check that the pieces have not
 * changed. Errors are logged: NOT_SUPPORTED for memory that cannot be moved because other processes
 * may have it, and for pages that are in another file; OUT_OF_MEMORY; INVALID_VALUE when `still`
 * returns false.
 */
CUresult sg_dma_file_export(const struct sg_dma_piece *pieces, size_t count,
                            bool (*still)(void *user), void *user, int *fd);

/* Called before memory of a device's file that has moved is freed: maps that file under its view
 * again, without the bytes. If that fails, returns false and the pages are lost. */
bool sg_dma_file_end(struct sg_phys *phys);
/* The same for memory with a file of its own, which ends, too. */
void sg_dma_file_forget(const struct sg_phys *phys);
/* Moves all pages of such memory back. Blocks as sg_dma_file_export does. NOT_SUPPORTED, logged,
 * while somebody has a DMA buffer of them; OUT_OF_MEMORY. */
CUresult sg_dma_file_return(struct sg_phys *phys);

#endif
