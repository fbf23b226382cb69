"""Options of resources, streams and events: cuda.core's fields first, in its order, then ours, which are
named as in the C interface."""
import dataclasses

from .typing import (VirtualMemoryAccessType, VirtualMemoryAllocationType, VirtualMemoryGranularityType,
                     VirtualMemoryHandleType, VirtualMemoryLocationType)


@dataclasses.dataclass
class StreamOptions:
    nonblocking: bool = True
    priority: int | None = None


@dataclasses.dataclass
class EventOptions:
    timing_enabled: bool = False
    blocking_sync: bool = False
    ipc_enabled: bool = False


@dataclasses.dataclass
class DeviceMemoryResourceOptions:
    ipc_enabled: bool = False
    max_size: int = 0
    release_threshold: int = 0
    pool: str | None = None
    handle_type: str = "posix_fd"


@dataclasses.dataclass
class PinnedMemoryResourceOptions:
    ipc_enabled: bool = False
    max_size: int = 0
    numa_id: int | None = None
    pool: str | None = None
    keep_bytes: int = 0
    keep_nothing: bool = False


@dataclasses.dataclass
class LegacyPinnedMemoryResourceOptions:
    method: str = "auto"
    portable: bool = False
    write_combined: bool = False
    numa_id: int | None = None
    touch_threads: int = 0
    slab_bytes: int = 0
    max_size: int = 0
    keep_bytes: int = 0
    keep_nothing: bool = False
    huge_pages: str = "transparent"


@dataclasses.dataclass
class ManagedMemoryResourceOptions:
    preferred_location: int | None = None
    preferred_location_type: str | None = None
    method: str = "pool"
    pool: str | None = None
    read_mostly: bool = False


@dataclasses.dataclass
class VirtualMemoryResourceOptions:
    allocation_type: VirtualMemoryAllocationType | str = VirtualMemoryAllocationType.PINNED
    location_type: VirtualMemoryLocationType | str = VirtualMemoryLocationType.DEVICE
    handle_type: VirtualMemoryHandleType | str | None = VirtualMemoryHandleType.POSIX_FD
    granularity: VirtualMemoryGranularityType | str = VirtualMemoryGranularityType.RECOMMENDED
    gpu_direct_rdma: bool = False
    addr_hint: int | None = 0
    addr_align: int | None = None
    peers: object = dataclasses.field(default_factory=tuple)
    self_access: VirtualMemoryAccessType | str | None = VirtualMemoryAccessType.READ_WRITE
    peer_access: VirtualMemoryAccessType | str | None = VirtualMemoryAccessType.READ_WRITE
    numa_node: int = 0
    handle_strict: bool = False
    compression: bool = False
    capacity: int = 0
    minimum_chunk_bytes: int = 0
    maximum_chunk_bytes: int = 0
    growth_percent: int = 0
    exact_growth: bool = False
    give_back_bytes: int = 0
    cache_bytes: int = 0


@dataclasses.dataclass
class MappedMemoryResourceOptions:
    method: str = "any"
    method_strict: bool = False
    require_coherent: bool = False
    force_non_coherent: bool = False
    capacity: int = 0
    maximum_chunk_bytes: int = 0
    cache_bytes: int = 0
    slab_bytes: int = 0
    max_size: int = 0


@dataclasses.dataclass
class CachingMemoryResourceOptions:
    segment_bytes: int = 0
    maximum_small_bytes: int = 0
    thread_bytes: int = 0
    max_size: int = 0
    idle_bytes: int = 0
    committed_ratio: float = 0.0
    reserve_bytes: int = 0
    never_waits: bool = False


@dataclasses.dataclass
class TrackingMemoryResourceOptions:
    frames: int = 0


@dataclasses.dataclass
class AlignmentMemoryResourceOptions:
    size_multiple: int = 0
    threshold: int = 0


__all__ = [name for name in globals() if name.endswith("Options")]
