"""Resources around another resource."""
from . import _core
from ._resources import Resource, options_of


class Wrapper(Resource):
    def _wrap(self, upstream):
        self.upstream = upstream
        self.device = getattr(upstream, "device", None)

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
    def __init__(self, upstream, logger=None):
        self._wrap(upstream)
        if logger is not None:
            raise NotImplementedError("logger: lines go to the logger 'gpumem'")
        _core.logging_resource_create(upstream, {}, self)


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
