/*
 * Tensor maps: which descriptions are taken, and the 128 bytes that come out. The addresses are
 * made up, so that the bytes are the same in each run.
 */
#include "../parity.h"

#define ADDRESS 0x7f1234567000ull

/* What cuTensorMapEncodeTiled is given; a test changes one thing of it. */
struct tiled {
    CUtensorMapDataType type;
    cuuint32_t rank;
    unsigned long long address;
    cuuint64_t dim[6], strides[6];
    cuuint32_t box[6], element[6];
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

static struct tiled plain(void) {
    return (struct tiled){.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                          .rank = 3,
                          .address = ADDRESS,
                          .dim = {64, 32, 16, 8, 4},
                          .strides = {256, 8192, 131072, 1048576},
                          .box = {8, 4, 2, 1, 1},
                          .element = {1, 1, 1, 1, 1}};
}

static void see_map(const CUtensorMap *map) {
    char text[16 * 17 + 1];
    size_t used = 0;
    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %016llx",
                                 (unsigned long long)map->opaque[i]);
    par_see("map", "%s", text);
}

static void encode(const char *cls, const struct tiled *t) {
    CUtensorMap map;
    memset(&map, PAR_SENTINEL, sizeof map);
    CALL(cuTensorMapEncodeTiled, cls,
         (&map, t->type, t->rank, (void *)t->address, t->dim, t->strides, t->box, t->element,
          t->interleave, t->swizzle, t->promotion, t->fill));
    if (par_last() == CUDA_SUCCESS)
        see_map(&map);
}

