#include "softgpu/core/config.h"
#include "softgpu/core/chapter.h"

#include "softgpu/core/state.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

static struct sg_config config;

static void complain(struct sg_complaints *complaints, const char *variable, const char *value,
                     const char *accepted) {
    if (complaints->count == SG_COMPLAINT_LIMIT)
        return;
    snprintf(complaints->text[complaints->count++], sizeof complaints->text[0],
             "%s='%.64s' is not understood: it takes %s", variable, value, accepted);
}

/* An empty value counts as unset: that is how shells clear a variable for one command. */
static const char *lookup(const char *variable) {
    const char *value = secure_getenv(variable);
    return value && value[0] ? value : NULL;
}

static bool parse_number(const char *text, uint64_t limit, uint64_t *number) {
    if (text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno || *end || value > limit)
        return false;
    *number = value;
    return true;
}

bool sg_config_size(const char *text, uint64_t *bytes) {
    static const char suffixes[] = "KMGT";
    if (text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno)
        return false;
    unsigned shift = 0;
    if (*end) {
        char upper = (char)(*end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end);
        const char *suffix = strchr(suffixes, upper);
        if (!suffix || end[1])
            return false;
        shift = 10 * (unsigned)(suffix - suffixes + 1);
    }
    if (value > (uint64_t)INT64_MAX >> shift)
        return false;
    *bytes = value << shift;
    return true;
}

static void read_int(struct sg_complaints *complaints, const char *variable, int low, int high,
                     int *field) {
    const char *value = lookup(variable);
    uint64_t number;
    if (!value)
        return;
    if (parse_number(value, (uint64_t)high, &number) && number >= (uint64_t)low) {
        *field = (int)number;
        return;
    }
    char accepted[64];
    snprintf(accepted, sizeof accepted, "a number from %d to %d", low, high);
    complain(complaints, variable, value, accepted);
}

static void read_size(struct sg_complaints *complaints, const char *variable, uint64_t *field) {
    const char *value = lookup(variable);
    if (value && !sg_config_size(value, field))
        complain(complaints, variable, value,
                 "a number of bytes, with K, M, G or T for powers of 1024");
}

static void read_flag(struct sg_complaints *complaints, const char *variable, bool *field) {
    const char *value = lookup(variable);
    if (!value)
        return;
    if (strcmp(value, "0") == 0 || strcmp(value, "1") == 0)
        *field = value[0] == '1';
    else
        complain(complaints, variable, value, "0 or 1");
}

/* Sets *field to the index of the value among `names`, plus `first`. */
static void read_choice(struct sg_complaints *complaints, const char *variable,
                        const char *const *names, unsigned count, int first, int *field) {
    const char *value = lookup(variable);
    if (!value)
        return;
    char accepted[128] = "one of";
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(value, names[i]) == 0) {
            *field = (int)i + first;
            return;
        }
        size_t used = strlen(accepted);
        snprintf(accepted + used, sizeof accepted - used, "%s %s", i ? "," : "", names[i]);
    }
    complain(complaints, variable, value, accepted);
}

/* The memory checker finds what is beyond an allocation, to the byte. */
static void read_bounds(struct sg_complaints *complaints, struct sg_config *into) {
    static const char *const names[] = {"rounded", "exact"};
    int exact = (into->checks & SG_CHECK_MEMORY) != 0;
    read_choice(complaints, "SOFTGPU_BOUNDS", names, 2, 0, &exact);
    into->exact_bounds = exact;
}

static void read_schedule(struct sg_complaints *complaints, struct sg_config *into) {
    static const char *const names[] = {"eager", "late", "random"};
    int schedule = SG_SCHEDULE_EAGER;
    read_choice(complaints, "SOFTGPU_SCHEDULE", names, 3, 0, &schedule);
    into->schedule = (enum sg_schedule)schedule;

    static const char *const lanes[] = {"joined", "independent"};
    int independent = 0;
    read_choice(complaints, "SOFTGPU_LANES", lanes, 2, 0, &independent);
    into->independent_lanes = independent && into->schedule == SG_SCHEDULE_RANDOM;
    if (independent && !into->independent_lanes)
        complain(complaints, "SOFTGPU_LANES", "independent",
                 "that only with SOFTGPU_SCHEDULE=random");

    const char *seed = lookup("SOFTGPU_SEED");
    if (seed && parse_number(seed, UINT64_MAX, &into->seed))
        return;
    if (seed)
        complain(complaints, "SOFTGPU_SEED", seed, "a number below 2^64");
    if (into->schedule != SG_SCHEDULE_RANDOM)
        return;
    /* 32 bits are enough to distinguish runs and short enough to retype. */
    uint32_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        drawn = (uint32_t)sg_now();
    into->seed = drawn;
    complaints->seed_drawn = true;
}

