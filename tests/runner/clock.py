"""Time limits on a machine that has something else to do.

A limit is meant for an idle machine. Where more runs than there are processors, a second counts for less,
as the load of that second says; and so does one that another virtual machine took."""
import re
import time
from pathlib import Path

LOAD = Path("/proc/loadavg")
STATE = Path("/proc/stat")
# The most that a load stretches a limit: past it, something is wrong with the machine.
MOST_STRETCH = 20
# Seconds between two looks at the load.
TICK = 0.25


def times_of(text):
    """What the processors did since the machine began, by kind; the eighth was given to others."""
    found = re.match(r"cpu +([\d ]+)", text)
    return [int(word) for word in found.group(1).split()[:8]] if found else []


def stolen(before, now):
    """The part of the time between that was given to others."""
    if len(before) < 8 or len(now) < 8 or sum(now) <= sum(before):
        return 0.0
    return max(now[7] - before[7], 0) / (sum(now) - sum(before))


class Clock:
    """Counts seconds as a machine with nothing else to do would: where two tasks share a processor, each
    second is half a one."""

    def __init__(self, source, processors, state=STATE):
        self.source = source
        # The mean of the last minute follows late; the number of this moment only where it is the kernel's.
        self.state = state if source == LOAD else None
        self.processors = processors

    def load(self):
        """The number of runnable tasks; 0 where it is not told."""
        return max(self.load_of_minute(), self.load_of_moment(self.read_state()))

    def read_state(self):
        try:
            return self.state.read_text() if self.state else ""
        except OSError:
            return ""

    def load_of_minute(self):
        try:
            return float(self.source.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return 0.0

    def load_of_moment(self, text):
        found = re.search(r"^procs_running (\d+)", text, re.M)
        return float(found.group(1)) - 1 if found else 0.0  # this thread is one of them

    def stretch(self, before=()):
        """How many seconds count for one, and the processors' times until now: what is asked with them later
        knows how much of the time between the machine below gave to others."""
        text = self.read_state()
        load = max(self.load_of_minute(), self.load_of_moment(text))
        times = times_of(text)
        left = 1 - min(stolen(before, times), 0.95)
        return min(max(1.0, load / self.processors) / left, MOST_STRETCH), times

    def wait(self, ended, limit):
        """Waits until `limit` seconds are counted: whether it ended, and the count. `ended(seconds)` waits so
        long at most for the end, and says whether it came."""
        counted, times = 0.0, ()
        while counted < limit:
            stretch, times = self.stretch(times)
            step = min(TICK, (limit - counted) * stretch)
            begin = time.monotonic()
            if ended(step):
                return True, counted + (time.monotonic() - begin) / stretch
            # Not what the clock says: time in which this thread did not run is load, too.
            counted += max(step, 0.001) / stretch
        return False, counted
