/* After a fault of the device: every call says so, nothing hangs, and everything can be closed. */
#include "library_test.h"

EACH_TEST(open_device, NULL);

static void poison(void) {
    CUcontext popped;
    assert_int_equal(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)), CUDA_SUCCESS);
    assert_int_equal(soft->context_poison(CUDA_ERROR_ILLEGAL_ADDRESS), 0);
    cu->cuCtxPopCurrent_v2(&popped);
}

TEST(after_a_device_fault_every_call_fails_and_all_can_be_closed) {
    gpumem_resource *pinned, *pool, *big;
    gpumem_buffer *a, *b, *c, *held, *none = NULL;
    CUstream stream;
    OK(gpumem_pinned_resource_create(device, NULL, &pinned));
    OK(gpumem_device_pool_resource_create(
        device, GPUMEM_OPTIONS(gpumem_device_pool_options, .pool = GPUMEM_POOL_OWN), &pool));
    OK(gpumem_virtual_resource_create(device, NULL, &big));
    OK(gpumem_stream_create(device, NULL, &stream));
    OK(gpumem_buffer_allocate(pinned, 100, NULL, &a));
    OK(gpumem_buffer_allocate(pool, 100, NULL, &b));
    OK(gpumem_buffer_allocate(big, 100, GPUMEM_OPTIONS(gpumem_buffer_options, .stream = stream),
                              &c));
    OK(gpumem_buffer_allocate(big, 100, GPUMEM_OPTIONS(gpumem_buffer_options, .stream = stream),
                              &held));
    OK(gpumem_buffer_hold(held));
    OK(gpumem_buffer_free(held, NULL));
    poison();
    FAILS(DEVICE_FAULT, gpumem_buffer_allocate(pool, 100, NULL, &none));
    assert_int_equal(gpumem_last_error()->driver_code, CUDA_ERROR_ILLEGAL_ADDRESS);
    SAYS("CUDA_ERROR_ILLEGAL_ADDRESS");
    FAILS(DEVICE_FAULT, gpumem_buffer_fill(c, 0, 1, 0, stream));
    FAILS(DEVICE_FAULT, gpumem_stream_synchronize(device, stream));
    assert_null(none);
    OK(gpumem_buffer_free(a, NULL));
    OK(gpumem_buffer_free(b, NULL));
    OK(gpumem_buffer_free(c, stream));
    OK(gpumem_buffer_release(held));
    OK(gpumem_device_trim(device, 1));
    gpumem_stats stats = device_stats();
    assert_int_equal(stats.allocations, 0);
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.deferred_frees, 0);
    (void)gpumem_stream_destroy(device, stream);
    OK(gpumem_resource_destroy(big));
    OK(gpumem_resource_destroy(pool));
    OK(gpumem_resource_destroy(pinned));
    /* What was not given back is counted, and only that. */
    stats = device_stats();
    if (stats.committed_bytes || stats.reserved_bytes)
        assert_true(stats.quarantined > 0);
    assert_int_equal(stats.cached_bytes, 0);
    OK(gpumem_device_close(device));
    OK(gpumem_close(library));
}
