/*
 * Values that kernels sample where no document says how: coordinates between 1/256 of a texel,
 * numbers that are none, borders of formats, missing channels, edges and corners of cubes, sRGB,
 * levels, gradients, blocks of compressed texels, places outside of surfaces, what queries answer.
 * Words are printed in hexadecimal: results of float are their bits.
 */
#include "texture_scene.h"

#include <math.h>

/* ---- coordinates ----------------------------------------------------------------------------- */

/* From 1 to 1.125 texels in 1/512, and around 2 in the last bits. */
SCENARIO(fractions, "kernel-texture/fractions", start) {
    static const float texels[8] = {0, 256, 768, 1792, 3840, 7936, 16128, 32512};
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 8, 0, 0, 0, texels, 32, 1);
    CUDA_RESOURCE_DESC resource = resource_of(array);
    for (int filter = 0; filter < 2; filter++) {
        CUtexObject plain =
            texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, (CUfilter_mode)filter, 0);
        CUtexObject normal = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, (CUfilter_mode)filter,
                                        CU_TRSF_NORMALIZED_COORDINATES);
        for (int i = 0; i < MOST; i++)
            lanes[i].f[0] = 1 + (float)i / 512;
        show(filter ? "fraction-linear" : "fraction-nearest", "t_1d", plain, MOST, 1);
        for (int i = 0; i < 32; i++)
            lanes[i].u[0] = 0x40000000u - 16 + (uint32_t)i;
        show(filter ? "near-2-linear" : "near-2-nearest", "t_1d", plain, 32, 1);
        for (int i = 0; i < 32; i++)
            lanes[i].f[0] = (1.5f + (float)i / 1024 + 1.0f / 8192) / 8;
        show(filter ? "normal-linear" : "normal-nearest", "t_1d", normal, 32, 1);
        for (int i = 0; i < 32; i++)
            lanes[i].f[0] = (float)i / 31 * 1.3f - 0.15f; /* no whole number of anything */
        show(filter ? "thirds-linear" : "thirds-nearest", "t_1d", normal, 32, 1);
    }
}

SCENARIO(far_away, "kernel-texture/far-away") {
    static const float texels[4] = {1, 2, 3, 4};
    static const float places[] = {-0.0f,    -1e-9f,    1e-9f, 4,     3.9999998f, 1e6f,
                                   -1e6f,    8.4e6f,    1e9f,  -1e9f, 3e38f,      -3e38f,
                                   INFINITY, -INFINITY, NAN,   1e-44f};
    start();
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 0, 0, 0, texels, 16, 1);
    CUDA_RESOURCE_DESC resource = resource_of(array);
    for (int i = 0; i < 16; i++)
        lanes[i].f[0] = places[i];
    for (int what = 0; what < 16; what++) {
        char text[64];
        CUtexObject object = texture_of(&resource, modes[what & 3], (CUfilter_mode)(what >> 2 & 1),
                                        what >> 3 ? CU_TRSF_NORMALIZED_COORDINATES : 0);
        snprintf(text, sizeof(text), "mode%d-%s-%s", what & 3, what >> 2 & 1 ? "linear" : "nearest",
                 what >> 3 ? "normal" : "plain");
        show(text, "t_1d", object, 16, 1);
    }
}

/* The weights of two and three axes, with texels whose sums do not fit a float. */
SCENARIO(sums, "kernel-texture/sums") {
    static const float values[8] = {1, 3e-8f, 16777216, -5, 0.1f, 1e10f, -1e10f, 7};
    float plane[64], infinite[4] = {1, INFINITY, NAN, 2};
    start();
    for (int i = 0; i < 64; i++)
        plane[i] = values[i % 8] * (float)(1 + (i >> 3));
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 8, 8, 0, 0, plane, 32, 8);
    CUDA_RESOURCE_DESC resource = resource_of(array);
    CUtexObject object =
        texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
    for (int i = 0; i < MOST; i++) {
        lanes[i].f[0] = (float)(i * 37 % 512) / 64 + 0.1f;
        lanes[i].f[1] = (float)(i * 53 % 512) / 64 + 0.3f;
        lanes[i].f[2] = (float)(i * 11 % 128) / 64 + 0.2f;
    }
    show("plane", "t_2d", object, MOST, 1);
    array = array_of(CU_AD_FORMAT_FLOAT, 1, 8, 4, 2, 0, plane, 32, 4);
    resource = resource_of(array);
    object = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
    show("space", "t_3d", object, MOST, 1);
    array = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 0, 0, 0, infinite, 16, 1);
    resource = resource_of(array);
    object = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
    for (int i = 0; i < 16; i++)
        lanes[i].f[0] = (float)i / 4;
    show("infinite", "t_1d", object, 16, 1);
}

