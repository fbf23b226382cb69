#include "memory/object/deferred_frees.h"

#include "base/error.h"
#include "memory/core/current_context.h"
#include "memory/object/buffer.h"
#include "memory/object/closing.h"

#include <stdio.h>
#include <time.h>

/* ---- The list; the device's lock is held ----------------------------------------------------- */

static atomic_size_t *count_of(gpumem_device *device, const gpumem_buffer *buffer) {
    return buffer->queued ? &device->queued_count : &device->deferred_count;
}

static void append(gpumem_device *device, gpumem_buffer *buffer) {
    buffer->next = NULL;
    buffer->previous = device->deferred_last;
    buffer->number = ++device->deferred_number;
    if (buffer->previous)
        buffer->previous->next = buffer;
    else
        device->deferred = buffer;
    device->deferred_last = buffer;
    atomic_fetch_add(count_of(device, buffer), 1);
}

static void take_out(gpumem_device *device, gpumem_buffer *buffer) {
    if (buffer->next)
        buffer->next->previous = buffer->previous;
    else
        device->deferred_last = buffer->previous;
    if (buffer->previous)
        buffer->previous->next = buffer->next;
    else
        device->deferred = buffer->next;
    atomic_fetch_sub(count_of(device, buffer), 1);
}

/* Includes the library's wrappers around it. What the driver has taken keeps no resource. */
static int is_of(const gpumem_buffer *buffer, const gpumem_resource *resource) {
    const gpumem_resource *of = buffer->resource;
    if (resource && buffer->queued)
        return 0;
    while (of && of != resource && !of->apart)
        of = of->upstream;
    return !resource || of == resource;
}

/* ---- One buffer ------------------------------------------------------------------------------ */

static void count(const gpumem_buffer *buffer) {
    struct gm_meter *meter = &buffer->resource->meter;
    gm_meter_add(meter, GM_DEFERRED, buffer->queued ? buffer->frees : 1);
    gm_meter_add(meter, GM_DEFERRED_BYTES, buffer->allocation.committed_bytes);
    if (buffer->queued) {
        atomic_fetch_add(&buffer->resource->queued_frees, buffer->frees);
        atomic_fetch_add(&buffer->resource->queued_bytes, buffer->allocation.committed_bytes);
    }
}

static void uncount(const gpumem_buffer *buffer) {
    struct gm_meter *meter = &buffer->resource->meter;
    gm_meter_subtract(meter, GM_DEFERRED, buffer->queued ? buffer->frees : 1);
    gm_meter_subtract(meter, GM_DEFERRED_BYTES, buffer->allocation.committed_bytes);
    if (buffer->queued) {
        atomic_fetch_sub(&buffer->resource->queued_frees, buffer->frees);
        atomic_fetch_sub(&buffer->resource->queued_bytes, buffer->allocation.committed_bytes);
    }
}

void gm_defer(gpumem_buffer *buffer) {
    gpumem_device *device = buffer->resource->device;
    count(buffer);
    pthread_mutex_lock(&device->lock);
    append(device, buffer);
    pthread_mutex_unlock(&device->lock);
}

/* Memory that no stream uses any more is freed in the order of a stream of ours: the streams that
 * used it may be gone. */
static void take_back(gpumem_device *device, gpumem_buffer *buffer) {
    gpumem_resource *resource = buffer->resource;
    uncount(buffer);
    if (buffer->queued) { /* its pool has the memory */
        gm_meter_gave_back(&resource->meter, buffer->allocation.committed_bytes);
        gm_buffer_discard(buffer);
        return;
    }
    if (resource->mapped) { /* this value says that no stream uses it */
        gm_buffer_finish(buffer, GPUMEM_STREAM_NONE);
        return;
    }
    CUstream helper = resource->properties.stream_ordered ? gm_take_helper(device) : NULL;
    gm_buffer_finish(buffer, helper ? helper : gm_buffer_home(buffer));
    if (helper)
        gm_give_helper(device, helper);
}

/* A pool gives unused memory to the system when somebody waits for work, not when he asks. And the
 * stream of a queued free may be gone: a mark that turns out to mark nothing is not repeated. */
static int has_passed(gpumem_device *device, gpumem_buffer *buffer, int block) {
    if (buffer->queued && buffer->waits[0].state != GM_WAIT_EVENT)
        return 1;
    if (buffer->queued && !block)
        block = gm_wait_is_over(device, &buffer->waits[0]);
    return gm_waits_passed(buffer, block);
}

/* With the lock held, dropped meanwhile. 1 if the marks of the claimed buffer have passed: it is
 * then out of the list, and its resource waits for end_taken. */
static int look_at(gpumem_device *device, gpumem_buffer *buffer, int block) {
    pthread_mutex_unlock(&device->lock);
    int passed = has_passed(device, buffer, block);
    pthread_mutex_lock(&device->lock);
    if (passed) {
        take_out(device, buffer);
        buffer->resource->ending++;
    } else {
        buffer->claimed = 0;
    }
    pthread_cond_broadcast(&device->worked);
    return passed;
}

