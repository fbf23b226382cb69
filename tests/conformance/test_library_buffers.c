/* Views, copies in every form, foreign memory, attributes, layouts and watches of the memory
 * library, on any driver, by their bytes. */
#include "library.h"

static CUstream stream;

static void begin(void) {
    open_library();
    OK(gpumem_stream_create(device, NULL, &stream));
}

static void end(void) {
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_stream_destroy(device, stream));
}

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes) {
    return NEW_BUFFER_WITH(resource, bytes, .stream = stream);
}

static gpumem_buffer_attributes attributes_of(gpumem_buffer *buffer) {
    gpumem_buffer_attributes attributes = {.size = sizeof attributes};
    OK(gpumem_buffer_get_attributes(buffer, &attributes));
    return attributes;
}

static gpumem_resource *make_virtual(gpumem_location location) {
    return NEW_VIRTUAL(.location = location, .capacity = 64 * MIB, .maximum_chunk_bytes = 2 * MIB,
                       .exact_growth = 1);
}

static gpumem_resource *make_pool(void) {
    return NEW_POOL(.pool = GPUMEM_POOL_OWN);
}

static gpumem_resource *make_pinned(gpumem_pinned_method method) {
    return NEW_PINNED(.method = method);
}

TEST(a_view_keeps_its_buffer_alive) {
    unsigned char bytes[KIB];
    begin();
    gpumem_resource *resource = make_virtual(GPUMEM_LOCATION_DEVICE);
    gpumem_buffer *view, *buffer = allocate(resource, 4 * MIB);
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 1, stream));
    OK(gpumem_buffer_view(buffer, 4 * MIB - KIB, KIB, &view));
    assert_int_equal(gpumem_buffer_shrink(buffer, 2 * MIB, stream), GPUMEM_ERROR_BUSY);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_buffer_fill(view, 0, KIB / 2, 2, stream));
    OK(read_now(view, 0, bytes, KIB, stream));
    for (size_t i = 0; i < KIB; i++)
        assert_int_equal(bytes[i], i < KIB / 2 ? 2 : 1);
    OK(gpumem_buffer_free(view, stream));
    OK(gpumem_resource_destroy(resource));
    end();
}

/* Patterns, rows and batches. */
static void check_copies(gpumem_resource *to_resource, gpumem_resource *from_resource) {
    enum { WIDTH = 100, PITCH = 128, ROWS = 7, ITEMS = 20 };
    const uint32_t pattern = 0x44332211;
    const gpumem_rows rows = {.width = WIDTH, .count = ROWS, .to_pitch = PITCH};
    unsigned char source[WIDTH * ROWS], bytes[PITCH * ROWS];
    gpumem_buffer_copy_item items[ITEMS];
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i * 3);
    gpumem_buffer *to = allocate(to_resource, sizeof bytes);
    gpumem_buffer *from = allocate(from_resource, sizeof source);
    OK(write_now(from, 0, source, sizeof source, stream));
    OK(gpumem_buffer_fill_pattern(to, 0, sizeof bytes, &pattern, 4, stream));
    OK(gpumem_buffer_copy_2d(to, 0, from, 0, &rows, stream));
    OK(read_now(to, 0, bytes, sizeof bytes, stream));
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], i % PITCH < WIDTH ? source[i / PITCH * WIDTH + i % PITCH]
                                                     : pattern >> i % 4 * 8 & 0xff);
    OK(fill_now(to, 0, sizeof bytes, 9, stream));
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = (gpumem_buffer_copy_item){to, i * 32, from, (ITEMS - 1 - i) * 32, 16};
    gpumem_batch_report report = {.size = sizeof report};
    OK(gpumem_buffer_copy_batch(items, ITEMS, stream, &report));
    print_message("batch: %s\n", report.batched ? "one call" : report.note);
    assert_true(report.batched || report.note[0]);
    OK(read_now(to, 0, bytes, sizeof bytes, stream));
    for (size_t i = 0; i < ITEMS * 32; i++)
        assert_int_equal(bytes[i], i % 32 < 16 ? source[(ITEMS - 1 - i / 32) * 32 + i % 32] : 9);
    OK(gpumem_buffer_free(to, stream));
    OK(gpumem_buffer_free(from, stream));
}

TEST(every_form_of_copy_works_between_all_memory_kinds) {
    begin();
    gpumem_resource *resources[] = {make_pool(), make_pinned(GPUMEM_PINNED_REGISTERED),
                                    make_virtual(GPUMEM_LOCATION_DEVICE)};
    for (size_t i = 0; i < COUNT(resources); i++)
        for (size_t j = 0; j < COUNT(resources); j++)
            check_copies(resources[i], resources[j]);
    for (size_t i = 0; i < COUNT(resources); i++)
        OK(gpumem_resource_destroy(resources[i]));
    end();
}

