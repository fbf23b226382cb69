/* Memory of pools and events by the calls that share mapped memory. The other process is this
 * program again, by exec. */
#include "other_process.h"
#include "share/kinds.h"

#include <pthread.h>
#include <stdatomic.h>

#define SIZE (3 * MIB)

static int check(int good, const char *what, int line) {
    if (!good)
        fprintf(stderr, "line %d: %s; the last error says: %s\n", line, what,
                gpumem_last_error()->message);
    return good;
}
#define WANT(condition)                                                                            \
    do {                                                                                           \
        if (!check(condition, #condition, __LINE__))                                               \
            return 10;                                                                             \
    } while (0)

static int holds(gpumem_buffer *buffer, unsigned char value) {
    unsigned char bytes[2] = {0};
    size_t last = gpumem_buffer_size(buffer) - 1;
    return read_now(buffer, 0, &bytes[0], 1, NULL) == GPUMEM_OK &&
           read_now(buffer, last, &bytes[1], 1, NULL) == GPUMEM_OK && bytes[0] == value &&
           bytes[1] == value;
}

/* ---- The other process: memory of a pool ----------------------------------------------------- */

static int end_clean(size_t descriptors) {
    WANT(open_descriptors() == descriptors);
    WANT(close_device(NULL) == 0);
    char *leaks = soft->leak_report();
    int leaked = strstr(leaks, "pool") != NULL || strstr(leaks, "event") != NULL;
    soft->free_text(leaks);
    return leaked ? 11 : 0;
}

static int attributes_are_right(gpumem_buffer *buffer, int host) {
    gpumem_buffer_attributes about = {.size = sizeof about};
    WANT(gpumem_buffer_get_attributes(buffer, &about) == GPUMEM_OK);
    WANT(about.imported && !about.foreign && !about.exportable && about.host_accessible == host);
    WANT(!gpumem_buffer_resource(buffer) && gpumem_buffer_device(buffer) == device);
    gpumem_export *none;
    WANT(gpumem_export_create(buffer, &none) == GPUMEM_ERROR_NOT_SUPPORTED);
    WANT(gpumem_device_close(device) == GPUMEM_ERROR_BUSY);
    WANT(gpumem_import_update(buffer, 0, NULL) == GPUMEM_ERROR_INVALID_ARGUMENT);
    return 0;
}

/* The owner sends `a` twice, `b`, and after all are freed `a` again. */
static int receive_pool(int host, int socket) {
    gpumem_buffer *a, *twin, *b, *again;
    uint64_t pools = soft->call_count("cuMemPoolImportFromShareableHandle");
    size_t descriptors = open_descriptors();
    WANT(gpumem_import_receive(device, socket, NULL, &a) == GPUMEM_OK);
    WANT(gpumem_import_receive(device, socket, NULL, &twin) == GPUMEM_OK);
    WANT(gpumem_import_receive(device, socket, NULL, &b) == GPUMEM_OK);
    WANT(gpumem_buffer_size(a) == SIZE && gpumem_buffer_size(b) == 1000);
    WANT(gpumem_buffer_pointer(a) == gpumem_buffer_pointer(twin));
    WANT((gpumem_buffer_host_pointer(a) != NULL) == host);
    /* The pool is mapped once, for all of them. */
    WANT(soft->call_count("cuMemPoolImportFromShareableHandle") == pools + 1);
    WANT(holds(a, 0x11) && holds(b, 0x42) && attributes_are_right(a, host) == 0);
    WANT(device_stats().imported_bytes >= SIZE + 1000 && device_stats().allocations == 3);
    /* Work on one holds its free back; the other's waits for nothing of it. */
    struct gate gate = gate_with_stream();
    WANT(gpumem_buffer_fill(a, 0, SIZE, 0x77, gate.stream) == GPUMEM_OK);
    WANT(gpumem_buffer_free(a, gate.stream) == GPUMEM_OK);
    WANT(gpumem_buffer_free(twin, NULL) == GPUMEM_OK);
    WANT(device_stats().deferred_frees == 1);
    gate_drain(&gate);
    WANT(fill_now(b, 0, 1000, 0x43, NULL) == GPUMEM_OK);
    WANT(gpumem_buffer_free(b, NULL) == GPUMEM_OK);
    WANT(gpumem_device_trim(device, 1) == GPUMEM_OK);
    gate_remove(&gate);
    WANT(device_stats().imported_bytes == 0 && device_stats().quarantined == 0);
    WANT(gpumem_import_receive(device, socket, NULL, &again) == GPUMEM_OK);
    WANT(soft->call_count("cuMemPoolImportFromShareableHandle") == pools + 2);
    WANT(holds(again, 0x77) && gpumem_buffer_free(again, NULL) == GPUMEM_OK);
    WANT(gpumem_device_trim(device, 1) == GPUMEM_OK);
    return end_clean(descriptors);
}

/* What cannot be asked of a pool's memory, or is something else; the owner hears of each. */
static int refuse_pool(int socket) {
    gpumem_buffer *none = NULL;
    CUevent event = NULL;
    size_t descriptors = open_descriptors();
    WANT(gpumem_import_receive(device, socket, GPUMEM_SHARE_OPTIONS(.capacity = 8 * MIB), &none) ==
         GPUMEM_ERROR_NOT_SUPPORTED);
    WANT(gpumem_import_receive(device, socket, GPUMEM_SHARE_OPTIONS(.access = GPUMEM_ACCESS_READ),
                               &none) == GPUMEM_ERROR_NOT_SUPPORTED);
    WANT(gpumem_import_receive(device, socket, GPUMEM_SHARE_OPTIONS(.maximum_bytes = SIZE - 1),
                               &none) == GPUMEM_ERROR_DATA);
    WANT(gpumem_import_receive_event(device, socket, NULL, &event) == GPUMEM_ERROR_DATA);
    WANT(strstr(gpumem_last_error()->message, "memory of a pool was sent") != NULL);
    WANT(!none && !event && device_stats().imported_bytes == 0);
    return end_clean(descriptors);
}

/* ---- The other process: events --------------------------------------------------------------- */

static int receive_event(int socket) {
    CUevent event, mine;
    gpumem_buffer *none = NULL;
    CUstream stream;
    bool done = true;
    size_t descriptors = open_descriptors();
    WANT(gpumem_import_receive(device, socket, NULL, &none) == GPUMEM_ERROR_DATA && !none);
    WANT(strstr(gpumem_last_error()->message, "an event was sent") != NULL);
    WANT(gpumem_import_receive_event(device, socket, NULL, &event) == GPUMEM_OK);
    /* The owner's stream is held: what waits for it here is held too. */
    WANT(gpumem_stream_create(device, NULL, &stream) == GPUMEM_OK);
    WANT(gpumem_event_create(device, NULL, &mine) == GPUMEM_OK);
    WANT(gpumem_event_query(device, event, &done) == GPUMEM_OK && done == 0);
    WANT(gpumem_stream_wait_event(device, stream, event) == GPUMEM_OK);
    WANT(gpumem_event_record(device, mine, stream) == GPUMEM_OK);
    WANT(gpumem_event_query(device, mine, &done) == GPUMEM_OK && done == 0);
    WANT(other_say(socket)); /* now the owner opens its gate */
    WANT(gpumem_stream_synchronize(device, stream) == GPUMEM_OK);
    WANT(gpumem_event_query(device, event, &done) == GPUMEM_OK && done == 1);
    /* And the other way round. */
    struct gate gate = gate_with_stream();
    WANT(gpumem_event_record(device, event, gate.stream) == GPUMEM_OK);
    WANT(other_say(socket) && other_hear(socket));
    gate_drain(&gate);
    gate_remove(&gate);
    WANT(gpumem_event_destroy(device, mine) == GPUMEM_OK);
    WANT(gpumem_event_destroy(device, event) == GPUMEM_OK);
    WANT(gpumem_stream_destroy(device, stream) == GPUMEM_OK);
    return end_clean(descriptors);
}

static int other_process(const char *what, int socket) {
    if (open_device(NULL) != 0 || make_host_memory_file() != 0)
        return 1;
    if (strcmp(what, "refuse") == 0)
        return refuse_pool(socket);
    if (strcmp(what, "event") == 0)
        return receive_event(socket);
    return receive_pool(strcmp(what, "host") == 0, socket);
}

/* ---- This process ---------------------------------------------------------------------------- */

static gpumem_resource *shared_pool(int host) {
    return host ? NEW_PINNED(.method = GPUMEM_PINNED_POOL, .ipc = 1) : NEW_POOL(.ipc = 1);
}

static gpumem_buffer *filled(gpumem_resource *from, size_t bytes, size_t alignment,
                             unsigned char value) {
    gpumem_buffer *buffer = NEW_BUFFER_WITH(from, bytes, .alignment = alignment);
    OK(fill_now(buffer, 0, bytes, value, NULL));
    return buffer;
}

static void share_pool(int host) {
    size_t none_open = open_descriptors();
    gpumem_resource *pool = shared_pool(host);
    gpumem_resource *limited = NEW_LIMIT(pool, GIB);
    gpumem_buffer *a = filled(pool, SIZE, 0, 0x11), *b = filled(limited, 1000, 4096, 0x42);
    gpumem_export *first = NEW_EXPORT(a);
    gpumem_export *second = NEW_EXPORT(b); /* through a wrapper */
    assert_int_equal(export_info(second).bytes, 1000);
    assert_int_equal(export_info(first).descriptor_count, 1);
    assert_int_equal(device_stats().exports, 2);
    gpumem_resource_properties properties = properties_of(limited);
    gpumem_buffer_attributes about = attributes_of(b);
    assert_true(properties.exportable && about.exportable);
    FAILS(NOT_SUPPORTED, gpumem_export_detach(first));
    FAILS(INVALID_ARGUMENT, gpumem_export_answer(first, 0, NULL));
    OK(gpumem_export_update(first));
    int socket;
    pid_t child = other_start(host ? "host" : "device", SOCK_STREAM, &socket);
    OK(gpumem_export_send(first, socket, NULL));
    OK(gpumem_export_send(first, socket, NULL));
    OK(gpumem_export_send(second, socket, NULL));
    /* Freed here, the memory stays for the export. */
    OK(gpumem_buffer_free(b, NULL));
    OK(gpumem_export_send(first, socket, NULL));
    assert_int_equal(other_end(child, socket), 0);
    assert_true(holds(a, 0x77));
    DESTROY(second, first, a, limited, pool);
    assert_int_equal(open_descriptors(), none_open);
}

TEST_IS(memory_of_a_device_pool_is_shared, share_pool(0));
TEST_IS(memory_of_a_host_pool_is_shared, share_pool(1));

TEST(operations_unsupported_by_pool_memory_are_refused) {
    gpumem_resource *pool = shared_pool(0);
    gpumem_buffer *buffer = filled(pool, SIZE, 0, 0x22);
    gpumem_export *none = NULL;
    gpumem_export *exported = NEW_EXPORT(buffer);
    int socket;
    pid_t child = other_start("refuse", SOCK_SEQPACKET, &socket);
    for (int i = 0; i < 4; i++)
        FAILS_SAYING(PEER, "refused", gpumem_export_send(exported, socket, NULL));
    assert_int_equal(other_end(child, socket), 0);
    DESTROY(exported, buffer, pool);
    gpumem_resource *plain = NEW_POOL();
    buffer = filled(plain, SIZE, 0, 0x22);
    gpumem_resource_properties properties = properties_of(plain);
    assert_false(properties.exportable);
    FAILS_SAYING(NOT_SUPPORTED, "create it with ipc", gpumem_export_create(buffer, &none));
    assert_null(none);
    assert_int_equal(device_stats().exports, 0);
    DESTROY(buffer, plain);
}

TEST(an_event_orders_streams_of_two_processes) {
    CUevent event, timed;
    gpumem_export *exported, *none = NULL;
    int socket;
    bool done = true;
    OK(gpumem_event_create(device, GPUMEM_EVENT_OPTIONS(.interprocess = 1), &event));
    FAILS(
        INVALID_ARGUMENT,
        gpumem_event_create(device, GPUMEM_EVENT_OPTIONS(.timing = 1, .interprocess = 1), &timed));
    CUevent plain = NEW_EVENT();
    FAILS_SAYING(DRIVER, "interprocess", gpumem_export_create_event(device, plain, &none));
    FAILS(INVALID_ARGUMENT, gpumem_export_create_event(device, NULL, &none));
    assert_null(none);
    OK(gpumem_event_destroy(device, plain));
    OK(gpumem_export_create_event(device, event, &exported));
    assert_int_equal(export_info(exported).bytes, 0);
    assert_int_equal(export_info(exported).descriptor_count, 0);
    FAILS(NOT_SUPPORTED, gpumem_export_detach(exported));
    struct gate gate = gate_with_stream();
    OK(gpumem_event_record(device, event, gate.stream));
    pid_t child = other_start("event", SOCK_STREAM, &socket);
    FAILS(PEER, gpumem_export_send(exported, socket, NULL));
    OK(gpumem_export_send(exported, socket, NULL));
    assert_true(other_hear(socket));
    gate_drain(&gate);
    assert_true(other_hear(socket));
    OK(gpumem_event_query(device, event, &done));
    assert_int_equal(done, 0); /* recorded there, and held */
    assert_true(other_say(socket));
    OK(gpumem_event_synchronize(device, event));
    assert_int_equal(other_end(child, socket), 0);
    gate_remove(&gate);
    DESTROY(exported, event);
}

/* Its bytes are not believed either. */
TEST(damaged_descriptions_are_refused) {
    gpumem_resource *pool = shared_pool(0);
    gpumem_buffer *buffer = filled(pool, SIZE, 0, 0x33), *imported = NULL;
    gpumem_export *of_event;
    CUevent event, none = NULL;
    const void *description;
    size_t bytes;
    gpumem_export *exported = NEW_EXPORT(buffer);
    OK(export_description(exported, &description, &bytes));
    int fd = MADE(int, export_descriptor, exported, 0);
    struct gm_pool_description good, lie;
    assert_int_equal(bytes, sizeof good);
    memcpy(&good, description, sizeof good);
    char *before = soft->state_dump();
#define LIES(status, what)                                                                         \
    do {                                                                                           \
        lie = good;                                                                                \
        what;                                                                                      \
        FAILS(status, gpumem_import_create(device, &lie, sizeof lie, &fd, 1, NULL, &imported));    \
    } while (0)
    LIES(DATA, lie.bytes = 0);
    LIES(DATA, lie.bytes = UINT64_MAX);
    LIES(DATA, lie.bytes += 1 * GIB);
    LIES(DATA, lie.offset = UINT64_MAX - 5);
    LIES(DATA, lie.offset = 256);
    LIES(DATA, lie.location = 7);
    LIES(DATA, lie.location = GPUMEM_LOCATION_HOST);
    LIES(DATA, lie.numa_node = -2);
    LIES(DATA, lie.data[20] ^= 1);
    LIES(PEER, lie.version = 9);
    LIES(PEER, lie.bytes_of_this = 9);
    LIES(DATA, lie.magic[3] ^= 1);
    LIES(NO_DEVICE, lie.device[3] ^= 1);
    FAILS(DATA, gpumem_import_create(device, description, bytes - 1, &fd, 1, NULL, &imported));
    FAILS(DATA, gpumem_import_create(device, description, bytes, &fd, 0, NULL, &imported));
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    FAILS(DRIVER, gpumem_import_create(device, description, bytes, ends, 1, NULL, &imported));
    close(ends[0]);
    FAILS(SYSTEM, gpumem_import_create(device, description, bytes, ends, 1, NULL, &imported));
    close(ends[1]);
    SAME_STATE(before);
    assert_null(imported);
    OK(gpumem_import_create(device, description, bytes, &fd, 1, NULL, &imported));
    assert_true(holds(imported, 0x33));
    DESTROY(imported, exported, buffer, pool);
    OK(gpumem_event_create(device, GPUMEM_EVENT_OPTIONS(.interprocess = 1), &event));
    OK(gpumem_export_create_event(device, event, &of_event));
    OK(export_description(of_event, &description, &bytes));
    struct gm_event_description wrong;
    memcpy(&wrong, description, sizeof wrong);
    /* In its own process it cannot be opened, which the driver says. */
    assert_int_not_equal(gpumem_import_create_event(device, description, bytes, &none), GPUMEM_OK);
    memset(wrong.handle, 0, sizeof wrong.handle);
    FAILS(DATA, gpumem_import_create_event(device, &wrong, sizeof wrong, &none));
    FAILS(DATA, gpumem_import_create_event(device, &wrong, sizeof wrong - 1, &none));
    wrong.device[0] ^= 1;
    FAILS(NO_DEVICE, gpumem_import_create_event(device, &wrong, sizeof wrong, &none));
    assert_null(none);
    DESTROY(of_event, event);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  60

struct importer {
    pthread_t threads[2];
    gpumem_export *exported;
    int sockets[2];
    atomic_int failed;
};

static void *send_all(void *argument) {
    struct importer *self = argument;
    for (int i = 0; i < ROUNDS && !self->failed; i++)
        self->failed |= gpumem_export_send(self->exported, self->sockets[0], NULL) != GPUMEM_OK;
    return NULL;
}

static void *receive_all(void *argument) {
    struct importer *self = argument;
    for (int i = 0; i < ROUNDS && !self->failed; i++) {
        gpumem_buffer *buffer;
        if (gpumem_import_receive(device, self->sockets[1], NULL, &buffer) != GPUMEM_OK) {
            self->failed = 1;
            break;
        }
        /* Read by the CPU: a mapping that was taken away would kill. */
        self->failed |= ((unsigned char *)gpumem_buffer_host_pointer(buffer))[4095] != 0x2f;
        self->failed |= gpumem_buffer_free(buffer, NULL) != GPUMEM_OK;
    }
    return NULL;
}

/* Whoever is the last of a moment unmaps the pool that the next one maps again. */
TEST(threads_receive_memory_of_one_pool) {
    gpumem_resource *pool = shared_pool(1);
    gpumem_buffer *buffer = filled(pool, 4096, 0, 0x2f);
    struct importer importers[THREADS];
    gpumem_export *exported = NEW_EXPORT(buffer);
    for (size_t i = 0; i < THREADS; i++) {
        importers[i] = (struct importer){.exported = exported};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, importers[i].sockets), 0);
        assert_int_equal(pthread_create(&importers[i].threads[0], NULL, send_all, &importers[i]),
                         0);
        assert_int_equal(pthread_create(&importers[i].threads[1], NULL, receive_all, &importers[i]),
                         0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(importers[i].threads[0], NULL);
        pthread_join(importers[i].threads[1], NULL);
        close(importers[i].sockets[0]);
        close(importers[i].sockets[1]);
        assert_int_equal(importers[i].failed, 0);
    }
    OK(gpumem_device_trim(device, 1));
    assert_int_equal(device_stats().imported_bytes, 0);
    DESTROY(exported, buffer, pool);
}

static int begin(void **state) {
    return open_device(state) == 0 ? make_host_memory_file() : -1;
}

ALL_TESTS(begin, close_device);

CHILD(other) {
    return other_process(argv[1], atoi(argv[2]));
}
