/* cuMemSetAccess and cuMemGetAccess: for devices, for the CPU, and what copies may then do. */
#include "harness.h"

#define PAGE ((size_t)2 << 20)

struct mapping {
    CUdeviceptr at;
    CUmemGenericAllocationHandle handle;
    size_t size;
};

static struct mapping map(CUmemLocationType type, int id, size_t size) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    struct mapping made = {.size = size};
    prop.location.type = type;
    prop.location.id = id;
    OK_CU(cu.cuMemCreate(&made.handle, size, &prop, 0));
    OK_CU(cu.cuMemAddressReserve(&made.at, size, 0, 0, 0));
    OK_CU(cu.cuMemMap(made.at, size, 0, made.handle, 0));
    return made;
}

static void unmap(struct mapping *mapping) {
    OK_CU(cu.cuMemUnmap(mapping->at, mapping->size));
    OK_CU(cu.cuMemRelease(mapping->handle));
    OK_CU(cu.cuMemAddressFree(mapping->at, mapping->size));
}

static CUmemAccessDesc access_of(CUmemLocationType type, int id, CUmemAccess_flags flags) {
    CUmemAccessDesc desc = {.flags = flags};
    desc.location.type = type;
    desc.location.id = id;
    return desc;
}

static unsigned long long access_at(CUdeviceptr p, CUmemLocationType type, int id) {
    CUmemLocation location = {.type = type, .id = id};
    unsigned long long flags = 99;
    OK_CU(cu.cuMemGetAccess(&flags, &location, p));
    return flags;
}

#define DEVICE CU_MEM_LOCATION_TYPE_DEVICE
#define NONE   CU_MEM_ACCESS_FLAGS_PROT_NONE
#define READ   CU_MEM_ACCESS_FLAGS_PROT_READ
#define BOTH   CU_MEM_ACCESS_FLAGS_PROT_READWRITE

TEST(access_rights_control_copies_and_memsets) {
    struct mapping m = map(DEVICE, dev, PAGE);
    unsigned word = 0;
    CUmemAccessDesc desc = access_of(DEVICE, dev, BOTH);
    assert_int_equal(access_at(m.at, DEVICE, dev), NONE);
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD32_v2(m.at, 1, 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(&word, m.at, 4));
    OK_CU(cu.cuMemSetAccess(m.at, PAGE, &desc, 1));
    assert_int_equal(access_at(m.at + 9, DEVICE, dev), BOTH);
    set_words(m.at, 1234, 1);
    desc.flags = READ;
    OK_CU(cu.cuMemSetAccess(m.at, PAGE, &desc, 1));
    assert_int_equal(access_at(m.at, DEVICE, dev), READ);
    assert_int_equal(word_at(m.at), 1234);
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyHtoD_v2(m.at, &word, 4));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD32_v2(m.at, 1, 1));
    desc.flags = NONE;
    OK_CU(cu.cuMemSetAccess(m.at, PAGE, &desc, 1));
    assert_int_equal(access_at(m.at, DEVICE, dev), NONE);
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(&word, m.at, 4));
    OK_CU(cu.cuCtxSynchronize());
    unmap(&m);
}

