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
    check_message("limiting resource", "cuMemCreate", "bytes free; ");
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(cache, 10 * MIB, NULL, &none));
    check_message("caching resource", "cuMemCreate", "bytes free; ");
    FAILS(OUT_OF_MEMORY, gpumem_buffer_grow(growing, 12 * MIB, NULL));
    check_message("limiting resource", "cuMemCreate", "bytes free; ");
    assert_true(soft->fault_disarm() > 0);
    DESTROY(growing, cache, limited, memory);
}

/* Memory by hand and imports, a call of the driver refused for each. */
static gpumem_physical *memory, *second;
static gpumem_reservation *place;
static gpumem_mapping *mapped;
static gpumem_export *exported;
static int descriptor = -1;

static gpumem_status create_physical(void) {
    gpumem_physical *none;
    return gpumem_physical_create(device, 10 * MIB, NULL, &none);
}
static gpumem_status import_physical(void) {
    gpumem_physical *none;
    return physical_import_fd(device, descriptor, 10 * MIB, &none);
}
static gpumem_status reserve(void) {
    gpumem_reservation *none;
    return gpumem_reservation_create(device, 10 * MIB, NULL, &none);
}
static gpumem_status map(void) {
    gpumem_mapping *none;
    return gpumem_mapping_create(place, 10 * MIB, second, &none);
}
static gpumem_status set_access(void) {
    return mapping_set_access(mapped, 0, GPUMEM_ACCESS_READ);
}
static gpumem_status import_buffer(void) {
    const void *description = NULL;
    size_t bytes = 0;
    gpumem_buffer *none;
    OK(export_description(exported, &description, &bytes));
    OK(export_descriptor(exported, 0, &descriptor));
    return gpumem_import_create(device, description, bytes, &descriptor, 1, NULL, &none);
}

TEST(memory_by_hand_and_imports_say_it_too) {
    static const struct {
        gpumem_status (*make)(void);
        const char *call, *advice;
    } steps[] = {
        {create_physical, "cuMemCreate", "bytes free; "},
        {import_physical, "cuMemImportFromShareableHandle", "bytes free; "},
        {reserve, "cuMemAddressReserve", "addresses are short, not memory"},
        {map, "cuMemMap", "bytes free; "},
        {set_access, "cuMemSetAccess", "bytes free; "},
        {import_buffer, "cuMemImportFromShareableHandle", "bytes free; "},
        {import_buffer, "cuMemMap", "bytes free; "},
    };
    gpumem_resource *resource = NEW_VIRTUAL(.handle_type = GPUMEM_HANDLE_POSIX_FD);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 10 * MIB);
    OK(gpumem_export_create(buffer, &exported));
    OK(gpumem_physical_create(
        device, 10 * MIB, GPUMEM_PHYSICAL_OPTIONS(.handle_type = GPUMEM_HANDLE_POSIX_FD), &memory));
    OK(gpumem_physical_create(device, 10 * MIB, NULL, &second));
    OK(physical_export_fd(memory, &descriptor));
    OK(gpumem_reservation_create(device, 20 * MIB, NULL, &place));
    OK(gpumem_mapping_create(place, 0, memory, &mapped));
    int own = descriptor;
    for (size_t i = 0; i < COUNT(steps); i++) {
        soft->fault_arm(steps[i].call, 0, CUDA_ERROR_OUT_OF_MEMORY, SOFTGPU_FAULT_BEFORE);
        check_status(steps[i].make(), GPUMEM_ERROR_OUT_OF_MEMORY, steps[i].call, __FILE__,
                     __LINE__);
        assert_true(soft->fault_disarm() > 0);
        check_message("device", steps[i].call, steps[i].advice);
    }
    close(own);
    OK(gpumem_mapping_destroy(mapped));
    OK(gpumem_physical_destroy(memory));
    OK(gpumem_physical_destroy(second));
    OK(gpumem_reservation_destroy(place));
    OK(gpumem_export_destroy(exported));
    DESTROY(buffer, resource);
}
