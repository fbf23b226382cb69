/* tex and tld4: coordinates, modes, filters, layers, cubes and levels, against a reference that
 * counts in whole numbers. */
#include "texture_kernel.h"

#include <math.h>

/* ---- the reference: coordinates in 1/1024 of a texel ----------------------------------------- */

#define UNIT 1024

/* The number of the texel that stands for texel i, step by step; -1: the border. */
static int stands_for(int i, int n, enum sg_address_mode mode) {
    while (i < 0 || i >= n) {
        if (mode == SG_ADDRESS_BORDER)
            return -1;
        if (mode == SG_ADDRESS_CLAMP)
            i += i < 0 ? 1 : -1;
        else if (mode == SG_ADDRESS_WRAP)
            i += i < 0 ? n : -n;
        else
            i = i < 0 ? -1 - i : 2 * n - 1 - i;
    }
    return i;
}

static int floor_of(int value, int by) {
    return value / by - (value % by < 0);
}

struct reference {
    const float *texels;
    int size[3];
    enum sg_address_mode mode[3];
    bool linear;
    float border;
};

/* The value of texel (i, j, k), any of which may lie outside. */
static double texel(const struct reference *r, const int *at) {
    int place[3];
    for (int a = 0; a < 3; a++)
        if ((place[a] = stands_for(at[a], r->size[a], r->mode[a])) < 0)
            return (double)r->border;
    return (double)r->texels[(place[2] * r->size[1] + place[1]) * r->size[0] + place[0]];
}

/* Half of one is rounded up. */
static int share(int of, int fraction) {
    return floor_of(of * fraction + 128, 256);
}

/* The texels around a place by whole weights of 256: of both planes of z first, then of the columns
 * of each, along x, and then of both ends of each column, along y. CLAMP leaves one texel beyond an
 * edge; a row is a plane sampled at 0. */
static double linear(const struct reference *r, const int *at, int axes) {
    int first[3] = {0}, fraction[3] = {0};
    for (int a = 0; a < 3; a++) {
        if (a >= axes && !(axes == 1 && a == 1))
            continue;
        int moved = (a < axes ? at[a] : 0) - UNIT / 2;
        int fixed = floor_of(moved * 256 + UNIT / 2, UNIT);
        first[a] = floor_of(fixed, 256);
        fraction[a] = fixed - first[a] * 256;
        if (r->mode[a] == SG_ADDRESS_CLAMP && (first[a] < 0 || first[a] >= r->size[a] - 1)) {
            first[a] = first[a] < 0 ? 0 : r->size[a] - 1;
            fraction[a] = 0;
        }
    }
    double sum = 0;
    for (int x = 0; x < 2; x++)
        for (int z = 0; z < 2; z++) {
            int plane = z ? fraction[2] : 256 - fraction[2];
            int right = share(plane, fraction[0]), column = x ? right : plane - right;
            int second = x ? share(column, fraction[1]) : column - share(column, 256 - fraction[1]);
            for (int y = 0; y < 2; y++) {
                int weight = y ? second : column - second;
                const int place[3] = {first[0] + x, first[1] + y, first[2] + z};
                sum += weight ? weight * texel(r, place) : 0;
            }
        }
    return sum / 256;
}

static double nearest(const struct reference *r, const int *at, int axes) {
    int place[3] = {0};
    for (int a = 0; a < axes; a++)
        place[a] = floor_of(at[a], UNIT);
    return texel(r, place);
}

static const char *const reads[3] = {
    "tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0}];",
    "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}];",
    "tex.3d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1,%f2,%f3}];",
};

/* Whole numbers up to 4,095: all sums of the filter are exact. */
static float noise(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 20);
}

