/* The synchronization checker: grids and their blocks. */
#include "softgpu/check/sync_inside.h"

#include <stdlib.h>
#include <string.h>

struct sg_sync *sg_sync_begin(const struct sg_sync_options *options) {
    struct sg_sync *sync = calloc(1, sizeof *sync);
    if (!sync)
        return NULL;
    sync->options = *options;
    sync->warps = (options->threads + 31) / 32;
    return sync;
}

struct sg_sync_block *sg_sync_block_of(struct sg_sync *sync, uint64_t index) {
    if (sync->last && sync->last->index == index)
        return sync->last;
    struct sg_sync_block *block = sync->buckets[index % SG_SYNC_BUCKETS];
    while (block && block->index != index)
        block = block->next;
    if (block)
        sync->last = block;
    return block;
}

struct sg_sync_found sg_sync_finding(const struct sg_sync_block *block, enum sg_sync_kind kind,
                                     uint32_t instruction, unsigned thread) {
    struct sg_sync_found found = {.kind = kind, .instruction = instruction, .thread = thread};
    memcpy(found.place, block->place, sizeof found.place);
    return found;
}

void sg_sync_report(const struct sg_sync *sync, const struct sg_sync_found *found) {
    sync->options.found(sync->options.user, found);
}

static void block_begins(void *user, uint64_t index, uint64_t shared_bytes) {
    struct sg_sync *sync = user;
    (void)shared_bytes;
    struct sg_sync_block *block = calloc(1, sizeof *block);
    if (!block)
        return; /* it is not checked then */
    block->index = index;
    for (unsigned w = 0; w < sync->warps; w++) {
        unsigned left = sync->options.threads - 32 * w;
        block->live[w] = left >= 32 ? UINT32_MAX : (UINT32_C(1) << left) - 1;
    }
    block->next = sync->buckets[index % SG_SYNC_BUCKETS];
    sync->buckets[index % SG_SYNC_BUCKETS] = block;
    sync->last = block;
}

static void block_free(struct sg_sync *sync, struct sg_sync_block *block) {
    if (sync->last == block)
        sync->last = NULL;
    free(block->mbarriers);
    free(block->copies);
    free(block->commits);
    free(block);
}

static void block_ends(void *user, uint64_t index) {
    struct sg_sync *sync = user;
    struct sg_sync_block **link = &sync->buckets[index % SG_SYNC_BUCKETS];
    while (*link && (*link)->index != index)
        link = &(*link)->next;
    struct sg_sync_block *block = *link;
    if (!block)
        return;
    sg_sync_unreached(sync, block);
    *link = block->next;
    block_free(sync, block);
}

static void exits(void *user, const struct sg_watched_warp *warp, uint32_t lanes) {
    struct sg_sync_block *block = sg_sync_block_of(user, warp->block);
    if (!block)
        return;
    memcpy(block->place, warp->place, sizeof block->place);
    block->live[warp->first / 32] &= ~lanes;
    block->exited[warp->first / 32] |= lanes;
}

void sg_sync_end(struct sg_sync *sync, bool deadlock) {
    for (unsigned i = 0; i < SG_SYNC_BUCKETS; i++)
        while (sync->buckets[i]) {
            struct sg_sync_block *block = sync->buckets[i];
            if (deadlock)
                sg_sync_unreached(sync, block);
            sync->buckets[i] = block->next;
            block_free(sync, block);
        }
    free(sync);
}

const struct sg_watch sg_sync_watch = {.access = sg_sync_access,
                                       .arrives = sg_sync_arrives,
                                       .beyond = sg_sync_beyond,
                                       .completes = sg_sync_completes,
                                       .fence = sg_sync_fence,
                                       .issues = sg_sync_issues,
                                       .gathers = sg_sync_gathers,
                                       .exits = exits,
                                       .block_begins = block_begins,
                                       .block_ends = block_ends};
