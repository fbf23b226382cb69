/* A timeout is for the whole exchange, in both directions: who gives or takes little at a time, and
 * always just before a wait would end, does not make it longer. */
#include "base/socket.h"
#include "library_test.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define TIMEOUT_MS 60

/* The other side: it sends or takes a few bytes in each interval until told to stop, or until all
 * is done, which takes far longer than the timeout. */
struct dripper {
    int socket;
    int stop[2]; /* a pipe whose end closes */
    const unsigned char *data;
    size_t bytes, each;
    int interval_ms;
    atomic_int finished;
    pthread_t thread;
};

/* Whether an interval has passed without a word to stop. */
static int interval(const struct dripper *dripper) {
    struct pollfd entry = {.fd = dripper->stop[0], .events = POLLIN};
    return poll(&entry, 1, dripper->interval_ms) == 0;
}

static void *send_drops(void *argument) {
    struct dripper *dripper = argument;
    for (size_t at = 0; at < dripper->bytes; at += dripper->each) {
        size_t left = dripper->bytes - at, piece = left < dripper->each ? left : dripper->each;
        if (send(dripper->socket, dripper->data + at, piece, MSG_NOSIGNAL) != (ssize_t)piece ||
            !interval(dripper))
            return NULL;
    }
    atomic_store(&dripper->finished, 1);
    return NULL;
}

static void *take_drops(void *argument) {
    struct dripper *dripper = argument;
    unsigned char bytes[4096];
    for (size_t at = 0; at < dripper->bytes; at += dripper->each)
        if (recv(dripper->socket, bytes, dripper->each, 0) <= 0 || !interval(dripper))
            return NULL;
    atomic_store(&dripper->finished, 1);
    return NULL;
}

static void start(struct dripper *dripper, void *(*run)(void *)) {
    assert_int_equal(pipe(dripper->stop), 0);
    assert_int_equal(pthread_create(&dripper->thread, NULL, run, dripper), 0);
}

/* The call has come back: had the other side its way to the end? */
static void stop(struct dripper *dripper, const int sockets[2]) {
    int finished = atomic_load(&dripper->finished);
    close(dripper->stop[1]);
    shutdown(sockets[0], SHUT_RDWR);
    pthread_join(dripper->thread, NULL);
    close(dripper->stop[0]);
    close(sockets[0]);
    close(sockets[1]);
    if (finished)
        fail_msg("the call went on until the other side had finished");
}

static gpumem_buffer *buffer;
static gpumem_resource *resource;
static gpumem_export *exported;

static int setup(void **state) {
    if (open_device(state) != 0)
        return -1;
    resource = NEW_VIRTUAL();
    buffer = NEW_BUFFER(resource, 2 * MIB);
    exported = NEW_EXPORT(buffer);
    return 0;
}

static int teardown(void **state) {
    DESTROY(exported, buffer, resource);
    return close_device(state);
}

EACH_TEST(setup, teardown);

struct offer {
    char magic[8];
    uint32_t version, description_bytes;
};

TEST(a_slow_exporter_cannot_exceed_the_importers_timeout) {
    int sockets[2];
    gpumem_buffer *none = buffer;
    struct {
        struct offer offer;
        unsigned char description[808]; /* of 90 handles */
    } message = {{{'g', 'p', 'u', 'm', 'e', 'm', '-', 'o'}, 2, 808}, {0}};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    struct dripper dripper = {.socket = sockets[1],
                              .data = (void *)&message,
                              .bytes = sizeof message,
                              .each = 1,
                              .interval_ms = 15};
    start(&dripper, send_drops);
    FAILS_SAYING(PEER, "within 60 ms",
                 gpumem_import_receive(device, sockets[0],
                                       GPUMEM_SHARE_OPTIONS(.timeout_ms = TIMEOUT_MS), &none));
    stop(&dripper, sockets);
    assert_ptr_equal(none, buffer);
}

/* Each step takes its time, none of them too much. The batch of descriptors never is whole. */
TEST(many_short_waits_count_against_one_timeout) {
    int sockets[2];
    gpumem_buffer *none = buffer;
    const void *description;
    size_t bytes;
    static unsigned char message[16 + 1024];
    OK(export_description(exported, &description, &bytes));
    struct offer offer = {{'g', 'p', 'u', 'm', 'e', 'm', '-', 'o'}, 2, (uint32_t)bytes};
    memcpy(message, &offer, sizeof offer);
    memcpy(message + sizeof offer, description, bytes);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_int_equal(send(sockets[1], message, sizeof offer + bytes, 0), sizeof offer + bytes);
    struct dripper dripper = {.socket = sockets[1],
                              .data = (const unsigned char *)"gpumem-b\0\0\0\0\1\0\0",
                              .bytes = 15,
                              .each = 1,
                              .interval_ms = 40};
    start(&dripper, send_drops);
    FAILS_SAYING(PEER, "within 60 ms",
                 gpumem_import_receive(device, sockets[0],
                                       GPUMEM_SHARE_OPTIONS(.timeout_ms = TIMEOUT_MS), &none));
    stop(&dripper, sockets);
    assert_ptr_equal(none, buffer);
}

TEST(a_slow_importer_cannot_exceed_the_exporters_timeout) {
    int sockets[2];
    struct {
        char magic[8];
        uint32_t verdict;
        int32_t status;
        char message[240];
    } answer = {{'g', 'p', 'u', 'm', 'e', 'm', '-', 'a'}, 3, 77, "no"};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    struct dripper dripper = {.socket = sockets[1],
                              .data = (void *)&answer,
                              .bytes = sizeof answer,
                              .each = 1,
                              .interval_ms = 15};
    start(&dripper, send_drops);
    FAILS_SAYING(
        PEER, "within 60 ms",
        gpumem_export_send(exported, sockets[0], GPUMEM_SHARE_OPTIONS(.timeout_ms = TIMEOUT_MS)));
    stop(&dripper, sockets);
}

/* A reader that always makes a little room, beneath what an export sends. */
TEST_WITH(a_slow_reader_cannot_exceed_the_senders_timeout, NULL, NULL) {
    int sockets[2], small = 4096;
    static unsigned char much[4 << 20];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_int_equal(setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    struct dripper dripper = {
        .socket = sockets[1], .bytes = sizeof much, .each = 4096, .interval_ms = 15};
    start(&dripper, take_drops);
    struct gm_deadline deadline = gm_deadline_start(TIMEOUT_MS);
    FAILS_SAYING(PEER, "within 60 ms", gm_socket_send(sockets[0], much, sizeof much, &deadline));
    stop(&dripper, sockets);
}

/* What is there already is not read after the end, or one byte at a time would never end. */
TEST_WITH(data_available_after_the_deadline_is_not_read, NULL, NULL) {
    int sockets[2];
    char byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    assert_int_equal(send(sockets[1], "x", 1, 0), 1);
    struct gm_deadline passed = {.timeout_ms = 1, .until_ms = 0};
    FAILS(PEER, gm_socket_receive(sockets[0], &byte, 1, &passed));
    /* A verdict that needs no wait can still be told; without a deadline all is read. */
    OK(gm_socket_send(sockets[1], "y", 1, &passed));
    struct gm_deadline none = gm_deadline_start(-1);
    OK(gm_socket_receive(sockets[0], &byte, 1, &none));
    assert_int_equal(byte, 'x');
    close(sockets[0]);
    close(sockets[1]);
}
