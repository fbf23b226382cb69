/*
 * Whole or nothing for pools: choosing one, memory for no stream, attributes, sharing a pool and
 * its buffers. The importer is this process too, as far as the driver can tell.
 */
#include "library_sweeps.h"

ALL_TESTS(begin_sweeps, end_sweeps);

static gpumem_resource *pool, *mapped;
static gpumem_buffer *buffer, *imported;
static gpumem_pool_share_handle handle;
static gpumem_pool_share_buffer shared;
static int host; /* the pools are of host memory */

static int make(gpumem_pool_choice choice, int ipc) {
    pool = NULL;
    if (host)
        return (int)gpumem_pinned_resource_create(
            device, GPUMEM_PINNED_OPTIONS(.method = GPUMEM_PINNED_POOL, .pool = choice, .ipc = ipc),
            &pool);
    return (int)gpumem_device_pool_resource_create(
        device, GPUMEM_DEVICE_POOL_OPTIONS(.pool = choice, .ipc = ipc), &pool);
}

static void end_pool(void *user) {
    settle(user);
    OK(gpumem_resource_destroy(pool));
    settle(user);
}

/* ---- Acts ------------------------------------------------------------------------------------ */

static int choose_current(void *user) {
    return make(GPUMEM_POOL_CURRENT, 0);
}

static int choose_default(void *user) {
    return make(GPUMEM_POOL_DEFAULT, 0);
}

static int make_shareable(void *user) {
    return make(GPUMEM_POOL_CURRENT, 1);
}

/* From the pool's own stream on, which is made for it. */
static int allocate_for_no_stream(void *user) {
    int result = make(GPUMEM_POOL_OWN, 0);
    if (result)
        return result;
    result = (int)gpumem_buffer_allocate(
        pool, MIB, GPUMEM_BUFFER_OPTIONS(.stream = GPUMEM_STREAM_NONE), &buffer);
    if (result)
        (void)gpumem_resource_destroy(pool);
    return result;
}

static void free_it(void *user) {
    OK(gpumem_buffer_free(buffer, NULL));
    end_pool(user);
}

static int allocate_by_pointer(void *user) {
    CUdeviceptr pointer = 0;
    int result = (int)gpumem_resource_allocate(pool, MIB, NULL, &pointer);
    return result ? result : (int)gpumem_resource_deallocate(pool, pointer, MIB, NULL);
}

static int read_and_write_numbers(void *user) {
    uint64_t value = 0;
    int result = (int)gpumem_pool_get_attribute(pool, GPUMEM_POOL_RELEASE_THRESHOLD, &value);
    return result ? result
                  : (int)gpumem_pool_set_attribute(pool, GPUMEM_POOL_RELEASE_THRESHOLD, value);
}

static int export_pool(void *user) {
    int result = make(GPUMEM_POOL_OWN, 1);
    if (result)
        return result;
    handle.size = sizeof handle;
    result = (int)gpumem_pool_get_share_handle(pool, &handle);
    if (result)
        (void)gpumem_resource_destroy(pool);
    return result;
}

static int import_pool(void *user) {
    return (int)gpumem_pool_from_share_handle(device, &handle, &mapped);
}

static void end_mapped(void *user) {
    settle(user);
    OK(gpumem_resource_destroy(mapped));
    settle(user);
}

static int export_buffer(void *user) {
    shared.size = sizeof shared;
    return (int)gpumem_pool_export_buffer(buffer, &shared);
}

static int import_buffer(void *user) {
    int result = import_pool(user);
    if (result)
        return result;
    result = (int)gpumem_pool_import_buffer(mapped, &shared, &imported);
    if (result)
        (void)gpumem_resource_destroy(mapped);
    return result;
}

static void free_imported(void *user) {
    OK(gpumem_buffer_free(imported, NULL));
    end_mapped(user);
}

/* Freeing cannot fail for its caller; what the driver did not take is held back, and the resource
 * with it. */
static int import_and_free(void *user) {
    int result = import_buffer(user);
    if (result)
        return result;
    (void)gpumem_buffer_free(imported, NULL);
    if (gpumem_resource_destroy(mapped) == GPUMEM_OK)
        mapped = NULL;
    return 0;
}

