/*
 * Every option of the virtual resource has an effect, and its defaults are those of cuda.core's
 * VirtualMemoryResourceOptions: pinned memory of the device, file descriptors, the recommended
 * granularity, addresses of the driver's choice, no peers, reading and writing for all who have
 * access. On two devices.
 */
#include "library_test.h"

EACH_TEST(open_device, close_device);

#define PAGE (2 * MIB)

#define OPTIONS(...) GPUMEM_VIRTUAL_OPTIONS(__VA_ARGS__)

/* What a buffer of 4 MiB of a resource of these options is. */
struct seen {
    gpumem_resource_properties resource;
    gpumem_physical_properties memory;
    gpumem_access access[2]; /* of the devices */
    CUdeviceptr address;
};

static gpumem_access access_of(CUdeviceptr address, int ordinal) {
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal};
    unsigned long long flags = 99;
    OK_CU(cu->cuMemGetAccess(&flags, &location, address));
    return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? GPUMEM_ACCESS_READ_WRITE
           : flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? GPUMEM_ACCESS_READ
                                                       : GPUMEM_ACCESS_NONE;
}

static struct seen look(const gpumem_virtual_options *options) {
    struct seen seen = {.resource = {.size = sizeof seen.resource},
                        .memory = {.size = sizeof seen.memory}};
    gpumem_resource *resource;
    gpumem_physical *memory;
    OK(gpumem_virtual_resource_create(device, options, &resource));
    OK(gpumem_resource_get_properties(resource, &seen.resource));
    gpumem_buffer *buffer = NEW_BUFFER(resource, 2 * PAGE);
    seen.address = gpumem_buffer_pointer(buffer);
    OK(gpumem_physical_from_address(device, seen.address, 2 * PAGE, &memory));
    OK(gpumem_physical_get_properties(memory, &seen.memory));
    OK(gpumem_physical_destroy(memory));
    for (int i = 0; i < 2; i++)
        seen.access[i] = access_of(seen.address, i);
    DESTROY(buffer, resource);
    return seen;
}

static void check_defaults(const gpumem_virtual_options *options) {
    struct seen seen = look(options);
    assert_string_equal(seen.resource.note, "");
    assert_string_equal(seen.resource.kind, "virtual");
    MEMBERS(seen.resource, (location, GPUMEM_LOCATION_DEVICE),
            (handle_type, GPUMEM_HANDLE_POSIX_FD), (exportable, 1), (host_accessible, 0));
    size_t recommended;
    OK(gpumem_physical_granularity(device, NULL, GPUMEM_GRANULARITY_RECOMMENDED, &recommended));
    assert_int_equal(seen.resource.granularity, recommended);
    assert_true(seen.address % recommended == 0);
    MEMBERS(seen.memory, (allocation_type, GPUMEM_ALLOCATION_PINNED),
            (location, GPUMEM_LOCATION_DEVICE), (ordinal, 0), (exports_fd, 1), (exports_fabric, 0),
            (gpu_direct_rdma, 0));
    MEMBERS(seen, (access[0], GPUMEM_ACCESS_READ_WRITE), (access[1], GPUMEM_ACCESS_NONE));
}

TEST(defaults_equal_those_of_cuda_core) {
    const gpumem_virtual_options zero = {0};
    check_defaults(NULL);
    check_defaults(&zero);
    check_defaults(
        OPTIONS(.allocation_type = GPUMEM_ALLOCATION_PINNED, .location = GPUMEM_LOCATION_DEVICE,
                .handle_type = GPUMEM_HANDLE_POSIX_FD,
                .granularity = GPUMEM_GRANULARITY_RECOMMENDED, .gpu_direct_rdma = 0,
                .address_hint = 0, .address_alignment = 0, .peers = NULL, .peer_count = 0,
                .self_access = GPUMEM_ACCESS_READ_WRITE, .peer_access = GPUMEM_ACCESS_READ_WRITE));
}

TEST(location_is_obeyed) {
    struct seen seen = look(OPTIONS(.location = GPUMEM_LOCATION_HOST_NUMA));
    MEMBERS(seen.memory, (location, GPUMEM_LOCATION_HOST_NUMA), (numa_node, 0));
    assert_int_equal(seen.resource.host_accessible, 1);
    seen = look(OPTIONS(.location = GPUMEM_LOCATION_HOST));
    assert_int_equal(seen.resource.location, GPUMEM_LOCATION_HOST);
    assert_int_equal(seen.memory.ordinal, -1);
    /* Which has no handles: the next of the chain, and the reason. */
    assert_int_equal(seen.resource.handle_type, GPUMEM_HANDLE_NONE);
    assert_true(strstr(seen.resource.note, "posix_fd") != NULL);
    seen = look(OPTIONS(.location = GPUMEM_LOCATION_HOST_NUMA_CURRENT));
    assert_int_equal(seen.memory.location, GPUMEM_LOCATION_HOST_NUMA);
    assert_int_equal(seen.resource.location, GPUMEM_LOCATION_HOST_NUMA_CURRENT);
}

