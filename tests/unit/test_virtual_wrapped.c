/* Wrappers around a virtual resource pass on whatever its buffers can do. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

static void ignore(void *user, gpumem_log_level level, const char *text) {
}

static int drop(void *user, const char *text, size_t bytes) {
    return 0;
}

static gpumem_failure_answer give_up(void *user, const gpumem_allocation_failure *failure) {
    return GPUMEM_FAILURE_GIVE_UP;
}

static gpumem_buffer *allocate(gpumem_resource *from, CUstream stream) {
    gpumem_buffer *buffer = NEW_BUFFER_WITH(from, 8 * MIB, .capacity = 16 * MIB, .stream = stream);
    OK(gpumem_buffer_fill(buffer, 0, 8 * MIB, 0x31, stream));
    return buffer;
}

static int byte_at(gpumem_buffer *buffer, size_t offset) {
    unsigned char byte = 0;
    OK(read_now(buffer, offset, &byte, 1, NULL));
    return byte;
}

static void holes_and_access(gpumem_resource *wrapper) {
    gpumem_buffer *buffer = allocate(wrapper, NULL), *view;
    gpumem_access access;
    size_t released = 0;
    OK(gpumem_buffer_grow(buffer, 12 * MIB, NULL));
    OK(gpumem_buffer_shrink(buffer, 8 * MIB, NULL));
    view = NEW_VIEW(buffer, 0, MIB);
    FAILS(BUSY, gpumem_buffer_decommit(buffer, 0, 8 * MIB, NULL, NULL));
    FAILS(BUSY, gpumem_buffer_set_access(buffer, 0, 4 * MIB, 0, GPUMEM_ACCESS_READ, NULL));
    OK(gpumem_buffer_free(view, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_decommit(buffer, 4 * MIB, 5 * MIB, NULL, NULL));
    OK(gpumem_buffer_decommit(buffer, 4 * MIB, 4 * MIB, NULL, &released));
    assert_int_equal(released, 4 * MIB);
    assert_int_equal(gpumem_buffer_committed(buffer), 4 * MIB);
    assert_int_equal(stats_of(wrapper).committed_bytes, 4 * MIB);
    assert_int_equal(device_stats().committed_bytes, 4 * MIB);
    FAILS_SAYING(INVALID_ARGUMENT, "decommitted", gpumem_buffer_fill(buffer, 4 * MIB, 1, 1, NULL));
    FAILS_SAYING(INVALID_ARGUMENT, "decommitted", gpumem_buffer_view(buffer, MIB, 4 * MIB, &view));
    OK(gpumem_buffer_recommit(buffer, 0, 8 * MIB));
    assert_int_equal(gpumem_buffer_committed(buffer), 8 * MIB);
    OK(gpumem_buffer_set_access(buffer, 0, 4 * MIB, 0, GPUMEM_ACCESS_READ, NULL));
    OK(gpumem_buffer_get_access(buffer, 4 * MIB - 1, 0, &access));
    assert_int_equal(access, GPUMEM_ACCESS_READ);
    FAILS(NOT_PERMITTED, gpumem_buffer_fill(buffer, MIB, 1, 1, NULL));
    OK(gpumem_buffer_fill(buffer, 4 * MIB, 4 * MIB, 0x32, NULL));
    assert_int_equal(byte_at(buffer, 0), 0x31);
    OK(gpumem_buffer_mark_shared(buffer));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(device_stats().committed_bytes, 0);
}

/* The old address is used until the gate opens. */
static void moves(gpumem_resource *wrapper) {
    struct gate gate = gate_with_stream();
    CUstream last = NEW_STREAM();
    gpumem_buffer *buffer = allocate(wrapper, gate.stream);
    CUdeviceptr before = gpumem_buffer_pointer(buffer), now = 0;
    OK(gpumem_buffer_hold(buffer));
    FAILS(BUSY, gpumem_buffer_move_to_capacity(buffer, 64 * MIB, NULL, &now));
    OK(gpumem_buffer_release(buffer));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_move_to_capacity(buffer, MIB, NULL, &now));
    OK(gpumem_buffer_move_to_capacity(buffer, 64 * MIB, last, &now));
    assert_true(now != before && now == gpumem_buffer_pointer(buffer));
    assert_int_equal(gpumem_buffer_capacity(buffer), 64 * MIB);
    gate_drain(&gate); /* no fault */
    OK(gpumem_buffer_grow(buffer, 48 * MIB, NULL));
    assert_int_equal(byte_at(buffer, 8 * MIB - 1), 0x31);
    OK(gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
    assert_int_equal(byte_at(buffer, 0), 0x31);
    DESTROY(buffer, last);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().reserved_bytes + device_stats().committed_bytes, 0);
    assert_int_equal(stats_of(wrapper).reserved_bytes + stats_of(wrapper).in_use_bytes, 0);
    DESTROY(&gate);
}

