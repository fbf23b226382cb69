/* Instances and physical devices: what they say of themselves. */
#include "icd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct physical *physical_of(VkPhysicalDevice device) {
    return (struct physical *)(void *)device;
}

static const struct settings *settings_of(VkPhysicalDevice device) {
    return &physical_of(device)->instance->settings;
}

/* Copies as much of a list as fits, as every function that lists things does. */
static VkResult list(const void *from, uint32_t have, size_t size, void *to, uint32_t *count) {
    if (!to) {
        *count = have;
        return VK_SUCCESS;
    }
    uint32_t fit = *count < have ? *count : have;
    if (fit)
        memcpy(to, from, fit * size);
    *count = fit;
    return fit < have ? VK_INCOMPLETE : VK_SUCCESS;
}

VkResult VKAPI_CALL icd_vkEnumerateInstanceVersion(uint32_t *version) {
    ICD_FAULT();
    *version = VK_API_VERSION_1_1;
    return VK_SUCCESS;
}

VkResult VKAPI_CALL icd_vkEnumerateInstanceExtensionProperties(const char *layer, uint32_t *count,
                                                               VkExtensionProperties *all) {
    ICD_FAULT();
    (void)layer;
    return list(NULL, 0, sizeof *all, all, count);
}

VkResult VKAPI_CALL icd_vkCreateInstance(const VkInstanceCreateInfo *info,
                                         const VkAllocationCallbacks *callbacks,
                                         VkInstance *instance) {
    fault_from_environment();
    ICD_FAULT();
    (void)callbacks;
    if (info->enabledExtensionCount)
        return VK_ERROR_EXTENSION_NOT_PRESENT;
    struct instance *made = calloc(1, sizeof *made);
    if (!made)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    set_loader_magic_value(made);
    settings_read(&made->settings);
    for (uint32_t i = 0; i < MOST_DEVICES; i++) {
        set_loader_magic_value(&made->physical[i]);
        made->physical[i].instance = made;
        made->physical[i].number = i;
    }
    icd_lock();
    icd_live.instances++;
    icd_unlock();
    *instance = (VkInstance)(void *)made;
    return VK_SUCCESS;
}

void VKAPI_CALL icd_vkDestroyInstance(VkInstance instance, const VkAllocationCallbacks *callbacks) {
    struct instance *ours = (struct instance *)(void *)instance;
    count_call(__func__);
    (void)callbacks;
    if (!ours)
        return;
    icd_lock();
    if (ours->devices)
        violation("vkDestroyInstance: %u devices are alive", ours->devices);
    icd_live.instances--;
    icd_unlock();
    free(ours);
}

VkResult VKAPI_CALL icd_vkEnumeratePhysicalDevices(VkInstance instance, uint32_t *count,
                                                   VkPhysicalDevice *devices) {
    ICD_FAULT();
    struct instance *ours = (struct instance *)(void *)instance;
    VkPhysicalDevice all[MOST_DEVICES];
    for (uint32_t i = 0; i < MOST_DEVICES; i++)
        all[i] = (VkPhysicalDevice)(void *)&ours->physical[i];
    return list(all, ours->settings.devices, sizeof all[0], devices, count);
}

/* ---- Properties ------------------------------------------------------------------------------ */

void VKAPI_CALL icd_vkGetPhysicalDeviceProperties(VkPhysicalDevice device,
                                                  VkPhysicalDeviceProperties *properties) {
    count_call(__func__);
    const struct physical *ours = physical_of(device);
    memset(properties, 0, sizeof *properties);
    properties->apiVersion = VK_API_VERSION_1_1;
    properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_CPU;
    snprintf(properties->deviceName, sizeof properties->deviceName, "test driver, device %u",
             ours->number);
    properties->limits.maxMemoryAllocationCount = ours->instance->settings.allocations;
    properties->limits.nonCoherentAtomSize = ours->instance->settings.atom;
    properties->limits.minMemoryMapAlignment = 4096;
}

void VKAPI_CALL icd_vkGetPhysicalDeviceProperties2(VkPhysicalDevice device,
                                                   VkPhysicalDeviceProperties2 *properties) {
    const struct physical *ours = physical_of(device);
    icd_vkGetPhysicalDeviceProperties(device, &properties->properties);
    count_call(__func__);
    for (VkBaseOutStructure *next = properties->pNext; next; next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES) {
            VkPhysicalDeviceIDProperties *id = (void *)next;
            memcpy(id->deviceUUID, ours->instance->settings.uuids[ours->number], VK_UUID_SIZE);
            memset(id->driverUUID, 0, VK_UUID_SIZE);
            id->deviceLUIDValid = VK_FALSE;
        } else if (next->sType ==
                   VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_PROPERTIES_EXT) {
            VkPhysicalDeviceMapMemoryPlacedPropertiesEXT *placed = (void *)next;
            placed->minPlacedMemoryMapAlignment = VULKAN_ICD_PLACE_MULTIPLE;
        }
    }
}

void VKAPI_CALL icd_vkGetPhysicalDeviceFeatures(VkPhysicalDevice device,
                                                VkPhysicalDeviceFeatures *features) {
    count_call(__func__);
    (void)device;
    memset(features, 0, sizeof *features);
}

