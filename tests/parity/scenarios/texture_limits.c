/*
 * Textures: planes of the first interface with one thing varied at a time (the recorded row of a
 * pitch below the width has 16 elements in 64 bytes at the start of its memory, which several rules
 * explain), and limits of texture objects that were refused for their pitch or memory as well.
 */
#include "../parity.h"

static CUtexref ref;

static CUdeviceptr_v1 old_ground(bool format) {
    par_init();
    (void)PAR_MADE(CUcontext, cuCtxCreate, 0, 0);
    CUdeviceptr_v1 p = PAR_MADE(CUdeviceptr_v1, cuMemAlloc, 65536);
    SETUP(cuTexRefCreate, (&ref));
    if (format)
        SETUP(cuTexRefSetFormat, (ref, CU_AD_FORMAT_FLOAT, 1));
    return p;
}

static CUDA_ARRAY_DESCRIPTOR_v1 plane(unsigned width, CUarray_format format, unsigned channels) {
    return (CUDA_ARRAY_DESCRIPTOR_v1){.Width = width, .Height = 4, TEXELS(format, channels)};
}

/* Which pitch is too small, for which width and element? */
SCENARIO(old_planes, "near-texture/old-planes") {
    static const unsigned widths[] = {1, 16, 32, 33, 64, 65, 128, 256};
    static const unsigned pitches[] = {0,  1,   4,   15,  16,  31,  32,  33,  63,  64,
                                       65, 127, 128, 129, 255, 256, 257, 511, 512, 1024};
    static const struct {
        CUarray_format format;
        unsigned channels;
    } elements[] = {
        {CU_AD_FORMAT_UNSIGNED_INT8, 1}, {CU_AD_FORMAT_FLOAT, 1}, {CU_AD_FORMAT_FLOAT, 4}};
    CUdeviceptr_v1 p = old_ground(true);
    for (size_t e = 0; e < COUNT(elements); e++) {
        for (size_t w = 0; w < COUNT(widths); w++) {
            for (size_t i = 0; i < COUNT(pitches); i++) {
                CUDA_ARRAY_DESCRIPTOR_v1 d =
                    plane(widths[w], elements[e].format, elements[e].channels);
                par_note("format=0x%x channels=%u width=%u pitch=%u", (unsigned)elements[e].format,
                         elements[e].channels, widths[w], pitches[i]);
                CALL(cuTexRefSetAddress2D, "old-pitch", (ref, &d, p, pitches[i]));
            }
        }
    }
}

/* Addresses inside the memory, heights, with and without a format of the reference's own. */
static void old_places(bool format) {
    static const unsigned offsets[] = {0, 1, 4, 16, 32, 64, 128, 256, 512, 1024, 4096, 32768};
    static const unsigned heights[] = {0, 1, 4, 32, 128, 129, 65536};
    CUdeviceptr_v1 p = old_ground(format);
    CUDA_ARRAY_DESCRIPTOR_v1 d = plane(64, CU_AD_FORMAT_FLOAT, 1);
    par_see("alignment", "%d", p % 512 == 0);
    for (size_t i = 0; i < COUNT(offsets); i++) {
        par_note("offset=%u", offsets[i]);
        CALL(cuTexRefSetAddress2D, "old-offset", (ref, &d, p + offsets[i], 512));
    }
    for (size_t i = 0; i < COUNT(heights); i++) {
        d.Height = heights[i];
        par_note("height=%u", heights[i]);
        CALL(cuTexRefSetAddress2D, "old-height", (ref, &d, p, 512));
    }
    d = plane(0, CU_AD_FORMAT_FLOAT, 1);
    CALL(cuTexRefSetAddress2D, "old-zero-width", (ref, &d, p, 512));
    d = plane(64, (CUarray_format)0x77, 1);
    CALL(cuTexRefSetAddress2D, "old-bad-format", (ref, &d, p, 512));
    d = plane(64, CU_AD_FORMAT_FLOAT, 3);
    CALL(cuTexRefSetAddress2D, "old-channels-3", (ref, &d, p, 1024));
    CALL(cuTexRefSetAddress2D, "old-null-description", (ref, NULL, p, 512));
}

