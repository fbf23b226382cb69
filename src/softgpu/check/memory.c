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

#include <inttypes.h>
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
    uint64_t shared;   /* bytes of a block's arrays */
    uint64_t deepest;  /* where frames of called functions have ended so far, at most */
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
                               .cluster = watched->launch->clustered,
                               .size = access->size,
                               .details = details};
    sg_hazard_place(watched->launch, access->instruction, access->warp->place,
                    access->warp->first + lane, &hazard.place);
    sg_hazard_report(&hazard);
    watched->reported = access->instruction + 1;
}

/* ---- global memory --------------------------------------------------------------------------- */

enum found { INSIDE, FREED, OUTSIDE };

/* All of it in one area, or in several without a gap: mappings lie side by side, allocations never
 * do. With the areas' mutex. */
static bool is_inside(uint64_t address, uint64_t size) {
    for (;;) {
        struct sg_area *area = sg_area_find(address);
        if (!area)
            return false;
        uint64_t room = area->start + area->size - address;
        area->used = true;
        if (size <= room)
            return true;
        address += room;
        size -= room;
    }
}

static enum found find(uint64_t address, uint32_t size, bool *shares) {
    sg_areas_lock();
    const struct sg_area *area = sg_area_find(address);
    bool inside = is_inside(address, size);
    struct sg_area *past = area ? NULL : sg_area_freed(address);
    if (past) /* perhaps work that was queued before the free */
        past->used = true;
    bool freed = past != NULL;
    *shares = area || sg_area_shares_page(address);
    sg_areas_unlock();
    return inside ? INSIDE : freed ? FREED : OUTSIDE;
}

/* Memory that has no area, because that could not be allocated. */
static bool is_known(const struct watched *watched, uint64_t address, uint32_t size) {
    const struct sg_check_launch *launch = watched->launch;
    uint64_t low, length;
    if (sg_areas_know_heap() && launch->in_heap(launch->user, address))
        return false;
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
    else if (!sg_block_text(address, details, sizeof details) &&
             !sg_freed_behind_text(address, details, sizeof details))
        sg_nearest_text(address, details, sizeof details);
    sg_unlock();
    report(watched, access, lane, found == FREED ? "use-after-free" : "out-of-bounds",
           found == FREED ? "use of freed memory" : "outside of all allocations", details);
    return shares && has_page(watched->launch, access, address) &&
           has_page(watched->launch, access, address + access->size - 1);
}

/* ---- shared and local memory ----------------------------------------------------------------- */

static void report_array(struct watched *watched, const struct sg_watched_access *access,
                         unsigned lane, uint32_t meant) {
    const struct sg_program_variable *variable = &watched->launch->program->variables[meant];
    uint64_t size = sg_span_size(watched->launch->program, meant, watched->shared);
    uint64_t offset = variable->offset;
    if (variable->place == SG_PLACE_FRAME)
        offset += access->warp->frame->start;
    char details[512];
    snprintf(details, sizeof details, "  it means %s, of %" PRIu64 " bytes at offset %" PRIu64 "\n",
             variable->name, size, offset);
    report(watched, access, lane, "out-of-bounds", "outside of its array", details);
}

static bool refuse_shared(struct watched *watched, const struct sg_watched_access *access,
                          unsigned lane) {
    const struct sg_program *program = watched->launch->program;
    /* In a cluster the block's rank stands above. */
    uint64_t offset = access->address[lane] & 0xffffff;
    if (offset >= watched->shared || access->size > watched->shared - offset)
        return false; /* the engine finds it */
    uint32_t meant = watched->spans[access->instruction];
    uint32_t hit = sg_span_at(program, watched->shared, offset, access->size);
    if (meant == SG_SPAN_UNKNOWN && hit == SG_SPAN_UNKNOWN) {
        report(watched, access, lane, "out-of-bounds", "outside of its array",
               "  between the arrays of the kernel\n");
        return true;
    }
    if (meant == SG_SPAN_UNKNOWN || meant == hit ||
        program->variables[meant].place != SG_PLACE_SHARED)
        return false;
    report_array(watched, access, lane, meant);
    return true;
}

/* Whether no running function has a variable there: after the frame of the current function, and
 * before what alloca has returned. */
static bool is_nobodys(const struct watched *watched, const struct sg_watched_warp *warp,
                       unsigned lane, uint64_t offset, uint64_t size) {
    const struct sg_program *program = watched->launch->program;
    uint64_t end = warp->frame->start + program->functions[warp->frame->function].frame;
    uint64_t room = warp->allocated ? warp->allocated[lane] : warp->local_bytes;
    return offset >= end && offset < room && size <= warp->local_bytes - offset;
}

