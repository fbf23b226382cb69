/* Devices: enumeration, identity, attributes, what needs no context. */
#include "../parity.h"

SCENARIO(enumerate, "device/enumerate", par_init) {
    int count;
    CUdevice dev;
    CALLO(cuDeviceGetCount, "ok", (&count), OUT_I(count));
    CALL(cuDeviceGetCount, "null-out", (NULL));
    CALLO(cuDeviceGet, "ok", (&dev, 0), OUT_I(dev));
    CALL(cuDeviceGet, "null-out", (NULL, 0));
    CALLO(cuDeviceGet, "negative", (&dev, -1), OUT_I(dev));
    CALLO(cuDeviceGet, "past-end", (&dev, 64), OUT_I(dev));
    CALLO(cuDeviceGet, "past-end", (&dev, 2147483647), OUT_I(dev));
}

SCENARIO(names, "device/names", par_init) {
    static const int lengths[] = {1, 2, 5, 11, 12, 32};
    char name[32];
    for (size_t i = 0; i < COUNT(lengths); i++) {
        par_note("len=%d", lengths[i]);
        CALLO(cuDeviceGetName, "length", (name, lengths[i], 0), OUT_S(name));
    }
    CALL(cuDeviceGetName, "null-out", (NULL, 32, 0));
    CALLO(cuDeviceGetName, "bad-device", (name, 32, -1), OUT_S(name));
    CALLO(cuDeviceGetName, "bad-device", (name, 32, 99), OUT_S(name));
}

/* H200's driver 580 writes far behind the buffer, and dies. */
SCENARIO(name_of_no_length, "device/name-of-no-length", par_init) {
    char name[32];
    CALLO(cuDeviceGetName, "zero-length", (name, 0, 0), OUT_S(name));
}

SCENARIO(identity, "device/identity", par_init) {
    CUuuid uuid, uuid2;
    char luid[8];
    unsigned mask;
    CALLO(cuDeviceGetUuid, "ok", (&uuid, 0), OUT_C(uuid));
    CALLO(cuDeviceGetUuid_v2, "ok", (&uuid2, 0), OUT_C(uuid2));
    par_see("uuid-v1-v2", memcmp(&uuid, &uuid2, sizeof(uuid)) == 0 ? "equal" : "different");
    CALL(cuDeviceGetUuid, "null-out", (NULL, 0));
    CALL(cuDeviceGetUuid_v2, "null-out", (NULL, 0));
    CALLO(cuDeviceGetUuid, "bad-device", (&uuid, 99), OUT_C(uuid));
    CALLO(cuDeviceGetUuid_v2, "bad-device", (&uuid, -1), OUT_C(uuid));
    CALLO(cuDeviceGetLuid, "ok", (luid, &mask, 0), OUT_C(luid), OUT_U(mask));
    CALL(cuDeviceGetLuid, "null-out", (NULL, NULL, 0));
    CALLO(cuDeviceGetLuid, "bad-device", (luid, &mask, 99), OUT_C(luid), OUT_U(mask));
}

SCENARIO(pci, "device/pci") {
    static const int lengths[] = {64, 14, 13, 12, 5, 1, 0, -1};
    static const char *const bad[] = {"",        "x",      "0000:ff:1f.0", "ffff:ff:ff.f",
                                      "0000:00", "garbage"};
    char id[64];
    char real[64] = "";
    CUdevice dev;
    par_init();
    for (size_t i = 0; i < COUNT(lengths); i++) {
        par_note("len=%d", lengths[i]);
        CALLO(cuDeviceGetPCIBusId, lengths[i] >= 13 ? "length" : "bad-length", (id, lengths[i], 0),
              OUT_C(id));
        if (lengths[i] == 64) {
            par_see("pci-length", "%zu", strnlen(id, sizeof(id)));
            memcpy(real, id, sizeof(real));
        }
    }
    CALL(cuDeviceGetPCIBusId, "null-out", (NULL, 64, 0));
    CALLO(cuDeviceGetPCIBusId, "bad-device", (id, 64, 99), OUT_C(id));
    CALLO(cuDeviceGetByPCIBusId, "ok", (&dev, real), OUT_I(dev));
    CALLO(cuDeviceGetByPCIBusId, "without-domain", (&dev, real + 5), OUT_I(dev));
    for (size_t i = 0; i < COUNT(bad); i++) {
        par_note("%s", bad[i]);
        CALLO(cuDeviceGetByPCIBusId, "bad-id", (&dev, bad[i]), OUT_I(dev));
    }
    CALL(cuDeviceGetByPCIBusId, "null-out", (NULL, real));
    CALLO(cuDeviceGetByPCIBusId, "null-id", (&dev, NULL), OUT_I(dev));
}

