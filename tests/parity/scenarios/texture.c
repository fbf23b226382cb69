/* Texture and surface objects: which descriptions are taken, and what is read back of them. */
#include "../parity.h"

static CUarray array_of(size_t width, size_t height, size_t depth, CUarray_format format,
                        unsigned channels, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR d = {SIZE_3D(width, height, depth), TEXELS(format, channels),
                                 .Flags = flags};
    return PAR_MADE(CUarray, cuArray3DCreate_v2, &d);
}

static CUmipmappedArray mipmap_of(size_t width, size_t height, unsigned levels, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR d = {TEXELS(CU_AD_FORMAT_FLOAT, 1), .Width = width, .Height = height,
                                 .Flags = flags};
    return PAR_MADE(CUmipmappedArray, cuMipmappedArrayCreate, &d, levels);
}

static CUDA_RESOURCE_DESC of_array(CUarray array) {
    CUDA_RESOURCE_DESC r;
    memset(&r, 0, sizeof r);
    r.resType = CU_RESOURCE_TYPE_ARRAY;
    r.res.array.hArray = array;
    return r;
}

static CUDA_RESOURCE_DESC of_mipmap(CUmipmappedArray mipmap) {
    CUDA_RESOURCE_DESC r;
    memset(&r, 0, sizeof r);
    r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    r.res.mipmap.hMipmappedArray = mipmap;
    return r;
}

static CUDA_RESOURCE_DESC of_linear(CUdeviceptr p, size_t size) {
    CUDA_RESOURCE_DESC r;
    memset(&r, 0, sizeof r);
    r.resType = CU_RESOURCE_TYPE_LINEAR;
    r.res.linear.devPtr = p;
    r.res.linear.format = CU_AD_FORMAT_FLOAT;
    r.res.linear.numChannels = 1;
    r.res.linear.sizeInBytes = size;
    return r;
}

static CUDA_RESOURCE_DESC of_pitch(CUdeviceptr p) {
    CUDA_RESOURCE_DESC r;
    memset(&r, 0, sizeof r);
    r.resType = CU_RESOURCE_TYPE_PITCH2D;
    r.res.pitch2D.devPtr = p;
    r.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
    r.res.pitch2D.numChannels = 1;
    r.res.pitch2D.width = 64;
    r.res.pitch2D.height = 32;
    r.res.pitch2D.pitchInBytes = 512;
    return r;
}

static CUDA_TEXTURE_DESC point(void) {
    return (CUDA_TEXTURE_DESC){0};
}

static void see_resource(const CUDA_RESOURCE_DESC *r) {
    char name[64];
    switch (r->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        par_name_print(name, sizeof name, (uint64_t)(uintptr_t)r->res.array.hArray, 0, "array");
        par_see("resource", "array %s flags %u", name, r->flags);
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        par_name_print(name, sizeof name, (uint64_t)(uintptr_t)r->res.mipmap.hMipmappedArray, 0,
                       "mipmap");
        par_see("resource", "mipmap %s flags %u", name, r->flags);
        break;
    case CU_RESOURCE_TYPE_LINEAR:
        par_name_print(name, sizeof name, r->res.linear.devPtr, 0, "p");
        par_see("resource", "linear %s format %d channels %u size %zu flags %u", name,
                (int)r->res.linear.format, r->res.linear.numChannels, r->res.linear.sizeInBytes,
                r->flags);
        break;
    case CU_RESOURCE_TYPE_PITCH2D:
        par_name_print(name, sizeof name, r->res.pitch2D.devPtr, 0, "p");
        par_see("resource", "pitch %s format %d channels %u %zu x %zu pitch %zu flags %u", name,
                (int)r->res.pitch2D.format, r->res.pitch2D.numChannels, r->res.pitch2D.width,
                r->res.pitch2D.height, r->res.pitch2D.pitchInBytes, r->flags);
        break;
    default:
        par_see("resource", "type %d", (int)r->resType);
    }
}

static void see_texture(const CUDA_TEXTURE_DESC *t) {
    par_see("texture",
            "address %d %d %d filter %d flags 0x%x anisotropy %u mipmap %d bias %g clamp %g %g "
            "border %g %g %g %g",
            (int)t->addressMode[0], (int)t->addressMode[1], (int)t->addressMode[2],
            (int)t->filterMode, t->flags, t->maxAnisotropy, (int)t->mipmapFilterMode,
            (double)t->mipmapLevelBias, (double)t->minMipmapLevelClamp,
            (double)t->maxMipmapLevelClamp, (double)t->borderColor[0], (double)t->borderColor[1],
            (double)t->borderColor[2], (double)t->borderColor[3]);
}

