/* Who may use a pool's memory, changed while it lives; and a pool that is asked to give back. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

static gpumem_resource *device_pool(gpumem_pool_choice choice) {
    return NEW_POOL(.pool = choice);
}

static gpumem_resource *host_pool(void) {
    return NEW_PINNED(.method = GPUMEM_PINNED_POOL, .pool = GPUMEM_POOL_OWN);
}

static gpumem_access access_of(gpumem_resource *pool, int ordinal) {
    gpumem_access access = (gpumem_access)77;
    OK(gpumem_resource_get_access(pool, ordinal, &access));
    return access;
}

/* What the other device may do, by doing it: its driver call's answer. */
static CUresult other_sets(CUdeviceptr at, unsigned char value) {
    CUcontext other = MADE_CU(CUcontext, cuDevicePrimaryCtxRetain, 1);
    OK_CU(cu->cuCtxPushCurrent_v2(other));
    CUresult result = cu->cuMemsetD8_v2(at, value, 64);
    OK_CU(cu->cuCtxSynchronize());
    OK_CU(cu->cuCtxPopCurrent_v2(NULL));
    OK_CU(cu->cuDevicePrimaryCtxRelease_v2(1));
    return result;
}

static void check_bytes(gpumem_buffer *buffer, unsigned char value) {
    unsigned char bytes[64];
    OK(read_now(buffer, 0, bytes, sizeof bytes, NULL));
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], value);
}

TEST(peer_access_changes_apply_to_live_buffers) {
    gpumem_resource *pool = device_pool(GPUMEM_POOL_OWN);
    gpumem_buffer *early = NEW_BUFFER(pool, 4096);
    OK(gpumem_buffer_fill(early, 0, 4096, 1, NULL));
    synchronize(NULL);
    assert_int_equal(access_of(pool, 0), GPUMEM_ACCESS_READ_WRITE);
    assert_int_equal(access_of(pool, 1), GPUMEM_ACCESS_NONE);
    FAILS_CU(INVALID_VALUE, other_sets(gpumem_buffer_pointer(early), 9));
    check_bytes(early, 1);
    OK(gpumem_resource_set_access(pool, 1, GPUMEM_ACCESS_READ_WRITE));
    gpumem_buffer *late = NEW_BUFFER(pool, 40 * MIB); /* in another segment of the pool */
    synchronize(NULL);
    assert_int_equal(access_of(pool, 1), GPUMEM_ACCESS_READ_WRITE);
    OK_CU(other_sets(gpumem_buffer_pointer(early), 2));
    OK_CU(other_sets(gpumem_buffer_pointer(late), 3));
    check_bytes(early, 2);
    check_bytes(late, 3);
    OK(gpumem_resource_set_access(pool, 1, GPUMEM_ACCESS_NONE));
    assert_int_equal(access_of(pool, 1), GPUMEM_ACCESS_NONE);
    FAILS_CU(INVALID_VALUE, other_sets(gpumem_buffer_pointer(late), 4));
    check_bytes(late, 3);
    DESTROY(early, late, pool);
}

TEST(a_wrapper_and_a_cache_set_the_access_of_the_pool) {
    gpumem_resource *pool = device_pool(GPUMEM_POOL_OWN);
    gpumem_resource *cache = NEW_CACHING(pool), *limit = NEW_LIMIT(cache, GIB);
    gpumem_buffer *buffer = NEW_BUFFER(limit, 4096);
    synchronize(NULL);
    OK(gpumem_resource_set_access(limit, 1, GPUMEM_ACCESS_READ_WRITE));
    assert_int_equal(access_of(pool, 1), GPUMEM_ACCESS_READ_WRITE);
    OK_CU(other_sets(gpumem_buffer_pointer(buffer), 6));
    check_bytes(buffer, 6);
    OK(gpumem_resource_set_access(cache, 1, GPUMEM_ACCESS_NONE));
    assert_int_equal(access_of(limit, 1), GPUMEM_ACCESS_NONE);
    DESTROY(buffer, limit, cache, pool);
}

TEST(host_pools_have_peers) {
    gpumem_resource *pool = host_pool();
    gpumem_buffer *buffer = NEW_BUFFER(pool, 4096);
    synchronize(NULL);
    memset(gpumem_buffer_host_pointer(buffer), 1, 4096);
    assert_int_equal(access_of(pool, 0), GPUMEM_ACCESS_READ_WRITE);
    FAILS_CU(INVALID_VALUE, other_sets(gpumem_buffer_pointer(buffer), 9));
    OK(gpumem_resource_set_access(pool, 1, GPUMEM_ACCESS_READ_WRITE));
    OK_CU(other_sets(gpumem_buffer_pointer(buffer), 5));
    check_bytes(buffer, 5);
    DESTROY(buffer, pool);
}

