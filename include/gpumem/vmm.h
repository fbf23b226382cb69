/*
 * Virtual memory by hand: reserve addresses, create memory, map it there, set access to it.
 *
 * Handles are typed, and misuse is refused before the driver is called: anything that is unaligned,
 * overlaps, belongs to another device or library, or is still mapped. Every function is
 * thread-safe. None waits for queued work: the caller must know when memory is no longer in use
 * (cuMemUnmap itself does not wait, and queued work on unmapped memory poisons the context). The
 * virtual resource does all of this, and also waits and grows.
 */
#ifndef GPUMEM_VMM_H
#define GPUMEM_VMM_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A range of reserved addresses. */
typedef struct gpumem_reservation gpumem_reservation;
/* Physical memory, without an address. */
typedef struct gpumem_physical gpumem_physical;
/* Physical memory at addresses of a reservation. */
typedef struct gpumem_mapping gpumem_mapping;

/* Options of gpumem_reservation_create. */
typedef struct gpumem_reservation_options {
    size_t size;
    /* Bytes, a power of two; 0 or anything below the device's minimum granularity means that
     * granularity. `bytes` need not be a multiple of it. OUT_OF_MEMORY: no range with this
     * alignment. */
    size_t alignment;
    CUdeviceptr address_hint; /* preferred, if free: check the result; 0: the driver decides */
} gpumem_reservation_options;
#define GPUMEM_RESERVATION_OPTIONS(...) GPUMEM_OPTIONS(gpumem_reservation_options, __VA_ARGS__)

/*
 * Reserves `bytes` of address space, a multiple of the device's minimum granularity. It costs no
 * memory. The caller destroys it. OUT_OF_MEMORY: no such address range is left. Driver:
 * cuMemAddressReserve.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_reservation_create(
    gpumem_device *device, size_t bytes, const gpumem_reservation_options *options,
    gpumem_reservation **reservation);
/* BUSY while anything is mapped in it (the message says where); NULL is allowed. Mapping objects
 * that were unmapped may still exist. Driver: cuMemAddressFree. */
GPUMEM_API gpumem_status gpumem_reservation_destroy(gpumem_reservation *reservation);

/* What gpumem_reservation_get_info fills in. */
typedef struct gpumem_reservation_info {
    size_t size;
    CUdeviceptr address; /* of its first byte */
    size_t bytes;
} gpumem_reservation_info;

/* Set `info->size` before the call. No driver call. */
GPUMEM_API gpumem_status gpumem_reservation_get_info(const gpumem_reservation *reservation,
                                                     gpumem_reservation_info *info);

/* Options of gpumem_physical_create. */
typedef struct gpumem_physical_options {
    size_t size;
    gpumem_allocation_type allocation_type;
    /* HOST and HOST_NUMA memory is for the CPU and the devices; on an H200, HOST supports no handle
     * type but NONE. HOST_NUMA_CURRENT is the node that the calling thread runs on at the call. */
    gpumem_location location;
    int numa_node; /* for HOST_NUMA: a node that exists and has memory; else 0 */
    gpumem_handle_type handle_type;
    bool gpu_direct_rdma; /* RDMA-capable. NOT_SUPPORTED if the device's attribute is 0 */
    bool compression;     /* compressible, likewise */
} gpumem_physical_options;
#define GPUMEM_PHYSICAL_OPTIONS(...) GPUMEM_OPTIONS(gpumem_physical_options, __VA_ARGS__)

/* The granularity, in bytes, of sizes and offsets of memory with these options (NULL: defaults).
 * Driver: cuMemGetAllocationGranularity. */
GPUMEM_API gpumem_status gpumem_physical_granularity(gpumem_device *device,
                                                     const gpumem_physical_options *options,
                                                     gpumem_granularity_kind kind, size_t *bytes);

