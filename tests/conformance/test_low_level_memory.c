/* gpumem/vmm.h as a user sees it, on any driver: ranges, memory by address, memory of the host,
 * fabric handles, and the virtual resource's options. */
#include "harness.h"

#include <gpumem/gpumem.h>

#define MEMORY(...) GPUMEM_OPTIONS(gpumem_physical_options, __VA_ARGS__)

static gpumem_library *library;
static gpumem_device *device;
static size_t page; /* the device's granularity */
static gpumem_reservation *range;
static CUdeviceptr base;

#include "objects.h"

/* The library on the driver at hand, and eight pages of addresses. */
static int begin(void **state) {
    if (test_begin(state) != 0)
        return -1;
    OK(gpumem_open(GPUMEM_OPTIONS(gpumem_open_options, .driver = driver_info(driver).path),
                   &library));
    OK(gpumem_device_open(library, 0, &device));
    range = NULL;
    if (gpumem_physical_granularity(device, NULL, GPUMEM_GRANULARITY_MINIMUM, &page) != GPUMEM_OK)
        return 0;
    OK(gpumem_reservation_create(device, 8 * page, NULL, &range));
    base = reservation_address(range);
    return 0;
}

AFTER(test_end) {
    OK(gpumem_reservation_destroy(range));
    OK(gpumem_device_close(device));
    OK(gpumem_close(library));
}

EACH_TEST(begin, after);

#define NEEDS_VIRTUAL()                                                                            \
    do {                                                                                           \
        if (!range)                                                                                \
            SKIP("the device has no virtual memory");                                              \
    } while (0)

