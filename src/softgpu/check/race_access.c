/*
 * Compares accesses with those remembered of the same memory. Consecutive lanes that access
 * consecutive words are handled line by line, all others word by word.
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
    struct sg_seen seen; /* for lane 0, without bytes */
    bool own;            /* the block's own shared memory */
    bool writes, strong;
    bool far;       /* its scope includes all threads that can access this memory */
    unsigned raced; /* races so far */
};

static inline bool writes(uint32_t what) {
    return SG_SEEN_KIND(what) == SG_WATCHED_WRITE || SG_SEEN_KIND(what) == SG_WATCHED_ATOMIC;
}

/* ---- memory ---------------------------------------------------------------------------------- */

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

static struct sg_shadow_page *make_page(struct actor *a, uint64_t address) {
    uint64_t number = address / SG_PAGE_BYTES;
    struct sg_shadow_page *page =
        a->own ? own_page(a, number) : sg_shadow_page_at(&a->grid->race->shadow, address);
    a->grid->lost = a->grid->lost || !page;
    return page;
}

static inline struct sg_shadow_page *page_at(struct actor *a, uint64_t address) {
    uint64_t number = address / SG_PAGE_BYTES;
    struct sg_shadow_page *page = NULL;
    if (!a->own)
        page = sg_shadow_page_near(&a->grid->race->shadow, address);
    else if (number < a->block->shared_pages)
        page = a->block->shared[number];
    return page ? page : make_page(a, address);
}

uint64_t sg_race_address(const struct sg_race_grid *grid, const struct sg_race_block *block,
                         const struct sg_watched_access *access, unsigned lane) {
    uint64_t address = access->address[lane];
    return access->space == SG_IN_SHARED && !sg_race_is_own(grid, access)
               ? sg_race_shared_address(grid, block, address)
               : address;
}

