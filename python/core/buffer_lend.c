/*
 * Whoever is given a Buffer's memory holds it: memoryviews, tensors of DLPack, hold(). A hold is
 * one of the library's, so that a free takes effect with the last, and it keeps the Buffer's
 * resource. __cuda_array_interface__ has nothing that ends: its hold lasts as long as the Buffer
 * object.
 */
#include "core.h"

#include <gpumem/dlpack.h>
#include <gpumem/dlpack_abi.h>
#include <stdlib.h>

/* Holds the buffer of a Buffer that was entered. NULL: an exception is set. */
static gpumem_buffer *take_hold(PyObject *object) {
    struct buffer *root = core_root(data_of(object));
    gpumem_buffer *buffer = root->buffer;
    PyThreadState *state = core_leave_python();
    gpumem_status status = gpumem_buffer_hold(buffer);
    core_enter_python(state);
    if (status != GPUMEM_OK) {
        core_raise(status);
        return NULL;
    }
    ++root->holds;
    return buffer;
}

static void return_hold(struct buffer *root, gpumem_buffer *buffer) {
    PyThreadState *state = core_leave_python();
    (void)gpumem_buffer_release(buffer);
    core_enter_python(state);
    core_drop_hold(root);
}

void core_return_lent(struct buffer *self) {
    gpumem_buffer *lent = self->lent;
    self->lent = NULL;
    if (lent) {
        return_hold(core_root(self), lent);
    }
}

static int attributes_of(PyObject *object, gpumem_buffer_attributes *attributes) {
    *attributes = (gpumem_buffer_attributes){.size = sizeof *attributes};
    gpumem_buffer *buffer = core_root(data_of(object))->buffer;
    PyThreadState *state = core_leave_python();
    gpumem_status status = gpumem_buffer_get_attributes(buffer, attributes);
    core_enter_python(state);
    if (status != GPUMEM_OK) {
        core_raise(status);
        return -1;
    }
    return 0;
}

/* ---- The buffer protocol --------------------------------------------------------------------- */

static int fill_view(PyObject *object, Py_buffer *view, int flags) {
    struct buffer *self = data_of(object);
    void *host = gpumem_buffer_host_pointer(core_root(self)->buffer);
    gpumem_buffer_attributes attributes;
    if (attributes_of(object, &attributes) < 0) {
        return -1;
    }
    if (!host || !attributes.host_accessible) {
        PyErr_SetString(PyExc_BufferError, "the CPU has no access to the memory of this Buffer");
        return -1;
    }
    if (PyBuffer_FillInfo(view, object, host, (Py_ssize_t)self->size, attributes.read_only, flags) <
        0) {
        return -1;
    }
    view->internal = take_hold(object);
    if (!view->internal) {
        Py_CLEAR(view->obj);
        return -1;
    }
    return 0;
}

int core_get_buffer(PyObject *object, Py_buffer *view, int flags) {
    view->obj = NULL;
    if (core_enter_buffer(object) < 0) {
        return -1;
    }
    int result = fill_view(object, view, flags);
    core_leave_buffer(object);
    return result;
}

void core_release_buffer(PyObject *object, Py_buffer *view) {
    return_hold(core_root(data_of(object)), view->internal);
}

/* ---- hold() ---------------------------------------------------------------------------------- */

struct loan {
    gpumem_buffer *buffer;
    PyObject *object; /* the Buffer whose root has it */
};

static void end_loan(struct loan *loan) {
    return_hold(core_root(data_of(loan->object)), loan->buffer);
    Py_DECREF(loan->object);
    free(loan);
}

static void end_capsule(PyObject *capsule) {
    end_loan(PyCapsule_GetPointer(capsule, NULL));
}

/* A loan keeps the root: a Buffer that shares it lets go of it when it is closed. */
static struct loan *new_loan(PyObject *object) {
    struct loan *loan = calloc(1, sizeof *loan);
    if (!loan) {
        PyErr_NoMemory();
        return NULL;
    }
    loan->buffer = take_hold(object);
    if (!loan->buffer) {
        free(loan);
        return NULL;
    }
    loan->object = object_of(core_root(data_of(object)));
    Py_INCREF(loan->object);
    return loan;
}

PyObject *core_buffer_hold(PyObject *object, PyObject *unused) {
    (void)unused;
    if (core_enter_buffer(object) < 0) {
        return NULL;
    }
    struct loan *loan = new_loan(object);
    PyObject *capsule = loan ? PyCapsule_New(loan, NULL, end_capsule) : NULL;
    if (loan && !capsule) {
        end_loan(loan);
    }
    core_leave_buffer(object);
    return capsule;
}

/* ---- DLPack ---------------------------------------------------------------------------------- */

/* The consumer's tensor: the library's, with a loan around it, so that the resource is kept. */
struct lent_tensor {
    struct loan *loan;
    void *inner; /* the library's tensor */
    bool versioned;
    DLManagedTensor plain;
    DLManagedTensorVersioned tensor;
};

