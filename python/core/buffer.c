/*
 * Buffer: memory with an owner. What is quick or has to hold is here and in buffer_copy.c and
 * buffer_lend.c; the rest of its methods is in gpumem/_buffer.py.
 *
 * The library lets one thread at a time into a buffer, so calls on a Buffer exclude each other
 * (enter, leave), and one that is closed meanwhile ends when the last has left. Several Buffers
 * may share a buffer of the library's: those of VirtualMemoryResource.modify_allocation, whose
 * root has it.
 */
#include "core.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_MS = 100 }; /* between looks for a signal, where another thread is inside */

struct buffer *core_root(struct buffer *self) {
    return self->root ? data_of(self->root) : self;
}

PyObject *core_closed_error(void) {
    PyErr_SetString(PyExc_RuntimeError, "Buffer has been closed");
    return NULL;
}

/* ---- One thread at a time -------------------------------------------------------------------- */

static bool occupied(const struct buffer *root) {
    return root->inside && root->epoch == core.epoch;
}

/* Waits until some thread has left some buffer, or for a while. */
static int wait_for_others(void) {
    unsigned long seen = core.left;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        ++until.tv_sec;
    }
    ++core.waiting;
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&core.left_lock);
    while (core.left == seen &&
           pthread_cond_timedwait(&core.left_changed, &core.left_lock, &until) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&core.left_lock);
    Py_END_ALLOW_THREADS;
    --core.waiting;
    return PyErr_CheckSignals();
}

/* Memory that the driver has not been asked about becomes a buffer of the library's when it is
 * first used for more than its address. */
static int take_in(struct buffer *self) {
    PyObject *made =
        core.adopt ? PyObject_CallFunction(core.adopt, "KnO", self->pointer, (Py_ssize_t)self->size,
                                           self->resource ? self->resource : Py_None)
                   : NULL;
    if (!made) {
        return -1;
    }
    struct buffer *from = data_of(made);
    if (!self->buffer && !self->closed) {
        self->buffer = from->buffer;
        self->known = from->known;
        from->buffer = NULL;
        from->closed = true;
        self->keeps = from->keeps;
        from->keeps = NULL;
    }
    Py_DECREF(made);
    return 0;
}

/* 1: entered may be; 0: look again; -1: an exception is set. */
static int ready(PyObject *object) {
    struct buffer *self = data_of(object), *root = core_root(self);
    if (self->closed) {
        return core_closed_error(), -1;
    }
    if (occupied(root)) {
        if (root->inside == PyThread_get_thread_ident()) {
            core_refuse(GPUMEM_ERROR_BUSY,
                        "the Buffer is in a call, of which this call is a part (a callback)");
            return -1;
        }
        return wait_for_others();
    }
    if (!root->buffer) {
        if (self->size == 0) {
            PyErr_SetString(PyExc_ValueError, "the Buffer has 0 bytes");
            return -1;
        }
        return take_in(root);
    }
    return 1;
}

static void mark_inside(PyObject *object) {
    struct buffer *root = core_root(data_of(object));
    root->inside = PyThread_get_thread_ident();
    root->epoch = core.epoch;
}

int core_enter_buffer(PyObject *object) {
    int answer;
    while ((answer = ready(object)) == 0) {
    }
    if (answer < 0) {
        return -1;
    }
    mark_inside(object);
    return 0;
}

int core_enter_buffers(PyObject *first, PyObject *second) {
    if (!second || core_root(data_of(first)) == core_root(data_of(second))) {
        return core_enter_buffer(first);
    }
    for (;;) { /* both at one moment, so that two threads cannot wait for each other */
        int one = ready(first), other = one > 0 ? ready(second) : one;
        if (other < 0) {
            return -1;
        }
        if (one > 0 && other > 0 && ready(first) > 0) {
            mark_inside(first);
            mark_inside(second);
            return 0;
        }
        if (PyErr_Occurred()) {
            return -1;
        }
    }
}

