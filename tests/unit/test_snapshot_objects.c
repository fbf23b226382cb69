/* The snapshot of what is not just a buffer with its memory: freed ranges that are kept, holes,
 * moved buffers, views, memory of the program's, pools, captures, wrappers, watches. */
#include "snapshot_test.h"

#include <pthread.h>
#include <stdatomic.h>

EACH_TEST(open_device, teardown);

static const char *virtual_of(const char *now) {
    return resource_of_kind(now, "virtual");
}

static gpumem_resource *make_virtual(uint64_t cache_bytes) {
    return NEW_VIRTUAL(.capacity = 32 * MIB, .maximum_chunk_bytes = 2 * MIB, .exact_growth = 1,
                       .cache_bytes = cache_bytes);
}

/* ---- Virtual memory -------------------------------------------------------------------------- */

TEST(chunks_are_listed_without_the_holes_between_them) {
    gpumem_resource *resource = make_virtual(0);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 8 * MIB);
    const char *now = take(), *listed = buffer_of(virtual_of(now), buffer);
    assert_int_equal(json_count(json_find(listed, "chunks")), 4);
    NUMBER(listed, "chunks.3.offset", 6 * MIB);
    NUMBER(listed, "chunks.3.bytes", 2 * MIB);
    const char *handle = json_find(listed, "chunks.3.handle");
    char text[32] = "";
    memcpy(text, handle + 1, strcspn(handle + 1, "\""));
    assert_non_null(with(json_find(now, "virtual_memory.physical"), "handle", text));

    assert_int_equal(MADE(size_t, gpumem_buffer_decommit, buffer, 2 * MIB, 4 * MIB, NULL), 4 * MIB);
    listed = buffer_of(virtual_of(take()), buffer);
    assert_int_equal(json_count(json_find(listed, "chunks")), 2);
    NUMBER(listed, "chunks.0.offset", 0);
    NUMBER(listed, "chunks.1.offset", 6 * MIB);
    NUMBER(listed, "bytes", 8 * MIB);
    NUMBER(listed, "committed_bytes", 4 * MIB);
    OK(gpumem_buffer_recommit(buffer, 0, 8 * MIB));
    listed = buffer_of(virtual_of(take()), buffer);
    assert_int_equal(json_count(json_find(listed, "chunks")), 4);
    DESTROY(buffer, resource);
}

TEST(a_moved_buffer_is_mapped_twice_until_its_streams_pass) {
    gpumem_resource *resource = make_virtual(0);
    struct gate gate = gate_with_stream();
    CUdeviceptr before, after;
    gpumem_buffer *buffer =
        NEW_BUFFER_WITH(resource, 4 * MIB, .stream = gate.stream, .capacity = 4 * MIB);
    before = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_move_to_capacity(buffer, 64 * MIB, NULL, &after));
    const char *now = take(), *listed = buffer_of(virtual_of(now), buffer);
    NUMBER(listed, "address", after);
    NUMBER(listed, "capacity", 64 * MIB);
    assert_int_equal(json_count(json_find(listed, "chunks")), 2);
    const char *old = with(json_find(virtual_of(now), "buffers"), "address", address_text(before));
    assert_true(json_is(json_find(old, "state"), "deferred"));
    NUMBER(old, "bytes", 0);
    assert_int_equal(json_count(json_find(old, "chunks")), 2);
    NUMBER(old, "chunks.0.handle", json_unsigned(json_find(listed, "chunks.0.handle")));
    assert_int_equal(json_count(json_find(now, "virtual_memory.physical")), 2);
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 4);
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 1));
    now = take();
    assert_int_equal(json_count(json_find(virtual_of(now), "buffers")), 1);
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 2);
    DESTROY(buffer, resource, &gate);
}

