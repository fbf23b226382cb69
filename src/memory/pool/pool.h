/* Pools of the driver, device or host, own, borrowed or another process's: the stream-ordered
 * resources. */
#ifndef GM_MEMORY_POOL_H
#define GM_MEMORY_POOL_H

#include "base/kept_file.h"
#include "memory/core/objects.h"

#include <gpumem/pool.h>

struct gm_pool_settings {
    const char *kind;
    CUmemoryPool pool;
    int own; /* destroyed with the resource */
    int host;
    int managed;
    int nowhere;      /* managed, and at no place of its own */
    uint64_t maximum; /* of an own pool; 0: none */
    int mapped;       /* of another process */
    int hidden;       /* listed nowhere: its buffers belong to another resource */
    int closed;       /* host memory that the device has no access to */
    gpumem_location location;
    int numa_node; /* of host memory; -1: the system's choice */
    gpumem_handle_type handle_type;
    int has_uuid;
    unsigned char uuid[16];
    char note[192];
};

/* An address of a mapped pool: the driver gives one address however often a buffer is imported, and
 * one free ends all, so that buffers over it are counted here. */
struct gm_pool_import {
    CUmemPoolPtrExportData data; /* what it was imported by first */
    CUdeviceptr base;
    size_t bytes, references;
    struct gm_pool_import *next;
};

struct gm_pool {
    gpumem_device *device;
    gpumem_resource *resource;
    struct gm_pool_settings settings; /* `has_uuid` and `uuid` of a mapped one under the lock */
    pthread_mutex_t lock;             /* everything below, but for the registry's part */
    CUstream stream;                  /* of its own, for callers that name none; NULL until then */
    int exported;
    struct gm_kept_file descriptor;
    CUmemFabricHandle fabric;
    struct gm_pool_import *imports;
    int registered; /* under the registry's lock, and so is the rest */
    struct gm_pool *next;
};

/* Whether the CPU may use its buffers. */
static inline int gm_pool_is_for_cpu(const struct gm_pool *pool) {
    return pool->settings.host || pool->settings.managed;
}

/* How the note of allocations begins that stand in for a pool of managed memory. */
#define GM_NO_MANAGED_POOL "allocations in place of a pool of managed memory: "

/* How the note of slabs begins that stand in for a host pool. */
#define GM_NO_HOST_POOL "slabs in place of the driver's host pool: "

/* What the driver aligns allocations to. */
#define GM_POOL_ALIGNMENT ((size_t)256)

/* Takes the pool over, an own one also on failure. */
gpumem_status gm_pool_resource(gpumem_device *device, const struct gm_pool_settings *settings,
                               gpumem_resource **resource);

/* cuMemPoolCreate with its threshold set; whole or nothing. */
gpumem_status gm_pool_create(gpumem_device *device, const CUmemPoolProps *props,
                             uint64_t release_threshold, CUmemoryPool *pool);

/* cuMemPoolDestroy of one that a call made in vain; the error on record stays. NULL is allowed. */
void gm_pool_discard(gpumem_device *device, CUmemoryPool pool);

/* Gives the device access to a pool of host memory, where it has none yet. */
gpumem_status gm_pool_open_to_device(gpumem_device *device, CUmemoryPool pool);

/* The pool of a resource that is one, else NULL. */
struct gm_pool *gm_pool_of(const gpumem_resource *resource);

/* The same for the public door: says why there is none. */
gpumem_status gm_pool_find(gpumem_resource *resource, const char *call, struct gm_pool **pool);

/* The pool that a buffer is of, also through the library's wrappers; else NULL. */
struct gm_pool *gm_pool_behind(const gpumem_buffer *buffer);

/* gpumem_pool_from_share_handle, once its arguments are known to be there. One that is hidden is
 * given back by gm_resource_discard. */
gpumem_status gm_pool_map(gpumem_device *device, const gpumem_pool_share_handle *handle, int hidden,
                          gpumem_resource **resource);

/* Maps what another process has exported of a mapped pool, or counts one more over it: to be ended
 * by gm_pool_import_end. DATA for what is no buffer of the pool, or not as large as it says. */
gpumem_status gm_pool_import(struct gm_pool *pool, const gpumem_pool_share_buffer *shared,
                             CUdeviceptr *base);

/* The pool's own stream, made at the first use. The device's context is current. */
gpumem_status gm_pool_stream(struct gm_pool *pool, CUstream *stream);

/* Allocations and frees of it may go the short way, where it has one: pool_quick.c. */
void gm_pool_quicken(struct gm_pool *pool);

/* What follows when `call` did not give the bytes: the error; and the memory that it gave in spite
 * of that goes back. The device's context is current. */
gpumem_status gm_pool_refuse(const struct gm_pool *pool, CUresult result, const char *call,
                             size_t bytes, CUstream stream);
void gm_pool_undo(struct gm_pool *pool, CUdeviceptr made, size_t bytes, CUstream stream);

/* What follows from the answer of cuMemFreeAsync: memory that a capture keeps is put off, and what
 * is lost is counted. The device's context is current. */
void gm_pool_freed(struct gm_pool *pool, const gpumem_allocation *allocation, CUstream stream,
                   CUresult result);

/* A buffer of a mapped pool came to its end: nothing uses it any more. */
void gm_pool_import_end(struct gm_pool *pool, CUdeviceptr base);

/* Has the snapshot tell what the pool is, and what of others it has mapped. */
void gm_pool_describe(struct gm_pool *pool);

/* Takes a pool that ends out of the registry. */
void gm_pool_unregister(struct gm_pool *pool);

/*
 * The resource of GPUMEM_PINNED_POOL. *absent is set, and nothing made, where the driver has no
 * such pools at all; the message says why. `options` are checked.
 */
gpumem_status gm_host_pool_create(gpumem_device *device, const gpumem_pinned_options *options,
                                  gpumem_resource **resource, int *absent);

/* The same for GPUMEM_MANAGED_POOL. */
gpumem_status gm_managed_pool_create(gpumem_device *device, const gpumem_managed_options *options,
                                     gpumem_resource **resource, int *absent);

#endif
