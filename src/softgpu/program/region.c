#include "softgpu/program/region.h"

#include <stdlib.h>

bool sg_region_begin(const struct sg_program *program, const struct sg_program_function *function,
                     struct sg_region *region) {
    *region = (struct sg_region){.program = program, .function = function};
    region->seen = calloc(2 * ((size_t)function->blocks + 1), sizeof *region->seen);
    region->blocks = region->seen ? region->seen + function->blocks + 1 : NULL;
    return region->seen != NULL;
}

static void add_successors(struct sg_region *region, uint32_t block, uint32_t join) {
    const struct sg_program *program = region->program;
    const struct sg_program_block *one = &program->blocks[block];
    for (uint32_t i = 0; i < one->successors; i++) {
        uint32_t to = program->successors[one->first_successor + i];
        uint32_t *seen = &region->seen[to - region->function->first_block];
        if (to == join || *seen == region->walk)
            continue;
        *seen = region->walk;
        region->blocks[region->count++] = to;
    }
}

bool sg_region_find(struct sg_region *region, uint32_t block, uint32_t most) {
    uint32_t join = region->program->blocks[block].post_dominator;
    region->walk++;
    region->count = 0;
    add_successors(region, block, join);
    for (uint32_t i = 0; i < region->count; i++) {
        if (region->count > most)
            return false;
        add_successors(region, region->blocks[i], join);
    }
    return region->count <= most;
}

void sg_region_end(struct sg_region *region) {
    free(region->seen);
    *region = (struct sg_region){0};
}
