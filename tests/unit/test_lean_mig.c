/* A device without a UUID, as an instance of a GPU may be: it is shared by its place. */
#include "library_test.h"

EACH_TEST(open_device, close_device);

TEST(a_device_without_a_uuid_reports_why) {
    const unsigned char zeros[16] = {0};
    gpumem_device_info info = {.size = sizeof info};
    gpumem_device *none;
    gpumem_capability_report report = capability_of(GPUMEM_CAPABILITY_DEVICE_UUID);
    MEMBERS(report, (supported, 0), (value, -1));
    assert_string_equal(report.reason, "cuDeviceGetUuid answered CUDA_ERROR_NOT_SUPPORTED");
    info = device_info(device);
    assert_memory_equal(info.uuid, zeros, sizeof zeros);
    FAILS_SAYING(NO_DEVICE, "reports no UUID", gpumem_device_open_uuid(library, zeros, &none));
    SAYS("by ordinal");
}

TEST(buffers_are_shared_by_device_location) {
    gpumem_buffer *imported;
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 4 * MIB);
    OK(gpumem_buffer_fill(buffer, 0, 4 * MIB, 7, NULL));
    synchronize(NULL);
    gpumem_export *exported = NEW_EXPORT(buffer);
    const void *description;
    size_t bytes;
    assert_int_equal(export_info(exported).descriptor_count, 1);
    OK(export_description(exported, &description, &bytes));
    int fd = MADE(int, export_descriptor, exported, 0);
    OK(gpumem_import_create(device, description, bytes, &fd, 1, NULL, &imported));
    assert_int_equal(byte_of(imported, 4 * MIB - 1), 7);
    OK(gpumem_buffer_free(imported, NULL));
    /* Memory of a device elsewhere is still told apart. */
    gpumem_device *other = MADE(gpumem_device *, gpumem_device_open, library, 1);
    FAILS(NO_DEVICE, gpumem_import_create(other, description, bytes, &fd, 1, NULL, &imported));
    OK(gpumem_device_close(other));
    DESTROY(exported, buffer);
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_resource_destroy(resource));
}

BEFORE_TESTS {
    setenv("SOFTGPU_PROFILE", "mig", 1);
    setenv("SOFTGPU_DEVICES", "2", 1);
    return 0;
}