TEST(cached_freed_ranges_are_listed) {
    gpumem_resource *resource = make_virtual(32 * MIB);
    struct gate gate = gate_with_stream();
    gpumem_buffer *idle = NEW_BUFFER(resource, 2 * MIB), *shrunk = NEW_BUFFER(resource, 6 * MIB);
    gpumem_buffer *busy = NEW_BUFFER_WITH(resource, 4 * MIB, .stream = gate.stream);
    CUdeviceptr addresses[] = {gpumem_buffer_pointer(idle), gpumem_buffer_pointer(busy)};
    OK(gpumem_buffer_shrink(shrunk, 4 * MIB, NULL));
    OK(gpumem_buffer_free(idle, GPUMEM_STREAM_NONE));
    OK(gpumem_buffer_free(busy, NULL));
    const char *now = take(), *freed = json_find(virtual_of(now), "freed");
    NUMBER(freed, "maximum_bytes", 32 * MIB);
    NUMBER(freed, "bytes", 8 * MIB);
    assert_int_equal(json_count(json_find(freed, "ranges")), 2);
    const char *range = with(json_find(freed, "ranges"), "address", address_text(addresses[1]));
    NUMBER(range, "committed_bytes", 4 * MIB);
    NUMBER(range, "capacity", 32 * MIB);
    assert_true(json_is(json_find(range, "state"), "ordered"));
    NUMBER(range, "stream", (uintptr_t)gate.stream);
    assert_non_null(with(json_find(freed, "ranges"), "address", address_text(addresses[0])));
    assert_int_equal(json_count(json_find(freed, "chunks")), 1);
    NUMBER(freed, "chunks.0.bytes", 2 * MIB);
    assert_int_equal(json_count(json_find(virtual_of(now), "buffers")), 1);
    /* They are mapped as they were. */
    const char *mapped = json_find(now, "virtual_memory.mappings");
    assert_non_null(with(mapped, "address", address_text(addresses[0])));
    gate_drain(&gate);
    OK(gpumem_buffer_free(shrunk, NULL));
    OK(gpumem_resource_trim(resource, 0));
    now = take();
    assert_int_equal(json_count(json_find(virtual_of(now), "freed.ranges")), 0);
    assert_int_equal(json_count(json_find(virtual_of(now), "freed.chunks")), 0);
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 0);
    DESTROY(resource, &gate);
}

TEST(a_handle_held_twice_is_listed_once) {
    gpumem_resource *resource = make_virtual(0);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 2 * MIB);
    gpumem_physical *again;
    OK(gpumem_physical_from_address(device, gpumem_buffer_pointer(buffer), 0, &again));
    const char *now = take(), *memory = json_find(now, "virtual_memory.physical");
    unsigned long long held = 0;
    for (size_t i = 0; i < json_count(memory); i++) {
        char path[32];
        snprintf(path, sizeof path, "%zu.bytes", i);
        NUMBER(memory, path, 2 * MIB);
        snprintf(path, sizeof path, "%zu.references", i);
        const char *references = json_find(memory, path);
        held += references ? json_unsigned(references) : 1;
    }
    assert_int_equal(held, 2); /* a driver may give the same handle again, or another one */
    OK(gpumem_physical_destroy(again));
    now = take();
    assert_int_equal(json_count(json_find(now, "virtual_memory.physical")), 1);
    assert_true(json_is(json_find(now, "virtual_memory.physical.0.location"), "device"));
    assert_null(json_find(now, "virtual_memory.physical.0.references"));
    DESTROY(buffer, resource);
    assert_int_equal(json_count(json_find(take(), "virtual_memory.physical")), 0);
}