static void see_view(const CUDA_RESOURCE_VIEW_DESC *v) {
    par_see("view", "format %d %zu x %zu x %zu levels %u to %u layers %u to %u", (int)v->format,
            v->width, v->height, v->depth, v->firstMipmapLevel, v->lastMipmapLevel, v->firstLayer,
            v->lastLayer);
}

/* Makes it, reads everything back, destroys it. */
static void make(const char *cls, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t,
                 const CUDA_RESOURCE_VIEW_DESC *v) {
    CUtexObject object = 0;
    CUDA_RESOURCE_DESC resource;
    CALLO(cuTexObjectCreate, cls, (&object, r, t, v), OUT_C(object));
    if (par_last() != CUDA_SUCCESS)
        return;
    /* What the driver leaves as it was reads as zero. */
    memset(&resource, 0, sizeof resource);
    CUDA_TEXTURE_DESC texture = {0};
    CUDA_RESOURCE_VIEW_DESC view = {0};
    CALL(cuTexObjectGetResourceDesc, cls, (&resource, object));
    if (par_last() == CUDA_SUCCESS)
        see_resource(&resource);
    CALL(cuTexObjectGetTextureDesc, cls, (&texture, object));
    if (par_last() == CUDA_SUCCESS)
        see_texture(&texture);
    CALL(cuTexObjectGetResourceViewDesc, cls, (&view, object));
    if (par_last() == CUDA_SUCCESS)
        see_view(&view);
    CALL(cuTexObjectDestroy, cls, (object));
}

SCENARIO(resources, "texture/resources", par_context) {
    CUDA_TEXTURE_DESC t = point();
    CUarray array = array_of(64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    NAME(array);
    CUmipmappedArray mipmap = mipmap_of(64, 32, 4, 0);
    NAME(mipmap);
    CUdeviceptr p = par_alloc(1 << 20);
    NAME_R(p, 1 << 20);
    CUDA_RESOURCE_DESC r = of_array(array);
    make("array", &r, &t, NULL);
    r = of_mipmap(mipmap);
    make("mipmap", &r, &t, NULL);
    r = of_linear(p, 65536);
    make("linear", &r, &t, NULL);
    r = of_pitch(p);
    make("pitch", &r, &t, NULL);
    for (int type = -1; type <= 5; type++) {
        r = of_array(array);
        r.resType = (CUresourcetype)type;
        if (type >= 0 && type <= 3)
            continue;
        par_note("type=%d", type);
        make("bad-type", &r, &t, NULL);
    }
    r = of_array(array);
    r.flags = 1;
    make("flags", &r, &t, NULL);
    r = of_array(NULL);
    make("null-array", &r, &t, NULL);
    r = of_mipmap(NULL);
    make("null-mipmap", &r, &t, NULL);
    r = of_array(array);
    CUtexObject object;
    CALL(cuTexObjectCreate, "null-out", (NULL, &r, &t, NULL));
    CALLO(cuTexObjectCreate, "null-resource", (&object, NULL, &t, NULL), OUT_C(object));
    CALLO(cuTexObjectCreate, "null-texture", (&object, &r, NULL, NULL), OUT_C(object));
}

SCENARIO(linear, "texture/linear", par_context) {
    static const size_t sizes[] = {0,
                                   1,
                                   3,
                                   4,
                                   6,
                                   65536,
                                   1 << 20,
                                   (1 << 20) + 4,
                                   (size_t)1 << 29,
                                   (size_t)1 << 31,
                                   (size_t)1 << 40};
    static const size_t offsets[] = {1, 4, 16, 32, 64, 256, 512};
    CUDA_TEXTURE_DESC t = point();
    CUDA_RESOURCE_DESC r;
    CUdeviceptr p = par_alloc(1 << 20);
    NAME_R(p, 1 << 20);
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        r = of_linear(p, sizes[i]);
        par_note("size=%zu", sizes[i]);
        make("linear-size", &r, &t, NULL);
    }
    for (unsigned i = 0; i < COUNT(offsets); i++) {
        r = of_linear(p + offsets[i], 1024);
        par_note("offset=%zu", offsets[i]);
        make("linear-offset", &r, &t, NULL);
    }
    for (unsigned channels = 0; channels <= 5; channels++) {
        r = of_linear(p, 1024);
        r.res.linear.numChannels = channels;
        par_note("channels=%u", channels);
        make("linear-channels", &r, &t, NULL);
    }
    for (unsigned format = 0; format <= 0x40; format++) {
        r = of_linear(p, 1024);
        r.res.linear.format = (CUarray_format)format;
        par_note("format=0x%x", format);
        make("linear-format", &r, &t, NULL);
    }
    r = of_linear(0, 1024);
    make("linear-null", &r, &t, NULL);
    r = of_linear(0x1000, 1024);
    make("linear-not-ours", &r, &t, NULL);
    void *host = par_pinned(65536);
    NAME_R(host, 65536);
    r = of_linear((CUdeviceptr)(uintptr_t)host, 1024);
    make("linear-pinned", &r, &t, NULL);
    for (int mode = 0; mode <= 4; mode++) {
        r = of_linear(p, 1024);
        t = point();
        t.addressMode[0] = (CUaddress_mode)mode;
        par_note("mode=%d", mode);
        make("linear-address-mode", &r, &t, NULL);
    }
    t = point();
    t.filterMode = CU_TR_FILTER_MODE_LINEAR;
    make("linear-filter", &r, &t, NULL);
    t = point();
    t.flags = CU_TRSF_NORMALIZED_COORDINATES;
    make("linear-normalized", &r, &t, NULL);
}

