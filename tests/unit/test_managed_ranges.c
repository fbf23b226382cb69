/* Managed memory in use: advice, prefetch, discard and questions, for ranges of buffers. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

#define ALLOCATED GPUMEM_MANAGED_ALLOCATED
#define POOL      GPUMEM_MANAGED_POOL
#define PAGE      ((size_t)4096)

static gpumem_resource *resource;
static gpumem_buffer *buffer;
static CUstream stream;

static void begin(gpumem_managed_method method, size_t bytes) {
    stream = NEW_STREAM();
    resource = NEW_MANAGED(.method = method);
    buffer = NEW_BUFFER_WITH(resource, bytes, .stream = stream);
    synchronize(stream);
}

static void end(void) {
    OK(gpumem_buffer_free(buffer, NULL));
    synchronize(stream);
    DESTROY(resource, stream);
}

static gpumem_managed_range range_of(size_t offset, size_t bytes) {
    gpumem_managed_range range = {.size = sizeof range};
    OK(gpumem_buffer_get_managed_range(buffer, offset, bytes, &range));
    return range;
}

static void advise(size_t offset, size_t bytes, gpumem_advice advice, gpumem_location location,
                   int id) {
    OK(gpumem_buffer_advise(buffer, offset, bytes, advice, location, id));
}

TEST(advice_applies_to_its_range_only) {
    begin(ALLOCATED, 4 * MIB);
    gpumem_managed_range all = range_of(0, 4 * MIB);
    assert_true(!all.read_mostly && !all.has_preferred && !all.has_prefetched);
    assert_true(!all.accessed_by && !all.accessed_by_host);
    assert_int_equal(all.preferred_ordinal_or_node, -1);
    advise(MIB, MIB, GPUMEM_ADVICE_SET_READ_MOSTLY, GPUMEM_LOCATION_DEVICE, 0);
    assert_int_equal(range_of(MIB, MIB).read_mostly, 1);
    assert_int_equal(range_of(MIB - PAGE, MIB).read_mostly, 0);
    assert_int_equal(range_of(2 * MIB, MIB).read_mostly, 0);
    advise(MIB, MIB, GPUMEM_ADVICE_UNSET_READ_MOSTLY, GPUMEM_LOCATION_DEVICE, 0);
    assert_int_equal(range_of(MIB, MIB).read_mostly, 0);

    advise(0, 2 * MIB, GPUMEM_ADVICE_SET_PREFERRED_LOCATION, GPUMEM_LOCATION_DEVICE, 1);
    gpumem_managed_range first = range_of(0, 2 * MIB);
    MEMBERS(first, (has_preferred, 1), (preferred, GPUMEM_LOCATION_DEVICE),
            (preferred_ordinal_or_node, 1));
    advise(2 * MIB, 2 * MIB, GPUMEM_ADVICE_SET_PREFERRED_LOCATION, GPUMEM_LOCATION_HOST, 0);
    assert_int_equal(range_of(2 * MIB, 2 * MIB).preferred, GPUMEM_LOCATION_HOST);
    assert_int_equal(range_of(2 * MIB, 2 * MIB).preferred_ordinal_or_node, -1);
    assert_int_equal(range_of(0, 4 * MIB).has_preferred, 0); /* nothing in common */
    advise(0, 4 * MIB, GPUMEM_ADVICE_UNSET_PREFERRED_LOCATION, GPUMEM_LOCATION_DEVICE, 0);
    assert_int_equal(range_of(2 * MIB, MIB).has_preferred, 0);

    advise(0, MIB, GPUMEM_ADVICE_SET_ACCESSED_BY, GPUMEM_LOCATION_DEVICE, 1);
    advise(0, MIB, GPUMEM_ADVICE_SET_ACCESSED_BY, GPUMEM_LOCATION_HOST, 0);
    first = range_of(0, MIB);
    MEMBERS(first, (accessed_by, 1u << 1), (accessed_by_host, 1));
    advise(0, MIB, GPUMEM_ADVICE_UNSET_ACCESSED_BY, GPUMEM_LOCATION_HOST, 0);
    assert_int_equal(range_of(0, MIB).accessed_by_host, 0);
    assert_int_equal(range_of(0, MIB).accessed_by, 1u << 1);
    end();
}

