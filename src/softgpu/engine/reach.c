/* The slow way to global memory: the page table, and the range that a step keeps of it. */
#include "softgpu/address/pagetable.h"
#include "softgpu/engine/inside.h"

#include <stdio.h>

/* As far as one range goes that a step remembers. */
#define FARTHEST ((uint64_t)1 << 30)

static unsigned rights_of(const struct sg_step *step, const struct sg_program *program) {
    unsigned op = program->instructions[step->instruction].op;
    if (op == SG_OP_st)
        return SG_WRITE;
    return op == SG_OP_ld || op == SG_OP_ldu || op == SG_OP_cp ? SG_READ : SG_READ | SG_WRITE;
}

/* The range of host bytes around an address, from its page on where that is mapped likewise. */
static unsigned char *range_at(const struct sg_grid *grid, uint64_t address, unsigned rights,
                               uint64_t *low, uint64_t *length) {
    uint64_t page = address & ~(uint64_t)(SG_PAGE - 1);
    size_t span;
    unsigned char *host =
        page ? sg_translate(grid->launch.device, page, FARTHEST, rights, &span) : NULL;
    *low = page;
    if (!host) {
        host = sg_translate(grid->launch.device, address, FARTHEST, rights, &span);
        *low = address;
    }
    *length = host ? span : 0;
    return host;
}

unsigned char *sg_reach_global(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                               uint64_t address, uint64_t size) {
    struct sg_grid *grid = warp->grid;
    uint64_t low, length;
    unsigned char *host =
        range_at(grid, address, rights_of(step, grid->code->program), &low, &length);
    if (host) {
        uint64_t distance = (uint64_t)(uintptr_t)host - low;
        if (!grid->launch.extent ||
            grid->launch.extent(grid->launch.user, address, &low, &length)) {
            uint64_t offset = address - low;
            if (offset < length && size <= length - offset) {
                warp->caches[step->cache] = (struct sg_range_cache){low, length, distance, 0};
                return (unsigned char *)(uintptr_t)(address + distance);
            }
        }
    }
    return sg_warp_fault(warp, step, SG_FAULT_ADDRESS, lane, address, size);
}

void sg_fault_note(struct sg_warp *warp, const struct sg_step *step, enum sg_fault_kind kind,
                   unsigned lane, uint64_t address, uint64_t size, const char *report) {
    struct sg_grid *grid = warp->grid;
    const struct sg_program *program = grid->code->program;
    const struct sg_instruction *in = &program->instructions[step->instruction];
    struct sg_grid_fault *fault = &grid->fault;
    warp->stop = SG_STOP_FAULT;
    if (atomic_flag_test_and_set(&grid->faulted))
        return;
    fault->kind = kind;
    fault->address = address;
    fault->size = (uint32_t)size;
    fault->write = in->op == SG_OP_st || in->op == SG_OP_atom || in->op == SG_OP_red;
    fault->space = in->space;
    fault->instruction = step->instruction;
    fault->line = in->line;
    fault->location = in->location;
    unsigned thread = warp->number * SG_LANES + lane;
    const unsigned *shape = grid->launch.block;
    fault->thread[0] = thread % shape[0];
    fault->thread[1] = thread / shape[0] % shape[1];
    fault->thread[2] = thread / shape[0] / shape[1];
    for (int i = 0; i < 3; i++)
        fault->block[i] = warp->block->place[i];
    if (report)
        snprintf(fault->report, sizeof fault->report, "%s", report);
    atomic_store(&grid->failed, true);
}

void *sg_warp_fault(struct sg_warp *warp, const struct sg_step *step, enum sg_fault_kind kind,
                    unsigned lane, uint64_t address, uint64_t size) {
    if (lane < SG_LANES)
        sg_fault_note(warp, step, kind, lane, address, size, NULL);
    return NULL;
}

const char *sg_fault_name(enum sg_fault_kind kind) {
    static const char *const names[] = {[SG_FAULT_ADDRESS] = "illegal address",
                                        [SG_FAULT_MISALIGNED] = "misaligned address",
                                        [SG_FAULT_SPACE] = "address outside of its space",
                                        [SG_FAULT_TRAP] = "trap",
                                        [SG_FAULT_BREAKPOINT] = "breakpoint",
                                        [SG_FAULT_ASSERT] = "assertion",
                                        [SG_FAULT_STACK] = "stack overflow",
                                        [SG_FAULT_INSTRUCTION] = "illegal instruction",
                                        [SG_FAULT_DEADLOCK] = "deadlock",
                                        [SG_FAULT_MEMORY] = "no memory on the host"};
    return kind < SG_FAULT_COUNT ? names[kind] : "";
}
