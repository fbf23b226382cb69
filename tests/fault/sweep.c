#include "sweep.h"
#include "checks.h"

#include "descriptors.h"
#include "operations.h"
#include "refused_memory.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gpumem/cuda_api.h>

/* A sweep that goes on for ever is one whose act is never left without a fault. */
#define CALL_LIMIT 5000

static const softgpu_control *soft;
static CUresult (*exchange_mode)(CUstreamCaptureMode *);

static const struct mode {
    const char *name;
    softgpu_fault_mode mode;
    int error;
    enum sweep_part part;
    bool may_succeed; /* running out of memory is answered by making room and trying again */
    bool host;        /* no driver call fails, but the library's n-th request for host memory */
} modes[] = {
    {"refused", SOFTGPU_FAULT_BEFORE, CUDA_ERROR_UNKNOWN, SWEEP_REFUSED, false, false},
    {"after its effect", SOFTGPU_FAULT_AFTER, CUDA_ERROR_ILLEGAL_ADDRESS, SWEEP_FAULTED, false,
     false},
    {"out of memory", SOFTGPU_FAULT_BEFORE, CUDA_ERROR_OUT_OF_MEMORY, SWEEP_REFUSED, true, false},
    {"from here on", SOFTGPU_FAULT_FROM, CUDA_ERROR_ILLEGAL_ADDRESS, SWEEP_FAULTED, false, false},
    {"without host memory", SOFTGPU_FAULT_BEFORE, 0, SWEEP_REFUSED, true, true},
};

void sweep_with(const softgpu_control *control) {
    Dl_info info;
    soft = control;
    operations_of(control);
    void *engine = dladdr(control, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    assert_non_null(engine);
    void *found = dlsym(engine, "cuThreadExchangeStreamCaptureMode");
    memcpy(&exchange_mode, &found, sizeof found);
    assert_non_null(exchange_mode);
}

/* A driver that refuses everything from here on refuses to put the thread's capture mode back, too,
 * as in a poisoned context: nobody could. */
static void put_mode_back(const struct mode *mode) {
    CUstreamCaptureMode usual = CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (mode->mode == SOFTGPU_FAULT_FROM)
        OK_CU(exchange_mode(&usual));
}

/* ---- What is compared ------------------------------------------------------------------------ */

struct snapshot {
    char *state;
    size_t descriptors, mappings;
};

static void print_descriptors(void) {
    char path[32], target[256];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length > 0)
            print_error("  %d %.*s\n", fd, (int)length, target);
    }
}

static size_t count_mappings(void) {
    static char text[64 * 1024];
    size_t count = 0;
    ssize_t got;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    while ((got = read(fd, text, sizeof text)) > 0)
        for (ssize_t i = 0; i < got; i++)
            count += text[i] == '\n';
    assert_int_equal(got, 0);
    close(fd);
    return count;
}

static void take(struct snapshot *snapshot) {
    snapshot->state = soft->state_dump();
    assert_non_null(snapshot->state);
    snapshot->descriptors = open_descriptors();
    snapshot->mappings = count_mappings();
}

/* A sanitizer maps shadow for memory as it is touched. */
static bool mappings_tell(void) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
    return false;
#else
    return true;
#endif
#else
    return true;
#endif
}

static void drop(struct snapshot *snapshot) {
    soft->free_text(snapshot->state);
}

static bool has_line(const char *text, const char *line, size_t length) {
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        if (strcspn(text, "\n") == length && memcmp(text, line, length) == 0)
            return true;
    return false;
}

static void print_missing(const char *sign, const char *text, const char *other) {
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        size_t length = strcspn(text, "\n");
        if (length > 0 && !has_line(other, text, length))
            print_error("  %s %.*s\n", sign, (int)length, text);
    }
}

/* ---- Less of the same ------------------------------------------------------------------------ */

#define MOST_NUMBERS 12
#define MOST_SORTS   64

/* Lines that differ in numbers only: how many, and the sum of each number. What stands before the
 * first colon names an object, and is no quantity. */
struct sort {
    char words[160];
    unsigned count;
    uint64_t sums[MOST_NUMBERS];
};

static void add_line(struct sort *sort, const char *line, size_t length) {
    const char *colon = memchr(line, ':', length);
    size_t written = 0;
    unsigned numbers = 0;
    sort->count = 1;
    for (size_t i = 0; i < length && written + 1 < sizeof sort->words;) {
        if (line[i] < '0' || line[i] > '9') {
            sort->words[written++] = line[i++];
            continue;
        }
        char *end;
        uint64_t value = strtoull(line + i, &end, 10);
        sort->words[written++] = '#';
        if ((!colon || line + i > colon) && numbers < MOST_NUMBERS)
            sort->sums[numbers++] = value;
        i = (size_t)(end - line);
    }
}

static size_t sort_lines(const char *text, struct sort sorts[MOST_SORTS]) {
    size_t count = 0;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        struct sort line = {.count = 0};
        add_line(&line, text, strcspn(text, "\n"));
        size_t i = 0;
        while (i < count && strcmp(sorts[i].words, line.words) != 0)
            i++;
        assert_true(i < MOST_SORTS);
        if (i == count)
            sorts[count++] = (struct sort){0};
        memcpy(sorts[i].words, line.words, sizeof line.words);
        sorts[i].count += line.count;
        for (size_t n = 0; n < MOST_NUMBERS; n++)
            sorts[i].sums[n] += line.sums[n];
    }
    return count;
}

