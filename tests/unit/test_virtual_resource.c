/* Buffers that grow where they are. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, size_t capacity) {
    return NEW_BUFFER_WITH(resource, bytes, .capacity = capacity);
}

static void check_bytes(gpumem_buffer *buffer, size_t offset, size_t bytes, unsigned char value) {
    unsigned char *host = malloc(bytes);
    assert_non_null(host);
    OK(gpumem_buffer_read(buffer, offset, host, bytes, NULL));
    synchronize(NULL);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(host[i], value);
    free(host);
}

TEST(growing_keeps_pointer_and_content) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = allocate(resource, 1000, 256 * MIB);
    CUdeviceptr pointer = gpumem_buffer_pointer(buffer);
    assert_int_equal(gpumem_buffer_size(buffer), 1000);
    assert_int_equal(gpumem_buffer_committed(buffer), 2 * MIB);
    assert_int_equal(gpumem_buffer_capacity(buffer), 256 * MIB);
    assert_null(gpumem_buffer_host_pointer(buffer));
    OK(gpumem_buffer_fill(buffer, 0, 1000, 0x5a, NULL));
    for (size_t mib = 1; mib <= 256; mib *= 2) {
        OK(gpumem_buffer_grow(buffer, mib * MIB, NULL));
        assert_true(gpumem_buffer_pointer(buffer) == pointer);
        assert_int_equal(gpumem_buffer_size(buffer), mib * MIB);
        OK(gpumem_buffer_fill(buffer, mib * MIB - 1, 1, 0x5b, NULL));
    }
    check_bytes(buffer, 0, 1000, 0x5a);
    for (size_t mib = 1; mib <= 256; mib *= 2)
        check_bytes(buffer, mib * MIB - 1, 1, 0x5b);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (in_use_bytes, 256 * MIB), (committed_bytes, 256 * MIB),
            (reserved_bytes, 256 * MIB), (chunks, chunks_of(buffer)),
            (mappings, chunks_of(buffer)));
    DESTROY(buffer, resource);
    stats = device_stats();
    assert_int_equal(stats.committed_bytes + stats.reserved_bytes + stats.chunks + stats.mappings,
                     0);
    assert_int_equal(stats.committed_high, 256 * MIB);
}

TEST(growing_beyond_the_capacity_is_refused) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = allocate(resource, 2 * MIB, 8 * MIB);
    char *before = soft->state_dump();
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(buffer, 8 * MIB + 1, NULL));
    SAYS("capacity of 8388608");
    SAME_STATE(before);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    OK(gpumem_buffer_grow(buffer, 1, NULL)); /* never shrinks */
    assert_int_equal(gpumem_buffer_size(buffer), 8 * MIB);
    DESTROY(buffer, resource);
    resource = NEW_VIRTUAL(.capacity = GIB);
    buffer = allocate(resource, 2 * MIB, 0);
    assert_int_equal(gpumem_buffer_capacity(buffer), GIB);
    DESTROY(buffer, resource);
}

TEST(growing_beyond_device_memory_changes_nothing) {
    gpumem_resource *resource = NEW_VIRTUAL();
    /* Just more than the device has: ThreadSanitizer leaves few addresses in one piece. */
    uint64_t used, limit;
    assert_int_equal(soft->memory_info(0, &used, &limit), 0);
    const size_t capacity = (size_t)limit / (2 * MIB) * (2 * MIB) + 2 * MIB;
    gpumem_buffer *buffer = allocate(resource, 2 * MIB, capacity);
    char *before = soft->state_dump();
    FAILS_SAYING(OUT_OF_MEMORY, "cuMemCreate", gpumem_buffer_grow(buffer, capacity, NULL));
    FAILS_CU(OUT_OF_MEMORY, gpumem_last_error()->driver_code);
    SAME_STATE(before);
    assert_int_equal(gpumem_buffer_size(buffer), 2 * MIB);
    OK(gpumem_buffer_grow(buffer, 4 * MIB, NULL));
    DESTROY(buffer, resource);
}

TEST(growing_in_small_steps_creates_few_handles) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = allocate(resource, 2 * MIB, 256 * MIB);
    for (size_t mib = 4; mib <= 256; mib += 2)
        OK(gpumem_buffer_grow(buffer, mib * MIB, NULL));
    assert_true(chunks_of(buffer) <= 20);
    assert_int_equal(gpumem_buffer_committed(buffer), 256 * MIB);
    DESTROY(buffer, resource);
    resource = NEW_VIRTUAL(.exact_growth = 1);
    buffer = allocate(resource, 2 * MIB, 64 * MIB);
    for (size_t mib = 4; mib <= 64; mib += 2) {
        OK(gpumem_buffer_grow(buffer, mib * MIB, NULL));
        assert_int_equal(gpumem_buffer_committed(buffer), mib * MIB);
    }
    assert_int_equal(chunks_of(buffer), 32);
    DESTROY(buffer, resource);
}

