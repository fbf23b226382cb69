/* The checkers; each has files of its own, and check.c has their table. */
#ifndef SG_CHECK_CHECKERS_H
#define SG_CHECK_CHECKERS_H

#include "softgpu/check/check.h"

extern const struct sg_checker sg_memory_checker, sg_init_checker, sg_race_checker, sg_sync_checker;

#endif
