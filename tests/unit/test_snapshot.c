/* The snapshot: what it lists of each kind of memory, and that it is valid JSON at any time. */
#include "snapshot_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

EACH_TEST(open_device, teardown);

/* ---- What is listed -------------------------------------------------------------------------- */

TEST(the_snapshot_header_names_schema_driver_and_devices) {
    take();
    assert_true(json_is(json_find(taken, "schema"), "gpumem.snapshot"));
    NUMBER(taken, "version", 1);
    assert_true(json_is(json_find(taken, "driver.kind"), "softgpu"));
    assert_int_equal(json_count(json_find(taken, "devices")), 1);
    NUMBER(taken, "devices.0.ordinal", 0);
}

TEST(virtual_buffers_are_listed_with_their_memory) {
    gpumem_resource *resource =
        NEW_VIRTUAL(.capacity = 64 * MIB, .maximum_chunk_bytes = 4 * MIB, .exact_growth = 1);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 8 * MIB);
    const char *now = take();
    const char *listed = buffer_of(resource_of_kind(now, "virtual"), buffer);
    assert_non_null(listed);
    NUMBER(listed, "bytes", 8 * MIB);
    NUMBER(listed, "capacity", 64 * MIB);
    assert_true(json_is(json_find(listed, "state"), "live"));
    const char *owner = json_find(resource_of_kind(now, "virtual"), "id");
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 2);
    assert_int_equal(json_count(json_find(now, "virtual_memory.physical")), 2);
    NUMBER(now, "virtual_memory.mappings.0.address", gpumem_buffer_pointer(buffer));
    NUMBER(now, "virtual_memory.mappings.1.bytes", 4 * MIB);
    NUMBER(now, "virtual_memory.mappings.0.resource", json_unsigned(owner));
    NUMBER(now, "virtual_memory.physical.0.resource", json_unsigned(owner));
    NUMBER(now, "virtual_memory.reservations.0.bytes", 64 * MIB);

    OK(gpumem_buffer_grow(buffer, 12 * MIB, NULL));
    now = take();
    NUMBER(buffer_of(resource_of_kind(now, "virtual"), buffer), "committed_bytes", 12 * MIB);
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 3);
    OK(gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
    now = take();
    NUMBER(buffer_of(resource_of_kind(now, "virtual"), buffer), "bytes", 4 * MIB);
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 1);

    OK(gpumem_buffer_free(buffer, NULL));
    now = take();
    assert_int_equal(json_count(json_find(resource_of_kind(now, "virtual"), "buffers")), 0);
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 0);
    assert_int_equal(json_count(json_find(now, "virtual_memory.physical")), 0);
    assert_int_equal(json_count(json_find(now, "virtual_memory.reservations")), 0);
    OK(gpumem_resource_destroy(resource));
}

TEST(low_level_memory_is_listed_outside_resources) {
    gpumem_reservation *reservation;
    gpumem_physical *physical, *unmapped;
    gpumem_mapping *mapping;
    OK(gpumem_reservation_create(device, 8 * MIB, NULL, &reservation));
    OK(gpumem_physical_create(device, 2 * MIB, NULL, &physical));
    OK(gpumem_physical_create(device, 4 * MIB, NULL, &unmapped));
    OK(gpumem_mapping_create(reservation, 2 * MIB, physical, &mapping));
    const char *now = take();
    NUMBER(now, "virtual_memory.reservations.0.address", reservation_address(reservation));
    NUMBER(now, "virtual_memory.mappings.0.address", mapping_info(mapping).address);
    assert_true(json_is(json_find(now, "virtual_memory.mappings.0.resource"), "null"));
    assert_int_equal(json_count(json_find(now, "virtual_memory.physical")), 2);
    const char *memory = with(json_find(now, "virtual_memory.physical"), "bytes", "2097152");
    NUMBER(now, "virtual_memory.mappings.0.handle", json_unsigned(json_find(memory, "handle")));
    OK(gpumem_mapping_destroy(mapping));
    now = take();
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 0);
    assert_int_equal(json_count(json_find(now, "virtual_memory.physical")), 2);
    DESTROY(physical, unmapped, reservation);
    assert_int_equal(json_count(json_find(take(), "virtual_memory.physical")), 0);
}

