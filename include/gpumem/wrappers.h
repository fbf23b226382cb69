/*
 * Resources that wrap other resources: a limit, lines in the log, a trace that can be replayed,
 * call sites of live allocations, alignment, and a callback or a second resource for when memory
 * runs out. docs/wrappers.md shows all of them.
 *
 * For all of them: the wrapped resources must outlive the wrapper (destroying them returns BUSY)
 * and may still be used directly. Memory counts once for the device; the statistics of the wrapper
 * show what went through it. Buffers can grow, shrink, be exported, and what else virtual buffers
 * can (access, decommit, recommit, mark_shared, move_to_capacity), if those of the wrapped resource
 * can. A trim is passed on. Thread-safe like the wrapped resource; blocks as that does.
 * Driver: as the wrapped resource.
 */
#ifndef GPUMEM_WRAPPERS_H
#define GPUMEM_WRAPPERS_H

#include <gpumem/buffer.h>
#include <gpumem/resource.h>
#include <gpumem/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives text that the library writes: whole lines, not 0-terminated. Returns 0, or an errno on
 * failure. Called by one thread at a time. It must not call the resource that writes. */
typedef int (*gpumem_write_fn)(void *user, const char *text, size_t bytes);

/* ---- A limit, and lines in the log ----------------------------------------------------------- */

/*
 * Refuses allocations that would bring the bytes in its live buffers above `maximum_bytes`:
 * OUT_OF_CAPACITY. The wrapped resource must outlive it and may still be used directly.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_limiting_resource_create(
    gpumem_resource *upstream, uint64_t maximum_bytes, gpumem_resource **resource);

/* One line for each allocation, resize and free, with the reason if it failed. */
typedef struct gpumem_logging_options {
    size_t size;
    gpumem_log_level level; /* used only when fn is NULL; 0: GPUMEM_LOG_INFO */
    const char *name;       /* starts each line; NULL: the wrapped resource's kind. Copied */
    gpumem_log_fn fn;       /* NULL: the library's log */
    void *user;
} gpumem_logging_options;
#define GPUMEM_LOGGING_OPTIONS(...) GPUMEM_OPTIONS(gpumem_logging_options, __VA_ARGS__)

/* Logs and counts (gpumem_resource_get_stats) only what goes through it. */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_logging_resource_create(
    gpumem_resource *upstream, const gpumem_logging_options *options, gpumem_resource **resource);

/* ---- A trace that can be replayed ------------------------------------------------------------ */

/* Options of gpumem_trace_resource_create. */
typedef struct gpumem_trace_options {
    size_t size;
    const char *path; /* a file to create or overwrite; NULL: `write` is called */
    gpumem_write_fn write;
    void *user;
    size_t buffer_bytes; /* lines are buffered up to this; 0: 64 KiB, at least 4 KiB */
} gpumem_trace_options;

#define GPUMEM_TRACE_OPTIONS(...) GPUMEM_OPTIONS(gpumem_trace_options, __VA_ARGS__)

/*
 * Writes a line of CSV for each allocation, resize and free, in the order in which they took
 * effect, with time, thread, stream and an identity for each buffer: `gpumem replay` runs such a
 * trace on any resource (docs/wrappers.md has the columns). A free is recorded when the memory goes
 * back: for memory that is not stream-ordered that is when its streams have passed, in whichever
 * thread noticed it. SYSTEM: the file cannot be created. INVALID_ARGUMENT: not exactly one of
 * `path` and `write`. Later write errors do not make allocations fail: see gpumem_trace_flush.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_trace_resource_create(
    gpumem_resource *upstream, const gpumem_trace_options *options, gpumem_resource **resource);

/* Writes a line of the caller's own, at most 1,000 bytes of `text`, between the others.
 * INVALID_ARGUMENT: not a trace resource, or no text. Thread-safe; no driver call. */
