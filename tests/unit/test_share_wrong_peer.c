/*
 * A process that has seen a description sends it with descriptors of its own. That must never
 * answer for the exporter's memory, whoever was first. The other processes are this program again,
 * by exec; all sockets are pairs that the importer made, so that it made their connections, too.
 */
#include "other_process.h"
#include "share/identity.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

EACH_TEST(open_device, close_device);

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76 /* Linux 6.5 */
#endif

#define EXPORTERS 0x11
#define IMPOSTORS 0xee

struct offer {
    char magic[8];
    uint32_t version, description_bytes;
};

struct batch {
    char magic[8];
    uint32_t first, count;
};

struct answer {
    char magic[8];
    uint32_t verdict;
    int32_t status;
    char message[240];
};

static gpumem_resource *resource;
static gpumem_buffer *buffer;
static gpumem_export *exported;

/* 0, or -1: also for processes in which no assertion works. */
static int make_export(unsigned char value) {
    return gpumem_virtual_resource_create(device, NULL, &resource) == GPUMEM_OK &&
                   gpumem_buffer_allocate(resource, 2 * MIB, NULL, &buffer) == GPUMEM_OK &&
                   gpumem_buffer_fill(buffer, 0, 2 * MIB, value, NULL) == GPUMEM_OK &&
                   gpumem_stream_synchronize(device, NULL) == GPUMEM_OK &&
                   gpumem_export_create(buffer, &exported) == GPUMEM_OK
               ? 0
               : -1;
}

static void drop_export(void) {
    DESTROY(exported, buffer, resource);
}

/* ---- The other processes --------------------------------------------------------------------- */

struct description {
    uint32_t bytes;
    unsigned char data[512];
};

static int offer_description(int socket, const struct description *d) {
    struct offer offer = {{'g', 'p', 'u', 'm', 'e', 'm', '-', 'o'}, 2, d->bytes};
    return send(socket, &offer, sizeof offer, 0) == sizeof offer &&
           send(socket, d->data, d->bytes, 0) == (ssize_t)d->bytes;
}

static int send_own_descriptor(int socket) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {{0}};
    struct batch batch = {{'g', 'p', 'u', 'm', 'e', 'm', '-', 'b'}, 0, 1};
    struct iovec part = {.iov_base = &batch, .iov_len = sizeof batch};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.bytes};
    int fd = -1;
    if (export_descriptor(exported, 0, &fd) != GPUMEM_OK)
        return 0;
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    return sendmsg(socket, &message, 0) == sizeof batch;
}

static int read_answer(int socket, uint32_t *verdict) {
    struct answer answer;
    int whole = recv(socket, &answer, sizeof answer, MSG_WAITALL) == sizeof answer;
    *verdict = answer.verdict;
    return whole;
}

static int lie(int socket, const struct description *d) {
    uint32_t verdict;
    if (!offer_description(socket, d) || !read_answer(socket, &verdict))
        return 0;
    if (verdict != 1) /* it is believed to be there already */
        return verdict == 2;
    return send_own_descriptor(socket) && read_answer(socket, &verdict) && verdict == 2;
}

/* It does not wait to be asked for descriptors, and tells when all is sent. */
static int lie_ahead(int commands, int socket, const struct description *d) {
    uint32_t verdict;
    return offer_description(socket, d) && send_own_descriptor(socket) &&
           send(commands, "!", 1, 0) == 1 && read_answer(socket, &verdict) && verdict == 1 &&
           read_answer(socket, &verdict) && verdict == 2;
}