TEST(slabs_are_listed_with_their_pieces) {
    gpumem_resource *resource = NEW_PINNED(.slab_bytes = 2 * MIB);
    gpumem_buffer *first = NEW_BUFFER(resource, 64 * KIB), *second = NEW_BUFFER(resource, 64 * KIB),
                  *third = NEW_BUFFER(resource, 4 * KIB);
    OK(gpumem_buffer_free(third, NULL));
    third = NEW_BUFFER(resource, 4 * KIB);
    OK(gpumem_buffer_free(first, NULL));
    const char *pinned = resource_of_kind(take(), "pinned");
    assert_int_equal(json_count(json_find(pinned, "slabs")), 1);
    NUMBER(pinned, "slabs.0.bytes", 2 * MIB);
    NUMBER(pinned, "slabs.0.host_address",
           (uintptr_t)gpumem_buffer_host_pointer(second) - 64 * KIB);
    NUMBER(pinned, "slabs.0.free_bytes", 2 * MIB - 68 * KIB);
    assert_true(json_is(json_find(pinned, "slabs.0.pieces.0.state"), "free"));
    assert_true(json_is(json_find(pinned, "slabs.0.pieces.1.state"), "in_use"));
    NUMBER(pinned, "slabs.0.pieces.1.offset", 64 * KIB);
    assert_int_equal(json_count(json_find(pinned, "slabs.0.pieces")), 4);
    DESTROY(second, third, resource);
}

/* Pieces of a state in all segments of the cache, neighbours counted one by one. */
static unsigned long long pieces(const char *cache, const char *wanted) {
    unsigned long long count = 0;
    const char *segments = json_find(cache, "segments");
    for (size_t s = 0; s < json_count(segments); s++) {
        char path[48];
        snprintf(path, sizeof path, "%zu.pieces", s);
        const char *list = json_find(segments, path);
        for (size_t i = 0; i < json_count(list); i++) {
            snprintf(path, sizeof path, "%zu", i);
            const char *piece = json_find(list, path), *of = json_find(piece, "count");
            if (json_is(json_find(piece, "state"), wanted))
                count += of ? json_unsigned(of) : 1;
        }
    }
    return count;
}

TEST(a_cache_lists_the_owner_of_each_block) {
    gpumem_buffer *small[6], *large;
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    gpumem_resource *cache = NEW_CACHING(pool);
    for (unsigned i = 0; i < 6; i++)
        small[i] = NEW_BUFFER(cache, 1000);
    large = NEW_BUFFER(cache, 3 * MIB);
    DESTROY_EACH(small, 4);
    const char *now = take();
    const char *listed = json_find(resource_of_kind(now, "caching"), "cache");
    assert_int_equal(pieces(listed, "in_use"), 3);
    assert_true(pieces(listed, "thread") >= 4);
    assert_int_equal(json_count(json_find(resource_of_kind(now, "caching"), "buffers")), 0);
    NUMBER(resource_of_kind(now, "caching"), "upstream",
           json_unsigned(json_find(resource_of_kind(now, "device_pool"), "id")));
    gpumem_caching_info info = caching_info_of(cache);
    NUMBER(listed, "segment_bytes", info.segment_bytes);
    NUMBER(listed, "thread_bytes", info.thread_bytes);
    NUMBER(listed, "free_bytes", info.free_bytes);
    assert_int_equal(json_count(json_find(listed, "segments")), info.segments);

    char *without =
        MADE(char *, gpumem_snapshot, library,
             GPUMEM_SNAPSHOT_OPTIONS(.device = device, .without_pieces = 1, .without_buffers = 1));
    assert_true(json_is_valid(without));
    assert_null(strstr(without, "pieces"));
    assert_null(strstr(without, "\"buffers\""));
    free(without);
    DESTROY(small[4], small[5], large, cache, pool);
}

TEST(memory_used_by_queued_work_is_listed_as_pending) {
    struct gate gate = gate_with_stream();
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_resource *cache = NEW_CACHING(pinned);
    gpumem_buffer *buffer = NEW_BUFFER_WITH(cache, 1000, .stream = gate.stream);
    gpumem_buffer *deferred = NEW_BUFFER_WITH(pinned, 5000, .stream = gate.stream);
    CUdeviceptr address = gpumem_buffer_pointer(deferred);
    DESTROY(buffer, deferred);
    const char *now = take();
    const char *caching = resource_of_kind(now, "caching");
    assert_int_equal(pieces(json_find(caching, "cache"), "pending"), 1);
    NUMBER(caching, "cache.pending_bytes", 1024);
    NUMBER(caching, "statistics.deferred_bytes", 1024);
    NUMBER(caching, "statistics.deferred_frees", 1);
    NUMBER(now, "statistics.deferred_frees", 2);
    assert_int_equal(json_count(json_find(now, "deferred")), 1);
    NUMBER(now, "deferred.0.address", address);
    NUMBER(now, "deferred.0.bytes", 5000);
    const char *listed = with(json_find(resource_of_kind(now, "pinned"), "buffers"), "address",
                              address_text(address));
    assert_true(json_is(json_find(listed, "state"), "deferred"));
    NUMBER(listed, "stream", (uintptr_t)gate.stream);
    gate_drain(&gate);
    DESTROY(cache, pinned, &gate);
    assert_int_equal(json_count(json_find(take(), "deferred")), 0);
}

