#!/usr/bin/env python3
"""No process outlives the run that started it, however that run ends.

    guard.py COMMAND [ARGUMENT...]

runs a command, with TMPDIR a new folder that is removed at the end; `enter()` guards the calling program. There are four processes then:

    front    the one that whoever started us knows
    keeper   in a session of its own, so that what kills the front's group spares it
    worker   does the work; enter() returns in it
    watcher  another program, for when all three are killed at once, as by a name that they share

Front and keeper adopt what their descendants leave behind (PR_SET_CHILD_SUBREAPER). When a process
dies the one above it ends all that is left below; when the front dies the keeper is told
(PR_SET_PDEATHSIG) and does. So any one of them may be killed by SIGKILL, or a whole group. The watcher
reads a pipe that only these three hold: at its end it kills whoever has this run's mark in the environment.
"""
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# Each run within another adds its mark, behind a colon.
MARKS = "GPUMEM_GUARDED_BY"
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def prctl(option, value):
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def descendants(of):
    """What runs below a process; zombies do not."""
    below = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = Path(f"/proc/{entry}/stat").read_text(errors="replace")
        except OSError:
            continue
        # The name is in parentheses and may hold anything, parentheses included.
        state, parent = text[text.rindex(")") + 2:].split()[:2]
        if state not in "ZX":
            below.setdefault(int(parent), []).append(int(entry))
    found, left = [], [of]
    while left:
        children = below.get(left.pop(), [])
        found += children
        left += children
    return found


def end_descendants():
    """Kills what runs below this process until nothing does: some may start more meanwhile."""
    while found := descendants(os.getpid()):
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.002)


def wait_for(child):
    """The exit status of a child, as a shell has it; who was adopted is buried meanwhile."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def be_front(keeper, at_end):
    def pass_on(number, _frame):
        try:
            os.kill(keeper, number)
        except OSError:
            pass

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    code = wait_for(keeper)
    end_descendants()
    at_end()
    os._exit(code)


def be_keeper(front, at_end):
    """Returns in the worker."""
    def end(number, _frame):
        end_descendants()
        at_end()
        os._exit(128 + number)

    os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in PASSED_ON:
        signal.signal(number, end)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != front:
        os._exit(1)
    keeper, worker = os.getpid(), os.fork()
    if worker:
        code = wait_for(worker)
        end_descendants()
        os._exit(code)
    for number in PASSED_ON:
        signal.signal(number, signal.SIG_DFL)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(1)


# The watcher. A zombie has no environment any more; a process that starts others meanwhile is met again.
WATCH = """
import os, shutil, signal, sys, time
mark, folder = sys.argv[1].encode(), sys.argv[2]
def marked():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark in file.read():
                    yield int(pid)
        except OSError:
            pass
os.read(0, 1)
while found := list(marked()):
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    time.sleep(0.002)
shutil.rmtree(folder, ignore_errors=True)
"""


def start_watcher(folder):
    """In a session of its own and nobody's child, so that what ends us spares it. Returns the end of the pipe
    that keeps it waiting, which no program that is started inherits."""
    mark = f":{os.getpid()}-{os.urandom(8).hex()}"
    ours = dict(os.environ)
    os.environ[MARKS] = ours.pop(MARKS, "") + mark
    to_read, to_hold = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os.setsid()
            os.dup2(to_read, 0)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            for number in PASSED_ON:
                signal.signal(number, signal.SIG_IGN)
            os.execve(sys.executable, ["gpumem-watcher", "-I", "-S", "-c", WATCH, mark, folder], ours)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(to_read)
    return to_hold


def enter(folder):
    """Goes on in the worker and returns only there. To be called before any thread is started.
    `folder` is removed once everything below has ended, whatever ended it."""
    def at_end():
        shutil.rmtree(folder, ignore_errors=True)

    sys.stdout.flush()
    sys.stderr.flush()
    start_watcher(folder)
    front = os.getpid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    keeper = os.fork()
    if keeper:
        be_front(keeper, at_end)
    be_keeper(front, at_end)


def main():
    folder = tempfile.mkdtemp(prefix="gpumem-dev-")
    enter(folder)
    try:
        code = subprocess.run(sys.argv[1:], check=False, env=dict(os.environ, TMPDIR=folder)).returncode
    except OSError as error:
        print(f"guard: cannot start {sys.argv[1]}: {error}", file=sys.stderr)
        code = 127
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
