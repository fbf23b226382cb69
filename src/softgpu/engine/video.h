/* Video instructions, from what code_video.c makes of them to what video.c does. */
#ifndef SG_ENGINE_VIDEO_H
#define SG_ENGINE_VIDEO_H

#include "softgpu/engine/inside.h"

enum sg_video {
    SG_VIDEO_ADD,
    SG_VIDEO_SUB,
    SG_VIDEO_DISTANCE,
    SG_VIDEO_MIN,
    SG_VIDEO_MAX,
    SG_VIDEO_AVERAGE,
    SG_VIDEO_LEFT,
    SG_VIDEO_RIGHT,
    SG_VIDEO_COMPARE
};

/*
 * All: type: the result's, type2: a's; flags: SAT. Of one and of several results, choice: enum
 * sg_video; second: the operation with c; of comparisons rounding is enum sg_compare.
 *
 * One result; count: of shifts, 1 for .wrap; value: bits 0 to 7 the part written, from 8 on a's
 * part, from 16 on b's (enum sg_part), from 24 on b's type.
 */
sg_run sg_run_video;
/* The same value; choice: 1 the product has a minus, 2 c has, 4 .po; rounding: how far the result
 * is shifted to the right. */
sg_run sg_run_video_mad;
/* Several, count: 2 or 4; value: bits 0 to 3 which are written, from 8 on a nibble for each that
 * says which element of a and b together comes from a's side, from 24 on those of b's, from 40 on
 * b's type. */
sg_run sg_run_video_several;

#endif
