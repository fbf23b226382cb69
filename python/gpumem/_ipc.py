"""Memory between processes: pools by their allocation handle, buffers and events by descriptors.

What is pickled by multiprocessing carries its descriptors along (multiprocessing.reduction.DupFd). A pool crosses
with its handle, and the receiver maps it once, found again by its UUID; a plain pickle has the UUID alone.
"""
import operator
import os

from . import _core
from ._library import Device, default_library, device_of
from .errors import DataError, DriverError, NoDeviceError, NotSupportedError

# cuda.core's payload of a buffer is the driver's data; ours has the UUID of the pool and an offset behind it.
DRIVER_BYTES, POOL_BYTES, OFFSET_BYTES = 64, 16, 8
NAMELESS = bytes(POOL_BYTES)


class Descriptors:
    """Descriptors of this process that belong to an object: duplicates, closed with it."""

    __slots__ = ("_files", "__weakref__")

    def __init__(self, *_, **__):
        raise RuntimeError(f"{type(self).__name__} is not made by calling it: a resource or a Buffer has it")

    @property
    def is_closed(self):
        return self._files is None

    def close(self):
        files, self._files = self._files, None
        for each in files or ():
            os.close(each)

    def __del__(self):
        if getattr(self, "_files", None):
            self.close()

    def _open_files(self):
        if self._files is None:
            raise ValueError(f"the {type(self).__name__} has been closed")
        return self._files

    def _for_peer(self):
        from multiprocessing import context
        from multiprocessing.reduction import DupFd
        files = [DupFd(each) for each in self._open_files()]
        process = context.get_spawning_popen()
        if process is not None and files:  # inherits these very descriptors, a while after it was pickled
            vars(process).setdefault("_gpumem_descriptors", []).append(self)
        return files


def _received(files):
    """The numbers of descriptors that a peer has sent; all are taken, or none stays open."""
    taken = []
    try:
        for each in files:
            taken.append(each.detach())
    except BaseException:
        for each in taken:
            os.close(each)
        raise
    return taken


class IPCAllocationHandle(Descriptors):
    """A pool's handle for another process: a descriptor, and the pool's UUID where it is known."""

    __slots__ = ("_uuid",)

    @classmethod
    def _init(cls, handle, uuid):
        number = descriptor_number(handle)
        self = object.__new__(cls)
        self._files, self._uuid = [number], uuid
        return self

    @property
    def handle(self):
        return self._open_files()[0]

    @property
    def uuid(self):
        return self._uuid

    def __int__(self):
        return self.handle

    def __reduce__(self):
        return _rebuild_handle, (type(self), self._for_peer(), self._uuid)


def _rebuild_handle(kind, files, uuid):
    return kind._init(*_received(files), uuid)


class IPCBufferDescriptor(Descriptors):
    """What another process needs to map a buffer: a few bytes, and for virtual memory descriptors as well, which
    keep that memory until this object is closed or gone."""

    __slots__ = ("_payload", "_size", "_device")

    @classmethod
    def _init(cls, reserved, size, files=(), device=None):
        self = object.__new__(cls)
        self._files = None
        self._payload, self._size, self._device = bytes(reserved), operator.index(size), device
        self._files = list(files)
        return self

    @property
    def size(self):
        return self._size

    @property
    def _is_virtual(self):
        return self._device is not None

    def __reduce__(self):
        return _rebuild_descriptor, (type(self), self._payload, self._size, self._for_peer(), self._device)


def _rebuild_descriptor(kind, payload, size, files, device):
    return kind._init(payload, size, _received(files), device)


def descriptor_number(given):
    if isinstance(given, bool):
        raise TypeError("a descriptor must be an int, not bool")
    number = operator.index(given)
    if number < 0:
        raise ValueError(f"{number} is not a descriptor")
    return number


# ---- Pools -----------------------------------------------------------------------------------------------------

_registry = None


def _registered():
    global _registry  # pylint: disable=global-statement
    if _registry is None:
        import weakref
        _registry = weakref.WeakValueDictionary()
    return _registry


def _key(uuid):
    name = getattr(uuid, "bytes", None)
    if not isinstance(name, bytes) or len(name) != POOL_BYTES:
        raise TypeError(f"uuid must be a uuid.UUID, not {type(uuid)}")
    if name == NAMELESS:
        raise ValueError("uuid: no pool has the UUID of zeros")
    return name


def _found(uuid, kind):
    """The registered pool that is still open, or None."""
    pool = _registered().get(_key(uuid))
    if pool is None or pool.is_closed:
        return None
    if not isinstance(pool, kind):
        raise TypeError(f"uuid: the pool {uuid} is a {type(pool).__name__}, not a {kind.__name__}")
    return pool


