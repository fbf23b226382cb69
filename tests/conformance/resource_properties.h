/*
 * What is asked of every kind of resource: one function a property. What a kind cannot do must be
 * refused with a message; that is checked too, and printed as the reason of the skip where nothing
 * else is left to check. Header only, as library.h is.
 */
#ifndef CONFORMANCE_RESOURCE_PROPERTIES_H
#define CONFORMANCE_RESOURCE_PROPERTIES_H

#include "resource_kinds.h"

#include <pthread.h>
#include <stdatomic.h>

/* A resource of the kind at hand, two streams, and pinned memory for what is read. */
struct scene {
    const struct kind *kind;
    struct stack stack;
    gpumem_resource *resource; /* the top */
    gpumem_resource_properties is;
    gpumem_stats before; /* of the device */
    CUstream stream, other;
    unsigned char *seen; /* SEEN bytes */
};

#define SEEN (4 * MIB)

/* ---- Steps ----------------------------------------------------------------------------------- */

/* The last call was refused as it should be, in words. */
static inline void check_refusal(gpumem_status got, gpumem_status wanted, const char *call) {
    const char *message = gpumem_last_error()->message;
    if (got != wanted || strlen(message) < 10)
        fail_msg("%s answered %s with the message '%s'", call, gpumem_status_name(got), message);
}
#define REFUSED(wanted, call) check_refusal((call), GPUMEM_ERROR_##wanted, #call)

static inline gpumem_stats stats_of(gpumem_resource *resource) {
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_resource_get_stats(resource, &stats));
    return stats;
}

static inline gpumem_buffer *take(const struct scene *s, size_t bytes, CUstream stream) {
    gpumem_buffer *buffer = NEW_BUFFER_WITH(s->resource, bytes, .stream = stream);
    assert_non_null(buffer);
    assert_int_equal(gpumem_buffer_size(buffer), bytes);
    assert_int_equal(gpumem_buffer_host_pointer(buffer) != NULL, s->is.host_accessible);
    return buffer;
}

static inline void give(gpumem_buffer *buffer, CUstream stream) {
    OK(gpumem_buffer_free(buffer, stream));
}

static inline void write_seed(const struct scene *s, gpumem_buffer *buffer, unsigned seed) {
    size_t size = gpumem_buffer_size(buffer);
    assert_true(size <= SEEN);
    fill_pattern(s->seen, size, seed);
    OK(write_now(buffer, 0, s->seen, size, s->stream));
}

static inline void check_seed(const struct scene *s, gpumem_buffer *buffer, unsigned seed) {
    size_t size = gpumem_buffer_size(buffer);
    memset(s->seen, 0, size);
    OK(read_now(buffer, 0, s->seen, size, s->stream));
    if (!has_pattern(s->seen, size, seed))
        fail_msg("%zu bytes are not those of seed %u", size, seed);
    if (s->is.host_accessible && !has_pattern(gpumem_buffer_host_pointer(buffer), size, seed))
        fail_msg("the CPU sees other bytes");
}

/* ---- Allocating and freeing ------------------------------------------------------------------ */

static inline void use_sizes(const struct scene *s, CUstream stream) {
    static const size_t sizes[] = {1, 255, 4 * KIB, 70001, 3 * MIB};
    gpumem_buffer *buffers[COUNT(sizes)];
    for (size_t i = 0; i < COUNT(sizes); i++) {
        buffers[i] = take(s, sizes[i], stream);
        if (stream == NULL) /* usable on that stream at once, elsewhere after what orders it */
            OK(gpumem_stream_synchronize(device, NULL));
        write_seed(s, buffers[i], (unsigned)i);
    }
    for (size_t i = 0; i < COUNT(sizes); i++) {
        check_seed(s, buffers[i], (unsigned)i);
        give(buffers[i], stream == GPUMEM_STREAM_NONE ? NULL : stream);
    }
}

static inline void is_allocated_on_a_stream(struct scene *s) {
    use_sizes(s, s->stream);
}

static inline void is_allocated_on_the_default_stream(struct scene *s) {
    use_sizes(s, NULL);
}

/* What is handed out in the order of streams wants one named, but for pools, which have their own.
 */
