/*
 * Warps in lock step: running them, and the steps that decide where a gang goes. A gang stays
 * together while all its live lanes take the same path. Where they diverge, tags are expanded, each
 * warp goes on by itself, and stops where the paths reconverge (`meet`). It stops there, turn after
 * turn, only while all the others just compute: a warp that waits for another must not be held
 * there.
 */
#include "softgpu/engine/inside.h"

#include <string.h>

static uint32_t number_of(const struct sg_warp *gang, const struct sg_step *step) {
    return (uint32_t)(step - gang->grid->code->steps);
}

/* ---- special registers ----------------------------------------------------------------------- */

static uint64_t value_at(const unsigned char *lanes, unsigned bytes, unsigned l) {
    uint64_t value = 0;
    memcpy(&value, lanes + l * bytes, bytes);
    return value;
}

static unsigned bytes_of(unsigned width) {
    return width == SG_W_16 ? 2 : width == SG_W_32 ? 4 : 8;
}

/* Finds the tag of a special register that is filled for each lane, if its values have one. */
static void fit(struct sg_warp *gang, const struct sg_code_special *special) {
    struct sg_tag *tag = sg_tag(gang, SG_PLACE(SG_BASE_SPECIALS, special->offset));
    unsigned bytes = bytes_of(special->width), lanes = gang->gang_size * SG_LANES;
    uint64_t mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << bytes * 8) - 1;
    const unsigned char *first = gang->specials + special->offset;
    struct sg_tag found = {.base = value_at(first, bytes, 0), .kind = SG_TAG_KNOWN};
    if (gang->x_most)
        found.s = (int64_t)(value_at(first, bytes, 1) - found.base);
    if (gang->y_most) {
        unsigned l = gang->across;
        const unsigned char *at = gang[l / SG_LANES].specials + special->offset;
        found.t = (int64_t)(value_at(at, bytes, l % SG_LANES) - found.base);
    }
    for (unsigned l = 0; l < lanes; l++) {
        const unsigned char *at = gang[l / SG_LANES].specials + special->offset;
        uint64_t x = l & (gang->across - 1), y = l >> gang->across_log;
        uint64_t says = found.base + x * (uint64_t)found.s + y * (uint64_t)found.t;
        if ((value_at(at, bytes, l % SG_LANES) ^ says) & mask)
            return;
    }
    *tag = found;
}

/* Rows are as long as the block's, if that is a power of two. */
static void shape(struct sg_warp *gang) {
    const unsigned *block = gang->grid->launch.block;
    unsigned lanes = gang->gang_size * SG_LANES, across = SG_GANG * SG_LANES;
    if (block[1] * block[2] > 1 && block[0] < across && (block[0] & (block[0] - 1)) == 0)
        across = block[0];
    gang->across = across;
    gang->across_log = (unsigned)__builtin_ctz(across);
    gang->x_most = (across < lanes ? across : lanes) - 1;
    gang->y_most = (lanes - 1) >> gang->across_log;
}

/* Room for discarded results, 256 bytes. */
#define NOWHERE_TAGS 4u

uint64_t sg_gang_bytes(const struct sg_code *code) {
    uint64_t slots =
        NOWHERE_TAGS + (code->functions[0].frame + code->special_bytes) / SG_SLOT_LINE + 8;
    return slots * sizeof(struct sg_tag);
}

void sg_gang_make(struct sg_warp *gang, unsigned size, void *tags) {
    const struct sg_grid *grid = gang->grid;
    const struct sg_code *code = grid->code;
    memset(tags, 0, sg_gang_bytes(code));
    gang->gang_size = size;
    gang->tags[SG_BASE_NOWHERE] = tags;
    gang->tags[SG_BASE_REGISTERS] = gang->tags[SG_BASE_NOWHERE] + NOWHERE_TAGS;
    gang->tags[SG_BASE_SPECIALS] =
        gang->tags[SG_BASE_REGISTERS] + code->functions[0].frame / SG_SLOT_LINE + 4;
    gang->tags[SG_BASE_CONSTANTS] = grid->constant_tags;
    gang->stride[SG_BASE_REGISTERS] = gang->stride[SG_BASE_NOWHERE] =
        (ptrdiff_t)grid->register_bytes;
    gang->stride[SG_BASE_SPECIALS] = (ptrdiff_t)((code->special_bytes + 255u) & ~255u);
    shape(gang);
    for (uint32_t i = 0; i < code->special_count; i++)
        if (!sg_special_of_block(code->specials[i].special) && code->specials[i].width != SG_W_PRED)
            fit(gang, &code->specials[i]);
}

