/*
 * The last bits of filters, borders, coordinates and levels, against what an H200 answered
 * (tests/parity/recordings/h200-580.159.04-kernels.txt.xz, kernel-texture-steps/...): texels and
 * places of those scenarios where another order of steps, or rounding, gives another last bit.
 */
#include "texture_kernel.h"

static const char row[] = "tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0}];";
static const char plane[] = "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}];";
static const char space[] = "tex.3d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1,%f2,%f2}];";

static void use(struct sg_texture *texture, unsigned mode) {
    texture->linear = true;
    for (int a = 0; a < 3; a++)
        texture->address[a] = (unsigned char)mode;
}

/* 2 x 2 (x 2) texels of one channel. */
static struct sg_texture square(const void *texels, enum sg_texel_form form, unsigned bits,
                                unsigned depth) {
    struct sg_texture texture = texture_of_floats(texels, 2, 2, depth);
    texture.form = (unsigned char)form;
    texture.bits = (unsigned char)bits;
    texture.element = (unsigned char)(bits / 8);
    texture.levels[0].pitch = 2 * bits / 8;
    texture.levels[0].layer = 4 * bits / 8;
    use(&texture, SG_ADDRESS_CLAMP);
    return texture;
}

/* 256ths between the first texels and the second. */
static uint32_t between(const struct sg_texture *texture, const unsigned parts[3]) {
    struct texture_lane in = {.in.u = {0}};
    for (int a = 0; a < 3; a++)
        in.in.f[a] = 0.5f + (float)parts[a] / 256;
    return texture_once(texture->dimensions > 2 ? space : plane, texture, &in).out.u[0];
}

