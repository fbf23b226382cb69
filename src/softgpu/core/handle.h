/*
 * Handles: slot and generation, never an address. A stale, foreign or random value is recognized
 * and yields NULL instead of being dereferenced.
 *
 * Value: kind (8 bits) << 48 | generation (20 bits) << 28 | slot (24 bits) << 4. It is never 0, 1
 * or 2 (the special streams) and never a canonical heap address of this process.
 */
#ifndef SG_CORE_HANDLE_H
#define SG_CORE_HANDLE_H

#include "softgpu/core/site.h"

#include <stdbool.h>
#include <stdint.h>

enum sg_kind {
    SG_KIND_CONTEXT = 1,
    SG_KIND_STREAM,
    SG_KIND_EVENT,
    SG_KIND_POOL,
    SG_KIND_MEMORY, /* CUmemGenericAllocationHandle, of multicast objects too */
    SG_KIND_GRAPH,
    SG_KIND_NODE,
    SG_KIND_EXEC, /* CUgraphExec */
    SG_KIND_USER_OBJECT,
    SG_KIND_MODULE,
    SG_KIND_FUNCTION,
    SG_KIND_LIBRARY,
    SG_KIND_KERNEL,
    SG_KIND_LINK, /* CUlinkState */
    SG_KIND_ARRAY,
    SG_KIND_MIPMAP, /* CUmipmappedArray */
    SG_KIND_TEXTURE_REFERENCE,
    SG_KIND_SURFACE_REFERENCE,
    SG_KIND_TEXTURE_OBJECT,
    SG_KIND_SURFACE_OBJECT,
    SG_KIND_EXTERNAL_MEMORY,
    SG_KIND_EXTERNAL_SEMAPHORE,
    SG_KIND_GREEN_CONTEXT,
    SG_KIND_RESOURCE_DESCRIPTION, /* CUdevResourceDesc */
    SG_KIND_NOTIFICATION,         /* CUasyncCallbackHandle */
    SG_KIND_LOG_CALLBACK,
    SG_KIND_COUNT
};

/* All of these require the lock. */

/* A new handle for `object`, or 0 when out of memory. */
uint64_t sg_handle_new(enum sg_kind kind, void *object);

/* The object, or NULL if the value is not a live handle of this kind. */
void *sg_handle_get(enum sg_kind kind, uint64_t handle);

/* When and where it was created; all 0 if there is no such handle. */
struct sg_origin sg_handle_origin(uint64_t handle);

/* Ends the handle; later look-ups of the value return NULL. Unknown values are ignored. */
void sg_handle_drop(enum sg_kind kind, uint64_t handle);

/* Calls `visit` for each live handle of a kind, in the order in which slots were created. */
void sg_handle_each(enum sg_kind kind, void (*visit)(uint64_t handle, void *object, void *user),
                    void *user);

/* Live handles of a kind. */
uint64_t sg_handle_count(enum sg_kind kind);

/* A value that is never a handle of the kind: generations begin at 1. */
#define SG_HANDLE_DEAD(kind) ((uint64_t)(kind) << 48)

/* For opaque pointer types of the API. */
#define SG_HANDLE_VALUE(pointer)       ((uint64_t)(uintptr_t)(pointer))
#define SG_HANDLE_POINTER(type, value) ((type)(uintptr_t)(value))

#endif
