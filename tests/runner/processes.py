"""Processes that a test starts, kills, and looks for."""
import os
import signal
import time
from pathlib import Path

# Seconds until something that must happen is taken as not happening, on a machine with much else to do.
PATIENCE = 240


def is_running(pid):
    """A zombie, or a number that is another's by now, does not run: the latter is not ours to see."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return text[text.rindex(")") + 2:].split()[0] not in "ZX"


def children(pid):
    """Quickly: who looks for what lives shortly cannot read all of /proc for it."""
    found = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it has ended
        return found
    for thread in threads:
        try:
            found += [int(word) for word in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()]
        except OSError:
            pass
    return found


def descendants(pid):
    found = children(pid)
    for child in list(found):
        found += descendants(child)
    return found


def wait_until(condition):
    """Whether it came true in time."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def end(pids):
    """For what should not be there any more: a failing test leaves nothing either."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
