"""GPU memory of every kind, on NVIDIA's driver or on a software GPU: cuda.core's memory classes, and more.

`import gpumem as cc` runs code that was written for cuda.core's memory. Nothing is opened by the import.
"""
import atexit as _atexit

from . import _buffer, _core, _library, _log, errors
from ._buffer import Buffer, Watch, WatchEvent
from ._ipc import IPCAllocationHandle, IPCBufferDescriptor, IPCEventDescriptor
from ._library import Device, Host, Library, default_library, open  # pylint: disable=redefined-builtin
from ._resources import (DeviceMemoryResource, GraphMemoryResource, LegacyPinnedMemoryResource,
                         ManagedMemoryResource, MemoryResource, PinnedMemoryResource)
from ._stream import LEGACY_DEFAULT_STREAM, NO_STREAM, PER_THREAD_DEFAULT_STREAM, Event, Stream
from ._virtual import MappedMemoryResource, VirtualMemoryResource
from ._wrappers import (AlignmentMemoryResource, AllocationFailure, CachingMemoryResource, CapturePool,
                        FailureMemoryResource, FallbackMemoryResource, LimitMemoryResource, LoggingMemoryResource,
                        TrackingMemoryResource)
from .errors import *  # noqa: F403  pylint: disable=wildcard-import

_core.setup(errors.make, _log.log, _buffer.adopt, _buffer.without_stream, _buffer.internal_stream)

# Modules that are imported when a name of theirs is first used.
_LATER = {name: "_options" for name in (
    "AlignmentMemoryResourceOptions", "CachingMemoryResourceOptions", "DeviceMemoryResourceOptions", "EventOptions",
    "LegacyPinnedMemoryResourceOptions", "ManagedMemoryResourceOptions", "MappedMemoryResourceOptions",
    "PinnedMemoryResourceOptions", "StreamOptions", "TrackingMemoryResourceOptions",
    "VirtualMemoryResourceOptions")} | {"ManagedBuffer": "_managed", "Status": "_enums"}
_MODULES = ("cuda_core", "softgpu", "typing", "utils", "vkgdr", "vmm")

__all__ = [
    "AlignmentMemoryResource", "AllocationFailure", "Buffer", "CachingMemoryResource", "CapturePool", "Device", "DeviceMemoryResource", "Event",
    "FailureMemoryResource", "FallbackMemoryResource", "GraphMemoryResource", "Host",
    "IPCAllocationHandle", "IPCBufferDescriptor", "IPCEventDescriptor", "LEGACY_DEFAULT_STREAM",
    "LegacyPinnedMemoryResource",
    "Library", "LimitMemoryResource", "LoggingMemoryResource", "ManagedMemoryResource", "MappedMemoryResource",
    "MemoryResource", "NO_STREAM", "PER_THREAD_DEFAULT_STREAM", "PinnedMemoryResource", "Stream",
    "TrackingMemoryResource", "VirtualMemoryResource", "Watch", "WatchEvent", "default_library", "get_include", "get_library_dir", "open", *errors.__all__, *_LATER,
]


def __getattr__(name):
    import importlib
    module = _LATER.get(name)
    if module is None and name not in _MODULES:
        raise AttributeError(f"module 'gpumem' has no attribute {name!r}")
    loaded = importlib.import_module(f".{module or name}", __name__)
    value = getattr(loaded, name) if module else loaded
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_LATER, *_MODULES})


def get_library_dir():
    """The folder that has libgpumem.so: of this package, or wherever the loader found it."""
    import os.path
    return os.path.dirname(os.path.realpath(_core.library_file()))


def get_include():
    """The folder for a compiler's -I."""
    import os.path
    package = os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")
    if os.path.isdir(package):
        return package
    return os.path.join(os.path.dirname(get_library_dir()), "include")


def _end():
    _library.end_unused()
    _core.at_exit()


__version__ = "{0}.{1}.{2}".format(_core.version() // 10000, _core.version() // 100 % 100, _core.version() % 100)
_atexit.register(_end)
