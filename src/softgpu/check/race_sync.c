/*
 * What orders threads: barriers, warp synchronisation, fences, and the releases and acquires of
 * strong accesses. A moment is a number that grows with each of these. A warp's accesses carry the
 * moment of its last one (`since`). To know a thread up to a moment means to happen after
 * everything it did until then.
 */
#include "softgpu/check/race_inside.h"

#include "softgpu/program/program.h"

#include <stdlib.h>
#include <string.h>

static struct sg_race_warp *warp_of(struct sg_race_block *block, const struct sg_watched_warp *w) {
    return &block->warps[w->first / 32];
}

static void moves_on(const struct sg_race_grid *grid, struct sg_race_warp *warp) {
    warp->since = ++grid->race->moment;
}

/* ---- what is known --------------------------------------------------------------------------- */

static struct sg_race_lanes *lanes_of(struct sg_race_grid *grid, struct sg_race_block *block,
                                      struct sg_race_warp *warp) {
    if (!warp->lanes)
        warp->lanes = calloc(1, sizeof *warp->lanes);
    grid->lost = grid->lost || !warp->lanes;
    block->knows = true;
    return warp->lanes;
}

static void learn(struct sg_race_grid *grid, struct sg_race_block *block, struct sg_race_warp *warp,
                  uint32_t lanes, sg_clock clock) {
    if (!clock)
        return;
    block->knows = true;
    if ((lanes & warp->live) == warp->live) {
        sg_clock_add(&warp->knows, clock, &grid->lost);
        return;
    }
    struct sg_race_lanes *own = lanes_of(grid, block, warp);
    for (uint32_t left = own ? lanes : 0; left; left &= left - 1)
        sg_clock_add(&own->knows[__builtin_ctz(left)], clock, &grid->lost);
}

/* Adds to the clock what lanes have learnt by themselves. */
static void gather(struct sg_race_grid *grid, const struct sg_race_warp *warp, uint32_t lanes,
                   sg_clock *clock) {
    sg_clock_add(clock, warp->knows, &grid->lost);
    for (uint32_t left = warp->lanes ? lanes : 0; left; left &= left - 1)
        sg_clock_add(clock, warp->lanes->knows[__builtin_ctz(left)], &grid->lost);
}

static void forget_own(struct sg_race_warp *warp) {
    for (unsigned l = 0; warp->lanes && l < 32; l++) {
        sg_clock_drop(warp->lanes->knows[l]);
        warp->lanes->knows[l] = 0;
    }
}

/* Adds all that lanes have done and know. The warp must begin a new moment afterwards. */
static void publish(struct sg_race_grid *grid, const struct sg_race_block *block,
                    const struct sg_race_warp *warp, uint32_t lanes, sg_clock *clock) {
    unsigned w = (unsigned)(warp - block->warps), levels = grid->levels;
    uint32_t now = grid->race->moment;
    uint64_t key = SG_CLOCK_KEY(block->index, w, 0);
    gather(grid, warp, lanes, clock);
    if (block->met)
        sg_clock_raise(clock, levels, key, SG_CLOCK_BLOCK, block->met, &grid->lost);
    if ((lanes & warp->live) == warp->live) {
        sg_clock_raise(clock, levels, key, SG_CLOCK_WARP, now, &grid->lost);
        return;
    }
    if (warp->met)
        sg_clock_raise(clock, levels, key, SG_CLOCK_WARP, warp->met, &grid->lost);
    for (uint32_t left = lanes; left; left &= left - 1)
        sg_clock_raise(clock, levels, key | (unsigned)__builtin_ctz(left), SG_CLOCK_LANE, now,
                       &grid->lost);
}

/*
 * Fences are cumulative: after a barrier, a thread's relaxed write also releases what other threads
 * had fenced before it, and a thread's fence also acquires what others had read. So a block may
 * fence, meet, and let one thread signal that it is done; and one thread may look, the block meet,
 * and fence.
 */
struct passed {
    sg_clock fenced, far;
};

static void collect(struct sg_race_grid *grid, const struct sg_race_warp *warp, uint32_t lanes,
                    struct passed *passed) {
    for (uint32_t left = warp->lanes ? lanes : 0; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        sg_clock_add(&passed->far, warp->lanes->far[l], &grid->lost);
        if (warp->lanes->scope[l] >= SG_WATCHED_GPU)
            sg_clock_add(&passed->fenced, warp->lanes->fenced[l], &grid->lost);
    }
}

