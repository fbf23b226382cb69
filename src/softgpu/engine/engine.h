/*
 * Runs kernels: a program (softgpu/program) over a grid of blocks. Warps of 32 lanes execute one
 * instruction for all their lanes at once; lanes that part ways wait in groups and join again where
 * place and call stack agree. A grid is advanced in slices by whoever calls, so that a kernel never
 * owns its thread. Pure: no contexts, streams, modules, handles and no lock; memory is reached
 * through sg_translate only.
 */
#ifndef SG_ENGINE_ENGINE_H
#define SG_ENGINE_ENGINE_H

#include "softgpu/engine/texture.h"
#include "softgpu/program/program.h"

/*
 * Generic addresses of what is not global: an address in the block's shared memory, an offset in
 * the thread's local memory, in the kernel's parameters. Above everything that sg_translate knows.
 */
#define SG_SHARED_WINDOW    ((uint64_t)0x10000 << 32)
#define SG_LOCAL_WINDOW     ((uint64_t)0x10001 << 32)
#define SG_PARAMETER_WINDOW ((uint64_t)0x10002 << 32)
/* The first address of a block's own shared memory: as recorded, what is below is reserved for the
 * system. Behind code_operand.c shared memory is counted in offsets from here on. */
#define SG_SHARED_BEGIN 1024u
/* Addresses of functions: 16 bytes for each, by its ordinal. */
#define SG_FUNCTION_WINDOW           ((uint64_t)0x10003 << 32)
#define SG_FUNCTION_ADDRESS(ordinal) (SG_FUNCTION_WINDOW + (uint64_t)(ordinal)*16)
#define SG_WORKSPACE_WINDOW          ((uint64_t)0x10004 << 32) /* of a cooperative launch's grid.sync() */

/* The instruction sets that the interpreter is compiled for: the same results on each. */
enum sg_level { SG_LEVEL_GENERIC, SG_LEVEL_V3, SG_LEVEL_V4, SG_LEVEL_COUNT };

/* What this machine has: the highest, and whether one can be used at all. */
enum sg_level sg_level_best(void);
bool sg_level_usable(enum sg_level level);
const char *sg_level_name(enum sg_level level);

/* ---- a program made ready to run ------------------------------------------------------------- */

struct sg_code;

/* False when an instruction is one that the engine does not run; `why` then names it, and its line.
 * Never changes the program; may be called by several threads. */
bool sg_engine_can(const struct sg_program *program, char *why, size_t size);

/*
 * Compiles a program into steps, at a kernel's first launch. The program must outlive the code;
 * code never changes afterwards, so any number of grids and threads may share it. NOT_SUPPORTED
 * where sg_engine_can says no; OUT_OF_MEMORY. *code is set on success only. `kinds`: flags.
 */
CUresult sg_code_make(const struct sg_program *program, enum sg_level level, unsigned kinds,
                      struct sg_code **code);
#define SG_CODE_WATCHED 1u /* its grids tell their watcher (watch.h), one warp after the other */
#define SG_CODE_COUNTED 2u /* it has steps that count (count.h) */
/* NULL is allowed. No grid may use it any more. */
void sg_code_free(struct sg_code *code);

/* ---- grids ----------------------------------------------------------------------------------- */

struct sg_grid;
struct sg_device_call;
struct sg_watch;

/*
 * When what PTX leaves open happens. Asynchronous copies complete at once (EAGER), or not before a
 * wait needs them (LATE), or as the seed says (RANDOM). Warps take their turns in order and for as
 * long as they are (EAGER, LATE), or as the seed says; so do blocks under way, which begin in
 * ascending order always.
 */
enum sg_grid_schedule { SG_GRID_EAGER, SG_GRID_LATE, SG_GRID_RANDOM };

