/*
 * What a process's end says of its settings: a value that is not understood, a fault that was never
 * reached, objects that were left. A test runner may have had standard error elsewhere when that
 * was said first (pytest captures it), so it is said again at the end, and may become the exit
 * status of a program that would have ended with 0.
 */
#ifndef SG_ENTRY_VERDICT_H
#define SG_ENTRY_VERDICT_H

#define SG_EXIT_SETTINGS 2 /* of a process whose settings are not understood */
#define SG_EXIT_FAILED   9 /* of one that fails because of SOFTGPU_FAIL_ON */

/* The first driver call of the process: exit handlers run in turn, so what cuInit registers later
 * runs before this. Thread-safe. */
void sg_verdict_watch(void);
/* cuInit succeeded in this process: its end speaks for it, not for one that forked it. */
void sg_verdict_begin(void);

#endif
