/*
 * The prologue of every exported function: process life, initialization, sticky error, fault
 * injection, counting, trace. exports.c makes one wrapper per row of functions.def around it.
 */
#ifndef SG_ENTRY_ENTRY_H
#define SG_ENTRY_ENTRY_H

#include <gpumem/driver.h>
#include <stdbool.h>

struct sg_call {
    gpumem_driver_fn fn;
    bool entered;     /* the lock is held: sg_leave releases it */
    bool fault_after; /* an armed fault replaces the result */
    bool skip;        /* SOFTGPU_FAULT_SKIP: success without the implementation */
    CUresult fault;
    uint64_t start;
};

/* True when the implementation is to be called; else *result is the answer. */
bool sg_enter(struct sg_call *call, gpumem_driver_fn fn, CUresult *result);
CUresult sg_leave(struct sg_call *call, CUresult result);

/* ---- What chapters give to the state dump and the leak report ----------------------------------- */

struct sg_text; /* grows; entry/text.c */
void sg_text_line(struct sg_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each chapter defines its own: canonical lines, sorted, addresses as recorded in design. */
void sg_dump_contexts(struct sg_text *text);
void sg_dump_memory(struct sg_text *text);
void sg_dump_pools(struct sg_text *text);
void sg_dump_streams(struct sg_text *text);
/* One line per live object that the application should have freed. */
void sg_leaks_contexts(struct sg_text *text);
void sg_leaks_memory(struct sg_text *text);
void sg_leaks_pools(struct sg_text *text);
void sg_leaks_streams(struct sg_text *text);

#endif
