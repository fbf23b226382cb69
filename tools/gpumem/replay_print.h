/* What gpumem replay prints of its results. */
#ifndef CLI_REPLAY_PRINT_H
#define CLI_REPLAY_PRINT_H

#include "replay.h"

void replay_print_text(const struct replay_log *log, const char *const *paths, size_t paths_count,
                       const struct replay_result *results, size_t count);
/* CLI_OK, or an exit status after reporting why. */
int replay_print_json(const struct replay_log *log, const char *const *paths, size_t paths_count,
                      const struct replay_result *results, size_t count);

#endif