int core_enter_many(PyObject *const *buffers, size_t count) {
    for (;;) { /* as above; a pass in which nobody waited saw all of them at one moment */
        size_t each = 0;
        int answer = 1;
        while (each < count && (answer = ready(buffers[each])) > 0) {
            ++each;
        }
        if (answer < 0 || PyErr_Occurred()) {
            return -1;
        }
        if (each == count) {
            while (each-- > 0) {
                mark_inside(buffers[each]);
            }
            return 0;
        }
    }
}

void core_leave_many(PyObject *const *buffers, size_t count) {
    for (size_t each = 0; each < count; ++each) { /* one may be there twice */
        if (core_root(data_of(buffers[each]))->inside == PyThread_get_thread_ident()) {
            core_leave_buffer(buffers[each]);
        }
    }
}

/* ---- The end --------------------------------------------------------------------------------- */

void core_unlist_buffer(struct buffer *self) {
    struct resource *resource = self->resource ? data_of(self->resource) : NULL;
    if (self->newer) {
        self->newer->older = self->older;
    } else if (resource && resource->newest == self) {
        resource->newest = self->older;
    }
    if (self->older) {
        self->older->newer = self->newer;
    }
    self->newer = self->older = NULL;
}

static void drop_streams(struct buffer *self) {
    PyObject *stream = self->stream, *streams = self->streams;
    self->stream = self->streams = NULL;
    if (stream) {
        core_leave_stream(stream);
        Py_DECREF(stream);
    }
    Py_ssize_t count = streams ? PyList_Size(streams) : 0;
    for (Py_ssize_t each = 0; each < count; ++each) {
        core_leave_stream(PyList_GetItem(streams, each));
    }
    Py_XDECREF(streams);
    Py_CLEAR(self->closing_stream);
}

/* The memory is the library's no more, and nobody holds it: the resource may end. */
static void drop_resource(struct buffer *self) {
    PyObject *resource = self->resource;
    self->resource = NULL;
    if (resource) {
        if (self->counted) {
            self->counted = false;
            core_leave_resource(resource);
        }
        Py_DECREF(resource);
    }
    Py_CLEAR(self->owner);
    PyObject *keeps = self->keeps;
    self->keeps = NULL;
    if (keeps && PyTuple_Check(keeps)) {
        core_leave_owners(keeps);
    }
    Py_XDECREF(keeps);
}

