"""NumPy looks at pinned and managed memory of libgpumem through DLPack, in both of its forms."""
import ctypes
import gc
import os
from pathlib import Path

import numpy

import tap
from tap import expect, expect_equal, raises

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", Path(__file__).resolve().parents[3] / "build"))
LIBRARY = ctypes.CDLL(str(BUILD / "lib" / "libgpumem.so"))
LIBRARY.gpumem_buffer_host_pointer.restype = ctypes.c_void_p
LIBRARY.gpumem_buffer_host_pointer.argtypes = [ctypes.c_void_p]
PYTHON = ctypes.pythonapi
PYTHON.PyCapsule_New.restype = ctypes.py_object
PYTHON.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
FLOAT, CUDA_HOST, CUDA_MANAGED = 2, 3, 13


class Options(ctypes.Structure):
    """gpumem_dlpack_options"""
    _fields_ = [("size", ctypes.c_size_t), ("offset", ctypes.c_size_t), ("code", ctypes.c_int),
                ("bits", ctypes.c_int), ("lanes", ctypes.c_int), ("ndim", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("read_only", ctypes.c_int),
                ("stream", ctypes.c_void_p)]


def call(name, *arguments):
    expect_equal(getattr(LIBRARY, name)(*arguments), 0)


def make(name, *arguments):
    made = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(made))
    return made


class Memory:
    """A resource and a buffer of it."""

    def __init__(self, kind, count):
        self.library = make("gpumem_open", None)
        self.device = make("gpumem_device_open", self.library, 0)
        self.resource = make(f"gpumem_{kind}_resource_create", self.device, None)
        self.buffer = make("gpumem_buffer_allocate", self.resource, ctypes.c_size_t(count), None)
        self.bytes = (ctypes.c_ubyte * count).from_address(
            LIBRARY.gpumem_buffer_host_pointer(self.buffer))

    def end(self):
        """Fails while something holds the buffer."""
        call("gpumem_buffer_free", self.buffer, None)
        call("gpumem_resource_destroy", self.resource)
        call("gpumem_device_close", self.device)
        call("gpumem_close", self.library)


class Tensor:
    """What NumPy asks of an object that has a tensor."""

    def __init__(self, memory, kind, shape, versioned=True, read_only=False):
        self.memory, self.kind, self.shape = memory, kind, shape
        self.versioned, self.read_only = versioned, read_only

    def __dlpack_device__(self):
        return (self.kind, 0)

    def __dlpack__(self, **_):
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        options = Options(size=ctypes.sizeof(Options), code=FLOAT, bits=32, ndim=len(self.shape),
                          shape=shape, read_only=self.read_only)
        form = "" if self.versioned else "_unversioned"
        tensor = make(f"gpumem_buffer_to_dlpack{form}", self.memory.buffer, ctypes.byref(options))
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return PYTHON.PyCapsule_New(tensor, name, None)


def see(kind, device, versioned):
    memory = Memory(kind, 4 * 24)
    array = numpy.from_dlpack(Tensor(memory, device, (2, 3, 4), versioned))
    expect_equal(array.shape, (2, 3, 4))
    expect_equal(array.dtype, numpy.float32)
    expect_equal(array.ctypes.data, ctypes.addressof(memory.bytes))
    source = numpy.arange(24, dtype=numpy.float32)
    ctypes.memmove(memory.bytes, source.tobytes(), 96)
    expect(numpy.array_equal(array.reshape(24), source), "not the buffer's bytes")
    return memory, array


def check(kind, device, versioned):
    memory, array = see(kind, device, versioned)
    call("gpumem_buffer_hold", memory.buffer)  # so that it can be asked below
    call("gpumem_buffer_free", memory.buffer, None)
    expect(LIBRARY.gpumem_resource_destroy(memory.resource) != 0, "an array holds the buffer")
    call("gpumem_buffer_release", memory.buffer)
    expect(LIBRARY.gpumem_resource_destroy(memory.resource) != 0, "an array holds the buffer")
    expect_equal(float(array[1, 2, 3]), 23.0)
    del array
    gc.collect()
    call("gpumem_resource_destroy", memory.resource)
    call("gpumem_device_close", memory.device)
    call("gpumem_close", memory.library)


def test_numpy_reads_and_writes_pinned_memory_by_versioned_dlpack():
    check("pinned", CUDA_HOST, True)


def test_numpy_reads_and_writes_pinned_memory_by_unversioned_dlpack():
    check("pinned", CUDA_HOST, False)


def test_numpy_reads_and_writes_managed_memory_by_versioned_dlpack():
    check("managed", CUDA_MANAGED, True)


def test_numpy_does_not_write_to_read_only_memory():
    memory = Memory("pinned", 16)
    array = numpy.from_dlpack(Tensor(memory, CUDA_HOST, (4,), read_only=True))
    expect(not array.flags.writeable, "the flag is not obeyed")
    raises(ValueError, array.__setitem__, 0, 1.0)
    del array
    gc.collect()
    memory.end()


if __name__ == "__main__":
    tap.main(globals())
