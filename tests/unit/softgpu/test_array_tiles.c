/* Layouts of sparse and deferred arrays: no two bytes share a place, every place lies in a piece,
 * and the sizes are those that an H200 told. */
#include "softgpu/array/internal.h"

#include "test.h"
#include <sys/resource.h>

#define LEVELS 12

struct layout {
    struct sg_array levels[LEVELS];
    unsigned count;
    struct sg_tiles *tiles;
};

static struct layout lay(size_t width, size_t height, size_t depth, unsigned channels,
                         unsigned flags, unsigned levels) {
    struct layout made = {.count = levels};
    const CUDA_ARRAY3D_DESCRIPTOR d = {.Width = width,
                                       .Height = height,
                                       .Depth = depth,
                                       .Format = CU_AD_FORMAT_FLOAT,
                                       .NumChannels = channels,
                                       .Flags = flags};
    for (unsigned i = 0; i < levels; i++) {
        made.levels[i].descriptor = sg_level_descriptor(&d, i);
        assert_true(sg_array_shape(&made.levels[i]));
    }
    assert_int_equal(sg_tiles_for(&d, made.levels, levels, &made.tiles), CUDA_SUCCESS);
    return made;
}

/* Walks one level as a copy does and marks what it touches. */
static void walk(const struct layout *layout, unsigned level, unsigned char *touched,
                 unsigned char *memory) {
    const struct sg_array *array = &layout->levels[level];
    size_t size = array->layer * array->slices, at = 0;
    while (at < size) {
        size_t span = 0;
        unsigned char *bytes = sg_tile_bytes(array->view, at, size - at, &span);
        assert_non_null(bytes);
        assert_true(span > 0 && span <= size - at);
        size_t place = (size_t)(bytes - memory);
        assert_true(place / SG_TILE == (place + span - 1) / SG_TILE);
        assert_true(place + span <= layout->tiles->count * SG_TILE);
        for (size_t i = 0; i < span; i++)
            assert_int_equal(touched[place + i]++, 0);
        at += span;
    }
}

static void no_byte_is_shared(size_t width, size_t height, size_t depth, unsigned channels,
                              unsigned flags, unsigned levels) {
    struct layout layout = lay(width, height, depth, channels, flags, levels);
    size_t size = layout.tiles->count * SG_TILE;
    unsigned char *memory = calloc(1, size), *touched = calloc(1, size);
    assert_true(memory && touched);
    for (size_t i = 0; i < layout.tiles->count; i++)
        layout.tiles->pieces[i].bytes = memory + i * SG_TILE;
    for (unsigned i = 0; i < levels; i++)
        walk(&layout, i, touched, memory);
    free(memory);
    free(touched);
    sg_tiles_unref(layout.tiles);
}

TEST(no_two_bytes_of_an_array_share_a_place) {
    const unsigned sparse = CUDA_ARRAY3D_SPARSE, deferred = CUDA_ARRAY3D_DEFERRED_MAPPING,
                   layered = CUDA_ARRAY3D_LAYERED;
    no_byte_is_shared(256, 256, 0, 1, sparse, 1);
    no_byte_is_shared(300, 200, 0, 1, sparse, 1);
    no_byte_is_shared(512, 256, 0, 1, sparse, 6);
    no_byte_is_shared(256, 128, 3, 1, sparse | layered, 4);
    no_byte_is_shared(64, 64, 4, 1, sparse | layered, 5);
    no_byte_is_shared(70, 40, 33, 4, sparse, 4);
    no_byte_is_shared(64, 64, 0, 4, deferred, 3);
    no_byte_is_shared(100, 100, 20, 1, deferred, 4);
    no_byte_is_shared(64, 0, 5, 1, deferred | layered, 3);
    no_byte_is_shared(64, 64, 6, 1, deferred | CUDA_ARRAY3D_CUBEMAP, 3);
}

TEST(an_unmapped_tile_has_no_address) {
    struct layout layout = lay(256, 256, 0, 1, CUDA_ARRAY3D_SPARSE, 1);
    size_t span = 0;
    assert_null(sg_tile_bytes(layout.levels[0].view, 0, 4096, &span));
    assert_int_equal(span, 512); /* a row of a tile */
    sg_tiles_unref(layout.tiles);
}

/* Read off an H200 (tests/parity, the scenarios sparse/ and array/requirements). */
TEST(tile_and_tail_sizes_match_the_h200) {
    static const struct {
        size_t width, height, depth;
        unsigned channels, flags, levels, tail_level;
        size_t tail;
    } tails[] = {
        {1000, 600, 0, 1, CUDA_ARRAY3D_SPARSE, 5, 3, 131072},
        {64, 64, 4, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED, 5, 0, 131072},
        {1024, 512, 3, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED, 5, 3, 65536},
        {256, 256, 100, 4, CUDA_ARRAY3D_SPARSE, 5, 3, 327680},
        {256, 256, 100, 1, CUDA_ARRAY3D_SPARSE, 5, 3, 131072},
        {65536, 0, 0, 4, CUDA_ARRAY3D_DEFERRED_MAPPING, 1, 0, 8388608},
        {1000, 1000, 0, 1, CUDA_ARRAY3D_DEFERRED_MAPPING, 1, 0, 4128768},
        {1000, 1000, 0, 1, CUDA_ARRAY3D_DEFERRED_MAPPING, 3, 0, 5439488},
        {100, 100, 100, 1, CUDA_ARRAY3D_DEFERRED_MAPPING, 1, 0, 5242880},
        {100, 100, 100, 1, CUDA_ARRAY3D_DEFERRED_MAPPING, 3, 0, 6291456},
        {64, 64, 6, 1, CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_CUBEMAP, 3, 0, 196608},
    };
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        struct layout layout = lay(tails[i].width, tails[i].height, tails[i].depth,
                                   tails[i].channels, tails[i].flags, tails[i].levels);
        assert_int_equal(layout.tiles->tail_level, tails[i].tail_level);
        assert_int_equal(layout.tiles->tail_bytes, tails[i].tail);
        sg_tiles_unref(layout.tiles);
    }
}

TEST(the_element_size_follows_format_and_channels) {
    assert_int_equal(sg_array_element(CU_AD_FORMAT_FLOAT, 4), 16);
    assert_int_equal(sg_array_element(CU_AD_FORMAT_HALF, 2), 4);
    assert_int_equal(sg_array_element(CU_AD_FORMAT_HALF, 3), 0);
    assert_int_equal(sg_array_element(CU_AD_FORMAT_BC1_UNORM, 4), 8);
    assert_int_equal(sg_array_element(CU_AD_FORMAT_BC1_UNORM, 1), 0);
    assert_int_equal(sg_array_element((CUarray_format)0, 1), 0);
}

static long pages_touched(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

TEST(pieces_of_a_huge_array_without_memory_are_not_read_when_it_goes) {
#ifdef __SANITIZE_ADDRESS__
    print_message("skip: AddressSanitizer marks all of what is freed\n");
    skip();
#endif
    struct layout layout = lay(8192, 8192, 4096, 4, CUDA_ARRAY3D_SPARSE, 1);
    assert_true(layout.tiles->count * sizeof(struct sg_piece) > (size_t)500 << 20);
    long before = pages_touched();
    sg_tiles_unref(layout.tiles);
    /* Reading them touches 250 huge pages, or 128,000 small ones. */
    assert_true(pages_touched() - before < 100);
}
