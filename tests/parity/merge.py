#!/usr/bin/env python3
"""Merges runs of the recorder on one kind of hardware into a recording.

A line is scored when three runs have it, and all that have it with the same answer. Lines that differ are
kept, marked `!unstable`, as are those that one run of a build has and another run of that build lacks.
Lines that too few runs have, as their scenarios are younger than the other runs, are kept, marked
`!unconfirmed`. The build of the last run that has a scenario says which lines are in it: what only older
builds have is left out. Runs of a few scenarios only say nothing of the others.
Lines whose process died or hung are kept, marked `!ended`. Where one run saw a scenario through to its end
and another ran into the deadline, the machine was slow: the run that was cut off says nothing of it.
"""

import argparse
import os
import re
import sys

import lines


def name_of(headers):
    text = "\n".join(headers)
    device = re.search(r"^# device (?:NVIDIA )?(.*?) count (\d+)", text, re.M)
    module = re.search(r"^# module .*?(\d+\.\d+(?:\.\d+)?)", text, re.M)
    driver = re.search(r"^# driver \S+ api (\d+)", text, re.M)
    version = module or driver
    if not device or not version:
        raise SystemExit("merge: the header of the first run names no device or driver")
    many = f"x{device[2]}" if int(device[2]) > 1 else ""
    return f"{device[1].lower().replace(' ', '-')}{many}-{version[1]}.txt.xz"


def program_of(header, number):
    """The build that made a run; a run that does not say is taken for a build of its own."""
    for text in header:
        if text.startswith("# program "):
            return text.split()[2]
    return f"run {number}"


def answers_of(line, tables, scenarios, programs):
    """Of the runs that could have the line, what each answered. One that ended at its deadline, or was
    asked for some scenarios only, could not have those that it did not begin."""
    having = {program for table, program in zip(tables, programs) if line.key in table}
    return [table[line.key].answer if line.key in table else "(missing)"
            for table, begun, program in zip(tables, scenarios, programs)
            if program in having and line.scenario in begun]


def without_cut_off(runs):
    """The runs, each without the scenarios that met the deadline in it and ended by themselves in another."""
    cut = [{line.scenario for line in run if line.answer == "TIMEOUT"} for run in runs]
    whole = {line.scenario for run, late in zip(runs, cut) for line in run if line.scenario not in late}
    return [[line for line in run if line.scenario not in late & whole] for run, late in zip(runs, cut)]


def merge(runs, programs, needed):
    """Lines in the order of the first run that has them, with their mark."""
    runs = without_cut_off(runs)
    tables = [{line.key: line for line in run} for run in runs]
    scenarios = [{line.scenario for line in run} for run in runs]
    builds = {}
    for begun, program in zip(scenarios, programs):
        builds.update((scenario, program) for scenario in begun)
    newest = {line.key for run, program in zip(runs, programs) for line in run
              if program == builds[line.scenario]}
    merged, done = [], set()
    for run in runs:
        for line in run:
            if line.key in done or line.key not in newest:
                continue
            done.add(line.key)
            answers = answers_of(line, tables, scenarios, programs)
            if len(set(answers)) > 1:
                line.mark = "unstable"
                line.answer = " | ".join(answers)
            elif line.ended:
                line.mark = "ended"
            elif len(answers) < needed:
                line.mark = "unconfirmed"
            merged.append(line)
    return merged


def write(path, headers, merged, count):
    scenarios = {}
    for line in merged:
        scenarios.setdefault(line.scenario, []).append(line)
    with lines.open_text(path, "w") as file:
        for header in headers:
            file.write(f"{header}\n")
        file.write(f"# merged from {count} runs\n")
        for scenario in sorted(scenarios):
            file.write(f"\n[{scenario}]\n")
            for line in sorted(scenarios[scenario], key=lambda line: (line.number, line.key)):
                mark = f"!{line.mark} " if line.mark else ""
                file.write(f"{mark}{line.number:03d} {line.head()} -> {line.answer}\n")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+", help="files written by `parity run`, three or more, the newest last")
    parser.add_argument("-o", "--output", help="default: recordings/DEVICE-DRIVER.txt.xz; packed where it ends so")
    parser.add_argument("--few", action="store_true", help="allow fewer than three runs")
    options = parser.parse_args(arguments)
    if len(options.runs) < 3 and not options.few:
        raise SystemExit("merge: three runs are needed, on two starts of the machine (--few to go on)")
    loaded = [lines.read(run) for run in options.runs]
    headers = list(dict.fromkeys(header for head, _ in loaded for header in head))
    programs = [program_of(head, number) for number, (head, _) in enumerate(loaded)]
    merged = merge([run for _, run in loaded], programs, min(3, len(loaded)))
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recordings")
    path = options.output or os.path.join(folder, name_of(headers))
    write(path, headers, merged, len(loaded))
    marks = {mark: sum(line.mark == mark for line in merged) for mark in ("", "unstable", "unconfirmed", "ended")}
    print(f"{path}: {marks['']} scored, {marks['unstable']} unstable,"
          f" {marks['unconfirmed']} unconfirmed, {marks['ended']} ended")
    for line in merged:
        if line.mark == "unstable":
            print(f"  unstable: {line}")


if __name__ == "__main__":
    sys.exit(main())
