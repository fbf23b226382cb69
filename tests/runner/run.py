#!/usr/bin/env python3
"""Runs test programs, each with a time limit, and counts their tests.

A program speaks TAP (cmocka does when asked; scripts may), and each `ok` line is a test. One that
prints no TAP is one test by its exit status: 0 passed, 77 skipped, else failed. Whatever TAP says,
a program that dies, exits non-zero, runs too long or prints fewer lines than it planned has failed.

A skip needs a reason: the last line `skip: WHY` that was printed before it, or the TAP directive's
own text. A skip without one counts as a failure, because nobody could tell it from a lost test.

A time limit is meant for a machine with nothing else to do. Where more runs than there are processors, a
second counts for less, as the load of that second says, and the report says so.

Each test has a temporary folder of its own ($TMPDIR). What it leaves there is a failure, and removed.
No process outlives the run, however it ends: guard.py.

The last line is `N passed, N failed` or `N passed, N failed, N skipped`; the lines before it name what
failed, so that the end of any log does.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import guard

SOURCE = Path(__file__).resolve().parents[2]
RESULT = re.compile(r"^(not )?ok\b\s*(\d+)?\s*-?\s*(.*?)\s*(?:#\s*(SKIP)\b\s*(.*))?$", re.I)
PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*SKIP\b\s*(.*))?$", re.I)
REASON = re.compile(r"^(?:#\s*)?skip(?:ped)?:\s*(.+)$", re.I)
OUTPUT_LIMIT = 20000
FAILED = "failed: "
# The most that a load stretches a limit: past it, something is wrong with the machine.
MOST_STRETCH = 20
# A program that needs more than this part of its limit on an idle machine is about to reach it.
NEAR = 0.5
# What took longer than its limit by more than this has had it stretched.
STRETCHED = 1.05
# Seconds between two looks at the load.
TICK = 0.25
LOAD = Path("/proc/loadavg")
# Names of the tests that take longest, the longest first.
SLOW = Path(__file__).with_name("slow.txt")


class Outcome:
    """What one program did: counts, and the lines that explain them."""

    def __init__(self, name):
        self.name = name
        self.passed = 0
        self.failures = []
        self.skips = []
        self.output = ""
        self.seconds = 0.0
        self.note = ""

    def skip(self, test, reason):
        if reason:
            self.skips.append((test, reason))
        else:
            self.failures.append(f"{test}: skipped without a reason")


def parse_tap(outcome, text):
    """Counts TAP lines; returns (planned, seen), or (None, 0) where the text is not TAP."""
    planned, seen, reason = None, 0, ""
    for line in text.splitlines():
        plan = PLAN.match(line)
        if plan:
            planned = (planned or 0) + int(plan.group(1))
            if int(plan.group(1)) == 0 and plan.group(2):
                outcome.skip("all", plan.group(2))
            continue
        said = REASON.match(line)
        if said:
            reason = said.group(1).strip()
            continue
        result = RESULT.match(line)
        if not result:
            continue
        seen += 1
        name, after = result.group(3), (result.group(5) or "").strip()
        if result.group(4):
            # cmocka writes the test's name behind the directive, where TAP has the reason.
            if name:
                outcome.skip(name, after or reason)
            else:
                outcome.skip(after or f"test {seen}", reason)
        elif result.group(1):
            outcome.failures.append(name or f"test {seen}")
        else:
            outcome.passed += 1
        reason = ""
    return planned, seen


def describe(code):
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exit status {code}"


def judge(outcome, code, timed_out, seconds):
    """Turns output and exit status into counts."""
    planned, seen = parse_tap(outcome, outcome.output)
    is_tap = planned is not None or seen > 0
    if timed_out:
        outcome.failures.append(f"no end after {seconds:.0f} s")
    elif not is_tap:
        if code == 0:
            outcome.passed += 1
        elif code == 77:
            found = REASON.findall(outcome.output) or re.findall(
                r"(?im)^(?:#\s*)?skip(?:ped)?:\s*(.+)$", outcome.output)
            outcome.skip("program", found[-1] if found else "")
        else:
            outcome.failures.append(describe(code))
        return
    elif code != 0 and (code < 0 or not outcome.failures):
        outcome.failures.append(describe(code))
    if planned is not None and seen < planned:
        outcome.failures.append(f"{planned - seen} of {planned} tests gave no result")


class Clock:
    """Counts seconds as a machine with nothing else to do would: where two tasks share a processor, each
    second is half a one."""

    def __init__(self, source, processors):
        self.source = source
        # The mean of the last minute follows late; the number of this moment only where it is the kernel's.
        self.moment = Path("/proc/stat") if source == LOAD else None
        self.processors = processors

    def load(self):
        """The number of runnable tasks; 0 where it is not told."""
        return max(self.load_of_minute(), self.load_of_moment())

    def load_of_minute(self):
        try:
            return float(self.source.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return 0.0

    def load_of_moment(self):
        try:
            text = self.moment.read_text() if self.moment else ""
        except OSError:
            text = ""
        found = re.search(r"^procs_running (\d+)", text, re.M)
        return float(found.group(1)) - 1 if found else 0.0  # this thread is one of them

    def stretch(self):
        return min(max(1.0, self.load() / self.processors), MOST_STRETCH)

    def wait(self, process, limit):
        """Waits for a process until `limit` seconds are counted: whether it ended, and the count."""
        counted = 0.0
        while counted < limit:
            stretch = self.stretch()
            step = min(TICK, (limit - counted) * stretch)
            begin = time.monotonic()
            try:
                process.wait(step)
                return True, counted + (time.monotonic() - begin) / stretch
            except subprocess.TimeoutExpired:
                # Not what the clock says: time in which this thread did not run is load, too.
                counted += max(step, 0.001) / stretch
        return False, counted


def stop_group(process):
    """Ends a test and whatever it started, all of it in the session that we made for it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def empty_folder(outcome, folder, timed_out):
    """Removes a test's temporary folder; what is left in it is a failure, but of one cut short."""
    left = sorted(path.name for path in folder.iterdir())
    if left and not timed_out:
        outcome.failures.append(f"left in the temporary folder: {', '.join(left[:10])}")
    shutil.rmtree(folder, ignore_errors=True)


