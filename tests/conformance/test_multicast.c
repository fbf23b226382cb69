/*
 * Multicast objects. NEVER on hardware but for the granularity: they hold memory of every GPU of a
 * machine. So all but one test need softgpu.
 */
#include "pools.h"

#include <pthread.h>

#define PAGE            ((size_t)2 << 20)
#define SIZE            (2 * PAGE)
#define NEEDS_MULTICAST NEEDS_SOFTGPU("multicast is not tried on hardware")
#define NEEDS_TWO_DEVICES_OF_IT()                                                                  \
    do {                                                                                           \
        NEEDS_MULTICAST;                                                                           \
        NEEDS_DEVICES(2);                                                                          \
        NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);                                  \
    } while (0)

static CUmulticastObjectProp prop_of(unsigned devices, size_t size) {
    CUmulticastObjectProp prop;
    memset(&prop, 0, sizeof prop);
    prop.numDevices = devices;
    prop.size = size;
    return prop;
}

static CUmemGenericAllocationHandle memory_on(int device, size_t size) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemGenericAllocationHandle handle;
    prop.location = device_location(device);
    OK_CU(cu.cuMemCreate(&handle, size, &prop, 0));
    return handle;
}

static CUresult give(CUdeviceptr p, size_t size, int device) {
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    access.location = device_location(device);
    return cu.cuMemSetAccess(p, size, &access, 1);
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t size, int device) {
    CUdeviceptr p = MADE_CU(CUdeviceptr, cuMemAddressReserve, size, 0, 0, 0);
    OK_CU(cu.cuMemMap(p, size, 0, handle, 0));
    OK_CU(give(p, size, device));
    return p;
}

/* Unmapping waits for nothing. */
static void unmap(CUdeviceptr p, size_t size) {
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMemUnmap(p, size));
    OK_CU(cu.cuMemAddressFree(p, size));
}

static CUmemGenericAllocationHandle make(unsigned devices, size_t size) {
    CUmulticastObjectProp prop = prop_of(devices, size);
    CUmemGenericAllocationHandle object;
    OK_CU(cu.cuMulticastCreate(&object, &prop));
    return object;
}

/* An object of both devices with memory of each bound to all of it, and the mappings. */
struct bound {
    CUmemGenericAllocationHandle object, memory[2];
    CUdeviceptr all, own[2];
};

static struct bound make_bound(void) {
    struct bound bound = {.object = make(2, SIZE)};
    for (int d = 0; d < 2; d++)
        OK_CU(cu.cuMulticastAddDevice(bound.object, d));
    for (int d = 0; d < 2; d++) {
        bound.memory[d] = memory_on(d, SIZE);
        bound.own[d] = map(bound.memory[d], SIZE, 0);
        OK_CU(cu.cuMemsetD8_v2(bound.own[d], 0, SIZE));
        OK_CU(cu.cuMulticastBindMem(bound.object, 0, bound.memory[d], 0, SIZE, 0));
    }
    bound.all = map(bound.object, SIZE, 0);
    return bound;
}

static void end_bound(struct bound *bound) {
    unmap(bound->all, SIZE);
    OK_CU(cu.cuMemRelease(bound->object));
    for (int d = 0; d < 2; d++) {
        unmap(bound->own[d], SIZE);
        OK_CU(cu.cuMemRelease(bound->memory[d]));
    }
}

static void both_have(const struct bound *bound, size_t at, unsigned word) {
    assert_int_equal(word_at(bound->own[0] + at), word);
    assert_int_equal(word_at(bound->own[1] + at), word);
}

TEST_WHERE(a_multicast_store_reaches_every_bound_memory, NEEDS_TWO_DEVICES_OF_IT()) {
    struct bound bound = make_bound();
    unsigned char bytes[300], copy[300];
    OK_CU(cu.cuMemsetD32_v2(bound.all, 0x11111111, SIZE / 4));
    both_have(&bound, 0, 0x11111111);
    both_have(&bound, SIZE - 4, 0x11111111);
    fill_pattern(bytes, sizeof bytes, 5);
    OK_CU(cu.cuMemcpyHtoD_v2(bound.all + PAGE - 100, bytes, sizeof bytes)); /* over a page's end */
    for (int d = 0; d < 2; d++) {
        OK_CU(cu.cuMemcpyDtoH_v2(copy, bound.own[d] + PAGE - 100, sizeof copy));
        assert_true(has_pattern(copy, sizeof copy, 5));
    }
    OK_CU(cu.cuMemsetD32_v2(bound.own[0] + 64, 0x22222222, 1));
    OK_CU(cu.cuMemcpyDtoD_v2(bound.all + 4096, bound.own[0] + 64, 4));
    both_have(&bound, 4096, 0x22222222);
    OK_CU(cu.cuStreamWriteValue32_v2(NULL, bound.all + 8192, 77, 0));
    OK_CU(cu.cuCtxSynchronize());
    both_have(&bound, 8192, 77);
    /* Memory of one is its own still. */
    OK_CU(cu.cuMemsetD32_v2(bound.own[1] + 64, 0x33333333, 1));
    assert_int_equal(word_at(bound.own[0] + 64), 0x22222222);
    end_bound(&bound);
}

