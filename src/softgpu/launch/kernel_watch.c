#include "softgpu/launch/kernel_watch.h"

#include "softgpu/core/config.h"
#include "softgpu/core/state.h"
#include "softgpu/launch/kernel_report.h"

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
