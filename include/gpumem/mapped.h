/*
 * Mapped memory: device memory that the CPU reads and writes in place, through a second mapping of
 * the same bytes. On an H200 a store takes about a tenth of a microsecond, a copy by the driver two
 * and a half; loads are slow (2 us for 8 bytes), because each crosses the bus.
 *
 * Buffers of a mapped resource have a device pointer and a host pointer
 * (gpumem_buffer_host_pointer) and grow in place on both sides, up to their capacity.
 * gpumem_buffer_host_view does the same for an existing virtual buffer, even one that is shared
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

/* Options of gpumem_mapped_resource_create. */
typedef struct gpumem_mapped_options {
    size_t size;
    gpumem_mapped_method method;
    bool method_strict;      /* that method or NOT_SUPPORTED, with the reason in the message */
    bool require_coherent;   /* refuse memory that needs flushes; excludes the next */
    bool force_non_coherent; /* flush and invalidate as if that were needed, where possible */
    size_t capacity;         /* bytes that buffers may grow to unless they say otherwise; 0: none */
    size_t maximum_chunk_bytes; /* bytes of one piece of memory; 0: 512 MiB */
    uint64_t cache_bytes;       /* of freed buffers, kept mapped on both sides; 0: none */
    /* Buffers without a capacity and of at most a quarter of this size are cut out of slabs of this
     * size. 0: 2 MiB, which is also the minimum; SIZE_MAX: no slabs, each buffer has memory of its
     * own. Cannot be combined with `capacity`, which gives every buffer one. */
    size_t slab_bytes;
    uint64_t maximum_bytes; /* for all memory that it holds; OUT_OF_CAPACITY above; 0: no limit */
} gpumem_mapped_options;
#define GPUMEM_MAPPED_OPTIONS(...) GPUMEM_OPTIONS(gpumem_mapped_options, __VA_ARGS__)

