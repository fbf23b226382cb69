/* A virtual buffer that outran its capacity gets another address, and keeps its memory. */
#include "library_test.h"

#include <errno.h>

EACH_TEST(open_device, close_device);

static void end(gpumem_buffer *buffer, gpumem_resource *resource) {
    DESTROY(buffer, resource);
    gpumem_stats stats = device_stats();
    assert_int_equal(stats.committed_bytes + stats.reserved_bytes + stats.chunks + stats.mappings +
                         stats.quarantined,
                     0);
}

TEST(moving_a_buffer_keeps_memory_and_content) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = allocate_on(resource, 4 * MIB, NULL);
    CUdeviceptr before = gpumem_buffer_pointer(buffer), now = 0;
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 0x5a, NULL));
    synchronize(NULL);
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    uint64_t created = soft->call_count("cuMemCreate");
    OK(gpumem_buffer_move_to_capacity(buffer, 63 * MIB, NULL, &now));
    assert_int_equal(soft->call_count("cuMemCreate"), created);
    assert_true(now != before && now == gpumem_buffer_pointer(buffer));
    assert_int_equal(gpumem_buffer_capacity(buffer), 64 * MIB);
    assert_int_equal(gpumem_buffer_size(buffer), 4 * MIB);
    assert_false(is_mapped(before)); /* nothing used it any more */
    OK(gpumem_buffer_grow(buffer, 64 * MIB, NULL));
    unsigned char *host = malloc(4 * MIB);
    assert_non_null(host);
    OK(gpumem_buffer_read(buffer, 0, host, 4 * MIB, NULL));
    synchronize(NULL);
    for (size_t i = 0; i < 4 * MIB; i++)
        assert_int_equal(host[i], 0x5a);
    free(host);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (reserved_bytes, 64 * MIB), (committed_bytes, 64 * MIB));
    OK(gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
    OK(gpumem_buffer_move_to_capacity(buffer, 4 * MIB, NULL, &now)); /* less will do as well */
    assert_int_equal(gpumem_buffer_capacity(buffer), gpumem_buffer_committed(buffer));
    end(buffer, resource);
}

/* Queued before the move, for the old address; run after it. */
TEST(the_old_address_is_valid_until_its_last_use) {
    gpumem_resource *resource = NEW_VIRTUAL();
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_on(resource, 4 * MIB, gate.stream);
    CUdeviceptr before = gpumem_buffer_pointer(buffer), now = 0;
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 0x77, gate.stream));
    OK(gpumem_buffer_move_to_capacity(buffer, 32 * MIB, NULL, &now));
    assert_true(is_mapped(before) && is_mapped(now));
    assert_int_equal(device_stats().deferred_frees, 1);
    assert_int_equal(device_stats().committed_bytes, 4 * MIB); /* once */
    OK(gpumem_buffer_fill(buffer, 0, MIB, 0x78, gate.stream));
    gate_drain(&gate); /* no fault */
    unsigned char bytes[2];
    OK(gpumem_buffer_read(buffer, 0, &bytes[0], 1, gate.stream));
    OK(gpumem_buffer_read(buffer, 4 * MIB - 1, &bytes[1], 1, gate.stream));
    synchronize(gate.stream);
    assert_int_equal(bytes[0], 0x78);
    assert_int_equal(bytes[1], 0x77);
    OK(gpumem_device_trim(device, 0));
    assert_false(is_mapped(before));
    end(buffer, resource);
    gate_remove(&gate);
}

/* The freed buffer's memory outlives its other address, or the other way round. */
TEST(a_buffer_may_be_freed_right_after_moving) {
    gpumem_resource *resource = NEW_VIRTUAL(.cache_bytes = GIB);
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_on(resource, 4 * MIB, gate.stream);
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 1, gate.stream));
    (void)MADE(CUdeviceptr, gpumem_buffer_move_to_capacity, buffer, 8 * MIB, NULL);
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 2, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL));
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().committed_bytes + device_stats().reserved_bytes, 0);
    DESTROY(resource, &gate);
}

