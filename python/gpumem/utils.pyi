import enum
from collections.abc import Sequence
from dataclasses import dataclass

from . import Buffer, Device, Host, _Place, _Stream

__all__ = ["CopyOptions", "MemcpyOverlapMode", "MemcpySrcAccessOrder", "copy_batch", "discard_batch",
           "discard_prefetch_batch", "prefetch_batch"]

class MemcpySrcAccessOrder(enum.StrEnum):
    STREAM = "stream"
    DURING_API_CALL = "during_api_call"
    ANY = "any"

class MemcpyOverlapMode(enum.StrEnum):
    DEFAULT = "default"
    PREFER_OVERLAP_WITH_COMPUTE = "prefer_overlap_with_compute"

@dataclass
class CopyOptions:
    src_access_order: MemcpySrcAccessOrder | str = ...
    src_location_hint: Device | Host | None = ...
    dst_location_hint: Device | Host | None = ...
    overlap_mode: MemcpyOverlapMode | str = ...

def copy_batch(stream: _Stream, srcs: Sequence[Buffer], dsts: Sequence[Buffer], *, options: CopyOptions | Sequence[CopyOptions] | None = None) -> None: ...
def prefetch_batch(stream: _Stream, buffers: Sequence[Buffer], locations: _Place | Sequence[_Place]) -> None: ...
def discard_batch(stream: _Stream, buffers: Sequence[Buffer]) -> None: ...
def discard_prefetch_batch(stream: _Stream, buffers: Sequence[Buffer], locations: _Place | Sequence[_Place]) -> None: ...
