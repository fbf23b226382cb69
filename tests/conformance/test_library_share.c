/*
 * The library's sharing on any driver: by path, with growth, a killed importer, the end of an
 * export, memory of pools, and events that order two processes.
 */
#include "library_processes.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CHUNK (2 * MIB)

/* Its first and last byte: what is said about the rest by the copies of other tests. */
static bool holds(gpumem_buffer *buffer, unsigned char value) {
    unsigned char bytes[2] = {0};
    size_t last = gpumem_buffer_size(buffer) - 1;
    OK(read_now(buffer, 0, &bytes[0], 1, NULL));
    OK(read_now(buffer, last, &bytes[1], 1, NULL));
    return bytes[0] == value && bytes[1] == value;
}

static void fill(gpumem_buffer *buffer, unsigned char value) {
    OK(fill_now(buffer, 0, gpumem_buffer_size(buffer), value, NULL));
}

static void say(int connection) {
    assert_int_equal(send(connection, "x", 1, MSG_NOSIGNAL), 1);
}

static void hear(int connection) {
    char byte;
    assert_int_equal(recv(connection, &byte, 1, 0), 1);
}

static void name_place(char name[64]) {
    snprintf(name, 64, "@gpumem-conformance-%d", (int)getpid());
}

/* ---- Growth ---------------------------------------------------------------------------------- */

/* argv[1]: where to connect. Follows each time it is told, until the owner is gone. */
CHILD_THAT_ENDS(follower) {
    int connection = -1;
    char byte;
    gpumem_buffer *buffer;
    assert_int_equal(argc, 2);
    open_library();
    OK(gpumem_connect(argv[1], NULL, &connection, NULL));
    OK(gpumem_import_receive(device, connection, GPUMEM_SHARE_OPTIONS(.capacity = 256 * MIB),
                             &buffer));
    CUdeviceptr address = gpumem_buffer_pointer(buffer);
    while (recv(connection, &byte, 1, 0) == 1) {
        if (byte == 'u')
            OK(gpumem_import_update(buffer, connection, NULL));
        if (byte == 'd')
            FAILS(PEER, gpumem_import_update(buffer, connection, NULL));
        assert_int_equal(gpumem_buffer_pointer(buffer), address);
        assert_true(holds(buffer, byte == 'd' ? 0x32 : 0x31));
        fill(buffer, 0x32);
        say(connection);
    }
    OK(gpumem_buffer_free(buffer, NULL));
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_library_get_stats(library, &stats));
    assert_int_equal(stats.quarantined, 0);
    close_library();
}

static void tell(int connection, gpumem_export *exported, gpumem_buffer *buffer, char word) {
    fill(buffer, 0x31);
    assert_int_equal(send(connection, &word, 1, MSG_NOSIGNAL), 1);
    if (word == 'u')
        OK(gpumem_export_answer(exported, connection, NULL));
    hear(connection);
    assert_true(holds(buffer, 0x32));
}

struct owner {
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    gpumem_export *exported;
    gpumem_listener *listener;
    int pids[2], connections[2];
};

static void begin_sharing(struct owner *owner) {
    char place[64];
    name_place(place);
    owner->resource = NEW_VIRTUAL(.maximum_chunk_bytes = CHUNK, .exact_growth = 1);
    owner->buffer = NEW_BUFFER_WITH(owner->resource, CHUNK, .capacity = 64 * MIB);
    OK(gpumem_export_create(owner->buffer, &owner->exported));
    OK(gpumem_listen(place, NULL, &owner->listener));
    for (int i = 0; i < 2; i++) {
        gpumem_connection_peer peer = {.size = sizeof peer};
        owner->pids[i] = start_child("follower", place, NULL);
        OK(gpumem_accept(owner->listener, NULL, &owner->connections[i], &peer));
        assert_int_equal(peer.pid, owner->pids[i]);
        OK(gpumem_export_send(owner->exported, owner->connections[i], NULL));
    }
}

TEST(importers_follow_growth_after_one_is_killed) {
    struct owner o;
    uint64_t free_before, free_after, total;
    char reason[192];
    open_library();
    if (!has(GPUMEM_CAPABILITY_VIRTUAL_MEMORY, reason) ||
        !has(GPUMEM_CAPABILITY_HANDLE_POSIX_FD, reason)) {
        SKIP("%s", reason);
    }
    OK(gpumem_device_get_memory(device, &free_before, &total));
    begin_sharing(&o);
    for (size_t chunks = 2; chunks <= 4; chunks++) {
        OK(gpumem_buffer_grow(o.buffer, chunks * CHUNK, NULL));
        OK(gpumem_export_update(o.exported));
        for (int i = 0; i < 2; i++)
            tell(o.connections[i], o.exported, o.buffer, 'u');
    }
    assert_int_equal(kill(o.pids[0], SIGKILL), 0);
    assert_int_equal(wait_child(o.pids[0]), 128 + SIGKILL);
    FAILS(PEER, gpumem_export_answer(o.exported, o.connections[0], NULL));
    OK(gpumem_buffer_grow(o.buffer, 5 * CHUNK, NULL));
    OK(gpumem_export_update(o.exported));
    tell(o.connections[1], o.exported, o.buffer, 'u');
    /* Detached, the owner shrinks, and the other keeps all. */
    OK(gpumem_export_detach(o.exported));
    OK(gpumem_buffer_shrink(o.buffer, CHUNK, NULL));
    assert_int_equal(send(o.connections[1], "d", 1, 0), 1);
    FAILS(INVALID_ARGUMENT, gpumem_export_answer(o.exported, o.connections[1], NULL));
    hear(o.connections[1]);
    assert_true(holds(o.buffer, 0x32));
    close(o.connections[0]);
    close(o.connections[1]);
    assert_int_equal(wait_child(o.pids[1]), 0);
    OK(gpumem_listener_close(o.listener));
    DESTROY(o.exported, o.buffer, o.resource);
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_device_get_memory(device, &free_after, &total));
    /* Of hardware others may use it, and a context grows with what it runs. */
    if (soft)
        assert_int_equal(free_after, free_before);
    gpumem_stats stats = {.size = sizeof stats};
    OK(gpumem_device_get_stats(device, &stats));
    assert_true(!stats.committed_bytes && !stats.exports && !stats.quarantined);
}

