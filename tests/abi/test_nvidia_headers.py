#!/usr/bin/env python3
"""cuda_api.h and functions.def equal NVIDIA's headers, those of 12.8 and those of 13.0.

Compared in both directions: size of every struct and union, name, offset, size and type of every
member, every enumerator and constant, every function type in every ABI version. differences.txt
lists what may differ, each with its reason; an entry that no longer applies fails too. Errors are
planted to see that they are found. A release whose headers cannot be had is skipped.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import dwarf
import headers

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))

NVIDIA_INCLUDES = ["cuda.h", "cudaTypedefs.h", "cudaGL.h", "cudaGLTypedefs.h", "cudaEGL.h",
                   "cudaEGLTypedefs.h", "vdpau/vdpau.h", "cudaVDPAU.h", "cudaVDPAUTypedefs.h", "cudaProfiler.h",
                   "cudaProfilerTypedefs.h"]
# Names that are ours to compare: NVIDIA's headers also pull in libc.
OURS = re.compile(r"^(?:struct )?(?:CU|cu|cl_|NVCL_|cuda)")
CONSTANT = re.compile(r"^(?:CU_|CUDA_)\w+$")
# Function-like or configuration macros, and the version, which is what tells the releases apart.
NOT_CONSTANTS = {"CUDA_VERSION", "CUDA_CB", "CUDA_FN"}


def compile_object(text, includes, output):
    source = output.with_suffix(".c")
    source.write_text(text)
    command = ["cc", "-std=gnu17", "-w", "-gdwarf-4", "-fno-eliminate-unused-debug-types",
               "-fno-eliminate-unused-debug-symbols", "-c", str(source), "-o", str(output)]
    for folder in includes:
        command += ["-isystem", str(folder)]
    subprocess.run(command, check=True)
    return dwarf.Types(output)


def preprocess(text, includes, *flags):
    command = ["cc", "-std=gnu17", "-E", *flags, "-x", "c", "-"]
    for folder in includes:
        command += ["-isystem", str(folder)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def constants(text, includes, folder):
    """name -> value of each object-like CU_ or CUDA_ macro that is an integer or a pointer."""
    names = []
    for line in preprocess(text, includes, "-dM").splitlines():
        macro = re.match(r"#define (\w+) (.+)$", line)
        if macro and CONSTANT.match(macro.group(1)) and macro.group(1) not in NOT_CONSTANTS:
            names.append(macro.group(1))
    prints = "".join(f'    printf("{n} %llx\\n", (unsigned long long)({n}));\n' for n in names)
    source = folder / "constants.c"
    source.write_text(f"{text}\n#include <stdio.h>\nint main(void) {{\n{prints}}}\n")
    program = folder / "constants"
    command = ["cc", "-std=gnu17", "-w", str(source), "-o", str(program)]
    for include in includes:
        command += ["-isystem", str(include)]
    subprocess.run(command, check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


def describe(types, functions, macros):
    """A flat dictionary: what is compared -> its value."""
    facts = {}
    for name, record in types.records().items():
        if not OURS.match(name) or not record.children:
            continue
        facts[f"sizeof {name}"] = str(types.size(record))
        for path, offset, size, kind in types.members(record):
            facts[f"member {name}.{path}"] = f"offset {offset}, {size} bytes, {kind}"
    for name, value in types.enumerators().items():
        if OURS.match(name):
            facts[f"value {name}"] = str(value & 0xffffffff)
    for name, value in macros.items():
        facts[f"constant {name}"] = value
    for name, entry in types.typedefs.items():
        if OURS.match(name) and types.strip(entry) is not None:
            facts[f"type {name}"] = types.spell(entry)
    for name, signature in functions.items():
        facts[f"function {name}"] = signature
    return facts


def our_facts(folder, include=SOURCE / "include"):
    text = "#include <gpumem/cuda_api.h>\n"
    types = compile_object("#include <gpumem/driver.h>\ngpumem_driver_api *table;\n",
                           [include], folder / "ours.o")
    rows = re.findall(r"^CU_FN\((\w+), (\w+), (\d+), (\w+),",
                      (include / "gpumem/functions.def").read_text(), re.M)
    api = types.strip(types.typedefs["gpumem_driver_api"])
    signatures = {member.text("DW_AT_name"): types.function(types.target(member))
                  for member in api.children}
    functions, symbols = {}, {}
    for symbol, name, version, kind in rows:
        suffix = {"PLAIN": "", "PTDS": "_ptds", "PTSZ": "_ptsz"}[kind]
        functions[f"{name}_v{version}{suffix}"] = signatures[symbol]
        symbols[symbol] = signatures[symbol]
    return describe(types, functions, constants(text, [include], folder)), symbols


def nvidia_facts(root, folder):
    includes = [root, HERE / "standin"]
    text = "#define __CUDA_API_VERSION_INTERNAL 1\n" + \
        "".join(f"#include <{name}>\n" for name in NVIDIA_INCLUDES)
    declared = sorted(set(re.findall(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(", preprocess(text, includes))))
    pointers = "".join(f"__typeof__({name}) *declared_{name};\n" for name in declared)
    types = compile_object(text + pointers, includes, folder / "theirs.o")
    functions = {}
    for name, entry in types.typedefs.items():
        if re.match(r"PFN_cu\w+_v\d+(_pt[ds]s|_ptsz)?$", name):
            functions[name[len("PFN_"):]] = types.function(entry)
    symbols = {}
    for entry in types.top:
        name = entry.text("DW_AT_name") or ""
        if entry.tag == "DW_TAG_variable" and name.startswith("declared_"):
            symbols[name[len("declared_"):]] = types.function(types.target(entry))
    plain = "".join(f"#include <{name}>\n" for name in NVIDIA_INCLUDES)
    return describe(types, functions, constants(plain, includes, folder)), symbols


def allowed_differences(release):
    """[(kind, pattern, reason)] of differences.txt for this release."""
    found = []
    for line in (HERE / "differences.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            of, kind, what, reason = (part.strip() for part in line.split(" | "))
            if of == release:
                found.append((kind, re.compile(rf"(?:{what})\Z"), reason))
    return found


def compare(ours, theirs):
    """key -> (kind, explanation) of each difference."""
    differences = {}
    for key in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(key), theirs.get(key)
        if mine is None:
            differences[key] = ("missing", f"missing here; NVIDIA has {other}")
        elif other is None:
            differences[key] = ("added", f"only here: {mine}")
        elif mine != other:
            differences[key] = ("changed", f"here {mine}; NVIDIA has {other}")
    return differences


def differences_of(release, ours, our_symbols, nvidia):
    """What differs and is not allowed, what was allowed, and the allowances that nothing needed."""
    theirs, their_symbols = nvidia
    # NVIDIA declares fewer symbols than the driver exports: those are compared that both know.
    ours, theirs = dict(ours), dict(theirs)
    for symbol, signature in their_symbols.items():
        theirs[f"symbol {symbol}"] = signature
        if symbol in our_symbols:
            ours[f"symbol {symbol}"] = our_symbols[symbol]
    differences = compare(ours, theirs)
    allowed, unused = [], []
    for kind, pattern, reason in allowed_differences(release):
        hits = [key for key, (how, _) in differences.items() if how == kind and pattern.match(key)]
        allowed += [(key, reason) for key in hits]
        for key in hits:
            del differences[key]
        if not hits:
            unused.append(f"{pattern.pattern} has not {kind}")
    return differences, allowed, unused


def check_release(release, ours, our_symbols, nvidia):
    """[(title, what is wrong)] of each kind of fact."""
    differences, allowed, unused = differences_of(release, ours, our_symbols, nvidia)
    for key, reason in allowed:
        print(f"# {release}: allowed: {key}: {reason}")
    facts = list(nvidia[0]) + [f"symbol {symbol}" for symbol in nvidia[1]]
    results = []
    for kind in ("sizeof", "member", "value", "constant", "type", "function", "symbol"):
        count = sum(key.startswith(kind + " ") for key in facts)
        bad = [f"{key}: {why}" for key, (_, why) in differences.items()
               if key.startswith(kind + " ")]
        if count == 0:
            bad.append("nothing was found in NVIDIA's headers")
        results.append((f"{release}: {kind}, {count} compared", bad))
    results.append((f"{release}: every allowance is needed", unused))
    return results


# file, text, the error that is planted in its place, the fact that must then differ
PLANTED = [
    ("cuda_api.h", "    unsigned int planeCount;", "    unsigned long planeCount;",
     "member CUeglFrame.planeCount"),
    ("cuda_api.h", "    CUDA_ERROR_INVALID_VALUE = 1,", "    CUDA_ERROR_INVALID_VALUE = 2,",
     "value CUDA_ERROR_INVALID_VALUE"),
    ("cuda_api.h", "    CU_EGL_FRAME_TYPE_PITCH = 1,\n", "", "value CU_EGL_FRAME_TYPE_PITCH"),
    ("cuda_api.h", "#define CU_IPC_HANDLE_SIZE 64", "#define CU_IPC_HANDLE_SIZE 32",
     "constant CU_IPC_HANDLE_SIZE"),
    ("functions.def", "2000, PLAIN, (int *pi, CUdevice_attribute",
     "2000, PLAIN, (long *pi, CUdevice_attribute", "function cuDeviceGetAttribute_v2000"),
    ("functions.def", "CU_FN(cuCtxGetFlags, cuCtxGetFlags, 7000,",
     "CU_FN(cuCtxGetFlags, cuCtxGetFlags, 7010,", "function cuCtxGetFlags_v7000"),
]


def check_planted(release, nvidia):
    """Each planted error must be found."""
    for name, good, bad, key in PLANTED:
        with tempfile.TemporaryDirectory() as temporary:
            include = Path(temporary) / "include"
            shutil.copytree(SOURCE / "include", include)
            path = include / "gpumem" / name
            text = path.read_text()
            problems = [] if good in text else [f"'{good}' is not in {name}"]
            path.write_text(text.replace(good, bad, 1))
            ours, symbols = our_facts(Path(temporary), include)
            found = differences_of(release, ours, symbols, nvidia)[0]
            if key not in found:
                problems.append(f"'{bad}' went unnoticed")
            yield f"{release}: planted error in {key} is found", problems


def main():
    with tempfile.TemporaryDirectory() as temporary:
        ours, symbols = our_facts(Path(temporary))
    report = Report()
    for release in headers.RELEASES:
        root, why_not = headers.find(release, BUILD)
        if root is None:
            report.skip(release, f"no headers of CUDA {release} here: {why_not}")
            continue
        with tempfile.TemporaryDirectory() as temporary:
            nvidia = nvidia_facts(root, Path(temporary))
        results = check_release(release, ours, symbols, nvidia)
        results += check_planted(release, nvidia)
        for name, bad in results:
            report.result(name, bad)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
