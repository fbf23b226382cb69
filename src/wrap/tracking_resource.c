/* A wrapper that records the call sites of live allocations. */
#include "base/cancel.h"
#include "base/options.h"
#include "memory/core/call_site.h"
#include "memory/core/driver_error.h"
#include "memory/object/deferred_frees.h"
#include "memory/object/resource.h"
#include "wrap/ledger.h"
#include "wrap/tracking.h"
#include "wrap/wrapper.h"

#include <execinfo.h>
#include <stdlib.h>
#include <string.h>

/* Frames of the library itself, between the program's call and the walk. */
#define OWN_FRAMES_MOST 32

struct tracking_resource {
    struct gm_wrapper wrapper;
    struct gm_ledger ledger;
    size_t frames;
    _Atomic uint64_t numbers;
};

struct tracked {
    struct gm_ledger_entry entry;
    uint64_t number, thread, begin_ns;
    CUstream stream;
    _Atomic size_t bytes, committed;
    size_t frame_count;
    void *frames[];
};

/* ---- Allocations ----------------------------------------------------------------------------- */

/* The stack from the program's call outwards. Frames inside it are the library's own. */
static size_t walk(void **frames, size_t most) {
    void *all[GM_FRAMES_MOST + OWN_FRAMES_MOST];
    int found = backtrace(all, (int)(most + OWN_FRAMES_MOST));
    size_t count = found > 0 ? (size_t)found : 0, first = 0;
    while (first < count && all[first] != gm_call_site)
        first++;
    if (first == count) { /* not found: use the known one */
        frames[0] = gm_call_site;
        return 1;
    }
    count = count - first < most ? count - first : most;
    memcpy(frames, all + first, count * sizeof *frames);
    return count;
}

static struct tracked *make_entry(const struct tracking_resource *t) {
    struct tracked *made = malloc(sizeof *made + t->frames * sizeof(void *));
    if (!made)
        return NULL;
    if (t->frames > 1) {
        made->frame_count = walk(made->frames, t->frames);
    } else {
        made->frames[0] = gm_call_site;
        made->frame_count = 1;
    }
    made->frame_count = gm_call_site ? made->frame_count : 0;
    return made;
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct tracking_resource *t = user;
    gpumem_resource *up = t->wrapper.upstream;
    struct tracked *made = make_entry(t);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to track an allocation");
    gpumem_status status = up->ops.allocate(up->user, request, allocation);
    if (status != GPUMEM_OK) {
        free(made);
        return status;
    }
    made->entry.pointer = allocation->pointer;
    made->number = atomic_fetch_add(&t->numbers, 1) + 1;
    made->thread = gm_thread_id();
    made->begin_ns = gm_now_ns();
    made->stream = request->stream;
    atomic_init(&made->bytes, allocation->bytes);
    atomic_init(&made->committed, allocation->committed_bytes);
    gm_ledger_add(&t->ledger, &made->entry);
    return GPUMEM_OK;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct tracking_resource *t = user;
    gpumem_resource *up = t->wrapper.upstream;
    free(gm_ledger_remove(&t->ledger, allocation->pointer));
    up->ops.deallocate(up->user, allocation, stream);
}

static gpumem_status resize(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream) {
    struct tracking_resource *t = user;
    gpumem_resource *up = t->wrapper.upstream;
    gpumem_status status = up->ops.resize(up->user, allocation, bytes, stream);
    struct tracked *known =
        (struct tracked *)(void *)gm_ledger_find(&t->ledger, allocation->pointer);
    if (known) { /* also after a shrink that failed half-way */
        atomic_store(&known->bytes, allocation->bytes);
        atomic_store(&known->committed, allocation->committed_bytes);
    }
    return status;
}

static void moved(void *user, CUdeviceptr from, const gpumem_allocation *allocation) {
    struct tracking_resource *t = user;
    (void)gm_ledger_move(&t->ledger, from, allocation->pointer);
}

/* ---- What is alive --------------------------------------------------------------------------- */

struct reading {
    struct gm_tracking_list *list;
    uint64_t now_ns;
};

