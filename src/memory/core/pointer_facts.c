#include "memory/core/pointer_facts.h"

#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"

/* The handle of a mapping, to be released; *handle is 0 if the address is not in a mapping. */
static gpumem_status retain(gpumem_device *device, CUdeviceptr pointer,
                            CUmemGenericAllocationHandle *handle) {
    const gpumem_driver_api *cu = device->cu;
    *handle = 0;
    CUresult result = cu->cuMemRetainAllocationHandle(handle, (void *)(uintptr_t)pointer);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    /* It may have taken effect: the driver reports earlier failures in this way. */
    if (*handle && cu->cuMemRelease(*handle) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
    *handle = 0;
    if (result == CUDA_ERROR_INVALID_VALUE)
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, "cuMemRetainAllocationHandle",
                      "cannot get the location of 0x%llx", pointer);
}

/* The driver reports no host pointer for host memory mapped by hand, even if the CPU has access
 * (recorded on an H200): its handle has the location, and its mapping the access. */
static gpumem_status ask_mapping(gpumem_device *device, CUdeviceptr pointer,
                                 struct gm_pointer *out) {
    const gpumem_driver_api *cu = device->cu;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = {0};
    unsigned long long flags = 0;
    gpumem_status status = retain(device, pointer, &handle);
    if (status != GPUMEM_OK || !handle)
        return status;
    CUresult result = cu->cuMemGetAllocationPropertiesFromHandle(&prop, handle);
    if (result != CUDA_SUCCESS)
        status = gm_cu_fail(cu, result, "cuMemGetAllocationPropertiesFromHandle",
                            "cannot get the location of 0x%llx", pointer);
    if (cu->cuMemRelease(handle) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
    if (status != GPUMEM_OK)
        return status;
    out->location = prop.location;
    result = cu->cuMemGetAccess(&flags, &prop.location, pointer);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuMemGetAccess", "cannot get the access rights of 0x%llx",
                          pointer);
    if (flags)
        out->host_pointer = (void *)(uintptr_t)pointer;
    return GPUMEM_OK;
}

gpumem_status gm_pointer_ask(gpumem_device *device, CUdeviceptr pointer, struct gm_pointer *out) {
    const gpumem_driver_api *cu = device->cu;
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    *out = (struct gm_pointer){.ordinal = -1};
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,          CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,       CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER,
    };
    void *data[] = {&type,
                    &managed,
                    &ordinal,
                    &out->context,
                    &out->handle_types,
                    &out->device_pointer,
                    &out->host_pointer};
    CUresult result =
        cu->cuPointerGetAttributes(sizeof which / sizeof which[0], which, data, pointer);
    if (result != CUDA_SUCCESS)
        return gm_cu_fail(cu, result, "cuPointerGetAttributes",
                          "cannot get the attributes of 0x%llx", pointer);
    out->type = type;
    out->managed = managed != 0;
    out->ordinal = ordinal;
    out->on_host = type == CU_MEMORYTYPE_HOST && !managed;
    out->location.type = out->on_host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    out->location.id = out->on_host ? 0 : ordinal;
    if (out->on_host && !out->host_pointer && device->has_virtual)
        return ask_mapping(device, pointer, out);
    return GPUMEM_OK;
}

static gpumem_status ask_known(gpumem_device *device, CUdeviceptr pointer, struct gm_pointer *out) {
    gpumem_status status = gm_pointer_ask(device, pointer, out);
    if (status == GPUMEM_OK && out->type != CU_MEMORYTYPE_DEVICE && out->type != CU_MEMORYTYPE_HOST)
        status = gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                         "0x%llx is neither device nor pinned nor managed memory", pointer);
    return status;
}

int gm_pointer_piece(const gpumem_device *device, CUdeviceptr at, CUdeviceptr *base,
                     size_t *bytes) {
    *base = 0;
    *bytes = 0;
    return device->cu->cuMemGetAddressRange_v2(base, bytes, at) == CUDA_SUCCESS && *base <= at &&
           *bytes > at - *base;
}

/* The end of the driver's piece of memory; the end of the range if the driver does not report
 * it. */
static CUdeviceptr piece_end(const gpumem_device *device, CUdeviceptr at, CUdeviceptr end) {
    CUdeviceptr base;
    size_t bytes;
    if (!gm_pointer_piece(device, at, &base, &bytes) || bytes - (at - base) >= end - at)
        return end;
    return base + bytes;
}

static int same_kind(const struct gm_pointer *a, const struct gm_pointer *b) {
    return a->type == b->type && a->managed == b->managed &&
           (a->on_host || a->ordinal == b->ordinal) && !a->host_pointer == !b->host_pointer;
}

static gpumem_status is_mapping(gpumem_device *device, CUdeviceptr at, int *mapping) {
    CUmemGenericAllocationHandle handle = 0;
    gpumem_status status = device->has_virtual ? retain(device, at, &handle) : GPUMEM_OK;
    *mapping = handle != 0;
    if (handle && device->cu->cuMemRelease(handle) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
    return status;
}

/* The driver copies across mappings that lie side by side, but not from one allocation, or one
 * registration, into the next. */
static gpumem_status check_boundary(gpumem_device *device, CUdeviceptr pointer, CUdeviceptr at) {
    int before = 0, behind = 0;
    gpumem_status status = is_mapping(device, at - 1, &before);
    if (status == GPUMEM_OK && before)
        status = is_mapping(device, at, &behind);
    if (status != GPUMEM_OK || (before && behind))
        return status;
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                   "the range at 0x%llx lies in two allocations or registrations, the second from "
                   "0x%llx on, and no copy of the driver goes from one into the other; make a "
                   "buffer of each",
                   pointer, at);
}

/* Checks the first byte of each piece and, because the end of some is unknown, the last byte of the
 * range. */
static gpumem_status ask_pieces(gpumem_device *device, CUdeviceptr pointer, size_t bytes,
                                struct gm_pointer *out) {
    const CUdeviceptr end = pointer + bytes;
    gpumem_status status = ask_known(device, pointer, out);
    CUdeviceptr at = pointer;
    while (status == GPUMEM_OK && at != end - 1) {
        at = piece_end(device, at, end);
        int boundary = at != end;
        if (!boundary)
            at = end - 1;
        struct gm_pointer next;
        status = ask_known(device, at, &next);
        if (status == GPUMEM_OK && !same_kind(out, &next))
            status = gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                             "0x%llx is memory of another kind than 0x%llx, where the range begins",
                             at, pointer);
        if (status == GPUMEM_OK && boundary)
            status = check_boundary(device, pointer, at);
    }
    return status;
}

gpumem_status gm_pointer_ask_range(gpumem_device *device, CUdeviceptr pointer, size_t bytes,
                                   struct gm_pointer *out) {
    struct gm_current current;
    GM_REQUIRE(bytes && pointer + bytes > pointer, "%zu bytes at 0x%llx is not a valid range",
               bytes, pointer);
    gpumem_status status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    status = ask_pieces(device, pointer, bytes, out);
    gm_current_leave(&current);
    return status;
}
