/* Growth that importers follow when they ask for it: at the address that they have, and only what
 * is new. */
#include "share_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

EACH_TEST(setup, teardown);

#define CHUNK        (2 * MIB)
#define CAPACITY     GPUMEM_SHARE_OPTIONS(.capacity = 1024 * MIB)
#define GROWN_CHUNKS 300 /* more than one message of descriptors */

/* ---- Two processes --------------------------------------------------------------------------- */

/* The exporter marks each chunk, the importer answers in the next byte. */
static unsigned char mark_of(size_t chunk, int answer) {
    return (unsigned char)(chunk * 7 + (answer ? 100 : 3));
}

static gpumem_status write_marks(gpumem_buffer *buffer, size_t from, int answer) {
    gpumem_status status = GPUMEM_OK;
    for (size_t at = from; at < gpumem_buffer_size(buffer) / CHUNK && status == GPUMEM_OK; at++)
        status =
            gpumem_buffer_fill(buffer, at * CHUNK + (size_t)answer, 1, mark_of(at, answer), NULL);
    return status == GPUMEM_OK ? gpumem_stream_synchronize(device, NULL) : status;
}

static int has_marks(gpumem_buffer *buffer, int answer) {
    for (size_t at = 0; at < gpumem_buffer_size(buffer) / CHUNK; at++) {
        unsigned char byte = 0;
        if (read_now(buffer, at * CHUNK + (size_t)answer, &byte, 1, NULL) != GPUMEM_OK ||
            byte != mark_of(at, answer))
            return 0;
    }
    return 1;
}

static int follow(gpumem_buffer *buffer, int socket, size_t chunks) {
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    if (gpumem_import_update(buffer, socket, NULL) != GPUMEM_OK) {
        fprintf(stderr, "update: %s\n", gpumem_last_error()->message);
        return 20;
    }
    if (gpumem_buffer_size(buffer) != chunks * CHUNK || gpumem_buffer_pointer(buffer) != address)
        return 21;
    if (!has_marks(buffer, 0))
        return 22;
    return write_marks(buffer, 0, 1) == GPUMEM_OK && other_say(socket) ? 0 : 23;
}

/* An owner that says nothing more, until it is killed. */
static int silent_owner(int socket) {
    gpumem_resource *own;
    gpumem_buffer *buffer;
    gpumem_export *exported;
    if (open_device(NULL) != 0 || gpumem_virtual_resource_create(device, NULL, &own) != GPUMEM_OK ||
        gpumem_buffer_allocate(own, CHUNK, NULL, &buffer) != GPUMEM_OK ||
        write_marks(buffer, 0, 0) != GPUMEM_OK ||
        gpumem_export_create(buffer, &exported) != GPUMEM_OK ||
        gpumem_export_send(exported, socket, NULL) != GPUMEM_OK)
        return 1;
    pause();
    return 2;
}

static int other_process(const char *what, int socket) {
    gpumem_buffer *buffer;
    if (strcmp(what, "owner") == 0)
        return silent_owner(socket);
    if (open_device(NULL) != 0)
        return 1;
    size_t descriptors = open_descriptors();
    if (gpumem_import_receive(device, socket, CAPACITY, &buffer) != GPUMEM_OK || !other_say(socket))
        return 2;
    if (gpumem_buffer_capacity(buffer) != 1024 * MIB || gpumem_buffer_size(buffer) != CHUNK)
        return 3;
    int wrong = follow(buffer, socket, 1); /* nothing is new */
    uint64_t imports = soft->call_count("cuMemImportFromShareableHandle");
    for (size_t chunks = 2; chunks <= 4 && !wrong; chunks++)
        wrong = follow(buffer, socket, chunks);
    if (!wrong)
        wrong = follow(buffer, socket, GROWN_CHUNKS);
    /* Each handle has come once. */
    if (!wrong && soft->call_count("cuMemImportFromShareableHandle") != imports + GROWN_CHUNKS - 1)
        wrong = 4;
    if (wrong)
        return wrong;
    if (device_stats().imported_bytes != GROWN_CHUNKS * CHUNK)
        return 5;
    if (gpumem_buffer_free(buffer, NULL) != GPUMEM_OK || open_descriptors() != descriptors)
        return 6;
    if (close_device(NULL) != 0)
        return 8;
    char *leaks = soft->leak_report();
    int leaked = leaks[0] != 0;
    soft->free_text(leaks);
    return leaked ? 7 : 0;
}

