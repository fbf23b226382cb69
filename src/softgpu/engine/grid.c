/*
 * Grids: blocks begin in ascending order, or as a seed decides (order.c). The first resident block
 * runs until it is done, or until its warps only poll memory that others may write; then it goes to
 * the end of the queue, and one more begins if there is room. So blocks that wait for each other
 * all make progress, and blocks that do not run one by one in a warm cache.
 *
 * Several threads may advance a grid: each takes one of its workers, which has its own blocks and
 * range caches. A worker that a thread has left with resident blocks is taken before a new one, and
 * workers take turns: so even a single thread continues blocks that other threads have begun.
 */
#include "softgpu/address/pagetable.h"
#include "softgpu/engine/count.h"
#include "softgpu/engine/watching.h"

#if !defined __x86_64__
#include <fenv.h>
#endif
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PASSES        32 /* turns of all warps before the next block, if a block only computes */
#define PATIENCE      4  /* rounds of polling before another block begins, if other threads run */
#define DEFAULT_STACK 1024
#define MOST_FRAMES   ((uint64_t)64 << 10) /* room that a warp begins with, for called functions */

/* ---- blocks of a worker ---------------------------------------------------------------------- */

void sg_grid_fails(struct sg_grid *grid, enum sg_fault_kind kind) {
    if (atomic_flag_test_and_set(&grid->faulted))
        return;
    grid->fault.kind = kind;
    atomic_store(&grid->failed, true);
}

/* Takes the number of the next block, or of a cluster's first; false: all have begun. */
static bool claim(struct sg_grid *grid, uint64_t *order) {
    uint_fast64_t next = atomic_load(&grid->begun);
    do
        if (next >= grid->blocks)
            return false;
    while (!atomic_compare_exchange_weak(&grid->begun, &next, next + grid->cluster_size));
    *order = next;
    return true;
}

/* Allocates blocks for the next cluster, as a list; false: out of memory. */
static bool find_blocks(struct sg_worker *worker, struct sg_block **list) {
    *list = NULL;
    for (unsigned i = 0; i < worker->grid->cluster_size; i++) {
        struct sg_block *block = worker->free;
        if (block)
            worker->free = block->next;
        else
            block = sg_block_make(worker);
        if (!block)
            return false;
        block->next = *list;
        *list = block;
    }
    return true;
}

static void put_back(struct sg_worker *worker, struct sg_block *list) {
    while (list) {
        struct sg_block *next = list->next;
        list->next = worker->free;
        worker->free = list;
        list = next;
    }
}

static void begin_one(struct sg_worker *worker, struct sg_block *block, uint64_t order) {
    sg_cluster_join(worker, block, order);
    sg_block_start(worker->grid, block, order);
    if (worker->last)
        worker->last->next = block;
    else
        worker->running = block;
    worker->last = block;
    worker->running_count++;
}

/* Begins the next cluster, or the next block without clusters, after the resident ones; false: all
 * have begun, or there is no memory. */
static bool cluster_begin(struct sg_worker *worker) {
    struct sg_grid *grid = worker->grid;
    struct sg_block *list;
    uint64_t order;
    if (atomic_load(&grid->begun) >= grid->blocks)
        return false;
    if (!find_blocks(worker, &list) || !sg_cluster_open(worker)) {
        put_back(worker, list);
        /* Other resident blocks can go on, and the rest after them. */
        if (grid->launch.cooperative || atomic_load(&grid->begun) == atomic_load(&grid->ended))
            sg_grid_fails(grid, SG_FAULT_MEMORY);
        return false;
    }
    if (!claim(grid, &order)) {
        put_back(worker, list);
        sg_cluster_close(worker);
        return false;
    }
    order = sg_block_order(grid, order);
    while (list) {
        struct sg_block *block = list;
        list = block->next;
        begin_one(worker, block, order++);
    }
    worker->opening = NULL;
    return true;
}

static void first_is_done(struct sg_worker *worker) {
    struct sg_block *block = worker->running;
    sg_block_triggers(block);
    worker->running = block->next;
    if (!worker->running)
        worker->last = NULL;
    block->next = worker->free;
    worker->free = block;
    worker->running_count--;
    worker->passes = 0;
    (void)sg_cluster_leave(block, true); /* a fault is the grid's */
    if (worker->grid->code->watched)
        sg_watch_ends(block);
    atomic_fetch_add(&worker->grid->ended, 1);
}

