/*
 * The extension gpumem._core: what its files share. docs/architecture.md ("The Python package")
 * says who owns what and which rules hold.
 *
 * All state is guarded by the GIL unless its comment says otherwise; a call into the library that
 * may block is made without it, between core_leave_python and core_enter_python.
 */
#ifndef GPUMEM_PYTHON_CORE_H
#define GPUMEM_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "tables.h"

#include <gpumem/driver.h>
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <structmember.h>

/* Python's tables of slots have functions as void *. */
#pragma GCC diagnostic ignored "-Wpedantic"

/* ---- State of the module, one for the process --------------------------------------------- */

struct core {
    PyTypeObject *object_type, *buffer_type, *resource_type, *stream_type, *event_type;
    PyObject *make_error; /* gpumem.errors: builds the exception of a failure */
    PyObject *log;        /* gpumem._log: takes (level, text) */
    PyObject *adopt;      /* gpumem._buffer: makes a Buffer of the library's of foreign memory */
    PyObject *without_stream;  /* gpumem._buffer: copies and fills where no stream was named */
    PyObject *internal_stream; /* gpumem._buffer: of a resource's device */
    PyObject *stream_word;     /* "stream", interned, as names of arguments are */
    PyObject *module;          /* borrowed */
    PyObject *layouts[LAYOUT_COUNT]; /* struct sequences for results, made when first needed */
    bool development;                /* -X dev: where buffers were made is recorded */
    bool finalizing;                 /* no callback enters Python any more */
    unsigned epoch;                  /* grows in a forked child: what was under way is not, there */
    unsigned waiting;                /* threads that wait for another to leave a buffer */
    pthread_mutex_t left_lock;       /* of `left`, with left_changed */
    pthread_cond_t left_changed;
    unsigned long left;
};
extern struct core core;

/* The C data behind an object: the one place that knows where it is. */
static inline void *data_of(PyObject *self) {
    return (char *)self + sizeof(PyObject);
}
static inline PyObject *object_of(void *data) {
    return (PyObject *)(void *)((char *)data - sizeof(PyObject));
}
#define BASIC_SIZE(type)        ((int)(sizeof(PyObject) + sizeof(type)))
#define DATA_OFFSET(type, name) ((Py_ssize_t)(sizeof(PyObject) + offsetof(type, name)))

/* ---- Objects --------------------------------------------------------------------------------- */

/* A library, a device, or something made by hand, ended by close or with the object. */
struct object {
    void *pointer;    /* NULL: closed */
    size_t kind;      /* OBJECT_... */
    PyObject *owners; /* a tuple of what must outlive it, or NULL */
    PyObject *weak;
    int uses; /* calls under way, and what was made of it */
    bool closing;
};

struct buffer;

struct resource {
    gpumem_resource *resource; /* NULL: closed, or a class written in Python */
    void *library;             /* of its device: streams of another are refused */
    PyObject *owners;          /* a tuple: its device, what it wraps, callbacks */
    PyObject *weak;
    PyObject *buffer_class; /* of what it allocates, where that is not Buffer */
    struct buffer *newest;  /* its open buffers */
    Py_ssize_t
        uses;    /* open buffers and holds, wrappers, calls under way, and 1 until it is closed */
    bool native; /* has, or had, a resource of the library */
    bool closed;
    bool needs_stream;   /* hands memory out on streams alone: NO_STREAM is one of the package's */
    bool records_places; /* where its buffers are made, for TrackingMemoryResource */
    bool device_accessible, host_accessible, stream_ordered;
};

struct stream {
    CUstream stream;
    PyObject *device; /* the Device that made it, or NULL */
    PyObject *owners; /* a tuple: the device's Object */
    gpumem_device *device_c;
    void *library; /* NULL: a default stream, or not ours */
    PyObject *weak;
    Py_ssize_t uses; /* buffers that name it */
    bool owned, closed;
};

