/* Mappings, and what flushing and invalidating do where the CPU has a copy. */
#include "memory.h"

#include <string.h>
#include <sys/mman.h>

#define READ_WRITE (PROT_READ | PROT_WRITE)

/* ---- Map ------------------------------------------------------------------------------------- */

static void *map_bytes(const struct memory *memory, void *place, bool file) {
    int flags = (file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | (place ? MAP_FIXED : 0);
    void *at = mmap(place, memory->size, READ_WRITE, flags, file ? memory->file : -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void unmap_bytes(void *at, const struct memory *memory) {
    if (at)
        munmap(at, memory->size);
}

/* What the CPU gets is a copy of the bytes as they are now. */
static bool map_copy(struct memory *memory, void *place) {
    memory->device_bytes = map_bytes(memory, NULL, true);
    memory->known = map_bytes(memory, NULL, false);
    memory->map = memory->device_bytes && memory->known ? map_bytes(memory, place, false) : NULL;
    if (!memory->map) {
        unmap_bytes(memory->device_bytes, memory);
        unmap_bytes(memory->known, memory);
        memory->device_bytes = memory->known = NULL;
        return false;
    }
    memcpy(memory->known, memory->device_bytes, memory->size);
    memcpy(memory->map, memory->device_bytes, memory->size);
    return true;
}

static VkResult map_memory(const char *function, struct memory *memory, void *place, void **host) {
    if (memory->map || !memory->visible) {
        violation("%s: %s", function, memory->map ? "mapped already" : "not visible to the host");
        return VK_ERROR_MEMORY_MAP_FAILED;
    }
    if (!memory->coherent)
        map_copy(memory, place);
    else
        memory->map = map_bytes(memory, place, true);
    if (!memory->map)
        return VK_ERROR_MEMORY_MAP_FAILED;
    memory->placed = place != NULL;
    icd_lock();
    icd_live.maps++;
    icd_unlock();
    *host = memory->map;
    return VK_SUCCESS;
}

VkResult VKAPI_CALL icd_vkMapMemory(VkDevice device, VkDeviceMemory handle, VkDeviceSize offset,
                                    VkDeviceSize size, VkMemoryMapFlags flags, void **host) {
    ICD_FAULT();
    (void)device, (void)flags;
    struct memory *memory = memory_of("vkMapMemory", handle);
    if (!memory)
        return VK_ERROR_MEMORY_MAP_FAILED;
    if (offset || (size != VK_WHOLE_SIZE && size != memory->size)) {
        violation("vkMapMemory: this driver maps whole memory objects only");
        return VK_ERROR_MEMORY_MAP_FAILED;
    }
    memory_enter("vkMapMemory", memory);
    VkResult result = map_memory("vkMapMemory", memory, NULL, host);
    memory_leave(memory);
    return result;
}

static void *place_of(const VkMemoryMapInfoKHR *info) {
    for (const VkBaseInStructure *next = info->pNext; next; next = next->pNext)
        if (next->sType == VK_STRUCTURE_TYPE_MEMORY_MAP_PLACED_INFO_EXT)
            return ((const VkMemoryMapPlacedInfoEXT *)(const void *)next)->pPlacedAddress;
    return NULL;
}

static bool check_place(const struct memory *memory, const VkMemoryMapInfoKHR *info) {
    const void *place = place_of(info);
    if (!memory->device->placed)
        violation("vkMapMemory2KHR: the device was made without memoryMapPlaced");
    else if (info->offset || (info->size != VK_WHOLE_SIZE && info->size != memory->size))
        violation("vkMapMemory2KHR: a range is placed without memoryMapRangePlaced");
    else if (!place || (uintptr_t)place % VULKAN_ICD_PLACE_MULTIPLE != 0 ||
             memory->size % VULKAN_ICD_PLACE_MULTIPLE != 0)
        violation("vkMapMemory2KHR: place or size is not a multiple of "
                  "minPlacedMemoryMapAlignment");
    else
        return true;
    return false;
}

VkResult VKAPI_CALL icd_vkMapMemory2KHR(VkDevice device, const VkMemoryMapInfoKHR *info,
                                        void **host) {
    ICD_FAULT();
    (void)device;
    struct memory *memory = memory_of("vkMapMemory2KHR", info->memory);
    bool placed = info->flags & VK_MEMORY_MAP_PLACED_BIT_EXT;
    if (!memory || (placed && !check_place(memory, info)))
        return VK_ERROR_MEMORY_MAP_FAILED;
    memory_enter("vkMapMemory2KHR", memory);
    VkResult result = map_memory("vkMapMemory2KHR", memory, placed ? place_of(info) : NULL, host);
    memory_leave(memory);
    return result;
}

/* ---- Unmap ----------------------------------------------------------------------------------- */

void memory_unmap(struct memory *memory, bool reserve) {
    if (!memory->map)
        return;
    if (reserve)
        mmap(memory->map, memory->size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    else
        unmap_bytes(memory->map, memory);
    unmap_bytes(memory->device_bytes, memory);
    unmap_bytes(memory->known, memory);
    memory->map = memory->device_bytes = memory->known = NULL;
    icd_lock();
    icd_live.maps--;
    icd_unlock();
}

static void unmap(const char *function, struct memory *memory, bool reserve) {
    memory_enter(function, memory);
    if (!memory->map)
        violation("%s: not mapped", function);
    memory_unmap(memory, reserve);
    memory_leave(memory);
}

void VKAPI_CALL icd_vkUnmapMemory(VkDevice device, VkDeviceMemory handle) {
    count_call(__func__);
    (void)device;
    struct memory *memory = memory_of("vkUnmapMemory", handle);
    if (memory)
        unmap("vkUnmapMemory", memory, false);
}

VkResult VKAPI_CALL icd_vkUnmapMemory2KHR(VkDevice device, const VkMemoryUnmapInfoKHR *info) {
    ICD_FAULT();
    (void)device;
    struct memory *memory = memory_of("vkUnmapMemory2KHR", info->memory);
    bool reserve = info->flags & VK_MEMORY_UNMAP_RESERVE_BIT_EXT;
    if (!memory)
        return VK_ERROR_MEMORY_MAP_FAILED;
    if (reserve && !memory->device->settings->reserve)
        violation("vkUnmapMemory2KHR: the device was made without memoryUnmapReserve");
    unmap("vkUnmapMemory2KHR", memory, reserve);
    return VK_SUCCESS;
}

/* ---- Flush and invalidate -------------------------------------------------------------------- */

/* The end of a range, or 0 with a violation. */
static uint64_t check_range(const char *function, const struct memory *memory,
                            const VkMappedMemoryRange *range) {
    uint64_t end = range->size == VK_WHOLE_SIZE ? memory->size : range->offset + range->size;
    uint64_t atom = memory->device->settings->atom;
    if (!memory->map)
        violation("%s: not mapped", function);
    else if (range->offset % atom != 0 || range->offset > memory->size || end > memory->size ||
             (end % atom != 0 && end != memory->size))
        violation("%s: the range is not one of whole atoms within the memory", function);
    else
        return end;
    return 0;
}

/* What the CPU did not write is left alone: the device may have written it meanwhile. */
static void write_changes(struct memory *memory, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; i++)
        if (memory->map[i] != memory->known[i])
            memory->device_bytes[i] = memory->known[i] = memory->map[i];
}

static void read_again(struct memory *memory, uint64_t begin, uint64_t end) {
    memcpy(memory->known + begin, memory->device_bytes + begin, end - begin);
    memcpy(memory->map + begin, memory->known + begin, end - begin);
}

static VkResult pass(const char *function, uint32_t count, const VkMappedMemoryRange *ranges,
                     void (*copy)(struct memory *, uint64_t, uint64_t)) {
    for (uint32_t i = 0; i < count; i++) {
        struct memory *memory = memory_of(function, ranges[i].memory);
        uint64_t end = memory ? check_range(function, memory, &ranges[i]) : 0;
        if (end && memory->known)
            copy(memory, ranges[i].offset, end);
    }
    return VK_SUCCESS;
}

VkResult VKAPI_CALL icd_vkFlushMappedMemoryRanges(VkDevice device, uint32_t count,
                                                  const VkMappedMemoryRange *ranges) {
    ICD_FAULT();
    (void)device;
    return pass("vkFlushMappedMemoryRanges", count, ranges, write_changes);
}

VkResult VKAPI_CALL icd_vkInvalidateMappedMemoryRanges(VkDevice device, uint32_t count,
                                                       const VkMappedMemoryRange *ranges) {
    ICD_FAULT();
    (void)device;
    return pass("vkInvalidateMappedMemoryRanges", count, ranges, read_again);
}