static gpumem_resource *make_virtual(void) {
    return NEW_VIRTUAL(.maximum_chunk_bytes = 4 * MIB, .exact_growth = 1);
}

TEST(every_wrapper_passes_on_what_virtual_buffers_can_do) {
    gpumem_resource *memory = make_virtual(), *pool = new_own_pool();
    gpumem_resource *aligned = NEW_ALIGNMENT(memory, .alignment = 4096);
    gpumem_resource *const wrappers[] = {
        memory,
        NEW_LIMIT(memory, GIB),
        NEW_LOGGING(memory, .fn = ignore),
        NEW_TRACE(memory, .write = drop),
        NEW_TRACKING(memory, .frames = 1),
        NEW_FAILURE(memory, .fn = give_up),
        NEW_FALLBACK(memory, pool),
        NEW_TRACKING(aligned, .frames = 1),
        NEW_FALLBACK(aligned, pool),
        aligned,
    };
    for (size_t i = 0; i < COUNT(wrappers); i++) {
        holes_and_access(wrappers[i]);
        moves(wrappers[i]);
    }
    DESTROY_EACH(wrappers + 1, COUNT(wrappers) - 1);
    DESTROY(memory, pool);
}

TEST(a_wrapped_buffer_without_mappings_of_its_own_is_refused) {
    gpumem_resource *memory = make_virtual(), *pool = new_own_pool();
    gpumem_resource *either = NEW_FALLBACK(pool, memory);
    gpumem_buffer *buffer = NEW_BUFFER(either, 4 * MIB);
    CUdeviceptr now;
    FAILS_SAYING(NOT_SUPPORTED, "fallback", gpumem_buffer_decommit(buffer, 0, MIB, NULL, NULL));
    FAILS(NOT_SUPPORTED, gpumem_buffer_recommit(buffer, 0, MIB));
    FAILS(NOT_SUPPORTED, gpumem_buffer_mark_shared(buffer));
    FAILS(NOT_SUPPORTED, gpumem_buffer_move_to_capacity(buffer, 8 * MIB, NULL, &now));
    DESTROY(buffer, either, pool, memory);
}

/* New addresses would not keep it. */
TEST(a_buffer_with_a_large_alignment_cannot_be_moved) {
    gpumem_resource *memory = make_virtual();
    gpumem_resource *aligned = NEW_ALIGNMENT(memory, .alignment = 8 * MIB);
    gpumem_buffer *buffer = allocate(aligned, NULL);
    CUdeviceptr before = gpumem_buffer_pointer(buffer), now = 0;
    FAILS_SAYING(NOT_SUPPORTED, "multiples of 8388608",
                 gpumem_buffer_move_to_capacity(buffer, 64 * MIB, NULL, &now));
    assert_true(gpumem_buffer_pointer(buffer) == before && now == 0);
    DESTROY(buffer, aligned, memory);
}
