/*
 * The parity recorder: one line per driver call, the same on every driver that behaves the same.
 *
 * A scenario is a function that makes driver calls through CALL and CALLO, in a process of its own.
 * Addresses and handles are printed by name, so that two runs can be compared; see README.md for
 * the line format and the rules for writing scenarios.
 */
#ifndef PARITY_H
#define PARITY_H

#include <gpumem/driver.h>

#include "members.h"
#include "sizes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define PAR_SENTINEL  0xA5
#define PAR_SKIPS_MAX 16

/* The descriptor of the pipe that lines are written to; without it standard output has them. */
#define PAR_LINES_VARIABLE "PARITY_LINES"

enum {
    PAR_ALONE = 1, /* sees device-wide numbers: no other scenario may run beside it */
    PAR_SWEEP = 2, /* no call depends on an earlier one: a crash costs its own line only */
};

typedef struct par_scenario {
    void (*run)(void);
    const char *name;    /* chapter/behaviour */
    void (*begin)(void); /* called before, or NULL */
    unsigned flags;
    int shards; /* a sweep's processes; 0 for all others */
} par_scenario;

/*
 * SCENARIO(function, "chapter/behaviour") { ... } defines a scenario and adds it to the program.
 * Behind the name may follow what lays its ground, as par_context or a function of the file, its
 * flags and its shards. The linker lays the rows of all files side by side, in the order of the
 * files' names, so that no list of them is kept.
 */
#define SCENARIO(function, ...)                                                                    \
    static void function(void);                                                                    \
    static const par_scenario function##_row PAR_ROW(par_scenario) = {.run = (function),           \
                                                                      .name = __VA_ARGS__};        \
    static void function(void)

/* One statement: a row among others of its kind. */
#define SCENARIO_IS(function, name, statement) SCENARIO_IN(function, name, NULL, statement)
#define SCENARIO_IN(function, name, begin, statement)                                              \
    SCENARIO(function, name, begin) {                                                              \
        statement;                                                                                 \
    }                                                                                              \
    struct par_scenario

/* The alignment is the row's own: between two there is no gap. */
#define PAR_ROW(type) __attribute__((used, section(#type "s"), aligned(__alignof__(type))))

/* What the running scenario may use. */
typedef struct par_state {
    const gpumem_driver_api *api;
    gpumem_driver *driver;
    CUdevice dev;
    CUcontext primary;       /* after par_context: retained and current */
    int shard, shards;       /* of a sweep */
    int from;                /* a sweep starts here */
    int position;            /* of the call that is made now, in this process */
    int skip[PAR_SKIPS_MAX]; /* positions of the calls that killed or hung an earlier process */
    bool in_sweep;           /* a sweep numbers its calls itself */
    int skips;               /* how many; nothing is printed until behind the last of them */
    unsigned seed;
    int peer_fd; /* a helper process's end of its socket, else -1 */
} par_state;

extern par_state par;

typedef struct par_out {
    char kind; /* see par_print_out */
    bool keep; /* in and out: not filled with the sentinel */
    const char *name;
    void *at;
    size_t size;
    size_t range; /* bytes behind an address, so that interior addresses print as name+offset */
} par_out;

