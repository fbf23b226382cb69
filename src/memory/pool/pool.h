/* Pools of the driver (device or host; own, borrowed or another process's): the stream-ordered
 * resources. */
#ifndef GM_MEMORY_POOL_H
#define GM_MEMORY_POOL_H

#include "base/kept_file.h"
#include "memory/core/objects.h"

#include <gpumem/managed.h>
#include <gpumem/pinned.h>
#include <gpumem/pool.h>
#include <gpumem/pool_interop.h>

struct gm_pool_settings {
    const char *kind;
    CUmemoryPool pool;
    int own; /* destroyed with the resource */
    int host;
    int managed;
    int nowhere;      /* managed, without a preferred place */
    uint64_t maximum; /* of an own pool; 0: none */
    int mapped;       /* of another process */
    int hidden;       /* not listed: its buffers belong to another resource */
    int closed;       /* host memory that the device has no access to */
    gpumem_location location;
    int numa_node; /* of host memory; -1: the system's choice */
    gpumem_handle_type handle_type;
    int has_uuid;
    unsigned char uuid[16];
    char note[192];
};

/* An address of a mapped pool: the driver returns one address however often a buffer is imported,
 * and one free ends all, so the buffers at it are counted here. */
struct gm_pool_import {
    CUmemPoolPtrExportData data; /* the first import's data */
    CUdeviceptr base;
    size_t bytes, references;
    struct gm_pool_import *next;
};

struct gm_pool {
    gpumem_device *device;
    gpumem_resource *resource;
    struct gm_pool_settings settings; /* `has_uuid` and `uuid` of a mapped one under the lock */
    struct gm_bound bound;            /* `maximum` 0: none. `held`: bytes of buffers */
    pthread_mutex_t lock;             /* everything below, except the registry's part */
    CUstream stream;                  /* its own stream, for callers that name none; NULL until
                                       * needed */
    _Atomic uint64_t reserved_high;   /* of an own pool; the driver's can be reset */
    int exported;
    struct gm_kept_file descriptor;
    CUmemFabricHandle fabric;
    struct gm_pool_import *imports;
    int registered; /* under the registry's lock, and so is the rest */
    struct gm_pool *next;
};

/* A number that the driver has of it; 0 if it does not say. */
uint64_t gm_pool_number(const struct gm_pool *pool, CUmemPool_attribute which);

/* Counts the bytes of a buffer against the maximum, before the driver is called; and when the
 * driver has them back. */
static inline int gm_pool_has_room(struct gm_pool *pool, size_t bytes) {
    return !pool->bound.maximum || gm_bound_try(&pool->bound, bytes);
}

static inline void gm_pool_give_room(struct gm_pool *pool, size_t bytes) {
    if (pool->bound.maximum)
        gm_bound_give(&pool->bound, bytes);
}

/* There is no room: OUT_OF_CAPACITY. */
gpumem_status gm_pool_is_full(const struct gm_pool *pool, size_t bytes);

/* Whether the CPU may use its buffers. */
static inline int gm_pool_is_for_cpu(const struct gm_pool *pool) {
    return pool->settings.host || pool->settings.managed;
}

/* The beginning of the note of allocations that replace a pool of managed memory. */
#define GM_NO_MANAGED_POOL "allocations in place of a pool of managed memory: "

/* The beginning of the note of slabs that replace a host pool. */
#define GM_NO_HOST_POOL "slabs in place of the driver's host pool: "

/* The driver's alignment of allocations. */
#define GM_POOL_ALIGNMENT ((size_t)256)

/* Takes over the pool; an own one even on failure. */
gpumem_status gm_pool_resource(gpumem_device *device, const struct gm_pool_settings *settings,
                               gpumem_resource **resource);

/* cuMemPoolCreate with its threshold set; whole or nothing. */
gpumem_status gm_pool_create(gpumem_device *device, const CUmemPoolProps *props,
                             uint64_t release_threshold, CUmemoryPool *pool);

/* cuMemPoolDestroy after a failed call; the recorded error is kept. NULL is allowed. */
void gm_pool_discard(gpumem_device *device, CUmemoryPool pool);

/* Gives the device access to a pool of host memory, if it has none yet. */
gpumem_status gm_pool_open_to_device(gpumem_device *device, CUmemoryPool pool);

/* The pool of a pool resource, else NULL. */
struct gm_pool *gm_pool_of(const gpumem_resource *resource);

/* The same for public functions: reports why there is none. */
gpumem_status gm_pool_find(gpumem_resource *resource, const char *call, struct gm_pool **pool);

/* The pool of a buffer, also through the library's wrappers; else NULL. */
struct gm_pool *gm_pool_behind(const gpumem_buffer *buffer);

/* gpumem_pool_from_share_handle, with arguments that are not NULL. A hidden one is destroyed by
 * gm_resource_discard. */
gpumem_status gm_pool_map(gpumem_device *device, const gpumem_pool_share_handle *handle, int hidden,
                          gpumem_resource **resource);

/* Maps a buffer that another process has exported from a mapped pool, or counts one more at its
 * address; end it with gm_pool_import_end. DATA: not a buffer of the pool, or smaller than
 * claimed. */
gpumem_status gm_pool_import(struct gm_pool *pool, const gpumem_pool_share_buffer *shared,
                             CUdeviceptr *base);

/* The most that an own pool has ever held. No context is needed. */
uint64_t gm_pool_reserved_high(struct gm_pool *pool);

/* The pool's own stream, created at the first use. The device's context is current. */
gpumem_status gm_pool_stream(struct gm_pool *pool, CUstream *stream);

/* Lets its allocations and frees use the fast path, if it has one: pool_quick.c. */
void gm_pool_quicken(struct gm_pool *pool);

/* Handles a failure of `call` to provide the bytes: records the error, and frees memory that it
 * provided in spite of it. The device's context is current. */
gpumem_status gm_pool_refuse(const struct gm_pool *pool, CUresult result, const char *call,
                             size_t bytes, CUstream stream);
void gm_pool_undo(struct gm_pool *pool, CUdeviceptr made, size_t bytes, CUstream stream);

/* Handles the result of cuMemFreeAsync: defers memory that a capture keeps, and counts what is
 * lost. The device's context is current. */
void gm_pool_freed(struct gm_pool *pool, const gpumem_allocation *allocation, CUstream stream,
                   CUresult result);

/* A buffer of a mapped pool has ended: nothing uses it any more. */
void gm_pool_import_end(struct gm_pool *pool, CUdeviceptr base);

/* Makes the snapshot describe the pool and its imports. */
void gm_pool_describe(struct gm_pool *pool);

/* Who may use all of its memory. */
extern const struct gm_access_ops gm_pool_access;

/* Removes a pool that is destroyed from the registry. */
void gm_pool_unregister(struct gm_pool *pool);

/*
 * The resource of GPUMEM_PINNED_POOL. *absent is set, and nothing created, if the driver has no
 * such pools at all; the message says why. `options` are checked.
 */
gpumem_status gm_host_pool_create(gpumem_device *device, const gpumem_pinned_options *options,
                                  gpumem_resource **resource, int *absent);

/* The same for GPUMEM_MANAGED_POOL. */
gpumem_status gm_managed_pool_create(gpumem_device *device, const gpumem_managed_options *options,
                                     gpumem_resource **resource, int *absent);

/* What the place is in properties and attributes; ANYWHERE is the device. */
gpumem_location gm_managed_location(gpumem_managed_place preferred);

#endif