/* The same for the buffers that look_at took out, linked by `next`. */
static size_t end_taken(gpumem_device *device, gpumem_buffer *taken) {
    size_t count = 0;
    for (gpumem_buffer *next; taken; taken = next, count++) {
        gpumem_resource *resource = taken->resource;
        next = taken->next;
        pthread_mutex_unlock(&device->lock);
        take_back(device, taken);
        pthread_mutex_lock(&device->lock);
        resource->ending--; /* until here the resource cannot be destroyed */
    }
    if (count)
        pthread_cond_broadcast(&device->worked);
    return count;
}

static size_t wait_for_this(gpumem_device *device, gpumem_buffer *buffer) {
    buffer->claimed = 1;
    if (!look_at(device, buffer, 1))
        return 0;
    buffer->next = NULL;
    return end_taken(device, buffer);
}

/* ---- Going through the list ------------------------------------------------------------------ */

/* What to look at: frees that the library holds back, and marks of those that the driver has. */
enum which { HELD = 1, QUEUED = 2 };

static gpumem_buffer *unclaimed(gpumem_buffer *buffer, int which) {
    while (buffer && (buffer->claimed || !(which & (buffer->queued ? QUEUED : HELD))))
        buffer = buffer->next;
    return buffer;
}

static size_t work_off(gpumem_device *device, int which) {
    gpumem_buffer *taken = NULL, *next;
    pthread_mutex_lock(&device->lock);
    uint64_t last = device->deferred_number;
    for (gpumem_buffer *buffer = unclaimed(device->deferred, which);
         buffer && buffer->number <= last; buffer = unclaimed(next, which)) {
        buffer->claimed = 1;
        int passed = look_at(device, buffer, 0);
        next = buffer->next;
        if (passed) {
            buffer->next = taken;
            taken = buffer;
        }
    }
    size_t count = end_taken(device, taken);
    pthread_mutex_unlock(&device->lock);
    return count;
}

/* Common parts of the drains: the caller's error record is kept, the context is current. */
struct guard {
    struct gm_error_record saved;
    struct gm_current current;
    int entered;
};

static int guard_enter(struct guard *guard, gpumem_device *device) {
    gm_error_save(&guard->saved);
    guard->entered = gm_current_enter(&guard->current, device) == GPUMEM_OK;
    return guard->entered;
}

static void guard_leave(struct guard *guard) {
    if (guard->entered)
        gm_current_leave(&guard->current);
    gm_error_restore(&guard->saved);
}

static size_t look_through(gpumem_device *device, int which) {
    size_t count = 0;
    if (atomic_flag_test_and_set(&device->polled))
        return 0;
    int entered = gm_closing_enter();
    struct guard guard;
    if (guard_enter(&guard, device))
        count = work_off(device, which);
    guard_leave(&guard);
    atomic_flag_clear(&device->polled);
    gm_closing_leave(entered);
    return count;
}

static int is_empty(const atomic_size_t *count) {
    return atomic_load_explicit(count, memory_order_relaxed) == 0;
}

size_t gm_work_off(gpumem_device *device) {
    return is_empty(&device->deferred_count) ? 0 : look_through(device, HELD);
}

size_t gm_work_off_queued(gpumem_device *device) {
    return is_empty(&device->queued_count) ? 0 : look_through(device, QUEUED);
}

size_t gm_work_off_all(gpumem_device *device) {
    int none = is_empty(&device->deferred_count) && is_empty(&device->queued_count);
    return none ? 0 : look_through(device, HELD | QUEUED);
}

/* ---- Waiting for a resource ------------------------------------------------------------------ */

/* The first not yet tried, whether or not claimed by others. */
static gpumem_buffer *next_of(gpumem_device *device, const gpumem_resource *resource,
                              uint64_t tried, uint64_t last) {
    gpumem_buffer *buffer = device->deferred;
    while (buffer && (buffer->number <= tried || !is_of(buffer, resource)))
        buffer = buffer->next;
    return buffer && buffer->number <= last ? buffer : NULL;
}

static void wait_for_frees(gpumem_device *device, const gpumem_resource *resource) {
    pthread_mutex_lock(&device->lock);
    uint64_t tried = 0, last = resource ? UINT64_MAX : device->deferred_number;
    gpumem_buffer *buffer;
    while ((buffer = next_of(device, resource, tried, last)) || (resource && resource->ending)) {
        if (!buffer || buffer->claimed) {
            pthread_cond_wait(&device->worked, &device->lock);
            continue;
        }
        tried = buffer->number;
        wait_for_this(device, buffer);
    }
    pthread_mutex_unlock(&device->lock);
}

int gm_has_frees(gpumem_device *device, const gpumem_resource *resource) {
    pthread_mutex_lock(&device->lock);
    int any = next_of(device, resource, 0, UINT64_MAX) || (resource && resource->ending);
    pthread_mutex_unlock(&device->lock);
    return any;
}

void gm_wait_for_frees(gpumem_device *device, const gpumem_resource *resource) {
    struct guard guard;
    if (!gm_has_frees(device, resource))
        return;
    if (guard_enter(&guard, device))
        wait_for_frees(device, resource);
    guard_leave(&guard);
}

