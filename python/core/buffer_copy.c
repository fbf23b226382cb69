/* Copies and fills of a Buffer. Without a stream they are gpumem/_buffer.py's matter. */
#include "core.h"

#include <string.h>

/* The rest of a call without a stream: ordered after all streams of the buffers, done at return. */
static PyObject *without_stream(const char *what, PyObject *first, PyObject *second) {
    return PyObject_CallFunction(core.without_stream, "sOO", what, first, second);
}

static void *library_of(const struct buffer *self) {
    return self->resource ? ((const struct resource *)data_of(self->resource))->library : NULL;
}

static int name_both(PyObject *first, PyObject *second, PyObject *stream) {
    return core_name_stream(core_root(data_of(first)), stream) < 0 ||
                   core_name_stream(core_root(data_of(second)), stream) < 0
               ? -1
               : 0;
}

static PyObject *copy(PyObject *to, PyObject *from, PyObject *stream, PyObject *options,
                      PyObject *result) {
    struct buffer *target = data_of(to), *source = data_of(from);
    CUstream handle = NULL;
    PyObject *kept;
    if (target->closed || source->closed) {
        return core_closed_error();
    }
    if (target->size != source->size) {
        return PyErr_Format(PyExc_ValueError,
                            "dst and src: %zu and %zu bytes; a copy needs the same size",
                            target->size, source->size);
    }
    if (core_stream(stream, library_of(target), NULL, &handle, &kept) < 0 ||
        (library_of(source) && core_stream(stream, library_of(source), NULL, &handle, &kept) < 0)) {
        return NULL;
    }
    if (options && options != Py_None) { /* a batch of one */
        PyObject *done = PyObject_CallFunction(core.without_stream, "sO(OOO)", "copy with options",
                                               to, from, stream ? stream : Py_None, options);
        Py_XDECREF(done);
        Py_XINCREF(done ? result : NULL);
        return done ? result : NULL;
    }
    if (!handle || handle == GPUMEM_STREAM_NONE) {
        PyObject *done = without_stream("copy", to, from);
        Py_XDECREF(done);
        Py_XINCREF(done ? result : NULL);
        return done ? result : NULL;
    }
    if (core_enter_buffers(to, from) < 0) {
        return NULL;
    }
    PyThreadState *state = core_leave_python();
    gpumem_status status = gpumem_buffer_copy(core_root(target)->buffer, 0,
                                              core_root(source)->buffer, 0, source->size, handle);
    core_enter_python(state);
    if (status != GPUMEM_OK || name_both(to, from, kept) < 0) {
        result = status != GPUMEM_OK ? core_raise(status) : NULL;
    }
    core_leave_buffer(to);
    if (core_root(target) != core_root(source)) {
        core_leave_buffer(from);
    }
    if (core_finish() < 0) {
        return NULL;
    }
    Py_XINCREF(result);
    return result;
}

PyObject *core_buffer_copy_to(PyObject *object, PyObject *const *args, Py_ssize_t count,
                              PyObject *keywords) {
    static const char *const names[] = {"dst", "stream", "options", NULL};
    PyObject *given[3];
    struct buffer *self = data_of(object);
    if (core_take("copy_to", args, count, keywords, names, 1, 0, given) < 0) {
        return NULL;
    }
    PyObject *to = given[0];
    if (to && to != Py_None) {
        if (!PyObject_TypeCheck(to, core.buffer_type)) {
            return PyErr_Format(PyExc_TypeError, "dst must be a Buffer, not %S", Py_TYPE(to));
        }
        return copy(to, object, given[1], given[2], to);
    }
    if (self->closed) {
        return core_closed_error();
    }
    if (!self->resource) {
        return PyErr_Format(PyExc_ValueError, "dst is needed: the Buffer has no memory resource");
    }
    PyObject *stream = given[1] ? given[1] : Py_None;
    PyObject *method = PyObject_GetAttrString(self->resource, "allocate");
    PyObject *sizes = method ? Py_BuildValue("(n)", (Py_ssize_t)self->size) : NULL;
    PyObject *named = sizes ? Py_BuildValue("{sO}", "stream", stream) : NULL;
    to = named ? PyObject_Call(method, sizes, named) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(sizes);
    Py_XDECREF(named);
    if (!to) {
        return NULL;
    }
    if (!PyObject_TypeCheck(to, core.buffer_type)) {
        PyErr_Format(PyExc_TypeError, "allocate() of %S gave no Buffer", Py_TYPE(self->resource));
        Py_DECREF(to);
        return NULL;
    }
    struct buffer *target = data_of(to);
    size_t allocated = target->size;
    if (allocated > self->size) { /* resources that round sizes up */
        target->size = self->size;
    }
    PyObject *result = copy(to, object, given[1], given[2], to);
    target->size = allocated;
    Py_DECREF(to);
    return result;
}

