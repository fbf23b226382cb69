"""MemoryResource: what the extension leaves to Python, and the resources over the driver's pools."""
import operator

from . import _core
from ._ipc import SharedPool
from ._library import Device, Host, device_of, ordinal_of
from ._stream import add_methods

MemoryResource = _core.MemoryResource


def options_of(options, name):
    """Options as their dataclass, from a dict or the dataclass; None stays None."""
    if options is None:
        return None
    from . import _options
    kind = getattr(_options, name)
    if isinstance(options, dict):
        return kind(**options)
    if not isinstance(options, kind):
        raise TypeError(f"options must be {name}, a dict or None, not {type(options)}")
    return options


class _MemoryResourceMethods:
    @property
    def device_id(self):
        raise NotImplementedError(f"{type(self).__name__} has no device_id")

    @property
    def is_managed(self):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


add_methods(MemoryResource, _MemoryResourceMethods)


class Resource(MemoryResource):
    """What all resources of the library have: those over the driver, and those around another resource."""

    device: Device

    @property
    def device_id(self):
        return self.device.device_id

    @property
    def properties(self):
        return _core.resource_get_properties(self)

    def stats(self):
        return _core.resource_get_stats(self)

    def trim(self, keep_bytes=0):
        _core.resource_trim(self, keep_bytes)

    def set_access(self, device, access):
        _core.resource_set_access(self, ordinal_of(device), access)

    def get_access(self, device):
        return _core.resource_get_access(self, ordinal_of(device))

    def watch(self, callback):
        """As Buffer.watch, for all its present and future buffers."""
        from ._buffer import Watch
        return Watch(self, callback)

    def __repr__(self):
        return f"<gpumem.{type(self).__name__}{', closed' if self.is_closed else ''}>"


class PoolAttributes:
    """A pool's attributes, read and, where the driver allows it, written."""

    __slots__ = ("_pool",)

    def __init__(self, pool):
        self._pool = pool

    def __repr__(self):
        return f"PoolAttributes({', '.join(f'{name}={getattr(self, name)}' for name in POOL_ATTRIBUTES)})"


def _attribute(name, of_c, convert):
    def read(self):
        return convert(_core.pool_get_attribute(self._pool, of_c))

    def write(self, value):
        _core.pool_set_attribute(self._pool, of_c, int(value))

    return property(read, write)


POOL_ATTRIBUTES = {
    "reuse_follow_event_dependencies": ("reuse_follow_event_dependencies", bool),
    "reuse_allow_opportunistic": ("reuse_allow_opportunistic", bool),
    "reuse_allow_internal_dependencies": ("reuse_allow_internal_dependencies", bool),
    "release_threshold": ("release_threshold", int),
    "reserved_mem_current": ("reserved_current", int),
    "reserved_mem_high": ("reserved_high", int),
    "used_mem_current": ("used_current", int),
    "used_mem_high": ("used_high", int),
}
for _name, (_of_c, _convert) in POOL_ATTRIBUTES.items():
    setattr(PoolAttributes, _name, _attribute(_name, _of_c, _convert))


class Pool(Resource):
    """A resource over a pool of the driver's."""

    _owned = False

    def _begin(self):
        """After the C resource has been made."""
        self._owned = not self.is_stream_ordered or self._info().owned

    def _info(self):
        return _core.pool_get_info(self)

    @property
    def attributes(self):
        return PoolAttributes(self)

    @property
    def handle(self):
        return 0 if self.is_closed else self._info().handle

    @property
    def is_handle_owned(self):
        return not self.is_closed and self._owned

    @property
    def is_ipc_enabled(self):
        return not self.is_closed and self._info().ipc_enabled

    @property
    def is_mapped(self):
        return not self.is_closed and self._info().mapped

    @property
    def uuid(self):
        info = self._info()
        if not info.has_uuid:
            return None
        import uuid
        return uuid.UUID(bytes=info.uuid)

    def close(self):
        if self._owned:
            super().close()


