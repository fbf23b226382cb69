/* Wrappers of the user's: a resource that takes its memory from another one, and says so. */
#include "library_test.h"

/* Takes a buffer of the upstream for each of its own, and leaves something out on demand. */
struct wrapper {
    gpumem_resource *upstream;
    gpumem_buffer *kept; /* a cache of one */
    int caches, keeps_quiet;
    size_t offset; /* where in the upstream's buffer its own begin */
};

static gpumem_status take(struct wrapper *w, const gpumem_request *request, gpumem_buffer **from) {
    *from = w->kept;
    w->kept = NULL;
    if (*from)
        return GPUMEM_OK;
    return gpumem_buffer_allocate(
        w->upstream, request->bytes + w->offset,
        GPUMEM_BUFFER_OPTIONS(.stream = request->stream, .capacity = request->capacity), from);
}

static gpumem_status allocate(void *user, const gpumem_request *request,
                              gpumem_allocation *allocation) {
    struct wrapper *w = user;
    gpumem_buffer *from;
    gpumem_status status = take(w, request, &from);
    if (status != GPUMEM_OK)
        return status;
    allocation->pointer = gpumem_buffer_pointer(from) + w->offset;
    allocation->bytes = request->bytes;
    allocation->committed_bytes = gpumem_buffer_committed(from);
    allocation->capacity = gpumem_buffer_capacity(from) - w->offset;
    allocation->cookie = from;
    allocation->buffer = w->keeps_quiet ? NULL : from;
    return GPUMEM_OK;
}

static void trim(void *user, size_t keep_bytes) {
    struct wrapper *w = user;
    (void)gpumem_buffer_free(w->kept, NULL);
    w->kept = NULL;
}

static void deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    struct wrapper *w = user;
    if (!w->caches) {
        (void)gpumem_buffer_free(allocation->cookie, stream);
        return;
    }
    trim(w, 0);
    w->kept = allocation->cookie;
}

static gpumem_status resize(void *user, gpumem_allocation *allocation, size_t bytes,
                            CUstream stream) {
    gpumem_buffer *from = allocation->cookie;
    gpumem_status status = bytes > allocation->bytes ? gpumem_buffer_grow(from, bytes, stream)
                                                     : gpumem_buffer_shrink(from, bytes, stream);
    allocation->bytes = gpumem_buffer_size(from);
    allocation->committed_bytes = gpumem_buffer_committed(from);
    return status;
}

static void properties(void *user, gpumem_resource_properties *out) {
    const struct wrapper *w = user;
    OK(gpumem_resource_get_properties(w->upstream, out));
}

static void stats(void *user, gpumem_stats *out) {
    const struct wrapper *w = user;
    out->cached_bytes += w->kept ? gpumem_buffer_size(w->kept) : 0;
}

static gpumem_resource_ops ops_of(gpumem_resource *upstream) {
    return (gpumem_resource_ops){
        .size = sizeof(gpumem_resource_ops),
        .kind = "wrapper",
        .allocate = allocate,
        .deallocate = deallocate,
        .resize = resize,
        .properties = properties,
        .stats = stats,
        .trim = trim,
        .upstream = upstream,
    };
}

static struct wrapper wrapper;
static gpumem_resource *upstream, *resource;

BEFORE(open_device) {
    upstream = NEW_VIRTUAL();
    wrapper = (struct wrapper){.upstream = upstream};
    const gpumem_resource_ops ops = ops_of(upstream);
    OK(gpumem_resource_create(device, &ops, &wrapper, &resource));
}

static int teardown(void **state) {
    DESTROY(resource, upstream);
    return close_device(state);
}

EACH_TEST(before, teardown);

static gpumem_buffer *make(gpumem_resource *from, size_t bytes, size_t capacity) {
    return NEW_BUFFER_WITH(from, bytes, .capacity = capacity);
}

static void check_counts(gpumem_stats now, uint64_t allocations, uint64_t bytes) {
    MEMBERS(now, (allocations, allocations), (in_use_bytes, bytes), (committed_bytes, bytes),
            (reserved_bytes, bytes ? 16 * MIB : 0));
}

