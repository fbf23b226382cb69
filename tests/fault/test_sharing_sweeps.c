/*
 * Sweeps over sending and receiving: one thread sends, one receives, and whichever driver call of
 * either fails, both are told, and neither is left with anything.
 */
#include "library_sweeps.h"

#include <pthread.h>
#include <sys/socket.h>

ALL_TESTS(begin_sweeps, end_sweeps);

/* What the other thread does at its end of the socket; 0 when it has succeeded. */
typedef int (*side_fn)(int socket);

static gpumem_resource *memory, *pool;
static gpumem_buffer *buffer;
static gpumem_export *exported;

static gpumem_share_options share = {.size = sizeof share, .timeout_ms = 20000};

static int send_export(int socket) {
    return (int)gpumem_export_send(exported, socket, &share);
}

/* What was received is given back at once: that cannot fail. */
static int receive_import(int socket) {
    gpumem_buffer *imported = NULL;
    int result = (int)gpumem_import_receive(device, socket, &share, &imported);
    assert_true((result == 0) == (imported != NULL));
    OK(gpumem_buffer_free(imported, NULL));
    return result;
}

static int send_pool(int socket) {
    return (int)gpumem_pool_send(pool, socket, &share);
}

static int receive_pool(int socket) {
    gpumem_resource *mapped = NULL;
    int result = (int)gpumem_pool_receive(device, socket, &share, &mapped);
    assert_true((result == 0) == (mapped != NULL));
    OK(gpumem_resource_destroy(mapped));
    return result;
}

struct other {
    side_fn side;
    int socket;
    int result;
};

static void *run_other(void *user) {
    struct other *other = user;
    other->result = other->side(other->socket);
    close(other->socket); /* so that nobody waits for it */
    return NULL;
}

/* `mine` in this thread, `others` in another. */
static int talk(side_fn mine, side_fn others) {
    int ends[2];
    pthread_t thread;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    struct other other = {.side = others, .socket = ends[1]};
    assert_int_equal(pthread_create(&thread, NULL, run_other, &other), 0);
    int result = mine(ends[0]);
    close(ends[0]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return result ? result : other.result;
}

static int send_it(void *user) {
    return talk(send_export, receive_import);
}

static int receive_it(void *user) {
    return talk(receive_import, send_export);
}

static int send_the_pool(void *user) {
    return talk(send_pool, receive_pool);
}

static int receive_the_pool(void *user) {
    return talk(receive_pool, send_pool);
}

TEST(a_failed_buffer_transfer_is_an_error_on_both_sides) {
    memory = NEW_VIRTUAL(.maximum_chunk_bytes = 2 * MIB, .exact_growth = 1);
    buffer = NEW_BUFFER(memory, 6 * MIB);
    exported = NEW_EXPORT(buffer);
    sweep_act("send a buffer", send_it, NULL, NULL);
    sweep_act("receive a buffer", receive_it, NULL, NULL);
    DESTROY(exported, buffer);
    settle(NULL);
    OK(gpumem_resource_destroy(memory));
}

TEST(a_failed_pool_transfer_is_an_error_on_both_sides) {
    pool = NEW_POOL(.ipc = 1);
    sweep_act("send a pool", send_the_pool, NULL, NULL);
    sweep_act("receive a pool", receive_the_pool, NULL, NULL);
    OK(gpumem_resource_destroy(pool));
}
