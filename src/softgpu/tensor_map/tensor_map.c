/*
 * Tensor maps: descriptions of tensors for the copy engine of an SM, encoded into 128 bytes. The
 * encoding is an H200's, found by querying one (tests/parity, tensor-map): programs copy these
 * bytes around and compare them.
 *
 *     word 0   address
 *     word 1   bit 0 im2col, 4 rank - 1, 7 type, 11 interleave, 13 swizzle, 15 fill, 16 rounding to
 *              TF32, 17 promotion; upper half: stride 0 / 16
 *     word 2   strides 1 and 2 / 16, the lower 32 bits of each
 *     word 3   stride 3 / 16; upper half: bits 36 to 39 of each stride, four bits each
 *     word 4   dimensions 0 and 1, less one
 *     word 5   dimensions 2 and 3, less one
 *     word 6   dimension 4, less one; bit 32 element strides less one, three bits each; bit 56 box
 *              0 or channels, less one
 *     word 7   tiled: box 1 to 4, less one, eight bits each
 *              im2col: corners; bit 32 pixels less one
 *     word 8   bytes that one copy moves
 *     word 9   the rows after which the swizzle pattern repeats
 */
#include "softgpu/context/context.h"
#include "softgpu/core/calls.h"

#include <string.h>

#define RANK_MAX      5
#define ELEMENT_MAX   8
#define BOX_MAX       256
#define PIXELS_MAX    1024
#define STRIDE_LIMIT  ((uint64_t)1 << 40)
#define ADDRESS_LIMIT ((uint64_t)1 << 57)

