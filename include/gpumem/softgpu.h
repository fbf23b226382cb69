/*
 * softgpu's controls beyond the CUDA driver API: inject faults, dump its state, count calls.
 *
 * softgpu is opened like any driver. Its controls are a symbol of the opened library:
 *
 *     softgpu_get_control_fn get;
 *     *(void **)&get = gpumem_driver_symbol(driver, "softgpu_get_control");
 *     const softgpu_control *soft = get ? get(SOFTGPU_CONTROL_VERSION) : NULL;
 *
 * All functions are thread-safe unless they say otherwise, and none is counted, traced or made to
 * fail as a driver call.
 */
#ifndef GPUMEM_SOFTGPU_H
#define GPUMEM_SOFTGPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTGPU_CONTROL_VERSION 1

/*
 * The effect of an injected fault. Some errors a driver returns only when the device has stopped
 * (CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED and the like). They leave, in every mode,
 * nothing queued on the current context's device, or without a context on any device: work that can
 * run has run, work that waits is dropped. So a program that gets one may free memory without
 * waiting.
 */
typedef enum softgpu_fault_mode {
    SOFTGPU_FAULT_BEFORE = 1, /* the call is refused and has no effect */
    SOFTGPU_FAULT_AFTER = 2,  /* the call takes effect, then returns the error, as the driver does
                                 when it reports an earlier asynchronous failure */
    SOFTGPU_FAULT_FROM = 3,   /* this call and every later call of any function is refused, as in a
                                 poisoned context; cuGetErrorName and cuGetErrorString still work */
    SOFTGPU_FAULT_SKIP = 4,   /* the call reports success and does nothing: this shows whether a
                                 test checks the effect at all */
    SOFTGPU_FAULT_STICKY = 5, /* the call is refused and the current context is poisoned with the
                                 error, as by context_poison: the device is lost, or its memory
                                 failed. Queued work is dropped, and no other context of the device
                                 can be created */
} softgpu_fault_mode;

/* When queued work runs. */
typedef enum softgpu_schedule {
    SOFTGPU_SCHEDULE_EAGER = 0, /* work runs as soon as it can */
    SOFTGPU_SCHEDULE_LATE = 1,  /* work runs when something waits for it, or nothing else can run */
    SOFTGPU_SCHEDULE_RANDOM = 2, /* a seed determines which runnable stream runs next, and when */
} softgpu_schedule;

/* The state of a function of the table in this build of softgpu. An unproved function is a defect
 * of this build, on which its own tests fail. */
typedef enum softgpu_function_state {
    /* Implemented, and `test` fails when it does nothing; or `test` says why its effect cannot be
     * observed. */
    SOFTGPU_FUNCTION_REAL = 1,
    SOFTGPU_FUNCTION_REFUSED = 2,  /* always returns an error, except that a capture may make a node
                                       of a launch */
    SOFTGPU_FUNCTION_UNPROVED = 3, /* implemented, but no test shows an effect */
} softgpu_function_state;

/*
 * An external semaphore as softgpu imports it (CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD: binary;
 * ..._TIMELINE_SEMAPHORE_FD: timeline): a memory file of SOFTGPU_SEMAPHORE_SIZE bytes that begins
 * with this struct and is sealed against shrinking, growing and further seals. Any process that has
 * the descriptor may map it, and signal or wait by atomic operations on `value`.
 *
 * - Binary: 1 is signaled, 0 is not. A signal stores 1; a wait changes 1 to 0 by
 *   compare-and-exchange.
 * - Timeline: a signal stores its value; a wait ends when `value` is at least its own.
 */
#define SOFTGPU_SEMAPHORE_MAGIC   "softgpu sync\n"
#define SOFTGPU_SEMAPHORE_VERSION 1u
#define SOFTGPU_SEMAPHORE_SIZE    4096

/* What the value of a semaphore means. */
typedef enum softgpu_semaphore_kind {
    SOFTGPU_SEMAPHORE_BINARY = 1,
    SOFTGPU_SEMAPHORE_TIMELINE = 2,
} softgpu_semaphore_kind;

