/*
 * The engine's own structures: steps, code, groups of lanes, warps, blocks, grids.
 *
 * Dispatch: a step holds the address of the function that executes it for all lanes, and the
 * function returns the next step. Compared with computed goto (an extension that -Wpedantic
 * forbids, in one function of many thousand lines) this costs a return for each step, but lets each
 * theme be a file of its own. Tail calls are no alternative, as C17 cannot guarantee them.
 *
 * A warp's registers are in frames, one for each depth of calls: a predicate is a mask of 32 bits,
 * any other register 32 lanes of 2, 4 or 8 bytes, by its declared width. An operand is an offset
 * from one of three bases: registers, constants (shared by all warps), and special registers
 * (constant for the warp).
 */
#ifndef SG_ENGINE_INSIDE_H
#define SG_ENGINE_INSIDE_H

#include "softgpu/engine/engine.h"
#include "softgpu/engine/watch.h"

#include <stdatomic.h>

#define SG_LANES       32u
#define SG_ALL         UINT32_MAX
#define SG_BARRIERS    16
#define SG_LEFT_BYTE   0xcc /* shared memory of a block that ended before copies from it did */
#define SG_NO_STEP     UINT32_MAX
#define SG_RETURN_STEP (UINT32_MAX - 1) /* as a join: behind the call of the function */
#define SG_SLOT_LINE   64u              /* alignment of registers */
#define SG_GANG        4u               /* warps that may run in lock step */

struct sg_warp;
struct sg_step;
/* Executes a step for the lanes in warp->mask. Returns the next step, or NULL to stop
 * (warp->stop). */
typedef const struct sg_step *sg_run(struct sg_warp *warp, const struct sg_step *step);

/* The place of an operand: an offset, with the base in the two highest bits. */
#define SG_BASE_REGISTERS      0u
#define SG_BASE_CONSTANTS      1u
#define SG_BASE_SPECIALS       2u
#define SG_BASE_NOWHERE        3u /* discarded results */
#define SG_BASES               4
#define SG_PLACE(base, offset) ((uint32_t)(base) << 30 | (uint32_t)(offset))
#define SG_NOWHERE             SG_PLACE(SG_BASE_NOWHERE, 0)
#define SG_OFFSET_MASK         0x3fffffffu
/* In lists of calls only: a place in the caller's frame. */
#define SG_PLACE_OF_FRAME(offset) SG_PLACE(SG_BASE_NOWHERE, (offset) + 1)
#define SG_FRAME_OFFSET(place)    (((place)&SG_OFFSET_MASK) - 1)
#define SG_CARRY                  SG_PLACE(SG_BASE_REGISTERS, 0) /* the condition code of a frame */

enum sg_width { SG_W_NONE, SG_W_PRED, SG_W_16, SG_W_32, SG_W_64 };

/* sg_step.flags */
#define SG_STEP_FTZ     1u
#define SG_STEP_SAT     2u
#define SG_STEP_WIDE    4u /* addresses have 64 bits */
#define SG_STEP_STRONG  8u /* volatile, relaxed, acquire, release: accesses element by element */
#define SG_STEP_ACQUIRE 16u
#define SG_STEP_RELEASE 32u
#define SG_STEP_NOT     64u  /* control steps: the guard is negated */
#define SG_STEP_GUARD   128u /* control steps: `e` is a guard */
#define SG_STEP_NAN     256u
#define SG_STEP_XORSIGN 512u
#define SG_STEP_RELU    1024u
#define SG_STEP_ABS     2048u

struct sg_step {
    sg_run *run;
    sg_run *gang;           /* the same for a gang */
    uint32_t d, a, b, c, e; /* places of operands */
    uint32_t list;          /* further places, in the code's list */
    uint16_t count;         /* elements of a vector; arguments; of `uses`, those whose tags hold */
    uint16_t flags;
    unsigned char type, type2; /* enum sg_type, if one function serves several */
    unsigned char choice;      /* enum sg_compare, sg_operation, … by function */
    unsigned char second;      /* a further choice */
    unsigned char rounding, space;
    uint32_t target; /* branches and calls: a step; brx.idx: the number of targets */
    uint32_t cache;  /* which range cache */
    uint32_t instruction;
    uint32_t
        uses; /* in the code's slots: of steps that run warp by warp what they read and write, of
                      branches what is live behind them */
    uint16_t use_count;
    int64_t value; /* branches: the step at which diverged lanes join, or SG_RETURN_STEP */
};

