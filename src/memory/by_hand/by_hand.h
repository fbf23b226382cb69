/*
 * The internals of reservations, physical memory and mappings. The lock of a reservation comes
 * before all others of the memory library.
 */
#ifndef GM_MEMORY_BY_HAND_H
#define GM_MEMORY_BY_HAND_H

#include "memory/core/objects.h"

struct gpumem_reservation {
    unsigned generation;
    gpumem_device *device;
    CUdeviceptr address;
    size_t bytes;
    /* One for the owner, one for each mapping object: unmapped ones may outlive it. */
    atomic_uint references;
    pthread_mutex_t lock;
    gpumem_mapping **mapped; /* in order of their offsets, without unmapped ones */
    size_t count, room;
};

/* Where physical memory comes from; decides how it is counted and whether it can be exported. */
enum gm_origin { GM_CREATED, GM_RECEIVED, GM_RETAINED };

struct gpumem_physical {
    unsigned generation;
    gpumem_device *device;
    CUmemGenericAllocationHandle handle;
    size_t bytes;
    size_t granularity;
    enum gm_origin origin;
    int exports_fd, exports_fabric; /* 0: not; 1: the driver is asked to */
    atomic_size_t mapped;
};

struct gpumem_mapping {
    unsigned generation;
    gpumem_reservation *reservation;
    gpumem_physical *physical; /* while it is mapped */
    CUdeviceptr address;
    size_t offset, bytes;
    atomic_int state;          /* changed under the reservation's lock */
    unsigned long long before; /* rights to restore; belongs to the holder of the reservation's
                                * lock */
};

/* Mappings [first, first + count) of a reservation's list. */
struct gm_span {
    size_t first, count;
};

/* With the lock held. The mappings that share a byte with [offset, offset + bytes); none: `first`
 * is where one would be put. */
struct gm_span gm_reservation_span(const gpumem_reservation *reservation, size_t offset,
                                   size_t bytes);

/* INVALID_ARGUMENT for a range that is empty, does not fit, or cuts a mapping; else its mappings.
 * With the lock held; `call` begins the message. */
gpumem_status gm_reservation_whole(const gpumem_reservation *reservation, size_t offset,
                                   size_t bytes, const char *call, struct gm_span *span);

/* Makes room for one more mapping, so that inserting it cannot fail. With the lock held. */
gpumem_status gm_reservation_make_room(gpumem_reservation *reservation);
void gm_reservation_put(gpumem_reservation *reservation, size_t at, gpumem_mapping *mapping);

/* Removes mappings that the driver has unmapped; their objects remain. With the lock held. */
void gm_reservation_forget(gpumem_reservation *reservation, struct gm_span span);

/* Without a handle yet, and not counted; free it if it cannot get one. NULL with a message.
 */
gpumem_physical *gm_physical_new(gpumem_device *device, size_t bytes, size_t granularity,
                                 enum gm_origin origin);
/* Counts it: the caller now owns it. */
void gm_physical_hand_out(gpumem_physical *made, gpumem_physical **physical);

/* Drops a reference; the last one destroys the object. */
void gm_reservation_release(gpumem_reservation *reservation);

#endif
