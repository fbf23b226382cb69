/*
 * What reservations, physical memory and mappings are inside. Lock order: the lock of a reservation
 * comes before all others of the memory library.
 */
#ifndef GM_MEMORY_VIRTUAL_H
#define GM_MEMORY_VIRTUAL_H

#include "memory/objects.h"

struct gpumem_reservation {
    unsigned generation;
    gpumem_device *device;
    CUdeviceptr address;
    size_t bytes;
    pthread_mutex_t lock;
    gpumem_mapping *mappings;
};

struct gpumem_physical {
    unsigned generation;
    gpumem_device *device;
    CUmemGenericAllocationHandle handle;
    size_t bytes;
    size_t granularity;
    int exportable, imported;
    atomic_size_t mapped;
};

struct gpumem_mapping {
    unsigned generation;
    gpumem_reservation *reservation;
    gpumem_physical *physical;
    size_t offset;
    gpumem_mapping *next; /* in the reservation */
};

#endif
