#include "memory/object/buffer.h"

#include "base/cancel.h"
#include "base/fork.h"
#include "base/options.h"
#include "memory/core/call_site.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/closing.h"
#include "memory/object/deferred_frees.h"
#include "memory/object/reclaim.h"
#include "memory/object/resource.h"
#include "memory/object/view.h"
#include "memory/object/watch.h"

#include <stdlib.h>
#include <string.h>

_Thread_local void *gm_call_site;
_Thread_local gpumem_buffer *gm_buffer_in_making;

void gm_buffer_init(gpumem_buffer *made, gpumem_resource *resource, CUstream stream) {
    made->generation = resource->generation;
    made->resource = resource;
    made->allocation.size = sizeof made->allocation;
    atomic_init(&made->references, 1);
    made->waits = made->inline_waits;
    made->wait_room = GM_INLINE_STREAMS;
    /* The driver keeps the order of stream-ordered memory, and two more calls would be
     * expensive. */
    int named = stream != GPUMEM_STREAM_NONE;
    made->waits[0] = gm_wait_for(resource->device, named ? stream : NULL,
                                 named && !resource->properties.stream_ordered);
    made->wait_count = (size_t)named;
    made->homeless = !named && resource->own_stream;
    pthread_mutex_init(&made->lock, NULL);
}

gpumem_status gm_buffer_make(gpumem_resource *resource, CUstream stream, gpumem_buffer **buffer) {
    gpumem_buffer *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a buffer");
    gm_buffer_init(made, resource, stream);
    *buffer = made;
    return GPUMEM_OK;
}

void gm_buffer_clear(gpumem_buffer *buffer) {
    if (buffer->waits != buffer->inline_waits)
        free(buffer->waits);
    pthread_mutex_destroy(&buffer->lock);
}

void gm_buffer_discard(gpumem_buffer *buffer) {
    gm_buffer_clear(buffer);
    gm_bury(buffer);
}

static int can_resize(const gpumem_buffer *buffer) {
    return buffer->resource->ops.resize && buffer->resource->properties.can_resize;
}

/* Address space is counted if it is separate from the memory. */
static uint64_t reserved(const gpumem_buffer *buffer) {
    return can_resize(buffer) ? buffer->allocation.capacity : buffer->allocation.committed_bytes;
}

void gm_buffer_count(gpumem_buffer *buffer) {
    struct gm_meter *meter = &buffer->resource->meter;
    if (!buffer->resource->imported) {
        gm_meter_add(meter, GM_RESERVED, reserved(buffer));
        gm_meter_add(meter, GM_COMMITTED, buffer->allocation.committed_bytes);
    }
    gm_meter_add(meter, GM_IN_USE, buffer->allocation.bytes);
    gm_meter_add(meter, GM_ALLOCATIONS, 1);
    gm_meter_add(meter, GM_ALLOCATIONS_TOTAL, 1);
    gm_roll_add(buffer, buffer->wait_count ? buffer->waits[0].stream : GPUMEM_STREAM_NONE);
}

void gm_buffer_attach(gpumem_buffer *buffer, const gpumem_allocation *allocation) {
    buffer->allocation = *allocation;
    buffer->allocation.size = sizeof buffer->allocation;
    atomic_fetch_add(&buffer->resource->live, 1);
    atomic_fetch_add(&buffer->resource->owned, 1);
    gm_buffer_count(buffer);
}

void gm_buffer_finish(gpumem_buffer *buffer, CUstream stream) {
    gpumem_resource *resource = buffer->resource;
    gm_watches_tell_end(buffer);
    gm_roll_remove(buffer);
    if (!resource->imported) {
        gm_meter_subtract(&resource->meter, GM_RESERVED, reserved(buffer));
        gm_meter_subtract(&resource->meter, GM_COMMITTED, buffer->allocation.committed_bytes);
    }
    uint64_t bytes = buffer->allocation.committed_bytes;
    resource->ops.deallocate(resource->user, &buffer->allocation, stream);
    gm_meter_gave_back(&resource->meter, bytes);
    for (size_t i = 0; i < buffer->wait_count; i++) /* marks of a shrink that was refused */
        gm_wait_drop(resource->device, &buffer->waits[i]);
    gm_buffer_discard(buffer);
    atomic_fetch_sub(&resource->live, 1);
}

