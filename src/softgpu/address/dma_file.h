/*
 * Descriptors of device memory that the CPU can map, without the kernel's /dev/udmabuf: memory
 * files in which the bytes of a range begin at 0.
 *
 * The memory of a device lies in one file, so the range's pages move into a file of their own when
 * they are first exported; everything that softgpu does reaches them by their view, which stays. A
 * page can be in one such file only. So ranges that begin at the same page share a file, which
 * grows; one that overlaps and begins elsewhere is refused for as long as somebody has the file.
 */
#ifndef SG_ADDRESS_DMA_FILE_H
#define SG_ADDRESS_DMA_FILE_H

#include "softgpu/address/memory.h"

/* Bytes of physical memory that lie side by side. */
struct sg_dma_piece {
    struct sg_phys *phys;
    size_t offset, size; /* multiples of the machine's page */
};

/*
 * A descriptor for the bytes of these pieces, in their order; the caller's. Blocks, with the lock
 * released, until no operation runs: `still` is asked then whether the pieces are what they were.
 * Errors are logged: NOT_SUPPORTED for memory that cannot be moved because other processes may have
 * it, and for pages that are in another file; OUT_OF_MEMORY; INVALID_VALUE when `still` says no.
 */
CUresult sg_dma_file_export(const struct sg_dma_piece *pieces, size_t count,
                            bool (*still)(void *user), void *user, int *fd);

/* Before the end of memory that has moved: its own file is put back under its view, without the
 * bytes. False when that fails: then its pages are lost. */
bool sg_dma_file_end(struct sg_phys *phys);

#endif
