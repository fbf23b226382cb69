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
#include "softgpu/engine/inside.h"

#if !defined __x86_64__
#include <fenv.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUANTUM       2048 /* instructions of a warp before the next one's turn */
#define PASSES        32 /* turns of all warps before the next block's, for one that only computes */
#define DEFAULT_STACK 1024
#define MEET_TURNS    64                   /* of a warp that waits for its gang */
#define MOST_FRAMES   ((uint64_t)64 << 10) /* of functions called, that a warp has room for at once */

/* ---- blocks ---------------------------------------------------------------------------------- */

static void block_free(struct sg_block *block) {
    for (unsigned w = 0; w < block->warp_count; w++) {
        sg_paths_free(&block->warps[w]);
        if (block->warps[w].moved)
            free(block->warps[w].registers);
    }
    free(block->warps);
    free(block->memory);
    free(block);
}

static void warp_make(struct sg_grid *grid, struct sg_block *block, unsigned number) {
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
    warp->shared_size = grid->shared_exact;
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
}

/* Shared memory and registers begin as zeros, local memory as anything. */
static struct sg_block *block_make(struct sg_grid *grid) {
    struct sg_block *block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->warps = calloc(grid->warps, sizeof *block->warps);
    block->memory = aligned_alloc(256, grid->block_bytes);
    if (!block->warps || !block->memory) {
        block_free(block);
        return NULL;
    }
    block->warp_count = grid->warps;
    memset(block->memory, 0, grid->shared_bytes);
    for (unsigned w = 0; w < grid->warps; w++)
        warp_make(grid, block, w);
    memset(block->warps[0].registers, 0, grid->register_bytes * grid->warps);
    unsigned char *tags = block->warps[0].registers + grid->register_bytes * grid->warps;
    for (unsigned g = 0; g < grid->gangs; g++) {
        unsigned size = grid->warps - g * SG_GANG;
        sg_gang_make(&block->warps[g * SG_GANG], size < SG_GANG ? size : SG_GANG,
                     tags + grid->tag_bytes * g);
    }
    return block;
}

static void block_place(const struct sg_grid *grid, struct sg_block *block, uint64_t index) {
    const unsigned *shape = grid->launch.grid;
    block->index = index;
    block->place[0] = (unsigned)(index % shape[0]);
    block->place[1] = (unsigned)(index / shape[0] % shape[1]);
    block->place[2] = (unsigned)(index / shape[0] / shape[1]);
    block->live = grid->threads;
    for (unsigned i = 0; i < SG_BARRIERS; i++)
        block->barriers[i] = (struct sg_barrier){.all = true};
}

