/* What device pools and host pools are made of: whose they are, their numbers, their handle. */
#include "library_test.h"

ALL_TESTS(open_device, close_device);

static uint64_t number(gpumem_resource *resource, gpumem_pool_attribute attribute) {
    uint64_t value = 0xfeedfeed;
    OK(gpumem_pool_get_attribute(resource, attribute, &value));
    return value;
}

static gpumem_resource *device_pool(gpumem_pool_choice pool) {
    return NEW_POOL(.pool = pool);
}

static gpumem_resource *host_pool(gpumem_pool_choice pool) {
    return NEW_PINNED(.method = GPUMEM_PINNED_POOL, .pool = pool);
}

static CUmemoryPool driver_pool(int current, CUmemLocationType type) {
    CUmemLocation location = {.type = type, .id = 0};
    CUmemoryPool pool = NULL;
    CUresult result =
        current ? cu->cuMemGetMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED)
                : cu->cuMemGetDefaultMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED);
    OK_CU(result);
    return pool;
}

/* The CPU and the device write into one buffer and read what the other wrote. */
static void check_bytes(gpumem_resource *resource) {
    unsigned char back[64];
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4096);
    OK(gpumem_buffer_fill(buffer, 0, 4096, 0x5a, NULL));
    synchronize(NULL);
    unsigned char *host = gpumem_buffer_host_pointer(buffer);
    if (host) {
        assert_int_equal(host[4095], 0x5a);
        memset(host + 64, 0x33, 64);
    } else {
        OK(gpumem_buffer_fill(buffer, 64, 64, 0x33, NULL));
    }
    OK(gpumem_buffer_read(buffer, 64, back, sizeof back, NULL));
    synchronize(NULL);
    for (size_t i = 0; i < sizeof back; i++)
        assert_int_equal(back[i], 0x33);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* ---- Whose pool it is ------------------------------------------------------------------------ */

TEST(without_options_the_current_host_pool_is_used) {
    uint64_t made = soft->call_count("cuMemPoolCreate");
    gpumem_resource *resource = NEW_PINNED(.method = GPUMEM_PINNED_POOL);
    assert_int_equal(soft->call_count("cuMemPoolCreate"), made);
    gpumem_pool_info info = pool_info_of(resource);
    assert_ptr_equal(info.handle, driver_pool(1, CU_MEM_LOCATION_TYPE_HOST));
    MEMBERS(info, (owned, 0), (ipc_enabled, 0), (mapped, 0), (ordinal, -1), (numa_node, -1),
            (device_accessible, 1), (host_accessible, 1), (has_uuid, 0));
    check_bytes(resource);
    /* Closing it leaves the pool, which can be allocated from afterwards. */
    OK(gpumem_resource_destroy(resource));
    synchronize(NULL);
    cuuint64_t used = 1;
    OK_CU(cu->cuMemPoolGetAttribute(info.handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 0);
}

/* What the program has made current is what "current" means; the default one is another then. */
TEST(a_pool_made_current_is_used_and_not_destroyed) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_HOST}};
    CUmemoryPool mine = NULL, before = driver_pool(1, CU_MEM_LOCATION_TYPE_HOST);
    OK_CU(cu->cuMemPoolCreate(&mine, &props));
    OK_CU(cu->cuMemSetMemPool(&props.location, CU_MEM_ALLOCATION_TYPE_PINNED, mine));
    gpumem_resource *current = host_pool(GPUMEM_POOL_CURRENT);
    gpumem_resource *fallback = host_pool(GPUMEM_POOL_DEFAULT);
    gpumem_resource *own = host_pool(GPUMEM_POOL_OWN);
    assert_ptr_equal(pool_info_of(current).handle, mine);
    assert_ptr_equal(pool_info_of(fallback).handle, driver_pool(0, CU_MEM_LOCATION_TYPE_HOST));
    assert_int_equal(pool_info_of(fallback).owned, 0);
    assert_int_equal(pool_info_of(own).owned, 1);
    CUmemoryPool handle = pool_info_of(own).handle;
    assert_true(handle != mine && handle != pool_info_of(fallback).handle);
    check_bytes(current);
    check_bytes(fallback);
    check_bytes(own);
    DESTROY(current, fallback, own);
    synchronize(NULL);
    OK_CU(cu->cuMemSetMemPool(&props.location, CU_MEM_ALLOCATION_TYPE_PINNED, before));
    /* It is still there to be destroyed by its owner; the own one is not. */
    OK_CU(cu->cuMemPoolDestroy(mine));
    FAILS_CU(INVALID_VALUE, cu->cuMemPoolDestroy(handle));
}

