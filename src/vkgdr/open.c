/* Opening and closing a GPU. */
#include "base/cancel.h"
#include "base/fork.h"
#include "vkgdr/internal.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- The CUDA driver ------------------------------------------------------------------------- */

/* One for the process, kept until it ends. */
static gpumem_driver *opened;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
/* The process that tried first; 0 if none. Read before taking the lock, which another thread of the
 * parent may have held at the fork. */
static atomic_uint opened_in;

static bool enter_process(void) {
    gm_fork_watch();
    unsigned none = 0, here = gm_fork_generation();
    if (atomic_compare_exchange_strong(&opened_in, &none, here) || none == here)
        return true;
    gm_vkgdr_error_set("vkgdr_open: the parent of this process has used it, and neither driver "
                       "works in a forked child");
    return false;
}

static const gpumem_driver_api *open_driver(void) {
    pthread_mutex_lock(&opening);
    gpumem_status status = opened ? GPUMEM_OK : gpumem_driver_open(NULL, &opened);
    gpumem_driver *driver = opened;
    pthread_mutex_unlock(&opening);
    if (status == GPUMEM_OK)
        return gpumem_driver_table(driver);
    gm_vkgdr_error_set("%s", gpumem_last_error()->message);
    return NULL;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static bool check_flags(uint32_t flags) {
    const uint32_t known = VKGDR_OPEN_FORCE_NON_COHERENT_BIT | VKGDR_OPEN_REQUIRE_COHERENT_BIT |
                           VKGDR_OPEN_CURRENT_CONTEXT_BIT;
    if (flags & ~known) {
        gm_vkgdr_error_set("vkgdr_open: unknown flags 0x%x", flags & ~known);
        return false;
    }
    return true;
}

static bool find_uuid(struct vkgdr *g, bool current, CUuuid *uuid) {
    CUresult result = current ? g->cu->cuCtxGetDevice(&g->device) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        gm_vkgdr_error_cuda(g->cu, result, "cuCtxGetDevice");
        return false;
    }
    result = g->cu->cuDeviceGetUuid_v2(uuid, g->device);
    if (result == CUDA_SUCCESS)
        return true;
    gm_vkgdr_error_cuda(g->cu, result, "cuDeviceGetUuid");
    return false;
}

static bool open_vulkan(struct vkgdr *g, const CUuuid *uuid) {
    char reason[GM_VULKAN_REASON];
    struct gm_vulkan_type type;
    const unsigned char *bytes = (const unsigned char *)uuid->bytes;
    if (gm_vulkan_open(bytes, &g->vulkan, reason, sizeof reason) != GPUMEM_OK) {
        gm_vkgdr_error_vulkan(reason);
        return false;
    }
    if (gm_vulkan_choose(g->vulkan, g->flags, &type) != GPUMEM_OK) {
        gm_vkgdr_error_vulkan(NULL);
        gm_vulkan_close(g->vulkan);
        return false;
    }
    g->coherent = type.coherent;
    g->atom = type.coherent ? 1 : (size_t)type.atom;
    return true;
}

static bool fill(struct vkgdr *g, int device, uint32_t flags) {
    CUuuid uuid;
    g->cu = open_driver();
    if (!g->cu)
        return false;
    g->device = device;
    g->references = 1;
    g->generation = gm_fork_generation();
    if (flags & VKGDR_OPEN_FORCE_NON_COHERENT_BIT)
        g->flags |= GM_VULKAN_FORCE_NON_COHERENT;
    if (flags & VKGDR_OPEN_REQUIRE_COHERENT_BIT)
        g->flags |= GM_VULKAN_REQUIRE_COHERENT;
    return find_uuid(g, flags & VKGDR_OPEN_CURRENT_CONTEXT_BIT, &uuid) && open_vulkan(g, &uuid);
}

vkgdr_t vkgdr_open(int device, uint32_t flags) {
    GM_UNCANCELLED;
    gm_vkgdr_error_reset();
    if (!check_flags(flags) || !enter_process())
        return NULL;
    struct vkgdr *g = calloc(1, sizeof *g);
    if (!g || pthread_mutex_init(&g->lock, NULL) != 0) {
        free(g);
        gm_vkgdr_error_set("vkgdr_open: out of host memory");
        return NULL;
    }
    if (fill(g, device, flags))
        return g;
    pthread_mutex_destroy(&g->lock);
    free(g);
    return NULL;
}

/* ---- The end --------------------------------------------------------------------------------- */

bool gm_vkgdr_ours(const struct vkgdr *g) {
    return g->generation == gm_fork_generation();
}

void gm_vkgdr_hold(struct vkgdr *g) {
    pthread_mutex_lock(&g->lock);
    g->references++;
    pthread_mutex_unlock(&g->lock);
}

void gm_vkgdr_release(struct vkgdr *g) {
    pthread_mutex_lock(&g->lock);
    bool last = --g->references == 0;
    pthread_mutex_unlock(&g->lock);
    if (!last)
        return;
    gm_vulkan_close(g->vulkan);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

void vkgdr_close(vkgdr_t g) {
    GM_UNCANCELLED;
    if (g && gm_vkgdr_ours(g))
        gm_vkgdr_release(g);
}

int gpumem_vkgdr_device(vkgdr_t g) {
    return g->device;
}