TEST(prefetches_run_in_stream_order) {
    begin(ALLOCATED, 4 * MIB);
    memset(gpumem_buffer_host_pointer(buffer), 6, 4 * MIB);
    OK(gpumem_buffer_prefetch(buffer, MIB, MIB, GPUMEM_LOCATION_DEVICE, 0, stream));
    OK(gpumem_buffer_prefetch(buffer, 2 * MIB, MIB, GPUMEM_LOCATION_HOST, 0, NULL));
    synchronize(stream);
    synchronize(NULL);
    gpumem_managed_range range = range_of(MIB, MIB);
    MEMBERS(range, (has_prefetched, 1), (prefetched, GPUMEM_LOCATION_DEVICE),
            (prefetched_ordinal_or_node, 0));
    assert_int_equal(range_of(2 * MIB, MIB).prefetched, GPUMEM_LOCATION_HOST);
    assert_int_equal(range_of(0, MIB).has_prefetched, 0);
    const unsigned char *bytes = gpumem_buffer_host_pointer(buffer);
    for (size_t i = 0; i < 4 * MIB; i += 1000)
        assert_int_equal(bytes[i], 6); /* content is kept */
    OK(gpumem_buffer_prefetch(buffer, 0, MIB, GPUMEM_LOCATION_HOST_NUMA, 0, stream));
    range = range_of(0, MIB);
    MEMBERS(range, (prefetched, GPUMEM_LOCATION_HOST_NUMA), (prefetched_ordinal_or_node, 0));
    OK(gpumem_buffer_prefetch(buffer, 0, MIB, GPUMEM_LOCATION_HOST_NUMA_CURRENT, 0, stream));
    end();
}

/* The stream is named for the buffer: its memory stays as long as the prefetch is held. */
TEST(a_free_waits_for_a_queued_prefetch) {
    struct gate gate = gate_with_stream();
    begin(ALLOCATED, MIB);
    OK(gpumem_buffer_prefetch(buffer, 0, MIB, GPUMEM_LOCATION_DEVICE, 0, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(device_stats().deferred_frees, 1);
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().deferred_frees, 0);
    DESTROY(resource, stream, &gate);
}

/* Whole pages in the range lose their content, those that it only touches keep theirs. */
TEST(discarding_affects_only_whole_pages_of_the_range) {
    begin(ALLOCATED, 4 * MIB);
    unsigned char *bytes = gpumem_buffer_host_pointer(buffer);
    memset(bytes, 6, 4 * MIB);
    OK(gpumem_buffer_discard(buffer, MIB + 100, MIB, NULL, stream));
    synchronize(stream);
    assert_int_equal(bytes[MIB + 99], 6);
    assert_int_equal(bytes[MIB + 100], 6);
    assert_int_not_equal(bytes[MIB + PAGE], 6);
    assert_int_not_equal(bytes[2 * MIB - 1], 6);
    assert_int_equal(bytes[2 * MIB + 100], 6);
    assert_int_equal(range_of(MIB, MIB).has_prefetched, 0);
    OK(gpumem_buffer_discard(buffer, 3 * MIB, MIB,
                             GPUMEM_DISCARD_OPTIONS(.prefetch = true,
                                                    .location = GPUMEM_LOCATION_HOST,
                                                    .ordinal_or_node = 0),
                             stream));
    synchronize(stream);
    assert_int_not_equal(bytes[3 * MIB], 6);
    assert_int_equal(range_of(3 * MIB, MIB).prefetched, GPUMEM_LOCATION_HOST);
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 9, stream)); /* it can be written again */
    synchronize(stream);
    assert_int_equal(bytes[MIB + PAGE], 9);
    end();
}

