/* Changes of access while buffers live: for a range of one, or for all of a resource. */
#include "base/cancel.h"
#include "base/growing_array.h"
#include "base/log.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/object/buffer.h"
#include "memory/object/deferred_frees.h"
#include "memory/object/resource.h"
#include "memory/object/watch.h"
#include "memory/virtual/virtual_resource.h"
#include "memory/virtual/virtual_through.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- Rights, each combination once ----------------------------------------------------------- */

struct gm_access_list {
    struct gm_access_list *next;
    size_t count;
    CUmemAccessDesc entries[];
};

static int is_equal(const struct gm_access_list *list, const CUmemAccessDesc *entries,
                    size_t count) {
    if (list->count != count)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (list->entries[i].location.type != entries[i].location.type ||
            list->entries[i].location.id != entries[i].location.id ||
            list->entries[i].flags != entries[i].flags)
            return 0;
    return 1;
}

static struct gm_access_list *find_or_add(struct gm_virtual_resource *v,
                                          const CUmemAccessDesc *entries, size_t count) {
    struct gm_access_list *list = v->lists;
    while (list && !is_equal(list, entries, count))
        list = list->next;
    if (list)
        return list;
    list = malloc(sizeof *list + count * sizeof *entries);
    if (!list)
        return NULL;
    list->count = count;
    if (count)
        memcpy(list->entries, entries, count * sizeof *entries);
    list->next = v->lists;
    v->lists = list;
    return list;
}

gpumem_status gm_virtual_intern(struct gm_virtual_resource *v, const CUmemAccessDesc *entries,
                                size_t count, struct gm_access *access) {
    pthread_mutex_lock(&v->lock);
    const struct gm_access_list *list = find_or_add(v, entries, count);
    pthread_mutex_unlock(&v->lock);
    if (!list)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record who has access");
    *access = (struct gm_access){list->entries, list->count};
    return GPUMEM_OK;
}

void gm_virtual_free_lists(struct gm_virtual_resource *v) {
    struct gm_access_list *next;
    for (struct gm_access_list *list = v->lists; list; list = next) {
        next = list->next;
        free(list);
    }
}

/* ---- A change of rights ---------------------------------------------------------------------- */

