/*
 * The prologue of every exported function: disabling cancellation, process life, initialization,
 * sticky error, fault injection, counting, trace. exports.c makes one wrapper per row of
 * functions.def around it.
 */
#ifndef SG_ENTRY_ENTRY_H
#define SG_ENTRY_ENTRY_H

#include "softgpu/core/rows.h"

#include <gpumem/driver.h>
#include <gpumem/softgpu.h>
#include <stdbool.h>
#include <stdint.h>

/* An argument, for the trace. */
enum sg_value_kind {
    SG_VALUE_ADDRESS, /* a pointer, a handle, a device address: in hexadecimal */
    SG_VALUE_SIGNED,
    SG_VALUE_UNSIGNED,
    SG_VALUE_FLOAT,
    SG_VALUE_MADE,  /* a pointer to where a handle or address goes, if it comes first */
    SG_VALUE_GRAPH, /* the same for the graph that a capture makes, which is the second argument */
    SG_VALUE_TEXT,  /* const char *, which a successful call has read */
    SG_VALUE_STRUCT,
};

struct sg_value {
    enum sg_value_kind kind;
    uintptr_t bits;
    float real;
};

struct sg_call {
    const struct sg_value *values; /* all arguments; the wrapper gathers them for a traced call */
    size_t value_count;
    bool traced;
    gpumem_driver_fn fn;
    bool inside;      /* the implementation answers */
    bool entered;     /* the lock is held: sg_leave releases it */
    bool fault_after; /* an armed fault replaces the result */
    int cancel;       /* whether the thread could be cancelled before; base/cancel.h */
    CUresult fault;
    struct sg_arguments arguments;
};

/* True when the implementation must be called; otherwise *result is the answer. */
bool sg_enter(struct sg_call *call, gpumem_driver_fn fn, struct sg_arguments arguments,
              CUresult *result);
CUresult sg_leave(struct sg_call *call, CUresult result);

/* Reads the environment, once; the first call of a function does it, too. */
void sg_entry_configure(void);

/* ---- Calls of a runtime: what softgpu.h offers it. ------------------------------------------- */

const unsigned *sg_runtime_attach(const softgpu_runtime *runtime);
int sg_runtime_enter(const char *function, int *error);
int sg_runtime_leave(const char *function, const char *arguments, int error);

/* ---- exports.c: the table as seen by softgpu ------------------------------------------------ */

typedef void (*sg_any_fn)(void);

/* The exported wrapper, as cuGetProcAddress hands it out. */
sg_any_fn sg_exported(gpumem_driver_fn fn);
/* Whether a chapter implements the row, or the plain row of a twin. */
bool sg_implemented(gpumem_driver_fn fn);

/* Number of calls so far of one function, or of all with GPUMEM_FN_COUNT. */
uint64_t sg_call_count(gpumem_driver_fn fn);

#endif
