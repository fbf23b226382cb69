/*
 * Whole or nothing, object by object: creating resources, shrinking, freeing behind queued work,
 * low-level memory, streams and events, asking for capabilities.
 */
#include "library_sweeps.h"

ALL_TESTS(begin_sweeps, close_device);

/* What the operations at hand work on. */
static gpumem_resource *resource;
static gpumem_buffer *buffer;
static gpumem_reservation *range;
static gpumem_physical *memory;
static gpumem_mapping *mapping;
static CUstream stream;
static CUevent event;
static struct gate gate;

static void sweep_with_recovery(const char *name, int (*act)(void *), void (*undo)(void *),
                                void (*recover)(void *)) {
    sweep_run(&(struct sweep){.name = name,
                              .act = act,
                              .recover = recover,
                              .undo = undo,
                              .may_succeed = true, /* leaving the context, a second way */
                              .lost = quarantined});
}

static void sweep(const char *name, int (*act)(void *), void (*undo)(void *)) {
    sweep_with_recovery(name, act, undo, settle);
}

/* ---- Resources ------------------------------------------------------------------------------- */

static void end_resource(void *user) {
    settle(user);
    OK(gpumem_resource_destroy(resource));
    settle(user);
}

static int create_virtual(void *user) {
    return (int)gpumem_virtual_resource_create(device, NULL, &resource);
}

static int create_pool(void *user) {
    return (int)gpumem_device_pool_resource_create(
        device, GPUMEM_DEVICE_POOL_OPTIONS(.pool = GPUMEM_POOL_OWN), &resource);
}

static int create_host_pool(void *user) {
    return (int)gpumem_pinned_resource_create(
        device, GPUMEM_PINNED_OPTIONS(.method = GPUMEM_PINNED_POOL), &resource);
}

static int create_pinned(void *user) {
    return (int)gpumem_pinned_resource_create(device, NULL, &resource);
}

static int create_and_destroy_pool(void *user) {
    int result = create_pool(user);
    if (result == 0)
        (void)gpumem_resource_destroy(resource);
    return result;
}

TEST(creating_a_resource_is_all_or_nothing) {
    sweep("create a virtual resource", create_virtual, end_resource);
    sweep("create a device pool", create_pool, end_resource);
    sweep("create a host pool", create_host_pool, end_resource);
    sweep("create a pinned resource", create_pinned, end_resource);
    sweep("create and destroy a device pool", create_and_destroy_pool, settle);
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static void make_buffer(size_t bytes) {
    resource = NEW_VIRTUAL(.maximum_chunk_bytes = 4 * MIB, .exact_growth = 1);
    buffer = NEW_BUFFER_WITH(resource, bytes, .capacity = 64 * MIB);
}

static int shrink(void *user) {
    return (int)gpumem_buffer_shrink(buffer, 3 * MIB, NULL);
}

/* Handles that are made anew come in reverse order of their release: twice round is as before. */
static void grow_back(void *user) {
    settle(user);
    OK(gpumem_buffer_grow(buffer, 20 * MIB, NULL));
    OK(gpumem_buffer_shrink(buffer, 3 * MIB, NULL));
    OK(gpumem_buffer_grow(buffer, 20 * MIB, NULL));
    settle(user);
}

/* Where a driver that refuses everything cannot be brought to map again what was unmapped, the size
 * tells what is left, and the rest can be grown back. */
static void grow_if_needed(void *user) {
    settle(user);
    assert_true(gpumem_buffer_size(buffer) <= gpumem_buffer_committed(buffer));
    OK(gpumem_buffer_grow(buffer, 20 * MIB, NULL));
}

TEST(shrinking_a_buffer_is_all_or_nothing) {
    make_buffer(20 * MIB);
    OK(gpumem_buffer_fill(buffer, 0, MIB, 0x77, NULL));
    synchronize(NULL);
    sweep_with_recovery("shrink", shrink, grow_back, grow_if_needed);
    unsigned char byte = 0;
    OK(gpumem_buffer_read(buffer, MIB - 1, &byte, 1, NULL));
    synchronize(NULL);
    assert_int_equal(byte, 0x77);
    OK(gpumem_buffer_free(buffer, NULL));
    end_resource(NULL);
}

static gpumem_access permitted;
static CUdeviceptr address;

static int order_streams(void *user) {
    return (int)gpumem_buffer_order(buffer, NULL);
}

static int read_access(void *user) {
    return (int)gpumem_buffer_get_access(buffer, 0, 0, &permitted);
}

static int use_by_address(void *user) {
    address = 0;
    gpumem_status status = gpumem_resource_allocate(resource, KIB, NULL, &address);
    AND_THEN(status, gpumem_resource_find(resource, address, &buffer));
    AND_THEN(status, gpumem_resource_use(resource, address, stream));
    OK(gpumem_resource_deallocate(resource, address, 0, NULL));
    return (int)status;
}

TEST(a_buffer_of_a_pool_is_ordered_and_asked) {
    assert_int_equal(create_pool(NULL), 0);
    stream = NEW_STREAM();
    sweep("use memory by its address", use_by_address, settle);
    buffer = NEW_BUFFER_WITH(resource, KIB, .stream = stream);
    OK(gpumem_buffer_use(buffer, NULL));
    sweep("order streams", order_streams, settle);
    sweep("read the access of a buffer", read_access, settle);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_stream_destroy(device, stream));
    end_resource(NULL);
}

