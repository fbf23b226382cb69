/* The last close of a device: what it may still touch, and when it must refuse. */
#include "library_test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* A second buffer over the memory of `buffer`, as another process would have it. */
static gpumem_buffer *import(gpumem_buffer *buffer) {
    gpumem_buffer *imported;
    const void *description;
    size_t bytes;
    gpumem_export *exported = NEW_EXPORT(buffer);
    OK(export_description(exported, &description, &bytes));
    int fd = MADE(int, export_descriptor, exported, 0);
    OK(gpumem_import_create(device, description, bytes, &fd, 1, NULL, &imported));
    OK(gpumem_export_destroy(exported));
    return imported;
}

/* Frees all but the import. */
static gpumem_buffer *only_an_import(void) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 2 * MIB);
    gpumem_buffer *imported = import(buffer);
    DESTROY(buffer, resource);
    return imported;
}

static uint64_t pushes_of_a_close(void) {
    uint64_t before = soft->call_count("cuCtxPushCurrent_v2");
    OK(gpumem_device_close(device));
    uint64_t after = soft->call_count("cuCtxPushCurrent_v2");
    OK(gpumem_close(library));
    return after - before;
}

/* The context is released by then: making it current again would be use after release. */
TEST(a_released_context_is_not_made_current) {
    assert_int_equal(open_device(state), 0);
    uint64_t plain = pushes_of_a_close();
    assert_int_equal(open_device(state), 0);
    OK(gpumem_buffer_free(only_an_import(), NULL));
    assert_int_equal(pushes_of_a_close(), plain);
}

TEST(a_device_with_imports_in_use_cannot_be_closed) {
    assert_int_equal(open_device(state), 0);
    gpumem_buffer *imported = only_an_import();
    struct gate gate = gate_with_stream();
    OK(gpumem_buffer_free(imported, gate.stream));
    assert_int_equal(device_stats().deferred_frees, 1);
    /* The driver does not tell when the work is done. */
    assert_int_equal(
        soft->fault_arm("cuEventSynchronize", 0, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE), 0);
    FAILS_SAYING(BUSY, "imported", gpumem_device_close(device));
    assert_true(soft->fault_disarm() >= 1);
    assert_int_equal(device_stats().deferred_frees, 1);
    gate_drain(&gate);
    gate_remove(&gate);
    assert_int_equal(close_device(state), 0);
    char *leaks = soft->leak_report();
    assert_string_equal(leaks, "");
    soft->free_text(leaks);
}

static void *close_it(void *unused) {
    return (void *)(uintptr_t)gpumem_device_close(device);
}

static void *read_stats(void *unused) {
    gpumem_stats stats = {.size = sizeof stats};
    return (void *)(uintptr_t)gpumem_library_get_stats(library, &stats);
}

/* The lock of the library is free while a close waits for work. */
TEST(a_waiting_close_does_not_block_other_calls) {
    assert_int_equal(open_device(state), 0);
    gpumem_buffer *imported = only_an_import();
    struct gate gate = gate_with_stream();
    OK(gpumem_buffer_free(imported, gate.stream));
    uint64_t before = soft->call_count("cuEventSynchronize");
    pthread_t closing, reading;
    void *closed = NULL, *read = NULL;
    assert_int_equal(pthread_create(&closing, NULL, close_it, NULL), 0);
    while (soft->call_count("cuEventSynchronize") == before)
        sched_yield();
    assert_int_equal(pthread_create(&reading, NULL, read_stats, NULL), 0);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    int apart = pthread_timedjoin_np(reading, &read, &until) == 0;
    __atomic_store_n(gate.flag, 1, __ATOMIC_SEQ_CST);
    pthread_join(closing, &closed);
    if (!apart)
        pthread_join(reading, &read);
    assert_true(apart);
    assert_null(closed);
    assert_null(read);
    OK(gpumem_close(library)); /* what is left of the gate went with the context */
}

static char logged[256];

static void keep_line(void *user, gpumem_log_level level, const char *text) {
    snprintf(logged, sizeof logged, "%s", text);
}

static void check_refused_pop(softgpu_fault_mode mode, const char *wanted) {
    logged[0] = 0;
    uint64_t free_bytes, total;
    assert_int_equal(soft->fault_arm("cuCtxPopCurrent_v2", 1, CUDA_ERROR_UNKNOWN, mode), 0);
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    assert_int_equal(soft->fault_disarm() >= 1, 1);
    if (wanted[0])
        assert_non_null(strstr(logged, wanted));
    else
        assert_string_equal(logged, "");
    CUcontext now = NULL;
    OK_CU(cu->cuCtxGetCurrent(&now));
    assert_int_equal(now != NULL, wanted[0] != 0);
}

/* A context that may stay behind in the caller's thread is never silent. */
TEST(a_refused_context_pop_is_logged) {
    assert_int_equal(open_device(state), 0);
    gpumem_set_log(keep_line, NULL, GPUMEM_LOG_ERROR);
    check_refused_pop(SOFTGPU_FAULT_BEFORE, ""); /* a second try succeeds */
    check_refused_pop(SOFTGPU_FAULT_AFTER, "");  /* it was done */
    check_refused_pop(SOFTGPU_FAULT_FROM, "may stay current");
    gpumem_set_log(NULL, NULL, GPUMEM_LOG_WARNING);
    CUcontext popped = NULL;
    OK_CU(cu->cuCtxPopCurrent_v2(&popped));
    assert_int_equal(close_device(state), 0);
}
