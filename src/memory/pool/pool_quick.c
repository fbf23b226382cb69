/*
 * Allocation and free of device memory from a pool on one stream: what most programs do most of the
 * time. The driver calls are the two that do the work and those that protect captures; counts are
 * per thread, and buffer objects are reused.
 *
 * The context is not entered if a stream is named: the driver uses the stream's own, whatever is
 * current, if anything (recorded on H200: tests/parity, beside/without-context, states/pool-*). If
 * a driver does not, the general path is used. For the default stream it is entered. The capture
 * mode must be relaxed: while a stream is capturing, both calls are unsafe on any other one, and
 * invalidate that capture (recorded: capture/unsafe-*); and another thread can begin one at any
 * time.
 */
#include "memory/pool/pool.h"

#include "base/cancel.h"
#include "base/fork.h"
#include "memory/core/capture.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/queued_frees.h"

/* Deferred frees are processed by the general path. */
static int is_calm(const gpumem_device *device) {
    return atomic_load_explicit(&device->deferred_count, memory_order_relaxed) == 0;
}

/* The general path may succeed where this fails: the caller's error is kept. */
static int push(struct gm_current *current, gpumem_device *device) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    if (gm_current_enter(current, device) == GPUMEM_OK)
        return 1;
    gm_error_restore(&saved);
    return 0;
}

/*
 * Prepares the two driver calls; 0: the general path is to be taken, and there is nothing to leave.
 * The default stream is that of the current context, which is made the device's where it is not,
 * and must not be touched while a blocking stream is capturing. The per-thread one must be
 * remembered with its thread.
 */
static int enter(struct gm_current *current, gpumem_device *device, CUstream stream) {
    if (stream == CU_STREAM_PER_THREAD || stream == GPUMEM_STREAM_NONE)
        return 0;
    CUcontext now = device->context;
    if (gm_is_legacy(stream) && device->cu->cuCtxGetCurrent(&now) != CUDA_SUCCESS)
        return 0;
    if (now != device->context) {
        if (!push(current, device))
            return 0;
    } else {
        *current = (struct gm_current){.device = device};
        gm_relax(&current->relaxed, device->cu);
    }
    if (!gm_is_legacy(stream))
        return 1;
    if (gm_capture_state(device->cu, stream, NULL) != GM_CAPTURE_IMPLICIT)
        return 1;
    gm_current_leave(current);
    return 0;
}

/* The driver requires the context, and did nothing: it checks that first. */
static int wants_context(CUresult result) {
    return result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* ---- Allocating ------------------------------------------------------------------------------ */

static gpumem_status refused(struct gm_pool *p, CUresult result, CUdeviceptr made, size_t bytes,
                             CUstream stream) {
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, p->device);
    if (status != GPUMEM_OK)
        return status;
    status = gm_pool_refuse(p, result, "cuMemAllocFromPoolAsync", bytes, stream);
    gm_pool_undo(p, made, bytes, stream);
    gm_current_leave(&current);
    return status;
}

static gpumem_buffer *make_buffer(gpumem_resource *resource, CUstream stream) {
    gpumem_buffer *buffer = gm_spare_take(resource, stream);
    if (!buffer && gm_buffer_make(resource, stream, &buffer) != GPUMEM_OK)
        return NULL;
    return buffer;
}

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, CUstream stream,
                               struct gm_tally_cell *cell, gpumem_status *refusal) {
    GM_UNCANCELLED;
    struct gm_pool *p = resource->user;
    if (!gm_pool_has_room(p, bytes)) {
        *refusal = gm_pool_is_full(p, bytes);
        return NULL;
    }
    struct gm_current current;
    gpumem_buffer *buffer = make_buffer(resource, stream);
    if (!buffer || !enter(&current, p->device, stream)) {
        gm_pool_give_room(p, bytes);
        if (buffer)
            gm_spare_give(buffer);
        return NULL;
    }
    CUdeviceptr made = 0;
    CUresult result =
        p->device->cu->cuMemAllocFromPoolAsync(&made, bytes, p->settings.pool, stream);
    gm_current_leave(&current);
    if (result != CUDA_SUCCESS) {
        gm_spare_give(buffer);
        if (made || !wants_context(result)) /* frees memory that was provided nevertheless */
            *refusal = refused(p, result, made, bytes, stream);
        gm_pool_give_room(p, bytes);
        return NULL;
    }
    gpumem_allocation *allocation = &buffer->allocation;
    allocation->pointer = made;
    allocation->bytes = allocation->committed_bytes = allocation->capacity = bytes;
    allocation->cookie = (void *)(uintptr_t)made;
    gm_tally_count(&resource->tally, cell, allocation, 1);
    gm_free_was_reused(cell, gm_canonical(stream), bytes);
    gm_roll_add(buffer, stream);
    return buffer;
}

