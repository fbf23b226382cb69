#include "memory/object/reclaim.h"

#include "base/error.h"
#include "memory/core/current_context.h"
#include "memory/core/siblings.h"
#include "memory/object/closing.h"
#include "memory/object/deferred_frees.h"
#include "memory/object/queued_frees.h"
#include "memory/object/resource.h"
#include "memory/object/shortage.h"

/* How often others may take what came back before an allocation gives up: it may ask for more than
 * will ever be free at once. */
#define OVERTAKEN_MOST 16

static uint64_t given_back(const gpumem_device *device) {
    return atomic_load_explicit(&device->meter.given_back, memory_order_relaxed);
}

struct gm_reclaim gm_reclaim_for(const gpumem_resource *resource, uint64_t bytes) {
    struct gm_reclaim reclaim = gm_reclaim_for_device(resource->device, bytes);
    reclaim.resource = resource;
    return reclaim;
}

struct gm_reclaim gm_reclaim_for_device(gpumem_device *device, uint64_t bytes) {
    return (struct gm_reclaim){.device = device, .bytes = bytes, .given_back = given_back(device)};
}

/* ---- What counts ----------------------------------------------------------------------------- */

static int goes_through(const gpumem_resource *resource, const gpumem_resource *limit) {
    while (resource && resource != limit)
        resource = resource->upstream;
    return resource != NULL;
}

/* The one whose limit refused, not a wrapper without its own limit. */
static const gpumem_resource *limit_of(const gpumem_resource *resource) {
    while (resource && (resource->transparent || resource->inside) && resource->upstream)
        resource = resource->upstream;
    return resource;
}

static int is_wanted(const gpumem_buffer *buffer, const void *data) {
    const struct gm_reclaim *reclaim = data;
    const gpumem_resource *resource = buffer->resource;
    if (reclaim->within)
        return goes_through(resource, reclaim->within) && (!buffer->queued || reclaim->by_driver);
    if (resource->foreign) /* given back by its deleter, to wherever */
        return buffer->allocation.cookie != NULL;
    if (resource->imported) /* memory of other processes */
        return 0;
    int on_device = resource->properties.location == GPUMEM_LOCATION_DEVICE;
    return reclaim->host ? !on_device || resource->properties.host_accessible : on_device;
}

/* Other openings may have what the device is short of. A limit concerns one opening. */
static void visit_others(const struct gm_reclaim *reclaim, void (*visit)(gpumem_device *, void *),
                         void *data) {
    if (!reclaim->within)
        gm_siblings_visit(reclaim->device, visit, data);
}

struct sum {
    const struct gm_reclaim *reclaim;
    uint64_t bytes;
};

static void add_deferred(gpumem_device *device, void *data) {
    struct sum *sum = data;
    sum->bytes += gm_deferred_bytes(device, is_wanted, sum->reclaim);
}

/* Whether everything held back would suffice. If the driver does not report the free memory, it
 * may. */
static int could_be_enough(const struct gm_reclaim *reclaim) {
    if (reclaim->within || reclaim->host)
        return 1;
    uint64_t free_bytes = 0, total = 0;
    if (gpumem_device_get_memory(reclaim->device, &free_bytes, &total) != GPUMEM_OK)
        return 1;
    struct sum held_back = {.reclaim = reclaim};
    add_deferred(reclaim->device, &held_back);
    visit_others(reclaim, add_deferred, &held_back);
    return reclaim->bytes <= free_bytes + held_back.bytes;
}

/* ---- Caches ---------------------------------------------------------------------------------- */

static void trim_one(gpumem_resource *resource, void *unused) {
    (void)unused;
    gm_resource_trim(resource, 0);
}

/* A user's resource may have been built over the one with the limit. */
static void trim_counted(gpumem_resource *resource, void *data) {
    const struct gm_reclaim *reclaim = data;
    if (resource->users || goes_through(reclaim->resource, resource))
        trim_one(resource, NULL);
}

/* A visit that frees is a guest from its start: who ends a resource waits for its visitors, and a
 * free of theirs for who ends one. */
void gm_trim_all(gpumem_device *device) {
    struct gm_current current;
    if (gm_current_enter(&current, device) != GPUMEM_OK)
        return;
    int entered = gm_closing_enter();
    gm_resources_visit(device, trim_one, NULL);
    gm_drop_events(device);
    gm_current_leave(&current);
    gm_closing_leave(entered);
}

struct held {
    uint64_t all;     /* what caches hold, as far as reported, and what they took for it */
    uint64_t caching; /* of caching resources: memory that they give back may stay in a pool below
                       * them */
    uint64_t within;  /* memory that counts against the limit; it may just move from one cache to
                       * another */
};

static void add_caching(gpumem_resource *resource, void *sum) {
    gpumem_stats stats;
    if (!resource->fast)
        return;
    gm_meter_read(&resource->meter, &stats);
    *(uint64_t *)sum += stats.committed_bytes;
}

static void add_held(gpumem_device *device, void *data) {
    struct held *now = data;
    gpumem_stats stats;
    gm_resources_report(device);
    gm_meter_read(&device->meter, &stats);
    gm_resources_add_stats(device, &stats);
    now->all += stats.cached_bytes + stats.committed_bytes;
    gm_resources_visit(device, add_caching, &now->caching);
}

static struct held held(const struct gm_reclaim *reclaim) {
    struct held now = {0};
    gpumem_stats stats;
    add_held(reclaim->device, &now);
    visit_others(reclaim, add_held, &now);
    if (reclaim->within) {
        gm_meter_read(&reclaim->within->meter, &stats);
        now.within = stats.committed_bytes;
    }
    return now;
}