class PeerAccess:
    """The devices that have access to a pool, besides its own: a set that can be changed."""

    __slots__ = ("_pool",)

    def __init__(self, pool):
        self._pool = pool

    def _ordinals(self):
        own = self._pool.device_id
        count = len(self._pool.device.library.devices)
        return [n for n in range(count) if n != own and self._pool.get_access(n) != "none"]

    def __contains__(self, device):
        return ordinal_of(device) in self._ordinals()

    def __iter__(self):
        return map(self._pool.device.library.device, self._ordinals())

    def __len__(self):
        return len(self._ordinals())

    def __eq__(self, other):
        return set(self._ordinals()) == {ordinal_of(each) for each in other}

    def __repr__(self):
        return f"{{{', '.join(map(str, self._ordinals()))}}}"

    def add(self, device):
        self._pool.set_access(device, "rw")

    def discard(self, device):
        if device in self:
            self._pool.set_access(device, "none")

    def remove(self, device):
        if device not in self:
            raise KeyError(device)
        self.discard(device)

    def clear(self):
        for number in self._ordinals():
            self.discard(number)

    def update(self, devices):
        for device in devices:
            self.add(device)


class DeviceMemoryResource(SharedPool, Pool):
    _location = "device"

    def __init__(self, device_id, options=None):
        self.device = device_of(device_id)
        given = options_of(options, "DeviceMemoryResourceOptions")
        in_c = {} if given is None else {
            "pool": given.pool or "own", "ipc": given.ipc_enabled, "maximum_bytes": given.max_size,
            "release_threshold": given.release_threshold, "handle_type": given.handle_type}
        _core.device_pool_resource_create(self.device._handle, in_c, self)
        self._begin()

    @classmethod
    def from_allocation_handle(cls, device_id, alloc_handle):
        return cls._map(device_of(device_id), alloc_handle, -1)

    @property
    def peer_accessible_by(self):
        return PeerAccess(self)

    @peer_accessible_by.setter
    def peer_accessible_by(self, devices):
        wanted = {ordinal_of(each) for each in devices} - {self.device_id}
        for number in wanted:
            self.device.library.device(number)
        present = PeerAccess(self)
        for number in present._ordinals():
            if number not in wanted:
                present.discard(number)
        present.update(wanted)


class PinnedMemoryResource(SharedPool, Pool):
    _location = "host"

    def __init__(self, options=None):
        self.device = Device()
        given = options_of(options, "PinnedMemoryResourceOptions")
        in_c = {"method": "pool"}
        if given is not None:
            in_c.update(pool=given.pool or "own", ipc=given.ipc_enabled, maximum_bytes=given.max_size,
                        keep_bytes=given.keep_bytes, keep_nothing=given.keep_nothing)
            if given.numa_id is not None:
                in_c.update(numa_bind=True, numa_node=given.numa_id)
        _core.pinned_resource_create(self.device._handle, in_c, self)
        self._begin()

    @property
    def device_id(self):
        return -1

    @classmethod
    def from_allocation_handle(cls, alloc_handle):
        return cls._map(Device(), alloc_handle, -1)

    @property
    def numa_id(self):
        return self._info().numa_node


class LegacyPinnedMemoryResource(Resource):
    def __init__(self, options=None):
        self.device = Device()
        given = options_of(options, "LegacyPinnedMemoryResourceOptions")
        in_c = {}
        if given is not None:
            in_c.update(method=given.method, flags=given.portable * 1 | given.write_combined * 4,
                        touch_threads=given.touch_threads, slab_bytes=given.slab_bytes,
                        maximum_bytes=given.max_size, keep_bytes=given.keep_bytes,
                        keep_nothing=given.keep_nothing, huge_pages=given.huge_pages)
            if given.numa_id is not None:
                in_c.update(numa_bind=True, numa_node=given.numa_id)
        _core.pinned_resource_create(self.device._handle, in_c, self)

    @property
    def device_id(self):
        return -1

    def warm_up(self, size):
        _core.pinned_warm_up(self, size)

    def info(self):
        return _core.pinned_get_info(self)