static inline void is_allocated_on_no_stream_or_says_no(struct scene *s) {
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_buffer_allocate(
        s->resource, 1, GPUMEM_BUFFER_OPTIONS(.stream = GPUMEM_STREAM_NONE), &buffer);
    if (status != GPUMEM_OK) {
        assert_true(s->is.stream_ordered);
        check_refusal(status, GPUMEM_ERROR_INVALID_ARGUMENT, "gpumem_buffer_allocate");
        print_message("no stream: %s\n", gpumem_last_error()->message);
        return;
    }
    give(buffer, NULL);
    use_sizes(s, GPUMEM_STREAM_NONE);
}

static inline void is_allocated_by_pointer(struct scene *s) {
    CUdeviceptr pointer = MADE(CUdeviceptr, gpumem_resource_allocate, s->resource, 5000,
                               GPUMEM_BUFFER_OPTIONS(.stream = s->stream));
    assert_true(pointer != 0);
    REFUSED(INVALID_ARGUMENT, gpumem_resource_deallocate(s->resource, pointer, 4999, s->stream));
    REFUSED(INVALID_ARGUMENT, gpumem_resource_deallocate(s->resource, pointer + 1, 5000, NULL));
    OK(gpumem_resource_deallocate(s->resource, pointer, 5000, s->stream));
    REFUSED(INVALID_ARGUMENT, gpumem_resource_deallocate(s->resource, pointer, 5000, s->stream));
}