TEST(memory_found_by_address_has_an_unknown_origin) {
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    gpumem_physical *found;
    CUdeviceptr address = MADE_CU(CUdeviceptr, cuMemAddressReserve, 2 * MIB, 0, 0, 0);
    OK_CU(cu->cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK_CU(cu->cuMemMap(address, 2 * MIB, 0, handle, 0));
    OK(gpumem_physical_from_address(device, address, 2 * MIB, &found));
    const char *memory = json_find(take(), "virtual_memory.physical");
    assert_int_equal(json_count(memory), 1);
    assert_true(json_is(json_find(memory, "0.retained"), "true"));
    assert_true(json_is(json_find(memory, "0.location"), "null"));
    assert_true(json_is(json_find(memory, "0.exportable"), "null"));
    NUMBER(memory, "0.bytes", 2 * MIB);
    OK(gpumem_physical_destroy(found));
    OK_CU(cu->cuMemUnmap(address, 2 * MIB));
    OK_CU(cu->cuMemRelease(handle));
    OK_CU(cu->cuMemAddressFree(address, 2 * MIB));
    assert_int_equal(json_count(json_find(take(), "virtual_memory.physical")), 0);
}

TEST(mappings_unmapped_by_range_are_no_longer_listed) {
    gpumem_reservation *reservation;
    gpumem_physical *physical[3];
    gpumem_mapping *mappings[3];
    OK(gpumem_reservation_create(device, 16 * MIB, NULL, &reservation));
    for (size_t i = 0; i < 3; i++) {
        OK(gpumem_physical_create(device, 2 * MIB, NULL, &physical[i]));
        OK(gpumem_mapping_create(reservation, 4 * MIB * i, physical[i], &mappings[i]));
    }
    assert_int_equal(json_count(json_find(take(), "virtual_memory.mappings")), 3);
    OK(gpumem_reservation_unmap(reservation, 2 * MIB, 14 * MIB)); /* begins with a hole */
    const char *now = take();
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 1);
    NUMBER(now, "virtual_memory.mappings.0.address", reservation_address(reservation));
    assert_int_equal(json_count(json_find(now, "virtual_memory.physical")), 3);
    for (size_t i = 0; i < 3; i++)
        DESTROY(mappings[i], physical[i]);
    OK(gpumem_reservation_destroy(reservation));
    assert_int_equal(json_count(json_find(take(), "virtual_memory.reservations")), 0);
}

/* ---- Parts, and memory of others ------------------------------------------------------------- */

TEST(views_are_listed_with_their_buffer) {
    gpumem_resource *resource = make_virtual(0);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4 * MIB);
    gpumem_buffer *view = NEW_VIEW(buffer, 64 * KIB, MIB);
    gpumem_buffer *inner = NEW_VIEW(view, 4 * KIB, 8 * KIB);
    const char *now = take(), *views = resource_of_kind(now, "view");
    assert_int_equal(json_count(json_find(views, "buffers")), 2);
    const char *listed = buffer_of(views, inner);
    NUMBER(listed, "offset", 68 * KIB);
    NUMBER(listed, "bytes", 8 * KIB);
    NUMBER(listed, "viewed_resource", json_unsigned(json_find(virtual_of(now), "id")));
    assert_true(json_is(json_find(listed, "stream"), "null"));
    NUMBER(buffer_of(virtual_of(now), buffer), "references", 3);
    OK(gpumem_buffer_free(buffer, NULL)); /* the views keep it */
    listed = with(json_find(virtual_of(take()), "buffers"), "state", "held");
    assert_non_null(listed);
    DESTROY(inner, view);
    now = take();
    assert_int_equal(json_count(json_find(resource_of_kind(now, "view"), "buffers")), 0);
    assert_int_equal(json_count(json_find(virtual_of(now), "buffers")), 0);
    OK(gpumem_resource_destroy(resource));
}

static void end_nothing(void *user, CUdeviceptr pointer, size_t bytes, CUstream stream) {
    *(size_t *)user += bytes;
}

TEST(foreign_memory_is_listed_with_its_kind) {
    size_t ended = 0;
    gpumem_buffer *plain, *given;
    use_context();
    CUdeviceptr address = MADE_CU(CUdeviceptr, cuMemAlloc_v2, MIB);
    OK(gpumem_buffer_from_pointer(device, address, 4096, GPUMEM_FOREIGN_OPTIONS(.read_only = 1),
                                  &plain));
    OK(gpumem_buffer_from_pointer(
        device, address + 4096, 8192,
        GPUMEM_FOREIGN_OPTIONS(.deleter = end_nothing, .user = &ended, .stream_ordered = 1),
        &given));
    const char *now = take(), *listed = buffer_of(resource_of_kind(now, "foreign"), plain);
    assert_true(json_is(json_find(listed, "read_only"), "true"));
    assert_true(json_is(json_find(listed, "deleter"), "false"));
    int found = 0; /* in the second resource of this kind */
    for (size_t i = 0; i < json_count(json_find(now, "resources")); i++) {
        char path[32];
        snprintf(path, sizeof path, "resources.%zu", i);
        listed = buffer_of(json_find(now, path), given);
        found += listed && json_is(json_find(listed, "deleter"), "true");
    }
    assert_int_equal(found, 1);
    DESTROY(plain, given);
    assert_int_equal(ended, 8192);
    OK_CU(cu->cuMemFree_v2(address));
    leave_context();
    assert_int_equal(json_count(json_find(resource_of_kind(take(), "foreign"), "buffers")), 0);
}