TEST(chunk_sizes_stay_within_their_options) {
    gpumem_resource *resource =
        NEW_VIRTUAL(.minimum_chunk_bytes = 8 * MIB, .maximum_chunk_bytes = 16 * MIB);
    gpumem_buffer *buffer = allocate(resource, 1, 100 * MIB);
    assert_int_equal(gpumem_buffer_committed(buffer), 8 * MIB);
    OK(gpumem_buffer_grow(buffer, 50 * MIB, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), 56 * MIB);
    assert_int_equal(chunks_of(buffer), 4);
    DESTROY(buffer, resource);
    FAILS(INVALID_ARGUMENT,
          gpumem_virtual_resource_create(
              device, GPUMEM_VIRTUAL_OPTIONS(.maximum_chunk_bytes = 3 * MIB), &resource));
    FAILS(INVALID_ARGUMENT,
          gpumem_virtual_resource_create(device,
                                         GPUMEM_VIRTUAL_OPTIONS(.minimum_chunk_bytes = 8 * MIB,
                                                                .maximum_chunk_bytes = 4 * MIB),
                                         &resource));
}

TEST(shrinking_releases_whole_chunks) {
    gpumem_resource *resource = NEW_VIRTUAL(.exact_growth = 1);
    gpumem_buffer *buffer = allocate(resource, 4 * MIB, 64 * MIB);
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 9, NULL));
    synchronize(NULL);
    char *before = soft->state_dump();
    OK(gpumem_buffer_grow(buffer, 12 * MIB, NULL));
    OK(gpumem_buffer_grow(buffer, 20 * MIB, NULL));
    OK(gpumem_buffer_shrink(buffer, 13 * MIB, NULL)); /* within the last chunk */
    assert_int_equal(gpumem_buffer_committed(buffer), 20 * MIB);
    OK(gpumem_buffer_shrink(buffer, 3 * MIB, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), 4 * MIB);
    assert_int_equal(gpumem_buffer_size(buffer), 3 * MIB);
    OK(gpumem_device_trim(device, 1)); /* the events that the library keeps for the next time */
    SAME_STATE(before);
    check_bytes(buffer, 0, 3 * MIB, 9);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_shrink(buffer, 0, NULL));
    OK(gpumem_buffer_hold(buffer));
    FAILS(BUSY, gpumem_buffer_shrink(buffer, MIB, NULL));
    OK(gpumem_buffer_release(buffer));
    OK(gpumem_buffer_grow(buffer, 64 * MIB, NULL));
    DESTROY(buffer, resource);
}

TEST(the_chosen_handle_type_is_reported) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_resource_properties p = properties_of(resource);
    assert_string_equal(p.kind, "virtual");
    MEMBERS(p, (handle_type, GPUMEM_HANDLE_POSIX_FD), (exportable, 1), (granularity, 2 * MIB));
    assert_string_equal(p.note, "");
    OK(gpumem_resource_destroy(resource));

    /* As on the recorded machine, softgpu has no IMEX channel. */
    resource = NEW_VIRTUAL(.handle_type = GPUMEM_HANDLE_FABRIC);
    p = properties_of(resource);
    assert_int_equal(p.handle_type, GPUMEM_HANDLE_POSIX_FD);
    assert_non_null(strstr(p.note, "no fabric handles"));
    assert_non_null(strstr(p.note, " answered CUDA_ERROR_NOT_PERMITTED"));
    OK(gpumem_resource_destroy(resource));
    gpumem_resource *none = resource;
    assert_int_not_equal(
        gpumem_virtual_resource_create(
            device, GPUMEM_VIRTUAL_OPTIONS(.handle_type = GPUMEM_HANDLE_FABRIC, .handle_strict = 1),
            &none),
        GPUMEM_OK);
    assert_ptr_equal(none, resource);
}

