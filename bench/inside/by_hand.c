#include "by_hand.h"
#include "table.h"

#include "vulkan/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT ((size_t)2 << 20)

static const gpumem_driver_api *cu;
static CUmemAllocationProp prop;
static struct gm_vulkan *vulkan;
static struct gm_vulkan_type type;

static void must(CUresult result, const char *call) {
    if (result != CUDA_SUCCESS)
        bench_fail("by hand: %s answered %s", call, bench_result(cu, result));
}

static void vk_must(VkResult result, const char *call) {
    if (result != VK_SUCCESS)
        bench_fail("by hand: %s answered %s", call, gm_vulkan_result_name(result));
}

bool hand_open(const gpumem_driver_api *api, gpumem_device *device) {
    CUuuid uuid;
    unsigned char bytes[sizeof uuid.bytes];
    cu = api;
    prop = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpumem_device_handle(device)}};
    if (cu->cuDeviceGetUuid_v2(&uuid, gpumem_device_handle(device)) != CUDA_SUCCESS) {
        printf("not measured, vkgdr's way: the device has no UUID\n");
        return false;
    }
    memcpy(bytes, uuid.bytes, sizeof bytes);
    gpumem_status status = gm_vulkan_open(bytes, &vulkan, NULL, 0);
    if (status == GPUMEM_OK)
        status = gm_vulkan_choose(vulkan, 0, &type);
    if (status == GPUMEM_OK)
        return true;
    printf("not measured, vkgdr's way: %s\n", gpumem_last_error()->message);
    hand_close();
    return false;
}

void hand_close(void) {
    gm_vulkan_close(vulkan);
    vulkan = NULL;
}

/* ---- vkgdr's way ----------------------------------------------------------------------------- */

void hand_export(size_t bytes, struct hand_exported *made) {
    const struct gm_vulkan_table *vk = &vulkan->table;
    const VkExportMemoryAllocateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = &export,
                                       .allocationSize = bytes,
                                       .memoryTypeIndex = type.index};
    VkMemoryGetFdInfoKHR get = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                               .size = bytes};
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = bytes};
    vk_must(vk->vkAllocateMemory(vulkan->device, &info, NULL, &get.memory), "vkAllocateMemory");
    vk_must(vk->vkMapMemory(vulkan->device, get.memory, 0, VK_WHOLE_SIZE, 0, &made->host),
            "vkMapMemory");
    vk_must(vk->vkGetMemoryFdKHR(vulkan->device, &get, &handle.handle.fd), "vkGetMemoryFdKHR");
    must(cu->cuImportExternalMemory(&made->external, &handle), "cuImportExternalMemory");
    must(cu->cuExternalMemoryGetMappedBuffer(&made->address, made->external, &buffer),
         "cuExternalMemoryGetMappedBuffer");
    made->memory = (void *)get.memory;
}

void hand_export_end(struct hand_exported *made) {
    VkDeviceMemory memory = (VkDeviceMemory)made->memory;
    must(cu->cuMemFree_v2(made->address), "cuMemFree");
    must(cu->cuDestroyExternalMemory(made->external), "cuDestroyExternalMemory");
    vulkan->table.vkUnmapMemory(vulkan->device, memory);
    vulkan->table.vkFreeMemory(vulkan->device, memory, NULL);
}

/* ---- The other direction --------------------------------------------------------------------- */

bool hand_can_grow(gpumem_mapped_method method) {
    return (method == GPUMEM_MAPPED_VULKAN_IMPORT && vulkan) || method == GPUMEM_MAPPED_DESCRIPTOR;
}

void hand_range_reserve(size_t capacity, struct hand_range *range) {
    *range = (struct hand_range){.capacity = capacity};
    must(cu->cuMemAddressReserve(&range->address, capacity, 0, 0, 0), "cuMemAddressReserve");
    unsigned char *found = mmap(NULL, capacity + ALIGNMENT, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED)
        bench_fail("by hand: no %zu bytes of addresses", capacity);
    size_t before = (size_t)(-(uintptr_t)found % ALIGNMENT);
    if (before)
        munmap(found, before);
    munmap(found + before + capacity, ALIGNMENT - before);
    range->place = found + before;
}

