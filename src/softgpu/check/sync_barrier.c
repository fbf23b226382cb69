/* Barriers of a block, and member masks of warp functions. */
#include "softgpu/check/sync_inside.h"

#include <string.h>

static const struct sg_instruction *at(const struct sg_sync *sync, uint32_t instruction) {
    return &sync->options.program->instructions[instruction];
}

static bool is_aligned(const struct sg_instruction *in) {
    return in->op == SG_OP_bar || in->modifiers & SG_MOD(ALIGNED);
}

/* The operand with the number of threads; NULL: all. */
static const struct sg_operand *count_of(const struct sg_sync *sync,
                                         const struct sg_instruction *in) {
    bool red = in->operation == SG_DO_RED;
    unsigned first = red ? 1 : 0, others = red ? 2 : 1;
    bool given = in->operand_count - first > others;
    return given ? &sync->options.program->operands[in->first_operand + first + 1] : NULL;
}

static void look_at_count(const struct sg_sync *sync, const struct sg_sync_block *block,
                          uint32_t instruction, unsigned thread, unsigned number) {
    const struct sg_operand *count = count_of(sync, at(sync, instruction));
    if (!count || count->kind != SG_OPERAND_IMMEDIATE || count->value % 32 == 0)
        return;
    struct sg_sync_found found = sg_sync_finding(block, SG_SYNC_COUNT, instruction, thread);
    found.number = number;
    sg_sync_report(sync, &found);
}

/* Checks for other lanes of the warp at another barrier, or at this one by another instruction. */
static void look_at_others(const struct sg_sync *sync, const struct sg_sync_block *block,
                           const struct sg_watched_warp *warp, uint32_t instruction, uint32_t lanes,
                           unsigned number) {
    unsigned w = warp->first / 32, thread = warp->first + (unsigned)__builtin_ctz(lanes);
    for (unsigned b = 0; b < SG_SYNC_BARRIERS; b++) {
        const struct sg_sync_barrier *barrier = &block->barriers[b];
        uint32_t there = (b == number ? barrier->arrived[w] : barrier->waits[w]) & ~lanes;
        if (!there || (b == number && barrier->instruction[w] == instruction))
            continue;
        struct sg_sync_found found = sg_sync_finding(
            block, b == number ? SG_SYNC_OTHER_PLACE : SG_SYNC_TWO_BARRIERS, instruction, thread);
        found.number = number;
        found.has_other = true;
        found.other_instruction = barrier->instruction[w];
        found.other_thread = warp->first + (unsigned)__builtin_ctz(there);
        sg_sync_report(sync, &found);
    }
}

/*
 * PTX wants an arrival and a wait by turns. And an instruction counts a warp as a whole: ptxas
 * brings the warp's lanes together at each, so that arrivals at two places are two of the warp.
 */
static void at_cluster(const struct sg_sync *sync, struct sg_sync_block *block, unsigned w,
                       uint32_t instruction, uint32_t lanes, bool waits) {
    uint32_t wrong = waits ? lanes & ~block->cluster_arrived[w] : lanes & block->cluster_arrived[w];
    if (wrong) {
        struct sg_sync_found found =
            sg_sync_finding(block, waits ? SG_SYNC_NOT_ARRIVED : SG_SYNC_ARRIVED_TWICE, instruction,
                            32 * w + (unsigned)__builtin_ctz(wrong));
        sg_sync_report(sync, &found);
    }
    uint32_t others = block->cluster_arrived[w] & ~lanes & block->live[w];
    if (!waits && others && block->cluster_instruction[w] != instruction) {
        struct sg_sync_found found = sg_sync_finding(block, SG_SYNC_CLUSTER_PLACES, instruction,
                                                     32 * w + (unsigned)__builtin_ctz(lanes));
        found.has_other = true;
        found.other_instruction = block->cluster_instruction[w];
        found.other_thread = 32 * w + (unsigned)__builtin_ctz(others);
        sg_sync_report(sync, &found);
    }
    if (waits) {
        block->cluster_arrived[w] &= ~lanes;
    } else {
        block->cluster_arrived[w] |= lanes;
        block->cluster_instruction[w] = instruction;
    }
}

void sg_sync_beyond(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                    uint32_t lanes, uint32_t number) {
    struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(sync, warp->block);
    if (!block || !lanes)
        return;
    memcpy(block->place, warp->place, sizeof block->place);
    struct sg_sync_found found = sg_sync_finding(block, SG_SYNC_NUMBER, instruction,
                                                 warp->first + (unsigned)__builtin_ctz(lanes));
    found.number = number;
    sg_sync_report(sync, &found);
}

void sg_sync_arrives(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                     uint32_t lanes, unsigned number, bool waits) {
    struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(sync, warp->block);
    if (!block || !lanes)
        return;
    unsigned w = warp->first / 32;
    memcpy(block->place, warp->place, sizeof block->place);
    sg_sync_waits_no_more(sync, block, warp->first, lanes);
    if (number >= SG_SYNC_BARRIERS) {
        at_cluster(sync, block, w, instruction, lanes, waits);
        return;
    }
    struct sg_sync_barrier *barrier = &block->barriers[number];
    if (is_aligned(at(sync, instruction)))
        look_at_others(sync, block, warp, instruction, lanes, number);
    look_at_count(sync, block, instruction, warp->first + (unsigned)__builtin_ctz(lanes), number);
    if (!barrier->arrived[w])
        barrier->there[w] = block->live[w];
    barrier->arrived[w] |= lanes;
    barrier->waits[w] |= waits ? lanes : 0;
    barrier->instruction[w] = instruction;
    barrier->last = instruction;
    barrier->used = true;
}

