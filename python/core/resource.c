/*
 * MemoryResource: what all resources share, quick. One that is made by the library has a
 * gpumem_resource; a subclass written in Python has none, and overrides allocate and deallocate.
 *
 * A resource is ended when nothing uses it any more: `uses` counts open buffers, holds, wrappers,
 * calls under way, and one for being open. So a close beside calls of other threads is never
 * under way with them, as gpumem_resource_close_later asks.
 */
#include "core.h"

void core_use_resource(PyObject *self) {
    ++((struct resource *)data_of(self))->uses;
}

void core_leave_resource(PyObject *object) {
    struct resource *self = data_of(object);
    if (--self->uses > 0 || !self->resource) {
        return;
    }
    gpumem_resource *resource = self->resource;
    self->resource = NULL;
    PyThreadState *state = core_leave_python();
    (void)gpumem_resource_close_later(resource);
    core_enter_python(state);
    PyObject *owners = self->owners;
    self->owners = NULL;
    core_leave_owners(owners); /* what it wraps may end now */
    Py_XDECREF(owners);
}

int core_adopt_resource(PyObject *object, gpumem_resource *resource, PyObject *owners) {
    struct resource *self = data_of(object);
    if (self->native) {
        PyThreadState *state = core_leave_python();
        (void)gpumem_resource_close_later(resource);
        core_enter_python(state);
        PyErr_SetString(PyExc_RuntimeError, "the resource has been initialised already");
        return -1;
    }
    gpumem_resource_properties properties = {.size = sizeof properties};
    if (gpumem_resource_get_properties(resource, &properties) == GPUMEM_OK) {
        self->device_accessible = properties.device_accessible;
        self->host_accessible = properties.host_accessible;
        self->stream_ordered = properties.stream_ordered;
    }
    self->resource = resource;
    self->native = true;
    self->library = gpumem_device_library(gpumem_resource_device(resource));
    self->uses = 1;
    Py_XINCREF(owners);
    self->owners = owners;
    core_use_owners(owners);
    return 0;
}

static struct resource *open_resource(PyObject *object) {
    struct resource *self = data_of(object);
    if (!self->native) {
        PyErr_Format(
            PyExc_NotImplementedError,
            "%S overrides neither allocate() and deallocate() nor is it a resource of gpumem",
            Py_TYPE(object));
        return NULL;
    }
    if (self->closed) {
        PyErr_SetString(PyExc_RuntimeError, "the memory resource has been closed");
        return NULL;
    }
    return self;
}

static PyObject *allocate(PyObject *object, size_t bytes, const gpumem_buffer_options *options,
                          PyObject *kept, gpumem_buffer **buffer) {
    const struct resource *self = data_of(object);
    PyThreadState *state = core_leave_python();
    gpumem_status status = gpumem_buffer_allocate(self->resource, bytes, options, buffer);
    core_enter_python(state);
    return status == GPUMEM_OK ? core_new_buffer(core.buffer_type, *buffer, object, NULL, kept)
                               : core_raise(status);
}

/* A cache of device memory hands it out on streams alone: one of the package's is waited for, so
 * that the memory is ready on every stream. */
static PyObject *allocate_without_stream(PyObject *object, size_t bytes,
                                         gpumem_buffer_options *options, gpumem_buffer **buffer) {
    struct resource *self = data_of(object);
    PyObject *stream = PyObject_CallFunction(core.internal_stream, "O", object), *kept;
    if (!stream) {
        return NULL;
    }
    PyObject *result = NULL;
    if (core_stream(stream, self->library, NULL, &options->stream, &kept) == 0 &&
        (result = allocate(object, bytes, options, kept, buffer))) {
        self->needs_stream = true;
        gpumem_device *device = gpumem_buffer_device(*buffer);
        PyThreadState *state = core_leave_python();
        gpumem_status status = gpumem_stream_synchronize(device, options->stream);
        core_enter_python(state);
        if (status != GPUMEM_OK) {
            core_raise(status);
            Py_CLEAR(result);
        }
    }
    Py_DECREF(stream);
    return result;
}

static PyObject *resource_allocate(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                   PyObject *keywords) {
    static const char *const names[] = {"size", "stream", "capacity", "alignment", NULL};
    PyObject *given[4], *kept = NULL;
    size_t bytes = 0;
    gpumem_buffer_options options = {.size = sizeof options};
    if (count == 1 && keywords && PyTuple_Size(keywords) == 1 &&
        PyTuple_GetItem(keywords, 0) == core.stream_word) { /* allocate(size, stream=stream) */
        given[0] = args[0];
        given[1] = args[1];
        given[2] = given[3] = NULL;
    } else if (core_take("allocate", args, count, keywords, names, 2, 1, given) < 0) {
        return NULL;
    }
    struct resource *self = open_resource(object);
    if (!self || core_size(given[0], "size", &bytes) < 0 ||
        core_stream(given[1], self->library, GPUMEM_STREAM_NONE, &options.stream, &kept) < 0 ||
        (given[2] && given[2] != Py_None &&
         core_size(given[2], "capacity", &options.capacity) < 0) ||
        (given[3] && given[3] != Py_None &&
         core_size(given[3], "alignment", &options.alignment) < 0)) {
        return NULL;
    }
    if (bytes == 0) { /* as cuda.core's pools: a Buffer of nothing */
        return core_new_buffer(core.buffer_type, NULL, object, NULL, kept);
    }
    gpumem_buffer *buffer = NULL;
    ++self->uses;
    PyObject *result = options.stream == GPUMEM_STREAM_NONE && self->needs_stream
                           ? NULL
                           : allocate(object, bytes, &options, kept, &buffer);
    if (!result && options.stream == GPUMEM_STREAM_NONE && self->stream_ordered &&
        (self->needs_stream || PyErr_ExceptionMatches(PyExc_ValueError))) {
        PyErr_Clear();
        result = allocate_without_stream(object, bytes, &options, &buffer);
    }
    core_leave_resource(object);
    if (core_finish() < 0) {
        Py_CLEAR(result);
    }
    return result;
}

