"""Buffer: the methods that the extension leaves to Python."""
from . import _core, _ipc
from ._library import Device, default_library
from ._stream import NO_STREAM, add_methods
from .errors import BusyError

Buffer = _core.Buffer


class _Hold:
    """Keeps a Buffer's memory where it is: until the block ends, it is released, or nobody refers to it."""

    __slots__ = ("_loan",)

    def __init__(self, loan):
        self._loan = loan

    def release(self):
        self._loan = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._loan = None


class WatchEvent:
    """What a watch is told: a reason ("free", "shrink", "access", "decommit", "move") and the range."""

    __slots__ = ("reason", "base", "bytes", "stream")

    def __init__(self, reason, base, size, stream):
        self.reason, self.base, self.bytes, self.stream = reason, base, size, stream

    def __repr__(self):
        return f"<gpumem.WatchEvent {self.reason}, {self.bytes} bytes at {self.base:#x}>"


class Watch:
    """A watch of a Buffer or of a resource; it ends when it is closed, or nobody refers to it."""

    def __init__(self, of, callback):
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {type(callback)}")
        self._handle = _core.watch_create(of, lambda told: callback(WatchEvent(*told)))

    @property
    def is_closed(self):
        return self._handle.is_closed

    def close(self):
        self._handle.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def device_of(buffer):
    """The Device that a Buffer's memory is reached by."""
    resource = buffer.memory_resource
    device = getattr(resource if resource is not None else buffer.owner, "device", None)
    if isinstance(device, Device):
        return device
    return default_library().device(max(_core.buffer_get_attributes(buffer).ordinal, 0))


def adopt(pointer, size, resource):
    """Called by the extension: a Buffer of the library's over memory that others have."""
    library = getattr(getattr(resource, "device", None), "library", None) or default_library()
    refusal = None
    for device in library.devices:
        try:
            return _core.buffer_from_pointer(device._handle, pointer, size, {"stream": 2**64 - 1})
        except Exception as error:  # pylint: disable=broad-except
            refusal = refusal or error
    raise refusal


def without_stream(what, buffer, other):
    """Called by the extension: a copy or a fill that names no stream is done when it returns, after the work
    of all streams that the buffers know."""
    if what == "copy with options":
        from .utils import copy_batch
        source, stream, options = other
        copy_batch(stream, [source], [buffer], options=options)
        return
    stream = device_of(buffer)._internal_stream
    _core.buffer_order(buffer, stream)
    if what == "fill":
        buffer.fill(other, stream=stream)
    else:
        _core.buffer_order(other, stream)
        buffer.copy_from(other, stream=stream)
    _core.buffer_synchronize(buffer, stream)


def internal_stream(resource):
    """Called by the extension: for resources that hand out memory of streams alone."""
    return resource.device._internal_stream