TEST(advice_applies_to_views_and_foreign_memory) {
    gpumem_buffer *whole, *foreign;
    begin(ALLOCATED, 4 * MIB);
    gpumem_buffer *view = NEW_VIEW(buffer, MIB, MIB);
    whole = buffer;
    buffer = view;
    advise(0, MIB, GPUMEM_ADVICE_SET_READ_MOSTLY, GPUMEM_LOCATION_DEVICE, 0);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_advise(buffer, 1, MIB, GPUMEM_ADVICE_SET_READ_MOSTLY,
                                                 GPUMEM_LOCATION_DEVICE, 0));
    OK(gpumem_buffer_free(view, NULL));
    buffer = whole;
    assert_int_equal(range_of(MIB, MIB).read_mostly, 1);
    assert_int_equal(range_of(0, PAGE).read_mostly, 0);
    OK(gpumem_buffer_from_pointer(device, gpumem_buffer_pointer(whole) + 3 * MIB, MIB, NULL,
                                  &foreign));
    buffer = foreign;
    advise(0, MIB, GPUMEM_ADVICE_SET_ACCESSED_BY, GPUMEM_LOCATION_DEVICE, 0);
    OK(gpumem_buffer_free(foreign, NULL));
    buffer = whole;
    assert_int_equal(range_of(3 * MIB, MIB).accessed_by, 1);
    end();
}

TEST(invalid_arguments_are_refused_with_a_reason) {
    gpumem_managed_range range = {.size = sizeof range};
    const gpumem_advice mostly = GPUMEM_ADVICE_SET_READ_MOSTLY;
    const gpumem_location here = GPUMEM_LOCATION_DEVICE;
    begin(ALLOCATED, MIB);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_advise(buffer, MIB, 1, mostly, here, 0));
    SAYS("do not fit");
    FAILS(INVALID_ARGUMENT, gpumem_buffer_advise(buffer, 0, 1, (gpumem_advice)7, here, 0));
    SAYS("unknown advice 7");
    FAILS_SAYING(INVALID_ARGUMENT, "no peer device 9",
                 gpumem_buffer_advise(buffer, 0, 1, GPUMEM_ADVICE_SET_ACCESSED_BY, here, 9));
    FAILS_SAYING(INVALID_ARGUMENT, "a device or the host",
                 gpumem_buffer_advise(buffer, 0, 1, GPUMEM_ADVICE_SET_ACCESSED_BY,
                                      GPUMEM_LOCATION_HOST_NUMA, 0));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_prefetch(buffer, 0, 1, (gpumem_location)9, 0, stream));
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_prefetch(buffer, 0, 1, GPUMEM_LOCATION_HOST_NUMA, 999, stream));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_prefetch(buffer, 0, 1, GPUMEM_LOCATION_HOST, 3, stream));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_prefetch(buffer, 0, MIB + 1, here, 0, stream));
    FAILS_SAYING(INVALID_ARGUMENT, "legacy", gpumem_buffer_discard(buffer, 0, MIB, NULL, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_discard(buffer, 0, MIB, NULL, GPUMEM_STREAM_LEGACY));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_discard(buffer, 0, MIB, NULL, GPUMEM_STREAM_NONE));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_get_managed_range(buffer, 0, 0, &range));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_get_managed_range(buffer, 0, 1, NULL));
    OK(gpumem_buffer_prefetch(buffer, MIB, 0, here, 0, stream)); /* nothing to do */
    OK(gpumem_buffer_discard(buffer, 0, 0, NULL, stream));
    OK(gpumem_buffer_advise(buffer, 0, 0, mostly, here, 0));
    assert_int_equal(range_of(0, PAGE).read_mostly, 0);

    gpumem_resource *plain = NEW_POOL();
    gpumem_buffer *other = NEW_BUFFER(plain, MIB);
    char *before = soft->state_dump();
    FAILS(INVALID_ARGUMENT, gpumem_buffer_advise(other, 0, MIB, mostly, here, 0));
    SAYS("not managed memory");
    FAILS(INVALID_ARGUMENT, gpumem_buffer_prefetch(other, 0, MIB, here, 0, stream));
    SAYS("not managed memory");
    FAILS(INVALID_ARGUMENT, gpumem_buffer_discard(other, 0, MIB, NULL, stream));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_get_managed_range(other, 0, MIB, &range));
    SAME_STATE(before);
    DESTROY(other, plain);
    end();
}

