#!/usr/bin/env python3
"""The folders of src/memory depend downwards only, by what their objects define and use: a header
may declare what another folder defines, which includes do not show."""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import run_all  # noqa: E402  pylint: disable=wrong-import-position
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
MEMORY_SOURCES = SOURCE / "src/memory"
OBJECTS = BUILD / "src/CMakeFiles/gpumem_core_objs.dir/memory"
sys.path.insert(0, str(SOURCE / "tests/lint"))
from test_includes import MEMORY  # pylint: disable=wrong-import-position


def symbols_of(path):
    """What an object defines for others, and what it needs."""
    text = subprocess.run(["nm", "-P", str(path)], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^(\S+) (\w)\b", text, re.M)
    return ({name for name, kind in found if kind in "TDBRCVW"},
            {name for name, kind in found if kind == "U"})


def upward(uses, defined, rules):
    """Uses of a symbol that a folder defines on which this one may not depend."""
    return sorted(f"{folder}/{name} uses {symbol} of {defined[symbol]}"
                  for folder, name, needed in uses for symbol in needed
                  if defined.get(symbol, folder) not in {folder, *rules[folder]})


def main():
    sources = sorted(path.relative_to(MEMORY_SOURCES) for path in MEMORY_SOURCES.rglob("*.c"))
    strays = [f"{path}: no folder of the table" for path in sources if str(path.parent) not in MEMORY]
    strays += [f"{path} is not built in {BUILD}" for path in sources
               if not (OBJECTS / f"{path}.o").exists()]
    defined, uses = {}, []
    for path in [] if strays else sources:  # of an older build others may lie there too
        here, needed = symbols_of(OBJECTS / f"{path}.o")
        defined |= dict.fromkeys(here, path.parent.name)
        uses.append((path.parent.name, path.name, needed))
    found = upward(uses, defined, MEMORY)
    # A rule taken away must show: what pools take of virtual memory, for one.
    planted = upward(uses, defined, {**MEMORY, "pool": MEMORY["pool"] - {"virtual"}})
    # No row allows a way back.
    order = list(MEMORY)
    back = [f"{folder} may use {below}" for folder in order for below in MEMORY[folder]
            if order.index(below) >= order.index(folder)]
    results = [("every source is built, and in a folder of the table", strays if sources else ["there is no source"]),
               ("no object uses symbols of a folder above it", found),
               ("planted: a use that is not allowed is found", [] if planted else ["nothing"]),
               ("the table has no upward dependencies", back)]
    return run_all(results)


if __name__ == "__main__":
    sys.exit(main())
