"""Makes the tables of the Python extension from the interface's description: python/core/structs.c has the
enums and structs, python/core/calls.c a row for each C function that Python calls through a table, and
python/gpumem/_enums.py the enums that Python sees as such.

A function is left out of the table when a hand-written form has it (BY_HAND), or when its parameters are of
a kind that no row describes: callbacks, batches of structs. tests/python/forms.txt has the Python form of
every function, or the reason why there is none.
"""
import re
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[2] / "python"
STRUCTS, CALLS, ENUMS = PYTHON / "core/structs.c", PYTHON / "core/calls.c", PYTHON / "gpumem/_enums.py"

# python/core has these itself: what is quick, and what ends objects.
BY_HAND = {
    "gpumem_buffer_allocate", "gpumem_buffer_free", "gpumem_buffer_hold", "gpumem_buffer_release",
    "gpumem_buffer_get_layout", "gpumem_resource_close_later", "gpumem_resource_destroy", "gpumem_close",
    "gpumem_close_later", "gpumem_device_close", "gpumem_device_close_later", "gpumem_stream_create",
    "gpumem_stream_destroy", "gpumem_event_create", "gpumem_event_destroy", "gpumem_set_last_error",
    "gpumem_reservation_destroy", "gpumem_physical_destroy", "gpumem_mapping_destroy", "gpumem_export_destroy",
    "gpumem_watch_destroy", "gpumem_capture_pool_destroy", "gpumem_resource_find", "gpumem_resource_allocate",
    "gpumem_resource_deallocate", "gpumem_resource_use", "gpumem_pool_from_registry", "gpumem_pool_register",
    "gpumem_load_file", "gpumem_buffer_checksum", "gpumem_file_checksum", "gpumem_listener_close",
    "gpumem_ring_destroy", "gpumem_fallback_get_source", "gpumem_trace_resource_create",
    "gpumem_failure_callback_resource_create",
}
# Headers whose Python forms may wait.
WAITING = {"ring.h", "connect.h", "load.h", "softgpu.h", "mapped_store.h"}
OBJECTS = ("library", "device", "capture_pool", "watch", "export", "reservation", "physical", "mapping")
# The words of cuda.core where the enumerator's own would differ.
WORDS = {"GPUMEM_ACCESS_READ_WRITE": "rw", "GPUMEM_ACCESS_READ": "r"}
NUMBERS = {"bool": "BOOL", "int": "INT", "unsigned int": "UNSIGNED", "uint32_t": "UNSIGNED", "size_t": "SIZE",
           "uint64_t": "UINT64", "unsigned long long": "UINT64", "CUdeviceptr": "UINT64", "double": "DOUBLE",
           "float": "FLOAT", "unsigned char": "BYTE"}
MEMBERS = {"size_t": "size", "uint64_t": "wide", "CUdeviceptr": "wide", "int": "number", "unsigned int": "number",
           "uint32_t": "number", "unsigned char": "number", "bool": "flag"}
MADE = "made by tools/api/python_tables.py (./dev api)."
OUT = {"bool *": ("BOOL", "flag"), "int *": ("INT", "number"), "size_t *": ("SIZE", "size"),
       "uint64_t *": ("UINT64", "word"), "CUdeviceptr *": ("UINT64", "wide"), "float *": ("FLOAT", "single")}


def words(enum):
    """(word, value) of each enumerator: its name without what all of them begin with, in small letters."""
    values = [each for each in enum["values"] if not each["name"].endswith("_COUNT")]
    parts = [each["name"].split("_") for each in values]
    common = 0
    while all(len(each) > common + 1 and each[:common + 1] == parts[0][:common + 1] for each in parts):
        common += 1
    return [(WORDS.get(each["name"], "_".join(part[common:]).lower()), each["value"])
            for each, part in zip(values, parts)]