/* Obeys one letter at a time: d description, s send, l lie, a lie ahead, q quit. */
static int other_process(unsigned char value, int commands, int socket) {
    struct description own = {0}, seen = {0};
    const void *data;
    size_t bytes;
    char letter;
    if (open_device(NULL) != 0 || make_export(value) != 0 ||
        export_description(exported, &data, &bytes) != GPUMEM_OK || bytes > sizeof own.data)
        return 1;
    own.bytes = (uint32_t)bytes;
    memcpy(own.data, data, bytes);
    while (recv(commands, &letter, 1, 0) == 1) {
        int done = 1;
        if (letter == 'd')
            done = send(commands, &own, sizeof own, 0) == sizeof own;
        else if (letter == 'l' || letter == 'a')
            done = recv(commands, &seen, sizeof seen, MSG_WAITALL) == sizeof seen &&
                   (letter == 'l' ? lie(socket, &seen) : lie_ahead(commands, socket, &seen));
        else if (letter == 's')
            done = gpumem_export_send(exported, socket, NULL) == GPUMEM_OK;
        else
            return 0;
        if (!done)
            return letter;
    }
    return 2;
}

/* ---- The importer ---------------------------------------------------------------------------- */

struct process {
    pid_t pid;
    int commands, socket;
};

static struct process start(const char *value, int type) {
    int commands[2], sockets[2];
    char first[12], second[12];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, commands), 0);
    assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, sockets), 0);
    int theirs = dup(commands[1]), other = dup(sockets[1]);
    snprintf(first, sizeof first, "%d", theirs);
    snprintf(second, sizeof second, "%d", other);
    struct process process = {fork(), commands[0], sockets[0]};
    if (process.pid == 0) {
        execl("/proc/self/exe", "run", test_file(), "--child", "other", value, first, second,
              (char *)NULL);
        _exit(99);
    }
    close(theirs);
    close(other);
    close(commands[1]);
    close(sockets[1]);
    return process;
}

static void command(const struct process *process, char letter) {
    assert_int_equal(send(process->commands, &letter, 1, MSG_NOSIGNAL), 1);
}

static void end(const struct process *process) {
    int status = 0;
    command(process, 'q');
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(process->commands);
    close(process->socket);
}

static struct description ask_description(const struct process *process) {
    struct description d;
    command(process, 'd');
    assert_int_equal(recv(process->commands, &d, sizeof d, MSG_WAITALL), sizeof d);
    return d;
}

static int content(gpumem_buffer *of) {
    unsigned char ends[2];
    OK(gpumem_buffer_read(of, 0, &ends[0], 1, NULL));
    OK(gpumem_buffer_read(of, 2 * MIB - 1, &ends[1], 1, NULL));
    synchronize(NULL);
    assert_int_equal(ends[0], ends[1]);
    return ends[0];
}

static gpumem_buffer *receive(const struct process *from) {
    gpumem_buffer *received;
    OK(gpumem_import_receive(device, from->socket, NULL, &received));
    return received;
}

static gpumem_buffer *receive_honest(const struct process *from) {
    command(from, 's');
    return receive(from);
}

static gpumem_buffer *receive_lie(const struct process *from, const struct description *d,
                                  char how) {
    char ready;
    command(from, how);
    assert_int_equal(send(from->commands, d, sizeof *d, 0), sizeof *d);
    if (how == 'a')
        assert_int_equal(recv(from->commands, &ready, 1, 0), 1);
    return receive(from);
}

static void check_all_gone(void) {
    OK(gpumem_device_trim(device, 1));
    MEMBERS(device_stats(), (imported_bytes, 0), (mappings, 0));
}

TEST(an_impostor_that_sends_first_gets_no_shared_import) {
    struct process exporter = start("17", SOCK_STREAM), impostor = start("238", SOCK_STREAM);
    struct description seen = ask_description(&exporter);
    gpumem_buffer *lied = receive_lie(&impostor, &seen, 'l');
    assert_int_equal(content(lied), IMPOSTORS);
    gpumem_buffer *honest = receive_honest(&exporter);
    assert_int_equal(content(honest), EXPORTERS);
    /* Of one process an export is mapped once. */
    uint64_t maps = soft->call_count("cuMemMap");
    gpumem_buffer *again = receive_honest(&exporter),
                  *lied_again = receive_lie(&impostor, &seen, 'l');
    assert_int_equal(soft->call_count("cuMemMap"), maps);
    assert_int_equal(gpumem_buffer_pointer(again), gpumem_buffer_pointer(honest));
    assert_int_equal(gpumem_buffer_pointer(lied_again), gpumem_buffer_pointer(lied));
    DESTROY(lied, lied_again);
    assert_int_equal(content(again), EXPORTERS);
    DESTROY(honest, again);
    end(&exporter);
    end(&impostor);
    check_all_gone();
}

