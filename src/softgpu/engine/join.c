/*
 * Where lanes that have parted join. A branch that parts lanes notes the step where their ways meet
 * (program/flow.c), and a group that comes there waits for the others, as those of an H200 do: code
 * without bar.warp.sync relies on it. Lanes that exit are waited for no longer.
 *
 * PTX promises that all lanes make progress, so nobody waits for lanes that wait for him: what has
 * come to a join goes on without the others when these have been seen to do nothing but look at
 * memory for long (sg_joins_turn), or when all lanes of the warp, or of the block, wait.
 */
#include "softgpu/engine/async.h"

/* Instructions of turns that only look, until lanes that have come to a join go on without the
 * others: what computes long and looks in between must not be taken for a wait. */
#define PATIENCE (INT64_C(1) << 20)
/* While other warps get on, the lanes may well wait for those: then such a turn counts for less. */
#define MAYBE 16
/* A turn that ends in nanosleep counts for this many: sleeping between two looks is a wait. */
#define SLEEP (PATIENCE / 4)
/* Turns can be shorter than a loop that looks, so it need not look in each of them. */
#define BETWEEN 128

static void add(struct sg_warp *warp, uint32_t lanes, uint32_t step, struct sg_path *path) {
    struct sg_join *free = NULL;
    for (unsigned i = 0; i < warp->join_count; i++) {
        struct sg_join *join = &warp->joins[i];
        if (join->step == step && join->path == path && !(lanes & ~join->lanes))
            return; /* lanes leave a loop one after another */
        if (join->lanes == lanes)
            free = join; /* they have joined before they came there */
    }
    /* Each parts what another has, so there are fewer than lanes. Only what has gone on without
     * others may ask for more: that is not waited for. */
    if (!free && warp->join_count == SG_LANES)
        return;
    if (!free)
        free = &warp->joins[warp->join_count++];
    *free = (struct sg_join){.lanes = lanes, .step = step, .path = path};
}

/* Independent lanes part for as long as it takes, if the schedule says so. */
void sg_join_branch(struct sg_warp *warp, const struct sg_step *branch) {
    struct sg_grid *grid = warp->grid;
    if (grid->launch.independent && grid->launch.schedule == SG_GRID_RANDOM)
        warp->alone = sg_grid_draw(grid, 2) == 0;
    else if (branch->choice != SG_JOIN_NEVER)
        sg_join_at(warp, warp->mask, (uint32_t)branch->value, warp->path);
}

void sg_join_at(struct sg_warp *warp, uint32_t lanes, uint32_t step, struct sg_path *path) {
    if (warp->grid->launch.independent)
        return;
    if (step == SG_RETURN_STEP) {
        if (!path->parent)
            return;
        step = path->call + 1;
        path = path->parent;
    }
    add(warp, lanes, step, path);
}

static bool is_at(const struct sg_join *join, uint32_t step, const struct sg_path *path,
                  uint32_t lanes) {
    return join->step == step && join->path == path && (join->lanes & lanes);
}

static void forget(struct sg_warp *warp, unsigned index) {
    warp->joins[index] = warp->joins[--warp->join_count];
}

/* The running group goes on with those of its joins that have waited here. */
static void go_on(struct sg_warp *warp, uint32_t here) {
    uint32_t all = warp->mask;
    for (unsigned i = warp->join_count; i-- > 0;) {
        const struct sg_join *join = &warp->joins[i];
        if (!is_at(join, here, warp->path, warp->mask))
            continue;
        all |= join->lanes;
        forget(warp, i);
    }
    for (unsigned i = 0; i < warp->group_count && warp->joining;) {
        const struct sg_group *group = &warp->groups[i];
        if (group->state != SG_GROUP_JOIN || !(group->lanes & all)) {
            i++;
            continue;
        }
        warp->mask |= group->lanes;
        warp->joining--;
        warp->groups[i] = warp->groups[--warp->group_count];
    }
}

