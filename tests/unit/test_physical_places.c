/* Physical memory by hand where it can be, on the device and on the host, and the reasons where it
 * cannot. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

#define MEMORY(...) GPUMEM_PHYSICAL_OPTIONS(__VA_ARGS__)

/* Maps 2 MiB of these options for the CPU and the device, and moves bytes both ways. */
static void crosses_between_cpu_and_device(const gpumem_physical_options *options) {
    gpumem_reservation *range;
    gpumem_physical *memory;
    unsigned char seen = 0;
    OK(gpumem_reservation_create(device, 2 * MIB, NULL, &range));
    OK(gpumem_physical_create(device, 2 * MIB, options, &memory));
    gpumem_mapping *mapping = MADE(gpumem_mapping *, gpumem_mapping_create, range, 0, memory);
    OK(mapping_set_access(mapping, -1, GPUMEM_ACCESS_READ_WRITE));
    OK(mapping_set_access(mapping, 0, GPUMEM_ACCESS_READ_WRITE));
    gpumem_access access = MADE(gpumem_access, gpumem_mapping_get_access, mapping, -1);
    assert_int_equal(access, GPUMEM_ACCESS_READ_WRITE);
    CUdeviceptr address = mapping_info(mapping).address;
    volatile unsigned char *bytes = (volatile unsigned char *)(uintptr_t)address;
    bytes[MIB] = 0x5a;
    OK(copy_bytes(device, (CUdeviceptr)(uintptr_t)&seen, address + MIB, 1, NULL));
    synchronize(NULL);
    assert_int_equal(seen, 0x5a);
    OK(fill_bytes(device, address, 2 * MIB, 0x33, NULL));
    synchronize(NULL);
    assert_int_equal(bytes[2 * MIB - 1], 0x33);
    DESTROY(mapping, memory, range);
}

TEST(physical_host_memory_is_reached_by_cpu_and_device) {
    crosses_between_cpu_and_device(MEMORY(.location = GPUMEM_LOCATION_HOST_NUMA));
    crosses_between_cpu_and_device(
        MEMORY(.location = GPUMEM_LOCATION_HOST, .handle_type = GPUMEM_HANDLE_NONE));
}

/* cuMemCreate takes no HOST_NUMA_CURRENT: the library asks for the node that the thread runs on. */
TEST(host_numa_current_uses_the_threads_node) {
    crosses_between_cpu_and_device(MEMORY(.location = GPUMEM_LOCATION_HOST_NUMA_CURRENT));
    gpumem_resource *resource = NEW_VIRTUAL(.location = GPUMEM_LOCATION_HOST_NUMA_CURRENT);
    gpumem_resource_properties properties = properties_of(resource);
    MEMBERS(properties, (host_accessible, 1), (handle_type, GPUMEM_HANDLE_POSIX_FD));
    OK(gpumem_resource_destroy(resource));
}

TEST(host_memory_without_a_numa_node_cannot_be_exported) {
    gpumem_physical *memory;
    FAILS_SAYING(
        NOT_SUPPORTED, "GPUMEM_HANDLE_NONE",
        gpumem_physical_create(device, 2 * MIB, MEMORY(.location = GPUMEM_LOCATION_HOST), &memory));
    SAYS("HOST_NUMA");
}

TEST(cpu_access_to_device_memory_is_refused) {
    gpumem_reservation *range;
    gpumem_physical *memory;
    OK(gpumem_reservation_create(device, 2 * MIB, NULL, &range));
    OK(gpumem_physical_create(device, 2 * MIB, NULL, &memory));
    gpumem_mapping *mapping = MADE(gpumem_mapping *, gpumem_mapping_create, range, 0, memory);
    FAILS(NOT_SUPPORTED, mapping_set_access(mapping, -1, GPUMEM_ACCESS_READ));
    SAYS("the CPU");
    DESTROY(mapping, memory, range);
}

/* CU_MEM_ALLOCATION_TYPE_MANAGED exists, and is a resource of its own here. */
TEST(managed_physical_memory_is_refused_by_name) {
    gpumem_physical *memory;
    gpumem_resource *resource;
    size_t unit;
    uint64_t creates = soft->call_count("cuMemCreate");
    FAILS_SAYING(NOT_SUPPORTED, "managed",
                 gpumem_physical_create(device, 2 * MIB,
                                        MEMORY(.allocation_type = GPUMEM_ALLOCATION_MANAGED),
                                        &memory));
    SAYS("gpumem_managed_resource_create");
    FAILS(NOT_SUPPORTED,
          gpumem_physical_granularity(device, MEMORY(.allocation_type = GPUMEM_ALLOCATION_MANAGED),
                                      GPUMEM_GRANULARITY_MINIMUM, &unit));
    FAILS_SAYING(NOT_SUPPORTED, "managed",
                 gpumem_virtual_resource_create(
                     device, GPUMEM_VIRTUAL_OPTIONS(.allocation_type = GPUMEM_ALLOCATION_MANAGED),
                     &resource));
    FAILS_SAYING(INVALID_ARGUMENT, "unknown allocation type 2",
                 gpumem_physical_create(device, 2 * MIB,
                                        MEMORY(.allocation_type = (gpumem_allocation_type)2),
                                        &memory));
    assert_int_equal(soft->call_count("cuMemCreate"), creates);
}

/* A size of nothing is its own mistake, and said so. */
TEST(a_size_of_zero_is_named_in_the_error) {
    gpumem_reservation *range;
    gpumem_physical *memory;
    FAILS(INVALID_ARGUMENT, gpumem_reservation_create(device, 0, NULL, &range));
    SAYS("bytes is 0");
    FAILS_SAYING(INVALID_ARGUMENT, "bytes is 0", gpumem_physical_create(device, 0, NULL, &memory));
    FAILS_SAYING(INVALID_ARGUMENT, "bytes is 0", physical_import_fd(device, 0, 0, &memory));
}

/* softgpu has neither, and cuMemCreate takes the flags all the same: nobody would notice. */
TEST(unsupported_allocation_flags_are_refused) {
    gpumem_physical *memory;
    char *before = soft->state_dump();
    FAILS_SAYING(NOT_SUPPORTED, "GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED is 0",
                 gpumem_physical_create(device, 2 * MIB, MEMORY(.gpu_direct_rdma = 1), &memory));
    FAILS_SAYING(NOT_SUPPORTED, "GENERIC_COMPRESSION_SUPPORTED is 0",
                 gpumem_physical_create(device, 2 * MIB, MEMORY(.compression = 1), &memory));
    SAME_STATE(before);
}

/* Exactly these options: what the device cannot is refused with its reason. */
TEST(refused_fabric_memory_names_what_is_missing) {
    gpumem_physical *memory;
    FAILS_SAYING(NOT_PERMITTED, "IMEX",
                 gpumem_physical_create(device, 2 * MIB,
                                        MEMORY(.handle_type = GPUMEM_HANDLE_FABRIC), &memory));
    const struct fabric_handle handle = {{1}};
    FAILS(NOT_SUPPORTED, physical_import_fabric(device, &handle, 2 * MIB, &memory));
    SAYS("IMEX");
}
