/* What registers receive of each format of texels, and what kernels can ask about a texture. */
#include "texture_kernel.h"

#include <math.h>

static const char fetch[] = "tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0}];";

static struct sg_texture of_bytes(const void *bytes, enum sg_texel_form form, unsigned channels,
                                  unsigned bits) {
    struct sg_texture texture = texture_of_floats(bytes, 4, 0, 0);
    texture.form = (unsigned char)form;
    texture.channels = (unsigned char)channels;
    texture.bits = (unsigned char)bits;
    texture.element = (unsigned char)(channels * bits / 8);
    return texture;
}

static struct texture_lane first_texel(const struct sg_texture *texture) {
    const struct texture_lane lane = {.in.f = {0.5f}};
    return texture_once(fetch, texture, &lane);
}

static bool all_are(const struct texture_lane *lane, float a, float b, float c, float d) {
    return lane->out.f[0] == a && lane->out.f[1] == b && lane->out.f[2] == c && lane->out.f[3] == d;
}

TEST(integer_texels_are_normalized_to_one) {
    static const unsigned char u8[4] = {0, 1, 128, 255};
    static const signed char s8[4] = {-128, -127, 64, 127};
    static const uint16_t u16[4] = {0, 1, 0x8000, 0xffff};
    static const int16_t s16[4] = {-32768, -32767, 16384, 32767};
    static const enum sg_texel_form pairs[2][2] = {{SG_TEXEL_UINT, SG_TEXEL_SINT},
                                                   {SG_TEXEL_UNORM, SG_TEXEL_SNORM}};
    for (int i = 0; i < 2; i++) {
        struct sg_texture texture = of_bytes(u8, pairs[i][0], 4, 8);
        struct texture_lane lane = first_texel(&texture);
        assert_true(all_are(&lane, 0, 1.0f / 255, 128.0f / 255, 1));
        texture = of_bytes(s8, pairs[i][1], 4, 8);
        lane = first_texel(&texture);
        assert_true(all_are(&lane, -1, -1, 64.0f / 127, 1));
        texture = of_bytes(u16, pairs[i][0], 4, 16);
        lane = first_texel(&texture);
        assert_true(all_are(&lane, 0, 1.0f / 65535, 32768.0f / 65535, 1));
        texture = of_bytes(s16, pairs[i][1], 4, 16);
        lane = first_texel(&texture);
        assert_true(all_are(&lane, -1, -1, 16384.0f / 32767, 1));
    }
}

TEST(integer_reads_return_the_texel_unchanged) {
    static const unsigned char bytes[16] = {0xff, 0x80, 0x7f, 1, 2,    3, 4, 5,
                                            0,    0,    0,    0, 0xfe, 0, 0, 0x80};
    struct sg_texture texture = of_bytes(bytes, SG_TEXEL_UINT, 2, 8);
    texture.integers = texture.linear = true;
    struct texture_lane lane = first_texel(&texture);
    assert_true(lane.out.u[0] == 0xff && lane.out.u[1] == 0x80 && lane.out.u[2] == 0);
    texture.form = SG_TEXEL_SINT;
    lane = first_texel(&texture);
    assert_true(lane.out.i[0] == -1 && lane.out.i[1] == -128);
    texture = of_bytes(bytes, SG_TEXEL_SINT, 1, 16);
    texture.integers = true;
    lane = first_texel(&texture);
    assert_int_equal(lane.out.i[0], (int16_t)0x80ff);
    /* Of 32 bits they are always. */
    texture = of_bytes(bytes, SG_TEXEL_UINT, 4, 32);
    texture.linear = true;
    lane = first_texel(&texture);
    assert_true(lane.out.u[0] == 0x017f80ff && lane.out.u[3] == 0x800000fe);
}

TEST(float_texels_of_16_and_32_bits_are_read_exactly) {
    static const uint16_t halves[4] = {0x3c00, 0xc248, 0x0001, 0x7c00};
    static const float floats[2] = {-0.0f, 1e-40f};
    struct sg_texture texture = of_bytes(halves, SG_TEXEL_FLOAT, 4, 16);
    struct texture_lane lane = first_texel(&texture);
    assert_true(all_are(&lane, 1, -3.140625f, 0x1p-24f, INFINITY));
    texture = of_bytes(floats, SG_TEXEL_FLOAT, 2, 32);
    lane = first_texel(&texture);
    assert_true(lane.out.u[0] == 0x80000000 && lane.out.f[1] == 1e-40f && lane.out.f[3] == 0);
}

