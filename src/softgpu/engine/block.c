/* Blocks of a grid: their memory, their start, and turns of their warps. */
#include "softgpu/engine/watching.h"

#include <stdlib.h>
#include <string.h>

#define QUANTUM     2048 /* instructions of a warp before the next warp's turn */
#define LOOK        128  /* the same in a block that only polled memory */
#define MEET_TURNS  64   /* that a warp waits for its gang */
#define SHORT_TURNS 1024 /* in a row after which a block that polls between barriers only polls */

/* ---- blocks ---------------------------------------------------------------------------------- */

void sg_block_free(struct sg_block *block) {
    for (unsigned w = 0; w < block->warp_count; w++) {
        sg_paths_free(&block->warps[w]);
        if (block->warps[w].moved)
            free(block->warps[w].registers);
    }
    free(block->warps);
    free(block->memory);
    free(block);
}

static void warp_make(struct sg_worker *worker, struct sg_block *block, unsigned number) {
    struct sg_grid *grid = worker->grid;
    struct sg_warp *warp = &block->warps[number];
    const struct sg_code *code = grid->code;
    uint64_t special = (code->special_bytes + 255u) & ~255u;
    unsigned char *at = block->memory + grid->shared_bytes;
    warp->specials = at + special * number;
    at += special * grid->warps;
    warp->registers = at + grid->register_bytes * number;
    warp->register_room = grid->register_bytes;
    at += grid->register_bytes * grid->warps + grid->tag_bytes * grid->gangs;
    warp->local = at + grid->local_bytes * SG_LANES * number;
    warp->local_size = grid->local_bytes;
    warp->shared = block->memory;
    warp->caches = worker->caches;
    warp->counts = worker->counts;
    warp->grid = grid;
    warp->block = block;
    warp->number = number;
    warp->base[SG_BASE_CONSTANTS] = grid->constants;
    warp->base[SG_BASE_SPECIALS] = warp->specials;
    warp->base[SG_BASE_NOWHERE] = warp->registers;
    warp->root.registers = 256;
    for (uint32_t i = 0; i < code->special_count; i++)
        if (!sg_special_of_block(code->specials[i].special))
            sg_special_fill(warp, &code->specials[i], warp->specials + code->specials[i].offset);
}

/* Shared memory and registers are zeroed, local memory is not. */
struct sg_block *sg_block_make(struct sg_worker *worker) {
    struct sg_grid *grid = worker->grid;
    struct sg_block *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->warps = calloc(grid->warps, sizeof *block->warps);
    block->memory = aligned_alloc(256, grid->block_bytes);
    if (!block->warps || !block->memory) {
        sg_block_free(block);
        return NULL;
    }
    block->warp_count = grid->warps;
    block->shared = block->memory;
    block->barriers_used = (UINT32_C(1) << SG_BARRIERS) - 1;
    memset(block->memory, 0, grid->shared_bytes);
    for (unsigned w = 0; w < grid->warps; w++)
        warp_make(worker, block, w);
    memset(block->warps[0].registers, 0, grid->register_bytes * grid->warps);
    unsigned char *tags = block->warps[0].registers + grid->register_bytes * grid->warps;
    for (unsigned g = 0; g < grid->gangs; g++) {
        unsigned size = grid->warps - g * SG_GANG;
        sg_gang_make(&block->warps[g * SG_GANG], size < SG_GANG ? size : SG_GANG,
                     tags + grid->tag_bytes * g);
    }
    return block;
}

static void block_place(const struct sg_grid *grid, struct sg_block *block, uint64_t order) {
    block->index = sg_cluster_place(grid, order, block->place);
    block->live = grid->threads;
    block->live_warps = block->warp_count;
    block->triggered = block->spins = false;
    block->short_turns = 0;
    block->since_poll = (int64_t)block->warp_count * LOOK;
    for (uint32_t left = block->barriers_used; left; left &= left - 1)
        block->barriers[__builtin_ctz(left)] = (struct sg_barrier){.all = true};
    block->barriers_used = 0;
}

