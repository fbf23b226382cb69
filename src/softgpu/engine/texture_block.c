/* Compressed texels: blocks of 4 x 4, BC1 to BC5, interpolated as real numbers. */
#include "softgpu/engine/texture_inside.h"

#include <string.h>

static uint64_t little_endian(const unsigned char *bytes, unsigned count) {
    uint64_t value = 0;
    for (unsigned i = count; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static void of_565(unsigned colour, double to[3]) {
    to[0] = (double)(colour >> 11) / 31;
    to[1] = (double)(colour >> 5 & 63) / 63;
    to[2] = (double)(colour & 31) / 31;
}

/* Two colours and interpolated ones; with `cut`, unless the first is the larger one, the fourth
 * choice is transparent black. */
static void colours(const unsigned char *block, unsigned texel, bool cut, float value[4]) {
    unsigned first = (unsigned)little_endian(block, 2);
    unsigned second = (unsigned)little_endian(block + 2, 2);
    unsigned choice = (unsigned)(little_endian(block + 4, 4) >> 2 * texel) & 3;
    static const unsigned char thirds[4] = {3, 0, 2, 1}; /* weight of the first */
    double a[3], b[3];
    of_565(first, a);
    of_565(second, b);
    bool three = cut && first <= second;
    value[3] = three && choice == 3 ? 0 : 1;
    for (unsigned c = 0; c < 3; c++) {
        double mixed = (thirds[choice] * a[c] + (3 - thirds[choice]) * b[c]) / 3;
        if (three && choice >= 2)
            mixed = choice == 2 ? (a[c] + b[c]) / 2 : 0;
        value[c] = (float)mixed;
    }
}

/* One channel: two 8-bit end points, and 3 bits for each texel. */
static float channel(const unsigned char *block, unsigned texel, bool has_sign) {
    int ends[2] = {block[0], block[1]};
    for (unsigned i = 0; i < 2 && has_sign; i++) {
        ends[i] = ends[i] < 128 ? ends[i] : ends[i] - 256;
        ends[i] = ends[i] < -127 ? -127 : ends[i];
    }
    double scale = has_sign ? 127 : 255;
    int choice = (int)(little_endian(block + 2, 6) >> 3 * texel) & 7;
    int steps = ends[0] > ends[1] ? 7 : 5;
    if (choice < 2)
        return (float)(ends[choice] / scale);
    if (choice > steps)
        return choice == 7 ? 1 : has_sign ? -1 : 0;
    int second = choice - 1;
    return (float)(((steps - second) * ends[0] + second * ends[1]) / (steps * scale));
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
        value[3] = channel(block, texel, false);
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
