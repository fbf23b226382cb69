/* Children: this program again, in a process that has not called the driver. */
#include "harness.h"

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

#define ARGUMENT_LIMIT 16

static int start(const char *name, va_list rest) {
    char *arguments[ARGUMENT_LIMIT + 5] = {(char *)"/proc/self/exe", (char *)test_file(),
                                           (char *)"--child", (char *)name};
    size_t count = 4;
    char *argument;
    while ((argument = va_arg(rest, char *)) != NULL) {
        assert_true(count < ARGUMENT_LIMIT + 4);
        arguments[count++] = argument;
    }
    pid_t pid = -1;
    int error = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ);
    assert_int_equal(error, 0);
    return pid;
}

int start_child(const char *name, ...) {
    va_list rest;
    va_start(rest, name);
    int pid = start(name, rest);
    va_end(rest);
    return pid;
}

int wait_child(int pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_child(const char *name, ...) {
    va_list rest;
    va_start(rest, name);
    int pid = start(name, rest);
    va_end(rest);
    return wait_child(pid);
}
