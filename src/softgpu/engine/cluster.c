/*
 * Clusters: blocks that begin together and run on one thread, their distributed shared memory, and
 * their barrier. A block's shared memory is gone when it ends: later accesses to it fault.
 */
#include "softgpu/engine/watching.h"

#include <stdlib.h>
#include <string.h>

/* ---- begin and end --------------------------------------------------------------------------- */

uint64_t sg_cluster_place(const struct sg_grid *grid, uint64_t order, unsigned place[3]) {
    const unsigned *shape = grid->launch.grid, *inner = grid->cluster;
    if (grid->cluster_size == 1) { /* a short path for the usual case, as blocks may be short too */
        place[0] = (unsigned)(order % shape[0]);
        place[1] = (unsigned)(order / shape[0] % shape[1]);
        place[2] = (unsigned)(order / shape[0] / shape[1]);
        return order;
    }
    uint64_t which = order / grid->cluster_size, rank = order % grid->cluster_size;
    for (unsigned i = 0; i < 3; i++) {
        unsigned outer = shape[i] / inner[i];
        place[i] = (unsigned)(which % outer * inner[i] + rank % inner[i]);
        which /= outer;
        rank /= inner[i];
    }
    return place[0] + (uint64_t)shape[0] * (place[1] + (uint64_t)shape[1] * place[2]);
}

static void cluster_free(struct sg_cluster_run *cluster) {
    if (!cluster)
        return;
    sg_pending_drop(&cluster->bulk);
    for (unsigned i = 0; cluster->copies && i < cluster->size * cluster->grid->warps; i++)
        sg_pending_drop(&cluster->copies[i]);
    free(cluster->copies);
    free(cluster->commits);
    free(cluster);
}

bool sg_cluster_open(struct sg_worker *worker) {
    struct sg_grid *grid = worker->grid;
    if (!grid->clustered)
        return true;
    struct sg_cluster_run *cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        return false;
    cluster->grid = grid;
    cluster->size = grid->cluster_size;
    worker->opening = cluster;
    if (grid->launch.schedule == SG_GRID_EAGER) /* nothing is pending */
        return true;
    cluster->copies = calloc((size_t)cluster->size * grid->warps, sizeof *cluster->copies);
    cluster->commits = calloc((size_t)cluster->size * grid->threads * 2, sizeof *cluster->commits);
    if (cluster->copies && cluster->commits)
        return true;
    sg_cluster_close(worker);
    return false;
}

void sg_cluster_close(struct sg_worker *worker) {
    cluster_free(worker->opening);
    worker->opening = NULL;
}

void sg_cluster_join(struct sg_worker *worker, struct sg_block *block, uint64_t order) {
    struct sg_cluster_run *cluster = worker->opening;
    block->rank = (unsigned)(order % worker->grid->cluster_size);
    block->cluster = cluster;
    if (!cluster)
        return;
    cluster->first = order - block->rank;
    cluster->blocks[block->rank] = block;
    cluster->present++;
}

bool sg_cluster_leave(struct sg_block *block, bool whole) {
    struct sg_cluster_run *cluster = block->cluster;
    if (!cluster)
        return true;
    bool good = !whole || sg_pending_leave(block);
    block->cluster = NULL;
    cluster->blocks[block->rank] = NULL;
    if (--cluster->present == 0)
        cluster_free(cluster);
    return good;
}

bool sg_cluster_runs(const struct sg_block *block, bool apart) {
    const struct sg_cluster_run *cluster = block->cluster;
    for (unsigned i = 0; cluster && i < cluster->size; i++)
        for (unsigned w = 0; cluster->blocks[i] && w < cluster->blocks[i]->warp_count; w++)
            if (cluster->blocks[i]->warps[w].ready || cluster->blocks[i]->warps[w].asleep ||
                (apart && cluster->blocks[i]->warps[w].joining))
                return true;
    return false;
}

/* ---- shared memory --------------------------------------------------------------------------- */

