/* Devices: their number, names, identities, attributes. */
#include "harness.h"

TEST(devices_are_numbered_from_zero) {
    int count = -1;
    OK_CU(cu.cuDeviceGetCount(&count));
    assert_true(count >= 1);
    for (int i = 0; i < count; i++) {
        CUdevice device = -1;
        OK_CU(cu.cuDeviceGet(&device, i));
        assert_int_equal(device, i);
    }
    CUdevice device = 77;
    FAILS_CU(INVALID_DEVICE, cu.cuDeviceGet(&device, count));
    FAILS_CU(INVALID_DEVICE, cu.cuDeviceGet(&device, -1));
    assert_int_equal(device, 77);
}

TEST(a_device_name_is_truncated_to_the_buffer) {
    char whole[256] = "", cut[256];
    OK_CU(cu.cuDeviceGetName(whole, sizeof whole, 0));
    size_t length = strlen(whole);
    assert_true(length > 4);
    memset(cut, '#', sizeof cut);
    OK_CU(cu.cuDeviceGetName(cut, 4, 0));
    assert_memory_equal(cut, whole, 3);
    assert_int_equal(cut[3], 0);
    assert_int_equal(cut[4], '#');
    if (soft) /* an H200's driver writes before the first byte and dies */
        FAILS_CU(INVALID_VALUE, cu.cuDeviceGetName(cut, 0, 0));
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetName(NULL, 8, 0));
    FAILS_CU(INVALID_DEVICE, cu.cuDeviceGetName(cut, 8, 99));
}

TEST_WHERE(every_device_has_its_own_uuid, NEEDS_UUID()) {
    CUuuid first, again, second;
    memset(&first, 0, sizeof first);
    memset(&again, 0xff, sizeof again);
    OK_CU(cu.cuDeviceGetUuid(&first, 0));
    OK_CU(cu.cuDeviceGetUuid_v2(&again, 0));
    assert_memory_equal(&first, &again, sizeof first);
    if (device_count < 2)
        return;
    OK_CU(cu.cuDeviceGetUuid_v2(&second, 1));
    assert_memory_not_equal(&first, &second, sizeof first);
}

TEST(a_device_is_found_by_its_pci_address) {
    char before[16] = "";
    for (int i = 0; i < device_count; i++) {
        char address[16] = "";
        CUdevice found = -1;
        OK_CU(cu.cuDeviceGetPCIBusId(address, sizeof address, i));
        assert_int_equal(strlen(address), 12);
        assert_string_not_equal(address, before);
        OK_CU(cu.cuDeviceGetByPCIBusId(&found, address));
        assert_int_equal(found, i);
        strcpy(before, address);

        unsigned domain, bus, slot;
        int value = -1;
        assert_int_equal(sscanf(address, "%x:%x:%x", &domain, &bus, &slot), 3);
        OK_CU(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
        assert_int_equal(value, bus);
        OK_CU(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, i));
        assert_int_equal(value, slot);
        OK_CU(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, i));
        assert_int_equal(value, domain);
    }
}

TEST(invalid_pci_addresses_are_refused) {
    char address[16];
    CUdevice found = 77;
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetPCIBusId(address, 5, 0));
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetByPCIBusId(&found, NULL));
    assert_int_not_equal(cu.cuDeviceGetByPCIBusId(&found, "0000:fe:1f.0"), CUDA_SUCCESS);
    assert_int_not_equal(cu.cuDeviceGetByPCIBusId(&found, "nonsense"), CUDA_SUCCESS);
    assert_int_equal(found, 77);
}

TEST(attributes_agree_with_older_calls) {
    int major = -1, minor = -1;
    CUdevprop prop = {0};
    OK_CU(cu.cuDeviceGetProperties(&prop, 0));
    assert_int_equal(prop.maxThreadsPerBlock,
                     device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    assert_int_equal(prop.maxThreadsDim[2], device_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
    assert_int_equal(prop.maxGridSize[0], device_attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
    assert_int_equal(prop.SIMDWidth, device_attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
    assert_int_equal(prop.textureAlign, device_attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
    OK_CU(cu.cuDeviceComputeCapability(&major, &minor, 0));
    assert_int_equal(major, device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
    assert_int_equal(minor, device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}

TEST(unknown_attributes_are_refused) {
    int value = 77;
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0));
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetAttribute(&value, (CUdevice_attribute)1000, 0));
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetAttribute(&value, (CUdevice_attribute)-1, 0));
    FAILS_CU(INVALID_DEVICE, cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
    assert_int_equal(value, 77);
}

TEST(both_versions_of_total_memory_agree) {
    size_t bytes = MADE_CU(size_t, cuDeviceTotalMem_v2, 0);
    assert_true(bytes >= (size_t)2 << 20);
    unsigned small = MADE_CU(unsigned, cuDeviceTotalMem, 0);
    assert_int_equal(small, bytes > UINT32_MAX ? UINT32_MAX : bytes);
}

TEST(the_maximum_texture_width_depends_on_the_format) {
    size_t width = MADE_CU(size_t, cuDeviceGetTexture1DLinearMaxWidth, CU_AD_FORMAT_FLOAT, 4, 0);
    assert_true(width > 0);
    size_t narrow = 0;
    OK_CU(cu.cuDeviceGetTexture1DLinearMaxWidth(&narrow, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0));
    assert_true(narrow > width); /* more elements where each is smaller */
    width = 77;
    FAILS_CU(INVALID_DEVICE,
             cu.cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 99));
    assert_int_equal(width, 77);
}

/* Only kernels make atomic operations on other memory than the device's own. */
TEST(atomic_capabilities_are_reported_by_operation) {
    if (!gpumem_driver_has(driver, GPUMEM_FN_cuDeviceGetHostAtomicCapabilities))
        SKIP("the driver is older than 13.0");
    CUatomicOperation operations[2] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_CAS};
    unsigned capabilities[3] = {77, 77, 77};
    OK_CU(cu.cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0));
    assert_int_not_equal(capabilities[0], 77);
    assert_int_not_equal(capabilities[1], 77);
    assert_int_equal(capabilities[2], 77);
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetHostAtomicCapabilities(capabilities, operations, 0, 0));
    operations[1] = CU_ATOMIC_OPERATION_MAX;
    FAILS_CU(INVALID_VALUE, cu.cuDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0));
    operations[1] = CU_ATOMIC_OPERATION_CAS;
    FAILS_CU(INVALID_DEVICE,
             cu.cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 2, 0, 0));
    if (device_count < 2)
        return;
    capabilities[0] = 77;
    OK_CU(cu.cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 1, 0, 1));
    assert_int_not_equal(capabilities[0], 77);
}

TEST(execution_affinity_support_is_reported) {
    int value = 77;
    OK_CU(cu.cuDeviceGetExecAffinitySupport(&value, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    assert_in_range(value, 0, 1);
}

/* A device must not claim what the same driver then refuses. */
TEST(attributes_promise_only_what_works) {
    if (!device_attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) {
        CUdeviceptr address = 0;
        assert_int_not_equal(cu.cuMemAllocManaged(&address, 4096, CU_MEM_ATTACH_GLOBAL),
                             CUDA_SUCCESS);
    }
    assert_int_equal(device_attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
    assert_int_equal(device_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 1);
}