#define VARY(cls, format, value, change)                                                           \
    do {                                                                                           \
        struct tiled t = plain();                                                                  \
        change;                                                                                    \
        par_note(#change " " format, value);                                                       \
        encode(cls, &t);                                                                           \
    } while (0)

SCENARIO(tiled_values, "tensor-map/tiled-values", par_context) {
    static const cuuint64_t dims[] = {0,     1,          3,          255,
                                      65536, 1ull << 31, 1ull << 32, (1ull << 32) + 1};
    static const cuuint32_t boxes[] = {0, 1, 2, 3, 7, 64, 255, 256, 257, 65536};
    static const cuuint64_t strides[] = {
        0, 1, 8, 16, 32, 240, 256, 272, 260, 1ull << 39, (1ull << 40) - 16, 1ull << 40};
    static const cuuint32_t elements[] = {0, 1, 2, 3, 8, 9, 16};
    static const unsigned long long addresses[] = {
        0,          1,          8,          16,     32, 64, 128, ADDRESS + 8, ADDRESS + 16,
        1ull << 47, 1ull << 48, 1ull << 57, ~0xfull};
    for (int i = -1; i <= 17; i++)
        VARY("type", "%d", i, t.type = (CUtensorMapDataType)i);
    for (unsigned i = 0; i <= 6; i++)
        VARY("rank", "%u", i, t.rank = i);
    for (unsigned i = 0; i < COUNT(dims); i++) {
        VARY("dim-0", "%llu", (unsigned long long)dims[i], t.dim[0] = dims[i]);
        VARY("dim-1", "%llu", (unsigned long long)dims[i], t.dim[1] = dims[i]);
        VARY("dim-2", "%llu", (unsigned long long)dims[i], t.dim[2] = dims[i]);
    }
    for (unsigned i = 0; i < COUNT(boxes); i++) {
        VARY("box-0", "%u", boxes[i], t.box[0] = boxes[i]);
        VARY("box-1", "%u", boxes[i], t.box[1] = boxes[i]);
        VARY("box-2", "%u", boxes[i], t.box[2] = boxes[i]);
    }
    for (unsigned i = 0; i < COUNT(strides); i++) {
        VARY("stride-0", "%llu", (unsigned long long)strides[i], t.strides[0] = strides[i]);
        VARY("stride-1", "%llu", (unsigned long long)strides[i], t.strides[1] = strides[i]);
    }
    for (unsigned i = 0; i < COUNT(elements); i++) {
        VARY("element-0", "%u", elements[i], t.element[0] = elements[i]);
        VARY("element-1", "%u", elements[i], t.element[1] = elements[i]);
        VARY("element-2", "%u", elements[i], t.element[2] = elements[i]);
    }
    for (unsigned i = 0; i < COUNT(addresses); i++)
        VARY("address", "0x%llx", addresses[i], t.address = addresses[i]);
}

SCENARIO(tiled_modes, "tensor-map/tiled-modes", par_context) {
    for (int i = -1; i <= 3; i++)
        VARY("interleave", "%d", i, t.interleave = (CUtensorMapInterleave)i);
    for (int i = -1; i <= 7; i++)
        VARY("swizzle", "%d", i, t.swizzle = (CUtensorMapSwizzle)i);
    for (int i = -1; i <= 4; i++)
        VARY("promotion", "%d", i, t.promotion = (CUtensorMapL2promotion)i);
    for (int i = -1; i <= 2; i++)
        VARY("fill", "%d", i, t.fill = (CUtensorMapFloatOOBfill)i);
    for (int i = 0; i <= 2; i++)
        VARY("fill-integer", "%d", i,
             (t.fill = (CUtensorMapFloatOOBfill)i, t.type = CU_TENSOR_MAP_DATA_TYPE_INT32));
}

/* Each type with each rank, swizzle and interleave that may go with it. */
SCENARIO(tiled_pairs, "tensor-map/tiled-pairs", par_context) {
    for (int type = 0; type <= 15; type++)
        for (int swizzle = 0; swizzle <= 6; swizzle++)
            for (int interleave = 0; interleave <= 2; interleave++) {
                struct tiled t = plain();
                t.type = (CUtensorMapDataType)type;
                t.swizzle = (CUtensorMapSwizzle)swizzle;
                t.interleave = (CUtensorMapInterleave)interleave;
                t.address = 0x7f1234560000ull;
                t.dim[0] = 128;
                t.strides[0] = 2048;
                t.strides[1] = 65536;
                par_note("type=%d swizzle=%d interleave=%d", type, swizzle, interleave);
                encode("pair", &t);
            }
}

SCENARIO(tiled_box_bytes, "tensor-map/tiled-box-bytes", par_context) {
    static const cuuint32_t boxes[] = {4, 8, 16, 32, 64, 128, 256};
    for (int swizzle = 0; swizzle <= 6; swizzle++)
        for (unsigned i = 0; i < COUNT(boxes); i++)
            for (int bytes = 0; bytes <= 1; bytes++) {
                struct tiled t = plain();
                t.type = bytes ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
                t.swizzle = (CUtensorMapSwizzle)swizzle;
                t.box[0] = boxes[i];
                t.dim[0] = 256;
                t.strides[0] = 512;
                t.strides[1] = 16384;
                par_note("swizzle=%d box=%u bytes=%d", swizzle, boxes[i], bytes);
                encode("box-bytes", &t);
            }
}

SCENARIO(tiled_ranks, "tensor-map/tiled-ranks", par_context) {
    for (cuuint32_t rank = 1; rank <= 5; rank++)
        for (int type = 0; type <= 12; type++)
            for (int interleave = 0; interleave <= 2; interleave++) {
                struct tiled t = plain();
                t.rank = rank;
                t.type = (CUtensorMapDataType)type;
                t.interleave = (CUtensorMapInterleave)interleave;
                if (interleave == 2) {
                    t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
                    t.address = 0x7f1234560000ull;
                }
                t.dim[0] = 128;
                t.strides[0] = 2048;
                t.strides[1] = 65536;
                par_note("rank=%u type=%d interleave=%d", rank, type, interleave);
                encode("rank-type", &t);
            }
}

SCENARIO(tiled_null, "tensor-map/tiled-null") {
    CUtensorMap map;
    struct tiled t = plain();
    CUtensorMap *none = NULL;
    CALL(cuTensorMapEncodeTiled, "not-initialized",
         (&map, t.type, t.rank, (void *)t.address, t.dim, t.strides, t.box, t.element, t.interleave,
          t.swizzle, t.promotion, t.fill));
    par_context();
    CALL(cuTensorMapEncodeTiled, "null-out",
         (none, t.type, t.rank, (void *)t.address, t.dim, t.strides, t.box, t.element, t.interleave,
          t.swizzle, t.promotion, t.fill));
    CALL(cuTensorMapEncodeTiled, "null-dim",
         (&map, t.type, t.rank, (void *)t.address, NULL, t.strides, t.box, t.element, t.interleave,
          t.swizzle, t.promotion, t.fill));
    CALL(cuTensorMapEncodeTiled, "null-strides",
         (&map, t.type, t.rank, (void *)t.address, t.dim, NULL, t.box, t.element, t.interleave,
          t.swizzle, t.promotion, t.fill));
    CALL(cuTensorMapEncodeTiled, "null-strides-rank-1",
         (&map, t.type, 1, (void *)t.address, t.dim, NULL, t.box, t.element, t.interleave,
          t.swizzle, t.promotion, t.fill));
    CALL(cuTensorMapEncodeTiled, "null-box",
         (&map, t.type, t.rank, (void *)t.address, t.dim, t.strides, NULL, t.element, t.interleave,
          t.swizzle, t.promotion, t.fill));
    CALL(cuTensorMapEncodeTiled, "null-element",
         (&map, t.type, t.rank, (void *)t.address, t.dim, t.strides, t.box, NULL, t.interleave,
          t.swizzle, t.promotion, t.fill));
}

SCENARIO(unaligned_out, "tensor-map/unaligned-out") {
    static unsigned char room[256] __attribute__((aligned(64)));
    struct tiled t = plain();
    par_context();
    for (size_t offset = 0; offset <= 64; offset += offset < 8 ? 8 : offset) {
        par_note("offset=%zu", offset);
        CALL(cuTensorMapEncodeTiled, "unaligned-out",
             ((CUtensorMap *)(void *)(room + offset), t.type, t.rank, (void *)t.address, t.dim,
              t.strides, t.box, t.element, t.interleave, t.swizzle, t.promotion, t.fill));
    }
}

SCENARIO(replace, "tensor-map/replace", par_context) {
    static const unsigned long long addresses[] = {
        0, 1, 8, 16, 0x7f7654321000ull, 0x7f7654321008ull, 1ull << 48, ~0xfull};
    CUtensorMap map, bare;
    struct tiled t = plain();
    for (int swizzled = 0; swizzled <= 1; swizzled++) {
        t.swizzle = swizzled ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_NONE;
        t.interleave = swizzled ? CU_TENSOR_MAP_INTERLEAVE_32B : CU_TENSOR_MAP_INTERLEAVE_NONE;
        t.address = 0x7f1234560000ull;
        SETUP(cuTensorMapEncodeTiled,
              (&map, t.type, t.rank, (void *)t.address, t.dim, t.strides, t.box, t.element,
               t.interleave, t.swizzle, t.promotion, t.fill));
        for (unsigned i = 0; i < COUNT(addresses); i++) {
            par_note("swizzled=%d address=0x%llx", swizzled, addresses[i]);
            CALL(cuTensorMapReplaceAddress, "address", (&map, (void *)addresses[i]));
            if (par_last() == CUDA_SUCCESS)
                see_map(&map);
        }
    }
    memset(&bare, 0, sizeof bare);
    CALL(cuTensorMapReplaceAddress, "zeroed-map", (&bare, (void *)ADDRESS));
    if (par_last() == CUDA_SUCCESS)
        see_map(&bare);
    memset(&bare, 0xff, sizeof bare);
    CALL(cuTensorMapReplaceAddress, "random-map", (&bare, (void *)ADDRESS));
    CALL(cuTensorMapReplaceAddress, "null-map", (NULL, (void *)ADDRESS));
}

struct im2col {
    struct tiled t;
    int lower[4], upper[4];
    cuuint32_t channels, pixels;
    CUtensorMapIm2ColWideMode mode;
};

static struct im2col image(void) {
    struct im2col i = {
        .t = plain(), .lower = {-1, -1, -1}, .upper = {1, 1, 1}, .channels = 16, .pixels = 32};
    i.t.rank = 4;
    return i;
}

static void encode_im2col(const char *cls, const struct im2col *i) {
    const struct tiled *t = &i->t;
    CUtensorMap map;
    memset(&map, PAR_SENTINEL, sizeof map);
    CALL(cuTensorMapEncodeIm2col, cls,
         (&map, t->type, t->rank, (void *)t->address, t->dim, t->strides, i->lower, i->upper,
          i->channels, i->pixels, t->element, t->interleave, t->swizzle, t->promotion, t->fill));
    if (par_last() == CUDA_SUCCESS)
        see_map(&map);
}

#define VARY_IMAGE(cls, format, value, change)                                                     \
    do {                                                                                           \
        struct im2col i = image();                                                                 \
        change;                                                                                    \
        par_note(#change " " format, value);                                                       \
        encode_im2col(cls, &i);                                                                    \
    } while (0)

SCENARIO(im2col, "tensor-map/im2col", par_context) {
    static const int corners[] = {-32769, -32768, -129, -128, -17, -16, -9,    -8,   0,
                                  7,      8,      15,   16,   127, 128, 32767, 32768};
    static const cuuint32_t counts[] = {0, 1, 2, 4, 15, 16, 255, 256, 257, 1024, 1025};
    for (unsigned r = 0; r <= 6; r++)
        VARY_IMAGE("rank", "%u", r, i.t.rank = r);
    for (unsigned r = 3; r <= 5; r++)
        for (unsigned c = 0; c < COUNT(corners); c++) {
            VARY_IMAGE("lower", "%d", corners[c], (i.t.rank = r, i.lower[0] = corners[c]));
            VARY_IMAGE("upper", "%d", corners[c], (i.t.rank = r, i.upper[0] = corners[c]));
            VARY_IMAGE("lower-1", "%d", corners[c], (i.t.rank = r, i.lower[1] = corners[c]));
            VARY_IMAGE("upper-1", "%d", corners[c], (i.t.rank = r, i.upper[1] = corners[c]));
        }
    for (unsigned c = 0; c < COUNT(counts); c++) {
        VARY_IMAGE("channels", "%u", counts[c], i.channels = counts[c]);
        VARY_IMAGE("pixels", "%u", counts[c], i.pixels = counts[c]);
    }
    for (int v = 0; v <= 15; v++)
        VARY_IMAGE("type", "%d", v, i.t.type = (CUtensorMapDataType)v);
    for (int v = 0; v <= 6; v++)
        VARY_IMAGE("swizzle", "%d", v, i.t.swizzle = (CUtensorMapSwizzle)v);
    for (int v = 0; v <= 2; v++)
        VARY_IMAGE("interleave", "%d", v, i.t.interleave = (CUtensorMapInterleave)v);
    for (int v = 0; v <= 2; v++)
        VARY_IMAGE("fill", "%d", v, i.t.fill = (CUtensorMapFloatOOBfill)v);
    for (unsigned v = 0; v <= 9; v++)
        VARY_IMAGE("element-1", "%u", v, i.t.element[1] = v);
    VARY_IMAGE("element-0", "%u", 2u, i.t.element[0] = 2);
}

static void encode_wide(const char *cls, const struct im2col *i) {
    const struct tiled *t = &i->t;
    CUtensorMap map;
    memset(&map, PAR_SENTINEL, sizeof map);
    CALL(cuTensorMapEncodeIm2colWide, cls,
         (&map, t->type, t->rank, (void *)t->address, t->dim, t->strides, i->lower[0], i->upper[0],
          i->channels, i->pixels, t->element, t->interleave, i->mode, t->swizzle, t->promotion,
          t->fill));
    if (par_last() == CUDA_SUCCESS)
        see_map(&map);
}

SCENARIO(im2col_wide, "tensor-map/im2col-wide", par_context) {
    for (unsigned rank = 2; rank <= 6; rank++)
        for (int mode = -1; mode <= 2; mode++)
            for (int swizzle = 0; swizzle <= 6; swizzle++) {
                struct im2col i = image();
                i.t.rank = rank;
                i.mode = (CUtensorMapIm2ColWideMode)mode;
                i.t.swizzle = (CUtensorMapSwizzle)swizzle;
                i.channels = 32;
                par_note("rank=%u mode=%d swizzle=%d", rank, mode, swizzle);
                encode_wide("rank-mode", &i);
            }
}

/* Unlike most that only compute, these want a current context. */
SCENARIO(without_context, "tensor-map/without-context", par_init) {
    CUtensorMap map;
    struct tiled t = plain();
    struct im2col i = image();
    encode("no-context", &t);
    encode_im2col("no-context", &i);
    encode_wide("no-context", &i);
    memset(&map, 0, sizeof map);
    CALL(cuTensorMapReplaceAddress, "no-context", (&map, (void *)ADDRESS));
}
