"""Libraries, devices and hosts: a driver that was opened, and what it has."""
import operator

from . import _core, errors

_default = None
_closing = False


class Library:
    def __init__(self, driver=None):
        self._handle = _core.open({} if driver is None else {"driver": driver})
        self._devices = {}
        self._info = _core.library_get_info(self._handle)

    @property
    def driver_kind(self):
        return self._info.driver_kind

    @property
    def driver_path(self):
        return self._info.driver_path

    @property
    def driver_version(self):
        return self._info.driver_version

    @property
    def devices(self):
        return tuple(map(self.device, range(self._info.device_count)))

    def device(self, device_id):
        number = operator.index(device_id)
        if not 0 <= number < self._info.device_count:
            raise ValueError(f"device_id is {number}; there are {self._info.device_count} devices, from 0 on")
        found = self._devices.get(number)
        if found is None:
            found = object.__new__(Device)
            found._begin(self, number)
            found = self._devices.setdefault(number, found)
        return found

    def device_by_uuid(self, uuid):
        wanted = getattr(uuid, "bytes", None)
        if wanted is None:
            import uuid as uuids
            wanted = uuids.UUID(str(uuid).removeprefix("GPU-")).bytes
        for device in self.devices:
            if device.properties.uuid == wanted:
                return device
        raise ValueError(f"uuid: no device has {uuid}")

    def stats(self):
        return _core.library_get_stats(self._handle)

    def snapshot(self):
        import json
        return json.loads(_core.snapshot(self._handle, {}))

    @property
    def is_closed(self):
        return self._handle.is_closed

    def close(self):
        """Ends it as soon as nothing of it is used any more."""
        for device in self._devices.values():
            device._end()
        self._handle.close_later()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<gpumem.Library {self.driver_kind}, {self.driver_path}>"


def open(driver=None):  # pylint: disable=redefined-builtin
    return Library(driver)


def default_library():
    global _default
    if _default is None or _default.is_closed:
        _default = Library()
    return _default


def _driver_name(code):
    return _core.error_name(_default._handle, code) if _default is not None and not _default.is_closed else ""


errors.driver_name = _driver_name