static void heard(void *user, const gpumem_watch_event *event) {
}

TEST(watches_are_counted) {
    gpumem_resource *resource = make_virtual(0);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 2 * MIB);
    gpumem_watch *of_buffer, *of_resource;
    assert_null(json_find(buffer_of(virtual_of(take()), buffer), "watches"));
    OK(gpumem_buffer_watch(buffer, heard, NULL, &of_buffer));
    OK(gpumem_resource_watch(resource, heard, NULL, &of_resource));
    const char *now = take();
    NUMBER(buffer_of(virtual_of(now), buffer), "watches", 1);
    NUMBER(virtual_of(now), "watches", 1);
    OK(gpumem_watch_destroy(of_buffer));
    OK(gpumem_watch_destroy(of_resource));
    assert_null(json_find(virtual_of(take()), "watches"));
    DESTROY(buffer, resource);
}

/* ---- Pools ----------------------------------------------------------------------------------- */

TEST(pools_are_listed_with_their_properties) {
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    gpumem_resource *own = NEW_POOL(.pool = GPUMEM_POOL_OWN, .ipc = 1);
    gpumem_pool_info info = {.size = sizeof info};
    OK(gpumem_pool_get_info(own, &info));
    const char *listed = json_find(resource_of_kind(take(), "device_pool"), "pool");
    NUMBER(listed, "handle", (uintptr_t)info.handle);
    assert_true(json_is(json_find(listed, "owned"), "true"));
    assert_true(json_is(json_find(listed, "imported"), "false"));
    assert_true(json_is(json_find(listed, "exported"), "false"));
    OK(gpumem_pool_get_share_handle(own, &handle));
    listed = json_find(resource_of_kind(take(), "device_pool"), "pool");
    assert_true(json_is(json_find(listed, "exported"), "true"));
    OK(gpumem_resource_destroy(own));
    gpumem_resource *current = NEW_POOL();
    listed = json_find(resource_of_kind(take(), "device_pool"), "pool");
    assert_true(json_is(json_find(listed, "owned"), "false"));
    assert_null(json_find(listed, "imports"));
    OK(gpumem_resource_destroy(current));
}

static void *free_it(void *buffer) {
    return gpumem_buffer_free(buffer, NULL) == GPUMEM_OK ? NULL : buffer;
}

/* On a named stream a pool's buffers come and go by few steps, and their objects are used again. */
TEST(buffers_of_the_pools_fast_path_are_listed) {
    gpumem_buffer *buffers[300];
    pthread_t thread;
    void *failed;
    gpumem_resource *pool = NEW_POOL();
    CUstream stream = NEW_STREAM();
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT(buffers); i++)
            buffers[i] = NEW_BUFFER_WITH(pool, 1000 + i, .stream = stream);
        for (size_t i = 0; i + 2 < COUNT(buffers); i++)
            OK(gpumem_buffer_free(buffers[i], NULL));
        assert_int_equal(pthread_create(&thread, NULL, free_it, buffers[COUNT(buffers) - 2]), 0);
        pthread_join(thread, &failed);
        assert_null(failed);
        const char *listed = resource_of_kind(take(), "device_pool");
        assert_int_equal(json_count(json_find(listed, "buffers")), 1);
        const char *last = buffer_of(listed, buffers[COUNT(buffers) - 1]);
        NUMBER(last, "bytes", 1000 + COUNT(buffers) - 1);
        NUMBER(last, "stream", (uintptr_t)stream);
        NUMBER(listed, "statistics.allocations", 1);
        OK(gpumem_buffer_free(buffers[COUNT(buffers) - 1], NULL));
    }
    DESTROY(stream, pool);
}

static unsigned long long graph_blocks(const char *cache, const char **pool) {
    const char *segment = with(json_find(cache, "segments"), "kind", "capture");
    *pool = json_find(segment, "capture_pool");
    const char *piece = with(json_find(segment, "pieces"), "state", "graph");
    const char *count = piece ? json_find(piece, "count") : NULL;
    return !piece ? 0 : count ? json_unsigned(count) : 1;
}

