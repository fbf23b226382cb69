/* The physical memory behind an address, and what the driver says of it. */
#include "library_test.h"

#define PAGE (2 * MIB)

#define MEMORY(...) GPUMEM_PHYSICAL_OPTIONS(__VA_ARGS__)

static gpumem_reservation *range;
static CUdeviceptr base;

/* Eight pages of addresses. */
static int begin(void **state) {
    if (open_device(state) != 0)
        return -1;
    OK(gpumem_reservation_create(device, 8 * PAGE, NULL, &range));
    base = reservation_address(range);
    return 0;
}

AFTER(close_device) {
    OK(gpumem_reservation_destroy(range));
}

EACH_TEST(begin, after);

static gpumem_physical *create(size_t pages, const gpumem_physical_options *options) {
    gpumem_physical *made;
    OK(gpumem_physical_create(device, pages * PAGE, options, &made));
    return made;
}

static gpumem_mapping *map(size_t page, gpumem_physical *memory) {
    gpumem_mapping *made;
    OK(gpumem_mapping_create(range, page * PAGE, memory, &made));
    OK(mapping_set_access(made, 0, GPUMEM_ACCESS_READ_WRITE));
    return made;
}

static gpumem_physical *find(CUdeviceptr address) {
    gpumem_physical *found;
    OK(gpumem_physical_from_address(device, address, 0, &found));
    return found;
}

static gpumem_physical_properties physical_properties_of(gpumem_physical *memory) {
    gpumem_physical_properties properties = {.size = sizeof properties};
    OK(gpumem_physical_get_properties(memory, &properties));
    return properties;
}

static void fill(CUdeviceptr address, size_t bytes, unsigned char value) {
    OK(fill_bytes(device, address, bytes, value, NULL));
    synchronize(NULL);
}

static unsigned char byte_at(CUdeviceptr address) {
    unsigned char byte = 0;
    OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)&byte, address, 1, NULL));
    synchronize(NULL);
    return byte;
}

TEST(memory_found_by_address_can_be_mapped_again) {
    gpumem_physical *made = create(2, NULL);
    gpumem_mapping *first = map(0, made);
    gpumem_physical *found = find(base + 3 * MIB + 5);
    assert_int_equal(physical_size(found), 2 * PAGE);
    gpumem_mapping *second = map(4, found);
    fill(base, 2 * PAGE, 0x42);
    assert_int_equal(byte_at(base + 6 * PAGE - 1), 0x42);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (committed_bytes, 2 * PAGE), (imported_bytes, 2 * PAGE), (chunks, 2));
    /* It lives as long as the last who holds it. */
    DESTROY(first, made);
    assert_int_equal(byte_at(base + 4 * PAGE), 0x42);
    FAILS(BUSY, gpumem_physical_destroy(found));
    DESTROY(second, found);
    stats = device_stats();
    MEMBERS(stats, (imported_bytes, 0), (chunks, 0));
}

/* Of a virtual buffer, whose handles the library never shows: the chunk, not the buffer. */
TEST(the_memory_of_a_virtual_buffer_is_found_by_address) {
    char *before = soft->state_dump();
    gpumem_resource *resource = NEW_VIRTUAL(.maximum_chunk_bytes = 2 * PAGE);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 5 * PAGE);
    gpumem_physical *found = find(gpumem_buffer_pointer(buffer) + 2 * PAGE);
    assert_int_equal(physical_size(found), 2 * PAGE);
    fill(gpumem_buffer_pointer(buffer), 5 * PAGE, 0x18);
    DESTROY(buffer, resource);
    gpumem_mapping *mapping = map(1, found);
    assert_int_equal(byte_at(base + 3 * PAGE - 1), 0x18);
    DESTROY(mapping, found);
    OK(gpumem_device_trim(device, 0)); /* the events that stood for the default stream */
    SAME_STATE(before);
}

