/* What the driver reports about an address: nothing else about foreign memory is trusted. */
#ifndef GM_MEMORY_POINTER_FACTS_H
#define GM_MEMORY_POINTER_FACTS_H

#include "memory/core/objects.h"

struct gm_pointer {
    unsigned type; /* CUmemorytype; 0: the driver does not know the address */
    int managed;
    int ordinal; /* of the device that has it, or whose context made it */
    int on_host; /* host memory, and not managed */
    CUcontext context;
    uint64_t handle_types; /* CUmemAllocationHandleType bits */
    CUdeviceptr device_pointer;
    void *host_pointer; /* its address for the CPU, or NULL */
    CUmemLocation location;
};

/* The device's context is current. `type` is 0 for an address unknown to the driver. */
gpumem_status gm_pointer_ask(gpumem_device *device, CUdeviceptr pointer, struct gm_pointer *out);

/* The driver's allocation, registration or mapping that has the byte; 0 if it reports none. The
 * device's context is current. */
int gm_pointer_piece(const gpumem_device *device, CUdeviceptr at, CUdeviceptr *base, size_t *bytes);

/*
 * The same for a whole range: INVALID_ARGUMENT if a part of it is unknown, or of a different kind
 * than the first byte, or if it goes from one allocation into another; mappings may follow each
 * other. Enters the device's context.
 */
gpumem_status gm_pointer_ask_range(gpumem_device *device, CUdeviceptr pointer, size_t bytes,
                                   struct gm_pointer *out);

#endif
