/*
 * Mapped memory: device memory that the CPU reads and writes in place, through a second mapping of
 * the same bytes. On an H200 a store takes about a tenth of a microsecond, a copy by the driver two
 * and a half; loads are slow (2 us for 8 bytes), because each crosses the bus.
 *
 * Buffers of a mapped resource have a device pointer and a host pointer
 * (gpumem_buffer_host_pointer) and grow in place on both sides, up to their capacity.
 * gpumem_host_view_create does the same for an existing virtual buffer, even one that is shared
 * with other processes.
 *
 * Several methods are tried, in the order of gpumem_mapped_method; gpumem_mapped_get_info reports
 * why earlier ones failed.
 */
#ifndef GPUMEM_MAPPED_H
#define GPUMEM_MAPPED_H

#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the CPU accesses the memory. */
typedef enum gpumem_mapped_method {
    GPUMEM_MAPPED_ANY = 0, /* the first of these that works */
    /* The CPU uses the device's memory at the device's addresses: coherent platforms. Grows. No
     * views. */
    GPUMEM_MAPPED_COHERENT = 1,
    /* Memory of cuMemCreate, imported into Vulkan and mapped there. Grows, and views work. */
    GPUMEM_MAPPED_VULKAN_IMPORT = 2,
    /* The descriptor of cuMemGetHandleForAddressRange, mapped. Grows, and views work. NVIDIA's
     * driver 580 refuses. */
    GPUMEM_MAPPED_DMA_BUF = 3,
    /* Memory that Vulkan allocates, imported into CUDA: fixed in size, and no views. */
    GPUMEM_MAPPED_VULKAN_EXPORT = 4,
    /* The exported descriptor itself, mapped: softgpu, whose memory is the host's. Grows, and views
     * work. */
    GPUMEM_MAPPED_DESCRIPTOR = 5,
    /* Host memory that the device accesses over the bus: slower for the device. Grows. No views. */
    GPUMEM_MAPPED_HOST = 6,
} gpumem_mapped_method;

/* "any", "coherent", "vulkan-import", "dma-buf", "vulkan-export", "descriptor", "host"; "unknown"
 * for other values. */
GPUMEM_API const char *gpumem_mapped_method_name(gpumem_mapped_method method);

typedef struct gpumem_mapped_options {
    size_t size;
    gpumem_mapped_method method;
    int method_strict;      /* 1: that method or NOT_SUPPORTED, with the reason in the message */
    int require_coherent;   /* 1: refuse memory that needs flushes. Not with the next */
    int force_non_coherent; /* 1: flush and invalidate as if the memory needed it, where possible
                             */
    size_t capacity;        /* bytes that buffers may grow to unless they say otherwise; 0: none */
    size_t chunk_maximum;   /* bytes of one piece of memory; 0: 512 MiB */
    uint64_t cache_bytes;   /* of freed buffers, kept mapped on both sides; 0: none */
    /* Small buffers are cut out of slabs of this size: those of at most a quarter of it, without a
     * capacity. 0: 2 MiB, which is the least; SIZE_MAX: no slabs, each buffer has memory of its
     * own. Not beside `capacity`, which leaves no buffer without one. */
    size_t slab_bytes;
    uint64_t maximum_bytes; /* of all memory that it holds: OUT_OF_CAPACITY above; 0: no limit */
} gpumem_mapped_options;
#define GPUMEM_MAPPED_OPTIONS(...) GPUMEM_OPTIONS(gpumem_mapped_options, __VA_ARGS__)

/*
 * Creates a resource of mapped memory. Each method is tried with one granule of memory, in which
 * the CPU must see the device's bytes and the device the CPU's. The caller destroys it.
 * NOT_SUPPORTED: no method works; the message says why each failed. Thread-safe; blocks for a copy,
 * and on first use while the Vulkan driver is opened (some 65 ms on an H200).
 *
 * Memory is handed out again only when all streams that used it have passed: the CPU may write it
 * at once.
 *
 * Small buffers cost some tens of nanoseconds and no call of either driver while there is room in
 * slabs; behind a named stream, an event for each 32 that were freed. They do not grow, cannot be
 * exported and have no host view: name a capacity, be it the size, for a buffer that shall have
 * memory of its own. They share no atoms.
 * gpumem_caching_forget_stream is for their streams too, and gpumem_caching_get_info tells of their
 * slabs. Wrappers around the resource get whole memory for each buffer; put
 * gpumem_caching_resource_create over those.
 *
 * maximum_bytes counts what the driver was asked for: granules and slabs as a whole, and freed
 * memory that is kept, which is given back before a refusal. It is never exceeded, also not by
 * several threads for a moment.
 *
 * Driver: cuMemCreate, cuMemMap, cuMemSetAccess, cuMemExportToShareableHandle,
 * cuMemGetHandleForAddressRange. Vulkan: vkAllocateMemory, vkMapMemory2.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_mapped_resource_create(
    gpumem_device *device, const gpumem_mapped_options *options, gpumem_resource **resource);

typedef struct gpumem_mapped_info {
    size_t size;
    gpumem_mapped_method method;
    int coherent; /* 1: neither flush nor invalidate is needed */
    size_t atom;  /* bytes that flushes are widened to; 1 if none is needed */
    /* Bytes of CPU-visible device memory that the process may use in total, and uses now, by the
     * driver's estimate; 0 if it gives none. */
    uint64_t budget_bytes, budget_used;
    char refusals[1024]; /* "method: why" of each tried earlier, separated by "; ", truncated */
    /* Where the plan of gpumem_mapped_write and _read comes from: gpumem_mapped_calibrate. */
    gpumem_measured copy_measured;
} gpumem_mapped_info;

