/* Reservations, physical memory and mappings by hand, and the misuse that never gets to the driver.
 */
#include "library_test.h"

#include <unistd.h>

EACH_TEST(open_device, close_device);

TEST(a_mapping_keeps_its_bytes) {
    gpumem_reservation *range;
    gpumem_physical *memory;
    gpumem_mapping *mapping;
    char *before = soft->state_dump();
    OK(gpumem_reservation_create(device, 8 * MIB, NULL, &range));
    OK(gpumem_physical_create(device, 4 * MIB, NULL, &memory));
    OK(gpumem_mapping_create(range, 2 * MIB, memory, &mapping));
    assert_true(mapping_info(mapping).address == reservation_address(range) + 2 * MIB);
    assert_int_equal(mapping_info(mapping).bytes, 4 * MIB);
    gpumem_access access;
    OK(gpumem_mapping_get_access(mapping, 0, &access));
    assert_int_equal(access, GPUMEM_ACCESS_NONE);
    OK(mapping_set_access(mapping, 0, GPUMEM_ACCESS_READ_WRITE));
    OK(gpumem_mapping_get_access(mapping, 0, &access));
    assert_int_equal(access, GPUMEM_ACCESS_READ_WRITE);
    OK(fill_bytes(device, mapping_info(mapping).address, 4 * MIB, 42, NULL));
    unsigned char byte = 0;
    OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)&byte,
                  mapping_info(mapping).address + 4 * MIB - 1, 1, NULL));
    synchronize(NULL);
    assert_int_equal(byte, 42);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (reserved_bytes, 8 * MIB), (committed_bytes, 4 * MIB), (mappings, 1));

    FAILS_SAYING(BUSY, "still mapped at offset 2097152", gpumem_reservation_destroy(range));
    FAILS(BUSY, gpumem_physical_destroy(memory));
    DESTROY(mapping, memory, range);
    SAME_STATE(before);
    OK(gpumem_mapping_destroy(NULL));
    OK(gpumem_physical_destroy(NULL));
    OK(gpumem_reservation_destroy(NULL));
}

/* Each of these is answered without a call of the driver that could do it. */
TEST(misuse_is_refused_without_a_driver_call) {
    gpumem_reservation *range, *none;
    gpumem_physical *memory, *no_memory;
    gpumem_mapping *mapping, *no_mapping;
    OK(gpumem_reservation_create(device, 8 * MIB, NULL, &range));
    OK(gpumem_physical_create(device, 4 * MIB, NULL, &memory));
    OK(gpumem_mapping_create(range, 0, memory, &mapping));
    uint64_t reserves = soft->call_count("cuMemAddressReserve");
    uint64_t creates = soft->call_count("cuMemCreate");
    uint64_t maps = soft->call_count("cuMemMap");
    FAILS(INVALID_ARGUMENT, gpumem_reservation_create(device, 0, NULL, &none));
    FAILS(INVALID_ARGUMENT, gpumem_reservation_create(device, 3 * MIB, NULL, &none));
    FAILS(INVALID_ARGUMENT,
          gpumem_reservation_create(device, 2 * MIB, GPUMEM_RESERVATION_OPTIONS(.alignment = 5),
                                    &none));
    FAILS(INVALID_ARGUMENT,
          gpumem_reservation_create(device, 2 * MIB, GPUMEM_RESERVATION_OPTIONS(.address_hint = 5),
                                    &none));
    FAILS(INVALID_ARGUMENT, gpumem_physical_create(device, 1, NULL, &no_memory));
    FAILS(INVALID_ARGUMENT, gpumem_mapping_create(range, MIB, memory, &no_mapping));
    SAYS("not aligned");
    FAILS(INVALID_ARGUMENT, gpumem_mapping_create(range, 6 * MIB, memory, &no_mapping));
    SAYS("do not fit");
    FAILS(INVALID_ARGUMENT, gpumem_mapping_create(range, 2 * MIB, memory, &no_mapping));
    SAYS("overlap");
    FAILS(INVALID_ARGUMENT, mapping_set_access(mapping, 77, GPUMEM_ACCESS_READ));
    assert_int_equal(soft->call_count("cuMemAddressReserve"), reserves);
    assert_int_equal(soft->call_count("cuMemCreate"), creates);
    assert_int_equal(soft->call_count("cuMemMap"), maps);
    DESTROY(mapping, memory, range);
}

