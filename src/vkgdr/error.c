/* The thread's error, in the words that programs know from vkgdr. */
#include "base/cancel.h"
#include "base/log.h"
#include "vkgdr/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last[GM_VULKAN_REASON];

#define NO_DEVICE "no Vulkan device matching the CUDA device found"
#define NO_TYPE   "Vulkan device does not provide a suitable memory type"

void gm_vkgdr_error_reset(void) {
    last[0] = 0;
}

void gm_vkgdr_error_set(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(last, sizeof last, format, args);
    va_end(args);
}

char *vkgdr_last_error(void) {
    GM_UNCANCELLED;
    return last[0] ? strdup(last) : NULL;
}

void gm_vkgdr_error_cuda(const gpumem_driver_api *cu, CUresult result, const char *call) {
    const char *name = NULL;
    if (cu->cuGetErrorName(result, &name) == CUDA_SUCCESS && name)
        gm_vkgdr_error_set("%s failed (%s)", call, name);
    else
        gm_vkgdr_error_set("%s failed (unknown CUDA error %d)", call, (int)result);
}

/* The first "<call> answered <result>" of a text, which is how base/error.h reports a failed Vulkan
 * call. */
static bool set_answer(const char *text) {
    static const char between[] = " answered ", unnamed[] = "VkResult ";
    const char *at = strstr(text, between);
    if (!at)
        return false;
    const char *call = at;
    while (call > text && call[-1] != ' ')
        call--;
    const char *result = at + strlen(between);
    if (strncmp(result, unnamed, strlen(unnamed)) == 0)
        gm_vkgdr_error_set("%.*s failed (unknown Vulkan error %d)", (int)(at - call), call,
                           atoi(result + strlen(unnamed)));
    else
        gm_vkgdr_error_set("%.*s failed (%.*s)", (int)(at - call), call, (int)strcspn(result, "; "),
                           result);
    return true;
}

/* Several libraries may have failed. A failure with the device itself matters most, then a library
 * that opened but has only other devices. The log has everything. */
static void set_refusal(const gpumem_error *error, const char *reason) {
    gm_log(GPUMEM_LOG_WARNING, "vkgdr_open: %s", error->message);
    bool had_device = error->vulkan_code != 0;
    if (!had_device && strstr(reason, "no device with this UUID"))
        gm_vkgdr_error_set("%s", NO_DEVICE);
    else if (!set_answer(reason))
        gm_vkgdr_error_set("%s", reason);
}

void gm_vkgdr_error_vulkan(const char *reason) {
    const gpumem_error *error = gpumem_last_error();
    if (reason)
        set_refusal(error, reason);
    else if (error->vulkan_code != 0 && set_answer(error->message))
        return;
    /* Reports what src/vulkan refuses without a call as the call would have reported it. */
    else if (error->status == GPUMEM_ERROR_OUT_OF_MEMORY)
        gm_vkgdr_error_set("vkAllocateMemory failed (VK_ERROR_OUT_OF_DEVICE_MEMORY)");
    else if (error->status == GPUMEM_ERROR_OUT_OF_CAPACITY)
        gm_vkgdr_error_set("vkAllocateMemory failed (VK_ERROR_TOO_MANY_OBJECTS)");
    else if (error->status == GPUMEM_ERROR_NOT_SUPPORTED)
        gm_vkgdr_error_set("%s", NO_TYPE);
    else
        gm_vkgdr_error_set("%s", error->message);
}
