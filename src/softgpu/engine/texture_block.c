/*
 * Compressed texels: blocks of 4 x 4, BC1 to BC5, with the fractions that an H200 interpolates by
 * (tests/parity, kernel-texture/blocks): 16ths and 64ths in place of fifths and sevenths, 22/64 of
 * red and blue for a third.
 */
#include "softgpu/engine/texture_inside.h"

#include <stdlib.h>

static uint64_t little_endian(const unsigned char *bytes, unsigned count) {
    uint64_t value = 0;
    for (unsigned i = count; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

/* ---- colours: parts of 255 ------------------------------------------------------------------- */

/* Red or blue, of 5 bits, or a mixture of `first` and `second` thirds or halves of two. */
static unsigned of_5_bits(unsigned a, unsigned b, unsigned first, unsigned second) {
    return (first * a + second * b) * (first + second == 2 ? 33 : 22) / 8;
}

static int of_6_bits(unsigned green) {
    return (int)(green << 2 | green >> 4);
}

/* From a towards b by 80/256 or, for a half, 128/256, and a little more. */
static unsigned green_between(int a, int b, int part) {
    return (unsigned)(256 * a + (b - a) / 4 + 128 + (b - a) * part) / 256;
}

/* Two colours and interpolated ones; with `cut`, unless the first is the larger one, the fourth
 * choice is transparent black. */
static void colours(const unsigned char *block, unsigned texel, bool cut, float value[4]) {
    const unsigned ends[2] = {(unsigned)little_endian(block, 2),
                              (unsigned)little_endian(block + 2, 2)};
    unsigned choice = (unsigned)(little_endian(block + 4, 4) >> 2 * texel) & 3;
    bool three = cut && ends[0] <= ends[1], half = three && choice == 2;
    unsigned to[3] = {0};
    value[3] = three && choice == 3 ? 0 : 1;
    if (value[3] > 0) {
        /* The nearer end, and the other one. */
        unsigned near = ends[choice & 1], far = ends[~choice & 1];
        unsigned most = half ? 1 : choice < 2 ? 3 : 2, least = half ? 1 : 3 - most;
        int greens[2] = {of_6_bits(near >> 5 & 63), of_6_bits(far >> 5 & 63)};
        to[0] = of_5_bits(near >> 11, far >> 11, most, least);
        to[1] =
            choice < 2 ? (unsigned)greens[0] : green_between(greens[0], greens[1], half ? 128 : 80);
        to[2] = of_5_bits(near & 31, far & 31, most, least);
    }
    for (unsigned c = 0; c < 3; c++)
        value[c] = (float)(to[c] / 255.0);
}

/* ---- one channel: two ends of 8 bits, and 3 bits for each texel ------------------------------ */

/* Which end a choice beyond the first two starts from, and by how many 256ths it moves to the
 * other: of 7 steps and of 5. */
static const struct {
    unsigned char end, part;
} steps[2][6] = {{{0, 36}, {0, 72}, {1, 144}, {0, 144}, {1, 72}, {1, 36}},
                 {{0, 48}, {0, 96}, {1, 96}, {1, 48}, {0, 0}, {0, 0}}};

/* The lowest and the highest value of blocks whose first end is not the greater. */
static bool is_limit(bool five, unsigned choice) {
    return five && choice >= 6;
}

/* 512ths of the distance for those 256ths: 144 are half of a 256th more. */
static unsigned of_distance(unsigned part) {
    return part == 144 ? 289 : 2 * part;
}

/* A part of 255: from the nearer of the table's ends by a part of the distance, to nearest. */
static float alpha(const unsigned char *block, unsigned texel) {
    unsigned choice = (unsigned)(little_endian(block + 2, 6) >> 3 * texel) & 7;
    bool five = block[0] <= block[1];
    if (choice < 2)
        return (float)(block[choice] / 255.0);
    if (is_limit(five, choice))
        return choice == 7;
    int from = block[steps[five][choice - 2].end], to = block[!steps[five][choice - 2].end];
    int moved = (abs(to - from) * (int)of_distance(steps[five][choice - 2].part) + 256) / 512;
    return (float)((to > from ? from + moved : from - moved) / 255.0);
}

static int signed_end(unsigned char byte) {
    int value = byte < 128 ? byte : byte - 256;
    return value < -127 ? -127 : value;
}

/* The bits repeated: 16 of 8, or 15 of 7 and the sign. */
static int widened(int end, bool has_sign) {
    int size = abs(end);
    size = has_sign ? size << 8 | size << 1 | size >> 6 : size << 8 | size;
    return end < 0 ? -size : size;
}

/* A part of 65535, or of 32767 with a sign. */
static float channel(const unsigned char *block, unsigned texel, bool has_sign) {
    const int ends[2] = {has_sign ? signed_end(block[0]) : block[0],
                         has_sign ? signed_end(block[1]) : block[1]};
    unsigned choice = (unsigned)(little_endian(block + 2, 6) >> 3 * texel) & 7;
    bool five = ends[0] <= ends[1];
    if (is_limit(five, choice))
        return choice == 7 ? 1 : has_sign ? -1 : 0;
    int value = widened(ends[choice & 1], has_sign);
    if (choice >= 2) {
        int from = ends[steps[five][choice - 2].end], to = ends[!steps[five][choice - 2].end];
        value = widened(from, has_sign) + steps[five][choice - 2].part * (to - from);
    }
    return (float)(value / (has_sign ? 32767.0 : 65535.0));
}

void sg_texel_of_block(unsigned form, const unsigned char *block, unsigned x, unsigned y,
                       float value[4]) {
    unsigned texel = 4 * y + x;
    value[0] = value[1] = value[2] = 0;
    value[3] = 1;
    switch (form) {
    case SG_TEXEL_BC1:
        colours(block, texel, true, value);
        break;
    case SG_TEXEL_BC2:
        colours(block + 8, texel, false, value);
        value[3] = (float)((double)(little_endian(block, 8) >> 4 * texel & 15) / 15);
        break;
    case SG_TEXEL_BC3:
        colours(block + 8, texel, false, value);
        value[3] = alpha(block, texel);
        break;
    case SG_TEXEL_BC5:
    case SG_TEXEL_BC5_SIGNED:
        value[1] = channel(block + 8, texel, form == SG_TEXEL_BC5_SIGNED);
        value[0] = channel(block, texel, form == SG_TEXEL_BC5_SIGNED);
        break;
    default:
        value[0] = channel(block, texel, form == SG_TEXEL_BC4_SIGNED);
    }
}
