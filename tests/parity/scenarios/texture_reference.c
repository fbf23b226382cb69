/* Texture and surface references: the settings of the old interface, which a driver still keeps. */
#include "../parity.h"

static CUtexref reference(void) {
    CUtexref ref = NULL;
    SETUP(cuTexRefCreate, (&ref));
    par_name((uint64_t)(uintptr_t)ref, 0, "ref");
    return ref;
}

static CUarray array_of(CUarray_format format, unsigned channels, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR d = {TEXELS(format, channels), .Width = 64, .Height = 32,
                                 .Flags = flags};
    CUarray array = PAR_MADE(CUarray, cuArray3DCreate_v2, &d);
    par_name((uint64_t)(uintptr_t)array, 0, "array");
    return array;
}

/* Everything that a reference says of itself. */
static void read_back(const char *cls, CUtexref ref) {
    CUdeviceptr address;
    CUarray array;
    CUmipmappedArray mipmap;
    CUaddress_mode mode;
    CUfilter_mode filter;
    CUarray_format format;
    int channels, anisotropy;
    float bias, least, most;
    unsigned flags;
    CALLO(cuTexRefGetAddress_v2, cls, (&address, ref), OUT_P(address));
    CALLO(cuTexRefGetArray, cls, (&array, ref), OUT_H(array));
    CALLO(cuTexRefGetMipmappedArray, cls, (&mipmap, ref), OUT_H(mipmap));
    for (int dim = 0; dim < 3; dim++) {
        par_note("dim=%d", dim);
        CALLO(cuTexRefGetAddressMode, cls, (&mode, ref, dim), OUT_I(mode));
    }
    CALLO(cuTexRefGetFilterMode, cls, (&filter, ref), OUT_I(filter));
    CALLO(cuTexRefGetFormat, cls, (&format, &channels, ref), OUT_X(format), OUT_I(channels));
    CALLO(cuTexRefGetMipmapFilterMode, cls, (&filter, ref), OUT_I(filter));
    CALLO(cuTexRefGetMipmapLevelBias, cls, (&bias, ref), OUT_X(bias));
    CALLO(cuTexRefGetMipmapLevelClamp, cls, (&least, &most, ref), OUT_X(least), OUT_X(most));
    CALLO(cuTexRefGetMaxAnisotropy, cls, (&anisotropy, ref), OUT_I(anisotropy));
    CALLO(cuTexRefGetFlags, cls, (&flags, ref), OUT_X(flags));
}

SCENARIO(life, "texture-reference/life", par_context) {
    CUtexref ref;
    CALLO(cuTexRefCreate, "ok", (&ref), OUT_H(ref));
    read_back("fresh", ref);
    CALL(cuTexRefDestroy, "ok", (ref));
    CALL(cuTexRefCreate, "null-out", (NULL));
    CALL(cuTexRefDestroy, "null", (NULL));
}

SCENARIO(formats, "texture-reference/formats", par_context) {
    CUtexref ref = reference();
    for (unsigned format = 0; format <= 0x22; format++) {
        CUarray_format got;
        int channels;
        par_note("format=0x%x", format);
        CALL(cuTexRefSetFormat, "format", (ref, (CUarray_format)format, 1));
        if (par_last() == CUDA_SUCCESS)
            CALLO(cuTexRefGetFormat, "format", (&got, &channels, ref), OUT_X(got), OUT_I(channels));
    }
    for (int channels = -1; channels <= 5; channels++) {
        par_note("channels=%d", channels);
        CALL(cuTexRefSetFormat, "channels", (ref, CU_AD_FORMAT_FLOAT, channels));
    }
    CALL(cuTexRefSetFormat, "null-ref", (NULL, CU_AD_FORMAT_FLOAT, 1));
}

