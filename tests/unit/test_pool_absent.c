/* Drivers without pools of host memory, or without a current one: what takes their place. */
#include "library_test.h"
#include "temporary.h"

static void check_bytes(gpumem_resource *resource) {
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4096);
    OK(gpumem_buffer_fill(buffer, 0, 4096, 0x5a, NULL));
    synchronize(NULL);
    assert_int_equal(((unsigned char *)gpumem_buffer_host_pointer(buffer))[4095], 0x5a);
    OK(gpumem_buffer_free(buffer, NULL));
}

#define POOL(...) GPUMEM_PINNED_OPTIONS(.method = GPUMEM_PINNED_POOL, __VA_ARGS__)

TEST(without_host_pools_slabs_replace_them_with_a_note) {
    gpumem_resource *resource;
    gpumem_pool_info info = {.size = sizeof info};
    OK(gpumem_pinned_resource_create(device, POOL(.maximum_bytes = 8 * MIB), &resource));
    gpumem_resource_properties properties = properties_of(resource);
    assert_string_equal(properties.kind, "pinned");
    MEMBERS(properties, (stream_ordered, 0), (host_accessible, 1));
    assert_string_equal(properties.note, "slabs in place of the driver's host pool: attribute "
                                         "HOST_MEMORY_POOLS_SUPPORTED is 0");
    check_bytes(resource);
    gpumem_buffer *none;
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(resource, 9 * MIB, NULL, &none));
    FAILS(NOT_SUPPORTED, gpumem_pool_get_info(resource, &info));
    SAYS("HOST_MEMORY_POOLS_SUPPORTED is 0");
    OK(gpumem_resource_destroy(resource));
    /* Any choice of pool is one that the driver does not have. */
    for (int pool = 0; pool <= GPUMEM_POOL_OWN; pool++) {
        OK(gpumem_pinned_resource_create(device, POOL(.pool = (gpumem_pool_choice)pool),
                                         &resource));
        check_bytes(resource);
        OK(gpumem_resource_destroy(resource));
    }
    assert_int_equal(soft->call_count("cuMemPoolCreate"), 0);
    assert_int_equal(soft->call_count("cuMemGetMemPool"), 0);
}

TEST(without_host_pools_sharing_is_refused) {
    gpumem_resource *none = (gpumem_resource *)state;
    FAILS(NOT_SUPPORTED, gpumem_pinned_resource_create(device, POOL(.ipc = 1), &none));
    SAYS("HOST_NUMA_MEMORY_POOLS_SUPPORTED is 0");
    assert_ptr_equal(none, state);
}

/* A device as there is none yet: an H200 without pools of host memory. */
static int open_without(void **state) {
    char path[TEMPORARY_ROOM];
    static const char text[] = "[device]\nlike = h200\nname = no host pools\n[attributes]\n"
                               "HOST_MEMORY_POOLS_SUPPORTED = 0\n"
                               "HOST_NUMA_MEMORY_POOLS_SUPPORTED = 0\n";
    int fd = temporary_file(path, "gpumem-profile");
    if (fd < 0 || write(fd, text, sizeof text - 1) != (ssize_t)(sizeof text - 1))
        return -1;
    close(fd);
    setenv("SOFTGPU_PROFILE", path, 1);
    int result = open_device(state);
    unlink(path);
    return result;
}

ALL_TESTS(open_without, close_device);
