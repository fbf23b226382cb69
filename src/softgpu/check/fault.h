#ifndef SG_CHECK_FAULT_H
#define SG_CHECK_FAULT_H

#include "softgpu/check/check.h"

/* "global", "shared", …: of enum sg_state_space. */
const char *sg_space_name(unsigned space);
/* Reports a fault of a launch. Without the lock. */
void sg_fault_hazard(const struct sg_check_launch *launch, const struct sg_grid_fault *fault);

#endif
