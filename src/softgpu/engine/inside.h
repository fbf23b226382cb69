/*
 * The engine's own structures: steps, code, groups of lanes, warps, blocks, grids.
 *
 * Dispatch: a step holds the address of the function that executes it for all lanes, and the
 * function answers the next step. Against computed goto (an extension that -Wpedantic forbids, and
 * one function of many thousand lines) this costs a return for each step, and lets each theme be
 * a file of its own; a tail call would need the optimiser to be certain of it, which C17 cannot
 * say.
 *
 * Registers of a warp lie side by side in frames, one frame for each depth of calls: a predicate is
 * a mask of 32 bits, all else 32 lanes of 2, 4 or 8 bytes, by the register's declared width. An
 * operand is an offset from one of three bases: registers, constants (shared by all warps), and
 * what is constant for the warp (special registers).
 */
#ifndef SG_ENGINE_INSIDE_H
#define SG_ENGINE_INSIDE_H

#include "softgpu/engine/engine.h"

#include <stdatomic.h>

#define SG_LANES     32u
#define SG_ALL       UINT32_MAX
#define SG_BARRIERS  16
#define SG_LEFT_BYTE 0xcc /* in shared memory of a block that has left copies of it behind */
#define SG_NO_STEP   UINT32_MAX
#define SG_SLOT_LINE 64u /* alignment of registers */
#define SG_GANG      4u  /* warps that may run in lock step */

struct sg_warp;
struct sg_step;
/* Executes a step for the lanes in warp->mask: the next step, or NULL to stop (warp->stop). */
typedef const struct sg_step *sg_run(struct sg_warp *warp, const struct sg_step *step);

/* Where an operand is: the base in the two highest bits. */
#define SG_BASE_REGISTERS      0u
#define SG_BASE_CONSTANTS      1u
#define SG_BASE_SPECIALS       2u
#define SG_BASE_NOWHERE        3u /* results that nobody wants */
#define SG_BASES               4
#define SG_PLACE(base, offset) ((uint32_t)(base) << 30 | (uint32_t)(offset))
#define SG_NOWHERE             SG_PLACE(SG_BASE_NOWHERE, 0)
#define SG_OFFSET_MASK         0x3fffffffu
/* In lists of calls only: bytes of the caller's frame. */
#define SG_PLACE_OF_FRAME(offset) SG_PLACE(SG_BASE_NOWHERE, (offset) + 1)
#define SG_FRAME_OFFSET(place)    (((place)&SG_OFFSET_MASK) - 1)
#define SG_CARRY                  SG_PLACE(SG_BASE_REGISTERS, 0) /* the condition code of a frame */

enum sg_width { SG_W_NONE, SG_W_PRED, SG_W_16, SG_W_32, SG_W_64 };

/* sg_step.flags */
#define SG_STEP_FTZ     1u
#define SG_STEP_SAT     2u
#define SG_STEP_WIDE    4u /* the address has 64 bits */
#define SG_STEP_STRONG  8u /* volatile, relaxed, acquire, release: element by element */
#define SG_STEP_ACQUIRE 16u
#define SG_STEP_RELEASE 32u
#define SG_STEP_NOT     64u  /* of control: the guard is negated */
#define SG_STEP_GUARD   128u /* of control: there is a guard, in `e` */
#define SG_STEP_NAN     256u
#define SG_STEP_XORSIGN 512u
#define SG_STEP_RELU    1024u
#define SG_STEP_ABS     2048u

struct sg_step {
    sg_run *run;
    sg_run *gang;           /* the same for warps in lock step */
    uint32_t d, a, b, c, e; /* places of operands */
    uint32_t list;          /* in the code's list: further places */
    uint16_t count;         /* elements of a vector; arguments */
    uint16_t flags;
    unsigned char type, type2; /* enum sg_type, where one function serves several */
    unsigned char choice;      /* enum sg_compare, sg_operation, … as the function wants it */
    unsigned char second;      /* a further choice */
    unsigned char rounding, space;
    uint32_t target; /* a step: of branches and calls; of brx.idx how many it may go to */
    uint32_t cache;  /* which range cache */
    uint32_t instruction;
    uint32_t
        uses; /* of one that runs warp by warp: in the code's slots, what it reads and writes */
    uint16_t use_count;
    int64_t value; /* of branches: where lanes that part come together, a step */
};

