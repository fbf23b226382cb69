/* Vulkan results: their names, and the corresponding status of the library. */
#define GM_VULKAN_RESULT_DEFINITIONS
#include "vulkan/internal.h"

#include <stdarg.h>
#include <stdio.h>

static const struct row {
    VkResult result;
    const char *name;
    gpumem_status status;
} rows[] = {
#define ROW(name, status)                                                                          \
    { VK_##name, "VK_" #name, GPUMEM_ERROR_##status }
    ROW(NOT_READY, DRIVER),
    ROW(TIMEOUT, DRIVER),
    ROW(INCOMPLETE, DRIVER),
    ROW(ERROR_OUT_OF_HOST_MEMORY, OUT_OF_HOST_MEMORY),
    ROW(ERROR_OUT_OF_DEVICE_MEMORY, OUT_OF_MEMORY),
    ROW(ERROR_INITIALIZATION_FAILED, DRIVER),
    ROW(ERROR_DEVICE_LOST, DEVICE_FAULT),
    /* No address range is left on the host, not on the device. */
    ROW(ERROR_MEMORY_MAP_FAILED, OUT_OF_HOST_MEMORY),
    ROW(ERROR_LAYER_NOT_PRESENT, NOT_SUPPORTED),
    ROW(ERROR_EXTENSION_NOT_PRESENT, NOT_SUPPORTED),
    ROW(ERROR_FEATURE_NOT_PRESENT, NOT_SUPPORTED),
    ROW(ERROR_INCOMPATIBLE_DRIVER, NOT_SUPPORTED),
    ROW(ERROR_TOO_MANY_OBJECTS, OUT_OF_CAPACITY),
    ROW(ERROR_FORMAT_NOT_SUPPORTED, NOT_SUPPORTED),
    ROW(ERROR_FRAGMENTED_POOL, OUT_OF_MEMORY),
    ROW(ERROR_UNKNOWN, DRIVER),
    /* A descriptor of another driver that this one does not know. */
    ROW(ERROR_INVALID_EXTERNAL_HANDLE, NOT_SUPPORTED),
    ROW(ERROR_FRAGMENTATION, OUT_OF_MEMORY),
    ROW(ERROR_VALIDATION_FAILED_EXT, DRIVER),
    ROW(ERROR_NOT_PERMITTED_KHR, NOT_PERMITTED),
#undef ROW
};

static const struct row *find(VkResult result) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].result == result)
            return &rows[i];
    return NULL;
}

const char *gm_vulkan_result_name(VkResult result) {
    static _Thread_local char unknown[32];
    const struct row *row = find(result);
    if (row)
        return row->name;
    if (result == VK_SUCCESS)
        return "VK_SUCCESS";
    snprintf(unknown, sizeof unknown, "VkResult %d", (int)result);
    return unknown;
}

gpumem_status gm_vulkan_fail(VkResult result, const char *call, const char *format, ...) {
    char text[384];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const struct row *row = find(result);
    return gm_fail_vulkan(row ? row->status : GPUMEM_ERROR_DRIVER, (int)result,
                          gm_vulkan_result_name(result), call, "%s", text);
}
