/* What a stream of NULL means, call by call, and what the named ones mean. */
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
    return NEW_BUFFER_WITH(resource, 2 * MIB, .stream = stream, .capacity = 8 * MIB);
}

/* The legacy stream does not go on before the gate is opened: it waits for the gate's stream. */
static struct gate close_legacy_gate(void) {
    struct gate gate = gate_with_stream();
    CUevent event = NEW_EVENT();
    OK(gpumem_event_record(device, event, gate.stream));
    OK(gpumem_stream_wait_event(device, NULL, event));
    OK(gpumem_event_destroy(device, event));
    return gate;
}

static void open_legacy_gate(struct gate gate) {
    gate_drain(&gate);
    synchronize(NULL);
    gate_remove(&gate);
}

/* Frees in the two ways, and tells whether the memory was held back. */
static int is_held_back(gpumem_buffer *buffer, CUstream stream) {
    OK(gpumem_buffer_free(buffer, stream));
    return device_stats().deferred_frees == 1;
}

static void work_off(void) {
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().deferred_frees, 0);
}

TEST_WITH(stream_constants_equal_those_of_the_driver, NULL, NULL) {
    assert_ptr_equal(GPUMEM_STREAM_LEGACY, CU_STREAM_LEGACY);
    assert_ptr_equal(GPUMEM_STREAM_PER_THREAD, CU_STREAM_PER_THREAD);
}

TEST(allocating_with_null_uses_the_legacy_stream) {
    gpumem_buffer *buffer = allocate_for(NULL);
    struct gate gate = close_legacy_gate();
    assert_true(is_held_back(buffer, NULL));
    open_legacy_gate(gate);
    work_off();
}

TEST(freeing_with_null_adds_no_stream) {
    CUstream idle = NEW_STREAM();
    gpumem_buffer *without = allocate_for(idle), *with = allocate_for(idle);
    struct gate gate = close_legacy_gate();
    assert_false(is_held_back(without, NULL));
    assert_true(is_held_back(with, GPUMEM_STREAM_LEGACY));
    open_legacy_gate(gate);
    work_off();
    OK(gpumem_stream_destroy(device, idle));
}

TEST(using_a_buffer_with_null_names_the_legacy_stream) {
    CUstream idle = NEW_STREAM();
    CUstream names[] = {NULL, GPUMEM_STREAM_LEGACY};
    for (size_t i = 0; i < COUNT(names); i++) {
        gpumem_buffer *buffer = allocate_for(idle);
        struct gate gate = close_legacy_gate();
        OK(gpumem_buffer_use(buffer, names[i]));
        assert_true(is_held_back(buffer, NULL));
        open_legacy_gate(gate);
        work_off();
    }
    OK(gpumem_stream_destroy(device, idle));
}

/* Were the legacy stream waited for, this would not return: alarm ends the program. */
TEST(shrinking_with_null_adds_no_stream) {
    CUstream idle = NEW_STREAM();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, 8 * MIB, .stream = idle);
    OK(gpumem_buffer_shrink(buffer, 6 * MIB, NULL));
    struct gate gate = close_legacy_gate();
    alarm(20);
    OK(gpumem_buffer_shrink(buffer, 2 * MIB, NULL));
    alarm(0);
    /* Nor was it remembered. */
    assert_false(is_held_back(buffer, NULL));
    open_legacy_gate(gate);
    OK(gpumem_stream_destroy(device, idle));
}

TEST(growing_neither_waits_for_nor_remembers_its_stream) {
    CUstream idle = NEW_STREAM();
    gpumem_buffer *buffer = allocate_for(idle);
    struct gate gate = gate_with_stream();
    alarm(20);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, gate.stream));
    /* Usable at once, on a stream that nobody named. */
    OK(gpumem_buffer_fill(buffer, 0, 8 * MIB, 5, idle));
    synchronize(idle);
    alarm(0);
    assert_false(is_held_back(buffer, NULL));
    gate_drain(&gate);
    gate_remove(&gate);
    OK(gpumem_stream_destroy(device, idle));
}

TEST(a_write_followed_by_synchronize_is_synchronous) {
    unsigned char host[64], back[64];
    memset(host, 0x5a, sizeof host);
    gpumem_buffer *buffer = allocate_for(NULL);
    OK(gpumem_buffer_write(buffer, 0, host, sizeof host, NULL));
    synchronize(NULL);
    memset(host, 0, sizeof host);
    OK(gpumem_buffer_read(buffer, 0, back, sizeof back, NULL));
    synchronize(NULL);
    for (size_t i = 0; i < sizeof back; i++)
        assert_int_equal(back[i], 0x5a);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* Pinned memory is read when the stream gets there, and not by the call. */
TEST(a_write_from_pinned_memory_is_asynchronous) {
    unsigned char back = 0;
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_buffer *staging = NEW_BUFFER(pinned, 64);
    unsigned char *host = gpumem_buffer_host_pointer(staging);
    gpumem_buffer *buffer = allocate_for(NULL);
    struct gate gate = gate_with_stream();
    host[0] = 1;
    OK(gpumem_buffer_write(buffer, 0, host, 64, gate.stream));
    host[0] = 2;
    gate_drain(&gate);
    OK(gpumem_buffer_read(buffer, 0, &back, 1, NULL));
    synchronize(NULL);
    assert_int_equal(back, 2);
    DESTROY(buffer, staging, &gate, pinned);
}
