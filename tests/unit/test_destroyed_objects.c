/* Using what was destroyed is told as that, of every kind of object; not as a fork. */
#include "library_test.h"

#include <sys/wait.h>

EACH_TEST(open_device, close_device);

#define DESTROYED(call)                                                                            \
    do {                                                                                           \
        FAILS(INVALID_ARGUMENT, call);                                                             \
        SAYS("was destroyed earlier");                                                             \
    } while (0)

TEST(closed_libraries_and_devices_are_refused_by_name) {
    gpumem_library *second;
    gpumem_library_info info = {.size = sizeof info};
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_open(GPUMEM_OPEN_OPTIONS(.driver = "softgpu"), &second));
    gpumem_device *other = MADE(gpumem_device *, gpumem_device_open, second, 0);
    OK(gpumem_device_close(other));
    DESTROYED(gpumem_device_close(other));
    DESTROYED(gpumem_device_get_stats(other, &stats));
    SAYS("`device`");
    OK(gpumem_close(second));
    DESTROYED(gpumem_close(second));
    DESTROYED(gpumem_library_get_info(second, &info));
    SAYS("gpumem_library_get_info: `library`");
}

TEST(destroyed_resources_and_wrappers_are_refused_by_name) {
    gpumem_resource *none;
    gpumem_buffer *buffer;
    gpumem_resource *pool = NEW_POOL();
    gpumem_resource *limited = NEW_LIMIT(pool, MIB);
    DESTROY(limited, pool);
    DESTROYED(gpumem_buffer_allocate(limited, 1, NULL, &buffer));
    DESTROYED(gpumem_limiting_resource_create(pool, MIB, &none));
    DESTROYED(gpumem_resource_trim(pool, 0));
    DESTROYED(gpumem_resource_destroy(pool));
}

TEST(freed_buffers_and_exports_are_refused_by_name) {
    int fd;
    char byte;
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 1);
    gpumem_export *exported = NEW_EXPORT(buffer);
    OK(gpumem_export_destroy(exported));
    DESTROYED(gpumem_export_destroy(exported));
    DESTROYED(export_descriptor(exported, 0, &fd));
    OK(gpumem_buffer_free(buffer, NULL));
    DESTROYED(gpumem_buffer_free(buffer, NULL));
    DESTROYED(gpumem_buffer_read(buffer, 0, &byte, 1, NULL));
    DESTROYED(gpumem_export_create(buffer, &exported));
    /* Who holds a buffer may use it, whatever its owner has done. */
    gpumem_buffer *held = NEW_BUFFER(resource, 1);
    OK(gpumem_buffer_hold(held));
    OK(gpumem_buffer_free(held, NULL));
    FAILS_SAYING(INVALID_ARGUMENT, "freed twice", gpumem_buffer_free(held, NULL));
    OK(gpumem_buffer_read(held, 0, &byte, 1, NULL));
    synchronize(NULL);
    OK(gpumem_buffer_release(held));
    DESTROYED(gpumem_buffer_release(held));
    OK(gpumem_resource_destroy(resource));
}

/* Its memory is still there, for the work that is queued, and the buffer is not. */
TEST(a_freed_buffer_is_refused_while_its_free_is_deferred) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 1);
    struct gate gate = gate_with_stream();
    OK(gpumem_buffer_free(buffer, gate.stream));
    assert_int_equal(device_stats().deferred_frees, 1);
    DESTROYED(gpumem_buffer_free(buffer, NULL));
    DESTROYED(gpumem_buffer_use(buffer, NULL));
    DESTROYED(gpumem_buffer_hold(buffer));
    gate_drain(&gate);
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().deferred_frees, 0);
    DESTROYED(gpumem_buffer_hold(buffer));
    gate_remove(&gate);
    OK(gpumem_resource_destroy(resource));
}

TEST(destroyed_low_level_objects_are_refused_by_name) {
    gpumem_reservation *range;
    gpumem_physical *memory;
    struct fabric_handle fabric;
    gpumem_physical_properties properties = {.size = sizeof properties};
    gpumem_access access;
    int fd;
    OK(gpumem_reservation_create(device, 2 * MIB, NULL, &range));
    OK(gpumem_physical_create(device, 2 * MIB, NULL, &memory));
    gpumem_mapping *mapping = MADE(gpumem_mapping *, gpumem_mapping_create, range, 0, memory);
    DESTROY(mapping, memory, range);
    DESTROYED(gpumem_mapping_destroy(mapping));
    DESTROYED(mapping_set_access(mapping, 0, GPUMEM_ACCESS_READ));
    DESTROYED(gpumem_mapping_get_access(mapping, 0, &access));
    DESTROYED(gpumem_physical_destroy(memory));
    DESTROYED(physical_export_fd(memory, &fd));
    DESTROYED(physical_export_fabric(memory, &fabric));
    DESTROYED(gpumem_physical_get_properties(memory, &properties));
    DESTROYED(gpumem_reservation_destroy(range));
    DESTROYED(gpumem_mapping_create(range, 0, memory, &mapping));
    DESTROYED(gpumem_reservation_unmap(range, 0, 2 * MIB));
    DESTROYED(gpumem_reservation_set_access(range, 0, 2 * MIB, 0, GPUMEM_ACCESS_READ));
}

/* Memory that was never one of ours. */
TEST(memory_that_was_never_an_object_is_refused) {
    static unsigned char bytes[4096] __attribute__((aligned(16)));
    memset(bytes, 0x5a, sizeof bytes);
    FAILS(INVALID_ARGUMENT, gpumem_resource_trim((gpumem_resource *)(void *)bytes, 0));
    SAYS("`resource` is not an object of this library");
    memset(bytes, 0, sizeof bytes);
    FAILS(INVALID_ARGUMENT, gpumem_resource_trim((gpumem_resource *)(void *)bytes, 0));
}

/* A child knows both apart. */
TEST(a_forked_child_distinguishes_freed_from_live_objects) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *freed = NEW_BUFFER(resource, 1);
    gpumem_buffer *live = NEW_BUFFER(resource, 1);
    OK(gpumem_buffer_free(freed, NULL));
    pid_t child = fork();
    if (child == 0) {
        int wrong = gpumem_buffer_use(freed, NULL) != GPUMEM_ERROR_INVALID_ARGUMENT;
        wrong |= gpumem_buffer_use(live, NULL) != GPUMEM_ERROR_FORKED;
        _exit(wrong);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    DESTROY(live, resource);
}
