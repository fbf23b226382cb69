/*
 * Virtual memory by hand: reserve addresses, create memory, map it there, say who may use it.
 *
 * Handles are typed, and misuse is refused before the driver is asked: what is unaligned, overlaps,
 * belongs to another device or library, or is still mapped. Every function is thread-safe. Nothing
 * here waits for queued work: the caller knows when memory is no longer in use (cuMemUnmap itself
 * waits for nothing, and queued work on unmapped memory poisons the context). The virtual resource
 * does all of this with waiting and growing.
 */
#ifndef GPUMEM_VIRTUAL_H
#define GPUMEM_VIRTUAL_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpumem_reservation gpumem_reservation;
typedef struct gpumem_physical gpumem_physical;
typedef struct gpumem_mapping gpumem_mapping;

typedef struct gpumem_reservation_options {
    size_t size;
    /* Bytes, a power of two; 0 and less than the device's minimum granularity: that. `bytes` need
     * not be a multiple of it. OUT_OF_MEMORY where no address is so aligned. */
    size_t alignment;
    CUdeviceptr address; /* where, if that is free: look at the result. 0: the driver decides */
} gpumem_reservation_options;
#define GPUMEM_RESERVATION_OPTIONS(...) GPUMEM_OPTIONS(gpumem_reservation_options, __VA_ARGS__)

/*
 * Reserves `bytes` of addresses, a multiple of the device's minimum granularity. It costs no
 * memory. The caller destroys it. OUT_OF_MEMORY: no such address range left. Driver:
 * cuMemAddressReserve.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_reservation_create(
    gpumem_device *device, size_t bytes, const gpumem_reservation_options *options,
    gpumem_reservation **reservation);
/* BUSY while anything is mapped in it (the message says where); NULL is allowed. Mapping objects
 * that were unmapped may still be there. Driver: cuMemAddressFree. */
GPUMEM_API gpumem_status gpumem_reservation_destroy(gpumem_reservation *reservation);
GPUMEM_API CUdeviceptr gpumem_reservation_address(const gpumem_reservation *reservation);
GPUMEM_API size_t gpumem_reservation_size(const gpumem_reservation *reservation);

typedef struct gpumem_physical_options {
    size_t size;
    gpumem_allocation_type allocation_type;
    /* HOST and HOST_NUMA memory is for the CPU and the devices; on an H200, HOST has no handle type
     * but NONE. HOST_NUMA_CURRENT is the node that the calling thread runs on at the call. */
    gpumem_location location;
    int numa_node; /* for HOST_NUMA: a node that exists and has memory; else 0 */
    gpumem_handle_type handle_type;
    int gpu_direct_rdma; /* 1: RDMA-capable. NOT_SUPPORTED where the device's attribute is 0 */
    int compression;     /* 1: compressible, likewise */
} gpumem_physical_options;
#define GPUMEM_PHYSICAL_OPTIONS(...) GPUMEM_OPTIONS(gpumem_physical_options, __VA_ARGS__)

/* Bytes of which sizes and offsets must be multiples, for memory of these options (NULL: default).
 * Driver: cuMemGetAllocationGranularity. */
GPUMEM_API gpumem_status gpumem_physical_granularity(gpumem_device *device,
                                                     const gpumem_physical_options *options,
                                                     gpumem_granularity_kind kind, size_t *bytes);

/*
 * Takes `bytes` of memory, a multiple of the granularity, mapped nowhere yet. The caller destroys
 * it. Exactly these options: NOT_SUPPORTED or NOT_PERMITTED if not. Driver: cuMemCreate.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_physical_create(gpumem_device *device, size_t bytes, const gpumem_physical_options *options,
                       gpumem_physical **physical);
/* The memory goes back when nobody else holds it, here (by address) or in other processes; NULL is
 * allowed. BUSY while this object is mapped. Driver: cuMemRelease. */
GPUMEM_API gpumem_status gpumem_physical_destroy(gpumem_physical *physical);
GPUMEM_API size_t gpumem_physical_size(const gpumem_physical *physical);

/* What the driver says of physical memory. */
typedef struct gpumem_physical_properties {
    size_t size;
    size_t bytes;
    size_t granularity; /* sizes and offsets are multiples of it, bytes */
    gpumem_allocation_type allocation_type;
    /* An H200 calls memory that was asked for as HOST that of HOST_NUMA node 0. */
    gpumem_location location;
    int device;         /* the ordinal, for memory of a device; else -1 */
    int numa_node;      /* for HOST_NUMA; else -1 */
    int exports_fd;     /* 1: made with POSIX_FD, so that gpumem_physical_export_fd works */
    int exports_fabric; /* 1: made with FABRIC. An H200 says 0 to both for imported memory */
    int gpu_direct_rdma, compression;
} gpumem_physical_properties;

/* `properties->size` is to be set. Thread-safe, does not block. NOT_SUPPORTED: memory of a kind
 * that this library has no name for. Driver: cuMemGetAllocationPropertiesFromHandle,
 * cuMemGetAllocationGranularity, cuDeviceGet. */
GPUMEM_API gpumem_status gpumem_physical_get_properties(gpumem_physical *physical,
                                                        gpumem_physical_properties *properties);

