/* Resources over resources, on any driver: counts, bytes, growth, exports and order pass through
 * each of them. */
#include "kinds.h"
#include "library.h"

/* `spare` is where a fallback goes on. */
static gpumem_resource *wrap(unsigned which, gpumem_resource *upstream, gpumem_resource *spare) {
    gpumem_resource *made = NULL;
    OK(make_wrapper((enum wrapper)which, upstream, spare, &made));
    return made;
}

/* ---- What passes through --------------------------------------------------------------------- */

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes, size_t capacity) {
    return NEW_BUFFER_WITH(resource, bytes, .capacity = capacity);
}

static void check_bytes(gpumem_buffer *buffer, unsigned char value) {
    size_t size = gpumem_buffer_size(buffer);
    unsigned char *host = malloc(size);
    assert_non_null(host);
    OK(gpumem_buffer_fill(buffer, 0, size, value, NULL));
    OK(gpumem_buffer_read(buffer, 0, host, size, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    for (size_t i = 0; i < size; i++)
        if (host[i] != value)
            fail_msg("byte %zu is %d, not %d", i, host[i], value);
    free(host);
}

static void check_growth(gpumem_resource *resource) {
    gpumem_buffer *buffer = allocate(resource, MIB, 64 * MIB);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    unsigned char first = 0;
    check_bytes(buffer, 0x31);
    OK(gpumem_buffer_grow(buffer, 9 * MIB + 5, NULL));
    assert_int_equal(gpumem_buffer_pointer(buffer), address);
    assert_int_equal(device_stats().in_use_bytes / MIB, 9);
    OK(gpumem_buffer_read(buffer, MIB - 1, &first, 1, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    assert_int_equal(first, 0x31);
    check_bytes(buffer, 0x77);
    OK(gpumem_buffer_shrink(buffer, MIB, NULL));
    check_bytes(buffer, 0x13);
    OK(gpumem_buffer_free(buffer, NULL));
}

static void check_export(gpumem_resource *resource) {
    gpumem_buffer *buffer = allocate(resource, 3 * MIB, 0), *imported = NULL;
    const void *description = NULL;
    size_t bytes = 0;
    int fds[8];
    unsigned char last = 0;
    OK(gpumem_buffer_fill(buffer, 0, 3 * MIB, 0x42, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    gpumem_export *exported = NEW_EXPORT(buffer);
    OK(export_description(exported, &description, &bytes));
    size_t count = export_info(exported).descriptor_count;
    assert_true(count <= COUNT(fds));
    for (size_t i = 0; i < count; i++)
        OK(export_descriptor(exported, i, &fds[i]));
    OK(gpumem_import_create(device, description, bytes, fds, count, NULL, &imported));
    OK(gpumem_buffer_read(imported, 3 * MIB - 1, &last, 1, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    assert_int_equal(last, 0x42);
    DESTROY(imported, exported, buffer);
}

/* All that the wrapped resource can, and counted once. */
static void check(gpumem_resource *upstream, gpumem_resource *resource, const char *name) {
    gpumem_resource_properties up = {.size = sizeof up}, p = {.size = sizeof p};
    uint64_t before = device_stats().allocations;
    OK(gpumem_resource_get_properties(upstream, &up));
    OK(gpumem_resource_get_properties(resource, &p));
    assert_string_equal(p.kind, name);
    assert_int_equal(p.host_accessible, up.host_accessible);
    if (strcmp(name, "caching") == 0) { /* parts of what it keeps */
        assert_false(p.can_resize || p.exportable);
    } else {
        MEMBERS(p, (can_resize, up.can_resize), (exportable, up.exportable),
                (stream_ordered, up.stream_ordered));
    }
    gpumem_buffer *buffer = allocate(resource, 70001, 0);
    assert_int_equal(device_stats().allocations, before + 1);
    check_bytes(buffer, 0x5c);
    OK(gpumem_buffer_free(buffer, NULL));
    if (p.can_resize)
        check_growth(resource);
    if (p.exportable && p.handle_type == GPUMEM_HANDLE_POSIX_FD)
        check_export(resource);
    assert_int_equal(gpumem_resource_destroy(upstream), GPUMEM_ERROR_BUSY);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().allocations, before);
}

static void over(gpumem_resource *upstream, gpumem_resource *spare) {
    for (unsigned i = 0; i < WRAPPERS; i++) {
        gpumem_resource *one = wrap(i, upstream, spare);
        check(upstream, one, wrapper_names[i]);
        for (unsigned k = 0; k < WRAPPERS; k++) {
            gpumem_resource *two = wrap(k, one, spare);
            check(one, two, wrapper_names[k]);
            OK(gpumem_resource_destroy(two));
        }
        OK(gpumem_resource_destroy(one));
    }
    DESTROY(upstream, spare);
    assert_int_equal(device_stats().committed_bytes, 0);
    assert_int_equal(kinds_asked, 0);
}

TEST(every_pair_of_wrappers_works_over_virtual_memory) {
    gpumem_resource *both[2];
    open_library();
    for (size_t i = 0; i < COUNT(both); i++)
        both[i] = NEW_VIRTUAL();
    over(both[0], both[1]);
}

TEST(every_pair_of_wrappers_works_over_a_pool) {
    gpumem_resource *both[2];
    open_library();
    for (size_t i = 0; i < COUNT(both); i++)
        both[i] = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    over(both[0], both[1]);
}

TEST(every_pair_of_wrappers_works_over_pinned_memory) {
    gpumem_resource *both[2];
    open_library();
    for (size_t i = 0; i < COUNT(both); i++)
        both[i] = NEW_PINNED(.keep_nothing = 1, .slab_bytes = 4 * MIB);
    over(both[0], both[1]);
}

/* ---- Device memory, then pinned -------------------------------------------------------------- */

TEST(a_fallback_resource_uses_pinned_memory_when_device_memory_is_full) {
    gpumem_resource *memory = NULL, *little = NULL, *pinned = NULL, *both = NULL, *source = NULL;
    open_library();
    memory = NEW_VIRTUAL();
    OK(gpumem_limiting_resource_create(memory, 8 * MIB, &little));
    pinned = NEW_PINNED();
    OK(gpumem_fallback_resource_create(little, pinned, &both));
    gpumem_buffer *first = allocate(both, 7 * MIB, 0), *second = allocate(both, 3 * MIB, 0);
    OK(gpumem_fallback_get_source(second, &source));
    assert_ptr_equal(source, pinned);
    check_bytes(first, 0x11);
    check_bytes(second, 0x22);
    OK(gpumem_buffer_copy(second, 0, first, MIB, 2 * MIB, NULL));
    OK(gpumem_stream_synchronize(device, NULL));
    assert_int_equal(((unsigned char *)gpumem_buffer_host_pointer(second))[2 * MIB - 1], 0x11);
    assert_int_equal(((unsigned char *)gpumem_buffer_host_pointer(second))[2 * MIB], 0x22);
    DESTROY(first, second, both, pinned, little, memory);
}

/* ---- Order ----------------------------------------------------------------------------------- */

/* Held work keeps the memory below whatever lies between. */
TEST(wrappers_keep_memory_until_queued_work_ends) {
    gpumem_resource *upstream = NULL, *spare = NULL;
    struct gate gate;
    open_library();
    upstream = NEW_VIRTUAL();
    OK(gpumem_virtual_resource_create(device, NULL, &spare));
    for (unsigned i = 0; i < WRAPPERS; i++) {
        gpumem_resource *resource = wrap(i, upstream, spare);
        CUstream stream = NEW_STREAM();
        gate_make(&gate);
        gpumem_buffer *buffer = allocate(resource, 2 * MIB, 0);
        gate_hold(&gate, stream);
        OK(gpumem_buffer_fill(buffer, 0, 2 * MIB, 1, stream));
        OK(gpumem_buffer_free(buffer, stream));
        OK(gpumem_device_trim(device, 0));
        assert_true(device_stats().committed_bytes > 0);
        gate_release(&gate);
        OK(gpumem_stream_synchronize(device, stream)); /* no fault */
        OK(gpumem_device_trim(device, 1));
        assert_int_equal(device_stats().committed_bytes, 0);
        gate_free(&gate);
        DESTROY(stream, resource);
    }
    DESTROY(upstream, spare);
}
