#!/usr/bin/env python3
"""No public operation is without a sweep: each function of the headers that makes driver calls has had
them fail in one, and each other was called and made none. What the files of this folder do is counted by
operations.c while they run, and kept in the build folder: this test runs only what has not been run since the
program was linked. Nothing is listed by hand but what is said below."""
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import operations  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
# They repeat others under another schedule, in the other half of the faults, or sweep malloc.
REPEATS = re.compile(r"test_(caching_sweeps_late_\w+|(caching|snapshot)_host_memory|load_\w+|driver_sequences|graph_sweeps)$")
# Functions whose comment names driver calls that they do not make themselves: who does. An entry that makes
# one after all is a failure.
LATER = {
    "gpumem_tracking_resource_create": "allocations and frees",
}
# What starts a thread of the library, whose driver calls may come before the function has returned or after: they
# are counted as the function's own, or not.
BESIDE = {
    "gpumem_pinned_warm_up": "test_register_sweeps has each call of its thread fail",
}

results = []


def report(good, title, lines=()):
    results.append(good)
    print(f"{'' if good else 'not '}ok {len(results)} - {title}")
    for line in [] if good else lines:
        print(f"# {line}")


class Counts:
    def __init__(self):
        self.called = self.driver_calls = self.swept = self.failed = 0
        self.promised = False  # its comment names driver calls


def kept(file):
    """What the file's tests have counted since the program was linked, as lines; None where they have not run."""
    program = (BUILD / "tests/fault/run").stat()
    try:
        first, *lines = (BUILD / "tests/fault/counts" / file).read_text().splitlines()
    except (OSError, ValueError):
        return None
    return lines if lines and first == f"program {program.st_size} {int(program.st_mtime)}" else None


def run(file):
    """(its name, what went wrong or None, its lines of counts)"""
    lines = kept(file)
    if lines:
        return file, None, lines
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([BUILD / "tests/fault/run", file], env=dict(os.environ, TMPDIR=folder), check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    lines = kept(file)
    return file, None if done.returncode == 0 and lines else done.stdout[-2000:], lines or []


def gather(lines, counts):
    for line in lines:
        name, called, driver_calls, swept, failed = line.split()
        of = counts[name]
        of.called += int(called)
        of.driver_calls = max(of.driver_calls, int(driver_calls))
        of.swept += int(swept)
        of.failed += int(failed)


def complaints(counts, later, beside=()):
    """What is wrong with each function, as lines; none when all is well."""
    lines = []
    for name, of in counts.items():
        if name in beside and of.called:
            continue
        if name in later and of.driver_calls:
            lines.append(f"{name} makes driver calls, and is listed as if others made them")
        elif of.failed == 0 and of.driver_calls > 0:
            lines.append(f"{name} makes up to {of.driver_calls} driver calls, and none was made to fail")
        elif of.failed == 0 and of.promised and name not in later:
            lines.append(f"{name} names driver calls in its comment, and none was made to fail")
        elif of.failed == 0 and of.called == 0:
            lines.append(f"{name} is called by no file of tests/fault")
    lines += [f"{name} is listed and is no function" for name in later if name not in counts]
    lines += [f"{name} is listed and is no function" for name in beside if name not in counts]
    return lines


def test_that_gaps_are_seen():
    counts = {name: Counts() for name in ("swept", "free", "missed", "never", "listed", "silent")}
    counts["swept"].promised = counts["silent"].promised = True
    gather(["swept 1 5 1 1", "free 3 0 3 0", "missed 2 1 0 0", "never 0 0 0 0", "listed 1 4 1 1", "silent 1 0 0 0"], counts)
    counts["started"], counts["idle"] = Counts(), Counts()
    gather(["started 1 3 0 0", "idle 0 0 0 0"], counts)
    seen = complaints(counts, {"listed": "because", "gone": "because"}, {"started", "idle", "lost"})
    report(sorted(line.split()[0] for line in seen) == ["gone", "idle", "listed", "lost", "missed", "never", "silent"],
           "a function without a sweep is detected", seen)


def test_that_all_are_read(found):
    declared = sum(len(re.findall(r"^(?!#).*\bGPUMEM_API\b", path.read_text(), re.M))
                   for path in operations.INCLUDE.glob("*.h") if path.name not in operations.OTHER_INTERFACES)
    report(declared == len(found), "each declaration of the headers is read",
           [f"{declared} declarations, {len(found)} read"])


def main():
    if os.environ.get("GPUMEM_SANITIZE", "off") != "off":
        print("1..0 # SKIP the same programs are counted on the release build")
        return 0
    found = operations.find()
    test_that_gaps_are_seen()
    test_that_all_are_read(found)
    files = [path.stem for path in sorted(Path(__file__).parent.glob("test_*.c")) if not REPEATS.match(path.stem)]
    files.append("test_load_refused_one_reader")
    counts = {operation.name: Counts() for operation in found}
    for operation in found:
        counts[operation.name].promised = operation.says_driver_calls()
    with ThreadPoolExecutor(2) as pool:
        for name, wrong, lines in pool.map(run, files):
            gather(lines, counts)
            if wrong is not None:
                report(False, name, wrong.splitlines())
    lines = complaints(counts, LATER, BESIDE)
    report(not lines, "each public function is swept or makes no driver call", lines)
    swept = [of for of in counts.values() if of.failed]
    free = [name for name, of in counts.items() if not of.failed and of.called]
    print(f"# {len(swept)} operations were swept, by {sum(of.failed for of in swept)} failed driver calls; "
          f"{len(free)} were called and made none")
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
