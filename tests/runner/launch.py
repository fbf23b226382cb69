"""Runs one test program, within its time limit and in a temporary folder of its own.

What a test leaves in its folder ($TMPDIR) is a failure, and removed. What it started ends with it."""
import dataclasses
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tap import Outcome, judge

SOURCE = Path(__file__).resolve().parents[2]
# A program that needs more than this part of its limit on an idle machine is about to reach it.
NEAR = 0.5
# What took longer than its limit by more than this has had it stretched.
STRETCHED = 1.05


@dataclasses.dataclass(frozen=True)
class Test:
    """A program, and how it is run."""
    name: str
    command: tuple
    limit: float = 60.0
    environment: dict = dataclasses.field(default_factory=dict)
    where: str = "release"
    repeat: str = ""


class Process:
    """A test's process, in a session of its own, so that all that it starts can be ended."""

    def __init__(self, test, folder, sink):
        self.popen = subprocess.Popen(
            test.command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
            env=dict(test.environment, TMPDIR=folder), cwd=SOURCE, start_new_session=True)
        # It tells of the end at once, where a look from time to time would be late by half of that time.
        try:
            self.descriptor = os.pidfd_open(self.popen.pid)
        except OSError:
            self.descriptor = -1

    def ended(self, seconds):
        """Whether it ended within that time. It is a zombie then, so that its number stays its own."""
        if self.descriptor >= 0:
            waiting = select.poll()
            waiting.register(self.descriptor, select.POLLIN)
            return bool(waiting.poll(max(1, seconds * 1000)))
        end = time.monotonic() + seconds
        while not os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def stop(self):
        """Ends it and whatever it started; its exit status and the seconds of processors that it used."""
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        _, status, used = os.wait4(self.popen.pid, 0)
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        if self.descriptor >= 0:
            os.close(self.descriptor)
        return self.popen.returncode, used.ru_utime + used.ru_stime


def empty_folder(outcome, folder, timed_out):
    """Removes a test's temporary folder; what is left in it is a failure, but of one cut short."""
    left = sorted(path.name for path in folder.iterdir())
    if left and not timed_out:
        outcome.failures.append(f"left in the temporary folder: {', '.join(left[:10])}")
    shutil.rmtree(folder, ignore_errors=True)


def note_of(test, seconds, counted, ended, clock):
    if seconds > test.limit * STRETCHED:
        return (f"the limit of {test.limit:g} s was stretched: {seconds:.0f} s counted for "
                f"{counted:.0f}, with {clock.load():.1f} tasks on {clock.processors} processors at the end")
    if ended and counted > NEAR * test.limit:
        return f"near its limit of {test.limit:g} s"
    return ""


def run_one(test, clock):
    outcome = Outcome(test.name, test.where, test.repeat)
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    # A file, not a pipe: a grandchild that keeps a pipe open would keep us waiting.
    with tempfile.TemporaryFile() as sink:
        try:
            process = Process(test, str(folder), sink)
        except OSError as error:
            outcome.failures.append(f"cannot start: {error}")
            folder.rmdir()
            return outcome
        ended, counted = clock.wait(process.ended, test.limit)
        outcome.seconds = time.monotonic() - begin
        code, outcome.processor_seconds = process.stop()
        sink.seek(0)
        outcome.output = sink.read().decode("utf-8", "replace")
    judge(outcome, code, not ended)
    empty_folder(outcome, folder, not ended)
    outcome.note = note_of(test, outcome.seconds, counted, ended, clock)
    return outcome
