/* Advice on managed memory, and what cuMemRangeGetAttribute tells of it. */
#include "harness.h"

#define PAGE ((size_t)4096)
#define SIZE (16 * PAGE)

static CUdeviceptr m;

static int begin(void **state) {
    m = 0;
    int result = test_begin(state);
    if (result == 0 && device_attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
        OK_CU(cu.cuMemAllocManaged(&m, SIZE, CU_MEM_ATTACH_GLOBAL));
    return result;
}

static int end(void **state) {
    if (m)
        OK_CU(cu.cuMemFree_v2(m));
    return test_end(state);
}

EACH_TEST(begin, end);

#define NEEDS_MANAGED() NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)

static int get(CUmem_range_attribute attribute, CUdeviceptr at, size_t size) {
    int value = 77;
    OK_CU(cu.cuMemRangeGetAttribute(&value, sizeof value, attribute, at, size));
    return value;
}

static CUmemLocation at_device(int id) {
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    location.id = id;
    return location;
}

static const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};

TEST_WHERE(read_mostly_is_reported_only_for_fully_advised_ranges, NEEDS_MANAGED()) {
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, SIZE), 0);
    OK_CU(cu.cuMemAdvise(m + 4 * PAGE, 2 * PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, dev));
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, SIZE), 0);
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 4 * PAGE, 2 * PAGE), 1);
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 4 * PAGE, 3 * PAGE), 0);
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 3 * PAGE, 2 * PAGE), 0);
    OK_CU(cu.cuMemAdvise_v2(m + 4 * PAGE, PAGE, CU_MEM_ADVISE_UNSET_READ_MOSTLY, host));
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 4 * PAGE, PAGE), 0);
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 5 * PAGE, PAGE), 1);
}

TEST_WHERE(preferred_locations_are_reported, NEEDS_MANAGED()) {
    const CUmem_range_attribute which = CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION;
    const CUmem_range_attribute type = CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE;
    assert_int_equal(get(which, m, SIZE), CU_DEVICE_INVALID);
    assert_int_equal(get(type, m, SIZE), CU_MEM_LOCATION_TYPE_INVALID);
    OK_CU(cu.cuMemAdvise(m, SIZE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, dev));
    assert_int_equal(get(which, m, SIZE), dev);
    assert_int_equal(get(type, m, SIZE), CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, m, SIZE), dev);
    OK_CU(cu.cuMemAdvise_v2(m, 8 * PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    assert_int_equal(get(which, m, 8 * PAGE), CU_DEVICE_CPU);
    assert_int_equal(get(type, m, 8 * PAGE), CU_MEM_LOCATION_TYPE_HOST);
    assert_int_equal(get(which, m, SIZE), CU_DEVICE_INVALID);
    assert_int_equal(get(type, m, SIZE), CU_MEM_LOCATION_TYPE_INVALID);
    OK_CU(cu.cuMemAdvise(m, SIZE, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, dev));
    assert_int_equal(get(which, m, PAGE), CU_DEVICE_INVALID);
}

TEST_WHERE(accessors_are_listed, NEEDS_MANAGED()) {
    int list[3] = {77, 77, 77};
    OK_CU(cu.cuMemAdvise(m, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, dev));
    OK_CU(
        cu.cuMemRangeGetAttribute(list, sizeof list, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, SIZE));
    assert_int_equal(list[0], dev);
    assert_int_equal(list[1], CU_DEVICE_INVALID);
    assert_int_equal(list[2], CU_DEVICE_INVALID);
    OK_CU(cu.cuMemAdvise_v2(m + PAGE, PAGE, CU_MEM_ADVISE_UNSET_ACCESSED_BY, at_device(dev)));
    OK_CU(
        cu.cuMemRangeGetAttribute(list, sizeof list, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, SIZE));
    assert_int_equal(list[0], CU_DEVICE_INVALID);
}

TEST_WHERE(several_range_attributes_can_be_queried_at_once, NEEDS_MANAGED()) {
    CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                     CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                                     CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
    int mostly = 77, preferred = 77, list[2] = {77, 77};
    size_t sizes[] = {sizeof mostly, sizeof preferred, sizeof list};
    void *data[] = {&mostly, &preferred, list};
    OK_CU(cu.cuMemAdvise(m, SIZE, CU_MEM_ADVISE_SET_READ_MOSTLY, dev));
    OK_CU(cu.cuMemAdvise(m, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, dev));
    OK_CU(cu.cuMemRangeGetAttributes(data, sizes, which, COUNT(which), m, SIZE));
    assert_int_equal(mostly, 1);
    assert_int_equal(preferred, CU_DEVICE_INVALID);
    assert_int_equal(list[0], dev);
    assert_int_equal(list[1], CU_DEVICE_INVALID);
    sizes[1] = 8;
    FAILS_CU(INVALID_VALUE, cu.cuMemRangeGetAttributes(data, sizes, which, COUNT(which), m, SIZE));
}

/* Small allocations have pages in common; the end of one takes the advice of its pages along. */
TEST_WHERE(freeing_managed_memory_ends_its_advice, NEEDS_MANAGED()) {
    CUdeviceptr a = MADE_CU(CUdeviceptr, cuMemAllocManaged, 600, CU_MEM_ATTACH_GLOBAL);
    CUdeviceptr b = MADE_CU(CUdeviceptr, cuMemAllocManaged, 600, CU_MEM_ATTACH_GLOBAL);
    bool together = a / PAGE == b / PAGE;
    OK_CU(cu.cuMemAdvise(a, 600, CU_MEM_ADVISE_SET_READ_MOSTLY, dev));
    if (together)
        assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, b, 600), 1);
    OK_CU(cu.cuMemFree_v2(a));
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, b, 600), 0);
    OK_CU(cu.cuMemAllocManaged(&a, 600, CU_MEM_ATTACH_GLOBAL));
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, a, 600), 0);
    DESTROY_CU(a, b);
}

TEST_WHERE(invalid_advice_is_refused, NEEDS_MANAGED()) {
    int value;
    CUdeviceptr d = MADE_CU(CUdeviceptr, cuMemAlloc_v2, SIZE);
    FAILS_CU(INVALID_VALUE,
             cu.cuMemAdvise_v2(m, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, at_device(99)));
    FAILS_CU(INVALID_VALUE, cu.cuMemAdvise(d, SIZE, CU_MEM_ADVISE_SET_READ_MOSTLY, dev));
    FAILS_CU(INVALID_VALUE, cu.cuMemAdvise(0, SIZE, CU_MEM_ADVISE_SET_READ_MOSTLY, dev));
    FAILS_CU(INVALID_VALUE,
             cu.cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, d, SIZE));
    FAILS_CU(INVALID_VALUE,
             cu.cuMemRangeGetAttribute(&value, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, SIZE));
    OK_CU(cu.cuMemFree_v2(d));
    assert_int_equal(get(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, SIZE), 0);
}