uint64_t sg_race_shared_address(const struct sg_race_grid *grid, const struct sg_race_block *block,
                                uint64_t address) {
    if (grid->cluster_size == 1)
        return address;
    return UINT64_C(1) << 63 | (uint64_t)(grid->launch & 0x7ff) << 52 |
           (sg_race_cluster_of(grid, block->index) & 0xffffff) << 28 | (address & 0xfffffff);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The launch before this one may not have ended. */
static inline bool is_early(const struct actor *a) {
    return a->grid->early && !a->block->depended;
}

static bool launch_before(const struct actor *a, uint32_t launch) {
    struct sg_race_grid *grid = a->grid;
    if (is_early(a) && sg_race_launch_overlaps(grid->race, launch, grid->launch))
        return false;
    if (launch == grid->ordered)
        return true;
    if (launch == grid->unordered)
        return false;
    bool before = sg_race_launch_before(grid->race, launch, grid->launch);
    *(before ? &grid->ordered : &grid->unordered) = launch;
    return before;
}

/* For any lanes, by what the whole warp knows. */
static inline bool is_before_all(const struct actor *a, const struct sg_seen *old) {
    if (old->launch != a->seen.launch)
        return launch_before(a, old->launch);
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
    bool shared = SG_SEEN_KIND(old->what) == SG_SEEN_SHARED_READ;
    bool same = old->launch == a->seen.launch && old->warp == a->seen.warp && old_lane == lane &&
                (!shared || SG_SEEN_KIND(a->seen.what) == SG_SEEN_SHARED_READ);
    return same || is_before_all(a, old) || is_known(a, old, old_lane, lane);
}

/* Whether they would race if nothing orders them. */
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

/* ---- findings -------------------------------------------------------------------------------- */

static struct sg_race_side side_of(const struct sg_race *race, const struct sg_seen *seen,
                                   unsigned lane) {
    bool copy = seen->warp == SG_SEEN_COPY,
         shared = SG_SEEN_KIND(seen->what) == SG_SEEN_SHARED_READ;
    return (struct sg_race_side){
        .name = race->launches[seen->launch].name,
        .copy = copy,
        .instruction = SG_SEEN_INSTRUCTION(seen->what),
        .block = copy ? 0 : seen->warp >> 5,
        .thread = copy ? 0 : (seen->warp & 31) * 32 + lane,
        .kind = (unsigned char)(shared ? SG_WATCHED_READ : SG_SEEN_KIND(seen->what))};
}

void sg_race_decide(struct sg_race_grid *grid) {
    const struct sg_race_options *options = &grid->race->options;
    for (unsigned i = 0; i < grid->doubt_count; i++) {
        struct sg_race_doubt *doubt = &grid->doubts[i];
        doubt->found.same_value = memcmp(doubt->at, doubt->bytes, doubt->found.size) == 0;
        options->found(options->user, &doubt->found);
    }
    grid->doubt_count = 0;
}

static const unsigned char *bytes_of(const struct actor *a, uint64_t address, uint32_t size) {
    const struct sg_race *race = a->grid->race;
    const unsigned char *shared = a->access->warp->shared;
    if (a->access->order & SG_WATCHED_ASYNC) /* they are not there yet */
        return NULL;
    if (a->access->space == SG_IN_SHARED)
        return a->own && shared && address + size <= a->access->warp->shared_bytes
                   ? shared + address
                   : NULL;
    return race->options.bytes ? race->options.bytes(race->options.user, address, size) : NULL;
}

static void found(struct actor *a, const struct sg_seen *old, unsigned old_lane, unsigned lane,
                  uint64_t word, unsigned bytes) {
    struct sg_race_grid *grid = a->grid;
    struct sg_race *race = grid->race;
    struct sg_seen now = a->seen;
    struct sg_race_found is = {.address = word + (unsigned)__builtin_ctz(bytes),
                               .size = (uint32_t)__builtin_popcount(bytes),
                               .shared = a->access->space == SG_IN_SHARED};
    a->raced++;
    if (a->own)
        pthread_mutex_lock(&race->lock);
    is.now = side_of(race, &now, lane);
    /* If several lanes read, names another one. */
    if (SG_SEEN_KIND(old->what) == SG_SEEN_SHARED_READ && old->warp == now.warp)
        old_lane += old_lane == lane;
    is.before = side_of(race, old, old_lane);
    is.one_access = old->launch == now.launch && old->warp == now.warp &&
                    old->moment == now.moment && is.now.instruction == is.before.instruction;
    /* Whether two plain writes write the same value is known after the second. */
    bool plain = SG_SEEN_KIND(old->what) == SG_WATCHED_WRITE &&
                 SG_SEEN_KIND(now.what) == SG_WATCHED_WRITE && !is.before.copy && !is.now.copy;
    const unsigned char *at = plain ? bytes_of(a, is.address, is.size) : NULL;
    if (at && grid->doubt_count < SG_RACE_DOUBTS) {
        struct sg_race_doubt *doubt = &grid->doubts[grid->doubt_count++];
        *doubt = (struct sg_race_doubt){.found = is, .at = at};
        memcpy(doubt->bytes, at, is.size);
    } else {
        race->options.found(race->options.user, &is);
    }
    if (a->own)
        pthread_mutex_unlock(&race->lock);
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* In the shadow of shared memory: an access of an earlier block, or one that happens before
 * everything that this block's threads do from now on. */
static inline bool is_stale(const struct actor *a, const struct sg_seen *old) {
    return a->own && (old->launch != a->seen.launch || old->warp >> 5 != a->seen.warp >> 5 ||
                      old->moment <= a->block->met);
}

/* Whether the remembered access is redundant, given the new one, which covers all its bytes. */
static bool is_superseded(const struct actor *a, const struct sg_seen *old, bool before,
                          bool raced) {
    if (before)
        return a->writes || !writes(old->what);
    return raced || (SG_SEEN_STRONG(old->what) && SG_SEEN_STRONG(a->seen.what) &&
                     SG_SEEN_KIND(old->what) == SG_SEEN_KIND(a->seen.what));
}

/* Where there is no room, slots lying so far apart: another access of the same warp, or any other,
 * but reads first. */
static unsigned victim(const struct actor *a, const struct sg_seen *slots, size_t apart) {
    uint32_t turn = a->grid->turn++;
    for (unsigned s = 0; s < SG_SEEN_SLOTS; s++)
        if (slots[s * apart].warp == a->seen.warp && !writes(slots[s * apart].what))
            return s;
    for (unsigned i = 0; i < SG_SEEN_SLOTS; i++)
        if (!writes(slots[(turn + i) % SG_SEEN_SLOTS * apart].what))
            return (turn + i) % SG_SEEN_SLOTS;
    return turn % SG_SEEN_SLOTS;
}

/*
 * The frequent cases of an access to a whole word, in a line with one access per word: there is
 * none, it is of an earlier block or of a launch that comes before, it is the same kind of strong
 * access, or a barrier is between them. False: look closely.
 */
static inline bool quick_access(const struct actor *a, struct sg_seen *old, uint32_t what) {
    bool supersedes = a->writes || !writes(old->what);
    bool block = old->warp >> 5 == a->seen.warp >> 5;
    if (!is_stale(a, old) && old->launch == a->seen.launch) {
        bool alike = a->strong && SG_SEEN_MANNER(old->what) == SG_SEEN_MANNER(what);
        if (!(alike && (block || a->far)) && !(block && supersedes && old->moment <= a->block->met))
            return false;
    } else if (old->launch && !a->own &&
               !(old->launch == a->grid->ordered && supersedes && !is_early(a))) {
        return false;
    }
    *old = a->seen;
    old->what = what;
    return true;
}

static void cell_access(struct actor *a, struct sg_cell *cell, uint64_t word, unsigned bytes,
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
    struct sg_seen *new = &cell->seen[place < SG_SEEN_SLOTS ? place : victim(a, cell->seen, 1)];
    *new = a->seen;
    new->what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, lane), bytes);
}

