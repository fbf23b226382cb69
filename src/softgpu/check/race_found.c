/* Findings: the two sides of a race, and whether both have written the same. */
#include "softgpu/check/race_actor.h"

#include <string.h>

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

static const unsigned char *bytes_of(const struct sg_race_actor *a, uint64_t address,
                                     uint32_t size) {
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

void sg_race_report(struct sg_race_actor *a, const struct sg_seen *old, unsigned old_lane,
                    unsigned lane, uint64_t word, unsigned bytes) {
    struct sg_race_grid *grid = a->grid;
    struct sg_race *race = grid->race;
    struct sg_seen now = a->seen;
    struct sg_race_found is = {.address = word + (unsigned)__builtin_ctz(bytes),
                               .size = (uint32_t)__builtin_popcount(bytes),
                               .shared = a->access->space == SG_IN_SHARED};
    a->raced++;
    if (a->own)
        pthread_mutex_lock(&race->lock);
    is.cluster = is.shared && !a->own;
    if (is.cluster) /* as the kernel names it, with the block's rank (engine/watch.h) */
        is.address &= 0xfffffff;
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
