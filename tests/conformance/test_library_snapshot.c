/* The snapshot of the memory library, on any driver: what it lists is what the driver has. */
#include "json_reader.h"
#include "library.h"

#define MIB ((size_t)1 << 20)

static char *take(void) {
    char *text = NULL;
    DONE(gpumem_snapshot(device, NULL, &text));
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
        OK(cu.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)address));
        OK(cu.cuMemRelease(handle));
        if (address >= from && address - from < bytes)
            found += json_unsigned(json_find(mapping, "bytes"));
    }
    assert_int_equal(found, bytes);
}

static void a_virtual_buffer_is_listed_as_it_is_mapped(void **state) {
    (void)state;
    open_library();
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    int has = 0;
    OK(cu.cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, dev));
    if (!has) {
        close_library();
        print_message("skip: the device has no virtual memory management\n");
        skip();
    }
    DONE(gpumem_virtual_resource_create(
        device, GPUMEM_VIRTUAL_OPTIONS(.capacity = 64 * MIB, .exact_growth = 1), &resource));
    DONE(gpumem_buffer_allocate(resource, 4 * MIB, NULL, &buffer));
    DONE(gpumem_buffer_grow(buffer, 10 * MIB, NULL));
    char *text = take();
    check_mappings(json_find(text, "devices.0.virtual_memory"), gpumem_buffer_pointer(buffer),
                   gpumem_buffer_committed(buffer));
    assert_int_equal(json_count(json_find(text, "devices.0.resources.0.buffers")), 1);
    assert_true(json_is(json_find(text, "devices.0.resources.0.kind"), "virtual"));
    free(text);
    DONE(gpumem_buffer_free(buffer, NULL));
    DONE(gpumem_resource_destroy(resource));
    text = take();
    assert_int_equal(json_count(json_find(text, "devices.0.virtual_memory.mappings")), 0);
    assert_int_equal(json_count(json_find(text, "devices.0.resources")), 0);
    free(text);
    close_library();
}

static void the_device_is_described(void **state) {
    (void)state;
    open_library();
    char *text = take(), name[256] = "";
    size_t total = 0;
    OK(cu.cuDeviceGetName(name, sizeof name, dev));
    OK(cu.cuDeviceTotalMem_v2(&total, dev));
    assert_true(json_is(json_find(text, "devices.0.name"), name));
    assert_int_equal(json_unsigned(json_find(text, "devices.0.memory_bytes")), total);
    assert_true(json_unsigned(json_find(text, "devices.0.free_bytes")) <= total);
    free(text);
    close_library();
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(a_virtual_buffer_is_listed_as_it_is_mapped),
        TEST(the_device_is_described),
    };
    return conformance(argc, argv, tests, COUNT(tests), NULL, 0);
}
