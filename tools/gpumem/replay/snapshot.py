"""Makes the compact trace that `gpumem replay` reads of a memory snapshot of PyTorch, a pickle or JSON, and
unpacks what xz packed. Reads standard input and needs nothing beside Python. What is wrong with it goes to
standard output too, with exit status 3. usage: snapshot.py DEVICE, or -1 for the only one with a trace."""
import io
import json
import lzma
import os
import pickle
import resource
import sys

MOST_UNPACKED = 512 << 20
MOST_TO_UNPACK = 128 << 20  # bytes of memory that xz may want for its dictionary
STEP_NAMES = ("step", "ProfilerStep", "Optimizer.step", "## step", "## ProfilerStep", "## Optimizer.step")


class Refused(Exception):
    pass


class Plain(pickle.Unpickler):
    """Of containers, numbers and text: nothing is imported, so nothing of the file is ever called."""

    def find_class(self, module, name):
        raise Refused(f"it names {module[:40]}.{name[:40]}; a snapshot has only containers, numbers and text")

    def persistent_load(self, pid):
        raise Refused("it refers to objects elsewhere; a snapshot has only containers, numbers and text")


def bound(size):
    """A small pickle can ask for any amount of memory, and of time."""
    memory = (2 << 30) + 64 * size
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    seconds = 60 + size // 1000000
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def unpacked(data):
    out, total = [], 0
    while data:
        one = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_TO_UNPACK)
        while not one.eof:
            piece = one.decompress(data, MOST_UNPACKED - total + 1)
            data = b""
            out.append(piece)
            total += len(piece)
            if total > MOST_UNPACKED:
                raise Refused(f"more than {MOST_UNPACKED >> 20} MiB unpacked")
            if one.needs_input and not one.eof:
                raise Refused("the packed file is incomplete")
        data = one.unused_data.lstrip(b"\0")
    return b"".join(out)


# ---- What a snapshot says ----------------------------------------------------------------------------------------

def member(where, holder, name, kind, least=0):
    """A member of a dict, of the type that it must have."""
    value = holder.get(name) if type(holder) is dict else None
    if type(value) is not kind or kind is int and not least <= value < 1 << 64:
        shown = value if type(value) is int and abs(value) < 1 << 70 else type(value).__name__
        wanted = "a number of bytes, an address or a stream" if kind is int else kind.__name__
        raise Refused(f"{where}: '{name}' is not {wanted} but {shown}")
    return value


class Counted:
    """A few bytes can refer to one list a million times: what is looked at is bounded by the file."""

    def __init__(self, most):
        self.left = most

    def items(self, value, what):
        if type(value) not in (list, tuple):
            raise Refused(f"{what} is not a list but {type(value).__name__}")
        self.left -= len(value)
        if self.left < 0:
            raise Refused("it refers to the same lists over and over")
        return value


def chosen_device(traces, wanted):
    used = [number for number, trace in enumerate(traces) if trace]
    if wanted >= 0:
        if wanted not in used:
            raise Refused(f"it has no trace of device {wanted}")
        return wanted
    if not used:
        raise Refused("it has no trace: call torch.cuda.memory._record_memory_history() before the program's work")
    if len(used) > 1:
        raise Refused(f"devices {', '.join(map(str, used[:8]))} have traces: say which by --of-device")
    return used[0]


def step_ends(snapshot, counted):
    """Times at which steps ended, by the names that profilers and optimizers give them."""
    marks = counted.items(snapshot.get("external_annotations", []), "'external_annotations'")
    return sorted(member(f"annotation {number}", mark, "time_us", int) for number, mark in enumerate(marks)
                  if type(mark) is dict and mark.get("stage") == "END" and str(mark.get("name")).startswith(STEP_NAMES))