TEST(invalid_arguments_are_refused_with_a_reason) {
    gpumem_resource *pool = device_pool(GPUMEM_POOL_OWN);
    gpumem_access access;
    FAILS(INVALID_ARGUMENT, gpumem_resource_set_access(pool, 2, GPUMEM_ACCESS_READ_WRITE));
    SAYS("no peer device 2");
    FAILS(INVALID_ARGUMENT, gpumem_resource_set_access(pool, -1, GPUMEM_ACCESS_NONE));
    FAILS(INVALID_ARGUMENT, gpumem_resource_set_access(pool, 1, (gpumem_access)7));
    FAILS(NOT_SUPPORTED, gpumem_resource_set_access(pool, 1, GPUMEM_ACCESS_READ));
    SAYS("not read-only");
    FAILS(INVALID_ARGUMENT, gpumem_resource_set_access(pool, 0, GPUMEM_ACCESS_NONE));
    SAYS("keeps access");
    OK(gpumem_resource_set_access(pool, 0, GPUMEM_ACCESS_READ_WRITE));
    FAILS(INVALID_ARGUMENT, gpumem_resource_get_access(pool, 5, &access));
    FAILS(INVALID_ARGUMENT, gpumem_resource_get_access(pool, 1, NULL));
    assert_int_equal(access_of(pool, 1), GPUMEM_ACCESS_NONE);
    OK(gpumem_resource_destroy(pool));
}

/* A refusal that did its work, since the driver reports earlier failures like that, is undone. */
TEST(a_refused_peer_change_is_undone) {
    gpumem_resource *pool = device_pool(GPUMEM_POOL_OWN);
    OK(gpumem_resource_set_access(pool, 1, GPUMEM_ACCESS_READ_WRITE));
    char *before = soft->state_dump();
    soft->fault_arm("cuMemPoolSetAccess", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_AFTER);
    FAILS(DRIVER, gpumem_resource_set_access(pool, 1, GPUMEM_ACCESS_NONE));
    assert_int_equal(soft->fault_disarm(), 1);
    SAME_STATE(before);
    OK(gpumem_resource_destroy(pool));
}

static uint64_t number(gpumem_resource *pool, gpumem_pool_attribute attribute) {
    return MADE(uint64_t, gpumem_pool_get_attribute, pool, attribute);
}

/* When memory runs out pools of others are left alone; a program that asks for it trims them. */
TEST(trimming_a_shared_pool_releases_its_unused_memory) {
    gpumem_resource *pool = device_pool(GPUMEM_POOL_CURRENT);
    uint64_t threshold = number(pool, GPUMEM_POOL_RELEASE_THRESHOLD);
    OK(gpumem_pool_set_attribute(pool, GPUMEM_POOL_RELEASE_THRESHOLD, UINT64_MAX));
    gpumem_buffer *kept = NEW_BUFFER(pool, 4 * MIB), *freed = NEW_BUFFER(pool, 100 * MIB);
    OK(gpumem_buffer_free(freed, NULL));
    synchronize(NULL);
    uint64_t reserved = number(pool, GPUMEM_POOL_RESERVED_CURRENT);
    assert_true(reserved >= 104 * MIB);
    OK(gpumem_device_trim(device, true));
    assert_int_equal(number(pool, GPUMEM_POOL_RESERVED_CURRENT), reserved);
    OK(gpumem_resource_trim(pool, reserved));
    assert_int_equal(number(pool, GPUMEM_POOL_RESERVED_CURRENT), reserved);
    OK(gpumem_resource_trim(pool, 0));
    assert_true(number(pool, GPUMEM_POOL_RESERVED_CURRENT) < reserved);
    assert_true(number(pool, GPUMEM_POOL_RESERVED_CURRENT) >= 4 * MIB);
    OK(gpumem_buffer_free(kept, NULL));
    synchronize(NULL);
    OK(gpumem_resource_trim(pool, 0));
    assert_int_equal(number(pool, GPUMEM_POOL_RESERVED_CURRENT), 0);
    OK(gpumem_pool_set_attribute(pool, GPUMEM_POOL_RELEASE_THRESHOLD, threshold));
    OK(gpumem_resource_destroy(pool));
}

BEFORE_TESTS_DO(setenv("SOFTGPU_DEVICES", "2", 1));
