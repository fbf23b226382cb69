#!/usr/bin/env python3
"""Compares runs with recordings: which calls answer as the hardware did.

Recordings of different machines (one GPU, two) are each compared with a run of their own.

A differing line *follows* when it differs only because an earlier line of its scenario did:
  - it uses a variable that a differing line was the last to set ("uses"), and does not itself set it, or
  - either answer has a name (@name) that a differing line was the first to give ("names"), or
  - it is missing because the scenario ended early at a differing line ("ended").
Following lines are counted as differing; they need no reason of their own.

A scenario that saw "absent" here, and not where the recording was made, lacks something that is no part of the
driver: it is named, and not compared.

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


class Reasons:
    """Why lines differ, and which of the patterns were needed."""

    def __init__(self, path):
        self.rows = []
        self.used = set()
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for text in file:
                    if not text.strip() or text.startswith("#"):
                        continue
                    pattern, arrow, reason = text.strip().partition(" => ")
                    if not arrow:
                        raise SystemExit(f"compare: {path} has a line without ' => ': {text.strip()}")
                    self.rows.append((re.compile(pattern), reason))

    def of(self, line):
        for pattern, reason in self.rows:
            if pattern.search(str(line)):
                self.used.add(pattern)
                return reason
        return None

    def unused(self):
        return [pattern.pattern for pattern, _ in self.rows if pattern not in self.used]


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


def compare_scenario(recorded_lines, actual, ended_early):
    """compare() of one scenario. What the regular expressions of Scenario find matters only where
    something differs, which is nearly nowhere."""
    pairs = [(line, actual.get(line.key)) for line in recorded_lines]
    if not any(not line.mark and (mine is None or mine.answer != line.answer) for line, mine in pairs):
        return []
    state, differing = Scenario(), []
    for line, mine in pairs:
        differs = mine is None or mine.answer != line.answer
        if differs and not line.mark:
            how = "ended" if mine is None and ended_early else state.follows(line, mine)
            differing.append((line, mine, how))
        state.note(line, mine, differs)
    return differing


def compare(recorded_lines, actual_lines):
    """(recorded, actual or None, how it follows or None) for each scored line that differs."""
    actual = {line.key: line for line in actual_lines}
    early = {line.scenario for line in actual_lines if line.ended or "SETUP_FAILED" in line.answer}
    scenarios = {}
    for line in recorded_lines:
        scenarios.setdefault(line.scenario, []).append(line)
    return [found for name, of_it in scenarios.items() for found in compare_scenario(of_it, actual, name in early)]


def triple(line):
    if line.function == "see":
        return ("see", f"{line.scenario} {line.cls}", "")
    return (line.function, line.cls, line.result)


def print_differences(differing, reasons, verbose):
    """Differences with their reasons; the number of those that have none."""
    unexplained = 0
    for line, mine, how in differing:
        reason = reasons.of(line)
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
            reason = reasons.of(line)
            unexplained += reason is None
            print(f"{line}\n    reason:   {reason or 'no reason recorded'}")
    return unexplained


def leave_out_absent(recorded, actual):
    """Names the scenarios that this machine lacks something for; the lines of the others."""
    keys = {line.key for line in recorded}
    absent = {line.scenario: line.answer for line in actual
              if (line.function, line.cls) == ("see", "absent") and line.key not in keys}
    names = {line.scenario for line in recorded} & set(absent)
    for name in sorted(names):
        print(f"not compared: {name}: {absent[name]}")
    return tuple([line for line in each if line.scenario not in names] for each in (recorded, actual))


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


def compare_run(recorded, actual, reasons, options):
    """Prints what differs; (differences without a reason, the recording's lines, its triples, those that differ)."""
    recorded = [line for line in recorded if line.scenario.startswith(options.scenario)]
    actual = [line for line in actual if line.scenario.startswith(options.scenario)]
    if not recorded and not options.several:
        raise SystemExit("compare: the recording has no such scenario")
    recorded, actual = leave_out_absent(recorded, actual)
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


def compare_all(pairs, options):
    """Several recordings, each with its run: (name, recorded lines, actual lines). True when every difference
    has a reason."""
    reasons = Reasons(options.reasons)
    options.several = len(pairs) > 1
    unexplained, recorded, every, bad = 0, [], set(), set()
    for name, its_recorded, its_actual in pairs:
        if options.several:
            print(f"recording: {name}")
        more, its_lines, its_triples, its_bad = compare_run(its_recorded, its_actual, reasons, options)
        if options.several:
            print(f"of it: {len(its_triples - its_bad)} equal, {len(its_bad)} differing")
        unexplained += more
        recorded += its_lines
        every |= its_triples
        bad |= its_bad
    if not recorded:
        raise SystemExit("compare: no recording has such a scenario")
    if not options.scenario:
        for pattern in reasons.unused():
            print(f"no longer needed: the reason {pattern}")
    print_coverage(recorded, options.coverage)
    print(f"parity: {len(every - bad)} equal, {len(bad)} differing")
    return unexplained == 0


def add_options(parser):
    """Those that replay.py has, too."""
    parser.add_argument("--reasons", default=os.path.join(HERE, "reasons.txt"))
    parser.add_argument("--scenario", default="", help="only scenarios that start with this")
    parser.add_argument("--coverage", action="store_true", help="name the functions not covered")
    parser.add_argument("--follows", action="store_true", help="print the lines that follow, too")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="+", metavar="RECORDING RUN",
                        help="a recording and a run on as many devices, and so on")
    add_options(parser)
    options = parser.parse_args(arguments)
    if len(options.files) % 2:
        parser.error("each recording needs a run")
    calls = {path: lines.read(path)[1] for path in dict.fromkeys(options.files)}
    pairs = [(recording, calls[recording], calls[run])
             for recording, run in zip(options.files[::2], options.files[1::2])]
    return 0 if compare_all(pairs, options) else 1


if __name__ == "__main__":
    sys.exit(main())
