#include "softgpu/report/report.h"

#include "softgpu/core/chapter.h"

static void dump(struct sg_text *text) {
    sg_dump_error_log(text);
    sg_dump_coredumps(text);
    sg_dump_profiler(text);
}

const struct sg_chapter sg_report_chapter = {.dump = dump, .leaks = sg_leaks_error_log};