def run_one(name, command, limit, environment, clock):
    outcome = Outcome(name)
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    # A file, not a pipe: a grandchild that keeps a pipe open would keep us waiting.
    with tempfile.TemporaryFile() as sink:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
                env=dict(environment, TMPDIR=str(folder)), cwd=SOURCE, start_new_session=True)
        except OSError as error:
            outcome.failures.append(f"cannot start: {error}")
            folder.rmdir()
            return outcome
        ended, counted = clock.wait(process, limit)
        stop_group(process)
        code = process.wait()
        sink.seek(0)
        outcome.output = sink.read().decode("utf-8", "replace")
    outcome.seconds = time.monotonic() - begin
    judge(outcome, code, not ended, outcome.seconds)
    empty_folder(outcome, folder, not ended)
    if outcome.seconds > limit * STRETCHED:
        outcome.note = (f"the limit of {limit:g} s was stretched: {outcome.seconds:.0f} s counted for "
                        f"{counted:.0f}, with {clock.load():.1f} tasks on {clock.processors} processors at the end")
    elif ended and counted > NEAR * limit:
        outcome.note = f"near its limit of {limit:g} s"
    return outcome


def discover(build, folders):
    """(name, command) of each test below tests/<folder>: built programs, and scripts as they are.

    Programs are found by their sources, so that one left over from a deleted source is not run."""
    tests = []
    for folder in folders:
        root = SOURCE / "tests" / folder
        for path in sorted(root.rglob("test_*")):
            relative = path.relative_to(SOURCE / "tests")
            if path.suffix == ".c":
                program = build / "tests" / relative.parent / "run"
                tests.append((str(relative.with_suffix("")), [str(program), path.stem]))
            elif path.suffix == ".py":
                tests.append((str(relative), [sys.executable, str(path)]))
            elif path.suffix == ".sh":
                tests.append((str(relative), ["sh", str(path)]))
    return tests


def slow_first(tests):
    """A long test that starts last would run alone: those of slow.txt go first, in its order."""
    place = {name: i for i, name in enumerate(SLOW.read_text().split())}
    return sorted(tests, key=lambda test: place.get(test[0], len(place)))


def make_environment(build, driver, sanitize, long):
    environment = dict(os.environ)
    environment.pop("GPUMEM_TEST_LONG", None)
    if long:
        environment["GPUMEM_TEST_LONG"] = "1"
    environment.update(
        CMOCKA_MESSAGE_OUTPUT="tap",
        GPUMEM_SOURCE_DIR=str(SOURCE),
        GPUMEM_BUILD_DIR=str(build),
        GPUMEM_SANITIZE=sanitize,
        GPUMEM_DRIVER=driver,
        LC_ALL="C.UTF-8",
    )
    environment.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_string_checks=1")
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    # Threads that run when the process ends are no leak here: a driver never joins its own, and
    # tests of exit leave some on purpose. Each process that ends would wait a second for reports of
    # such threads, and tests start thousands.
    environment.setdefault("TSAN_OPTIONS", "second_deadlock_stack=1:report_thread_leaks=0:atexit_sleep_ms=50")
    return environment