/* ---- formats --------------------------------------------------------------------------------- */

/* Texels, missing channels, the border, and sums of two. */
SCENARIO(each_format, "kernel-texture/formats") {
    static const float places[] = {0.5f, 1.5f, 2.5f, 3.5f, 1, 1.9f, -1, 5};
    unsigned char bytes[64];
    start();
    for (int i = 0; i < 64; i++)
        bytes[i] = (unsigned char)(i * 73 + 1);
    for (size_t k = 0; k < COUNT(formats); k++) {
        CUarray array = array_of(formats[k].format, formats[k].channels, 4, 0, 0, 0, bytes,
                                 4 * (size_t)formats[k].bytes, 1);
        CUDA_RESOURCE_DESC resource = resource_of(array);
        for (int i = 0; i < 8; i++)
            lanes[i].f[0] = places[i];
        for (int what = 0; what < 4; what++) {
            char text[64];
            CUtexObject object = 0;
            CUDA_TEXTURE_DESC texture =
                settings(CU_TR_ADDRESS_MODE_BORDER, (CUfilter_mode)(what & 1),
                         what & 2 ? CU_TRSF_READ_AS_INTEGER : 0);
            snprintf(text, sizeof(text), "%s%s%s", formats[k].name, what & 1 ? "-linear" : "",
                     what & 2 ? "-integers" : "");
            CUresult result = par.api->cuTexObjectCreate(&object, &resource, &texture, NULL);
            if (result != CUDA_SUCCESS) {
                par_see(text, "%s", par_result_name(result));
                continue;
            }
            show(text, "t_1d", object, 8, 4);
            show(text, "t_f16", object, 2, 2);
        }
    }
}

/* Every value of 8 bits, alone and in the middle of two. */
SCENARIO(srgb, "kernel-texture/srgb", start) {
    unsigned char bytes[256][4];
    for (int i = 0; i < 256; i++)
        memset(bytes[i], i, 4);
    CUarray array = array_of(CU_AD_FORMAT_UNSIGNED_INT8, 4, 256, 0, 0, 0, bytes, 1024, 1);
    CUDA_RESOURCE_DESC resource = resource_of(array);
    CUtexObject object =
        texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, CU_TRSF_SRGB);
    CUtexObject plain =
        texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
    for (int from = 0; from < 256; from += MOST) {
        for (int i = 0; i < MOST; i++)
            lanes[i].f[0] = (float)(from + i) + 0.5f;
        show("srgb", "t_1d", object, MOST, 1);
        show("part", "t_1d", plain, MOST, 1);
    }
    for (int i = 0; i < MOST; i++)
        lanes[i].f[0] = (float)i * 3.97f + 0.7f;
    show("srgb-between", "t_1d", object, MOST, 4);
    show("part-between", "t_1d", plain, MOST, 1);
}