/* More UUIDs than devices are a mistake in one of the two variables. */
static void read_uuids(struct sg_complaints *complaints, struct sg_config *into) {
    const char *value = lookup("SOFTGPU_UUID");
    char why[128], accepted[320];
    CUuuid all[SG_MAX_DEVICES];
    if (!value)
        return;
    bool good = sg_uuids_parse(value, &into->uuids, why, sizeof why);
    if (good && into->uuids.count > into->devices) {
        snprintf(why, sizeof why, "there are %d of them for %d device%s", into->uuids.count,
                 into->devices, into->devices == 1 ? "" : "s");
        good = false;
    }
    if (good && sg_uuids_complete(&into->uuids, into->devices, all, why, sizeof why))
        return;
    into->uuids.count = 0;
    snprintf(accepted, sizeof accepted, "%s; %s", SG_UUID_ACCEPTED, why);
    complain(complaints, "SOFTGPU_UUID", value, accepted);
}

static bool is_word(const char *at, size_t length, const char *word) {
    return length == strlen(word) && memcmp(at, word, length) == 0;
}

/* What "leaks" or "leaks:memory" stands for; 0 for any other word. */
static unsigned leak_kinds(const char *word, size_t length) {
    static const char *const names[] = {[SG_LEAK_OTHER] = "leaks:other",
                                        [SG_LEAK_MEMORY] = "leaks:memory",
                                        [SG_LEAK_MODULES] = "leaks:modules",
                                        [SG_LEAK_STREAMS] = "leaks:streams",
                                        [SG_LEAK_GRAPHS] = "leaks:graphs"};
    if (is_word(word, length, "leaks"))
        return SG_LEAKS_ALL;
    for (unsigned i = 0; i < SG_LEAK_KINDS; i++)
        if (is_word(word, length, names[i]))
            return 1u << i;
    return 0;
}

/* "leaks", which may name a kind, and "fault", separated by commas. */
static void read_fail_on(struct sg_complaints *complaints, struct sg_config *into) {
    const char *value = lookup("SOFTGPU_FAIL_ON");
    for (const char *at = value; at && *at;) {
        size_t length = strcspn(at, ",");
        unsigned kinds = leak_kinds(at, length);
        into->fail_on_leaks |= kinds;
        if (is_word(at, length, "fault"))
            into->fail_on_fault = true;
        else if (!kinds)
            complain(complaints, "SOFTGPU_FAIL_ON", value,
                     "fault, leaks, or leaks of a kind, comma-separated: leaks:memory, "
                     "leaks:modules, leaks:streams, leaks:graphs, leaks:other");
        at += length + (at[length] == ',');
    }
    /* What fails is reported; with SOFTGPU_LEAKS all is. */
    into->leak_kinds = into->leaks ? SG_LEAKS_ALL : into->fail_on_leaks;
    into->leaks = into->leak_kinds != 0;
    if (into->fail_on_fault && !lookup("SOFTGPU_FAULT"))
        complain(complaints, "SOFTGPU_FAIL_ON", value, "fault only with SOFTGPU_FAULT");
}

/* "memory,init" */
static void read_checks(struct sg_complaints *complaints, struct sg_config *into) {
    static const char *const names[] = {"memory", "race", "init", "sync"};
    static const char *const formats[] = {"text", "json"};
    const char *value = lookup("SOFTGPU_CHECK");
    for (const char *at = value; at && *at;) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < 4 && !is_word(at, length, names[i]))
            i++;
        if (i < 4)
            into->checks |= 1u << i;
        else
            complain(complaints, "SOFTGPU_CHECK", value,
                     "memory, race, init and sync, separated by commas");
        at += length + (at[length] == ',');
    }
    int json = 0;
    read_choice(complaints, "SOFTGPU_CHECK_FORMAT", formats, 2, 0, &json);
    into->check_json = json != 0;
    into->check_output = lookup("SOFTGPU_CHECK_OUTPUT");
    into->check_suppress = lookup("SOFTGPU_CHECK_SUPPRESS");
    into->check_kernels = lookup("SOFTGPU_CHECK_KERNELS");
    read_flag(complaints, "SOFTGPU_CHECK_PLAIN_VOLATILE", &into->check_plain_volatile);
    read_int(complaints, "SOFTGPU_CHECK_ERROR_EXIT", 0, 255, &into->check_error_exit);
}

/* "13.3": the number that cuDriverGetVersion returns, 13030. */
static void read_version(struct sg_complaints *complaints, struct sg_config *into) {
    const char *value = lookup("SOFTGPU_DRIVER_VERSION");
    char accepted[64];
    unsigned major, minor;
    int length = 0;
    if (!value)
        return;
    if (value[0] >= '1' && value[0] <= '9' &&
        sscanf(value, "%2u.%1u%n", &major, &minor, &length) == 2 && value[length] == '\0' &&
        (int)(major * 1000 + minor * 10) >= SG_OLDEST_DRIVER_VERSION) {
        into->driver_version = (int)(major * 1000 + minor * 10);
        return;
    }
    snprintf(accepted, sizeof accepted, "a version of CUDA from %d.%d on",
             SG_OLDEST_DRIVER_VERSION / 1000, SG_OLDEST_DRIVER_VERSION % 1000 / 10);
    complain(complaints, "SOFTGPU_DRIVER_VERSION", value, accepted);
}