/* False: the word needs a cell. */
static bool single_access(struct actor *a, struct sg_seen *old, uint64_t word, unsigned bytes,
                          unsigned lane) {
    if (old->launch && !is_stale(a, old)) {
        unsigned old_bytes = SG_SEEN_BYTES(old->what), old_lane = SG_SEEN_LANE(old->what);
        if (old_bytes & ~bytes)
            return false;
        bool before = is_before(a, old, old_lane, lane);
        bool raced = !before && conflicts(a, old);
        if (!is_superseded(a, old, before, raced))
            return false;
        if (raced)
            found(a, old, old_lane, lane, word, bytes & old_bytes);
    }
    *old = a->seen;
    old->what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, lane), bytes);
    return true;
}

static uint64_t *counted(struct actor *a) {
    static _Thread_local uint64_t not_counted; /* the shadows of blocks are not limited */
    return a->own ? &not_counted : &a->grid->race->shadow.bytes;
}

static inline void word_access(struct actor *a, struct sg_shadow_page *page, uint64_t word,
                               unsigned bytes, unsigned lane) {
    unsigned line = (unsigned)(word % SG_PAGE_BYTES / SG_LINE_BYTES);
    size_t at = word % SG_PAGE_BYTES / SG_WORD_BYTES;
    bool there = page->split >> line & 1;
    if (there && bytes == 15 && !(page->full >> line & 1) &&
        quick_access(a, &page->singles[at],
                     SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, lane), 15)))
        return;
    there = there || sg_shadow_split(page, line, counted(a));
    if (there && !(page->full >> line & 1)) {
        if (single_access(a, &page->singles[at], word, bytes, lane))
            return;
        there = sg_shadow_fill(page, line, counted(a));
    }
    if (there)
        cell_access(a, &page->words[at], word, bytes, lane);
    else
        a->grid->lost = true;
}

