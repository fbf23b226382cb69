/* Memory objects: imported from another driver's descriptor, or allocated to be exported. */
#include "base/descriptor.h"
#include "vulkan/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Allocations are counted, since Vulkan leaves going over the limit undefined ------------- */

static gpumem_status count_in(struct gm_vulkan *vulkan) {
    size_t alive = atomic_load(&vulkan->memories);
    do {
        if (alive >= vulkan->facts.most_memories)
            return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY,
                           "%s allows %u Vulkan allocations and imports at a time, and all are in "
                           "use: free some, or use fewer and larger ones",
                           vulkan->name, vulkan->facts.most_memories);
    } while (!atomic_compare_exchange_weak(&vulkan->memories, &alive, alive + 1));
    return GPUMEM_OK;
}

static void count_out(struct gm_vulkan *vulkan) {
    atomic_fetch_sub(&vulkan->memories, 1);
}

/* ---- The object ------------------------------------------------------------------------------ */

/* An object that holds the device and counts, without a VkDeviceMemory yet. */
static gpumem_status new_memory(struct gm_vulkan *vulkan, uint64_t size, bool imported,
                                struct gm_vulkan_memory **memory) {
    struct gm_vulkan_memory *made = calloc(1, sizeof *made);
    if (!made || pthread_mutex_init(&made->lock, NULL) != 0) {
        free(made);
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a Vulkan memory object");
    }
    made->vulkan = vulkan;
    made->size = size;
    made->imported = imported;
    atomic_init(&made->host, NULL);
    gpumem_status status = count_in(vulkan);
    if (status != GPUMEM_OK) {
        pthread_mutex_destroy(&made->lock);
        free(made);
        return status;
    }
    gm_vulkan_hold(vulkan);
    *memory = made;
    return GPUMEM_OK;
}

static void end_memory(struct gm_vulkan_memory *memory, bool freed) {
    struct gm_vulkan *vulkan = memory->vulkan;
    if (freed)
        count_out(vulkan);
    else
        atomic_fetch_add(&vulkan->quarantined, 1);
    pthread_mutex_destroy(&memory->lock);
    free(memory);
    gm_vulkan_close(vulkan);
}

static gpumem_status begin(struct gm_vulkan *vulkan, const char *what, uint64_t size,
                           unsigned flags) {
    struct gm_vulkan_type type = {.heap_bytes = 0};
    gpumem_status status = gm_vulkan_enter(vulkan, what);
    if (status == GPUMEM_OK)
        status = gm_vulkan_choose(vulkan, flags, &type);
    if (status == GPUMEM_OK && !size)
        status = gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT, "%s: 0 bytes", what);
    if (status == GPUMEM_OK && size > type.heap_bytes)
        status = gm_fail(GPUMEM_ERROR_OUT_OF_MEMORY, "%s: %llu bytes, but the heap has %llu", what,
                         (unsigned long long)size, (unsigned long long)type.heap_bytes);
    return status;
}

static VkResult ask(struct gm_vulkan_memory *memory, const void *next) {
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = next,
        .allocationSize = memory->size,
        .memoryTypeIndex = memory->type.index,
    };
    const struct gm_vulkan *vulkan = memory->vulkan;
    VkResult result = vulkan->table.vkAllocateMemory(vulkan->device, &info, NULL, &memory->memory);
    if (result != VK_SUCCESS)
        memory->memory = VK_NULL_HANDLE;
    return result;
}

/* ---- Import ---------------------------------------------------------------------------------- */

/* A duplicate descriptor, which Vulkan owns after success and we must close otherwise. */
static gpumem_status import_as(struct gm_vulkan_memory *memory, int fd, VkResult *result) {
    int given = gm_fd_duplicate(fd);
    if (given < 0)
        return gm_fail_system(errno == EBADF ? GPUMEM_ERROR_INVALID_ARGUMENT : GPUMEM_ERROR_SYSTEM,
                              errno, "fcntl",
                              "importing memory: descriptor %d cannot be duplicated", fd);
    const VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
        .fd = given,
    };
    *result = ask(memory, &import);
    if (*result == VK_SUCCESS)
        return GPUMEM_OK;
    close(given);
    return gm_vulkan_fail(*result, "vkAllocateMemory",
                          "importing %llu bytes of descriptor %d as memory type %u",
                          (unsigned long long)memory->size, fd, memory->type.index);
}

/* The possible types of a descriptor of this kind cannot be queried: if one type is refused,
 * another may be accepted. The first refusal is reported. */