GPUMEM_API gpumem_status gpumem_trace_note(gpumem_resource *resource, const char *text);

/*
 * Writes the buffered lines, as destroying the resource does. SYSTEM: something could not be
 * written, now or earlier; the trace ends there, with a whole line if the file allows it, and the
 * message says how many lines are missing. INVALID_ARGUMENT: not a trace resource. Thread-safe; no
 * driver call; blocks while the file is written.
 */
GPUMEM_API gpumem_status gpumem_trace_flush(gpumem_resource *resource);

/* ---- Call sites of live allocations ---------------------------------------------------------- */

/* Options of gpumem_tracking_resource_create. */
typedef struct gpumem_tracking_options {
    size_t size;
    /* Return addresses kept per allocation, at most 64. 0 or 1: that of the call, about 0.1 us per
     * allocation; more: the stack is walked, 1.3 us for ten. */
    unsigned frames;
} gpumem_tracking_options;

#define GPUMEM_TRACKING_OPTIONS(...) GPUMEM_OPTIONS(gpumem_tracking_options, __VA_ARGS__)

/*
 * Records each live allocation and the call in the program that made it. Names are looked up only
 * when a report is made. Driver: as `upstream`.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_tracking_resource_create(
    gpumem_resource *upstream, const gpumem_tracking_options *options, gpumem_resource **resource);

/* A live allocation; a freed one counts as live until its memory has gone back. */
typedef struct gpumem_tracked {
    size_t size;
    uint64_t number; /* 1, 2, 3, ... in the order of allocation */
    CUdeviceptr pointer;
    size_t bytes;
    size_t committed_bytes;
    CUstream stream; /* of the allocation */
    uint64_t thread; /* the kernel's id of the allocating thread */
    uint64_t age_ns;
    void *const *frames; /* return addresses, beginning with that of the outermost library call */
    size_t frame_count;
} gpumem_tracked;

/* `tracked` is valid only during the call. A result other than 0 ends the visit. May call the
 * library. */
typedef int (*gpumem_tracked_fn)(void *user, const gpumem_tracked *tracked);

/*
 * Calls `fn` for each live allocation, oldest first; those that come or go meanwhile may be
 * missing. First carries out the deferred frees that it can. INVALID_ARGUMENT: not a tracking
 * resource. OUT_OF_HOST_MEMORY: `fn` was not called. Thread-safe.
 */
GPUMEM_API gpumem_status gpumem_tracking_visit(gpumem_resource *resource, gpumem_tracked_fn fn,
                                               void *user);

/* How a report is written. */
typedef enum gpumem_report_format {
    GPUMEM_REPORT_TEXT = 0,
    GPUMEM_REPORT_JSON = 1,
} gpumem_report_format;

/*
 * The same as text, by call site, those with the most bytes first. Functions are shown by name if
 * the dynamic loader knows them (those of the program itself if it is linked with -rdynamic),
 * otherwise by file and offset, as addr2line takes them. SYSTEM: `write` returned an errno.
 * Otherwise as gpumem_tracking_visit.
 */
GPUMEM_API gpumem_status gpumem_tracking_report(gpumem_resource *resource,
                                                gpumem_report_format format, gpumem_write_fn write,
                                                void *user);

/* ---- Alignment ------------------------------------------------------------------------------- */

/* Options of gpumem_alignment_resource_create. */
typedef struct gpumem_alignment_options {
    size_t size;
    size_t alignment;     /* of addresses, bytes, a power of two; 0: 256 */
    size_t size_multiple; /* of each buffer's memory, bytes, a power of two; 0: the alignment */
    size_t threshold;     /* bytes; smaller allocations are passed on unchanged; 0: none are */
} gpumem_alignment_options;

#define GPUMEM_ALIGNMENT_OPTIONS(...) GPUMEM_OPTIONS(gpumem_alignment_options, __VA_ARGS__)

