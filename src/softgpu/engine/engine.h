/*
 * Runs kernels: a program (softgpu/program) over a grid of blocks. Warps of 32 lanes execute one
 * instruction for all their lanes at once; lanes that diverge wait in groups, and reconverge where
 * step and call stack agree. The caller advances a grid in slices, so a kernel never owns its
 * thread. Pure: no contexts, streams, modules, handles and no lock; memory is reached through
 * sg_translate only.
 */
#ifndef SG_ENGINE_ENGINE_H
#define SG_ENGINE_ENGINE_H

#include "softgpu/engine/texture.h"
#include "softgpu/program/program.h"

/*
 * Windows of generic addresses for the other state spaces: addresses in the block's shared memory,
 * offsets in the thread's local memory and the kernel's parameters. They lie above all addresses
 * that sg_translate knows.
 */
#define SG_SHARED_WINDOW    ((uint64_t)0x10000 << 32)
#define SG_LOCAL_WINDOW     ((uint64_t)0x10001 << 32)
#define SG_PARAMETER_WINDOW ((uint64_t)0x10002 << 32)
/* The first address of a block's own shared memory: as recorded, what is below is reserved for the
 * system. From code_operand.c on, shared memory is counted in offsets from here. */
#define SG_SHARED_BEGIN 1024u
/* Addresses of functions: 16 bytes for each, by its ordinal. */
#define SG_FUNCTION_WINDOW           ((uint64_t)0x10003 << 32)
#define SG_FUNCTION_ADDRESS(ordinal) (SG_FUNCTION_WINDOW + (uint64_t)(ordinal)*16)
#define SG_WORKSPACE_WINDOW          ((uint64_t)0x10004 << 32) /* cooperative launch's grid.sync() */

/* The levels of x86-64 that the interpreter is compiled for. Results are the same on each. */
enum sg_level { SG_LEVEL_GENERIC, SG_LEVEL_V3, SG_LEVEL_V4, SG_LEVEL_COUNT };

/* The highest level that this machine has, and whether it has a given one. */
enum sg_level sg_level_best(void);
bool sg_level_usable(enum sg_level level);
const char *sg_level_name(enum sg_level level);

/* ---- a program made ready to run ------------------------------------------------------------- */

struct sg_code;

/* False if the engine cannot run one of the instructions; `why` then names it and its line. Never
 * changes the program; any number of threads may call it. */
bool sg_engine_can(const struct sg_program *program, char *why, size_t size);

/*
 * Compiles a program into steps, at a kernel's first launch. The program must outlive the code.
 * Code never changes afterwards, so any number of grids and threads may share it. `kinds`: flags,
 * below. NOT_SUPPORTED if sg_engine_can returns false; OUT_OF_MEMORY. *code is set on success only.
 */
CUresult sg_code_make(const struct sg_program *program, enum sg_level level, unsigned kinds,
                      struct sg_code **code);
#define SG_CODE_WATCHED 1u /* its grids call their watcher (watch.h) and run warp by warp */
#define SG_CODE_COUNTED 2u /* has steps that count (count.h) */
/* NULL is allowed. No grid may still use the code. */
void sg_code_free(struct sg_code *code);

/* ---- grids ----------------------------------------------------------------------------------- */

struct sg_grid;
struct sg_device_call;
struct sg_watch;

/*
 * Decides when things happen whose time PTX leaves open. Asynchronous copies complete at once
 * (EAGER), not before a wait needs them (LATE), or as the seed decides (RANDOM). Warps take turns
 * in order, for turns of fixed length (EAGER, LATE), or as the seed decides; so do resident blocks,
 * and blocks begin in ascending order or, as many as fit, as the seed decides.
 * Blocks always begin in ascending order.
 */
enum sg_grid_schedule { SG_GRID_EAGER, SG_GRID_LATE, SG_GRID_RANDOM };