TEST(refused_access_changes_change_nothing) {
    struct mapping m = map(DEVICE, dev, 4 * PAGE);
    CUmemAccessDesc good = access_of(DEVICE, dev, BOTH), bad[2] = {good, good};
    FAILS_CU(INVALID_VALUE, cu.cuMemSetAccess(m.at, PAGE, &good, 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemSetAccess(m.at + PAGE, 2 * PAGE, &good, 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemSetAccess(m.at, 5 * PAGE, &good, 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemSetAccess(m.at, 4 * PAGE, &good, 0));
    assert_int_equal(access_at(m.at, DEVICE, dev), NONE);
    assert_int_equal(access_at(m.at + 3 * PAGE, DEVICE, dev), NONE);
    bad[1].flags = (CUmemAccess_flags)2;
    bad[1] = access_of(DEVICE, 99, BOTH);
    bad[1] = access_of(CU_MEM_LOCATION_TYPE_HOST, 0, BOTH);
    FAILS_CU(NOT_SUPPORTED, cu.cuMemSetAccess(m.at, 4 * PAGE, bad, 2));
    if (soft) { /* an H200's driver leaves what it did before it came to the bad one */
        assert_int_equal(access_at(m.at, DEVICE, dev), NONE);
        assert_int_equal(access_at(m.at + 3 * PAGE, DEVICE, dev), NONE);
    }
    unmap(&m);
}

TEST(the_last_description_wins) {
    struct mapping m = map(DEVICE, dev, PAGE);
    CUmemAccessDesc two[2] = {access_of(DEVICE, dev, BOTH), access_of(DEVICE, dev, READ)};
    OK_CU(cu.cuMemSetAccess(m.at, PAGE, two, 2));
    assert_int_equal(access_at(m.at, DEVICE, dev), READ);
    unmap(&m);
}

TEST(access_is_set_over_several_mappings_in_one_call) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle handle[4];
    CUmemAccessDesc desc = access_of(DEVICE, dev, BOTH);
    unsigned char bytes[64];
    prop.location.type = DEVICE;
    prop.location.id = dev;
    CUdeviceptr a = MADE_CU(CUdeviceptr, cuMemAddressReserve, 4 * PAGE, 0, 0, 0);
    for (unsigned i = 0; i < 4; i++) {
        OK_CU(cu.cuMemCreate(&handle[i], PAGE, &prop, 0));
        OK_CU(cu.cuMemMap(a + (3 - i) * PAGE, PAGE, 0, handle[i], 0));
    }
    OK_CU(cu.cuMemSetAccess(a, 4 * PAGE, &desc, 1));
    /* A copy runs from one mapping into the next. */
    fill_pattern(bytes, sizeof bytes, 1);
    OK_CU(cu.cuMemcpyHtoD_v2(a + PAGE - 32, bytes, sizeof bytes));
    memset(bytes, 0, sizeof bytes);
    OK_CU(cu.cuMemcpyDtoH_v2(bytes, a + PAGE - 32, sizeof bytes));
    assert_true(has_pattern(bytes, sizeof bytes, 1));
    OK_CU(cu.cuMemUnmap(a + 2 * PAGE, PAGE));
    OK_CU(cu.cuMemSetAccess(a, 4 * PAGE, &desc, 1)); /* a hole between is no mistake */
    FAILS_CU(INVALID_VALUE, cu.cuMemSetAccess(a + PAGE, 2 * PAGE, &desc, 1));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8_v2(a + PAGE, 1, 2 * PAGE));
    OK_CU(cu.cuMemUnmap(a, 4 * PAGE));
    for (unsigned i = 0; i < 4; i++)
        OK_CU(cu.cuMemRelease(handle[i]));
    OK_CU(cu.cuMemAddressFree(a, 4 * PAGE));
}

TEST(a_new_mapping_has_no_access_rights) {
    struct mapping m = map(DEVICE, dev, PAGE);
    CUmemAccessDesc desc = access_of(DEVICE, dev, BOTH);
    OK_CU(cu.cuMemSetAccess(m.at, PAGE, &desc, 1));
    OK_CU(cu.cuMemUnmap(m.at, PAGE));
    CUmemLocation location = desc.location;
    unsigned long long flags = 99;
    FAILS_CU(INVALID_VALUE, cu.cuMemGetAccess(&flags, &location, m.at));
    assert_int_equal(flags, 0);
    OK_CU(cu.cuMemMap(m.at, PAGE, 0, m.handle, 0));
    assert_int_equal(access_at(m.at, DEVICE, dev), NONE);
    unmap(&m);
}

TEST(host_and_device_access_mapped_host_memory) {
    struct mapping m = map(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, 2 * PAGE);
    CUmemAccessDesc both[2] = {access_of(DEVICE, dev, BOTH),
                               access_of(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, BOTH)};
    unsigned char *bytes = (unsigned char *)(uintptr_t)m.at;
    OK_CU(cu.cuMemSetAccess(m.at, 2 * PAGE, both, 2));
    assert_int_equal(access_at(m.at, DEVICE, dev), BOTH);
    assert_int_equal(access_at(m.at, CU_MEM_LOCATION_TYPE_HOST, 0), BOTH);
    set_bytes(m.at, 0x33, 2 * PAGE);
    assert_int_equal(bytes[0], 0x33);
    assert_int_equal(bytes[2 * PAGE - 1], 0x33);
    bytes[PAGE] = 0x44;
    /* Without the CPU's access the device still finds the same bytes. */
    both[1].flags = NONE;
    OK_CU(cu.cuMemSetAccess(m.at, 2 * PAGE, &both[1], 1));
    if (soft) /* an H200's driver leaves the CPU what it had */
        assert_int_equal(access_at(m.at, CU_MEM_LOCATION_TYPE_HOST, 0), NONE);
    assert_int_equal(byte_at(m.at + PAGE), 0x44);
    set_bytes(m.at + PAGE, 0x55, 1);
    both[1].flags = BOTH;
    OK_CU(cu.cuMemSetAccess(m.at, 2 * PAGE, &both[1], 1));
    assert_int_equal(bytes[PAGE], 0x55);
    unmap(&m);
}

TEST(access_queries_with_invalid_arguments_are_refused) {
    struct mapping m = map(DEVICE, dev, PAGE);
    CUmemLocation where = {.type = DEVICE, .id = dev}, wrong = {.type = DEVICE, .id = 99};
    unsigned long long flags = 5;
    FAILS_CU(INVALID_VALUE, cu.cuMemGetAccess(&flags, NULL, m.at));
    FAILS_CU(INVALID_VALUE, cu.cuMemGetAccess(&flags, &where, 0));
    FAILS_CU(INVALID_DEVICE, cu.cuMemGetAccess(&flags, &wrong, m.at));
    assert_int_equal(flags, 5);
    unmap(&m);
}

/* Seen on H200: the second of two mappings of one handle, whose access was taken away again. */
TEST(a_mapping_without_access_has_no_address_range) {
    struct mapping m = map(DEVICE, dev, PAGE);
    CUmemAccessDesc desc = access_of(DEVICE, dev, BOTH);
    CUdeviceptr second, base;
    size_t size;
    OK_CU(cu.cuMemSetAccess(m.at, PAGE, &desc, 1));
    OK_CU(cu.cuMemAddressReserve(&second, PAGE, 0, 0, 0));
    OK_CU(cu.cuMemMap(second, PAGE, 0, m.handle, 0));
    OK_CU(cu.cuMemSetAccess(second, PAGE, &desc, 1));
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, second + 100));
    assert_int_equal(base, second);
    assert_int_equal(size, PAGE);
    desc.flags = NONE;
    OK_CU(cu.cuMemSetAccess(second, PAGE, &desc, 1));
    base = size = 5;
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange_v2(&base, &size, second + 100));
    assert_int_equal(base, 0);
    assert_int_equal(size, 0);
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, m.at + 100));
    assert_int_equal(base, m.at);
    desc.flags = READ;
    OK_CU(cu.cuMemSetAccess(second, PAGE, &desc, 1));
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, second + 100));
    assert_int_equal(base, second);
    OK_CU(cu.cuMemUnmap(second, PAGE));
    OK_CU(cu.cuMemAddressFree(second, PAGE));
    unmap(&m);
}

