/* A cache over virtual memory: free pages move, bytes and addresses of buffers stay. */
#include "caching_test.h"

#include <gpumem/vmm.h>
#include <math.h>

static int begin(void **state) {
    setenv("SOFTGPU_DEVICES", "2", 0);
    return open_device(state);
}

ALL_TESTS(begin, close_device);

#define PARTS 32

/* Buffers that are taken and given back as one. */
static void fill_up(gpumem_resource *cache, size_t bytes, CUstream stream,
                    gpumem_buffer *parts[PARTS]) {
    for (size_t i = 0; i < PARTS; i++)
        parts[i] = allocate_on(cache, bytes / PARTS, stream);
}

/* Every other one. */
static void free_half(gpumem_buffer *parts[PARTS]) {
    for (size_t i = 0; i < PARTS; i += 2) {
        OK(gpumem_buffer_free(parts[i], NULL));
        parts[i] = NULL;
    }
}

static uint64_t committed(gpumem_resource *cache) {
    return stats_of(cache).committed_bytes;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

/* Half of 256 MiB is free between what stays; a block of 128 MiB fits nowhere in place. */
TEST(a_large_block_takes_the_pages_that_lie_free_between_others) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *cache = NEW_CACHING(upstream);
    gpumem_buffer *parts[PARTS];
    CUdeviceptr addresses[PARTS];
    fill_up(cache, 256 * MIB, NULL, parts);
    for (size_t i = 0; i < PARTS; i++) {
        addresses[i] = gpumem_buffer_pointer(parts[i]);
        OK(gpumem_buffer_fill(parts[i], 0, 8 * MIB, (unsigned char)(i + 1), NULL));
    }
    free_half(parts);
    synchronize(NULL);
    gpumem_caching_info before = caching_info_of(cache);
    assert_true(before.largest_free_bytes < 128 * MIB);
    assert_true(before.largest_movable_bytes >= 128 * MIB);
    gpumem_buffer *large = allocate_on(cache, 128 * MIB, NULL);
    OK(gpumem_buffer_fill(large, 0, 128 * MIB, 99, NULL));
    assert_true(committed(cache) <= 256 * MIB * 105 / 100);
    assert_true(caching_info_of(cache).pages_moved > 0);
    assert_int_equal(caching_info_of(cache).waits, 0);
    for (size_t i = 1; i < PARTS; i += 2) {
        unsigned char seen[2] = {0};
        assert_true(gpumem_buffer_pointer(parts[i]) == addresses[i]);
        OK(gpumem_buffer_read(parts[i], 0, &seen[0], 1, NULL));
        OK(gpumem_buffer_read(parts[i], 8 * MIB - 1, &seen[1], 1, NULL));
        synchronize(NULL);
        assert_int_equal(seen[0], i + 1);
        assert_int_equal(seen[1], i + 1);
    }
    DESTROY_EACH(parts, PARTS);
    DESTROY(large, cache, upstream);
}

/* Small ones and another stream: a page is of no kind and no stream once its work has passed. */
TEST(free_pages_serve_any_size_and_stream) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *cache = NEW_CACHING(upstream);
    CUstream streams[] = {NULL, NEW_STREAM(), NEW_STREAM()};
    static const size_t sizes[] = {4 * KIB, MIB, 5 * MIB, 40 * MIB};
    for (size_t i = 0; i < COUNT(streams) * COUNT(sizes); i++) {
        CUstream stream = streams[i % COUNT(streams)];
        gpumem_buffer *buffers[PARTS];
        fill_up(cache, sizes[i % COUNT(sizes)] * PARTS, stream, buffers);
        DESTROY_EACH(buffers, PARTS);
        synchronize(stream);
    }
    gpumem_stats stats = stats_of(cache);
    assert_true(stats.committed_high <= stats.in_use_high * 105 / 100);
    DESTROY(streams[1], streams[2], cache, upstream);
}

TEST(infinity_and_wrappers_leave_memory_in_place) {
    gpumem_resource *upstream = NEW_VIRTUAL();
    gpumem_resource *limit = NEW_LIMIT(upstream, GIB);
    gpumem_resource *caches[] = {NEW_CACHING_WITH(upstream, .committed_ratio = INFINITY),
                                 NEW_CACHING(limit)};
    for (size_t i = 0; i < COUNT(caches); i++) {
        gpumem_buffer *parts[PARTS];
        fill_up(caches[i], 256 * MIB, NULL, parts);
        free_half(parts);
        DESTROY(allocate_on(caches[i], 100 * MIB, NULL));
        assert_int_equal(caching_info_of(caches[i]).pages_moved, 0);
        DESTROY_EACH(parts, PARTS);
        DESTROY(caches[i]);
    }
    DESTROY(limit, upstream);
}

