/* Stream and Event: handles with an owner. What they do is in gpumem/_stream.py. */
#include "core.h"

void core_use_stream(PyObject *stream) {
    if (PyObject_TypeCheck(stream, core.stream_type)) {
        ++((struct stream *)data_of(stream))->uses;
    }
}

static void drop_owners(PyObject **at) {
    PyObject *owners = *at;
    *at = NULL;
    core_leave_owners(owners);
    Py_XDECREF(owners);
}

/* `device`, an Object, stays open for it. */
static int own_device(PyObject *device, PyObject **owners) {
    *owners = Py_BuildValue("(O)", device);
    core_use_owners(*owners);
    return *owners ? 0 : -1;
}

static void end_stream(struct stream *self) {
    if (self->owned && self->stream) {
        CUstream stream = self->stream;
        self->stream = NULL;
        PyThreadState *state = core_leave_python();
        (void)gpumem_stream_destroy(self->device_c, stream);
        core_enter_python(state);
    }
    drop_owners(&self->owners);
    Py_CLEAR(self->device);
}

void core_leave_stream(PyObject *object) {
    if (PyObject_TypeCheck(object, core.stream_type)) {
        struct stream *self = data_of(object);
        if (--self->uses == 0 && self->closed) {
            end_stream(self);
        }
    }
}

/* The device of the C interface that `device`, an Object, holds. */
static gpumem_device *device_in(PyObject *device) {
    if (PyObject_TypeCheck(device, core.object_type)) {
        const struct object *data = data_of(device);
        if (data->kind == OBJECT_device && data->pointer) {
            return data->pointer;
        }
    }
    PyErr_SetString(PyExc_TypeError, "device must be an open device");
    return NULL;
}

/* stream_create(type, device, holder, blocking, priority): `holder` is kept, the Device. */
static PyObject *stream_create(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *type, *device, *holder;
    gpumem_stream_options options = {.size = sizeof options};
    int blocking = 0;
    if (!PyArg_ParseTuple(args, "OOOpi", &type, &device, &holder, &blocking, &options.priority)) {
        return NULL;
    }
    gpumem_device *device_c = device_in(device);
    PyObject *self = device_c ? PyType_GenericAlloc((PyTypeObject *)type, 0) : NULL;
    if (!self) {
        return NULL;
    }
    struct stream *data = data_of(self);
    options.blocking = blocking;
    PyThreadState *state = core_leave_python();
    gpumem_status status = gpumem_stream_create(device_c, &options, &data->stream);
    core_enter_python(state);
    if (status != GPUMEM_OK) {
        data->stream = NULL;
        core_raise(status);
        Py_DECREF(self);
        return NULL;
    }
    data->owned = true;
    data->device_c = device_c;
    data->library = gpumem_device_library(device_c);
    Py_INCREF(holder);
    data->device = holder;
    if (own_device(device, &data->owners) < 0) {
        Py_CLEAR(self);
    }
    return self;
}

/* stream_from_handle(type, handle, holder): not owned; `holder` is kept, or None. */
static PyObject *stream_from_handle(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *type, *handle, *holder;
    if (!PyArg_ParseTuple(args, "OOO", &type, &handle, &holder)) {
        return NULL;
    }
    unsigned long long value = 0;
    if (core_wide(handle, "handle", &value) < 0) {
        return NULL;
    }
    PyObject *self = PyType_GenericAlloc((PyTypeObject *)type, 0);
    if (self) {
        struct stream *data = data_of(self);
        data->stream = (CUstream)(uintptr_t)value;
        Py_INCREF(holder);
        data->device = holder;
    }
    return self;
}

static PyObject *stream_handle(PyObject *object, void *unused) {
    (void)unused;
    const struct stream *self = data_of(object);
    return PyLong_FromUnsignedLongLong(self->closed ? 0
                                                    : (unsigned long long)(uintptr_t)self->stream);
}

static PyObject *stream_is_closed(PyObject *object, void *unused) {
    (void)unused;
    const struct stream *self = data_of(object);
    return PyBool_FromLong(self->closed);
}

