/* Mapping handles at addresses and taking them away. */
#include "harness.h"

#define PAGE ((size_t)2 << 20)

static CUdeviceptr reserve(size_t size) {
    CUdeviceptr p;
    OK(cu.cuMemAddressReserve(&p, size, 0, 0, 0));
    return p;
}

static CUmemGenericAllocationHandle create(size_t size) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle handle;
    prop.location = device_location(dev);
    OK(cu.cuMemCreate(&handle, size, &prop, 0));
    return handle;
}

static void grant(CUdeviceptr p, size_t size) {
    CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    desc.location = device_location(dev);
    OK(cu.cuMemSetAccess(p, size, &desc, 1));
}

/* Unmapping waits for nothing, so the set is waited for. */
static void set_words(CUdeviceptr p, unsigned value, size_t count) {
    OK(cu.cuMemsetD32_v2(p, value, count));
    OK(cu.cuCtxSynchronize());
}

static unsigned read_word(CUdeviceptr p) {
    unsigned word = 0;
    OK(cu.cuMemcpyDtoH_v2(&word, p, sizeof word));
    return word;
}

TEST(one_handle_is_mapped_at_two_addresses) {
    CUdeviceptr a = reserve(PAGE), b = reserve(PAGE);
    CUmemGenericAllocationHandle handle = create(PAGE);
    OK(cu.cuMemMap(a, PAGE, 0, handle, 0));
    OK(cu.cuMemMap(b, PAGE, 0, handle, 0));
    grant(a, PAGE);
    grant(b, PAGE);
    set_words(a, 0x11223344, 16);
    assert_int_equal(read_word(b + 60), 0x11223344);
    OK(cu.cuMemUnmap(a, PAGE));
    assert_int_equal(read_word(b), 0x11223344);
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD8_v2(a, 1, 1));
    OK(cu.cuMemUnmap(b, PAGE));
    OK(cu.cuMemRelease(handle));
    OK(cu.cuMemAddressFree(a, PAGE));
    OK(cu.cuMemAddressFree(b, PAGE));
}

TEST(bytes_outlive_unmapping) {
    CUdeviceptr a = reserve(4 * PAGE);
    CUmemGenericAllocationHandle handle = create(2 * PAGE);
    OK(cu.cuMemMap(a, 2 * PAGE, 0, handle, 0));
    grant(a, 2 * PAGE);
    set_words(a + PAGE, 77, 1);
    OK(cu.cuMemUnmap(a, 2 * PAGE));
    OK(cu.cuMemMap(a + 2 * PAGE, 2 * PAGE, 0, handle, 0));
    grant(a + 2 * PAGE, 2 * PAGE);
    assert_int_equal(read_word(a + 3 * PAGE), 77);
    OK(cu.cuMemUnmap(a, 4 * PAGE));
    OK(cu.cuMemRelease(handle));
    OK(cu.cuMemAddressFree(a, 4 * PAGE));
}

