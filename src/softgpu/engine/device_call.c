/* A warp's calls of the device runtime, lane by lane. */
#include "softgpu/engine/device_call.h"

#include "softgpu/address/memory.h"
#include "softgpu/engine/watching.h"

#include <string.h>

/* ---- memory as a lane sees it ---------------------------------------------------------------- */

static unsigned char *within(unsigned char *bytes, uint64_t room, uint64_t offset, size_t *size) {
    if (offset >= room)
        return NULL;
    *size = (size_t)(room - offset);
    return bytes + offset;
}

/* Shared memory of the block, or of another one in its cluster. */
static unsigned char *shared_bytes(const struct sg_warp *warp, uint64_t offset, size_t *size) {
    const struct sg_block *block = sg_block_of_shared(warp, &offset);
    return block ? within(block->shared, sg_shared_room(warp->grid), offset, size) : NULL;
}

static unsigned char *global_bytes(const struct sg_grid *grid, uint64_t address, bool write,
                                   size_t *size) {
    uint64_t low, length;
    unsigned char *host = sg_translate(grid->launch.device, address, (size_t)1 << 30,
                                       write ? SG_WRITE : SG_READ, size);
    if (!host || !grid->launch.extent)
        return host;
    if (!grid->launch.extent(grid->launch.user, address, &low, &length) || address - low >= length)
        return NULL;
    if (*size > length - (address - low))
        *size = (size_t)(length - (address - low));
    return host;
}

unsigned char *sg_device_call_bytes(const struct sg_device_call *call, uint64_t address, bool write,
                                    size_t *size) {
    const struct sg_warp *warp = call->warp;
    const struct sg_grid *grid = warp->grid;
    uint64_t offset = address & UINT32_MAX;
    switch (address & ~(uint64_t)UINT32_MAX) {
    case SG_SHARED_WINDOW:
        return shared_bytes(warp, sg_shared_offset(address), size);
    case SG_LOCAL_WINDOW:
        return within(warp->local + call->lane * warp->local_size, warp->local_size, offset, size);
    case SG_PARAMETER_WINDOW:
        return write ? NULL : within(grid->parameters, grid->launch.parameter_bytes, offset, size);
    default:
        return global_bytes(grid, address, write, size);
    }
}

bool sg_device_call_read(const struct sg_device_call *call, uint64_t address, void *to,
                         size_t size) {
    unsigned char *at = to;
    while (size > 0) {
        size_t span;
        const unsigned char *from = sg_device_call_bytes(call, address, false, &span);
        if (!from)
            return false;
        span = span < size ? span : size;
        memcpy(at, from, span);
        at += span;
        address += span;
        size -= span;
    }
    return true;
}

static void no_bytes(struct sg_device_call *call, uint64_t address) {
    call->fault = SG_FAULT_ADDRESS;
    call->address = address;
}

/* True: a watcher refuses the access. */
static bool tell(const struct sg_device_call *call, uint64_t address, uint64_t size,
                 unsigned kind) {
    return call->warp->grid->code->watched && size > 0 && size <= UINT32_MAX &&
           sg_watch_lane(call->warp, call->step, call->lane, address, (uint32_t)size, kind,
                         SG_IN_GENERIC);
}

/* Copies forwards, piece by piece: overlapping memory is undefined behaviour, as in C. */
void sg_device_call_copy(struct sg_device_call *call) {
    uint64_t to = call->argument[0], from = call->argument[1], left = call->argument[2];
    call->result = to;
    bool refused = tell(call, from, left, SG_WATCHED_READ);
    refused = tell(call, to, left, SG_WATCHED_WRITE) || refused;
    if (refused)
        return;
    while (left > 0) {
        size_t room, there;
        unsigned char *d = sg_device_call_bytes(call, to, true, &room);
        const unsigned char *s = sg_device_call_bytes(call, from, false, &there);
        if (!d || !s) {
            no_bytes(call, d ? from : to);
            return;
        }
        size_t span = room < there ? room : there;
        span = span < left ? span : (size_t)left;
        memmove(d, s, span);
        to += span;
        from += span;
        left -= span;
    }
}

