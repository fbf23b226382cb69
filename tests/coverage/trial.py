"""A test run by itself, and with each call of one function skipped."""
import collections
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "harness"))
import c_test  # noqa: E402  pylint: disable=wrong-import-position

# Not from the beginning of a line: a failed teardown's words have no end of line of their own.
FAILED = re.compile(r"\[\s+(?:FAILED|ERROR)\s+\] (\S+)$", re.M)
OK = re.compile(r"\[\s+OK\s+\] (\S+)$", re.M)
RUN = re.compile(r"\[ RUN\s+\] (\S+)$", re.M)
WHOLE_SECONDS = 60
# A skipped call may leave a test waiting for what never comes. That is a failure, and a slow one: it
# is cut short after a multiple of the time that the test takes by itself.
PATIENCE = 10
LEAST_SECONDS = 1
# A test that fails by luck of timing is a poor proof: it must fail so often in a row to be chosen.
TRIES_TO_CHOOSE = 10

# Of a file of tests/conformance, by its name without .c.
Proof = collections.namedtuple("Proof", "twin file test")


def text_of(proof):
    return f"{'ptds ' if proof.twin else ''}{proof.file}:{proof.test}"


class Runner:
    """Runs conformance tests of a build, on softgpu."""

    def __init__(self, build):
        self.build = build
        self.base = {k: v for k, v in os.environ.items() if not k.startswith(("SOFTGPU_", "CMOCKA_"))}
        self.base.update(GPUMEM_DRIVER="softgpu")
        self.base.pop("GPUMEM_TEST", None)
        self.base.pop("GPUMEM_TWIN", None)

    def command(self, file, *arguments):
        return c_test.command(self.build, f"conformance/{file}", *arguments)

    def tests(self):
        """File -> its tests."""
        listed = subprocess.run([self.command("")[0], "--list"], stdout=subprocess.PIPE, text=True, check=True)
        found = collections.defaultdict(list)
        for line in listed.stdout.splitlines():
            file, _, test = line.partition(" ")
            found[file].append(test)
        return found

    def run(self, file, twin=False, test=None, skip=None, trace=None, seconds=WHOLE_SECONDS):
        """(exit status or None for a time-out, output)."""
        environment = dict(self.base)
        if twin:
            environment["GPUMEM_TWIN"] = "ptds"
        if skip:
            environment["SOFTGPU_FAULT"] = f"={skip}:*:SUCCESS:skip"
        if trace:
            environment["SOFTGPU_TRACE"] = trace
        # A test that fails half way leaves its files: in a folder that goes with it.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as folder:
            environment["TMPDIR"] = folder
            process = subprocess.Popen(
                self.command(file, *([test] if test else [])), env=environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                # Children that the program left behind are of its session.
                try:
                    os.killpg(process.pid, 9)
                except ProcessLookupError:
                    pass
                process.wait()
            output.seek(0)
            return status, output.read().decode(errors="replace")

    def traced(self, file, twin, test=None):
        """(whether it passes, the functions that it calls with success, seconds)."""
        with tempfile.NamedTemporaryFile(prefix="gpumem-trace-") as trace:
            start = time.monotonic()
            status, _ = self.run(file, twin, test=test, trace=trace.name)
            seconds = time.monotonic() - start
            called = {line.split()[2].split("(")[0] for line in trace.read().decode().splitlines()
                      if line.endswith(" CUDA_SUCCESS")}
        return status == 0, called, seconds

    def passes(self, proof):
        """(seconds, or None if the test does not pass by itself, what was seen)."""
        start = time.monotonic()
        status, output = self.run(proof.file, proof.twin, test=proof.test)
        good = status == 0 and proof.test in OK.findall(output)
        return time.monotonic() - start if good else None, (status, output)


FAILS, WAITS, HOLDS_NOT = "fails", "waits", "passes"


def try_skip(runner, symbol, proof, seconds, tried=None):
    """What the test does when the function is skipped. That it did not begin is nothing, but for the
    functions that the beginning itself is a test of. `tried` gets what was seen."""
    status, output = runner.run(proof.file, proof.twin, test=proof.test, skip=symbol,
                                seconds=max(LEAST_SECONDS, PATIENCE * seconds))
    if tried is not None:
        tried.append((status, output))
    begun = proof.test in RUN.findall(output)
    if status == 0:
        return HOLDS_NOT
    if status is None:
        return WAITS if begun else HOLDS_NOT
    if status < 0:
        return FAILS if begun else HOLDS_NOT
    failed = proof.test in FAILED.findall(output) or "GROUP SETUP" in output
    return FAILS if failed else HOLDS_NOT


def steadily(runner, symbol, proof, seconds):
    """What the test does each time that the function is skipped, or HOLDS_NOT."""
    kind = try_skip(runner, symbol, proof, seconds)
    # One that waits is slow to try, and is not chosen where one that fails is found.
    for _ in range(TRIES_TO_CHOOSE - 1 if kind == FAILS else 1):
        if try_skip(runner, symbol, proof, seconds) != kind:
            return HOLDS_NOT
    return kind