/* As recorded: what counts is whether a device may reach it, and the base is 0. */
TEST(host_memory_has_an_address_range_only_with_device_access) {
    struct mapping m = map(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, PAGE);
    CUmemAccessDesc cpu = access_of(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, BOTH);
    CUmemAccessDesc device = access_of(DEVICE, dev, BOTH);
    CUdeviceptr base = 5;
    size_t size = 5;
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange_v2(&base, &size, m.at));
    OK_CU(cu.cuMemSetAccess(m.at, PAGE, &cpu, 1));
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange_v2(&base, &size, m.at + 100));
    assert_int_equal(size, 0);
    OK_CU(cu.cuMemSetAccess(m.at, PAGE, &device, 1));
    base = 5;
    OK_CU(cu.cuMemGetAddressRange_v2(&base, &size, m.at + 100));
    assert_int_equal(base, 0);
    assert_int_equal(size, PAGE);
    device.flags = NONE;
    OK_CU(cu.cuMemSetAccess(m.at, PAGE, &device, 1));
    FAILS_CU(NOT_FOUND, cu.cuMemGetAddressRange_v2(&base, &size, m.at));
    unmap(&m);
}

TEST_WHERE(another_device_needs_access_to_a_mapping, NEEDS_DEVICES(2)) {
    int can = MADE_CU(int, cuDeviceCanAccessPeer, 1, 0);
    if (!can)
        SKIP("device 1 cannot access device 0");
    struct mapping m = map(DEVICE, 0, PAGE);
    CUmemAccessDesc desc = access_of(DEVICE, 1, BOTH);
    OK_CU(cu.cuMemSetAccess(m.at, PAGE, &desc, 1));
    assert_int_equal(access_at(m.at, DEVICE, 1), BOTH);
    assert_int_equal(access_at(m.at, DEVICE, 0), NONE);
    CUcontext second = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 1);
    OK_CU(cu.cuCtxPushCurrent_v2(second));
    OK_CU(cu.cuMemsetD32_v2(m.at, 99, 1));
    assert_int_equal(word_at(m.at), 99);
    OK_CU(cu.cuCtxPopCurrent_v2(&second));
    OK_CU(cu.cuDevicePrimaryCtxRelease_v2(1));
    unmap(&m);
}
