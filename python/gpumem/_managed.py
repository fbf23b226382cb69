"""ManagedBuffer: advice about where pages are kept, and moving them."""
from . import _core
from ._buffer import Buffer, device_of
from ._library import Device, Host, ordinal_of


def place(location, name="location"):
    """(word, number) of a Device, an ordinal or a Host, as gpumem/managed.h has places."""
    if isinstance(location, Host):
        if location.is_numa_current:
            return "host_numa_current", 0
        return ("host", 0) if location.numa_id is None else ("host_numa", location.numa_id)
    try:
        number = ordinal_of(location)
    except TypeError:
        raise TypeError(f"{name} must be a Device, its ordinal or a Host, not {type(location)}") from None
    if number < 0:
        raise ValueError(f"{name} is {number}; the host is Host()")
    return "device", number


def _named(buffer, has, word, number):
    """The Device or Host of a place that the driver reports, or None."""
    if not has:
        return None
    if word == "device":
        return device_of(buffer).library.device(number)
    return Host(numa_id=number) if word == "host_numa" else Host()


def on_stream(buffer, stream, act):
    """act(stream); without one in order of all streams of the Buffer, and done when it returns."""
    if stream is not None:
        act(stream)
        return
    internal = device_of(buffer)._internal_stream
    _core.buffer_order(buffer, internal)
    act(internal)
    _core.buffer_synchronize(buffer, internal)


def prefetch(buffer, to, stream):
    on_stream(buffer, stream, lambda used: _core.buffer_prefetch(buffer, 0, buffer.size, *to, used))


def discard(buffer, to, stream):
    options = {} if to is None else {"prefetch": True, "location": to[0], "ordinal_or_node": to[1]}
    on_stream(buffer, stream, lambda used: _core.buffer_discard(buffer, 0, buffer.size, options, used))


class AccessedBy:
    """The places that have a ManagedBuffer mapped wherever its pages are: a set that can be changed. The driver is
    asked each time."""

    __slots__ = ("_buffer",)

    def __init__(self, buffer):
        self._buffer = buffer

    def _places(self):
        found = self._buffer._range()
        numbers = [("device", each) for each in range(64) if found.accessed_by >> each & 1]
        return numbers + [("host", 0)] * found.accessed_by_host

    def __contains__(self, location):
        return place(location) in self._places()

    def __iter__(self):
        return iter([_named(self._buffer, True, *each) for each in self._places()])

    def __len__(self):
        return len(self._places())

    def __eq__(self, other):
        try:
            return set(self._places()) == {place(each) for each in other}
        except TypeError:
            return NotImplemented

    def __repr__(self):
        return f"{{{', '.join(map(str, self))}}}"

    def _wanted(self, locations):
        wanted = {place(each, "accessed_by") for each in locations}
        for word, number in wanted:
            if word not in ("device", "host"):
                raise ValueError("accessed_by: a NUMA node has no mapping of its own; Host() is the host")
            if word == "device":
                device_of(self._buffer).library.device(number)
        return wanted

    def _change(self, wanted, unwanted):
        """All or nothing."""
        undo = {"set_accessed_by": "unset_accessed_by", "unset_accessed_by": "set_accessed_by"}
        steps, done = [("set_accessed_by", each) for each in wanted], []
        steps += [("unset_accessed_by", each) for each in unwanted]
        try:
            for step in steps:
                done.append(step)
                self._buffer._advise(step[0], *step[1])
        except BaseException:
            for advice, each in reversed(done):
                try:
                    self._buffer._advise(undo[advice], *each)
                except RuntimeError:
                    pass  # the driver refuses that too; the first refusal is told
            raise

    def add(self, location):
        self.update([location])

    def discard(self, location):
        where = place(location)
        if where in self._places():
            self._change((), (where,))

    def remove(self, location):
        if location not in self:
            raise KeyError(location)
        self.discard(location)

    def clear(self):
        self._change((), self._places())

    def update(self, locations):
        self._change(self._wanted(locations) - set(self._places()), ())


class ManagedBuffer(Buffer):
    __slots__ = ()

    def _range(self):
        self._check()
        return _core.buffer_get_managed_range(self, 0, self.size)

    def _advise(self, advice, word="device", number=0):
        self._check()
        _core.buffer_advise(self, 0, self.size, advice, word, number)

    @property
    def read_mostly(self):
        return self._range().read_mostly

    @read_mostly.setter
    def read_mostly(self, value):
        self._advise("set_read_mostly" if value else "unset_read_mostly")

    @property
    def preferred_location(self):
        found = self._range()
        return _named(self, found.has_preferred, found.preferred, found.preferred_ordinal_or_node)

    @preferred_location.setter
    def preferred_location(self, value):
        if value is None:
            self._advise("unset_preferred_location")
        else:
            self._advise("set_preferred_location", *place(value, "preferred_location"))

    @property
    def accessed_by(self):
        self._check()
        return AccessedBy(self)

    @accessed_by.setter
    def accessed_by(self, value):
        known = AccessedBy(self)
        wanted, present = known._wanted(value), set(known._places())
        known._change(wanted - present, present - wanted)

    @property
    def last_prefetch_location(self):
        found = self._range()
        return _named(self, found.has_prefetched, found.prefetched, found.prefetched_ordinal_or_node)

    def prefetch(self, location, *, stream=None):
        prefetch(self, place(location), stream)

    def discard(self, *, stream=None):
        discard(self, None, stream)

    def discard_prefetch(self, location, *, stream=None):
        discard(self, place(location), stream)
