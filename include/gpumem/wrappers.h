/*
 * Resources over resources: a log that can be replayed, call sites of what is alive, alignment, a
 * second try and a second resource when memory runs out. gpumem/resource.h has the limit and the
 * log for people; docs/wrappers.md shows all of them.
 *
 * For each of them: the wrapped resources must outlive it (destroying them answers BUSY) and may
 * still be used directly. Memory counts once for the device; the statistics of the wrapper tell
 * what went through it. Buffers can grow, shrink and be exported where those of the wrapped
 * resource can. A trim is passed on. Thread-safe, as the wrapped resource is; blocks as that does.
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

/* Takes text that the library writes: whole lines, not ended by a 0. Answers 0, or an errno that
 * says why it could not. One call at a time. It must not call the resource that writes. */
typedef int (*gpumem_write_fn)(void *user, const char *text, size_t bytes);

/* ---- A log that can be replayed -------------------------------------------------------------- */

typedef struct gpumem_trace_options {
    size_t size;
    const char *path; /* a file that is made, or emptied first; NULL: `write` is called */
    gpumem_write_fn write;
    void *user;
    size_t buffer_bytes; /* lines are gathered up to this; 0: 64 KiB, 4 KiB at least */
} gpumem_trace_options;

#define GPUMEM_TRACE_OPTIONS(...) GPUMEM_OPTIONS(gpumem_trace_options, __VA_ARGS__)

/*
 * Writes a line of CSV for each allocation, resize and free, in the order in which they took
 * effect, with time, thread, stream and an identity for each buffer: `gpumem replay` runs such a
 * log on any resource (docs/wrappers.md has the columns). A free is noted when the memory goes
 * back: for memory that is not stream-ordered that is when its streams have passed, and the thread
 * that happened to notice.
 * SYSTEM: the file cannot be made. INVALID_ARGUMENT: not exactly one of `path` and `write`. What
 * cannot be written later fails no allocation: see gpumem_trace_flush.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_trace_resource_create(
    gpumem_resource *upstream, const gpumem_trace_options *options, gpumem_resource **resource);

/* Writes a line of the caller's, at most 1,000 bytes of `text`, between the others.
 * INVALID_ARGUMENT: not a trace resource, or no text. Thread-safe; no driver call. */
GPUMEM_API gpumem_status gpumem_trace_note(gpumem_resource *resource, const char *text);

/*
 * Writes what has been gathered, as destroying the resource does. SYSTEM: something could not be
 * written, now or before; the log ends there, on a whole line where the file allows it, and the
 * message says how many lines are missing. INVALID_ARGUMENT: not a trace resource. Thread-safe; no
 * driver call; blocks while the file is written.
 */
GPUMEM_API gpumem_status gpumem_trace_flush(gpumem_resource *resource);

/* ---- Who made what is alive ------------------------------------------------------------------ */

typedef struct gpumem_tracking_options {
    size_t size;
    /* Return addresses kept of each allocation, at most 64. 0 or 1: that of the call, about 0.1 us
     * an allocation; more: the stack is walked, 1.3 us for ten. */
    unsigned frames;
} gpumem_tracking_options;

#define GPUMEM_TRACKING_OPTIONS(...) GPUMEM_OPTIONS(gpumem_tracking_options, __VA_ARGS__)

/*
 * Remembers each allocation that is alive, and the call of the program that made it. Names are
 * looked for when a report asks, not before. Driver: as `upstream`.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_tracking_resource_create(
    gpumem_resource *upstream, const gpumem_tracking_options *options, gpumem_resource **resource);

/* An allocation that is alive: freed ones count until their memory is back. */
typedef struct gpumem_tracked {
    size_t size;
    uint64_t number; /* 1, 2, 3, ... in the order of allocation */
    CUdeviceptr pointer;
    size_t bytes;
    size_t committed_bytes;
    CUstream stream; /* of allocation */
    uint64_t thread; /* that allocated: the kernel's id */
    uint64_t age_ns;
    void *const *frames; /* return addresses, that of the outermost call of the library first */
    size_t frame_count;
} gpumem_tracked;