TEST(an_impostor_that_sends_later_gets_no_shared_import) {
    struct process exporter = start("17", SOCK_SEQPACKET), impostor = start("238", SOCK_SEQPACKET);
    struct description seen = ask_description(&exporter);
    gpumem_buffer *honest = receive_honest(&exporter);
    gpumem_buffer *lied = receive_lie(&impostor, &seen, 'l');
    assert_int_equal(content(lied), IMPOSTORS);
    assert_int_equal(content(honest), EXPORTERS);
    OK(gpumem_buffer_free(honest, NULL));
    honest = receive_honest(&exporter);
    assert_int_equal(content(honest), EXPORTERS);
    DESTROY(honest, lied);
    end(&exporter);
    end(&impostor);
    check_all_gone();
}

/* Who does not wait to be asked is not written down; it is nobody, also to itself. */
TEST(imports_from_an_unidentified_sender_are_never_shared) {
    struct process exporter = start("17", SOCK_STREAM), impostor = start("238", SOCK_STREAM);
    struct description seen = ask_description(&exporter);
    gpumem_buffer *first = receive_lie(&impostor, &seen, 'a');
    gpumem_buffer *second = receive_lie(&impostor, &seen, 'a');
    assert_int_not_equal(gpumem_buffer_pointer(first), gpumem_buffer_pointer(second));
    gpumem_buffer *honest = receive_honest(&exporter);
    assert_int_equal(content(honest), EXPORTERS);
    OK(gpumem_buffer_free(first, NULL));
    assert_int_equal(content(second), IMPOSTORS);
    DESTROY(second, honest);
    end(&exporter);
    end(&impostor);
    check_all_gone();
}

/* The socket is the caller's, with its options. */
TEST(receiving_restores_the_socket_options) {
    struct process exporter = start("17", SOCK_STREAM);
    for (int wanted = 0; wanted < 2; wanted++) {
        int now = -1;
        socklen_t size = sizeof now;
        assert_int_equal(
            setsockopt(exporter.socket, SOL_SOCKET, SO_PASSCRED, &wanted, sizeof wanted), 0);
        OK(gpumem_buffer_free(receive_honest(&exporter), NULL));
        assert_int_equal(getsockopt(exporter.socket, SOL_SOCKET, SO_PASSCRED, &now, &size), 0);
        assert_int_equal(now, wanted);
    }
    end(&exporter);
    check_all_gone();
}

/* The kernel then adds a descriptor to each message; it is not taken for memory, nor left open. */
TEST(process_descriptors_in_messages_are_closed) {
    const int on = 1;
    struct process exporter = start("17", SOCK_STREAM);
    if (setsockopt(exporter.socket, SOL_SOCKET, SO_PASSPIDFD, &on, sizeof on) != 0) {
        end(&exporter);
        print_message("skip: this kernel passes no process descriptors\n");
        skip();
    }
    size_t before = open_descriptors();
    gpumem_buffer *honest = receive_honest(&exporter), *again = receive_honest(&exporter);
    assert_int_equal(gpumem_buffer_pointer(honest), gpumem_buffer_pointer(again));
    DESTROY(honest, again);
    assert_int_equal(open_descriptors(), before);
    end(&exporter);
    check_all_gone();
}

