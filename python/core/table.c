/*
 * Calls by table: a generated row says what a C function's parameters are, and this file turns
 * Python's arguments into them, makes the call without the GIL, and turns results into Python's
 * objects.
 *
 * A function takes its arguments by position, those that C only reads; results are returned,
 * several as a tuple. Structs of options are dicts (unknown names are TypeError), results are
 * struct sequences with the members of C. Buffers are entered, resources and objects kept open
 * for the call, and stream objects are kept by each buffer of the call.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMETERS = 10, MOST_STRUCT = 4096 };

/* ---- Words ----------------------------------------------------------------------------------- */

int core_choice(size_t choices, PyObject *word, const char *name, int *value) {
    const struct choice *row = core_choices[choices].rows;
    const char *text = word == Py_None ? "none" : NULL;
    if (!text && PyUnicode_Check(word)) {
        text = PyUnicode_AsUTF8AndSize(word, NULL);
        if (!text) {
            return -1;
        }
    }
    if (!text) {
        PyErr_Format(PyExc_TypeError, "%s must be a str, not %S", name, Py_TYPE(word));
        return -1;
    }
    for (; row->word; ++row) {
        if (strcmp(row->word, text) == 0) {
            *value = row->value;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "%s is %R; it is one of %s", name, word,
                 core_choices[choices].name);
    return -1;
}

PyObject *core_word(size_t choices, int value) {
    for (const struct choice *row = core_choices[choices].rows; row->word; ++row) {
        if (row->value == value) {
            return PyUnicode_FromString(row->word);
        }
    }
    return PyLong_FromLong(value);
}

/* ---- Results --------------------------------------------------------------------------------- */

static PyObject *text_of(const char *text, size_t most) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strnlen(text, most), "replace");
}

static PyObject *member_value(const struct member *member, const char *from) {
    const void *at = from + member->offset;
    switch (member->kind) {
    case KIND_BOOL:
        return PyBool_FromLong(*(const bool *)at);
    case KIND_INT:
        return PyLong_FromLong(*(const int *)at);
    case KIND_UNSIGNED:
        return PyLong_FromUnsignedLong(*(const unsigned *)at);
    case KIND_SIZE:
        return PyLong_FromSize_t(*(const size_t *)at);
    case KIND_UINT64:
        return PyLong_FromUnsignedLongLong(*(const unsigned long long *)at);
    case KIND_DOUBLE:
        return PyFloat_FromDouble(*(const double *)at);
    case KIND_ENUM:
        return core_word(member->extra, *(const int *)at);
    case KIND_TEXT: {
        const char *text = *(const char *const *)at;
        return text ? text_of(text, SIZE_MAX / 4) : PyUnicode_FromString("");
    }
    case KIND_CHARS:
        return text_of(at, member->extra);
    case KIND_BYTES:
        return PyBytes_FromStringAndSize(at, (Py_ssize_t)member->extra);
    case KIND_BLOB:
        return PyBytes_FromStringAndSize(*(const char *const *)at,
                                         (Py_ssize_t) *
                                             (const size_t *)(const void *)(from + member->extra));
    case KIND_INTS: {
        size_t count = *(const size_t *)(const void *)(from + member->extra);
        const int *numbers = *(const int *const *)at;
        PyObject *list = PyList_New(0);
        for (size_t each = 0; list && each < count; ++each) {
            PyObject *number = PyLong_FromLong(numbers[each]);
            if (!number || PyList_Append(list, number) < 0) {
                Py_CLEAR(list);
            }
            Py_XDECREF(number);
        }
        return list;
    }
    default: /* handles */
        return PyLong_FromVoidPtr(*(void *const *)at);
    }
}

/* The struct sequence of a layout, "gpumem.buffer_attributes": made when it is first needed. */
static PyTypeObject *sequence_type(size_t layout) {
    if (!core.layouts[layout]) {
        const struct member *members = core_layouts[layout].members;
        size_t count = 0;
        while (members[count].name) {
            ++count;
        }
        PyStructSequence_Field *fields = calloc(count + 1, sizeof *fields);
        if (!fields) {
            PyErr_NoMemory();
            return NULL;
        }
        for (size_t each = 0; each < count; ++each) {
            fields[each] = (PyStructSequence_Field){(char *)members[each].name, NULL};
        }
        PyStructSequence_Desc description = {core_layouts[layout].name, NULL, fields, (int)count};
        core.layouts[layout] = (PyObject *)PyStructSequence_NewType(&description);
        free(fields);
    }
    return (PyTypeObject *)core.layouts[layout];
}