CUstream gm_buffer_home(const gpumem_buffer *buffer) {
    return buffer->homeless ? GPUMEM_STREAM_NONE : buffer->waits[buffer->home].stream;
}

int gm_buffer_put_off(gpumem_resource *resource, const gpumem_allocation *allocation,
                      CUstream stream) {
    gpumem_buffer *held = NULL;
    if (gm_buffer_make(resource, stream, &held) != GPUMEM_OK)
        return -1;
    atomic_fetch_add(&resource->live, 1);
    held->allocation = *allocation;
    held->freed = GM_FREED;
    atomic_init(&held->listed.state, GM_LISTED_DEFERRED);
    held->told = 1;                     /* when the buffer itself ended */
    gm_wait_is_shared(&held->waits[0]); /* the buffer may have come from another thread */
    gm_meter_add(&resource->meter, GM_RESERVED, reserved(held));
    gm_meter_add(&resource->meter, GM_COMMITTED, allocation->committed_bytes);
    gm_roll_add(held, stream);
    gm_waits_mark(held);
    gm_defer(held);
    return 0;
}

static gpumem_status try_allocate(gpumem_buffer *buffer, const gpumem_request *request) {
    gpumem_resource *resource = buffer->resource;
    struct gm_late late = {.device = resource->device};
    gpumem_status status = resource->enters ? GPUMEM_OK : gm_late_enter(&late);
    if (status != GPUMEM_OK)
        return status;
    gpumem_allocation allocation = {.size = sizeof allocation};
    gm_buffer_in_making = resource->mapped ? buffer : NULL;
    status = resource->ops.allocate(resource->user, request, &allocation);
    gm_buffer_in_making = NULL;
    gm_late_leave(&late);
    if (status == GPUMEM_OK)
        buffer->allocation = allocation;
    return status;
}

static gpumem_status check_request(const gpumem_resource *resource, const gpumem_request *request) {
    size_t alignment = request->alignment;
    GM_REQUIRE(request->bytes, "gpumem_buffer_allocate: 0 bytes");
    GM_REQUIRE(alignment && (alignment & (alignment - 1)) == 0,
               "gpumem_buffer_allocate: alignment %zu is not a power of two", alignment);
    GM_REQUIRE(!request->capacity || request->capacity >= request->bytes,
               "gpumem_buffer_allocate: capacity %zu is less than the size %zu", request->capacity,
               request->bytes);
    GM_REQUIRE(request->stream != GPUMEM_STREAM_NONE || !resource->properties.stream_ordered ||
                   resource->own_stream,
               "gpumem_buffer_allocate: memory of the %s resource is stream-ordered; name a stream",
               resource->kind);
    if (request->capacity > request->bytes && !resource->properties.can_resize)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "buffers of the %s resource cannot grow; use a virtual resource",
                       resource->kind);
    return GPUMEM_OK;
}

static gpumem_status allocate_fast(gpumem_resource *resource, const gpumem_request *request,
                                   gpumem_buffer **buffer) {
    gpumem_buffer *made = NULL;
    struct gm_reclaim reclaim = gm_reclaim_for(resource, request->bytes);
    gpumem_status status = resource->fast->allocate(resource, request, &made);
    while (gm_reclaim_more(&reclaim, status))
        status = resource->fast->allocate(resource, request, &made);
    if (status == GPUMEM_OK)
        *buffer = made;
    else
        gm_meter_add(&resource->meter, GM_ALLOCATIONS_FAILED, 1);
    return status;
}

