/* Video instructions: the steps that code_video.c makes and video.c runs. */
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
 * All: type: the result's, type2: a's; flags: SAT. Except for vmad, choice: enum sg_video; second:
 * the operation with c; for comparisons, rounding: enum sg_compare.
 *
 * One result; count: 1 for a shift with .wrap; value: bits 0 to 7 are the part written, from 8 a's
 * part, from 16 b's (enum sg_part), from 24 b's type.
 */
sg_run sg_run_video;
/* The same value; choice: 1 the product is negated, 2 c is, 4 .po; rounding: bits by which the
 * result is shifted right. */
sg_run sg_run_video_mad;
/* Several results, count: 2 or 4; value: bits 0 to 3 say which are written; from 8 a nibble for
 * each selects a's element among those of a and b together, from 24 likewise for b's, from 40 b's
 * type. */
sg_run sg_run_video_several;

#endif