bool sg_join_waits(struct sg_warp *warp, uint32_t here) {
    bool joins = false, waits = false;
    for (unsigned i = 0; i < warp->join_count; i++) {
        struct sg_join *join = &warp->joins[i];
        if (!is_at(join, here, warp->path, warp->mask))
            continue;
        joins = true;
        join->here |= warp->mask & join->lanes;
        waits |= join->here != join->lanes;
    }
    if (joins && !waits)
        go_on(warp, here);
    if (!waits)
        return false;
    warp->groups[warp->group_count++] = (struct sg_group){.lanes = warp->mask,
                                                          .step = here,
                                                          .path = warp->path,
                                                          .stamp = warp->stamp,
                                                          .state = SG_GROUP_JOIN};
    warp->joining++;
    return true;
}

void sg_joins_look(struct sg_warp *warp, uint32_t gone) {
    for (unsigned i = 0; i < warp->join_count; i++) {
        warp->joins[i].lanes &= ~gone;
        warp->joins[i].here = 0;
    }
    for (unsigned i = 0; i < warp->group_count && warp->joining; i++) {
        if (warp->groups[i].state != SG_GROUP_JOIN)
            continue;
        warp->groups[i].state = SG_GROUP_READY;
        warp->joining--;
        warp->ready++;
    }
}

void sg_joins_end(struct sg_warp *warp, const struct sg_path *path) {
    for (unsigned i = warp->join_count; i-- > 0;)
        if (warp->joins[i].path == path)
            forget(warp, i);
}

bool sg_joins_give_up(struct sg_warp *warp) {
    unsigned best = SG_LANES;
    int fewest = SG_LANES + 1;
    for (unsigned i = 0; i < warp->join_count; i++) {
        int lanes = __builtin_popcount(warp->joins[i].lanes);
        if (lanes < fewest && warp->joins[i].here) {
            best = i;
            fewest = lanes;
        }
    }
    if (best == SG_LANES)
        return false;
    forget(warp, best);
    sg_joins_look(warp, 0);
    for (unsigned i = 0; i < warp->join_count; i++)
        warp->joins[i].looked = 0;
    return true;
}

/* ---- lanes that wait for lanes at a join ----------------------------------------------------- */

static bool known(const struct sg_code *code, uint32_t step) {
    return atomic_load_explicit(&code->given_up[step / 32], memory_order_relaxed) >> step % 32 & 1;
}

static void note(const struct sg_code *code, uint32_t step) {
    atomic_fetch_or_explicit(&code->given_up[step / 32], UINT32_C(1) << step % 32,
                             memory_order_relaxed);
}

/* Whether the others have only looked for long enough; where that was so once, two turns of each
 * are enough. */
static bool out_of_patience(const struct sg_warp *warp, struct sg_join *join, int64_t counts) {
    if (!join->here)
        return false;
    if (join->here != join->came)
        join->looked = join->turns = 0;
    join->came = join->here;
    join->looked += counts;
    join->turns++;
    bool enough = join->turns > 2 * warp->ready && known(warp->grid->code, join->step);
    return enough || join->looked >= PATIENCE;
}

void sg_joins_turn(struct sg_warp *warp, int64_t used) {
    uint64_t progress = sg_grid_progress(warp->grid);
    bool others = progress != warp->progress, out = false;
    warp->progress = progress;
    warp->unseen = warp->polls ? 0 : warp->unseen + used;
    for (unsigned i = 0; i < warp->join_count && warp->unseen >= BETWEEN; i++)
        warp->joins[i].looked = warp->joins[i].turns = 0;
    if (!warp->polls)
        return;
    int64_t counts = warp->slept ? SLEEP : others ? used / MAYBE : used;
    uint32_t step = SG_NO_STEP;
    for (unsigned i = 0; i < warp->join_count; i++)
        if (out_of_patience(warp, &warp->joins[i], counts)) {
            out = true;
            step = warp->joins[i].step;
        }
    if (!out)
        return;
    note(warp->grid->code, step);
    (void)sg_joins_give_up(warp);
}
