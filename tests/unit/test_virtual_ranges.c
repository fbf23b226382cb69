/* Several mappings of a reservation at once: unmapped and given access to, all of them or none. */
#include "library_test.h"

#define PAGE (2 * MIB)

static gpumem_reservation *range;
static CUdeviceptr base;

static gpumem_reservation *reserve(size_t pages) {
    gpumem_reservation *made;
    OK(gpumem_reservation_create(device, pages * PAGE, NULL, &made));
    return made;
}

static gpumem_physical *create(size_t pages) {
    gpumem_physical *made;
    OK(gpumem_physical_create(device, pages * PAGE, NULL, &made));
    return made;
}

static gpumem_mapping *map(size_t page, gpumem_physical *memory) {
    gpumem_mapping *made;
    OK(gpumem_mapping_create(range, page * PAGE, memory, &made));
    return made;
}

static gpumem_access access_of(gpumem_mapping *mapping) {
    return MADE(gpumem_access, gpumem_mapping_get_access, mapping, 0);
}

static void fill(CUdeviceptr address, size_t bytes, int value) {
    OK(fill_bytes(device, address, bytes, (unsigned char)value, NULL));
    synchronize(NULL);
}

static unsigned char byte_at(CUdeviceptr address) {
    unsigned char byte = 0;
    OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)&byte, address, 1, NULL));
    synchronize(NULL);
    return byte;
}

#define UNMAPPED(mapping) assert_int_equal(mapping_info(mapping).state, GPUMEM_MAPPING_UNMAPPED)
#define MAPPED(mapping)   assert_int_equal(mapping_info(mapping).state, GPUMEM_MAPPING_MAPPED)

/* Pages 0, 1 to 2, and 4 of eight; 3 is a hole. */
static gpumem_physical *memory[3];
static gpumem_mapping *mapping[3];

static int map_three(void **state) {
    static const size_t at[3] = {0, 1, 4}, pages[3] = {1, 2, 1};
    if (open_device(state) != 0)
        return -1;
    range = reserve(8);
    base = reservation_address(range);
    for (size_t i = 0; i < 3; i++) {
        memory[i] = create(pages[i]);
        mapping[i] = map(at[i], memory[i]);
    }
    return 0;
}

AFTER(close_device) {
    DESTROY_EACH(mapping, 3);
    DESTROY_EACH(memory, 3);
    OK(gpumem_reservation_destroy(range));
}

EACH_TEST(map_three, after);

TEST(one_driver_call_unmaps_several_mappings) {
    uint64_t calls = soft->call_count("cuMemUnmap");
    OK(gpumem_reservation_set_access(range, 0, 3 * PAGE, 0, GPUMEM_ACCESS_READ_WRITE));
    fill(base, 3 * PAGE, 0x11);
    OK(gpumem_reservation_unmap(range, 0, 8 * PAGE));
    assert_int_equal(soft->call_count("cuMemUnmap"), calls + 1);
    FAILS(DRIVER, fill_bytes(device, base, 1, 0, NULL)); /* no memory is there */
    for (size_t i = 0; i < 3; i++)
        UNMAPPED(mapping[i]);
    assert_int_equal(device_stats().mappings, 0);
    assert_true(mapping_info(mapping[1]).address == base + PAGE);
    assert_int_equal(mapping_info(mapping[1]).bytes, 2 * PAGE);
    gpumem_access access;
    FAILS(INVALID_ARGUMENT, mapping_set_access(mapping[0], 0, GPUMEM_ACCESS_READ));
    SAYS("nothing is mapped");
    FAILS(INVALID_ARGUMENT, gpumem_mapping_get_access(mapping[0], 0, &access));
    SAYS("was unmapped");
    /* Nothing is left to do, and nothing is asked of the driver. */
    OK(gpumem_reservation_unmap(range, 0, 8 * PAGE));
    assert_int_equal(soft->call_count("cuMemUnmap"), calls + 1);
}

TEST(unmapping_a_range_keeps_mappings_outside_it) {
    OK(gpumem_reservation_unmap(range, PAGE, 3 * PAGE)); /* with the hole */
    MAPPED(mapping[0]);
    UNMAPPED(mapping[1]);
    MAPPED(mapping[2]);
    assert_int_equal(device_stats().mappings, 2);
    FAILS_SAYING(BUSY, "offset 0", gpumem_reservation_destroy(range));
    OK(gpumem_reservation_unmap(range, 0, PAGE));
    FAILS_SAYING(BUSY, "offset 8388608", gpumem_reservation_destroy(range));
}