static bool refuse_local(struct watched *watched, const struct sg_watched_access *access,
                         unsigned lane) {
    const struct sg_program *program = watched->launch->program;
    const struct sg_watched_warp *warp = access->warp;
    uint64_t offset = access->address[lane];
    uint32_t meant = watched->spans[access->instruction];
    if (offset >= warp->local_bytes || access->size > warp->local_bytes - offset)
        return false; /* the engine finds it */
    if (meant != SG_SPAN_UNKNOWN && program->variables[meant].place == SG_PLACE_FRAME) {
        uint64_t start = warp->frame->start + program->variables[meant].offset;
        if (offset >= start && offset + access->size <= start + program->variables[meant].size)
            return false;
        report_array(watched, access, lane, meant);
        return true;
    }
    if (!is_nobodys(watched, warp, lane, offset, access->size))
        return false;
    if (offset < watched->deepest)
        report(watched, access, lane, "use-after-return",
               "a variable of a function that has returned", NULL);
    else
        report(watched, access, lane, "out-of-bounds", "behind the variables of all functions",
               NULL);
    return true;
}

static void enters(void *user, const struct sg_watched_warp *warp, uint32_t lanes) {
    struct watched *watched = user;
    uint64_t end =
        warp->frame->start + watched->launch->program->functions[warp->frame->function].frame;
    (void)lanes;
    watched->deepest = end > watched->deepest ? end : watched->deepest;
}

/* The usual case, all at once: in one allocation, or in the array that is meant. */
static bool all_inside(struct watched *watched, const struct sg_watched_access *access) {
    struct sg_lanes_span span = sg_lanes_span(access);
    struct seen *seen = &watched->seen[access->instruction];
    if (span.low >= seen->low && span.end <= seen->end && seen->state == sg_areas_state())
        return true;
    if (access->space == SG_IN_SHARED || access->space == SG_IN_LOCAL) {
        const struct sg_program *program = watched->launch->program;
        uint32_t meant = watched->spans[access->instruction];
        bool in_shared = access->space == SG_IN_SHARED;
        if (meant == SG_SPAN_UNKNOWN ||
            (program->variables[meant].place == SG_PLACE_FRAME) == in_shared)
            return false;
        uint64_t start =
            program->variables[meant].offset + (in_shared ? 0 : access->warp->frame->start);
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

typedef bool refuse_lane(struct watched *watched, const struct sg_watched_access *access,
                         unsigned lane);

static refuse_lane *how(const struct sg_watched_access *access) {
    switch (access->space) {
    case SG_IN_NONE:
    case SG_IN_GLOBAL:
        return refuse_global;
    case SG_IN_SHARED:
        return refuse_shared;
    case SG_IN_LOCAL:
        return access->warp->frame ? refuse_local : NULL;
    default:
        return NULL;
    }
}

/* Hardware faults on it wherever it is, and so does the engine: leaving it out would hide that. */
static bool is_misaligned(const struct sg_watched_access *access, unsigned lane) {
    uint64_t size = access->size;
    return size <= 16 && (size & (size - 1)) == 0 && access->address[lane] & (size - 1);
}

static uint32_t refuses(void *user, const struct sg_watched_access *access) {
    struct watched *watched = user;
    uint32_t refused = 0;
    refuse_lane *refuse = how(access);
    if (!refuse || all_inside(watched, access) || access->array)
        return 0; /* coordinates cannot leave a CUDA array */
    for (uint32_t left = access->lanes; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        if (!is_misaligned(access, lane))
            refused |= (uint32_t)refuse(watched, access, lane) << lane;
    }
    return refused;
}

/* ---- launches -------------------------------------------------------------------------------- */

static void *begin(const struct sg_check_launch *launch) {
    struct watched *watched = calloc(1, sizeof *watched);
    if (!watched) {
        sg_areas_lose();
        return NULL;
    }
    watched->launch = launch;
    watched->shared = sg_span_shared(launch->program, launch->dynamic_shared);
    watched->spans = sg_spans_of(launch->program);
    watched->seen = calloc(launch->program->instruction_count + 1, sizeof *watched->seen);
    if (watched->spans && watched->seen)
        return watched;
    free(watched->spans);
    free(watched->seen);
    free(watched);
    sg_areas_lose();
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

static const struct sg_watch watch = {.refuses = refuses, .enters = enters};

const struct sg_checker sg_memory_checker = {.name = "memory",
                                             .check = SG_CHECK_MEMORY,
                                             .watch = &watch,
                                             .start = sg_memory_host_start,
                                             .begin = begin,
                                             .end = end,
                                             .finish = sg_memory_host_finish};