struct sg_grid_launch {
    const struct sg_code *code;
    unsigned grid[3], block[3];
    unsigned dynamic_shared;         /* bytes */
    const unsigned char *parameters; /* copied */
    size_t parameter_bytes;
    int device; /* its number in the page table */
    /* For each variable of the program in .global and .const its device address, for .texref and
     * .surfref its handle; other elements are not read. NULL if there are no variables. Copied. */
    const uint64_t *variables;
    uint64_t stack_limit; /* bytes of called functions' frames that a thread may have; 0: 1024 */
    uint64_t resident;    /* blocks resident at most; 0: as many as SG_GRID_MEMORY has room for */
    bool cooperative;     /* all blocks are resident, however much memory they need */
    unsigned workers; /* threads that may advance it at the same time, at most SG_GRID_WORKERS; 0:
                         1 */
    bool apart;       /* no warps in lock step: slower, for comparisons */
    bool independent; /* lanes that have parted do not wait for each other where they join */
    bool held; /* begins before the grids that it depends on have ended: griddepcontrol.wait waits
                  for sg_grid_release */
    unsigned multiprocessors; /* for %nsmid; 0: 1 */
    uint64_t id;              /* for %gridid */
    unsigned cluster[3];      /* blocks of a cluster; 0: no clusters, as 1, 1, 1 */
    bool explicit_cluster;    /* for %is_explicit_cluster */
    unsigned char schedule;   /* enum sg_grid_schedule */
    uint64_t seed;            /* of SG_GRID_RANDOM */
    /*
     * Narrows [*low, *low + *length) to the allocation around an address, as the page table is
     * coarser; false: there is no allocation. NULL: the page table alone decides. It must not call
     * back into the engine, and all workers may call it.
     */
    bool (*extent)(void *user, uint64_t address, uint64_t *low, uint64_t *length);
    /* The texture or surface of a handle, valid as long as the grid; it returns NULL for an unknown
     * handle. If the function is NULL there are no textures. It must not call back into the
     * engine. */
    const struct sg_texture *(*texture)(void *user, uint64_t handle);
    /* The host bytes of a texel at an offset in the view of a level whose memory is in pieces; NULL
     * where nothing is mapped. Needed only if a texture has views. */
    unsigned char *(*piece)(const void *view, uint64_t offset, size_t size);
    /* Performs a lane's call of the device runtime (device_call.h). NULL: such calls fault as
     * illegal instructions, except assertions, which have a fault of their own. */
    void (*device_call)(void *user, struct sg_device_call *call);
    void *user;
    /* Called by code made with SG_CODE_WATCHED; valid as long as the grid. NULL: nothing
     * watches. */
    const struct sg_watch *watch;
    void *watch_user;
};

#define SG_GRID_WORKERS 64u

/* Bytes for resident blocks: except for the first block, none begins that does not fit. */
#define SG_GRID_MEMORY ((uint64_t)48 << 20)

#define SG_REPORT_ROOM 4096

enum sg_fault_kind {
    SG_FAULT_ADDRESS,     /* nothing is mapped there, or the access is not permitted */
    SG_FAULT_MISALIGNED,  /* not a multiple of what is accessed */
    SG_FAULT_SPACE,       /* outside of shared memory, local memory or the parameters */
    SG_FAULT_TRAP,        /* trap */
    SG_FAULT_BREAKPOINT,  /* brkpt */
    SG_FAULT_ASSERT,      /* __assertfail */
    SG_FAULT_STACK,       /* more frames than the stack limit */
    SG_FAULT_INSTRUCTION, /* a call or branch to something that is not a target */
    SG_FAULT_PC,          /* a call to an address that is not a multiple of 16 */
    SG_FAULT_BARRIER,     /* a count that is not a multiple of 32, or not that of the others */
    SG_FAULT_DEADLOCK,    /* nothing can run: each lane waits for another */
    SG_FAULT_MBARRIER,    /* not an mbarrier, or more arrivals or bytes than it can count */
    SG_FAULT_MEMORY,      /* the host has no memory for a block */
    SG_FAULT_TEXTURE,     /* an unknown handle, or one that cannot be used like this: `report` says
                             why */
    SG_FAULT_SURFACE,     /* outside of a surface, with .trap */
    SG_FAULT_HEAP,        /* free() of memory that is already free */
    SG_FAULT_TIME,        /* sg_grid_give_up */
    SG_FAULT_COUNT
};

