/*
 * An access of a warp, or of an asynchronous copy, is compared with those remembered of the same
 * memory. Consecutive lanes that access consecutive words are handled line by line (race_lines.c),
 * all others word by word (race_words.c).
 */
#include "softgpu/check/race_actor.h"

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
static void any_lanes(struct sg_race_actor *a, const uint64_t *address, uint32_t lanes) {
    uint32_t size = a->access->size, left = lanes;
    bool words = size >= SG_WORD_BYTES && size <= 16 && (size & (size - 1)) == 0;
    bool may_repeat = !a->writes || SG_SEEN_STRONG(a->seen.what);
    while (left && !a->grid->lost) {
        unsigned lane = (unsigned)__builtin_ctz(left), run = 1;
        if (words && lane < 31 && address[lane + 1] == address[lane] + size &&
            address[lane] % size == 0)
            run = run_of(address, left, lane, size);
        if (run >= LEAST_RUN) {
            sg_race_run_access(a, address[lane], lane, run);
        } else {
            run = 1;
            if (!may_repeat || !is_repeated(address, lanes, lane))
                sg_race_lane_access(a, address[lane], lane);
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
static void one_word(struct sg_race_actor *a, uint64_t address, unsigned first) {
    uint32_t what = a->seen.what;
    if (!a->writes && !a->strong)
        a->seen.what |= SG_SEEN_SHARED_READ << 23;
    else
        sg_race_lane_access(a, address, first + 15);
    sg_race_lane_access(a, address, first);
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
void sg_race_all_lanes(struct sg_race_actor *a, const uint64_t *address) {
    uint32_t size = a->access->size, lanes = a->access->lanes;
    bool may_repeat = !a->writes || SG_SEEN_STRONG(a->seen.what);
    bool low = (lanes & 0xffff) == 0xffff && is_even_run(address, size);
    bool high = lanes >> 16 == 0xffff && is_even_run(address + 16, size);
    if (low && high && address[16] == address[0] + 16 * (uint64_t)size) {
        sg_race_run_access(a, address[0], 0, 32);
        return;
    }
    if (!low && !high && size == SG_WORD_BYTES && are_apart(address, lanes))
        lanes = sg_race_scattered(a, address, lanes);
    for (unsigned first = 0; first < 32; first += 16) {
        uint32_t half = lanes & UINT32_C(0xffff) << first;
        if (first ? high : low) {
            sg_race_run_access(a, address[first], first, 16);
        } else if (may_repeat && half >> first == 0xffff && is_one(address + first)) {
            one_word(a, address[first], first);
        } else if (half) {
            any_lanes(a, address, half);
        }
    }
}

uint32_t sg_race_what_of(const struct sg_watched_access *access) {
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
    struct sg_race_actor a = {.grid = grid,
                              .block = block,
                              .warp = &block->warps[w],
                              .access = access,
                              .own = sg_race_is_own(grid, access),
                              .writes = access->kind != SG_WATCHED_READ,
                              .seen = {.launch = grid->launch,
                                       .warp = block->index << 5 | w,
                                       .moment = block->warps[w].since,
                                       .what = sg_race_what_of(access)}};
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
    if (a.own && sg_race_is_put_off(&a, block))
        return;
    if (!a.own)
        pthread_mutex_lock(&grid->race->lock);
    sg_race_all_lanes(&a, address);
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
    if (grid->lost)
        return;
    if (!access->repeats) {
        check(grid, access);
        return;
    }
    /* Of lanes that write the same value to the same place, one is enough. */
    struct sg_watched_access distinct = *access;
    distinct.lanes &= ~access->repeats;
    check(grid, &distinct);
}

/*
 * An asynchronous copy accesses at any time from when it is issued until it is waited for. So it is
 * checked twice, when it is issued and when it is performed: earlier accesses must happen before
 * its issue, and later ones after its completion.
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
