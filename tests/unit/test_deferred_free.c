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

static gpumem_buffer *allocate_on(CUstream stream) {
    gpumem_buffer *buffer;
    OK(gpumem_buffer_allocate(resource, 2 * MIB,
                              GPUMEM_OPTIONS(gpumem_buffer_options, .stream = stream), &buffer));
    return buffer;
}

/* Still there: the driver knows the address. */
static int is_mapped(CUdeviceptr address) {
    unsigned long long flags = 0;
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                    .id = gpumem_device_handle(device)};
    return cu->cuMemGetAccess(&flags, &location, address) == CUDA_SUCCESS && flags != 0;
}

static void work_off(void) {
    OK(gpumem_device_trim(device, 0));
}

TEST(idle_streams_do_not_defer_a_free) {
    gpumem_buffer *buffer = allocate_on(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    assert_true(is_mapped(address));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_false(is_mapped(address));
    assert_int_equal(device_stats().deferred_frees, 0);
}

static void check_held_back(CUdeviceptr address, struct gate gate) {
    assert_true(is_mapped(address));
    gpumem_stats stats = device_stats();
    assert_int_equal(stats.deferred_frees, 1);
    assert_int_equal(stats.deferred_bytes, 2 * MIB);
    assert_int_equal(stats.allocations, 0);
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.committed_bytes, 2 * MIB);
    work_off();
    assert_true(is_mapped(address));
    gate_drain(&gate);
    assert_true(is_mapped(address)); /* no hidden thread */
    work_off();
    assert_false(is_mapped(address));
    stats = device_stats();
    assert_int_equal(stats.deferred_frees, 0);
    assert_int_equal(stats.committed_bytes, 0);
    gate_remove(&gate);
}

TEST(the_stream_of_the_allocation_defers_a_free) {
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_on(gate.stream);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    check_held_back(address, gate);
}

TEST(the_stream_of_the_free_defers_it) {
    CUstream idle;
    OK(gpumem_stream_create(device, NULL, &idle));
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_on(idle);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, gate.stream));
    check_held_back(address, gate);
    OK(gpumem_stream_destroy(device, idle));
}

TEST(named_streams_defer_a_free) {
    CUstream others[8];
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_on(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    for (size_t i = 0; i < COUNT(others); i++) {
        OK(gpumem_stream_create(device, NULL, &others[i]));
        OK(gpumem_buffer_use(buffer, others[i]));
        OK(gpumem_buffer_use(buffer, others[i]));
    }
    OK(gpumem_buffer_use(buffer, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL));
    check_held_back(address, gate);
    for (size_t i = 0; i < COUNT(others); i++)
        OK(gpumem_stream_destroy(device, others[i]));
}

TEST(a_copy_defers_a_free_by_its_stream) {
    struct gate gate = gate_with_stream();
    gpumem_buffer *buffer = allocate_on(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_fill(buffer, 0, 2 * MIB, 1, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL));
    check_held_back(address, gate);
}

TEST(later_allocations_complete_deferred_frees) {
    struct gate gate = gate_with_stream();
    gpumem_buffer *held = allocate_on(gate.stream);
    CUdeviceptr address = gpumem_buffer_pointer(held);
    OK(gpumem_buffer_free(held, NULL));
    gate_drain(&gate);
    gpumem_buffer *buffer = allocate_on(NULL);
    assert_false(is_mapped(address) && gpumem_buffer_pointer(buffer) != address);
    assert_int_equal(device_stats().deferred_frees, 0);
    OK(gpumem_buffer_free(buffer, NULL));
    gate_remove(&gate);
}

TEST(destroying_a_resource_waits_for_deferred_frees) {
    gpumem_resource *second;
    gpumem_buffer *buffer;
    CUstream stream;
    OK(gpumem_virtual_resource_create(device, NULL, &second));
    OK(gpumem_stream_create(device, NULL, &stream));
    OK(gpumem_buffer_allocate(second, 64 * MIB,
                              GPUMEM_OPTIONS(gpumem_buffer_options, .stream = stream), &buffer));
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    OK(gpumem_buffer_fill(buffer, 0, 64 * MIB, 3, stream));
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_destroy(second));
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_int_equal(device_stats().deferred_frees, 0);
    synchronize(stream); /* no fault: the fill ran on mapped memory */
    OK(gpumem_stream_destroy(device, stream));
}

TEST(a_hold_defers_a_free) {
    gpumem_buffer *buffer = allocate_on(NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_hold(buffer));
    OK(gpumem_buffer_free(buffer, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_free(buffer, NULL));
    SAYS("freed twice");
    assert_true(is_mapped(address));
    FAILS(BUSY, gpumem_resource_destroy(resource));
    OK(gpumem_buffer_release(buffer));
    assert_false(is_mapped(address));
}

TEST(a_pool_free_is_queued_behind_all_named_streams) {
    gpumem_resource *pool;
    gpumem_buffer *buffer;
    CUstream stream;
    OK(gpumem_device_pool_resource_create(
        device, GPUMEM_OPTIONS(gpumem_device_pool_options, .pool = GPUMEM_POOL_OWN), &pool));
    OK(gpumem_stream_create(device, NULL, &stream));
    struct gate gate = gate_with_stream();
    OK(gpumem_buffer_allocate(pool, MIB, GPUMEM_OPTIONS(gpumem_buffer_options, .stream = stream),
                              &buffer));
    OK(gpumem_buffer_use(buffer, gate.stream));
    OK(gpumem_buffer_free(buffer, NULL)); /* queued behind the gate, not held by us */
    assert_int_equal(device_stats().deferred_frees, 0);
    int done = 1;
    OK(gpumem_stream_query(device, stream, &done));
    assert_false(done);
    gate_drain(&gate);
    synchronize(stream);
    gate_remove(&gate);
    OK(gpumem_stream_destroy(device, stream));
    OK(gpumem_resource_destroy(pool));
}

/* When memory runs out, what is held back is waited for. */
TEST(running_out_of_memory_waits_for_deferred_frees) {
    uint64_t free_bytes, total;
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    size_t most = (size_t)free_bytes / (4 * MIB) * (4 * MIB) - 4 * MIB;
    gpumem_buffer *first, *second;
    CUstream stream;
    OK(gpumem_stream_create(device, NULL, &stream));
    OK(gpumem_buffer_allocate(resource, most,
                              GPUMEM_OPTIONS(gpumem_buffer_options, .stream = stream), &first));
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    OK(gpumem_buffer_fill(first, 0, MIB, 3, stream));
    OK(gpumem_buffer_free(first, NULL));
    assert_int_equal(device_stats().deferred_frees, 1);
    OK(gpumem_buffer_allocate(resource, most, NULL, &second));
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    OK(gpumem_buffer_free(second, NULL));
    OK(gpumem_stream_destroy(device, stream));
}