/* Without a socket nobody knows the exporter: what is said is not believed, and not remembered. */
TEST(created_imports_are_never_shared) {
    const void *description;
    size_t bytes;
    assert_int_equal(make_export(EXPORTERS), 0);
    gpumem_buffer *lied, *honest, *again;
    gpumem_buffer *other = NEW_BUFFER(resource, 2 * MIB);
    OK(gpumem_buffer_fill(other, 0, 2 * MIB, IMPOSTORS, NULL));
    gpumem_export *others = NEW_EXPORT(other);
    OK(export_description(exported, &description, &bytes));
    int fd = MADE(int, export_descriptor, exported, 0);
    int other_fd = MADE(int, export_descriptor, others, 0);
    OK(gpumem_import_create(device, description, bytes, &other_fd, 1, NULL, &lied));
    OK(gpumem_import_create(device, description, bytes, &fd, 1, NULL, &honest));
    OK(gpumem_import_create(device, description, bytes, &fd, 1, NULL, &again));
    assert_int_equal(content(lied), IMPOSTORS);
    assert_int_equal(content(honest), EXPORTERS);
    assert_int_not_equal(gpumem_buffer_pointer(honest), gpumem_buffer_pointer(again));
    OK(gpumem_buffer_free(honest, NULL));
    assert_int_equal(content(again), EXPORTERS);
    DESTROY(again, lied, others, other);
    drop_export();
    check_all_gone();
}

/* ---- What makes two imports equal, of drivers whose descriptors are of one device, too ------- */

static struct gm_identity identity(int fd, const struct gm_peer *peer) {
    const struct gm_description_head head = {
        .chunk_count = 1, .buffer = {7}, .bytes = 5, .committed = 2 * MIB};
    const uint64_t chunk = 2 * MIB;
    struct gm_identity made;
    OK(gm_identity_init(&made, &head, (const unsigned char *)&chunk, &fd, GPUMEM_ACCESS_READ,
                        peer));
    return made;
}

static int equal(int fd, const struct gm_peer *peer, int other_fd,
                 const struct gm_peer *other_peer) {
    struct gm_identity a = identity(fd, peer), b = identity(other_fd, other_peer);
    int answer = gm_identity_equal(&a, &b);
    assert_int_equal(answer, gm_identity_equal(&b, &a));
    gm_identity_destroy(&a);
    gm_identity_destroy(&b);
    return answer;
}

TEST_WITH(an_identity_covers_process_and_file, NULL, NULL) {
    const struct gm_peer peer = {10, 20, 30}, pid = {11, 20, 30}, uid = {10, 21, 30},
                         start_time = {10, 20, 31}, unknown = {0};
    int device_fds[2] = {open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY)};
    FILE *files[2] = {tmpfile(), tmpfile()};
    int fds[2] = {fileno(files[0]), fileno(files[1])};
    assert_true(equal(device_fds[0], &peer, device_fds[1], &peer));
    assert_false(equal(device_fds[0], &peer, device_fds[1], &pid));
    assert_false(equal(device_fds[0], &peer, device_fds[1], &uid));
    assert_false(equal(device_fds[0], &peer, device_fds[1], &start_time));
    assert_false(equal(device_fds[0], &unknown, device_fds[1], &unknown));
    assert_false(equal(device_fds[0], NULL, device_fds[0], NULL));
    assert_true(equal(fds[0], &peer, fds[0], &peer));
    assert_false(equal(fds[0], &peer, fds[1], &peer));
    assert_false(equal(fds[0], &peer, device_fds[0], &peer));
    fclose(files[0]);
    fclose(files[1]);
    close(device_fds[0]);
    close(device_fds[1]);
}

TEST_WITH(a_process_is_identified_by_its_start_time, NULL, NULL) {
    const struct gm_sender self = {getpid(), getuid()}, nobody = {0, 0}, none = {.pid = -1},
                           gone = {0x3fffffff, 0};
    struct gm_peer peer = gm_peer_of(&self), same = gm_peer_of(&self);
    assert_true(peer.pid == getpid() && peer.start > 0);
    assert_true(gm_peer_equal(&peer, &same));
    const struct gm_sender starter = {1, 0};
    struct gm_peer first = gm_peer_of(&starter);
    assert_true(first.start < peer.start);
    assert_int_equal(gm_peer_of(&nobody).pid, 0);
    assert_int_equal(gm_peer_of(&none).pid, 0);
    assert_int_equal(gm_peer_of(&gone).pid, 0);
}

CHILD(other) {
    return other_process((unsigned char)atoi(argv[1]), atoi(argv[2]), atoi(argv[3]));
}
