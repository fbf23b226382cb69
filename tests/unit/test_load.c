/* Files into device memory: the bytes, the figures, and what is refused. */
#include "library_test.h"
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <gpumem/load.h>
#include <gpumem/pinned.h>
#include <gpumem/virtual.h>
#include <pthread.h>

static char path[TEMPORARY_ROOM];
static gpumem_resource *memory;

static void write_file(size_t bytes, unsigned seed) {
    unsigned char *data = malloc(bytes ? bytes : 1);
    assert_non_null(data);
    uint64_t state = seed;
    for (size_t i = 0; i < bytes; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[i] = (unsigned char)(state >> 56);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, bytes), bytes);
    close(fd);
    free(data);
}

static int begin(void **state) {
    int fd = temporary_file(path, "gpumem-load");
    return fd < 0 || close(fd) != 0 || open_device(state) ||
           gpumem_virtual_resource_create(device, NULL, &memory) != GPUMEM_OK;
}

static int end(void **state) {
    unlink(path);
    if (gpumem_resource_destroy(memory) != GPUMEM_OK)
        return -1;
    return close_device(state);
}

EACH_TEST(begin, end);

static char *dump(void) {
    OK(gpumem_device_trim(device, 1)); /* the events that the library keeps for the next time */
    char *text = soft->state_dump();
    assert_non_null(text);
    return text;
}

static void same_state(char *before) {
    OK(gpumem_device_trim(device, 1));
    SAME_STATE(before);
}

static void check_content(gpumem_buffer *buffer) {
    uint64_t of_buffer = 1, of_file = 2;
    OK(gpumem_buffer_checksum(buffer, NULL, &of_buffer));
    OK(gpumem_file_checksum(path, NULL, &of_file));
    assert_true(of_buffer == of_file);
}

/* ---- What arrives ---------------------------------------------------------------------------- */

static gpumem_load_report load_size(size_t bytes, size_t chunk, unsigned threads) {
    gpumem_load_report report = {.size = sizeof report};
    gpumem_buffer *buffer = NULL;
    write_file(bytes, (unsigned)bytes);
    char *before = dump();
    OK(gpumem_load_file(memory, path, GPUMEM_LOAD_OPTIONS(.chunk_bytes = chunk, .threads = threads),
                        &buffer, &report));
    assert_int_equal(gpumem_buffer_size(buffer), bytes);
    MEMBERS(report, (bytes, bytes), (mappings, chunks_of(buffer)));
    assert_true(report.seconds > 0 && report.pinned_seconds > 0);
    check_content(buffer);
    OK(gpumem_buffer_free(buffer, NULL));
    same_state(before);
    return report;
}

TEST(files_of_every_size_are_loaded_completely) {
    static const size_t sizes[] = {1,       64 * KIB - 1,   64 * KIB,     64 * KIB + 1,
                                   2 * MIB, 2 * MIB + 4097, 9 * MIB + 511};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        gpumem_load_report report = load_size(sizes[i], 64 * KIB, 3);
        MEMBERS(report, (chunks, (sizes[i] + 64 * KIB - 1) / (64 * KIB)), (chunk_bytes, 64 * KIB),
                (threads, report.chunks < 3 ? report.chunks : 3),
                (pinned_bytes, 2 * 64 * KIB * report.threads));
        (void)load_size(sizes[i], 0, 0);
    }
}

/* The first bytes of each 8 MiB are hashed alone: a wrong order or place would show. */
TEST(the_checksum_is_as_documented) {
    gpumem_buffer *buffer = NULL;
    write_file(17 * MIB, 1);
    OK(gpumem_load_file(memory, path, NULL, &buffer, NULL));
    uint64_t first = MADE(uint64_t, gpumem_buffer_checksum, buffer, NULL);
    uint64_t second = MADE(uint64_t, gpumem_buffer_checksum, buffer,
                           GPUMEM_LOAD_OPTIONS(.chunk_bytes = 64 * KIB, .threads = 1));
    assert_true(first == second);
    OK(gpumem_buffer_fill(buffer, 16 * MIB + 3, 1, 0, NULL));
    OK(gpumem_buffer_fill(buffer, 16 * MIB + 4, 1, 1, NULL));
    synchronize(NULL);
    OK(gpumem_buffer_checksum(buffer, NULL, &second));
    assert_true(first != second);
    OK(gpumem_buffer_free(buffer, NULL));
}