/* Set `info->size` before the call. INVALID_ARGUMENT: not a mapped resource. Thread-safe. Vulkan:
 * vkGetPhysicalDeviceMemoryProperties2. */
GPUMEM_API gpumem_status gpumem_mapped_get_info(gpumem_resource *resource,
                                                gpumem_mapped_info *info);

/* ---- Reading and writing --------------------------------------------------------------------- */

/*
 * For buffers that the CPU can access: those of a mapped resource, and also of pinned or host
 * memory. `offset` and `bytes` must lie in the buffer (else INVALID_ARGUMENT). Nothing waits for
 * streams: the caller must know that no queued work uses the bytes. Thread-safe for bytes that do
 * not overlap.
 *
 * How a copy is made is a matter of its size, by a plan for the CPU, the GPU and the method
 * (gpumem_mapped_calibrate): the CPU's own stores and loads, without a driver call; or, from a
 * size on that differs between pinned and pageable host memory, the driver's copy. Either is done
 * when the call returns, and right for every size and alignment. Memory of the host is always
 * copied by the CPU; memory that needs flushes is always written by it.
 *
 * The driver's copy runs on a stream that the library makes for it (kept with the resource), which
 * is ordered with no other: it does not wait for blocking streams, as cuMemcpyHtoD does, nor for a
 * kernel that runs, and stream captures are not disturbed. Where the driver refuses to make the
 * stream or to begin the copy, the CPU copies. Where it does not say that a copy has ended (after
 * a device fault), that is the error, the same as for other calls.
 */

/* Copies host memory to the buffer, and makes it visible to work submitted after the call. Driver:
 * none for small copies; else cuPointerGetAttribute, cuMemcpyHtoDAsync, cuStreamSynchronize. */
GPUMEM_API gpumem_status gpumem_mapped_write(gpumem_buffer *buffer, size_t offset, const void *data,
                                             size_t bytes);
/* Copies to host memory what finished work of the device, and this thread, have left there. Driver:
 * likewise, with cuMemcpyDtoHAsync. */
GPUMEM_API gpumem_status gpumem_mapped_read(gpumem_buffer *buffer, size_t offset, void *data,
                                            size_t bytes);

/* Makes earlier stores of this thread through the host pointer visible to the device: drains the
 * CPU's write-combining buffers, and flushes whole atoms if the memory is not coherent. */
GPUMEM_API gpumem_status gpumem_mapped_flush(gpumem_buffer *buffer, size_t offset, size_t bytes);
/* Makes what the device wrote visible to loads through the host pointer. If the memory is not
 * coherent, unflushed stores to the same atoms may be lost. */
GPUMEM_API gpumem_status gpumem_mapped_invalidate(gpumem_buffer *buffer, size_t offset,
                                                  size_t bytes);

/*
 * Writes `bytes` of payload, then `value` to the aligned 32-bit word at `flag_offset`, in that
 * order for whoever reads the device's memory: a running kernel that sees the value in an acquire
 * load of system scope, and loads the payload after, sees all of it. (Volatile loads of both are
 * tested too, though PTX does not promise their order; plain loads behind a volatile one may find
 * old bytes in the kernel's cache.) Always by the CPU's stores, so that it never waits behind the
 * kernel that waits for the flag; a large payload that no running kernel waits for goes faster by
 * gpumem_mapped_write. INVALID_ARGUMENT: the flag is not aligned to 4, or lies in the payload. No
 * driver call.
 */
GPUMEM_API gpumem_status gpumem_mapped_publish(gpumem_buffer *buffer, size_t offset,
                                               const void *data, size_t bytes, size_t flag_offset,
                                               uint32_t value);

/* ---- Calibration ----------------------------------------------------------------------------- */