/* A stream that captures is refused before the driver would spoil its capture; advice and questions
 * go on beside one. */
TEST(managed_memory_calls_do_not_spoil_a_capture) {
    begin(ALLOCATED, MIB);
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS(NOT_SUPPORTED, gpumem_buffer_prefetch(buffer, 0, MIB, GPUMEM_LOCATION_HOST, 0, stream));
    SAYS("capturing");
    FAILS(NOT_SUPPORTED, gpumem_buffer_discard(buffer, 0, MIB, NULL, stream));
    FAILS(NOT_SUPPORTED,
          gpumem_buffer_discard(buffer, 0, MIB,
                                GPUMEM_DISCARD_OPTIONS(.prefetch = true,
                                                       .location = GPUMEM_LOCATION_HOST,
                                                       .ordinal_or_node = 0),
                                stream));
    advise(0, MIB, GPUMEM_ADVICE_SET_READ_MOSTLY, GPUMEM_LOCATION_DEVICE, 0);
    assert_int_equal(range_of(0, MIB).read_mostly, 1);
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    assert_non_null(graph);
    OK_CU(cu->cuGraphDestroy(graph));
    end();
}

/* ---- Pools ----------------------------------------------------------------------------------- */

TEST(managed_pool_memory_is_host_accessible_and_stream_ordered) {
    unsigned char back[64];
    begin(POOL, 3 * MIB);
    gpumem_resource_properties properties = properties_of(resource);
    assert_string_equal(properties.kind, "managed_pool");
    assert_string_equal(properties.note, "");
    assert_true(properties.stream_ordered && properties.host_accessible &&
                properties.device_accessible);
    gpumem_pool_info info = pool_info_of(resource);
    MEMBERS(info, (owned, 0), (ordinal, -1));
    gpumem_buffer_attributes attributes = attributes_of(buffer);
    assert_int_equal(attributes.managed, 1);
    memset(gpumem_buffer_host_pointer(buffer), 7, 3 * MIB);
    OK(read_now(buffer, 3 * MIB - 64, back, sizeof back, stream));
    assert_int_equal(back[63], 7);
    OK(gpumem_buffer_prefetch(buffer, 0, MIB, GPUMEM_LOCATION_HOST, 0, stream));
    assert_int_equal(range_of(0, MIB).prefetched, GPUMEM_LOCATION_HOST);
    FAILS_SAYING(NOT_SUPPORTED, "pool",
                 gpumem_buffer_advise(buffer, 0, MIB, GPUMEM_ADVICE_SET_READ_MOSTLY,
                                      GPUMEM_LOCATION_DEVICE, 0));
    OK(gpumem_buffer_discard(buffer, 0, MIB, NULL, stream));
    end();
}

TEST(own_managed_pools_have_the_requested_location) {
    const gpumem_managed_place places[] = {GPUMEM_MANAGED_ANYWHERE, GPUMEM_MANAGED_ON_DEVICE,
                                           GPUMEM_MANAGED_ON_HOST};
    for (size_t i = 0; i < COUNT(places); i++) {
        char *before = soft->state_dump();
        resource = NEW_MANAGED(.method = POOL, .pool = GPUMEM_POOL_OWN, .preferred = places[i]);
        buffer = NEW_BUFFER_WITH(resource, MIB, .stream = GPUMEM_STREAM_NONE);
        gpumem_pool_info info = pool_info_of(resource);
        assert_int_equal(info.owned, 1);
        assert_int_equal(info.ordinal, places[i] == GPUMEM_MANAGED_ON_DEVICE ? 0 : -1);
        gpumem_managed_range range = range_of(0, MIB);
        assert_int_equal(range.has_preferred, places[i] != GPUMEM_MANAGED_ANYWHERE);
        if (range.has_preferred)
            assert_int_equal(range.preferred, places[i] == GPUMEM_MANAGED_ON_HOST
                                                  ? GPUMEM_LOCATION_HOST
                                                  : GPUMEM_LOCATION_DEVICE);
        OK(gpumem_buffer_free(buffer, NULL));
        OK(gpumem_device_trim(device, 1));
        OK(gpumem_resource_destroy(resource));
        SAME_STATE(before);
    }
    resource = NEW_MANAGED(.method = POOL, .pool = GPUMEM_POOL_DEFAULT);
    OK(gpumem_resource_destroy(resource));
}

