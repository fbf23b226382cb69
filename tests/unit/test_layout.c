/* Where the memory of buffers lies, and that a layout is named by its generation. */
#include "library_test.h"

ALL_TESTS(open_device, close_device);

static gpumem_resource *make_virtual(void) {
    return NEW_VIRTUAL(.chunk_maximum = 4 * MIB, .exact_growth = 1, .capacity = 64 * MIB,
                       .handle_type = GPUMEM_HANDLE_POSIX_FD);
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
        OK_CU(cu->cuMemGetAllocationPropertiesFromHandle(&prop, segments[i].handle));
        end += segments[i].bytes;
    }
    assert_int_equal(end, layout->bytes);
}

TEST(a_virtual_buffer_has_one_segment_per_handle) {
    gpumem_resource *resource = make_virtual();
    gpumem_buffer *view, *buffer = NEW_BUFFER(resource, 9 * MIB);
    gpumem_segment segments[8];
    gpumem_layout layout = layout_of(buffer, segments, COUNT(segments));
    MEMBERS(layout, (base, gpumem_buffer_pointer(buffer)), (bytes, gpumem_buffer_committed(buffer)),
            (capacity, 64 * MIB), (segment_count, chunks_of(buffer)), (granularity, 2 * MIB),
            (offset, 0));
    check_segments(&layout, segments);
    /* Of a view the same, with where it begins. */
    view = NEW_VIEW(buffer, 3 * MIB + 5, 7);
    gpumem_layout of_view = layout_of(view, NULL, 0);
    MEMBERS(of_view, (base, layout.base), (generation, layout.generation), (offset, 3 * MIB + 5));
    DESTROY(view, buffer, resource);
}

TEST(no_more_segments_are_written_than_fit) {
    gpumem_resource *resource = make_virtual();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 16 * MIB);
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
    DESTROY(buffer, resource);
}

TEST(every_mapping_change_gets_a_new_generation) {
    uint64_t seen[5];
    gpumem_resource *resource = make_virtual();
    gpumem_buffer *other = NEW_BUFFER(resource, 1), *buffer = NEW_BUFFER(resource, 4 * MIB);
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
    buffer = NEW_BUFFER(resource, 4 * MIB);
    assert_int_equal(gpumem_buffer_pointer(buffer), address); /* it is chosen again */
    seen[4] = layout_of(buffer, NULL, 0).generation;
    for (size_t i = 0; i < COUNT(seen); i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(seen[i], seen[j]);
    DESTROY(buffer, other, resource);
}

/* A refusal may have had its effect, and been undone: the same memory, and mapped anew. */
TEST(a_refused_shrink_gets_a_new_generation) {
    gpumem_resource *resource = make_virtual();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 12 * MIB);
    uint64_t before = layout_of(buffer, NULL, 0).generation;
    assert_int_equal(
        soft->fault_arm("cuMemUnmap", 0, CUDA_ERROR_INVALID_VALUE, SOFTGPU_FAULT_BEFORE), 0);
    FAILS(DRIVER, gpumem_buffer_shrink(buffer, 1, NULL));
    assert_int_not_equal(soft->fault_disarm(), 0);
    assert_int_equal(gpumem_buffer_committed(buffer), 12 * MIB);
    assert_int_not_equal(layout_of(buffer, NULL, 0).generation, before);
    DESTROY(buffer, resource);
}

TEST(an_import_has_the_exporters_segments) {
    gpumem_resource *resource = make_virtual();
    gpumem_buffer *imported, *buffer = NEW_BUFFER(resource, 9 * MIB);
    gpumem_segment segments[8];
    const void *description;
    size_t bytes, count;
    int fds[8];
    gpumem_export *exported = NEW_EXPORT(buffer);
    count = export_info(exported).descriptor_count;
    for (size_t i = 0; i < count; i++)
        OK(export_descriptor(exported, i, &fds[i]));
    OK(export_description(exported, &description, &bytes));
    OK(gpumem_import_create(device, description, bytes, fds, count, NULL, &imported));
    gpumem_layout layout = layout_of(imported, segments, COUNT(segments));
    MEMBERS(layout, (segment_count, count), (bytes, 10 * MIB), (granularity, 2 * MIB));
    check_segments(&layout, segments);
    DESTROY(exported, imported, buffer, resource);
}

TEST(pool_and_pinned_buffers_have_one_segment_without_a_handle) {
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    gpumem_resource *pinned = NEW_PINNED();
    gpumem_resource *resources[] = {pool, pinned};
    for (size_t i = 0; i < COUNT(resources); i++) {
        gpumem_buffer *buffer = NEW_BUFFER(resources[i], 1000);
        gpumem_segment segment;
        gpumem_layout layout = layout_of(buffer, &segment, 1);
        MEMBERS(layout, (segment_count, 1), (base, gpumem_buffer_pointer(buffer)));
        assert_int_equal(layout.base % layout.granularity, 0);
        assert_int_equal(layout.bytes % layout.granularity, 0);
        assert_true(layout.bytes >= 1000);
        MEMBERS(segment, (bytes, layout.bytes), (handle, 0));
        DESTROY(buffer, resources[i]);
    }
}

/* A limit's buffer is the virtual one in another coat. */
TEST(a_wrapped_buffer_shows_the_layout_of_the_inner_one) {
    gpumem_resource *resource = make_virtual();
    gpumem_resource *limit = NEW_LIMIT(resource, 64 * MIB);
    gpumem_buffer *buffer = NEW_BUFFER(limit, 9 * MIB);
    gpumem_segment segments[8];
    gpumem_layout layout = layout_of(buffer, segments, COUNT(segments));
    assert_int_equal(layout.segment_count, 3);
    check_segments(&layout, segments);
    DESTROY(buffer, limit, resource);
}
