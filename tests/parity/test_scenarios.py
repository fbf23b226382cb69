#!/usr/bin/env python3
"""Every scenario is in the program: the linker collects the rows of all files, and of one more that is
planted here; no two have the same name. What a scenario prints is in none of its lines."""
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
SANITIZER = {"address": ["-fsanitize=address,undefined"]}.get(os.environ.get("GPUMEM_SANITIZE"), [])
SOURCES = sorted((HERE / "scenarios").glob("*.c"))

sys.path.insert(0, str(HERE))
import lines  # noqa: E402  pylint: disable=wrong-import-position

# Three rows, an odd number, in a file that is linked between two others.
PLANTED = """
#include "parity.h"
#include <stdio.h>
#include <stdlib.h>

SCENARIO(first, "planted/first") {}
SCENARIO(third, "planted/third", NULL, PAR_SWEEP, 2) {}
HELPER(nothing, "planted-helper") {}

/* As a kernel may: before a call, while it is made, and in the middle of a line. */
static CUresult print(CUresult result) {
    printf("words without an end");
    fflush(stdout);
    return result;
}

SCENARIO(prints, "planted/prints", NULL, PAR_ALONE) {
    print(0);
    par_see("before", "%d", 1);
    if (par_before(GPUMEM_FN_cuInit, "within", "(0)", NULL, 0))
        par_after(print(par.api->cuInit(0)), NULL, 0);
    int fd = par_spawn("planted/prints:peer");
    char answer = 0;
    par_receive(fd, &answer, 1, NULL);
    par_join();
    par_see("answered", "%c", answer);
}

HELPER(peer_prints, "planted/prints:peer") {
    print(0);
    par_see("peer", "%d", 2);
    par_send(par.peer_fd, "y", 1, -1);
}
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]}: status {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


def names_of(program):
    return run(program, "list").split()


def each_row_of_each_file_is_in_the_program():
    names, problems = set(names_of(PARITY)), []
    for source in SOURCES:
        text = source.read_text()
        found = set(re.findall(r'^[A-Z_]+\(\w+,\s+"([\w-]+/[\w/-]+)"', text, re.M))
        if not re.search(r"\bSCENARIO(_IS|_IN)?\(", text):
            problems.append(f"{source.name} has no SCENARIO")
        if found - names:
            problems.append(f"{source.name}: not in the program: {found - names}")
    return problems


def no_name_is_there_twice():
    names = names_of(PARITY)
    return [name for name in sorted(set(names)) if names.count(name) > 1]


def program_with_planted(folder):
    """The recorder, linked anew with one more file between the others."""
    source, program = Path(folder, "planted.c"), Path(folder, "parity")
    made = source.with_suffix(".o")
    source.write_text(PLANTED)
    run("cc", "-std=gnu17", "-c", "-I", HERE, "-I", HERE.parent / "harness", "-I", HERE.parents[1] / "include",
        source, "-o", made)
    # A build folder may have objects of sources that are gone.
    objects = sorted(path for path in OBJECTS.rglob("*.c.o")
                     if (HERE / path.relative_to(OBJECTS).with_suffix("")).exists())
    run("cc", *SANITIZER, *objects[:20], made, *objects[20:], IMAGES, "-o", program, "-L", BUILD / "lib",
        f"-Wl,-rpath,{BUILD / 'lib'}", "-lgpumem", "-ldl")
    return program


def the_rows_of_one_more_file_come_with_the_others(program):
    more = sorted(names_of(program))
    # The helper is found too: it makes no call and ends well.
    run("env", "GPUMEM_DRIVER=softgpu", program, "helper", "planted-helper", "0")
    wanted = sorted([*names_of(PARITY), "planted/first", "planted/prints", "planted/third"])
    return [] if more == wanted else [f"{len(more)} scenarios, not {len(wanted)}: {set(more) ^ set(wanted)}"]


def what_a_scenario_prints_is_in_no_line(program):
    output = program.with_suffix(".txt")
    run("env", "GPUMEM_DRIVER=softgpu", program, "run", "--scenario", "planted/prints", "-o", output)
    try:
        _, found = lines.read(output)
    except SystemExit as problem:
        return [str(problem)]
    answers = [f"{line.scenario} {line.head()} -> {line.answer}" for line in found]
    wanted = ["planted/prints see before () -> 1",
              "planted/prints cuInit@2000 within (0) -> CUDA_SUCCESS",
              "planted/prints:peer see peer () -> 2",
              "planted/prints see answered () -> y"]
    return [] if answers == wanted else answers


def main():
    with tempfile.TemporaryDirectory() as folder:
        planted = program_with_planted(folder)
        tests = [(each_row_of_each_file_is_in_the_program, ()), (no_name_is_there_twice, ()),
                 (the_rows_of_one_more_file_come_with_the_others, (planted,)),
                 (what_a_scenario_prints_is_in_no_line, (planted,))]
        print(f"1..{len(tests)}")
        bad = 0
        for number, (test, arguments) in enumerate(tests, 1):
            problems = test(*arguments)
            bad += bool(problems)
            for problem in problems:
                print(f"# {problem}")
            print(f"{'not ' if problems else ''}ok {number} - {test.__name__.replace('_', ' ')}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
