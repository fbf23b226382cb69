/* Whole or nothing for pinned memory in reserved huge pages, the ways back from them included. */
#include "library_test.h"
#include "sweep.h"

#include "memory/huge_pages.h"

#include <sys/mman.h>

static gpumem_resource *resource;
static gpumem_buffer *buffer;

/* The reserve, of plain pages. */
static void *take_from_reserve(size_t bytes) {
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

static uint64_t quarantined(void *user) {
    (void)user;
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_library_get_stats(library, &stats));
    return stats.quarantined;
}

/* A refused cuCtxPopCurrent leaves the library's context current. */
static void settle(void *user) {
    (void)user;
    CUcontext context = NULL;
    while (cu->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
        cu->cuCtxPopCurrent_v2(&context);
    OK(gpumem_device_trim(device, 1)); /* slabs, and events that are kept */
}

static const char *last_message(void) {
    return gpumem_last_error()->message;
}

static int pin(void *user) {
    (void)user;
    return (int)gpumem_buffer_allocate(resource, 4 * MIB, NULL, &buffer);
}

static void unpin(void *user) {
    OK(gpumem_buffer_free(buffer, NULL));
    settle(user);
}

static void slabs_of_huge_pages_are_whole_or_nothing(void **state) {
    (void)state;
    gm_huge_for_tests(take_from_reserve, "");
    OK(gpumem_pinned_resource_create(device,
                                     GPUMEM_OPTIONS(gpumem_pinned_options, .slab_bytes = 4 * MIB,
                                                    .huge_pages = GPUMEM_HUGE_PAGES_RESERVED),
                                     &resource));
    sweep_run(&(struct sweep){.name = "pin reserved huge pages",
                              .act = pin,
                              .recover = settle,
                              .undo = unpin,
                              .may_succeed = true, /* by other pages */
                              .lost = quarantined,
                              .explain = last_message});
    OK(gpumem_resource_destroy(resource));
    gm_huge_for_tests(NULL, "");
}

static int begin(void **state) {
    if (open_device(state) != 0)
        return -1;
    sweep_with(soft);
    return make_host_memory_file();
}

/* After a sweep some objects are lost, so the device may be refused its close; the program ends. */
static int end(void **state) {
    (void)state;
    (void)gpumem_device_close(device);
    (void)gpumem_close(library);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(slabs_of_huge_pages_are_whole_or_nothing)};
    return cmocka_run_group_tests(tests, begin, end);
}