static bool is_no_more(const struct sort *after, const struct sort *before, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(before[i].words, after->words) != 0)
            continue;
        bool more = after->count > before[i].count;
        for (size_t n = 0; n < MOST_NUMBERS; n++)
            more |= after->sums[n] > before[i].sums[n];
        return !more;
    }
    return false;
}

static bool is_less_of_the_same(const char *before, const char *after) {
    static struct sort was[MOST_SORTS], is[MOST_SORTS];
    size_t had = sort_lines(before, was), has = sort_lines(after, is);
    for (size_t i = 0; i < has; i++)
        if (!is_no_more(&is[i], was, had))
            return false;
    return true;
}

/* ---- One run --------------------------------------------------------------------------------- */

struct run {
    const struct sweep *sweep;
    const struct mode *mode;
    unsigned call;
    struct snapshot before;
    uint64_t lost_before;
};

static void complain(const struct run *run, const char *what) {
    print_error("%s, call %u %s: %s\n", run->sweep->name, run->call, run->mode->name, what);
}

static void compare(const struct run *run) {
    struct snapshot after;
    uint64_t lost = run->sweep->lost ? run->sweep->lost(run->sweep->user) : 0;
    take(&after);
    bool same = run->sweep->caches_may_shrink ? is_less_of_the_same(run->before.state, after.state)
                                              : strcmp(run->before.state, after.state) == 0;
    bool excused = lost > run->lost_before;
    if (!same && !excused) {
        complain(run, "the state is not what it was");
        print_missing("-", run->before.state, after.state);
        print_missing("+", after.state, run->before.state);
        fail();
    }
    bool fewer = run->sweep->caches_may_shrink && after.descriptors < run->before.descriptors;
    if (after.descriptors != run->before.descriptors && !fewer && !excused) {
        complain(run, "open descriptors are not what they were; now:");
        print_descriptors();
        assert_int_equal(after.descriptors, run->before.descriptors);
    }
    drop(&after);
}

static void arm(const struct run *run) {
    if (run->mode->host) {
        refuse_memory(run->call);
        return;
    }
    assert_int_equal(soft->fault_arm("*", run->call, run->mode->error, run->mode->mode), 0);
    operations_sweep_begins(run->call);
}

static uint64_t disarm(const struct run *run) {
    if (run->mode->host)
        return end_refusal();
    operations_sweep_ends();
    return soft->fault_disarm();
}

/* True when the fault did not come to pass: the sweep is over. */
static bool run_once(struct run *run) {
    const struct sweep *sweep = run->sweep;
    if (sweep->prepare)
        sweep->prepare(sweep->user);
    take(&run->before);
    run->lost_before = sweep->lost ? sweep->lost(sweep->user) : 0;
    arm(run);
    int result = sweep->act(sweep->user);
    uint64_t fired = disarm(run);
    put_mode_back(run->mode);
    bool excused = sweep->may_succeed || run->mode->may_succeed;
    if (fired > 0 && result == 0 && !excused) {
        complain(run, "it reports success");
        fail();
    }
    if (fired == 0 && result != 0) {
        complain(run, "it fails without a fault");
        if (sweep->explain)
            print_error("  %s\n", sweep->explain());
        fail();
    }
    if (result == 0)
        sweep->undo(sweep->user);
    else if (sweep->recover)
        sweep->recover(sweep->user);
    compare(run);
    drop(&run->before);
    return fired == 0;
}

/* Twice without a fault: what is made on first use is there then. */
static void warm_up(const struct sweep *sweep) {
    for (int i = 0; i < 2; i++) {
        int result = sweep->act(sweep->user);
        if (result != 0)
            fail_msg("%s fails without a fault: %d", sweep->name, result);
        sweep->undo(sweep->user);
    }
}

void sweep_run(const struct sweep *sweep) {
    warm_up(sweep);
    size_t mappings = count_mappings();
    uint64_t lost = sweep->lost ? sweep->lost(sweep->user) : 0;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        struct run run = {.sweep = sweep, .mode = &modes[m], .call = 1};
        if (sweep->part != SWEEP_ALL && sweep->part != modes[m].part)
            continue;
        if (modes[m].host && sweep->needs_host_memory)
            continue;
        while (!run_once(&run))
            if (++run.call > CALL_LIMIT)
                fail_msg("%s makes more than %d driver calls", sweep->name, CALL_LIMIT);
        /* A sweep that met no call shows nothing; not every act needs memory of the host's. */
        assert_true(run.call > 1 || run.mode->host);
        print_message("%s, %s: %u calls\n", sweep->name, modes[m].name, run.call - 1);
    }
    if (sweep->lost)
        lost = sweep->lost(sweep->user) - lost;
    size_t after = count_mappings();
    if (mappings_tell() && after > mappings + MAP_TOLERANCE + MAPS_PER_LOST * lost)
        fail_msg("%s: %zu mappings have become %zu", sweep->name, mappings, after);
}
