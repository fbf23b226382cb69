#!/usr/bin/env python3
"""`import torch` with gpumem's CUDA runtime and with NVIDIA's, alternately, under gpumem run: user time and memory.

    bench/import_torch.py [--pairs N] [--gpumem COMMAND] PYTHON

PYTHON is the interpreter of an environment that has torch. The bar: at most 1.05 of NVIDIA's in either."""
import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

GPUMEM = Path(__file__).resolve().parents[1] / "build/bin/gpumem"
# Which runtime torch got, so that no run counts that had another.
PROGRAM = """
import torch
lines = [line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line]
print("ours" if any("gpumem/runtime" in line for line in lines) else "theirs" if lines else "none")
"""


def run(gpumem, python, options):
    """Seconds of user time, MiB of memory at most, and whose runtime it was."""
    process = subprocess.Popen([gpumem, "run", "--softgpu", *options, "--", python, "-c", PROGRAM],
                               stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"import torch failed with status {process.returncode}")
    return usage.ru_utime, usage.ru_maxrss / 1024, output.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--gpumem", default=GPUMEM)
    parser.add_argument("python")
    arguments = parser.parse_args()
    kinds = {"ours": [], "theirs": ["--nvidia-runtime"]}
    seen = {kind: [] for kind in kinds}
    for turn in range(arguments.pairs + 1):  # the first pair reads the files
        for kind, options in kinds.items():
            user, memory, found = run(arguments.gpumem, arguments.python, options)
            if found != kind:
                sys.exit(f"wanted {kind}, torch has {found}")
            if turn:
                seen[kind].append((user, memory))
                print(f"{kind:7} {user:6.2f} s user  {memory:7.1f} MiB")
    for place, what in enumerate(("user time", "memory")):
        ours, theirs = (statistics.median(row[place] for row in seen[kind]) for kind in kinds)
        print(f"{what}: {ours:.2f} / {theirs:.2f} = {ours / theirs:.3f}, bar 1.05: {'met' if ours <= 1.05 * theirs else 'NOT MET'}")


if __name__ == "__main__":
    main()