static void compare(const struct reference *r, struct sg_texture *texture, int axes,
                    unsigned *state) {
    struct texture_lane lanes[256] = {0};
    int at[256][3] = {{0}};
    for (int i = 0; i < 256; i++)
        for (int a = 0; a < axes; a++) {
            /* Three sizes to either side; sizes are powers of two, so quotients are exact. */
            at[i][a] = (int)noise(state) % (7 * r->size[a] * 64) * (UNIT / 64) -
                       3 * r->size[a] * UNIT + (i % 3 == 0 ? (int)noise(state) % 16 : 0);
            float value = (float)at[i][a] / UNIT;
            lanes[i].in.f[a] = texture->normalized ? value / (float)r->size[a] : value;
        }
    texture_runs(reads[axes - 1], texture, lanes, 256);
    for (int i = 0; i < 256; i++) {
        double want = r->linear ? linear(r, at[i], axes) : nearest(r, at[i], axes);
        if (lanes[i].out.f[0] != (float)want || lanes[i].out.f[1] != 0 || lanes[i].out.f[2] != 0 ||
            lanes[i].out.f[3] != 0)
            fail_msg("%d axes, %d/1024 %d/1024 %d/1024, modes %d %d %d, linear %d: %g, not %g",
                     axes, at[i][0], at[i][1], at[i][2], (int)r->mode[0], (int)r->mode[1],
                     (int)r->mode[2], r->linear, (double)lanes[i].out.f[0], want);
    }
}

TEST(every_address_mode_and_filter_matches_the_reference) {
    static const int sizes[3][3] = {{16, 1, 1}, {8, 4, 1}, {8, 2, 4}};
    unsigned seed = 7;
    float texels[64];
    for (int i = 0; i < 64; i++)
        texels[i] = noise(&seed);
    for (unsigned what = 0; what < 3 * 2 * 2 * 16; what++) {
        int axes = 1 + (int)(what % 3);
        const int *size = sizes[axes - 1];
        bool normalized = what / 3 % 2;
        struct reference r = {.texels = texels, .linear = what / 6 % 2, .border = 4000};
        struct sg_texture texture =
            texture_of_floats(texels, (unsigned)size[0], axes > 1 ? (unsigned)size[1] : 0,
                              axes > 2 ? (unsigned)size[2] : 0);
        unsigned modes = what / 12; /* of the first two axes; the third has the first's */
        for (int a = 0; a < 3; a++) {
            unsigned mode = a == 1 ? modes / 4 : modes % 4;
            bool turns = mode == SG_ADDRESS_WRAP || mode == SG_ADDRESS_MIRROR;
            texture.address[a] = (unsigned char)mode;
            r.size[a] = size[a];
            r.mode[a] = turns && !normalized ? SG_ADDRESS_CLAMP : (enum sg_address_mode)mode;
        }
        texture.normalized = normalized;
        texture.linear = r.linear;
        texture.border[0] = r.border;
        compare(&r, &texture, axes, &seed);
    }
}

/* 8 bits of fraction, to the nearest; the greatest is the next texel itself. */
TEST(filter_fractions_have_eight_bits) {
    static const float texels[2] = {0, 256};
    struct sg_texture texture = texture_of_floats(texels, 2, 0, 0);
    texture.linear = true;
    struct texture_lane lanes[8] = {0};
    static const float at[8] = {0.5f, 0.5f + 1.0f / 256, 0.5f + 1.4f / 256, 0.5f + 1.6f / 256,
                                1,    1.5f - 0.6f / 256, 1.5f - 0.4f / 256, 1.5f};
    static const float want[8] = {0, 1, 1, 2, 128, 255, 256, 256};
    for (int i = 0; i < 8; i++)
        lanes[i].in.f[0] = at[i];
    texture_runs(reads[0], &texture, lanes, 8);
    for (int i = 0; i < 8; i++)
        assert_true(lanes[i].out.f[0] == want[i]);
}

TEST(infinite_and_nan_coordinates_are_clamped) {
    static const float texels[4] = {1, 2, 3, 4};
    struct sg_texture texture = texture_of_floats(texels, 4, 0, 0);
    struct texture_lane lanes[4] = {
        {.in.f = {INFINITY}}, {.in.f = {-INFINITY}}, {.in.f = {NAN}}, {.in.f = {3.0e38f}}};
    texture_runs(reads[0], &texture, lanes, 4);
    assert_true(lanes[0].out.f[0] == 4 && lanes[1].out.f[0] == 1);
    assert_true(lanes[2].out.f[0] == 1 && lanes[3].out.f[0] == 4);
}