/* What a theme returns for an instruction that it runs: function, widths of operands. */
struct sg_form {
    sg_run *run;
    unsigned char dest, source[4]; /* enum sg_width */
    unsigned char choice, second, type, type2, rounding;
    uint16_t flags;
    bool gang; /* the function can run a gang: it looks at `together` and tags */
};

/* ---- code ------------------------------------------------------------------------------------ */

/* A constant that is known only at launch: the address of a variable, or a parameter. */
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
    bool clustered; /* has instructions of async.h */
    bool watched;   /* its steps call a watcher */
    bool counted;   /* has steps that count: count.h */
    uint32_t access_count;
    atomic_uint *given_up; /* bits, by step: joins at which lanes went on without others (join.c) */
    /* Registers with tags, as place | width: first the entry's, then those of steps; with
     * SG_SLOT_WRITTEN the step may write it. */
    uint32_t *slots;
    uint32_t slot_count, slot_room, entry_slots;
};

/* Widths and the flag fit below the alignment of places. */
#define SG_SLOT_WIDTH   7u
#define SG_SLOT_WRITTEN 8u
#define SG_ALL_SLOTS    UINT16_MAX /* sg_step.use_count of a branch: all of the entry's */

/* ---- warps in lock step ---------------------------------------------------------------------- */

/*
 * Up to SG_GANG consecutive warps of a block are a gang. While all their live lanes are at one
 * step, the first warp stands for the gang: its `together` is the number of warps, and a step runs
 * for all of them at once (sg_step.gang). A value that is uniform or affine in the lane is then a
 * scalar: each 64 bytes of a warp's registers, constants and special registers have a tag. Where
 * lanes diverge, each warp goes on by itself, without tags, and the warps meet again where their
 * paths reconverge.
 */
#define SG_TAG_KNOWN   1u /* lane l has base + x * s + y * t: x = l % across, y = l / across */
#define SG_TAG_NO_DATA 2u /* and the lanes' memory does not hold it */
#define SG_TAG_HOLDS   4u /* while lanes part */
struct sg_tag {
    uint64_t base; /* of all three, only the register's width counts */
    int64_t s, t;
    uint32_t kind;
};

/* ---- running --------------------------------------------------------------------------------- */

struct sg_range_cache {
    uint64_t low, length;
    uint64_t distance; /* host address minus address */
    uint64_t last;     /* start of a gang's last access: the next is expected as far on */
};

/* A node in the tree of calls that lanes have made: lanes with the same node have the same call
 * stack. */
struct sg_path {
    struct sg_path *parent, *child, *sibling;
    uint32_t lanes;    /* in this call, or deeper */
    uint32_t call;     /* its step */
    uint32_t function; /* the callee */
    uint32_t depth;
    uint32_t registers;              /* offset of its frame in the warp's registers */
    uint64_t frame;                  /* offset of its frame in the thread's local memory */
    struct sg_watched_frame watched; /* the same for watchers */
};

enum sg_group_state {
    SG_GROUP_READY,
    SG_GROUP_BARRIER,
    SG_GROUP_WARP,
    SG_GROUP_CLUSTER,
    SG_GROUP_JOIN, /* where lanes join that have parted */
    SG_GROUP_SLEEP /* in nanosleep, until `wake` */
};

struct sg_group {
    uint32_t lanes;
    uint32_t step;
    struct sg_path *path;
    uint64_t stamp; /* when it last ran */
    unsigned char state, barrier;
    uint32_t members; /* the lanes that it waits for */
    uint64_t wake;    /* sg_now */
};

/* Where lanes join that have parted: join.c. */
struct sg_join {
    uint32_t lanes, step;
    struct sg_path *path;
    uint32_t here;  /* lanes that have come, and wait */
    uint32_t came;  /* those at the end of a turn */
    uint32_t turns; /* since others came, in which the rest only looked at memory */
    int64_t looked; /* instructions of these turns */
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
    SG_STOP_APART /* a gang's warps go on by themselves */
};

