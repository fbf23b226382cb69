/* Whole or nothing for managed memory in use, its pools, who may use a pool, and graph memory. */
#include "library_sweeps.h"

static gpumem_resource *resource;
static gpumem_buffer *buffer;
static CUstream stream;

static void sweep(const char *name, int (*act)(void *), void (*undo)(void *)) {
    sweep_act(name, act, undo, NULL);
}

static int make(gpumem_managed_method method, gpumem_pool_choice pool) {
    resource = NULL;
    return (int)gpumem_managed_resource_create(
        device, GPUMEM_MANAGED_OPTIONS(.method = method, .pool = pool), &resource);
}

static int take(void) {
    return (int)gpumem_buffer_allocate(resource, MIB, GPUMEM_BUFFER_OPTIONS(.stream = stream),
                                       &buffer);
}

static void end_all(void *user) {
    OK(gpumem_buffer_free(buffer, NULL));
    settle(user);
    OK(gpumem_resource_destroy(resource));
    settle(user);
}

/* What was told of pages ends with their allocation, so this is whole or nothing with it. */
static int give_up(int result) {
    if (result)
        (void)gpumem_buffer_free(buffer, NULL);
    return result;
}

static int use_a_range(void *user) {
    gpumem_managed_range range = {.size = sizeof range};
    int result = take();
    if (result)
        return result;
    result = (int)gpumem_buffer_advise(buffer, 0, MIB, GPUMEM_ADVICE_SET_READ_MOSTLY,
                                       GPUMEM_LOCATION_DEVICE, 0);
    if (!result)
        result = (int)gpumem_buffer_prefetch(buffer, 0, MIB, GPUMEM_LOCATION_DEVICE, 0, stream);
    if (!result)
        result = (int)gpumem_buffer_discard(buffer, 0, MIB / 2, NULL, stream);
    if (!result)
        result = (int)gpumem_buffer_discard(buffer, 0, MIB,
                                            GPUMEM_DISCARD_OPTIONS(.prefetch = true,
                                                                   .location = GPUMEM_LOCATION_HOST,
                                                                   .ordinal_or_node = 0),
                                            stream);
    if (!result)
        result = (int)gpumem_buffer_get_managed_range(buffer, 0, MIB, &range);
    return give_up(result);
}

static void free_it(void *user) {
    OK(gpumem_buffer_free(buffer, NULL));
    settle(user);
}

TEST(failed_advice_prefetch_and_discard_leak_nothing) {
    assert_int_equal(make(GPUMEM_MANAGED_ALLOCATED, GPUMEM_POOL_CURRENT), 0);
    sweep("advise, prefetch, discard and ask", use_a_range, free_it);
    OK(gpumem_resource_destroy(resource));
}

static int make_and_take(gpumem_pool_choice choice) {
    int result = make(GPUMEM_MANAGED_POOL, choice);
    if (result)
        return result;
    result = take();
    if (result)
        (void)gpumem_resource_destroy(resource);
    return result;
}

static int from_the_current_pool(void *user) {
    return make_and_take(GPUMEM_POOL_CURRENT);
}

static int from_an_own_pool(void *user) {
    return make_and_take(GPUMEM_POOL_OWN);
}

TEST(allocating_from_managed_pools_is_all_or_nothing) {
    assert_int_equal(from_the_current_pool(NULL), 0); /* it is made when it is first asked for */
    end_all(NULL);
    sweep("allocate from the current pool", from_the_current_pool, end_all);
    sweep("allocate from an own pool", from_an_own_pool, end_all);
}

/* ---- Who may use a pool ---------------------------------------------------------------------- */

static gpumem_resource *pool;

static int give_access(void *user) {
    return (int)gpumem_resource_set_access(pool, 1, GPUMEM_ACCESS_READ_WRITE);
}

static void take_access(void *user) {
    settle(user);
    OK(gpumem_resource_set_access(pool, 1, GPUMEM_ACCESS_NONE));
}

static int read_access(void *user) {
    gpumem_access access;
    return (int)gpumem_resource_get_access(pool, 1, &access);
}

static int trim_pool(void *user) {
    return (int)gpumem_resource_trim(pool, 0);
}

TEST(changing_access_to_a_pool_is_all_or_nothing) {
    pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    sweep("give a device access", give_access, take_access);
    sweep("read who has access", read_access, settle);
    sweep("trim a pool", trim_pool, settle);
    OK(gpumem_resource_destroy(pool));
}

static int use_graph_memory(void *user) {
    uint64_t value;
    int result =
        (int)gpumem_graph_memory_get_attribute(device, GPUMEM_GRAPH_MEMORY_USED_HIGH, &value);
    if (!result)
        result = (int)gpumem_graph_memory_set_attribute(device, GPUMEM_GRAPH_MEMORY_USED_HIGH, 0);
    return result ? result : (int)gpumem_graph_memory_trim(device);
}

TEST_IS(failed_graph_memory_queries_change_nothing,
        sweep("ask, reset and trim", use_graph_memory, settle));

static int begin(void **state) {
    setenv("SOFTGPU_DEVICES", "2", 1);
    if (begin_sweeps(state) != 0)
        return -1;
    stream = NEW_STREAM();
    return 0;
}

ALL_TESTS(begin, end_sweeps);
