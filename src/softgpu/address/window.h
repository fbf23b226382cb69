/*
 * Device addresses: windows of 64 GiB of inaccessible address space, each with its page table,
 * found through a directory that sg_translate reads without the lock. Windows are never given back.
 */
#ifndef SG_ADDRESS_WINDOW_H
#define SG_ADDRESS_WINDOW_H

#include "softgpu/address/memory.h"

#define SG_WINDOW_SHIFT 36
#define SG_WINDOW       ((uint64_t)1 << SG_WINDOW_SHIFT)
#define SG_WINDOW_PAGES (SG_WINDOW / SG_PAGE)
#define SG_PAGE_SHIFT   21
/* User space of x86_64 and of aarch64 with 48-bit tables begins below this. */
#define SG_ADDRESS_BITS 47
#define SG_WINDOW_LIMIT (1u << (SG_ADDRESS_BITS - SG_WINDOW_SHIFT))

struct sg_window {
    _Atomic uint64_t entries[SG_WINDOW_PAGES]; /* pagetable.h */
};

/* The window that contains an address, or NULL. Lock-free. */
struct sg_window *sg_window_find(CUdeviceptr address);

/*
 * Takes addresses: size and align are multiples of SG_PAGE, align a power of two. A hint (0: none)
 * is honoured if it is aligned and free. OUT_OF_MEMORY if the address-space limit or the machine
 * has no more. Requires the lock.
 */
CUresult sg_addresses_take(size_t size, size_t align, CUdeviceptr hint, CUdeviceptr *address);
void sg_addresses_give(CUdeviceptr address, size_t size);

#endif