/* Applies the change to `before`, into `entries`; locations without rights are not in the list. */
static size_t merge(struct gm_access before, const struct gm_access_change *change,
                    CUmemAccessDesc *entries) {
    size_t count = 0;
    for (size_t i = 0; i < before.count; i++) {
        entries[count] = before.entries[i];
        for (size_t k = 0; k < change->count; k++)
            if (before.entries[i].location.type == change->entries[k].location.type &&
                before.entries[i].location.id == change->entries[k].location.id)
                entries[count].flags = change->entries[k].flags;
        count += entries[count].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    }
    for (size_t k = 0; k < change->count; k++)
        if (change->entries[k].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
            gm_access_of(before, change->entries[k].location) == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            entries[count++] = change->entries[k];
    return count;
}

/* Needs no memory for a list that exists and is short, as it is with fewer than 32 devices. */
static gpumem_status changed(struct gm_virtual_resource *v, struct gm_access before,
                             const struct gm_access_change *change, struct gm_access *after) {
    CUmemAccessDesc few[34], *entries = few;
    if (before.count + change->count > sizeof few / sizeof few[0])
        entries = malloc((before.count + change->count) * sizeof *entries);
    if (!entries)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record who has access");
    gpumem_status status = gm_virtual_intern(v, entries, merge(before, change, entries), after);
    if (entries != few)
        free(entries);
    return status;
}

/* Creates the lists to be recorded, so that recording them cannot fail. */
static gpumem_status prepare(struct gm_virtual_resource *v, const struct gm_extent *extent,
                             size_t first, size_t count, const struct gm_access_change *change) {
    struct gm_access after;
    gpumem_status status = GPUMEM_OK;
    for (size_t i = first; i < first + count && status == GPUMEM_OK; i++)
        if (i == first ||
            gm_extent_access(extent, i).entries != gm_extent_access(extent, i - 1).entries)
            status = changed(v, gm_extent_access(extent, i), change, &after);
    return status;
}

static void note(struct gm_virtual_resource *v, struct gm_access *access,
                 const struct gm_access_change *change) {
    struct gm_access after = *access;
    struct gm_error_record saved;
    gm_error_save(&saved);
    /* It only finds what `prepare` made. */
    if (changed(v, *access, change, &after) == GPUMEM_OK)
        *access = after;
    gm_error_restore(&saved);
}

/* ---- What could not be undone ---------------------------------------------------------------- */

/* With the lock for reading or writing, after a change of these ranges failed. */
static void note_dirty(struct gm_virtual_resource *v, const struct gm_extent *extent) {
    if (!extent->dirty || atomic_exchange(&v->dirty, 1))
        return;
    gm_log(GPUMEM_LOG_WARNING,
           "the driver refused a change of access, and to undo it: some memory has the requested "
           "access until the resource is trimmed or its access is changed");
}

/* Every location that has rights in some list, once. Without `entries`, their maximum number.
 */
static size_t locations(const struct gm_virtual_resource *v, CUmemAccessDesc *entries) {
    size_t count = 0;
    for (const struct gm_access_list *list = v->lists; list; list = list->next) {
        for (size_t i = 0; i < list->count; i++) {
            const struct gm_access found = {entries, entries ? count : 0};
            if (gm_access_of(found, list->entries[i].location) != CU_MEM_ACCESS_FLAGS_PROT_NONE)
                continue;
            if (entries)
                entries[count] = list->entries[i];
            count++;
        }
    }
    return count;
}

/* With the lock for writing. */
static void mend(struct gm_virtual_resource *v) {
    size_t most = locations(v, NULL);
    CUmemAccessDesc *entries = calloc(2 * most + 1, sizeof *entries);
    if (!entries)
        return;
    const struct gm_access_change all = {entries, locations(v, entries), entries + most};
    int left = 0;
    for (struct gm_range *range = v->ranges; range; range = range->next)
        if (range->extent.dirty)
            left |= gm_extent_mend(&range->extent, &all) != GPUMEM_OK;
    atomic_store(&v->dirty, left);
    free(entries);
}

void gm_virtual_mend(struct gm_virtual_resource *v) {
    if (!atomic_load(&v->dirty))
        return;
    struct gm_error_record saved;
    gm_error_save(&saved);
    pthread_rwlock_wrlock(&v->mapped.lock);
    mend(v);
    pthread_rwlock_unlock(&v->mapped.lock);
    gm_error_restore(&saved);
}

/* ---- One buffer ------------------------------------------------------------------------------ */

/* The chunks [*first, *first + *count) that are exactly these bytes. Memory after the size, from
 * growth in advance, belongs to the end. */
static gpumem_status find_chunks(const gpumem_buffer *buffer, const struct gm_extent *extent,
                                 size_t offset, size_t bytes, size_t *first, size_t *count) {
    size_t at = 0, i = 0, end = offset + bytes;
    if (end == buffer->allocation.bytes)
        end = extent->committed;
    while (i < extent->count && at < offset)
        at += extent->chunks[i++].bytes;
    *first = i;
    if (at == offset) {
        while (i < extent->count && at < end)
            at += extent->chunks[i++].bytes;
        *count = i - *first;
        if (at == end)
            return GPUMEM_OK;
    }
    return gm_fail(GPUMEM_ERROR_INVALID_ARGUMENT,
                   "gpumem_buffer_set_access: access is set for whole chunks, and one ends at %zu, "
                   "inside or after the %zu bytes at offset %zu (gpumem_buffer_get_layout)",
                   at, bytes, offset);
}

/* With the buffer's lock and the resource's for reading. */
static gpumem_status change_chunks(struct gm_virtual_resource *v, struct gm_extent *extent,
                                   size_t first, size_t count,
                                   const struct gm_access_change *change) {
    gpumem_status status = gm_extent_part_access(extent);
    if (status == GPUMEM_OK)
        status = prepare(v, extent, first, count, change);
    if (status == GPUMEM_OK)
        status = gm_extent_change_access(extent, first, count, change);
    note_dirty(v, extent);
    for (size_t i = first; status == GPUMEM_OK && i < first + count; i++)
        note(v, &extent->given[i], change);
    return status;
}

static gpumem_status change_locked(struct gm_virtual_resource *v, gpumem_buffer *buffer,
                                   size_t first, size_t count,
                                   const struct gm_access_change *change, int takes) {
    struct gm_range *range = buffer->allocation.cookie;
    pthread_mutex_lock(&buffer->lock);
    pthread_rwlock_rdlock(&v->mapped.lock);
    gpumem_status status = takes ? gm_buffer_not_held(buffer, "take access away") : GPUMEM_OK;
    if (status == GPUMEM_OK)
        status = change_chunks(v, &range->extent, first, count, change);
    pthread_rwlock_unlock(&v->mapped.lock);
    pthread_mutex_unlock(&buffer->lock);
    return status;
}

static int loses(struct gm_virtual_resource *v, const struct gm_extent *extent, size_t first,
                 size_t count, const struct gm_access_change *change) {
    pthread_rwlock_rdlock(&v->mapped.lock);
    int loses_access = gm_extent_loses_access(extent, first, count, change);
    pthread_rwlock_unlock(&v->mapped.lock);
    return loses_access;
}

static void tell(gpumem_buffer *buffer, const struct gm_extent *extent, size_t first,
                 size_t count) {
    size_t offset = 0, bytes = 0;
    for (size_t i = 0; i < first; i++)
        offset += extent->chunks[i].bytes;
    for (size_t i = first; i < first + count; i++)
        bytes += extent->chunks[i].bytes;
    gm_watches_tell(buffer, offset, bytes, GPUMEM_WATCH_ACCESS);
}

static gpumem_status change_buffer(struct gm_virtual_resource *v, gpumem_buffer *buffer,
                                   size_t first, size_t count, CUmemAccessDesc entry,
                                   CUstream stream) {
    const struct gm_extent *extent = &((struct gm_range *)buffer->allocation.cookie)->extent;
    CUmemAccessDesc scratch;
    const struct gm_access_change change = {&entry, 1, &scratch};
    struct gm_current current;
    int takes = loses(v, extent, first, count, &change);
    gpumem_status status = GPUMEM_OK;
    if (takes)
        status = gm_buffer_not_held(buffer, "take access away");
    if (takes && status == GPUMEM_OK)
        status = gm_buffer_wait(buffer, stream, "take access away");
    if (takes && status == GPUMEM_OK)
        tell(buffer, extent, first, count);
    if (status == GPUMEM_OK)
        status = gm_current_enter(&current, v->device);
    if (status != GPUMEM_OK)
        return status;
    gm_virtual_mend(v);
    status = change_locked(v, buffer, first, count, &change, takes);
    gm_current_leave(&current);
    return status;
}

gpumem_status gm_virtual_check_range(const gpumem_buffer *buffer, size_t offset, size_t bytes,
                                     const char *call) {
    size_t size = buffer->allocation.bytes;
    GM_REQUIRE(bytes, "%s: 0 bytes", call);
    GM_REQUIRE(offset <= size && bytes <= size - offset,
               "%s: %zu bytes at offset %zu do not fit in the %zu of the buffer", call, bytes,
               offset, size);
    return GPUMEM_OK;
}

gpumem_status gm_virtual_missing(const gpumem_buffer *buffer, const char *call) {
    gpumem_status status = gm_buffer_not_in_slab(buffer, "have mappings of its own");
    if (status != GPUMEM_OK)
        return status;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                   "%s: a buffer of the %s resource has no mappings of its own; use a virtual "
                   "resource",
                   call, buffer->resource->kind);
}

