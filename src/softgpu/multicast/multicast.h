/*
 * Multicast objects: a store through their mapping reaches the memory that each device of a team
 * has bound there.
 *
 * An object is physical memory without bytes (SG_PHYS_TEAM), so that handles, mappings and access
 * rights are those of all other memory. The page table entry of its mapping names team and page;
 * the team knows for each page the bytes of each member. Only stores go through it: what a load
 * would answer is undefined, so copies from it are refused, and everything else that reads it
 * faults.
 */
#ifndef SG_MULTICAST_MULTICAST_H
#define SG_MULTICAST_MULTICAST_H

#include "softgpu/address/memory.h"
#include "softgpu/core/chapter.h"

/* Objects that live at a time. */
#define SG_TEAM_LIMIT 4096u

/* With the lock. */

/* Called by sg_phys_unref for the last reference of a SG_PHYS_TEAM. */
void sg_multicast_end(struct sg_phys *phys);
/* Whether all of the team's devices are there. Waits a while when not, and answers false: the lock
 * was released meanwhile, so that the caller looks its handles up again before it asks again, for
 * they may be gone, and exit may have begun. `told` begins as false and is the caller's: one line
 * of the log for each call. */
bool sg_multicast_complete(const struct sg_phys *phys, bool *told);
/* What a mapping of the object is in the page table. */
void sg_multicast_map(const struct sg_phys *phys, CUdeviceptr address, size_t size);
bool sg_multicast_has_device(const struct sg_phys *phys, int device);

/* Without the lock, between sg_work_begin and sg_work_end: for stores. */

/* The bytes of the first member behind `address`, and in *span how many follow (<= want); NULL when
 * `device` may not write there, when it is no multicast mapping, or a member has bound nothing. */
unsigned char *sg_multicast_bytes(int device, CUdeviceptr address, size_t want, size_t *span);
/* What was stored there, `size` bytes of at most what *span said, to the other members. */
void sg_multicast_spread(CUdeviceptr address, const unsigned char *bytes, size_t size);

extern const struct sg_chapter sg_multicast_chapter;

#endif