static int call_deallocate(PyObject *resource, CUdeviceptr pointer, size_t size, PyObject *stream) {
    PyObject *method = PyObject_GetAttrString(resource, "deallocate");
    PyObject *args = method ? Py_BuildValue("(Kn)", pointer, (Py_ssize_t)size) : NULL;
    PyObject *named = args ? Py_BuildValue("{sO}", "stream", stream ? stream : Py_None) : NULL;
    PyObject *done = named ? PyObject_Call(method, args, named) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(args);
    Py_XDECREF(named);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Ends the memory of a root that is closed and that nobody is in. -1: deallocate of a resource
 * written in Python has raised. */
static int end_memory(struct buffer *root) {
    int result = 0;
    gpumem_buffer *buffer = root->buffer;
    root->buffer = NULL;
    if (buffer) {
        CUstream stream = NULL;
        if (root->closing_stream) {
            PyObject *kept, *type, *value, *traceback;
            PyErr_Fetch(&type, &value, &traceback);
            if (core_stream(root->closing_stream, NULL, NULL, &stream, &kept) < 0) {
                PyErr_Clear();
            }
            PyErr_Restore(type, value, traceback);
        }
        PyThreadState *state = core_leave_python();
        (void)gpumem_buffer_free(buffer, stream);
        core_enter_python(state);
    }
    if (root->by_method) {
        root->by_method = false;
        PyObject *resource = root->resource;
        Py_INCREF(resource);
        result = call_deallocate(resource, root->pointer, root->size,
                                 root->closing_stream ? root->closing_stream : root->stream);
        Py_DECREF(resource);
    }
    drop_streams(root);
    if (root->holds == 0) {
        drop_resource(root);
    }
    return result;
}

static int end_if_unused(struct buffer *root) {
    if (!root->closed || root->siblings || occupied(root) || root->ended) {
        return 0;
    }
    root->ended = true;
    return end_memory(root);
}

void core_leave_buffer(PyObject *object) {
    struct buffer *root = core_root(data_of(object));
    root->inside = 0;
    if (core.waiting) {
        pthread_mutex_lock(&core.left_lock);
        ++core.left;
        pthread_cond_broadcast(&core.left_changed);
        pthread_mutex_unlock(&core.left_lock);
    }
    if (root->closed && end_if_unused(root) < 0) {
        PyErr_WriteUnraisable(NULL);
    }
}

/* Closes a Buffer that is open; `stream` is None or names one more. */
static int close_buffer(struct buffer *self, PyObject *stream) {
    struct buffer *root = core_root(self);
    self->closed = true;
    core_unlist_buffer(self);
    if (stream && stream != Py_None) {
        PyObject *former = root->closing_stream;
        Py_INCREF(stream);
        root->closing_stream = stream;
        CUstream handle;
        PyObject *kept;
        /* Of several that close with a stream, all are waited for. */
        if (former && root->buffer && core_stream(former, NULL, NULL, &handle, &kept) == 0 &&
            handle) {
            (void)gpumem_buffer_use(root->buffer, handle);
        }
        Py_XDECREF(former);
        PyErr_Clear();
    }
    if (self == root) {
        return end_if_unused(root);
    }
    PyObject *shared = self->root;
    self->root = NULL;
    --root->siblings;
    int result = end_if_unused(root);
    Py_DECREF(shared);
    drop_streams(self);
    drop_resource(self);
    return result;
}

/* ---- Making one ------------------------------------------------------------------------------ */

int core_name_stream(struct buffer *self, PyObject *stream) {
    if (!stream || stream == self->stream || PyLong_Check(stream)) {
        return 0;
    }
    if (!self->streams && !(self->streams = PyList_New(0))) {
        return -1;
    }
    Py_ssize_t count = PyList_Size(self->streams);
    for (Py_ssize_t each = 0; each < count; ++each) {
        if (PyList_GetItem(self->streams, each) == stream) {
            return 0;
        }
    }
    if (PyList_Append(self->streams, stream) < 0) {
        return -1;
    }
    core_use_stream(stream);
    return 0;
}

/* Whether a frame is of the package itself. */
static bool in_package(PyObject *frame) {
    PyObject *globals = PyObject_GetAttrString(frame, "f_globals");
    PyObject *name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    bool ours = text && strncmp(text, "gpumem.", 7) == 0;
    Py_XDECREF(globals);
    return ours;
}

/* "file:line" of the program's Python code that runs. */
static PyObject *place_in_python(void) {
    PyObject *frame = (PyObject *)PyEval_GetFrame(), *place = NULL;
    Py_XINCREF(frame);
    while (frame && frame != Py_None && in_package(frame)) {
        PyObject *back = PyObject_GetAttrString(frame, "f_back");
        Py_DECREF(frame);
        frame = back;
    }
    if (frame && frame != Py_None) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        PyObject *file = PyObject_GetAttrString(code, "co_filename");
        place = file ? PyUnicode_FromFormat("%U:%d", file,
                                            PyFrame_GetLineNumber((PyFrameObject *)frame))
                     : NULL;
        Py_XDECREF(file);
        Py_DECREF(code);
    }
    Py_XDECREF(frame);
    PyErr_Clear();
    return place;
}

void core_refresh(PyObject *object) {
    struct buffer *self = data_of(object), *root = core_root(self);
    if (root->buffer) {
        size_t size = gpumem_buffer_size(root->buffer);
        self->pointer = gpumem_buffer_pointer(root->buffer);
        if (size != self->known) {
            self->known = self->size = size;
        }
    }
}