SCENARIO_IS(old_places_format, "near-texture/old-places", old_places(true));
SCENARIO_IS(old_places_no_format, "near-texture/old-places-no-format", old_places(false));

/* A refused plane, and what was bound before. */
SCENARIO(old_refused, "near-texture/old-refused") {
    unsigned offset;
    CUdeviceptr_v1 got;
    CUdeviceptr_v1 p = old_ground(true);
    CUDA_ARRAY_DESCRIPTOR_v1 d = plane(64, CU_AD_FORMAT_FLOAT, 1);
    CALLO(cuTexRefSetAddress, "old-part", (&offset, ref, p + 32, 1024), OUT_U(offset));
    CALL(cuTexRefSetAddress2D, "old-inside", (ref, &d, p + 1024, 512));
    CALL(cuTexRefSetAddress2D, "old-narrow", (ref, &d, p + 512, 32));
    CALLO(cuTexRefGetAddress, "old-after", (&got, ref), OUT_C(got));
    par_see("bound", "%lld", (long long)got - (long long)p);
}

/* The same widths and pitches in the later versions, in a context of today. */
SCENARIO(planes, "near-texture/planes", par_context) {
    static const size_t widths[] = {1, 16, 33, 64};
    static const size_t pitches[] = {16, 32, 63, 64, 65, 96, 128, 131, 132, 160, 255, 256};
    CUdeviceptr p = par_alloc(65536);
    SETUP(cuTexRefCreate, (&ref));
    for (size_t w = 0; w < COUNT(widths); w++) {
        for (size_t i = 0; i < COUNT(pitches); i++) {
            CUDA_ARRAY_DESCRIPTOR d = {TEXELS(CU_AD_FORMAT_FLOAT, 1), .Width = widths[w],
                                       .Height = 4};
            par_note("width=%zu pitch=%zu", widths[w], pitches[i]);
            CALL(cuTexRefSetAddress2D_v2, "pitch", (ref, &d, p, pitches[i]));
            par_note("width=%zu pitch=%zu", widths[w], pitches[i]);
            CALL(cuTexRefSetAddress2D_v3, "pitch", (ref, &d, p, pitches[i]));
        }
    }
}

/* Widths and heights at their limits, in rows and memory that hold them. */
SCENARIO(object_limits, "near-texture/object-limits", par_context) {
    static const size_t widths[] = {131071, 131072, 131073, 262144};
    static const size_t heights[] = {2048, 2049, 65000, 65001};
    CUDA_RESOURCE_DESC r;
    CUtexObject object;
    CUDA_TEXTURE_DESC texture = {0};
    memset(&r, 0, sizeof r);
    r.resType = CU_RESOURCE_TYPE_PITCH2D;
    r.res.pitch2D.devPtr = par_alloc((size_t)64 << 20);
    r.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
    r.res.pitch2D.numChannels = 1;
    r.res.pitch2D.pitchInBytes = 1 << 20;
    r.res.pitch2D.height = 4;
    for (size_t i = 0; i < COUNT(widths); i++) {
        r.res.pitch2D.width = widths[i];
        par_note("width=%zu", widths[i]);
        CALLO(cuTexObjectCreate, "width", (&object, &r, &texture, NULL), OUT_C(object));
    }
    r.res.pitch2D.width = 64;
    r.res.pitch2D.pitchInBytes = 512;
    for (size_t i = 0; i < COUNT(heights); i++) {
        r.res.pitch2D.height = heights[i];
        par_note("height=%zu", heights[i]);
        CALLO(cuTexObjectCreate, "height", (&object, &r, &texture, NULL), OUT_C(object));
    }
}