/*
 * The physical memory behind an address, whoever mapped it there: a mapping, a virtual buffer, or
 * other code of the process. It can then be mapped a second time, exported, and asked for its
 * properties, and lives as long as the last who holds it. `address` is any in the mapping; `bytes`
 * the size of that whole mapping, or 0: the driver is asked, which knows it while someone has
 * access (else NOT_SUPPORTED). Statistics count it as imported. The caller destroys it.
 * INVALID_ARGUMENT: nothing is mapped there by hand, or `bytes` is no multiple of the granularity,
 * or, where the driver knows it, not the size.
 * Driver: cuMemRetainAllocationHandle, cuMemGetAllocationPropertiesFromHandle,
 * cuMemGetAddressRange.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_physical_from_address(gpumem_device *device,
                                                                        CUdeviceptr address,
                                                                        size_t bytes,
                                                                        gpumem_physical **physical);

/*
 * A new file descriptor (close-on-exec) for the memory; the caller closes it. NOT_SUPPORTED: the
 * memory was not made with POSIX_FD, or was imported and the driver does not let it be handed on
 * (an H200 does not). Driver: cuMemExportToShareableHandle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_physical_export_fd(gpumem_physical *physical,
                                                                     int *fd);
/* The memory behind a descriptor of gpumem_physical_export_fd, of this or another process. `bytes`
 * is its size, which the exporter knows. The descriptor, 0 or more, stays the caller's. The caller
 * destroys the memory. Driver: cuMemImportFromShareableHandle. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_physical_import_fd(gpumem_device *device, int fd,
                                                                     size_t bytes,
                                                                     gpumem_physical **physical);

/* A name for memory that other processes can use, those of other machines of the fabric too: plain
 * bytes, sent in any way. It does not keep the memory alive. */
typedef struct gpumem_fabric_handle {
    unsigned char bytes[64];
} gpumem_fabric_handle;

/*
 * The same by fabric handle, where processes are permitted a channel of the fabric (IMEX);
 * elsewhere gpumem_physical_create answers NOT_PERMITTED, and the import NOT_SUPPORTED or
 * NOT_PERMITTED. NOT_SUPPORTED: memory that was not made with FABRIC, or was imported. DRIVER: no
 * such memory (any more). Driver: cuMemExportToShareableHandle, cuMemImportFromShareableHandle.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_physical_export_fabric(gpumem_physical *physical, gpumem_fabric_handle *handle);
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_physical_import_fabric(gpumem_device *device, const gpumem_fabric_handle *handle,
                              size_t bytes, gpumem_physical **physical);

/*
 * Maps all of `physical` at `offset` of the reservation, without access for anyone. The driver maps
 * whole handles only; the same memory can be mapped at several places. INVALID_ARGUMENT: past the
 * end, unaligned, or over another mapping. The caller destroys it. Driver: cuMemMap.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_mapping_create(gpumem_reservation *reservation,
                                                                 size_t offset,
                                                                 gpumem_physical *physical,
                                                                 gpumem_mapping **mapping);

/*
 * Unmaps, if it is mapped, and ends the object; NULL is allowed. DRIVER or DEVICE_FAULT when the
 * driver refuses: it is then still mapped. Driver: cuMemUnmap.
 */
GPUMEM_API gpumem_status gpumem_mapping_destroy(gpumem_mapping *mapping);

/* Where it is, or was; the size in bytes. Cannot fail, no driver call. */
GPUMEM_API CUdeviceptr gpumem_mapping_address(const gpumem_mapping *mapping);
GPUMEM_API size_t gpumem_mapping_size(const gpumem_mapping *mapping);

typedef enum gpumem_mapping_state {
    GPUMEM_MAPPING_MAPPED = 0,
    /* gpumem_reservation_unmap has unmapped it. The object only has an address and a size still,
     * and no longer keeps reservation or physical memory from being destroyed. */
    GPUMEM_MAPPING_UNMAPPED = 1,
} gpumem_mapping_state;

/* Cannot fail, no driver call. The answer may be old when another thread unmaps. */
GPUMEM_API gpumem_mapping_state gpumem_mapping_get_state(const gpumem_mapping *mapping);

/*
 * What device `ordinal` may do with the mapping; -1 for the CPU, which reaches host memory only
 * (NOT_SUPPORTED), at the mapping's address. A refusal leaves the rights as they were.
 * INVALID_ARGUMENT: no such device, or unmapped. Driver: cuMemGetAccess, cuMemSetAccess.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_mapping_set_access(gpumem_mapping *mapping,
                                                                     int ordinal,
                                                                     gpumem_access access);
/* The same question. Driver: cuMemGetAccess. */
GPUMEM_API gpumem_status gpumem_mapping_get_access(gpumem_mapping *mapping, int ordinal,
                                                   gpumem_access *access);

/*
 * Unmaps all that is mapped in [offset, offset + bytes) of the reservation, all of it or, when the
 * driver refuses, nothing. Physical memory is not freed, and can be mapped elsewhere; the mapping
 * objects stay, in state UNMAPPED, until they are destroyed. Where nothing is mapped there is
 * nothing to do. INVALID_ARGUMENT: `bytes` is 0, past the end, or a mapping lies in the range only
 * in part (nothing is changed). Driver: cuMemUnmap, once.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_reservation_unmap(gpumem_reservation *reservation,
                                                                    size_t offset, size_t bytes);

/*
 * gpumem_mapping_set_access for all mappings of a range at once, and for all of them or none: after
 * a refusal each has the rights that it had. INVALID_ARGUMENT: as for unmapping, and where a part
 * of the range is not mapped. An H200 takes 26 us for each mapping, one call or many.
 * Driver: cuMemGetAccess for each mapping, cuMemSetAccess once.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_reservation_set_access(gpumem_reservation *reservation, size_t offset, size_t bytes,
                              int ordinal, gpumem_access access);

#ifdef __cplusplus
}
#endif

#endif
