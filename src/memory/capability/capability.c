/* What the platform can do, and why not: one table of capabilities. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/device.h"
#include "memory/pool/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Probes a capability if attributes alone are not reliable; cleans up after itself. */
typedef gpumem_status (*probe_fn)(gpumem_device *device);

static gpumem_status probe_memory(gpumem_device *device, gpumem_location location,
                                  gpumem_handle_type type, int rdma) {
    CUmemAllocationProp prop = gm_vmm_prop(device, location, 0, type, rdma, 0);
    if (location == GPUMEM_LOCATION_HOST_NUMA)
        prop.location.id = gm_device_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0);
    if (prop.location.id < 0)
        prop.location.id = 0;
    size_t bytes = 0;
    gpumem_status status = gm_vmm_granularity(device, &prop, GPUMEM_GRANULARITY_MINIMUM, &bytes);
    if (status != GPUMEM_OK)
        return status;
    CUmemGenericAllocationHandle handle;
    status = gm_vmm_create(device, &device->meter, bytes, &prop, &handle);
    if (status == GPUMEM_OK)
        gm_vmm_release(device, &device->meter, handle, bytes);
    return status;
}

static gpumem_status probe_fd(gpumem_device *device) {
    return probe_memory(device, GPUMEM_LOCATION_DEVICE, GPUMEM_HANDLE_POSIX_FD, 0);
}

static gpumem_status probe_fabric(gpumem_device *device) {
    return probe_memory(device, GPUMEM_LOCATION_DEVICE, GPUMEM_HANDLE_FABRIC, 0);
}

static gpumem_status probe_rdma(gpumem_device *device) {
    return probe_memory(device, GPUMEM_LOCATION_DEVICE, GPUMEM_HANDLE_NONE, 1);
}

static gpumem_status probe_host(gpumem_device *device) {
    return probe_memory(device, GPUMEM_LOCATION_HOST, GPUMEM_HANDLE_NONE, 0);
}

static gpumem_status probe_host_numa(gpumem_device *device) {
    return probe_memory(device, GPUMEM_LOCATION_HOST_NUMA, GPUMEM_HANDLE_NONE, 0);
}

static gpumem_status probe_pool(gpumem_device *device, gpumem_location location,
                                gpumem_handle_type type) {
    CUmemAllocationProp like = gm_vmm_prop(device, location, 0, type, 0, 0);
    if (location == GPUMEM_LOCATION_HOST_NUMA)
        like.location.id = gm_device_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0);
    if (like.location.id < 0)
        like.location.id = 0;
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = like.requestedHandleTypes,
        .location = like.location,
    };
    CUmemoryPool pool;
    gpumem_status status = gm_pool_create(device, &props, 0, &pool);
    if (status == GPUMEM_OK && device->cu->cuMemPoolDestroy(pool) != CUDA_SUCCESS)
        gm_meter_quarantine(&device->meter, 0);
    return status;
}

static gpumem_status probe_device_pool_fd(gpumem_device *device) {
    return probe_pool(device, GPUMEM_LOCATION_DEVICE, GPUMEM_HANDLE_POSIX_FD);
}

static gpumem_status probe_host_pool(gpumem_device *device) {
    return probe_pool(device, GPUMEM_LOCATION_HOST, GPUMEM_HANDLE_NONE);
}

static gpumem_status probe_host_pool_fd(gpumem_device *device) {
    return probe_pool(device, GPUMEM_LOCATION_HOST, GPUMEM_HANDLE_POSIX_FD);
}

static gpumem_status probe_host_numa_pool(gpumem_device *device) {
    return probe_pool(device, GPUMEM_LOCATION_HOST_NUMA, GPUMEM_HANDLE_NONE);
}

static gpumem_status probe_host_numa_pool_fd(gpumem_device *device) {
    return probe_pool(device, GPUMEM_LOCATION_HOST_NUMA, GPUMEM_HANDLE_POSIX_FD);
}

static gpumem_status probe_uuid(gpumem_device *device) {
    CUuuid uuid;
    CUresult result = device->cu->cuDeviceGetUuid_v2(&uuid, device->handle);
    return result == CUDA_SUCCESS ? GPUMEM_OK
                                  : gm_cu_fail(device->cu, result, "cuDeviceGetUuid", "no UUID");
}

#define NONE_NEEDED GPUMEM_FN_COUNT

