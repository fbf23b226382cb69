/* Arrays: which may be made, what they say of themselves, their planes and their end. */
#include "../parity.h"

#define U8  CU_AD_FORMAT_UNSIGNED_INT8
#define F32 CU_AD_FORMAT_FLOAT

static CUDA_ARRAY3D_DESCRIPTOR form(size_t w, size_t h, size_t d, CUarray_format format,
                                    unsigned channels, unsigned flags) {
    return (CUDA_ARRAY3D_DESCRIPTOR){SIZE_3D(w, h, d), TEXELS(format, channels), .Flags = flags};
}

static const unsigned formats[] = {
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a,      0x0b, 0x10, 0x11,
    0x20, 0x21, 0x40, 0x50, 0x51, 0x90, 0x91, 0x92, 0x93, 0x94, 0x95,      0x96, 0x97, 0x98,
    0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2, 0xa3,      0xa4, 0xa5, 0xa6,
    0xa7, 0xa8, 0xa9, 0xaa, 0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6,      0xc0, 0xc1, 0xc2,
    0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0x7fffffff};
#define FORMATS (COUNT(formats))

/* Makes and ends an array without a line of its own. */
static CUresult tried(const CUDA_ARRAY3D_DESCRIPTOR *a) {
    CUarray made;
    CUresult result = par.api->cuArray3DCreate_v2(&made, a);
    if (result == CUDA_SUCCESS)
        par.api->cuArrayDestroy(made);
    return result;
}

static CUresult tried_mipmap(const CUDA_ARRAY3D_DESCRIPTOR *a, unsigned levels) {
    CUmipmappedArray made;
    CUresult result = par.api->cuMipmappedArrayCreate(&made, a, levels);
    if (result == CUDA_SUCCESS)
        par.api->cuMipmappedArrayDestroy(made);
    return result;
}

/* Numbers of results of a row of attempts. */
typedef struct row {
    char text[512];
    int used;
} row;

static void put(row *r, CUresult result) {
    r->used += snprintf(r->text + r->used, sizeof r->text - (size_t)r->used, "%s%d",
                        r->used ? " " : "", (int)result);
}

/* ---- Formats -------------------------------------------------------------------------------- */

SCENARIO(format_channels, "array/format-channels", par_context) {
    for (size_t f = 0; f < FORMATS; f++) {
        row r = {"", 0};
        for (unsigned channels = 0; channels <= 5; channels++) {
            CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, (CUarray_format)formats[f], channels, 0);
            put(&r, tried(&a));
        }
        par_note("format=0x%x", formats[f]);
        par_see("channels-0-to-5", "%s", r.text);
    }
}

/* Which kinds of arrays a format has: the flags one by one, and the dimensions. */
SCENARIO(format_kinds, "array/format-kinds", par_context) {
    static const unsigned flags[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x100, 0x102};
    for (size_t f = 0; f < FORMATS; f++)
        for (unsigned channels = 1; channels <= 4; channels++) {
            CUarray_format format = (CUarray_format)formats[f];
            CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, format, channels, 0);
            if (tried(&a) != CUDA_SUCCESS) {
                a.Flags = CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
                if (tried(&a) != CUDA_SUCCESS)
                    continue;
            }
            row r = {"", 0};
            for (size_t i = 0; i < COUNT(flags); i++) {
                size_t depth = flags[i] == 0x01 ? 2 : flags[i] == 0x04 ? 6 : 0;
                a = form(64, 64, depth, format, channels, flags[i]);
                put(&r, tried(&a));
            }
            par_note("format=0x%x channels=%u", formats[f], channels);
            par_see("flags", "%s", r.text);
            r = (row){"", 0};
            a = form(64, 0, 0, format, channels, 0);
            put(&r, tried(&a));
            a = form(64, 64, 4, format, channels, 0);
            put(&r, tried(&a));
            a = form(64, 0, 4, format, channels, CUDA_ARRAY3D_LAYERED);
            put(&r, tried(&a));
            a = form(64, 64, 12, format, channels, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
            put(&r, tried(&a));
            a = form(64, 64, 4, format, channels, CUDA_ARRAY3D_SPARSE);
            put(&r, tried(&a));
            a = form(64, 64, 0, format, channels, 0);
            put(&r, tried_mipmap(&a, 3));
            a = form(64, 64, 0, format, channels, CUDA_ARRAY3D_SPARSE);
            put(&r, tried_mipmap(&a, 3));
            par_note("format=0x%x channels=%u", formats[f], channels);
            par_see("kinds", "%s", r.text);
            r = (row){"", 0};
            a = form(63, 64, 0, format, channels, 0);
            put(&r, tried(&a));
            a = form(64, 63, 0, format, channels, 0);
            put(&r, tried(&a));
            a = form(62, 62, 0, format, channels, 0);
            put(&r, tried(&a));
            a = form(1, 1, 0, format, channels, 0);
            put(&r, tried(&a));
            a = form(2, 2, 0, format, channels, 0);
            put(&r, tried(&a));
            par_note("format=0x%x channels=%u", formats[f], channels);
            par_see("odd-sizes", "%s", r.text);
        }
}

