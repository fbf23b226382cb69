/* Virtual buffers that change while they live, on any driver: kept ranges, access, holes, moves. */
#include "library.h"

static gpumem_resource *make(const gpumem_virtual_options *options) {
    gpumem_resource *resource;
    OK(gpumem_virtual_resource_create(device, options, &resource));
    return resource;
}

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, size_t capacity,
                               CUstream stream) {
    gpumem_buffer *buffer =
        NEW_BUFFER_WITH(resource, bytes, .capacity = capacity, .stream = stream);
    return buffer;
}

static CUdeviceptr free_it(gpumem_buffer *buffer) {
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    return address;
}

static unsigned long long rights(CUdeviceptr address, CUdevice of) {
    unsigned long long flags = 0;
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = of};
    return cu.cuMemGetAccess(&flags, &location, address) == CUDA_SUCCESS ? flags : 0;
}

static unsigned char byte_of(gpumem_buffer *buffer, size_t offset, CUstream stream) {
    unsigned char byte = 0;
    OK(gpumem_buffer_read(buffer, offset, &byte, 1, stream));
    OK_CU(cu.cuStreamSynchronize(stream));
    return byte;
}

TEST(the_same_stream_reuses_a_freed_range_immediately) {
    open_library();
    CUstream stream = new_stream(), other = new_stream();
    gpumem_resource *resource =
        make(GPUMEM_OPTIONS(gpumem_virtual_options, .cache_bytes = 256 * MIB));
    gpumem_buffer *buffer = allocate(resource, 64 * MIB, 0, stream);
    struct gate gate = hold(stream);
    OK(gpumem_buffer_fill(buffer, 0, 64 * MIB, 0x11, stream));
    CUdeviceptr address = free_it(buffer);
    gpumem_buffer *elsewhere = allocate(resource, 64 * MIB, 0, other);
    assert_true(gpumem_buffer_pointer(elsewhere) != address);
    buffer = allocate(resource, 64 * MIB, 0, stream);
    assert_true(gpumem_buffer_pointer(buffer) == address);
    OK(gpumem_buffer_fill(buffer, 0, 64 * MIB, 0x22, stream));
    gate_release(&gate);
    assert_int_equal(byte_of(buffer, 64 * MIB - 1, stream), 0x22);
    free_it(elsewhere);
    free_it(buffer);
    buffer = allocate(resource, 64 * MIB, 0, other);
    assert_true(gpumem_buffer_pointer(buffer) == address);
    free_it(buffer);
    OK(gpumem_resource_trim(resource, 0));
    assert_int_equal(rights(address, dev), 0);
    OK(gpumem_resource_destroy(resource));
}

/* Few, since with two H200s making 64 streams behind a gate waited for it. */
#define TRIES 8

/* The number of the stream tells, not its handle: what a destroyed stream still runs is not what a
 * new one of the same handle comes after. */
TEST(a_new_stream_with_a_reused_handle_is_a_different_stream) {
    struct gate gate;
    CUstream stream, made[TRIES], again = NULL;
    size_t count = 0;
    open_library();
    gate_make(&gate);
    OK_CU(cu.cuStreamCreate(&made[count++], CU_STREAM_NON_BLOCKING));
    gate_hold(&gate, made[0]);
    CUevent event = MADE_CU(CUevent, cuEventCreate, CU_EVENT_DISABLE_TIMING);
    OK_CU(cu.cuEventRecord(event, made[0]));
    OK_CU(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK_CU(cu.cuStreamWaitEvent(stream, event, 0));
    gpumem_resource *resource =
        make(GPUMEM_OPTIONS(gpumem_virtual_options, .cache_bytes = 256 * MIB));
    gpumem_buffer *buffer = allocate(resource, 2 * MIB, 0, stream);
    OK(gpumem_buffer_fill(buffer, 0, 2 * MIB, 0x11, stream));
    CUdeviceptr address = free_it(buffer);
    OK_CU(cu.cuStreamDestroy_v2(stream));
    while (count < TRIES && !again) {
        OK_CU(cu.cuStreamCreate(&made[count], CU_STREAM_NON_BLOCKING));
        again = made[count++] == stream ? stream : NULL;
    }
    if (again) {
        buffer = allocate(resource, 2 * MIB, 0, again);
        assert_true(gpumem_buffer_pointer(buffer) != address);
        free_it(buffer);
    }
    gate_drain(&gate, made[0]);
    OK(gpumem_resource_destroy(resource));
    while (count--)
        OK_CU(cu.cuStreamDestroy_v2(made[count]));
    OK_CU(cu.cuEventDestroy_v2(event));
    gate_free(&gate);
    close_library();
    if (!again)
        SKIP("no new stream got the handle of one that still had work");
}

TEST(access_to_parts_of_a_buffer_is_removed_and_restored) {
    open_library();
    CUstream stream = new_stream();
    gpumem_resource *resource = make(
        GPUMEM_OPTIONS(gpumem_virtual_options, .maximum_chunk_bytes = 4 * MIB, .exact_growth = 1));
    gpumem_buffer *buffer = allocate(resource, 8 * MIB, 16 * MIB, stream);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    for (int i = 0; i < 64; i++)
        OK(gpumem_buffer_fill(buffer, 0, 8 * MIB, 0x11, stream));
    OK(gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ)); /* no fault */
    assert_int_equal(rights(address, dev), CU_MEM_ACCESS_FLAGS_PROT_READ);
    assert_int_equal(rights(address + 4 * MIB, dev), CU_MEM_ACCESS_FLAGS_PROT_READ);
    assert_int_equal(byte_of(buffer, 8 * MIB - 1, stream), 0x11);
    OK(gpumem_buffer_set_access(buffer, 4 * MIB, 4 * MIB, 0, GPUMEM_ACCESS_NONE, NULL));
    assert_int_equal(rights(address + 4 * MIB, dev), 0);
    OK(gpumem_resource_set_access(resource, 0, GPUMEM_ACCESS_READ_WRITE));
    OK(gpumem_buffer_grow(buffer, 16 * MIB, NULL));
    OK(gpumem_buffer_fill(buffer, 0, 16 * MIB, 0x22, stream));
    assert_int_equal(byte_of(buffer, 4 * MIB, stream), 0x22);
    free_it(buffer);
    OK(gpumem_resource_destroy(resource));
}