static void lane_access(struct actor *a, uint64_t address, unsigned lane) {
    uint64_t end = address + a->access->size;
    struct sg_shadow_page *only;
    if (a->access->size == SG_WORD_BYTES && address % SG_WORD_BYTES == 0) {
        if ((only = page_at(a, address)))
            word_access(a, only, address, 15, lane);
        return;
    }
    for (uint64_t word = address & ~UINT64_C(3); word < end; word += SG_WORD_BYTES) {
        unsigned bytes = 15;
        if (word < address)
            bytes &= 15u << (address - word);
        if (word + SG_WORD_BYTES > end)
            bytes &= 15u >> (word + SG_WORD_BYTES - end);
        struct sg_shadow_page *page = page_at(a, word);
        if (!page)
            return;
        word_access(a, page, word, bytes, lane);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A part of a run: words of one line, accessed by consecutive lanes. */
struct part {
    uint64_t line; /* address */
    uint32_t words;
    unsigned lane, power;
};

static unsigned lane_of(unsigned lane, unsigned power, unsigned byte) {
    return (lane + (byte >> power)) & 31;
}

/* Whether both are accesses of the same lanes. */
static inline bool is_same_run(const struct actor *a, const struct sg_seen *old,
                               const struct part *part) {
    return old->warp == a->seen.warp && old->launch == a->seen.launch &&
           SG_SEEN_LANE(old->what) == part->lane && SG_SEEN_BYTES(old->what) == part->power;
}

static bool is_run_before(const struct actor *a, const struct sg_seen *old, uint32_t both,
                          const struct part *part) {
    unsigned lane = SG_SEEN_LANE(old->what), power = SG_SEEN_BYTES(old->what);
    if (is_same_run(a, old, part) || is_before_all(a, old))
        return true;
    if (old->launch != a->seen.launch || !a->block->knows)
        return false;
    unsigned least = power < part->power ? power : part->power;
    unsigned step = least < 2 ? 1u << least : SG_WORD_BYTES;
    for (unsigned byte = 0; byte < SG_LINE_BYTES; byte += step)
        if (both >> byte / SG_WORD_BYTES & 1 &&
            !is_before(a, old, lane_of(lane, power, byte), lane_of(part->lane, part->power, byte)))
            return false;
    return true;
}

static inline void put(const struct actor *a, struct sg_shadow_page *page, unsigned line,
                       unsigned slot, const struct part *part) {
    struct sg_seen *seen = &page->lines[slot][line];
    *seen = a->seen;
    seen->what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, part->lane), part->power);
    page->runs[slot][line] = part->words;
    page->used[slot] |= UINT64_C(1) << line;
}

/* A read of the block's own shared memory: only writes since the last barrier of all matter. False:
 * there is one. */
static bool own_read(struct actor *a, struct sg_shadow_page *page, unsigned line,
                     const struct part *part) {
    unsigned place = SG_SEEN_SLOTS;
    for (unsigned s = SG_SEEN_SLOTS; s-- > 0;) {
        const struct sg_seen *old = &page->lines[s][line];
        if (!(page->used[s] >> line & 1) || is_stale(a, old) ||
            (page->runs[s][line] == part->words && !writes(old->what) && is_same_run(a, old, part)))
            place = s;
        else if (writes(old->what))
            return false;
    }
    put(a, page, line, place < SG_SEEN_SLOTS ? place : a->grid->turn++ % SG_SEEN_SLOTS, part);
    return true;
}

/* Whether what a slot has of the line may be forgotten for this access; *raced: they may race. */
static inline bool gives_way(const struct actor *a, const struct sg_seen *old, uint32_t run,
                             const struct part *part, bool *raced) {
    uint32_t both = run & part->words;
    bool covered = !(run & ~part->words);
    if (is_stale(a, old))
        return true;
    if (!both)
        return false;
    if (!a->writes && !writes(old->what))
        return covered && (is_same_run(a, old, part) || is_before_all(a, old));
    bool before = is_run_before(a, old, both, part);
    *raced = *raced || (!before && conflicts(a, old));
    return covered && is_superseded(a, old, before, false);
}

/* True: it is done. False: something races, perhaps only in some words. */
static bool whole_access(struct actor *a, struct sg_shadow_page *page, const struct part *part) {
    unsigned line = (unsigned)(part->line % SG_PAGE_BYTES / SG_LINE_BYTES);
    unsigned place = SG_SEEN_SLOTS;
    bool raced = false;
    if (a->own && !a->writes && own_read(a, page, line, part))
        return true;
    for (unsigned s = SG_SEEN_SLOTS; s-- > 0;) {
        bool used = page->used[s] >> line & 1;
        if (used && !gives_way(a, &page->lines[s][line], page->runs[s][line], part, &raced))
            continue;
        if (raced)
            return false;
        page->used[s] &= ~(UINT64_C(1) << line);
        place = s;
    }
    if (raced)
        return false;
    put(a, page, line,
        place < SG_SEEN_SLOTS ? place : victim(a, &page->lines[0][line], SG_PAGE_LINES), part);
    return true;
}

