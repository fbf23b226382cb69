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
    sync->cluster_size = 1;
    for (unsigned i = 0; i < 3; i++) {
        unsigned *edge = &sync->options.cluster[i];
        *edge = *edge ? *edge : 1;
        sync->cluster_size *= *edge;
    }
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
    memcpy(found.other_place, block->place, sizeof found.other_place);
    return found;
}

void sg_sync_report(const struct sg_sync *sync, const struct sg_sync_found *found) {
    sync->options.found(sync->options.user, found);
}

/* ---- clusters -------------------------------------------------------------------------------- */

/* The cluster that a block is in, and its rank there. */
static uint64_t cluster_of(const struct sg_sync *sync, uint64_t block, unsigned *rank) {
    const unsigned *grid = sync->options.grid, *cluster = sync->options.cluster;
    if (sync->cluster_size == 1) {
        *rank = 0;
        return block;
    }
    uint64_t at[3] = {block % grid[0], block / grid[0] % grid[1], block / grid[0] / grid[1]};
    unsigned in[3];
    for (unsigned i = 0; i < 3; i++)
        in[i] = (unsigned)(at[i] % cluster[i]);
    *rank = in[0] + cluster[0] * (in[1] + cluster[1] * in[2]);
    uint64_t across = grid[0] / cluster[0], down = grid[1] / cluster[1];
    return at[0] / cluster[0] + across * (at[1] / cluster[1] + down * (at[2] / cluster[2]));
}

static struct sg_sync_cluster *cluster_at(struct sg_sync *sync, uint64_t index) {
    struct sg_sync_cluster **bucket = &sync->clusters[index % SG_SYNC_BUCKETS], *cluster = *bucket;
    while (cluster && cluster->index != index)
        cluster = cluster->next;
    if (cluster)
        return cluster;
    cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        return NULL;
    cluster->index = index;
    cluster->next = *bucket;
    *bucket = cluster;
    return cluster;
}

static void cluster_leave(struct sg_sync *sync, struct sg_sync_cluster *cluster) {
    if (--cluster->present > 0)
        return;
    struct sg_sync_cluster **link = &sync->clusters[cluster->index % SG_SYNC_BUCKETS];
    while (*link != cluster)
        link = &(*link)->next;
    *link = cluster->next;
    free(cluster->mbarriers);
    free(cluster->waits);
    sg_sync_copies_free(cluster);
    free(cluster);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void block_begins(void *user, uint64_t index, uint64_t shared_bytes) {
    struct sg_sync *sync = user;
    (void)shared_bytes;
    unsigned rank;
    struct sg_sync_cluster *cluster = cluster_at(sync, cluster_of(sync, index, &rank));
    if (!cluster)
        return; /* it is not checked then */
    cluster->present++;
    struct sg_sync_block *block = calloc(1, sizeof *block);
    if (!block) {
        cluster_leave(sync, cluster);
        return;
    }
    block->index = index;
    block->cluster = cluster;
    block->rank = rank;
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
    cluster_leave(sync, block->cluster);
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
    sg_sync_unreached(sync, block, false);
    sg_sync_copies_left(sync, block);
    *link = block->next;
    block_free(sync, block);
}

static void exits(void *user, const struct sg_watched_warp *warp, uint32_t lanes) {
    const struct sg_sync *sync = user;
    struct sg_sync_block *block = sg_sync_block_of(user, warp->block);
    if (!block)
        return;
    memcpy(block->place, warp->place, sizeof block->place);
    sg_sync_waits_no_more(sync, block, warp->first, lanes);
    block->live[warp->first / 32] &= ~lanes;
    block->exited[warp->first / 32] |= lanes;
}

void sg_sync_end(struct sg_sync *sync, bool deadlock) {
    for (unsigned i = 0; i < SG_SYNC_BUCKETS; i++)
        while (sync->buckets[i]) {
            struct sg_sync_block *block = sync->buckets[i];
            if (deadlock)
                sg_sync_unreached(sync, block, true);
            sync->buckets[i] = block->next;
            block_free(sync, block);
        }
    free(sync);
}

const struct sg_watch sg_sync_watch = {.access = sg_sync_access,
                                       .arrives = sg_sync_arrives,
                                       .beyond = sg_sync_beyond,
                                       .completes = sg_sync_completes,
                                       .meet = sg_sync_meet,
                                       .fence = sg_sync_fence,
                                       .issues = sg_sync_issues,
                                       .issues_bulk = sg_sync_issues_bulk,
                                       .hands_over = sg_sync_hands_over,
                                       .looks = sg_sync_looks,
                                       .turns = sg_sync_turns,
                                       .gathers = sg_sync_gathers,
                                       .exits = exits,
                                       .block_begins = block_begins,
                                       .block_ends = block_ends};
