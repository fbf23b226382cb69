/* Views for the CPU of buffers that change: growth in other threads, holes, moves, frees, several
 * views that come and go; by each method that has views. */
#include "vulkan_test.h"

#include <pthread.h>

EACH_TEST(start_with_icd, NULL);

static const gpumem_mapped_method methods[] = {GPUMEM_MAPPED_VULKAN_IMPORT, GPUMEM_MAPPED_DMA_BUF,
                                               GPUMEM_MAPPED_DESCRIPTOR};

static gpumem_resource *plain;
static gpumem_mapped_method method;

static gpumem_buffer *allocate(size_t bytes) {
    return NEW_BUFFER(plain, bytes);
}

static gpumem_buffer *view_of(gpumem_buffer *buffer) {
    return MADE(gpumem_buffer *, gpumem_buffer_host_view, buffer,
                GPUMEM_HOST_VIEW_OPTIONS(.method = method, .method_strict = 1));
}

static volatile unsigned char *host_of(gpumem_buffer *view) {
    return gpumem_buffer_host_pointer(view);
}

/* Each test by each method. */
static void by_each(void (*test)(void), size_t cache_bytes) {
    for (size_t i = 0; i < COUNT(methods); i++) {
        method = methods[i];
        plain = NEW_VIRTUAL(.capacity = 32 * MIB, .maximum_chunk_bytes = 2 * MIB,
                            .cache_bytes = cache_bytes);
        test();
        OK(gpumem_resource_destroy(plain));
        MEMBERS(device_stats(), (committed_bytes, 0), (quarantined, 0));
        assert_nothing_left();
    }
}

/* ---- Holes, moves, shrinks ------------------------------------------------------------------- */