static void say_missing(const struct sg_sync *sync, const struct sg_sync_block *block,
                        enum sg_sync_kind kind, uint32_t instruction, unsigned number, unsigned w,
                        uint32_t missing) {
    struct sg_sync_found found =
        sg_sync_finding(block, kind, instruction, 32 * w + (unsigned)__builtin_ctz(missing));
    found.number = number;
    found.missing = (unsigned)__builtin_popcount(missing);
    sg_sync_report(sync, &found);
}

void sg_sync_completes(void *user, uint64_t index, unsigned number) {
    struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(sync, index);
    if (!block || number >= SG_SYNC_BARRIERS)
        return;
    struct sg_sync_barrier *barrier = &block->barriers[number];
    bool counts = barrier->used && count_of(sync, at(sync, barrier->last));
    for (unsigned w = 0; w < sync->warps && barrier->used; w++) {
        uint32_t instruction = barrier->arrived[w] ? barrier->instruction[w] : barrier->last;
        uint32_t missing = barrier->there[w] & ~barrier->arrived[w];
        if (missing && is_aligned(at(sync, instruction)))
            say_missing(sync, block, SG_SYNC_DIVERGENT_WARP, instruction, number, w, missing);
        uint32_t exited = block->exited[w] & ~barrier->arrived[w] & ~missing;
        if (!counts && exited)
            say_missing(sync, block, SG_SYNC_EXITED, instruction, number, w, exited);
    }
    memset(barrier, 0, sizeof *barrier);
}

/* Lanes that wait in a warp's function for others, which wait elsewhere. */
static void not_come(const struct sg_sync *sync, const struct sg_sync_block *block) {
    for (unsigned w = 0; w < sync->warps; w++) {
        uint32_t missing = block->members[w] & block->live[w] & ~block->gathered[w];
        if (!block->gathered[w] || !missing)
            continue;
        struct sg_sync_found found =
            sg_sync_finding(block, SG_SYNC_NOT_COME, block->gathered_at[w],
                            32 * w + (unsigned)__builtin_ctz(block->gathered[w]));
        found.missing = (unsigned)__builtin_popcount(missing);
        sg_sync_report(sync, &found);
    }
}

void sg_sync_unreached(struct sg_sync *sync, struct sg_sync_block *block, bool deadlock) {
    if (deadlock)
        not_come(sync, block);
    for (unsigned b = 0; b < SG_SYNC_BARRIERS; b++) {
        const struct sg_sync_barrier *barrier = &block->barriers[b];
        unsigned missing = 0, w = 0;
        for (unsigned i = 0; barrier->used && i < sync->warps; i++)
            missing += (unsigned)__builtin_popcount((block->live[i] | block->exited[i]) &
                                                    ~barrier->arrived[i]);
        while (barrier->used && !barrier->arrived[w])
            w++;
        if (!barrier->used)
            continue;
        struct sg_sync_found found =
            sg_sync_finding(block, SG_SYNC_UNREACHED, barrier->instruction[w],
                            32 * w + (unsigned)__builtin_ctz(barrier->arrived[w]));
        found.number = b;
        found.missing = missing;
        sg_sync_report(sync, &found);
    }
}

/* ---- member masks ---------------------------------------------------------------------------- */

/* A lane that this one names, or that names it, with another mask; 32: none. */
static unsigned unequal_to(uint32_t lanes, const uint32_t *members, unsigned lane) {
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (members[l] != members[lane] && (members[l] >> lane & 1 || members[lane] >> l & 1))
            return l;
    }
    return 32;
}

void sg_sync_gathers(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                     uint32_t lanes, const uint32_t *members) {
    struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(sync, warp->block);
    if (!block)
        return;
    memcpy(block->place, warp->place, sizeof block->place);
    sg_sync_waits_no_more(sync, block, warp->first, lanes);
    unsigned w = warp->first / 32;
    block->members[w] = block->gathered[w] ? block->members[w] : 0;
    for (uint32_t left = lanes; left; left &= left - 1)
        block->members[w] |= members[__builtin_ctz(left)];
    block->gathered[w] |= lanes;
    block->gathered_at[w] = instruction;
    bool said = false;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        unsigned other = said ? 32 : unequal_to(lanes, members, l);
        struct sg_sync_found found =
            sg_sync_finding(block, SG_SYNC_NO_MEMBER, instruction, warp->first + l);
        if (!(members[l] >> l & 1))
            sg_sync_report(sync, &found);
        if (other == 32)
            continue;
        said = true;
        found.kind = SG_SYNC_UNEQUAL;
        found.has_other = true;
        found.other_instruction = instruction;
        found.other_thread = warp->first + other;
        sg_sync_report(sync, &found);
    }
}

void sg_sync_meet(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                  uint32_t lanes) {
    struct sg_sync_block *block = sg_sync_block_of(user, warp->block);
    (void)instruction;
    if (block)
        block->gathered[warp->first / 32] &= ~lanes;
}
