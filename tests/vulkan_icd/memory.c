/* Allocation, import, export. */
#include "memory.h"

#include "base/descriptor.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPAQUE VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT

static struct memory *alive;

struct memory *memory_of(const char *function, VkDeviceMemory handle) {
    struct memory *wanted = (struct memory *)(void *)handle, *found;
    icd_lock();
    for (found = alive; found && found != wanted; found = found->next)
        ;
    icd_unlock();
    if (!found)
        violation("%s: no such memory", function);
    return found;
}

void memory_enter(const char *function, struct memory *memory) {
    if (atomic_fetch_add(&memory->users, 1) != 0)
        violation("%s: two threads at once use one memory object", function);
}

void memory_leave(struct memory *memory) {
    atomic_fetch_sub(&memory->users, 1);
}

/* ---- Allocation ------------------------------------------------------------------------------ */

/* Counts it in, if limits allow. */
static VkResult admit(struct memory *memory) {
    const struct settings *settings = memory->device->settings;
    VkResult result = VK_SUCCESS;
    icd_lock();
    if (memory->device->memories >= settings->allocations) {
        violation("vkAllocateMemory: more than maxMemoryAllocationCount");
        result = VK_ERROR_TOO_MANY_OBJECTS;
    } else if (!memory->imported && (memory->size > settings->budget ||
                                     icd_allocated > settings->budget - memory->size)) {
        result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    } else {
        memory->device->memories++;
        icd_live.memories++;
        icd_allocated += memory->imported ? 0 : memory->size;
        memory->next = alive;
        alive = memory;
    }
    icd_unlock();
    return result;
}

static bool check_type(const struct device *device, uint32_t index, struct memory *memory) {
    VkPhysicalDeviceMemoryProperties types;
    VkPhysicalDevice physical = (VkPhysicalDevice)(void *)&device->instance->physical[0];
    icd_vkGetPhysicalDeviceMemoryProperties(physical, &types);
    if (index >= types.memoryTypeCount) {
        violation("vkAllocateMemory: no memory type %u", index);
        return false;
    }
    VkMemoryPropertyFlags flags = types.memoryTypes[index].propertyFlags;
    if (memory->size > types.memoryHeaps[types.memoryTypes[index].heapIndex].size)
        violation("vkAllocateMemory: more than the heap has");
    memory->visible = flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    memory->coherent = flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    return types.memoryTypes[index].heapIndex == HEAP_DEVICE || !memory->imported;
}

/* Sealed against getting shorter, as softgpu asks of what it imports. */
static VkResult new_file(struct memory *memory) {
    memory->file = gm_fd_memory("vulkan-icd");
    if (memory->file < 0)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    if (ftruncate(memory->file, (off_t)memory->size) == 0 &&
        fcntl(memory->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        return VK_SUCCESS;
    close(memory->file);
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

/* A file in memory that is at least as long: softgpu's memory begins at its first byte. */
static VkResult take_file(struct memory *memory, int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || fcntl(fd, F_GET_SEALS) < 0 ||
        (uint64_t)status.st_size < memory->size)
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    memory->file = fd;
    return VK_SUCCESS;
}

static const VkImportMemoryFdInfoKHR *import_of(const VkMemoryAllocateInfo *info) {
    for (const VkBaseInStructure *next = info->pNext; next; next = next->pNext)
        if (next->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR)
            return (const void *)next;
    return NULL;
}

VkResult VKAPI_CALL icd_vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo *info,
                                         const VkAllocationCallbacks *callbacks,
                                         VkDeviceMemory *handle) {
    ICD_FAULT();
    (void)callbacks;
    const VkImportMemoryFdInfoKHR *import = import_of(info);
    if (info->allocationSize == 0)
        violation("vkAllocateMemory: 0 bytes");
    struct memory *made = calloc(1, sizeof *made);
    if (!made)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    made->device = (struct device *)(void *)device;
    made->size = info->allocationSize;
    made->imported = import != NULL;
    VkResult result = VK_ERROR_INVALID_EXTERNAL_HANDLE;
    if (check_type(made->device, info->memoryTypeIndex, made))
        result = !import                        ? new_file(made)
                 : import->handleType != OPAQUE ? VK_ERROR_INVALID_EXTERNAL_HANDLE
                                                : take_file(made, import->fd);
    if (result == VK_SUCCESS) {
        result = admit(made);
        if (result != VK_SUCCESS && !import)
            close(made->file);
    }
    if (result != VK_SUCCESS) {
        free(made);
        return result;
    }
    *handle = (VkDeviceMemory)(void *)made;
    return VK_SUCCESS;
}

/* ---- Export and the end ---------------------------------------------------------------------- */

VkResult VKAPI_CALL icd_vkGetMemoryFdKHR(VkDevice device, const VkMemoryGetFdInfoKHR *info,
                                         int *fd) {
    ICD_FAULT();
    (void)device;
    const struct memory *memory = memory_of("vkGetMemoryFdKHR", info->memory);
    if (!memory || info->handleType != OPAQUE)
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    *fd = gm_fd_duplicate(memory->file);
    return *fd < 0 ? VK_ERROR_TOO_MANY_OBJECTS : VK_SUCCESS;
}

static void forget(struct memory *memory) {
    icd_lock();
    struct memory **at = &alive;
    while (*at != memory)
        at = &(*at)->next;
    *at = memory->next;
    memory->device->memories--;
    icd_live.memories--;
    icd_allocated -= memory->imported ? 0 : memory->size;
    icd_unlock();
}

void VKAPI_CALL icd_vkFreeMemory(VkDevice device, VkDeviceMemory handle,
                                 const VkAllocationCallbacks *callbacks) {
    count_call(__func__);
    (void)device, (void)callbacks;
    struct memory *memory = handle ? memory_of("vkFreeMemory", handle) : NULL;
    if (!memory)
        return;
    memory_enter("vkFreeMemory", memory);
    memory_unmap(memory, false);
    forget(memory);
    close(memory->file);
    free(memory);
}
