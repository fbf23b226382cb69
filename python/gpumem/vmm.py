"""Virtual memory by hand: reserve addresses, make memory, map it there, say who may use it.

A Reservation keeps what is mapped in it, so that the result of map() need not be kept. Nothing here waits for
queued work: whoever unmaps must know that the memory is no longer in use.
"""
import dataclasses
import os
import typing
import weakref

from . import _core
from ._library import Device, Host, device_of, ordinal_of
from .errors import BusyError, NotSupportedError
from .typing import VirtualMemoryAllocationType, VirtualMemoryHandleType, VirtualMemoryLocationType

__all__ = ["Mapping", "PhysicalMemory", "PhysicalMemoryOptions", "Reservation", "granularity", "reserve"]


@dataclasses.dataclass
class PhysicalMemoryOptions:
    """As the fields of the same names in VirtualMemoryResourceOptions; here all are requirements."""
    allocation_type: VirtualMemoryAllocationType | str = VirtualMemoryAllocationType.PINNED
    location_type: VirtualMemoryLocationType | str = VirtualMemoryLocationType.DEVICE
    handle_type: VirtualMemoryHandleType | str | None = VirtualMemoryHandleType.POSIX_FD
    gpu_direct_rdma: bool = False
    numa_node: int = 0
    compression: bool = False


def _in_c(options: PhysicalMemoryOptions | dict[str, object] | None) -> dict[str, object]:
    """Members of gpumem_physical_options."""
    if not isinstance(options, PhysicalMemoryOptions):
        if options is not None and not isinstance(options, dict):
            raise TypeError(f"options must be PhysicalMemoryOptions, a dict or None, not {type(options)}")
        options = PhysicalMemoryOptions(**(options or {}))  # type: ignore[arg-type]
    if options.handle_type == "win32_kmt":
        raise NotSupportedError("handle_type: 'win32_kmt' is Windows' alone")
    members = dict(vars(options))
    members["location"] = members.pop("location_type")
    return members


def _ordinal(device: Device | Host | int) -> int:
    return -1 if isinstance(device, Host) else ordinal_of(device)


def granularity(device: Device | int | None = None, options: PhysicalMemoryOptions | dict[str, object] | None = None,
                kind: str = "recommended") -> int:
    """Bytes, of which sizes and offsets of such memory are multiples; `kind`: "minimum" or "recommended"."""
    return int(_core.physical_granularity(device_of(device)._handle, _in_c(options), kind))


def reserve(size: int, *, alignment: int = 0, address: int = 0, device: Device | int | None = None) -> "Reservation":
    """A range of addresses without memory. `size`: a multiple of the device's minimum granularity.

    `alignment`: a power of two, of the address alone; 0: the granularity. `address`: preferred, if it is free.
    """
    return Reservation(size, alignment=alignment, address=address, device=device)


class Reservation:
    """A range of addresses, until it is closed."""

    def __init__(self, size: int, *, alignment: int = 0, address: int = 0,
                 device: Device | int | None = None) -> None:
        self.device = device_of(device)
        self._handle = _core.reservation_create(self.device._handle, size,
                                                {"alignment": alignment, "address_hint": address})
        info = _core.reservation_get_info(self._handle)
        self._address, self._size = int(info.address), int(info.bytes)
        self._at: dict[int, Mapping] = {}  # by offset; those that have been closed too

    @property
    def address(self) -> int:
        return self._address

    @property
    def size(self) -> int:
        return self._size

    @property
    def mappings(self) -> "tuple[Mapping, ...]":
        """What is mapped, by address."""
        return tuple(each for _, each in sorted(self._at.items()) if each.state == "mapped")

    def map(self, memory: "PhysicalMemory", offset: int = 0) -> "Mapping":
        """Maps all of `memory` at `offset`, with access for nobody."""
        if not isinstance(memory, PhysicalMemory):
            raise TypeError(f"memory must be PhysicalMemory, not {type(memory)}")
        mapping = Mapping._of(self, memory, offset)
        self._at[offset] = mapping
        return mapping

    def unmap(self, offset: int = 0, size: int | None = None) -> None:
        """Unmaps all that is mapped in the range, or nothing; what was there can be mapped again elsewhere."""
        size = self._size - offset if size is None else size
        _core.reservation_unmap(self._handle, offset, size)
        for start in [start for start in self._at if offset <= start < offset + size]:
            self._at.pop(start).close()

    def set_access(self, device: Device | Host | int, access: str | None = "rw", offset: int = 0,
                   size: int | None = None) -> None:
        """Says what a device, or the CPU (a Host, or -1), may do with a range that is wholly mapped: "rw", "r",
        or None for nothing."""
        size = self._size - offset if size is None else size
        _core.reservation_set_access(self._handle, offset, size, _ordinal(device), access)

    @property
    def is_closed(self) -> bool:
        return bool(self._handle.is_closed)

    def close(self) -> None:
        """Gives the addresses back; BusyError while anything is mapped there."""
        mapped = self.mappings
        if mapped:
            raise BusyError(f"{mapped[0].size} bytes are mapped at offset {mapped[0].offset}: unmap() comes first")
        self._at.clear()
        self._handle.close()

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(self, *_: object) -> None:
        """Unmaps what is mapped, and closes it."""
        if not self.is_closed:
            self.unmap()
            self.close()

    def __repr__(self) -> str:
        return f"<gpumem.vmm.Reservation of {self._size} bytes at {self._address:#x}>"


