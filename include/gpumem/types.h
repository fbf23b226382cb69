/*
 * The CUDA types of the memory API, and how option and result structs are versioned.
 *
 * The typedefs repeat cuda.h's exactly, so that cuda.h may be included before or after this file
 * (C11 and C++ allow a typedef to be repeated).
 */
#ifndef GPUMEM_TYPES_H
#define GPUMEM_TYPES_H

#include <gpumem/options.h>
#include <gpumem/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

/*
 * Option structs begin with `size`, the size of the struct as the caller was compiled, so that
 * later versions can add members. A NULL pointer and an all-zero struct mean the same: the default
 * that each member documents. A struct that sets any member must set `size`. A struct that sets
 * members which this version of the library does not know is refused with INVALID_ARGUMENT, rather
 * than obeyed in part. A struct of any released version is accepted: what an older, smaller one
 * does not have reads as zero. Of a struct whose size is 0 only the members of its first release
 * are looked at.
 *
 *     gpumem_buffer_allocate(resource, bytes, GPUMEM_BUFFER_OPTIONS(.stream = stream), &buffer);
 *
 * Each struct has such a macro beside it, for C and C++20 (gpumem/options.h).
 *
 * Result structs begin with `size` too: the caller sets it to sizeof and the library fills no more
 * than that, also when it is newer than the caller, which may have the struct of any released
 * version.
 */

/*
 * Names for the streams that have no object. Where work is queued, NULL is the legacy default
 * stream of the device's context, as in CUDA. Where a call merely names streams that use memory
 * (free, shrink), NULL names none, and the legacy stream is named by its constant. PER_THREAD is
 * the default stream of the thread that makes the call, a different one in each thread. NONE, given
 * to an allocation, means none of the caller's streams: all streams can use the memory at once, and
 * its free waits only for streams that are named later. Pools accept it, and so does memory that is
 * not stream-ordered.
 */
#ifdef __cplusplus
#define GPUMEM_STREAM_LEGACY     (reinterpret_cast<CUstream>(0x1)) /* CU_STREAM_LEGACY */
#define GPUMEM_STREAM_PER_THREAD (reinterpret_cast<CUstream>(0x2)) /* CU_STREAM_PER_THREAD */
#define GPUMEM_STREAM_NONE       (reinterpret_cast<CUstream>(UINTPTR_MAX))
#else
#define GPUMEM_STREAM_LEGACY     ((CUstream)0x1)
#define GPUMEM_STREAM_PER_THREAD ((CUstream)0x2)
#define GPUMEM_STREAM_NONE       ((CUstream)UINTPTR_MAX)
#endif

/* An opened driver, and all that was made with it. */
typedef struct gpumem_library gpumem_library;
/* A device of a library, with its primary context. */
typedef struct gpumem_device gpumem_device;
/* Where buffers come from: a kind of memory, or a wrapper around another resource. */
typedef struct gpumem_resource gpumem_resource;
/* Memory from a resource, with one owner at a time. */
typedef struct gpumem_buffer gpumem_buffer;

/* Where memory is. Zero is the default everywhere. */
typedef enum gpumem_location {
    GPUMEM_LOCATION_DEVICE = 0,
    GPUMEM_LOCATION_HOST = 1,              /* host memory, placed by the system */
    GPUMEM_LOCATION_HOST_NUMA = 2,         /* host memory of one NUMA node */
    GPUMEM_LOCATION_HOST_NUMA_CURRENT = 3, /* of the calling thread's node */
} gpumem_location;

/* What a device may do with memory. */
typedef enum gpumem_access {
    GPUMEM_ACCESS_READ_WRITE = 0,
    GPUMEM_ACCESS_READ = 1,
    GPUMEM_ACCESS_NONE = 2,
} gpumem_access;

/* How memory can be handed to another process; fixed when the memory is created. */
typedef enum gpumem_handle_type {
    GPUMEM_HANDLE_POSIX_FD = 0, /* a file descriptor */
    GPUMEM_HANDLE_NONE = 1,     /* not at all */
    /* A 64-byte handle, valid on other machines too; needs IMEX. For physical memory managed by
     * hand (gpumem/vmm.h); exports of buffers do not use it. */
    GPUMEM_HANDLE_FABRIC = 2,
} gpumem_handle_type;

/* What kind of physical memory is asked for (CUmemAllocationType). */
typedef enum gpumem_allocation_type {
    GPUMEM_ALLOCATION_PINNED = 0, /* memory that never migrates */
    /* The driver defines the type, but cuMemCreate creates none: always NOT_SUPPORTED. For managed
     * memory use gpumem_managed_resource_create. */
    GPUMEM_ALLOCATION_MANAGED = 1,
} gpumem_allocation_type;

/* Which of the granularities of physical memory. */
typedef enum gpumem_granularity_kind {
    GPUMEM_GRANULARITY_RECOMMENDED = 0,
    GPUMEM_GRANULARITY_MINIMUM = 1,
} gpumem_granularity_kind;

/* Which pool of the driver a resource uses. */
typedef enum gpumem_pool_choice {
    GPUMEM_POOL_CURRENT = 0, /* the device's current pool (cuDeviceSetMemPool) */
    GPUMEM_POOL_DEFAULT = 1, /* the driver's default pool of the device */
    GPUMEM_POOL_OWN = 2,     /* a new one, destroyed with the resource */
} gpumem_pool_choice;

/* Where a number of threads, or a plan of copies (gpumem/mapped.h), comes from. */
typedef enum gpumem_measured {
    GPUMEM_MEASURED_NEVER = 0,  /* from the option, or the default */
    GPUMEM_MEASURED_HERE = 1,   /* in this process */
    GPUMEM_MEASURED_BEFORE = 2, /* by another process: from the calibration file */
} gpumem_measured;

/* "posix_fd" and so on: constant strings, never NULL, also for unknown values. */
GPUMEM_API const char *gpumem_location_name(gpumem_location location);
GPUMEM_API const char *gpumem_access_name(gpumem_access access);
GPUMEM_API const char *gpumem_handle_type_name(gpumem_handle_type type);

#ifdef __cplusplus
}
#endif

#endif
