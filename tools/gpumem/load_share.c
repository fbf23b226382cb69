/* The second process of load, from the first one's side. */
#include "cli.h"
#include "descriptor.h"
#include "load.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECEIVER_SOCKET 3 /* the receiver's end, in the receiver */

static int spawn_receiver(const struct load_arguments *arguments,
                          const struct load_outcome *outcome, int socket, pid_t *pid) {
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return errno;
    self[length] = 0;
    const char *program = arguments->receiver ? arguments->receiver : self;

    char socket_text[12], device_text[12], checksum[17];
    snprintf(socket_text, sizeof socket_text, "%d", RECEIVER_SOCKET);
    snprintf(device_text, sizeof device_text, "%d", outcome->device.ordinal);
    snprintf(checksum, sizeof checksum, "%016" PRIx64, outcome->device_checksum);
    const char *argv[] = {program,     "receive",  "--socket", socket_text, "--device",
                          device_text, "--expect", checksum,   "--driver",  outcome->driver_path,
                          NULL};

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    /* It has a process group of its own, so that a forwarded signal also reaches the processes that
     * it starts; and SIGTERM's default action, because SIGTERM asks it to end. */
    sigset_t passed_on, blocked;
    sigemptyset(&blocked);
    sigemptyset(&passed_on);
    sigaddset(&passed_on, SIGTERM);
    error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                                      POSIX_SPAWN_SETSIGMASK);
    if (!error)
        error = posix_spawnattr_setsigdefault(&attributes, &passed_on);
    if (!error)
        error = posix_spawnattr_setsigmask(&attributes, &blocked);
    /* dup2 onto itself would keep close-on-exec, so the descriptor was moved out of the way
     * before. */
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, socket, RECEIVER_SOCKET);
    if (!error)
        error = posix_spawn(pid, program, &actions, &attributes, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Waits for the receiver's end. Returns its wait status. */
static int reap(pid_t pid) {
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
        ;
    /* Its PID is not reused until it is reaped: no signal can go to another process. */
    load_pass_signals_to(0);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static int judge(int wait_status) {
    if (load_interrupted())
        return CLI_INTERRUPTED;
    if (WIFSIGNALED(wait_status))
        return cli_error(CLI_PEER, "the second process was killed by signal %d (%s)",
                         WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    int status = WEXITSTATUS(wait_status);
    if (status == CLI_MISMATCH)
        return cli_error(CLI_MISMATCH, "the second process found different bytes");
    if (status != CLI_OK)
        return cli_error(CLI_PEER, "the second process failed with exit status %d", status);
    return CLI_OK;
}

static int hand_over(const struct load_arguments *arguments, gpumem_export *exported,
                     struct load_outcome *outcome) {
    int pair[2];
    /* Above RECEIVER_SOCKET, so that moving one there overwrites neither. */
    int error = cli_make_pair(RECEIVER_SOCKET, pair);
    if (error)
        return cli_error(CLI_FAILED, "cannot make a socket pair: %s", strerror(error));
    error = spawn_receiver(arguments, outcome, pair[1], &outcome->receiver);
    close(pair[1]);
    if (error) {
        close(pair[0]);
        return cli_error(CLI_PEER, "cannot start the second process: %s", strerror(error));
    }
    load_pass_signals_to(outcome->receiver);
    gpumem_status status = gpumem_export_send(exported, pair[0], NULL);
    /* Before waiting: a receiver that still reads sees the end of the socket. */
    close(pair[0]);
    int wait_status = reap(outcome->receiver);
    int result = judge(wait_status);
    if (result == CLI_OK && status != GPUMEM_OK)
        result = cli_fail(status);
    return result;
}

int load_share(const struct load_arguments *arguments, gpumem_buffer *buffer,
               struct load_outcome *outcome) {
    double start = cli_now();
    gpumem_export *exported = NULL;
    gpumem_status status = gpumem_export_create(buffer, &exported);
    if (status != GPUMEM_OK)
        return cli_fail(status);
    gpumem_export_info info = {.size = sizeof info};
    if (gpumem_export_get_info(exported, &info) == GPUMEM_OK)
        outcome->descriptors = info.descriptor_count;
    int result = hand_over(arguments, exported, outcome);
    status = gpumem_export_destroy(exported);
    if (result == CLI_OK && status != GPUMEM_OK)
        result = cli_fail(status);
    outcome->shared = result == CLI_OK;
    outcome->share_seconds = cli_now() - start;
    return result;
}