struct tensor {
    CUtensorMapDataType type;
    unsigned rank;
    uint64_t address;
    const cuuint64_t *dims, *strides;
    const cuuint32_t *elements;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

/* The packed types came with a later generation; an H200 refuses them. */
static const struct element_type {
    unsigned char size, code;
    bool real, rounds; /* rounds: to TF32 */
} element_types[] = {
    [CU_TENSOR_MAP_DATA_TYPE_UINT8] = {1, 0, false, false},
    [CU_TENSOR_MAP_DATA_TYPE_UINT16] = {2, 1, false, false},
    [CU_TENSOR_MAP_DATA_TYPE_UINT32] = {4, 2, false, false},
    [CU_TENSOR_MAP_DATA_TYPE_INT32] = {4, 3, false, false},
    [CU_TENSOR_MAP_DATA_TYPE_UINT64] = {8, 4, false, false},
    [CU_TENSOR_MAP_DATA_TYPE_INT64] = {8, 5, false, false},
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = {2, 6, true, false},
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = {4, 7, true, false},
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = {8, 9, true, false},
    [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = {2, 10, true, false},
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = {4, 8, true, false},
    [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = {4, 7, true, true},
    [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = {4, 8, true, true},
};

/* The bytes of a row that a swizzle can hold, and word 9. */
static const struct swizzle {
    unsigned span;
    uint64_t rows;
} swizzles[] = {
    [CU_TENSOR_MAP_SWIZZLE_NONE] = {0, 0x10},
    [CU_TENSOR_MAP_SWIZZLE_32B] = {32, 0x100},
    [CU_TENSOR_MAP_SWIZZLE_64B] = {64, 0x200},
    [CU_TENSOR_MAP_SWIZZLE_128B] = {128, 0x400},
};

static bool between(int value, int least, int most) {
    return value >= least && value <= most;
}

static bool modes_valid(const struct tensor *tensor) {
    return between((int)tensor->type, 0, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ) &&
           between((int)tensor->interleave, 0, CU_TENSOR_MAP_INTERLEAVE_32B) &&
           between((int)tensor->swizzle, 0, CU_TENSOR_MAP_SWIZZLE_128B) &&
           between((int)tensor->promotion, 0, CU_TENSOR_MAP_L2_PROMOTION_L2_256B) &&
           between((int)tensor->fill, 0, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA) &&
           (tensor->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || element_types[tensor->type].real);
}

/* What addresses and strides must be multiples of. */
static uint64_t alignment_of(const struct tensor *tensor) {
    return tensor->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
}

static bool shape_valid(const struct tensor *tensor) {
    uint64_t mask = alignment_of(tensor) - 1;
    if ((tensor->address & mask) != 0 || tensor->address >= ADDRESS_LIMIT)
        return false;
    for (unsigned i = 0; i < tensor->rank; i++)
        if (tensor->dims[i] == 0 || tensor->dims[i] > (uint64_t)1 << 32 ||
            !between((int)tensor->elements[i], 1, ELEMENT_MAX))
            return false;
    for (unsigned i = 0; i + 1 < tensor->rank; i++)
        if ((tensor->strides[i] & mask) != 0 || tensor->strides[i] >= STRIDE_LIMIT)
            return false;
    return true;
}

static bool tensor_valid(const struct tensor *tensor, unsigned least_rank) {
    if (!tensor->dims || !tensor->strides || !tensor->elements)
        return false;
    if (tensor->rank < least_rank || tensor->rank > RANK_MAX)
        return false;
    if (!modes_valid(tensor))
        return false;
    if (tensor->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE && tensor->rank < 3)
        return false;
    return shape_valid(tensor);
}

/* The innermost row of the copy: whole units of 16 bytes, and no longer than its swizzle. */
static bool row_valid(const struct tensor *tensor, unsigned count) {
    if (count == 0 || count > BOX_MAX)
        return false;
    unsigned bytes = count * element_types[tensor->type].size;
    unsigned span = swizzles[tensor->swizzle].span;
    bool interleaved = tensor->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
    return bytes % 16 == 0 && (interleaved || span == 0 || bytes <= span);
}

static void encode_strides(const struct tensor *tensor, uint64_t *word) {
    for (unsigned i = 0; i + 1 < tensor->rank; i++) {
        uint64_t units = tensor->strides[i] >> 4;
        word[1 + (i + 1) / 2] |= (units & 0xffffffff) << (i % 2 == 0 ? 32 : 0);
        word[3] |= (units >> 32) << (32 + 4 * i);
    }
}

/* Everything but the box and the corners. */
static void encode_tensor(const struct tensor *tensor, uint64_t word[16]) {
    const struct element_type *type = &element_types[tensor->type];
    memset(word, 0, 16 * sizeof *word);
    word[0] = tensor->address;
    word[1] = (uint64_t)(tensor->rank - 1) << 4 | (uint64_t)type->code << 7 |
              (uint64_t)tensor->interleave << 11 | (uint64_t)tensor->swizzle << 13 |
              (uint64_t)type->rounds << 16 | (uint64_t)tensor->promotion << 17 |
              (uint64_t)tensor->fill << 15;
    encode_strides(tensor, word);
    for (unsigned i = 0; i < tensor->rank; i++) {
        word[4 + i / 2] |= (tensor->dims[i] - 1) << 32 * (i % 2);
        word[6] |= (uint64_t)(tensor->elements[i] - 1) << (32 + 3 * i);
    }
    word[9] = swizzles[tensor->swizzle].rows;
}

/* A map may lie anywhere: an H200 does not ask for the alignment that the type has. */
static void put(CUtensorMap *map, const uint64_t word[16]) {
    memcpy((void *)map, word, sizeof *map);
}

static CUresult tiled(CUtensorMap *map, const struct tensor *tensor, const cuuint32_t *box) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!map || !box || !tensor_valid(tensor, 1) || !row_valid(tensor, box[0]))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 1; i < tensor->rank; i++)
        if (box[i] == 0 || box[i] > BOX_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    uint64_t word[16];
    encode_tensor(tensor, word);
    word[6] |= (uint64_t)(box[0] - 1) << 56;
    word[8] = element_types[tensor->type].size;
    for (unsigned i = 0; i < tensor->rank; i++) {
        if (i > 0)
            word[7] |= (uint64_t)(box[i] - 1) << (8 * (i - 1));
        word[8] *= box[i] / tensor->elements[i];
    }
    put(map, word);
    return CUDA_SUCCESS;
}

CUresult sg_cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                   cuuint32_t tensorRank, void *globalAddress,
                                   const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                   const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
                                   CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                   CUtensorMapL2promotion l2Promotion,
                                   CUtensorMapFloatOOBfill oobFill) {
    struct tensor tensor = {tensorDataType, tensorRank,    (uintptr_t)globalAddress,
                            globalDim,      globalStrides, elementStrides,
                            interleave,     swizzle,       l2Promotion,
                            oobFill};
    return tiled(tensorMap, &tensor, boxDim);
}

/* ---- Columns of images ----------------------------------------------------------------------- */

/* Corners in D, H, W: one per spatial dimension. */
struct columns {
    const int *lower, *upper;
    unsigned corners;
    unsigned bits; /* per corner */
    unsigned channels, pixels;
};

/* The corners move the edges of the image; something must remain between them. */
static bool corners_valid(const struct tensor *tensor, const struct columns *columns) {
    int most = (1 << (columns->bits - 1)) - 1;
    for (unsigned i = 0; i < columns->corners; i++) {
        if (!between(columns->lower[i], -most - 1, most) ||
            !between(columns->upper[i], -most - 1, most))
            return false;
        if ((int64_t)tensor->dims[i + 1] + columns->upper[i] - columns->lower[i] <= 0)
            return false;
    }
    return true;
}

static CUresult im2col(CUtensorMap *map, const struct tensor *tensor,
                       const struct columns *columns) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!map || !columns->lower || !columns->upper || !tensor_valid(tensor, 3) ||
        !row_valid(tensor, columns->channels) || columns->pixels == 0 ||
        columns->pixels > PIXELS_MAX || !corners_valid(tensor, columns))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t word[16];
    encode_tensor(tensor, word);
    word[1] |= 1;
    word[6] |= (uint64_t)(columns->channels - 1) << 56;
    uint64_t mask = ((uint64_t)1 << columns->bits) - 1;
    for (unsigned i = 0; i < columns->corners; i++) {
        word[7] |= ((uint64_t)columns->lower[i] & mask) << (columns->bits * i);
        word[7] |= ((uint64_t)columns->upper[i] & mask) << (16 + columns->bits * i);
    }
    word[7] |= (uint64_t)(columns->pixels - 1) << 32;
    word[8] = (uint64_t)columns->channels * columns->pixels * element_types[tensor->type].size;
    put(map, word);
    return CUDA_SUCCESS;
}

