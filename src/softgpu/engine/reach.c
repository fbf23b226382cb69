/* The slow path to global memory: the page table, and the range that a step caches. */
#include "softgpu/address/pagetable.h"
#include "softgpu/engine/async.h"

#include <stdio.h>

/* The largest extent of a cached range, on each side. */
#define FARTHEST ((uint64_t)1 << 30)

#define ADDRESS_BITS 57 /* of Hopper */

/* Bulk copies may read shared memory and write global memory. */
static bool copies_out(const struct sg_instruction *in) {
    return in->op == SG_OP_cp && in->space == SG_IN_GLOBAL;
}

static bool only_writes(const struct sg_instruction *in) {
    return in->op == SG_OP_st || in->op == SG_OP_sust || in->op == SG_OP_stmatrix ||
           (in->op == SG_OP_wmma && in->operation == SG_DO_STORE_D);
}

static unsigned rights_of(const struct sg_step *step, const struct sg_program *program) {
    const struct sg_instruction *in = &program->instructions[step->instruction];
    if (only_writes(in))
        return SG_WRITE;
    if (copies_out(in))
        return step->choice == SG_DO_NONE ? SG_WRITE : SG_READ | SG_WRITE;
    bool reads = in->op == SG_OP_ld || in->op == SG_OP_ldu || in->op == SG_OP_cp ||
                 in->op == SG_OP_ldmatrix || in->op == SG_OP_tex || in->op == SG_OP_tld4 ||
                 in->op == SG_OP_suld || in->op == SG_OP_wmma;
    return reads ? SG_READ : SG_READ | SG_WRITE;
}

/* The range of host bytes around an address, as far as pages are mapped contiguously. */
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

unsigned char *sg_reach_some(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                             uint64_t address, uint64_t size, uint64_t *got) {
    struct sg_grid *grid = warp->grid;
    uint64_t low, length;
    unsigned char *own = sg_workspace_reach(grid, address, size);
    if (own) {
        *got = size;
        return own;
    }
    unsigned char *host =
        range_at(grid, address, rights_of(step, grid->code->program), &low, &length);
    if (host) {
        uint64_t distance = (uint64_t)(uintptr_t)host - low;
        if (!grid->launch.extent ||
            grid->launch.extent(grid->launch.user, address, &low, &length)) {
            uint64_t offset = address - low;
            if (offset < length) {
                *got = size <= length - offset ? size : length - offset;
                warp->caches[step->cache] = (struct sg_range_cache){low, length, distance, 0};
                return (unsigned char *)(uintptr_t)(address + distance);
            }
        }
    }
    return sg_warp_fault(warp, step, SG_FAULT_ADDRESS, lane, address, size);
}

unsigned char *sg_reach_array(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                              uint64_t address, uint64_t size) {
    const struct sg_grid *grid = warp->grid;
    uint64_t low, length;
    unsigned char *host =
        range_at(grid, address, rights_of(step, grid->code->program), &low, &length);
    if (!host || size > length - (address - low))
        return sg_warp_fault(warp, step, SG_FAULT_ADDRESS, lane, address, size);
    uint64_t distance = (uint64_t)(uintptr_t)host - low;
    warp->caches[step->cache] = (struct sg_range_cache){low, length, distance, 0};
    return (unsigned char *)(uintptr_t)(address + distance);
}

unsigned char *sg_reach_global(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                               uint64_t address, uint64_t size) {
    uint64_t got;
    unsigned char *host = sg_reach_some(warp, step, lane, address, size, &got);
    if (host && got < size)
        return sg_warp_fault(warp, step, SG_FAULT_ADDRESS, lane, address, size);
    return host;
}

unsigned char *sg_reach_parameters(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                                   uint64_t address, uint64_t size) {
    const struct sg_grid *grid = warp->grid;
    const uint64_t room = grid->launch.parameter_bytes, bank = 0x10000;
    if (size <= room && address <= room - size)
        return grid->parameters + address;
    bool reads = rights_of(step, grid->code->program) == SG_READ;
    if (!reads || address > bank || size > SG_PAST_PARAMETERS)
        return sg_warp_fault(warp, step, SG_FAULT_SPACE, lane, address, size);
    return grid->parameters + (address < room ? address : room);
}

static uint64_t room_of(const struct sg_warp *warp, unsigned space) {
    const uint64_t shared = sg_shared_room(warp->grid);
    return space == SG_IN_SHARED  ? shared ? shared : warp->grid->reserved_bytes
           : space == SG_IN_LOCAL ? warp->local_size
           : space == SG_IN_PARAM ? warp->grid->launch.parameter_bytes
                                  : 0;
}

static void note_calls(const struct sg_warp *warp, struct sg_grid_fault *fault) {
    const struct sg_code *code = warp->grid->code;
    for (const struct sg_path *path = warp->path; path->parent; path = path->parent) {
        if (fault->depth < SG_FAULT_CALLS)
            fault->calls[fault->depth] = code->steps[path->call].instruction;
        fault->depth++;
    }
}

void sg_fault_note(struct sg_warp *warp, const struct sg_step *step, enum sg_fault_kind kind,
                   unsigned lane, uint64_t address, uint64_t size, const char *report) {
    struct sg_grid *grid = warp->grid;
    const struct sg_program *program = grid->code->program;
    const struct sg_instruction *in = &program->instructions[step->instruction];
    struct sg_grid_fault *fault = &grid->fault;
    warp->stop = SG_STOP_FAULT;
    /* An H200 looks at the width of an address before it looks at its alignment. */
    if (kind == SG_FAULT_MISALIGNED && address >> ADDRESS_BITS)
        kind = SG_FAULT_ADDRESS;
    if (atomic_flag_test_and_set(&grid->faulted))
        return;
    fault->kind = kind;
    fault->address = address;
    fault->size = (uint32_t)size;
    fault->write = only_writes(in) || copies_out(in) || in->op == SG_OP_atom ||
                   in->op == SG_OP_red || in->op == SG_OP_sured;
    fault->space = in->space;
    fault->room = room_of(warp, in->space);
    fault->instruction = step->instruction;
    fault->line = in->line;
    unsigned thread = warp->number * SG_LANES + lane;
    for (int i = 0; i < 3; i++)
        fault->block[i] = warp->block->place[i];
    if (warp->doing)
        sg_pending_thread(warp, &thread, fault->block);
    else
        note_calls(warp, fault);
    const unsigned *shape = grid->launch.block;
    fault->thread[0] = thread % shape[0];
    fault->thread[1] = thread / shape[0] % shape[1];
    fault->thread[2] = thread / shape[0] / shape[1];
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
                                        [SG_FAULT_PC] = "no address of an instruction",
                                        [SG_FAULT_BARRIER] = "misuse of a barrier",
                                        [SG_FAULT_DEADLOCK] = "deadlock",
                                        [SG_FAULT_MBARRIER] = "misuse of an mbarrier",
                                        [SG_FAULT_MEMORY] = "no memory on the host",
                                        [SG_FAULT_TEXTURE] = "texture or surface not usable",
                                        [SG_FAULT_SURFACE] = "outside of a surface",
                                        [SG_FAULT_HEAP] = "free of what was freed before",
                                        [SG_FAULT_TIME] = "out of time"};
    return kind < SG_FAULT_COUNT ? names[kind] : "";
}
