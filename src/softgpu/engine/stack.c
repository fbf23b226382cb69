/*
 * alloca: takes bytes from the end of a thread's local memory downwards, towards the frames of
 * calls. A function that uses it saves the end of its caller's, and restores it when it returns.
 */
#include "softgpu/engine/stack.h"

const struct sg_step *sg_run_stack_begin(struct sg_warp *warp, const struct sg_step *step) {
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            warp->stack[l] = (uint32_t)warp->local_size;
    return step + 1;
}

static uint32_t *width_32(const struct sg_warp *warp, uint32_t place) {
    return sg_place(warp, place);
}

static uint64_t read(const struct sg_warp *warp, uint32_t place, unsigned width, unsigned l) {
    return width == SG_W_64 ? ((const uint64_t *)sg_place(warp, place))[l]
                            : width_32(warp, place)[l];
}

static void write(const struct sg_warp *warp, uint32_t place, unsigned width, unsigned l,
                  uint64_t value) {
    if (width == SG_W_64)
        ((uint64_t *)sg_place(warp, place))[l] = value;
    else
        width_32(warp, place)[l] = (uint32_t)value;
}

const struct sg_step *sg_run_stack_save(struct sg_warp *warp, const struct sg_step *step) {
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            write(warp, step->d, step->second, l, warp->stack[l]);
    return step + 1;
}

static uint64_t frames_end(const struct sg_warp *warp) {
    return warp->path->frame + warp->grid->code->program->functions[warp->path->function].frame;
}

const struct sg_step *sg_run_stack_restore(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step);
    for (uint32_t left = taken; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint64_t place = read(warp, step->a, step->second, l);
        if (place > warp->local_size || place < frames_end(warp))
            return sg_warp_fault(warp, step, SG_FAULT_STACK, l, place, 0);
        warp->stack[l] = (uint32_t)place;
    }
    return step + 1;
}

const struct sg_step *sg_run_alloca(struct sg_warp *warp, const struct sg_step *step) {
    uint64_t alignment = (uint64_t)step->value, end = frames_end(warp);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint64_t size = read(warp, step->a, step->second, l), top = warp->stack[l];
        uint64_t place = size < top ? (top - size) & ~(alignment - 1) : 0;
        if (size > top || place < end)
            return sg_warp_fault(warp, step, SG_FAULT_STACK, l, end, size);
        warp->stack[l] = (uint32_t)place;
        write(warp, step->d, step->second, l, place);
    }
    return step + 1;
}

bool sg_stack_holds(const struct sg_warp *warp, uint32_t lanes, uint64_t end, unsigned *lane) {
    for (uint32_t left = lanes; left; left &= left - 1) {
        *lane = (unsigned)__builtin_ctz(left);
        if (warp->stack[*lane] < end)
            return false;
    }
    return true;
}
