"""Resources around another resource."""
from . import _core
from ._resources import Resource, options_of


class Wrapper(Resource):
    def _wrap(self, upstream):
        self.upstream = upstream
        self.device = getattr(upstream, "device", None)
        if getattr(upstream, "is_managed", False):
            from ._managed import ManagedBuffer
            self._hand_out(ManagedBuffer)

    @property
    def is_managed(self):
        return self.upstream.is_managed

    @property
    def device_id(self):
        return self.upstream.device_id


class CachingMemoryResource(Wrapper):
    def __init__(self, upstream, options=None):
        self._wrap(upstream)
        given = options_of({} if options is None else options, "CachingMemoryResourceOptions")
        in_c = dict(vars(given))
        in_c["maximum_bytes"] = in_c.pop("max_size")
        _core.caching_resource_create(upstream, in_c, self)

    def info(self):
        return _core.caching_get_info(self)

    def forget_stream(self, stream):
        _core.caching_forget_stream(self, stream)

    def capture_pool(self):
        return CapturePool(self)


class CapturePool:
    """Memory for work that is captured into graphs: a graph runs with the addresses of its capture."""

    def __init__(self, resource):
        self._handle = _core.capture_pool_create(resource)

    def begin(self, stream):
        _core.capture_pool_begin(self._handle, stream)

    def end(self, stream):
        _core.capture_pool_end(self._handle, stream)

    @property
    def is_closed(self):
        return self._handle.is_closed

    def close(self, last=None):
        """`last`: the stream of the last launch; None: it has passed already."""
        self._handle.close(last)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class LimitMemoryResource(Wrapper):
    def __init__(self, upstream, max_size):
        self._wrap(upstream)
        _core.limiting_resource_create(upstream, max_size, self)


class LoggingMemoryResource(Wrapper):
    """A line for each allocation, resize and free: to `logger`, or with level INFO to the logger "gpumem"."""

    def __init__(self, upstream, logger=None):
        self._wrap(upstream)
        if logger is None:
            _core.logging_resource_create(upstream, {}, self)
        else:
            if not callable(getattr(logger, "log", None)):
                raise TypeError(f"logger must be a logging.Logger, not {type(logger)}")
            from ._log import number_of
            _core.logging_create(upstream, number_of(logger), None, self)


class TrackingMemoryResource(Wrapper):
    """Knows the line of Python that made each live Buffer."""

    def __init__(self, upstream, options=None):
        self._wrap(upstream)
        given = options_of({} if options is None else options, "TrackingMemoryResourceOptions")
        _core.tracking_resource_create(upstream, {"frames": given.frames}, self)
        self._record_places()

    def live(self):
        """(number, pointer, bytes, committed bytes, thread, age in ns) of each live allocation, oldest first."""
        return _core.tracking_visit(self)

    def report(self):
        """Text: what is live, by the line of Python that made it, those with the most bytes first."""
        places = {buffer.handle: buffer._made_at for buffer in self._buffers}
        sums = {}
        for _, pointer, size, *_ in self.live():
            place = places.get(pointer) or "freed, or made elsewhere"
            count, total = sums.get(place, (0, 0))
            sums[place] = count + 1, total + size
        lines = [f"{total} bytes in {count} allocation{'s' * (count != 1)}: {place}"
                 for place, (count, total) in sorted(sums.items(), key=lambda item: -item[1][1])]
        return "\n".join(lines or ["nothing is live"]) + "\n"


class AllocationFailure:
    """What a callback of FailureMemoryResource is told."""

    __slots__ = ("bytes", "status", "message", "attempt")

    def __init__(self, size, status, message, attempt):
        from ._enums import Status
        self.bytes, self.status, self.message, self.attempt = size, Status(status), message, attempt

    def __repr__(self):
        return f"<gpumem.AllocationFailure of {self.bytes} bytes, attempt {self.attempt}: {self.message}>"


class FailureMemoryResource(Wrapper):
    """Asks `callback` when memory runs out: what it returns says whether to try again."""

    def __init__(self, upstream, callback, max_retries=8):
        self._wrap(upstream)
        if not callable(callback):
            raise TypeError(f"callback must be callable, not {type(callback)}")
        _core.failure_callback_create(upstream, lambda told: callback(AllocationFailure(*told)), max_retries, self)


class AlignmentMemoryResource(Wrapper):
    def __init__(self, upstream, alignment=0, size_multiple=0, threshold=0):
        self._wrap(upstream)
        in_c = {"alignment": alignment, "size_multiple": size_multiple, "threshold": threshold}
        _core.alignment_resource_create(upstream, in_c, self)


class FallbackMemoryResource(Wrapper):
    def __init__(self, first, second):
        self._wrap(first)
        self.second = second
        _core.fallback_resource_create(first, second, self)

    def source_of(self, buffer):
        """Which of the two a Buffer came from."""
        return (self.upstream, self.second)[_core.fallback_source(buffer, self.upstream)]