/*
 * Compilers merge adjacent loads to a vector load, and let it read as far as alignment ensures that
 * there is memory, even past the end of the block's, which is allocated in larger units. The first
 * bytes are inside, and an aligned vector does not extend beyond the unit.
 */
static bool reads_past_end(const struct sg_warp *warp, const struct sg_step *step, uint64_t offset,
                           uint64_t room) {
    const struct sg_program *program = warp->grid->code->program;
    const struct sg_instruction *in = &program->instructions[step->instruction];
    return in->op == SG_OP_ld && in->vector > 1 && offset < room;
}

/* What the system has reserved, for kernels that ask where: below a block's own memory. */
static unsigned char *reserved(const struct sg_grid *grid, const struct sg_block *block,
                               uint64_t offset, uint64_t size) {
    uint64_t at = sg_shared_address(offset);
    bool inside = at < grid->reserved_bytes && size <= grid->reserved_bytes - at;
    return inside ? block->shared + grid->reserved_offset + at : NULL;
}

const struct sg_block *sg_block_of_shared(const struct sg_warp *warp, uint64_t *offset) {
    const struct sg_cluster_run *cluster = warp->block->cluster;
    if (!cluster)
        return warp->block;
    uint64_t address = *offset + SG_SHARED_BEGIN, rank = address >> SG_RANK_SHIFT;
    *offset = SG_RANK_OFFSET(address) - SG_SHARED_BEGIN;
    return rank < cluster->size ? cluster->blocks[rank] : NULL;
}

unsigned char *sg_reach_shared(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                               uint64_t address, uint64_t size) {
    uint64_t offset = address, room = sg_shared_room(warp->grid);
    const struct sg_block *block = sg_block_of_shared(warp, &offset);
    unsigned char *low = block ? reserved(warp->grid, block, offset, size) : NULL;
    if (low)
        return low;
    if (block &&
        ((size <= room && offset <= room - size) || reads_past_end(warp, step, offset, room)))
        return block->shared + offset;
    return sg_warp_fault(warp, step, SG_FAULT_SPACE, lane, address, size);
}

uint64_t sg_where_address(const struct sg_warp *warp, const uint32_t *where, unsigned lane) {
    uint64_t offset = (uint64_t)where[3] << 32 | where[2];
    if (where[1] & 1)
        return ((const uint64_t *)sg_place(warp, where[0]))[lane] + offset;
    return (uint32_t)(((const uint32_t *)sg_place(warp, where[0]))[lane] + (uint32_t)offset);
}

bool sg_where_shared(struct sg_warp *warp, const struct sg_step *step, const uint32_t *where,
                     unsigned lane, uint64_t alignment, uint64_t *address) {
    uint64_t at = sg_where_address(warp, where, lane);
    if (where[1] >> 8 == SG_IN_GENERIC)
        at -= SG_SHARED_WINDOW + SG_SHARED_BEGIN;
    *address = at;
    if (at > UINT32_MAX)
        return sg_warp_fault(warp, step, SG_FAULT_SPACE, lane, at, alignment) != NULL;
    if (at & (alignment - 1))
        return sg_warp_fault(warp, step, SG_FAULT_MISALIGNED, lane, at, alignment) != NULL;
    return true;
}

/* a: an address of shared memory (`second`: 64 bits; `choice`: a generic one); b: the rank; d */
const struct sg_step *sg_run_mapa(struct sg_warp *warp, const struct sg_step *step) {
    const uint32_t *rank = sg_place(warp, step->b);
    const void *a = sg_place(warp, step->a);
    void *d = sg_place(warp, step->d);
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        uint64_t at = step->second ? ((const uint64_t *)a)[l] : ((const uint32_t *)a)[l];
        uint64_t window = step->choice ? SG_SHARED_WINDOW : 0;
        uint64_t there = window | (uint64_t)rank[l] << SG_RANK_SHIFT | SG_RANK_OFFSET(at);
        if (step->choice && at >> 32 != SG_SHARED_WINDOW >> 32)
            there = at;
        if (step->second)
            ((uint64_t *)d)[l] = there;
        else
            ((uint32_t *)d)[l] = (uint32_t)there;
    }
    return step + 1;
}

