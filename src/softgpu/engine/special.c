/* Special registers, addresses of spaces, vectors of registers. */
#include "softgpu/engine/inside.h"

#include <time.h>

/* ---- constant for a warp --------------------------------------------------------------------- */

bool sg_special_constant(unsigned special) {
    return special < SG_SPECIAL_CLOCK || special > SG_SPECIAL_GLOBALTIMER_HI;
}

/* The others are the same for each block that runs in a warp's memory. */
bool sg_special_of_block(unsigned special) {
    return special == SG_SPECIAL_CTAID || special == SG_SPECIAL_CLUSTERID ||
           special == SG_SPECIAL_SMID;
}

static uint64_t of_block(const struct sg_warp *warp, unsigned special, unsigned axis) {
    const struct sg_grid *grid = warp->grid;
    const struct sg_grid_launch *launch = &grid->launch;
    switch (special) {
    case SG_SPECIAL_NTID:
        return launch->block[axis];
    case SG_SPECIAL_CTAID:
    case SG_SPECIAL_CLUSTERID:
        return warp->block->place[axis];
    case SG_SPECIAL_NCTAID:
    case SG_SPECIAL_NCLUSTERID:
        return launch->grid[axis];
    case SG_SPECIAL_WARPID:
        return warp->number;
    case SG_SPECIAL_NWARPID:
        return 64; /* warps that a multiprocessor can have */
    case SG_SPECIAL_SMID:
        return launch->multiprocessors ? warp->block->index % launch->multiprocessors : 0;
    case SG_SPECIAL_NSMID:
        return launch->multiprocessors ? launch->multiprocessors : 1;
    case SG_SPECIAL_GRIDID:
        return launch->id;
    case SG_SPECIAL_CLUSTER_NCTAID:
    case SG_SPECIAL_CLUSTER_NCTARANK:
        return 1;
    case SG_SPECIAL_DYNAMIC_SMEM_SIZE:
        return launch->dynamic_shared;
    case SG_SPECIAL_TOTAL_SMEM_SIZE:
    case SG_SPECIAL_AGGR_SMEM_SIZE:
        return warp->shared_size;
    case SG_SPECIAL_WARP_SZ:
        return SG_LANES;
    default:
        return 0;
    }
}

static uint64_t of_lane(const struct sg_warp *warp, unsigned special, unsigned axis, unsigned l) {
    const unsigned *shape = warp->grid->launch.block;
    unsigned thread = warp->number * SG_LANES + l;
    switch (special) {
    case SG_SPECIAL_TID:
        return axis == 0   ? thread % shape[0]
               : axis == 1 ? thread / shape[0] % shape[1]
                           : thread / shape[0] / shape[1];
    case SG_SPECIAL_LANEID:
        return l;
    case SG_SPECIAL_LANEMASK_EQ:
        return UINT32_C(1) << l;
    case SG_SPECIAL_LANEMASK_LT:
        return (UINT32_C(1) << l) - 1;
    case SG_SPECIAL_LANEMASK_LE:
        return (UINT32_C(2) << l) - 1;
    case SG_SPECIAL_LANEMASK_GT:
        return (uint32_t) ~((UINT32_C(2) << l) - 1);
    default:
        return (uint32_t) ~((UINT32_C(1) << l) - 1); /* lanemask_ge */
    }
}

static bool by_lane(unsigned special) {
    return special == SG_SPECIAL_TID || special == SG_SPECIAL_LANEID ||
           (special >= SG_SPECIAL_LANEMASK_EQ && special <= SG_SPECIAL_LANEMASK_GT);
}

static void put(void *lanes, unsigned width, unsigned l, uint64_t value) {
    if (width == SG_W_16)
        ((uint16_t *)lanes)[l] = (uint16_t)value;
    else if (width == SG_W_32)
        ((uint32_t *)lanes)[l] = (uint32_t)value;
    else
        ((uint64_t *)lanes)[l] = value;
}