TEST(mixing_objects_of_two_libraries_is_refused) {
    gpumem_library *second;
    gpumem_device *other;
    gpumem_reservation *range;
    gpumem_physical *memory;
    gpumem_mapping *mapping;
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &second));
    OK(gpumem_device_open(second, 0, &other));
    OK(gpumem_reservation_create(device, 2 * MIB, NULL, &range));
    OK(gpumem_physical_create(other, 2 * MIB, NULL, &memory));
    FAILS_SAYING(INVALID_ARGUMENT, "different", gpumem_mapping_create(range, 0, memory, &mapping));
    DESTROY(memory, range);
    OK(gpumem_device_close(other));
    OK(gpumem_close(second));
}

TEST(physical_memory_is_shared_by_descriptor) {
    gpumem_physical *memory, *same;
    gpumem_reservation *range;
    gpumem_mapping *first, *second;
    int fd = -1;
    OK(gpumem_physical_create(device, 2 * MIB, NULL, &memory));
    OK(physical_export_fd(memory, &fd));
    assert_true(fd >= 0);
    OK(physical_import_fd(device, fd, 2 * MIB, &same));
    close(fd);
    OK(gpumem_reservation_create(device, 4 * MIB, NULL, &range));
    OK(gpumem_mapping_create(range, 0, memory, &first));
    OK(gpumem_mapping_create(range, 2 * MIB, same, &second));
    OK(mapping_set_access(first, 0, GPUMEM_ACCESS_READ_WRITE));
    OK(mapping_set_access(second, 0, GPUMEM_ACCESS_READ));
    OK(fill_bytes(device, mapping_info(first).address, 2 * MIB, 17, NULL));
    unsigned char byte = 0;
    OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)&byte, mapping_info(second).address + MIB, 1,
                  NULL));
    synchronize(NULL);
    assert_int_equal(byte, 17);
    assert_int_equal(device_stats().imported_bytes, 2 * MIB);
    DESTROY(second, first, range, same, memory);

    OK(gpumem_physical_create(device, 2 * MIB,
                              GPUMEM_PHYSICAL_OPTIONS(.handle_type = GPUMEM_HANDLE_NONE), &memory));
    FAILS(NOT_SUPPORTED, physical_export_fd(memory, &fd));
    OK(gpumem_physical_destroy(memory));
    uint64_t imports = soft->call_count("cuMemImportFromShareableHandle");
    FAILS(INVALID_ARGUMENT, physical_import_fd(device, -1, 2 * MIB, &same));
    SAYS("descriptor is -1");
    assert_int_equal(soft->call_count("cuMemImportFromShareableHandle"), imports);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_not_equal(physical_import_fd(device, pipes[0], 2 * MIB, &same), GPUMEM_OK);
    assert_int_equal(close(pipes[0]), 0); /* still the caller's */
    close(pipes[1]);
    assert_int_equal(device_stats().chunks, 0);
}

/* As for the driver: an alignment says where addresses begin, not how sizes and offsets go on. */
TEST(alignment_applies_only_to_the_address) {
    static const size_t alignments[] = {0, 1, 2 * MIB, 64 * MIB};
    gpumem_physical *memory;
    OK(gpumem_physical_create(device, 2 * MIB, NULL, &memory));
    for (size_t i = 0; i < COUNT(alignments); i++) {
        gpumem_reservation *range;
        gpumem_mapping *mapping;
        OK(gpumem_reservation_create(
            device, 6 * MIB, GPUMEM_RESERVATION_OPTIONS(.alignment = alignments[i]), &range));
        size_t unit = alignments[i] > 2 * MIB ? alignments[i] : 2 * MIB;
        assert_true(reservation_address(range) % unit == 0);
        OK(gpumem_mapping_create(range, 4 * MIB, memory, &mapping));
        DESTROY(mapping, range);
    }
    OK(gpumem_physical_destroy(memory));
}

TEST(granularities_are_reported) {
    size_t bytes = 0;
    OK(gpumem_physical_granularity(device, NULL, GPUMEM_GRANULARITY_MINIMUM, &bytes));
    assert_int_equal(bytes, 2 * MIB);
    FAILS(INVALID_ARGUMENT, gpumem_physical_granularity(
                                device, GPUMEM_PHYSICAL_OPTIONS(.location = (gpumem_location)9),
                                GPUMEM_GRANULARITY_MINIMUM, &bytes));
}
