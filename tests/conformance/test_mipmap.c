/* Mipmapped arrays: levels, their sizes and their bytes. */
#include "level_rows.h"

#define SIDE 64u

static CUmipmappedArray make(unsigned levels) {
    CUDA_ARRAY3D_DESCRIPTOR d = {TEXELS(CU_AD_FORMAT_UNSIGNED_INT8, 1), .Width = SIDE,
                                 .Height = SIDE / 4};
    CUmipmappedArray mipmap = MADE_CU(CUmipmappedArray, cuMipmappedArrayCreate, &d, levels);
    assert_non_null(mipmap);
    return mipmap;
}

TEST(each_level_is_half_the_size_of_the_one_before) {
    CUmipmappedArray mipmap = make(7);
    for (unsigned i = 0; i < 7; i++) {
        CUDA_ARRAY3D_DESCRIPTOR d;
        CUarray level = MADE_CU(CUarray, cuMipmappedArrayGetLevel, mipmap, i);
        OK_CU(cu.cuArray3DGetDescriptor_v2(&d, level));
        MEMBERS(d, (Width, SIDE >> i), (Height, (SIDE / 4) >> i ? (SIDE / 4) >> i : 1));
    }
    CUarray none;
    FAILS_CU(INVALID_VALUE, cu.cuMipmappedArrayGetLevel(&none, mipmap, 7));
    OK_CU(cu.cuMipmappedArrayDestroy(mipmap));
}

TEST(each_level_has_its_own_bytes) {
    unsigned char bytes[SIDE * SIDE];
    CUmipmappedArray mipmap = make(4);
    CUarray level[4];
    for (unsigned i = 0; i < 4; i++) {
        OK_CU(cu.cuMipmappedArrayGetLevel(&level[i], mipmap, i));
        fill_pattern(bytes, sizeof bytes, i);
        CUDA_MEMCPY2D in = level_rows(level[i], bytes, SIDE >> i, (SIDE / 4) >> i, true);
        OK_CU(cu.cuMemcpy2D_v2(&in));
    }
    for (unsigned i = 0; i < 4; i++) {
        memset(bytes, 0, sizeof bytes);
        CUDA_MEMCPY2D out = level_rows(level[i], bytes, SIDE >> i, (SIDE / 4) >> i, false);
        OK_CU(cu.cuMemcpy2D_v2(&out));
        assert_true(has_pattern(bytes, (size_t)(SIDE >> i) * ((SIDE / 4) >> i), i));
    }
    OK_CU(cu.cuMipmappedArrayDestroy(mipmap));
}

TEST(invalid_mipmap_descriptions_are_refused) {
    CUmipmappedArray mipmap;
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = SIDE, .Height = SIDE, TEXELS(CU_AD_FORMAT_FLOAT, 3)};
    FAILS_CU(INVALID_VALUE, cu.cuMipmappedArrayCreate(&mipmap, &d, 1));
    d.NumChannels = 1;
    d.Width = 0;
    FAILS_CU(INVALID_VALUE, cu.cuMipmappedArrayCreate(&mipmap, &d, 1));
}
