/*
 * Kernels that sample textures and reach surfaces: what the CUDA programming guide's appendix on
 * texture fetching says, compared exactly. Coordinates are whole numbers of 1/256 of a texel, and
 * texels small whole numbers, so that every weight and sum is exact.
 */
#include "harness.h"
#include "texture_texts.h"

#include <math.h>

#define MOST 256

struct given {
    union {
        float f[8];
        int32_t i[8];
        uint32_t u[8];
    };
};
struct got {
    union {
        float f[4];
        int32_t i[4];
        uint32_t u[4];
    };
};

static CUmodule module;
static CUdeviceptr input, output;
static struct given given[MOST];
static struct got got[MOST];

/* Skips where the driver runs no kernels. */
static void open_module(void) {
    module = new_module(texture_text());
    CUfunction function = function_of(module, "t_1d");
    input = new_memory(sizeof given);
    output = new_memory(sizeof got);
    unsigned none = 0;
    CUtexObject nothing = 0;
    void *params[] = {&output, &input, &nothing, &none};
    CUresult result = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    OK_CU(cu.cuCtxSynchronize());
    memset(given, 0, sizeof given);
    if (result == CUDA_SUCCESS)
        return;
    if (!no_kernels(result))
        fail_msg("the launch fails with %d", (int)result);
    SKIP("the driver runs no kernels: SOFTGPU_KERNELS=0");
}