SCENARIO(attributes, "device/attributes", par_init) {
    int n;
    for (int a = -1; a <= 160; a++) {
        /* PCI bus, device and domain are the machine's. */
        bool machine = a == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ||
                       a == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID ||
                       a == CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID;
        bool known = a > 0 && a <= CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED;
        par_note("%d", a);
        if (machine)
            CALL(cuDeviceGetAttribute, "known", (&n, (CUdevice_attribute)a, 0));
        else
            CALLO(cuDeviceGetAttribute, known ? "known" : "unknown", (&n, (CUdevice_attribute)a, 0),
                  OUT_I(n));
    }
    CALLO(cuDeviceGetAttribute, "unknown", (&n, (CUdevice_attribute)1000, 0), OUT_I(n));
    CALL(cuDeviceGetAttribute, "null-out", (NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    CALLO(cuDeviceGetAttribute, "bad-device", (&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1), OUT_I(n));
    CALLO(cuDeviceGetAttribute, "bad-device", (&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99), OUT_I(n));
    CALLO(cuDeviceGetAttribute, "bad-device-unknown", (&n, (CUdevice_attribute)1000, 99), OUT_I(n));
}

SCENARIO(properties, "device/properties", par_init) {
    size_t bytes;
    unsigned small;
    int major, minor;
    CUdevprop prop;
    CALLO(cuDeviceTotalMem_v2, "ok", (&bytes, 0), OUT_U(bytes));
    CALLO(cuDeviceTotalMem, "ok", (&small, 0), OUT_U(small));
    CALL(cuDeviceTotalMem_v2, "null-out", (NULL, 0));
    CALLO(cuDeviceTotalMem_v2, "bad-device", (&bytes, 99), OUT_U(bytes));
    CALLO(cuDeviceComputeCapability, "ok", (&major, &minor, 0), OUT_I(major), OUT_I(minor));
    CALLO(cuDeviceComputeCapability, "null-out", (NULL, &minor, 0), OUT_I(minor));
    CALLO(cuDeviceComputeCapability, "null-out", (&major, NULL, 0), OUT_I(major));
    CALLO(cuDeviceComputeCapability, "bad-device", (&major, &minor, 99), OUT_I(major),
          OUT_I(minor));
    CALLO(cuDeviceGetProperties, "ok", (&prop, 0), OUT_I(prop.maxThreadsPerBlock),
          OUT_I(prop.maxThreadsDim[0]), OUT_I(prop.maxThreadsDim[2]), OUT_I(prop.maxGridSize[0]),
          OUT_I(prop.maxGridSize[1]), OUT_I(prop.sharedMemPerBlock),
          OUT_I(prop.totalConstantMemory), OUT_I(prop.SIMDWidth), OUT_I(prop.memPitch),
          OUT_I(prop.regsPerBlock), OUT_I(prop.clockRate), OUT_I(prop.textureAlign));
    CALL(cuDeviceGetProperties, "null-out", (NULL, 0));
    CALLO(cuDeviceGetProperties, "bad-device", (&prop, 99), OUT_C(prop));
}

SCENARIO(peers, "device/peers", par_init) {
    int n;
    for (int a = 0; a <= 6; a++) {
        par_note("%d", a);
        CALLO(cuDeviceGetP2PAttribute, "same-device", (&n, (CUdevice_P2PAttribute)a, 0, 0),
              OUT_I(n));
    }
    CALLO(cuDeviceGetP2PAttribute, "bad-device",
          (&n, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 99), OUT_I(n));
    CALL(cuDeviceGetP2PAttribute, "null-out",
         (NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
    CALLO(cuDeviceCanAccessPeer, "same-device", (&n, 0, 0), OUT_I(n));
    CALLO(cuDeviceCanAccessPeer, "bad-device", (&n, 0, 99), OUT_I(n));
    CALLO(cuDeviceCanAccessPeer, "bad-device", (&n, 99, 0), OUT_I(n));
    CALL(cuDeviceCanAccessPeer, "null-out", (NULL, 0, 0));
    for (int t = -1; t <= 2; t++) {
        par_note("%d", t);
        CALLO(cuDeviceGetExecAffinitySupport, t == 0 ? "ok" : "bad-type",
              (&n, (CUexecAffinityType)t, 0), OUT_I(n));
    }
    CALL(cuDeviceGetExecAffinitySupport, "null-out", (NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    CALLO(cuDeviceGetExecAffinitySupport, "bad-device", (&n, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 99),
          OUT_I(n));
}

SCENARIO(texture_width, "device/texture-width", par_init) {
    static const int formats[] = {1, 2, 3, 8, 9, 10, 16, 32, 0, 4, 99};
    size_t width;
    for (size_t i = 0; i < COUNT(formats); i++) {
        for (unsigned channels = 0; channels <= 4; channels++) {
            par_note("format=%d channels=%u", formats[i], channels);
            CALLO(cuDeviceGetTexture1DLinearMaxWidth, "format-channels",
                  (&width, (CUarray_format)formats[i], channels, 0), OUT_U(width));
        }
    }
    CALL(cuDeviceGetTexture1DLinearMaxWidth, "null-out", (NULL, CU_AD_FORMAT_FLOAT, 1, 0));
    CALLO(cuDeviceGetTexture1DLinearMaxWidth, "bad-device", (&width, CU_AD_FORMAT_FLOAT, 1, 99),
          OUT_U(width));
}

SCENARIO(pools_of_device, "device/pools", par_init) {
    CUmemoryPool pool, current;
    CALLO(cuDeviceGetDefaultMemPool, "ok", (&pool, 0), OUT_H(pool));
    CALLO(cuDeviceGetMemPool, "ok", (&current, 0), OUT_H(current));
    CALL(cuDeviceGetDefaultMemPool, "null-out", (NULL, 0));
    CALLO(cuDeviceGetDefaultMemPool, "bad-device", (&pool, 99), OUT_H(pool));
    CALL(cuDeviceGetMemPool, "null-out", (NULL, 0));
    CALLO(cuDeviceGetMemPool, "bad-device", (&pool, -1), OUT_H(pool));
    CALL(cuDeviceSetMemPool, "null-pool", (0, NULL));
    CALL(cuDeviceSetMemPool, "bad-device", (99, pool));
}

SCENARIO(flush_rdma, "device/flush-rdma", par_init) {
    static const int scopes[] = {100, 200, 0, 300};
    CALL(cuFlushGPUDirectRDMAWrites, "no-context",
         (CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
          CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    par_context();
    for (size_t i = 0; i < COUNT(scopes); i++) {
        par_note("scope=%d", scopes[i]);
        CALL(cuFlushGPUDirectRDMAWrites, i < 2 ? "ok" : "bad-scope",
             (CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
              (CUflushGPUDirectRDMAWritesScope)scopes[i]));
    }
    CALL(cuFlushGPUDirectRDMAWrites, "bad-target",
         ((CUflushGPUDirectRDMAWritesTarget)7, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
}

SCENARIO(atomic_capabilities, "device/atomics", par_init) {
    CUatomicOperation operations[2] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_CAS};
    unsigned caps[2];
    CALLO(cuDeviceGetHostAtomicCapabilities, "ok", (caps, operations, 2, 0), OUT_X(caps[0]),
          OUT_X(caps[1]));
    CALLO(cuDeviceGetHostAtomicCapabilities, "zero-count", (caps, operations, 0, 0),
          OUT_X(caps[0]));
    CALL(cuDeviceGetHostAtomicCapabilities, "null-out", (NULL, operations, 2, 0));
    CALLO(cuDeviceGetHostAtomicCapabilities, "null-in", (caps, NULL, 2, 0), OUT_X(caps[0]));
    CALLO(cuDeviceGetHostAtomicCapabilities, "bad-device", (caps, operations, 2, 99),
          OUT_X(caps[0]));
    CALLO(cuDeviceGetP2PAtomicCapabilities, "same-device", (caps, operations, 2, 0, 0),
          OUT_X(caps[0]), OUT_X(caps[1]));
    CALLO(cuDeviceGetP2PAtomicCapabilities, "bad-device", (caps, operations, 2, 0, 99),
          OUT_X(caps[0]));
}

SCENARIO(graph_memory, "device/graph-memory", par_init) {
    uint64_t value;
    for (int a = -1; a <= 4; a++) {
        par_note("%d", a);
        CALLO(cuDeviceGetGraphMemAttribute, a >= 0 && a < 4 ? "ok" : "bad-attribute",
              (0, (CUgraphMem_attribute)a, &value), OUT_U(value));
    }
    CALLO(cuDeviceGetGraphMemAttribute, "bad-device",
          (99, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value), OUT_U(value));
    CALL(cuDeviceGetGraphMemAttribute, "null-out", (0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, NULL));
    for (int a = 0; a < 4; a++) {
        value = 0;
        par_note("%d", a);
        CALL(cuDeviceSetGraphMemAttribute, "zero", (0, (CUgraphMem_attribute)a, &value));
    }
    value = 1;
    CALL(cuDeviceSetGraphMemAttribute, "non-zero", (0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    value = 0;
    CALL(cuDeviceSetGraphMemAttribute, "bad-device", (99, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    CALL(cuDeviceGraphMemTrim, "ok", (0));
    CALL(cuDeviceGraphMemTrim, "bad-device", (99));
}
