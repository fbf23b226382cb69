/* Connections by path: who is let in, stale files, abstract names, time. Some tests change the user
 * of a child, which root alone may. */
#include "other_process.h"
#include "share/listener.h"
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

static char folder[TEMPORARY_ROOM];

static const char *path_of(const char *name) {
    static char paths[4][TEMPORARY_ROOM + 32];
    static unsigned next;
    char *path = paths[next++ % COUNT(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int begin(void **state) {
    return temporary_folder(folder, "gpumem-connect") ? 0 : -1;
}

/* It is empty again: each listener took its file away. */
static int end(void **state) {
    return rmdir(folder);
}

ALL_TESTS(begin, end);

static gpumem_listener *listen_at(const char *path) {
    return MADE(gpumem_listener *, gpumem_listen, path, NULL);
}

/* ---- A client in another thread -------------------------------------------------------------- */

struct client {
    pthread_t thread;
    const char *path;
    int connection;
    gpumem_status status;
    gpumem_connection_peer peer;
};

static void *run_client(void *argument) {
    struct client *self = argument;
    self->connection = -1;
    self->peer.size = sizeof self->peer;
    self->status = gpumem_connect(self->path, NULL, &self->connection, &self->peer);
    return NULL;
}

static void start_client(struct client *client, const char *path) {
    *client = (struct client){.path = path};
    assert_int_equal(pthread_create(&client->thread, NULL, run_client, client), 0);
}

static void meet(gpumem_listener *listener, const char *path) {
    struct client client;
    int connection = -1;
    gpumem_connection_peer peer = {.size = sizeof peer};
    start_client(&client, path);
    OK(gpumem_accept(listener, NULL, &connection, &peer));
    pthread_join(client.thread, NULL);
    OK(client.status);
    MEMBERS(peer, (pid, getpid()), (user, getuid()));
    MEMBERS(client.peer, (pid, getpid()), (user, getuid()));
    for (int i = 0; i < 2; i++) {
        int fd = i ? client.connection : connection, passes = -1;
        socklen_t size = sizeof passes;
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
        assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PASSCRED, &passes, &size), 0);
        assert_int_equal(passes, 0);
    }
    char byte = 0;
    assert_int_equal(send(connection, "a", 1, 0), 1);
    assert_int_equal(recv(client.connection, &byte, 1, 0), 1);
    assert_int_equal(close(connection), 0);
    assert_int_equal(close(client.connection), 0);
}

TEST(both_sides_learn_the_identity_of_the_peer) {
    size_t descriptors = open_descriptors();
    const char *path = path_of("meet");
    gpumem_listener *listener = listen_at(path);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_true(gpumem_listener_descriptor(listener) > 2);
    meet(listener, path);
    meet(listener, path);
    OK(gpumem_listener_close(listener));
    assert_int_equal(stat(path, &about), -1);
    OK(gpumem_listener_close(NULL));
    assert_int_equal(open_descriptors(), descriptors);
}

TEST(an_abstract_name_leaves_no_file) {
    char name[64];
    snprintf(name, sizeof name, "@gpumem-test-%d", (int)getpid());
    gpumem_listener *listener = listen_at(name), *second = NULL;
    meet(listener, name);
    FAILS_SAYING(SYSTEM, "another process is listening", gpumem_listen(name, NULL, &second));
    assert_null(second);
    OK(gpumem_listener_close(listener));
    int connection = -1;
    FAILS_SAYING(PEER, "nobody listens", gpumem_connect(name, NULL, &connection, NULL));
    listener = listen_at(name);
    OK(gpumem_listener_close(listener));
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* What a listener leaves that was killed. */
static void leave_stale(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    close(fd);
}

TEST(a_stale_file_is_replaced) {
    const char *path = path_of("stale");
    leave_stale(path);
    int connection = -1;
    FAILS(PEER, gpumem_connect(path, NULL, &connection, NULL));
    assert_int_equal(gpumem_last_error()->system_code, ECONNREFUSED);
    gpumem_listener *listener = listen_at(path), *second = NULL;
    meet(listener, path);
    /* One that is in use is not. */
    FAILS(SYSTEM, gpumem_listen(path, NULL, &second));
    assert_int_equal(gpumem_last_error()->system_code, EADDRINUSE);
    assert_null(second);
    meet(listener, path); /* the probe is no client, and keeps none out */
    OK(gpumem_listener_close(listener));
}

TEST(a_file_that_is_not_a_socket_is_never_removed) {
    const char *path = path_of("file"), *link = path_of("link");
    gpumem_listener *none = NULL;
    struct stat about;
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    FAILS_SAYING(SYSTEM, "not a socket", gpumem_listen(path, NULL, &none));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(symlink(path, link), 0);
    FAILS(SYSTEM, gpumem_listen(link, NULL, &none));
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(path), 0);
    FAILS(SYSTEM, gpumem_listen(path_of("missing/socket"), NULL, &none));
    assert_int_equal(gpumem_last_error()->system_code, ENOENT);
    assert_null(none);
}

/* Closing removes the listener's own file, and nobody else's. */
TEST(closing_a_listener_keeps_a_replaced_socket_file) {
    const char *path = path_of("replaced");
    gpumem_listener *first = listen_at(path), *second;
    assert_int_equal(unlink(path), 0);
    second = listen_at(path);
    OK(gpumem_listener_close(first));
    meet(second, path);
    OK(gpumem_listener_close(second));
}

TEST(a_socket_file_has_the_requested_permissions) {
    const char *path = path_of("mode");
    const unsigned users[] = {getuid(), 12345};
    gpumem_listener *listener;
    struct stat about;
    mode_t mask = umask(077);
    OK(gpumem_listen(path, GPUMEM_CONNECT_OPTIONS(.users = users, .user_count = 2), &listener));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0666);
    meet(listener, path);
    OK(gpumem_listener_close(listener));
    umask(0);
    OK(gpumem_listen(path, GPUMEM_CONNECT_OPTIONS(.permissions = 0640), &listener));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    OK(gpumem_listener_close(listener));
    umask(mask);
}

