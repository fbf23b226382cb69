/* Instance, the physical device of one UUID, and a logical device that maps memory. */
#include "vulkan/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpumem_status make_instance(struct gm_vulkan *vulkan,
                                   const struct gm_vulkan_library *library) {
    gpumem_status status = gm_vulkan_fill_global(library, &vulkan->table);
    if (status != GPUMEM_OK)
        return status;
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pEngineName = "gpumem",
        .apiVersion = VK_API_VERSION_1_1, /* deviceUUID and external memory are core since this
                                           * version */
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
    };
    VkResult result = vulkan->table.vkCreateInstance(&info, NULL, &vulkan->instance);
    if (result != VK_SUCCESS) {
        vulkan->instance = VK_NULL_HANDLE;
        return gm_vulkan_fail(result, "vkCreateInstance", "cannot create a Vulkan 1.1 instance");
    }
    return gm_vulkan_fill_instance(library, vulkan->instance, &vulkan->table);
}

/* ---- Which device ---------------------------------------------------------------------------- */

/* All of them; the caller frees the list. Their number may change between the two queries. */
static gpumem_status list_devices(const struct gm_vulkan *vulkan, VkPhysicalDevice **list,
                                  uint32_t *count) {
    VkPhysicalDevice *all = NULL;
    VkResult result;
    uint32_t number = 0;
    do {
        free(all);
        all = NULL;
        result = vulkan->table.vkEnumeratePhysicalDevices(vulkan->instance, &number, NULL);
        if (result == VK_SUCCESS && number) {
            all = calloc(number, sizeof *all);
            if (!all)
                return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a list of devices");
            result = vulkan->table.vkEnumeratePhysicalDevices(vulkan->instance, &number, all);
        }
    } while (result == VK_INCOMPLETE);
    if (result != VK_SUCCESS) {
        free(all);
        return gm_vulkan_fail(result, "vkEnumeratePhysicalDevices", "cannot list the devices");
    }
    *list = all;
    *count = number;
    return GPUMEM_OK;
}

static bool has_uuid(struct gm_vulkan *vulkan, VkPhysicalDevice physical,
                     char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE],
                     unsigned char uuid[VK_UUID_SIZE]) {
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
    vulkan->table.vkGetPhysicalDeviceProperties2(physical, &properties);
    snprintf(name, VK_MAX_PHYSICAL_DEVICE_NAME_SIZE, "%s", properties.properties.deviceName);
    memcpy(uuid, id.deviceUUID, VK_UUID_SIZE);
    return memcmp(id.deviceUUID, vulkan->uuid, sizeof vulkan->uuid) == 0;
}

/* With the UUID, which a software GPU can be given: gpumem run --uuid. */
static void note_other(char *others, size_t size, const char *name, const unsigned char *uuid) {
    size_t used = strlen(others);
    used += (size_t)snprintf(others + used, size - used, "%s%s, UUID ", used ? "; " : "", name);
    for (size_t i = 0; i < VK_UUID_SIZE && used < size; i++)
        used += (size_t)snprintf(others + used, size - used, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static gpumem_status find_device(struct gm_vulkan *vulkan) {
    VkPhysicalDevice *all = NULL;
    uint32_t count = 0;
    gpumem_status status = list_devices(vulkan, &all, &count);
    if (status != GPUMEM_OK)
        return status;
    char others[512] = "";
    for (uint32_t i = 0; i < count && !vulkan->physical; i++) {
        unsigned char uuid[VK_UUID_SIZE];
        if (has_uuid(vulkan, all[i], vulkan->name, uuid))
            vulkan->physical = all[i];
        else
            note_other(others, sizeof others, vulkan->name, uuid);
    }
    free(all);
    if (vulkan->physical)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "it has no device with this UUID%s%s%s",
                   count ? " (only " : ", nor any other", others, count ? ")" : "");
}

/* ---- What the device has --------------------------------------------------------------------- */

struct extensions {
    bool external_memory_fd, map_memory2, placed, budget;
};

static void note_extension(const char *name, struct extensions *has) {
    has->external_memory_fd |= strcmp(name, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) == 0;
    has->map_memory2 |= strcmp(name, VK_KHR_MAP_MEMORY_2_EXTENSION_NAME) == 0;
    has->placed |= strcmp(name, VK_EXT_MAP_MEMORY_PLACED_EXTENSION_NAME) == 0;
    has->budget |= strcmp(name, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) == 0;
}

static gpumem_status list_extensions(struct gm_vulkan *vulkan, struct extensions *has) {
    const struct gm_vulkan_table *vk = &vulkan->table;
    VkExtensionProperties *all = NULL;
    uint32_t count = 0;
    VkResult result =
        vk->vkEnumerateDeviceExtensionProperties(vulkan->physical, NULL, &count, NULL);
    if (result == VK_SUCCESS && count) {
        all = calloc(count, sizeof *all);
        if (!all)
            return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a list of extensions");
        result = vk->vkEnumerateDeviceExtensionProperties(vulkan->physical, NULL, &count, all);
    }
    *has = (struct extensions){.budget = false};
    for (uint32_t i = 0; all && result == VK_SUCCESS && i < count; i++)
        note_extension(all[i].extensionName, has);
    free(all);
    if (result != VK_SUCCESS)
        return gm_vulkan_fail(result, "vkEnumerateDeviceExtensionProperties",
                              "cannot list the extensions of %s", vulkan->name);
    if (!has->external_memory_fd)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s lacks the extension %s", vulkan->name,
                       VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    return GPUMEM_OK;
}

/* A mapping at a chosen place is useful only if unmapping leaves the range reserved. */
static bool can_place(struct gm_vulkan *vulkan, const struct extensions *has) {
    if (!has->placed || !has->map_memory2)
        return false;
    VkPhysicalDeviceMapMemoryPlacedFeaturesEXT placed = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_FEATURES_EXT};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &placed};
    vulkan->table.vkGetPhysicalDeviceFeatures2(vulkan->physical, &features);
    return placed.memoryMapPlaced && placed.memoryUnmapReserve;
}

