/* Buffers as DLPack tensors. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/driver_error.h"
#include "memory/core/pointer_facts.h"
#include "memory/object/buffer.h"

#include <gpumem/dlpack.h>
#include <gpumem/dlpack_abi.h>
#include <stdlib.h>

#define MOST_DIMENSIONS 64 /* NumPy's, the most that any consumer accepts */

/* A tensor with everything it points to. One of the two heads is used. */
struct exported {
    union {
        DLManagedTensor plain;
        DLManagedTensorVersioned versioned;
    } head; /* first: its address is handed out */
    gpumem_buffer *buffer;
    int64_t dimensions[]; /* shape, then strides */
};

static void end(struct exported *exported) {
    gpumem_buffer *buffer = exported->buffer;
    free(exported);
    (void)gpumem_buffer_release(buffer); /* in a forked child there is nothing to release */
}

static void end_plain(DLManagedTensor *tensor) {
    end(tensor->manager_ctx);
}

static void end_versioned(DLManagedTensorVersioned *tensor) {
    end(tensor->manager_ctx);
}

/* ---- Shape and type -------------------------------------------------------------------------- */

static gpumem_status settle_type(const gpumem_dlpack_options *options, DLDataType *type,
                                 size_t *element) {
    int bits = options->bits ? options->bits : 8;
    int lanes = options->lanes ? options->lanes : 1;
    int code = options->bits ? options->code : (int)kDLUInt;
    GM_REQUIRE(options->bits || !options->code, "to DLPack: a type code needs its bits");
    GM_REQUIRE(code >= 0 && code <= UINT8_MAX && bits > 0 && bits <= UINT8_MAX && lanes > 0 &&
                   lanes <= UINT16_MAX,
               "to DLPack: code %d, %d bits, %d lanes is not a type", code, bits, lanes);
    GM_REQUIRE(bits * lanes % 8 == 0,
               "to DLPack: an element of %d bits is not a whole number of bytes", bits * lanes);
    *type = (DLDataType){.code = (uint8_t)code, .bits = (uint8_t)bits, .lanes = (uint16_t)lanes};
    *element = (size_t)(bits * lanes / 8);
    return GPUMEM_OK;
}

static void close_together(const int64_t *shape, int64_t *strides, int ndim) {
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        if (shape[i] > 0 && __builtin_mul_overflow(step, shape[i], &step))
            step = INT64_MAX; /* computed by reach */
    }
}

/* Elements from the first to the end of the last that the tensor reaches; UINT64_MAX: too many. */
static uint64_t reach(const int64_t *shape, const int64_t *strides, int ndim) {
    uint64_t end = 1, step;
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            return 0;
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow((uint64_t)(shape[i] - 1), (uint64_t)strides[i], &step) ||
            __builtin_add_overflow(end, step, &end))
            return UINT64_MAX;
    return end;
}

static gpumem_status settle_shape(const gpumem_buffer *buffer, const gpumem_dlpack_options *options,
                                  size_t element, int ndim, int64_t *shape, int64_t *strides) {
    size_t room = buffer->allocation.bytes - options->offset;
    for (int i = 0; i < ndim; i++) {
        shape[i] = options->shape ? options->shape[i] : (int64_t)(room / element);
        GM_REQUIRE(shape[i] >= 0, "to DLPack: dimension %d has %lld elements", i,
                   (long long)shape[i]);
    }
    close_together(shape, strides, ndim);
    for (int i = 0; i < ndim && options->strides; i++) {
        strides[i] = options->strides[i];
        GM_REQUIRE(strides[i] >= 0, "to DLPack: the stride of dimension %d is %lld", i,
                   (long long)strides[i]);
    }
    uint64_t elements = reach(shape, strides, ndim);
    GM_REQUIRE(elements <= room / element,
               "to DLPack: the tensor reaches past the %zu bytes that the buffer has from offset "
               "%zu on",
               room, options->offset);
    return GPUMEM_OK;
}

/* ---- Making one ------------------------------------------------------------------------------ */

static DLDevice device_of(const struct gm_pointer *known) {
    if (known->on_host)
        return (DLDevice){.device_type = kDLCUDAHost};
    return (DLDevice){.device_type = known->managed ? kDLCUDAManaged : kDLCUDA,
                      .device_id = known->ordinal};
}