#define STARTERS 8

struct starter {
    pthread_t thread;
    const char *path;
    gpumem_listener *listener;
};

static void *run_starter(void *argument) {
    struct starter *self = argument;
    if (gpumem_listen(self->path, NULL, &self->listener) != GPUMEM_OK)
        self->listener = NULL;
    return NULL;
}

/* Of many that find the same stale file one listens, and is still to be reached. */
TEST(one_of_many_concurrent_listeners_replaces_a_stale_file) {
    const char *path = path_of("race");
    for (int round = 0; round < 20; round++) {
        struct starter starters[STARTERS];
        gpumem_listener *listener = NULL;
        leave_stale(path);
        for (size_t i = 0; i < STARTERS; i++) {
            starters[i] = (struct starter){.path = path};
            assert_int_equal(pthread_create(&starters[i].thread, NULL, run_starter, &starters[i]),
                             0);
        }
        for (size_t i = 0; i < STARTERS; i++) {
            pthread_join(starters[i].thread, NULL);
            assert_false(listener && starters[i].listener);
            if (starters[i].listener)
                listener = starters[i].listener;
        }
        assert_non_null(listener);
        meet(listener, path);
        OK(gpumem_listener_close(listener));
    }
}

/* ---- Who is let in --------------------------------------------------------------------------- */

/* Connects as that user, and answers by its exit status; 0: let in. */
static pid_t connect_as(const char *path, unsigned user) {
    pid_t child = fork();
    if (child == 0) {
        int connection = -1;
        const unsigned servers[] = {0};
        if (setgid(user) != 0 || setuid(user) != 0)
            _exit(90);
        gpumem_status status = gpumem_connect(
            path, GPUMEM_CONNECT_OPTIONS(.users = servers, .user_count = 1), &connection, NULL);
        _exit(status == GPUMEM_OK ? 0 : (int)status);
    }
    return child;
}

static int exit_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(only_listed_users_may_connect) {
    if (getuid() != 0) {
        print_message("skip: only root can be another user\n");
        skip();
    }
    char name[64];
    snprintf(name, sizeof name, "@gpumem-users-%d", (int)getpid());
    const unsigned users[] = {1234};
    gpumem_listener *listener;
    int connection = -1;
    gpumem_connection_peer peer = {.size = sizeof peer};
    OK(gpumem_listen(name, GPUMEM_CONNECT_OPTIONS(.users = users, .user_count = 1), &listener));
    pid_t stranger = connect_as(name, 4321);
    FAILS_SAYING(
        PEER, "nobody connected within 400 ms",
        gpumem_accept(listener, GPUMEM_CONNECT_OPTIONS(.timeout_ms = 400), &connection, &peer));
    FAILS(PEER, exit_of(stranger));
    pid_t friend = connect_as(name, 1234);
    OK(gpumem_accept(listener, NULL, &connection, &peer));
    MEMBERS(peer, (user, 1234), (pid, friend));
    assert_int_equal(exit_of(friend), 0);
    close(connection);
    /* Not even the listener's own user, who was not named; and whom the client does not name. */
    struct client client;
    start_client(&client, name);
    FAILS(PEER,
          gpumem_accept(listener, GPUMEM_CONNECT_OPTIONS(.timeout_ms = 400), &connection, NULL));
    pthread_join(client.thread, NULL);
    FAILS(PEER, client.status);
    int none = -1;
    FAILS_SAYING(
        NOT_PERMITTED, "user 0",
        gpumem_connect(name, GPUMEM_CONNECT_OPTIONS(.users = users, .user_count = 1), &none, NULL));
    assert_int_equal(none, -1);
    OK(gpumem_listener_close(listener));
}

