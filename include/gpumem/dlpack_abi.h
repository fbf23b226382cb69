/*
 * The structs of DLPack 1 as they lie in memory, for programs that do not have DLPack's own header.
 * With that one, include it and not this: both declare the same names. The layout of what is here
 * has not changed since DLPack 0 (DLManagedTensor) and 1.0 (DLManagedTensorVersioned), and later
 * minor versions only add values.
 */
#ifndef GPUMEM_DLPACK_ABI_H
#define GPUMEM_DLPACK_ABI_H

#ifdef DLPACK_DLPACK_H_
#error "gpumem/dlpack_abi.h and DLPack's own dlpack/dlpack.h declare the same types: include one"
#endif

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct DLPackVersion {
    uint32_t major; /* another one: nothing but the deleter can be relied on */
    uint32_t minor;
} DLPackVersion;

/* Those that are named by this library; the field has the width of an int. */
typedef enum DLDeviceType {
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3, /* pinned host memory */
    kDLCUDAManaged = 13,
} DLDeviceType;

typedef struct DLDevice {
    DLDeviceType device_type;
    int32_t device_id;
} DLDevice;

typedef enum DLDataTypeCode {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2,
    kDLOpaqueHandle = 3,
    kDLBfloat = 4,
    kDLComplex = 5,
    kDLBool = 6,
} DLDataTypeCode;

typedef struct DLDataType {
    uint8_t code;
    uint8_t bits;   /* of one lane */
    uint16_t lanes; /* of a vector type; else 1 */
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t
        *strides; /* in elements; NULL: rows lie close together, the last dimension varies first */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY 1ul
#define DLPACK_FLAG_BITMASK_IS_COPIED 2ul

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif

#endif
