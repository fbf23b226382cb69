/* mbarriers, and bytes of asynchronous copies that nothing has waited for. */
#include "softgpu/check/sync_inside.h"

#include "base/growing_array.h"

#include <stdlib.h>
#include <string.h>

static const struct sg_instruction *at(const struct sg_sync *sync, uint32_t instruction) {
    return &sync->options.program->instructions[instruction];
}

static bool overlap(uint64_t a, uint32_t a_size, uint64_t b, uint32_t b_size) {
    return a < b + b_size && b < a + a_size;
}

static void report(const struct sg_sync *sync, const struct sg_sync_block *block,
                   enum sg_sync_kind kind, const struct sg_watched_access *access, unsigned lane,
                   const struct sg_sync_copy *copy) {
    struct sg_sync_found found =
        sg_sync_finding(block, kind, access->instruction, access->warp->first + lane);
    found.has_address = true;
    found.write = access->kind != SG_WATCHED_READ;
    found.address = access->address[lane];
    found.size = access->size;
    if (copy) {
        found.has_other = true;
        found.other_instruction = copy->instruction;
        found.other_thread = copy->thread;
    }
    sg_sync_report(sync, &found);
}

/* ---- mbarriers ------------------------------------------------------------------------------- */

static size_t find_mbarrier(const struct sg_sync_block *block, uint64_t address, uint32_t size) {
    size_t i = 0;
    while (i < block->mbarrier_count && !overlap(block->mbarriers[i], 8, address, size))
        i++;
    return i;
}

static void use_mbarrier(const struct sg_sync *sync, struct sg_sync_block *block,
                         const struct sg_watched_access *access, unsigned lane) {
    unsigned operation = at(sync, access->instruction)->operation;
    uint64_t address = access->address[lane];
    size_t found = find_mbarrier(block, address, 8);
    bool there = found < block->mbarrier_count && block->mbarriers[found] == address;
    if (operation != SG_DO_INIT) {
        if (!there)
            report(sync, block, SG_SYNC_NO_MBARRIER, access, lane, NULL);
        else if (operation == SG_DO_INVAL)
            block->mbarriers[found] = block->mbarriers[--block->mbarrier_count];
        return;
    }
    if (found < block->mbarrier_count)
        report(sync, block, SG_SYNC_AGAIN, access, lane, NULL);
    if (!there && GM_RESERVE(block->mbarriers, block->mbarrier_room, block->mbarrier_count + 1))
        block->mbarriers[block->mbarrier_count++] = address;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static const struct sg_sync_copy *copy_at(const struct sg_sync_block *block, uint64_t address,
                                          uint32_t size) {
    for (size_t i = 0; i < block->copy_count; i++)
        if (overlap(block->copies[i].at, block->copies[i].size, address, size))
            return &block->copies[i];
    return NULL;
}

void sg_sync_issues(void *user, const struct sg_watched_access *copy) {
    struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(sync, copy->warp->block);
    if (!block)
        return;
    memcpy(block->place, copy->warp->place, sizeof block->place);
    for (uint32_t left = copy->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        const struct sg_sync_copy *other = copy_at(block, copy->address[l], copy->size);
        if (other)
            report(sync, block, SG_SYNC_TWO_COPIES, copy, l, other);
        if (GM_RESERVE(block->copies, block->copy_room, block->copy_count + 1))
            block->copies[block->copy_count++] =
                (struct sg_sync_copy){.at = copy->address[l],
                                      .size = copy->size,
                                      .thread = copy->warp->first + l,
                                      .instruction = copy->instruction};
    }
}

/* Forgets a thread's copies of groups up to a number; `all`: also those without a group. */
static void forget(struct sg_sync_block *block, unsigned thread, uint32_t group, bool all) {
    size_t kept = 0;
    for (size_t i = 0; i < block->copy_count; i++) {
        const struct sg_sync_copy *copy = &block->copies[i];
        bool done = copy->thread == thread && (all || (copy->group && copy->group <= group));
        if (!done)
            block->copies[kept++] = *copy;
    }
    block->copy_count = kept;
}

static void commit(const struct sg_sync *sync, struct sg_sync_block *block, unsigned thread) {
    if (!block->commits)
        block->commits = calloc(sync->options.threads, sizeof *block->commits);
    if (!block->commits) {
        forget(block, thread, 0, true); /* out of memory: not checked then */
        return;
    }
    uint32_t group = ++block->commits[thread];
    for (size_t i = 0; i < block->copy_count; i++)
        if (block->copies[i].thread == thread && !block->copies[i].group)
            block->copies[i].group = group;
}

void sg_sync_fence(void *user, const struct sg_watched_warp *warp, uint32_t instruction,
                   uint32_t lanes, unsigned char order, unsigned char scope) {
    struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(sync, warp->block);
    const struct sg_instruction *in = at(sync, instruction);
    (void)scope;
    if (order != SG_WATCHED_ASYNC || !block)
        return;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned thread = warp->first + (unsigned)__builtin_ctz(left);
        uint32_t commits = block->commits ? block->commits[thread] : 0;
        if (in->operation == SG_DO_COMMIT_GROUP) {
            commit(sync, block, thread);
        } else if (in->operation == SG_DO_WAIT_ALL) {
            forget(block, thread, 0, true);
        } else if (in->operation == SG_DO_WAIT_GROUP) {
            int64_t open = sync->options.program->operands[in->first_operand].value;
            if (commits > open)
                forget(block, thread, commits - (uint32_t)open, false);
        }
    }
}

/* ---- accesses -------------------------------------------------------------------------------- */

static void look(const struct sg_sync *sync, struct sg_sync_block *block,
                 const struct sg_watched_access *access, unsigned lane) {
    uint64_t address = access->address[lane];
    const struct sg_sync_copy *copy = copy_at(block, address, access->size);
    if (copy)
        report(sync, block, SG_SYNC_NOT_WAITED, access, lane, copy);
    if (access->kind != SG_WATCHED_READ &&
        find_mbarrier(block, address, access->size) < block->mbarrier_count)
        report(sync, block, SG_SYNC_OVERWRITTEN, access, lane, NULL);
}

/* cp.async.mbarrier.arrive covers the copies of its thread: the program waits at the mbarrier. */
static bool is_copies_arrival(const struct sg_instruction *in) {
    return in->op == SG_OP_cp && in->operation == SG_DO_MBARRIER_ARRIVE;
}

void sg_sync_access(void *user, const struct sg_watched_access *access) {
    struct sg_sync *sync = user;
    if (access->space != SG_IN_SHARED)
        return;
    struct sg_sync_block *block = sg_sync_block_of(sync, access->warp->block);
    const struct sg_instruction *in = at(sync, access->instruction);
    if (!block)
        return;
    memcpy(block->place, access->warp->place, sizeof block->place);
    bool nothing = block->copy_count == 0 && block->mbarrier_count == 0;
    for (uint32_t left = access->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (in->op == SG_OP_mbarrier)
            use_mbarrier(sync, block, access, l);
        else if (is_copies_arrival(in))
            forget(block, access->warp->first + l, 0, true);
        else if (!nothing && !(access->order & SG_WATCHED_ASYNC))
            look(sync, block, access, l);
    }
}