TEST(host_memory_can_be_virtual) {
    gpumem_resource *resource = NEW_VIRTUAL(.location = GPUMEM_LOCATION_HOST_NUMA);
    gpumem_resource_properties p = properties_of(resource);
    assert_int_equal(p.host_accessible, 1);
    gpumem_buffer *buffer = allocate(resource, 2 * MIB, 8 * MIB);
    unsigned char *host = gpumem_buffer_host_pointer(buffer);
    assert_non_null(host);
    OK(gpumem_buffer_grow(buffer, 4 * MIB, NULL));
    host[4 * MIB - 1] = 77;
    check_bytes(buffer, 4 * MIB - 1, 1, 77);
    DESTROY(buffer, resource);
}

TEST(invalid_options_are_refused) {
    gpumem_resource *resource;
    const int unknown = 99;
    FAILS_SAYING(
        INVALID_ARGUMENT, "99",
        gpumem_virtual_resource_create(
            device, GPUMEM_VIRTUAL_OPTIONS(.peers = &unknown, .peer_count = 1), &resource));
    FAILS(INVALID_ARGUMENT,
          gpumem_virtual_resource_create(
              device, GPUMEM_VIRTUAL_OPTIONS(.address_alignment = 3 * MIB), &resource));
    FAILS(INVALID_ARGUMENT,
          gpumem_virtual_resource_create(
              device, GPUMEM_VIRTUAL_OPTIONS(.location = (gpumem_location)9), &resource));
    resource = NEW_VIRTUAL(.address_alignment = 64 * MIB);
    gpumem_buffer *buffer = allocate(resource, 2 * MIB, 0);
    assert_int_equal(gpumem_buffer_pointer(buffer) % (64 * MIB), 0);
    DESTROY(buffer, resource);
}

/* At creation, with the value in the message; not at the first allocation. */
TEST(impossible_addresses_and_nodes_are_refused_at_creation) {
    const struct {
        gpumem_virtual_options options;
        const char *value;
    } cases[] = {
        {{.address_hint = 12345}, "address_hint 0x3039"},
        {{.address_hint = 0x7f0000200000, .address_alignment = 64 * MIB},
         "address_hint 0x7f0000200000"},
        {{.address_alignment = (size_t)1 << 63}, "address_alignment 9223372036854775808"},
        {{.address_alignment = (size_t)1 << 48}, "address_alignment 281474976710656"},
        {{.address_alignment = 3}, "address_alignment 3"},
        {{.location = GPUMEM_LOCATION_HOST_NUMA, .numa_node = 9999}, "NUMA node 9999"},
        {{.location = GPUMEM_LOCATION_HOST_NUMA, .numa_node = 1000}, "NUMA node 1000"},
        {{.location = GPUMEM_LOCATION_HOST_NUMA, .numa_node = -1}, "NUMA node -1"},
        {{.location = GPUMEM_LOCATION_DEVICE, .numa_node = 7}, "numa_node is 7"},
        {{.location = GPUMEM_LOCATION_HOST, .numa_node = 7}, "numa_node is 7"},
    };
    gpumem_resource *none = (gpumem_resource *)state;
    char *before = soft->state_dump();
    for (size_t i = 0; i < COUNT(cases); i++) {
        gpumem_virtual_options options = cases[i].options;
        options.size = sizeof options;
        FAILS(INVALID_ARGUMENT, gpumem_virtual_resource_create(device, &options, &none));
        SAYS(cases[i].value);
    }
    assert_ptr_equal(none, state);
    SAME_STATE(before);
    gpumem_physical *memory;
    size_t unit;
    FAILS(INVALID_ARGUMENT,
          gpumem_physical_create(
              device, 2 * MIB,
              GPUMEM_PHYSICAL_OPTIONS(.location = GPUMEM_LOCATION_HOST_NUMA, .numa_node = 1000),
              &memory));
    SAYS("NUMA node 1000");
    FAILS_SAYING(INVALID_ARGUMENT, "numa_node is 7",
                 gpumem_physical_granularity(device, GPUMEM_PHYSICAL_OPTIONS(.numa_node = 7),
                                             GPUMEM_GRANULARITY_MINIMUM, &unit));
    assert_int_equal(device_stats().quarantined, 0);
}

TEST(buffers_get_the_requested_access) {
    gpumem_resource *resource = NEW_VIRTUAL(.self_access = GPUMEM_ACCESS_READ);
    gpumem_buffer *buffer = allocate(resource, 2 * MIB, 0);
    unsigned long long flags = 0;
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                    .id = gpumem_device_handle(device)};
    OK_CU(cu->cuMemGetAccess(&flags, &location, gpumem_buffer_pointer(buffer)));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    DESTROY(buffer, resource);
}
