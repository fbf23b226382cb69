#!/usr/bin/env python3
"""Threads with kernels, graphs, modules and contexts that end under them, for minutes: with two and four
workers, in each order of work, beside busy loops and without. Of most worth with a build of ThreadSanitizer:
GPUMEM_TEST_LONG=1 GPUMEM_BUILD_DIR=build-tsan tests/long/test_kernel_stress.py"""
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build")).resolve()
# GPUMEM_STRESS_SECONDS: of each run.
SECONDS = os.environ.get("GPUMEM_STRESS_SECONDS", "75")
LOOPS = 4
RUNS = [(workers, schedule, loops)
        for workers in ("2", "4")
        for schedule, loops in (("eager", 0), ("eager", LOOPS), ("late", 0), ("random", 0))]


def run(workers, schedule, loops, seed):
    environment = dict(os.environ, GPUMEM_DRIVER="softgpu", GPUMEM_STRESS_SECONDS=SECONDS, SOFTGPU_SEED=str(seed),
                       SOFTGPU_WORKERS=workers, SOFTGPU_KERNEL_WORKERS=workers, SOFTGPU_SCHEDULE=schedule)
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(loops)]
    try:
        done = subprocess.run([BUILD / "tests/conformance/run", "test_kernel_stress"], env=environment, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    return done.returncode == 0 and "[       OK ]" in done.stdout, done.stdout


def main():
    if os.environ.get("GPUMEM_TEST_LONG") != "1":
        print("1..0 # SKIP takes long: ./dev test --long")
        return 0
    report = Report()
    for number, (workers, schedule, loops) in enumerate(RUNS, 1):
        good, output = run(workers, schedule, loops, number)
        beside = f", beside {loops} busy loops" if loops else ""
        report.expect(good, f"{workers} workers, {schedule}{beside}", "\n".join(output.splitlines()[-60:]))
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
