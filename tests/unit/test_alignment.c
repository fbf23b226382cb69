/* Buffers that begin and end at multiples, whatever is below. */
#include "library_test.h"

static int teardown(void **state) {
    return close_device(state);
}

EACH_TEST(open_device, teardown);

static gpumem_resource *aligned(gpumem_resource *upstream, size_t alignment, size_t multiple,
                                size_t threshold) {
    return NEW_ALIGNMENT(upstream, .alignment = alignment, .size_multiple = multiple,
                         .threshold = threshold);
}

static void check_aligned(gpumem_resource *upstream, size_t alignment) {
    static const size_t sizes[] = {1, 100, 4096, 5000, 70000};
    gpumem_resource *resource = aligned(upstream, alignment, 0, 0);
    gpumem_buffer *buffers[COUNT(sizes)];
    for (size_t i = 0; i < COUNT(sizes); i++) {
        buffers[i] = NEW_BUFFER(resource, sizes[i]);
        assert_int_equal(gpumem_buffer_pointer(buffers[i]) % alignment, 0);
        assert_int_equal(gpumem_buffer_size(buffers[i]), sizes[i]);
        size_t whole = (sizes[i] + alignment - 1) & ~(alignment - 1);
        /* All of it is the buffer's: what is filled up to the multiple meets nobody. */
        OK(fill_bytes(device, gpumem_buffer_pointer(buffers[i]), whole, (unsigned char)(i + 1),
                      NULL));
    }
    for (size_t i = 0; i < COUNT(sizes); i++) {
        unsigned char ends[2];
        OK(gpumem_buffer_read(buffers[i], 0, ends, 1, NULL));
        OK(gpumem_buffer_read(buffers[i], sizes[i] - 1, ends + 1, 1, NULL));
        synchronize(NULL);
        assert_int_equal(ends[0], i + 1);
        assert_int_equal(ends[1], i + 1);
        OK(gpumem_buffer_free(buffers[i], NULL));
    }
    OK(gpumem_resource_destroy(resource));
}

TEST(every_resource_returns_aligned_buffers) {
    gpumem_resource *list[5];
    list[0] = NEW_POOL();
    list[1] = NEW_PINNED();
    list[2] = NEW_MANAGED();
    list[3] = NEW_VIRTUAL();
    list[4] = NEW_CACHING(list[0]);
    for (int i = 4; i >= 0; i--) {
        check_aligned(list[i], 4096);
        check_aligned(list[i], 64 * KIB);
        assert_int_equal(device_stats().allocations, 0);
        OK(gpumem_resource_destroy(list[i]));
    }
}

/* ---- Over a resource that ignores alignments ------------------------------------------------- */

struct careless {
    gpumem_resource *pool;
    size_t odd; /* added to every address */
};

static gpumem_status careless_allocate(void *user, const gpumem_request *request,
                                       gpumem_allocation *allocation) {
    struct careless *c = user;
    gpumem_buffer *from;
    gpumem_status status = gpumem_buffer_allocate(c->pool, request->bytes + c->odd, NULL, &from);
    if (status != GPUMEM_OK)
        return status;
    allocation->pointer = gpumem_buffer_pointer(from) + c->odd;
    allocation->bytes = allocation->capacity = request->bytes;
    allocation->committed_bytes = gpumem_buffer_committed(from);
    allocation->cookie = from;
    return GPUMEM_OK;
}

static void careless_deallocate(void *user, const gpumem_allocation *allocation, CUstream stream) {
    (void)gpumem_buffer_free(allocation->cookie, stream);
}

static void careless_properties(void *user, gpumem_resource_properties *properties) {
    properties->device_accessible = 1;
}

TEST(a_misaligned_upstream_buffer_is_cut_to_the_alignment) {
    struct careless c = {.odd = 48};
    c.pool = NEW_POOL();
    const gpumem_resource_ops ops = {.size = sizeof ops,
                                     .kind = "careless",
                                     .allocate = careless_allocate,
                                     .deallocate = careless_deallocate,
                                     .properties = careless_properties,
                                     .upstream = c.pool};
    gpumem_resource *resource = MADE(gpumem_resource *, gpumem_resource_create, device, &ops, &c);
    check_aligned(resource, 4096);
    assert_int_equal(device_stats().allocations, 0);
    DESTROY(resource, c.pool);
}

