/*
 * Chooses which lanes of a warp run. Lanes at the same step with the same call stack are a group;
 * one group runs, the others wait. Usually the deepest call goes first, then the lowest step, so
 * that diverged lanes reconverge as early as possible. After a while the group that has not run for
 * the longest time runs alone for as long, so lanes that spin for each other make progress. Where
 * lanes join that have parted, they wait for each other: join.c.
 */
#include "softgpu/engine/watching.h"

#include <stdlib.h>

void sg_group_add(struct sg_warp *warp, uint32_t lanes, uint32_t step, struct sg_path *path) {
    if (!lanes)
        return;
    warp->groups[warp->group_count++] = (struct sg_group){
        .lanes = lanes, .step = step, .path = path, .stamp = warp->stamp, .state = SG_GROUP_READY};
    warp->ready++;
}

static bool goes_before(const struct sg_warp *warp, const struct sg_group *a,
                        const struct sg_group *b) {
    if (warp->alone)
        return a->stamp < b->stamp;
    if (a->path->depth != b->path->depth)
        return a->path->depth > b->path->depth;
    return a->step < b->step;
}

static void take(struct sg_warp *warp, unsigned index) {
    warp->groups[index] = warp->groups[--warp->group_count];
    warp->ready--;
}

/* Joins the groups that are where the running one is. */
static void join(struct sg_warp *warp, uint32_t step) {
    for (unsigned i = 0; i < warp->group_count;) {
        const struct sg_group *group = &warp->groups[i];
        if (group->state == SG_GROUP_READY && group->step == step && group->path == warp->path) {
            warp->mask |= group->lanes;
            warp->stamp = group->stamp < warp->stamp ? group->stamp : warp->stamp;
            take(warp, i);
        } else {
            i++;
        }
    }
}

/* All its lanes wait for each other, some of them at joins: no other warp can help. */
static bool waits_for_itself(const struct sg_warp *warp) {
    for (unsigned i = 0; i < warp->group_count; i++)
        if (warp->groups[i].state != SG_GROUP_WARP && warp->groups[i].state != SG_GROUP_JOIN)
            return false;
    return warp->joining != 0;
}

static const struct sg_group *best_of(const struct sg_warp *warp) {
    const struct sg_group *best = NULL;
    for (unsigned i = 0; i < warp->group_count; i++) {
        const struct sg_group *group = &warp->groups[i];
        if (group->state == SG_GROUP_READY && (!best || goes_before(warp, group, best)))
            best = group;
    }
    return best;
}

const struct sg_step *sg_group_next(struct sg_warp *warp) {
    const struct sg_group *best = best_of(warp);
    while (!best && waits_for_itself(warp) && sg_joins_give_up(warp))
        best = best_of(warp);
    if (!best) {
        warp->mask = 0;
        warp->stop = warp->group_count ? SG_STOP_BLOCKED : SG_STOP_DONE;
        return NULL;
    }
    uint32_t step = best->step;
    warp->mask = best->lanes;
    sg_path_use(warp, best->path);
    take(warp, (unsigned)(best - warp->groups));
    warp->stamp = ++warp->clock;
    if (warp->ready)
        join(warp, step);
    if (sg_joins_here(warp, step) && sg_join_waits(warp, step))
        return sg_group_next(warp);
    return &warp->grid->code->steps[step];
}

static const struct sg_step *yield_at(struct sg_warp *warp, uint32_t here) {
    sg_group_add(warp, warp->mask, here, warp->path);
    warp->stop = SG_STOP_YIELD;
    return NULL;
}