static inline void aligns(struct scene *s) {
    static const size_t most[] = {0, 1, 256, 4 * KIB, 64 * KIB, 2 * MIB};
    unsigned given = 0;
    for (size_t i = 0; i < COUNT(most); i++) {
        gpumem_buffer *buffer = NULL;
        gpumem_status status = gpumem_buffer_allocate(
            s->resource, 1000, GPUMEM_BUFFER_OPTIONS(.stream = s->stream, .alignment = most[i]),
            &buffer);
        if (status != GPUMEM_OK) { /* what it cannot give it must refuse, but not the least */
            assert_true(most[i] > 256);
            assert_true(strlen(gpumem_last_error()->message) >= 10);
            print_message("%zu: %s\n", most[i], gpumem_last_error()->message);
            continue;
        }
        assert_int_equal(gpumem_buffer_pointer(buffer) % (most[i] > 256 ? most[i] : 256), 0);
        give(buffer, s->stream);
        given++;
    }
    assert_true(given >= 3);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static inline void refuses_bad_arguments(struct scene *s) {
    gpumem_buffer *buffer = NULL;
    gpumem_buffer_options unsized = {.size = 0, .alignment = 256};
    uint64_t before = stats_of(s->resource).in_use_bytes;
    REFUSED(INVALID_ARGUMENT, gpumem_buffer_allocate(s->resource, 0, NULL, &buffer));
    REFUSED(INVALID_ARGUMENT, gpumem_buffer_allocate(s->resource, 1, NULL, NULL));
    REFUSED(INVALID_ARGUMENT, gpumem_buffer_allocate(s->resource, 1, &unsized, &buffer));
    REFUSED(INVALID_ARGUMENT,
            gpumem_buffer_allocate(s->resource, 1, GPUMEM_BUFFER_OPTIONS(.alignment = 3), &buffer));
    assert_int_not_equal(
        gpumem_buffer_allocate(s->resource, 2, GPUMEM_BUFFER_OPTIONS(.capacity = 1), &buffer),
        GPUMEM_OK);
    assert_null(buffer);
    assert_int_equal(stats_of(s->resource).in_use_bytes, before);
}

static inline void refuses_huge_sizes(struct scene *s) {
    static const size_t sizes[] = {SIZE_MAX,        SIZE_MAX - 1,   SIZE_MAX - 255,
                                   SIZE_MAX - 4095, SIZE_MAX / 2,   SIZE_MAX / 2 + 1,
                                   (size_t)1 << 62, (size_t)1 << 48};
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (size_t alignment = 0; alignment <= 2 * MIB; alignment += 2 * MIB) {
            gpumem_buffer *buffer = NULL;
            gpumem_status status = gpumem_buffer_allocate(
                s->resource, sizes[i],
                GPUMEM_BUFFER_OPTIONS(.stream = s->stream, .alignment = alignment), &buffer);
            if (status != GPUMEM_ERROR_OUT_OF_MEMORY && status != GPUMEM_ERROR_OUT_OF_CAPACITY &&
                status != GPUMEM_ERROR_OUT_OF_HOST_MEMORY &&
                status != GPUMEM_ERROR_INVALID_ARGUMENT && status != GPUMEM_ERROR_NOT_SUPPORTED)
                fail_msg("%zu bytes answer %s: %s", sizes[i], gpumem_status_name(status),
                         gpumem_last_error()->message);
            assert_true(strlen(gpumem_last_error()->message) >= 10);
            assert_null(buffer);
        }
    assert_int_equal(stats_of(s->resource).in_use_bytes, 0);
    is_allocated_on_a_stream(s); /* it goes on */
}

/* A limit over it, whatever it is. */
static inline void is_limited(struct scene *s) {
    gpumem_resource *limited = NULL;
    gpumem_buffer *first = NULL, *second = NULL;
    OK(gpumem_limiting_resource_create(s->resource, 3 * MIB, &limited));
    first = NEW_BUFFER_WITH(limited, 2 * MIB, .stream = s->stream);
    REFUSED(OUT_OF_CAPACITY,
            gpumem_buffer_allocate(limited, 2 * MIB, GPUMEM_BUFFER_OPTIONS(.stream = s->stream),
                                   &second));
    give(first, s->stream);
    second = NEW_BUFFER_WITH(limited, 2 * MIB, .stream = s->stream);
    give(second, s->stream);
    OK(gpumem_resource_destroy(limited));
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* Whatever comes, goes and is trimmed beside them. */
static inline void keeps_bytes(struct scene *s) {
    gpumem_buffer *kept[8];
    for (unsigned i = 0; i < COUNT(kept); i++) {
        kept[i] = take(s, 10000 * (i + 1), s->stream);
        write_seed(s, kept[i], i);
    }
    for (unsigned i = 0; i < 20; i++) {
        gpumem_buffer *passing = take(s, 5000 * (i + 1), s->stream);
        write_seed(s, passing, 100 + i);
        give(passing, s->stream);
        if (i % 7 == 0)
            OK(gpumem_resource_trim(s->resource, 0));
    }
    for (unsigned i = 0; i < COUNT(kept); i++) {
        check_seed(s, kept[i], i);
        give(kept[i], s->stream);
    }
}

static inline void *free_there(void *buffer) {
    return gpumem_buffer_free(buffer, NULL) == GPUMEM_OK ? NULL : buffer;
}

static inline void is_freed_by_another_thread(struct scene *s) {
    for (unsigned i = 0; i < 4; i++) {
        gpumem_buffer *buffer = take(s, 20000, s->stream);
        pthread_t thread;
        void *failed;
        write_seed(s, buffer, i);
        assert_int_equal(pthread_create(&thread, NULL, free_there, buffer), 0);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
    }
}

/*
 * Queued work reads what was there, although the buffer was freed and more was asked for, and the
 * CPU wrote into that. It is read into device memory, since a copy within the host would wait. The
 * second is allocated before the gate closes where an allocation may wait for the context's work.
 */
static inline void is_freed_under_queued_work(struct scene *s) {
    struct gate gate;
    bool waits = s->kind->make == memory_managed ||
                 (s->kind->make == cached && s->kind->which == CACHED_MANAGED);
    gate_make(&gate);
    CUdeviceptr landing = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 2 * MIB);
    gpumem_buffer *first = take(s, MIB, s->stream), *second = NULL;
    if (waits)
        second = take(s, MIB, s->other);
    OK(fill_now(first, 0, MIB, 0x11, s->stream));
    gate_hold(&gate, s->stream);
    OK(copy_bytes(device, landing, gpumem_buffer_pointer(first), MIB, s->stream));
    give(first, s->stream);
    if (!waits)
        second = take(s, MIB, s->other);
    if (s->is.host_accessible && !s->is.stream_ordered)
        memset(gpumem_buffer_host_pointer(second), 0x33, MIB);
    OK(gpumem_buffer_fill(second, 0, MIB, 0x22, s->other));
    OK(copy_bytes(device, landing + MIB, gpumem_buffer_pointer(second), MIB, s->other));
    gate_release(&gate);
    OK(gpumem_stream_synchronize(device, s->stream));
    OK(gpumem_stream_synchronize(device, s->other));
    OK_CU(cu.cuMemcpyDtoH_v2(s->seen, landing, 2 * MIB));
    for (size_t i = 0; i < MIB; i++)
        if (s->seen[i] != 0x11 || s->seen[MIB + i] != 0x22)
            fail_msg("byte %zu: %02x and %02x", i, s->seen[i], s->seen[MIB + i]);
    give(second, s->other);
    OK(gpumem_device_trim(device, 1));
    OK_CU(cu.cuMemFree_v2(landing));
    gate_free(&gate);
}

/* ---- Counting -------------------------------------------------------------------------------- */

static inline void adds_up(struct scene *s) {
    enum { BUFFERS = 5 };
    gpumem_buffer *buffers[BUFFERS], *refused = NULL;
    gpumem_stats before = stats_of(s->resource), now;
    uint64_t sum = 0;
    for (unsigned i = 0; i < BUFFERS; i++) {
        buffers[i] = take(s, 1000 + i * 100000, s->stream);
        sum += 1000 + i * 100000;
    }
    now = stats_of(s->resource);
    MEMBERS(now, (allocations, BUFFERS), (allocations_total, before.allocations_total + BUFFERS),
            (in_use_bytes, sum));
    assert_true(now.in_use_high >= sum);
    assert_true(device_stats().in_use_bytes >= s->before.in_use_bytes + sum);
    assert_true(now.quarantined == 0);
    assert_int_not_equal(gpumem_buffer_allocate(s->resource, SIZE_MAX / 2, NULL, &refused),
                         GPUMEM_OK);
    assert_true(stats_of(s->resource).allocations_failed > before.allocations_failed);
    assert_int_equal(stats_of(s->resource).allocations_total, now.allocations_total);
    for (unsigned i = 0; i < BUFFERS; i++)
        give(buffers[i], s->stream);
    now = stats_of(s->resource);
    MEMBERS(now, (allocations, 0), (in_use_bytes, 0)); /* a cache may still ask about its streams */
    OK(gpumem_stream_synchronize(device, s->stream));
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().allocations, s->before.allocations);
    assert_int_equal(device_stats().in_use_bytes, s->before.in_use_bytes);
}

