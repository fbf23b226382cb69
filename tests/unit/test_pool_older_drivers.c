/* Drivers that are older than a part of the host pools, shown by the answers that they give. */
#include "library_test.h"

ALL_TESTS(open_device, close_device);

#define POOL(...) GPUMEM_PINNED_OPTIONS(.method = GPUMEM_PINNED_POOL, __VA_ARGS__)

static gpumem_resource *resource;

static const char *note(void) {
    static gpumem_resource_properties properties;
    properties.size = sizeof properties;
    OK(gpumem_resource_get_properties(resource, &properties));
    return properties.note;
}

static void check_bytes(void) {
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4096);
    OK(gpumem_buffer_fill(buffer, 0, 4096, 0x5a, NULL));
    synchronize(NULL);
    assert_int_equal(((unsigned char *)gpumem_buffer_host_pointer(buffer))[4095], 0x5a);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* Before 13.0: pools of host memory, and no current one. */
TEST(without_a_current_host_pool_an_own_one_is_created) {
    assert_int_equal(
        soft->fault_arm("cuMemGetMemPool", 0, CUDA_ERROR_NOT_FOUND, SOFTGPU_FAULT_BEFORE), 0);
    OK(gpumem_pinned_resource_create(device, POOL(.pool = GPUMEM_POOL_CURRENT), &resource));
    soft->fault_disarm();
    assert_non_null(strstr(note(), "a pool of its own"));
    assert_non_null(strstr(note(), "cuMemGetMemPool"));
    gpumem_pool_info info = pool_info_of(resource);
    assert_int_equal(info.owned, 1);
    check_bytes();
    OK(gpumem_resource_destroy(resource));
}

/* A driver that says so although the attribute promises pools. */
TEST(unsupported_host_pools_are_replaced_by_slabs) {
    assert_int_equal(
        soft->fault_arm("cuMemPoolCreate", 0, CUDA_ERROR_NOT_SUPPORTED, SOFTGPU_FAULT_BEFORE), 0);
    OK(gpumem_pinned_resource_create(device, POOL(.pool = GPUMEM_POOL_OWN), &resource));
    soft->fault_disarm();
    assert_non_null(strstr(note(), "slabs in place of the driver's host pool: "));
    assert_non_null(strstr(note(), "CUDA_ERROR_NOT_SUPPORTED"));
    check_bytes();
    OK(gpumem_resource_destroy(resource));
}

/* What may be otherwise next time is an error, and no reason for another kind of memory. */
TEST(a_failing_pool_creation_is_an_error_not_a_fallback) {
    const CUresult codes[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE,
                              CUDA_ERROR_UNKNOWN};
    for (size_t i = 0; i < COUNT(codes); i++) {
        assert_int_equal(soft->fault_arm("cuMemPoolCreate", 1, (int)codes[i], SOFTGPU_FAULT_BEFORE),
                         0);
        assert_int_not_equal(
            gpumem_pinned_resource_create(device, POOL(.pool = GPUMEM_POOL_OWN), &resource),
            GPUMEM_OK);
        assert_int_equal(gpumem_last_error()->driver_code, codes[i]);
        assert_int_equal(soft->fault_disarm(), 1);
    }
}
