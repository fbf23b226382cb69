/* Nothing is unmapped under work that the library was told of; frees are worked off later. */
#include "library_test.h"

static gpumem_resource *resource;

static int setup(void **state) {
    if (open_device(state) != 0)
        return -1;
    return gpumem_virtual_resource_create(device, NULL, &resource) == GPUMEM_OK ? 0 : -1;
}

static int teardown(void **state) {
    if (gpumem_resource_destroy(resource) != GPUMEM_OK) {
        print_error("%s\n", gpumem_last_error()->message);
        return -1;
    }
    return close_device(state);
}

EACH_TEST(setup, teardown);

static gpumem_buffer *allocate_for(CUstream stream) {
    return NEW_BUFFER_WITH(resource, 2 * MIB, .stream = stream);
}

static void work_off(void) {
    OK(gpumem_device_trim(device, 0));
}

TEST(idle_streams_do_not_defer_a_free) {
    gpumem_buffer *buffer = allocate_for(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    assert_true(is_mapped(address));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_false(is_mapped(address));
    assert_int_equal(device_stats().deferred_frees, 0);
}

static void check_held_back(CUdeviceptr address, struct gate gate) {
    assert_true(is_mapped(address));
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (deferred_frees, 1), (deferred_bytes, 2 * MIB), (allocations, 0),
            (in_use_bytes, 0), (committed_bytes, 2 * MIB));
    work_off();
    assert_true(is_mapped(address));
    gate_drain(&gate);
    assert_true(is_mapped(address)); /* no hidden thread */
    work_off();
    assert_false(is_mapped(address));
    stats = device_stats();
    MEMBERS(stats, (deferred_frees, 0), (committed_bytes, 0));
    gate_remove(&gate);
}

TEST(the_stream_of_the_allocation_defers_a_free) {
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_for(gate.stream);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    check_held_back(address, gate);
}

TEST(the_stream_of_the_free_defers_it) {
    CUstream idle = NEW_STREAM();
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_for(idle);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, gate.stream));
    check_held_back(address, gate);
    OK(gpumem_stream_destroy(device, idle));
}

TEST(named_streams_defer_a_free) {
    CUstream others[8];
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_for(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    for (size_t i = 0; i < COUNT(others); i++) {
        others[i] = NEW_STREAM();
        OK(gpumem_buffer_use(buffer, others[i]));
        OK(gpumem_buffer_use(buffer, others[i]));
    }
    OK(gpumem_buffer_use(buffer, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL));
    check_held_back(address, gate);
    DESTROY_EACH(others, COUNT(others));
}

TEST(a_copy_defers_a_free_by_its_stream) {
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_for(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_fill(buffer, 0, 2 * MIB, 1, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL));
    check_held_back(address, gate);
}

TEST(later_allocations_complete_deferred_frees) {
    struct gate gate = gate_with_stream();
    gpumem_buffer *held = allocate_for(gate.stream);
    CUdeviceptr address = gpumem_buffer_pointer(held);
    OK(gpumem_buffer_free(held, NULL));
    gate_drain(&gate);
    gpumem_buffer *buffer = allocate_for(NULL);
    assert_false(is_mapped(address) && gpumem_buffer_pointer(buffer) != address);
    assert_int_equal(device_stats().deferred_frees, 0);
    DESTROY(buffer, &gate);
}

TEST(destroying_a_resource_waits_for_deferred_frees) {
    gpumem_resource *second = NEW_VIRTUAL();
    CUstream stream = NEW_STREAM();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(second, 64 * MIB, .stream = stream);
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    OK(gpumem_buffer_fill(buffer, 0, 64 * MIB, 3, stream));
    DESTROY(buffer, second);
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_int_equal(device_stats().deferred_frees, 0);
    synchronize(stream); /* no fault: the fill ran on mapped memory */
    OK(gpumem_stream_destroy(device, stream));
}

TEST(a_hold_defers_a_free) {
    gpumem_buffer *buffer = allocate_for(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_hold(buffer));
    OK(gpumem_buffer_free(buffer, NULL));
    FAILS_SAYING(INVALID_ARGUMENT, "freed twice", gpumem_buffer_free(buffer, NULL));
    assert_true(is_mapped(address));
    FAILS(BUSY, gpumem_resource_destroy(resource));
    OK(gpumem_buffer_release(buffer));
    assert_false(is_mapped(address));
}

TEST(a_pool_free_is_queued_behind_all_named_streams) {
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    CUstream stream = NEW_STREAM();
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(pool, MIB, .stream = stream);
    OK(gpumem_buffer_use(buffer, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL)); /* queued behind the gate: the driver holds it */
    assert_int_equal(device_stats().deferred_frees, 1);
    bool done = 1;
    OK(gpumem_stream_query(device, stream, &done));
    assert_false(done);
    gate_drain(&gate);
    synchronize(stream);
    assert_int_equal(device_stats().deferred_frees, 0);
    gate_remove(&gate);
    DESTROY(stream, pool);
}

/* When memory runs out, what is held back is waited for. */
TEST(running_out_of_memory_waits_for_deferred_frees) {
    uint64_t free_bytes, total;
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    size_t most = (size_t)free_bytes / (4 * MIB) * (4 * MIB) - 4 * MIB;
    CUstream stream = NEW_STREAM();
    gpumem_buffer *first = NEW_BUFFER_WITH(resource, most, .stream = stream);
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    OK(gpumem_buffer_fill(first, 0, MIB, 3, stream));
    OK(gpumem_buffer_free(first, NULL));
    assert_int_equal(device_stats().deferred_frees, 1);
    gpumem_buffer *second = NEW_BUFFER(resource, most);
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    DESTROY(second, stream);
}