static void warp_start(struct sg_warp *warp, unsigned threads) {
    const struct sg_code *code = warp->grid->code;
    unsigned left = threads - warp->number * SG_LANES;
    uint32_t lanes = left >= SG_LANES ? SG_ALL : (UINT32_C(1) << left) - 1;
    warp->live = lanes;
    warp->group_count = warp->ready = 0;
    warp->alone = false;
    warp->stamp = warp->clock = 0;
    warp->root.lanes = lanes;
    sg_path_use(warp, &warp->root);
    warp->meet = SG_NO_STEP;
    sg_group_add(warp, lanes, code->functions[0].first_step, &warp->root);
    if (warp->number % SG_GANG == 0)
        sg_gang_start(warp);
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
    block_place(grid, block, grid->begun++);
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

/* ---- deadlocks ------------------------------------------------------------------------------- */

static const struct sg_step *report_groups(struct sg_block *block, char *text, size_t size) {
    const struct sg_step *first = NULL;
    size_t used = 0;
    for (unsigned w = 0; w < block->warp_count; w++) {
        const struct sg_warp *warp = &block->warps[w];
        const struct sg_code *code = warp->grid->code;
        for (unsigned i = 0; i < warp->group_count && used < size; i++) {
            const struct sg_group *group = &warp->groups[i];
            const struct sg_step *step = &code->steps[group->step];
            char what[64];
            if (group->state == SG_GROUP_BARRIER)
                snprintf(what, sizeof what, "barrier %u", group->barrier);
            else
                snprintf(what, sizeof what, "lanes %08x", group->members & warp->live);
            int wrote =
                snprintf(text + used, size - used, "warp %u lanes %08x line %u: waits for %s\n", w,
                         group->lanes, code->program->instructions[step->instruction].line, what);
            used += wrote > 0 ? (size_t)wrote : 0;
            first = first ? first : step;
        }
    }
    return first;
}

static void deadlock(struct sg_grid *grid, struct sg_block *block) {
    const struct sg_step *step =
        report_groups(block, grid->fault.report, sizeof grid->fault.report);
    for (unsigned w = 0; w < block->warp_count; w++) {
        struct sg_warp *warp = &block->warps[w];
        if (warp->group_count && step) {
            sg_warp_fault(warp, step, SG_FAULT_DEADLOCK,
                          (unsigned)__builtin_ctz(warp->groups[0].lanes), 0, 0);
            return;
        }
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

enum turn { TURN_DONE, TURN_ON, TURN_SPINS, TURN_FAULT };

/* What the warps of a block did in a turn. */
struct tally {
    int64_t used;
    unsigned done; /* warps */
    bool ran, spins, fault;
};

static void gang_turn(struct sg_warp *gang, struct tally *tally) {
    enum sg_stop stop = sg_gang_run(gang, QUANTUM);
    int64_t used = QUANTUM - (gang->left < 0 ? 0 : gang->left);
    tally->used += used * gang->gang_size;
    tally->ran = true;
    tally->fault = stop == SG_STOP_FAULT;
    tally->spins = tally->spins && stop == SG_STOP_YIELD && gang->polls;
}

static void warp_turn(struct sg_warp *warp, struct tally *tally) {
    enum sg_stop stop = sg_warp_run(warp, QUANTUM);
    tally->used += QUANTUM - (warp->left < 0 ? 0 : warp->left);
    tally->ran = true;
    tally->fault = stop == SG_STOP_FAULT;
    tally->spins = tally->spins && stop == SG_STOP_YIELD && warp->polls;
}

/* Warps that part stay apart where one waits for another, or for long. */
static void meet_or_not(struct sg_warp *gang) {
    bool wait = gang->meet != SG_NO_STEP && ++gang->meet_turns < MEET_TURNS;
    for (unsigned g = 0; wait && g < gang->gang_size; g++)
        wait = !gang[g].moved && !gang[g].polls && gang[g].ready == gang[g].group_count;
    for (unsigned g = 0; !wait && g < gang->gang_size; g++)
        gang[g].meet = SG_NO_STEP;
}

/* Warps of a gang run, in lock step or one by one. */
static void gang_advance(struct sg_warp *gang, struct tally *tally) {
    bool ready = false;
    for (unsigned g = 0; g < gang->gang_size; g++)
        ready |= gang[g].ready != 0;
    if (ready && !gang->grid->launch.apart && sg_gang_ready(gang)) {
        gang_turn(gang, tally);
        ready = gang->stop == SG_STOP_APART;
    } else if (ready && gang->tagged) {
        sg_gang_apart(gang);
    }
    for (unsigned g = 0; ready && !tally->fault && g < gang->gang_size; g++)
        if (gang[g].ready)
            warp_turn(&gang[g], tally);
    if (ready && gang->meet != SG_NO_STEP && !sg_gang_ready(gang))
        meet_or_not(gang);
    for (unsigned g = 0; g < gang->gang_size; g++)
        tally->done += gang[g].group_count == 0;
}

/* Each warp that can runs for a while. */
static enum turn block_turn(struct sg_grid *grid, struct sg_block *block, int64_t *budget) {
    struct tally tally = {.spins = true};
    for (unsigned w = 0; w < block->warp_count && !tally.fault; w += SG_GANG)
        gang_advance(&block->warps[w], &tally);
    *budget -= tally.used;
    grid->instructions += (uint64_t)tally.used;
    if (tally.fault)
        return TURN_FAULT;
    if (tally.done == block->warp_count)
        return TURN_DONE;
    if (!tally.ran) {
        deadlock(grid, block);
        return TURN_FAULT;
    }
    return tally.spins ? TURN_SPINS : TURN_ON;
}

static void first_is_done(struct sg_grid *grid) {
    struct sg_block *block = grid->running;
    grid->running = block->next;
    if (!grid->running)
        grid->last = NULL;
    block->next = grid->free;
    grid->free = block;
    grid->running_count--;
    grid->ended++;
    grid->passes = 0;
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

static bool no_memory(struct sg_grid *grid) {
    if (grid->running_count) /* it goes on with those that there are */
        return false;
    grid->failed = true;
    grid->fault.kind = SG_FAULT_MEMORY;
    return true;
}

/* True: all is done, or has failed. */
static bool advance(struct sg_grid *grid, int64_t budget) {
    while (!grid->failed && grid->ended < grid->blocks) {
        bool all = grid->launch.cooperative;
        while (grid->begun < grid->blocks && (grid->running_count == 0 || all))
            if (!block_begin(grid)) {
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
        if (turn == TURN_DONE) {
            first_is_done(grid);
        } else if (turn == TURN_SPINS || ++grid->passes >= PASSES) {
            if (grid->begun < grid->blocks && grid->running_count < grid->resident_most)
                (void)block_begin(grid);
            rotate(grid);
        }
        if (budget <= 0)
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
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->grid[i] == 0 || launch->block[i] == 0 || launch->block[i] > 1024)
            return CUDA_ERROR_INVALID_VALUE;
        threads *= launch->block[i];
    }
    return threads > 1024 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void measure(struct sg_grid *grid) {
    const struct sg_grid_launch *launch = &grid->launch;
    const struct sg_program *program = grid->code->program;
    grid->threads = launch->block[0] * launch->block[1] * launch->block[2];
    grid->warps = (grid->threads + SG_LANES - 1) / SG_LANES;
    grid->blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint64_t fixed = program->static_shared;
    if (launch->dynamic_shared)
        fixed = program->dynamic_shared_offset > fixed ? program->dynamic_shared_offset : fixed;
    grid->shared_exact = fixed + launch->dynamic_shared;
    grid->shared_bytes = (grid->shared_exact + 255) & ~UINT64_C(255);
    uint64_t stack = launch->stack_limit ? launch->stack_limit : DEFAULT_STACK;
    bool calls = program->function_count > 1;
    grid->local_bytes = (program->functions[0].frame + (calls ? stack : 0) + 15) & ~UINT64_C(15);
    const struct sg_code *code = grid->code;
    uint64_t special = (code->special_bytes + 255u) & ~255u, frames = 0;
    for (size_t i = 1; i < program->function_count; i++)
        frames += code->functions[i].frame;
    grid->gangs = (grid->warps + SG_GANG - 1) / SG_GANG;
    grid->register_bytes =
        256 + code->functions[0].frame + (frames < MOST_FRAMES ? frames : MOST_FRAMES);
    grid->register_bytes = (grid->register_bytes + 255) & ~UINT64_C(255);
    grid->tag_bytes = (sg_gang_bytes(code) + 255) & ~UINT64_C(255);
    grid->block_bytes = grid->shared_bytes + grid->gangs * grid->tag_bytes +
                        grid->warps * (special + grid->register_bytes +
                                       ((grid->local_bytes * SG_LANES + 255) & ~255ull));
    uint64_t each = grid->block_bytes + grid->warps * sizeof(struct sg_warp);
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
    grid->parameters = malloc(launch->parameter_bytes + 1);
    grid->caches = calloc(code->caches + 1u, sizeof *grid->caches);
    uint32_t constants = (code->constant_bytes + 511u) & ~255u;
    grid->constants = aligned_alloc(256, constants);
    grid->constant_tags = malloc(constants / SG_SLOT_LINE * sizeof *grid->constant_tags);
    if (!grid->parameters || !grid->caches || !grid->constants || !grid->constant_tags) {
        sg_grid_end(grid);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (launch->parameter_bytes)
        memcpy(grid->parameters, launch->parameters, launch->parameter_bytes);
    memcpy(grid->constants, code->constants, code->constant_bytes);
    memset(grid->constants + code->constant_bytes, 0, constants - code->constant_bytes);
    if (!patch(grid)) {
        sg_grid_end(grid);
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uint32_t i = 0; i < constants / SG_SLOT_LINE; i++) {
        grid->constant_tags[i] = (struct sg_tag){.kind = SG_TAG_KNOWN};
        memcpy(&grid->constant_tags[i].base, grid->constants + i * SG_SLOT_LINE, 8);
    }
    grid->launch.parameters = NULL;
    grid->launch.variables = NULL;
    *result = grid;
    return CUDA_SUCCESS;
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
            block_free(block);
        }
    free(grid->parameters);
    free(grid->caches);
    free(grid->constants);
    free(grid->constant_tags);
    free(grid);
}
