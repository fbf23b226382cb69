/*
 * What the environment asks of softgpu, read once, at the first driver call of the process
 * (secure_getenv). docs/softgpu.md lists the variables; each is named SOFTGPU_<field>. A value that
 * is not understood, and a SOFTGPU_ variable that does not exist, is an error: cuInit fails
 * (entry/verdict.h), because a job that goes on with the default would prove something else.
 */
#ifndef SG_CORE_CONFIG_H
#define SG_CORE_CONFIG_H

#include "softgpu/core/uuid.h"

#include <stdbool.h>
#include <stdint.h>

enum sg_schedule { SG_SCHEDULE_EAGER, SG_SCHEDULE_LATE, SG_SCHEDULE_RANDOM };

struct sg_config {
    int devices;               /* SOFTGPU_DEVICES: 0 to 8; default 1 */
    const char *profile;       /* SOFTGPU_PROFILE: a name in the profile folder, or a path;
                                  default h200 */
    struct sg_uuids uuids;     /* SOFTGPU_UUID: of the first devices, between commas; none leaves
                                  them to the profile */
    uint64_t memory;           /* SOFTGPU_MEMORY: bytes a device, suffixes K M G T; 0 chooses */
    uint64_t address_space;    /* SOFTGPU_ADDRESS_SPACE: bytes of device addresses in all;
                                  0 chooses */
    enum sg_schedule schedule; /* SOFTGPU_SCHEDULE: eager, late, random */
    uint64_t seed;             /* SOFTGPU_SEED; drawn and printed when random and not given */
    unsigned schedule_changes; /* counts sg_config_schedule: a scheduler that drew from an older
                                  seed starts again */
    int workers;               /* SOFTGPU_WORKERS: threads for work that nobody waits for, 1 to 64;
                                  default 2 */
    const char *fault;         /* SOFTGPU_FAULT: function:n:error:mode */
    const char *trace;         /* SOFTGPU_TRACE: file, or "-" for standard error */
    bool leaks;                /* SOFTGPU_LEAKS=1: report live objects at exit */
    bool poison;               /* SOFTGPU_POISON=1: fill fresh and freed memory with a pattern */
    bool fail_on_leaks;        /* SOFTGPU_FAIL_ON: leaks and fault, between commas */
    bool fail_on_fault;
    bool kernels; /* SOFTGPU_KERNELS=1: run kernels of PTX, as far as the engine goes; not yet the
                     default, since much is refused */
    bool abort_on_error; /* SOFTGPU_ABORT=1: a refused call aborts the process */
    int log_level;       /* SOFTGPU_LOG, by name; an enum sg_log_level. Default: warning */
};

/* Thread-safe. Constant after the first call, but for what sg_config_schedule changes. */
const struct sg_config *sg_config(void);

/* With the lock. */
void sg_config_schedule(enum sg_schedule schedule, uint64_t seed);

/* What is not understood, a line each; further ones than fit are left out. */
#define SG_COMPLAINT_LIMIT 16
struct sg_complaints {
    char text[SG_COMPLAINT_LIMIT][448];
    unsigned count;
    bool seed_drawn;
};

/* Reads the environment as it is now. What is not understood leaves the default. */
void sg_config_examine(struct sg_config *config, struct sg_complaints *complaints);
/* The complaints that sg_config had. */
const struct sg_complaints *sg_config_complaints(void);

/* "64M" and the like; false when it is no size or more than 2^63 - 1. */
bool sg_config_size(const char *text, uint64_t *bytes);

enum sg_log_level { SG_LOG_OFF = -1, SG_LOG_ERROR, SG_LOG_WARNING, SG_LOG_INFO, SG_LOG_DEBUG };

/* "softgpu: <level>: <text>" on standard error when the level is wanted. */
void sg_log(enum sg_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for what must not be missed: where standard error is another file at the end of the
 * process, as after a test runner's capture, sg_log_repeat says it again. Thread-safe. */
void sg_log_lasting(enum sg_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sg_log_repeat(void);

#endif