gpumem_status gpumem_buffer_set_access(gpumem_buffer *buffer, size_t offset, size_t bytes,
                                       int ordinal, gpumem_access access, CUstream stream) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_set_access";
    GM_CHECK(buffer, call);
    GM_REQUIRE((unsigned)access <= GPUMEM_ACCESS_NONE, "%s: unknown access %d", call, (int)access);
    gpumem_buffer *inner = gm_through(buffer);
    if (inner)
        return gm_through_set_access(buffer, inner, offset, bytes, ordinal, access, stream);
    struct gm_virtual_resource *v = gm_virtual_behind(buffer->resource);
    if (!v)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "%s: memory of the %s resource has one access for all buffers, which "
                       "gpumem_resource_set_access sets",
                       call, buffer->resource->kind);
    CUmemAccessDesc entry = {.flags = gm_vmm_access_flags(access)};
    size_t first = 0, count = 0;
    gpumem_status status = gm_virtual_check_range(buffer, offset, bytes, call);
    if (status == GPUMEM_OK)
        status = gm_virtual_locate(v->device, ordinal, access != GPUMEM_ACCESS_NONE, call,
                                   &entry.location);
    const struct gm_range *range = buffer->allocation.cookie;
    if (status == GPUMEM_OK)
        status = find_chunks(buffer, &range->extent, offset, bytes, &first, &count);
    if (status == GPUMEM_OK)
        status = change_buffer(v, buffer, first, count, entry, stream);
    return status;
}

