/* Opens a Vulkan library, a loader or a bare driver, and finds its functions. */
#include "vulkan/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What a driver exports for loaders. Version 5 is the oldest with which a driver certainly does not
 * refuse an instance of a Vulkan version other than 1.0. */
#define DRIVER_FIND      "vk_icdGetInstanceProcAddr"
#define DRIVER_NEGOTIATE "vk_icdNegotiateLoaderICDInterfaceVersion"
#define DRIVER_INTERFACE 5
typedef VkResult(VKAPI_PTR *negotiate_fn)(uint32_t *version);

typedef void (*any_fn)(void);

/* POSIX allows this conversion; ISO C has no other spelling for it than through the bytes. */
static any_fn symbol(void *library, const char *name) {
    void *data = dlsym(library, name);
    any_fn fn;
    memcpy(&fn, &data, sizeof fn);
    return fn;
}

static void note_path(void *handle, const char *name, struct gm_vulkan_library *library) {
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0])
        name = map->l_name;
    snprintf(library->path, sizeof library->path, "%s", name);
}

static gpumem_status check_named(const char *name) {
    struct stat status;
    if (stat(name, &status) != 0)
        return gm_fail_system(GPUMEM_ERROR_NOT_SUPPORTED, errno, "stat",
                              "the library cannot be opened");
    if (!S_ISREG(status.st_mode))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "not a regular file, so not a library");
    return GPUMEM_OK;
}

static gpumem_status negotiate(void *handle) {
    negotiate_fn negotiate_version = (negotiate_fn)symbol(handle, DRIVER_NEGOTIATE);
    uint32_t version = DRIVER_INTERFACE;
    VkResult result = negotiate_version ? negotiate_version(&version) : VK_SUCCESS;
    if (result != VK_SUCCESS)
        return gm_vulkan_fail(result, DRIVER_NEGOTIATE, "the driver cannot be opened");
    return GPUMEM_OK;
}

gpumem_status gm_vulkan_library_open(const char *name, bool named,
                                     struct gm_vulkan_library *library) {
    gpumem_status status = named ? check_named(name) : GPUMEM_OK;
    if (status != GPUMEM_OK)
        return status;
    /* Never unloaded: a driver's threads outlive any count of references. */
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *why = dlerror();
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s", why ? why : "cannot be opened");
    }
    struct gm_vulkan_library opened = {.find = NULL};
    note_path(handle, name, &opened);
    opened.find = (PFN_vkGetInstanceProcAddr)symbol(handle, DRIVER_FIND);
    if (opened.find)
        status = negotiate(handle);
    else
        opened.find = (PFN_vkGetInstanceProcAddr)symbol(handle, "vkGetInstanceProcAddr");
    if (status != GPUMEM_OK)
        return status;
    if (!opened.find)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "not a Vulkan loader or driver: it has no vkGetInstanceProcAddr "
                       "and no " DRIVER_FIND);
    *library = opened;
    return GPUMEM_OK;
}

/* ---- The table ------------------------------------------------------------------------------- */

enum stage { GLOBAL, INSTANCE, DEVICE, PLACED };

/* The code that fills the table sees it as an array of function pointers. */
static const struct {
    const char *name;
    enum stage stage;
} rows[] = {
#define VK_FN(stage, name) {#name, stage},
#include "vulkan/functions.def"
};
#define ROWS (sizeof rows / sizeof rows[0])
_Static_assert(sizeof(struct gm_vulkan_table) == ROWS * sizeof(any_fn),
               "a row of the table is one pointer");

static gpumem_status missing(const char *name) {
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "the driver lacks the function %s", name);
}

gpumem_status gm_vulkan_fill_global(const struct gm_vulkan_library *library,
                                    struct gm_vulkan_table *table) {
    return gm_vulkan_fill_instance(library, VK_NULL_HANDLE, table);
}

gpumem_status gm_vulkan_fill_instance(const struct gm_vulkan_library *library, VkInstance instance,
                                      struct gm_vulkan_table *table) {
    any_fn *slots = (any_fn *)(void *)table;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].stage != (instance ? INSTANCE : GLOBAL))
            continue;
        slots[i] = (any_fn)library->find(instance, rows[i].name);
        if (!slots[i])
            return missing(rows[i].name);
    }
    return GPUMEM_OK;
}

gpumem_status gm_vulkan_fill_device(VkDevice device, struct gm_vulkan_table *table) {
    any_fn *slots = (any_fn *)(void *)table;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].stage != DEVICE && rows[i].stage != PLACED)
            continue;
        slots[i] = (any_fn)table->vkGetDeviceProcAddr(device, rows[i].name);
        if (!slots[i] && rows[i].stage == DEVICE)
            return missing(rows[i].name);
    }
    return GPUMEM_OK;
}