/* BC1 to BC5 through views of integers. */
SCENARIO(blocks, "kernel-texture/blocks") {
    static const struct {
        const char *name;
        CUresourceViewFormat format;
        unsigned channels;
    } rows[] = {
        {"bc1", CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 2}, {"bc2", CU_RES_VIEW_FORMAT_UNSIGNED_BC2, 4},
        {"bc3", CU_RES_VIEW_FORMAT_UNSIGNED_BC3, 4}, {"bc4", CU_RES_VIEW_FORMAT_UNSIGNED_BC4, 2},
        {"bc4s", CU_RES_VIEW_FORMAT_SIGNED_BC4, 2},  {"bc5", CU_RES_VIEW_FORMAT_UNSIGNED_BC5, 4},
        {"bc5s", CU_RES_VIEW_FORMAT_SIGNED_BC5, 4}};
    unsigned char bytes[64];
    start();
    for (int i = 0; i < 64; i++)
        bytes[i] = (unsigned char)(i * i * 29 + 17 * i + 3);
    for (size_t k = 0; k < COUNT(rows); k++) {
        size_t row = (size_t)rows[k].channels * 4 * 2;
        CUarray array =
            array_of(CU_AD_FORMAT_UNSIGNED_INT32, rows[k].channels, 2, 2, 0, 0, bytes, row, 2);
        CUDA_RESOURCE_DESC resource = resource_of(array);
        CUDA_TEXTURE_DESC texture = settings(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
        CUDA_RESOURCE_VIEW_DESC view = {.format = rows[k].format, .width = 8, .height = 8};
        CUtexObject object = PAR_MADE(CUtexObject, cuTexObjectCreate, &resource, &texture, &view);
        for (int i = 0; i < MOST; i++) {
            lanes[i].f[0] = (float)(i % 8) + 0.5f;
            lanes[i].f[1] = (float)i / 8 + 0.5f;
        }
        show(rows[k].name, "t_2d", object, MOST, 4);
    }
}

/* ---- numbers of texels and layers ------------------------------------------------------------ */

SCENARIO(outside, "kernel-texture/outside") {
    static const int places[] = {0, 3, 4, 5, -1, -4, 1 << 20, INT32_MIN};
    static const float texels[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    start();
    CUdeviceptr memory = par_alloc(4096);
    SETUP(cuMemcpyHtoD_v2, (memory, texels, sizeof(texels)));
    for (int i = 0; i < 8; i++)
        lanes[i].i[0] = places[i];
    for (int m = 0; m < 4; m++) {
        char text[64];
        CUDA_RESOURCE_DESC resource;
        memset(&resource, 0, sizeof(resource));
        resource.resType = CU_RESOURCE_TYPE_LINEAR;
        resource.res.linear.devPtr = memory;
        resource.res.linear.format = CU_AD_FORMAT_FLOAT;
        resource.res.linear.numChannels = 1;
        resource.res.linear.sizeInBytes = 16;
        CUtexObject object = texture_of(&resource, modes[m], CU_TR_FILTER_MODE_LINEAR, 0);
        snprintf(text, sizeof(text), "linear-memory-mode%d", m);
        show(text, "t_fetch", object, 8, 4);
        CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 0, 0, 0, texels, 16, 1);
        resource = resource_of(array);
        object = texture_of(&resource, modes[m], CU_TR_FILTER_MODE_LINEAR, 0);
        snprintf(text, sizeof(text), "array-mode%d", m);
        show(text, "t_fetch", object, 8, 4);
        object = texture_of(&resource, modes[m], CU_TR_FILTER_MODE_LINEAR,
                            CU_TRSF_NORMALIZED_COORDINATES);
        snprintf(text, sizeof(text), "normal-array-mode%d", m);
        show(text, "t_fetch", object, 8, 4);
    }
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 2, 2, CUDA_ARRAY3D_LAYERED, texels, 16, 2);
    CUDA_RESOURCE_DESC resource = resource_of(array);
    CUtexObject object =
        texture_of(&resource, CU_TR_ADDRESS_MODE_BORDER, CU_TR_FILTER_MODE_POINT, 0);
    static const int layers[] = {0, 1, 2, 7, -1, 65535, 65536, INT32_MIN};
    for (int i = 0; i < 8; i++) {
        lanes[i].f[0] = 0.5f;
        lanes[i].f[1] = 0.5f;
        lanes[i].i[3] = layers[i];
    }
    show("layer", "t_a2d", object, 8, 4);
    show("layered-size", "q_size", object, 1, 3);
}

/* ---- cubes ----------------------------------------------------------------------------------- */