static void read_properties(struct gm_vulkan *vulkan) {
    VkPhysicalDeviceMapMemoryPlacedPropertiesEXT placed = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = vulkan->facts.placed ? &placed : NULL,
    };
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    vulkan->table.vkGetPhysicalDeviceProperties2(vulkan->physical, &properties);
    vulkan->table.vkGetPhysicalDeviceMemoryProperties2(vulkan->physical, &memory);
    vulkan->memory = memory.memoryProperties;
    const VkPhysicalDeviceLimits *limits = &properties.properties.limits;
    vulkan->atom = limits->nonCoherentAtomSize ? limits->nonCoherentAtomSize : 1;
    vulkan->facts.most_memories = limits->maxMemoryAllocationCount;
    vulkan->facts.place_multiple = placed.minPlacedMemoryMapAlignment;
    struct gm_vulkan_type type;
    if (gm_vulkan_type_at(vulkan, 0, 0, &type)) {
        vulkan->facts.heap_bytes = type.heap_bytes;
        vulkan->facts.coherent = type.coherent;
    }
}

/* ---- The logical device ---------------------------------------------------------------------- */

/* A device needs a queue, although nothing is ever submitted. Families may have none, or only ones
 * that need features which are not enabled. */
static gpumem_status choose_family(struct gm_vulkan *vulkan, uint32_t *family) {
    const VkQueueFlags usable =
        VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
    VkQueueFamilyProperties families[32];
    uint32_t count = sizeof families / sizeof families[0];
    vulkan->table.vkGetPhysicalDeviceQueueFamilyProperties(vulkan->physical, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueCount && (families[i].queueFlags & usable)) {
            *family = i;
            return GPUMEM_OK;
        }
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s has no queue for transfers", vulkan->name);
}

static gpumem_status make_device(struct gm_vulkan *vulkan) {
    uint32_t family = 0;
    gpumem_status status = choose_family(vulkan, &family);
    if (status != GPUMEM_OK)
        return status;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    /* The feature for placing ranges is not enabled: NVIDIA's driver refuses a device with it. */
    VkPhysicalDeviceMapMemoryPlacedFeaturesEXT placed = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_FEATURES_EXT,
        .memoryMapPlaced = VK_TRUE,
        .memoryUnmapReserve = VK_TRUE,
    };
    const char *extensions[4] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
    uint32_t count = 1;
    if (vulkan->facts.has_budget)
        extensions[count++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    if (vulkan->facts.placed) {
        extensions[count++] = VK_KHR_MAP_MEMORY_2_EXTENSION_NAME;
        extensions[count++] = VK_EXT_MAP_MEMORY_PLACED_EXTENSION_NAME;
    }
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = vulkan->facts.placed ? &placed : NULL,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = count,
        .ppEnabledExtensionNames = extensions,
    };
    VkResult result = vulkan->table.vkCreateDevice(vulkan->physical, &info, NULL, &vulkan->device);
    if (result != VK_SUCCESS) {
        vulkan->device = VK_NULL_HANDLE;
        return gm_vulkan_fail(result, "vkCreateDevice", "%s cannot be used", vulkan->name);
    }
    status = gm_vulkan_fill_device(vulkan->device, &vulkan->table);
    if (!vulkan->table.vkMapMemory2KHR || !vulkan->table.vkUnmapMemory2KHR)
        vulkan->facts.placed = false;
    return status;
}

gpumem_status gm_vulkan_make(struct gm_vulkan *vulkan, const struct gm_vulkan_library *library,
                             bool *found) {
    struct extensions has = {.budget = false};
    *found = false;
    gpumem_status status = make_instance(vulkan, library);
    if (status == GPUMEM_OK)
        status = find_device(vulkan);
    if (status == GPUMEM_OK) {
        *found = true;
        status = list_extensions(vulkan, &has);
    }
    if (status == GPUMEM_OK) {
        vulkan->facts.has_budget = has.budget;
        vulkan->facts.placed = can_place(vulkan, &has);
        read_properties(vulkan);
        status = make_device(vulkan);
    }
    if (status != GPUMEM_OK)
        gm_vulkan_unmake(vulkan);
    return status;
}

/* A function that was not found cannot be called: then the instance remains. */
void gm_vulkan_unmake(struct gm_vulkan *vulkan) {
    if (vulkan->device && vulkan->table.vkDestroyDevice)
        vulkan->table.vkDestroyDevice(vulkan->device, NULL);
    if (vulkan->instance && vulkan->table.vkDestroyInstance)
        vulkan->table.vkDestroyInstance(vulkan->instance, NULL);
    vulkan->device = VK_NULL_HANDLE;
    vulkan->physical = VK_NULL_HANDLE;
    vulkan->instance = VK_NULL_HANDLE;
    vulkan->table = (struct gm_vulkan_table){.vkCreateInstance = NULL};
}