/* Called by the consumer, in any thread, with or without the GIL. */
static void delete_tensor(struct lent_tensor *lent) {
    if (lent->versioned) {
        DLManagedTensorVersioned *inner = lent->inner;
        inner->deleter(inner);
    } else {
        DLManagedTensor *inner = lent->inner;
        inner->deleter(inner);
    }
    if (core_may_call_back()) {
        PyGILState_STATE state = PyGILState_Ensure();
        end_loan(lent->loan);
        PyGILState_Release(state);
    } else {
        (void)gpumem_buffer_release(lent->loan->buffer);
        free(lent->loan);
    }
    free(lent);
}

static void delete_plain(DLManagedTensor *tensor) {
    delete_tensor(tensor->manager_ctx);
}

static void delete_versioned(DLManagedTensorVersioned *tensor) {
    delete_tensor(tensor->manager_ctx);
}

static const char *const capsule_names[] = {"dltensor", "dltensor_versioned"};

/* A consumer that takes the tensor renames the capsule; of one that nobody took the tensor ends
 * here. */
static void end_tensor_capsule(PyObject *capsule) {
    for (int versioned = 0; versioned < 2; ++versioned) {
        if (PyCapsule_IsValid(capsule, capsule_names[versioned])) {
            void *tensor = PyCapsule_GetPointer(capsule, capsule_names[versioned]);
            if (versioned) {
                delete_versioned(tensor);
            } else {
                delete_plain(tensor);
            }
            return;
        }
    }
}

static gpumem_status lend_tensor(struct lent_tensor *lent) {
    gpumem_dlpack_options options = {.size = sizeof options, .bits = 8}; /* code 0: signed */
    if (lent->versioned) {
        DLManagedTensorVersioned *inner = NULL;
        gpumem_status status = gpumem_buffer_to_dlpack(lent->loan->buffer, &options, &inner);
        if (status == GPUMEM_OK) {
            lent->inner = inner;
            lent->tensor = *inner;
            lent->tensor.manager_ctx = lent;
            lent->tensor.deleter = delete_versioned;
        }
        return status;
    }
    DLManagedTensor *inner = NULL;
    gpumem_status status =
        gpumem_buffer_to_dlpack_unversioned(lent->loan->buffer, &options, &inner);
    if (status == GPUMEM_OK) {
        lent->inner = inner;
        lent->plain = *inner;
        lent->plain.manager_ctx = lent;
        lent->plain.deleter = delete_plain;
    }
    return status;
}

/* The consumer's stream waits for the streams that were named. */
static int order_consumer(PyObject *object, PyObject *stream, int device_type) {
    CUstream handle = GPUMEM_STREAM_LEGACY;
    PyObject *kept = NULL;
    if (stream && stream != Py_None) {
        if (PyLong_Check(stream) && PyLong_AsLong(stream) == -1 && !PyErr_Occurred()) {
            return 0; /* the consumer orders itself */
        }
        PyErr_Clear();
        if (core_stream(stream, NULL, NULL, &handle, &kept) < 0) {
            return -1;
        }
    } else if (device_type != kDLCUDA && device_type != kDLCUDAManaged) {
        return 0;
    }
    gpumem_buffer *buffer = core_root(data_of(object))->buffer;
    PyThreadState *state = core_leave_python();
    gpumem_status status = gpumem_buffer_order(buffer, handle);
    core_enter_python(state);
    if (status != GPUMEM_OK) {
        core_raise(status);
        return -1;
    }
    return core_name_stream(core_root(data_of(object)), kept);
}

static int device_of(PyObject *object, int *type, int *number) {
    gpumem_buffer_attributes attributes;
    if (attributes_of(object, &attributes) < 0) {
        return -1;
    }
    *type = attributes.managed              ? kDLCUDAManaged
            : !attributes.device_accessible ? kDLCPU
            : attributes.ordinal < 0        ? kDLCUDAHost
                                            : kDLCUDA;
    *number = *type == kDLCUDA ? attributes.ordinal : 0;
    return 0;
}

/* Whether dl_device, a pair or None, is the device that the memory is on. */
static int same_device(PyObject *pair, int type, int number) {
    if (!pair || pair == Py_None) {
        return 0;
    }
    int wanted_type = 0, wanted_number = 0;
    PyObject *items = PySequence_Tuple(pair);
    bool read = items && PyTuple_Size(items) == 2 &&
                core_int(PyTuple_GetItem(items, 0), "dl_device", &wanted_type) == 0 &&
                core_int(PyTuple_GetItem(items, 1), "dl_device", &wanted_number) == 0;
    Py_XDECREF(items);
    if (!read) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "dl_device must be a pair of ints");
        }
        return -1;
    }
    if (wanted_type != type || wanted_number != number) {
        PyErr_Format(PyExc_BufferError, "dl_device is (%d, %d); the memory is on (%d, %d)",
                     wanted_type, wanted_number, type, number);
        return -1;
    }
    return 0;
}

