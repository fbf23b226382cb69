#include "memory/object/watch.h"

#include "base/cancel.h"
#include "base/fork.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"

#include <stdlib.h>

struct gpumem_watch {
    unsigned generation;
    gpumem_watch_fn fn;
    gpumem_add_fn added; /* of a watch of ranges */
    void *user;
    uint64_t number;            /* rises along the list */
    struct gpumem_watch **list; /* of a buffer or a resource; NULL when that has ended */
    gpumem_resource *resource;  /* or NULL */
    unsigned running;           /* calls of fn */
    int ended;                  /* whoever leaves fn last frees it */
    struct gpumem_watch *next;
};

/* Guards all watches. They change rarely, and without watches this is never taken. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static uint64_t last_number;

/* How many calls of watches' functions this thread is in, one within another. */
static _Thread_local unsigned depth;

/* ---- Making and ending; the lock is held ----------------------------------------------------- */

static void append(struct gpumem_watch *watch) {
    struct gpumem_watch **at = watch->list;
    while (*at)
        at = &(*at)->next;
    *at = watch;
    watch->number = ++last_number;
    if (watch->resource)
        atomic_fetch_add(&watch->resource->watched, 1);
}

static void take_out(struct gpumem_watch *watch) {
    if (!watch->list)
        return;
    for (struct gpumem_watch **at = watch->list; *at; at = &(*at)->next) {
        if (*at == watch) {
            *at = watch->next;
            break;
        }
    }
    if (watch->resource)
        atomic_fetch_sub(&watch->resource->watched, 1);
    watch->list = NULL;
    watch->resource = NULL;
}

static void empty(struct gpumem_watch **list) {
    while (*list)
        take_out(*list);
}

/* ---- Telling --------------------------------------------------------------------------------- */

static gpumem_status call_unlocked(struct gpumem_watch *watch, const gpumem_watch_event *event) {
    gpumem_status status = GPUMEM_OK;
    depth++;
    if (event->reason == GPUMEM_WATCH_ADD)
        status = watch->added(watch->user, event);
    else
        watch->fn(watch->user, event);
    depth--;
    return status;
}

/* With the lock, dropped meanwhile. */
static gpumem_status call(struct gpumem_watch *watch, const gpumem_watch_event *event) {
    watch->running++;
    pthread_mutex_unlock(&lock);
    gpumem_status status = call_unlocked(watch, event);
    pthread_mutex_lock(&lock);
    watch->running--;
    if (watch->ended && !watch->running)
        gm_bury(watch);
    pthread_cond_broadcast(&left);
    return status;
}

/* Watches of ranges hear of those of their own resource, and they alone of what comes. */
struct audience {
    const gpumem_resource *of_ranges; /* or NULL */
    int only_ranges;
    uint64_t last;
};

static int hears(const struct audience *audience, const struct gpumem_watch *watch) {
    return watch->added ? watch->resource == audience->of_ranges : !audience->only_ranges;
}

/* The present ones up to `last`, one after another, until one refuses, whose number *last is then:
 * the list may change while the lock is dropped. */
static gpumem_status tell_list(struct gpumem_watch *const *list, struct audience *audience,
                               const gpumem_watch_event *event) {
    gpumem_status status = GPUMEM_OK;
    uint64_t told = 0;
    while (status == GPUMEM_OK) {
        struct gpumem_watch *watch = *list;
        while (watch && (watch->number <= told || !hears(audience, watch)))
            watch = watch->next;
        if (!watch || watch->number > audience->last)
            break;
        told = watch->number;
        status = call(watch, event);
    }
    if (status != GPUMEM_OK)
        audience->last = told;
    return status;
}

static void tell_all(struct gpumem_watch *const *list, const gpumem_resource *of_ranges,
                     const gpumem_watch_event *event) {
    pthread_mutex_lock(&lock);
    (void)tell_list(list, &(struct audience){.of_ranges = of_ranges, .last = last_number}, event);
    pthread_mutex_unlock(&lock);
}

/* A user's wrapper has buffers of its upstream, which are announced separately; a limit over a
 * cache has blocks of it, which stay mapped. */