/* A small file pins little, and no more is said than is pinned. */
TEST(a_small_file_pins_little_memory) {
    uint64_t high = device_stats().pinned_high;
    gpumem_load_report report = load_size(1, 0, 0);
    MEMBERS(report, (chunk_bytes, 64 * KIB), (pinned_bytes, 128 * KIB));
    if (device_stats().pinned_high > high)
        assert_true(device_stats().pinned_high <= 2 * MIB);
}

/* The readers' first round needs no growth, and growth comes in few pieces. */
TEST(a_load_grows_its_buffer_in_few_steps) {
    gpumem_load_report report = load_size(8 * MIB, 64 * KIB, 16);
    assert_true(report.mappings <= 6);
    report = load_size(16 * MIB, MIB, 16);
    assert_int_equal(report.mappings, 1);
}

TEST(staging_memory_can_come_from_the_caller) {
    gpumem_buffer *buffer;
    gpumem_resource *pinned = NEW_PINNED();
    write_file(MIB, 3);
    OK(gpumem_load_file(memory, path, GPUMEM_LOAD_OPTIONS(.pinned = pinned), &buffer, NULL));
    check_content(buffer);
    DESTROY(buffer, pinned);

    /* In stream order, the memory is there when the stream has come to it. */
    pinned = NEW_PINNED(.method = GPUMEM_PINNED_POOL);
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    OK(gpumem_load_file(memory, path, GPUMEM_LOAD_OPTIONS(.pinned = pinned), &buffer, NULL));
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    check_content(buffer);
    DESTROY(buffer, pinned);
}

/* ---- What is refused ------------------------------------------------------------------------- */

#define REFUSED(status, ...)                                                                       \
    do {                                                                                           \
        gpumem_buffer *const none_ = (gpumem_buffer *)&memory, *got_ = none_;                      \
        char *before_ = dump();                                                                    \
        FAILS(status, gpumem_load_file(__VA_ARGS__, &got_, NULL));                                 \
        assert_ptr_equal(got_, none_);                                                             \
        same_state(before_);                                                                       \
    } while (0)