static void pass_on(struct sg_race_grid *grid, struct sg_race_block *block,
                    struct sg_race_warp *warp, uint32_t lanes, const struct passed *passed) {
    bool any = passed->fenced || passed->far;
    struct sg_race_lanes *own = any && lanes ? lanes_of(grid, block, warp) : NULL;
    for (uint32_t left = own ? lanes : 0; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        sg_clock_add(&own->far[l], passed->far, &grid->lost);
        if (!passed->fenced)
            continue;
        if (own->scope[l] < SG_WATCHED_GPU) {
            sg_clock_drop(own->fenced[l]);
            own->fenced[l] = 0;
        }
        sg_clock_add(&own->fenced[l], passed->fenced, &grid->lost);
        own->scope[l] = SG_WATCHED_GPU;
    }
}

static void drop_passed(const struct passed *passed) {
    sg_clock_drop(passed->fenced);
    sg_clock_drop(passed->far);
}

/* ---- warp synchronisation and barriers ------------------------------------------------------- */

static void pass_in_warp(struct sg_race_grid *grid, struct sg_race_block *block,
                         struct sg_race_warp *warp, uint32_t lanes) {
    struct passed passed = {0};
    if (!warp->news)
        return;
    collect(grid, warp, lanes, &passed);
    pass_on(grid, block, warp, lanes, &passed);
    drop_passed(&passed);
    warp->news = (lanes & warp->live) != warp->live;
}

static void pass_in_block(struct sg_race_grid *grid, struct sg_race_block *block,
                          const struct sg_race_barrier *barrier, bool all) {
    struct passed passed = {0};
    if (!block->news)
        return;
    for (unsigned w = 0; w < block->warp_count; w++)
        collect(grid, &block->warps[w], barrier->arrived[w], &passed);
    for (unsigned w = 0; w < block->warp_count; w++)
        pass_on(grid, block, &block->warps[w], barrier->waits[w], &passed);
    drop_passed(&passed);
    block->news = !all;
}

void sg_race_meet(void *user, const struct sg_watched_warp *watched, uint32_t instruction,
                  uint32_t lanes) {
    struct sg_race_grid *grid = user;
    (void)instruction;
    pthread_mutex_lock(&grid->race->lock);
    sg_race_decide(grid);
    struct sg_race_block *block = sg_race_block_of(grid, watched->block);
    if (block) {
        struct sg_race_warp *warp = warp_of(block, watched);
        pass_in_warp(grid, block, warp, lanes);
        if ((lanes & warp->live) == warp->live) {
            if (warp->lanes)
                gather(grid, warp, lanes, &warp->knows);
            forget_own(warp);
            warp->met = grid->race->moment;
        } else {
            sg_clock clock = 0;
            publish(grid, block, warp, lanes, &clock);
            learn(grid, block, warp, lanes, clock);
            sg_clock_drop(clock);
        }
        moves_on(grid, warp);
    }
    pthread_mutex_unlock(&grid->race->lock);
}

static bool all_wait(const struct sg_race_block *block, const struct sg_race_barrier *barrier) {
    for (unsigned w = 0; w < block->warp_count; w++)
        if (block->warps[w].live & ~barrier->waits[w])
            return false;
    return !block->left;
}

static void complete(struct sg_race_grid *grid, struct sg_race_block *block,
                     struct sg_race_barrier *barrier) {
    bool all = all_wait(block, barrier);
    pass_in_block(grid, block, barrier, all);
    sg_clock clock = barrier->clock;
    barrier->clock = 0;
    for (unsigned w = 0; w < block->warp_count; w++) {
        struct sg_race_warp *warp = &block->warps[w];
        if (all && block->knows)
            gather(grid, warp, UINT32_MAX, &clock);
        else if (!all && barrier->waits[w])
            publish(grid, block, warp, barrier->waits[w], &clock);
    }
    if (all) {
        block->met = grid->race->moment;
        block->read_count = 0;
        block->wrote = false;
    }
    uint32_t next = ++grid->race->moment;
    for (unsigned w = 0; w < block->warp_count; w++) {
        struct sg_race_warp *warp = &block->warps[w];
        if (!barrier->waits[w] && !all)
            continue;
        if (all)
            forget_own(warp);
        warp->touched = warp->touched && !all;
        learn(grid, block, warp, all ? UINT32_MAX : barrier->waits[w], clock);
        warp->since = next;
    }
    sg_clock_drop(clock);
    memset(barrier, 0, sizeof *barrier);
}

