/*
 * The library's pools on any driver: whose they are, their numbers, memory for no stream, and a
 * pool and its buffers in another process.
 */
#include "library_processes.h"

#include <fcntl.h>
#include <sys/socket.h>

EACH_TEST(NULL, NULL);

#define SIZE (3 * MIB)

static gpumem_resource *make(bool host, gpumem_pool_choice choice, bool ipc) {
    gpumem_resource *pool = NULL;
    gpumem_pinned_options pinned = {
        .size = sizeof pinned, .method = GPUMEM_PINNED_POOL, .pool = choice, .ipc = ipc};
    gpumem_device_pool_options options = {.size = sizeof options, .pool = choice, .ipc = ipc};
    OK(host ? gpumem_pinned_resource_create(device, &pinned, &pool)
            : gpumem_device_pool_resource_create(device, &options, &pool));
    return pool;
}

static gpumem_buffer *take(gpumem_resource *pool, size_t bytes, CUstream stream) {
    gpumem_buffer *buffer;
    gpumem_buffer_options options = {.size = sizeof options, .stream = stream};
    OK(gpumem_buffer_allocate(pool, bytes, &options, &buffer));
    return buffer;
}

static void fill(gpumem_buffer *buffer, unsigned seed) {
    unsigned char *bytes = malloc(gpumem_buffer_size(buffer));
    assert_non_null(bytes);
    fill_pattern(bytes, gpumem_buffer_size(buffer), seed);
    OK(gpumem_buffer_write(buffer, 0, bytes, gpumem_buffer_size(buffer), NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    free(bytes);
}

static bool holds(gpumem_buffer *buffer, unsigned seed) {
    unsigned char *bytes = calloc(1, gpumem_buffer_size(buffer));
    assert_non_null(bytes);
    OK(gpumem_buffer_read(buffer, 0, bytes, gpumem_buffer_size(buffer), NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    bool same = has_pattern(bytes, gpumem_buffer_size(buffer), seed);
    free(bytes);
    return same;
}

/* ---- In one process -------------------------------------------------------------------------- */

static void use_choices(bool host) {
    for (int choice = GPUMEM_POOL_CURRENT; choice <= GPUMEM_POOL_OWN; choice++) {
        gpumem_resource *pool = make(host, (gpumem_pool_choice)choice, false);
        gpumem_pool_info info = {.size = sizeof info};
        OK(gpumem_pool_get_info(pool, &info));
        MEMBERS(info, (owned, choice == GPUMEM_POOL_OWN), (ordinal, host ? -1 : 0));
        gpumem_buffer *ordered = take(pool, SIZE, NULL),
                      *none = take(pool, SIZE, GPUMEM_STREAM_NONE);
        fill(ordered, 3);
        fill(none, 4);
        if (host) /* at once, and by the CPU */
            assert_true(has_pattern(gpumem_buffer_host_pointer(none), SIZE, 4));
        assert_true(holds(ordered, 3));
        DESTROY(ordered, none);
        OK(gpumem_stream_synchronize(device, NULL));
        OK(gpumem_resource_destroy(pool));
    }
}

TEST(every_choice_of_device_pool_allocates) {
    open_library();
    use_choices(false);
}

TEST(every_choice_of_host_pool_allocates) {
    char reason[192];
    open_library();
    bool there = has(GPUMEM_CAPABILITY_HOST_POOL, reason);
    if (there)
        use_choices(true);
    close_library();
    if (!there)
        SKIP("no host pools: %s", reason);
}

TEST(all_eight_pool_attributes_are_read) {
    open_library();
    gpumem_resource *pool = make(false, GPUMEM_POOL_OWN, false);
    for (int which = 1; which <= 8; which++) {
        uint64_t value = 77;
        OK(gpumem_pool_get_attribute(pool, (gpumem_pool_attribute)which, &value));
        assert_int_equal(value, which <= 3                               ? 1
                                : which == GPUMEM_POOL_RELEASE_THRESHOLD ? UINT64_MAX
                                                                         : 0);
    }
    OK(gpumem_pool_set_attribute(pool, GPUMEM_POOL_REUSE_ALLOW_OPPORTUNISTIC, 0));
    uint64_t value = 77;
    OK(gpumem_pool_get_attribute(pool, GPUMEM_POOL_REUSE_ALLOW_OPPORTUNISTIC, &value));
    assert_int_equal(value, 0);
    gpumem_buffer *buffer = take(pool, SIZE, NULL);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    OK(gpumem_pool_get_attribute(pool, GPUMEM_POOL_USED_HIGH, &value));
    assert_true(value >= SIZE);
    OK(gpumem_pool_set_attribute(pool, GPUMEM_POOL_USED_HIGH, 0));
    OK(gpumem_pool_get_attribute(pool, GPUMEM_POOL_USED_HIGH, &value));
    assert_true(value < SIZE);
    OK(gpumem_resource_destroy(pool));
}

/* ---- Between processes ----------------------------------------------------------------------- */

/* argv[1]: the socket; argv[2]: "host" or "device". */
CHILD_THAT_ENDS(importer) {
    assert_int_equal(argc, 3);
    int socket = atoi(argv[1]);
    bool host = strcmp(argv[2], "host") == 0;
    gpumem_pool_share_buffer shared;
    gpumem_resource *pool, *found = NULL;
    gpumem_buffer *a, *b, *none;
    gpumem_pool_info info = {.size = sizeof info};
    open_library();
    OK(gpumem_pool_receive(device, socket, NULL, &pool));
    assert_int_equal(read(socket, &shared, sizeof shared), sizeof shared);
    OK(gpumem_pool_get_info(pool, &info));
    /* Whether the device may reach host memory of another process is for the driver to say. */
    assert_true(info.mapped && (info.device_accessible || host));
    assert_int_equal(info.host_accessible, host);
    OK(gpumem_pool_register(pool, shared.pool, NULL));
    OK(gpumem_pool_from_registry(library, shared.pool, &found));
    assert_ptr_equal(found, pool);
    FAILS(NOT_SUPPORTED, gpumem_buffer_allocate(pool, 4096, NULL, &none));
    for (int round = 0; round < 2; round++) {
        OK(gpumem_pool_import_buffer(pool, &shared, &a));
        OK(gpumem_pool_import_buffer(pool, &shared, &b));
        assert_int_equal(gpumem_buffer_pointer(a), gpumem_buffer_pointer(b));
        OK(gpumem_buffer_free(a, NULL));
        assert_true(holds(b, 1 + (unsigned)round));
        fill(b, 2 + (unsigned)round);
        OK(gpumem_buffer_free(b, NULL));
        OK(gpumem_device_trim(device, 1));
    }
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_library_get_stats(library, &stats));
    assert_int_equal(stats.quarantined, 0);
    OK(gpumem_resource_destroy(pool));
    close_library();
    assert_int_equal(write(socket, "d", 1), 1);
}

static void share(bool host) {
    char number[16], done = 0;
    int ends[2];
    gpumem_pool_share_buffer shared = {.size = sizeof shared};
    gpumem_resource *pool = make(host, GPUMEM_POOL_CURRENT, true);
    gpumem_buffer *buffer = take(pool, SIZE, NULL);
    fill(buffer, 1);
    OK(gpumem_pool_export_buffer(buffer, &shared));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFD, FD_CLOEXEC), 0);
    snprintf(number, sizeof number, "%d", ends[1]);
    int pid = start_child("importer", number, host ? "host" : "device", NULL);
    close(ends[1]);
    OK(gpumem_pool_send(pool, ends[0], NULL));
    assert_int_equal(write(ends[0], &shared, sizeof shared), sizeof shared);
    assert_int_equal(read(ends[0], &done, 1), 1);
    assert_int_equal(wait_child(pid), 0);
    close(ends[0]);
    assert_true(holds(buffer, 3));
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    OK(gpumem_resource_destroy(pool));
}

static void share_if(bool host, gpumem_capability capability) {
    char reason[192];
    open_library();
    bool there = has(capability, reason);
    if (there)
        share(host);
    close_library();
    if (!there)
        SKIP("no such pool can be shared: %s", reason);
}

TEST_IS(a_device_pool_is_used_in_another_process,
        share_if(false, GPUMEM_CAPABILITY_DEVICE_POOL_POSIX_FD));
TEST_IS(a_host_pool_is_used_in_another_process,
        share_if(true, GPUMEM_CAPABILITY_HOST_NUMA_POOL_POSIX_FD));
