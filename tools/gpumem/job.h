/* gpumem run: running the command, and the verdict on the whole job. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

/*
 * Runs the command, and waits for it: signals are passed on, and its exit status, or the signal
 * that ended it, becomes this program's. What the processes of the job have noted (a fault reached,
 * objects not freed) is reported at the end, and turns CLI_OK into CLI_JUDGED as SOFTGPU_FAIL_ON
 * requests.
 */
int job_run(char *const *command);
/* Replaces this process; returns only if that fails, with the exit status, after reporting why. */
int job_become(char *const *command);

#endif
