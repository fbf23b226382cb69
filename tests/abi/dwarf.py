"""What a C header declares, as the compiler laid it out: read from the DWARF of an object file.

Both sides of a comparison go through the same compiler and the same reader, so that no C is parsed
here and neither header's style matters. readelf comes with every gcc.
"""
import re
import subprocess

ENTRY = re.compile(r"^ <(\d+)><([0-9a-f]+)>: Abbrev Number: (\d+)(?: \((DW_TAG_\w+)\))?")
ATTRIBUTE = re.compile(r"^\s+<[0-9a-f]+>\s+(DW_AT_\w+)\s*: ?(.*)$")
REFERENCE = re.compile(r"<0x([0-9a-f]+)>")
INDIRECT = re.compile(r"^\((?:indirect|alt indirect)[^)]*\): (.*)$")


class Entry:
    def __init__(self, tag):
        self.tag = tag
        self.attributes = {}
        self.children = []

    def text(self, name):
        value = self.attributes.get(name)
        if value is None:
            return None
        indirect = INDIRECT.match(value)
        return (indirect.group(1) if indirect else value).strip()

    def number(self, name):
        value = self.text(name)
        if value is None:
            return None
        # Constants read "4", "0x10" or "-1 (...)"; a location reads "2 byte block: 23 8 (...: 8)".
        plus = re.search(r"DW_OP_plus_uconst: (\d+)", value)
        return int(plus.group(1)) if plus else int(value.split()[0], 0)


class Types:
    """The top-level types of one object file."""

    def __init__(self, path):
        self.entries = {}
        self.top = []
        self._read(path)
        self.typedefs = {e.text("DW_AT_name"): e for e in self.top if e.tag == "DW_TAG_typedef"}
        self.typedef_of = {}
        for name, entry in self.typedefs.items():
            target = self.target(entry)
            if target is not None and not target.text("DW_AT_name"):
                self.typedef_of.setdefault(id(target), name)

    def _read(self, path):
        dump = subprocess.run(["readelf", "--debug-dump=info", str(path)],
                              capture_output=True, text=True, check=True,
                              env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout
        stack, current = [], None
        for line in dump.splitlines():
            start = ENTRY.match(line)
            if start:
                if start.group(3) == "0":
                    current = None
                    continue
                depth = int(start.group(1))
                current = Entry(start.group(4))
                self.entries[int(start.group(2), 16)] = current
                del stack[depth:]
                if depth == 1:
                    self.top.append(current)
                elif depth > 1:
                    stack[depth - 1].children.append(current)
                stack.append(current)
                continue
            attribute = ATTRIBUTE.match(line)
            if attribute and current is not None:
                current.attributes[attribute.group(1)] = attribute.group(2)

    def target(self, entry):
        value = entry.attributes.get("DW_AT_type")
        return None if value is None else self.entries[int(REFERENCE.search(value).group(1), 16)]

    def strip(self, entry):
        """Through typedefs and qualifiers to the type itself; None is void."""
        while entry is not None and entry.tag in (
                "DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type"):
            entry = self.target(entry)
        return entry

    def size(self, entry):
        entry = self.strip(entry)
        if entry is None:
            return 0
        if entry.tag == "DW_TAG_array_type":
            return self.size(self.target(entry)) * self._length(entry)
        return entry.number("DW_AT_byte_size") or 0

    @staticmethod
    def _length(array):
        length = 1
        for child in array.children:
            bound = child.number("DW_AT_upper_bound")
            length *= (child.number("DW_AT_count") or 0) if bound is None else bound + 1
        return length

    def spell(self, entry):
        """One spelling for compatible types: typedefs are seen through, const of values is not."""
        if entry is None:
            return "void"
        tag = entry.tag
        if tag == "DW_TAG_typedef":
            return self.spell(self.target(entry))
        if tag in ("DW_TAG_const_type", "DW_TAG_volatile_type"):
            return tag[7:-5] + " " + self.spell(self.target(entry))
        if tag == "DW_TAG_pointer_type":
            return self.spell(self.target(entry)) + " *"
        if tag == "DW_TAG_array_type":
            return f"{self.spell(self.target(entry))}[{self._length(entry)}]"
        if tag == "DW_TAG_subroutine_type":
            return self.signature(entry)
        if tag == "DW_TAG_base_type":
            return entry.text("DW_AT_name")
        kind = tag[7:].replace("_type", "").replace("enumeration", "enum").replace(
            "structure", "struct")
        name = entry.text("DW_AT_name") or self.typedef_of.get(id(entry))
        if name:
            return f"{kind} {name}"
        return f"{kind} {{{'; '.join(self.spell(self.target(c)) for c in entry.children)}}}"

    def signature(self, entry):
        """A function type. A parameter's own const is not part of it."""
        parameters = []
        for child in entry.children:
            if child.tag == "DW_TAG_unspecified_parameters":
                parameters.append("...")
            elif child.tag == "DW_TAG_formal_parameter":
                kind = self.target(child)
                while kind is not None and kind.tag in ("DW_TAG_typedef", "DW_TAG_const_type"):
                    kind = self.target(kind)
                parameters.append(self.spell(kind))
        return f"{self.spell(self.target(entry))}({', '.join(parameters)})"

    def members(self, entry, prefix="", base=0):
        """(path, offset, size, type) of each member, those of unnamed structs included."""
        for child in entry.children:
            if child.tag != "DW_TAG_member":
                continue
            offset = base + (child.number("DW_AT_data_member_location") or 0)
            kind = self.target(child)
            inner = self.strip(kind)
            name = child.text("DW_AT_name") or ""
            path = f"{prefix}.{name}" if prefix and name else prefix + name
            unnamed = inner is not None and inner.tag in (
                "DW_TAG_structure_type", "DW_TAG_union_type") and not inner.text("DW_AT_name") \
                and id(inner) not in self.typedef_of
            if name:
                spelled = inner.tag[7:].split("_")[0] if unnamed else self.spell(kind)
                yield path, offset, self.size(kind), spelled
            if unnamed:
                yield from self.members(inner, path, offset)

    def enumerators(self):
        """name -> value of every enumerator."""
        found = {}
        for entry in self.entries.values():
            if entry.tag == "DW_TAG_enumeration_type":
                for child in entry.children:
                    found[child.text("DW_AT_name")] = child.number("DW_AT_const_value")
        return found

    def records(self):
        """name -> entry of each struct and union that has a name, by tag and by typedef."""
        found = {}
        for name, entry in self.typedefs.items():
            target = self.strip(entry)
            if target is not None and target.tag in ("DW_TAG_structure_type", "DW_TAG_union_type"):
                found[name] = target
        for entry in self.top:
            if entry.tag in ("DW_TAG_structure_type", "DW_TAG_union_type") and \
                    entry.text("DW_AT_name"):
                found.setdefault("struct " + entry.text("DW_AT_name"), entry)
        return found

    def function(self, entry):
        """The signature behind a pointer to function, or None."""
        entry = self.strip(entry)
        if entry is not None and entry.tag == "DW_TAG_pointer_type":
            inner = self.strip(self.target(entry))
            if inner is not None and inner.tag == "DW_TAG_subroutine_type":
                return self.signature(inner)
        return None