void sg_gang_start(struct sg_warp *gang) {
    const struct sg_code *code = gang->grid->code;
    gang->tagged = true;
    gang->meet_turns = 0;
    for (uint32_t i = 0; i < code->special_count; i++) {
        const struct sg_code_special *special = &code->specials[i];
        if (!sg_special_of_block(special->special))
            continue;
        if (special->width == SG_W_PRED) {
            for (unsigned g = 0; g < gang->gang_size; g++)
                sg_special_fill(&gang[g], special, gang[g].specials + special->offset);
            continue;
        }
        *sg_tag(gang, SG_PLACE(SG_BASE_SPECIALS, special->offset)) = (struct sg_tag){
            .base = sg_special_value(gang, special), .kind = SG_TAG_KNOWN | SG_TAG_NO_DATA};
    }
}

/* ---- together and apart ---------------------------------------------------------------------- */

static void fill(struct sg_warp *gang, uint32_t place, unsigned width) {
    if (sg_tag(gang, place)->kind & SG_TAG_NO_DATA)
        sg_level_lanes(gang->grid->code->level)->fill(gang, place, bytes_of(width));
}

static void fill_specials(struct sg_warp *gang) {
    const struct sg_code *code = gang->grid->code;
    for (uint32_t i = 0; i < code->special_count; i++)
        if (code->specials[i].width != SG_W_PRED)
            fill(gang, SG_PLACE(SG_BASE_SPECIALS, code->specials[i].offset),
                 code->specials[i].width);
}

/* Expands the tags of `count` slots and drops all, except those of the first `hold` of them. */
static void apart(struct sg_warp *gang, const uint32_t *slots, uint32_t count, uint32_t hold) {
    const struct sg_code *code = gang->grid->code;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = slots[i] & ~(SG_SLOT_LINE - 1);
        struct sg_tag *tag = sg_tag(gang, place);
        fill(gang, place, slots[i] & SG_SLOT_WIDTH);
        if (i < hold && tag->kind)
            tag->kind |= SG_TAG_HOLDS;
    }
    for (uint32_t i = 0; i < code->entry_slots; i++) {
        struct sg_tag *tag = sg_tag(gang, code->slots[i] & ~(SG_SLOT_LINE - 1));
        tag->kind = tag->kind & SG_TAG_HOLDS ? SG_TAG_KNOWN : 0;
    }
    fill_specials(gang);
    gang->tagged = false;
    gang->held = hold != 0;
}

void sg_gang_apart(struct sg_warp *gang) {
    apart(gang, gang->grid->code->slots, gang->grid->code->entry_slots, 0);
}

/* Tags that were held are valid if no lane has gone further than to where the warps meet. */
static void take_back(struct sg_warp *gang) {
    const struct sg_code *code = gang->grid->code;
    bool valid = gang->meet != SG_NO_STEP;
    for (unsigned g = 0; g < gang->gang_size; g++)
        valid &=
            !gang[g].passed && (gang[g].group_count == 0 || gang[g].groups[0].step == gang->meet);
    for (uint32_t i = 0; i < code->entry_slots && !valid; i++)
        sg_tag(gang, code->slots[i] & ~(SG_SLOT_LINE - 1))->kind = 0;
    gang->held = false;
}

bool sg_gang_ready(const struct sg_warp *gang) {
    uint32_t step = SG_NO_STEP;
    for (unsigned g = 0; g < gang->gang_size; g++) {
        const struct sg_warp *warp = &gang[g];
        const struct sg_group *group = &warp->groups[0];
        if (warp->moved || warp->group_count > 1)
            return false;
        if (warp->group_count == 0)
            continue;
        if (group->state != SG_GROUP_READY || group->lanes != warp->live ||
            group->path != &warp->root || (step != SG_NO_STEP && group->step != step))
            return false;
        step = group->step;
    }
    return step != SG_NO_STEP;
}

/* The lanes of each warp go on at a step by themselves. */
static const struct sg_step *stop_at(struct sg_warp *gang, uint32_t step, enum sg_stop stop) {
    for (unsigned g = 0; g < gang->gang_size; g++)
        sg_group_add(&gang[g], gang[g].mask, step, &gang[g].root);
    gang->stop = stop;
    return NULL;
}