/* A texel of 256 among zeros shows its weight. */
TEST(filter_weights_of_three_axes_match_the_h200) {
    static const struct {
        unsigned parts[3], weight[8];
    } rows[] = {{{32, 20, 212}, {35, 6, 3, 0, 171, 25, 14, 2}},
                {{128, 191, 43}, {27, 27, 79, 80, 5, 6, 16, 16}},
                {{64, 128, 28}, {86, 28, 85, 29, 11, 3, 10, 4}},
                {{192, 128, 100}, {20, 58, 19, 59, 13, 37, 12, 38}}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        for (int i = 0; i < 8; i++) {
            float texels[8] = {0};
            texels[i] = 256;
            struct sg_texture texture = square(texels, SG_TEXEL_FLOAT, 32, 2);
            union {
                float value;
                uint32_t bits;
            } want = {(float)rows[k].weight[i]};
            assert_int_equal(between(&texture, rows[k].parts), want.bits);
        }
}

/* Four bits behind the 24; of three axes, the first plane's sum has 33 bits. */
TEST(filtering_floats_of_distant_magnitudes_matches_the_h200) {
    static const struct {
        unsigned parts[3];
        uint32_t texels[4], want;
    } flat[] = {{{87, 31}, {0xbd3cb415, 0xbce7d327, 0xbcbe5051, 0xc1bbd76e}, 0xbf85e185},
                {{73, 50}, {0xbe5c4d25, 0xc1e89093, 0xbebe62ae, 0x3fde3b3f}, 0xc0d8fbd8},
                {{9, 117}, {0x42e3a634, 0x462ad496, 0x43fdb2ca, 0x388ecbd3}, 0x43f88b08},
                {{14, 63}, {0xb9d7630e, 0x393cb4f0, 0x3d0061a5, 0xc01090c3}, 0xbc9effa7}};
    static const struct {
        unsigned parts[3];
        uint32_t texels[8], want;
    } deep[] = {{{49, 188, 4},
                 {0xbe59e3c3, 0x3fbb5137, 0xbd7e761d, 0xbff172ef, 0x418f75c2, 0xc15440a2,
                  0x3ca94b5c, 0x412b069a},
                 0xbe1c9235},
                {{206, 1, 43},
                 {0xbdbe329b, 0xbed11ccd, 0x4166af3a, 0xbd224aae, 0x3d3a4aea, 0x400558c8,
                  0xbeb786c9, 0x3ee256e9},
                 0xb9ac5cae},
                {{201, 138, 103},
                 {0x3dccb2e1, 0xbcd6e361, 0xbed497c4, 0x3fd42631, 0xc129d8ec, 0x3e2d75c8,
                  0x3e48da0f, 0xbd78a9d8},
                 0x39e185c6}};
    for (size_t k = 0; k < sizeof flat / sizeof flat[0]; k++) {
        struct sg_texture texture = square(flat[k].texels, SG_TEXEL_FLOAT, 32, 0);
        assert_int_equal(between(&texture, flat[k].parts), flat[k].want);
    }
    for (size_t k = 0; k < sizeof deep / sizeof deep[0]; k++) {
        struct sg_texture texture = square(deep[k].texels, SG_TEXEL_FLOAT, 32, 2);
        assert_int_equal(between(&texture, deep[k].parts), deep[k].want);
    }
}

/* Subnormal numbers are 0 of their sign, as texels and results; other texels stay as they are. */
TEST(subnormal_texels_and_results_flush_to_zero) {
    static const struct {
        uint32_t texels[4], alone, middle;
    } rows[] = {{{0x80000001, 0x007fffff}, 0x80000000, 0},
                {{0x007fffff, 0x00800000}, 0, 0},
                {{0x00800000, 0x7f7fffff}, 0x00800000, 0x7effffff},
                {{0x80000000, 0}, 0x80000000, 0},
                {{0x7f800000, 0xff800000}, 0x7f800000, 0x7fffffff}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct sg_texture texture = square(rows[k].texels, SG_TEXEL_FLOAT, 32, 0);
        assert_int_equal(between(&texture, (const unsigned[3]){0, 0, 0}), rows[k].alone);
        assert_int_equal(between(&texture, (const unsigned[3]){128, 0, 0}), rows[k].middle);
    }
}

/* Halves: sums of 11 bits and four behind, results that are halves; every NaN is the same. */
TEST(filtering_half_texels_matches_the_h200) {
    static const struct {
        unsigned parts[3];
        uint16_t texels[4];
        uint32_t want;
    } rows[] = {{{176, 96}, {0x9e18, 0x06a2, 0xa8e3, 0x36e6}, 0x3dd82000},
                {{58, 101}, {0x3682, 0x98e6, 0x3102, 0x20a7}, 0x3e74a000},
                {{111, 250}, {0x98e6, 0x3438, 0x20a7, 0x91e2}, 0x3bff8000},
                {{0, 0}, {0xfeb5, 0, 0, 0}, 0x7fffe000}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct sg_texture texture = square(rows[k].texels, SG_TEXEL_FLOAT, 16, 0);
        assert_int_equal(between(&texture, rows[k].parts), rows[k].want);
    }
}

/* The least byte counts as -128, though alone it is -1. Of 16 bits, a half is rounded up. */
TEST(filtering_signed_normalized_texels_matches_the_h200) {
    static const struct {
        unsigned parts[3];
        int8_t texels[4];
        uint32_t want;
    } bytes[] = {{{112, 86}, {-24, -73, -128, -76}, 0xbf03cb08},
                 {{62, 195}, {-35, 0, 52, 43}, 0x3e7f51ff},
                 {{226, 159}, {-14, 76, -114, -5}, 0x3ddd71bb},
                 {{0, 0}, {-128, 0, 0, 0}, 0xbf800000},
                 {{0, 0}, {21, 0, 0, 0}, 0x3e295153}};
    for (size_t k = 0; k < sizeof bytes / sizeof bytes[0]; k++) {
        struct sg_texture texture = square(bytes[k].texels, SG_TEXEL_SINT, 8, 0);
        assert_int_equal(between(&texture, bytes[k].parts), bytes[k].want);
        texture.form = SG_TEXEL_SNORM;
        assert_int_equal(between(&texture, bytes[k].parts), bytes[k].want);
    }
    static const int16_t words[4] = {-6447, 21072, -27416, -15301};
    struct sg_texture texture = square(words, SG_TEXEL_SINT, 16, 0);
    assert_int_equal(between(&texture, (const unsigned[3]){57, 119}), 0xbeb5bd6b);
}

/* Ten bits are repeated to 16 before they are summed. */
TEST(ten_bit_texels_are_widened_before_filtering) {
    static const struct {
        unsigned parts[3];
        uint32_t texels[4], want;
    } rows[] = {{{60, 187}, {603, 664, 708, 758}, 0x3f2d32ad},
                {{242, 178}, {664, 559, 758, 704}, 0x3f260ea6},
                {{0, 0}, {139, 0, 0, 0}, 0x3e0b208b}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct sg_texture texture = square(rows[k].texels, SG_TEXEL_1010102, 32, 0);
        texture.channels = 4;
        assert_int_equal(between(&texture, rows[k].parts), rows[k].want);
    }
}

/* A row lies half in its border: integers are filtered too, and those of 32 bits rounded down. */
TEST(filtering_integers_against_the_border_matches_the_h200) {
    static const unsigned char bytes[4] = {0x01, 0x4a, 0x93, 0xdc};
    static const uint32_t words[4] = {0xdc934a01, 0x00b76e25, 0x24db9249, 0x48ffb66d};
    static const struct {
        float at;
        uint32_t byte, word, signed_word;
    } rows[] = {{0.5f, 0x4e, 0x8d9671cd, 0x0d9671cd},
                {1, 0x60, 0x569f7ad6, 1},
                {1.9f, 0x81, 0x26dbb712, 1},
                {-1, 0x9a, 0x3e99999a, 0x3e99999a}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const struct texture_lane in = {.in.f = {rows[k].at}};
        struct sg_texture texture = texture_of_floats((const float *)(const void *)words, 4, 0, 0);
        texture.border[0] = 0.3f;
        texture.integers = true;
        use(&texture, SG_ADDRESS_BORDER);
        texture.form = SG_TEXEL_UINT;
        assert_int_equal(texture_once(row, &texture, &in).out.u[0], rows[k].word);
        texture.form = SG_TEXEL_SINT;
        if (rows[k].signed_word != 1)
            assert_int_equal(texture_once(row, &texture, &in).out.u[0], rows[k].signed_word);
        texture = texture_of_floats((const float *)(const void *)bytes, 4, 0, 0);
        texture.border[0] = 0.3f;
        texture.integers = true;
        use(&texture, SG_ADDRESS_BORDER);
        texture.form = SG_TEXEL_UINT;
        texture.bits = 8;
        texture.element = 1;
        assert_int_equal(texture_once(row, &texture, &in).out.u[0], rows[k].byte);
    }
}

/* One number as the border of each format. */
TEST(the_border_colour_is_converted_to_each_format) {
    static const unsigned char zeros[16] = {0};
    static const struct {
        enum sg_texel_form form;
        unsigned bits;
        bool srgb, integers;
        float border;
        uint32_t want;
    } rows[] = {
        {SG_TEXEL_UINT, 8, false, false, 0.25f, 0x3e808081}, /* 63.75 of 255: up */
        {SG_TEXEL_UINT, 8, false, false, 0.5f, 0x3efefeff},
        {SG_TEXEL_UINT, 8, false, false, 0.002f, 0}, /* 0.51 */
        {SG_TEXEL_UINT, 16, false, false, 1e-3f, 0x3a820082},
        {SG_TEXEL_UINT, 16, false, false, 1e-5f, 0x37800080}, /* 0.655 of 65535: up */
        {SG_TEXEL_SINT, 8, false, false, 0.7f, 0x3f3366ce},
        {SG_TEXEL_SINT, 8, false, false, -0.001f, 0},
        {SG_TEXEL_SINT, 16, false, false, -0.3f, 0xbe999933},
        {SG_TEXEL_FLOAT, 16, false, false, 0.3f, 0x3e998000}, /* cut off */
        {SG_TEXEL_FLOAT, 16, false, false, 70000, 0x477fe000},
        {SG_TEXEL_FLOAT, 16, false, false, 1e-5f, 0x37270000},
        {SG_TEXEL_FLOAT, 32, false, false, 0.3f, 0x3e99999a},
        {SG_TEXEL_1010102, 32, false, false, 0.3f, 0x3e99a66a},
        {SG_TEXEL_1010102, 32, false, false, 0.0058f, 0x3ba0280a}, /* the upper ten of 16 bits */
        {SG_TEXEL_UINT, 8, true, false, 0.3f, 0x3e9a0000},         /* the nearest code's value */
        {SG_TEXEL_UINT, 8, true, false, 0.75f, 0x3f410000},
        {SG_TEXEL_SINT, 8, false, true, 0.3f, 0xffffff9a}, /* the float's lowest bits */
        {SG_TEXEL_UINT, 16, false, true, 0.3f, 0x999a}};
    const struct texture_lane outside = {.in.f = {-2}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct sg_texture texture = texture_of_floats((const float *)(const void *)zeros, 1, 0, 0);
        use(&texture, SG_ADDRESS_BORDER);
        texture.linear = false;
        texture.form = (unsigned char)rows[k].form;
        texture.bits = (unsigned char)rows[k].bits;
        texture.element = (unsigned char)(rows[k].bits / 8);
        texture.channels = rows[k].form == SG_TEXEL_1010102 ? 4 : 1;
        texture.srgb = rows[k].srgb;
        texture.integers = rows[k].integers;
        texture.border[0] = rows[k].border;
        uint32_t got = texture_once(row, &texture, &outside).out.u[0];
        if (got != rows[k].want)
            fail_msg("row %zu: %08x, not %08x", k, got, rows[k].want);
    }
}

/* The fourth and fifth of eight values, from ends where 144/256 alone would be too little. */
TEST(interpolated_block_alpha_matches_the_h200) {
    static const struct {
        unsigned char ends[2];
        unsigned choice, want; /* of 255 */
    } rows[] = {{{192, 5}, 4, 111},   {{192, 5}, 5, 86},    {{216, 20}, 4, 131},
                {{216, 20}, 5, 105},  {{253, 121}, 5, 178}, {{3, 39}, 4, 25},
                {{120, 156}, 4, 142}, {{98, 29}, 3, 79},    {{189, 250}, 2, 200}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        unsigned char block[16] = {rows[k].ends[0], rows[k].ends[1], (unsigned char)rows[k].choice};
        struct sg_texture texture = texture_of_floats((const float *)(const void *)block, 4, 4, 0);
        texture.form = SG_TEXEL_BC3;
        texture.channels = 4;
        texture.bits = 8;
        texture.element = 16;
        const struct texture_lane first = {.in.f = {0.5f, 0.5f}};
        assert_true(texture_once(plane, &texture, &first).out.f[3] == (float)rows[k].want / 255);
    }
}

/* A texel is 256 times its number, so that results are coordinates. */
TEST(wrapped_and_mirrored_coordinates_match_the_h200) {
    static float texels[31999];
    static const struct {
        unsigned width, mode;
        float at, want;
    } rows[] = {{3001, SG_ADDRESS_WRAP, 0x1.ae6546p-1f, 645680},
                {3001, SG_ADDRESS_WRAP, 0x1.2132f4p-2f, 216843},
                {3001, SG_ADDRESS_WRAP, -0x1.9b530ep+0f, 301999},
                {16384, SG_ADDRESS_WRAP, 0x1.fb6584p-1f, 4156464},
                {16384, SG_ADDRESS_WRAP, -0x1.080d96p+0f, 4062234},
                {31999, SG_ADDRESS_MIRROR, 0x1.1b45fcp-2f, 2265987},
                {31999, SG_ADDRESS_MIRROR, -0x1.003042p+1f, 11936}};
    for (int i = 0; i < 31999; i++)
        texels[i] = (float)(256 * i);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct sg_texture texture = texture_of_floats(texels, rows[k].width, 0, 0);
        use(&texture, rows[k].mode);
        texture.normalized = true;
        const struct texture_lane in = {.in.f = {rows[k].at}};
        assert_true(texture_once(row, &texture, &in).out.f[0] == rows[k].want);
    }
}

