#!/usr/bin/env python3
"""Our CUDA runtime has the binary interface of NVIDIA's, of 12.9 and of 13.5: the same exported names under the same
version, types of the same size with members at the same places, values, and parameters. NVIDIA's wheels are downloaded
into the build folder and read there."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import dwarf
import headers

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
RUNTIME = SOURCE / "src/runtime"
RELEASES = {"12": "nvidia-cuda-runtime-cu12==12.9.79", "13": "nvidia-cuda-runtime==13.5.37"}
WANTED = r"/include/.*\.h(pp)?$|/lib/libcudart\.so\.\d+$"
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1"}

# Ours has the driver's name: NVIDIA's has its own for the same.
THEIRS = {"cudaLaunchConfig_t": "cudaLaunchConfig_st"}


def library(abi):
    return BUILD / f"lib/gpumem/runtime/{abi}/libcudart.so.{abi}"


def tool(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def exports(path):
    """{name@version kind} of a library; the version itself is no function."""
    lines = (line.split() for line in tool("nm", "-D", "--defined-only", path).splitlines())
    return {f"{name.replace('@@', '@')} {kind}" for _, kind, name in lines if kind != "A"}


def compare_exports(abi, theirs):
    ours, wanted = exports(library(abi)), exports(theirs)
    return [f"only ours: {name}" for name in sorted(ours - wanted)] + \
        [f"missing: {name}" for name in sorted(wanted - ours)] + ([] if len(wanted) > 400 else ["nothing was read"])


def dynamic(path, tag):
    return re.findall(rf"\({tag}\)[^\[]*\[([^\]]*)\]", tool("readelf", "-d", path))


def check_needed(abi):
    return [f"needs {name}" for name in dynamic(library(abi), "NEEDED") if name not in LIBC] + \
        ([] if dynamic(library(abi), "SONAME") == [f"libcudart.so.{abi}"] else ["the soname is another"])


def compiled(folder, name, text, *includes):
    source, result = folder / f"{name}.c", folder / f"{name}.o"
    source.write_text(text)
    flags = [word for include in includes for word in ("-isystem", include)]
    tool("cc", "-std=gnu17", "-w", "-gdwarf-4", "-fno-eliminate-unused-debug-types", "-c", source, "-o", result, *flags)
    return dwarf.Types(result)


def prototypes(names):
    """Variables whose types are the functions'."""
    return "".join(f"__typeof__(&{name}) type_of_{name};\n" for name in names)


# Rows of the table that declare parameters, as prototypes under their own names.
OURS = """
#define RT_ABI {abi}
#include "runtime/core/types.h"
#define IN_BOTH(text) text
#define IN_ONLY12(text) {twelve}
#define IN_ONLY13(text) {thirteen}
#define RT_PLAIN(name, abi, tier, twin, stream, use, error, params, args, driver, with) IN_##abi(cudaError_t name params;)
#define RT_FN(name, abi, tier, twin, stream, use, error, params, args) IN_##abi(cudaError_t name params;)
#define RT_RAW(...)
#define RT_LATER(...)
#include "runtime/runtime.def"
"""


def rows(abi):
    found = re.findall(r"^RT_(?:PLAIN|FN)\((\w+), (\w+), ", (RUNTIME / "runtime.def").read_text(), re.M)
    return [name for name, row in found if row in ("BOTH", f"ONLY{abi}")]


def our_types(abi, folder):
    text = OURS.format(abi=abi, twelve="text" if abi == "12" else "", thirteen="text" if abi == "13" else "")
    return compiled(folder, "ours", text + prototypes(rows(abi)), SOURCE / "include", SOURCE / "src")


def their_types(abi, include, folder):
    # With the names as they are exported, not as programs are given them.
    head = "#define __CUDA_API_VERSION_INTERNAL 1\n#include <cuda_runtime_api.h>\n"
    declared = set(re.findall(r"\b(cuda[A-Z]\w+)\s*\(", preprocessed(head, include)))
    names = [name for name in rows(abi) if name in declared]
    return compiled(folder, "theirs", head + prototypes(names), include), names


def preprocessed(text, include):
    return subprocess.run(["cc", "-E", "-x", "c", "-isystem", str(include), "-"], input=text, capture_output=True, text=True,
                          check=True).stdout


def passed(types, entry):
    """How a parameter is passed: as a pointer, as a number or as bytes of some size."""
    kind = types.strip(entry)
    if kind is None:
        return "void"
    if kind.tag == "DW_TAG_pointer_type":
        return "pointer"
    if kind.tag in ("DW_TAG_base_type", "DW_TAG_enumeration_type"):
        return f"number of {types.size(kind)}"
    return f"{types.size(kind)} bytes"


def signatures(types):
    found = {}
    for entry in types.top:
        name = entry.text("DW_AT_name") or ""
        if entry.tag == "DW_TAG_variable" and name.startswith("type_of_"):
            function = types.strip(types.target(types.strip(types.target(entry))))
            parameters = [passed(types, types.target(each)) for each in function.children
                          if each.tag == "DW_TAG_formal_parameter"]
            found[name[len("type_of_"):]] = [passed(types, types.target(function)), *parameters]
    return found


