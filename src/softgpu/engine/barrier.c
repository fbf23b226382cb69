/*
 * bar and barrier: a block has sixteen barriers. Threads may arrive at any instruction; exited ones
 * are not waited for. Whole warps are counted, 32 for each: a warp has arrived when all its lanes
 * that have not exited did, however few it has. All that meet at a barrier must give the same
 * count, or none: else an H200 stops the kernel, also where the count is that of the whole block.
 */
#include "softgpu/engine/watching.h"

/* Writes the barrier's result to the registers of lanes that waited at a .red step. */
static void deliver(struct sg_warp *warp, const struct sg_group *group, const struct sg_step *step,
                    const struct sg_barrier *barrier) {
    unsigned char *base = warp->base[SG_BASE_REGISTERS];
    uint32_t mask = warp->mask;
    warp->base[SG_BASE_REGISTERS] = warp->registers + group->path->registers;
    warp->mask = group->lanes;
    if (step->second == SG_DO_POPC) {
        uint32_t *d = sg_place(warp, step->d);
        for (unsigned l = 0; l < SG_LANES; l++)
            d[l] = group->lanes >> l & 1 ? barrier->count : d[l];
    } else {
        bool yes = step->second == SG_DO_AND ? barrier->all : barrier->any;
        sg_predicate_set(warp, step->d, yes ? SG_ALL : 0);
    }
    warp->base[SG_BASE_REGISTERS] = base;
    warp->mask = mask;
}

/* Counts the warps whose lanes have all arrived. */
static void count_warps(struct sg_block *block, unsigned number) {
    struct sg_barrier *barrier = &block->barriers[number];
    for (uint32_t left = barrier->partial; left; left &= left - 1) {
        unsigned w = (unsigned)__builtin_ctz(left);
        struct sg_warp *warp = &block->warps[w];
        if (warp->live & ~warp->came[number])
            continue;
        barrier->partial &= ~(UINT32_C(1) << w);
        barrier->arrived += SG_LANES;
    }
}

static void arrive(struct sg_warp *warp, struct sg_barrier *barrier, unsigned number,
                   uint32_t lanes) {
    uint32_t bit = UINT32_C(1) << warp->number;
    warp->came[number] = lanes | ((barrier->partial & bit) ? warp->came[number] : 0);
    barrier->partial |= bit;
}

static void look(struct sg_block *block, unsigned number) {
    struct sg_barrier *barrier = &block->barriers[number];
    if (barrier->partial)
        count_warps(block, number);
    uint32_t wanted = barrier->wanted ? barrier->wanted : block->live_warps * SG_LANES;
    if (barrier->arrived == 0 || barrier->arrived < wanted)
        return;
    for (unsigned w = 0; w < block->warp_count; w++) {
        struct sg_warp *warp = &block->warps[w];
        const struct sg_step *steps = warp->grid->code->steps;
        if (barrier->partial >> w & 1) /* not counted: its lanes wait for the next phase */
            continue;
        for (unsigned i = 0; i < warp->group_count; i++) {
            struct sg_group *group = &warp->groups[i];
            if (group->state != SG_GROUP_BARRIER || group->barrier != number)
                continue;
            if (steps[group->step].choice == SG_DO_RED)
                deliver(warp, group, &steps[group->step], barrier);
            group->state = SG_GROUP_READY;
            group->step++;
            warp->ready++;
        }
    }
    if (block->warps[0].grid->code->watched)
        sg_watch_completes(block, number);
    uint32_t partial = barrier->partial;
    *barrier = (struct sg_barrier){
        .all = true, .partial = partial, .wanted = partial ? barrier->wanted : 0};
}

void sg_barriers_look(struct sg_block *block) {
    for (uint32_t left = block->barriers_used; left; left &= left - 1)
        look(block, (unsigned)__builtin_ctz(left));
    if (block->cluster)
        sg_cluster_look(block->cluster);
}

/* As recorded, of a number beyond 15 the low bits count: a mistake all the same. */
static void note_beyond(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                        uint32_t number) {
    struct sg_grid *grid = warp->grid;
    unsigned long long none = 0;
    uint32_t line = grid->code->program->instructions[step->instruction].line;
    atomic_compare_exchange_strong(&grid->beyond, &none, (unsigned long long)line << 32 | number);
    if (grid->code->watched)
        sg_watch_beyond(warp, step, lanes, number);
}

bool sg_barrier_arrive(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                       uint32_t number) {
    unsigned first = (unsigned)__builtin_ctz(lanes);
    uint32_t wanted =
        step->b == SG_NOWHERE ? 0 : ((const uint32_t *)sg_place(warp, step->b))[first];
    if (number >= SG_BARRIERS) {
        note_beyond(warp, step, lanes, number);
        number %= SG_BARRIERS;
    }
    if (wanted % SG_LANES) {
        if (warp->grid->code->watched)
            sg_watch_arrives(warp, step, lanes, number, step->choice != SG_DO_ARRIVE);
        sg_warp_fault(warp, step, SG_FAULT_BARRIER, first, wanted, SG_LANES);
        return false;
    }
    struct sg_barrier *barrier = &warp->block->barriers[number];
    if ((barrier->arrived || barrier->partial) && barrier->wanted != wanted) {
        sg_warp_fault(warp, step, SG_FAULT_BARRIER, first, number, 0);
        return false;
    }
    warp->block->barriers_used |= UINT32_C(1) << number;
    barrier->wanted = wanted;
    arrive(warp, barrier, number, lanes);
    if (step->choice == SG_DO_RED) {
        uint32_t p = sg_predicate(warp, step->c) & lanes;
        barrier->count += (uint32_t)__builtin_popcount(p);
        barrier->all = barrier->all && p == lanes;
        barrier->any = barrier->any || p;
    }
    uint32_t here = (uint32_t)(step - warp->grid->code->steps);
    if (warp->grid->code->watched)
        sg_watch_arrives(warp, step, lanes, number, step->choice != SG_DO_ARRIVE);
    if (step->choice == SG_DO_ARRIVE) {
        sg_group_add(warp, lanes, here + 1, warp->path);
    } else {
        sg_group_add(warp, lanes, here, warp->path);
        warp->ready--;
        warp->groups[warp->group_count - 1].state = SG_GROUP_BARRIER;
        warp->groups[warp->group_count - 1].barrier = (unsigned char)number;
    }
    look(warp->block, number);
    return true;
}

/* a: the number; b: the count, or nowhere; c: the predicate; d: the result; choice: the operation;
 * second: the reduction of .red. */
const struct sg_step *sg_run_barrier(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step);
    const uint32_t *number = sg_place(warp, step->a);
    sg_group_add(warp, warp->mask & ~taken, (uint32_t)(step - warp->grid->code->steps) + 1,
                 warp->path);
    while (taken) {
        uint32_t which = number[__builtin_ctz(taken)], lanes = 0;
        for (unsigned l = 0; l < SG_LANES; l++)
            lanes |= (uint32_t)(number[l] == which) << l;
        lanes &= taken;
        taken &= ~lanes;
        if (!sg_barrier_arrive(warp, step, lanes, which))
            return NULL;
    }
    return sg_group_next(warp);
}
