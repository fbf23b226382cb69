/*
 * Checkers: what watches kernels (engine/watch.h) and the calls around them, and what they report.
 * SOFTGPU_CHECK chooses them. A checker is a row of a table; the reports of all are one list, in
 * which the same hazard at the same place is written once and counted.
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

/* Where a thread of a kernel is. Names are the caller's until the report returns. */
struct sg_hazard_place {
    const char *kernel;   /* NULL: of no kernel, and nothing else is meant */
    const char *function; /* that it calls; NULL: the kernel itself */
    uint32_t line;        /* of the PTX */
    char text[168];       /* that line, as far as it goes */
    const char *file;     /* of the source, as .loc names it; NULL: not known */
    uint32_t source_line;
    unsigned block[3], thread[3];
};

struct sg_hazard {
    const char *check; /* "memory", "race", … */
    const char *kind;  /* a word of small letters and '-', which suppressions name */
    enum sg_hazard_level level;
    struct sg_hazard_place place,
        other;              /* other: of races; its kernel is NULL where there is none */
    const char *other_says; /* "written by", … */
    bool has_address, write;
    const char *space; /* "global", … */
    uint64_t address;
    uint32_t size;
    const char *what;    /* one line, without address, place and kernel */
    const char *details; /* lines that end in '\n', such as the nearest allocation; or NULL */
};

/*
 * Writes it, unless it is suppressed or has been written: then it is counted. Two are the same
 * where check, kind, kernel, lines and, without a kernel, `what` are. From any thread, with the
 * lock or without it.
 */
void sg_hazard_report(const struct sg_hazard *hazard);
/* Hazards of a level so far, also counted ones; suppressed ones are none. */
uint64_t sg_hazard_count(enum sg_hazard_level level);

/* ---- launches that are checked --------------------------------------------------------------- */

struct sg_check_launch {
    const struct sg_program *program;
    const char *ptx; /* that it was made of, or NULL */
    struct sg_context *context;
    const struct sg_op *op; /* its stream and number */
    unsigned grid[3], block[3], dynamic_shared;
    unsigned cluster[3]; /* blocks; zeros: none */
    int device;
    bool early; /* it may begin before the kernel before it in its stream has ended */
    bool cooperative, clustered; /* clustered: blocks reach each other's shared memory */
    const uint64_t *variables;   /* device addresses, by the program's variables */
    /* The allocation around an address, as sg_grid_launch has it: takes the lock. */
    bool (*extent)(void *user, uint64_t address, uint64_t *low, uint64_t *length);
    void *user;
};

/* Fills in a place: of an instruction, a thread of a block (NULL: zeros). */
void sg_hazard_place(const struct sg_check_launch *launch, uint32_t instruction,
                     const unsigned block[3], unsigned thread, struct sg_hazard_place *place);

struct sg_checker {
    const char *name;
    unsigned check;               /* SG_CHECK_… */
    const struct sg_watch *watch; /* whose `user` is what `begin` answered; NULL: it watches none */
    /* Once, when the checks are known; may be NULL. */
    void (*start)(void);
    /* Before the first slice of a launch, which stays as it is until the end. Without the lock.
     * NULL: no memory; then this launch is not checked. */
    void *(*begin)(const struct sg_check_launch *launch);
    /* When it is over, with its fault or NULL. Without the lock; with it where the launch was given
     * up, which has no fault then. SUCCESS, or the error of a launch
     * that hardware would have failed. */
    CUresult (*end)(void *state, const struct sg_grid_fault *fault);
    /* At the end of the process, with the lock; may be NULL. */
    void (*finish)(void);
};

/* All that is chosen and watches one launch. NULL: none is chosen for this kernel. */
struct sg_checking;
bool sg_check_wants(const char *kernel);
/* OUT_OF_MEMORY; *checking is set on success only. The grid then has its watch and user. */
CUresult sg_checking_new(struct sg_checking **checking);
const struct sg_watch *sg_checking_watch(void);
/* Tells all checkers that it begins; what `launch` points to must stay. */
void sg_checking_begin(struct sg_checking *checking, const struct sg_check_launch *launch);
bool sg_checking_begun(const struct sg_checking *checking);
CUresult sg_checking_end(struct sg_checking *checking, const struct sg_grid_fault *fault);
/* NULL is allowed; one that has begun ends first. */
void sg_checking_free(struct sg_checking *checking);

/* ---- the process ----------------------------------------------------------------------------- */

/* Opens the output and reads the suppressions: false, with why, where that fails. Once, without the
 * lock. */
bool sg_check_start(char *why, size_t size);
/* A call of the driver was refused; `first` is its first argument. Without the lock. */
void sg_check_refusal(const char *symbol, uint64_t first, CUresult result);
/* Leaks and the summary. At the end of the process, with the lock. */
void sg_check_finish(void);

#endif
