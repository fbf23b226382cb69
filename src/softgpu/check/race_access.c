/*
 * Accesses, compared with what is remembered of their memory. Consecutive lanes that access
 * consecutive words are looked at line by line, all others word by word.
 */
#include "softgpu/check/race_inside.h"

#include "softgpu/program/program.h"

#include <stdlib.h>
#include <string.h>

struct actor {
    struct sg_race_grid *grid;
    struct sg_race_block *block;
    const struct sg_race_warp *warp;
    const struct sg_watched_access *access;
    struct sg_seen seen; /* of lane 0, without bytes */
    bool own;            /* shared memory of the block alone */
    bool writes;
    struct sg_shadow_page *page; /* of `number`, or NULL */
    uint64_t number;
    unsigned raced; /* so far */
};

static bool writes(uint32_t what) {
    return SG_SEEN_KIND(what) != SG_WATCHED_READ;
}

/* ---- memory ----------------------------------------------------------------------------------- */

static struct sg_shadow_page *own_page(struct actor *a, uint64_t number) {
    struct sg_race_block *block = a->block;
    if (number >= block->shared_pages) {
        struct sg_shadow_page **more =
            realloc(block->shared, (size_t)(number + 1) * sizeof(struct sg_shadow_page *));
        if (!more)
            return NULL;
        for (size_t i = block->shared_pages; i <= number; i++)
            more[i] = NULL;
        block->shared = more;
        block->shared_pages = (size_t)number + 1;
    }
    if (!block->shared[number])
        block->shared[number] = sg_shadow_page_new(&(uint64_t){0});
    return block->shared[number];
}

static struct sg_shadow_page *page_at(struct actor *a, uint64_t address) {
    uint64_t number = address / SG_PAGE_BYTES;
    if (a->page && a->number == number)
        return a->page;
    a->page = a->own ? own_page(a, number) : sg_shadow_page_at(&a->grid->race->shadow, address);
    a->number = number;
    a->grid->lost = a->grid->lost || !a->page;
    return a->page;
}

uint64_t sg_race_address(const struct sg_race_grid *grid, const struct sg_race_block *block,
                         const struct sg_watched_access *access, unsigned lane) {
    uint64_t address = access->address[lane];
    if (access->space != SG_IN_SHARED || grid->cluster_size == 1)
        return address;
    return UINT64_C(1) << 63 | (uint64_t)(grid->launch & 0x7ff) << 52 |
           (sg_race_cluster_of(grid, block->index) & 0xffffff) << 28 | (address & 0xfffffff);
}

/* ---- order ------------------------------------------------------------------------------------ */

static bool launch_before(struct sg_race_grid *grid, uint32_t launch) {
    if (launch == grid->ordered)
        return true;
    if (launch == grid->unordered)
        return false;
    bool before = sg_race_launch_before(grid->race, launch, grid->launch);
    *(before ? &grid->ordered : &grid->unordered) = launch;
    return before;
}

/* Of any lanes: by what the whole warp knows. */
static bool is_before_all(const struct actor *a, const struct sg_seen *old) {
    if (old->launch != a->seen.launch)
        return launch_before(a->grid, old->launch);
    if (old->warp >> 5 != a->seen.warp >> 5)
        return false;
    return old->moment <= a->block->met ||
           (old->warp == a->seen.warp && old->moment <= a->warp->met);
}

static bool is_known(const struct actor *a, const struct sg_seen *old, unsigned old_lane,
                     unsigned lane) {
    if (old->launch != a->seen.launch || !a->block->knows)
        return false;
    uint64_t key = (uint64_t)old->warp << 5 | old_lane;
    return sg_clock_of(a->warp->knows, a->grid->levels, key) >= old->moment ||
           (a->warp->lanes &&
            sg_clock_of(a->warp->lanes->knows[lane], a->grid->levels, key) >= old->moment);
}

static bool is_before(const struct actor *a, const struct sg_seen *old, unsigned old_lane,
                      unsigned lane) {
    bool same = old->launch == a->seen.launch && old->warp == a->seen.warp && old_lane == lane;
    return same || is_before_all(a, old) || is_known(a, old, old_lane, lane);
}

/* Whether they would race where nothing orders them. */
static bool conflicts(const struct actor *a, const struct sg_seen *old) {
    uint32_t what = a->seen.what;
    if (!writes(old->what) && !a->writes)
        return false;
    if (!SG_SEEN_STRONG(old->what) || !SG_SEEN_STRONG(what))
        return true;
    unsigned x = SG_SEEN_SCOPE(old->what), y = SG_SEEN_SCOPE(what), scope = x < y ? x : y;
    if (old->launch != a->seen.launch)
        return scope < SG_WATCHED_GPU;
    return !sg_race_in_scope(a->grid, old->warp >> 5, a->seen.warp >> 5, scope);
}

