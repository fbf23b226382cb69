/*
 * SOFTGPU_JOB: the file in which the processes of one job note what they encounter, for `gpumem
 * run`, which waits for the job and judges it as a whole. Each note is one byte.
 */
#ifndef SG_CORE_JOB_H
#define SG_CORE_JOB_H

#include <stdbool.h>

#define SG_JOB_PROCESS 'P' /* a process uses softgpu */
#define SG_JOB_FAULT   'F' /* the fault was reached */
#define SG_JOB_LEAK    'L' /* objects were leaked */
#define SG_JOB_HAZARD  'H' /* a checker has found an error */

/* Whether there is such a file and it is writable: then no single process fails by itself. */
bool sg_job_known(void);
void sg_job_note(char what);

#endif
