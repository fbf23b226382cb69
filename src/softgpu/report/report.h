/* What the driver tells beside its answers: the error log, core dumps, profiler, notifications. */
#ifndef SG_REPORT_REPORT_H
#define SG_REPORT_REPORT_H

#include <stddef.h>

struct sg_text;

/* Parts of sg_dump_reports and sg_leaks_reports, with the big lock. */
void sg_dump_error_log(struct sg_text *text);
void sg_leaks_error_log(struct sg_text *text);
void sg_dump_coredumps(struct sg_text *text);
void sg_dump_profiler(struct sg_text *text);
void sg_dump_notifications(struct sg_text *text);
void sg_leaks_notifications(struct sg_text *text);

#endif
