/* Whatever runs out of memory says it in one form: the request, the driver's answer, what is free,
 * what to do. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

/* What each makes; the call of the driver that is refused for it. */
static gpumem_resource *pool(void) {
    return new_own_pool();
}
static gpumem_resource *virtual_memory(void) {
    return NEW_VIRTUAL();
}
static gpumem_resource *managed(void) {
    return NEW_MANAGED();
}
static gpumem_resource *managed_pool(void) {
    return NEW_MANAGED(.method = GPUMEM_MANAGED_POOL);
}
static gpumem_resource *pinned(void) {
    return NEW_PINNED(.method = GPUMEM_PINNED_ALLOCATED);
}
static gpumem_resource *registered(void) {
    return NEW_PINNED();
}
static gpumem_resource *host_pool(void) {
    return NEW_PINNED(.method = GPUMEM_PINNED_POOL);
}

static const struct {
    gpumem_resource *(*make)(void);
    const char *call, *kind;
    gpumem_status status;
    const char *advice;
} cases[] = {
    {pool, "cuMemAllocFromPoolAsync", "device_pool resource", GPUMEM_ERROR_OUT_OF_MEMORY,
     "bytes free; free or shrink buffers"},
    {virtual_memory, "cuMemCreate", "virtual resource", GPUMEM_ERROR_OUT_OF_MEMORY,
     "bytes free; free or shrink buffers"},
    {virtual_memory, "cuMemAddressReserve", "virtual resource", GPUMEM_ERROR_OUT_OF_MEMORY,
     "addresses are short, not memory: ask for less capacity"},
    {managed, "cuMemAllocManaged", "managed resource", GPUMEM_ERROR_OUT_OF_MEMORY,
     "bytes free; free or shrink buffers"},
    {managed_pool, "cuMemAllocFromPoolAsync", "managed_pool resource", GPUMEM_ERROR_OUT_OF_MEMORY,
     "bytes free; free or shrink buffers"},
    {pinned, "cuMemHostAlloc", "pinned resource", GPUMEM_ERROR_OUT_OF_HOST_MEMORY,
     "the host can give "},
    {registered, "cuMemHostRegister_v2", "pinned resource", GPUMEM_ERROR_OUT_OF_HOST_MEMORY,
     "the host can give "},
    {host_pool, "cuMemAllocFromPoolAsync", "pinned_pool resource", GPUMEM_ERROR_OUT_OF_HOST_MEMORY,
     "the host can give "},
};

static void check_message(const char *kind, const char *call, const char *advice) {
    char request[64], answer[80];
    snprintf(request, sizeof request, "%zu bytes from the %s: ", 10 * MIB, kind);
    SAYS(request);
    snprintf(answer, sizeof answer, "%.*s answered CUDA_ERROR_OUT_OF_MEMORY",
             (int)strcspn(call, "_"), call);
    SAYS(answer);
    SAYS(advice);
    assert_string_equal(strstr(gpumem_last_error()->message, request),
                        gpumem_last_error()->message);
    assert_null(strstr(gpumem_last_error()->message + 1, request)); /* once */
    int memory = strcmp(call, "cuMemAddressReserve") != 0;
    assert_int_equal(strstr(gpumem_last_error()->message, "bytes free") != NULL,
                     memory && !strstr(advice, "host"));
}

TEST(every_resource_without_memory_says_it_in_one_form) {
    for (size_t i = 0; i < COUNT(cases); i++) {
        gpumem_resource *resource = cases[i].make();
        gpumem_buffer *none = NULL;
        soft->fault_arm(cases[i].call, 0, CUDA_ERROR_OUT_OF_MEMORY, SOFTGPU_FAULT_BEFORE);
        check_status(gpumem_buffer_allocate(resource, 10 * MIB, NULL, &none), cases[i].status,
                     cases[i].kind, __FILE__, __LINE__);
        assert_true(soft->fault_disarm() > 0);
        check_message(cases[i].kind, cases[i].call, cases[i].advice);
        OK(gpumem_resource_destroy(resource));
    }
}

/* Also where a wrapper was asked, and for the rest of a buffer. */
TEST(wrappers_and_growth_name_the_request) {
    gpumem_resource *memory = NEW_VIRTUAL(), *limited = NEW_LIMIT(memory, GIB);
    gpumem_resource *cache = NEW_CACHING(memory);
    gpumem_buffer *none, *growing = NEW_BUFFER_WITH(limited, 2 * MIB, .capacity = 64 * MIB);
    soft->fault_arm("cuMemCreate", 0, CUDA_ERROR_OUT_OF_MEMORY, SOFTGPU_FAULT_BEFORE);
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(limited, 10 * MIB, NULL, &none));
    check_message("limit resource", "cuMemCreate", "bytes free; ");
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(cache, 10 * MIB, NULL, &none));
    check_message("caching resource", "cuMemCreate", "bytes free; ");
    FAILS(OUT_OF_MEMORY, gpumem_buffer_grow(growing, 12 * MIB, NULL));
    check_message("limit resource", "cuMemCreate", "bytes free; ");
    assert_true(soft->fault_disarm() > 0);
    DESTROY(growing, cache, limited, memory);
}

TEST(physical_memory_made_by_hand_says_it_too) {
    gpumem_physical *none = NULL;
    soft->fault_arm("cuMemCreate", 0, CUDA_ERROR_OUT_OF_MEMORY, SOFTGPU_FAULT_BEFORE);
    FAILS(OUT_OF_MEMORY, gpumem_physical_create(device, 10 * MIB, NULL, &none));
    assert_true(soft->fault_disarm() > 0);
    check_message("device", "cuMemCreate", "bytes free; ");
}
