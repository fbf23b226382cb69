/* Work in many processes, so that a fault spoils only its own line. */
#include "ptx.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit status of a process whose context is lost. */
#define SPENT 4

struct worker {
    pid_t pid;
    unsigned next; /* how many of this worker's items were begun before its last start */
    FILE *file;
};

/* Shared with the workers: the number of items that each has finished. */
static volatile unsigned *finished;

/* The nth item of a worker; work->count if it has no more. */
static unsigned item_of(const struct ptx_work *work, unsigned worker, unsigned n) {
    uint64_t chunk = (uint64_t)(n / work->chunk) * work->jobs + worker;
    uint64_t item = chunk * work->chunk + n % work->chunk;
    return item < work->count ? (unsigned)item : work->count;
}

static void run_worker(const struct ptx_work *work, unsigned number, struct worker *self) {
    unsigned item;
    work->begin();
    while ((item = item_of(work, number, self->next)) != work->count) {
        alarm(work->seconds);
        bool sound = work->work(item, self->file);
        alarm(0);
        fflush(self->file);
        finished[number] = ++self->next;
        if (!sound)
            _Exit(SPENT);
    }
    fflush(NULL);
    _Exit(0);
}

static bool start(const struct ptx_work *work, unsigned number, struct worker *worker) {
    fflush(NULL);
    finished[number] = worker->next;
    worker->pid = fork();
    if (worker->pid == 0)
        run_worker(work, number, worker);
    return worker->pid > 0;
}

/* Handles a worker that ended inside an item: the item's line says so, and what it had buffered of
 * that line is lost. False: no items are left for it. */
static bool ended(const struct ptx_work *work, unsigned number, struct worker *worker, int status) {
    worker->next = finished[number];
    unsigned item = item_of(work, number, worker->next);
    if (item == work->count)
        return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == SPENT)
        return true;
    fseek(worker->file, 0, SEEK_END);
    work->name(item, worker->file);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        fprintf(worker->file, "\tended: time is up\n");
    else if (WIFSIGNALED(status))
        fprintf(worker->file, "\tended: signal %d\n", WTERMSIG(status));
    else
        fprintf(worker->file, "\tended: status %d\n", WEXITSTATUS(status));
    fflush(worker->file);
    worker->next++;
    return item_of(work, number, worker->next) != work->count;
}

/* Each item printed one line; the workers' files are read in turns, chunk by chunk. */
static void join(const struct ptx_work *work, struct worker *workers, FILE *to) {
    char *line = NULL;
    size_t room = 0;
    for (unsigned i = 0; i < work->jobs; i++)
        rewind(workers[i].file);
    for (unsigned item = 0; item < work->count; item++) {
        FILE *file = workers[item / work->chunk % work->jobs].file;
        ssize_t length = getline(&line, &room, file);
        if (length > 0)
            fwrite(line, 1, (size_t)length, to);
    }
    free(line);
    fflush(to);
}

unsigned ptx_fan_out(const struct ptx_work *work, FILE *to) {
    struct worker *workers = calloc(work->jobs, sizeof *workers);
    unsigned bad = 0, running = 0;
    size_t size = work->jobs * sizeof *finished;
    finished = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (workers == NULL || finished == MAP_FAILED)
        abort();
    for (unsigned i = 0; i < work->jobs; i++) {
        workers[i].file = tmpfile();
        if (workers[i].file == NULL || !start(work, i, &workers[i])) {
            perror("ptx");
            exit(2);
        }
        running++;
    }
    while (running > 0) {
        int status;
        pid_t pid = wait(&status);
        if (pid < 0 && errno == EINTR)
            continue;
        for (unsigned i = 0; i < work->jobs; i++) {
            if (workers[i].pid != pid)
                continue;
            running--;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
                exit(2); /* no driver: nothing can be recorded */
            if (status != 0) {
                bad += !WIFEXITED(status) || WEXITSTATUS(status) != SPENT;
                if (ended(work, i, &workers[i], status) && start(work, i, &workers[i]))
                    running++;
            }
        }
    }
    join(work, workers, to);
    for (unsigned i = 0; i < work->jobs; i++)
        fclose(workers[i].file);
    munmap((void *)(uintptr_t)finished, size);
    free(workers);
    return bad;
}
