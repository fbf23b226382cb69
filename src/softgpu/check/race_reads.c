/*
 * Plain reads of a block's own shared memory race with nothing until something is written there:
 * they are put off until then, or forgotten at the next barrier of the whole block.
 */
#include "softgpu/check/race_actor.h"

#include <stdlib.h>

static bool put_off(struct sg_race_block *block, const struct sg_race_actor *a) {
    if (!block->reads)
        block->reads = calloc(SG_RACE_READS, sizeof *block->reads);
    if (!block->reads || block->read_count == SG_RACE_READS)
        return false;
    struct sg_race_read *read = &block->reads[block->read_count++];
    read->moment = a->seen.moment;
    read->what = a->seen.what;
    read->lanes = a->access->lanes;
    read->warp = a->seen.warp & 31;
    read->size = a->access->size;
    for (unsigned l = 0; l < 32; l++)
        read->at[l] = (uint32_t)a->access->address[l];
    return true;
}

/* Something is written: what has been put off is remembered now. It races with nothing yet. */
static void catch_up(const struct sg_race_actor *now, struct sg_race_block *block) {
    for (unsigned i = 0; i < block->read_count; i++) {
        const struct sg_race_read *read = &block->reads[i];
        uint64_t address[32];
        for (unsigned l = 0; l < 32; l++)
            address[l] = read->at[l];
        struct sg_watched_access access = {
            .lanes = read->lanes, .size = read->size, .space = SG_IN_SHARED};
        struct sg_race_actor a = {.grid = now->grid,
                                  .block = block,
                                  .warp = &block->warps[read->warp],
                                  .access = &access,
                                  .own = true,
                                  .far = true,
                                  .seen = {.launch = now->seen.launch,
                                           .warp = block->index << 5 | read->warp,
                                           .moment = read->moment,
                                           .what = read->what}};
        sg_race_all_lanes(&a, address);
    }
    block->read_count = 0;
}

bool sg_race_is_put_off(const struct sg_race_actor *a, struct sg_race_block *block) {
    if (!a->writes && !a->strong && !block->wrote && put_off(block, a))
        return true;
    if (block->read_count)
        catch_up(a, block);
    block->wrote = true;
    return false;
}
