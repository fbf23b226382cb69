/* Formats of elements: how many channels they may have, and how many bytes that takes. */
#include "softgpu/array/internal.h"

/* One row: name, channels, bytes, texels per side of a block, video, planes. */
#define ROW(name, channels, bytes, block, video, count, ...)                                       \
    {                                                                                              \
        CU_AD_FORMAT_##name, channels, bytes, block, video, count, {                               \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define NO_PLANE                                                                                   \
    { 0, 0, 0 }

#define PLAIN(name, bytes)            ROW(name, 0, bytes, 1, false, 0, NO_PLANE)
#define PACKED(name, channels, bytes) ROW(name, channels, bytes, 1, false, 0, NO_PLANE)
#define BLOCKS(name, channels, bytes) ROW(name, channels, bytes, 4, false, 0, NO_PLANE)
/* Pixels share chroma, in a single plane. */
#define VIDEO(name, channels, bytes) ROW(name, channels, bytes, 1, true, 0, NO_PLANE)
/* A luma plane, and one with both chroma channels at 2^-x of its width and 2^-y of its height. */
#define TWO_PLANES(name, bytes, x, y) ROW(name, 3, bytes, 1, true, 2, {1, 0, 0}, {2, x, y})
#define THREE_PLANES(name, bytes)     ROW(name, 3, bytes, 1, true, 3, {1, 0, 0}, {1, 0, 0}, {1, 0, 0})

static const struct sg_format formats[] = {
    PLAIN(UNSIGNED_INT8, 1),
    PLAIN(UNSIGNED_INT16, 2),
    PLAIN(UNSIGNED_INT32, 4),
    PLAIN(SIGNED_INT8, 1),
    PLAIN(SIGNED_INT16, 2),
    PLAIN(SIGNED_INT32, 4),
    PLAIN(HALF, 2),
    PLAIN(FLOAT, 4),
    PACKED(UNORM_INT8X1, 1, 1),
    PACKED(UNORM_INT8X2, 2, 2),
    PACKED(UNORM_INT8X4, 4, 4),
    PACKED(UNORM_INT16X1, 1, 2),
    PACKED(UNORM_INT16X2, 2, 4),
    PACKED(UNORM_INT16X4, 4, 8),
    PACKED(SNORM_INT8X1, 1, 1),
    PACKED(SNORM_INT8X2, 2, 2),
    PACKED(SNORM_INT8X4, 4, 4),
    PACKED(SNORM_INT16X1, 1, 2),
    PACKED(SNORM_INT16X2, 2, 4),
    PACKED(SNORM_INT16X4, 4, 8),
    PACKED(UNORM_INT_101010_2, 4, 4),
    BLOCKS(BC1_UNORM, 4, 8),
    BLOCKS(BC1_UNORM_SRGB, 4, 8),
    BLOCKS(BC2_UNORM, 4, 16),
    BLOCKS(BC2_UNORM_SRGB, 4, 16),
    BLOCKS(BC3_UNORM, 4, 16),
    BLOCKS(BC3_UNORM_SRGB, 4, 16),
    BLOCKS(BC4_UNORM, 1, 8),
    BLOCKS(BC4_SNORM, 1, 8),
    BLOCKS(BC5_UNORM, 2, 16),
    BLOCKS(BC5_SNORM, 2, 16),
    BLOCKS(BC6H_UF16, 3, 16),
    BLOCKS(BC6H_SF16, 3, 16),
    BLOCKS(BC7_UNORM, 4, 16),
    BLOCKS(BC7_UNORM_SRGB, 4, 16),
    TWO_PLANES(NV12, 1, 1, 1),
    TWO_PLANES(P010, 2, 1, 1),
    TWO_PLANES(P016, 2, 1, 1),
    TWO_PLANES(NV16, 1, 1, 0),
    TWO_PLANES(P210, 2, 1, 0),
    TWO_PLANES(P216, 2, 1, 0),
    TWO_PLANES(YUV444_8bit_SemiPlanar, 1, 0, 0),
    TWO_PLANES(YUV444_16bit_SemiPlanar, 2, 0, 0),
    THREE_PLANES(Y444_PLANAR8, 1),
    THREE_PLANES(Y444_PLANAR10, 2),
    VIDEO(YUY2, 4, 4),
    VIDEO(Y210, 2, 4),
    VIDEO(Y216, 2, 4),
    VIDEO(AYUV, 4, 4),
    VIDEO(Y410, 1, 4),
    VIDEO(Y416, 4, 8),
};

const struct sg_format *sg_format_find(CUarray_format format) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].format == format)
            return &formats[i];
    return NULL;
}

unsigned sg_array_element(CUarray_format format, unsigned channels) {
    const struct sg_format *found = sg_format_find(format);
    if (!found)
        return 0;
    if (found->channels == 0)
        return channels == 1 || channels == 2 || channels == 4 ? found->bytes * channels : 0;
    return channels == found->channels ? found->bytes : 0;
}

unsigned sg_array_unit(const struct sg_array *array) {
    const struct sg_format *format = sg_format_find(array->descriptor.Format);
    return format && format->block > 1 ? array->element : 1;
}
