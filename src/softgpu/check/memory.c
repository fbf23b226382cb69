/*
 * --check memory, in kernels: accesses to freed memory, to padding and red zones, and beyond arrays
 * in shared and local memory. An access that hardware would let pass is reported and skipped; any
 * other is left to the engine's own check, which then fails.
 */
#include "softgpu/address/pagetable.h"
#include "softgpu/check/areas.h"
#include "softgpu/check/checkers.h"
#include "softgpu/check/fault.h"
#include "softgpu/check/lanes.h"
#include "softgpu/check/memory_host.h"
#include "softgpu/check/nearest.h"
#include "softgpu/check/spans.h"

#include <stdio.h>
#include <stdlib.h>

/* The allocation in which an instruction was last found to be, valid until an allocation begins or
 * ends. */
struct seen {
    uint64_t low, end, state;
};

struct watched {
    const struct sg_check_launch *launch;
    uint32_t *spans;
    struct seen *seen; /* by instruction */
    uint64_t shared;   /* bytes of a block's shared arrays */
    uint32_t reported; /* the last instruction with a hazard, + 1 */
};

static void report(struct watched *watched, const struct sg_watched_access *access, unsigned lane,
                   const char *kind, const char *what, const char *details) {
    struct sg_hazard hazard = {.check = "memory",
                               .kind = kind,
                               .level = SG_HAZARD_ERROR,
                               .what = what,
                               .has_address = true,
                               .write = access->kind != SG_WATCHED_READ,
                               .space = sg_space_name(access->space),
                               .address = access->address[lane],
                               .size = access->size,
                               .details = details};
    sg_hazard_place(watched->launch, access->instruction, access->warp->place,
                    access->warp->first + lane, &hazard.place);
    sg_hazard_report(&hazard);
    watched->reported = access->instruction + 1;
}

/* ---- global memory --------------------------------------------------------------------------- */

enum found { INSIDE, FREED, OUTSIDE };

static enum found find(uint64_t address, uint32_t size, bool *shares) {
    sg_areas_lock();
    struct sg_area *area = sg_area_find(address);
    bool inside = area && size <= area->size - (size_t)(address - area->start);
    if (inside)
        area->used = true;
    struct sg_area *past = area ? NULL : sg_area_freed(address);
    if (past) /* perhaps work that was queued before the free */
        past->used = true;
    bool freed = past != NULL;
    *shares = area || sg_area_shares_page(address);
    sg_areas_unlock();
    return inside ? INSIDE : freed ? FREED : OUTSIDE;
}

/* Memory that has no area: the heap of kernels, and allocations whose area could not be
 * allocated. */
static bool is_known(const struct watched *watched, uint64_t address, uint32_t size) {
    const struct sg_check_launch *launch = watched->launch;
    uint64_t low, length;
    return address >= SG_SHARED_WINDOW ||
           (launch->extent(launch->user, address, &low, &length) && address - low < length &&
            size <= length - (address - low));
}

/* Whether the device may access the page; addresses outside of all windows have none. */
static bool has_page(const struct sg_check_launch *launch, const struct sg_watched_access *access,
                     uint64_t address) {
    bool mapped;
    unsigned wants = access->kind == SG_WATCHED_READ ? SG_READ : SG_WRITE;
    sg_lock();
    sg_rights rights = sg_table_get(address & ~(uint64_t)(SG_PAGE - 1), &mapped);
    sg_unlock();
    return mapped && (rights & sg_rights_of(launch->device, wants));
}

static bool refuse_global(struct watched *watched, const struct sg_watched_access *access,
                          unsigned lane) {
    uint64_t address = access->address[lane];
    char details[1024];
    bool shares;
    enum found found = find(address, access->size, &shares);
    if (found == INSIDE || is_known(watched, address, access->size))
        return false;
    sg_lock();
    if (found == FREED)
        sg_freed_text(address, details, sizeof details);
    else if (!sg_freed_behind_text(address, details, sizeof details))
        sg_nearest_text(address, details, sizeof details);
    sg_unlock();
    report(watched, access, lane, found == FREED ? "use-after-free" : "out-of-bounds",
           found == FREED ? "use of freed memory" : "outside of all allocations", details);
    return shares && has_page(watched->launch, access, address) &&
           has_page(watched->launch, access, address + access->size - 1);
}

/* ---- shared and local memory ----------------------------------------------------------------- */

