#include "memory/object/closing.h"

#include "base/cancel.h"
#include "base/fork.h"
#include "memory/core/current_context.h"
#include "memory/core/driver_error.h"
#include "memory/object/device.h"
#include "memory/object/resource.h"
#include "memory/object/watch.h"

/* Guests read; who ends objects writes. */
static pthread_rwlock_t guests = PTHREAD_RWLOCK_INITIALIZER;
static _Atomic(struct gm_closing *) first;
static atomic_int again;       /* something was added since the list was gone through */
static atomic_uint generation; /* of the list: a forked child begins with an empty one */
static _Thread_local unsigned depth;

atomic_size_t gm_closing_count;

/* ---- The list -------------------------------------------------------------------------------- */

static void begin_generation(void) {
    if (atomic_load(&generation) == gm_fork_generation())
        return;
    if (atomic_load(&generation)) { /* the only thread of a child */
        atomic_store(&first, NULL);
        atomic_store(&gm_closing_count, 0);
        pthread_rwlock_init(&guests, NULL);
        depth = 0;
    }
    atomic_store(&generation, gm_fork_generation());
}

static void add(struct gm_closing *closing) {
    begin_generation();
    struct gm_closing *before = atomic_load(&first);
    do
        closing->next = before;
    while (!atomic_compare_exchange_weak(&first, &before, closing));
    atomic_fetch_add(&gm_closing_count, 1);
    atomic_store(&again, 1);
}

/* By the thread that ends objects; others only add in front. */
static void take_out(struct gm_closing *closing) {
    struct gm_closing *at = closing;
    if (!atomic_compare_exchange_strong(&first, &at, closing->next)) {
        while (at->next != closing)
            at = at->next;
        at->next = closing->next;
    }
    atomic_fetch_sub(&gm_closing_count, 1);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

/* The entry leaves the list before the object does. */
static int end_resource(struct gm_closing *closing) {
    gpumem_resource *resource = closing->object;
    if (!gm_resource_is_unused(resource))
        return 0;
    take_out(closing);
    gm_watches_leave(resource);
    gm_resource_discard(resource);
    return 1;
}

static int end_device(struct gm_closing *closing) {
    gpumem_device *device = closing->object;
    gpumem_library *library = device->library;
    pthread_mutex_lock(&library->lock);
    int reopened = device->opened != 0, may = !reopened && gm_device_is_unused(device);
    if (reopened)
        closing->listed = 0;
    if (reopened || may)
        take_out(closing);
    if (may)
        gm_device_end(device);
    pthread_mutex_unlock(&library->lock);
    return may;
}

static int end_library(struct gm_closing *closing) {
    gpumem_library *library = closing->object;
    if (gm_library_has_devices(library))
        return 0;
    take_out(closing);
    gm_library_end(library);
    return 1;
}

static int end(struct gm_closing *closing) {
    switch (closing->kind) {
    case GM_CLOSING_RESOURCE:
        return end_resource(closing);
    case GM_CLOSING_DEVICE:
        return end_device(closing);
    default:
        return end_library(closing);
    }
}

/* What ends may have kept others. */
static void end_what_can(void) {
    int any = 1;
    while (any) {
        any = 0;
        for (struct gm_closing *closing = atomic_load(&first), *next; closing; closing = next) {
            next = closing->next;
            any |= end(closing);
        }
    }
}

/* Who does not get the lock leaves it to the guests and to the thread that has it. */
static void look(void) {
    struct gm_error_record saved;
    gm_error_save(&saved);
    do {
        if (pthread_rwlock_trywrlock(&guests) != 0)
            break;
        depth++;
        atomic_store(&again, 0);
        end_what_can();
        depth--;
        pthread_rwlock_unlock(&guests);
    } while (atomic_load(&again));
    gm_error_restore(&saved);
}

int gm_closing_enter_now(void) {
    if (atomic_load(&generation) != gm_fork_generation())
        return 0;
    if (depth++ == 0)
        pthread_rwlock_rdlock(&guests);
    return 1;
}

void gm_closing_leave_now(void) {
    if (--depth > 0)
        return;
    pthread_rwlock_unlock(&guests);
    look();
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void close_later(struct gm_closing *closing, enum gm_closing_kind kind, void *object) {
    closing->kind = kind;
    closing->object = object;
    closing->listed = 1;
    add(closing);
    if (!depth)
        look();
}

gpumem_status gpumem_resource_close_later(gpumem_resource *resource) {
    GM_UNCANCELLED;
    if (!resource)
        return GPUMEM_OK;
    GM_CHECK(resource, "gpumem_resource_close_later");
    GM_REQUIRE(!atomic_exchange(&resource->closed, 1),
               "gpumem_resource_close_later: the %s resource was closed before", resource->kind);
    gpumem_resource *slabs = atomic_load(&resource->slabs);
    if (slabs)
        atomic_store(&slabs->closed, 1);
    close_later(&resource->closing, GM_CLOSING_RESOURCE, resource);
    return GPUMEM_OK;
}

gpumem_status gpumem_device_close_later(gpumem_device *device) {
    GM_UNCANCELLED;
    if (!device)
        return GPUMEM_OK;
    GM_CHECK(device, "gpumem_device_close_later");
    gpumem_library *library = device->library;
    pthread_mutex_lock(&library->lock);
    int open = device->opened != 0;
    if (open)
        device->opened--;
    int last = !device->opened, listed = device->closing.listed;
    if (open && last)
        device->closing.listed = 1;
    pthread_mutex_unlock(&library->lock);
    GM_REQUIRE(open, "gpumem_device_close_later: device %d was closed as often as it was opened",
               device->ordinal);
    if (last && !listed)
        close_later(&device->closing, GM_CLOSING_DEVICE, device);
    else if (last && !depth) /* opened again since it was listed */
        look();
    return GPUMEM_OK;
}

gpumem_status gpumem_close_later(gpumem_library *library) {
    GM_UNCANCELLED;
    if (!library)
        return GPUMEM_OK;
    GM_CHECK(library, "gpumem_close_later");
    pthread_mutex_lock(&library->lock);
    int listed = library->closing.listed;
    library->closing.listed = 1;
    pthread_mutex_unlock(&library->lock);
    GM_REQUIRE(!listed, "gpumem_close_later: the library was closed before");
    close_later(&library->closing, GM_CLOSING_LIBRARY, library);
    return GPUMEM_OK;
}