class ManagedMemoryResource(Pool):
    def __init__(self, options=None):
        given = options_of(options, "ManagedMemoryResourceOptions")
        location, kind = (None, None) if given is None else (given.preferred_location,
                                                             given.preferred_location_type)
        self._preferred, in_c = _preferred(location, kind)
        self.device = device_of(location if in_c["preferred"] == "on_device" else None)
        in_c["method"] = "pool" if given is None else given.method
        if given is not None and given.method == "pool":
            in_c["pool"] = given.pool or "own"
        if given is not None:
            in_c["read_mostly"] = given.read_mostly
        _core.managed_resource_create(self.device._handle, in_c, self)
        self._begin()

    @property
    def preferred_location(self):
        return self._preferred

    @property
    def is_managed(self):
        return True

    @property
    def device_id(self):
        return self._preferred[1] if self._preferred and self._preferred[0] == "device" else -1


def _preferred(location, kind):
    """((type, id) or None, members of gpumem_managed_options) of a preferred location as cuda.core has it."""
    if isinstance(location, Host):
        kind = "host_numa" if location.numa_id is not None or location.is_numa_current else "host"
        location = location.numa_id
    elif isinstance(location, Device):
        location, kind = location.device_id, "device"
    if location is not None:
        location = operator.index(location)
    if kind is None:
        if location is None:
            return None, {"preferred": "anywhere"}
        if location == -1:
            return ("host", None), {"preferred": "on_host"}
        kind = "device"
    if kind == "device":
        if location is None or location < 0:
            raise ValueError("preferred_location: the type 'device' needs an ordinal")
        return ("device", location), {"preferred": "on_device"}
    if kind == "host":
        if location is not None:
            raise ValueError("preferred_location: the type 'host' has none")
        return ("host", None), {"preferred": "on_host"}
    if kind == "host_numa":
        node = max(Device().properties.host_numa_node, 0) if location is None else location
        if node < 0:
            raise ValueError(f"preferred_location: there is no node {node}")
        return ("host_numa", node), {"preferred": "on_numa_node", "numa_node": node}
    raise ValueError(f"preferred_location_type is {kind!r}; it is 'device', 'host' or 'host_numa'")


class GraphMemoryAttributes:
    """What the driver holds for graphs of a device."""

    __slots__ = ("_device",)

    def __init__(self, device):
        self._device = device


def _graph_attribute(of_c):
    def read(self):
        return _core.graph_memory_get_attribute(self._device._handle, of_c)

    def write(self, value):
        _core.graph_memory_set_attribute(self._device._handle, of_c, value)

    return property(read, write)


for _name in ("reserved_mem_current", "reserved_mem_high", "used_mem_current", "used_mem_high"):
    setattr(GraphMemoryAttributes, _name, _graph_attribute(_name.replace("_mem", "")))


class GraphMemoryResource(Resource):
    """Memory that captured work allocates: a stream that is not capturing is refused."""

    def __init__(self, device_id):
        self.device = device_of(device_id)
        _core.device_pool_resource_create(self.device._handle, {}, self)

    def allocate(self, size, stream=None, *, capacity=None, alignment=None):
        if stream is None or not _core.stream_is_capturing(self.device._handle, stream):
            raise RuntimeError("stream is not capturing: GraphMemoryResource allocates in captures alone")
        return super().allocate(size, stream, capacity=capacity, alignment=alignment)

    @property
    def attributes(self):
        return GraphMemoryAttributes(self.device)

    def trim(self, keep_bytes=0):
        del keep_bytes  # the driver gives back all that no graph uses
        _core.graph_memory_trim(self.device._handle)