/* Runs a kernel on given[0 .. count - 1], into got. */
static void run(const char *name, unsigned long long handle, unsigned count) {
    void *params[] = {&output, &input, &handle, &count};
    assert_true(count <= MOST);
    CUfunction function = function_of(module, name);
    OK_CU(cu.cuMemcpyHtoD_v2(input, given, sizeof given));
    OK_CU(cu.cuMemsetD8_v2(output, 0xcc, sizeof got));
    OK_CU(cu.cuLaunchKernel(function, (count + 63) / 64, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    OK_CU(cu.cuMemcpyDtoH_v2(got, output, sizeof got));
}

static void destroy_texture(void *object) {
    OK_CU(cu.cuTexObjectDestroy((CUtexObject)(uintptr_t)object));
}

static void destroy_surface(void *object) {
    OK_CU(cu.cuSurfObjectDestroy((CUsurfObject)(uintptr_t)object));
}

static void destroy_mipmap(void *mipmap) {
    OK_CU(cu.cuMipmappedArrayDestroy(mipmap));
}

/* ---- resources ------------------------------------------------------------------------------- */

static CUarray array_of(CUarray_format format, unsigned channels, unsigned width, unsigned height,
                        unsigned depth, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR desc = {SIZE_3D(width, height, depth), TEXELS(format, channels),
                                    .Flags = flags};
    return new_array_3d(&desc);
}

static void fill(CUarray array, const void *from, size_t row, unsigned rows, unsigned slices) {
    CUDA_MEMCPY3D copy = {FROM_HOST(from), .srcPitch = row, .srcHeight = rows, TO_ARRAY(array),
                          EXTENT_3D(row, rows, slices)};
    OK_CU(cu.cuMemcpy3D_v2(&copy));
}

static void read_back(void *to, CUarray array, size_t row, unsigned rows) {
    CUDA_MEMCPY3D copy = {FROM_ARRAY(array), TO_HOST(to), .dstPitch = row, .dstHeight = rows,
                          EXTENT_3D(row, rows, 1)};
    OK_CU(cu.cuMemcpy3D_v2(&copy));
}

static CUDA_RESOURCE_DESC of_array(CUarray array) {
    CUDA_RESOURCE_DESC resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    return resource;
}

static CUtexObject texture_of(const CUDA_RESOURCE_DESC *resource, CUaddress_mode x,
                              CUaddress_mode y, CUfilter_mode filter, unsigned flags) {
    CUDA_TEXTURE_DESC texture = {.addressMode[0] = x,
                                 .addressMode[2] = x,
                                 .addressMode[1] = y,
                                 .filterMode = filter,
                                 .flags = flags};
    for (int c = 0; c < 4; c++)
        texture.borderColor[c] = 9;
    CUtexObject object = MADE_CU(CUtexObject, cuTexObjectCreate, resource, &texture, NULL);
    at_end(destroy_texture, (void *)(uintptr_t)object);
    return object;
}

/* ---- the guide's formulas, in whole numbers of 1/256 of a texel ------------------------------ */

static int floor_of(int value, int by) {
    return value / by - (value % by < 0);
}

/* Which texel stands for number i; -1: the border. */
static int stands_for(int i, int n, CUaddress_mode mode) {
    while (i < 0 || i >= n) {
        if (mode == CU_TR_ADDRESS_MODE_BORDER)
            return -1;
        if (mode == CU_TR_ADDRESS_MODE_CLAMP)
            i += i < 0 ? 1 : -1;
        else if (mode == CU_TR_ADDRESS_MODE_WRAP)
            i += i < 0 ? n : -n;
        else
            i = i < 0 ? -1 - i : 2 * n - 1 - i;
    }
    return i;
}

struct guide {
    const float *texels;
    int size[3];
    CUaddress_mode mode[3];
    bool linear;
};

static double texel(const struct guide *g, const int *at) {
    int place[3];
    for (int a = 0; a < 3; a++)
        if ((place[a] = stands_for(at[a], g->size[a], g->mode[a])) < 0)
            return 9;
    return (double)g->texels[(place[2] * g->size[1] + place[1]) * g->size[0] + place[0]];
}

/* Half of one is rounded up. */
static int share(int of, int fraction) {
    return (of * fraction + 128) / 256;
}

/*
 * The guide's sum, with the weights that hardware makes of its fractions: whole numbers of 256ths,
 * divided between the columns along y first, by x and z, and then between both ends of each. CLAMP
 * leaves one texel beyond an edge. A row is a plane of one row, sampled at 0: half of it is what
 * its second mode has above it.
 */
static double linear(const struct guide *g, const int *at, int axes) {
    int first[3] = {0}, fraction[3] = {0};
    for (int a = 0; a < (axes == 1 ? 2 : axes); a++) {
        int moved = (a < axes ? at[a] : 0) - 128;
        first[a] = floor_of(moved, 256);
        fraction[a] = moved - first[a] * 256;
        if (g->mode[a] == CU_TR_ADDRESS_MODE_CLAMP &&
            (first[a] < 0 || first[a] >= g->size[a] - 1)) {
            first[a] = first[a] < 0 ? 0 : g->size[a] - 1;
            fraction[a] = 0;
        }
    }
    double sum = 0;
    for (int x = 0; x < 2; x++)
        for (int z = 0; z < 2; z++) {
            int both = share(fraction[0], fraction[2]);
            int of_x = x ? both : fraction[2] - both;
            int column = z ? of_x : (x ? fraction[0] : 256 - fraction[0]) - of_x;
            int second = x ? share(column, fraction[1]) : column - share(column, 256 - fraction[1]);
            for (int y = 0; y < 2; y++) {
                int weight = y ? second : column - second;
                const int place[3] = {first[0] + x, first[1] + y, first[2] + z};
                sum += weight ? weight * texel(g, place) : 0;
            }
        }
    return sum / 256;
}

static double nearest(const struct guide *g, const int *at, int axes) {
    int place[3] = {0};
    for (int a = 0; a < axes; a++)
        place[a] = floor_of(at[a], 256);
    return texel(g, place);
}

static const char *const kernels[] = {"t_1d", "t_2d", "t_3d"};

/* Coordinates over two sizes to either side, in 1/256 of a texel; of three axes in 1/4, so that the
 * product of three fractions is a whole number of 256ths. */
static void compare(const struct guide *g, CUtexObject object, int axes, bool normalized) {
    int unit = axes == 3 ? 64 : 1;
    int at[MOST][3] = {{0}};
    unsigned seed = 5;
    for (int i = 0; i < MOST; i++)
        for (int a = 0; a < axes; a++) {
            seed = seed * 1664525u + 1013904223u;
            at[i][a] = (int)(seed >> 8) % (5 * 256 * g->size[a]) - 2 * 256 * g->size[a];
            at[i][a] = floor_of(at[i][a], unit) * unit;
            given[i].f[a] = (float)at[i][a] / (normalized ? 256.0f * (float)g->size[a] : 256.0f);
        }
    run(kernels[axes - 1], object, MOST);
    for (int i = 0; i < MOST; i++) {
        double want = g->linear ? linear(g, at[i], axes) : nearest(g, at[i], axes);
        if ((double)got[i].f[0] != want)
            fail_msg("%s at %d, %d, %d (of 256), modes %d and %d, %s%s: %.9g, not %.9g",
                     kernels[axes - 1], at[i][0], at[i][1], at[i][2], (int)g->mode[0],
                     (int)g->mode[1], g->linear ? "linear" : "nearest",
                     normalized ? ", normalised" : "", (double)got[i].f[0], want);
    }
}

TEST(every_address_mode_and_filter_matches_the_guide) {
    static const int sizes[3][3] = {{16, 1, 1}, {8, 4, 1}, {4, 8, 2}};
    float texels[64];
    open_module();
    for (int i = 0; i < 64; i++)
        texels[i] = (float)(i * 7 % 16);
    for (int axes = 1; axes <= 3; axes++) {
        const int *size = sizes[axes - 1];
        CUarray array =
            array_of(CU_AD_FORMAT_FLOAT, 1, (unsigned)size[0], axes > 1 ? (unsigned)size[1] : 0,
                     axes > 2 ? (unsigned)size[2] : 0, 0);
        fill(array, texels, (size_t)size[0] * 4, (unsigned)size[1], (unsigned)size[2]);
        CUDA_RESOURCE_DESC resource = of_array(array);
        for (unsigned what = 0; what < 64; what++) {
            CUaddress_mode x = (CUaddress_mode)(what & 3), y = (CUaddress_mode)(what >> 2 & 3);
            bool normalized = what >> 4 & 1;
            bool turns_x = x == CU_TR_ADDRESS_MODE_WRAP || x == CU_TR_ADDRESS_MODE_MIRROR;
            bool turns_y = y == CU_TR_ADDRESS_MODE_WRAP || y == CU_TR_ADDRESS_MODE_MIRROR;
            struct guide guide = {texels, {size[0], size[1], size[2]}, {x, y, x}, what >> 5};
            /* Without normalised coordinates these two become clamp. */
            if (!normalized && turns_x)
                guide.mode[0] = guide.mode[2] = CU_TR_ADDRESS_MODE_CLAMP;
            if (!normalized && turns_y)
                guide.mode[1] = CU_TR_ADDRESS_MODE_CLAMP;
            CUtexObject object = texture_of(
                &resource, x, y, what >> 5 ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT,
                normalized ? CU_TRSF_NORMALIZED_COORDINATES : 0);
            compare(&guide, object, axes, normalized);
        }
    }
}

/* ---- what registers receive ------------------------------------------------------------------ */

static void read_format(CUarray_format format, unsigned channels, unsigned flags, const void *texel,
                        size_t size, const char *kernel) {
    CUarray array = array_of(format, channels, 1, 0, 0, 0);
    fill(array, texel, size, 1, 1);
    CUDA_RESOURCE_DESC resource = of_array(array);
    CUtexObject object = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                    CU_TR_FILTER_MODE_POINT, flags);
    given[0].f[0] = 0.5f;
    run(kernel, object, 1);
}

static bool near(float a, double b) {
    return fabs((double)a - b) < 1e-6;
}

TEST(integer_texels_are_normalized_to_one) {
    open_module();
    read_format(CU_AD_FORMAT_UNSIGNED_INT8, 4, 0, (unsigned char[]){0, 255, 128, 1}, 4, "t_1d");
    assert_true(got[0].f[0] == 0 && got[0].f[1] == 1);
    assert_true(near(got[0].f[2], 128 / 255.0) && near(got[0].f[3], 1 / 255.0));
    read_format(CU_AD_FORMAT_SIGNED_INT8, 4, 0, (signed char[]){-128, -127, 127, -64}, 4, "t_1d");
    assert_true(got[0].f[0] == -1 && got[0].f[1] == -1 && got[0].f[2] == 1);
    assert_true(near(got[0].f[3], -64 / 127.0));
    read_format(CU_AD_FORMAT_UNSIGNED_INT16, 2, 0, (uint16_t[]){65535, 12345}, 4, "t_1d");
    assert_true(got[0].f[0] == 1 && near(got[0].f[1], 12345 / 65535.0));
    read_format(CU_AD_FORMAT_SIGNED_INT16, 2, 0, (int16_t[]){-32768, 1000}, 4, "t_1d");
    assert_true(got[0].f[0] == -1 && near(got[0].f[1], 1000 / 32767.0));
}

TEST(elements_can_be_read_unchanged) {
    open_module();
    read_format(CU_AD_FORMAT_UNSIGNED_INT8, 4, CU_TRSF_READ_AS_INTEGER,
                (unsigned char[]){0, 255, 128, 1}, 4, "t_1d_u32");
    assert_true(got[0].u[0] == 0 && got[0].u[1] == 255 && got[0].u[2] == 128 && got[0].u[3] == 1);
    read_format(CU_AD_FORMAT_SIGNED_INT8, 2, CU_TRSF_READ_AS_INTEGER, (signed char[]){-128, 127}, 2,
                "t_1d_u32");
    assert_true(got[0].i[0] == -128 && got[0].i[1] == 127);
    read_format(CU_AD_FORMAT_SIGNED_INT16, 2, CU_TRSF_READ_AS_INTEGER, (int16_t[]){-32768, 5}, 4,
                "t_1d_u32");
    assert_true(got[0].i[0] == -32768 && got[0].i[1] == 5);
    read_format(CU_AD_FORMAT_UNSIGNED_INT32, 4, 0, (uint32_t[]){0x80000001, 2, 3, UINT32_MAX}, 16,
                "t_1d_u32");
    assert_true(got[0].u[0] == 0x80000001 && got[0].u[3] == UINT32_MAX);
    read_format(CU_AD_FORMAT_HALF, 4, 0, (uint16_t[]){0x3c00, 0xc248, 0x0001, 0x7bff}, 8, "t_1d");
    assert_true(got[0].f[0] == 1 && got[0].f[1] == -3.140625f);
    assert_true(got[0].f[2] == 0x1p-24f && got[0].f[3] == 65504);
    read_format(CU_AD_FORMAT_FLOAT, 2, 0, (float[]){1.25f, -1e30f}, 8, "t_1d");
    assert_true(got[0].f[0] == 1.25f && got[0].f[1] == -1e30f);
    read_format(CU_AD_FORMAT_FLOAT, 4, 0, (float[]){1.5f, -2, 0.25f, 1024}, 16, "t_f16");
    assert_true(got[0].u[0] == 0xc0003e00 && got[0].u[1] == 0x64003400);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TEST(textures_read_linear_and_pitched_memory) {
    uint32_t words[512];
    open_module();
    for (uint32_t i = 0; i < 512; i++)
        words[i] = i * 3;
    CUdeviceptr memory = new_memory(sizeof words);
    OK_CU(cu.cuMemcpyHtoD_v2(memory, words, sizeof words));
    CUDA_RESOURCE_DESC resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = memory;
    resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
    resource.res.linear.numChannels = 2;
    resource.res.linear.sizeInBytes = sizeof words;
    CUtexObject object = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                    CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER);
    for (int i = 0; i < MOST; i++)
        given[i].i[0] = 255 - i;
    run("t_fetch", object, MOST);
    for (unsigned i = 0; i < MOST; i++)
        assert_true(got[i].u[0] == (255 - i) * 6 && got[i].u[1] == (255 - i) * 6 + 3);
    memset(&resource, 0, sizeof resource);
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT32;
    resource.res.pitch2D.numChannels = 1;
    resource.res.pitch2D.width = 20;
    resource.res.pitch2D.height = 16;
    resource.res.pitch2D.pitchInBytes = 128;
    object = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                        CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER);
    static const float at[4][2] = {{0, 0}, {19.5f, 15.5f}, {25, 3}, {-4, 20}};
    static const uint32_t want[4] = {0, 3 * (15 * 32 + 19), 3 * (3 * 32 + 19), 3 * (15 * 32)};
    for (int i = 0; i < 4; i++) {
        given[i].f[0] = at[i][0];
        given[i].f[1] = at[i][1];
    }
    run("t_2d", object, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(got[i].u[0], want[i]);
}

/* ---- layers, cubes, levels ------------------------------------------------------------------- */

TEST(layers_are_sampled_separately) {
    float texels[48];
    open_module();
    for (int i = 0; i < 48; i++)
        texels[i] = (float)i;
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 4, 3, CUDA_ARRAY3D_LAYERED);
    fill(array, texels, 16, 4, 3);
    CUDA_RESOURCE_DESC resource = of_array(array);
    CUtexObject object = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                    CU_TR_FILTER_MODE_LINEAR, 0);
    for (int i = 0; i < 3; i++) {
        given[i].f[0] = 2;
        given[i].f[1] = 1.5f;
        given[i].i[3] = i;
    }
    run("t_a2d", object, 3);
    for (int i = 0; i < 3; i++)
        assert_true(got[i].f[0] == (float)(16 * i) + 5.5f);
    array = array_of(CU_AD_FORMAT_FLOAT, 1, 8, 0, 3, CUDA_ARRAY3D_LAYERED);
    fill(array, texels, 32, 1, 3);
    resource = of_array(array);
    object = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                        CU_TR_FILTER_MODE_POINT, 0);
    run("t_a1d", object, 3);
    for (int i = 0; i < 3; i++)
        assert_true(got[i].f[0] == (float)(8 * i + 2));
}