/* Memory of wrapped resources is counted once for a device, by the innermost. */
TEST(memory_of_wrapped_resources_is_counted_once) {
    gpumem_resource *limited = NEW_LIMIT(resource, 32 * MIB);
    gpumem_resource *through[] = {resource, limited};
    for (size_t i = 0; i < COUNT(through); i++) {
        gpumem_buffer *buffer = make(through[i], 4 * MIB, 16 * MIB);
        check_counts(device_stats(), 1, 4 * MIB);
        check_counts(stats_of(upstream), 1, 4 * MIB);
        check_counts(stats_of(through[i]), 1, 4 * MIB);
        OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
        check_counts(device_stats(), 1, 8 * MIB);
        check_counts(stats_of(resource), 1, 8 * MIB);
        OK(gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
        check_counts(device_stats(), 1, 4 * MIB);
        assert_int_equal(chunks_of(buffer), 1);
        OK(gpumem_buffer_free(buffer, NULL));
        check_counts(device_stats(), 0, 0);
        check_counts(stats_of(resource), 0, 0);
    }
    assert_int_equal(device_stats().allocations_total, 2);
    OK(gpumem_resource_destroy(limited));
}

TEST(a_wrapped_resource_cannot_be_destroyed) {
    FAILS_SAYING(BUSY, "wrapped by 1 other", gpumem_resource_destroy(upstream));
    gpumem_buffer *buffer = make(resource, MIB, 0);
    OK(gpumem_buffer_free(buffer, NULL));
    FAILS(BUSY, gpumem_resource_destroy(upstream));
    OK(gpumem_device_trim(device, 1));
}

static void check_export(gpumem_resource *through) {
    gpumem_resource_properties now = properties_of(through);
    MEMBERS(now, (exportable, 1), (handle_type, GPUMEM_HANDLE_POSIX_FD));
    gpumem_buffer *buffer = make(through, 4 * MIB, 16 * MIB), *imported;
    const void *description;
    size_t bytes;
    int fds[4];
    OK(gpumem_buffer_grow(buffer, 6 * MIB - 100, NULL));
    OK(gpumem_buffer_fill(buffer, 0, 6 * MIB - 100, 0x42, NULL));
    synchronize(NULL);
    gpumem_export *exported = NEW_EXPORT(buffer);
    assert_int_equal(export_info(exported).bytes, 6 * MIB - 100);
    assert_int_equal(device_stats().exports, 1);
    assert_int_equal(stats_of(through).exports, 1);
    FAILS(BUSY, gpumem_buffer_shrink(buffer, MIB, NULL));
    OK(gpumem_buffer_free(buffer, NULL)); /* takes effect after the export */
    assert_int_equal(device_stats().committed_bytes, 6 * MIB);
    OK(export_description(exported, &description, &bytes));
    size_t count = export_info(exported).descriptor_count;
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++)
        OK(export_descriptor(exported, i, &fds[i]));
    OK(gpumem_import_create(device, description, bytes, fds, count, NULL, &imported));
    OK(gpumem_export_destroy(exported));
    assert_int_equal(device_stats().exports, 0);
    assert_int_equal(stats_of(upstream).allocations, 0);
    unsigned char last = 0;
    assert_int_equal(gpumem_buffer_size(imported), 6 * MIB - 100);
    OK(gpumem_buffer_read(imported, 6 * MIB - 101, &last, 1, NULL));
    synchronize(NULL);
    assert_int_equal(last, 0x42);
    OK(gpumem_buffer_free(imported, NULL));
}

TEST(exports_pass_through_custom_wrappers) {
    check_export(resource);
    gpumem_resource *logged = NEW_LOGGING(resource, .level = GPUMEM_LOG_DEBUG);
    check_export(logged);
    struct wrapper second = {.upstream = logged};
    const gpumem_resource_ops ops = ops_of(logged);
    gpumem_resource *outer = MADE(gpumem_resource *, gpumem_resource_create, device, &ops, &second);
    check_export(outer);
    DESTROY(outer, logged);
}

/* A part of a buffer cannot be given away without the rest. */
TEST(a_part_of_an_upstream_buffer_cannot_be_exported) {
    gpumem_export *none;
    wrapper.offset = 2 * MIB;
    gpumem_buffer *part = make(resource, 2 * MIB, 0);
    FAILS(NOT_SUPPORTED, gpumem_export_create(part, &none));
    SAYS("a part of a buffer of the virtual resource");
    OK(gpumem_buffer_free(part, NULL));
    wrapper.offset = 0;
    wrapper.keeps_quiet = 1;
    gpumem_buffer *unnamed = make(resource, 2 * MIB, 0);
    FAILS_SAYING(NOT_SUPPORTED, "does not name the buffer", gpumem_export_create(unnamed, &none));
    OK(gpumem_buffer_free(unnamed, NULL));
}

/* Without `upstream` it is a resource like any other, whatever properties it copies. */
TEST(a_resource_without_an_upstream_promises_no_exports) {
    gpumem_export *none;
    struct wrapper w = {.upstream = upstream};
    gpumem_resource_ops ops = ops_of(NULL);
    gpumem_resource *plain = MADE(gpumem_resource *, gpumem_resource_create, device, &ops, &w);
    gpumem_resource_properties now = properties_of(plain);
    assert_int_equal(now.exportable, 0);
    gpumem_buffer *buffer = make(plain, MIB, 0);
    FAILS_SAYING(NOT_SUPPORTED, "upstream", gpumem_export_create(buffer, &none));
    DESTROY(buffer, plain);
    /* Nor does a wrapper get more than what it wraps. */
    gpumem_resource *pool = NEW_POOL();
    w.upstream = upstream; /* whose properties it copies */
    ops = ops_of(pool);
    gpumem_resource *over = MADE(gpumem_resource *, gpumem_resource_create, device, &ops, &w);
    now = properties_of(over);
    assert_int_equal(now.exportable, 0);
    DESTROY(over, pool);
}

TEST(a_wrapper_that_caches_is_counted_and_trimmed) {
    wrapper.caches = 1;
    OK(gpumem_buffer_free(make(resource, 4 * MIB, 0), NULL));
    MEMBERS(device_stats(), (cached_bytes, 4 * MIB), (committed_bytes, 4 * MIB));
    assert_int_equal(stats_of(resource).allocations, 0);
    OK(gpumem_device_trim(device, 1));
    MEMBERS(device_stats(), (cached_bytes, 0), (committed_bytes, 0));
}

TEST(wrapping_a_foreign_or_destroyed_resource_is_refused) {
    gpumem_library *second;
    gpumem_resource *none;
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &second));
    gpumem_device *other = MADE(gpumem_device *, gpumem_device_open, second, 0);
    gpumem_resource_ops ops = ops_of(upstream);
    FAILS(INVALID_ARGUMENT, gpumem_resource_create(other, &ops, &wrapper, &none));
    SAYS("another device");
    OK(gpumem_device_close(other));
    OK(gpumem_close(second));
    gpumem_resource *gone = NEW_POOL();
    OK(gpumem_resource_destroy(gone));
    ops = ops_of(gone);
    FAILS(INVALID_ARGUMENT, gpumem_resource_create(device, &ops, &wrapper, &none));
    SAYS("was destroyed");
}