static PyObject *stream_holder(PyObject *object, void *unused) {
    (void)unused;
    const struct stream *self = data_of(object);
    PyObject *device = self->device ? self->device : Py_None;
    Py_INCREF(device);
    return device;
}

static PyObject *stream_close(PyObject *object, PyObject *unused) {
    (void)unused;
    struct stream *self = data_of(object);
    if (!self->closed && self->owned) {
        self->closed = true;
        if (self->uses == 0) {
            end_stream(self);
            if (core_finish() < 0) {
                return NULL;
            }
        }
    } else if ((uintptr_t)self->stream > 2 && self->stream != GPUMEM_STREAM_NONE) {
        self->closed = true; /* of others: only forgotten */
    }
    Py_RETURN_NONE;
}

static PyObject *stream_protocol(PyObject *object, PyObject *unused) {
    (void)unused;
    const struct stream *self = data_of(object);
    if (self->closed || self->stream == GPUMEM_STREAM_NONE) {
        PyErr_SetString(PyExc_RuntimeError, self->closed ? "the stream has been closed"
                                                         : "NO_STREAM has no handle of CUDA's");
        return NULL;
    }
    return Py_BuildValue("iK", 0, (unsigned long long)(uintptr_t)self->stream);
}

static int stream_traverse(PyObject *object, visitproc visit, void *arg) {
    const struct stream *self = data_of(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->device);
    return 0;
}

static int stream_clear(PyObject *object) {
    struct stream *self = data_of(object);
    if (self->uses == 0) {
        self->closed = true;
        end_stream(self);
    }
    return 0;
}

