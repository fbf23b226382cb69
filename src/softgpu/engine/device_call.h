/*
 * Calls of the device runtime: functions that no text of a kernel holds. The engine knows their
 * names and hands each lane's call to the launch; what they do is decided there.
 */
#ifndef SG_ENGINE_DEVICE_CALL_H
#define SG_ENGINE_DEVICE_CALL_H

#include "softgpu/engine/engine.h"

#define SG_DEVICE_ARGUMENTS 5

struct sg_warp;
struct sg_step;

/* One lane's call; lanes of a warp call one after the other, the lowest first. */
struct sg_device_call {
    unsigned function; /* enum sg_runtime */
    unsigned lane;
    uint64_t argument[SG_DEVICE_ARGUMENTS]; /* in order; narrow ones are zero-extended */
    uint64_t result;                        /* 0 before; ignored where the function has none */
    unsigned block[3], thread[3];
    enum sg_fault_kind fault; /* COUNT before: none; else the warp ends with it, after all lanes */
    uint64_t address;         /* of the fault */
    struct sg_warp *warp;
    const struct sg_step *step;
};

/*
 * The host bytes of an address as the lane sees it, generic as C knows it: *size is how many follow
 * it, 1 at least. NULL: there is nothing, or no right to it. Good until the call returns.
 */
unsigned char *sg_device_call_bytes(const struct sg_device_call *call, uint64_t address, bool write,
                                    size_t *size);
/* All of it or, where a part cannot be reached, false. */
bool sg_device_call_read(const struct sg_device_call *call, uint64_t address, void *to,
                         size_t size);
/* Does memcpy and memset, or notes a fault of an address. */
void sg_device_call_copy(struct sg_device_call *call);
void sg_device_call_set(struct sg_device_call *call);

#endif
