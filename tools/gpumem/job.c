#include "job.h"

#include "cli.h"
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* softgpu's notes, one byte each; src/softgpu/core/job.h is the other side. */
struct notes {
    bool process, fault, leak, hazard;
};

/* A file that has no name and ends with this process: any process of the same user can open it
 * through /proc as long as this one waits. */
static int make_notes(void) {
    int fd = cli_make_memory("gpumem-job");
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    if (fd >= 0 && setenv("SOFTGPU_JOB", path, 1) == 0)
        return fd;
    cli_error(CLI_FAILED, "cannot make the file for the notes of the job: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static struct notes read_notes(int fd) {
    struct notes notes = {false, false, false, false};
    char bytes[4096];
    ssize_t length;
    for (off_t at = 0;; at += length) {
        do
            length = pread(fd, bytes, sizeof bytes, at);
        while (length < 0 && errno == EINTR);
        if (length <= 0)
            return notes;
        notes.process = notes.process || memchr(bytes, 'P', (size_t)length);
        notes.fault = notes.fault || memchr(bytes, 'F', (size_t)length);
        notes.leak = notes.leak || memchr(bytes, 'L', (size_t)length);
        notes.hazard = notes.hazard || memchr(bytes, 'H', (size_t)length);
    }
}

/* ---- The command ----------------------------------------------------------------------------- */

static volatile sig_atomic_t running; /* the command's pid, which fits */

static void pass_on(int number) {
    int saved = errno;
    if (running)
        kill(running, number);
    errno = saved;
}

int job_become(char *const *command) {
    execvp(command[0], command);
    int error = errno;
    return cli_error(error == ENOENT ? 127 : 126, "cannot run %s: %s", command[0], strerror(error));
}

/* Signals from the keyboard reach the command directly, because it is in the same process group. */
static void set_signals(void) {
    static const int passed[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, pass = {.sa_handler = pass_on}, inherited;
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGQUIT, &ignore, NULL);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        if (sigaction(passed[i], NULL, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
            sigaction(passed[i], &pass, NULL);
    /* If SIGCHLD is ignored, children have no exit status. */
    signal(SIGCHLD, SIG_DFL);
}

/* Blocks signals until it is known which process to pass them on to. */
static pid_t start(char *const *command) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        /* Killing this process must kill the command. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(CLI_FAILED);
        sigprocmask(SIG_SETMASK, &before, NULL);
        _exit(job_become(command));
    }
    running = pid > 0 ? pid : 0;
    set_signals();
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

/* Its PID is not reused until it is reaped, so no signal goes to another process. */
static int wait_for(pid_t pid) {
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
        ;
    running = 0;
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* ---- The verdict ----------------------------------------------------------------------------- */

static bool fails_on(const char *what) {
    const char *list = getenv("SOFTGPU_FAIL_ON");
    return list && strstr(list, what);
}

/* Returns CLI_OK, CLI_JUDGED or what --error-exitcode says. */
static int judge(const struct notes *notes) {
    const char *fault = getenv("SOFTGPU_FAULT");
    int result = CLI_OK;
    if (fault && fault[0] && !notes->fault) {
        cli_error(0, "the fault %s was never reached%s", fault,
                  notes->process ? "" : ": nothing that was run called softgpu");
        if (fails_on("fault"))
            result = CLI_JUDGED;
    }
    if (notes->leak && fails_on("leaks")) {
        cli_error(0, "objects were left: softgpu has told which");
        result = CLI_JUDGED;
    }
    const char *status = getenv("SOFTGPU_CHECK_ERROR_EXIT");
    if (notes->hazard && status && status[0] && result == CLI_OK)
        result = atoi(status);
    return result;
}

/* As if the command had been started without this program in between. */
static int end_like(int status) {
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none); /* the command has written its own */
    signal(WTERMSIG(status), SIG_DFL);
    sigset_t number;
    sigemptyset(&number);
    sigaddset(&number, WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &number, NULL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

int job_run(char *const *command) {
    int fd = make_notes();
    if (fd < 0)
        return CLI_FAILED;
    pid_t pid = start(command);
    if (pid < 0) {
        close(fd);
        return cli_error(CLI_FAILED, "cannot start a process: %s", strerror(errno));
    }
    int status = wait_for(pid);
    struct notes notes = read_notes(fd);
    close(fd);
    bool started = !WIFEXITED(status) || (WEXITSTATUS(status) != 126 && WEXITSTATUS(status) != 127);
    int judged = started ? judge(&notes) : CLI_OK;
    int result = end_like(status);
    return result != CLI_OK ? result : judged;
}
