#include "softgpu/launch/kernel_watch.h"

#include "softgpu/core/config.h"
#include "softgpu/core/state.h"
#include "softgpu/launch/kernel_report.h"

#include <inttypes.h>

static void say(const struct sg_grid *grid, const struct sg_program *program) {
    char text[SG_REPORT_ROOM];
    sg_grid_places(grid, text, sizeof text);
    sg_log(SG_LOG_WARNING,
           "kernel %s has only waited for 10 s, for what others write; SOFTGPU_KERNEL_LIMIT would "
           "end it; its lanes are here:",
           program->name);
    sg_kernel_say(SG_LOG_WARNING, text);
}

bool sg_kernel_watch(struct sg_kernel_watch *watch, struct sg_grid *grid,
                     const struct sg_program *program) {
    uint64_t now = sg_now(), progress = sg_grid_progress(grid);
    uint64_t limit = (uint64_t)sg_config()->kernel_limit * 1000000000U;
    if (!watch->began)
        watch->began = watch->moved = now;
    if (watch->progress != progress) {
        watch->progress = progress;
        watch->moved = now;
    }
    if (!watch->said && now - watch->moved >= SG_KERNEL_SPIN_NS) {
        watch->said = true;
        say(grid, program);
    }
    if (limit == 0 || now - watch->began < limit)
        return false;
    sg_grid_give_up(grid);
    return true;
}

void sg_kernel_awaited(struct sg_kernel_watch *watch, bool awaited, const struct sg_grid *grid,
                       const struct sg_program *program, const struct sg_watched_launch *launch) {
    char text[SG_REPORT_ROOM];
    uint64_t now = awaited && !watch->awaited_said ? sg_now() : 0;
    if (!awaited || !watch->awaited)
        watch->awaited = now;
    if (!now || now - watch->awaited < SG_KERNEL_SPIN_NS)
        return;
    watch->awaited_said = true;
    const unsigned *blocks = launch->grid, *threads = launch->block;
    sg_log(SG_LOG_WARNING,
           "what destroys or frees has waited for 10 s for kernel %s, launch %" PRIu64
           " of this process, in stream %" PRIu64 ", %u x %u x %u blocks of %u x %u x %u threads; "
           "SOFTGPU_KERNEL_LIMIT would end it; its lanes are here:",
           program->name, launch->number, launch->stream, blocks[0], blocks[1], blocks[2],
           threads[0], threads[1], threads[2]);
    sg_grid_places(grid, text, sizeof text);
    sg_kernel_say(SG_LOG_WARNING, text);
}
