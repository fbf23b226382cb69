/* Free blocks by address: the lowest that is large enough, against a plain search. */
#include "softgpu/pool/internal.h"

#include "test.h"

#define COUNT_OF_BLOCKS 300
#define ROUNDS          20000

static struct sg_pool_segment segment;
static struct sg_block blocks[COUNT_OF_BLOCKS];
static bool in[COUNT_OF_BLOCKS];

static unsigned draw(unsigned limit) {
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (unsigned)(x >> 20) % limit;
}

static struct sg_block *plain_search(size_t size, uint64_t most) {
    for (int i = 0; i < COUNT_OF_BLOCKS; i++)
        if (in[i] && blocks[i].size >= size && blocks[i].number <= most)
            return &blocks[i];
    return NULL;
}

static void change(struct sg_places *places, int i) {
    in[i] = !in[i];
    if (!in[i]) {
        sg_places_remove(places, &blocks[i]);
        return;
    }
    blocks[i].size = SG_BLOCK_UNIT * (1 + (size_t)draw(64));
    blocks[i].number = draw(4);
    sg_places_add(places, &blocks[i]);
}

static void lay_out(void) {
    memset(in, 0, sizeof in);
    segment.map.address = 0x7f0000000000;
    for (int i = 0; i < COUNT_OF_BLOCKS; i++) {
        blocks[i].segment = &segment;
        blocks[i].offset = (size_t)i * 64 * SG_BLOCK_UNIT;
    }
}

TEST(the_lowest_free_block_that_fits_is_found) {
    struct sg_places places = {0};
    lay_out();
    for (int round = 0; round < ROUNDS; round++) {
        change(&places, (int)draw(COUNT_OF_BLOCKS));
        size_t size = SG_BLOCK_UNIT * (1 + (size_t)draw(66));
        assert_ptr_equal(sg_places_find(&places, size, UINT64_MAX), plain_search(size, UINT64_MAX));
    }
}

/* Few are passed over here, so that none is missed. */
TEST(blocks_freed_too_late_are_skipped) {
    struct sg_places places = {0};
    lay_out();
    for (int round = 0; round < ROUNDS; round++) {
        change(&places, (int)draw(40));
        size_t size = SG_BLOCK_UNIT * (1 + (size_t)draw(66));
        uint64_t most = draw(4);
        assert_ptr_equal(sg_places_find(&places, size, most), plain_search(size, most));
    }
}

TEST(an_empty_index_finds_nothing) {
    struct sg_places places = {0};
    lay_out();
    assert_null(sg_places_find(&places, 1, UINT64_MAX));
    for (int i = 0; i < COUNT_OF_BLOCKS; i++)
        change(&places, i);
    for (int i = COUNT_OF_BLOCKS - 1; i >= 0; i--)
        change(&places, i);
    assert_null(sg_places_find(&places, 1, UINT64_MAX));
    assert_null(places.root);
}