SCENARIO(format_calls, "array/format-calls", par_context) {
    CUarray x;
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 3, 0);
    CALLO(cuArray3DCreate_v2, "three-channels", (&x, &a), OUT_H(x));
    a.NumChannels = 0;
    CALLO(cuArray3DCreate_v2, "no-channels", (&x, &a), OUT_H(x));
    a.NumChannels = 5;
    CALLO(cuArray3DCreate_v2, "five-channels", (&x, &a), OUT_H(x));
    a = form(64, 64, 0, (CUarray_format)0, 1, 0);
    CALLO(cuArray3DCreate_v2, "format-zero", (&x, &a), OUT_H(x));
    a.Format = (CUarray_format)0x99999;
    CALLO(cuArray3DCreate_v2, "format-unknown", (&x, &a), OUT_H(x));
    a = form(64, 64, 0, CU_AD_FORMAT_NV12, 3, 0);
    CALLO(cuArray3DCreate_v2, "nv12", (&x, &a), OUT_H(x));
    a.NumChannels = 1;
    CALLO(cuArray3DCreate_v2, "nv12-one-channel", (&x, &a), OUT_H(x));
    a = form(64, 64, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0);
    CALLO(cuArray3DCreate_v2, "bc1", (&x, &a), OUT_H(x));
    a.NumChannels = 1;
    CALLO(cuArray3DCreate_v2, "bc1-one-channel", (&x, &a), OUT_H(x));
    a = form(64, 64, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0);
    CALLO(cuArray3DCreate_v2, "unorm8x4", (&x, &a), OUT_H(x));
    a = form(64, 64, 0, CU_AD_FORMAT_UNORM_INT_101010_2, 4, 0);
    CALLO(cuArray3DCreate_v2, "rgb10a2", (&x, &a), OUT_H(x));
}

/* ---- Flags ---------------------------------------------------------------------------------- */

SCENARIO(flag_pairs, "array/flag-pairs", par_context) {
    for (unsigned i = 0; i < 12; i++) {
        row two = {"", 0}, three = {"", 0}, cube = {"", 0};
        for (unsigned j = 0; j < 12; j++) {
            unsigned flags = 1u << i | 1u << j;
            CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, flags);
            put(&two, tried(&a));
            a.Depth = 2;
            put(&three, tried(&a));
            a.Depth = 6;
            put(&cube, tried(&a));
        }
        par_note("flag=0x%x", 1u << i);
        par_see("with-each-flag-depth-0", "%s", two.text);
        par_note("flag=0x%x", 1u << i);
        par_see("with-each-flag-depth-2", "%s", three.text);
        par_note("flag=0x%x", 1u << i);
        par_see("with-each-flag-depth-6", "%s", cube.text);
    }
}

SCENARIO(flag_dimensions, "array/flag-dimensions", par_context) {
    static const size_t sizes[][3] = {{64, 0, 0},  {64, 64, 0}, {64, 64, 64}, {64, 0, 64},
                                      {64, 64, 6}, {64, 32, 6}, {64, 64, 12}, {64, 64, 7},
                                      {64, 0, 6},  {0, 64, 64}, {0, 64, 0},   {0, 0, 0}};
    static const unsigned flags[] = {0,    0x01, 0x02, 0x03, 0x04, 0x05, 0x08, 0x09, 0x10, 0x11,
                                     0x14, 0x20, 0x21, 0x22, 0x40, 0x41, 0x44, 0x45, 0x80, 0x81,
                                     0x84, 0x48, 0x50, 0x60, 0x42, 0x88, 0x90, 0xa0, 0x82, 0x100};
    static const CUarray_format of[] = {F32, CU_AD_FORMAT_UNSIGNED_INT16, U8};
    for (size_t f = 0; f < COUNT(of); f++)
        for (size_t i = 0; i < COUNT(flags); i++) {
            row r = {"", 0};
            for (size_t s = 0; s < COUNT(sizes); s++) {
                CUDA_ARRAY3D_DESCRIPTOR a =
                    form(sizes[s][0], sizes[s][1], sizes[s][2], of[f], 1, flags[i]);
                put(&r, tried(&a));
            }
            par_note("format=%d flags=0x%x", (int)of[f], flags[i]);
            par_see("each-size", "%s", r.text);
        }
}

/* ---- Extents -------------------------------------------------------------------------------- */

/* Deferred arrays have no memory: the limits can be asked for. */
SCENARIO(limits, "array/limits", par_context) {
    static const struct {
        size_t w, h, d;
        unsigned flags;
    } ask[] = {
        {131072, 0, 0, 0},
        {131073, 0, 0, 0},
        {32768, 0, 0, 2},
        {32769, 0, 0, 2},
        {131072, 0, 0, 2},
        {131072, 1, 0, 0},
        {131073, 1, 0, 0},
        {1, 65536, 0, 0},
        {1, 65537, 0, 0},
        {131072, 65536, 0, 0},
        {131072, 1, 0, 2},
        {131073, 1, 0, 2},
        {1, 65536, 0, 2},
        {1, 65537, 0, 2},
        {16384, 1, 1, 0},
        {16385, 1, 1, 0},
        {1, 16384, 1, 0},
        {1, 16385, 1, 0},
        {1, 1, 16384, 0},
        {1, 1, 16385, 0},
        {1, 1, 32768, 0},
        {1, 1, 32769, 0},
        {8192, 8192, 32768, 0},
        {8193, 1, 32768, 0},
        {1, 8193, 32768, 0},
        {8193, 1, 16385, 0},
        {16384, 16384, 16384, 0},
        {1, 1, 16385, 2},
        {1, 1, 32768, 2},
        {16385, 1, 1, 2},
        {32768, 0, 1, 1},
        {32769, 0, 1, 1},
        {1, 0, 2048, 1},
        {1, 0, 2049, 1},
        {32768, 0, 2048, 3},
        {1, 0, 2049, 3},
        {32769, 0, 1, 3},
        {32768, 1, 1, 1},
        {32769, 1, 1, 1},
        {1, 32768, 1, 1},
        {1, 32769, 1, 1},
        {1, 1, 2048, 1},
        {1, 1, 2049, 1},
        {1, 1, 2049, 3},
        {32769, 1, 1, 3},
        {32768, 32768, 6, 4},
        {32769, 32769, 6, 4},
        {32768, 32768, 2046, 5},
        {1, 1, 2046, 5},
        {1, 1, 2052, 5},
        {1, 1, 2048, 5},
        {32769, 32769, 6, 5},
        {32768, 32768, 6, 6},
        {1, 1, 2052, 7},
        {32768, 32768, 0, 8},
        {32769, 1, 0, 8},
        {1, 32769, 0, 8},
        {131072, 1, 0, 16},
        {1, 65536, 0, 32},
        {(size_t)1 << 32, 1, 0, 0},
        {1, (size_t)1 << 32, 0, 0},
    };
    for (size_t i = 0; i < COUNT(ask); i++) {
        CUarray x;
        CUDA_ARRAY3D_DESCRIPTOR a = form(ask[i].w, ask[i].h, ask[i].d, F32, 1,
                                         ask[i].flags | CUDA_ARRAY3D_DEFERRED_MAPPING);
        if (ask[i].flags == 16)
            a.Format = CU_AD_FORMAT_UNSIGNED_INT16;
        par_note("%zux%zux%zu flags=0x%x", ask[i].w, ask[i].h, ask[i].d, ask[i].flags);
        CALL(cuArray3DCreate_v2, "deferred", (&x, &a));
        if (par_last() == CUDA_SUCCESS)
            SETUP(cuArrayDestroy, (x));
        a.Flags &= ~(unsigned)CUDA_ARRAY3D_DEFERRED_MAPPING;
        if (ask[i].w * (ask[i].h ? ask[i].h : 1) * (ask[i].d ? ask[i].d : 1) > 140000)
            continue;
        par_note("%zux%zux%zu flags=0x%x", ask[i].w, ask[i].h, ask[i].d, ask[i].flags);
        CALL(cuArray3DCreate_v2, "plain", (&x, &a));
        if (par_last() == CUDA_SUCCESS)
            SETUP(cuArrayDestroy, (x));
    }
}

