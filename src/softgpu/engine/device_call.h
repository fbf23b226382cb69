/*
 * Calls of the device runtime's functions, whose bodies no PTX contains. The engine knows their
 * names and passes each lane's call to the launch, which performs it.
 */
#ifndef SG_ENGINE_DEVICE_CALL_H
#define SG_ENGINE_DEVICE_CALL_H

#include "softgpu/engine/engine.h"

#define SG_DEVICE_ARGUMENTS 5

struct sg_warp;
struct sg_step;

/* One lane's call. The lanes of a warp call one after another, the lowest first. */
struct sg_device_call {
    unsigned function; /* enum sg_runtime */
    unsigned lane;
    uint64_t argument[SG_DEVICE_ARGUMENTS]; /* in order; narrow ones are zero-extended */
    uint64_t result;                        /* 0 initially; ignored if the function has none */
    unsigned block[3], thread[3];
    enum sg_fault_kind fault; /* initially COUNT, for none; otherwise the warp ends with it, once
                                 all its lanes have called */
    uint64_t address;         /* of the fault */
    struct sg_warp *warp;
    const struct sg_step *step;
};

/*
 * The host bytes of a generic address as the lane sees it; *size receives how many are contiguous,
 * at least 1. NULL: nothing is mapped there, or the access is not permitted. Valid until the call
 * returns.
 */
unsigned char *sg_device_call_bytes(const struct sg_device_call *call, uint64_t address, bool write,
                                    size_t *size);
/* Reads all `size` bytes; false if a part of them cannot be accessed. */
bool sg_device_call_read(const struct sg_device_call *call, uint64_t address, void *to,
                         size_t size);
/* Performs memcpy and memset, or records a fault. */
void sg_device_call_copy(struct sg_device_call *call);
void sg_device_call_set(struct sg_device_call *call);

#endif