TEST(moving_a_buffer_keeps_holes_and_access) {
    gpumem_resource *resource = NEW_VIRTUAL(.maximum_chunk_bytes = 4 * MIB, .exact_growth = 1);
    gpumem_buffer *buffer = allocate_on(resource, 12 * MIB, NULL);
    OK(gpumem_buffer_decommit(buffer, 0, 4 * MIB, NULL, NULL));
    OK(gpumem_buffer_set_access(buffer, 4 * MIB, 4 * MIB, 0, GPUMEM_ACCESS_READ, NULL));
    (void)MADE(CUdeviceptr, gpumem_buffer_move_to_capacity, buffer, 32 * MIB, NULL);
    gpumem_access access = MADE(gpumem_access, gpumem_buffer_get_access, buffer, 4 * MIB, 0);
    assert_int_equal(access, GPUMEM_ACCESS_READ);
    assert_int_equal(gpumem_buffer_committed(buffer), 8 * MIB);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill(buffer, 0, 1, 1, NULL));
    OK(gpumem_buffer_recommit(buffer, 0, 4 * MIB));
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 1, NULL));
    assert_int_equal(MADE(size_t, gpumem_buffer_decommit, buffer, 0, 12 * MIB, NULL), 12 * MIB);
    end(buffer, resource);
}

TEST(a_held_or_exported_buffer_cannot_move) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = allocate_on(resource, 4 * MIB, NULL);
    CUdeviceptr now = 7;
    char *before = soft->state_dump();
    OK(gpumem_buffer_hold(buffer));
    FAILS_SAYING(BUSY, "cannot move", gpumem_buffer_move_to_capacity(buffer, 8 * MIB, NULL, &now));
    OK(gpumem_buffer_release(buffer));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_move_to_capacity(buffer, 4 * MIB - 1, NULL, &now));
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_move_to_capacity(buffer, SIZE_MAX, NULL, &now));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_move_to_capacity(buffer, 8 * MIB, NULL, NULL));
    assert_int_equal(now, 7);
    SAME_STATE(before);
    end(buffer, resource);
    gpumem_resource *pool = NEW_POOL();
    buffer = allocate_on(pool, 1024, NULL);
    FAILS(NOT_SUPPORTED, gpumem_buffer_move_to_capacity(buffer, 8 * MIB, NULL, &now));
    DESTROY(buffer, pool);
}

TEST(wrapped_buffers_can_be_moved) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_resource *limit = NEW_LIMIT(resource, GIB);
    gpumem_buffer *buffer = allocate_on(limit, 4 * MIB, NULL);
    (void)MADE(CUdeviceptr, gpumem_buffer_move_to_capacity, buffer, 8 * MIB, NULL);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    OK(gpumem_buffer_fill(buffer, 0, 8 * MIB, 1, NULL));
    gpumem_stats stats = stats_of(limit);
    assert_int_equal(stats.reserved_bytes, 8 * MIB);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_trim(device, 1));
    stats = stats_of(limit);
    assert_int_equal(stats.reserved_bytes, 0);
    DESTROY(limit, resource);
}

static int keep_text(void *user, const char *text, size_t bytes) {
    char *kept = user;
    size_t used = strlen(kept);
    if (bytes >= 4096 - used)
        return ENOSPC;
    memcpy(kept + used, text, bytes);
    kept[used + bytes] = 0;
    return 0;
}

static int keep_tracked(void *user, const gpumem_tracked *tracked) {
    *(CUdeviceptr *)user = tracked->pointer;
    return 0;
}

TEST(wrappers_track_a_moved_buffer_by_its_new_address) {
    char text[4096] = "", wanted[128];
    gpumem_resource *resource = NEW_VIRTUAL(), *tracking;
    OK(gpumem_tracking_resource_create(resource, NULL, &tracking));
    gpumem_resource *trace = NEW_TRACE(tracking, .write = keep_text, .user = text);
    gpumem_buffer *buffer = allocate_on(trace, 4 * MIB, NULL);
    CUdeviceptr now = 0, tracked = 0;
    OK(gpumem_buffer_move_to_capacity(buffer, 64 * MIB, NULL, &now));
    OK(gpumem_tracking_visit(tracking, keep_tracked, &tracked));
    assert_true(tracked == now);
    OK(gpumem_buffer_free(buffer, NULL));
    tracked = 0;
    OK(gpumem_tracking_visit(tracking, keep_tracked, &tracked));
    assert_true(tracked == 0);
    OK(gpumem_trace_flush(trace));
    snprintf(wanted, sizeof wanted, "resize,1,%zu,0,%zu,0x0,0x%llx,", 4 * MIB, 64 * MIB, now);
    assert_non_null(strstr(text, wanted));
    snprintf(wanted, sizeof wanted, "free,1,%zu,0,0,0x0,0x%llx,", 4 * MIB, now);
    assert_non_null(strstr(text, wanted));
    DESTROY(trace, tracking, resource);
}