def _refuse_allocation(*_, **__):
    raise TypeError("the pool is mapped, another process's: it cannot allocate")


class SharedPool:
    """What pools have that other processes can map."""

    _handle_for_peers = None
    _registered_as = None

    def _begin(self):
        super()._begin()
        if self._info().ipc_enabled:
            from multiprocessing.reduction import ForkingPickler
            ForkingPickler.register(type(self), _reduce_pool)

    def close(self):
        super().close()
        if self.is_closed and self._handle_for_peers is not None:
            self._handle_for_peers.close()

    def _must_be_shared(self):
        if self.is_closed:
            raise RuntimeError("the memory resource has been closed")
        if not self._info().ipc_enabled:
            raise NotSupportedError("the pool was not made for other processes: create it with ipc_enabled=True")

    @property
    def uuid(self):
        if self._registered_as is not None:
            return self._registered_as
        found = super().uuid
        if found is not None:
            self._registered_as = found
        return found

    @property
    def allocation_handle(self):
        known = self._handle_for_peers
        if known is None or known.is_closed or self.is_closed:
            self._must_be_shared()
            shared = _core.pool_get_share_handle(self)
            if shared.type != "posix_fd":
                raise NotSupportedError(f"a handle of the type {shared.type!r} is no descriptor")
            known = IPCAllocationHandle._init(os.dup(shared.descriptor), self.uuid)
            self._handle_for_peers = known
        return known

    def get_allocation_handle(self):
        return self.allocation_handle

    @classmethod
    def _map(cls, device, alloc_handle, numa_node):
        is_handle = isinstance(alloc_handle, IPCAllocationHandle)
        number = descriptor_number(alloc_handle.handle if is_handle else alloc_handle)
        uuid = alloc_handle.uuid if is_handle else None
        known = _found(uuid, cls) if uuid is not None else None
        if known is not None:
            return known
        self = cls.__new__(cls)
        self.device = device
        self.allocate = _refuse_allocation
        _core.pool_from_share_handle(device._handle, {
            "type": "posix_fd", "descriptor": number, "location": cls._location, "numa_node": numa_node,
            "uuid": NAMELESS if uuid is None else uuid.bytes}, self)
        self._begin()
        return self if uuid is None else self.register(uuid)

    def register(self, uuid):
        self._must_be_shared()
        name = _key(uuid)
        if self.uuid is not None and self.uuid != uuid:
            raise ValueError(f"uuid is {uuid}; the pool's own is {self.uuid}")
        known = _found(uuid, type(self))
        if known is not None:
            return known
        self._registered_as = uuid
        _registered()[name] = self
        return self

    @classmethod
    def from_registry(cls, uuid):
        known = _found(uuid, cls)
        if known is None:
            raise RuntimeError(f"no open memory resource is registered as {uuid}")
        return known

    def __reduce__(self):
        self._must_be_shared()
        if self.uuid is None:
            raise RuntimeError("the pool has no UUID: register it")
        return type(self).from_registry, (self.uuid,)


def _reduce_pool(pool):
    pool._must_be_shared()
    handle = pool.allocation_handle
    return _rebuild_pool, (type(pool), _uuid_of(pool.device), handle, pool._info().numa_node)


def _rebuild_pool(kind, device, handle, numa_node):
    try:
        return kind._map(_device_with(device), handle, numa_node)
    finally:
        handle.close()


def _device_with(uuid):
    for device in default_library().devices:
        if device.properties.uuid == uuid:
            return device
    raise NoDeviceError("the memory is of a device that this process does not see")


def _uuid_of(device):
    uuid = device.properties.uuid
    if uuid == NAMELESS:
        raise DriverError(f"the driver does not tell the UUID of device {device.device_id}")
    return uuid


# ---- Buffers ---------------------------------------------------------------------------------------------------

class Origin:
    """The owner of mapped virtual memory, which has no resource: says on which device it is."""

    __slots__ = ("device",)

    def __init__(self, device):
        self.device = device


def _pool_of(buffer):
    """The pool that a Buffer's memory is from, below the library's wrappers, or None."""
    resource = buffer.memory_resource
    while resource is not None and not isinstance(resource, SharedPool):
        resource = getattr(resource, "upstream", None)
    return resource


def _describe_virtual(buffer):
    exported = _core.export_create(buffer)
    files = []
    try:
        info = _core.export_get_info(exported)
        for each in info.descriptors:
            files.append(os.dup(each))
        from ._buffer import device_of as device_behind
        return IPCBufferDescriptor._init(info.description, buffer.size, files, _uuid_of(device_behind(buffer)))
    except BaseException:
        for each in files:
            os.close(each)
        raise
    finally:
        exported.close()


