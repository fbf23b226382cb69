/* The caller's current context is after a call what it was before, and needs not to be ours. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

static CUcontext current(void) {
    CUcontext now = NULL;
    OK_CU(cu->cuCtxGetCurrent(&now));
    return now;
}

/* A bit of everything, failures among it. */
static void use_everything(void) {
    gpumem_resource *virtual_resource = NEW_VIRTUAL();
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_resource *pool = NEW_POOL();
    gpumem_buffer *big = NEW_BUFFER_WITH(virtual_resource, MIB, .capacity = 64 * MIB);
    gpumem_buffer *staging = NEW_BUFFER(pinned, MIB);
    gpumem_buffer *small = NEW_BUFFER(pool, MIB);
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(pool, (size_t)1 << 50, NULL, &small));
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(big, 65 * MIB, NULL));
    OK(gpumem_buffer_grow(big, 8 * MIB, NULL));
    OK(gpumem_buffer_fill(big, 0, MIB, 7, NULL));
    OK(gpumem_buffer_copy(small, 0, big, 0, MIB, NULL));
    OK(gpumem_buffer_read(small, 0, gpumem_buffer_host_pointer(staging), MIB, NULL));
    synchronize(NULL);
    assert_int_equal(((unsigned char *)gpumem_buffer_host_pointer(staging))[MIB - 1], 7);
    OK(gpumem_buffer_shrink(big, MIB, NULL));
    DESTROY(big, staging, small, pool, pinned, virtual_resource);
}

TEST(library_calls_leave_no_context_current) {
    assert_null(current());
    use_everything();
    assert_null(current());
}

TEST(library_calls_keep_another_context_current) {
    CUcontext other = NULL, popped = NULL;
    OK_CU(cu->cuCtxCreate_v2(&other, 0, gpumem_device_handle(device)));
    use_everything();
    assert_ptr_equal(current(), other);
    OK_CU(cu->cuCtxPopCurrent_v2(&popped));
    assert_null(current());
    OK_CU(cu->cuCtxDestroy_v2(other));
}

TEST(the_devices_own_context_is_not_pushed_again) {
    use_context();
    uint64_t pushes = soft->call_count("cuCtxPushCurrent_v2");
    use_everything();
    assert_int_equal(soft->call_count("cuCtxPushCurrent_v2"), pushes);
    assert_ptr_equal(current(), gpumem_device_context(device));
    leave_context();
}

TEST(opening_and_closing_leave_the_current_context_unchanged) {
    gpumem_library *second;
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &second));
    gpumem_device *other = MADE(gpumem_device *, gpumem_device_open, second, 0);
    assert_null(current());
    OK(gpumem_device_close(other));
    OK(gpumem_close(second));
    assert_null(current());
}