/* ---- findings --------------------------------------------------------------------------------- */

static struct sg_race_side side_of(const struct sg_race *race, const struct sg_seen *seen,
                                   unsigned lane) {
    bool copy = seen->warp == SG_SEEN_COPY;
    return (struct sg_race_side){.name = race->launches[seen->launch].name,
                                 .copy = copy,
                                 .instruction = SG_SEEN_INSTRUCTION(seen->what),
                                 .block = copy ? 0 : seen->warp >> 5,
                                 .thread = copy ? 0 : (seen->warp & 31) * 32 + lane,
                                 .kind = (unsigned char)SG_SEEN_KIND(seen->what)};
}

void sg_race_decide(struct sg_race *race) {
    for (unsigned i = 0; i < race->doubt_count; i++) {
        struct sg_race_doubt *doubt = &race->doubts[i];
        doubt->found.same_value = memcmp(doubt->at, doubt->bytes, doubt->found.size) == 0;
        race->options.found(race->options.user, &doubt->found);
    }
    race->doubt_count = 0;
}

static const unsigned char *bytes_of(const struct actor *a, uint64_t address, uint32_t size) {
    const struct sg_race *race = a->grid->race;
    const unsigned char *shared = a->access->warp->shared;
    if (a->access->space == SG_IN_SHARED)
        return a->own && shared && address + size <= a->access->warp->shared_bytes
                   ? shared + address
                   : NULL;
    return race->options.bytes ? race->options.bytes(race->options.user, address, size) : NULL;
}

/* Both are plain writes: whether their values are the same shows when the second is done. */
static void found(struct actor *a, const struct sg_seen *old, unsigned old_lane, unsigned lane,
                  uint64_t word, unsigned bytes) {
    struct sg_race *race = a->grid->race;
    unsigned first = (unsigned)__builtin_ctz(bytes);
    struct sg_seen now = a->seen;
    struct sg_race_found is = {.now = side_of(race, &now, lane),
                               .before = side_of(race, old, old_lane),
                               .address = word + first,
                               .size = (uint32_t)__builtin_popcount(bytes),
                               .shared = a->access->space == SG_IN_SHARED};
    a->raced++;
    is.one_access = old->launch == now.launch && old->warp == now.warp &&
                    old->moment == now.moment && is.now.instruction == is.before.instruction;
    bool plain = SG_SEEN_KIND(old->what) == SG_WATCHED_WRITE &&
                 SG_SEEN_KIND(now.what) == SG_WATCHED_WRITE && !is.before.copy && !is.now.copy;
    const unsigned char *at = plain ? bytes_of(a, is.address, is.size) : NULL;
    if (!at || race->doubt_count == SG_RACE_DOUBTS) {
        race->options.found(race->options.user, &is);
        return;
    }
    struct sg_race_doubt *doubt = &race->doubts[race->doubt_count++];
    *doubt = (struct sg_race_doubt){.found = is, .at = at, .grid = a->grid};
    memcpy(doubt->bytes, at, is.size);
}

/* ---- cells ------------------------------------------------------------------------------------ */

/* What a block before this one has left in the shadow of its shared memory. */
static bool is_stale(const struct actor *a, const struct sg_seen *old) {
    return a->own && (old->launch != a->seen.launch || old->warp >> 5 != a->seen.warp >> 5);
}

/* Whether what is remembered says nothing more than the new access, which has all its bytes. */
static bool is_superseded(const struct actor *a, const struct sg_seen *old, bool before,
                          bool raced) {
    if (before)
        return a->writes || !writes(old->what);
    return raced || (SG_SEEN_STRONG(old->what) && SG_SEEN_STRONG(a->seen.what) &&
                     SG_SEEN_KIND(old->what) == SG_SEEN_KIND(a->seen.what));
}

/* A full cell: another access of the same warp, or any other, but reads first. */
static unsigned victim(const struct actor *a, const struct sg_cell *cell) {
    uint32_t turn = a->grid->race->turn++;
    for (unsigned s = 0; s < SG_SEEN_SLOTS; s++)
        if (cell->seen[s].warp == a->seen.warp && !writes(cell->seen[s].what))
            return s;
    for (unsigned i = 0; i < SG_SEEN_SLOTS; i++)
        if (!writes(cell->seen[(turn + i) % SG_SEEN_SLOTS].what))
            return (turn + i) % SG_SEEN_SLOTS;
    return turn % SG_SEEN_SLOTS;
}

