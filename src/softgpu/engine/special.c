/* Special registers, addresses of spaces, vectors of registers. */
#include "softgpu/engine/async.h"

#include <time.h>

/* ---- constant for a warp --------------------------------------------------------------------- */

bool sg_special_constant(unsigned special) {
    return special < SG_SPECIAL_CLOCK || special > SG_SPECIAL_GLOBALTIMER_HI;
}

/* All others keep their values when another block reuses a warp's memory. */
bool sg_special_of_block(unsigned special) {
    return special == SG_SPECIAL_CTAID || special == SG_SPECIAL_CLUSTERID ||
           special == SG_SPECIAL_CLUSTER_CTAID || special == SG_SPECIAL_CLUSTER_CTARANK ||
           special == SG_SPECIAL_SMID || special == SG_SPECIAL_SHARED;
}

static uint64_t of_block(const struct sg_warp *warp, unsigned special, unsigned axis,
                         uint32_t number) {
    const struct sg_grid *grid = warp->grid;
    const struct sg_grid_launch *launch = &grid->launch;
    switch (special) {
    case SG_SPECIAL_NTID:
        return launch->block[axis];
    case SG_SPECIAL_CTAID:
        return warp->block->place[axis];
    case SG_SPECIAL_CLUSTERID:
        return warp->block->place[axis] / grid->cluster[axis];
    case SG_SPECIAL_CLUSTER_CTAID:
        return warp->block->place[axis] % grid->cluster[axis];
    case SG_SPECIAL_CLUSTER_CTARANK:
        return warp->block->rank;
    case SG_SPECIAL_NCTAID:
        return launch->grid[axis];
    case SG_SPECIAL_NCLUSTERID:
        return launch->grid[axis] / grid->cluster[axis];
    case SG_SPECIAL_WARPID:
        return warp->number;
    case SG_SPECIAL_NWARPID:
        return 64; /* resident warps of a multiprocessor */
    case SG_SPECIAL_SMID:
        return launch->multiprocessors ? warp->block->index % launch->multiprocessors : 0;
    case SG_SPECIAL_NSMID:
        return launch->multiprocessors ? launch->multiprocessors : 1;
    case SG_SPECIAL_GRIDID:
        return launch->id;
    case SG_SPECIAL_CLUSTER_NCTAID:
        return grid->cluster[axis];
    case SG_SPECIAL_CLUSTER_NCTARANK:
        return grid->cluster_size;
    case SG_SPECIAL_IS_EXPLICIT_CLUSTER:
        return launch->explicit_cluster;
    case SG_SPECIAL_DYNAMIC_SMEM_SIZE:
        return launch->dynamic_shared;
    case SG_SPECIAL_TOTAL_SMEM_SIZE:
        return sg_shared_granules(grid);
    case SG_SPECIAL_WARP_SZ:
        return SG_LANES;
    default:
        return sg_workspace_special(grid, special, number);
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

uint64_t sg_special_value(const struct sg_warp *warp, const struct sg_code_special *special) {
    unsigned axis = special->part ? special->part - 1u : 0;
    if (special->special == SG_SPECIAL_SHARED)
        return ((uint64_t)warp->block->rank << SG_RANK_SHIFT) + (uint64_t)(int32_t)special->value;
    return axis > 2 ? 0 : of_block(warp, special->special, axis, special->value);
}

void sg_special_fill(struct sg_warp *warp, const struct sg_code_special *special, void *lanes) {
    unsigned axis = special->part ? special->part - 1u : 0;
    bool own = by_lane(special->special);
    uint64_t value = own ? 0 : sg_special_value(warp, special);
    if (special->width == SG_W_PRED) {
        *(uint32_t *)lanes = value ? SG_ALL : 0;
        return;
    }
    for (unsigned l = 0; l < SG_LANES; l++)
        put(lanes, special->width, l,
            own && axis < 3 ? of_lane(warp, special->special, axis, l) : value);
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
    warp->polls = true; /* it may be waiting for time to pass */
    return step + 1;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The address of a variable in the current frame; `second`: the width. */
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

/* Addresses in constant memory are among those of global memory; its variables tell them apart. */
static bool is_constant(const struct sg_warp *warp, const struct sg_step *step, unsigned l,
                        uint64_t address) {
    const uint32_t *list = warp->grid->code->list + step->list;
    for (unsigned i = 0; i < step->count; i++) {
        uint64_t low = ((const uint64_t *)sg_place(warp, list[2 * i]))[l];
        if (address >= low && address - low < list[2 * i + 1])
            return true;
    }
    return false;
}

const struct sg_step *sg_run_isspacep(struct sg_warp *warp, const struct sg_step *step) {
    const uint64_t *a = sg_place(warp, step->a);
    uint32_t result = 0, rank = warp->block->rank;
    bool cluster = step->choice == SG_IN_SHARED_CLUSTER;
    unsigned wanted = cluster ? SG_IN_SHARED : step->choice;
    for (unsigned l = 0; l < SG_LANES; l++) {
        bool own = cluster || !warp->block->cluster || (uint32_t)a[l] >> SG_RANK_SHIFT == rank;
        unsigned space = space_of(a[l]);
        if (space == SG_IN_GLOBAL && is_constant(warp, step, l, a[l]))
            space = SG_IN_CONST;
        bool is = space == wanted && (wanted != SG_IN_SHARED || own);
        result |= (uint32_t)is << l;
    }
    sg_predicate_set(warp, step->d, result);
    return step + 1;
}

/* ---- vectors of registers -------------------------------------------------------------------- */

static uint64_t get(const void *lanes, unsigned width, unsigned l) {
    return width == SG_W_16   ? ((const uint16_t *)lanes)[l]
           : width == SG_W_32 ? ((const uint32_t *)lanes)[l]
                              : ((const uint64_t *)lanes)[l];
}

/* mov.b64 d, {a, b}: list: the elements' places; choice: their width; second: d's width; value: the
 * bits of an element. */
const struct sg_step *sg_run_pack(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    unsigned bits = (unsigned)step->value;
    uint64_t all = (UINT64_C(1) << bits) - 1;
    void *d = sg_place(warp, step->d);
    for (unsigned l = 0; l < SG_LANES; l++) {
        uint64_t value = 0;
        for (unsigned i = 0; i < step->count; i++)
            value |= (get(sg_place(warp, list[i]), step->choice, l) & all) << (i * bits);
        if (warp->mask >> l & 1)
            put(d, step->second, l, value);
    }
    return step + 1;
}

const struct sg_step *sg_run_unpack(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *list = warp->grid->code->list + step->list;
    unsigned bits = (unsigned)step->value;
    uint64_t all = (UINT64_C(1) << bits) - 1;
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        uint64_t value = get(sg_place(warp, step->a), step->second, l);
        for (unsigned i = 0; i < step->count; i++)
            put(sg_place(warp, list[i]), step->choice, l, value >> (i * bits) & all);
    }
    return step + 1;
}
