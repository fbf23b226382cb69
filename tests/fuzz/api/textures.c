/* Texture and surface objects, references of both kinds, tensor maps. */
#include "world.h"

#define REFERENCE() OF(CUtexref, TEXTURE_REFERENCES)
#define SURFACE()   OF(CUsurfref, SURFACE_REFERENCES)

static CUDA_RESOURCE_DESC draw_resource(void) {
    CUDA_RESOURCE_DESC resource = {.resType = (CUresourcetype)(byte() & 3)};
    switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        resource.res.array.hArray = OF(CUarray, ARRAYS);
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        resource.res.mipmap.hMipmappedArray = OF(CUmipmappedArray, MIPMAPS);
        break;
    case CU_RESOURCE_TYPE_LINEAR:
        resource.res.linear.devPtr = draw_any_address();
        resource.res.linear.format = draw_format();
        resource.res.linear.numChannels = byte() % 6;
        resource.res.linear.sizeInBytes = draw_size();
        break;
    default:
        resource.res.pitch2D.devPtr = draw_any_address();
        resource.res.pitch2D.format = draw_format();
        resource.res.pitch2D.numChannels = byte() % 6;
        resource.res.pitch2D.width = draw_little(256);
        resource.res.pitch2D.height = draw_little(64);
        resource.res.pitch2D.pitchInBytes = (size_t)byte() * 32;
        break;
    }
    resource.flags = byte() < 0xf8 ? 0 : 1;
    return resource;
}

static void create(void) {
    CUDA_RESOURCE_DESC resource = draw_resource();
    CUDA_TEXTURE_DESC texture = {.flags = byte() < 0xc0 ? 0 : byte(),
                                 .filterMode = (CUfilter_mode)(byte() & 1),
                                 .maxAnisotropy = byte()};
    CUDA_RESOURCE_VIEW_DESC view = {.format = (CUresourceViewFormat)(byte() % 36),
                                    .width = draw_little(256),
                                    .height = draw_little(64),
                                    .depth = draw_little(8),
                                    .lastMipmapLevel = byte() & 3};
    CUtexObject made = 0;
    CUsurfObject surface = 0;
    texture.addressMode[0] = (CUaddress_mode)(byte() % 5);
    if (byte() & 1) {
        cuTexObjectCreate(maybe(&made), maybe(&resource), maybe(&texture),
                          byte() < 0xc0 ? NULL : &view);
        remember(TEXTURES, made);
    } else {
        cuSurfObjectCreate(maybe(&surface), maybe(&resource));
        remember(SURFACES, surface);
    }
}

static void destroy(void) {
    if (byte() & 1)
        cuTexObjectDestroy(draw_value(TEXTURES));
    else
        cuSurfObjectDestroy(draw_value(SURFACES));
}

static void questions(void) {
    CUDA_RESOURCE_DESC resource;
    CUDA_RESOURCE_VIEW_DESC view;
    CUDA_TEXTURE_DESC texture;
    cuTexObjectGetResourceDesc(maybe(&resource), draw_value(TEXTURES));
    cuTexObjectGetResourceViewDesc(maybe(&view), draw_value(TEXTURES));
    cuTexObjectGetTextureDesc(maybe(&texture), draw_value(TEXTURES));
    cuSurfObjectGetResourceDesc(maybe(&resource), draw_value(SURFACES));
}

static void reference_create(void) {
    CUtexref made = NULL;
    if (byte() & 1) {
        cuTexRefCreate(maybe(&made));
        remember(TEXTURE_REFERENCES, (uintptr_t)made);
    } else {
        cuTexRefDestroy(REFERENCE());
    }
}

static void bind(void) {
    size_t offset;
    CUDA_ARRAY_DESCRIPTOR flat = {byte(), byte(), draw_format(), byte() % 6};
    switch (byte() % 5) {
    case 0:
        cuTexRefSetAddress_v2(maybe(&offset), REFERENCE(), draw_any_address(), draw_size());
        break;
    case 1:
        cuTexRefSetAddress2D_v3(REFERENCE(), maybe(&flat), draw_any_address(), (size_t)byte() * 32);
        break;
    case 2:
        cuTexRefSetArray(REFERENCE(), OF(CUarray, ARRAYS), byte() & 3);
        break;
    case 3:
        cuTexRefSetMipmappedArray(REFERENCE(), OF(CUmipmappedArray, MIPMAPS), byte() & 3);
        break;
    default:
        cuSurfRefSetArray(SURFACE(), OF(CUarray, ARRAYS), byte() & 1);
        break;
    }
}

