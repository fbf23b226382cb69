#!/usr/bin/env python3
"""Compares runs with recordings: which calls answer as the hardware did.

Recordings of different machines (one GPU, two) are each compared with a run of their own.

A differing line *follows* when it differs only because an earlier line of its scenario did:
  - it uses a variable that a differing line was the last to set ("uses"), and does not itself set it, or
  - either answer has a name (@name) that a differing line was the first to give ("names"), or
  - it is missing because the scenario ended early at a differing line ("ended").
Following lines are counted as differing; they need no reason of their own.

Reasons are in reasons.txt: `REGULAR EXPRESSION => reason`, searched for in the recorded line.
The figures of the last line are distinct (function, argument class, result) of the recordings; one is
equal when all of its lines in all of them are. Exit status 0 when every difference has a reason or follows one that has.
"""

import argparse
import os
import re
import sys

import lines

HERE = os.path.dirname(os.path.abspath(__file__))


def read_reasons(path):
    reasons = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for text in file:
                if not text.strip() or text.startswith("#"):
                    continue
                pattern, arrow, reason = text.strip().partition(" => ")
                if not arrow:
                    raise SystemExit(f"compare: {path} has a line without ' => ': {text.strip()}")
                reasons.append((re.compile(pattern), reason))
    return reasons


USED = set()


def reason_for(line, reasons):
    for pattern, reason in reasons:
        if pattern.search(str(line)):
            USED.add(pattern)
            return reason
    return None


def names_in(answer):
    return set(re.findall(r"@[\w.\[\]]+", answer))


def variables_set(line):
    return {re.split(r"[.\[]", name)[0] for name in line.outputs}


class Scenario:
    """What has differed so far in one scenario."""

    def __init__(self):
        self.variables = set()
        self.names = set()
        self.known = set()
        self.ended = False

    def follows(self, recorded, actual):
        if actual is None:
            return "ended" if self.ended else None
        used = set(re.findall(r"[A-Za-z_]\w*", recorded.args)) - variables_set(recorded)
        if self.variables & used:
            return "uses"
        if self.names & (names_in(recorded.answer) | names_in(actual.answer)):
            return "names"
        return None

    def note(self, recorded, actual, differs):
        fresh = names_in(recorded.answer) | (names_in(actual.answer) if actual else set())
        if differs:
            self.variables |= variables_set(recorded)
            self.names |= fresh - self.known
            self.ended = self.ended or (actual is not None and
                                        (actual.ended or "SETUP_FAILED" in actual.answer))
        else:
            self.variables -= variables_set(recorded)
        self.known |= fresh


def compare(recorded_lines, actual_lines):
    """(recorded, actual or None, how it follows or None) for each scored line that differs."""
    actual = {line.key: line for line in actual_lines}
    early = {line.scenario for line in actual_lines if line.ended or "SETUP_FAILED" in line.answer}
    scenarios, differing = {}, []
    for line in recorded_lines:
        state = scenarios.setdefault(line.scenario, Scenario())
        mine = actual.get(line.key)
        if line.mark:
            state.note(line, mine, mine is None or mine.answer != line.answer)
            continue
        differs = mine is None or mine.answer != line.answer
        if differs:
            if mine is None and line.scenario in early:
                how = "ended"
            else:
                how = state.follows(line, mine)
            differing.append((line, mine, how))
        state.note(line, mine, differs)
    return differing


def triple(line):
    if line.function == "see":
        return ("see", f"{line.scenario} {line.cls}", "")
    return (line.function, line.cls, line.result)


def print_differences(differing, reasons, verbose):
    """Differences with their reasons; the number of those that have none."""
    unexplained = 0
    for line, mine, how in differing:
        reason = reason_for(line, reasons)
        if how and not reason:
            if verbose:
                print(f"follows ({how}): {line}")
            continue
        unexplained += reason is None
        print(f"{line.scenario}#{line.number:03d} {line.head()}")
        print(f"    recorded: {line.answer}")
        print(f"    actual:   {mine.answer if mine else '(missing)'}")
        print(f"    reason:   {reason or 'no reason recorded'}")
    return unexplained