TEST(allocating_managed_pool_memory_in_a_capture_is_refused) {
    gpumem_buffer *none;
    begin(POOL, MIB);
    OK_CU(cu->cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS_SAYING(
        NOT_SUPPORTED, "capturing",
        gpumem_buffer_allocate(resource, MIB, GPUMEM_BUFFER_OPTIONS(.stream = stream), &none));
    CUgraph graph = GOT_CU(CUgraph, cuStreamEndCapture, stream);
    OK_CU(cu->cuGraphDestroy(graph));
    end();
}

TEST(without_managed_pools_plain_allocations_are_used) {
    gpumem_pool_info info = {.size = sizeof info};
    soft->fault_arm("cuMemGetMemPool", 1, CUDA_ERROR_NOT_SUPPORTED, SOFTGPU_FAULT_BEFORE);
    begin(POOL, MIB);
    assert_int_equal(soft->fault_disarm(), 1);
    gpumem_resource_properties properties = properties_of(resource);
    assert_string_equal(properties.kind, "managed");
    assert_int_equal(properties.stream_ordered, 0);
    assert_non_null(strstr(properties.note, "allocations in place of a pool of managed memory"));
    assert_non_null(strstr(properties.note, "CUDA_ERROR_NOT_SUPPORTED"));
    FAILS(NOT_SUPPORTED, gpumem_pool_get_info(resource, &info));
    advise(0, MIB, GPUMEM_ADVICE_SET_READ_MOSTLY, GPUMEM_LOCATION_DEVICE, 0);
    end();
    gpumem_resource *none;
    soft->fault_arm("cuMemGetMemPool", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE);
    FAILS(DRIVER,
          gpumem_managed_resource_create(device, GPUMEM_MANAGED_OPTIONS(.method = POOL), &none));
    soft->fault_disarm();
    FAILS(INVALID_ARGUMENT, gpumem_managed_resource_create(
                                device, GPUMEM_MANAGED_OPTIONS(.pool = GPUMEM_POOL_OWN), &none));
    FAILS(INVALID_ARGUMENT,
          gpumem_managed_resource_create(
              device, GPUMEM_MANAGED_OPTIONS(.method = POOL, .read_mostly = 1), &none));
    FAILS(INVALID_ARGUMENT,
          gpumem_managed_resource_create(device, GPUMEM_MANAGED_OPTIONS(.method = 2), &none));
}

/* Before 12.3 the driver told places by ordinal alone. */
TEST(an_older_driver_is_called_by_its_older_functions) {
    begin(ALLOCATED, MIB);
    advise(0, MIB, GPUMEM_ADVICE_SET_PREFERRED_LOCATION, GPUMEM_LOCATION_DEVICE, 1);
    advise(0, MIB, GPUMEM_ADVICE_SET_ACCESSED_BY, GPUMEM_LOCATION_HOST, 0);
    OK(gpumem_buffer_prefetch(buffer, 0, MIB, GPUMEM_LOCATION_HOST, 0, stream));
    gpumem_managed_range now = range_of(0, MIB);
    soft->fault_arm("cuMemRangeGetAttributes", 1, CUDA_ERROR_INVALID_VALUE, SOFTGPU_FAULT_BEFORE);
    gpumem_managed_range older = range_of(0, MIB);
    assert_int_equal(soft->fault_disarm(), 1);
    MEMBERS(older, (preferred, GPUMEM_LOCATION_DEVICE), (preferred_ordinal_or_node, 1),
            (prefetched, GPUMEM_LOCATION_HOST), (accessed_by_host, 1));
    assert_memory_equal(&now, &older, sizeof now);
    end();
}

BEFORE_TESTS_DO(setenv("SOFTGPU_DEVICES", "2", 1));