static gpumem_status import_any(struct gm_vulkan_memory *memory, int fd, unsigned flags) {
    struct gm_error_record first = {.call = ""};
    gpumem_status status = GPUMEM_OK;
    for (unsigned rank = 0; gm_vulkan_type_at(memory->vulkan, flags, rank, &memory->type); rank++) {
        VkResult result = VK_SUCCESS;
        gpumem_status tried = import_as(memory, fd, &result);
        if (tried == GPUMEM_OK)
            return GPUMEM_OK;
        if (rank == 0) {
            status = tried;
            gm_error_save(&first);
        }
        if (result != VK_ERROR_INVALID_EXTERNAL_HANDLE)
            break;
    }
    gm_error_restore(&first);
    return status;
}

gpumem_status gm_vulkan_import(struct gm_vulkan *vulkan, int fd, uint64_t size, unsigned flags,
                               struct gm_vulkan_memory **memory) {
    struct gm_vulkan_memory *made = NULL;
    gpumem_status status = begin(vulkan, "importing memory", size, flags);
    if (status == GPUMEM_OK)
        status = new_memory(vulkan, size, true, &made);
    if (status != GPUMEM_OK)
        return status;
    status = import_any(made, fd, flags);
    if (status == GPUMEM_OK)
        *memory = made;
    else
        end_memory(made, true);
    return status;
}

/* ---- Allocation and export ------------------------------------------------------------------- */

gpumem_status gm_vulkan_allocate(struct gm_vulkan *vulkan, uint64_t size, unsigned flags,
                                 struct gm_vulkan_memory **memory) {
    const VkExportMemoryAllocateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    struct gm_vulkan_memory *made = NULL;
    gpumem_status status = begin(vulkan, "allocating memory", size, flags);
    if (status == GPUMEM_OK)
        status = new_memory(vulkan, size, false, &made);
    if (status != GPUMEM_OK)
        return status;
    (void)gm_vulkan_type_at(vulkan, flags, 0, &made->type);
    VkResult result = ask(made, &export);
    if (result == VK_SUCCESS) {
        *memory = made;
        return GPUMEM_OK;
    }
    end_memory(made, true);
    return gm_vulkan_fail(result, "vkAllocateMemory", "allocating %llu exportable bytes",
                          (unsigned long long)size);
}

gpumem_status gm_vulkan_export(struct gm_vulkan_memory *memory, int *fd) {
    const struct gm_vulkan *vulkan = memory->vulkan;
    gpumem_status status = gm_vulkan_enter(vulkan, "exporting memory");
    if (status != GPUMEM_OK)
        return status;
    if (memory->imported)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "memory imported into Vulkan cannot be exported "
                                                   "from it again: export it at its origin");
    const VkMemoryGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
        .memory = memory->memory,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    int made = -1;
    VkResult result = vulkan->table.vkGetMemoryFdKHR(vulkan->device, &info, &made);
    if (result != VK_SUCCESS)
        return gm_vulkan_fail(result, "vkGetMemoryFdKHR", "exporting %llu bytes",
                              (unsigned long long)memory->size);
    made = gm_fd_keep(made);
    if (made < 0)
        return gm_fail_system(GPUMEM_ERROR_SYSTEM, errno, "fcntl", "no descriptor for memory");
    *fd = made;
    return GPUMEM_OK;
}

/* ---- The end --------------------------------------------------------------------------------- */

gpumem_status gm_vulkan_free(struct gm_vulkan_memory *memory) {
    if (!memory)
        return GPUMEM_OK;
    gpumem_status status = gm_vulkan_enter(memory->vulkan, "freeing memory");
    if (status != GPUMEM_OK)
        return status;
    const struct gm_vulkan *vulkan = memory->vulkan;
    pthread_mutex_lock(&memory->lock);
    /* Freeing would unmap too, but leave a hole in the caller's range. */
    if (atomic_load(&memory->host))
        status = gm_vulkan_unmap_locked(memory);
    pthread_mutex_unlock(&memory->lock);
    if (status == GPUMEM_OK)
        vulkan->table.vkFreeMemory(vulkan->device, memory->memory, NULL);
    end_memory(memory, status == GPUMEM_OK);
    return status;
}

uint64_t gm_vulkan_memory_size(const struct gm_vulkan_memory *memory) {
    return memory->size;
}

const struct gm_vulkan_type *gm_vulkan_memory_type(const struct gm_vulkan_memory *memory) {
    return &memory->type;
}

void *gm_vulkan_memory_host(const struct gm_vulkan_memory *memory) {
    return atomic_load(&memory->host);
}