/* What was unmapped keeps its bytes, and can be mapped elsewhere, or there by another. */
TEST(unmapped_memory_can_be_mapped_elsewhere) {
    OK(mapping_set_access(mapping[1], 0, GPUMEM_ACCESS_READ_WRITE));
    fill(base + PAGE, 2 * PAGE, 0x61);
    OK(gpumem_reservation_unmap(range, 0, 5 * PAGE));
    gpumem_mapping *moved = map(6, memory[1]), *other = map(1, memory[0]);
    OK(mapping_set_access(moved, 0, GPUMEM_ACCESS_READ));
    assert_int_equal(byte_at(base + 8 * PAGE - 1), 0x61);
    /* The end of the object that was there is not the end of what is there now. */
    uint64_t calls = soft->call_count("cuMemUnmap");
    OK(gpumem_mapping_destroy(mapping[1]));
    mapping[1] = NULL;
    assert_int_equal(soft->call_count("cuMemUnmap"), calls);
    MAPPED(other);
    assert_int_equal(access_of(other), GPUMEM_ACCESS_NONE);
    DESTROY(other, moved);
}

TEST(unmapped_mapping_objects_outlive_their_reservation) {
    OK(gpumem_reservation_unmap(range, 0, 8 * PAGE));
    DESTROY_EACH(memory, 3);
    OK(gpumem_reservation_destroy(range));
    FAILS_SAYING(INVALID_ARGUMENT, "destroyed", gpumem_reservation_unmap(range, 0, PAGE));
    FAILS(BUSY, gpumem_device_close(device)); /* three objects are still there */
    for (size_t i = 0; i < 3; i++) {
        UNMAPPED(mapping[i]);
        memory[i] = NULL;
    }
    assert_true(mapping_info(mapping[0]).address == base);
    MEMBERS(device_stats(), (reserved_bytes, 0), (committed_bytes, 0));
    range = NULL;
}

/* Each is answered without a call of the driver, and changes nothing. */
TEST(a_range_that_cuts_a_mapping_is_refused) {
    static const struct {
        size_t offset, bytes;
        const char *says;
    } cases[] = {
        {0, 0, "bytes is 0"},
        {0, 9 * PAGE, "do not fit"},
        {8 * PAGE, PAGE, "do not fit"},
        {9 * PAGE, PAGE, "do not fit"},
        {PAGE, SIZE_MAX, "do not fit"},
        {SIZE_MAX, PAGE, "do not fit"},
        {0, 2 * PAGE, "cut the mapping of 4194304 bytes at offset 2097152"},
        {2 * PAGE, 3 * PAGE, "cut the mapping of 4194304 bytes at offset 2097152"},
        {PAGE + 1, PAGE, "cut the mapping of 4194304 bytes at offset 2097152"},
        {0, PAGE - 1, "cut the mapping of 2097152 bytes at offset 0"},
    };
    char *before = soft->state_dump();
    uint64_t unmaps = soft->call_count("cuMemUnmap"), sets = soft->call_count("cuMemSetAccess");
    for (size_t i = 0; i < COUNT(cases); i++) {
        FAILS(INVALID_ARGUMENT, gpumem_reservation_unmap(range, cases[i].offset, cases[i].bytes));
        SAYS(cases[i].says);
        SAYS("gpumem_reservation_unmap");
        FAILS_SAYING(INVALID_ARGUMENT, cases[i].says,
                     gpumem_reservation_set_access(range, cases[i].offset, cases[i].bytes, 0,
                                                   GPUMEM_ACCESS_READ));
        SAYS("gpumem_reservation_set_access");
    }
    FAILS_SAYING(INVALID_ARGUMENT, "nothing is mapped at offset 6291456",
                 gpumem_reservation_set_access(range, 0, 5 * PAGE, 0, GPUMEM_ACCESS_READ));
    FAILS_SAYING(INVALID_ARGUMENT, "nothing is mapped at offset 10485760",
                 gpumem_reservation_set_access(range, 5 * PAGE, PAGE, 0, GPUMEM_ACCESS_READ));
    FAILS_SAYING(INVALID_ARGUMENT, "nothing is mapped at offset 10485760",
                 gpumem_reservation_set_access(range, 4 * PAGE, 2 * PAGE, 0, GPUMEM_ACCESS_READ));
    FAILS(INVALID_ARGUMENT, gpumem_reservation_set_access(range, 0, PAGE, 77, GPUMEM_ACCESS_READ));
    SAYS("no device 77");
    FAILS(INVALID_ARGUMENT, gpumem_reservation_set_access(range, 0, PAGE, 0, (gpumem_access)9));
    SAYS("unknown access 9");
    FAILS(INVALID_ARGUMENT, gpumem_reservation_unmap(NULL, 0, PAGE));
    assert_int_equal(soft->call_count("cuMemUnmap"), unmaps);
    assert_int_equal(soft->call_count("cuMemSetAccess"), sets);
    SAME_STATE(before);
}

