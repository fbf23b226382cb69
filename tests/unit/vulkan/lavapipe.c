#include "lavapipe.h"

#include "vulkan/internal.h"

#include <stdio.h>
#include <string.h>

#define MOST 16

static bool is_on_cpu(const struct gm_vulkan_table *vk, VkPhysicalDevice device,
                      unsigned char uuid[16]) {
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
    vk->vkGetPhysicalDeviceProperties2(device, &properties);
    memcpy(uuid, id.deviceUUID, 16);
    return properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

static bool find_in(const struct gm_vulkan_library *library, unsigned char uuid[16]) {
    struct gm_vulkan_table vk;
    VkInstance instance;
    VkPhysicalDevice all[MOST];
    uint32_t count = MOST;
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    bool found = false;
    if (gm_vulkan_fill_global(library, &vk) != GPUMEM_OK ||
        vk.vkCreateInstance(&info, NULL, &instance) != VK_SUCCESS)
        return false;
    if (gm_vulkan_fill_instance(library, instance, &vk) != GPUMEM_OK)
        return false;
    if (vk.vkEnumeratePhysicalDevices(instance, &count, all) >= VK_SUCCESS)
        for (uint32_t i = 0; i < count && !found; i++)
            found = is_on_cpu(&vk, all[i], uuid);
    vk.vkDestroyInstance(instance, NULL);
    return found;
}

bool find_lavapipe(unsigned char uuid[16]) {
    struct gm_vulkan_library library;
    if (gm_vulkan_library_open("libvulkan.so.1", false, &library) != GPUMEM_OK) {
        printf("skip: no Vulkan loader: %s\n", gpumem_last_error()->message);
        return false;
    }
    if (find_in(&library, uuid))
        return true;
    printf("skip: the Vulkan loader has no driver that runs on the CPU\n");
    return false;
}
