/* suld, sust and sured: bytes, bounds, formats, reductions. */
#include "texture_kernel.h"

static struct sg_texture surface_of(void *bytes, enum sg_texel_form form, unsigned channels,
                                    unsigned bits, unsigned width, unsigned height) {
    struct sg_texture surface = texture_of_floats(bytes, width, height, 0);
    surface.surface = true;
    surface.form = (unsigned char)form;
    surface.channels = (unsigned char)channels;
    surface.bits = (unsigned char)bits;
    surface.element = (unsigned char)(channels * bits / 8);
    surface.levels[0].pitch = (uint64_t)surface.element * width;
    surface.levels[0].layer = surface.levels[0].pitch * (height ? height : 1);
    return surface;
}

static enum sg_fault_kind fault_of(const char *body, const struct sg_texture *surface, int x,
                                   int y) {
    struct texture_set set = {.each = {surface}};
    struct texture_lane lane = {.in.i = {x, y}};
    return texture_run(body, &set, &lane, 1).kind;
}

TEST(surface_loads_of_each_width_return_the_bytes) {
    unsigned char bytes[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = (unsigned char)(0xf0 + i);
    struct sg_texture surface = surface_of(bytes, SG_TEXEL_UINT, 4, 32, 4, 0);
    const struct texture_lane at_16 = {.in.i = {16}}, at_3 = {.in.i = {3}};
    struct texture_lane lane =
        texture_once("suld.b.1d.b8.trap %o0, [%h1, {%r0}];", &surface, &at_3);
    assert_int_equal(lane.out.u[0], 0xf3); /* filled up with zeros */
    lane = texture_once("suld.b.1d.b16.trap %o0, [%h1, {%r0}];", &surface, &at_16);
    assert_int_equal(lane.out.u[0], 0x0100);
    lane = texture_once("suld.b.1d.b32.trap %o0, [%h1, %r0];", &surface, &at_16);
    assert_int_equal(lane.out.u[0], 0x03020100);
    lane = texture_once("suld.b.1d.v4.b32.trap {%o0,%o1,%o2,%o3}, [%h1, {%r0}];", &surface, &at_16);
    assert_true(lane.out.u[0] == 0x03020100 && lane.out.u[3] == 0x0f0e0d0c);
    lane = texture_once("suld.b.1d.v2.b64.trap {%q2,%q3}, [%h1, {%r0}]; mov.b64 {%o0,%o1}, %q2; "
                        "mov.b64 {%o2,%o3}, %q3;",
                        &surface, &at_16);
    assert_true(lane.out.u[0] == 0x03020100 && lane.out.u[3] == 0x0f0e0d0c);
    lane = texture_once("suld.b.1d.v2.b8.trap {%s0,%s1}, [%h1, {%r0}]; mov.b32 %o0, {%s0,%s1};",
                        &surface, &at_16);
    assert_int_equal(lane.out.u[0], 0x00010000);
    lane = texture_once("suld.b.1d.b32.trap %o0, [SF, {%r0}];", &surface, &at_16);
    assert_int_equal(lane.out.u[0], 0x03020100);
}

TEST(surface_stores_of_each_width_write_only_their_bytes) {
    unsigned char bytes[64], want[64];
    memset(bytes, 0xee, sizeof bytes);
    memset(want, 0xee, sizeof want);
    struct sg_texture surface = surface_of(bytes, SG_TEXEL_UINT, 1, 8, 16, 4);
    const struct texture_lane in = {.in.u = {8, 2, 0x04030201, 0x08070605}};
    (void)texture_once("sust.b.2d.b8.trap [%h1, {%r0,%r1}], %r2;", &surface, &in);
    want[32 + 8] = 1;
    assert_memory_equal(bytes, want, sizeof want);
    (void)texture_once("sust.b.2d.v2.b32.trap [%h1, {%r0,%r1}], {%r3,%r2};", &surface, &in);
    memcpy(&want[40], (unsigned char[]){5, 6, 7, 8, 1, 2, 3, 4}, 8);
    assert_memory_equal(bytes, want, sizeof want);
    (void)texture_once("sust.b.2d.b64.trap [%h1, {0,%r1}], %q0;", &surface, &in);
    memcpy(&want[32], (unsigned char[]){8, 0, 0, 0, 2, 0, 0, 0}, 8);
    assert_memory_equal(bytes, want, sizeof want);
    (void)texture_once("@%p sust.b.2d.b32.trap [%h1, {0,0}], %r2;", &surface, &in);
    assert_memory_equal(bytes, want, sizeof want);
}

TEST(surface_accesses_out_of_bounds_clamp_zero_or_trap) {
    uint32_t texels[4 * 3];
    for (uint32_t i = 0; i < 12; i++)
        texels[i] = 100 + i;
    struct sg_texture surface = surface_of(texels, SG_TEXEL_UINT, 1, 32, 4, 3);
    static const struct {
        int x, y;
        uint32_t clamped;
        bool inside;
    } rows[] = {{0, 0, 100, true},  {12, 2, 111, true},  {16, 0, 103, false},  {-4, 1, 104, false},
                {4, 3, 109, false}, {4, -1, 101, false}, {400, 99, 111, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct texture_lane in = {.in.i = {rows[i].x, rows[i].y, 7}};
        struct texture_lane lane =
            texture_once("suld.b.2d.b32.clamp %o0, [%h1, {%r0,%r1}];", &surface, &in);
        assert_int_equal(lane.out.u[0], rows[i].clamped);
        lane = texture_once("suld.b.2d.b32.zero %o0, [%h1, {%r0,%r1}];", &surface, &in);
        assert_int_equal(lane.out.u[0], rows[i].inside ? rows[i].clamped : 0);
        assert_int_equal(
            fault_of("suld.b.2d.b32.trap %o0, [%h1, {%r0,%r1}];", &surface, rows[i].x, rows[i].y),
            rows[i].inside ? SG_FAULT_COUNT : SG_FAULT_SURFACE);
        (void)texture_once("sust.b.2d.b32.zero [%h1, {%r0,%r1}], %r2;", &surface, &in);
        uint32_t *there = &texels[rows[i].clamped - 100];
        assert_int_equal(*there, rows[i].inside ? 7 : rows[i].clamped);
        *there = rows[i].clamped;
        (void)texture_once("sust.b.2d.b32.clamp [%h1, {%r0,%r1}], %r2;", &surface, &in);
        assert_int_equal(*there, 7);
        *there = rows[i].clamped;
        assert_int_equal(
            fault_of("sust.b.2d.b32.trap [%h1, {%r0,%r1}], %r2;", &surface, rows[i].x, rows[i].y),
            rows[i].inside ? SG_FAULT_COUNT : SG_FAULT_SURFACE);
        *there = rows[i].clamped;
    }
    assert_int_equal(fault_of("suld.b.2d.b32.zero %o0, [%h1, {%r0,%r1}];", &surface, 2, 0),
                     SG_FAULT_MISALIGNED);
    /* A vector that reaches over the end. */
    assert_int_equal(
        fault_of("suld.b.2d.v4.b32.trap {%o0,%o1,%o2,%o3}, [%h1, {%r0,%r1}];", &surface, 16, 0),
        SG_FAULT_SURFACE);
}

TEST(surface_coordinates_select_layers_slices_and_faces) {
    uint32_t texels[48];
    for (uint32_t i = 0; i < 48; i++)
        texels[i] = i;
    struct sg_texture surface = surface_of(texels, SG_TEXEL_UINT, 1, 32, 4, 2);
    const struct texture_lane in = {.in.i = {5, 4, 1, 0}};
    surface.levels[0].depth = 6;
    surface.layered = true;
    static const char a2d[] = "suld.b.a2d.b32.trap %o0, [%h1, {%r0,%r1,%r2,%r3}];";
    assert_int_equal(texture_once(a2d, &surface, &in).out.u[0], 5 * 8 + 4 + 1);
    surface.layered = false;
    surface.cube = true;
    assert_int_equal(texture_once(a2d, &surface, &in).out.u[0], 5 * 8 + 4 + 1);
    surface.cube = false;
    surface.dimensions = 3;
    assert_int_equal(
        texture_once("suld.b.3d.b32.trap %o0, [%h1, {%r1,%r2,%r0,%r3}];", &surface, &in).out.u[0],
        5 * 8 + 4 + 1);
    assert_int_equal(fault_of(a2d, &surface, 0, 0), SG_FAULT_TEXTURE);
    surface = surface_of(texels, SG_TEXEL_UINT, 1, 32, 8, 0);
    surface.levels[0].depth = 6;
    surface.layered = true;
    assert_int_equal(
        texture_once("suld.b.a1d.b32.trap %o0, [%h1, {%r0,%r1}];", &surface, &in).out.u[0],
        5 * 8 + 1);
}

/* sust.p counts texels and makes the surface's format of each register. */
TEST(formatted_surface_stores_convert_to_the_surface_format) {
    unsigned char bytes[16] = {0};
    static const char store[] = "sust.p.1d.v4.b32.trap [%h1, {%r0}], {%r1,%r2,%r3,%r4};";
    struct sg_texture surface = surface_of(bytes, SG_TEXEL_UINT, 4, 8, 4, 0);
    const struct texture_lane numbers = {.in.u = {2, 7, 255, 256, 0xffffffff}};
    (void)texture_once(store, &surface, &numbers);
    assert_memory_equal(&bytes[8], ((unsigned char[]){7, 255, 255, 255}), 4);
    surface.form = SG_TEXEL_SINT;
    const struct texture_lane with_sign = {.in.i = {1, -7, 127, 128, -129}};
    (void)texture_once(store, &surface, &with_sign);
    assert_memory_equal(&bytes[4], ((signed char[]){-7, 127, 127, -128}), 4);
    surface.form = SG_TEXEL_UNORM;
    struct texture_lane reals = {.in.i = {3}};
    memcpy(&reals.in.f[1], (float[]){0.5f, 1.5f, -1, 0.1f}, 16);
    (void)texture_once(store, &surface, &reals);
    assert_memory_equal(&bytes[12], ((unsigned char[]){127, 255, 0, 25}), 4);
    surface = surface_of(bytes, SG_TEXEL_FLOAT, 2, 16, 4, 0);
    (void)texture_once(store, &surface, &reals);
    assert_memory_equal(&bytes[12], ((uint16_t[]){0x3800, 0x3e00}), 4);
    surface = surface_of(bytes, SG_TEXEL_FLOAT, 2, 32, 2, 0);
    reals.in.i[0] = 0;
    (void)texture_once("sust.p.1d.b32.trap [%h1, {%r0}], %f1;", &surface, &reals);
    assert_memory_equal(bytes, ((float[]){0.5f, 0}), 8); /* a missing channel is 0 */
    assert_int_equal(fault_of("sust.p.1d.b32.trap [%h1, {%r0}], %r1;", &surface, 2, 0),
                     SG_FAULT_SURFACE);
}

TEST(surface_reductions_combine_all_lanes) {
    struct {
        uint32_t sum, least, most, both;
        uint64_t long_sum, long_least;
    } got = {0, UINT32_MAX, 0, UINT32_MAX, 1, (uint64_t)100};
    struct sg_texture surface = surface_of(&got, SG_TEXEL_SINT, 1, 32, 8, 0);
    struct texture_lane lanes[100] = {0};
    for (int i = 0; i < 100; i++)
        lanes[i].in.i[0] = i - 50;
    texture_runs("sured.b.add.1d.u32.trap [%h1, {0}], %r0; sured.b.min.1d.u32.trap [%h1, {4}], %r0;"
                 "sured.b.max.1d.s32.trap [%h1, {8}], %r0; or.b32 %r1, %r0, 0x30;"
                 "sured.b.and.1d.b32.trap [%h1, {12}], %r1;"
                 "mov.b64 %q2, {%r0, %r2}; sured.b.add.1d.u64.trap [%h1, {16}], %q2;"
                 "cvt.s64.s32 %q2, %r0; sured.b.min.1d.s64.trap [%h1, {24}], %q2;"
                 "sured.b.add.1d.u32.zero [%h1, {32}], %r0;",
                 &surface, lanes, 100);
    assert_int_equal((int32_t)got.sum, -50);
    MEMBERS(got, (least, 0), (most, 49), (both, 0x30), (long_least, -50));
    uint64_t sum = 1;
    for (int i = -50; i < 50; i++)
        sum += (uint32_t)i;
    assert_true(got.long_sum == sum);
    /* .p counts texels, and the surface says whether they have a sign. */
    got.least = 5;
    texture_runs("sured.p.min.1d.b32.trap [%h1, {1}], %r0;", &surface, lanes, 1);
    assert_int_equal((int32_t)got.least, -50);
    surface.form = SG_TEXEL_UINT;
    got.least = 5;
    texture_runs("sured.p.min.1d.b32.trap [%h1, {1}], %r0;", &surface, lanes, 1);
    assert_int_equal(got.least, 5);
    assert_int_equal(fault_of("sured.p.min.1d.b64.trap [%h1, {1}], %q0;", &surface, 0, 0),
                     SG_FAULT_TEXTURE);
}
