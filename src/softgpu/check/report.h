/* Writing hazards, and suppressing them. */
#ifndef SG_CHECK_REPORT_H
#define SG_CHECK_REPORT_H

#include "softgpu/check/check.h"

/* The text of a hazard, the number-th of the process; malloc'ed. NULL: out of memory. */
char *sg_hazard_text(const struct sg_hazard *hazard, uint64_t number);
char *sg_hazard_json(const struct sg_hazard *hazard, uint64_t number);
const char *sg_hazard_level_name(enum sg_hazard_level level);

/* Reads a file of "KIND [KERNEL [PLACE]]" lines; false, with the reason in `why`, if it cannot be
 * read or has other lines. */
bool sg_suppressions_read(const char *path, char *why, size_t size);
bool sg_suppressed(const struct sg_hazard *hazard);
/* Whether a name matches one of the globs, separated by commas. An empty list matches all. */
bool sg_globs_match(const char *globs, const char *name);

/* Opens the file for reports (SOFTGPU_CHECK_OUTPUT). Lines are written whole. */
bool sg_check_output_open(const char *path, char *why, size_t size);
void sg_check_write(const char *text);
/* Writes how often each was found, and how many there were. */
void sg_report_sum(void);

#endif