PyObject *core_buffer_copy_from(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                PyObject *keywords) {
    static const char *const names[] = {"src", "stream", "options", NULL};
    PyObject *given[3];
    if (core_take("copy_from", args, count, keywords, names, 1, 1, given) < 0) {
        return NULL;
    }
    if (!PyObject_TypeCheck(given[0], core.buffer_type)) {
        return PyErr_Format(PyExc_TypeError, "src must be a Buffer, not %S", Py_TYPE(given[0]));
    }
    return copy(object, given[0], given[1], given[2], Py_None);
}

/* The 1, 2 or 4 bytes of a fill's value. */
static int pattern_of(PyObject *value, unsigned char pattern[4], size_t *bytes) {
    if (PyLong_Check(value) || (!PyObject_CheckBuffer(value) && PyIndex_Check(value))) {
        int number = 0;
        if (core_int(value, "value", &number) < 0) {
            return -1;
        }
        if (number < 0 || number > 255) {
            PyErr_Format(PyExc_OverflowError, "value is %d; a byte is 0 to 255", number);
            return -1;
        }
        pattern[0] = (unsigned char)number;
        *bytes = 1;
        return 0;
    }
    if (!PyObject_CheckBuffer(value)) {
        PyErr_Format(PyExc_TypeError,
                     "value must be an int or an object with 1, 2 or 4 bytes, not %S",
                     Py_TYPE(value));
        return -1;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    *bytes = (size_t)view.len;
    bool good = view.len == 1 || view.len == 2 || view.len == 4;
    if (good) {
        memcpy(pattern, view.buf, (size_t)view.len);
    } else {
        PyErr_Format(PyExc_ValueError, "value has %zd bytes, not 1, 2 or 4", view.len);
    }
    PyBuffer_Release(&view);
    return good ? 0 : -1;
}

PyObject *core_buffer_fill(PyObject *object, PyObject *const *args, Py_ssize_t count,
                           PyObject *keywords) {
    static const char *const names[] = {"value", "stream", NULL};
    PyObject *given[2], *kept;
    unsigned char pattern[4] = {0};
    size_t bytes = 0;
    CUstream stream = NULL;
    struct buffer *self = data_of(object);
    if (core_take("fill", args, count, keywords, names, 1, 1, given) < 0 ||
        pattern_of(given[0], pattern, &bytes) < 0) {
        return NULL;
    }
    if (self->closed) {
        return core_closed_error();
    }
    if (self->size % bytes) {
        return PyErr_Format(PyExc_ValueError,
                            "value: the Buffer's %zu bytes are no multiple of %zu", self->size,
                            bytes);
    }
    if (core_stream(given[1], library_of(self), NULL, &stream, &kept) < 0) {
        return NULL;
    }
    if (!stream || stream == GPUMEM_STREAM_NONE) {
        PyObject *done = without_stream("fill", object, given[0]);
        Py_XDECREF(done);
        Py_XINCREF(done ? Py_None : NULL);
        return done ? Py_None : NULL;
    }
    if (core_enter_buffer(object) < 0) {
        return NULL;
    }
    PyThreadState *state = core_leave_python();
    gpumem_status status =
        bytes == 1 ? gpumem_buffer_fill(core_root(self)->buffer, 0, self->size, pattern[0], stream)
                   : gpumem_buffer_fill_pattern(core_root(self)->buffer, 0, self->size, pattern,
                                                bytes, stream);
    core_enter_python(state);
    bool failed = status != GPUMEM_OK ? (core_raise(status), true)
                                      : core_name_stream(core_root(self), kept) < 0;
    core_leave_buffer(object);
    if (core_finish() < 0 || failed) {
        return NULL;
    }
    Py_RETURN_NONE;
}