static gpumem_buffer *try_allocate(gpumem_resource *resource, size_t bytes,
                                   const gpumem_buffer_options *given, gpumem_status *refusal) {
    CUstream stream = given ? given->stream : NULL;
    if (!bytes || !is_calm(resource->device))
        return NULL;
    if (given && (!gm_buffer_options_are_first(given) || given->alignment > GM_POOL_ALIGNMENT ||
                  (given->alignment & (given->alignment - 1)) || given->capacity))
        return NULL;
    struct gm_tally_cell *cell = gm_tally_cell_of(&resource->tally);
    return cell ? allocate(resource, bytes, stream, cell, refusal) : NULL;
}

/* ---- Freeing --------------------------------------------------------------------------------- */

/* The driver did not take it back. The recorded error belongs to the caller. */
static void settle_refused(struct gm_pool *p, const gpumem_allocation *allocation, CUstream stream,
                           CUresult result) {
    struct gm_error_record saved;
    struct gm_current current;
    gm_error_save(&saved);
    int entered = gm_current_enter(&current, p->device) == GPUMEM_OK;
    gm_pool_freed(p, allocation, stream, result);
    if (entered)
        gm_current_leave(&current);
    gm_error_restore(&saved);
}

static int give_back(gpumem_buffer *buffer, struct gm_tally_cell *cell) {
    GM_UNCANCELLED;
    gpumem_resource *resource = buffer->resource;
    struct gm_pool *p = resource->user;
    CUstream stream = buffer->waits[0].stream;
    struct gm_current current;
    if (!enter(&current, p->device, stream))
        return 0;
    gm_roll_remove(buffer); /* once the driver has the memory, it can be reused */
    CUresult result =
        p->device->cu->cuMemFreeAsync((CUdeviceptr)(uintptr_t)buffer->allocation.cookie, stream);
    gm_current_leave(&current);
    if (wants_context(result)) {
        gm_roll_add(buffer, stream);
        return 0;
    }
    gm_tally_count(&resource->tally, cell, &buffer->allocation, -1);
    if (__builtin_expect(result == CUDA_SUCCESS, 1)) {
        gm_free_was_queued_here(resource, cell, gm_canonical(stream),
                                buffer->allocation.committed_bytes);
        gm_pool_give_room(p, buffer->allocation.committed_bytes);
    } else
        settle_refused(p, &buffer->allocation, stream, result);
    gm_spare_give(buffer);
    return 1;
}

/* One owner and one stream, without a mark; no waiters and no watches. */
static int try_free(gpumem_buffer *buffer, CUstream stream) {
    gpumem_resource *resource = buffer->resource;
    const struct gm_wait *home = &buffer->inline_waits[0];
    if (buffer->freed || buffer->homeless || buffer->wait_count != 1 ||
        buffer->waits != buffer->inline_waits || home->event ||
        atomic_load_explicit(&buffer->references, memory_order_acquire) != 1 ||
        (stream && stream != home->stream) || !is_calm(resource->device) ||
        atomic_load_explicit(&resource->watched, memory_order_acquire))
        return 0;
    struct gm_tally_cell *cell = gm_tally_cell_of(&resource->tally);
    return cell && give_back(buffer, cell);
}

/* Host memory is pinned, and counted in more places; managed memory is refused to captures, and is
 * shared with the CPU; memory of other processes is released differently. */
void gm_pool_quicken(struct gm_pool *p) {
    static const struct gm_quick_ops ops = {.try_allocate = try_allocate, .try_free = try_free};
    if (p->settings.mapped)
        return;
    gm_tally_begin(&p->resource->tally, &p->resource->meter);
    if (p->settings.host || p->settings.managed)
        return;
    p->resource->quick = &ops;
}