#define SG_FAULT_CALLS 6
struct sg_grid_fault {
    enum sg_fault_kind kind;
    uint64_t address;     /* of the access; SPACE: the offset; BARRIER: its count or number */
    uint32_t size;        /* bytes of the access; BARRIER: 0 if `address` is the number */
    bool write;           /* a write */
    unsigned char space;  /* enum sg_state_space */
    uint64_t room;        /* SPACE: size of the space in bytes, 0 if unknown */
    uint32_t instruction; /* index in the program */
    uint32_t line;        /* of the PTX */
    unsigned block[3], thread[3];
    uint32_t depth; /* of its thread's calls, of which these are the innermost: instructions */
    uint32_t calls[SG_FAULT_CALLS];
    char report[SG_REPORT_ROOM]; /* DEADLOCK, TIME: where the lanes are, in lines; TEXTURE: why */
};

const char *sg_fault_name(enum sg_fault_kind kind);

/* Prepares a grid; runs nothing yet. INVALID_VALUE: no blocks, no threads, more than 1024 threads
 * in a block, clusters that do not divide the grid or have more than 16 blocks; OUT_OF_MEMORY.
 * *grid is set on success only. */
CUresult sg_grid_begin(const struct sg_grid_launch *launch, struct sg_grid **grid);
/*
 * Runs the grid until it is over (true: all is done, or it has failed), or for about `budget` warp
 * instructions, or until other threads already do all that is left (false: call again). Any thread
 * may call it, `workers` of them at the same time; each runs blocks of its own. It never waits for
 * anything. It sets the CPU's rounding and flush modes, and restores the caller's. The memory that
 * sg_translate gives must stay mapped: call it between sg_work_begin and sg_work_end.
 */
bool sg_grid_advance(struct sg_grid *grid, uint64_t budget);
/* Whether all is done, or the grid has failed. */
bool sg_grid_over(const struct sg_grid *grid);
/* How many threads would find work, from 1 to `workers`. Only while no thread advances the grid. */
unsigned sg_grid_room(const struct sg_grid *grid);
/* The fault that ended the grid, or NULL; it lives as long as the grid. Only while no thread
 * advances the grid. */
const struct sg_grid_fault *sg_grid_fault(const struct sg_grid *grid);
/* Whether a barrier's number was above 15, of which the low bits count: the first such number, and
 * the line of its instruction. Only while no thread advances the grid. */
bool sg_grid_beyond(const struct sg_grid *grid, uint32_t *number, uint32_t *line);
/* Warp instructions so far, approximately. */
uint64_t sg_grid_instructions(const struct sg_grid *grid);
/* Turns of blocks so far in which some warp did more than poll memory for others' writes: while the
 * number does not change, the grid spins. This and the following functions: only while no thread
 * advances the grid, unless they say otherwise. */
uint64_t sg_grid_progress(const struct sg_grid *grid);
/* Writes where the lanes of resident blocks are, in lines, truncated to `size`. */
void sg_grid_places(const struct sg_grid *grid, char *text, size_t size);
/* Ends an unfinished grid with a fault of kind TIME, whose report is sg_grid_places. */
void sg_grid_give_up(struct sg_grid *grid);
/* Whether all resident blocks only poll memory for others' writes. Slices then end early, and the
 * caller should let others run. */
bool sg_grid_spins(const struct sg_grid *grid);
/* Whether all blocks have begun; and whether each has released dependent grids
 * (griddepcontrol.launch_dependents) or has ended. */
bool sg_grid_all_begun(const struct sg_grid *grid);
bool sg_grid_triggered(const struct sg_grid *grid);
/* All that a `held` grid depends on has ended. Any thread may call this at any time. */
void sg_grid_release(struct sg_grid *grid);
/* Restarts a grid that is done and has not failed, with the same parameters. */
void sg_grid_rewind(struct sg_grid *grid);
/* Frees a grid, even an unfinished one. NULL is allowed. */
void sg_grid_end(struct sg_grid *grid);

#endif
