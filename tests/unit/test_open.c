/* Opening and closing: choice and identity of the driver, devices, what keeps them open, forks. */
#include "library_test.h"

#include <sys/wait.h>

EACH_TEST(open_device, close_device);

TEST_WITH(unknown_drivers_are_refused, NULL, NULL) {
    gpumem_library *opened = (gpumem_library *)state;
    FAILS_SAYING(INVALID_ARGUMENT, "voodoo",
                 gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "voodoo"), &opened));
    FAILS(NO_DRIVER, gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "/nowhere/libcuda.so.1"), &opened));
    FAILS(INVALID_ARGUMENT, gpumem_open(NULL, NULL));
    assert_ptr_equal(opened, state); /* outputs are set on success only */
}

TEST_WITH(without_a_driver_the_error_suggests_softgpu, NULL, NULL) {
    gpumem_library *opened;
    const char *before = getenv("GPUMEM_DRIVER");
    char *saved = before ? strdup(before) : NULL;
    unsetenv("GPUMEM_DRIVER");
    gpumem_status status = gpumem_open(NULL, &opened);
    if (status == GPUMEM_OK) /* a machine with a GPU */
        OK(gpumem_close(opened));
    else
        SAYS("GPUMEM_DRIVER=softgpu");
    if (saved)
        setenv("GPUMEM_DRIVER", saved, 1);
    free(saved);
}

TEST(the_library_reports_its_driver) {
    gpumem_library_info info = {.size = sizeof info};
    OK(gpumem_library_get_info(library, &info));
    assert_string_equal(info.driver_kind, "softgpu");
    assert_int_equal(info.softgpu, 1);
    assert_true(info.driver_version >= 12000);
    assert_non_null(strstr(info.driver_path, "softgpu"));
    assert_true(info.device_count > 0);
    gpumem_library_info unsized = {0};
    FAILS(INVALID_ARGUMENT, gpumem_library_get_info(library, &unsized));
}

TEST(devices_are_described_and_found_by_uuid) {
    gpumem_device_info info = {.size = sizeof info}, same = {.size = sizeof same};
    info = device_info(device);
    OK(gpumem_device_get_info(library, 0, &same));
    assert_memory_equal(&info, &same, sizeof info);
    assert_true(strlen(info.name) > 0);
    assert_true(info.memory_bytes > 0);
    assert_int_equal(info.granularity_minimum, 2 * MIB);
    gpumem_device *found = MADE(gpumem_device *, gpumem_device_open_uuid, library, info.uuid);
    assert_ptr_equal(found, device);
    OK(gpumem_device_close(found));
    info.uuid[0] ^= 0xff;
    FAILS(NO_DEVICE, gpumem_device_open_uuid(library, info.uuid, &found));
    FAILS(NO_DEVICE, gpumem_device_open(library, -1, &found));
    FAILS(NO_DEVICE, gpumem_device_open(library, 1000, &found));
    uint64_t free_bytes, total;
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    assert_true(free_bytes > 0 && free_bytes <= total);
}

TEST(open_objects_prevent_closing_their_parents) {
    FAILS_SAYING(BUSY, "1 device is still open: 0", gpumem_close(library));
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 1);
    FAILS_SAYING(BUSY, "virtual resource (1 buffers)", gpumem_device_close(device));
    FAILS_SAYING(BUSY, "1 buffer", gpumem_resource_destroy(resource));
    DESTROY(buffer, resource);
    gpumem_reservation *reservation;
    OK(gpumem_reservation_create(device, 2 * MIB, NULL, &reservation));
    FAILS_SAYING(BUSY, "1 low-level object", gpumem_device_close(device));
    OK(gpumem_reservation_destroy(reservation));
}

TEST(closing_leaks_nothing) {
    gpumem_library *second;
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &second));
    char *before = soft->state_dump();
    gpumem_device *other = MADE(gpumem_device *, gpumem_device_open, second, 0);
    gpumem_resource *resource = MADE(gpumem_resource *, gpumem_pinned_resource_create, other, NULL);
    gpumem_buffer *buffer = NEW_BUFFER(resource, 100);
    DESTROY(buffer, resource);
    OK(gpumem_device_close(other));
    SAME_STATE(before);
    OK(gpumem_close(second));
    OK(gpumem_close(NULL));
    OK(gpumem_device_close(NULL));
}

/* Everything answers FORKED and nothing hangs; the exit status tells which did not. */
static int in_child(gpumem_resource *resource, gpumem_buffer *buffer, gpumem_reservation *range) {
    gpumem_buffer *made;
    gpumem_library_info info = {.size = sizeof info};
    gpumem_stats stats = {.size = sizeof stats};
    gpumem_export *exported;
    if (gpumem_buffer_allocate(resource, 1, NULL, &made) != GPUMEM_ERROR_FORKED)
        return 1;
    if (gpumem_buffer_free(buffer, NULL) != GPUMEM_ERROR_FORKED)
        return 2;
    if (gpumem_buffer_grow(buffer, 4 * MIB, NULL) != GPUMEM_ERROR_FORKED)
        return 3;
    if (gpumem_resource_destroy(resource) != GPUMEM_ERROR_FORKED)
        return 4;
    if (gpumem_device_close(device) != GPUMEM_ERROR_FORKED)
        return 5;
    if (gpumem_close(library) != GPUMEM_ERROR_FORKED)
        return 6;
    if (gpumem_library_get_info(library, &info) != GPUMEM_ERROR_FORKED)
        return 7;
    if (gpumem_device_get_stats(device, &stats) != GPUMEM_ERROR_FORKED)
        return 8;
    if (gpumem_export_create(buffer, &exported) != GPUMEM_ERROR_FORKED)
        return 9;
    if (gpumem_reservation_destroy(range) != GPUMEM_ERROR_FORKED)
        return 10;
    if (gpumem_stream_synchronize(device, NULL) != GPUMEM_ERROR_FORKED)
        return 11;
    if (!strstr(gpumem_last_error()->message, "fork"))
        return 12;
    return gpumem_buffer_size(buffer) == 1 ? 0 : 13;
}

TEST(a_forked_child_may_not_use_the_library) {
    gpumem_reservation *range;
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 1);
    OK(gpumem_reservation_create(device, 2 * MIB, NULL, &range));
    char *before = soft->state_dump();
    pid_t child = fork();
    if (child == 0)
        _exit(in_child(resource, buffer, range));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    SAME_STATE(before);
    DESTROY(range, buffer, resource);
}
