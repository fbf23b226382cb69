/* Inside src/vulkan: the table of functions, the open device. */
#ifndef GM_VULKAN_INTERNAL_H
#define GM_VULKAN_INTERNAL_H

#include "base/error.h"
#include "vulkan/device.h"
#include "vulkan/placed.h"

#include <pthread.h>
#include <stdatomic.h>

struct gm_vulkan_table {
#define VK_FN(stage, name) PFN_##name name;
#include "vulkan/functions.def"
};

/* ---- Results --------------------------------------------------------------------------------- */

/* "VK_ERROR_DEVICE_LOST", or a text with the number. Valid until the thread asks again. */
const char *gm_vulkan_result_name(VkResult result);

/* Records that `call` returned `result`, and returns the corresponding status. */
gpumem_status gm_vulkan_fail(VkResult result, const char *call, const char *format, ...)
    GM_PRINTF(3, 4);
/* As in base/error.h: never GPUMEM_OK. */
#if defined(__clang_analyzer__) && !defined(GM_VULKAN_RESULT_DEFINITIONS)
#define gm_vulkan_fail(result, ...) (gm_vulkan_fail(result, __VA_ARGS__), GPUMEM_ERROR_DRIVER)
#endif

/* ---- Libraries ------------------------------------------------------------------------------- */

struct gm_vulkan_library {
    PFN_vkGetInstanceProcAddr find;
    char path[512]; /* the file, truncated if too long */
};

/* Opens a loader, or a driver without one. `named`: chosen by the program's user, and so must be a
 * regular file, because opening anything else may block. */
gpumem_status gm_vulkan_library_open(const char *name, bool named,
                                     struct gm_vulkan_library *library);

/* Each fills the rows of its stages. NOT_SUPPORTED: the message names the missing function; a
 * missing function of the stage PLACED is NULL instead. */
gpumem_status gm_vulkan_fill_global(const struct gm_vulkan_library *library,
                                    struct gm_vulkan_table *table);
gpumem_status gm_vulkan_fill_instance(const struct gm_vulkan_library *library, VkInstance instance,
                                      struct gm_vulkan_table *table);
gpumem_status gm_vulkan_fill_device(VkDevice device, struct gm_vulkan_table *table);

/* ---- The open device ------------------------------------------------------------------------- */

struct gm_vulkan {
    struct gm_vulkan_table table;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkPhysicalDeviceMemoryProperties memory;
    uint64_t atom;
    struct gm_vulkan_facts facts;
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    char library[512];
    char refusals[GM_VULKAN_REASON];
    unsigned char uuid[16];
    char *choice; /* of GPUMEM_VULKAN when it was opened, or NULL */

    unsigned generation;    /* of the process: base/fork.h */
    struct gm_vulkan *next; /* with `references`: under the lock of open.c */
    size_t references;      /* opens, and memories */
    atomic_size_t memories; /* alive for Vulkan, including quarantined ones */
    atomic_size_t quarantined;
};

/* Creates instance and device, with `library`, for a zeroed object whose uuid and library are set.
 * All or nothing. `found` reports whether the library has the device at all. */
gpumem_status gm_vulkan_make(struct gm_vulkan *vulkan, const struct gm_vulkan_library *library,
                             bool *found);
void gm_vulkan_unmake(struct gm_vulkan *vulkan);

/* Another reference to a device that the caller has open. */
void gm_vulkan_hold(struct gm_vulkan *vulkan);

/* FORKED, or GPUMEM_OK: whether this process may use it. */
gpumem_status gm_vulkan_enter(const struct gm_vulkan *vulkan, const char *what);

/* ---- Memory types ---------------------------------------------------------------------------- */

/* The `rank`-th best type for the flags; false when there is none. */
bool gm_vulkan_type_at(const struct gm_vulkan *vulkan, unsigned flags, unsigned rank,
                       struct gm_vulkan_type *type);

/* ---- Memory ---------------------------------------------------------------------------------- */

struct gm_vulkan_memory {
    struct gm_vulkan *vulkan;
    VkDeviceMemory memory;
    uint64_t size;
    struct gm_vulkan_type type;
    bool imported;
    pthread_mutex_t lock; /* Vulkan: one thread at a time maps, unmaps or frees a memory object */
    void *_Atomic host;   /* NULL: not mapped. Written under the lock */
    bool placed;
};

/* For mapped memory, with the lock held. */
gpumem_status gm_vulkan_unmap_locked(struct gm_vulkan_memory *memory);

#endif