class Tables:
    def __init__(self, description):
        self.enums = {name: each for name, each in description["enums"].items() if name.startswith("gpumem_")}
        self.structs = {name: each for name, each in description["structs"].items()
                        if each["kind"] in ("options", "versioned") and name.startswith("gpumem_")
                        and each["header"] not in WAITING and name not in
                        {"gpumem_resource_ops", "gpumem_request", "gpumem_allocation", "gpumem_watch_event"}}
        self.functions = description["functions"]
        self.order = {name: index for index, name in enumerate(self.structs)}
        self.choices = {name: index for index, name in enumerate(self.enums)}

    def member(self, each, members):
        """(kind, extra, place of a count) of a struct's member; None: no row can have it."""
        kind, name = each["type"], each["name"]
        if kind in NUMBERS:
            return NUMBERS[kind], "0"
        if kind in self.enums:
            return "ENUM", f"CHOICES_{kind.removeprefix('gpumem_')}"
        if kind in ("CUstream", "CUevent"):
            return kind[2:].upper(), "0"
        if kind in ("CUcontext", "CUmemoryPool"):
            return "POINTER", "0"
        if kind == "const char *":
            return "TEXT", "0"
        array = re.fullmatch(r"(unsigned )?char\[(\d+)\]", kind)
        if array:
            return ("BYTES" if array.group(1) else "CHARS"), array.group(2)
        names = {other["name"] for other in members}
        if kind == "const int *" and f"{name.removesuffix('s')}_count" in names:
            return "INTS", "0"
        if kind == "const void *" and f"{name}_bytes" in names:
            return "BLOB", "0"
        return None

    def struct_rows(self, name):
        members = self.structs[name]["members"][1:]
        rows, skipped = [], []
        for each in members:
            found = self.member(each, members)
            if each["name"].endswith("_count") and "const int *" in [
                    other["type"] for other in members if other["name"] == each["name"].removesuffix("_count") + "s"]:
                continue
            if not found:
                skipped.append(each["name"])
                continue
            kind, extra = found
            if kind == "INTS":
                extra = f"offsetof({name}, {each['name'].removesuffix('s')}_count)"
            if kind == "BLOB":
                extra = f"offsetof({name}, {each['name']}_bytes)"
            rows.append(f'    {{"{each["name"]}", offsetof({name}, {each["name"]}), KIND_{kind}, {extra}}},')
        return rows, skipped

    def structs_c(self):
        out = [f"/* The enums and structs of the C interface, {MADE} */", "/* clang-format off */",
               '#include "tables.h"', "", "#include <gpumem/gpumem.h>", ""]
        for name, enum in self.enums.items():
            rows = "".join(f'    {{"{word}", {value}}},\n' for word, value in words(enum))
            out.append(f"static const struct choice {name}_rows[] = {{\n{rows}    {{NULL, 0}},\n}};")
        out.append("\nconst struct choices core_choices[] = {")
        out += [f'    {{"{name}", {name}_rows}},' for name in self.enums] + ["};", ""]
        for name in self.structs:
            rows, skipped = self.struct_rows(name)
            if skipped:
                out.append(f"/* Set by hand: {', '.join(skipped)}. */")
            out.append(f"static const struct member {name}_rows[] = {{")
            out += rows + ["    {NULL, 0, 0, 0},", "};"]
        out.append("\nconst struct layout core_layouts[] = {")
        out += [f'    {{"gpumem.{name[7:]}", sizeof({name}), {name}_rows}},' for name in self.structs] + ["};", ""]
        return "\n".join(out)

    def parameters(self, record):
        """Rows and C arguments of a call; None where a parameter fits no row."""
        rows, arguments = [], []
        given = record["parameters"]
        position = 0
        while position < len(given):
            each = given[position]
            kind, name, index = each["type"], each["name"], len(rows)
            bare = kind.removeprefix("const ").removesuffix(" *").removeprefix("gpumem_")
            row = None
            if kind in NUMBERS:
                row, argument = (NUMBERS[kind], "0"), f"({kind})v[{index}].{MEMBERS.get(kind, 'real')}"
            elif kind in self.enums:
                row = "ENUM", f"CHOICES_{kind.removeprefix('gpumem_')}"
                argument = f"({kind})v[{index}].number"
            elif kind in ("CUstream", "CUevent"):
                row, argument = (kind[2:].upper(), "0"), f"v[{index}].pointer"
            elif kind == "const char *":
                row, argument = ("TEXT", "0"), f"v[{index}].pointer"
            elif kind == "const unsigned char[16]":
                row, argument = ("UUID", "16"), f"v[{index}].pointer"
            elif kind in ("const void *", "void *", "const int *") and position + 1 < len(given) and \
                    given[position + 1]["type"] == "size_t":
                row = {"const void *": "READ", "void *": "WRITE", "const int *": "INTS"}[kind], "0"
                argument = f"v[{index}].pointer, v[{index}].count"
                position += 1
            elif kind in ("gpumem_buffer *", "const gpumem_buffer *"):
                row, argument = ("BUFFER", "0"), f"v[{index}].pointer"
            elif kind in ("gpumem_resource *", "const gpumem_resource *"):
                row, argument = ("RESOURCE", "0"), f"v[{index}].pointer"
            elif bare in OBJECTS and kind.endswith(" *") and not kind.endswith("**"):
                row, argument = ("OBJECT", f"OBJECT_{bare}"), f"v[{index}].pointer"
            elif kind == "gpumem_buffer **":
                row, argument = ("NEW_BUFFER", "0"), f"(gpumem_buffer **)&v[{index}].pointer"
            elif kind == "gpumem_resource **":
                row, argument = ("NEW_RESOURCE", "0"), f"(gpumem_resource **)&v[{index}].pointer"
            elif kind.endswith(" **") and kind[:-3].removeprefix("gpumem_") in OBJECTS:
                name_ = kind[:-3].removeprefix("gpumem_")
                row, argument = ("NEW_OBJECT", f"OBJECT_{name_}"), f"(gpumem_{name_} **)&v[{index}].pointer"
            elif kind in OUT:
                row, argument = ("OUT_" + OUT[kind][0], "0"), f"&v[{index}].{OUT[kind][1]}"
            elif kind in ("CUevent *", "CUstream *"):
                row, argument = ("OUT_POINTER", "0"), f"({kind[:-2]} *)&v[{index}].pointer"
            elif kind == "char **":
                row, argument = ("OUT_TEXT", "0"), f"(char **)&v[{index}].pointer"
            elif kind.endswith(" *") and kind[:-2] in self.enums:
                row = "OUT_ENUM", f"CHOICES_{kind[:-2].removeprefix('gpumem_')}"
                argument = f"({kind[:-2]} *)&v[{index}].number"
            elif kind.removeprefix("const ").removesuffix(" *") in self.structs:
                struct = kind.removeprefix("const ").removesuffix(" *")
                row = ("STRUCT" if kind.startswith("const ") else "OUT_STRUCT",
                       f"LAYOUT_{struct.removeprefix('gpumem_')}")
                argument = f"v[{index}].pointer"
            if row is None:
                return None
            rows.append((name, *row))
            arguments.append(argument)
            position += 1
        return rows, arguments

    def callable_functions(self):
        for name, record in self.functions.items():
            if (name in BY_HAND or record["inline"] or record["returns"] != "gpumem_status"
                    or record["header"] in WAITING):
                continue
            described = self.parameters(record)
            if described:
                yield name, *described

    def calls_c(self):
        out = [f"/* The C functions that Python calls by table, {MADE} */", "/* clang-format off */",
               '#include "tables.h"', "", "#include <gpumem/gpumem.h>", ""]
        table = []
        for name, rows, arguments in self.callable_functions():
            short = name.removeprefix("gpumem_")
            out.append(f"static gpumem_status call_{short}(union value *v) {{\n"
                       f"    return {name}({', '.join(arguments)});\n}}")
            listed = ", ".join(f'{{"{each}", KIND_{kind}, {extra}}}' for each, kind, extra in rows)
            out.append(f"static const struct parameter row_{short}[] = {{{listed}, {{NULL, 0, 0}}}};")
            table.append(f'    {{"{short}", call_{short}, row_{short}}},')
        out += ["\nconst struct cold core_calls[] = {", *table, "    {NULL, NULL, NULL},", "};", ""]
        return "\n".join(out)

    def tables_h(self):
        choices = "".join(f"    CHOICES_{name.removeprefix('gpumem_')},\n" for name in self.enums)
        layouts = "".join(f"    LAYOUT_{name.removeprefix('gpumem_')},\n" for name in self.structs)
        objects = "".join(f"    OBJECT_{name},\n" for name in OBJECTS)
        return (f"/* The numbers of the tables' rows, {MADE} */\n/* clang-format off */\n"
                f"#ifndef GPUMEM_PYTHON_NUMBERS_H\n#define GPUMEM_PYTHON_NUMBERS_H\n\n"
                f"enum {{\n{choices}    CHOICES_COUNT\n}};\n\nenum {{\n{layouts}    LAYOUT_COUNT\n}};\n\n"
                f"enum {{\n{objects}    OBJECT_COUNT\n}};\n\n#endif\n")

    def enums_py(self):
        status = [(each["name"].removeprefix("GPUMEM_").removeprefix("ERROR_"), each["value"], each["comment"])
                  for each in self.enums["gpumem_status"]["values"]]
        out = [f'"""The statuses of the C interface and the capabilities of devices, {MADE}"""', "import enum", "", "",
               "class Status(enum.IntEnum):", '    """What a call of the C interface returned."""', ""]
        out += [f"    {name} = {value}" for name, value, _ in status]
        out += ["", "", "CAPABILITIES = ("]
        out += [f'    "{word}",' for word, _ in words(self.enums["gpumem_capability"])] + [")", ""]
        return "\n".join(out)


def texts(description):
    """What is generated, by path."""
    tables = Tables(description)
    return {STRUCTS: tables.structs_c(), CALLS: tables.calls_c(), PYTHON / "core/numbers.h": tables.tables_h(),
            ENUMS: tables.enums_py()}
