/* The other process of a scenario: this program again, at the end of a socket. */
#include "parity.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static pid_t helper_pid;
static int helper_fd = -1;

void par_die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); /* it had died before */
}

/* Forked before the scenario's first driver call is not needed: exec follows at once. */
int par_spawn(const char *helper) {
    int ends[2];
    char number[16];
    par_no_restart();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) {
        perror("parity: socketpair");
        exit(3);
    }
    pid_t parent = getpid();
    helper_pid = fork();
    if (helper_pid == 0) {
        par_die_with(parent);
        close(ends[0]);
        snprintf(number, sizeof(number), "%d", ends[1]);
        execl("/proc/self/exe", "parity", "helper", helper, number, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    helper_fd = ends[0];
    return helper_fd;
}

void par_join(void) {
    int status = 0;
    close(helper_fd);
    while (waitpid(helper_pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status))
        par_see("helper", "SIGNAL %d", WTERMSIG(status));
}

void par_send(int fd, const void *data, size_t size, int pass_fd) {
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {(void *)(uintptr_t)data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (pass_fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &pass_fd, sizeof(int));
    }
    if (sendmsg(fd, &message, MSG_NOSIGNAL) != (ssize_t)size) {
        par_see("setup", "SETUP_FAILED send");
        _exit(4);
    }
}

bool par_receive(int fd, void *data, size_t size, int *passed_fd) {
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {data, size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    if (passed_fd != NULL)
        *passed_fd = -1;
    if (recvmsg(fd, &message, 0) != (ssize_t)size)
        return false;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c != NULL && c->cmsg_type == SCM_RIGHTS && passed_fd != NULL)
        memcpy(passed_fd, CMSG_DATA(c), sizeof(int));
    return true;
}