/* The table of faces: a direction whose place on its face is column 2, row 1 of 4. */
TEST(cube_directions_select_the_face) {
    static const float s = 0.25f, t = -0.25f; /* (2.5 / 4, 1.5 / 4) of the face */
    static const float rays[6][3] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t},
                                     {s, -1, -t}, {s, -t, 1},  {-s, -t, -1}};
    float texels[2 * 6 * 16];
    open_module();
    for (int i = 0; i < 2 * 6 * 16; i++)
        texels[i] = (float)i;
    for (unsigned cubes = 1; cubes <= 2; cubes++) {
        unsigned flags = CUDA_ARRAY3D_CUBEMAP | (cubes > 1 ? CUDA_ARRAY3D_LAYERED : 0);
        CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 4, 6 * cubes, flags);
        fill(array, texels, 16, 4, 6 * cubes);
        CUDA_RESOURCE_DESC resource = of_array(array);
        for (int linear = 0; linear < 2; linear++) {
            CUtexObject object = texture_of(
                &resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT,
                CU_TRSF_NORMALIZED_COORDINATES | (linear ? CU_TRSF_SEAMLESS_CUBEMAP : 0));
            for (unsigned i = 0; i < 6; i++) {
                for (int a = 0; a < 3; a++)
                    given[i].f[a] = 4 * rays[i][a];
                given[i].u[3] = cubes - 1;
            }
            run(cubes > 1 ? "t_acube" : "t_cube", object, 6);
            for (unsigned i = 0; i < 6; i++)
                assert_true(got[i].f[0] == (float)((6 * (cubes - 1) + i) * 16 + 4 + 2));
        }
    }
}

