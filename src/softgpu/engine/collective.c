/*
 * Warp functions: shfl, vote, match, redux, bar.warp.sync. A lane waits until all lanes of its mask
 * that have not exited arrive, at whatever instruction; then all exchange their values at once.
 */
#include "softgpu/engine/watching.h"

/* The lanes that take part, and their operands. */
struct meeting {
    uint32_t lanes;
    uint64_t value[SG_LANES];
    uint32_t other[SG_LANES], limit[SG_LANES]; /* shfl: b and c */
    uint32_t predicate;
    uint64_t result[SG_LANES];
    uint32_t true_in; /* predicate results */
};

static const struct sg_instruction *instruction_of(const struct sg_warp *warp,
                                                   const struct sg_step *step) {
    return &warp->grid->code->program->instructions[step->instruction];
}

static bool same_kind(const struct sg_warp *warp, const struct sg_step *a,
                      const struct sg_step *b) {
    const struct sg_instruction *x = instruction_of(warp, a), *y = instruction_of(warp, b);
    return x == y || (x->op == y->op && x->operation == y->operation && x->type == y->type);
}

/* ---- operands and results -------------------------------------------------------------------- */

static void bring(const struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                  struct meeting *all) {
    all->lanes |= lanes;
    unsigned op = instruction_of(warp, step)->op;
    if (op == SG_OP_bar || op == SG_OP_barrier || op == SG_OP_elect)
        return;
    if (step->type == SG_TYPE_PRED) {
        all->predicate |= sg_predicate(warp, step->a) & lanes;
        return;
    }
    const uint32_t *narrow = sg_place(warp, step->a);
    const uint64_t *wide = sg_place(warp, step->a);
    for (unsigned l = 0; l < SG_LANES; l++)
        if (lanes >> l & 1)
            all->value[l] = sg_type_bits(step->type) == 64 ? wide[l] : narrow[l];
    if (op != SG_OP_shfl)
        return;
    const uint32_t *b = sg_place(warp, step->b), *c = sg_place(warp, step->c);
    for (unsigned l = 0; l < SG_LANES; l++)
        if (lanes >> l & 1) {
            all->other[l] = b[l];
            all->limit[l] = c[l];
        }
}

static void take_home(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                      const struct meeting *all) {
    const uint32_t *list = warp->grid->code->list + step->list;
    uint32_t mask = warp->mask;
    warp->mask = lanes;
    if (step->second) /* the result is a predicate */
        sg_predicate_set(warp, step->d, all->true_in);
    else if (step->d != SG_NOWHERE) {
        uint32_t *d = sg_place(warp, step->d);
        for (unsigned l = 0; l < SG_LANES; l++)
            d[l] = lanes >> l & 1 ? (uint32_t)all->result[l] : d[l];
    }
    if (list[1] != SG_NOWHERE)
        sg_predicate_set(warp, list[1], all->true_in);
    warp->mask = mask;
}

/* ---- the operations -------------------------------------------------------------------------- */

/* live: lanes that have not exited. */
static void shuffle(struct meeting *all, unsigned mode, uint32_t live) {
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(all->lanes >> l & 1))
            continue;
        uint32_t by = all->other[l] & 31, limit = all->limit[l] & 31;
        uint32_t segment = all->limit[l] >> 8 & 31;
        int most = (int)((l & segment) | (limit & ~segment)), least = (int)(l & segment);
        int from = mode == SG_DO_UP     ? (int)l - (int)by
                   : mode == SG_DO_DOWN ? (int)(l + by)
                   : mode == SG_DO_BFLY ? (int)(l ^ by)
                                        : least | (int)(by & ~segment);
        bool inside = mode == SG_DO_UP ? from >= most : from <= most;
        if (!inside)
            from = (int)l;
        /* The value of a lane that does not take part is undefined. On an H200 it is 0 if that
         * lane has exited; else it is the reader's own here. */
        bool here = all->lanes >> from & 1, exited = !(live >> from & 1);
        all->result[l] = here ? all->value[from] : exited ? 0 : all->value[l];
        all->true_in |= (uint32_t)inside << l;
    }
}

static void vote(struct meeting *all, unsigned mode) {
    uint32_t yes = all->predicate & all->lanes;
    bool result = mode == SG_DO_ALL   ? yes == all->lanes
                  : mode == SG_DO_ANY ? yes != 0
                                      : yes == 0 || yes == all->lanes;
    all->true_in = result ? SG_ALL : 0;
    for (unsigned l = 0; l < SG_LANES; l++)
        all->result[l] = yes;
}

static void match(struct meeting *all, unsigned mode) {
    bool same = true;
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(all->lanes >> l & 1))
            continue;
        uint32_t like = 0;
        for (unsigned k = 0; k < SG_LANES; k++)
            like |= (uint32_t)((all->lanes >> k & 1) && all->value[k] == all->value[l]) << k;
        all->result[l] = like;
        same = same && like == all->lanes;
    }
    if (mode != SG_DO_ALL)
        return;
    all->true_in = same ? SG_ALL : 0;
    for (unsigned l = 0; l < SG_LANES; l++)
        all->result[l] = same ? all->lanes : 0;
}