/* Of an import, which was received for one device, with one right. */
static gpumem_status access_of_import(const gpumem_buffer *buffer, size_t offset, int ordinal,
                                      const char *call, gpumem_access *access) {
    CUmemLocation location;
    gpumem_device *device = buffer->resource->device;
    gpumem_status status = gm_virtual_check_range(buffer, offset, 1, call);
    if (status == GPUMEM_OK)
        status = gm_virtual_locate(device, ordinal, 0, call, &location);
    if (status != GPUMEM_OK)
        return status;
    gpumem_access own = buffer->read_only ? GPUMEM_ACCESS_READ : GPUMEM_ACCESS_READ_WRITE;
    *access = ordinal == device->ordinal ? own : GPUMEM_ACCESS_NONE;
    return GPUMEM_OK;
}

gpumem_status gpumem_buffer_get_access(gpumem_buffer *buffer, size_t offset, int ordinal,
                                       gpumem_access *access) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_buffer_get_access";
    GM_CHECK(buffer, call);
    GM_REQUIRE(access, "%s: access is NULL", call);
    if (buffer->root) {
        gpumem_status status = gm_virtual_check_range(buffer, offset, 1, call);
        offset += (size_t)(buffer->allocation.pointer - buffer->root->allocation.pointer);
        return status == GPUMEM_OK ? gpumem_buffer_get_access(buffer->root, offset, ordinal, access)
                                   : status;
    }
    if (gm_resource_is_imported(buffer->resource))
        return access_of_import(buffer, offset, ordinal, call, access);
    gpumem_buffer *inner = gm_through(buffer);
    if (inner)
        return gm_through_get_access(buffer, inner, offset, ordinal, access);
    struct gm_virtual_resource *v = gm_virtual_behind(buffer->resource);
    CUmemLocation location;
    gpumem_status status = gm_virtual_check_range(buffer, offset, 1, call);
    if (status == GPUMEM_OK && !v)
        return gpumem_resource_get_access(buffer->resource, ordinal, access);
    if (status == GPUMEM_OK)
        status = gm_virtual_locate(v->device, ordinal, 0, call, &location);
    if (status != GPUMEM_OK)
        return status;
    const struct gm_extent *extent = &((struct gm_range *)buffer->allocation.cookie)->extent;
    size_t index = 0;
    pthread_rwlock_rdlock(&v->mapped.lock);
    gm_extent_lock_lists();
    for (size_t end = extent->chunks[0].bytes; end <= offset; end += extent->chunks[index].bytes)
        index++;
    *access = gm_vmm_access_of_flags(gm_access_of(gm_extent_access(extent, index), location));
    gm_extent_unlock_lists();
    pthread_rwlock_unlock(&v->mapped.lock);
    return GPUMEM_OK;
}

/* ---- All buffers ----------------------------------------------------------------------------- */

/* Points in the streams of all buffers that must pass. */
struct points {
    struct gm_wait *waits;
    size_t count, room;
    unsigned in_passing; /* times that a free seemed to be in progress */
};

/* How often a freed buffer with one reference left is assumed to be just being freed, before it is
 * assumed to be kept by a hold. */
#define MOST_IN_PASSING 10000

/* The result of examining all ranges. */
enum look {
    READY,
    AGAIN,      /* another thread is in the middle of something */
    STREAMS,    /* `points` must pass */
    FREES,      /* freed buffers are held back */
    CACHE,      /* so are cached ranges */
    IMPOSSIBLE, /* the error is set */
};

static int add_point(gpumem_device *device, struct points *points, const struct gm_wait *named) {
    if (!GM_RESERVE(points->waits, points->room, points->count + 1))
        return -1;
    /* The buffer's own mark belongs to its owner, and is not read here. */
    struct gm_wait wait = {
        .stream = named->stream, .id = named->id, .namer = named->namer, .task = named->task};
    gm_wait_is_shared(&wait);
    if (!gm_wait_mark(device, &wait))
        points->waits[points->count++] = wait;
    return 0;
}

static enum look impossible(const char *why) {
    (void)gm_fail(GPUMEM_ERROR_BUSY, "cannot take access away: %s", why);
    return IMPOSSIBLE;
}