struct sg_warp {
    unsigned char *base[SG_BASES];
    uint32_t mask;       /* the lanes that execute */
    uint32_t unguarded;  /* those before the guard */
    uint32_t probed;     /* those before the probe */
    int64_t left;        /* instructions until it yields */
    uint32_t ready;      /* ready groups other than the running one */
    uint32_t join_count; /* of `joins` */
    bool alone;          /* the running group does not join others: lanes may spin for it */
    bool polls;          /* has read memory that others may write */
    bool slept;          /* its turn ended in nanosleep */
    int64_t since_poll;  /* instructions since a turn in which it did */
    enum sg_stop stop;
    struct sg_path *path;
    uint64_t stamp;
    unsigned char *shared;
    uint64_t shared_size;
    unsigned char *local;     /* one lane after another */
    uint64_t local_size;      /* of a lane */
    uint32_t stack[SG_LANES]; /* offset in it of what alloca has taken */
    struct sg_range_cache *caches;
    struct sg_counts *counts; /* counted code: the worker's */
    struct sg_grid *grid;
    struct sg_block *block;
    unsigned number;
    uint32_t live;              /* lanes that have not exited */
    uint32_t came[SG_BARRIERS]; /* lanes that have arrived, for warps in `partial` */
    struct sg_group groups[SG_LANES];
    unsigned group_count, joining, asleep; /* joining: those of SG_GROUP_JOIN; asleep likewise */
    struct sg_join joins[SG_LANES];
    int64_t unseen;    /* instructions since it looked, in turns while lanes waited at a join */
    uint64_t progress; /* the grid's, at the end of a turn in which lanes waited at a join */
    unsigned char *registers;
    size_t register_room;
    struct sg_path root;
    struct sg_path *spare;
    uint64_t clock;
    unsigned char *specials;
    const struct sg_pending *doing; /* the copy being done, perhaps another thread's; else NULL */
    struct sg_known_texture textures[SG_KNOWN_TEXTURES];
    uint32_t meet; /* a step where it stops, to wait for the rest of its gang */
    bool passed;   /* some of its lanes went on at `meet`, since it was set */
    bool moved;    /* its registers have been reallocated, apart from the gang's */
    /* The rest is used in the first warp of a gang: */
    unsigned together;             /* warps now in lock step; 0: this warp is alone */
    bool whole;                    /* no live lane is disabled by a guard */
    bool full;                     /* all lanes of all its warps are live */
    bool solid;                    /* and execute: full and whole */
    bool tagged;                   /* tags are valid */
    bool held;                     /* some are valid where the warps meet */
    struct sg_tag *tags[SG_BASES]; /* one for each SG_SLOT_LINE */
    ptrdiff_t stride[SG_BASES];    /* from one warp's place to the next one's */
    unsigned across, across_log;   /* lanes in a row of sg_tag: a power of two */
    unsigned x_most, y_most;       /* the last lane's */
    unsigned gang_size, meet_turns;
};

struct sg_barrier {
    uint32_t arrived, wanted; /* wanted: 0 for all that have not exited */
    uint32_t partial;         /* warps of which only some lanes have arrived */
    uint32_t count;           /* true predicates, for .red */
    bool all, any;
};

struct sg_block {
    struct sg_block *next;
    uint64_t index;
    unsigned place[3];
    struct sg_warp *warps;
    unsigned warp_count;
    uint32_t live;       /* threads */
    uint32_t live_warps; /* with lanes that have not exited */
    bool triggered;      /* has executed griddepcontrol.launch_dependents, or ended */
    struct sg_barrier barriers[SG_BARRIERS];
    bool spins;             /* in its last turn its warps only polled memory */
    uint32_t short_turns;   /* in a row, that ended at a barrier soon after a poll */
    int64_t since_poll;     /* instructions of its warps since a turn in which one polled */
    uint32_t barriers_used; /* those that may have arrivals */
    unsigned char *shared;
    unsigned char *memory;          /* one allocation: shared, local, specials, tags, registers */
    struct sg_cluster_run *cluster; /* NULL: the code does not need it */
    unsigned rank;                  /* in its cluster */
};

/* State of a thread that advances a grid. Blocks stay with their worker and its caches. The thread
 * that sets `taken` owns all other members until it clears it. */
struct sg_worker {
    atomic_bool taken;
    atomic_bool busy; /* has resident blocks */
    struct sg_grid *grid;
    struct sg_range_cache *caches;
    struct sg_counts *counts;               /* NULL: the code is not counted */
    uint64_t table;                         /* the page table's state that `caches` is valid for */
    struct sg_block *running, *last, *free; /* singly linked lists */
    uint64_t running_count;
    unsigned passes;                /* turns in which blocks got on, since one began or ended */
    struct sg_cluster_run *opening; /* in which blocks begin next */
    uint64_t spins; /* consecutive turns in which blocks only polled, since the last one began */
    uint64_t spun;  /* the same, since the slice began */
    atomic_uint_fast64_t progress; /* turns in which blocks did more than poll */
};