TEST(unusable_options_are_refused) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *pool = new_own_pool(), *none = NULL;
    FAILS_SAYING(INVALID_ARGUMENT, "committed_ratio",
                 gpumem_caching_resource_create(
                     upstream, GPUMEM_CACHING_OPTIONS(.committed_ratio = 0.5), &none));
    FAILS_SAYING(
        INVALID_ARGUMENT, "reserve_bytes",
        gpumem_caching_resource_create(
            upstream, GPUMEM_CACHING_OPTIONS(.reserve_bytes = GIB, .maximum_bytes = MIB), &none));
    FAILS_SAYING(
        NOT_SUPPORTED, "reserve_bytes",
        gpumem_caching_resource_create(pool, GPUMEM_CACHING_OPTIONS(.reserve_bytes = GIB), &none));
    DESTROY(pool, upstream);
}

/* ---- Queued work ----------------------------------------------------------------------------- */

/* With never_waits the cache takes more; otherwise the pages of the held stream stay as long as it
 * is held, and the call waits. */
TEST(pages_do_not_move_under_queued_work) {
    gpumem_resource *upstream = NEW_VIRTUAL();
    gpumem_resource *cache = NEW_CACHING_WITH(upstream, .never_waits = true);
    CUstream other = NEW_STREAM();
    struct gate gate = gate_with_stream();
    gpumem_buffer *parts[PARTS], *large;
    fill_up(cache, 256 * MIB, gate.stream, parts);
    for (size_t i = 0; i < PARTS; i++)
        OK(gpumem_buffer_fill(parts[i], 0, 8 * MIB, 7, gate.stream));
    DESTROY_EACH(parts, PARTS);
    large = allocate_on(cache, 128 * MIB, other);
    assert_int_equal(caching_info_of(cache).pages_moved, 0);
    assert_int_equal(caching_info_of(cache).waits, 0);
    assert_true(committed(cache) >= 384 * MIB);
    gate_drain(&gate);
    OK(gpumem_buffer_free(large, NULL));
    synchronize(other);
    large = allocate_on(cache, 400 * MIB, other); /* from both streams */
    assert_true(caching_info_of(cache).pages_moved > 0);
    assert_true(committed(cache) <= 420 * MIB);
    DESTROY(large, other, cache, upstream, &gate);
}

struct asking {
    gpumem_resource *cache;
    CUstream stream;
    gpumem_buffer *buffer;
};

static void *ask(void *data) {
    struct asking *asking = data;
    asking->buffer = allocate_on(asking->cache, 128 * MIB, asking->stream);
    return NULL;
}

TEST(a_request_waits_for_pages_of_queued_work_when_no_others_are_left) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *cache = NEW_CACHING(upstream);
    struct asking asking = {.cache = cache, .stream = NEW_STREAM()};
    struct gate gate = gate_with_stream();
    gpumem_buffer *parts[PARTS];
    fill_up(cache, 256 * MIB, gate.stream, parts);
    DESTROY_EACH(parts, PARTS);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask, &asking), 0);
    gate_drain(&gate);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_non_null(asking.buffer);
    assert_true(committed(cache) <= 256 * MIB * 105 / 100);
    DESTROY(asking.buffer, asking.stream, cache, upstream, &gate);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

TEST(a_request_is_refused_only_when_it_does_not_fit) {
    gpumem_resource *upstream = NEW_VIRTUAL();
    gpumem_resource *cache = NEW_CACHING_WITH(upstream, .maximum_bytes = 256 * MIB);
    gpumem_buffer *parts[PARTS], *more = NULL;
    fill_up(cache, 256 * MIB, NULL, parts);
    FAILS_SAYING(OUT_OF_CAPACITY, "maximum of 268435456",
                 gpumem_buffer_allocate(cache, 2 * MIB, NULL, &more));
    free_half(parts);
    gpumem_buffer *large = allocate_on(cache, 128 * MIB, NULL);
    FAILS_SAYING(OUT_OF_CAPACITY, "blocks have 268435456",
                 gpumem_buffer_allocate(cache, 4 * KIB, NULL, &more));
    assert_int_equal(committed(cache), 256 * MIB);
    DESTROY_EACH(parts, PARTS);
    DESTROY(large, cache, upstream);
}

