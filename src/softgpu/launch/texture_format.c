#include "softgpu/launch/texture_format.h"

/* channels 0: the array's */
struct form {
    int format;
    unsigned char form, channels, bits;
    bool srgb;
};

static const struct form formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, SG_TEXEL_UINT, 0, 8, false},
    {CU_AD_FORMAT_UNSIGNED_INT16, SG_TEXEL_UINT, 0, 16, false},
    {CU_AD_FORMAT_UNSIGNED_INT32, SG_TEXEL_UINT, 0, 32, false},
    {CU_AD_FORMAT_SIGNED_INT8, SG_TEXEL_SINT, 0, 8, false},
    {CU_AD_FORMAT_SIGNED_INT16, SG_TEXEL_SINT, 0, 16, false},
    {CU_AD_FORMAT_SIGNED_INT32, SG_TEXEL_SINT, 0, 32, false},
    {CU_AD_FORMAT_HALF, SG_TEXEL_FLOAT, 0, 16, false},
    {CU_AD_FORMAT_FLOAT, SG_TEXEL_FLOAT, 0, 32, false},
    {CU_AD_FORMAT_UNORM_INT8X1, SG_TEXEL_UNORM, 1, 8, false},
    {CU_AD_FORMAT_UNORM_INT8X2, SG_TEXEL_UNORM, 2, 8, false},
    {CU_AD_FORMAT_UNORM_INT8X4, SG_TEXEL_UNORM, 4, 8, false},
    {CU_AD_FORMAT_UNORM_INT16X1, SG_TEXEL_UNORM, 1, 16, false},
    {CU_AD_FORMAT_UNORM_INT16X2, SG_TEXEL_UNORM, 2, 16, false},
    {CU_AD_FORMAT_UNORM_INT16X4, SG_TEXEL_UNORM, 4, 16, false},
    {CU_AD_FORMAT_SNORM_INT8X1, SG_TEXEL_SNORM, 1, 8, false},
    {CU_AD_FORMAT_SNORM_INT8X2, SG_TEXEL_SNORM, 2, 8, false},
    {CU_AD_FORMAT_SNORM_INT8X4, SG_TEXEL_SNORM, 4, 8, false},
    {CU_AD_FORMAT_SNORM_INT16X1, SG_TEXEL_SNORM, 1, 16, false},
    {CU_AD_FORMAT_SNORM_INT16X2, SG_TEXEL_SNORM, 2, 16, false},
    {CU_AD_FORMAT_SNORM_INT16X4, SG_TEXEL_SNORM, 4, 16, false},
    {CU_AD_FORMAT_UNORM_INT_101010_2, SG_TEXEL_1010102, 4, 8, false},
    {CU_AD_FORMAT_BC1_UNORM, SG_TEXEL_BC1, 4, 8, false},
    {CU_AD_FORMAT_BC1_UNORM_SRGB, SG_TEXEL_BC1, 4, 8, true},
    {CU_AD_FORMAT_BC2_UNORM, SG_TEXEL_BC2, 4, 8, false},
    {CU_AD_FORMAT_BC2_UNORM_SRGB, SG_TEXEL_BC2, 4, 8, true},
    {CU_AD_FORMAT_BC3_UNORM, SG_TEXEL_BC3, 4, 8, false},
    {CU_AD_FORMAT_BC3_UNORM_SRGB, SG_TEXEL_BC3, 4, 8, true},
    {CU_AD_FORMAT_BC4_UNORM, SG_TEXEL_BC4, 1, 8, false},
    {CU_AD_FORMAT_BC4_SNORM, SG_TEXEL_BC4_SIGNED, 1, 8, false},
    {CU_AD_FORMAT_BC5_UNORM, SG_TEXEL_BC5, 2, 8, false},
    {CU_AD_FORMAT_BC5_SNORM, SG_TEXEL_BC5_SIGNED, 2, 8, false},
};