static int is_for_slabs(const gpumem_resource *resource, const gpumem_request *request) {
    return !request->capacity && request->bytes <= resource->slab_most &&
           request->alignment <= resource->slab_most;
}

/* `refusal`: the error of a first attempt, or OK if none was made. */
static gpumem_status allocate(gpumem_resource *resource, size_t bytes,
                              const gpumem_buffer_options *given, gpumem_buffer **buffer,
                              void *call_site, gpumem_status refusal) {
    GM_UNCANCELLED;
    GM_CALL_SITE(call_site);
    gpumem_buffer_options options;
    GM_CHECK(resource, "gpumem_buffer_allocate");
    GM_REQUIRE(buffer, "gpumem_buffer_allocate: buffer is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_buffer_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    gpumem_request request = {.size = sizeof request,
                              .bytes = bytes,
                              .alignment = options.alignment ? options.alignment : 1,
                              .capacity = options.capacity,
                              .stream = options.stream};
    gpumem_resource *slabs = atomic_load_explicit(&resource->slabs, memory_order_relaxed);
    if (slabs && is_for_slabs(resource, &request))
        resource = slabs;
    status = check_request(resource, &request);
    if (status != GPUMEM_OK)
        return status;
    gm_work_off(resource->device);
    if (resource->fast)
        return allocate_fast(resource, &request, buffer);
    gpumem_buffer *made = NULL;
    status = gm_buffer_make(resource, options.stream, &made);
    if (status != GPUMEM_OK)
        return status;
    atomic_fetch_add(&resource->live, 1);
    atomic_fetch_add(&resource->owned, 1);
    struct gm_reclaim reclaim = gm_reclaim_for(resource, bytes);
    status = refusal == GPUMEM_OK ? try_allocate(made, &request) : refusal;
    while (gm_reclaim_more(&reclaim, status))
        status = try_allocate(made, &request);
    if (status != GPUMEM_OK) {
        gm_meter_add(&resource->meter, GM_ALLOCATIONS_FAILED, 1);
        gm_buffer_discard(made);
        atomic_fetch_sub(&resource->owned, 1);
        atomic_fetch_sub(&resource->live, 1);
        return status;
    }
    gm_buffer_count(made);
    *buffer = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_buffer_allocate(gpumem_resource *resource, size_t bytes,
                                     const gpumem_buffer_options *given, gpumem_buffer **buffer) {
    gpumem_status refusal = GPUMEM_OK;
    if (resource && buffer && resource->generation == gm_fork_generation()) {
        gpumem_buffer *at_hand = NULL;
        gpumem_resource *slabs = atomic_load_explicit(&resource->slabs, memory_order_relaxed);
        if (resource->fast)
            at_hand = resource->fast->try_allocate(resource, bytes, given);
        else if (slabs && bytes <= resource->slab_most)
            at_hand = slabs->fast->try_allocate(slabs, bytes, given);
        else if (resource->quick)
            at_hand = resource->quick->try_allocate(resource, bytes, given, &refusal);
        if (at_hand) {
            *buffer = at_hand;
            return GPUMEM_OK;
        }
    }
    return allocate(resource, bytes, given, buffer, GM_RETURN_ADDRESS, refusal);
}

/* Makes room for that many more streams. The buffer's lock is held. */
int gm_buffer_reserve_waits(gpumem_buffer *buffer, size_t more) {
    if (buffer->wait_count + more <= buffer->wait_room)
        return 0;
    size_t room = 2 * buffer->wait_room;
    if (room < buffer->wait_count + more)
        room = buffer->wait_count + more;
    struct gm_wait *grown = malloc(room * sizeof *grown);
    if (!grown)
        return -1;
    memcpy(grown, buffer->waits, buffer->wait_count * sizeof *grown);
    if (buffer->waits != buffer->inline_waits)
        free(buffer->waits);
    buffer->waits = grown;
    buffer->wait_room = room;
    return 0;
}

/*
 * The wait that names the stream. Slots are kept free for the streams given to frees: one for the
 * owner, one for each view. `spare`: how many must stay free after this.
 */
static int name_stream(gpumem_buffer *buffer, CUstream stream, size_t spare, int identify,
                       size_t *index) {
    gpumem_device *device = buffer->resource->device;
    const struct gm_wait plain = gm_wait_for(device, stream, 0);
    for (*index = 0; *index < buffer->wait_count; ++*index)
        if (gm_wait_same(&buffer->waits[*index], &plain))
            return 0;
    if (gm_buffer_reserve_waits(buffer, 1 + spare) != 0)
        return -1;
    buffer->waits[buffer->wait_count++] = identify ? gm_wait_for(device, stream, 1) : plain;
    return 0;
}

gpumem_status gpumem_buffer_use(gpumem_buffer *buffer, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_use");
    GM_REQUIRE(stream != GPUMEM_STREAM_NONE, "no work can be queued on GPUMEM_STREAM_NONE");
    gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    pthread_mutex_lock(&root->lock);
    size_t index;
    int named = name_stream(root, stream, 1 + root->views, 1, &index);
    pthread_mutex_unlock(&root->lock);
    if (named != 0)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a stream");
    return GPUMEM_OK;
}

/* Whether streams are asked before the memory is handed out again. A resource that keeps its order
 * by itself needs that for further streams only; one that maps memory marks its own, too. */
static int asks_streams(const gpumem_buffer *buffer, int ordered) {
    return buffer->wait_count > (ordered && !buffer->resource->mapped);
}

/* The last reference is gone. */
static void retire(gpumem_buffer *buffer) {
    gpumem_resource *resource = buffer->resource;
    if (buffer->root) {
        gm_view_end(buffer);
        return;
    }
    if (resource->fast) {
        if (buffer->freed & GM_WATCHED)
            gm_watches_tell_end(buffer);
        resource->fast->take_back(buffer);
        return;
    }
    gpumem_device *device = resource->device;
    gm_meter_subtract(&resource->meter, GM_IN_USE, buffer->allocation.bytes);
    gm_meter_subtract(&resource->meter, GM_ALLOCATIONS, 1);
    atomic_fetch_sub(&resource->owned, 1);
    struct gm_error_record saved;
    gm_error_save(&saved);
    struct gm_late late = {.device = device};
    int ordered = resource->properties.stream_ordered && !buffer->homeless, now = 0;
    int ready =
        (resource->enters && !asks_streams(buffer, ordered)) || gm_late_enter(&late) == GPUMEM_OK;
    if (ready && ordered)
        now = gm_waits_join(buffer) == 0;
    else if (ready)
        now = gm_waits_mark(buffer);
    if (now)
        gm_buffer_finish(buffer, gm_buffer_home(buffer));
    else
        gm_defer(buffer);
    gm_late_leave(&late);
    gm_work_off(device);
    gm_error_restore(&saved);
}

void gm_buffer_unref(gpumem_buffer *buffer) {
    if (atomic_fetch_sub(&buffer->references, 1) == 1) {
        buffer->generation = GM_DESTROYED; /* given back by its owner, even while it is held back */
        retire(buffer);
    }
}

/* One owner, naming no new stream: there is nothing to lock. The per-thread stream may differ from
 * the one that was named. */
static int is_simple_free(gpumem_buffer *buffer, CUstream stream) {
    return buffer->resource->fast && !buffer->freed &&
           atomic_load_explicit(&buffer->references, memory_order_acquire) == 1 &&
           (!stream || (buffer->wait_count && stream == buffer->waits[0].stream &&
                        stream != GPUMEM_STREAM_PER_THREAD));
}

/* The stream that a view was freed on is one more stream of its buffer, whose free is still to
 * come. */
static void name_views_stream(gpumem_buffer *root, CUstream stream) {
    size_t index;
    pthread_mutex_lock(&root->lock);
    (void)name_stream(root, stream, 0, 1, &index); /* there is room: the view's own slot */
    pthread_mutex_unlock(&root->lock);
}

static gpumem_status free_as_guest(gpumem_buffer *buffer, CUstream stream) {
    pthread_mutex_lock(&buffer->lock);
    int freed = buffer->freed & GM_FREED, named = stream && stream != GPUMEM_STREAM_NONE;
    buffer->freed |= GM_FREED;
    atomic_store_explicit(&buffer->listed.state, GM_LISTED_FREED, memory_order_relaxed);
    if (!freed && named && !buffer->root) {
        /* There is room: see above. The stream is queried at once, so that it cannot be mistaken
         * for a later one of the same value. */
        (void)name_stream(buffer, stream, 0, 0, &buffer->home);
        buffer->homeless = 0;
    }
    pthread_mutex_unlock(&buffer->lock);
    if (!freed && named && buffer->root)
        name_views_stream(buffer->root, stream);
    GM_REQUIRE(!freed, "gpumem_buffer_free: freed twice; a hold or an export still keeps it");
    gm_buffer_unref(buffer);
    return GPUMEM_OK;
}

static gpumem_status free_buffer(gpumem_buffer *buffer, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_free");
    int entered = gm_closing_enter();
    gpumem_status status = free_as_guest(buffer, stream);
    gm_closing_leave(entered);
    return status;
}

gpumem_status gpumem_buffer_free(gpumem_buffer *buffer, CUstream stream) {
    if (!buffer)
        return GPUMEM_OK;
    if (buffer->generation != gm_fork_generation())
        return free_buffer(buffer, stream);
    const struct gm_quick_ops *quick = buffer->resource->quick;
    if (atomic_load_explicit(&buffer->resource->closed, memory_order_relaxed))
        return free_buffer(buffer, stream);
    if (quick && quick->try_free(buffer, stream))
        return GPUMEM_OK;
    if (!is_simple_free(buffer, stream))
        return free_buffer(buffer, stream);
    buffer->generation = GM_DESTROYED;
    buffer->resource->fast->take_back(buffer);
    return GPUMEM_OK;
}

/* ---- Growing and shrinking ------------------------------------------------------------------- */

static gpumem_status try_resize(gpumem_buffer *buffer, gpumem_allocation *allocation, size_t bytes,
                                CUstream stream) {
    gpumem_resource *resource = buffer->resource;
    struct gm_late late = {.device = resource->device};
    gpumem_status status = resource->enters ? GPUMEM_OK : gm_late_enter(&late);
    if (status != GPUMEM_OK)
        return status;
    status = resource->ops.resize(resource->user, allocation, bytes, stream);
    gm_late_leave(&late);
    return status;
}

static void move_meter(struct gm_meter *meter, enum gm_count count, uint64_t from, uint64_t to) {
    if (to > from)
        gm_meter_add(meter, count, to - from);
    else
        gm_meter_subtract(meter, count, from - to);
}

void gm_buffer_take_over(gpumem_buffer *buffer, const gpumem_allocation *changed) {
    struct gm_meter *meter = &buffer->resource->meter;
    const gpumem_allocation *before = &buffer->allocation;
    move_meter(meter, GM_IN_USE, before->bytes, changed->bytes);
    if (!buffer->resource->imported)
        move_meter(meter, GM_COMMITTED, before->committed_bytes, changed->committed_bytes);
    buffer->layout += before->committed_bytes != changed->committed_bytes;
    buffer->epoch +=
        changed->bytes < before->bytes || changed->committed_bytes < before->committed_bytes;
    gm_roll_lock(buffer);
    buffer->allocation.bytes = changed->bytes;
    buffer->allocation.committed_bytes = changed->committed_bytes;
    gm_roll_unlock(buffer);
    for (gpumem_buffer *view = buffer->followers; view; view = view->followers) {
        gm_roll_lock(view);
        view->allocation.bytes = view->allocation.committed_bytes = changed->bytes;
        gm_roll_unlock(view);
    }
}

void gm_buffer_moved(gpumem_buffer *buffer, CUdeviceptr address, size_t capacity) {
    move_meter(&buffer->resource->meter, GM_RESERVED, buffer->allocation.capacity, capacity);
    gm_roll_lock(buffer);
    if (buffer->allocation.host_pointer)
        buffer->allocation.host_pointer = (void *)(uintptr_t)address;
    buffer->allocation.pointer = address;
    buffer->allocation.capacity = capacity;
    gm_roll_unlock(buffer);
    buffer->layout++;
}

gpumem_status gm_buffer_not_in_slab(const gpumem_buffer *buffer, const char *what) {
    const gpumem_resource *resource = (buffer->root ? buffer->root : buffer)->resource;
    if (!resource->inside)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "a small buffer of the %s resource lies in a slab and cannot %s: allocate it "
                   "with a capacity",
                   resource->upstream->kind, what);
}