struct sg_grid_launch {
    const struct sg_code *code;
    unsigned grid[3], block[3];
    unsigned dynamic_shared;         /* bytes */
    const unsigned char *parameters; /* copied */
    size_t parameter_bytes;
    int device; /* the page table's number */
    /* Device address of each variable of the program; read of those in .global and .const, and of
     * .texref and .surfref their handles. NULL where there is none. Copied. */
    const uint64_t *variables;
    uint64_t stack_limit; /* bytes of frames of called functions that a thread may have; 0: 1024 */
    uint64_t resident;    /* blocks at most under way; 0: what SG_GRID_MEMORY has room for */
    bool cooperative;     /* all blocks are resident, whatever room they take */
    unsigned workers; /* threads that may advance it at one time; 0: one. Most: SG_GRID_WORKERS */
    bool apart;       /* each warp runs by itself: slower, for comparisons */
    bool held; /* it may begin before what it depends on has ended: griddepcontrol.wait waits for
                  sg_grid_release */
    unsigned multiprocessors; /* for %nsmid; 0: 1 */
    uint64_t id;              /* for %gridid */
    unsigned cluster[3];      /* blocks of a cluster; 0: no clusters, as 1, 1, 1 */
    bool explicit_cluster;    /* for %is_explicit_cluster */
    unsigned char schedule;   /* enum sg_grid_schedule */
    uint64_t seed;            /* of SG_GRID_RANDOM */
    /*
     * The allocation around an address, where the page table is too coarse: narrows [*low, *low +
     * *length) to it; false: there is none. NULL: the page table alone decides. It must not call
     * back into the engine, and each worker may call it.
     */
    bool (*extent)(void *user, uint64_t address, uint64_t *low, uint64_t *length);
    /* The texture or surface of a handle, good as long as the grid; NULL: there is none of that
     * handle. NULL: there are no textures. It must not call back into the engine. */
    const struct sg_texture *(*texture)(void *user, uint64_t handle);
    /* Of memory in pieces: the host bytes of a texel at an offset of a level's view, NULL where
     * nothing is mapped. Needed only where a texture has views. */
    unsigned char *(*piece)(const void *view, uint64_t offset, size_t size);
    /* What a lane calls of the device runtime: device_call.h. NULL: such calls fault as illegal
     * instructions, except that an assertion is its own fault. */
    void (*device_call)(void *user, struct sg_device_call *call);
    void *user;
    /* What it tells, of code that is made to be watched; good as long as the grid. NULL: nobody. */
    const struct sg_watch *watch;
    void *watch_user;
};

#define SG_GRID_WORKERS 64u

/* Memory of blocks under way, in bytes: beyond the first block, no more are begun than fit. */
#define SG_GRID_MEMORY ((uint64_t)48 << 20)

#define SG_REPORT_ROOM 4096

enum sg_fault_kind {
    SG_FAULT_ADDRESS,     /* nothing there, or no right to it */
    SG_FAULT_MISALIGNED,  /* not a multiple of what is accessed */
    SG_FAULT_SPACE,       /* outside of shared or local memory or of the parameters */
    SG_FAULT_TRAP,        /* trap */
    SG_FAULT_BREAKPOINT,  /* brkpt */
    SG_FAULT_ASSERT,      /* __assertfail */
    SG_FAULT_STACK,       /* more frames than the stack limit */
    SG_FAULT_INSTRUCTION, /* a call or branch to what is no target */
    SG_FAULT_PC,          /* a call to where no instruction can begin: no multiple of 16 */
    SG_FAULT_BARRIER,     /* a count that is no multiple of 32 */
    SG_FAULT_DEADLOCK,    /* nothing can run: each lane waits for another */
    SG_FAULT_MBARRIER,    /* an mbarrier that is none, or more arrivals or bytes than it counts */
    SG_FAULT_MEMORY,      /* the host has no memory for a block */
    SG_FAULT_TEXTURE,     /* a handle of nothing, or of what cannot be used so: `report` says why */
    SG_FAULT_SURFACE,     /* outside of a surface, and .trap */
    SG_FAULT_HEAP,        /* free() of what was freed */
    SG_FAULT_TIME,        /* sg_grid_give_up */
    SG_FAULT_COUNT
};

