/* A snapshot under a driver that fails: it is told, without what the driver does not tell, and
 * changes nothing. */
#include "json_reader.h"
#include "library_test.h"
#include "sweep.h"

struct held {
    gpumem_resource *pool, *pinned, *virtual, *cache;
    gpumem_buffer *buffers[4];
    size_t taken, wrong;
};

static int act(void *user) {
    struct held *held = user;
    char *text = NULL;
    held->taken++;
    gpumem_status status = gpumem_snapshot(device, NULL, &text);
    if (status != GPUMEM_OK || !json_is_valid(text) ||
        json_count(json_find(text, "devices.0.resources")) != 4 ||
        json_count(json_find(text, "devices.0.virtual_memory.mappings")) != 1)
        held->wrong++;
    free(text);
    return 0;
}

/* A refused cuCtxPopCurrent leaves the library's context current. */
static void pop_contexts(void *user) {
    (void)user;
    CUcontext context = NULL;
    while (cu->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
        cu->cuCtxPopCurrent_v2(&context);
}

static void a_driver_that_fails_is_told_of(void **state) {
    (void)state;
    struct held held = {0};
    OK(gpumem_device_pool_resource_create(device, NULL, &held.pool));
    OK(gpumem_pinned_resource_create(device, GPUMEM_PINNED_OPTIONS(.slab_bytes = 2 * MIB),
                                     &held.pinned));
    OK(gpumem_virtual_resource_create(device, NULL, &held.virtual));
    OK(gpumem_caching_resource_create(held.pinned, NULL, &held.cache));
    gpumem_resource *const all[] = {held.pool, held.pinned, held.virtual, held.cache};
    for (size_t i = 0; i < COUNT(all); i++)
        OK(gpumem_buffer_allocate(all[i], 10000, NULL, &held.buffers[i]));
    struct sweep sweep = {
        .name = "snapshot", .act = act, .undo = pop_contexts, .may_succeed = true, .user = &held};
    sweep_with(soft);
    sweep_run(&sweep);
    assert_true(held.taken > 10);
    assert_int_equal(held.wrong, 0);
    for (size_t i = 0; i < COUNT(all); i++)
        OK(gpumem_buffer_free(held.buffers[i], NULL));
    for (size_t i = COUNT(all); i-- > 0;)
        OK(gpumem_resource_destroy(all[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_driver_that_fails_is_told_of, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
