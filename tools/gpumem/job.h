/* gpumem run, when the job as a whole is judged. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

/*
 * Runs the command, and waits for it: signals are passed on, and its exit status, or the signal
 * that ended it, becomes this program's. What the processes of the job note (a fault reached,
 * objects left) is told at the end, and makes CLI_JUDGED of CLI_OK where SOFTGPU_FAIL_ON says so.
 */
int job_run(char *const *command);
/* Replaces this process; returns only when that fails, with the exit status, having said why. */
int job_become(char *const *command);

#endif