static bool is_of(const struct actor *a, const struct sg_seen *seen) {
    return seen->launch == a->seen.launch && seen->warp == a->seen.warp &&
           seen->moment == a->seen.moment && writes(seen->what);
}

/* A line whose words all have only this write becomes whole again. */
static void join_line(struct sg_shadow_page *page, const struct actor *a, const struct part *part) {
    unsigned line = (unsigned)(part->line % SG_PAGE_BYTES / SG_LINE_BYTES);
    size_t first = (size_t)line * SG_LINE_WORDS;
    bool full = page->full >> line & 1;
    for (size_t w = first; w < first + SG_LINE_WORDS; w++)
        for (unsigned s = 0; s < (full ? SG_SEEN_SLOTS : 1); s++) {
            const struct sg_seen *seen = full ? &page->words[w].seen[s] : &page->singles[w];
            if (seen->launch && !is_of(a, seen))
                return;
        }
    for (unsigned s = 1; s < SG_SEEN_SLOTS; s++)
        page->used[s] &= ~(UINT64_C(1) << line);
    put(a, page, line, 0, part);
    page->split &= ~(UINT64_C(1) << line);
    page->full &= ~(UINT64_C(1) << line);
}

static void by_words(struct actor *a, struct sg_shadow_page *page, const struct part *part) {
    unsigned step = part->power < 2 ? 1u << part->power : SG_WORD_BYTES;
    unsigned ones = (1u << step) - 1;
    for (uint32_t left = part->words; left && !a->grid->lost; left &= left - 1) {
        unsigned byte = (unsigned)__builtin_ctz(left) * SG_WORD_BYTES;
        for (unsigned b = 0; b < SG_WORD_BYTES; b += step)
            word_access(a, page, part->line + byte, ones << b,
                        lane_of(part->lane, part->power, byte + b));
    }
}

#define AHEAD (8u * SG_LINE_BYTES)

/* Most kernels go through memory upwards: what is next is on its way before it is needed. */
static inline void fetch_ahead(const struct actor *a, uint64_t address) {
    if (address / SG_LINE_BYTES % 4) /* four lines' slots lie together */
        return;
    uint64_t next = address + AHEAD;
    unsigned line = (unsigned)(next % SG_PAGE_BYTES / SG_LINE_BYTES);
    const struct sg_shadow_page *page = sg_shadow_page_near(&a->grid->race->shadow, next);
    if (!page)
        return;
    __builtin_prefetch(&page->lines[0][line], 1);
    __builtin_prefetch(&page->lines[1][line], 1);
    if (line < 4) {
        __builtin_prefetch(page, 1);
        __builtin_prefetch(&page->runs[0][0], 1);
        __builtin_prefetch(&page->runs[0][16], 1);
        __builtin_prefetch(&page->runs[1][0], 1);
    }
}

static void part_access(struct actor *a, const struct part *part) {
    struct sg_shadow_page *page = page_at(a, part->line);
    if (!page)
        return;
    if (!a->own)
        fetch_ahead(a, part->line);
    unsigned line = (unsigned)(part->line % SG_PAGE_BYTES / SG_LINE_BYTES), raced = a->raced;
    if (!(page->split >> line & 1) && whole_access(a, page, part))
        return;
    by_words(a, page, part);
    if (a->writes && part->words == SG_LINE_WHOLE && a->raced == raced)
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
                            .words = (SG_LINE_WHOLE >> (SG_LINE_WORDS - (to - from))) << from,
                            .lane = (lane - (from * SG_WORD_BYTES >> power)) & 31,
                            .power = power};
        part_access(a, &part);
        lane += (unsigned)(last - address) >> power;
        address = last;
    }
}

