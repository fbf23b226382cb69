/* Chooses the memory type: in the device, visible to the host, coherent or not. */
#include "vulkan/internal.h"

#include <stdio.h>

#define WANTED (VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)

static bool is_coherent(VkMemoryPropertyFlags flags) {
    return flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
}

/* 0 is best, -1 unfit. Types of one rank are in Vulkan's order, which is by speed. */
static int rank_of(VkMemoryPropertyFlags type, unsigned flags) {
    if ((type & WANTED) != WANTED)
        return -1;
    if (flags & GM_VULKAN_REQUIRE_COHERENT)
        return is_coherent(type) ? 0 : -1;
    if (flags & GM_VULKAN_FORCE_NON_COHERENT)
        return is_coherent(type);
    return !is_coherent(type);
}

bool gm_vulkan_type_at(const struct gm_vulkan *vulkan, unsigned flags, unsigned rank,
                       struct gm_vulkan_type *type) {
    const VkPhysicalDeviceMemoryProperties *memory = &vulkan->memory;
    for (int fit = 0; fit < 2; fit++)
        for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
            if (rank_of(memory->memoryTypes[i].propertyFlags, flags) != fit || rank-- > 0)
                continue;
            *type = (struct gm_vulkan_type){
                .index = i,
                .coherent = is_coherent(memory->memoryTypes[i].propertyFlags) &&
                            !(flags & GM_VULKAN_FORCE_NON_COHERENT),
                .atom = vulkan->atom,
                .heap_bytes = memory->memoryHeaps[memory->memoryTypes[i].heapIndex].size,
            };
            return true;
        }
    return false;
}

static void list_types(const VkPhysicalDeviceMemoryProperties *memory, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < memory->memoryTypeCount && used < size; i++) {
        VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        used += (size_t)snprintf(text + used, size - used, "%s%u:%s%s%s", i ? ", " : "", i,
                                 flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT ? " device" : " host",
                                 flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT ? " visible" : "",
                                 flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT ? " coherent" : "");
    }
}

gpumem_status gm_vulkan_choose(struct gm_vulkan *vulkan, unsigned flags,
                               struct gm_vulkan_type *type) {
    const unsigned both = GM_VULKAN_REQUIRE_COHERENT | GM_VULKAN_FORCE_NON_COHERENT;
    if (flags & ~both)
        return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "unknown flags for mapped memory");
    if (gm_vulkan_type_at(vulkan, flags, 0, type))
        return GPUMEM_OK;
    char types[192];
    list_types(&vulkan->memory, types, sizeof types);
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "%s has no device memory type that the CPU can map%s (types %s)", vulkan->name,
                   flags & GM_VULKAN_REQUIRE_COHERENT ? " coherently" : "", types);
}

gpumem_status gm_vulkan_get_budget(struct gm_vulkan *vulkan, uint64_t *budget, uint64_t *usage) {
    struct gm_vulkan_type type;
    gpumem_status status = gm_vulkan_enter(vulkan, "the memory budget");
    if (status == GPUMEM_OK)
        status = gm_vulkan_choose(vulkan, 0, &type);
    if (status != GPUMEM_OK)
        return status;
    if (!vulkan->facts.has_budget)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s lacks the extension %s", vulkan->name,
                       VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    VkPhysicalDeviceMemoryBudgetPropertiesEXT heaps = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &heaps};
    vulkan->table.vkGetPhysicalDeviceMemoryProperties2(vulkan->physical, &memory);
    uint32_t heap = vulkan->memory.memoryTypes[type.index].heapIndex;
    *budget = heaps.heapBudget[heap];
    *usage = heaps.heapUsage[heap];
    return GPUMEM_OK;
}