/* Operands as for mapa; an address outside of shared memory has no rank, here 0. */
const struct sg_step *sg_run_getctarank(struct sg_warp *warp, const struct sg_step *step) {
    const void *a = sg_place(warp, step->a);
    uint32_t *d = sg_place(warp, step->d);
    for (unsigned l = 0; l < SG_LANES; l++) {
        if (!(warp->mask >> l & 1))
            continue;
        uint64_t at = step->second ? ((const uint64_t *)a)[l] : ((const uint32_t *)a)[l];
        bool shared = !step->choice || at >> 32 == SG_SHARED_WINDOW >> 32;
        d[l] = shared ? (uint32_t)at >> SG_RANK_SHIFT : 0;
    }
    return step + 1;
}

/* ---- the barrier ----------------------------------------------------------------------------- */

void sg_cluster_look(struct sg_cluster_run *cluster) {
    uint32_t wanted = 0, arrived = 0;
    if (!cluster->arrived)
        return;
    for (unsigned i = 0; i < cluster->size; i++) {
        const struct sg_block *block = cluster->blocks[i];
        wanted += block ? block->live : 0;
        for (unsigned w = 0; block && w < block->warp_count; w++) {
            cluster->arrived_lanes[i][w] &= block->warps[w].live;
            arrived += (uint32_t)__builtin_popcount(cluster->arrived_lanes[i][w]);
        }
    }
    if (arrived < wanted)
        return;
    cluster->arrived = false;
    memset(cluster->arrived_lanes, 0, sizeof cluster->arrived_lanes);
    for (unsigned i = 0; i < cluster->size && cluster->grid->code->watched; i++)
        if (cluster->blocks[i])
            sg_watch_completes(cluster->blocks[i], SG_WATCHED_CLUSTER_BARRIER);
    for (unsigned i = 0; i < cluster->size; i++)
        for (unsigned w = 0; cluster->blocks[i] && w < cluster->blocks[i]->warp_count; w++) {
            struct sg_warp *warp = &cluster->blocks[i]->warps[w];
            for (unsigned g = 0; g < warp->group_count; g++)
                if (warp->groups[g].state == SG_GROUP_CLUSTER) {
                    warp->groups[g].state = SG_GROUP_READY;
                    warp->groups[g].step++;
                    warp->ready++;
                }
        }
}

/* A second arrival of a lane has no effect: PTX requires a wait between them. */
const struct sg_step *sg_run_cluster_arrive(struct sg_warp *warp, const struct sg_step *step) {
    struct sg_cluster_run *cluster = warp->block->cluster;
    uint32_t taken = sg_taken(warp, step);
    const struct sg_instruction *in = &warp->grid->code->program->instructions[step->instruction];
    if (warp->grid->code->watched)
        sg_watch_arrives(warp, step, taken,
                         in->semantics == SG_SEMANTICS_RELAXED ? SG_WATCHED_CLUSTER_RELAXED
                                                               : SG_WATCHED_CLUSTER_BARRIER,
                         false);
    cluster->arrived_lanes[warp->block->rank][warp->number] |= taken;
    cluster->arrived |= taken != 0;
    sg_cluster_look(cluster);
    return step + 1;
}

/* A lane that has not arrived since the barrier's last phase has nothing to wait for. */
const struct sg_step *sg_run_cluster_wait(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t here = (uint32_t)(step - warp->grid->code->steps);
    uint32_t taken = sg_taken(warp, step);
    if (warp->grid->code->watched)
        sg_watch_arrives(warp, step, taken, SG_WATCHED_CLUSTER_BARRIER, true);
    uint32_t waits = taken & warp->block->cluster->arrived_lanes[warp->block->rank][warp->number];
    if (!waits)
        return step + 1;
    sg_group_add(warp, warp->mask & ~waits, here + 1, warp->path);
    sg_group_add(warp, waits, here, warp->path);
    warp->ready--;
    warp->groups[warp->group_count - 1].state = SG_GROUP_CLUSTER;
    return sg_group_next(warp);
}
