#!/usr/bin/python3
"""Describes the public C interface: reads include/gpumem with libclang and writes api.json.

describe.py [--check]: without an argument tools/api/api.json and what is generated from it are
written; with --check nothing is written, and the exit status is 1 if one of them is out of date.

What libclang says of a declaration is taken as it is. What only the comments say is read by rules
that CONTRIBUTING.md gives ("The interface's description"):
- a comment that ends on the line before a declaration is that of the declaration, and of those that
  follow on the next lines without a comment of their own; one on the line behind it, its own;
- "0: ..." or "NULL: ..." in the comment of an options member is what its default means;
- "Driver: cuA, cuB." names the driver's functions behind a call;
- names of statuses in capitals are what a call returns;
- "Since 1.2." is the first version that has it; without it, the first version of all.
"""
import json
import re
import sys
from pathlib import Path

import options_hpp
import python_tables

SOURCE = Path(__file__).resolve().parents[2]
INCLUDE = SOURCE / "include"
OUTPUT = Path(__file__).with_name("api.json")
# The driver's own interface and softgpu's controls are described in functions.def and softgpu.h.
HEADERS_LEFT_OUT = {"removed.h", "cuda_api.h", "driver.h", "gpumem.h", "dlpack_abi.h"}
FIRST_VERSION = "0.1"


class Comments:
    """The comments of one header, by line."""

    def __init__(self, path):
        self.lines = path.read_text().splitlines()
        self.at_end, self.at_start = {}, {}
        text = path.read_text()
        for match in re.finditer(r"/\*.*?\*/", text, re.S):
            start = text.count("\n", 0, match.start()) + 1
            end = text.count("\n", 0, match.end()) + 1
            alone = not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
            record = {"start": start, "end": end, "text": plain(match.group(0)), "alone": alone}
            if alone:
                self.at_end[end] = record
            else:
                self.at_start[start] = record

    def file(self):
        first = min(self.at_end.values(), key=lambda record: record["start"], default=None)
        return first["text"] if first and first["start"] == 1 else ""

    def before(self, first):
        """The comment that ends on the line before `first`, or None."""
        return self.text(self.at_end.get(first - 1))

    def behind(self, last):
        """The comment behind a declaration, on its last line, or None."""
        return self.text(self.at_start.get(last))

    def follows(self, previous_last, first):
        """Whether no empty line is between two declarations."""
        return previous_last is not None and all(
            line.strip() for line in self.lines[previous_last:first - 1])

    @staticmethod
    def text(record):
        return record["text"] if record else None


class Group:
    """Declarations that follow one another share the comment before the first. `behind_ends`: one with
    a comment behind it ends the group, as members of structs do."""

    def __init__(self, comments, behind_ends):
        self.comments, self.behind_ends = comments, behind_ends
        self.last, self.shared = None, ""

    def text(self, cursor):
        first, last = cursor.extent.start.line, cursor.extent.end.line
        before, behind = self.comments.before(first), self.comments.behind(last)
        if self.last == last and not before:  # two of one line
            before = self.shared
        elif before is None and not (behind and self.behind_ends):
            before = self.shared if self.comments.follows(self.last, first) else ""
        self.shared = "" if behind and self.behind_ends and self.last != last else before or ""
        self.last = last
        return " ".join(each for each in (before, behind) if each)


def plain(comment):
    """A comment's words: without its marks, paragraphs joined, program text kept in lines."""
    body = re.sub(r"^\s*\* ?", "", comment[2:-2], flags=re.M).strip()
    body = re.sub(r"^[-= ]{4,}(.*?)[-= ]*$", r"\1", body)
    paragraphs = []
    for part in re.split(r"\n\s*\n", body):
        joined = part if part.startswith("    ") else " ".join(part.split())
        paragraphs.append(joined)
    return "\n\n".join(paragraphs)


def since(text):
    found = re.search(r"\bSince (\d+\.\d+)\b", text or "")
    return found.group(1) if found else FIRST_VERSION