static void settings(void) {
    CUtexref reference = REFERENCE();
    float color[4] = {1, 2, 3, 4};
    cuTexRefSetFormat(reference, draw_format(), byte() % 6);
    cuTexRefSetFlags(reference, byte());
    cuTexRefSetAddressMode(reference, byte() & 3, (CUaddress_mode)(byte() % 5));
    cuTexRefSetFilterMode(reference, (CUfilter_mode)(byte() & 3));
    cuTexRefSetMipmapFilterMode(reference, (CUfilter_mode)(byte() & 3));
    cuTexRefSetMipmapLevelBias(reference, byte());
    cuTexRefSetMipmapLevelClamp(reference, byte(), byte());
    cuTexRefSetMaxAnisotropy(reference, byte());
    cuTexRefSetBorderColor(reference, maybe(color));
}

static void got(void) {
    CUtexref reference = REFERENCE();
    CUdeviceptr address;
    CUaddress_mode mode;
    CUarray array;
    CUmipmappedArray mipmap;
    CUfilter_mode filter;
    CUarray_format format;
    unsigned flags;
    int number;
    float value[4];
    cuTexRefGetAddress_v2(maybe(&address), reference);
    cuTexRefGetAddressMode(maybe(&mode), reference, byte() & 3);
    cuTexRefGetArray(maybe(&array), reference);
    cuTexRefGetMipmappedArray(maybe(&mipmap), reference);
    cuTexRefGetFilterMode(maybe(&filter), reference);
    cuTexRefGetMipmapFilterMode(maybe(&filter), reference);
    cuTexRefGetFormat(maybe(&format), maybe(&number), reference);
    cuTexRefGetFlags(maybe(&flags), reference);
    cuTexRefGetMaxAnisotropy(maybe(&number), reference);
    cuTexRefGetBorderColor(maybe(value), reference);
    cuTexRefGetMipmapLevelBias(maybe(value), reference);
    cuTexRefGetMipmapLevelClamp(maybe(value), maybe(value + 1), reference);
    cuSurfRefGetArray(maybe(&array), SURFACE());
}

static void linear_width(void) {
    size_t width;
    cuDeviceGetTexture1DLinearMaxWidth(maybe(&width), draw_format(), byte() % 6, draw_device());
}

static void tensor_map(void) {
    CUtensorMap map;
    cuuint64_t sizes[5], strides[5];
    cuuint32_t box[5], steps[5];
    int lower[3], upper[3];
    for (unsigned i = 0; i < 5; i++) {
        sizes[i] = byte() < 0xf0 ? byte() : draw64(&world.input);
        strides[i] = byte() < 0xf0 ? (cuuint64_t)byte() * 16 : draw64(&world.input);
        box[i] = byte();
        steps[i] = 1 + (byte() & 7);
    }
    for (unsigned i = 0; i < 3; i++) {
        lower[i] = (int)byte() - 128;
        upper[i] = (int)byte() - 128;
    }
    void *address = (void *)(uintptr_t)(draw_any_address() & ~(CUdeviceptr)63);
    CUtensorMapDataType type = (CUtensorMapDataType)(byte() % 18);
    cuuint32_t rank = byte() < 0xf0 ? byte() % 6 : byte();
    CUtensorMapInterleave interleave = (CUtensorMapInterleave)(byte() & 3);
    CUtensorMapSwizzle swizzle = (CUtensorMapSwizzle)(byte() & 7);
    CUtensorMapL2promotion promotion = (CUtensorMapL2promotion)(byte() & 3);
    CUtensorMapFloatOOBfill fill = (CUtensorMapFloatOOBfill)(byte() & 1);
    switch (byte() & 3) {
    case 0:
    case 1:
        cuTensorMapEncodeTiled(maybe(&map), type, rank, address, maybe(sizes), maybe(strides),
                               maybe(box), maybe(steps), interleave, swizzle, promotion, fill);
        break;
    case 2:
        cuTensorMapEncodeIm2col(maybe(&map), type, rank, address, sizes, strides, maybe(lower),
                                maybe(upper), byte(), byte(), steps, interleave, swizzle, promotion,
                                fill);
        break;
    default:
        cuTensorMapEncodeIm2colWide(
            maybe(&map), type, rank, address, sizes, strides, lower[0], upper[0], byte(), byte(),
            steps, interleave, (CUtensorMapIm2ColWideMode)(byte() & 1), swizzle, promotion, fill);
        break;
    }
    memset(&map, 0, sizeof map);
    cuTensorMapReplaceAddress(&map, address);
}

static const call_fn list[] = {
    create, create, create,   destroy, questions,    reference_create,
    bind,   bind,   settings, got,     linear_width, tensor_map,
};
const struct calls texture_calls = {list, sizeof list / sizeof list[0]};
