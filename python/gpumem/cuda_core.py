"""Memory of gpumem's for programs of cuda.core: its Buffers, so that cuda.core.launch takes them.

    cache = gpumem.CachingMemoryResource(gpumem.DeviceMemoryResource(0))
    cuda.core.Device(0).memory_resource = gpumem.cuda_core.MemoryResource(cache)
"""
import typing

import cuda.core

from . import _core
from ._buffer import Buffer

__all__ = ["MemoryResource"]


class MemoryResource(cuda.core.MemoryResource):  # type: ignore[misc,unused-ignore]
    """A resource of cuda.core's over one of gpumem's, of which it has the buffers and streams' order."""

    def __init__(self, resource: typing.Any) -> None:
        if not isinstance(resource, _core.MemoryResource):
            raise TypeError(f"resource must be a MemoryResource of gpumem's, not {type(resource)}")
        self._resource = resource
        self._open: dict[int, Buffer] = {}  # by address

    @property
    def resource(self) -> typing.Any:
        """gpumem's."""
        return self._resource

    def allocate(self, size: int, stream: typing.Any = None) -> typing.Any:
        """A cuda.core.Buffer. Without a stream it is ready at return, on every stream."""
        ours = self._resource.allocate(size, stream)
        address = ours.handle
        if not address:
            ours.close()
        else:
            self._open[address] = ours
        try:
            return cuda.core.Buffer.from_handle(address, ours.size, mr=self, stream=stream)
        except BaseException:
            self.deallocate(address, size)
            raise

    def deallocate(self, ptr: typing.Any, size: int, stream: typing.Any = None) -> None:
        """What cuda.core calls when a Buffer ends. ValueError: there is none at `ptr`."""
        address = int(ptr)
        ours = self._open.pop(address, None)
        if ours is not None:
            ours.close(stream)
        elif address or size:
            raise ValueError(f"ptr is {address:#x}, where no buffer of this resource is")

    def buffer_of(self, buffer: typing.Any) -> Buffer:
        """gpumem's Buffer behind a Buffer of this resource: what it can do more is done with that one. The other
        keeps the size it was made with."""
        ours = self._open.get(int(buffer.handle))
        if ours is None:
            raise ValueError("buffer is not an open Buffer of this resource")
        return ours

    @property
    def device_id(self) -> int:
        return int(self._resource.device_id)

    @property
    def is_device_accessible(self) -> bool:
        return bool(self._resource.is_device_accessible)

    @property
    def is_host_accessible(self) -> bool:
        return bool(self._resource.is_host_accessible)

    @property
    def is_managed(self) -> bool:
        return bool(self._resource.is_managed)

    def close(self) -> None:
        """Closes gpumem's: no allocation any more; buffers stay."""
        self._resource.close()

    @property
    def is_closed(self) -> bool:
        return bool(self._resource.is_closed)

    def __repr__(self) -> str:
        return f"<gpumem.cuda_core.MemoryResource over {self._resource!r}>"
