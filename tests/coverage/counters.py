"""The counters that a program built with gcc's --coverage leaves in .gcda files: read, added up, written.

A file has a head of four words, then records of a tag, a length in bytes, and the data. A function's record
says which one it is; records of counters, of 8 bytes each, belong to the function before them. A negative
length stands for that many bytes of zeros, which are left out. (gcc 12 and later.)"""
import array
import operator
import struct

HEAD = struct.Struct("<4I")
RECORD = struct.Struct("<Ii")
SUMMARY = 0xA1000000
FUNCTION = 0x01000000
FIRST_COUNTERS = 0x01A10000


def records(data):
    """(tag, data or the number of bytes that are zero) of each record."""
    at = HEAD.size
    while at + RECORD.size <= len(data):
        tag, length = RECORD.unpack_from(data, at)
        at += RECORD.size
        if tag == 0:
            return
        if length < 0:
            yield tag, -length
            continue
        yield tag, data[at:at + length]
        at += length


def counted(data):
    """Whether any counter of a file is not zero."""
    return any(tag >= FIRST_COUNTERS and tag != SUMMARY and isinstance(body, bytes) and any(body)
               for tag, body in records(data))


def stamp(data):
    """What the counters of an object and the compiler's note of it share."""
    return data[8:12]


class Sum:
    """The sum of several files of the same object."""

    def __init__(self):
        self.head = None
        self.functions = {}

    def add(self, data):
        head = data[:HEAD.size]
        if self.head is None:
            self.head = head
        if head != self.head:
            raise ValueError("counters of another build")
        counters = None
        for tag, body in records(data):
            if tag == FUNCTION:
                counters = self.functions.setdefault(body, {}) if body else None
            elif tag != SUMMARY and counters is not None:
                self.add_counters(counters, tag, body)

    @staticmethod
    def add_counters(counters, tag, body):
        if isinstance(body, int):
            counters.setdefault(tag, array.array("Q", bytes(body)))
            return
        values = array.array("Q", body)
        known = counters.get(tag)
        counters[tag] = values if known is None else array.array("Q", map(operator.add, known, values))

    def to_bytes(self):
        parts = [self.head, RECORD.pack(SUMMARY, 8), struct.pack("<2I", 1, 0)]
        for function, counters in self.functions.items():
            parts += [RECORD.pack(FUNCTION, len(function)), function]
            for tag, values in counters.items():
                parts += [RECORD.pack(tag, 8 * len(values)), values.tobytes()]
        return b"".join(parts) + bytes(4)