/* One corner of 16 bits, two of 8 or three of 5 share half a word. */
static unsigned corner_bits(unsigned rank) {
    return rank == 3 ? 16 : rank == 4 ? 8 : 5;
}

CUresult sg_cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
                                    cuuint32_t tensorRank, void *globalAddress,
                                    const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                    const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner,
                                    cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                    const cuuint32_t *elementStrides,
                                    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                    CUtensorMapL2promotion l2Promotion,
                                    CUtensorMapFloatOOBfill oobFill) {
    struct tensor tensor = {tensorDataType, tensorRank,    (uintptr_t)globalAddress,
                            globalDim,      globalStrides, elementStrides,
                            interleave,     swizzle,       l2Promotion,
                            oobFill};
    struct columns columns = {pixelBoxLowerCorner,     pixelBoxUpperCorner, tensorRank - 2,
                              corner_bits(tensorRank), channelsPerPixel,    pixelsPerColumn};
    return im2col(tensorMap, &tensor, &columns);
}

CUresult sg_cuTensorMapEncodeIm2colWide(
    CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
    void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
    int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
    CUtensorMapFloatOOBfill oobFill) {
    struct tensor tensor = {tensorDataType, tensorRank,    (uintptr_t)globalAddress,
                            globalDim,      globalStrides, elementStrides,
                            interleave,     swizzle,       l2Promotion,
                            oobFill};
    struct columns columns = {
        &pixelBoxLowerCornerWidth, &pixelBoxUpperCornerWidth, 1,
        corner_bits(tensorRank),   channelsPerPixel,          pixelsPerColumn};
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    /* An H200 encodes both modes the same way. */
    if (!between((int)mode, 0, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128) ||
        (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && swizzle != CU_TENSOR_MAP_SWIZZLE_128B))
        return CUDA_ERROR_INVALID_VALUE;
    return im2col(tensorMap, &tensor, &columns);
}

/* The rest of the map is not checked, as on an H200. */
CUresult sg_cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress) {
    struct sg_context *context;
    CUresult result = sg_context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    uint64_t address = (uintptr_t)globalAddress;
    if (!tensorMap || address == 0 || (address & 15) != 0 || address >= ADDRESS_LIMIT)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy((void *)tensorMap, &address, sizeof address);
    return CUDA_SUCCESS;
}
