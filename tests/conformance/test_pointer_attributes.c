/* cuPointerGetAttribute and its kin, for every kind of memory. */
#include "harness.h"

#define PAGE ((size_t)2 << 20)

static uint64_t word_of(CUpointer_attribute attribute, CUdeviceptr p) {
    return MADE_CU(uint64_t, cuPointerGetAttribute, attribute, p);
}

static int number_of(CUpointer_attribute attribute, CUdeviceptr p) {
    int number = -77;
    OK_CU(cu.cuPointerGetAttribute(&number, attribute, p));
    return number;
}

TEST(device_memory_reports_its_attributes) {
    uint64_t zeroed = 5;
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 1000);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_CONTEXT, p), (uintptr_t)ctx);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CU_MEMORYTYPE_DEVICE);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 600), p + 600);
    FAILS_CU(INVALID_VALUE,
             cu.cuPointerGetAttribute(&zeroed, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
    assert_int_equal(zeroed, 0);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_IS_MANAGED, p), 0);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p), dev);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p), 1);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 600), p);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 600), 1000);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_MAPPED, p), 1);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p), 0);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p), 3);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p), 0);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p), PAGE);
    uint64_t base = word_of(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, p);
    assert_true(base <= p && p < base + PAGE && base % PAGE == 0);
    OK_CU(cu.cuMemFree_v2(p));
    zeroed = 5;
    FAILS_CU(INVALID_VALUE, cu.cuPointerGetAttribute(&zeroed, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    assert_int_equal(zeroed, 5);
}

TEST(pinned_memory_reports_its_attributes) {
    void *pinned = new_pinned(10000, 0);
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)pinned;
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CU_MEMORYTYPE_HOST);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_HOST_POINTER, p + 5), p + 5);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 5), p + 5);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 9999), 10000);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p), 0);
}

TEST_WHERE(mappings_report_their_attributes, NEEDS_DESCRIPTORS()) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    uint64_t word = 5;
    prop.location.type = desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = desc.location.id = dev;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK_CU(cu.cuMemCreate(&handle, PAGE, &prop, 0));
    CUdeviceptr a = MADE_CU(CUdeviceptr, cuMemAddressReserve, 4 * PAGE, 0, 0, 0);
    FAILS_CU(INVALID_VALUE, cu.cuPointerGetAttribute(&word, CU_POINTER_ATTRIBUTE_CONTEXT, a));
    OK_CU(cu.cuMemMap(a + PAGE, PAGE, 0, handle, 0));
    FAILS_CU(INVALID_VALUE,
             cu.cuPointerGetAttribute(&word, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a + PAGE));
    assert_int_equal(word, 0);
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a + PAGE), 0);
    OK_CU(cu.cuMemSetAccess(a + PAGE, PAGE, &desc, 1));
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a + PAGE), 3);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a + PAGE + 5), a + PAGE + 5);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_CONTEXT, a + PAGE), 0);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + PAGE), a);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_RANGE_SIZE, a + PAGE), 4 * PAGE);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, a + PAGE + 5), a + PAGE);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, a + PAGE), PAGE);
    assert_int_equal(word_of(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, a + PAGE), 1);
    OK_CU(cu.cuMemUnmap(a + PAGE, PAGE));
    OK_CU(cu.cuMemRelease(handle));
    OK_CU(cu.cuMemAddressFree(a, 4 * PAGE));
}

TEST(buffer_ids_are_never_reused) {
    CUdeviceptr a = MADE_CU(CUdeviceptr, cuMemAlloc_v2, 64);
    CUdeviceptr b = new_memory(64);
    uint64_t first = word_of(CU_POINTER_ATTRIBUTE_BUFFER_ID, a);
    assert_true(first != word_of(CU_POINTER_ATTRIBUTE_BUFFER_ID, b));
    assert_int_equal(first, word_of(CU_POINTER_ATTRIBUTE_BUFFER_ID, a + 63));
    OK_CU(cu.cuMemFree_v2(a));
    OK_CU(cu.cuMemAlloc_v2(&a, 64));
    assert_true(first != word_of(CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
    OK_CU(cu.cuMemFree_v2(a));
}

TEST(several_attributes_are_queried_in_one_call) {
    unsigned type = 9;
    CUcontext context = NULL;
    size_t size = 9;
    int ordinal = 9;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *data[] = {&type, &context, &size, &ordinal};
    CUdeviceptr p = new_memory(1000);
    OK_CU(cu.cuPointerGetAttributes(4, which, data, p));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_ptr_equal(context, ctx);
    assert_int_equal(size, 1000);
    assert_int_equal(ordinal, dev);
    /* An address that no driver knows is no error here. */
    OK_CU(cu.cuPointerGetAttributes(4, which, data, (CUdeviceptr)(uintptr_t)&type));
    assert_int_equal(type, 0);
    assert_null(context);
    assert_int_equal(ordinal, CU_DEVICE_INVALID);
}

TEST(sync_memops_can_be_set) {
    unsigned flag = 0;
    CUdeviceptr p = new_memory(4096);
    OK_CU(cu.cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p), 0);
    flag = 1;
    OK_CU(cu.cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + 8));
    assert_int_equal(number_of(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p), 1);
    FAILS_CU(INVALID_VALUE, cu.cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    FAILS_CU(INVALID_VALUE, cu.cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0));
}

TEST(invalid_arguments_are_refused) {
    unsigned value = 5;
    CUdeviceptr p = new_memory(16);
    FAILS_CU(INVALID_VALUE, cu.cuPointerGetAttribute(&value, (CUpointer_attribute)0, p));
    FAILS_CU(INVALID_VALUE, cu.cuPointerGetAttribute(&value, (CUpointer_attribute)99, p));
    FAILS_CU(INVALID_VALUE,
             cu.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 16));
    assert_int_equal(value, 5);
}
