/* Access that is given and taken while virtual buffers live: of a range, and of all at once. */
#include "library_test.h"
#include "opener.h"

#include <gpumem/share.h>
#include <gpumem/virtual.h>
#include <pthread.h>
#include <stdatomic.h>

EACH_TEST(open_device, close_device);

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, size_t capacity,
                               CUstream stream) {
    return NEW_BUFFER_WITH(resource, bytes, .capacity = capacity, .stream = stream);
}

/* By the driver's word, and by the library's. */
static unsigned long long rights(gpumem_buffer *buffer, size_t offset, int ordinal) {
    static const unsigned flags_of[] = {3, 1, 0};
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal};
    unsigned long long flags = 99;
    gpumem_access access = GPUMEM_ACCESS_NONE;
    OK_CU(cu->cuMemGetAccess(&flags, &location, gpumem_buffer_pointer(buffer) + offset));
    OK(gpumem_buffer_get_access(buffer, offset, ordinal, &access));
    assert_int_equal(flags_of[access], flags);
    return flags;
}

static int has_peer(void) {
    bool can = false;
    gpumem_library_info info = {.size = sizeof info};
    if (gpumem_library_get_info(library, &info) == GPUMEM_OK && info.device_count > 1 &&
        gpumem_device_can_access_peer(device, 1, &can) == GPUMEM_OK && can)
        return 1;
    printf("skip: no second device that reaches the first\n");
    return 0;
}

#define NEED_PEER()                                                                                \
    do {                                                                                           \
        if (!has_peer())                                                                           \
            skip();                                                                                \
    } while (0)

TEST(an_access_change_applies_to_present_and_future_buffers) {
    NEED_PEER();
    gpumem_resource *resource = NEW_VIRTUAL(.cache_bytes = GIB);
    gpumem_buffer *present = allocate(resource, 4 * MIB, 16 * MIB, NULL);
    gpumem_buffer *cached = allocate(resource, 8 * MIB, 0, NULL);
    CUdeviceptr kept = gpumem_buffer_pointer(cached);
    OK(gpumem_buffer_free(cached, NULL));
    assert_int_equal(rights(present, 0, 1), 0);
    OK(gpumem_resource_set_access(resource, 1, GPUMEM_ACCESS_READ));
    assert_int_equal(rights(present, 0, 1), 1);
    assert_int_equal(rights(present, 0, 0), 3);
    OK(gpumem_buffer_grow(present, 16 * MIB, NULL));
    assert_int_equal(rights(present, 16 * MIB - 1, 1), 1);
    gpumem_buffer *future = allocate(resource, 2 * MIB, 0, NULL);
    assert_int_equal(rights(future, 0, 1), 1);
    cached = allocate(resource, 8 * MIB, 0, NULL);
    assert_true(gpumem_buffer_pointer(cached) == kept); /* the mapping stayed, with new rights */
    assert_int_equal(rights(cached, 0, 1), 1);
    OK(gpumem_resource_set_access(resource, 1, GPUMEM_ACCESS_READ_WRITE));
    assert_int_equal(rights(cached, 0, 1), 3);
    OK(gpumem_resource_set_access(resource, 1, GPUMEM_ACCESS_NONE));
    assert_int_equal(rights(present, 0, 1) + rights(future, 0, 1) + rights(cached, 0, 1), 0);
    uint64_t calls = soft->call_count("cuMemSetAccess");
    OK(gpumem_resource_set_access(resource, 1, GPUMEM_ACCESS_NONE)); /* as it is */
    assert_int_equal(soft->call_count("cuMemSetAccess"), calls);
    DESTROY(present, future, cached, resource);
}

