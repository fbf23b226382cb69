/* Runs one instruction of textures or surfaces over descriptions that a test makes. */
#ifndef TESTS_UNIT_SOFTGPU_TEXTURE_KERNEL_H
#define TESTS_UNIT_SOFTGPU_TEXTURE_KERNEL_H

#include "kernel.h"

/* What a thread gives and receives: registers %f0 to %f7 and %r0 to %r7 (the same bits), %q0 (two
 * of them, the first two); then the four of the result, and whether all was resident. */
struct texture_lane {
    union {
        float f[8];
        int32_t i[8];
        uint32_t u[8];
    } in __attribute__((aligned(16))); /* kernels read and write it by vectors */
    union {
        float f[4];
        int32_t i[4];
        uint32_t u[4];
    } out;
    uint32_t predicate;
    uint32_t unused[3];
};

/* Textures by handle: number 1 is the first. */
struct texture_set {
    const struct sg_texture *each[4];
    unsigned looked_up;
};

/* Runs `body`, which sets %o0 to %o3 (b32) and may set %p, for each lane; %h1 to %h4 are the
 * handles. Answers the fault, whose kind is SG_FAULT_COUNT where there is none. */
struct sg_grid_fault texture_run(const char *body, struct texture_set *set,
                                 struct texture_lane *lanes, size_t count);
/* The same; a fault fails the test. */
void texture_runs(const char *body, const struct sg_texture *texture, struct texture_lane *lanes,
                  size_t count);
/* One lane with these words. */
struct texture_lane texture_once(const char *body, const struct sg_texture *texture,
                                 const struct texture_lane *lane);
/* That the engine refuses a kernel with this body, with `why` in the reason. */
void texture_refused(const char *body, const char *why);

/* A texture of floats with one channel, of one level; sizes of 0 are not there. */
struct sg_texture texture_of_floats(const float *texels, unsigned width, unsigned height,
                                    unsigned depth);

#endif