/* ---- Marks of queued frees ------------------------------------------------------------------- */

static gpumem_buffer *queued_of(gpumem_device *device, const gpumem_resource *resource) {
    gpumem_buffer *buffer = device->deferred;
    while (buffer && (!buffer->queued || (resource && buffer->resource != resource)))
        buffer = buffer->next;
    return buffer;
}

int gm_has_queued(gpumem_resource *resource) {
    pthread_mutex_lock(&resource->device->lock);
    int any = queued_of(resource->device, resource) || resource->ending;
    pthread_mutex_unlock(&resource->device->lock);
    return any;
}

/* With the lock held. */
static void forget(gpumem_device *device, gpumem_buffer *buffer) {
    take_out(device, buffer);
    pthread_mutex_unlock(&device->lock);
    uncount(buffer);
    gm_wait_drop(device, &buffer->waits[0]);
    gm_buffer_discard(buffer);
    pthread_mutex_lock(&device->lock);
}

void gm_move_queued(gpumem_resource *from, gpumem_resource *to) {
    gpumem_device *device = from->device;
    gpumem_buffer *buffer;
    pthread_mutex_lock(&device->lock);
    while ((buffer = queued_of(device, from)) || from->ending) {
        if (!buffer || buffer->claimed) {
            pthread_cond_wait(&device->worked, &device->lock);
        } else if (!to) {
            forget(device, buffer);
        } else {
            uncount(buffer);
            buffer->resource = to;
            count(buffer);
        }
    }
    pthread_mutex_unlock(&device->lock);
}

void gm_drop_queued(gpumem_device *device) {
    gpumem_buffer *buffer;
    pthread_mutex_lock(&device->lock);
    while ((buffer = queued_of(device, NULL)))
        forget(device, buffer);
    pthread_mutex_unlock(&device->lock);
}

void gm_deferred_reason(gpumem_device *device, const gpumem_resource *resource, char *text,
                        size_t size) {
    pthread_mutex_lock(&device->lock);
    const gpumem_buffer *buffer = next_of(device, resource, 0, UINT64_MAX);
    /* The marks of one that is being examined change. */
    snprintf(text, size, "%s",
             buffer && !buffer->claimed ? gm_waits_reason(buffer) : "work on it is not done yet");
    pthread_mutex_unlock(&device->lock);
}

/* ---- Waiting until something came back ------------------------------------------------------- */

struct wanted {
    gm_wanted_fn fn;
    const void *data;
};

/* Whether waiting for the buffer is useful. For a claimed one only its thread knows. */
static int is_wanted(const gpumem_buffer *buffer, const struct wanted *wanted) {
    return wanted->fn(buffer, wanted->data) && (buffer->claimed || gm_waits_are_events(buffer));
}

/* With the lock held. Their number, and one of them that is not claimed. */
static size_t find_wanted(gpumem_device *device, const struct wanted *wanted,
                          gpumem_buffer **free_one) {
    size_t count = 0;
    *free_one = NULL;
    for (gpumem_buffer *buffer = device->deferred; buffer; buffer = buffer->next) {
        if (!is_wanted(buffer, wanted))
            continue;
        count++;
        if (!buffer->claimed)
            *free_one = buffer;
    }
    return count;
}

uint64_t gm_deferred_bytes(gpumem_device *device, gm_wanted_fn fn, const void *data) {
    const struct wanted wanted = {fn, data};
    uint64_t bytes = 0;
    pthread_mutex_lock(&device->lock);
    for (const gpumem_buffer *buffer = device->deferred; buffer; buffer = buffer->next)
        if (is_wanted(buffer, &wanted))
            bytes += buffer->allocation.committed_bytes;
    pthread_mutex_unlock(&device->lock);
    return bytes;
}

/* The driver cannot wait for the first of several events, and blocking on one of them would wait
 * for work that may never end while another's is done. So they are queried in turn, at growing
 * intervals: from 20 us, the cost of a hand-off, to 1 ms, soon enough for a thread that has run out
 * of memory. */
static void rest(unsigned round) {
    long nanoseconds = round < 6 ? 20000L << round : 1000000L;
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

static size_t wait_for_one(gpumem_device *device, const struct wanted *wanted) {
    for (unsigned round = 0;; round++) {
        gpumem_buffer *only;
        size_t count = work_off(device, HELD | QUEUED);
        pthread_mutex_lock(&device->lock);
        size_t left = find_wanted(device, wanted, &only);
        if (count == 0 && left == 1 && only) {
            count = wait_for_this(device, only);
            left = 0;
        }
        pthread_mutex_unlock(&device->lock);
        if (count || !left)
            return count;
        rest(round);
    }
}

size_t gm_wait_for_one(gpumem_device *device, gm_wanted_fn fn, const void *data) {
    const struct wanted wanted = {fn, data};
    size_t count = 0;
    struct guard guard;
    if (guard_enter(&guard, device))
        count = wait_for_one(device, &wanted);
    guard_leave(&guard);
    return count;
}
