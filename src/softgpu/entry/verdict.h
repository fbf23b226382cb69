/*
 * The report at process exit: a setting that is not understood, a fault that was never reached,
 * leaked objects. A test runner may have captured standard error when this was first reported
 * (pytest does), so it is repeated at exit, and may become the exit status of a program that would
 * have ended with 0.
 */
#ifndef SG_ENTRY_VERDICT_H
#define SG_ENTRY_VERDICT_H

#define SG_EXIT_SETTINGS 2 /* for a process whose settings are not understood */
#define SG_EXIT_FAILED   9 /* for one that fails because of SOFTGPU_FAIL_ON */

/* Called at the first driver call of the process: exit handlers run in reverse order, so what
 * cuInit registers later runs before this. Thread-safe. */
void sg_verdict_watch(void);
/* cuInit succeeded in this process: the report covers it, not the process that forked it. */
void sg_verdict_begin(void);

#endif