/* Moves the first block to the end. */
static void rotate(struct sg_worker *worker) {
    struct sg_block *block = worker->running;
    if (!block->next)
        return;
    worker->running = block->next;
    block->next = NULL;
    worker->last->next = block;
    worker->last = block;
}

/* Begins one more if there is room. */
static void begin_more(struct sg_worker *worker) {
    const struct sg_grid *grid = worker->grid;
    if (worker->running_count + grid->cluster_size <= grid->resident_most)
        (void)cluster_begin(worker);
}

static unsigned passes(struct sg_grid *grid) {
    return grid->launch.schedule == SG_GRID_RANDOM ? 1 + sg_grid_draw(grid, 8) : PASSES;
}

/*
 * All resident blocks only poll: one more begins, if there is room, since they may wait for it. If
 * other threads advance the grid too, the blocks more likely wait for one of theirs, so this
 * happens less often, and yields the processor to them.
 */
static void all_spin(struct sg_worker *worker) {
    struct sg_grid *grid = worker->grid;
    bool others = atomic_load(&grid->more) != NULL;
    if (others)
        sched_yield();
    if (others && worker->spins < PATIENCE * worker->running_count)
        return;
    worker->spins = 0;
    begin_more(worker);
}

/* All its blocks in turn have only polled, and no more can begin. */
static bool only_looks(const struct sg_worker *worker) {
    const struct sg_grid *grid = worker->grid;
    return worker->spun > worker->running_count &&
           (atomic_load(&grid->begun) >= grid->blocks ||
            worker->running_count + grid->cluster_size > grid->resident_most);
}

static void got_on(struct sg_worker *worker) {
    worker->spins = worker->spun = 0;
    atomic_fetch_add_explicit(&worker->progress, 1, memory_order_relaxed);
}

static void advance(struct sg_worker *worker, int64_t budget) {
    struct sg_grid *grid = worker->grid;
    worker->spun = 0;
    while (budget > 0 && !atomic_load_explicit(&grid->failed, memory_order_relaxed)) {
        while ((!worker->running || grid->launch.cooperative) && cluster_begin(worker))
            ;
        if (!worker->running)
            return;
        switch (sg_block_turn(grid, worker->running, &budget)) {
        case SG_TURN_FAULT:
            return;
        case SG_TURN_DONE:
            got_on(worker);
            first_is_done(worker);
            break;
        case SG_TURN_WAITS:
            rotate(worker);
            break;
        case SG_TURN_ON:
            got_on(worker);
            if (++worker->passes < passes(grid))
                break;
            worker->passes = 0;
            begin_more(worker);
            rotate(worker);
            break;
        case SG_TURN_SPINS:
            if (++worker->spins % worker->running_count == 0)
                all_spin(worker);
            rotate(worker);
            worker->spun++;
            if (only_looks(worker))
                return;
            break;
        }
    }
}

/* ---- workers --------------------------------------------------------------------------------- */

static unsigned worker_count(const struct sg_grid *grid) {
    bool one = grid->launch.cooperative || grid->launch.schedule == SG_GRID_RANDOM;
    return one ? 1 : grid->launch.workers;
}

/* NULL: it does not exist yet. */
static struct sg_worker *worker_at(struct sg_grid *grid, unsigned index) {
    struct sg_worker *more = atomic_load(&grid->more);
    return index == 0 ? &grid->first : more ? &more[index - 1] : NULL;
}

const struct sg_worker *sg_grid_worker(const struct sg_grid *grid, unsigned index) {
    const struct sg_worker *more = atomic_load(&grid->more);
    if (index == 0)
        return &grid->first;
    return more && index < worker_count(grid) ? &more[index - 1] : NULL;
}

static bool worker_begin(struct sg_grid *grid, struct sg_worker *worker) {
    worker->grid = grid;
    worker->caches = calloc(grid->code->caches + 1u, sizeof *worker->caches);
    if (grid->code->counted)
        worker->counts = sg_counts_new(grid->code);
    return worker->caches && (worker->counts || !grid->code->counted);
}

static void worker_end(struct sg_worker *worker) {
    for (int i = 0; i < 2; i++)
        for (struct sg_block *block = i ? worker->free : worker->running, *next; block;
             block = next) {
            next = block->next;
            (void)sg_cluster_leave(block, false);
            sg_block_free(block);
        }
    free(worker->caches);
    sg_counts_free(worker->counts);
}

