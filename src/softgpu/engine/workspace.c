/*
 * What the driver provides to kernels besides parameters, as the headers of cooperative groups
 * expect: a workspace for grid.sync(), whose address is in %envreg1 (high) and %envreg2 (low) in a
 * cooperative launch, and 0 in others, as all other environment registers are (of which an H200 has
 * a value in %envreg0 alone); and a reserved part of shared memory, through which
 * multi-warp tiles synchronise. The specials have the values that an H200 recorded: 288 bytes from
 * address 0, below the kernel's own shared memory.
 */
#include "softgpu/engine/inside.h"

/* Hardware from compute capability 8.0 reserves the first KiB of each block's shared memory; here
 * only kernels that read its offset have it, and those that use shared memory and name none, with
 * dynamic memory or without: Halide's count its addresses from 0. For others an access to it is a
 * mistake. */
#define RESERVED  SG_SHARED_BEGIN
#define TILES_END 288u

static bool is_reserved(unsigned special) {
    return special >= SG_SPECIAL_RESERVED_SMEM_OFFSET_BEGIN &&
           special <= SG_SPECIAL_RESERVED_SMEM_OFFSET_1;
}

static bool asks_for_reserved(const struct sg_code *code) {
    for (uint32_t i = 0; i < code->special_count; i++)
        if (is_reserved(code->specials[i].special))
            return true;
    return false;
}

static bool names_shared(const struct sg_program *program) {
    for (size_t i = 0; i < program->variable_count; i++)
        if (program->variables[i].place == SG_PLACE_SHARED ||
            program->variables[i].place == SG_PLACE_DYNAMIC_SHARED)
            return true;
    return false;
}

static bool is_shared(unsigned space) {
    return space == SG_IN_SHARED || space == SG_IN_SHARED_CLUSTER;
}

static bool uses_shared(const struct sg_program *program) {
    for (size_t i = 0; i < program->instruction_count; i++)
        if (is_shared(program->instructions[i].space) || is_shared(program->instructions[i].space2))
            return true;
    return false;
}

uint64_t sg_reserved_shared(const struct sg_code *code, uint64_t dynamic) {
    bool by_number = !names_shared(code->program) && (dynamic || uses_shared(code->program));
    return by_number || asks_for_reserved(code) ? RESERVED : 0;
}

uint64_t sg_workspace_special(const struct sg_grid *grid, unsigned special, uint32_t number) {
    switch (special) {
    case SG_SPECIAL_RESERVED_SMEM_OFFSET_BEGIN:
    case SG_SPECIAL_RESERVED_SMEM_OFFSET_0:
    case SG_SPECIAL_RESERVED_SMEM_OFFSET_1:
        return 0;
    case SG_SPECIAL_RESERVED_SMEM_OFFSET_END:
        return TILES_END;
    case SG_SPECIAL_RESERVED_SMEM_OFFSET_CAP:
        return RESERVED;
    case SG_SPECIAL_AGGR_SMEM_SIZE:
        return grid->shared_exact + RESERVED;
    case SG_SPECIAL_ENVREG:
        if (!grid->launch.cooperative)
            return 0;
        return number == 1   ? SG_WORKSPACE_WINDOW >> 32
               : number == 2 ? (uint32_t)SG_WORKSPACE_WINDOW
                             : 0;
    default:
        return 0;
    }
}

unsigned char *sg_workspace_reach(struct sg_grid *grid, uint64_t address, uint64_t size) {
    uint64_t offset = address - SG_WORKSPACE_WINDOW, room = sizeof grid->workspace;
    bool inside = grid->launch.cooperative && offset < room && size <= room - offset;
    return inside ? (unsigned char *)grid->workspace + offset : NULL;
}
