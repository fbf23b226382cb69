/*
 * Asynchronous copies, and when they are performed: at once under the eager schedule; under the
 * late one when a wait would not end without them, at the latest when their block ends; under the
 * random one then or earlier, as the seed decides. So a program that lacks a wait finds the old
 * bytes.
 */
#include "softgpu/engine/watching.h"

#include <stdlib.h>
#include <string.h>

/* ---- performing copies ----------------------------------------------------------------------- */

static bool move(unsigned char *to, const unsigned char *from, uint64_t bytes,
                 const struct sg_pending *what) {
    if (what->operation == SG_DO_NONE)
        memcpy(to, from, bytes);
    else
        sg_reduce(to, from, bytes, what->operation, what->type, what->to_global);
    return true;
}

/* The mapping of global memory may consist of pieces. */
static bool transfer(struct sg_warp *warp, const struct sg_pending *what) {
    unsigned lane = what->thread % warp->grid->threads % SG_LANES;
    const unsigned char *source = what->kept ? what->kept : what->value;
    unsigned char *target = NULL;
    bool fixed = what->from_value || what->kept;
    if (!what->to_global) {
        target = sg_reach_shared(warp, what->step, lane, what->to, what->size);
        if (!target)
            return false;
        if (what->bytes < what->size)
            memset(target + what->bytes, 0, what->size - what->bytes);
    }
    if (!fixed && !what->from_global) {
        source = sg_reach_shared(warp, what->step, lane, what->from, what->bytes);
        if (!source)
            return false;
    }
    if (!what->to_global && (fixed || !what->from_global))
        return move(target, source, what->bytes, what);
    uint64_t address = what->to_global ? what->to : what->from;
    for (uint64_t done = 0, got; done < what->bytes; done += got) {
        unsigned char *host =
            sg_reach_some(warp, what->step, lane, address + done, what->bytes - done, &got);
        if (!host)
            return false;
        if (what->to_global)
            move(host, source + done, got, what);
        else
            move(target + done, host, got, what);
    }
    return true;
}

void sg_pending_thread(const struct sg_warp *warp, unsigned *thread, unsigned block[3]) {
    const struct sg_grid *grid = warp->grid;
    *thread = warp->doing->thread % grid->threads;
    sg_cluster_place(grid, warp->block->cluster->first + warp->doing->thread / grid->threads,
                     block);
}

static bool complete(struct sg_warp *warp, const struct sg_pending *what) {
    unsigned lane = what->thread % warp->grid->threads % SG_LANES;
    bool good;
    if (warp->grid->code->watched && sg_watch_copy(warp, what))
        return !what->tells ||
               sg_mbarrier_bytes(warp, what->step, lane, what->mbarrier, -(int64_t)what->size);
    warp->doing = what; /* to blame for a fault */
    if (what->kind == SG_PENDING_ARRIVE)
        good = sg_mbarrier_arrive(warp, what->step, lane, what->mbarrier, 1, false, 0, NULL);
    else
        good = transfer(warp, what) &&
               (!what->tells ||
                sg_mbarrier_bytes(warp, what->step, lane, what->mbarrier, -(int64_t)what->size));
    warp->doing = NULL;
    return good;
}

static void pending_free(struct sg_pending *what) {
    free(what->kept);
    free(what);
}

void sg_pending_drop(struct sg_pending **list) {
    while (*list) {
        struct sg_pending *next = (*list)->next;
        pending_free(*list);
        *list = next;
    }
}

/* ---- lists ----------------------------------------------------------------------------------- */

static struct sg_pending **list_of(struct sg_cluster_run *cluster, const struct sg_pending *what) {
    const struct sg_grid *grid = cluster->grid;
    if (what->kind == SG_PENDING_BULK)
        return &cluster->bulk;
    return &cluster->copies[what->thread / grid->threads * grid->warps +
                            what->thread % grid->threads / SG_LANES];
}

static uint32_t *commits_of(struct sg_cluster_run *cluster, uint32_t thread, bool bulk) {
    return &cluster->commits[thread + (bulk ? cluster->size * cluster->grid->threads : 0)];
}

/* Decides for each copy of a list whether to perform it now. */
typedef bool choice(struct sg_warp *warp, const struct sg_pending *what, const void *of);

