/*
 * The error log, as shown by cuLogs*. Each refused call leaves one line with its result and, when
 * its own code refused it rather than the prologue, a second one with its arguments; both end with
 * what the thread does, if it has a label, as far as there is room. The last
 * SG_LOG_ENTRIES lines are kept, whether or not anybody listens, and even before cuInit.
 *
 * If CUDA_LOG_FILE names a file, or is stdout or stderr, each line is also written there
 * immediately.
 *
 * The log has its own lock, because refusals are logged when the big lock is not held. Where both
 * are taken, the big lock comes first.
 *
 * Callbacks run in the thread of the refused call, after it has released the big lock: they may
 * call the driver. A call that is refused inside a callback is logged but triggers no callbacks.
 * Unregistering waits until the callback is not running in any thread, except inside a callback:
 * then the unregistered one may still be finishing in another thread.
 */
#ifndef SG_REPORT_ERROR_LOG_H
#define SG_REPORT_ERROR_LOG_H

#include "softgpu/core/rows.h"

#include <gpumem/cuda_api.h>
#include <pthread.h>
#include <stdbool.h>

#define SG_LOG_ENTRIES 100
/* Bytes in one line, including its newline: 25600 in all, as documented. */
#define SG_LOG_ROOM 256

/* Without the big lock. `inside`: the implementation refused the call. */
void sg_error_log_refusal(gpumem_driver_fn fn, struct sg_arguments arguments, CUresult result,
                          bool inside);

/* The same of a function of a runtime's, whose own driver calls were not refused. */
void sg_error_log_runtime(const char *function, int error);

/* ---- Shared by error_log.c and error_log_callbacks.c ----------------------------------------- */

void sg_error_log_lock(void);
void sg_error_log_unlock(void);
void sg_error_log_wait(pthread_cond_t *cond);
/* Whether any callback is registered. */
bool sg_error_log_listened(void);
/* Without the log's lock. */
void sg_error_log_call(CUlogLevel level, const char *message);

#endif
