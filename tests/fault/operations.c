#include "operations.h"

#include "test.h"

#include <stdatomic.h>
#include <sys/stat.h>

/* Where each file's processes write what they counted, for test_every_operation.py. */
#define RESULTS GPUMEM_BINARY_DIR "/tests/fault/counts"

#define MOST 512

struct counts {
    atomic_ullong calls, driver_calls, in_sweeps, failed;
};

static struct counts counts[MOST];
static _Atomic(const softgpu_control *) soft;
static atomic_ullong failing; /* the number of the driver call that fails; 0: no sweep */
static unsigned depth;        /* of the first thread */

/* Those that a fault can meet: names and texts of errors always answer. */
static uint64_t driver_calls(void) {
    const softgpu_control *control = atomic_load(&soft);
    if (!control)
        return 0;
    return control->call_count(NULL) - control->call_count("cuGetErrorName") -
           control->call_count("cuGetErrorString");
}

void operations_of(const softgpu_control *control) {
    atomic_store(&soft, control);
}

void operations_sweep_begins(uint64_t n) {
    atomic_store(&failing, driver_calls() + n);
}

void operations_sweep_ends(void) {
    atomic_store(&failing, 0);
}

static int in_first_thread(void) {
    return getpid() == gettid();
}

struct operation_entry operation_enter(size_t number) {
    struct operation_entry entry = {.number = number};
    if (in_first_thread() && depth++ == 0)
        entry.calls = driver_calls();
    return entry;
}

static void raise_to(atomic_ullong *highest, uint64_t value) {
    unsigned long long now = atomic_load(highest);
    while (now < value && !atomic_compare_exchange_weak(highest, &now, value))
        continue;
}

void operation_leave(const struct operation_entry *entry, int good) {
    if (!in_first_thread() || --depth > 0)
        return;
    struct counts *of = &counts[entry->number];
    uint64_t now = driver_calls(), at = atomic_load(&failing);
    if (good)
        atomic_fetch_add(&of->calls, 1);
    raise_to(&of->driver_calls, now - entry->calls);
    if (!at)
        return;
    atomic_fetch_add(&of->in_sweeps, 1);
    if (entry->calls < at && at <= now)
        atomic_fetch_add(&of->failed, 1);
}

/* A file's counts begin with the program that they are of: its size and the time of its making. */
static int begin_counts(bool child) {
    char path[sizeof RESULTS + 96];
    struct stat program;
    if (child || test_pattern())
        return 0; /* a child has its parent's environment; and some tests are not all */
    (void)mkdir(RESULTS, 0777);
    snprintf(path, sizeof path, RESULTS "/%s", test_file());
    FILE *file = fopen(path, "we");
    if (!file || stat("/proc/self/exe", &program) != 0) {
        perror(path);
        return 1;
    }
    fprintf(file, "program %lld %lld\n", (long long)program.st_size,
            (long long)program.st_mtim.tv_sec);
    return fclose(file) != 0 || setenv("GPUMEM_OPERATIONS", path, 1) != 0;
}

const struct test_folder test_folder = {.begin = begin_counts};

__attribute__((destructor)) static void write_counts(void) {
    const char *path = getenv("GPUMEM_OPERATIONS");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file)
        return;
    for (size_t i = 0; i < operation_count; i++)
        fprintf(file, "%s %llu %llu %llu %llu\n", operation_names[i], counts[i].calls,
                counts[i].driver_calls, counts[i].in_sweeps, counts[i].failed);
    if (fclose(file) != 0)
        perror(path);
}
