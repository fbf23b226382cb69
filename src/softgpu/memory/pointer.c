/* What is known about a pointer. */
#include "softgpu/context/where.h"
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/allocation.h"
#include "softgpu/memory/vmm.h"

#include <string.h>

/* The largest answer: CUDA_POINTER_ATTRIBUTE_P2P_TOKENS. */
union answer {
    uint64_t word;
    uint32_t number;
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
};

/* Booleans are 32 bits wide, as recorded on H200. */
static size_t answer_size(CUpointer_attribute attribute) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        return sizeof(uint32_t);
    default:
        return sizeof(uint64_t);
    }
}

/* For the current context's device, or the device that has the bytes. */
static void describe(const struct sg_range *range, struct sg_range_facts *facts) {
    const struct sg_context *current = sg_context_peek();
    int device = current ? current->device : range->device < 0 ? 0 : range->device;
    sg_range_describe(range, device, facts);
}

static CUresult device_pointer(const struct sg_range *range, const struct sg_range_facts *facts,
                               CUdeviceptr ptr, uint64_t *word) {
    const struct sg_context *current = sg_context_peek();
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!facts->rights || !sg_range_seen(current, range))
        return CUDA_ERROR_INVALID_VALUE;
    *word = ptr;
    return CUDA_SUCCESS;
}

static int ordinal_of(const struct sg_range *range) {
    if (range->device >= 0)
        return range->device;
    return range->context ? range->context->device : 0;
}

/* *answer is zeroed by the caller. */
static CUresult ask(CUpointer_attribute attribute, CUdeviceptr ptr, const struct sg_range *range,
                    union answer *answer) {
    struct sg_range_facts facts;
    describe(range, &facts);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        answer->word = range->context ? range->context->handle : 0;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        answer->number = range->device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return device_pointer(range, &facts, ptr, &answer->word);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!facts.host_pointer)
            return CUDA_ERROR_INVALID_VALUE;
        answer->word = ptr;
        break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: /* for a kernel interface: zero on H200 too */
        return range->device < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        answer->number = range->sync_memops_set ? range->sync_memops : facts.sync_memops;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        answer->word = range->buffer_id;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        answer->number = facts.managed;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        answer->number = (uint32_t)ordinal_of(range);
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        answer->number = facts.legacy_ipc;
        break;
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        answer->number = facts.decompress;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        answer->word = facts.start;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        answer->word = facts.size;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        answer->number = 1;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        answer->word = facts.handle_types;
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        answer->number = facts.rdma;
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: /* READ 1, READWRITE 3: as SG_READ and SG_WRITE */
        answer->number = facts.rights;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        answer->word = facts.pool;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        answer->word = facts.mapping_size;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        answer->word = facts.mapping_base;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static bool is_attribute(CUpointer_attribute attribute) {
    return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT &&
           attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

/* For a known pointer, attributes that do not apply are zeroed and refused. */
CUresult sg_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    const struct sg_range *range = sg_range_find(ptr);
    if (!data || !range || !is_attribute(attribute))
        return CUDA_ERROR_INVALID_VALUE;
    union answer answer;
    memset(&answer, 0, sizeof answer);
    CUresult result = ask(attribute, ptr, range, &answer);
    memcpy(data, &answer, answer_size(attribute));
    return result;
}

/* The answer for an unknown pointer. False: the output is left unchanged. */
static bool ask_unknown(CUpointer_attribute attribute, CUdeviceptr ptr, union answer *answer) {
    const struct sg_reservation *reserved = sg_reservation_at(ptr);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        answer->number = (uint32_t)CU_DEVICE_INVALID;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        answer->word = reserved ? reserved->size : 0;
        return reserved != NULL;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        answer->word = reserved ? reserved->node.key : 0;
        return reserved != NULL;
    default:
        return true;
    }
}

/* Succeeds for any pointer: attributes that do not apply read as zero. */
CUresult sg_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                   void **data, CUdeviceptr ptr) {
    const struct sg_range *range = sg_range_find(ptr);
    if (numAttributes == 0 || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numAttributes; i++)
        if (!is_attribute(attributes[i]) || !data[i])
            return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numAttributes; i++) {
        union answer answer;
        memset(&answer, 0, sizeof answer);
        if (range)
            ask(attributes[i], ptr, range, &answer);
        else if (!ask_unknown(attributes[i], ptr, &answer))
            continue;
        memcpy(data[i], &answer, answer_size(attributes[i]));
    }
    return CUDA_SUCCESS;
}

CUresult sg_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                  CUdeviceptr ptr) {
    struct sg_range *range = sg_range_find(ptr);
    const struct sg_context *current = sg_context_peek();
    if (current && !current->alive)
        return CUDA_ERROR_INVALID_VALUE; /* as recorded; having no context is not an error */
    if (!value || !range || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    if (range->ops == &sg_mapping_ops)
        return CUDA_ERROR_NOT_SUPPORTED;
    range->sync_memops = *(const unsigned *)value != 0;
    range->sync_memops_set = true;
    return CUDA_SUCCESS;
}