SCENARIO(settings, "texture-reference/settings", par_context) {
    float border[4] = {0.25f, 0.5f, 0.75f, 1}, got[4];
    CUaddress_mode address;
    CUfilter_mode filter;
    int anisotropy;
    float bias, least, most;
    unsigned flags;
    CUtexref ref = reference();
    for (int mode = -1; mode <= 5; mode++) {
        par_note("mode=%d", mode);
        CALL(cuTexRefSetAddressMode, "mode", (ref, 0, (CUaddress_mode)mode));
        CALLO(cuTexRefGetAddressMode, "mode", (&address, ref, 0), OUT_I(address));
    }
    for (int dim = -1; dim <= 4; dim++) {
        par_note("dim=%d", dim);
        CALL(cuTexRefSetAddressMode, "dim", (ref, dim, CU_TR_ADDRESS_MODE_CLAMP));
        par_note("dim=%d", dim);
        CALLO(cuTexRefGetAddressMode, "dim", (&address, ref, dim), OUT_I(address));
    }
    for (int mode = -1; mode <= 3; mode++) {
        par_note("mode=%d", mode);
        CALL(cuTexRefSetFilterMode, "mode", (ref, (CUfilter_mode)mode));
        CALLO(cuTexRefGetFilterMode, "mode", (&filter, ref), OUT_I(filter));
        par_note("mode=%d", mode);
        CALL(cuTexRefSetMipmapFilterMode, "mode", (ref, (CUfilter_mode)mode));
        CALLO(cuTexRefGetMipmapFilterMode, "mode", (&filter, ref), OUT_I(filter));
    }
    static const unsigned all_flags[] = {0, 1, 2, 3, 4, 8, 0x10, 0x20, 0x40, 0x80, ~0u};
    for (unsigned i = 0; i < COUNT(all_flags); i++) {
        par_note("flags=0x%x", all_flags[i]);
        CALL(cuTexRefSetFlags, "flags", (ref, all_flags[i]));
        CALLO(cuTexRefGetFlags, "flags", (&flags, ref), OUT_X(flags));
    }
    static const unsigned counts[] = {0, 1, 2, 3, 16, 17, ~0u};
    for (unsigned i = 0; i < COUNT(counts); i++) {
        par_note("count=%u", counts[i]);
        CALL(cuTexRefSetMaxAnisotropy, "count", (ref, counts[i]));
        CALLO(cuTexRefGetMaxAnisotropy, "count", (&anisotropy, ref), OUT_I(anisotropy));
    }
    CALL(cuTexRefSetMipmapLevelBias, "ok", (ref, 1.5f));
    CALLO(cuTexRefGetMipmapLevelBias, "ok", (&bias, ref), OUT_X(bias));
    CALL(cuTexRefSetMipmapLevelBias, "large", (ref, 1e9f));
    CALLO(cuTexRefGetMipmapLevelBias, "large", (&bias, ref), OUT_X(bias));
    CALL(cuTexRefSetMipmapLevelClamp, "ok", (ref, 1, 3));
    CALLO(cuTexRefGetMipmapLevelClamp, "ok", (&least, &most, ref), OUT_X(least), OUT_X(most));
    CALL(cuTexRefSetMipmapLevelClamp, "turned", (ref, 3, 1));
    CALLO(cuTexRefGetMipmapLevelClamp, "turned", (&least, &most, ref), OUT_X(least), OUT_X(most));
    CALL(cuTexRefSetBorderColor, "ok", (ref, border));
    memset(got, 0, sizeof got);
    CALL(cuTexRefGetBorderColor, "ok", (got, ref));
    par_see("border", "%g %g %g %g", (double)got[0], (double)got[1], (double)got[2],
            (double)got[3]);
    CALL(cuTexRefSetBorderColor, "null", (ref, NULL));
    CALL(cuTexRefGetBorderColor, "null", (NULL, ref));
}