static void word_access(struct actor *a, struct sg_cell *cell, uint64_t word, unsigned bytes,
                        unsigned lane) {
    unsigned place = SG_SEEN_SLOTS;
    for (unsigned s = 0; s < SG_SEEN_SLOTS; s++) {
        struct sg_seen *old = &cell->seen[s];
        if (!old->launch || is_stale(a, old)) {
            old->launch = 0;
            place = s;
            continue;
        }
        unsigned old_bytes = SG_SEEN_BYTES(old->what), old_lane = SG_SEEN_LANE(old->what);
        if (!(old_bytes & bytes))
            continue;
        bool before = is_before(a, old, old_lane, lane);
        bool raced = !before && conflicts(a, old);
        if (raced)
            found(a, old, old_lane, lane, word, old_bytes & bytes);
        if (!(old_bytes & ~bytes) && is_superseded(a, old, before, raced)) {
            old->launch = 0;
            place = s;
        }
    }
    struct sg_seen *new = &cell->seen[place < SG_SEEN_SLOTS ? place : victim(a, cell)];
    *new = a->seen;
    new->what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, lane), bytes);
}

static struct sg_cell *cells_of(struct actor *a, uint64_t address) {
    struct sg_shadow_page *page = page_at(a, address);
    if (!page)
        return NULL;
    unsigned line = (unsigned)(address % SG_PAGE_BYTES / SG_LINE_BYTES);
    if (page->split >> line & 1)
        return page->words + (size_t)line * SG_LINE_WORDS;
    uint64_t none = 0;
    struct sg_cell *cells =
        sg_shadow_split(page, line, a->own ? &none : &a->grid->race->shadow.bytes);
    a->grid->lost = a->grid->lost || !cells;
    return cells;
}

static void lane_access(struct actor *a, uint64_t address, unsigned lane) {
    uint64_t end = address + a->access->size;
    for (uint64_t word = address & ~UINT64_C(3); word < end; word += SG_WORD_BYTES) {
        unsigned bytes = 15;
        if (word < address)
            bytes &= 15u << (address - word);
        if (word + SG_WORD_BYTES > end)
            bytes &= 15u >> (word + SG_WORD_BYTES - end);
        struct sg_cell *cells = cells_of(a, word);
        if (!cells)
            return;
        word_access(a, &cells[word % SG_LINE_BYTES / SG_WORD_BYTES], word, bytes, lane);
    }
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* A part of a run: words of a line, accessed by consecutive lanes. */
struct part {
    uint64_t line; /* address */
    unsigned words, lane, power;
};

static unsigned lane_of(unsigned lane, unsigned power, unsigned word) {
    return (lane + (word * SG_WORD_BYTES >> power)) & 31;
}

static bool is_run_before(const struct actor *a, const struct sg_seen *old, unsigned both,
                          const struct part *part) {
    unsigned lane = SG_SEEN_LANE(old->what), power = SG_SEEN_BYTES(old->what);
    bool same = old->launch == a->seen.launch && old->warp == a->seen.warp && lane == part->lane &&
                power == part->power;
    if (same || is_before_all(a, old))
        return true;
    if (old->launch != a->seen.launch || !a->block->knows)
        return false;
    for (unsigned left = both; left; left &= left - 1) {
        unsigned w = (unsigned)__builtin_ctz(left);
        if (!is_before(a, old, lane_of(lane, power, w), lane_of(part->lane, part->power, w)))
            return false;
    }
    return true;
}

/* True: it is done. False: something races, perhaps only in some words. */
static bool whole_access(struct actor *a, struct sg_shadow_page *page, const struct part *part) {
    unsigned line = (unsigned)(part->line % SG_PAGE_BYTES / SG_LINE_BYTES);
    struct sg_cell *cell = &page->lines[line];
    uint16_t *runs = page->runs[line];
    unsigned place = SG_SEEN_SLOTS;
    for (unsigned s = 0; s < SG_SEEN_SLOTS; s++) {
        struct sg_seen *old = &cell->seen[s];
        if (!old->launch || is_stale(a, old)) {
            old->launch = 0;
            place = s;
            continue;
        }
        unsigned both = runs[s] & part->words;
        if (!both)
            continue;
        bool before = is_run_before(a, old, both, part);
        if (!before && conflicts(a, old))
            return false;
        if (!(runs[s] & ~part->words) && is_superseded(a, old, before, false)) {
            old->launch = 0;
            place = s;
        }
    }
    if (place == SG_SEEN_SLOTS)
        place = victim(a, cell);
    cell->seen[place] = a->seen;
    cell->seen[place].what =
        SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, part->lane), part->power);
    runs[place] = (uint16_t)part->words;
    return true;
}