typedef struct gpumem_mapped_calibrate_options {
    size_t size;
    size_t maximum_bytes;     /* the largest copy that is measured, 8 at least; 0: 64 MiB */
    uint64_t run_nanoseconds; /* for one way at one size, at most; 0: 1,000,000 */
    int keep_nothing;         /* 1: for this process alone; the calibration file stays as it is */
} gpumem_mapped_calibrate_options;
#define GPUMEM_MAPPED_CALIBRATE_OPTIONS(...)                                                       \
    GPUMEM_OPTIONS(gpumem_mapped_calibrate_options, __VA_ARGS__)

/*
 * Measures on memory of `resource`, a mapped one or a wrapper around one, which stores, which loads
 * and from which size on the driver's copy is the fastest, from pinned and from pageable host
 * memory. All mapped resources of the process with that device and method copy by it from then on.
 * Without it a plan is in use that is good in general, so a program need not call this; one that
 * copies many megabytes may do so once on a machine, as the plan is kept.
 *
 * The calibration file: the plan is kept by CPU, driver, GPU and method in $XDG_CACHE_HOME/gpumem,
 * or ~/.cache/gpumem, and taken by later processes when they make their first resource of the
 * method. Where that cannot be written, or holds what the library did not write, it is as if there
 * were none. Set-uid programs do without. To measure anew, call this again, or delete it.
 *
 * Blocks for one to two seconds at the default options, and at the end for work that is queued
 * anywhere on the device, as giving back pinned memory does; work that runs meanwhile on the
 * device, the bus or the CPU disturbs the result. `maximum_bytes` are allocated three times: of the
 * resource, pinned, and ordinary memory. Thread-safe. NOT_SUPPORTED: no device memory that the CPU
 * has mapped; the CPU alone copies memory of the host (method HOST too). After an error the plan is
 * as before, unless the measurement was done and only giving back the memory failed. Driver: those
 * of an allocation and a free of the resource and of pinned memory, cuStreamCreate,
 * cuMemcpyHtoDAsync, cuMemcpyDtoHAsync, cuStreamSynchronize.
 */
GPUMEM_API gpumem_status gpumem_mapped_calibrate(gpumem_resource *resource,
                                                 const gpumem_mapped_calibrate_options *options);

/* ---- Views ----------------------------------------------------------------------------------- */

/* The CPU's mapping of a virtual buffer. */
typedef struct gpumem_host_view gpumem_host_view;

typedef struct gpumem_host_view_options {
    size_t size;
    gpumem_mapped_method method; /* one that supports views */
    int method_strict;
    int require_coherent;
    int force_non_coherent;
} gpumem_host_view_options;
#define GPUMEM_HOST_VIEW_OPTIONS(...) GPUMEM_OPTIONS(gpumem_host_view_options, __VA_ARGS__)

/*
 * Maps the memory of an exportable buffer of a virtual resource for the CPU, and follows its growth
 * at a fixed host pointer; growth that cannot be followed fails as a whole. The buffer is held:
 * meanwhile it cannot shrink or move (BUSY), and a free takes effect when the view is destroyed.
 * One buffer may have several views. The caller destroys it. NOT_SUPPORTED: the buffer is of
 * another kind, is not exportable, or no method works; the message says which. Thread-safe. Driver
 * and Vulkan: as the resource.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_host_view_create(
    gpumem_buffer *buffer, const gpumem_host_view_options *options, gpumem_host_view **view);
/* Unmaps the memory and releases the hold; NULL is allowed. The CPU must no longer touch the
 * bytes. */
GPUMEM_API gpumem_status gpumem_host_view_destroy(gpumem_host_view *view);
/* The address of the buffer's first byte. As many bytes as the buffer has are mapped. */
GPUMEM_API void *gpumem_host_view_pointer(const gpumem_host_view *view);
/* As gpumem_mapped_get_info. */
GPUMEM_API gpumem_status gpumem_host_view_get_info(const gpumem_host_view *view,
                                                   gpumem_mapped_info *info);
/* As gpumem_mapped_write and _read, by the plan of the device and the view's method. NOT_SUPPORTED:
 * a buffer that is read-only is not written. */
GPUMEM_API gpumem_status gpumem_host_view_write(gpumem_host_view *view, size_t offset,
                                                const void *data, size_t bytes);
GPUMEM_API gpumem_status gpumem_host_view_read(gpumem_host_view *view, size_t offset, void *data,
                                               size_t bytes);
/* As gpumem_mapped_flush and _invalidate, for the buffer's bytes. */
GPUMEM_API gpumem_status gpumem_host_view_flush(gpumem_host_view *view, size_t offset,
                                                size_t bytes);
GPUMEM_API gpumem_status gpumem_host_view_invalidate(gpumem_host_view *view, size_t offset,
                                                     size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
