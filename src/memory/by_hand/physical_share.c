/* Sharing physical memory between processes: descriptors and fabric handles. */
#include "base/cancel.h"
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

gpumem_status gpumem_physical_export_fd(gpumem_physical *physical, int *fd) {
    GM_UNCANCELLED;
    GM_CHECK(physical, "gpumem_physical_export_fd");
    GM_REQUIRE(fd, "gpumem_physical_export_fd: fd is NULL");
    if (!physical->exports_fd)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "gpumem_physical_export_fd: the memory was not created with "
                       "GPUMEM_HANDLE_POSIX_FD, or was imported");
    return explain_export(physical, gm_vmm_export_fd(physical->device, physical->handle, fd),
                          "gpumem_physical_export_fd");
}

gpumem_status gpumem_physical_export_fabric(gpumem_physical *physical,
                                            gpumem_fabric_handle *handle) {
    GM_UNCANCELLED;
    GM_CHECK(physical, "gpumem_physical_export_fabric");
    GM_REQUIRE(handle, "gpumem_physical_export_fabric: handle is NULL");
    if (!physical->exports_fabric)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "gpumem_physical_export_fabric: the memory was not created with "
                       "GPUMEM_HANDLE_FABRIC, or was imported");
    CUmemFabricHandle made;
    gpumem_status status =
        explain_export(physical, gm_vmm_export_fabric(physical->device, physical->handle, &made),
                       "gpumem_physical_export_fabric");
    if (status == GPUMEM_OK)
        memcpy(handle->bytes, &made, sizeof handle->bytes);
    return status;
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

gpumem_status gpumem_physical_import_fd(gpumem_device *device, int fd, size_t bytes,
                                        gpumem_physical **physical) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_physical_import_fd");
    GM_REQUIRE(physical, "gpumem_physical_import_fd: physical is NULL");
    GM_REQUIRE(fd >= 0, "gpumem_physical_import_fd: fd is %d", fd);
    gpumem_physical *made = NULL;
    gpumem_status status = begin_import(device, bytes, "gpumem_physical_import_fd", &made);
    if (status != GPUMEM_OK)
        return status;
    status = gm_vmm_import_fd(device, &device->meter, fd, &made->handle);
    if (status != GPUMEM_OK) {
        free(made);
        return gm_tell_shortage(device, NULL, bytes, status);
    }
    made->exports_fd = 1;
    gm_physical_hand_out(made, physical);
    return GPUMEM_OK;
}

gpumem_status gpumem_physical_import_fabric(gpumem_device *device,
                                            const gpumem_fabric_handle *handle, size_t bytes,
                                            gpumem_physical **physical) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_physical_import_fabric");
    GM_REQUIRE(handle && physical, "gpumem_physical_import_fabric: handle or physical is NULL");
    gpumem_physical *made = NULL;
    gpumem_status status = begin_import(device, bytes, "gpumem_physical_import_fabric", &made);
    if (status != GPUMEM_OK)
        return status;
    CUmemFabricHandle fabric;
    memcpy(&fabric, handle->bytes, sizeof fabric);
    status = gm_vmm_import_fabric(device, &device->meter, &fabric, &made->handle);
    if (status != GPUMEM_OK) {
        free(made);
        return gm_tell_shortage(device, NULL, bytes, status);
    }
    made->exports_fabric = 1;
    gm_physical_hand_out(made, physical);
    return GPUMEM_OK;
}
