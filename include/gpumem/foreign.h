/*
 * Buffers over memory that the library did not allocate: from another library, another allocator,
 * or the program itself. They are copied, filled, viewed, held and freed like any other.
 */
#ifndef GPUMEM_FOREIGN_H
#define GPUMEM_FOREIGN_H

#include <gpumem/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Gives memory back to its origin. Called once, from the thread that frees or that carries out
 * deferred frees, with the device's context current and no lock of the library held. It may free
 * buffers, but must not allocate, or wait in this library. `stream`: see stream_ordered.
 */
typedef void (*gpumem_deleter_fn)(void *user, CUdeviceptr pointer, size_t bytes, CUstream stream);

/* Options of gpumem_buffer_from_pointer. */
typedef struct gpumem_foreign_options {
    size_t size;
    CUstream stream; /* that already uses the memory, as if it had been allocated on it; NULL: the
                        legacy default stream; GPUMEM_STREAM_NONE: none */
    gpumem_deleter_fn deleter; /* NULL: the memory is not owned, and outlives the buffer */
    void *user;
    /* false: the deleter is called when every stream that was named has passed the free, and its
     * `stream` means nothing. true: it is called at the free, and gives the memory back in order of
     * its `stream` (as cuMemFreeAsync does), which has been made to wait for the others; where that
     * is impossible, it is called later, with an idle stream of the library's. */
    bool stream_ordered;
    bool read_only; /* the library refuses to write to it: NOT_PERMITTED */
    /* Memory of the CPU's alone, such as malloc's: the driver is not asked about it. The library's
     * copies treat it as pageable memory; a fill is NOT_SUPPORTED. Excludes stream_ordered. */
    bool host_only;
} gpumem_foreign_options;
#define GPUMEM_FOREIGN_OPTIONS(...) GPUMEM_OPTIONS(gpumem_foreign_options, __VA_ARGS__)

/*
 * Makes a buffer over `bytes` bytes, more than 0, at `pointer`: device memory of this device,
 * pinned host memory (registered, allocated, mapped) or managed memory, as the driver reports for
 * each piece. The buffer has no resource, cannot grow, shrink or be exported, and counts in
 * allocations and in_use, not in committed. The memory must exist until the deleter is called; if
 * there is none, until gpumem_buffer_free, its streams and the last hold have passed. The device
 * cannot be closed before the buffer is freed. INVALID_ARGUMENT: memory that the driver does not
 * know, or knows only in part, or that is of two kinds, or that lies in two allocations or two
 * registrations side by side, across which the driver copies nothing (mappings of virtual memory
 * may follow each other): make a buffer of each. NO_DEVICE: memory of another device. On
 * failure nothing is taken over. Thread-safe; does not block. Driver: cuPointerGetAttributes,
 * cuMemGetAddressRange; for host memory cuMemRetainAllocationHandle,
 * cuMemGetAllocationPropertiesFromHandle, cuMemGetAccess, cuMemRelease.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_buffer_from_pointer(gpumem_device *device, CUdeviceptr pointer, size_t bytes,
                           const gpumem_foreign_options *options, gpumem_buffer **buffer);

/* Options of gpumem_buffer_register. */
typedef struct gpumem_register_options {
    size_t size;
    CUstream stream; /* that already uses it; NULL: the legacy default stream; or
                      * GPUMEM_STREAM_NONE */
    bool read_only;  /* the device only reads it; required for a file mapped read-only */
} gpumem_register_options;
#define GPUMEM_REGISTER_OPTIONS(...) GPUMEM_OPTIONS(gpumem_register_options, __VA_ARGS__)

/*
 * Pins memory that the program already has, from malloc, mmap or a mapped file, and makes a buffer
 * of it. Freeing the buffer unpins the memory when every stream that was named has passed. The
 * memory remains the program's and must stay mapped until then. `address` and `bytes` need not be
 * aligned; whole pages are pinned. BUSY: part of it is already registered; the message says which,
 * and gpumem_buffer_from_pointer makes a buffer of that. NOT_SUPPORTED: the
 * device cannot register memory, or not read-only. OUT_OF_HOST_MEMORY and NOT_PERMITTED as the
 * driver reports, the latter for a read-only mapping without `read_only`. Otherwise as
 * gpumem_buffer_from_pointer. Thread-safe; blocks while pages are pinned. Driver:
 * cuMemHostRegister, cuMemHostGetDevicePointer, cuMemHostUnregister.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_buffer_register(gpumem_device *device, void *address, size_t bytes,
                       const gpumem_register_options *options, gpumem_buffer **buffer);

#ifdef __cplusplus
}
#endif

#endif
