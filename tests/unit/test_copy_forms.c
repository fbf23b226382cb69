/* Fills with patterns, copies of rows, batches, and the synchronous forms, by their bytes. */
#include "library_test.h"

static gpumem_resource *pool, *pinned, *host_pool;

BEFORE(open_device) {
    pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    pinned = NEW_PINNED();
    host_pool = NEW_PINNED(.method = GPUMEM_PINNED_POOL);
}

AFTER(close_device) {
    DESTROY(host_pool, pinned, pool);
}

ALL_TESTS(before, after);

static void read_all(gpumem_buffer *buffer, void *bytes) {
    OK(read_now(buffer, 0, bytes, gpumem_buffer_size(buffer), NULL));
}

TEST(patterns_of_1_2_and_4_bytes_fill_their_range_only) {
    const unsigned char pattern[] = {0x11, 0x22, 0x33, 0x44};
    unsigned char bytes[256];
    gpumem_buffer *buffer = NEW_BUFFER(pool, sizeof bytes);
    for (size_t width = 1; width <= 4; width *= 2) {
        OK(gpumem_buffer_fill(buffer, 0, sizeof bytes, 0xee, NULL));
        OK(gpumem_buffer_fill_pattern(buffer, 8, 64, pattern, width, NULL));
        read_all(buffer, bytes);
        for (size_t i = 0; i < sizeof bytes; i++) {
            int inside = i >= 8 && i < 72;
            assert_int_equal(bytes[i], inside ? pattern[i % width] : 0xee);
        }
    }
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(patterns_that_do_not_fit_are_refused) {
    const unsigned char pattern[8] = {1};
    gpumem_buffer *buffer = NEW_BUFFER(pool, 256);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill_pattern(buffer, 0, 9, pattern, 3, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill_pattern(buffer, 0, 8, pattern, 8, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill_pattern(buffer, 0, 8, pattern, 0, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill_pattern(buffer, 0, 8, NULL, 1, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill_pattern(buffer, 2, 8, pattern, 4, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill_pattern(buffer, 0, 6, pattern, 4, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill_pattern(buffer, 252, 8, pattern, 4, NULL));
    OK(gpumem_buffer_fill_pattern(buffer, 256, 0, pattern, 4, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
}

/* ---- Rows ------------------------------------------------------------------------------------ */

enum { WIDTH = 24, COUNT_OF_ROWS = 5, WIDE = 40, NARROW = 32 };

/* Every kind of memory on either side: the driver's typed copies refuse some of it. */
TEST(copying_rows_leaves_the_gaps_untouched) {
    gpumem_resource *resources[] = {pool, pinned, host_pool};
    const gpumem_rows rows = {
        .width = WIDTH, .count = COUNT_OF_ROWS, .to_pitch = WIDE, .from_pitch = NARROW};
    const gpumem_rows back = {.width = WIDTH, .count = COUNT_OF_ROWS, .from_pitch = WIDE};
    unsigned char source[256], target[256], packed[WIDTH * COUNT_OF_ROWS];
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i + 1);
    for (size_t t = 0; t < COUNT(resources); t++) {
        for (size_t f = 0; f < COUNT(resources); f++) {
            gpumem_buffer *to = NEW_BUFFER(resources[t], 256),
                          *from = NEW_BUFFER(resources[f], 256);
            OK(gpumem_buffer_write(from, 0, source, 256, NULL));
            OK(gpumem_buffer_fill(to, 0, 256, 0xee, NULL));
            OK(gpumem_buffer_copy_2d(to, 3, from, 1, &rows, NULL));
            read_all(to, target);
            for (size_t i = 0; i < 256; i++) {
                size_t row = (i - 3) / WIDE, column = (i - 3) % WIDE;
                int inside = i >= 3 && row < COUNT_OF_ROWS && column < WIDTH;
                assert_int_equal(target[i], inside ? source[1 + row * NARROW + column] : 0xee);
            }
            OK(gpumem_buffer_read_2d(to, 3, packed, &back, NULL));
            OK(gpumem_stream_synchronize(device, NULL));
            for (size_t i = 0; i < sizeof packed; i++)
                assert_int_equal(packed[i], source[1 + i / WIDTH * NARROW + i % WIDTH]);
            DESTROY(to, from);
        }
    }
}

TEST(writing_rows_from_the_host_leaves_the_gaps_untouched) {
    const gpumem_rows rows = {.width = 2, .count = 3, .to_pitch = 4};
    const unsigned char source[] = {1, 2, 3, 4, 5, 6};
    const unsigned char wanted[] = {0, 1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0};
    unsigned char bytes[12];
    gpumem_buffer *buffer = NEW_BUFFER(pool, sizeof bytes);
    OK(gpumem_buffer_fill(buffer, 0, sizeof bytes, 0, NULL));
    OK(gpumem_buffer_write_2d(buffer, 1, source, &rows, NULL));
    read_all(buffer, bytes);
    assert_memory_equal(bytes, wanted, sizeof wanted);
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(rows_that_do_not_fit_are_refused) {
    unsigned char host[64] = {0};
    gpumem_buffer *buffer = NEW_BUFFER(pool, 64);
    gpumem_rows rows = {.width = 8, .count = 8};
    OK(gpumem_buffer_write_2d(buffer, 0, host, &rows, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_write_2d(buffer, 1, host, &rows, NULL));
    rows.to_pitch = 9;
    FAILS(INVALID_ARGUMENT, gpumem_buffer_write_2d(buffer, 0, host, &rows, NULL));
    rows.to_pitch = 7;
    FAILS(INVALID_ARGUMENT, gpumem_buffer_write_2d(buffer, 0, host, &rows, NULL));
    rows = (gpumem_rows){.width = 1, .count = SIZE_MAX, .to_pitch = 16};
    FAILS(INVALID_ARGUMENT, gpumem_buffer_write_2d(buffer, 0, host, &rows, NULL));
    rows = (gpumem_rows){.width = 8, .count = 2, .to_pitch = 56};
    OK(gpumem_buffer_write_2d(buffer, 0, host, &rows, NULL)); /* the last row ends the buffer */
    FAILS(INVALID_ARGUMENT, gpumem_buffer_write_2d(buffer, 0, NULL, &rows, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_write_2d(buffer, 0, host, NULL, NULL));
    rows.count = 0;
    OK(gpumem_buffer_write_2d(buffer, 64, NULL, &rows, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
}

/* ---- Batches --------------------------------------------------------------------------------- */

static gpumem_batch_report copy_in_a_batch(CUstream stream) {
    enum { ITEMS = 40 };
    gpumem_buffer_copy_item items[ITEMS + 1];
    unsigned char source[ITEMS * 16], target[ITEMS * 16];
    gpumem_buffer *to = NEW_BUFFER(pool, sizeof target), *from = NEW_BUFFER(pinned, sizeof source);
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i * 7);
    OK(write_now(from, 0, source, sizeof source, NULL));
    OK(fill_now(to, 0, sizeof target, 0xee, NULL));
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = (gpumem_buffer_copy_item){to, (ITEMS - 1 - i) * 16, from, i * 16, i % 16};
    items[ITEMS] = items[0];
    gpumem_batch_report report = {.size = sizeof report};
    OK(gpumem_buffer_copy_batch(items, ITEMS, stream, &report));
    OK(gpumem_stream_synchronize(device, stream));
    read_all(to, target);
    for (size_t i = 0; i < sizeof target; i++) {
        size_t item = ITEMS - 1 - i / 16;
        int inside = i % 16 < item % 16;
        assert_int_equal(target[i], inside ? source[item * 16 + i % 16] : 0xee);
    }
    assert_int_equal(report.copies, ITEMS - (ITEMS + 15) / 16); /* those of 0 bytes are left out */
    DESTROY(to, from);
    return report;
}

TEST(a_batch_is_one_driver_call) {
    CUstream stream = NEW_STREAM();
    gpumem_batch_report report = copy_in_a_batch(stream);
    assert_int_equal(report.batched, 1);
    assert_string_equal(report.note, "");
    OK(gpumem_stream_destroy(device, stream));
}

TEST(a_batch_on_the_legacy_stream_is_copied_one_by_one) {
    gpumem_batch_report report = copy_in_a_batch(NULL);
    assert_int_equal(report.batched, 0);
    assert_non_null(strstr(report.note, "legacy default stream"));
}

TEST(an_invalid_batch_queues_nothing) {
    unsigned char bytes[64];
    CUstream stream = NEW_STREAM();
    gpumem_buffer *buffer = NEW_BUFFER(pool, 64);
    OK(fill_now(buffer, 0, 64, 0xee, NULL));
    OK(fill_now(buffer, 32, 32, 1, NULL));
    gpumem_buffer_copy_item items[] = {{buffer, 0, buffer, 32, 8}, {buffer, 8, buffer, 60, 8}};
    gpumem_batch_report report = {.size = sizeof report};
    FAILS(INVALID_ARGUMENT, gpumem_buffer_copy_batch(items, 2, stream, &report));
    report.size = 3;
    items[1].from_offset = 32;
    FAILS(INVALID_ARGUMENT, gpumem_buffer_copy_batch(items, 2, stream, &report));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_copy_batch(NULL, 2, stream, NULL));
    OK(gpumem_stream_synchronize(device, stream));
    read_all(buffer, bytes);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(bytes[i], i < 32 ? 0xee : 1);
    OK(gpumem_buffer_copy_batch(items, 2, stream, NULL));
    OK(gpumem_buffer_free(buffer, stream));
    OK(gpumem_stream_destroy(device, stream));
}

/* ---- Captures -------------------------------------------------------------------------------- */

/* The capture goes on, and has nothing of it. */
TEST(waiting_for_a_stream_does_not_disturb_a_capture) {
    CUstream stream;
    size_t nodes = 1;
    OK(gpumem_stream_create(device, GPUMEM_STREAM_OPTIONS(.blocking = true), &stream));
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS(BUSY, gpumem_stream_synchronize(device, stream));
    FAILS(BUSY, gpumem_stream_synchronize(device, NULL));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu->cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 0);
    OK_CU(cu->cuGraphDestroy(graph));
    DESTROY(stream);
}

TEST(a_batch_is_captured_copy_by_copy) {
    CUstream stream = NEW_STREAM();
    gpumem_buffer *buffer = NEW_BUFFER(pool, 64);
    const gpumem_buffer_copy_item items[] = {{buffer, 0, buffer, 32, 8},
                                             {buffer, 8, buffer, 40, 8}};
    gpumem_batch_report report = {.size = sizeof report};
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(gpumem_buffer_copy_batch(items, 2, stream, &report));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    assert_int_equal(report.batched, 0);
    assert_non_null(strstr(report.note, "capturing"));
    assert_int_equal(GOT_CU(size_t, cuGraphGetNodes, graph, NULL), 2);
    OK_CU(cu->cuGraphDestroy(graph));
    DESTROY(buffer, stream);
}
