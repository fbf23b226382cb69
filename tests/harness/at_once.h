/*
 * What tests ask of the library in one call where it takes two: copies and fills that are done at
 * the return, bytes at an address that is no buffer's, one member of a result.
 */
#ifndef TESTS_AT_ONCE_H
#define TESTS_AT_ONCE_H

#include "checks.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>

static inline gpumem_status then_wait(gpumem_status status, gpumem_buffer *buffer,
                                      CUstream stream) {
    return status == GPUMEM_OK ? gpumem_stream_synchronize(gpumem_buffer_device(buffer), stream)
                               : status;
}

static inline gpumem_status write_now(gpumem_buffer *buffer, size_t offset, const void *host,
                                      size_t bytes, CUstream stream) {
    return then_wait(gpumem_buffer_write(buffer, offset, host, bytes, stream), buffer, stream);
}

static inline gpumem_status read_now(gpumem_buffer *buffer, size_t offset, void *host, size_t bytes,
                                     CUstream stream) {
    return then_wait(gpumem_buffer_read(buffer, offset, host, bytes, stream), buffer, stream);
}

static inline gpumem_status copy_now(gpumem_buffer *to, size_t to_offset, gpumem_buffer *from,
                                     size_t from_offset, size_t bytes, CUstream stream) {
    return then_wait(gpumem_buffer_copy(to, to_offset, from, from_offset, bytes, stream), to,
                     stream);
}

static inline gpumem_status fill_now(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                     unsigned char value, CUstream stream) {
    return then_wait(gpumem_buffer_fill(buffer, offset, bytes, value, stream), buffer, stream);
}

/* Makes a call of the driver's table `cu` in the device's context. */
#define IN_CONTEXT(on, call)                                                                       \
    do {                                                                                           \
        const gpumem_driver_api *cu =                                                              \
            gpumem_driver_table(gpumem_library_driver(gpumem_device_library(on)));                 \
        CUcontext former;                                                                          \
        CUresult result = cu->cuCtxPushCurrent_v2(gpumem_device_context(on));                      \
        if (result == CUDA_SUCCESS) {                                                              \
            result = (call);                                                                       \
            (void)cu->cuCtxPopCurrent_v2(&former);                                                 \
        }                                                                                          \
        return result == CUDA_SUCCESS ? GPUMEM_OK : GPUMEM_ERROR_DRIVER;                           \
    } while (0)

static inline gpumem_status copy_bytes(gpumem_device *on, CUdeviceptr to, CUdeviceptr from,
                                       size_t bytes, CUstream stream) {
    IN_CONTEXT(on, cu->cuMemcpyAsync(to, from, bytes, stream));
}

static inline gpumem_status fill_bytes(gpumem_device *on, CUdeviceptr to, size_t bytes,
                                       unsigned char value, CUstream stream) {
    IN_CONTEXT(on, cu->cuMemsetD8Async(to, value, bytes, stream));
}

static inline gpumem_mapping_info mapping_info(const gpumem_mapping *mapping) {
    gpumem_mapping_info info = {.size = sizeof info};
    OK(gpumem_mapping_get_info(mapping, &info));
    return info;
}

static inline size_t physical_size(gpumem_physical *physical) {
    gpumem_physical_properties properties = {.size = sizeof properties};
    OK(gpumem_physical_get_properties(physical, &properties));
    return properties.bytes;
}

static inline gpumem_export_info export_info(const gpumem_export *exported) {
    gpumem_export_info info = {.size = sizeof info};
    OK(gpumem_export_get_info(exported, &info));
    return info;
}

static inline size_t chunks_of(gpumem_buffer *buffer) {
    gpumem_layout layout = {.size = sizeof layout};
    OK(gpumem_buffer_get_layout(buffer, &layout, NULL, 0));
    return layout.segment_count;
}

static inline gpumem_device_info device_info(gpumem_device *of) {
    gpumem_device_info info = {.size = sizeof info};
    OK(gpumem_device_get_info(gpumem_device_library(of), gpumem_device_ordinal(of), &info));
    return info;
}

static inline gpumem_status export_description(const gpumem_export *exported,
                                               const void **description, size_t *bytes) {
    gpumem_export_info info = {.size = sizeof info};
    gpumem_status status = gpumem_export_get_info(exported, &info);
    *description = info.description;
    *bytes = info.description_bytes;
    return status;
}

static inline gpumem_status export_descriptor(const gpumem_export *exported, size_t index,
                                              int *fd) {
    gpumem_export_info info = {.size = sizeof info};
    gpumem_status status = gpumem_export_get_info(exported, &info);
    *fd = index < info.descriptor_count ? info.descriptors[index] : -1;
    return status;
}

/* Of one device. */
static inline gpumem_status snapshot_of(gpumem_device *of, char **text) {
    return gpumem_snapshot(gpumem_device_library(of), GPUMEM_SNAPSHOT_OPTIONS(.device = of), text);
}

/* NULL: it is no view. */
static inline gpumem_buffer *viewed_by(gpumem_buffer *view) {
    gpumem_buffer_attributes attributes = {.size = sizeof attributes};
    OK(gpumem_buffer_get_attributes(view, &attributes));
    return attributes.viewed;
}

/* Memory by hand. */

static inline CUdeviceptr reservation_address(const gpumem_reservation *reservation) {
    gpumem_reservation_info info = {.size = sizeof info};
    OK(gpumem_reservation_get_info(reservation, &info));
    return info.address;
}

static inline gpumem_status mapping_set_access(gpumem_mapping *mapping, int ordinal,
                                               gpumem_access access) {
    gpumem_mapping_info info = {.size = sizeof info};
    gpumem_status status = gpumem_mapping_get_info(mapping, &info);
    return status == GPUMEM_OK ? gpumem_reservation_set_access(info.reservation, info.offset,
                                                               info.bytes, ordinal, access)
                               : status;
}

struct fabric_handle {
    unsigned char bytes[64];
};

static inline gpumem_status physical_export_fd(gpumem_physical *physical, int *fd) {
    gpumem_physical_share_handle handle = {.size = sizeof handle, .type = GPUMEM_HANDLE_POSIX_FD};
    gpumem_status status = gpumem_physical_export(physical, fd ? &handle : NULL);
    if (status == GPUMEM_OK)
        *fd = handle.descriptor;
    return status;
}

static inline gpumem_status physical_import_fd(gpumem_device *on, int fd, size_t bytes,
                                               gpumem_physical **physical) {
    return gpumem_physical_import(
        on, GPUMEM_PHYSICAL_SHARE_HANDLE(.type = GPUMEM_HANDLE_POSIX_FD, .descriptor = fd), bytes,
        physical);
}

static inline gpumem_status physical_export_fabric(gpumem_physical *physical,
                                                   struct fabric_handle *handle) {
    gpumem_physical_share_handle made = {.size = sizeof made, .type = GPUMEM_HANDLE_FABRIC};
    gpumem_status status = gpumem_physical_export(physical, handle ? &made : NULL);
    if (status == GPUMEM_OK)
        memcpy(handle->bytes, made.fabric, sizeof handle->bytes);
    return status;
}

static inline gpumem_status physical_import_fabric(gpumem_device *on,
                                                   const struct fabric_handle *handle, size_t bytes,
                                                   gpumem_physical **physical) {
    gpumem_physical_share_handle given = {.size = sizeof given, .type = GPUMEM_HANDLE_FABRIC};
    if (handle)
        memcpy(given.fabric, handle->bytes, sizeof given.fabric);
    return gpumem_physical_import(on, handle ? &given : NULL, bytes, physical);
}

#endif