TEST(reserved_memory_serves_any_kind_and_stream) {
    gpumem_resource *upstream = NEW_VIRTUAL();
    gpumem_resource *cache = NEW_CACHING_WITH(upstream, .reserve_bytes = 256 * MIB);
    CUstream stream = NEW_STREAM();
    assert_int_equal(committed(cache), 256 * MIB);
    assert_int_equal(caching_info_of(cache).free_bytes, 256 * MIB);
    assert_int_equal(caching_info_of(cache).largest_movable_bytes, 256 * MIB);
    gpumem_buffer *buffers[] = {allocate_on(cache, 4 * KIB, NULL),
                                allocate_on(cache, 200 * MIB, stream),
                                allocate_on(cache, 3 * MIB, NULL)};
    assert_int_equal(committed(cache), 256 * MIB);
    DESTROY_EACH(buffers, COUNT(buffers));
    OK(gpumem_resource_trim(cache, 0));
    assert_int_equal(committed(cache), 0);
    DESTROY(stream, cache, upstream);
}

TEST(a_forgotten_stream_gives_its_addresses_back) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *cache = NEW_CACHING(upstream);
    DESTROY(allocate_on(cache, 64 * MIB, NULL));
    uint64_t before = stats_of(cache).reserved_bytes;
    for (int i = 0; i < 20; i++) {
        CUstream stream = NEW_STREAM();
        gpumem_buffer *buffers[] = {allocate_on(cache, 4 * KIB, stream),
                                    allocate_on(cache, 60 * MIB, stream)};
        DESTROY_EACH(buffers, COUNT(buffers));
        DESTROY(stream);
    }
    DESTROY(allocate_on(cache, 66 * MIB, NULL)); /* with what they had */
    assert_true(stats_of(cache).reserved_bytes <= before + 4 * GIB);
    DESTROY(cache, upstream);
}

/* Of each kind of piece: what is promised is had without a page that moves, and then with. */
TEST(what_is_reported_free_can_be_had) {
    static const size_t sizes[] = {5 * MIB, 20 * MIB, 40 * MIB};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        gpumem_resource *upstream = NEW_VIRTUAL();
        gpumem_resource *cache = NEW_CACHING_WITH(upstream, .committed_ratio = 1);
        gpumem_buffer *parts[PARTS];
        fill_up(cache, sizes[k] * PARTS, NULL, parts);
        free_half(parts);
        OK(gpumem_buffer_free(parts[5], NULL)); /* three neighbours */
        parts[5] = NULL;
        synchronize(NULL);
        gpumem_caching_info info = caching_info_of(cache);
        uint64_t before = committed(cache);
        assert_true(info.largest_free_bytes >= sizes[k]);
        DESTROY(allocate_on(cache, info.largest_free_bytes, NULL));
        assert_int_equal(caching_info_of(cache).pages_moved, 0);
        assert_int_equal(committed(cache), before);
        synchronize(NULL);
        DESTROY(allocate_on(cache, caching_info_of(cache).largest_movable_bytes, NULL));
        assert_true(committed(cache) <= before);
        DESTROY_EACH(parts, PARTS);
        DESTROY(cache, upstream);
    }
}

/* A graph uses them at each launch, and the message tells who has them. */
TEST(pages_of_a_capture_pool_stay_until_it_ends) {
    gpumem_resource *upstream = NEW_VIRTUAL();
    gpumem_resource *cache = NEW_CACHING_WITH(upstream, .maximum_bytes = 128 * MIB);
    gpumem_capture_pool *pool = MADE(gpumem_capture_pool *, gpumem_capture_pool_create, cache);
    CUstream stream = NEW_STREAM();
    gpumem_buffer *none = NULL;
    use_context();
    OK(gpumem_capture_pool_begin(pool, stream));
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    gpumem_buffer *buffer = allocate_on(cache, 96 * MIB, stream);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_fill(buffer, 0, 96 * MIB, 3, stream));
    OK(gpumem_buffer_free(buffer, NULL));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK(gpumem_capture_pool_end(pool, stream));
    FAILS_SAYING(OUT_OF_CAPACITY, "capture pools 100663296",
                 gpumem_buffer_allocate(cache, 64 * MIB, NULL, &none));
    assert_int_equal(caching_info_of(cache).pages_moved, 0);
    assert_true(is_mapped(address) && is_mapped(address + 96 * MIB - 1));
    OK_CU(cu->cuGraphDestroy(graph));
    OK(gpumem_capture_pool_destroy(pool, stream));
    DESTROY(allocate_on(cache, 128 * MIB, NULL));
    leave_context();
    DESTROY(stream, cache, upstream);
}

/* ---- Who else knows the memory --------------------------------------------------------------- */

