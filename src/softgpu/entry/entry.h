/*
 * The prologue of every exported function: cancelling disabled, process life, initialization,
 * sticky error, fault injection, counting, trace. exports.c makes one wrapper per row of
 * functions.def around it.
 */
#ifndef SG_ENTRY_ENTRY_H
#define SG_ENTRY_ENTRY_H

#include <gpumem/driver.h>
#include <stdbool.h>
#include <stdint.h>

/* The first two arguments as numbers. */
struct sg_arguments {
    uintptr_t first, second;
};

/* An argument, for the trace. */
enum sg_value_kind {
    SG_VALUE_ADDRESS, /* a pointer, a handle, a device address: in hexadecimal */
    SG_VALUE_SIGNED,
    SG_VALUE_UNSIGNED,
    SG_VALUE_FLOAT,
    SG_VALUE_MADE,  /* a pointer to where a handle or an address goes, when it comes first */
    SG_VALUE_GRAPH, /* the same for the graph that a capture makes, which comes second */
    SG_VALUE_TEXT,  /* const char *, which a successful call has read */
    SG_VALUE_STRUCT,
};

struct sg_value {
    enum sg_value_kind kind;
    uintptr_t bits;
    float real;
};

struct sg_call {
    const struct sg_value *values; /* all arguments, which the wrapper gathers of a traced call */
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

/* True when the implementation is to be called; else *result is the answer. */
bool sg_enter(struct sg_call *call, gpumem_driver_fn fn, struct sg_arguments arguments,
              CUresult *result);
CUresult sg_leave(struct sg_call *call, CUresult result);

/* ---- exports.c: the table as softgpu has it ------------------------------------------------- */

typedef void (*sg_any_fn)(void);

struct sg_row {
    const char *symbol;
    const char *name;
    int version;
    gpumem_driver_fn_kind kind;
};
extern const struct sg_row sg_rows[GPUMEM_FN_COUNT];

/* The exported wrapper, as cuGetProcAddress hands it out. */
sg_any_fn sg_exported(gpumem_driver_fn fn);
/* A chapter implements the row, or the plain row of a twin. */
bool sg_implemented(gpumem_driver_fn fn);
/* The row that exports `symbol`, or GPUMEM_FN_COUNT. */
gpumem_driver_fn sg_row_find(const char *symbol);
/* The first row of a name for cuGetProcAddress (others follow it), or GPUMEM_FN_COUNT. */
gpumem_driver_fn sg_name_find(const char *name);

/* ---- entry.c: what makes the prologue look closer ------------------------------------------- */

#define SG_WATCH_CONFIGURE 1u /* the environment has not been read */
#define SG_WATCH_FAULT     2u
#define SG_WATCH_TRACE     4u
#define SG_WATCH_ABORT     8u
#define SG_WATCH_COREDUMP  16u /* a fault is to be reported when the lock is released */

void sg_watch(unsigned bits, bool on);
/* Calls made so far of one function, or of all with GPUMEM_FN_COUNT. */
uint64_t sg_call_count(gpumem_driver_fn fn);

/* "CUDA_ERROR_OUT_OF_MEMORY" and "out of memory"; NULL for a value that is none. */
const char *sg_result_name(CUresult result);
const char *sg_result_string(CUresult result);
/* The value of a name, with or without "CUDA_ERROR_". */
bool sg_result_parse(const char *name, CUresult *result);

/* ---- What chapters give to the state dump and the leak report ------------------------------- */

struct sg_context;
struct sg_text; /* grows; core/text.h */
void sg_text_line(struct sg_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* What the next line is about. Only the leak report makes something of it: it tells address or
 * handle, and who made it, and when a context ends leaves out what is not its own. */
void sg_text_handle(struct sg_text *text, uint64_t handle, const struct sg_context *context);
void sg_text_address(struct sg_text *text, uint64_t address, uint32_t site,
                     const struct sg_context *context);

/* Each chapter defines its own: canonical lines, sorted, addresses as recorded in design. */
void sg_dump_contexts(struct sg_text *text);
void sg_dump_memory(struct sg_text *text);
void sg_dump_pools(struct sg_text *text);
void sg_dump_streams(struct sg_text *text);
void sg_dump_modules(struct sg_text *text);
void sg_dump_graphs(struct sg_text *text);
void sg_dump_execs(struct sg_text *text);
void sg_dump_arrays(struct sg_text *text);
void sg_dump_external(struct sg_text *text);
void sg_dump_textures(struct sg_text *text);
/* After sg_dump_memory, whose numbers of handles it uses. */
void sg_dump_multicast(struct sg_text *text);
void sg_dump_reports(struct sg_text *text);
/* One line per live object that the application should have freed. */
void sg_leaks_contexts(struct sg_text *text);
void sg_leaks_memory(struct sg_text *text);
void sg_leaks_pools(struct sg_text *text);
void sg_leaks_streams(struct sg_text *text);
void sg_leaks_modules(struct sg_text *text);
void sg_leaks_graphs(struct sg_text *text);
void sg_leaks_execs(struct sg_text *text);
void sg_leaks_arrays(struct sg_text *text);
void sg_leaks_external(struct sg_text *text);
void sg_leaks_textures(struct sg_text *text);
void sg_leaks_reports(struct sg_text *text);

/* The reports, from malloc; NULL when out of memory. They take the lock. */
char *sg_state_text(void);
char *sg_leak_text(void);
/* With the lock: what the end of this context would take with it. */
char *sg_leak_text_of(const struct sg_context *context);

#endif