/* ---- an access of a warp --------------------------------------------------------------------- */

/* The number of contiguous lanes from `lane` on. */
static unsigned run_of(const uint64_t *address, uint32_t lanes, unsigned lane, uint32_t size) {
    unsigned count = 1;
    while (lane + count < 32 && lanes >> (lane + count) & 1 &&
           address[lane + count] == address[lane] + (uint64_t)count * size)
        count++;
    return count;
}

/* Whether sixteen executing lanes are contiguous. */
static bool is_run(const uint64_t *address, uint32_t size) {
    uint64_t other = 0;
    if (address[15] - address[0] != 15 * (uint64_t)size)
        return false;
    for (unsigned l = 1; l < 15; l++)
        other |= address[l] - address[0] - (uint64_t)l * size;
    return other == 0;
}

static bool is_one(const uint64_t *address) {
    uint64_t other = 0;
    if (address[15] != address[0])
        return false;
    for (unsigned l = 1; l < 15; l++)
        other |= address[l] ^ address[0];
    return other == 0;
}

/* Whether a lane is inside a sequence of lanes with the same address: the first and the last are
 * enough. */
static bool is_repeated(const uint64_t *address, uint32_t lanes, unsigned lane) {
    return lane > 0 && lane < 31 && lanes >> (lane - 1) & 1 && lanes >> (lane + 1) & 1 &&
           address[lane - 1] == address[lane] && address[lane + 1] == address[lane];
}

#define LEAST_RUN 8u /* lanes */

/* The access of a whole word that is remembered, where its line has one of each; NULL: look
 * closely. */
static struct sg_seen *single_at(const struct actor *a, uint64_t address) {
    uint64_t number = address / SG_PAGE_BYTES;
    const struct sg_shadow_page *page = NULL;
    if (!a->own)
        page = sg_shadow_page_near(&a->grid->race->shadow, address);
    else if (number < a->block->shared_pages)
        page = a->block->shared[number];
    unsigned line = (unsigned)(address % SG_PAGE_BYTES / SG_LINE_BYTES);
    return page && (page->split & ~page->full) >> line & 1 && address % SG_WORD_BYTES == 0
               ? &page->singles[address % SG_PAGE_BYTES / SG_WORD_BYTES]
               : NULL;
}

/* Lanes that access words here and there: shadows are far apart, so all are on their way before the
 * first is used. Answers the lanes that are left. */
static uint32_t scattered(struct actor *a, const uint64_t *address, uint32_t lanes) {
    struct sg_seen *at[32];
    uint32_t quick = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        at[l] = single_at(a, address[l]);
        __builtin_prefetch(at[l], 1);
        quick |= (uint32_t)(at[l] != NULL) << l;
    }
    for (uint32_t left = quick; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        uint32_t what = SG_SEEN_WITH_BYTES(SG_SEEN_WITH_LANE(a->seen.what, l), 15);
        if (quick_access(a, at[l], what))
            lanes &= ~(UINT32_C(1) << l);
    }
    return lanes;
}

static void any_lanes(struct actor *a, const uint64_t *address, uint32_t lanes) {
    uint32_t size = a->access->size, left = lanes;
    bool words = size >= SG_WORD_BYTES && size <= 16 && (size & (size - 1)) == 0;
    bool may_repeat = !a->writes || SG_SEEN_STRONG(a->seen.what);
    while (left && !a->grid->lost) {
        unsigned lane = (unsigned)__builtin_ctz(left), run = 1;
        if (words && lane < 31 && address[lane + 1] == address[lane] + size &&
            address[lane] % size == 0)
            run = run_of(address, left, lane, size);
        if (run >= LEAST_RUN) {
            run_access(a, address[lane], lane, run);
        } else {
            run = 1;
            if (!may_repeat || !is_repeated(address, lanes, lane))
                lane_access(a, address[lane], lane);
        }
        left &= run >= 32 - lane ? 0 : UINT32_MAX << (lane + run);
    }
}

static bool is_even_run(const uint64_t *address, uint32_t size) {
    bool power = size > 0 && size <= 16 && (size & (size - 1)) == 0;
    uint32_t least = size > SG_WORD_BYTES ? size : SG_WORD_BYTES;
    return power && (address[0] & (least - 1)) == 0 && is_run(address, size);
}

