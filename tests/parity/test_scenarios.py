#!/usr/bin/env python3
"""Every scenario is in the program: the linker collects the rows of all files, and of one more that is
planted here; no two have the same name."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[1] / "build"))
PARITY = BUILD / "tests/parity/parity"
OBJECTS = BUILD / "tests/CMakeFiles/parity.dir/parity"
IMAGES = BUILD / "tests/harness/libtest_images.a"
SOURCES = sorted((HERE / "scenarios").glob("*.c"))

# Three rows, an odd number, in a file that is linked between two others.
PLANTED = """
#include "parity.h"

static void nothing(void) {}

PAR_SCENARIOS = {
    {"planted/first", nothing, 0, 0},
    {"planted/second", nothing, PAR_ALONE, 0},
    {"planted/third", nothing, PAR_SWEEP, 2},
};

PAR_HELPERS = {
    {"planted-helper", nothing},
};
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]}: status {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


def names_of(program):
    return run(program, "list").split()


def the_program_has_every_scenario_of_every_file():
    names, problems = set(names_of(PARITY)), []
    for source in SOURCES:
        _, mark, rows = source.read_text().partition("\nPAR_SCENARIOS = {")
        found = set(re.findall(r'\{(?:\.name = )?"([\w-]+/[\w/-]+)", ', rows))
        if not mark:
            problems.append(f"{source.name} has no PAR_SCENARIOS")
        if found - names:
            problems.append(f"{source.name}: not in the program: {found - names}")
    return problems


def scenario_names_are_unique():
    names = names_of(PARITY)
    return [name for name in sorted(set(names)) if names.count(name) > 1]


def scenarios_of_a_new_file_are_found():
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "planted.c"), Path(folder, "parity")
        made = source.with_suffix(".o")
        source.write_text(PLANTED)
        run("cc", "-std=gnu17", "-c", "-I", HERE, "-I", HERE.parents[1] / "include", source, "-o", made)
        objects = sorted(OBJECTS.rglob("*.c.o"))
        run("cc", *objects[:20], made, *objects[20:], IMAGES, "-o", program, "-L", BUILD / "lib",
            f"-Wl,-rpath,{BUILD / 'lib'}", "-lgpumem", "-ldl")
        more = sorted(names_of(program))
        # The helper is found too: it makes no call and ends well.
        run("env", "GPUMEM_DRIVER=softgpu", program, "helper", "planted-helper", "0")
    wanted = sorted([*names_of(PARITY), "planted/first", "planted/second", "planted/third"])
    return [] if more == wanted else [f"{len(more)} scenarios, not {len(wanted)}: {set(more) ^ set(wanted)}"]


def main():
    tests = [the_program_has_every_scenario_of_every_file, scenario_names_are_unique,
             scenarios_of_a_new_file_are_found]
    print(f"1..{len(tests)}")
    bad = 0
    for number, test in enumerate(tests, 1):
        problems = test()
        bad += bool(problems)
        for problem in problems:
            print(f"# {problem}")
        print(f"{'not ' if problems else ''}ok {number} - {test.__name__.replace('_', ' ')}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