SCENARIO(address, "texture-reference/address", par_context) {
    static const size_t sizes[] = {0, 4, 1024, 65536, 65540, (size_t)1 << 30, (size_t)1 << 40};
    static const size_t offsets[] = {1, 4, 32, 256, 512};
    size_t offset;
    CUdeviceptr got;
    CUtexref ref = reference();
    CUdeviceptr p = par_alloc(65536);
    NAME_R(p, 65536);
    CALLO(cuTexRefSetAddress_v2, "no-format", (&offset, ref, p, 1024), OUT_U(offset));
    CALL(cuTexRefSetFormat, "ok", (ref, CU_AD_FORMAT_FLOAT, 1));
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        par_note("size=%zu", sizes[i]);
        CALLO(cuTexRefSetAddress_v2, "size", (&offset, ref, p, sizes[i]), OUT_U(offset));
    }
    for (unsigned i = 0; i < COUNT(offsets); i++) {
        par_note("offset=%zu", offsets[i]);
        CALLO(cuTexRefSetAddress_v2, "offset", (&offset, ref, p + offsets[i], 1024), OUT_U(offset));
        CALLO(cuTexRefGetAddress_v2, "offset", (&got, ref), OUT_P(got));
        par_note("offset=%zu", offsets[i]);
        CALL(cuTexRefSetAddress_v2, "null-offset", (NULL, ref, p + offsets[i], 1024));
    }
    read_back("address-set", ref);
    CALLO(cuTexRefSetAddress_v2, "not-ours", (&offset, ref, 0x1000, 1024), OUT_U(offset));
    CALLO(cuTexRefSetAddress_v2, "null-address", (&offset, ref, 0, 1024), OUT_U(offset));
    CALLO(cuTexRefSetAddress_v2, "null-ref", (&offset, NULL, p, 1024), OUT_U(offset));
    CALLO(cuTexRefSetAddress_v2, "unset", (&offset, ref, 0, 0), OUT_U(offset));
    CALLO(cuTexRefGetAddress_v2, "unset", (&got, ref), OUT_P(got));
    CALL(cuTexRefGetAddress_v2, "null-out", (NULL, ref));
    CALLO(cuTexRefGetAddress_v2, "null-ref", (&got, NULL), OUT_P(got));
    CALL(cuMemFree_v2, "used-by-reference", (p));
}

SCENARIO(address_2d, "texture-reference/address-2d", par_context) {
    static const size_t pitches[] = {0, 128, 256, 257, 288, 512};
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 64, .Height = 32, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    CUtexref ref = reference();
    CUdeviceptr p = par_alloc(65536);
    NAME_R(p, 65536);
    for (unsigned i = 0; i < COUNT(pitches); i++) {
        par_note("pitch=%zu", pitches[i]);
        CALL(cuTexRefSetAddress2D_v3, "pitch", (ref, &d, p, pitches[i]));
        par_note("pitch=%zu", pitches[i]);
        CALL(cuTexRefSetAddress2D_v2, "pitch", (ref, &d, p, pitches[i]));
    }
    read_back("address-2d", ref);
    CALL(cuTexRefSetAddress2D_v3, "unaligned", (ref, &d, p + 4, 512));
    CALL(cuTexRefSetAddress2D_v2, "unaligned", (ref, &d, p + 4, 512));
    CALL(cuTexRefSetAddress2D_v3, "null-description", (ref, NULL, p, 512));
    CALL(cuTexRefSetAddress2D_v3, "null-ref", (NULL, &d, p, 512));
    CALL(cuTexRefSetAddress2D_v3, "not-ours", (ref, &d, 0x1000, 512));
    d.NumChannels = 3;
    CALL(cuTexRefSetAddress2D_v3, "channels-3", (ref, &d, p, 1024));
    d.NumChannels = 1;
    d.Height = 1000;
    CALL(cuTexRefSetAddress2D_v3, "too-high", (ref, &d, p, 512));
}