def compare_signatures(ours, theirs, names):
    mine, other = signatures(ours), signatures(theirs)
    return [f"{name}: {mine[name]}, not {other[name]}" for name in names if mine[name] != other[name]] + \
        ([] if len(names) > 250 else [f"only {len(names)} were compared"])


def leaves(types, entry, base=0):
    """(offset, size) of each number and pointer of a type."""
    kind = types.strip(entry)
    if kind.tag == "DW_TAG_array_type":
        element, size = types.target(kind), types.size(types.target(kind))
        for i in range(types.size(kind) // size if size else 0):
            yield from leaves(types, element, base + i * size)
    elif kind.tag in ("DW_TAG_structure_type", "DW_TAG_union_type"):
        for child in kind.children:
            if child.tag == "DW_TAG_member":
                yield from leaves(types, types.target(child), base + (child.number("DW_AT_data_member_location") or 0))
    else:
        yield base, types.size(kind)


def record(types, name):
    names = [name, f"struct {name}", f"struct {THEIRS.get(name, name)}"]
    return next((types.records()[each] for each in names if each in types.records()), None)


def reserved(types, entry):
    """Where a struct has what it calls reserved, at any depth: the other may have given it a name since."""
    found = []
    for path, offset, size, _ in types.members(entry):
        if re.search(r"reserved|pad", path.rsplit(".", 1)[-1], re.I):
            found.append((offset, offset + size))
    return found


def compare_structs(ours, theirs):
    problems, count = [], 0
    text = (RUNTIME / "core/types.h").read_text()
    for name in sorted(set(re.findall(r"\b(cuda[A-Z]\w*|dim3);", text))):
        mine, other = record(ours, name), record(theirs, name)
        if mine is None or not mine.children:
            continue
        if other is None or not other.children:
            problems.append(f"{name}: NVIDIA has none")
            continue
        count += 1
        if ours.size(mine) != theirs.size(other):
            problems.append(f"{name}: {ours.size(mine)} bytes, not {theirs.size(other)}")
        holes = reserved(ours, mine) + reserved(theirs, other)
        differ = set(leaves(ours, mine)) ^ set(leaves(theirs, other))
        # What one of them has as a union may be one number in the other.
        numbers = set(leaves(ours, mine)) & set(leaves(theirs, other))
        problems += [f"{name}: at {at}, {size} bytes" for at, size in sorted(differ)
                     if not any(start <= at < end for start, end in holes)
                     and not any(start <= at and at + size <= start + length for start, length in numbers)]
    return problems + ([] if count > 30 else [f"only {count} were compared"])


def compare_members(ours, theirs):
    """Members of structs that have NVIDIA's names are where NVIDIA's are."""
    problems = []
    for name, mine in ours.records().items():
        other = record(theirs, name)
        if not re.match(r"(struct )?(cuda|dim3)", name) or other is None:
            continue
        places = {path: offset for path, offset, _, _ in theirs.members(other)}
        problems += [f"{name}.{path}: at {offset}, not {places[path]}" for path, offset, _, _ in ours.members(mine)
                     if path in places and places[path] != offset and "reserved" not in path]
    return problems


def compare_values(ours, theirs):
    mine = {name: value for name, value in ours.enumerators().items() if name.startswith("cuda")}
    other = theirs.enumerators()
    # 13 has more errors than 12; they are not given to programs there.
    return [f"{name} is {value}, not {other.get(name)}" for name, value in mine.items() if other.get(name, value) != value] + \
        ([] if len(set(mine) & set(other)) > 120 else ["too few were compared"])


def compare_errors(theirs, ours_text):
    names = {name for name in theirs.enumerators() if name.startswith(("cudaError", "cudaSuccess"))}
    return [f"errors.def lacks {name}" for name in sorted(names) if f", {name}, " not in ours_text]


def main():
    report = Report()
    for abi, requirement in RELEASES.items():
        report.run(f"{abi}: needs the C library alone", check_needed, abi)
        cache = BUILD / "nvidia-runtime" / abi
        include, why_not = headers.download(requirement, cache, WANTED)
        if include is None:
            report.skip(abi, f"no headers of {requirement} here: {why_not}")
            continue
        theirs = next(cache.rglob(f"libcudart.so.{abi}"))
        report.run(f"{abi}: exports the names that NVIDIA's does", compare_exports, abi, theirs)
        with tempfile.TemporaryDirectory() as temporary:
            ours = our_types(abi, Path(temporary))
            nvidia, names = their_types(abi, include, Path(temporary))
        report.run(f"{abi}: parameters are passed as NVIDIA's", compare_signatures, ours, nvidia, names)
        report.run(f"{abi}: structs are laid out as NVIDIA's", compare_structs, ours, nvidia)
        report.run(f"{abi}: members are where NVIDIA's are", compare_members, ours, nvidia)
        report.run(f"{abi}: values are NVIDIA's", compare_values, ours, nvidia)
        report.run(f"{abi}: every error is known", compare_errors, nvidia, (RUNTIME / "core/errors.def").read_text())
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
