/*
 * Every kind of resource that the library can make, and the example's own, in one table: each
 * stands on those that it needs. Header only, as library.h is.
 */
#ifndef CONFORMANCE_RESOURCE_KINDS_H
#define CONFORMANCE_RESOURCE_KINDS_H

#include "arena.h"
#include "kinds.h"
#include "library.h"

/* From the bottom up: the last is the one that is looked at. */
struct stack {
    gpumem_resource *resources[4];
    unsigned count;
    gpumem_resource *caching; /* the one among them, or NULL */
};

struct kind {
    const char *name;
    /* The first refusal ends it: what was made before is on the stack. */
    gpumem_status (*make)(struct stack *stack, unsigned which);
    unsigned which;
    /* Memory that is freed in a capture is the graph's: of a device pool, or a capture pool. */
    bool of_the_graph;
};

static inline gpumem_resource *top_of(const struct stack *stack) {
    return stack->resources[stack->count - 1];
}

static inline gpumem_status pushed(struct stack *stack, gpumem_status status,
                                   gpumem_resource *resource) {
    if (status == GPUMEM_OK)
        stack->resources[stack->count++] = resource;
    return status;
}

/* ---- Where memory comes from ----------------------------------------------------------------- */

enum pinned_kind {
    PINNED_REGISTERED,
    PINNED_ALLOCATED,
    PINNED_POOL,
    PINNED_POOL_OWN,
    PINNED_LITTLE
};

static inline gpumem_status memory_pinned(struct stack *stack, unsigned which) {
    gpumem_resource *made = NULL;
    gpumem_pinned_options options = {.size = sizeof options};
    options.method = which == PINNED_ALLOCATED                          ? GPUMEM_PINNED_ALLOCATED
                     : which == PINNED_POOL || which == PINNED_POOL_OWN ? GPUMEM_PINNED_POOL
                                                                        : GPUMEM_PINNED_REGISTERED;
    if (which == PINNED_POOL_OWN)
        options.pool = GPUMEM_POOL_OWN;
    if (options.method != GPUMEM_PINNED_POOL)
        options.slab_bytes = 8 * MIB;
    if (which == PINNED_LITTLE)
        options.maximum_bytes = 32 * MIB;
    gpumem_status status = gpumem_pinned_resource_create(device, &options, &made);
    return pushed(stack, status, made);
}

enum pool_kind { POOL_CURRENT, POOL_DEFAULT, POOL_OWN, POOL_SHARED };

static inline gpumem_status memory_device_pool(struct stack *stack, unsigned which) {
    static const gpumem_pool_choice choices[] = {GPUMEM_POOL_CURRENT, GPUMEM_POOL_DEFAULT,
                                                 GPUMEM_POOL_OWN, GPUMEM_POOL_OWN};
    gpumem_resource *made = NULL;
    gpumem_status status = gpumem_device_pool_resource_create(
        device, GPUMEM_DEVICE_POOL_OPTIONS(.pool = choices[which], .ipc = which == POOL_SHARED),
        &made);
    return pushed(stack, status, made);
}

enum virtual_kind { VIRTUAL_SHARED, VIRTUAL_ALONE, VIRTUAL_CACHED, VIRTUAL_HOST };

/* Memory of a node is reached by the other device too, where there is one. */
static inline gpumem_status memory_virtual(struct stack *stack, unsigned which) {
    gpumem_resource *made = NULL;
    const int other = 1 - gpumem_device_ordinal(device);
    gpumem_virtual_options options = {.size = sizeof options};
    options.handle_type = which == VIRTUAL_ALONE ? GPUMEM_HANDLE_NONE : GPUMEM_HANDLE_POSIX_FD;
    options.cache_bytes = which == VIRTUAL_CACHED ? 64 * MIB : 0;
    if (which == VIRTUAL_HOST) {
        options.location = GPUMEM_LOCATION_HOST_NUMA;
        options.peers = &other;
        options.peer_count = device_count > 1;
    }
    gpumem_status status = gpumem_virtual_resource_create(device, &options, &made);
    return pushed(stack, status, made);
}

static inline gpumem_status memory_mapped(struct stack *stack, unsigned which) {
    gpumem_resource *made = NULL;
    gpumem_status status = gpumem_mapped_resource_create(device, NULL, &made);
    return pushed(stack, status, made);
}

static inline gpumem_status memory_managed(struct stack *stack, unsigned which) {
    gpumem_resource *made = NULL;
    gpumem_status status = gpumem_managed_resource_create(device, NULL, &made);
    return pushed(stack, status, made);
}

/* ---- Over others ----------------------------------------------------------------------------- */

static inline gpumem_status over_top(struct stack *stack, gpumem_status status,
                                     gpumem_resource *made, bool caches) {
    status = pushed(stack, status, made);
    if (status == GPUMEM_OK && caches)
        stack->caching = made;
    return status;
}

static inline gpumem_status cache_over_top(struct stack *stack) {
    gpumem_resource *made = NULL;
    gpumem_status status = gpumem_caching_resource_create(top_of(stack), NULL, &made);
    return over_top(stack, status, made, true);
}

enum cached_kind {
    CACHED_POOL,
    CACHED_VIRTUAL_CACHE,
    CACHED_HOST_VIRTUAL,
    CACHED_SLABS,
    CACHED_HOST_POOL,
    CACHED_MANAGED
};

static inline gpumem_status below_cache(struct stack *stack, unsigned which) {
    switch ((enum cached_kind)which) {
    case CACHED_POOL:
        return memory_device_pool(stack, POOL_OWN);
    case CACHED_VIRTUAL_CACHE:
        return memory_virtual(stack, VIRTUAL_CACHED);
    case CACHED_HOST_VIRTUAL:
        return memory_virtual(stack, VIRTUAL_HOST);
    case CACHED_SLABS:
        return memory_pinned(stack, PINNED_REGISTERED);
    case CACHED_HOST_POOL:
        return memory_pinned(stack, PINNED_POOL_OWN);
    default:
        return memory_managed(stack, 0);
    }
}

