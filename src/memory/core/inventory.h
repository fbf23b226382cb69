/*
 * What a device's virtual memory consists of: reserved addresses, physical handles, and which is
 * mapped where. memory/core/vmm_calls keeps it, through which all of it goes, so that a snapshot
 * can tell the memory of buffers, of caches, of imports and of what is mapped by hand alike.
 *
 * The lock is a leaf: nothing else is locked and no driver call made under it. A driver call takes
 * microseconds, an entry here some tens of nanoseconds.
 */
#ifndef GM_MEMORY_INVENTORY_H
#define GM_MEMORY_INVENTORY_H

#include <gpumem/cuda_api.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct gm_meter;

struct gm_held {
    uint64_t key; /* address, or handle of physical memory; never 0 */
    size_t bytes;
    CUmemGenericAllocationHandle handle; /* of a mapping */
    const struct gm_meter *owner;        /* of a resource or the device; NULL: unknown */
    unsigned references;                 /* the driver may return the same handle several times */
    unsigned own;                        /* of these, the owner's */
    int imported;                        /* physical memory of another process */
    int retained;                        /* found by its address, of unknown origin */
    int quarantined;                     /* physical memory or a reservation */
    CUmemLocation location;              /* of physical memory made here */
    unsigned handle_types;               /* likewise: CUmemAllocationHandleType */
};

/* A hash by key; slots are a power of two. */
struct gm_held_table {
    struct gm_held *slots;
    size_t count, room;
};

struct gm_inventory {
    pthread_mutex_t lock;
    struct gm_held_table reservations, physical, mappings;
    uint64_t missing; /* entries for which there was no host memory */
};

void gm_inventory_init(struct gm_inventory *inventory);
void gm_inventory_destroy(struct gm_inventory *inventory);

void gm_inventory_add_reservation(struct gm_inventory *inventory, CUdeviceptr address,
                                  size_t bytes);
/* Call this before the driver call: after it another thread may have the same handle or address. */
void gm_inventory_drop_reservation(struct gm_inventory *inventory, CUdeviceptr address);
/* The driver refused to take it back. */
void gm_inventory_keep_reservation(struct gm_inventory *inventory, CUdeviceptr address,
                                   size_t bytes);

/* A handle that the driver returned earlier keeps its entry. */
void gm_inventory_add_physical(struct gm_inventory *inventory, const struct gm_held *held);
/* Sets the size of a handle that came without one. */
void gm_inventory_size_physical(struct gm_inventory *inventory, CUmemGenericAllocationHandle handle,
                                size_t bytes);
/* As for reservations, by who had a reference. What was dropped comes back, as it was before, to be
 * kept if the driver refuses. */
struct gm_held gm_inventory_drop_physical(struct gm_inventory *inventory,
                                          CUmemGenericAllocationHandle handle,
                                          const struct gm_meter *by);
void gm_inventory_keep_physical(struct gm_inventory *inventory, const struct gm_held *held);

void gm_inventory_add_mapping(struct gm_inventory *inventory, CUdeviceptr address, size_t bytes,
                              CUmemGenericAllocationHandle handle, const struct gm_meter *owner);
/* Everything in [address, address + bytes). */
void gm_inventory_drop_mappings(struct gm_inventory *inventory, CUdeviceptr address, size_t bytes);

/* Copies of all three as of one moment, each sorted by key; freed by the caller. */
struct gm_inventory_copy {
    struct gm_held *reservations, *physical, *mappings;
    size_t reservation_count, physical_count, mapping_count;
    uint64_t missing;
};
/* 0, or -1 without memory. */
int gm_inventory_copy(struct gm_inventory *inventory, struct gm_inventory_copy *copy);
void gm_inventory_copy_free(struct gm_inventory_copy *copy);

#endif