/* Host memory that nobody pinned is a side of rows, too. */
TEST(rows_are_copied_to_and_from_plain_host_memory) {
    const gpumem_rows there = {.width = 3, .count = 5, .to_pitch = 8, .from_pitch = 6};
    const gpumem_rows back = {.width = 3, .count = 5, .to_pitch = 6, .from_pitch = 8};
    unsigned char source[30], bytes[30];
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i + 1);
    memset(bytes, 0xee, sizeof bytes);
    begin();
    gpumem_resource *resource = make_pool();
    gpumem_buffer *buffer = allocate(resource, 64);
    OK(gpumem_buffer_write_2d(buffer, 1, source, &there, stream));
    OK(gpumem_buffer_read_2d(buffer, 1, bytes, &back, stream));
    OK(gpumem_stream_synchronize(device, stream));
    for (size_t i = 0; i < 27; i++)
        assert_int_equal(bytes[i], i % 6 < 3 ? source[i] : 0xee);
    OK(gpumem_buffer_free(buffer, stream));
    OK(gpumem_resource_destroy(resource));
    end();
}

/* The driver's typed copies refuse memory of a host pool; what is named by address alone it takes.
 */
TEST(rows_are_copied_to_and_from_a_host_pool) {
    const gpumem_rows rows = {.width = 3, .count = 5, .to_pitch = 8, .from_pitch = 6};
    gpumem_resource *resource;
    begin();
    gpumem_status status = gpumem_pinned_resource_create(
        device, GPUMEM_PINNED_OPTIONS(.method = GPUMEM_PINNED_POOL, .pool = GPUMEM_POOL_OWN),
        &resource);
    if (status != GPUMEM_OK) {
        end();
        SKIP("no host pool: %s", gpumem_last_error()->message);
    }
    gpumem_resource *pool = make_pool();
    gpumem_buffer *host = allocate(resource, 64), *there = allocate(pool, 64);
    gpumem_buffer *back = allocate(resource, 64);
    OK(gpumem_stream_synchronize(device, stream));
    unsigned char *from = gpumem_buffer_host_pointer(host), *to = gpumem_buffer_host_pointer(back);
    for (size_t i = 0; i < 64; i++)
        from[i] = (unsigned char)(i + 1);
    memset(to, 0xee, 64);
    OK(gpumem_buffer_copy_2d(there, 0, host, 0, &rows, stream));
    OK(gpumem_buffer_copy_2d(back, 0, there, 0,
                             &(gpumem_rows){.width = 3, .count = 5, .to_pitch = 6, .from_pitch = 8},
                             stream));
    OK(gpumem_stream_synchronize(device, stream));
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(to[i], i < 27 && i % 6 < 3 ? from[i] : 0xee);
    assert_int_equal(attributes_of(host).location, GPUMEM_LOCATION_HOST);
    OK(gpumem_buffer_free(host, stream));
    OK(gpumem_buffer_free(back, stream));
    OK(gpumem_buffer_free(there, stream));
    DESTROY(resource, pool);
    end();
}

static void free_in_order(void *user, CUdeviceptr pointer, size_t bytes, CUstream in) {
    OK_CU(cu.cuMemFreeAsync(pointer, in));
    ++*(int *)user;
}

static void free_now(void *user, CUdeviceptr pointer, size_t bytes, CUstream unused) {
    OK_CU(cu.cuMemFree_v2(pointer));
    ++*(int *)user;
}

TEST(foreign_memory_is_used_and_released) {
    int deleted = 0;
    gpumem_buffer *first, *second, *refused = NULL;
    char stack[16];
    begin();
    CUdeviceptr plain = MADE_CU(CUdeviceptr, cuMemAlloc_v2, KIB);
    CUdeviceptr ordered = MADE_CU(CUdeviceptr, cuMemAllocAsync, KIB, stream);
    OK(gpumem_buffer_from_pointer(
        device, plain, KIB,
        GPUMEM_FOREIGN_OPTIONS(.stream = stream, .deleter = free_now, .user = &deleted), &first));
    OK(gpumem_buffer_from_pointer(device, ordered, KIB,
                                  GPUMEM_FOREIGN_OPTIONS(.stream = stream, .deleter = free_in_order,
                                                         .user = &deleted, .stream_ordered = 1),
                                  &second));
    assert_int_equal(
        gpumem_buffer_from_pointer(device, (CUdeviceptr)(uintptr_t)stack, 16, NULL, &refused),
        GPUMEM_ERROR_INVALID_ARGUMENT);
    assert_int_equal(attributes_of(first).location, GPUMEM_LOCATION_DEVICE);
    OK(copy_now(first, 0, second, 0, KIB, stream));
    OK(gpumem_buffer_free(first, stream));
    OK(gpumem_buffer_free(second, stream));
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(deleted, 2);
    end();
}

