/*
 * Fault sweeps: a sequence of driver calls is run with its first call failing, then its second, and
 * so on until none is left to fail; each time all must be as it was before.
 *
 * A scenario has an act, run with a fault armed, and what follows without one:
 *
 *     static int act(void *user);     0, or the error that it reports to its caller
 *     static void recover(void *user) after an act that failed: a second try at what could not be
 *                                     released meanwhile. NULL for an act that promises whole or
 *                                     nothing by itself.
 *     static void undo(void *user)    after an act that succeeded
 *
 * How the fault shows (softgpu.h): the call is refused; it takes effect and then answers an error;
 * it and all later calls are refused. Then the same is done with the requests for memory that the
 * library, or the act itself, makes of the host in this thread. After each run these must equal
 * what they were before the act: softgpu's canonical state, the open descriptors, and the memory
 * mappings of the process. Of mappings MAP_TOLERANCE more are allowed in a whole sweep: malloc's
 * arenas, stacks of softgpu's threads and its own views grow and stay; and what is lost keeps its
 * memory mapped.
 */
#ifndef FAULT_SWEEP_H
#define FAULT_SWEEP_H

#include "test.h"
#include <gpumem/softgpu.h>

#define MAP_TOLERANCE 8
#define MAPS_PER_LOST 2

/* Which faults: a long act is swept in two programs. */
enum sweep_part {
    SWEEP_ALL,
    SWEEP_REFUSED, /* the call has no effect: refused, out of memory */
    SWEEP_FAULTED, /* the device has failed: after the call's effect, from the call on */
};

struct sweep {
    const char *name;
    enum sweep_part part;
    void (*prepare)(void *user); /* before each run, without a fault; may be NULL */
    int (*act)(void *user);
    void (*recover)(void *user);
    void (*undo)(void *user);
    /*
     * The act may succeed although a call of it failed: it has another way, tries again, or
     * releases. Else a fault must make it fail.
     */
    bool may_succeed;
    /*
     * Objects that the act could not give back and has counted as lost, so far. Where it has risen,
     * the state may have kept something; NULL when nothing may ever be lost.
     */
    uint64_t (*lost)(void *user);
    /*
     * `recover` and `undo` leave caches as they are: these may have shrunk after the act, and
     * nothing else may have changed. Of each sort of line of the state there may be fewer, and
     * their numbers less; none more.
     */
    bool caches_may_shrink;
    /* What the act does beside the library needs memory of the host's: none is refused. */
    bool needs_host_memory;
    /* What to print of an act that fails for no fault; may be NULL. */
    const char *(*explain)(void);
    void *user;
};

/* Fails the running test with the mode, the number of the call and what differs. */
void sweep_run(const struct sweep *sweep);

/* Which softgpu: before the first sweep. */
void sweep_with(const softgpu_control *control);

#endif