static int allocate_on_pinned(void *user) {
    return (int)gpumem_buffer_allocate(resource, 100 * KIB, NULL, &buffer);
}

static void free_buffer(void *user) {
    OK(gpumem_buffer_free(buffer, NULL));
    settle(user);
}

TEST(allocating_from_slabs_and_host_pools_is_all_or_nothing) {
    resource =
        NEW_PINNED(.slab_bytes = 2 * MIB, .method = GPUMEM_PINNED_ALLOCATED, .keep_nothing = 1);
    sweep("allocate from cuMemHostAlloc's slabs", allocate_on_pinned, free_buffer);
    end_resource(NULL);
    assert_int_equal(create_host_pool(NULL), 0);
    sweep("allocate from a host pool", allocate_on_pinned, free_buffer);
    end_resource(NULL);
}

/* The fault comes while the buffer is still in use: it must not be unmapped before the gate opens,
 * and is given back, or counted, afterwards. */
static void free_behind_work(uint64_t n, softgpu_fault_mode mode, uint64_t *fired) {
    make_buffer(6 * MIB);
    gate = gate_with_stream();
    OK(gpumem_buffer_fill(buffer, 0, 6 * MIB, 1, gate.stream));
    uint64_t unmaps = soft->call_count("cuMemUnmap");
    assert_int_equal(soft->fault_arm("*", n, CUDA_ERROR_UNKNOWN, mode), 0);
    OK(gpumem_buffer_free(buffer, gate.stream));
    *fired = soft->fault_disarm();
    assert_int_equal(soft->call_count("cuMemUnmap"), unmaps);
    gpumem_stats stats = device_stats();
    assert_int_equal(stats.deferred_frees, 1);
    pop_contexts(NULL);
    CUstreamCaptureMode usual = CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (mode == SOFTGPU_FAULT_FROM) /* which was refused too: see sweep.c */
        OK_CU(cu->cuThreadExchangeStreamCaptureMode(&usual));
    OK(gpumem_device_trim(device, 0)); /* does not wait */
    assert_int_equal(soft->call_count("cuMemUnmap"), unmaps);
    gate_drain(&gate); /* no fault of the device: the fill found its memory */
    settle(NULL);
    stats = device_stats();
    MEMBERS(stats, (deferred_frees, 0), (chunks, 0), (mappings, 0));
    gate_remove(&gate);
    end_resource(NULL);
}

TEST(freeing_behind_queued_work_is_all_or_nothing) {
    static const softgpu_fault_mode modes[] = {SOFTGPU_FAULT_BEFORE, SOFTGPU_FAULT_AFTER,
                                               SOFTGPU_FAULT_FROM};
    for (size_t m = 0; m < COUNT(modes); m++) {
        uint64_t fired = 1;
        uint64_t n = 1;
        for (; fired; n++) {
            free_behind_work(n, modes[m], &fired);
            assert_true(n < 100);
        }
        assert_true(n > 3);
    }
}