/* Root's descriptor, connected by root, in a process that is not: it greets as who it is. */
TEST(a_process_with_an_inherited_connection_identifies_as_itself) {
    if (getuid() != 0) {
        print_message("skip: only root can be another user\n");
        skip();
    }
    const char *path = path_of("given");
    gpumem_listener *listener = listen_at(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int given = socket(AF_UNIX, SOCK_STREAM, 0), connection = -1;
    assert_int_equal(connect(given, (struct sockaddr *)&address, sizeof address), 0);
    pid_t child = fork();
    if (child == 0) {
        struct gm_users users = {.ids = {0}, .count = 1};
        struct gm_sender other;
        const struct gm_deadline deadline = gm_deadline_start(5000);
        if (setuid(4321) != 0)
            _exit(90);
        _exit(gm_greet_first(given, &users, &deadline, &other) == GPUMEM_ERROR_PEER ? 0 : 1);
    }
    FAILS(PEER,
          gpumem_accept(listener, GPUMEM_CONNECT_OPTIONS(.timeout_ms = 500), &connection, NULL));
    assert_int_equal(exit_of(child), 0);
    close(given);
    OK(gpumem_listener_close(listener));
}

/* ---- Time, and strangers --------------------------------------------------------------------- */

struct greeter {
    int connection;
    const struct gm_users *users;
    struct gm_sender *other;
    gpumem_status status;
};

static void *greet(void *argument) {
    struct greeter *self = argument;
    const struct gm_deadline deadline = gm_deadline_start(20000);
    self->status = gm_greet_first(self->connection, self->users, &deadline, self->other);
    return NULL;
}

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static int raw_client(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static bool is_readable(int fd) {
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    return poll(&entry, 1, 0) == 1;
}

static const gpumem_connect_options brief = {.size = sizeof brief, .timeout_ms = 1};

static void nobody(gpumem_listener *listener, int timeout_ms) {
    int connection = -1;
    FAILS_SAYING(PEER, "nobody connected",
                 gpumem_accept(listener, GPUMEM_CONNECT_OPTIONS(.timeout_ms = timeout_ms),
                               &connection, NULL));
    assert_int_equal(connection, -1);
}

/* Neither who is silent nor who speaks something else keeps the next one out, or waiting. */
TEST(silent_and_foreign_clients_do_not_block_the_next_one) {
    const char *path = path_of("strangers");
    gpumem_listener *listener = listen_at(path);
    size_t descriptors = open_descriptors();
    int web = raw_client(path), gone = raw_client(path), silent[40];
    for (size_t i = 0; i < COUNT(silent); i++)
        silent[i] = raw_client(path);
    assert_int_equal(send(web, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
    close(gone);
    long long begun = now_ms();
    meet(listener, path);
    assert_true(now_ms() - begun < 2000 * (long long)COUNT(silent) / 2);
    nobody(listener, 2200); /* by its end all have been silent for 2 s */
    char byte;
    assert_true(recv(web, &byte, 1, 0) <= 0); /* closed */
    for (size_t i = 0; i < COUNT(silent); i++) {
        assert_true(recv(silent[i], &byte, 1, 0) <= 0);
        close(silent[i]);
    }
    close(web);
    assert_int_equal(open_descriptors(), descriptors);
    OK(gpumem_listener_close(listener));
}

/* As many as greet at a time, and more: the rest has its turn when those have had their 2 s. */
TEST(a_crowd_of_silent_clients_is_let_in_by_parts) {
    const char *path = path_of("crowd");
    gpumem_listener *listener;
    int silent[GM_MOST_NEWCOMERS + 6];
    OK(gpumem_listen(path, GPUMEM_CONNECT_OPTIONS(.backlog = 128), &listener));
    size_t descriptors = open_descriptors();
    for (size_t i = 0; i < COUNT(silent); i++)
        silent[i] = raw_client(path);
    meet(listener, path);
    /* The clients' ends, and of the others no more than greet at a time. */
    assert_true(open_descriptors() <= descriptors + COUNT(silent) + GM_MOST_NEWCOMERS);
    OK(gpumem_listener_close(listener)); /* with those that are inside */
    char byte;
    for (size_t i = 0; i < COUNT(silent); i++) {
        assert_true(recv(silent[i], &byte, 1, 0) <= 0);
        close(silent[i]);
    }
}

/* One call takes a connection and has no time for its greeting, which the next one hears. */
TEST(a_client_that_greets_between_two_calls_is_accepted) {
    const char *path = path_of("between");
    gpumem_listener *listener = listen_at(path);
    struct gm_users users = {.ids = {getuid()}, .count = 1};
    struct gm_sender other;
    int slow = raw_client(path), connection = -1, fd = gpumem_listener_descriptor(listener);
    assert_true(is_readable(fd));
    nobody(listener, 1);
    assert_false(is_readable(fd)); /* it is taken, and has said nothing */
    nobody(listener, 1);
    assert_int_equal(send(slow, "gpum", 4, MSG_NOSIGNAL),
                     4); /* the first bytes of what it will say */
    nobody(listener, 1);
    assert_false(is_readable(fd));
    close(slow);
    nobody(listener, 1);
    slow = raw_client(path);
    nobody(listener, 1);
    struct greeter greeter = {.connection = slow, .users = &users, .other = &other};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, greet, &greeter), 0);
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&entry, 1, 20000), 1); /* who polls hears of the greeting */
    OK(gpumem_accept(listener, &brief, &connection, NULL));
    pthread_join(thread, NULL);
    OK(greeter.status);
    close(slow);
    close(connection);
    OK(gpumem_listener_close(listener));
}

