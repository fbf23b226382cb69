/* Slabs of pinned host memory: made fast, divided by base/spans. */
#ifndef GM_MEMORY_PINNED_SLAB_H
#define GM_MEMORY_PINNED_SLAB_H

#include "base/spans.h"
#include "memory/core/objects.h"

/* Slabs begin at multiples of this, the size of a huge page, and end at them where possible. */
#define GM_SLAB_UNIT ((size_t)2 << 20)

struct gm_slab_settings {
    gpumem_pinned_method method; /* REGISTERED or ALLOCATED */
    unsigned flags;              /* GPUMEM_PINNED_* */
    int numa_bind, numa_node;
    unsigned threads; /* 0: as measured (memory/pinned/touch_calibration.h) */
    int reserved_huge_pages;
};

struct gm_slab {
    void *base;
    size_t bytes;
    CUdeviceptr device_base;
    int registered;   /* or allocated by the driver */
    int huge;         /* in reserved huge pages */
    char reason[160]; /* why not, if requested */
    struct gm_spans spans;
    struct gm_slab *next;
};

/* `bytes` is a multiple of the page size. The device's context is current. */
gpumem_status gm_slab_create(gpumem_device *device, const struct gm_slab_settings *settings,
                             size_t bytes, struct gm_slab **slab);

/* All pieces must be free. 0, or -1 if the driver refused: it then stays mapped. */
int gm_slab_destroy(gpumem_device *device, struct gm_slab *slab);

/* The CPUs that this thread may use, at most 16: more threads do not pin faster. */
unsigned gm_slab_default_threads(void);

#endif
