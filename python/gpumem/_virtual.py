"""Resources of virtual memory: buffers that grow in place, for the device, and for the CPU too."""
from . import _core
from ._library import device_of, ordinal_of
from ._resources import Resource, options_of
from .errors import NotSupportedError

# As much address space as a buffer may grow into, unless it says otherwise.
CAPACITY_FACTOR, LEAST_CAPACITY = 8, 1 << 30


class VirtualMemoryResource(Resource):
    def __init__(self, device_id, config=None):
        self.device = device_of(device_id)
        self.config = options_of({} if config is None else config, "VirtualMemoryResourceOptions")
        _core.virtual_resource_create(self.device._handle, _in_c(self.config), self)
        self._granularity = self.properties.granularity

    @property
    def handle_type(self):
        """The one in effect, which may be another than was asked for: properties.note says why."""
        found = self.properties.handle_type
        return None if found == "none" else found

    def allocate(self, size, stream=None, *, capacity=None, alignment=None):
        if size == 0:
            raise ValueError("size is 0")
        rounded = -(-size // self._granularity) * self._granularity if size > 0 else size
        if capacity is None:
            capacity = self.config.capacity or max(rounded * CAPACITY_FACTOR, LEAST_CAPACITY)
        return super().allocate(rounded, stream, capacity=max(capacity, rounded), alignment=alignment)

    def modify_allocation(self, buf, new_size, config=None):
        if getattr(buf, "memory_resource", None) is not self:
            if getattr(buf, "is_closed", False):
                raise RuntimeError("buf has been closed")
            raise TypeError("buf must be a Buffer of this resource")
        if config is not None and options_of(config, "VirtualMemoryResourceOptions") != self.config:
            raise NotSupportedError("config: memory grows with the options of its resource")
        size = buf.size
        if new_size > size:
            buf.grow(new_size)
            buf._resize(size)
        return buf._share(max(new_size, size))


def _in_c(config):
    """Members of gpumem_virtual_options."""
    if config.handle_type == "win32_kmt":
        raise NotSupportedError("handle_type: 'win32_kmt' is Windows' alone")
    ours = ("handle_strict", "compression", "capacity", "minimum_chunk_bytes", "maximum_chunk_bytes",
            "growth_percent", "exact_growth", "give_back_bytes", "cache_bytes", "numa_node", "allocation_type",
            "granularity", "gpu_direct_rdma", "handle_type", "self_access", "peer_access")
    in_c = {name: getattr(config, name) for name in ours}
    in_c.update(location=config.location_type, address_hint=config.addr_hint or 0,
                address_alignment=config.addr_align or 0, peers=[ordinal_of(peer) for peer in config.peers])
    return in_c


class MappedMemoryResource(Resource):
    def __init__(self, device_id, options=None):
        self.device = device_of(device_id)
        given = options_of({} if options is None else options, "MappedMemoryResourceOptions")
        in_c = dict(vars(given))
        in_c["maximum_bytes"] = in_c.pop("max_size")
        _core.mapped_resource_create(self.device._handle, in_c, self)

    def info(self):
        return _core.mapped_get_info(self)

    @property
    def is_coherent(self):
        return self.info().coherent

    @property
    def method(self):
        return self.info().method

    def calibrate(self, **options):
        _core.mapped_calibrate(self, options)
