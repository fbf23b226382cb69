/* The owner's side of gpumem share: starts and ends the attached processes. */
#include "cli.h"
#include "share.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int spawn(const char *program, const char *const *argv, pid_t *pid) {
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    int error = posix_spawnattr_init(&attributes);
    if (error)
        return error;
    error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (!error)
        error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error)
        error = posix_spawn(pid, program, NULL, &attributes, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attributes);
    return error;
}

int share_start(const struct share_arguments *arguments, const char *driver, const char *path,
                struct share_process *processes) {
    char self[4096], device[12], number[12], capacity[24];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return cli_error(CLI_FAILED, "share: cannot find this program: %s", strerror(errno));
    self[length] = 0;
    snprintf(device, sizeof device, "%d", arguments->place.device);
    snprintf(capacity, sizeof capacity, "%llu", 2 * (unsigned long long)arguments->bytes);
    for (unsigned i = 0; i < arguments->processes; i++) {
        snprintf(number, sizeof number, "%u", i + 1);
        const char *argv[] = {self,         "attach",   "--at", path,       "--device",
                              device,       "--number", number, "--driver", driver,
                              "--capacity", capacity,   NULL};
        int error = spawn(self, argv, &processes[i].pid);
        if (error) {
            processes[i].pid = 0;
            return cli_error(CLI_PEER, "share: cannot start process %u: %s", i + 1,
                             strerror(error));
        }
    }
    return CLI_OK;
}

int share_kill(struct share_process *process) {
    int status = 0;
    if (process->pid > 0) {
        kill(process->pid, SIGKILL);
        while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    process->pid = 0;
    if (process->connection >= 0)
        close(process->connection);
    process->connection = -1;
    return status;
}