/* Half a warp accesses the same word. */
static void one_word(struct actor *a, uint64_t address, unsigned first) {
    uint32_t what = a->seen.what;
    if (!a->writes && !a->strong)
        a->seen.what |= SG_SEEN_SHARED_READ << 23;
    else
        lane_access(a, address, first + 15);
    lane_access(a, address, first);
    a->seen.what = what;
}

/* Neighbours neither access the same nor one word after the other: a look at two of them. */
static bool are_apart(const uint64_t *address, uint32_t lanes) {
    unsigned first = (unsigned)__builtin_ctz(lanes);
    uint32_t others = lanes & (lanes - 1);
    if (!others)
        return false;
    unsigned next = (unsigned)__builtin_ctz(others);
    uint64_t step = address[next] - address[first];
    return step != 0 && step != (uint64_t)(next - first) * SG_WORD_BYTES;
}

/* Half a warp at a time: the patterns that are frequent, and any other. */
static void all_lanes(struct actor *a, const uint64_t *address) {
    uint32_t size = a->access->size, lanes = a->access->lanes;
    bool may_repeat = !a->writes || SG_SEEN_STRONG(a->seen.what);
    bool low = (lanes & 0xffff) == 0xffff && is_even_run(address, size);
    bool high = lanes >> 16 == 0xffff && is_even_run(address + 16, size);
    if (low && high && address[16] == address[0] + 16 * (uint64_t)size) {
        run_access(a, address[0], 0, 32);
        return;
    }
    if (!low && !high && size == SG_WORD_BYTES && are_apart(address, lanes))
        lanes = scattered(a, address, lanes);
    for (unsigned first = 0; first < 32; first += 16) {
        uint32_t half = lanes & UINT32_C(0xffff) << first;
        if (first ? high : low) {
            run_access(a, address[first], first, 16);
        } else if (may_repeat && half >> first == 0xffff && is_one(address + first)) {
            one_word(a, address[first], first);
        } else if (half) {
            any_lanes(a, address, half);
        }
    }
}

static uint32_t what_of(const struct sg_watched_access *access) {
    bool strong = access->order & SG_WATCHED_STRONG || access->kind == SG_WATCHED_ATOMIC;
    uint32_t instruction = access->instruction < SG_SEEN_MOST ? access->instruction : SG_SEEN_MOST;
    return instruction | (uint32_t)access->kind << 23 | (uint32_t)strong << 25 |
           ((uint32_t)access->scope & 3) << 26;
}

/* ---- reads that are put off ------------------------------------------------------------------ */

static bool put_off(struct sg_race_block *block, const struct actor *a) {
    if (!block->reads)
        block->reads = calloc(SG_RACE_READS, sizeof *block->reads);
    if (!block->reads || block->read_count == SG_RACE_READS)
        return false;
    struct sg_race_read *read = &block->reads[block->read_count++];
    read->moment = a->seen.moment;
    read->what = a->seen.what;
    read->lanes = a->access->lanes;
    read->warp = (uint16_t)(a->seen.warp & 31);
    read->size = (uint16_t)a->access->size;
    for (unsigned l = 0; l < 32; l++)
        read->at[l] = (uint32_t)a->access->address[l];
    return true;
}

/* Something is written: what has been put off is remembered now. It races with nothing yet. */
static void catch_up(const struct actor *now, struct sg_race_block *block) {
    for (unsigned i = 0; i < block->read_count; i++) {
        const struct sg_race_read *read = &block->reads[i];
        uint64_t address[32];
        for (unsigned l = 0; l < 32; l++)
            address[l] = read->at[l];
        struct sg_watched_access access = {
            .lanes = read->lanes, .size = read->size, .space = SG_IN_SHARED};
        struct actor a = {.grid = now->grid,
                          .block = block,
                          .warp = &block->warps[read->warp],
                          .access = &access,
                          .own = true,
                          .far = true,
                          .seen = {.launch = now->seen.launch,
                                   .warp = block->index << 5 | read->warp,
                                   .moment = read->moment,
                                   .what = read->what}};
        all_lanes(&a, address);
    }
    block->read_count = 0;
}