/* ---- Descriptors ---------------------------------------------------------------------------- */

static void show(const char *cls, CUarray x) {
    CUDA_ARRAY_DESCRIPTOR flat;
    CUDA_ARRAY3D_DESCRIPTOR deep;
    CALLO(cuArrayGetDescriptor_v2, cls, (&flat, x), OUT_U(flat.Width), OUT_U(flat.Height),
          OUT_I(flat.Format), OUT_U(flat.NumChannels));
    CALLO(cuArray3DGetDescriptor_v2, cls, (&deep, x), OUT_U(deep.Width), OUT_U(deep.Height),
          OUT_U(deep.Depth), OUT_I(deep.Format), OUT_U(deep.NumChannels), OUT_X(deep.Flags));
}

SCENARIO(create_flat, "array/create-flat", par_context) {
    CUarray x;
    CUDA_ARRAY_DESCRIPTOR a = {64, 32, F32, 4};
    CALLO(cuArrayCreate_v2, "two-dimensions", (&x, &a), OUT_H(x));
    show("two-dimensions", x);
    CALL(cuArrayDestroy, "ok", (x));
    a.Height = 0;
    CALLO(cuArrayCreate_v2, "one-dimension", (&x, &a), OUT_H(x));
    show("one-dimension", x);
    CALL(cuArrayDestroy, "ok", (x));
    a.Width = 0;
    CALLO(cuArrayCreate_v2, "zero-width", (&x, &a), OUT_H(x));
    a.Height = 16;
    CALLO(cuArrayCreate_v2, "zero-width-some-height", (&x, &a), OUT_H(x));
    a = (CUDA_ARRAY_DESCRIPTOR){131073, 0, U8, 1};
    CALLO(cuArrayCreate_v2, "too-wide", (&x, &a), OUT_H(x));
    a = (CUDA_ARRAY_DESCRIPTOR){131072, 0, U8, 1};
    CALLO(cuArrayCreate_v2, "widest", (&x, &a), OUT_H(x));
    a = (CUDA_ARRAY_DESCRIPTOR){1, 65537, U8, 1};
    CALLO(cuArrayCreate_v2, "too-high", (&x, &a), OUT_H(x));
    a = (CUDA_ARRAY_DESCRIPTOR){64, 64, U8, 3};
    CALLO(cuArrayCreate_v2, "three-channels", (&x, &a), OUT_H(x));
    a = (CUDA_ARRAY_DESCRIPTOR){64, 64, (CUarray_format)0, 1};
    CALLO(cuArrayCreate_v2, "format-zero", (&x, &a), OUT_H(x));
    a = (CUDA_ARRAY_DESCRIPTOR){64, 64, CU_AD_FORMAT_NV12, 3};
    CALLO(cuArrayCreate_v2, "nv12", (&x, &a), OUT_H(x));
    a = (CUDA_ARRAY_DESCRIPTOR){64, 64, CU_AD_FORMAT_BC7_UNORM, 4};
    CALLO(cuArrayCreate_v2, "bc7", (&x, &a), OUT_H(x));
    CALLO(cuArrayCreate_v2, "null-desc", (&x, NULL), OUT_H(x));
    CALL(cuArrayCreate_v2, "null-out", (NULL, &a));
}

