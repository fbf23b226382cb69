/* The caller's current context is after a call what it was before, and needs not to be ours. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

static CUcontext current(void) {
    CUcontext now = NULL;
    assert_int_equal(cu->cuCtxGetCurrent(&now), CUDA_SUCCESS);
    return now;
}

/* A bit of everything, failures among it. */
static void use_everything(void) {
    gpumem_resource *virtual_resource, *pinned, *pool;
    gpumem_buffer *big, *staging, *small;
    OK(gpumem_virtual_resource_create(device, NULL, &virtual_resource));
    OK(gpumem_pinned_resource_create(device, NULL, &pinned));
    OK(gpumem_device_pool_resource_create(device, NULL, &pool));
    OK(gpumem_buffer_allocate(virtual_resource, MIB,
                              GPUMEM_OPTIONS(gpumem_buffer_options, .capacity = 64 * MIB), &big));
    OK(gpumem_buffer_allocate(pinned, MIB, NULL, &staging));
    OK(gpumem_buffer_allocate(pool, MIB, NULL, &small));
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(pool, (size_t)1 << 50, NULL, &small));
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(big, 65 * MIB, NULL));
    OK(gpumem_buffer_grow(big, 8 * MIB, NULL));
    OK(gpumem_buffer_fill(big, 0, MIB, 7, NULL));
    OK(gpumem_buffer_copy(small, 0, big, 0, MIB, NULL));
    OK(gpumem_buffer_read(small, 0, gpumem_buffer_host_pointer(staging), MIB, NULL));
    synchronize(NULL);
    assert_int_equal(((unsigned char *)gpumem_buffer_host_pointer(staging))[MIB - 1], 7);
    OK(gpumem_buffer_shrink(big, MIB, NULL));
    OK(gpumem_buffer_free(big, NULL));
    OK(gpumem_buffer_free(staging, NULL));
    OK(gpumem_buffer_free(small, NULL));
    OK(gpumem_resource_destroy(pool));
    OK(gpumem_resource_destroy(pinned));
    OK(gpumem_resource_destroy(virtual_resource));
}

TEST(library_calls_leave_no_context_current) {
    assert_null(current());
    use_everything();
    assert_null(current());
}

TEST(library_calls_keep_another_context_current) {
    CUcontext other = NULL, popped = NULL;
    assert_int_equal(cu->cuCtxCreate_v2(&other, 0, gpumem_device_handle(device)), CUDA_SUCCESS);
    use_everything();
    assert_ptr_equal(current(), other);
    assert_int_equal(cu->cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    assert_null(current());
    assert_int_equal(cu->cuCtxDestroy_v2(other), CUDA_SUCCESS);
}

TEST(the_devices_own_context_is_not_pushed_again) {
    CUcontext popped = NULL;
    assert_int_equal(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), CUDA_SUCCESS);
    uint64_t pushes = soft->call_count("cuCtxPushCurrent_v2");
    use_everything();
    assert_int_equal(soft->call_count("cuCtxPushCurrent_v2"), pushes);
    assert_ptr_equal(current(), gpumem_device_context(device));
    cu->cuCtxPopCurrent_v2(&popped);
}

TEST(opening_and_closing_leave_the_current_context_unchanged) {
    gpumem_library *second;
    gpumem_device *other;
    OK(gpumem_open(GPUMEM_OPTIONS(gpumem_open_options, .driver = "softgpu"), &second));
    OK(gpumem_device_open(second, 0, &other));
    assert_null(current());
    OK(gpumem_device_close(other));
    OK(gpumem_close(second));
    assert_null(current());
}