/* Memory of many handles has pieces, all of which the driver is asked about. */
TEST(memory_of_several_mappings_is_wrapped_as_one_foreign_buffer) {
    gpumem_buffer *foreign, *refused = NULL;
    begin();
    gpumem_resource *resource = make_virtual(GPUMEM_LOCATION_DEVICE);
    gpumem_buffer *buffer = allocate(resource, 6 * MIB);
    CUdeviceptr pointer = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_from_pointer(device, pointer + KIB, 6 * MIB - KIB, NULL, &foreign));
    OK(gpumem_buffer_free(foreign, NULL));
    assert_int_equal(gpumem_buffer_from_pointer(device, pointer, 6 * MIB + 1, NULL, &refused),
                     GPUMEM_ERROR_INVALID_ARGUMENT);
    DESTROY(buffer, resource);
    end();
}

static void check_attributes(gpumem_resource *resource, gpumem_location location, int on_cpu,
                             int managed) {
    gpumem_buffer *buffer = allocate(resource, 2 * MIB);
    gpumem_buffer_attributes is = attributes_of(buffer);
    /* Of memory of a NUMA node an H200 says HOST. */
    assert_true(is.location == location || (!soft && location == GPUMEM_LOCATION_HOST_NUMA &&
                                            is.location == GPUMEM_LOCATION_HOST));
    MEMBERS(is, (host_accessible, on_cpu), (managed, managed), (device_accessible, 1),
            (ordinal, location == GPUMEM_LOCATION_DEVICE ? 0 : -1));
    OK(gpumem_buffer_free(buffer, stream));
    OK(gpumem_resource_destroy(resource));
}

TEST(buffers_of_every_resource_have_their_attributes) {
    begin();
    check_attributes(make_pool(), GPUMEM_LOCATION_DEVICE, 0, 0);
    check_attributes(make_virtual(GPUMEM_LOCATION_DEVICE), GPUMEM_LOCATION_DEVICE, 0, 0);
    check_attributes(make_virtual(GPUMEM_LOCATION_HOST_NUMA), GPUMEM_LOCATION_HOST_NUMA, 1, 0);
    check_attributes(make_pinned(GPUMEM_PINNED_REGISTERED), GPUMEM_LOCATION_HOST, 1, 0);
    check_attributes(make_pinned(GPUMEM_PINNED_ALLOCATED), GPUMEM_LOCATION_HOST, 1, 0);
    gpumem_resource *managed;
    gpumem_status status = gpumem_managed_resource_create(device, NULL, &managed);
    if (status == GPUMEM_OK)
        check_attributes(managed, GPUMEM_LOCATION_DEVICE, 1, 1);
    else
        assert_int_equal(status, GPUMEM_ERROR_NOT_SUPPORTED);
    end();
}

struct heard {
    int count;
    gpumem_watch_event event;
    CUresult mapped;
};

static void listen(void *user, const gpumem_watch_event *event) {
    struct heard *heard = user;
    CUdeviceptr base;
    size_t bytes;
    heard->count++;
    heard->event = *event;
    heard->mapped = cu.cuMemGetAddressRange_v2(&base, &bytes, event->base);
}

TEST(an_unmapping_is_announced_to_the_watcher_first) {
    struct heard heard = {0};
    gpumem_watch *watch;
    gpumem_segment segments[8];
    gpumem_layout layout = {.size = sizeof layout}, later = {.size = sizeof later};
    begin();
    gpumem_resource *resource = make_virtual(GPUMEM_LOCATION_DEVICE);
    gpumem_buffer *buffer = allocate(resource, 8 * MIB);
    OK(gpumem_resource_watch(resource, listen, &heard, &watch));
    OK(gpumem_buffer_get_layout(buffer, &layout, segments, COUNT(segments)));
    assert_int_equal(layout.base % layout.granularity, 0);
    assert_int_equal(layout.bytes % layout.granularity, 0);
    assert_true(layout.segment_count <= COUNT(segments));
    size_t sum = 0;
    for (size_t i = 0; i < layout.segment_count; i++)
        sum += segments[i].bytes;
    assert_int_equal(sum, layout.bytes);
    OK(gpumem_buffer_shrink(buffer, 3 * MIB, stream));
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.event.reason, GPUMEM_WATCH_SHRINK);
    assert_int_equal(heard.event.base % layout.granularity, 0);
    assert_int_equal(heard.event.base + heard.event.bytes, layout.base + layout.bytes);
    assert_int_equal(heard.mapped, CUDA_SUCCESS);
    OK(gpumem_buffer_get_layout(buffer, &later, NULL, 0));
    assert_int_equal(later.base, layout.base);
    assert_int_not_equal(later.generation, layout.generation);
    OK(gpumem_buffer_free(buffer, stream));
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(heard.count, 2);
    MEMBERS(heard.event, (base, layout.base), (bytes, later.bytes));
    assert_int_equal(heard.mapped, CUDA_SUCCESS);
    OK(gpumem_watch_destroy(watch));
    OK(gpumem_resource_destroy(resource));
    end();
}
