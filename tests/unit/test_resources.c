/* Device pool, limit, log and resources of one's own: what all resources have in common. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes) {
    return NEW_BUFFER(resource, bytes);
}

static void check_bytes(gpumem_buffer *buffer) {
    unsigned char host[256], back[256];
    for (size_t i = 0; i < sizeof host; i++)
        host[i] = (unsigned char)(i * 7);
    size_t bytes = gpumem_buffer_size(buffer) < 256 ? gpumem_buffer_size(buffer) : 256;
    size_t offset = gpumem_buffer_size(buffer) - bytes;
    OK(gpumem_buffer_write(buffer, offset, host, bytes, NULL));
    OK(gpumem_buffer_read(buffer, offset, back, bytes, NULL));
    synchronize(NULL);
    assert_memory_equal(host, back, bytes);
}

/* ---- Device pool ----------------------------------------------------------------------------- */

TEST(an_own_pool_caches_freed_memory) {
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    gpumem_buffer *buffer = allocate(pool, 3 * MIB);
    check_bytes(buffer);
    assert_int_equal(stats_of(pool).in_use_bytes, 3 * MIB);
    OK(gpumem_buffer_free(buffer, NULL));
    synchronize(NULL);
    gpumem_stats stats = stats_of(pool);
    assert_int_equal(stats.in_use_bytes, 0);
    assert_true(stats.cached_bytes >= 3 * MIB);
    assert_int_equal(stats.committed_bytes, stats.cached_bytes);
    OK(gpumem_resource_trim(pool, 0));
    assert_int_equal(stats_of(pool).cached_bytes, 0);
    OK(gpumem_resource_destroy(pool));
}

TEST(settings_of_shared_pools_are_not_changed) {
    gpumem_resource *pool;
    FAILS(INVALID_ARGUMENT,
          gpumem_device_pool_resource_create(
              device,
              GPUMEM_DEVICE_POOL_OPTIONS(.pool = GPUMEM_POOL_DEFAULT, .release_threshold = 1),
              &pool));
    uint64_t made = soft->call_count("cuMemPoolCreate");
    pool = NEW_POOL();
    assert_int_equal(soft->call_count("cuMemPoolCreate"), made);
    gpumem_buffer *buffer = allocate(pool, 100);
    check_bytes(buffer);
    FAILS(BUSY, gpumem_resource_destroy(pool));
    OK(gpumem_buffer_free(buffer, NULL));
    uint64_t trims = soft->call_count("cuMemPoolTrimTo");
    OK(gpumem_device_trim(device, true));
    assert_int_equal(soft->call_count("cuMemPoolTrimTo"), trims);
    OK(gpumem_resource_destroy(pool));
    gpumem_resource *own = NEW_POOL(.maximum_bytes = 64 * MIB);
    assert_int_equal(soft->call_count("cuMemPoolCreate"), made + 1);
    gpumem_buffer *none;
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(own, 65 * MIB, NULL, &none));
    OK(gpumem_resource_destroy(own));
}

TEST(pool_memory_can_be_aligned) {
    gpumem_resource *pool = NEW_POOL();
    for (size_t alignment = 1; alignment <= MIB; alignment *= 4) {
        gpumem_buffer *buffer = NEW_BUFFER_WITH(pool, 1000, .alignment = alignment);
        assert_int_equal(gpumem_buffer_pointer(buffer) % alignment, 0);
        check_bytes(buffer);
        OK(gpumem_buffer_free(buffer, NULL));
    }
    gpumem_buffer *buffer = allocate(pool, 16);
    FAILS(NOT_SUPPORTED, gpumem_buffer_grow(buffer, 17, NULL));
    gpumem_buffer *none;
    FAILS(NOT_SUPPORTED,
          gpumem_buffer_allocate(pool, 16, GPUMEM_BUFFER_OPTIONS(.capacity = 32), &none));
    gpumem_export *exported;
    FAILS(NOT_SUPPORTED, gpumem_export_create(buffer, &exported));
    SAYS("with ipc"); /* says what would do */
    DESTROY(buffer, pool);
}

