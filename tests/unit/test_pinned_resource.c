/* Pinned host memory: slabs, their cache, limits, and the driver's host pool. */
#include "library_test.h"

#include <sys/mman.h>
#include <sys/wait.h>

EACH_TEST(open_device, close_device);

/* The device and the CPU see the same bytes. */
static void check_shared(gpumem_buffer *buffer) {
    size_t bytes = gpumem_buffer_size(buffer);
    unsigned char *host = gpumem_buffer_host_pointer(buffer);
    assert_non_null(host);
    memset(host, 1, bytes);
    OK(gpumem_buffer_fill(buffer, bytes / 2, 1, 2, NULL));
    synchronize(NULL);
    assert_int_equal(host[bytes / 2], 2);
    assert_int_equal(host[bytes - 1], bytes > 2 ? 1 : 2);
}

/* The driver knows the memory as host memory. */
static void check_pinned(gpumem_buffer *buffer) {
    use_context();
    unsigned type = MADE_CU(unsigned, cuPointerGetAttribute, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                            gpumem_buffer_pointer(buffer));
    leave_context();
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
}

static void use_method(gpumem_pinned_method method) {
    gpumem_resource *resource = NEW_PINNED(.method = method, .slab_bytes = 4 * MIB);
    gpumem_buffer *small = NEW_BUFFER(resource, 100), *big = NEW_BUFFER(resource, 10 * MIB);
    check_shared(small);
    check_shared(big);
    check_pinned(small);
    check_pinned(big);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (pinned_bytes, 14 * MIB), (committed_bytes, 14 * MIB), (chunks, 2),
            (in_use_bytes, 100 + 10 * MIB));
    DESTROY(small, big);
    stats = device_stats();
    MEMBERS(stats, (cached_bytes, 14 * MIB), (pinned_bytes, 14 * MIB));
    OK(gpumem_resource_destroy(resource));
    stats = device_stats();
    assert_int_equal(stats.pinned_bytes + stats.cached_bytes + stats.committed_bytes, 0);
    assert_int_equal(stats.pinned_high, 14 * MIB);
}

TEST(registered_memory_is_shared_with_the_device) {
    use_method(GPUMEM_PINNED_REGISTERED);
    assert_true(soft->call_count("cuMemHostRegister_v2") > 0);
}

TEST_IS(allocated_memory_is_shared_with_the_device, use_method(GPUMEM_PINNED_ALLOCATED));

TEST(slabs_are_reused) {
    gpumem_resource *resource = NEW_PINNED(.slab_bytes = 2 * MIB);
    uint64_t calls = soft->call_count("cuMemHostRegister_v2");
    for (int i = 0; i < 100; i++)
        OK(gpumem_buffer_free(NEW_BUFFER(resource, MIB), NULL));
    assert_int_equal(soft->call_count("cuMemHostRegister_v2"), calls + 1);
    OK(gpumem_resource_trim(resource, 0));
    assert_int_equal(device_stats().pinned_bytes, 0);
    OK(gpumem_resource_destroy(resource));
}

TEST(the_caller_chooses_how_much_is_kept) {
    gpumem_resource *resource = NEW_PINNED(.slab_bytes = 2 * MIB, .keep_nothing = 1);
    OK(gpumem_buffer_free(NEW_BUFFER(resource, MIB), NULL));
    assert_int_equal(device_stats().pinned_bytes, 0);
    OK(gpumem_resource_destroy(resource));
    resource = NEW_PINNED(.slab_bytes = 2 * MIB, .keep_bytes = 2 * MIB);
    gpumem_buffer *a = NEW_BUFFER(resource, 2 * MIB), *b = NEW_BUFFER(resource, 2 * MIB);
    DESTROY(a, b);
    assert_int_equal(device_stats().pinned_bytes, 2 * MIB);
    OK(gpumem_resource_destroy(resource));
}

