/* sRGB decoded to linear values, as an H200 does: eight bits, with an exponent for every group of
 * eight codes, which the greatest of them needs. */
#include "softgpu/engine/texture_inside.h"

#include <math.h>
#include <pthread.h>

static double linear(unsigned code) {
    double part = code / 255.0;
    return part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4);
}

/* In units of 2^-14 * 2^exponent, to nearest. */
static double units_of(unsigned code, int exponent) {
    return floor(ldexp(linear(code), 14 - exponent) + 0.5);
}

static int exponent_of_group(unsigned code) {
    int exponent = 0;
    while (units_of(code | 7, exponent) >= 256)
        exponent++;
    return exponent;
}

static struct {
    float value[256];
    unsigned char exponent[256];
} codes;

static void decode_all(void) {
    for (unsigned code = 0; code < 256; code++) {
        int exponent = exponent_of_group(code);
        codes.value[code] = (float)ldexp(units_of(code, exponent), exponent - 14);
        codes.exponent[code] = (unsigned char)exponent;
    }
}

static void decoded(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, decode_all);
}

float sg_srgb_value(unsigned code) {
    decoded();
    return codes.value[code & 255];
}

int sg_srgb_exponent(float value) {
    unsigned code = 0;
    decoded();
    for (unsigned step = 128; step > 0; step /= 2)
        if (codes.value[code + step] <= value)
            code += step;
    return codes.exponent[code];
}

unsigned sg_srgb_code(float value) {
    double part = value > 0 ? (double)value : 0;
    part = part > 1 ? 1 : part;
    part = part <= 0.0031308 ? part * 12.92 : 1.055 * pow(part, 1 / 2.4) - 0.055;
    return (unsigned)floor(part * 255 + 0.5);
}