/* Under the lock: another thread may be making a view, or a host view, which looks at the memory
 * and is told what comes. */
static gpumem_status grow(gpumem_buffer *buffer, size_t bytes, CUstream stream) {
    pthread_mutex_lock(&buffer->lock);
    gpumem_allocation changed = buffer->allocation;
    gpumem_status status = try_resize(buffer, &changed, bytes, stream);
    if (status == GPUMEM_OK)
        gm_buffer_take_over(buffer, &changed);
    pthread_mutex_unlock(&buffer->lock);
    return status;
}

gpumem_status gpumem_buffer_grow(gpumem_buffer *buffer, size_t bytes, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_grow");
    gpumem_resource *resource = buffer->resource;
    if (bytes <= buffer->allocation.bytes)
        return GPUMEM_OK;
    gpumem_status status = gm_buffer_not_in_slab(buffer, "grow");
    if (status != GPUMEM_OK)
        return status;
    if (!can_resize(buffer))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "a buffer of the %s resource cannot grow",
                       resource->kind);
    if (bytes > buffer->allocation.capacity)
        return gm_fail(GPUMEM_ERROR_OUT_OF_CAPACITY,
                       "cannot grow to %zu bytes: the buffer was allocated with a capacity of %zu",
                       bytes, buffer->allocation.capacity);
    gm_work_off(resource->device);
    struct gm_reclaim reclaim = gm_reclaim_for(resource, bytes - buffer->allocation.bytes);
    status = grow(buffer, bytes, stream);
    while (gm_reclaim_more(&reclaim, status))
        status = grow(buffer, bytes, stream);
    if (status != GPUMEM_OK)
        gm_meter_add(&resource->meter, GM_ALLOCATIONS_FAILED, 1);
    return status;
}

