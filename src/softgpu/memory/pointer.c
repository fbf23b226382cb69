/* What is known of a pointer. */
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/allocation.h"
#include "softgpu/memory/pagetable.h"
#include "softgpu/memory/vmm.h"
#include "softgpu/pool/pool.h"

#include <string.h>

/* An answer is at most this large: CUDA_POINTER_ATTRIBUTE_P2P_TOKENS. */
union answer {
    uint64_t word;
    uint32_t number;
    uint8_t truth;
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
};

static size_t answer_size(CUpointer_attribute attribute) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return sizeof(uint32_t);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        return sizeof(uint8_t);
    default:
        return sizeof(uint64_t);
    }
}

/* The whole run of pages under a range: what MAPPING_BASE_ADDR and MAPPING_SIZE tell. */
static CUdeviceptr mapping_base(const struct sg_range *range) {
    return range->start - range->phys_offset;
}

static uint64_t handle_types(const struct sg_range *range) {
    if (range->kind == SG_RANGE_POOL) {
        const CUmemPoolProps *props = sg_pool_props(range);
        return props ? (uint64_t)props->handleTypes : 0;
    }
    return range->phys ? (uint64_t)range->phys->prop.requestedHandleTypes : 0;
}

static uint32_t access_flags(const struct sg_range *range, int device) {
    sg_rights rights = sg_table_get(range->start, NULL) >> (2 * device) & 3u;
    if (range->kind == SG_RANGE_REGISTERED)
        return range->flags & CU_MEMHOSTREGISTER_READ_ONLY
                   ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                   : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    if (rights & SG_WRITE)
        return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    return rights & SG_READ ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                            : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

static bool rdma_capable(const struct sg_range *range) {
    if (range->device < 0 || range->kind == SG_RANGE_POOL)
        return false;
    return range->kind != SG_RANGE_MAPPING || range->phys->prop.allocFlags.gpuDirectRDMACapable;
}

static bool host_visible(const struct sg_range *range) {
    return range->device < 0 && (range->kind != SG_RANGE_MAPPING || range->cpu_rights);
}

static int ordinal_of(const struct sg_range *range) {
    if (range->device >= 0)
        return range->device;
    return range->context ? range->context->device : CU_DEVICE_CPU;
}

static CUresult ask(CUpointer_attribute attribute, CUdeviceptr ptr, const struct sg_range *range,
                    union answer *answer) {
    const struct sg_context *current = sg_context_peek();
    memset(answer, 0, sizeof *answer);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        answer->word = range->context ? range->context->handle : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        answer->number = range->device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        answer->word = ptr;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        answer->word = ptr;
        return host_visible(range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        answer->truth = range->sync_memops;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        answer->word = range->buffer_id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        answer->number = (uint32_t)ordinal_of(range);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        answer->truth = range->kind == SG_RANGE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        answer->word = range->start;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        answer->word = range->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        answer->truth = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        answer->word = handle_types(range);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        answer->truth = rdma_capable(range);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        if (!current)
            return CUDA_ERROR_INVALID_CONTEXT;
        answer->number = access_flags(range, current->device);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        answer->word = range->kind == SG_RANGE_POOL ? sg_pool_handle(range) : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        answer->word = range->phys ? range->phys->size : range->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        answer->word = mapping_base(range);
        return CUDA_SUCCESS;
    default: /* P2P_TOKENS among them: tokens for a kernel interface that softgpu has not */
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sg_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    struct sg_range *range = sg_range_find(ptr);
    if (!data || !range)
        return CUDA_ERROR_INVALID_VALUE;
    union answer answer;
    CUresult result = ask(attribute, ptr, range, &answer);
    if (result == CUDA_SUCCESS)
        memcpy(data, &answer, answer_size(attribute));
    return result;
}

CUresult sg_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                   void **data, CUdeviceptr ptr) {
    if (numAttributes == 0 || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    struct sg_range *range = sg_range_find(ptr);
    for (unsigned i = 0; i < numAttributes; i++) {
        union answer answer = {0};
        if (!data[i])
            return CUDA_ERROR_INVALID_VALUE;
        /* What does not apply to this pointer reads as zero; the call itself succeeds. */
        if (!range || ask(attributes[i], ptr, range, &answer) != CUDA_SUCCESS)
            memset(&answer, 0, sizeof answer);
        if (!range && attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            answer.number = (uint32_t)CU_DEVICE_INVALID;
        memcpy(data[i], &answer, answer_size(attributes[i]));
    }
    return CUDA_SUCCESS;
}

CUresult sg_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                  CUdeviceptr ptr) {
    struct sg_range *range = sg_range_find(ptr);
    if (!value || !range || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    range->sync_memops = *(const unsigned *)value != 0;
    return CUDA_SUCCESS;
}
