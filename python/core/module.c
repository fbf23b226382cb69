/* The module gpumem._core: its types and functions, what Python gives it at import, and its end. */
#include "core.h"
#include "docs.h"

#include <string.h>

struct core core;

/* setup(make_error, log, adopt, without_stream, internal_stream): what the extension calls in
 * Python. */
static PyObject *setup(PyObject *module, PyObject *args) {
    (void)module;
    PyObject **places[] = {&core.make_error, &core.log, &core.adopt, &core.without_stream,
                           &core.internal_stream};
    enum { COUNT = sizeof places / sizeof *places };
    if (PyTuple_Size(args) != COUNT) {
        return PyErr_Format(PyExc_TypeError, "setup() takes %d functions", COUNT);
    }
    for (int each = 0; each < COUNT; ++each) {
        *places[each] = PyTuple_GetItem(args, each);
        Py_INCREF(*places[each]);
    }
    Py_RETURN_NONE;
}

/* The interpreter ends: no callback from now on, and what the library still says goes to standard
 * error. */
static PyObject *at_exit(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    core_pass_lines_on();
    gpumem_set_log(NULL, NULL, GPUMEM_LOG_DEFAULT);
    core.finalizing = true;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"setup", setup, METH_VARARGS, NULL},
    {"at_exit", at_exit, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* The text of a member of a type; NULL: it has none. */
static const char *doc_of(const char *type, const char *member) {
    size_t length = strlen(type);
    for (const struct core_doc *row = core_docs; row->name; ++row) {
        if (strncmp(row->name, type, length) == 0 && row->name[length] == '.' &&
            strcmp(row->name + length + 1, member) == 0) {
            return row->text;
        }
    }
    return NULL;
}

static void add_docs(PyType_Spec *spec, const char *name) {
    for (PyType_Slot *slot = spec->slots; slot->slot; ++slot) {
        PyMethodDef *method = slot->slot == Py_tp_methods ? slot->pfunc : NULL;
        for (; method && method->ml_name; ++method) {
            method->ml_doc = doc_of(name, method->ml_name);
        }
        PyGetSetDef *getter = slot->slot == Py_tp_getset ? slot->pfunc : NULL;
        for (; getter && getter->name; ++getter) {
            getter->doc = doc_of(name, getter->name);
        }
    }
}

static int add_type(PyObject *module, PyType_Spec *spec, const char *name, PyTypeObject **to) {
    add_docs(spec, name);
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (!type) {
        return -1;
    }
    for (const struct core_doc *row = core_docs; row->name; ++row) {
        PyObject *text = strcmp(row->name, name) == 0 ? PyUnicode_FromString(row->text) : NULL;
        if (text && PyObject_SetAttrString(type, "__doc__", text) < 0) {
            PyErr_Clear(); /* a text less */
        }
        Py_XDECREF(text);
    }
    *to = (PyTypeObject *)type; /* the reference is the state's */
    return PyModule_AddObjectRef(module, name, type);
}

static int read_flags(void) {
    PyObject *flags = PySys_GetObject("flags"); /* borrowed */
    PyObject *development = flags ? PyObject_GetAttrString(flags, "dev_mode") : NULL;
    if (!development) {
        return -1;
    }
    core.development = PyObject_IsTrue(development) > 0;
    Py_DECREF(development);
    return 0;
}

static int begin(PyObject *module) {
    if (core.module) {
        PyErr_SetString(PyExc_ImportError,
                        "gpumem can be imported by one interpreter of a process");
        return -1;
    }
    core.module = module;
    core.stream_word = PyUnicode_InternFromString("stream");
    bool failed =
        add_type(module, &core_object_spec, "Object", &core.object_type) < 0 ||
        add_type(module, &core_buffer_spec, "Buffer", &core.buffer_type) < 0 ||
        add_type(module, &core_resource_spec, "MemoryResource", &core.resource_type) < 0 ||
        add_type(module, &core_stream_spec, "Stream", &core.stream_type) < 0 ||
        add_type(module, &core_event_spec, "Event", &core.event_type) < 0 ||
        core_add_calls(module) < 0 || core_add_stream_calls(module) < 0 ||
        core_add_driver_calls(module) < 0 || core_add_callbacks(module) < 0 ||
        core_add_batches(module) < 0 || read_flags() < 0 || core_start_threads() < 0;
    return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, begin},
    {0, NULL},
};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "gpumem._core", NULL, 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__core(void) {
    return PyModuleDef_Init(&definition);
}