TEST(exports_and_imports_are_listed) {
    gpumem_buffer *imported;
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 2 * MIB);
    gpumem_export *exported = NEW_EXPORT(buffer);
    const void *description;
    size_t bytes;
    OK(export_description(exported, &description, &bytes));
    int fd = MADE(int, export_descriptor, exported, 0);
    OK(gpumem_import_create(device, description, bytes, &fd, 1, NULL, &imported));
    const char *now = take();
    assert_int_equal(json_count(json_find(now, "exports")), 1);
    NUMBER(now, "exports.0.address", gpumem_buffer_pointer(buffer));
    NUMBER(now, "exports.0.descriptors", 1);
    NUMBER(buffer_of(resource_of_kind(now, "virtual"), buffer), "references", 2);
    const char *import = buffer_of(resource_of_kind(now, "imported"), imported);
    assert_non_null(import);
    NUMBER(import, "bytes", 2 * MIB);
    const char *memory = with(json_find(now, "virtual_memory.physical"), "imported", "true");
    NUMBER(memory, "bytes", 2 * MIB);

    OK(gpumem_buffer_free(buffer, NULL)); /* the export keeps it */
    now = take();
    const char *held =
        with(json_find(resource_of_kind(now, "virtual"), "buffers"), "state", "held");
    assert_non_null(held);
    DESTROY(imported, exported);
    now = take();
    assert_int_equal(json_count(json_find(now, "exports")), 0);
    assert_int_equal(json_count(json_find(resource_of_kind(now, "virtual"), "buffers")), 0);
    OK(gpumem_resource_destroy(resource));
}