static void grow_and_answer(gpumem_buffer *buffer, gpumem_export *exported, int socket,
                            size_t chunks) {
    size_t before = gpumem_buffer_size(buffer) / CHUNK;
    for (size_t i = before + 1; i <= chunks; i++)
        OK(gpumem_buffer_grow(buffer, i * CHUNK, NULL));
    OK(write_marks(buffer, before, 0));
    OK(gpumem_export_update(exported));
    assert_int_equal(export_info(exported).bytes, chunks * CHUNK);
    assert_int_equal(export_info(exported).descriptor_count, chunks);
    OK(gpumem_export_answer(exported, socket, NULL));
    assert_true(other_hear(socket));
    assert_true(has_marks(buffer, 1));
}

static void follow_in_another_process(int type) {
    size_t descriptors = open_descriptors();
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, CHUNK, .capacity = 1024 * MIB);
    gpumem_export *exported = NEW_EXPORT(buffer);
    int socket;
    pid_t child = other_start("follow", type, &socket);
    OK(gpumem_export_send(exported, socket, NULL));
    assert_true(other_hear(socket));
    OK(write_marks(buffer, 0, 0));
    for (size_t chunks = 1; chunks <= 4; chunks++)
        grow_and_answer(buffer, exported, socket, chunks);
    grow_and_answer(buffer, exported, socket, GROWN_CHUNKS);
    assert_int_equal(other_end(child, socket), 0);
    DESTROY(exported, buffer);
    assert_int_equal(open_descriptors(), descriptors);
}

TEST(another_process_follows_growth) {
    follow_in_another_process(SOCK_STREAM);
    follow_in_another_process(SOCK_SEQPACKET);
}

TEST(imported_memory_survives_its_killed_owner) {
    int socket, status = 0;
    pid_t owner = other_start("owner", SOCK_STREAM, &socket);
    gpumem_buffer *import = MADE(gpumem_buffer *, gpumem_import_receive, device, socket, CAPACITY);
    FAILS(PEER, gpumem_import_update(import, socket, GPUMEM_SHARE_OPTIONS(.timeout_ms = 50)));
    SAYS("within 50 ms");
    assert_int_equal(kill(owner, SIGKILL), 0);
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_true(WIFSIGNALED(status));
    FAILS(PEER, gpumem_import_update(import, socket, NULL));
    assert_int_equal(gpumem_buffer_size(import), CHUNK);
    assert_true(has_marks(import, 0));
    OK(write_marks(import, 0, 1));
    close(socket);
    OK(gpumem_buffer_free(import, NULL));
}

/* ---- Both sides in one process --------------------------------------------------------------- */

/* An owner and an importer, connected; the owner answers in a thread of its own. */
struct pair {
    gpumem_buffer *buffer, *import;
    gpumem_export *exported;
    int sockets[2];
    pthread_t thread;
    gpumem_status status; /* of the thread's call */
    char message[400];
};

static void note(struct pair *pair, gpumem_status status) {
    pair->status = status;
    snprintf(pair->message, sizeof pair->message, "%s",
             status == GPUMEM_OK ? "" : gpumem_last_error()->message);
}

static void *run_send(void *argument) {
    struct pair *pair = argument;
    note(pair, gpumem_export_send(pair->exported, pair->sockets[0], NULL));
    return NULL;
}

static void *run_answer(void *argument) {
    struct pair *pair = argument;
    note(pair, gpumem_export_answer(pair->exported, pair->sockets[0], NULL));
    return NULL;
}

static gpumem_status receive(struct pair *pair, const gpumem_share_options *options) {
    assert_int_equal(pthread_create(&pair->thread, NULL, run_send, pair), 0);
    gpumem_status status = gpumem_import_receive(device, pair->sockets[1], options, &pair->import);
    pthread_join(pair->thread, NULL);
    return status;
}

