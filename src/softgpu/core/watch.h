/* Conditions under which the prologue takes its slow path. */
#ifndef SG_CORE_WATCH_H
#define SG_CORE_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>

#define SG_WATCH_CONFIGURE 1u /* the environment has not been read */
#define SG_WATCH_FAULT     2u
#define SG_WATCH_TRACE     4u
#define SG_WATCH_ABORT     8u
#define SG_WATCH_COREDUMP  16u /* report a fault when the lock is released */
#define SG_WATCH_OUTPUT    32u /* kernels have printed */
#define SG_WATCH_CHECK     64u /* checkers look at refused calls */

extern atomic_uint sg_watched; /* the bits */

/* Thread-safe. */
void sg_watch(unsigned bits, bool on);

#endif