/* ---- Growth, exports, options ---------------------------------------------------------------- */

TEST(growth_and_exports_pass_through_an_alignment_wrapper) {
    gpumem_resource *upstream = NEW_VIRTUAL();
    gpumem_resource *resource = aligned(upstream, 8 * MIB, 0, 0);
    gpumem_resource_properties p = properties_of(resource);
    MEMBERS(p, (exportable, 1), (can_resize, 1), (granularity, 8 * MIB));
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, MIB, .capacity = 60 * MIB);
    CUdeviceptr pointer = gpumem_buffer_pointer(buffer);
    assert_int_equal(pointer % (8 * MIB), 0);
    assert_int_equal(gpumem_buffer_committed(buffer), 8 * MIB);
    assert_int_equal(gpumem_buffer_capacity(buffer), 64 * MIB);
    uint64_t calls = soft->call_count("cuMemCreate");
    OK(gpumem_buffer_grow(buffer, 5 * MIB, NULL)); /* it has that already */
    assert_int_equal(soft->call_count("cuMemCreate"), calls);
    OK(gpumem_buffer_grow(buffer, 9 * MIB, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), 16 * MIB);
    assert_int_equal(gpumem_buffer_size(buffer), 9 * MIB);
    assert_int_equal(gpumem_buffer_pointer(buffer), pointer);
    gpumem_export *exported = NEW_EXPORT(buffer);
    assert_int_equal(export_info(exported).bytes, 9 * MIB);
    OK(gpumem_export_destroy(exported));
    OK(gpumem_buffer_shrink(buffer, 3 * MIB, NULL));
    assert_int_equal(gpumem_buffer_committed(buffer), 8 * MIB);
    assert_int_equal(device_stats().committed_bytes, 8 * MIB);
    FAILS(BUSY, gpumem_resource_destroy(upstream));
    OK(gpumem_buffer_free(buffer, NULL));
    assert_int_equal(device_stats().committed_bytes, 0);
    DESTROY(resource, upstream);
}

TEST(buffers_below_the_threshold_are_not_aligned) {
    gpumem_resource *pool = NEW_POOL();
    gpumem_resource *resource = aligned(pool, MIB, 0, 64 * KIB);
    gpumem_buffer *a = NEW_BUFFER(resource, 100), *b = NEW_BUFFER(resource, 100),
                  *c = NEW_BUFFER(resource, 64 * KIB);
    assert_true(gpumem_buffer_committed(b) < 64 * KIB);
    assert_int_equal(gpumem_buffer_pointer(c) % MIB, 0);
    assert_true(gpumem_buffer_committed(c) >= MIB);
    DESTROY(a, b, c, resource);
    FAILS(INVALID_ARGUMENT, gpumem_alignment_resource_create(
                                pool, GPUMEM_ALIGNMENT_OPTIONS(.alignment = 3000), &resource));
    gpumem_buffer *none;
    resource = aligned(pool, MIB, 0, 0);
    FAILS(OUT_OF_MEMORY, gpumem_buffer_allocate(resource, SIZE_MAX, NULL, &none));
    DESTROY(resource, pool);
}

/* A freed buffer waits for the work that was there when it was freed, not for what came later. */
TEST(a_free_does_not_wait_for_later_work) {
    gpumem_resource *upstream = NEW_VIRTUAL();
    gpumem_resource *resource = aligned(upstream, 4096, 0, 0);
    struct gate early = gate_with_stream(), late = gate_with_stream();
    CUevent event = NEW_EVENT();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, MIB, .stream = early.stream);
    OK(gpumem_buffer_free(buffer, NULL));
    gpumem_stats stats = stats_of(resource);
    assert_int_equal(stats.deferred_frees, 1);
    assert_int_equal(device_stats().committed_bytes, 2 * MIB);
    OK(gpumem_event_record(device, event, late.stream));
    OK(gpumem_stream_wait_event(device, early.stream, event)); /* behind the other gate */
    __atomic_store_n(early.flag, 1, __ATOMIC_SEQ_CST);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().committed_bytes, 0);
    gate_drain(&late);
    synchronize(early.stream);
    DESTROY(event, resource, upstream, &early);
    gate_remove(&late);
}
