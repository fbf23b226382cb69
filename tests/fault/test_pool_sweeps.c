/*
 * Whole or nothing for pools: choosing one, memory for no stream, attributes, sharing a pool and
 * its buffers. The importer is this process too, as far as the driver can tell.
 */
#include "library_test.h"
#include "sweep.h"

static gpumem_resource *pool, *mapped;
static gpumem_buffer *buffer, *imported;
static gpumem_pool_share_handle handle;
static gpumem_pool_share_buffer shared;
static int host; /* the pools are of host memory */

static uint64_t quarantined(void *user) {
    (void)user;
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_library_get_stats(library, &stats));
    return stats.quarantined;
}

/* A refused cuCtxPopCurrent leaves the library's context current. */
static void settle(void *user) {
    (void)user;
    CUcontext context = NULL;
    while (cu->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
        cu->cuCtxPopCurrent_v2(&context);
    cu->cuCtxPushCurrent_v2(gpumem_device_context(device));
    cu->cuCtxSynchronize();
    cu->cuCtxPopCurrent_v2(&context);
    OK(gpumem_device_trim(device, 1));
}

static const char *last_message(void) {
    return gpumem_last_error()->message;
}

static void sweep(const char *name, int (*act)(void *), void (*undo)(void *)) {
    sweep_run(&(struct sweep){.name = name,
                              .act = act,
                              .recover = settle,
                              .undo = undo,
                              .may_succeed = true, /* leaving the context, what is released */
                              .lost = quarantined,
                              .explain = last_message});
}

static int make(gpumem_pool_choice choice, int ipc) {
    pool = NULL;
    if (host)
        return (int)gpumem_pinned_resource_create(device,
                                                  GPUMEM_OPTIONS(gpumem_pinned_options,
                                                                 .method = GPUMEM_PINNED_POOL,
                                                                 .pool = choice, .ipc = ipc),
                                                  &pool);
    return (int)gpumem_device_pool_resource_create(
        device, GPUMEM_OPTIONS(gpumem_device_pool_options, .pool = choice, .ipc = ipc), &pool);
}

static void end_pool(void *user) {
    settle(user);
    OK(gpumem_resource_destroy(pool));
    settle(user);
}

/* ---- Acts ------------------------------------------------------------------------------------ */

static int choose_current(void *user) {
    (void)user;
    return make(GPUMEM_POOL_CURRENT, 0);
}

static int choose_default(void *user) {
    (void)user;
    return make(GPUMEM_POOL_DEFAULT, 0);
}

static int make_shareable(void *user) {
    (void)user;
    return make(GPUMEM_POOL_CURRENT, 1);
}

/* From the pool's own stream on, which is made for it. */
static int allocate_for_no_stream(void *user) {
    (void)user;
    int result = make(GPUMEM_POOL_OWN, 0);
    if (result)
        return result;
    result = (int)gpumem_buffer_allocate(
        pool, MIB, GPUMEM_OPTIONS(gpumem_buffer_options, .stream = GPUMEM_STREAM_NONE), &buffer);
    if (result)
        (void)gpumem_resource_destroy(pool);
    return result;
}

static void free_it(void *user) {
    OK(gpumem_buffer_free(buffer, NULL));
    end_pool(user);
}

static int allocate_by_pointer(void *user) {
    (void)user;
    CUdeviceptr pointer = 0;
    int result = (int)gpumem_resource_allocate(pool, MIB, NULL, &pointer);
    return result ? result : (int)gpumem_resource_deallocate(pool, pointer, MIB, NULL);
}

static int read_and_write_numbers(void *user) {
    (void)user;
    uint64_t value = 0;
    int result = (int)gpumem_pool_get_attribute(pool, GPUMEM_POOL_RELEASE_THRESHOLD, &value);
    return result ? result
                  : (int)gpumem_pool_set_attribute(pool, GPUMEM_POOL_RELEASE_THRESHOLD, value);
}

static int export_pool(void *user) {
    (void)user;
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
    (void)user;
    return (int)gpumem_pool_from_share_handle(device, &handle, &mapped);
}

static void end_mapped(void *user) {
    settle(user);
    OK(gpumem_resource_destroy(mapped));
    settle(user);
}

static int export_buffer(void *user) {
    (void)user;
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

/* ---- The sweeps ------------------------------------------------------------------------------ */

/* The driver's pools are made when they are first asked for, and stay; access to them too. */
static void meet_the_drivers_pools(void) {
    assert_int_equal(make(GPUMEM_POOL_CURRENT, 0), 0);
    OK(gpumem_resource_destroy(pool));
}

static void choosing(void **state) {
    (void)state;
    for (host = 0; host < 2; host++) {
        meet_the_drivers_pools();
        sweep("choose the current pool", choose_current, end_pool);
        sweep("choose the default pool", choose_default, end_pool);
        sweep("make a pool to share", make_shareable, end_pool);
    }
}

static void allocating(void **state) {
    (void)state;
    for (host = 0; host < 2; host++) {
        sweep("allocate for no stream", allocate_for_no_stream, free_it);
        assert_int_equal(make(GPUMEM_POOL_OWN, 0), 0);
        assert_int_equal(allocate_by_pointer(NULL), 0); /* the table, and memory of the pool */
        sweep("allocate and free by pointer", allocate_by_pointer, settle);
        sweep("read and write an attribute", read_and_write_numbers, settle);
        end_pool(NULL);
    }
}

static void sharing(void **state) {
    (void)state;
    for (host = 0; host < 2; host++) {
        sweep("export a pool", export_pool, end_pool);
        assert_int_equal(export_pool(NULL), 0);
        OK(gpumem_buffer_allocate(pool, 3 * MIB, NULL, &buffer));
        OK(gpumem_buffer_fill(buffer, 0, 3 * MIB, 0x66, NULL));
        synchronize(NULL);
        sweep("import a pool", import_pool, end_mapped);
        sweep("export a buffer", export_buffer, settle);
        assert_int_equal(export_buffer(NULL), 0);
        sweep("import a buffer", import_buffer, free_imported);
        sweep("import a buffer and free it", import_and_free, end_what_is_left);
        unsigned char last = 0;
        OK(gpumem_buffer_read(buffer, 3 * MIB - 1, &last, 1, NULL));
        synchronize(NULL);
        assert_int_equal(last, 0x66);
        free_it(NULL);
    }
}

static int begin(void **state) {
    if (open_device(state) != 0)
        return -1;
    sweep_with(soft);
    return make_host_memory_file();
}

/* After a sweep some objects are lost, so the device may be refused its close; the program ends. */
static int end(void **state) {
    (void)state;
    (void)gpumem_device_close(device);
    (void)gpumem_close(library);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choosing),
        cmocka_unit_test(allocating),
        cmocka_unit_test(sharing),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
