/* Reports a device's Vulkan driver to the program. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/driver_error.h"
#include "vulkan/device.h"

#include <stdio.h>

static void fill_memory(struct gm_vulkan *vulkan, gpumem_vulkan_info *info) {
    struct gm_vulkan_type type;
    uint64_t budget = 0, usage = 0;
    if (gm_vulkan_choose(vulkan, 0, &type) != GPUMEM_OK) {
        snprintf(info->reason, sizeof info->reason, "%s", gpumem_last_error()->message);
        return;
    }
    info->available = 1;
    info->memory_type = (int)type.index;
    info->coherent = type.coherent;
    info->atom = (size_t)type.atom;
    info->heap_bytes = type.heap_bytes;
    info->has_budget = gm_vulkan_get_budget(vulkan, &budget, &usage) == GPUMEM_OK;
    info->budget_bytes = budget;
    info->used_bytes = usage;
}

static void fill(struct gm_vulkan *vulkan, gpumem_vulkan_info *info) {
    const struct gm_vulkan_facts *facts = gm_vulkan_get_facts(vulkan);
    snprintf(info->library, sizeof info->library, "%s", facts->library);
    snprintf(info->device_name, sizeof info->device_name, "%s", facts->name);
    info->placed = facts->placed;
    info->allocation_limit = facts->most_memories;
    fill_memory(vulkan, info);
}

/* A refusal is a result, and does not change the thread's last error. */
static gpumem_status ask(const unsigned char uuid[16], gpumem_vulkan_info *info) {
    struct gm_error_record before;
    struct gm_vulkan *vulkan = NULL;
    gm_error_save(&before);
    gpumem_status status = gm_vulkan_open(uuid, &vulkan, info->reason, sizeof info->reason);
    if (status == GPUMEM_ERROR_FORKED)
        return status;
    if (status == GPUMEM_OK)
        fill(vulkan, info);
    gm_vulkan_close(vulkan);
    gm_error_restore(&before);
    return GPUMEM_OK;
}

gpumem_status gpumem_device_get_vulkan_info(gpumem_library *library, int ordinal,
                                            gpumem_vulkan_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(library, "gpumem_device_get_vulkan_info");
    gpumem_vulkan_info filled = {.size = sizeof filled, .memory_type = -1};
    gpumem_device_info device = {.size = sizeof device};
    gpumem_status status = gpumem_device_get_info(library, ordinal, &device);
    if (status == GPUMEM_OK)
        status = ask(device.uuid, &filled);
    if (status != GPUMEM_OK)
        return status;
    return GM_RESULT_WRITE(gpumem_vulkan_info, info, &filled);
}
