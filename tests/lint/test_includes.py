#!/usr/bin/env python3
"""Who may include what: the table of docs/architecture.md, enforced."""
import re
import sys
import tempfile
from pathlib import Path

from files import SOURCE, project_files, tap

C_STANDARD = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp
signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads
time uchar wchar wctype""".split())
# What libc and the kernel's own headers add to these.
LIBC = C_STANDARD | set("""alloca dirent dlfcn elf endian err execinfo fcntl features fnmatch ftw
getopt glob grp ifaddrs langinfo libgen libintl link malloc mntent netdb nl_types poll pthread pwd
regex resolv sched search semaphore spawn strings sysexits syslog termios ucontext unistd utime
utmp wait""".split())
# C++'s own, in files of C++.
CPP_STANDARD = {f"c{name}" for name in C_STANDARD} | set("""algorithm any array atomic bit charconv
chrono compare concepts condition_variable deque exception expected filesystem format forward_list
fstream functional initializer_list iomanip ios iosfwd iostream istream iterator latch limits list map
memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token
streambuf string string_view syncstream system_error thread tuple type_traits typeindex typeinfo
unordered_map unordered_set utility valarray variant vector version""".split())
CPP = (".cc", ".cpp", ".hpp")
LIBC_FOLDERS = {"sys", "linux", "asm", "arpa", "net", "netinet", "bits"}
# Libraries of docs/dependencies.md, by header, and where each may be used.
LIBRARIES = {
    "lz4.h": ("src/softgpu",),
    "zlib.h": ("src/softgpu", "tools"),
    "zstd.h": ("src/softgpu",),
    "xxhash.h": ("tests/unit",),
    "cmocka.h": ("tests",),
    "cuda/memory_resource": ("include/gpumem/cpp/cuda_mr.hpp", "tests/clients"),
    **{f"cuda/{name}": ("tests/clients",) for name in ("buffer", "devices", "stream")},
    "omp.h": ("tests/clients",),
    "openacc.h": ("tests/clients",),
    # Compilers' own, for the instructions that the copy kernels are made of.
    "cpuid.h": ("src/mapped/copy",),
    "emmintrin.h": ("src/base",),
    "immintrin.h": ("src/mapped/copy",),
    "Python.h": ("python/core",),
    "structmember.h": ("python/core",),
    "vulkan/vulkan.h": ("tests/conformance", "tests/parity"),
    "vulkan/vulkan_core.h": ("src/vulkan",),
    "vulkan/vk_icd.h": ("tests/vulkan_icd",),
    # Not a library but ours, under the name that programs of vkgdr's know.
    "vkgdr.h": ("src/vkgdr", "tests", "bench"),
}
# folder -> the folders of src/ that it may include, besides its own; None: public headers only
PARTS = {"base", "driver", "vulkan", "softgpu", "memory", "cache", "wrap", "share", "load",
         "snapshot", "mapped", "vkgdr", "runtime"}
# The folders of src/memory, each of which may include those named for it besides its own.
MEMORY = {
    "host": set(),
    "core": {"host"},
    "object": {"core"},
    "by_hand": {"core", "object"},
    "foreign": {"core", "object"},
    "virtual": {"core", "object"},
    "copy": {"core", "object", "virtual"},
    "pool": {"host", "core", "object", "virtual"},
    "pinned": {"host", "core", "object", "pool"},
    "managed": {"host", "core", "object", "virtual", "copy", "pool"},
    "capability": {"core", "object", "pool"},
}
RULES = {
    **{f"src/memory/{folder}": {"base", "driver", "vulkan", *(f"memory/{each}" for each in below)}
       for folder, below in MEMORY.items()},
    "src/base": set(),
    "src/driver": {"base"},
    "src/softgpu": {"base", "driver"},
    "src/vulkan": {"base"},
    "src/mapped": {"base", "driver", "vulkan", "memory", "mapped/copy"},
    "src/mapped/copy": {"base"},
    "src/memory": {"base", "driver", "vulkan"},
    "src/cache": {"base", "driver", "memory"},
    "src/wrap": {"base", "driver", "memory"},
    "src/share": {"base", "driver", "memory"},
    "src/load": {"base", "driver", "memory", "share"},
    "src/snapshot": {"base", "driver", "memory", "share"},
    "src/vkgdr": {"base", "driver", "vulkan"},
    "src/runtime": set(),
    "tools": None,
    "examples": None,
    "bench": None,
    "bench/inside": {"base", "mapped", "softgpu", "vulkan"},
    "compat": None,
    "python": None,
    "tests/conformance": None,
    "tests/runtime": {"runtime"},
    "tests/programs": None,
    "tests/cli": None,
    "tests/clients": None,
    "tests/coverage": None,
    "tests/parity": None,
    "tests/abi": None,
    "tests/runner": None,
    "tests/harness": None,
    "tests/vulkan_icd": {"base", "vulkan"},
    "tests/unit": PARTS,
    "tests/fault": PARTS,
    "tests/fuzz": PARTS,
}
# An example whose code itself is tested, and not a copy of it; the command's readers of files.
EXAMPLES = {("tests/conformance/arena.c", "../../examples/arena.c"),
            ("tests/fuzz/files.c", "../../tools/gpumem/device_code.h"),
            ("tests/fuzz/files.c", "../../tools/gpumem/wheel.h")}
# Tables of names, which are data: what they name is not used.
TABLES = {("src/softgpu/core/runtime_names.c", "runtime/runtime.def"),
          ("src/softgpu/core/runtime_names.c", "runtime/core/errors.def")}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def folder_of(path):
    """The longest row of the table that holds this file."""
    for depth in range(len(path.parts) - 1, 0, -1):
        name = "/".join(path.parts[:depth])
        if name in RULES or name == "include/gpumem":
            return name
    if path == Path("include/vkgdr.h"):
        return "include/gpumem"
    return None


def is_libc(name, known):
    stem = name[:-2] if name.endswith(".h") else name
    first = name.split("/")[0]
    return stem in known or (known is LIBC and "/" in name and first in LIBC_FOLDERS)


def judge_system(path, folder, name):
    """What is wrong with #include <name> in this file, or None."""
    if name.startswith("gpumem/"):
        return None
    if path.suffix in CPP and name in CPP_STANDARD:
        return None
    if name in LIBRARIES and any(f"{path}/".startswith(f"{place}/") for place in LIBRARIES[name]):
        return None
    if folder == "include/gpumem":
        return None if is_libc(name, C_STANDARD) else "public headers include C's own headers only"
    if name in LIBRARIES:
        return f"{name} may be used in {', '.join(LIBRARIES[name])}"
    return None if is_libc(name, LIBC) else "neither libc nor a library of docs/dependencies.md"