static const struct sg_step *look_around(struct sg_warp *warp, const struct sg_step *step) {
    uint32_t here = (uint32_t)(step - warp->grid->code->steps);
    if (warp->ready)
        join(warp, here);
    if (sg_joins_here(warp, here) && sg_join_waits(warp, here))
        return sg_group_next(warp);
    bool meets = here == warp->meet;
    if (warp->left < 0 || (meets && warp->group_count == 0 && warp->mask == warp->live))
        return yield_at(warp, here);
    struct sg_group current = {.step = here, .path = warp->path};
    for (unsigned i = 0; i < warp->group_count && !warp->alone; i++)
        if (warp->groups[i].state == SG_GROUP_READY &&
            goes_before(warp, &warp->groups[i], &current)) {
            sg_group_add(warp, warp->mask, here, warp->path);
            return sg_group_next(warp);
        }
    warp->passed |= meets;
    return step + 1;
}

const struct sg_step *sg_run_leader(struct sg_warp *warp, const struct sg_step *step) {
    warp->left -= step->value;
    bool meets = (uint32_t)(step - warp->grid->code->steps) == warp->meet;
    bool alone = (warp->ready | warp->join_count) == 0;
    return warp->left >= 0 && alone && !meets ? step + 1 : look_around(warp, step);
}

enum sg_stop sg_warp_run(struct sg_warp *warp, int64_t quantum) {
    warp->left = quantum;
    warp->polls = warp->slept = false;
    warp->stop = SG_STOP_NONE;
    const struct sg_step *step = sg_group_next(warp);
    while (step)
        step = step->run(warp, step);
    bool turn = !warp->alone;
    if (warp->grid->launch.schedule == SG_GRID_RANDOM)
        turn = sg_grid_draw(warp->grid, 2) == 0;
    warp->alone = warp->stop == SG_STOP_YIELD && warp->ready > 1 && turn;
    if (warp->joining && (warp->stop == SG_STOP_YIELD || warp->slept))
        sg_joins_turn(warp, quantum - (warp->left < 0 ? 0 : warp->left));
    return warp->stop;
}

/* ---- exits ----------------------------------------------------------------------------------- */

void sg_warp_exit(struct sg_warp *warp, uint32_t lanes) {
    for (struct sg_path *path = warp->path; path;) {
        struct sg_path *parent = path->parent;
        sg_path_leave(warp, path, lanes);
        path = parent;
    }
    if (warp->grid->code->watched)
        sg_watch_exits(warp, lanes);
    warp->live &= ~lanes;
    warp->block->live -= (uint32_t)__builtin_popcount(lanes);
    warp->block->live_warps -= warp->live == 0;
    /* Groups that wait for these lanes check again. */
    sg_joins_look(warp, lanes);
    for (unsigned i = 0; i < warp->group_count; i++)
        if (warp->groups[i].state == SG_GROUP_WARP) {
            warp->groups[i].state = SG_GROUP_READY;
            warp->ready++;
        }
    sg_barriers_look(warp->block);
}

/* ---- call stacks ----------------------------------------------------------------------------- */

void sg_path_use(struct sg_warp *warp, struct sg_path *path) {
    warp->path = path;
    warp->base[SG_BASE_REGISTERS] = warp->registers + path->registers;
}

static struct sg_path *path_new(struct sg_warp *warp) {
    struct sg_path *path = warp->spare;
    if (path)
        warp->spare = path->sibling;
    else
        path = malloc(sizeof *path);
    return path;
}

/* Makes room for a frame that ends at `end`; the caller must set the bases again. */
static bool make_room(struct sg_warp *warp, size_t end) {
    if (end <= warp->register_room)
        return true;
    size_t room = (end + end / 2 + 4095) / 4096 * 4096;
    unsigned char *more = aligned_alloc(SG_SLOT_LINE, room);
    if (!more)
        return false;
    for (size_t i = 0; i < warp->register_room; i++)
        more[i] = warp->registers[i];
    for (size_t i = warp->register_room; i < room; i++)
        more[i] = 0;
    if (warp->moved)
        free(warp->registers);
    warp->moved = true; /* out of the block's memory */
    warp->registers = more;
    warp->register_room = room;
    warp->base[SG_BASE_NOWHERE] = more;
    return true;
}

/* The next path below a root, in preorder; NULL: no more. Calls may nest tens of thousands deep and
 * the thread's own stack may be small, so nothing here recurses. */
