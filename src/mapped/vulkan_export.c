#include "mapped/vulkan_export.h"

#include "memory/core/driver_error.h"
#include "memory/object/resource.h"
#include "vulkan/device.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NVIDIA's drivers align such memory to this; it is also the largest alignment that may be
 * requested. */
#define ALIGNMENT ((size_t)2 << 20)

/* ---- One piece of memory --------------------------------------------------------------------- */

/* On success the driver owns the descriptor and closes it. */
static gpumem_status import(struct gm_mapper *mapper, struct gm_exported *e) {
    const gpumem_driver_api *cu = mapper->device->cu;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                               .size = e->piece.bytes};
    gpumem_status status = gm_vulkan_export(e->piece.memory, &handle.handle.fd);
    if (status != GPUMEM_OK)
        return status;
    CUresult result = cu->cuImportExternalMemory(&e->external, &handle);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    status =
        gm_cu_fail(cu, result, "cuImportExternalMemory", "%zu bytes of Vulkan's", e->piece.bytes);
    if (!e->external) /* otherwise it was taken, and the error is an earlier one */
        close(handle.handle.fd);
    return status;
}

static gpumem_status map_for_device(struct gm_mapper *mapper, struct gm_exported *e) {
    const gpumem_driver_api *cu = mapper->device->cu;
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.size = e->piece.bytes};
    CUresult result = cu->cuExternalMemoryGetMappedBuffer(&e->piece.address, e->external, &buffer);
    if (result == CUDA_SUCCESS)
        return GPUMEM_OK;
    return gm_cu_fail(cu, result, "cuExternalMemoryGetMappedBuffer", "%zu bytes", e->piece.bytes);
}

void gm_exported_end(struct gm_mapper *mapper, struct gm_meter *meter, struct gm_exported *e) {
    const gpumem_driver_api *cu = mapper->device->cu;
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (e->incoherent.bytes)
        gm_incoherent_remove(&e->incoherent);
    int lost = e->piece.address && cu->cuMemFree_v2(e->piece.address) != CUDA_SUCCESS;
    if (e->external && (lost || cu->cuDestroyExternalMemory(e->external) != CUDA_SUCCESS)) {
        gm_meter_quarantine_memory(meter, e->piece.bytes);
        lost = 1;
    }
    /* Vulkan's memory object is separate from CUDA's: the bytes remain while either exists. */
    if (e->piece.memory && gm_vulkan_free(e->piece.memory) != GPUMEM_OK) {
        gm_meter_quarantine(meter, 0);
        lost = 1;
    }
    if (!lost)
        gm_bound_give(atomic_load(&meter->bound), e->bounded);
    free(e);
    gm_error_restore(&saved);
}

static gpumem_status flush(void *user, size_t offset, size_t bytes) {
    return gm_vulkan_flush(((struct gm_exported *)user)->piece.memory, offset, bytes);
}

static gpumem_status invalidate(void *user, size_t offset, size_t bytes) {
    return gm_vulkan_invalidate(((struct gm_exported *)user)->piece.memory, offset, bytes);
}

static void note_incoherent(const struct gm_mapper *mapper, struct gm_exported *e) {
    e->incoherent = (struct gm_incoherent){.base = e->piece.place,
                                           .bytes = e->piece.bytes,
                                           .atom = mapper->atom,
                                           .flush = flush,
                                           .invalidate = invalidate,
                                           .user = e};
    gm_incoherent_add(&e->incoherent);
}

gpumem_status gm_exported_make(struct gm_mapper *mapper, struct gm_meter *meter, size_t bytes,
                               struct gm_exported **made) {
    struct gm_vulkan_memory *memory = NULL;
    void *host = NULL;
    struct gm_exported *e = calloc(1, sizeof *e);
    if (!e)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a mapped allocation");
    gpumem_status status = gm_bound_take(atomic_load(&meter->bound), bytes);
    if (status == GPUMEM_OK) {
        e->bounded = bytes;
        status = gm_vulkan_allocate(mapper->vulkan, bytes, gm_mapper_vulkan_flags(mapper), &memory);
    }
    if (status == GPUMEM_OK) {
        e->piece.memory = memory;
        e->piece.bytes = (size_t)gm_vulkan_memory_size(memory);
        status = gm_vulkan_map(memory, NULL, &host);
    }
    e->piece.place = host;
    if (status == GPUMEM_OK)
        status = import(mapper, e);
    if (status == GPUMEM_OK)
        status = map_for_device(mapper, e);
    if (status != GPUMEM_OK) {
        gm_exported_end(mapper, meter, e);
        return status;
    }
    if (!mapper->coherent)
        note_incoherent(mapper, e);
    *made = e;
    return GPUMEM_OK;
}

static gpumem_status try_out(struct gm_mapper *mapper, CUstream stream) {
    struct gm_exported *e = NULL;
    gpumem_status status = gm_exported_make(mapper, &mapper->device->meter, ALIGNMENT, &e);
    if (status != GPUMEM_OK)
        return status;
    status = gm_mapper_compare(mapper, stream, e->piece.address, e->piece.place, &e->piece);
    gm_exported_end(mapper, &mapper->device->meter, e);
    return status;
}