static void end_what_is_left(void *user) {
    settle(user);
    OK(gpumem_resource_destroy(mapped));
    settle(user);
}

/* Behind work that has not begun: the free is marked, looked at, and waited for. */
static int free_and_wait(void *user) {
    CUstream stream = user;
    gpumem_stats stats = {.size = sizeof stats};
    buffer = NULL;
    int result = (int)gpumem_buffer_allocate(pool, 64 * MIB,
                                             GPUMEM_BUFFER_OPTIONS(.stream = stream), &buffer);
    if (!result)
        result = (int)gpumem_buffer_fill(buffer, 0, MIB, 1, stream);
    (void)gpumem_buffer_free(buffer, NULL);
    if (!result)
        result = (int)gpumem_device_get_stats(device, &stats);
    return result ? result : (int)gpumem_device_trim(device, 1);
}

/* ---- The sweeps ------------------------------------------------------------------------------ */

/* The driver's pools are made when they are first asked for, and stay; access to them too. */
static void meet_the_drivers_pools(void) {
    assert_int_equal(make(GPUMEM_POOL_CURRENT, 0), 0);
    OK(gpumem_resource_destroy(pool));
}

TEST(selecting_a_pool_is_all_or_nothing) {
    for (host = 0; host < 2; host++) {
        meet_the_drivers_pools();
        sweep_act("choose the current pool", choose_current, end_pool, NULL);
        sweep_act("choose the default pool", choose_default, end_pool, NULL);
        sweep_act("make a pool to share", make_shareable, end_pool, NULL);
    }
}

TEST(allocating_pool_memory_without_a_stream_is_all_or_nothing) {
    for (host = 0; host < 2; host++) {
        sweep_act("allocate for no stream", allocate_for_no_stream, free_it, NULL);
        assert_int_equal(make(GPUMEM_POOL_OWN, 0), 0);
        assert_int_equal(allocate_by_pointer(NULL), 0); /* the table, and memory of the pool */
        sweep_act("allocate and free by pointer", allocate_by_pointer, settle, NULL);
        sweep_act("read and write an attribute", read_and_write_numbers, settle, NULL);
        end_pool(NULL);
    }
}

TEST(waiting_for_frees_that_the_driver_has_taken_loses_nothing) {
    CUstream ours = NEW_STREAM(), stream = NULL;
    OK_CU(cu->cuCtxPushCurrent_v2(gpumem_device_context(device)));
    OK_CU(cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    pop_contexts(NULL);
    host = 0;
    assert_int_equal(make(GPUMEM_POOL_OWN, 0), 0);
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    sweep_act("free behind work and wait", free_and_wait, settle, ours);
    sweep_act("free behind work of the program's and wait", free_and_wait, settle, stream);
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    OK_CU(cu->cuStreamDestroy_v2(stream));
    OK(gpumem_stream_destroy(device, ours));
    end_pool(NULL);
    assert_int_equal(device_stats().deferred_frees, 0);
}

TEST(sharing_a_pool_is_all_or_nothing) {
    for (host = 0; host < 2; host++) {
        sweep_act("export a pool", export_pool, end_pool, NULL);
        assert_int_equal(export_pool(NULL), 0);
        buffer = NEW_BUFFER(pool, 3 * MIB);
        OK(gpumem_buffer_fill(buffer, 0, 3 * MIB, 0x66, NULL));
        synchronize(NULL);
        sweep_act("import a pool", import_pool, end_mapped, NULL);
        sweep_act("export a buffer", export_buffer, settle, NULL);
        assert_int_equal(export_buffer(NULL), 0);
        sweep_act("import a buffer", import_buffer, free_imported, NULL);
        sweep_act("import a buffer and free it", import_and_free, end_what_is_left, NULL);
        unsigned char last = 0;
        OK(gpumem_buffer_read(buffer, 3 * MIB - 1, &last, 1, NULL));
        synchronize(NULL);
        assert_int_equal(last, 0x66);
        free_it(NULL);
    }
}