TEST(the_maximum_is_never_exceeded) {
    gpumem_resource *resource = NEW_PINNED(.slab_bytes = 2 * MIB, .maximum_bytes = 4 * MIB);
    gpumem_buffer *a = NEW_BUFFER(resource, 2 * MIB), *b = NEW_BUFFER(resource, 2 * MIB), *c = a;
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(resource, 1, NULL, &c));
    SAYS("maximum of 4194304");
    assert_ptr_equal(c, a);
    OK(gpumem_buffer_free(a, NULL));
    c = NEW_BUFFER(resource, 2 * MIB);
    OK(gpumem_buffer_free(b, NULL));
    /* Cached slabs go when a larger one is wanted. */
    OK(gpumem_buffer_free(c, NULL));
    c = NEW_BUFFER(resource, 4 * MIB);
    DESTROY(c, resource);
}

/* The slabs are as small as the maximum wants them. */
TEST(a_small_maximum_makes_smaller_slabs) {
    const gpumem_pinned_method methods[] = {GPUMEM_PINNED_REGISTERED, GPUMEM_PINNED_ALLOCATED};
    for (size_t i = 0; i < COUNT(methods); i++) {
        gpumem_resource *resource = NEW_PINNED(.method = methods[i], .maximum_bytes = MIB + 5000);
        gpumem_resource_properties properties = properties_of(resource);
        assert_int_equal(properties.maximum_chunk_bytes, MIB + 4096);
        gpumem_buffer *first = NEW_BUFFER(resource, 1000), *rest = NEW_BUFFER(resource, MIB), *none;
        check_shared(first);
        check_shared(rest);
        check_pinned(rest);
        assert_int_equal(device_stats().pinned_bytes, MIB + 4096);
        FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(resource, 8192, NULL, &none));
        SAYS("maximum of 1053576");
        DESTROY(first, rest, resource);
        /* What a whole slab leaves over is given out too. */
        resource =
            NEW_PINNED(.method = methods[i], .slab_bytes = 2 * MIB, .maximum_bytes = 3 * MIB);
        first = NEW_BUFFER(resource, 2 * MIB);
        rest = NEW_BUFFER(resource, MIB);
        assert_int_equal(device_stats().pinned_bytes, 3 * MIB);
        DESTROY(first, rest, resource);
    }
    gpumem_resource *none;
    FAILS_SAYING(
        INVALID_ARGUMENT, "maximum_bytes 4095",
        gpumem_pinned_resource_create(device, GPUMEM_PINNED_OPTIONS(.maximum_bytes = 4095), &none));
    FAILS_SAYING(INVALID_ARGUMENT, "slab_bytes is 18446744073709551615",
                 gpumem_pinned_resource_create(
                     device, GPUMEM_PINNED_OPTIONS(.slab_bytes = SIZE_MAX), &none));
}

TEST(allocating_more_than_the_machine_has_is_refused) {
    gpumem_resource *resource = NEW_PINNED();
    gpumem_buffer *buffer;
    char *before = soft->state_dump();
    FAILS(OUT_OF_HOST_MEMORY, gpumem_buffer_allocate(resource, (size_t)1 << 46, NULL, &buffer));
    FAILS(OUT_OF_HOST_MEMORY, gpumem_buffer_allocate(resource, SIZE_MAX, NULL, &buffer));
    SAME_STATE(before);
    assert_int_equal(device_stats().allocations_failed, 2);
    OK(gpumem_resource_destroy(resource));
}

TEST(the_requested_alignment_is_respected) {
    gpumem_resource *resource = NEW_PINNED();
    for (size_t alignment = 1; alignment <= 8 * MIB; alignment *= 2) {
        gpumem_buffer *odd = NEW_BUFFER(resource, 1);
        gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, 1000, .alignment = alignment);
        assert_int_equal(gpumem_buffer_pointer(buffer) % alignment, 0);
        DESTROY(buffer, odd);
    }
    gpumem_buffer *none;
    FAILS(INVALID_ARGUMENT,
          gpumem_buffer_allocate(resource, 1, GPUMEM_BUFFER_OPTIONS(.alignment = 3), &none));
    OK(gpumem_resource_destroy(resource));
}

