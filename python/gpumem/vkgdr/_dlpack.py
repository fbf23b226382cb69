"""One-dimensional tensors of bytes for DLPack, in its older and in its versioned form."""
import ctypes

CPU, CUDA = 1, 2
UNSIGNED = 1
VERSION = (1, 0)


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32),
                ("dtype", _Type), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


# What consumers hold, by the address of their struct: the struct, its shape, and the memory.
_held = {}


# Both callbacks are called as long as a consumer lives, which may be longer than this module: what
# they use is bound to them, and they never end.
def _for_ever(callback):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    return callback


@_for_ever
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address, held=_held):
    held.pop(address, None)


# A capsule that is being destroyed is no object to count references of: its address is passed.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi))

_NAMES = (b"dltensor", b"dltensor_versioned")


@_for_ever
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule, names=_NAMES, is_valid=_is_valid, pointer=_pointer, held=_held):
    """A consumer renames what it takes; what nobody took ends with the capsule."""
    for name in names:
        if is_valid(capsule, name):
            held.pop(pointer(capsule, name), None)


def capsule(memory, address, device, size, versioned):
    """`size` bytes at an address of `device`, (type, id). `memory` is kept alive."""
    shape, strides = (ctypes.c_int64 * 1)(size), (ctypes.c_int64 * 1)(1)
    managed = _Versioned() if versioned else _Managed()
    if versioned:
        managed.major, managed.minor = VERSION
    managed.deleter = ctypes.cast(_delete, ctypes.c_void_p)
    managed.tensor = _Tensor(address, _Device(*device), 1, _Type(UNSIGNED, 8, 1), shape, strides, 0)
    key = ctypes.addressof(managed)
    _held[key] = (managed, shape, strides, memory)
    try:
        return _new(key, _NAMES[versioned], ctypes.cast(_destroy, ctypes.c_void_p))
    except BaseException:
        _delete(key)
        raise
