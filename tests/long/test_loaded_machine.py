#!/usr/bin/env python3
"""The tests again and again on a machine that has something else to do: eight busy loops beside them, so
that what depends on being quick, or fails one time in many, shows; and once what builds, within the limits
that ./dev test gives it."""
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("GPUMEM_BUILD_DIR", str(SOURCE / "build"))
LOOPS = 8
# Arguments of the runner, one run each.
RUNS = [[suite] for _ in range(5) for suite in ("unit", "fault", "conformance", "cli")]
RUNS.append(["--timeout", "300", "fuzz", "package"])


def run_suite(arguments):
    done = subprocess.run(
        [sys.executable, str(SOURCE / "tests/runner/run.py"), "--build", BUILD, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode == 0, done.stdout


def main():
    if os.environ.get("GPUMEM_TEST_LONG") != "1":
        print("1..0 # SKIP takes long: ./dev test --long")
        return 0
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(LOOPS)]
    try:
        print(f"1..{len(RUNS)}")
        bad = 0
        for number, arguments in enumerate(RUNS, 1):
            good, output = run_suite(arguments)
            bad += not good
            print(f"{'' if good else 'not '}ok {number} - {' '.join(arguments)}, run {number}", flush=True)
            for line in [] if good else output.splitlines():
                if not line.startswith("ok "):
                    print(f"# {line}")
        return 1 if bad else 0
    finally:
        for loop in loops:
            loop.kill()


if __name__ == "__main__":
    sys.exit(main())