/* No driver offers placing ranges without refusing it then, as NVIDIA's does. */
void VKAPI_CALL icd_vkGetPhysicalDeviceFeatures2(VkPhysicalDevice device,
                                                 VkPhysicalDeviceFeatures2 *features) {
    count_call(__func__);
    memset(&features->features, 0, sizeof features->features);
    for (VkBaseOutStructure *next = features->pNext; next; next = next->pNext)
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_FEATURES_EXT) {
            VkPhysicalDeviceMapMemoryPlacedFeaturesEXT *placed = (void *)next;
            placed->memoryMapPlaced = settings_of(device)->placed;
            placed->memoryMapRangePlaced = VK_FALSE;
            placed->memoryUnmapReserve = settings_of(device)->reserve;
        }
}

static void add_type(VkPhysicalDeviceMemoryProperties *memory, VkMemoryPropertyFlags flags,
                     uint32_t heap) {
    memory->memoryTypes[memory->memoryTypeCount++] =
        (VkMemoryType){.propertyFlags = flags, .heapIndex = heap};
}

void VKAPI_CALL icd_vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice device,
                                                        VkPhysicalDeviceMemoryProperties *memory) {
    const struct settings *settings = settings_of(device);
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    count_call(__func__);
    memset(memory, 0, sizeof *memory);
    memory->memoryHeapCount = 2;
    memory->memoryHeaps[HEAP_DEVICE] =
        (VkMemoryHeap){.size = settings->heap, .flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
    memory->memoryHeaps[HEAP_HOST] = (VkMemoryHeap){.size = UINT64_C(4) << 30};
    add_type(memory, local, HEAP_DEVICE);
    add_type(memory, visible | coherent, HEAP_HOST);
    if (settings->non_coherent)
        add_type(memory, local | visible, HEAP_DEVICE);
    if (settings->coherent)
        add_type(memory, local | visible | coherent, HEAP_DEVICE);
}

void VKAPI_CALL icd_vkGetPhysicalDeviceMemoryProperties2(
    VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2 *memory) {
    icd_vkGetPhysicalDeviceMemoryProperties(device, &memory->memoryProperties);
    count_call(__func__);
    for (VkBaseOutStructure *next = memory->pNext; next; next = next->pNext)
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
            VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = (void *)next;
            icd_lock();
            budget->heapBudget[HEAP_DEVICE] = settings_of(device)->budget;
            budget->heapUsage[HEAP_DEVICE] = icd_allocated;
            icd_unlock();
        }
}

/* The first family is of no use for a device, so that who takes it blindly is found out. */
void VKAPI_CALL icd_vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice device,
                                                             uint32_t *count,
                                                             VkQueueFamilyProperties *families) {
    static const VkQueueFamilyProperties all[] = {
        {.queueFlags = VK_QUEUE_SPARSE_BINDING_BIT, .queueCount = 1},
        {.queueFlags = VK_QUEUE_TRANSFER_BIT, .queueCount = 2},
    };
    count_call(__func__);
    (void)device;
    (void)list(all, 2, sizeof all[0], families, count);
}

void VKAPI_CALL icd_vkGetPhysicalDeviceFormatProperties(VkPhysicalDevice device, VkFormat format,
                                                        VkFormatProperties *properties) {
    count_call(__func__);
    (void)device, (void)format;
    memset(properties, 0, sizeof *properties);
}

VkResult VKAPI_CALL icd_vkGetPhysicalDeviceImageFormatProperties(
    VkPhysicalDevice device, VkFormat format, VkImageType type, VkImageTiling tiling,
    VkImageUsageFlags usage, VkImageCreateFlags flags, VkImageFormatProperties *properties) {
    ICD_FAULT();
    (void)device, (void)format, (void)type, (void)tiling, (void)usage, (void)flags;
    memset(properties, 0, sizeof *properties);
    return VK_ERROR_FORMAT_NOT_SUPPORTED;
}

void VKAPI_CALL icd_vkGetPhysicalDeviceSparseImageFormatProperties(
    VkPhysicalDevice device, VkFormat format, VkImageType type, VkSampleCountFlagBits samples,
    VkImageUsageFlags usage, VkImageTiling tiling, uint32_t *count,
    VkSparseImageFormatProperties *properties) {
    count_call(__func__);
    (void)device, (void)format, (void)type, (void)samples, (void)usage, (void)tiling;
    (void)list(NULL, 0, sizeof *properties, properties, count);
}

VkResult VKAPI_CALL icd_vkEnumerateDeviceExtensionProperties(VkPhysicalDevice device,
                                                             const char *layer, uint32_t *count,
                                                             VkExtensionProperties *properties) {
    ICD_FAULT();
    (void)layer;
    static const char *const names[] = {
        VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
        VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
        VK_KHR_MAP_MEMORY_2_EXTENSION_NAME,
        VK_EXT_MAP_MEMORY_PLACED_EXTENSION_NAME,
    };
    VkExtensionProperties all[4] = {0};
    uint32_t have = 0;
    for (uint32_t i = 0; i < (settings_of(device)->placed ? 4u : 2u); i++) {
        if (settings_lack(settings_of(device), names[i]))
            continue;
        all[have].specVersion = 1;
        snprintf(all[have++].extensionName, sizeof all[0].extensionName, "%s", names[i]);
    }
    return list(all, have, sizeof all[0], properties, count);
}
