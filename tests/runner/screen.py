"""What a person sees while tests run: one line of progress, failures whole, a line for each step. The log
has every line."""
import contextlib
import shutil
import sys
import time

from tap import is_good

# Seconds between two looks at what runs, and between two lines of progress where no terminal is.
REFRESH = 0.2
EVERY = 10
BAR = 24
OUTPUT_LIMIT = 20000


class Screen:
    """Lines that stay, and below them, on a terminal, one that is written over."""

    def __init__(self, log=None, verbose=False, out=None, now=time.monotonic):
        self.out = out or sys.stdout
        self.terminal = self.out.isatty()
        self.log = log
        self.verbose = verbose
        self.now = now
        self.begin = self.told = now()

    def start(self):
        """Of a step or of a queue of tests: from here its seconds are counted."""
        self.begin = self.told = self.now()

    def seconds(self):
        return self.now() - self.begin

    def say(self, text=""):
        self.clear()
        print(text, file=self.out, flush=True)
        self.note(text)

    def note(self, text):
        """For the log alone, unless all lines are wanted."""
        if self.log:
            print(text, file=self.log, flush=True)

    def detail(self, text):
        if self.verbose:
            self.say(text)
        else:
            self.note(text)

    def clear(self):
        if self.terminal:
            print("\r\033[K", end="", file=self.out, flush=True)

    def progress(self, text, done=None):
        """What goes on now, and which part of it is done: on a terminal at once, else from time to time."""
        if self.terminal:
            columns = max(shutil.get_terminal_size().columns - 1, 20)
            if done is not None:
                filled = int(BAR * done)
                text = f"[{'#' * filled}{'.' * (BAR - filled)}] {text}"
            print(f"\r\033[K{text[:columns]}", end="", file=self.out, flush=True)
        elif self.now() - self.told >= EVERY:
            self.told = self.now()
            print(f"...  {text}", file=self.out, flush=True)

    def report(self, outcome):
        """A failure whole, whatever else is wanted; the rest for who wants all."""
        if outcome.failures:
            self.failure(outcome)
        else:
            self.detail(head(outcome))
            for line in outcome.output.splitlines():
                self.detail(f"     | {line}")
        for test, reason in outcome.skips:
            self.detail(f"     skipped: {test}: {reason}")
        if outcome.note:
            self.say(f"note {outcome.title}: {outcome.note}")

    def failure(self, outcome):
        self.say(head(outcome))
        text = outcome.output
        if not self.verbose:
            text = "\n".join(line for line in text.splitlines() if not is_good(line))
        if len(text) > OUTPUT_LIMIT:
            text = text[:OUTPUT_LIMIT // 2] + "\n[...]\n" + text[-OUTPUT_LIMIT // 2:]
        for line in text.splitlines():
            self.say(f"     | {line}")
        for failure in outcome.failures:
            self.say(f"     failed: {failure}")
        if outcome.repeat:
            self.say(f"     repeat: {outcome.repeat}")


def head(outcome):
    word = "FAIL" if outcome.failures else "ok" if outcome.passed else "skip"
    counts = f"{outcome.passed} passed"
    if outcome.failures:
        counts += f", {len(outcome.failures)} failed"
    if outcome.skips:
        counts += f", {len(outcome.skips)} skipped"
    return f"{word:4} {outcome.title:44} {counts:32} {outcome.seconds:6.2f} s"


@contextlib.contextmanager
def logged(path):
    """The log file, written anew; None where none is wanted."""
    if path is None:
        yield None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", errors="backslashreplace") as file:
        yield file
