/*
 * What a device may claim. A profile is read from hardware, where every feature exists; here an
 * attribute by which a program decides to call something must hold for softgpu. Attributes that
 * only describe the device (sizes, clocks, limits of kernels) keep the profile's values.
 */
#include "softgpu/core/config.h"
#include "softgpu/device/profile.h"
#include "softgpu/device/udmabuf.h"

/* The algorithms that decompress/ implements, bits of CUmemDecompressAlgorithm, if this build has
 * their libraries. Snappy is not among them: its library is C++. */
#ifdef SG_WITHOUT_ZLIB
#define DEFLATE 0
#else
#define DEFLATE CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE
#endif
#ifdef SG_WITHOUT_LZ4
#define LZ4 0
#else
#define LZ4 CU_MEM_DECOMPRESS_ALGORITHM_LZ4
#endif
#define DECOMPRESS_ALGORITHMS (DEFLATE | LZ4)

#define ATTRIBUTE(name) CU_DEVICE_ATTRIBUTE_##name

#define KERNELS "SOFTGPU_KERNELS=0: kernels are refused"

/* The greatest value that holds here; a smaller one in the profile is kept. The mask form keeps the
 * bits that hold. */
static const struct claim {
    CUdevice_attribute attribute;
    bool mask;
    int most;
    const char *reason;
} claims[] = {
    {ATTRIBUTE(COOPERATIVE_LAUNCH), false, 0, KERNELS},
    {ATTRIBUTE(COOPERATIVE_MULTI_DEVICE_LAUNCH), false, 0, KERNELS},
    {ATTRIBUTE(CLUSTER_LAUNCH), false, 0, KERNELS},
    {ATTRIBUTE(UNIFIED_FUNCTION_POINTERS), false, 0, KERNELS},
    {ATTRIBUTE(GENERIC_COMPRESSION_SUPPORTED), false, 0, "memory is stored as it is"},
    {ATTRIBUTE(GPU_DIRECT_RDMA_SUPPORTED), false, 0, "no other device can reach the bytes"},
    {ATTRIBUTE(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED), false, 0,
     "no other device can reach the bytes"},
    {ATTRIBUTE(DMA_BUF_SUPPORTED), false, 0, "/dev/udmabuf cannot be used"},
    {ATTRIBUTE(HOST_ALLOC_DMA_BUF_SUPPORTED), false, 0, "no other device can reach the bytes"},
    {ATTRIBUTE(HOST_NUMA_MULTINODE_IPC_SUPPORTED), false, 0, "there is no fabric"},
    {ATTRIBUTE(MEM_DECOMPRESS_ALGORITHM_MASK), true, DECOMPRESS_ALGORITHMS,
     "Snappy is not implemented, DEFLATE and LZ4 only with their libraries"},
    {ATTRIBUTE(D3D12_CIG_SUPPORTED), false, 0, "contexts in graphics are refused"},
    {ATTRIBUTE(VULKAN_CIG_SUPPORTED), false, 0, "contexts in graphics are refused"},
};

/* Claims that depend on settings, on the machine and on the rest of the profile: if the CPU can map
 * DMA buffers, a memory file serves as one, and its bytes can be reached. */
static bool is_true_here(CUdevice_attribute attribute, const int *attributes) {
    bool mapped = attributes[SG_ATTRIBUTE_DMA_BUF_MMAP_SUPPORTED] != 0;
    switch (attribute) {
    case ATTRIBUTE(COOPERATIVE_LAUNCH):
    case ATTRIBUTE(COOPERATIVE_MULTI_DEVICE_LAUNCH):
    case ATTRIBUTE(CLUSTER_LAUNCH):
    case ATTRIBUTE(UNIFIED_FUNCTION_POINTERS):
        return sg_config()->kernels;
    case ATTRIBUTE(DMA_BUF_SUPPORTED):
        return mapped || sg_udmabuf_usable();
    case ATTRIBUTE(GPU_DIRECT_RDMA_SUPPORTED):
    case ATTRIBUTE(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED):
        return mapped;
    default:
        return false;
    }
}

void sg_claims_apply(int attributes[SG_ATTRIBUTE_LIMIT]) {
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        if (is_true_here(claims[i].attribute, attributes))
            continue;
        int *value = &attributes[claims[i].attribute];
        if (claims[i].mask)
            *value &= claims[i].most;
        else if (*value > claims[i].most)
            *value = claims[i].most;
    }
}

const char *sg_claim_reason(int attribute) {
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++)
        if ((int)claims[i].attribute == attribute)
            return claims[i].reason;
    return NULL;
}
