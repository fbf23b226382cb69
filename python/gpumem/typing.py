"""The words that options take, as enums of strings, and the types of pointers and streams."""
import enum
import typing

__all__ = [
    "DevicePointerType", "IsStreamType", "ManagedMemoryLocationType", "VirtualMemoryAccessType",
    "VirtualMemoryAllocationType", "VirtualMemoryGranularityType", "VirtualMemoryHandleType",
    "VirtualMemoryLocationType",
]


class VirtualMemoryAllocationType(enum.StrEnum):
    PINNED = "pinned"
    MANAGED = "managed"


class VirtualMemoryLocationType(enum.StrEnum):
    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"
    HOST_NUMA_CURRENT = "host_numa_current"


class VirtualMemoryHandleType(enum.StrEnum):
    POSIX_FD = "posix_fd"
    WIN32_KMT = "win32_kmt"
    FABRIC = "fabric"


class VirtualMemoryGranularityType(enum.StrEnum):
    MINIMUM = "minimum"
    RECOMMENDED = "recommended"


class VirtualMemoryAccessType(enum.StrEnum):
    READ_WRITE = "rw"
    READ = "r"


class ManagedMemoryLocationType(enum.StrEnum):
    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"


@typing.runtime_checkable
class IsStreamType(typing.Protocol):
    def __cuda_stream__(self) -> tuple[int, int]:
        ...


DevicePointerType = int
