/* Mipmapped arrays: how many levels, what a level is, and their end. */
#include "../parity.h"

#define U8  CU_AD_FORMAT_UNSIGNED_INT8
#define F32 CU_AD_FORMAT_FLOAT

static CUDA_ARRAY3D_DESCRIPTOR form(size_t w, size_t h, size_t d, CUarray_format format,
                                    unsigned channels, unsigned flags) {
    return (CUDA_ARRAY3D_DESCRIPTOR){SIZE_3D(w, h, d), TEXELS(format, channels), .Flags = flags};
}

static void show(const char *cls, CUarray x) {
    CUDA_ARRAY3D_DESCRIPTOR deep;
    CALLO(cuArray3DGetDescriptor_v2, cls, (&deep, x), OUT_U(deep.Width), OUT_U(deep.Height),
          OUT_U(deep.Depth), OUT_I(deep.Format), OUT_U(deep.NumChannels), OUT_X(deep.Flags));
}

/* Asks for one level after the other until there is none. */
static void levels(const char *cls, size_t w, size_t h, size_t d, CUarray_format format,
                   unsigned channels, unsigned flags, unsigned count) {
    CUmipmappedArray m;
    CUDA_ARRAY3D_DESCRIPTOR a = form(w, h, d, format, channels, flags);
    par_note("%zux%zux%zu levels=%u", w, h, d, count);
    CALLO(cuMipmappedArrayCreate, cls, (&m, &a, count), OUT_C(m));
    if (par_last() != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < 20; i++) {
        CUarray level;
        par_note("level=%u", i);
        CALLO(cuMipmappedArrayGetLevel, cls, (&level, m, i), OUT_C(level));
        if (par_last() != CUDA_SUCCESS)
            break;
        show(cls, level);
    }
    CALL(cuMipmappedArrayDestroy, cls, (m));
}

SCENARIO(counts, "mipmap/counts", par_context) {
    levels("2d", 64, 64, 0, F32, 1, 0, 0);
    levels("2d", 64, 64, 0, F32, 1, 0, 1);
    levels("2d", 64, 64, 0, F32, 1, 0, 7);
    levels("2d-too-many", 64, 64, 0, F32, 1, 0, 8);
    levels("2d-huge-count", 64, 64, 0, F32, 1, 0, ~0u);
    levels("2d-uneven", 100, 30, 0, U8, 4, 0, 7);
    levels("2d-narrow", 1, 64, 0, U8, 4, 0, 7);
    levels("1d", 64, 0, 0, F32, 2, 0, 7);
    levels("3d", 16, 8, 32, F32, 1, 0, 6);
    levels("1d-layered", 16, 0, 4, F32, 1, 1, 5);
    levels("2d-layered", 16, 8, 4, F32, 1, 1, 5);
    levels("cubemap", 16, 16, 6, F32, 1, 4, 5);
    levels("cubemap-layered", 16, 16, 12, F32, 1, 5, 5);
    levels("surface", 16, 16, 0, F32, 1, 2, 5);
    levels("gather", 16, 16, 0, F32, 1, 8, 5);
    levels("depth", 16, 16, 0, F32, 1, 0x10, 5);
    levels("colour", 16, 16, 0, U8, 4, 0x20, 5);
    levels("bc1", 16, 16, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0, 5);
    levels("bc1-few", 16, 16, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0, 3);
    levels("nv12", 16, 16, 0, CU_AD_FORMAT_NV12, 3, 0, 1);
    levels("sparse", 1024, 1024, 0, F32, 1, 0x40, 11);
    levels("deferred", 16, 16, 0, F32, 1, 0x80, 5);
}