void sg_device_call_set(struct sg_device_call *call) {
    uint64_t to = call->argument[0], left = call->argument[2];
    call->result = to;
    if (tell(call, to, left, SG_WATCHED_WRITE))
        return;
    while (left > 0) {
        size_t span;
        unsigned char *d = sg_device_call_bytes(call, to, true, &span);
        if (!d) {
            no_bytes(call, to);
            return;
        }
        span = span < left ? span : (size_t)left;
        memset(d, (int)(call->argument[1] & 0xff), span);
        to += span;
        left -= span;
    }
}

/* ---- arguments and results ------------------------------------------------------------------- */

static unsigned char *place_of(const struct sg_warp *warp, const uint32_t *pair, unsigned lane,
                               size_t *size) {
    if (pair[1] & SG_ARGUMENT_FRAME) {
        *size = pair[1] & ~SG_ARGUMENT_FRAME;
        return warp->local + lane * warp->local_size + warp->path->frame + SG_FRAME_OFFSET(pair[0]);
    }
    *size = pair[1] == SG_W_16 ? 2 : pair[1] == SG_W_32 ? 4 : 8;
    return (unsigned char *)sg_place(warp, pair[0]) + lane * *size;
}

static void call_of_lane(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                         struct sg_device_call *call) {
    const uint32_t *list = warp->grid->code->list + step->list;
    const unsigned *shape = warp->grid->launch.block;
    unsigned thread = warp->number * SG_LANES + lane;
    size_t size;
    *call = (struct sg_device_call){
        .function = step->choice,
        .lane = lane,
        .thread = {thread % shape[0], thread / shape[0] % shape[1], thread / shape[0] / shape[1]},
        .fault = SG_FAULT_COUNT,
        .warp = warp,
        .step = step};
    memcpy(call->block, warp->block->place, sizeof call->block);
    for (unsigned i = 0; i < step->count; i++) {
        const unsigned char *at = place_of(warp, list + 2 * (i + 1), lane, &size);
        memcpy(&call->argument[i], at, size);
    }
}

static void hand_back(struct sg_warp *warp, const struct sg_step *step,
                      const struct sg_device_call *call) {
    const uint32_t *pair = warp->grid->code->list + step->list;
    size_t size;
    if (pair[1] == SG_W_NONE)
        return;
    unsigned char *to = place_of(warp, pair, call->lane, &size);
    memcpy(to, &call->result, size);
}

static void perform(struct sg_device_call *call) {
    const struct sg_grid_launch *launch = &call->warp->grid->launch;
    if (call->function == SG_RUNTIME_MEMCPY)
        sg_device_call_copy(call);
    else if (call->function == SG_RUNTIME_MEMSET)
        sg_device_call_set(call);
    else if (launch->device_call)
        launch->device_call(launch->user, call);
    else
        call->fault =
            call->function == SG_RUNTIME_ASSERTFAIL ? SG_FAULT_ASSERT : SG_FAULT_INSTRUCTION;
}

/* A lane's fault ends the warp after all lanes have called, so every failed assertion is
 * printed. */
const struct sg_step *sg_run_device_call(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step);
    struct sg_device_call fault = {.fault = SG_FAULT_COUNT};
    for (unsigned lane = 0; lane < SG_LANES; lane++) {
        struct sg_device_call call;
        if (!(taken >> lane & 1))
            continue;
        call_of_lane(warp, step, lane, &call);
        perform(&call);
        if (call.fault == SG_FAULT_COUNT)
            hand_back(warp, step, &call);
        else if (fault.fault == SG_FAULT_COUNT)
            fault = call;
    }
    if (fault.fault != SG_FAULT_COUNT)
        return sg_warp_fault(warp, step, fault.fault, fault.lane, fault.address, 0);
    return step + 1;
}