/* Makes the workers for more threads. Without memory there are none. */
static void make_others(struct sg_grid *grid) {
    unsigned count = worker_count(grid) - 1;
    if (count == 0 || atomic_load(&grid->more) || atomic_flag_test_and_set(&grid->making))
        return;
    struct sg_worker *more = calloc(count, sizeof *more);
    bool good = more != NULL;
    for (unsigned i = 0; good && i < count; i++)
        good = worker_begin(grid, &more[i]);
    for (unsigned i = 0; !good && more && i < count; i++)
        worker_end(&more[i]);
    if (good)
        atomic_store(&grid->more, more);
    else
        free(more);
}

static struct sg_worker *take(struct sg_grid *grid) {
    unsigned count = worker_count(grid), turn = 0;
    if (count > 1)
        turn = atomic_fetch_add(&grid->turn, 1);
    for (unsigned i = 0; i < count; i++) {
        struct sg_worker *worker = worker_at(grid, (turn + i) % count);
        if (!worker || !atomic_load(&worker->busy) || atomic_exchange(&worker->taken, true))
            continue;
        if (worker->running)
            return worker;
        atomic_store(&worker->taken, false);
    }
    if (atomic_load(&grid->begun) >= grid->blocks)
        return NULL;
    if (!atomic_exchange(&grid->first.taken, true))
        return &grid->first;
    make_others(grid);
    for (unsigned i = 1; i < count; i++) {
        struct sg_worker *worker = worker_at(grid, i);
        if (worker && !atomic_exchange(&worker->taken, true))
            return worker;
    }
    return NULL;
}

static void give_back(struct sg_worker *worker) {
    atomic_store(&worker->busy, worker->running != NULL);
    atomic_store(&worker->taken, false);
}

static uint64_t cpu_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run(struct sg_worker *worker, int64_t budget) {
    uint64_t began = worker->counts ? cpu_time() : 0;
    /* The page table may have changed since the caches were filled. */
    uint64_t table = sg_table_state();
    if (worker->table != table)
        memset(worker->caches, 0, worker->grid->code->caches * sizeof *worker->caches);
    worker->table = table;
#if defined __x86_64__
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80); /* round to nearest, keep subnormal numbers, trap nothing */
    advance(worker, budget);
    __builtin_ia32_ldmxcsr(before);
#else
    fenv_t modes;
    fegetenv(&modes);
    fesetenv(FE_DFL_ENV);
    advance(worker, budget);
    fesetenv(&modes);
#endif
    if (worker->counts)
        worker->counts->nanoseconds += cpu_time() - began;
}

bool sg_grid_advance(struct sg_grid *grid, uint64_t budget) {
    struct sg_worker *worker = atomic_load(&grid->failed) ? NULL : take(grid);
    if (worker) {
        run(worker, budget > INT64_MAX ? INT64_MAX : (int64_t)budget);
        give_back(worker);
    }
    return sg_grid_over(grid);
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
    grid->reserved_bytes = sg_reserved_shared(grid->code, launch->dynamic_shared);
    grid->reserved_offset = sg_shared_granules(grid);
    uint64_t shared =
        grid->reserved_bytes ? grid->reserved_offset + grid->reserved_bytes : grid->shared_exact;
    grid->shared_bytes = (shared + 255) & ~UINT64_C(255);
    uint64_t stack = launch->stack_limit ? launch->stack_limit : DEFAULT_STACK;
    bool calls = program->function_count > 1 || grid->code->allocates;
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
    uint64_t room = SG_GRID_MEMORY / each / worker_count(grid);
    grid->resident_most = room ? room : 1;
    if (launch->resident && launch->resident < grid->resident_most)
        grid->resident_most = launch->resident;
}

/* What is read behind the parameters, or in front of them, is zero. */
static uint64_t parameter_at(const struct sg_grid *grid, int64_t offset, size_t size) {
    const size_t room = grid->launch.parameter_bytes;
    uint64_t value = 0;
    if (offset >= 0 && (uint64_t)offset < room)
        memcpy(&value, grid->parameters + offset,
               size < room - (size_t)offset ? size : room - (size_t)offset);
    return value;
}

