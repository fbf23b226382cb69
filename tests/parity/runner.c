/*
 * Runs scenarios in processes of their own, several at a time. This process makes no driver call:
 * a driver that was initialized before a fork is unusable in the child.
 */
#include "parity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

enum {
    START_MS = 40000,  /* cuInit of many processes at once takes seconds */
    IDLE_MS = 10000,   /* between two lines; creating a context beside others takes seconds */
    HANG_MS = 100,     /* of a call that is known never to answer: what it does is of no account */
    MOST_STRETCH = 20, /* of these: see silent_too_long */
    MOST_HANGS = 4,    /* in one scenario */
    MAX_JOBS = 64,
    SETUP_FAILED = 4, /* exit status: the scenario has said so itself */
    RESTART = 77,     /* exit status: this sweep asks to go on in a new process */
};

typedef struct task {
    const par_scenario *scenario;
    int shard;
    int from;
    int hang[MOST_HANGS]; /* numbers of its lines that never answer */
    int hangs;
} task;

typedef struct job {
    const task *task;
    pid_t pid;
    int fd;
    int from;
    int skip[PAR_SKIPS_MAX]; /* the calls that killed or hung its earlier processes */
    int skips;
    int position;         /* of the last call that was announced */
    bool once;            /* it has other processes: not to be started again */
    int64_t since, limit; /* milliseconds: it has been silent, and may be */
    bool timed_out;
    bool closing;       /* its output has ended, the process not yet: drivers take long to leave */
    char pending[4096]; /* the call that was announced and not yet answered */
    char input[8192];
    size_t used;
} job;

static task *tasks;
static size_t task_count;
static job jobs[MAX_JOBS];
static FILE *output;
static bool out_of_time;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* How many tasks share a processor, over the last minute: 1 where none does. */
static double tasks_a_processor(void) {
    double tasks = 0;
    double processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (getloadavg(&tasks, 1) != 1 || processors < 1 || tasks <= processors)
        return 1;
    return tasks / processors < (double)MOST_STRETCH ? tasks / processors : (double)MOST_STRETCH;
}

static void expect_line(job *j, int64_t limit) {
    j->since = now();
    j->limit = limit;
}

/* The limits are meant for a machine that does nothing else, and stretched by what shares it. */
static bool silent_too_long(const job *j) {
    static bool told;
    int64_t silent = now() - j->since;
    if (silent <= j->limit)
        return false;
    double stretch = tasks_a_processor();
    if ((double)silent > (double)j->limit * stretch)
        return true;
    if (!told)
        fprintf(stderr, "parity: a load of %.1f on each processor: limits are stretched\n",
                stretch);
    told = true;
    return false;
}

/* `prefixes` has commas between them; NULL means all. */
static bool chosen(const char *name, const char *prefixes) {
    for (const char *at = prefixes; at != NULL && *at != 0;) {
        size_t length = strcspn(at, ",");
        if (length > 0 && strncmp(name, at, length) == 0)
            return true;
        at += length + (at[length] == ',');
    }
    return prefixes == NULL;
}

static size_t shards_of(const par_scenario *s) {
    return s->shards > 0 ? (size_t)s->shards : 1;
}

static void collect_one(const par_scenario *s, const task *known) {
    size_t shards = shards_of(s);
    task *more = realloc(tasks, (task_count + shards) * sizeof(*tasks));
    if (more == NULL) {
        perror("parity");
        exit(2);
    }
    tasks = more;
    for (size_t shard = 0; shard < shards; shard++) {
        tasks[task_count] = *known;
        tasks[task_count].scenario = s;
        tasks[task_count++].shard = (int)shard;
    }
}

/* "NAME NUMBER…": a scenario, and its lines that never answer. */
static void collect_line(char *text) {
    task known = {0};
    char *rest = NULL;
    const char *name = strtok_r(text, " \n", &rest);
    const par_scenario *s = name != NULL ? par_scenario_find(name) : NULL;
    if (s == NULL) { /* for the comparison to miss */
        fprintf(stderr, "parity: no scenario '%s'\n", name != NULL ? name : "");
        return;
    }
    for (const char *number = strtok_r(NULL, " \n", &rest);
         number != NULL && known.hangs < MOST_HANGS; number = strtok_r(NULL, " \n", &rest)) {
        known.hang[known.hangs++] = atoi(number);
    }
    collect_one(s, &known);
}

static void collect_listed(const char *path) {
    char line[256];
    FILE *list = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (list == NULL) {
        perror(path);
        exit(2);
    }
    while (fgets(line, sizeof(line), list) != NULL)
        collect_line(line);
    if (list != stdin)
        fclose(list);
}

static void collect(const par_run_options *o) {
    if (o->list != NULL) {
        collect_listed(o->list);
        return;
    }
    for (size_t i = 0; i < par_scenario_count(); i++) {
        const par_scenario *s = par_scenario_at(i);
        if (chosen(s->name, o->scenario))
            collect_one(s, &(task){0});
    }
}