static int is_less_than(const struct gm_reclaim *reclaim, struct held before) {
    struct held now = held(reclaim);
    return now.all < before.all || now.caching < before.caching || now.within < before.within;
}

static void trim_other(gpumem_device *device, void *unused) {
    (void)unused;
    gm_trim_all(device);
}

/* Whether a cache became smaller. */
static int trim(struct gm_reclaim *reclaim) {
    struct held before = held(reclaim);
    struct gm_current current;
    int entered = gm_closing_enter();
    if (!reclaim->within) {
        gm_trim_all(reclaim->device);
        visit_others(reclaim, trim_other, NULL);
    } else if (gm_current_enter(&current, reclaim->device) == GPUMEM_OK) {
        gm_resources_visit(reclaim->device, trim_counted, reclaim);
        gm_current_leave(&current);
    }
    gm_closing_leave(entered);
    return is_less_than(reclaim, before);
}

static void settle_one(gpumem_resource *resource, void *data) {
    const struct gm_reclaim *reclaim = data;
    if (reclaim->within && !goes_through(reclaim->resource, resource) &&
        !goes_through(resource, reclaim->within))
        return;
    if (resource->fast)
        resource->fast->settle(resource);
    else if (resource->mapped && resource->mapped->resource == resource)
        resource->mapped->settle(resource->user);
}

void gm_settle_all(gpumem_device *device) {
    struct gm_reclaim all = gm_reclaim_for_device(device, 0);
    struct gm_current current;
    if (gm_current_enter(&current, device) != GPUMEM_OK)
        return;
    int entered = gm_closing_enter();
    gm_resources_visit(device, settle_one, &all);
    gm_current_leave(&current);
    gm_closing_leave(entered);
}

static void settle_other(gpumem_device *device, void *unused) {
    (void)unused;
    gm_settle_all(device);
}

/* Caching resources wait for their own frees, all at once. */
static int settle(struct gm_reclaim *reclaim) {
    struct gm_current current;
    if (reclaim->settled || gm_current_enter(&current, reclaim->device) != GPUMEM_OK)
        return 0;
    reclaim->settled = 1;
    struct held before = held(reclaim);
    gm_resources_visit(reclaim->device, settle_one, reclaim);
    gm_current_leave(&current);
    visit_others(reclaim, settle_other, NULL);
    trim(reclaim); /* the memory waited for may be cached */
    return is_less_than(reclaim, before);
}

/* ---- Step by step ---------------------------------------------------------------------------- */

static void work_off(gpumem_device *device, void *ended) {
    *(size_t *)ended += gm_work_off_all(device);
}

static void mark_queued(gpumem_device *device, void *unused) {
    (void)unused;
    gm_queued_mark(device, 1);
}

struct wait {
    const struct gm_reclaim *reclaim;
    size_t ended;
};

static void wait_for_one(gpumem_device *device, void *data) {
    struct wait *wait = data;
    if (!wait->ended)
        wait->ended = gm_wait_for_one(device, is_wanted, wait->reclaim);
}

/* Memory that comes back may be in a cache, and usable only once that is emptied. */
static int take_more(struct gm_reclaim *reclaim) {
    size_t ended = 0;
    if (!reclaim->within || reclaim->by_driver)
        mark_queued(reclaim->device, NULL);
    visit_others(reclaim, mark_queued, NULL);
    work_off(reclaim->device, &ended);
    visit_others(reclaim, work_off, &ended);
    int trimmed = !reclaim->begun || ended ? trim(reclaim) : 0;
    reclaim->begun = 1;
    if (ended || trimmed)
        return 1;
    struct wait wait = {.reclaim = reclaim};
    if (could_be_enough(reclaim)) {
        wait_for_one(reclaim->device, &wait);
        visit_others(reclaim, wait_for_one, &wait);
    }
    if (!wait.ended)
        return settle(reclaim);
    trim(reclaim);
    return 1;
}

/* Whether something came back since the last attempt, and other threads have taken it again: they
 * have got on, and it is this one's turn to try. */
static int was_overtaken(struct gm_reclaim *reclaim) {
    if (given_back(reclaim->device) == reclaim->given_back || reclaim->overtaken == OVERTAKEN_MOST)
        return 0;
    reclaim->overtaken++;
    reclaim->settled = 0;
    return 1;
}

int gm_ran_out(gpumem_status status) {
    return status == GPUMEM_ERROR_OUT_OF_MEMORY || status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY ||
           status == GPUMEM_ERROR_OUT_OF_CAPACITY;
}

int gm_reclaim_more(struct gm_reclaim *reclaim, gpumem_status status) {
    if (reclaim->resource && reclaim->resource->reclaims)
        return 0;
    switch (status) {
    case GPUMEM_ERROR_OUT_OF_CAPACITY:
        reclaim->within = limit_of(reclaim->resource);
        reclaim->by_driver =
            gpumem_last_error()->status == status && gpumem_last_error()->driver_code;
        break;
    case GPUMEM_ERROR_OUT_OF_MEMORY:
    case GPUMEM_ERROR_OUT_OF_HOST_MEMORY:
        reclaim->within = NULL;
        reclaim->host = status == GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
        break;
    default:
        return 0;
    }
    struct gm_error_record saved;
    gm_error_save(&saved);
    int more = take_more(reclaim) || was_overtaken(reclaim);
    reclaim->given_back = given_back(reclaim->device);
    gm_error_restore(&saved);
    if (!more)
        gm_tell_shortage(reclaim->device, reclaim->resource, reclaim->bytes, status);
    return more;
}
