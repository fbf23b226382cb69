/* What a launch is asked for, in whichever way; softgpu runs no kernel. With the lock. */
#ifndef SG_IMAGE_LAUNCH_REFUSED_H
#define SG_IMAGE_LAUNCH_REFUSED_H

#include "softgpu/image/module.h"
#include "softgpu/stream/stream.h"

struct sg_launch {
    unsigned grid[3], block[3];
    unsigned shared;
    CUstream stream;
    void **params, **extra;
    const CUlaunchAttribute *attributes;
    unsigned attribute_count;
    bool cooperative;
};

/*
 * Checks the arguments as an H200 does. A launch in a stream that captures becomes a node; any
 * other is refused with NOT_SUPPORTED, and one line in the log says what the image was.
 */
CUresult sg_launch(CUfunction handle, const struct sg_launch *launch);

#endif
