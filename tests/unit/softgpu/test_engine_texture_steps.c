/*
 * The steps of filters, borders and formats, against what an H200 answered
 * (tests/parity/recordings/h200-580.159.04-kernels.txt.xz, kernel-texture/...): inputs where
 * another order of steps, or another rounding, gives another last bit.
 */
#include "texture_kernel.h"

static const char row[] = "tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0}];";
static const char plane[] = "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}];";
static const char space[] = "tex.3d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1,%f2,%f2}];";

struct recorded {
    unsigned lane;
    uint32_t bits;
};

/* Texels of exponents far apart, and the places of lanes, as the scenario has them. */
static void compare_sums(const char *read, const struct sg_texture *texture,
                         const struct recorded *want, size_t count) {
    for (size_t k = 0; k < count; k++) {
        unsigned i = want[k].lane;
        const struct texture_lane in = {.in.f = {(float)(i * 37 % 512) / 64 + 0.1f,
                                                 (float)(i * 53 % 512) / 64 + 0.3f,
                                                 (float)(i * 11 % 128) / 64 + 0.2f}};
        const struct texture_lane out = texture_once(read, texture, &in);
        if (out.out.u[0] != want[k].bits)
            fail_msg("lane %u: %08x, not %08x", i, out.out.u[0], want[k].bits);
    }
}

TEST(filtered_sums_of_floats_match_the_h200) {
    static const float values[8] = {1, 3e-8f, 16777216, -5, 0.1f, 1e10f, -1e10f, 7};
    static const struct recorded of_plane[] = {{8, 0x507ae001},  {12, 0xd03c02c1}, {20, 0xc0b5c99a},
                                               {24, 0x4f04b6a6}, {32, 0x4c3dc000}, {39, 0xd00b1dc6},
                                               {49, 0xbeb86667}, {62, 0xc1351ccd}};
    static const struct recorded of_space[] = {
        {3, 0x4bb10000},  {13, 0x41c7b800}, {31, 0x4c58c000}, {35, 0xc03c999a}, {39, 0xd0ac4b70},
        {42, 0x40e82000}, {49, 0xbef13334}, {51, 0x51175705}, {52, 0xd09c499e}};
    float texels[64];
    for (int i = 0; i < 64; i++)
        texels[i] = values[i % 8] * (float)(1 + (i >> 3));
    struct sg_texture texture = texture_of_floats(texels, 8, 8, 0);
    texture.linear = true;
    for (int a = 0; a < 3; a++)
        texture.address[a] = SG_ADDRESS_CLAMP;
    compare_sums(plane, &texture, of_plane, sizeof of_plane / sizeof of_plane[0]);
    texture = texture_of_floats(texels, 8, 4, 2);
    texture.linear = true;
    for (int a = 0; a < 3; a++)
        texture.address[a] = SG_ADDRESS_CLAMP;
    compare_sums(space, &texture, of_space, sizeof of_space / sizeof of_space[0]);
}

static struct sg_texture of_bytes(const void *bytes, unsigned width) {
    struct sg_texture texture = texture_of_floats(bytes, width, 0, 0);
    texture.form = SG_TEXEL_UINT;
    texture.channels = 4;
    texture.bits = 8;
    texture.element = 4;
    texture.address[0] = texture.address[1] = SG_ADDRESS_CLAMP;
    return texture;
}

/* Parts of 1 are summed in 16 bits; linear values of sRGB in 8, and the sum has 11. */
TEST(filtered_sums_of_bytes_match_the_h200) {
    unsigned char texels[256][4];
    for (int i = 0; i < 256; i++)
        memset(texels[i], i, 4);
    struct sg_texture texture = of_bytes(texels, 256);
    texture.linear = texture.srgb = true;
    static const struct {
        unsigned lane;
        uint32_t srgb, part;
    } want[] = {{0, 0x387f0000, 0x3a4c00cc},  {1, 0x3aa6e000, 0x3c860086},
                {2, 0x3b22e000, 0x3d02c083},  {7, 0x3c3de000, 0x3de0c8e1},
                {12, 0x3cf06000, 0x3e401cc0}, {16, 0x3d506000, 0x3e7fe100},
                {39, 0x3ea82000, 0x3f1ba39c}, {63, 0x3f74a000, 0x3f7b49fb}};
    for (size_t k = 0; k < sizeof want / sizeof want[0]; k++) {
        const struct texture_lane in = {.in.f = {(float)want[k].lane * 3.97f + 0.7f}};
        const struct texture_lane out = texture_once(row, &texture, &in);
        MEMBERS(out.out, (u[0], want[k].srgb), (u[3], want[k].part));
    }
    /* Single codes: around the groups of eight that share an exponent. */
    static const struct recorded codes[] = {
        {1, 0x39a00000},  {12, 0x3b700000},  {32, 0x3c6c0000},  {65, 0x3d580000}, {70, 0x3d7a0000},
        {97, 0x3df40000}, {184, 0x3ef60000}, {251, 0x3f760000}, {255, 0x3f800000}};
    for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++) {
        const struct texture_lane in = {.in.f = {(float)codes[k].lane + 0.5f}};
        assert_int_equal(texture_once(row, &texture, &in).out.u[0], codes[k].bits);
    }
}

