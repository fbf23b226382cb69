/*
 * Objects: physical memory without bytes of its own (SG_PHYS_OBJECT). A multicast object is one.
 *
 * The page table entries of its mappings name the object and the page in it and are not "mapped",
 * so that loads fault. For stores, the object's operations supply the destination.
 */
#ifndef SG_ADDRESS_OBJECT_H
#define SG_ADDRESS_OBJECT_H

#include "softgpu/address/memory.h"

/* Provided by the chapter that creates the object, one table for each kind. */
struct sg_phys_ops {
    /* Called with the lock held. */

    /* Its last reference is gone: must call sg_object_end once no running work can use it. */
    void (*end)(struct sg_phys *phys);
    /* Whether it can be mapped yet. If not, waits a while and returns false: the lock was released
     * meanwhile, so the caller must look its handles up again before it retries, as they may be
     * gone and exit may have begun. `told` is the caller's, initially false; it limits the log to
     * one line per call. */
    bool (*ready)(const struct sg_phys *phys, bool *told);
    /* May a device be given access to its mappings? */
    bool (*reaches)(const struct sg_phys *phys, int device);

    /* Without the lock, between sg_work_begin and sg_work_end. */

    /* The bytes that a store to a page writes to; NULL if there are none yet. */
    unsigned char *(*bytes)(const struct sg_phys *phys, size_t page);
    /* Copies what was stored there, at offset `inner` of the page, to all other destinations. */
    void (*spread)(const struct sg_phys *phys, size_t page, size_t inner,
                   const unsigned char *bytes, size_t size);
};

/* Maximum number of live objects. */
#define SG_OBJECT_LIMIT 4096u

/* With the lock: assigns the object the number that its mappings name. False if there are too many.
 */
bool sg_object_begin(struct sg_phys *phys);
void sg_object_end(const struct sg_phys *phys);
/* Enters a mapping of all of it in the page table, without rights. */
void sg_object_map(const struct sg_phys *phys, CUdeviceptr address, size_t size);

/* Without the lock, between sg_work_begin and sg_work_end: for stores where sg_translate finds
 * nothing. */

/* Where a store by `device` to `address` is made first; sets *span to the number of bytes there (<=
 * want). NULL if the device may not write there or no object is mapped. */
unsigned char *sg_object_bytes(int device, CUdeviceptr address, size_t want, size_t *span);
/* Copies what was stored there, `size` bytes (at most *span), to the others. Does nothing where no
 * object is mapped. */
void sg_object_spread(CUdeviceptr address, const unsigned char *bytes, size_t size);

#endif
