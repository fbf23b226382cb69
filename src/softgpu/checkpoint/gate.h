/*
 * The gate that every call passes which takes the lock, and what other processes see of it.
 *
 * A process keeps its state in a memory file that others of the same user find and map through
 * /proc: who locks a process writes there, and the calls of the locked process wait on that word.
 * No signal is sent, and no thread but the one that restores looks at the file, so a process that
 * nobody locks pays for the file and that thread in cuInit, and for a few ordinary loads and stores
 * in a call.
 *
 * A call announces itself and then looks at the state; who locks sets the state and then looks at
 * what is announced. That no side misses the other needs a full barrier on both, and the lock is
 * rare: so it alone issues one, for all threads of the machine (membarrier).
 */
#ifndef SG_CHECKPOINT_GATE_H
#define SG_CHECKPOINT_GATE_H

#include "softgpu/core/state.h"

#include <stdint.h>

#define SG_CONTROL_MAGIC "softgpu control"

/* Between RUNNING and LOCKED: new calls wait, and the work that was there is waited for. */
#define SG_STATE_LOCKING 16u
/* Between CHECKPOINTED and LOCKED: the restore thread has been asked. */
#define SG_STATE_RESTORING 17u
/* Of `restorer`: the thread is there, and has not said its number yet. */
#define SG_RESTORER_STARTS UINT32_MAX

struct sg_control {
    char magic[16];
    uint32_t pid;     /* whose file it is: a forked child has its parent's descriptors */
    uint32_t padding; /* none between the members */
    uint64_t started;
    _Atomic(uint32_t) state;   /* CUprocessState, or SG_STATE_LOCKING; a futex of those who wait */
    _Atomic(uint32_t) calls;   /* with the lock: calls that have passed the gate, not yet done */
    _Atomic(uint32_t) working; /* with the lock: streams that have work */
    _Atomic(uint32_t) changes; /* a futex of who locks, counting when the two fall */
    _Atomic(uint32_t) locker;  /* while LOCKING: the process that locks, */
    _Atomic(uint32_t) turn; /* and how often locking has begun, so that one is told from the next */
    _Atomic(uint64_t) locker_started;
    _Atomic(uint32_t) restorer; /* the restore thread; 0 without one. A futex while it starts */
    _Atomic(uint32_t) requests; /* a futex of the restore thread: counts what is asked of it */
};

/* This process's: in the file after cuInit, before and in a forked child in memory of its own. */
extern struct sg_control *sg_control;

/* cuInit's work: makes the file. Without one the process cannot be locked by others. */
CUresult sg_gate_init(void);
/* restorer.c: the thread runs until the process ends. Without it, who restores does its work. */
void sg_restorer_start(struct sg_control *control);
/* After a fork: what follows is none of the parent's business. */
void sg_gate_in_child(void);

/* Waits until the state is RUNNING; the lock is released meanwhile. */
void sg_gate_wait(void);
/* Opens a gate again whose locker has died before it was done. */
void sg_gate_look_after(struct sg_control *control);
/* Tells who locks that something has ended. */
void sg_gate_changed(void);

/* With the lock, so these are no read-modify-writes of several threads. */
static inline void sg_gate_add(_Atomic(uint32_t) *count, uint32_t number) {
    uint32_t now = atomic_load_explicit(count, memory_order_relaxed) + number;
    atomic_store_explicit(count, now, memory_order_release);
}

static inline bool sg_gate_open(void) {
    atomic_signal_fence(memory_order_seq_cst); /* membarrier makes it a fence of the processor */
    return __builtin_expect(atomic_load_explicit(&sg_control->state, memory_order_relaxed) ==
                                CU_PROCESS_STATE_RUNNING,
                            1);
}

/* What is called from within a call or a host function belongs to it, and must not wait. */
static inline void sg_gate_enter(struct sg_thread *thread) {
    if (thread->calls++ > 0)
        return;
    sg_gate_add(&sg_control->calls, 1);
    if (!sg_gate_open() && !thread->in_host_function)
        sg_gate_wait();
}

static inline void sg_gate_leave(struct sg_thread *thread) {
    if (--thread->calls > 0)
        return;
    sg_gate_add(&sg_control->calls, (uint32_t)-1);
    if (!sg_gate_open())
        sg_gate_changed();
}

#endif