static const struct sg_path *path_after(const struct sg_path *root, const struct sg_path *path) {
    if (path->child)
        return path->child;
    while (path != root && !path->sibling)
        path = path->parent;
    return path == root ? NULL : path->sibling;
}

static uint32_t end_below(const struct sg_warp *warp, const struct sg_path *root) {
    uint32_t end = 0;
    for (const struct sg_path *path = root; path; path = path_after(root, path)) {
        uint32_t own = path->registers + warp->grid->code->functions[path->function].frame;
        end = own > end ? own : end;
    }
    return end;
}

/* The offset of a new frame: after the frames of all calls that other lanes are still in. Frames of
 * different functions have different layouts, so they must not overlap, even for different
 * lanes. */
static uint32_t free_registers(const struct sg_warp *warp, const struct sg_path *parent) {
    uint32_t end = end_below(warp, parent);
    for (const struct sg_path *path = parent; path->parent; path = path->parent)
        for (const struct sg_path *other = path->parent->child; other; other = other->sibling) {
            uint32_t until = other == path ? 0 : end_below(warp, other);
            end = until > end ? until : end;
        }
    return end;
}

struct sg_path *sg_path_enter(struct sg_warp *warp, const struct sg_step *call, uint32_t function) {
    const struct sg_code *code = warp->grid->code;
    const struct sg_program_function *caller = &code->program->functions[warp->path->function];
    const struct sg_program_function *callee = &code->program->functions[function];
    uint32_t step = (uint32_t)(call - code->steps);
    struct sg_path *parent = warp->path;
    for (struct sg_path *path = parent->child; path; path = path->sibling)
        if (path->call == step && path->function == function)
            return path;
    uint64_t alignment = callee->frame_alignment > 16 ? callee->frame_alignment : 16;
    uint64_t frame = (parent->frame + caller->frame + alignment - 1) & ~(alignment - 1);
    uint32_t registers = free_registers(warp, parent);
    /* A call takes part of the stack even without variables. */
    uint64_t least = (uint64_t)(parent->depth + 1) * 16;
    uint64_t end = frame + callee->frame > least ? frame + callee->frame : least;
    unsigned lane = (unsigned)__builtin_ctz(warp->mask);
    if (end > warp->local_size)
        return sg_warp_fault(warp, call, SG_FAULT_STACK, lane, end, callee->frame);
    struct sg_path *path = path_new(warp);
    if (!path || !make_room(warp, (size_t)registers + code->functions[function].frame)) {
        free(path);
        return sg_warp_fault(warp, call, SG_FAULT_MEMORY, lane, 0, 0);
    }
    *path = (struct sg_path){.parent = parent,
                             .sibling = parent->child,
                             .call = step,
                             .function = function,
                             .depth = parent->depth + 1,
                             .registers = registers,
                             .frame = frame,
                             .watched = {&parent->watched, frame, function}};
    parent->child = path;
    return path;
}

void sg_path_leave(struct sg_warp *warp, struct sg_path *path, uint32_t lanes) {
    path->lanes &= ~lanes;
    if (path->lanes || !path->parent)
        return;
    struct sg_path **link = &path->parent->child;
    while (*link != path)
        link = &(*link)->sibling;
    *link = path->sibling;
    path->sibling = warp->spare;
    warp->spare = path;
    sg_joins_end(warp, path);
}

static void free_below(struct sg_path *root) {
    struct sg_path *path = root;
    while (path->child)
        path = path->child;
    while (path != root) {
        struct sg_path *next = path->sibling ? path->sibling : path->parent;
        path->parent->child = path->sibling;
        free(path);
        path = next;
        while (path->child)
            path = path->child;
    }
}

void sg_paths_free(struct sg_warp *warp) {
    free_below(&warp->root);
    while (warp->spare) {
        struct sg_path *next = warp->spare->sibling;
        free(warp->spare);
        warp->spare = next;
    }
}