TEST(texture_offsets_count_texels) {
    float texels[64];
    for (int i = 0; i < 64; i++)
        texels[i] = (float)i;
    struct sg_texture texture = texture_of_floats(texels, 8, 8, 0);
    const struct texture_lane in = {.in.i = {0x40200000 /* 2.5 */, 0x40600000 /* 3.5 */}};
    struct texture_lane out = texture_once(
        "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}], {1,-2};", &texture, &in);
    assert_true(out.out.f[0] == 8 * 1 + 3);
    texture = texture_of_floats(texels, 8, 0, 0);
    out = texture_once("mov.b32 %r5, -8; tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0}], %r5;",
                       &texture, &in);
    assert_true(out.out.f[0] == 0);
    texture = texture_of_floats(texels, 4, 4, 4);
    out = texture_once("mov.f32 %f2, 0f3F000000; tex.3d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, "
                       "{%f0,%f1,%f2,%f2}], {-1,-1,2,0};",
                       &texture, &in);
    assert_true(out.out.f[0] == 32 + 4 * 2 + 1);
}

TEST(integer_coordinates_fetch_single_texels) {
    float texels[16];
    for (int i = 0; i < 16; i++)
        texels[i] = (float)(i + 1);
    struct sg_texture texture = texture_of_floats(texels, 16, 0, 0);
    struct texture_lane lanes[4] = {{.in.i = {0}}, {.in.i = {15}}, {.in.i = {16}}, {.in.i = {-1}}};
    texture.memory = texture.linear = true;
    texture_runs("tex.1d.v4.f32.s32 {%o0,%o1,%o2,%o3}, [%h1, {%r0}];", &texture, lanes, 4);
    assert_true(lanes[0].out.f[0] == 1 && lanes[1].out.f[0] == 16);
    assert_true(lanes[2].out.f[0] == 0 && lanes[3].out.f[0] == 0);
    texture = texture_of_floats(texels, 4, 2, 0);
    texture.levels[1] = texture.levels[0];
    texture.levels[1].address += 32;
    texture.levels[1].width = 2;
    texture.level_count = 2;
    const struct texture_lane in = {.in.i = {1, 1, 1, 2}};
    struct texture_lane out = texture_once(
        "tex.level.2d.v4.f32.s32 {%o0,%o1,%o2,%o3}, [%h1, {%r0,%r1}], %r2;", &texture, &in);
    assert_true(out.out.f[0] == 8 + 4 + 1 + 1);
    out = texture_once("tex.level.2d.v4.f32.s32 {%o0,%o1,%o2,%o3}, [%h1, {%r0,%r1}], %r3;",
                       &texture, &in); /* no such level */
    assert_true(out.out.f[0] == 0);
}

TEST(layer_numbers_are_clamped) {
    float texels[24];
    for (int i = 0; i < 24; i++)
        texels[i] = (float)i;
    struct sg_texture texture = texture_of_floats(texels, 4, 2, 0);
    texture.layered = true;
    texture.levels[0].depth = 3;
    struct texture_lane lanes[4] = {{.in.i = {0}}, {.in.i = {1}}, {.in.i = {2}}, {.in.i = {9}}};
    for (int i = 0; i < 4; i++) {
        lanes[i].in.f[1] = 1.5f;
        lanes[i].in.f[2] = 1.5f;
    }
    texture_runs("tex.a2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%r0,%f1,%f2,%f2}];", &texture, lanes,
                 4);
    for (int i = 0; i < 4; i++)
        assert_true(lanes[i].out.f[0] == (float)((i < 2 ? i : 2) * 8 + 5));
    texture = texture_of_floats(texels, 8, 0, 0);
    texture.layered = true;
    texture.levels[0].depth = 3;
    texture_runs("tex.a1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%r0,%f1}];", &texture, lanes, 4);
    for (int i = 0; i < 4; i++)
        assert_true(lanes[i].out.f[0] == (float)((i < 2 ? i : 2) * 8 + 1));
}

