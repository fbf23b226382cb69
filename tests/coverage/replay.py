#!/usr/bin/env python3
"""Replays one chapter of parity's scenarios on the softgpu of a build, and compares with every recording.

    replay.py BUILD CHAPTER

Exit status 0 when every difference has its reason, 77 when nothing of it is recorded."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PARITY = Path(__file__).resolve().parents[1] / "parity"
sys.path.insert(0, str(PARITY))
import lines  # noqa: E402

# What the recorded device has; softgpu would lower it to what this machine has.
MEMORY = "150109880320"


def recordings_of(chapter):
    """(recording, number of devices of its machine) of those that have the chapter."""
    for path in sorted((PARITY / "recordings").glob("*.txt*")):
        header, recorded = lines.read(path)
        if any(line.scenario.startswith(f"{chapter}/") for line in recorded):
            yield path, re.search(r"^# device .* count (\d+)", "\n".join(header), re.M).group(1)


def main():
    build, chapter = Path(sys.argv[1]), sys.argv[2]
    environment = dict(os.environ, GPUMEM_DRIVER="softgpu", SOFTGPU_PROFILE="h200", SOFTGPU_LOG="off",
                       SOFTGPU_MEMORY=MEMORY)
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        for recording, devices in recordings_of(chapter):
            played = Path(folder) / f"{devices}.txt"
            if not played.exists():
                done = subprocess.run(
                    [build / "tests/parity/parity", "run", "--jobs", "2", "--scenario", f"{chapter}/", "-o", played],
                    env=dict(environment, SOFTGPU_DEVICES=devices), check=False)
                if done.returncode:
                    return 1
            pairs += [recording, played]
        if not pairs:
            print(f"skip: no recording has scenarios of {chapter}")
            return 77
        return subprocess.run([sys.executable, PARITY / "compare.py", *pairs, "--scenario", f"{chapter}/"],
                              check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
