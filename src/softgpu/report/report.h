/* What the driver reports besides its results: the error log, core dumps, the profiler. */
#ifndef SG_REPORT_REPORT_H
#define SG_REPORT_REPORT_H

#include "softgpu/core/chapter.h"

#include <stddef.h>

struct sg_text;

/* Parts of the chapter's dump and leak report, with the big lock held. */
void sg_dump_error_log(struct sg_text *text);
void sg_leaks_error_log(struct sg_text *text);
void sg_dump_coredumps(struct sg_text *text);
void sg_dump_profiler(struct sg_text *text);

extern const struct sg_chapter sg_report_chapter;

#endif
