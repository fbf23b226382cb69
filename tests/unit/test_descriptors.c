/* Making descriptors: above the standard ones, close-on-exec, and none left when it fails. */
#include "library_test.h"
#include "temporary.h"

#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define STANDARD 3

/* Runs in a child, which has no others than those that it did not close. */
static void in_child_without(int closed, int (*run)(int closed)) {
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (int fd = 0; fd < STANDARD; fd++)
            if (closed & 1 << fd)
                close(fd);
        close_range(STANDARD, ~0u, 0);
        _exit(run(closed));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void with_each_closed(int (*run)(int closed)) {
    for (int closed = 0; closed < 8; closed++)
        in_child_without(closed, run);
}

static int is_good(int fd) {
    return fd >= STANDARD && fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

/* 0, or the number of the standard descriptor that is open and was not, counted from 1. */
static int taken(int closed) {
    for (int fd = 0; fd < STANDARD; fd++)
        if ((closed & 1 << fd) && fcntl(fd, F_GETFD) >= 0)
            return fd + 1;
    return 0;
}

static int make_each(int closed) {
    FILE *stream = gm_fd_stream("/proc/self/stat", "r");
    DIR *folder = gm_fd_folder("/proc/self");
    int memory = gm_fd_memory("test");
    int again = gm_fd_duplicate(memory);
    int opened = gm_fd_open("/proc/self/stat", O_RDONLY, 0);
    if (!stream || !folder || !is_good(fileno(stream)) || !is_good(dirfd(folder)))
        return 10;
    int at = gm_fd_open_at(dirfd(folder), "stat", O_RDONLY);
    if (!is_good(memory) || !is_good(again) || !is_good(opened) || !is_good(at))
        return 11;
    /* As a driver gives one: the lowest free, and kept by exec. */
    int kept = gm_fd_keep(open("/proc/self/stat", O_RDONLY));
    if (!is_good(kept))
        return 12;
    return taken(closed);
}

TEST_IS(created_descriptors_are_above_the_standard_ones, with_each_closed(make_each));

static ssize_t send_three(int socket) {
    int fds[3] = {socket, socket, socket};
    _Alignas(struct cmsghdr) unsigned char control[CMSG_SPACE(sizeof fds)] = {0};
    struct iovec part = {.iov_base = (void *)"x", .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(header), fds, sizeof fds);
    return sendmsg(socket, &message, 0);
}

struct received {
    _Alignas(struct cmsghdr) unsigned char control[CMSG_SPACE(4 * sizeof(int))];
    struct msghdr message;
    int fds[3];
    ssize_t bytes;
};

static void receive(int socket, struct received *got) {
    static char byte;
    static struct iovec part = {.iov_base = &byte, .iov_len = 1};
    *got = (struct received){.message = {.msg_iov = &part, .msg_iovlen = 1}};
    got->message.msg_control = got->control;
    got->message.msg_controllen = sizeof got->control;
    got->bytes = gm_fd_receive(socket, &got->message);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&got->message);
    if (header && header->cmsg_len == CMSG_LEN(sizeof got->fds))
        memcpy(got->fds, CMSG_DATA(header), sizeof got->fds);
}

/* A pair above the standard ones, which socketpair itself does not promise. */
static int make_pair(int pair[2]) {
    int low[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, low) != 0)
        return -1;
    pair[0] = gm_fd_keep(low[0]);
    pair[1] = gm_fd_keep(low[1]);
    return pair[0] < 0 || pair[1] < 0 ? -1 : 0;
}

static int receive_each(int closed) {
    int pair[2];
    struct received got;
    if (make_pair(pair) != 0 || send_three(pair[0]) != 1)
        return 20;
    receive(pair[1], &got);
    if (got.bytes != 1)
        return 21;
    for (int i = 0; i < 3; i++)
        if (!is_good(got.fds[i]))
            return 22;
    return taken(closed);
}