SCENARIO(arrays, "texture-reference/arrays", par_context) {
    static const unsigned flags[] = {0, 1, 2, 3, ~0u};
    CUarray got;
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 64, .Height = 32, TEXELS(CU_AD_FORMAT_FLOAT, 1)};
    CUtexref ref = reference();
    CUarray array = array_of(CU_AD_FORMAT_UNSIGNED_INT8, 4, 0);
    for (unsigned i = 0; i < COUNT(flags); i++) {
        par_note("flags=%u", flags[i]);
        CALL(cuTexRefSetArray, "flags", (ref, array, flags[i]));
    }
    read_back("array-set", ref);
    CALL(cuTexRefSetArray, "null-array", (ref, NULL, CU_TRSA_OVERRIDE_FORMAT));
    CALLO(cuTexRefGetArray, "null-array", (&got, ref), OUT_H(got));
    CALL(cuTexRefSetArray, "null-ref", (NULL, array, CU_TRSA_OVERRIDE_FORMAT));
    CALL(cuTexRefGetArray, "null-out", (NULL, ref));
    CUmipmappedArray mipmap = par_mipmap(&d, 3);
    NAME(mipmap);
    for (unsigned i = 0; i < COUNT(flags); i++) {
        par_note("flags=%u", flags[i]);
        CALL(cuTexRefSetMipmappedArray, "flags", (ref, mipmap, flags[i]));
    }
    read_back("mipmap-set", ref);
    CALL(cuTexRefSetMipmappedArray, "null-mipmap", (ref, NULL, CU_TRSA_OVERRIDE_FORMAT));
}

SCENARIO(array_destroyed, "texture-reference/array-destroyed", par_context) {
    CUarray got;
    CUtexref ref = reference();
    CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 0);
    CALL(cuTexRefSetArray, "ok", (ref, array, CU_TRSA_OVERRIDE_FORMAT));
    CALL(cuArrayDestroy, "used-by-reference", (array));
    CALLO(cuTexRefGetArray, "array-destroyed", (&got, ref), OUT_H(got));
    CALL(cuTexRefDestroy, "array-destroyed", (ref));
}

SCENARIO(null_references, "texture-reference/null-references", par_context) {
    CUaddress_mode mode;
    CUfilter_mode filter;
    CUarray_format format;
    int n;
    float f, g, border[4] = {0};
    unsigned flags;
    CUtexref ref = reference();
    CALL(cuTexRefSetAddressMode, "null-ref", (NULL, 0, CU_TR_ADDRESS_MODE_CLAMP));
    CALL(cuTexRefSetFilterMode, "null-ref", (NULL, CU_TR_FILTER_MODE_POINT));
    CALL(cuTexRefSetMipmapFilterMode, "null-ref", (NULL, CU_TR_FILTER_MODE_POINT));
    CALL(cuTexRefSetMipmapLevelBias, "null-ref", (NULL, 1));
    CALL(cuTexRefSetMipmapLevelClamp, "null-ref", (NULL, 0, 1));
    CALL(cuTexRefSetMaxAnisotropy, "null-ref", (NULL, 1));
    CALL(cuTexRefSetBorderColor, "null-ref", (NULL, border));
    CALL(cuTexRefSetFlags, "null-ref", (NULL, 0));
    CALLO(cuTexRefGetAddressMode, "null-ref", (&mode, NULL, 0), OUT_I(mode));
    CALL(cuTexRefGetAddressMode, "null-out", (NULL, ref, 0));
    CALLO(cuTexRefGetFilterMode, "null-ref", (&filter, NULL), OUT_I(filter));
    CALL(cuTexRefGetFilterMode, "null-out", (NULL, ref));
    CALLO(cuTexRefGetFormat, "null-ref", (&format, &n, NULL), OUT_X(format), OUT_I(n));
    CALLO(cuTexRefGetFormat, "null-format", (NULL, &n, ref), OUT_I(n));
    CALLO(cuTexRefGetFormat, "null-channels", (&format, NULL, ref), OUT_X(format));
    CALLO(cuTexRefGetMipmapFilterMode, "null-ref", (&filter, NULL), OUT_I(filter));
    CALLO(cuTexRefGetMipmapLevelBias, "null-ref", (&f, NULL), OUT_X(f));
    CALL(cuTexRefGetMipmapLevelBias, "null-out", (NULL, ref));
    CALLO(cuTexRefGetMipmapLevelClamp, "null-ref", (&f, &g, NULL), OUT_X(f), OUT_X(g));
    CALLO(cuTexRefGetMipmapLevelClamp, "null-least", (NULL, &g, ref), OUT_X(g));
    CALLO(cuTexRefGetMaxAnisotropy, "null-ref", (&n, NULL), OUT_I(n));
    CALLO(cuTexRefGetFlags, "null-ref", (&flags, NULL), OUT_X(flags));
    CALL(cuTexRefGetFlags, "null-out", (NULL, ref));
}