TEST_WHERE(peer_access_to_a_buffer_is_granted_and_revoked, NEEDS_DEVICES(2)) {
    bool can = false;
    CUdevice second = MADE_CU(CUdevice, cuDeviceGet, 1);
    open_library();
    OK(gpumem_device_can_access_peer(device, 1, &can));
    if (can) {
        gpumem_resource *resource = make(NULL);
        gpumem_buffer *buffer = allocate(resource, 4 * MIB, 0, NULL);
        CUdeviceptr address = gpumem_buffer_pointer(buffer);
        OK(gpumem_resource_set_access(resource, 1, GPUMEM_ACCESS_READ_WRITE));
        assert_int_equal(rights(address, second), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        OK(gpumem_resource_set_access(resource, 1, GPUMEM_ACCESS_NONE));
        assert_int_equal(rights(address, second), 0);
        OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 1, NULL));
        free_it(buffer);
        OK(gpumem_resource_destroy(resource));
    }
    close_library();
    if (!can)
        SKIP("the devices do not reach each other");
}

TEST(decommitting_and_moving_keep_the_other_bytes) {
    open_library();
    CUstream stream = new_stream();
    gpumem_resource *resource = make(
        GPUMEM_OPTIONS(gpumem_virtual_options, .maximum_chunk_bytes = 4 * MIB, .exact_growth = 1));
    gpumem_buffer *buffer = allocate(resource, 12 * MIB, 0, stream);
    OK(gpumem_buffer_fill(buffer, 0, 12 * MIB, 0x11, stream));
    assert_int_equal(MADE(size_t, gpumem_buffer_decommit, buffer, 4 * MIB, 4 * MIB, NULL), 4 * MIB);
    assert_int_equal(byte_of(buffer, 0, stream), 0x11);
    assert_int_equal(byte_of(buffer, 12 * MIB - 1, stream), 0x11);
    OK(gpumem_buffer_recommit(buffer, 4 * MIB, 4 * MIB));
    struct gate gate = hold(stream);
    OK(gpumem_buffer_fill(buffer, 4 * MIB, 4 * MIB, 0x22, stream));
    CUdeviceptr before = gpumem_buffer_pointer(buffer), now = 0;
    OK(gpumem_buffer_move_to_capacity(buffer, 64 * MIB, NULL, &now));
    assert_true(now != before);
    OK(gpumem_buffer_grow(buffer, 64 * MIB, NULL));
    gate_release(&gate); /* what was queued for the old address runs: no fault */
    assert_int_equal(byte_of(buffer, 8 * MIB - 1, stream), 0x22);
    assert_int_equal(byte_of(buffer, 12 * MIB - 1, stream), 0x11);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(rights(before, dev), 0);
    free_it(buffer);
    OK(gpumem_resource_destroy(resource));
}

TEST(each_doubling_creates_one_handle) {
    open_library();
    gpumem_resource *resource =
        make(GPUMEM_OPTIONS(gpumem_virtual_options, .handle_type = GPUMEM_HANDLE_NONE));
    gpumem_buffer *buffer = allocate(resource, 64 * MIB, 2048 * MIB, NULL);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    size_t handles = 1;
    for (size_t bytes = 128 * MIB; bytes <= 2048 * MIB; bytes *= 2) {
        OK(gpumem_buffer_grow(buffer, bytes, NULL));
        assert_int_equal(chunks_of(buffer), ++handles);
    }
    assert_true(gpumem_buffer_pointer(buffer) == address);
    OK(gpumem_buffer_fill(buffer, 1024 * MIB - 1, 2, 0x33, NULL));
    assert_int_equal(byte_of(buffer, 1024 * MIB, NULL), 0x33);
    free_it(buffer);
    OK(gpumem_resource_destroy(resource));
}