TEST(device_pools_report_their_handle_and_owner) {
    gpumem_resource *current = device_pool(GPUMEM_POOL_CURRENT),
                    *fallback = device_pool(GPUMEM_POOL_DEFAULT),
                    *own = device_pool(GPUMEM_POOL_OWN), *virtual_one;
    assert_ptr_equal(pool_info_of(current).handle, driver_pool(1, CU_MEM_LOCATION_TYPE_DEVICE));
    assert_ptr_equal(pool_info_of(fallback).handle, driver_pool(0, CU_MEM_LOCATION_TYPE_DEVICE));
    assert_int_equal(pool_info_of(current).owned, 0);
    gpumem_pool_info info = pool_info_of(own);
    MEMBERS(info, (owned, 1), (ordinal, gpumem_device_ordinal(device)), (numa_node, -1),
            (device_accessible, 1), (host_accessible, 0));
    check_bytes(own);
    DESTROY(current, fallback, own);
    virtual_one = NEW_VIRTUAL();
    FAILS(INVALID_ARGUMENT, gpumem_pool_get_info(virtual_one, &info));
    SAYS("not a pool of the driver");
    OK(gpumem_resource_destroy(virtual_one));
}

TEST(options_that_change_a_pool_create_an_own_host_pool) {
    const gpumem_pinned_options wishes[] = {
        {.numa_bind = 1}, {.maximum_bytes = 64 * MIB}, {.keep_bytes = MIB}, {.keep_nothing = 1}};
    const uint64_t thresholds[] = {UINT64_MAX, UINT64_MAX, MIB, 0};
    for (size_t i = 0; i < COUNT(wishes); i++) {
        gpumem_pinned_options options = wishes[i];
        gpumem_resource *resource = NULL;
        options.size = sizeof options;
        options.method = GPUMEM_PINNED_POOL;
        OK(gpumem_pinned_resource_create(device, &options, &resource));
        assert_int_equal(pool_info_of(resource).owned, 1);
        assert_int_equal(pool_info_of(resource).numa_node, options.numa_bind ? 0 : -1);
        assert_int_equal(number(resource, GPUMEM_POOL_RELEASE_THRESHOLD), thresholds[i]);
        gpumem_buffer *none;
        if (options.maximum_bytes)
            FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(resource, 65 * MIB, NULL, &none));
        check_bytes(resource);
        OK(gpumem_resource_destroy(resource));
        options.pool = GPUMEM_POOL_DEFAULT;
        FAILS(INVALID_ARGUMENT, gpumem_pinned_resource_create(device, &options, &resource));
        SAYS("GPUMEM_POOL_OWN");
    }
    gpumem_resource *none;
    FAILS_SAYING(INVALID_ARGUMENT, "GPUMEM_PINNED_POOL",
                 gpumem_pinned_resource_create(
                     device, GPUMEM_PINNED_OPTIONS(.pool = GPUMEM_POOL_OWN), &none));
    FAILS_SAYING(
        INVALID_ARGUMENT, "pool choice 3",
        gpumem_pinned_resource_create(
            device, GPUMEM_PINNED_OPTIONS(.method = GPUMEM_PINNED_POOL, .pool = 3), &none));
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static void check_numbers(gpumem_resource *resource) {
    gpumem_buffer *buffer = NEW_BUFFER(resource, 3 * MIB);
    synchronize(NULL);
    assert_int_equal(number(resource, GPUMEM_POOL_USED_CURRENT), 3 * MIB);
    assert_true(number(resource, GPUMEM_POOL_RESERVED_CURRENT) >= 3 * MIB);
    OK(gpumem_buffer_free(buffer, NULL));
    synchronize(NULL);
    assert_int_equal(number(resource, GPUMEM_POOL_USED_CURRENT), 0);
    assert_int_equal(number(resource, GPUMEM_POOL_USED_HIGH), 3 * MIB);
    assert_true(number(resource, GPUMEM_POOL_RESERVED_HIGH) >= 3 * MIB);
    OK(gpumem_pool_set_attribute(resource, GPUMEM_POOL_USED_HIGH, 0));
    assert_int_equal(number(resource, GPUMEM_POOL_USED_HIGH), 0);
    OK(gpumem_resource_trim(resource, 0));
    assert_int_equal(number(resource, GPUMEM_POOL_RESERVED_CURRENT), 0);
    OK(gpumem_pool_set_attribute(resource, GPUMEM_POOL_RESERVED_HIGH, 0));
    assert_int_equal(number(resource, GPUMEM_POOL_RESERVED_HIGH), 0);
    OK(gpumem_pool_set_attribute(resource, GPUMEM_POOL_RELEASE_THRESHOLD, (uint64_t)5 * GIB));
    assert_int_equal(number(resource, GPUMEM_POOL_RELEASE_THRESHOLD), (uint64_t)5 * GIB);
}