static void free_object(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static void stream_dealloc(PyObject *object) {
    struct stream *self = data_of(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) {
        PyObject_ClearWeakRefs(object);
    }
    end_stream(self);
    free_object(object);
}

static PyMethodDef stream_methods[] = {
    {"close", stream_close, METH_NOARGS, NULL},
    {"__cuda_stream__", stream_protocol, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef stream_getters[] = {
    {"handle", stream_handle, NULL, NULL, NULL},
    {"is_closed", stream_is_closed, NULL, NULL, NULL},
    {"_holder", stream_holder, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef stream_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, DATA_OFFSET(struct stream, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot stream_slots[] = {
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_traverse, stream_traverse},
    {Py_tp_clear, stream_clear},
    {Py_tp_methods, stream_methods},
    {Py_tp_getset, stream_getters},
    {Py_tp_members, stream_members},
    {0, NULL},
};
PyType_Spec core_stream_spec = {"gpumem.Stream", BASIC_SIZE(struct stream), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                stream_slots};

/* ---- Events ---------------------------------------------------------------------------------- */

/* event_create(type, device, holder, timing, blocking, ipc) */
static PyObject *event_create(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *type, *device, *holder;
    int timing = 0, blocking = 0, ipc = 0;
    if (!PyArg_ParseTuple(args, "OOOppp", &type, &device, &holder, &timing, &blocking, &ipc)) {
        return NULL;
    }
    gpumem_device *device_c = device_in(device);
    PyObject *self = device_c ? PyType_GenericAlloc((PyTypeObject *)type, 0) : NULL;
    if (!self) {
        return NULL;
    }
    struct event *data = data_of(self);
    gpumem_event_options options = {
        .size = sizeof options, .timing = timing, .blocking_wait = blocking, .interprocess = ipc};
    PyThreadState *state = core_leave_python();
    gpumem_status status = gpumem_event_create(device_c, &options, &data->event);
    core_enter_python(state);
    if (status != GPUMEM_OK) {
        data->event = NULL;
        core_raise(status);
        Py_DECREF(self);
        return NULL;
    }
    data->owned = true;
    data->device_c = device_c;
    Py_INCREF(holder);
    data->device = holder;
    data->options = Py_BuildValue("OOO", timing ? Py_True : Py_False, blocking ? Py_True : Py_False,
                                  ipc ? Py_True : Py_False);
    if (own_device(device, &data->owners) < 0 || !data->options) {
        Py_CLEAR(self);
    }
    return self;
}

/* event_from_handle(type, device, holder, handle): an imported event, owned from now on. */
static PyObject *event_from_handle(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *type, *device, *holder;
    unsigned long long handle = 0;
    if (!PyArg_ParseTuple(args, "OOOK", &type, &device, &holder, &handle)) {
        return NULL;
    }
    gpumem_device *device_c = device_in(device);
    PyObject *self = device_c ? PyType_GenericAlloc((PyTypeObject *)type, 0) : NULL;
    if (self) {
        struct event *data = data_of(self);
        *data = (struct event){.event = (CUevent)(uintptr_t)handle,
                               .device = holder,
                               .device_c = device_c,
                               .owned = true};
        Py_INCREF(holder);
        data->options = Py_BuildValue("OOO", Py_False, Py_False, Py_True);
        if (own_device(device, &data->owners) < 0 || !data->options) {
            Py_CLEAR(self);
        }
    }
    return self;
}

static void end_event(struct event *self) {
    if (self->owned && self->event) {
        CUevent event = self->event;
        self->event = NULL;
        PyThreadState *state = core_leave_python();
        (void)gpumem_event_destroy(self->device_c, event);
        core_enter_python(state);
    }
    drop_owners(&self->owners);
    Py_CLEAR(self->device);
}

static PyObject *event_handle(PyObject *object, void *unused) {
    (void)unused;
    const struct event *self = data_of(object);
    return PyLong_FromUnsignedLongLong(self->closed ? 0
                                                    : (unsigned long long)(uintptr_t)self->event);
}

static PyObject *event_is_closed(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(((const struct event *)data_of(object))->closed);
}

static PyObject *event_holder(PyObject *object, void *unused) {
    (void)unused;
    const struct event *self = data_of(object);
    PyObject *device = self->device ? self->device : Py_None;
    Py_INCREF(device);
    return device;
}

static PyObject *event_options(PyObject *object, void *unused) {
    (void)unused;
    const struct event *self = data_of(object);
    PyObject *options = self->options ? self->options : Py_None;
    Py_INCREF(options);
    return options;
}

static PyObject *event_close(PyObject *object, PyObject *unused) {
    (void)unused;
    struct event *self = data_of(object);
    self->closed = true;
    end_event(self);
    return core_finish() < 0 ? NULL : (Py_INCREF(Py_None), Py_None);
}

static int event_traverse(PyObject *object, visitproc visit, void *arg) {
    const struct event *self = data_of(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->device);
    return 0;
}

static int event_clear(PyObject *object) {
    struct event *self = data_of(object);
    self->closed = true;
    end_event(self);
    return 0;
}

static void event_dealloc(PyObject *object) {
    struct event *self = data_of(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) {
        PyObject_ClearWeakRefs(object);
    }
    end_event(self);
    Py_CLEAR(self->options);
    free_object(object);
}

static PyMethodDef event_methods[] = {
    {"close", event_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef event_getters[] = {
    {"handle", event_handle, NULL, NULL, NULL},
    {"is_closed", event_is_closed, NULL, NULL, NULL},
    {"_holder", event_holder, NULL, NULL, NULL},
    {"_options", event_options, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef event_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, DATA_OFFSET(struct event, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot event_slots[] = {
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_traverse, event_traverse},
    {Py_tp_clear, event_clear},
    {Py_tp_methods, event_methods},
    {Py_tp_getset, event_getters},
    {Py_tp_members, event_members},
    {0, NULL},
};
PyType_Spec core_event_spec = {"gpumem.Event", BASIC_SIZE(struct event), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                                   Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               event_slots};

static PyMethodDef functions[] = {
    {"stream_create", stream_create, METH_VARARGS, NULL},
    {"stream_from_handle", stream_from_handle, METH_VARARGS, NULL},
    {"event_create", event_create, METH_VARARGS, NULL},
    {"event_from_handle", event_from_handle, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int core_add_stream_calls(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
