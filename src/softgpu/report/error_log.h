/*
 * The error log: what cuLogs* show. Each refused call leaves one line that says what it answered,
 * and, when its own code refused it rather than the prologue, a second one with what it was called
 * with. The last SG_LOG_ENTRIES lines are kept, whether anybody listens or not, and before cuInit
 * too.
 *
 * Where CUDA_LOG_FILE names a file, or stdout or stderr, each line is written there at once, too.
 *
 * A lock of its own guards it, because refusals are logged when the big lock is not held. Where
 * both are taken, the big lock comes first.
 *
 * Callbacks run in the thread of the refused call, after it has released the big lock: they may
 * call the driver. A call that is refused inside a callback is logged and calls nobody back.
 * Unregistering waits until the callback runs nowhere, unless it is done inside a callback: then
 * one that runs in another thread may still be finishing.
 */
#ifndef SG_REPORT_ERROR_LOG_H
#define SG_REPORT_ERROR_LOG_H

#include "softgpu/core/rows.h"

#include <gpumem/cuda_api.h>
#include <pthread.h>
#include <stdbool.h>

#define SG_LOG_ENTRIES 100
/* Bytes of one line, its newline among them: 25600 in all, as documented. */
#define SG_LOG_ROOM 256

/* Without the big lock. `inside`: the implementation answered. */
void sg_error_log_refusal(gpumem_driver_fn fn, struct sg_arguments arguments, CUresult result,
                          bool inside);

/* ---- Between error_log.c and error_log_callbacks.c ------------------------------------------- */

void sg_error_log_lock(void);
void sg_error_log_unlock(void);
void sg_error_log_wait(pthread_cond_t *cond);
/* Anybody to be called? */
bool sg_error_log_listened(void);
/* Without the log's lock. */
void sg_error_log_call(CUlogLevel level, const char *message);

#endif
