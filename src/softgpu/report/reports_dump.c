#include "softgpu/report/report.h"

#include "softgpu/entry/entry.h"

void sg_dump_reports(struct sg_text *text) {
    sg_dump_error_log(text);
    sg_dump_coredumps(text);
    sg_dump_profiler(text);
    sg_dump_notifications(text);
}

void sg_leaks_reports(struct sg_text *text) {
    sg_leaks_error_log(text);
    sg_leaks_notifications(text);
}
