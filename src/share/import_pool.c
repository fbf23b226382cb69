/*
 * Buffers of other processes' pools, received one by one. The pool is mapped with the first of its
 * buffers and unmapped with the last. A peer's pool is mapped once: the driver gives a pool one
 * handle in a process however often it is imported, and some pointers only once.
 */
#include "memory/core/driver_error.h"
#include "memory/object/buffer.h"
#include "memory/object/resource.h"
#include "memory/pool/pool.h"
#include "share/import.h"

#include <stdlib.h>
#include <string.h>

/* Linked and counted under `making`, which also guards creation and destruction. */
struct gm_shared_pool {
    struct gm_peer peer;
    unsigned char uuid[16];
    gpumem_location location;
    gpumem_resource *resource; /* hidden */
    unsigned references;
    struct gm_shared_pool *next;
};

struct pool_import {
    struct gm_shared_pool *pool;
    CUdeviceptr base;
};

/* A pool must not be mapped while it is being unmapped: both have the same driver handle. Taken
 * before all locks of the device and of its resources. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* ---- Pools ----------------------------------------------------------------------------------- */

static struct gm_shared_pool *find(gpumem_device *device, const struct gm_peer *peer,
                                   const struct gm_pool_description *described) {
    struct gm_shared_pool *at = device->shared.pools;
    while (at && !(peer && gm_peer_equal(&at->peer, peer) &&
                   memcmp(at->uuid, described->pool, sizeof at->uuid) == 0 &&
                   (int32_t)at->location == described->location))
        at = at->next;
    return at;
}

static gpumem_status map_pool(gpumem_device *device, const struct gm_peer *peer,
                              const struct gm_pool_description *described, int fd,
                              struct gm_shared_pool **pool) {
    gpumem_pool_share_handle handle = {
        .size = sizeof handle,
        .type = GPUMEM_HANDLE_POSIX_FD,
        .descriptor = fd,
        .location = (gpumem_location)described->location,
        .numa_node = described->numa_node,
    };
    memcpy(handle.uuid, described->pool, sizeof handle.uuid);
    struct gm_shared_pool *made = calloc(1, sizeof *made);
    if (!made)
        return gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for an import");
    gpumem_status status = gm_pool_map(device, &handle, 1, &made->resource);
    if (status != GPUMEM_OK) {
        free(made);
        return status;
    }
    if (peer)
        made->peer = *peer;
    memcpy(made->uuid, described->pool, sizeof made->uuid);
    made->location = handle.location;
    made->next = device->shared.pools;
    device->shared.pools = made;
    *pool = made;
    return GPUMEM_OK;
}

/* Drops a reference; `making` is held. */
static void release_pool(gpumem_device *device, struct gm_shared_pool *pool) {
    if (--pool->references)
        return;
    struct gm_shared_pool **at = &device->shared.pools;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    struct gm_error_record saved;
    gm_error_save(&saved);
    gm_resource_discard(pool->resource);
    gm_error_restore(&saved);
    free(pool);
}

/* ---- The hidden resource that the buffers belong to ------------------------------------------ */

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    (void)user;
    (void)request;
    (void)allocation;
    return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "imported memory is received, not allocated");
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    gpumem_device *device = user;
    (void)stream; /* the memory is no longer in use: this resource is not stream-ordered */
    struct pool_import *import = allocation->cookie;
    pthread_mutex_lock(&making);
    gm_pool_import_end(gm_pool_of(import->pool->resource), import->base);
    release_pool(device, import->pool);
    pthread_mutex_unlock(&making);
    free(import);
}

static void properties(void *user, gpumem_resource_properties *out) {
    (void)user;
    out->device_accessible = 1;
}

static const gpumem_resource_ops ops = {
    .size = sizeof ops,
    .kind = "imported pool",
    .allocate = allocate,
    .deallocate = deallocate,
    .properties = properties,
};

static const struct gm_hidden_kind kind = {.ops = &ops};

/* ---- Buffers --------------------------------------------------------------------------------- */

static gpumem_status import_locked(gpumem_device *device,
                                   const struct gm_pool_description *described, int fd,
                                   const struct gm_peer *peer, struct pool_import *import) {
    gpumem_pool_share_buffer shared = {
        .size = sizeof shared, .bytes = described->bytes, .offset = described->offset};
    memcpy(shared.pool, described->pool, sizeof shared.pool);
    memcpy(shared.data, described->data, sizeof shared.data);
    struct gm_shared_pool *pool = find(device, peer, described);
    gpumem_status status = GPUMEM_OK;
    if (!pool)
        status = map_pool(device, peer, described, fd, &pool);
    if (status != GPUMEM_OK)
        return status;
    pool->references++;
    import->pool = pool;
    status = gm_pool_import(gm_pool_of(pool->resource), &shared, &import->base);
    if (status != GPUMEM_OK)
        release_pool(device, pool);
    return status;
}

static void attach(gpumem_buffer *buffer, const struct gm_pool_description *described,
                   struct pool_import *import) {
    CUdeviceptr pointer = import->base + described->offset;
    int host = gm_pool_of(import->pool->resource)->settings.host;
    const gpumem_allocation allocation = {
        .pointer = pointer,
        .host_pointer = host ? (void *)(uintptr_t)pointer : NULL,
        .bytes = (size_t)described->bytes,
        .committed_bytes = (size_t)(described->offset + described->bytes),
        .capacity = (size_t)described->bytes,
        .cookie = import,
    };
    gm_buffer_attach(buffer, &allocation);
}

/* The driver sets access for the whole pool. */
static gpumem_status check_terms(const struct gm_import_terms *terms) {
    if (terms->access != GPUMEM_ACCESS_READ_WRITE)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED, "memory of a pool cannot be imported read-only");
    if (terms->capacity)
        return gm_fail(GPUMEM_ERROR_NOT_SUPPORTED,
                       "memory of a pool does not grow: import it without a capacity");
    return GPUMEM_OK;
}

gpumem_status gm_import_pool_map(gpumem_device *device, const struct gm_pool_description *described,
                                 int fd, const struct gm_import_terms *terms,
                                 gpumem_buffer **buffer) {
    gpumem_resource *resource;
    gpumem_buffer *made = NULL;
    gpumem_status status = check_terms(terms);
    if (status == GPUMEM_OK)
        status = gm_resource_hidden(device, GM_HIDDEN_IMPORTED_POOL, &kind, &resource);
    struct pool_import *import = status == GPUMEM_OK ? calloc(1, sizeof *import) : NULL;
    if (status == GPUMEM_OK && !import)
        status = gm_fail(GPUMEM_ERROR_OUT_OF_HOST_MEMORY, "no memory for an import");
    if (status == GPUMEM_OK)
        status = gm_buffer_make(resource, NULL, &made);
    if (status == GPUMEM_OK) {
        pthread_mutex_lock(&making);
        status = import_locked(device, described, fd, terms->peer, import);
        pthread_mutex_unlock(&making);
        if (status != GPUMEM_OK)
            gm_buffer_discard(made);
    }
    if (status != GPUMEM_OK) {
        free(import);
        return status;
    }
    attach(made, described, import);
    *buffer = made;
    return GPUMEM_OK;
}