static inline void gives_back_what_is_trimmed(struct scene *s) {
    give(take(s, 3 * MIB, s->stream), s->stream);
    give(take(s, 3000, s->stream), s->stream);
    OK(gpumem_stream_synchronize(device, s->stream));
    OK(gpumem_device_trim(device, 1));
    for (unsigned i = s->stack.count; i > 0; i--)
        OK(gpumem_resource_trim(s->stack.resources[i - 1], 0));
    assert_int_equal(stats_of(s->resource).cached_bytes, 0);
    gpumem_stats now = device_stats();
    MEMBERS(now, (cached_bytes, s->before.cached_bytes),
            (committed_bytes, s->before.committed_bytes), (pinned_bytes, s->before.pinned_bytes),
            (reserved_bytes, s->before.reserved_bytes));
}

static inline void is_not_destroyed_while_it_is_used(struct scene *s) {
    gpumem_buffer *buffer = take(s, 10000, s->stream);
    write_seed(s, buffer, 7);
    REFUSED(BUSY, gpumem_resource_destroy(s->resource));
    for (unsigned i = 0; i + 1 < s->stack.count; i++)
        REFUSED(BUSY, gpumem_resource_destroy(s->stack.resources[i]));
    REFUSED(BUSY, gpumem_device_close(device));
    check_seed(s, buffer, 7);
    give(buffer, s->stream);
}

static inline void tells_what_it_is(struct scene *s) {
    gpumem_resource_properties unsized = {.size = 0};
    assert_true(strlen(s->is.kind) > 2);
    assert_true(s->is.granularity >= 1);
    assert_true(s->is.device_accessible == 1 || s->is.note[0]);
    assert_ptr_equal(gpumem_resource_device(s->resource), device);
    REFUSED(INVALID_ARGUMENT, gpumem_resource_get_properties(s->resource, &unsized));
    gpumem_buffer *buffer = take(s, MIB, s->stream);
    gpumem_buffer_attributes attributes = {.size = sizeof attributes};
    OK(gpumem_buffer_get_attributes(buffer, &attributes));
    assert_int_equal(attributes.host_accessible, s->is.host_accessible);
    assert_int_equal(attributes.device_accessible, s->is.device_accessible);
    assert_int_equal(attributes.foreign + attributes.imported, 0);
    assert_null(attributes.viewed);
    give(buffer, s->stream);
}

