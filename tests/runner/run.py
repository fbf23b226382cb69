#!/usr/bin/env python3
"""Runs test programs, each with a time limit, and counts their tests.

    run.py [--build FOLDER] [--match RE] FOLDER...

tap.py has what counts as a test, as passed and as skipped, clock.py what a limit is on a loaded machine,
launch.py how a program is run, screen.py and summary.py what is printed. The last line is `N passed, N failed`
or `N passed, N failed, N skipped`; the lines before it name what failed, so that the end of any log does.

No process outlives the run, however it ends: guard.py. `./dev test` is session.py, which runs what is built
here in the order of stages.py.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import sys
import tempfile
import threading
import time
from pathlib import Path

import catalogue
import guard
import screen as screens
import summary
from clock import LOAD, Clock
from launch import Test, run_one
from tap import Outcome

SOURCE = Path(__file__).resolve().parents[2]


class Running:
    """Which tests run now, and since when."""

    def __init__(self):
        self.lock = threading.Lock()
        self.since = {}

    def run(self, test, clock):
        with self.lock:
            self.since[id(test)] = time.monotonic(), test.name
        try:
            return run_one(test, clock)
        finally:
            with self.lock:
                del self.since[id(test)]

    def oldest(self):
        with self.lock:
            return min(self.since.values())[1] if self.since else ""


def run_all(tests, screen, jobs, load=LOAD):
    """The outcomes, each reported at once."""
    clock = Clock(load, len(os.sched_getaffinity(0)))
    running, outcomes, failed = Running(), [], 0
    screen.start()

    def show():
        text = f"{len(outcomes)} of {len(tests)} programs, {failed} failed, {screen.seconds():.0f} s"
        if len(outcomes) < len(tests) and screen.terminal:
            text += f"  {running.oldest()}"
        screen.progress(text, len(outcomes) / len(tests))

    with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
        waiting = {pool.submit(running.run, test, clock) for test in tests}
        while waiting:
            done, waiting = concurrent.futures.wait(waiting, screens.REFRESH, concurrent.futures.FIRST_COMPLETED)
            for future in done:
                outcomes.append(future.result())
                failed += bool(outcomes[-1].failures)
                screen.report(outcomes[-1])
                show()
            show()
    screen.clear()
    return outcomes


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=SOURCE / "build")
    parser.add_argument("--driver", default="softgpu", help="GPUMEM_DRIVER for the tests")
    parser.add_argument("--sanitize", default="off", choices=["off", "address", "thread"])
    parser.add_argument("--timeout", type=float,
                        help="seconds for each program, on a machine with nothing else to do (default: by folder)")
    parser.add_argument("--long", action="store_true",
                        help="also what takes long: GPUMEM_TEST_LONG=1, and 30 times the time")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--match", default="", help="regular expression on the test's name")
    parser.add_argument("--command", action="append", default=[],
                        help="a command line to run as a test, besides those of the folders")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each program, each skip and all output")
    parser.add_argument("--log", type=Path, help="a file for all of that")
    parser.add_argument("--load", type=Path, default=LOAD, help="where the load is read")
    parser.add_argument("folders", nargs="*", help="folders below tests/")
    options = parser.parse_args()
    options.build = options.build.resolve()
    return options


def tests_of(options):
    environment = catalogue.environment_of(options.build, options.sanitize, options.long, options.driver)
    found = catalogue.discover(options.build, options.folders)
    found += [(command, tuple(shlex.split(command))) for command in options.command]
    tests = []
    for name, command in found:
        if re.search(options.match, name):
            limit = catalogue.limit_of(name, options.sanitize, options.long)
            if options.timeout:
                limit = options.timeout * (catalogue.MORE_TIME if options.long else 1)
            tests.append(Test(name, command, limit, environment, repeat=repeat(options, name)))
    return catalogue.longest_first(tests, {})


def repeat(options, name):
    """The command line that runs this test alone, as here; a command is its own."""
    if name in options.command:
        return ""
    words = ["tests/runner/run.py", "--build", str(options.build), "--match", f"^{re.escape(name)}$"]
    if options.sanitize != "off":
        words += ["--sanitize", options.sanitize]
    return shlex.join([*words, *["--long"] * options.long, name.partition("/")[0]])


def nothing_matches(pattern):
    """A misspelt pattern must not look like success."""
    outcome = Outcome("no test")
    outcome.failures.append(f"no test's name matches '{pattern}'")
    return outcome


def enter_guard():
    """Goes on in a process that is ended with this one, with a folder for all tests' folders."""
    folder = tempfile.mkdtemp(prefix="gpumem-tests-")
    guard.enter(folder)
    tempfile.tempdir = folder
    os.environ["TMPDIR"] = folder


def main():
    options = parse()
    enter_guard()
    with screens.logged(options.log) as log:
        screen = screens.Screen(log, options.verbose)
        outcomes = run_all(tests_of(options), screen, options.jobs, options.load)
        return summary.sum_up(screen, outcomes or [nothing_matches(options.match)])


if __name__ == "__main__":
    sys.exit(main())