/* Results of 16 bits: rounded to the nearest even. */
TEST(half_results_are_rounded_to_nearest_even) {
    static const float texels[4] = {1.00048828125f, 65519.996f, 3e-8f, -70000};
    struct sg_texture texture = of_bytes(texels, SG_TEXEL_FLOAT, 4, 32);
    const struct texture_lane in = {.in.f = {0.5f}};
    struct texture_lane lane =
        texture_once("tex.1d.v2.f16x2.f32 {%o0,%o1}, [%h1, {%f0}];", &texture, &in);
    MEMBERS(lane.out, (u[0], 0x7bff3c00), (u[1], 0xfc000001));
    lane = texture_once(".reg .b16 %w<4>; tex.1d.v4.f16.f32 {%w0,%w1,%w2,%w3}, [%h1, {%f0}]; "
                        "mov.b32 %o0, {%w0,%w1}; mov.b32 %o1, {%w2,%w3};",
                        &texture, &in);
    assert_true(lane.out.u[0] == 0x7bff3c00 && lane.out.u[1] == 0xfc000001);
}

TEST(srgb_is_linearized_before_filtering) {
    static const unsigned char texels[8] = {0, 10, 128, 128, 255, 11, 188, 255};
    struct sg_texture texture = of_bytes(texels, SG_TEXEL_UINT, 4, 8);
    texture.srgb = true;
    texture.levels[0].width = 2;
    struct texture_lane lane = first_texel(&texture);
    assert_true(lane.out.f[0] == 0 && lane.out.u[1] == 0x3b480000);
    assert_true(lane.out.u[2] == 0x3e5d0000 && lane.out.f[3] == 128.0f / 255);
    const struct texture_lane middle = {.in.f = {1}};
    texture.linear = true;
    lane = texture_once(fetch, &texture, &middle);
    assert_true(lane.out.f[0] == 0.5f);
    assert_true(fabsf(lane.out.f[2] - (0.2158605f + 0.5028865f) / 2) < 1e-3f);
    texture.integers = true; /* nothing to make linear */
    lane = first_texel(&texture);
    assert_int_equal(lane.out.u[2], 128);
}

TEST(packed_10_bit_texels_are_unpacked) {
    static const uint32_t word = 1023u | 0u << 10 | 512u << 20 | 1u << 30;
    struct sg_texture texture = of_bytes(&word, SG_TEXEL_1010102, 4, 8);
    texture.levels[0].width = 1;
    struct texture_lane lane = first_texel(&texture);
    assert_true(all_are(&lane, 1, 0, 512.0f / 1023, 1.0f / 3));
}

static struct sg_texture of_blocks(const void *blocks, enum sg_texel_form form, unsigned channels,
                                   unsigned element) {
    struct sg_texture texture = texture_of_floats(blocks, 4, 4, 0);
    texture.form = (unsigned char)form;
    texture.channels = (unsigned char)channels;
    texture.bits = 8;
    texture.element = (unsigned char)element;
    return texture;
}

static struct texture_lane texel_at(const struct sg_texture *texture, float x, float y) {
    const struct texture_lane in = {.in.f = {x, y}};
    return texture_once("tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}];", texture, &in);
}

TEST(bc1_to_bc3_colour_blocks_are_decoded) {
    /* Red and blue; texels 0 to 3 of the first row choose 0 to 3. */
    static const unsigned char four[8] = {0x00, 0xf8, 0x1f, 0x00, 0xe4, 0, 0, 0};
    static const unsigned char three[8] = {0x1f, 0x00, 0x00, 0xf8, 0xe4, 0, 0, 0};
    struct sg_texture texture = of_blocks(four, SG_TEXEL_BC1, 4, 8);
    struct texture_lane lane = texel_at(&texture, 0, 0);
    assert_true(all_are(&lane, 1, 0, 0, 1));
    lane = texel_at(&texture, 1, 0);
    assert_true(all_are(&lane, 0, 0, 1, 1));
    lane = texel_at(&texture, 2, 0);
    assert_true(all_are(&lane, 2.0f / 3, 0, 1.0f / 3, 1));
    lane = texel_at(&texture, 3, 0);
    assert_true(all_are(&lane, 1.0f / 3, 0, 2.0f / 3, 1));
    lane = texel_at(&texture, 3, 3);
    assert_true(all_are(&lane, 1, 0, 0, 1));
    texture = of_blocks(three, SG_TEXEL_BC1, 4, 8);
    lane = texel_at(&texture, 2, 0);
    assert_true(all_are(&lane, 127.0f / 255, 0, 127.0f / 255, 1)); /* cut off */
    lane = texel_at(&texture, 3, 0);
    assert_true(all_are(&lane, 0, 0, 0, 0));
    unsigned char with_alpha[16] = {0xf0, 0x08, 0, 0, 0, 0, 0, 0};
    memcpy(with_alpha + 8, three, 8);
    texture = of_blocks(with_alpha, SG_TEXEL_BC2, 4, 16);
    lane = texel_at(&texture, 1, 0);
    assert_true(all_are(&lane, 1, 0, 0, 1)); /* without the choice of black */
    lane = texel_at(&texture, 2, 0);
    assert_true(lane.out.f[3] == 8.0f / 15 && lane.out.f[0] == 1.0f / 3);
}

