/* The memory for a device's graphs: kept for the next launch until it is trimmed. */
#include "softgpu/graph/graph_memory.h"

#include "softgpu/address/pagetable.h"
#include "softgpu/address/phys.h"
#include "softgpu/core/calls.h"
#include "softgpu/device/device.h"
#include "softgpu/stream/schedule.h"

#include <stdlib.h>
#include <string.h>

/* On H200 all memory of the pool counts as used by graphs until it is trimmed. */
struct pool {
    struct sg_graph_chunk *chunks;
    uint64_t reserved, used_high, reserved_high; /* bytes */
};

static struct pool pools[SG_MAX_DEVICES];

uint64_t sg_graph_memory_reserved(int device) {
    return pools[device].reserved;
}

/* ---- Chunks --------------------------------------------------------------------------------- */

static uint64_t trim(struct pool *pool) {
    uint64_t before = pool->reserved;
    struct sg_graph_chunk **link = &pool->chunks;
    while (*link) {
        struct sg_graph_chunk *chunk = *link;
        if (chunk->taken > 0) {
            link = &chunk->next;
            continue;
        }
        *link = chunk->next;
        pool->reserved -= chunk->phys->size;
        sg_phys_unref(chunk->phys);
        free(chunk->in_use);
        free(chunk);
    }
    return before - pool->reserved;
}

uint64_t sg_graph_memory_reclaim(int device) {
    return device >= 0 ? trim(&pools[device]) : 0;
}

static CUresult make_phys(int device, size_t size, struct sg_phys **phys) {
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    return sg_phys_create(&prop, size, phys);
}

static size_t round_up(size_t size, size_t unit) {
    return (size + unit - 1) / unit * unit;
}

/* Near the device's limit a full step may be too much. */
static CUresult find_phys(int device, size_t size, struct sg_phys **phys) {
    CUresult result = make_phys(device, round_up(size, SG_GRAPH_STEP), phys);
    return result == CUDA_SUCCESS ? result : make_phys(device, size, phys);
}

static CUresult add_chunk(struct pool *pool, int device, size_t size) {
    struct sg_graph_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = find_phys(device, size, &chunk->phys);
    if (result != CUDA_SUCCESS) {
        free(chunk);
        return result;
    }
    chunk->pages = chunk->phys->size / SG_PAGE;
    chunk->in_use = calloc(chunk->pages, sizeof *chunk->in_use);
    if (!chunk->in_use) {
        sg_phys_unref(chunk->phys);
        free(chunk);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    pool->reserved += chunk->phys->size;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    if (pool->reserved > pool->used_high)
        pool->used_high = pool->reserved;
    return CUDA_SUCCESS;
}

/* ---- Runs ----------------------------------------------------------------------------------- */

/* The first place with that many free pages. */
static bool find_pages(const struct sg_graph_chunk *chunk, size_t pages, size_t *first) {
    size_t free_pages = 0;
    for (size_t i = 0; i < chunk->pages && chunk->pages - chunk->taken >= pages; i++) {
        free_pages = chunk->in_use[i] ? 0 : free_pages + 1;
        if (free_pages == pages) {
            *first = i + 1 - pages;
            return true;
        }
    }
    return false;
}

static bool take_pages(struct pool *pool, struct sg_graph_run *run) {
    for (struct sg_graph_chunk *chunk = pool->chunks; chunk; chunk = chunk->next) {
        if (!find_pages(chunk, run->pages, &run->first))
            continue;
        memset(&chunk->in_use[run->first], true, run->pages * sizeof *chunk->in_use);
        chunk->taken += run->pages;
        run->chunk = chunk;
        return true;
    }
    return false;
}

CUresult sg_graph_block_fill(struct sg_graph_block *block) {
    struct pool *pool = &pools[block->device];
    struct sg_graph_run *run = calloc(1, sizeof *run);
    if (!run)
        return CUDA_ERROR_OUT_OF_MEMORY;
    run->pages = block->size / SG_PAGE;
    run->refs = 1;
    CUresult result = CUDA_SUCCESS;
    if (!take_pages(pool, run)) {
        result = add_chunk(pool, block->device, block->size);
        if (result == CUDA_SUCCESS)
            take_pages(pool, run);
    }
    if (result == CUDA_SUCCESS)
        block->run = run;
    else
        free(run);
    return result;
}

static unsigned char *run_bytes(const struct sg_graph_run *run) {
    return run->chunk->phys->host + run->first * SG_PAGE;
}

static void release_run(struct sg_graph_run *run) {
    if (--run->refs > 0)
        return;
    memset(&run->chunk->in_use[run->first], false, run->pages * sizeof *run->chunk->in_use);
    run->chunk->taken -= run->pages;
    free(run);
}

/* ---- Blocks --------------------------------------------------------------------------------- */

void sg_graph_block_unuse(struct sg_graph_block *block) {
    if (--block->uses > 0)
        return;
    sg_graph_block_unmap(block, block->mapped);
    release_run(block->run);
    block->run = NULL;
}

void sg_graph_block_map(struct sg_graph_block *block, uint64_t generation) {
    unsigned char *bytes = run_bytes(block->run);
    sg_poison(bytes, block->size, SG_POISON_FRESH);
    sg_table_map(block->node.key, block->size, bytes, sg_rights_of_mask(block->devices));
    block->mapped = generation;
}

/* Ending an allocation has no effect if the block has been allocated again since. */
void sg_graph_block_unmap(struct sg_graph_block *block, uint64_t generation) {
    if (block->mapped == 0 || block->mapped != generation)
        return;
    sg_table_unmap(block->node.key, block->size);
    sg_poison(run_bytes(block->run), block->size, SG_POISON_FREED);
    block->mapped = 0;
}

/* ---- Queries -------------------------------------------------------------------------------- */

/* Launches whose work is done return what they used when their end is noticed. */
static struct pool *settled(CUdevice device) {
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
    const struct pool *pool = settled(device);
    if (!pool)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t *number = value;
    switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        *number = pool->reserved;
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

/* Only the high-water marks can be set, and only to 0: then they restart at the current values. */
CUresult sg_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    struct pool *pool = settled(device);
    if (!pool)
        return CUDA_ERROR_INVALID_DEVICE;
    const bool used = attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    if ((!used && attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) || !value ||
        *(const uint64_t *)value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *(used ? &pool->used_high : &pool->reserved_high) = pool->reserved;
    return CUDA_SUCCESS;
}

CUresult sg_cuDeviceGraphMemTrim(CUdevice device) {
    struct pool *pool = settled(device);
    if (!pool)
        return CUDA_ERROR_INVALID_DEVICE;
    trim(pool);
    return CUDA_SUCCESS;
}
