/* cuDevice*: queries of a device that need no context. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/device/profile.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

CUresult sg_cuDeviceGet(CUdevice *device, int ordinal) {
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetCount(int *count) {
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = sg_device_count();
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetName(char *name, int len, CUdevice dev) {
    const struct sg_device *device = sg_device(dev);
    if (!name || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)len, "%s", device->name);
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev) {
    const struct sg_device *device = sg_device(dev);
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device->no_uuid)
        return CUDA_ERROR_NOT_SUPPORTED;
    *uuid = device->uuid;
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetUuid(CUuuid *uuid, CUdevice dev) {
    return sg_cuDeviceGetUuid_v2(uuid, dev); /* They differ on MIG instances only. */
}

/* LUIDs are a Windows concept. On Linux an H200 returns NOT_SUPPORTED. */
CUresult sg_cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev) {
    if (!luid || !deviceNodeMask)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_device(dev) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sg_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev) {
    const struct sg_device *device = sg_device(dev);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = device ? device->total_memory : 0; /* set either way, as on H200 */
    return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sg_cuDeviceTotalMem(unsigned int *bytes, CUdevice dev) {
    size_t total;
    CUresult result = sg_cuDeviceTotalMem_v2(bytes ? &total : NULL, dev);
    if (bytes)
        *bytes = total > UINT_MAX ? UINT_MAX : (unsigned)total;
    return result;
}

CUresult sg_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev) {
    const struct sg_device *device = sg_device(dev);
    unsigned number = (unsigned)attrib;
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (number >= SG_ATTRIBUTE_LIMIT || !device->has_attribute[number])
        return CUDA_ERROR_INVALID_VALUE;
    *pi = device->attributes[number];
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev) {
    const struct sg_device *device = sg_device(dev);
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    const int *attributes = device->attributes;
    *prop = (CUdevprop){
        .maxThreadsPerBlock = attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
        .maxThreadsDim = {attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X],
                          attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y],
                          attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z]},
        .maxGridSize = {attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X],
                        attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y],
                        attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z]},
        .sharedMemPerBlock = attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK],
        .totalConstantMemory = attributes[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY],
        .SIMDWidth = attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE],
        .memPitch = attributes[CU_DEVICE_ATTRIBUTE_MAX_PITCH],
        .regsPerBlock = attributes[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK],
        .clockRate = attributes[CU_DEVICE_ATTRIBUTE_CLOCK_RATE],
        .textureAlign = attributes[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT],
    };
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev) {
    const struct sg_device *device = sg_device(dev);
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *major = device->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    *minor = device->attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev) {
    const struct sg_device *device = sg_device(dev);
    if (!pciBusId)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (len != 0)
        pciBusId[0] = 0; /* H200 writes to a string that is too short, whatever the length says */
    if (len <= (int)strlen(device->pci))
        return CUDA_ERROR_INVALID_VALUE;
    strcpy(pciBusId, device->pci);
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId) {
    struct sg_pci wanted, has;
    if (!dev || !pciBusId)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_pci_parse(pciBusId, &wanted))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < sg_device_count(); i++) {
        if (sg_pci_parse(sg_device(i)->pci, &has) && has.domain == wanted.domain &&
            has.bus == wanted.bus && has.device == wanted.device &&
            has.function == wanted.function) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

/* ---- Between devices ------------------------------------------------------------------------- */

CUresult sg_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev) {
    const struct sg_device *device = sg_device(dev);
    if (!canAccessPeer)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device || !sg_device(peerDev))
        return CUDA_ERROR_INVALID_DEVICE;
    *canAccessPeer = dev != peerDev && device->links[peerDev].peer_access;
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                    CUdevice dstDevice) {
    const struct sg_device *source = sg_device(srcDevice);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!source || !sg_device(dstDevice) || srcDevice == dstDevice)
        return CUDA_ERROR_INVALID_DEVICE;
    const struct sg_links *links = &source->links[dstDevice];
    switch ((int)attrib) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        *value = links->performance_rank;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        *value = links->peer_access;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        *value = links->native_atomics;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = links->array_access;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
        *value = links->partial_atomics;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Only kernels perform atomic operations on memory other than the device's own: none here, as H200
 * reported for its host and for another device. For invalid operations the result is the same, plus
 * the error. */
static CUresult no_capabilities(unsigned int *capabilities, const CUatomicOperation *operations,
                                unsigned int count) {
    memset(capabilities, 0, count * sizeof *capabilities);
    for (unsigned int i = 0; i < count; i++)
        if ((unsigned int)operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
                                              const CUatomicOperation *operations,
                                              unsigned int count, CUdevice dev) {
    if (!capabilities || !operations || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!atomic_load(&sg_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!sg_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return no_capabilities(capabilities, operations, count);
}

CUresult sg_cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
                                             const CUatomicOperation *operations,
                                             unsigned int count, CUdevice srcDevice,
                                             CUdevice dstDevice) {
    if (!capabilities || !operations || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(srcDevice) || !sg_device(dstDevice) || srcDevice == dstDevice)
        return CUDA_ERROR_INVALID_DEVICE;
    return no_capabilities(capabilities, operations, count);
}

/* ---- Features -------------------------------------------------------------------------------- */

/* Limiting a context to some multiprocessors is a feature of MPS, which softgpu is not. */
CUresult sg_cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev) {
    (void)type; /* No other type is supported either: H200 returns 0 for all. */
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pi = 0;
    return CUDA_SUCCESS;
}

/* Bytes of one channel of a format that a linear 1D texture can have, or 0. */
static size_t channel_size(CUarray_format format) {
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

CUresult sg_cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format,
                                               unsigned int numChannels, CUdevice dev) {
    const struct sg_device *device = sg_device(dev);
    size_t size = channel_size(format);
    bool channels = numChannels == 1 || numChannels == 2 || numChannels == 4;
    if (!maxWidthInElements || !size || !channels)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    /* The attribute counts elements of 16 bytes; on H200 those below 4 bytes count as 4. */
    size_t widest = (size_t)device->attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH];
    size_t element = size * numChannels < 4 ? 4 : size * numChannels;
    *maxWidthInElements = widest * 16 / element;
    return CUDA_SUCCESS;
}

/* NvSci is for Tegra and DRIVE; there is no list that could be valid here. */
CUresult sg_cuDeviceGetNvSciSyncAttributes(void *nvSciSyncAttrList, CUdevice dev, int flags) {
    (void)dev;
    (void)flags;
    return nvSciSyncAttrList ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_HANDLE;
}