/* What a theme answers for an instruction that it runs: function, widths of operands. */
struct sg_form {
    sg_run *run;
    unsigned char dest, source[4]; /* enum sg_width */
    unsigned char choice, second, type, type2, rounding;
    uint16_t flags;
    bool gang; /* the function looks at `together` and at tags: see below */
};

/* ---- code ------------------------------------------------------------------------------------ */

/* A constant that is known at launch only: the address of a variable, or a parameter. */
struct sg_patch {
    uint32_t offset;     /* in the constants */
    uint32_t variable;   /* SG_NO_VARIABLE: a parameter, at `value` */
    int64_t value;       /* added to the address */
    unsigned char width; /* enum sg_width */
};

struct sg_code_special {
    unsigned char special, part, width;
    uint32_t value;
    uint32_t offset;
};

struct sg_code_function {
    uint32_t first_step; /* SG_NO_STEP: no body */
    uint32_t frame;      /* bytes of registers */
};

struct sg_code {
    const struct sg_program *program;
    enum sg_level level;
    struct sg_step *steps;
    uint32_t step_count, step_room;
    uint32_t *list;
    uint32_t list_count, list_room;
    uint32_t *step_of; /* of each instruction, and one past the end */
    uint32_t *register_place;
    struct sg_code_function *functions;
    unsigned char *constants;
    uint32_t constant_bytes, constant_room;
    struct sg_patch *patches;
    uint32_t patch_count, patch_room;
    struct sg_code_special *specials;
    uint32_t special_count, special_room, special_bytes;
    uint32_t caches;
    bool allocates; /* alloca */
    bool clustered; /* it has instructions of async.h */
    bool watched;   /* its steps tell a watcher */
    bool counted;   /* it has steps that count: count.h */
    uint32_t access_count;
    /* Registers with tags: place | width. First those of the entry, then those of steps, of which
     * SG_SLOT_WRITTEN says that the step may write them. */
    uint32_t *slots;
    uint32_t slot_count, slot_room, entry_slots;
};

/* The widths are less than the alignment of places. */
#define SG_SLOT_WIDTH   7u
#define SG_SLOT_WRITTEN 8u

/* ---- warps in lock step ---------------------------------------------------------------------- */

/*
 * Up to SG_GANG warps, one after the other in their block, are a gang. While all their live lanes
 * are at one place, the first of them carries the gang: its `together` is their number, and a step
 * runs for all of them at once (sg_step.gang). What is the same in all lanes, or grows evenly with
 * the lane, is then a scalar: each 64 bytes of a warp's registers, constants and special registers
 * have a tag. Where lanes part, each warp goes on by itself, without tags, and they meet again
 * where their ways come together.
 */
#define SG_TAG_KNOWN   1u /* lane l has base + x * s + y * t: x = l % across, y = l / across */
#define SG_TAG_NO_DATA 2u /* and the lanes' memory does not have it */
struct sg_tag {
    uint64_t base; /* as many bits of all three as the register has are meant */
    int64_t s, t;
    uint32_t kind;
};

/* ---- running --------------------------------------------------------------------------------- */

struct sg_range_cache {
    uint64_t low, length;
    uint64_t distance; /* host address minus address */
    uint64_t last;     /* where a gang's access began: the next is expected as far behind */
};

/* A way of calls that lanes have gone: lanes agree on their call stack where the node is the same.
 */
struct sg_path {
    struct sg_path *parent, *child, *sibling;
    uint32_t lanes;    /* that are on it, or deeper */
    uint32_t call;     /* the step of the call */
    uint32_t function; /* that runs */
    uint32_t depth;
    uint32_t registers; /* offset of its frame in the warp's registers */
    uint64_t frame;     /* offset of its frame in the thread's local memory */
};

enum sg_group_state { SG_GROUP_READY, SG_GROUP_BARRIER, SG_GROUP_WARP, SG_GROUP_CLUSTER };

