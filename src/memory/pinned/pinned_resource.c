/* The pinned resource: pieces of slabs, or the driver's host pool. */
#include "base/cancel.h"
#include "base/log.h"
#include "base/options.h"
#include "base/thread.h"
#include "memory/core/current_context.h"
#include "memory/core/describe.h"
#include "memory/core/driver_error.h"
#include "memory/core/vmm_calls.h"
#include "memory/host/huge_pages.h"
#include "memory/host/numa.h"
#include "memory/object/device.h"
#include "memory/object/resource.h"
#include "memory/pinned/pinned_slab.h"
#include "memory/pinned/touch_calibration.h"
#include "memory/pool/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SLAB ((size_t)64 << 20)
#define PAGE         ((size_t)4096)

struct pinned_resource {
    gpumem_device *device;
    gpumem_resource *resource;
    gpumem_pinned_options options;
    struct gm_slab_settings settings;
    char note[192];
    pthread_mutex_t lock;
    struct gm_slab *slabs;
    pthread_cond_t changed; /* `making` or `ending` has, or `warming` */
    unsigned making;        /* slabs that threads are pinning just now */
    unsigned ending;        /* and unpinning */
    size_t pinned;          /* of all slabs, of those being made and of those being ended */
    size_t empty;           /* of slabs without a piece in use */
    char huge_reason[160];  /* of the latest slab that did not get reserved huge pages */
    unsigned warming;       /* threads that pin ahead */
    int ends;               /* tells these to stop */
};

/* ---- Slabs; the lock is held but where said -------------------------------------------------- */

/* Memory is counted as cached until a buffer has it. */
static void count_slab(struct pinned_resource *p, size_t bytes) {
    gm_meter_add(&p->resource->meter, GM_CHUNKS, 1);
    gm_meter_add(&p->resource->meter, GM_PINNED, bytes);
    gm_meter_add(&p->resource->meter, GM_CACHED, bytes);
    gm_meter_add(&p->resource->meter, GM_COMMITTED, bytes);
}

static void uncount_slab(struct pinned_resource *p, size_t bytes) {
    gm_meter_subtract(&p->resource->meter, GM_CHUNKS, 1);
    gm_meter_subtract(&p->resource->meter, GM_PINNED, bytes);
    gm_meter_subtract(&p->resource->meter, GM_CACHED, bytes);
    gm_meter_subtract(&p->resource->meter, GM_COMMITTED, bytes);
}

static struct gm_span *take_from_slabs(struct pinned_resource *p, size_t bytes, size_t alignment) {
    for (struct gm_slab *slab = p->slabs; slab; slab = slab->next) {
        int was_empty = slab->spans.used == 0;
        struct gm_span *span = gm_spans_take(&slab->spans, bytes, alignment);
        if (!span)
            continue;
        if (was_empty)
            p->empty -= slab->bytes;
        return span;
    }
    return NULL;
}

/* Takes out empty slabs until at most `keep` bytes of them are left; the caller destroys them. They
 * are pinned until then, and count. */
static struct gm_slab *take_empty(struct pinned_resource *p, size_t keep) {
    struct gm_slab *taken = NULL, **at = &p->slabs;
    while (*at && p->empty > keep) {
        struct gm_slab *slab = *at;
        if (slab->spans.used) {
            at = &slab->next;
            continue;
        }
        *at = slab->next;
        p->empty -= slab->bytes;
        p->ending++;
        slab->next = taken;
        taken = slab;
    }
    return taken;
}