/*
 * Every buffer begins at a multiple of `alignment`, and has memory of its own up to a multiple of
 * `size_multiple` behind it; gpumem_buffer_size stays what was asked for. A wrapped resource that
 * ignores alignments is asked for more, and a part of that is handed on, which cannot be exported.
 * GPUMEM_STREAM_NONE is taken where the wrapped resource takes it.
 * INVALID_ARGUMENT: no powers of two.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_alignment_resource_create(
    gpumem_resource *upstream, const gpumem_alignment_options *options, gpumem_resource **resource);

/* ---- When memory runs out -------------------------------------------------------------------- */

/* What a failure callback is told. */
typedef struct gpumem_allocation_failure {
    size_t size;
    gpumem_resource *resource; /* the wrapper */
    gpumem_status status;      /* OUT_OF_MEMORY, OUT_OF_HOST_MEMORY or OUT_OF_CAPACITY */
    const char *message;       /* of the wrapped resource */
    size_t bytes;              /* requested; for a growth, the additional bytes */
    CUstream stream;
    unsigned attempt;       /* 1 for the first failure of an allocation, then 2, ... */
    unsigned attempts_left; /* how often RETRY will still be obeyed, including this time */
} gpumem_allocation_failure;

/* What a failure callback wants to be done. */
typedef enum gpumem_failure_answer {
    GPUMEM_FAILURE_GIVE_UP = 0, /* the allocation fails */
    GPUMEM_FAILURE_RETRY = 1,   /* memory was freed: try again */
} gpumem_failure_answer;

/*
 * Called in the allocating thread, with the device's context current and no library lock held that
 * a free could need. It may free and shrink buffers, also of this resource, except the one that is
 * growing, and may allocate, except from a caching resource over this one, which may be growing; an
 * allocation that fails inside it does not call it again.
 */
typedef gpumem_failure_answer (*gpumem_failure_callback_fn)(
    void *user, const gpumem_allocation_failure *failure);

/* Options of gpumem_failure_callback_resource_create. */
typedef struct gpumem_failure_callback_options {
    size_t size;
    gpumem_failure_callback_fn fn; /* not NULL */
    void *user;
    unsigned maximum_retries; /* of one allocation; 0: 8 */
} gpumem_failure_callback_options;

#define GPUMEM_FAILURE_CALLBACK_OPTIONS(...)                                                       \
    GPUMEM_OPTIONS(gpumem_failure_callback_options, __VA_ARGS__)

/*
 * Calls `fn` when an allocation or a growth has run out of memory, after waiting for deferred frees
 * and trimming the device's caches; memory that `fn` frees is also waited for. After
 * `maximum_retries` the allocation fails whatever `fn` returns. Under another wrapper or a cache
 * that reclaims memory itself, a failed allocation may be tried a second time from the start.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_failure_callback_resource_create(
    gpumem_resource *upstream, const gpumem_failure_callback_options *options,
    gpumem_resource **resource);

/*
 * What `first` has no memory for comes from `second`, of the same device: device memory, then
 * pinned for example. OUT_OF_MEMORY, OUT_OF_HOST_MEMORY and OUT_OF_CAPACITY of `first` lead there,
 * other errors do not; nor does an allocation with a capacity if buffers of `second` cannot grow.
 * Properties say what holds for both; stream_ordered is 1 if one of them is, can_resize and
 * exportable tell of `first`. GPUMEM_STREAM_NONE is taken where both take it. When both fail the
 * message has both reasons.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_fallback_resource_create(
    gpumem_resource *first, gpumem_resource *second, gpumem_resource **resource);

/* Which of the two a buffer came from. INVALID_ARGUMENT: not a buffer of a fallback resource.
 * Thread-safe; no driver call. */
GPUMEM_API gpumem_status gpumem_fallback_get_source(gpumem_buffer *buffer,
                                                    gpumem_resource **source);

#ifdef __cplusplus
}
#endif

#endif
