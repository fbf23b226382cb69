/* DLPack tensors as buffers. */
#include "base/cancel.h"
#include "memory/core/driver_error.h"
#include "memory/foreign/foreign.h"

#include <gpumem/dlpack.h>
#include <gpumem/dlpack_abi.h>

#define KNOWN_MAJOR 1

static void delete_plain(void *tensor, CUdeviceptr pointer, size_t bytes, CUstream stream) {
    (void)pointer;
    (void)bytes;
    (void)stream;
    DLManagedTensor *managed = tensor;
    if (managed->deleter) /* may be NULL: the producer keeps it for ever */
        managed->deleter(managed);
}

static void delete_versioned(void *tensor, CUdeviceptr pointer, size_t bytes, CUstream stream) {
    (void)pointer;
    (void)bytes;
    (void)stream;
    DLManagedTensorVersioned *managed = tensor;
    if (managed->deleter)
        managed->deleter(managed);
}

/* Contiguous elements in another order of dimensions would do as well, but producers hand out this
 * one. */
static gpumem_status count_elements(const DLTensor *tensor, uint64_t *elements) {
    *elements = 1;
    GM_REQUIRE(tensor->ndim >= 0 && (!tensor->ndim || tensor->shape),
               "from DLPack: %d dimensions without a shape", (int)tensor->ndim);
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        int64_t length = tensor->shape[i];
        GM_REQUIRE(length > 0, "from DLPack: dimension %d has %lld elements", i, (long long)length);
        if (tensor->strides && length > 1 && tensor->strides[i] != (int64_t)*elements)
            return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                           "from DLPack: the elements are not contiguous (dimension %d has stride "
                           "%lld, not %llu); copy the tensor first",
                           i, (long long)tensor->strides[i], (unsigned long long)*elements);
        GM_REQUIRE(!__builtin_mul_overflow(*elements, (uint64_t)length, elements) &&
                       *elements <= INT64_MAX,
                   "from DLPack: too many elements");
    }
    return GPUMEM_OK;
}

static gpumem_status count_bytes(const DLTensor *tensor, size_t *bytes) {
    uint64_t elements, bits;
    gpumem_status status = count_elements(tensor, &elements);
    if (status != GPUMEM_OK)
        return status;
    uint64_t each = (uint64_t)tensor->dtype.bits * tensor->dtype.lanes;
    GM_REQUIRE(each && !__builtin_mul_overflow(elements, each, &bits) && bits <= UINT64_MAX - 7,
               "from DLPack: %llu elements of %llu bits are not a memory size",
               (unsigned long long)elements, (unsigned long long)each);
    *bytes = (size_t)((bits + 7) / 8);
    return GPUMEM_OK;
}

static gpumem_status check_device(const gpumem_device *device, const DLDevice *given) {
    switch ((int)given->device_type) {
    case kDLCUDA:
        if (given->device_id == device->handle)
            return GPUMEM_OK;
        return gm_fail(GPUMEM_ERROR_NO_DEVICE,
                       "from DLPack: the tensor is on device %d, not on device %d",
                       (int)given->device_id, device->ordinal);
    case kDLCUDAHost:
    case kDLCUDAManaged:
        return GPUMEM_OK;
    case kDLCPU:
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "from DLPack: the tensor is in host memory that is not pinned; copy it");
    default:
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "from DLPack: device type %d is not kDLCUDA, kDLCUDAHost or kDLCUDAManaged",
                       (int)given->device_type);
    }
}

/* The producer's claim is checked, because it decides how the memory is used. */
static gpumem_status check_truth(const DLDevice *given, const struct gm_pointer *known) {
    int type = known->managed ? kDLCUDAManaged : known->on_host ? kDLCUDAHost : kDLCUDA;
    if (type == (int)given->device_type)
        return GPUMEM_OK;
    return gm_fail(
        GPUMEM_ERROR_DATA,
        "from DLPack: the tensor has device type %d, but the driver reports %d (2 is CUDA, 3 "
        "pinned, 13 managed)",
        (int)given->device_type, type);
}

static gpumem_status import(gpumem_device *device, const DLTensor *tensor,
                            const gpumem_foreign_options *options, gpumem_buffer **buffer) {
    size_t bytes = 0;
    struct gm_pointer known;
    const CUdeviceptr pointer = (CUdeviceptr)(uintptr_t)tensor->data + tensor->byte_offset;
    gpumem_status status = check_device(device, &tensor->device);
    if (status == GPUMEM_OK)
        status = count_bytes(tensor, &bytes);
    if (status == GPUMEM_OK)
        status = gm_pointer_ask_range(device, pointer, bytes, &known);
    if (status == GPUMEM_OK)
        status = check_truth(&tensor->device, &known);
    if (status == GPUMEM_OK)
        status = gm_foreign_check_device(device, &known);
    if (status != GPUMEM_OK)
        return status;
    return gm_foreign_make(device, pointer, bytes, &known, options, buffer);
}

gpumem_status gpumem_buffer_from_dlpack(gpumem_device *device,
                                        struct DLManagedTensorVersioned *tensor, CUstream stream,
                                        gpumem_buffer **buffer) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_buffer_from_dlpack");
    GM_REQUIRE(tensor && buffer, "gpumem_buffer_from_dlpack: tensor or buffer is NULL");
    if (tensor->version.major != KNOWN_MAJOR)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "from DLPack: the tensor has version %u.%u; this library supports version 1",
                       tensor->version.major, tensor->version.minor);
    const gpumem_foreign_options options = {
        .size = sizeof options,
        .stream = stream,
        .deleter = delete_versioned,
        .user = tensor,
        .read_only = (tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0,
    };
    return import(device, &tensor->dl_tensor, &options, buffer);
}

gpumem_status gpumem_buffer_from_dlpack_unversioned(gpumem_device *device,
                                                    struct DLManagedTensor *tensor, CUstream stream,
                                                    gpumem_buffer **buffer) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_buffer_from_dlpack_unversioned");
    GM_REQUIRE(tensor && buffer, "gpumem_buffer_from_dlpack_unversioned: tensor or buffer is NULL");
    const gpumem_foreign_options options = {
        .size = sizeof options, .stream = stream, .deleter = delete_plain, .user = tensor};
    return import(device, &tensor->dl_tensor, &options, buffer);
}
