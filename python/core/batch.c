/*
 * Batches of copies, which no row of the tables describes. Hints about copies are the driver's
 * alone: a batch that has some is queued by the driver's own call, one without by the library's.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

struct batch {
    size_t count;
    CUstream stream;
    PyObject **objects; /* 2 * count, borrowed: each "to" and "from" */
    gpumem_buffer_copy_item *items;
    CUmemcpyAttributes *hints; /* NULL: none */
    gpumem_batch_report report;
    CUresult refused; /* what the driver's own call answered */
};

static int allocate(struct batch *batch, size_t count, bool hinted) {
    batch->count = count;
    batch->objects = calloc(2 * count + 1, sizeof *batch->objects);
    batch->items = calloc(count + 1, sizeof *batch->items);
    batch->hints = hinted ? calloc(count + 1, sizeof *batch->hints) : NULL;
    if (!batch->objects || !batch->items || (hinted && !batch->hints)) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void release(struct batch *batch) {
    free(batch->objects);
    free(batch->items);
    free(batch->hints);
}

/* (order, overlap, source's location and number, destination's): CUmemcpyAttributes. */
static int take_hint(PyObject *from, CUmemcpyAttributes *to) {
    int order, overlap, types[2], numbers[2];
    if (!PyArg_ParseTuple(from, "iiiiii", &order, &overlap, &types[0], &numbers[0], &types[1],
                          &numbers[1])) {
        return -1;
    }
    to->srcAccessOrder = (CUmemcpySrcAccessOrder)order;
    to->flags = (unsigned)overlap;
    to->srcLocHint.type = (CUmemLocationType)types[0];
    to->srcLocHint.id = numbers[0];
    to->dstLocHint.type = (CUmemLocationType)types[1];
    to->dstLocHint.id = numbers[1];
    return 0;
}

static int take(struct batch *batch, PyObject *to, PyObject *from, PyObject *hints) {
    for (size_t each = 0; each < batch->count; ++each) {
        PyObject *pair[2] = {PyTuple_GetItem(to, (Py_ssize_t)each),
                             PyTuple_GetItem(from, (Py_ssize_t)each)};
        for (size_t side = 0; side < 2; ++side) {
            if (!pair[side] || !PyObject_TypeCheck(pair[side], core.buffer_type)) {
                PyErr_SetString(PyExc_TypeError, "a batch is of Buffers");
                return -1;
            }
            batch->objects[2 * each + side] = pair[side];
        }
        if (batch->hints &&
            take_hint(PyTuple_GetItem(hints, (Py_ssize_t)each), &batch->hints[each]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The Buffers are entered: their sizes stay what they are. */
static int fill_items(struct batch *batch) {
    for (size_t each = 0; each < batch->count; ++each) {
        const struct buffer *to = data_of(batch->objects[2 * each]);
        const struct buffer *from = data_of(batch->objects[2 * each + 1]);
        if (to->size != from->size) {
            PyErr_Format(PyExc_ValueError, "copy %zu: dst and src have %zu and %zu bytes", each,
                         to->size, from->size);
            return -1;
        }
        batch->items[each] = (gpumem_buffer_copy_item){
            .to = core_root(data_of(batch->objects[2 * each]))->buffer,
            .from = core_root(data_of(batch->objects[2 * each + 1]))->buffer,
            .bytes = from->size};
    }
    return 0;
}

/* CUDA_ERROR_NOT_FOUND, CUDA_ERROR_NOT_SUPPORTED: it has no such call, and nothing is queued. */
static CUresult ask_driver(const struct batch *batch, const gpumem_driver *driver) {
    size_t count = batch->count, failed = 0;
    CUdeviceptr *addresses = calloc(2 * count, sizeof *addresses);
    size_t *sizes = calloc(2 * count, sizeof *sizes), *places = sizes ? sizes + count : NULL;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t each = 0; addresses && sizes && each < count; ++each) {
        addresses[each] = gpumem_buffer_pointer(batch->items[each].to);
        addresses[count + each] = gpumem_buffer_pointer(batch->items[each].from);
        sizes[each] = batch->items[each].bytes;
        places[each] = each;
    }
    const gpumem_driver_api *cu = gpumem_driver_table(driver);
    if (addresses && sizes && gpumem_driver_has(driver, GPUMEM_FN_cuMemcpyBatchAsync)) {
        result = cu->cuMemcpyBatchAsync(addresses, addresses + count, sizes, count, batch->hints,
                                        places, count, &failed, batch->stream);
    } else if (addresses && sizes) {
        result = cu->cuMemcpyBatchAsync_v2(addresses, addresses + count, sizes, count, batch->hints,
                                           places, count, batch->stream);
    }
    free(addresses);
    free(sizes);
    return result;
}

/* Everything is checked by the library, and the streams are named, as for its own batches. */
static gpumem_status queue_hinted(struct batch *batch, gpumem_device *device) {
    const gpumem_driver *driver = gpumem_library_driver(gpumem_device_library(device));
    const gpumem_driver_api *cu = gpumem_driver_table(driver);
    gpumem_buffer_copy_item *nothing = calloc(batch->count, sizeof *nothing);
    gpumem_status status = nothing ? GPUMEM_OK : GPUMEM_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t each = 0; nothing && each < batch->count; ++each) {
        nothing[each] = batch->items[each];
        nothing[each].bytes = 0;
    }
    if (nothing) {
        status = gpumem_buffer_copy_batch(nothing, batch->count, batch->stream, NULL);
    }
    free(nothing);
    for (size_t each = 0; status == GPUMEM_OK && each < batch->count; ++each) {
        status = gpumem_buffer_use(batch->items[each].to, batch->stream);
        if (status == GPUMEM_OK) {
            status = gpumem_buffer_use(batch->items[each].from, batch->stream);
        }
    }
    CUcontext ours = gpumem_device_context(device), present = NULL, popped = NULL;
    if (status != GPUMEM_OK || (batch->refused = cu->cuCtxGetCurrent(&present)) != CUDA_SUCCESS) {
        return status;
    }
    if (present != ours && (batch->refused = cu->cuCtxPushCurrent_v2(ours)) != CUDA_SUCCESS) {
        return status;
    }
    batch->refused = ask_driver(batch, driver);
    if (present != ours && cu->cuCtxPopCurrent_v2(&popped) != CUDA_SUCCESS &&
        cu->cuCtxGetCurrent(&popped) == CUDA_SUCCESS && popped == ours) {
        (void)cu->cuCtxPopCurrent_v2(&popped);
    }
    batch->report.copies = batch->count;
    batch->report.batched = batch->refused == CUDA_SUCCESS;
    return GPUMEM_OK;
}

static gpumem_status queue(struct batch *batch, gpumem_device *device) {
    batch->report.size = sizeof batch->report;
    if (batch->hints) {
        gpumem_status status = queue_hinted(batch, device);
        if (status != GPUMEM_OK || (batch->refused != CUDA_ERROR_NOT_SUPPORTED &&
                                    batch->refused != CUDA_ERROR_NOT_FOUND)) {
            return status;
        }
        batch->refused = CUDA_SUCCESS;
    }
    return gpumem_buffer_copy_batch(batch->items, batch->count, batch->stream, &batch->report);
}

static PyObject *run(struct batch *batch, PyObject *device, PyObject *kept) {
    gpumem_device *device_c = ((struct object *)data_of(device))->pointer;
    PyThreadState *state = core_leave_python();
    gpumem_status status = queue(batch, device_c);
    core_enter_python(state);
    if (status != GPUMEM_OK) {
        return core_raise(status);
    }
    for (size_t each = 0; each < 2 * batch->count; ++each) {
        if (core_name_stream(core_root(data_of(batch->objects[each])), kept) < 0) {
            return NULL;
        }
    }
    if (batch->refused != CUDA_SUCCESS) {
        return core_refuse(GPUMEM_ERROR_DRIVER, "cuMemcpyBatchAsync answered %d",
                           (int)batch->refused);
    }
    return core_result(LAYOUT_batch_report, &batch->report);
}

/* buffer_copy_batch(device, to, from, stream, hints or None): tuples of one length. Returns a
 * gpumem_batch_report. */
static PyObject *copy_batch(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *device, *to, *from, *stream, *hints, *kept, *result = NULL;
    struct batch batch = {0};
    if (!PyArg_ParseTuple(args, "O!O!O!OO", core.object_type, &device, &PyTuple_Type, &to,
                          &PyTuple_Type, &from, &stream, &hints)) {
        return NULL;
    }
    struct object *opened = data_of(device);
    if (opened->kind != OBJECT_device || !opened->pointer || opened->closing) {
        return PyErr_Format(PyExc_TypeError, "an open device is needed");
    }
    if (core_stream(stream, gpumem_device_library(opened->pointer), NULL, &batch.stream, &kept) <
            0 ||
        allocate(&batch, (size_t)PyTuple_Size(to), hints != Py_None) < 0 ||
        take(&batch, to, from, hints) < 0) {
        release(&batch);
        return NULL;
    }
    ++opened->uses;
    if (core_enter_many(batch.objects, 2 * batch.count) == 0) {
        if (fill_items(&batch) == 0) {
            result = run(&batch, device, kept);
        }
        core_leave_many(batch.objects, 2 * batch.count);
    }
    core_leave_object(opened);
    release(&batch);
    if (core_finish() < 0) {
        Py_CLEAR(result);
    }
    return result;
}

int core_add_batches(PyObject *module) {
    static PyMethodDef functions[] = {{"buffer_copy_batch", copy_batch, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    return PyModule_AddFunctions(module, functions);
}