static void note_end(struct pinned_resource *p, size_t bytes) {
    pthread_mutex_lock(&p->lock);
    p->ending--;
    p->pinned -= bytes;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* Without the lock, which it takes for a moment: unpinning takes long. What the driver keeps is the
 * device's loss and no longer of the resource, so its maximum is not used up by it. */
static void end_slabs(struct pinned_resource *p, struct gm_slab *slab) {
    while (slab) {
        struct gm_slab *next = slab->next;
        size_t bytes = slab->bytes;
        int kept = gm_slab_destroy(p->device, slab) != 0;
        uncount_slab(p, bytes);
        if (kept) {
            gm_meter_quarantine_memory(&p->resource->meter, bytes);
            gm_meter_add(&p->resource->meter, GM_PINNED, bytes);
        }
        note_end(p, bytes);
        slab = next;
    }
}

static size_t round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/*
 * The size of a slab with room for `bytes`, within what the maximum leaves: whole huge pages if
 * they fit, else all that is left. 0 if that is too little.
 */
static size_t take_room(struct pinned_resource *p, size_t bytes) {
    size_t least = p->options.slab_bytes,
           size = round_up(bytes > least ? bytes : least, GM_SLAB_UNIT);
    uint64_t maximum = p->options.maximum_bytes;
    if (maximum) {
        size_t left = maximum > p->pinned ? (size_t)(maximum - p->pinned) / PAGE * PAGE : 0;
        if (size > left)
            size = bytes <= left ? left : 0;
    }
    p->pinned += size;
    p->making += size > 0;
    return size;
}

/*
 * A piece of a slab, or room for a new one in *size. Where the maximum is taken by slabs that
 * others are making or ending, these are waited for: there may be room in them, or after them. Both
 * 0: there is none. Takes the lock.
 */
static struct gm_span *find_place(struct pinned_resource *p, size_t bytes, size_t alignment,
                                  size_t slack, size_t *size) {
    struct gm_span *span;
    *size = 0;
    pthread_mutex_lock(&p->lock);
    while (!(span = take_from_slabs(p, bytes, alignment)) &&
           !(*size = take_room(p, bytes + slack)) && (p->making || p->ending))
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return span;
}

/* Completes a slab for which find_place reserved room; `slab` NULL: it could not be made. Takes the
 * lock.
 */
static void note_slab(struct pinned_resource *p, struct gm_slab *slab, size_t size, int is_empty) {
    pthread_mutex_lock(&p->lock);
    p->making--;
    if (slab) {
        slab->next = p->slabs;
        p->slabs = slab;
        p->empty += is_empty ? slab->bytes : 0;
        if (!slab->huge && p->settings.reserved_huge_pages)
            memcpy(p->huge_reason, slab->reason, sizeof p->huge_reason);
    } else {
        p->pinned -= size;
    }
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* A piece of a new slab of `size` bytes. Without the lock: pinning takes long, and others can use
 * the existing slabs meanwhile. */
static gpumem_status make_slab(struct pinned_resource *p, size_t size, size_t bytes,
                               size_t alignment, struct gm_span **span) {
    struct gm_slab *slab;
    struct gm_late late = {.device = p->device};
    gpumem_status status = gm_late_enter(&late);
    if (status == GPUMEM_OK)
        status = gm_slab_create(p->device, &p->settings, size, &slab);
    gm_late_leave(&late);
    if (status != GPUMEM_OK) {
        note_slab(p, NULL, size, 0);
        return status;
    }
    count_slab(p, size);
    *span = gm_spans_take(&slab->spans, bytes, alignment);
    note_slab(p, slab, size, !*span);
    return *span
               ? GPUMEM_OK
               : gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to record a piece of a slab");
}

static gpumem_status refuse(struct pinned_resource *p, size_t bytes) {
    pthread_mutex_lock(&p->lock);
    size_t pinned = p->pinned;
    pthread_mutex_unlock(&p->lock);
    return gm_fail(
        GPUMEM_ERROR_OUT_OF_CAPACITY,
        "a slab for %zu bytes would bring pinned memory from %zu above its maximum of %llu", bytes,
        pinned, (unsigned long long)p->options.maximum_bytes);
}

/* ---- The resource's functions ---------------------------------------------------------------- */

static void hand_out(struct pinned_resource *p, const struct gm_span *span, size_t bytes,
                     gpumem_allocation *allocation) {
    const struct gm_slab *slab = span->owner->user;
    gm_meter_subtract(&p->resource->meter, GM_CACHED, span->bytes);
    gm_meter_subtract(&p->resource->meter, GM_COMMITTED, span->bytes);
    *allocation = (gpumem_allocation){
        .size = sizeof *allocation,
        .pointer = slab->device_base + span->offset,
        .host_pointer = (unsigned char *)slab->base + span->offset,
        .bytes = bytes,
        .committed_bytes = span->bytes,
        .capacity = bytes,
        .cookie = (void *)span,
    };
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct pinned_resource *p = user;
    size_t bytes = request->bytes, alignment = request->alignment, size;
    /* Registered memory starts at a huge page; memory allocated by the driver at least at a
     * page. */
    size_t sure = p->options.method == GPUMEM_PINNED_REGISTERED ? GM_SLAB_UNIT : PAGE;
    size_t slack = alignment > sure ? alignment : 0;
    if (bytes > SIZE_MAX / 2 || slack > SIZE_MAX / 4)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "%zu bytes is too large", bytes);
    struct gm_span *span = find_place(p, bytes, alignment, slack, &size);
    if (!span) {
        gpumem_status status =
            size ? make_slab(p, size, bytes, alignment, &span) : refuse(p, bytes);
        if (status != GPUMEM_OK)
            return status;
    }
    hand_out(p, span, bytes, allocation);
    return GPUMEM_OK;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct pinned_resource *p = user;
    (void)stream; /* not stream-ordered: the memory is no longer in use */
    struct gm_span *span = allocation->cookie;
    struct gm_slab *slab = span->owner->user;
    gm_meter_add(&p->resource->meter, GM_COMMITTED, span->bytes);
    gm_meter_add(&p->resource->meter, GM_CACHED, span->bytes);
    pthread_mutex_lock(&p->lock);
    gm_spans_give(span);
    if (slab->spans.used == 0)
        p->empty += slab->bytes;
    size_t keep = p->options.keep_nothing ? 0
                  : p->options.keep_bytes ? (size_t)p->options.keep_bytes
                                          : SIZE_MAX;
    /* Where the context cannot be made current, the next free or trim gives them back. */
    struct gm_late late = {.device = p->device};
    struct gm_slab *surplus = NULL;
    if (p->empty > keep && gm_late_enter(&late) == GPUMEM_OK)
        surplus = take_empty(p, keep);
    pthread_mutex_unlock(&p->lock);
    end_slabs(p, surplus);
    gm_late_leave(&late);
}

static void trim(void *user, size_t keep_bytes) {
    struct pinned_resource *p = user;
    pthread_mutex_lock(&p->lock);
    struct gm_slab *surplus = take_empty(p, keep_bytes);
    pthread_mutex_unlock(&p->lock);
    end_slabs(p, surplus);
}

static void properties(void *user, gpumem_resource_properties *out) {
    struct pinned_resource *p = user;
    out->device_accessible = 1;
    out->host_accessible = 1;
    out->location = p->options.numa_bind ? GPUMEM_LOCATION_HOST_NUMA : GPUMEM_LOCATION_HOST;
    out->granularity = GM_SPAN_UNIT;
    out->maximum_chunk_bytes = p->options.slab_bytes;
    memcpy(out->note, p->note, sizeof out->note);
}

static void describe(gpumem_resource *resource, struct gm_json *json,
                     const gpumem_snapshot_options *options) {
    struct pinned_resource *p = resource->user;
    gm_json_open(json, "slabs", '[');
    pthread_mutex_lock(&p->lock);
    for (const struct gm_slab *slab = p->slabs; slab; slab = slab->next) {
        gm_json_open(json, NULL, '{');
        gm_json_address(json, "address", slab->device_base);
        gm_json_address(json, "host_address", (uintptr_t)slab->base);
        gm_json_number(json, "bytes", slab->bytes);
        gm_json_number(json, "free_bytes", slab->bytes - slab->spans.used);
        gm_json_number(json, "largest_free_bytes", gm_spans_largest(&slab->spans));
        if (!options->without_pieces)
            gm_describe_pieces(json, &slab->spans, gm_describe_piece);
        gm_json_close(json, '}');
    }
    pthread_mutex_unlock(&p->lock);
    gm_json_close(json, ']');
}

static const struct gm_describe_ops description = {.resource = describe};

/* ---- Ahead of need --------------------------------------------------------------------------- */

struct warming {
    struct pinned_resource *resource;
    size_t bytes;
};

static void say_that_it_ended(void) {
    gm_log(GPUMEM_LOG_WARNING, "pinning ahead ended: %s", gpumem_last_error()->message);
}

/* One more slab, of at most `bytes` unless slabs are larger; 0 if there is no room. */
static size_t warm_slab(struct pinned_resource *p, size_t bytes) {
    struct gm_slab *slab;
    size_t most = p->options.slab_bytes;
    pthread_mutex_lock(&p->lock);
    size_t size = p->ends ? 0 : take_room(p, bytes < most ? bytes : most);
    pthread_mutex_unlock(&p->lock);
    if (!size)
        return 0;
    if (gm_slab_create(p->device, &p->settings, size, &slab) != GPUMEM_OK) {
        say_that_it_ended();
        note_slab(p, NULL, size, 0);
        return 0;
    }
    count_slab(p, size);
    note_slab(p, slab, size, 1);
    return size;
}

static void *warm(void *argument) {
    struct warming own = *(struct warming *)argument;
    struct pinned_resource *p = own.resource;
    struct gm_current current;
    free(argument);
    if (gm_current_enter(&current, p->device) == GPUMEM_OK) {
        for (size_t left = own.bytes, made; left && (made = warm_slab(p, left)) != 0;)
            left -= made < left ? made : left;
        gm_current_leave(&current);
    } else {
        say_that_it_ended();
    }
    pthread_mutex_lock(&p->lock);
    p->warming--;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static gpumem_status start_warming(struct pinned_resource *p, size_t bytes) {
    struct warming *warming = malloc(sizeof *warming);
    if (!warming)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to pin ahead");
    *warming = (struct warming){p, bytes};
    pthread_mutex_lock(&p->lock);
    p->warming++;
    pthread_mutex_unlock(&p->lock);
    int error = gm_thread_start(NULL, 0, warm, warming);
    if (!error)
        return GPUMEM_OK;
    free(warming);
    pthread_mutex_lock(&p->lock);
    p->warming--;
    pthread_mutex_unlock(&p->lock);
    return gm_fail_system(GPUMEM_ERROR_SYSTEM, error, "pthread_create",
                          "cannot start a thread to pin ahead");
}

static void end_warming(struct pinned_resource *p) {
    pthread_mutex_lock(&p->lock);
    p->ends = 1;
    while (p->warming)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void destroy(void *user) {
    struct pinned_resource *p = user;
    end_warming(p);
    if (p->resource)
        trim(p, 0);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "pinned",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties,
    .trim = trim,
    .destroy = destroy,
};

/* ---- Creation -------------------------------------------------------------------------------- */

static gpumem_status settle_method(struct pinned_resource *p) {
    gpumem_pinned_options *o = &p->options;
    int registers = gm_device_attribute(p->device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 0);
    if (o->method == GPUMEM_PINNED_REGISTERED && !registers)
        return gm_fail(
            GPUMEM_ERROR_NOT_SUPPORTED,
            "device %d cannot register host memory (attribute HOST_REGISTER_SUPPORTED is "
            "0); choose GPUMEM_PINNED_ALLOCATED",
            p->device->ordinal);
    GM_REQUIRE(!o->huge_pages || (o->method != GPUMEM_PINNED_ALLOCATED &&
                                  !(o->flags & GPUMEM_PINNED_WRITE_COMBINED)),
               "pinned resource: the driver chooses the pages of memory that it allocates; "
               "huge_pages is for registered memory");
    if (o->huge_pages && !registers)
        snprintf(
            p->huge_reason, sizeof p->huge_reason,
            "allocated by the driver, which chooses its pages: the device cannot register memory");
    if (o->method == GPUMEM_PINNED_AUTO) {
        int allocated = !registers || (o->flags & GPUMEM_PINNED_WRITE_COMBINED);
        o->method = allocated ? GPUMEM_PINNED_ALLOCATED : GPUMEM_PINNED_REGISTERED;
        size_t used = strlen(p->note);
        if (!registers)
            snprintf(
                p->note + used, sizeof p->note - used,
                "%sallocated by the driver, which is slower: the device cannot register memory",
                used ? "; " : "");
    }
    GM_REQUIRE(o->method == GPUMEM_PINNED_REGISTERED || !o->numa_bind,
               "pinned resource: memory that the driver allocates cannot be bound to a node");
    GM_REQUIRE(o->method == GPUMEM_PINNED_ALLOCATED || !(o->flags & GPUMEM_PINNED_WRITE_COMBINED),
               "pinned resource: only memory that the driver allocates can be write-combined");
    return GPUMEM_OK;
}

static gpumem_status settle(struct pinned_resource *p) {
    gpumem_pinned_options *o = &p->options;
    GM_REQUIRE(!o->ipc, "pinned resource: only GPUMEM_PINNED_POOL can be exported");
    gpumem_status status = settle_method(p);
    if (status != GPUMEM_OK)
        return status;
    if (!o->slab_bytes)
        o->slab_bytes = DEFAULT_SLAB;
    GM_REQUIRE(o->slab_bytes <= SIZE_MAX / 2, "pinned resource: slab_bytes is %zu", o->slab_bytes);
    GM_REQUIRE(!o->maximum_bytes || o->maximum_bytes >= PAGE,
               "pinned resource: maximum_bytes %llu is less than a page of %zu",
               (unsigned long long)o->maximum_bytes, PAGE);
    if (o->maximum_bytes && o->slab_bytes > o->maximum_bytes)
        o->slab_bytes = (size_t)o->maximum_bytes / PAGE * PAGE;
    p->settings = (struct gm_slab_settings){
        .method = o->method,
        .flags = o->flags,
        .numa_bind = o->numa_bind,
        .numa_node = o->numa_node,
        .threads = o->touch_threads,
        .reserved_huge_pages =
            o->huge_pages == GPUMEM_HUGE_PAGES_RESERVED && o->method == GPUMEM_PINNED_REGISTERED,
    };
    return GPUMEM_OK;
}

/* `note` begins the properties'; more may follow it. */
static gpumem_status create_slabs(gpumem_device *device, const gpumem_pinned_options *options,
                                  const char *note, gpumem_resource **resource) {
    struct pinned_resource *p = calloc(1, sizeof *p);
    if (!p)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    p->device = device;
    p->options = *options;
    snprintf(p->note, sizeof p->note, "%s", note);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    gpumem_status status = settle(p);
    if (status == GPUMEM_OK)
        status = gm_resource_make(device, &ops, p, NULL, &p->resource);
    if (status != GPUMEM_OK) {
        destroy(p);
        return status;
    }
    p->resource->enters = 1;
    gm_describe_set(p->resource, &description);
    *resource = p->resource;
    return GPUMEM_OK;
}

/* The driver's pool, or, if there is none, slabs with a note. Slabs cannot be shared. */
static gpumem_status create_pool(gpumem_device *device, const gpumem_pinned_options *given,
                                 gpumem_resource **resource) {
    int absent = 0;
    gpumem_status status = gm_host_pool_create(device, given, resource, &absent);
    if (status == GPUMEM_OK || !absent || given->ipc)
        return status;
    char note[sizeof((struct pinned_resource *)NULL)->note];
    snprintf(note, sizeof note, GM_NO_HOST_POOL "%s", gpumem_last_error()->message);
    gpumem_pinned_options options = *given;
    options.method = GPUMEM_PINNED_AUTO;
    return create_slabs(device, &options, note, resource);
}

gpumem_status gpumem_pinned_resource_create(gpumem_device *device,
                                            const gpumem_pinned_options *given,
                                            gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_pinned_options options;
    GM_CHECK(device, "gpumem_pinned_resource_create");
    GM_REQUIRE(resource, "gpumem_pinned_resource_create: resource is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_pinned_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE((unsigned)options.method <= GPUMEM_PINNED_POOL, "pinned resource: unknown method %d",
               (int)options.method);
    GM_REQUIRE((options.flags & ~(GPUMEM_PINNED_PORTABLE | GPUMEM_PINNED_WRITE_COMBINED)) == 0,
               "pinned resource: unknown flags 0x%x", options.flags);
    GM_REQUIRE(options.numa_bind || !options.numa_node,
               "pinned resource: numa_node is %d, but numa_bind is not set", options.numa_node);
    GM_REQUIRE((unsigned)options.pool <= GPUMEM_POOL_OWN, "pinned resource: unknown pool choice %d",
               (int)options.pool);
    GM_REQUIRE(!options.pool || options.method == GPUMEM_PINNED_POOL,
               "pinned resource: `pool` is set, but the method is not GPUMEM_PINNED_POOL");
    GM_REQUIRE((unsigned)options.huge_pages <= GPUMEM_HUGE_PAGES_RESERVED,
               "pinned resource: unknown huge_pages %d", (int)options.huge_pages);
    GM_REQUIRE(!options.huge_pages || options.method != GPUMEM_PINNED_POOL,
               "pinned resource: the driver chooses the pages of its pools (huge_pages)");
    if (options.numa_bind)
        status = gm_numa_check(options.numa_node, "pinned resource");
    struct gm_current current;
    if (status == GPUMEM_OK)
        status = gm_current_enter(&current, device);
    if (status != GPUMEM_OK)
        return status;
    status = options.method == GPUMEM_PINNED_POOL ? create_pool(device, &options, resource)
                                                  : create_slabs(device, &options, "", resource);
    gm_current_leave(&current);
    return status;
}

/* ---- What it is ------------------------------------------------------------------------------ */

static void fill_info(struct pinned_resource *p, gpumem_pinned_info *info) {
    info->method = p->options.method;
    if (info->method == GPUMEM_PINNED_REGISTERED) {
        info->touch_threads = p->options.touch_threads;
        if (!info->touch_threads)
            info->touch_threads = gm_touch_threads(p->device, &info->touch_measured);
        info->transparent_huge_pages =
            gm_huge_transparent(info->transparent_reason, sizeof info->transparent_reason);
    }
    pthread_mutex_lock(&p->lock);
    for (const struct gm_slab *slab = p->slabs; slab; slab = slab->next) {
        info->slabs++;
        info->pinned_bytes += slab->bytes;
        info->huge_bytes += slab->huge ? slab->bytes : 0;
    }
    memcpy(info->reserved_reason, p->huge_reason, sizeof info->reserved_reason);
    pthread_mutex_unlock(&p->lock);
}

gpumem_status gpumem_pinned_warm_up(gpumem_resource *resource, size_t bytes) {
    GM_UNCANCELLED;
    static const char call[] = "gpumem_pinned_warm_up";
    GM_CHECK(resource, call);
    if (gm_pool_of(resource))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "%s: the resource is a pool of the driver",
                       call);
    GM_REQUIRE(resource->ops.allocate == allocate, "%s: a %s resource is not a pinned resource",
               call, resource->kind);
    struct pinned_resource *p = resource->user;
    GM_REQUIRE(!p->options.keep_nothing && !p->options.keep_bytes,
               "%s: the resource gives slabs back (keep_nothing, keep_bytes)", call);
    return bytes ? start_warming(p, bytes) : GPUMEM_OK;
}

gpumem_status gpumem_pinned_get_info(gpumem_resource *resource, gpumem_pinned_info *info) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_pinned_get_info");
    if (gm_pool_of(resource))
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "gpumem_pinned_get_info: the resource is a pool of the driver, which "
                       "reports nothing about its pages; see gpumem_pool_get_info");
    GM_REQUIRE(resource->ops.allocate == allocate,
               "gpumem_pinned_get_info: a %s resource is not a pinned resource", resource->kind);
    gpumem_pinned_info filled = {.size = sizeof filled};
    fill_info(resource->user, &filled);
    return GM_RESULT_WRITE(gpumem_pinned_info, info, &filled);
}
