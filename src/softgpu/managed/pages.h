/* What is known of each page of managed memory: advice, and where it was last prefetched to. */
#ifndef SG_MANAGED_PAGES_H
#define SG_MANAGED_PAGES_H

#include "softgpu/core/state.h"

#include <stddef.h>

/* Advice is given for pages of the CPU's size. */
#define SG_MANAGED_PAGE ((size_t)4096)

/* A bit of `accessed_by` for each device, and this one for the CPU. */
#define SG_ACCESSED_BY_CPU (1u << 31)

struct sg_page_facts {
    bool read_mostly;
    uint32_t accessed_by;
    CUmemLocation preferred, prefetched; /* type CU_MEM_LOCATION_TYPE_INVALID for none */
};

/* A run of pages with the same facts, up to the page before `end`. */
struct sg_page_run {
    size_t end;
    struct sg_page_facts facts;
};

struct sg_pages {
    CUdeviceptr start;
    size_t count; /* of pages */
    struct sg_page_run *runs;
    size_t run_count, run_room;
    size_t promised;
    /* Of a pool, which takes no advice: whom it was opened to, as in `accessed_by`. Else NULL. */
    const uint32_t *opened_to;
};

/* No facts. False when out of memory. */
bool sg_pages_begin(struct sg_pages *pages, CUdeviceptr start, size_t size);
void sg_pages_end(struct sg_pages *pages);

/* Room for one edit to come, so that it cannot fail. False when out of memory. */
bool sg_pages_promise(struct sg_pages *pages);
/* For an edit that will not come. */
void sg_pages_unpromise(struct sg_pages *pages);
/* Keeps a promise: calls `edit` with the facts of each run in the pages that [address, address +
 * size) touches, which it may change. */
typedef void sg_page_edit(struct sg_page_facts *facts, const void *user);
void sg_pages_edit(struct sg_pages *pages, CUdeviceptr address, size_t size, sg_page_edit *edit,
                   const void *user);
/* Calls `look` for each run that those pages touch. */
typedef void sg_page_look(const struct sg_page_facts *facts, void *user);
void sg_pages_look(const struct sg_pages *pages, CUdeviceptr address, size_t size,
                   sg_page_look *look, void *user);

#endif
