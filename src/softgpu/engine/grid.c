/*
 * Grids: blocks begin in ascending order; the first under way runs until it is done, or until its
 * warps only look at what others may write: then it goes behind the others, and one more begins if
 * there is room. So blocks that wait for each other all get on, and blocks that do not run one by
 * one in a warm cache.
 *
 * For several workers on one grid: `running`, `begun` and `ended` under a lock of the grid's (taken
 * at a block's begin and end and at its turns, not within), range caches and counters for each
 * worker, `fault` by compare and exchange. Blocks share nothing else.
 */
#include "softgpu/address/pagetable.h"
#include "softgpu/engine/async.h"

#if !defined __x86_64__
#include <fenv.h>
#endif
#include <stdlib.h>
#include <string.h>

#define QUANTUM       2048 /* instructions of a warp before the next one's turn */
#define PASSES        32 /* turns of all warps before the next block's, for one that only computes */
#define DEFAULT_STACK 1024

/* ---- blocks ---------------------------------------------------------------------------------- */

static void block_free(struct sg_block *block) {
    for (unsigned w = 0; w < block->warp_count; w++) {
        sg_paths_free(&block->warps[w]);
        free(block->warps[w].registers);
    }
    free(block->warps);
    free(block->memory);
    free(block);
}

static bool warp_make(struct sg_grid *grid, struct sg_block *block, unsigned number) {
    struct sg_warp *warp = &block->warps[number];
    const struct sg_code *code = grid->code;
    uint64_t special = (code->special_bytes + 255u) & ~255u;
    warp->register_room = 256 + code->functions[0].frame;
    warp->registers = aligned_alloc(SG_SLOT_LINE, warp->register_room);
    if (!warp->registers)
        return false;
    memset(warp->registers, 0, warp->register_room);
    unsigned char *at = block->memory + grid->shared_bytes;
    warp->specials = at + special * number;
    warp->local = at + special * grid->warps + grid->local_bytes * SG_LANES * number;
    warp->local_size = grid->local_bytes;
    warp->shared = block->memory;
    warp->caches = grid->caches;
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
    return true;
}

static struct sg_block *block_make(struct sg_grid *grid) {
    struct sg_block *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->warps = calloc(grid->warps, sizeof *block->warps);
    block->memory = aligned_alloc(256, grid->block_bytes);
    block->warp_count = block->warps ? grid->warps : 0;
    block->shared = block->memory;
    bool good = block->warps && block->memory;
    if (good)
        memset(block->memory, 0, grid->shared_bytes);
    for (unsigned w = 0; good && w < grid->warps; w++)
        good = warp_make(grid, block, w);
    if (good)
        return block;
    block_free(block);
    return NULL;
}

/* The block that begins as the given one. False: no memory for its cluster. */
static bool block_place(struct sg_grid *grid, struct sg_block *block, uint64_t order) {
    block->index = sg_cluster_place(grid, order, block->place);
    block->live = grid->threads;
    block->triggered = false;
    for (unsigned i = 0; i < SG_BARRIERS; i++)
        block->barriers[i] = (struct sg_barrier){.all = true};
    return sg_cluster_join(grid, block, order);
}

static void warp_start(struct sg_warp *warp, unsigned threads) {
    const struct sg_code *code = warp->grid->code;
    unsigned left = threads - warp->number * SG_LANES;
    uint32_t lanes = left >= SG_LANES ? SG_ALL : (UINT32_C(1) << left) - 1;
    warp->live = lanes;
    warp->shared_size = warp->block->cluster && warp->block->rank ? 0 : sg_shared_room(warp->grid);
    warp->group_count = warp->ready = 0;
    warp->alone = false;
    warp->stamp = warp->clock = 0;
    warp->root.lanes = lanes;
    sg_path_use(warp, &warp->root);
    sg_group_add(warp, lanes, code->functions[0].first_step, &warp->root);
    for (uint32_t i = 0; i < code->special_count; i++)
        if (sg_special_of_block(code->specials[i].special))
            sg_special_fill(warp, &code->specials[i], warp->specials + code->specials[i].offset);
}

