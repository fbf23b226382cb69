/* Sharing physical memory between processes: descriptors and fabric handles. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/by_hand/by_hand.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/shortage.h"

#include <stdlib.h>
#include <string.h>

/* The driver's INVALID_VALUE means that imported memory cannot be exported again. */
static gpumem_status explain_export(const gpumem_physical *physical, gpumem_status status,
                                    const char *call) {
    if (status == GPUMEM_ERROR_DRIVER && physical->origin == GM_RECEIVED &&
        gpumem_last_error()->driver_code == CUDA_ERROR_INVALID_VALUE)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: the driver does not export imported memory again; export it in the "
                       "process that created it",
                       call);
    return status;
}

static gpumem_status check_type(gpumem_handle_type type, const char *call) {
    GM_REQUIRE(type == GPUMEM_HANDLE_POSIX_FD || type == GPUMEM_HANDLE_FABRIC,
               "%s: the handle type is neither POSIX_FD nor FABRIC", call);
    return GPUMEM_OK;
}

static gpumem_status fill(const gpumem_physical *physical, gpumem_physical_share_handle *handle) {
    if (handle->type == GPUMEM_HANDLE_POSIX_FD)
        return gm_vmm_export_fd(physical->device, physical->handle, &handle->descriptor);
    CUmemFabricHandle made;
    gpumem_status status = gm_vmm_export_fabric(physical->device, physical->handle, &made);
    if (status == GPUMEM_OK)
        memcpy(handle->fabric, &made, sizeof handle->fabric);
    return status;
}

gpumem_status gpumem_physical_export(gpumem_physical *physical,
                                     gpumem_physical_share_handle *handle) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_physical_export";
    GM_CHECK(physical, call);
    gpumem_physical_share_handle filled;
    GM_REQUIRE(handle, "%s: handle is NULL", call);
    gpumem_status status = GM_OPTIONS_READ(gpumem_physical_share_handle, handle, &filled);
    if (status == GPUMEM_OK)
        status = check_type(filled.type, call);
    if (status != GPUMEM_OK)
        return status;
    int fd = filled.type == GPUMEM_HANDLE_POSIX_FD;
    if (!(fd ? physical->exports_fd : physical->exports_fabric))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: the memory was not created with GPUMEM_HANDLE_%s, or was imported",
                       call, fd ? "POSIX_FD" : "FABRIC");
    filled.size = sizeof filled;
    filled.descriptor = -1;
    memset(filled.fabric, 0, sizeof filled.fabric);
    status = explain_export(physical, fill(physical, &filled), call);
    return status == GPUMEM_OK ? GM_RESULT_WRITE(gpumem_physical_share_handle, handle, &filled)
                               : status;
}

/* Memory of another process, before its handle is known. */
static gpumem_status begin_import(gpumem_device *device, size_t bytes, const char *call,
                                  gpumem_physical **made) {
    gpumem_status status = gm_vmm_supported(device);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(bytes, "%s: bytes is 0", call);
    GM_REQUIRE(bytes % device->granularity == 0,
               "%s: %zu bytes are not a multiple of the granularity %zu", call, bytes,
               device->granularity);
    *made = gm_physical_new(device, bytes, device->granularity, GM_RECEIVED);
    return *made ? GPUMEM_OK : GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
}

static gpumem_status open_handle(gpumem_device *device, const gpumem_physical_share_handle *handle,
                                 gpumem_physical *made) {
    made->exports_fd = handle->type == GPUMEM_HANDLE_POSIX_FD;
    made->exports_fabric = !made->exports_fd;
    if (made->exports_fd)
        return gm_vmm_import_fd(device, &device->meter, handle->descriptor, &made->handle);
    CUmemFabricHandle fabric;
    memcpy(&fabric, handle->fabric, sizeof fabric);
    return gm_vmm_import_fabric(device, &device->meter, &fabric, &made->handle);
}

gpumem_status gpumem_physical_import(gpumem_device *device,
                                     const gpumem_physical_share_handle *given, size_t bytes,
                                     gpumem_physical **physical) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_physical_import";
    GM_CHECK(device, call);
    gpumem_physical_share_handle handle;
    GM_REQUIRE(given && physical, "%s: handle or physical is NULL", call);
    gpumem_status status = GM_OPTIONS_READ(gpumem_physical_share_handle, given, &handle);
    if (status == GPUMEM_OK)
        status = check_type(handle.type, call);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(handle.type != GPUMEM_HANDLE_POSIX_FD || handle.descriptor >= 0,
               "%s: the descriptor is %d", call, handle.descriptor);
    gpumem_physical *made = NULL;
    status = begin_import(device, bytes, call, &made);
    if (status != GPUMEM_OK)
        return status;
    status = open_handle(device, &handle, made);
    if (status != GPUMEM_OK) {
        free(made);
        return gm_tell_shortage(device, NULL, bytes, status);
    }
    gm_physical_hand_out(made, physical);
    return GPUMEM_OK;
}