TEST(the_access_of_a_resource_can_be_read) {
    NEED_PEER();
    gpumem_resource *resource = NEW_VIRTUAL(), *limit = NEW_LIMIT(resource, GIB);
    const gpumem_access set[] = {GPUMEM_ACCESS_READ_WRITE, GPUMEM_ACCESS_READ, GPUMEM_ACCESS_NONE};
    for (size_t i = 0; i < COUNT(set); i++) {
        OK(gpumem_resource_set_access(resource, 1, set[i]));
        assert_int_equal(MADE(gpumem_access, gpumem_resource_get_access, limit, 1), set[i]);
        assert_int_equal(MADE(gpumem_access, gpumem_resource_get_access, limit, 0),
                         GPUMEM_ACCESS_READ_WRITE);
    }
    gpumem_access access;
    FAILS_SAYING(INVALID_ARGUMENT, "99", gpumem_resource_set_access(resource, 99, set[0]));
    FAILS_SAYING(INVALID_ARGUMENT, "99", gpumem_resource_get_access(resource, 99, &access));
    FAILS(INVALID_ARGUMENT, gpumem_resource_get_access(resource, 1, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_resource_set_access(resource, 1, (gpumem_access)7));
    gpumem_resource *pinned = NEW_PINNED();
    FAILS_SAYING(NOT_SUPPORTED, "pinned", gpumem_resource_set_access(pinned, 1, set[0]));
    FAILS_SAYING(NOT_SUPPORTED, "pinned", gpumem_resource_get_access(pinned, 1, &access));
    DESTROY(pinned, limit, resource);
}

TEST(access_to_a_range_changes_whole_chunks) {
    NEED_PEER();
    gpumem_resource *resource = NEW_VIRTUAL(.maximum_chunk_bytes = 4 * MIB, .exact_growth = 1);
    gpumem_buffer *buffer = allocate(resource, 15 * MIB, 32 * MIB, NULL);
    assert_int_equal(chunks_of(buffer), 4);
    OK(gpumem_buffer_set_access(buffer, 4 * MIB, 4 * MIB, 1, GPUMEM_ACCESS_READ, NULL));
    OK(gpumem_buffer_set_access(buffer, 12 * MIB, 3 * MIB, 1, GPUMEM_ACCESS_READ_WRITE, NULL));
    assert_int_equal(rights(buffer, 0, 1), 0);
    assert_int_equal(rights(buffer, 4 * MIB, 1), 1);
    assert_int_equal(rights(buffer, 8 * MIB, 1), 0);
    assert_int_equal(rights(buffer, 15 * MIB - 1, 1), 3);
    char *before = soft->state_dump();
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_set_access(buffer, 2 * MIB, 4 * MIB, 1, GPUMEM_ACCESS_READ, NULL));
    FAILS_SAYING(INVALID_ARGUMENT, "whole chunks",
                 gpumem_buffer_set_access(buffer, 0, 6 * MIB, 1, GPUMEM_ACCESS_READ, NULL));
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_set_access(buffer, 12 * MIB, 4 * MIB, 1, GPUMEM_ACCESS_READ, NULL));
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_set_access(buffer, 0, 4 * MIB, 7, GPUMEM_ACCESS_READ, NULL));
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_set_access(buffer, 0, 4 * MIB, 1, (gpumem_access)3, NULL));
    SAME_STATE(before);
    OK(gpumem_buffer_grow(buffer, 20 * MIB, NULL)); /* what comes later is as the resource says */
    assert_int_equal(rights(buffer, 17 * MIB, 1), 0);
    assert_int_equal(rights(buffer, 4 * MIB, 1), 1);
    OK(gpumem_resource_set_access(resource, 1, GPUMEM_ACCESS_READ_WRITE));
    for (size_t at = 0; at < 20 * MIB; at += 4 * MIB)
        assert_int_equal(rights(buffer, at, 1), 3);
    DESTROY(buffer, resource);
}

/* By each call that writes; `other` may be read. */
static void writing_is_refused(gpumem_buffer *buffer, size_t offset, gpumem_buffer *other) {
    static const unsigned char host[64];
    const gpumem_rows rows = {.width = 8, .count = 4, .to_pitch = 16};
    const gpumem_buffer_copy_item item = {
        .to = buffer, .to_offset = offset, .from = other, .bytes = 64};
    FAILS_SAYING(NOT_PERMITTED, "write", gpumem_buffer_fill(buffer, offset, 64, 1, NULL));
    FAILS(NOT_PERMITTED, fill_now(buffer, offset, 64, 1, NULL));
    FAILS(NOT_PERMITTED, gpumem_buffer_fill_pattern(buffer, offset, 64, host, 4, NULL));
    FAILS(NOT_PERMITTED, gpumem_buffer_write(buffer, offset, host, 64, NULL));
    FAILS(NOT_PERMITTED, write_now(buffer, offset, host, 64, NULL));
    FAILS(NOT_PERMITTED, gpumem_buffer_write_2d(buffer, offset, host, &rows, NULL));
    FAILS(NOT_PERMITTED, gpumem_buffer_copy(buffer, offset, other, 0, 64, NULL));
    FAILS(NOT_PERMITTED, copy_now(buffer, offset, other, 0, 64, NULL));
    FAILS(NOT_PERMITTED, gpumem_buffer_copy_2d(buffer, offset, other, 0, &rows, NULL));
    FAILS(NOT_PERMITTED, gpumem_buffer_copy_batch(&item, 1, NULL, NULL));
}