SCENARIO(cubes, "kernel-texture/cubes", start) {
    float texels[6 * 16];
    for (int i = 0; i < 6 * 16; i++)
        texels[i] = (float)(i * 256);
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 4, 6, CUDA_ARRAY3D_CUBEMAP, texels, 16, 4);
    CUDA_RESOURCE_DESC resource = resource_of(array);
    for (int what = 0; what < 12; what++) {
        char text[64];
        CUtexObject object = texture_of(
            &resource, modes[what & 3],
            what >= 4 ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT,
            CU_TRSF_NORMALIZED_COORDINATES | (what >= 8 ? CU_TRSF_SEAMLESS_CUBEMAP : 0u));
        snprintf(text, sizeof(text), "mode%d-%s", what & 3,
                 what >= 8   ? "seamless"
                 : what >= 4 ? "linear"
                             : "nearest");
        /* Directions of a grid of 27, with ties, 0 among them; then edges of all faces. */
        for (int i = 0; i < 27; i++) {
            lanes[i].f[0] = (float)(i % 3 - 1);
            lanes[i].f[1] = (float)(i / 3 % 3 - 1);
            lanes[i].f[2] = (float)(i >= 18 ? 1 : i >= 9 ? 0 : -1);
        }
        show(text, "t_cube", object, 27, 1);
        for (int i = 0; i < 48; i++) {
            int axis = i / 16;
            float edge = i & 1 ? 0.9f : 0.97f;
            lanes[i].f[axis] = i & 2 ? 1 : -1;
            lanes[i].f[(axis + 1) % 3] = i & 4 ? edge : -edge;
            lanes[i].f[(axis + 2) % 3] = i & 8 ? 0.93f : 0.3f;
        }
        show(text, "t_cube", object, 48, 1);
        if (what >= 8)
            show(text, "t_gather_cube", object, 48, 4);
    }
    CUtexObject object =
        texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    show("cube-size", "q_size", object, 1, 3);
}

/* ---- levels ---------------------------------------------------------------------------------- */

SCENARIO(levels, "kernel-texture/levels") {
    static const struct {
        float bias, least, most;
        unsigned anisotropy;
    } rows[] = {{0, 0, 100, 0},  {0.3f, 0, 100, 0}, {-0.3f, 0, 100, 0}, {0, 0.6f, 100, 0},
                {0, 0, 1.3f, 0}, {0, 2, 1, 0},      {0, 0, 100, 16}};
    start();
    CUDA_ARRAY3D_DESCRIPTOR desc = {16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUmipmappedArray mipmap = PAR_MADE(CUmipmappedArray, cuMipmappedArrayCreate, &desc, 5);
    for (unsigned l = 0; l < 5; l++) {
        float texels[256];
        for (int i = 0; i < 256; i++)
            texels[i] = (float)(1024 * l);
        CUarray level = PAR_MADE(CUarray, cuMipmappedArrayGetLevel, mipmap, l);
        CUDA_MEMCPY3D copy = {FROM_HOST(texels), .srcPitch = (16u >> l) * 4, TO_ARRAY(level),
                              EXTENT_3D((16u >> l) * 4, 16u >> l, 1)};
        SETUP(cuMemcpy3D_v2, (&copy));
    }
    CUDA_RESOURCE_DESC resource;
    memset(&resource, 0, sizeof(resource));
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.mipmap.hMipmappedArray = mipmap;
    for (size_t k = 0; k < COUNT(rows); k++) {
        for (int linear = 0; linear < 2; linear++) {
            char text[80];
            CUtexObject object = 0;
            CUDA_TEXTURE_DESC texture = settings(CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_LINEAR,
                                                 CU_TRSF_NORMALIZED_COORDINATES);
            texture.mipmapFilterMode = (CUfilter_mode)linear;
            texture.mipmapLevelBias = rows[k].bias;
            texture.minMipmapLevelClamp = rows[k].least;
            texture.maxMipmapLevelClamp = rows[k].most;
            texture.maxAnisotropy = rows[k].anisotropy;
            SETUP(cuTexObjectCreate, (&object, &resource, &texture, NULL));
            snprintf(text, sizeof(text), "bias%g-from%g-to%g-aniso%u%s", (double)rows[k].bias,
                     (double)rows[k].least, (double)rows[k].most, rows[k].anisotropy,
                     linear ? "-linear" : "");
            for (int i = 0; i < MOST; i++) {
                lanes[i].f[0] = lanes[i].f[1] = 0.4f;
                lanes[i].f[2] = (float)i / 11 - 0.5f;
            }
            lanes[63].f[2] = NAN;
            lanes[62].f[2] = INFINITY;
            lanes[61].f[2] = 1 + 0.5f / 256;
            lanes[60].f[2] = 1.5f;
            show(text, "t_level", object, MOST, 1);
            show(text, "t_base", object, 1, 1);
            show(text, "t_2d", object, 1, 1);
            for (int i = 0; i < MOST; i++) {
                lanes[i].f[2] = (float)(i % 8) / 40;
                lanes[i].f[3] = (float)(i >> 3) / 50;
                lanes[i].f[4] = (float)(i % 3) / 30;
                lanes[i].f[5] = -(float)(i % 5) / 60;
            }
            if (rows[k].anisotropy <= 1) { /* else see below */
                show(text, "t_grad", object, MOST, 1);
            }
            for (int i = 0; i < 6; i++)
                lanes[i].i[0] = i;
            show(text, "q_level", object, 6, 3);
        }
    }
}

/* With a gradient and anisotropy: in a scenario of its own, as softgpu refuses it. */
SCENARIO(anisotropy, "kernel-texture/anisotropy", start) {
    float texels[256];
    for (int i = 0; i < 256; i++)
        texels[i] = (float)(i * i % 251);
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 16, 16, 0, 0, texels, 64, 16);
    CUDA_RESOURCE_DESC resource = resource_of(array);
    CUDA_TEXTURE_DESC texture =
        settings(CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_LINEAR, CU_TRSF_NORMALIZED_COORDINATES);
    texture.maxAnisotropy = 16;
    CUtexObject object = PAR_MADE(CUtexObject, cuTexObjectCreate, &resource, &texture, NULL);
    for (int i = 0; i < 16; i++) {
        lanes[i].f[0] = lanes[i].f[1] = 0.4f;
        lanes[i].f[2] = (float)i / 40;
        lanes[i].f[5] = 1.0f / 16;
    }
    show("anisotropy", "t_grad", object, 16, 1);
}

