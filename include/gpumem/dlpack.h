/*
 * Tensors of other libraries and buffers, one as the other without a copy, by DLPack: what PyTorch,
 * NumPy, CuPy, JAX and others hand one another.
 *
 * Pointers are to DLPack's own structs. Their declarations come from DLPack's header, or from
 * gpumem/dlpack_abi.h, before or after this one.
 */
#ifndef GPUMEM_DLPACK_H
#define GPUMEM_DLPACK_H

#include <gpumem/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

typedef struct gpumem_dlpack_options {
    size_t size;
    size_t offset;          /* of the first element in the buffer, bytes */
    int code;               /* DLDataTypeCode; with bits 0 it must be 0 */
    int bits;               /* of one lane; 0: unsigned integers of 8 bits */
    int lanes;              /* 0: 1 */
    int ndim;               /* 0 with no shape: one dimension, all whole elements from offset on */
    const int64_t *shape;   /* ndim of them; copied */
    const int64_t *strides; /* in elements, none negative; NULL: close together. Copied */
    int read_only;          /* 1: flagged so, which only the versioned form can; as for a buffer
                               that is read-only itself */
    CUstream stream;        /* of who will use the tensor, as gpumem_buffer_use; NULL: none */
} gpumem_dlpack_options;
#define GPUMEM_DLPACK_OPTIONS(...) GPUMEM_OPTIONS(gpumem_dlpack_options, __VA_ARGS__)

/*
 * A tensor over a buffer, which it holds: shrinking answers BUSY, and a free takes effect after its
 * deleter. The one who gets it calls the deleter once, from any thread; it releases the hold and
 * frees the tensor. What is queued by then on streams that were not named is not waited for, nor is
 * the one who gets it made to wait for what is queued on the memory: order its stream yourself. The
 * device is kDLCUDA, kDLCUDAHost (device 0) or kDLCUDAManaged, as the driver says of the memory.
 * Thread-safe as gpumem_buffer_hold. INVALID_ARGUMENT: shape, type or strides that are none, or
 * reach outside the buffer. NOT_SUPPORTED: read-only in the form that cannot say so.
 * Driver: as gpumem_buffer_get_attributes.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status
gpumem_buffer_to_dlpack(gpumem_buffer *buffer, const gpumem_dlpack_options *options,
                        struct DLManagedTensorVersioned **tensor);
/* The same for consumers of DLPack before 1.0. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_buffer_to_dlpack_unversioned(
    gpumem_buffer *buffer, const gpumem_dlpack_options *options, struct DLManagedTensor **tensor);

/*
 * A buffer over a tensor's memory, from its first element on: its shape and type are read from the
 * tensor before, where they matter. On success the tensor is the buffer's, whose end calls the
 * deleter, when all streams that were named have passed; on failure it stays the caller's. `stream`
 * uses it already, as in gpumem_foreign_options. Memory and errors as in
 * gpumem_buffer_from_pointer, and NOT_SUPPORTED: another major version, a device that is none of
 * the three, gaps between the elements; DATA: the driver says that the memory is not on the
 * tensor's device; INVALID_ARGUMENT: no elements. What is flagged read-only becomes a read-only
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