static void access_is_kept_to(gpumem_resource *resource) {
    gpumem_buffer *buffer = allocate(resource, 8 * MIB, 0, NULL);
    gpumem_buffer *other = allocate(resource, 2 * MIB, 0, NULL);
    gpumem_buffer *view = NEW_VIEW(buffer, 3 * MIB, 2 * MIB);
    unsigned char byte;
    OK(fill_now(buffer, 0, 8 * MIB, 7, NULL));
    OK(gpumem_buffer_free(view, NULL)); /* which holds the buffer */
    OK(gpumem_buffer_set_access(buffer, 4 * MIB, 4 * MIB, 0, GPUMEM_ACCESS_READ, NULL));
    view = NEW_VIEW(buffer, 3 * MIB, 2 * MIB);
    writing_is_refused(buffer, 4 * MIB, other);
    writing_is_refused(buffer, 4 * MIB - 4, other);
    writing_is_refused(view, MIB, other);
    OK(fill_now(buffer, 0, 4 * MIB, 8, NULL));
    OK(fill_now(view, 0, MIB, 9, NULL));
    OK(read_now(view, MIB, &byte, 1, NULL));
    assert_int_equal(byte, 7);
    OK(gpumem_buffer_free(view, NULL));
    OK(gpumem_buffer_set_access(buffer, 4 * MIB, 4 * MIB, 0, GPUMEM_ACCESS_NONE, NULL));
    FAILS_SAYING(NOT_PERMITTED, "read", read_now(buffer, 4 * MIB, &byte, 1, NULL));
    FAILS(NOT_PERMITTED, gpumem_buffer_copy(other, 0, buffer, 4 * MIB - 1, 64, NULL));
    OK(read_now(buffer, 4 * MIB - 1, &byte, 1, NULL));
    assert_int_equal(byte, 9);
    DESTROY(buffer, other);
}

TEST(copies_without_access_are_refused_by_name) {
    gpumem_resource *resource = NEW_VIRTUAL(.maximum_chunk_bytes = 4 * MIB);
    gpumem_resource *tracked = NEW_TRACKING(resource, .frames = 1);
    access_is_kept_to(resource);
    access_is_kept_to(tracked);
    gpumem_buffer *buffer = allocate(resource, 2 * MIB, 0, NULL), *view;
    gpumem_buffer *other = allocate(tracked, 2 * MIB, 0, NULL);
    OK(gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ));
    view = NEW_VIEW(buffer, 0, MIB);
    writing_is_refused(view, 0, other);
    gpumem_access access = GPUMEM_ACCESS_NONE;
    OK(gpumem_buffer_get_access(view, MIB - 1, 0, &access));
    assert_int_equal(access, GPUMEM_ACCESS_READ);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_get_access(view, MIB, 0, &access));
    DESTROY(view, buffer, other, tracked, resource);
}

TEST(revoking_access_waits_for_the_buffers_streams) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = allocate(resource, 4 * MIB, 0, NULL);
    CUstream stream = NEW_STREAM();
    OK(gpumem_buffer_use(buffer, stream));
    for (int i = 0; i < 8; i++)
        OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 1, stream));
    OK(gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ)); /* no fault */
    assert_int_equal(rights(buffer, 0, 0), 1);
    use_context();
    OK_CU(cu->cuStreamQuery(stream));
    OK(gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ_WRITE));
    for (int i = 0; i < 8; i++)
        OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 2, stream));
    OK(gpumem_buffer_set_access(buffer, 0, 4 * MIB, 0, GPUMEM_ACCESS_READ, NULL));
    OK_CU(cu->cuStreamQuery(stream));
    leave_context();
    DESTROY(buffer, resource, stream);
}

struct taker {
    gpumem_resource *resource;
    atomic_int done;
};

static void *take(void *data) {
    struct taker *taker = data;
    OK(gpumem_resource_set_access(taker->resource, 0, GPUMEM_ACCESS_READ));
    atomic_store(&taker->done, 1);
    return NULL;
}

/* The work of a freed, a cached and a live buffer is held by a gate, while other memory is used
 * freely; buffers that come meanwhile are waited for too. */