/* Begins the next block, behind those under way; false: no memory. */
static bool block_begin(struct sg_grid *grid) {
    struct sg_block *block = grid->free;
    if (block)
        grid->free = block->next;
    else
        block = block_make(grid);
    if (!block)
        return false;
    if (!block_place(grid, block, grid->begun)) {
        block->next = grid->free;
        grid->free = block;
        return false;
    }
    grid->begun++;
    for (unsigned w = 0; w < block->warp_count; w++)
        warp_start(&block->warps[w], grid->threads);
    block->next = NULL;
    if (grid->last)
        grid->last->next = block;
    else
        grid->running = block;
    grid->last = block;
    grid->running_count++;
    return true;
}

/* Begins the next cluster: a block, where there are none. All of it or, without memory, nothing. */
static bool cluster_begin(struct sg_grid *grid) {
    struct sg_block *last = grid->last;
    for (unsigned i = 0; i < grid->cluster_size; i++) {
        if (block_begin(grid))
            continue;
        struct sg_block *block = last ? last->next : grid->running, *next;
        for (; block; block = next) {
            next = block->next;
            (void)sg_cluster_leave(block, false);
            block->next = grid->free;
            grid->free = block;
            grid->running_count--;
            grid->begun--;
        }
        grid->last = last;
        if (last)
            last->next = NULL;
        else
            grid->running = NULL;
        return false;
    }
    return true;
}

/* ---- turns ----------------------------------------------------------------------------------- */

enum turn { TURN_DONE, TURN_ON, TURN_SPINS, TURN_WAITS, TURN_FAULT };

/* Each warp that can runs for a while. */
static enum turn block_turn(struct sg_grid *grid, struct sg_block *block, int64_t *budget) {
    bool ran = false, spins = true, random = grid->launch.schedule == SG_GRID_RANDOM;
    unsigned done = 0, first = random ? sg_grid_draw(grid, block->warp_count) : 0;
    for (unsigned w = 0; w < block->warp_count; w++) {
        struct sg_warp *warp = &block->warps[(w + first) % block->warp_count];
        if (warp->ready == 0) {
            done += warp->group_count == 0;
            continue;
        }
        ran = true;
        /* Short turns, and now and then a long one. */
        int64_t quantum = random ? (QUANTUM >> sg_grid_draw(grid, 12)) : QUANTUM;
        enum sg_stop stop = sg_warp_run(warp, quantum);
        int64_t used = quantum - (warp->left < 0 ? 0 : warp->left);
        *budget -= used;
        grid->instructions += (uint64_t)used;
        if (stop == SG_STOP_FAULT)
            return TURN_FAULT;
        done += stop == SG_STOP_DONE;
        spins = spins && stop == SG_STOP_YIELD && warp->polls;
    }
    if (done == block->warp_count)
        return TURN_DONE;
    if (!ran && sg_cluster_runs(block)) /* others of its cluster do */
        return TURN_WAITS;
    if (!ran) {
        sg_deadlock(grid, block);
        return TURN_FAULT;
    }
    return spins ? TURN_SPINS : TURN_ON;
}

static void first_is_done(struct sg_grid *grid) {
    struct sg_block *block = grid->running;
    sg_block_triggers(block);
    grid->running = block->next;
    if (!grid->running)
        grid->last = NULL;
    block->next = grid->free;
    grid->free = block;
    grid->running_count--;
    grid->ended++;
    grid->passes = 0;
    (void)sg_cluster_leave(block, true); /* a fault is the grid's */
}

/* The first goes behind the others. */
static void rotate(struct sg_grid *grid) {
    struct sg_block *block = grid->running;
    grid->passes = 0;
    if (!block->next)
        return;
    grid->running = block->next;
    block->next = NULL;
    grid->last->next = block;
    grid->last = block;
}

static unsigned passes(struct sg_grid *grid) {
    return grid->launch.schedule == SG_GRID_RANDOM ? 1 + sg_grid_draw(grid, 8) : PASSES;
}

static bool no_memory(struct sg_grid *grid) {
    if (grid->running_count) /* it goes on with those that there are */
        return false;
    grid->failed = true;
    grid->fault.kind = SG_FAULT_MEMORY;
    return true;
}

