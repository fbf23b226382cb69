#include "memory/object/resource.h"

#include "base/cancel.h"
#include "base/fork.h"
#include "base/options.h"
#include "memory/core/current_context.h"
#include "memory/core/describe.h"
#include "memory/core/driver_error.h"
#include "memory/object/by_pointer.h"
#include "memory/object/closing.h"
#include "memory/object/deferred_frees.h"
#include "memory/object/queued_frees.h"
#include "memory/object/reclaim.h"
#include "memory/object/thread_counts.h"
#include "memory/object/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpumem_resource *make(gpumem_device *device, const gpumem_resource_ops *ops, void *user,
                             gpumem_resource *upstream) {
    static atomic_uint_fast64_t serials = 1;
    gpumem_resource *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->serial = atomic_fetch_add(&serials, 1);
    made->generation = device->generation;
    made->device = device;
    made->upstream = upstream;
    made->ops = *ops;
    made->user = user;
    snprintf(made->kind, sizeof made->kind, "%s", ops->kind ? ops->kind : "user");
    made->apart = ops->upstream != NULL;
    if (!made->apart) {
        made->meter.parent = upstream ? &upstream->meter : &device->meter;
        made->chunks = upstream ? upstream->chunks : NULL;
        made->own_stream = upstream && upstream->own_stream;
        made->mapped = upstream ? upstream->mapped : NULL;
        made->engine = upstream ? upstream->engine : NULL;
    }
    made->properties = (gpumem_resource_properties){
        .size = sizeof made->properties, .handle_type = GPUMEM_HANDLE_NONE, .granularity = 1};
    ops->properties(user, &made->properties);
    made->properties.kind = made->kind;
    return made;
}

/* From here on other threads see it. */
static void list(gpumem_resource *made) {
    gpumem_device *device = made->device;
    pthread_mutex_lock(&device->lock);
    made->next = device->resources;
    device->resources = made;
    if (made->upstream)
        made->upstream->wrappers++;
    pthread_mutex_unlock(&device->lock);
}

static gpumem_status make_listed(gpumem_device *device, const gpumem_resource_ops *ops, void *user,
                                 gpumem_resource *upstream, int users, gpumem_resource **resource) {
    gpumem_resource *made = make(device, ops, user, upstream);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    made->users = users;
    /* Before it is listed: a snapshot reads the properties at any time. */
    if (users && made->properties.exportable && !(upstream && upstream->properties.exportable)) {
        made->properties.exportable = 0;
        snprintf(made->properties.note, sizeof made->properties.note,
                 "exports only pass through to an `upstream` that can be exported");
    }
    list(made);
    *resource = made;
    return GPUMEM_OK;
}

gpumem_status gm_resource_make(gpumem_device *device, const gpumem_resource_ops *ops, void *user,
                               gpumem_resource *upstream, gpumem_resource **resource) {
    return make_listed(device, ops, user, upstream, 0, resource);
}

gpumem_status gm_resource_make_mapped(gpumem_device *device, const gpumem_resource_ops *ops,
                                      void *user, struct gm_mapped *mapped, gm_chunks_fn chunks,
                                      gpumem_resource **resource) {
    gpumem_resource *made = make(device, ops, user, NULL);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    made->chunks = chunks;
    made->mapped = mapped;
    mapped->resource = *resource = made; /* also by the caller, before others can find it */
    list(made);
    return GPUMEM_OK;
}

gpumem_status gm_resource_make_hidden(gpumem_device *device, const gpumem_resource_ops *ops,
                                      void *user, gpumem_resource **resource) {
    *resource = make(device, ops, user, NULL);
    if (!*resource)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    return GPUMEM_OK;
}

gpumem_status gm_resource_hidden(gpumem_device *device, enum gm_hidden which,
                                 const struct gm_hidden_kind *kind, gpumem_resource **resource) {
    gpumem_resource *made = NULL;
    pthread_mutex_lock(&device->lock);
    gpumem_status status = GPUMEM_OK;
    if (!device->hidden[which])
        status = gm_resource_make_hidden(device, kind->ops, device, &made);
    if (status == GPUMEM_OK && made) {
        made->imported = 1;
        made->foreign = which != GM_HIDDEN_IMPORTED_POOL && which != GM_HIDDEN_IMPORTED;
        made->chunks = kind->chunks;
        gm_describe_set(made, kind->describe);
        device->hidden[which] = made;
    }
    *resource = device->hidden[which];
    pthread_mutex_unlock(&device->lock);
    return status;
}

