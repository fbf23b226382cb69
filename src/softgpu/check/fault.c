/* Faults that the engine itself has found, as hazards: bounds are always checked. */
#include "softgpu/check/fault.h"

#include "softgpu/check/nearest.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[SG_FAULT_COUNT] = {
    [SG_FAULT_ADDRESS] = "out-of-bounds",  [SG_FAULT_MISALIGNED] = "misaligned",
    [SG_FAULT_SPACE] = "out-of-bounds",    [SG_FAULT_TRAP] = "trap",
    [SG_FAULT_BREAKPOINT] = "trap",        [SG_FAULT_ASSERT] = "assertion",
    [SG_FAULT_STACK] = "stack-overflow",   [SG_FAULT_INSTRUCTION] = "illegal-instruction",
    [SG_FAULT_PC] = "illegal-instruction", [SG_FAULT_BARRIER] = "barrier",
    [SG_FAULT_DEADLOCK] = "deadlock",      [SG_FAULT_MBARRIER] = "mbarrier",
    [SG_FAULT_MEMORY] = "host-memory",     [SG_FAULT_TEXTURE] = "texture",
    [SG_FAULT_SURFACE] = "surface",        [SG_FAULT_HEAP] = "invalid-free",
    [SG_FAULT_TIME] = "timeout",
};

const char *sg_space_name(unsigned space) {
    return space == SG_IN_SHARED || space == SG_IN_SHARED_CLUSTER ? "shared"
           : space == SG_IN_LOCAL || space == SG_IN_PARAM_FRAME   ? "local"
           : space == SG_IN_PARAM                                 ? "parameter"
                                                                  : "global";
}

void sg_fault_hazard(const struct sg_check_launch *launch, const struct sg_grid_fault *fault) {
    char details[2048 + SG_REPORT_ROOM];
    struct sg_hazard hazard = {.check = "memory",
                               .kind = kinds[fault->kind],
                               .level = SG_HAZARD_ERROR,
                               .what = sg_fault_name(fault->kind),
                               .write = fault->write,
                               .space = sg_space_name(fault->space),
                               .address = fault->address,
                               .cluster = launch->clustered,
                               .size = fault->size};
    hazard.has_address = fault->kind == SG_FAULT_ADDRESS || fault->kind == SG_FAULT_MISALIGNED ||
                         fault->kind == SG_FAULT_SPACE || fault->kind == SG_FAULT_HEAP;
    if (fault->kind == SG_FAULT_DEADLOCK || fault->kind == SG_FAULT_MBARRIER ||
        fault->kind == SG_FAULT_BARRIER)
        hazard.check = "sync";
    if (fault->kind == SG_FAULT_HEAP)
        hazard.size = 0;
    const unsigned *at = fault->thread, *shape = launch->block;
    sg_hazard_place(launch, fault->instruction, fault->block,
                    at[0] + shape[0] * (at[1] + shape[1] * at[2]), &hazard.place);
    bool global = fault->kind == SG_FAULT_ADDRESS || fault->kind == SG_FAULT_HEAP ||
                  (fault->kind == SG_FAULT_MISALIGNED && hazard.space[0] == 'g');
    sg_fault_calls(launch->program, fault, details, 2048);
    size_t used = strlen(details);
    if (fault->report[0]) {
        snprintf(details + used, sizeof details - used, "%s", fault->report);
    } else if (global) {
        sg_lock();
        sg_nearest_text(fault->address, details + used, sizeof details - used);
        sg_unlock();
    }
    hazard.details = details[0] ? details : NULL;
    sg_hazard_report(&hazard);
}