void sg_special_fill(struct sg_warp *warp, const struct sg_code_special *special, void *lanes) {
    unsigned axis = special->part ? special->part - 1u : 0;
    bool own = by_lane(special->special);
    uint64_t value = axis > 2 || own ? 0 : of_block(warp, special->special, axis);
    if (special->width == SG_W_PRED) {
        *(uint32_t *)lanes = value ? SG_ALL : 0;
        return;
    }
    for (unsigned l = 0; l < SG_LANES; l++)
        put(lanes, special->width, l,
            own && axis < 3 ? of_lane(warp, special->special, axis, l) : value);
}

uint64_t sg_special_value(const struct sg_warp *warp, const struct sg_code_special *special) {
    unsigned axis = special->part ? special->part - 1u : 0;
    return axis > 2 ? 0 : of_block(warp, special->special, axis);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const struct sg_step *sg_run_special(struct sg_warp *warp, const struct sg_step *step) {
    uint64_t value = nanoseconds();
    if (step->choice == SG_SPECIAL_CLOCK_HI || step->choice == SG_SPECIAL_GLOBALTIMER_HI)
        value >>= 32;
    void *d = sg_place(warp, step->d);
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            put(d, step->second, l, value);
    warp->polls = true; /* it may wait for time to pass */
    return step + 1;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The place of a variable in the frame of the running call; `second`: the width. */
const struct sg_step *sg_run_frame_address(struct sg_warp *warp, const struct sg_step *step) {
    void *d = sg_place(warp, step->d);
    uint64_t value = warp->path->frame + (uint64_t)step->value;
    for (unsigned l = 0; l < SG_LANES; l++)
        if (warp->mask >> l & 1)
            put(d, step->second, l, value);
    return step + 1;
}

static unsigned space_of(uint64_t address) {
    uint64_t window = address & ~(uint64_t)UINT32_MAX;
    return window == SG_SHARED_WINDOW      ? SG_IN_SHARED
           : window == SG_LOCAL_WINDOW     ? SG_IN_LOCAL
           : window == SG_PARAMETER_WINDOW ? SG_IN_PARAM
                                           : SG_IN_GLOBAL;
}

const struct sg_step *sg_run_isspacep(struct sg_warp *warp, const struct sg_step *step) {
    const uint64_t *a = sg_place(warp, step->a);
    uint32_t result = 0;
    for (unsigned l = 0; l < SG_LANES; l++)
        result |= (uint32_t)(space_of(a[l]) == step->choice) << l;
    sg_predicate_set(warp, step->d, result);
    return step + 1;
}

/* ---- vectors of registers -------------------------------------------------------------------- */

static uint64_t get(const void *lanes, unsigned width, unsigned l) {
    return width == SG_W_16   ? ((const uint16_t *)lanes)[l]
           : width == SG_W_32 ? ((const uint32_t *)lanes)[l]
                              : ((const uint64_t *)lanes)[l];
}

/* mov.b64 d, {a, b}: list: the elements' places; choice: their width, second: the whole's. */
const struct sg_step *sg_run_pack(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    unsigned bits = step->choice == SG_W_16 ? 16 : 32;
    void *d = sg_place(warp, step->d);
    for (unsigned l = 0; l < SG_LANES; l++) {
        uint64_t value = 0;
        for (unsigned i = 0; i < step->count; i++)
            value |= get(sg_place(warp, list[i]), step->choice, l) << (i * bits);
        if (warp->mask >> l & 1)
            put(d, step->second, l, value);
    }
    return step + 1;
}

const struct sg_step *sg_run_unpack(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    unsigned bits = step->choice == SG_W_16 ? 16 : 32;
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        uint64_t value = get(sg_place(warp, step->a), step->second, l);
        for (unsigned i = 0; i < step->count; i++)
            put(sg_place(warp, list[i]), step->choice, l, value >> (i * bits));
    }
    return step + 1;
}