static inline gpumem_status cached(struct stack *stack, unsigned which) {
    gpumem_status status = below_cache(stack, which);
    return status == GPUMEM_OK ? cache_over_top(stack) : status;
}

/* After the wrappers of kinds.def. */
#define ARENA WRAPPERS

static inline gpumem_status wrap_top(struct stack *stack, unsigned which) {
    gpumem_resource *made = NULL, *upstream = top_of(stack);
    gpumem_status status =
        which == ARENA ? make_arena(upstream, 2 * MIB, &made)
                       : make_wrapper((enum wrapper)which, upstream, stack->resources[0], &made);
    return over_top(stack, status, made, which == WRAPPER_caching);
}

/* At the bottom is what a fallback goes on to. */
static inline gpumem_status wrapped_virtual(struct stack *stack, unsigned which) {
    gpumem_status status = GPUMEM_OK;
    if (which == WRAPPER_fallback)
        status = memory_virtual(stack, VIRTUAL_SHARED);
    if (status == GPUMEM_OK)
        status = memory_virtual(stack, VIRTUAL_SHARED);
    return status == GPUMEM_OK ? wrap_top(stack, which) : status;
}

static inline gpumem_status wrapped_pool(struct stack *stack, unsigned which) {
    gpumem_status status = memory_device_pool(stack, POOL_OWN);
    return status == GPUMEM_OK ? wrap_top(stack, which) : status;
}

static inline gpumem_status wrapped_slabs(struct stack *stack, unsigned which) {
    gpumem_status status = memory_pinned(stack, PINNED_REGISTERED);
    return status == GPUMEM_OK ? wrap_top(stack, which) : status;
}

static inline gpumem_status wrapped_cache(struct stack *stack, unsigned which) {
    gpumem_status status = cached(stack, CACHED_POOL);
    return status == GPUMEM_OK ? wrap_top(stack, which) : status;
}

/* Device memory up to a limit, then pinned. */
static inline gpumem_status fallback(struct stack *stack, unsigned which) {
    gpumem_resource *little = NULL, *both = NULL;
    gpumem_status status = memory_pinned(stack, PINNED_REGISTERED);
    if (status == GPUMEM_OK)
        status = memory_virtual(stack, VIRTUAL_SHARED);
    if (status == GPUMEM_OK)
        status = gpumem_limiting_resource_create(stack->resources[1], 8 * MIB, &little);
    if (status != GPUMEM_OK)
        return status;
    stack->resources[stack->count++] = little;
    status = gpumem_fallback_resource_create(little, stack->resources[0], &both);
    return pushed(stack, status, both);
}

static const struct kind kinds[] = {
#define WRAPPER(name, ...) {#name " over virtual", wrapped_virtual, WRAPPER_##name, false},
#define CACHE(name, ...)   {#name " over virtual", wrapped_virtual, WRAPPER_##name, true},
#include "kinds.def"
    {"pinned, registered", memory_pinned, PINNED_REGISTERED, false},
    {"pinned, allocated", memory_pinned, PINNED_ALLOCATED, false},
    {"pinned, bounded", memory_pinned, PINNED_LITTLE, false},
    {"host pool", memory_pinned, PINNED_POOL, false},
    {"own host pool", memory_pinned, PINNED_POOL_OWN, false},
    {"current pool", memory_device_pool, POOL_CURRENT, true},
    {"default pool", memory_device_pool, POOL_DEFAULT, true},
    {"own pool", memory_device_pool, POOL_OWN, true},
    {"shared pool", memory_device_pool, POOL_SHARED, true},
    {"virtual, exportable", memory_virtual, VIRTUAL_SHARED, false},
    {"virtual, not exportable", memory_virtual, VIRTUAL_ALONE, false},
    {"virtual, cached", memory_virtual, VIRTUAL_CACHED, false},
    {"virtual, host", memory_virtual, VIRTUAL_HOST, false},
    {"managed", memory_managed, 0, false},
    {"mapped", memory_mapped, 0, false},
    {"caching over a pool", cached, CACHED_POOL, true},
    {"caching over virtual, cached", cached, CACHED_VIRTUAL_CACHE, true},
    {"caching over virtual, host", cached, CACHED_HOST_VIRTUAL, true},
    {"caching over pinned", cached, CACHED_SLABS, true},
    {"caching over a host pool", cached, CACHED_HOST_POOL, true},
    {"caching over managed", cached, CACHED_MANAGED, true},
    {"logging over a pool", wrapped_pool, WRAPPER_logging, true},
    {"trace over pinned", wrapped_slabs, WRAPPER_trace, false},
    {"tracking over caching", wrapped_cache, WRAPPER_tracking, true},
    {"alignment over a pool", wrapped_pool, WRAPPER_alignment, true},
    {"fallback, virtual then pinned", fallback, 0, false},
    {"the example's arena over virtual", wrapped_virtual, ARENA, false},
    {"the example's arena over pinned", wrapped_slabs, ARENA, false},
};

/* Whether each kind of memory has a row: of wrappers each has one by itself. */
static inline bool has_row(gpumem_status (*make)(struct stack *stack, unsigned which)) {
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].make == make)
            return true;
    return false;
}

static inline void check_rows(void) {
#define MEMORY(name)                                                                               \
    if (!has_row(memory_##name))                                                                   \
        fail_msg("no row for %s", #name);
#include "kinds.def"
}

#endif
