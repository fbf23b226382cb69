/* Buffers as DLPack tensors and tensors as buffers, as a consumer and a producer in C see it. */
#include "library_test.h"

#include <gpumem/dlpack_abi.h>
#include <pthread.h>

static gpumem_resource *memory, *pinned, *managed;

BEFORE(open_device) {
    memory = NEW_VIRTUAL();
    pinned = NEW_PINNED();
    managed = NEW_MANAGED();
}

AFTER(close_device) {
    DESTROY(managed, pinned, memory);
}

ALL_TESTS(before, after);

/* ---- The structs ----------------------------------------------------------------------------- */

/* Where DLPack 1's members are on 64 bits: consumers were compiled with these. */
TEST(the_structs_have_the_layout_of_dlpack) {
    assert_int_equal(sizeof(DLDevice), 8);
    assert_int_equal(sizeof(DLDataType), 4);
    assert_int_equal(offsetof(DLTensor, device), 8);
    assert_int_equal(offsetof(DLTensor, ndim), 16);
    assert_int_equal(offsetof(DLTensor, dtype), 20);
    assert_int_equal(offsetof(DLTensor, shape), 24);
    assert_int_equal(offsetof(DLTensor, strides), 32);
    assert_int_equal(offsetof(DLTensor, byte_offset), 40);
    assert_int_equal(sizeof(DLTensor), 48);
    assert_int_equal(offsetof(DLManagedTensor, manager_ctx), 48);
    assert_int_equal(offsetof(DLManagedTensor, deleter), 56);
    assert_int_equal(offsetof(DLManagedTensorVersioned, manager_ctx), 8);
    assert_int_equal(offsetof(DLManagedTensorVersioned, deleter), 16);
    assert_int_equal(offsetof(DLManagedTensorVersioned, flags), 24);
    assert_int_equal(offsetof(DLManagedTensorVersioned, dl_tensor), 32);
}

/* ---- Buffers as tensors ---------------------------------------------------------------------- */

TEST(a_buffer_becomes_a_one_dimensional_tensor_of_bytes) {
    gpumem_buffer *buffer = NEW_BUFFER(memory, 1000);
    DLManagedTensorVersioned *tensor;
    OK(gpumem_buffer_to_dlpack(buffer, NULL, &tensor));
    const DLTensor *is = &tensor->dl_tensor;
    assert_int_equal(tensor->version.major, 1);
    assert_int_equal(tensor->flags, 0);
    assert_int_equal((uintptr_t)is->data + is->byte_offset, gpumem_buffer_pointer(buffer));
    MEMBERS(is->device, (device_type, kDLCUDA), (device_id, 0));
    assert_int_equal(is->ndim, 1);
    assert_int_equal(is->shape[0], 1000);
    assert_int_equal(is->strides[0], 1);
    MEMBERS(is->dtype, (code, kDLUInt), (bits, 8), (lanes, 1));
    tensor->deleter(tensor);
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(a_tensor_has_the_requested_shape_type_and_strides) {
    const int64_t shape[] = {2, 3, 4}, strides[] = {16, 5, 1};
    gpumem_buffer *buffer = NEW_BUFFER(memory, 4096);
    DLManagedTensor *tensor;
    OK(gpumem_buffer_to_dlpack_unversioned(buffer,
                                           GPUMEM_DLPACK_OPTIONS(.offset = 64, .code = kDLFloat,
                                                                 .bits = 32, .ndim = 3,
                                                                 .shape = shape),
                                           &tensor));
    const DLTensor *is = &tensor->dl_tensor;
    assert_int_equal((uintptr_t)is->data, gpumem_buffer_pointer(buffer) + 64);
    assert_int_equal(is->ndim, 3);
    assert_memory_equal(is->shape, shape, sizeof shape);
    assert_int_equal(is->strides[0], 12);
    assert_int_equal(is->strides[1], 4);
    assert_int_equal(is->strides[2], 1);
    assert_int_equal(is->dtype.code, kDLFloat);
    tensor->deleter(tensor);
    OK(gpumem_buffer_to_dlpack_unversioned(buffer,
                                           GPUMEM_DLPACK_OPTIONS(.code = kDLFloat, .bits = 16,
                                                                 .ndim = 3, .shape = shape,
                                                                 .strides = strides),
                                           &tensor));
    assert_memory_equal(tensor->dl_tensor.strides, strides, sizeof strides);
    tensor->deleter(tensor);
    OK(gpumem_buffer_free(buffer, NULL));
}

static void refused(gpumem_buffer *buffer, const gpumem_dlpack_options *options) {
    DLManagedTensorVersioned *tensor = NULL;
    FAILS(INVALID_ARGUMENT, gpumem_buffer_to_dlpack(buffer, options, &tensor));
    assert_null(tensor);
}

TEST(a_tensor_that_exceeds_its_buffer_is_refused) {
    const int64_t shape[] = {10, 10}, far[] = {INT64_MAX, 1}, back[] = {-10, 1};
    const int64_t huge[] = {INT64_MAX, INT64_MAX}, negative[] = {-1, 1}, none[] = {0, 10};
    DLManagedTensorVersioned *tensor;
    gpumem_buffer *buffer = NEW_BUFFER(memory, 100);
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.offset = 1, .ndim = 2, .shape = shape));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.bits = 16, .ndim = 2, .shape = shape));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.lanes = 2, .ndim = 2, .shape = shape));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 2, .shape = shape, .strides = far));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 2, .shape = shape, .strides = back));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 2, .shape = huge));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 2, .shape = negative));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.offset = 101));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.bits = 4));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.bits = 256));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.code = kDLFloat));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 2));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = -1, .shape = shape));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 65, .shape = shape));
    OK(gpumem_buffer_to_dlpack(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 2, .shape = shape), &tensor));
    tensor->deleter(tensor);
    OK(gpumem_buffer_to_dlpack(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 2, .shape = none), &tensor));
    tensor->deleter(tensor);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_release(buffer)); /* none of these holds it */
    OK(gpumem_buffer_free(buffer, NULL));
}