TEST(memory_of_captures_is_listed_as_owned_by_graphs) {
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_resource *cache = NEW_CACHING(pinned);
    gpumem_capture_pool *pool = MADE(gpumem_capture_pool *, gpumem_capture_pool_create, cache);
    CUstream stream = NEW_STREAM();
    use_context();
    OK(gpumem_capture_pool_begin(pool, stream));
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    gpumem_buffer *buffer = NEW_BUFFER_WITH(cache, 4096, .stream = stream);
    OK(gpumem_buffer_free(buffer, NULL));
    const char *named, *of = json_find(resource_of_kind(take(), "caching"), "cache");
    NUMBER(of, "capture_pools", 1);
    assert_int_equal(graph_blocks(of, &named), 1);
    assert_non_null(named);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu->cuGraphDestroy(graph));
    OK(gpumem_capture_pool_end(pool, stream));
    leave_context();
    OK(gpumem_capture_pool_destroy(pool, GPUMEM_STREAM_NONE));
    NUMBER(resource_of_kind(take(), "caching"), "cache.capture_pools", 0);
    DESTROY(cache, pinned, stream);
}

/* ---- Resources over resources ---------------------------------------------------------------- */

TEST(limits_and_fallbacks_are_listed) {
    gpumem_resource *first = NEW_POOL();
    gpumem_resource *second = NEW_PINNED();
    gpumem_resource *limit = NEW_LIMIT(first, MIB);
    gpumem_resource *either = NEW_FALLBACK(limit, second);
    gpumem_buffer *buffer = NEW_BUFFER(either, 3000);
    const char *now = take(), *listed = resource_of_kind(now, "limiting");
    NUMBER(listed, "limit.maximum_bytes", MIB);
    NUMBER(listed, "limit.taken_bytes", 3000);
    const char *fallback = resource_of_kind(now, "fallback");
    NUMBER(fallback, "upstream", json_unsigned(json_find(listed, "id")));
    NUMBER(fallback, "second_upstream",
           json_unsigned(json_find(resource_of_kind(now, "pinned"), "id")));
    assert_true(json_is(json_find(fallback, "takes_buffers"), "true"));
    assert_non_null(buffer_of(fallback, buffer));
    assert_non_null(buffer_of(listed, buffer));
    DESTROY(buffer, either, limit, second, first);
}

TEST(call_sites_of_tracked_buffers_are_listed) {
    gpumem_resource *pool = NEW_POOL();
    gpumem_resource *tracking = NEW_TRACKING(pool, .frames = 4);
    gpumem_buffer *buffer = NEW_BUFFER(tracking, 5000);
    const char *tracked = json_find(resource_of_kind(take(), "tracking"), "tracked");
    assert_int_equal(json_count(tracked), 1);
    NUMBER(tracked, "0.address", gpumem_buffer_pointer(buffer));
    NUMBER(tracked, "0.bytes", 5000);
    NUMBER(tracked, "0.number", 1);
    NUMBER(tracked, "0.thread", (unsigned long long)gettid());
    const char *frame = json_find(tracked, "0.frames.0");
    char text[512] = "";
    assert_non_null(frame);
    snprintf(text, sizeof text, "%.*s", (int)(strcspn(frame + 1, "\"") + 2), frame);
    assert_non_null(strstr(text, "unit/run")); /* this program's file */
    char *without;
    OK(gpumem_snapshot(library, GPUMEM_SNAPSHOT_OPTIONS(.device = device, .without_buffers = true),
                       &without));
    assert_null(strstr(without, "\"tracked\""));
    free(without);
    OK(gpumem_buffer_free(buffer, NULL));
    tracked = json_find(resource_of_kind(take(), "tracking"), "tracked");
    assert_int_equal(json_count(tracked), 0);
    DESTROY(tracking, pool);
}

static int drop_text(void *user, const char *text, size_t bytes) {
    return 0;
}

