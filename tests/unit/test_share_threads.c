/* One export, imported and freed by several threads at once, with and without a socket: nothing is
 * left at the end. */
#include "library_test.h"

#include <pthread.h>
#include <sys/socket.h>

EACH_TEST(open_device, close_device);

#define THREADS 4
#define ROUNDS  100

static const void *description;
static size_t description_bytes;
static int descriptor;

static gpumem_export *exported;

static void *send_again_and_again(void *argument) {
    const int *socket = argument;
    for (int round = 0; round < ROUNDS; round++)
        if (gpumem_export_send(exported, *socket, NULL) != GPUMEM_OK)
            return "send";
    return NULL;
}

static gpumem_status import(const int *socket, gpumem_buffer **imported) {
    if (socket)
        return gpumem_import_receive(device, *socket, NULL, imported);
    return gpumem_import_create(device, description, description_bytes, &descriptor, 1, NULL,
                                imported);
}

/* What went wrong, or NULL. */
static void *import_and_free(void *socket) {
    for (int round = 0; round < ROUNDS; round++) {
        gpumem_buffer *imported;
        unsigned char byte = 0;
        if (import(socket, &imported) != GPUMEM_OK)
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

static void start(pthread_t *thread, void *(*run)(void *), void *argument) {
    assert_int_equal(pthread_create(thread, NULL, run, argument), 0);
}

static void join(pthread_t thread) {
    void *wrong = NULL;
    pthread_join(thread, &wrong);
    if (wrong)
        fail_msg("a thread: %s", (const char *)wrong);
}

static void import_in_threads(int with_sockets) {
    pthread_t threads[THREADS], senders[THREADS];
    int sockets[THREADS][2];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[i]), 0);
        start(&threads[i], import_and_free, with_sockets ? &sockets[i][0] : NULL);
        if (with_sockets)
            start(&senders[i], send_again_and_again, &sockets[i][1]);
    }
    for (size_t i = 0; i < THREADS; i++) {
        join(threads[i]);
        if (with_sockets)
            join(senders[i]);
        close(sockets[i][0]);
        close(sockets[i][1]);
    }
}

static void check(int with_sockets) {
    gpumem_resource *resource = NEW_VIRTUAL();
    gpumem_buffer *buffer = NEW_BUFFER(resource, 2 * MIB);
    OK(gpumem_buffer_fill(buffer, 0, 2 * MIB, 0x5a, NULL));
    synchronize(NULL);
    exported = NEW_EXPORT(buffer);
    OK(export_description(exported, &description, &description_bytes));
    OK(export_descriptor(exported, 0, &descriptor));
    char *before = soft->state_dump();
    import_in_threads(with_sockets);
    OK(gpumem_device_trim(device, 1)); /* also the events that frees have used */
    SAME_STATE(before);
    gpumem_stats stats = device_stats();
    MEMBERS(stats, (imported_bytes, 0), (quarantined, 0), (allocations, 1), (mappings, 1),
            (chunks, 1), (reserved_bytes, 2 * MIB));
    DESTROY(exported, buffer, resource);
}

TEST_IS(threads_import_one_export_by_description, check(0));
TEST_IS(threads_receive_one_export_by_socket, check(1));