static gpumem_resource *wrapped(const gpumem_resource *resource) {
    gpumem_resource *upstream = resource->apart ? NULL : resource->upstream;
    return upstream && upstream->fast ? NULL : upstream;
}

/* Memory freed into a cache stays mapped: only its segments go away. */
static gpumem_resource *watched_resource(const gpumem_buffer *buffer) {
    return buffer->resource->fast ? NULL : buffer->resource;
}

static int is_resource_watched(const gpumem_resource *resource) {
    for (; resource; resource = wrapped(resource))
        if (atomic_load_explicit(&resource->watched, memory_order_acquire))
            return 1;
    return 0;
}

static int is_watched(const gpumem_buffer *buffer) {
    return buffer->freed & GM_WATCHED || is_resource_watched(watched_resource(buffer));
}

static size_t unit_of(const gpumem_resource *resource) {
    size_t unit = resource->properties.granularity;
    if (resource->imported && resource->chunks)
        unit = resource->device->granularity; /* the hidden resource itself has none */
    return unit ? unit : 1;
}

size_t gm_buffer_granularity(const gpumem_buffer *buffer) {
    return unit_of(buffer->resource);
}

/* The buffer's watches first, if there is a buffer. */
static void tell(gpumem_device *device, gpumem_buffer *buffer, gpumem_resource *resource,
                 const gpumem_resource *of_ranges, const gpumem_watch_event *event) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    struct gm_current current;
    int entered = gm_current_enter(&current, device) == GPUMEM_OK;
    if (buffer)
        tell_all(&buffer->watches, NULL, event);
    for (; resource; resource = wrapped(resource))
        tell_all(&resource->watches, of_ranges, event);
    if (entered)
        gm_current_leave(&current);
    gm_error_restore(&saved);
}

/* An event of whole granules. */
static gpumem_watch_event make_event(const gpumem_resource *resource,
                                     const gpumem_allocation *allocation, size_t offset,
                                     size_t bytes, gpumem_watch_reason reason) {
    const size_t unit = unit_of(resource);
    size_t begin = offset / unit * unit, end = (offset + bytes + unit - 1) / unit * unit;
    return (gpumem_watch_event){.size = sizeof(gpumem_watch_event),
                                .reason = reason,
                                .base = allocation->pointer + begin,
                                .bytes = end - begin};
}

void gm_watches_tell(gpumem_buffer *buffer, size_t offset, size_t bytes,
                     gpumem_watch_reason reason) {
    if (!bytes || !is_watched(buffer))
        return;
    gpumem_resource *resource = buffer->resource;
    gpumem_watch_event event = make_event(resource, &buffer->allocation, offset, bytes, reason);
    event.buffer = buffer;
    int ordered = resource->properties.stream_ordered && buffer->wait_count && !buffer->homeless;
    if (reason == GPUMEM_WATCH_FREE && ordered)
        event.stream = gm_buffer_home(buffer);
    tell(resource->device, buffer, watched_resource(buffer), NULL, &event);
}

/* Everything mapped; for memory not mapped in units, what the owner may use. */
static size_t mapped_of(const gpumem_resource *resource, const gpumem_allocation *allocation) {
    return resource->chunks ? allocation->committed_bytes : allocation->bytes;
}

static size_t mapped_bytes(const gpumem_buffer *buffer) {
    return mapped_of(buffer->resource, &buffer->allocation);
}

static gpumem_watch_event segment_event(const gpumem_resource *cache,
                                        const gpumem_allocation *segment,
                                        gpumem_watch_reason reason) {
    const gpumem_resource *upstream = cache->upstream;
    return make_event(upstream, segment, 0, mapped_of(upstream, segment), reason);
}

void gm_watches_tell_segment(gpumem_resource *cache, const gpumem_allocation *segment,
                             CUstream stream) {
    gpumem_resource *upstream = cache->upstream;
    if (!is_resource_watched(cache) && !is_resource_watched(upstream))
        return;
    gpumem_watch_event event = segment_event(cache, segment, GPUMEM_WATCH_FREE);
    if (upstream->properties.stream_ordered)
        event.stream = stream;
    tell(cache->device, NULL, cache, cache, &event);
    if (wrapped(cache) != upstream)
        tell(cache->device, NULL, upstream, NULL, &event);
}

