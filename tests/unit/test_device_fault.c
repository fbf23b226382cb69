/* After a fault of the device: every call says so, nothing hangs, and everything can be closed. */
#include "library_test.h"

EACH_TEST(open_device, NULL);

static void poison(void) {
    use_context();
    assert_int_equal(soft->context_poison(CUDA_ERROR_ILLEGAL_ADDRESS), 0);
    leave_context();
}

TEST(after_a_device_fault_every_call_fails_and_all_can_be_closed) {
    gpumem_buffer *none = NULL;
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    gpumem_resource *big = NEW_VIRTUAL();
    CUstream stream = NEW_STREAM();
    gpumem_buffer *a = NEW_BUFFER(pinned, 100);
    gpumem_buffer *b = NEW_BUFFER(pool, 100);
    gpumem_buffer *c = NEW_BUFFER_WITH(big, 100, .stream = stream);
    gpumem_buffer *held = NEW_BUFFER_WITH(big, 100, .stream = stream);
    OK(gpumem_buffer_hold(held));
    OK(gpumem_buffer_free(held, NULL));
    poison();
    FAILS(DEVICE_FAULT, gpumem_buffer_allocate(pool, 100, NULL, &none));
    FAILS_CU(ILLEGAL_ADDRESS, gpumem_last_error()->driver_code);
    SAYS("CUDA_ERROR_ILLEGAL_ADDRESS");
    FAILS(DEVICE_FAULT, gpumem_buffer_fill(c, 0, 1, 0, stream));
    FAILS(DEVICE_FAULT, gpumem_stream_synchronize(device, stream));
    assert_null(none);
    DESTROY(a, b);
    OK(gpumem_buffer_free(c, stream));
    OK(gpumem_buffer_release(held));
    OK(gpumem_device_trim(device, 1));
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (allocations, 0), (in_use_bytes, 0), (deferred_frees, 0));
    (void)gpumem_stream_destroy(device, stream);
    DESTROY(big, pool, pinned);
    /* What was not given back is counted, and only that. */
    stats = device_stats();
    if (stats.committed_bytes || stats.reserved_bytes)
        assert_true(stats.quarantined > 0);
    assert_int_equal(stats.cached_bytes, 0);
    OK(gpumem_device_close(device));
    OK(gpumem_close(library));
}
