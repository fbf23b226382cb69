/* Where the memory of buffers lies, and that a layout is named by its generation. */
#include "library_test.h"

ALL_TESTS(open_device, close_device);

static gpumem_resource *make_virtual(void) {
    gpumem_resource *resource;
    OK(gpumem_virtual_resource_create(
        device,
        GPUMEM_VIRTUAL_OPTIONS(.chunk_maximum = 4 * MIB, .exact_growth = 1, .capacity = 64 * MIB,
                               .handle_type = GPUMEM_HANDLE_POSIX_FD),
        &resource));
    return resource;
}

static gpumem_buffer *allocate(gpumem_resource *resource, size_t bytes) {
    gpumem_buffer *buffer;
    OK(gpumem_buffer_allocate(resource, bytes, NULL, &buffer));
    return buffer;
}

static gpumem_layout layout_of(gpumem_buffer *buffer, gpumem_segment *segments, size_t room) {
    gpumem_layout layout = {.size = sizeof layout};
    OK(gpumem_buffer_get_layout(buffer, &layout, segments, room));
    return layout;
}

/* Whole granules that lie one behind the other, and whose handles the driver knows. */
static void check_segments(const gpumem_layout *layout, const gpumem_segment *segments) {
    size_t end = 0;
    assert_int_equal(layout->base % layout->granularity, 0);
    assert_int_equal(layout->bytes % layout->granularity, 0);
    for (size_t i = 0; i < layout->segment_count; i++) {
        CUmemAllocationProp prop = {0};
        assert_int_equal(segments[i].offset, end);
        assert_int_equal(segments[i].bytes % layout->granularity, 0);
        assert_int_equal(cu->cuMemGetAllocationPropertiesFromHandle(&prop, segments[i].handle),
                         CUDA_SUCCESS);
        end += segments[i].bytes;
    }
    assert_int_equal(end, layout->bytes);
}

TEST(a_virtual_buffer_has_one_segment_per_handle) {
    gpumem_resource *resource = make_virtual();
    gpumem_buffer *view, *buffer = allocate(resource, 9 * MIB);
    gpumem_segment segments[8];
    gpumem_layout layout = layout_of(buffer, segments, COUNT(segments));
    assert_int_equal(layout.base, gpumem_buffer_pointer(buffer));
    assert_int_equal(layout.bytes, gpumem_buffer_committed(buffer));
    assert_int_equal(layout.capacity, 64 * MIB);
    assert_int_equal(layout.segment_count, gpumem_buffer_chunks(buffer));
    assert_int_equal(layout.granularity, 2 * MIB);
    assert_int_equal(layout.offset, 0);
    check_segments(&layout, segments);
    /* Of a view the same, with where it begins. */
    OK(gpumem_buffer_view(buffer, 3 * MIB + 5, 7, &view));
    gpumem_layout of_view = layout_of(view, NULL, 0);
    assert_int_equal(of_view.base, layout.base);
    assert_int_equal(of_view.generation, layout.generation);
    assert_int_equal(of_view.offset, 3 * MIB + 5);
    OK(gpumem_buffer_free(view, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_destroy(resource));
}

TEST(no_more_segments_are_written_than_fit) {
    gpumem_resource *resource = make_virtual();
    gpumem_buffer *buffer = allocate(resource, 16 * MIB);
    gpumem_segment segments[3] = {{0}, {0}, {99, 99, 99}};
    gpumem_layout layout = layout_of(buffer, segments, 2);
    assert_int_equal(layout.segment_count, 4);
    assert_int_equal(segments[1].offset, 4 * MIB);
    assert_int_equal(segments[2].offset, 99);
    layout.size = 16;
    segments[0].offset = 77;
    FAILS(INVALID_ARGUMENT, gpumem_buffer_get_layout(buffer, &layout, segments, 3));
    assert_int_equal(segments[0].offset, 77);
    FAILS(INVALID_ARGUMENT, gpumem_buffer_get_layout(buffer, NULL, NULL, 0));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_get_layout(buffer, &layout, NULL, 1));
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_destroy(resource));
}