/* ---- the barrier of a cluster ---------------------------------------------------------------- */

static struct sg_race_cluster *cluster_of(struct sg_race_grid *grid, uint64_t block) {
    uint64_t index = sg_race_cluster_of(grid, block);
    struct sg_race_cluster *cluster = grid->clusters;
    while (cluster && cluster->index != index)
        cluster = cluster->next;
    if (cluster)
        return cluster;
    cluster = calloc(1, sizeof *cluster);
    if (!cluster) {
        grid->lost = true;
        return NULL;
    }
    cluster->index = index;
    cluster->next = grid->clusters;
    grid->clusters = cluster;
    return cluster;
}

/* The first arrival of a phase: the last one's clock has been taken. */
static struct sg_race_cluster *arrive_at(struct sg_race_grid *grid, struct sg_race_block *block) {
    struct sg_race_cluster *cluster = cluster_of(grid, block->index);
    if (cluster && cluster->complete) {
        sg_clock_drop(cluster->clock);
        cluster->clock = 0;
        cluster->complete = false;
    }
    return cluster;
}

static void cluster_arrives(struct sg_race_grid *grid, struct sg_race_block *block,
                            struct sg_race_warp *warp, uint32_t lanes) {
    struct sg_race_cluster *cluster = arrive_at(grid, block);
    if (!cluster)
        return;
    publish(grid, block, warp, lanes, &cluster->clock);
    moves_on(grid, warp);
}

/* Only what fences have published before it. */
static void cluster_arrives_relaxed(struct sg_race_grid *grid, struct sg_race_block *block,
                                    const struct sg_race_warp *warp, uint32_t lanes) {
    struct sg_race_cluster *cluster = arrive_at(grid, block);
    for (uint32_t left = cluster && warp->lanes ? lanes : 0; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (warp->lanes->fenced[l] && warp->lanes->scope[l] >= SG_WATCHED_CLUSTER)
            sg_clock_add(&cluster->clock, warp->lanes->fenced[l], &grid->lost);
    }
}

/* All of the block's lanes learn, also those that wait only later: they may not be waited for, but
 * have arrived. */
static void cluster_completes(struct sg_race_grid *grid, struct sg_race_block *block) {
    struct sg_race_cluster *cluster = cluster_of(grid, block->index);
    if (!cluster)
        return;
    cluster->complete = true;
    for (unsigned w = 0; w < block->warp_count; w++)
        learn(grid, block, &block->warps[w], UINT32_MAX, cluster->clock);
}

void sg_race_arrives(void *user, const struct sg_watched_warp *watched, uint32_t instruction,
                     uint32_t lanes, unsigned number, bool waits) {
    struct sg_race_grid *grid = user;
    (void)instruction;
    pthread_mutex_lock(&grid->race->lock);
    sg_race_decide(grid);
    struct sg_race_block *block = sg_race_block_of(grid, watched->block);
    if (block && number == SG_WATCHED_CLUSTER_RELAXED) {
        cluster_arrives_relaxed(grid, block, warp_of(block, watched), lanes);
    } else if (block && number < SG_RACE_BARRIERS) {
        struct sg_race_barrier *barrier = &block->barriers[number];
        struct sg_race_warp *warp = warp_of(block, watched);
        barrier->arrived[warp - block->warps] |= lanes;
        if (waits) {
            barrier->waits[warp - block->warps] |= lanes;
        } else {
            publish(grid, block, warp, lanes, &barrier->clock);
            moves_on(grid, warp);
        }
    } else if (block && !waits) {
        cluster_arrives(grid, block, warp_of(block, watched), lanes);
    }
    pthread_mutex_unlock(&grid->race->lock);
}

void sg_race_completes(void *user, uint64_t index, unsigned number) {
    struct sg_race_grid *grid = user;
    pthread_mutex_lock(&grid->race->lock);
    sg_race_decide(grid);
    struct sg_race_block *block = sg_race_block_of(grid, index);
    if (block && number < SG_RACE_BARRIERS)
        complete(grid, block, &block->barriers[number]);
    else if (block)
        cluster_completes(grid, block);
    pthread_mutex_unlock(&grid->race->lock);
}

