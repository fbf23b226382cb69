/* Mappings of memory objects, and flush and invalidate for non-coherent memory. */
#include "vulkan/internal.h"

/* ---- Map and unmap --------------------------------------------------------------------------- */

static gpumem_status check_place(const struct gm_vulkan_memory *memory, const void *place) {
    const struct gm_vulkan_facts *facts = &memory->vulkan->facts;
    if (!facts->placed)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s cannot map memory at a chosen address: it lacks %s, or its version of "
                       "it does not keep the range reserved",
                       facts->name, VK_EXT_MAP_MEMORY_PLACED_EXTENSION_NAME);
    uint64_t multiple = facts->place_multiple ? facts->place_multiple : 1;
    if ((uintptr_t)place % multiple == 0 && memory->size % multiple == 0)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                   "mapping %llu bytes at %p: both must be multiples of %llu",
                   (unsigned long long)memory->size, place, (unsigned long long)multiple);
}

static VkResult map_anywhere(const struct gm_vulkan_memory *memory, void **host) {
    const struct gm_vulkan *vulkan = memory->vulkan;
    return vulkan->table.vkMapMemory(vulkan->device, memory->memory, 0, VK_WHOLE_SIZE, 0, host);
}

static VkResult map_placed(const struct gm_vulkan_memory *memory, void *place, void **host) {
    const struct gm_vulkan *vulkan = memory->vulkan;
    const VkMemoryMapPlacedInfoEXT at = {.sType = VK_STRUCTURE_TYPE_MEMORY_MAP_PLACED_INFO_EXT,
                                         .pPlacedAddress = place};
    const VkMemoryMapInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_MAP_INFO_KHR,
        .pNext = &at,
        .flags = VK_MEMORY_MAP_PLACED_BIT_EXT,
        .memory = memory->memory,
        .size = memory->size,
    };
    return vulkan->table.vkMapMemory2KHR(vulkan->device, &info, host);
}

static gpumem_status map_locked(struct gm_vulkan_memory *memory, void *place, void **host) {
    if (atomic_load(&memory->host))
        return gm_fail(
            GPUMEM_ERROR_BUSY,
            "this Vulkan memory is already mapped: import it again to map it a second time");
    void *at = NULL;
    VkResult result = place ? map_placed(memory, place, &at) : map_anywhere(memory, &at);
    if (result != VK_SUCCESS)
        return gm_vulkan_fail(result, place ? "vkMapMemory2KHR" : "vkMapMemory",
                              "mapping %llu bytes%s", (unsigned long long)memory->size,
                              place ? " at a chosen address" : "");
    memory->placed = place != NULL;
    atomic_store(&memory->host, at);
    if (place && at != place) {
        gpumem_status status = gm_vulkan_unmap_locked(memory);
        return status != GPUMEM_OK
                   ? status
                   : gm_fail(GPUMEM_ERROR_DRIVER, "mapping %llu bytes at %p: Vulkan chose %p",
                             (unsigned long long)memory->size, place, at);
    }
    *host = at;
    return GPUMEM_OK;
}

gpumem_status gm_vulkan_map(struct gm_vulkan_memory *memory, void *place, void **host) {
    gpumem_status status = gm_vulkan_enter(memory->vulkan, "mapping memory");
    if (status == GPUMEM_OK && place)
        status = check_place(memory, place);
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&memory->lock);
    status = map_locked(memory, place, host);
    pthread_mutex_unlock(&memory->lock);
    return status;
}

