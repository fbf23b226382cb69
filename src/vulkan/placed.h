/*
 * Vulkan's headers, and the parts that those of Debian 12 (1.3.239) do not have yet:
 * VK_KHR_map_memory2 and VK_EXT_map_memory_placed. Numbers and layouts are the registry's.
 */
#ifndef GM_VULKAN_PLACED_H
#define GM_VULKAN_PLACED_H

/* Nothing is linked: every function is found at run time. */
#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
/* Not vulkan.h, which also includes the headers of window systems. */
#include <vulkan/vulkan_core.h>

#ifndef VK_KHR_map_memory2
#define VK_KHR_map_memory2                      1
#define VK_KHR_MAP_MEMORY_2_EXTENSION_NAME      "VK_KHR_map_memory2"
#define VK_STRUCTURE_TYPE_MEMORY_MAP_INFO_KHR   ((VkStructureType)1000271000)
#define VK_STRUCTURE_TYPE_MEMORY_UNMAP_INFO_KHR ((VkStructureType)1000271001)

typedef VkFlags VkMemoryUnmapFlagsKHR;

typedef struct VkMemoryMapInfoKHR {
    VkStructureType sType;
    const void *pNext;
    VkMemoryMapFlags flags;
    VkDeviceMemory memory;
    VkDeviceSize offset;
    VkDeviceSize size;
} VkMemoryMapInfoKHR;

typedef struct VkMemoryUnmapInfoKHR {
    VkStructureType sType;
    const void *pNext;
    VkMemoryUnmapFlagsKHR flags;
    VkDeviceMemory memory;
} VkMemoryUnmapInfoKHR;

typedef VkResult(VKAPI_PTR *PFN_vkMapMemory2KHR)(VkDevice, const VkMemoryMapInfoKHR *, void **);
typedef VkResult(VKAPI_PTR *PFN_vkUnmapMemory2KHR)(VkDevice, const VkMemoryUnmapInfoKHR *);
#endif

#ifndef VK_EXT_map_memory_placed
#define VK_EXT_map_memory_placed                1
#define VK_EXT_MAP_MEMORY_PLACED_EXTENSION_NAME "VK_EXT_map_memory_placed"
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_FEATURES_EXT                           \
    ((VkStructureType)1000272000)
#define VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_PROPERTIES_EXT                         \
    ((VkStructureType)1000272001)
#define VK_STRUCTURE_TYPE_MEMORY_MAP_PLACED_INFO_EXT ((VkStructureType)1000272002)
#define VK_MEMORY_MAP_PLACED_BIT_EXT                 0x00000001
#define VK_MEMORY_UNMAP_RESERVE_BIT_EXT              0x00000001

typedef struct VkPhysicalDeviceMapMemoryPlacedFeaturesEXT {
    VkStructureType sType;
    void *pNext;
    VkBool32 memoryMapPlaced;
    VkBool32 memoryMapRangePlaced;
    VkBool32 memoryUnmapReserve;
} VkPhysicalDeviceMapMemoryPlacedFeaturesEXT;

typedef struct VkPhysicalDeviceMapMemoryPlacedPropertiesEXT {
    VkStructureType sType;
    void *pNext;
    VkDeviceSize minPlacedMemoryMapAlignment;
} VkPhysicalDeviceMapMemoryPlacedPropertiesEXT;

typedef struct VkMemoryMapPlacedInfoEXT {
    VkStructureType sType;
    const void *pNext;
    void *pPlacedAddress;
} VkMemoryMapPlacedInfoEXT;
#endif

#endif