int gm_resource_is_imported(const gpumem_resource *resource) {
    const gpumem_device *device = resource->device;
    return resource == device->hidden[GM_HIDDEN_IMPORTED] ||
           resource == device->hidden[GM_HIDDEN_IMPORTED_POOL];
}

static void unlink_resource(gpumem_resource *resource) {
    gpumem_device *device = resource->device;
    pthread_mutex_lock(&device->lock);
    while (resource->visitors)
        pthread_cond_wait(&device->left, &device->lock);
    for (gpumem_resource **at = &device->resources; *at; at = &(*at)->next) {
        if (*at == resource) {
            *at = resource->next;
            break;
        }
    }
    if (resource->upstream)
        resource->upstream->wrappers--;
    pthread_mutex_unlock(&device->lock);
}

void gm_resource_set_slabs(gpumem_resource *resource, gpumem_resource *slabs, size_t most) {
    slabs->inside = 1;
    slabs->meter.pieces = 0; /* its buffers are the outer resource's */
    resource->slab_most = most;
    atomic_store(&resource->slabs, slabs);
}

void gm_resource_discard(gpumem_resource *resource) {
    unlink_resource(resource); /* first: who visits it looks at its slabs */
    gpumem_resource *slabs = atomic_load(&resource->slabs);
    if (slabs)
        gm_resource_discard(slabs);
    if (resource->ops.destroy) {
        struct gm_current current;
        /* A poisoned device refuses; the resource counts what is lost. */
        int entered = gm_current_enter(&current, resource->device) == GPUMEM_OK;
        gm_queued_leave(resource);
        resource->ops.destroy(resource->user);
        if (entered)
            gm_current_leave(&current);
    }
    gm_pointers_discard(resource);
    gm_tally_end(&resource->tally);
    gm_bury(resource);
}

gpumem_status gpumem_resource_create(gpumem_device *device, const gpumem_resource_ops *given,
                                     void *user, gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_resource_ops ops;
    GM_CHECK(device, "gpumem_resource_create");
    GM_REQUIRE(given && resource, "gpumem_resource_create: ops or resource is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_resource_ops, given, &ops);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(ops.allocate && ops.deallocate && ops.properties,
               "gpumem_resource_create: allocate, deallocate and properties are required");
    gpumem_resource *upstream = ops.upstream, *made = NULL;
    if (upstream) {
        GM_CHECK(upstream, "gpumem_resource_create");
        GM_REQUIRE(upstream->device == device,
                   "gpumem_resource_create: upstream is a resource of another device");
    }
    status = make_listed(device, &ops, user, upstream, 1, &made);
    if (status == GPUMEM_OK)
        *resource = made;
    return status;
}

gpumem_status gpumem_set_last_error(gpumem_status status, const char *message) {
    return gm_fail(status, "%s", message ? message : "");
}

/* A buffer may be allocated by one path and freed by the other. */
size_t gm_resource_owned(gpumem_resource *resource) {
    return atomic_load(&resource->owned) + (size_t)gm_tally_tell(&resource->tally);
}

size_t gm_resource_live(gpumem_resource *resource) {
    return atomic_load(&resource->live) + (size_t)gm_tally_tell(&resource->tally);
}

static size_t count_owned(gpumem_resource *resource) {
    gpumem_resource *slabs = atomic_load(&resource->slabs);
    if (!resource->fast)
        return gm_resource_owned(resource) + (slabs ? count_owned(slabs) : 0);
    resource->fast->report(resource);
    gpumem_stats stats;
    gm_meter_read(&resource->meter, &stats);
    return (size_t)stats.allocations;
}

static gpumem_status may_end(gpumem_resource *resource) {
    struct gm_current current;
    gpumem_resource *slabs = atomic_load(&resource->slabs);
    if (slabs)
        return may_end(slabs);
    /* A poisoned device refuses, and keeps nothing in use. */
    if (!resource->fast || gm_current_enter(&current, resource->device) != GPUMEM_OK)
        return GPUMEM_OK;
    gpumem_status status = resource->fast->may_end(resource);
    gm_current_leave(&current);
    return status;
}

/* With the lock of the device held. Not counting its own slabs. */
static size_t count_wrappers(gpumem_resource *resource) {
    return resource->wrappers - (atomic_load(&resource->slabs) != NULL);
}

/* With the context current. */
static int is_idle(gpumem_resource *resource) {
    gpumem_resource *slabs = atomic_load(&resource->slabs);
    const struct gm_mapped *mapped = resource->mapped;
    if (slabs && !is_idle(slabs))
        return 0;
    if (resource->fast && !resource->fast->is_idle(resource))
        return 0;
    return !mapped || mapped->resource != resource || mapped->is_idle(resource->user);
}