static CUmipmappedArray make_levels(void) {
    CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 8, .Height = 8, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    CUmipmappedArray mipmap = MADE_CU(CUmipmappedArray, cuMipmappedArrayCreate, &desc, 4);
    at_end(destroy_mipmap, mipmap);
    for (unsigned l = 0; l < 4; l++) {
        float texels[64];
        for (int i = 0; i < 64; i++)
            texels[i] = (float)(100 * l);
        CUarray level = MADE_CU(CUarray, cuMipmappedArrayGetLevel, mipmap, l);
        fill(level, texels, (8u >> l) * 4, 8 >> l, 1);
    }
    return mipmap;
}

TEST(mipmap_levels_are_selected_by_number_and_gradient) {
    static const struct {
        float asked, bias, least, most, want;
        bool linear;
    } rows[] = {
        {0, 0, 0, 3, 0, false},      {1, 0, 0, 3, 100, false},     {2, 0, 0, 3, 200, true},
        {1.5f, 0, 0, 3, 150, true},  {2.25f, 0, 0, 3, 225, true},  {9, 0, 0, 3, 300, true},
        {-3, 0, 0, 3, 0, true},      {1, 0.5f, 0, 3, 150, true},   {1, 0, 1.5f, 3, 150, true},
        {3, 0, 0, 1.25f, 125, true}, {1.25f, 0, 0, 3, 100, false}, {1.75f, 0, 0, 3, 200, false},
    };
    open_module();
    CUmipmappedArray mipmap = make_levels();
    CUDA_RESOURCE_DESC resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = mipmap;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CUDA_TEXTURE_DESC texture = {.filterMode = CU_TR_FILTER_MODE_LINEAR,
                                     .mipmapFilterMode = rows[i].linear ? CU_TR_FILTER_MODE_LINEAR
                                                                        : CU_TR_FILTER_MODE_POINT,
                                     .flags = CU_TRSF_NORMALIZED_COORDINATES,
                                     .mipmapLevelBias = rows[i].bias,
                                     .minMipmapLevelClamp = rows[i].least,
                                     .maxMipmapLevelClamp = rows[i].most};
        CUtexObject object = MADE_CU(CUtexObject, cuTexObjectCreate, &resource, &texture, NULL);
        at_end(destroy_texture, (void *)(uintptr_t)object);
        given[0].f[0] = given[0].f[1] = 0.5f;
        given[0].f[2] = rows[i].asked;
        run("t_level", object, 1);
        if (got[0].f[0] != rows[i].want)
            fail_msg("level %g, bias %g, from %g to %g: %g, not %g", (double)rows[i].asked,
                     (double)rows[i].bias, (double)rows[i].least, (double)rows[i].most,
                     (double)got[0].f[0], (double)rows[i].want);
        if (rows[i].linear && rows[i].bias == 0 && rows[i].least == 0 && rows[i].asked == 2) {
            given[0].f[2] = 0.5f; /* a quarter of the level: 4 of 8 texels */
            given[0].f[3] = given[0].f[4] = given[0].f[5] = 0;
            run("t_grad", object, 1);
            assert_true(got[0].f[0] == 200);
        }
    }
}