/* True: there is nothing more to do. */
static bool is_put_off(const struct actor *a, struct sg_race_block *block) {
    if (!a->writes && !a->strong && !block->wrote && put_off(block, a))
        return true;
    if (block->read_count)
        catch_up(a, block);
    block->wrote = true;
    return false;
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
                      .own = sg_race_is_own(grid, access),
                      .writes = access->kind != SG_WATCHED_READ,
                      .seen = {.launch = grid->launch,
                               .warp = block->index << 5 | w,
                               .moment = block->warps[w].since,
                               .what = what_of(access)}};
    a.strong = SG_SEEN_STRONG(a.seen.what);
    a.far = a.own || access->scope >= SG_WATCHED_GPU;
    uint64_t changed[32];
    const uint64_t *address = access->address;
    if (access->space == SG_IN_SHARED && !a.own) {
        for (unsigned l = 0; l < 32; l++)
            changed[l] = sg_race_address(grid, block, access, l);
        address = changed;
    }
    block->warps[w].touched = true;
    if (a.own && is_put_off(&a, block))
        return;
    if (!a.own)
        pthread_mutex_lock(&grid->race->lock);
    all_lanes(&a, address);
    if (!a.own)
        pthread_mutex_unlock(&grid->race->lock);
    if (SG_SEEN_STRONG(a.seen.what) && !grid->lost)
        sg_race_strong(grid, block, access);
}

void sg_race_access(void *user, const struct sg_watched_access *access) {
    struct sg_race_grid *grid = user;
    if (access->space != SG_IN_GLOBAL && access->space != SG_IN_SHARED)
        return;
    if (grid->doubt_count) {
        pthread_mutex_lock(&grid->race->lock);
        sg_race_decide(grid);
        pthread_mutex_unlock(&grid->race->lock);
    }
    if (!grid->lost)
        check(grid, access);
}

/*
 * An asynchronous copy accesses at any time from when it is issued until it is waited for. So it is
 * looked at twice, when it is issued and at its own moment: what came before has to come before the
 * one, what comes later behind the other.
 */
void sg_race_issues(void *user, const struct sg_watched_access *copy) {
    sg_race_access(user, copy);
}

void sg_race_issues_bulk(void *user, const struct sg_watched_copy *copy) {
    uint64_t address[32] = {0};
    struct sg_watched_access access = {.warp = copy->warp,
                                       .instruction = copy->instruction,
                                       .lanes = UINT32_C(1) << copy->lane,
                                       .address = address,
                                       .size = copy->size,
                                       .order = SG_WATCHED_ASYNC,
                                       .scope = SG_WATCHED_GPU};
    if (copy->size == 0)
        return;
    address[copy->lane] = copy->from;
    access.space = copy->from_global ? SG_IN_GLOBAL : SG_IN_SHARED;
    if (!copy->from_value)
        sg_race_access(user, &access);
    address[copy->lane] = copy->to;
    access.space = copy->to_global ? SG_IN_GLOBAL : SG_IN_SHARED;
    access.kind = copy->reduces ? SG_WATCHED_ATOMIC : SG_WATCHED_WRITE;
    access.order |= copy->reduces ? SG_WATCHED_STRONG : 0;
    sg_race_access(user, &access);
}

/* ---- copies ---------------------------------------------------------------------------------- */

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
        part_access(a, &(struct part){.line = address, .words = SG_LINE_WHOLE, .power = 2});
        address += SG_LINE_BYTES;
    }
    copy_edge(a, access, address, size);
}

void sg_race_copy(struct sg_race *race, const struct sg_race_operation *operation, uint64_t address,
                  uint64_t size, bool is_write) {
    static struct sg_race_block none; /* stays empty: a copy knows nothing of threads */
    struct sg_watched_access access = {.kind = is_write ? SG_WATCHED_WRITE : SG_WATCHED_READ,
                                       .space = SG_IN_GLOBAL};
    pthread_mutex_lock(&race->lock);
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