/* Copies the present names of the streams to `copy`: another thread may make a view meanwhile and
 * name more. */
static int copy_waits(gpumem_buffer *buffer, gpumem_buffer *copy) {
    pthread_mutex_lock(&buffer->lock);
    *copy = (gpumem_buffer){.resource = buffer->resource, .wait_count = buffer->wait_count};
    copy->waits = copy->wait_count > GM_INLINE_STREAMS
                      ? malloc(copy->wait_count * sizeof *copy->waits)
                      : copy->inline_waits;
    if (copy->waits)
        memcpy(copy->waits, buffer->waits, copy->wait_count * sizeof *copy->waits);
    pthread_mutex_unlock(&buffer->lock);
    return copy->waits ? 0 : -1;
}

static void end_copy(gpumem_buffer *copy) {
    for (size_t i = 0; i < copy->wait_count; i++)
        gm_wait_drop(copy->resource->device, &copy->waits[i]);
    if (copy->waits != copy->inline_waits)
        free(copy->waits);
}

gpumem_status gm_buffer_wait(gpumem_buffer *buffer, CUstream stream, const char *what) {
    gpumem_status status = stream ? gpumem_buffer_use(buffer, stream) : GPUMEM_OK;
    gpumem_buffer copy;
    struct gm_late late = {.device = buffer->resource->device};
    if (status == GPUMEM_OK && copy_waits(buffer, &copy) != 0)
        status = gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to wait for streams");
    if (status != GPUMEM_OK)
        return status;
    status = copy.wait_count ? gm_late_enter(&late) : GPUMEM_OK;
    if (status == GPUMEM_OK) {
        gm_waits_mark(&copy);
        if (!gm_waits_passed(&copy, 1))
            status = gm_fail(gm_waits_are_events(&copy) ? GPUMEM_ERROR_DRIVER : GPUMEM_ERROR_BUSY,
                             "cannot %s: %s", what, gm_waits_reason(&copy));
    }
    end_copy(&copy);
    gm_late_leave(&late);
    return status;
}