/*
 * Allocates `bytes` of memory, a multiple of the granularity, not yet mapped. The caller destroys
 * it. NOT_SUPPORTED, NOT_PERMITTED: exactly these options are not available. Driver: cuMemCreate.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_physical_create(gpumem_device *device, size_t bytes, const gpumem_physical_options *options,
                       gpumem_physical **physical);
/* The memory is freed once nobody else holds it, in this process (by address) or in others; NULL is
 * allowed. BUSY while this object is mapped. Driver: cuMemRelease. */
GPUMEM_API gpumem_status gpumem_physical_destroy(gpumem_physical *physical);

/* What the driver reports about physical memory. */
typedef struct gpumem_physical_properties {
    size_t size;
    size_t bytes;
    size_t granularity; /* sizes and offsets are multiples of it, bytes */
    gpumem_allocation_type allocation_type;
    /* An H200 reports memory that was requested as HOST as that of HOST_NUMA node 0. */
    gpumem_location location;
    int ordinal;         /* for memory of a device; else -1 */
    int numa_node;       /* for HOST_NUMA; else -1 */
    bool exports_fd;     /* made with POSIX_FD, so that gpumem_physical_export works */
    bool exports_fabric; /* made with FABRIC. An H200 reports 0 for both if imported */
    bool gpu_direct_rdma, compression;
} gpumem_physical_properties;

/* Set `properties->size` before the call. Thread-safe, does not block. NOT_SUPPORTED: memory of a
 * kind unknown to this library. Driver: cuMemGetAllocationPropertiesFromHandle,
 * cuMemGetAllocationGranularity, cuDeviceGet. */
GPUMEM_API gpumem_status gpumem_physical_get_properties(gpumem_physical *physical,
                                                        gpumem_physical_properties *properties);

/*
 * The physical memory mapped at an address, by a mapping, a virtual buffer, or other code of the
 * process. It can then be mapped a second time, exported and queried for its properties, and lives
 * until its last holder lets go. `address` is any address in the mapping; `bytes` is the size of
 * the whole mapping, or 0 to ask the driver, which knows it while some device has access (else
 * NOT_SUPPORTED). Statistics count the memory as imported. The caller destroys it.
 * INVALID_ARGUMENT: no memory of cuMemMap is mapped there, or `bytes` is not a multiple of the
 * granularity or, if the driver knows it, not the size.
 * Driver: cuMemRetainAllocationHandle, cuMemGetAllocationPropertiesFromHandle,
 * cuMemGetAddressRange.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_physical_from_address(gpumem_device *device,
                                                                        CUdeviceptr address,
                                                                        size_t bytes,
                                                                        gpumem_physical **physical);

/* Memory for other processes: a descriptor, or a name that is sent by any means and is good on
 * other machines of the fabric too, and does not keep the memory alive. */
typedef struct gpumem_physical_share_handle {
    size_t size;
    gpumem_handle_type type;  /* POSIX_FD or FABRIC */
    int descriptor;           /* for POSIX_FD */
    unsigned char fabric[64]; /* for FABRIC */
} gpumem_physical_share_handle;
#define GPUMEM_PHYSICAL_SHARE_HANDLE(...) GPUMEM_OPTIONS(gpumem_physical_share_handle, __VA_ARGS__)