static void meet_at(struct sg_warp *gang, uint32_t step) {
    for (unsigned g = 0; g < gang->gang_size; g++) {
        gang[g].meet = step;
        gang[g].passed = false;
    }
    gang->meet_turns = 0;
    gang->stop = SG_STOP_APART;
}

/* Updates which lanes are live and execute, after the beginning and after exits, without a
 * guard. */
static void measure(struct sg_warp *gang) {
    uint32_t all = SG_ALL;
    for (unsigned g = 0; g < gang->gang_size; g++)
        all &= gang[g].mask;
    gang->whole = true;
    gang->full = gang->solid = all == SG_ALL;
}

enum sg_stop sg_gang_run(struct sg_warp *gang, int64_t quantum) {
    const struct sg_step *step = NULL;
    if (gang->held)
        take_back(gang);
    for (unsigned g = 0; g < gang->gang_size; g++) {
        struct sg_warp *warp = &gang[g];
        warp->mask = 0;
        warp->polls = warp->alone = false;
        warp->stop = SG_STOP_NONE;
        warp->meet = SG_NO_STEP;
        if (!warp->group_count)
            continue;
        step = &gang->grid->code->steps[warp->groups[0].step];
        warp->mask = warp->live;
        warp->group_count = warp->ready = warp->join_count = 0;
        warp->stamp = ++warp->clock;
        sg_path_use(warp, &warp->root);
    }
    measure(gang);
    gang->left = quantum;
    gang->tagged = true;
    gang->together = gang->gang_size;
    while (step)
        step = step->gang(gang, step);
    gang->together = 0;
    for (unsigned g = 1; g < gang->gang_size; g++)
        gang->polls |= gang[g].polls;
    return gang->stop;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const struct sg_step *leader(struct sg_warp *gang, const struct sg_step *step) {
    gang->left -= step->value;
    return gang->left >= 0 ? step + 1 : stop_at(gang, number_of(gang, step), SG_STOP_YIELD);
}

/* How many of the executing lanes take a control step. */
enum part { NOBODY, SOME, ALL };
static enum part taken_by(const struct sg_warp *gang, const struct sg_step *step,
                          uint32_t taken[SG_GANG]) {
    uint32_t any = 0, rest = 0;
    for (unsigned g = 0; g < gang->gang_size; g++) {
        taken[g] = sg_taken(&gang[g], step);
        any |= taken[g];
        rest |= gang[g].mask & ~taken[g];
    }
    return !rest ? ALL : any ? SOME : NOBODY;
}

static const struct sg_step *branch(struct sg_warp *gang, const struct sg_step *step) {
    const struct sg_step *target = &gang->grid->code->steps[step->target];
    if (!(step->flags & SG_STEP_GUARD))
        return target;
    uint32_t taken[SG_GANG] = {0};
    switch (taken_by(gang, step, taken)) {
    case ALL:
        return target;
    case NOBODY:
        return step + 1;
    default:
        break;
    }
    if (step->use_count == SG_ALL_SLOTS)
        sg_gang_apart(gang);
    else
        apart(gang, gang->grid->code->slots + step->uses, step->use_count, step->count);
    uint32_t next = number_of(gang, step) + 1;
    for (unsigned g = 0; g < gang->gang_size; g++) {
        if (taken[g] && gang[g].mask & ~taken[g])
            sg_join_branch(&gang[g], step);
        sg_group_add(&gang[g], taken[g], step->target, &gang[g].root);
        sg_group_add(&gang[g], gang[g].mask & ~taken[g], next, &gang[g].root);
    }
    meet_at(gang, (uint32_t)step->value);
    return NULL;
}

static const struct sg_step *leave(struct sg_warp *gang, const struct sg_step *step) {
    uint32_t taken[SG_GANG] = {0}, left = 0;
    if (taken_by(gang, step, taken) == NOBODY)
        return step + 1;
    for (unsigned g = 0; g < gang->gang_size; g++) {
        if (taken[g])
            sg_warp_exit(&gang[g], taken[g]);
        gang[g].mask &= ~taken[g];
        left |= gang[g].mask;
    }
    measure(gang);
    if (left)
        return step + 1;
    gang->stop = SG_STOP_DONE;
    return NULL;
}

static const struct sg_step *guard(struct sg_warp *gang, const struct sg_step *step) {
    uint32_t taken[SG_GANG] = {0};
    enum part part = taken_by(gang, step, taken);
    if (part == NOBODY)
        return &gang->grid->code->steps[step->target];
    for (unsigned g = 0; g < gang->gang_size; g++) {
        gang[g].unguarded = gang[g].mask;
        gang[g].mask = taken[g];
    }
    gang->whole = part == ALL;
    gang->solid = gang->full && part == ALL;
    return step + 1;
}

static const struct sg_step *unguard(struct sg_warp *gang, const struct sg_step *step) {
    for (unsigned g = 0; g < gang->gang_size; g++)
        gang[g].mask = gang[g].unguarded;
    gang->whole = true;
    gang->solid = gang->full;
    return step + 1;
}

/* ---- steps that run warp by warp ------------------------------------------------------------- */

static void bring(struct sg_warp *gang, const struct sg_step *step) {
    const uint32_t *use = gang->grid->code->slots + step->uses;
    for (uint32_t i = 0; i < step->use_count; i++) {
        uint32_t place = use[i] & ~(SG_SLOT_LINE - 1);
        fill(gang, place, use[i] & SG_SLOT_WIDTH);
        if (use[i] & SG_SLOT_WRITTEN)
            sg_tag(gang, place)->kind = 0;
    }
    fill_specials(gang);
}

/* Puts aside the lanes of a warp that has run the step, at its next step if it has one. */
static void part_from(struct sg_warp *warp, const struct sg_step *next) {
    if (next)
        sg_group_add(warp, warp->mask, (uint32_t)(next - warp->grid->code->steps), warp->path);
}

static const struct sg_step *each(struct sg_warp *gang, const struct sg_step *step) {
    unsigned together = gang->together, ran = 0;
    uint32_t mask[SG_GANG] = {0};
    const struct sg_step *next[SG_GANG] = {NULL};
    bool part = false;
    bring(gang, step);
    gang->together = 0;
    for (; ran < together && !part; ran++) {
        struct sg_warp *warp = &gang[ran];
        mask[ran] = warp->mask;
        next[ran] = mask[ran] ? step->run(warp, step) : step + 1;
        if (warp->stop == SG_STOP_FAULT) {
            gang->stop = SG_STOP_FAULT;
            return NULL;
        }
        part = next[ran] != step + 1 || warp->mask != mask[ran];
    }
    gang->together = together;
    if (!part)
        return step + 1;
    sg_gang_apart(gang);
    for (unsigned g = 0; g < together; g++) {
        if (g < ran)
            part_from(&gang[g], next[g]);
        else
            sg_group_add(&gang[g], gang[g].mask, number_of(gang, step), &gang[g].root);
    }
    meet_at(gang, step[1].run == sg_run_leader ? number_of(gang, step) + 1 : SG_NO_STEP);
    return NULL;
}

/* bar.sync and the like, if all lanes name the same barrier. */
static const struct sg_step *barrier(struct sg_warp *gang, const struct sg_step *step) {
    uint32_t taken[SG_GANG] = {0};
    if (step->choice == SG_DO_RED || step->a >> 30 != SG_BASE_CONSTANTS ||
        (step->b != SG_NOWHERE && step->b >> 30 != SG_BASE_CONSTANTS) ||
        taken_by(gang, step, taken) != ALL)
        return each(gang, step);
    uint32_t number = *(const uint32_t *)sg_place(gang, step->a);
    for (unsigned g = 0; g < gang->gang_size; g++)
        if (taken[g] && !sg_barrier_arrive(&gang[g], step, taken[g], number)) {
            gang->stop = SG_STOP_FAULT;
            return NULL;
        }
    gang->stop = SG_STOP_BLOCKED;
    return NULL;
}

sg_run *sg_gang_of(sg_run *run) {
    static const struct {
        sg_run *run, *gang;
    } pairs[] = {
        {sg_run_leader, leader},
        {sg_run_branch, branch},
        {sg_run_exit, leave},
        {sg_run_return, leave}, /* the entry's: called functions run warp by warp */
        {sg_run_guard, guard},
        {sg_run_unguard, unguard},
        {sg_run_nothing, sg_run_nothing},
        {sg_run_fence, sg_run_fence},
        {sg_run_barrier, barrier},
        {sg_run_count, sg_gang_count},
        {sg_run_count_access, sg_gang_count_access},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (pairs[i].run == run)
            return pairs[i].gang;
    return each;
}