TEST(handle_type_is_obeyed) {
    struct seen seen = look(OPTIONS(.handle_type = GPUMEM_HANDLE_NONE));
    assert_int_equal(seen.resource.exportable, 0);
    assert_int_equal(seen.memory.exports_fd, 0);
    assert_string_equal(seen.resource.note, "");
    seen = look(OPTIONS(.handle_type = GPUMEM_HANDLE_FABRIC));
    assert_int_equal(seen.resource.handle_type, GPUMEM_HANDLE_POSIX_FD);
    assert_true(strstr(seen.resource.note, "no fabric handles") != NULL);
}

/* A hint, as in the reference: the note says where it is not followed. */
TEST(gpu_direct_rdma_is_requested_but_not_required) {
    struct seen seen = look(OPTIONS(.gpu_direct_rdma = 1));
    int can = MADE_CU(int, cuDeviceGetAttribute,
                      CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                      gpumem_device_handle(device));
    assert_int_equal(seen.memory.gpu_direct_rdma, can);
    assert_int_equal(strstr(seen.resource.note, "RDMA") != NULL, !can);
}

TEST(granularity_is_obeyed) {
    for (int kind = GPUMEM_GRANULARITY_RECOMMENDED; kind <= GPUMEM_GRANULARITY_MINIMUM; kind++) {
        size_t unit;
        OK(gpumem_physical_granularity(device, NULL, (gpumem_granularity_kind)kind, &unit));
        struct seen seen = look(OPTIONS(.granularity = (gpumem_granularity_kind)kind));
        assert_int_equal(seen.resource.granularity, unit);
    }
    gpumem_resource *none;
    FAILS_SAYING(INVALID_ARGUMENT, "granularity 2",
                 gpumem_virtual_resource_create(
                     device, OPTIONS(.granularity = (gpumem_granularity_kind)2), &none));
}

TEST(address_hint_and_alignment_are_obeyed) {
    CUdeviceptr free_place = look(NULL).address; /* which was free before, and is again */
    assert_true(look(OPTIONS(.address_hint = free_place)).address == free_place);
    struct seen seen = look(OPTIONS(.address_alignment = 64 * MIB));
    assert_true(seen.address % (64 * MIB) == 0);
    seen = look(OPTIONS(.address_alignment = 1)); /* less than the granularity: that */
    assert_true(seen.address % PAGE == 0);
}

TEST(peers_get_the_requested_access) {
    const int both[] = {0, 1}, unknown[] = {7};
    struct seen seen = look(OPTIONS(.peers = both, .peer_count = 2));
    assert_int_equal(seen.access[0], GPUMEM_ACCESS_READ_WRITE);
    assert_int_equal(seen.access[1], GPUMEM_ACCESS_READ_WRITE);
    seen = look(OPTIONS(.peers = both, .peer_count = 2, .peer_access = GPUMEM_ACCESS_READ));
    MEMBERS(seen, (access[0], GPUMEM_ACCESS_READ_WRITE), (access[1], GPUMEM_ACCESS_READ));
    seen = look(OPTIONS(.peers = both, .peer_count = 2, .self_access = GPUMEM_ACCESS_NONE,
                        .peer_access = GPUMEM_ACCESS_READ_WRITE));
    MEMBERS(seen, (access[0], GPUMEM_ACCESS_NONE), (access[1], GPUMEM_ACCESS_READ_WRITE));
    gpumem_resource *none;
    FAILS_SAYING(
        INVALID_ARGUMENT, "peer device 7",
        gpumem_virtual_resource_create(device, OPTIONS(.peers = unknown, .peer_count = 1), &none));
    FAILS_SAYING(INVALID_ARGUMENT, "peers is NULL",
                 gpumem_virtual_resource_create(device, OPTIONS(.peer_count = 1), &none));
}

TEST(self_access_is_obeyed) {
    assert_int_equal(look(OPTIONS(.self_access = GPUMEM_ACCESS_READ)).access[0],
                     GPUMEM_ACCESS_READ);
    assert_int_equal(look(OPTIONS(.self_access = GPUMEM_ACCESS_NONE)).access[0],
                     GPUMEM_ACCESS_NONE);
}

BEFORE_TESTS_DO(setenv("SOFTGPU_DEVICES", "2", 1));