class Device:
    """One object for each ordinal of a library. The device is opened, and its context made, when that is
    needed first."""

    def __new__(cls, device_id=None):
        if isinstance(device_id, cls):
            return device_id
        library = default_library()
        if device_id is None:
            device_id = max(_core.current_device(library._handle), 0)
        return library.device(device_id)

    def _begin(self, library, number):
        self._library, self._number = library, number
        self._opened = None
        self._default_resource = None
        self._internal = None

    @property
    def _handle(self):
        if self._opened is None or self._opened.is_closed:
            opened = _core.device_open(self._library._handle, self._number)
            if self._opened is None or self._opened.is_closed:
                self._opened = opened
        return self._opened

    def _end(self):
        self._internal = self._default_resource = None
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close_later()

    def __init__(self, device_id=None):
        pass

    def __repr__(self):
        return f"<gpumem.Device {self._number} ({self.name})>"

    def __int__(self):
        return self._number

    def __reduce__(self):
        return Device, (self._number,)

    @property
    def device_id(self):
        return self._number

    @property
    def library(self):
        return self._library

    @property
    def properties(self):
        return _core.device_get_info(self._library._handle, self._number)

    @property
    def name(self):
        return self.properties.name

    @property
    def uuid(self):
        import uuid
        return str(uuid.UUID(bytes=self.properties.uuid))

    @property
    def pci_bus_id(self):
        return self.properties.pci_bus_id

    @property
    def compute_capability(self):
        import collections
        properties = self.properties
        return collections.namedtuple("ComputeCapability", "major minor")(properties.compute_major,
                                                                         properties.compute_minor)

    @property
    def granularity_minimum(self):
        return self.properties.granularity_minimum

    @property
    def granularity_recommended(self):
        return self.properties.granularity_recommended

    @property
    def context(self):
        return _core.device_context(self._handle)

    def can_access_peer(self, peer):
        return _core.device_can_access_peer(self._handle, ordinal_of(peer))

    def capability(self, name):
        return _core.device_get_capability(self._handle, name)

    def vulkan(self):
        return _core.device_get_vulkan_info(self._library._handle, self._number)

    def memory_info(self):
        return _core.device_get_memory(self._handle)

    def stats(self):
        return _core.device_get_stats(self._handle)

    def snapshot(self):
        return self._library.snapshot()

    def trim(self, wait=False):
        _core.device_trim(self._handle, wait)

    @property
    def memory_resource(self):
        if self._default_resource is None:
            from ._resources import DeviceMemoryResource
            self._default_resource = DeviceMemoryResource(self)
        return self._default_resource

    @memory_resource.setter
    def memory_resource(self, resource):
        if not isinstance(resource, _core.MemoryResource):
            raise TypeError(f"memory_resource must be a MemoryResource, not {type(resource)}")
        self._default_resource = resource

    def allocate(self, size, stream=None):
        return self.memory_resource.allocate(size, stream=stream)

    @property
    def default_stream(self):
        from ._stream import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM
        import os
        per_thread = os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "0") not in ("", "0")
        return PER_THREAD_DEFAULT_STREAM if per_thread else LEGACY_DEFAULT_STREAM

    def create_stream(self, obj=None, options=None):
        from ._stream import create_stream
        return create_stream(self, obj, options)

    def create_event(self, options=None):
        from ._stream import create_event
        return create_event(self, options)

    @property
    def _internal_stream(self):
        """For what names no stream; ordered with nothing else. Buffers outlive their library's close, and use
        the default stream then."""
        if self._internal is None:
            if self._library.is_closed:
                from ._stream import LEGACY_DEFAULT_STREAM
                return LEGACY_DEFAULT_STREAM
            self._internal = self.create_stream()
        return self._internal

    def set_current(self, ctx=None):
        if ctx is not None:
            raise TypeError("ctx: only the primary context of the device can be made current here")
        _core.set_current(self._handle)

    def sync(self):
        _core.device_synchronize(self._handle)

    @classmethod
    def get_all_devices(cls):
        return default_library().devices


def ordinal_of(device):
    """The ordinal of a Device, of cuda.core's too, or of an int."""
    number = getattr(device, "device_id", device)
    if isinstance(number, bool):
        raise TypeError("device must be a Device or an int, not a bool")
    return operator.index(number)


def device_of(device, library=None):
    """The Device that is meant by a Device, an int, or None."""
    if isinstance(device, Device):
        return device
    if device is None:
        return Device()
    return (library or default_library()).device(ordinal_of(device))


class Host:
    """A place in host memory, for managed memory: all of it, a node, or the node of the calling thread."""

    __slots__ = ("_numa_id", "_current")

    def __init__(self, numa_id=None, is_numa_current=False):
        if numa_id is not None and is_numa_current:
            raise ValueError("numa_id and is_numa_current: one of them")
        if numa_id is not None and (operator.index(numa_id) < 0 or isinstance(numa_id, bool)):
            raise ValueError(f"numa_id is {numa_id}, below 0")
        self._numa_id, self._current = numa_id, bool(is_numa_current)

    @classmethod
    def numa_current(cls):
        return cls(is_numa_current=True)

    @property
    def numa_id(self):
        return self._numa_id

    @property
    def is_numa_current(self):
        return self._current

    def __eq__(self, other):
        if not isinstance(other, Host):
            return NotImplemented
        return (self._numa_id, self._current) == (other._numa_id, other._current)

    def __hash__(self):
        return hash((Host, self._numa_id, self._current))

    def __repr__(self):
        return "Host.numa_current()" if self._current else f"Host(numa_id={self._numa_id})"


def end_unused():
    """At exit: what the package itself has kept."""
    global _default
    library, _default = _default, None
    errors.driver_name = None
    if library is not None and not library.is_closed:
        library.close()
