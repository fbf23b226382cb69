/* One export, imported and freed by several threads at once: mapped once, and gone at the end. */
#include "library_test.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS  100

static const void *description;
static size_t description_bytes;
static int descriptor;

/* What went wrong, or NULL. */
static void *import_and_free(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        gpumem_buffer *imported;
        unsigned char byte = 0;
        if (gpumem_import_create(device, description, description_bytes, &descriptor, 1, NULL,
                                 &imported) != GPUMEM_OK)
            return "import";
        if (gpumem_buffer_read(imported, 4095, &byte, 1, NULL) != GPUMEM_OK ||
            gpumem_stream_synchronize(device, NULL) != GPUMEM_OK)
            return "read";
        if (byte != 0x5a)
            return "other bytes";
        if (gpumem_buffer_free(imported, NULL) != GPUMEM_OK)
            return "free";
    }
    return NULL;
}

static void threads_import_the_same(void **state) {
    (void)state;
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    gpumem_export *exported;
    OK(gpumem_virtual_resource_create(device, NULL, &resource));
    OK(gpumem_buffer_allocate(resource, 2 * MIB, NULL, &buffer));
    OK(gpumem_buffer_fill(buffer, 0, 2 * MIB, 0x5a, NULL));
    synchronize(NULL);
    OK(gpumem_export_create(buffer, &exported));
    OK(gpumem_export_get_description(exported, &description, &description_bytes));
    OK(gpumem_export_get_descriptor(exported, 0, &descriptor));
    char *before = soft->state_dump();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, import_and_free, NULL), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        if (wrong)
            fail_msg("thread %zu: %s", i, (const char *)wrong);
    }
    OK(gpumem_device_trim(device, 1)); /* also the events that frees have used */
    SAME_STATE(before);
    gpumem_stats stats = device_stats();
    assert_int_equal(stats.imported_bytes, 0);
    assert_int_equal(stats.quarantined, 0);
    assert_int_equal(stats.allocations, 1);
    assert_int_equal(stats.mappings, 1);
    assert_int_equal(stats.chunks, 1);
    assert_int_equal(stats.reserved_bytes, 2 * MIB);
    OK(gpumem_export_destroy(exported));
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_resource_destroy(resource));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_import_the_same, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