/* A border of 0.3: of floats as it is, of bytes cut off at 76/255; and a row lies half in the
 * border above it, where the second axis has one. */
TEST(filtered_borders_match_the_h200) {
    static const float texels[4] = {1, 2, 3, 4};
    static const unsigned char bytes[4][4] = {{1, 2, 3, 4}};
    struct sg_texture texture = of_bytes(bytes, 1);
    texture.border[0] = 0.3f;
    texture.address[0] = texture.address[1] = SG_ADDRESS_BORDER;
    const struct texture_lane outside = {.in.f = {-1}};
    assert_int_equal(texture_once(row, &texture, &outside).out.u[0], 0x3e989899);
    texture = texture_of_floats(texels, 4, 0, 0);
    texture.border[0] = 0.3f;
    texture.linear = true;
    texture.address[0] = texture.address[1] = SG_ADDRESS_BORDER;
    const struct texture_lane first = {.in.f = {0}}, last = {.in.f = {4}};
    assert_int_equal(texture_once(row, &texture, &first).out.u[0], 0x3ef33334);
    assert_int_equal(texture_once(row, &texture, &last).out.u[0], 0x3f9ccccd);
    assert_int_equal(texture_once(row, &texture, &outside).out.u[0], 0x3e99999a);
}

static struct sg_texture of_blocks(const void *blocks, enum sg_texel_form form) {
    struct sg_texture texture = texture_of_floats(blocks, 4, 4, 0);
    texture.form = (unsigned char)form;
    texture.channels = 4;
    texture.bits = 8;
    texture.element = form == SG_TEXEL_BC1 || form >= SG_TEXEL_BC4 ? 8 : 16;
    return texture;
}