/* ---- Growing, sharing ------------------------------------------------------------------------ */

static inline void grow_and_shrink(struct scene *s) {
    unsigned char byte = 0;
    gpumem_buffer *buffer =
        NEW_BUFFER_WITH(s->resource, MIB, .stream = s->stream, .capacity = 4 * MIB);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    write_seed(s, buffer, 3);
    OK(gpumem_buffer_grow(buffer, 3 * MIB + 5, s->stream));
    assert_int_equal(gpumem_buffer_size(buffer), 3 * MIB + 5);
    assert_int_equal(gpumem_buffer_pointer(buffer), address);
    OK(fill_now(buffer, MIB, 2 * MIB + 5, 0x3c, s->stream));
    OK(read_now(buffer, 3 * MIB + 4, &byte, 1, s->stream));
    assert_int_equal(byte, 0x3c);
    REFUSED(OUT_OF_CAPACITY, gpumem_buffer_grow(buffer, (size_t)1 << 40, s->stream));
    OK(gpumem_buffer_shrink(buffer, MIB, s->stream));
    check_seed(s, buffer, 3);
    give(buffer, s->stream);
}

static inline void grows_or_says_no(struct scene *s) {
    if (s->is.can_resize) {
        grow_and_shrink(s);
        return;
    }
    gpumem_buffer *buffer = take(s, MIB, s->stream), *none = NULL;
    write_seed(s, buffer, 4);
    REFUSED(NOT_SUPPORTED, gpumem_buffer_grow(buffer, 2 * MIB, s->stream));
    print_message("grow: %s\n", gpumem_last_error()->message);
    REFUSED(NOT_SUPPORTED, gpumem_buffer_shrink(buffer, KIB, s->stream));
    REFUSED(NOT_SUPPORTED, gpumem_buffer_decommit(buffer, 0, MIB, s->stream, NULL));
    gpumem_status status = gpumem_buffer_allocate(
        s->resource, MIB, GPUMEM_BUFFER_OPTIONS(.stream = s->stream, .capacity = 4 * MIB), &none);
    assert_true(status == GPUMEM_ERROR_INVALID_ARGUMENT || status == GPUMEM_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpumem_buffer_size(buffer), MIB);
    check_seed(s, buffer, 4);
    give(buffer, s->stream);
}

static inline void import_again(struct scene *s, gpumem_export *exported, unsigned seed) {
    const void *description = NULL;
    gpumem_buffer *imported = NULL;
    size_t bytes = 0, count = export_info(exported).descriptor_count;
    int fds[8];
    assert_true(count <= COUNT(fds));
    OK(export_description(exported, &description, &bytes));
    for (size_t i = 0; i < count; i++)
        OK(export_descriptor(exported, i, &fds[i]));
    OK(gpumem_import_create(device, description, bytes, fds, count, NULL, &imported));
    memset(s->seen, 0, MIB);
    OK(read_now(imported, 0, s->seen, MIB, s->stream));
    assert_true(has_pattern(s->seen, MIB, seed));
    give(imported, s->stream);
}

static inline void is_exported_or_says_no(struct scene *s) {
    gpumem_buffer *buffer = take(s, MIB, s->stream);
    gpumem_export *exported = NULL;
    write_seed(s, buffer, 5);
    gpumem_status status = gpumem_export_create(buffer, &exported);
    if (status == GPUMEM_OK) {
        assert_int_equal(s->is.exportable, 1);
        import_again(s, exported, 5);
        OK(gpumem_export_destroy(exported));
    } else {
        check_refusal(status, GPUMEM_ERROR_NOT_SUPPORTED, "gpumem_export_create");
        print_message("export: %s\n", gpumem_last_error()->message);
        gpumem_pool_info info = {.size = sizeof info};
        if (gpumem_pool_get_info(s->resource, &info) == GPUMEM_OK && info.ipc_enabled) {
            gpumem_pool_share_buffer shared = {.size = sizeof shared};
            OK(gpumem_pool_export_buffer(buffer, &shared));
            assert_int_equal(shared.bytes, MIB);
        }
    }
    give(buffer, s->stream);
}