TEST(every_mapping_change_gets_a_new_generation) {
    uint64_t seen[5];
    gpumem_resource *resource = make_virtual();
    gpumem_buffer *other = allocate(resource, 1), *buffer = allocate(resource, 4 * MIB);
    seen[0] = layout_of(buffer, NULL, 0).generation;
    assert_int_equal(layout_of(buffer, NULL, 0).generation, seen[0]);
    OK(gpumem_buffer_shrink(buffer, 4 * MIB - 1, NULL)); /* nothing is unmapped */
    assert_int_equal(layout_of(buffer, NULL, 0).generation, seen[0]);
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL));
    seen[1] = layout_of(buffer, NULL, 0).generation;
    OK(gpumem_buffer_shrink(buffer, 4 * MIB, NULL));
    OK(gpumem_buffer_grow(buffer, 8 * MIB, NULL)); /* as large as before, and other memory */
    seen[2] = layout_of(buffer, NULL, 0).generation;
    seen[3] = layout_of(other, NULL, 0).generation;
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    buffer = allocate(resource, 4 * MIB);
    assert_int_equal(gpumem_buffer_pointer(buffer), address); /* it is chosen again */
    seen[4] = layout_of(buffer, NULL, 0).generation;
    for (size_t i = 0; i < COUNT(seen); i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(seen[i], seen[j]);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_buffer_free(other, NULL));
    OK(gpumem_resource_destroy(resource));
}

/* A refusal may have had its effect, and been undone: the same memory, and mapped anew. */
TEST(a_refused_shrink_gets_a_new_generation) {
    gpumem_resource *resource = make_virtual();
    gpumem_buffer *buffer = allocate(resource, 12 * MIB);
    uint64_t before = layout_of(buffer, NULL, 0).generation;
    assert_int_equal(
        soft->fault_arm("cuMemUnmap", 0, CUDA_ERROR_INVALID_VALUE, SOFTGPU_FAULT_BEFORE), 0);
    FAILS(DRIVER, gpumem_buffer_shrink(buffer, 1, NULL));
    assert_int_not_equal(soft->fault_disarm(), 0);
    assert_int_equal(gpumem_buffer_committed(buffer), 12 * MIB);
    assert_int_not_equal(layout_of(buffer, NULL, 0).generation, before);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_destroy(resource));
}

TEST(an_import_has_the_exporters_segments) {
    gpumem_resource *resource = make_virtual();
    gpumem_buffer *imported, *buffer = allocate(resource, 9 * MIB);
    gpumem_export *exported;
    gpumem_segment segments[8];
    const void *description;
    size_t bytes, count;
    int fds[8];
    OK(gpumem_export_create(buffer, &exported));
    count = gpumem_export_descriptor_count(exported);
    for (size_t i = 0; i < count; i++)
        OK(gpumem_export_get_descriptor(exported, i, &fds[i]));
    OK(gpumem_export_get_description(exported, &description, &bytes));
    OK(gpumem_import_create(device, description, bytes, fds, count, NULL, &imported));
    gpumem_layout layout = layout_of(imported, segments, COUNT(segments));
    assert_int_equal(layout.segment_count, count);
    assert_int_equal(layout.bytes, 10 * MIB);
    assert_int_equal(layout.granularity, 2 * MIB);
    check_segments(&layout, segments);
    OK(gpumem_export_destroy(exported));
    OK(gpumem_buffer_free(imported, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_destroy(resource));
}

TEST(pool_and_pinned_buffers_have_one_segment_without_a_handle) {
    gpumem_resource *pool, *pinned;
    OK(gpumem_device_pool_resource_create(
        device, GPUMEM_DEVICE_POOL_OPTIONS(.pool = GPUMEM_POOL_OWN), &pool));
    OK(gpumem_pinned_resource_create(device, NULL, &pinned));
    gpumem_resource *resources[] = {pool, pinned};
    for (size_t i = 0; i < COUNT(resources); i++) {
        gpumem_buffer *buffer = allocate(resources[i], 1000);
        gpumem_segment segment;
        gpumem_layout layout = layout_of(buffer, &segment, 1);
        assert_int_equal(layout.segment_count, 1);
        assert_int_equal(layout.base, gpumem_buffer_pointer(buffer));
        assert_int_equal(layout.base % layout.granularity, 0);
        assert_int_equal(layout.bytes % layout.granularity, 0);
        assert_true(layout.bytes >= 1000);
        assert_int_equal(segment.bytes, layout.bytes);
        assert_int_equal(segment.handle, 0);
        OK(gpumem_buffer_free(buffer, NULL));
        OK(gpumem_resource_destroy(resources[i]));
    }
}

/* A limit's buffer is the virtual one in another coat. */
TEST(a_wrapped_buffer_shows_the_layout_of_the_inner_one) {
    gpumem_resource *resource = make_virtual(), *limit;
    OK(gpumem_limit_resource_create(resource, 64 * MIB, &limit));
    gpumem_buffer *buffer = allocate(limit, 9 * MIB);
    gpumem_segment segments[8];
    gpumem_layout layout = layout_of(buffer, segments, COUNT(segments));
    assert_int_equal(layout.segment_count, 3);
    check_segments(&layout, segments);
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_destroy(limit));
    OK(gpumem_resource_destroy(resource));
}