/* Calls whose time is over at once let in everybody who connects correctly. */
TEST(short_timeouts_refuse_nobody) {
    enum { CLIENTS = 60 };
    const char *path = path_of("short");
    gpumem_listener *listener = listen_at(path);
    struct client clients[CLIENTS];
    for (size_t i = 0; i < CLIENTS; i++)
        start_client(&clients[i], path);
    for (size_t accepted = 0; accepted < CLIENTS;) {
        int connection = -1;
        gpumem_status status = gpumem_accept(listener, &brief, &connection, NULL);
        if (status == GPUMEM_OK)
            close(connection);
        else
            FAILS(PEER, status);
        accepted += status == GPUMEM_OK;
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        OK(clients[i].status);
        close(clients[i].connection);
    }
    nobody(listener, 1);
    OK(gpumem_listener_close(listener));
}

enum { ACCEPTORS = 4, EACH = 25 };

static void *accept_some(void *listener) {
    for (int i = 0; i < EACH; i++) {
        int connection = -1;
        OK(gpumem_accept(listener, NULL, &connection, NULL));
        close(connection);
    }
    return NULL;
}

TEST(several_threads_accept) {
    const char *path = path_of("several");
    gpumem_listener *listener = listen_at(path);
    pthread_t acceptors[ACCEPTORS];
    int silent = raw_client(path);
    for (size_t i = 0; i < ACCEPTORS; i++)
        assert_int_equal(pthread_create(&acceptors[i], NULL, accept_some, listener), 0);
    for (size_t i = 0; i < ACCEPTORS * EACH; i++) {
        int connection = -1;
        OK(gpumem_connect(path, NULL, &connection, NULL));
        close(connection);
    }
    for (size_t i = 0; i < ACCEPTORS; i++)
        pthread_join(acceptors[i], NULL);
    close(silent);
    nobody(listener, 1);
    OK(gpumem_listener_close(listener));
}

/* A connection that waits for its greeting is other code's once that has taken its number. */
TEST(a_closed_newcomer_leaves_other_files_alone) {
    const char *path = path_of("number");
    gpumem_listener *listener = listen_at(path);
    int silent = raw_client(path), ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    nobody(listener, 1);
    int taken = ends[1] + 1; /* the number after those that are in use */
    assert_true(fcntl(taken, F_GETFD) >= 0);
    assert_int_equal(dup2(ends[0], taken), taken);
    assert_int_equal(send(ends[1], "their bytes, more than sixteen", 30, 0), 30);
    nobody(listener, 2200);
    assert_true(fcntl(taken, F_GETFD) >= 0); /* not closed, and nothing was read */
    char bytes[30];
    assert_int_equal(recv(taken, bytes, sizeof bytes, MSG_DONTWAIT), 30);
    meet(listener, path);
    OK(gpumem_listener_close(listener));
    assert_int_equal(close(taken), 0);
    close(ends[0]);
    close(ends[1]);
    close(silent);
}