TEST(bc4_and_bc5_channel_blocks_are_decoded) {
    /* Texels 0 to 7 choose 0 to 7, with 3 bits each. */
    static const unsigned char down[8] = {210, 70, 0x88, 0xc6, 0xfa, 0, 0, 0};
    static const unsigned char up[8] = {70, 220, 0x88, 0xc6, 0xfa, 0, 0, 0};
    static const unsigned char below[8] = {0x80, 100, 0x88, 0xc6, 0xfa, 0, 0, 0};
    /* Of 65535: 36, 72, 112 or 144 256ths of the way for sevenths, 48 or 96 for fifths. */
    static const float of_down[8] = {53970, 17990, 48930, 43890, 38150, 33810, 28070, 23030};
    static const float of_up[8] = {17990, 56540, 25190, 32390, 42140, 49340, 0, 65535};
    for (int i = 0; i < 8; i++) {
        struct sg_texture texture = of_blocks(down, SG_TEXEL_BC4, 1, 8);
        struct texture_lane lane = texel_at(&texture, (float)(i % 4), (float)(i >> 2));
        assert_true(all_are(&lane, of_down[i] / 65535, 0, 0, 0));
        texture = of_blocks(up, SG_TEXEL_BC4, 1, 8);
        lane = texel_at(&texture, (float)(i % 4), (float)(i >> 2));
        assert_true(lane.out.f[0] == of_up[i] / 65535);
    }
    struct sg_texture texture = of_blocks(below, SG_TEXEL_BC4_SIGNED, 1, 8);
    assert_true(texel_at(&texture, 0, 0).out.f[0] == -1);
    assert_true(texel_at(&texture, 2, 1).out.f[0] == -1 && texel_at(&texture, 3, 1).out.f[0] == 1);
    unsigned char two[16];
    memcpy(two, down, 8);
    memcpy(two + 8, up, 8);
    texture = of_blocks(two, SG_TEXEL_BC5, 2, 16);
    struct texture_lane lane = texel_at(&texture, 2, 0);
    assert_true(all_are(&lane, 48930.0f / 65535, 25190.0f / 65535, 0, 0));
    unsigned char alpha[16] = {0x00, 0xf8, 0x1f, 0x00, 0xe4, 0, 0, 0};
    memcpy(alpha + 8, alpha, 8);
    memcpy(alpha, down, 8);
    texture = of_blocks(alpha, SG_TEXEL_BC3, 4, 16);
    lane = texel_at(&texture, 2, 0);
    assert_true(all_are(&lane, 2.0f / 3, 0, 1.0f / 3, 190.0f / 255));
}

/* Rows and columns of blocks. */
TEST(compressed_blocks_are_addressed_by_row_and_column) {
    unsigned char blocks[4][8] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}};
    struct sg_texture texture = of_blocks(blocks, SG_TEXEL_BC4, 1, 8);
    texture.levels[0].width = texture.levels[0].height = 8;
    texture.levels[0].pitch = 16;
    for (int i = 0; i < 4; i++)
        assert_true(texel_at(&texture, 3.0f + (float)(i % 2), 3.0f + (float)(i >> 1)).out.f[0] ==
                    (float)(i + 1) / 255);
}

/* Memory in pieces of 64 bytes, of which the second is not there. */
TEST(unmapped_texels_read_as_zero) {
    float texels[64];
    for (int i = 0; i < 64; i++)
        texels[i] = (float)(i + 1);
    unsigned char *pieces[4] = {(unsigned char *)texels, NULL, (unsigned char *)&texels[32],
                                (unsigned char *)&texels[48]};
    struct sg_texture texture = texture_of_floats(texels, 64, 0, 0);
    texture.levels[0].address = 0;
    texture.levels[0].view = pieces;
    struct texture_lane lanes[3] = {{.in.f = {0}}, {.in.f = {20}}, {.in.f = {40}}};
    static const char body[] = "tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}|%p, [%h1, {%f0}];";
    texture_runs(body, &texture, lanes, 3);
    assert_true(lanes[0].out.f[0] == 1 && lanes[1].out.f[0] == 0 && lanes[2].out.f[0] == 41);
    assert_true(lanes[0].predicate && !lanes[1].predicate && lanes[2].predicate);
    texture.levels[0].base = 128;
    texture.levels[0].width = 32;
    texture_runs(body, &texture, lanes, 1);
    assert_true(lanes[0].out.f[0] == 33);
    texture.levels[0].base = 0;
    texture.faults = true;
    struct texture_set set = {.each = {&texture}};
    assert_int_equal(texture_run(body, &set, lanes, 3).kind, SG_FAULT_ADDRESS);
}