TEST_WHERE(copies_from_a_multicast_address_are_refused, NEEDS_TWO_DEVICES_OF_IT()) {
    struct bound bound = make_bound();
    unsigned word = 5;
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoH_v2(&word, bound.all, 4));
    FAILS_CU(INVALID_VALUE, cu.cuMemcpyDtoD_v2(bound.own[0], bound.all, 4));
    assert_int_equal(word, 5);
    end_bound(&bound);
}

TEST_WHERE(memory_is_bound_to_a_multicast_object_by_address, NEEDS_TWO_DEVICES_OF_IT()) {
    CUmemGenericAllocationHandle object = make(1, SIZE), memory = memory_on(0, 2 * SIZE);
    CUdeviceptr own = map(memory, 2 * SIZE, 0), all;
    OK_CU(cu.cuMulticastAddDevice(object, 0));
    OK_CU(cu.cuMulticastBindAddr(object, PAGE, own + 3 * PAGE, PAGE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindAddr(object, PAGE, own, PAGE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindAddr(object, 0, own + 4096, PAGE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindAddr(object, 0, own + 3 * PAGE, SIZE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindAddr(object, 0, 0x1000, PAGE, 0));
    all = map(object, SIZE, 0);
    OK_CU(cu.cuMemsetD32_v2(all + PAGE, 0x44444444, PAGE / 4));
    assert_int_equal(word_at(own + 3 * PAGE), 0x44444444);
    assert_int_equal(word_at(own + 4 * PAGE - 4), 0x44444444);
    /* What is bound lives on without its handle and mapping. */
    unmap(own, 2 * SIZE);
    OK_CU(cu.cuMemRelease(memory));
    OK_CU(cu.cuMemsetD32_v2(all + PAGE, 0x55555555, 4));
    unmap(all, SIZE);
    OK_CU(cu.cuMemRelease(object));
}

/* One binding over two steps that the pool has moved together, all of it or nothing. */
TEST_WHERE(a_multicast_binding_crosses_the_steps_of_a_pool, NEEDS_TWO_DEVICES_OF_IT()) {
    CUdeviceptr block[3];
    CUmemoryPool pool = pool_make(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE, 0);
    CUdeviceptr between = pool_take_steps(pool, block);
    CUmemGenericAllocationHandle object = make(1, 2 * SIZE), other = memory_on(0, PAGE);
    OK_CU(cu.cuMulticastAddDevice(object, 0));
    OK_CU(cu.cuMulticastBindMem(object, 2 * PAGE, other, 0, PAGE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindAddr(object, PAGE, between - PAGE, SIZE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastUnbind(object, 0, PAGE, PAGE));
    OK_CU(cu.cuMulticastUnbind(object, 0, 2 * PAGE, PAGE));
    set_bytes(block[0], 0, 2 * POOL_STEP);
    OK_CU(cu.cuMulticastBindAddr(object, PAGE, between - PAGE, SIZE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindMem(object, 2 * PAGE, other, 0, PAGE, 0));
    CUdeviceptr all = map(object, 2 * SIZE, 0);
    OK_CU(cu.cuMemsetD32_v2(all + PAGE, 0x77777777, SIZE / 4));
    assert_int_equal(word_at(between - PAGE - 4), 0);
    assert_int_equal(word_at(between - PAGE), 0x77777777);
    assert_int_equal(word_at(between - 4), 0x77777777);
    assert_int_equal(word_at(between), 0x77777777);
    assert_int_equal(word_at(between + PAGE - 4), 0x77777777);
    assert_int_equal(word_at(between + PAGE), 0);
    FAILS_CU(INVALID_VALUE, cu.cuMulticastUnbind(object, 0, PAGE, PAGE));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMulticastUnbind(object, 0, PAGE, SIZE));
    OK_CU(cu.cuMulticastBindMem(object, 2 * PAGE, other, 0, PAGE, 0));
    /* What is bound stays so when the pool has it no longer, and what the pool has next is not. */
    OK_CU(cu.cuMulticastUnbind(object, 0, 2 * PAGE, PAGE));
    OK_CU(cu.cuMulticastBindAddr(object, PAGE, between - PAGE, SIZE, 0));
    pool_free_steps(block);
    OK_CU(cu.cuMemPoolTrimTo(pool, 0));
    between = pool_take_steps(pool, block);
    set_bytes(block[0], 0, 2 * POOL_STEP);
    OK_CU(cu.cuMemsetD32_v2(all + PAGE, 0x55555555, SIZE / 4));
    assert_int_equal(word_at(between - PAGE), 0);
    assert_int_equal(word_at(between), 0);
    pool_free_steps(block);
    unmap(all, 2 * SIZE);
    OK_CU(cu.cuMemRelease(object));
    OK_CU(cu.cuMemRelease(other));
}

TEST_WHERE(a_binding_is_removed_only_as_a_whole, NEEDS_TWO_DEVICES_OF_IT()) {
    struct bound bound = make_bound();
    CUmemGenericAllocationHandle other = memory_on(1, SIZE);
    FAILS_CU(INVALID_VALUE, cu.cuMulticastUnbind(bound.object, 1, 0, PAGE));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastUnbind(bound.object, 1, PAGE, SIZE));
    FAILS_CU(INVALID_DEVICE, cu.cuMulticastUnbind(bound.object, 99, 0, SIZE));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindMem(bound.object, 0, other, 0, SIZE, 0));
    OK_CU(cu.cuCtxSynchronize());
    OK_CU(cu.cuMulticastUnbind(bound.object, 1, 0, SIZE));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastUnbind(bound.object, 1, 0, SIZE));
    OK_CU(cu.cuMulticastBindMem(bound.object, 0, other, 0, SIZE, 0));
    OK_CU(cu.cuMemsetD32_v2(bound.all, 0x66666666, 4));
    assert_int_equal(word_at(bound.own[0]), 0x66666666);
    assert_int_equal(word_at(bound.own[1]), 0); /* no longer a member */
    CUdeviceptr p = map(other, SIZE, 0);
    assert_int_equal(word_at(p), 0x66666666);
    unmap(p, SIZE);
    OK_CU(cu.cuMemRelease(other));
    end_bound(&bound);
}

/* A store where a member has bound nothing kills the context, like any address that is not there.
 */
CHILD(nothing_bound) {
    init_driver();
    CUmemGenericAllocationHandle object = make(2, SIZE), memory = memory_on(0, SIZE);
    OK_CU(cu.cuMulticastAddDevice(object, 0));
    OK_CU(cu.cuMulticastAddDevice(object, 1));
    OK_CU(cu.cuMulticastBindMem(object, 0, memory, 0, SIZE, 0));
    CUdeviceptr all = map(object, SIZE, 0);
    (void)cu.cuMemsetD32_v2(all, 1, 4);
    return cu.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 1;
}

TEST_WHERE(a_multicast_store_without_bound_memory_is_a_fault, NEEDS_TWO_DEVICES_OF_IT()) {
    assert_int_equal(run_child("nothing_bound", NULL), 0);
}

TEST_WHERE(access_is_granted_only_to_member_devices, NEEDS_TWO_DEVICES_OF_IT()) {
    CUmemGenericAllocationHandle object = make(1, SIZE), memory = memory_on(0, SIZE);
    OK_CU(cu.cuMulticastAddDevice(object, 0));
    OK_CU(cu.cuMulticastBindMem(object, 0, memory, 0, SIZE, 0));
    CUdeviceptr all = MADE_CU(CUdeviceptr, cuMemAddressReserve, SIZE, 0, 0, 0);
    OK_CU(cu.cuMemMap(all, SIZE, 0, object, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMemsetD8_v2(all, 1, 1));
    FAILS_CU(INVALID_VALUE, give(all, SIZE, 1));
    OK_CU(give(all, SIZE, 0));
    set_bytes(all, 1, 1);
    unmap(all, SIZE);
    OK_CU(cu.cuMemRelease(object));
    OK_CU(cu.cuMemRelease(memory));
}

TEST_WHERE(invalid_arguments_are_refused, NEEDS_TWO_DEVICES_OF_IT()) {
    CUmemGenericAllocationHandle object = 5, memory = memory_on(0, SIZE);
    CUmulticastObjectProp prop = prop_of(2, SIZE);
    FAILS_CU(INVALID_VALUE, cu.cuMulticastCreate(NULL, &prop));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastCreate(&object, NULL));
    prop = prop_of(0, SIZE);
    FAILS_CU(INVALID_VALUE, cu.cuMulticastCreate(&object, &prop));
    prop = prop_of(99, SIZE);
    FAILS_CU(INVALID_VALUE, cu.cuMulticastCreate(&object, &prop));
    prop = prop_of(2, SIZE + 1);
    FAILS_CU(INVALID_VALUE, cu.cuMulticastCreate(&object, &prop));
    prop = prop_of(2, SIZE);
    prop.flags = 1;
    FAILS_CU(INVALID_VALUE, cu.cuMulticastCreate(&object, &prop));
    assert_int_equal(object, 5);
    object = make(1, SIZE);
    FAILS_CU(INVALID_DEVICE, cu.cuMulticastAddDevice(object, 99));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastAddDevice(memory, 0));
    OK_CU(cu.cuMulticastAddDevice(object, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastAddDevice(object, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastAddDevice(object, 1)); /* it is complete */
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindMem(object, 0, memory, 0, SIZE, 1));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindMem(object, 0, memory, 0, 2 * SIZE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindMem(object, PAGE, memory, 0, SIZE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindMem(object, 0, memory, 4096, PAGE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindMem(object, 0, object, 0, SIZE, 0));
    CUmemGenericAllocationHandle stranger = memory_on(1, SIZE);
    FAILS_CU(INVALID_DEVICE, cu.cuMulticastBindMem(object, 0, stranger, 0, SIZE, 0));
    OK_CU(cu.cuMemRelease(stranger));
    OK_CU(cu.cuMemRelease(memory));
    OK_CU(cu.cuMemRelease(object));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastAddDevice(object, 0));
}

static CUmemGenericAllocationHandle waited_for;

static void *add_second(void *unused) {
    OK_CU(cu.cuMulticastAddDevice(waited_for, 1));
    return unused;
}

/* Seen in the state, because what needs a device that is not there waits for it. */
TEST_WHERE(adding_a_device_is_shown_in_the_state_dump, NEEDS_TWO_DEVICES_OF_IT()) {
    CUmemGenericAllocationHandle object = make(2, SIZE);
    char *before = soft->state_dump();
    assert_non_null(strstr(before, "0 of 2 devices"));
    OK_CU(cu.cuMulticastAddDevice(object, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastAddDevice(object, 0));
    char *after = soft->state_dump();
    assert_non_null(strstr(after, "1 of 2 devices"));
    soft->free_text(before);
    soft->free_text(after);
    OK_CU(cu.cuMemRelease(object));
}

/* An object that lacks its second device, and a thread that does something about it. */
static pthread_t start_object(void *(*function)(void *)) {
    pthread_t thread;
    waited_for = make(2, SIZE);
    OK_CU(cu.cuMulticastAddDevice(waited_for, 0));
    assert_int_equal(pthread_create(&thread, NULL, function, NULL), 0);
    return thread;
}

/* "Any calls ... will block until all devices have been added." */
TEST_WHERE(binding_waits_until_all_devices_are_added, NEEDS_TWO_DEVICES_OF_IT()) {
    CUmemGenericAllocationHandle memory = memory_on(0, SIZE);
    pthread_t thread = start_object(add_second);
    OK_CU(cu.cuMulticastBindMem(waited_for, 0, memory, 0, SIZE, 0));
    FAILS_CU(INVALID_VALUE, cu.cuMulticastAddDevice(waited_for, 1));
    pthread_join(thread, NULL);
    OK_CU(cu.cuMemRelease(waited_for));
    OK_CU(cu.cuMemRelease(memory));
}

static void *release_it(void *unused) {
    OK_CU(cu.cuMemRelease(waited_for));
    return unused;
}

/* Else the waiting call would never return. */
TEST_WHERE(a_waiting_binding_fails_when_the_object_is_released, NEEDS_TWO_DEVICES_OF_IT()) {
    CUmemGenericAllocationHandle memory = memory_on(0, SIZE);
    pthread_t thread = start_object(release_it);
    FAILS_CU(INVALID_VALUE, cu.cuMulticastBindMem(waited_for, 0, memory, 0, SIZE, 0));
    pthread_join(thread, NULL);
    OK_CU(cu.cuMemRelease(memory));
}

/* The one call that hardware is asked, too. */
TEST(the_granularity_is_reported_where_multicast_is_supported) {
    CUmulticastObjectProp prop = prop_of(2, PAGE);
    size_t n = 0;
    if (device_attribute(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED) < 1 || device_count < 2) {
        FAILS_CU(NOT_SUPPORTED,
                 cu.cuMulticastGetGranularity(&n, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
        return;
    }
    OK_CU(cu.cuMulticastGetGranularity(&n, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
    assert_true(n > 0 && n % PAGE == 0);
    FAILS_CU(INVALID_VALUE,
             cu.cuMulticastGetGranularity(NULL, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
}
