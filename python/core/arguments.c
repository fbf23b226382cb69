/* Arguments of Python as C's: numbers that are not cut, names in every refusal, streams in all
 * forms. */
#include "core.h"

static int place_of(PyObject *keyword, const char *const *names) {
    for (int place = 0; names[place]; ++place) {
        if (PyUnicode_CompareWithASCIIString(keyword, names[place]) == 0) {
            return place;
        }
    }
    return -1;
}

int core_take(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *keywords,
              const char *const *names, int positional, int required, PyObject **out) {
    int known = 0;
    while (names[known]) {
        out[known++] = NULL;
    }
    if (count > positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional arguments, not %zd", function,
                     positional, count);
        return -1;
    }
    for (Py_ssize_t place = 0; place < count; ++place) {
        out[place] = args[place];
    }
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t each = 0; each < named; ++each) {
        PyObject *keyword = PyTuple_GetItem(keywords, each);
        int place = place_of(keyword, names);
        if (place < 0) {
            PyErr_Format(PyExc_TypeError, "%s() has no argument '%U'", function, keyword);
            return -1;
        }
        if (out[place]) {
            PyErr_Format(PyExc_TypeError, "%s() was given '%U' twice", function, keyword);
            return -1;
        }
        out[place] = args[count + each];
    }
    for (int place = 0; place < required; ++place) {
        if (!out[place]) {
            PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", function, names[place]);
            return -1;
        }
    }
    return 0;
}

/* An int, by __index__; a float has none and is refused. A new reference. */
static PyObject *index_of(PyObject *from, const char *name) {
    PyObject *number = PyNumber_Index(from);
    if (!number && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Format(PyExc_TypeError, "%s must be an int, not %S", name, Py_TYPE(from));
    }
    return number;
}

int core_wide(PyObject *from, const char *name, unsigned long long *to) {
    if (PyLong_CheckExact(from)) { /* the usual case */
        *to = PyLong_AsUnsignedLongLong(from);
        if (*to != (unsigned long long)-1 || !PyErr_Occurred()) {
            return 0;
        }
        PyErr_Clear();
    }
    PyObject *number = index_of(from, name);
    if (!number) {
        return -1;
    }
    unsigned long long value = PyLong_AsUnsignedLongLong(number);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_Format(PyExc_OverflowError, "%s is %S: below 0, or more than 64 bits", name, number);
        Py_DECREF(number);
        return -1;
    }
    Py_DECREF(number);
    *to = value;
    return 0;
}

int core_size(PyObject *from, const char *name, size_t *to) {
    unsigned long long value = 0;
    if (core_wide(from, name, &value) < 0) {
        return -1;
    }
    *to = (size_t)value;
    return 0;
}

int core_int(PyObject *from, const char *name, int *to) {
    PyObject *number = index_of(from, name);
    if (!number) {
        return -1;
    }
    long value = PyLong_AsLong(number);
    if ((value == -1 && PyErr_Occurred()) || value < INT_MIN || value > INT_MAX) {
        PyErr_Format(PyExc_OverflowError, "%s is %S: more than 32 bits", name, number);
        Py_DECREF(number);
        return -1;
    }
    Py_DECREF(number);
    *to = (int)value;
    return 0;
}

static int stream_of_number(PyObject *from, CUstream *to) {
    unsigned long long value = PyLong_AsUnsignedLongLong(from);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(PyExc_OverflowError, "stream is %S: not a handle", from);
        return -1;
    }
    /* 0 is the legacy default stream everywhere; C's NULL names none in some calls. */
    *to = value ? (CUstream)(uintptr_t)value : GPUMEM_STREAM_LEGACY;
    return 0;
}

/* `pair` is what __cuda_stream__ gave: (version, handle). Takes it over. */
static int stream_of_pair(PyObject *pair, PyObject *from, CUstream *to) {
    int result = -1;
    PyObject *items = pair ? PySequence_Tuple(pair) : NULL;
    if (items && PyTuple_Size(items) == 2) {
        PyObject *version = PyTuple_GetItem(items, 0), *handle = PyTuple_GetItem(items, 1);
        PyObject *number = PyNumber_Index(handle);
        if (number && PyLong_Check(version) && PyLong_AsLong(version) == 0) {
            result = stream_of_number(number, to);
        } else if (number && !PyErr_Occurred()) {
            PyErr_Format(PyExc_TypeError, "stream: __cuda_stream__ of %S has version %S, not 0",
                         Py_TYPE(from), version);
        }
        Py_XDECREF(number);
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError, "stream: __cuda_stream__ of %S gave no pair", Py_TYPE(from));
    }
    Py_XDECREF(items);
    Py_XDECREF(pair);
    return result;
}

/* An attribute that may be missing: NULL without an exception then. A new reference. */
static PyObject *attribute(PyObject *from, const char *name) {
    PyObject *found = PyObject_GetAttrString(from, name);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
    }
    return found;
}

static int foreign_stream(PyObject *from, CUstream *to, PyObject **kept) {
    *kept = from;
    PyObject *protocol = attribute(from, "__cuda_stream__");
    if (protocol) {
        PyObject *pair = PyCallable_Check(protocol) ? PyObject_CallObject(protocol, NULL)
                                                    : (Py_INCREF(protocol), protocol);
        Py_DECREF(protocol);
        return stream_of_pair(pair, from, to);
    }
    if (PyErr_Occurred()) {
        return -1;
    }
    PyObject *pointer = attribute(from, "ptr"); /* CuPy's */
    if (pointer && PyLong_Check(pointer) && !PyBool_Check(pointer)) {
        int result = stream_of_number(pointer, to);
        Py_DECREF(pointer);
        return result;
    }
    Py_XDECREF(pointer);
    if (!PyErr_Occurred()) {
        PyErr_Format(
            PyExc_TypeError,
            "stream must be a Stream, an object with __cuda_stream__, an int or None, not %S",
            Py_TYPE(from));
    }
    return -1;
}

int core_stream(PyObject *from, void *library, CUstream none, CUstream *to, PyObject **kept) {
    *kept = NULL;
    if (!from || from == Py_None) {
        *to = none;
        return 0;
    }
    if (PyObject_TypeCheck(from, core.stream_type)) {
        struct stream *stream = data_of(from);
        if (stream->closed) {
            PyErr_SetString(PyExc_ValueError, "stream has been closed");
            return -1;
        }
        if (library && stream->library && stream->library != library) {
            core_refuse(GPUMEM_ERROR_INVALID_ARGUMENT,
                        "stream belongs to another opened driver than the memory");
            return -1;
        }
        *to = stream->stream;
        *kept = from;
        return 0;
    }
    if (PyBool_Check(from)) {
        PyErr_SetString(PyExc_TypeError, "stream must be a stream, not a bool");
        return -1;
    }
    return PyLong_Check(from) ? stream_of_number(from, to) : foreign_stream(from, to, kept);
}