/* Its last element is at 2^64 - 1, or further: counted in 64 bits, the end is at 0. */
TEST(a_tensor_that_exceeds_the_address_space_is_refused) {
    const int64_t shapes[][3] = {{8, (int64_t)1 << 61},
                                 {(int64_t)1 << 32, (int64_t)1 << 32},
                                 {4, (int64_t)1 << 31, (int64_t)1 << 31},
                                 {2, INT64_MAX, 1},
                                 {2, 2, INT64_MAX}};
    /* 2 * (2^63 - 1) + 1 = 2^64 - 1 */
    const int64_t twice[] = {2, 2, 2}, strides[] = {INT64_MAX, INT64_MAX, 1};
    const int64_t none[][3] = {{INT64_MAX, INT64_MAX, 0}, {0, INT64_MAX, INT64_MAX}};
    DLManagedTensorVersioned *tensor;
    gpumem_buffer *buffer = NEW_BUFFER(memory, 4096);
    for (size_t i = 0; i < COUNT(shapes); i++)
        refused(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = shapes[i][2] ? 3 : 2, .shape = shapes[i]));
    refused(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 3, .shape = twice, .strides = strides));
    for (size_t i = 0; i < COUNT(none); i++) {
        OK(gpumem_buffer_to_dlpack(buffer, GPUMEM_DLPACK_OPTIONS(.ndim = 3, .shape = none[i]),
                                   &tensor));
        tensor->deleter(tensor);
    }
    DESTROY(buffer);
}

TEST(the_tensors_device_type_follows_the_memory) {
    gpumem_resource *resources[] = {memory, pinned, managed};
    const int types[] = {kDLCUDA, kDLCUDAHost, kDLCUDAManaged};
    for (size_t i = 0; i < COUNT(resources); i++) {
        DLManagedTensorVersioned *tensor;
        gpumem_buffer *buffer = NEW_BUFFER(resources[i], KIB);
        OK(gpumem_buffer_to_dlpack(buffer, NULL, &tensor));
        MEMBERS(tensor->dl_tensor.device, (device_type, types[i]), (device_id, 0));
        tensor->deleter(tensor);
        OK(gpumem_buffer_free(buffer, NULL));
    }
}