static void hold_memory(void) {
    CUdeviceptr address;
    gpumem_buffer *buffer = allocate(8 * MIB);
    gpumem_buffer *view = view_of(buffer);
    host_of(view)[5 * MIB] = 9;
    OK(gpumem_mapped_flush(view, 5 * MIB, 1));
    FAILS(BUSY, gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    FAILS(BUSY, gpumem_buffer_decommit(buffer, 2 * MIB, 4 * MIB, NULL, NULL));
    FAILS(BUSY, gpumem_buffer_move_to_capacity(buffer, 64 * MIB, NULL, &address));
    assert_int_equal(host_of(view)[5 * MIB], 9);
    assert_int_equal(byte_of(buffer, 5 * MIB), 9);
    OK(gpumem_buffer_free(view, NULL));
    OK(gpumem_buffer_decommit(buffer, 2 * MIB, 4 * MIB, NULL, NULL));
    OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST_IS(a_host_view_keeps_its_memory, by_each(hold_memory, 0));

static void fill_holes(void) {
    gpumem_buffer *buffer = allocate(12 * MIB);
    OK(gpumem_buffer_decommit(buffer, 4 * MIB, 4 * MIB, NULL, NULL));
    gpumem_buffer *view = view_of(buffer);
    host_of(view)[0] = 1;
    host_of(view)[12 * MIB - 1] = 2;
    FAILS_SAYING(INVALID_ARGUMENT, "decommitted", gpumem_mapped_flush(view, 0, 12 * MIB));
    OK(gpumem_mapped_flush(view, 0, 4 * MIB));
    OK(gpumem_mapped_flush(view, 8 * MIB, 4 * MIB));
    assert_int_equal(byte_of(buffer, 0), 1);
    assert_int_equal(byte_of(buffer, 12 * MIB - 1), 2);
    OK(gpumem_buffer_recommit(buffer, 4 * MIB, 4 * MIB));
    host_of(view)[6 * MIB] = 3;
    OK(gpumem_mapped_flush(view, 6 * MIB, 1));
    assert_int_equal(byte_of(buffer, 6 * MIB), 3);
    DESTROY(view, buffer);
}

TEST_IS(recommitted_holes_are_mapped_on_both_sides, by_each(fill_holes, 0));

/* ---- Parts, sizes ---------------------------------------------------------------------------- */

static void be_a_buffer(void) {
    gpumem_buffer *buffer = allocate(4 * MIB), *view = view_of(buffer);
    gpumem_mapped_info info = {.size = sizeof info};
    OK(gpumem_buffer_get_mapped_info(view, &info));
    assert_int_equal(info.method, method);
    FAILS_SAYING(INVALID_ARGUMENT, "virtual", gpumem_buffer_get_mapped_info(buffer, &info));
    assert_ptr_equal(gpumem_buffer_resource(view), plain);
    assert_int_equal(gpumem_buffer_pointer(view), gpumem_buffer_pointer(buffer));
    assert_int_equal(gpumem_buffer_size(view), 4 * MIB);
    FAILS(INVALID_ARGUMENT, gpumem_mapped_write(view, 4 * MIB, "x", 1));
    OK(gpumem_buffer_grow(buffer, 6 * MIB, NULL));
    assert_int_equal(gpumem_buffer_size(view), 6 * MIB);
    OK(gpumem_mapped_write(view, 6 * MIB - 1, "x", 1));
    assert_int_equal(byte_of(view, 6 * MIB - 1), 'x'); /* by the device */
    FAILS(NOT_SUPPORTED, gpumem_buffer_grow(view, 8 * MIB, NULL));
    DESTROY(view, buffer);
}

TEST_IS(a_host_view_is_a_buffer_that_grows_along, by_each(be_a_buffer, 0));

static void have_parts(void) {
    gpumem_buffer *buffer = allocate(4 * MIB), *view = view_of(buffer);
    gpumem_buffer *part = NEW_VIEW(view, MIB, MIB), *piece = NEW_VIEW(part, 4096, 16);
    assert_ptr_equal(gpumem_buffer_host_pointer(piece), host_of(view) + MIB + 4096);
    assert_null(gpumem_buffer_host_pointer(buffer));
    DESTROY(view, part); /* the piece keeps the mapping */
    OK(gpumem_mapped_write(piece, 15, "y", 1));
    assert_int_equal(byte_of(buffer, MIB + 4096 + 15), 'y');
    FAILS(BUSY, gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    DESTROY(buffer, piece);
}

TEST_IS(a_part_of_a_host_view_keeps_its_mapping, by_each(have_parts, 0));

/* ---- Ends ------------------------------------------------------------------------------------ */

static void end_in_any_order(void) {
    gpumem_buffer *buffer = allocate(4 * MIB);
    gpumem_buffer *views[3];
    for (size_t i = 0; i < COUNT(views); i++)
        views[i] = view_of(buffer);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    for (size_t i = 0; i < COUNT(views); i++)
        host_of(views[i])[8 * MIB - 1 - i] = (unsigned char)(i + 1);
    for (size_t i = 0; i < COUNT(views); i++)
        OK(gpumem_mapped_flush(views[i], 8 * MIB - 3, 3));
    DESTROY(views[1], buffer);
    FAILS(BUSY, gpumem_resource_destroy(plain));
    for (size_t i = 0; i < COUNT(views); i++)
        if (i != 1)
            assert_int_equal(host_of(views[i])[8 * MIB - 1 - i], i + 1);
    OK(gpumem_buffer_free(views[0], NULL));
    host_of(views[2])[1] = 1;
    OK(gpumem_buffer_free(views[2], NULL));
}

TEST_IS(views_and_their_buffer_may_be_freed_in_any_order, by_each(end_in_any_order, 0));

/* A cached range that had a view is nobody's next mapping. */
static void reuse_from_cache(void) {
    for (int round = 0; round < 4; round++) {
        gpumem_buffer *buffer = allocate(4 * MIB);
        gpumem_buffer *view = view_of(buffer);
        OK(fill_now(buffer, 0, 4 * MIB, (unsigned char)round, NULL));
        OK(gpumem_mapped_invalidate(view, 0, 4 * MIB));
        assert_int_equal(host_of(view)[4 * MIB - 1], round);
        DESTROY(view, buffer);
        synchronize(NULL);
    }
    OK(gpumem_device_trim(device, 1));
}

TEST_IS(views_of_cached_buffers_see_their_own_memory, by_each(reuse_from_cache, 64 * MIB));

/* ---- Threads --------------------------------------------------------------------------------- */

#define VIEWERS 4
#define LOOKS   50
static gpumem_buffer *shared;
static int looking;

/* Of what was there when the view was made. */
static void *look(void *argument) {
    size_t at = (size_t)(uintptr_t)argument;
    for (int round = 1; round <= LOOKS; round++) {
        gpumem_buffer *view = view_of(shared);
        host_of(view)[at] = (unsigned char)round;
        gpumem_buffer *second = view_of(shared);
        assert_int_equal(host_of(second)[at], round);
        DESTROY(view, second);
    }
    __atomic_fetch_sub(&looking, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Growth takes each view along; the buffer shrinks when there happens to be none. */
static void grow_meanwhile(void) {
    pthread_t threads[VIEWERS];
    shared = allocate(2 * MIB);
    __atomic_store_n(&looking, VIEWERS, __ATOMIC_SEQ_CST);
    for (uintptr_t i = 0; i < VIEWERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look, (void *)(i * 256)), 0);
    while (__atomic_load_n(&looking, __ATOMIC_SEQ_CST)) {
        size_t bytes = gpumem_buffer_size(shared);
        if (bytes < 32 * MIB)
            OK(gpumem_buffer_grow(shared, bytes + 2 * MIB, NULL));
        if (bytes < 8 * MIB)
            continue;
        gpumem_status status = gpumem_buffer_shrink(shared, 2 * MIB, NULL);
        assert_true(status == GPUMEM_OK || status == GPUMEM_ERROR_BUSY);
    }
    for (size_t i = 0; i < VIEWERS; i++)
        pthread_join(threads[i], NULL);
    OK(gpumem_buffer_free(shared, NULL));
}

TEST_IS(views_are_created_and_destroyed_while_the_buffer_grows, by_each(grow_meanwhile, 0));

static int begin(void **state) {
    setenv("SOFTGPU_PROFILE", "dmabuf", 1);
    return open_device(state) != 0 ? -1 : find_icd(state);
}

ALL_TESTS(begin, close_device);
