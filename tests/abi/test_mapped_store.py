#!/usr/bin/env python3
"""gpumem_store of a size that is known, up to 64 bytes, is the loads and stores and nothing else; of
every other it is one call."""
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position
PROGRAM = """#include <gpumem/mapped_store.h>
%s
void store_any(void *to, const void *from, size_t bytes) { gpumem_store(to, from, bytes); }
void store_twice(void *to, const void *a, const void *b) {
    gpumem_store(to, a, 8);
    gpumem_store(to, b, 8);
}
void store_fence(void) { gpumem_store_fence(); }
"""
KNOWN = "void store_%d(void *to, const void *from) { gpumem_store(to, from, %d); }"
SIZES = [*range(1, 65), 65, 4096]
# Loads and stores of any width, the end, and what compilers put where a function begins or ends.
MOVES = re.compile(r"^(v?mov\w*|ret[ql]?|endbr64|vzeroupper|nop\w*)\b")
FENCE = re.compile(r"^(sfence|ret[ql]?|endbr64|nop\w*)\b")

REPORT = Report()
report = REPORT.expect


def functions(compiler, *flags):
    """The instructions of each function."""
    text = PROGRAM % "\n".join(KNOWN % (size, size) for size in SIZES)
    done = subprocess.run([compiler, "-x", "c", "-std=c17", "-S", "-o", "-", *flags,
                           "-fno-asynchronous-unwind-tables", "-I", str(SOURCE / "include"), "-"],
                          input=text, capture_output=True, text=True, check=True)
    found, name = {}, None
    for line in done.stdout.splitlines():
        label = re.match(r"^(store_\w+):", line)
        if label:
            name = label.group(1)
            found[name] = []
        elif name and re.match(r"^\s+[a-z]", line):
            found[name].append(line.strip().replace("\t", " "))
    return found


def stores(instructions):
    """Those that write to where the first argument points."""
    return [line for line in instructions if re.search(r",\s*-?\d*\(%rdi\)", line)]


def judge(compiler, flags):
    found = functions(compiler, "-O2", *flags)
    title = " ".join([compiler, "-O2", *flags])
    wrong = [f"{size}: {line}" for size in range(1, 65) for line in found[f"store_{size}"]
             if not MOVES.match(line)]
    report(not wrong, f"{title}: stores of up to 64 bytes are plain moves", wrong[:10])
    for size in (1, 2, 4, 8, 16):
        report(len(stores(found[f"store_{size}"])) == 1, f"{title}: {size} bytes are one store",
               found[f"store_{size}"])
    report(1 <= len(stores(found["store_64"])) <= 4, f"{title}: 64 bytes are four stores at most",
           found["store_64"])
    report(len(stores(found["store_twice"])) == 2, f"{title}: a later store does not replace an earlier one",
           found["store_twice"])
    for name in ("store_65", "store_4096", "store_any"):
        calls = [line for line in found[name] if "gpumem_store_bytes" in line]
        report(len(calls) == 1, f"{title}: {name} is one call", found[name])
    wrong = [line for line in found["store_fence"] if not FENCE.match(line)]
    report(not wrong and any(line.startswith("sfence") for line in found["store_fence"]),
           f"{title}: the fence is one instruction", found["store_fence"])


def main():
    if platform.machine() != "x86_64":
        print("1..0 # SKIP reads the assembler of x86-64")
        return 0
    compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
    if not compilers:
        print("1..0 # SKIP neither gcc nor clang is there")
        return 0
    for compiler in compilers:
        judge(compiler, [])
        judge(compiler, ["-march=haswell"])
    return REPORT.end()


if __name__ == "__main__":
    sys.exit(main())