PyObject *core_result(size_t layout, const void *result) {
    PyTypeObject *type = sequence_type(layout);
    PyObject *sequence = type ? PyStructSequence_New(type) : NULL;
    const struct member *members = core_layouts[layout].members;
    for (Py_ssize_t each = 0; sequence && members[each].name; ++each) {
        PyObject *value = member_value(&members[each], result);
        if (!value) {
            Py_CLEAR(sequence);
        } else {
            PyStructSequence_SetItem(sequence, each, value);
        }
    }
    return sequence;
}

/* ---- Structs of options ---------------------------------------------------------------------- */

/* Memory that lives until the call has returned: bytes objects in the list `kept`. */
static void *scratch(PyObject *kept, size_t bytes) {
    PyObject *memory = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (!memory || PyList_Append(kept, memory) < 0) {
        Py_XDECREF(memory);
        return NULL;
    }
    Py_DECREF(memory);
    void *at = PyBytes_AsString(memory);
    memset(at, 0, bytes);
    return at;
}

static const char *utf8(PyObject *text, const char *name, PyObject *kept) {
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str, not %S", name, Py_TYPE(text));
        return NULL;
    }
    return PyList_Append(kept, text) < 0 ? NULL : PyUnicode_AsUTF8AndSize(text, NULL);
}

static int *ints(PyObject *from, const char *name, PyObject *kept, size_t *count) {
    PyObject *items = PySequence_Tuple(from);
    if (!items) {
        return NULL;
    }
    Py_ssize_t number = PyTuple_Size(items);
    int *values = scratch(kept, sizeof(int) * (size_t)(number ? number : 1));
    for (Py_ssize_t each = 0; values && each < number; ++each) {
        if (core_int(PyTuple_GetItem(items, each), name, &values[each]) < 0) {
            values = NULL;
        }
    }
    Py_DECREF(items);
    *count = (size_t)number;
    return values;
}

