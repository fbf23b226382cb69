/*
 * A Vulkan driver (ICD) made for tests: memory of memfds, imported and exported as OPAQUE_FD,
 * mapped anywhere or at a chosen place. It imports what softgpu exports. GPUMEM_VULKAN names its
 * file, build/tests/vulkan_icd/libvulkan_icd.so; a Vulkan loader accepts it too.
 *
 * The properties of an instance are read from the environment when it is created:
 *
 *   VULKAN_ICD_UUID         deviceUUIDs in hexadecimal, dashes allowed, separated by commas, one
 *                           per device; unset: one device with the UUID of softgpu's device 0
 *   VULKAN_ICD_COHERENT     the memory types that are device-local and host-visible:
 *                           "yes": one, coherent (as on an H200, and when unset); "no": one that
 *                           is not; "both": one of each; "none": there is no such type
 *   VULKAN_ICD_PLACED       "no": neither VK_KHR_map_memory2 nor VK_EXT_map_memory_placed;
 *                           "unreserved": without the feature memoryUnmapReserve
 *   VULKAN_ICD_ALLOCATIONS  maxMemoryAllocationCount (4096)
 *   VULKAN_ICD_HEAP         bytes of the device's heap (1 GiB)
 *   VULKAN_ICD_BUDGET       bytes that may be allocated, and the heap's budget (the heap)
 *   VULKAN_ICD_ATOM         nonCoherentAtomSize (64)
 *   VULKAN_ICD_WITHOUT      names of functions and extensions that it lacks, separated by commas
 *   VULKAN_ICD_FAULT        FUNCTION:FIRST:COUNT:RESULT, like `refuse` below; "*" for any function
 *
 * Non-coherent memory is emulated: the mapping is a copy, flushing an atom writes its changed bytes
 * to the memory, invalidating reads it. Write-combining is not emulated.
 *
 * The driver checks how it is used. Breaking a rule of Vulkan, including its external
 * synchronization, is recorded as a violation; with VULKAN_ICD_VIOLATION=abort it also ends the
 * process with a message on stderr, for programs that do not check.
 */
#ifndef TESTS_VULKAN_ICD_H
#define TESTS_VULKAN_ICD_H

#include <stddef.h>

#define VULKAN_ICD_FILE "/tests/vulkan_icd/libvulkan_icd.so" /* below the build folder */
#define VULKAN_ICD_ATOM 64                                   /* the default */
/* minPlacedMemoryMapAlignment */
#define VULKAN_ICD_PLACE_MULTIPLE 65536

/* Counts of live objects of all instances, and of mappings. */
struct vulkan_icd_live {
    size_t instances, devices, memories, maps;
};

struct vulkan_icd_control {
    /* Resets faults, counts of calls and violations. */
    void (*reset)(void);
    /* Makes calls `first` (from 1, counted from now on) and the `count` - 1 after it return
     * `result`, a VkResult, and do nothing. `function` NULL: calls of any function that can return
     * one. */
    void (*refuse)(const char *function, unsigned first, unsigned count, int result);
    /* Since the last reset, including calls that failed. NULL: of functions that can fail. */
    unsigned (*calls)(const char *function);
    struct vulkan_icd_live (*live)(void);
    /* The first violation, or NULL. */
    const char *(*violation)(void);
};

/* The driver's file exports it under this name. */
const struct vulkan_icd_control *vulkan_icd_control(void);

#endif
