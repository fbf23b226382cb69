/*
 * Objects of the library that Python code keeps by handle: libraries, devices, and what is made
 * by hand. gpumem._core.Object ends what it holds, after the calls that are under way.
 */
#include "core.h"

const char *const core_object_names[OBJECT_COUNT] = {
    [OBJECT_library] = "library",
    [OBJECT_device] = "device",
    [OBJECT_capture_pool] = "capture_pool",
    [OBJECT_watch] = "watch",
    [OBJECT_export] = "export",
    [OBJECT_reservation] = "reservation",
    [OBJECT_physical] = "physical memory",
    [OBJECT_mapping] = "mapping",
};

/* `later`: never refuses, as a finalizer needs it. */
static gpumem_status end(size_t kind, void *pointer, CUstream last, bool later) {
    switch (kind) {
    case OBJECT_library:
        return later ? gpumem_close_later(pointer) : gpumem_close(pointer);
    case OBJECT_device:
        if (core.finalizing) { /* no later call comes that would end what queued work holds back */
            (void)gpumem_device_trim(pointer, true);
        }
        return later ? gpumem_device_close_later(pointer) : gpumem_device_close(pointer);
    case OBJECT_capture_pool:
        return gpumem_capture_pool_destroy(pointer, last);
    case OBJECT_watch:
        return gpumem_watch_destroy(pointer);
    case OBJECT_export:
        return gpumem_export_destroy(pointer);
    case OBJECT_reservation:
        return gpumem_reservation_destroy(pointer);
    case OBJECT_physical:
        return gpumem_physical_destroy(pointer);
    case OBJECT_mapping:
        return gpumem_mapping_destroy(pointer);
    default:
        return GPUMEM_ERROR_INVALID_ARGUMENT;
    }
}

PyObject *core_new_object(size_t kind, void *pointer, PyObject *owners) {
    PyObject *self = PyType_GenericAlloc(core.object_type, 0);
    if (!self) {
        (void)end(kind, pointer, GPUMEM_STREAM_NONE, true);
        return NULL;
    }
    struct object *data = data_of(self);
    data->pointer = pointer;
    data->kind = kind;
    Py_XINCREF(owners);
    data->owners = owners;
    core_use_owners(owners);
    return self;
}

void core_use_owners(PyObject *owners) {
    Py_ssize_t count = owners ? PyTuple_Size(owners) : 0;
    for (Py_ssize_t each = 0; each < count; ++each) {
        PyObject *owner = PyTuple_GetItem(owners, each);
        if (PyObject_TypeCheck(owner, core.object_type)) {
            ++((struct object *)data_of(owner))->uses;
        } else if (PyObject_TypeCheck(owner, core.resource_type)) {
            core_use_resource(owner);
        }
    }
}

void core_leave_owners(PyObject *owners) {
    Py_ssize_t count = owners ? PyTuple_Size(owners) : 0;
    for (Py_ssize_t each = 0; each < count; ++each) {
        PyObject *owner = PyTuple_GetItem(owners, each);
        if (PyObject_TypeCheck(owner, core.object_type)) {
            core_leave_object(data_of(owner));
        } else if (PyObject_TypeCheck(owner, core.resource_type)) {
            core_leave_resource(owner);
        }
    }
}

static void drop_owners(struct object *self) {
    PyObject *owners = self->owners;
    self->owners = NULL;
    core_leave_owners(owners);
    Py_XDECREF(owners);
}

static gpumem_status end_without_python(struct object *self, CUstream last, bool later) {
    void *pointer = self->pointer;
    self->pointer = NULL;
    PyThreadState *state = core_leave_python();
    gpumem_status status = end(self->kind, pointer, last, later);
    core_enter_python(state);
    if (status != GPUMEM_OK && !later) {
        self->pointer = pointer;
    }
    return status;
}

void core_leave_object(struct object *self) {
    if (--self->uses == 0 && self->closing && self->pointer) {
        (void)end_without_python(self, GPUMEM_STREAM_NONE, true);
        drop_owners(self);
    }
}

static PyObject *object_close(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    struct object *self = data_of(object);
    CUstream last = GPUMEM_STREAM_NONE;
    PyObject *kept;
    if (count > 1 || (count == 1 && core_stream(args[0], NULL, last, &last, &kept) < 0)) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "close() takes a stream");
    }
    if (self->uses) {
        self->closing = true;
    } else if (self->pointer) {
        gpumem_status status = end_without_python(self, last, false);
        if (status != GPUMEM_OK) {
            return core_raise(status);
        }
        drop_owners(self);
        if (core_finish() < 0) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

/* As finalizers end it: never refuses. */
static PyObject *object_close_later(PyObject *object, PyObject *unused) {
    (void)unused;
    struct object *self = data_of(object);
    if (self->uses) {
        self->closing = true;
    } else if (self->pointer) {
        (void)end_without_python(self, GPUMEM_STREAM_NONE, true);
        drop_owners(self);
    }
    Py_RETURN_NONE;
}

static PyObject *object_is_closed(PyObject *object, void *unused) {
    (void)unused;
    const struct object *self = data_of(object);
    return PyBool_FromLong(!self->pointer || self->closing);
}

static PyObject *object_kind(PyObject *object, void *unused) {
    (void)unused;
    const struct object *self = data_of(object);
    return PyUnicode_FromString(core_object_names[self->kind]);
}

static int traverse(PyObject *object, visitproc visit, void *arg) {
    const struct object *self = data_of(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->owners);
    return 0;
}

static int clear(PyObject *object) {
    struct object *self = data_of(object);
    if (self->pointer) {
        (void)end_without_python(self, GPUMEM_STREAM_NONE, true);
    }
    drop_owners(self);
    return 0;
}

static void dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    struct object *self = data_of(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) {
        PyObject_ClearWeakRefs(object);
    }
    clear(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"close", (PyCFunction)(void (*)(void))object_close, METH_FASTCALL, NULL},
    {"close_later", object_close_later, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getters[] = {
    {"is_closed", object_is_closed, NULL, NULL, NULL},
    {"kind", object_kind, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, DATA_OFFSET(struct object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec core_object_spec = {
    "gpumem._core.Object", BASIC_SIZE(struct object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
