/* Mapping handles at addresses and taking them away. */
#include "harness.h"

#define PAGE ((size_t)2 << 20)

static CUdeviceptr reserve(size_t size) {
    return MADE_CU(CUdeviceptr, cuMemAddressReserve, size, 0, 0, 0);
}

static CUmemGenericAllocationHandle create(size_t size) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle handle;
    prop.location = device_location(dev);
    OK_CU(cu.cuMemCreate(&handle, size, &prop, 0));
    return handle;
}

static void grant(CUdeviceptr p, size_t size) {
    CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    desc.location = device_location(dev);
    OK_CU(cu.cuMemSetAccess(p, size, &desc, 1));
}

TEST(one_handle_is_mapped_at_two_addresses) {
    CUdeviceptr a = reserve(PAGE), b = reserve(PAGE);
    CUmemGenericAllocationHandle handle = create(PAGE);
    OK_CU(cu.cuMemMap(a, PAGE, 0, handle, 0));
    OK_CU(cu.cuMemMap(b, PAGE, 0, handle, 0));
    grant(a, PAGE);
    grant(b, PAGE);
    set_words(a, 0x11223344, 16);
    assert_int_equal(word_at(b + 60), 0x11223344);
    OK_CU(cu.cuMemUnmap(a, PAGE));
    assert_int_equal(word_at(b), 0x11223344);
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8_v2(a, 1, 1));
    OK_CU(cu.cuMemUnmap(b, PAGE));
    OK_CU(cu.cuMemRelease(handle));
    OK_CU(cu.cuMemAddressFree(a, PAGE));
    OK_CU(cu.cuMemAddressFree(b, PAGE));
}

TEST(bytes_outlive_unmapping) {
    CUdeviceptr a = reserve(4 * PAGE);
    CUmemGenericAllocationHandle handle = create(2 * PAGE);
    OK_CU(cu.cuMemMap(a, 2 * PAGE, 0, handle, 0));
    grant(a, 2 * PAGE);
    set_words(a + PAGE, 77, 1);
    OK_CU(cu.cuMemUnmap(a, 2 * PAGE));
    OK_CU(cu.cuMemMap(a + 2 * PAGE, 2 * PAGE, 0, handle, 0));
    grant(a + 2 * PAGE, 2 * PAGE);
    assert_int_equal(word_at(a + 3 * PAGE), 77);
    unmap_and_free(a, 4 * PAGE, handle);
}

