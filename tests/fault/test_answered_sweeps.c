/*
 * Whole or nothing, for what needs another process at the other end of a socket: receiving an
 * event, asking for growth, and answering. Each driver call of this process fails; the other one
 * does as it is told over a second socket, and says when it is done.
 */
#include "library_sweeps.h"
#include "other_process.h"

#define CHUNK   (2 * MIB)
#define PATIENT GPUMEM_SHARE_OPTIONS(.timeout_ms = 20000)

struct side {
    gpumem_resource *resource;
    gpumem_buffer *buffer;
    gpumem_export *exported;
    int data, control;
};

static struct side here;

/* ---- Both processes -------------------------------------------------------------------------- */

static gpumem_status make_resource(struct side *side) {
    return gpumem_virtual_resource_create(
        device, GPUMEM_VIRTUAL_OPTIONS(.maximum_chunk_bytes = CHUNK, .exact_growth = 1),
        &side->resource);
}

static gpumem_status export_a_chunk(struct side *side) {
    side->buffer = NULL;
    side->exported = NULL;
    gpumem_status status = gpumem_buffer_allocate(
        side->resource, CHUNK, GPUMEM_BUFFER_OPTIONS(.capacity = 8 * CHUNK), &side->buffer);
    return status == GPUMEM_OK ? gpumem_export_create(side->buffer, &side->exported) : status;
}

static void end_export(struct side *side) {
    if (side->exported)
        OK(gpumem_export_destroy(side->exported));
    OK(gpumem_buffer_free(side->buffer, NULL));
}

static gpumem_status receive(int socket, gpumem_buffer **buffer) {
    *buffer = NULL;
    return gpumem_import_receive(
        device, socket, GPUMEM_SHARE_OPTIONS(.capacity = 8 * CHUNK, .timeout_ms = 20000), buffer);
}

/* A command, with the connection that it is about: each exchange has its own, since one that failed
 * in the middle leaves a connection of no more use. -1: none. */
static int send_command(int control, char what, int connection) {
    char room[CMSG_SPACE(sizeof connection)] = {0};
    struct iovec text = {&what, 1};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
    if (connection >= 0) {
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                 .cmsg_type = SCM_RIGHTS,
                                 .cmsg_len = CMSG_LEN(sizeof connection)};
        memcpy(CMSG_DATA(head), &connection, sizeof connection);
    }
    return sendmsg(control, &message, MSG_NOSIGNAL) == 1;
}

static int hear_command(int control, char *what, int *connection) {
    char room[CMSG_SPACE(sizeof *connection)];
    struct iovec text = {what, 1};
    struct msghdr message = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(control, &message, MSG_CMSG_CLOEXEC) != 1)
        return 0;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head)
        memcpy(connection, CMSG_DATA(head), sizeof *connection);
    return head != NULL;
}

/* ---- The other process ----------------------------------------------------------------------- */

static void send_an_event(struct side *side) {
    CUevent event;
    OK(gpumem_event_create(device, GPUMEM_EVENT_OPTIONS(.interprocess = 1), &event));
    gpumem_export *exported = MADE(gpumem_export *, gpumem_export_create_event, device, event);
    (void)!gpumem_export_send(exported, side->data, PATIENT);
    other_hear(side->control); /* it is used no more */
    DESTROY(exported, event);
}

static void own_what_grows(struct side *side) {
    OK(export_a_chunk(side));
    (void)!gpumem_export_send(side->exported, side->data, PATIENT);
    OK(gpumem_buffer_grow(side->buffer, 3 * CHUNK, NULL));
    (void)!gpumem_export_update(side->exported);
    other_hear(side->control); /* it asks, or cannot */
    (void)!gpumem_export_answer(side->exported, side->data, PATIENT);
    end_export(side);
}

static void follow_what_grows(struct side *side) {
    gpumem_buffer *imported;
    gpumem_status status = receive(side->data, &imported);
    if (other_hear(side->control) && status == GPUMEM_OK)
        (void)!gpumem_import_update(imported, side->data, PATIENT);
    OK(gpumem_buffer_free(imported, NULL));
}