TEST(invalid_mappings_are_refused) {
    CUdeviceptr a = reserve(4 * PAGE);
    CUmemGenericAllocationHandle handle = create(2 * PAGE);
    CUdeviceptr d = new_memory(2 * PAGE);
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemMap(a, 0, 0, handle, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemMap(a, 2 * PAGE, 0, handle, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemMap(a, 2 * PAGE, 0, 0, 0));
    FAILS(CUDA_ERROR_NOT_SUPPORTED, cu.cuMemMap(a, PAGE, 0, handle, 0));
    FAILS(CUDA_ERROR_NOT_SUPPORTED, cu.cuMemMap(a, PAGE, PAGE, handle, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemMap(a + 3 * PAGE, 2 * PAGE, 0, handle, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemMap(d, 2 * PAGE, 0, handle, 0));
    OK(cu.cuMemMap(a + PAGE, 2 * PAGE, 0, handle, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemMap(a, 2 * PAGE, 0, handle, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemAddressFree(a, 4 * PAGE));
    OK(cu.cuMemUnmap(a + PAGE, 2 * PAGE));
    OK(cu.cuMemRelease(handle));
    OK(cu.cuMemAddressFree(a, 4 * PAGE));
}

TEST(one_call_unmaps_any_number_of_whole_mappings) {
    CUdeviceptr a = reserve(8 * PAGE);
    CUmemGenericAllocationHandle four = create(4 * PAGE), two = create(2 * PAGE);
    CUdeviceptr d = new_memory(PAGE);
    OK(cu.cuMemUnmap(a + 4096, PAGE)); /* nothing is there */
    OK(cu.cuMemMap(a, 4 * PAGE, 0, four, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemUnmap(a + 4096, 4 * PAGE));
    OK(cu.cuMemMap(a + 4 * PAGE, 2 * PAGE, 0, two, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemUnmap(a, PAGE));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemUnmap(a + 2 * PAGE, 4 * PAGE));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemUnmap(0x10000000, PAGE));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemUnmap(d, PAGE));
    /* What was refused has changed nothing. */
    grant(a, 6 * PAGE);
    set_words(a, 1, 6 * PAGE / 4);
    OK(cu.cuMemUnmap(a, 8 * PAGE));
    OK(cu.cuMemUnmap(a, 4 * PAGE));
    OK(cu.cuMemMap(a + 2 * PAGE, 4 * PAGE, 0, four, 0));
    OK(cu.cuMemUnmap(a, 6 * PAGE));
    OK(cu.cuMemRelease(four));
    OK(cu.cuMemRelease(two));
    OK(cu.cuMemAddressFree(a, 8 * PAGE));
}

TEST(a_released_handle_stays_valid_while_it_is_mapped) {
    CUdeviceptr a = reserve(PAGE), b = reserve(PAGE);
    CUmemGenericAllocationHandle handle = create(PAGE), again = 0;
    OK(cu.cuMemMap(a, PAGE, 0, handle, 0));
    OK(cu.cuMemRelease(handle));
    grant(a, PAGE);
    set_words(a, 5, 1);
    OK(cu.cuMemMap(b, PAGE, 0, handle, 0));
    OK(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(a + 5)));
    assert_true(again == handle);
    OK(cu.cuMemRelease(again));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemRelease(again));
    OK(cu.cuMemUnmap(a, PAGE));
    grant(b, PAGE);
    assert_int_equal(read_word(b), 5);
    OK(cu.cuMemUnmap(b, PAGE));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)a));
    OK(cu.cuMemAddressFree(a, PAGE));
    OK(cu.cuMemAddressFree(b, PAGE));
}

TEST(a_retained_handle_needs_its_own_release) {
    CUdeviceptr a = reserve(PAGE);
    CUmemGenericAllocationHandle handle = create(PAGE), again;
    OK(cu.cuMemMap(a, PAGE, 0, handle, 0));
    OK(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)a));
    OK(cu.cuMemUnmap(a, PAGE));
    OK(cu.cuMemRelease(handle));
    OK(cu.cuMemMap(a, PAGE, 0, again, 0));
    OK(cu.cuMemUnmap(a, PAGE));
    OK(cu.cuMemRelease(again));
    FAILS(CUDA_ERROR_INVALID_VALUE, cu.cuMemRetainAllocationHandle(&again, &again));
    OK(cu.cuMemAddressFree(a, PAGE));
}

TEST(a_mapping_may_span_two_reservations) {
    CUdeviceptr a = reserve(8 * PAGE), b, c;
    CUmemGenericAllocationHandle handle = create(2 * PAGE);
    OK(cu.cuMemAddressFree(a, 8 * PAGE));
    OK(cu.cuMemAddressReserve(&b, 4 * PAGE, 0, a, 0));
    OK(cu.cuMemAddressReserve(&c, 4 * PAGE, 0, a + 4 * PAGE, 0));
    if (b == a && c == a + 4 * PAGE) {
        OK(cu.cuMemMap(a + 3 * PAGE, 2 * PAGE, 0, handle, 0));
        grant(a + 3 * PAGE, 2 * PAGE);
        set_words(a + 3 * PAGE, 3, 2 * PAGE / 4);
        OK(cu.cuMemUnmap(a + 3 * PAGE, 2 * PAGE));
    }
    OK(cu.cuMemRelease(handle));
    OK(cu.cuMemAddressFree(b, 4 * PAGE));
    OK(cu.cuMemAddressFree(c, 4 * PAGE));
}

/* A buffer that grows in place: what the library's virtual resource does. */
TEST(growing_in_place_keeps_address_and_content) {
    enum { STEPS = 40 };
    CUdeviceptr a = reserve(STEPS * PAGE);
    CUmemGenericAllocationHandle handle[STEPS];
    for (unsigned i = 0; i < STEPS; i++) {
        handle[i] = create(PAGE);
        OK(cu.cuMemMap(a + i * PAGE, PAGE, 0, handle[i], 0));
        grant(a + i * PAGE, PAGE);
        set_words(a + i * PAGE, i, PAGE / 4);
    }
    for (unsigned i = 0; i < STEPS; i++)
        assert_int_equal(read_word(a + (i + 1) * PAGE - 4), i);
    OK(cu.cuMemUnmap(a, STEPS * PAGE));
    for (unsigned i = 0; i < STEPS; i++)
        OK(cu.cuMemRelease(handle[i]));
    OK(cu.cuMemAddressFree(a, STEPS * PAGE));
}