/* ---- gathers --------------------------------------------------------------------------------- */

TEST(a_gather_returns_its_texels_in_order) {
    float texels[16 * 4];
    for (int i = 0; i < 64; i++)
        texels[i] = (float)((i >> 2) + 100 * (i % 4));
    struct sg_texture texture = texture_of_floats(texels, 4, 4, 0);
    texture.channels = 4;
    texture.element = 16;
    texture.levels[0].pitch = 64;
    /* Between texels 1 and 2, rows 2 and 3. */
    const struct texture_lane in = {.in.f = {2.1f, 3.2f}};
    static const char *const components[4] = {"r", "g", "b", "a"};
    for (int c = 0; c < 4; c++) {
        char body[128];
        snprintf(body, sizeof body,
                 "tld4.%s.2d.v4.f32.f32 {%%o0,%%o1,%%o2,%%o3}, [%%h1, {%%f0,%%f1}];",
                 components[c]);
        struct texture_lane out = texture_once(body, &texture, &in);
        static const int want[4] = {13, 14, 10, 9};
        for (int i = 0; i < 4; i++)
            assert_true(out.out.f[i] == (float)(want[i] + 100 * c));
    }
}

/* ---- cubes ----------------------------------------------------------------------------------- */

#define FACE 4 /* texels of a side; shifts below count in rows and faces of this */

static struct sg_texture cube(float *texels, unsigned cubes) {
    for (unsigned i = 0; i < cubes * 6 * FACE * FACE; i++)
        texels[i] = (float)((i >> 4) * 100 + i % (FACE * FACE));
    struct sg_texture texture = texture_of_floats(texels, FACE, FACE, 0);
    texture.cube = true;
    texture.layered = cubes > 1;
    texture.levels[0].depth = 6 * cubes;
    return texture;
}

/* The corner of each face that a direction near it meets: by the table of the guide. */
TEST(a_direction_selects_the_cube_face) {
    float texels[2 * 6 * FACE * FACE] = {0};
    struct sg_texture texture = cube(texels, 1);
    static const struct {
        float x, y, z;
        int face, column, row;
    } rays[] = {
        {1, 0.9f, 0.8f, 0, 0, 0},    {1, -0.8f, -0.9f, 0, 3, 3},  {-1, 0.9f, 0.9f, 1, 3, 0},
        {-1, -0.9f, -0.9f, 1, 0, 3}, {0.9f, 1, 0.8f, 2, 3, 3},    {-0.9f, 1, -0.9f, 2, 0, 0},
        {0.9f, -1, 0.9f, 3, 3, 0},   {-0.9f, -1, -0.9f, 3, 0, 3}, {0.9f, 0.9f, 1, 4, 3, 0},
        {-0.1f, -0.1f, 1, 4, 1, 2},  {0.9f, 0.9f, -1, 5, 0, 0},   {-0.9f, -0.2f, -1, 5, 3, 2},
    };
    struct texture_lane lanes[12] = {0};
    for (int i = 0; i < 12; i++) {
        lanes[i].in.f[0] = rays[i].x * 3;
        lanes[i].in.f[1] = rays[i].y * 3;
        lanes[i].in.f[2] = rays[i].z * 3;
        lanes[i].in.u[3] = 1;
    }
    texture_runs("tex.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1,%f2,%f2}];", &texture,
                 lanes, 12);
    for (int i = 0; i < 12; i++)
        assert_true(lanes[i].out.f[0] ==
                    (float)(rays[i].face * 100 + rays[i].row * FACE + rays[i].column));
    texture = cube(texels, 2);
    texture_runs("tex.acube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%r3,%f0,%f1,%f2}];", &texture,
                 lanes, 12);
    for (int i = 0; i < 12; i++)
        assert_true(lanes[i].out.f[0] ==
                    (float)((rays[i].face + 6) * 100 + rays[i].row * FACE + rays[i].column));
}