def is_good(line):
    """An `ok` line of TAP: of a program that failed, nobody looks for what went well."""
    result = RESULT.match(line)
    return bool(result) and not result.group(1)


def report(outcome, verbose):
    word = "FAIL" if outcome.failures else "ok" if outcome.passed else "skip"
    counts = f"{outcome.passed} passed"
    if outcome.failures:
        counts += f", {len(outcome.failures)} failed"
    if outcome.skips:
        counts += f", {len(outcome.skips)} skipped"
    print(f"{word:4} {outcome.name:44} {counts:32} {outcome.seconds:6.2f} s")
    if outcome.failures or verbose:
        text = outcome.output
        if not verbose:
            text = "\n".join(line for line in text.splitlines() if not is_good(line))
        if len(text) > OUTPUT_LIMIT:
            text = text[:OUTPUT_LIMIT // 2] + "\n[...]\n" + text[-OUTPUT_LIMIT // 2:]
        for line in text.splitlines():
            print(f"     | {line}")
        for failure in outcome.failures:
            print(f"     failed: {failure}")
    if outcome.note:
        print(f"     note: {outcome.note}")
    sys.stdout.flush()


def count_line(passed, failed, skipped):
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def sum_up(tally):
    """The failures that a tally names, then the sum of its counts; the exit status."""
    lines = tally.read_text().splitlines()
    failures = [line for line in lines if line.startswith(FAILED)]
    counts = [[int(word) for word in line.split()] for line in lines if not line.startswith(FAILED)]
    passed, failed, skipped = (sum(column) for column in zip(*counts, [0, 0, 0]))
    for line in failures:
        print(line)
    print(count_line(passed, failed, skipped))
    return 1 if failed or failures or not passed else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=SOURCE / "build")
    parser.add_argument("--driver", default="softgpu", help="GPUMEM_DRIVER for the tests")
    parser.add_argument("--sanitize", default="off", choices=["off", "address", "thread"])
    parser.add_argument("--timeout", type=float, default=60.0,
                        help="seconds for each program, on a machine with nothing else to do")
    parser.add_argument("--long", action="store_true",
                        help="also what takes long: GPUMEM_TEST_LONG=1, and 30 times the time")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--match", default="", help="regular expression on the test's name")
    parser.add_argument("--command", action="append", default=[],
                        help="a command line to run as a test, besides those of the folders")
    parser.add_argument("--tally", type=Path, help="append `passed failed skipped` to this file, "
                        "and a line for each failure")
    parser.add_argument("--title", default="", help="what the tally's failures begin with")
    parser.add_argument("--sum", type=Path, help="run nothing, sum up this tally")
    parser.add_argument("--verbose", action="store_true", help="print all output")
    parser.add_argument("--load", type=Path, default=LOAD, help="where the load is read")
    parser.add_argument("folders", nargs="*", help="folders below tests/")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.long:
        options.timeout *= 30
    return options


def run_all(tests, options):
    """The outcomes, each reported when those before it are."""
    environment = make_environment(options.build, options.driver, options.sanitize, options.long)
    clock = Clock(options.load, len(os.sched_getaffinity(0)))
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        started = [pool.submit(run_one, name, command, options.timeout, environment, clock)
                   for name, command in tests]
        for future in started:
            outcomes.append(future.result())
            report(outcomes[-1], options.verbose)
    return outcomes


def main():
    options = parse()
    if options.sum:
        return sum_up(options.sum)
    # The folder of all tests' folders. Whoever is left at the end removes it.
    folder = tempfile.mkdtemp(prefix="gpumem-tests-")
    guard.enter(folder)
    tempfile.tempdir = folder

    tests = discover(options.build, options.folders)
    tests += [(command, shlex.split(command)) for command in options.command]
    if options.match:
        tests = [test for test in tests if re.search(options.match, test[0])]
    outcomes = run_all(slow_first(tests), options)

    passed = sum(outcome.passed for outcome in outcomes)
    failures = [f"{outcome.name}: {what}" for outcome in outcomes for what in outcome.failures]
    skips = [(outcome.name, *skip) for outcome in outcomes for skip in outcome.skips]
    if not tests:
        failures = ["no test matches"]
    for name, test, reason in skips:
        print(f"skipped: {name}: {test}: {reason}")
    for failure in failures:
        print(f"{FAILED}{failure}")
    if options.tally:
        title = options.title and f"{options.title}: "
        with options.tally.open("a") as tally:
            tally.write(f"{passed} {len(failures)} {len(skips)}\n")
            tally.writelines(f"{FAILED}{title}{failure}\n" for failure in failures)
    print(count_line(passed, len(failures), len(skips)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