struct sg_group {
    uint32_t lanes;
    uint32_t step;
    struct sg_path *path;
    uint64_t stamp; /* when it last ran */
    unsigned char state, barrier;
    uint32_t members; /* whom it waits for */
};

/* A handle that a warp has looked up. */
#define SG_KNOWN_TEXTURES 4
struct sg_known_texture {
    uint64_t handle;
    const struct sg_texture *texture;
};

enum sg_stop {
    SG_STOP_NONE,
    SG_STOP_YIELD,
    SG_STOP_BLOCKED,
    SG_STOP_DONE,
    SG_STOP_FAULT,
    SG_STOP_APART /* of a gang: its warps go on by themselves */
};

struct sg_warp {
    unsigned char *base[SG_BASES];
    uint32_t mask;      /* the lanes that execute */
    uint32_t unguarded; /* those before a guard */
    uint32_t probed;    /* those before a probe */
    int64_t left;       /* instructions until it gives way */
    uint32_t ready;     /* groups that could run instead */
    bool alone;         /* the running group keeps running, for others' sake */
    bool polls;         /* it has looked at what others may write */
    enum sg_stop stop;
    struct sg_path *path;
    uint64_t stamp;
    unsigned char *shared;
    uint64_t shared_size;
    unsigned char *local;     /* lane after lane */
    uint64_t local_size;      /* of a lane */
    uint32_t stack[SG_LANES]; /* where in it what alloca gave out begins */
    struct sg_range_cache *caches;
    struct sg_counts *counts; /* of counted code: its worker's */
    struct sg_grid *grid;
    struct sg_block *block;
    unsigned number;
    uint32_t live;              /* lanes that have not exited */
    uint32_t came[SG_BARRIERS]; /* of those in `partial`: lanes that have arrived */
    struct sg_group groups[SG_LANES];
    unsigned group_count;
    unsigned char *registers;
    size_t register_room;
    struct sg_path root;
    struct sg_path *spare;
    uint64_t clock;
    unsigned char *specials;
    const struct sg_pending *doing; /* a copy, perhaps of another thread's; else NULL */
    struct sg_known_texture textures[SG_KNOWN_TEXTURES];
    uint32_t meet; /* a step: it stops there for the others of its gang */
    bool moved;    /* its registers are no longer where the gang expects them */
    /* Of the first of a gang: */
    unsigned together;             /* warps in lock step now; 0: this warp alone */
    bool whole;                    /* no guard keeps a live lane from executing */
    bool full;                     /* all lanes of all warps are live */
    bool solid;                    /* and execute */
    bool tagged;                   /* tags are true */
    struct sg_tag *tags[SG_BASES]; /* one for each SG_SLOT_LINE */
    ptrdiff_t stride[SG_BASES];    /* from a warp's place to the next warp's */
    unsigned across, across_log;   /* lanes in a row: a power of two, see sg_tag */
    unsigned x_most, y_most;       /* the last lane's */
    unsigned gang_size, meet_turns;
};

struct sg_barrier {
    uint32_t arrived, wanted; /* wanted 0: all that have not exited */
    uint32_t partial;         /* warps of which some lanes have arrived, where there is a count */
    uint32_t count;           /* of true predicates */
    bool all, any;
};

struct sg_block {
    struct sg_block *next;
    uint64_t index;
    unsigned place[3];
    struct sg_warp *warps;
    unsigned warp_count;
    uint32_t live;  /* threads */
    bool triggered; /* griddepcontrol.launch_dependents, or its end */
    struct sg_barrier barriers[SG_BARRIERS];
    bool spins;             /* in its last turn its warps only looked at what others may write */
    uint32_t barriers_used; /* of which some may have arrivals */
    unsigned char *shared;
    unsigned char *memory;          /* one allocation: shared, local, specials, tags, registers */
    struct sg_cluster_run *cluster; /* NULL: the code has no use for it */
    unsigned rank;                  /* in its cluster */
};

/* What a thread has while it advances a grid: blocks stay with their worker, and with its caches.
 * Whoever sets `taken` owns the rest until it is cleared. */
