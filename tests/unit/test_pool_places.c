/* Shared pools on a machine with two devices and a fabric: which device may import, and handles
 * that are bytes. */
#include "library_test.h"
#include "temporary.h"

static gpumem_resource *shared_pool(gpumem_handle_type type) {
    return NEW_POOL(.ipc = 1, .handle_type = type);
}

static gpumem_buffer *filled(gpumem_resource *pool, unsigned char value) {
    gpumem_buffer *buffer = NEW_BUFFER(pool, MIB);
    OK(gpumem_buffer_fill(buffer, 0, MIB, value, NULL));
    synchronize(NULL);
    return buffer;
}

TEST(a_pool_is_shared_by_the_bytes_of_a_fabric_handle) {
    gpumem_resource *pool = shared_pool(GPUMEM_HANDLE_FABRIC), *mapped, *none;
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    gpumem_pool_share_buffer shared = {.size = sizeof shared};
    gpumem_buffer *buffer = filled(pool, 0x6e), *imported;
    static const unsigned char zero[64];
    unsigned char byte = 0;
    OK(gpumem_pool_get_share_handle(pool, &handle));
    MEMBERS(handle, (type, GPUMEM_HANDLE_FABRIC), (descriptor, -1));
    assert_memory_not_equal(handle.fabric, zero, sizeof zero);
    FAILS(NOT_SUPPORTED, gpumem_pool_send(pool, 0, NULL));
    OK(gpumem_pool_from_share_handle(device, &handle, &mapped));
    OK(gpumem_pool_export_buffer(buffer, &shared));
    OK(gpumem_pool_import_buffer(mapped, &shared, &imported));
    OK(gpumem_buffer_read(imported, MIB - 1, &byte, 1, NULL));
    synchronize(NULL);
    assert_int_equal(byte, 0x6e);
    DESTROY(imported, mapped);
    handle.fabric[9] ^= 1;
    assert_int_not_equal(gpumem_pool_from_share_handle(device, &handle, &none), GPUMEM_OK);
    DESTROY(buffer, pool);
}

/* Its memory is of the first device, whatever the other process says. */
TEST(importing_a_pool_on_another_device_is_refused) {
    gpumem_resource *pool = shared_pool(GPUMEM_HANDLE_POSIX_FD), *mapped;
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    gpumem_pool_share_buffer shared = {.size = sizeof shared};
    gpumem_buffer *buffer = filled(pool, 1), *none = NULL;
    gpumem_device *other = MADE(gpumem_device *, gpumem_device_open, library, 1);
    OK(gpumem_pool_export_buffer(buffer, &shared));
    OK(gpumem_pool_get_share_handle(pool, &handle));
    OK(gpumem_pool_from_share_handle(other, &handle, &mapped));
    FAILS_SAYING(NO_DEVICE, "on device 0", gpumem_pool_import_buffer(mapped, &shared, &none));
    assert_null(none);
    FAILS(BUSY, gpumem_device_close(other)); /* the resource */
    OK(gpumem_resource_destroy(mapped));
    OK(gpumem_device_close(other));
    DESTROY(buffer, pool);
}

/* The registry is the library's: a pool of any device is found. */
TEST(the_registry_finds_pools_of_every_device) {
    gpumem_resource *pool, *mapped, *found = NULL;
    gpumem_pool_share_handle handle = {.size = sizeof handle};
    gpumem_device *other = MADE(gpumem_device *, gpumem_device_open, library, 1);
    OK(gpumem_device_pool_resource_create(other, GPUMEM_DEVICE_POOL_OPTIONS(.ipc = 1), &pool));
    OK(gpumem_pool_get_share_handle(pool, &handle));
    OK(gpumem_pool_from_share_handle(other, &handle, &mapped));
    gpumem_pool_info info = pool_info_of(mapped);
    assert_int_equal(info.ordinal, 1);
    OK(gpumem_pool_register(mapped, handle.uuid, NULL));
    OK(gpumem_pool_from_registry(library, handle.uuid, &found));
    assert_ptr_equal(found, mapped);
    DESTROY(mapped, pool);
    OK(gpumem_device_close(other));
}

static int open_two_with_a_fabric(void **state) {
    char path[TEMPORARY_ROOM];
    static const char text[] = "[device]\nlike = h200\nmemory = 256M\n[links]\nfabric = 1\n";
    int fd = temporary_file(path, "gpumem-profile");
    if (fd < 0 || write(fd, text, sizeof text - 1) != (ssize_t)(sizeof text - 1))
        return -1;
    close(fd);
    setenv("SOFTGPU_PROFILE", path, 1);
    setenv("SOFTGPU_DEVICES", "2", 1);
    int result = open_device(state);
    unlink(path);
    return result;
}

ALL_TESTS(open_two_with_a_fabric, close_device);
