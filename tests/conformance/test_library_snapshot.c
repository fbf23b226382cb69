/* The snapshot of the memory library, on any driver: what it lists is what the driver has. */
#include "json_reader.h"
#include "library.h"

static char *take(void) {
    char *text = MADE(char *, snapshot_of, device);
    if (!json_is_valid(text))
        fail_msg("no valid JSON:\n%s", text);
    return text;
}

/* Each mapping is found by the driver too, as a range of these addresses. */
static void check_mappings(const char *memory, CUdeviceptr from, size_t bytes) {
    const char *list = json_find(memory, "mappings");
    size_t found = 0;
    for (size_t i = 0; i < json_count(list); i++) {
        char index[24];
        snprintf(index, sizeof index, "%zu", i);
        const char *mapping = json_find(list, index);
        CUdeviceptr address = json_unsigned(json_find(mapping, "address"));
        CUmemGenericAllocationHandle handle = 0;
        OK_CU(cu.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)address));
        OK_CU(cu.cuMemRelease(handle));
        if (address >= from && address - from < bytes)
            found += json_unsigned(json_find(mapping, "bytes"));
    }
    assert_int_equal(found, bytes);
}

static gpumem_resource *make_virtual(const gpumem_virtual_options *options) {
    gpumem_resource *resource;
    open_library();
    int has = MADE_CU(int, cuDeviceGetAttribute,
                      CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, dev);
    if (!has) {
        close_library();
        print_message("skip: the device has no virtual memory management\n");
        skip();
    }
    OK(gpumem_virtual_resource_create(device, options, &resource));
    return resource;
}

TEST(a_snapshot_lists_the_mappings_of_a_virtual_buffer) {
    gpumem_resource *resource =
        make_virtual(GPUMEM_VIRTUAL_OPTIONS(.capacity = 64 * MIB, .exact_growth = 1));
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4 * MIB);
    OK(gpumem_buffer_grow(buffer, 10 * MIB, NULL));
    char *text = take();
    check_mappings(json_find(text, "devices.0.virtual_memory"), gpumem_buffer_pointer(buffer),
                   gpumem_buffer_committed(buffer));
    assert_int_equal(json_count(json_find(text, "devices.0.resources.0.buffers")), 1);
    assert_true(json_is(json_find(text, "devices.0.resources.0.kind"), "virtual"));
    free(text);
    DESTROY(buffer, resource);
    text = take();
    assert_int_equal(json_count(json_find(text, "devices.0.virtual_memory.mappings")), 0);
    assert_int_equal(json_count(json_find(text, "devices.0.resources")), 0);
    free(text);
}

static CUresult is_mapped_at(CUdeviceptr address) {
    CUmemGenericAllocationHandle handle = 0;
    CUresult result = cu.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)address);
    if (result == CUDA_SUCCESS)
        OK_CU(cu.cuMemRelease(handle));
    return result;
}

/* Where a chunk is listed the driver has memory, and where none is it has not. */
TEST(decommitted_ranges_are_not_listed_in_a_snapshot) {
    gpumem_resource *resource =
        make_virtual(GPUMEM_VIRTUAL_OPTIONS(.capacity = 32 * MIB, .maximum_chunk_bytes = 4 * MIB,
                                            .exact_growth = 1));
    gpumem_buffer *buffer = NEW_BUFFER(resource, 16 * MIB);
    OK(gpumem_buffer_decommit(buffer, 4 * MIB, 8 * MIB, NULL, NULL));
    char *text = take();
    const char *listed = json_find(text, "devices.0.resources.0.buffers.0.chunks");
    assert_int_equal(json_count(listed), 2);
    assert_int_equal(json_unsigned(json_find(listed, "0.offset")), 0);
    assert_int_equal(json_unsigned(json_find(listed, "1.offset")), 12 * MIB);
    for (size_t offset = 0; offset < 16 * MIB; offset += 4 * MIB) {
        int hole = offset == 4 * MIB || offset == 8 * MIB;
        CUresult result = is_mapped_at(gpumem_buffer_pointer(buffer) + offset);
        assert_int_equal(result, hole ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
    }
    free(text);
    DESTROY(buffer, resource);
}

TEST(cached_ranges_stay_mapped_and_listed) {
    gpumem_resource *resource = make_virtual(
        GPUMEM_VIRTUAL_OPTIONS(.maximum_chunk_bytes = 4 * MIB, .cache_bytes = 64 * MIB));
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4 * MIB);
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    char *text = take();
    const char *range = json_find(text, "devices.0.resources.0.freed.ranges.0");
    assert_non_null(range);
    assert_int_equal(json_unsigned(json_find(range, "address")), address);
    assert_int_equal(json_unsigned(json_find(range, "committed_bytes")), 4 * MIB);
    assert_int_equal(is_mapped_at(address), CUDA_SUCCESS);
    free(text);
    OK(gpumem_resource_trim(resource, 0));
    OK(gpumem_device_trim(device, 1));
    text = take();
    assert_int_equal(json_count(json_find(text, "devices.0.resources.0.freed.ranges")), 0);
    assert_int_equal(json_count(json_find(text, "devices.0.virtual_memory.mappings")), 0);
    free(text);
    OK(gpumem_resource_destroy(resource));
}

TEST(a_snapshot_names_the_resource_of_each_buffer) {
    gpumem_resource *pinned, *tracking;
    open_library();
    pinned = NEW_PINNED();
    OK(gpumem_tracking_resource_create(pinned, NULL, &tracking));
    gpumem_buffer *buffer = NEW_BUFFER(tracking, 5000);
    gpumem_buffer *view = NEW_VIEW(buffer, 1000, 2000);
    char *text = take();
    const char *tracked = json_find(text, "devices.0.resources.0.tracked.0");
    assert_non_null(tracked);
    assert_int_equal(json_unsigned(json_find(tracked, "address")), gpumem_buffer_pointer(buffer));
    assert_int_equal(json_unsigned(json_find(tracked, "bytes")), 5000);
    assert_int_equal(json_count(json_find(tracked, "frames")), 1);
    assert_true(json_is(json_find(text, "devices.0.resources.2.kind"), "view"));
    assert_int_equal(json_unsigned(json_find(text, "devices.0.resources.2.buffers.0.offset")),
                     1000);
    free(text);
    DESTROY(view, buffer, tracking, pinned);
}

TEST(a_snapshot_describes_the_device) {
    open_library();
    char *text = take(), name[256] = "";
    OK_CU(cu.cuDeviceGetName(name, sizeof name, dev));
    size_t total = MADE_CU(size_t, cuDeviceTotalMem_v2, dev);
    assert_true(json_is(json_find(text, "devices.0.name"), name));
    assert_int_equal(json_unsigned(json_find(text, "devices.0.memory_bytes")), total);
    assert_true(json_unsigned(json_find(text, "devices.0.free_bytes")) <= total);
    free(text);
}