struct sg_worker {
    atomic_bool taken;
    atomic_bool busy; /* it has blocks under way */
    struct sg_grid *grid;
    struct sg_range_cache *caches;
    struct sg_counts *counts;               /* NULL: the code is not counted */
    uint64_t table;                         /* state of the page table that the caches are of */
    struct sg_block *running, *last, *free; /* rings of one direction */
    uint64_t running_count;
    unsigned passes;                /* of the first */
    struct sg_cluster_run *opening; /* that blocks begin in */
    uint64_t spins;    /* turns in succession in which blocks only looked, since one more began */
    uint64_t spun;     /* the same, since its slice began */
    uint64_t progress; /* turns of blocks that did not only wait */
};

struct sg_grid {
    const struct sg_code *code;
    struct sg_grid_launch launch;
    unsigned char *parameters;
    unsigned char *constants;         /* patched */
    struct sg_worker first, *others;  /* others: made when a second thread comes */
    _Atomic(struct sg_worker *) more; /* `others`, when they are there */
    atomic_flag making;
    atomic_uint turn;               /* which worker is looked at first */
    uint64_t blocks, resident_most; /* resident_most: of a worker */
    atomic_uint_fast64_t begun, ended;
    uint64_t block_bytes, shared_bytes, shared_exact, local_bytes, register_bytes, tag_bytes;
    struct sg_tag *constant_tags;
    unsigned warps, gangs, threads;
    unsigned cluster[3], cluster_size; /* in blocks: 1 without clusters */
    bool clustered;                    /* its blocks know their cluster */
    uint64_t random;                   /* state of the seed: of its only worker */
    atomic_uint_fast64_t instructions;
    atomic_flag faulted; /* the first fault is told */
    atomic_bool failed;
    struct sg_grid_fault fault;
    atomic_ullong beyond;    /* the first barrier's number that was beyond 15, below its line */
    atomic_ullong triggered; /* blocks that have let their dependents go, or have ended */
    atomic_bool held;        /* griddepcontrol.wait waits */
    /* Of shared memory: what has the addresses below SG_SHARED_BEGIN is kept behind the rest. */
    uint64_t reserved_offset, reserved_bytes;
    uint64_t workspace[32]; /* of a cooperative launch */
};

/* Bytes of shared memory that are a block's own. */
static inline uint64_t sg_shared_room(const struct sg_grid *grid) {
    return grid->shared_exact;
}

/* What hardware allocates for them: units of 128 bytes, as an H200 answers. */
static inline uint64_t sg_shared_granules(const struct sg_grid *grid) {
    return (grid->shared_exact + 127) / 128 * 128;
}

static inline void *sg_place(const struct sg_warp *warp, uint32_t place) {
    return warp->base[place >> 30] + (place & SG_OFFSET_MASK);
}

static inline uint32_t sg_predicate(const struct sg_warp *warp, uint32_t place) {
    return *(const uint32_t *)sg_place(warp, place);
}

static inline void sg_predicate_set(const struct sg_warp *warp, uint32_t place, uint32_t value) {
    uint32_t *at = sg_place(warp, place);
    *at = (*at & ~warp->mask) | (value & warp->mask);
}

/* ---- lanes/: compiled for each level --------------------------------------------------------- */

/* Fills the form, or answers false: not its instruction. */
typedef bool sg_theme(const struct sg_instruction *instruction, struct sg_form *form);
struct sg_lanes {
    sg_theme *const *themes;                    /* NULL at the end */
    sg_run *widen[2][SG_W_64 + 1][SG_W_64 + 1]; /* [signed][from][to]: also narrowing */
    /* Writes what the tag of a place says into the lanes of all warps of a gang. */
    void (*fill)(struct sg_warp *gang, uint32_t place, unsigned bytes);
};
extern const struct sg_lanes sg_lanes_generic, sg_lanes_v3, sg_lanes_v4;
const struct sg_lanes *sg_level_lanes(enum sg_level level);

/* ---- memory.c: what loads and stores of all levels call ---------------------------------------
 */

/* The host bytes of [address, address + size), or NULL: the warp has faulted. */
unsigned char *sg_reach_global(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                               uint64_t address, uint64_t size);
/* The same of an array's bytes, which no allocation has. */
unsigned char *sg_reach_array(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                              uint64_t address, uint64_t size);
/* As many bytes from an address on as are there without a gap, `size` at most: their number in
 * *got. */