SCENARIO(create_deep, "array/create-deep", par_context) {
    CUarray x;
    CUDA_ARRAY3D_DESCRIPTOR a;
    static const struct {
        const char *cls;
        size_t w, h, d;
        CUarray_format format;
        unsigned channels, flags;
    } kinds[] = {
        {"1d", 64, 0, 0, F32, 2, 0},
        {"2d", 64, 32, 0, F32, 4, 0},
        {"3d", 32, 16, 8, U8, 4, 0},
        {"1d-layered", 64, 0, 5, U8, 1, 1},
        {"2d-layered", 64, 32, 5, U8, 1, 1},
        {"cubemap", 32, 32, 6, U8, 4, 4},
        {"cubemap-layered", 32, 32, 12, U8, 4, 5},
        {"surface", 64, 64, 0, U8, 4, 2},
        {"gather", 64, 64, 0, U8, 4, 8},
        {"depth", 64, 64, 0, F32, 1, 0x10},
        {"colour", 64, 64, 0, U8, 4, 0x20},
        {"all-zero-but-width", 64, 0, 0, U8, 1, 0},
        {"bc1", 64, 64, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0},
        {"bc7", 61, 3, 0, CU_AD_FORMAT_BC7_UNORM, 4, 0},
        {"nv12", 64, 64, 0, CU_AD_FORMAT_NV12, 3, 0},
        {"unorm16x2", 64, 64, 0, CU_AD_FORMAT_UNORM_INT16X2, 2, 0},
        {"deferred", 64, 64, 0, U8, 4, 0x80},
        {"sparse", 512, 512, 0, U8, 4, 0x40},
        {"2d-depth-one", 64, 64, 1, U8, 4, 0},
    };
    for (size_t i = 0; i < COUNT(kinds); i++) {
        a = form(kinds[i].w, kinds[i].h, kinds[i].d, kinds[i].format, kinds[i].channels,
                 kinds[i].flags);
        CALLO(cuArray3DCreate_v2, kinds[i].cls, (&x, &a), OUT_C(x));
        if (par_last() != CUDA_SUCCESS)
            continue;
        show(kinds[i].cls, x);
        CALL(cuArrayDestroy, kinds[i].cls, (x));
    }
    a = form(64, 64, 0, U8, 1, 0);
    CALLO(cuArray3DCreate_v2, "null-desc", (&x, NULL), OUT_H(x));
    CALL(cuArray3DCreate_v2, "null-out", (NULL, &a));
}

SCENARIO(get_descriptor, "array/get-descriptor", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 32, 0, F32, 4, 2), deep;
    CUDA_ARRAY_DESCRIPTOR flat;
    CUDA_ARRAY3D_DESCRIPTOR_v1 old_deep;
    CUDA_ARRAY_DESCRIPTOR_v1 old_flat;
    CUarray x = par_array(&a);
    CALL(cuArrayGetDescriptor_v2, "null-out", (NULL, x));
    CALL(cuArray3DGetDescriptor_v2, "null-out", (NULL, x));
    CALLO(cuArrayGetDescriptor_v2, "null-array", (&flat, NULL), OUT_U(flat.Width));
    CALLO(cuArrayGetDescriptor, "v1", (&old_flat, x), OUT_U(old_flat.Width), OUT_U(old_flat.Height),
          OUT_I(old_flat.Format), OUT_U(old_flat.NumChannels));
    CALLO(cuArray3DGetDescriptor, "v1", (&old_deep, x), OUT_U(old_deep.Width),
          OUT_U(old_deep.Height), OUT_U(old_deep.Depth), OUT_I(old_deep.Format),
          OUT_U(old_deep.NumChannels), OUT_X(old_deep.Flags));
    CALL(cuArrayGetDescriptor, "v1-null-out", (NULL, x));
    CALL(cuArray3DGetDescriptor, "v1-null-out", (NULL, x));
    par_new_context();
    show("foreign-ctx", x);
    CALLO(cuArrayGetDescriptor, "v1-foreign-ctx", (&old_flat, x), OUT_U(old_flat.Width));
    SETUP(cuCtxSetCurrent, (NULL));
    show("no-context", x);
    CALLO(cuArray3DGetDescriptor, "v1-no-context", (&old_deep, x), OUT_U(old_deep.Width));
    (void)deep;
}

SCENARIO(no_context, "array/no-context", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 32, 0, F32, 4, 0), bad = form(0, 0, 0, F32, 4, 0);
    CUDA_ARRAY_DESCRIPTOR flat = {64, 64, U8, 1};
    CUmipmappedArray m;
    CUarray x = par_array(&a);
    NAME(x);
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuArray3DCreate_v2, "no-context", (&x, &a));
    CALL(cuArray3DCreate_v2, "no-context-null-out", (NULL, &a));
    CALL(cuArray3DCreate_v2, "no-context-bad-desc", (&x, &bad));
    CALL(cuArrayCreate_v2, "no-context", (&x, &flat));
    CALL(cuArrayCreate_v2, "no-context-null-desc", (&x, NULL));
    CALL(cuMipmappedArrayCreate, "no-context", (&m, &a, 1));
    CALL(cuArrayDestroy, "no-context", (x));
}

SCENARIO(foreign_context_destroy, "array/foreign-context-destroy", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 32, 0, F32, 4, 0);
    CUarray x = par_array(&a);
    CUcontext other = par_new_context();
    CUarray y = par_array(&a);
    CALL(cuArrayDestroy, "foreign-ctx", (x));
    SETUP(cuCtxSetCurrent, (par.primary));
    SETUP(cuCtxDestroy_v2, (other));
    show("of-destroyed-ctx", y);
    CALL(cuArrayDestroy, "of-destroyed-ctx", (y));
}

SCENARIO(destroyed_context_current, "array/destroyed-context-current", par_context) {
    CUarray x;
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 32, 0, F32, 4, 0);
    CUDA_ARRAY_DESCRIPTOR flat = {64, 64, U8, 1};
    CUmipmappedArray m;
    CUcontext other = par_new_context();
    SETUP(cuCtxPushCurrent_v2, (par.primary));
    SETUP(cuCtxDestroy_v2, (other));
    SETUP(cuCtxPopCurrent_v2, (&other));
    CALL(cuArray3DCreate_v2, "destroyed-ctx", (&x, &a));
    CALL(cuArrayCreate_v2, "destroyed-ctx", (&x, &flat));
    CALL(cuMipmappedArrayCreate, "destroyed-ctx", (&m, &a, 1));
}

SCENARIO_IN(destroy_null, "array/destroy-null", par_context, CALL(cuArrayDestroy, "null", (NULL)));

SCENARIO(destroy_twice, "array/destroy-twice", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 32, 0, F32, 4, 0);
    CUarray x = par_array(&a);
    CALL(cuArrayDestroy, "ok", (x));
    CALL(cuArrayDestroy, "stale-handle", (x));
}