TEST(revoking_access_waits_for_freed_and_cached_memory) {
    gpumem_resource *resource = NEW_VIRTUAL(.cache_bytes = GIB);
    struct gate gate = gate_with_stream();
    gpumem_buffer *shared = allocate(resource, 2 * MIB, 0, NULL);
    gpumem_buffer *live = allocate(resource, 4 * MIB, 0, gate.stream);
    gpumem_buffer *cached = allocate(resource, 8 * MIB, 0, gate.stream);
    OK(gpumem_buffer_fill(live, 0, 4 * MIB, 1, gate.stream));
    OK(gpumem_buffer_fill(cached, 0, 8 * MIB, 1, gate.stream));
    OK(gpumem_buffer_free(cached, NULL));
    gpumem_export *exported; /* not kept when it is freed, but held back */
    exported = NEW_EXPORT(shared);
    OK(gpumem_export_destroy(exported));
    OK(gpumem_buffer_use(shared, gate.stream));
    OK(gpumem_buffer_fill(shared, 0, 2 * MIB, 1, gate.stream));
    OK(gpumem_buffer_free(shared, gate.stream));
    struct taker taker = {.resource = resource};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take, &taker), 0);
    for (int i = 0; i < 50; i++) { /* allocating goes on while it waits */
        gpumem_buffer *other = allocate(resource, 16 * MIB, 0, NULL);
        OK(gpumem_buffer_free(other, NULL));
    }
    assert_false(atomic_load(&taker.done));
    gate_drain(&gate);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&taker.done));
    assert_int_equal(rights(live, 0, 0), 1);
    assert_int_equal(device_stats().quarantined, 0);
    DESTROY(live, resource);
    gate_remove(&gate);
}

/* Of a buffer that is in use, of one that is kept, of one that is held back. */
TEST(revoking_access_waits_for_live_cached_and_deferred_memory) {
    for (int which = 0; which < 3; which++) {
        gpumem_resource *resource = NEW_VIRTUAL(.cache_bytes = which == 1 ? GIB : 0);
        struct gate gate = gate_with_stream();
        struct opener opener;
        gpumem_buffer *buffer = allocate(resource, 4 * MIB, 0, gate.stream);
        OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 1, gate.stream));
        if (which)
            OK(gpumem_buffer_free(buffer, NULL));
        opener_start(&opener, gate);
        OK(gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ));
        assert_true(opener_end(&opener));
        if (!which)
            OK(gpumem_buffer_free(buffer, NULL));
        DESTROY(resource, &gate);
    }
}

TEST(changing_access_to_held_memory_is_refused) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *held = allocate(resource, 2 * MIB, 0, NULL);
    gpumem_buffer *other = allocate(resource, 2 * MIB, 0, NULL);
    OK(gpumem_buffer_hold(held));
    char *before = soft->state_dump();
    FAILS_SAYING(BUSY, "hold", gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ));
    FAILS(BUSY, gpumem_buffer_set_access(held, 0, 2 * MIB, 0, GPUMEM_ACCESS_READ, NULL));
    SAYS("hold");
    OK(gpumem_device_trim(device, 1)); /* events that are kept */
    SAME_STATE(before);
    OK(gpumem_buffer_set_access(other, 0, 2 * MIB, 0, GPUMEM_ACCESS_READ, NULL));
    OK(gpumem_buffer_release(held));
    OK(gpumem_buffer_hold(held));
    OK(gpumem_buffer_free(held, NULL)); /* a hold is left */
    FAILS(BUSY, gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_NONE));
    SAYS("freed");
    OK(gpumem_buffer_release(held));
    OK(gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_NONE));
    DESTROY(other, resource);
}

TEST(changing_access_during_a_capture_is_refused) {
    gpumem_resource *resource = NEW_VIRTUAL();
    CUstream stream = NEW_STREAM();
    gpumem_buffer *buffer = allocate(resource, 2 * MIB, 0, stream);
    use_context();
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    FAILS(BUSY, gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ));
    SAYS("capturing");
    OK(gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ_WRITE));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu->cuGraphDestroy(graph));
    leave_context();
    DESTROY(buffer, resource, stream);
}

TEST(a_cache_gives_access_at_once_and_takes_it_away_when_it_is_empty) {
    NEED_PEER();
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_resource *caching = NEW_CACHING(resource);
    gpumem_buffer *small = allocate(caching, 256, 0, NULL);
    OK(gpumem_resource_set_access(caching, 1, GPUMEM_ACCESS_READ_WRITE));
    assert_int_equal(rights(small, 0, 1), 3);
    assert_int_equal(MADE(gpumem_access, gpumem_resource_get_access, caching, 1),
                     GPUMEM_ACCESS_READ_WRITE);
    FAILS_SAYING(NOT_SUPPORTED, "gpumem_resource_set_access",
                 gpumem_buffer_set_access(small, 0, 256, 0, GPUMEM_ACCESS_READ, NULL));
    FAILS_SAYING(BUSY, "trim it", gpumem_resource_set_access(caching, 1, GPUMEM_ACCESS_NONE));
    assert_int_equal(rights(small, 0, 1), 3);
    OK(gpumem_buffer_free(small, NULL));
    OK(gpumem_resource_trim(caching, 0));
    OK(gpumem_resource_set_access(caching, 1, GPUMEM_ACCESS_NONE));
    small = allocate(caching, 256, 0, NULL);
    assert_int_equal(rights(small, 0, 1), 0);
    DESTROY(small, caching, resource);
}

