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
} gpumem_mapped_options;
#define GPUMEM_MAPPED_OPTIONS(...) GPUMEM_OPTIONS(gpumem_mapped_options, __VA_ARGS__)

/*
 * Creates a resource of mapped memory. Each method is tried with one granule of memory, in which
 * the CPU must see the device's bytes and the device the CPU's. The caller destroys it.
 * NOT_SUPPORTED: no method works; the message says why each failed. Thread-safe; blocks for a copy,
 * and on first use while the Vulkan driver is opened (some 65 ms on an H200).
 *
 * Memory is handed out again only when all streams that used it have passed: the CPU may write it
 * at once. For many small buffers put gpumem_caching_resource_create over it.
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
 * not overlap. No driver call.
 */

/* Copies host memory to the buffer, and makes it visible to work submitted after the call. */
GPUMEM_API gpumem_status gpumem_mapped_write(gpumem_buffer *buffer, size_t offset, const void *data,
                                             size_t bytes);
/* Copies to host memory what finished work of the device has written. */
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
 * order for whoever reads the device's memory: a running kernel that sees the value in a volatile
 * or acquire load, and loads the payload after, sees all of it. INVALID_ARGUMENT: the flag is not
 * aligned to 4, or lies in the payload.
 */
GPUMEM_API gpumem_status gpumem_mapped_publish(gpumem_buffer *buffer, size_t offset,
                                               const void *data, size_t bytes, size_t flag_offset,
                                               uint32_t value);

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
/* As gpumem_mapped_flush and _invalidate, for the buffer's bytes. */
GPUMEM_API gpumem_status gpumem_host_view_flush(gpumem_host_view *view, size_t offset,
                                                size_t bytes);
GPUMEM_API gpumem_status gpumem_host_view_invalidate(gpumem_host_view *view, size_t offset,
                                                     size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