TEST_IS(received_descriptors_are_above_the_standard_ones, with_each_closed(receive_each));

static int count_open(void) {
    int count = 0;
    for (int fd = 0; fd < 64; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Only the numbers that may not be used are free. */
static int fail_each(int closed) {
    int pair[2];
    struct received got;
    if (make_pair(pair) != 0 || send_three(pair[0]) != 1)
        return 30;
    int before = count_open();
    struct rlimit limit = {.rlim_cur = 5, .rlim_max = 5};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 31;
    errno = 0;
    if (gm_fd_open("/proc/self/stat", O_RDONLY, 0) >= 0 || errno != EMFILE)
        return 32;
    errno = 0;
    if (gm_fd_memory("test") >= 0 || errno != EMFILE)
        return 33;
    errno = 0;
    if (gm_fd_stream("/proc/self/stat", "r") || errno != EMFILE)
        return 34;
    errno = 0;
    if (gm_fd_folder("/proc/self") || errno != EMFILE)
        return 35;
    int low = open("/proc/self/stat", O_RDONLY);
    errno = 0;
    if (low >= STANDARD || gm_fd_keep(low) >= 0 || errno != EMFILE)
        return 36;
    /* The kernel gives none, and says that the message was cut. */
    receive(pair[1], &got);
    if (got.bytes == 1 && !(got.message.msg_flags & MSG_CTRUNC))
        return 37;
    return count_open() == before ? 0 : 38;
}

TEST(failing_to_create_a_descriptor_leaks_none) {
    for (int closed = 1; closed < 8; closed++)
        in_child_without(closed, fail_each);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static atomic_int making;
static atomic_long landed;

static void *make_many(void *unused) {
    for (int i = 0; i < 4000; i++) {
        int fd = gm_fd_open(getenv("TMPDIR") ? getenv("TMPDIR") : ".", O_TMPFILE | O_RDWR, 0600);
        if (!is_good(fd))
            atomic_fetch_add(&landed, 1);
        close(fd);
    }
    atomic_fetch_sub(&making, 1);
    return NULL;
}

/* By number: ThreadSanitizer takes printing to a closed descriptor for a race, which it is. */
static void *print_always(void *unused) {
    while (atomic_load(&making))
        for (int fd = 1; fd < STANDARD; fd++)
            if (syscall(SYS_write, fd, "a line\n", (size_t)7) >= 0)
                atomic_fetch_add(&landed, 1);
    return NULL;
}

static int make_while_printing(int closed) {
    pthread_t threads[5];
    atomic_store(&making, 3);
    for (int i = 0; i < 5; i++)
        if (pthread_create(&threads[i], NULL, i < 3 ? make_many : print_always, NULL) != 0)
            return 50;
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    return atomic_load(&landed) ? 51 : taken(6);
}

TEST_IS(a_printed_line_never_lands_in_a_new_descriptor, in_child_without(6, make_while_printing));

static void *make_until_told(void *unused) {
    while (atomic_load(&making))
        close(gm_fd_memory("test"));
    return NULL;
}

/* A child of a process whose threads make descriptors can make them too, and finds none held. */
static int fork_while_making(int closed) {
    pthread_t thread;
    atomic_store(&making, 1);
    if (pthread_create(&thread, NULL, make_until_told, NULL) != 0)
        return 60;
    int wrong = 0;
    for (int i = 0; i < 300 && !wrong; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(is_good(gm_fd_memory("test")) ? taken(closed) : 61);
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
            wrong = 62;
        else
            wrong = WEXITSTATUS(status);
    }
    atomic_store(&making, 0);
    pthread_join(thread, NULL);
    return wrong ? wrong : taken(closed);
}

TEST_IS(a_forked_child_may_create_descriptors, in_child_without(7, fork_while_making));

/* ---- One that loses its race ----------------------------------------------------------------- */

static int close_meanwhile = -1;

/* Instead of libc's, for the object under test: a thread closes a standard one in between. */
static bool stands_in;

int memfd_create(const char *name, unsigned flags) {
    if (!stands_in)
        return (int)syscall(SYS_memfd_create, name, flags);
    if (close_meanwhile >= 0)
        close(close_meanwhile);
    char path[TEMPORARY_ROOM];
    if (!temporary_name(path, name))
        return -1;
    int fd = mkostemp(path, flags ? O_CLOEXEC : 0);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static int lose_race(int closed) {
    close_meanwhile = 1;
    int fd = gm_fd_memory("test");
    return is_good(fd) && fcntl(1, F_GETFD) < 0 ? 0 : 40;
}

TEST_IS(a_descriptor_with_a_standard_number_is_moved, in_child_without(0, lose_race));

static int lose_race_without_room(int closed) {
    struct rlimit limit = {.rlim_cur = 3, .rlim_max = 3};
    setrlimit(RLIMIT_NOFILE, &limit);
    close_meanwhile = 2;
    errno = 0;
    int fd = gm_fd_memory("test");
    /* The limit itself is what F_DUPFD refuses as an argument. */
    return fd < 0 && (errno == EMFILE || errno == EINVAL) && fcntl(2, F_GETFD) < 0 ? 0 : 41;
}

TEST_IS(a_descriptor_that_cannot_be_moved_is_closed, in_child_without(0, lose_race_without_room));

BEFORE_TESTS_DO(stands_in = true);

/* What a pipe of 64 KiB takes or gives moves on only while a call for it is being interrupted. */
static int ends[2];
static size_t moved;
static unsigned char passed[300000];

static void read_some(int number) {
    (void)number;
    ssize_t got = read(ends[0], passed + moved, moved < sizeof passed ? 5000 : 0);
    moved += got > 0 ? (size_t)got : 0;
}

static void write_some(int number) {
    (void)number;
    static const unsigned char bytes[5000] = {7, 8};
    if (moved < sizeof passed)
        moved += write(ends[1], bytes, sizeof bytes) > 0 ? sizeof bytes : 0;
    else if (ends[1] >= 0)
        ends[1] = close(ends[1]) - 1;
}

static void interrupt_by(void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler}; /* without SA_RESTART */
    struct itimerval often = {{0, 500}, {0, 500}};
    moved = 0;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
}

static void interrupt_no_more(void) {
    assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &(struct sigaction){.sa_handler = SIG_DFL}, NULL), 0);
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

TEST(whole_files_are_written_and_read_in_spite_of_signals) {
    unsigned char *bytes = malloc(sizeof passed);
    assert_non_null(bytes);
    for (size_t i = 0; i < sizeof passed; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    interrupt_by(read_some);
    assert_true(gm_fd_write(ends[1], bytes, sizeof passed));
    interrupt_no_more();
    assert_memory_equal(passed, bytes, moved);
    assert_true(moved > sizeof passed / 2);
    interrupt_by(write_some);
    memset(bytes, 0, sizeof passed);
    assert_int_equal(gm_fd_read(ends[0], bytes, sizeof passed - 1), sizeof passed - 1);
    assert_int_equal(bytes[sizeof passed - 5000], 7);
    interrupt_no_more();
    interrupt_by(write_some);
    size_t more = sizeof passed + 9000;
    unsigned char *room = malloc(more);
    assert_non_null(room);
    assert_int_equal(gm_fd_read(ends[0], room, more), sizeof passed); /* the end */
    interrupt_no_more();
    free(room);
    free(bytes);
    int fd = gm_fd_open("/proc/self", O_RDONLY | O_DIRECTORY, 0);
    unsigned char byte = 0;
    assert_int_equal(gm_fd_read(fd, &byte, 1), -1);
    assert_int_equal(errno, EISDIR);
    assert_false(gm_fd_write(fd, &byte, 1));
    close(fd);
}
