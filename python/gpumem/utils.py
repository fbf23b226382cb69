"""Work on several Buffers at once, and hints about copies. The name and the signatures are cuda.core's."""
import dataclasses
import enum

from . import _core
from ._buffer import Buffer, device_of
from ._library import Device, Host
from ._managed import discard, place, prefetch
from ._stream import NO_STREAM

__all__ = ["CopyOptions", "MemcpyOverlapMode", "MemcpySrcAccessOrder", "copy_batch", "discard_batch",
           "discard_prefetch_batch", "prefetch_batch"]


class MemcpySrcAccessOrder(enum.StrEnum):
    """When a copy may read its source: in order of the stream; before the call returns; or at any time until the
    copy is done. With the last two no earlier work of the stream may still write the source."""

    STREAM = "stream"
    DURING_API_CALL = "during_api_call"
    ANY = "any"


class MemcpyOverlapMode(enum.StrEnum):
    """Whether a copy should run beside kernels."""

    DEFAULT = "default"
    PREFER_OVERLAP_WITH_COMPUTE = "prefer_overlap_with_compute"


@dataclasses.dataclass
class CopyOptions:
    """Hints about a copy. Where the memory is likely to be is a Device or a Host, and matters for managed and
    pageable memory alone."""

    src_access_order: MemcpySrcAccessOrder | str = MemcpySrcAccessOrder.STREAM
    src_location_hint: Device | Host | None = None
    dst_location_hint: Device | Host | None = None
    overlap_mode: MemcpyOverlapMode | str = MemcpyOverlapMode.DEFAULT


# The driver's numbers (CUmemcpySrcAccessOrder, CUmemcpyFlags, CUmemLocationType).
_ORDERS = {"stream": 1, "during_api_call": 2, "any": 3}
_OVERLAPS = {"default": 0, "prefer_overlap_with_compute": 1}
_LOCATIONS = {"device": 1, "host": 2, "host_numa": 3, "host_numa_current": 4}


def _number(options, name, numbers):
    word = getattr(options, name)
    if not isinstance(word, str):
        raise TypeError(f"options: {name} must be a str, not {type(word)}")
    if str(word) not in numbers:
        raise ValueError(f"options: {name} is {word!r}; it is one of {', '.join(numbers)}")
    return numbers[str(word)]


def _location(options, name):
    given = getattr(options, name)
    if given is None:
        return 0, 0
    word, number = place(given, f"options: {name}")
    return _LOCATIONS[word], number


def _hint(options):
    if not isinstance(options, CopyOptions):
        raise TypeError(f"options must be CopyOptions, not {type(options)}")
    return (_number(options, "src_access_order", _ORDERS), _number(options, "overlap_mode", _OVERLAPS),
            *_location(options, "src_location_hint"), *_location(options, "dst_location_hint"))


def _hints(options, count):
    """A hint for each copy, or None: a single one is for all of them."""
    if options is None:
        return None
    if isinstance(options, (CopyOptions, str, dict)) or not hasattr(options, "__len__"):
        return (_hint(options),) * count
    if len(options) != count:
        raise ValueError(f"options: {len(options)} for {count} copies")
    return tuple(map(_hint, options))


def _sequence(buffers, name):
    if isinstance(buffers, Buffer):
        raise TypeError(f"{name} must be a sequence of Buffers; a Buffer has methods of its own for one")
    buffers = tuple(buffers)
    for each in buffers:
        if not isinstance(each, Buffer):
            raise TypeError(f"{name} must be Buffers, not {type(each)}")
        each._check()
    return buffers


def _refuse_stream(stream, device, what):
    if stream is not None and getattr(stream, "handle", stream) in (0, 1):
        raise TypeError(f"stream: {what} cannot be queued on the legacy default stream")
    if stream is not None and _core.stream_is_capturing(device._handle, stream):
        raise TypeError(f"stream: {what} cannot be captured")


def copy_batch(stream, srcs, dsts, *, options=None):
    """Copies each source to its destination, of the same size, by one call of the driver. The copies may run in any
    order: none may write what another reads or writes."""
    sources, targets = _sequence(srcs, "srcs"), _sequence(dsts, "dsts")
    stream = None if stream is NO_STREAM else stream
    if len(sources) != len(targets):
        raise ValueError(f"srcs and dsts: {len(sources)} and {len(targets)} Buffers")
    hints = _hints(options, len(sources))
    for number, (source, target) in enumerate(zip(sources, targets)):
        if source.size != target.size:
            raise ValueError(f"srcs and dsts: copy {number} is of {source.size} and {target.size} bytes")
    kept = [index for index, each in enumerate(sources) if each.size]
    if not kept:
        return
    device = device_of(targets[0])
    _refuse_stream(stream, device, "a batch" if options is None else "a copy with options")
    used = device._internal_stream if stream is None else stream
    if stream is None:
        for each in (*sources, *targets):
            if each.size:
                _core.buffer_order(each, used)
    report = _core.buffer_copy_batch(device._handle, tuple(targets[index] for index in kept),
                                     tuple(sources[index] for index in kept), used,
                                     None if hints is None else tuple(hints[index] for index in kept))
    at_once = hints is not None and any(hint[0] == _ORDERS["during_api_call"] for hint in hints)
    if stream is None or at_once and not report.batched:  # one by one, copies read in the stream's order
        _core.buffer_synchronize(sources[kept[0]], used)


def _places(locations, count):
    """A place for each of the Buffers: a single one is for all of them."""
    if isinstance(locations, (Device, Host, int, str)) or not hasattr(locations, "__len__"):
        return [place(locations, "locations")] * count
    if len(locations) != count:
        raise ValueError(f"locations: {len(locations)} for {count} buffers")
    return [place(each, "locations") for each in locations]


def _managed(stream, buffers, what):
    buffers = _sequence(buffers, "buffers")
    for each in buffers:
        if not each.is_managed:
            raise ValueError("buffers: memory that is not managed cannot be moved")
    if buffers:
        _refuse_stream(stream, device_of(buffers[0]), what)
    return buffers


def prefetch_batch(stream, buffers, locations):
    """ManagedBuffer.prefetch of each, to its place or to one for all."""
    buffers = _managed(stream, buffers, "a prefetch")
    for each, to in zip(buffers, _places(locations, len(buffers))):
        prefetch(each, to, stream)


def discard_batch(stream, buffers):
    """ManagedBuffer.discard of each."""
    for each in _managed(stream, buffers, "a discard"):
        discard(each, None, stream)


def discard_prefetch_batch(stream, buffers, locations):
    """ManagedBuffer.discard_prefetch of each, to its place or to one for all."""
    buffers = _managed(stream, buffers, "a discard")
    for each, to in zip(buffers, _places(locations, len(buffers))):
        discard(each, to, stream)