/* The first eight texels choose 0 to 7: 3 bits each. */
TEST(decoded_blocks_match_the_h200) {
    /* BC1: red 25 and 14, green 8 and 31, blue 11 and 1; texels choose 0 to 3. */
    static const unsigned char colours[8] = {0x0b, 0xc9, 0xe1, 0x73, 0xe4, 0, 0, 0};
    static const uint8_t of_colours[4][3] = {
        {206, 32, 90}, {115, 125, 8}, {176, 61, 63}, {145, 96, 35}};
    struct sg_texture texture = of_blocks(colours, SG_TEXEL_BC1);
    for (int i = 0; i < 4; i++) {
        const struct texture_lane in = {.in.f = {(float)i + 0.5f, 0.5f}};
        struct texture_lane out = texture_once(plane, &texture, &in);
        for (int c = 0; c < 3; c++)
            assert_true(out.out.f[c] == (float)of_colours[i][c] / 255);
    }
    static const struct {
        enum sg_texel_form form;
        unsigned char ends[2];
        uint32_t want[8]; /* 1: not recorded */
    } rows[] = {
        {SG_TEXEL_BC4,
         {203, 201},
         {0x3f4bcbcc, 0x3f49c9ca, 0x3f4b83cc, 0x3f4b3bcb, 0x3f4ae9cb, 0x3f4aabcb, 0x3f4a59ca,
          0x3f4a11ca}},
        {SG_TEXEL_BC4,
         {3, 49},
         {0x3c40c0c1, 0x3e44c4c5, 1, 0x3da218a2, 0x3dff8900, 0x3e2244a2, 0, 0x3f800000}},
        {SG_TEXEL_BC4_SIGNED,
         {0xdb, 121}, /* -37 */
         {1, 0x3f73e7e8, 0xbd7541eb, 0x3e2fb15f, 0x3efacdf6, 0x3f38a771, 0xbf800000, 0x3f800000}},
        {SG_TEXEL_BC4_SIGNED,
         {0xcb, 0xc9}, /* -53, -55 */
         {0xbed5a9ab, 0xbeddb9bb, 0xbed6c9ae, 0xbed7e9b0, 0xbed939b2, 0xbeda29b4, 0xbedb79b7,
          0xbedc99b9}}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        for (int i = 0; i < 8; i++) {
            unsigned char block[8] = {rows[k].ends[0], rows[k].ends[1], 0x88, 0xc6, 0xfa};
            texture = of_blocks(block, rows[k].form);
            const struct texture_lane in = {
                .in.f = {(float)(i % 4) + 0.5f, (float)(i >> 2) + 0.5f}};
            struct texture_lane out = texture_once(plane, &texture, &in);
            if (rows[k].want[i] != 1)
                assert_int_equal(out.out.u[0], rows[k].want[i]);
        }
    unsigned char alpha[16] = {19, 225, 0x88, 0xc6, 0xfa};
    static const uint32_t of_alpha[6] = {1,          0x3f61e1e2, 0x3e68e8e9,
                                         0x3ec0c0c1, 0x3f149495, 0x3f3ababb};
    texture = of_blocks(alpha, SG_TEXEL_BC3);
    for (int i = 1; i < 6; i++) {
        const struct texture_lane in = {.in.f = {(float)(i % 4) + 0.5f, (float)(i >> 2) + 0.5f}};
        assert_int_equal(texture_once(plane, &texture, &in).out.u[3], of_alpha[i]);
    }
}

/* Corners and edges of cubes, and what a gather finds in place of the texel that a corner lacks. */
TEST(cube_edges_corners_and_gathers_match_the_h200) {
    float texels[6 * 16];
    for (int i = 0; i < 6 * 16; i++)
        texels[i] = (float)(i * 256);
    struct sg_texture texture = texture_of_floats(texels, 4, 4, 6);
    texture.cube = texture.normalized = texture.linear = texture.seamless = true;
    texture.dimensions = 2;
    static const struct {
        float at[3];
        uint32_t want;
    } rows[] = {{{-1, -1, -1}, 0x46748800},        {{1, 1, 1}, 0x46187400},
                {{-1, 0, -1}, 0x465e0000},         {{0, 0, 0}, 0x468f0000},
                {{-1, -0.97f, 0.93f}, 0x46408c00}, {{-1, -0.9f, 0.93f}, 0x463ebc00}};
    static const char read[] = "tex.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1,%f2,%f2}];";
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const struct texture_lane in = {.in.f = {rows[k].at[0], rows[k].at[1], rows[k].at[2]}};
        assert_int_equal(texture_once(read, &texture, &in).out.u[0], rows[k].want);
    }
    const struct texture_lane corner = {.in.f = {-1, -0.97f, 0.93f}};
    struct texture_lane out = texture_once(
        "tld4.r.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1,%f2,%f2}];", &texture, &corner);
    static const uint32_t gathered[4] = {0x46400000, 0x464e5800, 0x46980000, 0x45f80000};
    for (int i = 0; i < 4; i++)
        assert_int_equal(out.out.u[i], gathered[i]);
    /* The last column's end is beyond it: address modes hold within a face. */
    texture.seamless = texture.linear = false;
    const struct texture_lane end = {.in.f = {-1, -1, -1}};
    texture.address[0] = texture.address[1] = SG_ADDRESS_WRAP;
    assert_int_equal(texture_once(read, &texture, &end).out.u[0], 0x46a00000);
    texture.address[0] = texture.address[1] = SG_ADDRESS_CLAMP;
    assert_int_equal(texture_once(read, &texture, &end).out.u[0], 0x46be0000);
}

/* Only linear memory is a row to read by numbers. */
TEST(integer_fetches_from_a_row_need_linear_memory) {
    static const float texels[4] = {1, 2, 3, 4};
    static const char fetch[] = "tex.1d.v4.u32.s32 {%o0,%o1,%o2,%o3}, [%h1, {%r0}];";
    struct sg_texture texture = texture_of_floats(texels, 4, 0, 0);
    const struct texture_lane third = {.in.i = {3}};
    assert_int_equal(texture_once(fetch, &texture, &third).out.u[0], 0);
    texture.memory = true;
    assert_int_equal(texture_once(fetch, &texture, &third).out.u[0], 0x40800000);
}

TEST(packed_surface_stores_truncate_as_the_h200_does) {
    static const struct {
        uint32_t in[4], want;
    } rows[] = {{{0x80000000, 0xffffffff, 0xffffff80, 0x3f000000}, 0x40000000},
                {{0xffffff80, 0x3f000000, 0x3f800000, 0xbf800000}, 0x3ff7fc00},
                {{0x3f000000, 0x3f800000, 0xbf800000, 0x40000000}, 0xc00ffdff},
                {{0x7fc00000, 0x3b008081, 0x477fefff, 0x00800000}, 0x3ff00800}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        uint32_t word = 5;
        struct sg_texture surface = texture_of_floats((const float *)(const void *)&word, 1, 1, 0);
        struct texture_lane in = {.in.u = {0, 0}};
        surface.surface = true;
        surface.form = SG_TEXEL_1010102;
        surface.channels = 4;
        memcpy(&in.in.u[4], rows[k].in, sizeof rows[k].in);
        texture_once("sust.p.2d.v4.b32.zero [%h1, {%r0,%r1}], {%r4,%r5,%r6,%r7};", &surface, &in);
        assert_int_equal(word, rows[k].want);
    }
}
