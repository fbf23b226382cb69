/* What Python reads: pickles and JSON of PyTorch, and packed files. It runs a program that the
 * command has inside (replay/snapshot.py), with the file as its input and memory as its output. */
#include "cli.h"
#include "descriptor.h"
#include "replay.h"
#include "text_file.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const char replay_snapshot_py[];

#define MOST        ((size_t)2 << 30)
#define HAS_REFUSED 3
#define NOT_FOUND   127
#define SHOWN       400 /* bytes of what it says */

/* -I: neither the current folder nor the user's settings have a say in what is imported. */
static int spawn(int from, int to, int device, pid_t *pid) {
    char number[16];
    snprintf(number, sizeof number, "%d", device);
    const char *argv[] = {"python3", "-I", "-c", replay_snapshot_py, number, NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    if (!error)
        error = posix_spawnp(pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int wait_for(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

static int judge(int status, const char *path, struct cli_text *text) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return CLI_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == HAS_REFUSED)
        (void)cli_error(0, "%s: %.*s", path, SHOWN, text->text);
    else if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
        (void)cli_error(0, "%s: python3, which reads snapshots and packed files, is not installed",
                        path);
    else
        (void)cli_error(0, "%s: python3, which reads it, ended by %s %d", path,
                        WIFSIGNALED(status) ? "signal" : "status",
                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    free(text->text);
    *text = (struct cli_text){0};
    return CLI_FILE;
}

static int convert(int from, FILE *out, const char *path, int device, struct cli_text *text) {
    pid_t pid = 0;
    int error = spawn(from, fileno(out), device, &pid);
    if (error)
        return cli_error(CLI_FILE, "%s: python3, which reads it, does not start: %s", path,
                         strerror(error));
    int status = wait_for(pid);
    rewind(out);
    int result = cli_read_text(out, path, MOST, text);
    return result == CLI_OK ? judge(status, path, text) : result;
}

int replay_convert(FILE *file, const char *path, int device, struct cli_text *text) {
    if (fseek(file, 0, SEEK_SET) != 0 || lseek(fileno(file), 0, SEEK_SET) != 0)
        return cli_error(CLI_FILE, "%s: a snapshot or packed trace must be a file, not a pipe",
                         path);
    FILE *out = cli_make_memory_text("replay");
    if (!out)
        return cli_error(CLI_NO_MEMORY, "replay: no memory for the trace: %s", strerror(errno));
    int result = convert(fileno(file), out, path, device, text);
    fclose(out);
    return result;
}
