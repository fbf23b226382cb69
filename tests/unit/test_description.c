/* What crosses a socket is not believed: every damaged description is refused. */
#include "library_test.h"
#include "share/description.h"

#define CHUNKS 3

static const struct gm_chunk chunks[CHUNKS] = {{1, 2 * MIB}, {2, 4 * MIB}, {3, 2 * MIB}};

static unsigned char *write_good(size_t *bytes) {
    gpumem_buffer buffer = {.allocation = {.bytes = 7 * MIB}, .layout = 5, .epoch = 9};
    const unsigned char uuid[16] = {1, 2, 3};
    unsigned char *data = gm_description_write(&buffer, 7 * MIB, uuid, chunks, CHUNKS, bytes);
    if (!data || !*bytes)
        fail_msg("no description");
    return data;
}

static gpumem_status read_it(const void *data, size_t bytes, uint64_t maximum) {
    struct gm_description_head head;
    const unsigned char *sizes;
    gpumem_status status = gm_description_read(data, bytes, 2 * MIB, maximum, NULL, &head, &sizes);
    if (status != GPUMEM_OK)
        return status;
    assert_int_equal(bytes, sizeof head + head.chunk_count * sizeof(uint64_t));
    uint64_t sum = 0;
    for (size_t i = 0; i < head.chunk_count; i++) {
        uint64_t size = gm_description_chunk(sizes, i);
        assert_int_equal(size % (2 * MIB), 0);
        sum += size;
    }
    assert_int_equal(sum, head.committed);
    assert_true(head.bytes > 0 && head.bytes <= sum && sum <= maximum);
    return status;
}

TEST(a_written_description_is_read_back) {
    size_t bytes;
    unsigned char *data = write_good(&bytes);
    struct gm_description_head head;
    const unsigned char *sizes;
    OK(gm_description_read(data, bytes, 2 * MIB, GIB, NULL, &head, &sizes));
    MEMBERS(head, (chunk_count, CHUNKS), (bytes, 7 * MIB), (committed, 8 * MIB), (layout, 5),
            (epoch, 9), (first, 0), (device[2], 3));
    assert_int_equal(gm_description_chunk(sizes, 1), 4 * MIB);
    free(data);
}

TEST(lengths_and_limits_are_checked) {
    size_t bytes;
    unsigned char *data = write_good(&bytes);
    for (size_t n = 0; n < bytes; n++)
        FAILS(DATA, read_it(data, n, GIB));
    FAILS(DATA, read_it(NULL, 0, GIB));
    OK(read_it(data, bytes, 8 * MIB));
    FAILS_SAYING(DATA, "8388607", read_it(data, bytes, 8 * MIB - 1));
    free(data);
}

/* Sizes whose sum goes once around. */
TEST(sums_do_not_overflow) {
    size_t bytes;
    unsigned char *data = write_good(&bytes);
    const uint64_t half = UINT64_C(1) << 63;
    for (size_t i = 0; i < 2; i++)
        memcpy(data + sizeof(struct gm_description_head) + i * 8, &half, 8);
    FAILS(DATA, read_it(data, bytes, UINT64_MAX));
    free(data);
}

/* The description of growth goes on exactly where an importer's memory ends. */
TEST(growth_must_continue_where_the_import_ends) {
    size_t bytes, rest;
    unsigned char *data = write_good(&bytes), *tail = gm_description_tail(data, 1, &rest);
    struct gm_description_head head;
    const unsigned char *sizes;
    const struct gm_known_chunks known = {1, 2 * MIB}, fewer = {0, 0}, more = {2, 6 * MIB},
                                 all = {3, 8 * MIB}, beyond = {4, 8 * MIB}, other = {1, 4 * MIB};
    assert_non_null(tail);
    assert_int_equal(rest, bytes - sizeof(uint64_t));
    OK(gm_description_read(tail, rest, 2 * MIB, GIB, &known, &head, &sizes));
    MEMBERS(head, (chunk_count, CHUNKS), (first, 1));
    assert_int_equal(gm_description_chunk(sizes, 0), 4 * MIB);
    FAILS(DATA, gm_description_read(tail, rest, 2 * MIB, GIB, NULL, &head, &sizes));
    SAYS("describes growth");
    FAILS(DATA, gm_description_read(tail, rest, 2 * MIB, GIB, &fewer, &head, &sizes));
    FAILS(DATA, gm_description_read(tail, rest, 2 * MIB, GIB, &more, &head, &sizes));
    SAYS("does not continue where the import ends");
    FAILS(DATA, gm_description_read(tail, rest, 2 * MIB, GIB, &other, &head, &sizes));
    SAYS("do not add up");
    FAILS(DATA, gm_description_read(tail, rest, 2 * MIB, 8 * MIB - 1, &known, &head, &sizes));
    FAILS(DATA, gm_description_read(tail, rest - 8, 2 * MIB, GIB, &known, &head, &sizes));
    free(tail);
    tail = gm_description_tail(data, 3, &rest); /* nothing but a size */
    OK(gm_description_read(tail, rest, 2 * MIB, GIB, &all, &head, &sizes));
    const uint32_t four = 4;
    memcpy(tail + offsetof(struct gm_description_head, first), &four, sizeof four);
    FAILS(DATA, gm_description_read(tail, rest, 2 * MIB, GIB, &beyond, &head, &sizes));
    SAYS("missing");
    free(tail);
    free(data);
}

/* Every byte, every bit, and pairs at random: refused, or consistent all the same. */
TEST(a_damaged_description_is_refused_or_harmless) {
    size_t bytes, refused = 0;
    unsigned char *data = write_good(&bytes);
    for (size_t at = 0; at < bytes; at++) {
        for (int bit = 0; bit < 8; bit++) {
            data[at] ^= (unsigned char)(1 << bit);
            refused += read_it(data, bytes, GIB) != GPUMEM_OK;
            data[at] ^= (unsigned char)(1 << bit);
        }
    }
    assert_true(refused > 200);
    uint32_t seed = 99;
    for (int i = 0; i < 20000; i++) {
        unsigned char copy[256];
        memcpy(copy, data, bytes);
        for (int j = 0; j < 3; j++) {
            seed = seed * 1664525u + 1013904223u;
            copy[(seed >> 8) % bytes] = (unsigned char)(seed >> 24);
        }
        (void)read_it(copy, bytes, GIB); /* its own checks fail the test */
    }
    free(data);
}