static void shuffle(unsigned seed) {
    uint64_t state = seed;
    for (size_t i = task_count; seed != 0 && i > 1; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t j = (size_t)(state >> 33) % i;
        task swap = tasks[i - 1];
        tasks[i - 1] = tasks[j];
        tasks[j] = swap;
    }
}

/* In the child: lines go to a pipe of their own, which helpers inherit, and what else is printed
 * goes nowhere. A kernel's output may come at any moment, and would end up within a line. */
static void separate_lines(int pipe_end) {
    char number[16];
    int lines = fcntl(pipe_end, F_DUPFD, STDERR_FILENO + 1);
    int nowhere = open("/dev/null", O_WRONLY);
    if (lines < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
        _exit(127);
    close(nowhere);
    snprintf(number, sizeof(number), "%d", lines);
    setenv(PAR_LINES_VARIABLE, number, 1);
}

static void exec_one(const job *j, unsigned seed) {
    char shard[16], shards[16], from[16], seed_text[16], skips[PAR_SKIPS_MAX][16];
    char *args[7 + PAR_SKIPS_MAX + 1] = {
        "parity", "one",    (char *)(uintptr_t)j->task->scenario->name, shard, shards,
        from,     seed_text};
    int count = j->task->scenario->shards;
    snprintf(shard, sizeof(shard), "%d", j->task->shard);
    snprintf(shards, sizeof(shards), "%d", count > 0 ? count : 1);
    snprintf(from, sizeof(from), "%d", j->from);
    snprintf(seed_text, sizeof(seed_text), "%u", seed);
    for (int i = 0; i < j->skips; i++) {
        snprintf(skips[i], sizeof(skips[i]), "%d", j->skip[i]);
        args[7 + i] = skips[i];
    }
    execv("/proc/self/exe", args);
    _exit(127);
}

static bool job_start(job *j, unsigned seed) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        perror("parity: pipe");
        return false;
    }
    pid_t parent = getpid();
    j->pid = fork();
    if (j->pid == 0) {
        par_die_with(parent);
        setpgid(0, 0);
        separate_lines(ends[1]);
        exec_one(j, seed);
    }
    close(ends[1]);
    if (j->pid < 0) {
        perror("parity: fork");
        close(ends[0]);
        return false;
    }
    setpgid(j->pid, j->pid);
    j->fd = ends[0];
    j->used = 0;
    j->timed_out = j->closing = false;
    j->position = -1;
    j->pending[0] = '\0';
    expect_line(j, START_MS);
    return true;
}

/* Whether the call that is announced is known never to answer; `text` has its line's place. */
static bool hangs(const task *t, const char *text) {
    const char *number = strchr(text, '#');
    for (int i = 0; i < t->hangs && number != NULL; i++) {
        if (t->hang[i] == atoi(number + 1))
            return true;
    }
    return false;
}

static void job_line(job *j, const char *text) {
    expect_line(j, text[0] == '~' && hangs(j->task, text) ? HANG_MS : IDLE_MS);
    if (strcmp(text, "~!") == 0) {
        j->once = true;
        return;
    }
    if (text[0] == '~') {
        char *rest;
        j->position = (int)strtol(text + 1, &rest, 10);
        snprintf(j->pending, sizeof(j->pending), "%s", *rest == ' ' ? rest + 1 : rest);
        return;
    }
    fprintf(output, "%s\n", text);
    if (strncmp(text, j->pending, strlen(j->pending)) == 0)
        j->pending[0] = '\0';
}

/* False at the end of the process's output. */
static bool job_read(job *j) {
    ssize_t n = read(j->fd, j->input + j->used, sizeof(j->input) - 1 - j->used);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    j->used += (size_t)n;
    j->input[j->used] = '\0';
    char *line = j->input;
    for (char *end = strchr(line, '\n'); end != NULL; end = strchr(line, '\n')) {
        *end = '\0';
        job_line(j, line);
        line = end + 1;
    }
    j->used = strlen(line);
    memmove(j->input, line, j->used + 1);
    return true;
}

static void report_end(job *j, int status) {
    const char *name = j->task->scenario->name;
    if (j->timed_out) {
        fprintf(output, "%s -> TIMEOUT\n", j->pending[0] != '\0' ? j->pending : name);
    } else if (WIFSIGNALED(status)) {
        fprintf(output, "%s -> SIGNAL %d\n", j->pending[0] != '\0' ? j->pending : name,
                WTERMSIG(status));
    } else if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != RESTART &&
               WEXITSTATUS(status) != SETUP_FAILED) {
        fprintf(output, "%s -> EXIT %d\n", j->pending[0] != '\0' ? j->pending : name,
                WEXITSTATUS(status));
    }
    fflush(output);
}

/* After a call that killed or hung its process: the calls before it are made again in a new
 * process, without a word, that call is left out, and the rest follows. */
static bool goes_on(job *j) {
    if ((j->task->scenario->flags & PAR_SWEEP) != 0) {
        bool forward = j->position >= j->from;
        j->from = j->position + 1;
        return forward;
    }
    if (j->once || j->pending[0] == '\0' || j->skips == PAR_SKIPS_MAX)
        return false;
    j->skip[j->skips++] = j->position;
    return true;
}