SCENARIO(stale_descriptor, "array/stale-descriptor", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 32, 0, F32, 4, 0);
    CUarray x = par_array(&a);
    SETUP(cuArrayDestroy, (x));
    show("stale-handle", x);
}

/* Does the end of an array wait for work that uses it, or for any? */
SCENARIO(destroy_under_work, "array/destroy-under-work", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 0, 0, U8, 1, 0);
    CUstream s = par_stream();
    CUarray x = par_array(&a);
    par_hold(s);
    CALL(cuArrayDestroy, "other-work-under-way", (x));
    CALL(cuStreamQuery, "held", (s));
    PAR_DRAIN("released", s);
}

/* ---- Memory --------------------------------------------------------------------------------- */

SCENARIO(requirements, "array/requirements", par_context) {
    static const struct {
        const char *cls;
        size_t w, h, d;
        CUarray_format format;
        unsigned channels, flags;
    } kinds[] = {
        {"1d", 64, 0, 0, F32, 1, 0},
        {"1d-large", 65536, 0, 0, F32, 4, 0},
        {"2d-1x1", 1, 1, 0, U8, 1, 0},
        {"2d", 64, 64, 0, U8, 4, 0},
        {"2d-100x100", 100, 100, 0, F32, 4, 0},
        {"2d-1000x1000", 1000, 1000, 0, F32, 1, 0},
        {"2d-4096x4096", 4096, 4096, 0, U8, 4, 0},
        {"3d", 32, 32, 32, U8, 4, 0},
        {"3d-100", 100, 100, 100, F32, 1, 0},
        {"1d-layered", 64, 0, 5, F32, 1, 1},
        {"2d-layered", 64, 64, 5, F32, 1, 1},
        {"cubemap", 64, 64, 6, F32, 1, 4},
        {"surface", 64, 64, 0, F32, 1, 2},
        {"bc1", 64, 64, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0},
        {"nv12", 64, 64, 0, CU_AD_FORMAT_NV12, 3, 0},
    };
    CUDA_ARRAY_MEMORY_REQUIREMENTS r;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        CUarray x;
        CUmipmappedArray m;
        CUDA_ARRAY3D_DESCRIPTOR a = form(kinds[i].w, kinds[i].h, kinds[i].d, kinds[i].format,
                                         kinds[i].channels, kinds[i].flags | 0x80);
        CALL(cuArray3DCreate_v2, kinds[i].cls, (&x, &a));
        if (par_last() == CUDA_SUCCESS) {
            CALLO(cuArrayGetMemoryRequirements, kinds[i].cls, (&r, x, par.dev), OUT_U(r.size),
                  OUT_U(r.alignment), OUT_U(r.reserved[0]), OUT_U(r.reserved[3]));
            SETUP(cuArrayDestroy, (x));
        }
        CALL(cuMipmappedArrayCreate, kinds[i].cls, (&m, &a, 3));
        if (par_last() == CUDA_SUCCESS) {
            CALLO(cuMipmappedArrayGetMemoryRequirements, kinds[i].cls, (&r, m, par.dev),
                  OUT_U(r.size), OUT_U(r.alignment), OUT_U(r.reserved[0]), OUT_U(r.reserved[3]));
            SETUP(cuMipmappedArrayDestroy, (m));
        }
    }
}

SCENARIO(requirements_refused, "array/requirements-refused", par_context) {
    CUarray plain, deferred, sparse, level;
    CUDA_ARRAY_MEMORY_REQUIREMENTS r;
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, 0);
    SETUP(cuArray3DCreate_v2, (&plain, &a));
    a.Flags = 0x80;
    SETUP(cuArray3DCreate_v2, (&deferred, &a));
    CUmipmappedArray m = par_mipmap(&a, 3);
    a = form(512, 512, 0, F32, 1, 0x40);
    SETUP(cuArray3DCreate_v2, (&sparse, &a));
    CALLO(cuArrayGetMemoryRequirements, "not-deferred", (&r, plain, par.dev), OUT_U(r.size));
    CALLO(cuArrayGetMemoryRequirements, "sparse", (&r, sparse, par.dev), OUT_U(r.size));
    CALLO(cuArrayGetMemoryRequirements, "bad-device", (&r, deferred, 99), OUT_U(r.size));
    CALLO(cuArrayGetMemoryRequirements, "negative-device", (&r, deferred, -1), OUT_U(r.size));
    CALL(cuArrayGetMemoryRequirements, "null-out", (NULL, deferred, par.dev));
    CALLO(cuArrayGetMemoryRequirements, "null-array", (&r, NULL, par.dev), OUT_U(r.size));
    CALLO(cuMipmappedArrayGetMemoryRequirements, "bad-device", (&r, m, 99), OUT_U(r.size));
    CALL(cuMipmappedArrayGetMemoryRequirements, "null-out", (NULL, m, par.dev));
    CALLO(cuMipmappedArrayGetMemoryRequirements, "null-array", (&r, NULL, par.dev), OUT_U(r.size));
    CALL(cuMipmappedArrayGetLevel, "deferred", (&level, m, 1));
    CALLO(cuArrayGetMemoryRequirements, "level", (&r, level, par.dev), OUT_U(r.size));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuArrayGetMemoryRequirements, "no-context", (&r, deferred, par.dev), OUT_U(r.alignment));
}

SCENARIO(free_memory, "array/free-memory", par_context, PAR_ALONE) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(1024, 1024, 0, F32, 4, 0);
    par_free_mark();
    CUarray x = par_array(&a);
    par_free_delta("16-mib-array");
    SETUP(cuArrayDestroy, (x));
    par_free_delta("destroyed");
    a.Flags = 0x80;
    par_array(&a);
    par_free_delta("16-mib-deferred");
    a.Flags = 0x40;
    par_array(&a);
    par_free_delta("16-mib-sparse");
}