struct event {
    CUevent event;
    PyObject *device, *owners; /* as of a stream */
    gpumem_device *device_c;
    PyObject *weak;
    PyObject *options; /* a tuple: timing, blocking, ipc */
    bool owned, closed;
};

struct buffer {
    gpumem_buffer *buffer; /* NULL: closed, or memory that nobody has asked the driver about */
    CUdeviceptr pointer;   /* as the last call left them, so that they are read without a call */
    size_t size;
    size_t known;       /* the library's size then; this Buffer may show less of it */
    PyObject *resource; /* a MemoryResource, or NULL */
    PyObject *owner;    /* kept alive for its memory, or NULL */
    PyObject *keeps;   /* likewise, not shown: the Buffer of a view, the device of foreign memory */
    PyObject *stream;  /* of the allocation, or as set_deallocation_stream said; NULL: none */
    PyObject *streams; /* a list of the others that were named, or NULL */
    PyObject *root;    /* the Buffer that this one shares the library's buffer with, or NULL */
    PyObject *made_at; /* "file:line", with -X dev */
    PyObject *closing_stream;
    PyObject *weak;
    struct buffer *newer, *older; /* in the resource's list */
    unsigned long inside;         /* the thread that is in a call on it, or 0 */
    unsigned epoch;               /* core.epoch when it entered */
    int holds;                    /* memoryviews, tensors, hold() */
    int siblings;                 /* open Buffers whose root this is */
    gpumem_buffer *lent; /* held until the object dies: __cuda_array_interface__ was read */
    bool closed;
    bool ended;     /* the memory has gone back; the library's buffer is gone, but for holds */
    bool counted;   /* in the resource's `uses` */
    bool by_method; /* ended by the resource's deallocate(), not by the library */
};

/* ---- errors.c -------------------------------------------------------------------------------- */

/* Raises the calling thread's last failure. Returns NULL. Call it before anything else of the
 * library is called. */
PyObject *core_raise(gpumem_status status);
/* An exception of gpumem.errors, by the status: for what Python itself refuses. */
PyObject *core_refuse(gpumem_status status, const char *format, ...);

/* ---- table.c --------------------------------------------------------------------------------- */

int core_add_calls(PyObject *module);
PyObject *core_result(size_t layout, const void *result);
int core_fill_struct(size_t layout, PyObject *options, void *to, PyObject *kept);
/* The enumerator of a word; -1 with an exception that names the argument. */
int core_choice(size_t choices, PyObject *word, const char *name, int *value);
PyObject *core_word(size_t choices, int value);

/* ---- arguments.c ----------------------------------------------------------------------------- */

/* Positional and keyword arguments of a METH_FASTCALL function into `out`, in the order of `names`;
 * what is not given stays NULL. The first `required` must be given; those from `positional` on have
 * to be given by keyword. */
int core_take(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *keywords,
              const char *const *names, int positional, int required, PyObject **out);
int core_size(PyObject *from, const char *name, size_t *to);
int core_wide(PyObject *from, const char *name, unsigned long long *to);
int core_int(PyObject *from, const char *name, int *to);

/* A stream, as any of the forms that users have. *kept is borrowed: the object to keep alive, or
 * NULL. `library`: that of the memory, or NULL; a stream of another one is refused. None gives
 * `none`. */
int core_stream(PyObject *from, void *library, CUstream none, CUstream *to, PyObject **kept);

/* ---- threads.c ------------------------------------------------------------------------------- */

/* Around a call that may block. After core_enter_python callbacks' exceptions and log lines of the
 * call are dealt with by core_finish. */
PyThreadState *core_leave_python(void);
void core_enter_python(PyThreadState *state);
/* After a call: passes log lines on, and raises what a callback has raised. -1: an exception is
 * set. */
int core_finish(void);
int core_start_threads(void);
/* Keeps an exception that a callback has raised in this thread, for core_finish. With no call of
 * Python's around it goes to sys.unraisablehook. Takes the GIL's current exception. */