/* ---- surfaces -------------------------------------------------------------------------------- */

static CUsurfObject surface_of(CUarray array) {
    CUDA_RESOURCE_DESC resource = resource_of(array);
    return PAR_MADE(CUsurfObject, cuSurfObjectCreate, &resource);
}

SCENARIO(surfaces, "kernel-texture/surfaces", start) {
    unsigned char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    CUarray array =
        array_of(CU_AD_FORMAT_UNSIGNED_INT8, 4, 8, 8, 0, CUDA_ARRAY3D_SURFACE_LDST, bytes, 32, 8);
    CUsurfObject object = surface_of(array);
    for (int i = 0; i < MOST; i++) {
        lanes[i].i[0] = i % 8 * 8 - 16;
        lanes[i].i[1] = i / 8 - 1;
    }
    show("bounds", "s_zero", object, MOST, 1);
    show("bounds", "s_clamp", object, MOST, 1);
    show("bounds", "s_bytes", object, MOST, 4);
    for (int i = 0; i < MOST; i++)
        lanes[i].i[0] = (i % 8 - 2) * 16;
    show("bounds", "s_vector", object, MOST, 4);
    for (int i = 0; i < 8; i++) {
        lanes[i].i[0] = 4 * i;
        lanes[i].i[1] = 1;
    }
    show("bytes", "s_bytes", object, 8, 4);
    show("surface", "q_surface", object, 1, 3);
    show("surface", "q_type", object, 1, 3);
}

/* sust.p: what each format makes of registers. */
SCENARIO(formatted_stores, "kernel-texture/formatted-stores") {
    static const uint32_t values[] = {0,          1,          127,        128,        255,
                                      256,        65535,      65536,      0x7fffffff, 0x80000000,
                                      0xffffffff, 0xffffff80, 0x3f000000, 0x3f800000, 0xbf800000,
                                      0x40000000, 0x7fc00000, 0x3b008081, 0x477fefff, 0x00800000};
    start();
    for (size_t k = 0; k < COUNT(formats); k++) {
        unsigned char zeros[16 * 32] = {0}, got[16 * 32];
        char text[1200];
        size_t row = 20 * (size_t)formats[k].bytes;
        CUarray array = array_of(formats[k].format, formats[k].channels, 20, 1, 0,
                                 CUDA_ARRAY3D_SURFACE_LDST, zeros, row, 1);
        CUsurfObject object = surface_of(array);
        for (int i = 0; i < 20; i++) {
            lanes[i].i[0] = i;
            lanes[i].i[1] = 0;
            for (int c = 0; c < 4; c++)
                lanes[i].u[4 + c] = values[(i + c) % 20];
        }
        show(formats[k].name, "s_store_p", object, 20, 0);
        if (last != CUDA_SUCCESS)
            return;
        CUDA_MEMCPY3D copy = {FROM_ARRAY(array), TO_HOST(got), .dstPitch = row,
                              EXTENT_3D(row, 1, 1)};
        SETUP(cuMemcpy3D_v2, (&copy));
        par_see(formats[k].name, "%s", par_hex(text, sizeof(text), got, row));
    }
}