TEST(gathers_and_offsets_select_texels) {
    float texels[2 * 64];
    open_module();
    for (int i = 0; i < 128; i++)
        texels[i] = (float)((i >> 1) + 1000 * (i % 2));
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 2, 8, 8, 0, CUDA_ARRAY3D_TEXTURE_GATHER);
    fill(array, texels, 64, 8, 1);
    CUDA_RESOURCE_DESC resource = of_array(array);
    CUtexObject object = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                    CU_TR_FILTER_MODE_LINEAR, 0);
    given[0].f[0] = 3.25f; /* between texels 2 and 3, rows 4 and 5 */
    given[0].f[1] = 5.25f;
    static const float want[4] = {5 * 8 + 2, 5 * 8 + 3, 4 * 8 + 3, 4 * 8 + 2};
    run("t_gather_r", object, 1);
    for (int i = 0; i < 4; i++)
        assert_true(got[0].f[i] == want[i]);
    run("t_gather_g", object, 1);
    for (int i = 0; i < 4; i++)
        assert_true(got[0].f[i] == want[i] + 1000);
    given[0].f[0] = 3.5f;
    given[0].f[1] = 5.5f;
    run("t_offset", object, 1); /* {1, -2} */
    assert_true(got[0].f[0] == 3 * 8 + 4 && got[0].f[1] == 1000 + 3 * 8 + 4);
}

/* ---- views ----------------------------------------------------------------------------------- */

static CUtexObject view_of(const CUDA_RESOURCE_DESC *resource, unsigned flags,
                           const CUDA_RESOURCE_VIEW_DESC *view) {
    CUDA_TEXTURE_DESC texture = {.addressMode[0] = CU_TR_ADDRESS_MODE_CLAMP,
                                 .addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP,
                                 .flags = flags,
                                 .maxMipmapLevelClamp = 9};
    CUtexObject object = MADE_CU(CUtexObject, cuTexObjectCreate, resource, &texture, view);
    at_end(destroy_texture, (void *)(uintptr_t)object);
    return object;
}

TEST(a_resource_view_may_change_the_format) {
    static const uint32_t words[4] = {0x04030201, 0x08070605, 0x0c0b0a09, 0xff807f00};
    open_module();
    CUarray array = array_of(CU_AD_FORMAT_UNSIGNED_INT32, 1, 4, 0, 0, 0);
    fill(array, words, 16, 1, 1);
    CUDA_RESOURCE_DESC resource = of_array(array);
    CUDA_RESOURCE_VIEW_DESC view = {.format = CU_RES_VIEW_FORMAT_UINT_4X8, .width = 4};
    CUtexObject object = view_of(&resource, CU_TRSF_READ_AS_INTEGER, &view);
    given[0].f[0] = 1.5f;
    given[1].f[0] = 3.5f;
    run("t_1d_u32", object, 2);
    for (uint32_t c = 0; c < 4; c++)
        assert_int_equal(got[0].u[c], 5 + c);
    assert_true(got[1].u[0] == 0 && got[1].u[1] == 0x7f && got[1].u[3] == 0xff);
    object = view_of(&resource, 0, &view);
    run("t_1d", object, 2);
    assert_true(got[1].f[0] == 0 && got[1].f[3] == 1);
    view.format = CU_RES_VIEW_FORMAT_SINT_2X16;
    object = view_of(&resource, CU_TRSF_READ_AS_INTEGER, &view);
    run("t_1d_u32", object, 2);
    assert_true(got[0].i[0] == 0x0605 && got[1].i[0] == 0x7f00 && got[1].i[1] == -128);
}

TEST(a_resource_view_may_restrict_levels_and_layers) {
    float texels[48];
    open_module();
    CUmipmappedArray mipmap = make_levels();
    CUDA_RESOURCE_DESC resource;
    CUDA_RESOURCE_VIEW_DESC view = {0};
    memset(&resource, 0, sizeof resource);
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = mipmap;
    view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32;
    view.width = view.height = 8;
    view.firstMipmapLevel = 1;
    view.lastMipmapLevel = 2;
    CUtexObject object = view_of(&resource, CU_TRSF_NORMALIZED_COORDINATES, &view);
    for (int i = 0; i < 4; i++) {
        given[i].f[0] = given[i].f[1] = 0.5f;
        given[i].f[2] = (float)i;
    }
    run("t_level", object, 4);
    assert_true(got[0].f[0] == 100 && got[1].f[0] == 200);
    assert_true(got[2].f[0] == 200 && got[3].f[0] == 200);
    for (int i = 0; i < 48; i++)
        texels[i] = (float)i;
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 4, 3, CUDA_ARRAY3D_LAYERED);
    fill(array, texels, 16, 4, 3);
    resource = of_array(array);
    memset(&view, 0, sizeof view);
    view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32;
    view.width = view.height = 4;
    view.depth = 3;
    view.firstLayer = 1;
    view.lastLayer = 2;
    object = view_of(&resource, 0, &view);
    for (int i = 0; i < 2; i++) {
        given[i].f[0] = given[i].f[1] = 0.5f;
        given[i].i[3] = i;
    }
    run("t_a2d", object, 2);
    assert_true(got[0].f[0] == 16 && got[1].f[0] == 32);
}

