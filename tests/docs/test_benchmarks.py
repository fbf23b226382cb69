#!/usr/bin/env python3
"""The programs that docs/mapped-memory.md names for its figures run here, by each method that a machine without a GPU
has, and print the rows that the page names."""
import os
import re
import subprocess
import sys
from pathlib import Path

from pages import SOURCE, report

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
ICD = BUILD / "tests/vulkan_icd/libvulkan_icd.so"
PAGE = SOURCE / "docs/mapped-memory.md"
METHODS = ["vulkan-import", "vulkan-export", "descriptor", "host"]
# Memory that Vulkan allocates neither grows nor is mapped twice.
FIXED = re.compile(r"^(grow from|map |.*, mirrored)")


def rows_of(page):
    """Program -> rows, by the table's last column: the first name is the program's."""
    found = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        names = re.findall(r"`([^`]+)`", cells[-1])
        if len(cells) == 3 and names and names[0].startswith("bench_"):
            found.setdefault(names[0], []).extend(names[1:])
    return found


def run(program, method):
    env = dict(os.environ, GPUMEM_DRIVER="softgpu", SOFTGPU_MEMORY="1G", GPUMEM_VULKAN=str(ICD),
               GPUMEM_MAPPED_METHOD=method)
    return subprocess.run([program], env=env, capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL,
                          check=False)


def problems_of(name, rows, method):
    program = BUILD / "bench" / name
    if not program.exists():
        return [f"{program} is not built"]
    done = run(program, method)
    if done.returncode != 0:
        return [f"{name}, {method}: exit status {done.returncode}\n{done.stdout}{done.stderr}"]
    wanted = [row for row in rows if not (method == "vulkan-export" and FIXED.match(row))]
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    return [f"{name}, {method}: no row '{row}'" for row in wanted
            if not any(line.startswith((row + " ", row + ",")) for line in printed)] + \
           ([] if f"method: {method}" in printed else [f"{name} used another method than {method}"])


def named_programs(rows):
    return sorted(set(re.findall(r"^bundle/bench/(\w+)", PAGE.read_text(), re.M)) - set(rows))


def main():
    rows = rows_of(PAGE.read_text())
    if not rows:
        return report([("the page names benchmark programs", ["no table names a benchmark"])])
    checks = [(f"each program of {PAGE.name} has rows in its table", [f"{name} has none" for name in named_programs(rows)])]
    for name in sorted(rows):
        for method in METHODS:
            checks.append((f"{name} runs by {method} and prints its rows", problems_of(name, rows[name], method)))
    checks.append(("a missing row is detected",
                   [] if problems_of("bench_mapped", ["no such row"], "host") else ["it is not"]))
    return report(checks)


if __name__ == "__main__":
    sys.exit(main())