/* True when the job is over; false when it still leaves, or goes on in a new process. */
static bool job_reap(job *j, unsigned seed) {
    int status = 0;
    if (waitpid(j->pid, &status, WNOHANG) == 0)
        return false;
    report_end(j, status);
    bool died = j->timed_out || WIFSIGNALED(status) ||
                (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != SETUP_FAILED);
    return out_of_time || !died || !goes_on(j) || !job_start(j, seed);
}

static void job_close(job *j) {
    kill(-j->pid, SIGKILL);
    close(j->fd);
    j->fd = -1; /* poll ignores it */
    j->closing = true;
}

static void wait_for_lines(int running, unsigned seed, bool *ended) {
    struct pollfd fds[MAX_JOBS];
    bool closing = false;
    for (int i = 0; i < running; i++) {
        fds[i] = (struct pollfd){.fd = jobs[i].fd, .events = POLLIN};
        closing = closing || jobs[i].closing;
    }
    poll(fds, running > 0 ? (nfds_t)running : 0, closing ? 10 : 200);
    for (int i = 0; i < running; i++) {
        job *j = &jobs[i];
        bool over = j->fd >= 0 && fds[i].revents != 0 && !job_read(j);
        if (j->fd >= 0 && !over && silent_too_long(j))
            j->timed_out = over = true;
        if (over)
            job_close(j);
        ended[i] = j->closing && job_reap(j, seed);
    }
}

static bool is_alone(const par_run_options *o, const task *t) {
    return (t->scenario->flags & PAR_ALONE) != 0 && !o->together;
}

static void run_tasks(const par_run_options *o, bool alone, int64_t give_up) {
    int running = 0, limit = alone ? 1 : o->jobs < MAX_JOBS ? o->jobs : MAX_JOBS;
    size_t next = 0;
    for (;;) {
        while (running < limit && next < task_count) {
            const task *t = &tasks[next++];
            if (is_alone(o, t) == alone) {
                jobs[running] = (job){.task = t};
                running += job_start(&jobs[running], o->seed) ? 1 : 0;
            }
        }
        if (running == 0)
            return;
        bool ended[MAX_JOBS] = {false};
        for (int i = 0; give_up != 0 && now() > give_up && i < running; i++) {
            out_of_time = true;
            jobs[i].limit = -1;
            next = task_count;
        }
        wait_for_lines(running, o->seed, ended);
        for (int i = running; i-- > 0;) {
            if (ended[i]) {
                jobs[i] = jobs[--running];
                ended[i] = ended[running];
            }
        }
    }
}

/* Which build of this program ran: runs of two builds need not have the same scenarios. */
static uint64_t program_mark(void) {
    uint64_t hash = 14695981039346656037u;
    FILE *program = fopen("/proc/self/exe", "rb");
    for (int c = program != NULL ? getc(program) : EOF; c != EOF; c = getc(program))
        hash = (hash ^ (uint64_t)c) * 1099511628211u;
    if (program != NULL)
        fclose(program);
    return hash;
}

static void print_header(const par_run_options *o) {
    struct utsname machine;
    char line[256], date[32] = "";
    time_t seconds = time(NULL);
    struct tm tm;
    uname(&machine);
    strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&seconds, &tm));
    fprintf(output, "# parity date %s kernel %s %s seed %u\n", date, machine.release,
            machine.machine, o->seed);
    fprintf(output, "# program %016" PRIx64 "\n", program_mark());
    snprintf(line, sizeof(line), "/proc/%d/exe header", (int)getpid());
    FILE *header = popen(line, "r");
    while (header != NULL && fgets(line, sizeof(line), header) != NULL)
        fputs(line, output);
    if (header != NULL)
        pclose(header);
    FILE *version = fopen("/proc/driver/nvidia/version", "r");
    if (version != NULL && fgets(line, sizeof(line), version) != NULL)
        fprintf(output, "# module %s", line);
    if (version != NULL)
        fclose(version);
    FILE *vendor = fopen("/sys/class/dmi/id/sys_vendor", "r");
    if (vendor != NULL && fgets(line, sizeof(line), vendor) != NULL)
        fprintf(output, "# machine %s", line);
    if (vendor != NULL)
        fclose(vendor);
    fflush(output);
}

int par_run(const par_run_options *options) {
    output = options->output != NULL ? fopen(options->output, "w") : stdout;
    if (output == NULL) {
        perror(options->output);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    int64_t start = now();
    collect(options);
    if (task_count == 0) {
        fprintf(stderr, "parity: no scenario is chosen\n");
        return 2;
    }
    shuffle(options->seed);
    print_header(options);
    int64_t give_up = options->deadline_s > 0 ? start + options->deadline_s * INT64_C(1000) : 0;
    run_tasks(options, false, give_up);
    run_tasks(options, true, give_up);
    free(tasks);
    fprintf(stderr, "parity: %zu processes, %.1f s\n", task_count, (double)(now() - start) / 1000);
    return output == stdout || fclose(output) == 0 ? 0 : 2;
}