int gm_resource_is_unused(gpumem_resource *resource) {
    gpumem_device *device = resource->device;
    struct gm_current current;
    pthread_mutex_lock(&device->lock);
    int used = count_wrappers(resource) || resource->ending || resource->visitors;
    pthread_mutex_unlock(&device->lock);
    if (used || count_owned(resource) || gm_resource_live(resource))
        return 0;
    /* A poisoned device refuses, and keeps nothing in use. */
    if (gm_current_enter(&current, device) != GPUMEM_OK)
        return 1;
    int idle = is_idle(resource);
    gm_current_leave(&current);
    return idle;
}

static gpumem_status destroy(gpumem_resource *resource) {
    gpumem_device *device = resource->device;
    GM_REQUIRE(!atomic_load(&resource->closed),
               "gpumem_resource_destroy: the %s resource was closed (gpumem_resource_close_later)",
               resource->kind);
    pthread_mutex_lock(&device->lock);
    size_t wrappers = count_wrappers(resource);
    pthread_mutex_unlock(&device->lock);
    if (wrappers)
        return gm_fail(GPUMEM_ERROR_BUSY, "the %s resource is wrapped by %zu other%s",
                       resource->kind, wrappers, wrappers == 1 ? "" : "s");
    size_t owned = count_owned(resource);
    if (owned)
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "the %s resource still has %zu buffer%s (not freed, held or exported)",
                       resource->kind, owned, owned == 1 ? "" : "s");
    gm_wait_for_frees(device, resource);
    size_t live = gm_resource_live(resource);
    if (live) {
        char reason[160];
        gm_deferred_reason(device, resource, reason, sizeof reason);
        return gm_fail(GPUMEM_ERROR_BUSY,
                       "%zu freed buffer%s of the %s resource cannot be released: %s", live,
                       live == 1 ? "" : "s", resource->kind, reason);
    }
    gpumem_status status = may_end(resource);
    if (status != GPUMEM_OK)
        return status;
    gm_watches_leave(resource);
    gm_resource_discard(resource);
    return GPUMEM_OK;
}

gpumem_status gpumem_resource_destroy(gpumem_resource *resource) {
    GM_UNCANCELLED;
    if (!resource)
        return GPUMEM_OK;
    GM_CHECK(resource, "gpumem_resource_destroy");
    int entered = gm_closing_enter(); /* its upstream may have been closed */
    gpumem_status status = destroy(resource);
    gm_closing_leave(entered);
    return status;
}

void gm_resource_trim(gpumem_resource *resource, size_t keep_bytes) {
    gpumem_resource *slabs = atomic_load(&resource->slabs);
    if (slabs)
        slabs->ops.trim(slabs->user, keep_bytes);
    if (resource->ops.trim)
        resource->ops.trim(resource->user, keep_bytes);
}

gpumem_status gpumem_resource_trim(gpumem_resource *resource, size_t keep_bytes) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_resource_trim");
    gm_work_off(resource->device);
    if (!resource->ops.trim && !atomic_load(&resource->slabs))
        return GPUMEM_OK;
    struct gm_current current;
    gpumem_status status = gm_current_enter(&current, resource->device);
    if (status != GPUMEM_OK)
        return status;
    if (resource->trim_on_request)
        status = resource->trim_on_request(resource->user, keep_bytes);
    else
        gm_resource_trim(resource, keep_bytes);
    gm_current_leave(&current);
    return status;
}

/* With no lock held: a user's resource may free buffers of another one. `all` includes the
 * library's own wrappers. */
static void visit_resources(gpumem_device *device, int all,
                            void (*visit)(gpumem_resource *, void *), void *data) {
    pthread_mutex_lock(&device->lock);
    for (gpumem_resource *r = device->resources; r; r = r->next) {
        if (!all && r->upstream && !r->apart && !r->fast)
            continue;
        r->visitors++;
        pthread_mutex_unlock(&device->lock);
        visit(r, data);
        pthread_mutex_lock(&device->lock);
        if (--r->visitors == 0)
            pthread_cond_broadcast(&device->left);
    }
    pthread_mutex_unlock(&device->lock);
}

void gm_resources_visit(gpumem_device *device, void (*visit)(gpumem_resource *, void *),
                        void *data) {
    visit_resources(device, 0, visit, data);
}

void gm_resources_visit_all(gpumem_device *device, void (*visit)(gpumem_resource *, void *),
                            void *data) {
    visit_resources(device, 1, visit, data);
}