TEST(an_address_without_a_vmm_mapping_is_refused) {
    gpumem_physical *found = NULL;
    int local = 0;
    gpumem_resource *resource = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    gpumem_buffer *buffer = NEW_BUFFER(resource, PAGE);
    const CUdeviceptr addresses[] = {base, gpumem_buffer_pointer(buffer),
                                     (CUdeviceptr)(uintptr_t)&local, 1};
    for (size_t i = 0; i < COUNT(addresses); i++) {
        FAILS(INVALID_ARGUMENT, gpumem_physical_from_address(device, addresses[i], 0, &found));
        SAYS("no memory of cuMemCreate is mapped");
    }
    FAILS(INVALID_ARGUMENT, gpumem_physical_from_address(device, 0, 0, &found));
    SAYS("address is 0");
    FAILS(INVALID_ARGUMENT, gpumem_physical_from_address(device, base, 0, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_physical_from_address(NULL, base, 0, &found));
    assert_null(found);
    DESTROY(buffer, resource);
    assert_int_equal(device_stats().chunks, 0);
}

/* cuMemGetAddressRange, the only one that knows the size, finds no mapping that nobody may use. */
TEST(the_size_can_be_given_for_inaccessible_memory) {
    gpumem_physical *made = create(1, NULL), *found;
    gpumem_mapping *mapping = MADE(gpumem_mapping *, gpumem_mapping_create, range, 0, made);
    char *before = soft->state_dump();
    FAILS(NOT_SUPPORTED, gpumem_physical_from_address(device, base, 0, &found));
    SAYS("give access");
    FAILS(INVALID_ARGUMENT, gpumem_physical_from_address(device, base, MIB, &found));
    SAYS("not a multiple of the granularity");
    SAME_STATE(before);
    OK(gpumem_physical_from_address(device, base, PAGE, &found));
    assert_int_equal(physical_size(found), PAGE);
    DESTROY(found, mapping, made);
}

TEST(properties_are_those_the_driver_reports) {
    gpumem_physical *memory = create(2, NULL);
    gpumem_physical_properties p = physical_properties_of(memory);
    MEMBERS(p, (bytes, 2 * PAGE), (granularity, PAGE), (allocation_type, GPUMEM_ALLOCATION_PINNED),
            (location, GPUMEM_LOCATION_DEVICE), (ordinal, 0), (numa_node, -1), (exports_fd, 1),
            (exports_fabric, 0));
    MEMBERS(p, (gpu_direct_rdma, 0), (compression, 0));
    OK(gpumem_physical_destroy(memory));

    memory =
        create(1, MEMORY(.location = GPUMEM_LOCATION_HOST_NUMA, .handle_type = GPUMEM_HANDLE_NONE));
    p = physical_properties_of(memory);
    MEMBERS(p, (location, GPUMEM_LOCATION_HOST_NUMA), (ordinal, -1), (numa_node, 0),
            (exports_fd, 0));
    OK(gpumem_physical_destroy(memory));

    memory = create(1, NULL);
    p.size = sizeof p - 1;
    FAILS(INVALID_ARGUMENT, gpumem_physical_get_properties(memory, &p));
    FAILS(INVALID_ARGUMENT, gpumem_physical_get_properties(memory, NULL));
    OK(gpumem_physical_destroy(memory));
    FAILS_SAYING(INVALID_ARGUMENT, "destroyed", gpumem_physical_get_properties(memory, &p));
}

/* Flags that softgpu claims to lack, in memory of other code's. */
TEST(properties_of_memory_of_other_code_are_read) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle handle;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.allocFlags.gpuDirectRDMACapable = 1;
    prop.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
    OK_CU(cu->cuMemCreate(&handle, PAGE, &prop, 0));
    OK_CU(cu->cuMemMap(base, PAGE, 0, handle, 0));
    OK_CU(cu->cuMemRelease(handle));
    gpumem_physical *found;
    OK(gpumem_physical_from_address(device, base, PAGE, &found));
    gpumem_physical_properties p = physical_properties_of(found);
    MEMBERS(p, (gpu_direct_rdma, 1), (compression, 1), (exports_fd, 0));
    int fd;
    FAILS_SAYING(NOT_SUPPORTED, "GPUMEM_HANDLE_POSIX_FD", physical_export_fd(found, &fd));
    OK(gpumem_physical_destroy(found));
    OK_CU(cu->cuMemUnmap(base, PAGE));
}

/* An address is enough to share what was made to be shared; imported memory is not handed on. */
TEST(memory_found_by_address_can_be_exported) {
    gpumem_physical *made = create(1, NULL), *received, *again;
    gpumem_mapping *first = map(0, made);
    gpumem_physical *found = find(base);
    int fd = -1, refused = -1;
    OK(physical_export_fd(found, &fd));
    OK(physical_import_fd(device, fd, PAGE, &received));
    close(fd);
    FAILS_SAYING(NOT_SUPPORTED, "imported", physical_export_fd(received, &refused));
    gpumem_mapping *second = map(2, received);
    fill(base + 2 * PAGE, PAGE, 0x31);
    assert_int_equal(byte_at(base + 1), 0x31);
    again = find(base + 2 * PAGE);
    assert_int_equal(physical_properties_of(again).exports_fd, 0);
    FAILS_SAYING(NOT_SUPPORTED, "imported", physical_export_fd(again, &refused));
    assert_int_equal(refused, -1);
    DESTROY(again, second, first, received, found, made);
}

/* What cannot be given back is counted, and is not committed by us. */
TEST(a_refused_release_is_counted_once) {
    gpumem_physical *made = create(1, NULL);
    gpumem_mapping *mapping = map(0, made);
    gpumem_physical *found = find(base);
    assert_int_equal(soft->fault_arm("cuMemRelease", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_AFTER),
                     0);
    OK(gpumem_physical_destroy(found));
    assert_int_equal(soft->fault_disarm(), 1);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (quarantined, 1), (quarantined_bytes, 0), (committed_bytes, PAGE),
            (imported_bytes, 0));
    DESTROY(mapping, made);
    assert_int_equal(device_stats().committed_bytes, 0);
}