gpumem_status gm_buffer_not_held(const gpumem_buffer *buffer, const char *what) {
    unsigned others = atomic_load(&buffer->references) - 1;
    if (!others)
        return GPUMEM_OK;
    return gm_fail(GPUMEM_ERROR_BUSY, "cannot %s: %u hold%s or export%s keep the buffer", what,
                   others, others == 1 ? "" : "s", others == 1 ? "" : "s");
}

/* The buffer's lock is held. */
static gpumem_status resize_down(gpumem_buffer *buffer, gpumem_allocation *changed, size_t bytes,
                                 CUstream stream) {
    gpumem_status status = try_resize(buffer, changed, bytes, stream);
    if (status == GPUMEM_OK || changed->committed_bytes != buffer->allocation.committed_bytes)
        gm_buffer_take_over(buffer, changed);
    else
        buffer->layout++; /* a refused shrink may have unmapped and mapped again */
    return status;
}

gpumem_status gpumem_buffer_shrink(gpumem_buffer *buffer, size_t bytes, CUstream stream) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_shrink");
    GM_REQUIRE(bytes, "gpumem_buffer_shrink: 0 bytes");
    if (bytes >= buffer->allocation.bytes)
        return GPUMEM_OK;
    gpumem_status status = gm_buffer_not_in_slab(buffer, "shrink");
    if (status != GPUMEM_OK)
        return status;
    if (!can_resize(buffer))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "a buffer of the %s resource cannot shrink",
                       buffer->resource->kind);
    status = gm_buffer_not_held(buffer, "shrink");
    if (status == GPUMEM_OK)
        status = gm_buffer_wait(buffer, stream, "shrink");
    if (status != GPUMEM_OK)
        return status;
    gm_watches_tell_shrink(buffer, bytes); /* with no lock held */
    gpumem_allocation changed = buffer->allocation;
    /* A hold taken during the wait counts; one taken now waits for the lock. */
    pthread_mutex_lock(&buffer->lock);
    status = gm_buffer_not_held(buffer, "shrink");
    if (status == GPUMEM_OK)
        status = resize_down(buffer, &changed, bytes, stream);
    pthread_mutex_unlock(&buffer->lock);
    return status;
}