static void warp_start(struct sg_warp *warp, unsigned threads) {
    const struct sg_code *code = warp->grid->code;
    unsigned left = threads - warp->number * SG_LANES;
    uint32_t lanes = left >= SG_LANES ? SG_ALL : (UINT32_C(1) << left) - 1;
    warp->live = lanes;
    warp->shared_size = warp->block->cluster && warp->block->rank ? 0 : sg_shared_room(warp->grid);
    warp->group_count = warp->ready = warp->join_count = warp->joining = warp->asleep = 0;
    warp->alone = false;
    warp->since_poll = LOOK;
    warp->stamp = warp->clock = 0;
    warp->root.lanes = lanes;
    sg_path_use(warp, &warp->root);
    warp->meet = SG_NO_STEP;
    sg_group_add(warp, lanes, code->functions[0].first_step, &warp->root);
    if (warp->number % SG_GANG == 0)
        sg_gang_start(warp);
}

void sg_block_start(struct sg_grid *grid, struct sg_block *block, uint64_t order) {
    block_place(grid, block, order);
    for (unsigned w = 0; w < block->warp_count; w++)
        warp_start(&block->warps[w], grid->threads);
    if (grid->code->watched)
        sg_watch_begins(block);
    block->next = NULL;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* What the warps of a block did in one turn. */
struct tally {
    int64_t used;
    unsigned done; /* warps */
    bool ran, fault;
    bool spins;   /* all that ran polled until their turn ended */
    bool stopped; /* all that ran did so, or soon stopped at a barrier */
    bool looked;  /* some polled */
    bool asleep;  /* some sleep */
};

/* Under a random schedule turns are short, with a long one now and then. */
static int64_t quantum(const struct sg_block *block) {
    struct sg_grid *grid = block->warps->grid;
    if (grid->launch.schedule == SG_GRID_RANDOM)
        return QUANTUM >> sg_grid_draw(grid, 12);
    return block->spins ? LOOK : QUANTUM;
}

/* Whether it polled in its turn, or, under a random schedule, so recently that the turn may have
 * ended between two looks: such turns can be shorter than a loop that polls. */
static bool polls(struct sg_warp *warp, int64_t used) {
    warp->since_poll = warp->polls ? 0 : warp->since_poll + used;
    bool random = warp->grid->launch.schedule == SG_GRID_RANDOM;
    return warp->polls || (random && warp->since_poll < LOOK);
}

static void count_polls(struct sg_warp *warp, int64_t used, bool looks, struct tally *tally) {
    bool spins = polls(warp, used) && looks;
    tally->spins = tally->spins && spins;
    tally->stopped = tally->stopped && (spins || used < LOOK);
    tally->looked = tally->looked || warp->polls;
}

/* A loop may poll through a barrier, or one warp for all: then turns end at barriers, as those of
 * other kernels do, but not so many in a row after so few instructions. */
static bool only_polls(struct sg_block *block, const struct tally *tally) {
    if (tally->spins)
        return true;
    block->since_poll = tally->looked ? 0 : block->since_poll + tally->used;
    bool lately = block->since_poll < (int64_t)block->warp_count * LOOK;
    block->short_turns = tally->stopped && lately ? block->short_turns + 1 : 0;
    return block->short_turns > SHORT_TURNS;
}

static void gang_turn(struct sg_warp *gang, struct tally *tally) {
    int64_t most = quantum(gang->block);
    enum sg_stop stop = sg_gang_run(gang, most);
    int64_t used = most - (gang->left < 0 ? 0 : gang->left);
    tally->used += used * gang->gang_size;
    tally->ran = true;
    tally->fault = stop == SG_STOP_FAULT;
    /* A gang that comes apart goes on warp by warp, and each warp polls or not. */
    bool looks = stop == SG_STOP_YIELD || stop == SG_STOP_APART;
    count_polls(gang, used, looks, tally);
    for (unsigned g = 1; g < gang->gang_size; g++)
        gang[g].since_poll = gang->since_poll;
}

static void warp_turn(struct sg_warp *warp, struct tally *tally) {
    int64_t most = quantum(warp->block);
    enum sg_stop stop = sg_warp_run(warp, most);
    int64_t used = most - (warp->left < 0 ? 0 : warp->left);
    tally->used += used;
    tally->ran = true;
    tally->fault = stop == SG_STOP_FAULT;
    count_polls(warp, used, stop == SG_STOP_YIELD || warp->slept, tally);
}

/* Diverged warps stay apart if one waits for another, or if they take long. */
static void meet_or_not(struct sg_warp *gang) {
    bool wait = gang->meet != SG_NO_STEP && ++gang->meet_turns < MEET_TURNS;
    for (unsigned g = 0; wait && g < gang->gang_size; g++)
        wait = !gang[g].moved && !gang[g].polls &&
               gang[g].ready + gang[g].joining == gang[g].group_count;
    for (unsigned g = 0; !wait && g < gang->gang_size; g++)
        gang[g].meet = SG_NO_STEP;
}

/* Runs the warps of a gang, in lock step or one by one. */
static void gang_advance(struct sg_warp *gang, struct tally *tally) {
    bool ready = false, random = gang->grid->launch.schedule == SG_GRID_RANDOM;
    unsigned first = random ? sg_grid_draw(gang->grid, gang->gang_size) : 0;
    for (unsigned g = 0; g < gang->gang_size; g++) {
        sg_warp_wake(&gang[g]);
        ready |= gang[g].ready != 0;
    }
    if (ready && !gang->grid->launch.apart && !random && sg_gang_ready(gang)) {
        gang_turn(gang, tally);
        ready = gang->stop == SG_STOP_APART;
    } else if (ready && gang->tagged) {
        sg_gang_apart(gang);
    }
    for (unsigned g = 0; ready && !tally->fault && g < gang->gang_size; g++) {
        struct sg_warp *warp = &gang[(g + first) % gang->gang_size];
        if (warp->ready)
            warp_turn(warp, tally);
    }
    if (ready && gang->meet != SG_NO_STEP && !sg_gang_ready(gang))
        meet_or_not(gang);
    for (unsigned g = 0; g < gang->gang_size; g++) {
        tally->done += gang[g].group_count == 0;
        tally->asleep |= gang[g].asleep != 0;
    }
}

/* All wait: lanes at joins go on without those that they wait for. */
static bool go_on_apart(struct sg_block *block) {
    bool some = false;
    for (unsigned w = 0; w < block->warp_count; w++)
        some |= sg_joins_give_up(&block->warps[w]);
    return some;
}

/* Runs each warp that can run for a while. */
enum sg_turn sg_block_turn(struct sg_grid *grid, struct sg_block *block, int64_t *budget) {
    struct tally tally = {.spins = true, .stopped = true};
    bool random = grid->launch.schedule == SG_GRID_RANDOM;
    unsigned first = random ? sg_grid_draw(grid, grid->gangs) : 0;
    for (unsigned g = 0; g < grid->gangs && !tally.fault; g++)
        gang_advance(&block->warps[(g + first) % grid->gangs * SG_GANG], &tally);
    *budget -= tally.used;
    atomic_fetch_add_explicit(&grid->instructions, (uint64_t)tally.used, memory_order_relaxed);
    if (tally.fault)
        return SG_TURN_FAULT;
    if (tally.done == block->warp_count)
        return SG_TURN_DONE;
    if (!tally.ran && tally.asleep)
        return SG_TURN_SPINS;
    if (!tally.ran && sg_cluster_runs(block, false)) /* other blocks of its cluster can */
        return SG_TURN_WAITS;
    if (!tally.ran && go_on_apart(block))
        return SG_TURN_ON;
    if (!tally.ran && sg_cluster_runs(block, true))
        return SG_TURN_WAITS;
    if (!tally.ran) {
        sg_deadlock(block);
        return SG_TURN_FAULT;
    }
    block->spins = only_polls(block, &tally);
    return block->spins ? SG_TURN_SPINS : SG_TURN_ON;
}