TEST(memory_that_could_not_be_released_is_marked) {
    gpumem_physical *physical;
    OK(gpumem_physical_create(device, 2 * MIB, NULL, &physical));
    assert_int_equal(soft->fault_arm("cuMemRelease", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE),
                     0);
    OK(gpumem_physical_destroy(physical));
    assert_int_equal(soft->fault_disarm(), 1);
    const char *now = take();
    const char *kept = with(json_find(now, "virtual_memory.physical"), "quarantined", "true");
    assert_non_null(kept);
    NUMBER(kept, "bytes", 2 * MIB);
    NUMBER(now, "statistics.quarantined", 1);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static gpumem_status no_memory(void *user, const gpumem_request *request,
                               gpumem_allocation *allocation) {
    return gpumem_set_last_error(GPUMEM_ERROR_OUT_OF_MEMORY, "none");
}

static void take_nothing(void *user, const gpumem_allocation *allocation, CUstream stream) {
}

static void hostile_properties(void *user, gpumem_resource_properties *properties) {
    properties->location = (gpumem_location)77;
    properties->handle_type = (gpumem_handle_type)-3;
    snprintf(properties->note, sizeof properties->note, "\"</script>\x01\xff\xc3");
}

TEST(names_are_escaped_in_the_json_text) {
    static const char *const names[] = {
        "quote\" back\\slash",
        "line\nfeed\ttab\x1b[31m",
        "</script><!--",
        "\xff\xfe not UTF-8 \xc3",
        "\xed\xa0\x80 surrogate",
        /* 47 bytes are kept: the last character is cut in the middle */
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xe2\x82\xac",
        "",
    };
    for (size_t i = 0; i < COUNT(names); i++) {
        const gpumem_resource_ops ops = {
            .size = sizeof ops,
            .kind = names[i],
            .allocate = no_memory,
            .deallocate = take_nothing,
            .properties = hostile_properties,
        };
        gpumem_resource *resource;
        OK(gpumem_resource_create(device, &ops, NULL, &resource));
        assert_non_null(json_find(take(), "resources.0.kind"));
        OK(gpumem_resource_destroy(resource));
    }
}

/* ---- Calls ----------------------------------------------------------------------------------- */

struct reader {
    char *text;
    size_t used, calls, calls_left;
};

static int read_some(void *user, const char *text, size_t bytes) {
    struct reader *reader = user;
    if (reader->calls++ == reader->calls_left)
        return ENOSPC;
    reader->text = realloc(reader->text, reader->used + bytes + 1);
    assert_non_null(reader->text);
    memcpy(reader->text + reader->used, text, bytes);
    reader->used += bytes;
    reader->text[reader->used] = 0;
    return 0;
}

TEST(a_snapshot_reader_may_stop_early) {
    gpumem_buffer *buffers[1000];
    gpumem_resource *resource = NEW_POOL();
    for (size_t i = 0; i < COUNT(buffers); i++)
        buffers[i] = NEW_BUFFER(resource, 512);
    struct reader whole = {.calls_left = SIZE_MAX}, part = {.calls_left = 1};
    OK(gpumem_snapshot_write(library, NULL, read_some, &whole));
    assert_true(whole.calls > 1);
    assert_true(json_is_valid(whole.text));
    const char *listed = json_find(whole.text, "devices.0.resources.0.buffers");
    assert_int_equal(json_count(listed), COUNT(buffers));
    FAILS(SYSTEM, gpumem_snapshot_write(library, NULL, read_some, &part));
    assert_int_equal(gpumem_last_error()->system_code, ENOSPC);
    assert_int_equal(part.calls, 2);
    free(whole.text);
    free(part.text);
    DESTROY_EACH(buffers, COUNT(buffers));
    OK(gpumem_resource_destroy(resource));
}

TEST(invalid_arguments_are_refused) {
    char *text = NULL;
    FAILS(INVALID_ARGUMENT, snapshot_of(device, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_snapshot(NULL, NULL, &text));
    FAILS(INVALID_ARGUMENT, gpumem_snapshot_write(library, NULL, NULL, NULL));
    FAILS(INVALID_ARGUMENT,
          gpumem_snapshot(library, &(gpumem_snapshot_options){.without_pieces = 1}, &text));
    gpumem_library *other = MADE(gpumem_library *, gpumem_open, NULL);
    FAILS_SAYING(INVALID_ARGUMENT, "another opened library",
                 gpumem_snapshot(other, GPUMEM_SNAPSHOT_OPTIONS(.device = device), &text));
    OK(gpumem_close(other));
    assert_null(text);
}

/* ---- While threads run ----------------------------------------------------------------------- */

static atomic_int ended;
static gpumem_resource *shared[4];

static void *churn(void *data) {
    unsigned seed = (unsigned)(uintptr_t)data;
    gpumem_buffer *kept[16] = {0};
    for (unsigned i = 0; i < 400; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned slot = seed >> 8 & 15;
        gpumem_resource *resource = shared[seed >> 16 & 3];
        if (kept[slot] && (seed & 1) && gpumem_buffer_resource(kept[slot]) == shared[0]) {
            if (gpumem_buffer_grow(kept[slot], 6 * MIB, NULL) == GPUMEM_OK &&
                gpumem_buffer_shrink(kept[slot], 2 * MIB, NULL) != GPUMEM_OK)
                break;
        }
        (void)gpumem_buffer_free(kept[slot], NULL);
        if (gpumem_buffer_allocate(resource, 2000 + (seed >> 20),
                                   GPUMEM_BUFFER_OPTIONS(.capacity = 0), &kept[slot]) != GPUMEM_OK)
            kept[slot] = NULL;
    }
    for (unsigned i = 0; i < 16; i++)
        (void)gpumem_buffer_free(kept[i], NULL);
    atomic_fetch_add(&ended, 1);
    return NULL;
}

static void *make_and_end(void *data) {
    for (unsigned i = 0; i < 100; i++) {
        gpumem_resource *one, *two;
        if (gpumem_pinned_resource_create(device, NULL, &one) != GPUMEM_OK ||
            gpumem_caching_resource_create(one, NULL, &two) != GPUMEM_OK ||
            gpumem_resource_destroy(two) != GPUMEM_OK || gpumem_resource_destroy(one) != GPUMEM_OK)
            break;
    }
    atomic_fetch_add(&ended, 1);
    return NULL;
}

TEST(a_snapshot_is_valid_while_threads_run) {
    enum { THREADS = 3 };
    pthread_t threads[THREADS + 1];
    shared[0] = NEW_VIRTUAL(.capacity = 16 * MIB, .maximum_chunk_bytes = 2 * MIB);
    shared[1] = NEW_PINNED();
    shared[2] = NEW_POOL();
    shared[3] = NEW_CACHING(shared[2]);
    atomic_store(&ended, 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    assert_int_equal(pthread_create(&threads[THREADS], NULL, make_and_end, NULL), 0);
    do {
        take();
    } while (atomic_load(&ended) <= THREADS);
    for (unsigned i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(gpumem_device_trim(device, 1));
    const char *now = take();
    for (unsigned i = 0; i < 3; i++) {
        char path[48];
        snprintf(path, sizeof path, "resources.%u.buffers", i);
        assert_int_equal(json_count(json_find(now, path)), 0);
    }
    assert_int_equal(json_count(json_find(now, "virtual_memory.mappings")), 0);
    for (unsigned i = 4; i-- > 0;)
        OK(gpumem_resource_destroy(shared[i]));
}
