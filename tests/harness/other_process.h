/*
 * The other process of a test of sharing: this program again, by exec, whose arguments are its task
 * and its end of a socket pair. A forked child alone could not use the driver. Header only; used
 * together with library_test.h.
 */
#ifndef TESTS_OTHER_PROCESS_H
#define TESTS_OTHER_PROCESS_H

#include "descriptors.h"
#include "library_test.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* CHILD(other) of the file receives `what` and the number of its descriptor. `type` is the
 * socket's. */
static inline pid_t other_start(const char *what, int type, int *socket) {
    int sockets[2];
    char number[12];
    assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, sockets), 0);
    int theirs = dup(sockets[1]); /* which exec leaves open */
    assert_true(theirs >= 0);
    snprintf(number, sizeof number, "%d", theirs);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "run", test_file(), "--child", "other", what, number, (char *)NULL);
        _exit(99);
    }
    assert_true(child > 0);
    close(theirs);
    close(sockets[1]);
    *socket = sockets[0];
    return child;
}

/* Waits until it has ended by itself, and closes the socket. Returns its exit status. */
static inline int other_end(pid_t child, int socket) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    close(socket);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Sends or receives one byte over the socket, to synchronize. Also used by the other process: 1, or
 * 0 at the end of the socket. */
static inline int other_say(int socket) {
    return send(socket, "x", 1, MSG_NOSIGNAL) == 1;
}

static inline int other_hear(int socket) {
    char byte;
    return recv(socket, &byte, 1, 0) == 1;
}

#endif