static inline void is_viewed(struct scene *s) {
    gpumem_buffer *buffer = take(s, 100000, s->stream), *view = NULL;
    write_seed(s, buffer, 6);
    OK(gpumem_buffer_view(buffer, 2510, 50, &view)); /* the pattern repeats after 251 bytes */
    give(buffer, s->stream);
    check_seed(s, view, 6);
    REFUSED(NOT_SUPPORTED, gpumem_buffer_grow(view, 60, NULL));
    give(view, s->stream);
}

/* Bytes go to a second device and come back. */
static inline void is_copied_to_another_device(struct scene *s) {
    gpumem_device *second = NULL;
    gpumem_buffer *buffer = take(s, MIB, s->stream), *copy = NULL;
    write_seed(s, buffer, 8);
    OK(gpumem_device_open(library, 1 - gpumem_device_ordinal(device), &second));
    const int here = gpumem_device_ordinal(device);
    int can = MADE(bool, gpumem_device_can_access_peer, device, 1 - here);
    gpumem_resource *there =
        MADE(gpumem_resource *, gpumem_virtual_resource_create, second,
             GPUMEM_VIRTUAL_OPTIONS(.peers = &here, .peer_count = can ? 1 : 0));
    copy = NEW_BUFFER(there, MIB);
    if (can) {
        OK(copy_now(copy, 0, buffer, 0, MIB, s->stream));
        OK(fill_now(buffer, 0, MIB, 0, s->stream));
        OK(copy_now(buffer, 0, copy, 0, MIB, s->stream));
    }
    check_seed(s, buffer, 8);
    give(copy, NULL);
    give(buffer, s->stream);
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_resource_destroy(there));
    OK(gpumem_device_close(second));
    if (!can)
        print_message("device %d cannot reach device %d\n", here, 1 - here);
}

/* ---- Captures -------------------------------------------------------------------------------- */

/* The graph writes and reads the memory; NULL where the resource does not serve captures. */
static inline gpumem_buffer *use_in_capture(struct scene *s) {
    gpumem_buffer *buffer = NULL;
    gpumem_status status = gpumem_buffer_allocate(
        s->resource, 64 * KIB, GPUMEM_BUFFER_OPTIONS(.stream = s->stream), &buffer);
    if (status != GPUMEM_OK) {
        assert_true(strlen(gpumem_last_error()->message) >= 10);
        assert_null(buffer);
        return NULL;
    }
    OK(gpumem_buffer_fill(buffer, 0, 64 * KIB, 0x5a, s->stream));
    OK(gpumem_buffer_read(buffer, 0, s->seen, 64 * KIB, s->stream));
    if (s->kind->of_the_graph)
        give(buffer, s->stream);
    return buffer;
}

static inline void launch_twice(struct scene *s, CUgraph graph) {
    CUgraphExec exec = MADE_CU(CUgraphExec, cuGraphInstantiateWithFlags, graph, 0);
    for (int i = 0; i < 2; i++) {
        memset(s->seen, 0, 64 * KIB);
        launch_and_wait(exec, s->stream);
        for (size_t j = 0; j < 64 * KIB; j++)
            assert_int_equal(s->seen[j], 0x5a);
    }
    OK_CU(cu.cuGraphExecDestroy(exec));
}