UNITS = [
    (r"(^|_)(bytes|size|capacity|offset|pitch|width|alignment|align|granularity|threshold)(_|$)", "bytes"),
    (r"_ms$|milliseconds$", "milliseconds"), (r"nanoseconds$|_ns$", "nanoseconds"),
    (r"_percent$", "percent"), (r"_count$|^count$|^frames$|_threads$", "count"),
]
INTEGERS = re.compile(r"\b(size_t|u?int\d+_t|unsigned|int|float|double)\b")


def unit(name, type_name):
    if not INTEGERS.search(type_name) or "(" in type_name:
        return None
    return next((word for pattern, word in UNITS if re.search(pattern, name)), None)


def default_of(type_name, enums, text):
    """What an all-zero struct has here, and what that means."""
    if type_name in enums:
        value = next((each["name"] for each in enums[type_name]["values"] if each["value"] == 0), 0)
    elif type_name == "bool":
        value = False
    elif "*" in type_name or type_name.startswith("CU") and type_name != "CUdeviceptr" or type_name.endswith("_fn"):
        value = None
    else:
        value = 0
    found = re.search(r"(?:^|[\s;.,(])(?:0|NULL|0 or NULL|false)(?: or [\w.]+)?: ((?:[^.;()]|\.\d|\([^)]*\))+)", text or "")
    return {"value": value, "means": found.group(1).strip() if found else None}


def driver_calls(text):
    calls = []
    for sentence in re.findall(r"\b[Dd]river: (.*?)(?:\. [A-Z]|\.$|$)", text or "", re.S):
        calls += [name for name in re.findall(r"\bcu[A-Z]\w+", sentence) if name not in calls]
    return calls