/* On an edge, half of each face's outermost texel; in a corner, a third of each. */
TEST(seamless_cubes_filter_across_edges_and_corners) {
    float texels[6 * FACE * FACE] = {0};
    struct sg_texture texture = cube(texels, 1);
    texture.linear = texture.seamless = true;
    /* Face 4 (+z), its right edge, in the middle of row 1: beside it face 0 (+x), column 0. */
    const struct texture_lane right = {.in.f = {1, 0.25f, 1}};
    struct texture_lane out = texture_once(
        "tex.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1,%f2,%f2}];", &texture, &right);
    assert_true(out.out.f[0] == (float)((400 + 4 + 3) + (0 + 4)) / 2);
    /* Its upper edge, column 2: below it face 2 (+y), the last row. */
    const struct texture_lane up = {.in.f = {0.25f, 1, 1}};
    out = texture_once("tex.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1,%f2,%f2}];", &texture,
                       &up);
    assert_true(out.out.f[0] == (float)((400 + 2) + (200 + 12 + 2)) / 2);
    const struct texture_lane corner = {.in.f = {1, 1, 1}};
    out = texture_once("tex.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1,%f2,%f2}];", &texture,
                       &corner);
    /* A third of the fourth's quarter goes to each: 21, 22 and 21 of 256. */
    assert_true(out.out.f[0] == (float)(86 * (400 + 3) + 85 * (200 + 15)) / 256);
    /* Without the flag, the edge's own texels alone. */
    texture.seamless = false;
    out = texture_once("tex.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1,%f2,%f2}];", &texture,
                       &right);
    assert_true(out.out.f[0] == 407);
}

/* Every texel beyond every edge: the nearest texel of any other face, by distance in space. */
static void centre(int face, double s, double t, double to[3]) {
    static const int axes[6][3][3] = {
        {{0, 0, -1}, {0, -1, 0}, {1, 0, 0}}, {{0, 0, 1}, {0, -1, 0}, {-1, 0, 0}},
        {{1, 0, 0}, {0, 0, 1}, {0, 1, 0}},   {{1, 0, 0}, {0, 0, -1}, {0, -1, 0}},
        {{1, 0, 0}, {0, -1, 0}, {0, 0, 1}},  {{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}}};
    for (int i = 0; i < 3; i++)
        to[i] = s * axes[face][0][i] + t * axes[face][1][i] + axes[face][2][i];
}

static float nearest_elsewhere(const float *texels, int face, double s, double t) {
    double from[3], best = 100;
    float value = -1;
    centre(face, s, t, from);
    for (int other = 0; other < 6; other++)
        for (int i = 0; other != face && i < FACE * FACE; i++) {
            double at[3], sum = 0;
            centre(other, (i % FACE + 0.5) * 2 / FACE - 1, ((i >> 2) + 0.5) * 2 / FACE - 1, at);
            for (int a = 0; a < 3; a++)
                sum += (at[a] - from[a]) * (at[a] - from[a]);
            if (sum < best) {
                best = sum;
                value = texels[other * FACE * FACE + i];
            }
        }
    return value;
}

TEST(every_cube_edge_filters_with_its_neighbour) {
    float texels[6 * FACE * FACE] = {0};
    struct sg_texture texture = cube(texels, 1);
    texture.linear = texture.seamless = true;
    for (int face = 0; face < 6; face++)
        for (int edge = 0; edge < 4; edge++)
            for (int i = 0; i < FACE; i++) {
                /* Three quarters of a texel from the edge's centre line: a footprint over it. */
                double along_it = (i + 0.5) * 2 / FACE - 1, side = edge & 1 ? 1 : -1, d[3];
                centre(face, edge < 2 ? side : along_it, edge < 2 ? along_it : side, d);
                struct texture_lane in = {.in.f = {(float)d[0], (float)d[1], (float)d[2]}};
                struct texture_lane out =
                    texture_once("tld4.r.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, "
                                 "{%f0,%f1,%f2,%f2}];",
                                 &texture, &in);
                int meets = 0; /* the face that the edge counts as */
                for (int k = 0; k < 4; k++)
                    meets |= 1 << (int)out.out.f[k] / 100;
                double out_by = side * (1 + 1.0 / FACE);
                float want = nearest_elsewhere(texels, face, edge < 2 ? out_by : along_it,
                                               edge < 2 ? along_it : out_by);
                assert_true(meets >> face & 1 && meets >> (int)want / 100 & 1);
                bool found = false;
                for (int k = 0; k < 4; k++)
                    found |= out.out.f[k] == want;
                assert_true(found);
            }
}

