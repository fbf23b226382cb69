/* Whole or nothing for pinned memory in reserved huge pages, the ways back from them included. */
#include "library_sweeps.h"

#include "memory/host/huge_pages.h"

#include <sys/mman.h>

ALL_TESTS(begin_sweeps, end_sweeps);

static gpumem_resource *resource;
static gpumem_buffer *buffer;

/* The reserve, of plain pages. */
static void *take_from_reserve(size_t bytes) {
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

static int pin(void *user) {
    return (int)gpumem_buffer_allocate(resource, 4 * MIB, NULL, &buffer);
}

static void unpin(void *user) {
    OK(gpumem_buffer_free(buffer, NULL));
    settle(user);
}

TEST(allocating_slabs_of_huge_pages_is_all_or_nothing) {
    gm_huge_for_tests(take_from_reserve, "");
    resource = NEW_PINNED(.slab_bytes = 4 * MIB, .huge_pages = GPUMEM_HUGE_PAGES_RESERVED);
    sweep_act("pin reserved huge pages", pin, unpin, NULL); /* or other pages */
    OK(gpumem_resource_destroy(resource));
    gm_huge_for_tests(NULL, "");
}