/* _resize(size): how much of the library's buffer this one shows. */
static PyObject *buffer_resize(PyObject *object, PyObject *size) {
    struct buffer *self = data_of(object);
    size_t bytes = 0;
    if (core_size(size, "size", &bytes) < 0) {
        return NULL;
    }
    if (bytes > self->known) {
        return PyErr_Format(PyExc_ValueError, "size is %zu; there are %zu bytes", bytes,
                            self->known);
    }
    self->size = bytes;
    Py_RETURN_NONE;
}

PyObject *core_new_buffer(PyTypeObject *type, gpumem_buffer *buffer, PyObject *resource,
                          PyObject *owner, PyObject *stream) {
    PyObject *own = resource ? ((struct resource *)data_of(resource))->buffer_class : NULL;
    PyObject *object =
        PyType_GenericAlloc(own && type == core.buffer_type ? (PyTypeObject *)own : type, 0);
    if (!object) {
        if (buffer) {
            (void)gpumem_buffer_free(buffer, NULL);
        }
        return NULL;
    }
    struct buffer *self = data_of(object);
    if (buffer) {
        self->buffer = buffer;
        self->pointer = gpumem_buffer_pointer(buffer);
        self->known = self->size = gpumem_buffer_size(buffer);
    }
    if (resource) {
        Py_INCREF(resource);
        self->resource = resource;
        if (buffer) {
            struct resource *data = data_of(resource);
            self->counted = true;
            ++data->uses;
            self->older = data->newest;
            if (self->older) {
                self->older->newer = self;
            }
            data->newest = self;
        }
    }
    Py_XINCREF(owner);
    self->owner = owner;
    if (stream) {
        Py_INCREF(stream);
        core_use_stream(stream);
        self->stream = stream;
    }
    if (buffer && (core.development ||
                   (resource && ((struct resource *)data_of(resource))->records_places))) {
        self->made_at = place_in_python();
    }
    return object;
}

/* from_handle(ptr, size, mr=None, owner=None, *, stream=None) */
static PyObject *buffer_from_handle(PyObject *type, PyObject *const *args, Py_ssize_t count,
                                    PyObject *keywords) {
    static const char *const names[] = {"ptr", "size", "mr", "owner", "stream", NULL};
    PyObject *given[5], *kept = NULL;
    unsigned long long pointer = 0;
    size_t size = 0;
    CUstream stream;
    if (core_take("from_handle", args, count, keywords, names, 4, 2, given) < 0 ||
        core_wide(given[0], "ptr", &pointer) < 0 || core_size(given[1], "size", &size) < 0 ||
        core_stream(given[4], NULL, NULL, &stream, &kept) < 0) {
        return NULL;
    }
    PyObject *resource = given[2] == Py_None ? NULL : given[2];
    PyObject *owner = given[3] == Py_None ? NULL : given[3];
    if (resource && owner) {
        return PyErr_Format(PyExc_ValueError, "mr and owner: the memory belongs to one of them");
    }
    if (resource && !PyObject_TypeCheck(resource, core.resource_type)) {
        return PyErr_Format(PyExc_TypeError, "mr must be a MemoryResource, not %S",
                            Py_TYPE(resource));
    }
    PyObject *object = core_new_buffer((PyTypeObject *)type, NULL, resource, owner, kept);
    if (object) {
        struct buffer *self = data_of(object);
        self->pointer = pointer;
        self->size = size;
        self->by_method = resource != NULL;
    }
    return object;
}

/* A second Buffer over the same memory, of `size` bytes. */
static PyObject *buffer_share(PyObject *object, PyObject *size) {
    struct buffer *self = data_of(object);
    size_t bytes = 0;
    if (core_size(size, "size", &bytes) < 0) {
        return NULL;
    }
    if (self->closed) {
        return core_closed_error();
    }
    struct buffer *root = core_root(self);
    PyObject *other = core_new_buffer(core.buffer_type, NULL, self->resource, NULL, self->stream);
    if (other) {
        struct buffer *data = data_of(other);
        data->root = object_of(root);
        Py_INCREF(data->root);
        ++root->siblings;
        data->pointer = self->pointer;
        data->known = self->known;
        data->size = bytes;
        if (core.development) {
            data->made_at = place_in_python();
        }
    }
    return other;
}

