/* The memory of a device's graphs: kept for the next launch until it is trimmed. */
#include "softgpu/graph/memory_parts.h"

#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/entry/entry.h"
#include "softgpu/memory/pagetable.h"
#include "softgpu/memory/phys.h"
#include "softgpu/stream/schedule.h"

#include <stdlib.h>

static struct sg_graph_pool pools[SG_MAX_DEVICES];

struct sg_graph_pool *sg_graph_pool(int device) {
    return &pools[device];
}

/* ---- Memory of blocks ----------------------------------------------------------------------- */

static struct sg_graph_chunk *take_idle(struct sg_graph_pool *pool, size_t size) {
    struct sg_graph_chunk **best = NULL;
    for (struct sg_graph_chunk **link = &pool->idle; *link; link = &(*link)->next)
        if ((*link)->phys->size == size) {
            best = link;
            break;
        }
    if (!best)
        return NULL;
    struct sg_graph_chunk *chunk = *best;
    *best = chunk->next;
    return chunk;
}

static uint64_t trim(struct sg_graph_pool *pool) {
    uint64_t before = pool->reserved;
    while (pool->idle) {
        struct sg_graph_chunk *chunk = pool->idle;
        pool->idle = chunk->next;
        pool->reserved -= chunk->phys->size;
        sg_phys_unref(chunk->phys);
        free(chunk);
    }
    return before - pool->reserved;
}

uint64_t sg_graph_memory_reclaim(int device) {
    return device >= 0 ? trim(&pools[device]) : 0;
}

static CUresult make_chunk(struct sg_graph_pool *pool, int device, size_t size,
                           struct sg_graph_chunk **out) {
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    struct sg_graph_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_phys_create(&prop, size, &chunk->phys);
    /* What is idle in other sizes is in the way. */
    if (result != CUDA_SUCCESS && trim(pool) > 0)
        result = sg_phys_create(&prop, size, &chunk->phys);
    if (result != CUDA_SUCCESS) {
        free(chunk);
        return result;
    }
    pool->reserved += size;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    *out = chunk;
    return CUDA_SUCCESS;
}

CUresult sg_graph_block_fill(struct sg_graph_block *block) {
    struct sg_graph_pool *pool = &pools[block->device];
    block->chunk = take_idle(pool, block->size);
    if (!block->chunk) {
        CUresult result = make_chunk(pool, block->device, block->size, &block->chunk);
        if (result != CUDA_SUCCESS)
            return result;
    }
    pool->used += block->size;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    return CUDA_SUCCESS;
}

void sg_graph_block_unuse(struct sg_graph_block *block) {
    if (--block->uses > 0)
        return;
    struct sg_graph_pool *pool = &pools[block->device];
    sg_graph_block_unmap(block, block->mapped);
    block->chunk->next = pool->idle;
    pool->idle = block->chunk;
    block->chunk = NULL;
    pool->used -= block->size;
}

void sg_graph_block_map(struct sg_graph_block *block, uint64_t generation) {
    sg_poison(block->chunk->phys->host, block->size, SG_POISON_FRESH);
    sg_table_map(block->node.key, block->size, block->chunk->phys->host,
                 sg_rights_of_mask(block->devices));
    block->mapped = generation;
}

/* An allocation that was made again since is not ended by the end of the one before. */
void sg_graph_block_unmap(struct sg_graph_block *block, uint64_t generation) {
    if (block->mapped == 0 || block->mapped != generation)
        return;
    sg_table_unmap(block->node.key, block->size);
    sg_poison(block->chunk->phys->host, block->size, SG_POISON_FREED);
    block->mapped = 0;
}

/* ---- What is asked about it ----------------------------------------------------------------- */

/* Launches whose work is done give back what they used when their end is noticed. */
static struct sg_graph_pool *settled(CUdevice device) {
    if (device < 0 || device >= sg_device_count())
        return NULL;
    for (struct sg_stream *s = sg_working, *next; s; s = next) {
        next = s->work_next;
        if (s->context->device == device && s->head && !s->head->run &&
            sg_head_state(s) == SG_HEAD_START) {
            sg_context_settle(s->context);
            next = sg_working; /* the list has changed */
        }
    }
    return &pools[device];
}

CUresult sg_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    const struct sg_graph_pool *pool = settled(device);
    if (!pool)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t *number = value;
    switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        *number = pool->used;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        *number = pool->used_high;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        *number = pool->reserved;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        *number = pool->reserved_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Only the high marks can be set, and only to 0: then they begin anew at what is there. */
CUresult sg_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    struct sg_graph_pool *pool = settled(device);
    if (!pool)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(const uint64_t *)value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        pool->used_high = pool->used;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        pool->reserved_high = pool->reserved;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sg_cuDeviceGraphMemTrim(CUdevice device) {
    struct sg_graph_pool *pool = settled(device);
    if (!pool)
        return CUDA_ERROR_INVALID_DEVICE;
    trim(pool);
    return CUDA_SUCCESS;
}
