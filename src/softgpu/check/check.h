/*
 * Checkers watch kernels (engine/watch.h) and the calls around them, and report hazards.
 * SOFTGPU_CHECK chooses them. A checker is a row of a table. All report to one list, in which the
 * same hazard at the same place is written once and counted.
 */
#ifndef SG_CHECK_CHECK_H
#define SG_CHECK_CHECK_H

#include "softgpu/context/context.h"
#include "softgpu/core/config.h"
#include "softgpu/engine/engine.h"
#include "softgpu/engine/watch.h"

struct sg_op;

/* ---- hazards --------------------------------------------------------------------------------- */

enum sg_hazard_level { SG_HAZARD_INFO, SG_HAZARD_WARNING, SG_HAZARD_ERROR, SG_HAZARD_LEVELS };

/* A place in a kernel, and a thread there. Names must be valid until the report returns. */
struct sg_hazard_place {
    const char *kernel;   /* NULL: not in a kernel; all else is ignored */
    const char *function; /* a function that it calls; NULL: the kernel itself */
    uint32_t line;        /* of the PTX */
    char text[168];       /* that line, truncated */
    const char *file;     /* the source file that .loc names; NULL: unknown */
    uint32_t source_line;
    unsigned block[3], thread[3];
};

struct sg_hazard {
    const char *check; /* "memory", "race", … */
    const char *kind;  /* of lower-case letters and '-', for suppressions */
    enum sg_hazard_level level;
    struct sg_hazard_place place,
        other;              /* other: the other side of a race; its kernel is NULL if there is
                               none */
    const char *other_says; /* "written by", … */
    bool has_address, write;
    const char *space; /* "global", … */
    uint64_t address;
    bool cluster; /* shared memory of a cluster: the block's rank is from bit 24 on */
    uint32_t size;
    const char *what;    /* one line, without address, place and kernel */
    const char *details; /* lines that end with '\n', such as the nearest allocation; or NULL */
};

/*
 * Writes a hazard, unless it is suppressed; one that has been written before is only counted.
 * Hazards are the same if check, kind, kernel and lines are equal and, without a kernel, `what`.
 * From any thread, with or without the lock.
 */
void sg_hazard_report(const struct sg_hazard *hazard);
/* Hazards of a level so far, including repeated ones but not suppressed ones. */
uint64_t sg_hazard_count(enum sg_hazard_level level);

/* ---- launches that are checked --------------------------------------------------------------- */

struct sg_check_launch {
    const struct sg_program *program;
    const char *ptx; /* its text, or NULL */
    struct sg_context *context;
    const struct sg_op *op; /* its stream and number */
    unsigned grid[3], block[3], dynamic_shared;
    unsigned cluster[3]; /* blocks; zeros: no clusters */
    int device;
    bool early; /* it may begin before the kernel before it in its stream has ended */
    bool cooperative, clustered; /* clustered: blocks reach each other's shared memory */
    bool quiet;                  /* the kernel is not among those chosen: nothing is reported */
    const uint64_t *variables;   /* device addresses, by the program's variables */
    /* The allocation around an address, as in sg_grid_launch: takes the lock. */
    bool (*extent)(void *user, uint64_t address, uint64_t *low, uint64_t *length);
    /* Whether an address is in the heap of kernels: takes the lock. */
    bool (*in_heap)(void *user, uint64_t address);
    void *user;
};

/* Fills in the place of an instruction, and the thread and block (NULL: zeros). */
void sg_hazard_place(const struct sg_check_launch *launch, uint32_t instruction,
                     const unsigned block[3], unsigned thread, struct sg_hazard_place *place);

/* The same without a thread; `ptx`: the text, or NULL. */
void sg_program_place(const struct sg_program *program, const char *ptx, uint32_t instruction,
                      struct sg_hazard_place *place);

/* Writes a line of a PTX text, without surrounding white space; a statement that does not end there
 * is continued with the lines that follow. "" without a text; cut off at `size`. */
void sg_ptx_line(const char *ptx, uint32_t line, char *text, size_t size);

/* Writes the calls that led to a fault, innermost first: a line for each, or "". */
void sg_fault_calls(const struct sg_program *program, const struct sg_grid_fault *fault, char *text,
                    size_t size);

struct sg_checker {
    const char *name;
    unsigned check;               /* SG_CHECK_… */
    const struct sg_watch *watch; /* its `user` is the result of `begin`; NULL: it does not watch
                                     grids */
    /* Called once, when the checks are known; may be NULL. */
    void (*start)(void);
    /* Before the first slice of a launch; `launch` does not change until the end. Without the lock.
     * NULL: out of memory; then this launch is not checked. */
    void *(*begin)(const struct sg_check_launch *launch);
    /* When the launch is over, with its fault or NULL. Without the lock; with it if the launch was
     * given up, which then has no fault. Returns SUCCESS, or the error with which hardware would
     * have failed. */
    CUresult (*end)(void *state, const struct sg_grid_fault *fault);
    /* At the end of the process, with the lock; may be NULL. */
    void (*finish)(void);
    bool all; /* it has to watch all kernels: `begin` is called also for those not chosen */
};

/* All that is chosen and watches one launch. NULL: none does. */
struct sg_checking;
/* Does any watch this kernel? */
bool sg_check_wants(const char *kernel);
/* Is it one that is reported on? */
bool sg_check_names(const char *kernel);
/* OUT_OF_MEMORY; *checking is set on success only. The grid then has its watch and user. */
CUresult sg_checking_new(struct sg_checking **checking);
const struct sg_watch *sg_checking_watch(void);
/* The launch begins: calls all checkers. What `launch` points to must outlive it. */
void sg_checking_begin(struct sg_checking *checking, const struct sg_check_launch *launch);
bool sg_checking_begun(const struct sg_checking *checking);
CUresult sg_checking_end(struct sg_checking *checking, const struct sg_grid_fault *fault);
/* Frees it, after ending it if it has begun. NULL is allowed. */
void sg_checking_free(struct sg_checking *checking);

/* ---- the process ----------------------------------------------------------------------------- */

/* Opens the output and reads the suppressions; false, with the reason in `why`, if that fails.
 * Once, without the lock. */
bool sg_check_start(char *why, size_t size);
/* A call of the driver was refused; `first` is its first argument. Without the lock. */
void sg_check_refusal(const char *symbol, uint64_t first, CUresult result);
/* Reports leaks and the summary. At the end of the process, with the lock. */
void sg_check_finish(void);

#endif