TEST(invalid_mappings_are_refused) {
    CUdeviceptr a = reserve(4 * PAGE);
    CUmemGenericAllocationHandle handle = create(2 * PAGE);
    CUdeviceptr d = new_memory(2 * PAGE);
    FAILS_CU(INVALID_VALUE, cu.cuMemMap(a, 0, 0, handle, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemMap(a, 2 * PAGE, 0, handle, 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemMap(a, 2 * PAGE, 0, 0, 0));
    FAILS_CU(NOT_SUPPORTED, cu.cuMemMap(a, PAGE, 0, handle, 0));
    FAILS_CU(NOT_SUPPORTED, cu.cuMemMap(a, PAGE, PAGE, handle, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemMap(a + 3 * PAGE, 2 * PAGE, 0, handle, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemMap(d, 2 * PAGE, 0, handle, 0));
    OK_CU(cu.cuMemMap(a + PAGE, 2 * PAGE, 0, handle, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemMap(a, 2 * PAGE, 0, handle, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemAddressFree(a, 4 * PAGE));
    OK_CU(cu.cuMemUnmap(a + PAGE, 2 * PAGE));
    OK_CU(cu.cuMemRelease(handle));
    OK_CU(cu.cuMemAddressFree(a, 4 * PAGE));
}

TEST(one_call_unmaps_any_number_of_whole_mappings) {
    CUdeviceptr a = reserve(8 * PAGE);
    CUmemGenericAllocationHandle four = create(4 * PAGE), two = create(2 * PAGE);
    CUdeviceptr d = new_memory(PAGE);
    OK_CU(cu.cuMemUnmap(a + 4096, PAGE)); /* nothing is there */
    OK_CU(cu.cuMemMap(a, 4 * PAGE, 0, four, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemUnmap(a + 4096, 4 * PAGE));
    OK_CU(cu.cuMemMap(a + 4 * PAGE, 2 * PAGE, 0, two, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemUnmap(a, PAGE));
    FAILS_CU(INVALID_VALUE, cu.cuMemUnmap(a + 2 * PAGE, 4 * PAGE));
    FAILS_CU(INVALID_VALUE, cu.cuMemUnmap(0x10000000, PAGE));
    FAILS_CU(INVALID_VALUE, cu.cuMemUnmap(d, PAGE));
    /* What was refused has changed nothing. */
    grant(a, 6 * PAGE);
    set_words(a, 1, 6 * PAGE / 4);
    OK_CU(cu.cuMemUnmap(a, 8 * PAGE));
    OK_CU(cu.cuMemUnmap(a, 4 * PAGE));
    OK_CU(cu.cuMemMap(a + 2 * PAGE, 4 * PAGE, 0, four, 0));
    OK_CU(cu.cuMemUnmap(a, 6 * PAGE));
    OK_CU(cu.cuMemRelease(four));
    OK_CU(cu.cuMemRelease(two));
    OK_CU(cu.cuMemAddressFree(a, 8 * PAGE));
}

TEST(a_released_handle_stays_valid_while_it_is_mapped) {
    CUdeviceptr a = reserve(PAGE), b = reserve(PAGE);
    CUmemGenericAllocationHandle handle = create(PAGE), again = 0;
    OK_CU(cu.cuMemMap(a, PAGE, 0, handle, 0));
    OK_CU(cu.cuMemRelease(handle));
    grant(a, PAGE);
    set_words(a, 5, 1);
    OK_CU(cu.cuMemMap(b, PAGE, 0, handle, 0));
    OK_CU(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(a + 5)));
    assert_true(again == handle);
    OK_CU(cu.cuMemRelease(again));
    FAILS_CU(INVALID_VALUE, cu.cuMemRelease(again));
    OK_CU(cu.cuMemUnmap(a, PAGE));
    grant(b, PAGE);
    assert_int_equal(word_at(b), 5);
    OK_CU(cu.cuMemUnmap(b, PAGE));
    FAILS_CU(INVALID_VALUE, cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)a));
    OK_CU(cu.cuMemAddressFree(a, PAGE));
    OK_CU(cu.cuMemAddressFree(b, PAGE));
}

TEST(a_retained_handle_needs_its_own_release) {
    CUdeviceptr a = reserve(PAGE);
    CUmemGenericAllocationHandle handle = create(PAGE), again;
    OK_CU(cu.cuMemMap(a, PAGE, 0, handle, 0));
    OK_CU(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)a));
    OK_CU(cu.cuMemUnmap(a, PAGE));
    OK_CU(cu.cuMemRelease(handle));
    OK_CU(cu.cuMemMap(a, PAGE, 0, again, 0));
    OK_CU(cu.cuMemUnmap(a, PAGE));
    OK_CU(cu.cuMemRelease(again));
    FAILS_CU(INVALID_VALUE, cu.cuMemRetainAllocationHandle(&again, &again));
    OK_CU(cu.cuMemAddressFree(a, PAGE));
}

TEST(a_mapping_may_span_two_reservations) {
    CUdeviceptr a = reserve(8 * PAGE), b, c;
    CUmemGenericAllocationHandle handle = create(2 * PAGE);
    OK_CU(cu.cuMemAddressFree(a, 8 * PAGE));
    OK_CU(cu.cuMemAddressReserve(&b, 4 * PAGE, 0, a, 0));
    OK_CU(cu.cuMemAddressReserve(&c, 4 * PAGE, 0, a + 4 * PAGE, 0));
    if (b == a && c == a + 4 * PAGE) {
        OK_CU(cu.cuMemMap(a + 3 * PAGE, 2 * PAGE, 0, handle, 0));
        grant(a + 3 * PAGE, 2 * PAGE);
        set_words(a + 3 * PAGE, 3, 2 * PAGE / 4);
        OK_CU(cu.cuMemUnmap(a + 3 * PAGE, 2 * PAGE));
    }
    OK_CU(cu.cuMemRelease(handle));
    OK_CU(cu.cuMemAddressFree(b, 4 * PAGE));
    OK_CU(cu.cuMemAddressFree(c, 4 * PAGE));
}

/* A buffer that grows in place: what the library's virtual resource does. */
TEST(growing_in_place_keeps_address_and_content) {
    enum { STEPS = 40 };
    CUdeviceptr a = reserve(STEPS * PAGE);
    CUmemGenericAllocationHandle handle[STEPS];
    for (unsigned i = 0; i < STEPS; i++) {
        handle[i] = create(PAGE);
        OK_CU(cu.cuMemMap(a + i * PAGE, PAGE, 0, handle[i], 0));
        grant(a + i * PAGE, PAGE);
        set_words(a + i * PAGE, i, PAGE / 4);
    }
    for (unsigned i = 0; i < STEPS; i++)
        assert_int_equal(word_at(a + (i + 1) * PAGE - 4), i);
    OK_CU(cu.cuMemUnmap(a, STEPS * PAGE));
    for (unsigned i = 0; i < STEPS; i++)
        OK_CU(cu.cuMemRelease(handle[i]));
    OK_CU(cu.cuMemAddressFree(a, STEPS * PAGE));
}