TEST(access_can_be_changed_through_a_wrapper) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_resource *limit = NEW_LIMIT(resource, GIB);
    gpumem_buffer *buffer = allocate(limit, 2 * MIB, 0, NULL);
    OK(gpumem_resource_set_access(limit, 0, GPUMEM_ACCESS_READ));
    assert_int_equal(rights(buffer, 0, 0), 1);
    OK(gpumem_buffer_hold(buffer));
    FAILS(BUSY, gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_NONE));
    OK(gpumem_buffer_release(buffer));
    DESTROY(buffer, limit, resource);
}

/* The third of three buffers refuses: the first two have what they had. */
TEST(a_refused_access_change_changes_no_buffer) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffers[3];
    for (size_t i = 0; i < COUNT(buffers); i++)
        buffers[i] = allocate(resource, 2 * MIB, 0, NULL);
    static const softgpu_fault_mode modes[] = {SOFTGPU_FAULT_BEFORE, SOFTGPU_FAULT_AFTER};
    for (uint64_t n = 1; n <= 3; n++) {
        for (size_t m = 0; m < COUNT(modes); m++) {
            char *before = soft->state_dump();
            soft->fault_arm("cuMemSetAccess", n, CUDA_ERROR_OUT_OF_MEMORY, modes[m]);
            FAILS(OUT_OF_MEMORY, gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ));
            soft->fault_disarm();
            OK(gpumem_device_trim(device, 1)); /* events that are kept */
            SAME_STATE(before);
            for (size_t i = 0; i < COUNT(buffers); i++)
                assert_int_equal(rights(buffers[i], 0, 0), 3);
        }
    }
    DESTROY_EACH(buffers, COUNT(buffers));
    OK(gpumem_resource_destroy(resource));
}

/* ---- Threads --------------------------------------------------------------------------------- */

struct worker {
    gpumem_resource *resource;
    atomic_int *stop;
    int number;
};

static void *allocate_and_work(void *data) {
    const struct worker *worker = data;
    CUstream stream = NEW_STREAM();
    for (int i = 0; !atomic_load(worker->stop); i++) {
        gpumem_buffer *buffer = allocate(worker->resource, 2 * MIB, 8 * MIB, stream);
        OK(gpumem_buffer_grow(buffer, 4 * MIB, NULL));
        OK(gpumem_buffer_fill(buffer, 0, 4096, (unsigned char)i, stream));
        OK(gpumem_buffer_hold(buffer));
        OK(gpumem_buffer_release(buffer));
        if (i % 2)
            OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
        OK(gpumem_buffer_free(buffer, NULL));
    }
    OK(gpumem_stream_synchronize(device, stream));
    OK(gpumem_stream_destroy(device, stream));
    return NULL;
}

/* Access of another device comes and goes while buffers do. */
TEST(threads_use_buffers_while_access_changes) {
    NEED_PEER();
    gpumem_resource *resource = NEW_VIRTUAL(.cache_bytes = 64 * MIB);
    pthread_t threads[3];
    struct worker workers[COUNT(threads)];
    atomic_int stop = 0;
    for (size_t i = 0; i < COUNT(threads); i++) {
        workers[i] = (struct worker){resource, &stop, (int)i};
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_work, &workers[i]), 0);
    }
    int changed = 0, busy = 0;
    while (changed < 50) {
        static const gpumem_access accesses[] = {GPUMEM_ACCESS_READ_WRITE, GPUMEM_ACCESS_NONE,
                                                 GPUMEM_ACCESS_READ};
        gpumem_status status = gpumem_resource_set_access(
            resource, 1, accesses[(changed + busy) % (int)COUNT(accesses)]);
        if (status != GPUMEM_OK)
            FAILS(BUSY, status);
        busy += status != GPUMEM_OK;
        changed += status == GPUMEM_OK;
    }
    atomic_store(&stop, 1);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().quarantined, 0);
    OK(gpumem_resource_destroy(resource));
}

BEFORE_TESTS_DO(setenv("SOFTGPU_DEVICES", "2", 1));