/* ---- levels ---------------------------------------------------------------------------------- */

enum { LEVELS = 9 };

/* Level l has 256 * l everywhere, so that results are 256ths of a level. */
static struct sg_texture pyramid(void) {
    static float texels[LEVELS][256 * 256];
    struct sg_texture texture = texture_of_floats(texels[0], 256, 256, 0);
    use(&texture, SG_ADDRESS_CLAMP);
    texture.normalized = texture.mip_linear = true;
    texture.level_count = LEVELS;
    texture.most_level = 100;
    for (unsigned l = 0; l < LEVELS; l++) {
        struct sg_texture_level *level = &texture.levels[l];
        for (unsigned i = 0; i < 256 * 256; i++)
            texels[l][i] = (float)(256 * l);
        *level = texture.levels[0];
        level->address = (uintptr_t)texels[l];
        level->width = level->height = 256u >> l;
        level->pitch = (256u >> l) * 4;
    }
    return texture;
}

static float at_level(const struct sg_texture *texture, float level) {
    const struct texture_lane in = {.in.f = {0.4f, 0.4f, level}};
    return texture_once("tex.level.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}], %f2;",
                        texture, &in)
        .out.f[0];
}

/* Level, bias and limits are cut off to 256ths, each alone; without a level there is no bias. */
TEST(levels_bias_and_limits_are_truncated_to_256ths) {
    struct sg_texture texture = pyramid();
    assert_true(at_level(&texture, 1 + 31.75f / 1024) == 263);
    assert_true(at_level(&texture, 1 + 32.75f / 1024) == 264);
    texture.bias = 0.123f; /* 31.488 */
    assert_true(at_level(&texture, 1 - 0.25f / 1024) == 286);
    texture.bias = 0.3f; /* 76.8 */
    assert_true(at_level(&texture, 3 / 11.0f - 0.5f) == 18);
    assert_true(at_level(&texture, 4 / 11.0f - 0.5f) == 42);
    const struct texture_lane in = {.in.f = {0.4f, 0.4f}};
    assert_true(texture_once(plane, &texture, &in).out.f[0] == 0);
    texture.bias = -0.3f;
    assert_true(at_level(&texture, 9 / 11.0f - 0.5f) == 5);
    texture.bias = 0;
    texture.least_level = 0.6f; /* 153.6 */
    assert_true(texture_once(plane, &texture, &in).out.f[0] == 153);
}

