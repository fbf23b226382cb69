"""libvkgdr.so.1, found and declared. Its contract is in the header vkgdr.h."""
import ctypes
import importlib.metadata
import os

NAME = "libvkgdr.so.1"


def _installed():
    """The file that the distribution gpumem brought, if there is one."""
    try:
        files = importlib.metadata.files("gpumem") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [str(file.locate()) for file in files if file.name == NAME]


def _candidates():
    """In this order: what the user names, what pip installed, what the dynamic loader finds."""
    named = os.environ.get("GPUMEM_VKGDR")
    return [named] if named else [*_installed(), NAME]


def _open():
    refusals = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as why:
            refusals.append(str(why))
    raise ImportError(f"{NAME} of gpumem cannot be opened ({'; '.join(refusals)}); GPUMEM_VKGDR may "
                      "name the file")


_HANDLE, _MEMORY = ctypes.c_void_p, ctypes.c_void_p
_FUNCTIONS = {
    "vkgdr_last_error": (ctypes.c_void_p,),
    "vkgdr_open": (_HANDLE, ctypes.c_int, ctypes.c_uint32),
    "vkgdr_close": (None, _HANDLE),
    "vkgdr_memory_alloc": (_MEMORY, _HANDLE, ctypes.c_size_t, ctypes.c_uint32),
    "vkgdr_memory_free": (None, _MEMORY),
    "vkgdr_memory_get_host_ptr": (ctypes.c_void_p, _MEMORY),
    "vkgdr_memory_get_device_ptr": (ctypes.c_ulonglong, _MEMORY),
    "vkgdr_memory_get_size": (ctypes.c_size_t, _MEMORY),
    "vkgdr_memory_is_coherent": (ctypes.c_bool, _MEMORY),
    "vkgdr_memory_non_coherent_atom_size": (ctypes.c_size_t, _MEMORY),
    "vkgdr_memory_flush": (None, _MEMORY, ctypes.c_size_t, ctypes.c_size_t),
    "vkgdr_memory_invalidate": (None, _MEMORY, ctypes.c_size_t, ctypes.c_size_t),
    "gpumem_vkgdr_device": (ctypes.c_int, _HANDLE),
}

lib = _open()
for _name, (_result, *_arguments) in _FUNCTIONS.items():
    _function = getattr(lib, _name)
    _function.restype, _function.argtypes = _result, _arguments

_free = ctypes.CDLL(None).free
_free.restype, _free.argtypes = None, [ctypes.c_void_p]


def last_error():
    """This thread's error."""
    text = lib.vkgdr_last_error()
    if not text:
        return "no memory for the error's text"
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        _free(text)