static int read_one(struct gm_ledger_entry *entry, void *user) {
    const struct reading *reading = user;
    struct gm_tracking_list *list = reading->list;
    struct tracked *from = (struct tracked *)(void *)entry;
    if (list->count == list->room)
        return 1;
    void **frames = list->frames + list->count * list->frames_each;
    memcpy(frames, from->frames, from->frame_count * sizeof *frames);
    list->entries[list->count++] = (gpumem_tracked){
        .size = sizeof(gpumem_tracked),
        .number = from->number,
        .pointer = from->entry.pointer,
        .bytes = atomic_load(&from->bytes),
        .committed_bytes = atomic_load(&from->committed),
        .stream = from->stream,
        .thread = from->thread,
        .age_ns = reading->now_ns > from->begin_ns ? reading->now_ns - from->begin_ns : 0,
        .frames = frames,
        .frame_count = from->frame_count,
    };
    return 0;
}

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const gpumem_tracked *)a)->number, y = ((const gpumem_tracked *)b)->number;
    return (x > y) - (x < y);
}

void gm_tracking_clear(struct gm_tracking_list *list) {
    free(list->entries);
    free(list->frames);
}

/* Others allocate meanwhile: if the list becomes too short, the reading starts again. */
gpumem_status gm_tracking_read(gpumem_resource *resource, struct gm_tracking_list *list) {
    struct tracking_resource *t = resource->user;
    size_t room = gm_ledger_count(&t->ledger);
    for (;;) {
        room += room / 4 + 16;
        *list = (struct gm_tracking_list){.room = room, .frames_each = t->frames};
        list->entries = malloc(room * sizeof *list->entries);
        list->frames = malloc(room * t->frames * sizeof(void *));
        if (!list->entries || !list->frames) {
            gm_tracking_clear(list);
            return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory to list %zu allocations",
                           room);
        }
        struct reading reading = {.list = list, .now_ns = gm_now_ns()};
        if (gm_ledger_visit(&t->ledger, read_one, &reading) == 0)
            break;
        gm_tracking_clear(list);
    }
    qsort(list->entries, list->count, sizeof *list->entries, by_number);
    return GPUMEM_OK;
}

gpumem_status gpumem_tracking_visit(gpumem_resource *resource, gpumem_tracked_fn fn, void *user) {
    GM_UNCANCELLED;
    GM_CHECK(resource, "gpumem_tracking_visit");
    GM_REQUIRE(resource->ops.allocate == allocate,
               "gpumem_tracking_visit: a %s resource does not track", resource->kind);
    GM_REQUIRE(fn, "gpumem_tracking_visit: fn is NULL");
    gm_work_off(resource->device);
    struct gm_tracking_list list;
    gpumem_status status = gm_tracking_read(resource, &list);
    if (status != GPUMEM_OK)
        return status;
    for (size_t i = 0; i < list.count && fn(user, &list.entries[i]) == 0; i++) {
    }
    gm_tracking_clear(&list);
    return GPUMEM_OK;
}

int gm_is_tracking(const gpumem_resource *resource) {
    return resource->ops.allocate == allocate;
}

/* ---- Making and ending ----------------------------------------------------------------------- */

static void destroy(void *user) {
    struct tracking_resource *t = user;
    gm_ledger_destroy(&t->ledger);
    free(t);
}

/* The first walk of a process loads the unwinder, which takes memory and a file. */
static void warm_up(void) {
    void *unused[1];
    (void)backtrace(unused, 1);
}

static const struct gm_describe_ops description = {.resource = gm_tracking_describe};

static const struct gm_wrapper_ops own = {
    .kind = "tracking",
    .allocate = allocate,
    .deallocate = deallocate,
    .resize = resize,
    .moved = moved,
    .destroy = destroy,
    .transparent = 1,
    .describe = &description,
};

gpumem_status gpumem_tracking_resource_create(gpumem_resource *upstream,
                                              const gpumem_tracking_options *given,
                                              gpumem_resource **resource) {
    GM_UNCANCELLED;
    gpumem_tracking_options options;
    GM_CHECK(upstream, "gpumem_tracking_resource_create");
    GM_REQUIRE(resource, "gpumem_tracking_resource_create: resource is NULL");
    gpumem_status status = GM_OPTIONS_READ(gpumem_tracking_options, given, &options);
    if (status != GPUMEM_OK)
        return status;
    GM_REQUIRE(options.frames <= GM_FRAMES_MOST,
               "gpumem_tracking_resource_create: %u frames; the maximum is %d", options.frames,
               GM_FRAMES_MOST);
    struct tracking_resource *t = calloc(1, sizeof *t);
    if (!t || gm_ledger_init(&t->ledger) != 0) {
        free(t);
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for a resource");
    }
    t->frames = options.frames ? options.frames : 1;
    if (t->frames > 1)
        warm_up();
    return gm_wrapper_make(&t->wrapper, upstream, &own, resource);
}