def describe(buffer):
    """Buffer.ipc_descriptor."""
    if _pool_of(buffer) is None:
        return _describe_virtual(buffer)
    shared = _core.pool_export_buffer(buffer)
    return IPCBufferDescriptor._init(shared.data + shared.pool + shared.offset.to_bytes(OFFSET_BYTES, "little"),
                                     shared.bytes)


def _import_of_pool(mr, descriptor):
    payload = descriptor._payload
    if not isinstance(mr, SharedPool):
        raise TypeError(f"mr must be a DeviceMemoryResource or PinnedMemoryResource, not {type(mr)}")
    mr._must_be_shared()
    if len(payload) not in (DRIVER_BYTES, DRIVER_BYTES + POOL_BYTES + OFFSET_BYTES):
        raise ValueError(f"ipc_descriptor has {len(payload)} bytes: too short, or not a descriptor")
    if descriptor.size <= 0:
        raise ValueError(f"ipc_descriptor: a buffer of {descriptor.size} bytes is impossible")
    pool = payload[DRIVER_BYTES:DRIVER_BYTES + POOL_BYTES] or NAMELESS
    if pool != NAMELESS and mr.uuid is not None and pool != mr.uuid.bytes:
        raise DataError("ipc_descriptor: the buffer is of another pool")
    return _core.pool_import_buffer(mr, {
        "pool": NAMELESS, "bytes": descriptor.size, "data": payload[:DRIVER_BYTES],
        "offset": int.from_bytes(payload[DRIVER_BYTES + POOL_BYTES:], "little")})


def _import_of_virtual(mr, descriptor):
    device = _device_with(descriptor._device) if mr is None else mr if isinstance(mr, Device) else \
        getattr(mr, "device", None)
    if not isinstance(device, Device):
        raise TypeError(f"mr must be a resource on a Device, a Device or None, not {type(mr)}")
    buffer = _core.import_create(device._handle, descriptor._payload, descriptor._open_files(),
                                 {"maximum_bytes": descriptor.size})
    buffer._keep(Origin(device))
    size = buffer.size
    if size != descriptor.size:
        buffer.close()
        raise DataError(f"ipc_descriptor: {descriptor.size} bytes were said, the memory has {size}")
    return buffer


def import_buffer(mr, descriptor, stream):
    """Buffer.from_ipc_descriptor."""
    if not isinstance(descriptor, IPCBufferDescriptor):
        raise TypeError(f"ipc_descriptor must be an IPCBufferDescriptor, not {type(descriptor)}")
    descriptor._open_files()
    buffer = (_import_of_virtual if descriptor._is_virtual else _import_of_pool)(mr, descriptor)
    if stream is not None:
        try:
            buffer.set_deallocation_stream(stream)
        except BaseException:
            buffer.close()
            raise
    return buffer


def reduce_buffer(buffer):
    """Buffer.__reduce__."""
    descriptor = describe(buffer)
    return _rebuild_buffer, (None if descriptor._is_virtual else _pool_of(buffer), descriptor)


def _rebuild_buffer(pool, descriptor):
    try:
        return import_buffer(pool, descriptor, None)
    finally:
        descriptor.close()


# ---- Events ----------------------------------------------------------------------------------------------------

class IPCEventDescriptor:
    """What another process needs to open an event."""

    __slots__ = ("_payload",)

    def __init__(self, *_, **__):
        raise RuntimeError("IPCEventDescriptor is not made by calling it: Event.ipc_descriptor gives one")

    @classmethod
    def _init(cls, payload):
        self = object.__new__(cls)
        self._payload = bytes(payload)
        return self

    def __reduce__(self):
        return type(self)._init, (self._payload,)

    def __eq__(self, other):
        return self._payload == other._payload if isinstance(other, IPCEventDescriptor) else NotImplemented

    def __hash__(self):
        return hash(self._payload)


def describe_event(event):
    """Event.ipc_descriptor."""
    if not event.is_ipc_enabled:
        raise RuntimeError("the Event was not made for other processes: create it with ipc_enabled=True")
    exported = _core.export_create_event(event.device._handle, event)
    try:
        return IPCEventDescriptor._init(_core.export_get_info(exported).description)
    finally:
        exported.close()


def import_event(kind, descriptor, device):
    """Event.from_ipc_descriptor."""
    if not isinstance(descriptor, IPCEventDescriptor):
        raise TypeError(f"ipc_descriptor must be an IPCEventDescriptor, not {type(descriptor)}")
    device = device_of(device)
    handle = _core.import_create_event(device._handle, descriptor._payload)
    return _core.event_from_handle(kind, device._handle, device, handle)
