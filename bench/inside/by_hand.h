/*
 * Memory that CPU and GPU can access, made by bare calls, with which the library is compared. A
 * call that fails ends the program with the call's name.
 *
 * It does what a careful program would write for itself: every handle that is needed to give the
 * memory back is kept, and nothing else is.
 */
#ifndef BENCH_BY_HAND_H
#define BENCH_BY_HAND_H

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <stdbool.h>

#define HAND_MOST_CHUNKS 128

/* Opens the Vulkan driver of the device; false if there is none, with the reason printed. */
bool hand_open(const gpumem_driver_api *cu, gpumem_device *device);
void hand_close(void);

/* ---- vkgdr's way: Vulkan allocates, CUDA imports --------------------------------------------- */

struct hand_exported {
    void *memory; /* VkDeviceMemory */
    void *host;
    CUexternalMemory external;
    CUdeviceptr address;
};

/* vkAllocateMemory, vkMapMemory, vkGetMemoryFdKHR, cuImportExternalMemory,
 * cuExternalMemoryGetMappedBuffer. Needs hand_open. */
void hand_export(size_t bytes, struct hand_exported *made);
void hand_export_end(struct hand_exported *made);

/* ---- The other direction: CUDA allocates, Vulkan imports; or the descriptor is mapped -------- */

struct hand_range {
    CUdeviceptr address;
    unsigned char *place; /* the CPU's mapping, reserved beforehand */
    size_t capacity, committed, count;
    struct {
        CUmemGenericAllocationHandle handle;
        void *memory; /* VkDeviceMemory */
        size_t bytes;
    } chunks[HAND_MOST_CHUNKS];
};

/* Whether what the library does by this method can be done by hand. VULKAN_IMPORT needs hand_open.
 */
bool hand_can_grow(gpumem_mapped_method method);
void hand_range_reserve(size_t capacity, struct hand_range *range);
/* Appends memory in pieces of `chunk` and a remainder: cuMemCreate and cuMemMap for each, one
 * cuMemSetAccess, and for each cuMemExportToShareableHandle, then vkAllocateMemory (an import) and
 * vkMapMemory2 at its place, or mmap. */
void hand_range_grow(struct hand_range *range, gpumem_mapped_method method, size_t bytes,
                     size_t chunk);
void hand_range_end(struct hand_range *range, gpumem_mapped_method method);

#endif