static PyObject *buffer_view(PyObject *object, PyObject *const *args, Py_ssize_t count,
                             PyObject *keywords) {
    static const char *const names[] = {"offset", "size", NULL};
    PyObject *given[2], *result = NULL;
    size_t offset = 0, size = 0;
    struct buffer *self = data_of(object);
    if (core_take("view", args, count, keywords, names, 2, 2, given) < 0 ||
        core_size(given[0], "offset", &offset) < 0 || core_size(given[1], "size", &size) < 0 ||
        core_enter_buffer(object) < 0) {
        return NULL;
    }
    if (offset > self->size || size > self->size - offset || size == 0) {
        PyErr_Format(PyExc_ValueError,
                     "offset and size: [%zu, %zu) is not in the Buffer's %zu bytes", offset,
                     offset + size, self->size);
    } else {
        gpumem_buffer *view = NULL;
        PyThreadState *state = core_leave_python();
        gpumem_status status = gpumem_buffer_view(core_root(self)->buffer, offset, size, &view);
        core_enter_python(state);
        result = status == GPUMEM_OK
                     ? core_new_buffer(core.buffer_type, view, self->resource, NULL, self->stream)
                     : core_raise(status);
        if (result) {
            struct buffer *made = data_of(result);
            core_unlist_buffer(made); /* deallocate(ptr) means the buffer */
            Py_INCREF(object);
            made->keeps = object;
        }
    }
    core_leave_buffer(object);
    return result;
}

/* ---- Methods --------------------------------------------------------------------------------- */