/* ---- questions ------------------------------------------------------------------------------- */

static uint32_t asked(const char *question, const struct sg_texture *texture) {
    char body[128];
    const struct texture_lane in = {.in.u = {1}};
    snprintf(body, sizeof body, "%s;", question);
    return texture_once(body, texture, &in).out.u[0];
}

TEST(texture_queries_describe_the_texture) {
    static const float texels[8 * 6 * 4];
    struct sg_texture texture = texture_of_floats(texels, 8, 6, 4);
    texture.levels[1] = (struct sg_texture_level){.width = 4, .height = 3, .depth = 2};
    texture.level_count = 2;
    texture.normalized = texture.linear = true;
    texture.address[1] = SG_ADDRESS_WRAP;
    texture.address[2] = SG_ADDRESS_BORDER;
    assert_int_equal(asked("txq.width.b32 %o0, [%h1]", &texture), 8);
    assert_int_equal(asked("txq.height.b32 %o0, [TX]", &texture), 6);
    assert_int_equal(asked("txq.depth.b32 %o0, [%h1]", &texture), 4);
    assert_int_equal(asked("txq.level.width.b32 %o0, [%h1], %r0", &texture), 4);
    assert_int_equal(asked("txq.level.height.b32 %o0, [%h1], 1", &texture), 3);
    assert_int_equal(asked("txq.level.depth.b32 %o0, [%h1], 2", &texture), 0);
    assert_int_equal(asked("txq.array_size.b32 %o0, [%h1]", &texture), 0);
    assert_int_equal(asked("txq.num_mipmap_levels.b32 %o0, [%h1]", &texture), 2);
    assert_int_equal(asked("txq.num_samples.b32 %o0, [%h1]", &texture), 1);
    assert_int_equal(asked("txq.normalized_coords.b32 %o0, [%h1]", &texture), 1);
    assert_int_equal(asked("txq.filter_mode.b32 %o0, [%h1]", &texture), 1);
    assert_int_equal(asked("txq.addr_mode_0.b32 %o0, [%h1]", &texture), 3);
    assert_int_equal(asked("txq.addr_mode_1.b32 %o0, [%h1]", &texture), 0);
    assert_int_equal(asked("txq.addr_mode_2.b32 %o0, [%h1]", &texture), 4);
    assert_int_equal(asked("txq.channel_order.b32 %o0, [%h1]", &texture), 0x10b0);
    assert_int_equal(asked("txq.channel_data_type.b32 %o0, [%h1]", &texture), 0x10de);
    assert_int_equal(asked("istypep.texref %p, %h1; selp.u32 %o0, 1, 2, %p", &texture), 1);
    assert_int_equal(asked("istypep.surfref %p, %h1; selp.u32 %o0, 1, 2, %p", &texture), 2);
    assert_int_equal(asked("istypep.texref %p, %h4; selp.u32 %o0, 1, 2, %p", &texture), 2);
    texture = texture_of_floats(texels, 4, 4, 0);
    texture.layered = texture.cube = true;
    texture.levels[0].depth = 12;
    assert_int_equal(asked("txq.array_size.b32 %o0, [%h1]", &texture), 2);
    texture = of_bytes(texels, SG_TEXEL_SINT, 4, 16);
    assert_int_equal(asked("txq.channel_order.b32 %o0, [%h1]", &texture), 0x10b5);
    assert_int_equal(asked("txq.channel_data_type.b32 %o0, [%h1]", &texture), 0x10d1);
    texture.integers = true;
    assert_int_equal(asked("txq.channel_data_type.b32 %o0, [%h1]", &texture), 0x10d8);
    texture.surface = true;
    assert_int_equal(asked("suq.width.b32 %o0, [%h1]", &texture), 4);
    assert_int_equal(asked("suq.depth.b32 %o0, [SF]", &texture), 0);
    assert_int_equal(asked("istypep.surfref %p, SF; selp.u32 %o0, 1, 2, %p", &texture), 1);
}