TEST(missing_arguments_are_refused) {
    uint64_t sum;
    gpumem_buffer *buffer;
    write_file(10, 1);
    REFUSED(INVALID_ARGUMENT, NULL, path, NULL);
    REFUSED(INVALID_ARGUMENT, memory, NULL, NULL);
    FAILS(INVALID_ARGUMENT, gpumem_load_file(memory, path, NULL, NULL, NULL));
    SAYS("buffer is NULL");
    FAILS(INVALID_ARGUMENT, gpumem_buffer_checksum(NULL, NULL, &sum));
    FAILS(INVALID_ARGUMENT, gpumem_file_checksum(NULL, NULL, &sum));
    FAILS(INVALID_ARGUMENT, gpumem_file_checksum(path, NULL, NULL));
    OK(gpumem_load_file(memory, path, NULL, &buffer, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_checksum(buffer, NULL, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
}

TEST(invalid_load_options_are_refused) {
    struct {
        gpumem_load_options options;
        size_t later;
    } newer = {.options = {.size = sizeof newer}};
    gpumem_buffer *buffer = NULL;
    write_file(10, 1);
    REFUSED(INVALID_ARGUMENT, memory, path, GPUMEM_LOAD_OPTIONS(.threads = 17));
    SAYS("17");
    REFUSED(INVALID_ARGUMENT, memory, path, GPUMEM_LOAD_OPTIONS(.chunk_bytes = 65535));
    SAYS("65535");
    REFUSED(INVALID_ARGUMENT, memory, path, GPUMEM_LOAD_OPTIONS(.chunk_bytes = SIZE_MAX / 2));
    REFUSED(INVALID_ARGUMENT, memory, path, &(gpumem_load_options){.threads = 2});
    SAYS("size is 0");
    REFUSED(INVALID_ARGUMENT, memory, path, &(gpumem_load_options){.size = 8, .threads = 2});
    SAYS("size is 8");
    newer.later = 1;
    REFUSED(INVALID_ARGUMENT, memory, path, &newer.options);
    newer.later = 0;
    OK(gpumem_load_file(memory, path, &newer.options, &buffer, NULL));
    OK(gpumem_buffer_free(buffer, NULL));
}

/* Nothing is loaded for a report that cannot be given, and none is touched by a failure. */
TEST(an_invalid_report_is_refused_before_loading) {
    gpumem_buffer *buffer = NULL;
    gpumem_load_report report = {.size = 0, .chunks = 77};
    write_file(10, 1);
    FAILS(INVALID_ARGUMENT, gpumem_load_file(memory, path, NULL, &buffer, &report));
    SAYS("gpumem_load_report");
    assert_null(buffer);
    report.size = sizeof report;
    FAILS(SYSTEM, gpumem_load_file(memory, "/absent", NULL, &buffer, &report));
    assert_int_equal(report.chunks, 77);
}

TEST(paths_that_are_not_regular_files_are_refused) {
    REFUSED(SYSTEM, memory, "/absent", NULL);
    assert_int_equal(gpumem_last_error()->system_code, ENOENT);
    REFUSED(SYSTEM, memory, "/tmp", NULL);
    assert_int_equal(gpumem_last_error()->system_code, EISDIR);
    REFUSED(SYSTEM, memory, "/dev/null", NULL);
    assert_int_equal(gpumem_last_error()->system_code, EINVAL);
    write_file(0, 0);
    REFUSED(SYSTEM, memory, path, NULL);
    assert_int_equal(gpumem_last_error()->system_code, ENODATA);
}

/* Whatever the size of the file: a small one would fit into a buffer that cannot grow. */
TEST(a_resource_that_cannot_grow_is_refused) {
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    write_file(10, 1);
    REFUSED(NOT_SUPPORTED, pool, path, NULL);
    SAYS("virtual resource");
    OK(gpumem_resource_destroy(pool));
}

/* Refused before the CPU would fault on it, and whether or not it can be written by chance. */
TEST(staging_that_the_cpu_cannot_reach_is_refused) {
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    write_file(10, 1);
    REFUSED(INVALID_ARGUMENT, memory, path, GPUMEM_LOAD_OPTIONS(.pinned = pool));
    SAYS("(device_pool) provides memory that the CPU cannot access");
    OK(gpumem_resource_destroy(pool));
}

TEST(too_little_staging_is_refused) {
    gpumem_resource *pinned = NEW_PINNED(.maximum_bytes = MIB);
    write_file(8 * MIB, 1);
    REFUSED(OUT_OF_CAPACITY, memory, path, GPUMEM_LOAD_OPTIONS(.pinned = pinned));
    OK(gpumem_resource_destroy(pinned));
}

TEST(hitting_a_limit_undoes_the_load) {
    gpumem_resource *limit = NEW_LIMIT(memory, 5 * MIB);
    write_file(8 * MIB, 1);
    REFUSED(OUT_OF_CAPACITY, limit, path,
            GPUMEM_LOAD_OPTIONS(.chunk_bytes = 64 * KIB, .threads = 4));
    OK(gpumem_resource_destroy(limit));
}

/* A sparse file, larger than the device: nothing is read for nothing. */
TEST(a_file_larger_than_free_memory_is_refused_at_once) {
    uint64_t free_bytes, total;
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    write_file(1, 1);
    assert_int_equal(truncate(path, (off_t)free_bytes + 1), 0);
    REFUSED(OUT_OF_MEMORY, memory, path, NULL);
    SAYS("free of");
}

static int stop_at_once(void *user, const gpumem_load_progress *progress) {
    *(uint64_t *)user = progress->bytes_total;
    return 1;
}

TEST(a_cancelled_load_is_undone) {
    uint64_t total = 0;
    write_file(3 * MIB, 1);
    REFUSED(CANCELLED, memory, path, GPUMEM_LOAD_OPTIONS(.progress = stop_at_once, .user = &total));
    SAYS("stopped after");
    assert_int_equal(total, 3 * MIB);
}

static int grow_the_file(void *user, const gpumem_load_progress *progress) {
    return truncate(path, 4 * (off_t)MIB);
}

TEST(a_file_that_grows_while_loading_is_refused) {
    write_file(3 * MIB, 1);
    REFUSED(DATA, memory, path, GPUMEM_LOAD_OPTIONS(.progress = grow_the_file));
    SAYS("grew while it was read: from 3145728 to 4194304");
    write_file(3 * MIB, 1);
    uint64_t sum = 77;
    FAILS(DATA, gpumem_file_checksum(path, GPUMEM_LOAD_OPTIONS(.progress = grow_the_file), &sum));
    assert_int_equal(sum, 77);
}

/* ---- Beside others --------------------------------------------------------------------------- */

/* A blocking stream that stands still holds the default stream up, and with it what is freed on
 * that: staging memory comes back at once all the same. */
TEST(blocked_streams_do_not_delay_a_load) {
    struct gate gate = gate_with_stream();
    CUstream blocked;
    gpumem_resource *pinned = NEW_PINNED();
    OK(gpumem_stream_create(device, GPUMEM_STREAM_OPTIONS(.blocking = 1), &blocked));
    CUevent reached = NEW_EVENT();
    OK(gpumem_event_record(device, reached, gate.stream));
    OK(gpumem_stream_wait_event(device, blocked, reached));
    write_file(MIB, 4);
    const gpumem_load_options options = {.size = sizeof options, .pinned = pinned};
    gpumem_buffer *buffer = NULL;
    uint64_t of_buffer = 1, of_file = 2;
    alarm(30); /* ends the program where the load waits for ever */
    OK(gpumem_load_file(memory, path, &options, &buffer, NULL));
    assert_int_equal(device_stats().deferred_frees, 0);
    OK(gpumem_buffer_checksum(buffer, &options, &of_buffer));
    assert_int_equal(device_stats().deferred_frees, 0);
    alarm(0);
    OK(gpumem_file_checksum(path, NULL, &of_file));
    assert_true(of_buffer == of_file);
    gate_drain(&gate);
    synchronize(blocked);
    DESTROY(buffer, reached, blocked, pinned, &gate);
}

struct one_load {
    pthread_t thread;
    gpumem_resource *pinned;
    gpumem_buffer *buffer;
    gpumem_status status;
};

static void *load_beside(void *argument) {
    struct one_load *load = argument;
    load->status = gpumem_load_file(
        memory, path,
        GPUMEM_LOAD_OPTIONS(.chunk_bytes = 64 * KIB, .threads = 3, .pinned = load->pinned),
        &load->buffer, NULL);
    return NULL;
}

TEST(several_loads_run_at_once) {
    struct one_load loads[3] = {{0}};
    gpumem_resource *pinned = NEW_PINNED();
    write_file(5 * MIB + 17, 5);
    for (size_t i = 0; i < COUNT(loads); i++) {
        loads[i].pinned = i ? pinned : NULL;
        assert_int_equal(pthread_create(&loads[i].thread, NULL, load_beside, &loads[i]), 0);
    }
    for (size_t i = 0; i < COUNT(loads); i++) {
        assert_int_equal(pthread_join(loads[i].thread, NULL), 0);
        OK(loads[i].status);
        check_content(loads[i].buffer);
        OK(gpumem_buffer_free(loads[i].buffer, NULL));
    }
    OK(gpumem_resource_destroy(pinned));
}

/* Memory that only frees hold back is no reason to refuse. */
TEST(a_load_waits_for_deferred_frees) {
    uint64_t free_bytes, total;
    gpumem_buffer *buffer = NULL;
    gpumem_resource *pool = NEW_POOL(.pool = GPUMEM_POOL_OWN);
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    assert_true(free_bytes > 128 * MIB);
    size_t most = (size_t)free_bytes - 16 * MIB;
    gpumem_buffer *cached = NEW_BUFFER(pool, most);
    OK(gpumem_buffer_free(cached, NULL));
    synchronize(NULL);
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    assert_true(free_bytes <= 16 * MIB); /* the pool keeps it */
    write_file(24 * MIB, 6);
    OK(gpumem_load_file(memory, path, NULL, &buffer, NULL));
    DESTROY(buffer, pool);
}

/* Free memory of the device says nothing of the host's. */
TEST(free_device_memory_does_not_limit_loads_into_host_memory) {
    uint64_t free_bytes, total;
    gpumem_buffer *buffer = NULL;
    gpumem_resource *host = NEW_VIRTUAL(.location = GPUMEM_LOCATION_HOST_NUMA);
    OK(gpumem_device_get_memory(device, &free_bytes, &total));
    gpumem_buffer *most = NEW_BUFFER(memory, (size_t)free_bytes - 4 * MIB);
    write_file(8 * MIB, 8);
    REFUSED(OUT_OF_MEMORY, memory, path, NULL);
    OK(gpumem_load_file(host, path, NULL, &buffer, NULL));
    check_content(buffer);
    DESTROY(buffer, most, host);
}

/* The wait for the last copies is refused while they are still to be done: nothing that they use
 * may be given back under them, which would be the end of the context. */
TEST(a_refused_wait_is_retried) {
    gpumem_buffer *buffer = NULL;
    gpumem_resource *pinned = NEW_PINNED();
    write_file(MIB, 9);
    const gpumem_load_options options = {
        .size = sizeof options, .chunk_bytes = MIB, .pinned = pinned};
    soft->schedule_set(SOFTGPU_SCHEDULE_LATE, 0);
    soft->fault_arm("cuStreamSynchronize", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_BEFORE);
    gpumem_status status = gpumem_load_file(memory, path, &options, &buffer, NULL);
    uint64_t fired = soft->fault_disarm();
    assert_int_equal(device_stats().deferred_frees, 0);
    soft->schedule_set(SOFTGPU_SCHEDULE_EAGER, 0);
    assert_int_equal(fired, 1);
    FAILS(DRIVER, status);
    OK(gpumem_load_file(memory, path, &options, &buffer, NULL));
    check_content(buffer);
    DESTROY(buffer, pinned);
}

/* A successful call leaves the last failure of the thread alone, whatever it met on its way. */
TEST(a_successful_load_keeps_the_last_error) {
    gpumem_buffer *buffer = NULL;
    FAILS(SYSTEM, gpumem_file_checksum("/absent", NULL, &(uint64_t){0}));
    write_file(MIB, 7);
    uint64_t lost = device_stats().quarantined;
    soft->fault_arm("cuStreamDestroy_v2", 1, CUDA_ERROR_UNKNOWN, SOFTGPU_FAULT_AFTER);
    OK(gpumem_load_file(memory, path, NULL, &buffer, NULL));
    assert_int_equal(soft->fault_disarm(), 1);
    SAYS("/absent");
    assert_int_equal(device_stats().quarantined, lost + 1);
    OK(gpumem_buffer_free(buffer, NULL));
}

BEFORE_TESTS {
    /* Small, so that what is larger than the device is quickly made. */
    setenv("SOFTGPU_MEMORY", "256M", 1);
    return 0;
}