TEST(out_of_range_copies_are_refused) {
    gpumem_resource *pool = NEW_POOL();
    gpumem_buffer *buffer = allocate(pool, 16), *other = allocate(pool, 32);
    char host[32] = {0};
    FAILS(INVALID_ARGUMENT, gpumem_buffer_write(buffer, 10, host, 7, NULL));
    SAYS("7 bytes at offset 10");
    FAILS(INVALID_ARGUMENT, gpumem_buffer_read(buffer, SIZE_MAX, host, 2, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill(buffer, 0, 17, 0, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_copy(buffer, 0, other, 0, 17, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_copy(other, 16, buffer, 1, 16, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_allocate(pool, 0, NULL, &buffer));
    OK(gpumem_buffer_write(buffer, 16, NULL, 0, NULL));
    OK(gpumem_buffer_free(NULL, NULL));
    DESTROY(buffer, other, pool);
}

/* ---- Wrappers -------------------------------------------------------------------------------- */

TEST(a_limit_refuses_allocations_beyond_it) {
    gpumem_resource *base = NEW_VIRTUAL();
    gpumem_resource *limit = NEW_LIMIT(base, 10 * MIB);
    FAILS_SAYING(BUSY, "wrapped", gpumem_resource_destroy(base));
    gpumem_buffer *a, *b;
    a = NEW_BUFFER_WITH(limit, 6 * MIB, .capacity = 64 * MIB);
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_allocate(limit, 5 * MIB, NULL, &b));
    FAILS(OUT_OF_CAPACITY, gpumem_buffer_grow(a, 11 * MIB, NULL));
    assert_int_equal(gpumem_buffer_size(a), 6 * MIB);
    OK(gpumem_buffer_grow(a, 10 * MIB, NULL));
    OK(gpumem_buffer_shrink(a, 2 * MIB, NULL));
    b = allocate(limit, 8 * MIB);
    assert_int_equal(stats_of(limit).in_use_bytes, 10 * MIB);
    assert_int_equal(stats_of(base).in_use_bytes, 10 * MIB);
    assert_int_equal(device_stats().in_use_bytes, 10 * MIB); /* counted once */
    assert_int_equal(stats_of(limit).allocations_failed, 2);
    DESTROY(b, a, limit, base);
}

static int lines;
static char last_line[512];

static void collect(void *user, gpumem_log_level level, const char *text) {
    assert_ptr_equal(user, &lines);
    assert_int_equal(level, GPUMEM_LOG_INFO);
    lines++;
    snprintf(last_line, sizeof last_line, "%s", text);
}

TEST(a_logging_resource_logs_every_operation) {
    gpumem_resource *base = NEW_VIRTUAL();
    gpumem_resource *logged =
        NEW_LOGGING(base, .name = "ring", .fn = collect, .user = &lines, .level = GPUMEM_LOG_INFO);
    lines = 0;
    gpumem_buffer *none;
    gpumem_buffer *buffer = NEW_BUFFER_WITH(logged, MIB, .capacity = 64 * MIB);
    assert_int_equal(lines, 1);
    assert_non_null(strstr(last_line, "ring: allocate 1048576 at 0x"));
    OK(gpumem_buffer_grow(buffer, 3 * MIB, NULL));
    assert_non_null(strstr(last_line, "resize 1048576 to 3145728"));
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(logged, (size_t)1 << 46, NULL, &none));
    assert_non_null(strstr(last_line, "failed"));
    gpumem_export *exported; /* what is below can be exported through the wrapper */
    exported = NEW_EXPORT(buffer);
    DESTROY(exported, buffer);
    assert_non_null(strstr(last_line, "free 3145728"));
    DESTROY(logged, base);
}

/* ---- One's own ------------------------------------------------------------------------------- */

struct own {
    int live, destroyed, refuse;
};

static gpumem_status own_allocate(void *user, const gpumem_request *request,
                                  gpumem_allocation *allocation) {
    struct own *own = user;
    CUcontext now = NULL;
    OK_CU(cu->cuCtxGetCurrent(&now));
    assert_ptr_equal(now, gpumem_device_context(device));
    if (own->refuse)
        return gpumem_set_last_error(GPUMEM_ERROR_OUT_OF_MEMORY, "the well is dry");
    CUdeviceptr pointer;
    if (cu->cuMemAlloc_v2(&pointer, request->bytes) != CUDA_SUCCESS)
        return gpumem_set_last_error(GPUMEM_ERROR_DRIVER, "cuMemAlloc");
    own->live++;
    allocation->pointer = pointer;
    allocation->bytes = allocation->committed_bytes = allocation->capacity = request->bytes;
    return GPUMEM_OK;
}

static void own_deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    OK_CU(cu->cuMemFree_v2(allocation->pointer));
    ((struct own *)user)->live--;
}

static void own_properties(void *user, gpumem_resource_properties *properties) {
    properties->device_accessible = 1;
}

static void own_destroy(void *user) {
    ((struct own *)user)->destroyed++;
}

TEST(a_custom_resource_calls_its_functions) {
    struct own own = {0};
    gpumem_resource_ops ops = {
        .size = sizeof ops,
        .kind = "mine",
        .allocate = own_allocate,
        .deallocate = own_deallocate,
        .properties = own_properties,
        .destroy = own_destroy,
    };
    gpumem_resource *resource = MADE(gpumem_resource *, gpumem_resource_create, device, &ops, &own);
    gpumem_resource_properties properties = properties_of(resource);
    assert_string_equal(properties.kind, "mine");
    assert_int_equal(properties.granularity, 1);
    gpumem_buffer *buffer = allocate(resource, 1000), *none;
    check_bytes(buffer);
    own.refuse = 1;
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(resource, 1, NULL, &none));
    SAYS("the well is dry");

    struct gate gate = gate_with_stream();
    OK(gpumem_buffer_free(buffer, gate.stream));
    assert_int_equal(own.live, 1); /* not stream-ordered: called when no stream uses it */
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 0));
    assert_int_equal(own.live, 0);
    gate_remove(&gate);
    OK(gpumem_resource_destroy(resource));
    assert_int_equal(own.destroyed, 1);
    ops.allocate = NULL;
    FAILS(INVALID_ARGUMENT, gpumem_resource_create(device, &ops, &own, &resource));
    assert_int_equal(own.destroyed, 1);
}