static inline void serves_captures_or_says_no(struct scene *s) {
    gpumem_capture_pool *pool = NULL;
    CUgraph graph = NULL;
    char reason[192] = "";
    /* What is made once is made before. */
    give(take(s, 64 * KIB, s->stream), s->stream);
    OK(gpumem_stream_synchronize(device, s->stream));
    if (s->stack.caching) {
        OK(gpumem_capture_pool_create(s->stack.caching, &pool));
        OK(gpumem_capture_pool_begin(pool, s->stream));
    }
    OK_CU(cu.cuStreamBeginCapture_v2(s->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    gpumem_buffer *buffer = use_in_capture(s);
    if (!buffer)
        snprintf(reason, sizeof reason, "%s", gpumem_last_error()->message);
    OK_CU(cu.cuStreamEndCapture(s->stream, &graph)); /* nothing has invalidated it */
    if (pool)
        OK(gpumem_capture_pool_end(pool, s->stream));
    if (buffer)
        launch_twice(s, graph);
    if (buffer && !s->kind->of_the_graph)
        give(buffer, s->stream);
    OK_CU(cu.cuGraphDestroy(graph));
    if (pool)
        OK(gpumem_capture_pool_destroy(pool, s->stream));
    (void)cu.cuDeviceGraphMemTrim(gpumem_device_handle(device));
    if (!buffer)
        print_message("capture: %s\n", reason);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define HAMMERS 8
#define STROKES 40

struct hammer {
    struct scene *scene;
    CUstream stream;
    unsigned char *seen; /* 64 bytes */
    unsigned number;
    const char *failed;
    char message[160];
};

static inline const char *strike(struct hammer *h, unsigned round) {
    gpumem_buffer *buffer = NULL;
    size_t bytes = 1 + (h->number * 7919 + round * 104729) % 300000,
           probe = bytes < 64 ? bytes : 64;
    unsigned char value = (unsigned char)(h->number * 16 + round);
    if (gpumem_buffer_allocate(h->scene->resource, bytes,
                               GPUMEM_BUFFER_OPTIONS(.stream = h->stream), &buffer) != GPUMEM_OK)
        return "allocate";
    if (gpumem_buffer_fill(buffer, 0, bytes, value, h->stream) != GPUMEM_OK ||
        read_now(buffer, bytes - probe, h->seen, probe, h->stream) != GPUMEM_OK)
        return "fill and read";
    for (size_t i = 0; i < probe; i++)
        if (h->seen[i] != value)
            return "somebody else wrote here";
    return gpumem_buffer_free(buffer, h->stream) == GPUMEM_OK ? NULL : "free";
}

static inline void *hammer_on(void *user) {
    struct hammer *h = user;
    for (unsigned i = 0; i < STROKES && !h->failed; i++)
        h->failed = strike(h, i);
    snprintf(h->message, sizeof h->message, "%.150s", gpumem_last_error()->message);
    return NULL;
}

static inline void is_used_by_many_threads(struct scene *s) {
    struct hammer hammers[HAMMERS];
    pthread_t threads[HAMMERS];
    for (unsigned i = 0; i < HAMMERS; i++) {
        hammers[i] = (struct hammer){.scene = s, .seen = s->seen + (size_t)64 * i, .number = i};
        OK(gpumem_stream_create(device, NULL, &hammers[i].stream));
    }
    for (unsigned i = 0; i < HAMMERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer_on, &hammers[i]), 0);
    for (unsigned i = 0; i < HAMMERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    OK(gpumem_device_trim(device, 1));
    for (unsigned i = 0; i < HAMMERS; i++) {
        OK(gpumem_stream_destroy(device, hammers[i].stream));
        if (hammers[i].failed)
            fail_msg("thread %u: %s: %s", i, hammers[i].failed, hammers[i].message);
    }
    assert_int_equal(stats_of(s->resource).in_use_bytes, 0);
}

static const struct property {
    const char *name;
    void (*check)(struct scene *scene);
    int devices; /* that it needs; 0: one */
} properties[] = {
    {"tells what it is", tells_what_it_is, 0},
    {"is allocated on a stream", is_allocated_on_a_stream, 0},
    {"is allocated on the default stream", is_allocated_on_the_default_stream, 0},
    {"is allocated on no stream, or says no", is_allocated_on_no_stream_or_says_no, 0},
    {"is allocated by pointer", is_allocated_by_pointer, 0},
    {"aligns", aligns, 0},
    {"refuses bad arguments", refuses_bad_arguments, 0},
    {"refuses huge sizes", refuses_huge_sizes, 0},
    {"is limited", is_limited, 0},
    {"keeps bytes", keeps_bytes, 0},
    {"is freed by another thread", is_freed_by_another_thread, 0},
    {"is freed under queued work", is_freed_under_queued_work, 0},
    {"adds up", adds_up, 0},
    {"gives back what is trimmed", gives_back_what_is_trimmed, 0},
    {"is not destroyed while it is used", is_not_destroyed_while_it_is_used, 0},
    {"grows, or says no", grows_or_says_no, 0},
    {"is exported, or says no", is_exported_or_says_no, 0},
    {"is viewed", is_viewed, 0},
    {"is copied to another device", is_copied_to_another_device, 2},
    {"serves captures, or says no", serves_captures_or_says_no, 0},
    {"is used by many threads", is_used_by_many_threads, 0},
};

#endif