def print_early_ends(actual_lines, recorded_lines, reasons):
    """Scenarios that this run could not set up; the number of those without a reason. A recording may
    be of some scenarios only."""
    recorded = {line.key for line in recorded_lines}
    scenarios = {line.scenario for line in recorded_lines}
    unexplained = 0
    for line in actual_lines:
        if line.scenario not in scenarios:
            continue
        if (line.ended or "SETUP_FAILED" in line.answer) and line.key not in recorded:
            reason = reason_for(line, reasons)
            unexplained += reason is None
            print(f"{line}\n    reason:   {reason or 'no reason recorded'}")
    return unexplained


def print_coverage(recorded_lines, full):
    good, bad, called = set(), set(), set()
    for line in recorded_lines:
        if line.mark or line.function == "see":
            continue
        symbol = line.function.split("@")[0]
        called.add(symbol)
        (good if line.result == "CUDA_SUCCESS" else bad).add(symbol)
    print(f"coverage: {len(called)} functions called, {len(called - good)} without a success,"
          f" {len(called - bad)} without an error")
    if full:
        print("without a success: " + " ".join(sorted(called - good)))
        print("without an error: " + " ".join(sorted(called - bad)))


def compare_files(recording, run, reasons, options):
    """Prints what differs; (differences without a reason, all triples, differing triples)."""
    _, recorded = lines.read(recording)
    _, actual = lines.read(run)
    recorded = [line for line in recorded if line.scenario.startswith(options.scenario)]
    actual = [line for line in actual if line.scenario.startswith(options.scenario)]
    if not recorded:
        raise SystemExit("compare: the recording has no such scenario")
    differing = compare(recorded, actual)
    unexplained = print_differences(differing, reasons, options.follows)
    unexplained += print_early_ends(actual, recorded, reasons)
    scored = [line for line in recorded if not line.mark]
    keys = {line.key for line in recorded}
    following = sum(how is not None for _, _, how in differing)
    print(f"lines: {len(scored) - len(differing)} equal, {len(differing)} differing"
          f" ({following} follow others, {unexplained} without a recorded reason),"
          f" {len(recorded) - len(scored)} recorded but not scored,"
          f" {sum(line.key not in keys for line in actual)} not in the recording")
    return unexplained, recorded, {triple(line) for line in scored}, {triple(line) for line, _, _ in differing}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", metavar="RECORDING RUN",
                        help="a recording and a run on as many devices, and so on")
    parser.add_argument("--reasons", default=os.path.join(HERE, "reasons.txt"))
    parser.add_argument("--scenario", default="", help="only scenarios that start with this")
    parser.add_argument("--coverage", action="store_true", help="name the functions not covered")
    parser.add_argument("--follows", action="store_true", help="print the lines that follow, too")
    options = parser.parse_args()
    if len(options.files) % 2:
        parser.error("each recording needs a run")
    reasons = read_reasons(options.reasons)
    unexplained, recorded, every, bad = 0, [], set(), set()
    for recording, run in zip(options.files[::2], options.files[1::2]):
        if len(options.files) > 2:
            print(f"recording: {recording}")
        more, its_lines, its_triples, its_bad = compare_files(recording, run, reasons, options)
        if len(options.files) > 2:
            print(f"of it: {len(its_triples - its_bad)} equal, {len(its_bad)} differing")
        unexplained += more
        recorded += its_lines
        every |= its_triples
        bad |= its_bad
    if not options.scenario:
        for pattern, _ in reasons:
            if pattern not in USED:
                print(f"no longer needed: the reason {pattern.pattern}")
    print_coverage(recorded, options.coverage)
    print(f"parity: {len(every - bad)} equal, {len(bad)} differing")
    return 0 if unexplained == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