TEST(traces_are_listed_with_their_line_count) {
    gpumem_resource *pool = NEW_POOL();
    gpumem_resource *trace = NEW_TRACE(pool, .write = drop_text);
    unsigned long long before =
        json_unsigned(json_find(resource_of_kind(take(), "trace"), "trace.lines"));
    OK(gpumem_buffer_free(NEW_BUFFER(trace, 100), NULL));
    NUMBER(resource_of_kind(take(), "trace"), "trace.lines", before + 2);
    NUMBER(resource_of_kind(take(), "trace"), "trace.missing", 0);
    DESTROY(trace, pool);
}

/* What a tracking resource knows of a buffer goes with it to its new place. */
TEST(a_moved_buffer_stays_tracked) {
    gpumem_resource *resource = make_virtual(0), *tracking;
    OK(gpumem_tracking_resource_create(resource, NULL, &tracking));
    gpumem_buffer *buffer = NEW_BUFFER(tracking, 2 * MIB);
    CUdeviceptr address;
    OK(gpumem_buffer_move_to_capacity(buffer, 128 * MIB, NULL, &address));
    const char *tracked = json_find(resource_of_kind(take(), "tracking"), "tracked");
    assert_int_equal(json_count(tracked), 1);
    NUMBER(tracked, "0.address", address);
    OK(gpumem_buffer_free(buffer, NULL));
    tracked = json_find(resource_of_kind(take(), "tracking"), "tracked");
    assert_int_equal(json_count(tracked), 0);
    DESTROY(tracking, resource);
}

/* ---- While threads run ----------------------------------------------------------------------- */

#define THREADS 3
#define ROUNDS  300

struct worker {
    gpumem_resource *resource;
    pthread_t thread;
    int failed; /* line of the call */
};

static atomic_int ended;

#define STEP(call)                                                                                 \
    do {                                                                                           \
        if ((call) != GPUMEM_OK && !worker->failed)                                                \
            worker->failed = __LINE__;                                                             \
    } while (0)

/* Whatever a snapshot tells of one buffer changes. */
static void *change(void *data) {
    struct worker *worker = data;
    for (unsigned i = 0; i < ROUNDS && !worker->failed; i++) {
        gpumem_buffer *buffer = NULL, *view = NULL, *foreign = NULL;
        gpumem_watch *watch = NULL;
        CUdeviceptr address;
        STEP(gpumem_buffer_allocate(worker->resource, 8 * MIB, NULL, &buffer));
        if (!buffer)
            break;
        STEP(gpumem_buffer_view(buffer, 0, MIB, &view));
        STEP(
            gpumem_buffer_from_pointer(device, gpumem_buffer_pointer(buffer), MIB, NULL, &foreign));
        STEP(gpumem_buffer_free(foreign, NULL));
        STEP(gpumem_buffer_free(view, NULL));
        STEP(gpumem_buffer_watch(buffer, heard, NULL, &watch));
        STEP(gpumem_watch_destroy(watch));
        STEP(gpumem_buffer_decommit(buffer, 2 * MIB, 2 * MIB, NULL, NULL));
        STEP(gpumem_buffer_recommit(buffer, 0, 8 * MIB));
        if (i % 4 == 0)
            STEP(gpumem_buffer_move_to_capacity(buffer, 64 * MIB, NULL, &address));
        STEP(gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
        STEP(gpumem_buffer_free(buffer, NULL));
    }
    atomic_fetch_add(&ended, 1);
    return NULL;
}

TEST(a_snapshot_is_valid_json_while_objects_change) {
    gpumem_resource *resource = make_virtual(32 * MIB), *tracking;
    struct worker workers[THREADS] = {0};
    OK(gpumem_tracking_resource_create(resource, NULL, &tracking));
    gpumem_resource *trace = NEW_TRACE(tracking, .write = drop_text);
    atomic_store(&ended, 0);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].resource = trace;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, change, &workers[i]), 0);
    }
    do {
        take();
    } while (atomic_load(&ended) < THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].failed, 0);
    }
    OK(gpumem_device_trim(device, 1));
    const char *now = take();
    assert_int_equal(json_count(json_find(resource_of_kind(now, "tracking"), "tracked")), 0);
    assert_int_equal(json_count(json_find(resource_of_kind(now, "view"), "buffers")), 0);
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 0);
    assert_int_equal(json_count(json_find(now, "virtual_memory.physical")), 0);
    DESTROY(trace, tracking, resource);
}