SCENARIO(pitch, "texture/pitch", par_context) {
    static const size_t pitches[] = {0, 32, 128, 256, 257, 264, 272, 288, 512, 1 << 20};
    static const size_t widths[] = {0, 1, 64, 128, 129, 131072, 131073};
    static const size_t heights[] = {0, 1, 2048, 2049, 65000, 65001};
    static const size_t offsets[] = {1, 16, 32, 256, 512};
    CUDA_TEXTURE_DESC t = point();
    CUDA_RESOURCE_DESC r;
    CUdeviceptr p = par_alloc(1 << 20);
    NAME_R(p, 1 << 20);
    for (unsigned i = 0; i < COUNT(pitches); i++) {
        r = of_pitch(p);
        r.res.pitch2D.pitchInBytes = pitches[i];
        par_note("pitch=%zu", pitches[i]);
        make("pitch-pitch", &r, &t, NULL);
    }
    for (unsigned i = 0; i < COUNT(widths); i++) {
        r = of_pitch(p);
        r.res.pitch2D.width = widths[i];
        par_note("width=%zu", widths[i]);
        make("pitch-width", &r, &t, NULL);
    }
    for (unsigned i = 0; i < COUNT(heights); i++) {
        r = of_pitch(p);
        r.res.pitch2D.height = heights[i];
        par_note("height=%zu", heights[i]);
        make("pitch-height", &r, &t, NULL);
    }
    for (unsigned i = 0; i < COUNT(offsets); i++) {
        r = of_pitch(p + offsets[i]);
        par_note("offset=%zu", offsets[i]);
        make("pitch-offset", &r, &t, NULL);
    }
    for (int channels = 1; channels <= 4; channels++) {
        r = of_pitch(p);
        r.res.pitch2D.numChannels = (unsigned)channels;
        par_note("channels=%d", channels);
        make("pitch-channels", &r, &t, NULL);
    }
    r = of_pitch(p);
    t.filterMode = CU_TR_FILTER_MODE_LINEAR;
    t.flags = CU_TRSF_NORMALIZED_COORDINATES;
    for (int mode = 0; mode <= 4; mode++) {
        t.addressMode[0] = t.addressMode[1] = (CUaddress_mode)mode;
        par_note("mode=%d", mode);
        make("pitch-linear-filter", &r, &t, NULL);
    }
}

SCENARIO(formats, "texture/formats", par_context) {
    static const int all[] = {1, 2, 3, 8, 9, 10, 16, 32, 0x40, 0x41, 0x42, 0x43, 0x44, 0x50};
    for (unsigned i = 0; i < COUNT(all); i++)
        for (int filter = 0; filter <= 1; filter++)
            for (unsigned flags = 0; flags <= 3; flags++) {
                CUarray array = NULL;
                CUDA_ARRAY3D_DESCRIPTOR d = {TEXELS((CUarray_format)all[i], 1), .Width = 64,
                                             .Height = 32};
                if (par.api->cuArray3DCreate_v2(&array, &d) != CUDA_SUCCESS)
                    continue;
                par_name((uint64_t)(uintptr_t)array, 0, "array");
                CUDA_RESOURCE_DESC r = of_array(array);
                CUDA_TEXTURE_DESC t = point();
                t.filterMode = (CUfilter_mode)filter;
                t.flags = flags;
                par_note("format=0x%x filter=%d flags=%u", (unsigned)all[i], filter, flags);
                make("format-filter", &r, &t, NULL);
                par.api->cuArrayDestroy(array);
                FORGET(array);
            }
}

