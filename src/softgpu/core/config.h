/*
 * What the environment asks of softgpu, read once, at the first driver call of the process
 * (secure_getenv). docs/softgpu.md lists the variables; each is named SOFTGPU_<field>. An invalid
 * value or an unknown SOFTGPU_ variable is an error: cuInit fails (entry/verdict.h), because a job
 * that continued with the default would prove something else.
 */
#ifndef SG_CORE_CONFIG_H
#define SG_CORE_CONFIG_H

#include "softgpu/core/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Versions of CUDA. That of the newest function in functions.def, which rows.c checks: */
#define SG_FUNCTIONS_VERSION 13000
/* what the driver says that it is, unless a setting or the profile says otherwise: */
#define SG_DRIVER_VERSION 13000
/* and the oldest that these may say: programs that ask an older driver get other ABIs than those
 * that were recorded. */
#define SG_OLDEST_DRIVER_VERSION 13000

/* Checkers: src/softgpu/check. */
#define SG_CHECK_MEMORY 1u
#define SG_CHECK_RACE   2u
#define SG_CHECK_INIT   4u
#define SG_CHECK_SYNC   8u

enum sg_schedule { SG_SCHEDULE_EAGER, SG_SCHEDULE_LATE, SG_SCHEDULE_RANDOM };

struct sg_config {
    int devices;               /* SOFTGPU_DEVICES: 0 to 8; default 1 */
    const char *profile;       /* SOFTGPU_PROFILE: a name in the profile folder, or a path;
                                  default h200 */
    struct sg_uuids uuids;     /* SOFTGPU_UUID: of the first devices, comma-separated; if unset,
                                  the profile's */
    uint64_t memory;           /* SOFTGPU_MEMORY: bytes per device, suffix K M G T; 0: automatic */
    uint64_t address_space;    /* SOFTGPU_ADDRESS_SPACE: bytes of device addresses in all;
                                  0: automatic */
    enum sg_schedule schedule; /* SOFTGPU_SCHEDULE: eager, late, random */
    uint64_t seed;             /* SOFTGPU_SEED; drawn and printed if random and not given */
    bool independent_lanes;    /* SOFTGPU_LANES: joined or independent; the latter only if random */
    unsigned schedule_changes; /* counts calls of sg_config_schedule: a scheduler with an older
                                  seed restarts */
    int workers;               /* SOFTGPU_WORKERS: threads for work that nobody waits for, 1 to 64;
                                  default 2 */
    int kernel_workers;        /* SOFTGPU_KERNEL_WORKERS: threads that run blocks of one kernel, 1
                                  to 64; default: the processors, at most 8 */
    int driver_version;        /* SOFTGPU_DRIVER_VERSION: as cuDriverGetVersion returns it; 0: the
                                  profile's */
    bool ptx_of_driver;        /* SOFTGPU_PTX=driver: a text newer than the driver's version is
                                  refused; newest, the default: one newer than the reader */
    const char *fault;         /* SOFTGPU_FAULT: function:n:error:mode */
    const char *trace;         /* SOFTGPU_TRACE: file, or "-" for standard error */
    bool leaks;                /* SOFTGPU_LEAKS=1: report live objects at exit */
    bool poison;               /* SOFTGPU_POISON=1: fill fresh and freed memory with a pattern */
    bool exact_bounds;         /* SOFTGPU_BOUNDS: exact; rounded, the default: kernels may use the
                                  rest of the bytes that an allocation is rounded up to */
    unsigned leak_kinds;       /* which are reported: bits of enum sg_leak_kind */
    unsigned fail_on_leaks;    /* SOFTGPU_FAIL_ON: which fail, and whether a missed fault does */
    bool fail_on_fault;
    bool kernels; /* SOFTGPU_KERNELS=0: launches are checked and captured, and else refused; nothing
                     runs. Default: kernels of PTX run */
    int kernel_limit; /* SOFTGPU_KERNEL_LIMIT: seconds after which a kernel that still runs is
                            ended, 1 to 86400; 0, the default: never */
    const char *profile_kernels; /* SOFTGPU_PROFILE_KERNELS: file, or "-" for standard error; NULL:
                                    kernels are not counted */
    unsigned checks;            /* SOFTGPU_CHECK: memory, race, init, sync, comma-separated: bits */
    bool check_json;            /* SOFTGPU_CHECK_FORMAT: text or json */
    const char *check_output;   /* SOFTGPU_CHECK_OUTPUT: a file; NULL: standard error */
    const char *check_suppress; /* SOFTGPU_CHECK_SUPPRESS: a file, or NULL */
    const char *check_kernels;  /* SOFTGPU_CHECK_KERNELS: globs, comma-separated; NULL: all */
    bool check_plain_volatile;  /* SOFTGPU_CHECK_PLAIN_VOLATILE=1: volatile accesses may race */
    int check_error_exit;       /* SOFTGPU_CHECK_ERROR_EXIT: the status of a process in which errors
                                   were found, 1 to 255; 0, the default: its own */
    bool abort_on_error;        /* SOFTGPU_ABORT=1: a refused call aborts the process */
    int log_level;              /* SOFTGPU_LOG, by name; an enum sg_log_level. Default: warning */
};

/* Bytes behind each allocation that belong to nobody, so that running over its end is seen. */
#define SG_RED_ZONE ((size_t)512)
static inline size_t sg_red_zone(const struct sg_config *config) {
    return config->checks & SG_CHECK_MEMORY ? SG_RED_ZONE : 0;
}

/* The bytes of an allocation that kernels may touch: what it is rounded up to, unless bounds are
 * exact. They are nobody else's. Hardware knows no bounds but those of its pages, of 2 MiB. */
#define SG_BOUND          512u
#define SG_VARIABLE_BOUND 256u
static inline uint64_t sg_bounds(const struct sg_config *config, uint64_t start, uint64_t size,
                                 unsigned unit) {
    return config->exact_bounds ? size : (start + size + unit - 1) / unit * unit - start;
}

/* Thread-safe. Constant after the first call, except for what sg_config_schedule changes. */
const struct sg_config *sg_config(void);

/* With the lock. */
void sg_config_schedule(enum sg_schedule schedule, uint64_t seed);

/* Invalid settings, one line each; those that do not fit are omitted. */
#define SG_COMPLAINT_LIMIT 16
struct sg_complaints {
    char text[SG_COMPLAINT_LIMIT][448];
    unsigned count;
    bool seed_drawn;
};

/* Reads the environment as it is now. Invalid settings keep the default. */
void sg_config_examine(struct sg_config *config, struct sg_complaints *complaints);
/* The complaints from sg_config's reading. */
const struct sg_complaints *sg_config_complaints(void);

/* "64M" and the like; false if it is not a size or exceeds 2^63 - 1. */
bool sg_config_size(const char *text, uint64_t *bytes);

enum sg_log_level { SG_LOG_OFF = -1, SG_LOG_ERROR, SG_LOG_WARNING, SG_LOG_INFO, SG_LOG_DEBUG };

/* "softgpu: <level>: <text>" on standard error if the level is enabled. */
void sg_log(enum sg_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for messages that must not be missed: if standard error is another file at the end of
 * the process, as after a test runner's capture, sg_log_repeat prints them again. Thread-safe. */
void sg_log_lasting(enum sg_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sg_log_repeat(void);

#endif
