#include "softgpu/check/copies.h"

#include "softgpu/check/areas.h"
#include "softgpu/check/check.h"
#include "softgpu/check/memory_host.h"
#include "softgpu/check/nearest.h"
#include "softgpu/copy/copy.h"
#include "softgpu/stream/leaving.h"

#include <stdio.h>

void (*sg_copies_race)(CUdeviceptr address, size_t size, bool write);
static bool init;

/* Whether the running work was queued before a stream-ordered free of this memory. */
static bool came_before(CUdeviceptr address) {
    uint64_t low, length;
    return sg_op_running ? sg_leaving_find(address, sg_op_running->serial, &low, &length)
                         : sg_leaving_overlaps(address, 1);
}

/* A call that names freed memory is refused. But an operation of a graph, or one that another
 * context has queued, may run after the free; it then accesses what is kept for the checkers. */
static void look_for_freed(CUdeviceptr address, bool write) {
    char details[1024];
    sg_areas_lock();
    const struct sg_area *freed = sg_area_find(address) ? NULL : sg_area_freed(address);
    bool used = freed && freed->kept;
    sg_areas_unlock();
    if (!used || !(sg_config()->checks & SG_CHECK_MEMORY))
        return;
    sg_lock();
    bool early = came_before(address);
    sg_freed_text(address, details, sizeof details);
    sg_unlock();
    if (early)
        return;
    sg_hazard_report(&(struct sg_hazard){.check = "memory",
                                         .kind = "use-after-free",
                                         .level = SG_HAZARD_ERROR,
                                         .what = write ? "a copy or set writes freed memory"
                                                       : "a copy reads freed memory",
                                         .space = "global",
                                         .has_address = true,
                                         .write = write,
                                         .address = address,
                                         .details = details});
}

static void stored(CUdeviceptr to, size_t size) {
    look_for_freed(to, true);
    sg_areas_touch(to, size, true);
    if (sg_copies_race)
        sg_copies_race(to, size, true);
}

static void report(CUdeviceptr from, size_t size, size_t missing) {
    char what[160], details[1024];
    snprintf(what, sizeof what,
             "a copy of %zu bytes to the host reads %zu that nothing has written", size, missing);
    sg_lock();
    sg_nearest_text(from, details, sizeof details);
    sg_unlock();
    sg_hazard_report(&(struct sg_hazard){.check = "init",
                                         .kind = "uninitialized",
                                         .level = SG_HAZARD_WARNING,
                                         .what = what,
                                         .space = "global",
                                         .has_address = true,
                                         .address = from,
                                         .details = details});
}

/* After the move; `stored` has marked all of `to` as written. */
static void moved(CUdeviceptr to, CUdeviceptr from, size_t size) {
    size_t missing = 0, first = 0;
    if (from)
        look_for_freed(from, false);
    if (sg_copies_race)
        sg_copies_race(from, size, false);
    sg_areas_lock();
    struct sg_area *source = sg_area_find(from), *target = to ? sg_area_find(to) : NULL;
    size_t offset = source ? (size_t)(from - source->start) : 0;
    if (source && size <= source->size - offset) {
        source->used = true;
        size_t at = target ? (size_t)(to - target->start) : 0;
        if (target && target != source && size <= target->size - at)
            sg_area_copy(target, at, source, offset, size);
        else if (!target && to)
            missing = sg_area_unwritten(source, offset, size, &first);
    }
    sg_areas_unlock();
    if (missing && init)
        report(from + (first - offset), size, missing);
}

void sg_copies_begin(bool with_init) {
    static const struct sg_copy_watch watch = {.stored = stored, .moved = moved};
    init = init || with_init;
    sg_copy_watch = &watch;
}