SCENARIO(modes, "texture/modes", par_context) {
    static const unsigned flags[] = {0, 1, 2, 3, 4, 8, 0x10, 0x20, 0x22, 0x40, 0x42, 0x80, ~0u};
    CUDA_TEXTURE_DESC t;
    CUarray array = array_of(64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    NAME(array);
    CUDA_RESOURCE_DESC r = of_array(array);
    for (int mode = -1; mode <= 5; mode++)
        for (int d = 0; d < 3; d++) {
            t = point();
            t.addressMode[d] = (CUaddress_mode)mode;
            par_note("dimension=%d mode=%d", d, mode);
            make("address-mode", &r, &t, NULL);
            t.flags = CU_TRSF_NORMALIZED_COORDINATES;
            par_note("normalized dimension=%d mode=%d", d, mode);
            make("address-mode", &r, &t, NULL);
        }
    for (int filter = -1; filter <= 2; filter++) {
        t = point();
        t.filterMode = (CUfilter_mode)filter;
        par_note("filter=%d", filter);
        make("filter", &r, &t, NULL);
        t = point();
        t.mipmapFilterMode = (CUfilter_mode)filter;
        par_note("mipmap-filter=%d", filter);
        make("mipmap-filter", &r, &t, NULL);
    }
    for (unsigned i = 0; i < COUNT(flags); i++) {
        t = point();
        t.flags = flags[i];
        par_note("flags=0x%x", flags[i]);
        make("texture-flags", &r, &t, NULL);
    }
    static const unsigned anisotropy[] = {1, 2, 3, 5, 8, 15, 16, 17, 64, ~0u};
    for (unsigned i = 0; i < COUNT(anisotropy); i++) {
        t = point();
        t.maxAnisotropy = anisotropy[i];
        par_note("anisotropy=%u", anisotropy[i]);
        make("anisotropy", &r, &t, NULL);
    }
    t = point();
    t.mipmapLevelBias = 1.5f;
    t.minMipmapLevelClamp = 1;
    t.maxMipmapLevelClamp = 2;
    t.borderColor[0] = 0.5f;
    t.borderColor[3] = -1;
    make("numbers", &r, &t, NULL);
    t.minMipmapLevelClamp = 3;
    t.maxMipmapLevelClamp = 2;
    make("clamp-turned", &r, &t, NULL);
    t = point();
    t.reserved[3] = 1;
    make("reserved", &r, &t, NULL);
}

static CUDA_RESOURCE_VIEW_DESC whole(CUresourceViewFormat format) {
    return (CUDA_RESOURCE_VIEW_DESC){.format = format, .width = 64, .height = 32};
}

SCENARIO(views, "texture/views", par_context) {
    CUDA_TEXTURE_DESC t = point();
    CUDA_RESOURCE_VIEW_DESC v;
    CUarray array = array_of(64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    NAME(array);
    CUmipmappedArray mipmap = mipmap_of(64, 32, 4, 0);
    NAME(mipmap);
    CUarray layered = array_of(64, 32, 8, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED);
    NAME(layered);
    CUdeviceptr p = par_alloc(65536);
    NAME_R(p, 65536);
    CUDA_RESOURCE_DESC r = of_array(array);
    for (int format = -1; format <= 0x24; format++) {
        v = whole((CUresourceViewFormat)format);
        par_note("format=%d", format);
        make("view-format", &r, &t, &v);
    }
    v = whole(CU_RES_VIEW_FORMAT_FLOAT_1X32);
    v.width = 32;
    make("view-width", &r, &t, &v);
    v = whole(CU_RES_VIEW_FORMAT_FLOAT_1X32);
    v.width = 128;
    make("view-width", &r, &t, &v);
    v = whole(CU_RES_VIEW_FORMAT_FLOAT_1X32);
    v.height = 0;
    make("view-height", &r, &t, &v);
    v = whole(CU_RES_VIEW_FORMAT_FLOAT_1X32);
    v.depth = 1;
    make("view-depth", &r, &t, &v);
    v = whole(CU_RES_VIEW_FORMAT_FLOAT_1X32);
    v.lastMipmapLevel = 1;
    make("view-level-of-array", &r, &t, &v);
    v = whole(CU_RES_VIEW_FORMAT_FLOAT_1X32);
    v.lastLayer = 1;
    make("view-layer-of-array", &r, &t, &v);
    r = of_mipmap(mipmap);
    for (unsigned first = 0; first <= 4; first++)
        for (unsigned last = 0; last <= 4; last++) {
            v = whole(CU_RES_VIEW_FORMAT_FLOAT_1X32);
            v.firstMipmapLevel = first;
            v.lastMipmapLevel = last;
            par_note("levels=%u-%u", first, last);
            make("view-levels", &r, &t, &v);
        }
    r = of_array(layered);
    for (unsigned last = 0; last <= 8; last += 7) {
        v = whole(CU_RES_VIEW_FORMAT_FLOAT_1X32);
        v.depth = 8;
        v.lastLayer = last;
        par_note("layers=0-%u", last);
        make("view-layers", &r, &t, &v);
    }
    r = of_linear(p, 65536);
    v = whole(CU_RES_VIEW_FORMAT_FLOAT_1X32);
    make("view-of-linear", &r, &t, &v);
    r = of_pitch(p);
    make("view-of-pitch", &r, &t, &v);
}

SCENARIO(handles, "texture/handles", par_context) {
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture, t = point();
    CUDA_RESOURCE_VIEW_DESC view;
    CUtexObject object, again;
    CUarray array = array_of(64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    NAME(array);
    CUDA_RESOURCE_DESC r = of_array(array);
    CALLO(cuTexObjectCreate, "ok", (&object, &r, &t, NULL), OUT_H(object));
    CALLO(cuTexObjectCreate, "again", (&again, &r, &t, NULL), OUT_H(again));
    CALL(cuTexObjectGetResourceDesc, "null-out", (NULL, object));
    CALL(cuTexObjectGetTextureDesc, "null-out", (NULL, object));
    CALL(cuTexObjectGetResourceViewDesc, "null-out", (NULL, object));
    CALL(cuTexObjectGetResourceViewDesc, "no-view", (&view, object));
    CALL(cuArrayDestroy, "used-by-texture", (array));
    CALL(cuTexObjectGetResourceDesc, "array-destroyed", (&resource, object));
    CALL(cuTexObjectDestroy, "array-destroyed", (object));
    CALL(cuTexObjectGetTextureDesc, "other-of-same-array", (&texture, again));
    CALL(cuTexObjectDestroy, "ok", (again));
    CALL(cuTexObjectDestroy, "zero", (0));
    CALL(cuTexObjectGetResourceDesc, "zero", (&resource, 0));
    CALL(cuTexObjectDestroy, "random", (0xfffff));
    CALL(cuTexObjectGetTextureDesc, "random", (&texture, 0xfffff));
}

SCENARIO(stale, "texture/stale", par_context) {
    CUDA_TEXTURE_DESC texture, t = point();
    CUarray array = array_of(64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    CUDA_RESOURCE_DESC r = of_array(array);
    CUtexObject object = PAR_MADE(CUtexObject, cuTexObjectCreate, &r, &t, NULL);
    SETUP(cuTexObjectDestroy, (object));
    CALL(cuTexObjectGetTextureDesc, "stale", (&texture, object));
    CALL(cuTexObjectDestroy, "stale", (object));
}

SCENARIO(surfaces, "texture/surfaces", par_context) {
    static const unsigned flags[] = {0, CUDA_ARRAY3D_SURFACE_LDST,
                                     CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_TEXTURE_GATHER};
    CUDA_RESOURCE_DESC read;
    CUsurfObject surface;
    for (unsigned i = 0; i < COUNT(flags); i++) {
        CUarray array = array_of(64, 32, 0, CU_AD_FORMAT_FLOAT, 1, flags[i]);
        par_name((uint64_t)(uintptr_t)array, 0, "array");
        CUDA_RESOURCE_DESC r = of_array(array);
        par_note("flags=%u", flags[i]);
        CALLO(cuSurfObjectCreate, "array-flags", (&surface, &r), OUT_C(surface));
        if (par_last() != CUDA_SUCCESS)
            continue;
        CALL(cuSurfObjectGetResourceDesc, "ok", (&read, surface));
        see_resource(&read);
        CALL(cuSurfObjectGetResourceDesc, "null-out", (NULL, surface));
        CALL(cuSurfObjectDestroy, "ok", (surface));
        CALL(cuSurfObjectCreate, "null-out", (NULL, &r));
        r.flags = 1;
        CALLO(cuSurfObjectCreate, "resource-flags", (&surface, &r), OUT_C(surface));
    }
    CALLO(cuSurfObjectCreate, "null-resource", (&surface, NULL), OUT_C(surface));
    CUmipmappedArray mipmap = mipmap_of(64, 32, 4, CUDA_ARRAY3D_SURFACE_LDST);
    CUDA_RESOURCE_DESC r = of_mipmap(mipmap);
    CALLO(cuSurfObjectCreate, "mipmap", (&surface, &r), OUT_C(surface));
    CUarray level = PAR_MADE(CUarray, cuMipmappedArrayGetLevel, mipmap, 1);
    r = of_array(level);
    CALLO(cuSurfObjectCreate, "level", (&surface, &r), OUT_C(surface));
    r = of_linear(par_alloc(65536), 65536);
    CALLO(cuSurfObjectCreate, "linear", (&surface, &r), OUT_C(surface));
    r = of_pitch(par_alloc(65536));
    CALLO(cuSurfObjectCreate, "pitch", (&surface, &r), OUT_C(surface));
    r = of_array(NULL);
    CALLO(cuSurfObjectCreate, "null-array", (&surface, &r), OUT_C(surface));
    CALL(cuSurfObjectDestroy, "zero", (0));
    CALL(cuSurfObjectDestroy, "random", (0xfffff));
    CALL(cuSurfObjectGetResourceDesc, "zero", (&read, 0));
}

SCENARIO(mixed, "texture/mixed", par_context) {
    CUDA_RESOURCE_DESC read;
    CUDA_TEXTURE_DESC t = point();
    CUarray array = array_of(64, 32, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
    NAME(array);
    CUDA_RESOURCE_DESC r = of_array(array);
    CUtexObject texture = PAR_MADE(CUtexObject, cuTexObjectCreate, &r, &t, NULL);
    CUsurfObject surface = PAR_MADE(CUsurfObject, cuSurfObjectCreate, &r);
    CALL(cuSurfObjectGetResourceDesc, "of-texture", (&read, texture));
    CALL(cuTexObjectGetResourceDesc, "of-surface", (&read, surface));
    CALL(cuSurfObjectDestroy, "of-texture", (texture));
    CALL(cuTexObjectDestroy, "of-surface", (surface));
}

SCENARIO(without_context, "texture/without-context", par_init) {
    CUDA_TEXTURE_DESC t = point();
    CUtexObject object;
    CUsurfObject surface;
    CUDA_RESOURCE_DESC r = of_linear(0x1000, 1024);
    CALLO(cuTexObjectCreate, "no-context", (&object, &r, &t, NULL), OUT_C(object));
    CALLO(cuSurfObjectCreate, "no-context", (&surface, &r), OUT_C(surface));
    CALL(cuTexObjectDestroy, "no-context", (1));
    CALL(cuTexObjectGetResourceDesc, "no-context", (&r, 1));
    CALL(cuSurfObjectDestroy, "no-context", (1));
}

SCENARIO(memory_freed, "texture/memory-freed", par_context) {
    CUDA_TEXTURE_DESC t = point();
    CUDA_RESOURCE_DESC read;
    CUtexObject object;
    CUdeviceptr p = par_alloc(65536);
    NAME_R(p, 65536);
    CUDA_RESOURCE_DESC r = of_linear(p, 65536);
    CALLO(cuTexObjectCreate, "ok", (&object, &r, &t, NULL), OUT_H(object));
    CALL(cuMemFree_v2, "used-by-texture", (p));
    CALL(cuTexObjectGetResourceDesc, "memory-freed", (&read, object));
    CALL(cuTexObjectDestroy, "memory-freed", (object));
}

SCENARIO(context_ended, "texture/context-ended", par_context) {
    CUDA_TEXTURE_DESC t = point();
    CUDA_RESOURCE_DESC read;
    par_new_context();
    CUdeviceptr p = par_alloc(65536);
    CUDA_RESOURCE_DESC r = of_linear(p, 65536);
    CUtexObject object = PAR_MADE(CUtexObject, cuTexObjectCreate, &r, &t, NULL);
    SETUP(cuCtxSetCurrent, (par.primary));
    CALL(cuTexObjectGetResourceDesc, "other-context", (&read, object));
    CALL(cuTexObjectDestroy, "other-context", (object));
}