/* ---- faults: each is the last of its process ------------------------------------------------- */

static CUsurfObject small_surface(void) {
    static const uint32_t texels[16] = {1, 2, 3, 4};
    start();
    return surface_of(array_of(CU_AD_FORMAT_UNSIGNED_INT32, 1, 4, 4, 0, CUDA_ARRAY3D_SURFACE_LDST,
                               texels, 16, 4));
}

SCENARIO(trap_outside, "kernel-texture/trap-outside") {
    CUsurfObject object = small_surface();
    lanes[0].i[0] = 64;
    show("trap", "s_trap", object, 1, 1);
}

SCENARIO(surface_misaligned, "kernel-texture/misaligned") {
    CUsurfObject object = small_surface();
    lanes[0].i[0] = 2;
    show("misaligned", "s_zero", object, 1, 1);
}

SCENARIO_IN(no_handle, "kernel-texture/no-handle", start, show("no-handle", "t_1d", 99, 1, 4));

SCENARIO(surface_as_texture, "kernel-texture/surface-as-texture") {
    CUsurfObject object = small_surface();
    show("surface-as-texture", "t_2d", object, 1, 4);
}

SCENARIO(other_shape, "kernel-texture/other-shape", start) {
    static const float texels[16] = {1, 2, 3, 4};
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 4, 0, 0, texels, 16, 4);
    CUDA_RESOURCE_DESC resource = resource_of(array);
    CUtexObject object =
        texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    show("plane-as-row", "t_1d", object, 1, 4);
}

SCENARIO_IN(unbound_reference, "kernel-texture/unbound-reference", start,
            show("unbound", "t_named", 0, 1, 4));

SCENARIO(destroyed_texture, "kernel-texture/destroyed", start) {
    static const float texels[16] = {1, 2, 3, 4};
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 4, 4, 0, 0, texels, 16, 4);
    CUDA_RESOURCE_DESC resource = resource_of(array);
    CUtexObject object =
        texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    SETUP(cuTexObjectDestroy, (object));
    show("destroyed", "t_2d", object, 1, 4);
}

/* ---- queries --------------------------------------------------------------------------------- */

/* What a module with one of the other queries meets. */
SCENARIO(refused_queries, "kernel-texture/refused-queries", par_context) {
    for (size_t i = 0; i < COUNT(surface_queries); i++) {
        CUresult result = par.api->cuModuleLoadData(&module, surface_queries[i]);
        par_see("surface-query", "%zu %s", i, par_result_name(result));
    }
    for (size_t i = 0; i < COUNT(texture_queries); i++) {
        CUfunction function;
        CUresult result = par.api->cuModuleLoadData(&module, texture_queries[i]);
        par_see("texture-query", "%zu %s", i, par_result_name(result));
        if (result == CUDA_SUCCESS) {
            result = par.api->cuModuleGetFunction(&function, module, "q");
            par_see("texture-query", "%zu function %s", i, par_result_name(result));
        }
    }
}

SCENARIO(queries, "kernel-texture/queries", start) {
    static const float texels[64];
    for (int m = 0; m < 4; m++) {
        CUarray array = array_of(CU_AD_FORMAT_FLOAT, 2, 4, 2, 2, 0, texels, 32, 2);
        CUDA_RESOURCE_DESC resource = resource_of(array);
        CUtexObject object = texture_of(&resource, modes[m], (CUfilter_mode)(m & 1),
                                        m & 2 ? CU_TRSF_NORMALIZED_COORDINATES : 0);
        show("space", "q_size", object, 1, 3);
        show("space", "q_type", object, 1, 3);
    }
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 8, 0, 3, CUDA_ARRAY3D_LAYERED, texels, 32, 1);
    CUDA_RESOURCE_DESC resource = resource_of(array);
    CUtexObject object =
        texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
    show("rows", "q_size", object, 1, 3);
}
