/* The managed resource: memory of the CPU's and the device's, with what was asked of its place. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

static gpumem_resource *managed(const gpumem_managed_options *options) {
    gpumem_resource *resource;
    OK(gpumem_managed_resource_create(device, options, &resource));
    return resource;
}

TEST(host_and_device_see_the_same_bytes) {
    gpumem_resource *resource = managed(NULL);
    unsigned char back[64];
    gpumem_resource_properties properties = properties_of(resource);
    assert_string_equal(properties.kind, "managed");
    assert_true(properties.device_accessible && properties.host_accessible);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 3 * MIB);
    unsigned char *bytes = gpumem_buffer_host_pointer(buffer);
    assert_non_null(bytes);
    assert_int_equal((uintptr_t)bytes, gpumem_buffer_pointer(buffer));
    memset(bytes, 7, 3 * MIB);
    OK(gpumem_buffer_read(buffer, 3 * MIB - 64, back, sizeof back, NULL));
    synchronize(NULL);
    assert_int_equal(back[63], 7);
    back[5] = 9;
    OK(gpumem_buffer_write(buffer, 100, back, sizeof back, NULL));
    synchronize(NULL);
    assert_int_equal(bytes[105], 9);
    DESTROY(buffer, resource);
}

static int told(gpumem_buffer *buffer, CUmem_range_attribute attribute) {
    int value = 77;
    OK_CU(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)));
    OK_CU(cu->cuMemRangeGetAttribute(&value, sizeof value, attribute, gpumem_buffer_pointer(buffer),
                                     100000));
    OK_CU(cu->cuCtxPopCurrent_v2(NULL));
    return value;
}

TEST(managed_memory_prefers_a_numa_node) {
    const gpumem_managed_method methods[] = {GPUMEM_MANAGED_ALLOCATED, GPUMEM_MANAGED_POOL};
    for (size_t i = 0; i < COUNT(methods); i++) {
        uint64_t advised = soft->call_count("cuMemAdvise_v2");
        gpumem_resource *resource = managed(
            GPUMEM_MANAGED_OPTIONS(.preferred = GPUMEM_MANAGED_ON_NUMA_NODE, .method = methods[i],
                                   .pool = i ? GPUMEM_POOL_OWN : GPUMEM_POOL_CURRENT,
                                   .numa_node = 0));
        gpumem_buffer *buffer = NEW_BUFFER(resource, 100000);
        synchronize(NULL);
        assert_int_equal(properties_of(resource).location, GPUMEM_LOCATION_HOST_NUMA);
        /* An H200 takes the advice, and reports no node of a range. */
        assert_int_equal(soft->call_count("cuMemAdvise_v2") - advised,
                         methods[i] == GPUMEM_MANAGED_ALLOCATED);
        DESTROY(buffer, resource);
    }
    gpumem_resource *none;
    FAILS_SAYING(
        INVALID_ARGUMENT, "77",
        gpumem_managed_resource_create(
            device,
            GPUMEM_MANAGED_OPTIONS(.preferred = GPUMEM_MANAGED_ON_NUMA_NODE, .numa_node = 77),
            &none));
    FAILS_SAYING(
        INVALID_ARGUMENT, "ON_NUMA_NODE",
        gpumem_managed_resource_create(device, GPUMEM_MANAGED_OPTIONS(.numa_node = 1), &none));
}

TEST(the_resource_gives_its_advice_to_the_driver) {
    gpumem_resource *resource =
        managed(GPUMEM_MANAGED_OPTIONS(.preferred = GPUMEM_MANAGED_ON_HOST, .read_mostly = 1));
    gpumem_buffer *buffer = NEW_BUFFER(resource, 100000);
    assert_int_equal(told(buffer, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
    assert_int_equal(told(buffer, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_CPU);
    DESTROY(buffer, resource);
    resource = managed(GPUMEM_MANAGED_OPTIONS(.preferred = GPUMEM_MANAGED_ON_DEVICE));
    buffer = NEW_BUFFER(resource, 100000);
    assert_int_equal(told(buffer, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
    assert_int_equal(told(buffer, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), 0);
    DESTROY(buffer, resource);
}

TEST(the_requested_alignment_is_respected) {
    gpumem_resource *resource = managed(NULL);
    for (size_t alignment = 1; alignment <= 8 * MIB; alignment *= 4) {
        gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, 1000, .alignment = alignment);
        assert_int_equal(gpumem_buffer_pointer(buffer) % alignment, 0);
        OK(gpumem_buffer_free(buffer, NULL));
    }
    OK(gpumem_resource_destroy(resource));
}

TEST(a_refused_allocation_leaks_nothing) {
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    FAILS(INVALID_ARGUMENT, gpumem_managed_resource_create(
                                device, GPUMEM_MANAGED_OPTIONS(.preferred = 9), &resource));
    FAILS(INVALID_ARGUMENT, gpumem_managed_resource_create(device, NULL, NULL));
    resource = managed(GPUMEM_MANAGED_OPTIONS(.read_mostly = 1));
    char *before = soft->state_dump();
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(resource, SIZE_MAX / 2, NULL, &buffer));
    soft->fault_arm("cuMemAdvise", 1, CUDA_ERROR_INVALID_VALUE, SOFTGPU_FAULT_BEFORE);
    assert_int_not_equal(gpumem_buffer_allocate(resource, 100, NULL, &buffer), GPUMEM_OK);
    assert_int_equal(soft->fault_disarm(), 1);
    soft->fault_arm("cuMemAllocManaged", 1, CUDA_ERROR_OUT_OF_MEMORY, SOFTGPU_FAULT_AFTER);
    (void)!gpumem_buffer_allocate(resource, 100, NULL, &buffer);
    soft->fault_disarm();
    char *after = soft->state_dump();
    assert_string_equal(before, after);
    soft->free_text(before);
    soft->free_text(after);
    OK(gpumem_resource_destroy(resource));
}
