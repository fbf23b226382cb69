/*
 * The steps in which textures are filtered, by inputs that show them one by one: weights of texels
 * that are 1 or 0, sums of floats of many exponents, each format between its texels, what a border
 * becomes in a format, sRGB between all neighbours, coordinates of wide textures, levels of
 * gradients, footprints of anisotropic filters, places in the faces of cubes. Words are printed in
 * hexadecimal; of many, a checksum.
 */
#include "texture_scene.h"

#include <math.h>

#define MANY 65536

static lane *given;
static uint32_t (*got)[4];
static uint32_t noise_state;

static uint32_t noise(void) {
    noise_state = noise_state * 1664525u + 1013904223u;
    return noise_state >> 8;
}

static void start_many(void) {
    par_context();
    SETUP(cuModuleLoadData, (&module, texture_text()));
    input = par_alloc(MANY * sizeof(*given));
    output = par_alloc(MANY * sizeof(*got));
    given = calloc(MANY, sizeof(*given));
    got = calloc(MANY, sizeof(*got));
    noise_state = 1;
}

static void run(const char *name, unsigned long long handle, unsigned count) {
    void *params[] = {&output, &input, &handle, &count};
    CUfunction f = PAR_MADE(CUfunction, cuModuleGetFunction, module, name);
    SETUP(cuMemcpyHtoD_v2, (input, given, count * sizeof(*given)));
    SETUP(cuLaunchKernel, (f, (count + 63) / 64, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    SETUP(cuMemcpyDtoH_v2, (got, output, count * sizeof(*got)));
}

/* The first `each` words of lanes from `from` on. */
static void print(const char *what, unsigned from, unsigned count, unsigned each) {
    unsigned lanes_a_line = each == 1 ? 32 : 64 / each / 2;
    for (unsigned i = 0; i < count; i += lanes_a_line) {
        char text[1200];
        size_t used = 0;
        for (unsigned k = i; k < i + lanes_a_line && k < count; k++) {
            for (unsigned w = 0; w < each; w++)
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%x",
                                         w > 0   ? ","
                                         : k > i ? " "
                                                 : "",
                                         got[from + k][w]);
        }
        par_see(what, "[%u] %s", i, text);
    }
}

static uint64_t checksum_of(unsigned from, unsigned count, unsigned word) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (unsigned i = from; i < from + count; i++)
        sum = (sum ^ got[i][word]) * 0x100000001b3u;
    return sum;
}

static void print_checksums(const char *what, unsigned count, unsigned each) {
    for (unsigned from = 0; from < count; from += count / 16) {
        char text[100];
        size_t used = 0;
        for (unsigned w = 0; w < each; w++)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%016llx", w ? " " : "",
                                     (unsigned long long)checksum_of(from, count / 16, w));
        par_see(what, "[%u] sum %s", from, text);
    }
}

static CUtexObject clamped(CUarray array, CUfilter_mode filter, unsigned flags) {
    CUDA_RESOURCE_DESC resource = resource_of(array);
    return texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, filter, flags);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* 2 x 2 (x 2) texels: channel c is 256 in the corner `first` + c, so that it becomes the weight. */
static CUtexObject corners(unsigned count, unsigned first) {
    float texels[8][4] = {{0}};
    for (unsigned c = 0; c < 4; c++)
        texels[first + c][c] = 256;
    return clamped(array_of(CU_AD_FORMAT_FLOAT, 4, 2, 2, count > 4 ? 2 : 0, 0, texels, 32, 2),
                   CU_TR_FILTER_MODE_LINEAR, 0);
}

static void at_fractions(unsigned lane_number, unsigned x, unsigned y, unsigned z) {
    const unsigned each[3] = {x, y, z};
    for (int a = 0; a < 3; a++)
        given[lane_number].f[a] = 0.5f + (float)each[a] / 256;
}