TEST(memory_of_the_drivers_host_pool_is_shared_with_the_device) {
    gpumem_resource *resource = NEW_PINNED(.method = GPUMEM_PINNED_POOL);
    gpumem_buffer *buffer = NEW_BUFFER(resource, MIB);
    synchronize(NULL);
    check_shared(buffer);
    DESTROY(buffer, resource);
}

/* As an H200 answers: location HOST with descriptors is refused, a node is not. */
TEST(a_shareable_host_pool_uses_the_nearest_numa_node) {
    gpumem_device_info about = {.size = sizeof about};
    about = device_info(device);
    int nearest = about.host_numa_node >= 0 ? about.host_numa_node : 0;
    for (int named = 0; named < 2; named++) {
        gpumem_resource *resource =
            NEW_PINNED(.method = GPUMEM_PINNED_POOL, .ipc = 1, .numa_bind = named);
        gpumem_pool_info info = pool_info_of(resource);
        MEMBERS(info, (numa_node, nearest), (ipc_enabled, 1), (owned, 1), (has_uuid, 1));
        OK(gpumem_resource_destroy(resource));
    }
}

/* Typed copies refuse memory of a host pool; that is no matter of who reads and writes a buffer. */
TEST(buffers_of_a_host_pool_are_read_and_written) {
    gpumem_resource *resource = NEW_PINNED(.method = GPUMEM_PINNED_POOL);
    gpumem_resource *limited = NEW_LIMIT(resource, GIB);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4096), *other = NEW_BUFFER(limited, 4096);
    char text[16] = "pageable memory", back[16] = "", *pinned = gpumem_buffer_host_pointer(other);
    OK(gpumem_buffer_write(buffer, 100, text, sizeof text, NULL));
    OK(gpumem_buffer_read(buffer, 100, back, sizeof back, NULL));
    synchronize(NULL);
    assert_string_equal(back, text);
    assert_string_equal((char *)gpumem_buffer_host_pointer(buffer) + 100, text);
    /* Pool memory on both sides, and through a wrapper. */
    OK(gpumem_buffer_read(buffer, 100, pinned, sizeof text, NULL));
    synchronize(NULL);
    assert_string_equal(pinned, text);
    OK(gpumem_buffer_write(other, 1, pinned + 512, 3, NULL));
    OK(gpumem_buffer_read(other, 0, back, sizeof back, NULL));
    synchronize(NULL);
    assert_int_equal(back[0], 'p');
    assert_memory_equal(back + 1, pinned + 512, 3);
    DESTROY(buffer, other, limited, resource);
}

/* Whether some mapping of this process holds the byte. */
static int is_in_the_process(const void *byte) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    int found = 0;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        char *rest;
        uintptr_t from = strtoull(line, &rest, 16), to = strtoull(rest + 1, NULL, 16);
        found = (uintptr_t)byte >= from && (uintptr_t)byte < to;
    }
    if (maps)
        fclose(maps);
    return found;
}

/* A page that both had would be copied at the next write, and the device go on with the other. */
TEST(a_forked_child_does_not_share_registered_memory) {
    for (size_t slab = 64 * KIB; slab <= 8 * MIB; slab *= 128) { /* a small one, and huge pages */
        gpumem_resource *resource = NEW_PINNED(.method = GPUMEM_PINNED_REGISTERED,
                                               .slab_bytes = slab, .maximum_bytes = slab);
        gpumem_buffer *buffer = NEW_BUFFER(resource, slab);
        unsigned char *host = gpumem_buffer_host_pointer(buffer);
        memset(host, 1, slab);
        pid_t child = fork();
        if (child == 0)
            _exit(is_in_the_process(host) || is_in_the_process(host + slab / 2) ||
                  is_in_the_process(host + slab - 1));
        memset(host, 2, slab);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(is_in_the_process(host) && is_in_the_process(host + slab - 1));
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            fail_msg("a slab of %zu bytes is in the child", slab);
        /* Of this process nothing has changed, for the device neither. */
        check_shared(buffer);
        DESTROY(buffer, resource);
        assert_false(is_in_the_process(host));
    }
}

