#include "softgpu/managed/pages.h"

#include "base/growing_array.h"

#include <stdlib.h>
#include <string.h>

bool sg_pages_begin(struct sg_pages *pages, CUdeviceptr start, size_t size) {
    size_t count = (size + SG_MANAGED_PAGE - 1) / SG_MANAGED_PAGE;
    *pages = (struct sg_pages){.start = start, .count = count, .run_count = 1, .run_room = 1};
    pages->runs = calloc(1, sizeof *pages->runs);
    if (!pages->runs)
        return false;
    pages->runs[0].end = count;
    return true;
}

void sg_pages_end(struct sg_pages *pages) {
    free(pages->runs);
    *pages = (struct sg_pages){0};
}

/* An edit splits at most two runs. */
bool sg_pages_promise(struct sg_pages *pages) {
    if (!GM_RESERVE(pages->runs, pages->run_room, pages->run_count + 2 * (pages->promised + 1)))
        return false;
    pages->promised++;
    return true;
}

void sg_pages_unpromise(struct sg_pages *pages) {
    pages->promised--;
}

/* The run that holds the page. */
static size_t run_at(const struct sg_pages *pages, size_t page) {
    size_t low = 0, high = pages->run_count - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pages->runs[middle].end > page)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The run that begins with the page, split off from what precedes it. */
static size_t cut(struct sg_pages *pages, size_t page) {
    if (page == pages->count)
        return pages->run_count;
    size_t at = run_at(pages, page);
    if (page == (at > 0 ? pages->runs[at - 1].end : 0))
        return at;
    struct sg_page_run *run = &pages->runs[at];
    memmove(run + 1, run, (pages->run_count - at) * sizeof *run);
    pages->run_count++;
    run->end = page;
    return at + 1;
}

/* Member by member, because of the padding. */
static bool equal(const struct sg_page_facts *a, const struct sg_page_facts *b) {
    return a->read_mostly == b->read_mostly && a->accessed_by == b->accessed_by &&
           a->preferred.type == b->preferred.type && a->preferred.id == b->preferred.id &&
           a->prefetched.type == b->prefetched.type && a->prefetched.id == b->prefetched.id;
}

static void join(struct sg_pages *pages) {
    size_t last = 0;
    for (size_t i = 1; i < pages->run_count; i++) {
        if (!equal(&pages->runs[last].facts, &pages->runs[i].facts))
            last++;
        pages->runs[last] = pages->runs[i];
    }
    pages->run_count = last + 1;
}

static size_t page_of(const struct sg_pages *pages, CUdeviceptr address) {
    return (size_t)(address - pages->start) / SG_MANAGED_PAGE;
}

void sg_pages_edit(struct sg_pages *pages, CUdeviceptr address, size_t size, sg_page_edit *edit,
                   const void *user) {
    pages->promised--;
    size_t first = cut(pages, page_of(pages, address));
    size_t end = cut(pages, page_of(pages, address + size - 1) + 1);
    for (size_t i = first; i < end; i++)
        edit(&pages->runs[i].facts, user);
    join(pages);
}

void sg_pages_look(const struct sg_pages *pages, CUdeviceptr address, size_t size,
                   sg_page_look *look, void *user) {
    size_t last = page_of(pages, address + size - 1);
    for (size_t i = run_at(pages, page_of(pages, address)); i < pages->run_count; i++) {
        look(&pages->runs[i].facts, user);
        if (pages->runs[i].end > last)
            return;
    }
}