/* Weights as whole numbers: those that are none show as they are. */
static void weigh(const char *name, CUtexObject object, unsigned count) {
    run(name, object, count);
    for (unsigned i = 0; i < count; i++) {
        for (int c = 0; c < 4; c++) {
            float weight;
            memcpy(&weight, &got[i][c], sizeof(weight));
            if (weight >= 0 && weight <= 256 && weight == (float)(uint32_t)weight)
                got[i][c] = (uint32_t)weight;
        }
    }
}

SCENARIO(weights_of_two, "kernel-texture-steps/weights-2", start_many) {
    CUtexObject object = corners(4, 0);
    for (unsigned i = 0; i < MANY; i++)
        at_fractions(i, i & 255, i >> 8, 0);
    weigh("t_2d", object, MANY);
    print_checksums("all", MANY, 4);
    unsigned count = 0;
    while (count < 64) {
        unsigned x = noise() & 255, y = noise() & 255;
        if (x * y % 256 == 128)
            at_fractions(count++, x, y, 0);
    }
    weigh("t_2d", object, count);
    print("ties", 0, count, 4);
}

/* Both halves of the corners of three axes. */
static void weigh_three(const char *what, unsigned shown) {
    for (unsigned half = 0; half < 2; half++) {
        char text[64];
        weigh("t_3d", corners(8, 4 * half), shown ? shown : MANY);
        snprintf(text, sizeof(text), "%s-z%u", what, half);
        if (shown) {
            print(text, 0, shown, 4);
        } else {
            print_checksums(text, MANY, 4);
            print(text, 0, 128, 4);
        }
    }
}

SCENARIO(weights_of_three, "kernel-texture-steps/weights-3", start_many) {
    for (unsigned i = 0; i < MANY; i++) {
        unsigned x = noise() & 255, y = noise() & 255;
        at_fractions(i, x, y, noise() & 255);
    }
    weigh_three("any", 0);
    for (int what = 0; what < 4; what++) {
        char text[32];
        unsigned count = 0;
        while (count < 64) {
            unsigned x = noise() & 255, y = noise() & 255, z = noise() & 255;
            unsigned near = x * z / 256, exact = x * z % 256 == 0;
            bool chosen = what == 0   ? x * z % 256 == 128
                          : what == 1 ? exact && near * y % 256 == 128
                          : what == 2 ? exact && (z - near) * y % 256 == 128
                                      : exact && (x - near) * y % 256 == 128;
            if (chosen)
                at_fractions(count++, x, y, z);
        }
        snprintf(text, sizeof(text), "ties%d", what);
        weigh_three(text, 64);
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Of `exponents` exponents from `least` on, with all bits of the fraction. */
static uint32_t noisy_float(unsigned least, unsigned exponents) {
    uint32_t sign = (noise() & 1) << 31, exponent = least + noise() % exponents;
    return sign | exponent << 23 | (noise() & 0x7fffff);
}

static void anywhere(unsigned count, unsigned width, unsigned height, unsigned depth) {
    const unsigned sizes[3] = {width, height, depth};
    for (unsigned i = 0; i < count; i++) {
        for (int a = 0; a < 3; a++)
            given[i].f[a] = 0.5f + (float)(noise() % (sizes[a] * 256)) / 256;
    }
}

static void sums_of(const char *what, unsigned least, unsigned exponents, bool deep) {
    static uint32_t texels[4096];
    for (int i = 0; i < 4096; i++)
        texels[i] = noisy_float(least, exponents);
    CUarray array = deep ? array_of(CU_AD_FORMAT_FLOAT, 1, 16, 16, 16, 0, texels, 64, 16)
                         : array_of(CU_AD_FORMAT_FLOAT, 1, 64, 64, 0, 0, texels, 256, 64);
    anywhere(4096, deep ? 15 : 63, deep ? 15 : 63, 15);
    run(deep ? "t_3d" : "t_2d", clamped(array, CU_TR_FILTER_MODE_LINEAR, 0), 4096);
    print(what, 0, 192, 1);
    print_checksums(what, 4096, 1);
}

SCENARIO(sums_of_floats, "kernel-texture-steps/sums", start_many) {
    sums_of("near", 126, 2, false);
    sums_of("far", 120, 12, false);
    sums_of("farther", 110, 32, false);
    sums_of("smallest", 0, 5, false);
    sums_of("largest", 250, 5, false);
    sums_of("near-3d", 126, 2, true);
    sums_of("far-3d", 120, 12, true);
}

/* Texels alone and in the middle of two: zeros, denormals, infinities, NaNs and their bits. */
SCENARIO(special_floats, "kernel-texture-steps/special", start_many) {
    static const uint32_t texels[16] = {0x80000000, 0,          0x80000000, 1,
                                        0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff,
                                        0x7f7fffff, 0x7f800000, 0xff800000, 0x3f800000,
                                        0x7fa00001, 0xffc12345, 0x40000000, 0x3f800001};
    for (unsigned i = 0; i < 32; i++) {
        given[i].f[0] = 0.5f + (float)i / 2;
        given[i].f[1] = 0.5f;
    }
    for (int filter = 0; filter < 2; filter++) {
        CUarray row = array_of(CU_AD_FORMAT_FLOAT, 1, 16, 0, 0, 0, texels, 64, 1);
        CUarray plane = array_of(CU_AD_FORMAT_FLOAT, 1, 16, 1, 0, 0, texels, 64, 1);
        run("t_1d", clamped(row, (CUfilter_mode)filter, 0), 32);
        print(filter ? "row-linear" : "row-nearest", 0, 32, 1);
        run("t_2d", clamped(plane, (CUfilter_mode)filter, 0), 32);
        print(filter ? "plane-linear" : "plane-nearest", 0, 32, 1);
    }
    /* What a half receives. */
    uint32_t many[64];
    for (int i = 0; i < 64; i++) {
        many[i] = noisy_float(100, 46);
        given[i].f[0] = 0.5f + (float)i;
    }
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 64, 0, 0, 0, many, 256, 1);
    run("t_f16", clamped(array, CU_TR_FILTER_MODE_POINT, 0), 64);
    print("half", 0, 64, 1);
}

/* ---- formats --------------------------------------------------------------------------------- */

static void fill_texels(CUarray_format format, unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)noise();
    for (size_t i = 1; i < size && format == CU_AD_FORMAT_HALF; i += 2)
        bytes[i] &= 0xbf; /* exponents up to 15: below 2 */
    for (size_t i = 3; i < size && format == CU_AD_FORMAT_FLOAT; i += 4)
        bytes[i] = (bytes[i] & 0x80) | 0x3e; /* two pairs of exponents */
}