/* A line whose words have nothing but what this write has left is whole again. */
static void join_line(struct sg_shadow_page *page, const struct actor *a, const struct part *part) {
    unsigned line = (unsigned)(part->line % SG_PAGE_BYTES / SG_LINE_BYTES);
    const struct sg_cell *words = page->words + (size_t)line * SG_LINE_WORDS;
    for (unsigned w = 0; w < SG_LINE_WORDS; w++)
        for (unsigned s = 0; s < SG_SEEN_SLOTS; s++) {
            const struct sg_seen *seen = &words[w].seen[s];
            if (seen->launch && (seen->launch != a->seen.launch || seen->warp != a->seen.warp ||
                                 seen->moment != a->seen.moment || !writes(seen->what)))
                return;
        }
    struct sg_cell *cell = &page->lines[line];
    memset(cell, 0, sizeof *cell);
    cell->seen[0] = a->seen;
    cell->seen[0].what =
        SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, part->lane), part->power);
    page->runs[line][0] = (uint16_t)part->words;
    page->split &= ~(UINT64_C(1) << line);
}

static void part_access(struct actor *a, const struct part *part) {
    struct sg_shadow_page *page = page_at(a, part->line);
    if (!page)
        return;
    unsigned line = (unsigned)(part->line % SG_PAGE_BYTES / SG_LINE_BYTES), raced = a->raced;
    if (!(page->split >> line & 1) && whole_access(a, page, part))
        return;
    struct sg_cell *cells = cells_of(a, part->line);
    for (unsigned left = cells ? part->words : 0; left; left &= left - 1) {
        unsigned w = (unsigned)__builtin_ctz(left);
        word_access(a, &cells[w], part->line + (uint64_t)w * SG_WORD_BYTES, 15,
                    lane_of(part->lane, part->power, w));
    }
    if (cells && a->writes && part->words == 0xffff && a->raced == raced)
        join_line(page, a, part);
}

static void run_access(struct actor *a, uint64_t address, unsigned lane, unsigned lanes) {
    unsigned power = (unsigned)__builtin_ctz(a->access->size);
    uint64_t end = address + ((uint64_t)lanes << power);
    while (address < end) {
        uint64_t line = address & ~(uint64_t)(SG_LINE_BYTES - 1);
        uint64_t last = line + SG_LINE_BYTES < end ? line + SG_LINE_BYTES : end;
        unsigned from = (unsigned)(address - line) / SG_WORD_BYTES;
        unsigned to = (unsigned)(last - line) / SG_WORD_BYTES;
        struct part part = {.line = line,
                            .words = (0xffffu >> (SG_LINE_WORDS - (to - from))) << from,
                            .lane = (lane - (from * SG_WORD_BYTES >> power)) & 31,
                            .power = power};
        part_access(a, &part);
        lane += (unsigned)(last - address) >> power;
        address = last;
    }
}

/* ---- an access of a warp ---------------------------------------------------------------------- */

/* How many lanes from `lane` on access memory without gaps, in elements of words. */
static unsigned run_of(const uint64_t *address, uint32_t lanes, unsigned lane, uint32_t size) {
    unsigned count = 1;
    while (lane + count < 32 && lanes >> (lane + count) & 1 &&
           address[lane + count] == address[lane] + (uint64_t)count * size)
        count++;
    return count;
}

/* One of several lanes in a row that do the same: the first and the last are enough. */
static bool is_repeated(const struct actor *a, const uint64_t *address, unsigned lane) {
    bool may = !a->writes || SG_SEEN_STRONG(a->seen.what);
    uint32_t lanes = a->access->lanes;
    return may && lane > 0 && lane < 31 && lanes >> (lane - 1) & 1 && lanes >> (lane + 1) & 1 &&
           address[lane - 1] == address[lane] && address[lane + 1] == address[lane];
}

#define LEAST_RUN 8u /* lanes */