static struct buffer *open_buffer_at(struct resource *self, CUdeviceptr pointer) {
    struct buffer *each = self->newest;
    while (each && (each->pointer != pointer || each->closed || !each->buffer)) {
        each = each->older;
    }
    return each;
}

static PyObject *resource_deallocate(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                     PyObject *keywords) {
    static const char *const names[] = {"ptr", "size", "stream", NULL};
    PyObject *given[3], *kept;
    unsigned long long pointer = 0;
    size_t bytes = 0;
    CUstream stream = NULL;
    struct resource *self = data_of(object);
    if (core_take("deallocate", args, count, keywords, names, 3, 2, given) < 0 ||
        core_wide(given[0], "ptr", &pointer) < 0 || core_size(given[1], "size", &bytes) < 0 ||
        core_stream(given[2], self->library, NULL, &stream, &kept) < 0) {
        return NULL;
    }
    if (!self->native) {
        return open_resource(object), NULL;
    }
    struct buffer *found = open_buffer_at(self, pointer);
    if (!found) {
        return PyErr_Format(PyExc_ValueError, "ptr: no open Buffer of this resource is at %p",
                            (void *)(uintptr_t)pointer);
    }
    if (bytes != found->size && bytes != 0) {
        return PyErr_Format(PyExc_ValueError, "size is %zu; the Buffer at ptr has %zu bytes", bytes,
                            found->size);
    }
    return PyObject_CallMethod(object_of(found), "close", "O", given[2] ? given[2] : Py_None);
}

/* No allocation any more; the memory of buffers stays with them. */
static PyObject *resource_close(PyObject *object, PyObject *unused) {
    (void)unused;
    struct resource *self = data_of(object);
    if (self->native && !self->closed) {
        self->closed = true;
        core_leave_resource(object);
        if (core_finish() < 0) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

#define FLAG(name)                                                                                 \
    static PyObject *resource_##name(PyObject *object, void *unused) {                             \
        (void)unused;                                                                              \
        const struct resource *self = data_of(object);                                             \
        return PyBool_FromLong(self->name);                                                        \
    }
FLAG(device_accessible)
FLAG(host_accessible)
FLAG(stream_ordered)
FLAG(closed)

static PyObject *resource_record_places(PyObject *object, PyObject *unused) {
    (void)unused;
    ((struct resource *)data_of(object))->records_places = true;
    Py_RETURN_NONE;
}

/* _hand_out(type): what its buffers are, a subclass of Buffer. */
static PyObject *resource_hand_out(PyObject *object, PyObject *type) {
    struct resource *self = data_of(object);
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, core.buffer_type)) {
        return PyErr_Format(PyExc_TypeError, "%R is no subclass of Buffer", type);
    }
    core_set(&self->buffer_class, type);
    Py_RETURN_NONE;
}

static PyObject *resource_buffers(PyObject *object, void *unused) {
    (void)unused;
    const struct resource *self = data_of(object);
    PyObject *list = PyList_New(0);
    for (struct buffer *each = self->newest; list && each; each = each->older) {
        if (PyList_Append(list, object_of(each)) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static int traverse(PyObject *object, visitproc visit, void *arg) {
    const struct resource *self = data_of(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->owners);
    Py_VISIT(self->buffer_class);
    return 0;
}

static int clear(PyObject *object) {
    struct resource *self = data_of(object);
    if (self->native && !self->closed) {
        self->closed = true;
        core_leave_resource(object);
    }
    if (!self->resource) {
        Py_CLEAR(self->owners);
    }
    return 0;
}

static void dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    struct resource *self = data_of(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) {
        PyObject_ClearWeakRefs(object);
    }
    clear(object);
    Py_CLEAR(self->owners);
    Py_CLEAR(self->buffer_class);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"allocate", (PyCFunction)(void (*)(void))resource_allocate, METH_FASTCALL | METH_KEYWORDS,
     NULL},
    {"deallocate", (PyCFunction)(void (*)(void))resource_deallocate, METH_FASTCALL | METH_KEYWORDS,
     NULL},
    {"close", resource_close, METH_NOARGS, NULL},
    {"_record_places", resource_record_places, METH_NOARGS, NULL},
    {"_hand_out", resource_hand_out, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getters[] = {
    {"is_device_accessible", resource_device_accessible, NULL, NULL, NULL},
    {"is_host_accessible", resource_host_accessible, NULL, NULL, NULL},
    {"is_stream_ordered", resource_stream_ordered, NULL, NULL, NULL},
    {"is_closed", resource_closed, NULL, NULL, NULL},
    {"_buffers", resource_buffers, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, DATA_OFFSET(struct resource, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},       {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},           {Py_tp_methods, methods},
    {Py_tp_getset, getters},        {Py_tp_members, members},
    {Py_tp_new, PyType_GenericNew}, {0, NULL},
};
PyType_Spec core_resource_spec = {"gpumem.MemoryResource", BASIC_SIZE(struct resource), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                                  slots};
