"""What a test program said, as counts.

A program speaks TAP (cmocka does when asked; scripts may), and each `ok` line is a test. One that
prints no TAP is one test by its exit status: 0 passed, 77 skipped, else failed. Whatever TAP says,
a program that dies, exits non-zero, runs too long or prints fewer lines than it planned has failed.

A skip needs a reason: the last line `skip: WHY` that was printed before it, or the TAP directive's
own text. A skip without one counts as a failure, because nobody could tell it from a lost test.
"""
import re
import signal

RESULT = re.compile(r"^(not )?ok\b\s*(\d+)?\s*-?\s*(.*?)\s*(?:#\s*(SKIP)\b\s*(.*))?$", re.I)
PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*SKIP\b\s*(.*))?$", re.I)
REASON = re.compile(r"^(?:#\s*)?skip(?:ped)?:\s*(.+)$", re.I)
SKIPPED = 77  # the exit status that says so


class Outcome:
    """What one program did: counts, and the lines that explain them."""

    def __init__(self, name, where="release", repeat=""):
        self.name = name
        self.where = where
        self.repeat = repeat
        self.passed = 0
        self.failures = []
        self.skips = []
        self.output = ""
        self.seconds = 0.0
        self.processor_seconds = 0.0
        self.note = ""
        self.is_step = False  # a build, a linter: a command that is one test

    @property
    def title(self):
        """The name, with the build that it ran on where that is not the release build."""
        return self.name if self.where == "release" else f"{self.where}: {self.name}"

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


def is_good(line):
    """An `ok` line: of a program that failed, nobody looks for what went well."""
    result = RESULT.match(line)
    return bool(result) and not result.group(1)


def describe(code):
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exit status {code}"


def judge(outcome, code, timed_out):
    """Turns output and exit status into counts."""
    planned, seen = parse_tap(outcome, outcome.output)
    is_tap = planned is not None or seen > 0
    if timed_out:
        outcome.failures.append(f"no end after {outcome.seconds:.0f} s")
    elif not is_tap:
        if code == 0:
            outcome.passed += 1
        elif code == SKIPPED:
            found = [match.group(1) for match in map(REASON.match, outcome.output.splitlines()) if match]
            outcome.skip("program", found[-1] if found else "")
        else:
            outcome.failures.append(describe(code))
        return
    elif code != 0 and (code < 0 or not outcome.failures):
        outcome.failures.append(describe(code))
    if planned is not None and seen < planned:
        outcome.failures.append(f"{planned - seen} of {planned} tests gave no result")
