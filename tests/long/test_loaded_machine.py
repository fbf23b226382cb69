#!/usr/bin/env python3
"""The tests again and again on a machine that has something else to do: two busy loops beside them, so
that what depends on being quick, or fails one time in many, shows."""
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("GPUMEM_BUILD_DIR", str(SOURCE / "build"))
ROUNDS = 5
SUITES = ("unit", "fault", "conformance", "cli")


def run_suite(suite):
    done = subprocess.run(
        [sys.executable, str(SOURCE / "tests/runner/run.py"), "--build", BUILD, suite],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode == 0, done.stdout


def main():
    if os.environ.get("GPUMEM_TEST_LONG") != "1":
        print("1..0 # SKIP takes long: ./dev test --long")
        return 0
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
    try:
        print(f"1..{ROUNDS * len(SUITES)}")
        bad = 0
        for number in range(ROUNDS * len(SUITES)):
            suite = SUITES[number % len(SUITES)]
            good, output = run_suite(suite)
            bad += not good
            print(f"{'' if good else 'not '}ok {number + 1} - {suite}, "
                  f"round {number // len(SUITES) + 1}", flush=True)
            for line in [] if good else output.splitlines():
                if not line.startswith("ok "):
                    print(f"# {line}")
        return 1 if bad else 0
    finally:
        for loop in loops:
            loop.kill()


if __name__ == "__main__":
    sys.exit(main())