SCENARIO(pointer_queries, "array/pointer-queries", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 4, 0);
    unsigned type;
    CUdeviceptr base;
    size_t size;
    CUarray x = par_array(&a);
    CUdeviceptr as_address = (CUdeviceptr)(uintptr_t)x;
    CALLO(cuPointerGetAttribute, "array-handle",
          (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, as_address), OUT_U(type));
    CALLO(cuMemGetAddressRange_v2, "array-handle", (&base, &size, as_address), OUT_C(base),
          OUT_U(size));
    CALL(cuMemFree_v2, "array-handle", (as_address));
}

/* ---- Planes --------------------------------------------------------------------------------- */

SCENARIO(planes, "array/planes", par_context) {
    static const unsigned planar[] = {0xb0, 0x9f, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6,
                                      0xa7, 0xa8, 0xa9, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5};
    for (size_t i = 0; i < COUNT(planar); i++)
        for (unsigned channels = 1; channels <= 4; channels++) {
            CUarray x, plane;
            CUDA_ARRAY3D_DESCRIPTOR a = form(64, 48, 0, (CUarray_format)planar[i], channels, 0);
            if (par.api->cuArray3DCreate_v2(&x, &a) != CUDA_SUCCESS) {
                a.Flags = 0x100;
                if (par.api->cuArray3DCreate_v2(&x, &a) != CUDA_SUCCESS)
                    continue;
            }
            par_note("format=0x%x channels=%u flags=0x%x", planar[i], channels, a.Flags);
            show("planar", x);
            for (unsigned p = 0; p < 4; p++) {
                par_note("format=0x%x", planar[i]);
                CALLO(cuArrayGetPlane, "planar", (&plane, x, p), OUT_C(plane));
                if (par_last() == CUDA_SUCCESS)
                    show("plane", plane);
            }
        }
}

SCENARIO(plane_handles, "array/plane-handles", par_context) {
    CUarray x, first, again, y, plain;
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, CU_AD_FORMAT_NV12, 3, 0);
    CALLO(cuArray3DCreate_v2, "nv12", (&x, &a), OUT_H(x));
    if (par_last() != CUDA_SUCCESS)
        return;
    SETUP(cuArrayGetPlane, (&first, x, 0));
    SETUP(cuArrayGetPlane, (&again, x, 0));
    par_see("same-plane-asked-twice", first == again ? "same-handle" : "other-handle");
    CALL(cuArrayGetPlane, "null-out", (NULL, x, 0));
    CALLO(cuArrayGetPlane, "null-array", (&y, NULL, 0), OUT_H(y));
    CALLO(cuArrayGetPlane, "plane-of-plane", (&y, first, 0), OUT_C(y));
    CALLO(cuArrayGetPlane, "no-such-plane", (&y, x, 2), OUT_H(y));
    CALLO(cuArrayGetPlane, "largest-plane", (&y, x, ~0u), OUT_H(y));
    a = form(64, 64, 0, U8, 1, 0);
    SETUP(cuArray3DCreate_v2, (&plain, &a));
    CALLO(cuArrayGetPlane, "not-planar", (&y, plain, 0), OUT_H(y));
    CALLO(cuArrayGetPlane, "not-planar", (&y, plain, 1), OUT_H(y));
    CALL(cuArrayDestroy, "plane", (again));
    CALL(cuArrayDestroy, "whole", (x));
    show("plane-of-destroyed", first);
}

/* ---- Old versions --------------------------------------------------------------------------- */

SCENARIO(old_versions, "array/old-versions", par_context) {
    CUarray x;
    CUDA_ARRAY_DESCRIPTOR_v1 flat = {64, 64, U8, 1};
    CUDA_ARRAY3D_DESCRIPTOR_v1 deep = {64, 64, 0, U8, 1, 0};
    CALLO(cuArrayCreate, "v1", (&x, &flat), OUT_H(x));
    CALLO(cuArray3DCreate, "v1", (&x, &deep), OUT_H(x));
    CALLO(cuArrayCreate, "v1-null-desc", (&x, NULL), OUT_H(x));
    CALL(cuArray3DCreate, "v1-null-out", (NULL, &deep));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuArrayCreate, "v1-no-context", (&x, &flat), OUT_H(x));
    CALLO(cuArray3DCreate, "v1-no-context", (&x, &deep), OUT_H(x));
}

/* In a context of the first version, too? */
SCENARIO(old_context, "array/old-context", par_init) {
    CUcontext v1;
    CUarray x;
    CUdeviceptr_v1 p;
    CUdeviceptr q;
    unsigned pitch, free_bytes, total;
    char host[256] = {0};
    CUDA_ARRAY_DESCRIPTOR_v1 flat = {64, 0, U8, 1};
    CUDA_ARRAY_DESCRIPTOR now = {64, 0, U8, 1};
    CUDA_ARRAY3D_DESCRIPTOR_v1 deep = {64, 64, 0, U8, 1, 0};
    CUDA_MEMCPY2D_v1 c2 = {0};
    CUDA_MEMCPY3D_v1 c3 = {0};
    CALLO(cuCtxCreate, "v1", (&v1, 0, 0), OUT_C(v1));
    CALLO(cuMemAlloc, "in-v1-ctx", (&p, 256), OUT_C(p));
    CALLO(cuMemAllocPitch, "in-v1-ctx", (&p, &pitch, 64, 64, 4), OUT_C(p), OUT_U(pitch));
    CALLO(cuMemGetInfo, "in-v1-ctx", (&free_bytes, &total), OUT_C(free_bytes), OUT_C(total));
    CALLO(cuArrayCreate, "in-v1-ctx", (&x, &flat), OUT_C(x));
    CALLO(cuArray3DCreate, "in-v1-ctx", (&x, &deep), OUT_C(x));
    CALL(cuMemsetD8, "in-v1-ctx", (0x1000, 1, 16));
    CALL(cuMemcpyHtoD, "in-v1-ctx", (0x1000, host, 16));
    CALL(cuMemcpy2D, "in-v1-ctx", (&c2));
    CALL(cuMemcpy3D, "in-v1-ctx", (&c3));
    CALLO(cuMemAlloc_v2, "in-v1-ctx", (&q, 256), OUT_C(q));
    CALLO(cuArrayCreate_v2, "in-v1-ctx", (&x, &now), OUT_C(x));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALL(cuMemcpyHtoA, "in-v1-ctx", (x, 0, host, 64));
    CALL(cuMemcpyAtoH, "in-v1-ctx", (host, x, 0, 64));
    CALL(cuMemcpyHtoA_v2, "in-v1-ctx", (x, 0, host, 64));
}

