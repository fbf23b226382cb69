/*
 * SOFTGPU_JOB: the file in which the processes of one job note what they met, for `gpumem run`,
 * which waits for the job and judges it as a whole. One byte a note.
 */
#ifndef SG_CORE_JOB_H
#define SG_CORE_JOB_H

#include <stdbool.h>

#define SG_JOB_PROCESS 'P' /* a process uses softgpu */
#define SG_JOB_FAULT   'F' /* the fault was reached */
#define SG_JOB_LEAK    'L' /* objects were left */

/* Whether there is such a file, and it could be written to: then it is not for a single process to
 * fail. */
bool sg_job_known(void);
void sg_job_note(char what);

#endif
