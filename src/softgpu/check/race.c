/* The race checker: creation, grids and their blocks, copies. */
#include "softgpu/check/race_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- the checker ----------------------------------------------------------------------------- */

struct sg_race *sg_race_new(const struct sg_race_options *options) {
    struct sg_race *race = calloc(1, sizeof *race);
    if (!race)
        return NULL;
    race->options = *options;
    race->shadow.most = options->memory ? options->memory : SG_RACE_MEMORY;
    race->moment = 1;
    if (pthread_mutex_init(&race->lock, NULL) == 0)
        return race;
    free(race);
    return NULL;
}

void sg_race_free(struct sg_race *race) {
    if (!race)
        return;
    while (race->spare) {
        struct sg_race_block *next = race->spare->next;
        sg_race_block_free(race->spare);
        race->spare = next;
    }
    sg_shadow_free(&race->shadow);
    sg_released_free(&race->released);
    sg_race_launches_free(race);
    pthread_mutex_destroy(&race->lock);
    free(race);
}

uint64_t sg_race_full(const struct sg_race *race) {
    return race->shadow.full;
}

void sg_race_forget(struct sg_race *race, uint64_t address, uint64_t size) {
    pthread_mutex_lock(&race->lock);
    sg_shadow_clear_range(&race->shadow, address, size);
    pthread_mutex_unlock(&race->lock);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct sg_race_block *sg_race_block_of(struct sg_race_grid *grid, uint64_t index) {
    if (grid->last && grid->last->index == index)
        return grid->last;
    struct sg_race_block *block = grid->buckets[index % SG_RACE_BUCKETS];
    while (block && block->index != index)
        block = block->next;
    if (block)
        grid->last = block;
    return block;
}

void sg_race_block_clear(struct sg_race_block *block) {
    for (unsigned w = 0; w < block->warp_count; w++) {
        struct sg_race_warp *warp = &block->warps[w];
        sg_clock_drop(warp->knows);
        for (unsigned l = 0; warp->lanes && l < 32; l++) {
            sg_clock_drop(warp->lanes->knows[l]);
            sg_clock_drop(warp->lanes->near[l]);
            sg_clock_drop(warp->lanes->far[l]);
            sg_clock_drop(warp->lanes->fenced[l]);
        }
        free(warp->lanes);
        *warp = (struct sg_race_warp){0};
    }
    for (unsigned b = 0; b < SG_RACE_BARRIERS; b++)
        sg_clock_drop(block->barriers[b].clock);
    memset(block->barriers, 0, sizeof block->barriers);
    sg_released_free(&block->released);
    block->met = 0;
    block->knows = block->left = block->wrote = block->depended = block->news = false;
    block->read_count = 0;
}

void sg_race_block_free(struct sg_race_block *block) {
    sg_race_block_clear(block);
    for (size_t i = 0; i < block->shared_pages; i++)
        sg_shadow_page_free(block->shared[i]);
    free(block->shared);
    free(block->reads);
    free(block);
}

static struct sg_race_block *take_block(struct sg_race *race) {
    struct sg_race_block *block = race->spare;
    if (!block)
        return calloc(1, sizeof *block);
    race->spare = block->next;
    return block;
}

static void give_block(struct sg_race_grid *grid, struct sg_race_block *block) {
    if (grid->last == block)
        grid->last = NULL;
    sg_race_block_clear(block);
    block->next = grid->race->spare;
    grid->race->spare = block;
}

static void block_begins(void *user, uint64_t index, uint64_t shared_bytes) {
    struct sg_race_grid *grid = user;
    (void)shared_bytes;
    pthread_mutex_lock(&grid->race->lock);
    struct sg_race_block *block = take_block(grid->race);
    grid->lost = grid->lost || !block;
    if (block) {
        block->index = (uint32_t)index;
        block->warp_count = grid->warps;
        for (unsigned w = 0; w < grid->warps; w++) {
            unsigned left = grid->threads - 32 * w;
            block->warps[w].live = left >= 32 ? UINT32_MAX : (UINT32_C(1) << left) - 1;
            block->warps[w].since = grid->race->moment;
        }
        block->next = grid->buckets[index % SG_RACE_BUCKETS];
        grid->buckets[index % SG_RACE_BUCKETS] = block;
        grid->last = block;
    }
    pthread_mutex_unlock(&grid->race->lock);
}

static void block_ends(void *user, uint64_t index) {
    struct sg_race_grid *grid = user;
    pthread_mutex_lock(&grid->race->lock);
    sg_race_decide(grid);
    struct sg_race_block **link = &grid->buckets[index % SG_RACE_BUCKETS];
    while (*link && (*link)->index != index)
        link = &(*link)->next;
    struct sg_race_block *block = *link;
    if (block) {
        *link = block->next;
        give_block(grid, block);
    }
    pthread_mutex_unlock(&grid->race->lock);
}

static void exits(void *user, const struct sg_watched_warp *watched, uint32_t lanes) {
    struct sg_race_grid *grid = user;
    pthread_mutex_lock(&grid->race->lock);
    struct sg_race_block *block = sg_race_block_of(grid, watched->block);
    if (block) {
        struct sg_race_warp *warp = &block->warps[watched->first / 32];
        warp->live &= ~lanes;
        block->left = block->left || warp->touched;
    }
    pthread_mutex_unlock(&grid->race->lock);
}

const struct sg_watch sg_race_watch = {
    .access = sg_race_access,
    .arrives = sg_race_arrives,
    .completes = sg_race_completes,
    .meet = sg_race_meet,
    .fence = sg_race_fence,
    .issues = sg_race_issues,
    .issues_bulk = sg_race_issues_bulk,
    .delivers = sg_race_delivers,
    .looks = sg_race_looks,
    .turns = sg_race_turns,
    .depends = sg_race_depends,
    .exits = exits,
    .block_begins = block_begins,
    .block_ends = block_ends,
};

/* ---- grids ----------------------------------------------------------------------------------- */

static void shape_grid(struct sg_race_grid *grid, const struct sg_race_shape *shape) {
    grid->blocks = 1;
    grid->threads = 1;
    grid->cluster_size = 1;
    for (unsigned i = 0; i < 3; i++) {
        grid->grid[i] = shape->grid[i];
        grid->cluster[i] = shape->cluster[i] ? shape->cluster[i] : 1;
        grid->blocks *= shape->grid[i];
        grid->threads *= shape->block[i];
        grid->cluster_size *= grid->cluster[i];
    }
    grid->warps = (grid->threads + 31) / 32;
    grid->levels = sg_clock_levels(grid->blocks);
}

/* Moments are 32-bit numbers: after this many everything restarts, once no grid is running. */
#define MOMENTS (UINT32_C(1) << 31)

struct sg_race_grid *sg_race_begin(struct sg_race *race, const struct sg_race_operation *operation,
                                   const struct sg_race_shape *shape) {
    struct sg_race_grid *grid = calloc(1, sizeof *grid);
    if (!grid)
        return NULL;
    shape_grid(grid, shape);
    grid->race = race;
    pthread_mutex_lock(&race->lock);
    if (race->running == 0 && race->moment > MOMENTS) {
        sg_shadow_clear(&race->shadow);
        race->moment = 1;
    }
    if (grid->blocks < UINT32_C(1) << 27)
        grid->launch = sg_race_launch_new(race, operation);
    race->running += grid->launch != 0;
    if (grid->launch)
        race->launches[grid->launch].kernel = true;
    grid->early = operation->early;
    pthread_mutex_unlock(&race->lock);
    if (grid->launch)
        return grid;
    free(grid);
    return NULL;
}

void sg_race_end(struct sg_race_grid *grid) {
    if (!grid)
        return;
    struct sg_race *race = grid->race;
    pthread_mutex_lock(&race->lock);
    sg_race_decide(grid);
    for (unsigned i = 0; i < SG_RACE_BUCKETS; i++)
        while (grid->buckets[i]) {
            struct sg_race_block *block = grid->buckets[i];
            grid->buckets[i] = block->next;
            give_block(grid, block);
        }
    while (grid->clusters) {
        struct sg_race_cluster *next = grid->clusters->next;
        sg_clock_drop(grid->clusters->clock);
        free(grid->clusters);
        grid->clusters = next;
    }
    if (--race->running == 0)
        sg_released_free(&race->released);
    pthread_mutex_unlock(&race->lock);
    free(grid);
}

uint64_t sg_race_cluster_of(const struct sg_race_grid *grid, uint64_t block) {
    uint64_t x = block % grid->grid[0] / grid->cluster[0];
    uint64_t y = block / grid->grid[0] % grid->grid[1] / grid->cluster[1];
    uint64_t z = block / grid->grid[0] / grid->grid[1] / grid->cluster[2];
    uint64_t across = grid->grid[0] / grid->cluster[0], down = grid->grid[1] / grid->cluster[1];
    return (z * down + y) * across + x;
}

bool sg_race_in_scope(const struct sg_race_grid *grid, uint32_t a, uint32_t b, unsigned scope) {
    if (a == b || scope >= SG_WATCHED_GPU)
        return true;
    return scope == SG_WATCHED_CLUSTER && grid->cluster_size > 1 &&
           sg_race_cluster_of(grid, a) == sg_race_cluster_of(grid, b);
}