TEST(anisotropic_filters_mix_levels_as_the_h200_does) {
    struct sg_texture texture = pyramid();
    texture.anisotropy = 16;
    assert_true(at_level(&texture, 0.25f) == 0);
    assert_true(at_level(&texture, 9 / 11.0f - 0.5f) == 34); /* of 81 */
    assert_true(at_level(&texture, 10 / 11.0f - 0.5f) == 80);
    assert_true(at_level(&texture, 0.5f) == 128);
    assert_true(at_level(&texture, 12 / 11.0f - 0.5f) == 174);
    assert_true(at_level(&texture, 14 / 11.0f - 0.5f) == 256);
}

/* Steps in texels of the largest level, times 64: of one axis, of two, and diagonals. */
TEST(gradients_select_the_level_that_the_h200_selects) {
    static const struct {
        float x[2], y[2], want;
    } rows[] = {{{121, 121}, {0, 0}, 345},      {{705, 392}, {0, 0}, 950},
                {{470, 285}, {0, 0}, 807},      {{0, -194}, {725, 704}, 1003},
                {{960, -5}, {959, 37}, 1119},   {{662, -89}, {391, 707}, 963},
                {{813, -80}, {585, 489}, 1036}, {{64, 0}, {0, 0}, 0}};
    const struct sg_texture texture = pyramid();
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct texture_lane in = {.in.f = {0.4f, 0.4f}};
        for (int a = 0; a < 2; a++) {
            in.in.f[2 + a] = rows[k].x[a] / 16384;
            in.in.f[4 + a] = rows[k].y[a] / 16384;
        }
        float got = texture_once("tex.grad.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}], "
                                 "{%f2,%f3}, {%f4,%f5};",
                                 &texture, &in)
                        .out.f[0];
        if (got != rows[k].want)
            fail_msg("row %zu: %g, not %g", k, (double)got, (double)rows[k].want);
    }
}

