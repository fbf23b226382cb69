"""Device memory that the CPU reads and writes, for pycuda."""
import os

import pycuda.driver

from . import RawMemory, Vkgdr, VkgdrError

__all__ = ["Memory"]


class Memory(pycuda.driver.PointerHolderBase, RawMemory):
    """RawMemory that is freed when nothing refers to it any more. It may be the `gpudata` of a
    pycuda.gpuarray.GPUArray.

    The context that is current at the construction is kept, and made current to free: it must not be
    destroyed before. Raises VkgdrError, also when no context is current.
    """

    _context = None
    _process = None
    # Kept here: at the interpreter's end the module may be empty.
    _free_raw = RawMemory.free
    _this_process = staticmethod(os.getpid)

    def __init__(self, owner: Vkgdr, size: int, flags: int = 0):
        pycuda.driver.PointerHolderBase.__init__(self)
        context = pycuda.driver.Context.get_current()
        if context is None:
            raise VkgdrError("no current CUDA context")
        RawMemory.__init__(self, owner, size, flags)
        self._context, self._process = context, self._this_process()

    def get_pointer(self):
        """For pycuda: the device pointer."""
        return self.device_ptr

    def free(self) -> None:
        """Frees the memory, whichever context is current. May be called again, and does nothing
        then."""
        context, self._context = self._context, None
        if context is None:
            return
        if self._process != self._this_process():  # a forked child has no context
            self._free_raw()
            return
        context.push()
        try:
            self._free_raw()
        finally:
            context.pop()

    def __del__(self):
        self.free()
