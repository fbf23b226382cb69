/*
 * Buffers over memory that the library did not take: of another library, another allocator, or the
 * program itself. They are copied, filled, viewed, held and freed like any other.
 */
#ifndef GPUMEM_FOREIGN_H
#define GPUMEM_FOREIGN_H

#include <gpumem/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Gives memory back to where it came from. Called once, from whichever thread frees or works frees
 * off, with the device's context current and no lock of the library held. It may free buffers, but
 * not allocate, and must not wait in this library. `stream`: see stream_ordered.
 */
typedef void (*gpumem_deleter_fn)(void *user, CUdeviceptr pointer, size_t bytes, CUstream stream);

typedef struct gpumem_foreign_options {
    size_t size;
    CUstream stream; /* that uses it already, as if allocated on it; NULL: the legacy default
                        stream; GPUMEM_STREAM_NONE: none */
    gpumem_deleter_fn deleter; /* NULL: the memory is not owned, and stays when the buffer ends */
    void *user;
    /* 0: the deleter is called when every stream that was named has passed the free, and `stream`
     * is of no use. 1: it is called at the free, and gives back in the order of the stream that it
     * is given (as cuMemFreeAsync does), behind which the others are; where that cannot be, later
     * and with an idle stream of the library's. */
    int stream_ordered;
    int read_only; /* 1: the library refuses to write there: NOT_PERMITTED */
} gpumem_foreign_options;
#define GPUMEM_FOREIGN_OPTIONS(...) GPUMEM_OPTIONS(gpumem_foreign_options, __VA_ARGS__)

/*
 * A buffer over `bytes` bytes, more than 0, at `pointer`: device memory of this device, pinned host
 * memory (registered, allocated, mapped) or managed memory, as the driver says of each piece of it.
 * It has no resource, cannot grow, shrink or be exported, and counts in allocations and in_use, not
 * in committed. The memory must stay until the deleter is called; where there is none, until
 * gpumem_buffer_free, its streams and the last hold have passed. The device cannot be closed before
 * the buffer is freed.
 * INVALID_ARGUMENT: the driver knows no such memory, or not all of it, or of two kinds. NO_DEVICE:
 * memory of another device. On failure nothing is taken over. Thread-safe; does not block. Driver:
 * cuPointerGetAttributes, cuMemGetAddressRange; of host memory cuMemRetainAllocationHandle,
 * cuMemGetAllocationPropertiesFromHandle, cuMemGetAccess, cuMemRelease.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_buffer_from_pointer(gpumem_device *device, CUdeviceptr pointer, size_t bytes,
                           const gpumem_foreign_options *options, gpumem_buffer **buffer);

typedef struct gpumem_register_options {
    size_t size;
    CUstream stream; /* that uses it already; NULL: the legacy default stream; GPUMEM_STREAM_NONE */
    int read_only;   /* 1: the device only reads it, as it must of a file mapped read-only */
} gpumem_register_options;
#define GPUMEM_REGISTER_OPTIONS(...) GPUMEM_OPTIONS(gpumem_register_options, __VA_ARGS__)

/*
 * Pins memory that the program has already, from malloc, mmap or a mapped file, and makes a buffer
 * of it; its end unpins, when every stream that was named has passed. The memory stays the
 * program's and must stay mapped until then. `address` and `bytes` need not be aligned; whole pages
 * are pinned. BUSY: a part of it is registered already. NOT_SUPPORTED: the device registers no
 * memory, or none read-only. OUT_OF_HOST_MEMORY and NOT_PERMITTED as the driver says, the latter of
 * a read-only mapping without `read_only`. Otherwise as gpumem_buffer_from_pointer. Thread-safe;
 * blocks while pages are pinned. Driver:
 * cuMemHostRegister, cuMemHostGetDevicePointer, cuMemHostUnregister.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_buffer_register(gpumem_device *device, void *address, size_t bytes,
                       const gpumem_register_options *options, gpumem_buffer **buffer);

#ifdef __cplusplus
}
#endif

#endif