unsigned char *sg_reach_some(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                             uint64_t address, uint64_t size, uint64_t *got);
/*
 * Bytes of shared memory, of the block's own or another's of its cluster. Blocks of a cluster other
 * than its first have a warp->shared_size of 0 where the code has use for clusters: this answers
 * what a look at it refuses.
 */
unsigned char *sg_reach_shared(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                               uint64_t address, uint64_t size);
/* The block whose shared memory an offset is in, which loses the rank; NULL: of no block. */
const struct sg_block *sg_block_of_shared(const struct sg_warp *warp, uint64_t *offset);
/* The offset of a generic address of shared memory. */
static inline uint64_t sg_shared_offset(uint64_t generic) {
    return (uint32_t)(generic - SG_SHARED_BEGIN);
}
/* The address of an offset, of 32 bits where the offset has no more. */
static inline uint64_t sg_shared_address(uint64_t offset) {
    uint64_t at = offset + SG_SHARED_BEGIN;
    return offset > UINT32_MAX ? at : (uint32_t)at;
}
/* Notes the fault of a lane, if it is the grid's first, with what there is to report (or NULL). */
void sg_fault_note(struct sg_warp *warp, const struct sg_step *step, enum sg_fault_kind kind,
                   unsigned lane, uint64_t address, uint64_t size, const char *report);
/* The same without a report. Answers NULL. */
void *sg_warp_fault(struct sg_warp *warp, const struct sg_step *step, enum sg_fault_kind kind,
                    unsigned lane, uint64_t address, uint64_t size);

/* ---- schedule.c ------------------------------------------------------------------------------ */

/* Puts lanes aside, to go on at a step. */
void sg_group_add(struct sg_warp *warp, uint32_t lanes, uint32_t step, struct sg_path *path);
/* Goes on with the group that should run: its step, or NULL (the stop says why). */
const struct sg_step *sg_group_next(struct sg_warp *warp);
/* At the beginning of a block of instructions: count them, join, give way. */
sg_run sg_run_leader;
void sg_warp_exit(struct sg_warp *warp, uint32_t lanes);
enum sg_stop sg_warp_run(struct sg_warp *warp, int64_t quantum);
struct sg_path *sg_path_enter(struct sg_warp *warp, const struct sg_step *call, uint32_t function);
void sg_path_leave(struct sg_warp *warp, struct sg_path *path, uint32_t lanes);
/* Sets the bases for the frame of a path. */
void sg_path_use(struct sg_warp *warp, struct sg_path *path);
void sg_paths_free(struct sg_warp *warp);

/* ---- block.c --------------------------------------------------------------------------------- */

enum sg_turn { SG_TURN_DONE, SG_TURN_ON, SG_TURN_SPINS, SG_TURN_WAITS, SG_TURN_FAULT };
/* One of a worker; NULL: no memory. */
struct sg_block *sg_block_make(struct sg_worker *worker);
void sg_block_free(struct sg_block *block);
/* It becomes the block that begins as the given one. Its cluster is known. */
void sg_block_start(struct sg_grid *grid, struct sg_block *block, uint64_t order);
/* Each of its warps that can runs for a while. SPINS: they only look at what others may write;
 * WAITS: others of its cluster are to run. */
enum sg_turn sg_block_turn(struct sg_grid *grid, struct sg_block *block, int64_t *budget);

/* ---- grid.c ---------------------------------------------------------------------------------- */

/* A worker that there is; NULL: no more. */
const struct sg_worker *sg_grid_worker(const struct sg_grid *grid, unsigned index);
/* A fault of no lane's, if it is the grid's first. */
void sg_grid_fails(struct sg_grid *grid, enum sg_fault_kind kind);

/* ---- gang.c ---------------------------------------------------------------------------------- */

static inline struct sg_tag *sg_tag(const struct sg_warp *warp, uint32_t place) {
    return warp->tags[place >> 30] + (place & SG_OFFSET_MASK) / SG_SLOT_LINE;
}