static void read_ptx(struct sg_complaints *complaints, struct sg_config *into) {
    static const char *const names[] = {"newest", "driver"};
    int choice = 0;
    read_choice(complaints, "SOFTGPU_PTX", names, 2, 0, &choice);
    into->ptx_of_driver = choice == 1;
}

/* A misspelt name is as wrong as a misspelt value. */
static void look_for_others(struct sg_complaints *complaints) {
    static const char *const names[] = {"LOG",
                                        "DEVICES",
                                        "PROFILE",
                                        "MEMORY",
                                        "ADDRESS_SPACE",
                                        "WORKERS",
                                        "SCHEDULE",
                                        "SEED",
                                        "LANES",
                                        "LEAKS",
                                        "POISON",
                                        "BOUNDS",
                                        "ABORT",
                                        "FAIL_ON",
                                        "FAULT",
                                        "TRACE",
                                        "JOB",
                                        "UUID",
                                        "KERNELS",
                                        "DRIVER_VERSION",
                                        "PTX",
                                        "KERNEL_LIMIT",
                                        "KERNEL_WORKERS",
                                        "PROFILE_KERNELS",
                                        "CHECK",
                                        "CHECK_FORMAT",
                                        "CHECK_OUTPUT",
                                        "CHECK_SUPPRESS",
                                        "CHECK_KERNELS",
                                        "CHECK_PLAIN_VOLATILE",
                                        "CHECK_ERROR_EXIT"};
    const size_t count = sizeof names / sizeof names[0];
    for (char **at = environ; at && *at; at++) {
        if (strncmp(*at, "SOFTGPU_", 8) != 0)
            continue;
        const char *name = *at + 8;
        size_t length = strcspn(name, "="), i = 0;
        while (i < count && (strlen(names[i]) != length || memcmp(name, names[i], length) != 0))
            i++;
        bool known = i < count || !name[length] || !name[length + 1];
        if (!known && complaints->count < SG_COMPLAINT_LIMIT)
            snprintf(complaints->text[complaints->count++], sizeof complaints->text[0],
                     "SOFTGPU_%.*s is no variable of softgpu; docs/softgpu.md lists them",
                     length > 64 ? 64 : (int)length, name);
    }
}

static int default_kernel_workers(void) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < 1 ? 1 : processors > 8 ? 8 : (int)processors;
}

static void read_all(struct sg_complaints *complaints, struct sg_config *into) {
    static const char *const levels[] = {"off", "error", "warning", "info", "debug"};
    *into = (struct sg_config){.devices = 1,
                               .profile = "h200",
                               .workers = 2,
                               .kernels = true,
                               .kernel_workers = default_kernel_workers(),
                               .log_level = SG_LOG_WARNING};
    read_choice(complaints, "SOFTGPU_LOG", levels, 5, SG_LOG_OFF, &into->log_level);
    read_int(complaints, "SOFTGPU_DEVICES", 0, SG_MAX_DEVICES, &into->devices);
    read_uuids(complaints, into);
    read_size(complaints, "SOFTGPU_MEMORY", &into->memory);
    read_size(complaints, "SOFTGPU_ADDRESS_SPACE", &into->address_space);
    read_int(complaints, "SOFTGPU_WORKERS", 1, 64, &into->workers);
    read_int(complaints, "SOFTGPU_KERNEL_WORKERS", 1, 64, &into->kernel_workers);
    read_schedule(complaints, into);
    read_flag(complaints, "SOFTGPU_LEAKS", &into->leaks);
    read_flag(complaints, "SOFTGPU_POISON", &into->poison);
    read_flag(complaints, "SOFTGPU_ABORT", &into->abort_on_error);
    read_flag(complaints, "SOFTGPU_KERNELS", &into->kernels);
    read_version(complaints, into);
    read_ptx(complaints, into);
    read_int(complaints, "SOFTGPU_KERNEL_LIMIT", 0, 86400, &into->kernel_limit);
    read_fail_on(complaints, into);
    read_checks(complaints, into);
    read_bounds(complaints, into);
    if (getauxval(AT_SECURE) == 0)
        look_for_others(complaints);
    const char *profile = lookup("SOFTGPU_PROFILE");
    if (profile)
        into->profile = profile;
    into->fault = lookup("SOFTGPU_FAULT");
    into->trace = lookup("SOFTGPU_TRACE");
    into->profile_kernels = lookup("SOFTGPU_PROFILE_KERNELS");
}

static struct sg_complaints first_complaints;

static void read_first(void) {
    read_all(&first_complaints, &config);
}

const struct sg_config *sg_config(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_first);
    return &config;
}

const struct sg_complaints *sg_config_complaints(void) {
    (void)sg_config();
    return &first_complaints;
}

void sg_config_examine(struct sg_config *into, struct sg_complaints *complaints) {
    *complaints = (struct sg_complaints){.count = 0};
    read_all(complaints, into);
}

void sg_config_schedule(enum sg_schedule schedule, uint64_t seed) {
    config.schedule = schedule;
    config.seed = seed;
    config.schedule_changes++;
}
