/*
 * Callbacks of Python that the library calls: watches, and what is asked when memory runs out.
 * Both are called without a lock of the library's, in whichever thread; they take the GIL, and
 * none runs once the interpreter is ending. What one raises is raised by the call that it is a
 * part of (threads.c).
 */
#include "core.h"

/* Calls `function` with `argument`, which is taken over. NULL: it raised, which is kept. */
static PyObject *call_python(PyObject *function, PyObject *argument) {
    PyObject *result = argument ? PyObject_CallFunctionObjArgs(function, argument, NULL) : NULL;
    Py_XDECREF(argument);
    if (!result) {
        core_callback_failed(function);
    }
    return result;
}

/* ---- Watches --------------------------------------------------------------------------------- */

static void on_watch(void *user, const gpumem_watch_event *event) {
    if (!core_may_call_back()) {
        return;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *reason = core_word(CHOICES_watch_reason, (int)event->reason);
    unsigned long long stream = (unsigned long long)(uintptr_t)event->stream;
    PyObject *told = reason ? Py_BuildValue("NKKK", reason, event->base,
                                            (unsigned long long)event->bytes, stream)
                            : NULL;
    Py_XDECREF(call_python(user, told));
    PyGILState_Release(state);
}

/* watch_create(of, function): an Object that ends the watch; `function` gets (reason, base, bytes,
 * stream). */
static PyObject *watch_create(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *of, *function;
    if (!PyArg_ParseTuple(args, "OO", &of, &function)) {
        return NULL;
    }
    bool buffer = PyObject_TypeCheck(of, core.buffer_type);
    const struct resource *resource = buffer ? NULL : data_of(of);
    if (!PyCallable_Check(function) || (!buffer && !PyObject_TypeCheck(of, core.resource_type))) {
        return PyErr_Format(PyExc_TypeError, "callback must be callable, not %S",
                            Py_TYPE(function));
    }
    if (!buffer && !resource->resource) {
        return PyErr_Format(PyExc_RuntimeError, "the memory resource has been closed");
    }
    if (buffer && core_enter_buffer(of) < 0) {
        return NULL;
    }
    gpumem_watch *watch = NULL;
    PyThreadState *state = core_leave_python();
    gpumem_status status =
        buffer ? gpumem_buffer_watch(core_root(data_of(of))->buffer, on_watch, function, &watch)
               : gpumem_resource_watch(resource->resource, on_watch, function, &watch);
    core_enter_python(state);
    PyObject *result = NULL;
    if (status == GPUMEM_OK) {
        PyObject *owners = Py_BuildValue("(O)", function);
        result = owners ? core_new_object(OBJECT_watch, watch, owners) : NULL;
        Py_XDECREF(owners);
    } else {
        core_raise(status);
    }
    if (buffer) {
        core_leave_buffer(of);
    }
    return core_finish() < 0 ? (Py_XDECREF(result), NULL) : result;
}

/* ---- When memory runs out -------------------------------------------------------------------- */

static gpumem_failure_answer on_failure(void *user, const gpumem_allocation_failure *failure) {
    if (!core_may_call_back()) {
        return GPUMEM_FAILURE_GIVE_UP;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *told = Py_BuildValue("nisI", (Py_ssize_t)failure->bytes, (int)failure->status,
                                   failure->message, failure->attempt);
    PyObject *answer = call_python(user, told);
    int again = answer ? PyObject_IsTrue(answer) : 0;
    if (again < 0) {
        core_callback_failed(user);
    }
    Py_XDECREF(answer);
    PyGILState_Release(state);
    return again > 0 ? GPUMEM_FAILURE_RETRY : GPUMEM_FAILURE_GIVE_UP;
}

/* failure_callback_create(upstream, function, retries, self): `function` gets (bytes, status,
 * message, attempt). */
static PyObject *failure_callback_create(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *upstream, *function, *self;
    gpumem_failure_callback_options options = {.size = sizeof options, .fn = on_failure};
    if (!PyArg_ParseTuple(args, "O!OIO!", core.resource_type, &upstream, &function,
                          &options.maximum_retries, core.resource_type, &self)) {
        return NULL;
    }
    if (!PyCallable_Check(function)) {
        return PyErr_Format(PyExc_TypeError, "callback must be callable, not %S",
                            Py_TYPE(function));
    }
    struct resource *below = data_of(upstream);
    if (!below->resource || below->closed) {
        return PyErr_Format(PyExc_TypeError,
                            "upstream must be an open resource of gpumem's, not %S",
                            Py_TYPE(upstream));
    }
    options.user = function;
    gpumem_resource *resource = NULL;
    core_use_resource(upstream);
    PyThreadState *state = core_leave_python();
    gpumem_status status =
        gpumem_failure_callback_resource_create(below->resource, &options, &resource);
    core_enter_python(state);
    bool done = false;
    if (status != GPUMEM_OK) {
        core_raise(status);
    } else {
        PyObject *owners = Py_BuildValue("(OO)", upstream, function);
        done = owners && core_adopt_resource(self, resource, owners) == 0;
        Py_XDECREF(owners);
    }
    core_leave_resource(upstream);
    if (core_finish() < 0 || !done) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ---- Live allocations ------------------------------------------------------------------------ */

static int on_tracked(void *user, const gpumem_tracked *tracked) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *row = Py_BuildValue(
        "KKKKKK", (unsigned long long)tracked->number, tracked->pointer,
        (unsigned long long)tracked->bytes, (unsigned long long)tracked->committed_bytes,
        (unsigned long long)tracked->thread, (unsigned long long)tracked->age_ns);
    int failed = !row || PyList_Append(user, row) < 0;
    if (failed) {
        core_callback_failed(NULL);
    }
    Py_XDECREF(row);
    PyGILState_Release(state);
    return failed;
}

/* tracking_visit(resource): (number, pointer, bytes, committed, thread, age) of each, oldest
 * first. */
static PyObject *tracking_visit(PyObject *module, PyObject *resource) {
    (void)module;
    if (!PyObject_TypeCheck(resource, core.resource_type) ||
        !((struct resource *)data_of(resource))->resource) {
        return PyErr_Format(PyExc_TypeError, "an open resource is needed, not %S",
                            Py_TYPE(resource));
    }
    PyObject *list = PyList_New(0);
    if (!list) {
        return NULL;
    }
    core_use_resource(resource);
    PyThreadState *state = core_leave_python();
    gpumem_status status =
        gpumem_tracking_visit(((struct resource *)data_of(resource))->resource, on_tracked, list);
    core_enter_python(state);
    if (status != GPUMEM_OK) {
        core_raise(status);
        Py_CLEAR(list);
    }
    core_leave_resource(resource);
    if (core_finish() < 0) {
        Py_CLEAR(list);
    }
    return list;
}

/* logging_create(upstream, logger, name, self): `logger` is a number of gpumem._log's. */
static PyObject *logging_create(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *upstream, *self;
    unsigned logger = 0;
    gpumem_logging_options options = {.size = sizeof options, .fn = core_log_line};
    if (!PyArg_ParseTuple(args, "O!IzO!", core.resource_type, &upstream, &logger, &options.name,
                          core.resource_type, &self)) {
        return NULL;
    }
    const struct resource *below = data_of(upstream);
    if (!below->resource || below->closed) {
        return PyErr_Format(PyExc_TypeError,
                            "upstream must be an open resource of gpumem's, not %S",
                            Py_TYPE(upstream));
    }
    options.user = (void *)(uintptr_t)logger;
    gpumem_resource *resource = NULL;
    gpumem_status status = gpumem_logging_resource_create(below->resource, &options, &resource);
    if (status != GPUMEM_OK) {
        return core_raise(status);
    }
    PyObject *owners = Py_BuildValue("(O)", upstream);
    bool done = owners && core_adopt_resource(self, resource, owners) == 0;
    Py_XDECREF(owners);
    if (!done) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"logging_create", logging_create, METH_VARARGS, NULL},
    {"watch_create", watch_create, METH_VARARGS, NULL},
    {"failure_callback_create", failure_callback_create, METH_VARARGS, NULL},
    {"tracking_visit", tracking_visit, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int core_add_callbacks(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