static void check_flags(gpumem_resource *resource) {
    for (int flag = GPUMEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES;
         flag <= GPUMEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES; flag++) {
        gpumem_pool_attribute attribute = (gpumem_pool_attribute)flag;
        assert_int_equal(number(resource, attribute), 1);
        OK(gpumem_pool_set_attribute(resource, attribute, 0));
        assert_int_equal(number(resource, attribute), 0);
        for (int other = flag + 1; other <= GPUMEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES; other++)
            assert_int_equal(number(resource, (gpumem_pool_attribute)other), 1);
        OK(gpumem_pool_set_attribute(resource, attribute, 1));
        assert_int_equal(number(resource, attribute), 1);
        FAILS(INVALID_ARGUMENT, gpumem_pool_set_attribute(resource, attribute, 2));
        SAYS("0 or 1, not 2");
    }
}

static void check_refusals(gpumem_resource *resource) {
    const gpumem_pool_attribute read_only[] = {GPUMEM_POOL_RESERVED_CURRENT,
                                               GPUMEM_POOL_USED_CURRENT};
    uint64_t value = 7;
    for (size_t i = 0; i < COUNT(read_only); i++) {
        FAILS(INVALID_ARGUMENT, gpumem_pool_set_attribute(resource, read_only[i], 0));
        SAYS("read-only");
    }
    FAILS(INVALID_ARGUMENT, gpumem_pool_set_attribute(resource, GPUMEM_POOL_USED_HIGH, 1));
    SAYS("set to 0, not to 1");
    FAILS(INVALID_ARGUMENT, gpumem_pool_get_attribute(resource, (gpumem_pool_attribute)0, &value));
    FAILS(INVALID_ARGUMENT, gpumem_pool_get_attribute(resource, (gpumem_pool_attribute)9, &value));
    SAYS("no attribute 9");
    FAILS(INVALID_ARGUMENT, gpumem_pool_set_attribute(resource, (gpumem_pool_attribute)9, 0));
    FAILS(INVALID_ARGUMENT, gpumem_pool_get_attribute(resource, GPUMEM_POOL_USED_HIGH, NULL));
    assert_int_equal(value, 7);
}

TEST(all_eight_attributes_are_read_and_written) {
    gpumem_resource *pools[] = {device_pool(GPUMEM_POOL_OWN), host_pool(GPUMEM_POOL_OWN)};
    for (size_t i = 0; i < COUNT(pools); i++) {
        check_numbers(pools[i]);
        check_flags(pools[i]);
        check_refusals(pools[i]);
        OK(gpumem_resource_destroy(pools[i]));
    }
}
