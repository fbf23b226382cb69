/*
 * vkgdr's interface: device memory that the CPU reads and writes through a plain pointer. Programs
 * written for vkgdr can be built against or run with gpumem's libvkgdr.so.1 instead; docs/vkgdr.md
 * lists the differences.
 *
 * The memory is allocated by the Vulkan driver of the GPU and imported into the current CUDA
 * context. CUdevice and CUdeviceptr of <cuda.h> are int and unsigned long long; that header is not
 * needed, and may be included.
 *
 * Thread-safe throughout, except that no other thread may use an object while it is freed or
 * closed. The CUDA driver is that of GPUMEM_DRIVER (gpumem/driver.h), else libcuda.so.1: the one
 * that the process has loaded, if any. The caller must have called cuInit.
 */
#ifndef VKGDR_H
#define VKGDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define VKGDR_API __attribute__((visibility("default")))
#else
#define VKGDR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vkgdr *vkgdr_t;               /* an open GPU */
typedef struct vkgdr_memory *vkgdr_memory_t; /* one allocation */

typedef enum vkgdr_open_flags {
    /* Use the device of the current context; the argument is ignored. */
    VKGDR_OPEN_CURRENT_CONTEXT_BIT = 1,
    /* Treat memory as non-coherent even if it is coherent: for debugging. */
    VKGDR_OPEN_FORCE_NON_COHERENT_BIT = 2,
    /* Refuse to open unless memory is coherent. With the flag above too, it is treated as
     * non-coherent nevertheless. */
    VKGDR_OPEN_REQUIRE_COHERENT_BIT = 4,
} vkgdr_open_flags;

/*
 * The text of this thread's error, which the caller must free(). NULL if there is none, or no
 * memory for it. vkgdr_open and vkgdr_memory_alloc set it when they fail and remove it when they
 * succeed; no other function touches it.
 *
 * A failed driver call reads "vkAllocateMemory failed (VK_ERROR_OUT_OF_DEVICE_MEMORY)", and "...
 * failed (unknown Vulkan error N)" or "... failed (unknown CUDA error N)" where the error has no
 * name. Other texts are sentences: "no Vulkan device matching the CUDA device found", "Vulkan
 * device does not provide a suitable memory type", the dynamic loader's own message for a missing
 * library, and messages that name a wrong argument.
 */
VKGDR_API char *vkgdr_last_error(void);

/*
 * Opens the GPU `device`, a CUdevice, with flags of vkgdr_open_flags. NULL: see vkgdr_last_error.
 * The first time, blocks while the Vulkan driver creates a device (tens of milliseconds). Calls
 * cuDeviceGetUuid, and cuCtxGetDevice with the first flag.
 */
VKGDR_API vkgdr_t vkgdr_open(int device, uint32_t flags);

/* Closes the handle; NULL is allowed. Call it after the last vkgdr_memory_free; memory that remains
 * is still usable and can be freed. */
VKGDR_API void vkgdr_close(vkgdr_t g);

/*
 * Allocates `size` bytes, at least 1, for the CPU and the current context, which must belong to the
 * opened device. The contents are undefined. `flags` must be 0. NULL: see vkgdr_last_error.
 *
 * Buffers of up to 256 KiB are pieces of 2 MiB slabs, at multiples of 256 bytes, and mostly need no
 * driver call. Larger buffers, and slabs, call vkAllocateMemory, vkMapMemory, vkGetMemoryFdKHR,
 * cuImportExternalMemory, cuExternalMemoryGetMappedBuffer; if one fails, the earlier ones are
 * undone.
 */
VKGDR_API vkgdr_memory_t vkgdr_memory_alloc(vkgdr_t g, size_t size, uint32_t flags);

/*
 * Frees the memory; NULL is allowed. The context of the allocation must be current. Waits for the
 * work queued in it, as cuMemFree does. If another context is current, or none, the GPU keeps the
 * memory until its context ends.
 */
VKGDR_API void vkgdr_memory_free(vkgdr_memory_t mem);

/* Plain getters; `mem` must not be NULL. */
VKGDR_API void *vkgdr_memory_get_host_ptr(vkgdr_memory_t mem);
VKGDR_API unsigned long long vkgdr_memory_get_device_ptr(vkgdr_memory_t mem);
VKGDR_API size_t vkgdr_memory_get_size(vkgdr_memory_t mem); /* as requested */
VKGDR_API bool vkgdr_memory_is_coherent(vkgdr_memory_t mem);

/* The unit of flush and invalidate, in bytes; 1 for coherent memory. */
VKGDR_API size_t vkgdr_memory_non_coherent_atom_size(vkgdr_memory_t mem);

/*
 * flush makes the CPU's writes visible to the device, invalidate the device's to the CPU. In vkgdr
 * offsets and sizes, in bytes, must be multiples of the atom unless they reach the end of the
 * allocation; here they are widened to whole atoms and cut off at the end. Does nothing for
 * coherent memory. Calls vkFlushMappedMemoryRanges, vkInvalidateMappedMemoryRanges.
 */
VKGDR_API void vkgdr_memory_flush(vkgdr_memory_t mem, size_t offset, size_t size);
VKGDR_API void vkgdr_memory_invalidate(vkgdr_memory_t mem, size_t offset, size_t size);

/* Beyond vkgdr: the CUdevice that was opened. */
VKGDR_API int gpumem_vkgdr_device(vkgdr_t g);

#ifdef __cplusplus
}
#endif

#endif