class _BufferMethods:
    @property
    def device_id(self):
        self._check()
        resource = self.memory_resource
        if resource is not None and type(resource).__module__.partition(".")[0] != "gpumem":
            return resource.device_id
        return _core.buffer_get_attributes(self).ordinal

    def _check(self):
        if self.is_closed:
            raise RuntimeError("Buffer has been closed")

    @property
    def is_device_accessible(self):
        resource = self.memory_resource
        if resource is not None:
            return resource.is_device_accessible
        return _core.buffer_get_attributes(self).device_accessible

    @property
    def is_host_accessible(self):
        resource = self.memory_resource
        if resource is not None:
            return resource.is_host_accessible
        return _core.buffer_get_attributes(self).host_accessible

    @property
    def is_managed(self):
        resource = self.memory_resource
        if resource is not None:
            return resource.is_managed
        return _core.buffer_get_attributes(self).managed

    @property
    def is_mapped(self):
        return not self.is_closed and (isinstance(self.owner, _ipc.Origin)
                                       or getattr(self.memory_resource, "is_mapped", False))

    @property
    def ipc_descriptor(self):
        self._check()
        return _ipc.describe(self)

    @staticmethod
    def from_ipc_descriptor(mr, ipc_descriptor, *, stream=None):
        return _ipc.import_buffer(mr, ipc_descriptor, stream)

    def __reduce__(self):
        self._check()
        return _ipc.reduce_buffer(self)

    @property
    def attributes(self):
        return _core.buffer_get_attributes(self)

    def grow(self, size, *, stream=None):
        _core.buffer_grow(self, size, stream)
        if self.size < size:
            self._resize(size)

    def shrink(self, size, *, stream=None):
        if size == 0:
            raise ValueError("size is 0: close() gives all of it back")
        if self._is_shared:
            raise BusyError("another Buffer has the same memory (modify_allocation)")
        _core.buffer_shrink(self, size, stream)

    def move_to_capacity(self, capacity, *, stream=None):
        return _core.buffer_move_to_capacity(self, capacity, stream)

    def set_access(self, device, access, offset=0, size=None, *, stream=None):
        from ._library import ordinal_of
        size = self.size - offset if size is None else size
        _core.buffer_set_access(self, offset, size, ordinal_of(device), access, stream)

    def get_access(self, device, offset=0):
        from ._library import ordinal_of
        return _core.buffer_get_access(self, offset, ordinal_of(device))

    def decommit(self, offset, size, *, stream=None):
        return _core.buffer_decommit(self, offset, size, stream)

    def recommit(self, offset, size):
        _core.buffer_recommit(self, offset, size)

    def mark_shared(self):
        _core.buffer_mark_shared(self)

    def use(self, stream):
        _core.buffer_use(self, stream)

    def order(self, stream):
        _core.buffer_order(self, stream)

    def hold(self):
        return _Hold(self._hold())

    def numpy(self, dtype="u1", shape=None):
        import numpy
        array = numpy.frombuffer(self, dtype=dtype)
        return array if shape is None else array.reshape(shape)

    def write(self, data, offset=0, *, stream=None):
        if stream is None:
            used = device_of(self)._internal_stream
            _core.buffer_order(self, used)
            _core.buffer_write(self, offset, data, used)
        else:
            used = stream
            _core.buffer_write(self, offset, data, stream)
        # Memory of Python's may go as soon as the call returns, so it must have been read by then.
        _core.buffer_synchronize(self, used)

    def read(self, offset=0, size=None, *, stream=None):
        self._check()
        size = self.size - offset if size is None else size
        data = bytearray(size)
        used = device_of(self)._internal_stream if stream is None else stream
        if stream is None:
            _core.buffer_order(self, used)
        _core.buffer_read(self, offset, data, used)
        _core.buffer_synchronize(self, used)
        return bytes(data)

    def publish(self, data, offset, flag_offset, value):
        """Writes data, then the 32-bit word `value` at flag_offset, in that order for whoever reads them."""
        _core.mapped_publish(self, offset, data, flag_offset, value)

    @staticmethod
    def from_dlpack(tensor, device=None, *, stream=None):
        """A Buffer over the memory of an object with __dlpack__, which lives as long as the Buffer."""
        from ._library import device_of as device_meant
        if stream is not None:
            capsule = tensor.__dlpack__(stream=getattr(stream, "handle", stream))
        else:
            capsule = tensor.__dlpack__()
        return _core.from_dlpack(device_meant(device)._handle, capsule, stream)

    def watch(self, callback):
        """Calls `callback` with a WatchEvent before memory of it is unmapped, given back or made inaccessible."""
        return Watch(self, callback)

    @staticmethod
    def register(memory, device=None, *, stream=None, read_only=False):
        """A Buffer over memory of Python's, pinned until it is closed; `memory` has the buffer protocol."""
        from ._library import device_of as device_meant
        view = memoryview(memory)
        buffer = _core.buffer_register(device_meant(device)._handle, view,
                                       {"stream": NO_STREAM if stream is None else stream,
                                        "read_only": read_only or view.readonly})
        buffer._keep(view)
        return buffer

    def layout(self):
        return _core.buffer_layout(self)

    def flush(self, offset=0, size=None):
        _core.mapped_flush(self, offset, self.size - offset if size is None else size)

    def invalidate(self, offset=0, size=None):
        _core.mapped_invalidate(self, offset, self.size - offset if size is None else size)

    @property
    def non_coherent_atom_size(self):
        return _core.buffer_get_mapped_info(self).atom

    @property
    def note(self):
        resource = self.memory_resource
        return _core.resource_get_properties(resource).note if resource is not None else ""

    def host_view(self, **options):
        return _core.buffer_host_view(self, options)


if not hasattr(Buffer, "__buffer__"):  # before Python 3.12
    _BufferMethods.__buffer__ = lambda self, flags: memoryview(self)

add_methods(Buffer, _BufferMethods)