/* Every NaN becomes one as a half. */
TEST(every_nan_becomes_the_canonical_half_nan) {
    static const uint32_t texels[1] = {0xffffffce};
    struct sg_texture texture = texture_of_floats((const float *)(const void *)texels, 1, 0, 0);
    const struct texture_lane in = {.in.f = {0.5f}};
    const char read[] = "{ .reg .b16 %t<4>;\n"
                        "tex.1d.v4.f16.f32 {%t0,%t1,%t2,%t3}, [%h1, {%f0}];\n"
                        "cvt.u32.u16 %o0, %t0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0; }";
    assert_int_equal(texture_once(read, &texture, &in).out.u[0], 0x7fff);
}

/* The layers are a texture's size along the axis behind its last. */
TEST(texture_queries_return_layers_as_the_next_dimension) {
    static const float texels[32] = {0};
    static const char read[] =
        "txq.width.b32 %o0, [%h1]; txq.height.b32 %o1, [%h1]; txq.depth.b32 %o2, [%h1];\n"
        "mov.b32 %o3, 0;";
    const struct texture_lane in = {.in.u = {0}};
    struct sg_texture texture = texture_of_floats(texels, 4, 2, 2);
    texture.layered = true;
    texture.dimensions = 2;
    struct texture_lane out = texture_once(read, &texture, &in);
    MEMBERS(out.out, (u[1], 2), (u[2], 2));
    texture = texture_of_floats(texels, 8, 1, 3);
    texture.layered = true;
    texture.dimensions = 1;
    out = texture_once(read, &texture, &in);
    MEMBERS(out.out, (u[0], 8), (u[1], 3), (u[2], 0));
}
