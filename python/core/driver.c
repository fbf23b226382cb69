/*
 * What the C interface has no call for, asked of the driver by its table (gpumem/driver.h): the
 * current device, what a stream is, names of errors. And plain getters of devices.
 */
#include "core.h"

#include <dlfcn.h>

static const struct object *object_in(PyObject *from, size_t kind) {
    if (PyObject_TypeCheck(from, core.object_type)) {
        const struct object *data = data_of(from);
        if (data->kind == kind && data->pointer && !data->closing) {
            return data;
        }
    }
    PyErr_Format(PyExc_TypeError, "an open %s is needed, not %S", core_object_names[kind],
                 Py_TYPE(from));
    return NULL;
}

static const gpumem_driver_api *api_of(gpumem_library *library) {
    return gpumem_driver_table(gpumem_library_driver(library));
}

/* The name of the driver's error, or "". Any opened driver knows them all. */
static PyObject *error_name(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *library;
    int code = 0;
    if (!PyArg_ParseTuple(args, "Oi", &library, &code)) {
        return NULL;
    }
    const struct object *data = object_in(library, OBJECT_library);
    if (!data) {
        return NULL;
    }
    const char *name = NULL;
    if (api_of(data->pointer)->cuGetErrorName((CUresult)code, &name) != CUDA_SUCCESS || !name) {
        name = "";
    }
    return PyUnicode_FromString(name);
}

/* The ordinal of the current context's device, or -1. */
static PyObject *current_device(PyObject *module, PyObject *library) {
    (void)module;
    const struct object *data = object_in(library, OBJECT_library);
    if (!data) {
        return NULL;
    }
    CUdevice device = -1;
    if (api_of(data->pointer)->cuCtxGetDevice(&device) != CUDA_SUCCESS) {
        device = -1;
    }
    return PyLong_FromLong(device);
}

/* Makes the device's primary context current; None: none. */
static PyObject *set_current(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *device;
    if (!PyArg_ParseTuple(args, "O", &device)) {
        return NULL;
    }
    const struct object *data = object_in(device, OBJECT_device);
    if (!data) {
        return NULL;
    }
    gpumem_device *device_c = data->pointer;
    CUresult result =
        api_of(gpumem_device_library(device_c))->cuCtxSetCurrent(gpumem_device_context(device_c));
    if (result != CUDA_SUCCESS) {
        return core_refuse(GPUMEM_ERROR_DRIVER, "cuCtxSetCurrent failed: %d", (int)result);
    }
    Py_RETURN_NONE;
}

static PyObject *device_context(PyObject *module, PyObject *device) {
    (void)module;
    const struct object *data = object_in(device, OBJECT_device);
    return data ? PyLong_FromVoidPtr(gpumem_device_context(data->pointer)) : NULL;
}

/* Waits for all work of the device's context. */
static PyObject *device_synchronize(PyObject *module, PyObject *device) {
    (void)module;
    const struct object *data = object_in(device, OBJECT_device);
    if (!data) {
        return NULL;
    }
    const gpumem_driver_api *api = api_of(gpumem_device_library(data->pointer));
    CUcontext context = gpumem_device_context(data->pointer), popped = NULL;
    PyThreadState *state = core_leave_python();
    CUresult result = api->cuCtxPushCurrent_v2(context);
    if (result == CUDA_SUCCESS) {
        result = api->cuCtxSynchronize();
        (void)api->cuCtxPopCurrent_v2(&popped);
    }
    core_enter_python(state);
    if (result != CUDA_SUCCESS) {
        return core_refuse(GPUMEM_ERROR_DRIVER, "cuCtxSynchronize failed: %d", (int)result);
    }
    Py_RETURN_NONE;
}

/* (flags, priority) of a stream of this device's. */
static PyObject *stream_info(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *device;
    unsigned long long handle = 0;
    if (!PyArg_ParseTuple(args, "OK", &device, &handle)) {
        return NULL;
    }
    const struct object *data = object_in(device, OBJECT_device);
    if (!data) {
        return NULL;
    }
    const gpumem_driver_api *api = api_of(gpumem_device_library(data->pointer));
    CUstream stream = (CUstream)(uintptr_t)handle;
    CUcontext pushed = NULL;
    unsigned flags = 0;
    int priority = 0;
    CUresult result = api->cuCtxPushCurrent_v2(gpumem_device_context(data->pointer));
    if (result == CUDA_SUCCESS) {
        result = api->cuStreamGetFlags(stream, &flags);
        if (result == CUDA_SUCCESS) {
            result = api->cuStreamGetPriority(stream, &priority);
        }
        (void)api->cuCtxPopCurrent_v2(&pushed);
    }
    if (result != CUDA_SUCCESS) {
        return core_refuse(GPUMEM_ERROR_DRIVER, "the driver knows nothing of this stream: %d",
                           (int)result);
    }
    return Py_BuildValue("Ii", flags, priority);
}

