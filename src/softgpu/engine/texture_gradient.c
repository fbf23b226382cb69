/*
 * The level that gradients choose, as an H200 chooses it (tests/parity, kernel-texture/levels and
 * kernel-texture-steps/gradients). The step along x and the step along y span a footprint in texels
 * of the largest level. Its length is estimated without roots: from each step, from their sum and
 * from their difference. Of 1,344 recorded levels 19 are a 256th beside.
 */
#include "softgpu/engine/texture_inside.h"

#include <math.h>

/* A step between neighbouring samples, in texels of the largest level. */
struct step {
    double along[3];
};

/* To the first `bits` bits. */
static double cut(double value, int bits) {
    int exponent;
    double fraction = frexp(value, &exponent);
    return ldexp(trunc(ldexp(fraction, bits)), exponent - bits);
}

/* With 11 bits along each axis. */
static struct step step_of(const struct sg_sampling *s, const uint32_t *list, unsigned from) {
    struct sg_texture_shape shape = sg_texture_shape(s->step->choice);
    const struct sg_texture_level *level = &s->image->levels[0];
    const double sizes[3] = {level->width, level->height, level->depth};
    double at[3] = {0};
    struct step to = {0};
    for (unsigned i = 0; i < shape.coordinates; i++) {
        uint32_t gradient = list[from + i];
        to.along[i] = gradient == SG_NOWHERE ? 0 : sg_real_at(s, gradient);
        at[i] = sg_real_at(s, list[SG_AT_COORDINATE + shape.layered + i]);
    }
    if (shape.cube) {
        const double of_direction[3] = {to.along[0], to.along[1], to.along[2]};
        sg_cube_gradient(at, of_direction, to.along);
        to.along[2] = 0;
    }
    for (unsigned i = 0; i < 3 && i < shape.axes; i++)
        to.along[i] = cut(to.along[i] * (s->sampler->normalized || shape.cube ? sizes[i] : 1), 11);
    return to;
}

/* To 11 bits, halves away from zero. */
static double eleven_bits(double value) {
    int exponent;
    double fraction = frexp(value, &exponent);
    return ldexp(round(ldexp(fraction, 11)), exponent - 11);
}

/* The longer of two sides at a right angle, and 11/32 of the shorter. */
static double diagonal(double a, double b) {
    double most = fmax(fabs(a), fabs(b)), least = fmin(fabs(a), fabs(b));
    return most + eleven_bits(least * 11 / 32);
}

static double length_of(const struct step *step) {
    double plane = diagonal(step->along[0], step->along[1]);
    return step->along[2] != 0 ? diagonal(plane, step->along[2]) : plane;
}

/* The length of x + sign * y, of which 11/16 count: ten bits of them along each axis. */
static double length_between(const struct step *x, const struct step *y, int sign) {
    struct step sum;
    for (unsigned i = 0; i < 3; i++)
        sum.along[i] = cut((x->along[i] + sign * y->along[i]) * 11 / 16, 10);
    return length_of(&sum);
}

static double footprint(const struct step *x, const struct step *y) {
    double steps = fmax(length_of(x), length_of(y));
    return fmax(steps, fmax(length_between(x, y, 1), length_between(x, y, -1)));
}

/* The logarithm in 256ths, from eight bits behind the first one: its value a little before the
 * middle of their interval, but 0 in the first. */
static int64_t logarithm(double value) {
    int exponent;
    double fraction = 2 * frexp(value, &exponent) - 1, interval = floor(fraction * 256);
    double part = interval > 0 ? 256 * log2(1 + (interval + 0.4727) / 256) : 0;
    return 256 * ((int64_t)exponent - 1) + (int64_t)floor(part + 0.5);
}

int64_t sg_gradient_level(const struct sg_sampling *s, const uint32_t *list) {
    struct step x = step_of(s, list, SG_AT_DX), y = step_of(s, list, SG_AT_DY);
    double length = footprint(&x, &y);
    const int64_t most = 1 << 20;
    return length > 0 ? isfinite(length) ? logarithm(length) : most : -most;
}