SCENARIO(between_texels, "kernel-texture-steps/between", start_many) {
    unsigned char bytes[16 * 4 * 16];
    for (size_t k = 0; k < COUNT(formats); k++) {
        if (formats[k].format == CU_AD_FORMAT_UNSIGNED_INT32 ||
            formats[k].format == CU_AD_FORMAT_SIGNED_INT32) {
            continue;
        }
        size_t row = 16 * (size_t)formats[k].bytes;
        fill_texels(formats[k].format, bytes, 4 * row);
        CUarray array =
            array_of(formats[k].format, formats[k].channels, 16, 4, 0, 0, bytes, row, 4);
        anywhere(96, 15, 3, 1);
        run("t_2d", clamped(array, CU_TR_FILTER_MODE_LINEAR, 0), 96);
        print(formats[k].name, 0, 96, formats[k].channels);
        for (unsigned i = 0; i < 64; i++) {
            given[i].f[0] = 0.5f + (float)(i % 16);
            given[i].f[1] = 0.5f + (float)(i >> 4);
        }
        run("t_2d", clamped(array, CU_TR_FILTER_MODE_LINEAR, 0), 64);
        print(formats[k].name, 0, 64, formats[k].channels);
    }
}

SCENARIO(between_compressed, "kernel-texture-steps/compressed", start_many) {
    static const struct {
        const char *name;
        CUresourceViewFormat format;
        unsigned channels;
    } rows[] = {{"bc1", CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 2},
                {"bc3", CU_RES_VIEW_FORMAT_UNSIGNED_BC3, 4},
                {"bc4", CU_RES_VIEW_FORMAT_UNSIGNED_BC4, 2},
                {"bc4s", CU_RES_VIEW_FORMAT_SIGNED_BC4, 2},
                {"bc5", CU_RES_VIEW_FORMAT_UNSIGNED_BC5, 4}};
    unsigned char bytes[256];
    for (size_t k = 0; k < COUNT(rows); k++) {
        size_t row = (size_t)rows[k].channels * 4 * 4;
        fill_texels(CU_AD_FORMAT_UNSIGNED_INT8, bytes, sizeof(bytes));
        CUarray array =
            array_of(CU_AD_FORMAT_UNSIGNED_INT32, rows[k].channels, 4, 4, 0, 0, bytes, row, 4);
        CUDA_RESOURCE_DESC resource = resource_of(array);
        CUDA_TEXTURE_DESC texture = settings(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
        CUDA_RESOURCE_VIEW_DESC view = {.format = rows[k].format, .width = 16, .height = 16};
        CUtexObject object = PAR_MADE(CUtexObject, cuTexObjectCreate, &resource, &texture, &view);
        for (unsigned i = 0; i < 256; i++) {
            given[i].f[0] = 0.5f + (float)(i % 16);
            given[i].f[1] = 0.5f + (float)(i >> 4);
        }
        run("t_2d", object, 256);
        print(rows[k].name, 0, 256, 4);
        anywhere(64, 15, 15, 1);
        run("t_2d", object, 64);
        print(rows[k].name, 0, 64, 4);
    }
}

/* All values of 8 and 16 bits, each alone. */
SCENARIO(every_value, "kernel-texture-steps/values", start_many) {
    static const struct {
        const char *name;
        CUarray_format format;
        unsigned bits;
    } rows[] = {{"s8", CU_AD_FORMAT_SIGNED_INT8, 8},
                {"u16", CU_AD_FORMAT_UNSIGNED_INT16, 16},
                {"s16", CU_AD_FORMAT_SIGNED_INT16, 16},
                {"half", CU_AD_FORMAT_HALF, 16}};
    static uint16_t values[MANY];
    static unsigned char small[256];
    for (unsigned i = 0; i < MANY; i++) {
        values[i] = (uint16_t)i;
        small[i & 255] = (unsigned char)i;
        given[i].f[0] = 0.5f + (float)i;
    }
    for (size_t k = 0; k < COUNT(rows); k++) {
        unsigned count = 1u << rows[k].bits;
        CUarray array =
            array_of(rows[k].format, 1, count, 0, 0, 0,
                     rows[k].bits == 8 ? (const void *)small : values, count * rows[k].bits / 8, 1);
        for (int filter = 0; filter < 2; filter++) {
            char text[32];
            snprintf(text, sizeof(text), "%s%s", rows[k].name, filter ? "-linear" : "");
            run("t_1d", clamped(array, (CUfilter_mode)filter, 0), count);
            print_checksums(text, count, 1);
            if (rows[k].bits == 8) {
                print(text, 0, count, 1);
            } else {
                for (unsigned i = 0; i < 64; i++)
                    memcpy(got[i], got[i * 1021], sizeof(got[i]));
                print(text, 0, 64, 1);
            }
        }
    }
}

/* What a border of any numbers is in each format, at the left of its texels. */
SCENARIO(borders, "kernel-texture-steps/borders", start_many) {
    static const float colours[8][4] = {{0.3f, 0.7f, 0.9f, 0.1f},
                                        {-0.3f, -1, -2, -0.001f},
                                        {0.5f, 0.25f, 0.75f, 1},
                                        {2, 300, 70000, 1e10f},
                                        {1e-3f, 1e-5f, 1e-8f, 0},
                                        {NAN, INFINITY, -INFINITY, 1e-44f},
                                        {1.0f / 3, 0.999f, 0.99999f, 0.6f},
                                        {0.001961f, 0.00392f, 0.0058f, 0.002f}};
    unsigned char bytes[64] = {0};
    for (size_t k = 0; k < COUNT(formats); k++) {
        CUarray array = array_of(formats[k].format, formats[k].channels, 4, 0, 0, 0, bytes,
                                 4 * (size_t)formats[k].bytes, 1);
        CUDA_RESOURCE_DESC resource = resource_of(array);
        bool bytes_alone = formats[k].format == CU_AD_FORMAT_UNSIGNED_INT8;
        for (int what = 0; what < (bytes_alone ? 3 : 2); what++) {
            uint32_t kept[8][4] = {{0}};
            for (int i = 0; i < 8; i++) {
                CUtexObject object = 0;
                CUDA_TEXTURE_DESC texture =
                    settings(CU_TR_ADDRESS_MODE_BORDER, CU_TR_FILTER_MODE_POINT,
                             what == 1   ? CU_TRSF_READ_AS_INTEGER
                             : what == 2 ? CU_TRSF_SRGB
                                         : 0u);
                memcpy(texture.borderColor, colours[i], sizeof(colours[i]));
                given[0].f[0] = -2;
                if (par.api->cuTexObjectCreate(&object, &resource, &texture, NULL) !=
                    CUDA_SUCCESS) {
                    continue; /* zeros */
                }
                run("t_1d", object, 1);
                memcpy(kept[i], got[0], sizeof(kept[i]));
                SETUP(cuTexObjectDestroy, (object));
            }
            memcpy(got, kept, sizeof(kept));
            char text[64];
            snprintf(text, sizeof(text), "%s%s", formats[k].name,
                     what == 1   ? "-integers"
                     : what == 2 ? "-srgb"
                                 : "");
            print(text, 0, 8, formats[k].channels);
        }
    }
}

/* Each value of sRGB with its neighbour, in the middle and elsewhere, and four of any. */
SCENARIO(srgb_between, "kernel-texture-steps/srgb", start_many) {
    static unsigned char row[256][4], plane[64][64][4];
    for (int i = 0; i < 256; i++)
        memset(row[i], i, 4);
    CUtexObject object =
        clamped(array_of(CU_AD_FORMAT_UNSIGNED_INT8, 4, 256, 0, 0, 0, row, 1024, 1),
                CU_TR_FILTER_MODE_LINEAR, CU_TRSF_SRGB);
    for (unsigned weight = 51; weight < 256; weight += 77) {
        for (unsigned i = 0; i < 255; i++)
            given[i].f[0] = (float)i + 0.5f + (float)weight / 256;
        run("t_1d", object, 255);
        print("neighbours", 0, 255, 1);
    }
    for (unsigned i = 0; i < sizeof(plane); i++)
        ((unsigned char *)plane)[i] = (unsigned char)noise();
    object = clamped(array_of(CU_AD_FORMAT_UNSIGNED_INT8, 4, 64, 64, 0, 0, plane, 256, 64),
                     CU_TR_FILTER_MODE_LINEAR, CU_TRSF_SRGB);
    anywhere(256, 63, 63, 1);
    run("t_2d", object, 256);
    print("plane", 0, 256, 2);
}

/* ---- coordinates ----------------------------------------------------------------------------- */

SCENARIO(wide_coordinates, "kernel-texture-steps/coordinates", start_many) {
    static const unsigned widths[] = {3001, 16384, 31999, 7};
    static float texels[32768];
    for (int i = 0; i < 32768; i++)
        texels[i] = (float)(i * 256);
    for (int k = 0; k < 4; k++) {
        CUarray array =
            array_of(CU_AD_FORMAT_FLOAT, 1, widths[k], 0, 0, 0, texels, widths[k] * 4, 1);
        CUDA_RESOURCE_DESC resource = resource_of(array);
        for (int what = 0; what < 6; what++) {
            char text[64];
            bool normal = what < 4;
            CUtexObject object =
                texture_of(&resource, what >= 4 ? CU_TR_ADDRESS_MODE_CLAMP : modes[what & 2],
                           (what & 1) ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT,
                           normal ? CU_TRSF_NORMALIZED_COORDINATES : 0);
            for (unsigned i = 0; i < 96; i++) {
                float u = (float)noise() * 0x1p-24f;
                given[i].f[0] = normal ? u : u * (float)widths[k];
                given[i].f[0] *= i < 64 ? 1 : i < 80 ? -3.3f : 1000.7f;
            }
            run("t_1d", object, 96);
            snprintf(text, sizeof(text), "%u-%s-%s-%s", widths[k], normal ? "normal" : "plain",
                     what >= 4  ? "clamp"
                     : what & 2 ? "mirror"
                                : "wrap",
                     what & 1 ? "linear" : "nearest");
            print(text, 0, 96, 1);
        }
    }
    /* Where the four of a gather begin. */
    CUtexObject object = clamped(array_of(CU_AD_FORMAT_FLOAT, 1, 8, 2, 0, 0, texels, 32, 2),
                                 CU_TR_FILTER_MODE_LINEAR, 0);
    for (unsigned i = 0; i < 64; i++) {
        given[i].f[0] = 1.5f + ((float)i - 32) / 4096;
        given[i].f[1] = 1;
    }
    run("t_gather_r", object, 64);
    print("gather", 0, 64, 1);
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* Level l has 256 * l everywhere, or a column of 4096 in level 0. */
static CUmipmappedArray pyramid(unsigned size, unsigned count, bool column) {
    static float texels[256 * 256];
    CUDA_ARRAY3D_DESCRIPTOR desc = {size, size, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUmipmappedArray mipmap = PAR_MADE(CUmipmappedArray, cuMipmappedArrayCreate, &desc, count);
    for (unsigned l = 0; l < count; l++) {
        for (unsigned i = 0; i < (size >> l) * (size >> l); i++)
            texels[i] = column ? (i % (size >> l) == size / 2 >> l ? 4096 : 0) : (float)(256 * l);
        CUarray level = PAR_MADE(CUarray, cuMipmappedArrayGetLevel, mipmap, l);
        CUDA_MEMCPY3D copy = {FROM_HOST(texels), .srcPitch = (size >> l) * 4, TO_ARRAY(level),
                              EXTENT_3D((size >> l) * 4, size >> l, 1)};
        SETUP(cuMemcpy3D_v2, (&copy));
    }
    return mipmap;
}

static CUtexObject of_levels(CUmipmappedArray mipmap, unsigned anisotropy, float bias) {
    CUDA_RESOURCE_DESC resource;
    memset(&resource, 0, sizeof(resource));
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = mipmap;
    CUDA_TEXTURE_DESC texture = settings(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR,
                                         CU_TRSF_NORMALIZED_COORDINATES);
    texture.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
    texture.mipmapLevelBias = bias;
    texture.maxAnisotropy = anisotropy;
    return PAR_MADE(CUtexObject, cuTexObjectCreate, &resource, &texture, NULL);
}

/* by^times */
static float grown(float by, unsigned times) {
    float value = 1;
    for (unsigned i = 0; i < times; i++)
        value *= by;
    return value;
}

SCENARIO(gradients, "kernel-texture-steps/gradients", start_many) {
    CUmipmappedArray mipmap = pyramid(256, 9, false);
    CUtexObject object = of_levels(mipmap, 1, 0);
    for (unsigned i = 0; i < 64; i++) {
        given[i].f[0] = given[i].f[1] = 0.4f;
        given[i].f[2] = 1 + ((float)i - 0.25f) / 1024;
    }
    run("t_level", object, 64);
    print("level", 0, 64, 1);
    run("t_level", of_levels(mipmap, 1, 0.123f), 64);
    print("level-bias", 0, 64, 1);
    for (int what = 0; what < 6; what++) {
        char text[32];
        for (unsigned i = 0; i < 96; i++) {
            float a = grown(1.0443f, i) / 256 * 0.7f, b = (float)(noise() & 1023) / 16384;
            given[i].f[2] = what == 1 ? 0 : what >= 2 ? b : a;
            given[i].f[3] = what == 2   ? b
                            : what == 3 ? (float)(noise() & 1023) / 16384
                            : what >= 4 ? -(float)(noise() & 255) / 16384
                                        : 0;
            given[i].f[4] = what >= 4 ? (float)(noise() & 1023) / 16384 : 0;
            given[i].f[5] = what == 1 ? a : what >= 4 ? (float)(noise() & 1023) / 16384 : 0;
        }
        run("t_grad", object, 96);
        snprintf(text, sizeof(text), "gradient%d", what);
        print(text, 0, 96, 1);
    }
}

SCENARIO(footprints, "kernel-texture-steps/footprints", start_many) {
    static const unsigned most[] = {2, 4, 16};
    CUmipmappedArray flat = pyramid(256, 9, false), column = pyramid(256, 9, true);
    for (int k = 0; k < 3; k++) {
        char text[32];
        for (unsigned i = 0; i < 128; i++) {
            given[i].f[0] = given[i].f[1] = 0.4f;
            given[i].f[2] = grown(1.1225f, i % 32) / 256;
            given[i].f[3] = given[i].f[4] = 0;
            given[i].f[5] = grown(1.7411f, i >> 5) / 256;
        }
        run("t_grad", of_levels(flat, most[k], 0), 128);
        snprintf(text, sizeof(text), "level-of-%u", most[k]);
        print(text, 0, 128, 1);
        for (unsigned i = 0; i < 256; i++) {
            given[i].f[0] = (128.5f + ((float)(i & 63) - 32) / 4) / 256;
            given[i].f[1] = 0.4f;
            given[i].f[2] = (float[]){1.5f, 2, 5, 11}[i >> 6] / 256;
            given[i].f[3] = given[i].f[4] = 0;
            given[i].f[5] = 1.0f / 256;
        }
        run("t_grad", of_levels(column, most[k], 0), 256);
        snprintf(text, sizeof(text), "column-of-%u", most[k]);
        print(text, 0, 256, 1);
    }
}

/* ---- cubes ----------------------------------------------------------------------------------- */

/* Channels: the face, and 256 times column and row. */
SCENARIO(directions, "kernel-texture-steps/directions", start_many) {
    static float texels[6][64][64][4];
    for (int i = 0; i < 6 * 64 * 64; i++) {
        float *texel = texels[i / 4096][i / 64 % 64][i % 64];
        int face = i / 4096;
        texel[0] = (float)face;
        texel[1] = (float)(256 * (i % 64));
        texel[2] = (float)(256 * (i / 64 % 64));
    }
    CUarray array =
        array_of(CU_AD_FORMAT_FLOAT, 4, 64, 64, 6, CUDA_ARRAY3D_CUBEMAP, texels, 1024, 64);
    for (unsigned i = 0; i < 256; i++) {
        for (int a = 0; a < 3; a++)
            given[i].f[a] = ((float)noise() * 0x1p-23f - 1) * (i < 192 ? 1 : 1e-3f);
    }
    for (int what = 0; what < 3; what++) {
        CUtexObject object =
            clamped(array, what > 0 ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT,
                    CU_TRSF_NORMALIZED_COORDINATES | (what > 1 ? CU_TRSF_SEAMLESS_CUBEMAP : 0u));
        run("t_cube", object, 256);
        print(what > 1 ? "seamless" : what > 0 ? "linear" : "nearest", 0, 256, 3);
    }
}

/* The last bits of a coordinate, where its fraction changes, and below 0. */
SCENARIO(last_bits, "kernel-texture-steps/last-bits", start_many) {
    static const float texels[8] = {0, 256, 768, 1792, 3840, 7936, 16128, 32512};
    CUtexObject object = clamped(array_of(CU_AD_FORMAT_FLOAT, 1, 8, 0, 0, 0, texels, 32, 1),
                                 CU_TR_FILTER_MODE_LINEAR, 0);
    for (unsigned i = 0; i < 64; i++)
        given[i].f[0] = float_of(0x3fc08000u - 32 + i); /* 1.5 and half of 1/256 */
    run("t_1d", object, 64);
    print("around-half", 0, 64, 1);
    for (unsigned i = 0; i < 64; i++)
        given[i].f[0] = float_of(0xbdc00000u + (i << 19)); /* below 0 */
    run("t_1d", object, 64);
    print("below-zero", 0, 64, 1);
}