struct sg_grid {
    const struct sg_code *code;
    struct sg_grid_launch launch;
    unsigned char *parameters;
    unsigned char *constants;         /* patched */
    struct sg_worker first, *others;  /* `others` is made when a second thread comes */
    _Atomic(struct sg_worker *) more; /* `others`, once they exist */
    atomic_flag making;
    atomic_uint turn;               /* the worker to try first */
    uint64_t blocks, resident_most; /* resident_most: per worker */
    atomic_uint_fast64_t begun, ended;
    uint64_t block_bytes, shared_bytes, shared_exact, local_bytes, register_bytes, tag_bytes;
    struct sg_tag *constant_tags;
    unsigned warps, gangs, threads;
    unsigned cluster[3], cluster_size; /* in blocks: 1 without clusters */
    bool clustered;                    /* blocks have a struct sg_cluster_run */
    uint64_t random;                   /* generator's state; there is one worker then */
    atomic_uint_fast64_t instructions;
    atomic_flag faulted; /* set by the first fault */
    atomic_bool failed;
    struct sg_grid_fault fault;
    atomic_ullong beyond;    /* the first barrier's number above 15, with its line */
    atomic_ullong triggered; /* blocks that have released dependents, or ended */
    atomic_bool held;        /* griddepcontrol.wait waits */
    /* Shared memory that has the addresses below SG_SHARED_BEGIN is kept after the rest. */
    uint64_t reserved_offset, reserved_bytes;
    uint64_t workspace[32]; /* of a cooperative launch */
};

/* Bytes of shared memory that are a block's own. */
static inline uint64_t sg_shared_room(const struct sg_grid *grid) {
    return grid->shared_exact;
}

/* The size that hardware allocates, in units of 128 bytes, as an H200 reports it. */
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

/* Fills the form; false: the instruction is not one of this theme. */
typedef bool sg_theme(const struct sg_instruction *instruction, struct sg_form *form);
struct sg_lanes {
    sg_theme *const *themes;                    /* NULL at the end */
    sg_run *widen[2][SG_W_64 + 1][SG_W_64 + 1]; /* [signed][from][to], also to narrower ones */
    /* Expands the tag of a place to the lanes of all warps of a gang. */
    void (*fill)(struct sg_warp *gang, uint32_t place, unsigned bytes);
};
extern const struct sg_lanes sg_lanes_generic, sg_lanes_v3, sg_lanes_v4;
const struct sg_lanes *sg_level_lanes(enum sg_level level);

/* ---- reach.c, cluster.c: called by the loads and stores of all levels ------------------------ */

/* The host bytes of [address, address + size), or NULL: the warp has faulted. */
unsigned char *sg_reach_global(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                               uint64_t address, uint64_t size);
/* The same for the memory of an array, which is not part of any allocation. */
unsigned char *sg_reach_array(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                              uint64_t address, uint64_t size);
/* The host bytes from an address on, as far as they are contiguous: *got of them, at most
 * `size`. */
unsigned char *sg_reach_some(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                             uint64_t address, uint64_t size, uint64_t *got);
/* Reads behind the launch's parameters give zero, as far as hardware's bank of constants goes. */
#define SG_PAST_PARAMETERS 64u
unsigned char *sg_reach_parameters(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                                   uint64_t address, uint64_t size);
/*
 * Bytes of shared memory, of the block or another one of its cluster. In code that uses clusters
 * all blocks but a cluster's first have a warp->shared_size of 0, so that their accesses come here.
 */
unsigned char *sg_reach_shared(struct sg_warp *warp, const struct sg_step *step, unsigned lane,
                               uint64_t address, uint64_t size);
/* The block whose shared memory an offset is in, from which the rank is removed; NULL: none. */
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
/* Records the fault of a lane, if it is the grid's first; `report` may be NULL. */
void sg_fault_note(struct sg_warp *warp, const struct sg_step *step, enum sg_fault_kind kind,
                   unsigned lane, uint64_t address, uint64_t size, const char *report);
