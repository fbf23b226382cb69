/* Addresses of allocation nodes: reserved with the node, valid until nothing needs them. */
#include "softgpu/graph/graph_memory.h"

#include "softgpu/address/window.h"
#include "softgpu/core/config.h"
#include "softgpu/device/device.h"

#include <stdlib.h>

static struct sg_tree blocks; /* by address */

struct sg_graph_block *sg_graph_block_at(CUdeviceptr address) {
    struct sg_tree_node *node = sg_tree_at_most(&blocks, address);
    struct sg_graph_block *block = SG_TREE_OWNER(node, struct sg_graph_block, node);
    return block && address - block->node.key < block->size ? block : NULL;
}

bool sg_graph_memory_is(CUdeviceptr address) {
    return sg_graph_block_at(address) != NULL;
}

bool sg_graph_memory_starts(CUdeviceptr address) {
    const struct sg_graph_block *block = sg_graph_block_at(address);
    return block && block->node.key == address;
}

void sg_graph_memory_retain(CUdeviceptr address) {
    struct sg_graph_block *block = sg_graph_block_at(address);
    if (block)
        block->refs++;
}

bool sg_graph_block_extent(CUdeviceptr address, uint64_t *low, uint64_t *length) {
    const struct sg_graph_block *block = sg_graph_block_at(address);
    if (!block || !block->run)
        return false;
    *low = block->node.key;
    *length = sg_bounds(sg_config(), *low, block->bytes, SG_BOUND);
    return address - *low < *length;
}

void sg_graph_block_unref(struct sg_graph_block *block) {
    if (--block->refs > 0)
        return;
    sg_tree_remove(&blocks, &block->node);
    sg_addresses_give(block->node.key, block->size);
    free(block);
}

void sg_graph_memory_release(CUdeviceptr address) {
    struct sg_graph_block *block = sg_graph_block_at(address);
    if (block)
        sg_graph_block_unref(block);
}

/* ---- Reserving ------------------------------------------------------------------------------ */

static bool is_device(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0 &&
           location->id < sg_device_count();
}

/* As recorded on H200, where access for the CPU may be requested but is not granted. */
static CUresult check_access(const CUmemAccessDesc *access) {
    if (access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    if (access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_NOT_SUPPORTED;
    bool device = access->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    return device && !is_device(&access->location) ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

static bool reserved_zero(const CUmemPoolProps *props) {
    for (size_t i = 0; i < sizeof props->reserved; i++)
        if (props->reserved[i])
            return false;
    return true;
}

/* Graph memory is device memory that is not exported, whatever type of allocation is requested. */
static CUresult check(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params) {
    const CUmemPoolProps *props = &params->poolProps;
    bool host = props->location.type == CU_MEM_LOCATION_TYPE_HOST ||
                props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    if (params->bytesize == 0 || props->allocType == CU_MEM_ALLOCATION_TYPE_INVALID ||
        props->allocType > CU_MEM_ALLOCATION_TYPE_MANAGED || !reserved_zero(props) ||
        (params->accessDescCount > 0 && !params->accessDescs))
        return CUDA_ERROR_INVALID_VALUE;
    if (host || props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!is_device(&props->location))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < params->accessDescCount && result == CUDA_SUCCESS; i++)
        result = check_access(&params->accessDescs[i]);
    return result;
}

static unsigned devices_of(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params) {
    unsigned devices = 1u << params->poolProps.location.id;
    for (size_t i = 0; i < params->accessDescCount; i++)
        if (is_device(&params->accessDescs[i].location))
            devices |= 1u << params->accessDescs[i].location.id;
    return devices;
}

CUresult sg_graph_memory_reserve(CUgraphNodeParams *params) {
    CUresult result = check(&params->alloc);
    if (result != CUDA_SUCCESS)
        return result;
    if (params->alloc.bytesize > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sg_graph_block *block = calloc(1, sizeof *block);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->bytes = params->alloc.bytesize;
    block->size = (block->bytes + sg_red_zone(sg_config()) + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    block->device = params->alloc.poolProps.location.id;
    block->devices = devices_of(&params->alloc);
    block->refs = 1;
    CUdeviceptr address;
    result = sg_addresses_take(block->size, SG_PAGE, 0, &address);
    if (result != CUDA_SUCCESS) {
        free(block);
        return result;
    }
    block->node.key = address;
    sg_tree_insert(&blocks, &block->node);
    params->alloc.dptr = address;
    return CUDA_SUCCESS;
}

/* ---- In the address map --------------------------------------------------------------------- */

void sg_graph_block_show(struct sg_graph_block *block) {
    block->range = (struct sg_range){.start = block->node.key,
                                     .size = block->bytes,
                                     .ops = &sg_graph_range_ops,
                                     .device = block->device,
                                     .phys = block->run->chunk->phys,
                                     .phys_offset = block->run->first * SG_PAGE,
                                     .owner = block};
    block->left = true;
    block->refs++;
    sg_range_insert(&block->range); /* the addresses belong to the block */
}

void sg_graph_block_hide(struct sg_graph_block *block) {
    sg_range_remove(&block->range);
    block->left = false;
}

/* ---- Freeing outside graphs ----------------------------------------------------------------- */

/* The operation's words are the block and the allocation that it ends. */
static void finish_free(struct sg_op *op) {
    struct sg_graph_block *block = (struct sg_graph_block *)(uintptr_t)op->data.words[0];
    sg_graph_block_unmap(block, op->data.words[1]);
    sg_graph_block_unuse(block);
    sg_graph_block_unref(block);
}

static CUresult free_async(struct sg_range *range, struct sg_stream *stream) {
    struct sg_graph_block *block = range->owner;
    uint64_t id = range->buffer_id;
    struct sg_op *op = sg_op_new(NULL);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->finish = finish_free;
    op->data.words[0] = (uintptr_t)block;
    op->data.words[1] = block->generation;
    sg_graph_block_hide(block);
    CUresult result = sg_stream_submit(stream, op);
    if (result != CUDA_SUCCESS) {
        sg_range_insert(range);
        range->buffer_id = id;
        block->left = true;
    }
    return result;
}

/* Waits for the work of the current context. */
static CUresult free_now(struct sg_range *range) {
    struct sg_graph_block *block = range->owner;
    CUdeviceptr start = range->start;
    uint64_t id = range->buffer_id;
    struct sg_context *context = sg_context_peek();
    CUresult result = context && context->alive ? sg_context_wait_to_free(context) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    /* Another thread may have freed it meanwhile, and the block may no longer exist. */
    if (sg_range_find(start) != range || range->buffer_id != id)
        return CUDA_ERROR_INVALID_VALUE;
    sg_graph_block_hide(block);
    sg_graph_block_unmap(block, block->generation);
    sg_graph_block_unuse(block);
    sg_graph_block_unref(block);
    return CUDA_SUCCESS;
}

const struct sg_range_ops sg_graph_range_ops = {
    .free = free_now,
    .free_async = free_async,
};
