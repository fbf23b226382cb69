/*
 * A wrapper whose buffers begin and end at multiples. It takes buffers of the wrapped resource, as
 * a user's wrapper would: if only a part of one begins at a multiple, that part is handed out.
 */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/driver_error.h"
#include "memory/object/resource.h"
#include "wrap/inner_buffer.h"
#include "wrap/wrapper.h"

#include <stdlib.h>

#define DEFAULT_ALIGNMENT 256

struct alignment_resource {
    struct gm_wrapper wrapper;
    size_t alignment, size_multiple, threshold;
};

/* 0 on overflow. */
static size_t round_up(size_t bytes, size_t multiple) {
    size_t rounded = bytes + multiple - 1;
    return rounded < bytes ? 0 : rounded & ~(multiple - 1);
}

static size_t shift_of(const gpumem_allocation *allocation) {
    return (size_t)(allocation->pointer - gpumem_buffer_pointer(allocation->cookie));
}

static size_t shift_for(const gpumem_buffer *from, size_t alignment) {
    return (size_t)(-gpumem_buffer_pointer(from) & (CUdeviceptr)(alignment - 1));
}

static gpumem_status too_large(size_t bytes) {
    return gm_fail(GPUMEM_ERROR_OUT_OF_MEMORY, "%zu bytes is too large", bytes);
}

/* A buffer with `bytes` from a multiple of the alignment on. */
static gpumem_status take(gpumem_resource *up, size_t bytes, size_t alignment, size_t capacity,
                          CUstream stream, gpumem_buffer **from) {
    gpumem_buffer_options options = {
        .size = sizeof options, .stream = stream, .alignment = alignment, .capacity = capacity};
    gpumem_status status = gpumem_buffer_allocate(up, bytes, &options, from);
    if (status != GPUMEM_OK || !shift_for(*from, alignment))
        return status;
    (void)gpumem_buffer_free(*from, stream); /* it ignores alignments */
    size_t more = alignment - 1;
    if (bytes > SIZE_MAX - more || capacity > SIZE_MAX - more)
        return too_large(bytes);
    options.alignment = 0;
    options.capacity = capacity ? capacity + more : 0;
    return gpumem_buffer_allocate(up, bytes + more, &options, from);
}

static void hand_on(const struct alignment_resource *a, const gpumem_request *request,
                    gpumem_buffer *from, size_t shift, size_t multiple,
                    gpumem_allocation *allocation) {
    unsigned char *host = gpumem_buffer_host_pointer(from);
    allocation->pointer = gpumem_buffer_pointer(from) + shift;
    allocation->host_pointer = host ? host + shift : NULL;
    allocation->bytes = allocation->capacity = request->bytes;
    if (a->wrapper.upstream->properties.can_resize) {
        size_t capacity = gpumem_buffer_capacity(from) - shift;
        allocation->capacity = capacity - capacity % multiple;
    }
    allocation->committed_bytes = gpumem_buffer_committed(from);
    allocation->cookie = from;
    allocation->buffer = from;
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    const struct alignment_resource *a = user;
    int small = request->bytes < a->threshold;
    size_t alignment =
        small || request->alignment > a->alignment ? request->alignment : a->alignment;
    size_t multiple = small ? 1 : a->size_multiple;
    size_t bytes = round_up(request->bytes, multiple);
    size_t capacity = round_up(request->capacity, multiple);
    if (!bytes || (request->capacity && !capacity))
        return too_large(request->bytes);
    gpumem_buffer *from = NULL;
    gpumem_status status =
        take(a->wrapper.upstream, bytes, alignment, capacity, request->stream, &from);
    if (status == GPUMEM_OK)
        hand_on(a, request, from, shift_for(from, alignment), multiple, allocation);
    return status;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    const struct alignment_resource *a = user;
    gm_inner_free(allocation->cookie, stream, a->wrapper.upstream->properties.stream_ordered);
}

static gpumem_status resize(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream) {
    const struct alignment_resource *a = user;
    gpumem_buffer *from = allocation->cookie;
    size_t shift = shift_of(allocation), before = gpumem_buffer_size(from);
    /* A small one that was passed on unchanged stays so: its capacity need not be a multiple. */
    size_t multiple = allocation->capacity % a->size_multiple ? 1 : a->size_multiple;
    size_t inner = round_up(bytes, multiple) + shift;
    gpumem_status status = GPUMEM_OK;
    if (inner > before)
        status = gpumem_buffer_grow(from, inner, stream);
    else if (inner < before)
        status = gpumem_buffer_shrink(from, inner, stream);
    size_t now = gpumem_buffer_size(from) - shift;
    if (status == GPUMEM_OK)
        allocation->bytes = bytes;
    else if (allocation->bytes > now)
        allocation->bytes = now;
    allocation->committed_bytes = gpumem_buffer_committed(from);
    return status;
}

static void properties(void *user, gpumem_resource_properties *out) {
    const struct alignment_resource *a = user;
    gm_wrapper_properties(user, out);
    if (!a->threshold && out->granularity < a->size_multiple)
        out->granularity = a->size_multiple;
}

static int is_power(size_t value) {
    return (value & (value - 1)) == 0;
}

gpumem_status gpumem_alignment_resource_create(gpumem_resource *upstream,
                                               const gpumem_alignment_options *given,
                                               gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_alignment_options options;
    GM_CHECK(upstream, "gpumem_alignment_resource_create");
    GM_REQUIRE(resource, "gpumem_alignment_resource_create: resource is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_alignment_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(is_power(options.alignment) && is_power(options.size_multiple),
               "gpumem_alignment_resource_create: alignment %zu or size_multiple %zu is not a "
               "power of two",
               options.alignment, options.size_multiple);
    const gpumem_resource_ops ops = {
        .size = sizeof ops,
        .kind = "alignment",
        .allocate = allocate,
        .deallocate = deallocate,
        .resize = upstream->ops.resize ? resize : NULL,
        .properties = properties,
        .trim = gm_wrapper_trim,
        .destroy = free,
        .upstream = upstream,
    };
    struct alignment_resource *a = calloc(1, sizeof *a);
    if (!a)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    a->wrapper.upstream = upstream;
    a->alignment = options.alignment ? options.alignment : DEFAULT_ALIGNMENT;
    a->size_multiple = options.size_multiple ? options.size_multiple : a->alignment;
    a->threshold = options.threshold;
    status = gm_resource_make(upstream->device, &ops, a, upstream, resource);
    if (status != GPUMEM_OK) {
        free(a);
        return status;
    }
    (*resource)->transparent = 1;
    (*resource)->enters = 1;
    (*resource)->multiple = a->alignment > a->size_multiple ? a->alignment : a->size_multiple;
    (*resource)->own_stream = upstream->own_stream;
    return GPUMEM_OK;
}