/* ---- levels ---------------------------------------------------------------------------------- */

static struct sg_texture levels(float *texels) {
    struct sg_texture texture = texture_of_floats(texels, 8, 8, 0);
    unsigned at = 0;
    texture.normalized = true;
    texture.level_count = 4;
    for (unsigned l = 0; l < 4; l++) {
        struct sg_texture_level *level = &texture.levels[l];
        *level = (struct sg_texture_level){.address = (uint64_t)(uintptr_t)&texels[at],
                                           .pitch = (8u >> l) * 4,
                                           .layer = 256,
                                           .width = 8 >> l,
                                           .height = 8 >> l,
                                           .depth = 1};
        for (unsigned i = 0; i < (8u >> l) * (8u >> l); i++)
            texels[at++] = (float)(1000 * l);
    }
    return texture;
}

static float at_level(const struct sg_texture *texture, float level) {
    const struct texture_lane in = {.in.f = {0.3f, 0.6f, level}};
    return texture_once("tex.level.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}], %f2;",
                        texture, &in)
        .out.f[0];
}

TEST(the_level_of_detail_is_selected_and_clamped) {
    float texels[85] = {0};
    struct sg_texture texture = levels(texels);
    assert_true(at_level(&texture, 0.49f) == 0 && at_level(&texture, 0.51f) == 1000);
    assert_true(at_level(&texture, -5) == 0 && at_level(&texture, 77) == 3000);
    assert_true(at_level(&texture, NAN) == 0);
    texture.mip_linear = true;
    assert_true(at_level(&texture, 1.25f) == 1250 && at_level(&texture, 2) == 2000);
    /* 8 bits of fraction here, too. */
    assert_true(at_level(&texture, 1 + 1.4f / 256) == 1000 + 1000.0f / 256);
    texture.bias = 0.5f;
    assert_true(at_level(&texture, 1) == 1500 && at_level(&texture, 3) == 3000);
    texture.least_level = 0.75f;
    texture.most_level = 2.5f;
    assert_true(at_level(&texture, -3) == 750 && at_level(&texture, 3) == 2500);
    texture.bias = texture.least_level = 0;
    texture.most_level = 0;
    assert_true(at_level(&texture, 3) == 0);
    texture.most_level = 100;
    const struct texture_lane in = {.in.f = {0.3f, 0.6f}};
    assert_true(
        texture_once("tex.base.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}];", &texture, &in)
            .out.f[0] == 0);
}