/* Sets the constants of this launch. */
static void patch(struct sg_grid *grid) {
    const struct sg_code *code = grid->code;
    const struct sg_grid_launch *launch = &grid->launch;
    for (uint32_t i = 0; i < code->patch_count; i++) {
        const struct sg_patch *what = &code->patches[i];
        size_t size = what->width == SG_W_16 ? 2 : what->width == SG_W_32 ? 4 : 8;
        uint64_t value = (uint64_t)what->value;
        if (what->variable == SG_NO_VARIABLE)
            value = parameter_at(grid, what->value, size);
        else if (launch->variables)
            value += launch->variables[what->variable];
        for (unsigned l = 0; l < SG_LANES; l++)
            memcpy(grid->constants + what->offset + l * size, &value, size);
    }
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
    if (launch->workers == 0 || launch->workers > SG_GRID_WORKERS)
        grid->launch.workers = launch->workers ? SG_GRID_WORKERS : 1;
    if (code->watched) {
        grid->launch.workers = 1;
        grid->launch.apart = true;
    }
    atomic_flag_clear(&grid->making);
    atomic_flag_clear(&grid->faulted);
    measure(grid);
    atomic_init(&grid->held, launch->held);
    grid->parameters = calloc(1, launch->parameter_bytes + SG_PAST_PARAMETERS);
    bool worker = worker_begin(grid, &grid->first);
    uint32_t constants = (code->constant_bytes + 511u) & ~255u;
    grid->constants = aligned_alloc(256, constants);
    grid->constant_tags = malloc(constants / SG_SLOT_LINE * sizeof *grid->constant_tags);
    if (!grid->parameters || !worker || !grid->constants || !grid->constant_tags) {
        sg_grid_end(grid);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (launch->parameter_bytes)
        memcpy(grid->parameters, launch->parameters, launch->parameter_bytes);
    memcpy(grid->constants, code->constants, code->constant_bytes);
    memset(grid->constants + code->constant_bytes, 0, constants - code->constant_bytes);
    patch(grid);
    for (uint32_t i = 0; i < constants / SG_SLOT_LINE; i++) {
        grid->constant_tags[i] = (struct sg_tag){.kind = SG_TAG_KNOWN};
        memcpy(&grid->constant_tags[i].base, grid->constants + i * SG_SLOT_LINE, 8);
    }
    grid->launch.parameters = NULL;
    grid->launch.variables = NULL;
    *result = grid;
    return CUDA_SUCCESS;
}

unsigned sg_grid_room(const struct sg_grid *grid) {
    if (atomic_load(&grid->failed) || worker_count(grid) < 2)
        return 1;
    uint64_t parts = (grid->blocks - atomic_load(&grid->begun)) / grid->cluster_size;
    const struct sg_worker *worker;
    for (unsigned i = 0; (worker = sg_grid_worker(grid, i)); i++)
        parts += atomic_load(&worker->busy);
    return parts < worker_count(grid) ? (unsigned)parts : worker_count(grid);
}

bool sg_grid_over(const struct sg_grid *grid) {
    return atomic_load(&grid->failed) || atomic_load(&grid->ended) == grid->blocks;
}

bool sg_grid_spins(const struct sg_grid *grid) {
    const struct sg_worker *worker;
    bool some = false;
    for (unsigned i = 0; (worker = sg_grid_worker(grid, i)); i++) {
        if (worker->running && worker->spun <= worker->running_count)
            return false;
        some |= worker->running != NULL;
    }
    return some;
}

uint64_t sg_grid_progress(const struct sg_grid *grid) {
    const struct sg_worker *worker;
    uint64_t progress = 0;
    for (unsigned i = 0; (worker = sg_grid_worker(grid, i)); i++)
        progress += atomic_load_explicit(&worker->progress, memory_order_relaxed);
    return progress;
}

/* Its workers have no blocks left. */
void sg_grid_rewind(struct sg_grid *grid) {
    atomic_store(&grid->begun, 0);
    atomic_store(&grid->ended, 0);
    atomic_store(&grid->triggered, 0);
    memset(grid->workspace, 0, sizeof grid->workspace);
}

const struct sg_grid_fault *sg_grid_fault(const struct sg_grid *grid) {
    return atomic_load(&grid->failed) ? &grid->fault : NULL;
}

bool sg_grid_beyond(const struct sg_grid *grid, uint32_t *number, uint32_t *line) {
    unsigned long long first = atomic_load(&grid->beyond);
    *number = (uint32_t)first;
    *line = (uint32_t)(first >> 32);
    return first != 0;
}

uint64_t sg_grid_instructions(const struct sg_grid *grid) {
    return atomic_load(&grid->instructions);
}

void sg_grid_end(struct sg_grid *grid) {
    if (!grid)
        return;
    worker_end(&grid->first);
    struct sg_worker *more = atomic_load(&grid->more);
    for (unsigned i = 1; more && i < worker_count(grid); i++)
        worker_end(&more[i - 1]);
    free(more);
    free(grid->parameters);
    free(grid->constants);
    free(grid->constant_tags);
    free(grid);
}
