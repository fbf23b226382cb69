/* Internals of libvkgdr.so.1: the open GPU, memory shared by Vulkan and CUDA, slabs, the thread's
 * error. */
#ifndef GM_VKGDR_INTERNAL_H
#define GM_VKGDR_INTERNAL_H

#include "base/error.h"
#include "vulkan/device.h"

#include <gpumem/driver.h>
#include <pthread.h>
#include <stdbool.h>
#include <vkgdr.h>

/* ---- The thread's error: error.c ------------------------------------------------------------- */

void gm_vkgdr_error_reset(void);

/* A sentence. */
void gm_vkgdr_error_set(const char *format, ...) GM_PRINTF(1, 2);

/* "<call> failed (<name>)" for a result of the CUDA driver. */
void gm_vkgdr_error_cuda(const gpumem_driver_api *cu, CUresult result, const char *call);

/* Records the failure of a function of vulkan/device.h; `reason` is that of gm_vulkan_open,
 * otherwise NULL. */
void gm_vkgdr_error_vulkan(const char *reason);

/* ---- Contexts -------------------------------------------------------------------------------- */

/* A context by handle and number, because handles of destroyed contexts are reused. */
struct gm_vkgdr_context {
    CUcontext handle;
    unsigned long long id; /* 0 with a driver older than 12.0 */
};

/* The current context; `handle` is NULL if there is none. */
struct gm_vkgdr_context gm_vkgdr_context_current(const gpumem_driver_api *cu);
bool gm_vkgdr_context_same(struct gm_vkgdr_context one, struct gm_vkgdr_context other);

/* ---- Blocks: block.c ------------------------------------------------------------------------- */

/* Memory that Vulkan allocated and mapped, imported into a context. */
struct gm_vkgdr_block {
    struct gm_vulkan_memory *memory;
    unsigned char *host;
    CUexternalMemory external;
    CUdeviceptr device;
    struct gm_vkgdr_context context;
};

/* Creates one of at least `size` bytes in the current context. All or nothing; a failure sets the
 * thread's error. */
bool gm_vkgdr_block_make(struct vkgdr *g, size_t size, struct gm_vkgdr_context context,
                         struct gm_vkgdr_block *block);

/* Waits for queued work, as cuMemFree does. If its context is not current, CUDA's side remains
 * until that context ends. */
void gm_vkgdr_block_end(const struct vkgdr *g, struct gm_vkgdr_block *block);

/* The number of objects that a CUDA driver refused, or could not be asked, to take back in this
 * process. For tests. */
size_t gm_vkgdr_lost(void);

/* ---- Slabs: slab.c --------------------------------------------------------------------------- */

#define GM_VKGDR_SLAB  ((size_t)2 << 20)
#define GM_VKGDR_UNIT  ((size_t)256) /* alignment; at least that of CUDA's own allocations */
#define GM_VKGDR_SMALL ((size_t)256 << 10)

struct gm_vkgdr_slab;

/* Allocates bytes of a slab for the context, from a new slab if necessary. NULL: the thread's error
 * is set. */
struct gm_vkgdr_slab *gm_vkgdr_slab_take(struct vkgdr *g, size_t size,
                                         struct gm_vkgdr_context context, size_t *offset);

/* Frees them. Waits for queued work, so that bytes which the GPU still uses are not handed out. */
void gm_vkgdr_slab_give(struct vkgdr *g, struct gm_vkgdr_slab *slab, size_t offset, size_t size);

struct gm_vkgdr_block *gm_vkgdr_slab_block(struct gm_vkgdr_slab *slab);

/* ---- The open GPU: open.c -------------------------------------------------------------------- */

struct vkgdr {
    struct gm_vulkan *vulkan;
    const gpumem_driver_api *cu;
    CUdevice device;
    unsigned flags; /* GM_VULKAN_* */
    bool coherent;
    size_t atom;         /* 1 for coherent memory */
    unsigned generation; /* of the process: base/fork.h */

    pthread_mutex_t lock;
    size_t references; /* the caller's reference, and one for each allocation */
    struct gm_vkgdr_slab *slabs;
};

void gm_vkgdr_hold(struct vkgdr *g);
void gm_vkgdr_release(struct vkgdr *g);

/* Whether this process opened it. A forked child must not touch it, its lock included. */
bool gm_vkgdr_ours(const struct vkgdr *g);

struct vkgdr_memory {
    struct vkgdr *owner;
    struct gm_vkgdr_slab *slab; /* NULL: it has a block of its own */
    struct gm_vkgdr_block block;
    size_t offset; /* in the slab's block, or 0 */
    size_t size;
};

#endif
