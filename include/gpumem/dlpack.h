/*
 * DLPack: a buffer as a tensor, or a tensor as a buffer, without a copy. PyTorch, NumPy, CuPy, JAX
 * and others exchange tensors this way.
 *
 * The pointers are to DLPack's own structs. DLPack's header declares them, or gpumem/dlpack_abi.h,
 * included before or after this one.
 */
#ifndef GPUMEM_DLPACK_H
#define GPUMEM_DLPACK_H

#include <gpumem/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Options of gpumem_buffer_to_dlpack. */
typedef struct gpumem_dlpack_options {
    size_t size;
    size_t offset;          /* in the buffer, of the first element; bytes */
    int code;               /* DLDataTypeCode; must be 0 if bits is 0 */
    int bits;               /* of one lane; 0: 8-bit unsigned integers */
    int lanes;              /* 0: 1 */
    int ndim;               /* 0 without a shape: one dimension, all whole elements from offset
                             * on */
    const int64_t *shape;   /* ndim extents; copied */
    const int64_t *strides; /* in elements, none negative; NULL: contiguous. Copied */
    bool read_only;         /* flagged read-only, which only the versioned form can express;
                               implied if the buffer is read-only */
    CUstream stream;        /* the consumer's, as gpumem_buffer_use; NULL: none */
} gpumem_dlpack_options;
#define GPUMEM_DLPACK_OPTIONS(...) GPUMEM_OPTIONS(gpumem_dlpack_options, __VA_ARGS__)

/*
 * Makes a tensor over a buffer and holds the buffer: shrinking returns BUSY, and a free takes
 * effect after the deleter. The consumer calls the deleter once, from any thread; it releases the
 * hold and frees the tensor. Nothing waits for work that is queued by then on streams that were not
 * named, and the consumer is not made to wait for work queued on the memory: order its stream
 * yourself. The device is kDLCUDA, kDLCUDAHost (device 0) or kDLCUDAManaged, according to the
 * driver. Thread-safe as gpumem_buffer_hold. INVALID_ARGUMENT: shape, type or strides that are
 * invalid or reach outside the buffer. NOT_SUPPORTED: read-only in the form that cannot express it.
 * Driver: as gpumem_buffer_get_attributes.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_buffer_to_dlpack(gpumem_buffer *buffer, const gpumem_dlpack_options *options,
                        struct DLManagedTensorVersioned **tensor);
/* The same for consumers of DLPack before 1.0. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_to_dlpack_unversioned(
    gpumem_buffer *buffer, const gpumem_dlpack_options *options, struct DLManagedTensor **tensor);

/*
 * Makes a buffer over a tensor's memory, from its first element on; read the shape and type from
 * the tensor beforehand if they matter. On success the buffer owns the tensor, and its end calls
 * the deleter when all streams that were named have passed; on failure the tensor remains the
 * caller's. `stream` already uses the memory, as in gpumem_foreign_options. Memory and errors as in
 * gpumem_buffer_from_pointer; also NOT_SUPPORTED: another major version, a device other than the
 * three above, gaps between the elements; DATA: according to the driver the memory is not on the
 * tensor's device; INVALID_ARGUMENT: no elements. A tensor flagged read-only becomes a read-only
 * buffer.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_buffer_from_dlpack(gpumem_device *device, struct DLManagedTensorVersioned *tensor,
                          CUstream stream, gpumem_buffer **buffer);
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_from_dlpack_unversioned(
    gpumem_device *device, struct DLManagedTensor *tensor, CUstream stream, gpumem_buffer **buffer);

#ifdef __cplusplus
}
#endif

#endif