/* Whether each block under way has only looked at what others may write, one after the other. */
static bool only_spins(struct sg_grid *grid, enum turn turn) {
    grid->spun = turn == TURN_SPINS ? grid->spun + 1 : 0;
    bool all = grid->begun == grid->blocks || grid->running_count >= grid->resident_most;
    return grid->spun > grid->running_count && all;
}

/* True: all is done, or has failed. */
static bool advance(struct sg_grid *grid, int64_t budget) {
    grid->spun = 0;
    while (!grid->failed && grid->ended < grid->blocks) {
        bool all = grid->launch.cooperative;
        while (grid->begun < grid->blocks && (grid->running_count == 0 || all))
            if (!cluster_begin(grid)) {
                if (all || no_memory(grid)) {
                    grid->failed = true;
                    grid->fault.kind = SG_FAULT_MEMORY;
                    return true;
                }
                break;
            }
        enum turn turn = block_turn(grid, grid->running, &budget);
        if (turn == TURN_FAULT)
            return true;
        grid->progress += turn != TURN_SPINS;
        if (turn == TURN_DONE) {
            first_is_done(grid);
        } else if (turn == TURN_WAITS) {
            rotate(grid);
        } else if (turn == TURN_SPINS || ++grid->passes >= passes(grid)) {
            if (grid->begun < grid->blocks &&
                grid->running_count + grid->cluster_size <= grid->resident_most)
                (void)cluster_begin(grid);
            rotate(grid);
        }
        if (only_spins(grid, turn) || budget <= 0)
            return grid->failed || grid->ended == grid->blocks;
    }
    return true;
}

bool sg_grid_advance(struct sg_grid *grid, uint64_t budget) {
    /* What was true of the page table may not be any more. */
    uint64_t table = sg_table_state();
    if (grid->table != table)
        memset(grid->caches, 0, grid->code->caches * sizeof *grid->caches);
    grid->table = table;
    int64_t most = budget > INT64_MAX ? INT64_MAX : (int64_t)budget;
#if defined __x86_64__
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80); /* to nearest, subnormal numbers kept, nothing trapped */
    bool done = advance(grid, most);
    __builtin_ia32_ldmxcsr(before);
#else
    fenv_t modes;
    fegetenv(&modes);
    fesetenv(FE_DFL_ENV);
    bool done = advance(grid, most);
    fesetenv(&modes);