/* ---- fences, releases, acquires -------------------------------------------------------------- */

void sg_race_fence(void *user, const struct sg_watched_warp *watched, uint32_t instruction,
                   uint32_t lanes, unsigned char order, unsigned char scope) {
    struct sg_race_grid *grid = user;
    (void)instruction;
    if (order == SG_WATCHED_ASYNC)
        return;
    pthread_mutex_lock(&grid->race->lock);
    sg_race_decide(grid);
    struct sg_race_block *block = sg_race_block_of(grid, watched->block);
    struct sg_race_warp *warp = block ? warp_of(block, watched) : NULL;
    struct sg_race_lanes *own = block ? lanes_of(grid, block, warp) : NULL;
    for (uint32_t left = own ? lanes : 0; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        sg_clock_add(&own->knows[l], own->near[l], &grid->lost);
        if (scope != SG_WATCHED_CTA)
            sg_clock_add(&own->knows[l], own->far[l], &grid->lost);
    }
    sg_clock clock = 0;
    if (own) {
        warp->news = block->news = true;
        publish(grid, block, warp, lanes, &clock);
        moves_on(grid, warp);
    }
    for (uint32_t left = own ? lanes : 0; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        sg_clock_drop(own->fenced[l]);
        own->fenced[l] = sg_clock_keep(clock);
        own->scope[l] = scope;
    }
    sg_clock_drop(clock);
    pthread_mutex_unlock(&grid->race->lock);
}

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* A lane knows what has been released now, or after a fence, which must be one of more than the
 * block where it was released `far`. */
static void take(struct sg_race_grid *grid, struct sg_race_block *block, struct sg_race_warp *warp,
                 unsigned lane, sg_clock clock, bool far, bool acquires) {
    struct sg_race_lanes *own = lanes_of(grid, block, warp);
    sg_clock *to = !own ? NULL : acquires ? own->knows : far ? own->far : own->near;
    if (!to)
        return;
    sg_clock_add(&to[lane], clock, &grid->lost);
    warp->news = block->news = true;
}

/* A lane reads what another has released. */
static void acquire(struct sg_race_grid *grid, struct sg_race_block *block,
                    struct sg_race_warp *warp, unsigned lane, const struct sg_released *released,
                    const struct sg_watched_access *access) {
    bool far = released->launch != grid->launch || released->block != block->index;
    unsigned scope = least(released->scope, access->scope);
    if (released->launch != grid->launch) {
        if (scope >= SG_WATCHED_GPU)
            sg_race_launch_meets(grid, released->launch);
        return;
    }
    if (far)
        block->depended = block->depended || grid->depended;
    if (released->clock && sg_race_in_scope(grid, released->block, block->index, scope))
        take(grid, block, warp, lane, released->clock, far, access->order & SG_WATCHED_ACQUIRE);
}

/* A lane's read-modify-write adds to what has been released at an address. */
static void add_released(struct sg_race_grid *grid, struct sg_released *there, sg_clock clock) {
    sg_clock_add(&there->clock, clock, &grid->lost);
    if (there->step == UINT32_MAX || !there->sequence) {
        there->sequence = ++grid->race->sequences;
        there->step = 0;
    }
    sg_clock_mark(there->clock, there->sequence, ++there->step);
}

/* A lane writes: what it publishes replaces what was published there, or is joined with it by a
 * read-modify-write. */
static void release(struct sg_race_grid *grid, const struct sg_race_block *block,
                    const struct sg_race_warp *warp, unsigned lane, struct sg_released_table *table,
                    uint64_t address, const struct sg_watched_access *access) {
    sg_clock clock = 0;
    unsigned scope = access->scope;
    struct sg_released *there = sg_released_find(table, address);
    if (access->order & SG_WATCHED_RELEASE) {
        publish(grid, block, warp, UINT32_C(1) << lane, &clock);
    } else if (warp->lanes && warp->lanes->fenced[lane]) {
        clock = sg_clock_keep(warp->lanes->fenced[lane]);
        scope = least(scope, warp->lanes->scope[lane]);
    }
    bool joins = access->kind == SG_WATCHED_ATOMIC && there && there->launch == grid->launch;
    if (clock && !there)
        there = sg_released_at(table, address);
    grid->lost = grid->lost || (clock && !there);
    if (there && joins) {
        add_released(grid, there, clock);
        there->scope = (unsigned char)(clock ? least(there->scope, scope) : there->scope);
    } else if (there) {
        sg_clock_drop(there->clock);
        there->clock = sg_clock_keep(clock);
        there->sequence = 0;
        there->scope = (unsigned char)scope;
    }
    if (there && clock) {
        there->launch = grid->launch;
        there->block = block->index;
    }
    sg_clock_drop(clock);
}

