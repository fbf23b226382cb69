#!/usr/bin/env python3
"""Sums of matrix instructions at the edges of their formats: as an H200 answered, each of them."""
import lzma
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[1] / "build")).resolve()
sys.path.insert(0, str(HERE.parent / "harness"))
import c_test  # noqa: E402  pylint: disable=wrong-import-position

RECORDING = HERE / "ptx/recordings/h200-580.159.04/matrix.txt.xz"


def lines_of(text):
    """Name to sum, of lines "edge: TYPES CASE SUM"."""
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("edge: "))


def main():
    print("1..1")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SOFTGPU_", "CMOCKA_"))}
    environment.update(GPUMEM_DRIVER="softgpu", GPUMEM_MATRIX_EDGES="1")
    done = subprocess.run(c_test.command(BUILD, "conformance/test_matrix"), env=environment, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    actual = lines_of(done.stdout)
    with lzma.open(RECORDING, "rt") as file:
        recorded = lines_of(file.read())
    problems = [f"{name}: recorded {value}, actual {actual.get(name, 'nothing')}"
                for name, value in recorded.items() if actual.get(name) != value]
    if done.returncode != 0 or len(recorded) < 1000:
        problems += [f"exit status {done.returncode}, {len(recorded)} recorded"] + done.stdout.splitlines()[-20:]
    print(f"{'not ' if problems else ''}ok 1 - {len(recorded)} sums are as recorded")
    for line in problems[:40]:
        print(f"# {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