static PyObject *buffer_close(PyObject *object, PyObject *const *args, Py_ssize_t count,
                              PyObject *keywords) {
    static const char *const names[] = {"stream", NULL};
    PyObject *given[1], *kept;
    CUstream stream;
    struct buffer *self = data_of(object);
    given[0] = NULL;
    if ((count || keywords) && core_take("close", args, count, keywords, names, 1, 0, given) < 0) {
        return NULL;
    }
    if (self->closed) {
        Py_RETURN_NONE;
    }
    struct resource *resource = self->resource ? data_of(self->resource) : NULL;
    if (given[0] &&
        core_stream(given[0], resource ? resource->library : NULL, NULL, &stream, &kept) < 0) {
        return NULL;
    }
    int failed = close_buffer(self, given[0]);
    if (core_finish() < 0 || failed < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* _keep(owner): lives as long as the memory, and is shown as the owner. */
static PyObject *buffer_keep(PyObject *object, PyObject *owner) {
    struct buffer *self = data_of(object);
    core_set(&self->owner, owner);
    Py_RETURN_NONE;
}

static PyObject *buffer_set_deallocation_stream(PyObject *object, PyObject *stream) {
    struct buffer *self = data_of(object);
    CUstream handle;
    PyObject *kept;
    if (self->closed) {
        return core_closed_error();
    }
    struct resource *resource = self->resource ? data_of(self->resource) : NULL;
    if (core_stream(stream, resource ? resource->library : NULL, NULL, &handle, &kept) < 0 ||
        core_name_stream(self, kept) < 0) {
        return NULL;
    }
    core_set(&core_root(self)->closing_stream, stream);
    Py_RETURN_NONE;
}

static PyObject *buffer_enter(PyObject *object, PyObject *unused) {
    (void)unused;
    Py_INCREF(object);
    return object;
}

static PyObject *buffer_exit(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    (void)args;
    (void)count;
    return buffer_close(object, NULL, 0, NULL);
}

static PyObject *buffer_compare(PyObject *object, PyObject *other, int operation) {
    if ((operation != Py_EQ && operation != Py_NE) ||
        !PyObject_TypeCheck(other, core.buffer_type)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    const struct buffer *self = data_of(object), *second = data_of(other);
    bool open = !self->closed && !second->closed;
    bool same =
        object == other || (open && self->pointer == second->pointer && self->size == second->size);
    return PyBool_FromLong(same == (operation == Py_EQ));
}

/* By identity: a Buffer grows in place. */
static Py_hash_t buffer_hash(PyObject *object) {
    Py_hash_t hash = (Py_hash_t)((uintptr_t)object >> 4);
    return hash == -1 ? -2 : hash;
}

static PyObject *buffer_repr(PyObject *object) {
    const struct buffer *self = data_of(object);
    if (self->closed) {
        return PyUnicode_FromString("<gpumem.Buffer, closed>");
    }
    return PyUnicode_FromFormat("<gpumem.Buffer of %zu bytes at %p>", self->size,
                                (void *)(uintptr_t)self->pointer);
}

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)args;
    (void)keywords;
    return PyErr_Format(PyExc_RuntimeError,
                        "%S is not made by calling it: use a MemoryResource, or Buffer.from_handle",
                        type);
}

static PyObject *buffer_handle(PyObject *object, void *unused) {
    (void)unused;
    const struct buffer *self = data_of(object);
    return PyLong_FromUnsignedLongLong(self->closed ? 0 : self->pointer);
}

static PyObject *buffer_size(PyObject *object, void *unused) {
    (void)unused;
    const struct buffer *self = data_of(object);
    return PyLong_FromSize_t(self->closed ? 0 : self->size);
}

static PyObject *buffer_is_closed(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(((const struct buffer *)data_of(object))->closed);
}

static PyObject *or_none(PyObject *object, bool open) {
    PyObject *result = object && open ? object : Py_None;
    Py_INCREF(result);
    return result;
}

static PyObject *buffer_resource(PyObject *object, void *unused) {
    (void)unused;
    const struct buffer *self = data_of(object);
    return or_none(self->resource, !self->closed);
}

static PyObject *buffer_owner(PyObject *object, void *unused) {
    (void)unused;
    const struct buffer *self = data_of(object);
    return or_none(self->owner, !self->closed);
}

static PyObject *buffer_made_at(PyObject *object, void *unused) {
    (void)unused;
    const struct buffer *self = data_of(object);
    return or_none(self->made_at, true);
}

static PyObject *buffer_stream(PyObject *object, void *unused) {
    (void)unused;
    const struct buffer *self = data_of(object);
    return or_none(self->stream, !self->closed);
}

#define NUMBER(name)                                                                               \
    static PyObject *buffer_##name(PyObject *object, void *unused) {                               \
        (void)unused;                                                                              \
        struct buffer *self = data_of(object);                                                     \
        if (self->closed || !core_root(self)->buffer) {                                            \
            return PyLong_FromSize_t(self->closed ? 0 : self->size);                               \
        }                                                                                          \
        if (core_enter_buffer(object) < 0) {                                                       \
            return NULL;                                                                           \
        }                                                                                          \
        size_t value = gpumem_buffer_##name(core_root(self)->buffer);                              \
        core_leave_buffer(object);                                                                 \
        return PyLong_FromSize_t(value);                                                           \
    }
NUMBER(capacity)
NUMBER(committed)

static PyObject *buffer_is_shared(PyObject *object, void *unused) {
    (void)unused;
    const struct buffer *root = core_root(data_of(object));
    return PyBool_FromLong(root->siblings > (root->closed ? 1 : 0));
}

static PyObject *buffer_host_handle(PyObject *object, void *unused) {
    (void)unused;
    struct buffer *self = data_of(object);
    if (core_enter_buffer(object) < 0) {
        return NULL;
    }
    void *pointer = gpumem_buffer_host_pointer(core_root(self)->buffer);
    core_leave_buffer(object);
    return PyLong_FromVoidPtr(pointer);
}

/* ---- The type -------------------------------------------------------------------------------- */

static int traverse(PyObject *object, visitproc visit, void *arg) {
    const struct buffer *self = data_of(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->resource);
    Py_VISIT(self->owner);
    Py_VISIT(self->keeps);
    Py_VISIT(self->stream);
    Py_VISIT(self->streams);
    Py_VISIT(self->root);
    Py_VISIT(self->closing_stream);
    return 0;
}