/* Nothing has been released, and nothing is now. */
static bool is_idle(const struct sg_race_warp *warp, const struct sg_released_table *table,
                    const struct sg_watched_access *access) {
    return table->count == 0 && !warp->lanes && !(access->order & SG_WATCHED_RELEASE);
}

void sg_race_strong(struct sg_race_grid *grid, struct sg_race_block *block,
                    const struct sg_watched_access *access) {
    struct sg_race_warp *warp = warp_of(block, access->warp);
    bool own = sg_race_is_own(grid, access);
    struct sg_released_table *table = own ? &block->released : &grid->race->released;
    if (own && is_idle(warp, table, access))
        return;
    pthread_mutex_lock(&grid->race->lock);
    bool idle = is_idle(warp, table, access);
    for (uint32_t left = idle ? 0 : access->lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint64_t address = sg_race_address(grid, block, access, l);
        const struct sg_released *there =
            access->kind != SG_WATCHED_WRITE ? sg_released_find(table, address) : NULL;
        if (there)
            acquire(grid, block, warp, l, there, access);
        if (access->kind != SG_WATCHED_READ)
            release(grid, block, warp, l, table, address, access);
    }
    if (access->kind != SG_WATCHED_READ && access->order & SG_WATCHED_RELEASE)
        moves_on(grid, warp);
    pthread_mutex_unlock(&grid->race->lock);
}

/* The block's other threads are usually ordered after it by a barrier, so threads are not
 * distinguished. */
void sg_race_depends(void *user, const struct sg_watched_warp *warp, uint32_t lanes) {
    struct sg_race_grid *grid = user;
    struct sg_race_block *block = sg_race_block_of(grid, warp->block);
    (void)lanes;
    grid->depended = true;
    if (block)
        block->depended = true;
}

/* ---- phases of mbarriers --------------------------------------------------------------------- */

void sg_race_delivers(void *user, const struct sg_watched_access *mbarrier) {
    struct sg_race_grid *grid = user;
    struct sg_race_block *block = sg_race_block_of(grid, mbarrier->warp->block);
    if (block && !grid->lost)
        sg_race_strong(grid, block, mbarrier);
}

static struct sg_released *released_at(struct sg_race_grid *grid, struct sg_race_block *block,
                                       uint64_t address) {
    struct sg_released *there =
        sg_released_find(grid->cluster_size == 1 ? &block->released : &grid->race->released,
                         sg_race_shared_address(grid, block, address));
    return there && there->launch == grid->launch ? there : NULL;
}

void sg_race_turns(void *user, uint64_t index, uint64_t address) {
    struct sg_race_grid *grid = user;
    struct sg_race_block *block = sg_race_block_of(grid, index);
    pthread_mutex_lock(&grid->race->lock);
    struct sg_released *there = block ? released_at(grid, block, address) : NULL;
    if (there)
        sg_clock_add(&there->over, there->clock, &grid->lost);
    pthread_mutex_unlock(&grid->race->lock);
}

/* A thread that finds a phase complete comes after everything that arrived in it. */
void sg_race_looks(void *user, const struct sg_watched_phase *phase) {
    struct sg_race_grid *grid = user;
    struct sg_race_block *block = sg_race_block_of(grid, phase->warp->block);
    if (!block || grid->lost)
        return;
    pthread_mutex_lock(&grid->race->lock);
    for (uint32_t left = phase->over; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        const struct sg_released *there = released_at(grid, block, phase->address[l]);
        if (there && there->over &&
            sg_race_in_scope(grid, there->block, block->index, least(there->scope, phase->scope)))
            take(grid, block, warp_of(block, phase->warp), l, there->over,
                 there->block != block->index, phase->order & SG_WATCHED_ACQUIRE);
    }
    pthread_mutex_unlock(&grid->race->lock);
}