static enum look mark_streams(gpumem_buffer *buffer, struct points *points) {
    for (size_t i = 0; i < buffer->wait_count; i++) {
        if (add_point(buffer->resource->device, points, &buffer->waits[i]) != 0) {
            (void)gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a stream");
            return IMPOSSIBLE;
        }
    }
    return READY;
}

/* A thread that frees the buffer takes its lock before its streams may be destroyed. */
static enum look look_at_buffer(gpumem_buffer *buffer, int is_new, struct points *points) {
    if (pthread_mutex_trylock(&buffer->lock) != 0)
        return AGAIN;
    enum look found = READY;
    unsigned references = atomic_load(&buffer->references);
    if (references == 0)
        found = FREES;
    else if (buffer->freed && references == 1 && points->in_passing++ < MOST_IN_PASSING)
        found = AGAIN;
    else if (buffer->freed)
        found = impossible("a freed buffer is still held or exported");
    else if (gm_buffer_not_held(buffer, "take access away") != GPUMEM_OK)
        found = IMPOSSIBLE;
    else if (is_new)
        found = mark_streams(buffer, points);
    pthread_mutex_unlock(&buffer->lock);
    return found;
}

static enum look look_at_range(struct gm_range *range, uint64_t seen, struct points *points) {
    switch (range->state) {
    case GM_RANGE_CACHED:
        return READY; /* asked of the cache */
    case GM_RANGE_ENDING:
        return FREES;
    default:
        break;
    }
    if (range->buffer)
        return look_at_buffer(range->buffer, range->handed > seen, points);
    return impossible("another resource hands out memory of this one; trim it when its buffers "
                      "are freed");
}

/* With the lock for writing. Marks the streams of ranges handed out after `seen`. */
static enum look look(struct gm_virtual_resource *v, const struct gm_access_change *change,
                      uint64_t seen, struct points *points) {
    int any = 0;
    for (struct gm_range *range = v->ranges; range; range = range->next) {
        if (!gm_extent_loses_access(&range->extent, 0, range->extent.count, change))
            continue;
        any = 1;
        enum look found = look_at_range(range, seen, points);
        if (found != READY)
            return found;
    }
    if (any && !gm_range_cache_is_idle(&v->cache))
        return CACHE;
    return points->count ? STREAMS : READY;
}

static gpumem_status wait_for_points(gpumem_device *device, struct points *points) {
    gpumem_status status = GPUMEM_OK;
    for (size_t i = 0; i < points->count; i++) {
        struct gm_wait *wait = &points->waits[i];
        if (status == GPUMEM_OK && !gm_wait_passed(device, wait, 1))
            status = gm_fail(wait->state == GM_WAIT_CAPTURING || wait->state == GM_WAIT_ELSEWHERE
                                 ? GPUMEM_ERROR_BUSY
                                 : GPUMEM_ERROR_DRIVER,
                             "cannot take access away: %s", gm_wait_reason(wait));
        gm_wait_drop(device, wait);
    }
    points->count = 0;
    return status;
}

/* Buffers in the device's list that wait for something that cannot be waited for stay there. */
static gpumem_status wait_for_freed(struct gm_virtual_resource *v) {
    gm_wait_for_frees(v->device, v->resource);
    if (!gm_has_frees(v->device, v->resource)) {
        sched_yield(); /* another thread is moving it there, or back */
        return GPUMEM_OK;
    }
    char reason[160];
    gm_deferred_reason(v->device, v->resource, reason, sizeof reason);
    return gm_fail(GPUMEM_ERROR_BUSY, "cannot take access away from a freed buffer: %s", reason);
}

/* With the lock for writing: the driver's part, all or nothing, and the lists to record. */
static gpumem_status change_ranges(struct gm_virtual_resource *v,
                                   const struct gm_access_change *change) {
    struct gm_access after;
    struct gm_range *range;
    gpumem_status status =
        changed(v, (struct gm_access){v->access, v->access_count}, change, &after);
    for (range = v->ranges; range && status == GPUMEM_OK; range = range->next)
        status = prepare(v, &range->extent, 0, range->extent.count, change);
    if (status != GPUMEM_OK)
        return status;
    for (range = v->ranges; range; range = range->next) {
        status = gm_extent_change_access(&range->extent, 0, range->extent.count, change);
        if (status != GPUMEM_OK)
            break;
    }
    for (struct gm_range *done = v->ranges; status != GPUMEM_OK && done != range; done = done->next)
        gm_extent_undo_access(&done->extent, 0, done->extent.count, change);
    for (struct gm_range *some = v->ranges; some; some = some->next)
        note_dirty(v, &some->extent);
    return status;
}

