#!/usr/bin/env python3
"""gpumem with standard descriptors closed: it works as far as it can, and ends."""
import itertools
import os
import subprocess

import harness
from harness import Failure, Skip, expect

MIB = 1 << 20
# Progress and results are what would be written into memory; the second process has its own.
SUBSETS = [subset for size in range(4) for subset in itertools.combinations(range(3), size)]


def run_without(closed, *command):
    """The finished process; `closed` are closed in it, the others are pipes or /dev/null."""
    def close():
        for number in closed:
            os.close(number)
    with subprocess.Popen(list(command), env=harness.environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=close) as process:
        try:
            out, err = process.communicate(timeout=50)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Failure(f"hangs with {closed} closed") from None
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def load_without(closed, folder):
    path = folder / "f"
    path.write_bytes(os.urandom(MIB) * 20)
    before = path.read_bytes()
    process = run_without(closed, harness.COMMAND, "load", str(path))
    # Without standard output it has arrived and is checked, but cannot be said.
    wanted = 1 if 1 in closed else 0
    expect(process.returncode == wanted,
           f"{closed} closed: status {process.returncode}, not {wanted}\n{process.stderr}")
    if 1 not in closed:
        expect("shared" in process.stdout and "done" in process.stdout,
               f"{closed} closed:\n{process.stdout}")
    if 2 not in closed:
        expect(("cannot write to standard output" in process.stderr) == (1 in closed),
               f"{closed} closed:\n{process.stderr}")
    expect(path.read_bytes() == before, "the file was changed")


def test_load_works_with_any_standard_descriptors_closed(folder):
    for closed in SUBSETS:
        load_without(closed, folder)


def test_a_started_program_inherits_closed_standard_descriptors(_folder):
    program = ("import os\nfor fd in range(3):\n    try:\n        os.fstat(fd)\n"
               "    except OSError:\n        os._exit(40 + fd)\nos._exit(39)")
    for closed, wanted in (((), 39), ((0,), 40), ((1,), 41), ((2,), 42)):
        # -S -E: nothing of the interpreter's own start opens files at these numbers for good.
        process = run_without(closed, harness.COMMAND, "run", "--softgpu", "--", "python3", "-I", "-S", "-c",
                              program)
        if closed == () and process.returncode != wanted:
            raise Skip(f"python3 does not run here: {process.stderr}")
        expect(process.returncode == wanted,
               f"{closed} closed: status {process.returncode}, not {wanted}\n{process.stderr}")


def test_other_commands_work_with_standard_descriptors_closed(_folder):
    for command in ("info", "doctor", "driver"):
        for closed in SUBSETS:
            process = run_without(closed, harness.COMMAND, command)
            wanted = (1,) if 1 in closed else (0, 1) if command == "doctor" else (0,)
            expect(process.returncode in wanted,
                   f"{command}, {closed} closed: status {process.returncode}\n{process.stderr}")


if __name__ == "__main__":
    harness.main(globals())