static bool refuse_array(struct watched *watched, const struct sg_watched_access *access,
                         unsigned lane) {
    const struct sg_program *program = watched->launch->program;
    bool in_shared = access->space == SG_IN_SHARED;
    /* In a cluster the upper bits are the block's rank. */
    uint64_t offset = in_shared ? access->address[lane] & 0xffffff : access->address[lane];
    uint64_t room = in_shared ? watched->shared : program->functions[0].frame;
    if (offset >= room || access->size > room - offset)
        return false; /* in another function's frame, or the engine finds it */
    uint32_t meant = watched->spans[access->instruction];
    uint32_t hit = sg_span_at(program, in_shared, watched->shared, offset, access->size);
    if (meant != SG_SPAN_UNKNOWN
            ? meant == hit || (program->variables[meant].place == SG_PLACE_FRAME) == in_shared ||
                  program->variables[meant].place == SG_PLACE_DYNAMIC_SHARED
            : hit != SG_SPAN_UNKNOWN || !in_shared)
        return false;
    char details[512];
    if (meant != SG_SPAN_UNKNOWN)
        snprintf(details, sizeof details, "  it means %s, of %llu bytes at offset %llu\n",
                 program->variables[meant].name,
                 (unsigned long long)sg_span_size(program, meant, watched->shared),
                 (unsigned long long)program->variables[meant].offset);
    else
        snprintf(details, sizeof details, "  between the arrays of the kernel\n");
    report(watched, access, lane, "out-of-bounds", "outside of its array", details);
    return true;
}

/* The usual case, all lanes at once: in one allocation, or in the intended array. */
static bool all_inside(struct watched *watched, const struct sg_watched_access *access) {
    struct sg_lanes_span span = sg_lanes_span(access);
    struct seen *seen = &watched->seen[access->instruction];
    if (span.low >= seen->low && span.end <= seen->end && seen->state == sg_areas_state())
        return true;
    if (access->space != SG_IN_GLOBAL) {
        const struct sg_program *program = watched->launch->program;
        uint32_t meant = watched->spans[access->instruction];
        bool in_shared = access->space == SG_IN_SHARED;
        if (meant == SG_SPAN_UNKNOWN ||
            (program->variables[meant].place == SG_PLACE_FRAME) == in_shared)
            return false;
        uint64_t start = program->variables[meant].offset;
        return span.low >= start &&
               span.end <= start + sg_span_size(program, meant, watched->shared);
    }
    uint64_t state = sg_areas_state();
    sg_areas_lock();
    struct sg_area *area = sg_area_find(span.low);
    bool inside = area && span.end <= area->start + area->size && span.end >= span.low;
    if (inside) {
        area->used = true;
        *seen = (struct seen){area->start, area->start + area->size, state};
    }
    sg_areas_unlock();
    return inside;
}

static uint32_t refuses(void *user, const struct sg_watched_access *access) {
    struct watched *watched = user;
    uint32_t refused = 0;
    bool array = access->space == SG_IN_SHARED || access->space == SG_IN_LOCAL;
    if ((!array && access->space != SG_IN_GLOBAL) || all_inside(watched, access))
        return 0;
    for (uint32_t left = access->lanes; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        bool refuse =
            array ? refuse_array(watched, access, lane) : refuse_global(watched, access, lane);
        refused |= (uint32_t)refuse << lane;
    }
    return refused;
}

/* ---- launches -------------------------------------------------------------------------------- */

static void *begin(const struct sg_check_launch *launch) {
    struct watched *watched = calloc(1, sizeof *watched);
    if (!watched)
        return NULL;
    watched->launch = launch;
    watched->shared = sg_span_shared(launch->program, launch->dynamic_shared);
    watched->spans = sg_spans_of(launch->program);
    watched->seen = calloc(launch->program->instruction_count + 1, sizeof *watched->seen);
    if (watched->spans && watched->seen)
        return watched;
    free(watched->spans);
    free(watched->seen);
    free(watched);
    return NULL;
}

static CUresult end(void *state, const struct sg_grid_fault *fault) {
    struct watched *watched = state;
    bool known =
        fault && fault->kind == SG_FAULT_ADDRESS && fault->instruction + 1 == watched->reported;
    if (fault && !known)
        sg_fault_hazard(watched->launch, fault);
    free(watched->spans);
    free(watched->seen);
    free(watched);
    return CUDA_SUCCESS;
}

static const struct sg_watch watch = {.refuses = refuses};

const struct sg_checker sg_memory_checker = {.name = "memory",
                                             .check = SG_CHECK_MEMORY,
                                             .watch = &watch,
                                             .start = sg_memory_host_start,
                                             .begin = begin,
                                             .end = end,
                                             .finish = sg_memory_host_finish};