TEST(gradients_select_the_level) {
    float texels[85] = {0};
    struct sg_texture texture = levels(texels);
    static const char body[] = "tex.grad.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}], "
                               "{%f2,%f3}, {%f4,%f5};";
    static const struct {
        float dx[2], dy[2], want;
    } rows[] = {
        {{1 / 8.0f, 0}, {0, 1 / 8.0f}, 0},
        {{1 / 4.0f, 0}, {0, 0}, 1000},
        {{0, 0}, {0, -1 / 2.0f}, 2000},
        {{0, 0}, {0, 0}, 0},
        {{3 / 40.0f, 4 / 40.0f}, {0, 0}, 0},
        {{3 / 20.0f, 4 / 20.0f}, {0, 0}, 1000},
        {{1, 1}, {1, 1}, 3000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct texture_lane in = {
            .in.f = {0.3f, 0.6f, rows[i].dx[0], rows[i].dx[1], rows[i].dy[0], rows[i].dy[1]}};
        assert_true(texture_once(body, &texture, &in).out.f[0] == rows[i].want);
    }
    struct texture_set set = {.each = {&texture}};
    struct texture_lane lane = {0};
    texture.anisotropy = 4;
    struct sg_grid_fault fault = texture_run(body, &set, &lane, 1);
    assert_int_equal(fault.kind, SG_FAULT_TEXTURE);
    assert_non_null(strstr(fault.report, "anisotropic"));
}

/* A step of the gradient along a face of a cube, which has coordinates from -1 to 1. */
TEST(cube_gradients_select_the_level) {
    float texels[6 * (64 + 16 + 4 + 1)] = {0};
    struct sg_texture texture = texture_of_floats(texels, 8, 8, 0);
    unsigned at = 0;
    texture.cube = true;
    texture.level_count = 4;
    for (unsigned l = 0; l < 4; l++) {
        unsigned n = 8u >> l;
        texture.levels[l] = (struct sg_texture_level){.address = (uint64_t)(uintptr_t)&texels[at],
                                                      .pitch = n * 4,
                                                      .layer = n * n * 4,
                                                      .width = n,
                                                      .height = n,
                                                      .depth = 6};
        for (unsigned i = 0; i < 6 * n * n; i++)
            texels[at++] = (float)l;
    }
    static const char body[] =
        "mov.f32 %f7, 0f00000000; tex.grad.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, "
        "{%f0,%f1,%f2,%f2}], {%f3,%f4,%f5,%f5}, {%f7,%f7,%f7,%f7};";
    const struct texture_lane along_x = {.in.f = {0.1f, 0.1f, 1, 0.5f, 0, 0}};
    assert_true(texture_once(body, &texture, &along_x).out.f[0] == 1); /* 2 of 8 texels */
    const struct texture_lane ahead = {.in.f = {0.5f, 0, 1, 0, 0, 2}};
    /* x/z moves by -0.5 for 1 of z: -1, of 2 that eight texels are: 4 texels. */
    assert_true(texture_once(body, &texture, &ahead).out.f[0] == 2);
}

/* ---- handles and refusals -------------------------------------------------------------------- */

TEST(warps_look_up_a_handle_once) {
    static const float texels[4] = {5, 6, 7, 8};
    struct sg_texture texture = texture_of_floats(texels, 4, 0, 0);
    struct texture_set set = {.each = {&texture}};
    struct texture_lane lanes[64] = {0};
    assert_int_equal(texture_run(reads[0], &set, lanes, 64).kind, SG_FAULT_COUNT);
    assert_int_equal(set.looked_up, 2); /* by each warp */
    assert_true(lanes[63].out.f[0] == 5);
    /* By the module's own name, and by its address in a register. */
    texture_runs("tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [TX, {%f0}];", &texture, lanes, 2);
    assert_true(lanes[1].out.f[0] == 5);
    texture_runs("mov.u64 %q1, TX; tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%q1, {%f0}];", &texture,
                 lanes, 2);
    assert_true(lanes[1].out.f[0] == 5);
}

TEST(a_separate_sampler_handle_gives_the_filter) {
    static const float texels[2] = {10, 20}, other[2] = {1, 2};
    struct sg_texture image = texture_of_floats(texels, 2, 0, 0);
    struct sg_texture sampler = texture_of_floats(other, 2, 0, 0);
    sampler.linear = true;
    struct texture_set set = {.each = {&image, &sampler}};
    struct texture_lane lane = {.in.f = {1}};
    struct sg_grid_fault fault =
        texture_run("tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, %h2, {%f0}];", &set, &lane, 1);
    assert_int_equal(fault.kind, SG_FAULT_COUNT);
    assert_true(lane.out.f[0] == 15);
}

static const struct sg_texture *only_texture(void *user, uint64_t handle) {
    return handle == 1 ? user : NULL;
}

/* texmode_independent: samplers have the settings of their initial values. */
TEST(samplers_are_declared_with_their_settings) {
    static const char text[] =
        ".version 8.0\n.target sm_90, texmode_independent\n.address_size 64\n"
        ".global .texref T = {width = 4, normalized_coords = 1};\n"
        ".global .samplerref S1 = {addr_mode_0 = clamp_to_border, filter_mode = nearest};\n"
        ".global .samplerref S2 = {addr_mode_0 = wrap, addr_mode_1 = 1,\n"
        "  filter_mode = linear, force_unnormalized_coords = 1};\n"
        ".visible .entry k(.param .u64 to) {\n"
        ".reg .b64 %a; .reg .f32 %f<8>; .reg .b32 %r<8>; .reg .pred %p;\n"
        "ld.param.u64 %a, [to]; mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f3F000000;\n"
        "tex.1d.v4.f32.f32 {%f2,_,_,_}, [T, S1, {%f0}]; st.global.f32 [%a], %f2;\n"
        "tex.1d.v4.f32.f32 {%f2,_,_,_}, [T, S1, {%f1}]; st.global.f32 [%a+4], %f2;\n"
        "tex.1d.v4.f32.f32 {%f2,_,_,_}, [T, S2, {%f0}]; st.global.f32 [%a+8], %f2;\n"
        "txq.addr_mode_1.b32 %r1, [S2]; txq.filter_mode.b32 %r2, [S2];\n"
        "txq.force_unnormalized_coords.b32 %r3, [S1]; st.global.v2.b32 [%a+16], {%r1,%r2};\n"
        "mov.u64 %a, S1; istypep.samplerref %p, %a; selp.u32 %r4, 1, 0, %p;\n"
        "ld.param.u64 %a, [to]; st.global.v2.b32 [%a+24], {%r3,%r4}; ret; }\n";
    static const float texels[4] = {10, 20, 30, 40};
    struct sg_texture texture = texture_of_floats(texels, 4, 0, 0);
    uint64_t handles[8] = {0};
    union {
        float f[4];
        uint32_t u[8];
    } out = {.u = {0}};
    texture.normalized = true;
    texture.border[0] = 7;
    struct kernel kernel = KERNEL_WITH(text, sg_level_best(), 1, 1, &out);
    kernel.launch.texture = only_texture;
    kernel.launch.user = &texture;
    for (size_t i = 0; i < kernel.program->variable_count && i < 8; i++)
        handles[i] = strcmp(kernel.program->variables[i].name, "T") == 0;
    kernel.launch.variables = handles;
    kernel_succeeds(&kernel);
    assert_true(out.f[0] == 7 && out.f[1] == 30); /* of normalised coordinates */
    assert_true(out.f[2] == 15);                  /* of texels, between two */
    assert_true(out.u[4] == 1 && out.u[5] == 1 && out.u[6] == 0 && out.u[7] == 1);
    kernel_free(&kernel);
}

static void faults(const char *body, const struct sg_texture *texture, const char *why) {
    struct texture_set set = {.each = {texture}};
    struct texture_lane lane = {0};
    struct sg_grid_fault fault = texture_run(body, &set, &lane, 1);
    assert_int_equal(fault.kind, SG_FAULT_TEXTURE);
    if (!strstr(fault.report, why))
        fail_msg("%s: %s", body, fault.report);
}

TEST(an_unsamplable_texture_faults_with_its_reason) {
    static const float texels[64];
    struct sg_texture texture = texture_of_floats(texels, 4, 4, 0);
    faults("tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h3, {%f0}];", &texture, "no texture or surface");
    faults(reads[0], &texture, "another shape (2D) than the instruction's (1D)");
    faults("tex.a2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%r0,%f0,%f0,%f0}];", &texture, "layered");
    texture.surface = true;
    faults(reads[1], &texture, "a surface's");
    texture.surface = false;
    texture.refused = "it is broken";
    faults(reads[1], &texture, "it is broken");
}

TEST(unsupported_texture_forms_are_refused_at_load) {
    texture_refused("tex.2dms.v4.f32.s32 {%o0,%o1,%o2,%o3}, [%h1, {%r0,%r1,%r2,%r2}];",
                    "several samples");
    texture_refused("tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}], %f2;", "depths");
    texture_refused("tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0,%f1}], {%r1,%r2}, %f2;",
                    "depths");
    texture_refused("tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%h1, {%f0}], %f2;", "depths");
}
