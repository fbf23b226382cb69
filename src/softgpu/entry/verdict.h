/*
 * What a process's end says of its settings: a value that is not understood, a fault that was never
 * reached, objects that were left. A test runner may have had standard error elsewhere when that
 * was said first (pytest captures it), so it is said again at the end, and may become the exit
 * status of a program that would have ended with 0.
 */
#ifndef SG_ENTRY_VERDICT_H
#define SG_ENTRY_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#define SG_EXIT_SETTINGS 2 /* of a process whose settings are not understood */
#define SG_EXIT_FAILED   9 /* of one that fails because of SOFTGPU_FAIL_ON */

/* The first driver call of the process: exit handlers run in turn, so what cuInit registers later
 * runs before this. Thread-safe. */
void sg_verdict_watch(void);
/* cuInit succeeded in this process: its end speaks for it, not for one that forked it. */
void sg_verdict_begin(void);

/* A setting is not understood; `text` says which, and what is. cuInit fails from now on. */
void sg_verdict_wrong(const char *text);
bool sg_verdict_is_wrong(void);
/* Objects were left. */
void sg_verdict_leak(void);

/* Looks at the environment as it is now. Writes a line for each value that is not understood, at
 * most `size` bytes with their end; returns how many there are. Changes nothing, but that the file
 * of SOFTGPU_TRACE exists afterwards. */
int sg_settings_check(char *text, size_t size);

#endif