class PhysicalMemory:
    """Memory without an address. It is given back once it was closed and is mapped nowhere; close() refuses while
    it is mapped, the end of a `with` does not."""

    _handle: typing.Any

    def __init__(self, size: int, *, device: Device | int | None = None,
                 options: PhysicalMemoryOptions | dict[str, object] | None = None) -> None:
        found = device_of(device)
        self._begin(found, _core.physical_create(found._handle, size, _in_c(options)))

    def _begin(self, device: Device, handle: typing.Any) -> None:
        self.device, self._handle = device, handle
        self._mappings: weakref.WeakSet[Mapping] = weakref.WeakSet()
        self._size = int(_core.physical_get_properties(handle).bytes)

    @classmethod
    def _adopt(cls, device: Device, handle: typing.Any) -> "PhysicalMemory":
        memory = object.__new__(cls)
        memory._begin(device, handle)
        return memory

    @classmethod
    def import_fd(cls, fd: int, size: int, *, device: Device | int | None = None) -> "PhysicalMemory":
        """Memory of another process, or of this one; the caller closes `fd`."""
        found = device_of(device)
        if fd < 0:
            raise OSError(9, f"fd is {fd}: {os.strerror(9)}")
        handle = {"type": "posix_fd", "descriptor": fd}
        return cls._adopt(found, _core.physical_import(found._handle, handle, size))

    @classmethod
    def from_address(cls, address: int, size: int = 0, *, device: Device | int | None = None) -> "PhysicalMemory":
        """What is mapped there, by anybody; `size`: of the whole mapping, or 0 to ask the driver."""
        found = device_of(device)
        return cls._adopt(found, _core.physical_from_address(found._handle, address, size))

    @property
    def size(self) -> int:
        return self._size

    @property
    def properties(self) -> typing.Any:
        """What the driver reports: bytes, granularity, location, exports_fd and so on."""
        return _core.physical_get_properties(self._handle)

    def export_fd(self) -> int:
        """A new file descriptor for another process; the caller closes it."""
        return int(_core.physical_export(self._handle).descriptor)

    @property
    def is_closed(self) -> bool:
        return bool(self._handle.is_closed)

    def close(self) -> None:
        """BusyError while it is mapped."""
        for each in self._mappings:
            if each.state == "mapped":
                raise BusyError(f"the memory is mapped at {each.address:#x}: unmap it first")
        self._handle.close()

    def __enter__(self) -> "PhysicalMemory":
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close_later()

    def __repr__(self) -> str:
        return f"<gpumem.vmm.PhysicalMemory of {self._size} bytes{', closed' if self.is_closed else ''}>"


class Mapping:
    """Memory at addresses of a reservation, until it is closed or unmapped. Reservation.map makes it."""

    memory: PhysicalMemory
    _handle: typing.Any
    _range: typing.Any
    _address: int
    _size: int
    _offset: int

    def __init__(self) -> None:
        raise RuntimeError("a Mapping is made by Reservation.map")

    @classmethod
    def _of(cls, reservation: Reservation, memory: PhysicalMemory, offset: int) -> "Mapping":
        mapping = object.__new__(cls)
        mapping._handle = _core.mapping_create(reservation._handle, offset, memory._handle)
        info = _core.mapping_get_info(mapping._handle)
        mapping._range = reservation._handle
        mapping.memory, mapping._address, mapping._size, mapping._offset = memory, info.address, info.bytes, offset
        memory._mappings.add(mapping)
        return mapping

    @property
    def address(self) -> int:
        """Where it is, or was."""
        return self._address

    @property
    def size(self) -> int:
        return self._size

    @property
    def offset(self) -> int:
        """In the reservation."""
        return self._offset

    @property
    def state(self) -> str:
        """"mapped" or "unmapped"."""
        return "unmapped" if self._handle.is_closed else str(_core.mapping_get_info(self._handle).state)

    def set_access(self, device: Device | Host | int, access: str | None = "rw") -> None:
        """As Reservation.set_access, for this range."""
        if self._handle.is_closed:
            raise RuntimeError("the Mapping is unmapped")
        _core.reservation_set_access(self._range, self._offset, self._size, _ordinal(device), access)

    def get_access(self, device: Device | Host | int) -> str:
        """"rw", "r" or "none"."""
        return str(_core.mapping_get_access(self._handle, _ordinal(device)))

    def close(self) -> None:
        """Unmaps it, if it is mapped."""
        self._handle.close()

    def __enter__(self) -> "Mapping":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gpumem.vmm.Mapping of {self._size} bytes at {self._address:#x}, {self.state}>"
