/* Memory from Vulkan, mapped for the CPU and imported into a CUDA context. */
#include "base/log.h"
#include "vkgdr/internal.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Whole pages for both drivers; the requested size is recorded elsewhere. */
#define PAGE ((size_t)64 << 10)

static atomic_size_t lost;

static size_t round_up(size_t size) {
    return size > SIZE_MAX - PAGE ? size : (size + PAGE - 1) / PAGE * PAGE;
}

struct gm_vkgdr_context gm_vkgdr_context_current(const gpumem_driver_api *cu) {
    struct gm_vkgdr_context current = {.handle = NULL};
    if (cu->cuCtxGetCurrent(&current.handle) != CUDA_SUCCESS)
        current.handle = NULL;
    if (current.handle && cu->cuCtxGetId(current.handle, &current.id) != CUDA_SUCCESS)
        current.id = 0;
    return current;
}

bool gm_vkgdr_context_same(struct gm_vkgdr_context one, struct gm_vkgdr_context other) {
    return one.handle == other.handle && one.id == other.id;
}

size_t gm_vkgdr_lost(void) {
    return atomic_load(&lost);
}

/* ---- Making ---------------------------------------------------------------------------------- */

static void free_vulkan(struct gm_vulkan_memory *memory) {
    if (gm_vulkan_free(memory) != GPUMEM_OK)
        gm_log(GPUMEM_LOG_ERROR, "mapped memory cannot be freed: %s", gpumem_last_error()->message);
}

static bool make_vulkan(struct vkgdr *g, size_t size, struct gm_vkgdr_block *block) {
    struct gm_vulkan_memory *memory = NULL;
    void *host = NULL;
    gpumem_status status = gm_vulkan_allocate(g->vulkan, size, g->flags, &memory);
    if (status == GPUMEM_OK)
        status = gm_vulkan_map(memory, NULL, &host);
    if (status != GPUMEM_OK) {
        gm_vkgdr_error_vulkan(NULL);
        free_vulkan(memory);
        return false;
    }
    block->memory = memory;
    block->host = host;
    return true;
}

/*
 * A driver may report an earlier failure with a call that took effect: then the output is set, and
 * is released here.
 */
static void forget(const gpumem_driver_api *cu, CUresult result, const char *call) {
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return;
    (void)cu->cuGetErrorName(result, &name);
    atomic_fetch_add(&lost, 1);
    gm_log(GPUMEM_LOG_WARNING, "vkgdr: %s answered %s", call, name ? name : "?");
}

/* The driver owns the descriptor once it is imported; otherwise it is closed here. */
static bool import(struct vkgdr *g, int fd, size_t size, CUexternalMemory *external) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description;
    memset(&description, 0, sizeof description);
    description.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    description.handle.fd = fd;
    description.size = size;
    CUresult result = g->cu->cuImportExternalMemory(external, &description);
    if (result == CUDA_SUCCESS)
        return true;
    gm_vkgdr_error_cuda(g->cu, result, "cuImportExternalMemory");
    if (*external)
        forget(g->cu, g->cu->cuDestroyExternalMemory(*external), "cuDestroyExternalMemory");
    else
        close(fd);
    return false;
}

static bool map_device(struct vkgdr *g, size_t size, struct gm_vkgdr_block *block) {
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC description;
    memset(&description, 0, sizeof description);
    description.size = size;
    CUresult result =
        g->cu->cuExternalMemoryGetMappedBuffer(&block->device, block->external, &description);
    if (result == CUDA_SUCCESS)
        return true;
    gm_vkgdr_error_cuda(g->cu, result, "cuExternalMemoryGetMappedBuffer");
    if (block->device)
        forget(g->cu, g->cu->cuMemFree_v2(block->device), "cuMemFree");
    return false;
}

static bool make_cuda(struct vkgdr *g, size_t size, struct gm_vkgdr_block *block) {
    int fd = -1;
    if (gm_vulkan_export(block->memory, &fd) != GPUMEM_OK) {
        gm_vkgdr_error_vulkan(NULL);
        return false;
    }
    if (!import(g, fd, size, &block->external))
        return false;
    if (map_device(g, size, block))
        return true;
    forget(g->cu, g->cu->cuDestroyExternalMemory(block->external), "cuDestroyExternalMemory");
    return false;
}

bool gm_vkgdr_block_make(struct vkgdr *g, size_t size, struct gm_vkgdr_context context,
                         struct gm_vkgdr_block *block) {
    struct gm_vkgdr_block made = {.context = context};
    size = round_up(size);
    if (!make_vulkan(g, size, &made))
        return false;
    if (!make_cuda(g, size, &made)) {
        free_vulkan(made.memory);
        return false;
    }
    *block = made;
    return true;
}

/* ---- The end --------------------------------------------------------------------------------- */

void gm_vkgdr_block_end(const struct vkgdr *g, struct gm_vkgdr_block *block) {
    const gpumem_driver_api *cu = g->cu;
    /* Both handles are gone with their context if that has been destroyed. */
    if (gm_vkgdr_context_same(gm_vkgdr_context_current(cu), block->context)) {
        forget(cu, cu->cuMemFree_v2(block->device), "cuMemFree");
        forget(cu, cu->cuDestroyExternalMemory(block->external), "cuDestroyExternalMemory");
    } else {
        atomic_fetch_add(&lost, 1);
        gm_log(GPUMEM_LOG_WARNING, "vkgdr_memory_free: the context of the allocation is not "
                                   "current; the GPU keeps the memory until that context ends");
    }
    free_vulkan(block->memory);
}
