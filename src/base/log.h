#ifndef GM_BASE_LOG_H
#define GM_BASE_LOG_H

#include "base/error.h"

/* Formats a line and passes it to the log callback if the level is enabled. Thread-safe. */
void gm_log(gpumem_log_level level, const char *format, ...) GM_PRINTF(2, 3);

#endif
