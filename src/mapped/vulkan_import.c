/* Chunks that Vulkan imports and maps. */
#include "base/log.h"
#include "mapped/mapper.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "vulkan/device.h"

#include <unistd.h>

static gpumem_status open_import(struct gm_mapper *mapper) {
    gpumem_status status = gm_mapper_open_vulkan(mapper);
    if (status != GPUMEM_OK || gm_vulkan_get_facts(mapper->vulkan)->placed)
        return status;
    gm_mapper_close_vulkan(mapper);
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "Vulkan lacks VK_EXT_map_memory_placed");
}

static bool free_memory(struct gm_vulkan_memory *memory) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    bool freed = gm_vulkan_free(memory) == GPUMEM_OK;
    if (!freed)
        gm_log(GPUMEM_LOG_ERROR, "memory stays mapped for the CPU: %s",
               gpumem_last_error()->message);
    gm_error_restore(&saved);
    return freed;
}

static gpumem_status map(struct gm_mapper *mapper, struct gm_piece *piece) {
    int fd;
    struct gm_vulkan_memory *memory = NULL;
    void *host = NULL;
    gpumem_status status = gm_vmm_export_fd(mapper->device, piece->handle, &fd);
    if (status != GPUMEM_OK)
        return status;
    status =
        gm_vulkan_import(mapper->vulkan, fd, piece->bytes, gm_mapper_vulkan_flags(mapper), &memory);
    close(fd);
    if (status != GPUMEM_OK)
        return status;
    status = gm_vulkan_map(memory, piece->place, &host);
    if (status != GPUMEM_OK) {
        if (free_memory(memory))
            (void)gm_place_reserve(piece->place, piece->bytes);
        return status;
    }
    piece->memory = memory;
    return GPUMEM_OK;
}

static bool unmap(struct gm_mapper *mapper, struct gm_piece *piece) {
    (void)mapper;
    return free_memory(piece->memory);
}

static gpumem_status flush(const struct gm_piece *piece, size_t offset, size_t bytes) {
    return gm_vulkan_flush(piece->memory, offset, bytes);
}

static gpumem_status invalidate(const struct gm_piece *piece, size_t offset, size_t bytes) {
    return gm_vulkan_invalidate(piece->memory, offset, bytes);
}

const struct gm_mapper_ops gm_mapper_vulkan_import = {
    .method = GPUMEM_MAPPED_VULKAN_IMPORT,
    .open = open_import,
    .close = gm_mapper_close_vulkan,
    .try_out = gm_mapper_try_chunk,
    .map = map,
    .unmap = unmap,
    .flush = flush,
    .invalidate = invalidate,
};