TEST(one_driver_call_sets_access_of_several_mappings) {
    uint64_t calls = soft->call_count("cuMemSetAccess");
    OK(gpumem_reservation_set_access(range, 0, 3 * PAGE, 0, GPUMEM_ACCESS_READ_WRITE));
    assert_int_equal(soft->call_count("cuMemSetAccess"), calls + 1);
    assert_int_equal(access_of(mapping[0]), GPUMEM_ACCESS_READ_WRITE);
    assert_int_equal(access_of(mapping[1]), GPUMEM_ACCESS_READ_WRITE);
    assert_int_equal(access_of(mapping[2]), GPUMEM_ACCESS_NONE);
    fill(base, 3 * PAGE, 0x29); /* across both */
    assert_int_equal(byte_at(base + 3 * PAGE - 1), 0x29);
    OK(gpumem_reservation_set_access(range, PAGE, 2 * PAGE, 0, GPUMEM_ACCESS_READ));
    assert_int_equal(access_of(mapping[0]), GPUMEM_ACCESS_READ_WRITE);
    assert_int_equal(access_of(mapping[1]), GPUMEM_ACCESS_READ);
    OK(gpumem_reservation_set_access(range, 0, 3 * PAGE, 0, GPUMEM_ACCESS_NONE));
    assert_int_equal(access_of(mapping[0]), GPUMEM_ACCESS_NONE);
    assert_int_equal(access_of(mapping[1]), GPUMEM_ACCESS_NONE);
}

/* A driver that reports an earlier failure may have done the work: each gets back what it had. */
TEST(a_refused_access_change_is_undone_for_each_mapping) {
    static const softgpu_fault_mode modes[] = {SOFTGPU_FAULT_BEFORE, SOFTGPU_FAULT_AFTER};
    OK(mapping_set_access(mapping[1], 0, GPUMEM_ACCESS_READ));
    for (size_t i = 0; i < COUNT(modes); i++) {
        assert_int_equal(soft->fault_arm("cuMemSetAccess", 1, CUDA_ERROR_UNKNOWN, modes[i]), 0);
        FAILS(DRIVER,
              gpumem_reservation_set_access(range, 0, 3 * PAGE, 0, GPUMEM_ACCESS_READ_WRITE));
        assert_int_equal(soft->fault_disarm(), 1);
        assert_int_equal(access_of(mapping[0]), GPUMEM_ACCESS_NONE);
        assert_int_equal(access_of(mapping[1]), GPUMEM_ACCESS_READ);
    }
    /* One whose rights cannot be asked for is not touched: they could not be put back. */
    uint64_t calls = soft->call_count("cuMemSetAccess");
    assert_int_equal(soft->fault_arm("cuMemGetAccess", 2, CUDA_ERROR_UNKNOWN, modes[0]), 0);
    FAILS(DRIVER, gpumem_reservation_set_access(range, 0, 3 * PAGE, 0, GPUMEM_ACCESS_READ_WRITE));
    assert_int_equal(soft->fault_disarm(), 1);
    assert_int_equal(soft->call_count("cuMemSetAccess"), calls);
}

TEST(a_refused_unmap_leaves_every_mapping) {
    OK(gpumem_reservation_set_access(range, 0, 3 * PAGE, 0, GPUMEM_ACCESS_READ_WRITE));
    fill(base, 3 * PAGE, 0x77);
    assert_int_equal(soft->fault_arm("cuMemUnmap", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_FROM), 0);
    FAILS(DRIVER, gpumem_reservation_unmap(range, 0, 8 * PAGE));
    assert_true(soft->fault_disarm() > 0);
    for (size_t i = 0; i < 3; i++)
        MAPPED(mapping[i]);
    assert_int_equal(byte_at(base + 2 * PAGE), 0x77);
    /* Done, and then answered with an earlier failure: done. */
    assert_int_equal(soft->fault_arm("cuMemUnmap", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_AFTER), 0);
    OK(gpumem_reservation_unmap(range, 0, 8 * PAGE));
    assert_int_equal(soft->fault_disarm(), 1);
    UNMAPPED(mapping[2]);
}