static int other_process(int control) {
    struct side there = {.control = control};
    char what;
    if (open_device(NULL) != 0 || make_resource(&there) != GPUMEM_OK)
        return 1;
    while (hear_command(control, &what, &there.data)) {
        if (what == 'e')
            send_an_event(&there);
        else if (what == 'o')
            own_what_grows(&there);
        else
            follow_what_grows(&there);
        close(there.data);
        if (!other_say(control))
            return 2;
    }
    OK(gpumem_resource_destroy(there.resource));
    return close_device(NULL) != 0;
}

/* ---- This one -------------------------------------------------------------------------------- */

static void begin_exchange(char what) {
    int connection[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, connection), 0);
    assert_true(send_command(here.control, what, connection[1]));
    close(connection[1]);
    here.data = connection[0];
}

/* The other one does not wait for what will not come. */
static void end_if_failed(gpumem_status status) {
    if (status != GPUMEM_OK)
        shutdown(here.data, SHUT_RDWR);
}

/* The other one goes on to its next step. */
static void go_on(gpumem_status status) {
    end_if_failed(status);
    assert_true(other_say(here.control));
}

static void end_exchange(gpumem_status status) {
    end_if_failed(status);
    assert_true(other_hear(here.control));
    close(here.data);
}

static CUevent received;

static int receive_event(void *user) {
    received = NULL;
    begin_exchange('e');
    gpumem_status status = gpumem_import_receive_event(device, here.data, PATIENT, &received);
    go_on(status);
    end_exchange(status);
    return (int)status;
}

static void end_event(void *user) {
    if (received)
        OK(gpumem_event_destroy(device, received));
    settle(user);
}

static int receive_and_update(void *user) {
    gpumem_buffer *imported;
    begin_exchange('o');
    gpumem_status status = receive(here.data, &imported);
    go_on(status);
    AND_THEN(status, gpumem_import_update(imported, here.data, PATIENT));
    end_exchange(status);
    if (status == GPUMEM_OK)
        assert_int_equal(gpumem_buffer_size(imported), 3 * CHUNK);
    gpumem_status freed = gpumem_buffer_free(imported, NULL);
    return (int)(status == GPUMEM_OK ? freed : status);
}

static int send_and_answer(void *user) {
    gpumem_status status = export_a_chunk(&here);
    if (status == GPUMEM_OK) {
        begin_exchange('f');
        status = gpumem_export_send(here.exported, here.data, PATIENT);
        AND_THEN(status, gpumem_buffer_grow(here.buffer, 3 * CHUNK, NULL));
        go_on(status);
        gpumem_status answered = gpumem_export_answer(here.exported, here.data, PATIENT);
        status = status == GPUMEM_OK ? answered : status;
        end_exchange(status);
    }
    if (here.exported)
        (void)gpumem_export_destroy(here.exported);
    gpumem_status freed = gpumem_buffer_free(here.buffer, NULL);
    return (int)(status == GPUMEM_OK ? freed : status);
}

TEST(failed_receives_requests_and_answers_change_nothing) {
    sweep_act("receive an event", receive_event, end_event, NULL);
    sweep_act("receive memory and its growth", receive_and_update, NULL, NULL);
    sweep_act("send memory and answer", send_and_answer, NULL, NULL);
}

CHILD(other) {
    return other_process(atoi(argv[2]));
}

static pid_t exchanger;

static int begin_file(void **state) {
    exchanger = other_start("exchange", SOCK_SEQPACKET, &here.control);
    return begin_sweeps(state) == 0 && make_resource(&here) == GPUMEM_OK ? 0 : -1;
}

static int end_file(void **state) {
    (void)gpumem_resource_destroy(here.resource);
    (void)end_sweeps(state);
    shutdown(here.control, SHUT_WR);
    return other_end(exchanger, here.control);
}

ALL_TESTS(begin_file, end_file);
