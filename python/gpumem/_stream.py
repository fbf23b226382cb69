"""Streams and events: what the extension's types do, except for their handles."""
from . import _core
from ._library import Device

Stream, Event = _core.Stream, _core.Event
LEGACY_DEFAULT_STREAM = _core.stream_from_handle(Stream, 1, None)
PER_THREAD_DEFAULT_STREAM = _core.stream_from_handle(Stream, 2, None)
# No stream of the caller's: memory is ready when the call returns, for every stream.
NO_STREAM = _core.stream_from_handle(Stream, 2**64 - 1, None)


def _options(options, names, what):
    """Values of options given as their dataclass, as a dict, or not at all."""
    if options is None:
        return {}
    if isinstance(options, dict):
        unknown = options.keys() - names
        if unknown:
            raise TypeError(f"{what} has no {', '.join(sorted(unknown))}")
        return options
    if type(options).__name__ != what:
        raise TypeError(f"options must be {what}, a dict or None, not {type(options)}")
    return {name: getattr(options, name) for name in names}


def create_stream(device, obj=None, options=None):
    if obj is not None:
        if options is not None:
            raise ValueError("obj and options: a stream that exists has its own")
        return from_object(device, obj)
    given = _options(options, {"nonblocking", "priority"}, "StreamOptions")
    return _core.stream_create(Stream, device._handle, device, not given.get("nonblocking", True),
                               given.get("priority") or 0)


def from_object(device, obj):
    if isinstance(obj, Stream):
        return obj
    protocol = getattr(obj, "__cuda_stream__", None)
    if protocol is None:
        raise TypeError(f"obj must have __cuda_stream__, not be {type(obj)}")
    version, handle = protocol() if callable(protocol) else protocol
    if version != 0:
        raise TypeError(f"obj: __cuda_stream__ has version {version}, not 0")
    stream = _core.stream_from_handle(Stream, handle, (device, obj))
    return stream


def create_event(device, options=None):
    given = _options(options, {"timing_enabled", "blocking_sync", "ipc_enabled"}, "EventOptions")
    return _core.event_create(Event, device._handle, device, given.get("timing_enabled", False),
                              given.get("blocking_sync", False), given.get("ipc_enabled", False))


class _StreamMethods:
    @staticmethod
    def from_handle(handle):
        return _core.stream_from_handle(Stream, handle, None)

    @property
    def device(self):
        holder = self._holder
        if isinstance(holder, tuple):
            holder = holder[0]
        return holder if holder is not None else Device()

    @property
    def context(self):
        return self.device.context

    def _info(self):
        return _core.stream_info(self.device._handle, self.handle)

    @property
    def is_nonblocking(self):
        return bool(self._info()[0] & 1)

    @property
    def priority(self):
        return self._info()[1]

    def sync(self):
        _core.stream_synchronize(self.device._handle, self)

    @property
    def is_done(self):
        return _core.stream_query(self.device._handle, self)

    def record(self, event=None, options=None):
        if event is None:
            event = create_event(self.device, options)
        _core.event_record(self.device._handle, event, self)
        return event

    def wait(self, event_or_stream):
        if not isinstance(event_or_stream, Event):
            other = from_object(self.device, event_or_stream)
            with_event = other.record()
            try:
                _core.stream_wait_event(self.device._handle, self, with_event)
            finally:
                with_event.close()
            return
        _core.stream_wait_event(self.device._handle, self, event_or_stream)

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        return self is other or (not self.is_closed and not other.is_closed and self.handle == other.handle)

    def __hash__(self):
        return hash((Stream, self.handle))

    def __repr__(self):
        if self is NO_STREAM:
            return "gpumem.NO_STREAM"
        return "<gpumem.Stream, closed>" if self.is_closed else f"<gpumem.Stream {self.handle:#x}>"


class _EventMethods:
    @property
    def device(self):
        return self._holder

    @property
    def context(self):
        return self.device.context

    @property
    def is_timing_enabled(self):
        return self._options[0]

    @property
    def is_blocking_sync(self):
        return self._options[1]

    @property
    def is_ipc_enabled(self):
        return self._options[2]

    @property
    def ipc_descriptor(self):
        from ._ipc import describe_event
        return describe_event(self)

    @staticmethod
    def from_ipc_descriptor(ipc_descriptor, device=None):
        from ._ipc import import_event
        return import_event(Event, ipc_descriptor, device)

    @property
    def is_done(self):
        return _core.event_query(self.device._handle, self)

    def sync(self):
        _core.event_synchronize(self.device._handle, self)

    def __sub__(self, other):
        if not isinstance(other, Event):
            return NotImplemented
        return _core.event_elapsed(self.device._handle, other, self)

    def __repr__(self):
        return "<gpumem.Event, closed>" if self.is_closed else f"<gpumem.Event {self.handle:#x}>"


def add_methods(type_, methods):
    """The extension's types get what is written in Python when the package is imported."""
    for name, value in vars(methods).items():
        if name not in ("__module__", "__dict__", "__weakref__", "__doc__", "__firstlineno__",
                        "__static_attributes__", "__qualname__"):
            setattr(type_, name, value)


add_methods(Stream, _StreamMethods)
add_methods(Event, _EventMethods)