/* Of a sparse array only one tile has memory. */
TEST(sampling_a_sparse_array_reports_residency) {
    enum { SIDE = 256 };
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED);
    static float texels[128 * 128];
    open_module();
    CUmemGenericAllocationHandle pool;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = device_location(dev),
                                .allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL};
    OK_CU(cu.cuMemCreate(&pool, (size_t)2 << 20, &prop, 0));
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, SIDE, SIDE, 0, CUDA_ARRAY3D_SPARSE);
    CUarrayMapInfo map;
    memset(&map, 0, sizeof map);
    map.resourceType = CU_RESOURCE_TYPE_ARRAY;
    map.resource.array = array;
    map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
    map.subresource.sparseLevel.offsetX = 128;
    map.subresource.sparseLevel.extentWidth = map.subresource.sparseLevel.extentHeight = 128;
    map.subresource.sparseLevel.extentDepth = 1;
    map.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
    map.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
    map.memHandle.memHandle = pool;
    map.deviceBitMask = 1u << dev;
    OK_CU(cu.cuMemMapArrayAsync(&map, 1, NULL));
    for (int i = 0; i < 128 * 128; i++)
        texels[i] = (float)(i + 1);
    CUDA_MEMCPY3D copy = {FROM_HOST(texels), .srcPitch = 512, TO_ARRAY(array), .dstXInBytes = 512,
                          EXTENT_3D(512, 128, 1)};
    OK_CU(cu.cuMemcpy3D_v2(&copy));
    CUDA_RESOURCE_DESC resource = of_array(array);
    CUtexObject object = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                    CU_TR_FILTER_MODE_POINT, 0);
    static const float at[3][2] = {{130.5f, 3.5f}, {100.5f, 3.5f}, {200.5f, 130.5f}};
    for (int i = 0; i < 3; i++) {
        given[i].f[0] = at[i][0];
        given[i].f[1] = at[i][1];
    }
    run("t_resident", object, 3);
    assert_true(got[0].f[0] == 3 * 128 + 2 + 1 && got[0].u[3] == 1);
    assert_true(got[1].f[0] == 0 && got[1].u[3] == 0);
    assert_true(got[2].f[0] == 0 && got[2].u[3] == 0);
    OK_CU(cu.cuMemRelease(pool));
}

/* ---- surfaces -------------------------------------------------------------------------------- */

static CUsurfObject surface_of(CUarray array) {
    CUDA_RESOURCE_DESC resource = of_array(array);
    CUsurfObject object = MADE_CU(CUsurfObject, cuSurfObjectCreate, &resource);
    at_end(destroy_surface, (void *)(uintptr_t)object);
    return object;
}

TEST(surfaces_are_read_and_written) {
    uint32_t words[32];
    open_module();
    for (uint32_t i = 0; i < 32; i++)
        words[i] = 1000 + i;
    CUarray array = array_of(CU_AD_FORMAT_UNSIGNED_INT32, 1, 8, 4, 0, CUDA_ARRAY3D_SURFACE_LDST);
    fill(array, words, 32, 4, 1);
    CUsurfObject object = surface_of(array);
    static const int at[6][2] = {{0, 0}, {28, 3}, {32, 1}, {-4, 2}, {8, 4}, {8, -1}};
    for (int i = 0; i < 6; i++) {
        given[i].i[0] = at[i][0]; /* bytes */
        given[i].i[1] = at[i][1];
        given[i].u[4] = 7 + (uint32_t)i;
    }
    run("s_zero", object, 6);
    static const uint32_t zero[6] = {1000, 1031, 0, 0, 0, 0};
    for (int i = 0; i < 6; i++)
        assert_int_equal(got[i].u[0], zero[i]);
    run("s_clamp", object, 6);
    static const uint32_t clamped[6] = {1000, 1031, 1015, 1016, 1026, 1002};
    for (int i = 0; i < 6; i++)
        assert_int_equal(got[i].u[0], clamped[i]);
    run("s_store", object, 6);
    words[0] = 7;
    words[31] = 8;
    uint32_t now[32];
    read_back(now, array, 32, 4);
    assert_memory_equal(now, words, sizeof now);
    for (int i = 0; i < 200; i++) {
        given[i].i[0] = 4 * (i % 4);
        given[i].i[1] = 1;
        given[i].u[4] = (uint32_t)i;
    }
    run("s_add", object, 200);
    for (int i = 0; i < 200; i++)
        words[8 + i % 4] += (uint32_t)i;
    read_back(now, array, 32, 4);
    assert_memory_equal(now, words, sizeof now);
    given[0].i[0] = 16;
    given[0].i[1] = 0;
    run("s_vector", object, 1);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(got[0].u[i], 1004 + i);
}

/* Width, height and depth of a surface can be asked. A driver refuses the other queries: an H200's
 * when the module is loaded, softgpu at the kernel alone. */
TEST(surface_size_queries_return_the_dimensions) {
    open_module();
    CUarray array = array_of(CU_AD_FORMAT_UNSIGNED_INT32, 1, 8, 4, 2, CUDA_ARRAY3D_SURFACE_LDST);
    CUsurfObject object = surface_of(array);
    run("q_surface", object, 1);
    MEMBERS(got[0], (u[0], 8), (u[1], 4), (u[2], 2));
    for (size_t i = 0; i < COUNT(surface_queries); i++) {
        CUmodule other = NULL;
        CUfunction function;
        CUresult result = cu.cuModuleLoadData(&other, surface_queries[i]);
        if (result == CUDA_SUCCESS) {
            unsigned none = 0;
            void *params[] = {&output, &input, &object, &none};
            OK_CU(cu.cuModuleGetFunction(&function, other, "q"));
            result = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
            OK_CU(cu.cuModuleUnload(other));
        }
        assert_int_equal(result, CUDA_ERROR_NOT_SUPPORTED);
    }
}