class Description:
    """All headers, in the order of their names."""

    def __init__(self, cindex):
        self.c = cindex
        self.result = {"version": version(), "headers": {}, "handles": {}, "callbacks": {},
                       "enums": {}, "structs": {}, "functions": {}}
        self.statuses = set()

    def read(self):
        umbrella = "".join(f"#include <gpumem/{path.name}>\n" for path in headers())
        unit_ = self.c.Index.create().parse(
            "all.c", args=["-std=c17", f"-I{INCLUDE}", *system_includes()],
            unsaved_files=[("all.c", umbrella)])
        errors = [str(each) for each in unit_.diagnostics if each.severity >= 3]
        if errors:
            raise SystemExit("\n".join(errors))
        by_header = {path.name: [] for path in headers()}
        for cursor in unit_.cursor.get_children():
            where = Path(cursor.location.file.name) if cursor.location.file else None
            if where and where.parent == INCLUDE / "gpumem" and where.name in by_header:
                by_header[where.name].append(cursor)
        for name, cursors in by_header.items():
            self.header(name, cursors)
        self.defaults()
        for each in self.result["functions"].values():
            each["statuses"] = [name for name in self.ordered_statuses()
                                if re.search(rf"\b{name}\b", each["comment"])]
        return self.result

    def defaults(self):
        for record in self.result["structs"].values():
            for member in record["members"][1:] if record["kind"] == "options" else []:
                member["default"] = default_of(member["type"], self.result["enums"], member["comment"])

    def ordered_statuses(self):
        values = self.result["enums"]["gpumem_status"]["values"]
        return [each["name"].removeprefix("GPUMEM_ERROR_") for each in values[1:]]

    def header(self, name, cursors):
        comments = Comments(INCLUDE / "gpumem" / name)
        self.result["headers"][name] = comments.file()
        group, previous, text = Group(comments, False), None, ""
        for cursor in cursors:
            lines = cursor.extent.start.line, cursor.extent.end.line
            if lines != previous:  # a struct and its typedef are two cursors
                text = group.text(cursor)
            previous = lines
            self.declaration(name, cursor, text, comments)

    def declaration(self, header, cursor, text, comments):
        kinds = self.c.CursorKind
        name = cursor.spelling
        record = {"header": header, "comment": text, "since": since(text)}
        if cursor.kind == kinds.FUNCTION_DECL:
            self.function(cursor, record)
        elif cursor.kind == kinds.TYPEDEF_DECL:
            self.typedef(cursor, record, comments)

    def function(self, cursor, record):
        parameters = [{"name": each.spelling, "type": each.type.spelling.replace("_Bool", "bool")}
                      for each in cursor.get_arguments()]
        inline = cursor.storage_class == self.c.StorageClass.STATIC
        self.result["functions"][cursor.spelling] = {
            **record, "returns": cursor.result_type.spelling.replace("_Bool", "bool"), "parameters": parameters,
            "must_check": any(each.kind == self.c.CursorKind.WARN_UNUSED_RESULT_ATTR
                              for each in cursor.get_children()),
            "inline": inline, "driver": driver_calls(record["comment"])}

    def typedef(self, cursor, record, comments):
        underlying = cursor.underlying_typedef_type
        declaration = underlying.get_declaration()
        name = cursor.spelling
        if declaration.kind == self.c.CursorKind.ENUM_DECL:
            self.result["enums"][name] = {**record, "values": self.values(declaration, comments)}
        elif declaration.kind == self.c.CursorKind.STRUCT_DECL and declaration.is_definition():
            members = self.members(declaration, comments)
            kind = ("options" if name.endswith("_options") else
                    "versioned" if members and members[0]["name"] == "size" else "plain")
            self.result["structs"][name] = {**record, "kind": kind, "members": members}
        elif declaration.kind == self.c.CursorKind.STRUCT_DECL:
            if name.startswith("gpumem_"):
                self.result["handles"][name] = record
        elif "(*)" in underlying.spelling:
            pointee = underlying.get_pointee()
            parameters = [each for each in cursor.get_children()
                          if each.kind == self.c.CursorKind.PARM_DECL]
            self.result["callbacks"][name] = {
                **record, "returns": pointee.get_result().spelling.replace("_Bool", "bool"),
                "parameters": [{"name": each.spelling, "type": each.type.spelling.replace("_Bool", "bool")}
                               for each in parameters]}

    @staticmethod
    def values(declaration, comments):
        group, found = Group(comments, True), []
        for each in declaration.get_children():
            text = group.text(each)
            found.append({"name": each.spelling, "value": each.enum_value, "comment": text,
                          "since": since(text)})
        return found

    def members(self, declaration, comments):
        group, found = Group(comments, True), []
        for each in declaration.get_children():
            if each.kind != self.c.CursorKind.FIELD_DECL:
                continue
            text, type_name = group.text(each), each.type.spelling.replace("_Bool", "bool")
            found.append({"name": each.spelling, "type": type_name, "comment": text,
                          "unit": unit(each.spelling, type_name), "since": since(text)})
        return found


def headers():
    return [path for path in sorted((INCLUDE / "gpumem").glob("*.h"))
            if path.name not in HEADERS_LEFT_OUT]


def version():
    text = (INCLUDE / "gpumem/status.h").read_text()
    return re.search(r'GPUMEM_VERSION_STRING "(.*?)"', text).group(1)


def system_includes():
    """libclang from another folder than its compiler does not find stddef.h."""
    return [f"-I{path}" for path in sorted(Path("/usr/lib").glob("llvm-*/lib/clang/*/include"))[-1:]]


def main():
    try:
        from clang import cindex  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("describe.py: the Python package clang is missing (Debian: python3-clang)", file=sys.stderr)
        return 77
    result = Description(cindex).read()
    outputs = {OUTPUT: json.dumps(result, indent=1, ensure_ascii=False) + "\n",
               options_hpp.OUTPUT: options_hpp.text(result), **python_tables.texts(result)}
    stale = [path for path, text in outputs.items()
             if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(SOURCE)} is out of date: run ./dev api")
        return 1 if stale else 0
    for path in stale:
        path.write_text(outputs[path])
        print(f"wrote {path.relative_to(SOURCE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