static gpumem_status apply(struct gm_virtual_resource *v, const struct gm_access_change *change) {
    gpumem_status status = change_ranges(v, change);
    if (status != GPUMEM_OK)
        return status;
    struct gm_access after = {v->access, v->access_count};
    note(v, &after, change);
    v->access = after.entries;
    v->access_count = after.count;
    for (struct gm_range *range = v->ranges; range; range = range->next) {
        struct gm_extent *extent = &range->extent;
        for (size_t i = 0; extent->given && i < extent->count; i++)
            note(v, &extent->given[i], change);
        extent->access = after.entries;
        extent->access_count = after.count;
    }
    return GPUMEM_OK;
}

/* One round: READY, with the change made or refused in *status; else a wait is over. */
static enum look try_change(struct gm_virtual_resource *v, const struct gm_access_change *change,
                            uint64_t *seen, struct points *points, gpumem_status *status) {
    struct points marked = *points;
    pthread_rwlock_wrlock(&v->mapped.lock);
    uint64_t now = atomic_load(&v->handed);
    enum look found = look(v, change, *seen, &marked);
    if (found == READY)
        *status = apply(v, change);
    pthread_rwlock_unlock(&v->mapped.lock);
    *points = marked;
    if (found == IMPOSSIBLE)
        *status = gpumem_last_error()->status;
    else if (found == STREAMS)
        *seen = now;
    return found;
}

static gpumem_status change_all(struct gm_virtual_resource *v,
                                const struct gm_access_change *change) {
    struct points points = {.waits = NULL};
    gpumem_status status = GPUMEM_OK;
    uint64_t seen = 0;
    enum look found = AGAIN;
    while (status == GPUMEM_OK && found != READY) {
        found = try_change(v, change, &seen, &points, &status);
        gpumem_status waited = status;
        if (found == STREAMS)
            waited = wait_for_points(v->device, &points);
        else if (found == FREES)
            waited = wait_for_freed(v);
        else if (found == CACHE)
            gm_range_cache_settle(&v->cache, &v->mapped);
        else if (found == AGAIN)
            sched_yield();
        for (size_t i = 0; i < points.count; i++) /* when examining found something else */
            gm_wait_drop(v->device, &points.waits[i]);
        points.count = 0;
        if (found != READY)
            status = waited;
    }
    free(points.waits);
    return status;
}

static gpumem_status change_resource(struct gm_virtual_resource *v, CUmemAccessDesc entry) {
    struct gm_current current;
    CUmemAccessDesc scratch;
    const struct gm_access_change change = {&entry, 1, &scratch};
    gm_work_off(v->device);
    gpumem_status status = gm_current_enter(&current, v->device);
    if (status == GPUMEM_OK) {
        gm_virtual_mend(v);
        status = change_all(v, &change);
        gm_current_leave(&current);
    }
    return status;
}

static gpumem_status set_access(gpumem_resource *resource, int ordinal, gpumem_access access) {
    struct gm_virtual_resource *v = gm_virtual_behind(resource);
    CUmemAccessDesc entry = {.flags = gm_vmm_access_flags(access)};
    gpumem_status status = gm_virtual_locate(v->device, ordinal, access != GPUMEM_ACCESS_NONE,
                                             "gpumem_resource_set_access", &entry.location);
    return status == GPUMEM_OK ? change_resource(v, entry) : status;
}

static gpumem_status get_access(gpumem_resource *resource, int ordinal, gpumem_access *access) {
    struct gm_virtual_resource *v = gm_virtual_behind(resource);
    CUmemLocation location;
    gpumem_status status =
        gm_virtual_locate(v->device, ordinal, 0, "gpumem_resource_get_access", &location);
    if (status != GPUMEM_OK)
        return status;
    pthread_rwlock_rdlock(&v->mapped.lock);
    const struct gm_access all = {v->access, v->access_count};
    *access = gm_vmm_access_of_flags(gm_access_of(all, location));
    pthread_rwlock_unlock(&v->mapped.lock);
    return GPUMEM_OK;
}

const struct gm_access_ops gm_virtual_access = {set_access, get_access};
