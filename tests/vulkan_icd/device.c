/* Logical devices. */
#include "icd.h"

#include <stdlib.h>
#include <string.h>

static bool knows(const struct settings *settings, const char *name) {
    static const char *const always[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                                         VK_EXT_MEMORY_BUDGET_EXTENSION_NAME};
    static const char *const placed[] = {VK_KHR_MAP_MEMORY_2_EXTENSION_NAME,
                                         VK_EXT_MAP_MEMORY_PLACED_EXTENSION_NAME};
    for (int i = 0; i < 2; i++)
        if (strcmp(name, always[i]) == 0 || (settings->placed && strcmp(name, placed[i]) == 0))
            return !settings_lack(settings, name);
    return false;
}

static VkResult check_extensions(const struct settings *settings, const VkDeviceCreateInfo *info) {
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        if (!knows(settings, info->ppEnabledExtensionNames[i]))
            return VK_ERROR_EXTENSION_NOT_PRESENT;
    return VK_SUCCESS;
}

/* Placing ranges is refused, as NVIDIA's driver refuses it. */
static VkResult check_features(const struct settings *settings, const VkDeviceCreateInfo *info,
                               bool *wants_placed) {
    *wants_placed = false;
    for (const VkBaseInStructure *next = info->pNext; next; next = next->pNext) {
        if (next->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_FEATURES_EXT)
            continue;
        const VkPhysicalDeviceMapMemoryPlacedFeaturesEXT *placed = (const void *)next;
        if (placed->memoryMapRangePlaced || (placed->memoryMapPlaced && !settings->placed) ||
            (placed->memoryUnmapReserve && !settings->reserve))
            return VK_ERROR_FEATURE_NOT_PRESENT;
        *wants_placed = placed->memoryMapPlaced;
    }
    return VK_SUCCESS;
}

static VkResult check_queues(const VkDeviceCreateInfo *info) {
    for (uint32_t i = 0; i < info->queueCreateInfoCount; i++)
        if (info->pQueueCreateInfos[i].queueFamilyIndex != 1)
            return VK_ERROR_INITIALIZATION_FAILED;
    if (!info->queueCreateInfoCount)
        violation("vkCreateDevice: no queue");
    return VK_SUCCESS;
}

VkResult VKAPI_CALL icd_vkCreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                       const VkAllocationCallbacks *callbacks, VkDevice *device) {
    ICD_FAULT();
    (void)callbacks;
    struct instance *instance = ((struct physical *)(void *)physical)->instance;
    bool placed = false;
    VkResult result = check_extensions(&instance->settings, info);
    if (result == VK_SUCCESS)
        result = check_features(&instance->settings, info, &placed);
    if (result == VK_SUCCESS)
        result = check_queues(info);
    struct device *made = result == VK_SUCCESS ? calloc(1, sizeof *made) : NULL;
    if (!made)
        return result == VK_SUCCESS ? VK_ERROR_OUT_OF_HOST_MEMORY : result;
    set_loader_magic_value(made);
    set_loader_magic_value(&made->queue);
    made->instance = instance;
    made->settings = &instance->settings;
    made->placed = placed;
    icd_lock();
    icd_live.devices++;
    instance->devices++;
    icd_unlock();
    *device = (VkDevice)(void *)made;
    return VK_SUCCESS;
}

void VKAPI_CALL icd_vkDestroyDevice(VkDevice device, const VkAllocationCallbacks *callbacks) {
    struct device *ours = (struct device *)(void *)device;
    count_call(__func__);
    (void)callbacks;
    if (!ours)
        return;
    icd_lock();
    if (ours->memories)
        violation("vkDestroyDevice: %u memory objects are alive", ours->memories);
    icd_live.devices--;
    ours->instance->devices--;
    icd_unlock();
    free(ours);
}

void VKAPI_CALL icd_vkGetDeviceQueue(VkDevice device, uint32_t family, uint32_t index,
                                     VkQueue *queue) {
    struct device *ours = (struct device *)(void *)device;
    count_call(__func__);
    (void)family, (void)index;
    *queue = (VkQueue)(void *)&ours->queue;
}