TEST(accepting_and_connecting_time_out) {
    const char *path = path_of("time");
    const gpumem_connect_options soon = {.size = sizeof soon, .timeout_ms = 50};
    gpumem_listener *listener;
    int connection = -1;
    OK(gpumem_listen(path, GPUMEM_CONNECT_OPTIONS(.backlog = 1), &listener));
    FAILS_SAYING(PEER, "within 50 ms", gpumem_accept(listener, &soon, &connection, NULL));
    FAILS(PEER, gpumem_connect(path, &soon, &connection, NULL)); /* nobody greets back */
    SAYS("within 50 ms");
    /* And when as many wait already as may. */
    int waiting[4];
    size_t count = 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    while (count < COUNT(waiting)) {
        waiting[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(waiting[count++], (struct sockaddr *)&address, sizeof address) != 0)
            break;
    }
    FAILS_SAYING(PEER, "does not accept", gpumem_connect(path, &soon, &connection, NULL));
    assert_int_equal(connection, -1);
    while (count)
        close(waiting[--count]);
    OK(gpumem_listener_close(listener));
}

/* Each descriptor that listening or accepting needs is missing once; then it works. */
TEST(at_the_limit_of_descriptors_nothing_is_left) {
    const char *path = path_of("limit");
    gpumem_listener *listener = NULL;
    struct rlimit limit;
    int first = dup(0), refused = 0;
    close(first); /* the next number */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (size_t descriptors = open_descriptors(); !listener; refused++) {
        struct rlimit low = {.rlim_cur = (rlim_t)(first + refused), .rlim_max = limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        gpumem_status status = gpumem_listen(path, NULL, &listener);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        if (status == GPUMEM_OK)
            break;
        FAILS(SYSTEM, status);
        assert_int_equal(gpumem_last_error()->system_code, EMFILE);
        assert_int_equal(open_descriptors(), descriptors);
        assert_int_equal(access(path, F_OK), -1);
    }
    assert_true(refused >= 3); /* the socket, the queue, the folder */
    int client = raw_client(path), connection = -1;
    struct rlimit low = {.rlim_cur = (rlim_t)(client + 1), .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    gpumem_status status = gpumem_accept(listener, &brief, &connection, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    FAILS(SYSTEM, status);
    close(client);
    meet(listener, path);
    OK(gpumem_listener_close(listener));
}

TEST(invalid_arguments_are_refused_with_a_reason) {
    gpumem_listener *none = NULL;
    int connection = -1;
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    FAILS(INVALID_ARGUMENT, gpumem_listen(NULL, NULL, &none));
    FAILS(INVALID_ARGUMENT, gpumem_listen("", NULL, &none));
    FAILS(INVALID_ARGUMENT, gpumem_listen("@", NULL, &none));
    FAILS(INVALID_ARGUMENT, gpumem_listen(longest, NULL, &none));
    SAYS("maximum for a socket is 107");
    FAILS(INVALID_ARGUMENT, gpumem_connect(longest, NULL, &connection, NULL));
    FAILS(INVALID_ARGUMENT, gpumem_listen("/x", NULL, NULL));
    FAILS(INVALID_ARGUMENT,
          gpumem_listen("/x", GPUMEM_CONNECT_OPTIONS(.permissions = 01777), &none));
    FAILS(INVALID_ARGUMENT, gpumem_listen("/x", GPUMEM_CONNECT_OPTIONS(.user_count = 1), &none));
    const unsigned users[65] = {0};
    FAILS(INVALID_ARGUMENT,
          gpumem_listen("/x", GPUMEM_CONNECT_OPTIONS(.users = users, .user_count = 65), &none));
    FAILS(PEER, gpumem_connect(path_of("nobody"), NULL, &connection, NULL));
    assert_int_equal(gpumem_last_error()->system_code, ENOENT);
    gpumem_listener *listener = listen_at(path_of("closed"));
    int fd = gpumem_listener_descriptor(listener);
    close(fd);
    FAILS_SAYING(SYSTEM, "closed by other code", gpumem_accept(listener, NULL, &connection, NULL));
    OK(gpumem_listener_close(listener));
    FAILS(INVALID_ARGUMENT, gpumem_listener_close(listener));
    assert_null(none);
    assert_int_equal(connection, -1);
}

/* A child of the listener has no part in it. */
TEST(a_forked_child_does_not_remove_the_socket_file) {
    const char *path = path_of("fork");
    gpumem_listener *listener = listen_at(path);
    pid_t child = fork();
    if (child == 0)
        _exit(gpumem_listener_close(listener) == GPUMEM_ERROR_FORKED ? 0 : 1);
    assert_int_equal(exit_of(child), 0);
    meet(listener, path);
    OK(gpumem_listener_close(listener));
}