SCENARIO(refused, "mipmap/refused", par_context) {
    CUmipmappedArray m;
    CUarray level;
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, 0);
    CALL(cuMipmappedArrayCreate, "null-out", (NULL, &a, 3));
    CALLO(cuMipmappedArrayCreate, "null-desc", (&m, NULL, 3), OUT_H(m));
    a.Width = 0;
    CALLO(cuMipmappedArrayCreate, "zero-width", (&m, &a, 1), OUT_H(m));
    a = form(64, 64, 0, F32, 3, 0);
    CALLO(cuMipmappedArrayCreate, "three-channels", (&m, &a, 1), OUT_H(m));
    a = form(64, 64, 0, (CUarray_format)0, 1, 0);
    CALLO(cuMipmappedArrayCreate, "format-zero", (&m, &a, 1), OUT_H(m));
    a = form(64, 64, 5, F32, 1, 4);
    CALLO(cuMipmappedArrayCreate, "cubemap-of-five", (&m, &a, 1), OUT_H(m));
    a = form(64, 64, 0, F32, 1, 0x1000);
    CALLO(cuMipmappedArrayCreate, "flags-unknown", (&m, &a, 1), OUT_H(m));
    a = form(32769, 1, 0, F32, 1, 0x80);
    CALLO(cuMipmappedArrayCreate, "too-wide", (&m, &a, 1), OUT_H(m));
    a = form(32768, 32768, 0, F32, 1, 0x80);
    CALLO(cuMipmappedArrayCreate, "largest", (&m, &a, 1), OUT_C(m));
    a = form(1, 32769, 0, F32, 1, 0x80);
    CALLO(cuMipmappedArrayCreate, "too-high", (&m, &a, 1), OUT_H(m));
    a = form(32769, 0, 0, F32, 1, 0x80);
    CALLO(cuMipmappedArrayCreate, "1d-too-wide", (&m, &a, 1), OUT_H(m));
    a = form(16385, 1, 1, F32, 1, 0x80);
    CALLO(cuMipmappedArrayCreate, "3d-too-wide", (&m, &a, 1), OUT_H(m));
    a = form(1, 1, 32768, F32, 1, 0x80);
    CALLO(cuMipmappedArrayCreate, "3d-alternate", (&m, &a, 1), OUT_H(m));
    a = form(1, 1, 2049, F32, 1, 0x81);
    CALLO(cuMipmappedArrayCreate, "layers-too-many", (&m, &a, 1), OUT_H(m));
    a = form(64, 64, 0, F32, 1, 0);
    SETUP(cuMipmappedArrayCreate, (&m, &a, 3));
    CALLO(cuMipmappedArrayGetLevel, "no-such-level", (&level, m, 3), OUT_H(level));
    CALLO(cuMipmappedArrayGetLevel, "largest-level", (&level, m, ~0u), OUT_H(level));
    CALL(cuMipmappedArrayGetLevel, "null-out", (NULL, m, 0));
    CALLO(cuMipmappedArrayGetLevel, "null-mipmap", (&level, NULL, 0), OUT_H(level));
    CALL(cuMipmappedArrayDestroy, "null", (NULL));
}

SCENARIO(handles, "mipmap/handles", par_context) {
    CUarray a0, a1, again, other_ctx;
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, 0);
    CUmipmappedArray m = par_mipmap(&a, 3);
    SETUP(cuMipmappedArrayGetLevel, (&a0, m, 0));
    SETUP(cuMipmappedArrayGetLevel, (&a1, m, 1));
    SETUP(cuMipmappedArrayGetLevel, (&again, m, 0));
    par_see("same-level-asked-twice", a0 == again ? "same-handle" : "other-handle");
    par_new_context();
    CALLO(cuMipmappedArrayGetLevel, "foreign-ctx", (&other_ctx, m, 1), OUT_C(other_ctx));
    SETUP(cuCtxSetCurrent, (NULL));
    CALLO(cuMipmappedArrayGetLevel, "no-context", (&other_ctx, m, 1), OUT_C(other_ctx));
    SETUP(cuCtxSetCurrent, (par.primary));
    CALL(cuArrayDestroy, "level", (a1));
    CALLO(cuMipmappedArrayGetLevel, "level-after-its-destroy", (&a1, m, 1), OUT_C(a1));
    CALL(cuMipmappedArrayDestroy, "ok", (m));
    show("level-of-destroyed", a0);
}

SCENARIO(stale, "mipmap/stale", par_context) {
    CUarray level;
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, 0);
    CUmipmappedArray m = par_mipmap(&a, 3);
    SETUP(cuMipmappedArrayDestroy, (m));
    CALLO(cuMipmappedArrayGetLevel, "stale-handle", (&level, m, 0), OUT_H(level));
    CALL(cuMipmappedArrayDestroy, "stale-handle", (m));
}

