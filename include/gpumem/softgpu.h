/*
 * What softgpu can do beyond the CUDA driver API: inject faults, dump its state, count calls.
 *
 * softgpu is opened like any driver. Its controls are found in the opened library:
 *
 *     softgpu_get_control_fn get;
 *     *(void **)&get = gpumem_driver_symbol(driver, "softgpu_get_control");
 *     const softgpu_control *soft = get ? get(SOFTGPU_CONTROL_VERSION) : NULL;
 *
 * All functions are thread-safe unless they say otherwise, and none is counted, traced or faulted
 * as a driver call.
 */
#ifndef GPUMEM_SOFTGPU_H
#define GPUMEM_SOFTGPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTGPU_CONTROL_VERSION 1

/* How an injected fault shows. */
typedef enum softgpu_fault_mode {
    SOFTGPU_FAULT_BEFORE = 1, /* the call is refused and has no effect */
    SOFTGPU_FAULT_AFTER = 2,  /* the call takes effect, then answers the error, as the driver does
                                 when it reports an earlier asynchronous failure */
    SOFTGPU_FAULT_FROM = 3,   /* this call and every later one of any function is refused, as in a
                                 poisoned context; names and texts of errors still answer */
    SOFTGPU_FAULT_SKIP = 4,   /* the call answers success and does nothing: it shows whether a test
                                 checks an effect at all */
    SOFTGPU_FAULT_STICKY = 5, /* the call is refused and the current context poisoned with the
                                 error, as by context_poison: a device that is lost, or whose memory
                                 failed. Queued work drains undone, and no other context of the
                                 device can be made */
} softgpu_fault_mode;

typedef enum softgpu_schedule {
    SOFTGPU_SCHEDULE_EAGER = 0, /* work runs as soon as it may */
    SOFTGPU_SCHEDULE_LATE = 1,  /* work runs when something waits for it, or nothing else can */
    /* Which runnable stream goes next, and when, is drawn from a seed. */
    SOFTGPU_SCHEDULE_RANDOM = 2,
} softgpu_schedule;

/* What became of a function of the table in this build of softgpu. An unproved one is a fault of
 * this build: its own tests fail on it. */
typedef enum softgpu_function_state {
    /* Implemented, and `test` fails when it does nothing; or `test` says why nobody can see what it
     * does. */
    SOFTGPU_FUNCTION_REAL = 1,
    SOFTGPU_FUNCTION_REFUSED = 2,  /* answers an error, whatever is asked for; of launches a capture
                                       may make a node */
    SOFTGPU_FUNCTION_UNPROVED = 3, /* implemented, but no test shows an effect */
} softgpu_function_state;

/*
 * An external semaphore as softgpu imports it (CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD: a
 * binary one, ..._TIMELINE_SEMAPHORE_FD: a timeline): a memory file of SOFTGPU_SEMAPHORE_SIZE bytes
 * that begins with this and is sealed against shrinking, growing and further seals. Any process
 * that has the descriptor may map it and signal or wait by atomic operations on `value`:
 *
 *     binary     1 signaled, 0 not. A wait changes 1 to 0 by compare-and-exchange; a signal
 *                stores 1.
 *     timeline   A signal stores its value; a wait is over when `value` is at least its own.
 */
#define SOFTGPU_SEMAPHORE_MAGIC   "softgpu sync\n"
#define SOFTGPU_SEMAPHORE_VERSION 1u
#define SOFTGPU_SEMAPHORE_SIZE    4096

typedef enum softgpu_semaphore_kind {
    SOFTGPU_SEMAPHORE_BINARY = 1,
    SOFTGPU_SEMAPHORE_TIMELINE = 2,
} softgpu_semaphore_kind;

typedef struct softgpu_semaphore {
    char magic[16];
    uint32_t version;
    uint32_t kind;
    uint64_t value;
} softgpu_semaphore;

typedef struct softgpu_control {
    size_t size; /* of this struct, as built */

    /*
     * Arms one fault: the n-th call (from 1; 0 means each call) of `function` (exported name, that
     * version alone, other than in SOFTGPU_FAULT; "*" counts every call but cuGetErrorName and
     * cuGetErrorString, which no driver fails) made from now on by any thread answers `error` (a
     * CUresult). Replaces the armed one. Returns 0, or -1 when the name is not in the table or the
     * mode is none.
     */
    int (*fault_arm)(const char *function, uint64_t n, int error, softgpu_fault_mode mode);
    /* Disarms. Returns how often the fault fired. */
    uint64_t (*fault_disarm)(void);

    /* Driver calls made in this process since the start, or of one function (NULL for all). */
    uint64_t (*call_count)(const char *function);

    /*
     * The canonical state as text, one object a line, sorted: devices, contexts, reservations,
     * mappings with access, memory handles, allocations, pools, streams, events, bytes in use.
     * Handles and addresses are numbered in order of address or creation, so that two equal states
     * give equal text. Free with free_text. NULL when out of memory, in a forked child and in a
     * host function that runs inside a call.
     */
    char *(*state_dump)(void);
    void (*free_text)(char *text);

    /* Live objects that the program should have freed, one a line; "" when there is none. As
     * state_dump: freed with free_text, NULL where that is. */
    char *(*leak_report)(void);

    /* Takes effect for work submitted afterwards. */
    void (*schedule_set)(softgpu_schedule schedule, uint64_t seed);

    /* State of a function by exported name; *test (may be NULL) names the proving test or is "". */
    softgpu_function_state (*function_state)(const char *function, const char **test);

    /* Poisons the current context of the calling thread with a sticky error (a CUresult), as a
     * device fault would. Returns 0, or -1 with no current context. */
    int (*context_poison)(int error);

    /* Bytes of physical memory of device `ordinal` that are allocated, and the limit. */
    int (*memory_info)(int ordinal, uint64_t *used, uint64_t *limit);

    /* A descriptor of a new semaphore at `value`, to be closed by the caller unless
     * cuImportExternalSemaphore takes it over; -1 with errno set. */
    int (*semaphore_create)(softgpu_semaphore_kind kind, uint64_t value);

    /* Reads the SOFTGPU_* variables of the environment as it is now, without acting on them. Writes
     * a line for each that is not understood (cuInit of a process with such an environment answers
     * CUDA_ERROR_SYSTEM_NOT_READY), as many as `size` bytes hold; returns how many there are, or -1
     * without a place to write to. The file of SOFTGPU_TRACE exists afterwards. */
    int (*settings_check)(char *text, size_t size);
} softgpu_control;

typedef const softgpu_control *(*softgpu_get_control_fn)(int version);

#ifdef __cplusplus
}
#endif

#endif
