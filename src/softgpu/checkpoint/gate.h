/*
 * The gate that every call that takes the lock passes, and what other processes see of it.
 *
 * A process keeps its state in a memory file that other processes of the same user find and map
 * through /proc: the process that locks it (the locker) writes there, and the calls of the locked
 * process wait on that word. No signal is sent, and only the restore thread watches the file, so a
 * process that is never locked pays for the file and that thread in cuInit, and for a few ordinary
 * loads and stores in each call.
 *
 * A call announces itself and then reads the state; the locker sets the state and then reads what
 * is announced. For neither to miss the other, both need a full barrier. Locking is rare, so the
 * locker alone issues one, for all threads of the machine (membarrier).
 */
#ifndef SG_CHECKPOINT_GATE_H
#define SG_CHECKPOINT_GATE_H

#include "softgpu/core/state.h"

#include <stdint.h>

#define SG_CONTROL_MAGIC "softgpu control"

/* Between RUNNING and LOCKED: new calls wait, and the locker waits for existing work to end. */
#define SG_STATE_LOCKING 16u
/* Between CHECKPOINTED and LOCKED: the restore thread has been asked. */
#define SG_STATE_RESTORING 17u
/* In `restorer`: the thread exists, but has not stored its id yet. */
#define SG_RESTORER_STARTS UINT32_MAX

struct sg_control {
    char magic[16];
    uint32_t pid;     /* whose file it is: a forked child has its parent's descriptors */
    uint32_t padding; /* none between the members */
    uint64_t started;
    _Atomic(uint32_t) state;   /* CUprocessState, or SG_STATE_LOCKING; a futex for waiting calls */
    _Atomic(uint32_t) calls;   /* with the lock: calls past the gate that have not returned */
    _Atomic(uint32_t) working; /* with the lock: streams that have work */
    _Atomic(uint32_t) changes; /* a futex for the locker: counts decreases of these two */
    _Atomic(uint32_t) locker;  /* while LOCKING: the process that locks, */
    _Atomic(uint32_t) turn;    /* and the number of lockings begun, to distinguish them */
    _Atomic(uint64_t) locker_started;
    _Atomic(uint32_t) restorer; /* the restore thread; 0 if none. A futex while it starts */
    _Atomic(uint32_t) requests; /* a futex for the restore thread: counts requests to it */
};

/* This process's: in the file after cuInit; in private memory before that and in a forked child. */
extern struct sg_control *sg_control;

/* cuInit's work: makes the file. Without one the process cannot be locked by others. */
CUresult sg_gate_init(void);
/* restorer.c: the thread runs until the process ends. Without it, the restoring process does its
 * work. */
void sg_restorer_start(struct sg_control *control);
/* After a fork: detaches the child from the parent's control. */
void sg_gate_in_child(void);

/* Waits until the state is RUNNING; the lock is released meanwhile. */
void sg_gate_wait(void);
/* Reopens a gate whose locker died before it finished. */
void sg_gate_look_after(struct sg_control *control);
/* Notifies the locker that something has ended. */
void sg_gate_changed(void);

/* With the lock, so an atomic read-modify-write is not needed. */
static inline void sg_gate_add(_Atomic(uint32_t) *count, uint32_t number) {
    uint32_t now = atomic_load_explicit(count, memory_order_relaxed) + number;
    atomic_store_explicit(count, now, memory_order_release);
}

static inline bool sg_gate_open(void) {
    atomic_signal_fence(memory_order_seq_cst); /* membarrier makes it a processor fence */
    return __builtin_expect(atomic_load_explicit(&sg_control->state, memory_order_relaxed) ==
                                CU_PROCESS_STATE_RUNNING,
                            1);
}

/* A call made from within a call or a host function belongs to it and must not wait. */
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
