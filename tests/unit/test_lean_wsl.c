/* A platform without descriptors, as WSL: what can be done is done, what cannot says why. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

TEST(each_missing_capability_has_its_reason) {
    gpumem_capability_report fd = capability_of(GPUMEM_CAPABILITY_HANDLE_POSIX_FD),
                             pool = capability_of(GPUMEM_CAPABILITY_DEVICE_POOL_POSIX_FD);
    assert_int_equal(fd.supported, 0);
    assert_string_equal(fd.reason, "attribute HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED is 0");
    assert_int_equal(pool.supported, 0);
    assert_string_equal(pool.reason, "attribute MEMPOOL_SUPPORTED_HANDLE_TYPES is 9, but "
                                     "cuMemPoolCreate answered CUDA_ERROR_INVALID_VALUE");
    assert_int_equal(capability_of(GPUMEM_CAPABILITY_MANAGED_CONCURRENT).supported, 0);
    assert_int_equal(capability_of(GPUMEM_CAPABILITY_DEVICE_UUID).supported, 1);
}

TEST(virtual_memory_works_without_sharing) {
    gpumem_export *none;
    gpumem_resource *resource = NEW_VIRTUAL(); /* whose default is to share */
    gpumem_resource_properties properties = properties_of(resource);
    MEMBERS(properties, (handle_type, GPUMEM_HANDLE_NONE), (exportable, 0));
    assert_non_null(strstr(properties.note, "no posix_fd handles: cuMemCreate answered"));
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, MIB, .capacity = 64 * MIB);
    OK(gpumem_buffer_fill(buffer, 0, MIB, 3, NULL));
    OK(gpumem_buffer_grow(buffer, 32 * MIB, NULL));
    assert_int_equal(byte_of(buffer, MIB - 1), 3);
    FAILS(NOT_SUPPORTED, gpumem_export_create(buffer, &none));
    DESTROY(buffer, resource);
    FAILS(NOT_SUPPORTED, gpumem_virtual_resource_create(
                             device, GPUMEM_VIRTUAL_OPTIONS(.handle_strict = 1), &resource));
}

TEST(refused_pools_name_the_driver_call) {
    gpumem_resource *pool;
    FAILS_SAYING(
        DRIVER, "cuMemPoolCreate answered CUDA_ERROR_INVALID_VALUE",
        gpumem_device_pool_resource_create(device, GPUMEM_DEVICE_POOL_OPTIONS(.ipc = 1), &pool));
    pool = NEW_POOL();
    OK(gpumem_resource_destroy(pool));
    FAILS(NOT_SUPPORTED, gpumem_managed_resource_create(device, NULL, &pool));
    SAYS("CONCURRENT_MANAGED_ACCESS is 0");
}

BEFORE_TESTS_DO(setenv("SOFTGPU_PROFILE", "wsl", 1));
