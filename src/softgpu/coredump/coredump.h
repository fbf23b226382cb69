/*
 * Core dump settings, and what softgpu writes instead of a core dump.
 *
 * A context copies the settings of the process when it begins, and has its own from then on. What
 * an environment variable has set stays as it is, for the process and for its contexts. When they
 * are enabled and the context faults, a text is written to the file that they name: which device,
 * context and queued work, what error, what the device held. It is softgpu's own, not the format of
 * NVIDIA's core dumps; no program is ended after it, whatever the flags say, and nothing listens to
 * the pipe that can be named.
 *
 * In the file's name %h is the host, %p the process, %t the time in seconds, %% a percent sign.
 */
#ifndef SG_COREDUMP_COREDUMP_H
#define SG_COREDUMP_COREDUMP_H

#include <gpumem/cuda_api.h>
#include <stdbool.h>
#include <stdint.h>

#define SG_COREDUMP_NAME 1024 /* with its zero: the size that the driver asks for */

struct sg_coredump {
    /* As they are read back: an H200 keeps the byte of the first and the last of these. */
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
extern unsigned sg_coredump_fixed; /* by the environment: a bit for each of CUcoredumpSettings */

/* cuInit's work: the settings of the process begin, with what the environment says of them. */
CUresult sg_coredumps_init(void);
/* Puts what the environment says into `settings` and `pipe`, and tells which settings those are: a
 * bit (1 << CUcoredumpSettings) for each. */
unsigned sg_coredump_environment(struct sg_coredump *settings, char pipe[SG_COREDUMP_NAME]);

/* What a context begins with; `flags` are the context's own. */
void sg_coredump_begin(struct sg_coredump *settings, unsigned flags);

/* With the big lock: remembers what is to be written, by the next call that leaves the driver. */
void sg_coredump_fault(const struct sg_faulted *faulted, CUresult error);
/* With the big lock, before a fault of queued work and after it (zeros): whose it is. */
void sg_coredump_work(uint64_t stream, uint64_t operation);
/* Without it. When it returns, all that were remembered before are written. */
void sg_coredumps_write(void);

#endif