def judge_own(root, path, folder, name):
    """What is wrong with #include "name" in this file, or None."""
    if (str(path), name) in EXAMPLES | TABLES:
        return None
    if ".." in name.split("/"):
        target = ((root / path).parent / name).resolve()
        if not target.is_relative_to((root / folder).resolve()):
            return "a path with .. that leads out of the folder"
    if folder == "include/gpumem":
        return "public headers are included as <gpumem/...>"
    allowed = RULES[folder]
    part = name.split("/")[0]
    if part in PARTS and "/" in name and (root / "src" / name).exists():
        if allowed is None:
            return "the inside of the library: public headers only"
        parts = {"/".join(name.split("/")[:depth]) for depth in range(1, name.count("/") + 1)}
        if parts & allowed or f"src/{name}".startswith(f"{folder}/"):
            return None
        return f"{folder} may include {', '.join(sorted(allowed)) or 'nothing of src/'}"
    top = root / ("bench" if folder == "bench/inside" else folder)
    places = [(root / path).parent, top, root / "tests/harness"]
    if any((place / name).exists() for place in places):
        return None
    return "not a header of this folder, nor of its harness"


def violations(root):
    found = []
    for path in project_files(root):
        if path.suffix not in (".c", ".h", ".def", ".inc", *CPP):
            continue
        if str(path).startswith(("tests/abi/standin/", "tests/install/")):
            continue
        folder = folder_of(path)
        if folder is None:
            found.append(f"{path}: its folder is not in the table of this test")
            continue
        lines = (root / path).read_text(errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            include = INCLUDE.match(line)
            if not include:
                continue
            if include.group(1) == "<":
                problem = judge_system(path, folder, include.group(2))
            else:
                problem = judge_own(root, path, folder, include.group(2))
            if problem:
                found.append(f"{path}:{number}: {include.group(2)}: {problem}")
    return found


PLANTED = [
    ("include/gpumem/a.h", "#include <unistd.h>"),
    ("include/gpumem/a.h", "#include <cuda.h>"),
    ("include/gpumem/a.h", '#include "a.h"'),
    ("include/gpumem/a.h", "#include <vector>"),
    ("include/gpumem/cpp/a.hpp", "#include <unistd.h>"),
    ("include/gpumem/cpp/a.hpp", '#include "b.hpp"'),
    ("include/gpumem/cpp/a.hpp", "#include <cuda/memory_resource>"),
    ("src/base/a.c", '#include "driver/x.h"'),
    ("src/driver/a.c", '#include "memory/x.h"'),
    ("src/softgpu/stream/a.c", '#include "memory/x.h"'),
    ("src/softgpu/a.c", '#  include "share/x.h"'),
    ("src/memory/a.c", '#include "softgpu/x.h"'),
    ("src/memory/a.c", '#include "share/x.h"'),
    ("src/share/a.c", '#include "load/x.h"'),
    ("src/wrap/a.c", '#include "cache/x.h"'),
    ("src/memory/a.c", '#include "wrap/x.h"'),
    ("src/memory/a.c", '#include "../share/x.h"'),
    ("src/memory/host/a.c", '#include "memory/core/x.h"'),
    ("src/memory/core/a.c", '#include "memory/object/x.h"'),
    ("src/memory/pool/a.c", '#include "memory/pinned/x.h"'),
    ("src/memory/virtual/a.c", '#include "../copy/x.h"'),
    ("src/memory/copy/a.c", '#include "share/x.h"'),
    ("src/memory/a.c", "#include <ini.h>"),
    ("src/vulkan/a.c", '#include "driver/x.h"'),
    ("src/vulkan/a.c", '#include "memory/x.h"'),
    ("src/share/a.c", '#include "vulkan/x.h"'),
    ("src/memory/a.c", "#include <vulkan/vulkan_core.h>"),
    ("src/load/a.c", "#include <cuda.h>"),
    ("src/mapped/copy/a.c", '#include "driver/x.h"'),
    ("src/mapped/copy/a.c", '#include "mapped/x.h"'),
    ("src/memory/a.c", "#include <immintrin.h>"),
    ("src/elsewhere/a.c", "#include <stdio.h>"),
    ("tools/gpumem/a.c", '#include "base/x.h"'),
    ("bench/a.c", '#include "memory/x.h"'),
    ("tests/conformance/a.c", '#include "driver/x.h"'),
    ("tests/unit/a.c", "#include <vulkan/vulkan.h>"),
]


def check_planted():
    """Each planted violation is found, and nothing else in the same tree."""
    problems = []
    for name, line in PLANTED:
        with tempfile.TemporaryDirectory() as temporary:
            root = Path(temporary)
            for part in (*PARTS, *(f"memory/{folder}" for folder in MEMORY)):
                (root / "src" / part).mkdir(parents=True)
                (root / "src" / part / "x.h").write_text("#include <stddef.h>\n")
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"#include <stddef.h>\n{line}\n")
            found = violations(root)
            if len(found) != 1 or not found[0].startswith(name):
                problems.append(f"{line} in {name}: found {found}")
    return problems


if __name__ == "__main__":
    sys.exit(tap([
        ("every #include is allowed where it stands", violations(SOURCE)),
        ("planted violations are detected", check_planted()),
    ]))
