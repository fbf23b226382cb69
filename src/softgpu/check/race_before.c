/* Whether something orders two accesses, and whether they race if nothing does. */
#include "softgpu/check/race_actor.h"

bool sg_race_is_launch_before(const struct sg_race_actor *a, uint32_t launch) {
    struct sg_race_grid *grid = a->grid;
    if (sg_race_is_early(a) && sg_race_launch_overlaps(grid->race, launch, grid->launch))
        return false;
    if (launch == grid->ordered)
        return true;
    if (launch == grid->unordered)
        return false;
    bool before = sg_race_launch_before(grid->race, launch, grid->launch);
    *(before ? &grid->ordered : &grid->unordered) = launch;
    return before;
}

static bool is_known(const struct sg_race_actor *a, const struct sg_seen *old, unsigned old_lane,
                     unsigned lane) {
    if (old->launch != a->seen.launch || !a->block->knows)
        return false;
    uint64_t key = (uint64_t)old->warp << 5 | old_lane;
    return sg_clock_of(a->warp->knows, a->grid->levels, key) >= old->moment ||
           (a->warp->lanes &&
            sg_clock_of(a->warp->lanes->knows[lane], a->grid->levels, key) >= old->moment);
}

bool sg_race_is_before(const struct sg_race_actor *a, const struct sg_seen *old, unsigned old_lane,
                       unsigned lane) {
    bool shared = SG_SEEN_KIND(old->what) == SG_SEEN_SHARED_READ;
    bool same = old->launch == a->seen.launch && old->warp == a->seen.warp && old_lane == lane &&
                (!shared || SG_SEEN_KIND(a->seen.what) == SG_SEEN_SHARED_READ);
    return same || sg_race_is_before_all(a, old) || is_known(a, old, old_lane, lane);
}

/* Volatile accesses of two lanes of a warp: what joins lanes is no order. */
static bool are_lanes(const struct sg_race_actor *a, const struct sg_seen *old) {
    return a->grid->race->options.lanes && old->launch == a->seen.launch &&
           old->warp == a->seen.warp && SG_SEEN_KIND(old->what) != SG_WATCHED_ATOMIC &&
           SG_SEEN_KIND(a->seen.what) != SG_WATCHED_ATOMIC &&
           SG_SEEN_SCOPE(old->what) == SG_WATCHED_SYSTEM &&
           SG_SEEN_SCOPE(a->seen.what) == SG_WATCHED_SYSTEM;
}

bool sg_race_conflicts(const struct sg_race_actor *a, const struct sg_seen *old) {
    uint32_t what = a->seen.what;
    if (!sg_race_writes(old->what) && !a->writes)
        return false;
    if (!SG_SEEN_STRONG(old->what) || !SG_SEEN_STRONG(what))
        return true;
    if (are_lanes(a, old))
        return true;
    unsigned x = SG_SEEN_SCOPE(old->what), y = SG_SEEN_SCOPE(what), scope = x < y ? x : y;
    if (old->launch != a->seen.launch)
        return scope < SG_WATCHED_GPU;
    return !sg_race_in_scope(a->grid, old->warp >> 5, a->seen.warp >> 5, scope);
}
