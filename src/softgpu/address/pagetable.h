/*
 * The page table: for each 2 MiB of device address, the distance to the host bytes and which
 * devices may access them.
 *
 * An entry is the distance (host address minus device address, a multiple of 2 MiB) with, in the
 * low 21 bits that are thus free, bit 0 for "mapped" and two bits (SG_READ, SG_WRITE) per device
 * from bit 1. A running operation reads entries while another thread edits them: each entry is one
 * atomic word.
 */
#ifndef SG_ADDRESS_PAGETABLE_H
#define SG_ADDRESS_PAGETABLE_H

#include "softgpu/address/memory.h"

/* The rights of all devices at once, as they stand in an entry. */
typedef uint32_t sg_rights;

static inline sg_rights sg_rights_of(int device, unsigned rights) {
    return (sg_rights)rights << (2 * device);
}

/* Read and write for each device of a bit mask. */
sg_rights sg_rights_of_mask(unsigned devices);

/* Addresses and sizes are multiples of SG_PAGE, inside windows. These require the lock. */
void sg_table_map(CUdeviceptr address, size_t size, const unsigned char *host, sg_rights rights);
void sg_table_unmap(CUdeviceptr address, size_t size);
/* Replaces the rights of the devices in `mask` (an sg_rights with both bits set for each). */
void sg_table_rights(CUdeviceptr address, size_t size, sg_rights mask, sg_rights rights);
/* Entries that name an object (address/object.h; below 2^16) and the page in it instead of bytes;
 * not mapped, so that sg_translate does not find them. */
void sg_table_map_object(CUdeviceptr address, size_t size, unsigned object);
/* Lock-free: false if the page is not one of these. */
bool sg_table_object(CUdeviceptr address, unsigned *object, size_t *page, sg_rights *rights);
/* Rights of one page; *mapped may be NULL. */
sg_rights sg_table_get(CUdeviceptr address, bool *mapped);
/* A number that is another one after each change of the table: what was found before may not hold
 * any more. Lock-free. */
uint64_t sg_table_state(void);
/* Another number, after a change of what the table does not have: access between contexts.
 * Lock-free. */
void sg_table_changed(void);
/* Moves the host side of a mapped range, keeping rights. */
void sg_table_move(CUdeviceptr address, size_t size, const unsigned char *host);

#endif
