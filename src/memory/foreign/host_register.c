/* Memory that the program already has, pinned while a buffer of it lives. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/pointer_facts.h"
#include "memory/foreign/foreign.h"
#include "memory/object/device.h"

#include <gpumem/foreign.h>
#include <stdlib.h>

/* Needed at the end of the buffer. */
struct registered {
    gpumem_device *device;
    void *address;
};

/* The device's context is current. If the driver refuses, it stays pinned. */
static void end(void *user, CUdeviceptr pointer, size_t bytes, CUstream stream) {
    struct registered *registered = user;
    (void)pointer, (void)stream;
    gpumem_device *device = registered->device;
    if (device->cu->cuMemHostUnregister(registered->address) != CUDA_SUCCESS)
        gm_meter_quarantine_memory(&device->meter, bytes);
    free(registered);
}

static gpumem_status check(gpumem_device *device, const void *address, size_t bytes,
                           const gpumem_register_options *o) {
    static const char call[] = "gpumem_buffer_register";
    GM_REQUIRE(address && bytes, "%s: %zu bytes at %p is not a valid range", call, bytes, address);
    GM_REQUIRE(bytes <= UINTPTR_MAX - (uintptr_t)address,
               "%s: %zu bytes at %p exceeds the address space", call, bytes, address);
    if (!gm_device_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 0))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s: device %d cannot register host memory",
                       call, device->ordinal);
    if (o->read_only &&
        !gm_device_attribute(device, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: device %d cannot register read-only memory (attribute 0)", call,
                       device->ordinal);
    return GPUMEM_OK;
}

/* Registered memory that has the first or the last byte; of other parts only the pages count. */
static int find_registered(const gpumem_device *device, CUdeviceptr address, size_t bytes,
                           CUdeviceptr *base, size_t *size) {
    return gm_pointer_piece(device, address, base, size) ||
           gm_pointer_piece(device, address + bytes - 1, base, size);
}

static gpumem_status refuse_again(const gpumem_device *device, CUresult result, void *address,
                                  size_t bytes) {
    const gpumem_driver_api *cu = device->cu;
    CUdeviceptr base;
    size_t size;
    if (!find_registered(device, (CUdeviceptr)(uintptr_t)address, bytes, &base, &size))
        return gm_cu_fail_as(GPUMEM_ERROR_BUSY, cu, result, "cuMemHostRegister",
                             "cannot pin %zu bytes at %p: a part of their pages is registered "
                             "already; make a buffer of it by gpumem_buffer_from_pointer",
                             bytes, address);
    return gm_cu_fail_as(GPUMEM_ERROR_BUSY, cu, result, "cuMemHostRegister",
                         "cannot pin %zu bytes at %p: %zu at 0x%llx are registered already; make a "
                         "buffer of those by gpumem_buffer_from_pointer",
                         bytes, address, size, base);
}

static gpumem_status refuse(const gpumem_driver_api *cu, CUresult result, size_t bytes) {
    return gm_cu_fail_host(cu, result, "cuMemHostRegister", "cannot pin %zu bytes", bytes);
}

/* A refusal may have taken effect, but not one that says the memory is already registered. */
static gpumem_status pin(gpumem_device *device, void *address, size_t bytes, int read_only,
                         CUdeviceptr *pointer) {
    const gpumem_driver_api *cu = device->cu;
    const unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                           (read_only ? CU_MEMHOSTREGISTER_READ_ONLY : 0u);
    CUresult result = cu->cuMemHostRegister_v2(address, bytes, flags);
    if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
        return refuse_again(device, result, address, bytes);
    gpumem_status status = GPUMEM_OK;
    int pinned = result == CUDA_SUCCESS;
    if (!pinned)
        status = refuse(cu, result, bytes);
    else if ((result = cu->cuMemHostGetDevicePointer_v2(pointer, address, 0)) != CUDA_SUCCESS)
        status = gm_cu_fail(cu, result, "cuMemHostGetDevicePointer", "%zu bytes", bytes);
    if (status == GPUMEM_OK)
        return GPUMEM_OK;
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (cu->cuMemHostUnregister(address) != CUDA_SUCCESS && pinned)
        gm_meter_quarantine_memory(&device->meter, bytes);
    gm_error_restore(&saved);
    return status;
}

static gpumem_status make(gpumem_device *device, void *address, size_t bytes,
                          const gpumem_register_options *o, struct registered *registered,
                          gpumem_buffer **buffer) {
    struct gm_current current;
    CUdeviceptr pointer = 0;
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    status = pin(device, address, bytes, o->read_only, &pointer);
    if (status == GPUMEM_OK) {
        const struct gm_pointer known = {.on_host = 1, .host_pointer = address};
        const gpumem_foreign_options options = {.size = sizeof options,
                                                .stream = o->stream,
                                                .deleter = end,
                                                .user = registered,
                                                .read_only = o->read_only};
        status = gm_foreign_make(device, pointer, bytes, &known, &options, buffer);
        if (status != GPUMEM_OK && device->cu->cuMemHostUnregister(address) != CUDA_SUCCESS)
            gm_meter_quarantine_memory(&device->meter, bytes);
    }
    gm_current_leave(&current);
    return status;
}

gpumem_status gpumem_buffer_register(gpumem_device *device, void *address, size_t bytes,
                                     const gpumem_register_options *given, gpumem_buffer **buffer) {
    GM_UNCANCELLED;
    gpumem_register_options options;
    GM_CHECK(device, "gpumem_buffer_register");
    GM_REQUIRE(buffer, "gpumem_buffer_register: buffer is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_register_options, given, &options);
    if (status == GPUMEM_OK)
        status = check(device, address, bytes, &options);
    if (status != GPUMEM_OK)
        return status;
    struct registered *registered = malloc(sizeof *registered);
    if (!registered)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a buffer");
    *registered = (struct registered){device, address};
    status = make(device, address, bytes, &options, registered, buffer);
    if (status != GPUMEM_OK)
        free(registered);
    return status;
}
