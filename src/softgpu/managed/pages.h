/* What is known of each page of managed memory: advice, and where it was last prefetched to. */
#ifndef SG_MANAGED_PAGES_H
#define SG_MANAGED_PAGES_H

#include "softgpu/core/state.h"

#include <stddef.h>

/* Advice applies to pages of the CPU's size. */
#define SG_MANAGED_PAGE ((size_t)4096)

/* `accessed_by` has a bit for each device, and this one for the CPU. */
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
    /* Of a pool, which takes no advice: which locations have access, as in `accessed_by`. Else
     * NULL. */
    const uint32_t *opened_to;
};

/* No facts. False when out of memory. */
bool sg_pages_begin(struct sg_pages *pages, CUdeviceptr start, size_t size);
void sg_pages_end(struct sg_pages *pages);

/* Reserves room for one later edit, so that it cannot fail. False when out of memory. */
bool sg_pages_promise(struct sg_pages *pages);
/* Gives up such a reservation. */
void sg_pages_unpromise(struct sg_pages *pages);
/* Uses a reservation: calls `edit` with the facts of each run in the pages that [address, address +
 * size) touches; `edit` may change them. */
typedef void sg_page_edit(struct sg_page_facts *facts, const void *user);
void sg_pages_edit(struct sg_pages *pages, CUdeviceptr address, size_t size, sg_page_edit *edit,
                   const void *user);
/* Calls `look` for each run that those pages touch. */
typedef void sg_page_look(const struct sg_page_facts *facts, void *user);
void sg_pages_look(const struct sg_pages *pages, CUdeviceptr address, size_t size,
                   sg_page_look *look, void *user);

#endif
