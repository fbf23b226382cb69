/* A failure of the library as a Python exception. gpumem.errors has the classes and the text. */
#include "core.h"

#include <stdarg.h>

static PyObject *raise_with(int status, const gpumem_error *error, const char *message) {
    if (!core.make_error) {
        return PyErr_Format(PyExc_RuntimeError, "%s", message);
    }
    PyObject *made =
        PyObject_CallFunction(core.make_error, "iiiiss", status, error ? error->driver_code : 0,
                              error ? error->vulkan_code : 0, error ? error->system_code : 0,
                              error ? error->call : "", message);
    if (made) {
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
        Py_DECREF(made);
    }
    return NULL;
}

PyObject *core_raise(gpumem_status status) {
    const gpumem_error *error = gpumem_last_error();
    /* Its texts live until the thread's next failure, which Python's code may cause. */
    return raise_with((int)status, error, error->message);
}

PyObject *core_refuse(gpumem_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    PyObject *text = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    const char *message = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (message) {
        raise_with((int)status, NULL, message);
    }
    Py_XDECREF(text);
    return NULL;
}