static gpumem_status ask_device(gpumem_buffer *buffer, DLDevice *device) {
    struct gm_pointer known;
    gpumem_status status =
        gm_pointer_ask_range(buffer->resource->device, buffer->allocation.pointer, 1, &known);
    if (status == GPUMEM_OK)
        *device = device_of(&known);
    return status;
}

static gpumem_status check(const gpumem_buffer *buffer, const gpumem_dlpack_options *options) {
    GM_REQUIRE(options->ndim >= 0 && options->ndim <= MOST_DIMENSIONS,
               "to DLPack: %d dimensions; the maximum is %d", options->ndim, MOST_DIMENSIONS);
    GM_REQUIRE(!options->ndim == !options->shape, "to DLPack: ndim is %d with %s shape",
               options->ndim, options->shape ? "a" : "no");
    GM_REQUIRE(options->shape || !options->strides, "to DLPack: strides without a shape");
    GM_REQUIRE(options->offset <= buffer->allocation.bytes,
               "to DLPack: offset %zu is past the %zu bytes of the buffer", options->offset,
               buffer->allocation.bytes);
    return GPUMEM_OK;
}

static gpumem_status fill(gpumem_buffer *buffer, const gpumem_dlpack_options *options, int ndim,
                          struct exported *made, DLTensor *tensor) {
    size_t element = 1;
    int64_t *shape = made->dimensions, *strides = made->dimensions + ndim;
    *tensor = (DLTensor){
        .data = (void *)(uintptr_t)(buffer->allocation.pointer + options->offset),
        .ndim = ndim,
        .shape = shape,
        .strides = strides,
    };
    gpumem_status status = settle_type(options, &tensor->dtype, &element);
    if (status == GPUMEM_OK)
        status = settle_shape(buffer, options, element, ndim, shape, strides);
    if (status == GPUMEM_OK)
        status = ask_device(buffer, &tensor->device);
    if (status == GPUMEM_OK && options->stream)
        status = gpumem_buffer_use(buffer, options->stream);
    return status;
}

/* Takes the hold first, so that no shrink removes what was checked. */
static gpumem_status make(gpumem_buffer *buffer, const gpumem_dlpack_options *given, int versioned,
                          int *read_only, struct exported **out) {
    gpumem_dlpack_options options;
    gpumem_status status = GM_OPTIONS_READ(gpumem_dlpack_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    *read_only = options.read_only || buffer->read_only;
    if (*read_only && !versioned)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "to DLPack: only the versioned form can say that memory is read-only");
    gm_buffer_ref(buffer);
    status = check(buffer, &options);
    int ndim = options.shape ? options.ndim : 1;
    struct exported *made = NULL;
    if (status == GPUMEM_OK) {
        made = calloc(1, sizeof *made + 2 * (size_t)ndim * sizeof made->dimensions[0]);
        status =
            !made ? gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a tensor")
                  : fill(buffer, &options, ndim, made,
                         versioned ? &made->head.versioned.dl_tensor : &made->head.plain.dl_tensor);
    }
    if (status != GPUMEM_OK) {
        free(made);
        gm_buffer_unref(buffer);
        return status;
    }
    made->buffer = buffer;
    *out = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_buffer_to_dlpack(gpumem_buffer *buffer, const gpumem_dlpack_options *options,
                                      struct DLManagedTensorVersioned **tensor) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_to_dlpack");
    GM_REQUIRE(tensor, "gpumem_buffer_to_dlpack: tensor is NULL");
    int read_only;
    struct exported *made;
    gpumem_status status = make(buffer, options, 1, &read_only, &made);
    if (status != GPUMEM_OK)
        return status;
    DLManagedTensorVersioned *head = &made->head.versioned;
    head->version = (DLPackVersion){.major = 1, .minor = 0};
    head->manager_ctx = made;
    head->deleter = end_versioned;
    head->flags = read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
    *tensor = head;
    return GPUMEM_OK;
}

gpumem_status gpumem_buffer_to_dlpack_unversioned(gpumem_buffer *buffer,
                                                  const gpumem_dlpack_options *options,
                                                  struct DLManagedTensor **tensor) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_to_dlpack_unversioned");
    GM_REQUIRE(tensor, "gpumem_buffer_to_dlpack_unversioned: tensor is NULL");
    int read_only;
    struct exported *made;
    gpumem_status status = make(buffer, options, 0, &read_only, &made);
    if (status != GPUMEM_OK)
        return status;
    made->head.plain.manager_ctx = made;
    made->head.plain.deleter = end_plain;
    *tensor = &made->head.plain;
    return GPUMEM_OK;
}