gpumem_status gm_vulkan_unmap_locked(struct gm_vulkan_memory *memory) {
    const struct gm_vulkan *vulkan = memory->vulkan;
    if (memory->placed) {
        const VkMemoryUnmapInfoKHR info = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_UNMAP_INFO_KHR,
            .flags = VK_MEMORY_UNMAP_RESERVE_BIT_EXT,
            .memory = memory->memory,
        };
        VkResult result = vulkan->table.vkUnmapMemory2KHR(vulkan->device, &info);
        if (result != VK_SUCCESS)
            return gm_vulkan_fail(result, "vkUnmapMemory2KHR", "unmapping %llu bytes at %p",
                                  (unsigned long long)memory->size, atomic_load(&memory->host));
    } else {
        vulkan->table.vkUnmapMemory(vulkan->device, memory->memory);
    }
    atomic_store(&memory->host, NULL);
    return GPUMEM_OK;
}

static gpumem_status fail_unmapped(void) {
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "this Vulkan memory is not mapped");
}

gpumem_status gm_vulkan_unmap(struct gm_vulkan_memory *memory) {
    gpumem_status status = gm_vulkan_enter(memory->vulkan, "unmapping memory");
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&memory->lock);
    status = atomic_load(&memory->host) ? gm_vulkan_unmap_locked(memory) : fail_unmapped();
    pthread_mutex_unlock(&memory->lock);
    return status;
}

/* ---- Flush and invalidate -------------------------------------------------------------------- */

/* Whole atoms; the last one may be cut off by the end of the memory. */
static VkMappedMemoryRange widen(const struct gm_vulkan_memory *memory, uint64_t offset,
                                 uint64_t size) {
    uint64_t atom = memory->type.atom;
    uint64_t begin = offset / atom * atom;
    uint64_t over = (offset + size) % atom;
    uint64_t end = offset + size;
    if (over)
        end = memory->size - end > atom - over ? end + (atom - over) : memory->size;
    return (VkMappedMemoryRange){
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
        .memory = memory->memory,
        .offset = begin,
        .size = end == memory->size ? VK_WHOLE_SIZE : end - begin,
    };
}

static gpumem_status check_range(const struct gm_vulkan_memory *memory, uint64_t offset,
                                 uint64_t size) {
    if (!atomic_load(&memory->host))
        return fail_unmapped();
    if (offset <= memory->size && size <= memory->size - offset)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                   "%llu bytes at offset %llu are not in Vulkan memory of %llu bytes",
                   (unsigned long long)size, (unsigned long long)offset,
                   (unsigned long long)memory->size);
}

typedef VkResult(VKAPI_PTR *ranges_fn)(VkDevice, uint32_t, const VkMappedMemoryRange *);

static gpumem_status pass(struct gm_vulkan_memory *memory, uint64_t offset, uint64_t size,
                          ranges_fn call, const char *name) {
    gpumem_status status = check_range(memory, offset, size);
    if (status != GPUMEM_OK || memory->type.coherent || !size)
        return status;
    VkMappedMemoryRange range = widen(memory, offset, size);
    VkResult result = call(memory->vulkan->device, 1, &range);
    if (result == VK_SUCCESS)
        return GPUMEM_OK;
    return gm_vulkan_fail(result, name, "%llu bytes at offset %llu", (unsigned long long)size,
                          (unsigned long long)offset);
}

/* Without the lock: flushing is not a use of the memory object that Vulkan restricts to one thread,
 * and unmapping meanwhile would break the caller's stores as well. */
gpumem_status gm_vulkan_flush(struct gm_vulkan_memory *memory, uint64_t offset, uint64_t size) {
    gpumem_status status = gm_vulkan_enter(memory->vulkan, "flushing memory");
    if (status != GPUMEM_OK)
        return status;
    return pass(memory, offset, size, memory->vulkan->table.vkFlushMappedMemoryRanges,
                "vkFlushMappedMemoryRanges");
}

gpumem_status gm_vulkan_invalidate(struct gm_vulkan_memory *memory, uint64_t offset,
                                   uint64_t size) {
    gpumem_status status = gm_vulkan_enter(memory->vulkan, "invalidating memory");
    if (status != GPUMEM_OK)
        return status;
    return pass(memory, offset, size, memory->vulkan->table.vkInvalidateMappedMemoryRanges,
                "vkInvalidateMappedMemoryRanges");
}