/* Outputs of a call, filled with the sentinel before it, printed after it. */
#define OUT_I(v)                                                                                   \
    { 'i', false, #v, &(v), sizeof(v), 0 } /* signed number */
#define OUT_U(v)                                                                                   \
    { 'u', false, #v, &(v), sizeof(v), 0 } /* unsigned number */
#define OUT_X(v)                                                                                   \
    { 'x', false, #v, &(v), sizeof(v), 0 } /* hexadecimal: flags and masks */
#define OUT_P(v)                                                                                   \
    { 'p', false, #v, &(v), sizeof(v), 0 } /* address, by name */
#define OUT_R(v, n)                                                                                \
    { 'p', false, #v, &(v), sizeof(v), (n) } /* address of n bytes, by name */
#define OUT_H(v)                                                                                   \
    { 'h', false, #v, &(v), sizeof(v), 0 } /* handle, by name */
#define OUT_C(v)                                                                                   \
    { 'c', false, #v, &(v), sizeof(v), 0 } /* 'set', 'zero' or 'untouched' only */
#define OUT_F(v)                                                                                   \
    { 'f', false, #v, &(v), sizeof(v), 0 } /* float, by class */
#define OUT_D(v)                                                                                   \
    { 'd', false, #v, &(v), sizeof(v), 0 } /* file descriptor: 'fd' or the number */
#define OUT_S(v)                                                                                   \
    { 's', false, #v, (v), sizeof(v), 0 } /* char array */
#define OUT_Z(v)                                                                                   \
    { 'z', false, #v, &(v), sizeof(v), 0 } /* const char pointer to a string */
#define IO_U(v)                                                                                    \
    { 'u', true, #v, &(v), sizeof(v), 0 }
#define IO_I(v)                                                                                    \
    { 'i', true, #v, &(v), sizeof(v), 0 }
#define IO_P(v)                                                                                    \
    { 'p', true, #v, &(v), sizeof(v), 0 }

/* One driver call, one line. `cls` names the class of the arguments: "ok", "null-out", … */
#define CALL(fn, cls, args)                                                                        \
    do {                                                                                           \
        if (par_before(GPUMEM_FN_##fn, cls, #args, NULL, 0)) {                                     \
            par_after(par.api->fn args, NULL, 0);                                                  \
        }                                                                                          \
    } while (0)

#define CALLO(fn, cls, args, ...)                                                                  \
    do {                                                                                           \
        const par_out outs_[] = {__VA_ARGS__};                                                     \
        if (par_before(GPUMEM_FN_##fn, cls, #args, outs_, sizeof(outs_) / sizeof(outs_[0]))) {     \
            par_after(par.api->fn args, outs_, sizeof(outs_) / sizeof(outs_[0]));                  \
        }                                                                                          \
    } while (0)

/* False for a call that killed an earlier process of this scenario: it is not made again. */
bool par_before(gpumem_driver_fn fn, const char *cls, const char *args, const par_out *outs,
                size_t count);
void par_after(CUresult result, const par_out *outs, size_t count);

/* Text put before the arguments of the next line: which value a loop has reached. */
void par_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line about something that is not a driver call: content of memory, an errno, an order. */
void par_see(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Bytes as digits, as many as `text` has room for, which it returns. */
const char *par_hex(char *text, size_t room, const unsigned char *bytes, size_t size);

/* The result of the last CALL or CALLO; CUDA_ERROR_UNKNOWN for one that was not made again. */
CUresult par_last(void);

/* Tells the runner that this scenario has other processes and cannot be started again. */
void par_no_restart(void);

/* The next line's number, for sweeps, which number lines by function. */
void par_seq_set(int seq);

/* The name under which lines are printed from here on: in forked and helper processes. */
void par_rename(const char *suffix);
void par_record_start(const char *scenario);

/* Names. An address or handle that is not known gets the label of the variable it came out of. */
void par_name(uint64_t value, size_t range, const char *name);
void par_forget(uint64_t value);
void par_name_print(char *text, size_t room, uint64_t value, size_t range, const char *label);
#define NAME(v)      par_name((uint64_t)(uintptr_t)(v), 0, #v)
#define NAME_R(v, n) par_name((uint64_t)(uintptr_t)(v), (n), #v)
#define FORGET(v)    par_forget((uint64_t)(uintptr_t)(v))

/* A CUresult's enumerator, or NULL. The code of each enumerator in turn, -1 past the end. */
const char *par_result_name(CUresult result);
int par_result_code(size_t index);

/*
 * Setup calls are not recorded: what they test is recorded elsewhere. A failure ends the scenario
 * with a line that says so.
 */
#define SETUP(fn, args) par_setup(GPUMEM_FN_##fn, par.api->fn args)
void par_setup(gpumem_driver_fn fn, CUresult result);
/* What such a call gives: through its first parameter, and through its last. */
#define PAR_MADE(type, fn, ...)                                                                    \
    __extension__({                                                                                \
        type made_ = {0};                                                                          \
        SETUP(fn, (&made_, __VA_ARGS__));                                                          \
        made_;                                                                                     \
    })
#define PAR_GOT(type, fn, ...)                                                                     \
    __extension__({                                                                                \
        type got_ = {0};                                                                           \
        SETUP(fn, (__VA_ARGS__, &got_));                                                           \
        got_;                                                                                      \
    })

void par_init(void);             /* cuInit, device 0 */
void par_context(void);          /* and its primary context, current */
CUcontext par_new_context(void); /* current, too */
CUstream par_stream(void);       /* a non-blocking stream */
CUstream par_blocking_stream(void);
CUevent par_event(unsigned flags);
CUdeviceptr par_alloc(size_t size); /* cuMemAlloc */
CUdeviceptr par_managed(size_t size);
void *par_pinned(size_t size); /* cuMemHostAlloc, zeroed */
CUdeviceptr par_reserve(size_t size);
CUmemoryPool par_pool(const CUmemPoolProps *props);
CUarray par_array(const CUDA_ARRAY3D_DESCRIPTOR *form);
CUmipmappedArray par_mipmap(const CUDA_ARRAY3D_DESCRIPTOR *form, unsigned levels);
CUmodule par_module(const void *image);
CUfunction par_function(CUmodule module, const char *name);
CUgraph par_graph(void);
CUgraphExec par_instantiate(CUgraph graph);
CUmemGenericAllocationHandle par_create(size_t size, CUmemAllocationHandleType type);
CUmemGenericAllocationHandle par_create_as(size_t size, const CUmemAllocationProp *prop);
CUdeviceptr par_mapped(size_t size); /* reserved, created, mapped, read-write for device 0 */
CUmemAllocationProp par_device_prop(void);
CUmemAccessDesc par_device_access(CUmemAccess_flags flags);
#define PAR_2M ((size_t)2 << 20)

/* A stream held by a wait on a flag in pinned memory, until released. No sleeping anywhere. */
void par_hold(CUstream stream);
void par_release(void);
bool par_try_hold(CUstream stream); /* false when the driver refuses */
/* Releases it, and records the wait for a stream's work. */
#define PAR_DRAIN(cls, stream)                                                                     \
    do {                                                                                           \
        par_release();                                                                             \
        CALL(cuStreamSynchronize, cls, (stream));                                                  \
    } while (0)

/* Free memory since the last call or since par_free_mark, in bytes; needs PAR_ALONE. */
void par_free_mark(void);
void par_free_delta(const char *what);

/* In a new child: to die when `parent` does, which nobody else would tell it of. */
void par_die_with(pid_t parent);

/* Starts this program again as `helper` of this scenario, over a socket. */
int par_spawn(const char *helper);
void par_join(void);
void par_send(int fd, const void *data, size_t size, int pass_fd);
bool par_receive(int fd, void *data, size_t size, int *passed_fd);

typedef struct par_helper {
    const char *name;
    void (*run)(void);
} par_helper;

/* HELPER(function, "name") { ... }: likewise, what par_spawn starts. */
#define HELPER(function, name)                                                                     \
    static void function(void);                                                                    \
    static const par_helper function##_row PAR_ROW(par_helper) = {name, function};                 \
    static void function(void)

const par_scenario *par_scenario_find(const char *name);
size_t par_scenario_count(void);
const par_scenario *par_scenario_at(size_t index);

typedef struct par_run_options {
    const char *self;
    const char *scenario; /* only those whose name starts with one of these (commas), or NULL */
    const char
        *list; /* a file of "NAME NUMBER…": only these, and which of their lines never answer */
    const char *output; /* NULL: standard output */
    unsigned seed;      /* 0: file by file, in the order of their rows */
    int jobs;
    int deadline_s; /* 0: none */
    bool together;  /* PAR_ALONE beside others: on softgpu, whose processes share no device */
} par_run_options;
int par_run(const par_run_options *options);

#endif