void core_callback_failed(PyObject *where);
/* Whether a callback may enter Python now. */
bool core_may_call_back(void);
extern atomic_bool core_lines_waiting;
void core_pass_lines_on(void);
/* A gpumem_log_fn: `user` is the number of a logger. */
void core_log_line(void *user, gpumem_log_level level, const char *text);

/* Keeps `value` in place of what was kept there, whose end may run other code: it goes last. */
static inline void core_set(PyObject **kept, PyObject *value) {
    PyObject *former = *kept;
    Py_INCREF(value);
    *kept = value;
    Py_XDECREF(former);
}

/* ---- buffer.c -------------------------------------------------------------------------------- */

extern PyType_Spec core_buffer_spec;
/* The buffer's calls exclude each other: enter waits for other threads, and takes what is missing
 * (the library's buffer of plain memory). -1: an exception is set. */
int core_enter_buffer(PyObject *self);
int core_enter_buffers(PyObject *first, PyObject *second);
void core_leave_buffer(PyObject *self);
int core_enter_many(PyObject *const *buffers, size_t count);
void core_leave_many(PyObject *const *buffers, size_t count);
/* The Buffer that has the library's: itself, or the one that it shares with. */
struct buffer *core_root(struct buffer *self);
/* After a call: pointer and size as they are now. */
void core_refresh(PyObject *self);
/* A new Buffer over a buffer of the library's, which it takes over even when it fails. */
PyObject *core_new_buffer(PyTypeObject *type, gpumem_buffer *buffer, PyObject *resource,
                          PyObject *owner, PyObject *stream);
/* Takes it out of the list in which its resource's deallocate(ptr) looks. */
void core_unlist_buffer(struct buffer *self);
int core_name_stream(struct buffer *self, PyObject *stream);
PyObject *core_closed_error(void);

/* buffer_copy.c, buffer_lend.c: methods */
PyObject *core_buffer_copy_to(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *core_buffer_copy_from(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *core_buffer_fill(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *core_buffer_dlpack(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
PyObject *core_buffer_dlpack_device(PyObject *, PyObject *);
PyObject *core_buffer_hold(PyObject *, PyObject *);
PyObject *core_from_dlpack(PyObject *, PyObject *);
/* What __cuda_array_interface__ holds goes back; a hold less of what has ended lets the resource
 * go. */
void core_return_lent(struct buffer *self);
void core_drop_hold(struct buffer *root);
PyObject *core_buffer_array_interface(PyObject *, void *);
int core_get_buffer(PyObject *, Py_buffer *, int);
void core_release_buffer(PyObject *, Py_buffer *);

/* ---- resource.c, object.c, stream.c
 * ------------------------------------------------------------ */

extern PyType_Spec core_resource_spec, core_object_spec, core_stream_spec, core_event_spec;
/* Makes `resource` the resource of this MemoryResource, or ends it and sets an exception. */
int core_adopt_resource(PyObject *self, gpumem_resource *resource, PyObject *owners);
void core_use_resource(PyObject *self);
void core_leave_resource(PyObject *self);
PyObject *core_new_object(size_t kind, void *pointer, PyObject *owners);
extern const char *const core_object_names[OBJECT_COUNT];
void core_leave_object(struct object *self);
/* The objects and resources of a tuple stay open until they are left as often as used; NULL is
 * allowed. */
void core_use_owners(PyObject *owners);
void core_leave_owners(PyObject *owners);
void core_use_stream(PyObject *stream);
void core_leave_stream(PyObject *stream);
int core_add_stream_calls(PyObject *module);

/* ---- driver.c: what only the driver's own table has ----------------------------------------- */

int core_add_driver_calls(PyObject *module);

/* ---- batch.c --------------------------------------------------------------------------------- */

int core_add_batches(PyObject *module);

/* ---- callbacks.c ----------------------------------------------------------------------------- */

int core_add_callbacks(PyObject *module);

#endif