/*
 * Exports the memory. Set `handle->size` and `handle->type` before the call. The descriptor is new
 * and close-on-exec; the caller closes it. NOT_SUPPORTED: the memory was not made with that handle
 * type, or was imported and the driver does not allow it to be exported again (an H200 does not).
 * Driver: cuMemExportToShareableHandle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_physical_export(gpumem_physical *physical, gpumem_physical_share_handle *handle);

/*
 * Imports exported memory, in this or another process. `bytes` is its size, which the exporter
 * knows. The descriptor, 0 or more, remains the caller's. The caller destroys the memory. Fabric
 * handles work where processes may use a channel of the fabric (IMEX): elsewhere
 * gpumem_physical_create returns NOT_PERMITTED, and this NOT_SUPPORTED or NOT_PERMITTED.
 * INVALID_ARGUMENT: another type, or a size that is no multiple of the granularity. DRIVER: the
 * memory does not exist, or no longer exists. Driver: cuMemImportFromShareableHandle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_physical_import(gpumem_device *device, const gpumem_physical_share_handle *handle,
                       size_t bytes, gpumem_physical **physical);

/*
 * Maps all of `physical` at `offset` of the reservation, with access for no one. The driver maps
 * only whole handles; the same memory can be mapped in several places. INVALID_ARGUMENT: past the
 * end, unaligned, or over another mapping. The caller destroys it. Driver: cuMemMap.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_mapping_create(gpumem_reservation *reservation,
                                                                 size_t offset,
                                                                 gpumem_physical *physical,
                                                                 gpumem_mapping **mapping);

/*
 * Unmaps the memory, if it is mapped, and destroys the object; NULL is allowed. DRIVER or
 * DEVICE_FAULT: the driver refused, and the memory is still mapped. Driver: cuMemUnmap.
 */
GPUMEM_API gpumem_status gpumem_mapping_destroy(gpumem_mapping *mapping);

/* Whether a mapping has memory behind it. */
typedef enum gpumem_mapping_state {
    GPUMEM_MAPPING_MAPPED = 0,
    /* gpumem_reservation_unmap has unmapped it. The object retains only its address and size, and
     * no longer keeps the reservation or the physical memory from being destroyed. */
    GPUMEM_MAPPING_UNMAPPED = 1,
} gpumem_mapping_state;

/* What gpumem_mapping_get_info fills in. */
typedef struct gpumem_mapping_info {
    size_t size;
    CUdeviceptr address; /* where it is, or was, mapped */
    size_t bytes;
    gpumem_mapping_state state;      /* may be out of date if another thread unmaps */
    gpumem_reservation *reservation; /* it may have been destroyed if the mapping is unmapped */
    size_t offset;                   /* in the reservation */
} gpumem_mapping_info;

/* Set `info->size` before the call. No driver call. */
GPUMEM_API gpumem_status gpumem_mapping_get_info(const gpumem_mapping *mapping,
                                                 gpumem_mapping_info *info);

/* What device `ordinal` may do with the mapping; -1 is the CPU. INVALID_ARGUMENT: no such device,
 * or unmapped. Driver: cuMemGetAccess. */
GPUMEM_API gpumem_status gpumem_mapping_get_access(gpumem_mapping *mapping, int ordinal,
                                                   gpumem_access *access);

/*
 * Unmaps everything mapped in [offset, offset + bytes) of the reservation; if the driver refuses,
 * nothing. Physical memory is not freed, and can be mapped elsewhere; the mapping objects remain,
 * in state UNMAPPED, until they are destroyed. Does nothing where nothing is mapped.
 * INVALID_ARGUMENT: `bytes` is 0, the range passes the end, or a mapping lies only partly in it
 * (nothing is changed). Driver: cuMemUnmap, once.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_reservation_unmap(gpumem_reservation *reservation,
                                                                    size_t offset, size_t bytes);

/*
 * Sets what device `ordinal` may do with [offset, offset + bytes) of the reservation; -1 is the
 * CPU, which can use only host memory (else NOT_SUPPORTED), at its address there. The range is one
 * mapping or several side by side, all or none: on failure each has its former access.
 * INVALID_ARGUMENT: no such device, a mapping that lies only partly in it, or part of the range is
 * not mapped. An H200 takes 26 us per mapping, in one call or many.
 * Driver: cuMemGetAccess for each mapping, cuMemSetAccess once.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_reservation_set_access(gpumem_reservation *reservation, size_t offset, size_t bytes,
                              int ordinal, gpumem_access access);

#ifdef __cplusplus
}
#endif

#endif