TEST(surface_coordinates_select_layers_and_slices) {
    uint32_t words[32];
    open_module();
    for (uint32_t i = 0; i < 32; i++)
        words[i] = i;
    for (int i = 0; i < 4; i++) {
        given[i].i[0] = 8;
        given[i].i[1] = 1;
        given[i].i[3] = i;
    }
    for (int layered = 0; layered < 2; layered++) {
        unsigned flags = CUDA_ARRAY3D_SURFACE_LDST | (layered ? CUDA_ARRAY3D_LAYERED : 0);
        CUarray array = array_of(CU_AD_FORMAT_UNSIGNED_INT32, 1, 4, 2, 4, flags);
        fill(array, words, 16, 2, 4);
        CUsurfObject object = surface_of(array);
        run(layered ? "s_layer" : "s_slice", object, 4);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(got[i].u[0], 8 * i + 6);
    }
}

/* What a kernel stores, the next one samples. */
TEST(a_texture_samples_what_a_surface_stored) {
    open_module();
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 8, 8, 0, CUDA_ARRAY3D_SURFACE_LDST);
    float zeros[64] = {0};
    fill(array, zeros, 32, 8, 1);
    CUsurfObject surface = surface_of(array);
    CUDA_RESOURCE_DESC resource = of_array(array);
    CUtexObject texture = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP,
                                     CU_TR_FILTER_MODE_LINEAR, 0);
    for (int i = 0; i < 64; i++) {
        given[i].i[0] = i % 8 * 4;
        given[i].i[1] = i / 8;
        given[i].f[4] = (float)(i * i % 16);
    }
    run("s_store", surface, 64);
    for (int i = 0; i < 56; i++) {
        given[i].f[0] = (float)(i % 8) + 0.5f;
        given[i].f[1] = (float)(i >> 3) + 1;
    }
    run("t_2d", texture, 56);
    for (int i = 0; i < 56; i++)
        assert_true(got[i].f[0] == (float)(i * i % 16 + (i + 8) * (i + 8) % 16) / 2);
}

/* ---- references ------------------------------------------------------------------------------ */

TEST(a_module_samples_its_texture_references) {
    float texels[64];
    open_module();
    for (int i = 0; i < 64; i++)
        texels[i] = (float)i;
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 8, 8, 0, CUDA_ARRAY3D_SURFACE_LDST);
    fill(array, texels, 32, 8, 1);
    CUtexref texture = MADE_CU(CUtexref, cuModuleGetTexRef, module, "TX");
    OK_CU(cu.cuTexRefSetArray(texture, array, CU_TRSA_OVERRIDE_FORMAT));
    OK_CU(cu.cuTexRefSetAddressMode(texture, 0, CU_TR_ADDRESS_MODE_CLAMP));
    OK_CU(cu.cuTexRefSetAddressMode(texture, 1, CU_TR_ADDRESS_MODE_CLAMP));
    OK_CU(cu.cuTexRefSetFilterMode(texture, CU_TR_FILTER_MODE_LINEAR));
    OK_CU(cu.cuTexRefSetFlags(texture, 0));
    given[0].f[0] = 2.75f;
    given[0].f[1] = 3.5f;
    run("t_named", 0, 1);
    assert_true(got[0].f[0] == 24 + 2.25f);
    OK_CU(cu.cuTexRefSetFilterMode(texture, CU_TR_FILTER_MODE_POINT));
    OK_CU(cu.cuTexRefSetFlags(texture, CU_TRSF_NORMALIZED_COORDINATES));
    given[0].f[0] = given[0].f[1] = 0.5f;
    run("t_named", 0, 1);
    assert_true(got[0].f[0] == 4 * 8 + 4);
    CUsurfref surface = MADE_CU(CUsurfref, cuModuleGetSurfRef, module, "SF");
    OK_CU(cu.cuSurfRefSetArray(surface, array, 0));
    given[0].i[0] = 12;
    given[0].i[1] = 2;
    run("s_named", 0, 1);
    assert_true(got[0].f[0] == 2 * 8 + 3);
}