static gpumem_status update(struct pair *pair, const gpumem_share_options *options) {
    assert_int_equal(pthread_create(&pair->thread, NULL, run_answer, pair), 0);
    gpumem_status status = gpumem_import_update(pair->import, pair->sockets[1], options);
    pthread_join(pair->thread, NULL);
    return status;
}

static void begin(struct pair *pair, size_t bytes, const gpumem_share_options *options) {
    *pair = (struct pair){.status = GPUMEM_OK};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair->sockets), 0);
    pair->buffer = NEW_BUFFER_WITH(resource, bytes, .capacity = 64 * MIB);
    pair->exported = NEW_EXPORT(pair->buffer);
    OK(receive(pair, options));
    OK(pair->status);
}

static void end(struct pair *pair) {
    DESTROY(pair->import, pair->exported, pair->buffer);
    close(pair->sockets[0]);
    close(pair->sockets[1]);
    OK(gpumem_device_trim(device, 1));
    MEMBERS(device_stats(), (imported_bytes, 0), (mappings, 0), (reserved_bytes, 0));
}

static void grow(struct pair *pair, size_t bytes) {
    OK(gpumem_buffer_grow(pair->buffer, bytes, NULL));
    OK(gpumem_export_update(pair->exported));
}

/* Growth inside memory that is there moves no descriptor. */
TEST(growth_within_mapped_memory_sends_no_descriptor) {
    struct pair pair;
    begin(&pair, CHUNK - 5, CAPACITY);
    assert_int_equal(gpumem_buffer_size(pair.import), CHUNK - 5);
    uint64_t imports = soft->call_count("cuMemImportFromShareableHandle");
    grow(&pair, CHUNK - 1);
    OK(update(&pair, NULL));
    OK(pair.status);
    assert_int_equal(gpumem_buffer_size(pair.import), CHUNK - 1);
    assert_int_equal(soft->call_count("cuMemImportFromShareableHandle"), imports);
    OK(gpumem_buffer_fill(pair.import, CHUNK - 2, 1, 9, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_buffer_fill(pair.import, CHUNK - 1, 1, 9, NULL));
    end(&pair);
}

/* The importer asks; until then nothing is different. */
TEST(an_import_changes_only_when_it_asks) {
    struct pair pair;
    begin(&pair, CHUNK, CAPACITY);
    char *before = soft->state_dump();
    uint64_t maps = soft->call_count("cuMemMap");
    OK(gpumem_buffer_grow(pair.buffer, 2 * CHUNK, NULL));
    OK(update(&pair, NULL)); /* the export was not updated */
    OK(pair.status);
    assert_int_equal(gpumem_buffer_size(pair.import), CHUNK);
    OK(gpumem_export_update(pair.exported));
    assert_int_equal(gpumem_buffer_size(pair.import), CHUNK);
    assert_int_equal(soft->call_count("cuMemMap"), maps + 1);
    soft->free_text(before);
    OK(update(&pair, NULL));
    assert_int_equal(gpumem_buffer_size(pair.import), 2 * CHUNK);
    assert_int_equal(soft->call_count("cuMemMap"), maps + 2);
    end(&pair);
}

TEST(growth_beyond_the_importers_limits_leaves_the_import_unchanged) {
    struct pair pair;
    begin(&pair, CHUNK, GPUMEM_SHARE_OPTIONS(.capacity = 3 * CHUNK - 1));
    assert_int_equal(gpumem_buffer_capacity(pair.import), 3 * CHUNK);
    CUdeviceptr address = gpumem_buffer_pointer(pair.import);
    grow(&pair, 3 * CHUNK);
    char *before = soft->state_dump();
    FAILS(DATA, update(&pair, GPUMEM_SHARE_OPTIONS(.maximum_bytes = 3 * CHUNK - 1)));
    SAYS("more than the 6291455 bytes");
    FAILS(PEER, pair.status);
    assert_non_null(strstr(pair.message, "refused"));
    SAME_STATE(before);
    assert_int_equal(gpumem_buffer_size(pair.import), CHUNK);
    OK(update(&pair, GPUMEM_SHARE_OPTIONS(.maximum_bytes = 3 * CHUNK)));
    assert_int_equal(gpumem_buffer_size(pair.import), 3 * CHUNK);
    grow(&pair, 4 * CHUNK);
    before = soft->state_dump();
    FAILS_SAYING(OUT_OF_CAPACITY, "capacity of 6291456", update(&pair, NULL));
    FAILS(PEER, pair.status);
    assert_non_null(strstr(pair.message, "capacity"));
    SAME_STATE(before);
    assert_int_equal(gpumem_buffer_size(pair.import), 3 * CHUNK);
    assert_int_equal(gpumem_buffer_pointer(pair.import), address);
    OK(fill_now(pair.import, 0, 3 * CHUNK, 4, NULL));
    end(&pair);
}

TEST(only_the_imports_own_connection_updates_it) {
    struct pair pair, fixed;
    int others[2];
    begin(&pair, CHUNK, CAPACITY);
    begin(&fixed, CHUNK, NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, others), 0);
    FAILS(INVALID_ARGUMENT, gpumem_import_update(pair.import, others[1], NULL));
    SAYS("not the connection");
    FAILS(INVALID_ARGUMENT, gpumem_import_update(pair.import, -1, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_import_update(pair.import, 100000, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_import_update(fixed.import, fixed.sockets[1], NULL));
    SAYS("with a capacity");
    FAILS(INVALID_ARGUMENT, gpumem_import_update(pair.buffer, pair.sockets[1], NULL));
    FAILS(NOT_SUPPORTED, gpumem_buffer_grow(pair.import, 2 * CHUNK, NULL));
    /* Two that can grow are two mappings. */
    struct pair second = pair;
    OK(receive(&second, CAPACITY));
    assert_int_not_equal(gpumem_buffer_pointer(second.import), gpumem_buffer_pointer(pair.import));
    OK(gpumem_buffer_free(second.import, NULL));
    close(others[0]);
    close(others[1]);
    DESTROY(fixed.import, fixed.exported, fixed.buffer);
    close(fixed.sockets[0]);
    close(fixed.sockets[1]);
    end(&pair);
}

/* ---- Without a socket ------------------------------------------------------------------------ */

static gpumem_status extend(gpumem_buffer *import, const gpumem_export *exported, size_t first) {
    const void *description;
    size_t bytes, count = export_info(exported).descriptor_count;
    int fds[16];
    OK(export_description(exported, &description, &bytes));
    for (size_t i = first; i < count; i++)
        OK(export_descriptor(exported, i, &fds[i - first]));
    return gpumem_import_extend(import, description, bytes, fds, count - first, NULL);
}

TEST(growth_can_be_sent_by_other_means) {
    struct pair pair;
    gpumem_buffer *created;
    const void *description;
    size_t bytes;
    begin(&pair, CHUNK, CAPACITY);
    OK(export_description(pair.exported, &description, &bytes));
    int fd = MADE(int, export_descriptor, pair.exported, 0);
    OK(gpumem_import_create(device, description, bytes, &fd, 1, CAPACITY, &created));
    FAILS(INVALID_ARGUMENT, gpumem_import_update(created, pair.sockets[1], NULL));
    grow(&pair, 3 * CHUNK);
    OK(fill_now(pair.buffer, 2 * CHUNK, CHUNK, 0x31, NULL));
    char *before = soft->state_dump();
    FAILS_SAYING(DATA, "3 descriptors are given", extend(created, pair.exported, 0));
    FAILS(DATA, extend(created, pair.exported, 2));
    SAME_STATE(before);
    CUdeviceptr address = gpumem_buffer_pointer(created);
    OK(extend(created, pair.exported, 1));
    assert_int_equal(gpumem_buffer_size(created), 3 * CHUNK);
    assert_int_equal(gpumem_buffer_pointer(created), address);
    assert_int_equal(byte_of(created, 3 * CHUNK - 1), 0x31);
    OK(extend(created, pair.exported, 3)); /* nothing new */
    gpumem_buffer *other = NEW_BUFFER(resource, 4 * CHUNK);
    gpumem_export *others = NEW_EXPORT(other);
    FAILS_SAYING(DATA, "another buffer", extend(created, others, 3));
    FAILS(INVALID_ARGUMENT, extend(other, others, 4));
    DESTROY(others, other, created);
    end(&pair);
}

/* ---- Detaching ------------------------------------------------------------------------------- */

TEST(a_detached_export_lets_its_buffer_shrink) {
    struct pair pair;
    begin(&pair, 3 * CHUNK, CAPACITY);
    OK(fill_now(pair.buffer, 0, 3 * CHUNK, 0x61, NULL));
    FAILS(BUSY, gpumem_buffer_shrink(pair.buffer, CHUNK, NULL));
    OK(gpumem_export_detach(pair.exported));
    assert_int_equal(export_info(pair.exported).descriptor_count, 0);
    assert_int_equal(device_stats().exports, 0);
    OK(gpumem_export_detach(pair.exported)); /* again */
    OK(gpumem_buffer_shrink(pair.buffer, CHUNK, NULL));
    /* What the importer has is there, also what the owner has given up. */
    unsigned char bytes[2];
    OK(read_now(pair.import, 3 * CHUNK - 1, &bytes[0], 1, NULL));
    assert_int_equal(bytes[0], 0x61);
    /* What both have is one memory; what the owner grows into is not the importer's. */
    OK(gpumem_buffer_grow(pair.buffer, 3 * CHUNK, NULL));
    OK(fill_now(pair.buffer, 0, 3 * CHUNK, 0x62, NULL));
    OK(read_now(pair.import, CHUNK - 1, &bytes[0], 1, NULL));
    OK(read_now(pair.import, CHUNK, &bytes[1], 1, NULL));
    assert_int_equal(bytes[0], 0x62);
    assert_int_equal(bytes[1], 0x61);
    /* The owner tells who asks, and nobody is told anything else. */
    FAILS(INVALID_ARGUMENT, gpumem_export_send(pair.exported, pair.sockets[0], NULL));
    SAYS("detached");
    FAILS(INVALID_ARGUMENT, gpumem_export_update(pair.exported));
    const void *description;
    size_t size;
    int fd;
    FAILS(INVALID_ARGUMENT, export_description(pair.exported, &description, &size));
    FAILS(INVALID_ARGUMENT, export_descriptor(pair.exported, 0, &fd));
    char *before = soft->state_dump();
    FAILS_SAYING(PEER, "detached", update(&pair, NULL));
    FAILS(INVALID_ARGUMENT, pair.status);
    SAME_STATE(before);
    /* An export of what has other chunks does not go on where this import ends. */
    OK(gpumem_export_destroy(pair.exported));
    pair.exported = NEW_EXPORT(pair.buffer);
    FAILS_SAYING(PEER, "given memory back since", update(&pair, NULL));
    FAILS(DATA, pair.status);
    FAILS(DATA, extend(pair.import, pair.exported, 3));
    assert_int_equal(gpumem_buffer_size(pair.import), 3 * CHUNK);
    gpumem_buffer *former = pair.import;
    OK(receive(&pair, CAPACITY));
    OK(read_now(pair.import, 3 * CHUNK - 1, &bytes[0], 1, NULL));
    assert_int_equal(bytes[0], 0x62);
    OK(gpumem_buffer_free(former, NULL));
    end(&pair);
}

/* Where the buffer has only grown, its imports go on from the next export. */
TEST(an_import_may_follow_a_later_export_of_its_buffer) {
    struct pair pair;
    begin(&pair, CHUNK, CAPACITY);
    OK(gpumem_export_detach(pair.exported));
    OK(gpumem_buffer_grow(pair.buffer, 2 * CHUNK, NULL));
    OK(gpumem_export_destroy(pair.exported));
    pair.exported = NEW_EXPORT(pair.buffer);
    OK(update(&pair, NULL));
    assert_int_equal(gpumem_buffer_size(pair.import), 2 * CHUNK);
    /* A move leaves the memory what it is. A shrink, a hole or another size does not. */
    CUdeviceptr moved;
    OK(gpumem_export_destroy(pair.exported));
    OK(gpumem_buffer_move_to_capacity(pair.buffer, 128 * MIB, NULL, &moved));
    OK(gpumem_buffer_grow(pair.buffer, 4 * CHUNK, NULL));
    pair.exported = NEW_EXPORT(pair.buffer);
    OK(update(&pair, NULL));
    OK(fill_now(pair.buffer, 0, 4 * CHUNK, 0x17, NULL));
    unsigned char bytes[2];
    OK(read_now(pair.import, 0, &bytes[0], 1, NULL));
    OK(read_now(pair.import, 4 * CHUNK - 1, &bytes[1], 1, NULL));
    assert_true(bytes[0] == 0x17 && bytes[1] == 0x17);
    OK(gpumem_export_destroy(pair.exported));
    OK(gpumem_buffer_decommit(pair.buffer, CHUNK, CHUNK, NULL, NULL));
    OK(gpumem_buffer_recommit(pair.buffer, CHUNK, CHUNK));
    pair.exported = NEW_EXPORT(pair.buffer);
    FAILS_SAYING(PEER, "given memory back since", update(&pair, NULL));
    end(&pair);
}

TEST(detaching_an_export_being_sent_is_refused) {
    struct pair pair;
    begin(&pair, CHUNK, CAPACITY);
    assert_int_equal(pthread_create(&pair.thread, NULL, run_send, &pair), 0);
    char offer[16]; /* from now on it waits for an answer */
    assert_int_equal(recv(pair.sockets[1], offer, sizeof offer, MSG_WAITALL), sizeof offer);
    FAILS_SAYING(BUSY, "1 thread is still sending", gpumem_export_detach(pair.exported));
    shutdown(pair.sockets[1], SHUT_RDWR);
    pthread_join(pair.thread, NULL);
    FAILS(PEER, pair.status);
    OK(gpumem_export_detach(pair.exported));
    end(&pair);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define IMPORTERS 4
#define STEPS     12

struct importer {
    pthread_t threads[2];
    gpumem_export *exported;
    int sockets[2];
    atomic_int failed;
};

static void *serve(void *argument) {
    struct importer *self = argument;
    self->failed |= gpumem_export_send(self->exported, self->sockets[0], NULL) != GPUMEM_OK;
    while (!self->failed &&
           gpumem_export_answer(self->exported, self->sockets[0], NULL) == GPUMEM_OK)
        ;
    return NULL;
}

/* Asks until it has all. */
static void *follow_all(void *argument) {
    struct importer *self = argument;
    gpumem_buffer *import;
    if (gpumem_import_receive(device, self->sockets[1], CAPACITY, &import) != GPUMEM_OK) {
        self->failed = 1;
        return NULL;
    }
    while (!self->failed && gpumem_buffer_size(import) < STEPS * CHUNK)
        self->failed |= gpumem_import_update(import, self->sockets[1], NULL) != GPUMEM_OK;
    self->failed |= fill_now(import, 0, STEPS * CHUNK, 5, NULL) != GPUMEM_OK;
    self->failed |= gpumem_buffer_free(import, NULL) != GPUMEM_OK;
    close(self->sockets[1]);
    return NULL;
}

/* One export, which grows while threads send and answer. */
TEST(threads_follow_one_export) {
    struct importer importers[IMPORTERS];
    gpumem_buffer *buffer = NEW_BUFFER_WITH(resource, CHUNK, .capacity = 64 * MIB);
    gpumem_export *exported = NEW_EXPORT(buffer);
    for (size_t i = 0; i < IMPORTERS; i++) {
        struct importer *self = &importers[i];
        *self = (struct importer){.exported = exported};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, self->sockets), 0);
        assert_int_equal(pthread_create(&self->threads[0], NULL, serve, self), 0);
        assert_int_equal(pthread_create(&self->threads[1], NULL, follow_all, self), 0);
    }
    for (size_t chunks = 2; chunks <= STEPS; chunks++) {
        OK(gpumem_buffer_grow(buffer, chunks * CHUNK, NULL));
        OK(gpumem_export_update(exported));
    }
    for (size_t i = 0; i < IMPORTERS; i++) {
        pthread_join(importers[i].threads[0], NULL);
        pthread_join(importers[i].threads[1], NULL);
        assert_int_equal(importers[i].failed, 0);
        close(importers[i].sockets[0]);
    }
    DESTROY(exported, buffer);
}

CHILD(other) {
    return other_process(argv[1], atoi(argv[2]));
}