/* Formats of video with the flag that they want. */
SCENARIO(video_kinds, "array/video-kinds", par_context) {
    static const struct {
        size_t w, h, d;
        unsigned flags;
    } kinds[] = {{64, 0, 0, 0},  {64, 64, 4, 0}, {64, 64, 4, 1},        {64, 64, 6, 4},
                 {64, 64, 0, 2}, {64, 64, 0, 8}, {64, 64, 0, 0x40},     {64, 64, 0, 0x80},
                 {63, 64, 0, 0}, {64, 63, 0, 0}, {62, 62, 0, 0},        {1, 1, 0, 0},
                 {2, 2, 0, 0},   {64, 0, 4, 1},  {8192, 8192, 0, 0x80}, {64, 64, 12, 5}};
    static const struct {
        unsigned format, channels;
    } forms[] = {{0xb0, 3}, {0x9f, 3}, {0xa2, 3}, {0xa5, 4}, {0xa6, 2},
                 {0xa8, 4}, {0xa9, 1}, {0xb1, 4}, {0xb2, 3}, {0xb5, 3}};
    for (size_t f = 0; f < COUNT(forms); f++) {
        row r = {"", 0};
        for (size_t k = 0; k < COUNT(kinds); k++) {
            CUDA_ARRAY3D_DESCRIPTOR a =
                form(kinds[k].w, kinds[k].h, kinds[k].d, (CUarray_format)forms[f].format,
                     forms[f].channels, kinds[k].flags | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE);
            put(&r, tried(&a));
            put(&r, tried_mipmap(&a, 1));
            put(&r, tried_mipmap(&a, 3));
        }
        par_note("format=0x%x", forms[f].format);
        par_see("array-and-mipmaps-of-each-kind", "%s", r.text);
    }
}

SCENARIO(video_planes, "array/video-planes", par_context) {
    CUarray x, first, again, y;
    CUmipmappedArray m;
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, CU_AD_FORMAT_NV12, 3, 0x100);
    SETUP(cuArray3DCreate_v2, (&x, &a));
    SETUP(cuArrayGetPlane, (&first, x, 0));
    SETUP(cuArrayGetPlane, (&again, x, 0));
    par_see("same-plane-asked-twice", first == again ? "same-handle" : "other-handle");
    CALL(cuArrayGetPlane, "null-out", (NULL, x, 0));
    CALLO(cuArrayGetPlane, "plane-of-plane", (&y, first, 0), OUT_C(y));
    CALLO(cuArrayGetPlane, "no-such-plane", (&y, x, 2), OUT_H(y));
    CALLO(cuArrayGetPlane, "largest-plane", (&y, x, ~0u), OUT_H(y));
    CALL(cuArrayDestroy, "plane", (again));
    CALLO(cuArrayGetPlane, "after-its-destroy", (&y, x, 0), OUT_C(y));
    a = form(64, 64, 0, U8, 1, 0);
    SETUP(cuArray3DCreate_v2, (&y, &a));
    CALLO(cuArrayGetPlane, "not-planar", (&again, y, 0), OUT_H(again));
    CALLO(cuArrayGetPlane, "not-planar", (&again, y, 1), OUT_H(again));
    a = form(64, 64, 0, CU_AD_FORMAT_NV12, 3, 0x100);
    CALLO(cuMipmappedArrayCreate, "nv12", (&m, &a, 1), OUT_C(m));
    if (par_last() == CUDA_SUCCESS) {
        SETUP(cuMipmappedArrayGetLevel, (&y, m, 0));
        CALLO(cuArrayGetPlane, "of-level", (&again, y, 1), OUT_C(again));
    }
    CALL(cuArrayDestroy, "whole", (x));
}