TEST(texture_references_sample_linear_and_pitched_memory) {
    float texels[256];
    open_module();
    for (int i = 0; i < 256; i++)
        texels[i] = (float)i;
    CUdeviceptr memory = new_memory(sizeof texels);
    OK_CU(cu.cuMemcpyHtoD_v2(memory, texels, sizeof texels));
    CUtexref texture = MADE_CU(CUtexref, cuModuleGetTexRef, module, "TX");
    CUDA_ARRAY_DESCRIPTOR rows = {.Width = 20, .Height = 8, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    OK_CU(cu.cuTexRefSetAddress2D_v3(texture, &rows, memory, 128));
    OK_CU(cu.cuTexRefSetFormat(texture, CU_AD_FORMAT_FLOAT, 1));
    OK_CU(cu.cuTexRefSetFilterMode(texture, CU_TR_FILTER_MODE_LINEAR));
    given[0].f[0] = 3;
    given[0].f[1] = 2.5f;
    given[1].f[0] = 30;
    given[1].f[1] = 30;
    run("t_named", 0, 2);
    assert_true(got[0].f[0] == 2 * 32 + 2.5f && got[1].f[0] == 7 * 32 + 19);
}

/* ---- What ends while a kernel that samples it is queued -------------------------------------- */

/* Arrays of one texel each; objects and references of the first. */
static CUarray first, second;
static CUtexObject object;
static CUsurfObject surface;

static void destroy_the_texture(void) {
    OK_CU(cu.cuTexObjectDestroy(object));
}

static void destroy_the_surface(void) {
    OK_CU(cu.cuSurfObjectDestroy(surface));
}

static void bind_the_texture_anew(void) {
    CUtexref reference = MADE_CU(CUtexref, cuModuleGetTexRef, module, "TX");
    OK_CU(cu.cuTexRefSetArray(reference, second, CU_TRSA_OVERRIDE_FORMAT));
}

static void bind_the_surface_anew(void) {
    CUsurfref reference = MADE_CU(CUsurfref, cuModuleGetSurfRef, module, "SF");
    OK_CU(cu.cuSurfRefSetArray(reference, second, 0));
}

static void open_arrays(void) {
    static const float texels[2] = {7, 8};
    open_module();
    CUarray *const arrays[] = {&first, &second};
    for (int i = 0; i < 2; i++) {
        *arrays[i] = array_of(CU_AD_FORMAT_FLOAT, 1, 1, 1, 0, CUDA_ARRAY3D_SURFACE_LDST);
        fill(*arrays[i], &texels[i], sizeof(float), 1, 1);
    }
    CUtexref texture = MADE_CU(CUtexref, cuModuleGetTexRef, module, "TX");
    CUsurfref bound = MADE_CU(CUsurfref, cuModuleGetSurfRef, module, "SF");
    OK_CU(cu.cuTexRefSetArray(texture, first, CU_TRSA_OVERRIDE_FORMAT));
    OK_CU(cu.cuSurfRefSetArray(bound, first, 0));
}

static void make_objects(void) {
    CUDA_TEXTURE_DESC texture = {.filterMode = CU_TR_FILTER_MODE_POINT};
    CUDA_RESOURCE_DESC resource = of_array(first);
    object = MADE_CU(CUtexObject, cuTexObjectCreate, &resource, &texture, NULL);
    surface = MADE_CU(CUsurfObject, cuSurfObjectCreate, &resource);
}

static const struct {
    const char *kernel;
    const unsigned long long *handle;
    void (*end)(void);
} ends[] = {
    {"t_2d", &object, destroy_the_texture},
    {"s_zero", &surface, destroy_the_surface},
    {"t_named", &object, bind_the_texture_anew},
    {"s_named", &object, bind_the_surface_anew},
};

static void is_of_the_first(void) {
    OK_CU(cu.cuMemcpyDtoH_v2(got, output, sizeof got[0]));
    assert_true(got[0].f[0] == 7);
}

TEST(a_launch_holds_what_it_samples) {
    unsigned count = 1;
    struct gate gate;
    open_arrays();
    CUstream stream = new_stream();
    OK_CU(cu.cuMemsetD8_v2(input, 0, sizeof given));
    gate_make(&gate);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        make_objects();
        unsigned long long handle = *ends[i].handle;
        void *params[] = {&output, &input, &handle, &count};
        gate_hold(&gate, stream);
        OK_CU(cu.cuLaunchKernel(function_of(module, ends[i].kernel), 1, 1, 1, 1, 1, 1, 0, stream,
                                params, NULL));
        ends[i].end();
        gate_release(&gate);
        OK_CU(cu.cuStreamSynchronize(stream));
        is_of_the_first();
        OK_CU(cu.cuTexObjectDestroy(object)); /* again, for one: destroying nothing succeeds */
        OK_CU(cu.cuSurfObjectDestroy(surface));
    }
    gate_free(&gate);
}

/* As recorded: what a reference is bound to is no argument that a node could keep. */
TEST(kernels_with_references_are_not_nodes_of_graphs) {
    static const char *const names[] = {"t_named", "s_named"};
    unsigned long long handle = 0;
    unsigned count = 1;
    void *params[] = {&output, &input, &handle, &count};
    open_arrays();
    CUstream stream = new_stream();
    CUDA_KERNEL_NODE_PARAMS node = kernel_node(function_of(module, "t_2d"), 1, 1, params);
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0), captured = NULL;
    CUgraphNode without = MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &node);
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    for (int i = 0; i < 2; i++) {
        CUgraphNode made;
        node.func = function_of(module, names[i]);
        FAILS_CU(NOT_SUPPORTED, cu.cuGraphAddKernelNode_v2(&made, graph, NULL, 0, &node));
        FAILS_CU(NOT_SUPPORTED, cu.cuGraphKernelNodeSetParams_v2(without, &node));
        FAILS_CU(NOT_SUPPORTED, cu.cuGraphExecKernelNodeSetParams_v2(exec, without, &node));
        OK_CU(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        FAILS_CU(STREAM_CAPTURE_UNSUPPORTED,
                 cu.cuLaunchKernel(node.func, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
        FAILS_CU(STREAM_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &captured));
        assert_null(captured);
    }
    destroy_exec(exec);
    destroy_graph(graph);
}

/* As an H200 does, which samples by descriptions that nothing clears. */
TEST(an_object_that_was_destroyed_before_the_launch_is_sampled_as_it_was) {
    unsigned count = 1;
    open_arrays();
    OK_CU(cu.cuMemsetD8_v2(input, 0, sizeof given));
    make_objects();
    unsigned long long handle = object;
    void *params[] = {&output, &input, &handle, &count};
    CUDA_KERNEL_NODE_PARAMS node = kernel_node(function_of(module, "t_2d"), 1, 1, params);
    CUgraph graph = MADE_CU(CUgraph, cuGraphCreate, 0);
    (void)MADE_CU(CUgraphNode, cuGraphAddKernelNode_v2, graph, NULL, 0, &node);
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    destroy_the_texture();
    destroy_the_surface();
    OK_CU(cu.cuGraphLaunch(exec, NULL));
    is_of_the_first();
    run("t_2d", object, 1);
    assert_true(got[0].f[0] == 7);
    run("s_zero", surface, 1);
    assert_true(got[0].f[0] == 7);
    destroy_exec(exec);
    destroy_graph(graph);
}