class Trace:
    """Events in order: (kind, block), of which a block is [bytes, stream]."""

    def __init__(self, counted):
        self.before, self.events = [], []  # blocks that were there before the trace began
        self.live, self.freed = {}, set()
        self.giving_back = False           # the last entry was a segment that goes
        self.counted = counted

    def allocate(self, where, address, size, stream):
        if address in self.live:
            raise Refused(f"{where}: address {address:#x} is allocated again without a free")
        self.live[address] = block = [size, stream]
        self.events.append(("+", block))

    def free(self, where, address, size, stream):
        block = self.live.pop(address, None)
        if block is None:
            if address in self.freed:
                raise Refused(f"{where}: address {address:#x} is freed twice")
            block = [size, stream]
            self.before.append(block)
        self.freed.add(address)
        self.events.append(("-", block))

    def give_back(self, where, entry):
        """The first of several segments that go: the program empties the cache, unless the stack says that an
        allocation needs the memory."""
        frames = self.counted.items(entry.get("frames", []), f"{where}: 'frames'")
        names = [str(frame.get("name")) for frame in frames if type(frame) is dict]
        if not names or any("empty_cache" in name or "emptyCache" in name for name in names):
            self.events.append(("!", None))

    def take(self, where, entry):
        action = member(where, entry, "action", str)
        if action in ("segment_free", "segment_unmap"):
            if not self.giving_back:
                self.give_back(where, entry)
            self.giving_back = True
            return
        self.giving_back = False
        if action in ("alloc", "free_completed"):
            size = member(where, entry, "size", int)
            values = where, member(where, entry, "addr", int), size, member(where, entry, "stream", int)
            if size and action == "alloc":
                self.allocate(*values)
            elif size:
                self.free(*values)

    def read(self, entries, ends):
        for number, entry in enumerate(entries):
            time = entry.get("time_us") if type(entry) is dict else None
            while ends and type(time) is int and ends[0] <= time:
                ends.pop(0)
                self.events.append(("=", None))
            self.take(f"entry {number}", entry)
        self.events += [("=", None)] * len(ends)

    def stay(self, snapshot, device):
        """Blocks that were there before the trace and still are at its end."""
        for number, segment in enumerate(self.counted.items(snapshot.get("segments", []), "'segments'")):
            where = f"segment {number}"
            if member(where, segment, "device", int) != device:
                continue
            address = member(where, segment, "address", int)
            for block in self.counted.items(segment.get("blocks", []), "'blocks'"):
                size = member(where, block, "size", int)
                at = block.get("address", address)
                address += size
                if str(block.get("state")).startswith("active") and at not in self.live and at not in self.freed:
                    wanted = block.get("requested_size", size)
                    if type(wanted) is not int or not 0 < wanted < 1 << 64:
                        raise Refused(f"{where}: a block's 'requested_size' is not a number of bytes")
                    self.before.append([wanted, member(where, segment, "stream", int)])

    def lines(self):
        """The compact form; blocks get their place as a third item."""
        made, streams = 0, {0: 0}
        for kind, block in [("+", block) for block in self.before] + self.events:
            if kind == "+":
                made += 1
                block.append(made)
                stream = streams.setdefault(block[1], len(streams))
                yield f"+{block[0]}@{stream}\n" if stream else f"+{block[0]}\n"
            elif kind == "-":
                yield f"-{made - block[2] + 1}\n"
            else:
                yield kind + "\n"


def compact(snapshot, size, wanted):
    if type(snapshot) is not dict or "device_traces" not in snapshot:
        raise Refused("it has no 'device_traces': torch.cuda.memory._dump_snapshot() writes a snapshot with them")
    counted = Counted(2 * size)
    traces = counted.items(snapshot["device_traces"], "'device_traces'")
    device = chosen_device(traces, wanted)
    trace = Trace(counted)
    trace.read(counted.items(traces[device], "a trace"), step_ends(snapshot, counted))
    trace.stay(snapshot, device)
    text = "".join(trace.lines())
    if not text:
        raise Refused(f"the trace of device {device} has no allocation")
    return text


def converted(data, device):
    if data[:1] == b"\xfd":
        data = unpacked(data)
    first = data[:1]
    if first == b"\x80":
        return compact(Plain(io.BytesIO(data)).load(), len(data), device)
    if first == b"{":
        return compact(json.loads(data), len(data), device)
    return data.decode("ascii")


def main():
    try:
        bound(os.fstat(0).st_size)
        text = converted(sys.stdin.buffer.read(), int(sys.argv[1]))
    except Refused as why:
        text, status = str(why), 3
    except MemoryError:
        text, status = "it asks for more memory than its size allows", 3
    except Exception as why:  # pylint: disable=broad-exception-caught  # of a damaged file anything can be wrong
        text, status = f"it is damaged, or no snapshot: {type(why).__name__}: {str(why)[:100]}", 3
    else:
        status = 0
    sys.stdout.write(text)
    sys.stdout.flush()
    os._exit(status)  # without taking apart what the file built up, however deep


main()
