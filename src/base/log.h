#ifndef GM_BASE_LOG_H
#define GM_BASE_LOG_H

#include "base/error.h"

/* Formats and hands a line to the log callback when the level is wanted. Thread-safe. */
void gm_log(gpumem_log_level level, const char *format, ...) GM_PRINTF(2, 3);

#endif
