#include "base/cancel.h"
#include "base/fork.h"
#include "base/options.h"
#include "driver/loader.h"
#include "memory/core/driver_error.h"
#include "memory/object/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpumem_status no_device(const gpumem_library *library, int chosen, CUresult code) {
    const char *hint =
        chosen ? "" : "; without a GPU, set GPUMEM_DRIVER=softgpu to use the software one";
    const char *path = gm_driver_path(library->driver);
    if (code == CUDA_SUCCESS)
        return gm_fail(GPUMEM_ERROR_NO_DEVICE, "the driver %s has no device%s", path, hint);
    return gm_cu_fail(library->cu, code, "cuInit", "the driver %s cannot be initialised%s", path,
                      hint);
}

static gpumem_status start(gpumem_library *library, int chosen) {
    const gpumem_driver_api *cu = library->cu;
    CUresult result = cu->cuInit(0);
    if (result != CUDA_SUCCESS)
        return no_device(library, chosen, result);
    result = cu->cuDriverGetVersion(&library->driver_version);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuDriverGetVersion", "cannot get the driver's version");
    result = cu->cuDeviceGetCount(&library->device_count);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuDeviceGetCount", "cannot get the number of devices");
    if (library->device_count < 1)
        return no_device(library, chosen, CUDA_SUCCESS);
    library->devices = calloc((size_t)library->device_count, sizeof *library->devices);
    if (!library->devices)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to open the library");
    return GPUMEM_OK;
}

static void discard(gpumem_library *library) {
    gpumem_driver_close(library->driver);
    pthread_mutex_destroy(&library->lock);
    pthread_mutex_destroy(&library->registry);
    free(library->devices);
    gm_bury(library);
}

gpumem_status gpumem_open(const gpumem_open_options *given, gpumem_library **library) {
    GM_UNCANCELLED;
    gpumem_open_options options;
    GM_REQUIRE(library, "gpumem_open: library is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_open_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    gm_fork_watch();
    gpumem_library *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to open the library");
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->registry, NULL);
    made->generation = gm_fork_generation();
    status = gpumem_driver_open(options.driver, &made->driver);
    if (status == GPUMEM_OK) {
        made->cu = gpumem_driver_table(made->driver);
        const char *variable = secure_getenv("GPUMEM_DRIVER");
        status = start(made, options.driver || (variable && variable[0]));
    }
    if (status != GPUMEM_OK) {
        discard(made);
        return status;
    }
    *library = made;
    return GPUMEM_OK;
}

/* "0, 2" for the open devices; the library's lock is held. */
static int open_devices(const gpumem_library *library, char *text, size_t size) {
    int count = 0;
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < library->device_count; i++) {
        if (!library->devices[i])
            continue;
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%d", count ? ", " : "", i);
        count++;
    }
    return count;
}

int gm_library_has_devices(gpumem_library *library) {
    char which[128];
    pthread_mutex_lock(&library->lock);
    int count = open_devices(library, which, sizeof which);
    pthread_mutex_unlock(&library->lock);
    return count != 0;
}

void gm_library_end(gpumem_library *library) {
    discard(library);
}

gpumem_status gpumem_close(gpumem_library *library) {
    GM_UNCANCELLED;
    if (!library)
        return GPUMEM_OK;
    GM_CHECK(library, "gpumem_close");
    char which[128];
    pthread_mutex_lock(&library->lock);
    int count = open_devices(library, which, sizeof which), closed = library->closing.listed;
    pthread_mutex_unlock(&library->lock);
    GM_REQUIRE(!closed, "gpumem_close: the library was closed (gpumem_close_later)");
    if (count)
        return gm_fail(GPUMEM_ERROR_BUSY, "gpumem_close: %d device%s still open: %s", count,
                       count == 1 ? " is" : "s are", which);
    discard(library);
    return GPUMEM_OK;
}

gpumem_status gpumem_library_get_info(gpumem_library *library, gpumem_library_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(library, "gpumem_library_get_info");
    int softgpu = gm_driver_is_softgpu(library->driver);
    gpumem_library_info filled = {
        .size = sizeof filled,
        .driver_kind = softgpu ? "softgpu" : "nvidia",
        .driver_path = gm_driver_path(library->driver),
        .driver_version = library->driver_version,
        .softgpu = softgpu,
        .device_count = library->device_count,
    };
    return GM_RESULT_WRITE(gpumem_library_info, info, &filled);
}

const gpumem_driver *gpumem_library_driver(const gpumem_library *library) {
    return library->driver;
}
