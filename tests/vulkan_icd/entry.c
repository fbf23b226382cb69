/* How the driver is entered: what a loader, or a program without one, looks up in its file. */
#include "icd.h"

#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static const struct {
    const char *name;
    PFN_vkVoidFunction function;
} functions[] = {
#define ICD_FN(name) {#name, (PFN_vkVoidFunction)icd_##name},
#include "functions.def"
};

PFN_vkVoidFunction icd_find(const struct settings *settings, const char *name) {
    if (settings_lack(settings, name))
        return NULL;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].function;
    return NULL;
}

PFN_vkVoidFunction VKAPI_CALL icd_vkGetInstanceProcAddr(VkInstance instance, const char *name) {
    const struct instance *ours = (const struct instance *)(void *)instance;
    return icd_find(ours ? &ours->settings : NULL, name);
}

PFN_vkVoidFunction VKAPI_CALL icd_vkGetDeviceProcAddr(VkDevice device, const char *name) {
    const struct device *ours = (const struct device *)(void *)device;
    bool map2 = strcmp(name, "vkMapMemory2KHR") == 0 || strcmp(name, "vkUnmapMemory2KHR") == 0;
    if (map2 && !ours->settings->placed)
        return NULL;
    return icd_find(ours->settings, name);
}

EXPORTED PFN_vkVoidFunction VKAPI_CALL vk_icdGetInstanceProcAddr(VkInstance instance,
                                                                 const char *name) {
    return icd_vkGetInstanceProcAddr(instance, name);
}

/* Loaders look up here what works on physical devices and is not known to them. */
EXPORTED PFN_vkVoidFunction VKAPI_CALL vk_icdGetPhysicalDeviceProcAddr(VkInstance instance,
                                                                       const char *name) {
    bool physical = strncmp(name, "vkGetPhysicalDevice", strlen("vkGetPhysicalDevice")) == 0;
    return physical ? icd_vkGetInstanceProcAddr(instance, name) : NULL;
}

EXPORTED VkResult VKAPI_CALL vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    VkResult fault = fault_of("vk_icdNegotiateLoaderICDInterfaceVersion");
    if (fault != VK_SUCCESS)
        return fault;
    if (*version > 5)
        *version = 5;
    return VK_SUCCESS;
}