/* ---- Ranges that come ------------------------------------------------------------------------ */

static gpumem_status fail_refused(const gpumem_resource *cache, gpumem_status status,
                                  const gpumem_watch_event *event) {
    return gm_fail(status, "a watch of the %s resource's ranges refused %zu bytes at 0x%llx",
                   cache->kind, event->bytes, (unsigned long long)event->base);
}

/* Those that had agreed when one refuses are told that it goes. */
static gpumem_status add(gpumem_resource *cache, const gpumem_watch_event *event) {
    gpumem_watch_event gone = *event;
    gone.reason = GPUMEM_WATCH_FREE;
    pthread_mutex_lock(&lock);
    struct audience audience = {.of_ranges = cache, .only_ranges = 1, .last = last_number};
    gpumem_status status = tell_list(&cache->watches, &audience, event);
    audience.last--;
    if (status != GPUMEM_OK)
        (void)tell_list(&cache->watches, &audience, &gone);
    pthread_mutex_unlock(&lock);
    return status;
}

gpumem_status gm_watches_add_segment(gpumem_resource *cache, const gpumem_allocation *segment) {
    if (!atomic_load_explicit(&cache->watched, memory_order_acquire))
        return GPUMEM_OK;
    const gpumem_watch_event event = segment_event(cache, segment, GPUMEM_WATCH_ADD);
    struct gm_error_record saved;
    struct gm_current current;
    gm_error_save(&saved);
    int entered = gm_current_enter(&current, cache->device) == GPUMEM_OK;
    gpumem_status status = add(cache, &event);
    if (entered)
        gm_current_leave(&current);
    gm_error_restore(&saved);
    return status == GPUMEM_OK ? GPUMEM_OK : fail_refused(cache, status, &event);
}

int gm_watch_is_inside(void) {
    return depth != 0;
}

void gm_watches_tell_end(gpumem_buffer *buffer) {
    if (buffer->told)
        return;
    gm_watches_tell(buffer, 0, mapped_bytes(buffer), GPUMEM_WATCH_FREE);
    if (!(buffer->freed & GM_WATCHED))
        return;
    pthread_mutex_lock(&lock);
    empty(&buffer->watches);
    pthread_mutex_unlock(&lock);
}

/* Where the unmapped part begins: after the last handle with a byte below `bytes`. */
static size_t first_dropped(const gpumem_buffer *buffer, size_t bytes) {
    const struct gm_chunk *chunks;
    gm_chunks_fn fn = buffer->resource->chunks;
    if (!fn) {
        size_t unit = gm_buffer_granularity(buffer);
        return (bytes + unit - 1) / unit * unit;
    }
    size_t end = 0, count = fn(&buffer->allocation, &chunks);
    for (size_t i = 0; i < count && end < bytes; i++)
        end += chunks[i].bytes;
    return end;
}

void gm_watches_tell_shrink(gpumem_buffer *buffer, size_t bytes) {
    if (!is_watched(buffer))
        return;
    size_t begin = first_dropped(buffer, bytes), end = mapped_bytes(buffer);
    if (begin < end)
        gm_watches_tell(buffer, begin, end - begin, GPUMEM_WATCH_SHRINK);
}

void gm_watches_leave(gpumem_resource *resource) {
    pthread_mutex_lock(&lock);
    empty(&resource->watches);
    pthread_mutex_unlock(&lock);
}

/* ---- The public door ------------------------------------------------------------------------- */

static gpumem_status make(gpumem_watch_fn fn, void *user, unsigned generation,
                          gpumem_watch **watch) {
    gpumem_watch *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a watch");
    made->generation = generation;
    made->fn = fn;
    made->user = user;
    *watch = made;
    return GPUMEM_OK;
}

gpumem_status gm_watch_make(gpumem_resource *cache, gpumem_add_fn added, gpumem_watch_fn gone,
                            void *user, gpumem_watch **watch) {
    gpumem_status status = make(gone, user, cache->generation, watch);
    if (status == GPUMEM_OK)
        (*watch)->added = added;
    return status;
}

