/*
 * Objects: physical memory without bytes of its own (SG_PHYS_OBJECT). A multicast object is one.
 *
 * The page table entries of its mappings name the object and the page in it and are not "mapped",
 * so that loads fault. Stores ask the object's operations where they go.
 */
#ifndef SG_ADDRESS_OBJECT_H
#define SG_ADDRESS_OBJECT_H

#include "softgpu/address/memory.h"

/* Of the chapter that makes the object, for all of its kind. */
struct sg_phys_ops {
    /* With the lock. */

    /* Its last reference is gone: to be ended with sg_object_end once no running work can have it.
     */
    void (*end)(struct sg_phys *phys);
    /* Whether it can be mapped yet. When not, waits a while and answers false: the lock was
     * released meanwhile, so that the caller looks its handles up again before it asks again, for
     * they may be gone, and exit may have begun. `told` begins as false and is the caller's: one
     * line of the log for each call. */
    bool (*ready)(const struct sg_phys *phys, bool *told);
    /* May a device be given access to its mappings? */
    bool (*reaches)(const struct sg_phys *phys, int device);

    /* Without the lock, between sg_work_begin and sg_work_end. */

    /* The bytes that a store to a page is made to; NULL when there are none yet. */
    unsigned char *(*bytes)(const struct sg_phys *phys, size_t page);
    /* What was stored there, at `inner` of the page, to all others that shall have it. */
    void (*spread)(const struct sg_phys *phys, size_t page, size_t inner,
                   const unsigned char *bytes, size_t size);
};

/* Objects that live at a time. */
#define SG_OBJECT_LIMIT 4096u

/* With the lock: gives the object the number that its mappings name. False when there are too many.
 */
bool sg_object_begin(struct sg_phys *phys);
void sg_object_end(const struct sg_phys *phys);
/* What a mapping of all of it is in the page table, without rights. */
void sg_object_map(const struct sg_phys *phys, CUdeviceptr address, size_t size);

/* Without the lock, between sg_work_begin and sg_work_end: for stores where sg_translate finds
 * nothing. */

/* Where a store of `device` to `address` goes first, and in *span how many bytes follow (<= want);
 * NULL when the device may not write there, and where no object is mapped. */
unsigned char *sg_object_bytes(int device, CUdeviceptr address, size_t want, size_t *span);
/* What was stored there, `size` bytes of at most what *span said, to the others. Does nothing where
 * no object is mapped. */
void sg_object_spread(CUdeviceptr address, const unsigned char *bytes, size_t size);

#endif