static const struct form views[] = {
    {CU_RES_VIEW_FORMAT_UINT_1X8, SG_TEXEL_UINT, 1, 8, false},
    {CU_RES_VIEW_FORMAT_UINT_2X8, SG_TEXEL_UINT, 2, 8, false},
    {CU_RES_VIEW_FORMAT_UINT_4X8, SG_TEXEL_UINT, 4, 8, false},
    {CU_RES_VIEW_FORMAT_SINT_1X8, SG_TEXEL_SINT, 1, 8, false},
    {CU_RES_VIEW_FORMAT_SINT_2X8, SG_TEXEL_SINT, 2, 8, false},
    {CU_RES_VIEW_FORMAT_SINT_4X8, SG_TEXEL_SINT, 4, 8, false},
    {CU_RES_VIEW_FORMAT_UINT_1X16, SG_TEXEL_UINT, 1, 16, false},
    {CU_RES_VIEW_FORMAT_UINT_2X16, SG_TEXEL_UINT, 2, 16, false},
    {CU_RES_VIEW_FORMAT_UINT_4X16, SG_TEXEL_UINT, 4, 16, false},
    {CU_RES_VIEW_FORMAT_SINT_1X16, SG_TEXEL_SINT, 1, 16, false},
    {CU_RES_VIEW_FORMAT_SINT_2X16, SG_TEXEL_SINT, 2, 16, false},
    {CU_RES_VIEW_FORMAT_SINT_4X16, SG_TEXEL_SINT, 4, 16, false},
    {CU_RES_VIEW_FORMAT_UINT_1X32, SG_TEXEL_UINT, 1, 32, false},
    {CU_RES_VIEW_FORMAT_UINT_2X32, SG_TEXEL_UINT, 2, 32, false},
    {CU_RES_VIEW_FORMAT_UINT_4X32, SG_TEXEL_UINT, 4, 32, false},
    {CU_RES_VIEW_FORMAT_SINT_1X32, SG_TEXEL_SINT, 1, 32, false},
    {CU_RES_VIEW_FORMAT_SINT_2X32, SG_TEXEL_SINT, 2, 32, false},
    {CU_RES_VIEW_FORMAT_SINT_4X32, SG_TEXEL_SINT, 4, 32, false},
    {CU_RES_VIEW_FORMAT_FLOAT_1X16, SG_TEXEL_FLOAT, 1, 16, false},
    {CU_RES_VIEW_FORMAT_FLOAT_2X16, SG_TEXEL_FLOAT, 2, 16, false},
    {CU_RES_VIEW_FORMAT_FLOAT_4X16, SG_TEXEL_FLOAT, 4, 16, false},
    {CU_RES_VIEW_FORMAT_FLOAT_1X32, SG_TEXEL_FLOAT, 1, 32, false},
    {CU_RES_VIEW_FORMAT_FLOAT_2X32, SG_TEXEL_FLOAT, 2, 32, false},
    {CU_RES_VIEW_FORMAT_FLOAT_4X32, SG_TEXEL_FLOAT, 4, 32, false},
    {CU_RES_VIEW_FORMAT_UNSIGNED_BC1, SG_TEXEL_BC1, 4, 8, false},
    {CU_RES_VIEW_FORMAT_UNSIGNED_BC2, SG_TEXEL_BC2, 4, 8, false},
    {CU_RES_VIEW_FORMAT_UNSIGNED_BC3, SG_TEXEL_BC3, 4, 8, false},
    {CU_RES_VIEW_FORMAT_UNSIGNED_BC4, SG_TEXEL_BC4, 1, 8, false},
    {CU_RES_VIEW_FORMAT_SIGNED_BC4, SG_TEXEL_BC4_SIGNED, 1, 8, false},
    {CU_RES_VIEW_FORMAT_UNSIGNED_BC5, SG_TEXEL_BC5, 2, 8, false},
    {CU_RES_VIEW_FORMAT_SIGNED_BC5, SG_TEXEL_BC5_SIGNED, 2, 8, false},
};

static unsigned char element_of(const struct form *form, unsigned channels) {
    switch (form->form) {
    case SG_TEXEL_1010102:
        return 4;
    case SG_TEXEL_BC1:
    case SG_TEXEL_BC4:
    case SG_TEXEL_BC4_SIGNED:
        return 8;
    case SG_TEXEL_BC2:
    case SG_TEXEL_BC3:
    case SG_TEXEL_BC5:
    case SG_TEXEL_BC5_SIGNED:
        return 16;
    default:
        return (unsigned char)(channels * form->bits / 8);
    }
}

static bool set(struct sg_texture *texture, const struct form *form, unsigned channels) {
    unsigned count = form->channels ? form->channels : channels;
    if (count == 0 || count > 4)
        return false;
    texture->form = form->form;
    texture->bits = form->bits;
    texture->channels = (unsigned char)count;
    texture->element = element_of(form, count);
    texture->srgb = form->srgb;
    return true;
}

bool sg_texture_format(struct sg_texture *texture, CUarray_format format, unsigned channels) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].format == (int)format)
            return set(texture, &formats[i], channels);
    return false;
}

bool sg_texture_view_format(struct sg_texture *texture, CUresourceViewFormat format) {
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        if (views[i].format == (int)format)
            return set(texture, &views[i], 0);
    return format == CU_RES_VIEW_FORMAT_NONE;
}