static bool complete_some(struct sg_warp *warp, struct sg_pending **list, choice *now,
                          const void *of) {
    struct sg_cluster_run *cluster = warp->block->cluster;
    while (*list) {
        struct sg_pending *what = *list;
        if (!now(warp, what, of)) {
            list = &what->next;
            continue;
        }
        *list = what->next;
        cluster->deferred -= what->kind == SG_PENDING_ARRIVE;
        bool good = complete(warp, what);
        pending_free(what);
        if (!good)
            return false;
    }
    return true;
}

static bool copy_of_thread(struct sg_warp *warp, const struct sg_pending *what, const void *of) {
    (void)warp;
    const struct sg_pending *arrival = of;
    return what->kind == SG_PENDING_COPY && what->thread == arrival->thread &&
           (arrival->order == 0 || what->order < arrival->order);
}

bool sg_pending_submit(struct sg_warp *warp, const struct sg_pending *what) {
    struct sg_cluster_run *cluster = warp->block->cluster;
    struct sg_grid *grid = warp->grid;
    unsigned schedule = grid->launch.schedule;
    bool bulk = what->kind == SG_PENDING_BULK;
    /* An arrival follows the thread's copies, which may be late. */
    bool now = schedule == SG_GRID_EAGER ||
               (schedule == SG_GRID_RANDOM && what->kind != SG_PENDING_ARRIVE &&
                sg_grid_draw(grid, 2) == 0);
    struct sg_pending *kept = now ? NULL : malloc(sizeof *kept);
    if (!kept) { /* out of memory: at once is correct too */
        bool first = now || what->kind != SG_PENDING_ARRIVE ||
                     complete_some(warp, list_of(cluster, what), copy_of_thread, what);
        return first && complete(warp, what);
    }
    *kept = *what;
    kept->next = NULL;
    kept->order = ++cluster->issued;
    kept->group = *commits_of(cluster, what->thread, bulk);
    struct sg_pending **end = list_of(cluster, what);
    while (*end)
        end = &(*end)->next;
    *end = kept;
    cluster->deferred += what->kind == SG_PENDING_ARRIVE;
    return true;
}

/* ---- mbarriers that are asked ---------------------------------------------------------------- */

static bool tells(struct sg_warp *warp, const struct sg_pending *what, const void *address) {
    bool its = what->tells && what->mbarrier == *(const uint64_t *)address;
    return its && (warp->grid->launch.schedule != SG_GRID_RANDOM || sg_grid_draw(warp->grid, 2));
}

static bool is(struct sg_warp *warp, const struct sg_pending *what, const void *of) {
    (void)warp;
    return what == of;
}

static const struct sg_pending *arrival_at(const struct sg_pending *list, uint64_t address) {
    while (list && (list->kind != SG_PENDING_ARRIVE || list->mbarrier != address))
        list = list->next;
    return list;
}

/* The deferred arrivals of cp.async.mbarrier.arrive, at a barrier of the block. */
static bool arrive_all(struct sg_warp *warp, uint64_t address) {
    struct sg_cluster_run *cluster = warp->block->cluster;
    unsigned warps = warp->grid->warps;
    for (unsigned i = 0; i < cluster->size * warps; i++) {
        const struct sg_pending *arrival;
        while ((arrival = arrival_at(cluster->copies[i], address)) != NULL) {
            struct sg_pending whole = *arrival;
            if (!complete_some(warp, &cluster->copies[i], copy_of_thread, &whole) ||
                !complete_some(warp, &cluster->copies[i], is, arrival))
                return false;
        }
    }
    return true;
}

