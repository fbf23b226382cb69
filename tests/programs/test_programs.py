#!/usr/bin/env python3
"""Each program with kernels prints what golden/ has of it, whenever work is done and however many threads run its
kernels; golden/ is what an H200 prints too.

With GPUMEM_TEST_LONG=1 the work is larger and the seeds are more. `test_programs.py --write` writes golden/ anew."""
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from tap_report import run_all  # noqa: E402  pylint: disable=wrong-import-position

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[1] / "build")).resolve()
LONG = os.environ.get("GPUMEM_TEST_LONG") == "1"
SANITIZED = os.environ.get("GPUMEM_SANITIZE", "off") != "off"
CANNOT_RUN = 77
SEEDS = range(1, 13) if LONG else range(1, 2) if SANITIZED else range(1, 4)
TWO_THREADS = (", with two threads", {"SOFTGPU_KERNEL_WORKERS": "2"})

SETTINGS = [
    ("", {}),
    TWO_THREADS,
    (", late", {"SOFTGPU_SCHEDULE": "late"}),
    *((f", in random order {seed}", {"SOFTGPU_SCHEDULE": "random", "SOFTGPU_SEED": str(seed)}) for seed in SEEDS),
]

# Ten times as slow there, and threads are what it looks at.
if os.environ.get("GPUMEM_SANITIZE") == "thread" and not LONG:
    SETTINGS = [TWO_THREADS]


def names():
    return sorted(path.stem for path in HERE.glob("*.c"))


def run(name, variables):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SOFTGPU_")}
    environment.update(GPUMEM_DRIVER="softgpu", **variables)
    # The runner ends the children of a program that hangs.
    return subprocess.run([BUILD / "tests/programs" / name], env=environment, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace")


def golden_of(name):
    return HERE / "golden" / f"{name}{'.long' if LONG else ''}.txt"


def prints_golden(name, variables):
    done = run(name, variables)
    wanted = golden_of(name).read_text() if golden_of(name).exists() else "(nothing: there is no such file)\n"
    if done.returncode == 0 and done.stdout == wanted:
        return []
    got, want = done.stdout.splitlines(), wanted.splitlines()
    differs = [f"  has   {line}" for line in got if line not in want] + \
              [f"  wants {line}" for line in want if line not in got]
    return [f"{name}: status {done.returncode}", *differs[:20], *done.stderr.splitlines()[-20:]]


def under(variables):
    return [problem for name in names() for problem in prints_golden(name, variables)]


def without_kernels():
    """A program that cannot run says why, and does not report success."""
    return [f"{name}: status {done.returncode}: {done.stdout}" for name in names() for done in [run(name, {"SOFTGPU_KERNELS": "0"})]
            if done.returncode != CANNOT_RUN or "\nskip: " not in done.stdout]


def golden_has_nothing_else():
    known = {f"{name}{kind}.txt" for name in names() for kind in ("", ".long")}
    here = {path.name for path in (HERE / "golden").iterdir()}
    return [f"golden/{name} is of no program" for name in sorted(here - known)] + \
           [f"golden/{name} is missing" for name in sorted(known - here)]


def write():
    for name in names():
        done = run(name, {})
        if done.returncode != 0:
            sys.exit(f"{name}: status {done.returncode}\n{done.stdout}{done.stderr}")
        golden_of(name).write_text(done.stdout)


def main():
    tests = [(f"programs print the expected output{how}", lambda variables=variables: under(variables))
             for how, variables in SETTINGS]
    tests += [("programs report that kernels are disabled", without_kernels), ("golden/ has a file for each program only", golden_has_nothing_else)]
    return run_all(tests)


if __name__ == "__main__":
    sys.exit(write() if "--write" in sys.argv[1:] else main())
