#!/usr/bin/env python3
"""What the built libraries export and need is what is written down, no more and no less."""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import run_all  # noqa: E402  pylint: disable=wrong-import-position
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
INCLUDE = SOURCE / "include/gpumem"
LIB = BUILD / "lib"
SOFTGPU = LIB / "gpumem/softgpu"
# The C library, by the names that its parts have had.
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
        "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

# softgpu's own: the marker by which it is recognized, and the way to its controls (softgpu.h).
SOFTGPU_OWN = {"softgpu_version", "softgpu_get_control"}


def tool(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def exported(library):
    names = set()
    for line in tool("nm", "-D", "--defined-only", str(library)).splitlines():
        _, kind, name = line.split()[:3]
        if kind != "A":
            names.add(name.split("@")[0])
    return names


def dynamic(library, tag):
    return re.findall(rf"\({tag}\)[^\[]*\[([^\]]*)\]", tool("readelf", "-d", str(library)))


def declared():
    """Functions that the public headers mark as exported."""
    found = set()
    for path in INCLUDE.glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        found |= set(re.findall(r"\bGPUMEM_API\b[^;{(]*?\b(gpumem_\w+)\s*\(", text))
    return found


def difference(have, want):
    return [f"exported but not declared: {name}" for name in sorted(have - want)] + \
        [f"declared but not exported: {name}" for name in sorted(want - have)]


def check_gpumem_exports():
    return difference(exported(LIB / "libgpumem.so"), declared())


def check_vkgdr_exports():
    """Programs bind these by name alone: no version, and the soname that they were linked with."""
    text = re.sub(r"/\*.*?\*/", "", (SOURCE / "include/vkgdr.h").read_text(), flags=re.S)
    wanted = set(re.findall(r"\bVKGDR_API\b[^;{(]*?\b((?:gpumem_)?vkgdr_\w+)\s*\(", text))
    library = LIB / "libvkgdr.so.1"
    problems = difference(exported(library), wanted)
    theirs = {name for name in wanted if name.startswith("vkgdr_")}
    if len(theirs) != 12:
        problems.append(f"vkgdr.h declares {len(theirs)} functions of vkgdr's")
    if dynamic(library, "SONAME") != ["libvkgdr.so.1"]:
        problems.append(f"soname {dynamic(library, 'SONAME')}")
    versioned = [line for line in tool("nm", "-D", "--defined-only", str(library)).splitlines()
                 if "@" in line]
    return problems + [f"has a version: {line}" for line in versioned]


def check_softgpu_exports():
    table = set(re.findall(r"^CU_FN\((\w+),", (INCLUDE / "functions.def").read_text(), re.M))
    return difference(exported(SOFTGPU / "libsoftgpu.so.0"), table | SOFTGPU_OWN)


def check_shim():
    shim = SOFTGPU / "libcuda.so.1"
    problems = []
    if dynamic(shim, "SONAME") != ["libcuda.so.1"]:
        problems.append(f"soname {dynamic(shim, 'SONAME')}")
    if "libsoftgpu.so.0" not in dynamic(shim, "NEEDED"):
        problems.append("does not need libsoftgpu.so.0")
    if dynamic(shim, "RUNPATH") + dynamic(shim, "RPATH") != ["$ORIGIN"]:
        problems.append(f"search path {dynamic(shim, 'RUNPATH')}, not $ORIGIN alone")
    if not (SOFTGPU / "libcuda.so").is_symlink():
        problems.append("libcuda.so is not a symlink")
    engine = SOFTGPU / "libsoftgpu.so.0"
    if dynamic(engine, "SONAME") != ["libsoftgpu.so.0"]:
        problems.append(f"the engine's soname is {dynamic(engine, 'SONAME')}")
    flags = tool("readelf", "-d", str(engine))
    for flag in ("NODELETE", "SYMBOLIC"):
        if flag not in flags:
            problems.append(f"the engine lacks {flag}")
    return problems


def check_needed(library, *also):
    foreign = set(dynamic(library, "NEEDED")) - LIBC - set(also)
    return [f"needs {name}" for name in sorted(foreign)]


def check_complete(library):
    """Nothing is missing: what is undefined is libc's, by its version, or weak on purpose."""
    return [f"undefined: {line.split()[-1]}"
            for line in tool("nm", "-D", "--undefined-only", str(library)).splitlines()
            if line.split()[0] == "U" and "@GLIBC" not in line]


def check_static_names():
    """A program that links the archive must not meet names without our prefix."""
    problems = set()
    for line in tool("nm", "--defined-only", "--extern-only", str(LIB / "libgpumem.a")).splitlines():
        words = line.split()
        if len(words) == 3 and not re.match(r"gpumem_|gm_", words[2]):
            problems.add(f"defines {words[2]}")
    return sorted(problems)


CHECKS = [
    ("libgpumem exports what the headers declare", check_gpumem_exports),
    ("softgpu exports functions.def and its two own names", check_softgpu_exports),
    ("the shim has the driver's soname and needs the engine", check_shim),
    ("libvkgdr exports what vkgdr.h declares", check_vkgdr_exports),
    ("libvkgdr has no undefined symbols", lambda: check_complete(LIB / "libvkgdr.so.1")),
    ("libvkgdr needs only libc", lambda: check_needed(LIB / "libvkgdr.so.1")),
    ("libgpumem has no undefined symbols", lambda: check_complete(LIB / "libgpumem.so")),
    ("softgpu has no undefined symbols", lambda: check_complete(SOFTGPU / "libsoftgpu.so.0")),
    ("libgpumem needs only libc", lambda: check_needed(LIB / "libgpumem.so")),
    ("softgpu needs only libc", lambda: check_needed(SOFTGPU / "libsoftgpu.so.0")),
    ("the command needs only libc and libgpumem",
     lambda: check_needed(BUILD / "bin/gpumem", "libgpumem.so.0")),
    ("libgpumem.a defines only names with our prefix", check_static_names),
    # The comparison itself must be able to fail.
    ("an extra name and a missing name are detected",
     lambda: [] if len(difference({"a"}, {"b"})) == 2 else ["not found"]),
]


def main():
    return run_all(CHECKS)


if __name__ == "__main__":
    sys.exit(main())
