/*
 * vkgdr's interface: device memory that the CPU reads and writes through a plain pointer. A program
 * that was written for vkgdr is built or run with libvkgdr.so.1 of gpumem instead; docs/vkgdr.md
 * says what differs.
 *
 * The memory is allocated by the Vulkan driver of the GPU and imported into the current CUDA
 * context. CUdevice and CUdeviceptr of <cuda.h> are int and unsigned long long; that header is
 * neither needed nor in the way.
 *
 * Thread-safe throughout, except that nobody else may use what is being freed or closed. The CUDA
 * driver is that of GPUMEM_DRIVER (gpumem/driver.h), and without it libcuda.so.1, which is the
 * process's own where it has loaded one. Whoever calls has called cuInit.
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

typedef struct vkgdr *vkgdr_t;               /* a GPU, opened */
typedef struct vkgdr_memory *vkgdr_memory_t; /* one allocation */

typedef enum vkgdr_open_flags {
    /* The device is that of the current context; the argument is ignored. */
    VKGDR_OPEN_CURRENT_CONTEXT_BIT = 1,
    /* Treat the memory as non-coherent, also where it is coherent: for debugging. */
    VKGDR_OPEN_FORCE_NON_COHERENT_BIT = 2,
    /* Refuse to open unless memory is coherent. Not together with the one above. */
    VKGDR_OPEN_REQUIRE_COHERENT_BIT = 4,
} vkgdr_open_flags;

/*
 * The text of this thread's error, for the caller to free(). NULL when there is none, or no memory
 * for it. vkgdr_open and vkgdr_memory_alloc set it when they fail and remove it when they succeed;
 * no other function touches it.
 *
 * A call of a driver that failed reads "vkAllocateMemory failed (VK_ERROR_OUT_OF_DEVICE_MEMORY)",
 * and "... failed (unknown Vulkan error N)" or "... failed (unknown CUDA error N)" where the error
 * has no name. Other texts are sentences: "no Vulkan device matching the CUDA device found",
 * "Vulkan device does not provide a suitable memory type", the dynamic loader's own for a library
 * that is missing, and such that name a wrong argument.
 */
VKGDR_API char *vkgdr_last_error(void);

/*
 * Opens the GPU `device`, a CUdevice, with flags of vkgdr_open_flags. NULL: see vkgdr_last_error.
 * Blocks while the Vulkan driver makes a device (tens of milliseconds), the first time.
 * cuCtxGetDevice with the flag, cuDeviceGetUuid.
 */
VKGDR_API vkgdr_t vkgdr_open(int device, uint32_t flags);

/* Gives the handle back; NULL is allowed. Belongs after the last vkgdr_memory_free; memory that is
 * left is still usable and can be freed. */
VKGDR_API void vkgdr_close(vkgdr_t g);

/*
 * `size` bytes, at least 1, for the CPU and for the current context, which must be one of the
 * device that was opened. Contents undefined. `flags` must be 0. NULL: see vkgdr_last_error.
 *
 * Buffers of up to 256 KiB are pieces of slabs of 2 MiB, at multiples of 256 bytes: mostly no
 * driver is asked for memory. Larger ones, and slabs: vkAllocateMemory, vkMapMemory,
 * vkGetMemoryFdKHR, cuImportExternalMemory, cuExternalMemoryGetMappedBuffer; what is done when one
 * fails is undone.
 */
VKGDR_API vkgdr_memory_t vkgdr_memory_alloc(vkgdr_t g, size_t size, uint32_t flags);

/*
 * Frees; NULL is allowed. The context of the allocation must be current. Waits for the work that is
 * queued in it, as cuMemFree does. With another context current, or none, the GPU keeps the memory
 * until its context ends.
 */
VKGDR_API void vkgdr_memory_free(vkgdr_memory_t mem);

/* Plain getters of an allocation that is not NULL. */
VKGDR_API void *vkgdr_memory_get_host_ptr(vkgdr_memory_t mem);
VKGDR_API unsigned long long vkgdr_memory_get_device_ptr(vkgdr_memory_t mem);
VKGDR_API size_t vkgdr_memory_get_size(vkgdr_memory_t mem); /* as asked for */
VKGDR_API bool vkgdr_memory_is_coherent(vkgdr_memory_t mem);

/* Bytes whose multiples flush and invalidate work on; 1 for coherent memory. */
VKGDR_API size_t vkgdr_memory_non_coherent_atom_size(vkgdr_memory_t mem);

/*
 * Makes the CPU's writes visible to the device, and the device's to the CPU. Offsets and sizes in
 * bytes, in multiples of the atom unless they reach the end of the allocation; here they are
 * widened to whole atoms, and cut at the end. Nothing is to do for coherent memory.
 * vkFlushMappedMemoryRanges, vkInvalidateMappedMemoryRanges.
 */
VKGDR_API void vkgdr_memory_flush(vkgdr_memory_t mem, size_t offset, size_t size);
VKGDR_API void vkgdr_memory_invalidate(vkgdr_memory_t mem, size_t offset, size_t size);

/* Beyond vkgdr: the CUdevice that was opened. */
VKGDR_API int gpumem_vkgdr_device(vkgdr_t g);

#ifdef __cplusplus
}
#endif

#endif
