/* Tensor maps: the bytes are those of an H200, and descriptions that it cannot take are refused. */
#include "harness.h"

static const cuuint64_t dims[] = {64, 32, 16, 8, 4};
static const cuuint64_t strides[] = {256, 8192, 131072, 1048576};
static const cuuint32_t box[] = {8, 4, 2, 1, 1};
static const cuuint32_t steps[] = {1, 1, 1, 1, 1};
/* Never read by the driver: any aligned value will do. */
#define ADDRESS ((void *)0x7f1234567000)

static CUresult tiled(CUtensorMap *map, unsigned rank, const cuuint32_t *boxes, void *address) {
    return cu.cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, address, dims,
                                     strides, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                     CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void expect_words(const CUtensorMap *map, const uint64_t words[10]) {
    for (int i = 0; i < 16; i++)
        assert_int_equal(map->opaque[i], i < 10 ? words[i] : 0);
}

TEST(tiled_maps_are_encoded_as_on_hardware) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED);
    static const uint64_t words[] = {0x7f1234567000, 0x10000003c0, 0x200000000200,    0x10000,
                                     0x1f0000003f,   0x70000000f,  0x700000000000003, 0x103,
                                     0x100,          0x10};
    CUtensorMap map;
    OK_CU(tiled(&map, 5, box, ADDRESS));
    expect_words(&map, words);
}

TEST(invalid_tiled_maps_are_refused) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED);
    static const cuuint32_t odd[] = {7, 4, 2, 1, 1}, wide[] = {8, 257, 2, 1, 1};
    CUtensorMap map;
    FAILS_CU(INVALID_VALUE, tiled(NULL, 3, box, ADDRESS));
    FAILS_CU(INVALID_VALUE, tiled(&map, 0, box, ADDRESS));
    FAILS_CU(INVALID_VALUE, tiled(&map, 6, box, ADDRESS));
    FAILS_CU(INVALID_VALUE, tiled(&map, 3, odd, ADDRESS));
    FAILS_CU(INVALID_VALUE, tiled(&map, 3, wide, ADDRESS));
    FAILS_CU(INVALID_VALUE, tiled(&map, 3, box, (char *)ADDRESS + 8));
    OK_CU(cu.cuCtxSetCurrent(NULL));
    FAILS_CU(INVALID_CONTEXT, tiled(&map, 3, box, ADDRESS));
    OK_CU(cu.cuCtxSetCurrent(ctx));
}

TEST(im2col_maps_are_encoded_as_on_hardware) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED);
    static const uint64_t words[] = {0x7f1234567000, 0x10000003b1, 0x200000000200,    0,
                                     0x1f0000003f,   0x70000000f,  0xf00000000000000, 0x1f0101ffff,
                                     0x800,          0x10};
    static const int lower[] = {-1, -1}, upper[] = {1, 1}, far[] = {40, 0};
    CUtensorMap map;
    OK_CU(cu.cuTensorMapEncodeIm2col(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, ADDRESS, dims, strides, lower, upper, 16, 32,
        steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    expect_words(&map, words);
    /* Nothing of the image would be left. */
    FAILS_CU(INVALID_VALUE,
             cu.cuTensorMapEncodeIm2col(
                 &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, ADDRESS, dims, strides, far, upper, 16,
                 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                 CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

static CUresult wide(CUtensorMap *map, CUtensorMapSwizzle swizzle) {
    return cu.cuTensorMapEncodeIm2colWide(
        map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, ADDRESS, dims, strides, -1, 1, 32, 32, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

TEST(wide_im2col_maps_are_encoded_as_on_hardware) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED);
    static const uint64_t words[] = {0x7f1234567000, 0x10000063b1, 0x200000000200,     0,
                                     0x1f0000003f,   0x70000000f,  0x1f00000000000000, 0x1f000100ff,
                                     0x1000,         0x400};
    CUtensorMap map;
    OK_CU(wide(&map, CU_TENSOR_MAP_SWIZZLE_128B));
    expect_words(&map, words);
    FAILS_CU(INVALID_VALUE, wide(&map, CU_TENSOR_MAP_SWIZZLE_64B));
}

TEST(replacing_the_address_keeps_the_rest_of_the_map) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED);
    CUtensorMap map;
    OK_CU(tiled(&map, 3, box, ADDRESS));
    uint64_t shape = map.opaque[1];
    OK_CU(cu.cuTensorMapReplaceAddress(&map, (void *)0x7f7654321000));
    MEMBERS(map, (opaque[0], 0x7f7654321000), (opaque[1], shape));
    FAILS_CU(INVALID_VALUE, cu.cuTensorMapReplaceAddress(&map, (void *)0x7f7654321008));
    FAILS_CU(INVALID_VALUE, cu.cuTensorMapReplaceAddress(&map, NULL));
}