static gpumem_resource *memory_for_a_peer(void) {
    bool can = false;
    if (gpumem_device_can_access_peer(device, 1, &can) != GPUMEM_OK || !can) {
        printf("skip: no second device that reaches the first\n");
        skip();
    }
    const int peers[] = {1};
    return NEW_VIRTUAL(.peers = peers, .peer_count = 1);
}

TEST(moved_pages_have_the_rights_of_all_peers) {
    gpumem_resource *upstream = memory_for_a_peer();
    gpumem_resource *cache = NEW_CACHING(upstream);
    gpumem_buffer *parts[PARTS];
    fill_up(cache, 256 * MIB, NULL, parts);
    free_half(parts);
    gpumem_buffer *large = allocate_on(cache, 128 * MIB, NULL);
    assert_true(caching_info_of(cache).pages_moved > 0);
    const CUmemLocation peer = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
    for (int taken = 0; taken < 2; taken++) {
        for (size_t at = 0; at < 128 * MIB; at += 2 * MIB) {
            unsigned long long flags = 99;
            OK_CU(cu->cuMemGetAccess(&flags, &peer, gpumem_buffer_pointer(large) + at));
            assert_int_equal(flags, 3);
        }
        if (!taken) /* for all of the upstream's memory, this too */
            OK(gpumem_resource_set_access(cache, 1, GPUMEM_ACCESS_READ_WRITE));
    }
    DESTROY_EACH(parts, PARTS);
    DESTROY(large, cache, upstream);
}

TEST(memory_whose_handle_others_have_stays) {
    for (int marked = 0; marked < 2; marked++) {
        gpumem_resource *upstream = NEW_VIRTUAL(), *cache = NEW_CACHING(upstream);
        gpumem_buffer *parts[PARTS];
        gpumem_physical *physical = NULL;
        fill_up(cache, 256 * MIB, NULL, parts);
        CUdeviceptr address = gpumem_buffer_pointer(parts[0]);
        OK(marked ? gpumem_buffer_mark_shared(parts[0])
                  : gpumem_physical_from_address(device, address, 0, &physical));
        free_half(parts);
        gpumem_buffer *large = allocate_on(cache, 128 * MIB, NULL);
        assert_int_equal(caching_info_of(cache).pages_moved, 0);
        OK(gpumem_physical_destroy(physical));
        DESTROY_EACH(parts, PARTS);
        DESTROY(large, cache, upstream);
    }
}

/* It has several handles, some of which were elsewhere before. */
static gpumem_buffer *block_of_moved_pages(gpumem_resource *cache, gpumem_buffer *parts[PARTS]) {
    fill_up(cache, 256 * MIB, NULL, parts);
    free_half(parts);
    synchronize(NULL);
    gpumem_buffer *block = allocate_on(cache, 128 * MIB, NULL);
    assert_true(caching_info_of(cache).pages_moved > 1);
    return block;
}

#define STEP ((size_t)1 << 20)

/* A byte of each row, as far as a pitch of 1 MiB goes. */
static void check_rows(gpumem_buffer *block, unsigned char value) {
    unsigned char seen[128];
    OK(gpumem_buffer_read_2d(block, 5, seen,
                             &(gpumem_rows){.width = 1, .count = 128, .from_pitch = STEP}, NULL));
    synchronize(NULL);
    for (size_t i = 0; i < COUNT(seen); i++)
        assert_int_equal(seen[i], value);
}

TEST(a_block_over_several_pages_is_one_for_all_who_ask) {
    const int peers[] = {1};
    bool can = false;
    (void)gpumem_device_can_access_peer(device, 1, &can);
    gpumem_resource *upstream = NEW_VIRTUAL(.peers = peers, .peer_count = can);
    gpumem_resource *cache = NEW_CACHING(upstream);
    gpumem_buffer *parts[PARTS], *block = block_of_moved_pages(cache, parts), *foreign = NULL;
    CUdeviceptr address = gpumem_buffer_pointer(block);
    use_context();
    for (size_t at = 0; at < 128 * MIB; at += STEP) {
        int ordinal = -1;
        CUmemorytype type = 0;
        OK_CU(
            cu->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address + at));
        OK_CU(cu->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + at));
        assert_int_equal(ordinal, 0);
        assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    }
    gpumem_layout layout = {.size = sizeof layout};
    OK(gpumem_buffer_get_layout(block, &layout, NULL, 0));
    assert_true(layout.base + layout.offset == address && layout.bytes >= 128 * MIB);
    OK(gpumem_buffer_fill(block, 0, 128 * MIB, 9, NULL));
    check_rows(block, 9);
    /* One buffer over the whole, known by its address. */
    OK(gpumem_buffer_from_pointer(device, address, 128 * MIB, NULL, &foreign));
    OK(gpumem_buffer_fill(foreign, 0, 128 * MIB, 10, NULL));
    check_rows(block, 10);
    /* All of it as 128 slices of 4 rows, to another such block. */
    gpumem_buffer *other = allocate_on(cache, 128 * MIB, NULL);
    const CUDA_MEMCPY3D solid = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .srcDevice = address,
                                 .srcPitch = STEP / 4,
                                 .srcHeight = 4,
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = gpumem_buffer_pointer(other),
                                 .dstPitch = STEP / 4,
                                 .dstHeight = 4,
                                 .WidthInBytes = STEP / 4,
                                 .Height = 4,
                                 .Depth = 128};
    OK_CU(cu->cuMemcpy3D_v2(&solid));
    check_rows(other, 10);
    OK(gpumem_buffer_fill(other, 0, 128 * MIB, 11, NULL));
    OK(gpumem_buffer_copy_2d(
        block, 0, other, 0,
        &(gpumem_rows){.width = STEP - 7, .count = 128, .to_pitch = STEP, .from_pitch = STEP},
        NULL));
    check_rows(block, 11);
    assert_int_equal(byte_of(block, STEP - 1), 10); /* between the rows */
    leave_context();
    DESTROY(foreign, block, other);
    DESTROY_EACH(parts, PARTS);
    DESTROY(cache, upstream);
}