/*
 * Creates a resource of mapped memory. Each method is tried with one granule of memory, in which
 * the CPU must see the device's bytes and the device the CPU's. The caller destroys it.
 * NOT_SUPPORTED: no method works; the message says why each failed. Thread-safe; blocks for a copy,
 * and on first use while the Vulkan driver is opened (some 65 ms on an H200).
 *
 * Memory is reused only when all streams that used it have passed: the CPU may write to a new
 * buffer at once.
 *
 * Small buffers cost some tens of nanoseconds and no call of either driver while there is room in
 * slabs; when freed on a named stream, one event for every 32. They do not grow, cannot be exported
 * and have no host view: set a capacity, if only the size itself, for a buffer that needs memory of
 * its own. No two of them share an atom. gpumem_caching_forget_stream applies to their streams too,
 * and gpumem_caching_get_info reports their slabs. Wrappers around the resource get separate memory
 * for each buffer; put gpumem_caching_resource_create over those.
 *
 * maximum_bytes counts what was requested from the driver: whole granules and slabs, and freed
 * memory that is kept, which is given back before a request is refused. It is never exceeded, not
 * even briefly by concurrent threads.
 *
 * Driver: cuMemCreate, cuMemMap, cuMemSetAccess, cuMemExportToShareableHandle,
 * cuMemGetHandleForAddressRange. Vulkan: vkAllocateMemory, vkMapMemory2.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_mapped_resource_create(
    gpumem_device *device, const gpumem_mapped_options *options, gpumem_resource **resource);

/* What gpumem_mapped_get_info fills in. */
typedef struct gpumem_mapped_info {
    size_t size;
    gpumem_mapped_method method;
    bool coherent; /* neither flush nor invalidate is needed */
    size_t atom;   /* bytes that flushes are widened to; 1 if none is needed */
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
 * For buffers that the CPU can access: those of a mapped resource, host views, and also those of
 * pinned or host memory. `offset` and `bytes` must lie in the buffer (else INVALID_ARGUMENT).
 * Nothing waits for streams: the caller must know that no queued work uses the bytes. Thread-safe
 * for bytes that do not overlap.
 *
 * How a copy is made depends on its size, by a plan for the CPU, the GPU and the method
 * (gpumem_mapped_calibrate): by the CPU's own stores and loads, without a driver call; or, above a
 * size that differs between pinned and pageable host memory, by the driver's copy. Either is
 * complete when the call returns, and correct for every size and alignment. Host memory is always
 * copied by the CPU; memory that needs flushes is always written by it.
 *
 * The driver's copy runs on a stream that the library creates for it (kept with the resource) and
 * that is ordered with no other: it does not wait for blocking streams, as cuMemcpyHtoD does, nor
 * for a running kernel, and stream captures are not disturbed. If the driver refuses to create the
 * stream or to start the copy, the CPU copies. If the driver does not report that a copy has ended
 * (after a device fault), the call returns its error, as other calls do.
 */

/* Copies host memory to the buffer, and makes it visible to work submitted after the call. Driver:
 * none for small copies; otherwise cuPointerGetAttribute, cuMemcpyHtoDAsync, cuStreamSynchronize.
 */
GPUMEM_API gpumem_status gpumem_mapped_write(gpumem_buffer *buffer, size_t offset, const void *data,
                                             size_t bytes);
/* Copies to host memory what the device's finished work and this thread have written. Driver:
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
 * order for any reader of the device's memory: a running kernel that sees the value in an acquire
 * load of system scope, and loads the payload afterwards, sees all of it. (Volatile loads of both
 * are tested too, though PTX does not promise their order; plain loads after a volatile one may
 * find old bytes in the kernel's cache.) Always done by the CPU's stores, so that it never queues
 * behind the kernel that waits for the flag; gpumem_mapped_write is faster for a large payload that
 * no running kernel waits for. INVALID_ARGUMENT: the flag is not aligned to 4, or overlaps the
 * payload. No driver call.
 */
GPUMEM_API gpumem_status gpumem_mapped_publish(gpumem_buffer *buffer, size_t offset,
                                               const void *data, size_t bytes, size_t flag_offset,
                                               uint32_t value);

/* ---- Calibration ----------------------------------------------------------------------------- */

/* Options of gpumem_mapped_calibrate. */
typedef struct gpumem_mapped_calibrate_options {
    size_t size;
    size_t maximum_bytes;     /* the largest copy that is measured, at least 8; 0: 64 MiB */
    uint64_t run_nanoseconds; /* maximum for one way at one size; 0: 1,000,000 */
    bool keep_nothing;        /* for this process only; the calibration file is not changed */
} gpumem_mapped_calibrate_options;
#define GPUMEM_MAPPED_CALIBRATE_OPTIONS(...)                                                       \
    GPUMEM_OPTIONS(gpumem_mapped_calibrate_options, __VA_ARGS__)

/*
 * Measures on memory of `resource`, which is a mapped resource or a wrapper around one, which
 * stores and loads are fastest, and from which size the driver's copy is faster, for pinned and for
 * pageable host memory. From then on all mapped resources of the process with that device and
 * method use the result. Without it a plan that is good in general is used, so a program need not
 * call this; one that copies many megabytes may do so once per machine, as the plan is kept.
 *
 * The calibration file: the plan is kept by CPU, driver, GPU and method in $XDG_CACHE_HOME/gpumem,
 * or ~/.cache/gpumem, and loaded by later processes when they create their first resource of the
 * method. A folder that cannot be written, or a file that the library did not write, is ignored.
 * Set-uid programs do not use it. To measure again, call this again or delete the file.
 *
 * Blocks for one to two seconds with the default options, and at the end for work that is queued
 * anywhere on the device, as freeing pinned memory does; concurrent work on the device, the bus or
 * the CPU disturbs the result. `maximum_bytes` are allocated three times: from the resource, as
 * pinned, and as ordinary memory. Thread-safe. NOT_SUPPORTED: not device memory that the CPU has
 * mapped; host memory is copied by the CPU alone (method HOST too). After an error the plan is
 * unchanged, unless the measurement was complete and only giving back the memory failed. Driver:
 * the calls of an allocation and a free of the resource and of pinned memory, cuStreamCreate,
 * cuMemcpyHtoDAsync, cuMemcpyDtoHAsync, cuStreamSynchronize.
 */
GPUMEM_API gpumem_status gpumem_mapped_calibrate(gpumem_resource *resource,
                                                 const gpumem_mapped_calibrate_options *options);

/* ---- Views ----------------------------------------------------------------------------------- */

/* Options of a view for the CPU. */
typedef struct gpumem_host_view_options {
    size_t size;
    gpumem_mapped_method method; /* one that supports views */
    bool method_strict;
    bool require_coherent;
    bool force_non_coherent;
} gpumem_host_view_options;
#define GPUMEM_HOST_VIEW_OPTIONS(...) GPUMEM_OPTIONS(gpumem_host_view_options, __VA_ARGS__)

/*
 * Maps the memory of an exportable buffer of a virtual resource for the CPU: the result is a view
 * of the whole buffer (gpumem/view.h) that has a host pointer too, for gpumem_mapped_write and the
 * other calls above. It follows the buffer's growth: its size is the buffer's, its host pointer
 * stays; growth that cannot be followed fails as a whole. While it exists the buffer cannot shrink
 * or move (BUSY), and a free of the buffer takes effect when the view is freed. One buffer may have
 * several. Parts of it (gpumem_buffer_view) have host pointers as well, and keep it. The caller
 * frees it, when the CPU no longer touches the bytes, and does not use it while another thread
 * grows the buffer. NOT_SUPPORTED: the buffer is of another kind, is not exportable, or no method
 * works; the message says which. Thread-safe. Driver and Vulkan: as for the resource.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_host_view(
    gpumem_buffer *buffer, const gpumem_host_view_options *options, gpumem_buffer **view);

/* Like gpumem_mapped_get_info, of a host view, or of a buffer of a mapped resource.
 * INVALID_ARGUMENT: neither. */
GPUMEM_API gpumem_status gpumem_buffer_get_mapped_info(gpumem_buffer *buffer,
                                                       gpumem_mapped_info *info);

#ifdef __cplusplus
}
#endif

#endif