static int fill_bytes(PyObject *from, const char *name, void *to, size_t length) {
    Py_buffer view;
    if (PyObject_GetBuffer(from, &view, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    bool fits = (size_t)view.len == length;
    if (fits) {
        memcpy(to, view.buf, length);
    } else {
        PyErr_Format(PyExc_ValueError, "%s has %zd bytes, not %zu", name, view.len, length);
    }
    PyBuffer_Release(&view);
    return fits ? 0 : -1;
}

static int unsigned_of(PyObject *from, const char *name, unsigned long long most, unsigned *to) {
    unsigned long long wide = 0;
    if (core_wide(from, name, &wide) < 0) {
        return -1;
    }
    if (wide > most) {
        PyErr_Format(PyExc_OverflowError, "%s is %llu; at most %llu", name, wide, most);
        return -1;
    }
    *to = (unsigned)wide;
    return 0;
}

static int bool_of(PyObject *from, bool *to) {
    int truth = PyObject_IsTrue(from);
    *to = truth > 0;
    return truth < 0 ? -1 : 0;
}

static int fill_member(const struct member *member, PyObject *value, char *to, PyObject *kept) {
    void *at = to + member->offset;
    switch (member->kind) {
    case KIND_BOOL:
        return bool_of(value, at);
    case KIND_INT:
        return core_int(value, member->name, at);
    case KIND_UNSIGNED:
        return unsigned_of(value, member->name, UINT_MAX, at);
    case KIND_SIZE:
        return core_size(value, member->name, at);
    case KIND_UINT64:
        return core_wide(value, member->name, at);
    case KIND_DOUBLE:
        *(double *)at = PyFloat_AsDouble(value);
        return PyErr_Occurred() ? -1 : 0;
    case KIND_ENUM:
        return core_choice(member->extra, value, member->name, at);
    case KIND_TEXT:
        *(const char **)at = value == Py_None ? NULL : utf8(value, member->name, kept);
        return PyErr_Occurred() ? -1 : 0;
    case KIND_BYTES:
        return fill_bytes(value, member->name, at, member->extra);
    case KIND_STREAM: {
        PyObject *stream;
        return core_stream(value, NULL, NULL, at, &stream) < 0 ||
                       (stream && PyList_Append(kept, stream) < 0)
                   ? -1
                   : 0;
    }
    case KIND_INTS:
        *(int **)at = ints(value, member->name, kept, (size_t *)(void *)(to + member->extra));
        return *(int **)at ? 0 : -1;
    default:
        PyErr_Format(PyExc_TypeError, "%s cannot be given from Python", member->name);
        return -1;
    }
}

int core_fill_struct(size_t layout, PyObject *options, void *to, PyObject *kept) {
    *(size_t *)to = core_layouts[layout].size;
    if (!PyDict_Check(options)) {
        PyErr_Format(PyExc_TypeError, "options must be a dict, not %S", Py_TYPE(options));
        return -1;
    }
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(options, &position, &name, &value)) {
        const struct member *row = core_layouts[layout].members;
        while (row->name &&
               (!PyUnicode_Check(name) || PyUnicode_CompareWithASCIIString(name, row->name))) {
            ++row;
        }
        if (!row->name) {
            PyErr_Format(PyExc_TypeError, "%s has no member %R", core_layouts[layout].name, name);
            return -1;
        }
        if (fill_member(row, value, to, kept) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- A call ---------------------------------------------------------------------------------- */

struct call {
    const struct cold *row;
    union value values[MOST_PARAMETERS];
    Py_buffer views[2];                 /* of memory that C reads or writes */
    PyObject *objects[MOST_PARAMETERS]; /* given for each parameter, borrowed; NULL: a result */
    PyObject *used[MOST_PARAMETERS];    /* objects and resources that the call keeps open */
    PyObject *kept;                     /* a list: what lives until the call has returned */
    PyObject *buffers[2];
    int view_count, buffer_count, entered;
};

static bool is_result(enum kind kind) {
    return kind >= KIND_NEW_BUFFER && kind != KIND_NEW_RESOURCE;
}

static int take_object(struct call *call, int index, PyObject *from, const char *name,
                       size_t kind) {
    if (PyObject_TypeCheck(from, core.object_type)) {
        const struct object *data = data_of(from);
        if (data->kind == kind) {
            if (!data->pointer || data->closing) {
                PyErr_Format(PyExc_RuntimeError, "%s has been closed", name);
                return -1;
            }
            call->values[index].pointer = data->pointer;
            ++((struct object *)data_of(from))->uses;
            call->used[index] = from;
            return 0;
        }
    }
    PyErr_Format(PyExc_TypeError, "%s must be a %s, not %S", name, core_object_names[kind],
                 Py_TYPE(from));
    return -1;
}

static int take_resource(struct call *call, int index, PyObject *from, const char *name) {
    if (!PyObject_TypeCheck(from, core.resource_type)) {
        PyErr_Format(PyExc_TypeError, "%s must be a MemoryResource, not %S", name, Py_TYPE(from));
        return -1;
    }
    const struct resource *data = data_of(from);
    if (!data->native) {
        PyErr_Format(PyExc_TypeError, "%s must be a resource of gpumem's; %S is written in Python",
                     name, Py_TYPE(from));
        return -1;
    }
    if (data->closed) {
        PyErr_Format(PyExc_RuntimeError, "%s: the memory resource has been closed", name);
        return -1;
    }
    call->values[index].pointer = data->resource;
    core_use_resource(from);
    call->used[index] = from;
    return 0;
}

static int take_memory(struct call *call, int index, PyObject *from, bool writable) {
    Py_buffer *view = &call->views[call->view_count];
    if (PyObject_GetBuffer(from, view, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0) {
        return -1;
    }
    ++call->view_count;
    call->values[index].pointer = view->buf;
    call->values[index].count = (size_t)view->len;
    return 0;
}

static int take_number(const struct parameter *row, PyObject *from, union value *value) {
    unsigned number = 0;
    switch (row->kind) {
    case KIND_BOOL:
        return bool_of(from, &value->flag);
    case KIND_INT:
        return core_int(from, row->name, &value->number);
    case KIND_UNSIGNED:
    case KIND_BYTE:
        if (unsigned_of(from, row->name, row->kind == KIND_BYTE ? 255 : UINT_MAX, &number) < 0) {
            return -1;
        }
        value->number = (int)number;
        return 0;
    case KIND_SIZE:
        return core_size(from, row->name, &value->size);
    case KIND_UINT64:
        return core_wide(from, row->name, &value->wide);
    default:
        value->real = PyFloat_AsDouble(from);
        return PyErr_Occurred() ? -1 : 0;
    }
}

static int take_struct(struct call *call, int index, PyObject *from, size_t layout) {
    if (from == Py_None) {
        call->values[index].pointer = NULL;
        return 0;
    }
    void *memory = scratch(call->kept, core_layouts[layout].size);
    call->values[index].pointer = memory;
    return memory ? core_fill_struct(layout, from, memory, call->kept) : -1;
}

static int take_event(PyObject *from, const char *name, void **to) {
    if (!PyObject_TypeCheck(from, core.event_type)) {
        unsigned long long handle = 0;
        if (!PyLong_Check(from)) {
            PyErr_Format(PyExc_TypeError, "%s must be an Event or an int, not %S", name,
                         Py_TYPE(from));
            return -1;
        }
        if (core_wide(from, name, &handle) < 0) {
            return -1;
        }
        *to = (void *)(uintptr_t)handle;
        return 0;
    }
    const struct event *event = data_of(from);
    if (event->closed) {
        PyErr_Format(PyExc_RuntimeError, "%s has been closed", name);
        return -1;
    }
    *to = event->event;
    return 0;
}

static int take_argument(struct call *call, int index, PyObject *from) {
    const struct parameter *row = &call->row->parameters[index];
    union value *value = &call->values[index];
    PyObject *kept = NULL;
    call->objects[index] = from;
    switch (row->kind) {
    case KIND_ENUM:
        return core_choice(row->extra, from, row->name, &value->number);
    case KIND_TEXT:
        value->pointer =
            from == Py_None ? NULL : (void *)(uintptr_t)utf8(from, row->name, call->kept);
        return PyErr_Occurred() ? -1 : 0;
    case KIND_STREAM:
        if (core_stream(from, NULL, NULL, (CUstream *)&value->pointer, &kept) < 0) {
            return -1;
        }
        call->objects[index] = kept;
        return 0;
    case KIND_EVENT:
        return take_event(from, row->name, &value->pointer);
    case KIND_INTS:
        value->pointer = ints(from, row->name, call->kept, &value->count);
        return value->pointer ? 0 : -1;
    case KIND_UUID:
        value->pointer = scratch(call->kept, row->extra);
        return value->pointer ? fill_bytes(from, row->name, value->pointer, row->extra) : -1;
    case KIND_READ:
    case KIND_WRITE:
        return take_memory(call, index, from, row->kind == KIND_WRITE);
    case KIND_STRUCT:
        return take_struct(call, index, from, row->extra);
    case KIND_OBJECT:
        return take_object(call, index, from, row->name, row->extra);
    case KIND_BUFFER:
        if (!PyObject_TypeCheck(from, core.buffer_type)) {
            PyErr_Format(PyExc_TypeError, "%s must be a Buffer, not %S", row->name, Py_TYPE(from));
            return -1;
        }
        call->buffers[call->buffer_count++] = from;
        return 0;
    case KIND_RESOURCE:
        return take_resource(call, index, from, row->name);
    case KIND_NEW_RESOURCE:
        if (!PyObject_TypeCheck(from, core.resource_type)) {
            PyErr_Format(PyExc_TypeError, "%s must be a MemoryResource, not %S", row->name,
                         Py_TYPE(from));
            return -1;
        }
        return 0;
    default:
        return take_number(row, from, value);
    }
}

static int take_arguments(struct call *call, PyObject *const *args, Py_ssize_t count) {
    const struct parameter *row = call->row->parameters;
    Py_ssize_t taken = 0, wanted = 0;
    for (int index = 0; row[index].name; ++index) {
        wanted += !is_result(row[index].kind);
    }
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, not %zd", call->row->name, wanted,
                     count);
        return -1;
    }
    for (int index = 0; row[index].name; ++index) {
        if (row[index].kind == KIND_OUT_STRUCT) {
            size_t size = core_layouts[row[index].extra].size;
            void *memory = scratch(call->kept, size);
            if (!memory) {
                return -1;
            }
            *(size_t *)memory = size;
            call->values[index].pointer = memory;
        } else if (!is_result(row[index].kind) && take_argument(call, index, args[taken++]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* What the call has used may end now, where it was closed meanwhile. */
static void leave_objects(const struct call *call) {
    const struct parameter *row = call->row->parameters;
    for (int index = 0; row[index].name; ++index) {
        if (!call->used[index]) {
            continue;
        }
        if (row[index].kind == KIND_RESOURCE) {
            core_leave_resource(call->used[index]);
        } else {
            core_leave_object(data_of(call->used[index]));
        }
    }
}

static int enter_buffers(struct call *call) {
    if (call->buffer_count == 0) {
        return 0;
    }
    if (core_enter_buffers(call->buffers[0], call->buffer_count > 1 ? call->buffers[1] : NULL) <
        0) {
        return -1;
    }
    call->entered = 1;
    int place = 0;
    const struct parameter *row = call->row->parameters;
    for (int index = 0; row[index].name; ++index) {
        if (row[index].kind == KIND_BUFFER) {
            call->values[index].pointer = core_root(data_of(call->buffers[place++]))->buffer;
        }
    }
    return 0;
}

static void leave_buffers(struct call *call) {
    for (int place = 0; call->entered && place < call->buffer_count; ++place) {
        if (place == 0 ||
            core_root(data_of(call->buffers[0])) != core_root(data_of(call->buffers[1]))) {
            core_leave_buffer(call->buffers[place]);
        }
    }
}

static int keep_streams(const struct call *call) {
    const struct parameter *row = call->row->parameters;
    for (int index = 0; row[index].name; ++index) {
        for (int place = 0; row[index].kind == KIND_STREAM && place < call->buffer_count; ++place) {
            if (core_name_stream(core_root(data_of(call->buffers[place])), call->objects[index]) <
                0) {
                return -1;
            }
        }
    }
    return 0;
}

/* What a new object is made from, which must outlive it: a tuple. */
static PyObject *owners_of(const struct call *call) {
    PyObject *list = PyList_New(0);
    const struct parameter *row = call->row->parameters;
    for (int index = 0; list && row[index].name; ++index) {
        enum kind kind = row[index].kind;
        if ((kind == KIND_OBJECT || kind == KIND_BUFFER || kind == KIND_RESOURCE) &&
            call->objects[index] && PyList_Append(list, call->objects[index]) < 0) {
            Py_CLEAR(list);
        }
    }
    PyObject *owners = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return owners;
}

static PyObject *new_buffer(struct call *call, gpumem_buffer *buffer, PyObject *owners) {
    PyObject *resource = NULL;
    const struct parameter *row = call->row->parameters;
    for (int index = 0; row[index].name; ++index) {
        if (row[index].kind == KIND_RESOURCE) {
            resource = call->objects[index];
        }
    }
    if (!resource && call->buffer_count) {
        resource = ((struct buffer *)data_of(call->buffers[0]))->resource;
    }
    PyObject *made = core_new_buffer(core.buffer_type, buffer, resource, NULL, NULL);
    if (made) {
        struct buffer *data = data_of(made);
        core_unlist_buffer(data);
        Py_INCREF(owners);
        data->keeps = owners;
        core_use_owners(owners);
    }
    return made;
}

/* NULL without an exception: there is no result to return. */
static PyObject *result_of(struct call *call, int index, PyObject *owners) {
    const struct parameter *row = &call->row->parameters[index];
    union value *value = &call->values[index];
    switch (row->kind) {
    case KIND_NEW_BUFFER:
        return new_buffer(call, value->pointer, owners);
    case KIND_NEW_RESOURCE:
        core_adopt_resource(call->objects[index], value->pointer, owners);
        return NULL;
    case KIND_NEW_OBJECT:
        return core_new_object(row->extra, value->pointer, owners);
    case KIND_OUT_STRUCT:
        return core_result(row->extra, value->pointer);
    case KIND_OUT_BOOL:
        return PyBool_FromLong(value->flag);
    case KIND_OUT_INT:
        return PyLong_FromLong(value->number);
    case KIND_OUT_SIZE:
        return PyLong_FromSize_t(value->size);
    case KIND_OUT_UINT64:
        return PyLong_FromUnsignedLongLong(value->wide);
    case KIND_OUT_FLOAT:
        return PyFloat_FromDouble((double)value->single);
    case KIND_OUT_ENUM:
        return core_word(row->extra, value->number);
    case KIND_OUT_POINTER:
        return PyLong_FromVoidPtr(value->pointer);
    case KIND_OUT_TEXT: {
        PyObject *text = text_of(value->pointer, SIZE_MAX / 4);
        free(value->pointer);
        return text;
    }
    default:
        return NULL;
    }
}

static PyObject *results(struct call *call) {
    PyObject *list = PyList_New(0), *owners = list ? owners_of(call) : NULL, *result = NULL;
    const struct parameter *row = call->row->parameters;
    for (int index = 0; owners && row[index].name && !PyErr_Occurred(); ++index) {
        PyObject *each = result_of(call, index, owners);
        if (each) {
            PyList_Append(list, each);
            Py_DECREF(each);
        }
    }
    if (!PyErr_Occurred()) {
        Py_ssize_t count = PyList_Size(list);
        result = count == 0 ? Py_None : count == 1 ? PyList_GetItem(list, 0) : list;
        Py_INCREF(result);
        if (count > 1) {
            PyObject *tuple = PyList_AsTuple(result);
            Py_DECREF(result);
            result = tuple;
        }
    }
    Py_XDECREF(owners);
    Py_XDECREF(list);
    return result;
}

static PyObject *make_call(struct call *call) {
    PyThreadState *state = core_leave_python();
    gpumem_status status = call->row->call(call->values);
    core_enter_python(state);
    if (status != GPUMEM_OK) {
        return core_raise(status);
    }
    for (int place = 0; place < call->buffer_count; ++place) {
        core_refresh(call->buffers[place]);
    }
    return keep_streams(call) < 0 ? NULL : results(call);
}

static PyObject *by_table(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    struct call call = {.row = PyCapsule_GetPointer(self, NULL), .kept = PyList_New(0)};
    PyObject *result = NULL;
    if (call.kept && take_arguments(&call, args, count) == 0 && enter_buffers(&call) == 0) {
        result = make_call(&call);
        leave_buffers(&call);
    }
    leave_objects(&call);
    for (int view = 0; view < call.view_count; ++view) {
        PyBuffer_Release(&call.views[view]);
    }
    Py_XDECREF(call.kept);
    if (core_finish() < 0) {
        Py_CLEAR(result);
    }
    return result;
}

/* Each row is a function of the module, whose self is the row. */
int core_add_calls(PyObject *module) {
    static PyMethodDef *methods;
    size_t count = 0;
    while (core_calls[count].name) {
        ++count;
    }
    if (!methods && !(methods = calloc(count, sizeof *methods))) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t each = 0; each < count; ++each) {
        methods[each] = (PyMethodDef){core_calls[each].name, (PyCFunction)(void (*)(void))by_table,
                                      METH_FASTCALL, NULL};
        PyObject *row = PyCapsule_New((void *)(uintptr_t)&core_calls[each], NULL, NULL);
        PyObject *function = row ? PyCFunction_NewEx(&methods[each], row, NULL) : NULL;
        Py_XDECREF(row);
        if (!function || PyModule_AddObjectRef(module, core_calls[each].name, function) < 0) {
            Py_XDECREF(function);
            return -1;
        }
        Py_DECREF(function);
    }
    return 0;
}