/* The same without a report. Returns NULL. */
void *sg_warp_fault(struct sg_warp *warp, const struct sg_step *step, enum sg_fault_kind kind,
                    unsigned lane, uint64_t address, uint64_t size);

/* ---- schedule.c ------------------------------------------------------------------------------ */

/* Adds lanes as a group that will continue at a step. */
void sg_group_add(struct sg_warp *warp, uint32_t lanes, uint32_t step, struct sg_path *path);
/* Switches to the group that should run next. Returns its step, or NULL (warp->stop says why). */
const struct sg_step *sg_group_next(struct sg_warp *warp);
/* At the beginning of a basic block: counts its instructions, joins groups, yields. */
sg_run sg_run_leader;
void sg_warp_exit(struct sg_warp *warp, uint32_t lanes);
enum sg_stop sg_warp_run(struct sg_warp *warp, int64_t quantum);
struct sg_path *sg_path_enter(struct sg_warp *warp, const struct sg_step *call, uint32_t function);
void sg_path_leave(struct sg_warp *warp, struct sg_path *path, uint32_t lanes);
/* Sets the warp's bases to the frame of a path. */
void sg_path_use(struct sg_warp *warp, struct sg_path *path);
void sg_paths_free(struct sg_warp *warp);

/* ---- join.c ---------------------------------------------------------------------------------- */

/* The running lanes part at a branch. */
void sg_join_branch(struct sg_warp *warp, const struct sg_step *branch);
/* sg_step.choice of a branch whose lanes do not wait for each other. */
#define SG_JOIN_NEVER 1u
/* Lanes part, and join at a step; does nothing under a launch's independent lanes. */
void sg_join_at(struct sg_warp *warp, uint32_t lanes, uint32_t step, struct sg_path *path);
/* The running group is at a step: true, and it is put aside, if lanes that join there are missing;
 * else those that waited there run with it. */
bool sg_join_waits(struct sg_warp *warp, uint32_t here);
static inline bool sg_joins_here(const struct sg_warp *warp, uint32_t here) {
    for (unsigned i = 0; i < warp->join_count; i++)
        if (warp->joins[i].step == here)
            return true;
    return false;
}
/* Lanes will not come, and all that wait look again. */
void sg_joins_look(struct sg_warp *warp, uint32_t gone);
/* No lane is in the call any more. */
void sg_joins_end(struct sg_warp *warp, const struct sg_path *path);
/* Lets those at the innermost join go on without the others; false: nobody waits at one. */
bool sg_joins_give_up(struct sg_warp *warp);
/* At the end of a turn while groups wait at joins: lets them go on if the others only look. */
void sg_joins_turn(struct sg_warp *warp, int64_t used);

/* ---- block.c --------------------------------------------------------------------------------- */

enum sg_turn { SG_TURN_DONE, SG_TURN_ON, SG_TURN_SPINS, SG_TURN_WAITS, SG_TURN_FAULT };
/* A new block of a worker; NULL: out of memory. */
struct sg_block *sg_block_make(struct sg_worker *worker);
void sg_block_free(struct sg_block *block);
/* Starts the block with the given number in the order of beginning. It is in its cluster
 * already. */
void sg_block_start(struct sg_grid *grid, struct sg_block *block, uint64_t order);
/* Runs each warp that can run for a while. SPINS: they only polled memory; WAITS: other blocks of
 * its cluster must run. */
enum sg_turn sg_block_turn(struct sg_grid *grid, struct sg_block *block, int64_t *budget);

/* sleep.c: groups that have slept for long enough can run again. */
sg_run sg_run_nanosleep;
void sg_warp_wake(struct sg_warp *warp);

/* order.c: the number of the block that begins as this one. */
uint64_t sg_block_order(const struct sg_grid *grid, uint64_t order);

/* ---- grid.c ---------------------------------------------------------------------------------- */

/* The worker of this index; NULL: there are no more. */
const struct sg_worker *sg_grid_worker(const struct sg_grid *grid, unsigned index);
/* Records a fault that is not a lane's, if it is the grid's first. */
void sg_grid_fails(struct sg_grid *grid, enum sg_fault_kind kind);

/* ---- gang.c ---------------------------------------------------------------------------------- */

static inline struct sg_tag *sg_tag(const struct sg_warp *warp, uint32_t place) {
    return warp->tags[place >> 30] + (place & SG_OFFSET_MASK) / SG_SLOT_LINE;
}