/* References of a module; nvcc makes none any more, the assembler does. */
static const char module_text[] = ".version 7.8\n.target sm_70\n.address_size 64\n"
                                  ".global .texref tex_a;\n.global .surfref surf_a;\n"
                                  ".visible .entry nothing() { ret; }\n";

SCENARIO(of_module, "texture-reference/of-module", par_context) {
    CUmodule module;
    CUtexref tex;
    CUsurfref surf;
    CUarray got;
    CALLO(cuModuleLoadData, "texref", (&module, module_text), OUT_C(module));
    if (par_last() != CUDA_SUCCESS)
        return;
    CALLO(cuModuleGetTexRef, "ok", (&tex, module, "tex_a"), OUT_H(tex));
    if (par_last() == CUDA_SUCCESS) {
        read_back("of-module", tex);
        CALL(cuTexRefDestroy, "of-module", (tex));
    }
    CALLO(cuModuleGetTexRef, "missing", (&tex, module, "none"), OUT_H(tex));
    CALL(cuModuleGetTexRef, "null-out", (NULL, module, "tex_a"));
    CALLO(cuModuleGetTexRef, "null-name", (&tex, module, NULL), OUT_H(tex));
    CALLO(cuModuleGetTexRef, "surface", (&tex, module, "surf_a"), OUT_H(tex));
    CALLO(cuModuleGetSurfRef, "ok", (&surf, module, "surf_a"), OUT_H(surf));
    if (par_last() == CUDA_SUCCESS) {
        CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
        CUarray plain = array_of(CU_AD_FORMAT_FLOAT, 1, 0);
        CALLO(cuSurfRefGetArray, "fresh", (&got, surf), OUT_H(got));
        CALL(cuSurfRefSetArray, "ok", (surf, array, 0));
        CALLO(cuSurfRefGetArray, "ok", (&got, surf), OUT_H(got));
        CALL(cuSurfRefSetArray, "flags", (surf, array, 1));
        CALL(cuSurfRefSetArray, "no-surface-array", (surf, plain, 0));
        CALL(cuSurfRefSetArray, "null-array", (surf, NULL, 0));
        CALL(cuSurfRefSetArray, "null-ref", (NULL, array, 0));
        CALL(cuSurfRefGetArray, "null-out", (NULL, surf));
        CALLO(cuSurfRefGetArray, "null-ref", (&got, NULL), OUT_H(got));
    }
    CALLO(cuModuleGetSurfRef, "missing", (&surf, module, "none"), OUT_H(surf));
    CALLO(cuModuleGetSurfRef, "texture", (&surf, module, "tex_a"), OUT_H(surf));
    CUfunction f = par_function(module, "nothing");
    CALL(cuParamSetTexRef, "default-unit", (f, CU_PARAM_TR_DEFAULT, tex));
    CALL(cuParamSetTexRef, "unit-0", (f, 0, tex));
    CALL(cuParamSetTexRef, "null-ref", (f, CU_PARAM_TR_DEFAULT, NULL));
    CALL(cuModuleUnload, "ok", (module));
}

SCENARIO(without_context, "texture-reference/without-context", par_init) {
    CUtexref ref;
    CALLO(cuTexRefCreate, "no-context", (&ref), OUT_C(ref));
}
