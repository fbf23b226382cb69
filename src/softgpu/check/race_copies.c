/* Copies and memsets of streams are compared with what is remembered of the memory. */
#include "softgpu/check/race_actor.h"

static void copy_edge(struct sg_race_actor *a, struct sg_watched_access *access, uint64_t address,
                      uint64_t size) {
    access->size = (uint32_t)size;
    if (size)
        sg_race_lane_access(a, address, 0);
}

static void copy_access(struct sg_race_actor *a, struct sg_watched_access *access, uint64_t address,
                        uint64_t size) {
    uint64_t first = (SG_LINE_BYTES - address % SG_LINE_BYTES) % SG_LINE_BYTES;
    first = first < size ? first : size;
    copy_edge(a, access, address, first);
    address += first;
    size -= first;
    for (; size >= SG_LINE_BYTES && !a->grid->lost; size -= SG_LINE_BYTES) {
        sg_race_part_access(
            a, &(struct sg_race_part){.line = address, .words = SG_LINE_WHOLE, .power = 2});
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
    struct sg_race_actor a = {.grid = &grid,
                              .block = &none,
                              .warp = &none.warps[0],
                              .access = &access,
                              .writes = is_write,
                              .seen = {.launch = grid.launch,
                                       .warp = SG_SEEN_COPY,
                                       .moment = race->moment,
                                       .what = sg_race_what_of(&access)}};
    if (grid.launch)
        copy_access(&a, &access, address, size);
    pthread_mutex_unlock(&race->lock);
}