/* The function for warps in lock step that belongs to one for a warp. */
sg_run *sg_gang_of(sg_run *run);
/* Bytes of tags for a gang. */
uint64_t sg_gang_bytes(const struct sg_code *code);
/* Sets up the first warp of a gang, whose special registers have been filled. */
void sg_gang_make(struct sg_warp *gang, unsigned size, void *tags);
/* A block begins: special registers that are the block's. */
void sg_gang_start(struct sg_warp *gang);
/* Can its warps run in lock step? */
bool sg_gang_ready(const struct sg_warp *gang);
enum sg_stop sg_gang_run(struct sg_warp *gang, int64_t quantum);
/* Before a warp of it runs by itself. */
void sg_gang_apart(struct sg_warp *gang);

/* count.c */
sg_run sg_run_count, sg_gang_count, sg_run_count_access, sg_gang_count_access;
/* control.c */
sg_run sg_run_branch, sg_run_indexed, sg_run_call, sg_run_indirect, sg_run_return, sg_run_exit;
sg_run sg_run_guard, sg_run_unguard, sg_run_trap, sg_run_brkpt, sg_run_nothing, sg_run_nanosleep;
sg_run sg_run_fence;
/* device_call.c: list: the result's place, then the arguments', two words each */
sg_run sg_run_device_call;
#define SG_ARGUMENT_FRAME 16u /* with bytes below: in the caller's frame; else an enum sg_width */
/* report.c */
void sg_deadlock(struct sg_block *block);
/* barrier.c */
sg_run sg_run_barrier;
/* Lanes that name one barrier arrive; false: a fault. */
bool sg_barrier_arrive(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                       uint32_t number);
/* A thread has exited: barriers that wait for all look again. */
void sg_barriers_look(struct sg_block *block);
/* collective.c: list: the place of the member mask, that of the second result */
sg_run sg_run_collective, sg_run_activemask;
/* copy_async.c, pending.c, bulk.c, mbarrier.c, cluster.c */
sg_run sg_run_copy_async, sg_run_copy_arrive, sg_run_copy_group, sg_run_bulk, sg_run_store_async;
sg_run sg_run_mbarrier, sg_run_mbarrier_wait, sg_run_mbarrier_count;
sg_run sg_run_mapa, sg_run_getctarank, sg_run_cluster_arrive, sg_run_cluster_wait;
/* dependents.c */
sg_run sg_run_launch_dependents, sg_run_dependency_wait;
/* Notes once that the block has let its dependents go. */
void sg_block_triggers(struct sg_block *block);
/* workspace.c: bytes of reserved shared memory that a kernel asks for. */
uint64_t sg_reserved_shared(const struct sg_code *code);
/* %reserved_smem_*, %aggr_smem_size, %envreg1 and 2. */
uint64_t sg_workspace_special(const struct sg_grid *grid, unsigned special, uint32_t number);
/* NULL for what is not in the workspace. */
unsigned char *sg_workspace_reach(struct sg_grid *grid, uint64_t address, uint64_t size);
#define SG_SAMPLER_WINDOW ((uint64_t)0xfffe << 48) /* handles that are settings themselves */
/* texture_run.c, texture_surface.c, texture_query.c */
sg_run sg_run_texture, sg_run_surface, sg_run_texture_query;
/* special.c */
sg_run sg_run_special, sg_run_frame_address, sg_run_isspacep, sg_run_pack, sg_run_unpack;
#define SG_SPECIAL_SHARED SG_SPECIAL_COUNT /* the address of an offset in shared memory */
bool sg_special_constant(unsigned special);
bool sg_special_of_block(unsigned special);
void sg_special_fill(struct sg_warp *warp, const struct sg_code_special *special, void *lanes);
/* The value of one that sg_special_of_block is true of. */
uint64_t sg_special_value(const struct sg_warp *warp, const struct sg_code_special *special);

/* The lanes of the running group that a control step is for; the others wait behind it. */
static inline uint32_t sg_taken(const struct sg_warp *warp, const struct sg_step *step) {
    if (!(step->flags & SG_STEP_GUARD))
        return warp->mask;
    uint32_t guard = sg_predicate(warp, step->e);
    return warp->mask & (step->flags & SG_STEP_NOT ? ~guard : guard);
}

#endif