struct sg_grid_fault {
    enum sg_fault_kind kind;
    uint64_t address;     /* of the access; for SPACE the offset; for BARRIER its count */
    uint32_t size;        /* bytes of the access */
    bool write;           /* it would have written */
    unsigned char space;  /* enum sg_state_space */
    uint64_t room;        /* of SPACE: bytes that the space has, 0 where it is not known */
    uint32_t instruction; /* index in the program */
    uint32_t line;        /* of the PTX */
    uint32_t location;    /* index in the program's locations + 1, 0 for none */
    unsigned block[3], thread[3];
    char report[SG_REPORT_ROOM]; /* a deadlock, or out of time: where the lanes are; lines. A
                                    texture: why */
};

const char *sg_fault_name(enum sg_fault_kind kind);

/* INVALID_VALUE for a grid or block without threads or of more than 1024, for clusters that do not
 * divide the grid or have more than 16 blocks, and for fewer parameters than the kernel reads;
 * OUT_OF_MEMORY. *grid is set on success only. Runs nothing yet. */
CUresult sg_grid_begin(const struct sg_grid_launch *launch, struct sg_grid **grid);
/*
 * Runs until all is done, or has failed (true), or for about `budget` instructions of warps, or
 * until there is nothing left that other threads do not do already (false: call again). From any
 * thread, `workers` of them at one time, each of which runs blocks of its own; the CPU's rounding
 * and flush modes are the engine's meanwhile and the caller's afterwards. Blocks only while it
 * runs. What it reaches by sg_translate must stay: inside sg_work_begin and sg_work_end.
 */
bool sg_grid_advance(struct sg_grid *grid, uint64_t budget);
/* All is done, or has failed. */
bool sg_grid_over(const struct sg_grid *grid);
/* How many threads would find something to do, while none advances it: 1 to `workers`. */
unsigned sg_grid_room(const struct sg_grid *grid);
/* NULL while there is none. It lives as long as the grid. While no thread advances the grid. */
const struct sg_grid_fault *sg_grid_fault(const struct sg_grid *grid);
/* Whether a barrier's number was beyond 15, of which the low bits have counted: the first such
 * number, and the line of its instruction. While no thread advances the grid. */
bool sg_grid_beyond(const struct sg_grid *grid, uint32_t *number, uint32_t *line);
/* Instructions of warps so far, about. */
uint64_t sg_grid_instructions(const struct sg_grid *grid);
/* Turns of blocks so far in which not all that ran only waited for what others write: while the
 * number stays the same, the grid spins. This and what follows: while no thread advances it. */
uint64_t sg_grid_progress(const struct sg_grid *grid);
/* Where the lanes of blocks under way are, in lines, cut where `size` ends. */
void sg_grid_places(const struct sg_grid *grid, char *text, size_t size);
/* Ends an unfinished grid as a fault of kind TIME, with its places. */
void sg_grid_give_up(struct sg_grid *grid);
/* Whether all its blocks under way only look at what others may write, so that slices end early:
 * then others should have a turn. */
bool sg_grid_spins(const struct sg_grid *grid);
/* Whether all blocks have begun; and whether each has let the grids that depend on it go
 * (griddepcontrol.launch_dependents) or has ended. */
bool sg_grid_all_begun(const struct sg_grid *grid);
bool sg_grid_triggered(const struct sg_grid *grid);
/* What a `held` grid depends on has ended. From any thread, at any time. */
void sg_grid_release(struct sg_grid *grid);
/* A grid that is done and has not failed begins again, with the same parameters. */
void sg_grid_rewind(struct sg_grid *grid);
/* Also unfinished. NULL is allowed. */
void sg_grid_end(struct sg_grid *grid);

#endif
