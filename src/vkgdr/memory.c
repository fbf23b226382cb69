/* Allocations: a block each, or a piece of a slab. */
#include "base/cancel.h"
#include "base/log.h"
#include "vkgdr/internal.h"

#include <stdlib.h>

/* ---- Allocating ------------------------------------------------------------------------------ */

static bool check_request(const struct vkgdr *g, size_t size, uint32_t flags) {
    if (!g)
        gm_vkgdr_error_set("vkgdr_memory_alloc: the handle is NULL");
    else if (flags)
        gm_vkgdr_error_set("vkgdr_memory_alloc: flags are 0x%x and must be 0", flags);
    else if (!size)
        gm_vkgdr_error_set("vkgdr_memory_alloc: 0 bytes were requested");
    else if (!gm_vkgdr_ours(g))
        gm_vkgdr_error_set("vkgdr_memory_alloc: the handle was opened by this process's parent");
    else
        return true;
    return false;
}

/* Memory of one GPU cannot be imported on another. */
static bool find_context(const struct vkgdr *g, struct gm_vkgdr_context *context) {
    CUdevice device;
    CUresult result = g->cu->cuCtxGetDevice(&device);
    if (result != CUDA_SUCCESS) {
        gm_vkgdr_error_cuda(g->cu, result, "cuCtxGetDevice");
        return false;
    }
    if (device != g->device) {
        gm_vkgdr_error_set("vkgdr_memory_alloc: the current context is of device %d, the handle of "
                           "device %d",
                           device, g->device);
        return false;
    }
    *context = gm_vkgdr_context_current(g->cu);
    if (!context->handle)
        gm_vkgdr_error_set(
            "vkgdr_memory_alloc: the driver does not report which context is current");
    return context->handle != NULL;
}

static bool fill(struct vkgdr *g, struct vkgdr_memory *memory) {
    struct gm_vkgdr_context context;
    if (!find_context(g, &context))
        return false;
    if (memory->size > GM_VKGDR_SMALL || g->atom > GM_VKGDR_UNIT)
        return gm_vkgdr_block_make(g, memory->size, context, &memory->block);
    memory->slab = gm_vkgdr_slab_take(g, memory->size, context, &memory->offset);
    return memory->slab != NULL;
}

vkgdr_memory_t vkgdr_memory_alloc(vkgdr_t g, size_t size, uint32_t flags) {
    GM_UNCANCELLED;
    gm_vkgdr_error_reset();
    if (!check_request(g, size, flags))
        return NULL;
    struct vkgdr_memory *memory = calloc(1, sizeof *memory);
    if (!memory) {
        gm_vkgdr_error_set("vkgdr_memory_alloc: out of host memory");
        return NULL;
    }
    memory->owner = g;
    memory->size = size;
    if (!fill(g, memory)) {
        free(memory);
        return NULL;
    }
    gm_vkgdr_hold(g);
    return memory;
}

void vkgdr_memory_free(vkgdr_memory_t mem) {
    GM_UNCANCELLED;
    /* A forked child must not touch its parent's drivers. */
    if (mem && gm_vkgdr_ours(mem->owner)) {
        if (mem->slab)
            gm_vkgdr_slab_give(mem->owner, mem->slab, mem->offset, mem->size);
        else
            gm_vkgdr_block_end(mem->owner, &mem->block);
        gm_vkgdr_release(mem->owner);
    }
    free(mem);
}

/* ---- What an allocation is ------------------------------------------------------------------- */

static const struct gm_vkgdr_block *block_of(const struct vkgdr_memory *memory) {
    return memory->slab ? gm_vkgdr_slab_block(memory->slab) : &memory->block;
}

void *vkgdr_memory_get_host_ptr(vkgdr_memory_t mem) {
    return block_of(mem)->host + mem->offset;
}

unsigned long long vkgdr_memory_get_device_ptr(vkgdr_memory_t mem) {
    return block_of(mem)->device + mem->offset;
}

size_t vkgdr_memory_get_size(vkgdr_memory_t mem) {
    return mem->size;
}

bool vkgdr_memory_is_coherent(vkgdr_memory_t mem) {
    return mem->owner->coherent;
}

size_t vkgdr_memory_non_coherent_atom_size(vkgdr_memory_t mem) {
    return mem->owner->atom;
}

/* ---- Flush and invalidate -------------------------------------------------------------------- */

/* Other buffers follow after the end, so a range is cut off there. Atoms are not shared: a unit has
 * whole ones. */
static void apply(const struct vkgdr_memory *memory, size_t offset, size_t size, const char *what,
                  gpumem_status (*act)(struct gm_vulkan_memory *, uint64_t, uint64_t)) {
    if (offset >= memory->size || !size || memory->owner->coherent)
        return;
    if (size > memory->size - offset)
        size = memory->size - offset;
    if (act(block_of(memory)->memory, memory->offset + offset, size) != GPUMEM_OK)
        gm_log(GPUMEM_LOG_ERROR, "%s: %s", what, gpumem_last_error()->message);
}

void vkgdr_memory_flush(vkgdr_memory_t mem, size_t offset, size_t size) {
    GM_UNCANCELLED;
    apply(mem, offset, size, "vkgdr_memory_flush", gm_vulkan_flush);
}

void vkgdr_memory_invalidate(vkgdr_memory_t mem, size_t offset, size_t size) {
    GM_UNCANCELLED;
    apply(mem, offset, size, "vkgdr_memory_invalidate", gm_vulkan_invalidate);
}