TEST(a_peer_copies_a_block_over_several_pages) {
    gpumem_resource *upstream = memory_for_a_peer();
    gpumem_resource *cache = NEW_CACHING(upstream);
    gpumem_buffer *parts[PARTS], *block = block_of_moved_pages(cache, parts);
    gpumem_device *second = MADE(gpumem_device *, gpumem_device_open, library, 1);
    OK(gpumem_buffer_fill(block, 0, 128 * MIB, 21, NULL));
    synchronize(NULL);
    CUcontext there = gpumem_device_context(second);
    OK_CU(cu->cuCtxPushCurrent_v2(there));
    CUdeviceptr copy = 0;
    OK_CU(cu->cuMemAlloc_v2(&copy, 128 * MIB));
    OK_CU(cu->cuMemcpyPeer(copy, there, gpumem_buffer_pointer(block), gpumem_device_context(device),
                           128 * MIB));
    for (size_t at = STEP - 1; at < 128 * MIB; at += STEP) {
        unsigned char seen = 0;
        OK_CU(cu->cuMemcpyDtoH_v2(&seen, copy + at, 1));
        assert_int_equal(seen, 21);
    }
    OK_CU(cu->cuMemFree_v2(copy));
    OK_CU(cu->cuCtxPopCurrent_v2(&there));
    DESTROY(block);
    DESTROY_EACH(parts, PARTS);
    DESTROY(cache, upstream);
    OK(gpumem_device_close(second));
}

/* The second stream's pages are as large as the first one's. */
TEST(a_snapshot_lists_pages_and_how_often_they_moved) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *cache = NEW_CACHING(upstream);
    CUstream stream = NEW_STREAM();
    DESTROY(allocate_on(cache, 128 * MIB, NULL));
    synchronize(NULL);
    gpumem_buffer *block = allocate_on(cache, 128 * MIB, stream);
    char *text = NULL;
    OK(snapshot_of(device, &text));
    assert_non_null(strstr(text, "\"moves\":1"));
    assert_non_null(strstr(text, "\"state\":\"bare\""));
    free(text);
    DESTROY(block, stream, cache, upstream);
}

struct told {
    uint64_t bytes;
    gpumem_resource *cache;
};

/* It may allocate from the cache itself. */
static void note(void *user, const gpumem_watch_event *event) {
    struct told *told = user;
    told->bytes += event->bytes;
    DESTROY(allocate_on(told->cache, 4 * KIB, NULL));
}

TEST(watches_are_told_before_pages_move) {
    gpumem_resource *upstream = NEW_VIRTUAL(), *cache = NEW_CACHING(upstream);
    struct told told = {.cache = cache};
    gpumem_watch *watch = NULL;
    gpumem_buffer *parts[PARTS];
    OK(gpumem_resource_watch(upstream, note, &told, &watch));
    fill_up(cache, 256 * MIB, NULL, parts);
    assert_int_equal(told.bytes, 0);
    free_half(parts);
    gpumem_buffer *large = allocate_on(cache, 128 * MIB, NULL);
    assert_true(told.bytes >= 100 * MIB && told.bytes <= 136 * MIB);
    OK(gpumem_watch_destroy(watch));
    DESTROY_EACH(parts, PARTS);
    DESTROY(large, cache, upstream);
}