static void end_unclosed(PyObject *object) {
    struct buffer *self = data_of(object);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (core.development && self->made_at &&
        PyErr_WarnFormat(PyExc_ResourceWarning, 1,
                         "a Buffer of %zu bytes, made at %U, was not closed", self->size,
                         self->made_at) < 0) {
        PyErr_WriteUnraisable(NULL);
    }
    if (close_buffer(self, NULL) < 0) {
        PyErr_WriteUnraisable(NULL);
    }
    if (core_finish() < 0) {
        PyErr_WriteUnraisable(NULL);
    }
    PyErr_Restore(type, value, traceback);
}

static int clear(PyObject *object) {
    struct buffer *self = data_of(object);
    if (!self->closed) {
        end_unclosed(object);
    }
    return 0;
}

static void dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    struct buffer *self = data_of(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) {
        PyObject_ClearWeakRefs(object);
    }
    if (!self->closed) {
        end_unclosed(object);
    }
    core_return_lent(self);
    drop_streams(self);
    drop_resource(self);
    Py_CLEAR(self->root);
    Py_CLEAR(self->made_at);
    if (type == core.buffer_type) {
        PyObject_GC_Del(object);
    } else {
        ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    }
    Py_DECREF(type);
}

void core_drop_hold(struct buffer *root) {
    if (--root->holds == 0 && root->ended) {
        drop_resource(root);
    }
}

#define FAST(function) (PyCFunction)(void (*)(void))(function)
static PyMethodDef methods[] = {
    {"close", FAST(buffer_close), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"copy_to", FAST(core_buffer_copy_to), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"copy_from", FAST(core_buffer_copy_from), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"fill", FAST(core_buffer_fill), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"view", FAST(buffer_view), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"from_handle", FAST(buffer_from_handle), METH_FASTCALL | METH_KEYWORDS | METH_CLASS, NULL},
    {"set_deallocation_stream", buffer_set_deallocation_stream, METH_O, NULL},
    {"_share", buffer_share, METH_O, NULL},
    {"_keep", buffer_keep, METH_O, NULL},
    {"_resize", buffer_resize, METH_O, NULL},
    {"_hold", core_buffer_hold, METH_NOARGS, NULL},
    {"__dlpack__", FAST(core_buffer_dlpack), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"__dlpack_device__", core_buffer_dlpack_device, METH_NOARGS, NULL},
    {"__enter__", buffer_enter, METH_NOARGS, NULL},
    {"__exit__", FAST(buffer_exit), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getters[] = {
    {"handle", buffer_handle, NULL, NULL, NULL},
    {"size", buffer_size, NULL, NULL, NULL},
    {"is_closed", buffer_is_closed, NULL, NULL, NULL},
    {"memory_resource", buffer_resource, NULL, NULL, NULL},
    {"owner", buffer_owner, NULL, NULL, NULL},
    {"capacity", buffer_capacity, NULL, NULL, NULL},
    {"committed", buffer_committed, NULL, NULL, NULL},
    {"host_handle", buffer_host_handle, NULL, NULL, NULL},
    {"_is_shared", buffer_is_shared, NULL, NULL, NULL},
    {"_made_at", buffer_made_at, NULL, NULL, NULL},
    {"_stream", buffer_stream, NULL, NULL, NULL},
    {"__cuda_array_interface__", core_buffer_array_interface, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, DATA_OFFSET(struct buffer, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, buffer_new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_repr, buffer_repr},
    {Py_tp_hash, buffer_hash},
    {Py_tp_richcompare, buffer_compare},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, members},
    {Py_bf_getbuffer, core_get_buffer},
    {Py_bf_releasebuffer, core_release_buffer},
    {0, NULL},
};
PyType_Spec core_buffer_spec = {"gpumem.Buffer", BASIC_SIZE(struct buffer), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                                slots};
