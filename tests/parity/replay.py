#!/usr/bin/env python3
"""Replays every recording of hardware on softgpu and says what differs.

Each recording's scenarios are run with as many devices as its machine had; recordings of equal machines
share a run. All runs are made at once, so that no processor waits for the end of one of them. The memory
is the recorded device's, which softgpu would else lower to what this machine has.

The runs stay in BUILD as parity-softgpu-DEVICES.txt, or where --runs says. Exit status 0 when every difference
has a reason (compare.py states the rule), 2 when there is no recording.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compare
import lines

HERE = os.path.dirname(os.path.abspath(__file__))
MEMORY = 150109880320  # of an H200


def devices_of(header, path):
    for text in header:
        match = re.match(r"# device .* count (\d+) ", text)
        if match:
            return int(match[1])
    raise SystemExit(f"replay: {path} does not say how many devices its machine had")


def environment(devices, folder):
    """The recorded driver, for the recorder. What a scenario that is ended leaves lies in a folder that goes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SOFTGPU_")}
    kept.update(GPUMEM_DRIVER="softgpu", SOFTGPU_PROFILE="h200", SOFTGPU_MEMORY=str(MEMORY),
                SOFTGPU_LOG="off", SOFTGPU_DEVICES=str(devices), SOFTGPU_PTX="driver")
    # A build with a sanitizer: its reports are collected. Where hardware's driver dies softgpu may, too.
    for name, more in (("ASAN_OPTIONS", ":handle_segv=0:handle_sigbus=0:detect_leaks=0"), ("UBSAN_OPTIONS", "")):
        kept[name] = f"{kept.get(name, '')}{more}:log_path={folder}/report"
    kept["TMPDIR"] = folder
    return kept


def scenario_of(line):
    """The scenario that prints the line: a process that it made adds a name of its own behind a colon."""
    return line.scenario.partition(":")[0]


def start(options, devices, wanted, path, folder):
    """The recorder, which is told its scenarios, and where the hardware never answered, by standard input."""
    recorder = os.path.join(options.build, "tests/parity/parity")
    process = subprocess.Popen([recorder, "run", "--list", "-", "--together", "--jobs", str(options.jobs),
                                "-o", path], env=environment(devices, folder), stdin=subprocess.PIPE, text=True)
    process.stdin.write("".join(" ".join((name, *map(str, sorted(hung)))) + "\n"
                                for name, hung in sorted(wanted.items())))
    process.stdin.close()
    return process


def run_all(options, wanted):
    """Number of devices -> the file of its run. The scenarios of all are under way at the same time."""
    paths = {devices: os.path.join(options.runs, f"parity-softgpu-{devices}.txt") for devices in wanted}
    with tempfile.TemporaryDirectory() as folder:
        processes = [start(options, devices, wanted[devices], path, folder) for devices, path in paths.items()]
        if any([process.wait() for process in processes]):
            raise SystemExit("replay: the recorder failed")
        found = sorted(Path(folder).glob("report*"))
        for report in found:
            print(report.read_text(errors="replace"))
    return paths, len(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=os.path.join(HERE, "../../build"), help="the build folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="scenarios at a time")
    parser.add_argument("--recordings", default=os.path.join(HERE, "recordings"), help="their folder")
    parser.add_argument("--runs", help="the folder for what softgpu answers")
    compare.add_options(parser)
    options = parser.parse_args()
    options.runs = options.runs or options.build
    began = time.monotonic()
    recorded, wanted = [], {}
    for path in lines.recordings(options.recordings):
        header, calls = lines.read(path)
        devices = devices_of(header, path)
        recorded.append((path, devices, calls))
        for line in calls:
            if line.scenario.startswith(options.scenario):
                hung = wanted.setdefault(devices, {}).setdefault(scenario_of(line), set())
                if line.answer == "TIMEOUT":
                    hung.add(line.number)
    if not wanted:
        print("replay: there is no recording" + (" of such a scenario" if recorded else ""), file=sys.stderr)
        return 2
    paths, reports = run_all(options, wanted)
    runs = {devices: lines.read(path)[1] for devices, path in paths.items()}
    good = compare.compare_all([(os.path.relpath(path), calls, runs.get(devices, []))
                                for path, devices, calls in recorded], options)
    print(f"parity: {sum(map(len, wanted.values()))} scenarios, {time.monotonic() - began:.1f} s", file=sys.stderr)
    if reports:
        print(f"parity: {reports} reports of a sanitizer, above")
    return 0 if good and not reports else 1


if __name__ == "__main__":
    sys.exit(main())