/* A semaphore that another process may wait for. */
typedef struct softgpu_semaphore {
    char magic[16];
    uint32_t version;
    uint32_t kind;
    uint64_t value;
} softgpu_semaphore;

/*
 * A CUDA runtime over this driver, for runtime_attach: it names the function of its own that a
 * thread is in, so that reports of the driver's calls below can name it too. Owned by the runtime,
 * and never freed, nor its code unloaded.
 */
typedef struct softgpu_runtime {
    size_t size; /* sizeof(softgpu_runtime) */
    /* The outermost function of the runtime's that the calling thread is in ("cudaMalloc", a text
     * that is never freed), or NULL. Called inside of the driver's calls: it may not call it. */
    const char *(*call)(void);
} softgpu_runtime;

/* The functions of softgpu that tests call. */
typedef struct softgpu_control {
    size_t size; /* of this struct, as built */

    /*
     * Arms one fault: the n-th call of `function` (counted from 1; 0 means each call) made from now
     * on by any thread returns `error` (a CUresult). `function` is an exported name, and unlike in
     * SOFTGPU_FAULT and fault_arm_name only that version; "*" counts every call except
     * cuGetErrorName and cuGetErrorString, which no driver fails. Replaces the fault armed before.
     * Returns 0, or -1 if the name is not in the table or the mode is invalid.
     */
    int (*fault_arm)(const char *function, uint64_t n, int error, softgpu_fault_mode mode);
    /* Disarms the fault. Returns how often it fired. */
    uint64_t (*fault_disarm)(void);

    /* Driver calls made in this process since the start, or of one function (NULL for all). */
    uint64_t (*call_count)(const char *function);

    /*
     * The canonical state as text, one object per line, sorted: devices, contexts, reservations,
     * mappings with access, memory handles, allocations, pools, streams, events, bytes in use.
     * Handles and addresses are numbered in order of address or creation, so that equal states give
     * equal text. Free with free_text. NULL when out of memory, in a forked child, and in a host
     * function that runs inside a call.
     */
    char *(*state_dump)(void);
    void (*free_text)(char *text);

    /* Live objects that the program should have freed, one per line; "" if there are none. Free
     * with free_text. NULL as for state_dump. */
    char *(*leak_report)(void);

    /* Takes effect for work submitted afterwards. */
    void (*schedule_set)(softgpu_schedule schedule, uint64_t seed);

    /* State of a function by exported name. *test is the name of the test that proves it, or "";
     * `test` may be NULL. */
    softgpu_function_state (*function_state)(const char *function, const char **test);

    /* Poisons the current context of the calling thread with a sticky error (a CUresult), as a
     * device fault would. Returns 0, or -1 if no context is current. */
    int (*context_poison)(int error);

    /* Allocated bytes of physical memory of device `ordinal`, and the limit. */
    int (*memory_info)(int ordinal, uint64_t *used, uint64_t *limit);

    /* The descriptor of a new semaphore with value `value`, closed by the caller unless
     * cuImportExternalSemaphore takes it over; -1, with errno set, on failure. */
    int (*semaphore_create)(softgpu_semaphore_kind kind, uint64_t value);

    /* Checks the SOFTGPU_* variables of the current environment without acting on them. Writes a
     * line for each that is not understood (with such an environment cuInit returns
     * CUDA_ERROR_SYSTEM_NOT_READY), as many as fit in `size` bytes; returns their number, or -1 if
     * `text` is NULL. The file of SOFTGPU_TRACE exists afterwards. */
    int (*settings_check)(char *text, size_t size);

    /*
     * Links `count` PTX texts, each terminated by a zero byte, for compute capability
     * `architecture` (90 for 9.0), as cuLinkComplete does, but without a context. *size is the room
     * at `image` in bytes, and receives the size of the result, which cuModuleLoadData accepts;
     * `image` may be NULL, to query the size. The linker's messages are written to `log`, truncated
     * to `log_size` bytes. Returns a CUresult: INVALID_VALUE if the room is too small.
     */
    int (*link_texts)(unsigned architecture, const char *const *texts, size_t count, char *log,
                      size_t log_size, void *image, size_t *size);

    /*
     * With SOFTGPU_PROFILE_KERNELS: the profile of all launches that have ended, as a table, or if
     * `json` is not 0 as one line of JSON (docs/softgpu.md). "" without the variable, and before
     * any launch has ended. Free with free_text. NULL as for state_dump.
     */
    char *(*kernel_profile)(int json);

    /*
     * fault_arm, with a function's name as a program's source has it: "cuMemAlloc" is all versions
     * and per-thread twins of it, counted together, whichever of them the program was compiled to
     * call. An exported name ("cuMemAlloc_v2"), "=" and an exported name where the first version
     * has the plain one ("=cuMemAlloc"), "*" and a function of an attached runtime ("cudaMalloc")
     * are taken too, as in SOFTGPU_FAULT.
     * A softgpu that lacks this and what follows has a smaller `size`.
     */
    int (*fault_arm_name)(const char *function, uint64_t n, int error, softgpu_fault_mode mode);
    /* How many calls the armed fault's functions have got since it was armed, failed ones
     * included; of the last one if none is armed any more. An `n` larger than that is past the end
     * of what a sweep tries. Calls behind the first that SOFTGPU_FAULT_FROM refused do not
     * count. */
    uint64_t (*fault_reached)(void);

    /* A mark between what was made before and what is made from now on, by any thread. 0 in a
     * forked child and in a host function that runs inside a call. */
    uint64_t (*leak_mark)(void);
    /* leak_report, of what was made after the mark alone; 0 stands for the start of the process.
     * "" if nothing of it is live. The numbers in its lines are those of leak_report. Free with
     * free_text. NULL as for state_dump. */
    char *(*leak_report_since)(uint64_t mark);

    /*
     * Says what the calling thread does from now on, for example the name of a test; NULL or ""
     * for nothing. It stands at the end of the lines about what the thread made (leak_report and
     * reports of leaks and checkers, in place of the test that pytest names) or called (the error
     * log's lines, as far as they have room, and SOFTGPU_TRACE). At most 159 bytes are kept, with
     * what is not printable as \x0a. The text is copied. Other threads have labels of their own,
     * and threads begin without.
     */
    void (*label_set)(const char *text);

    /*
     * The profiles that SOFTGPU_PROFILE takes by name, a line each: the name, a space, and the
     * compute capability, 90 for 9.0. *newest_ptx, which may be NULL, is the newest version of PTX
     * that is read with the environment of this process, 92 for 9.2. Free with free_text. NULL when
     * out of memory. A softgpu that lacks this and what follows has a smaller `size`.
     */
    char *(*profile_list)(int *newest_ptx);

    /*
     * Makes a runtime known: from now on leak reports, the trace, checkers and the error log name
     * its functions. Returns a word that is not 0 while the runtime is to tell of each call by
     * runtime_enter and runtime_leave (it changes at any time: read it atomically); NULL if four
     * are attached already. Reads the environment, as the first call of the driver does.
     */
    const unsigned *(*runtime_attach)(const softgpu_runtime *runtime);
    /* Before the outermost function of the runtime's does anything. Returns 0 if an injected fault
     * answers it: *error, a cudaError_t, is then what it returns, after runtime_leave. */
    int (*runtime_enter)(const char *function, int *error);
    /* When it is about to return `error`, a cudaError_t; while the word is 0, only if that is not
     * cudaSuccess. `arguments` is text for the trace, or NULL. Returns the error that the function
     * returns instead: an injected fault's, or `error`. */
    int (*runtime_leave)(const char *function, const char *arguments, int error);
} softgpu_control;

/* The type of softgpu's symbol, named in this file's first comment. NULL for a version that this
 * softgpu does not have. */
typedef const softgpu_control *(*softgpu_get_control_fn)(int version);

#ifdef __cplusplus
}
#endif

#endif