static gpumem_status flush_piece(const struct gm_piece *piece, size_t offset, size_t bytes) {
    return gm_vulkan_flush(piece->memory, offset, bytes);
}

static gpumem_status invalidate_piece(const struct gm_piece *piece, size_t offset, size_t bytes) {
    return gm_vulkan_invalidate(piece->memory, offset, bytes);
}

const struct gm_mapper_ops gm_mapper_vulkan_export = {
    .method = GPUMEM_MAPPED_VULKAN_EXPORT,
    .open = gm_mapper_open_vulkan,
    .close = gm_mapper_close_vulkan,
    .try_out = try_out,
    .flush = flush_piece,
    .invalidate = invalidate_piece,
};

/* ---- The resource ---------------------------------------------------------------------------- */

struct exporting {
    struct gm_mapper *mapper;
    gpumem_resource *resource;
    void *user;
    void (*end)(void *user);
    /* The alignment of all addresses so far; lavapipe's memory starts after a one-page header. */
    atomic_size_t aligned;
};

static void note_alignment(struct exporting *x, CUdeviceptr address) {
    size_t found = (size_t)(address & -address), known = atomic_load(&x->aligned);
    while (found < known && !atomic_compare_exchange_weak(&x->aligned, &known, found)) {
    }
}

/* Allocates more than requested if the driver aligns less. `shift`: where the aligned bytes begin.
 */
static gpumem_status make_aligned(struct exporting *x, size_t bytes, size_t alignment,
                                  struct gm_exported **made, size_t *shift) {
    for (;;) {
        size_t more = alignment > atomic_load(&x->aligned) ? alignment : 0;
        if (more > SIZE_MAX - bytes)
            return gm_fail(GPUMEM_ERROR_OUT_OF_MEMORY, "no memory has %zu bytes", bytes);
        gpumem_status status = gm_exported_make(x->mapper, &x->resource->meter, bytes + more, made);
        if (status != GPUMEM_OK)
            return status;
        CUdeviceptr address = (*made)->piece.address;
        note_alignment(x, address);
        *shift = (size_t)(-address & (alignment - 1));
        if (*shift <= more)
            return GPUMEM_OK;
        gm_exported_end(x->mapper, &x->resource->meter, *made); /* the first attempt, without `more`
                                                                 */
    }
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct exporting *x = user;
    struct gm_exported *e = NULL;
    size_t shift = 0;
    if (request->capacity > request->bytes)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "memory that Vulkan allocates does not grow: capacity %zu is above %zu",
                       request->capacity, request->bytes);
    if (request->alignment > ALIGNMENT)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "memory that Vulkan allocates is not aligned to %zu", request->alignment);
    gpumem_status status = make_aligned(x, request->bytes, request->alignment, &e, &shift);
    if (status != GPUMEM_OK)
        return status;
    *allocation = (gpumem_allocation){.size = sizeof *allocation,
                                      .pointer = e->piece.address + shift,
                                      .host_pointer = e->piece.place + shift,
                                      .bytes = request->bytes,
                                      .committed_bytes = e->piece.bytes,
                                      .capacity = request->bytes,
                                      .cookie = e};
    return GPUMEM_OK;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct exporting *x = user;
    (void)stream;
    gm_exported_end(x->mapper, &x->resource->meter, allocation->cookie);
}

static void properties(void *user, gpumem_resource_properties *out) {
    const struct exporting *x = user;
    out->device_accessible = out->host_accessible = 1;
    out->granularity = ALIGNMENT;
    out->location = GPUMEM_LOCATION_DEVICE;
    memcpy(out->note, x->mapper->refusals,
           sizeof out->note < sizeof x->mapper->refusals ? sizeof out->note
                                                         : sizeof x->mapper->refusals);
    out->note[sizeof out->note - 1] = '\0';
}

static void destroy(void *user) {
    struct exporting *x = user;
    x->end(x->user);
    free(x);
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "mapped",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties,
    .destroy = destroy,
};

gpumem_status gm_exported_resource(gpumem_device *device, struct gm_mapper *mapper, void *user,
                                   void (*end)(void *user), gpumem_resource **resource) {
    struct exporting *x = calloc(1, sizeof *x);
    if (!x)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    *x = (struct exporting){.mapper = mapper, .user = user, .end = end, .aligned = ALIGNMENT};
    gpumem_status status = gm_resource_make(device, &ops, x, NULL, &x->resource);
    if (status != GPUMEM_OK) {
        free(x);
        return status;
    }
    *resource = x->resource;
    return GPUMEM_OK;
}

struct gm_mapper *gm_exported_mapper(const gpumem_resource *resource) {
    return resource->ops.allocate == allocate ? ((struct exporting *)resource->user)->mapper : NULL;
}
