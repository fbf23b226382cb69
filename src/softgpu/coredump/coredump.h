/*
 * Core dump settings, and what softgpu writes instead of a core dump.
 *
 * A context copies the settings of the process when it is created, and has its own from then on. A
 * setting made by an environment variable cannot be changed, in the process or its contexts. If
 * core dumps are enabled and the context faults, a text is written to the configured file: the
 * device, context and queued work, the error, and what the device held. The format is softgpu's
 * own, not that of NVIDIA's core dumps; the program is not ended afterwards, whatever the flags
 * say, and nothing listens to the pipe that can be named.
 *
 * In the file's name %h is the host, %p the process, %t the time in seconds, %% a percent sign.
 */
#ifndef SG_COREDUMP_COREDUMP_H
#define SG_COREDUMP_COREDUMP_H

#include <gpumem/cuda_api.h>
#include <stdbool.h>
#include <stdint.h>

#define SG_COREDUMP_NAME 1024 /* with the terminating zero: the size that the driver requires */

struct sg_coredump {
    /* The values to be read back: an H200 keeps a byte of the first and the last of these. */
    unsigned char on_exception, trigger_host, lightweight, user_trigger;
    unsigned flags; /* CUCoredumpGenerationFlags */
    char file[SG_COREDUMP_NAME];
};

/* A context that faults. */
struct sg_faulted {
    const struct sg_coredump *settings;
    int device;
    uint64_t id, handle;
    bool primary;
};

/* The settings of the process, and what they were when it began. Guarded by the big lock. */
extern struct sg_coredump sg_coredump_process, sg_coredump_initial;
extern char sg_coredump_pipe[SG_COREDUMP_NAME];
extern unsigned sg_coredump_fixed; /* from the environment: a bit per CUcoredumpSettings */

/* cuInit's work: initializes the settings of the process, including those from the environment. */
CUresult sg_coredumps_init(void);
/* Stores the environment's settings in `settings` and `pipe`, and returns which ones they are: a
 * bit (1 << CUcoredumpSettings) for each. */
unsigned sg_coredump_environment(struct sg_coredump *settings, char pipe[SG_COREDUMP_NAME]);

/* Initializes a context's settings; `flags` are the context's own. */
void sg_coredump_begin(struct sg_coredump *settings, unsigned flags);

/* With the big lock: records what the next call that leaves the driver must write. */
void sg_coredump_fault(const struct sg_faulted *faulted, CUresult error);
/* With the big lock, before a fault of queued work, and after it with zeros: identifies the work.
 */
void sg_coredump_work(uint64_t stream, uint64_t operation);
/* With the big lock, likewise: what is known of a kernel's fault, as lines; NULL afterwards. The
 * text stays the caller's. */
void sg_coredump_report(const char *report);
/* Without it. On return, all faults recorded before have been written. */
void sg_coredumps_write(void);

#endif