static uint32_t reduced(uint32_t a, uint32_t b, unsigned mode, bool has_sign) {
    bool less = has_sign ? (int32_t)a < (int32_t)b : a < b;
    switch (mode) {
    case SG_DO_ADD:
        return a + b;
    case SG_DO_MIN:
        return less ? a : b;
    case SG_DO_MAX:
        return less ? b : a;
    case SG_DO_AND:
        return a & b;
    case SG_DO_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static void reduce(struct meeting *all, unsigned mode, bool has_sign) {
    unsigned first = (unsigned)__builtin_ctz(all->lanes);
    uint32_t result = (uint32_t)all->value[first];
    for (unsigned l = first + 1; l < SG_LANES; l++)
        if (all->lanes >> l & 1)
            result = reduced(result, (uint32_t)all->value[l], mode, has_sign);
    for (unsigned l = 0; l < SG_LANES; l++)
        all->result[l] = result;
}

static void meet(struct meeting *all, const struct sg_instruction *in, uint32_t live) {
    switch (in->op) {
    case SG_OP_shfl:
        shuffle(all, in->operation, live);
        break;
    case SG_OP_vote:
        vote(all, in->operation);
        break;
    case SG_OP_match:
        match(all, in->operation);
        break;
    case SG_OP_redux:
        reduce(all, in->operation, in->type == SG_TYPE_S32);
        break;
    case SG_OP_elect: {
        unsigned leader = (unsigned)__builtin_ctz(all->lanes);
        all->true_in = 1u << leader;
        for (unsigned l = 0; l < SG_LANES; l++)
            all->result[l] = leader;
        break;
    }
    default:
        break; /* bar.warp.sync */
    }
}

/* ---- synchronisation ------------------------------------------------------------------------- */

/* Lanes with one mask arrive; true: all have arrived, and have their results. */
static bool gather(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                   uint32_t members) {
    const struct sg_step *steps = warp->grid->code->steps;
    uint32_t present = lanes;
    for (unsigned i = 0; i < warp->group_count; i++) {
        const struct sg_group *group = &warp->groups[i];
        if (group->state == SG_GROUP_WARP && group->members == members &&
            same_kind(warp, &steps[group->step], step))
            present |= group->lanes;
    }
    if (members & warp->live & ~present)
        return false;
    if (warp->grid->code->watched)
        sg_watch_meet(warp, step, present);
    struct meeting all = {0};
    unsigned char *base = warp->base[SG_BASE_REGISTERS];
    bring(warp, step, lanes, &all);
    for (unsigned i = 0; present != lanes && i < warp->group_count; i++) {
        const struct sg_group *group = &warp->groups[i];
        if (!(group->lanes & present) || group->state != SG_GROUP_WARP)
            continue;
        warp->base[SG_BASE_REGISTERS] = warp->registers + group->path->registers;
        bring(warp, &steps[group->step], group->lanes, &all);
    }
    meet(&all, instruction_of(warp, step), warp->live);
    for (unsigned i = 0; present != lanes && i < warp->group_count; i++) {
        struct sg_group *group = &warp->groups[i];
        if (!(group->lanes & present) || group->state != SG_GROUP_WARP)
            continue;
        warp->base[SG_BASE_REGISTERS] = warp->registers + group->path->registers;
        take_home(warp, &steps[group->step], group->lanes, &all);
        group->state = SG_GROUP_READY;
        group->step++;
        warp->ready++;
    }
    warp->base[SG_BASE_REGISTERS] = base;
    take_home(warp, step, lanes, &all);
    return true;
}

/*
 * Lanes that their own masks leave out, where the masks differ: an H200 calls that an illegal
 * instruction. Of one mask for all lanes it makes nothing, since the compiler leaves it out.
 */
static uint32_t left_out(const uint32_t *member, uint32_t lanes) {
    uint32_t first = lanes ? member[__builtin_ctz(lanes)] : 0, differ = 0, out = 0;
    for (unsigned l = 0; l < SG_LANES; l++) {
        differ |= lanes >> l & 1 ? member[l] ^ first : 0;
        out |= (lanes & ~member[l]) & 1u << l;
    }
    return differ ? out : 0;
}

const struct sg_step *sg_run_collective(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t taken = sg_taken(warp, step), done = warp->mask & ~taken;
    uint32_t here = (uint32_t)(step - warp->grid->code->steps);
    const uint32_t *member = sg_place(warp, warp->grid->code->list[step->list]);
    if (warp->grid->code->watched)
        sg_watch_gathers(warp, step, taken, member);
    uint32_t out = left_out(member, taken);
    if (out) {
        unsigned lane = (unsigned)__builtin_ctz(out);
        sg_fault_note(warp, step, SG_FAULT_INSTRUCTION, lane, member[lane], 0,
                      "the mask leaves out the lane itself");
        return NULL;
    }
    while (taken) {
        uint32_t members = member[__builtin_ctz(taken)], lanes = 0;
        for (unsigned l = 0; l < SG_LANES; l++)
            lanes |= (uint32_t)(member[l] == members) << l;
        lanes &= taken;
        taken &= ~lanes;
        if (gather(warp, step, lanes, members)) {
            done |= lanes;
            continue;
        }
        sg_group_add(warp, lanes, here, warp->path);
        warp->ready--;
        warp->groups[warp->group_count - 1].state = SG_GROUP_WARP;
        warp->groups[warp->group_count - 1].members = members;
    }
    if (!done)
        return sg_group_next(warp);
    warp->mask = done;
    return step + 1;
}

const struct sg_step *sg_run_activemask(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t *d = sg_place(warp, step->d);
    for (unsigned l = 0; l < SG_LANES; l++)
        d[l] = warp->mask >> l & 1 ? warp->mask : d[l];
    return step + 1;
}