/* What works in a context of the first version, with its own memory. */
SCENARIO(old_context_more, "array/old-context-more") {
    CUarray x, y, plane, level;
    CUmipmappedArray m;
    CUdeviceptr_v1 p = 0, q = 0, base;
    unsigned size, pitch;
    CUstream s;
    unsigned char host[256], back[256];
    CUDA_ARRAY_DESCRIPTOR_v1 flat = {256, 0, U8, 1}, shown;
    CUDA_ARRAY3D_DESCRIPTOR_v1 deep = {16, 16, 0, U8, 1, 0}, deep_shown;
    CUDA_ARRAY3D_DESCRIPTOR now = form(16, 16, 0, U8, 1, 0);
    CUDA_ARRAY_DESCRIPTOR now_flat;
    CUDA_MEMCPY2D_v1 c;
    CUDA_MEMCPY3D_v1 b;
    for (int i = 0; i < 256; i++)
        host[i] = (unsigned char)(i * 3);
    memset(back, 0, sizeof back);
    par_init();
    (void)PAR_MADE(CUcontext, cuCtxCreate, 0, 0);
    CALLO(cuMemAlloc, "v1-ctx", (&p, 4096), OUT_C(p));
    CALLO(cuMemAllocPitch, "v1-ctx", (&q, &pitch, 100, 8, 4), OUT_C(q), OUT_U(pitch));
    CALLO(cuArrayCreate, "v1-ctx", (&x, &flat), OUT_C(x));
    CALLO(cuArrayCreate, "v1-ctx", (&y, &flat), OUT_C(y));
    CALLO(cuArray3DCreate, "v1-ctx", (&plane, &deep), OUT_C(plane));
    CALLO(cuArrayGetDescriptor, "v1-ctx", (&shown, x), OUT_U(shown.Width), OUT_U(shown.Height),
          OUT_I(shown.Format), OUT_U(shown.NumChannels));
    CALLO(cuArray3DGetDescriptor, "v1-ctx", (&deep_shown, plane), OUT_U(deep_shown.Width),
          OUT_U(deep_shown.Height), OUT_U(deep_shown.Depth), OUT_I(deep_shown.Format),
          OUT_U(deep_shown.NumChannels), OUT_X(deep_shown.Flags));
    CALLO(cuArrayGetDescriptor_v2, "v1-ctx", (&now_flat, x), OUT_U(now_flat.Width));
    CALL(cuMemcpyHtoD, "v1-ctx", (p, host, 256));
    CALL(cuMemcpyDtoH, "v1-ctx", (back, p, 256));
    par_see("content", "%d %d", back[1], back[255]);
    CALL(cuMemcpyDtoD, "v1-ctx", (p + 512, p, 256));
    CALL(cuMemcpyHtoA, "v1-ctx", (x, 0, host, 256));
    CALL(cuMemcpyAtoA, "v1-ctx", (y, 0, x, 0, 256));
    CALL(cuMemcpyAtoD, "v1-ctx", (p, y, 0, 256));
    CALL(cuMemcpyDtoA, "v1-ctx", (y, 1, p, 200));
    CALL(cuMemcpyAtoH, "v1-ctx", (back, y, 0, 256));
    par_see("content", "%d %d", back[1], back[255]);
    CALL(cuMemcpyAtoH, "v1-ctx-past-end", (back, y, 0, 257));
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = host;
    c.srcPitch = 16;
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = plane;
    c.WidthInBytes = 16;
    c.Height = 16;
    CALL(cuMemcpy2D, "v1-ctx", (&c));
    CALL(cuMemcpy2DUnaligned, "v1-ctx", (&c));
    c.Height = 17;
    CALL(cuMemcpy2D, "v1-ctx-past-end", (&c));
    memset(&b, 0, sizeof b);
    b.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    b.srcArray = plane;
    b.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    b.dstDevice = p;
    b.dstPitch = 16;
    b.dstHeight = 16;
    b.WidthInBytes = 16;
    b.Height = 16;
    b.Depth = 1;
    CALL(cuMemcpy3D, "v1-ctx", (&b));
    CALL(cuMemsetD8, "v1-ctx", (p, 5, 16));
    CALL(cuMemsetD16, "v1-ctx", (p, 5, 16));
    CALL(cuMemsetD32, "v1-ctx", (p, 5, 16));
    CALL(cuMemsetD2D8, "v1-ctx", (q, pitch, 5, 16, 4));
    CALL(cuMemsetD2D16, "v1-ctx", (q, pitch, 5, 16, 4));
    CALL(cuMemsetD2D32, "v1-ctx", (q, pitch, 5, 16, 4));
    CALLO(cuMemGetAddressRange, "v1-ctx", (&base, &size, p + 8), OUT_C(base), OUT_U(size));
    CALLO(cuStreamCreate, "v1-ctx", (&s, 0), OUT_C(s));
    if (par_last() == CUDA_SUCCESS) {
        CALL(cuMemcpyHtoDAsync, "v1-ctx", (p, host, 16, s));
        CALL(cuMemcpyDtoHAsync, "v1-ctx", (back, p, 16, s));
        CALL(cuMemcpyDtoDAsync, "v1-ctx", (p + 512, p, 16, s));
        CALL(cuMemcpyHtoAAsync, "v1-ctx", (x, 0, host, 16, s));
        CALL(cuMemcpyAtoHAsync, "v1-ctx", (back, x, 0, 16, s));
        CALL(cuMemcpy2DAsync, "v1-ctx", (&c, s));
        CALL(cuMemcpy3DAsync, "v1-ctx", (&b, s));
        CALL(cuStreamSynchronize, "v1-ctx", (s));
    }
    CALL(cuMemcpyHtoA_v2, "v2-in-v1-ctx", (x, 0, host, 16));
    CALL(cuMemcpyAtoA_v2, "v2-in-v1-ctx", (y, 0, x, 0, 16));
    CALL(cuMemcpyHtoD_v2, "v2-in-v1-ctx", (p, host, 16));
    CALL(cuMemcpy, "v2-in-v1-ctx", (p, p + 512, 16));
    CALL(cuMemsetD8_v2, "v2-in-v1-ctx", (p, 1, 16));
    CALLO(cuArray3DCreate_v2, "v2-in-v1-ctx", (&y, &now), OUT_C(y));
    CALLO(cuMipmappedArrayCreate, "v2-in-v1-ctx", (&m, &now, 2), OUT_C(m));
    if (par_last() == CUDA_SUCCESS)
        CALLO(cuMipmappedArrayGetLevel, "v2-in-v1-ctx", (&level, m, 1), OUT_C(level));
    CALL(cuMemFree_v2, "v2-in-v1-ctx", (p));
    CALL(cuMemFree, "v1-ctx", (p));
    CALL(cuMemFree, "v1-ctx", (q));
    CALL(cuArrayDestroy, "v1-ctx", (x));
}

SCENARIO(primary_reset, "array/primary-released", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, 0);
    CUarray x = par_array(&a);
    CUmipmappedArray m = par_mipmap(&a, 2);
    SETUP(cuDevicePrimaryCtxRelease_v2, (par.dev));
    SETUP(cuDevicePrimaryCtxRetain, (&par.primary, par.dev));
    SETUP(cuCtxSetCurrent, (par.primary));
    show("of-earlier-primary", x);
    CALL(cuArrayDestroy, "of-earlier-primary", (x));
    CALL(cuMipmappedArrayDestroy, "of-earlier-primary", (m));
}