SCENARIO(foreign_end, "mipmap/foreign-end", par_context) {
    CUarray level;
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, 0);
    CUmipmappedArray m = par_mipmap(&a, 3);
    CUcontext other = par_new_context();
    CUmipmappedArray n = par_mipmap(&a, 3);
    CALL(cuMipmappedArrayDestroy, "foreign-ctx", (m));
    SETUP(cuCtxSetCurrent, (par.primary));
    SETUP(cuCtxDestroy_v2, (other));
    CALLO(cuMipmappedArrayGetLevel, "of-destroyed-ctx", (&level, n, 0), OUT_C(level));
    CALL(cuMipmappedArrayDestroy, "of-destroyed-ctx", (n));
}

SCENARIO(no_context_destroy, "mipmap/no-context-destroy", par_context) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(64, 64, 0, F32, 1, 0);
    CUmipmappedArray m = par_mipmap(&a, 3);
    SETUP(cuCtxSetCurrent, (NULL));
    CALL(cuMipmappedArrayDestroy, "no-context", (m));
}

/* Levels hold different bytes, and the level fields of a copy are another matter. */
SCENARIO(copies, "mipmap/copies") {
    enum { SIDE = 16 };
    CUarray level[3];
    unsigned char in[SIDE * SIDE], out[SIDE * SIDE];
    CUDA_ARRAY3D_DESCRIPTOR a = form(SIDE, SIDE, 0, U8, 1, 0);
    CUDA_MEMCPY3D c;
    par_context();
    CUmipmappedArray m = par_mipmap(&a, 3);
    for (unsigned i = 0; i < 3; i++) {
        SETUP(cuMipmappedArrayGetLevel, (&level[i], m, i));
        memset(in, (int)i + 1, sizeof in);
        memset(&c, 0, sizeof c);
        c.srcMemoryType = CU_MEMORYTYPE_HOST;
        c.srcHost = in;
        c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        c.dstArray = level[i];
        c.WidthInBytes = SIDE >> i;
        c.Height = SIDE >> i;
        c.Depth = 1;
        par_note("level=%u", i);
        CALL(cuMemcpy3D_v2, "to-level", (&c));
    }
    memset(&c, 0, sizeof c);
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = out;
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = level[0];
    c.WidthInBytes = 4;
    c.Height = 4;
    c.Depth = 1;
    CALL(cuMemcpy3D_v2, "from-level", (&c));
    par_see("first-byte", "%d", out[0]);
    c.srcArray = level[2];
    CALL(cuMemcpy3D_v2, "from-level", (&c));
    par_see("first-byte", "%d", out[0]);
    c.srcArray = level[0];
    c.srcLOD = 1;
    CALL(cuMemcpy3D_v2, "lod-set", (&c));
    par_see("first-byte", "%d", out[0]);
    c.srcLOD = 0;
    c.dstLOD = 7;
    CALL(cuMemcpy3D_v2, "host-lod-set", (&c));
    c.dstLOD = 0;
    c.srcArray = level[1];
    c.WidthInBytes = SIDE / 2 + 1;
    CALL(cuMemcpy3D_v2, "wider-than-level", (&c));
    c.WidthInBytes = SIDE / 2;
    c.Height = SIDE / 2 + 1;
    CALL(cuMemcpy3D_v2, "higher-than-level", (&c));
    c.srcArray = (CUarray)m;
    c.Height = 1;
    CALL(cuMemcpy3D_v2, "mipmap-as-array", (&c));
}

SCENARIO(free_memory, "mipmap/free-memory", par_context, PAR_ALONE) {
    CUDA_ARRAY3D_DESCRIPTOR a = form(2048, 2048, 0, F32, 1, 0);
    par_free_mark();
    CUmipmappedArray m = par_mipmap(&a, 12);
    par_free_delta("2048-square-12-levels");
    SETUP(cuMipmappedArrayDestroy, (m));
    par_free_delta("destroyed");
}