static void all_lanes(struct actor *a, const uint64_t *address) {
    uint32_t size = a->access->size, left = a->access->lanes;
    bool words = size >= SG_WORD_BYTES && size <= 16 && (size & (size - 1)) == 0;
    while (left && !a->grid->lost) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        unsigned run = 1;
        if (words && address[lane] % size == 0)
            run = run_of(address, left, lane, size);
        if (run >= LEAST_RUN) {
            run_access(a, address[lane], lane, run);
        } else {
            run = 1;
            if (!is_repeated(a, address, lane))
                lane_access(a, address[lane], lane);
        }
        left &= run >= 32 - lane ? 0 : UINT32_MAX << (lane + run);
    }
}

static uint32_t what_of(const struct sg_watched_access *access) {
    bool strong = access->order & SG_WATCHED_STRONG || access->kind == SG_WATCHED_ATOMIC;
    uint32_t instruction = access->instruction < SG_SEEN_MOST ? access->instruction : SG_SEEN_MOST;
    return instruction | (uint32_t)access->kind << 23 | (uint32_t)strong << 25 |
           ((uint32_t)access->scope & 3) << 26;
}

static void check(struct sg_race_grid *grid, const struct sg_watched_access *access) {
    struct sg_race_block *block = sg_race_block_of(grid, access->warp->block);
    if (!block)
        return;
    unsigned w = access->warp->first / 32;
    struct actor a = {.grid = grid,
                      .block = block,
                      .warp = &block->warps[w],
                      .access = access,
                      .own = access->space == SG_IN_SHARED && grid->cluster_size == 1,
                      .writes = access->kind != SG_WATCHED_READ,
                      .seen = {.launch = grid->launch,
                               .warp = block->index << 5 | w,
                               .moment = block->warps[w].since,
                               .what = what_of(access)}};
    uint64_t changed[32];
    const uint64_t *address = access->address;
    if (access->space == SG_IN_SHARED && !a.own) {
        for (unsigned l = 0; l < 32; l++)
            changed[l] = sg_race_address(grid, block, access, l);
        address = changed;
    }
    block->warps[w].touched = true;
    all_lanes(&a, address);
    if (SG_SEEN_STRONG(a.seen.what) && !grid->lost)
        sg_race_strong(grid, block, access);
}

void sg_race_access(void *user, const struct sg_watched_access *access) {
    struct sg_race_grid *grid = user;
    if (access->space != SG_IN_GLOBAL && access->space != SG_IN_SHARED)
        return;
    pthread_mutex_lock(&grid->race->lock);
    if (grid->race->doubt_count)
        sg_race_decide(grid->race);
    if (!grid->lost)
        check(grid, access);
    pthread_mutex_unlock(&grid->race->lock);
}

/* ---- copies ----------------------------------------------------------------------------------- */

static void copy_edge(struct actor *a, struct sg_watched_access *access, uint64_t address,
                      uint64_t size) {
    access->size = (uint32_t)size;
    if (size)
        lane_access(a, address, 0);
}

static void copy_access(struct actor *a, struct sg_watched_access *access, uint64_t address,
                        uint64_t size) {
    uint64_t first = (SG_LINE_BYTES - address % SG_LINE_BYTES) % SG_LINE_BYTES;
    first = first < size ? first : size;
    copy_edge(a, access, address, first);
    address += first;
    size -= first;
    for (; size >= SG_LINE_BYTES && !a->grid->lost; size -= SG_LINE_BYTES) {
        part_access(a, &(struct part){.line = address, .words = 0xffff, .power = 2});
        address += SG_LINE_BYTES;
    }
    copy_edge(a, access, address, size);
}

void sg_race_copy(struct sg_race *race, const struct sg_race_operation *operation, uint64_t address,
                  uint64_t size, bool is_write) {
    static struct sg_race_block none; /* never changes: a copy knows nothing of threads */
    struct sg_watched_access access = {.kind = is_write ? SG_WATCHED_WRITE : SG_WATCHED_READ,
                                       .space = SG_IN_GLOBAL};
    pthread_mutex_lock(&race->lock);
    sg_race_decide(race);
    struct sg_race_grid grid = {.race = race, .launch = sg_race_launch_new(race, operation)};
    struct actor a = {.grid = &grid,
                      .block = &none,
                      .warp = &none.warps[0],
                      .access = &access,
                      .writes = is_write,
                      .seen = {.launch = grid.launch,
                               .warp = SG_SEEN_COPY,
                               .moment = race->moment,
                               .what = what_of(&access)}};
    if (grid.launch)
        copy_access(&a, &access, address, size);
    pthread_mutex_unlock(&race->lock);
}
