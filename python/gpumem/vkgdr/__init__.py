"""Device memory that the CPU reads and writes: the module vkgdr's interface.

What is independent of the CUDA bindings; `gpumem.vkgdr.pycuda` has the part for pycuda.
"""
import ctypes
import enum
import operator

from . import _dlpack
from ._library import last_error, lib

__all__ = ["OpenFlags", "RawMemory", "Vkgdr", "VkgdrError"]


class OpenFlags(enum.IntFlag):
    """Flags of `Vkgdr`."""

    #: Ignore the device that is given, and use that of the current CUDA context.
    CURRENT_CONTEXT_BIT = 1
    #: Treat the memory as non-coherent also where it is coherent (for debugging).
    FORCE_NON_COHERENT_BIT = 2
    #: Fail unless memory is coherent.
    REQUIRE_COHERENT_BIT = 4


class VkgdrError(RuntimeError):
    """An error of the library beneath."""


def _integer(value, bits, what, signed=False):
    """`value` as an integer of C: ctypes would cut it."""
    number = operator.index(value)
    low, high = (-1 << bits - 1, 1 << bits - 1) if signed else (0, 1 << bits)
    if not low <= number < high:
        raise OverflowError(f"{what} is {number}, not in [{low}, {high})")
    return number


class Vkgdr:
    """A GPU, opened.

    `device` is the number of a CUDA device, ignored with `OpenFlags.CURRENT_CONTEXT_BIT`; `flags` are
    those of `OpenFlags`. Raises VkgdrError. It is closed when nothing refers to it any more, memory of
    it included.
    """

    _handle = None
    # Kept here: at the interpreter's end the module may be empty.
    _close = staticmethod(lib.vkgdr_close)

    def __init__(self, device: int, flags: int = 0):
        self._handle = lib.vkgdr_open(_integer(device, 32, "device", signed=True),
                                      _integer(flags, 32, "flags"))
        if not self._handle:
            raise VkgdrError(last_error())

    @classmethod
    def open_current_context(cls, flags: int = 0):
        """An instance, of the class that this is called on, for the current context's device."""
        return cls(0, flags | OpenFlags.CURRENT_CONTEXT_BIT)

    def __del__(self):
        handle, self._handle = self._handle, None
        if handle:
            self._close(handle)


class RawMemory:
    """`size` bytes for the CPU and for the current CUDA context, to be freed explicitly.

    `owner` is a Vkgdr of the current context's device, and kept alive; `flags` must be 0. Raises
    VkgdrError. What is not freed is lost: a wrapper for an API of CUDA, such as
    `gpumem.vkgdr.pycuda.Memory`, frees by itself.

    NumPy sees the CPU's side (`__array_interface__`, an array of bytes), libraries for the GPU the
    device's (`__cuda_array_interface__`, DLPack). All of these keep the object alive, and none of
    them is valid after `free`.
    """

    _memory = None
    _owner = None
    # Kept here: at the interpreter's end the module may be empty.
    _give_back = staticmethod(lib.vkgdr_memory_free)

    def __init__(self, owner: Vkgdr, size: int, flags: int = 0):
        if not isinstance(owner, Vkgdr):
            raise TypeError(f"owner is a {type(owner).__name__}, not a Vkgdr")
        self._memory = lib.vkgdr_memory_alloc(owner._handle, _integer(size, 64, "size"),
                                              _integer(flags, 32, "flags"))
        if not self._memory:
            raise VkgdrError(last_error())
        self._owner = owner

    def free(self) -> None:
        """Frees the memory; with the context current that was so at the construction. May be called
        again, and does nothing then."""
        memory, self._memory = self._memory, None
        if memory:
            self._give_back(memory)

    def _live(self):
        if not self._memory:
            raise ValueError("the memory has been freed")
        return self._memory

    @property
    def device_ptr(self) -> int:
        """The CUDA device pointer."""
        return lib.vkgdr_memory_get_device_ptr(self._live())

    def __len__(self) -> int:
        return lib.vkgdr_memory_get_size(self._live())

    @property
    def is_coherent(self) -> bool:
        """Whether what the CPU wrote needs no flush, and what it reads no invalidate."""
        return lib.vkgdr_memory_is_coherent(self._live())

    @property
    def non_coherent_atom_size(self) -> int:
        """What offsets and sizes of flush and invalidate are multiples of, in bytes; 1 for coherent
        memory."""
        return lib.vkgdr_memory_non_coherent_atom_size(self._live())

    def flush(self, offset: int, size: int) -> None:
        """Makes what the CPU wrote to `size` bytes from `offset` visible to the device. Both are
        multiples of non_coherent_atom_size, or reach the end; here they are widened to them."""
        lib.vkgdr_memory_flush(self._live(), _integer(offset, 64, "offset"),
                               _integer(size, 64, "size"))

    def invalidate(self, offset: int, size: int) -> None:
        """Makes what the device wrote to `size` bytes from `offset` visible to the CPU. Both as for
        flush."""
        lib.vkgdr_memory_invalidate(self._live(), _integer(offset, 64, "offset"),
                                    _integer(size, 64, "size"))

    # ---- The CPU's side

    @property
    def _host_ptr(self):
        return lib.vkgdr_memory_get_host_ptr(self._live())

    @property
    def __array_interface__(self):
        return {"shape": (len(self),), "typestr": "|V1", "data": (self._host_ptr, False), "version": 3}

    def as_memoryview(self) -> memoryview:
        """The bytes as the CPU sees them, writable."""
        array = (ctypes.c_ubyte * len(self)).from_address(self._host_ptr)
        array.memory = self  # which it refers to
        return memoryview(array).cast("B")

    def __buffer__(self, flags):
        """From Python 3.12 on `memoryview(memory)` works. Before, a class of Python cannot export its
        buffer: as_memoryview does."""
        return self.as_memoryview()

    # ---- The device's side

    @property
    def __cuda_array_interface__(self):
        return {"shape": (len(self),), "typestr": "|u1", "data": (self.device_ptr, False),
                "strides": None, "stream": None, "version": 3}

    def __dlpack_device__(self):
        self._live()
        return (_dlpack.CUDA, lib.gpumem_vkgdr_device(self._owner._handle))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A tensor of bytes on the device, or on the CPU (without a copy) where `dl_device` asks for
        it. No work is queued here that `stream` would have to wait for."""
        del stream
        device = self.__dlpack_device__()
        wanted = tuple(map(int, dl_device)) if dl_device is not None else device
        addresses = {device: self.device_ptr, (_dlpack.CPU, 0): self._host_ptr}
        if copy or wanted not in addresses:
            raise BufferError("a copy was asked for" if copy else f"not on the DLPack device {wanted}")
        versioned = max_version is not None and max_version[0] >= _dlpack.VERSION[0]
        return _dlpack.capsule(self, addresses[wanted], wanted, len(self), versioned)