static const struct row {
    const char *name;
    const char *attribute_name;
    int attribute;                 /* 0: there is none, the probe alone decides */
    gpumem_driver_fn functions[2]; /* required of the driver */
    probe_fn probe;                /* NULL: the attribute decides */
} rows[GPUMEM_CAPABILITY_COUNT] = {
#define ROW(capability, name, attribute, first, second, probe)                                     \
    [GPUMEM_CAPABILITY_##                                                                          \
        capability] = {name, #attribute, CU_DEVICE_ATTRIBUTE_##attribute, {first, second}, probe}
    ROW(UNIFIED_ADDRESSING, "unified_addressing", UNIFIED_ADDRESSING, NONE_NEEDED, NONE_NEEDED,
        NULL),
    ROW(VIRTUAL_MEMORY, "virtual_memory", VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        GPUMEM_FN_cuMemAddressReserve, GPUMEM_FN_cuMemCreate, NULL),
    ROW(HANDLE_POSIX_FD, "handle_posix_fd", HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
        GPUMEM_FN_cuMemExportToShareableHandle, GPUMEM_FN_cuMemImportFromShareableHandle, probe_fd),
    ROW(HANDLE_FABRIC, "handle_fabric", HANDLE_TYPE_FABRIC_SUPPORTED,
        GPUMEM_FN_cuMemExportToShareableHandle, GPUMEM_FN_cuMemImportFromShareableHandle,
        probe_fabric),
    ROW(GPU_DIRECT_RDMA, "gpu_direct_rdma", GPU_DIRECT_RDMA_SUPPORTED, NONE_NEEDED, NONE_NEEDED,
        NULL),
    ROW(GPU_DIRECT_RDMA_VIRTUAL, "gpu_direct_rdma_virtual", GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
        GPUMEM_FN_cuMemCreate, NONE_NEEDED, probe_rdma),
    ROW(DMA_BUF, "dma_buf", DMA_BUF_SUPPORTED, GPUMEM_FN_cuMemGetHandleForAddressRange, NONE_NEEDED,
        NULL),
    ROW(COMPRESSION, "compression", GENERIC_COMPRESSION_SUPPORTED, NONE_NEEDED, NONE_NEEDED, NULL),
    ROW(DEVICE_POOL, "device_pool", MEMORY_POOLS_SUPPORTED, GPUMEM_FN_cuMemAllocFromPoolAsync,
        GPUMEM_FN_cuMemFreeAsync, NULL),
    ROW(DEVICE_POOL_POSIX_FD, "device_pool_posix_fd", MEMPOOL_SUPPORTED_HANDLE_TYPES,
        GPUMEM_FN_cuMemPoolExportToShareableHandle, GPUMEM_FN_cuMemPoolExportPointer,
        probe_device_pool_fd),
    ROW(HOST_POOL, "host_pool", HOST_MEMORY_POOLS_SUPPORTED, GPUMEM_FN_cuMemPoolCreate, NONE_NEEDED,
        probe_host_pool),
    ROW(HOST_POOL_POSIX_FD, "host_pool_posix_fd", HOST_MEMORY_POOLS_SUPPORTED,
        GPUMEM_FN_cuMemPoolExportToShareableHandle, NONE_NEEDED, probe_host_pool_fd),
    ROW(HOST_NUMA_POOL, "host_numa_pool", HOST_NUMA_MEMORY_POOLS_SUPPORTED,
        GPUMEM_FN_cuMemPoolCreate, NONE_NEEDED, probe_host_numa_pool),
    ROW(HOST_NUMA_POOL_POSIX_FD, "host_numa_pool_posix_fd", HOST_NUMA_MEMORY_POOLS_SUPPORTED,
        GPUMEM_FN_cuMemPoolExportToShareableHandle, NONE_NEEDED, probe_host_numa_pool_fd),
    ROW(HOST_VIRTUAL_MEMORY, "host_virtual_memory", HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        GPUMEM_FN_cuMemCreate, NONE_NEEDED, probe_host),
    ROW(HOST_NUMA_VIRTUAL_MEMORY, "host_numa_virtual_memory",
        HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, GPUMEM_FN_cuMemCreate, NONE_NEEDED,
        probe_host_numa),
    ROW(HOST_REGISTER, "host_register", HOST_REGISTER_SUPPORTED, GPUMEM_FN_cuMemHostRegister_v2,
        NONE_NEEDED, NULL),
    ROW(HOST_REGISTER_READ_ONLY, "host_register_read_only", READ_ONLY_HOST_REGISTER_SUPPORTED,
        GPUMEM_FN_cuMemHostRegister_v2, NONE_NEEDED, NULL),
    ROW(HOST_REGISTERED_SAME_POINTER, "host_registered_same_pointer",
        CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, NONE_NEEDED, NONE_NEEDED, NULL),
    ROW(PAGEABLE_ACCESS, "pageable_access", PAGEABLE_MEMORY_ACCESS, NONE_NEEDED, NONE_NEEDED, NULL),
    ROW(MANAGED, "managed", MANAGED_MEMORY, GPUMEM_FN_cuMemAllocManaged, NONE_NEEDED, NULL),
    ROW(MANAGED_CONCURRENT, "managed_concurrent", CONCURRENT_MANAGED_ACCESS, NONE_NEEDED,
        NONE_NEEDED, NULL),
    ROW(STREAM_MEMORY_OPERATIONS_64, "stream_memory_operations_64", CAN_USE_64_BIT_STREAM_MEM_OPS,
        GPUMEM_FN_cuStreamWaitValue64_v2, GPUMEM_FN_cuStreamWriteValue64_v2, NULL),
    ROW(HOST_NATIVE_ATOMICS, "host_native_atomics", HOST_NATIVE_ATOMIC_SUPPORTED, NONE_NEEDED,
        NONE_NEEDED, NULL),
    ROW(MULTICAST, "multicast", MULTICAST_SUPPORTED, GPUMEM_FN_cuMulticastCreate, NONE_NEEDED,
        NULL),
    ROW(EVENT_IPC, "event_ipc", IPC_EVENT_SUPPORTED, GPUMEM_FN_cuIpcGetEventHandle, NONE_NEEDED,
        NULL),
#undef ROW
    [GPUMEM_CAPABILITY_DEVICE_UUID] =
        {"device_uuid", "", 0, {NONE_NEEDED, NONE_NEEDED}, probe_uuid},
};

const char *gpumem_capability_name(gpumem_capability capability) {
    return (unsigned)capability < GPUMEM_CAPABILITY_COUNT ? rows[capability].name : "";
}

/* Sets the reason and returns 0, or returns 1. */
static int functions_present(const gpumem_device *device, const struct row *row,
                             gpumem_capability_report *report) {
    for (size_t i = 0; i < 2; i++) {
        gpumem_driver_fn fn = row->functions[i];
        if (fn == NONE_NEEDED || gpumem_driver_has(device->library->driver, fn))
            continue;
        snprintf(report->reason, sizeof report->reason, "the driver has no %s",
                 gpumem_driver_fn_info_get(fn)->symbol);
        return 0;
    }
    return 1;
}

static void find_out(gpumem_device *device, const struct row *row,
                     gpumem_capability_report *report) {
    CUresult result = row->attribute
                          ? device->cu->cuDeviceGetAttribute(
                                &report->value, (CUdevice_attribute)row->attribute, device->handle)
                          : CUDA_ERROR_NOT_FOUND;
    if (result != CUDA_SUCCESS)
        report->value = -1;
    if (!functions_present(device, row, report))
        return;
    if (report->value == 0) {
        snprintf(report->reason, sizeof report->reason, "attribute %s is 0", row->attribute_name);
        return;
    }
    if (!row->probe) {
        report->supported = report->value > 0;
        if (report->value < 0)
            snprintf(report->reason, sizeof report->reason, "the driver knows no attribute %s",
                     row->attribute_name);
        return;
    }
    gpumem_status status = row->probe(device);
    const gpumem_error *error = gpumem_last_error();
    report->supported = status == GPUMEM_OK;
    if (status == GPUMEM_OK)
        return;
    const char *hint = row->probe == probe_fabric && status == GPUMEM_ERROR_NOT_PERMITTED
                           ? " (no IMEX channel?)"
                           : "";
    const char *answer = gm_code_name(device->cu, (CUresult)error->driver_code);
    if (row->attribute)
        snprintf(report->reason, sizeof report->reason, "attribute %s is %d, but %s answered %s%s",
                 row->attribute_name, report->value, error->call, answer, hint);
    else
        snprintf(report->reason, sizeof report->reason, "%s answered %s", error->call, answer);
}

/* Remembered, except for results that may differ next time. */
static void remember(gpumem_device *device, gpumem_capability capability,
                     const gpumem_capability_report *report) {
    gpumem_capability_report *copy = malloc(sizeof *copy);
    if (!copy)
        return;
    *copy = *report;
    pthread_mutex_lock(&device->lock);
    if (!device->reports[capability]) {
        device->reports[capability] = copy;
        copy = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    free(copy);
}

gpumem_status gpumem_device_get_capability(gpumem_device *device, gpumem_capability capability,
                                           gpumem_capability_report *report) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_device_get_capability");
    GM_REQUIRE((unsigned)capability < GPUMEM_CAPABILITY_COUNT,
               "gpumem_device_get_capability: there is no capability %d", (int)capability);
    gpumem_capability_report filled = {.size = sizeof filled};
    pthread_mutex_lock(&device->lock);
    const gpumem_capability_report *known = device->reports[capability];
    if (known)
        filled = *known;
    pthread_mutex_unlock(&device->lock);
    if (!known) {
        struct gm_error_record saved;
        struct gm_current current;
        gpumem_status status = gm_current_enter(&current, device);
        if (status != GPUMEM_OK)
            return status;
        gm_error_save(&saved);
        find_out(device, &rows[capability], &filled);
        int passing = gpumem_last_error()->status == GPUMEM_ERROR_OUT_OF_MEMORY;
        gm_error_restore(&saved);
        gm_current_leave(&current);
        if (filled.supported || !passing)
            remember(device, capability, &filled);
    }
    return GM_RESULT_WRITE(gpumem_capability_report, report, &filled);
}