static PyObject *make_capsule(PyObject *object, bool versioned) {
    struct lent_tensor *lent = calloc(1, sizeof *lent);
    if (!lent) {
        return PyErr_NoMemory();
    }
    lent->versioned = versioned;
    lent->loan = new_loan(object);
    if (!lent->loan) {
        free(lent);
        return NULL;
    }
    PyThreadState *state = core_leave_python();
    gpumem_status status = lend_tensor(lent);
    core_enter_python(state);
    if (status != GPUMEM_OK) {
        core_raise(status);
        end_loan(lent->loan);
        free(lent);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(versioned ? (void *)&lent->tensor : (void *)&lent->plain,
                                      capsule_names[versioned], end_tensor_capsule);
    if (!capsule) {
        delete_tensor(lent);
    }
    return capsule;
}

static PyObject *dlpack_inside(PyObject *object, PyObject *const *given) {
    int type = 0, number = 0;
    if (device_of(object, &type, &number) < 0 || same_device(given[2], type, number) < 0) {
        return NULL;
    }
    if (given[3] && given[3] != Py_None) {
        int copies = PyObject_IsTrue(given[3]);
        if (copies) {
            return copies < 0 ? NULL
                              : PyErr_Format(PyExc_BufferError, "copy: a Buffer makes no copies");
        }
    }
    bool versioned = false;
    if (given[1] && given[1] != Py_None) {
        PyObject *first = PySequence_GetItem(given[1], 0);
        int major = 0;
        if (!first || core_int(first, "max_version", &major) < 0) {
            Py_XDECREF(first);
            return NULL;
        }
        Py_DECREF(first);
        versioned = major >= 1;
    }
    if (order_consumer(object, given[0], type) < 0) {
        return NULL;
    }
    return make_capsule(object, versioned);
}

PyObject *core_buffer_dlpack(PyObject *object, PyObject *const *args, Py_ssize_t count,
                             PyObject *keywords) {
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *given[4];
    if (core_take("__dlpack__", args, count, keywords, names, 0, 0, given) < 0 ||
        core_enter_buffer(object) < 0) {
        return NULL;
    }
    PyObject *capsule = dlpack_inside(object, given);
    core_leave_buffer(object);
    return capsule;
}

PyObject *core_buffer_dlpack_device(PyObject *object, PyObject *unused) {
    (void)unused;
    int type = 0, number = 0;
    if (core_enter_buffer(object) < 0) {
        return NULL;
    }
    int found = device_of(object, &type, &number);
    core_leave_buffer(object);
    return found < 0 ? NULL : Py_BuildValue("ii", type, number);
}

/* from_dlpack(device, capsule, stream): a Buffer that has the tensor. */
PyObject *core_from_dlpack(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *device, *capsule, *from, *kept;
    CUstream stream = NULL;
    if (!PyArg_ParseTuple(args, "O!OO", core.object_type, &device, &capsule, &from) ||
        core_stream(from, NULL, GPUMEM_STREAM_NONE, &stream, &kept) < 0) {
        return NULL;
    }
    struct object *data = data_of(device);
    bool versioned = PyCapsule_IsValid(capsule, capsule_names[1]);
    if (data->kind != OBJECT_device || !data->pointer ||
        (!versioned && !PyCapsule_IsValid(capsule, capsule_names[0]))) {
        return PyErr_Format(PyExc_TypeError,
                            "an open device and a tensor that nobody has taken are needed");
    }
    void *tensor = PyCapsule_GetPointer(capsule, capsule_names[versioned]);
    gpumem_buffer *buffer = NULL;
    ++data->uses;
    PyThreadState *state = core_leave_python();
    gpumem_status status =
        versioned ? gpumem_buffer_from_dlpack(data->pointer, tensor, stream, &buffer)
                  : gpumem_buffer_from_dlpack_unversioned(data->pointer, tensor, stream, &buffer);
    core_enter_python(state);
    PyObject *result = NULL;
    if (status != GPUMEM_OK) {
        core_raise(status);
    } else {
        PyCapsule_SetName(capsule, versioned ? "used_dltensor_versioned" : "used_dltensor");
        result = core_new_buffer(core.buffer_type, buffer, NULL, NULL, kept);
    }
    PyObject *owners = result ? Py_BuildValue("(O)", device) : NULL;
    if (owners) {
        ((struct buffer *)data_of(result))->keeps = owners;
        core_use_owners(owners);
    }
    core_leave_object(data);
    return result;
}

/* ---- __cuda_array_interface__ ---------------------------------------------------------------- */

PyObject *core_buffer_array_interface(PyObject *object, void *unused) {
    (void)unused;
    struct buffer *self = data_of(object);
    gpumem_buffer_attributes attributes;
    if (core_enter_buffer(object) < 0) {
        return NULL;
    }
    PyObject *result = NULL;
    if (attributes_of(object, &attributes) == 0) {
        if (!attributes.device_accessible) {
            PyErr_SetString(PyExc_AttributeError,
                            "no device has access to the memory of this Buffer");
        } else if (self->lent || (self->lent = take_hold(object))) {
            result = Py_BuildValue("{s(n)sss(KO)sisO}", "shape", (Py_ssize_t)self->size, "typestr",
                                   "|u1", "data", self->pointer,
                                   attributes.read_only ? Py_True : Py_False, "version", 3,
                                   "strides", Py_None);
        }
    }
    core_leave_buffer(object);
    return result;
}