gpumem_status gpumem_device_trim(gpumem_device *device, bool wait) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_device_trim");
    int entered = gm_closing_enter();
    gm_work_off_all(device);
    if (wait) {
        gm_queued_mark(device, 1);
        gm_wait_for_frees(device, NULL);
        gm_settle_all(device);
    }
    gm_trim_all(device);
    gm_closing_leave(entered);
    return GPUMEM_OK;
}

gpumem_status gpumem_resource_get_properties(gpumem_resource *resource,
                                             gpumem_resource_properties *properties) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_resource_get_properties");
    return GM_RESULT_WRITE(gpumem_resource_properties, properties, &resource->properties);
}

gpumem_device *gpumem_resource_device(const gpumem_resource *resource) {
    return resource->device;
}

static void report(gpumem_resource *resource, void *unused) {
    (void)unused;
    if (resource->fast)
        resource->fast->report(resource);
    gm_tally_tell(&resource->tally);
}

void gm_resources_report(gpumem_device *device) {
    gm_resources_visit(device, report, NULL);
}

static void add_stats(gpumem_resource *resource, void *data) {
    gpumem_stats *stats = data, before = *stats;
    if (!resource->ops.stats)
        return;
    if (resource->tells_committed) { /* instead of what the meter knows */
        gpumem_stats known;
        gm_meter_read(&resource->meter, &known);
        stats->committed_bytes -= known.committed_bytes < stats->committed_bytes
                                      ? known.committed_bytes
                                      : stats->committed_bytes;
    }
    resource->ops.stats(resource->user, stats);
    if (resource->apart) { /* the rest is counted by its upstream */
        before.cached_bytes = stats->cached_bytes;
        *stats = before;
    }
}

void gm_resources_add_stats(gpumem_device *device, gpumem_stats *stats) {
    gm_resources_visit(device, add_stats, stats);
}

gpumem_status gpumem_resource_get_stats(gpumem_resource *resource, gpumem_stats *stats) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_resource_get_stats");
    gpumem_stats filled;
    gm_queued_look(resource->device);
    gm_resources_report(resource->device);
    gm_meter_read(&resource->meter, &filled);
    if (resource->tells_committed)
        filled.committed_bytes = filled.committed_high = 0;
    if (resource->ops.stats)
        resource->ops.stats(resource->user, &filled);
    gpumem_resource *slabs = atomic_load(&resource->slabs);
    if (slabs)
        slabs->ops.stats(slabs->user, &filled);
    return GM_RESULT_WRITE(gpumem_stats, stats, &filled);
}

/* What a pool tells replaces what the meter of the device has of it, so both must be of one moment.
 * With threads that allocate all the time, the last attempt stands. */
static void read_device(gpumem_device *device, gpumem_stats *stats) {
    gpumem_stats again;
    for (int tries = 0; tries < 4; tries++) {
        gm_meter_read(&device->meter, stats);
        gm_resources_add_stats(device, stats);
        gm_meter_read(&device->meter, &again);
        if (again.allocations_total == stats->allocations_total &&
            again.allocations == stats->allocations)
            return;
    }
}

/* With what pools keep, which is known only when somebody asks. */
static void keep_high(struct gm_meter *meter, gpumem_stats *stats) {
    if (stats->committed_high < stats->committed_bytes)
        stats->committed_high = stats->committed_bytes;
    gm_meter_keep_high(meter, GM_COMMITTED, &stats->committed_high);
}

gpumem_status gpumem_device_get_stats(gpumem_device *device, gpumem_stats *stats) {
    GM_UNCANCELLED;
    GM_CHECK(device, "gpumem_device_get_stats");
    gpumem_stats filled;
    gm_queued_look(device);
    gm_resources_report(device);
    read_device(device, &filled);
    keep_high(&device->meter, &filled);
    return GM_RESULT_WRITE(gpumem_stats, stats, &filled);
}

gpumem_status gpumem_library_get_stats(gpumem_library *library, gpumem_stats *stats) {
    GM_UNCANCELLED;
    GM_CHECK(library, "gpumem_library_get_stats");
    gpumem_stats filled;
    pthread_mutex_lock(&library->lock);
    for (int i = 0; i < library->device_count; i++)
        if (library->devices[i]) {
            gm_queued_look(library->devices[i]);
            gm_resources_report(library->devices[i]);
        }
    gm_meter_read(&library->meter, &filled);
    for (int i = 0; i < library->device_count; i++)
        if (library->devices[i])
            gm_resources_add_stats(library->devices[i], &filled);
    pthread_mutex_unlock(&library->lock);
    keep_high(&library->meter, &filled);
    return GM_RESULT_WRITE(gpumem_stats, stats, &filled);
}