/* Valid during the call only. Anything but 0 ends the visit. May call the library. */
typedef int (*gpumem_tracked_fn)(void *user, const gpumem_tracked *tracked);

/*
 * Calls `fn` for each, oldest first; what comes and goes meanwhile may be missing. Works off the
 * frees that can be, first. INVALID_ARGUMENT: not a tracking resource. OUT_OF_HOST_MEMORY: `fn` was
 * not called. Thread-safe.
 */
GPUMEM_API gpumem_status gpumem_tracking_visit(gpumem_resource *resource, gpumem_tracked_fn fn,
                                               void *user);

typedef enum gpumem_report_format {
    GPUMEM_REPORT_TEXT = 0,
    GPUMEM_REPORT_JSON = 1,
} gpumem_report_format;

/*
 * The same as text, by call site, the one with the most bytes first. Functions are named where the
 * dynamic loader knows them (for those of a program itself: linked with -rdynamic); otherwise by
 * file and offset, as addr2line takes them. SYSTEM: `write` answered an errno. Else as
 * gpumem_tracking_visit.
 */
GPUMEM_API gpumem_status gpumem_tracking_report(gpumem_resource *resource,
                                                gpumem_report_format format, gpumem_write_fn write,
                                                void *user);

/* ---- Alignment ------------------------------------------------------------------------------- */

typedef struct gpumem_alignment_options {
    size_t size;
    size_t alignment;     /* of addresses, bytes, a power of two; 0: 256 */
    size_t size_multiple; /* of the memory of each, bytes, a power of two; 0: the alignment */
    size_t threshold;     /* smaller allocations are passed on as they are, bytes; 0: none */
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

typedef struct gpumem_failure {
    size_t size;
    gpumem_resource *resource; /* that was asked: the wrapper */
    gpumem_status status;      /* OUT_OF_MEMORY, OUT_OF_HOST_MEMORY or OUT_OF_CAPACITY */
    const char *message;       /* of the wrapped resource */
    size_t bytes;              /* asked for; of a growth the bytes more */
    CUstream stream;
    unsigned attempt;       /* 1 at the first failure of an allocation, then 2, ... */
    unsigned attempts_left; /* how often RETRY is still obeyed, this time included */
} gpumem_failure;

typedef enum gpumem_failure_answer {
    GPUMEM_FAILURE_GIVE_UP = 0, /* the allocation fails */
    GPUMEM_FAILURE_RETRY = 1,   /* something was freed: once more */
} gpumem_failure_answer;

/*
 * Called in the thread that allocates, with no lock of the library held that a free could want, and
 * the device's context current. May free and shrink buffers, also of this resource, but not the one
 * that grows, and allocate, but not from a caching resource over this one, which may be growing; an
 * allocation in it that fails does not call it again.
 */
typedef gpumem_failure_answer (*gpumem_failure_fn)(void *user, const gpumem_failure *failure);

typedef struct gpumem_failure_options {
    size_t size;
    gpumem_failure_fn fn; /* not NULL */
    void *user;
    unsigned maximum_retries; /* of one allocation; 0: 8 */
} gpumem_failure_options;

#define GPUMEM_FAILURE_OPTIONS(...) GPUMEM_OPTIONS(gpumem_failure_options, __VA_ARGS__)

/*
 * Asks when an allocation or a growth has run out of memory, after deferred frees were waited for
 * and the device's caches trimmed; what is freed in the answer is waited for likewise. After
 * `maximum_retries` the allocation fails whatever the answer. Below another wrapper or a cache that
 * reclaims by itself, an allocation that failed may be tried a second time from the start.
 */
GPUMEM_API GPUMEM_MUST_CHECK gpumem_status gpumem_failure_resource_create(
    gpumem_resource *upstream, const gpumem_failure_options *options, gpumem_resource **resource);

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