#endif
    return done;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static CUresult check(const struct sg_grid_launch *launch) {
    uint64_t threads = 1, together = 1;
    for (int i = 0; i < 3; i++) {
        unsigned cluster = launch->cluster[i] ? launch->cluster[i] : 1;
        if (launch->grid[i] == 0 || launch->block[i] == 0 || launch->block[i] > 1024 ||
            cluster > SG_CLUSTER_MOST || launch->grid[i] % cluster != 0)
            return CUDA_ERROR_INVALID_VALUE;
        threads *= launch->block[i];
        together *= cluster;
    }
    return threads > 1024 || together > SG_CLUSTER_MOST ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void measure(struct sg_grid *grid) {
    const struct sg_grid_launch *launch = &grid->launch;
    const struct sg_program *program = grid->code->program;
    grid->threads = launch->block[0] * launch->block[1] * launch->block[2];
    grid->warps = (grid->threads + SG_LANES - 1) / SG_LANES;
    grid->clustered = grid->code->clustered;
    grid->cluster_size = 1;
    for (int i = 0; i < 3; i++) {
        grid->cluster[i] = launch->cluster[i] ? launch->cluster[i] : 1;
        grid->cluster_size *= grid->cluster[i];
    }
    grid->random = launch->seed;
    grid->blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint64_t fixed = program->static_shared;
    if (launch->dynamic_shared)
        fixed = program->dynamic_shared_offset > fixed ? program->dynamic_shared_offset : fixed;
    grid->shared_exact = fixed + launch->dynamic_shared;
    grid->reserved_bytes = sg_reserved_shared(grid->code);
    grid->reserved_offset = (grid->shared_exact + 15) & ~UINT64_C(15);
    uint64_t shared =
        grid->reserved_bytes ? grid->reserved_offset + grid->reserved_bytes : grid->shared_exact;
    grid->shared_bytes = (shared + 255) & ~UINT64_C(255);
    uint64_t stack = launch->stack_limit ? launch->stack_limit : DEFAULT_STACK;
    bool calls = program->function_count > 1 || grid->code->allocates;
    grid->local_bytes = (program->functions[0].frame + (calls ? stack : 0) + 15) & ~UINT64_C(15);
    uint64_t special = (grid->code->special_bytes + 255u) & ~255u;
    grid->block_bytes = grid->shared_bytes +
                        grid->warps * (special + ((grid->local_bytes * SG_LANES + 255) & ~255ull));
    grid->block_bytes = grid->block_bytes ? grid->block_bytes : 256;
    uint64_t each =
        grid->block_bytes + grid->warps * (sizeof(struct sg_warp) + grid->code->functions[0].frame);
    uint64_t room = SG_GRID_MEMORY / each;
    grid->resident_most = room ? room : 1;
    if (launch->resident && launch->resident < grid->resident_most)
        grid->resident_most = launch->resident;
}

/* Constants of this launch. False: fewer parameters than the kernel reads. */
static bool patch(struct sg_grid *grid) {
    const struct sg_code *code = grid->code;
    const struct sg_grid_launch *launch = &grid->launch;
    for (uint32_t i = 0; i < code->patch_count; i++) {
        const struct sg_patch *what = &code->patches[i];
        size_t size = what->width == SG_W_16 ? 2 : what->width == SG_W_32 ? 4 : 8;
        uint64_t value = (uint64_t)what->value;
        if (what->variable == SG_NO_VARIABLE) {
            if (size > launch->parameter_bytes || value > launch->parameter_bytes - size)
                return false;
            memcpy(&value, grid->parameters + what->value, size);
        } else if (launch->variables) {
            value += launch->variables[what->variable];
        }
        for (unsigned l = 0; l < SG_LANES; l++)
            memcpy(grid->constants + what->offset + l * size, &value, size);
    }
    return true;
}

CUresult sg_grid_begin(const struct sg_grid_launch *launch, struct sg_grid **result) {
    CUresult checked = check(launch);
    if (checked != CUDA_SUCCESS)
        return checked;
    struct sg_grid *grid = calloc(1, sizeof *grid);
    if (!grid)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const struct sg_code *code = launch->code;
    grid->code = code;
    grid->launch = *launch;
    measure(grid);
    atomic_init(&grid->held, launch->held);
    grid->parameters = malloc(launch->parameter_bytes + 1);
    grid->caches = calloc(code->caches + 1u, sizeof *grid->caches);
    uint32_t constants = (code->constant_bytes + 511u) & ~255u;
    grid->constants = aligned_alloc(256, constants);
    if (!grid->parameters || !grid->caches || !grid->constants) {
        sg_grid_end(grid);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (launch->parameter_bytes)
        memcpy(grid->parameters, launch->parameters, launch->parameter_bytes);
    memcpy(grid->constants, code->constants, code->constant_bytes);
    if (!patch(grid)) {
        sg_grid_end(grid);
        return CUDA_ERROR_INVALID_VALUE;
    }
    grid->launch.parameters = NULL;
    grid->launch.variables = NULL;
    *result = grid;
    return CUDA_SUCCESS;
}

bool sg_grid_spins(const struct sg_grid *grid) {
    return grid->spun > grid->running_count;
}

void sg_grid_rewind(struct sg_grid *grid) {
    grid->begun = grid->ended = 0;
    atomic_store(&grid->triggered, 0);
    memset(grid->workspace, 0, sizeof grid->workspace);
}

const struct sg_grid_fault *sg_grid_fault(const struct sg_grid *grid) {
    return grid->failed ? &grid->fault : NULL;
}

uint64_t sg_grid_instructions(const struct sg_grid *grid) {
    return grid->instructions;
}

void sg_grid_end(struct sg_grid *grid) {
    if (!grid)
        return;
    for (int i = 0; i < 2; i++)
        for (struct sg_block *block = i ? grid->free : grid->running, *next; block; block = next) {
            next = block->next;
            (void)sg_cluster_leave(block, false);
            block_free(block);
        }
    free(grid->parameters);
    free(grid->caches);
    free(grid->constants);
    free(grid);
}