/* ---- Low-level memory ------------------------------------------------------------------------ */

static int reserve(void *user) {
    return (int)gpumem_reservation_create(device, 8 * MIB, NULL, &range);
}

static void unreserve(void *user) {
    OK(gpumem_reservation_destroy(range));
    settle(user);
}

static int create_memory(void *user) {
    return (int)gpumem_physical_create(device, 4 * MIB, NULL, &memory);
}

static void end_memory(void *user) {
    OK(gpumem_physical_destroy(memory));
    settle(user);
}

static int map(void *user) {
    return (int)gpumem_mapping_create(range, 4 * MIB, memory, &mapping);
}

static void unmap(void *user) {
    OK(gpumem_mapping_destroy(mapping));
    settle(user);
}

static int give_access(void *user) {
    return (int)mapping_set_access(mapping, 0, GPUMEM_ACCESS_READ_WRITE);
}

static void take_access(void *user) {
    OK(mapping_set_access(mapping, 0, GPUMEM_ACCESS_NONE));
    settle(user);
}

TEST(low_level_memory_calls_are_all_or_nothing) {
    sweep("reserve", reserve, unreserve);
    sweep("create memory", create_memory, end_memory);
    assert_int_equal(reserve(NULL), 0);
    assert_int_equal(create_memory(NULL), 0);
    sweep("map", map, unmap);
    assert_int_equal(map(NULL), 0);
    sweep("give access", give_access, take_access);
    unmap(NULL);
    end_memory(NULL);
    unreserve(NULL);
}

/* ---- Streams, events, questions -------------------------------------------------------------- */

static int create_stream(void *user) {
    return (int)gpumem_stream_create(device, NULL, &stream);
}

static void end_stream(void *user) {
    settle(user);
    OK(gpumem_stream_destroy(device, stream));
}

static int create_event(void *user) {
    return (int)gpumem_event_create(device, NULL, &event);
}

static void end_event(void *user) {
    settle(user);
    OK(gpumem_event_destroy(device, event));
}

TEST(creating_streams_and_events_is_all_or_nothing) {
    sweep("create a stream", create_stream, end_stream);
    sweep("create an event", create_event, end_event);
}

/* Through a device of its own, since answers are remembered. */
static int ask_all(void) {
    gpumem_library *other;
    int result = 0;
    assert_int_equal(soft->fault_disarm(), 0);
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &other));
    gpumem_device *asked = MADE(gpumem_device *, gpumem_device_open, other, 0);
    for (int i = 0; i < GPUMEM_CAPABILITY_COUNT; i++) {
        gpumem_capability_report report = {.size = sizeof report};
        for (uint64_t n = 1; n < 12; n++) {
            soft->fault_arm("*", n, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_AFTER);
            gpumem_status status =
                gpumem_device_get_capability(asked, (gpumem_capability)i, &report);
            soft->fault_disarm();
            if (status == GPUMEM_OK && !report.supported && !report.reason[0])
                result = 1;
        }
    }
    settle(NULL);
    OK(gpumem_device_close(asked));
    OK(gpumem_close(other));
    return result;
}

TEST(queries_change_no_driver_state) {
    char *before = soft->state_dump();
    assert_int_equal(ask_all(), 0);
    SAME_STATE(before);
}

/* ---- Closed for later: last, as mappings that the driver keeps stay counted ------------------ */

/* It ends at once, or at a later call where the driver does not say that nothing is under way. */
static int create_and_close_pool(void *user) {
    int result = create_pool(user);
    return result ? result : (int)gpumem_resource_close_later(resource);
}

static int close_virtual_with_a_buffer(void *user) {
    int result = create_virtual(user);
    if (result)
        return result;
    result = (int)gpumem_buffer_allocate(resource, MIB, NULL, &buffer);
    OK(gpumem_resource_close_later(resource));
    if (!result)
        OK(gpumem_buffer_free(buffer, NULL));
    return result;
}

TEST(closing_a_resource_for_later_is_all_or_nothing) {
    sweep("create a device pool and close it", create_and_close_pool, settle);
    sweep("close a virtual resource that has a buffer", close_virtual_with_a_buffer, settle);
}