/* Whether a stream, in any of its forms, is being captured. */
static PyObject *stream_is_capturing(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *device, *from, *kept;
    CUstream stream = NULL;
    if (!PyArg_ParseTuple(args, "OO", &device, &from)) {
        return NULL;
    }
    const struct object *data = object_in(device, OBJECT_device);
    if (!data || core_stream(from, NULL, NULL, &stream, &kept) < 0) {
        return NULL;
    }
    const gpumem_driver_api *api = api_of(gpumem_device_library(data->pointer));
    CUcontext ours = gpumem_device_context(data->pointer), present = NULL, popped = NULL;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (api->cuCtxGetCurrent(&present) == CUDA_SUCCESS &&
        (present == ours || api->cuCtxPushCurrent_v2(ours) == CUDA_SUCCESS)) {
        (void)api->cuStreamIsCapturing(stream, &status);
        if (present != ours && api->cuCtxPopCurrent_v2(&popped) != CUDA_SUCCESS &&
            api->cuCtxGetCurrent(&popped) == CUDA_SUCCESS && popped == ours) {
            (void)api->cuCtxPopCurrent_v2(&popped);
        }
    }
    return PyBool_FromLong(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

/* (address, generation, base, ...): a layout and its segments, (offset, bytes, handle) each. */
static PyObject *buffer_layout(PyObject *module, PyObject *buffer) {
    (void)module;
    if (!PyObject_TypeCheck(buffer, core.buffer_type)) {
        return PyErr_Format(PyExc_TypeError, "buffer must be a Buffer, not %S", Py_TYPE(buffer));
    }
    if (core_enter_buffer(buffer) < 0) {
        return NULL;
    }
    gpumem_buffer *buffer_c = core_root(data_of(buffer))->buffer;
    gpumem_layout layout = {.size = sizeof layout};
    gpumem_status status = gpumem_buffer_get_layout(buffer_c, &layout, NULL, 0);
    gpumem_segment *segments = NULL;
    if (status == GPUMEM_OK) {
        segments = PyMem_Calloc(layout.segment_count + 1, sizeof *segments);
        status = segments
                     ? gpumem_buffer_get_layout(buffer_c, &layout, segments, layout.segment_count)
                     : GPUMEM_OK;
    }
    PyObject *list = NULL;
    if (status != GPUMEM_OK) {
        core_raise(status);
    } else if (!segments) {
        PyErr_NoMemory();
    } else {
        list = PyList_New(0);
    }
    for (size_t each = 0; list && each < layout.segment_count; ++each) {
        PyObject *row =
            Py_BuildValue("KKK", (unsigned long long)segments[each].offset,
                          (unsigned long long)segments[each].bytes, segments[each].handle);
        if (!row || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    PyMem_Free(segments);
    core_leave_buffer(buffer);
    return list ? Py_BuildValue("NN", core_result(LAYOUT_layout, &layout), list) : NULL;
}

/* Waits for a stream of the Buffer's device. */
static PyObject *buffer_synchronize(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *buffer, *from, *kept;
    CUstream stream = NULL;
    if (!PyArg_ParseTuple(args, "O!O", core.buffer_type, &buffer, &from) ||
        core_stream(from, NULL, NULL, &stream, &kept) < 0 || core_enter_buffer(buffer) < 0) {
        return NULL;
    }
    gpumem_device *device = gpumem_buffer_device(core_root(data_of(buffer))->buffer);
    PyThreadState *state = core_leave_python();
    gpumem_status status = gpumem_stream_synchronize(device, stream);
    core_enter_python(state);
    PyObject *failed = status == GPUMEM_OK ? Py_None : core_raise(status);
    core_leave_buffer(buffer);
    if (core_finish() < 0 || !failed) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* 0 where a Buffer came from `first` of a fallback resource, 1 where it came from the second. */
static PyObject *fallback_source(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *buffer, *first;
    if (!PyArg_ParseTuple(args, "O!O!", core.buffer_type, &buffer, core.resource_type, &first) ||
        core_enter_buffer(buffer) < 0) {
        return NULL;
    }
    gpumem_resource *source = NULL;
    gpumem_status status = gpumem_fallback_get_source(core_root(data_of(buffer))->buffer, &source);
    PyObject *result =
        status == GPUMEM_OK
            ? PyLong_FromLong(source != ((struct resource *)data_of(first))->resource)
            : core_raise(status);
    core_leave_buffer(buffer);
    return result;
}

/* The file of the library that was loaded. */
static PyObject *library_file(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    Dl_info info;
    if (!dladdr((const void *)(uintptr_t)gpumem_version, &info) || !info.dli_fname) {
        return PyUnicode_FromString("");
    }
    return PyUnicode_DecodeFSDefault(info.dli_fname);
}

static PyObject *version(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromLong(gpumem_version());
}

static PyMethodDef functions[] = {
    {"error_name", error_name, METH_VARARGS, NULL},
    {"current_device", current_device, METH_O, NULL},
    {"set_current", set_current, METH_VARARGS, NULL},
    {"device_context", device_context, METH_O, NULL},
    {"device_synchronize", device_synchronize, METH_O, NULL},
    {"stream_info", stream_info, METH_VARARGS, NULL},
    {"stream_is_capturing", stream_is_capturing, METH_VARARGS, NULL},
    {"fallback_source", fallback_source, METH_VARARGS, NULL},
    {"buffer_synchronize", buffer_synchronize, METH_VARARGS, NULL},
    {"from_dlpack", core_from_dlpack, METH_VARARGS, NULL},
    {"buffer_layout", buffer_layout, METH_O, NULL},
    {"library_file", library_file, METH_NOARGS, NULL},
    {"version", version, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int core_add_driver_calls(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