TEST(read_only_is_flagged_or_refused) {
    DLManagedTensorVersioned *tensor;
    DLManagedTensor *plain = NULL;
    gpumem_buffer *buffer = NEW_BUFFER(memory, KIB);
    OK(gpumem_buffer_to_dlpack(buffer, GPUMEM_DLPACK_OPTIONS(.read_only = 1), &tensor));
    assert_int_equal(tensor->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    FAILS(NOT_SUPPORTED, gpumem_buffer_to_dlpack_unversioned(
                             buffer, GPUMEM_DLPACK_OPTIONS(.read_only = 1), &plain));
    assert_null(plain);
    tensor->deleter(tensor);
    OK(gpumem_buffer_free(buffer, NULL));
}

static void *delete_it(void *tensor) {
    DLManagedTensorVersioned *managed_tensor = tensor;
    managed_tensor->deleter(managed_tensor);
    return NULL;
}

TEST(the_tensors_deleter_releases_the_buffer) {
    struct gate gate = gate_with_stream();
    DLManagedTensorVersioned *tensor;
    pthread_t thread;
    gpumem_buffer *buffer = NEW_BUFFER(memory, 4 * MIB);
    OK(gpumem_buffer_to_dlpack(buffer, GPUMEM_DLPACK_OPTIONS(.stream = gate.stream), &tensor));
    FAILS(BUSY, gpumem_buffer_shrink(buffer, 1, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(device_stats().allocations, 1);
    assert_int_equal(pthread_create(&thread, NULL, delete_it, tensor), 0);
    pthread_join(thread, NULL);
    assert_int_equal(device_stats().allocations, 0);
    assert_int_equal(device_stats().deferred_frees, 1); /* the stream that was named */
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(device_stats().deferred_frees, 0);
    gate_remove(&gate);
}

/* ---- Tensors as buffers ---------------------------------------------------------------------- */

struct producer {
    DLManagedTensorVersioned versioned;
    DLManagedTensor plain;
    int64_t shape[3], strides[3];
    int deleted;
};

static void deleted_versioned(DLManagedTensorVersioned *self) {
    ((struct producer *)self->manager_ctx)->deleted++;
}

static void deleted_plain(DLManagedTensor *self) {
    ((struct producer *)self->manager_ctx)->deleted++;
}

/* 2 x 3 x 4 floats at `data`, in both forms. */
static void produce(struct producer *producer, CUdeviceptr data, DLDeviceType type) {
    *producer = (struct producer){.shape = {2, 3, 4}, .strides = {12, 4, 1}};
    const DLTensor tensor = {.data = (void *)(uintptr_t)data,
                             .device = {.device_type = type},
                             .ndim = 3,
                             .dtype = {.code = kDLFloat, .bits = 32, .lanes = 1},
                             .shape = producer->shape,
                             .strides = producer->strides,
                             .byte_offset = 32};
    producer->plain = (DLManagedTensor){tensor, producer, deleted_plain};
    producer->versioned = (DLManagedTensorVersioned){.version = {1, 3},
                                                     .manager_ctx = producer,
                                                     .deleter = deleted_versioned,
                                                     .dl_tensor = tensor};
}

TEST(a_tensor_becomes_a_buffer) {
    struct gate gate = gate_with_stream();
    struct producer producer;
    gpumem_buffer *behind = NEW_BUFFER(memory, KIB), *buffer;
    for (int plain = 0; plain < 2; plain++) {
        produce(&producer, gpumem_buffer_pointer(behind), kDLCUDA);
        producer.plain.dl_tensor.strides = NULL;
        if (plain)
            OK(gpumem_buffer_from_dlpack_unversioned(device, &producer.plain, NULL, &buffer));
        else
            OK(gpumem_buffer_from_dlpack(device, &producer.versioned, NULL, &buffer));
        assert_int_equal(gpumem_buffer_pointer(buffer), gpumem_buffer_pointer(behind) + 32);
        assert_int_equal(gpumem_buffer_size(buffer), 96);
        OK(fill_now(buffer, 0, 96, 3, NULL));
        if (plain)
            OK(gpumem_buffer_use(buffer, gate.stream));
        OK(gpumem_buffer_free(buffer, NULL));
        assert_int_equal(producer.deleted, !plain);
    }
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(producer.deleted, 1);
    DESTROY(behind, &gate);
}

TEST(a_refused_tensor_stays_with_the_caller) {
    struct producer producer;
    gpumem_buffer *buffer = NULL, *behind = NEW_BUFFER(memory, KIB);
    CUdeviceptr data = gpumem_buffer_pointer(behind);
#define REFUSED(status, change)                                                                    \
    do {                                                                                           \
        produce(&producer, data, kDLCUDA);                                                         \
        DLTensor *tensor = &producer.versioned.dl_tensor;                                          \
        change;                                                                                    \
        (void)tensor;                                                                              \
        FAILS(status, gpumem_buffer_from_dlpack(device, &producer.versioned, NULL, &buffer));      \
        assert_int_equal(producer.deleted, 0);                                                     \
        assert_null(buffer);                                                                       \
    } while (0)
    REFUSED(NOT_SUPPORTED, producer.versioned.version.major = 2);
    REFUSED(NOT_SUPPORTED, tensor->device.device_type = kDLCPU);
    REFUSED(NOT_SUPPORTED, tensor->device.device_type = (DLDeviceType)10);
    REFUSED(NO_DEVICE, tensor->device.device_id = 1);
    REFUSED(DATA, tensor->device.device_type = kDLCUDAHost);
    REFUSED(NOT_SUPPORTED, producer.strides[1] = 5);
    REFUSED(INVALID_ARGUMENT, producer.shape[1] = 0);
    REFUSED(INVALID_ARGUMENT, producer.shape[0] = -2);
    REFUSED(INVALID_ARGUMENT, tensor->shape = NULL);
    REFUSED(INVALID_ARGUMENT, tensor->ndim = -1);
    REFUSED(INVALID_ARGUMENT, tensor->dtype.bits = 0);
    REFUSED(INVALID_ARGUMENT, producer.shape[0] = INT64_MAX / 2);
    REFUSED(INVALID_ARGUMENT, tensor->byte_offset = 64 * MIB);
    REFUSED(INVALID_ARGUMENT, tensor->data = &producer);
#undef REFUSED
    FAILS(INVALID_ARGUMENT, gpumem_buffer_from_dlpack(device, NULL, NULL, &buffer));
    OK(gpumem_buffer_free(behind, NULL));
}

TEST(a_round_trip_through_dlpack_keeps_the_memory) {
    gpumem_resource *resources[] = {memory, pinned, managed};
    for (size_t i = 0; i < COUNT(resources); i++) {
        DLManagedTensorVersioned *tensor;
        unsigned char bytes[KIB];
        gpumem_buffer *again, *buffer = NEW_BUFFER(resources[i], KIB);
        OK(gpumem_buffer_to_dlpack(buffer, GPUMEM_DLPACK_OPTIONS(.read_only = 1), &tensor));
        OK(gpumem_buffer_from_dlpack(device, tensor, NULL, &again));
        assert_int_equal(gpumem_buffer_pointer(again), gpumem_buffer_pointer(buffer));
        assert_ptr_equal(gpumem_buffer_host_pointer(again), gpumem_buffer_host_pointer(buffer));
        assert_int_equal(gpumem_buffer_size(again), KIB);
        FAILS(NOT_PERMITTED, gpumem_buffer_fill(again, 0, 1, 1, NULL));
        OK(fill_now(buffer, 0, KIB, 0x5a, NULL));
        OK(read_now(again, 0, bytes, KIB, NULL));
        assert_int_equal(bytes[KIB - 1], 0x5a);
        OK(gpumem_buffer_free(buffer, NULL));
        OK(gpumem_buffer_free(again, NULL)); /* and by it the tensor, and by that the buffer */
        OK(gpumem_device_trim(device, 1));
        assert_int_equal(device_stats().allocations, 0);
    }
}