/* Without options memory can be exported, as far as the device has that. */
static gpumem_physical *create(size_t pages, const gpumem_physical_options *options) {
    gpumem_physical *made;
    const gpumem_physical_options *plain =
        GPUMEM_PHYSICAL_OPTIONS(.handle_type = GPUMEM_HANDLE_NONE);
    if (!options &&
        !device_attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        options = plain;
    OK(gpumem_physical_create(device, pages * page, options, &made));
    return made;
}

static gpumem_mapping *map(size_t at, gpumem_physical *memory) {
    return MADE(gpumem_mapping *, gpumem_mapping_create, range, at * page, memory);
}

static void fill(CUdeviceptr address, size_t bytes, unsigned char value) {
    OK(fill_bytes(device, address, bytes, value, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
}

static unsigned char read_byte(CUdeviceptr address) {
    unsigned char byte = 0;
    OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)&byte, address, 1, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    return byte;
}

static gpumem_access access_of(gpumem_mapping *mapping, int ordinal) {
    return MADE(gpumem_access, gpumem_mapping_get_access, mapping, ordinal);
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

TEST_WHERE(range_calls_apply_to_whole_mappings_only, NEEDS_VIRTUAL()) {
    gpumem_physical *one = create(1, NULL), *two = create(2, NULL), *last = create(1, NULL);
    gpumem_mapping *first = map(0, one), *second = map(1, two), *third = map(5, last);
    OK(gpumem_reservation_set_access(range, 0, 3 * page, 0, GPUMEM_ACCESS_READ_WRITE));
    assert_int_equal(access_of(first, 0), GPUMEM_ACCESS_READ_WRITE);
    assert_int_equal(access_of(second, 0), GPUMEM_ACCESS_READ_WRITE);
    assert_int_equal(access_of(third, 0), GPUMEM_ACCESS_NONE);
    fill(base, 3 * page, 0x61);
    FAILS(INVALID_ARGUMENT, gpumem_reservation_unmap(range, 0, 2 * page));
    SAYS("cut the mapping");
    FAILS(INVALID_ARGUMENT,
          gpumem_reservation_set_access(range, 0, 8 * page, 0, GPUMEM_ACCESS_READ));
    SAYS("nothing is mapped");
    assert_int_equal(read_byte(base + 3 * page - 1), 0x61);

    OK(gpumem_reservation_unmap(range, 0, 8 * page)); /* with a hole before the third */
    assert_int_equal(mapping_info(first).state, GPUMEM_MAPPING_UNMAPPED);
    assert_int_equal(mapping_info(third).state, GPUMEM_MAPPING_UNMAPPED);
    OK(gpumem_reservation_unmap(range, 0, 8 * page));
    gpumem_mapping *moved = map(4, two), *over = map(0, last);
    assert_int_equal(access_of(moved, 0), GPUMEM_ACCESS_NONE);
    OK(mapping_set_access(moved, 0, GPUMEM_ACCESS_READ_WRITE));
    assert_int_equal(read_byte(base + 6 * page - 1), 0x61);
    OK(gpumem_mapping_destroy(first)); /* and not what is there now */
    DESTROY(second, third);
    OK(mapping_set_access(over, 0, GPUMEM_ACCESS_READ_WRITE));
    fill(base, page, 0x62);
    assert_int_equal(read_byte(base + page - 1), 0x62);
    DESTROY(over, moved, one, two, last);
}

/* After the driver refused the CPU access to device memory, each has what it had. */
TEST_WHERE(a_refused_access_change_keeps_the_access_rights, NEEDS_VIRTUAL()) {
    gpumem_physical *one = create(1, NULL), *two = create(1, NULL);
    gpumem_mapping *first = map(0, one), *second = map(1, two);
    OK(mapping_set_access(second, 0, GPUMEM_ACCESS_READ_WRITE));
    gpumem_status status =
        gpumem_reservation_set_access(range, 0, 2 * page, -1, GPUMEM_ACCESS_READ_WRITE);
    if (status != GPUMEM_OK) { /* a device whose memory the CPU reaches may give it */
        check_status(status, GPUMEM_ERROR_NOT_SUPPORTED, "access for the CPU", __FILE__, __LINE__);
        SAYS("the CPU can access only host memory");
        assert_int_equal(access_of(first, -1), GPUMEM_ACCESS_NONE);
    }
    assert_int_equal(access_of(first, 0), GPUMEM_ACCESS_NONE);
    assert_int_equal(access_of(second, 0), GPUMEM_ACCESS_READ_WRITE);
    DESTROY(first, second, one, two);
}

TEST_WHERE(peers_have_separate_access_rights, NEEDS_VIRTUAL()) {
    NEEDS_DEVICES(2);
    int can = MADE(bool, gpumem_device_can_access_peer, device, 1);
    if (!can)
        SKIP("devices 0 and 1 do not reach each other");
    gpumem_physical *one = create(1, NULL), *two = create(1, NULL);
    gpumem_mapping *first = map(0, one), *second = map(1, two);
    OK(gpumem_reservation_set_access(range, 0, 2 * page, 0, GPUMEM_ACCESS_READ_WRITE));
    OK(gpumem_reservation_set_access(range, 0, 2 * page, 1, GPUMEM_ACCESS_READ));
    assert_int_equal(access_of(second, 0), GPUMEM_ACCESS_READ_WRITE);
    assert_int_equal(access_of(second, 1), GPUMEM_ACCESS_READ);
    OK(gpumem_reservation_set_access(range, 0, 2 * page, 1, GPUMEM_ACCESS_NONE));
    assert_int_equal(access_of(first, 0), GPUMEM_ACCESS_READ_WRITE);
    assert_int_equal(access_of(first, 1), GPUMEM_ACCESS_NONE);
    DESTROY(first, second, one, two);
}

/* ---- Memory by address ----------------------------------------------------------------------- */

TEST_WHERE(the_physical_memory_of_an_address_is_found, NEEDS_VIRTUAL()) {
    gpumem_physical *found;
    gpumem_resource *resource = NEW_VIRTUAL(.maximum_chunk_bytes = 2 * page);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4 * page);
    CUdeviceptr start = gpumem_buffer_pointer(buffer);
    fill(start, 4 * page, 0x71);
    OK(gpumem_physical_from_address(device, start + 3 * page + 7, 0, &found));
    assert_int_equal(physical_size(found), 2 * page);
    gpumem_physical_properties properties = {.size = sizeof properties};
    OK(gpumem_physical_get_properties(found, &properties));
    MEMBERS(properties, (location, GPUMEM_LOCATION_DEVICE), (ordinal, 0),
            (allocation_type, GPUMEM_ALLOCATION_PINNED));
    DESTROY(buffer, resource);
    gpumem_mapping *mapping = map(2, found);
    OK(mapping_set_access(mapping, 0, GPUMEM_ACCESS_READ_WRITE));
    assert_int_equal(read_byte(base + 4 * page - 1), 0x71);
    DESTROY(mapping, found);
    FAILS(INVALID_ARGUMENT, gpumem_physical_from_address(device, base, 0, &found));
    SAYS("no memory of cuMemCreate is mapped");
}

/* Whether a mapping that nobody may use tells its size is the driver's to say; a size can be named.
 */
TEST_WHERE(the_physical_memory_of_a_mapping_without_access_is_found, NEEDS_VIRTUAL()) {
    gpumem_physical *made = create(2, NULL), *found;
    gpumem_mapping *mapping = map(1, made);
    gpumem_status status = gpumem_physical_from_address(device, base + page, 0, &found);
    if (status == GPUMEM_OK) {
        assert_int_equal(physical_size(found), 2 * page);
        OK(gpumem_physical_destroy(found));
    } else {
        check_status(status, GPUMEM_ERROR_NOT_SUPPORTED, "from address", __FILE__, __LINE__);
        SAYS("give access");
    }
    OK(gpumem_physical_from_address(device, base + page, 2 * page, &found));
    DESTROY(found, mapping, made);
}

/* ---- Memory of the host ---------------------------------------------------------------------- */

static void check_both_sides(gpumem_physical *memory) {
    gpumem_mapping *mapping = map(3, memory);
    OK(mapping_set_access(mapping, -1, GPUMEM_ACCESS_READ_WRITE));
    OK(mapping_set_access(mapping, 0, GPUMEM_ACCESS_READ_WRITE));
    CUdeviceptr address = mapping_info(mapping).address;
    volatile unsigned char *bytes = (volatile unsigned char *)(uintptr_t)address;
    bytes[page - 1] = 0x5a;
    assert_int_equal(read_byte(address + page - 1), 0x5a);
    fill(address, page, 0x33);
    assert_int_equal(bytes[page / 2], 0x33);
    gpumem_physical_properties properties = {.size = sizeof properties};
    OK(gpumem_physical_get_properties(memory, &properties));
    assert_int_not_equal(properties.location, GPUMEM_LOCATION_DEVICE);
    assert_int_equal(properties.ordinal, -1);
    gpumem_physical *found;
    OK(gpumem_physical_from_address(device, address, page, &found));
    DESTROY(found, mapping, memory);
}

TEST_WHERE(host_and_device_use_host_physical_memory, NEEDS_VIRTUAL()) {
    static const gpumem_location places[] = {GPUMEM_LOCATION_HOST, GPUMEM_LOCATION_HOST_NUMA,
                                             GPUMEM_LOCATION_HOST_NUMA_CURRENT};
    gpumem_capability_report report = {.size = sizeof report};
    OK(gpumem_device_get_capability(device, GPUMEM_CAPABILITY_HOST_NUMA_VIRTUAL_MEMORY, &report));
    if (!report.supported)
        SKIP("no memory of the host is mapped by hand here: %s", report.reason);
    for (size_t i = 0; i < COUNT(places); i++)
        check_both_sides(
            create(1, MEMORY(.location = places[i], .handle_type = GPUMEM_HANDLE_NONE)));
}

/* With a descriptor: a driver may have it, or refuse it and then says what to do. */
TEST_WHERE(refusing_shareable_host_memory_names_the_alternative, NEEDS_VIRTUAL()) {
    gpumem_physical *memory;
    gpumem_status status =
        gpumem_physical_create(device, page, MEMORY(.location = GPUMEM_LOCATION_HOST), &memory);
    if (status == GPUMEM_OK) {
        OK(gpumem_physical_destroy(memory));
        return;
    }
    check_status(status, GPUMEM_ERROR_NOT_SUPPORTED, "HOST with a descriptor", __FILE__, __LINE__);
    SAYS("GPUMEM_LOCATION_HOST_NUMA");
}

/* ---- Handles --------------------------------------------------------------------------------- */

TEST_WHERE(exporting_imported_memory_works_or_is_refused_with_a_reason, NEEDS_DESCRIPTORS()) {
    NEEDS_VIRTUAL();
    gpumem_physical *made = create(1, NULL), *received;
    int fd = -1, again = -1;
    OK(physical_export_fd(made, &fd));
    OK(physical_import_fd(device, fd, page, &received));
    close(fd);
    gpumem_status status = physical_export_fd(received, &again);
    if (status == GPUMEM_OK) {
        close(again);
    } else {
        check_status(status, GPUMEM_ERROR_NOT_SUPPORTED, "export of imported memory", __FILE__,
                     __LINE__);
        SAYS("imported");
    }
    DESTROY(received, made);
}

TEST_WHERE(fabric_handles_work_or_are_refused_with_a_reason, NEEDS_VIRTUAL()) {
    gpumem_physical *memory, *received;
    struct fabric_handle handle = {{0}};
    gpumem_status status =
        gpumem_physical_create(device, page, MEMORY(.handle_type = GPUMEM_HANDLE_FABRIC), &memory);
    if (status == GPUMEM_OK) {
        OK(physical_export_fabric(memory, &handle));
        OK(physical_import_fabric(device, &handle, page, &received));
        DESTROY(received, memory);
        return;
    }
    assert_true(status == GPUMEM_ERROR_NOT_PERMITTED || status == GPUMEM_ERROR_NOT_SUPPORTED);
    SAYS("IMEX");
    status = physical_import_fabric(device, &handle, page, &received);
    assert_true(status == GPUMEM_ERROR_NOT_PERMITTED || status == GPUMEM_ERROR_NOT_SUPPORTED);
    SAYS("IMEX");
    memory = create(1, NULL);
    FAILS(NOT_SUPPORTED, physical_export_fabric(memory, &handle));
    SAYS("GPUMEM_HANDLE_FABRIC");
    OK(gpumem_physical_destroy(memory));
}