static void import(int fd, size_t bytes, unsigned char *place, void **memory) {
    const struct gm_vulkan_table *vk = &vulkan->table;
    const VkImportMemoryFdInfoKHR from = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                          .handleType =
                                              VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
                                          .fd = fd};
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = &from,
                                       .allocationSize = bytes,
                                       .memoryTypeIndex = type.index};
    const VkMemoryMapPlacedInfoEXT at = {.sType = VK_STRUCTURE_TYPE_MEMORY_MAP_PLACED_INFO_EXT,
                                         .pPlacedAddress = place};
    VkMemoryMapInfoKHR map = {.sType = VK_STRUCTURE_TYPE_MEMORY_MAP_INFO_KHR,
                              .pNext = &at,
                              .flags = VK_MEMORY_MAP_PLACED_BIT_EXT,
                              .size = bytes};
    void *host = NULL;
    /* On success the descriptor belongs to Vulkan. */
    vk_must(vk->vkAllocateMemory(vulkan->device, &info, NULL, &map.memory), "vkAllocateMemory");
    vk_must(vk->vkMapMemory2KHR(vulkan->device, &map, &host), "vkMapMemory2KHR");
    *memory = (void *)map.memory;
}

static void map_descriptor(int fd, size_t bytes, unsigned char *place) {
    void *at = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (at == MAP_FAILED)
        bench_fail("by hand: the descriptor cannot be mapped");
    close(fd);
}

static void map_for_cpu(struct hand_range *range, gpumem_mapped_method method, size_t index,
                        size_t offset) {
    int fd = -1;
    size_t bytes = range->chunks[index].bytes;
    must(cu->cuMemExportToShareableHandle(&fd, range->chunks[index].handle,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
         "cuMemExportToShareableHandle");
    if (method == GPUMEM_MAPPED_VULKAN_IMPORT)
        import(fd, bytes, range->place + offset, &range->chunks[index].memory);
    else
        map_descriptor(fd, bytes, range->place + offset);
}

void hand_range_grow(struct hand_range *range, gpumem_mapped_method method, size_t bytes,
                     size_t chunk) {
    const CUmemAccessDesc access = {.location = prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t first = range->count, begin = range->committed, offset = begin;
    for (size_t left = bytes; left; range->count++) {
        size_t part = left < chunk ? left : chunk;
        if (range->count == HAND_MOST_CHUNKS)
            bench_fail("by hand: more than %d chunks", HAND_MOST_CHUNKS);
        range->chunks[range->count].bytes = part;
        must(cu->cuMemCreate(&range->chunks[range->count].handle, part, &prop, 0), "cuMemCreate");
        must(cu->cuMemMap(range->address + range->committed, part, 0,
                          range->chunks[range->count].handle, 0),
             "cuMemMap");
        range->committed += part;
        left -= part;
    }
    must(cu->cuMemSetAccess(range->address + begin, bytes, &access, 1), "cuMemSetAccess");
    for (size_t i = first; i < range->count; i++) {
        map_for_cpu(range, method, i, offset);
        offset += range->chunks[i].bytes;
    }
}

static void end_chunk(struct hand_range *range, gpumem_mapped_method method, size_t index) {
    if (method == GPUMEM_MAPPED_VULKAN_IMPORT) {
        VkDeviceMemory memory = (VkDeviceMemory)range->chunks[index].memory;
        vulkan->table.vkUnmapMemory(vulkan->device, memory);
        vulkan->table.vkFreeMemory(vulkan->device, memory, NULL);
    }
    must(cu->cuMemRelease(range->chunks[index].handle), "cuMemRelease");
}

void hand_range_end(struct hand_range *range, gpumem_mapped_method method) {
    if (range->committed)
        must(cu->cuMemUnmap(range->address, range->committed), "cuMemUnmap");
    for (size_t i = 0; i < range->count; i++)
        end_chunk(range, method, i);
    munmap(range->place, range->capacity);
    must(cu->cuMemAddressFree(range->address, range->capacity), "cuMemAddressFree");
}
