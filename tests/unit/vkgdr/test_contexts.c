/* Several contexts and devices: memory belongs to the context that was current. */
#include "vkgdr/internal.h"
#include "vkgdr_test.h"

EACH_TEST(start_with_context, end_with_context);

static CUcontext make_context(CUdevice of) {
    return MADE_CU(CUcontext, cuCtxCreate_v2, 0, of);
}

static void destroy_context(CUcontext context) {
    OK_CU(cu->cuCtxDestroy_v2(context));
}

TEST(allocating_in_another_devices_context_is_refused) {
    vkgdr_t g = open_gpu(0);
    CUcontext other = make_context(1);
    assert_null(vkgdr_memory_alloc(g, 64, 0));
    ERROR_IS("vkgdr_memory_alloc: the current context is of device 1, the handle of device 0");
    assert_int_equal(icd->calls("vkAllocateMemory"), 0);
    destroy_context(other);
    vkgdr_close(g);
}

TEST(each_context_has_its_own_slabs) {
    CUcontext popped;
    vkgdr_t g = open_gpu(0);
    vkgdr_memory_t one = allocate(g, 64);
    CUcontext second = make_context(0);
    vkgdr_memory_t other = allocate(g, 64);
    assert_int_equal(icd->live().memories, 2);
    fill(host_of(other), 64, 1);
    check_device(other, 64, 1);
    vkgdr_memory_free(other);
    assert_int_equal(icd->live().memories, 1);
    OK_CU(cu->cuCtxPopCurrent_v2(&popped));
    fill(host_of(one), 64, 2);
    check_device(one, 64, 2);
    destroy_context(second);
    vkgdr_memory_free(one);
    vkgdr_close(g);
}

/* CUDA's part went with the context; Vulkan's is given back. */
TEST(a_context_may_end_before_its_memory) {
    vkgdr_t g = open_gpu(0);
    CUcontext context = make_context(0);
    vkgdr_memory_t small = allocate(g, 64), large = allocate(g, MIB);
    destroy_context(context);
    vkgdr_memory_free(small);
    vkgdr_memory_free(large);
    assert_int_equal(icd->live().memories, 0);
    vkgdr_close(g);
}

/* Its handle may come again. */
TEST(memory_of_a_destroyed_context_is_not_reused) {
    vkgdr_t g = open_gpu(0);
    CUcontext context = make_context(0);
    vkgdr_memory_t old = allocate(g, 64);
    destroy_context(context);
    for (int i = 0; i < 4; i++) {
        context = make_context(0);
        vkgdr_memory_t memory = allocate(g, 64);
        fill(host_of(memory), 64, 1);
        check_device(memory, 64, 1);
        vkgdr_memory_free(memory);
        destroy_context(context);
    }
    vkgdr_memory_free(old);
    vkgdr_close(g);
}

/* The primary context has one handle for ever. What is at an address of before is somebody else's.
 */
TEST(a_reset_primary_context_does_not_reuse_old_slabs) {
    CUcontext primary, popped;
    CUdeviceptr others[8];
    setenv("VULKAN_ICD_UUID", "736f6674677080758000000000000000,736f6674677080758000000000000001",
           1);
    OK_CU(cu->cuDevicePrimaryCtxRetain(&primary, 1));
    OK_CU(cu->cuCtxPushCurrent_v2(primary));
    vkgdr_t g = vkgdr_open(0, VKGDR_OPEN_CURRENT_CONTEXT_BIT);
    assert_non_null(g);
    assert_int_equal(gpumem_vkgdr_device(g), 1);
    vkgdr_memory_t small = allocate(g, 64), large = allocate(g, 2 * MIB);
    OK_CU(cu->cuDevicePrimaryCtxReset_v2(1));
    cu->cuCtxPopCurrent_v2(&popped);
    OK_CU(cu->cuDevicePrimaryCtxRetain(&primary, 1));
    OK_CU(cu->cuCtxPushCurrent_v2(primary));
    for (size_t i = 0; i < COUNT(others); i++)
        OK_CU(cu->cuMemAlloc_v2(&others[i], 2 * MIB));
    vkgdr_memory_t after = allocate(g, 64);
    vkgdr_memory_free(small);
    vkgdr_memory_free(large);
    fill(host_of(after), 64, 3);
    check_device(after, 64, 3);
    vkgdr_memory_free(after);
    for (size_t i = 0; i < COUNT(others); i++) {
        OK_CU(cu->cuMemsetD8_v2(others[i], 1, 2 * MIB));
        OK_CU(cu->cuMemFree_v2(others[i]));
    }
    vkgdr_close(g);
    OK_CU(cu->cuCtxPopCurrent_v2(&popped));
    OK_CU(cu->cuDevicePrimaryCtxRelease_v2(1));
    assert_nothing_left();
}

/* softgpu gives no handle a second time, NVIDIA's driver may. */
TEST(contexts_are_identified_by_handle_and_id) {
    struct gm_vkgdr_context current = gm_vkgdr_context_current(cu), later = current;
    assert_ptr_equal(current.handle, own_context());
    assert_true(current.id != 0);
    assert_true(gm_vkgdr_context_same(current, later));
    later.id++;
    assert_false(gm_vkgdr_context_same(current, later));
}

TEST(freeing_without_the_context_frees_only_the_vulkan_memory) {
    CUcontext popped;
    vkgdr_t g = open_gpu(0);
    CUcontext context = make_context(0);
    vkgdr_memory_t small = allocate(g, 64), large = allocate(g, MIB);
    CUdeviceptr address = vkgdr_memory_get_device_ptr(large);
    size_t lost = gm_vkgdr_lost();
    OK_CU(cu->cuCtxPopCurrent_v2(&popped));
    vkgdr_memory_free(small);
    vkgdr_memory_free(large);
    assert_int_equal(icd->live().memories, 0);
    assert_int_equal(gm_vkgdr_lost(), lost + 2);
    OK_CU(cu->cuCtxPushCurrent_v2(context));
    /* The GPU has it still. */
    OK_CU(cu->cuMemsetD8_v2(address, 1, MIB));
    destroy_context(context);
    vkgdr_close(g);
}

static int start_with_two_devices(void **state) {
    assert_int_equal(setenv("SOFTGPU_DEVICES", "2", 1), 0);
    return start_vkgdr(state);
}

ALL_TESTS(start_with_two_devices, close_device);