void gm_buffer_ref(gpumem_buffer *buffer) {
    struct gm_mapped *mapped = buffer->resource->mapped;
    pthread_mutex_lock(&buffer->lock);
    if (mapped)
        pthread_rwlock_rdlock(&mapped->lock);
    atomic_fetch_add(&buffer->references, 1);
    if (mapped)
        pthread_rwlock_unlock(&mapped->lock);
    pthread_mutex_unlock(&buffer->lock);
}

gpumem_status gpumem_buffer_hold(gpumem_buffer *buffer) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_hold");
    gm_buffer_ref(buffer);
    return GPUMEM_OK;
}

gpumem_status gpumem_buffer_release(gpumem_buffer *buffer) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_release");
    pthread_mutex_lock(&buffer->lock);
    int owners = !(buffer->freed & GM_FREED) && atomic_load(&buffer->references) == 1;
    pthread_mutex_unlock(&buffer->lock);
    GM_REQUIRE(!owners, "gpumem_buffer_release: there is no hold on the buffer");
    int entered = gm_closing_enter();
    gm_buffer_unref(buffer);
    gm_closing_leave(entered);
    return GPUMEM_OK;
}

/* ---- Getters --------------------------------------------------------------------------------- */

/* That nothing of the bytes was decommitted. A view's are looked for in the buffer that it shows,
 * whose size is not read: it may be growing in another thread. */