void gm_watch_begin(gpumem_resource *cache, gpumem_watch *watch) {
    watch->list = &cache->watches;
    watch->resource = cache;
    pthread_mutex_lock(&lock);
    append(watch);
    pthread_mutex_unlock(&lock);
}

void gm_watch_drop(gpumem_watch *watch) {
    free(watch);
}

gpumem_status gm_watch_tell_present(gpumem_resource *cache, gpumem_watch *watch,
                                    const gpumem_allocation *segments, size_t count) {
    gpumem_status status = GPUMEM_OK;
    size_t told = 0;
    gpumem_watch_event event = {0};
    for (; told < count && status == GPUMEM_OK; told += status == GPUMEM_OK) {
        event = segment_event(cache, &segments[told], GPUMEM_WATCH_ADD);
        status = call_unlocked(watch, &event);
    }
    if (status == GPUMEM_OK)
        return GPUMEM_OK;
    while (told--) {
        const gpumem_watch_event gone = segment_event(cache, &segments[told], GPUMEM_WATCH_FREE);
        (void)call_unlocked(watch, &gone);
    }
    return fail_refused(cache, status, &event);
}

gpumem_status gpumem_buffer_watch(gpumem_buffer *buffer, gpumem_watch_fn fn, void *user,
                                  gpumem_watch **watch) {
    GM_UNCANCELLED;
    GM_CHECK(buffer, "gpumem_buffer_watch");
    GM_REQUIRE(fn && watch, "gpumem_buffer_watch: fn or watch is NULL");
    gpumem_watch *made = NULL;
    gpumem_status status = make(fn, user, buffer->generation, &made);
    if (status != GPUMEM_OK)
        return status;
    gpumem_buffer *root = buffer->root ? buffer->root : buffer;
    made->list = &root->watches;
    pthread_mutex_lock(&root->lock);
    root->freed |= GM_WATCHED;
    pthread_mutex_unlock(&root->lock);
    pthread_mutex_lock(&lock);
    append(made);
    pthread_mutex_unlock(&lock);
    *watch = made;
    return GPUMEM_OK;
}

gpumem_status gpumem_resource_watch(gpumem_resource *resource, gpumem_watch_fn fn, void *user,
                                    gpumem_watch **watch) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_resource_watch");
    GM_REQUIRE(fn && watch, "gpumem_resource_watch: fn or watch is NULL");
    gpumem_watch *made = NULL;
    gpumem_status status = make(fn, user, resource->generation, &made);
    if (status != GPUMEM_OK)
        return status;
    made->list = &resource->watches;
    made->resource = resource;
    pthread_mutex_lock(&lock);
    append(made);
    pthread_mutex_unlock(&lock);
    *watch = made;
    return GPUMEM_OK;
}

size_t gm_watches_of(const gpumem_buffer *buffer) {
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (const struct gpumem_watch *watch = buffer->watches; watch; watch = watch->next)
        count++;
    pthread_mutex_unlock(&lock);
    return count;
}

/* With the lock, dropped while it waits. Two functions may end one watch at the same time. */
static gpumem_status end(struct gpumem_watch *watch, const char *call) {
    gpumem_status status = gm_object_check(watch->generation, "watch", call);
    if (status != GPUMEM_OK)
        return status;
    take_out(watch);
    __atomic_store_n(&watch->generation, GM_DESTROYED, __ATOMIC_RELAXED);
    /* A thread that is itself in such a function waits for none: what it waits for could wait for
     * its own operation, or end its own watch. */
    while (watch->running && !depth)
        pthread_cond_wait(&left, &lock);
    watch->ended = 1;
    if (!watch->running)
        gm_bury(watch);
    return GPUMEM_OK;
}

gpumem_status gpumem_watch_destroy(gpumem_watch *watch) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_watch_destroy";
    if (!watch)
        return GPUMEM_OK;
    /* Before the lock, which a forked child may find taken. */
    gpumem_status status =
        gm_object_check(__atomic_load_n(&watch->generation, __ATOMIC_RELAXED), "watch", call);
    if (status != GPUMEM_OK)
        return status;
    pthread_mutex_lock(&lock);
    status = end(watch, call);
    pthread_mutex_unlock(&lock);
    return status;
}