/* ---- Pools and events ------------------------------------------------------------------------ */

/* argv[1]: where to connect. The buffer is written behind the event, which is not there yet. */
CHILD_THAT_ENDS(reader) {
    int connection = -1;
    bool done = true;
    gpumem_buffer *buffer, *twin;
    CUevent event;
    CUstream stream;
    unsigned char *byte = malloc(1);
    assert_int_equal(argc, 2);
    open_library();
    OK(gpumem_connect(argv[1], NULL, &connection, NULL));
    OK(gpumem_import_receive(device, connection, NULL, &buffer));
    OK(gpumem_import_receive(device, connection, NULL, &twin));
    assert_int_equal(gpumem_buffer_pointer(buffer), gpumem_buffer_pointer(twin));
    OK(gpumem_buffer_free(buffer, NULL));
    OK(gpumem_device_trim(device, 1));
    OK(gpumem_import_receive_event(device, connection, NULL, &event));
    OK(gpumem_event_query(device, event, &done));
    assert_int_equal(done, 0);
    OK(gpumem_stream_create(device, NULL, &stream));
    OK(gpumem_stream_wait_event(device, stream, event));
    say(connection); /* now the owner opens its gate */
    OK(gpumem_stream_synchronize(device, stream));
    OK(read_now(twin, gpumem_buffer_size(twin) - 1, byte, 1, stream));
    assert_int_equal(*byte, 0x44);
    OK(gpumem_buffer_free(twin, stream));
    OK(gpumem_device_trim(device, 1));
    DESTROY(event, stream);
    close_library();
    free(byte);
}

static void order_two_processes(gpumem_resource *pool) {
    gpumem_export *of_buffer, *of_event;
    gpumem_listener *listener;
    struct gate gate;
    CUevent event;
    CUstream stream;
    char place[64];
    int connection = -1;
    name_place(place);
    gpumem_buffer *buffer = NEW_BUFFER(pool, 3 * MIB);
    fill(buffer, 0x43);
    OK(gpumem_event_create(device, GPUMEM_EVENT_OPTIONS(.interprocess = 1), &event));
    OK(gpumem_stream_create(device, NULL, &stream));
    OK(gpumem_export_create(buffer, &of_buffer));
    OK(gpumem_export_create_event(device, event, &of_event));
    FAILS(NOT_SUPPORTED, gpumem_export_detach(of_buffer));
    gate_make(&gate);
    gate_hold(&gate, stream);
    OK(gpumem_buffer_fill(buffer, 0, 3 * MIB, 0x44, stream));
    OK(gpumem_event_record(device, event, stream));
    OK(gpumem_listen(place, NULL, &listener));
    int pid = start_child("reader", place, NULL);
    OK(gpumem_accept(listener, NULL, &connection, NULL));
    OK(gpumem_export_send(of_buffer, connection, NULL));
    OK(gpumem_export_send(of_buffer, connection, NULL));
    OK(gpumem_export_send(of_event, connection, NULL));
    hear(connection);
    gate_release(&gate);
    assert_int_equal(wait_child(pid), 0);
    OK(gpumem_stream_synchronize(device, stream));
    close(connection);
    gate_free(&gate);
    OK(gpumem_listener_close(listener));
    DESTROY(of_event, of_buffer, event);
    OK(gpumem_buffer_free(buffer, NULL)); /* before the stream that it names */
    OK(gpumem_stream_destroy(device, stream));
    OK(gpumem_stream_synchronize(device, NULL));
    OK(gpumem_resource_destroy(pool));
}

static void share_pool(bool host, gpumem_capability capability) {
    char reason[192];
    gpumem_resource *pool = NULL;
    open_library();
    bool there = has(capability, reason);
    if (there) {
        OK(host ? gpumem_pinned_resource_create(
                      device, GPUMEM_PINNED_OPTIONS(.method = GPUMEM_PINNED_POOL, .ipc = 1), &pool)
                : gpumem_device_pool_resource_create(device, GPUMEM_DEVICE_POOL_OPTIONS(.ipc = 1),
                                                     &pool));
        order_two_processes(pool);
    }
    close_library();
    if (!there)
        SKIP("no such pool can be shared: %s", reason);
}

TEST(a_device_pool_and_an_event_are_shared_between_processes) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
    share_pool(false, GPUMEM_CAPABILITY_DEVICE_POOL_POSIX_FD);
}

TEST(a_host_pool_and_an_event_are_shared_between_processes) {
    NEEDS_ATTRIBUTE(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED);
    share_pool(true, GPUMEM_CAPABILITY_HOST_NUMA_POOL_POSIX_FD);
}