static gpumem_status check_holes(const gpumem_buffer *buffer, size_t offset, size_t bytes,
                                 const char *call) {
    size_t shift = offset;
    if (buffer->root) {
        shift += (size_t)(buffer->allocation.pointer - buffer->root->allocation.pointer);
        return check_holes(buffer->root, shift, bytes, call);
    }
    /* Of a wrapper's buffer, that inside. */
    const gpumem_buffer *inner = gm_buffer_innermost((gpumem_buffer *)(uintptr_t)buffer);
    const struct gm_mapped *mapped = inner ? inner->resource->mapped : NULL;
    if (mapped)
        shift += (size_t)(buffer->allocation.pointer - inner->allocation.pointer);
    GM_REQUIRE(!mapped || mapped->is_whole(&inner->allocation, shift, bytes),
               "%s: memory of the %zu bytes at offset %zu was decommitted", call, bytes, offset);
    return GPUMEM_OK;
}

gpumem_status gm_buffer_range(const gpumem_buffer *buffer, size_t offset, size_t bytes,
                              const char *call) {
    size_t size = buffer->allocation.bytes;
    GM_REQUIRE(offset <= size && bytes <= size - offset,
               "%s: %zu bytes at offset %zu do not fit in the %zu of the buffer", call, bytes,
               offset, size);
    return check_holes(buffer, offset, bytes, call);
}

CUdeviceptr gpumem_buffer_pointer(const gpumem_buffer *buffer) {
    return buffer->allocation.pointer;
}

void *gpumem_buffer_host_pointer(const gpumem_buffer *buffer) {
    return buffer->allocation.host_pointer;
}

size_t gpumem_buffer_size(const gpumem_buffer *buffer) {
    return buffer->allocation.bytes;
}

size_t gpumem_buffer_capacity(const gpumem_buffer *buffer) {
    return buffer->allocation.capacity;
}

size_t gpumem_buffer_committed(const gpumem_buffer *buffer) {
    return buffer->allocation.committed_bytes;
}

/* A limit over a wrapper counts as one too. */
static int is_apart(const gpumem_resource *resource) {
    while (resource && !resource->apart)
        resource = resource->upstream;
    return resource != NULL;
}

gpumem_buffer *gm_buffer_innermost(gpumem_buffer *buffer) {
    unsigned generation = buffer->generation;
    while (buffer && buffer->generation == generation && is_apart(buffer->resource))
        buffer = buffer->allocation.buffer;
    return buffer && buffer->generation == generation ? buffer : NULL;
}

size_t gm_buffer_chunks(const gpumem_buffer *buffer) {
    const struct gm_chunk *chunks;
    const gpumem_buffer *inner = gm_buffer_innermost((gpumem_buffer *)(uintptr_t)buffer);
    gm_chunks_fn fn = inner ? inner->resource->chunks : NULL;
    return fn ? fn(&inner->allocation, &chunks) : 1;
}

gpumem_device *gpumem_buffer_device(const gpumem_buffer *buffer) {
    return buffer->resource->device;
}

gpumem_resource *gpumem_buffer_resource(const gpumem_buffer *buffer) {
    gpumem_resource *resource = buffer->root ? buffer->root->resource : buffer->resource;
    int hidden = resource->foreign || gm_resource_is_imported(resource);
    if (resource->inside)
        resource = resource->upstream;
    return hidden ? NULL : resource;
}