/* The function for gangs that corresponds to one for a warp. */
sg_run *sg_gang_of(sg_run *run);
/* Bytes of tags for a gang. */
uint64_t sg_gang_bytes(const struct sg_code *code);
/* Sets up the first warp of a gang; special registers are filled already. */
void sg_gang_make(struct sg_warp *gang, unsigned size, void *tags);
/* A block begins: updates the special registers that depend on the block. */
void sg_gang_start(struct sg_warp *gang);
/* Whether its warps can run in lock step. */
bool sg_gang_ready(const struct sg_warp *gang);
enum sg_stop sg_gang_run(struct sg_warp *gang, int64_t quantum);
/* Call before a warp of the gang runs by itself. */
void sg_gang_apart(struct sg_warp *gang);

/* count.c */
sg_run sg_run_count, sg_gang_count, sg_run_count_access, sg_gang_count_access;
/* control.c */
sg_run sg_run_branch, sg_run_indexed, sg_run_call, sg_run_indirect, sg_run_return, sg_run_exit;
sg_run sg_run_guard, sg_run_unguard, sg_run_trap, sg_run_brkpt, sg_run_nothing;
sg_run sg_run_fence;
/* device_call.c: list: the result's place, then the arguments', two words each */
sg_run sg_run_device_call;
/* Flag of an argument in the caller's frame, with its bytes below; without it an enum sg_width. */
#define SG_ARGUMENT_FRAME 16u
/* report.c */
void sg_deadlock(struct sg_block *block);
/* barrier.c */
sg_run sg_run_barrier;
/* Lanes arrive at one barrier; false: a fault. */
bool sg_barrier_arrive(struct sg_warp *warp, const struct sg_step *step, uint32_t lanes,
                       uint32_t number);
/* A thread has exited: checks barriers that wait for all threads again. */
void sg_barriers_look(struct sg_block *block);
/* collective.c: list: the place of the member mask, that of the second result */
sg_run sg_run_collective, sg_run_activemask;
/* copy_async.c, pending.c, bulk.c, mbarrier.c, cluster.c */
sg_run sg_run_copy_async, sg_run_copy_arrive, sg_run_copy_group, sg_run_bulk, sg_run_store_async;
sg_run sg_run_mbarrier, sg_run_mbarrier_wait, sg_run_mbarrier_count;
sg_run sg_run_mapa, sg_run_getctarank, sg_run_cluster_arrive, sg_run_cluster_wait;
/* dependents.c */
sg_run sg_run_launch_dependents, sg_run_dependency_wait;
/* Records, once, that the block has released dependent grids. */
void sg_block_triggers(struct sg_block *block);
/* workspace.c: bytes of reserved shared memory that a kernel needs, launched with dynamic bytes. */
uint64_t sg_reserved_shared(const struct sg_code *code, uint64_t dynamic);
/* %reserved_smem_*, %aggr_smem_size, %envreg1 and 2. */
uint64_t sg_workspace_special(const struct sg_grid *grid, unsigned special, uint32_t number);
/* The host bytes of an address in the workspace; NULL for others. */
unsigned char *sg_workspace_reach(struct sg_grid *grid, uint64_t address, uint64_t size);
#define SG_SAMPLER_WINDOW ((uint64_t)0xfffe << 48) /* handles that encode a sampler's settings */
/* texture_run.c, texture_surface.c, texture_query.c */
sg_run sg_run_texture, sg_run_surface, sg_run_texture_query;
/* special.c */
sg_run sg_run_special, sg_run_frame_address, sg_run_isspacep, sg_run_pack, sg_run_unpack;
#define SG_SPECIAL_SHARED SG_SPECIAL_COUNT /* the address of offset `value` in shared memory */
bool sg_special_constant(unsigned special);
bool sg_special_of_block(unsigned special);
void sg_special_fill(struct sg_warp *warp, const struct sg_code_special *special, void *lanes);
/* The value of a special register for which sg_special_of_block is true. */
uint64_t sg_special_value(const struct sg_warp *warp, const struct sg_code_special *special);

/* The lanes of the running group for which a control step's guard is true. */
static inline uint32_t sg_taken(const struct sg_warp *warp, const struct sg_step *step) {
    if (!(step->flags & SG_STEP_GUARD))
        return warp->mask;
    uint32_t guard = sg_predicate(warp, step->e);
    return warp->mask & (step->flags & SG_STEP_NOT ? ~guard : guard);
}

#endif
