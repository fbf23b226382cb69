/* What the scenarios of textures share: arrays, objects, and kernels run on a few lanes. */
#ifndef PARITY_TEXTURE_SCENE_H
#define PARITY_TEXTURE_SCENE_H

#include "../parity.h"
#include "texture_texts.h"

#define MOST 64

typedef struct lane {
    union {
        float f[8];
        int32_t i[8];
        uint32_t u[8];
    };
} lane;

static CUmodule module;
static CUdeviceptr input, output;
static lane lanes[MOST];
static uint32_t words[MOST][4];
static CUresult last;

static inline void start(void) {
    par_context();
    SETUP(cuModuleLoadData, (&module, texture_text()));
    input = par_alloc(sizeof(lanes));
    output = par_alloc(sizeof(words));
    memset(lanes, 0, sizeof(lanes));
}

/* Runs a kernel on `count` lanes and prints `each` words of a lane, eight lanes a line. */
static inline void show(const char *what, const char *name, unsigned long long handle,
                        unsigned count, unsigned each) {
    void *params[] = {&output, &input, &handle, &count};
    memset(words, 0, sizeof(words));
    CUfunction f = PAR_MADE(CUfunction, cuModuleGetFunction, module, name);
    SETUP(cuMemcpyHtoD_v2, (input, lanes, sizeof(lanes)));
    SETUP(cuMemsetD8_v2, (output, 0, sizeof(words)));
    SETUP(cuLaunchKernel, (f, 1, 1, 1, MOST, 1, 1, 0, NULL, params, NULL));
    last = par.api->cuMemcpyDtoH_v2(words, output, sizeof(words));
    if (last != CUDA_SUCCESS) {
        par_see(what, "%s", par_result_name(last));
        return;
    }
    for (unsigned i = 0; i < count; i += 8) {
        char text[600] = "";
        size_t used = 0;
        for (unsigned k = i; k < i + 8 && k < count; k++) {
            for (unsigned w = 0; w < each; w++)
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%x",
                                         w > 0   ? ","
                                         : k > i ? " "
                                                 : "",
                                         words[k][w]);
        }
        par_see(what, "%s[%u] %s", name, i, text);
    }
}

static inline CUDA_RESOURCE_DESC resource_of(CUarray array) {
    CUDA_RESOURCE_DESC resource;
    memset(&resource, 0, sizeof(resource));
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    return resource;
}

static inline CUarray array_of(CUarray_format format, unsigned channels, unsigned width,
                               unsigned height, unsigned depth, unsigned flags, const void *from,
                               size_t row, unsigned rows) {
    CUDA_ARRAY3D_DESCRIPTOR desc = {width, height, depth, format, channels, flags};
    CUarray array = PAR_MADE(CUarray, cuArray3DCreate_v2, &desc);
    CUDA_MEMCPY3D copy = {FROM_HOST(from), .srcPitch = row, .srcHeight = rows, TO_ARRAY(array),
                          EXTENT_3D(row, rows, depth > 0 ? depth : 1)};
    SETUP(cuMemcpy3D_v2, (&copy));
    return array;
}

static inline CUDA_TEXTURE_DESC settings(CUaddress_mode mode, CUfilter_mode filter,
                                         unsigned flags) {
    CUDA_TEXTURE_DESC texture = {0};
    for (int i = 0; i < 3; i++)
        texture.addressMode[i] = mode;
    texture.filterMode = filter;
    texture.flags = flags;
    texture.maxMipmapLevelClamp = 100;
    for (int i = 0; i < 4; i++)
        texture.borderColor[i] = 0.3f + 2 * (float)i;
    return texture;
}

static inline CUtexObject texture_of(const CUDA_RESOURCE_DESC *resource, CUaddress_mode mode,
                                     CUfilter_mode filter, unsigned flags) {
    CUDA_TEXTURE_DESC texture = settings(mode, filter, flags);
    return PAR_MADE(CUtexObject, cuTexObjectCreate, resource, &texture, NULL);
}

static const CUaddress_mode modes[] = {CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_CLAMP,
                                       CU_TR_ADDRESS_MODE_MIRROR, CU_TR_ADDRESS_MODE_BORDER};

static const struct {
    const char *name;
    CUarray_format format;
    unsigned channels, bytes;
} formats[] = {
    {"u8x1", CU_AD_FORMAT_UNSIGNED_INT8, 1, 1},
    {"u8x2", CU_AD_FORMAT_UNSIGNED_INT8, 2, 2},
    {"u8x4", CU_AD_FORMAT_UNSIGNED_INT8, 4, 4},
    {"s8x1", CU_AD_FORMAT_SIGNED_INT8, 1, 1},
    {"s8x4", CU_AD_FORMAT_SIGNED_INT8, 4, 4},
    {"u16x1", CU_AD_FORMAT_UNSIGNED_INT16, 1, 2},
    {"u16x4", CU_AD_FORMAT_UNSIGNED_INT16, 4, 8},
    {"s16x2", CU_AD_FORMAT_SIGNED_INT16, 2, 4},
    {"u32x1", CU_AD_FORMAT_UNSIGNED_INT32, 1, 4},
    {"s32x2", CU_AD_FORMAT_SIGNED_INT32, 2, 8},
    {"halfx1", CU_AD_FORMAT_HALF, 1, 2},
    {"halfx4", CU_AD_FORMAT_HALF, 4, 8},
    {"floatx1", CU_AD_FORMAT_FLOAT, 1, 4},
    {"floatx4", CU_AD_FORMAT_FLOAT, 4, 16},
    {"unorm8x4", CU_AD_FORMAT_UNORM_INT8X4, 4, 4},
    {"snorm8x2", CU_AD_FORMAT_SNORM_INT8X2, 2, 2},
    {"unorm16x1", CU_AD_FORMAT_UNORM_INT16X1, 1, 2},
    {"1010102", CU_AD_FORMAT_UNORM_INT_101010_2, 4, 4},
};

#endif