TEST(contradictory_options_are_refused) {
    gpumem_resource *resource;
    FAILS(INVALID_ARGUMENT,
          gpumem_pinned_resource_create(device, GPUMEM_PINNED_OPTIONS(.flags = 0x100), &resource));
    FAILS(INVALID_ARGUMENT,
          gpumem_pinned_resource_create(device, GPUMEM_PINNED_OPTIONS(.ipc = 1), &resource));
    FAILS(INVALID_ARGUMENT,
          gpumem_pinned_resource_create(
              device, GPUMEM_PINNED_OPTIONS(.numa_bind = 1, .numa_node = -2), &resource));
    FAILS(INVALID_ARGUMENT,
          gpumem_pinned_resource_create(
              device, GPUMEM_PINNED_OPTIONS(.numa_bind = 1, .method = GPUMEM_PINNED_ALLOCATED),
              &resource));
    FAILS(INVALID_ARGUMENT, gpumem_pinned_resource_create(
                                device,
                                GPUMEM_PINNED_OPTIONS(.method = GPUMEM_PINNED_REGISTERED,
                                                      .flags = GPUMEM_PINNED_WRITE_COMBINED),
                                &resource));
}

/* 1000 is a number that kernels take for a node; no machine has so many. */
TEST(nonexistent_numa_nodes_are_refused_at_creation) {
    const gpumem_pinned_method methods[] = {GPUMEM_PINNED_AUTO, GPUMEM_PINNED_REGISTERED,
                                            GPUMEM_PINNED_POOL};
    gpumem_resource *none = (gpumem_resource *)state;
    char *before = soft->state_dump();
    for (size_t i = 0; i < COUNT(methods); i++) {
        gpumem_pinned_options options = {
            .size = sizeof options, .method = methods[i], .numa_bind = 1, .numa_node = 1000};
        FAILS(INVALID_ARGUMENT, gpumem_pinned_resource_create(device, &options, &none));
        SAYS("NUMA node 1000");
        options.numa_node = 9999;
        FAILS(INVALID_ARGUMENT, gpumem_pinned_resource_create(device, &options, &none));
        SAYS("NUMA node 9999");
        options.numa_node = -1;
        FAILS(INVALID_ARGUMENT, gpumem_pinned_resource_create(device, &options, &none));
        SAYS("NUMA node -1");
        /* Without numa_bind it would be ignored. */
        options =
            (gpumem_pinned_options){.size = sizeof options, .method = methods[i], .numa_node = 3};
        FAILS(INVALID_ARGUMENT, gpumem_pinned_resource_create(device, &options, &none));
        SAYS("numa_node is 3");
        SAYS("numa_bind");
    }
    assert_ptr_equal(none, state);
    SAME_STATE(before);
}

TEST(binding_to_an_existing_numa_node_works_or_names_mbind) {
    gpumem_buffer *buffer = NULL;
    gpumem_resource *resource = NEW_PINNED(.numa_bind = 1);
    gpumem_status status = gpumem_buffer_allocate(resource, MIB, NULL, &buffer);
    if (status == GPUMEM_OK)
        check_shared(buffer);
    else /* containers may forbid it */
        assert_string_equal(gpumem_last_error()->call, "mbind");
    DESTROY(buffer, resource);
}

TEST(several_threads_touch_every_page) {
    gpumem_resource *resource = NEW_PINNED(.touch_threads = 5, .slab_bytes = 98 * MIB);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 98 * MIB);
    const unsigned char *host = gpumem_buffer_host_pointer(buffer);
    static unsigned char resident[98 * 256];
    assert_int_equal(mincore((void *)(uintptr_t)host, 98 * MIB, resident), 0);
    for (size_t page = 0; page < COUNT(resident); page++)
        if (!(resident[page] & 1))
            fail_msg("page %zu was not touched", page);
    DESTROY(buffer, resource);
}