bool sg_pending_poll(struct sg_warp *warp, uint64_t address, uint32_t arrivals) {
    struct sg_cluster_run *cluster = warp->block->cluster;
    uint32_t deferred = 0;
    for (unsigned i = 0; cluster->deferred && i < cluster->size * warp->grid->warps; i++)
        for (const struct sg_pending *at = arrival_at(cluster->copies[i], address); at;
             at = arrival_at(at->next, address))
            deferred++;
    bool random = warp->grid->launch.schedule == SG_GRID_RANDOM;
    /* While other arrivals are pending, the barrier does not wait for these. */
    if (random ? sg_grid_draw(warp->grid, 2) == 0 : arrivals > deferred)
        return true;
    return complete_some(warp, &cluster->bulk, tells, &address) && arrive_all(warp, address);
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct wait {
    const struct sg_step *step;
    uint32_t first; /* thread of the warp's lane 0 */
    bool bulk, all;
};

static bool waited_for(struct sg_warp *warp, const struct sg_pending *what, const void *of) {
    const struct wait *wait = of;
    uint32_t lane = what->thread - wait->first;
    if (lane >= SG_LANES || !(warp->mask >> lane & 1) || what->kind == SG_PENDING_ARRIVE ||
        (wait->bulk && !what->grouped))
        return false;
    uint32_t commits = *commits_of(warp->block->cluster, what->thread, wait->bulk);
    return wait->all || what->group + (uint64_t)wait->step->value < commits;
}

/* .read: the sources may be overwritten afterwards. */
static bool read_sources(struct sg_warp *warp, const struct wait *wait) {
    for (struct sg_pending *at = warp->block->cluster->bulk; at; at = at->next) {
        if (at->kept || at->from_value || !waited_for(warp, at, wait))
            continue;
        unsigned lane = at->thread % warp->grid->threads % SG_LANES;
        const unsigned char *from = sg_reach_shared(warp, at->step, lane, at->from, at->bytes);
        if (!from)
            return false;
        at->kept = malloc(at->bytes ? at->bytes : 1);
        if (!at->kept)
            return sg_warp_fault(warp, at->step, SG_FAULT_MEMORY, lane, 0, 0) != NULL;
        memcpy(at->kept, from, at->bytes);
    }
    return true;
}

/* Commits groups and waits for them. choice: which; value: groups that may stay pending; second:
 * only reads must be complete. */
const struct sg_step *sg_run_copy_group(struct sg_warp *warp, const struct sg_step *step) {
    struct sg_cluster_run *cluster = warp->block->cluster;
    if (warp->grid->code->watched)
        sg_watch_fence(warp, step, SG_WATCHED_ASYNC, SG_WATCHED_CTA);
    if (warp->grid->launch.schedule == SG_GRID_EAGER)
        return step + 1;
    struct wait wait = {.step = step,
                        .first = warp->block->rank * warp->grid->threads + warp->number * SG_LANES,
                        .bulk = step->choice == SG_DO_BULK_COMMIT_GROUP ||
                                step->choice == SG_DO_BULK_WAIT_GROUP,
                        .all = step->choice == SG_DO_WAIT_ALL};
    if (step->choice == SG_DO_COMMIT_GROUP || step->choice == SG_DO_BULK_COMMIT_GROUP) {
        for (uint32_t left = warp->mask; left; left &= left - 1)
            ++*commits_of(cluster, wait.first + (uint32_t)__builtin_ctz(left), wait.bulk);
        return step + 1;
    }
    if (step->second)
        return read_sources(warp, &wait) ? step + 1 : NULL;
    struct sg_pending **list =
        wait.bulk
            ? &cluster->bulk
            : &cluster->copies[wait.first / warp->grid->threads * warp->grid->warps + warp->number];
    return complete_some(warp, list, waited_for, &wait) ? step + 1 : NULL;
}

/* ---- blocks that end ------------------------------------------------------------------------- */

static bool in_block(const struct sg_block *block, uint64_t address) {
    return address >> SG_RANK_SHIFT == block->rank;
}

/* Drops copies to its shared memory, which is gone. */
static void forget(struct sg_pending **list, const struct sg_block *block) {
    while (*list) {
        struct sg_pending *what = *list;
        if (what->to_global || !in_block(block, what->to)) {
            list = &what->next;
            continue;
        }
        *list = what->next;
        pending_free(what);
    }
}

static bool of_block(struct sg_warp *warp, const struct sg_pending *what, const void *of) {
    const struct sg_block *block = of;
    bool reads = !what->from_global && !what->from_value && !what->kept;
    (void)warp;
    return (reads && in_block(block, what->from)) || block->cluster->present == 1;
}

bool sg_pending_leave(struct sg_block *block) {
    struct sg_cluster_run *cluster = block->cluster;
    if (!cluster->copies)
        return true;
    struct sg_warp *warp = &block->warps[0];
    forget(&cluster->bulk, block);
    for (unsigned w = 0; w < block->warp_count; w++) {
        struct sg_pending **list = &cluster->copies[block->rank * warp->grid->warps + w];
        for (const struct sg_pending *at = *list; at; at = at->next)
            cluster->deferred -= at->kind == SG_PENDING_ARRIVE;
        sg_pending_drop(list);
    }
    /* A late read of its memory finds what another block may have put there by then. */
    if (warp->grid->launch.schedule == SG_GRID_LATE)
        memset(block->shared, SG_LEFT_BYTE, warp->grid->shared_bytes);
    return complete_some(warp, &cluster->bulk, of_block, block);
}
